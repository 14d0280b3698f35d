"""Answers of a scanner as rows of the status schema, column by column: a few calls a page instead of many a row."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from sys import byteorder
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.clients.thrift import Cells, StoredRow, cells_of
from status_tool.sources import codec
from status_tool.vocabulary.state_rows import column

_IDS = 32  # hex digits of origin and via, with which the key of a stream's row ends


def head_batches(pages: Iterable[Sequence[StoredRow]]) -> Iterator[pa.RecordBatch]:
    """Yield what `codec.heads` has of the rows."""
    for page in pages:
        keys = [row.row for row in page]
        # A page with a key of another form, as that of a mark (`codec.is_mark`), is read row by row.
        streams = _streams(keys)
        if streams is None:
            yield from codec.batches(codec.heads(cells_of([page])))
            continue
        columns = [row.columns for row in page]
        found = {
            name: _READ[read](_values(columns, column(qualifier)))
            for name, (read, qualifier) in codec.HEAD_COLUMNS.items()
        }
        yield codec.column_batch({"kind": pa.repeat("stream", len(page)), **streams, **found}, len(page))


def held(batches: Iterable[pa.RecordBatch], holds: Callable[[str | None], bool]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some tables."""
    for batch in batches:
        tables = batch.column("table")
        wanted = {table: holds(table) for table in pc.unique(tables).to_pylist()}
        if all(wanted.values()):
            yield batch
        elif any(wanted.values()):
            yield batch.filter(_is_one_of(tables, [table for table in wanted if wanted[table]]))


def _is_one_of(tables: pa.Array, wanted: Collection[str | None]) -> pa.Array:
    return pc.is_in(tables, value_set=pa.array(wanted, tables.type))


def _streams(keys: Sequence[bytes]) -> Mapping[str, pa.Array] | None:
    """Return region, origin and via of keys that are all alike, as `codec.stream_key` has them; None of others."""
    length = len(keys[0])
    ids = b"".join([key[-_IDS:] for key in keys])
    is_alike = length > 1 + _IDS and all(len(key) == length for key in keys)
    # `bytes.fromhex` skips whitespace, and `cast` rejects bytes that `codec.stream_key` replaces.
    if not is_alike or not ids.isalnum() or not b"".join(keys).isascii():
        return None
    try:
        numbers = _int64s(bytes.fromhex(ids.decode()))
    except ValueError:
        return None
    regions = pc.binary_slice(pa.array(keys, pa.binary()), 1, length - _IDS).cast(pa.string())
    return {"region": regions, "origin": _array(numbers[0::2]), "via": _array(numbers[1::2])}


def _values(rows: Sequence[Mapping[bytes, Any]], name: bytes) -> list[bytes | None]:
    try:
        return [row[name].value for row in rows]
    except KeyError:
        return [row[name].value if name in row else None for row in rows]


def _numbers(values: Sequence[bytes | None]) -> pa.Array:
    """Read them as `codec.number` does."""
    if all(value is not None and len(value) == 8 for value in values):
        return _array(_int64s(b"".join(values)))  # type: ignore[arg-type]
    known = (value if value is not None and len(value) == 8 else None for value in values)
    return pa.array([None if one is None else int.from_bytes(one, "big", signed=True) for one in known], pa.int64())


def _texts(values: Sequence[bytes | None]) -> pa.Array:
    """Read them as `codec.text` does."""
    try:
        return pa.array(values, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        # Arrow rejects bytes that are not UTF-8, and one damaged name must not end the run.
        return pa.array([None if value is None else value.decode(errors="replace") for value in values], pa.string())


def _raws(values: Sequence[bytes | None]) -> pa.Array:
    """Read them as `codec.raw` does."""
    return pa.array(values, pa.binary())


def _edge_keys(values: Sequence[bytes | None]) -> pa.Array:
    """Read them as `codec.edge_key` does."""
    return pa.array([value or b"" for value in values], pa.binary())


_READ: dict[Callable[[Cells, bytes], Any], Callable[[Sequence[bytes | None]], pa.Array]] = {
    codec.number: _numbers,
    codec.text: _texts,
    codec.raw: _raws,
    codec.edge_key: _edge_keys,
}


def _int64s(data: bytes) -> array[int]:
    numbers = array("q", data)
    if byteorder == "little":
        numbers.byteswap()
    return numbers


def _array(numbers: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
