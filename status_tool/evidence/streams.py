"""The stream rule: has everything that one origin appended to one region, with one via, arrived?"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace

from status_tool.evidence.findings import STREAM_CODES, Finding
from status_tool.evidence.model import Header, Status
from status_tool.evidence.segments import SINCE_MARGIN_MS, Fold, Hole, Segment, fold, latest

CLUSTER_ID_BYTES = 16


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


@dataclass(frozen=True, slots=True)
class StreamRule:
    """What holds for all streams of a run."""

    since_ms: int | None
    slave_settled: bool
    recorded_before_ms: int
    """A segment recorded before this has had its two flush periods: a hole before it stays."""
    ordered: frozenset[str] = frozenset()
    """Tables whose streams have holes that are no loss: only how far they reach can be told."""

    @classmethod
    def of(cls, slave: Header, since_ms: int | None, settled: bool, ordered: frozenset[str]) -> StreamRule:
        """The rule for a slave as its header and its servers show it."""
        return cls(since_ms, settled, slave.created_ms - 2 * slave.flush_period_ms, ordered)


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


def asked_of(via_ids: bytes | None, slave_cluster_id: str) -> bool:
    """False for a stream that HBase never ships to the slave, because the slave has consumed it already."""
    slave = cluster_bytes(slave_cluster_id)
    ids = via_ids or b""
    chunks = range(0, len(ids) - CLUSTER_ID_BYTES + 1, CLUSTER_ID_BYTES)
    return slave is None or all(ids[at : at + CLUSTER_ID_BYTES] != slave for at in chunks)


def came_through(via_ids: bytes | None, master_cluster_id: str) -> bool:
    """False for entries that came from other clusters only, so that they cannot be of this master."""
    master = cluster_bytes(master_cluster_id)
    ids = via_ids or b""
    if master is None or not ids or len(ids) % CLUSTER_ID_BYTES:
        return True
    return any(ids[at : at + CLUSTER_ID_BYTES] == master for at in range(0, len(ids), CLUSTER_ID_BYTES))


def cluster_bytes(cluster_id: str) -> bytes | None:
    """The 16 bytes of a cluster id; None when it is no UUID."""
    try:
        return uuid.UUID(cluster_id).bytes
    except ValueError:
        return None


def judge_stream(
    head: Head,
    segments: Iterable[Segment],
    rule: StreamRule,
    settled: bool,
    after_ms: int | None,
    shipped_ms: int | None = None,
) -> StreamVerdict:
    """Decide one asked stream; `settled`, `after_ms` and `shipped_ms` (`in_force.shipped_since`) are its origin's."""
    if head.seq is None or head.seq <= 0 or head.origin is None:
        return StreamVerdict("unreadable-head", fold((), 0))
    arrived = fold(segments, head.seq, rule.since_ms)
    code = _complete_code(head, arrived, rule, after_ms)
    if code and settled and code != "baseline" and _filter_changed(head, rule, shipped_ms):
        until_ms = None if shipped_ms is None else shipped_ms + SINCE_MARGIN_MS
        extent = Hole(0, head.seq, head.first_ms, until_ms, None)
        return StreamVerdict("filter-changed", arrived, extent, 1, until_ms)
    if code:
        return StreamVerdict(code if settled else "unsettled", arrived)
    lag = _lag(head, *_arrived_to(head, arrived, rule))
    if not arrived.segments:
        return _tailed("missing", head, arrived, rule, lag)
    if head.table not in rule.ordered and arrived.holes:
        return _holed(arrived, rule, lag)
    return _tailed("behind", head, arrived, rule, lag)


def stream_finding(head: Head, verdict: StreamVerdict) -> Finding | None:
    """What is to be reported of a stream; None when it is complete."""
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
        written_from_ms=_or(hole.written_from_ms, head.first_ms),
        written_to_ms=hole.written_to_ms,
        repair_to_ms=verdict.repair_to_ms,
        holes=verdict.holes,
    )


def _complete_code(head: Head, arrived: Fold, rule: StreamRule, after_ms: int | None) -> str | None:
    end, end_ms = _arrived_to(head, arrived, rule)
    if rule.since_ms is not None and head.write_ms is not None and head.write_ms <= rule.since_ms:
        return "baseline"
    if head.seq is not None and end >= head.seq:
        return "covered"
    if after_ms is not None and (_after(head.first_ms, after_ms) or _after(end_ms, after_ms)):
        return "after-cut"
    return None


def _filter_changed(head: Head, rule: StreamRule, shipped_ms: int | None) -> bool:
    """Whether holes that are accepted may be of families that were left out then and are shipped now."""
    if head.table not in rule.ordered:
        return False
    asked_from_ms = latest(head.first_ms, rule.since_ms)
    return shipped_ms is None or asked_from_ms is None or asked_from_ms < shipped_ms + SINCE_MARGIN_MS


def _holed(arrived: Fold, rule: StreamRule, lag: int | None) -> StreamVerdict:
    stays = [hole for hole in arrived.holes if rule.slave_settled or _old(hole, rule)]
    shown = stays or arrived.holes
    repair_to_ms = shown[-1].written_to_ms
    return StreamVerdict("gap" if stays else "may-fill", arrived, shown[0], len(shown), repair_to_ms, lag)


def _tailed(code: str, head: Head, arrived: Fold, rule: StreamRule, lag: int | None) -> StreamVerdict:
    end, end_ms = _arrived_to(head, arrived, rule)
    tail = Hole(end, head.seq or 0, end_ms, head.write_ms, None)
    return StreamVerdict(code, arrived, tail, 1, head.write_ms, lag)


def _arrived_to(head: Head, arrived: Fold, rule: StreamRule) -> tuple[int, int | None]:
    """How far the stream has arrived, and the highest write time up to there."""
    if head.table in rule.ordered:
        return arrived.reach, arrived.reach_ms
    return arrived.prefix_end, arrived.prefix_ms


def _old(hole: Hole, rule: StreamRule) -> bool:
    return hole.recorded_ms is not None and hole.recorded_ms < rule.recorded_before_ms


def _lag(head: Head, end: int, end_ms: int | None) -> int | None:
    since = end_ms if end > 0 else head.first_ms
    return max(0, head.write_ms - since) if head.write_ms is not None and since is not None else None


def _after(time_ms: int | None, bound_ms: int) -> bool:
    return time_ms is not None and time_ms > bound_ms


def _or(value: int | None, other: int | None) -> int | None:
    return value if value is not None else other
