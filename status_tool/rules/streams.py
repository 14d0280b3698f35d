"""The stream rule: has everything that one origin appended to one region, with one via, arrived?

A via stands for the clusters that entries came through and for their family; only entries of trackers before version 3
of the stamp are one stream, whatever their families.

Each function in plain Python has the same in SQL below it, named `…_sql`. The plan (`spark.hbase`) groups heads and
segments by stream; `code_sql` and what follows it read the columns that the aggregates here make of a group, and the
origin's `settled`, `after_ms` and `shipped_ms`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from status_tool.rules.segments import (
    SINCE_MARGIN_MS,
    Fold,
    Hole,
    Segment,
    earliest,
    fold,
    fold_aggregates_sql,
    hole_aggregates_sql,
    is_later,
    is_ordered_sql,
    latest,
)
from status_tool.rules.sql import IS_HEAD, IS_SEGMENT, LEAST_MS, case, finding, is_in, known_true, quoted, since_sql
from status_tool.vocabulary.codes import STREAM_CODES
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import CLUSTER_ID_BYTES, cluster_bytes
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Baseline
from status_tool.vocabulary.verdicts import SEVERITY, Status

COMPLETE_CODES = tuple(code for code, status in STREAM_CODES.items() if status is Status.COMPLETE)


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
    """Empty: several families share the stream. None: it is of all families, as before version 3 of the stamp."""


@dataclass(frozen=True, slots=True)
class StreamRule:
    """What holds for all streams of a run."""

    since: Baseline
    slave_settled: bool
    recorded_before_ms: int
    """A segment recorded before this has had its two flush periods: a hole before it stays."""
    ordered: frozenset[str] = frozenset()
    """Tables whose streams without a family have holes that are no loss: only how far they reach can be known."""
    unrecorded: frozenset[str] = frozenset()
    """Tables of which the slave may have applied entries that it has no record of: holes are no evidence of a loss."""

    def is_ordered(self, head: Head) -> bool:
        """Whether holes of a stream are expected."""
        return head.family is None and head.table in self.ordered

    @classmethod
    def of(cls, slave: Header, since: Baseline, settled: bool, ordered: frozenset[str]) -> StreamRule:
        """The rule for a slave as its header and its servers show it."""
        return cls(since, settled, slave.created_ms - 2 * slave.flush_period_ms, ordered)


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
    slave = cluster_bytes(slave_cluster_id)
    ids = via_ids or b""
    chunks = range(0, len(ids) - CLUSTER_ID_BYTES + 1, CLUSTER_ID_BYTES)
    return slave is None or all(ids[at : at + CLUSTER_ID_BYTES] != slave for at in chunks)


def is_shipped_sql(slave_cluster_id: str) -> str:
    """As `is_shipped`."""
    slave = cluster_bytes(slave_cluster_id)
    if slave is None:
        return "true"
    return case((f"length(via_ids) >= {CLUSTER_ID_BYTES}", f"NOT {_is_among_sql(slave)}"), default="true")


def came_through(via_ids: bytes | None, master_cluster_id: str) -> bool:
    """False for entries that came from other clusters only, so that they cannot be of this master."""
    master = cluster_bytes(master_cluster_id)
    ids = via_ids or b""
    if master is None or not ids or len(ids) % CLUSTER_ID_BYTES:
        return True
    return any(ids[at : at + CLUSTER_ID_BYTES] == master for at in range(0, len(ids), CLUSTER_ID_BYTES))


def came_through_sql(master_cluster_id: str) -> str:
    """As `came_through`."""
    master = cluster_bytes(master_cluster_id)
    if master is None:
        return "true"
    whole = f"length(via_ids) > 0 AND length(via_ids) % {CLUSTER_ID_BYTES} = 0"
    return case((whole, _is_among_sql(master)), default="true")


def _is_among_sql(cluster: bytes) -> str:
    """Whether a cluster's id is one of those in `via_ids`, which holds one after another."""
    width = 2 * CLUSTER_ID_BYTES
    starts = f"sequence(1, length(hex(via_ids)) - {width - 1}, {width})"
    return f"exists({starts}, at -> substr(hex(via_ids), at, {width}) = {quoted(cluster.hex().upper())})"


def head_of(region: str, origin: int | None, via: int, rows: Collection[Row]) -> Head:
    """The head that the `stream` rows of one stream add up to."""
    return Head(
        region=region,
        origin=origin,
        via=via,
        seq=latest(*(row.get("seq") for row in rows)),
        first_ms=earliest(*(row.get("first_ms") for row in rows)),
        write_ms=latest(*(row.get("write_ms") for row in rows)),
        table=_greatest(rows, "table"),
        start_key=_greatest(rows, "start_key"),
        end_key=_greatest(rows, "end_key"),
        family=_greatest(rows, "family"),
    )


