"""The plan for streams and regions; the rules are in `rules.streams`, `.segments`, `.regions` and `.timestamps`.

Rows of both sides become one set of events that is shuffled once, by region, and sorted once: by stream,
the head before its segments. Running aggregates over that order find the holes; the aggregations over
streams and then over regions need no further shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from status_tool.rules import timestamps
from status_tool.rules.context import RunContext
from status_tool.rules.later_writes import later_sql
from status_tool.rules.regions import (
    decision_sql,
    fact_aggregates_sql,
    flags_sql,
    region_aggregates_sql,
    region_findings_sql,
)
from status_tool.rules.scoping import in_scope_sql
from status_tool.rules.segments import before_sql, is_hole_sql, valid_sql
from status_tool.rules.sql import IS_HEAD, IS_SEGMENT, case, is_in
from status_tool.rules.streams import (
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
)
from status_tool.spark.expressions import named
from status_tool.vocabulary.verdicts import SEVERITY, Evidence

MASTER_KINDS = ("stream", "region", "fact")
SLAVE_KINDS = ("segment", "partial", "replicated", "unstamped")

STREAM = ("region", "origin", "via")
EVENT_COLUMNS = (
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
    "family",
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

    As `rules.streams.drained_heads`.
    """
    if not drained:
        return master_df
    heads = slave_df.where(is_drained_sql(drained)).select(*named({"kind": "'stream'"}), *DRAINED_COLUMNS)
    return master_df.unionByName(heads, allowMissingColumns=True)


def judge_regions(session: SparkSession, master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """One row per region: `in_scope`, `status` (severity), `lag_ms`, `findings`, `timestamps` and more to debug."""
    if context.evidence is Evidence.TIMESTAMPS:
        return _timestamp_regions(master_df, slave_df, context)
    streams = judge_streams(session, master_df, slave_df, context)
    by_region = streams.groupBy("region").agg(*named(region_aggregates_sql(context)))
    flagged = _with_tables(session, by_region, context).select("*", *named(flags_sql(context)))
    own = {"own": region_findings_sql(), "timestamps": timestamps.timestamps_code_sql(context)}
    return flagged.select("*", *named(own)).select("*", *named(decision_sql(context)))


def judge_streams(session: SparkSession, master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """One row per stream with its `code`. Rows without `heads` are not streams in scope: they carry region facts."""
    rule = context.rule
    holed = _with_holes(events(master_df, slave_df, context), rule)
    aggregates = {**head_aggregates_sql(), **segment_aggregates_sql(rule), **fact_aggregates_sql(context)}
    folded = holed.groupBy(*STREAM).agg(*named(aggregates))
    arrived = with_origins(session, folded, context).select("*", *named(arrived_sql()))
    coded = arrived.select("*", *named({"code": code_sql(rule)}))
    return coded.select("*", *named({"lag_ms": lag_sql(), **hole_sql(rule), **later_sql(context.master)}))


# -- events ------------------------------------------------------------------------------------------------


def events(
    master_df: DataFrame, slave_df: DataFrame, context: RunContext, columns: Sequence[Column | str] = EVENT_COLUMNS
) -> DataFrame:
    """All rows that count, clustered by region."""
    in_scope = in_scope_sql(context.filters)
    families = context.queues.families.ships_sql()
    shipped = f"NOT ({IS_HEAD}) OR ({is_shipped_sql(context.slave.cluster_id)} AND {families})"
    possible = f"NOT ({IS_SEGMENT}) OR {valid_sql()}"
    ours = _event_columns(master_df, MASTER_KINDS, columns, f"({in_scope}) AND ({shipped})")
    ours_too = f"NOT (kind = 'unstamped') OR {came_through_sql(context.master.cluster_id)}"
    theirs = _event_columns(slave_df, SLAVE_KINDS, columns, f"({in_scope}) AND ({possible}) AND ({ours_too})")
    return ours.unionByName(theirs).repartition("region")


def _event_columns(
    rows: DataFrame, kinds: tuple[str, ...], columns: Sequence[Column | str] = EVENT_COLUMNS, condition: str = "true"
) -> DataFrame:
    via = case((is_in("kind", ("stream", "segment", "partial")), "coalesce(via, CAST(0 AS BIGINT))"))
    counting = rows.where(f"{is_in('kind', kinds)} AND region IS NOT NULL AND ({condition})")
    return counting.select(*columns, *named({"via": via}))


# -- streams -----------------------------------------------------------------------------------------------


def _with_holes(events: DataFrame, rule: StreamRule) -> DataFrame:
    """Per segment: how far the stream had arrived before it, and whether a hole in scope ends at it."""
    return events.select("*", *named(before_sql(rule.ordered, rule.since))).select("*", *named({"hole": is_hole_sql()}))


def with_origins(session: SparkSession, folded: DataFrame, context: RunContext) -> DataFrame:
    """Streams with what holds for their origin; null for one that is not known."""
    rules = [(origin, *rule) for origin, rule in context.origin_rules.items()]
    if not rules:
        unknown = "CAST(NULL AS BIGINT)"
        return folded.select("*", *named({"settled": "false", "after_ms": unknown, "shipped_ms": unknown}))
    return folded.join(F.broadcast(_small(session, rules, _ORIGIN_SCHEMA)), "origin", "left")


# -- regions -----------------------------------------------------------------------------------------------


def _with_tables(session: SparkSession, by_region: DataFrame, context: RunContext) -> DataFrame:
    if context.tables:
        return by_region.join(F.broadcast(tables_frame(session, context)), "table", "left")
    flags = ("described", "replicated", "gone_accepted", "loads_shipped")
    unknown = {**dict.fromkeys(flags, "CAST(NULL AS BOOLEAN)"), "family_ids": "CAST(NULL AS ARRAY<STRING>)"}
    return by_region.select("*", *named({**unknown, "table_status": "CAST(NULL AS INT)"}))


def tables_frame(session: SparkSession, context: RunContext) -> DataFrame:
    """What is known of each table that is described, one row each."""
    facts = [
        (
            *(t.table, t.described, t.replicated, SEVERITY[t.status], t.gone_accepted, t.loads_shipped),
            sorted(t.family_ids),
        )
        for t in context.tables
    ]
    return _small(session, facts, _TABLE_SCHEMA)


def _timestamp_regions(master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    ours, theirs = _event_columns(master_df, ("stream",)), _event_columns(slave_df, ("replicated",))
    folded = ours.unionByName(theirs).groupBy("region").agg(*named(timestamps.timestamp_aggregates_sql()))
    coded = folded.select("*", *named({"timestamps": timestamps.timestamps_code_sql(context)}))
    lagged = coded.select("*", *named({"lag_ms": timestamps.lag_sql()}))
    return lagged.select("*", *named(timestamps.decision_sql(context)))


def _small(session: SparkSession, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=schema))
