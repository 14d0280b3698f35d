"""The HBase rules as DataFrame expressions; `status_tool.evidence.reference` says the same in plain Python.

Rows of both sides become one set of events that is shuffled once, by region, and sorted once: by stream,
the head before its segments. Running aggregates over that order find the holes; the aggregations over
streams and then over regions need no further shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from status_tool.evidence.context import RunContext
from status_tool.evidence.findings import STREAM_CODES
from status_tool.evidence.ids import UNKNOWN_FAMILY
from status_tool.evidence.model import SEVERITY, Evidence, Status
from status_tool.evidence.origins import known_shutdown
from status_tool.evidence.regions import CHANGED, CONTENT, DISABLED, HOSTED, LINEAGE, SPLIT_PARENT
from status_tool.evidence.scoping import in_scope_sql
from status_tool.evidence.segments import SINCE_MARGIN_MS
from status_tool.evidence.sql import case, finding, is_in, known_true, present, quoted
from status_tool.evidence.streams import CLUSTER_ID_BYTES, cluster_bytes
from status_tool.spark.expressions import named

MASTER_KINDS = ("stream", "region", "fact")
SLAVE_KINDS = ("segment", "partial", "replicated", "unstamped")

_STREAM = ("region", "origin", "via")
_LEAST_MS = -(2**62)
"""Stands for an unknown time where a minimum must not skip it."""
_ORDER = "kind = 'segment', prev, seq, first_ms, write_ms, recorded_ms, started_ms"
_HOLE_END = "coalesce(started_ms, first_ms)"
"""Of a segment: the highest write time in the hole before it, or else the write time of its first entry."""
_FAMILY = f"coalesce(name, '{UNKNOWN_FAMILY}')"
_FRAME = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
_BEFORE = f"OVER (PARTITION BY {', '.join(_STREAM)} ORDER BY {_ORDER} {_FRAME})"
_IS_SEGMENT, _IS_HEAD = "kind = 'segment'", "kind = 'stream'"
_EVENT_COLUMNS = (
    "kind",
    "table",
    "region",
    "origin",
    "prev",
    "seq",
    "first_ms",
    "write_ms",
    "recorded_ms",
    "start_key",
    "end_key",
    "state",
    "server",
    "name",
    "started_ms",
)
_ORIGIN_SCHEMA = pa.schema(
    [("origin", pa.int64()), ("settled", pa.bool_()), ("after_ms", pa.int64()), ("shipped_ms", pa.int64())]
)
_TABLE_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("described", pa.bool_()),
        ("replicated", pa.bool_()),
        ("table_status", pa.int32()),
        ("gone_accepted", pa.bool_()),
        ("loads_shipped", pa.bool_()),
        ("family_ids", pa.list_(pa.string())),
    ]
)


def with_drained_heads(master_df: DataFrame, slave_df: DataFrame, drained: frozenset[int]) -> DataFrame:
    """The master's rows and, of crashed origins that the queues settled, the heads that the slave knows.

    As `evidence.reference.drained_heads`.
    """
    if not drained:
        return master_df
    origins = ", ".join(str(origin) for origin in sorted(drained))
    known = slave_df.where(f"{_IS_SEGMENT} AND origin IN ({origins}) AND prev >= 0 AND seq > prev")
    columns = ("table", "region", "origin", "via", "seq", "first_ms", "write_ms")
    heads = known.select(*named({"kind": "'stream'"}), *columns)
    return master_df.unionByName(heads, allowMissingColumns=True)


def judge_regions(session: SparkSession, master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """One row a region: `asked`, `status` (severity), `lag_ms`, `findings`, `timestamps` and more to debug."""
    if context.evidence is Evidence.TIMESTAMPS:
        return _timestamp_regions(master_df, slave_df, context)
    streams = judge_streams(session, master_df, slave_df, context)
    by_region = streams.groupBy("region").agg(*named(_region_aggregates(context)))
    flagged = _with_tables(session, by_region, context).select("*", *named(_flags(context)))
    judged = flagged.select("*", *named({"own": _own_findings(), "timestamps": _timestamps_code(context)}))
    return judged.select("*", *named(_region_decision(context)))


def judge_streams(session: SparkSession, master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """One row a stream with its `code`. Rows without `heads` are no asked streams: they carry region facts."""
    holed = _with_holes(_events(master_df, slave_df, context), context)
    aggregates = {**_head_aggregates(), **_segment_aggregates(context), **_fact_aggregates(context)}
    folded = holed.groupBy(*_STREAM).agg(*named(aggregates))
    arrived = _with_origins(session, folded, context).select("*", *named(_arrived()))
    coded = arrived.select("*", *named({"code": _stream_code(context)}))
    return coded.select("*", *named({"lag_ms": _stream_lag(), **_shown(context), **_later(context)}))


# -- events ------------------------------------------------------------------------------------------------


def _events(master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """All rows that count, clustered by region."""
    asked = in_scope_sql(context.filters)
    shipped = f"NOT ({_IS_HEAD}) OR {_is_shipped(context.slave.cluster_id)}"
    possible = f"NOT ({_IS_SEGMENT}) OR {known_true('prev >= 0 AND seq > prev')}"
    ours = _event_columns(master_df, MASTER_KINDS, f"({asked}) AND ({shipped})")
    ours_too = f"NOT (kind = 'unstamped') OR {_came_through(context.master.cluster_id)}"
    theirs = _event_columns(slave_df, SLAVE_KINDS, f"({asked}) AND ({possible}) AND ({ours_too})")
    return ours.unionByName(theirs).repartition("region")


def _event_columns(rows: DataFrame, kinds: tuple[str, ...], condition: str = "true") -> DataFrame:
    via = case((is_in("kind", ("stream", "segment", "partial")), "coalesce(via, CAST(0 AS BIGINT))"))
    counting = rows.where(f"{is_in('kind', kinds)} AND region IS NOT NULL AND ({condition})")
    return counting.select(*_EVENT_COLUMNS, *named({"via": via}))


def _is_shipped(slave_cluster_id: str) -> str:
    """False where the slave is among the clusters that have consumed the stream's entries."""
    slave = cluster_bytes(slave_cluster_id)
    if slave is None:
        return "true"
    consumed = _is_among(slave)
    return case((f"length(via_ids) >= {CLUSTER_ID_BYTES}", f"NOT {consumed}"), default="true")