def _greatest(rows: Iterable[Row], name: str) -> Any:
    return max((row[name] for row in rows if row.get(name) is not None), default=None)


def head_aggregates_sql() -> dict[str, str]:
    """As `head_of`, and how many heads there are; `table` is that of any row of the region."""
    return {
        "heads": f"count_if({IS_HEAD})",
        "head_seq": f"max(IF({IS_HEAD}, seq, NULL))",
        "first_ms": f"min(IF({IS_HEAD}, first_ms, NULL))",
        "write_ms": f"max(IF({IS_HEAD}, write_ms, NULL))",
        "table": "max(`table`)",
        "head_table": f"max(IF({IS_HEAD}, `table`, NULL))",
        "start_key": "max(start_key)",
        "end_key": "max(end_key)",
        "is_of_family": f"count_if({IS_HEAD} AND family IS NOT NULL) > 0",
        "family": f"max(IF({IS_HEAD}, family, NULL))",
    }


DRAINED_COLUMNS = ("table", "region", "origin", "via", "family", "seq", "first_ms", "write_ms")
"""The head that a segment implies for its stream."""


def drained_heads(slave_rows: Iterable[Row], drained: frozenset[int]) -> list[Row]:
    """Of crashed origins that the queues settled: heads as the slave knows them, one per segment.

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


def is_drained_sql(drained: frozenset[int]) -> str:
    """Whether `drained_heads` makes a head of a slave's row."""
    origins = ", ".join(str(origin) for origin in sorted(drained))
    return f"{IS_SEGMENT} AND origin IN ({origins}) AND prev >= 0 AND seq > prev"


def judge_stream(
    head: Head,
    segments: Iterable[Segment],
    rule: StreamRule,
    settled: bool,
    after_ms: int | None,
    shipped_ms: int | None = None,
) -> StreamVerdict:
    """Judge a stream in scope; `settled`, `after_ms`, `shipped_ms` are its origin's (`peer_versions.shipped_since`)."""
    if head.seq is None or head.seq <= 0 or head.origin is None:
        return StreamVerdict("unreadable-head", fold((), 0))
    arrived = fold(segments, head.seq, rule.since.of(head.table))
    code = _complete_code(head, arrived, rule, after_ms)
    if code and settled and code != "baseline" and _filter_changed(head, rule, shipped_ms):
        until_ms = None if shipped_ms is None else shipped_ms + SINCE_MARGIN_MS
        extent = Hole(0, head.seq, head.first_ms, until_ms, None)
        return StreamVerdict("filter-changed", arrived, extent, 1, until_ms)
    if code:
        return StreamVerdict(code if settled else "unsettled", arrived)
    if head.table in rule.unrecorded:
        return _tailed("unrecorded", head, arrived, rule, None)
    lag = _lag(head, *_arrived_to(head, arrived, rule))
    if not arrived.segments:
        return _tailed("missing", head, arrived, rule, lag)
    if not rule.is_ordered(head) and arrived.holes:
        return _holed(arrived, rule, lag)
    return _tailed("behind", head, arrived, rule, lag)


def segment_aggregates_sql(rule: StreamRule) -> dict[str, str]:
    """What `judge_stream` takes from the fold: its reach, the holes and, for an unsettled slave, those that stay."""
    stays = f"hole AND {known_true(f'recorded_ms < {rule.recorded_before_ms}')}"
    return {
        **fold_aggregates_sql(),
        **hole_aggregates_sql("hole", "hole"),
        **({} if rule.slave_settled else hole_aggregates_sql("stay", stays)),
    }


def arrived_sql() -> dict[str, str]:
    """As `_arrived_to`; in the streams of ordered tables there are no holes."""
    first_ms = f"nullif(hole_from_ms, {LEAST_MS})"
    return {
        "arrived": "coalesce(hole_from, reach)",
        "arrived_ms": case(("holes > 0", first_ms), default="reach_ms"),
    }


def code_sql(rule: StreamRule) -> str:
    """The code of `judge_stream`, over the aggregates and `arrived_sql`; null for a stream that is not in scope."""
    complete = _complete_code_sql(rule)
    decided = f"IF({complete} != 'baseline' AND {_filter_changed_sql(rule)}, 'filter-changed', {complete})"
    return case(
        ("heads = 0", "NULL"),
        ("head_seq IS NULL OR head_seq <= 0 OR origin IS NULL", "'unreadable-head'"),
        (f"{complete} IS NOT NULL", f"IF({known_true('settled')}, {decided}, 'unsettled')"),
        (is_in("head_table", sorted(rule.unrecorded)), "'unrecorded'"),
        ("segments = 0", "'missing'"),
        ("holes = 0", "'behind'"),
        ("true" if rule.slave_settled else "stays > 0", "'gap'"),
        default="'may-fill'",
    )


