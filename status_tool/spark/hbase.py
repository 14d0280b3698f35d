"""The HBase rules as DataFrame expressions; `status_tool.evidence.reference` says the same in plain Python.

Rows of both sides become one set of events that is shuffled once, by region, and sorted once: by stream,
the head before its segments. Running aggregates over that order find the holes; the aggregations over
streams and then over regions need no further shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from status_tool.evidence.context import RunContext
from status_tool.evidence.findings import STREAM_CODES
from status_tool.evidence.model import SEVERITY, Evidence, Status
from status_tool.evidence.origins import known_shutdown
from status_tool.evidence.regions import DISABLED, HOSTED, LINEAGE, SPLIT_PARENT
from status_tool.evidence.scoping import DEFAULT_NAMESPACE, STATE_TABLE, SYSTEM_NAMESPACE, TableFilter
from status_tool.evidence.segments import SINCE_MARGIN_MS
from status_tool.evidence.streams import CLUSTER_ID_BYTES, cluster_bytes
from status_tool.spark.finding_struct import finding, present

MASTER_KINDS = ("stream", "region", "fact")
SLAVE_KINDS = ("segment", "replicated", "unstamped")

_LEAST_MS = -(2**62)
"""Stands for an unknown time where a minimum must not skip it."""
_HOSTS = {0: None, 1: "untracked", 2: "unhosted"}
_STREAM = ("region", "origin", "via")
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
)
_ORIGIN_SCHEMA = pa.schema([("origin", pa.int64()), ("settled", pa.bool_()), ("after_ms", pa.int64())])
_TABLE_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("described", pa.bool_()),
        ("replicated", pa.bool_()),
        ("table_status", pa.int32()),
        ("gone_accepted", pa.bool_()),
        ("loads_shipped", pa.bool_()),
    ]
)


def with_drained_heads(master_df: DataFrame, slave_df: DataFrame, drained: frozenset[int]) -> DataFrame:
    """The master's rows and, of crashed origins that the queues settled, the heads that the slave knows.

    As `evidence.reference.drained_heads`.
    """
    if not drained:
        return master_df
    known = slave_df.where((F.col("kind") == "segment") & F.col("origin").isin(*sorted(drained)) & _is_possible())
    columns = ("table", "region", "origin", "via", "seq", "first_ms", "write_ms")
    heads = known.select(F.lit("stream").alias("kind"), *columns)
    return master_df.unionByName(heads, allowMissingColumns=True)


def judge_regions(session: SparkSession, master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """One row a region: `asked`, `status` (severity), `lag_ms`, `findings`, `timestamps` and more for debugging."""
    if context.evidence is Evidence.TIMESTAMPS:
        return _timestamp_regions(master_df, slave_df, context)
    return _regions(session, judge_streams(session, master_df, slave_df, context), context)


def judge_streams(session: SparkSession, master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """One row a stream with its `code`. Rows without `heads` are no asked streams: they carry region facts."""
    folded = (
        _with_holes(_events(master_df, slave_df, context), context)
        .groupBy(*_STREAM)
        .agg(*_head_aggregates(), *_segment_aggregates(context), *_fact_aggregates(context))
    )
    arrived = _with_origins(session, folded, context).withColumns(_arrived(context))
    coded = arrived.withColumns({"code": _stream_code(context), "lag_ms": _stream_lag()})
    return coded.withColumns(_shown(context))


# -- events ------------------------------------------------------------------------------------------------


def _events(master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    """All rows that count, clustered by region."""
    asked = _asked(context)
    ours = master_df.where(F.col("kind").isin(*MASTER_KINDS) & asked)
    shipped = ours.where((F.col("kind") != "stream") | _is_shipped(context.slave.cluster_id))
    theirs = slave_df.where(F.col("kind").isin(*SLAVE_KINDS) & asked & _is_possible())
    return _event_columns(shipped).unionByName(_event_columns(theirs)).repartition("region")


def _event_columns(rows: DataFrame) -> DataFrame:
    of_stream = F.col("kind").isin("stream", "segment")
    via = F.when(of_stream, F.coalesce(F.col("via"), F.lit(0).cast("bigint"))).alias("via")
    return rows.where(F.col("region").isNotNull()).select(*_EVENT_COLUMNS, via)


def _asked(context: RunContext) -> Column:
    table = F.col("table")
    system = table.startswith(f"{SYSTEM_NAMESPACE}:") | (table == STATE_TABLE)
    chosen = [_holds(one) for one in context.filters if not one.everything]
    return table.isNull() | reduce(lambda left, right: left & right, chosen, ~system)


def _holds(chosen: TableFilter) -> Column:
    table = F.col("table")
    space = F.when(table.contains(":"), F.substring_index(table, ":", 1)).otherwise(DEFAULT_NAMESPACE)
    return table.isin(*sorted(chosen.tables)) | space.isin(*sorted(chosen.namespaces))


def _is_shipped(slave_cluster_id: str) -> Column:
    """False where the slave is among the clusters that have consumed the stream's entries."""
    slave = cluster_bytes(slave_cluster_id)
    if slave is None:
        return F.lit(True)
    ids = F.hex("via_ids")
    width = 2 * CLUSTER_ID_BYTES
    starts = F.sequence(F.lit(1), F.length(ids) - F.lit(width - 1), F.lit(width))
    consumed = F.exists(starts, lambda at: ids.substr(at, F.lit(width)) == slave.hex().upper())
    return F.when(F.length(ids) >= width, ~consumed).otherwise(True)


