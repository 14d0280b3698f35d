"""SASL's mechanism GSSAPI as a client (RFC 4752): authentication by a ticket, then a layer that signs or encrypts.

For HBase's Thrift server and RPC, and for ZooKeeper; each carries the same tokens in frames of its own. kazoo carries
those for ZooKeeper by pure-sasl's interface for mechanisms, as pure-sasl's own GSSAPI needs a package of its own
(`kerberos`) and keeps its reasons for itself.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from status_tool.clients.config import THRIFT_QOP_KEY
from status_tool.clients.kerberos import (
    HOST_PATTERN,
    SPNEGO_MECHANISM,
    ServiceName,
    canonical,
    gss,
    make_ready,
    package,
    why_no_ticket,
)
from status_tool.errors import ConnectionFailed, StatusToolError

QOPS = {"auth": 1, "auth-int": 2, "auth-conf": 4}
"""SASL's qualities of protection and their bits, RFC 4752."""
_MOST = 0xFFFFFF
"""The longest wrapped message that is taken; RFC 4752 has three bytes for it."""


class GssapiClient:
    """One negotiation with a server, and the layer that it ends with.

    Every failure is a `ConnectionFailed` with what to do.
    """

    mechanism = "GSSAPI"

    def __init__(self, service: ServiceName, qops: Sequence[str], where: str, key: str = THRIFT_QOP_KEY) -> None:
        """Prepare a client. `qops`, of the property `key`, are by preference; `where` names the server in errors."""
        self._service, self._qops, self._where, self._key = service, tuple(qops), where, key
        self._context = _context(service, where, encrypts="auth-conf" in qops)
        self.complete = False
        self.qop = ""
        """Quality that was agreed upon, once complete."""
        self._chunk = 0

    @property
    def user(self) -> str:
        """User whose ticket was used; empty before that is known."""
        with suppress(gss().exceptions.GSSError, AttributeError):
            return str(self._context.initiator_name or "")
        return ""

    def step(self, challenge: bytes | None) -> bytes:
        """Return the answer to a challenge; None stands for the first one."""
        if self._context.complete:
            return self._choose_layer(challenge or b"")
        return _step(self._context, challenge, self._service, self._where)

    def wrap(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames' contents for data, signed or encrypted as agreed."""
        if self.qop == "auth":
            yield data
            return
        for start in range(0, len(data), self._chunk):
            yield self._context.wrap(data[start : start + self._chunk], self.qop == "auth-conf").message

    def unwrap(self, data: bytes) -> bytes:
        """Return the data of a frame. Raises `ConnectionFailed` if it was altered or is not encrypted as agreed."""
        if self.qop == "auth":
            return data
        found = self._unwrapped(data)
        if self.qop == "auth-conf" and not found.encrypted:
            raise ConnectionFailed(f"{self._where} sent without encryption what was agreed to be encrypted")
        return bytes(found.message)

    def _choose_layer(self, challenge: bytes) -> bytes:
        offered, most = struct.unpack(">B3s", self._four(challenge))
        chosen = next((qop for qop in self._qops if QOPS[qop] & offered), None)
        if chosen is None:
            has = ",".join(qop for qop, bit in QOPS.items() if bit & offered) or "none known"
            raise ConnectionFailed(
                f"{self._where} protects connections by {has}, the site files here ask for {','.join(self._qops)}: set "
                f"{self._key} to {has}, as that server has it"
            )
        self.qop, longest = chosen, int.from_bytes(most, "big")
        if chosen != "auth":
            self._chunk = self._context.get_wrap_size_limit(longest or _MOST, chosen == "auth-conf") or longest
        self.complete = True
        # No name follows: the server takes the ticket's own. RFC 4752, 3.1, demands the size 0 where there is no layer.
        answer = struct.pack(">B3s", QOPS[chosen], (0 if chosen == "auth" else _MOST).to_bytes(3, "big"))
        return bytes(self._context.wrap(answer, False).message)

    def _four(self, challenge: bytes) -> bytes:
        found = bytes(self._unwrapped(challenge).message)
        if len(found) != 4:
            raise ConnectionFailed(f"{self._where} does not speak SASL's GSSAPI: it offered no quality of protection")
        return found

    def _unwrapped(self, data: bytes) -> Any:
        try:
            return self._context.unwrap(data)
        except gss().exceptions.GSSError as error:
            raise ConnectionFailed(
                f"{self._where} sent what its Kerberos session does not vouch for: {why_no_ticket(error)}"
            ) from None


def negotiate_header(service: ServiceName, where: str) -> str:
    """Return the value of `Authorization` for one request by SPNEGO (RFC 4559)."""
    try:
        context = _context(service, where, mechanism=gss().OID.from_int_seq(SPNEGO_MECHANISM))
        token = _step(context, None, service, where)
    except ConnectionFailed:
        # SPNEGO's errors have numbers of their own; Kerberos itself says what is missing.
        _step(_context(service, where), None, service, where)
        raise
    return f"Negotiate {base64.b64encode(token).decode('ascii')}"


def _context(service: ServiceName, where: str, *, encrypts: bool = False, mechanism: Any = None) -> Any:
    gssapi = gss()
    make_ready()
    flag = gssapi.RequirementFlag
    # RFC 4752, 3.1, demands mutual authentication and sequencing of a client that may ask for a layer, and
    # confidentiality of one that may ask for encryption.
    flags = flag.mutual_authentication | flag.integrity | flag.out_of_sequence_detection
    try:
        return gssapi.SecurityContext(
            name=service.name(),
            mech=mechanism or gssapi.MechType.kerberos,
            flags=flags | (flag.confidentiality if encrypts else 0),
            usage="initiate",
        )
    except gssapi.exceptions.GSSError as error:
        raise _failed(error, service, where) from None


def _step(context: Any, challenge: bytes | None, service: ServiceName, where: str) -> bytes:
    try:
        return bytes(context.step(challenge) or b"")
    except gss().exceptions.GSSError as error:
        raise _failed(error, service, where) from None


def _failed(error: Any, service: ServiceName, where: str) -> ConnectionFailed:
    return ConnectionFailed(f"{where} requires Kerberos: {why_no_ticket(error, service)}")


class SaslLogin:
    """One session's login, at whichever server of the ensemble it is connected to."""

    def __init__(self, where: str) -> None:
        """Prepare the login; `where` names the ensemble in errors."""
        self._where = where
        self.refusal: StatusToolError | None = None
        """Reason why there is no login, as far as that was seen on this side."""
        self.user = ""
        """Whose ticket was used, once logged in."""
        self._service = ""

    def options(self, service: str) -> dict[str, Any]:
        """Return the `sasl_options` of `KazooClient`. Raises `ConfigurationError` if the Kerberos extra is missing."""
        gss()
        known = package("puresasl.mechanisms", "ZooKeeper with Kerberos").mechanisms
        known[GssapiClient.mechanism] = _Mechanism
        return {"mechanism": GssapiClient.mechanism, "service": service, "login": self}

    def begin(self, service: str, host: str) -> GssapiClient:
        """Return a client for one server."""
        name = ServiceName(f"{service}/{HOST_PATTERN}", host)
        self._service = canonical(name)
        # ZooKeeper uses SASL for the login alone, and wraps nothing afterwards.
        return GssapiClient(name, ("auth",), self._where)

    def rejected(self) -> ConnectionFailed:
        """Return the error for a server that drops the connection: only the server's log has the reason."""
        return ConnectionFailed(
            f"{self._where} rejected the Kerberos ticket for {self._service}: its keytab has to have that principal's "
            "newest key, and its clock must not differ from this host's by five minutes; its log says more"
        )


class _Mechanism:
    """A mechanism with the interface of `puresasl.mechanisms.Mechanism`."""

    name = GssapiClient.mechanism

    def __init__(self, sasl: Any, login: SaslLogin, **_: Any) -> None:
        self._login, self._sasl = login, sasl
        self._client: GssapiClient | None = None

    @property
    def complete(self) -> bool:
        """Return True if the last token was made."""
        return self._client is not None and self._client.complete

    def process(self, challenge: bytes | None = None) -> bytes:
        """Return the answer to a challenge."""
        try:
            if self._client is None:
                self._client = self._login.begin(self._sasl.service, self._sasl.host)
            answer = self._client.step(challenge)
        except StatusToolError as error:
            # kazoo makes an `AuthFailedError("Unknown error")` of it, in a thread of its own.
            self._login.refusal = error
            raise
        if self._client.complete:
            self._login.user = self._client.user
        return answer

    def dispose(self) -> None:
        """Do nothing: the mechanism keeps nothing."""
