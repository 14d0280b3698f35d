"""All findings by table and cause, and regions by table and status: two small actions over what is judged."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from status_tool.evidence.model import SEVERITY, Outcome, Status, Verdict
from status_tool.evidence.overview import Cause, Overview, TableLine, causes, merged, overview
from status_tool.spark.expressions import FIELDS, named, to_finding
from status_tool.spark.verify import Check

_UNNAMED = "(table not recorded)"


def overview_of(check: Check, outcome: Outcome) -> Overview:
    """The overview of a check that has been decided."""
    context = check.context
    found = causes([*context.run_findings, *context.table_findings] if context.check_hbase else [])
    frames = []
    if outcome.hbase is not None and any(n for status, n in outcome.hbase.regions.items() if status != Status.COMPLETE):
        frames.append(check.regions())
    if outcome.hdfs is not None and any(n for status, n in outcome.hdfs.files.items() if status != "match"):
        frames.append(check.files())
    for frame in frames:
        found += _causes(frame)
    # A complete run has nothing to look up, and a small one should not wait for it.
    tables = _tables(check.regions()) if context.check_hbase and outcome.verdict is not Verdict.COMPLETE else []
    return overview(context, _folded(found), tables)


def _folded(found: list[Cause]) -> list[Cause]:
    """What holds for a table and what holds for its regions may have the same code."""
    by_key: dict[tuple[str | None, str], Cause] = {}
    for cause in found:
        key = (cause.worst.table, cause.worst.code)
        by_key[key] = merged(by_key[key], cause) if key in by_key else cause
    return list(by_key.values())


def _causes(judged: DataFrame) -> list[Cause]:
    """As `evidence.overview.causes`."""
    found = judged.select(F.inline("findings"))
    # `Finding`'s order: rank, lag, then names; within one table and code rank is the same.
    order = "struct(-coalesce(lag_ms, -1), region, origin, via, path)"
    whole = f"struct({', '.join(f'`{name}`' for name in FIELDS)})"

    def unless_unknown(unknown: str, value: str) -> str:
        return f"IF(count_if({unknown}) > 0, NULL, {value})"

    rows = found.groupBy("table", "code").agg(
        *named(
            {
                "count": "count(1)",
                "most_ms": "max(lag_ms)",
                "from_ms": unless_unknown("written_from_ms IS NULL", "min(written_from_ms)"),
                "to_ms": unless_unknown("repair_to_ms IS NULL", "max(repair_to_ms)"),
                "first_key": unless_unknown("start_key IS NULL OR length(start_key) = 0", "min(start_key)"),
                "last_key": unless_unknown("end_key IS NULL OR length(end_key) = 0", "max(end_key)"),
                "worst": f"min_by({whole}, {order})",
            }
        )
    )
    return [_cause(row) for row in rows.collect()]


def _cause(row: Row) -> Cause:
    worst = to_finding(row["worst"])
    keys = [None if key is None else bytes(key) for key in (row["first_key"], row["last_key"])]
    return Cause(worst, row["count"], row["most_ms"], row["from_ms"], row["to_ms"], *keys)


def _tables(regions: DataFrame) -> list[TableLine]:
    counts = {str(status): f"count_if(status = {rank})" for status, rank in SEVERITY.items()}
    holes = "filter(findings, one -> one.code = 'gap')"
    oldest = f"min(array_min(transform({holes}, one -> one.written_from_ms)))"
    rows = regions.groupBy("table").agg(*named({**counts, "lag_ms": "max(lag_ms)", "oldest_ms": oldest})).collect()
    return [
        TableLine(
            row["table"] or _UNNAMED,
            {status: row[str(status)] for status in SEVERITY},
            row["lag_ms"],
            row["oldest_ms"],
        )
        for row in rows
    ]
