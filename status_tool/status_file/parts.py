"""A status file in parts: between two files of one cluster, columns that have not changed are the same bytes.

Parquet stores each column of a row group apart, and rows are sorted. So regions, keys and origins yield the same bytes
in each file while only sequence ids and times move.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

LEAST_BYTES = 4 << 10
"""A smaller column shares a part with its neighbours: it costs less than a part of its own."""
SHARED_BYTES = 8 * LEAST_BYTES


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
