"""Peers of the master, and the one that leads to this slave."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from status_tool.errors import StatusFileError
from status_tool.printable import few, safe
from status_tool.vocabulary.details import is_flag, is_number, is_text, list_of, map_of, optional, parse_detail
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.names import namespace_of
from status_tool.vocabulary.outcome import NotReplicated

PeerFacts = dict[str, Any]
"""The `detail` of a `peer` row: `clients.zookeeper.Peer` as a dict."""

_FIELDS = {
    **{"id": is_text, "cluster_id": optional(is_text), "cluster_key": optional(is_text)},
    **dict.fromkeys(("enabled", "replicate_all", "drops_loads"), optional(is_flag)),
    **dict.fromkeys(("namespaces", "exclude_namespaces"), optional(list_of(is_text))),
    **dict.fromkeys(("table_cfs", "exclude_table_cfs"), optional(map_of(optional(list_of(is_text))))),
    **dict.fromkeys(("endpoint", "entry_filters", "codec"), optional(is_text)),
    **dict.fromkeys(("created_ms", "modified_ms", "incarnation", "version"), optional(is_number)),
}


HBASE_ENDPOINT = "org.apache.hadoop.hbase.replication.regionserver.HBaseInterClusterReplicationEndpoint"
"""The endpoint of a peer that names none."""
REPLICAS_ENDPOINT = "org.apache.hadoop.hbase.replication.regionserver.RegionReplicaReplicationEndpoint"
"""The endpoint of a peer that HBase adds by itself, for the secondary replicas of the cluster's own regions."""


