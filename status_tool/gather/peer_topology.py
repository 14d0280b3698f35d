"""Topology of replication: the clusters that can be reached through the peers of one, and their links."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from status_tool.clients.config import ZooKeeperEndpoint
from status_tool.clients.zookeeper import PEER_TIMEOUT_S, Peer, ZooKeeper, parse_cluster_key
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.rules.peers import feeds_replicas
from status_tool.vocabulary.outcome import Cluster, ClusterMap, PeerLink


@dataclass(frozen=True, slots=True)
class Link:
    """A peer of a cluster, and the cluster it leads to (None: unknown)."""

    peer: Peer
    to: str | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A cluster that was reached."""

    id: str
    key: str
    live_servers: int
    links: tuple[Link, ...] = ()


@dataclass(slots=True)
class Topology:
    """Clusters by their ids, the queried one first; `shape` says how they are connected."""

    root: str
    nodes: dict[str, Node] = field(default_factory=dict)

    @property
    def shape(self) -> str:
        """`alone`, `master-slave`, `master-master`, `cyclic`, `chain`, `fan-out` or `mixed`."""
        edges = {(node.id, link.to) for node in self.nodes.values() for link in node.links if link.to}
        edges = {(a, b) for a, b in edges if a != b}
        if not edges:
            return "alone"
        outgoing, incoming = Counter(a for a, _ in edges), Counter(b for _, b in edges)
        clusters = {end for edge in edges for end in edge}
        single = max(outgoing.values()) == 1 and max(incoming.values()) == 1
        if single and len(edges) == len(clusters):
            return "master-master" if len(clusters) == 2 else "cyclic"
        if single:
            return "master-slave" if len(edges) == 1 else "chain"
        if len(outgoing) == 1:
            return "fan-out"
        return "mixed"

    @property
    def problems(self) -> list[str]:
        """Every broken link, in words."""
        return [
            f"{node.id}: peer {link.peer.id} {problem}"
            for node in self.nodes.values()
            for link in node.links
            for problem in link.problems
        ]

    def to_map(self) -> ClusterMap:
        """Return the map for the picture, with links to unreachable clusters."""
        nodes = self.nodes.values()
        clusters = {node.id: Cluster(node.id, node.key, "this cluster" * (node.id == self.root)) for node in nodes}
        links = []
        for node in nodes:
            for link in node.links:
                where = link.peer.endpoint or link.peer.cluster_key
                target = link.to or where
                clusters.setdefault(target, Cluster(target, where))
                note = "broken" if link.problems else ""
                note = note if link.peer.enabled else "DISABLED"
                links.append(PeerLink(node.id, target, link.peer.id, note, bool(link.problems)))
        return ClusterMap(tuple(clusters.values()), tuple(links))

    def to_json(self) -> dict[str, Any]:
        """Return the document of `status-tool topology --json`."""
        return {
            "cluster_id": self.root,
            "shape": self.shape,
            "clusters": [_node_json(node) for node in self.nodes.values()],
            "problems": self.problems,
        }


def explore(endpoint: ZooKeeperEndpoint) -> Topology:
    """Follow the peers from the cluster at `endpoint`, breadth first.

    Raises `ConnectionFailed` or `ConfigurationError` only for that first cluster; others that cannot be
    reached are problems of the links that lead to them.
    """
    with ZooKeeper(endpoint) as session:
        first, peers = _identity(session), session.peers()
    found = Topology(first.id)
    waiting: deque[tuple[Node, list[Peer]]] = deque([(first, peers)])
    found.nodes[first.id] = first
    reached: dict[ZooKeeperEndpoint, str | None] = {endpoint: first.id}
    while waiting:
        node, peers = waiting.popleft()
        links = []
        for peer in peers:
            to, problem, new = _follow(peer, reached, endpoint)
            # Several cluster keys may lead to one cluster.
            if new is not None and new[0].id not in found.nodes:
                found.nodes[new[0].id] = new[0]
                waiting.append(new)
            links.append(Link(peer, to, (problem,) if problem else ()))
        found.nodes[node.id] = Node(node.id, node.key, node.live_servers, tuple(_judged(node.id, links)))
    return found


