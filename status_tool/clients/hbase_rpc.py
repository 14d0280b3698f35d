"""Calls by HBase's own RPC: a connection to one service of a server, one call at a time.

With Kerberos SASL's tokens come first (after lengths of 4 bytes; the server's also after a status), then frames of such
lengths with what the mechanism wraps. TLS, which HBase has from 2.6 on, is below all of it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from status_tool.clients.config import PLAIN_RPC, RPC_QOP_KEY, RpcAccess
from status_tool.clients.hbase_pb2 import (
    ConnectionHeader,
    CoprocessorServiceCall,
    CoprocessorServiceRequest,
    CoprocessorServiceResponse,
    ExceptionResponse,
    RegionSpecifier,
    RequestHeader,
    ResponseHeader,
    UserInformation,
)
from status_tool.clients.hdfscli import reason
from status_tool.clients.kerberos import ServiceName, canonical
from status_tool.clients.sasl import GssapiClient
from status_tool.clients.tls import distrust, tls_context
from status_tool.errors import ConnectionFailed
from status_tool.printable import safe
from status_tool.vocabulary.varint import varint

CONNECT_S, ANSWER_S = 10.0, 60.0
MAX_ANSWER = 64 << 20
"""Bytes of an answer, more than any server of ours sends: what looks longer is no answer of HBase's RPC."""
_SIMPLE, _KERBEROS = b"HBas\x00\x50", b"HBas\x00\x51"
"""Magic, version 0, and the kind of authentication."""
_NO_KERBEROS = -88
"""In place of a token's length (SaslUtil.SWITCH_TO_SIMPLE_AUTH)."""
_MOST_IN_TOKEN = 1 << 20
_USER = "status-tool"
_Answer = TypeVar("_Answer", bound=Message)


class CallRefused(Exception):
    """The server answered a call with an exception."""

    def __init__(self, exception: ExceptionResponse) -> None:
        self.name = exception.exception_class_name.rpartition(".")[2] or "an exception without a name"
        first = exception.stack_trace.partition("\n")[0]
        super().__init__(first.partition(": ")[2] or self.name)


