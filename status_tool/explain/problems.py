"""Findings in words, in order, and bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from status_tool.explain.advice import advise, repair_of
from status_tool.printable import duration, iso
from status_tool.rules.context import RunContext
from status_tool.rules.files import FILE_CODES
from status_tool.rules.regions import REGION_CODES
from status_tool.rules.streams import STREAM_CODES
from status_tool.rules.tables import TABLE_CODES
from status_tool.vocabulary.findings import Finding, sort_key
from status_tool.vocabulary.outcome import Problem
from status_tool.vocabulary.verdicts import FileStatus, Status

CODES: dict[str, Status | FileStatus] = {**FILE_CODES, **STREAM_CODES, **REGION_CODES, **TABLE_CODES}
"""The codes of all rules; other codes concern the run and are unverifiable."""


def to_problem(finding: Finding, context: RunContext) -> Problem:
    """A finding with its kind, detail and advice."""
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
    """The status value that a code stands for."""
    return str(CODES.get(code, Status.UNVERIFIABLE))


def bound(run: Iterable[Finding], rows: Iterable[Finding], limit: int) -> list[Finding]:
    """At most `limit` findings, worst first.

    Neither the findings of the run and its tables nor those of rows displace the others: each may fill
    at least half.
    """
    few, many = sorted(run, key=sort_key), sorted(rows, key=sort_key)
    room = max(0, limit)
    kept = max(room - len(many), (room + 1) // 2)
    few = few[:kept]
    return sorted([*few, *many[: room - len(few)]], key=sort_key)


def _detail(finding: Finding, context: RunContext) -> str:
    describe = _DETAILS.get(finding.code)
    return describe(finding, context) if describe else finding.code


def _gap(finding: Finding, context: RunContext) -> str:
    more = f" (the first of {finding.holes} holes)" if (finding.holes or 0) > 1 else ""
    return (
        f"gap: entries after sequence id {finding.from_seq} up to {finding.to_seq} have not arrived although"
        f" later ones have{more}"
    )


def _may_fill(finding: Finding, context: RunContext) -> str:
    return (
        f"behind: entries after sequence id {finding.from_seq} up to {finding.to_seq} are not recorded although"
        f" later ones are; this may still be filled"
    )


def _behind(finding: Finding, context: RunContext) -> str:
    if finding.from_seq is None:
        return f"behind: replicated up to {iso(finding.written_from_ms)}, written up to {iso(finding.written_to_ms)}"
    return f"behind: arrived up to sequence id {finding.from_seq}, written up to {finding.to_seq}"


def _missing(finding: Finding, context: RunContext) -> str:
    upto = "" if finding.to_seq is None else f" up to sequence id {finding.to_seq}"
    return f"missing: nothing has arrived{upto}"


def _unsettled(finding: Finding, context: RunContext) -> str:
    reason = context.unsettled_reason(finding.origin)
    name = context.origin_name(finding.origin)
    return f"unsettled: everything known of this stream has arrived, but origin {name} {reason or 'has no server row'}"


def _filter_changed(finding: Finding, context: RunContext) -> str:
    return (
        "filter changed: the peer ships only some of the table's replicated families, and it was changed or added at"
        f" {iso(finding.written_to_ms)}, after the stream began: entries left out before may belong to families that it"
        " ships now"
    )


def _own_shipping(finding: Finding, context: RunContext) -> str:
    return (
        f"shipped by other code: the peer has {finding.note}, which may drop or change cells of entries that count as"
        " applied"
    )


def _own_service(finding: Finding, context: RunContext) -> str:
    side, _, setting = (finding.note or "").partition("|")
    return (
        f"replicated by other code: on the {side} {setting}, which may leave out or change entries, or cells of"
        " entries that count as applied"
    )


def _older(finding: Finding, context: RunContext) -> str:
    start = iso(context.master.coverage_ms) if context.master.coverage_ms is not None else None
    known = f"some region servers were untracked before {start}" if start else "no tracker coverage is known"
    return f"older than the tracker: {known}, the table may hold rows from before"


def _truncated(finding: Finding, context: RunContext) -> str:
    return (
        "truncated: the region is gone from the master without split or merge: the table was truncated, dropped"
        " or recreated, which replication does not carry"
    )


def _not_recorded(finding: Finding, context: RunContext) -> str:
    side, _, names = (finding.note or "").partition("|")
    return f"not recorded: the {side}'s status was recorded only for {names}"


def _not_replicated(finding: Finding, context: RunContext) -> str:
    named = f"table {finding.table}" if finding.table else f"namespace {finding.note}"
    return f"not replicated: {named} was selected, but has no replicated family on the master"


def _content_changed(finding: Finding, context: RunContext) -> str:
    return (
        f"content changed: at {iso(finding.written_to_ms)} the region opened with store files other than those that it"
        " was closed with: a snapshot was restored or cloned, the region truncated, or files were placed or removed by"
        " hand, none of which replication carries"
    )


def _slave_changed(finding: Finding, context: RunContext) -> str:
    return (
        f"content changed on the slave: at {iso(finding.written_to_ms)}, after replicated entries had arrived, a region"
        " of the table opened with store files other than those that it was closed with (a snapshot restored or cloned,"
        " a region truncated, files placed or removed by hand): what had arrived may be gone"
    )


def _bulkload(finding: Finding, context: RunContext) -> str:
    return f"bulk load: files were loaded at {iso(finding.written_to_ms)}, which the WAL does not carry"


def _local_load(finding: Finding, context: RunContext) -> str:
    return (
        f"bulk load: files were loaded at {iso(finding.written_to_ms)} with replication disabled for the load"
        " (disableReplication), so that they never reach a queue or a slave"
    )


def _unstamped(finding: Finding, context: RunContext) -> str:
    return f"unstamped: entries written up to {iso(finding.written_to_ms)} arrived without a valid stamp"


def _partial(finding: Finding, context: RunContext) -> str:
    return (
        f"partial: of entries written up to {iso(finding.written_to_ms)} only part of the cells arrived: the peer"
        " shipped fewer families then, or a filter of the peer or the slave's sink dropped cells"
    )


def _family_absent(finding: Finding, context: RunContext) -> str:
    return f"family absent on the slave: {finding.note}"


def _skipped_wal(finding: Finding, context: RunContext) -> str:
    return (
        f"SKIP_WAL: mutations that bypass the WAL were seen in the table up to {iso(finding.written_to_ms)}, and"
        " therefore replication"
    )


def _scope_raised(finding: Finding, context: RunContext) -> str:
    return (
        f"replicated only since {iso(finding.written_to_ms)}: until then family {finding.note} had replication scope 0,"
        " and its older rows were never shipped"
    )


def _emptied(finding: Finding, context: RunContext) -> str:
    return (
        f"emptied: on the slave the table, part of it or a family was recreated, truncated or dropped at"
        f" {iso(finding.written_to_ms)}, after replicated entries had arrived or its past was accepted: what was there"
        " before is gone"
    )


def _slave_state_lost(finding: Finding, context: RunContext) -> str:
    return (
        f"slave state lost: at {iso(finding.written_to_ms)} the slave's state table had lost rows or gone back to an"
        " earlier state (restored, cloned, truncated): what it recorded before proves nothing about the slave's content"
    )


def _pruned(finding: Finding, context: RunContext) -> str:
    return (
        f"pruned: the master has dropped heads of streams that were written until {iso(finding.written_to_ms)}, when"
        " others were known to have them (`status-tool prune`): whether this slave has them is no longer known"
    )


def _unreadable_descriptor(finding: Finding, context: RunContext) -> str:
    return f"descriptor unreadable: the table's families on the {finding.note or 'master'} are unknown"


def _later_writes(finding: Finding, context: RunContext) -> str:
    return (
        f"later writes: {finding.holes} streams were written to after the recorded shutdown time"
        f" {iso(finding.written_from_ms)}, the newest write at {iso(finding.written_to_ms)}; these writes are not"
        " in scope: either the recorded time is outdated, or something still writes"
    )


def _slave_older(finding: Finding, context: RunContext) -> str:
    age = duration((finding.written_to_ms or 0) - (finding.written_from_ms or 0))
    return (
        f"the slave's status is older than the cut: it was written at {iso(finding.written_from_ms)}, {age} before"
        f" the cut at {iso(finding.written_to_ms)} (or the clocks of the two hosts differ): it cannot show what had"
        " arrived by then, nor what has changed on the slave since"
    )


def _file_unreadable(finding: Finding, context: RunContext) -> str:
    return f"unreadable: {finding.note or 'the file could not be read'}"


def _noted(prefix: str) -> Callable[[Finding, RunContext], str]:
    return lambda finding, context: f"{prefix}: {finding.note}" if finding.note else prefix


_DETAILS: dict[str, Callable[[Finding, RunContext], str]] = {
    "gap": _gap,
    "may-fill": _may_fill,
    "behind": _behind,
    "missing": _missing,
    "unsettled": _unsettled,
    "filter-changed": _filter_changed,
    "own-shipping": _own_shipping,
    "own-service": _own_service,
    "unreadable-head": _noted("unreadable: the stream's head could not be read"),
    "unhosted": _noted("unhosted: the region is not hosted by any region server"),
    "untracked": _noted("untracked: the region's server runs without the tracker, or is not known to be running"),
    "truncated": _truncated,
    "content-changed": _content_changed,
    "slave-changed": _slave_changed,
    "undescribed": _noted("undescribed: the table's descriptor was not recorded"),
    "bulkload": _bulkload,
    "localload": _local_load,
    "unstamped": _unstamped,
    "partial": _partial,
    "absent": _noted("table absent on the slave"),
    "family-absent": _family_absent,
    "emptied": _emptied,
    "slave-state-lost": _slave_state_lost,
    "slave-untracked": _noted("slave region server"),
    "not-described": _noted("not described: the table has regions, but the trackers recorded no descriptor of it"),
    "pruned": _pruned,
    "meta-family": _noted("a family is named METAFAMILY: HBase treats its cells as WAL markers and does not ship them"),
    "keeps-less": _noted("drift: the slave keeps less than the master, so applied cells may be gone there"),
    "skip-wal": _noted("SKIP_WAL: the table's writes bypass the WAL, and therefore replication"),
    "skipped-wal": _skipped_wal,
    "scope-raised": _scope_raised,
    "older-than-tracker": _older,
    "descriptor-unreadable": _unreadable_descriptor,
    "differs": _noted("differs"),
    "not-compared": _noted("not compared: the table's rows could not settle it"),
    "no-regions": _noted("no regions: none of the table's regions was recorded"),
    "origin": _noted("origin"),
    "no-tracker": _noted("no tracker has ever flushed on the master"),
    "no-descriptors": _noted("table descriptors not recorded on the master"),
    "slave-tables-unknown": _noted("slave tables unknown"),
    "not-recorded": _not_recorded,
    "not-replicated": _not_replicated,
    "nothing": _noted("nothing to check: no replicated region in scope"),
    "no-files": _noted("nothing to check: the master's status lists no files"),
    "file-missing": _noted("absent on the slave"),
    "file-extra": _noted("only on the slave"),
    "size": _noted("size differs"),
    "checksum": _noted("checksum differs"),
    "content": _noted("content differs: CRC32C"),
    "file-open": _noted("still open for writing"),
    "file-changed": _noted("changed on the master after the cut: its content at the cut is unknown"),
    "root-absent": _noted("nothing to check: the path does not exist on the master, or FILE does not cover it"),
    "algorithm": _noted("not comparable: checksum algorithm or block layout differs"),
    "file-unreadable": _file_unreadable,
    "file-ambiguous": _noted("listed more than once with different contents"),
    "no-checksum": _noted("no checksum"),
    "slave-older": _slave_older,
    "later-writes": _later_writes,
}
