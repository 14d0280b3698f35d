"""A verification of rows in this process, without Spark: the code that a small check runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from pyspark.sql import SparkSession

from status_tool.explain.conclude import conclude, tally_of
from status_tool.rules.context import build_context
from status_tool.rules.judged import judge_files, judge_regions
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.tables import AGE_COLUMNS, TableAge, table_ages
from status_tool.spark.held import HeldRows
from status_tool.vocabulary.findings import NO_PROOFS, RowProofs
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.outcome import Group, Outcome, Problem
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Scope


def verify_rows(
    master_rows: Iterable[Row],
    slave_rows: Iterable[Row],
    master: Header,
    slave: Header,
    scope: Scope,
    queues: QueueFacts | None = None,
    rows: RowProofs = NO_PROOFS,
) -> Outcome:
    """Verify rows of both sides."""
    held = HeldRows(list(master_rows), list(slave_rows))
    context = build_context(held.master, held.slave, _ages(held.master), master, slave, scope, queues, rows)
    regions = judge_regions(held.region_rows, context) if context.check_hbase else ()
    files = judge_files(_files(held), context.master.after_cut) if context.check_hdfs else ()
    tally, found = tally_of(regions, files)
    return conclude(context, replace(tally, entries=held.entries if context.check_hdfs else {}), found)


def _ages(rows: Iterable[Row]) -> list[TableAge]:
    """By the tool's own rule, once for the same regions: of thousands of judgements most are of the same ones."""
    regions = (row for row in rows if row["kind"] in ("region", "fact"))
    return _ages_of(tuple(tuple(row.get(name) for name in AGE_COLUMNS.names) for row in regions))


@cache
def _ages_of(rows: tuple[tuple[Any, ...], ...]) -> list[TableAge]:
    return table_ages(dict(zip(AGE_COLUMNS.names, row, strict=True)) for row in rows)


def _files(held: HeldRows) -> list[Row]:
    sides = ((MASTER, held.master), (SLAVE, held.slave))
    rows = [{**row, "side": side} for side, rows in sides for row in rows if row["kind"] == "file" and row.get("path")]
    return sorted(rows, key=lambda row: str(row["path"]))


def groups_of(problems: Iterable[Problem]) -> tuple[Group, ...]:
    """Group problems by table, kind and cause."""
    found: dict[tuple[str | None, str, str], Group] = {}
    for problem in problems:
        key = (problem.table, problem.kind, problem.code or problem.detail)
        known = found.get(key)
        if known is None:
            found[key] = Group(
                str(problem.kind), problem.code, problem.table, 1, problem, problem.advice or "", problem.lag_ms
            )
        else:
            lag = max(known.lag_ms or 0, problem.lag_ms or 0) or None
            found[key] = replace(known, count=known.count + 1, lag_ms=lag)
    return tuple(found.values())


def no_spark() -> SparkSession:
    """Fail: nothing of a test needs Spark."""
    raise AssertionError("Spark was asked for")
