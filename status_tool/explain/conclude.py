"""Conclusion: the outcome from counts and findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from status_tool.explain.problems import bound, to_problem
from status_tool.printable import counted
from status_tool.rules.context import RunContext
from status_tool.rules.judged import JudgedFile, JudgedRegion
from status_tool.rules.later_writes import accepted_by, later_findings, later_notice, later_writes
from status_tool.rules.segments import latest
from status_tool.rules.sides import older_findings
from status_tool.vocabulary.codes import FILE_CODES
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.outcome import HBaseOutcome, HdfsOutcome, Outcome
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import INCOMPLETE_REGIONS, STATUSES, Evidence, FileStatus, Status, Verdict

INCOMPLETE_FILES = (FileStatus.MISSING, FileStatus.MISMATCH)
UNVERIFIABLE_FILES = (FileStatus.UNVERIFIABLE, FileStatus.INCOMPARABLE)


@dataclass(slots=True)
class Tally:
    """The unbounded counts of a run."""

    regions: dict[Status, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    evidence: dict[Evidence, int] = field(default_factory=lambda: dict.fromkeys(Evidence, 0))
    """Number of regions by evidence."""
    worst_lag_ms: int | None = None
    timestamps_complete: int = 0
    later: dict[str | None, tuple[int, int]] = field(default_factory=dict)
    """By table, the streams that were written to after the shutdown time, and the newest write."""
    later_streams: int = 0
    """Their number, where they have not been broken down by table yet."""
    files: dict[FileStatus, int] = field(default_factory=lambda: dict.fromkeys(FileStatus, 0))
    master_files: int = 0
    """Number of paths that the master's status names."""
    entries: dict[tuple[str, str], int] = field(default_factory=dict)
    """By side and name, what was found besides files: empty folders, symbolic links."""


def tally_of(regions: Iterable[JudgedRegion], files: Iterable[JudgedFile]) -> tuple[Tally, list[Finding]]:
    """The counts of what this process has judged, and what is wrong with it."""
    tally, found = Tally(), list[Finding]()
    for region in regions:
        tally.regions[STATUSES[region.status]] += 1
        tally.evidence[region.evidence] += 1
        tally.worst_lag_ms = latest(tally.worst_lag_ms, region.lag_ms)
        tally.timestamps_complete += region.timestamps == "covered"
        if region.later:
            streams, newest_ms = tally.later.get(region.table, (0, 0))
            tally.later[region.table] = streams + region.later, max(newest_ms, region.later_ms or 0)
        found += region.findings
    for file in files:
        tally.files[FILE_CODES[file.code]] += 1
        tally.master_files += file.is_of_master
        found += file.findings
    return tally, found


def conclude(context: RunContext, tally: Tally, findings: Iterable[Finding]) -> Outcome:
    """Return the outcome, without what `Question.answered` adds to it.

    `findings` are those of regions, streams and files; the worst `max_problems` suffice.
    """
    run, files = _hbase_findings(context, tally), _file_findings(context, tally)
    older = older_findings(context.master, context.slave, context.scope)
    # A FILE2 from before the cut leaves both halves in doubt.
    hbase = _hbase(context, tally, [*run, *older]) if context.check_hbase else None
    # Findings about files leave the verdict on HBase as it is.
    hdfs = _hdfs(context, tally, [*files, *older]) if context.check_hdfs else None
    accepted = _accepted_by(context)
    notices = (*context.notices, *([later_notice(hbase.later, accepted)] if hbase and hbase.later and accepted else []))
    if context.check_hdfs and not tally.master_files and not files:
        notices = (*notices, "HDFS: there is no file to check on the master")
    notices = (*notices, *counted_entries(tally, context.scope))
    run += [*files, *older]
    shown = bound(run, findings, context.scope.max_problems)
    return Outcome(
        hbase=hbase,
        hdfs=hdfs,
        problems=tuple(to_problem(finding, context) for finding in shown),
        cut_ms=context.master.cut_ms,
        needs_new_file=any(finding.origin in context.queues.undrained for finding in run if finding.code == "origin"),
        is_settling=any(table.is_settling for table in context.tables),
        notices=notices,
        max_problems=context.scope.max_problems,
        seen={table.table: asdict(table.seen) for table in context.tables},
        accepts={table.table: table.accepts.to_json() for table in context.tables if table.accepts is not None},
    )


