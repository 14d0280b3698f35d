"""The plan of the short way; its rules are in `rules.evident`.

Rows of both sides are shuffled once, by region, and hashed twice, by stream and by region, without a sort.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from status_tool.rules import evident
from status_tool.rules.context import RunContext
from status_tool.rules.later_writes import later_sql
from status_tool.rules.regions import IS_REGION, flags_sql
from status_tool.rules.streams import arrived_sql, code_sql
from status_tool.spark.expressions import named
from status_tool.spark.hbase import EVENT_COLUMNS, STREAM, events, tables_frame, with_origins
from status_tool.vocabulary.verdicts import Evidence

_COLUMNS = ("region", "origin", "prev", "seq", "first_ms", "write_ms")
_DECIDED = ("table", "status", "evidence", "timestamps")
MOST_IN_DOUBT = 200_000
"""So many names, about 10 MB, are sent to every task; where more regions are in doubt, all are judged in full."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Regions that are evidently complete and have all of this in common."""

    table: str
    status: int
    """Severity: that of their table, or of what its rows show."""
    evidence: str
    timestamps: str
    regions: int


@dataclass(frozen=True)
class Evident:
    """What the short way has decided, and which regions it leaves in doubt."""

    decided: tuple[Decided, ...]
    in_doubt: int
    kept: DataFrame
    """Where their names are (`region`; null for those that are decided); to be let go of by `unpersist`."""
    regions: DataFrame
    """All that were looked at, to be looked at again: with their names, and whether each `is_evident`."""

    def in_doubt_of(self, rows: DataFrame) -> DataFrame:
        """The rows of regions in doubt, with the columns that streams and regions are judged by."""
        names = self.kept.where("region IS NOT NULL").select("region")
        return rows.select(*EVENT_COLUMNS, "via", "via_ids").join(F.broadcast(names), "region", "left_semi")

    def regions_of(self, master_df: DataFrame) -> DataFrame:
        """Those that are decided and in scope, by name: `table`, `region`, `start_key`, `status`."""
        # Each has one such row (`evident.decision_sql`).
        keys = master_df.where(IS_REGION).select("region", "start_key")
        decided = self.regions.where("is_evident AND in_scope").select("table", "region", "status")
        return decided.join(keys, "region").select("table", "region", "start_key", "status")


def judge_evident(
    session: SparkSession, master_df: DataFrame, slave_df: DataFrame, context: RunContext
) -> Evident | None:
    """Decide what is evident, in one action; None where the short way leads nowhere."""
    if context.evidence is Evidence.TIMESTAMPS or not context.tables:
        return None
    tables = tables_frame(session, context).select("*", *named({"table_key": evident.table_key_sql()}))
    # Spark evaluates what it has itself without a job.
    if len(set(tables.select("table_key").collect())) < len(context.tables):
        return None  # two names have the same key
    rows = events(master_df, slave_df, context, [*map(F.col, _COLUMNS), *named(evident.row_sql(context))])
    regions = _regions(session, rows, context, tables)
    name = named({"region": "IF(is_evident, NULL, region)"})
    counted = regions.where("in_scope OR NOT is_evident").groupBy(*_DECIDED, *name).agg(*named({"regions": "count(1)"}))
    counted = counted.persist(StorageLevel.MEMORY_AND_DISK)
    in_doubt = counted.where("region IS NOT NULL").count()
    if in_doubt > MOST_IN_DOUBT:
        counted.unpersist()
        return None
    decided = tuple(Decided(**row.asDict()) for row in counted.where("region IS NULL").drop("region").collect())
    return Evident(decided, in_doubt, counted, regions)


def _regions(session: SparkSession, rows: DataFrame, context: RunContext, tables: DataFrame) -> DataFrame:
    streams = rows.groupBy(*STREAM).agg(*named(evident.stream_aggregates_sql()))
    heads = tables.select("table_key", F.col("table").alias("head_table"))
    known = with_origins(session, streams.join(F.broadcast(heads), "table_key", "left"), context)
    for columns in (
        evident.whole_sql(context),
        arrived_sql(),
        {"code": code_sql(context.rule)},
        later_sql(context.master),
    ):
        known = known.select("*", *named(columns))
    regions = known.groupBy("region").agg(*named(evident.number_aggregates_sql(context)))
    regions = regions.join(F.broadcast(tables), "table_key", "left").select("*", *named(evident.without_blemish_sql()))
    flagged = regions.select("*", *named(flags_sql(context)))
    return flagged.select("region", "table", *named(evident.decision_sql(context)))