class HBaseRpc:
    """A connection; use as a context manager. Every failure to talk is a `ConnectionFailed`."""

    def __init__(self, host: str, port: int, service: str, who: str, access: RpcAccess = PLAIN_RPC) -> None:
        """Prepare a connection. `who` is what is expected there, for errors."""
        self._where, self._service, self._access = (host, port), service, access
        self._who, self._address = who, f"{host}:{port}"
        self._calls = 0
        self._has_answered = False
        self._layer: GssapiClient | None = None
        self._readable = bytearray()

    def __enter__(self) -> HBaseRpc:
        try:
            self._socket = socket.create_connection(self._where, CONNECT_S)
        except OSError as error:
            raise ConnectionFailed(
                f"cannot reach the {self._who} at {self._address} ({error.strerror or reason(error)}): is it running, "
                "and is that its address?"
            ) from None
        self._socket.settimeout(ANSWER_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with self._talking():
                self._begin()
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _begin(self) -> None:
        header = ConnectionHeader(service_name=self._service)
        if self._access.tls:
            context = tls_context(self._access.trust)
            self._socket = context.wrap_socket(self._socket, server_hostname=self._where[0])
        if self._access.principal:
            self._layer = self._logged_in()
        else:
            header.user_info.CopyFrom(UserInformation(effective_user=_USER))
            self._socket.sendall(_SIMPLE)
        self._send(_with_length(header.SerializeToString()))

    def _logged_in(self) -> GssapiClient | None:
        """Authenticate. Return what wraps all that follows, if it is wrapped."""
        client = GssapiClient(self._server, self._access.qops, f"the {self._who} at {self._address}", RPC_QOP_KEY)
        self._socket.sendall(_KERBEROS + _with_length(client.step(None)))
        while not client.complete:
            self._socket.sendall(_with_length(client.step(self._challenge())))
        return None if client.qop == "auth" else client

    def _challenge(self) -> bytes:
        status, length = struct.unpack(">ii", self._received(8))
        if status == 0 and length == _NO_KERBEROS:
            raise ConnectionFailed(
                f"the {self._who} at {self._address} is without Kerberos, which the site files here demand: start it "
                "with the same site files"
            )
        if not 0 <= length <= _MOST_IN_TOKEN:
            raise DecodeError(f"a token of {length} bytes")
        token = self._received(length)
        if status == 0:
            return token
        why = self._received(min(_MOST_IN_TOKEN, int.from_bytes(self._received(4), "big"))).decode(errors="replace")
        raise ConnectionFailed(
            f"the {self._who} at {self._address} rejected the Kerberos ticket for {canonical(self._server)} "
            f"({safe(why.partition(chr(10))[0])}): its keytab must have that principal's newest key"
        )

    @property
    def _server(self) -> ServiceName:
        return ServiceName(self._access.principal, self._where[0])

    def call(self, method: str, request: Message, answer: type[_Answer]) -> _Answer:
        """Return the answer to a call. Raises `CallRefused` and `ConnectionFailed`."""
        self._calls += 1
        header = RequestHeader(call_id=self._calls, method_name=method, request_param=True)
        with self._talking():
            self._send(_with_length(_delimited(header) + _delimited(request)))
            length = int.from_bytes(self._read(4), "big")
            if not 0 < length <= MAX_ANSWER:
                raise DecodeError(f"an answer of {length} bytes")
            data = self._read(length)
            head, at = _message(data, 0, ResponseHeader)
            # HBase's ServerRpcConnection answers with the id -1 if it refuses the connection and not a call.
            if not head.HasField("exception") and head.call_id != self._calls:
                raise DecodeError("the answer to another call")
            self._has_answered = True
            if not head.HasField("exception"):
                return _message(data, at, answer)[0]
        raise CallRefused(head.exception)

    def _send(self, data: bytes) -> None:
        if self._layer is not None:
            data = b"".join(map(_with_length, self._layer.wrap(data)))
        self._socket.sendall(data)

    def _read(self, length: int) -> bytes:
        if self._layer is None:
            return self._received(length)
        while len(self._readable) < length:
            frame = int.from_bytes(self._received(4), "big")
            if frame > MAX_ANSWER:
                raise DecodeError(f"a frame of {frame} bytes")
            self._readable += self._layer.unwrap(self._received(frame))
        data = bytes(self._readable[:length])
        del self._readable[:length]
        return data

    def _received(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            # Python allocates as much as `recv` may return, and the length is only a server's word.
            part = self._socket.recv(min(length - len(data), 1 << 20))
            if not part:
                raise EOFError("it closed the connection")
            data += part
        return bytes(data)

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise ConnectionFailed(
                f"the {self._who} at {self._address} has not answered within {ANSWER_S:.0f} s: is its disk slow, or is "
                "that another server?"
            ) from None
        except (OSError, EOFError, DecodeError) as error:
            if why := distrust(error):
                raise ConnectionFailed(f"TLS with the {self._who} at {self._address} fails: {why}") from None
            why = (isinstance(error, OSError) and error.strerror) or str(error)
            raise ConnectionFailed(
                f"the {self._who} at {self._address} ended while it was read ({why}): start it, then run this again"
                if self._has_answered and not isinstance(error, DecodeError)
                else f"the server at {self._address} does not answer by HBase's RPC ({why}): is that the address of "
                f"a {self._who}, and do the site files here say so if it requires Kerberos or TLS?"
            ) from None


def coprocessor_call(rpc: HBaseRpc, service: str, method: str, request: bytes = b"") -> bytes:
    """Call a coprocessor's service of a server of `ClientService`. Raises what `HBaseRpc.call` raises."""
    # HBase demands a region, and does not look at it.
    region = RegionSpecifier(type=RegionSpecifier.REGION_NAME, value=b"")
    call = CoprocessorServiceCall(row=b"", service_name=service, method_name=method, request=request)
    asked = CoprocessorServiceRequest(region=region, call=call)
    return rpc.call("ExecRegionServerService", asked, CoprocessorServiceResponse).value.value


def _with_length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _delimited(message: Message) -> bytes:
    data = message.SerializeToString()
    length, prefix = len(data), bytearray()
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes((*prefix, length)) + data


def _message(data: bytes, at: int, kind: type[_Answer]) -> tuple[_Answer, int]:
    """Return the message behind a varint with its length, and where it ends. Raises `DecodeError`."""
    found = varint(data, at)
    if found is None or sum(found) > len(data):
        raise DecodeError("an answer that is cut short")
    length, start = found
    return kind.FromString(data[start : start + length]), start + length
