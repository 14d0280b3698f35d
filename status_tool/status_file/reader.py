"""Opens status files and rejects anything else with one clear line.

Nothing in the file is expanded before its digest has been checked, and no size it states is trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import struct
import weakref
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from status_tool.errors import OutputError, StatusFileError
from status_tool.printable import safe
from status_tool.status_file.footer import (
    DIGEST_KEY,
    DIGEST_PATTERN,
    HEADER_KEY,
    NO_DIGEST,
    NewerFormat,
    decode_header,
    header_in,
)
from status_tool.status_file.legacy import legacy_header, legacy_rows, read_legacy
from status_tool.status_file.signature import SIGNATURE_PATTERN, SignKey
from status_tool.status_file.writer import StatusWriter
from status_tool.temporary import held_folder, let_go
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import FORMAT_VERSION, STATUS_SCHEMA, Row

_MAGIC = b"PAR1"
_CHUNK_BYTES = 1 << 20
_MAX_FOOTER_BYTES = 64 << 20
_MAX_GROUP_BYTES = 1 << 30
_MAX_GROUP_ROWS = 16 << 20
_BATCH_ROWS = 16_384
# Spark expands globs, skips names that start with `.` or `_`, and stumbles over colons:
# a file with such a name is given to it by a link with a plain one.
_PLAIN_PATH = re.compile(r"/(?:[A-Za-z0-9._+-]+/)*[A-Za-z0-9][A-Za-z0-9._+-]*")
# MemoryError: a damaged file may state sizes that no memory holds.
_PARQUET_ERRORS = (pa.ArrowException, OSError, ValueError, MemoryError)


@dataclass(slots=True, weakref_slot=True)
class StatusFile:
    """A status file that has been checked. Close it (or use it as a context manager) when done."""

    path: Path
    """Path that the user named."""
    parquet_path: Path
    """Path that Spark reads: `path` itself, or something temporary that stands for it."""
    header: Header
    counts: Mapping[str, int]
    """Rows by kind; kinds without rows are absent."""
    is_json: bool = False
    _remove: weakref.finalize[..., StatusFile] | None = field(default=None, repr=False)
    _checked: tuple[int, ...] | None = field(default=None, repr=False)
    """What tells the file that was checked from any other by its path; None: nobody else knows the path."""

    def rows(self, kinds: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these kinds (default: all) in batches; meant for kinds with few rows.

        Raises `StatusFileError` if the content turns out not to be readable, and as `refuse_another` does.
        """
        self.refuse_another()
        try:
            with pq.ParquetFile(self.parquet_path) as parquet:
                # It was opened by its path, at which another file may lie by now.
                self.refuse_another()
                groups = _groups(parquet, kinds)
                for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=groups, use_threads=False):
                    # The digest does not vouch for the writer, and Arrow reads text that is not UTF-8.
                    batch.validate(full=True)
                    if kinds is not None:
                        wanted = pa.array(sorted(kinds), pa.string())
                        batch = batch.filter(pc.is_in(batch.column("kind"), value_set=wanted))
                    if batch.num_rows:
                        yield batch
        except _PARQUET_ERRORS as error:
            raise _refusal(self.path, "has been altered or damaged: its rows cannot be read") from error

    def rows_of(self, *kinds: str) -> Iterator[Row]:
        """Yield the rows of some kinds one by one, as `rows` reads them."""
        for batch in self.rows(kinds):
            yield from batch.to_pylist()

    def refuse_another(self) -> None:
        """Raise `StatusFileError` if another file has taken its place: rows of two files would pass for those of one.

        Whoever has read rows by its path asks afterwards.
        """
        try:
            found = None if self._checked is None else _state_of(os.stat(self.parquet_path))
        except OSError as error:
            raise _refusal(self.path, f"cannot be read any more: {error.strerror}") from error
        if found != self._checked:
            raise _refusal(self.path, "was replaced or changed while it was read: run again")

    def close(self) -> None:
        """Remove the temporary copy, if there is one."""
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_status(
    path: str | os.PathLike[str],
    require_side: str | None = None,
    key: SignKey | None = None,
    *,
    witnessed: bool = False,
) -> StatusFile:
    """Check the whole file and return its header and counts.

    `require_side` (`master` or `slave`) refuses the other side's file; with a `key`, only a file signed with it
    is accepted. A witness's file is refused unless the caller is `witnessed`: ready for one. Raises `StatusFileError`.
    """
    with _regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise _refusal(path, "is empty")
        if not _looks_like_json(file):
            status = _open_parquet(file, path, size, key)
        elif key is None:
            status = _open_json(file, path)
        else:
            raise _refusal(path, "is the original tool's JSON, which cannot be signed: a signed status is needed here")
    if require_side is not None and status.header.side != require_side:
        status.close()
        raise _refusal(path, f"is a {status.header.side}'s status, but a {require_side}'s is needed here")
    if status.header.witnesses and not witnessed:
        status.close()
        raise _refusal(path, "comes from a witness: only `run -i FILE` on the slave reads it, without --follow")
    return status


