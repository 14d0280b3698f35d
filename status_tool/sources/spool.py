"""Rows that trackers spooled to the cluster's file system because the state table was out of reach.

The tool reads them as part of the table and leaves the files to the trackers, which put the rows into
the table at their next flush and then delete them (docs/formats.md, Spool).
"""

from __future__ import annotations

import json
import posixpath
from typing import Any

import requests
from hdfs import Client, HdfsError

from status_tool.errors import ConnectionFailed
from status_tool.sources.codec import column
from status_tool.sources.thrift import Cells

SUFFIX = ".jsonl"
MAX_BYTES = 256 * 1024 * 1024


def read_spool(hdfs: Client, folder: str) -> tuple[tuple[bytes, Cells], ...]:
    """All spooled rows; none where the folder does not exist.

    Raises `ConnectionFailed` where the file system does not answer or a file is damaged: rows that may
    hold a head must not be passed over in silence.
    """
    try:
        names = hdfs.list(folder)
    except HdfsError as error:
        if error.exception == "FileNotFoundException" or "does not exist" in str(error.message):
            return ()
        raise ConnectionFailed(f"cannot list the trackers' spool {folder}: {error.message.splitlines()[0]}") from None
    except requests.RequestException as error:
        raise ConnectionFailed(f"cannot list the trackers' spool {folder}: {type(error).__name__}") from None
    rows: list[tuple[bytes, Cells]] = []
    for name in sorted(names):
        if name.endswith(SUFFIX):
            rows.extend(_read(hdfs, posixpath.join(folder, name)))
    return tuple(rows)


def _read(hdfs: Client, path: str) -> list[tuple[bytes, Cells]]:
    try:
        with hdfs.read(path) as stream:
            data = stream.read(MAX_BYTES)
    except HdfsError as error:
        if error.exception == "FileNotFoundException":
            return []  # a tracker has just put it into the table
        raise ConnectionFailed(f"cannot read {path}: {error.message.splitlines()[0]}") from None
    except requests.RequestException as error:
        raise ConnectionFailed(f"cannot read {path}: {type(error).__name__}") from None
    try:
        return [_row(json.loads(line)) for line in data.splitlines() if line.strip()]
    except (ValueError, KeyError, TypeError) as error:
        raise ConnectionFailed(f"{path} is no spool file of a tracker ({error}); move it away to go on") from None


def _row(entry: dict[str, Any]) -> tuple[bytes, Cells]:
    cells = {
        column(bytes.fromhex(cell["q"])): (bytes.fromhex(cell["v"]), int(cell.get("ts", 0))) for cell in entry["cells"]
    }
    return bytes.fromhex(entry["row"]), cells
