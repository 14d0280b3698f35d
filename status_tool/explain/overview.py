"""Overview of findings by table and cause: complete counts, one example each, and one repair per table.

The list of problems is bounded; the overview is not, but stays small: it has one entry per table and code,
however many regions and files are affected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from status_tool.explain.advice import (
    CONTENTS,
    HOLES,
    SYNC_TABLE,
    TABLE_COPIES,
    advise,
    check_of_copy,
    copy_of_file,
    families_of,
    repair,
    text_of,
)
from status_tool.explain.problems import kind_of, to_problem
from status_tool.rules.context import RunContext
from status_tool.rules.segments import SINCE_MARGIN_MS
from status_tool.vocabulary.codes import CODES
from status_tool.vocabulary.findings import Finding, sort_key
from status_tool.vocabulary.outcome import Group, Overview, TableLine, TableRepair
from status_tool.vocabulary.verdicts import SEVERITY

STUCK = ("gap", *TABLE_COPIES)
"""Codes that waiting does not resolve."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings of one table and code. Times and keys span them all; None if one of them is not bounded."""

    worst: Finding
    """The worst of them, as an example; its table and code are those of all."""
    count: int = 1
    lag_ms: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    start_key: bytes | None = None
    end_key: bytes | None = None


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Return the findings by table and code."""
    return merged_causes(map(_cause_of, findings))


def _cause_of(finding: Finding) -> Cause:
    # An empty key is the open end of a table: no bound.
    keys = (finding.start_key or None, finding.end_key or None)
    return Cause(finding, 1, finding.lag_ms, finding.written_from_ms, finding.repair_to_ms, *keys)


def merged_causes(several: Iterable[Cause]) -> list[Cause]:
    """Merge causes of the same table and code: what holds for a table and for its regions may have the same code."""
    found: dict[tuple[str | None, str], Cause] = {}
    for cause in several:
        key = (cause.worst.table, cause.worst.code)
        found[key] = _merged(found[key], cause) if key in found else cause
    return list(found.values())


def _merged(one: Cause, other: Cause) -> Cause:
    return Cause(
        # `spark.counts` picks its example by the same order.
        min(one.worst, other.worst, key=sort_key),
        one.count + other.count,
        max((lag for lag in (one.lag_ms, other.lag_ms) if lag is not None), default=None),
        None if one.from_ms is None or other.from_ms is None else min(one.from_ms, other.from_ms),
        None if one.to_ms is None or other.to_ms is None else max(one.to_ms, other.to_ms),
        None if one.start_key is None or other.start_key is None else min(one.start_key, other.start_key),
        None if one.end_key is None or other.end_key is None else max(one.end_key, other.end_key),
    )


def overview(context: RunContext, found: Iterable[Cause], tables: Iterable[TableLine] = ()) -> Overview:
    """Return the causes in words, worst first, and the repairs of their tables."""
    causes = sorted(found, key=lambda cause: sort_key(cause.worst))
    return Overview(
        groups=tuple(_group(cause, context) for cause in causes),
        repairs=tuple(_repairs(causes, context)),
        tables=tuple(sorted(tables, key=_worst_first)),
        oldest_hole_ms=min(
            (c.from_ms for c in causes if c.worst.code == "gap" and c.from_ms is not None), default=None
        ),
    )


def words_of_group(group: Group) -> str:
    """Return a group of problems: what is wrong, with an example of where."""
    one = group.example
    return one.detail if one.detail.startswith(group.kind) else f"{group.kind}: {one.detail}"


def _worst_first(line: TableLine) -> tuple[int, int, int, str]:
    worst = line.worst
    return (-SEVERITY[worst], -line.regions[worst], -(line.lag_ms or 0), line.table)


def _group(cause: Cause, context: RunContext) -> Group:
    finding, words = cause.worst, advise(_spanning(cause), context, in_words=True)
    return Group(
        kind=kind_of(finding.code),
        code=finding.code,
        table=finding.table,
        count=cause.count,
        example=to_problem(finding, context),
        todo=words or "",
        lag_ms=cause.lag_ms,
        from_ms=cause.from_ms,
        to_ms=cause.to_ms,
        command=copy_of_file(finding, context),
    )


def _spanning(cause: Cause) -> Finding:
    """Return the example, for contents with the keys of all: its commands compare every region of the cause at once."""
    if cause.count == 1 or cause.worst.code not in CONTENTS:
        return cause.worst
    return replace(cause.worst, start_key=cause.start_key, end_key=cause.end_key)


def _repairs(found: Sequence[Cause], context: RunContext) -> Iterable[TableRepair]:
    """Yield one repair per table, in the order of its worst cause."""
    by_table: dict[str, list[Cause]] = {}
    for cause in found:
        if cause.worst.table is not None and cause.worst.code in (*HOLES, *TABLE_COPIES):
            by_table.setdefault(cause.worst.table, []).append(cause)
    for table, own in by_table.items():
        yield _repair(table, own, context)


def _repair(table: str, own: Sequence[Cause], context: RunContext) -> TableRepair:
    """Return a repair that covers every cause: to copy a row twice does no harm, to leave one out would."""
    codes = [cause.worst.code for cause in own]
    span = own[0]
    for cause in own[1:]:
        span = _merged(span, cause)
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
    copied_to_ms = None if whole else span.to_ms
    return TableRepair(
        table,
        tuple(f"{code}: {cause.count}" for code, cause in zip(codes, own, strict=True)),
        any(code in STUCK for code in codes),
        tuple(text_of(code, table) for code in codes if code in CODES and CODES[code].is_by_hand),
        commands,
        # Its counters show how many rows and cells differ.
        commands.sync_table.replace(SYNC_TABLE, f"{SYNC_TABLE} --dryrun=true", 1),
        # A later time is refused: everything in FILE would be accepted.
        None if copied_to_ms is None else min(copied_to_ms + SINCE_MARGIN_MS, context.master.cut_ms),
        check_of_copy(table, context.master.cut_ms if copied_to_ms is None else copied_to_ms, context.master),
        not context.master.is_witnessed,
    )
