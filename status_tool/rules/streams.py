"""The stream rule: has everything that one origin appended to one region, with one via, arrived?

A via stands for the clusters that entries came through and for their family.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from status_tool.rules.segments import (
    Fold,
    Hole,
    Segment,
    earliest,
    fold,
    is_later,
    latest,
)
from status_tool.vocabulary.codes import STREAM_CODES
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import SKEW_MS, Header
from status_tool.vocabulary.ids import CLUSTER_ID_BYTES, cluster_bytes, cluster_ids
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Baseline
from status_tool.vocabulary.verdicts import Status


@dataclass(frozen=True, slots=True)
class Head:
    """The newest replicable entry of a stream, with the write times of its first and newest entries."""

    region: str
    origin: int | None
    via: int
    seq: int | None
    first_ms: int | None = None
    write_ms: int | None = None
    table: str | None = None
    start_key: bytes | None = None
    end_key: bytes | None = None
    family: str | None = None
    """Empty: several families share the stream. None: unknown, as of a row that no tracker of today has written."""


SERVER_CLOCKS_MS = 1_000
"""By less than this the clocks of a slave's servers differ, or a hole that may fill can count as a gap for a while."""
_LONGEST_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class StreamRule:
    """Rules for all streams of a run."""

    since: Baseline
    recorded_before_ms: int
    """A hole before a segment that was recorded before this stays: what would fill it is in the state table by now."""
    unrecorded: frozenset[str] = frozenset()
    """Tables of which the slave may have applied entries that it has no record of: holes are no evidence of a loss."""

    @classmethod
    def of(cls, slave: Header, since: Baseline, flushed_ms: int | None) -> StreamRule:
        """Return the rule for a slave, by its header, and by when its servers had flushed (`slave_flushed_ms`).

        Stamped entries of a stream are applied in their order, each after those before it have been recorded. So what
        would fill a hole was recorded before the segment behind it: it is in the state table if all servers have
        flushed since, or have had two periods to do so.
        """
        # A segment's time is its server's, which may be behind the tool's, and the first flush's.
        aged_ms = slave.created_ms - 2 * slave.flush_period_ms - SKEW_MS
        return cls(since, aged_ms if flushed_ms is None else max(aged_ms, flushed_ms - SERVER_CLOCKS_MS))


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """A stream's status with the reason, and what a report needs of it."""

    code: str
    fold: Fold
    hole: Hole | None = None
    """The first hole that is reported, or the tail that has not arrived; None: nothing is known to be wrong."""
    holes: int = 0
    repair_to_ms: int | None = None
    lag_ms: int | None = None

    @property
    def status(self) -> Status:
        """The status that the code means."""
        return STREAM_CODES[self.code]


def is_shipped(via_ids: bytes | None, slave_cluster_id: str) -> bool:
    """False for a stream that HBase never ships to the slave, because the slave has consumed it already."""
    return cluster_bytes(slave_cluster_id) not in cluster_ids(via_ids)


def came_through(via_ids: bytes | None, master_cluster_id: str) -> bool:
    """False for entries that came from other clusters only, so that they cannot be of this master."""
    master = cluster_bytes(master_cluster_id)
    # Ids that cannot be read leave no entry out.
    if master is None or not via_ids or len(via_ids) % CLUSTER_ID_BYTES:
        return True
    return master in cluster_ids(via_ids)


def head_of(region: str, origin: int | None, via: int, rows: Collection[Row]) -> Head:
    """Return the head that the `stream` rows of one stream add up to."""
    return Head(
        region=region,
        origin=origin,
        via=via,
        seq=latest(*(row.get("seq") for row in rows)),
        first_ms=earliest(*(row.get("first_ms") for row in rows)),
        write_ms=latest(*(row.get("write_ms") for row in rows)),
        table=greatest(rows, "table"),
        start_key=greatest(rows, "start_key"),
        end_key=greatest(rows, "end_key"),
        family=greatest(rows, "family"),
    )


def greatest(rows: Iterable[Row], name: str) -> Any:
    return max((row[name] for row in rows if row.get(name) is not None), default=None)


DRAINED_COLUMNS = ("table", "region", "origin", "via", "family", "seq", "first_ms", "write_ms")
"""The head that a segment implies for its stream."""


def drained_heads(slave_rows: Iterable[Row], drained: frozenset[int]) -> list[Row]:
    """Return heads of crashed origins that the queues settled, as the slave knows them, one per segment.

    The last heads were lost with the origin. Whatever the slave has of it is in scope as well, so that a hole below
    the highest segment is a gap, whether the head is known or not.
    """
    return [
        {"kind": "stream", **{name: row.get(name) for name in DRAINED_COLUMNS}}
        for row in slave_rows
        if row["kind"] == "segment" and row.get("origin") in drained and _is_possible(row)
    ]


