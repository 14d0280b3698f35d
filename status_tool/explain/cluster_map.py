"""Map of the clusters that a run knows and of the peers between them, for the HTML report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from status_tool.rules.peers import feeds_replicas, leads_to
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import Cluster, ClusterMap, PeerLink


@dataclass(frozen=True, slots=True)
class KnownSide:
    """A cluster that was read: its header and the `detail`s of its peers."""

    header: Header
    peers: Sequence[Mapping[str, Any]]


def known_clusters(sides: Sequence[KnownSide]) -> ClusterMap:
    """Return the clusters of the sides, the clusters their peers lead to, and the links between them.

    A peer that leads to none of the sides becomes a cluster of its own, named by its id, else by its key.
    """
    read = [Cluster(name_of(side.header), side.header.cluster_key, side.header.side) for side in sides]
    clusters = {cluster.name: cluster for cluster in read}
    links = []
    for side in sides:
        for peer in side.peers:
            target = _target(peer, sides)
            clusters.setdefault(target, Cluster(target, str(peer.get("endpoint") or peer.get("cluster_key") or "")))
            links.append(_link(name_of(side.header), target, peer))
    return ClusterMap(tuple(clusters.values()), tuple(links))


def name_of(header: Header) -> str:
    """Return the cluster's id, else its key."""
    return header.cluster_id or header.cluster_key or header.side


def _target(peer: Mapping[str, Any], sides: Sequence[KnownSide]) -> str:
    for side in sides:
        if leads_to(dict(peer), side.header.cluster_id, side.header.cluster_key):
            return name_of(side.header)
    return str(peer.get("cluster_id") or peer.get("endpoint") or peer.get("cluster_key") or "unknown")


def _link(source: str, target: str, peer: Mapping[str, Any]) -> PeerLink:
    notes = list(_notes(peer, source == target))
    return PeerLink(source, target, str(peer.get("id")), ", ".join(notes), broken=bool(notes))


def _notes(peer: Mapping[str, Any], own: bool) -> Iterator[str]:
    if not peer.get("enabled", True):
        yield "DISABLED"
    # HBase's own peer for region replicas leads to its own cluster by design.
    if own and not feeds_replicas(peer):
        yield "its own cluster"
