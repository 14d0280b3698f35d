"""Rows of both sides in, judged regions and files out: what workers of Spark, a small check and the simulation run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from status_tool.rules.context import RunContext
from status_tool.rules.files import content_of, judge_file
from status_tool.rules.later_writes import later_bound, written_later
from status_tool.rules.origins import known_shutdown
from status_tool.rules.regions import Region, RegionVerdict, judge_region
from status_tool.rules.segments import latest
from status_tool.rules.streams import (
    Head,
    StreamVerdict,
    came_through,
    drained_heads,
    is_shipped,
    lag_between,
    stream_finding,
)
from status_tool.vocabulary.codes import STREAM_CODES
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.verdicts import SEVERITY, Evidence

REGION_KINDS = {
    MASTER: ("stream", "region", "fact"),
    SLAVE: ("segment", "replicated", "unstamped"),
}
"""Kinds of rows that are read of a region, by side."""
REGION_COLUMNS = (
    "kind",
    "table",
    "region",
    "origin",
    "via",
    "via_ids",
    "prev",
    "seq",
    "first_ms",
    "write_ms",
    "recorded_ms",
    "start_key",
    "end_key",
    "state",
    "server",
    "name",
    "started_ms",
    "family",
)
"""Columns that are read of these rows."""


@dataclass(frozen=True, slots=True)
class JudgedRegion:
    """A region in scope, as counts, lists, dumps and pictures need it."""

    table: str | None
    region: str
    start_key: bytes | None
    end_key: bytes | None
    status: int
    """Severity."""
    findings: tuple[Finding, ...]
    table_status: int | None
    """Severity of its table as such; None if the table is not known."""
    evidence: Evidence
    heads: int
    written_ms: int | None
    replicated_ms: int | None
    timestamps: str
    """Answer of the original's rule: a code of `STREAM_CODES`."""
    lag_ms: int | None
    later: int = 0
    """Number of streams that were written to after the shutdown time."""
    later_ms: int | None = None
    """The newest of these writes."""