def _is_among(cluster: bytes) -> str:
    """Whether a cluster's id is one of those in `via_ids`, which holds one after another."""
    width = 2 * CLUSTER_ID_BYTES
    starts = f"sequence(1, length(hex(via_ids)) - {width - 1}, {width})"
    return f"exists({starts}, at -> substr(hex(via_ids), at, {width}) = {quoted(cluster.hex().upper())})"


def _came_through(master_cluster_id: str) -> str:
    """False where the entries came from other clusters than the master only; as `evidence.streams.came_through`."""
    master = cluster_bytes(master_cluster_id)
    if master is None:
        return "true"
    known = _is_among(master)
    whole = f"length(via_ids) > 0 AND length(via_ids) % {CLUSTER_ID_BYTES} = 0"
    return case((whole, known), default="true")


# -- streams -----------------------------------------------------------------------------------------------


def _with_holes(events: DataFrame, context: RunContext) -> DataFrame:
    """Per segment: how far the stream had arrived before it, and whether a hole that is asked ends at it."""
    before = {
        "head": f"max(IF({_IS_HEAD}, seq, NULL)) {_BEFORE}",
        "ordered": _is_ordered(f"max(IF({_IS_HEAD}, `table`, NULL)) {_BEFORE}", context),
        "before": f"coalesce(max(IF({_IS_SEGMENT}, seq, NULL)) {_BEFORE}, CAST(0 AS BIGINT))",
        "before_ms": f"max(IF({_IS_SEGMENT}, write_ms, NULL)) {_BEFORE}",
    }
    return events.select("*", *named(before)).select("*", *named({"hole": _is_hole(context)}))


def _is_ordered(table: str, context: RunContext) -> str:
    """Whether holes are expected in a stream of the table."""
    return known_true(is_in(table, sorted(context.rule.ordered)))


def _is_hole(context: RunContext) -> str:
    hole = f"{_IS_SEGMENT} AND NOT ordered AND before < prev AND before < head"
    if context.scope.since_ms is not None:
        since_ms = context.scope.since_ms
        baseline = known_true(
            f"IF(started_ms IS NULL, first_ms <= {since_ms - SINCE_MARGIN_MS}, started_ms <= {since_ms})"
        )
        hole = f"{hole} AND NOT {baseline}"
    return known_true(hole)


