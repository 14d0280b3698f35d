"""One interface for every form in which the outcome of a verification is reported."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TextIO

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


class Reporter(ABC):
    """Writes an outcome in one form."""

    @abstractmethod
    def write(self, outcome: Outcome, stream: TextIO) -> None:
        """Write the whole report to `stream`; the stream is neither flushed nor closed."""


def write_report(reporter: Reporter, outcome: Outcome, path: str | os.PathLike[str], mode: int = PRIVATE) -> None:
    """Write the report to a file atomically, a new one with this `mode`; raises `OutputError`."""
    with atomic_write(path, mode) as stream:
        reporter.write(outcome, stream)


def region_counts(outcome: Outcome) -> dict[str, int]:
    """Return the number of regions of every status, in the contract's order; absent ones count 0."""
    regions: Mapping[Status, int] = outcome.hbase.regions if outcome.hbase else {}
    return {status.value: regions.get(status, 0) for status in REGION_ORDER}


def evidence_counts(outcome: Outcome) -> dict[str, int]:
    """Return how many regions rest on each evidence, strongest first."""
    counts: Mapping[Evidence, int] = outcome.hbase.evidence_by if outcome.hbase else {}
    return {level.value: counts.get(level, 0) for level in Evidence}


def file_counts(outcome: Outcome) -> dict[str, int]:
    """Return the number of files of every status, in the contract's order; absent ones count 0."""
    files: Mapping[FileStatus, int] = outcome.hdfs.files if outcome.hdfs else {}
    return {status.value: files.get(status, 0) for status in FILE_ORDER}


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


def timestamps_notice(outcome: Outcome) -> str | None:
    """Return the notice where timestamps alone would have been wrong, else None."""
    if outcome.hbase is None or outcome.hbase.evidence is Evidence.TIMESTAMPS:
        return None
    alone, proven = outcome.hbase.timestamps_complete, region_counts(outcome)[Status.COMPLETE]
    if alone <= proven:
        return None
    return (
        f"Timestamps alone would have called {counted(alone, 'region')} complete; "
        f"by the evidence {'it is' if proven == 1 else 'they are'} {proven}."
    )
