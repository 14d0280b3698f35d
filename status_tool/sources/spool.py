"""Rows that trackers spooled to the cluster's file system: of requests, or because the state table was out of reach.

The tool reads them as part of the table and leaves the files to the trackers, which put the rows into
the table at their next flush and then delete them (docs/formats.md, Spool).
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection
from typing import Any

from status_tool.clients.hdfscli import Refused
from status_tool.clients.thrift import Cells
from status_tool.clients.webhdfs import WebHdfs
from status_tool.errors import ConnectionFailed
from status_tool.vocabulary.ids import as_hex
from status_tool.vocabulary.state_rows import column

SPOOL_SUFFIX = ".jsonl"
GROWING_SUFFIX = ".growing.jsonl"
"""Of a file that a tracker may still append to, or did until it was killed."""
MAX_BYTES = 256 * 1024 * 1024


def read_spool(hdfs: WebHdfs, folder: str, flushed: Collection[int] = ()) -> tuple[tuple[bytes, Cells], ...]:
    """Read all spooled rows; none if the folder does not exist.

    Files that the servers `flushed` still append to are left out: a flush has put into the table what they had then.
    Raises `ConnectionFailed` if the file system does not answer or a file is damaged: rows that may
    hold a head must not be skipped silently.
    """
    try:
        lengths = {entry["pathSuffix"]: int(entry["length"]) for page in hdfs.pages(folder) for entry in page}
    except Refused as refusal:
        if refusal.is_absent:
            return ()
        raise ConnectionFailed(f"cannot list the trackers' spool {folder}: {refusal}") from None
    rows: list[tuple[bytes, Cells]] = []
    servers = set(map(as_hex, flushed))  # once: each server may have a file
    for name, length in sorted(lengths.items()):
        if name.endswith(SPOOL_SUFFIX) and not _is_of(name, servers):
            rows.extend(_read(hdfs, posixpath.join(folder, name), length))
    return tuple(rows)


def _is_of(name: str, servers: Collection[str]) -> bool:
    """Return True if one of the servers, by their ids in hexadecimal, appends to a file."""
    return name.endswith(GROWING_SUFFIX) and name.partition("-")[0] in servers


def _read(hdfs: WebHdfs, path: str, listed: int) -> list[tuple[bytes, Cells]]:
    """Return the rows of a file, which has at least the length that was listed; none if it is gone."""
    try:
        data, _ = hdfs.start_of(path, MAX_BYTES)
    except Refused as refusal:
        if refusal.is_absent:
            # The state table is read after the spool (`gather.snapshot`), so nothing is missed.
            return []  # a tracker has just put it into the table
        raise ConnectionFailed(f"cannot read {path} ({refusal}): run again; if it stays so, move it away") from None
    if len(data) >= MAX_BYTES:
        raise ConnectionFailed(f"{path} has more than {MAX_BYTES:,} bytes: run again when a tracker has emptied it")
    if len(data) < listed:  # as through a proxy that knows no length of HttpFS's answer, and takes a cut one for whole
        raise ConnectionFailed(
            f"{len(data):,} bytes of {path} came, which has {listed:,}: run again; if it stays so, move it away"
        )
    if path.endswith(GROWING_SUFFIX):
        # A tracker may be in the middle of the last line. It acknowledges a request only once the line is written.
        data = data[: data.rfind(b"\n") + 1]
    try:
        return [_row(json.loads(line)) for line in data.splitlines() if line.strip()]
    except (ValueError, KeyError, TypeError) as error:
        raise ConnectionFailed(f"{path} is not a spool file of a tracker ({error}); move it away to continue") from None


def _row(entry: dict[str, Any]) -> tuple[bytes, Cells]:
    # Only names of tables and families come without a time. They never change, so 0 lets a stored cell win.
    cells = {
        column(bytes.fromhex(cell["q"])): (bytes.fromhex(cell["v"]), int(cell.get("ts", 0))) for cell in entry["cells"]
    }
    return bytes.fromhex(entry["row"]), cells
