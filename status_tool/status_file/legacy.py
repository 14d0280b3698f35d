"""The original tool's status file: one JSON object.

`{"shutdownTime": ms, "hdfsState": {path: "ALGORITHM:hex"}, "hBaseState": {encodedRegion: writeTimeMs}}`
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO, Self

import pyarrow as pa

from status_tool.atomic import atomic_write, check_target
from status_tool.errors import OutputError, StatusFileError
from status_tool.printable import counted, safe
from status_tool.status_file.footer import parse_json, time_ms
from status_tool.status_file.signature import SignKey
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import MASTER, Header
from status_tool.vocabulary.names import is_legacy_name
from status_tool.vocabulary.schema import STATUS_SCHEMA, NewRow, Row
from status_tool.vocabulary.selection import strip_uri
from status_tool.vocabulary.verdicts import Evidence

MAX_JSON_BYTES = 256 << 20
"""The format must be parsed whole; anything bigger belongs in a Parquet status file."""
_BATCH_ROWS = 65_536
_COLUMNS = ["kind", "region", "write_ms", "path", "state", "algorithm", "checksum"]

_CHECKSUM = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]*):((?:[0-9A-Fa-f]{2}){1,64})")


@dataclass(frozen=True, slots=True)
class LegacyStatus:
    """The content of the original's file. `shutdown_ms` is None if it recorded none (0 or absent)."""

    shutdown_ms: int | None
    regions: Mapping[str, int]
    files: Mapping[str, tuple[str, str]]
    """Path without scheme and authority → (algorithm, checksum as hex)."""
    half: str


def read_legacy(file: BinaryIO, path: str | os.PathLike[str]) -> LegacyStatus:
    """Parse the original's JSON; raises `StatusFileError` with what is wrong. `path` is for messages."""
    name = safe(str(path))
    data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise StatusFileError(f"{name} is too big: JSON status files may have {MAX_JSON_BYTES >> 20} MiB")
    try:
        text = data.decode()
        del data  # up to 256 MiB: parsing needs the text alone
        return _status(parse_json(text, MAX_JSON_BYTES))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise StatusFileError(f"{name} is damaged or cut short: no valid JSON at {place}") from None
    except UnicodeDecodeError:
        raise StatusFileError(f"{name} is damaged: it is not UTF-8 text") from None
    except ValueError as error:
        raise StatusFileError(f"{name} is not a valid status file: {safe(str(error), 300)}") from None


def _status(document: Any) -> LegacyStatus:
    if not isinstance(document, dict):
        raise ValueError("its JSON is not an object")
    has_hbase, has_hdfs = "hBaseState" in document, "hdfsState" in document
    if not (has_hbase or has_hdfs):
        raise ValueError("it has neither hBaseState nor hdfsState")
    shutdown = time_ms("shutdownTime", document.get("shutdownTime", 0))
    return LegacyStatus(
        shutdown_ms=shutdown or None,
        regions=_regions(document.get("hBaseState", {})),
        files=_files(document.get("hdfsState", {})),
        # The original records no files if it was given no paths, and HBase always.
        half="both" if has_hbase and document.get("hdfsState") else "hbase" if has_hbase else "hdfs",
    )


def _regions(state: Any) -> dict[str, int]:
    if not isinstance(state, dict):
        raise ValueError("hBaseState is not an object")
    for region, written in state.items():
        if not region:
            raise ValueError("hBaseState has a region without a name")
        _check_text(region)
        time_ms(f"the write time of region {region}", written)
    return state


def _files(state: Any) -> dict[str, tuple[str, str]]:
    if not isinstance(state, dict):
        raise ValueError("hdfsState is not an object")
    files: dict[str, tuple[str, str]] = {}
    for key, value in state.items():
        path = strip_uri(key)
        _check_text(path)
        if not path.startswith("/"):
            raise ValueError(f"hdfsState has a path that is not absolute: {key}")
        checksum = _checksum(path, value)
        # Two URIs may be one path without scheme and authority.
        if files.setdefault(path, checksum) != checksum:
            raise ValueError(f"hdfsState has two different checksums for {path}")
    return files


