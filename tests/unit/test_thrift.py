"""The transports and protocols of HBase's Thrift server, spoken with a server in this process."""

from __future__ import annotations

import importlib
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import happybase  # noqa: F401  # generates Hbase_thrift
import pytest
from thriftpy2.http import THttpServer
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import (
    TBufferedTransportFactory,
    TFramedTransportFactory,
    TServerSocket,
    TSSLServerSocket,
    TTransportException,
)

from status_tool.clients import thrift
from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.thrift import cells_of, connection, get, scan, scan_pages
from status_tool.clients.tls import read_trust
from status_tool.errors import ConnectionFailed
from status_tool.vocabulary.names import META
from tests.certificates import certificate
from tests.lab.waiting import wait_until

TABLES = [b"one", b"two"]
hbase = importlib.import_module("Hbase_thrift")


class Handler:
    """As much of HBase as is needed."""

    def __init__(self) -> None:
        self.rows = 0
        """Of the table: their keys are 8 digits."""
        self.breaks: list[int] = []
        """Before which calls for rows the server fails."""
        self.calls: list[str] = []
        self.restarts = 0
        """Before which call for rows the server is restarted, and others' scanners get the numbers of ours."""
        self.ends = 0
        """Before which call another server answers, where the scanners with the numbers of ours are at their end."""
        self.idle = False
        """True if another server answers after the first rows, where scanners with the numbers of ours are further."""
        self.first = 0
        """Number of the first scanner."""
        self._positions: dict[int, int] = {}

    def getTableNames(self) -> list[bytes]:
        return TABLES

    def scannerOpenWithScan(self, name: bytes, scan: Any, attributes: Any) -> int:
        scanner = self.first + len(self._positions)
        self._positions[scanner] = next(n for n in range(self.rows + 1) if _key(n) >= scan.startRow)
        return scanner

    def scannerGetList(self, scanner: int, most: int) -> list[Any]:
        self.calls.append("rows")
        if self.calls.count("rows") in self.breaks:
            raise hbase.IOError(message="lease expired")
        if self.calls.count("rows") == self.restarts:
            self._positions = dict.fromkeys(self._positions, 0)
        if self.calls.count("rows") == self.ends:
            self._positions = dict.fromkeys(self._positions, self.rows)
        start = self._positions[scanner]
        self._positions[scanner] = min(self.rows, start + most)
        cells = {b"t:q": hbase.TCell(value=b"v", timestamp=7)}
        found = [hbase.TRowResult(row=_key(n), columns=cells) for n in range(start, self._positions[scanner])]
        if self.idle:
            self.idle, self._positions = False, dict.fromkeys(self._positions, min(self.rows, start + 2 * most))
        return found

    def getRowWithColumns(self, name: bytes, row: bytes, columns: Any, attributes: Any) -> list[Any]:
        self.calls.append("row")
        if self.calls.count("row") in self.breaks:
            raise hbase.IOError(message="region is moving")
        cells = {b"t:q": hbase.TCell(value=b"v", timestamp=7)}
        return [hbase.TRowResult(row=row, columns=cells)] if row < _key(self.rows) else []

    def scannerClose(self, scanner: int) -> None:
        self.calls.append("close")


def _key(number: int) -> bytes:
    return b"%08d" % number


@pytest.fixture
def handler() -> Handler:
    """What answers in this test."""
    return Handler()


@pytest.fixture
def serve(handler: Handler) -> Iterator[Callable[..., ThriftEndpoint]]:
    servers: list[Any] = []

    def start(
        framed: bool = False,
        compact: bool = False,
        http: bool = False,
        certificate: Path | None = None,
        service: Any = hbase.Hbase,
    ) -> ThriftEndpoint:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        binary: Any = TBinaryProtocolFactory
        processor = TProcessor(service, handler)
        if http:
            server: Any = THttpServer(processor, ("127.0.0.1", port), TBufferedTransportFactory(), binary())
            if certificate:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                server.httpd.socket = context.wrap_socket(server.httpd.socket, server_side=True)
            servers.append(server.httpd.shutdown)
        else:
            kind: Any = TSSLServerSocket if certificate else TServerSocket
            listening = kind("127.0.0.1", port, **({"certfile": str(certificate)} if certificate else {}))
            protocol: Any = TCompactProtocolFactory if compact else TBinaryProtocolFactory
            server = TThreadedServer(
                processor,
                listening,
                iprot_factory=protocol(),
                itrans_factory=(TFramedTransportFactory if framed else TBufferedTransportFactory)(),
                daemon=True,
            )
            listening.listen()
            listening.listen = lambda: None  # it is listening before this returns
            servers.append(server.close)

        def run() -> None:
            while True:
                with suppress(OSError, ssl.SSLError):  # a client that does not trust us ends thriftpy2's loop
                    server.serve()
                if http or server.closed:
                    return

        threading.Thread(target=run, daemon=True).start()
        return ThriftEndpoint("127.0.0.1", port, framed, compact, http, certificate is not None)

    yield start
    for stop in servers:
        stop()