def _is_possible() -> Column:
    """A segment as the trackers write them; every row of another kind."""
    valid = (F.col("prev") >= 0) & (F.col("seq") > F.col("prev"))
    return (F.col("kind") != "segment") | F.coalesce(valid, F.lit(False))


# -- streams -----------------------------------------------------------------------------------------------


def _with_holes(events: DataFrame, context: RunContext) -> DataFrame:
    """Per segment: how far the stream had arrived before it, and whether a hole that is asked ends at it."""
    is_segment = F.col("kind") == "segment"
    order = Window.partitionBy(*_STREAM).orderBy(is_segment, "prev", "seq", "first_ms", "write_ms", "recorded_ms")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    head = F.max(F.when(~is_segment, F.col("seq"))).over(before)
    reach = F.coalesce(F.max(F.when(is_segment, F.col("seq"))).over(before), F.lit(0).cast("bigint"))
    reach_ms = F.max(F.when(is_segment, F.col("write_ms"))).over(before)
    return events.withColumns({"head": head, "before": reach, "before_ms": reach_ms}).withColumn(
        "hole", is_segment & _is_hole(context)
    )


def _is_hole(context: RunContext) -> Column:
    if context.evidence is Evidence.ORDERED:
        return F.lit(False)
    hole = (F.col("before") < F.col("prev")) & (F.col("before") < F.col("head"))
    if context.scope.since_ms is not None:
        baseline = F.col("first_ms") <= context.scope.since_ms - SINCE_MARGIN_MS
        hole = hole & ~F.coalesce(baseline, F.lit(False))
    return F.coalesce(hole, F.lit(False))


def _head_aggregates() -> list[Column]:
    is_head = F.col("kind") == "stream"
    return [
        F.count_if(is_head).alias("heads"),
        F.max(F.when(is_head, F.col("seq"))).alias("head_seq"),
        F.min(F.when(is_head, F.col("first_ms"))).alias("first_ms"),
        F.max(F.when(is_head, F.col("write_ms"))).alias("write_ms"),
        F.max("table").alias("table"),
        F.max(F.when(is_head, F.col("table"))).alias("head_table"),
        F.max("start_key").alias("start_key"),
        F.max("end_key").alias("end_key"),
    ]


def _segment_aggregates(context: RunContext) -> list[Column]:
    is_segment = F.col("kind") == "segment"
    stays = F.col("hole") & _is_old(context)
    zero = F.lit(0).cast("bigint")
    return [
        F.count_if(is_segment).alias("segments"),
        F.coalesce(F.max(F.when(is_segment, F.col("seq"))), zero).alias("reach"),
        F.max(F.when(is_segment, F.col("write_ms"))).alias("reach_ms"),
        *_hole_aggregates("hole", F.col("hole")),
        *([] if context.rule.slave_settled else _hole_aggregates("stay", stays)),
    ]


def _hole_aggregates(name: str, chosen: Column) -> list[Column]:
    """The first of the chosen holes, their number, and where the last one ends. All grow with `before`."""
    ends = F.when(chosen, F.col("prev"))
    known_ms = F.coalesce(F.col("before_ms"), F.lit(_LEAST_MS))
    return [
        F.count_if(chosen).alias(f"{name}s"),
        F.min(F.when(chosen, F.col("before"))).alias(f"{name}_from"),
        F.min(F.when(chosen, known_ms)).alias(f"{name}_from_ms"),
        F.min(ends).alias(f"{name}_to"),
        F.min_by("first_ms", ends).alias(f"{name}_to_ms"),
        F.max_by("first_ms", ends).alias(f"{name}_repair_ms"),
    ]


