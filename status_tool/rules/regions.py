"""The region rule: the verdict on one region, by its streams and the other rows of both sides.

Each function in plain Python has the same in SQL below it, named `…_sql`. The plan (`spark.hbase`) groups all rows by
stream, where other rows form groups without heads, and then the groups by region.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from status_tool.rules.context import RunContext
from status_tool.rules.segments import Segment, is_later, is_later_sql, is_ordered_sql, latest
from status_tool.rules.sql import case, finding, is_in, known_true, present, since_sql
from status_tool.rules.streams import (
    Head,
    StreamVerdict,
    head_of,
    judge_stream,
    severity_sql,
    stream_finding,
    stream_finding_sql,
)
from status_tool.rules.tables import TableFacts
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.ids import UNKNOWN_FAMILY
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.states import LINEAGE, FactState, RegionState
from status_tool.vocabulary.verdicts import INCOMPLETE_REGIONS, SEVERITY, Evidence, Status, worst

RegionStream = tuple[int | None, int]

IS_REGION = "kind = 'region'"
IS_EXISTING = f"{IS_REGION} AND NOT (state <=> '{RegionState.SPLIT}')"
_FAMILY = f"coalesce(name, '{UNKNOWN_FAMILY}')"
_NOT_HOSTED = (RegionState.SPLIT, RegionState.DISABLED)
"""Regions that no region server needs to have."""
_OWN_CODES = frozenset({"bulkload", "localload", "unstamped", "truncated", "content-changed"})
"""What makes a region count although it has neither a stream nor a place in a replicated table."""
_HOST_ORDER = (None, "untracked", "unhosted")


@dataclass(slots=True)
class Region:
    """Everything that rows record of one region."""

    name: str
    heads: dict[RegionStream, list[Row]] = field(default_factory=lambda: defaultdict(list))
    segments: dict[RegionStream, list[Segment]] = field(default_factory=lambda: defaultdict(list))
    rows: list[Row] = field(default_factory=list)
    facts: list[Row] = field(default_factory=list)
    replicated_ms: int | None = None
    unstamped: list[Row] = field(default_factory=list)
    partial: list[Row] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)

    @property
    def table(self) -> str | None:
        return max(self.tables, default=None)

    @property
    def written_ms(self) -> int | None:
        """The newest write to the region that a head records."""
        return latest(*(row.get("write_ms") for rows in self.heads.values() for row in rows))

    def add(self, row: Row) -> None:
        """Take in a row of the region."""
        key = (row.get("origin"), row.get("via") or 0)
        match row["kind"]:
            case "stream":
                self.heads[key].append(row)
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
            case "partial":
                self.partial.append(row)


@dataclass(frozen=True, slots=True)
class RegionVerdict:
    """A region's status with everything that is wrong with it and its streams."""

    status: Status
    findings: tuple[Finding, ...]
    streams: tuple[tuple[Head, StreamVerdict], ...]
    evidence: Evidence
    is_proven: bool = False
    """Whether its table's rows are equal on both sides, whatever its streams show."""

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
    if not (judged or _is_member(region, table) or _OWN_CODES & {f.code for f in own}):
        return None
    statuses = [verdict.status for _, verdict in judged] + [Status.UNVERIFIABLE for _ in own]
    by_streams, is_proven = worst(statuses), region.table in context.rows.equal
    by_rows = Status.DIFFERS if region.name in context.rows.differing else Status.COMPLETE
    status = worst([by_rows, Status.COMPLETE if is_proven else by_streams, table.status if table else Status.COMPLETE])
    found = [finding for finding in (stream_finding(*stream) for stream in judged) if finding]
    is_ordered = any(context.rule.is_ordered(head) for head, _ in judged)
    evidence = _evidence_of(region.table, context, is_ordered, in_doubt=by_streams is not Status.COMPLETE)
    return RegionVerdict(status, () if is_proven else (*found, *own), tuple(judged), evidence, is_proven)


def _judge_stream(
    region: Region, key: RegionStream, rows: list[Row], context: RunContext
) -> tuple[Head, StreamVerdict]:
    head = head_of(region.name, *key, rows)
    unknown = (False, None, None)
    rules = unknown if key[0] is None else context.origin_rules.get(key[0], unknown)
    return head, judge_stream(head, region.segments[key], context.rule, *rules)


