"""The verification on Spark: one action for the few small rows, and one for everything else.

A large check has one in between, which settles the regions that are evidently complete without sorting their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, reduce
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from status_tool.explain.conclude import Tally, beside_rows, conclude, tally_of
from status_tool.explain.problems import bound, to_problem
from status_tool.rules.context import RunContext, build_context
from status_tool.rules.judged import JudgedFile, JudgedRegion, judge_files, judge_regions
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.tables import TableAge, table_ages
from status_tool.spark.held import HeldRows
from status_tool.spark.judge import (
    FILE_SCHEMA,
    REGION_SCHEMA,
    collected,
    files_of,
    frame_of_records,
    judged_streams,
    named,
    regions_of,
    rows_of_files,
    rows_of_regions,
    to_finding,
    worst_first,
)
from status_tool.spark.short_way import Decided, Evident, judge_evident
from status_tool.spark.small_rows import SMALL_COLUMNS, small_rows
from status_tool.spark.source import is_read_anew
from status_tool.vocabulary.codes import FILE_CODES
from status_tool.vocabulary.findings import NO_PROOFS, Finding, RowProofs
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.outcome import Outcome, Problem
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import SEVERITY, STATUSES, Evidence, FileStatus

Frames = Callable[[], tuple[DataFrame, DataFrame]]
"""Returns the rows of the master and of the slave, for Spark."""
FEW_IN_DOUBT = 10_000
"""Number of regions up to which all are judged by this process, whatever size the whole is of."""


class Verification:
    """One verification of two sets of rows in the wide schema.

    Rows that do not come from files (a live source) are read once and kept until `close` (use it with
    `contextlib.closing`). Errors of a live source surface as Spark's; `source.explain` turns them into the tool's.
    """

    def __init__(
        self,
        frames: Frames,
        master: Header,
        slave: Header,
        scope: Scope,
        queues: QueueFacts | None = None,
        small: bool = False,
        rows: RowProofs = NO_PROOFS,
        held: HeldRows | None = None,
        left_out: Collection[str] = (),
    ) -> None:
        """`small`: without the short way, as for rows of small files.

        `held` are rows of both sides that this process has itself: then it judges them, and `frames` is called only
        for what is shown of every row.
        `left_out` are tables that are not in question.
        """
        self._frames = frames
        self._is_small = small
        self._headers = (master, slave)
        self._scope = scope
        self._rows = rows
        self._held = held
        self._not_asked = sorted(left_out)
        # Timestamps know of no origins, so the queues have none to settle.
        self._queues = (queues if self._level != Evidence.TIMESTAMPS else None) or QueueFacts()
        self._kept: list[DataFrame] = []
        self._tally = Tally()

    def close(self) -> None:
        """Release what was kept."""
        for kept in self._kept:
            kept.unpersist()
        self._kept.clear()

    @cached_property
    def _both(self) -> tuple[DataFrame, DataFrame]:
        ours, theirs = self._frames()
        return self._keep(ours), self._keep(theirs)

    @property
    def master_df(self) -> DataFrame:
        """The master's rows, for Spark."""
        return self._both[0]

    @property
    def slave_df(self) -> DataFrame:
        """The slave's rows, for Spark."""
        return self._both[1]

    @property
    def session(self) -> SparkSession:
        """The session of both."""
        return self.slave_df.sparkSession

    @cached_property
    def context(self) -> RunContext:
        """Servers and tables, collected and judged; this is the first action (none for timestamps)."""
        return build_context(*self._small, *self._headers, self._scope, self._queues, self._rows)

    @cached_property
    def _small(self) -> tuple[Sequence[Row], Sequence[Row], Sequence[TableAge]]:
        """Return what `build_context` judges of the master and of the slave."""
        if not self._scope.check_hbase or self._level == Evidence.TIMESTAMPS:
            return [], [], []
        if self._held is not None:
            return self._held.master, self._held.slave, table_ages(self._held.master)
        return small_rows(self.master_df, self.slave_df, self._not_asked)

    @property
    def _level(self) -> str:
        return self._headers[0].evidence

    def outcome(self) -> Outcome:
        """Decide everything; this is the second action."""
        context = self.context
        tally, found = self._counted()
        if context.check_hdfs:
            tally.entries = self._held.entries if self._held else _entries(self.master_df, self.slave_df)
        self._tally = tally
        return conclude(context, tally, found)

    def _counted(self) -> tuple[Tally, list[Finding]]:
        context = self.context
        parts: list[DataFrame] = []
        observed: list[tuple[Observation, Any]] = []
        tally, found = tally_of(self.regions_here or (), self.files_here or ())
        if context.check_hbase:
            _tally_evident(tally, self.evident)
            if self.regions_here is None:
                parts.append(_observed(self.regions_in_doubt, _region_counts(), _tally_regions, observed))
        if context.check_hdfs and self.files_here is None:
            counts = named({**files_by_status(), "master_files": "count_if(is_of_master)"})
            parts.append(_observed(self.files(), counts, _tally_files, observed))
        found += _worst(parts, context.scope.max_problems)
        # `Observation.get` waits for the first action on its rows: the collect above has to come first.
        for observation, fill in observed:
            fill(tally, observation.get)
        if tally.later_streams:
            tally.later = _later(self.regions_in_doubt)
        return tally, found

    @property
    def beside_rows(self) -> list[Finding]:
        """Findings, after `outcome`, that belong to no region or file."""
        return beside_rows(self.context, self._tally)

    def problems(self, limit: int) -> tuple[Problem, ...]:
        """Return the worst problems, as `outcome` lists them."""
        found = bound(self.beside_rows, _worst(self.findings, limit), limit)
        return tuple(to_problem(finding, self.context) for finding in found)

    @property
    def findings(self) -> list[DataFrame]:
        """The findings about regions and about files, for Spark."""
        frames = [self.regions_in_doubt] if self.context.check_hbase else []
        frames += [self.files()] if self.context.check_hdfs else []
        return [frame.select(F.inline("findings")) for frame in frames]

    def drawn_regions(self) -> DataFrame:
        """Return what a picture shows of the regions in scope: `table`, `region`, `start_key`, `status`, `lag_ms`."""
        judged = self.regions_in_doubt.select("table", "region", "start_key", "status", "lag_ms")
        if self._evident is None:
            return judged
        return judged.unionByName(self._evident.regions_of(self.master_df), allowMissingColumns=True)

    @property
    def evident(self) -> tuple[Decided, ...]:
        """Return what was decided of all others; empty if the check is small."""
        return self._evident.decided if self._evident is not None else ()

    @cached_property
    def _evident(self) -> Evident | None:
        """The short way pays where compiling its plan does."""
        if self._is_small or self._held is not None:
            return None
        return judge_evident(self.session, self.master_df, self.slave_df, self._left_out, self.context)

    @cached_property
    def _left_out(self) -> list[str]:
        """The tables that are not in question, or have regions and are not in scope."""
        _, _, ages = self._small
        return self._not_asked + [age.table for age in ages if not self.context.in_scope(age.table)]

    @cached_property
    def regions_here(self) -> list[JudgedRegion] | None:
        """The regions in doubt if this process has judged them; None if Spark has, as they are many."""
        if not self.context.check_hbase:
            return []
        if self._held is not None:
            return list(judge_regions(self._held.region_rows, self.context))
        if self._evident is None or self._evident.in_doubt > FEW_IN_DOUBT:
            return None
        rows = collected(self._rows_in_doubt(self._evident), by="region") if self._evident.in_doubt else []
        return list(judge_regions(rows, self.context))

    @cached_property
    def files_here(self) -> list[JudgedFile] | None:
        """The files if this process has judged them; None if Spark has."""
        if self._held is None:
            return None
        if not self.context.check_hdfs:
            return []
        rows = self._held.files
        if rows is None:
            rows = collected(rows_of_files(self.master_df, self.slave_df), by="path")
        return list(judge_files(rows, self.context.master.after_cut))

    @cached_property
    def regions(self) -> DataFrame:
        """One row per region in scope."""
        return self.regions_in_doubt if self._held is not None else self._judged(self._region_rows)

    @cached_property
    def regions_in_doubt(self) -> DataFrame:
        """Regions that are not evidently complete: all that anything is wrong with are among them."""
        if self.regions_here is not None:
            return frame_of_records(self.session, self.regions_here, REGION_SCHEMA)
        if self._evident is None:
            return self.regions
        # Their rows are few bytes, which Spark would give to one task, and much work.
        return self._judged(self._rows_in_doubt(self._evident), self.parallelism)

    def _rows_in_doubt(self, evident: Evident) -> DataFrame:
        sides = (evident.in_doubt_of(self.master_df, MASTER), evident.in_doubt_of(self.slave_df, SLAVE))
        return rows_of_regions(*sides, self._left_out)

    @property
    def _region_rows(self) -> DataFrame:
        return rows_of_regions(self.master_df, self.slave_df, self._left_out)

    def _judged(self, rows: DataFrame, tasks: int | None = None) -> DataFrame:
        """Persisted, because the overview uses them again and judging is expensive."""
        return self.keep(regions_of(rows, self.context, tasks))

    def streams(self) -> DataFrame:
        """Return one row per stream in scope."""
        return judged_streams(self._region_rows, self.context)

    def files(self) -> DataFrame:
        """Return one row per path of either side."""
        if self.files_here is not None:
            return frame_of_records(self.session, self.files_here, FILE_SCHEMA)
        return files_of(rows_of_files(self.master_df, self.slave_df), self.context.master.after_cut)

    @property
    def parallelism(self) -> int:
        """Number of tasks that run at once."""
        return self.session.sparkContext.defaultParallelism

    def servers(self) -> list[dict[str, Any]]:
        """Return the `server` rows of both sides, with `side` and, for the master's, why an origin is not settled."""
        reasons = {origin.id: origin.reason for origin in self.context.origins}
        ours, theirs, _ = self._small
        found = [
            {
                **{name: row.get(name) for name in SMALL_COLUMNS},
                "side": side,
                "unsettled": reasons.get(row["origin"]) if side == MASTER else None,
            }
            for side, rows in ((MASTER, ours), (SLAVE, theirs))
            for row in rows
            if row["kind"] == "server"
        ]
        return sorted(found, key=lambda row: (row["side"], str(row["server"]), str(row["role"])))

    def _keep(self, rows: DataFrame) -> DataFrame:
        # `inputFiles` names the files of any part of a union, whose other part may be a live source.
        if self._held is not None or (rows.inputFiles() and not is_read_anew(rows)):
            return rows
        # Each action would read a live source anew, and see it at another moment.
        return self.keep(rows)

    def keep(self, rows: DataFrame) -> DataFrame:
        """Return rows that are read or judged once, at the first action, and kept until `close`."""
        self._kept.append(rows.persist(StorageLevel.MEMORY_AND_DISK))
        return self._kept[-1]


