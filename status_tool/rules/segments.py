"""The algebra of segments: what part of a stream has arrived, and where the holes are.

A segment `(prev, seq]` says that the entry `seq` and everything of its stream down to `prev` (exclusive)
has been applied. Segments are facts, so only their union counts: order, duplicates and overlaps do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

SINCE_MARGIN_MS = 1000
"""Threads of one server may append in another order than that of their write times. So the first entry
after a hole bounds the write times inside the hole only up to this much."""


class Segment(NamedTuple):
    """`(prev, seq]` with the write times of its first and last entry, and when it was recorded (epoch ms)."""

    prev: int
    seq: int
    first_ms: int | None = None
    write_ms: int | None = None
    recorded_ms: int | None = None
    prev_ms: int | None = None
    """The highest write time of the stream up to `prev`; None if the tracker did not record it yet."""

    @property
    def valid(self) -> bool:
        """Return True if the segment is valid. Others are ignored."""
        return 0 <= self.prev < self.seq


@dataclass(frozen=True, slots=True)
class Hole:
    """`(from_seq, to_seq]` is not covered although something later has arrived."""

    from_seq: int
    to_seq: int
    written_from_ms: int | None
    """Highest write time that arrived before the hole; None when it starts at 0."""
    written_to_ms: int | None
    """The highest write time in the hole; where that is not known, that of the first entry after it."""
    recorded_ms: int | None
    """When the segment after the hole was recorded."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Range that a stream's segments cover together, with holes in the accepted baseline bridged."""

    prefix_end: int
    """`(0, prefix_end]`, as far as it is in scope, has arrived; 0 when nothing that starts at 0 has.

    Nothing beyond the head is in scope: there the prefix may pass over a hole."""
    prefix_ms: int | None
    """Highest write time within the prefix."""
    reach: int
    """Highest sequence id that has arrived, holes or not; 0: none."""
    reach_ms: int | None
    holes: tuple[Hole, ...]
    """Holes that begin below the head and are not of the baseline."""
    segments: int


def merged(segments: Iterable[Segment]) -> list[Segment]:
    """Return the union, ascending, with the times of the first and the last entry of each part (as the trackers'
    SegmentSet).
    """
    valid = [segment for segment in segments if segment.valid]
    if len(valid) <= 1:
        return valid  # nearly all streams
    found: list[Segment] = []
    for segment in sorted(valid, key=_order):
        if not found or found[-1].seq < segment.prev:
            found.append(segment)
            continue
        last = found[-1]
        if segment.prev == last.prev:
            last = last._replace(
                recorded_ms=earliest(last.recorded_ms, segment.recorded_ms),
                prev_ms=latest(last.prev_ms, segment.prev_ms),
            )
        if segment.seq >= last.seq:
            last = last._replace(seq=segment.seq, write_ms=segment.write_ms)
        found[-1] = last
    return found


def fold(segments: Iterable[Segment], head: int, since_ms: int | None = None) -> Fold:
    """Cover `(0, head]`; a hole in which everything was written by `since_ms` counts as covered."""
    reach, reach_ms, count = 0, None, 0
    holes: list[Hole] = []
    for segment in sorted((s for s in segments if s.valid), key=_order):
        if reach < segment.prev and reach < head and not _baseline(segment, since_ms):
            end_ms = segment.first_ms if segment.prev_ms is None else segment.prev_ms
            holes.append(Hole(reach, segment.prev, reach_ms, end_ms, segment.recorded_ms))
        reach, reach_ms = max(reach, segment.seq), latest(reach_ms, segment.write_ms)
        count += 1
    if holes:
        return Fold(holes[0].from_seq, holes[0].written_from_ms, reach, reach_ms, tuple(holes), count)
    return Fold(reach, reach_ms, reach, reach_ms, (), count)


def latest(*times: int | None) -> int | None:
    """Return the highest of the known times; None when none is known."""
    return max((time for time in times if time is not None), default=None)


def earliest(*times: int | None) -> int | None:
    """Return the lowest of the known times; None when none is known."""
    return min((time for time in times if time is not None), default=None)


def is_later(time_ms: int | None, bound_ms: int | None) -> bool:
    """Return True if a time is later than a bound. Unknown ones count as later."""
    return time_ms is None or bound_ms is None or time_ms > bound_ms


def _baseline(after: Segment, since_ms: int | None) -> bool:
    """Return True if the hole before a segment belongs to the baseline."""
    if since_ms is None:
        return False
    if after.prev_ms is not None:
        return after.prev_ms <= since_ms
    return after.first_ms is not None and after.first_ms <= since_ms - SINCE_MARGIN_MS


def _order(segment: Segment) -> tuple[tuple[bool, int], ...]:
    # Python refuses to compare None with a number.
    return tuple((value is not None, value or 0) for value in segment)
