"""Counts and words of an outcome that several reports share, and how a report becomes a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from status_tool.atomic import PRIVATE, atomic_write
from status_tool.printable import counted
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.verdicts import Evidence, FileStatus, Status, Verdict

REGION_ORDER = (Status.COMPLETE, Status.BEHIND, Status.GAP, Status.MISSING, Status.DIFFERS, Status.UNVERIFIABLE)
FILE_ORDER = (
    FileStatus.MATCH,
    FileStatus.MISMATCH,
    FileStatus.MISSING,
    FileStatus.EXTRA,
    FileStatus.INCOMPARABLE,
    FileStatus.UNVERIFIABLE,
)

VERDICT_WORDS = {
    Verdict.COMPLETE: "is complete",
    Verdict.INCOMPLETE: "is NOT complete",
    Verdict.UNVERIFIABLE: "could not be verified",
}

EVIDENCE_WORDS = {
    Evidence.EXACT: "every entry of every stream is traced, one by one",
    Evidence.ROWS: "the rows themselves, compared by digest",
    Evidence.WITNESSED: "every entry that a witness was sent is traced; what came beside the WAL is not seen",
    Evidence.ACCEPTED: "your word (--since) that what was written before is there; nothing has compared it",
    Evidence.TIMESTAMPS: "only last write and last replicated times; a loss in between cannot be seen",
}


def write_report(path: str | os.PathLike[str], parts: Iterable[str], mode: int = PRIVATE) -> None:
    """Write the parts of a report to a file atomically, a new one with this `mode`. Raises `OutputError`."""
    with atomic_write(path, mode) as stream:
        stream.writelines(parts)


def region_counts(outcome: Outcome) -> dict[str, int]:
    """Return the number of regions of every status, in the contract's order; absent ones count 0."""
    regions: Mapping[Status, int] = outcome.hbase.regions if outcome.hbase else {}
    return {status.value: regions.get(status, 0) for status in REGION_ORDER}


def file_counts(outcome: Outcome) -> dict[str, int]:
    """Return the number of files of every status, in the contract's order; absent ones count 0."""
    files: Mapping[FileStatus, int] = outcome.hdfs.files if outcome.hdfs else {}
    return {status.value: files.get(status, 0) for status in FILE_ORDER}


def in_parts(counts: Mapping[str, int]) -> str:
    """Return the counts that are not 0, as in `3 complete, 1 gap`."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def in_total(counts: Mapping[str, int], noun: str) -> str:
    """Return the total with its parts, as in `4 regions: 3 complete, 1 gap`."""
    total, parts = counted(sum(counts.values()), noun), in_parts(counts)
    return f"{total}: {parts}" if parts else total


def span(first: int | None, last: int | None, show: Callable[[int], str], to: str) -> str:
    """Return two ends as text, one where they are the same; empty if neither is known."""
    if first == last:
        return "" if first is None else show(first)
    return to.join("?" if one is None else show(one) for one in (first, last))


def left_out(outcome: Outcome) -> tuple[int, int]:
    """Return how many affected regions and files are not among the listed problems."""
    regions = sum(region_counts(outcome).values()) - region_counts(outcome)[Status.COMPLETE]
    hdfs = outcome.hdfs
    # A list of problems names harmless files, too.
    harmless = None if hdfs is not None and hdfs.is_strict else FileStatus.EXTRA
    # By name: one region may have several problems.
    named_regions = {problem.region for problem in outcome.problems if problem.region}
    named_files = {problem.path for problem in outcome.problems if problem.path and problem.kind != harmless}
    return max(0, regions - len(named_regions)), max(0, (hdfs.at_fault if hdfs else 0) - len(named_files))
