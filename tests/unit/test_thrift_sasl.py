"""Thrift's SASL transport against a server that speaks its frames, with a mechanism that needs no Kerberos."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from thriftpy2.transport import TSocket, TTransportException

from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.thrift import connect
from status_tool.clients.thrift_sasl import Rejected, SaslTransport, Stage
from status_tool.errors import ConfigurationError, ConnectionFailed


class Mirrored:
    """Three tokens, then a layer that flips every bit, four bytes a frame."""

    mechanism = "MIRROR"

    def __init__(self) -> None:
        self.complete = False
        self.seen: list[bytes | None] = []

    def step(self, challenge: bytes | None) -> bytes:
        self.seen.append(challenge)
        self.complete = challenge == b"two"
        return {None: b"one", b"go on": b"", b"two": b"three"}[challenge]

    def wrap(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), 4):
            yield self.unwrap(data[start : start + 4])

    def unwrap(self, data: bytes) -> bytes:
        return bytes(255 - byte for byte in data)


class Peer:
    """The server's end of one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def take(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = self.connection.recv(count - len(found))
            assert more, "the client has closed the connection"
            found += more
        return found

    def message(self) -> tuple[int, bytes]:
        code, length = struct.unpack(">bi", self.take(5))
        return code, self.take(length)

    def say(self, status: int, payload: bytes = b"") -> None:
        self.connection.sendall(struct.pack(">bi", status, len(payload)) + payload)

    def frame(self) -> bytes:
        (length,) = struct.unpack(">i", self.take(4))
        return self.take(length)

    def send(self, *frames: bytes) -> None:
        """Frames as they are, in one go."""
        self.connection.sendall(b"".join(struct.pack(">i", len(one)) + one for one in frames))

    def accept(self) -> None:
        """The whole negotiation."""
        assert self.message() == (Stage.START, b"MIRROR")
        assert self.message() == (Stage.OK, b"one")
        self.say(Stage.OK, b"go on")
        assert self.message() == (Stage.OK, b"")
        self.say(Stage.OK, b"two")
        assert self.message() == (Stage.COMPLETE, b"three")
        self.say(Stage.COMPLETE)


