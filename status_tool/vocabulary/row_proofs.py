"""Proofs by row digests (`run -i --rows`), in the form that the rules take."""

from __future__ import annotations

from dataclasses import dataclass

from status_tool.vocabulary.findings import Finding


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


NO_PROOFS = RowProofs()