def names(endpoint: ThriftEndpoint) -> list[bytes]:
    with connection(endpoint) as client:
        found: list[bytes] = client.tables()
    return found


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("compact", [False, True])
def test_a_scan(
    serve: Callable[..., ThriftEndpoint], handler: Handler, framed: bool, compact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row once and in order, although the server fails twice; the next scanner begins behind the last row.

    By each transport and protocol, as hbase.regionserver.thrift.framed and .compact say.
    """
    monkeypatch.setattr(thrift, "SCAN_ROWS", 10)
    monkeypatch.setattr("time.sleep", lambda _: None)
    handler.rows, handler.breaks = 45, [1, 4]
    endpoint = serve(framed=framed, compact=compact)
    found = list(scan(endpoint, "t", b"", None))
    assert found == [(_key(number), {b"t:q": (b"v", 7)}) for number in range(45)]
    assert handler.calls[-1] == "close"
    handler.calls.clear()
    plain = list(cells_of(scan_pages(endpoint, "t", b"", None)))
    assert plain == [(_key(number), {b"t:q": (b"v", 0)}) for number in range(45)]
    assert handler.calls[-1] == "close"


def test_rows_are_asked_for_before_the_last_ones_are_handled(
    serve: Callable[..., ThriftEndpoint], handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first row in hand the second call is on its way; who stops there leaves no scanner open."""
    monkeypatch.setattr(thrift, "SCAN_ROWS", 10)
    handler.rows = 45
    rows = scan(serve(), "t", b"", None)
    assert next(rows)[0] == _key(0)
    wait_until(lambda: handler.calls == ["rows", "rows"], 120, "the second call has come")
    assert isinstance(rows, Generator)
    rows.close()
    assert handler.calls == ["rows", "rows", "close"]


@pytest.mark.parametrize(
    ("table", "last", "next_start"),
    [
        (META, b"orders", b"orders,,"),
        (META, b"orders,,1.ab.", b"orders,,1.ab.\0"),
        ("t", b"orders", b"orders\0"),
    ],
)
def test_where_a_scan_goes_on(monkeypatch: pytest.MonkeyPatch, table: str, last: bytes, next_start: bytes) -> None:
    """Behind the row of a table in hbase:meta come its regions, and only then what begins with its name and a zero."""
    starts: list[bytes] = []

    def once(self: Any, start: bytes) -> Iterator[list[Any]]:
        starts.append(start)
        if len(starts) == 1:
            yield [hbase.TRowResult(row=last, columns={})]
            raise TTransportException

    monkeypatch.setattr(thrift._Scan, "_once", once)
    monkeypatch.setattr("time.sleep", lambda _: None)
    assert len(list(scan(ThriftEndpoint("nowhere", 1), table, b"", None))) == 1
    assert starts == [b"", next_start]


def test_a_server_that_goes_on_failing(
    serve: Callable[..., ThriftEndpoint], handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own words, after some tries."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    handler.rows, handler.breaks = 45, list(range(1, 100))
    with pytest.raises(ConnectionFailed, match=r"cannot read table t .*lease expired"):
        list(scan(serve(), "t", b"", None))
    assert handler.calls.count("rows") == thrift.SCAN_ATTEMPTS


def test_a_row_is_read_again_after_an_error(
    serve: Callable[..., ThriftEndpoint], handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as a scan; a row that is not there is empty."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    handler.rows, handler.breaks, endpoint = 1, [1, 2], serve()
    assert get(endpoint, "t", _key(0)) == {b"t:q": (b"v", 7)}
    assert get(endpoint, "t", _key(1)) == {}
    assert handler.calls == ["row"] * 4
    handler.breaks = list(range(1, 100))
    with pytest.raises(ConnectionFailed, match=r"cannot read table t .*region is moving"):
        get(endpoint, "t", _key(0))
    assert len(handler.calls) == 4 + thrift.SCAN_ATTEMPTS


@pytest.mark.parametrize(("start", "stop", "restarts"), [(_key(5), None, 1), (b"", None, 2), (b"", _key(3), 0)])
def test_rows_of_another_scan(
    serve: Callable[..., ThriftEndpoint],
    handler: Handler,
    monkeypatch: pytest.MonkeyPatch,
    start: bytes,
    stop: bytes | None,
    restarts: int,
) -> None:
    """They are missing elsewhere, where nobody notices."""
    monkeypatch.setattr(thrift, "SCAN_ROWS", 10)
    handler.rows, handler.restarts = 45, restarts
    with pytest.raises(ConnectionFailed, match="rows of another scan"):
        list(scan(serve(http=True), "t", start, stop))


def test_a_scanner_that_another_server_opened(serve: Callable[..., ThriftEndpoint], handler: Handler) -> None:
    """Rows may be missing at the end of a scan whose calls reach two servers: each numbers its scanners from 0."""
    handler.rows, endpoint = 5, serve(http=True)
    for first, is_other in ((7, False), (8, False), (3, True), (15, False)):
        handler.first = first
        if not is_other:
            assert len(list(scan(endpoint, "t", b"", None))) == 5
            continue
        with pytest.raises(ConnectionFailed, match="scanner 9 after 13: it was restarted, or there are several"):
            list(scan(endpoint, "t", b"", None))


@pytest.mark.parametrize("ends", [1, 2, 4])
def test_the_end_of_another_servers_scan(
    serve: Callable[..., ThriftEndpoint], handler: Handler, monkeypatch: pytest.MonkeyPatch, ends: int
) -> None:
    """Its scanners' numbers may be higher than those of the server before: only another scanner shows the end."""
    monkeypatch.setattr(thrift, "SCAN_ROWS", 10)
    handler.rows, handler.ends = 25, ends
    assert len(list(scan(serve(http=True), "t", b"", None))) == 25


def test_rows_that_another_servers_scan_passes_over(
    serve: Callable[..., ThriftEndpoint], handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was idle for long is opened anew, to whichever server."""
    monkeypatch.setattr(thrift, "SCAN_ROWS", 10)
    handler.rows, handler.idle = 45, True
    assert [row for row, _ in scan(serve(http=True), "t", b"", None)] == [_key(number) for number in range(45)]


def test_http(serve: Callable[..., ThriftEndpoint]) -> None:
    """Several messages over one connection object."""
    with connection(serve(http=True)) as client:
        assert client.tables() == TABLES
        assert client.tables() == TABLES


@pytest.mark.slow
def test_another_transport_than_the_servers(serve: Callable[..., ThriftEndpoint]) -> None:
    """One line that says what to set."""
    endpoint = serve(framed=True)
    other = ThriftEndpoint(endpoint.host, endpoint.port)
    with pytest.raises(ConnectionFailed, match=r"binary protocol over unframed transport.*thrift\.framed, \.compact"):
        names(other)
    http = ThriftEndpoint(endpoint.host, endpoint.port, http=True)
    with pytest.raises(ConnectionFailed, match=r"hbase\.regionserver\.thrift\.framed|cannot reach"):
        names(http)


def test_a_server_that_is_not_ours(serve: Callable[..., ThriftEndpoint]) -> None:
    """`hbase thrift2` knows other methods."""
    other = type("THBaseService", (hbase.Hbase,), {"thrift_services": ["openScanner"]})
    with pytest.raises(ConnectionFailed, match="not `hbase thrift2`"):
        names(serve(service=other))


@pytest.mark.parametrize("http", [False, True])
def test_tls(serve: Callable[..., ThriftEndpoint], tmp_path: Path, http: bool) -> None:
    """A certificate has to be of a known authority and for the name of the host; the error says which it is not."""
    good, other = certificate(tmp_path, "IP:127.0.0.1"), certificate(tmp_path, "DNS:elsewhere")
    endpoint = replace(serve(certificate=good, http=http), trust=read_trust(Path(f"{good}.crt")))
    assert names(endpoint) == TABLES
    elsewhere = read_trust(Path(f"{other}.crt"))
    with pytest.raises(ConnectionFailed, match=r"certificate is not trusted \(self-signed certificate\): --cacert"):
        names(replace(endpoint, trust=elsewhere))
    endpoint = replace(serve(certificate=other, http=http), trust=elsewhere)
    with pytest.raises(ConnectionFailed, match=r"certificate is for another host .*IP address mismatch"):
        names(endpoint)
    with pytest.raises(ConnectionFailed, match=r"does not speak TLS|hbase.thrift.ssl.enabled in the site"):
        names(replace(serve(http=http), tls=True))


def test_how_the_server_talks_is_read_from_the_site() -> None:
    """Also for a server that --thrift names; the types that imply frames; HTTP knows neither frames nor compact."""
    prefix = "hbase.regionserver.thrift"
    site = {f"{prefix}.framed": "true", f"{prefix}.compact": "TRUE", "hbase.thrift.ssl.enabled": "true"}
    assert Settings(SiteConfig(site), "h:1").thrift() == ThriftEndpoint("h", 1, True, True, False, True)
    assert Settings(SiteConfig(site | {f"{prefix}.http": "true"}), "h:1").thrift() == ThriftEndpoint(
        "h", 1, http=True, tls=True
    )
    assert Settings(SiteConfig({f"{prefix}.server.type": "nonblocking"}), "h:1").thrift().framed
    assert not Settings(SiteConfig({f"{prefix}.server.type": "threadpool"}), "h:1").thrift().framed
