"""Proofs that the queues once gave about a crashed server, as `run -m` recorded them in the server's row.

A crashed server appends nothing more, and what has been shipped stays shipped: so a proof outlives later changes of the
peer. It holds for the peer's incarnation (`peers.is_incarnation`: one that was added again may lead elsewhere), and for
what the peer's filter let through when it was made: a table that the peer has come to ship since was not shipped then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from status_tool.rules.peers import is_incarnation
from status_tool.vocabulary.details import is_number, loads, object_in
from status_tool.vocabulary.schema import Row

KEY = "settled"
"""In a server row's `detail`: proofs by peer id."""
_FILTER = ("namespaces", "exclude_namespaces", "table_cfs", "exclude_table_cfs")


def proof_of(peer: Mapping[str, Any], at_ms: int) -> dict[str, Any] | None:
    """Return the record for a server that the queues of this peer settle; None if the peer's znode is unknown."""
    incarnation = peer.get("incarnation")
    return None if incarnation is None else {"incarnation": incarnation, "at_ms": at_ms, "filter": _filter(peer)}


def settled_before(row: Row, peer: Mapping[str, Any]) -> int | None:
    """Return when the queues of this peer settled the server of a row, as recorded; None for never."""
    proofs = (object_in(row.get("detail")) or {}).get(KEY)
    proof = proofs.get(str(peer["id"])) if isinstance(proofs, dict) else None
    if not isinstance(proof, dict) or not is_number(proof.get("at_ms")):
        return None
    at_ms, shipped = int(proof["at_ms"]), proof.get("filter") in ({}, _filter(peer))
    same_peer = is_incarnation(peer, proof.get("incarnation"), at_ms)
    return at_ms if same_peer and shipped else None


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
