"""A whole verification in plain Python, by the plain form of every rule: what Spark's verification is held equal to.

The simulation and the unit tests judge by it; `test_spark_verify.py` shows that it says the same as Spark.
"""

from __future__ import annotations

from collections.abc import Iterable

from status_tool.explain.conclude import Tally, conclude
from status_tool.rules import timestamps
from status_tool.rules.context import RunContext, build_context
from status_tool.rules.files import judge_file
from status_tool.rules.later_writes import later_bound, written_later
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.regions import Region, RegionVerdict, judge_region
from status_tool.rules.segments import latest
from status_tool.rules.streams import came_through, drained_heads, is_shipped
from status_tool.rules.tables import table_ages
from status_tool.vocabulary.codes import FILE_CODES, STREAM_CODES
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.row_proofs import NO_PROOFS, RowProofs
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Evidence, FileStatus


def verify_reference(
    master_rows: Iterable[Row],
    slave_rows: Iterable[Row],
    master: Header,
    slave: Header,
    scope: Scope,
    queues: QueueFacts | None = None,
    rows: RowProofs = NO_PROOFS,
) -> Outcome:
    """Verify rows of both sides."""
    ours, theirs = list(master_rows), list(slave_rows)
    ages = table_ages(ours)
    context = build_context(ours, theirs, ages, master, slave, scope, queues, rows)
    ours += drained_heads(theirs, context.queues.drained)
    tally, findings = Tally(), list[Finding]()
    if context.check_hbase:
        for region in _regions(ours, theirs, context).values():
            findings += _judged(region, context, tally)
    if context.check_hdfs:
        findings += _judge_files(ours, theirs, tally, context.master.cut_ms)
    return conclude(context, tally, findings)


def _regions(ours: list[Row], theirs: list[Row], context: RunContext) -> dict[str, Region]:
    regions: dict[str, Region] = {}
    for row in (*ours, *(row for row in theirs if row["kind"] != "fact")):
        name, table = row.get("region"), row.get("table")
        if name is None or not context.in_scope(table) or not _asked_row(row, context):
            continue
        region = regions.setdefault(name, Region(name))
        if table is not None:
            region.tables.append(table)
        region.add(row)
    return regions


def _asked_row(row: Row, context: RunContext) -> bool:
    if context.evidence is Evidence.TIMESTAMPS:
        return row["kind"] in ("stream", "replicated")
    if row["kind"] == "unstamped":
        return came_through(row.get("via_ids"), context.master.cluster_id)
    if row["kind"] != "stream":
        return True
    families = context.queues.families
    return is_shipped(row.get("via_ids"), context.slave.cluster_id) and families.ships(
        row.get("table"), row.get("family")
    )


def _judged(region: Region, context: RunContext, tally: Tally) -> list[Finding]:
    """Judge one region, count it if it is in scope, and return what is wrong with it."""
    if context.evidence is Evidence.TIMESTAMPS:
        return _by_timestamps(region, context, tally)
    verdict = judge_region(region, context)
    if verdict is None:
        return []
    tally.regions[verdict.status] += 1
    tally.evidence[verdict.evidence] += 1
    tally.worst_lag_ms = latest(tally.worst_lag_ms, verdict.lag_ms)
    tally.timestamps_complete += timestamps.timestamps_code(region, context) == "covered"
    _count_later(region.table, verdict, context, tally)
    return list(verdict.findings)


def _count_later(table: str | None, judged: RegionVerdict, context: RunContext, tally: Tally) -> None:
    for head, verdict in judged.streams:
        after_ms = None if head.origin is None else context.origin_rules.get(head.origin, (False, None))[1]
        if written_later(verdict.code, head.write_ms, later_bound(context.master, after_ms)):
            _add_later(tally, table, head.write_ms or 0)


def _add_later(tally: Tally, table: str | None, write_ms: int) -> None:
    streams, newest = tally.later.get(table, (0, 0))
    tally.later[table] = (streams + 1, max(newest, write_ms))


def _by_timestamps(region: Region, context: RunContext, tally: Tally) -> list[Finding]:
    judged = timestamps.judge_by_timestamps(region, context)
    if judged is None:
        return []
    code, found = judged
    tally.regions[STREAM_CODES[code]] += 1
    tally.evidence[Evidence.TIMESTAMPS] += 1
    tally.timestamps_complete += code == "covered"
    if timestamps.written_later(region, context):
        _add_later(tally, region.table, region.written_ms or 0)
    tally.worst_lag_ms = latest(tally.worst_lag_ms, found.lag_ms if found else None)
    return [found] if found else []


def _judge_files(ours: list[Row], theirs: list[Row], tally: Tally, cut_ms: int) -> list[Finding]:
    sides: dict[str, tuple[list[Row], list[Row]]] = {}
    for side, rows in enumerate((ours, theirs)):
        for row in rows:
            if row["kind"] == "file" and row.get("path") is not None:
                sides.setdefault(row["path"], ([], []))[side].append(row)
    found = [judge_file(path, *rows, cut_ms) for path, rows in sides.items()]
    for finding in found:
        tally.files[FILE_CODES[finding.code]] += 1
    tally.master_files = sum(bool(rows[0]) for rows in sides.values())
    for name, rows_of_side in (("master", ours), ("slave", theirs)):
        for row in rows_of_side:
            if row["kind"] == "count":
                counted = (name, str(row["name"]))
                tally.entries[counted] = tally.entries.get(counted, 0) + int(row["entries"] or 0)
    return [finding for finding in found if FILE_CODES[finding.code] is not FileStatus.MATCH]
