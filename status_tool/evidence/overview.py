"""What is wrong, by table and cause: complete counts, one example each, and one repair a table.

The list of problems is bounded; this is not, and stays small all the same: it has one entry for every table
and code, however many regions and files are behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from status_tool.evidence.advice import HOLES, TABLE_COPIES, TABLE_TEXTS, families_of, repair, todo, with_dry_run
from status_tool.evidence.context import RunContext
from status_tool.evidence.findings import Finding, sort_key
from status_tool.evidence.model import SEVERITY, Outcome, Problem, Repair, Status
from status_tool.evidence.problems import kind_of, to_problem
from status_tool.evidence.segments import SINCE_MARGIN_MS

STUCK = ("gap", *TABLE_COPIES)
"""What waiting does not mend."""
CREATE_FIRST = ("absent", "family-absent", "truncated", "skip-wal")
"""Where something has to be done by hand before copying helps."""


@dataclass(frozen=True, slots=True)
class Cause:
    """All findings of one table and code. Times and keys span them all; None where one of them is not bounded."""

    worst: Finding
    """The worst of them, as an example; its table and code are those of all."""
    count: int = 1
    lag_ms: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    start_key: bytes | None = None
    end_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Problems of one table with one cause, in words."""

    kind: str
    code: str
    table: str | None
    count: int
    example: Problem
    todo: str = ""
    lag_ms: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TableRepair:
    """What brings a table's missing rows to the slave, and what proves it; one a table, whatever is wrong with it."""

    table: str
    reasons: tuple[str, ...]
    """What is wrong, each with its count: `gap: 200`."""
    stuck: bool
    """Whether waiting cannot mend it; else the rows may still arrive by themselves."""
    first: tuple[str, ...]
    """What has to be done by hand before."""
    commands: Repair
    dry_run: str
    """To be run on the slave after `commands.hash_table`: compares and changes nothing."""
    since_ms: int | None
    """Up to when the table's past may be accepted once it has been copied; None where it must be looked at."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table's regions by status."""

    table: str
    regions: dict[Status, int]
    lag_ms: int | None = None
    oldest_hole_ms: int | None = None
    """Since when something is missing in it: the oldest write time of a gap."""

    @property
    def worst(self) -> Status:
        """The worst status that a region of it has."""
        return max((status for status, count in self.regions.items() if count), key=SEVERITY.__getitem__)


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole of an outcome, by table and cause."""

    groups: tuple[Group, ...] = ()
    """Worst first."""
    repairs: tuple[TableRepair, ...] = ()
    tables: tuple[TableLine, ...] = ()
    """Worst first; none where they were not asked for."""
    oldest_hole_ms: int | None = None
    drawing: Drawing | None = None
    """What a page draws; None where there is to be none."""


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """The findings by table and code."""
    found: dict[tuple[str | None, str], Cause] = {}
    for finding in findings:
        key, cause = (finding.table, finding.code), cause_of(finding)
        found[key] = merged(found[key], cause) if key in found else cause
    return list(found.values())


def cause_of(finding: Finding) -> Cause:
    """A cause of one finding."""
    keys = (finding.start_key or None, finding.end_key or None)
    return Cause(finding, 1, finding.lag_ms, finding.written_from_ms, finding.repair_to_ms, *keys)


def merged(one: Cause, other: Cause) -> Cause:
    """Two causes of the same table and code as one."""
    return Cause(
        min(one.worst, other.worst, key=sort_key),
        one.count + other.count,
        max((lag for lag in (one.lag_ms, other.lag_ms) if lag is not None), default=None),
        None if one.from_ms is None or other.from_ms is None else min(one.from_ms, other.from_ms),
        None if one.to_ms is None or other.to_ms is None else max(one.to_ms, other.to_ms),
        None if one.start_key is None or other.start_key is None else min(one.start_key, other.start_key),
        None if one.end_key is None or other.end_key is None else max(one.end_key, other.end_key),
    )


def overview(context: RunContext, found: Iterable[Cause], tables: Iterable[TableLine] = ()) -> Overview:
    """Causes in words, worst first, and the repairs of their tables."""
    causes = sorted(found, key=lambda cause: sort_key(cause.worst))
    return Overview(
        groups=tuple(_group(cause, context) for cause in causes),
        repairs=tuple(_repairs(causes, context)),
        tables=tuple(sorted(tables, key=_worst_first)),
        oldest_hole_ms=min(
            (c.from_ms for c in causes if c.worst.code == "gap" and c.from_ms is not None), default=None
        ),
    )


def groups_of(problems: Iterable[Problem]) -> tuple[Group, ...]:
    """The problems by table, kind and cause: where nothing but their list is known."""
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


def groups_in(outcome: Outcome) -> tuple[Group, ...]:
    """The outcome's groups, complete where it has an overview, else those of the listed problems."""
    return outcome.overview.groups if outcome.overview is not None else groups_of(outcome.problems)


