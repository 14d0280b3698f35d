"""Checks of a cluster before the tool is used: what is in place, and what has to be mended, in words.

Changes nothing but the barrier's row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from status_tool.clients.config import Settings
from status_tool.clients.hdfs_native import no_process_left, rpc_endpoint_of
from status_tool.clients.webhdfs import Load, WebHdfs
from status_tool.clients.zookeeper import Peer, ZooKeeper, peer_cluster_id
from status_tool.errors import StatusToolError
from status_tool.gather.hdfs_side import impatient
from status_tool.gather.measured_queues import measure
from status_tool.gather.snapshot import settle
from status_tool.published.carriers import carried
from status_tool.published.table import PublishedTable
from status_tool.rules.kept_proofs import told_by_master
from status_tool.rules.peers import feeds_replicas, own_shipping
from status_tool.sources.hdfs_files import endpoint_of, refusals_end_the_run
from status_tool.sources.state_table import Barrier, Descriptors, StateTable
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.state_rows import REPLICATOR, WRITER

TRACKERS = {WRITER: "WriteTimeTracker", REPLICATOR: "ReplicateTimeTracker"}
BULKLOAD_KEY = "hbase.replication.bulkload.enabled"
ECHO_S = 10.0
"""Time that trackers get to answer a barrier; they look for one every second."""
PEERS_ADVICE = "keep the peers in ZooKeeper (HBase's CopyReplicationPeers moves them), then restart the servers"
BEHIND_MS = 1_000
"""Difference that two clocks that are kept by NTP never have."""


@dataclass(frozen=True)
class Checked:
    """Something that was looked at."""

    what: str
    mend: str | None = None
    """Advice; None: all is well."""


def inspect(settings: Settings) -> Iterator[Checked]:
    """Look at everything that a run needs, as far as it can be reached; an error is a finding, not the end."""
    yield from _or_error("ZooKeeper", lambda: _zookeeper(settings))
    yield from _or_error("Thrift", lambda: _trackers(settings))
    yield from _or_error("HDFS", lambda: _hdfs(settings))
    yield from _or_error("Published status files", lambda: _published(settings))
    if settings.site.get(BULKLOAD_KEY, "false").lower() != "true":
        yield Checked(f"{BULKLOAD_KEY} is not true in these site files: bulk loads on servers without it are named")


def _or_error(what: str, look: Callable[[], Iterable[Checked]]) -> Iterator[Checked]:
    try:
        yield from list(look())
    except StatusToolError as error:
        yield Checked(f"{what} cannot be read", str(error))


def _zookeeper(settings: Settings) -> Iterator[Checked]:
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        live = len(zookeeper.live_servers())
        yield Checked(f"ZooKeeper {zookeeper.endpoint}: HBase cluster {zookeeper.cluster_id()}, {live} region servers")
        if elsewhere := settings.peers_elsewhere:
            yield Checked(f"{elsewhere}: no verdict on what this cluster ships is ever complete", PEERS_ADVICE)
        else:
            yield from _peers(zookeeper)
        if problem := measure(settings, zookeeper).hdfs_problem:
            why = "a crashed region server cannot be settled, nor are bytes in the queues known"
            yield Checked(f"the folder of WALs cannot be read: {why}", problem)


def _peers(zookeeper: ZooKeeper) -> Iterator[Checked]:
    peers = zookeeper.peers()
    if not peers:
        yield Checked("no replication peer: nothing is shipped from here, as on a cluster that is only a slave")
    for peer in peers:
        yield _peer(peer, peer_cluster_id(peer, zookeeper.endpoint))


def _peer(peer: Peer, cluster_id: str | None) -> Checked:
    name = f"peer {peer.id}"
    if feeds_replicas(asdict(peer)):
        return Checked(f"{name} is HBase's own, for region replicas: it leads to no other cluster")
    if own := own_shipping(asdict(peer)):
        return Checked(f"{name} has {own}", "no verdict about it is ever complete: what they leave out is unknown")
    if not peer.enabled:
        return Checked(f"{name} is disabled", f"enable_peer '{peer.id}' in the HBase shell")
    if cluster_id is None:
        return Checked(f"{name}: its ZooKeeper ({peer.cluster_key}) does not answer", "check that it is up")
    return Checked(f"{name} leads to HBase cluster {cluster_id}")


def _trackers(settings: Settings) -> Iterator[Checked]:
    state = StateTable(settings.thrift(), settings.state_table)
    state.require()
    yield Checked(f"Thrift {settings.thrift()}: state table {settings.state_table} exists")
    barrier, deadline = state.put_barrier(), time.monotonic() + ECHO_S
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        for role in TRACKERS:
            live = settle(state, zookeeper, barrier, role, deadline)
    small, versions = state.descriptors(barrier), state.versions()
    echoes = {(row["server"], row["role"]): row["echoed"] for _, row in small.servers}
    for server in live:
        yield _server(server, echoes, versions)
    running = {version for (server, _), version in versions.items() if server in live}
    if len(running) > 1:
        yield Checked(
            f"trackers of several versions: {', '.join(sorted(running))}",
            "put the same jar into HBase's lib folder everywhere, then restart the region servers one after another",
        )
    yield from _clocks(small, barrier, live)
    yield from _tables(small)
    for by_master in told_by_master(small.proven):
        yield Checked(by_master)


def _server(server: str, echoes: dict[tuple[str, str], bool], versions: dict[tuple[str, str], str]) -> Checked:
    absent = [name for role, name in TRACKERS.items() if (server, role) not in echoes]
    if absent:
        properties = "hbase.coprocessor.wal.classes and hbase.coprocessor.regionserver.classes"
        return Checked(
            f"{server} runs without {' and '.join(absent)}",
            f"check {properties} in its hbase-site.xml and the jar in HBase's lib folder, then restart it",
        )
    silent = [TRACKERS[role] for (name, role), echoed in echoes.items() if name == server and not echoed]
    if silent:
        return Checked(f"{server}: {' and '.join(silent)} did not answer within {ECHO_S:.0f} s", "read its log")
    found = sorted({versions.get((server, role)) or "unknown" for role in TRACKERS})
    return Checked(f"{server} runs both trackers, version {' and '.join(found)}")


def _clocks(small: Descriptors, barrier: Barrier, live: list[str]) -> Iterator[Checked]:
    """Check the servers' clocks.

    A server reads the token after it is issued, so an earlier time shows a clock that is behind.
    """
    for _, row in small.servers:
        if row["server"] not in live or row["role"] != WRITER or not row["echoed"] or row["read_ms"] is None:
            continue
        ahead_ms = row["read_ms"] - barrier.issued_ms
        # A tracker reads the token up to `ECHO_S` after its issue, so that a clock which is a little ahead looks the
        # same.
        if not -BEHIND_MS <= ahead_ms <= SKEW_MS:
            how = f"{abs(ahead_ms) / 1000:.1f} s {'behind' if ahead_ms < 0 else 'ahead of'} this host's"
            yield Checked(f"the clock of {row['server']} is {how}", "let NTP set the clocks of all hosts")


def _tables(small: Descriptors) -> Iterator[Checked]:
    tables = [(row["table"], json.loads(row["detail"])) for row in small.tables]
    for table, descriptor in sorted(tables):
        if descriptor.get("durability") == "SKIP_WAL":
            yield Checked(
                f"table {table} has durability SKIP_WAL: what is written to it is never replicated",
                f"alter '{table}', DURABILITY => 'USE_DEFAULT', or copy it by other means",
            )


def _published(settings: Settings) -> Iterator[Checked]:
    """Check the table of published status files. Its problems have to be mended only once something is published."""
    table = PublishedTable(settings.thrift(), settings.status_table)
    if (problem := table.problem()) is not None:
        yield Checked("no published status file can arrive here, or leave", problem)
        return
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        is_used = table.claimed(zookeeper.cluster_id()) is not None
        peers = carried(zookeeper.peers(), zookeeper.endpoint, table.name)
        problems = [one.problem for one in peers if one.problem is not None]
    for problem in problems:
        if is_used:
            yield Checked("published status files do not reach every peer", problem)
        else:
            yield Checked(f"nothing is published from here; before it is: {problem}")
    if not problems:
        yield Checked(f"table {table.name} for published status files exists, here and as far as can be seen")


def _hdfs(settings: Settings) -> Iterator[Checked]:
    if settings.mounts():
        yield from _view(settings)
        return
    endpoint = endpoint_of(settings)
    with refusals_end_the_run(endpoint):
        WebHdfs(endpoint, patience_s=0).status("/")
    whose = "this user's ticket" if settings.is_hadoop_kerberized else f"user {endpoint.user}"
    yield Checked(f"HDFS {endpoint}: the NameNode answers {whose}")


def _view(settings: Settings) -> Iterator[Checked]:
    """Check by Hadoop's own client whether each file system of a mount table answers."""
    endpoint = rpc_endpoint_of(settings)
    assert endpoint is not None
    with no_process_left(), refusals_end_the_run(endpoint):
        hdfs = impatient(endpoint, Load())
        for path, target in endpoint.mounts:
            found = "the NameNode answers" if hdfs.status(path) is not None else "there is nothing yet"
            yield Checked(f"HDFS {endpoint}{path}, {target}: {found}")
