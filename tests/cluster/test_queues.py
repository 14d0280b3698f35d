"""The replication queues as evidence, on real clusters: crashes with a backlog, bulk loads, filters."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.thrift import scan
from status_tool.sources.codec import raw
from tests.lab.cluster import Cluster
from tests.lab.process import RegionServer
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, Pair, Result, move_table, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


@pytest.fixture(scope="module")
def aged(pair: Pair) -> Pair:
    """The pair, with a peer that is older by more than a clock may be off than whatever comes next."""
    pair.let_peer_age()
    return pair


def queues(cluster: Cluster, *arguments: str) -> Result:
    """`status-tool queues --json`."""
    return tool_here("queues", "--json", *arguments, conf=cluster)


def complete(result: Result) -> dict[str, Any]:
    """The document of a run that must say complete."""
    assert (result.exit_code, result.json["verdict"]) == (0, "complete"), result
    return result.json


def hbase_dump(cluster: Cluster) -> dict[str, dict[str, int]]:
    """What HBase's own DumpReplicationQueues says: positions by queue and WAL."""
    main = "org.apache.hadoop.hbase.replication.regionserver.DumpReplicationQueues"
    queues: dict[str, dict[str, int]] = {}
    wals: dict[str, int] = {}
    for line in cluster.run_main(main, ["--distributed", "--hdfs"]).splitlines():
        key, _, value = line.strip().partition(": ")
        if key == "Queue znode":
            wals = queues.setdefault(value, {})
        elif key.startswith("Replication position for "):
            wals[key.removeprefix("Replication position for ")] = int(value.split()[0])
    return queues


def test_the_same_as_hbase_says(pair: Pair) -> None:
    """Queues, WALs and positions as DumpReplicationQueues prints them, queue sizes as the servers' own metrics."""
    master = pair.master.admin
    pair.create_table("dumped", {"f": 1})
    pair.wait_drained()  # that of a server which has stopped may not have been claimed yet
    master.disable_peer(PEER)
    try:
        master.put_rows("dumped", "f", 50, value="x" * 1000)
        master.roll_wal()
        master.put_rows("dumped", "f", 5, start=50)
        time.sleep(1)
        mine, theirs = queues(pair.master, "--watch", "1"), hbase_dump(pair.master)
        assert mine.exit_code == 1, mine
        (queue,) = mine.json["queues"]
        assert {queue["id"]: {wal["name"]: wal["position"] for wal in queue["wals"]}} == theirs
        (lag,) = [lag for lag in master.replication_lag() if lag.peer == PEER]
        # Two of each of `multiwal`'s two groups.
        assert lag.size_of_log_queue == len(queue["wals"]) == 4
        # What waits is what the table holds, and little more; the rolled WALs' lengths are final.
        assert 50_000 < queue["left_bytes"] < 100_000
        assert (queue["stuck"], queue["recovered_from"]) == (True, [])
        text = tool_here("queues", conf=pair.master).stdout
        assert "DISABLED" in text
        assert "NOT drained" in text
    finally:
        master.enable_peer(PEER)
    pair.wait_same("dumped")
    pair.wait_drained(30)


def test_bulk_load_with_its_replication(aged: Pair, status: Path) -> None:
    """Fine where the servers have the setting and no reference is left, whatever the site of the tool's host says."""
    aged.create_table("loaded", {"f": 1})
    aged.master.admin.bulk_load("loaded", "f", 20)
    aged.wait_same("loaded")
    # HBase takes the reference away after the sink's answer: FILE may still hold it.
    wait_until(
        lambda: aged.verdict(status, "loaded", "--wait", "20").exit_code == 0, 60, "nothing is left to be shipped"
    )
    # The same cluster, with a site that does not say so.
    site = aged.master.conf_dir / "hbase-site.xml"
    before = site.read_text()
    try:
        site.write_text(before.replace("hbase.replication.bulkload.enabled", "other"))
        complete(aged.verdict(status, "loaded", "--wait", "20"))
    finally:
        site.write_text(before)
    # FILE's samples do not have what is loaded after them.
    aged.master.admin.bulk_load("loaded", "f", 60)
    aged.wait_same("loaded")
    complete(aged.check(status, "--table", "loaded"))