def decision_sql(context: RunContext) -> dict[str, str]:
    """As `judge_region`, over `own`, the `region_findings_sql`."""
    ordered = "is_ordered"
    own = f"IF(size(own) > 0, {SEVERITY[Status.UNVERIFIABLE]}, 0)"
    is_proven = _is_proven_sql(context)
    settled = known_true(is_in("`table`", sorted(context.settled_tables)))
    settled = "true" if context.is_settled_by_rows else settled
    accepted = _is_accepted_sql(context)
    by_streams = f"greatest(stream_status, {own})"
    by_rows = f"IF({is_in('region', sorted(context.rows.differing))}, {SEVERITY[Status.DIFFERS]}, 0)"
    return {
        "in_scope": "heads > 0 OR member OR is_loaded OR local_loads > 0 OR is_gone OR is_changed OR unstamped > 0",
        "status": f"greatest(IF({is_proven}, 0, {by_streams}), coalesce(table_status, 0), {by_rows})",
        "findings": f"IF({is_proven}, filter(own, one -> false), concat(stream_findings, own))",
        "evidence": case(
            (f"{is_proven} AND ({settled} OR {by_streams} > 0 OR {ordered})", f"'{Evidence.ROWS}'"),
            (f"{is_proven} AND {accepted}", f"'{Evidence.ROWS}'"),
            (accepted, f"'{Evidence.ACCEPTED}'"),
            (ordered, f"'{Evidence.ORDERED}'"),
            (known_true(is_in("`table`", sorted(context.kept))), f"'{Evidence.ROWS}'"),
            default=f"'{Evidence.EXACT}'",
        ),
    }


def _is_proven_sql(context: RunContext, table: str = "`table`") -> str:
    return known_true(is_in(table, sorted(context.rows.equal)))


def _is_accepted(table: str | None, context: RunContext) -> bool:
    """Whether what is known of a table's regions rests on the operator's word."""
    return context.accepted.of(table) is not None and table not in context.unaffected


def _is_accepted_sql(context: RunContext) -> str:
    accepted = since_sql(context.accepted, "`table`")
    return f"({accepted} IS NOT NULL AND NOT {known_true(is_in('`table`', sorted(context.unaffected)))})"


def _evidence_of(table: str | None, context: RunContext, is_ordered: bool, *, in_doubt: bool) -> Evidence:
    """What the verdict on a region of a table rests on, `in_doubt` by its streams.

    ORDERED where one of its streams `is_ordered`; ACCEPTED where `--since` may have accepted something of it; ROWS
    where they, now or earlier, prove more than that.
    """
    in_doubt = in_doubt or context.is_settled_by_rows or table in context.settled_tables
    is_accepted = _is_accepted(table, context)
    if table in context.rows.equal and (in_doubt or is_ordered or is_accepted):
        return Evidence.ROWS
    if is_accepted:
        return Evidence.ACCEPTED
    if is_ordered:
        return Evidence.ORDERED
    return Evidence.ROWS if table in context.kept else Evidence.EXACT


def fact_aggregates_sql(context: RunContext) -> dict[str, str]:
    """What rows other than heads and segments record of a region."""
    asked = _asked_sql(context).items()
    newest = {name: f"max(IF({is_kind}, write_ms, NULL))" for name, (is_kind, _) in asked}
    is_content = _is_fact_sql(FactState.CONTENT)
    return {
        "region_rows": f"count_if({IS_REGION})",
        "existing": f"count_if({IS_EXISTING})",
        "host": f"max(IF({IS_REGION}, {host_sql(context)}, NULL))",
        "lineage": f"count_if(kind = 'fact' AND {is_in('state', LINEAGE)})",
        **{name: f"count_if({is_kind} AND {later})" for name, (is_kind, later) in asked},
        "load_ms": newest["loads"],
        "local_load_ms": newest["local_loads"],
        "change_ms": newest["changes"],
        "unstamped_ms": newest["unstamped"],
        "contents": f"count_if({is_content})",
        "content_ms": f"max(IF({is_content}, write_ms, NULL))",
        "replicated_ms": "max(IF(kind = 'replicated', write_ms, NULL))",
        "partial": f"collect_list(IF(kind = 'partial', struct({_FAMILY} AS family, write_ms), NULL))",
    }


