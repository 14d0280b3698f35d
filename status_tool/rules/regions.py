"""The region rule: the verdict on one region, by its streams and the other rows of both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from status_tool.rules.context import RunContext
from status_tool.rules.kept_proofs import MARGIN_MS
from status_tool.rules.origins import is_younger
from status_tool.rules.second_proof import contradictions
from status_tool.rules.segments import Segment, is_later, latest
from status_tool.rules.streams import (
    Head,
    StreamVerdict,
    greatest,
    head_of,
    judge_stream,
    stream_finding,
)
from status_tool.rules.tables import TableFacts
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.states import LINEAGE, FactState, RegionState
from status_tool.vocabulary.verdicts import INCOMPLETE_REGIONS, Evidence, Status, worst

RegionStream = tuple[int | None, int]

_NOT_HOSTED = (RegionState.SPLIT, RegionState.DISABLED)
"""Regions that no region server needs to have."""
_OWN_CODES = frozenset({"bulkload", "unstamped", "truncated", "content-changed", "lost-tail"})
"""Codes that make a region count although it has neither a stream nor a place in a replicated table."""
_LOCAL_LOAD = (
    "with replication disabled for the load (disableReplication), or on its server when that was started"
    " (hbase.replication.bulkload.enabled), or right before its server crashed, so that no queue shows whether they"
    " reach a slave"
)
_HOST_ORDER = (None, "untracked", "unhosted")


@dataclass(slots=True)
class Region:
    """Everything that rows record of one region."""

    name: str
    table: str | None = None
    heads: dict[RegionStream, list[Row]] = field(default_factory=lambda: defaultdict(list))
    segments: dict[RegionStream, list[Segment]] = field(default_factory=lambda: defaultdict(list))
    rows: list[Row] = field(default_factory=list)
    facts: list[Row] = field(default_factory=list)
    replicated_ms: int | None = None
    unstamped: list[Row] = field(default_factory=list)
    shared: set[int | None] = field(default_factory=set)
    """Origins of streams that are not in scope: the sequence ids of those that are lack what these have."""
    witnessed: dict[RegionStream, list[Row]] = field(default_factory=dict)
    """Heads of what a witness was sent, beside those of the trackers."""

    @property
    def keys(self) -> tuple[bytes | None, bytes | None]:
        """Its first row key, and the one that follows its last."""
        return greatest(self.rows, "start_key"), greatest(self.rows, "end_key")

    @property
    def written_ms(self) -> int | None:
        """The newest write to the region that a head records."""
        return latest(*(row.get("write_ms") for rows in self.heads.values() for row in rows))

    def add_witnessed(self, row: Row) -> None:
        """Take in a `stream` row of a witness beside the trackers."""
        self.witnessed.setdefault((row.get("origin"), row.get("via") or 0), []).append(row)

    def add(self, row: Row) -> None:
        """Take in a row of the region."""
        table, key = row.get("table"), (row.get("origin"), row.get("via") or 0)
        # Rows that name two tables end with the same one in any order.
        if table is not None and (self.table is None or table > self.table):
            self.table = table
        match row["kind"]:
            case "stream":
                self.heads[key].append(row)
            # A segment that cannot be read is none, and leaves a hole.
            case "segment" if row.get("prev") is not None and row.get("seq") is not None:
                times = (row.get("first_ms"), row.get("write_ms"), row.get("recorded_ms"), row.get("started_ms"))
                self.segments[key].append(Segment(row["prev"], row["seq"], *times))
            case "region":
                self.rows.append(row)
            case "fact":
                self.facts.append(row)
            case "replicated":
                self.replicated_ms = latest(self.replicated_ms, row.get("write_ms"))
            case "unstamped":
                self.unstamped.append(row)


@dataclass(frozen=True, slots=True)
class RegionVerdict:
    """A region's status with everything that is wrong with it and its streams."""

    status: Status
    findings: tuple[Finding, ...]
    streams: tuple[tuple[Head, StreamVerdict], ...]
    evidence: Evidence
    is_proven: bool = False
    """True if its table's rows are equal on both sides, whatever its streams show."""

    @property
    def lag_ms(self) -> int | None:
        """The worst lag of its streams; None where its rows are proven to have arrived."""
        if self.is_proven:
            return None
        return latest(*(verdict.lag_ms for _, verdict in self.streams if verdict.status in INCOMPLETE_REGIONS))


