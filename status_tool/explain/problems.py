"""Findings in words, in order, and bounded."""

from __future__ import annotations

from collections.abc import Iterable

from status_tool.explain.advice import advise, repair_of
from status_tool.printable import counted, duration, iso
from status_tool.rules.context import RunContext
from status_tool.vocabulary.codes import CODES, FILE_CODES
from status_tool.vocabulary.findings import Finding, sort_key
from status_tool.vocabulary.header import MASTER
from status_tool.vocabulary.outcome import Problem
from status_tool.vocabulary.verdicts import Status


def to_problem(finding: Finding, context: RunContext) -> Problem:
    """Return a finding with its kind, detail and advice."""
    return Problem(
        kind=kind_of(finding.code),
        detail=_detail(finding, context),
        table=finding.table,
        region=finding.region,
        origin=context.origin_name(finding.origin),
        from_seq=finding.from_seq,
        to_seq=finding.to_seq,
        written_from_ms=finding.written_from_ms,
        written_to_ms=finding.written_to_ms,
        path=finding.path,
        lag_ms=finding.lag_ms,
        start_key=finding.start_key,
        end_key=finding.end_key,
        advice=advise(finding, context),
        repair=repair_of(finding, context),
        code=finding.code,
    )


def kind_of(code: str) -> str:
    """Return the status value that a code stands for."""
    return str(CODES[code].status if code in CODES else Status.UNVERIFIABLE)


def bound(run: Iterable[Finding], rows: Iterable[Finding], limit: int) -> list[Finding]:
    """Return at most `limit` findings, worst first.

    Neither the findings of the run and its tables nor those of rows displace the others: each may fill
    at least half.
    """
    few, many = sorted(run, key=sort_key), sorted(rows, key=sort_key)
    room = max(0, limit)
    kept = max(room - len(many), (room + 1) // 2)
    few = few[:kept]
    return sorted([*few, *many[: room - len(few)]], key=sort_key)


def _detail(finding: Finding, context: RunContext) -> str:
    code = CODES.get(finding.code)
    if code is None or not code.words:
        return finding.code
    if "{" in code.words:
        words = code.words.format_map(fields(finding, context))
    else:
        words = f"{code.words}: {finding.note}" if finding.note else code.words
    return words + _elsewhere(finding, context)


def _elsewhere(finding: Finding, context: RunContext) -> str:
    """Return the file's path on the slave where `--map-path` says another one than the master's, else nothing."""
    if finding.path is None or finding.code not in FILE_CODES:
        return ""
    there = context.scope.path_map.to_slave(finding.path)
    return "" if there == finding.path else f" (its path on the slave is {there})"


def fields(finding: Finding, context: RunContext) -> dict[str, object]:
    """Return the values that the words of a code may name."""
    side, _, on_side = (finding.note or MASTER).partition("|")
    from_ms, to_ms, covered_ms = finding.written_from_ms, finding.written_to_ms, context.master.coverage_ms
    is_witnessed = context.master.is_witnessed
    doubt = "the witness may have been sent less" if is_witnessed else "some region servers were untracked"
    covered = f"{doubt} before {iso(covered_ms)}"
    by_times = f"replicated up to {iso(from_ms)}, written up to {iso(to_ms)}"
    by_ids = f"arrived up to sequence id {finding.from_seq}, written up to {finding.to_seq}"
    return {
        "from_seq": finding.from_seq,
        "to_seq": finding.to_seq,
        "streams": counted(finding.holes or 0, "stream"),
        "more": f" (the first of {finding.holes} holes)" if (finding.holes or 0) > 1 else "",
        "reached": by_times if finding.from_seq is None else by_ids,
        "upto": "" if finding.to_seq is None else f" up to sequence id {finding.to_seq}",
        "written_from": iso(from_ms),
        "written_to": iso(to_ms),
        "age": duration((to_ms or 0) - (from_ms or 0)),
        "origin": context.origin_name(finding.origin),
        "reason": context.unsettled_reason(finding.origin) or "has no server row",
        "coverage": "no tracker coverage is known" if covered_ms is None else covered,
        "recorder": "witness" if is_witnessed else "tracker",
        "selected": _selected(finding),
        "side": side,
        "on_side": on_side,
        "note": finding.note,
        "unread": finding.note or "the file could not be read",
    }


def _selected(finding: Finding) -> str:
    if finding.table:
        return f"table {finding.table}"
    return f"namespace {finding.note}" if finding.note else "what is in scope"
