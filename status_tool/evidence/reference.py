"""The verification in plain Python: small, slow, and the oracle for the Spark one.

Rows are mappings of the wide schema (docs/formats.md); columns that are absent count as null.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from status_tool.evidence.conclude import INCOMPLETE_REGIONS, Tally, conclude
from status_tool.evidence.context import RunContext, build_context
from status_tool.evidence.files import FILE_CODES, judge_file
from status_tool.evidence.findings import Finding, worst
from status_tool.evidence.ids import UNKNOWN_FAMILY
from status_tool.evidence.later import later_bound
from status_tool.evidence.model import Evidence, FileStatus, Header, Outcome, Row, Scope, Status
from status_tool.evidence.origins import known_shutdown
from status_tool.evidence.queues import QueueFacts
from status_tool.evidence.regions import CHANGED, CONTENT, LINEAGE, SPLIT_PARENT, TableFacts, host_code, table_ages
from status_tool.evidence.segments import Segment, is_later, latest
from status_tool.evidence.streams import (
    STREAM_CODES,
    Head,
    StreamVerdict,
    came_through,
    drained_heads,
    head_of,
    is_shipped,
    judge_stream,
    stream_finding,
)

StreamKey = tuple[int | None, int]

_OWN_CODES = frozenset({"bulkload", "localload", "unstamped", "truncated"})
"""What makes a region count although it has neither a stream nor a place in a replicated table."""
_HOST_ORDER = (None, "untracked", "unhosted")


@dataclass(slots=True)
class _Region:
    """Everything that rows say of one region."""

    name: str
    heads: dict[StreamKey, list[Row]] = field(default_factory=lambda: defaultdict(list))
    segments: dict[StreamKey, list[Segment]] = field(default_factory=lambda: defaultdict(list))
    rows: list[Row] = field(default_factory=list)
    facts: list[Row] = field(default_factory=list)
    replicated_ms: int | None = None
    unstamped: list[Row] = field(default_factory=list)
    partial: list[Row] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)

    @property
    def table(self) -> str | None:
        return max(self.tables, default=None)


def verify_reference(
    master_rows: Iterable[Row],
    slave_rows: Iterable[Row],
    master: Header,
    slave: Header,
    scope: Scope,
    queues: QueueFacts | None = None,
) -> Outcome:
    """Verify rows of both sides; the meaning of every rule is in the modules of this package."""
    ours, theirs = list(master_rows), list(slave_rows)
    ages = table_ages(ours)
    context = build_context(ours, theirs, ages, master, slave, scope, queues)
    ours += drained_heads(theirs, context.queues.drained)
    tally, findings = Tally(), list[Finding]()
    if context.check_hbase:
        for region in _regions(ours, theirs, context).values():
            findings += _judge_region(region, context, tally)
    if context.check_hdfs:
        findings += _judge_files(ours, theirs, tally, context.master.cut_ms)
    return conclude(context, tally, findings)


def _regions(ours: list[Row], theirs: list[Row], context: RunContext) -> dict[str, _Region]:
    regions: dict[str, _Region] = {}
    for row in (*ours, *(row for row in theirs if row["kind"] != "fact")):
        name, table = row.get("region"), row.get("table")
        if name is None or not context.asked(table) or not _asked_row(row, context):
            continue
        region = regions.setdefault(name, _Region(name))
        if table is not None:
            region.tables.append(table)
        _add(region, row)
    return regions


def _asked_row(row: Row, context: RunContext) -> bool:
    if context.evidence is Evidence.TIMESTAMPS:
        return row["kind"] in ("stream", "replicated")
    if row["kind"] == "unstamped":
        return came_through(row.get("via_ids"), context.master.cluster_id)
    return row["kind"] != "stream" or is_shipped(row.get("via_ids"), context.slave.cluster_id)


def _add(region: _Region, row: Row) -> None:
    key = (row.get("origin"), row.get("via") or 0)
    match row["kind"]:
        case "stream":
            region.heads[key].append(row)
        case "segment" if row.get("prev") is not None and row.get("seq") is not None:
            times = (row.get("first_ms"), row.get("write_ms"), row.get("recorded_ms"), row.get("started_ms"))
            region.segments[key].append(Segment(row["prev"], row["seq"], *times))
        case "region":
            region.rows.append(row)
        case "fact":
            region.facts.append(row)
        case "replicated":
            region.replicated_ms = latest(region.replicated_ms, row.get("write_ms"))
        case "unstamped":
            region.unstamped.append(row)
        case "partial":
            region.partial.append(row)


def _judge_region(region: _Region, context: RunContext, tally: Tally) -> list[Finding]:
    """Judge one region, count it if it is asked, and return what is wrong with it."""
    if context.evidence is Evidence.TIMESTAMPS:
        return _judge_by_timestamps(region, context, tally)
    table = next((t for t in context.tables if t.table == region.table), None)
    judged = [_judge_stream(region, key, rows, context) for key, rows in region.heads.items()]
    own = list(_region_findings(region, table, context))
    if not (judged or _is_member(region, table) or _OWN_CODES & {f.code for f in own}):
        return []
    statuses = [verdict.status for _, verdict in judged] + [Status.UNVERIFIABLE for _ in own]
    _count(tally, worst([*statuses, table.status if table else Status.COMPLETE]))
    tally.evidence[_evidence_of(region, context)] += 1
    _count_later(region.table, judged, context, tally)
    lags = (verdict.lag_ms for _, verdict in judged if verdict.status in INCOMPLETE_REGIONS)
    tally.worst_lag_ms = latest(tally.worst_lag_ms, *lags)
    tally.timestamps_complete += _timestamps_code(region, context) == "covered"
    found = (stream_finding(head, verdict) for head, verdict in judged)
    return [*(finding for finding in found if finding), *own]


def _evidence_of(region: _Region, context: RunContext) -> Evidence:
    """What the verdict on a region rests on: ORDERED where its own table or that of one of its heads is."""
    heads = {head_of(region.name, *key, rows).table for key, rows in region.heads.items()}
    return Evidence.ORDERED if context.rule.ordered & {region.table, *heads} else Evidence.EXACT


def _count_later(
    table: str | None, judged: list[tuple[Head, StreamVerdict]], context: RunContext, tally: Tally
) -> None:
    for head, verdict in judged:
        after_ms = None if head.origin is None else context.origin_rules.get(head.origin, (False, None))[1]
        bound_ms = later_bound(context.master, after_ms)
        if verdict.code != "baseline" and bound_ms is not None and (head.write_ms or 0) > bound_ms:
            _add_later(tally, table, head.write_ms or 0)


def _add_later(tally: Tally, table: str | None, write_ms: int) -> None:
    streams, newest = tally.later.get(table, (0, 0))
    tally.later[table] = (streams + 1, max(newest, write_ms))


def _judge_stream(region: _Region, key: StreamKey, rows: list[Row], context: RunContext) -> tuple[Head, StreamVerdict]:
    head = head_of(region.name, *key, rows)
    unknown = (False, None, None)
    rules = unknown if key[0] is None else context.origin_rules.get(key[0], unknown)
    return head, judge_stream(head, region.segments[key], context.rule, *rules)


def _region_findings(region: _Region, table: TableFacts | None, context: RunContext) -> Iterator[Finding]:
    since_ms = context.scope.since_ms
    keys = (
        max((row["start_key"] for row in region.rows if row.get("start_key") is not None), default=None),
        max((row["end_key"] for row in region.rows if row.get("end_key") is not None), default=None),
    )

    def found(code: str, written_ms: int | None = None) -> Finding:
        return Finding(
            code,
            table=region.table,
            region=region.name,
            written_to_ms=written_ms,
            start_key=keys[0],
            end_key=keys[1],
        )

    member = bool(region.heads) or _is_member(region, table)
    hosts = [host_code(r.get("state"), r.get("server"), context.tracked_servers) for r in region.rows]
    host = max(hosts, key=_HOST_ORDER.index, default=None)
    if member and host:
        yield found(host)
    if _is_gone(region, table, context):
        yield found("truncated")
    if region.heads and region.rows and context.tables and not (table and table.described):
        yield found("undescribed")
    changes = [fact.get("write_ms") for fact in region.facts if fact.get("state") == CHANGED]
    if _is_member(region, table) and any(is_later(time, since_ms) for time in changes):
        yield found("content-changed", latest(*changes))
    loads = [fact.get("write_ms") for fact in region.facts if fact.get("state") == "bulkload"]
    if any(is_later(time, since_ms) for time in loads) and not (table and table.loads_shipped):
        yield found("bulkload", latest(*loads))
    local = [fact.get("write_ms") for fact in region.facts if fact.get("state") == "localload"]
    if any(is_later(time, since_ms) for time in local):
        yield found("localload", latest(*local))
    unstamped = [row.get("write_ms") for row in region.unstamped]
    if any(is_later(time, latest(since_ms, context.master.coverage_ms)) for time in unstamped):
        yield found("unstamped", latest(*unstamped))
    partial = [row.get("write_ms") for row in region.partial if _is_asked_family(row.get("name"), table)]
    if member and any(is_later(time, since_ms) for time in partial):
        yield replace(found("partial", latest(*partial)), repair_to_ms=latest(*partial))


def _is_asked_family(family: str | None, table: TableFacts | None) -> bool:
    return table is None or family in (None, UNKNOWN_FAMILY) or family in table.family_ids


def _is_member(region: _Region, table: TableFacts | None) -> bool:
    existing = any(row.get("state") != SPLIT_PARENT for row in region.rows)
    return existing and table is not None and table.replicated


def _is_gone(region: _Region, table: TableFacts | None, context: RunContext) -> bool:
    states = {fact.get("state") for fact in region.facts}
    if not (region.heads or CONTENT in states) or region.rows or states & set(LINEAGE):
        return False
    if table is not None:
        return not table.gone_accepted
    had = [fact.get("write_ms") for fact in region.facts if fact.get("state") == CONTENT]
    written_ms = latest(_written_ms(region), *had)
    return written_ms is None or is_later(written_ms, context.scope.since_ms)


def _written_ms(region: _Region) -> int | None:
    return latest(*(row.get("write_ms") for rows in region.heads.values() for row in rows))


def _timestamps_code(region: _Region, context: RunContext) -> str:
    """What the original's rule says: replicated after the shutdown, or as late as written."""
    written_ms, replicated_ms = _written_ms(region), region.replicated_ms
    if context.evidence is not Evidence.TIMESTAMPS and not region.heads:
        return "covered"
    if replicated_ms is None:
        return "missing"
    if known_shutdown(context.master) and replicated_ms > (context.master.shutdown_ms or 0):
        return "covered"
    return "covered" if written_ms is not None and replicated_ms >= written_ms else "behind"


def _judge_by_timestamps(region: _Region, context: RunContext, tally: Tally) -> list[Finding]:
    if not region.heads:
        return []
    code, written_ms = _timestamps_code(region, context), _written_ms(region)
    _count(tally, STREAM_CODES[code])
    tally.evidence[Evidence.TIMESTAMPS] += 1
    bound_ms = later_bound(context.master, None)
    if bound_ms is not None and (written_ms or 0) > bound_ms:
        _add_later(tally, region.table, written_ms or 0)
    if code == "covered":
        tally.timestamps_complete += 1
        return []
    replicated_ms = region.replicated_ms
    lag = written_ms - replicated_ms if written_ms is not None and replicated_ms is not None else None
    tally.worst_lag_ms = latest(tally.worst_lag_ms, lag)
    return [
        Finding(
            code,
            table=region.table,
            region=region.name,
            written_from_ms=replicated_ms,
            written_to_ms=written_ms,
            repair_to_ms=written_ms,
            lag_ms=lag,
        )
    ]


def _count(tally: Tally, status: Status) -> None:
    tally.regions[status] += 1


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
