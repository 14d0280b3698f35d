"""The verification on Spark: two actions, one for the few small rows and one for everything else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F

from status_tool.evidence.conclude import Tally, conclude
from status_tool.evidence.context import SMALL_KINDS, RunContext, build_context
from status_tool.evidence.findings import FILE_CODES, Finding
from status_tool.evidence.model import SEVERITY, Evidence, FileStatus, Header, Outcome, Scope
from status_tool.evidence.queues import QueueFacts
from status_tool.evidence.regions import LINEAGE, SPLIT_PARENT, TableAge
from status_tool.spark.finding_struct import to_finding, worst_first
from status_tool.spark.hbase import judge_regions, judge_streams, with_drained_heads
from status_tool.spark.hdfs import judge_files

_SMALL_COLUMNS = (
    "kind",
    "table",
    "origin",
    "server",
    "role",
    "live",
    "tracked",
    "started_ms",
    "flush_ms",
    "echoed",
    "read_ms",
    "final_ms",
    "gone_ms",
    "detail",
)


class Check:
    """One verification of two sets of rows in the wide schema.

    Rows that do not come from files (a live source) are read once and kept until `close`.
    """

    def __init__(
        self,
        session: SparkSession,
        master_df: DataFrame,
        slave_df: DataFrame,
        master: Header,
        slave: Header,
        scope: Scope,
        queues: QueueFacts | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        self._session = session
        self._headers = (master, slave)
        self._scope, self._queues, self._evidence = scope, queues or QueueFacts(), evidence
        self._kept: list[DataFrame] = []
        self._small_df, self._slave_df = self._keep(master_df), self._keep(slave_df)
        self._master_df = with_drained_heads(self._small_df, self._slave_df, self._queues.drained)

    def close(self) -> None:
        """Release what was kept."""
        for kept in self._kept:
            kept.unpersist()
        self._kept.clear()

    @cached_property
    def context(self) -> RunContext:
        """Servers and tables, collected and judged; this is the first action (none for timestamps)."""
        ours = [row.asDict() for row in self._small if row["side"] == "master" and row["kind"] != "age"]
        theirs = [row.asDict() for row in self._small if row["side"] == "slave"]
        ages = [_age(row) for row in self._small if row["kind"] == "age"]
        return build_context(ours, theirs, ages, *self._headers, self._scope, self._queues, self._evidence)

    @cached_property
    def _small(self) -> list[Row]:
        level = self._evidence or self._headers[0].evidence
        if not self._scope.check_hbase or level == Evidence.TIMESTAMPS:
            return []
        return _small_rows(self._small_df, self._slave_df).collect()

    def outcome(self) -> Outcome:
        """Decide everything; this is the second action."""
        context, tally = self.context, Tally()
        parts: list[DataFrame] = []
        observed: list[tuple[Observation, Any]] = []
        if context.check_hbase:
            parts.append(_observed(self.regions(), _region_counts(), _tally_regions, observed))
        if context.check_hdfs:
            parts.append(_observed(self.files(), _file_counts(), _tally_files, observed))
        found = _worst(parts, context.scope.max_problems) if parts else []
        for observation, fill in observed:
            fill(tally, observation.get)
        return conclude(context, tally, found)

    def regions(self) -> DataFrame:
        """One row an asked region."""
        judged = judge_regions(self._session, self._master_df, self._slave_df, self.context)
        return judged.where("asked")

    def streams(self) -> DataFrame:
        """One row an asked stream."""
        judged = judge_streams(self._session, self._master_df, self._slave_df, self.context)
        return judged.where(F.col("heads") > 0)

    def files(self) -> DataFrame:
        """One row a path of either side."""
        return judge_files(self._master_df, self._slave_df)

    def servers(self) -> list[dict[str, Any]]:
        """The `server` rows of both sides, with `side` and, for the master's, why an origin is not settled."""
        reasons = {origin.id: origin.reason for origin in self.context.origins}
        rows = [row.asDict() for row in self._small if row["kind"] == "server"]
        return [{**row, "unsettled": reasons.get(row["origin"]) if row["side"] == "master" else None} for row in rows]

    def _keep(self, rows: DataFrame) -> DataFrame:
        if rows.inputFiles():
            return rows
        self._kept.append(rows.persist(StorageLevel.MEMORY_AND_DISK))
        return self._kept[-1]