def _worst_first(line: TableLine) -> tuple[int, int, int, str]:
    worst = line.worst
    return (-SEVERITY[worst], -line.regions[worst], -(line.lag_ms or 0), line.table)


def _group(cause: Cause, context: RunContext) -> Group:
    finding = cause.worst
    kind = kind_of(finding.code)
    words = todo(finding, context) or ""
    problem = to_problem(finding, context)
    return Group(
        kind, finding.code, finding.table, cause.count, problem, words, cause.lag_ms, cause.from_ms, cause.to_ms
    )


def _repairs(found: Sequence[Cause], context: RunContext) -> Iterable[TableRepair]:
    """One repair a table, in the order of its worst cause."""
    by_table: dict[str, list[Cause]] = {}
    for cause in found:
        if cause.worst.table is not None and cause.worst.code in (*HOLES, *TABLE_COPIES):
            by_table.setdefault(cause.worst.table, []).append(cause)
    for table, own in by_table.items():
        yield _repair(table, own, context)


def _repair(table: str, own: Sequence[Cause], context: RunContext) -> TableRepair:
    """Rows and times that cover every cause: what is copied twice does no harm, what is left out would."""
    codes = [cause.worst.code for cause in own]
    span = own[0]
    for cause in own[1:]:
        span = merged(span, cause)
    whole = any(code in TABLE_COPIES for code in codes)
    # Families are those of all causes: a narrower list would leave rows out.
    families = families_of(own[0].worst if codes == ["family-absent"] else None, context, table)
    commands = repair(
        table,
        (None, None) if whole else (span.from_ms, span.to_ms),
        (None, None) if whole else (span.start_key, span.end_key),
        families,
        context.master,
        context.slave.cluster_key,
        f"{context.master.cut_ms}",
    )
    return TableRepair(
        table,
        tuple(f"{code}: {cause.count}" for code, cause in zip(codes, own, strict=True)),
        any(code in STUCK for code in codes),
        tuple(TABLE_TEXTS[code] for code in codes if code in CREATE_FIRST),
        commands,
        with_dry_run(commands.sync_table),
        None if whole or span.to_ms is None else span.to_ms + SINCE_MARGIN_MS,
    )


@dataclass(frozen=True, slots=True)
class Tile:
    """One region of a table in key order, or several neighbours as one where there are too many."""

    table: str
    worst: Status
    regions: int
    at_fault: int
    region: str | None
    """The worst of them."""
    lag_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of one folder by status."""

    path: str
    files: dict[str, int]


LAG_BOUNDS_MS = (1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the pages' pictures need of every region and file; bounded, whatever the clusters' size."""

    tiles: tuple[Tile, ...] = ()
    """In key order of their tables."""
    folders: tuple[Folder, ...] = ()
    more_folders: int = 0
    lags: tuple[int, ...] = ()
    """How many regions are behind by less than each of `LAG_BOUNDS_MS`, and by more."""
    problems: tuple[Problem, ...] = ()
    """More than the outcome lists."""
    servers: tuple[ServerState, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerState:
    """A tracked region server; times are epoch ms."""

    cluster: str
    server: str
    role: str = ""
    live: bool | None = None
    tracked: bool | None = None
    echoed: bool | None = None
    flush_ms: int | None = None
    detail: str = ""