def lag_sql() -> str:
    """As `_lag`, of an incomplete stream."""
    incomplete = is_in("code", _codes_of(Status.BEHIND, Status.MISSING, Status.GAP))
    lag = "try_subtract(write_ms, IF(arrived > 0, arrived_ms, first_ms))"
    return case((f"{incomplete} AND {lag} IS NOT NULL", f"greatest({lag}, 0)"))


def hole_sql(rule: StreamRule) -> dict[str, str]:
    """`StreamVerdict.hole` with what `stream_finding` reports of it; null where nothing is known to be wrong."""
    name = "hole" if rule.slave_settled else "stay"

    def shown(what: str, tail: str, changed: str) -> str:
        return case(
            ("code = 'filter-changed'", changed),
            ("code = 'gap'", f"{name}{what}"),
            ("code = 'may-fill'", f"hole{what}"),
            ("code IN ('behind', 'missing', 'unrecorded')", tail),
        )

    from_ms = f"coalesce(nullif({shown('_from_ms', 'arrived_ms', 'first_ms')}, {LEAST_MS}), first_ms)"
    one, until_ms = "CAST(1 AS BIGINT)", f"shipped_ms + {SINCE_MARGIN_MS}"
    extent = "code IN ('gap', 'may-fill', 'behind', 'missing', 'unrecorded', 'filter-changed')"
    return {
        "from_seq": shown("_from", "arrived", "CAST(0 AS BIGINT)"),
        "to_seq": shown("_to", "head_seq", "head_seq"),
        "written_from_ms": case((extent, from_ms)),
        "written_to_ms": shown("_to_ms", "write_ms", until_ms),
        "repair_to_ms": shown("_repair_ms", "write_ms", until_ms),
        "shown_holes": shown("s", one, one),
    }


def stream_finding(head: Head, verdict: StreamVerdict) -> Finding | None:
    """The finding of a stream; None when it is complete."""
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


def stream_finding_sql() -> str:
    """As `stream_finding`, over `code_sql`, `lag_sql` and `hole_sql`; null for a complete stream."""
    at_fault = f"code IS NOT NULL AND NOT ({is_in('code', _codes_of(Status.COMPLETE))})"
    same = ("region", "origin", "via", "from_seq", "to_seq", "written_from_ms", "written_to_ms", "repair_to_ms")
    columns = {name: name for name in (*same, "lag_ms", "start_key", "end_key")}
    return f"IF({at_fault}, {finding('code', table='head_table', holes='shown_holes', **columns)}, NULL)"


def severity_sql(code: str) -> str:
    """The severity of a stream's code; 0 for null."""
    worse = (Status.UNVERIFIABLE, Status.BEHIND, Status.MISSING, Status.GAP)
    return case(*((is_in(code, _codes_of(status)), str(SEVERITY[status])) for status in worse), default="0")


def _codes_of(*statuses: Status) -> list[str]:
    return [code for code, status in STREAM_CODES.items() if status in statuses]


def _complete_code(head: Head, arrived: Fold, rule: StreamRule, after_ms: int | None) -> str | None:
    end, end_ms = _arrived_to(head, arrived, rule)
    if not is_later(head.write_ms, rule.since.of(head.table)):
        return "baseline"
    if head.seq is not None and end >= head.seq:
        return "covered"
    if after_ms is not None and (_after(head.first_ms, after_ms) or _after(end_ms, after_ms)):
        return "after-cut"
    return None


def _complete_code_sql(rule: StreamRule) -> str:
    return case(
        (f"write_ms <= {since_sql(rule.since, 'head_table')}", "'baseline'"),
        ("arrived >= head_seq", "'covered'"),
        ("first_ms > after_ms OR arrived_ms > after_ms", "'after-cut'"),
    )


def _filter_changed(head: Head, rule: StreamRule, shipped_ms: int | None) -> bool:
    """Whether holes that are accepted may be of families that were left out then and are shipped now."""
    if not rule.is_ordered(head):
        return False
    asked_from_ms = latest(head.first_ms, rule.since.of(head.table))
    return shipped_ms is None or asked_from_ms is None or asked_from_ms < shipped_ms + SINCE_MARGIN_MS


def _filter_changed_sql(rule: StreamRule) -> str:
    since_ms = since_sql(rule.since, "head_table")
    unchanged = f"greatest(first_ms, {since_ms}) >= shipped_ms + {SINCE_MARGIN_MS}"
    return f"({is_ordered_sql('head_table', 'is_of_family', rule.ordered)} AND NOT {known_true(unchanged)})"


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
    if rule.is_ordered(head):
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