def _state_of(found: os.stat_result) -> tuple[int, ...]:
    """Without the inode, of which some file systems have another number later."""
    return found.st_size, found.st_mtime_ns


def created_ms(path: str | os.PathLike[str]) -> int | None:
    """Return when a status file says that it was written; None if it does not say so.

    Reads its footer alone and does not check the file's digest: enough to choose the file that `open_status` checks.
    """
    try:
        with _regular(path) as file:
            header = header_in(_footer(file, path, os.fstat(file.fileno()).st_size)[1])
    except StatusFileError:
        return None
    return None if header is None else header.created_ms


def _refusal(path: str | os.PathLike[str], reason: str) -> StatusFileError:
    return StatusFileError(f"{safe(str(path))} {reason}")


@contextlib.contextmanager
def _regular(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file; anything else could block forever or never end."""
    name = safe(str(path))
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise _refusal(path, "is a folder, not a status file")
        if not stat.S_ISREG(mode):
            raise _refusal(path, "is not a regular file")
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise StatusFileError(f"there is no status file {name}") from None
    except OSError as error:
        raise StatusFileError(f"cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # a path with a NUL character
        raise StatusFileError(f"cannot read {name}: {safe(str(error))}") from error


def _looks_like_json(file: BinaryIO) -> bool:
    start = file.read(4096).lstrip()
    file.seek(0)
    return start.startswith(b"{")


def _open_json(file: BinaryIO, path: str | os.PathLike[str]) -> StatusFile:
    status = read_legacy(file, path)
    header = legacy_header(status, os.fstat(file.fileno()).st_mtime_ns // 1_000_000)
    with _kept_folder() as kept:
        copy = kept[0] / "status.parquet"
        with StatusWriter(copy, header) as writer:
            for batch in legacy_rows(status):
                writer.write(batch)
        return _temporary(StatusFile(Path(path), copy, header, writer.counts, is_json=True), kept)


@contextlib.contextmanager
def _kept_folder() -> Iterator[tuple[Path, int]]:
    """Create a folder that outlives the block, unless the block fails, and its lock."""
    try:
        kept = held_folder()
    except OSError as error:
        raise OutputError(f"cannot create a temporary folder: {error.strerror or error}") from error
    try:
        yield kept
    except BaseException:
        let_go(*kept)
        raise


def _temporary(status: StatusFile, kept: tuple[Path, int]) -> StatusFile:
    status._remove = weakref.finalize(status, let_go, *kept)
    return status


def _open_parquet(file: BinaryIO, path: str | os.PathLike[str], size: int, key: SignKey | None) -> StatusFile:
    # Before the digest is computed: `refuse_another` then sees a change that comes during that as well.
    checked = _state_of(os.fstat(file.fileno()))
    footer_start, footer = _footer(file, path, size)
    found = list(DIGEST_PATTERN.finditer(footer))
    if len(found) == 1:
        place = footer_start + found[0].start(1)
        if _digest(file, place) != found[0][1]:
            raise _refusal(path, "has been altered or damaged: its content does not match its digest")
        if key is not None:
            _check_signature(file, path, footer_start, footer, place, key)
    header, counts = _describe(file, path, digest=found[0][1] if len(found) == 1 else None)
    plain = Path(os.path.abspath(path))
    if _PLAIN_PATH.fullmatch(str(plain)):
        return StatusFile(Path(path), plain, header, counts, _checked=checked)
    with _kept_folder() as kept:
        link = kept[0] / "status.parquet"
        link.symlink_to(plain)
        return _temporary(StatusFile(Path(path), link, header, counts, _checked=checked), kept)


def _check_signature(
    file: BinaryIO, path: str | os.PathLike[str], footer_start: int, footer: bytes, digest_place: int, key: SignKey
) -> None:
    signed = list(SIGNATURE_PATTERN.finditer(footer))
    if len(signed) != 1:
        raise _refusal(path, "is not signed: write it with --sign-key FILE, or leave --sign-key out here")
    if not key.has_signed(_digest(file, digest_place, footer_start + signed[0].start(1)), signed[0][1]):
        raise _refusal(path, "was not signed with the key of --sign-key: another key wrote it, or somebody changed it")


def _footer(file: BinaryIO, path: str | os.PathLike[str], size: int) -> tuple[int, bytes]:
    """Return where the Parquet footer starts, and its bytes."""
    if file.read(4) != _MAGIC:
        raise _refusal(path, "is not a status file")
    # `PAR1`, the footer's length, and `PAR1` once more.
    if size < 12:
        raise _refusal(path, "is truncated: copy it again")
    file.seek(size - 8)
    length, magic = struct.unpack("<I4s", file.read(8))
    if magic != _MAGIC:
        raise _refusal(path, "is truncated: copy it again")
    if length > min(size - 12, _MAX_FOOTER_BYTES):
        raise _refusal(path, "has been altered or damaged: its footer has an impossible length")
    start = size - 8 - length
    file.seek(start)
    return start, file.read(length)


def _digest(file: BinaryIO, *places: int) -> bytes:
    """Return the SHA-256 (hex) of the file with the 64 characters at each of `places` read as zeros."""
    digest = hashlib.sha256()
    file.seek(0)
    for place in sorted(places):
        remaining = place - file.tell()
        while remaining > 0 and (chunk := file.read(min(_CHUNK_BYTES, remaining))):
            digest.update(chunk)
            remaining -= len(chunk)
        digest.update(NO_DIGEST)
        file.seek(place + len(NO_DIGEST))
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest().encode()


def _describe(file: BinaryIO, path: str | os.PathLike[str], digest: bytes | None) -> tuple[Header, dict[str, int]]:
    """Return header and counts from the footer; `digest` is None if none was found in it."""
    file.seek(0)
    try:
        parquet = pq.ParquetFile(file)
        metadata, entries = parquet.metadata, parquet.metadata.metadata or {}
        schema = parquet.schema_arrow
    except _PARQUET_ERRORS as error:
        raise _refusal(path, "has been altered or damaged: its footer cannot be read") from error
    if HEADER_KEY not in entries:
        raise _refusal(path, "is not a status file: another program wrote this Parquet file")
    try:
        header, counts = decode_header(entries[HEADER_KEY])
    except NewerFormat as error:
        raise _refusal(
            path,
            f"has format version {error.version}, this status-tool reads up to {FORMAT_VERSION}: "
            "upgrade status-tool here",
        ) from None
    except ValueError as error:
        raise _refusal(path, f"is not a valid status file: {safe(str(error), 300)}") from None
    # A file without a digest comes this far: one of a newer format, or another program's, is refused as such. The bytes
    # that `DIGEST_PATTERN` found must be those of the entry.
    if digest is None or entries.get(DIGEST_KEY) != digest:
        raise _refusal(path, "has been altered or damaged: it has no valid digest")
    _check_layout(metadata, schema, counts, path)
    return header, counts


def _check_layout(
    metadata: pq.FileMetaData, schema: pa.Schema, counts: Mapping[str, int], path: str | os.PathLike[str]
) -> None:
    if not schema.equals(STATUS_SCHEMA):
        raise _refusal(path, "is not a valid status file: its columns are not those of a status file")
    if metadata.num_rows != sum(counts.values()):
        raise _refusal(path, "is not a valid status file: its row counts do not add up")
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        if group.num_rows > _MAX_GROUP_ROWS or group.total_byte_size > _MAX_GROUP_BYTES:
            raise _refusal(path, "is not a valid status file: a part of it is bigger than any real one")


def _groups(parquet: pq.ParquetFile, kinds: Collection[str] | None) -> list[int]:
    """Return the row groups that hold rows of `kinds`; the writer puts one kind into each.

    By the first value of each, not by statistics: Arrow aborts the process on some damaged ones.
    """
    groups = range(parquet.metadata.num_row_groups)
    return [group for group in groups if kinds is None or _kind_of(parquet, group) in kinds]


def _kind_of(parquet: pq.ParquetFile, group: int) -> str | None:
    for batch in parquet.iter_batches(1, row_groups=[group], columns=["kind"], use_threads=False):
        return str(batch.column(0)[0].as_py())
    return None
