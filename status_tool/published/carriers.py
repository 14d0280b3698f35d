"""Carriers of the table of published status files: peers that ship it to a cluster that has it.

A peer whose cluster lacks a table that it ships stops shipping everything at the first entry of that table. So nothing
is published before that is out of the question, as far as it can be seen from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from status_tool.clients.config import ZooKeeperEndpoint
from status_tool.clients.zookeeper import Peer, is_witness, peer_tables
from status_tool.published.table import shell_line
from status_tool.rules.peers import family_filter, has_own_endpoint, leads_to
from status_tool.vocabulary.names import PUBLISHED_FAMILY


@dataclass(frozen=True, slots=True)
class Carried:
    """Facts of one peer."""

    peer: str
    is_shipped: bool
    """True if the peer is enabled and replicates the table."""
    is_there: bool | None
    """True if the peer's cluster has the table; None: it cannot be seen from here."""
    problem: str | None
    """Advice about it; None: all is well, or unknown."""


def carried(peers: Iterable[Peer], of: ZooKeeperEndpoint, table: str) -> Iterator[Carried]:
    """Yield the facts of each enabled peer of the cluster `of` that leads to another one, as far as it can be seen.

    HBase's own peer for region replicas does not, nor does a witness's. A disabled peer is named if its cluster lacks
    the table: it queues what is published, and would stop there once it is enabled.
    """
    for peer in peers:
        if leads_to(asdict(peer), "", of.cluster_key):
            continue
        ships = ships_published(peer, table)
        tables = peer_tables(peer, of) if ships else None
        # An empty list is no absence: that cluster may not mirror its tables to ZooKeeper
        # (`MirroringTableStateManager`).
        is_there = table in tables if tables else None
        # An own endpoint may send what it ships anywhere. Where it can be seen, such a cluster is one like any other.
        if ships and not tables and (has_own_endpoint(asdict(peer)) or (tables is not None and is_witness(peer, of))):
            continue
        if peer.enabled or is_there is False:
            yield Carried(peer.id, ships and peer.enabled, is_there, _problem(peer.id, table, ships, is_there))


def _problem(peer: str, table: str, ships: bool, is_there: bool | None) -> str | None:
    if not ships:
        return (
            f"peer {peer} does not replicate the table {table}, so no published status file reaches its "
            f"cluster: add it, in the HBase shell (append_peer_tableCFs '{peer}', {{'{table}' => []}})"
        )
    if is_there is False:
        return (
            f"the cluster of peer {peer} does not have the table {table}, and replication to it would stop at the "
            f"first published status file: create it there, in the HBase shell: {shell_line(table)}"
        )
    return None


def ships_published(peer: Peer, table: str) -> bool:
    """Return True if the peer replicates the table's one family."""
    return family_filter(asdict(peer)).ships(table, PUBLISHED_FAMILY)
