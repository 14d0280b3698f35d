"""Writes a status file as a stream: memory use does not depend on the number of rows. Cuts files into parts.

Parquet stores each column of a row group apart, and rows are sorted. So regions, keys and origins yield the same bytes
in each file of one cluster while only sequence ids and times move: parts that have not changed are the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from status_tool.atomic import AtomicFile, check_target
from status_tool.errors import OutputError
from status_tool.status_file.footer import DIGEST_KEY, DIGEST_PATTERN, HEADER_KEY, NO_DIGEST, encode_header
from status_tool.status_file.signature import SIGNATURE_KEY, SIGNATURE_PATTERN, SignKey
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import KINDS, STATUS_SCHEMA

ROW_GROUP_ROWS = 131_072
ROW_GROUP_BYTES = 64 << 20
BUFFERED_BYTES = 128 << 20
"""Bound on what all kinds together hold back; the fullest kind is written when it is exceeded."""
_READ_BYTES = 1 << 20
LEAST_BYTES = 4 << 10
"""A smaller column shares a part with its neighbours: it costs less than a part of its own."""
SHARED_BYTES = 8 * LEAST_BYTES

# Few distinct values in a row group: elsewhere a dictionary would be built only to be thrown away.
_DICTIONARY = ["kind", "table", "origin", "via", "via_ids", "state", "server", "role", "algorithm"]

_SORTED = frozenset({"region", "fact", "stream"})
ORDER = [(name, "ascending") for name in ("table", "start_key", "region", "origin", "via", "family")]


class StatusWriter:
    """Context manager that writes rows of `STATUS_SCHEMA` to a status file.

    `header` may be replaced until the block ends. Only a block that ends well puts the file in
    place; any exception leaves what was there before, and nothing else. Raises `OutputError`
    where the file cannot be written, `ValueError` for rows that do not fit the schema.
    """

    def __init__(self, path: str | os.PathLike[str], header: Header, key: SignKey | None = None) -> None:
        self.header = header
        self._path = path
        self._key = key
        self._buffers = {kind: _Buffer() for kind in KINDS}
        self._counts = dict.fromkeys(KINDS, 0)
        self._output: _ParquetOutput | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Rows accepted so far, by kind."""
        return {kind: count for kind, count in self._counts.items() if count}

    def __enter__(self) -> Self:
        check_target(self._path)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            if self._output is not None:
                self._output.discard()
            self._buffers.clear()

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Take rows of any kinds in any order."""
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
            for kind, part in _split_kinds(batch):
                self._take(kind, part)

    def _take(self, kind: str, batch: pa.RecordBatch) -> None:
        self._counts[kind] += batch.num_rows
        for part in _slices(batch):
            self._buffers[kind].add(part)
            if self._buffers[kind].full:
                self._flush(kind)
        if sum(buffer.bytes for buffer in self._buffers.values()) > BUFFERED_BYTES:
            self._flush(max(self._buffers, key=lambda kind: self._buffers[kind].bytes))

    def _flush(self, kind: str) -> None:
        table = self._buffers[kind].drain()
        if table.num_rows:
            self._opened().write_group(table.sort_by(ORDER) if kind in _SORTED else table)

    def _opened(self) -> _ParquetOutput:
        if self._output is None:
            self._output = _ParquetOutput(self._path)
        return self._output

    def _finish(self) -> None:
        header = encode_header(self.header, self.counts)
        for kind in KINDS:
            self._flush(kind)
        self._opened().finish(header, self._key)


class _Buffer:
    """Rows of one kind that wait for a row group of a decent size."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.rows = 0
        self.bytes = 0

    @property
    def full(self) -> bool:
        return self.rows >= ROW_GROUP_ROWS or self.bytes >= ROW_GROUP_BYTES

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        self._batches.append(batch)

    def drain(self) -> pa.Table:
        table = pa.Table.from_batches(self._batches, schema=STATUS_SCHEMA)
        self._batches, self.rows, self.bytes = [], 0, 0
        return table