def _identity(session: ZooKeeper) -> Node:
    return Node(session.cluster_id(), session.endpoint.cluster_key, len(session.live_servers()))


def _follow(
    peer: Peer, reached: dict[ZooKeeperEndpoint, str | None], of: ZooKeeperEndpoint
) -> tuple[str | None, str | None, tuple[Node, list[Peer]] | None]:
    """Return the cluster behind a peer, the link's problems, and the cluster's node if it is new."""
    endpoint = parse_cluster_key(peer.cluster_key, of)
    if endpoint is None:
        if peer.endpoint:
            return None, None, None  # A custom endpoint leads to a system that is not HBase.
        return None, f"leads to {peer.cluster_key!r}, which is not an HBase cluster key", None
    if endpoint not in reached:
        try:
            with ZooKeeper(endpoint, PEER_TIMEOUT_S) as session:
                node, peers = _identity(session), session.peers()
        except (ConnectionFailed, ConfigurationError) as error:
            # A cluster that is away costs `PEER_TIMEOUT_S`: the next peer that leads there does not ask again.
            reached[endpoint] = None
            return None, _unreachable(peer, error), None
        reached[endpoint] = node.id
        problem = "leads to a cluster without a live region server" if not node.live_servers else None
        return node.id, problem, (node, peers)
    to = reached[endpoint]
    return to, None if to else f"leads to {peer.cluster_key}, which cannot be reached", None


def _unreachable(peer: Peer, error: Exception) -> str:
    if isinstance(error, ConfigurationError):
        return f"leads to {peer.cluster_key}, where there is no HBase cluster"
    return f"leads to {peer.cluster_key}, which cannot be reached"


def _judged(node_id: str, links: Sequence[Link]) -> list[Link]:
    """Return the links of one cluster, with the problems between them."""
    targets = Counter(link.to for link in links if link.to)
    judged = []
    for link in links:
        problems = list(link.problems)
        if feeds_replicas(asdict(link.peer)):
            pass  # HBase's own, and where it has to lead
        elif link.to == node_id:
            problems.append("leads to its own cluster: nothing is shipped")
        elif link.to and targets[link.to] > 1:
            problems.append(f"leads to cluster {link.to} as another peer does: edits are shipped twice")
        if not link.peer.enabled:
            problems.append("is disabled: its queues grow until `enable_peer`")
        judged.append(Link(link.peer, link.to, tuple(problems)))
    return judged


def what_is_shipped(peer: Peer) -> str:
    """Return a peer's filters in words."""
    if peer.replicate_all:
        left_out = [*(f"{n}:*" for n in peer.exclude_namespaces), *_tables(peer.exclude_table_cfs)]
        return "everything" + (f" but {', '.join(left_out)}" if left_out else "")
    return ", ".join([*(f"{n}:*" for n in peer.namespaces), *_tables(peer.table_cfs)]) or "nothing"


def _tables(tables: dict[str, list[str]] | None) -> list[str]:
    return [f"{name} ({', '.join(families)})" if families else name for name, families in (tables or {}).items()]


def _node_json(node: Node) -> dict[str, Any]:
    links = [
        {
            "peer": link.peer.id,
            "cluster_key": link.peer.cluster_key,
            "cluster_id": link.to,
            "endpoint": link.peer.endpoint,
            "enabled": link.peer.enabled,
            "serial": link.peer.serial,
            "bandwidth": link.peer.bandwidth,
            "ships": what_is_shipped(link.peer),
            "problems": list(link.problems),
        }
        for link in node.links
    ]
    return {"cluster_id": node.id, "cluster_key": node.key, "live_servers": node.live_servers, "peers": links}
