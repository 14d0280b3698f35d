"""What stays of a proof by rows: a baseline of its table, which the slave's state table keeps (`ProvenRow`).

Whatever was written up to `until_ms` was in the rows that were compared, so that from then on streams have to show only
what came later. What happens afterwards to the slave's table (emptied, restored, a family dropped) is named as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from status_tool.rules.queue_proofs import CLOCK_MARGIN_MS
from status_tool.vocabulary.details import fits, is_number, is_text, list_of, loads, map_of, object_of, optional
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Baseline
from status_tool.vocabulary.state_rows import WRITER

MARGIN_MS = 2 * CLOCK_MARGIN_MS
"""A region server's clock may differ by half of it from the HBase master's, which refuses it beyond that, and so may
that of a server that starts later.
"""
_SEEN = {
    **dict.fromkeys(("born_ms", "changed_ms", "back_ms"), optional(is_number)),
    "dropped_ms": optional(map_of(is_number)),
}
_PROOF = {
    "until_ms": is_number,
    "at_ms": is_number,
    "families": list_of(is_text),
    "seen": optional(object_of(_SEEN)),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the slave's trackers had seen of a table's content; each is the slave's own time of the newest event.

    Another value later is something that has happened since, whatever the clocks show.
    """

    born_ms: int | None = None
    dropped_ms: Mapping[str, int] = field(default_factory=dict)
    """By family."""
    changed_ms: int | None = None
    """When store files changed beside the WAL."""
    back_ms: int | None = None
    """When the state table went back."""


NOTHING_SEEN = Seen()


@dataclass(frozen=True, slots=True)
class KeptProof:
    """What digests have proven of one table; times are epoch ms."""

    until_ms: int
    """What was written up to then, on whatever server's clock, was among the rows that were compared."""
    at_ms: int
    """When the comparison began, on the clock of the tool's host."""
    families: frozenset[str]
    seen: Seen | None = None
    """None: the proof was kept before this was recorded; then events are compared with `at_ms`."""

    def to_json(self) -> dict[str, Any]:
        """As the state table keeps it."""
        seen = {} if self.seen is None else {"seen": asdict(self.seen)}
        return {"until_ms": self.until_ms, "at_ms": self.at_ms, "families": sorted(self.families), **seen}


def kept_proofs(slave_tables: Iterable[Row], master_id: str) -> dict[str, KeptProof]:
    """By table what its `table` row has of proofs against this master; what cannot be parsed is none."""
    found: dict[str, KeptProof] = {}
    for row in slave_tables:
        try:
            detail = loads(row.get("detail"))
            proof = detail["proven"][master_id]
        except (ValueError, KeyError, TypeError):
            continue
        if row.get("table") is not None and fits(proof, _PROOF):
            found[row["table"]] = KeptProof(
                proof["until_ms"], proof["at_ms"], frozenset(proof["families"]), seen_of(proof.get("seen"))
            )
    return found


def seen_of(detail: Mapping[str, Any] | None) -> Seen | None:
    """From its JSON; None where none was recorded."""
    if detail is None:
        return None
    moments = (detail.get(name) for name in ("changed_ms", "back_ms"))
    return Seen(detail.get("born_ms"), detail.get("dropped_ms") or {}, *moments)


def still_holding(
    proofs: Mapping[str, KeptProof], families: Mapping[str, Iterable[str] | None]
) -> dict[str, KeptProof]:
    """The proofs that cover all families in scope, by table; None: families that are not known."""
    return {
        table: proof
        for table, proof in proofs.items()
        if (ours := families.get(table)) is not None and proof.families >= set(ours)
    }


def baseline_with(since: Baseline, proofs: Mapping[str, KeptProof]) -> Baseline:
    """The baseline of each table, the operator's or what was proven, whichever is later."""
    later = {table: max(proof.until_ms, since.by_table.get(table, proof.until_ms)) for table, proof in proofs.items()}
    return Baseline(since.everything_ms, {**since.by_table, **later})


def servers_since(since: Baseline, tables: Iterable[str], proofs: Mapping[str, KeptProof]) -> int | None:
    """Up to when servers that are gone are accepted: what they wrote is among the proven rows of every table.

    An operator's word for single tables does not accept servers.
    """
    names = list(tables)
    if not names or any(table not in proofs for table in names):
        return since.everything_ms
    proven_ms = min(proofs[table].until_ms for table in names)
    return proven_ms if since.everything_ms is None else max(proven_ms, since.everything_ms)


def proven_until(servers: Iterable[Row]) -> int | None:
    """Up to when a proof by rows that were read after FILE holds, by the master's `server` rows in FILE.

    Each live region server read the barrier's token before the rows were read: what it appended later bears a later
    time. None: one has not, so that its clock is not known.
    """
    writers = [row for row in servers if row.get("role") in (WRITER, None) and row.get("live")]
    read = [row["read_ms"] for row in writers if row.get("echoed") and row.get("read_ms") is not None]
    return min(read) - MARGIN_MS if read and len(read) == len(writers) else None