def _is_old(context: RunContext) -> Column:
    return F.coalesce(F.col("recorded_ms") < context.rule.recorded_before_ms, F.lit(False))


def _with_origins(session: SparkSession, folded: DataFrame, context: RunContext) -> DataFrame:
    rules = [(origin, *rule) for origin, rule in context.origin_rules.items()]
    if not rules:
        return folded.withColumns(
            {"settled": F.lit(False), "after_ms": F.lit(None).cast("bigint")},
        )
    return folded.join(F.broadcast(_small(session, rules, _ORIGIN_SCHEMA)), "origin", "left")


def _arrived(context: RunContext) -> dict[str, Column]:
    """How far the stream has arrived (`end`, `end_ms`) as the level of evidence sees it."""
    first_ms = F.when(F.col("hole_from_ms") != _LEAST_MS, F.col("hole_from_ms"))
    return {
        "end": F.coalesce("hole_from", "reach"),
        "end_ms": F.when(F.col("holes") > 0, first_ms).otherwise(F.col("reach_ms")),
    }


def _stream_code(context: RunContext) -> Column:
    """The reason of `evidence.streams.judge_stream`; null for what is no asked stream."""
    complete = F.when(_is_baseline(context), "baseline").when(F.col("end") >= F.col("head_seq"), "covered")
    complete = complete.when(_is_after_cut(), "after-cut")
    gaps = F.when(F.col("stays") > 0, "gap") if not context.rule.slave_settled else F.lit("gap")
    unreadable = F.col("head_seq").isNull() | (F.col("head_seq") <= 0) | F.col("origin").isNull()
    return (
        F.when(F.col("heads") == 0, None)
        .when(unreadable, "unreadable-head")
        .when(complete.isNotNull() & ~F.coalesce("settled", F.lit(False)), "unsettled")
        .when(complete.isNotNull(), complete)
        .when(F.col("segments") == 0, "missing")
        .when(F.col("holes") > 0, F.coalesce(gaps, F.lit("may-fill")))
        .otherwise("behind")
    )


def _is_baseline(context: RunContext) -> Column:
    if context.scope.since_ms is None:
        return F.lit(False)
    return F.col("write_ms") <= context.scope.since_ms


def _is_after_cut() -> Column:
    return (F.col("first_ms") > F.col("after_ms")) | (F.col("end_ms") > F.col("after_ms"))


def _stream_lag() -> Column:
    since = F.when(F.col("end") > 0, F.col("end_ms")).otherwise(F.col("first_ms"))
    lag = F.try_subtract("write_ms", since)
    incomplete = F.col("code").isin(*_codes_of(Status.BEHIND, Status.MISSING, Status.GAP))
    return F.when(incomplete & lag.isNotNull(), F.greatest(lag, F.lit(0)))


def _shown(context: RunContext) -> dict[str, Column]:
    """The hole or the tail that is reported; null where nothing is known to be wrong."""
    name = "hole" if context.rule.slave_settled else "stay"

    def shown(what: str, tail: Column) -> Column:
        hole = F.when(F.col("code") == "gap", F.col(f"{name}{what}"))
        hole = hole.when(F.col("code") == "may-fill", F.col(f"hole{what}"))
        return hole.when(F.col("code").isin("behind", "missing"), tail)

    from_ms = shown("_from_ms", F.col("end_ms"))
    return {
        "from_seq": shown("_from", F.col("end")),
        "to_seq": shown("_to", F.col("head_seq")),
        "written_from_ms": F.when(
            F.col("code").isin("gap", "may-fill", "behind", "missing"),
            F.coalesce(F.when(from_ms != _LEAST_MS, from_ms), F.col("first_ms")),
        ),
        "written_to_ms": shown("_to_ms", F.col("write_ms")),
        "repair_to_ms": shown("_repair_ms", F.col("write_ms")),
        "shown_holes": shown("s", F.lit(1).cast("bigint")),
    }


def _stream_finding() -> Column:
    """Null for a complete stream."""
    at_fault = F.col("code").isNotNull() & ~F.col("code").isin(*_codes_of(Status.COMPLETE))
    same = ("code", "region", "origin", "via", "from_seq", "to_seq", "written_from_ms", "written_to_ms")
    columns = {name: F.col(name) for name in (*same, "repair_to_ms", "lag_ms", "start_key", "end_key")}
    return F.when(at_fault, finding(table=F.col("head_table"), holes=F.col("shown_holes"), **columns))