def _head_aggregates() -> dict[str, str]:
    return {
        "heads": f"count_if({_IS_HEAD})",
        "head_seq": f"max(IF({_IS_HEAD}, seq, NULL))",
        "first_ms": f"min(IF({_IS_HEAD}, first_ms, NULL))",
        "write_ms": f"max(IF({_IS_HEAD}, write_ms, NULL))",
        "table": "max(`table`)",
        "head_table": f"max(IF({_IS_HEAD}, `table`, NULL))",
        "start_key": "max(start_key)",
        "end_key": "max(end_key)",
    }


def _segment_aggregates(context: RunContext) -> dict[str, str]:
    stays = f"hole AND {known_true(f'recorded_ms < {context.rule.recorded_before_ms}')}"
    return {
        "segments": f"count_if({_IS_SEGMENT})",
        "reach": f"coalesce(max(IF({_IS_SEGMENT}, seq, NULL)), CAST(0 AS BIGINT))",
        "reach_ms": f"max(IF({_IS_SEGMENT}, write_ms, NULL))",
        **_hole_aggregates("hole", "hole"),
        **({} if context.rule.slave_settled else _hole_aggregates("stay", stays)),
    }


def _hole_aggregates(name: str, chosen: str) -> dict[str, str]:
    """The first of the chosen holes, their number, and where the last one ends. All grow with `before`."""
    ends = f"IF({chosen}, prev, NULL)"
    return {
        f"{name}s": f"count_if({chosen})",
        f"{name}_from": f"min(IF({chosen}, before, NULL))",
        f"{name}_from_ms": f"min(IF({chosen}, coalesce(before_ms, {_LEAST_MS}), NULL))",
        f"{name}_to": f"min({ends})",
        f"{name}_to_ms": f"min_by({_HOLE_END}, {ends})",
        f"{name}_repair_ms": f"max_by({_HOLE_END}, {ends})",
    }


def _with_origins(session: SparkSession, folded: DataFrame, context: RunContext) -> DataFrame:
    rules = [(origin, *rule) for origin, rule in context.origin_rules.items()]
    if not rules:
        unknown = "CAST(NULL AS BIGINT)"
        return folded.select("*", *named({"settled": "false", "after_ms": unknown, "shipped_ms": unknown}))
    return folded.join(F.broadcast(_small(session, rules, _ORIGIN_SCHEMA)), "origin", "left")


def _arrived() -> dict[str, str]:
    """How far the stream has arrived ; in the streams of tables with evidence ORDERED there are no holes."""
    first_ms = f"nullif(hole_from_ms, {_LEAST_MS})"
    return {
        "arrived": "coalesce(hole_from, reach)",
        "arrived_ms": case(("holes > 0", first_ms), default="reach_ms"),
    }


def _stream_code(context: RunContext) -> str:
    """The reason of `evidence.streams.judge_stream`; null for what is no asked stream."""
    since_ms = context.scope.since_ms
    complete = case(
        ("false" if since_ms is None else f"write_ms <= {since_ms}", "'baseline'"),
        ("arrived >= head_seq", "'covered'"),
        ("first_ms > after_ms OR arrived_ms > after_ms", "'after-cut'"),
    )
    decided = f"IF({complete} != 'baseline' AND {_filter_changed(context)}, 'filter-changed', {complete})"
    return case(
        ("heads = 0", "NULL"),
        ("head_seq IS NULL OR head_seq <= 0 OR origin IS NULL", "'unreadable-head'"),
        (f"{complete} IS NOT NULL", f"IF({known_true('settled')}, {decided}, 'unsettled')"),
        ("segments = 0", "'missing'"),
        ("holes = 0", "'behind'"),
        ("true" if context.rule.slave_settled else "stays > 0", "'gap'"),
        default="'may-fill'",
    )


def _filter_changed(context: RunContext) -> str:
    """Whether holes that are accepted may be of families that were left out then and are shipped now."""
    since_ms = "CAST(NULL AS BIGINT)" if context.scope.since_ms is None else str(context.scope.since_ms)
    unchanged = f"greatest(first_ms, {since_ms}) >= shipped_ms + {SINCE_MARGIN_MS}"
    return f"({_is_ordered('head_table', context)} AND NOT {known_true(unchanged)})"


