"""Proof by witnesses: the streams of their FILE are whole if they were sent all that was to be replicated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from status_tool.printable import iso
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.rules.peers import PeerFacts, own_shipping
from status_tool.vocabulary.details import is_number
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import SKEW_MS, Header

REOPENED_MS = 600_000
"""Within this time all regions of a table have been opened with a new descriptor, unless it was altered without that.
"""

SETTLED_MS = 120_000
"""An entry whose write time is so long before the cut was in a WAL by the cut: clocks differ by half a minute at most,
and a region server that stops for longer than the rest between the two has lost its session, and its WAL is fenced."""


@dataclass(frozen=True, slots=True)
class WitnessFacts:
    """Facts of the witnesses' peer, beside those of the peer that leads to the slave."""

    doubt: str | None = None
    """Reason for which it may have been sent less than HBase replicates."""
    withheld: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By table, the families that the slave is sent and the witnesses are not."""
    since_ms: int | None = None
    """Since when every region server has had their peer as it is; None: not known."""


def covered_since(peer: Mapping[str, Any], known_since_ms: int) -> int:
    """Return the time from which on every region server ships everything to the witnesses of a peer.

    Any change of the peer begins anew, as it may have shipped less before. `known_since_ms` is the age of what names
    their folders: nobody knows of folders from before.
    """
    return max(int(peer["created_ms"]), int(peer["modified_ms"]) + REFRESHED_MS, known_since_ms)


def witness_facts(
    witness: PeerFacts, theirs: Mapping[str, Collection[str]], ours: Mapping[str, Collection[str]]
) -> WitnessFacts:
    """Judge the witnesses' peer; `theirs` and `ours` are the families that it and the slave's peer ship, by table."""
    lacking = {table: sorted(set(families) - set(theirs.get(table, ()))) for table, families in ours.items()}
    other = own_shipping(witness)
    return WitnessFacts(
        f"its peer {witness['id']} has its {other}" if other else None,
        {table: families for table, families in lacking.items() if families},
        covered_since(witness, 0),
    )


def unwitnessed(master: Header, facts: WitnessFacts | None) -> Iterator[str]:
    """Yield why the witnesses of a FILE may lack entries, whatever the table; nothing for any other FILE."""
    if not master.witnesses:
        return
    if master.unwitnessed:
        yield master.unwitnessed
    if facts is None:
        yield "FILE does not say which peer it is"
    elif facts.doubt:
        yield facts.doubt


def table_findings(
    table: str, descriptor: Mapping[str, Any] | None, withheld: Iterable[str], is_past: Callable[[int], bool]
) -> Iterator[Finding]:
    """Yield what keeps a witness from having all entries of a table. `is_past`: a change at that time is accepted."""
    if families := ", ".join(withheld):
        yield Finding("not-witnessed", table=table, note=f"the witness's peer does not ship family {families}")
    known = descriptor or {}
    if known.get("durability") == "ASYNC_WAL":
        note = "its durability is ASYNC_WAL, so what is acknowledged may not be in a WAL that can be shipped"
        yield Finding("not-witnessed", table=table, note=note)
    altered_ms: Any = known.get("altered_ms")
    if not is_number(altered_ms):
        return
    first_ms: Any = known.get("opened_ms")
    if is_number(first_ms) and first_ms < altered_ms - SKEW_MS:  # clocks of the NameNode and the HBase master
        note = (
            f"its descriptor was changed at {iso(altered_ms)}, and a region is open since {iso(first_ms)} with the one"
            " before (REOPEN_REGIONS): what it writes may not be replicated; open its regions anew"
        )
        yield Finding("not-witnessed", table=table, note=note)
    opened_ms = altered_ms + REOPENED_MS
    if not is_past(opened_ms):
        note = (
            f"its descriptor was changed at {iso(altered_ms)}: before, and until its regions were opened anew, a family"
            " may not have been replicated, or its writes may have bypassed the WAL"
        )
        yield Finding("not-witnessed", table=table, note=note, written_to_ms=opened_ms)
