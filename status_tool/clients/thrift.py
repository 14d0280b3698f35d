"""HBase over Thrift (version 1, happybase): connections, scans that survive a dropped connection.

happybase does not retry, and a Thrift server drops idle connections and, apart from those, scanners that have waited
long for a call. A scan here resumes after the last row it has seen.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import happybase
import urllib3
from thriftpy2.protocol import TBinaryProtocol, TCompactProtocol
from thriftpy2.protocol.cybin import ProtocolError  # type: ignore[attr-defined]
from thriftpy2.thrift import TApplicationException, TClient, TException, TType
from thriftpy2.transport import (
    TBufferedTransport,
    TFramedTransport,
    TSocket,
    TTransportBase,
    TTransportException,
)
from thriftpy2.transport.sslsocket import TSSLSocket

from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.hdfscli import reason
from status_tool.clients.kerberos import ServiceName, canonical
from status_tool.clients.sasl import GssapiClient, negotiate_header
from status_tool.clients.thrift_sasl import Rejected, SaslTransport
from status_tool.clients.tls import distrust, tls_context, tls_error
from status_tool.errors import ConnectionFailed
from status_tool.vocabulary.names import META

Cells = dict[bytes, tuple[bytes, int]]
"""Column (`family:qualifier`) to value and cell timestamp."""

TIMEOUT_MS = 60_000
SCAN_ATTEMPTS = 5
SCAN_ROWS = 2_000
"""Rows a call. Fewer cost the servers more calls; more are held three times over by the Thrift server."""
_NEXT = "scannerGetList"
_BUFFER_BYTES = 1 << 16
"""Taken from the socket at once; an answer has some hundred thousand. thriftpy2's default is 4096."""
_COLLECT_AFTER = 50_000
"""Rows come and go by the million, without cycles: looking for these after each 700 objects takes a quarter of the CPU
time of reading."""
_OPENING = threading.Lock()
_HIGHEST: dict[str, int] = {}
"""Number of the newest scanner by the address of a Thrift server over HTTP: each server counts from 0."""
_TRANSPORT_ERRORS = (TException, ProtocolError, OSError, EOFError)
_hbase: Any = importlib.import_module("Hbase_thrift")  # generated when happybase is imported
SERVER_ERRORS = (_hbase.IOError, _hbase.IllegalArgument, _hbase.AlreadyExists)
"""Errors that HBase itself answers with, such as that a user lacks a right."""
_READ_ERRORS = (*SERVER_ERRORS, *_TRANSPORT_ERRORS, ConnectionFailed)


def connect(endpoint: ThriftEndpoint, service: Any = _hbase.Hbase) -> happybase.Connection:
    """Open a connection; raises `ConnectionFailed` if nothing answers."""
    try:
        return _Connection(endpoint, service)
    except Rejected as error:
        raise _rejected(endpoint, f"({error})") from None
    except _TRANSPORT_ERRORS as error:
        raise unreachable(endpoint, error) from None


class _Connection(happybase.Connection):
    """happybase's connection over the transport and protocol of the endpoint's server."""

    def __init__(self, endpoint: ThriftEndpoint, service: Any) -> None:
        self._endpoint, self._service = endpoint, service
        super().__init__(endpoint.host, endpoint.port)

    def _refresh_thrift_client(self) -> None:
        self.transport = _transport(self._endpoint)
        protocol = TCompactProtocol if self._endpoint.compact else TBinaryProtocol
        self.client = _Client(self._service, protocol(self.transport, decode_response=False))


class Value:
    """A cell without its timestamp. As few members as are asked for, and no constructor: there are millions."""

    __slots__ = ("value",)
    thrift_spec: ClassVar = {1: _hbase.TCell.thrift_spec[1]}
    value: bytes


class StoredRow:
    """A row of a table as a scanner's answer has it, by the names of its columns."""

    __slots__ = ("columns", "row")
    thrift_spec: ClassVar = {
        1: _hbase.TRowResult.thrift_spec[1],
        2: (TType.MAP, "columns", (TType.BINARY, (TType.STRUCT, Value)), False),
    }
    row: bytes
    columns: dict[bytes, Value]


class _Values(_hbase.Hbase):  # type: ignore[misc]
    """HBase's service, of whose answers only what `StoredRow` has is decoded."""

    class scannerGetList_result(_hbase.Hbase.scannerGetList_result):  # type: ignore[misc]
        thrift_spec: ClassVar = {
            **_hbase.Hbase.scannerGetList_result.thrift_spec,
            0: (TType.LIST, "success", (TType.STRUCT, StoredRow), False),
        }


class _Client(TClient):
    """thriftpy2's client, whose calls can be cut in two."""

    def ask(self, call: str, **arguments: Any) -> None:
        """Send a call; the next thing to do on this connection is to take its `answer`."""
        self._send(call, **arguments)

    def answer(self, call: str) -> Any:
        """Return the result of the call."""
        return self._recv(call)


