"""The algebra of segments: what part of a stream has arrived, and where the holes are.

A segment `(prev, seq]` says that the entry `seq` and everything of its stream down to `prev` (exclusive)
has been applied. Segments are facts, so only their union counts: order, duplicates and overlaps do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from status_tool.rules.sql import IS_HEAD, IS_SEGMENT, LEAST_MS, is_in, known_true, since_sql
from status_tool.vocabulary.scope import Baseline

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
    """The highest write time of the stream up to `prev`; None where the tracker did not record it yet."""

    @property
    def valid(self) -> bool:
        """Whether it is a valid segment; others are ignored."""
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
    """What the union of a stream's segments covers, with holes in the accepted baseline bridged."""

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


def union(segments: Iterable[Segment]) -> list[tuple[int, int]]:
    """The maximal covered intervals `(prev, seq]`, ascending."""
    covered: list[tuple[int, int]] = []
    for segment in sorted((s for s in segments if s.valid), key=_order):
        if covered and segment.prev <= covered[-1][1]:
            covered[-1] = (covered[-1][0], max(covered[-1][1], segment.seq))
        else:
            covered.append((segment.prev, segment.seq))
    return covered


def merged(segments: Iterable[Segment]) -> list[Segment]:
    """The union as segments, with the times of the first and the last entry of each (as the trackers' SegmentSet)."""
    found: list[Segment] = []
    for segment in sorted((s for s in segments if s.valid), key=_order):
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


_STREAM = "region, origin, via"
_ORDER = "kind = 'segment', prev, seq, first_ms, write_ms, recorded_ms, started_ms"
# A stream's head comes first (false sorts before true), then its segments as `fold` sorts them. So the rows before a
# segment are what `fold` has seen when it comes to that segment, and running aggregates over them are its variables.
_BEFORE = f"OVER (PARTITION BY {_STREAM} ORDER BY {_ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
_HOLE_END = "coalesce(started_ms, first_ms)"


def valid_sql() -> str:
    """As `Segment.valid`."""
    return known_true("prev >= 0 AND seq > prev")


def is_ordered_sql(table: str, is_of_family: str, ordered: frozenset[str]) -> str:
    """As `StreamRule.is_ordered`."""
    return known_true(f"NOT {is_of_family} AND {is_in(table, sorted(ordered))}")


def before_sql(ordered: frozenset[str], since: Baseline) -> dict[str, str]:
    """What `fold` knows when it comes to a segment: `head`, the head; `before`, the reach; `before_ms`, its time.

    Over heads and valid segments. `ordered`: whether the stream is of one of those tables; `since_ms`: up to when what
    was written to its table is accepted.
    """
    table = f"max(IF({IS_HEAD}, `table`, NULL)) {_BEFORE}"
    of_family = f"(count(IF({IS_HEAD}, family, NULL)) {_BEFORE} > 0)"
    return {
        "head": f"max(IF({IS_HEAD}, seq, NULL)) {_BEFORE}",
        "ordered": is_ordered_sql(table, of_family, ordered),
        "since_ms": since_sql(since, table),
        "before": f"coalesce(max(IF({IS_SEGMENT}, seq, NULL)) {_BEFORE}, CAST(0 AS BIGINT))",
        "before_ms": f"max(IF({IS_SEGMENT}, write_ms, NULL)) {_BEFORE}",
    }


def is_hole_sql() -> str:
    """Whether a hole ends at a segment that `fold` would report, over `before_sql`; never in an ordered table."""
    return known_true(f"{IS_SEGMENT} AND NOT ordered AND before < prev AND before < head AND NOT {_baseline_sql()}")


def fold_aggregates_sql() -> dict[str, str]:
    """As `Fold` but for its holes."""
    return {
        "segments": f"count_if({IS_SEGMENT})",
        "reach": f"coalesce(max(IF({IS_SEGMENT}, seq, NULL)), CAST(0 AS BIGINT))",
        "reach_ms": f"max(IF({IS_SEGMENT}, write_ms, NULL))",
    }


def hole_aggregates_sql(name: str, chosen: str) -> dict[str, str]:
    """The first of the chosen holes, their number, and where the last one ends; minima, for all grow with `before`."""
    ends = f"IF({chosen}, prev, NULL)"
    return {
        f"{name}s": f"count_if({chosen})",
        f"{name}_from": f"min(IF({chosen}, before, NULL))",
        f"{name}_from_ms": f"min(IF({chosen}, coalesce(before_ms, {LEAST_MS}), NULL))",
        f"{name}_to": f"min({ends})",
        f"{name}_to_ms": f"min_by({_HOLE_END}, {ends})",
        f"{name}_repair_ms": f"max_by({_HOLE_END}, {ends})",
    }


def latest(*times: int | None) -> int | None:
    """The highest of the known times; None when none is known."""
    return max((time for time in times if time is not None), default=None)


def earliest(*times: int | None) -> int | None:
    """The lowest of the known times; None when none is known."""
    return min((time for time in times if time is not None), default=None)


def is_later(time_ms: int | None, bound_ms: int | None) -> bool:
    """Whether a time is later than a bound; unknown ones are taken to be."""
    return time_ms is None or bound_ms is None or time_ms > bound_ms


def is_later_sql(time: str, bound: str) -> str:
    """As `is_later`, of two columns."""
    return f"coalesce({time} > {bound}, true)"


def _baseline(after: Segment, since_ms: int | None) -> bool:
    """Whether the hole before a segment belongs to the baseline."""
    if since_ms is None:
        return False
    if after.prev_ms is not None:
        return after.prev_ms <= since_ms
    return after.first_ms is not None and after.first_ms <= since_ms - SINCE_MARGIN_MS


def _baseline_sql() -> str:
    margin = f"first_ms <= since_ms - {SINCE_MARGIN_MS}"
    return known_true(f"IF(started_ms IS NULL, {margin}, started_ms <= since_ms)")


def _order(segment: Segment) -> tuple[tuple[bool, int], ...]:
    return tuple((value is not None, value or 0) for value in segment)
