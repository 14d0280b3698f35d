"""Counts: all findings by table and cause, regions by table and status, in two small actions over what is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from status_tool.explain.overview import Cause, causes, merged_causes, overview
from status_tool.rules.judged import JudgedFile, JudgedRegion
from status_tool.rules.segments import latest
from status_tool.spark.judge import FIELDS, named, to_finding
from status_tool.spark.verify import Verification, files_by_status
from status_tool.vocabulary.outcome import (
    LAG_BOUNDS_MS,
    Drawing,
    Folder,
    Outcome,
    Overview,
    ServerState,
    TableLine,
    Tile,
)
from status_tool.vocabulary.verdicts import SEVERITY, STATUSES, Status, Verdict

_UNNAMED = "(table not recorded)"
MAX_TILES = 5_000
"""Up to this many regions a page draws each; beyond, neighbours share a tile."""
MAX_FOLDERS = 100
MAX_DRAWN_PROBLEMS = 50_000


def overview_of(check: Verification, outcome: Outcome, drawn: bool = False) -> Overview:
    """Return the overview of a check that has been decided; `drawn` adds what a page's pictures need."""
    context = check.context
    found = causes(check.beside_rows)
    if outcome.hbase is not None and any(n for status, n in outcome.hbase.regions.items() if status != Status.COMPLETE):
        found += _found(check.regions_here, lambda: check.regions_in_doubt)
    if outcome.hdfs is not None and any(n for status, n in outcome.hdfs.files.items() if status != "match"):
        found += _found(check.files_here, check.files)
    # A complete run has nothing to look up, and a small one should not wait for it.
    tables = _tables(check) if context.check_hbase and outcome.verdict is not Verdict.COMPLETE else []
    whole = overview(context, merged_causes(found), tables)
    return replace(whole, drawing=_drawing(check, outcome)) if drawn else whole


def _found(here: Sequence[JudgedRegion | JudgedFile] | None, frame: Callable[[], DataFrame]) -> list[Cause]:
    if here is None:
        return _causes(frame())
    return causes(finding for one in here for finding in one.findings)


def _drawing(check: Verification, outcome: Outcome) -> Drawing:
    hbase, folders = outcome.hbase, _folders(check.files()) if outcome.hdfs else []
    return Drawing(
        tiles=tuple(_tiles(check.drawn_regions(), sum(hbase.regions.values()))) if hbase else (),
        lags=_lags(check.regions_in_doubt) if hbase else (),
        folders=tuple(folders[:MAX_FOLDERS]),
        more_folders=max(0, len(folders) - MAX_FOLDERS),
        problems=check.problems(max(MAX_DRAWN_PROBLEMS, check.context.scope.max_problems)),
        servers=tuple(_servers(check)),
    )


def _tiles(regions: DataFrame, total: int) -> Iterator[Tile]:
    """Yield the tiles: at most `MAX_TILES` plus one per table, however many regions there are."""
    each = max(1, -(-total // MAX_TILES))
    place = "(row_number() OVER (PARTITION BY `table` ORDER BY start_key, region) - 1)"
    placed = regions.select("table", "region", "status", "lag_ms", *named({"bin": f"CAST({place} / {each} AS INT)"}))
    rows = placed.groupBy("table", "bin").agg(
        *named(
            {
                "worst": "max(status)",
                "regions": "count(1)",
                "at_fault": "count_if(status > 0)",
                "of": "max_by(region, struct(status, coalesce(lag_ms, 0)))",
            }
        )
    )
    for row in rows.orderBy("table", "bin").collect():
        worst = STATUSES[row["worst"]]
        yield Tile(row["table"] or _UNNAMED, worst, row["regions"], row["at_fault"], row["of"])


def _lags(regions: DataFrame) -> tuple[int, ...]:
    lower = (0, *LAG_BOUNDS_MS)
    counts = {
        f"b{number}": f"count_if(status > 0 AND lag_ms >= {low}" + (f" AND lag_ms < {high})" if high else ")")
        for number, (low, high) in enumerate(zip(lower, (*LAG_BOUNDS_MS, None), strict=True))
    }
    row = regions.agg(*named(counts)).collect()[0]
    return tuple(row[name] for name in counts)


def _folders(files: DataFrame) -> list[Folder]:
    """The folders with the most problems, then the biggest; one more than is shown indicates that there are more."""
    counts = files_by_status()
    folder = files.select(
        "code", *named({"folder": "coalesce(nullif(regexp_extract(path, '(?s)^(.*)/', 1), ''), '/')"})
    )
    grouped = folder.groupBy("folder").agg(*named({**counts, "total": "count(1)"}))
    rows = grouped.orderBy(F.expr("total - `match`").desc(), F.col("total").desc(), "folder").limit(MAX_FOLDERS + 1)
    return [Folder(row["folder"], {name: row[name] for name in counts}) for row in rows.collect()]


def _servers(check: Verification) -> Iterator[ServerState]:
    for row in check.servers() if check.context.check_hbase else []:
        known = (row["side"], row["server"] or "", row["role"] or "", row["live"], row["tracked"], row["echoed"])
        yield ServerState(*known, row["flush_ms"], row["unsettled"] or "")


def _causes(judged: DataFrame) -> list[Cause]:
    """Return what `explain.overview.causes` does."""
    found = judged.select(F.inline("findings"))
    # `Finding`'s order: rank, lag, then names; within one table and code rank is the same.
    order = "struct(-coalesce(lag_ms, -1), region, origin, via, path)"
    whole = f"struct({', '.join(f'`{name}`' for name in FIELDS)})"

    # `min` and `max` skip nulls: a repair by the known bounds alone would leave rows out.
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


def _tables(check: Verification) -> list[TableLine]:
    counted: list[tuple[str | None, int, int, int | None]] = []
    counted += ((one.table, one.status, one.regions, None) for one in check.evident)
    if check.regions_here is not None:
        counted += [(region.table, region.status, 1, region.lag_ms) for region in check.regions_here]
    else:
        of_each = named({"regions": "count(1)", "lag_ms": "max(lag_ms)"})
        counted += map(tuple, check.regions_in_doubt.groupBy("table", "status").agg(*of_each).collect())
    lines: dict[str | None, tuple[dict[Status, int], int | None]] = {}
    for table, status, regions, lag_ms in counted:
        counts, worst_ms = lines.get(table) or (dict.fromkeys(SEVERITY, 0), None)
        counts[STATUSES[status]] += regions
        lines[table] = counts, latest(worst_ms, lag_ms)
    return [TableLine(table or _UNNAMED, *line) for table, line in lines.items()]
