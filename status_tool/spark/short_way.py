"""The plan of the short way; what it asks is in `rules.evident`.

Rows of both sides are shuffled once, by region, and hashed twice, by stream and by region, without a sort.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from status_tool.rules import evident
from status_tool.rules.context import RunContext
from status_tool.rules.judged import REGION_COLUMNS
from status_tool.rules.later_writes import later_bound
from status_tool.rules.sql import known_true
from status_tool.spark.expressions import named
from status_tool.spark.judge import frame_of_records, rows_of_regions
from status_tool.vocabulary.verdicts import Evidence

_COLUMNS = ("region", "origin", "prev", "seq", "write_ms")
_KIND = ("table_key", "has_streams", "is_split")
_DECIDED = ("table", "status", "evidence")
MOST_IN_DOUBT = 200_000
"""Number of names, about 10 MB, that are sent to every task; with more regions in doubt, all are judged one by one."""


@dataclass(frozen=True, slots=True)
class Decided:
    """Regions that are evidently complete and have all of this in common."""

    table: str
    status: int
    """Severity: that of their table, or of what its rows show."""
    evidence: str
    regions: int


@dataclass(frozen=True)
class Evident:
    """Decisions of the short way, and the regions that it leaves in doubt."""

    decided: tuple[Decided, ...]
    in_doubt: int
    kept: DataFrame
    """Where their names are (`region`; null for those that are decided); to be let go of by `unpersist`."""
    regions: DataFrame
    """All that were looked at, to be looked at again: with their names, and whether each `is_evident`."""

    def in_doubt_of(self, rows: DataFrame) -> DataFrame:
        """Return the rows of regions in doubt, with the columns that regions are judged by."""
        names = self.kept.where("region IS NOT NULL").select("region")
        return rows.select(*REGION_COLUMNS).join(F.broadcast(names), "region", "left_semi")

    def regions_of(self, master_df: DataFrame) -> DataFrame:
        """Return those that are decided and in scope, by name: `table`, `region`, `start_key`, `status`."""
        # Each has one such row (`evident.kind_sql`).
        keys = master_df.where("kind = 'region'").select("region", "start_key")
        decided = self.regions.where("is_evident AND in_scope").select("table", "region", "status")
        return decided.join(keys, "region").select("table", "region", "start_key", "status")


def judge_evident(
    session: SparkSession, master_df: DataFrame, slave_df: DataFrame, left_out: Collection[str], context: RunContext
) -> Evident | None:
    """Decide what is evident, in one action; None if the short way leads nowhere."""
    kinds = list(evident.verdicts_of(context))
    if context.evidence is Evidence.TIMESTAMPS or not kinds:
        return None
    tables = frame_of_records(session, kinds, _KIND_SCHEMA).withColumn("table_key", F.expr(evident.table_key_sql()))
    # Spark evaluates what it has itself without a job.
    if len(set(tables.select("table_key").collect())) < len({kind.table for kind in kinds}):
        return None  # two names have the same key
    rows = rows_of_regions(
        master_df, slave_df, left_out, [*map(F.col, _COLUMNS), *named(evident.row_sql(context))]
    ).repartition("region")
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


_KIND_SCHEMA = pa.schema(
    {
        **{"table": pa.string(), "has_streams": pa.bool_(), "is_split": pa.bool_(), "in_scope": pa.bool_()},
        **{"status": pa.int32(), "evidence": pa.string()},
    }
)
_ORIGIN_SCHEMA = pa.schema(
    {"origin": pa.int64(), "settled": pa.bool_(), "is_drained": pa.bool_(), "bound_ms": pa.int64()}
)


@dataclass(frozen=True, slots=True)
class _Origin:
    origin: int
    settled: bool
    is_drained: bool
    bound_ms: int | None


def _regions(session: SparkSession, rows: DataFrame, context: RunContext, tables: DataFrame) -> DataFrame:
    origins = [
        _Origin(origin, rule.settled, origin in context.queues.drained, later_bound(context.master, rule.after_ms))
        for origin, rule in context.origin_rules.items()
    ]
    streams = rows.groupBy("region", "origin", "via").agg(*named(evident.stream_aggregates_sql()))
    known = streams.join(F.broadcast(frame_of_records(session, origins, _ORIGIN_SCHEMA)), "origin", "left")
    for columns in (evident.origin_sql(), {"is_whole": evident.is_whole_sql()}):
        known = known.select("*", *named(columns))
    regions = known.groupBy("region").agg(*named(evident.region_aggregates_sql()))
    of_kind = regions.select("*", *named(evident.kind_sql())).join(F.broadcast(tables), list(_KIND), "left")
    is_evident = {"is_evident": known_true("is_usual AND `table` IS NOT NULL")}
    return of_kind.select("region", *_DECIDED, "in_scope", *named(is_evident))