# -- regions -----------------------------------------------------------------------------------------------


def _fact_aggregates(context: RunContext) -> list[Column]:
    """What rows other than heads and segments say of a region."""
    kind, state, write_ms = F.col("kind"), F.col("state"), F.col("write_ms")
    is_region, is_fact = kind == "region", kind == "fact"
    is_load, is_unstamped = is_fact & (state == "bulkload"), kind == "unstamped"
    existing = is_region & F.coalesce(state != SPLIT_PARENT, F.lit(True))
    since_ms = context.scope.since_ms
    covered = [time for time in (since_ms, context.master.coverage_ms) if time is not None]
    return [
        F.count_if(is_region).alias("rows"),
        F.count_if(existing).alias("existing"),
        F.max(F.when(is_region, _host(context))).alias("host"),
        F.count_if(is_fact & state.isin(*LINEAGE)).alias("lineage"),
        F.count_if(is_load & _is_later(write_ms, since_ms)).alias("loads"),
        F.max(F.when(is_load, write_ms)).alias("load_ms"),
        F.count_if(is_unstamped & _is_later(write_ms, max(covered, default=None))).alias("unstamped"),
        F.max(F.when(is_unstamped, write_ms)).alias("unstamped_ms"),
        F.max(F.when(kind == "replicated", write_ms)).alias("replicated_ms"),
    ]


def _host(context: RunContext) -> Column:
    """`evidence.regions.host_code` as a key of `_HOSTS`."""
    state, server = F.col("state"), F.col("server")
    vouched = server.isin(*sorted(context.tracked_servers))
    return (
        F.when(state.isin(SPLIT_PARENT, DISABLED), 0)
        .when(server.isNull() | (state != HOSTED), 2)
        .otherwise(F.when(vouched, 0).otherwise(1))
    )


def _is_later(time: Column, bound_ms: int | None) -> Column:
    """Whether a time is later than a bound; unknown ones are taken to be."""
    return F.lit(True) if bound_ms is None else F.coalesce(time > bound_ms, F.lit(True))


def _regions(session: SparkSession, streams: DataFrame, context: RunContext) -> DataFrame:
    by_region = streams.groupBy("region").agg(*_region_aggregates())
    known = _with_tables(session, by_region, context)
    flagged = known.withColumns(_flags(context))
    own = _own_findings()
    judged = flagged.withColumns({"own": own, "timestamps": _timestamps_code(context)})
    table = F.coalesce("table_status", F.lit(0))
    unverifiable = F.when(F.size("own") > 0, SEVERITY[Status.UNVERIFIABLE]).otherwise(0)
    flagged_only = F.col("is_loaded") | F.col("is_unstamped")
    return judged.withColumns(
        {
            "asked": (F.col("heads") > 0) | F.col("member") | flagged_only,
            "status": F.greatest("stream_status", table, unverifiable),
            "findings": F.concat("stream_findings", "own"),
        }
    )


def _region_aggregates() -> list[Column]:
    def known(name: str) -> Column:
        return F.max(F.when(F.col("rows") > 0, F.col(name))).alias(name)

    sums = ("heads", "rows", "existing", "lineage", "loads", "unstamped")
    highest = ("table", "host", "load_ms", "unstamped_ms", "replicated_ms", "lag_ms")
    return [
        *(F.sum(name).alias(name) for name in sums),
        *(F.max(name).alias(name) for name in highest),
        F.max(F.when(F.col("heads") > 0, F.col("write_ms"))).alias("written_ms"),
        known("start_key"),
        known("end_key"),
        F.max(_severity_of(F.col("code"))).alias("stream_status"),
        F.collect_list(_stream_finding()).alias("stream_findings"),
    ]


def _with_tables(session: SparkSession, by_region: DataFrame, context: RunContext) -> DataFrame:
    facts = [
        (t.table, t.described, t.replicated, SEVERITY[t.status], t.gone_accepted, t.loads_shipped)
        for t in context.tables
    ]
    if not facts:
        nulls = {field.name: F.lit(None).cast("boolean") for field in _TABLE_SCHEMA if field.name != "table"}
        return by_region.withColumns({**nulls, "table_status": F.lit(0)})
    return by_region.join(F.broadcast(_small(session, facts, _TABLE_SCHEMA)), "table", "left")


