"""Servers killed, the state table out of reach, a server without the tracker: never a false complete.

The tests run in the order of their writing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import itemgetter
from pathlib import Path

import happybase
import pytest
from hdfs import InsecureClient

from status_tool.clients.config import ThriftEndpoint
from status_tool.errors import ConnectionFailed
from status_tool.sources.codec import segments, server_key
from status_tool.sources.spool import read_spool
from status_tool.sources.state_table import StateTable, StateTableSource
from status_tool.vocabulary.ids import origin_id
from tests.cluster.test_verdicts import assert_complete, dump
from tests.lab.cluster import Cluster
from tests.lab.process import RegionServer
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, Pair, move_table, spool_of, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


@pytest.fixture(scope="module")
def untracked(pair: Pair) -> Iterator[RegionServer]:
    """One more server of the master, without trackers: by a wrong setting they are off."""
    server = pair.master.add_region_server({"hbase.replicationtable.name": "ns:name"})
    yield server
    server.stop()
    pair.wait_drained()  # other modules use the pair, and nobody knows the server whose queue is claimed


def test_without_waiting_it_is_unverifiable_rather_than_wrong(pair: Pair, status: Path) -> None:
    """`-m --wait 0`: as long as a region server has not answered the barrier, nothing is called complete."""
    pair.create_filled("nowait", 10)
    exit_codes = set()
    for _ in range(30):  # the server polls once a second, and may do so in this very moment
        written = pair.write_master(status, "--table", "nowait", "--wait", "0")
        settled = "has not flushed past the cut" not in written.stderr
        result = pair.check(status, "--table", "nowait")
        assert result.exit_code == (0 if settled else 3), result
        exit_codes.add(result.exit_code)
        if not settled:
            assert "has not flushed past the cut" in json.dumps(result.json["problems"])
            break
    assert 3 in exit_codes


def test_state_table_disabled_on_the_slave(pair: Pair, status: Path) -> None:
    """Replication goes on at its pace; what could not be recorded is recorded once the table is back."""
    pair.create_filled("dark", 10)
    pair.slave.admin.disable_table(STATE_TABLE)
    try:
        for start in (10, 20, 30):
            pair.master.admin.put_rows("dark", "f", 10, start=start)
            pair.wait_same("dark", timeout=30)
        pair.write_master(status, "--table", "dark")
        result = pair.check(status, "--table", "dark")
        assert (result.exit_code, "disabled" in result.stderr) == (2, True), result
    finally:
        pair.slave.admin.enable_table(STATE_TABLE)
    assert_complete(pair.check(status, "--table", "dark", "--wait", "60"))


def record_openings(pair: Pair, file: Path) -> None:
    """A server that is killed before it has recorded that it opened a region is a false alarm that is known."""
    for cluster in (pair.master, pair.slave):
        assert tool_here("run", "-o", file, "--only", "hbase", conf=cluster).exit_code == 0


def test_killed_while_the_state_table_is_away(pair: Pair, status: Path) -> None:
    """What could not be written through is in the spool once it is acknowledged: nothing looks missing after a crash.

    Rows come one after another until then: there is no moment at which a copy made now and then would hold them all.
    """
    pair.create_table("dark3", {"f": 1})
    record_openings(pair, status)
    pair.slave.admin.disable_table(STATE_TABLE)
    try:
        rows = count()
        wait_until(lambda: _put(pair, "dark3", rows) and _spooled_ends(pair.slave), 60, "a copy in the spool")
        for _ in range(40):
            _put(pair, "dark3", rows)
        crash_all(pair.slave)
    finally:
        pair.slave.admin.enable_table(STATE_TABLE)
    pair.wait_same("dark3", timeout=60)
    pair.write_master(status, "--table", "dark3")
    assert_complete(pair.check(status, "--table", "dark3", "--wait", "120"))
    wait_until(lambda: not _spooled_ends(pair.slave), 60, "the spool to be read by another tracker")


def test_killed_between_two_flushes(pair: Pair, status: Path) -> None:
    """What was acknowledged since the last one is in the spool: nothing looks missing, and others take it over.

    So it is under load: segments are recorded before a batch is acknowledged, and other batches are cut off.
    """
    master, rows = pair.master.admin, count()
    pair.create_table("between", {"f": 1})
    pair.create_table("slavekill", {"f": 1}, [b"load00000200"])
    (between,) = (region.encoded for region in master.regions("between"))
    record_openings(pair, status)
    load = master.load_start("slavekill", "f", 200)
    wait_until(lambda: master.load_count(load) > 300, 60, "both regions are written to")
    wait_until(
        lambda: _put(pair, "between", rows) and between in dict(_spooled_ends(pair.slave)),
        60,
        "a record in the spool",
    )
    crash_all(pair.slave)
    master.load_stop(load)
    for table in ("between", "slavekill"):
        pair.wait_same(table, timeout=180)
    both = ("--table", "between", "--table", "slavekill")
    pair.write_master(status, *both)
    document = assert_complete(pair.check(status, *both, "--wait", "120"))
    assert document["hbase"]["regions"]["complete"] == 3
    wait_until(lambda: not _spooled_ends(pair.slave), 60, "the spool to be read by another tracker")


def crash_all(cluster: Cluster) -> None:
    """Kill all region servers, and start them again."""
    for server in cluster.region_servers:
        cluster.crash(server)
    cluster.start()


def _put(pair: Pair, table: str, rows: Iterator[int]) -> bool:
    """One more row; true."""
    return pair.master.admin.put_rows(table, "f", 1, start=next(rows)) == 1


def _spooled_ends(cluster: Cluster) -> set[tuple[str, int]]:
    """Region and sequence id at which the segments in a cluster's spool end."""
    rows = read_spool(*spool_of(cluster))
    return {
        (row["region"], row["seq"]) for row in segments(sorted(rows, key=itemgetter(0))) if row["kind"] == "segment"
    }


