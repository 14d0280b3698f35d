"""Two clusters that schedules run on, one after another, and what is broken in them at the moment."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from status_tool.errors import StatusToolError
from status_tool.rules.peer_versions import REFRESHED_MS
from tests.campaign.schedule import BOTH, TABLES, WITNESSED
from tests.lab.cluster import Cluster, ClusterSpec
from tests.lab.errors import AdminError, LabError, LabTimeout
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.lab.process import RegionServer, Server
from tests.lab.waiting import wait_until
from tests.pair import PEER, REPLICATE_TRACKER, STATE_TABLE, WAL_TRACKER, Pair, start_pair, tracked_spec
from tests.witness import WITNESS_PEER, ZNODE, Witness, covered_from_ms, end_quietly

HBASE_ROOT = "/hbase"
PATIENCE_S = 45.0
"""For one command of an admin; a schedule goes on without it then."""

SITE = {
    # Long, because servers get stopped for as long as a look takes; a killed one is taken out of ZooKeeper by hand.
    "zookeeper.session.timeout": "300000",
    "replication.sleep.before.failover": "1000",
    "hbase.client.operation.timeout": "20000",
    "hbase.client.meta.operation.timeout": "20000",
    "hbase.rpc.timeout": "8000",
    "hbase.client.pause": "50",
    "hbase.hregion.majorcompaction": "0",
    # For the writers' mutations of several rows.
    "hbase.coprocessor.user.region.classes": "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
}
SKEW_MS = 9_000
BACK_MS = -14_000
"""By so much the skewed server's clock is set when a file `clock-step` is in its folder."""
SKEWED = {
    "lab.clock.offset": str(SKEW_MS),
    "lab.clock.step": str(BACK_MS),
    "hbase.coprocessor.regionserver.classes": "io.github.statustool.lab.SkewedClock,"
    "io.github.statustool.ReplicateTimeTracker",
}
APART = {
    "lab.clock.offset": "-300000",
    "hbase.coprocessor.regionserver.classes": SKEWED["hbase.coprocessor.regionserver.classes"],
    "hbase.coprocessor.master.classes": "io.github.statustool.lab.SkewedClock",
    # A region server reports for duty before its coprocessor makes its clock wrong.
    "hbase.master.maxclockskew": "600000",
}
"""Of the slave's servers: five minutes behind the master's."""
KINDS = {
    "plain": {},
    "slow": {"hbase.replicationtable.updateperiod": "600000"},
    "skewed": {},
    "apart": {},
    # Without it no witness sees a bulk load.
    WITNESSED: {"hbase.replication.bulkload.enabled": "true"},
    BOTH: {},
}
SINGLE = {"hbase.replicationtable.unstamped.entries": "true"}
ALL = {"hbase.replicationtable.unstamped.entries": "all"}
WITNESSES = ("one", "two")
FAILURES = (AdminError, LabError, LabTimeout)