def _observed(rows: DataFrame, counts: list[Column], fill: Any, observed: list[tuple[Observation, Any]]) -> DataFrame:
    """Return the findings of rows, and take the counts in passing, over all rows."""
    observation = Observation()
    observed.append((observation, fill))
    # `inline` drops what has no finding: the counts stand before it.
    return rows.observe(observation, *counts).select(F.inline("findings"))


def _worst(parts: list[DataFrame], limit: int) -> list[Finding]:
    if not parts:
        return []
    rows = reduce(DataFrame.unionByName, parts)
    # The sort reads every row, so that the counts of `_observed` are of all. A limit without it ends early, and Spark
    # makes an empty relation of a limit of 0 (`EliminateLimits`), for which nothing is judged.
    return [to_finding(row) for row in rows.orderBy(*worst_first()).limit(max(1, limit)).collect()]


def _region_counts() -> list[Column]:
    counts = {str(status): f"count_if(status = {rank})" for status, rank in SEVERITY.items()}
    timestamps = "count_if(timestamps = 'covered')"
    levels = {f"evidence {level}": f"count_if(evidence = '{level}')" for level in Evidence}
    return named({**counts, **levels, "timestamps": timestamps, "lag_ms": "max(lag_ms)", "later": "sum(later)"})


def _tally_evident(tally: Tally, evident: tuple[Decided, ...]) -> None:
    for one in evident:
        tally.regions[STATUSES[one.status]] += one.regions
        tally.evidence[Evidence(one.evidence)] += one.regions
        # What is evident is complete by the original's rule as well (`evident.kinds_of`).
        tally.timestamps_complete += one.regions