def test_state_table_disabled_on_the_master(pair: Pair, status: Path) -> None:
    """Writes go on; heads are kept and written once the table is back."""
    pair.create_table("dark2", {"f": 1})
    pair.master.admin.disable_table(STATE_TABLE)
    try:
        pair.master.admin.put_rows("dark2", "f", 10)
        pair.wait_same("dark2", timeout=30)
        result = tool_here("run", "-m", "-o", status, "--only", "hbase", conf=pair.master)
        assert (result.exit_code, status.exists()) == (2, False), result
    finally:
        pair.master.admin.enable_table(STATE_TABLE)
    assert_complete(pair.verdict(status, "dark2", "--wait", "60"))
    assert [row["table"] for row in dump(status) if row["kind"] == "stream"] == ["dark2"]


@dataclass(frozen=True)
class Restart:
    """A master that was stopped and started as a whole."""

    stopped: list[str]
    """The region servers that there were before."""
    unproven: Path
    """The slave's status, while something that they wrote was still on its way: to the table `worn`."""


def identity(cluster: Cluster) -> tuple[object, ...]:
    """What a restart as a whole may not change."""
    admin = cluster.admin
    return admin.cluster_id(), cluster.webhdfs_url, admin.digest("cold"), admin.digest("worn")


@pytest.fixture(scope="module")
def restart(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Restart:
    """Both tables have two regions; of `worn` the second is behind until the peer is enabled again."""
    unproven = tmp_path_factory.mktemp("restart") / "unproven"
    for table in ("cold", "worn"):
        pair.create_filled(table, 100, [b"row00000050"])
    pair.master.admin.disable_peer(PEER)
    pair.master.admin.put_rows("worn", "f", 5, start=100)
    stopped = [server.server_name for server in pair.master.region_servers]
    before = identity(pair.master)
    pair.master.restart_all()
    assert identity(pair.master) == before, "the same ports, data and id"
    result = tool_here("run", "-o", unproven, "--only", "hbase", conf=pair.slave)
    assert result.exit_code == 0, result
    pair.master.admin.enable_peer(PEER)
    return Restart(stopped, unproven)


def test_whole_master_stopped_and_started(pair: Pair, restart: Restart, status: Path) -> None:
    """When the last servers stop, the state table is gone: the rest is spooled and found again."""
    pair.master.admin.put_rows("cold", "f", 100, start=100)
    document = assert_complete(pair.verdict(status, "cold", "--wait", "120"))
    assert document["hbase"]["regions"]["complete"] == 2
    servers = {row["server"]: row for row in dump(status) if row["kind"] == "server"}
    assert all(servers[name]["final_ms"] > 0 for name in restart.stopped)
    origins = {row["origin"] for row in dump(status) if row["kind"] == "stream"}
    assert origins & {servers[name]["origin"] for name in restart.stopped}


def test_what_servers_that_are_gone_left_behind_is_pruned(
    pair: Pair, restart: Restart, status: Path, tmp_path: Path
) -> None:
    """By the slave's status on the master, then by FILE on the slave: only what is proven, and the verdict stays."""
    pair.master.admin.put_rows("worn", "f", 100)
    assert_complete(pair.verdict(status, "worn", "--wait", "120"))
    second = next(r.encoded for r in pair.master.admin.regions("worn") if r.start_key)
    stopped = {origin_id(name) for name in restart.stopped}

    def left() -> set[str]:
        """Regions of `worn` of which a head, or segments, of the stopped servers are left."""
        return {row["region"] for row in dump(status) if row.get("table") == "worn" and row.get("origin") in stopped}

    assert len(left()) == 2
    done = tool_here("prune", restart.unproven, "--gone-for", "0", "--json", conf=pair.master)
    assert (done.exit_code, done.json["dropped"]["heads"] > 0) == (0, True), done
    assert_complete(pair.verdict(status, "worn", "--wait", "10"))
    assert left() == {second}, "what had not arrived by then is still in scope"

    proven, older = tmp_path / "proven", tmp_path / "older"
    shutil.copy(status, older)
    assert tool_here("run", "-o", proven, "--only", "hbase", conf=pair.slave).exit_code == 0
    done = tool_here("prune", proven, "--gone-for", "0", "--json", conf=pair.master)
    assert (done.exit_code, done.json["dropped"]["heads"] > 0) == (0, True), done
    pair.write_master(status)
    assert left() == set()
    done = tool_here("prune", status, "--gone-for", "0", "--json", conf=pair.slave)
    assert (done.exit_code, done.json["dropped"]["segments"] > 1) == (0, True), done
    assert_complete(pair.check(status, "--table", "worn"))
    refused = pair.check(older, "--table", "worn")
    assert (refused.exit_code, "write a new FILE" in refused.stderr) == (2, True), refused

    assert tool_here("run", "-o", status, "--only", "hbase", conf=pair.slave).exit_code == 0
    assert left() == set()
    assert_complete(pair.verdict(status, "worn"))


def wait_for_a_sweep(cluster: Cluster) -> None:
    """Wait until a tracker has compared the live region servers with its table's rows, from beginning to end.

    A sweep marks whoever has a row and is not alive, so a row of a server that never was shows that one has passed. It
    may have read the live servers just before the row was put: the second one has not.
    """
    with closing(happybase.Connection("127.0.0.1", cluster.thrift_port)) as client:
        rows = client.table(STATE_TABLE)
        for number in (1, 2):
            name = f"never.example.org,16020,{number}"
            key = server_key(origin_id(name), "r")
            rows.put(key, {b"t:n": name.encode()})
            wait_until(partial(rows.cells, key, b"t:x"), 120, "a sweep has marked a server that is gone")
            rows.delete(key)


def coverage(cluster: Cluster) -> list[bytes]:
    """The start of coverage, as the state table has it."""
    with closing(happybase.Connection("127.0.0.1", cluster.thrift_port)) as client:
        cells: list[bytes] = client.table(STATE_TABLE).cells(b"c", b"t:a")
        return cells


def test_region_server_that_dies_in_its_start(pair: Pair, status: Path) -> None:
    """It registers, is taken for alive and dies without ever having had a WAL: the coverage of all tables stays."""
    pair.create_filled("unmoved", 10)
    before = coverage(pair.master)
    assert before
    # Its znode is there as soon as it has a name. Killed then, it stays alive for the master until its session ends.
    unborn = pair.master.add_region_server()
    unborn.kill9()
    wait_for_a_sweep(pair.master)
    assert unborn.server_name in pair.master.admin.live_servers(), "the sweep has seen it alive"
    pair.master.crash(unborn)
    wait_until(lambda: unborn.server_name not in pair.master.admin.live_servers(), 60, "the master has noticed")
    wait_for_a_sweep(pair.master)
    assert coverage(pair.master) == before
    assert_complete(pair.verdict(status, "unmoved", "--wait", "60"))


def test_a_slave_that_loses_write_ahead_logs(pair: Pair, status: Path) -> None:
    """HBase opens the regions of a crashed server with what is left of its logs. The master sends nothing again."""
    pair.create_table("unlogged", {"f": 1})
    victim = pair.slave.add_region_server()
    try:
        move_table(pair.slave, "unlogged", victim.server_name)
        pair.master.admin.put_rows("unlogged", "f", 10)
        pair.wait_same("unlogged")
        assert_complete(pair.verdict(status, "unlogged", "--wait", "60"))
        victim.kill9()
        hdfs = InsecureClient(pair.slave.webhdfs_url, user="lab")
        hdfs.rename(f"/hbase/WALs/{victim.server_name}", "/lost")
    finally:
        pair.slave.crash(victim)
    wait_until(lambda: pair.slave.admin.rows("unlogged") == [], 120, "the region is served again")
    result = pair.check(status, "--table", "unlogged", "--wait", "20")
    assert (result.exit_code, result.codes) == (3, {"slave-changed"}), result
    compared = pair.check(status, "--table=unlogged", "--rows", "--master-conf", str(pair.master.conf_dir))
    assert compared.exit_code == 1, compared


def test_a_wrong_setting_ends_no_server(pair: Pair, untracked: RegionServer, tmp_path: Path) -> None:
    """HBase aborts a server of which a coprocessor throws; the trackers are off, and the run says what that means."""
    pair.create_table("off", {"f": 1})
    move_table(pair.master, "off", untracked.server_name)
    pair.master.admin.put_rows("off", "f", 10)
    assert len(pair.master.admin.rows("off")) == 10
    log = untracked.log.read_text()
    assert 'hbase.replicationtable.name = "ns:name" do not name a table' in log
    assert "the trackers are off" in log
    conf = shutil.copytree(pair.master.conf_dir, tmp_path / "conf")
    site = conf / "hbase-site.xml"
    named = "<property><name>hbase.replicationtable.name</name><value>ns:name</value></property></configuration>"
    site.write_text(site.read_text().replace("</configuration>", named))
    file = tmp_path / "file"
    result = tool_here("run", "-m", "-o", file, "--only", "hbase", conf=conf)
    assert (result.exit_code, file.exists()) == (2, False), result
    assert "ns:name" in result.stderr, result


def test_server_without_the_tracker(pair: Pair, untracked: RegionServer, status: Path) -> None:
    """A live region server of the master that does not track is never silently fine.

    Tables that are made before a sweep sees that it has gone count as older than the tracker, so no verdict follows.
    """
    pair.create_table("halfblind", {"f": 1})
    move_table(pair.master, "halfblind", untracked.server_name)
    pair.master.admin.put_rows("halfblind", "f", 10)
    pair.wait_same("halfblind")
    pair.write_master(status, "--table", "halfblind", "--wait", "3")
    result = pair.check(status, "--table", "halfblind")
    assert result.exit_code == 3, result
    problems = json.dumps(result.json["problems"])
    assert "without the tracker" in problems
    assert untracked.server_name in problems
    untracked.stop()
    # Gone again, but what it wrote came without a stamp, and that is remembered; where a sweep of the trackers has seen
    # the server, coverage has begun anew after it, and the whole table is from before.
    result = pair.verdict(status, "halfblind", "--wait", "5")
    assert result.exit_code == 3, result
    assert result.codes & {"unstamped", "older-than-tracker"}, result


def test_state_table_truncated_while_it_is_read(pair: Pair) -> None:
    """The servers' rows that were read before do not vouch for heads that are gone, though another run has begun."""
    pair.create_table("truncated", {"f": 1})
    pair.master.admin.put_rows("truncated", "f", 10)
    endpoint = ThriftEndpoint("127.0.0.1", pair.master.thrift_port)
    state = StateTable(endpoint, STATE_TABLE)
    small = state.descriptors(state.put_barrier())
    source = StateTableSource(endpoint, STATE_TABLE, "hg", small.generation)
    parts = source.partitions()
    state.put_barrier()

    def heads() -> int:
        return sum(batch.num_rows for part in parts for batch in source.read(part))

    wait_until(lambda: heads() > 0, 60, "the servers have answered the barrier")
    pair.master.admin.truncate_table(STATE_TABLE)
    state.put_barrier()
    with pytest.raises(ConnectionFailed, match="lost its rows while it was read"):
        list(source.read(parts[0]))
    # Other modules use the pair, and their tables have to be younger.
    wait_until(partial(coverage, pair.master), 60, "coverage begins anew")
