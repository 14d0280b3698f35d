"""Row keys as limits of ranges: an empty stop means the end of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

Limit = tuple[int, bytes]


class Interval(NamedTuple):
    """The rows of `[start, stop)`."""

    start: bytes
    stop: bytes

    def intersection(self, start: bytes, stop: bytes) -> Interval | None:
        """Return the intersection with `[start, stop)`; None if it is empty."""
        first = max(self.start, start)
        last = min(self.stop, stop, key=limit)
        return Interval(first, last) if (0, first) < limit(last) else None

    def holds(self, start: bytes, stop: bytes) -> bool:
        """Return True if all of `[start, stop)` lies in the interval."""
        return self.start <= start and limit(stop) <= limit(self.stop)


class TableRange(NamedTuple):
    """An interval of a table."""

    table: str
    interval: Interval


def limit(stop: bytes) -> Limit:
    """Return a stop key in a comparable form: the empty one is the last."""
    return (0, stop) if stop else (1, b"")


def chunks(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield the names, at most so many at a time."""
    return (names[first : first + size] for first in range(0, len(names), size))


def tiles(tables: Iterable[str], starts: Iterable[tuple[str, bytes]]) -> dict[int, TableRange]:
    """Cut the whole key range of each table at the region starts. Returns numbered ranges."""
    inner: dict[str, set[bytes]] = {table: set() for table in tables}
    for table, start in starts:
        inner[table].add(start)
    return dict(
        enumerate(TableRange(table, one) for table, keys in inner.items() for one in cut(Interval(b"", b""), keys))
    )


def spans(parts: Iterable[TableRange]) -> dict[str, list[Interval]]:
    """Return disjoint intervals in key order, by table, that together hold the rows of all parts."""
    found: dict[str, list[Interval]] = {}
    for table, interval in sorted(parts):
        own = found.setdefault(table, [])
        if own and (0, interval.start) < limit(own[-1].stop):
            own[-1] = Interval(own[-1].start, max(own[-1].stop, interval.stop, key=limit))
        else:
            own.append(interval)
    return found


def cut(interval: Interval, keys: Iterable[bytes]) -> list[Interval]:
    """Return the interval, cut at those of `keys` that lie in it."""
    inner = sorted({key for key in keys if interval.start < key and (0, key) < limit(interval.stop)})
    starts, stops = [interval.start, *inner], [*inner, interval.stop]
    return [Interval(*pair) for pair in zip(starts, stops, strict=True)]