def may_blemish_sql(context: RunContext) -> str:
    """Whether a row that is no head, segment or region may be something that is wrong with its region."""
    asked = [f"({is_kind} AND {later})" for is_kind, later in _asked_sql(context).values()]
    return " OR ".join([*asked, "kind = 'partial'"])


def _asked_sql(context: RunContext) -> dict[str, tuple[str, str]]:
    """Rows that make a region unverifiable: which they are, and whether they are later than what is accepted."""
    since_ms = since_sql(context.scope.since, "`table`")
    covered = "CAST(NULL AS BIGINT)" if context.master.coverage_ms is None else str(context.master.coverage_ms)
    later = is_later_sql("write_ms", since_ms)
    return {
        "loads": (_is_fact_sql(FactState.BULK_LOAD), later),
        "local_loads": (_is_fact_sql(FactState.LOCAL_LOAD), later),
        "changes": (_is_fact_sql(FactState.CHANGED), later),
        "unstamped": ("kind = 'unstamped'", is_later_sql("write_ms", f"greatest({since_ms}, {covered})")),
    }


def _is_fact_sql(state: FactState) -> str:
    return f"kind = 'fact' AND state = '{state}'"


def region_aggregates_sql(context: RunContext) -> dict[str, str]:
    """As `Region` with its streams judged, over the groups of its streams and of its other rows."""
    sums = (
        "heads",
        "region_rows",
        "existing",
        "lineage",
        "loads",
        "local_loads",
        "changes",
        "contents",
        "unstamped",
        "later",
    )
    highest = (
        "table",
        "host",
        "load_ms",
        "local_load_ms",
        "change_ms",
        "content_ms",
        "unstamped_ms",
        "replicated_ms",
        "lag_ms",
        "later_ms",
    )
    return {
        **{name: f"sum({name})" for name in sums},
        **{name: f"max(`{name}`)" for name in highest},
        "lag_ms": f"IF({_is_proven_sql(context, 'max(`table`)')}, CAST(NULL AS BIGINT), max(lag_ms))",
        **{name: f"max(IF(region_rows > 0, {name}, NULL))" for name in ("start_key", "end_key")},
        "written_ms": "max(IF(heads > 0, write_ms, NULL))",
        "is_ordered": f"count_if({is_ordered_sql('head_table', 'is_of_family', context.rule.ordered)}) > 0",
        "partial": "flatten(collect_list(partial))",
        "stream_status": f"max({severity_sql('code')})",
        "stream_findings": f"collect_list({stream_finding_sql()})",
    }


def region_findings(region: Region, table: TableFacts | None, context: RunContext) -> Iterator[Finding]:
    """What is wrong with the region as such."""

    def is_asked(row: Row, covered_ms: int | None = None) -> bool:
        return is_later(row.get("write_ms"), latest(context.scope.since.of(row.get("table")), covered_ms))

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
    changes = _facts(region, FactState.CHANGED)
    if _is_or_was_member(region, table) and any(map(is_asked, changes)):
        yield found("content-changed", _newest(changes))
    loads = _facts(region, FactState.BULK_LOAD)
    if any(map(is_asked, loads)) and not (table and table.loads_shipped):
        yield found("bulkload", _newest(loads))
    local = _facts(region, FactState.LOCAL_LOAD)
    if any(map(is_asked, local)):
        yield found("localload", _newest(local))
    if any(is_asked(row, context.master.coverage_ms) for row in region.unstamped):
        yield found("unstamped", _newest(region.unstamped))
    partial = [row for row in region.partial if _is_asked_family(row.get("name"), table)]
    accepted_ms = context.scope.since.of(region.table)
    if member and any(is_later(row.get("write_ms"), accepted_ms) for row in partial):
        yield replace(found("partial", _newest(partial)), repair_to_ms=_newest(partial))


def _facts(region: Region, state: FactState) -> list[Row]:
    return [fact for fact in region.facts if fact.get("state") == state]


def _newest(rows: Iterable[Row]) -> int | None:
    return latest(*(row.get("write_ms") for row in rows))