def _stream_lag() -> str:
    incomplete = is_in("code", _codes_of(Status.BEHIND, Status.MISSING, Status.GAP))
    lag = "try_subtract(write_ms, IF(arrived > 0, arrived_ms, first_ms))"
    return case((f"{incomplete} AND {lag} IS NOT NULL", f"greatest({lag}, 0)"))


def _shown(context: RunContext) -> dict[str, str]:
    """The hole or the tail that is reported; null where nothing is known to be wrong."""
    name = "hole" if context.rule.slave_settled else "stay"

    def shown(what: str, tail: str, changed: str) -> str:
        return case(
            ("code = 'filter-changed'", changed),
            ("code = 'gap'", f"{name}{what}"),
            ("code = 'may-fill'", f"hole{what}"),
            ("code IN ('behind', 'missing')", tail),
        )

    from_ms = f"coalesce(nullif({shown('_from_ms', 'arrived_ms', 'first_ms')}, {_LEAST_MS}), first_ms)"
    one, until_ms = "CAST(1 AS BIGINT)", f"shipped_ms + {SINCE_MARGIN_MS}"
    extent = "code IN ('gap', 'may-fill', 'behind', 'missing', 'filter-changed')"
    return {
        "from_seq": shown("_from", "arrived", "CAST(0 AS BIGINT)"),
        "to_seq": shown("_to", "head_seq", "head_seq"),
        "written_from_ms": case((extent, from_ms)),
        "written_to_ms": shown("_to_ms", "write_ms", until_ms),
        "repair_to_ms": shown("_repair_ms", "write_ms", until_ms),
        "shown_holes": shown("s", one, one),
    }


def _later(context: RunContext) -> dict[str, str]:
    """Whether (1 or 0) and when the stream was written to after the shutdown time (`evidence.later`)."""
    if not known_shutdown(context.master):
        return {"later": "CAST(0 AS BIGINT)", "later_ms": "CAST(NULL AS BIGINT)"}
    bound = f"coalesce(after_ms, CAST({context.master.shutdown_ms} AS BIGINT))"
    later = known_true(f"heads > 0 AND code != 'baseline' AND write_ms > {bound}")
    return {"later": f"CAST(IF({later}, 1, 0) AS BIGINT)", "later_ms": f"IF({later}, write_ms, NULL)"}


def _stream_finding() -> str:
    """Null for a complete stream."""
    at_fault = f"code IS NOT NULL AND NOT ({is_in('code', _codes_of(Status.COMPLETE))})"
    same = ("region", "origin", "via", "from_seq", "to_seq", "written_from_ms", "written_to_ms", "repair_to_ms")
    columns = {name: name for name in (*same, "lag_ms", "start_key", "end_key")}
    return f"IF({at_fault}, {finding('code', table='head_table', holes='shown_holes', **columns)}, NULL)"


# -- regions -----------------------------------------------------------------------------------------------


def _fact_aggregates(context: RunContext) -> dict[str, str]:
    """What rows other than heads and segments say of a region."""
    is_region, is_unstamped = "kind = 'region'", "kind = 'unstamped'"
    is_load = "kind = 'fact' AND state = 'bulkload'"
    is_local_load = "kind = 'fact' AND state = 'localload'"
    is_change, is_content = (f"kind = 'fact' AND state = '{state}'" for state in (CHANGED, CONTENT))
    since_ms = context.scope.since_ms
    known = [time for time in (since_ms, context.master.coverage_ms) if time is not None]
    lineage = f"kind = 'fact' AND {is_in('state', LINEAGE)}"
    return {
        "region_rows": f"count_if({is_region})",
        "existing": f"count_if({is_region} AND NOT (state <=> '{SPLIT_PARENT}'))",
        "host": f"max(IF({is_region}, {_host(context)}, NULL))",
        "lineage": f"count_if({lineage})",
        "loads": f"count_if({is_load} AND {_is_later('write_ms', since_ms)})",
        "load_ms": f"max(IF({is_load}, write_ms, NULL))",
        "local_loads": f"count_if({is_local_load} AND {_is_later('write_ms', since_ms)})",
        "local_load_ms": f"max(IF({is_local_load}, write_ms, NULL))",
        "changes": f"count_if({is_change} AND {_is_later('write_ms', since_ms)})",
        "change_ms": f"max(IF({is_change}, write_ms, NULL))",
        "contents": f"count_if({is_content})",
        "content_ms": f"max(IF({is_content}, write_ms, NULL))",
        "unstamped": f"count_if({is_unstamped} AND {_is_later('write_ms', max(known, default=None))})",
        "unstamped_ms": f"max(IF({is_unstamped}, write_ms, NULL))",
        "replicated_ms": "max(IF(kind = 'replicated', write_ms, NULL))",
        "partial": f"collect_list(IF(kind = 'partial', struct({_FAMILY} AS family, write_ms), NULL))",
    }