@dataclass(frozen=True, slots=True)
class FamilyFilter:
    """Families of tables that a peer ships, by its own lists, also of tables and families that no longer exist."""

    listed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By table that the peer names families of."""
    is_exclusive: bool = False
    """True if these are the families that it leaves out."""
    peer: PeerFacts = field(default_factory=dict)
    """The peer, which also has lists of whole tables and namespaces; empty: all are shipped."""

    def ships(self, table: str | None, family: str | None) -> bool:
        """Return True if the peer may ship a stream.

        One without a family's name is of several: it is only left out with its table.
        """
        if table is None:
            return True
        is_listed = not family or table not in self.listed or (family in self.listed[table]) != self.is_exclusive
        return is_listed and ships(self.peer, table)


def parse_peer(detail: str | None) -> PeerFacts:
    """Return the `detail` of a `peer` row; raises `StatusFileError` if it cannot be parsed."""
    return parse_detail(detail, _FIELDS, "replication peer")


def choose_peer(
    peers: Sequence[PeerFacts],
    slave_id: str,
    slave_key: str,
    wanted: str | None,
    replicated: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> PeerFacts:
    """Return the peer that leads to the slave, by cluster id, else by cluster key.

    Raises `StatusFileError` if none or several do, or where only `--peer` can decide: also if a peer whose id is not
    known ships some of the `replicated` families (by table), and the one that leads to the slave does not.
    """
    if wanted is not None:
        return _wanted(peers, slave_id, slave_key, wanted)
    if not peers:
        raise StatusFileError(
            "the master had no replication peer when FILE was written, so nothing is shipped to this cluster: "
            "add the peer on the master, or check the file"
        )
    leading = [peer for peer in peers if leads_to(peer, slave_id, slave_key)]
    if len(leading) > 1:
        raise StatusFileError(
            f"several peers of the master lead here ({safe(', '.join(str(p['id']) for p in leading))}): "
            "select one with --peer ID"
        )
    if leading:
        _refuse_second(leading[0], peers, replicated)
        return leading[0]
    raise StatusFileError(_none_leads(peers, slave_id))


def _refuse_second(chosen: PeerFacts, peers: Sequence[PeerFacts], replicated: Mapping[str, Collection[str]]) -> None:
    ours = shipped(chosen, replicated)
    for peer in peers:
        if peer is chosen or not is_astray(peer):
            continue
        theirs = shipped(peer, replicated).items()
        only = sorted(table for table, families in theirs if set(families).difference(ours.get(table, ())))
        if only:
            raise StatusFileError(
                f"peer {safe(chosen['id'])} of the master leads here, and peer {safe(peer['id'])} may, too: its "
                f"cluster could not be queried for its id by `run -m`, and it ships more ({safe(few(only, 3))}): "
                "select one with --peer ID, or write FILE again where both can be queried"
            )


def is_astray(peer: PeerFacts) -> bool:
    """Return True if nobody knows where a peer leads: its cluster could not be queried for its id."""
    return bool(not peer.get("cluster_id") and peer.get("cluster_key") and not feeds_replicas(peer))


def may_lead_to(peer: PeerFacts, slave_id: str, slave_key: str) -> bool:
    """Return True if a peer is the slave, or nobody knows where it leads."""
    return is_astray(peer) or leads_to(peer, slave_id, slave_key)


def leads_to(peer: PeerFacts, slave_id: str, slave_key: str) -> bool:
    """Return True if a peer is the slave. Its cluster id decides; its key only if no id was known."""
    if peer.get("cluster_id"):
        return bool(peer["cluster_id"] == slave_id)
    return bool(slave_key) and normal_key(str(peer.get("cluster_key", ""))) == normal_key(slave_key)


def normal_key(key: str) -> tuple[frozenset[str], str]:
    """Return a cluster key `hosts:port:/znode` with its hosts as a set, each with its port."""
    quorum, _, znode = key.partition(":/")
    hosts, _, port = quorum.rpartition(":")
    return frozenset(h if ":" in h else f"{h.strip()}:{port}" for h in hosts.split(",")), znode.rstrip("/")


def is_incarnation(peer: Mapping[str, Any], incarnation: Any, seen_ms: int) -> bool:
    """Return True if the peer is the one that was seen at a time, by the number of the transaction that added it.

    A ZooKeeper that was made anew numbers from the beginning, and may give a peer the number that another one had.
    """
    created_ms: Any = peer.get("created_ms")
    # ZooKeeper's clock gives the one time, a region server's or the tool's the other.
    is_younger = is_number(created_ms) and seen_ms < created_ms - 2 * SKEW_MS
    return is_number(incarnation) and bool(incarnation == peer.get("incarnation")) and not is_younger


def feeds_replicas(peer: Mapping[str, Any]) -> bool:
    """Return True if HBase itself added the peer, for secondary replicas: it leads to no other cluster."""
    return peer.get("endpoint") == REPLICAS_ENDPOINT


def ships(peer: PeerFacts, table: str) -> bool:
    """Return True if the peer replicates at least one family of the table (ReplicationPeerConfig.needToReplicate)."""
    namespace = namespace_of(table)
    if peer.get("replicate_all", True):
        # An excluded table without families is left out as a whole; one with families lacks only these.
        excluded = (peer.get("exclude_table_cfs") or {}).get(table)
        return namespace not in (peer.get("exclude_namespaces") or ()) and (excluded is None or bool(excluded))
    return namespace in (peer.get("namespaces") or ()) or table in (peer.get("table_cfs") or {})


def has_own_endpoint(peer: Mapping[str, Any]) -> bool:
    """Return True if user code takes what the peer ships, which may go anywhere."""
    return peer.get("endpoint") not in (None, "", HBASE_ENDPOINT)


def own_shipping(peer: Mapping[str, Any]) -> str | None:
    """Return which user code decides what the peer ships, in words; None for only HBase's own.

    A filter may drop cells inside an entry, and an endpoint may do anything: the stamp arrives regardless.
    """
    parts = []
    if has_own_endpoint(peer):
        parts.append(f"replication endpoint {peer['endpoint']}")
    if peer.get("entry_filters"):
        parts.append(f"WAL entry filters {peer['entry_filters']}")
    return " and ".join(parts) or None


def family_filter(peer: PeerFacts) -> FamilyFilter:
    """Return the families that the peer names of tables that it ships."""
    everything = peer.get("replicate_all", True)
    listed = (peer.get("exclude_table_cfs") if everything else peer.get("table_cfs")) or {}
    # A namespace in the peer's list ships all families of its tables, whatever `table_cfs` names of them.
    whole = () if everything else peer.get("namespaces") or ()
    return FamilyFilter(
        {table: frozenset(named) for table, named in listed.items() if named and namespace_of(table) not in whole},
        everything,
        peer,
    )


def withheld(peer: PeerFacts, replicated: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return by table the replicated families that this peer does not ship, of tables that it ships partially."""
    shipped = family_filter(peer)
    parts = {
        table: tuple(sorted(family for family in families if not shipped.ships(table, family)))
        for table, families in sorted(replicated.items())
        if ships(peer, table)
    }
    return {table: families for table, families in parts.items() if families}