Serve = Callable[[Callable[[Peer], None]], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server whose one connection is handled by a function; what that raises fails the test."""
    failures: list[BaseException] = []
    threads: list[threading.Thread] = []

    def start(handle: Callable[[Peer], None]) -> int:
        listening = socket.create_server(("127.0.0.1", 0))

        def run() -> None:
            with listening, listening.accept()[0] as connection:
                try:
                    handle(Peer(connection))
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_WR)
                        while connection.recv(4096):
                            pass
                except BaseException as failure:
                    failures.append(failure)

        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()
        return int(listening.getsockname()[1])

    yield start
    for thread in threads:
        thread.join(10)
    assert not failures


def to(port: int) -> SaslTransport:
    kind: Any = TSocket
    inner: Any = kind("127.0.0.1", port, socket_timeout=10_000)
    return SaslTransport(inner, Mirrored)


def test_messages_in_frames(serve: Serve) -> None:
    """A message may take several frames, a frame hold several messages, and an empty frame nothing."""

    def handle(peer: Peer) -> None:
        peer.accept()
        mirror = Mirrored().unwrap
        assert [mirror(peer.frame()) for _ in range(3)] == [b"hell", b"o, y", b"ou"]
        peer.send(mirror(b"go"), b"", mirror(b"od"), mirror(b"bye"))

    transport = to(serve(handle))
    transport.open()
    assert transport.is_open()
    transport.write(b"hello, ")
    transport.write(b"you")
    transport.flush()
    assert [transport.read(100), transport.read(1), transport.read(5), transport.read(3)] == [b"go", b"o", b"d", b"bye"]
    with pytest.raises(TTransportException):
        transport.read(1)
    transport.close()
    assert not transport.is_open()
    with pytest.raises(TTransportException, match="closed"):
        transport.flush()


@pytest.mark.parametrize("status", [Stage.BAD, Stage.ERROR])
def test_a_server_that_refuses(serve: Serve, status: Stage) -> None:
    """In its own words, at whatever point."""

    def handle(peer: Peer) -> None:
        peer.message(), peer.message()
        peer.say(status, b"GSS initiate failed")

    transport = to(serve(handle))
    with pytest.raises(Rejected, match=r"^GSS initiate failed$"):
        transport.open()
    assert not transport.is_open()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "none of SASL's"),
        (struct.pack(">bi", 2, 1 << 30), "none of SASL's"),
        (struct.pack(">bi", 2, -1), "none of SASL's"),
        (struct.pack(">bi", 9, 0), "none of SASL's"),
        (struct.pack(">bi", 5, 0), "ended the negotiation early"),
        (b"\2", ""),
        (b"", ""),
    ],
)
def test_what_is_no_negotiation(serve: Serve, answer: bytes, said: str) -> None:
    """Another kind of server, or one that goes away: an error of the transport, which `connect` explains."""

    def handle(peer: Peer) -> None:
        peer.message(), peer.message()
        peer.connection.sendall(answer)

    with pytest.raises(TTransportException) as failed:
        to(serve(handle)).open()
    assert said in str(failed.value.message)


def test_no_ticket_no_connection() -> None:
    """Whoever has none does not contact the server at all."""

    def none() -> Mirrored:
        raise ConnectionFailed("no ticket")

    with pytest.raises(ConnectionFailed, match="no ticket"):
        SaslTransport(None, none).open()


def thrift(**site: str) -> ThriftEndpoint:
    return Settings(SiteConfig({key.replace("_", "."): value for key, value in site.items()}), "h:1").thrift()


QOP, PRINCIPAL = "hbase.thrift.security.qop", "hbase.thrift.kerberos.principal"


@pytest.mark.parametrize(
    ("asked", "qops"),
    [
        ("auth", ("auth",)),
        (" Auth-Conf , auth ", ("auth-conf", "auth")),
        ("privacy", ("auth-conf",)),
        ("integrity,auth-int", ("auth-int",)),
    ],
)
def test_qualities_of_protection(asked: str, qops: tuple[str, ...]) -> None:
    """By SASL's names and HBase's, the preferred one first."""
    endpoint = thrift(**{QOP: asked, PRINCIPAL: "hbase/_HOST@R"})
    assert (endpoint.qops, endpoint.principal, endpoint.has_kerberos) == (qops, "hbase/_HOST@R", True)


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ({QOP: "auth"}, f"{QOP} is auth in the site files.*set {PRINCIPAL}"),
        ({QOP: "best", PRINCIPAL: "hbase/_HOST@R"}, "'best' in the site files, expected auth, auth-int or auth-conf"),
        ({QOP: "auth", PRINCIPAL: "p", "hbase.regionserver.thrift.framed": "true"}, "does not go with the framed"),
        ({QOP: "auth", PRINCIPAL: "p", "hbase.regionserver.thrift.server.type": "hsha"}, "does not go with the framed"),
        (
            {"hbase.security.authentication": "kerberos", "hbase.regionserver.thrift.http": "true"},
            r"set hbase\.thrift\.spnego\.principal .* HTTP/_HOST",
        ),
    ],
)
def test_site_files_that_cannot_be_meant(site: dict[str, str], said: str) -> None:
    """HBase's server would not start with them."""
    with pytest.raises(ConfigurationError, match=said):
        thrift(**site)


def test_which_servers_ask_for_tickets() -> None:
    """SASL by the quality of protection, HTTP by HBase's security; a secured HBase may have an open Thrift server."""
    secured = {"hbase.security.authentication": "kerberos", PRINCIPAL: "hbase/_HOST@R"}
    http = {"hbase.regionserver.thrift.http": "true"}
    assert not thrift(**secured).has_kerberos
    assert (thrift(**secured, **http).principal, thrift(**secured, **http).qops) == ("hbase/_HOST@R", ())
    spnego = {"hbase.thrift.spnego.principal": "HTTP/_HOST@R"}
    assert thrift(**secured, **http, **spnego).principal == "HTTP/_HOST@R"


def test_a_server_without_sasl_is_told_apart(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names the setting, for whichever side is wrong."""
    monkeypatch.setattr("status_tool.clients.thrift.GssapiClient", lambda *_: Mirrored())

    def hang_up(peer: Peer) -> None:
        peer.take(4)
        peer.connection.sendall(b"\x80\x01\x00\x02\x00")

    endpoint = ThriftEndpoint("127.0.0.1", serve(hang_up), principal="hbase/_HOST@R", qops=("auth",))
    with pytest.raises(ConnectionFailed, match=r"unframed transport, SASL \(auth\).*hbase\.thrift\.security\.qop"):
        connect(endpoint)


def test_a_rejected_ticket(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with what the server said and where to look."""
    monkeypatch.setattr("status_tool.clients.thrift.GssapiClient", lambda *_: Mirrored())

    def refuse(peer: Peer) -> None:
        peer.message(), peer.message()
        peer.say(Stage.BAD, b"GSS initiate failed")

    endpoint = ThriftEndpoint("127.0.0.1", serve(refuse), principal="hbase/_HOST@R", qops=("auth",))
    with pytest.raises(ConnectionFailed, match=r"rejected the Kerberos ticket for hbase/\S+@R \(GSS init"):
        connect(endpoint)
