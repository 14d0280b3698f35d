"""Row keys as limits of ranges: an empty stop means the end of the table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Limit = tuple[int, bytes]


class Interval(NamedTuple):
    """The rows of `[start, stop)`."""

    start: bytes
    stop: bytes

    def intersection(self, start: bytes, stop: bytes) -> Interval | None:
        """What it shares with `[start, stop)`; None where that is nothing."""
        first = max(self.start, start)
        last = min(self.stop, stop, key=limit)
        return Interval(first, last) if (0, first) < limit(last) else None

    def holds(self, start: bytes, stop: bytes) -> bool:
        """Whether all of `[start, stop)` lies in it."""
        return self.start <= start and limit(stop) <= limit(self.stop)


def limit(stop: bytes) -> Limit:
    """A stop key, comparable."""
    return (0, stop) if stop else (1, b"")


def cut(interval: Interval, keys: Iterable[bytes]) -> list[Interval]:
    """The interval, cut at those of the keys that lie in it."""
    inner = sorted({key for key in keys if interval.start < key and (0, key) < limit(interval.stop)})
    starts, stops = [interval.start, *inner], [*inner, interval.stop]
    return [Interval(*pair) for pair in zip(starts, stops, strict=True)]
