"""Proofs that the queues once gave about a crashed server, as `run -m` recorded them in the server's row.

A crashed server appends nothing more, and what has been shipped stays shipped: so a proof outlives later changes of the
peer. It holds for the peer's incarnation (`peers.is_incarnation`: one that was added again may lead elsewhere), and for
what the peer's lists let through when it was made: a table that the peer has come to ship since was not shipped then.
Such a table is in doubt unless it is younger than the crash (`OlderProof`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from status_tool.errors import StatusFileError
from status_tool.rules.peers import FamilyFilter, family_filter, is_incarnation, parse_peer
from status_tool.vocabulary.details import is_number, loads, object_in
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.schema import Row

KEY = "settled"
"""In a server row's `detail`: proofs by peer id."""
_FILTER = ("namespaces", "exclude_namespaces", "table_cfs", "exclude_table_cfs")


def proof_of(peer: Mapping[str, Any], at_ms: int) -> dict[str, Any] | None:
    """Return the record for a server that the queues of this peer settle; None if the peer's znode is unknown."""
    incarnation = peer.get("incarnation")
    return None if incarnation is None else {"incarnation": incarnation, "at_ms": at_ms, "filter": _filter(peer)}


def settled_before(row: Row, peer: Mapping[str, Any]) -> int | None:
    """Return when the queues of this peer, with these lists, settled the server of a row, as recorded; None: never."""
    proof = _recorded(row, peer)
    # A peer without lists shipped everything, whatever its lists let through by now.
    return proof["at_ms"] if proof is not None and proof.get("filter") in ({}, _filter(peer)) else None


@dataclass(frozen=True, slots=True)
class OlderProof:
    """A proof about a crashed server from when the peer had other lists."""

    at_ms: int
    families: FamilyFilter
    """Which families the peer shipped then."""
    gone_ms: int | None
    """By when the server had crashed; None: not known."""
    notice: str = ""
    """The notice that it counts."""

    def covers(self, table: str, families: Collection[str] | None, created_ms: int | None) -> bool:
        """Return True if the server has written nothing to these families of a table that was not shipped then.

        None: not known which they are, and when the table was certainly not there yet.
        """
        if created_ms is not None and self.gone_ms is not None and created_ms > self.gone_ms + SKEW_MS:
            return True
        return families is not None and all(self.families.ships(table, family) for family in families)


def older_proof(row: Row, peer: Mapping[str, Any]) -> OlderProof | None:
    """Return the proof about the server of a row that is of this peer, whatever its lists were."""
    proof = _recorded(row, peer)
    lists = None if proof is None else _shipped_by(proof.get("filter"))
    return None if proof is None or lists is None else OlderProof(proof["at_ms"], lists, row.get("gone_ms"))


def _shipped_by(lists: object) -> FamilyFilter | None:
    """Return which families a peer with these lists ships; None if they cannot be parsed."""
    try:
        return family_filter(parse_peer(json.dumps({"id": "", **lists}))) if isinstance(lists, dict) else None
    except StatusFileError:
        return None


def _recorded(row: Row, peer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the proof by this peer that a server's row has; one that cannot be understood counts as absent."""
    proofs = (object_in(row.get("detail")) or {}).get(KEY)
    proof = proofs.get(str(peer["id"])) if isinstance(proofs, dict) else None
    if not isinstance(proof, dict) or not is_number(proof.get("at_ms")):
        return None
    at_ms = int(proof["at_ms"])
    return {**proof, "at_ms": at_ms} if is_incarnation(peer, proof.get("incarnation"), at_ms) else None


def with_proofs(detail: str | None, proofs: Mapping[str, str]) -> str | None:
    """Return a server row's `detail` with its proofs, JSON each; what cannot be parsed proves nothing."""
    try:
        document = loads(detail or "{}")
        known = {peer: loads(proof) for peer, proof in proofs.items()}
    except ValueError:
        return detail
    return json.dumps({**document, KEY: known}) if known and isinstance(document, dict) else detail


def _filter(peer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the peer does not ship, or ships alone; empty if it ships everything."""
    limits = {name: peer.get(name) for name in _FILTER if peer.get(name)}
    # JSON turns tuples into lists, and the other side of the comparison was read from JSON.
    normal = json.loads(json.dumps({**limits, "replicate_all": peer.get("replicate_all", True)}, sort_keys=True))
    return {} if not limits and normal["replicate_all"] else dict(normal)