def _host(context: RunContext) -> str:
    """`evidence.regions.host_code`: 0 fine, 1 untracked, 2 unhosted."""
    return case(
        (is_in("state", (SPLIT_PARENT, DISABLED)), "0"),
        (f"server IS NULL OR state != '{HOSTED}'", "2"),
        (is_in("server", sorted(context.tracked_servers)), "0"),
        default="1",
    )


def _is_later(time: str, bound_ms: int | None) -> str:
    """Whether a time is later than a bound; unknown ones are taken to be."""
    return "true" if bound_ms is None else f"coalesce({time} > {bound_ms}, true)"


def _region_aggregates(context: RunContext) -> dict[str, str]:
    sums = (
        "heads",
        "region_rows",
        "existing",
        "lineage",
        "loads",
        "local_loads",
        "changes",
        "contents",
        "unstamped",
        "later",
    )
    highest = (
        "table",
        "host",
        "load_ms",
        "local_load_ms",
        "change_ms",
        "content_ms",
        "unstamped_ms",
        "replicated_ms",
        "lag_ms",
        "later_ms",
    )
    return {
        **{name: f"sum({name})" for name in sums},
        **{name: f"max(`{name}`)" for name in highest},
        **{name: f"max(IF(region_rows > 0, {name}, NULL))" for name in ("start_key", "end_key")},
        "written_ms": "max(IF(heads > 0, write_ms, NULL))",
        "is_ordered": f"count_if({_is_ordered('head_table', context)}) > 0",
        "partial": "flatten(collect_list(partial))",
        "stream_status": f"max({_severity_of('code')})",
        "stream_findings": f"collect_list({_stream_finding()})",
    }


def _with_tables(session: SparkSession, by_region: DataFrame, context: RunContext) -> DataFrame:
    facts = [
        (
            *(t.table, t.described, t.replicated, SEVERITY[t.status], t.gone_accepted, t.loads_shipped),
            sorted(t.family_ids),
        )
        for t in context.tables
    ]
    if facts:
        return by_region.join(F.broadcast(_small(session, facts, _TABLE_SCHEMA)), "table", "left")
    flags = ("described", "replicated", "gone_accepted", "loads_shipped")
    unknown = {**dict.fromkeys(flags, "CAST(NULL AS BOOLEAN)"), "family_ids": "CAST(NULL AS ARRAY<STRING>)"}
    return by_region.select("*", *named({**unknown, "table_status": "CAST(NULL AS INT)"}))


def _flags(context: RunContext) -> dict[str, str]:
    member = f"existing > 0 AND {known_true('replicated')}"
    accepted = f"coalesce(gone_accepted, NOT {_is_later('greatest(written_ms, content_ms)', context.scope.since_ms)})"
    asked = f"(heads > 0 OR ({member}))"
    counted = (
        "(family_ids IS NULL OR part.family = '" + UNKNOWN_FAMILY + "' OR array_contains(family_ids, part.family))"
    )
    later = _is_later("part.write_ms", context.scope.since_ms)
    undescribed = f"heads > 0 AND region_rows > 0 AND NOT {known_true('described')}"
    return {
        "member": member,
        "host_code": case((f"{asked} AND host = 2", "'unhosted'"), (f"{asked} AND host = 1", "'untracked'")),
        "is_changed": f"changes > 0 AND ({member})",
        "is_gone": f"(heads > 0 OR contents > 0) AND region_rows = 0 AND lineage = 0 AND NOT {accepted}",
        "is_undescribed": undescribed if context.tables else "false",
        "is_partial": f"{asked} AND exists(partial, part -> {counted} AND {later})",
        "partial_ms": f"array_max(transform(filter(partial, part -> {counted}), part -> part.write_ms))",
        "is_loaded": f"loads > 0 AND NOT {known_true('loads_shipped')}",
    }