@dataclass(frozen=True, slots=True)
class JudgedStream:
    """A stream in scope, as dumps show it."""

    table: str | None
    region: str
    origin: int | None
    via: int
    family: str | None
    code: str
    written_seq: int | None
    first_written_ms: int | None
    written_ms: int | None
    segments: int
    arrived_seq: int
    arrived_ms: int | None
    highest_arrived_seq: int
    highest_arrived_ms: int | None
    holes: int
    origin_settled: bool | None
    after_cut_ms: int | None
    from_seq: int | None
    to_seq: int | None
    written_from_ms: int | None
    written_to_ms: int | None
    lag_ms: int | None


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A path of either side."""

    path: str
    code: str
    note: str | None
    findings: tuple[Finding, ...]
    """None if it matches."""
    is_of_master: bool
    master: Row | None
    """Part of it that is compared; of several contents one."""
    slave: Row | None


def region_rows(rows: Iterable[Row], side: str) -> list[Row]:
    """Return those rows of a side that regions are judged by."""
    kinds = REGION_KINDS[side]
    return [row for row in rows if row["kind"] in kinds and row.get("region") is not None]


def judge_regions(rows: Iterable[Row], context: RunContext) -> Iterator[JudgedRegion]:
    """Yield the regions in scope. Of the rows of both sides (`region_rows`) those of one region follow each other."""
    judge = _by_timestamps if context.evidence is Evidence.TIMESTAMPS else _by_streams
    return (judged for region in _regions(rows, context) if (judged := judge(region, context)) is not None)


def judge_streams(rows: Iterable[Row], context: RunContext) -> Iterator[JudgedStream]:
    """Yield the streams in scope, over the same rows."""
    for region in _regions(rows, context):
        verdict = judge_region(region, context)
        if verdict is not None:
            yield from (_stream(head, judged, context) for head, judged in verdict.streams)


def judge_files(rows: Iterable[Row], after_cut: range) -> Iterator[JudgedFile]:
    """Yield every path, of `file` rows with their `side`. Those of one path follow each other."""
    for path, members in groupby(rows, itemgetter("path")):
        sides: dict[str, list[Row]] = {MASTER: [], SLAVE: []}
        for row in members:
            sides[row["side"]].append(row)
        yield _file(path, sides[MASTER], sides[SLAVE], after_cut)


def _regions(rows: Iterable[Row], context: RunContext) -> Iterator[Region]:
    drained = context.queues.drained
    for name, members in groupby(rows, itemgetter("region")):
        region = Region(name)
        for row in members:
            if _counts(row, context):
                (region.add_witnessed if _is_of_witness(row, context) else region.add)(row)
            elif row["kind"] == "stream":
                region.shared.add(row.get("origin"))
            if drained and row["kind"] == "segment":
                for head in drained_heads((row,), drained):
                    # A family may have arrived that the peer leaves out by now: it gets no head.
                    if _counts(head, context):
                        region.add(head)
        yield region


def _is_of_witness(row: Row, context: RunContext) -> bool:
    return context.second is not None and row["kind"] == "stream" and row.get("origin") == context.second.origin


def _counts(row: Row, context: RunContext) -> bool:
    kind, table = row["kind"], row.get("table")
    if context.evidence is Evidence.TIMESTAMPS:
        return kind in ("stream", "replicated")
    if not context.in_scope(table):
        return False
    if kind == "stream":
        families = context.queues.families
        return is_shipped(row.get("via_ids"), context.slave.cluster_id) and families.ships(table, row.get("family"))
    return kind != "unstamped" or came_through(row.get("via_ids"), context.master.cluster_id)


def _by_streams(region: Region, context: RunContext) -> JudgedRegion | None:
    verdict = judge_region(region, context)
    if verdict is None:
        return None
    table = context.facts.get(region.table)
    later = _later(verdict, context)
    return JudgedRegion(
        region.table,
        region.name,
        *region.keys,
        status=SEVERITY[verdict.status],
        findings=verdict.findings,
        table_status=None if table is None else SEVERITY[table.status],
        evidence=verdict.evidence,
        heads=len(region.heads),
        written_ms=region.written_ms,
        replicated_ms=region.replicated_ms,
        timestamps=_timestamps_code(region, context),
        lag_ms=verdict.lag_ms,
        later=len(later),
        later_ms=latest(*later),
    )


def _later(verdict: RegionVerdict, context: RunContext) -> list[int]:
    """Return when streams were last written to, of those that were after the shutdown time."""
    found = []
    for head, judged in verdict.streams:
        bound_ms = later_bound(context.master, context.origin_rule(head.origin).after_ms)
        if head.write_ms is not None and written_later(judged.code, head.write_ms, bound_ms):
            found.append(head.write_ms)
    return found


def _by_timestamps(region: Region, context: RunContext) -> JudgedRegion | None:
    """Judge by the original's rule, which decides for its status files: they hold nothing else."""
    if not region.heads:
        return None
    code, written_ms, replicated_ms = _timestamps_code(region, context), region.written_ms, region.replicated_ms
    found = None
    if code != "covered":
        found = Finding(
            code,
            table=region.table,
            region=region.name,
            written_from_ms=replicated_ms,
            written_to_ms=written_ms,
            repair_to_ms=written_ms,
            lag_ms=lag_between(replicated_ms, written_ms),
        )
    is_later = written_later(code, written_ms, later_bound(context.master, None))
    return JudgedRegion(
        region.table,
        region.name,
        None,
        None,
        status=SEVERITY[STREAM_CODES[code]],
        findings=() if found is None else (found,),
        table_status=None,
        evidence=Evidence.TIMESTAMPS,
        heads=len(region.heads),
        written_ms=written_ms,
        replicated_ms=replicated_ms,
        timestamps=code,
        lag_ms=found.lag_ms if found else None,
        later=int(is_later),
        later_ms=written_ms if is_later else None,
    )


def _timestamps_code(region: Region, context: RunContext) -> str:
    """Judge by the original's rule: replicated after the shutdown, or as late as written; one of `STREAM_CODES`."""
    written_ms, replicated_ms = region.written_ms, region.replicated_ms
    if context.evidence is not Evidence.TIMESTAMPS and not region.heads:
        return "covered"
    if replicated_ms is None:
        return "missing"
    if known_shutdown(context.master) and replicated_ms > (context.master.shutdown_ms or 0):
        return "covered"
    return "covered" if written_ms is not None and replicated_ms >= written_ms else "behind"


def _stream(head: Head, verdict: StreamVerdict, context: RunContext) -> JudgedStream:
    settled, after_ms = context.origin_rule(head.origin)
    arrived, found = verdict.fold, stream_finding(head, verdict) or Finding(verdict.code)
    is_known = head.origin in context.origin_rules
    return JudgedStream(
        head.table,
        head.region,
        head.origin,
        head.via,
        head.family,
        verdict.code,
        head.seq,
        head.first_ms,
        head.write_ms,
        arrived.segments,
        arrived.prefix_end,
        arrived.prefix_ms,
        arrived.reach,
        arrived.reach_ms,
        len(arrived.holes),
        settled if is_known else None,
        after_ms,
        found.from_seq,
        found.to_seq,
        found.written_from_ms,
        found.written_to_ms,
        verdict.lag_ms,
    )


def _file(path: str, ours: list[Row], theirs: list[Row], after_cut: range) -> JudgedFile:
    found = judge_file(path, ours, theirs, after_cut)
    findings = () if found.code == "match" else (found,)
    return JudgedFile(path, found.code, found.note, findings, bool(ours), content_of(ours), content_of(theirs))
