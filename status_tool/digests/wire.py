"""Requests and answers as bytes (docs/formats.md, "Row digests")."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from status_tool.digests.digest import Family, Sums

VERSION = 3
# A tracker silently drops a request with more than 1,000 tables, or a page of more than 500 ranges (`DigestRequest`).
REQUEST_TABLES = 500
PAGE_RANGES = 500
_SUMS = struct.Struct(">16sq16sqqqq")


class DamagedAnswer(ValueError):
    """A region server's answer cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of rows of one region, as `hbase:meta` knew it. `stop` is exclusive; empty: to the end of the table."""

    part: int
    region: str
    open_seq: int
    start: bytes
    stop: bytes


@dataclass(frozen=True, slots=True)
class Bucket:
    """Sums over `[start, stop)`."""

    start: bytes
    stop: bytes
    sums: Sums


@dataclass(frozen=True, slots=True)
class Answer:
    """A slice of a range that was digested at one read point; or `refused` with the reason, and no buckets."""

    part: int
    region: str
    open_seq: int
    read_point: int
    buckets: tuple[Bucket, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Rows that a request covers, and how they are summed."""

    tables: Mapping[str, Mapping[bytes, Family]]
    """At most `REQUEST_TABLES`."""
    key: bytes
    """16 bytes, of the hash."""
    cut_ms: int
    rate: int = 0
    """Bytes a second at most; 0: as the servers are configured."""
    sample_rows: int = 0
    """If positive, of each range only so many rows are digested, from a random key on."""


def request(asked: Query) -> bytes:
    """Encode a query as column `d` of a request's row."""
    head = struct.pack(">b16sqqii", VERSION, asked.key, asked.cut_ms, asked.rate, asked.sample_rows, len(asked.tables))
    parts = [head]
    for table, families in sorted(asked.tables.items()):
        parts += [_field(table.encode()), struct.pack(">i", len(families))]
        for name, family in sorted(families.items()):
            parts += [_field(name), struct.pack(">iq", family.versions, family.oldest)]
    return b"".join(parts)


def page(ranges: Sequence[Range]) -> bytes:
    """Encode at most `PAGE_RANGES` ranges as column `r` of a page."""
    parts = [struct.pack(">bi", VERSION, len(ranges))]
    for one in ranges:
        parts += [struct.pack(">i", one.part), _field(one.region.encode()), struct.pack(">q", one.open_seq)]
        parts += [_field(one.start), _field(one.stop)]
    return b"".join(parts)


def answers(data: bytes) -> list[Answer]:
    """Decode column `a` of a row of answers. Raises `DamagedAnswer`."""
    reader = _Reader(data)
    if reader.number("b") != VERSION:
        raise DamagedAnswer("answers of another version")
    found = [_answer(reader) for _ in range(reader.number("i"))]
    if not reader.at_end:
        raise DamagedAnswer("more than answers")
    return found


def _answer(reader: _Reader) -> Answer:
    # No region has a name with U+FFFD, so an answer with a damaged name counts for nothing.
    part, region = reader.number("i"), reader.field().decode("ascii", errors="replace")
    open_seq, read_point = reader.number("q"), reader.number("q")
    if reader.number("b"):
        reason = reader.field().decode(errors="replace")
        return Answer(part, region, open_seq, read_point, refused=reason)
    start = reader.field()
    return Answer(part, region, open_seq, read_point, tuple(_buckets(reader, start)))


def _buckets(reader: _Reader, start: bytes) -> Iterable[Bucket]:
    for _ in range(reader.number("i")):
        stop = reader.field()
        yield Bucket(start, stop, reader.sums())
        start = stop


def _field(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        # A damaged length may be negative, and a slice would accept it.
        if not 0 <= size <= len(self._data) - self._at:
            raise DamagedAnswer("an answer ends too early")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, kind: str) -> int:
        (value,) = struct.unpack(f">{kind}", self.take(struct.calcsize(f">{kind}")))
        return int(value)

    def field(self) -> bytes:
        return self.take(self.number("i"))

    def sums(self) -> Sums:
        up_to, cells_up_to, beyond, cells_beyond, rows, size, expiring = _SUMS.unpack(self.take(_SUMS.size))
        numbers = (int.from_bytes(up_to, "big"), cells_up_to, int.from_bytes(beyond, "big"), cells_beyond)
        return Sums(*numbers, rows, size, expiring)
