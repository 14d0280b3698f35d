"""Small status files, and those made of others, for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SignKey
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row

HEADER = Header(side="master", cluster_id="11-22", created_ms=1_700_000_000_000, cut_ms=1_700_000_000_001)
STREAM: dict[str, Any] = {
    **{"kind": "stream", "table": "ns:t", "region": "ab" * 16, "origin": -5, "via": 0},
    **{"seq": 17, "write_ms": 1_700_000_000_000, "start_key": b"\x00\xff"},
}
FILE: dict[str, Any] = {"kind": "file", "path": "/a/ü", "length": 3, "algorithm": "MD5", "checksum": "00" * 16}
SERVER: dict[str, Any] = {"kind": "server", "server": "h,1,2", "live": True, "tracked": None}


def batch(*rows: Row) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), STATUS_SCHEMA)


def write(path: Path, *rows: Row, header: Header = HEADER, key: SignKey | None = None) -> Path:
    with StatusWriter(path, header, key) as writer:
        if rows:
            writer.write(batch(*rows))
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All rows of a file."""
    with open_status(path) as file:
        return [row for batch in file.rows() for row in batch.to_pylist()]


def rewritten(
    path: Path,
    *more: Row,
    to: Path | None = None,
    alter: Callable[[Row], Row | None] = lambda row: row,
    key: SignKey | None = None,
    **header: Any,
) -> Path:
    """Write a file anew: with some rows altered, left out or added, another header, at another place."""
    kept = [altered for row in rows_of(path) if (altered := alter(row)) is not None]
    with open_status(path) as file:
        changed = replace(file.header, **header)
    return write(to or path, *kept, *more, header=changed, key=key)
