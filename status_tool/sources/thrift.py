"""HBase over Thrift (version 1, happybase): connections, scans that survive a dropped connection.

happybase knows no retry: a Thrift server drops idle connections, and scanners die with them. A scan
here resumes behind the last row it has seen.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import happybase
from thriftpy2.thrift import TException

from status_tool.config import ThriftEndpoint
from status_tool.errors import ConnectionFailed

Cells = dict[bytes, tuple[bytes, int]]
"""Column (`family:qualifier`) to value and cell timestamp."""

TIMEOUT_MS = 60_000
ATTEMPTS = 5
BATCH_ROWS = 2_000
_TRANSPORT_ERRORS = (TException, OSError, EOFError)
_hbase = importlib.import_module("Hbase_thrift")  # generated when happybase is imported
_SERVER_ERRORS = (_hbase.IOError, _hbase.IllegalArgument, _hbase.AlreadyExists)


def connect(endpoint: ThriftEndpoint, timeout_ms: int = TIMEOUT_MS) -> happybase.Connection:
    """Open a connection; `ConnectionFailed` where nothing answers."""
    try:
        return happybase.Connection(endpoint.host, endpoint.port, timeout=timeout_ms)
    except _TRANSPORT_ERRORS as error:
        raise unreachable(endpoint, error) from None


def unreachable(endpoint: ThriftEndpoint, error: BaseException) -> ConnectionFailed:
    """The one line for a Thrift server that does not answer."""
    return ConnectionFailed(
        f"cannot reach the HBase Thrift server at {endpoint} ({_reason(error)}): is `hbase thrift` (version 1) "
        "running there? --thrift HOST:PORT names another"
    )


@contextlib.contextmanager
def connection(endpoint: ThriftEndpoint) -> Iterator[happybase.Connection]:
    """A connection that is closed at the end; every Thrift error inside becomes `ConnectionFailed`."""
    client = connect(endpoint)
    try:
        yield client
    except _SERVER_ERRORS as error:
        raise ConnectionFailed(f"HBase behind the Thrift server {endpoint} failed: {_message(error)}") from None
    except _TRANSPORT_ERRORS as error:
        raise unreachable(endpoint, error) from None
    finally:
        with contextlib.suppress(Exception):
            client.close()


def scan(
    endpoint: ThriftEndpoint,
    table: str,
    start: bytes,
    stop: bytes | None,
    columns: Sequence[bytes] | None = None,
) -> Iterator[tuple[bytes, Cells]]:
    """Rows of `[start, stop)` in key order, resumed after a lost connection.

    Raises `ConnectionFailed` after `ATTEMPTS` tries without progress.
    """
    tries = 0
    while True:
        try:
            for row, cells in _scan_once(endpoint, table, start, stop, columns):
                start, tries = row + b"\0", 0
                yield row, cells
            return
        except (*_SERVER_ERRORS, *_TRANSPORT_ERRORS, ConnectionFailed) as error:
            tries += 1
            if tries >= ATTEMPTS or _is_final(error):
                raise _scan_failed(endpoint, table, error) from None
            time.sleep(0.2 * 2**tries)


def _scan_once(
    endpoint: ThriftEndpoint, table: str, start: bytes, stop: bytes | None, columns: Sequence[bytes] | None
) -> Iterator[tuple[bytes, Cells]]:
    client = connect(endpoint)
    try:
        yield from client.table(table).scan(
            row_start=start, row_stop=stop, columns=columns, include_timestamp=True, batch_size=BATCH_ROWS
        )
    finally:
        with contextlib.suppress(Exception):
            client.close()


def _is_final(error: BaseException) -> bool:
    """A table that is not there will not come back by trying again."""
    text = _message(error)
    return "TableNotFound" in text or "was not found" in text or isinstance(error, ConnectionFailed)


def _scan_failed(endpoint: ThriftEndpoint, table: str, error: BaseException) -> ConnectionFailed:
    if isinstance(error, ConnectionFailed):
        return error
    if isinstance(error, _SERVER_ERRORS):
        return ConnectionFailed(f"cannot read table {table} through {endpoint}: {_message(error)}")
    return unreachable(endpoint, error)


def _message(error: BaseException) -> str:
    """First line of what a Java exception said; Thrift sends whole stack traces."""
    raw: Any = getattr(error, "message", None) or str(error)
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    return text.strip().splitlines()[0][:300] if text.strip() else type(error).__name__


def _reason(error: BaseException) -> str:
    if isinstance(error, socket.timeout):
        return "no answer in time"
    return _message(error)
