"""Findings, as facts: the common form of the reference's and of Spark's results.

A finding is a code and numbers; `problems.py` turns those that are shown into words and advice.
"""

from __future__ import annotations

from dataclasses import dataclass

from status_tool.vocabulary.codes import FILE_CODES, STREAM_CODES, TABLE_CODES
from status_tool.vocabulary.verdicts import FileStatus, Status

_RANKS = {Status.DIFFERS: 0, Status.GAP: 0, Status.MISSING: 1, Status.BEHIND: 3}
_FILE_RANKS = {FileStatus.MISMATCH: 2, FileStatus.MISSING: 2, FileStatus.EXTRA: 6}
RANKS: dict[str, int] = {
    **{code: _FILE_RANKS[status] for code, status in FILE_CODES.items() if status in _FILE_RANKS},
    **{code: _RANKS[status] for code, status in (STREAM_CODES | TABLE_CODES).items() if status in _RANKS},
}
"""Order of problems, worst first; every other code has `UNVERIFIABLE_RANK`."""

UNVERIFIABLE_RANK = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not complete. Fields that do not apply are None; times are epoch ms."""

    code: str
    table: str | None = None
    region: str | None = None
    origin: int | None = None
    via: int | None = None
    from_seq: int | None = None
    to_seq: int | None = None
    written_from_ms: int | None = None
    written_to_ms: int | None = None
    repair_to_ms: int | None = None
    """Up to when a repair must copy: beyond `written_to_ms` when a stream has several holes."""
    holes: int | None = None
    lag_ms: int | None = None
    start_key: bytes | None = None
    end_key: bytes | None = None
    path: str | None = None
    note: str | None = None
    """Details beyond the code: a server, sizes, algorithms."""

    @property
    def rank(self) -> int:
        """Rank of severity: the lower the worse."""
        return RANKS.get(self.code, UNVERIFIABLE_RANK)


def sort_key(finding: Finding) -> tuple[tuple[bool, int | str], ...]:
    """Return the key that sorts worst first, then by largest lag, then in a fixed order (unknown values first)."""
    known: tuple[int | str | None, ...] = (
        finding.table,
        finding.region,
        finding.origin,
        finding.via,
        finding.path,
        finding.code,
    )
    lag = finding.lag_ms
    head: list[tuple[bool, int | str]] = [(True, finding.rank), (lag is None, -(lag or 0))]
    return (*head, *((value is not None, value if value is not None else 0) for value in known))


@dataclass(frozen=True, slots=True)
class RowProofs:
    """Evidence from the rows themselves, whatever the streams do."""

    equal: frozenset[str] = frozenset()
    """Tables of which every visible cell that is compared is the same on both sides."""
    differing: frozenset[str] = frozenset()
    """Encoded names of the master's regions that hold cells that are not."""
    findings: tuple[Finding, ...] = ()
    """The cells that differ, or the tables whose cells could not be listed."""
    notices: tuple[str, ...] = ()

    def and_also(self, other: RowProofs) -> RowProofs:
        """Return these proofs and those of other tables."""
        return RowProofs(
            self.equal | other.equal,
            self.differing | other.differing,
            (*self.findings, *other.findings),
            (*self.notices, *other.notices),
        )


NO_PROOFS = RowProofs()