def _is_possible(row: Row) -> bool:
    prev, seq = row.get("prev"), row.get("seq")
    return prev is not None and seq is not None and Segment(prev, seq).valid


def judge_stream(
    head: Head, segments: Iterable[Segment], rule: StreamRule, settled: bool, after_ms: int | None
) -> StreamVerdict:
    """Judge a stream in scope; `settled` and `after_ms` are its origin's."""
    if head.seq is None or head.seq <= 0 or head.origin is None:
        # No segment can be held against such a head. Only a word that covers its time accepts it.
        is_accepted = settled and not is_later(head.write_ms, rule.since.of(head.table))
        return StreamVerdict("baseline" if is_accepted else "unreadable-head", fold((), 0))
    arrived = fold(segments, head.seq, rule.since.of(head.table))
    code = _complete_code(head, arrived, rule, after_ms)
    # Without the family's name, entries of which only some cells arrived look whole.
    if head.family is None and code != "baseline":
        return StreamVerdict("unreadable-head", arrived)
    if code:
        # An origin that is not settled may have a higher head, later than what is accepted.
        return StreamVerdict(code if settled else "unsettled", arrived)
    if head.table in rule.unrecorded:
        return _tailed("unrecorded", head, arrived, None)
    lag = _lag(head, arrived)
    if not arrived.segments:
        return _tailed("missing", head, arrived, lag)
    if arrived.holes:
        return _holed(arrived, rule, lag)
    return _tailed("behind", head, arrived, lag)


def missing_from_ms(head: Head, hole: Hole) -> int | None:
    """Return a time from which on the missing entries of a hole were written, if it is known."""
    # Nothing is known of what was written before a hole that begins with the stream.
    return head.first_ms if hole.written_from_ms is None else hole.written_from_ms


def stream_finding(head: Head, verdict: StreamVerdict) -> Finding | None:
    """Return the finding of a stream; None when it is complete."""
    if verdict.status is Status.COMPLETE:
        return None
    found = Finding(
        code=verdict.code,
        table=head.table,
        region=head.region,
        origin=head.origin,
        via=head.via,
        lag_ms=verdict.lag_ms,
        start_key=head.start_key,
        end_key=head.end_key,
    )
    hole = verdict.hole
    if hole is None:
        return found
    return replace(
        found,
        from_seq=hole.from_seq,
        to_seq=hole.to_seq,
        written_from_ms=missing_from_ms(head, hole),
        written_to_ms=hole.written_to_ms,
        repair_to_ms=verdict.repair_to_ms,
        holes=verdict.holes,
    )


def _complete_code(head: Head, arrived: Fold, rule: StreamRule, after_ms: int | None) -> str | None:
    if not is_later(head.write_ms, rule.since.of(head.table)):
        return "baseline"
    if head.seq is not None and arrived.prefix_end >= head.seq:
        return "covered"
    # One thread appends in the order of sequence ids: the missing entries are acknowledged after one that is written
    # after the cut.
    if after_ms is not None and (_after(head.first_ms, after_ms) or _after(arrived.prefix_ms, after_ms)):
        return "after-cut"
    return None


def _holed(arrived: Fold, rule: StreamRule, lag: int | None) -> StreamVerdict:
    stays = [hole for hole in arrived.holes if _old(hole, rule)]
    shown = stays or arrived.holes
    repair_to_ms = shown[-1].written_to_ms
    return StreamVerdict("gap" if stays else "may-fill", arrived, shown[0], len(shown), repair_to_ms, lag)


def _tailed(code: str, head: Head, arrived: Fold, lag: int | None) -> StreamVerdict:
    tail = Hole(arrived.prefix_end, head.seq or 0, arrived.prefix_ms, head.write_ms, None)
    return StreamVerdict(code, arrived, tail, 1, head.write_ms, lag)


def _old(hole: Hole, rule: StreamRule) -> bool:
    return hole.recorded_ms is not None and hole.recorded_ms < rule.recorded_before_ms


def _lag(head: Head, arrived: Fold) -> int | None:
    return lag_between(arrived.prefix_ms if arrived.prefix_end > 0 else head.first_ms, head.write_ms)


def lag_between(since_ms: int | None, until_ms: int | None) -> int | None:
    """Return the time from one moment to the other, in 64 bits: a damaged row may have any; None if one is unknown."""
    return None if since_ms is None or until_ms is None else min(max(0, until_ms - since_ms), _LONGEST_MS)


def _after(time_ms: int | None, bound_ms: int) -> bool:
    return time_ms is not None and time_ms > bound_ms