def _transport(endpoint: ThriftEndpoint) -> TTransportBase:
    settings: Any = {"socket_timeout": TIMEOUT_MS}
    kind: Any = TSSLSocket if endpoint.tls else TSocket
    if endpoint.http:
        plain: Any = _HttpTransport(endpoint)
    elif endpoint.tls:
        plain = kind(endpoint.host, endpoint.port, ssl_context=tls_context(endpoint.trust), **settings)
    else:
        plain = kind(endpoint.host, endpoint.port, **settings)
    if endpoint.qops:
        plain = SaslTransport(plain, lambda: GssapiClient(service_of(endpoint), endpoint.qops, _server(endpoint)))
    wrapper: Any = TFramedTransport if endpoint.framed else TBufferedTransport
    transport: TTransportBase = wrapper(plain, _BUFFER_BYTES)
    return transport


def service_of(endpoint: ThriftEndpoint) -> ServiceName:
    """Return the server's principal."""
    return ServiceName(endpoint.principal, endpoint.host)


def _server(endpoint: ThriftEndpoint) -> str:
    return f"the HBase Thrift server at {endpoint}"


class _HttpTransport(TTransportBase):
    """Thrift over HTTP: each message is a POST (thriftpy2's own sets time limits for the whole process)."""

    def __init__(self, endpoint: ThriftEndpoint) -> None:
        self._url = f"{'https' if endpoint.tls else 'http'}://{endpoint}/"
        self._endpoint = endpoint
        context = tls_context(endpoint.trust) if endpoint.tls else None
        self._pool = urllib3.PoolManager(timeout=TIMEOUT_MS / 1000, retries=False, ssl_context=context)
        self._request = io.BytesIO()
        self._response = io.BytesIO()

    def is_open(self) -> bool:
        """Return True: each message opens the connection that it needs."""
        return True

    def open(self) -> None:
        """Do nothing: only the pool keeps connections between messages."""

    def close(self) -> None:
        """Drop the connection."""
        self._pool.clear()

    def read(self, size: int) -> bytes:
        """Return the available part of the answer, at most this many bytes."""
        return self._response.read(size)

    def write(self, data: bytes) -> None:
        """Add to the message."""
        self._request.write(data)

    def flush(self) -> None:
        """Send the message and read the answer."""
        # A message that fails must not go out with the next one.
        message, self._request = self._request.getvalue(), io.BytesIO()
        if not message:
            return
        try:
            answer = self._pool.request("POST", self._url, body=message, headers=self._headers(), redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise TTransportException(TTransportException.NOT_OPEN, reason(error)) from error
        if answer.status == 401:
            raise _unauthorized(self._endpoint)
        if answer.status != 200:
            raise TTransportException(TTransportException.UNKNOWN, f"HTTP status {answer.status}")
        self._response = io.BytesIO(answer.data)

    def _headers(self) -> dict[str, str]:
        """Return the headers with a fresh ticket."""
        plain = {"Content-Type": "application/x-thrift"}
        if not self._endpoint.has_kerberos:
            return plain
        # The server keeps no session.
        return plain | {"Authorization": negotiate_header(service_of(self._endpoint), _server(self._endpoint))}


def _unauthorized(endpoint: ThriftEndpoint) -> ConnectionFailed:
    if not endpoint.has_kerberos:
        return ConnectionFailed(
            f"{_server(endpoint)} requires Kerberos (HTTP status 401): set hbase.security.authentication=kerberos and "
            "hbase.thrift.spnego.principal in the site files, as that server has them"
        )
    return _rejected(endpoint, "(HTTP status 401)")


def _rejected(endpoint: ThriftEndpoint, why: str) -> ConnectionFailed:
    """Return the error for a server that accepts tickets, but not this one. Only its log has the reason."""
    return ConnectionFailed(
        f"{_server(endpoint)} rejected the Kerberos ticket for {canonical(service_of(endpoint))} {why}: its keytab "
        "has to have that principal's newest key, its clock must not differ by five minutes; its log says which"
    )


def unreachable(endpoint: ThriftEndpoint, error: BaseException) -> ConnectionFailed:
    """Return the error, in one line, for a Thrift server that does not answer, or not as expected."""
    if (why := distrust(error)) is not None:
        return ConnectionFailed(f"the HBase Thrift server at {endpoint} cannot be reached: {why}")
    if isinstance(error, TApplicationException):
        return ConnectionFailed(
            f"the server at {endpoint} is not an HBase Thrift server of version 1 ({_reason(error)}): start "
            "`hbase thrift`, not `hbase thrift2`; --thrift HOST:PORT names another"
        )
    refused = isinstance(error, OSError) and not isinstance(error, TimeoutError)
    refused = refused or getattr(error, "type", None) == TTransportException.NOT_OPEN
    if refused and tls_error(error) is None:
        return ConnectionFailed(
            f"cannot reach the HBase Thrift server at {endpoint} ({_reason(error)}): is `hbase thrift` (version 1) "
            "running there? --thrift HOST:PORT names another"
        )
    return ConnectionFailed(
        f"the HBase Thrift server at {endpoint} does not answer as {_dialect(endpoint)} ({_reason(error)}): is `hbase "
        "thrift` (version 1) running there, does the HBase master answer it, and are hbase.regionserver.thrift.framed, "
        ".compact, .http, hbase.thrift.security.qop and hbase.thrift.ssl.enabled in the site files as that server has "
        "them?"
    )


def _dialect(endpoint: ThriftEndpoint) -> str:
    """Return the protocol and transport of the endpoint's server, in words."""
    protocol = "the compact protocol" if endpoint.compact else "the binary protocol"
    over = "HTTP" if endpoint.http else "framed transport" if endpoint.framed else "unframed transport"
    sasl = f", SASL ({','.join(endpoint.qops)})" if endpoint.qops else ""
    return f"{protocol} over {over}{sasl}{' and TLS' if endpoint.tls else ''}"


@contextlib.contextmanager
def connection(endpoint: ThriftEndpoint) -> Iterator[happybase.Connection]:
    """A connection that is closed at the end; every Thrift error inside becomes `ConnectionFailed`."""
    client = connect(endpoint)
    try:
        yield client
    except SERVER_ERRORS as error:
        raise ConnectionFailed(f"HBase behind the Thrift server {endpoint} failed: {_message(error)}") from None
    except _TRANSPORT_ERRORS as error:
        raise unreachable(endpoint, error) from None
    finally:
        with contextlib.suppress(Exception):
            client.close()


def check_and_put(
    client: happybase.Connection, table: str, row: bytes, column: bytes, known: bytes | None, value: bytes
) -> bool:
    """Put a cell if its value is still `known` (None: it is not there); False if it is another by now."""
    change = _hbase.Mutation(isDelete=False, column=column, value=value)
    return bool(client.client.checkAndPut(table.encode(), row, column, known, change, {}))


def get(endpoint: ThriftEndpoint, table: str, row: bytes) -> Cells:
    """Return a row, empty if there is none: for a fifth of what a scan costs the servers.

    Raises `ConnectionFailed` after `SCAN_ATTEMPTS` tries.
    """
    tries = 0
    while True:
        try:
            with contextlib.closing(connect(endpoint)) as client:
                cells: Cells = client.table(table).row(row, include_timestamp=True)
                return cells
        except _READ_ERRORS as error:
            tries += 1
            _pause_or_raise(endpoint, table, error, tries)


def scan(
    endpoint: ThriftEndpoint,
    table: str,
    start: bytes,
    stop: bytes | None,
    columns: Sequence[bytes] | None = None,
) -> Iterator[tuple[bytes, Cells]]:
    """Yield the rows of `[start, stop)` in key order.

    Raises `ConnectionFailed` after `SCAN_ATTEMPTS` tries without progress.
    """
    for items in _Scan(endpoint, table, stop, columns, _hbase.Hbase).answers(start):
        for item in items:
            yield item.row, {name: (cell.value, cell.timestamp) for name, cell in item.columns.items()}


def scan_pages(
    endpoint: ThriftEndpoint, table: str, start: bytes, stop: bytes | None, columns: Sequence[bytes] | None = None
) -> Iterator[list[StoredRow]]:
    """Yield the same rows by the answers in which they come, without timestamps: for half of the CPU time."""
    yield from _Scan(endpoint, table, stop, columns, _Values).answers(start)


def cells_of(pages: Iterable[Sequence[StoredRow]]) -> Iterator[tuple[bytes, Cells]]:
    """Yield the rows one by one. Nobody may ask for the timestamps of their cells: they are 0."""
    for page in pages:
        for row in page:
            yield row.row, {name: (cell.value, 0) for name, cell in row.columns.items()}


@dataclass(frozen=True)
class _Scan:
    """Rows up to `stop`, as a service's answers."""

    endpoint: ThriftEndpoint
    table: str
    stop: bytes | None
    columns: Sequence[bytes] | None
    service: Any

    def answers(self, start: bytes) -> Iterator[list[Any]]:
        """Yield answers; after a lost connection the next scan starts behind the last row: none is lost or repeated.

        Over HTTP a second scanner has to see the end, too: another server may have answered to the first one's number.
        """
        tries, has_ended = 0, False
        gc.set_threshold(_COLLECT_AFTER)
        while True:
            try:
                found = False
                for items in self._once(start):
                    self._refuse_others(start, items)
                    # Every answer is progress: a scan of hours may lose more than `SCAN_ATTEMPTS` connections.
                    tries, found = 0, True
                    yield items
                    start = self._behind(items[-1].row)
                if not self.endpoint.http or (has_ended and not found):
                    return
                has_ended = not found
            except _READ_ERRORS as error:
                tries += 1
                _pause_or_raise(self.endpoint, self.table, error, tries)

    def _behind(self, row: bytes) -> bytes:
        """Return where the scan goes on behind a row."""
        # In `hbase:meta` (`MetaCellComparator`) the rows of a table's regions come right behind the table's own, before
        # what begins with its name and a zero.
        return row + (b",," if self.table == META and b"," not in row else b"\0")

    def _refuse_others(self, start: bytes, items: Sequence[Any]) -> None:
        """Raise `ConnectionFailed` for rows of another scan, which then lacks them: no retry brings them back."""
        if self.table == META:  # its rows are not in the order of their bytes (`MetaCellComparator`)
            return
        # Each Thrift server counts its scanners from 0, and over HTTP a call may reach another server, or a restarted
        # one: ours and another client's scanner may have one number.
        if items[0].row < start or items[-1].row < items[0].row or (self.stop and items[-1].row >= self.stop):
            raise _other_server(self.endpoint, "sent rows of another scan of a table")

    def _opened(self, client: _Client, start: bytes) -> int:
        """Return the number of a new scanner.

        Raises `ConnectionFailed` over HTTP if it is no higher than the one before, as of a server that was restarted or
        of another one: its answer to our scanner's number is of a scan of its own, and may be the end of that.
        """
        scan = _hbase.TScan(startRow=start, stopRow=self.stop, columns=self.columns, caching=SCAN_ROWS)
        open_scanner = partial(client.scannerOpenWithScan, self.table.encode(), scan, {})
        if not self.endpoint.http:
            return int(open_scanner())
        # Threads open scanners at once, in an order that only the server knows: one lock covers call and comparison.
        with _OPENING:
            before, number = _HIGHEST.get(str(self.endpoint), -1), int(open_scanner())
            # It may be lower: this run ends by that, and a service's next round asks the restarted server.
            _HIGHEST[str(self.endpoint)] = number
        if number <= before:
            raise _other_server(self.endpoint, f"has opened scanner {number} after {before}")
        return number

    def _once(self, start: bytes) -> Iterator[list[Any]]:
        """Yield the answers of one scanner, none of them empty."""
        opened = connect(self.endpoint, service=self.service)
        try:
            client: _Client = opened.client
            scanner = self._opened(client, start)
            if self.endpoint.http:
                # One answer a scanner: urllib3 opens a connection that was idle anew, maybe to another Thrift server.
                items = client.scannerGetList(scanner, SCAN_ROWS)
                client.scannerClose(scanner)
                if items:
                    yield items
                return
            ask = partial(client.ask, _NEXT, id=scanner, nbRows=SCAN_ROWS)
            ask()
            while items := client.answer(_NEXT):
                # The server reads this answer while the caller works on the one at hand.
                ask()
                try:
                    yield items
                except GeneratorExit:
                    # The caller has enough, and no scanner stays open in HBase. The answer on its way is taken before:
                    # thriftpy2 takes the next message for the answer to any call (`TClient._recv` compares no sequence
                    # id).
                    with contextlib.suppress(Exception):
                        client.answer(_NEXT)
                        client.scannerClose(scanner)
                    raise
            client.scannerClose(scanner)
        finally:
            with contextlib.suppress(Exception):
                opened.close()


def _other_server(endpoint: ThriftEndpoint, sign: str) -> ConnectionFailed:
    return ConnectionFailed(
        f"the HBase Thrift server at {endpoint} {sign}: it was restarted, or there are several behind this address; "
        "run again, with --thrift HOST:PORT of a single one"
    )


def _pause_or_raise(endpoint: ThriftEndpoint, table: str, error: BaseException, tries: int) -> None:
    """Wait before the next try; raises `ConnectionFailed` after the last one, or where another one is pointless."""
    if isinstance(error, ConnectionFailed):
        raise error from None
    # Another try is pointless where the table does not exist.
    text = _message(error)
    if tries < SCAN_ATTEMPTS and "TableNotFound" not in text and "was not found" not in text:
        time.sleep(0.2 * 2**tries)
    elif isinstance(error, SERVER_ERRORS):
        raise ConnectionFailed(f"cannot read table {table} through {endpoint}: {text}") from None
    else:
        raise unreachable(endpoint, error) from None


def _message(error: BaseException) -> str:
    """Return the first line of a Java exception's message: Thrift sends whole stack traces."""
    raw: Any = getattr(error, "message", None) or str(error)
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    return text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__


def _reason(error: BaseException) -> str:
    if isinstance(error, socket.timeout):
        return "no answer in time"
    return _message(error)