def shipped(peer: PeerFacts, replicated: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return the replicated families that the peer ships, by table; tables without any are left out."""
    chosen = family_filter(peer)
    families = {
        table: tuple(family for family in ours if chosen.ships(table, family)) for table, ours in replicated.items()
    }
    return {table: ours for table, ours in families.items() if ours}


def not_replicated(peer: PeerFacts, tables: Mapping[str, tuple[Collection[str], Collection[str]]]) -> NotReplicated:
    """Return what the peer does not ship to its slave; `tables` maps names to replicated families and others."""
    whole = {table for table, (replicated, _) in tables.items() if not replicated or not ships(peer, table)}
    rest = {table: families for table, families in tables.items() if table not in whole}
    left_out = withheld(peer, {table: replicated for table, (replicated, _) in rest.items()})
    whole |= {table for table, families in left_out.items() if len(families) == len(rest[table][0])}
    families = {
        (table, family)
        for table, (_, local) in rest.items()
        if table not in whole
        for family in (*local, *left_out.get(table, ()))
    }
    return NotReplicated(tuple(sorted(whole)), tuple(sorted(families)))


def _wanted(peers: Sequence[PeerFacts], slave_id: str, slave_key: str, wanted: str) -> PeerFacts:
    for peer in peers:
        if peer["id"] != wanted:
            continue
        if peer.get("cluster_id") and peer["cluster_id"] != slave_id:
            raise StatusFileError(
                f"peer {wanted} of the master leads to cluster {safe(peer['cluster_id'])}, not to this one"
                f" ({slave_id}): run on that cluster, or name another peer"
            )
        if (other := _of_this_address(peers, peer, slave_key)) is not None:
            address = safe(str(peer.get("cluster_key") or ""))
            raise StatusFileError(
                f"peer {wanted} of the master may lead to another cluster of this one's id ({slave_id}), as its address"
                f" {address} is not that of peer {safe(other['id'])}, which is this cluster's: "
                "name that peer, or let both have one cluster key if they lead to one cluster"
            )
        return peer
    known = safe(", ".join(str(peer["id"]) for peer in peers)) or "none"
    raise StatusFileError(f"the master has no peer {wanted!r} (its peers: {known}): check --peer")


def _of_this_address(peers: Sequence[PeerFacts], wanted: PeerFacts, slave_key: str) -> PeerFacts | None:
    """Return the peer that has the slave's key where another one of its cluster id, the wanted one, has not.

    Two clusters have one id where one was made of a copy of the other's HDFS, and the queues of one tell nothing of
    the other.
    """
    keys = {str(peer["id"]): normal_key(str(peer.get("cluster_key") or "")) for peer in peers}
    here = normal_key(slave_key)
    if not slave_key or not wanted.get("cluster_id") or keys[str(wanted["id"])] == here:
        return None
    same = (peer for peer in peers if peer.get("cluster_id") == wanted["cluster_id"])
    return next((peer for peer in same if keys[str(peer["id"])] == here), None)


def _none_leads(peers: Sequence[PeerFacts], slave_id: str) -> str:
    named = safe(", ".join(f"{p['id']} → {p.get('cluster_id') or p.get('cluster_key')}" for p in peers))
    if any(not peer.get("cluster_id") for peer in peers):
        return (
            f"cannot determine which peer of the master leads to this cluster {slave_id} (peers: {named}; not every "
            "peer could be queried for its id): select one with --peer ID"
        )
    return (
        f"FILE is from a cluster that does not replicate to this one: none of its peers ({named}) is cluster "
        f"{slave_id}. Run on the right slave, or write FILE on the right master"
    )


def disabled_notices(peer: PeerFacts) -> tuple[str, ...]:
    """Return a notice if the peer ships nothing now."""
    if peer.get("enabled", True):
        return ()
    return (f"peer {peer['id']} was disabled on the master when FILE was written: `enable_peer '{peer['id']}'` there",)