def verify(
    session: SparkSession,
    master_df: DataFrame,
    slave_df: DataFrame,
    master: Header,
    slave: Header,
    scope: Scope,
    queues: QueueFacts | None = None,
    evidence: Evidence | None = None,
) -> Outcome:
    """Verify two sets of rows in the wide schema; equal to `evidence.reference.verify_reference`.

    Errors of a live source come out as Spark's; `source.explain` turns them into the tool's.
    """
    with checking(session, master_df, slave_df, master, slave, scope, queues, evidence) as check:
        return check.outcome()


@contextmanager
def checking(*args: Any, **kwargs: Any) -> Iterator[Check]:
    """A `Check` that is closed at the end."""
    check = Check(*args, **kwargs)
    try:
        yield check
    finally:
        check.close()


def _small_rows(master_df: DataFrame, slave_df: DataFrame) -> DataFrame:
    """Servers and tables of both sides, and per table of the master what its region ids say."""
    sides = ((master_df, "master"), (slave_df, "slave"))
    small = [
        df.where(F.col("kind").isin(*SMALL_KINDS)).select(*_SMALL_COLUMNS, F.lit(side).alias("side"))
        for df, side in sides
    ]
    both = small[0].unionByName(small[1])
    return both.unionByName(_ages(master_df), allowMissingColumns=True)


def _ages(master_df: DataFrame) -> DataFrame:
    is_region = F.col("kind") == "region"
    existing = is_region & F.coalesce(F.col("state") != SPLIT_PARENT, F.lit(True))
    counted = is_region | ((F.col("kind") == "fact") & F.col("state").isin(*LINEAGE))
    region_id = F.col("region_id")
    ages = (
        master_df.where(F.col("kind").isin("region", "fact"))
        .where(counted & F.col("table").isNotNull())
        .groupBy("table")
        .agg(
            F.count_if(existing).alias("regions"),
            F.min(region_id).alias("oldest"),
            F.max(F.when(existing, region_id)).alias("newest"),
            F.count_if(region_id.isNull()).alias("unknown"),
        )
    )
    return ages.withColumns({"kind": F.lit("age"), "side": F.lit("master")})


def _age(row: Row) -> TableAge:
    return TableAge(row["table"], row["regions"], row["oldest"], row["newest"], row["unknown"] > 0)


def _observed(rows: DataFrame, counts: list[Column], fill: Any, observed: list[tuple[Observation, Any]]) -> DataFrame:
    """The findings of rows; the counts are taken in passing, over all rows."""
    observation = Observation()
    observed.append((observation, fill))
    return rows.observe(observation, *counts).select(F.inline("findings"))


def _worst(parts: list[DataFrame], limit: int) -> list[Finding]:
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return [to_finding(row) for row in rows.orderBy(*worst_first()).limit(max(1, limit)).collect()]


def _region_counts() -> list[Column]:
    counts = [F.count_if(F.col("status") == rank).alias(status) for status, rank in SEVERITY.items()]
    timestamps = F.count_if(F.col("timestamps") == "covered").alias("timestamps")
    return [*counts, timestamps, F.max("lag_ms").alias("lag_ms")]


def _tally_regions(tally: Tally, counted: dict[str, Any]) -> None:
    tally.regions = {status: counted[status] for status in SEVERITY}
    tally.timestamps_complete, tally.worst_lag_ms = counted["timestamps"], counted["lag_ms"]


def _file_counts() -> list[Column]:
    codes = [(status, [code for code, of in FILE_CODES.items() if of is status]) for status in FileStatus]
    counts = [F.count_if(F.col("code").isin(*those)).alias(status) for status, those in codes]
    return [*counts, F.count_if(F.col("master_rows") > 0).alias("master_files")]


def _tally_files(tally: Tally, counted: dict[str, Any]) -> None:
    tally.files = {status: counted[status] for status in FileStatus}
    tally.master_files = counted["master_files"]
