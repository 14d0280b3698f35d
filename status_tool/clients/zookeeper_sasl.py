"""A login at ZooKeeper by Kerberos: kazoo carries the tokens, by pure-sasl's interface for mechanisms; ours makes them.

pure-sasl's own GSSAPI needs a package of its own (`kerberos`), and keeps its reasons for itself.
"""

from __future__ import annotations

from typing import Any

from status_tool.clients.kerberos import HOST_PATTERN, ServiceName, canonical, gss, package
from status_tool.clients.sasl import GssapiClient
from status_tool.errors import ConnectionFailed, StatusToolError


class SaslLogin:
    """One session's login, at whichever server of the ensemble it is connected to."""

    def __init__(self, where: str) -> None:
        """Prepare the login; `where` names the ensemble in errors."""
        self._where = where
        self.refusal: StatusToolError | None = None
        """Why there is no login, as far as that was seen on this side."""
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
            self._login.refusal = error
            raise
        if self._client.complete:
            self._login.user = self._client.user
        return answer

    def dispose(self) -> None:
        """Do nothing: the mechanism keeps nothing."""