@dataclass
class Arena:
    """A pair of clusters and its faults. `heal` ends every fault that a step has begun."""

    kind: str
    pair: Pair
    used: int = 0
    """Schedules that ran here before."""
    crashed: bool = False
    """Whether a server was ever killed here."""
    complete: bool = True
    """Whether the last schedule's end was complete: then the queues had settled all crashes before."""
    since_ms: int | None = None
    """Up to when an operator would have accepted the past."""
    in_scope: Mapping[str, Sequence[str]] | None = None
    """Tables that the peer is restricted to, each with its families (none named: all of them); None: everything."""
    fragile: set[tuple[str, str]] = field(default_factory=set)
    """Cells that were acknowledged before they were durable: a crash may lose them on the master as well."""
    peer_there: bool = True
    timers: list[threading.Timer] = field(default_factory=list)
    zookeeper: Server | None = None
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def tracked(self) -> list[Cluster]:
        """The clusters that have a state table."""
        return [self.slave] if self.kind == WITNESSED else [self.master, self.slave]

    @property
    def master(self) -> Cluster:
        """The cluster that is written to."""
        return self.pair.master

    @property
    def slave(self) -> Cluster:
        """The cluster that is replicated to."""
        return self.pair.slave

    def crash(self, cluster: Cluster, server: RegionServer) -> None:
        """Kill -9, and take its znode away as HBase's own start script does for a server that has died."""
        cluster.crash(server)
        self.crashed = True

    def pause(self, server: Server | Witness, seconds: float) -> None:
        """SIGSTOP now, SIGCONT after a while or when the arena is healed."""
        server.pause()
        timer = threading.Timer(seconds, _resume, [server])
        timer.start()
        self.timers.append(timer)

    def finish_pauses(self) -> None:
        """Wait until every paused server goes on."""
        for timer in self.timers:
            timer.join()
        self.timers.clear()

    def start_servers(self) -> None:
        """Start what is down, the servers of both sides side by side, and wait until they are accepted."""
        for cluster in (self.master, self.slave):
            for server in cluster.servers:
                if not server.running:
                    server.start(wait=False)
        for cluster in (self.master, self.slave):
            for server in cluster.region_servers:
                if server.running:
                    server.wait_registered(90)

    def start_witnesses(self) -> None:
        """Start those that are down, each with the folder that it had."""
        for witness in self.witnesses:
            if not witness.running:
                witness.start()

    def wait_covered(self) -> None:
        """Wait until every region server has the witnesses' peer as it is: younger tables need no word."""
        if self.witnesses:
            wait_until(self._is_covered, 2 * REFRESHED_MS / 1000, "every region server has the witnesses' peer")

    def _is_covered(self) -> bool:
        try:
            return time.time() * 1000 > covered_from_ms(self.master)
        except StatusToolError:
            return False

    def heal(self, tables: Sequence[str]) -> None:
        """End every fault; raises what the lab raises if that cannot be done."""
        self.finish_pauses()
        self.set_clock(back=False)
        self.slave.admin.space_quota(HBASE_ROOT, None)
        self.start_servers()
        self.start_witnesses()
        for cluster in (self.master, self.slave):
            wait_until(partial(cluster.has_master, PATIENCE_S), 90, f"{cluster.name} has a master")
            if cluster in self.tracked:
                _enable(cluster, STATE_TABLE)
                wait_until(partial(_answers, cluster, STATE_TABLE), 90, f"{cluster.name} answers")
            cluster.admin.balancer(False)
        self.restore_slave_tables(tables)
        for cluster in (self.master, self.slave):
            for table in tables:
                wait_until(partial(_answers, cluster, table), 90, f"{cluster.name} serves {table}")
        if not self.peer_there:
            self.add_peer()
        if self.in_scope is not None:
            self.filter_peer(None)
        with contextlib.suppress(AdminError):  # it is enabled
            self.master.admin.enable_peer(PEER)

    def restore_slave_tables(self, tables: Sequence[str]) -> None:
        """Every table of the schedule is there on the slave, enabled and with its families."""
        for table in tables:
            families = TABLES[table.split("_")[0]]
            if not self.slave.admin.table_exists(table):
                self.slave.admin.create_table(table, families, keep_all=True)
            _enable(self.slave, table)
            for family in families:
                with contextlib.suppress(AdminError):  # it is there
                    self.slave.admin.call("add_family", table=table, family=family, scope=1, keep_all=True)

    def add_peer(self) -> None:
        """The peer that leads to the slave, for every table."""
        self.pair.connect()
        self.peer_there, self.in_scope = True, None

    def filter_peer(self, tables: Mapping[str, Sequence[str]] | None) -> None:
        """Restrict the peer to some tables and families; None: everything again."""
        self.master.admin.set_peer_tables(PEER, tables)
        self.in_scope = tables

    def ships(self, table: str, family: str) -> bool:
        """Whether the peer replicates a family now, as far as its scope lets it."""
        if self.in_scope is None:
            return True
        return table in self.in_scope and (not self.in_scope[table] or family in self.in_scope[table])

    def set_clock(self, *, back: bool) -> bool:
        """Set the clock of the skewed region server back, or right again; whether there is one."""
        if self.kind != "skewed":
            return False
        mark = self.master.region_servers[1].folder / "clock-step"
        if back:
            mark.touch()
        else:
            mark.unlink(missing_ok=True)
        return True

    def usable(self) -> bool:
        """Whether another schedule may run here."""
        try:
            return all(server.running for c in (self.master, self.slave) for server in c.servers) and all(
                _answers(cluster, STATE_TABLE) for cluster in self.tracked
            )
        except FAILURES:
            return False


def _resume(server: Server | Witness) -> None:
    with contextlib.suppress(LabError):
        server.resume()


def _answers(cluster: Cluster, table: str) -> bool:
    try:
        regions = cluster.admin.call("regions", PATIENCE_S, table=table)
        live = cluster.admin.live_servers()
    except AdminError:
        return False
    return all(region["server"] in live for region in regions)


def _enable(cluster: Cluster, table: str) -> None:
    with contextlib.suppress(AdminError):  # it is enabled
        cluster.admin.call("enable_table", 90, table=table)


@contextlib.contextmanager
def arena(kind: str) -> Iterator[Arena]:
    """Start an arena of a kind, with three region servers on the master and two on the slave; gone at the end.

    A DataNode is a process of its own, so that schedules can pause it.
    """
    site = SITE | KINDS[kind]
    rs_site = ({}, SKEWED) if kind == "skewed" else ()
    more = {"apart": APART, WITNESSED: SINGLE, BOTH: ALL}.get(kind, {})
    bare = ClusterSpec("master", 3, site=site)
    tracked = tracked_spec("master", region_servers=3, trackers=WAL_TRACKER, site=site, rs_site=rs_site)
    with Lab() as lab, contextlib.ExitStack() as beside:
        slave = tracked_spec("slave", region_servers=2, trackers=REPLICATE_TRACKER, site=site | more)
        specs = (bare if kind == WITNESSED else tracked, slave)
        pair = start_pair(lab, *(replace(spec, one_hdfs_process=False) for spec in specs))
        witnesses = beside.enter_context(_witnesses(lab, pair)) if kind in (WITNESSED, BOTH) else []
        built = Arena(kind, pair, zookeeper=lab.zookeeper, witnesses=witnesses)
        try:
            yield built
        finally:
            built.finish_pauses()


@contextlib.contextmanager
def _witnesses(lab: Lab, pair: Pair) -> Iterator[list[Witness]]:
    """Some that share the load of one peer of the master."""
    ports = Ports()
    with tempfile.TemporaryDirectory(prefix="status-tool-witness-") as folder:
        witnesses = [Witness(lab, Path(folder) / name, ports.take()) for name in WITNESSES]
        try:
            for witness in witnesses:
                witness.start()
            pair.master.admin.add_peer(WITNESS_PEER, f"127.0.0.1:{lab.zk_port}:{ZNODE}")
            yield witnesses
        finally:
            for witness in witnesses:
                end_quietly(witness.process)
            ports.release()