class _ParquetOutput:
    """The Parquet file under its temporary name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._file = AtomicFile(path)
        self._sink = _Sink(self._file)
        self._writer = pq.ParquetWriter(
            self._sink,
            STATUS_SCHEMA,
            compression="zstd",
            use_dictionary=_DICTIONARY,
            write_statistics=["kind"],  # others could hold text like a digest's place (`DIGEST_PATTERN`)
            store_schema=False,
        )

    def write_group(self, table: pa.Table) -> None:
        self._guarded(lambda: self._writer.write_table(table, row_group_size=table.num_rows))

    def finish(self, header: str, key: SignKey | None) -> None:
        # The places for signature and digest must come last of all that is written: they are filled in afterwards.
        places = {SIGNATURE_KEY: NO_DIGEST} if key else {}
        self._writer.add_key_value_metadata({HEADER_KEY: header.encode(), **places, DIGEST_KEY: NO_DIGEST})
        self._guarded(self._close)
        if key is not None:
            self._file.patch(self._place(SIGNATURE_PATTERN, "signature"), key.sign(self._digest()))
        # The digest covers the signature.
        self._file.patch(self._place(DIGEST_PATTERN, "digest"), self._digest())
        self._file.commit()

    def _digest(self) -> bytes:
        """Return the digest (hex) of the file's current content."""
        digest = hashlib.sha256()
        for offset in range(0, self._file.size(), _READ_BYTES):
            digest.update(self._file.read_at(offset, _READ_BYTES))
        return digest.hexdigest().encode()

    def _close(self) -> None:
        self._writer.close()
        self._sink.flush()

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except pa.ArrowException as error:
            raise OutputError(f"cannot write {self._path}: {error}") from error

    def _place(self, pattern: re.Pattern[bytes], what: str) -> int:
        """Return the offset of the 64 characters of a signature or digest."""
        size = self._file.size()
        footer_bytes = int.from_bytes(self._file.read_at(size - 8, 4), "little")
        start = size - 8 - footer_bytes
        found = list(pattern.finditer(self._file.read_at(start, footer_bytes)))
        if len(found) != 1:
            raise OutputError(f"cannot write {self._path}: its footer has {len(found)} places for a {what}")
        return start + found[0].start(1)

    def discard(self) -> None:
        """Remove the temporary file; nothing happens after `finish`."""
        self._file.close()
        self._sink.dead = True


class _Sink(io.BufferedIOBase):
    """Passes bytes on; once `dead`, it swallows what Arrow's destructors write."""

    mode = "wb"

    def __init__(self, file: AtomicFile) -> None:
        super().__init__()
        self._buffered = io.BufferedWriter(file, 1 << 20)
        self.dead = False

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        if not self.dead:
            self._buffered.write(view)
        return view.nbytes

    def flush(self) -> None:
        if not self.dead:
            self._buffered.flush()


def _split_kinds(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each kind in `batch`; ValueError for an unknown kind."""
    kinds = pc.unique(batch.column("kind")).to_pylist()
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"no kind of row of a status file: {kind!r}")
        alone = len(kinds) == 1
        yield kind, batch if alone else batch.filter(pc.equal(batch.column("kind"), kind))


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a big batch so that no row group gets bigger than the bounds."""
    rows = batch.num_rows
    step = min(ROW_GROUP_ROWS, max(1, rows * ROW_GROUP_BYTES // max(batch.nbytes, 1)))
    for start in range(0, rows, step):
        yield batch.slice(start, step)


# -- parts of a whole file


def parts_of(path: Path, most: int) -> Iterator[bytes]:
    """Yield the file in parts of at most `most` bytes, which make it up one after another."""
    content = path.read_bytes()
    start = 0
    for left, right in _columns(path):
        if right - left >= LEAST_BYTES:
            yield from _cut(content[start:left], most)
            yield from _cut(content[left:right], most)
            start = right
        elif right - start >= SHARED_BYTES:
            yield from _cut(content[start:right], most)
            start = right
    yield from _cut(content[start:], most)


def _columns(path: Path) -> Iterator[tuple[int, int]]:
    """Yield the start and end (bytes) of each column of each row group, in the order of the file."""
    metadata: Any = pq.read_metadata(path)
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            pages = (column.dictionary_page_offset, column.data_page_offset)
            # A column's dictionary, if it has one, stands before its data.
            start = min(offset for offset in pages if offset is not None)
            yield start, start + column.total_compressed_size


def _cut(content: bytes, most: int) -> Iterator[bytes]:
    yield from (content[start : start + most] for start in range(0, len(content), most))
