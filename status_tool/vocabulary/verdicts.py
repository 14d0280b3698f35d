"""The possible verdicts on a stream, region, file, half or run, and how strong their evidence is."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """Status of a stream or region, from best to worst (`SEVERITY` gives the order).

    An incomplete status outranks UNVERIFIABLE because exit code 1 outranks 3.
    """

    COMPLETE = "complete"
    UNVERIFIABLE = "unverifiable"
    BEHIND = "behind"
    MISSING = "missing"
    GAP = "gap"
    DIFFERS = "differs"


SEVERITY: dict[Status, int] = {status: rank for rank, status in enumerate(Status)}
STATUSES = tuple(Status)
"""By severity."""


INCOMPLETE_REGIONS = (Status.DIFFERS, Status.GAP, Status.MISSING, Status.BEHIND)


class FileStatus(StrEnum):
    """Status of one file."""

    MATCH = "match"
    EXTRA = "extra"
    UNVERIFIABLE = "unverifiable"
    INCOMPARABLE = "incomparable"
    MISSING = "missing"
    MISMATCH = "mismatch"


class Verdict(StrEnum):
    """The answer for a half or for the whole run."""

    COMPLETE = "complete"
    UNVERIFIABLE = "unverifiable"
    INCOMPLETE = "incomplete"


EXIT_CODES: dict[Verdict, int] = {Verdict.COMPLETE: 0, Verdict.INCOMPLETE: 1, Verdict.UNVERIFIABLE: 3}


class Evidence(StrEnum):
    """Strength of a region's proof, from strongest to weakest."""

    EXACT = "exact"
    ROWS = "rows"
    """Digests of the rows themselves; no status file rests on it alone."""
    WITNESSED = "witnessed"
    """Every entry that the master shipped to a witness, which is every one that it wrote since the witness was a peer.
    Nothing is known of what comes beside the WAL."""
    ACCEPTED = "accepted"
    """The operator's word (`--since`); no status file rests on it alone."""
    TIMESTAMPS = "timestamps"


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst status; COMPLETE if there are none."""
    return max(statuses, key=SEVERITY.__getitem__, default=Status.COMPLETE)
