"""Drift of a live cluster: its own tables by Thrift, those of its peers by their ZooKeeper or by their site files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import PEER_TIMEOUT_S, ZooKeeper, peer_tables
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.explain.drift import Drift, DriftTarget, Lost, Tables, find_drift
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.peer_topology import Link, Topology
from status_tool.gather.snapshot import Request, snapshot
from status_tool.rules.origins import barriers_of
from status_tool.sources.meta import table_families
from status_tool.vocabulary.header import MASTER
from status_tool.vocabulary.scope import Baseline

WAIT_S = 10.0
"""Time for the trackers' flush; what one has not written by then appears in the next run."""

_LOST_COLUMNS = ["kind", "table", "region", "origin", "first_ms", "write_ms", "state"]


@dataclass(frozen=True)
class Found:
    """Drift that was found, and the reasons why some could not be checked."""

    drift: tuple[Drift, ...] = ()
    unchecked: tuple[str, ...] = ()


def cluster_drift(settings: Settings, topology: Topology, peers: Sequence[Settings], since: Baseline) -> Found:
    """Find drift between a cluster and its peers; `peers` are settings of clusters that may be among them.

    Unreachable clusters raise nothing: they are listed as not checked.
    """
    if not settings.knows_thrift:
        return Found(unchecked=("drift of tables is not known: give the Thrift server (--thrift or --conf-dir)",))
    unchecked: list[str] = []
    try:
        gathered = snapshot(settings, Request(side=MASTER, wait_s=WAIT_S, hdfs=False), lambda _: None)
        lost = Lost(since, barriers_of(row for row in gathered.rows if row["kind"] == "server"))
        for source in (gathered.regions, *gathered.sources):
            for batch in read_all(source):
                lost.add(batch.select(_LOST_COLUMNS).to_pylist())
    except (ConfigurationError, ConnectionFailed) as error:
        return Found(unchecked=(f"drift of tables is not known: {error}",))
    known = _known_tables(peers, unchecked)
    targets, links = [], topology.nodes[topology.root].links
    unchecked += _of_no_peer(known, links)
    for link in links:
        if link.to is None or link.to == topology.root:
            continue
        tables = known.get(link.to) or _mirrored_tables(link, settings)
        if tables is None or all(families is None for families in tables.values()):
            what = "tables" if tables is None else "families"
            unchecked.append(
                f"the {what} of cluster {link.to} (peer {link.peer.id}) are not known: give --peer-conf DIR"
            )
        targets.append(DriftTarget(asdict(link.peer), link.to, tables))
    rows = (*gathered.rows, *gathered.regions.rows("kind", "table"))
    return Found(tuple(find_drift(gathered.header, rows, lost.by_table, targets)), tuple(unchecked))


def _known_tables(peers: Sequence[Settings], unchecked: list[str]) -> dict[str, Tables]:
    """Return the families of each cluster's tables, by cluster id."""
    known: dict[str, Tables] = {}
    for settings in peers:
        try:
            with ZooKeeper(settings.zookeeper(), PEER_TIMEOUT_S) as session:
                cluster_id = session.cluster_id()
            rows = list(table_families(settings.thrift()))
        except (ConfigurationError, ConnectionFailed) as error:
            unchecked.append(f"--peer-conf: {error}")
            continue
        known[cluster_id] = {row["table"]: frozenset(json.loads(row["detail"])["families"]) for row in rows}
    return known


def _of_no_peer(known: Iterable[str], links: Sequence[Link]) -> Iterator[str]:
    """Yield the clusters of `--peer-conf` that no peer leads to, in words: their tables are compared with nothing."""
    for cluster in sorted(set(known) - {link.to for link in links}):
        yield f"--peer-conf: no peer of this cluster leads to {cluster}, so that its tables are not compared"


def _mirrored_tables(link: Link, settings: Settings) -> Tables | None:
    names = peer_tables(link.peer, settings.zookeeper())
    return dict.fromkeys(names) if names else None