def judge_region(region: Region, context: RunContext) -> RegionVerdict | None:
    """Judge one region; None for one that is not in scope."""
    table = context.facts.get(region.table)
    judged = [_judge_stream(region, key, rows, context) for key, rows in region.heads.items()]
    own = list(region_findings(region, table, context))
    own += _contradictions(region, judged, context)
    is_whole = all(verdict.status is Status.COMPLETE for _, verdict in judged)
    # Nobody looks at what has happened on the slave to a table that is not replicated any more.
    says_nothing = is_whole and (not judged or (table is not None and table.described and not table.replicated))
    if says_nothing and not (_is_member(region, table) or _OWN_CODES & {f.code for f in own}):
        return None
    statuses = [verdict.status for _, verdict in judged] + [Status.UNVERIFIABLE for _ in own]
    by_streams, is_proven = worst(statuses), region.table in context.rows.equal
    by_rows = Status.DIFFERS if region.name in context.rows.differing else Status.COMPLETE
    # Equal rows settle the streams here; `tables.proven` has dropped the findings of the table that they settle.
    status = worst([by_rows, Status.COMPLETE if is_proven else by_streams, table.status if table else Status.COMPLETE])
    found = [finding for finding in (stream_finding(*stream) for stream in judged) if finding]
    evidence = _evidence_of(region.table, context, in_doubt=by_streams is not Status.COMPLETE)
    return RegionVerdict(status, () if is_proven else (*found, *own), tuple(judged), evidence, is_proven)


def _judge_stream(
    region: Region, key: RegionStream, rows: list[Row], context: RunContext
) -> tuple[Head, StreamVerdict]:
    head = head_of(region.name, *key, rows)
    return head, judge_stream(head, region.segments[key], context.rule, *context.origin_rule(key[0]))


def _contradictions(region: Region, judged: list[tuple[Head, StreamVerdict]], context: RunContext) -> Iterator[Finding]:
    """Yield contradictions between the trackers and a witness beside them."""
    if context.second is None or context.second.reason:
        return
    start_key, end_key = region.keys
    found = Finding("contradiction", table=region.table, region=region.name, start_key=start_key, end_key=end_key)
    words = contradictions(region.name, judged, region.witnessed, region.segments, context.rule, context.second)
    yield from (replace(found, note=note) for note in words)


def _is_accepted(table: str | None, context: RunContext) -> bool:
    """Return True if what is known of a table's regions rests on the operator's word."""
    return context.accepted.of(table) is not None and table not in context.unaffected


def _evidence_of(table: str | None, context: RunContext, *, in_doubt: bool) -> Evidence:
    """Return the evidence of the verdict on a region of a table, `in_doubt` by its streams.

    ACCEPTED where `--since` may have accepted something of it; ROWS where they, now or earlier, prove more than that.
    """
    in_doubt = in_doubt or context.is_settled_by_rows or table in context.settled_tables
    is_accepted = _is_accepted(table, context)
    if table in context.rows.equal and (in_doubt or is_accepted):
        return Evidence.ROWS
    if is_accepted:
        return Evidence.ACCEPTED
    return Evidence.ROWS if table in context.kept else context.evidence


def region_findings(region: Region, table: TableFacts | None, context: RunContext) -> Iterator[Finding]:
    """Yield the findings about the region as such."""

    def is_asked(row: Row, covered_ms: int | None = None) -> bool:
        moment_ms = row.get("write_ms")
        return is_later(moment_ms, covered_ms) and not context.is_past(row.get("table"), moment_ms)

    keys = region.keys

    def found(code: str, written_ms: int | None = None, note: str | None = None) -> Finding:
        return Finding(
            code,
            table=region.table,
            region=region.name,
            written_to_ms=written_ms,
            note=note,
            start_key=keys[0],
            end_key=keys[1],
        )

    member = bool(region.heads) or _is_member(region, table)
    hosts = [host_code(r.get("state"), r.get("server"), context.tracked_servers) for r in region.rows]
    host = max(hosts, key=_HOST_ORDER.index, default=None)
    # The host of a region does not matter to a witness: a WAL that was not shipped is in a queue.
    if member and host and not context.master.is_witnessed:
        yield found(host)
    # A witness is not told of splits, whose parents are gone as well.
    if not context.master.is_witnessed and _is_gone(region, table, context):
        yield found("truncated")
    # A dropped table has heads and no region: `truncated` tells of it.
    if region.heads and region.rows and context.tables and not (table and table.described):
        yield found("not-described")
    changes = _facts(region, FactState.CHANGED)
    if _is_or_was_member(region, table, context) and any(map(is_asked, changes)):
        yield found("content-changed", _newest(changes))
    loads = _facts(region, FactState.BULK_LOAD)
    if any(map(is_asked, loads)) and not (table and table.loads_shipped):
        yield found("bulkload", _newest(loads), "which the WAL does not carry")
    # A load with `disableReplication` is queued like any other, and the sink skips it: no queue proves it shipped.
    local = _facts(region, FactState.LOCAL_LOAD)
    if any(map(is_asked, local)):
        yield found("bulkload", _newest(local), _LOCAL_LOAD)
    tails = [fact for fact in _facts(region, FactState.TAIL) if is_asked(fact) and _is_lost(region, fact, context)]
    if tails:
        name = context.origin_name(tails[0].get("origin"))
        yield found("lost-tail", _newest(tails), f"{name} had written up to sequence id {tails[0].get('seq')}")
    # Entries that a witness was sent have no stamp. Entries from before the trackers have none either, and the age of
    # their table tells of them.
    if not context.master.is_witnessed and any(is_asked(row, context.master.coverage_ms) for row in region.unstamped):
        yield found("unstamped", _newest(region.unstamped))