def crash_with_backlog(pair: Pair, table: str, victim: RegionServer | None = None) -> RegionServer:
    """A table on a new server; ten rows are shipped, ten are not when it is killed. The peer is disabled."""
    victim = victim or pair.master.add_region_server()
    move_table(pair.master, table, victim.server_name)
    pair.master.admin.put_rows(table, "f", 10)
    pair.wait_same(table)
    pair.master.admin.disable_peer(PEER)
    pair.master.admin.put_rows(table, "f", 10, start=10)
    return victim


def test_killed_with_a_backlog(aged: Pair, status: Path) -> None:
    """Unverifiable while its queue waits, also when a later edit has overtaken it; complete once all is shipped."""
    for table in ("crash", "flushed"):
        aged.create_table(table, {"f": 1})
    victim, master = aged.master.add_region_server(), aged.master.admin
    move_table(aged.master, "flushed", victim.server_name)
    master.put_rows("flushed", "f", 10)
    aged.wait_same("flushed")
    killed = crash_with_backlog(aged, "crash", victim).server_name
    master.flush("flushed")
    time.sleep(3)  # trackers poll every second, and write a marker at once
    aged.master.crash(victim)
    wait_until(lambda: killed not in master.live_servers(), 60, "the master has noticed")
    behind = aged.verdict(status, "crash", "--wait", "2")
    assert behind.exit_code in (1, 3), behind
    master.enable_peer(PEER)
    wait_until(lambda: len(master.rows("crash")) == 20, 120, "the region is served again")
    master.put_rows("crash", "f", 1, prefix="later")
    wait_until(lambda: b"later00000000" in aged.slave.admin.rows("crash"), 60, "the later row has overtaken")
    assert not aged.same("crash"), "the backlog was shipped too soon for this test"
    aged.write_master(status, "--table", "crash")
    left = queues(aged.master)  # at once: nobody knows for how long there is something left
    result = aged.check(status, "--table", "crash")
    assert result.exit_code == 3, result
    problem = next(p for p in result.json["problems"] if p["origin"] == killed)
    assert "final flush" in problem["detail"]
    assert "left to ship" in problem["detail"], problem
    # No waiting on the slave can mend that FILE, and the advice says what does.
    assert "--drained" in problem["advice"], problem
    assert left.exit_code == 1, left
    assert killed in json.dumps(left.json)
    both = ("--table", "crash", "--table", "flushed")
    aged.write_master(status, *both, "--wait", "240", "--drained")
    result = aged.check(status, *both, "--wait", "20")
    complete(result)  # nobody takes the markers of the flush, which were replayed, for lost entries
    assert aged.same("crash")
    assert any(killed in notice and "settled" in notice for notice in result.json["notices"])


def test_a_queue_that_somebody_removes(aged: Pair, status: Path) -> None:
    """HBase keeps no trace of what was in it. The next opening of a region shows that something was replayed."""
    aged.create_table("removed", {"f": 1})
    victim = crash_with_backlog(aged, "removed")
    killed, master = victim.server_name, aged.master.admin
    aged.master.crash(victim)
    aged.master._delete_znodes(f"replication/rs/{killed}")
    master.enable_peer(PEER)
    wait_until(lambda: killed not in master.live_servers(), 60, "the master has noticed")
    wait_until(lambda: len(master.rows("removed")) == 20, 120, "the region is served again")
    aged.wait_drained(60)
    found = aged.verdict(status, "removed", "--wait", "20")
    assert (found.exit_code, [problem["code"] for problem in found.json["problems"]]) == (3, ["lost-tail"]), found
    rows = ("--table", "removed", "--rows", "--master-conf", str(aged.master.conf_dir), "--wait", "30")
    assert aged.check(status, *rows).exit_code == 1


