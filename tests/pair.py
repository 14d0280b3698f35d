"""A master and a slave with the trackers, and the tool run against them as a user would."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from status_tool.cli.main import main
from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.sitefiles import SiteConfig, load_site
from status_tool.clients.thrift import scan
from status_tool.clients.webhdfs import WebHdfs
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.rules.streams import SERVER_CLOCKS_MS
from status_tool.sources.hdfs_files import endpoint_at
from status_tool.sources.replication_queues import read_queues
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.state_rows import ServerRow, column, range_of
from tests.lab.cluster import Cluster, ClusterSpec
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.schema import assert_valid

REPOSITORY = Path(__file__).resolve().parent.parent
JAR = REPOSITORY / "coprocessor_stubs" / "target" / "status-tool-coprocessors.jar"
PEER = "1"
STATE_TABLE = "replicationstate"

WAL_TRACKER = {"hbase.coprocessor.wal.classes": "io.github.statustool.WriteTimeTracker"}
REPLICATE_TRACKER = {"hbase.coprocessor.regionserver.classes": "io.github.statustool.ReplicateTimeTracker"}
SHORT_PERIODS = {
    "hbase.replicationtable.updatedelay": "1000",
    "hbase.replicationtable.updateperiod": "5000",
}
"""Not needed for a right result (the barrier makes it right at once), but for tests of what happens in between."""
BOTH_TRACKERS = {**WAL_TRACKER, **REPLICATE_TRACKER}


@dataclass(frozen=True)
class Result:
    """What one run of the tool did."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        """The one document on stdout."""
        document = json.loads(self.stdout)
        assert isinstance(document, dict)
        return document

    @property
    def codes(self) -> set[str]:
        """Those of its problems."""
        return {problem["code"] for problem in self.json["problems"]}

    @property
    def contradictions(self) -> list[str]:
        """What trackers and witness say differently, in words."""
        return [one["detail"] for one in self.json["problems"] if one["detail"].startswith("contradiction")]

    def __repr__(self) -> str:
        """Everything, for a test's failure."""
        return f"exit {self.exit_code}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def tool(*arguments: str | Path, conf: Cluster | Path | None = None, timeout: float = 900) -> Result:
    """Run the console script as a process of its own."""
    where = () if conf is None else ("--conf-dir", str(conf.conf_dir if isinstance(conf, Cluster) else conf))
    command = [sys.executable, "-m", "status_tool", *map(str, arguments), *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=tool_environment(), check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def tool_here(*arguments: str | Path, conf: Cluster | Path | None = None) -> Result:
    """The same command line inside this process, which has a Spark session already."""
    where = () if conf is None else ("--conf-dir", str(conf.conf_dir if isinstance(conf, Cluster) else conf))
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        exit_code = main([*map(str, arguments), *where])
    return Result(exit_code, stdout.getvalue(), stderr.getvalue())


def tool_environment() -> dict[str, str]:
    """The environment without the user's own configuration."""
    hidden = ("HBASE_CONF_DIR", "HADOOP_CONF_DIR")
    return {key: value for key, value in os.environ.items() if key not in hidden}


def tracked_spec(
    name: str,
    *,
    region_servers: int = 2,
    trackers: Mapping[str, str] = BOTH_TRACKERS,
    site: Mapping[str, str] | None = None,
    rs_site: Sequence[Mapping[str, str]] = (),
) -> ClusterSpec:
    """A cluster with the trackers on every region server."""
    merged = {**SHORT_PERIODS, **trackers, **(site or {})}
    return ClusterSpec(name, region_servers, site=merged, rs_site=rs_site, extra_classpath=[JAR], one_hdfs_process=True)


@dataclass(frozen=True)
class Pair:
    """A master that replicates to a slave."""

    master: Cluster
    slave: Cluster

    def lose(self, table: str, rows: int = 5) -> None:
        """Write rows (family f) that no peer ever ships, and later ones that arrive.

        A WAL that is rolled only after the peer has come is shipped from its beginning: then once more, with others.
        """
        for start in range(100, 1_000, 100):
            self.master.admin.remove_peer(PEER)
            self.master.admin.put_rows(table, "f", rows, start=start)
            self.master.admin.roll_wal()
            self.connect()
            self.master.admin.put_rows(table, "f", rows, start=start + rows)
            last = f"row{start + 2 * rows - 1:08d}".encode()
            wait_until(partial(lambda key: key in self.slave.admin.rows(table), last), 60, "later rows have arrived")
            if f"row{start:08d}".encode() not in self.slave.admin.rows(table):
                wait_lasting()
                return
        raise AssertionError("every row was shipped")

    def create_table(
        self, name: str, families: Mapping[str, int], splits: Sequence[bytes] = (), slave_splits: Sequence[bytes] = ()
    ) -> None:
        """The table on both sides, made at the same time."""
        with ThreadPoolExecutor(2) as pool:
            made = pool.submit(self.slave.admin.create_table, name, families, splits=slave_splits or splits)
            self.master.admin.create_table(name, families, splits=splits)
            made.result()

    def create_filled(
        self,
        name: str,
        rows: int,
        splits: Sequence[bytes] = (),
        slave_splits: Sequence[bytes] = (),
        value: str = "v",
    ) -> None:
        """The table with family f on both sides, with so many rows from the master."""
        self.create_table(name, {"f": 1}, splits, slave_splits)
        self.master.admin.put_rows(name, "f", rows, value=value)
        self.wait_same(name)

    def connect(self, **options: Any) -> None:
        """Add the peer on the master."""
        self.master.admin.add_peer(PEER, self.slave.cluster_key, **options)

    def let_peer_age(self) -> None:
        """Wait until the peer is older than whatever comes next: by more than clocks may differ, and on all servers.

        So are the files to ship to it, which its region servers begin to list some time after it was added.
        """
        with ZooKeeper(Settings(SiteConfig({}), zookeeper_option=self.master.zookeeper).zookeeper()) as session:
            (peer,) = (one for one in session.peers() if one.id == PEER)
            listed = [refs.since_ms for refs in read_queues(session).hfile_refs]
        known_ms = max([max(peer.created_ms, peer.modified_ms or 0) + REFRESHED_MS, *listed])
        time.sleep(max(0.0, (known_ms + SKEW_MS) / 1000 + 1 - time.time()))

    def same(self, table: str, families: Sequence[str] | None = None) -> bool:
        """Whether both sides hold the same cells, row by row."""
        return self.master.admin.digest(table, families=families) == self.slave.admin.digest(table, families=families)

    def wait_same(self, table: str, families: Sequence[str] | None = None, timeout: float = 120) -> None:
        """Wait until both sides hold the same cells."""
        wait_until(lambda: self.same(table, families), timeout, f"{table} is the same on both sides")

    def wait_drained(self, timeout: float = 120) -> None:
        """Wait until the master's queues are empty. Asked once a second: each time costs as much as a command."""
        ask = partial(tool_here, "queues", conf=self.master)
        wait_until(lambda: ask().exit_code == 0, timeout, "the queues are drained", interval=1)

    def write_master(self, file: Path, *arguments: str) -> Result:
        """`run -m -o FILE` on the master, the HBase half; must succeed."""
        result = tool_here("run", "-m", "-o", file, "--only", "hbase", *arguments, conf=self.master)
        assert result.exit_code == 0, result
        return result

    def check(self, file: Path, *arguments: str | Path) -> Result:
        """`run -i FILE --json` on the slave, the HBase half; what it prints must be valid by the schema."""
        result = tool_here("run", "-i", file, "--json", "--only", "hbase", *arguments, conf=self.slave)
        assert_valid(result.json)
        return result

    def verdict(self, file: Path, table: str, *arguments: str) -> Result:
        """Write the master's status of one table and check it at once."""
        self.write_master(file, "--table", table)
        return self.check(file, "--table", table, *arguments)

    def reversed(self) -> Pair:
        """The same two clusters, the other way round."""
        return Pair(self.slave, self.master)


def wait_lasting() -> None:
    """Wait until a hole before what has just arrived counts as a gap, whatever clocks the slave's servers have."""
    time.sleep(1.5 * SERVER_CLOCKS_MS / 1000)


def move_table(cluster: Cluster, table: str, server_name: str) -> None:
    """Move every region of a table to a server. Asked again, because a master may pick another one for a newcomer."""

    def moved() -> bool:
        elsewhere = [r.encoded for r in cluster.admin.regions(table) if r.server != server_name]
        for encoded in elsewhere:
            cluster.admin.move(encoded, server_name)
        return not elsewhere

    wait_until(moved, 90, f"{table} is served by {server_name}", interval=0.3)


def start_pair(lab: Lab, master: ClusterSpec | None = None, slave: ClusterSpec | None = None) -> Pair:
    """Start both and connect them."""
    first, second = lab.start_clusters(master or tracked_spec("master"), slave or tracked_spec("slave"))
    pair = Pair(first, second)
    pair.connect()
    for cluster in (first, second):
        if set(BOTH_TRACKERS) & {key for key, value in cluster.spec.site.items() if value}:
            wait_until(partial(serves_state, cluster), 120, "a tracker has made the state table")
    return pair


def wait_flushed(cluster: Cluster, from_ms: int | None = None) -> None:
    """Wait until both trackers of each live server have begun a flush later than that, or than now, and ended it."""
    later_ms = int(time.time() * 1000) if from_ms is None else from_ms
    endpoint, live = ThriftEndpoint("127.0.0.1", cluster.thrift_port), set(cluster.admin.live_servers())

    def flushed() -> bool:
        rows = [cells for _, cells in scan(endpoint, STATE_TABLE, *range_of(ServerRow.TYPE))]
        server, flushed_ms = column(ServerRow.NAME), column(ServerRow.FLUSHED_MS)
        named = [(cells[server][0].decode(), cells.get(flushed_ms, (b"", 0))[0]) for cells in rows]
        return live <= {name for name, _ in named} and all(
            int.from_bytes(flush, "big") > later_ms for name, flush in named if name in live
        )

    wait_until(flushed, 60, "the trackers have flushed")


def spool_of(cluster: Cluster) -> tuple[WebHdfs, str]:
    """The file system and the folder of its trackers' spool."""
    settings = Settings(load_site([cluster.conf_dir]))
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        folder = settings.spool_dir(zookeeper.cluster_id())
    assert folder is not None
    return WebHdfs(endpoint_at(settings, settings.spool_webhdfs())), folder


def serves_state(cluster: Cluster) -> bool:
    """Whether the state table is there and open."""
    regions = cluster.admin.regions(STATE_TABLE) if cluster.admin.table_exists(STATE_TABLE) else []
    return bool(regions) and all(region.server for region in regions)