def beside_rows(context: RunContext, tally: Tally) -> list[Finding]:
    """Return every finding that is of no region and no file: of the run, tables, the scope, the sides' headers."""
    older = older_findings(context.master, context.slave, context.scope)
    return [*_hbase_findings(context, tally), *_file_findings(context, tally), *older]


def _hbase_findings(context: RunContext, tally: Tally) -> list[Finding]:
    if not context.check_hbase:
        return []
    # With no region in scope no count is bad: this finding keeps the verdict from being complete.
    is_told = any(finding.code == "not-replicated" for finding in context.run_findings)
    nothing = [] if sum(tally.regions.values()) or is_told else [Finding("not-replicated")]
    later = [] if _accepted_by(context) else later_findings(later_writes(tally.later), context.master)
    return [*context.run_findings, *context.table_findings, *nothing, *later]


def _accepted_by(context: RunContext) -> str | None:
    return accepted_by(context.master, context.scope, context.evidence)


def _hbase(context: RunContext, tally: Tally, run: list[Finding]) -> HBaseOutcome:
    tables = any(table.status in INCOMPLETE_REGIONS for table in context.tables)
    differ = any(finding.code == "differs" for finding in run)
    if tables or differ or any(tally.regions[status] for status in INCOMPLETE_REGIONS):
        verdict = Verdict.INCOMPLETE
    # A finding about the whole run or a table need not be about any region, so the counts may not show it.
    elif run or tally.regions[Status.UNVERIFIABLE]:
        verdict = Verdict.UNVERIFIABLE
    else:
        verdict = Verdict.COMPLETE
    # `Evidence` goes from the strongest to the weakest.
    weakest = [level for level in Evidence if tally.evidence[level]]
    return HBaseOutcome(
        verdict,
        weakest[-1] if weakest else context.evidence,
        tally.regions,
        tally.worst_lag_ms,
        tally.timestamps_complete,
        tally.evidence,
        context.accepted_tables if tally.evidence[Evidence.ACCEPTED] else (),
        later=later_writes(tally.later),
    )


def _file_findings(context: RunContext, tally: Tally) -> list[Finding]:
    """Return findings for named paths that do not exist, or for a scope without files that proves nothing."""
    if not context.check_hdfs:
        return []
    absent = [Finding("no-files", path=path) for path in context.master.hdfs_absent]
    if not absent and _names_nothing(context, tally):
        return [Finding("no-files")]
    return absent


def counted_entries(tally: Tally, scope: Scope) -> list[str]:
    """Describe what was found besides files. Status files count it for all that they hold, whatever `-f` names."""
    where = {MASTER: " (in all of FILE)", SLAVE: " (in all of FILE2)" if scope.offline else ""}
    return [
        f"HDFS: {counted(count, name)} on the {side}{where[side]}, not compared"
        for (side, name), count in sorted(tally.entries.items())
        if count
    ]


def _hdfs(context: RunContext, tally: Tally, findings: list[Finding]) -> HdfsOutcome:
    extra = context.scope.strict_extra and tally.files[FileStatus.EXTRA]
    if extra or any(tally.files[status] for status in INCOMPLETE_FILES):
        verdict = Verdict.INCOMPLETE
    elif findings or any(tally.files[status] for status in UNVERIFIABLE_FILES):
        verdict = Verdict.UNVERIFIABLE
    else:
        verdict = Verdict.COMPLETE
    return HdfsOutcome(verdict, tally.files, context.scope.strict_extra)


def _names_nothing(context: RunContext, tally: Tally) -> bool:
    """Return True if no file was found, unless the whole file system was listed: an empty list proves nothing else."""
    is_whole = context.master.hdfs_paths == ("/",) and not context.scope.excludes
    return not tally.master_files and not is_whole