def tells_of_peers(cluster: Cluster, server: str) -> bool:
    """Whether the server's row names the peers that are in force there."""
    rows = scan(ThriftEndpoint("127.0.0.1", cluster.thrift_port), STATE_TABLE, b"o", b"p")
    return any(
        raw(cells, b"n") == server.encode() and b'"peers":{"1"' in (raw(cells, b"q") or b"") for _, cells in rows
    )


def test_paused_past_its_session(aged: Pair, status: Path) -> None:
    """SIGSTOP under load until it is fenced: what it appends afterwards is nowhere, and it must not end cleanly."""
    aged.create_table("paused", {"f": 1})
    master, victim = aged.master.admin, aged.master.add_region_server({"zookeeper.session.timeout": "10000"})
    paused = victim.server_name
    move_table(aged.master, "paused", paused)
    wait_until(lambda: tells_of_peers(aged.master, paused), 30, "its tracker knows the peer")
    loads = [master.load_start("paused", "f", 200, prefix=f"load{n}-") for n in range(3)]
    time.sleep(2)
    victim.pause()
    try:
        wait_until(lambda: paused not in master.live_servers(), 60, "the master has noticed")
        wait_until(
            lambda: all(r.server not in (None, "", paused) for r in master.regions("paused")), 60, "it is served"
        )
        time.sleep(2)
    finally:
        victim.resume()
    wait_until(lambda: not victim.running, 120, "it has aborted")
    for load in loads:
        assert master.load_stop(load) > 20
    aged.wait_same("paused", timeout=180)
    aged.wait_drained()
    result = aged.verdict(status, "paused", "--wait", "20")
    complete(result)
    assert any(paused in notice and "settled" in notice for notice in result.json["notices"])


def restart_hbase_master(cluster: Cluster) -> None:
    """Kill -9 and start: it writes every peer's znode anew."""
    cluster.master.kill9()
    cluster.master.start()
    wait_until(cluster.has_master, 90, "the new HBase master is ready")


def test_killed_while_the_peer_is_young(pair: Pair, status: Path) -> None:
    """HBase masters start before and after the crash, so no clock shows whether the peer was changed; trackers do."""
    master, (survivor, *_) = pair.master.admin, pair.master.region_servers
    wait_until(lambda: tells_of_peers(pair.master, survivor.server_name), 30, "a tracker knows the peer")
    restart_hbase_master(pair.master)
    pair.create_table("young", {"f": 1})
    victim = pair.master.add_region_server()
    move_table(pair.master, "young", victim.server_name)
    wait_until(lambda: tells_of_peers(pair.master, victim.server_name), 30, "its tracker knows the peer")
    killed = crash_with_backlog(pair, "young", victim).server_name
    pair.master.crash(victim)
    wait_until(lambda: killed not in master.live_servers(), 60, "the master has noticed")
    restart_hbase_master(pair.master)
    master.enable_peer(PEER)
    pair.wait_same("young", timeout=180)
    pair.wait_drained(60)
    # Within ten seconds the survivor's tracker has seen the znode that the last HBase master wrote.
    time.sleep(12)
    complete(pair.verdict(status, "young", "--wait", "20"))
    # Nor were bulk loads left out meanwhile.
    complete(pair.verdict(status, "loaded", "--wait", "20"))
    # Then the peer is really changed, and changed back: now no tracker could show it, but it has been written down.
    master.set_peer_tables(PEER, {"other": []})
    master.set_peer_tables(PEER, None)
    time.sleep(12)
    result = pair.verdict(status, "young", "--wait", "10")
    complete(result)
    loads = pair.verdict(status, "loaded", "--wait", "10")
    assert (loads.exit_code, loads.codes) == (3, {"bulkload"}), loads
    assert any(killed in notice and "nothing of it was left to ship" in notice for notice in result.json["notices"])