def _tally_regions(tally: Tally, counted: dict[str, Any]) -> None:
    """Beside what is evident."""
    for status in SEVERITY:
        tally.regions[status] += counted[str(status)]
    for level in Evidence:
        tally.evidence[level] += counted[f"evidence {level}"]
    tally.timestamps_complete += counted["timestamps"]
    tally.worst_lag_ms = counted["lag_ms"]  # an evident region has none
    tally.later_streams = counted["later"] or 0


def _later(regions: DataFrame) -> dict[str | None, tuple[int, int]]:
    """Return by table what was written after the shutdown time, by a third action if there is anything."""
    counts = regions.where("later > 0").groupBy("table").agg(*named({"later": "sum(later)", "newest": "max(later_ms)"}))
    return {row["table"]: (row["later"], row["newest"]) for row in counts.collect()}


def files_by_status() -> dict[str, str]:
    """Return SQL that counts the files of each status, by the status."""
    codes = {status: [f"'{code}'" for code, of in FILE_CODES.items() if of is status] for status in FileStatus}
    return {str(status): f"count_if(code IN ({', '.join(those)}))" for status, those in codes.items()}


def _entries(master_df: DataFrame, slave_df: DataFrame) -> dict[tuple[str, str], int]:
    """Return the `count` rows by side and name; a small third action."""
    sides = ((master_df, MASTER), (slave_df, SLAVE))
    counts = [df.where("kind = 'count'").select(F.lit(side).alias("side"), "name", "entries") for df, side in sides]
    summed = counts[0].unionByName(counts[1]).groupBy("side", "name").agg(F.sum("entries").alias("entries"))
    return {(row["side"], row["name"]): int(row["entries"] or 0) for row in summed.collect()}


def _tally_files(tally: Tally, counted: dict[str, Any]) -> None:
    tally.files = {status: counted[str(status)] for status in FileStatus}
    tally.master_files = counted["master_files"]