def _own_findings() -> str:
    same = {name: f"`{name}`" for name in ("table", "region", "start_key", "end_key")}

    def when(flag: str, code: str, **columns: str) -> str:
        return f"IF({flag}, {finding(code, **same, **columns)}, NULL)"

    return present(
        when("host_code IS NOT NULL", "host_code"),
        when("is_gone", "'truncated'"),
        when("is_undescribed", "'undescribed'"),
        when("is_changed", "'content-changed'", written_to_ms="change_ms"),
        when("is_loaded", "'bulkload'", written_to_ms="load_ms"),
        when("local_loads > 0", "'localload'", written_to_ms="local_load_ms"),
        when("unstamped > 0", "'unstamped'", written_to_ms="unstamped_ms"),
        when("is_partial", "'partial'", written_to_ms="partial_ms", repair_to_ms="partial_ms"),
    )


def _region_decision(context: RunContext) -> dict[str, str]:
    own = f"IF(size(own) > 0, {SEVERITY[Status.UNVERIFIABLE]}, 0)"
    return {
        "asked": "heads > 0 OR member OR is_loaded OR local_loads > 0 OR is_gone OR unstamped > 0",
        "status": f"greatest(stream_status, coalesce(table_status, 0), {own})",
        "findings": "concat(stream_findings, own)",
        "evidence": f"IF(is_ordered OR {_is_ordered('`table`', context)}, '{Evidence.ORDERED}', '{Evidence.EXACT}')",
    }


# -- the original's rule -----------------------------------------------------------------------------------


def _timestamps_code(context: RunContext) -> str:
    """What the original's two timestamps alone would say."""
    exact = context.evidence is not Evidence.TIMESTAMPS
    shutdown = f"replicated_ms > {context.master.shutdown_ms}" if known_shutdown(context.master) else "false"
    return case(
        ("heads = 0" if exact else "false", "'covered'"),
        ("replicated_ms IS NULL", "'missing'"),
        (f"{shutdown} OR replicated_ms >= written_ms", "'covered'"),
        default="'behind'",
    )


def _timestamp_regions(master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    ours, theirs = _event_columns(master_df, ("stream",)), _event_columns(slave_df, ("replicated",))
    folded = ours.unionByName(theirs).groupBy("region").agg(*named(_timestamp_aggregates()))
    coded = folded.select("*", *named({"timestamps": _timestamps_code(context)}))
    lag = "IF(timestamps = 'behind', try_subtract(written_ms, replicated_ms), NULL)"
    times = {"written_from_ms": "replicated_ms", "written_to_ms": "written_ms", "repair_to_ms": "written_ms"}
    at_fault = finding("timestamps", table="`table`", region="region", lag_ms="lag_ms", **times)
    decision = {
        "asked": "heads > 0",
        "evidence": f"'{Evidence.TIMESTAMPS}'",
        "status": _severity_of("timestamps"),
        "table_status": "CAST(NULL AS INT)",
        "start_key": "CAST(NULL AS BINARY)",
        "end_key": "CAST(NULL AS BINARY)",
        "findings": present(f"IF(timestamps != 'covered', {at_fault}, NULL)"),
    }
    later = f"heads > 0 AND written_ms > {context.master.shutdown_ms}" if known_shutdown(context.master) else "false"
    later = known_true(later)
    decision |= {"later": f"CAST(IF({later}, 1, 0) AS BIGINT)", "later_ms": f"IF({later}, written_ms, NULL)"}
    return coded.select("*", *named({"lag_ms": lag})).select("*", *named(decision))


def _timestamp_aggregates() -> dict[str, str]:
    return {
        "table": "max(`table`)",
        "heads": f"count_if({_IS_HEAD})",
        "written_ms": f"max(IF({_IS_HEAD}, write_ms, NULL))",
        "replicated_ms": f"max(IF({_IS_HEAD}, NULL, write_ms))",
    }


# -- helpers -----------------------------------------------------------------------------------------------


def _severity_of(code: str) -> str:
    """The severity of a stream's code; 0 for null."""
    worse = (Status.UNVERIFIABLE, Status.BEHIND, Status.MISSING, Status.GAP)
    return case(*((is_in(code, _codes_of(status)), str(SEVERITY[status])) for status in worse), default="0")


def _codes_of(*statuses: Status) -> list[str]:
    return [code for code, status in STREAM_CODES.items() if status in statuses]


def _small(session: SparkSession, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=schema))