def _flags(context: RunContext) -> dict[str, Column]:
    no = F.lit(False)
    member = (F.col("existing") > 0) & F.coalesce("replicated", no)
    asked = (F.col("heads") > 0) | member
    gone = (F.col("heads") > 0) & (F.col("rows") == 0) & (F.col("lineage") == 0)
    accepted = F.coalesce(F.col("gone_accepted"), ~_is_later(F.col("written_ms"), context.scope.since_ms))
    undescribed = (F.col("heads") > 0) & (F.col("rows") > 0) & ~F.coalesce("described", no)
    return {
        "member": member,
        "host_code": F.when(asked & (F.col("host") == 2), "unhosted").when(asked & (F.col("host") == 1), "untracked"),
        "is_gone": gone & ~accepted,
        "is_undescribed": undescribed if context.tables else no,
        "is_loaded": (F.col("loads") > 0) & ~F.coalesce("loads_shipped", no),
        "is_unstamped": F.col("unstamped") > 0,
    }


def _own_findings() -> Column:
    same = {name: F.col(name) for name in ("table", "region", "start_key", "end_key")}

    def when(flag: Column, code: Column, written_ms: Column | None = None) -> Column:
        timed = {} if written_ms is None else {"written_to_ms": written_ms}
        return F.when(flag, finding(code=code, **same, **timed))

    return present(
        when(F.col("host_code").isNotNull(), F.col("host_code")),
        when(F.col("is_gone"), F.lit("truncated")),
        when(F.col("is_undescribed"), F.lit("undescribed")),
        when(F.col("is_loaded"), F.lit("bulkload"), F.col("load_ms")),
        when(F.col("is_unstamped"), F.lit("unstamped"), F.col("unstamped_ms")),
    )


# -- the original's rule -----------------------------------------------------------------------------------


def _timestamps_code(context: RunContext) -> Column:
    written, replicated = F.col("written_ms"), F.col("replicated_ms")
    code = F.when(replicated.isNull(), "missing")
    if context.evidence is not Evidence.TIMESTAMPS:
        code = F.when(F.col("heads") == 0, "covered").when(replicated.isNull(), "missing")
    if known_shutdown(context.master):
        code = code.when(replicated > F.lit(context.master.shutdown_ms), "covered")
    return code.when(replicated >= written, "covered").otherwise("behind")


def _timestamp_regions(master_df: DataFrame, slave_df: DataFrame, context: RunContext) -> DataFrame:
    ours = _event_columns(master_df.where(F.col("kind") == "stream"))
    theirs = _event_columns(slave_df.where(F.col("kind") == "replicated"))
    is_head = F.col("kind") == "stream"
    folded = (
        ours.unionByName(theirs)
        .groupBy("region")
        .agg(
            F.max("table").alias("table"),
            F.count_if(is_head).alias("heads"),
            F.max(F.when(is_head, F.col("write_ms"))).alias("written_ms"),
            F.max(F.when(~is_head, F.col("write_ms"))).alias("replicated_ms"),
        )
    )
    coded = folded.withColumn("timestamps", _timestamps_code(context))
    lag = F.try_subtract("written_ms", "replicated_ms")
    lagging = coded.withColumn("lag_ms", F.when(F.col("timestamps") == "behind", lag))
    at_fault = finding(
        code=F.col("timestamps"),
        table=F.col("table"),
        region=F.col("region"),
        written_from_ms=F.col("replicated_ms"),
        written_to_ms=F.col("written_ms"),
        repair_to_ms=F.col("written_ms"),
        lag_ms=F.col("lag_ms"),
    )
    return lagging.withColumns(
        {
            "asked": F.col("heads") > 0,
            "status": _severity_of(F.col("timestamps")),
            "table_status": F.lit(None).cast("int"),
            "start_key": F.lit(None).cast("binary"),
            "end_key": F.lit(None).cast("binary"),
            "findings": present(F.when(F.col("timestamps") != "covered", at_fault)),
        }
    )


# -- helpers -----------------------------------------------------------------------------------------------


def _severity_of(code: Column) -> Column:
    """The severity of a stream's code; 0 for null."""
    expression = F.when(code.isin(*_codes_of(Status.COMPLETE)), 0)
    for status in (Status.UNVERIFIABLE, Status.BEHIND, Status.MISSING, Status.GAP):
        expression = expression.when(code.isin(*_codes_of(status)), SEVERITY[status])
    return expression.otherwise(0)


def _codes_of(*statuses: Status) -> list[str]:
    return [code for code, status in STREAM_CODES.items() if status in statuses]


def _small(session: SparkSession, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> DataFrame:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=schema))
