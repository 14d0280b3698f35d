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
from status_tool.evidence.ids import UNKNOWN_FAMILY
from status_tool.evidence.later import later_sql
from status_tool.evidence.model import SEVERITY, Evidence, Status
from status_tool.evidence.origins import known_shutdown
from status_tool.evidence.regions import CHANGED, CONTENT, DISABLED, HOSTED, LINEAGE, SPLIT_PARENT
from status_tool.evidence.scoping import in_scope_sql
from status_tool.evidence.segments import before_sql, is_hole_sql, is_later_sql, is_ordered_sql, valid_sql
from status_tool.evidence.sql import IS_HEAD, IS_SEGMENT, case, finding, is_in, known_true, present
from status_tool.evidence.streams import (
    DRAINED_COLUMNS,
    StreamRule,
    arrived_sql,
    came_through_sql,
    code_sql,
    head_aggregates_sql,
    hole_sql,
    is_drained_sql,
    is_shipped_sql,
    lag_sql,
    segment_aggregates_sql,
    severity_sql,
    stream_finding_sql,
)
from status_tool.spark.expressions import named

MASTER_KINDS = ("stream", "region", "fact")
SLAVE_KINDS = ("segment", "partial", "replicated", "unstamped")

_STREAM = ("region", "origin", "via")
_FAMILY = f"coalesce(name, '{UNKNOWN_FAMILY}')"
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

    As `evidence.streams.drained_heads`.
    """
    if not drained:
        return master_df
    heads = slave_df.where(is_drained_sql(drained)).select(*named({"kind": "'stream'"}), *DRAINED_COLUMNS)
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
    rule = context.rule
    holed = _with_holes(_events(master_df, slave_df, context), rule)
    aggregates = {**head_aggregates_sql(), **segment_aggregates_sql(rule), **_fact_aggregates(context)}
    folded = holed.groupBy(*_STREAM).agg(*named(aggregates))
    arrived = _with_origins(session, folded, context).select("*", *named(arrived_sql()))
    coded = arrived.select("*", *named({"code": code_sql(rule)}))
    return coded.select("*", *named({"lag_ms": lag_sql(), **hole_sql(rule), **later_sql(context.master)}))


# -- events ------------------------------------------------------------------------------------------------


def _events(master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """All rows that count, clustered by region."""
    asked = in_scope_sql(context.filters)
    shipped = f"NOT ({IS_HEAD}) OR {is_shipped_sql(context.slave.cluster_id)}"
    possible = f"NOT ({IS_SEGMENT}) OR {valid_sql()}"
    ours = _event_columns(master_df, MASTER_KINDS, f"({asked}) AND ({shipped})")
    ours_too = f"NOT (kind = 'unstamped') OR {came_through_sql(context.master.cluster_id)}"
    theirs = _event_columns(slave_df, SLAVE_KINDS, f"({asked}) AND ({possible}) AND ({ours_too})")
    return ours.unionByName(theirs).repartition("region")


def _event_columns(rows: DataFrame, kinds: tuple[str, ...], condition: str = "true") -> DataFrame:
    via = case((is_in("kind", ("stream", "segment", "partial")), "coalesce(via, CAST(0 AS BIGINT))"))
    counting = rows.where(f"{is_in('kind', kinds)} AND region IS NOT NULL AND ({condition})")
    return counting.select(*_EVENT_COLUMNS, *named({"via": via}))


# -- streams -----------------------------------------------------------------------------------------------


def _with_holes(events: DataFrame, rule: StreamRule) -> DataFrame:
    """Per segment: how far the stream had arrived before it, and whether a hole that is asked ends at it."""
    return events.select("*", *named(before_sql(rule.ordered))).select(
        "*", *named({"hole": is_hole_sql(rule.since_ms)})
    )


def _with_origins(session: SparkSession, folded: DataFrame, context: RunContext) -> DataFrame:
    rules = [(origin, *rule) for origin, rule in context.origin_rules.items()]
    if not rules:
        unknown = "CAST(NULL AS BIGINT)"
        return folded.select("*", *named({"settled": "false", "after_ms": unknown, "shipped_ms": unknown}))
    return folded.join(F.broadcast(_small(session, rules, _ORIGIN_SCHEMA)), "origin", "left")


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
        "loads": f"count_if({is_load} AND {is_later_sql('write_ms', since_ms)})",
        "load_ms": f"max(IF({is_load}, write_ms, NULL))",
        "local_loads": f"count_if({is_local_load} AND {is_later_sql('write_ms', since_ms)})",
        "local_load_ms": f"max(IF({is_local_load}, write_ms, NULL))",
        "changes": f"count_if({is_change} AND {is_later_sql('write_ms', since_ms)})",
        "change_ms": f"max(IF({is_change}, write_ms, NULL))",
        "contents": f"count_if({is_content})",
        "content_ms": f"max(IF({is_content}, write_ms, NULL))",
        "unstamped": f"count_if({is_unstamped} AND {is_later_sql('write_ms', max(known, default=None))})",
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
        "is_ordered": f"count_if({is_ordered_sql('head_table', context.rule.ordered)}) > 0",
        "partial": "flatten(collect_list(partial))",
        "stream_status": f"max({severity_sql('code')})",
        "stream_findings": f"collect_list({stream_finding_sql()})",
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
    accepted = (
        f"coalesce(gone_accepted, NOT {is_later_sql('greatest(written_ms, content_ms)', context.scope.since_ms)})"
    )
    asked = f"(heads > 0 OR ({member}))"
    counted = (
        "(family_ids IS NULL OR part.family = '" + UNKNOWN_FAMILY + "' OR array_contains(family_ids, part.family))"
    )
    later = is_later_sql("part.write_ms", context.scope.since_ms)
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
    ordered = f"is_ordered OR {is_ordered_sql('`table`', context.rule.ordered)}"
    own = f"IF(size(own) > 0, {SEVERITY[Status.UNVERIFIABLE]}, 0)"
    return {
        "asked": "heads > 0 OR member OR is_loaded OR local_loads > 0 OR is_gone OR unstamped > 0",
        "status": f"greatest(stream_status, coalesce(table_status, 0), {own})",
        "findings": "concat(stream_findings, own)",
        "evidence": f"IF({ordered}, '{Evidence.ORDERED}', '{Evidence.EXACT}')",
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
        "status": severity_sql("timestamps"),
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
        "heads": f"count_if({IS_HEAD})",
        "written_ms": f"max(IF({IS_HEAD}, write_ms, NULL))",
        "replicated_ms": f"max(IF({IS_HEAD}, NULL, write_ms))",
    }


# -- helpers -----------------------------------------------------------------------------------------------


def _small(session: SparkSession, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=schema))