def flags_sql(context: RunContext) -> dict[str, str]:
    """The conditions of `region_findings`, over `region_aggregates_sql` and what the context holds of the table."""
    member = f"existing > 0 AND {known_true('replicated')}"
    since_ms = since_sql(context.scope.since, "`table`")
    accepted = f"coalesce(gone_accepted, NOT {is_later_sql('greatest(written_ms, content_ms)', since_ms)})"
    in_scope = f"(heads > 0 OR ({member}))"
    counted = (
        "(family_ids IS NULL OR part.family = '" + UNKNOWN_FAMILY + "' OR array_contains(family_ids, part.family))"
    )
    later = is_later_sql("part.write_ms", since_ms)
    undescribed = f"heads > 0 AND region_rows > 0 AND NOT {known_true('described')}"
    return {
        "member": member,
        "host_code": case((f"{in_scope} AND host = 2", "'unhosted'"), (f"{in_scope} AND host = 1", "'untracked'")),
        "is_changed": f"changes > 0 AND (region_rows > 0 OR lineage > 0) AND {known_true('replicated')}",
        "is_gone": f"(heads > 0 OR contents > 0) AND region_rows = 0 AND lineage = 0 AND NOT {accepted}",
        "is_undescribed": undescribed if context.tables else "false",
        "is_partial": f"{in_scope} AND exists(partial, part -> {counted} AND {later})",
        "partial_ms": f"array_max(transform(filter(partial, part -> {counted}), part -> part.write_ms))",
        "is_loaded": f"loads > 0 AND NOT {known_true('loads_shipped')}",
    }


_OWN: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("host_code IS NOT NULL", "host_code", {}),
    ("is_gone", "'truncated'", {}),
    ("is_undescribed", "'undescribed'", {}),
    ("is_changed", "'content-changed'", {"written_to_ms": "change_ms"}),
    ("is_loaded", "'bulkload'", {"written_to_ms": "load_ms"}),
    ("local_loads > 0", "'localload'", {"written_to_ms": "local_load_ms"}),
    ("unstamped > 0", "'unstamped'", {"written_to_ms": "unstamped_ms"}),
    ("is_partial", "'partial'", {"written_to_ms": "partial_ms", "repair_to_ms": "partial_ms"}),
)


def region_findings_sql() -> str:
    """As `region_findings`, over `flags_sql`."""
    same = {name: f"`{name}`" for name in ("table", "region", "start_key", "end_key")}
    return present(*(f"IF({flag}, {finding(code, **same, **times)}, NULL)" for flag, code, times in _OWN))


def has_findings_sql() -> str:
    """Whether `region_findings_sql` has any."""
    return " OR ".join(f"({flag})" for flag, _, _ in _OWN)


def host_code(state: str | None, server: str | None, tracked_servers: frozenset[str]) -> str | None:
    """Why a region's server cannot vouch for it; None: it can, or the region needs none."""
    if state in _NOT_HOSTED:
        return None
    if server is None or state not in (RegionState.HOSTED, None):
        return "unhosted"
    return None if server in tracked_servers else "untracked"


def host_sql(context: RunContext) -> str:
    """As `host_code`: 0 fine, 1 untracked, 2 unhosted."""
    return case(
        (is_in("state", _NOT_HOSTED), "0"),
        (f"server IS NULL OR state != '{RegionState.HOSTED}'", "2"),
        (is_in("server", sorted(context.tracked_servers)), "0"),
        default="1",
    )


def _is_asked_family(family: str | None, table: TableFacts | None) -> bool:
    return table is None or family in (None, UNKNOWN_FAMILY) or family in table.family_ids


def _is_member(region: Region, table: TableFacts | None) -> bool:
    existing = any(row.get("state") != RegionState.SPLIT for row in region.rows)
    return existing and table is not None and table.replicated


def _is_or_was_member(region: Region, table: TableFacts | None) -> bool:
    """Whether it, or what a split or merge has made of it, is a region of a replicated table."""
    is_known = bool(region.rows) or bool({fact.get("state") for fact in region.facts} & set(LINEAGE))
    return is_known and table is not None and table.replicated


def _is_gone(region: Region, table: TableFacts | None, context: RunContext) -> bool:
    states = {fact.get("state") for fact in region.facts}
    if not (region.heads or FactState.CONTENT in states) or region.rows or states & set(LINEAGE):
        return False
    if table is not None:
        return not table.gone_accepted
    had = [fact.get("write_ms") for fact in region.facts if fact.get("state") == FactState.CONTENT]
    written_ms = latest(region.written_ms, *had)
    return written_ms is None or is_later(written_ms, context.scope.since.of(region.table))