def _check_text(name: str) -> None:
    """Refuse what JSON can express and UTF-8, and so Parquet, cannot: halves of surrogate pairs."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a name in it is not valid text: {name}") from None


def _checksum(path: str, value: Any) -> tuple[str, str]:
    found = _CHECKSUM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"the checksum of {path} is not ALGORITHM:hex")
    return found[1], found[2].lower()


def legacy_header(status: LegacyStatus, modified_ms: int) -> Header:
    """Return the header for a file last modified at `modified_ms`, taken as the moment of the dump."""
    # The clocks of the servers and of the file may differ: the dump is no earlier than any write in the file.
    dumped = max([modified_ms, *status.regions.values()])
    notices = ["the status file is of the original tool: only last write times are known, no sequence ids"]
    if status.shutdown_ms is None:
        notices.append("the status file records no shutdown time: the time of the file is used instead")
    return Header(
        side=MASTER,
        cluster_id="",
        created_ms=dumped,
        cut_ms=dumped if status.shutdown_ms is None else status.shutdown_ms,
        shutdown_ms=status.shutdown_ms,
        half=status.half,
        evidence=Evidence.TIMESTAMPS.value,
        notices=tuple(notices),
    )


def legacy_rows(status: LegacyStatus) -> Iterator[pa.RecordBatch]:
    """Yield a `stream` row for each region (region and write_ms only) and a `file` row for each file."""
    streams: Iterator[NewRow] = (
        {"kind": "stream", "region": region, "write_ms": written} for region, written in status.regions.items()
    )
    files: Iterator[NewRow] = (
        {"kind": "file", "path": path, "algorithm": algorithm, "checksum": checksum}
        for path, (algorithm, checksum) in status.files.items()
    )
    rows = chain(streams, files)
    while some := list(islice(rows, _BATCH_ROWS)):
        yield pa.RecordBatch.from_pylist(some, STATUS_SCHEMA)


class LegacyWriter:
    """Context manager that writes the original's JSON: highest write times and checksums.

    It takes the same rows as `StatusWriter`; kinds that the format cannot express are skipped. It raises `OutputError`
    instead of leaving out files or streams, as whoever reads the file would not check them.
    Everything is held until the end: the format is for small clusters and old habits.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        self.header = header
        self._unchecked: list[str] = []
        """Files whose checksum the format cannot express: they have none, or it is of an algorithm with marks."""
        self._undated: list[str] = []
        """Regions of streams whose last write is not known, as of a damaged head."""
        self._path = path
        self._regions: dict[str, int] = {}
        self._files: dict[str, str] = {}

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts by the format so far: regions (as streams) and files."""
        held = {"stream": len(self._regions), "file": len(self._files)}
        return {kind: count for kind, count in held.items() if count}

    def __enter__(self) -> Self:
        check_target(self._path)
        # The header may name absent paths already: a long run need not fail at its end.
        self._refuse_unchecked()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            # Once more: the rows are known only now.
            self._refuse_unchecked()
            self._refuse_empty()
            document: dict[str, Any] = {"shutdownTime": self.header.shutdown_ms or 0, "hdfsState": self._files}
            if self.header.half != "hdfs":
                document["hBaseState"] = self._regions
            with atomic_write(self._path) as stream:
                json.dump(document, stream, indent=1)
                stream.write("\n")

    def _refuse_unchecked(self) -> None:
        """Raise `OutputError` if there is a file or stream that the format cannot express."""
        absent = self.header.hdfs_absent
        if absent:
            what = f"{counted(len(absent), 'path')} to check that HDFS does not have ({_listed(absent)})"
        elif self._unchecked:
            what = (
                f"{counted(len(self._unchecked), 'file')} without a plain checksum, as of files that are open, "
                f"unreadable, encrypted, erasure-coded, or listed with two contents ({_listed(self._unchecked)})"
            )
        elif self._undated:
            streams = counted(len(self._undated), "stream")
            what = f"{streams} whose last write is not known (region {_listed(self._undated)})"
        else:
            return
        raise OutputError(
            f"cannot write {safe(str(self._path))}: the original's JSON has no place for {what}; write a Parquet FILE, "
            "with a name that does not end in .json"
        )

    def _refuse_empty(self) -> None:
        """Raise `OutputError` if a half in scope holds nothing, which the format cannot tell from one out of scope."""
        halves = {"hdfs": ("file of HDFS", self._files), "hbase": ("stream of HBase", self._regions)}
        for half, (what, held) in halves.items():
            if self.header.half in (half, "both") and not held:
                other = "hbase" if half == "hdfs" else "hdfs"
                raise OutputError(
                    f"cannot write {safe(str(self._path))}: no {what} was found, and the original's JSON cannot say so;"
                    f" write a Parquet FILE, with a name that does not end in .json, or --only {other}"
                )

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows of any kinds in any order."""
        for row in rows.select(_COLUMNS).to_pylist():
            if row["kind"] == "stream" and row["region"] is not None and row["write_ms"] is not None:
                # The format has one time for a region, which has a stream for each family and server.
                self._regions[row["region"]] = max(row["write_ms"], self._regions.get(row["region"], 0))
            elif row["kind"] == "stream":
                self._undated.append(row["region"] or "unknown")
            elif row["kind"] == "file":
                self._take_file(row)

    def _take_file(self, row: Row) -> None:
        text = f"{row['algorithm']}:{row['checksum']}"
        is_known = row["algorithm"] is not None and row["checksum"] is not None and row["state"] is None
        if not (is_known and _CHECKSUM.fullmatch(text)) or self._files.setdefault(row["path"], text) != text:
            self._unchecked.append(row["path"])


def _listed(names: Sequence[str]) -> str:
    return f"{safe(names[0])}{', …' if len(names) > 1 else ''}"


def open_writer(
    path: str | os.PathLike[str], header: Header, key: SignKey | None = None
) -> StatusWriter | LegacyWriter:
    """Return the writer for `path`: the original's JSON for a name that ends in `.json`, else Parquet.

    With a `key` the file is signed, which JSON cannot be.
    """
    return LegacyWriter(path, header) if is_legacy_name(path) else StatusWriter(path, header, key)