def _is_lost(region: Region, tail: Row, context: RunContext) -> bool:
    """Return True if queues settle a crashed server although nothing shows where the last it wrote has gone.

    Not known of a server that has streams which this slave is not asked for, nor of one of which the region has none if
    others have such, or if these may have been pruned.
    """
    origin, last = tail.get("origin"), tail.get("seq") or 0
    if origin not in context.queues.drained or origin in region.shared or region.table in context.queues.withheld:
        return False
    known = [(key[0], row.get("seq") or 0) for key, rows in region.heads.items() for row in rows]
    known += [(key[0], segment.seq) for key, segments in region.segments.items() for segment in segments]
    is_known = any(of == origin for of, _ in known)
    return (is_known or not (region.shared or _may_be_pruned(region, context))) and (
        max((seq for _, seq in known if seq <= last), default=0) < last
    )


def _may_be_pruned(region: Region, context: RunContext) -> bool:
    """Return True if streams of a region may have been dropped on either side; no mark names the slave's tables."""
    table = context.facts.get(region.table)
    return table is None or table.is_pruned or context.master.cluster_id in context.slave.pruned


def _facts(region: Region, state: FactState) -> list[Row]:
    return [fact for fact in region.facts if fact.get("state") == state]


def _newest(rows: Iterable[Row]) -> int | None:
    return latest(*(row.get("write_ms") for row in rows))


def host_code(state: str | None, server: str | None, tracked_servers: frozenset[str]) -> str | None:
    """Return why a region's server cannot vouch for it; None: it can, or the region needs none."""
    if state in _NOT_HOSTED:
        return None
    if server is None or state not in (RegionState.HOSTED, None):
        return "unhosted"
    return None if server in tracked_servers else "untracked"


def _is_member(region: Region, table: TableFacts | None) -> bool:
    existing = any(row.get("state") != RegionState.SPLIT for row in region.rows)
    return existing and table is not None and table.replicated


def _is_or_was_member(region: Region, table: TableFacts | None, context: RunContext) -> bool:
    """Return True if it, or what a split or merge has made of it, is a region of a replicated table.

    A witness is not told what has become of a region that it was sent entries of.
    """
    is_known = bool(region.rows) or bool({fact.get("state") for fact in region.facts} & set(LINEAGE))
    is_known = is_known or (context.master.is_witnessed and bool(region.heads))
    return is_known and table is not None and table.replicated


def _is_younger_than_barrier(region: Region, context: RunContext) -> bool:
    """Return True if all of its streams began after the barrier, as of one that was made after regions were read."""
    bounds = ((row.get("first_ms"), context.barriers.get(key[0])) for key, rows in region.heads.items() for row in rows)
    return all(is_younger(*both) for both in bounds)


def _is_gone(region: Region, table: TableFacts | None, context: RunContext) -> bool:
    contents = _facts(region, FactState.CONTENT)
    if not (region.heads or contents) or region.rows:
        return False
    # Of a table that is gone, and had been split, the splits are left.
    is_dropped = table is None or (not table.described and table.gone_accepted)
    # Neither side has any rows that could differ. What had not arrived by then is in its streams.
    there = context.slave_tables
    if is_dropped and region.table is not None and there is not None and region.table not in there:
        return False
    known_ms = latest(region.written_ms, _newest(contents))
    if _was_parent_since(region, known_ms):
        return False
    # `content` is of a tenure that began before the barrier (`codec.contents`).
    if not contents and _is_younger_than_barrier(region, context):
        return False
    if table is not None and not table.gone_accepted:
        return True
    # A baseline accepts a region that is gone, with its table or without, only if nothing was written to it later.
    return not context.is_past(region.table, known_ms)


def _was_parent_since(region: Region, known_ms: int | None) -> bool:
    parents = [fact for state in LINEAGE for fact in _facts(region, state)]
    return any(explains_end(parent.get("write_ms"), known_ms) for parent in parents)


def explains_end(parent_ms: int | None, known_ms: int | None) -> bool:
    """Return True if a split or merge of a time explains that a region is gone which is last known to have been there.

    A snapshot that is restored brings back the parent of a split, under its name: that split explains no end of later.
    None: an earlier version has written FILE, and does not say when it was split.
    """
    return parent_ms is None or known_ms is None or known_ms <= parent_ms + MARGIN_MS
