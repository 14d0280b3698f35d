"""The main job on two real clusters: what is said must be what row-by-row comparison says."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.thrift import scan
from status_tool.status_file.reader import open_status
from tests.lab.cluster import Cluster
from tests.lab.errors import AdminError
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, Pair, Result, tool_environment, tool_here, wait_lasting

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def assert_complete(result: Result, evidence: str = "exact") -> dict[str, Any]:
    """The run's document, which must say complete."""
    if result.exit_code != 0:
        pytest.fail(repr(result))
    document = result.json
    assert document["verdict"] == "complete"
    assert document["hbase"]["evidence"] == evidence
    assert document["problems"] == []
    return document


def kinds(result: Result) -> set[str]:
    """The kinds of the problems."""
    return {problem["kind"] for problem in result.json["problems"]}


def test_steady_load_on_mixed_scopes(pair: Pair, status: Path) -> None:
    """Several tables under load, stopped, then proven complete and equal row by row."""
    tables = {"load1": {"g": 1}, "load2": {"g": 1, "l": 0}, "load3": {"g": 1, "h": 1}}
    for table, families in tables.items():
        pair.create_table(table, families, [b"load00000100"])
    loads = [pair.master.admin.load_start(table, "g", 100) for table in tables]
    local = pair.master.admin.load_start("load2", "l", 100, prefix="local")
    admin = pair.master.admin
    wait_until(lambda: all(admin.load_count(load) > 100 for load in (*loads, local)), 120, "all have written")
    for load in loads:
        admin.load_stop(load)
    # The local family is written on: that must not make the region look behind.
    pair.write_master(status, *(f"--table={table}" for table in tables), "--wait", "60")
    result = pair.check(status, *(f"--table={table}" for table in tables), "--wait", "60")
    admin.load_stop(local)
    document = assert_complete(result)
    assert document["hbase"]["regions"]["complete"] == 6
    for table in tables:
        assert pair.same(table, ["g"])
    assert pair.master.admin.digest("load2", families=["l"]) != pair.slave.admin.digest("load2", families=["l"])
    for name in tables:
        assert_short_rows(pair, name)


def assert_short_rows(pair: Pair, table: str) -> None:
    """The slave's rows of a table's streams have a column for each of the two servers, however many batches came."""
    rows = scan(ThriftEndpoint("127.0.0.1", pair.slave.thrift_port), STATE_TABLE, b"s", b"t")
    # The marks of the state table's regions have no table.
    named = ((cells.get(b"t:t", (b"", 0))[0], cells) for _, cells in rows)
    streams = [[name[2:] for name in cells] for name_of, cells in named if name_of == table.encode()]
    assert streams
    for columns in streams:
        assert 1 <= sum(column[:1] == b"c" for column in columns) <= 2, columns


def test_the_barrier_makes_it_right_at_once(pair: Pair, status: Path) -> None:
    """Run right after the last write: nobody waits for a flush period by hand."""
    pair.create_table("atonce", {"f": 1})
    pair.master.admin.put_rows("atonce", "f", 1)
    pair.write_master(status, "--table", "atonce")
    for wanted in (10, 100):
        pair.master.admin.put_rows("atonce", "f", wanted)
        pair.write_master(status, "--table", "atonce")
        assert_complete(pair.check(status, "--table", "atonce", "--wait", "60"))
        assert pair.same("atonce")


def dump(status: Path) -> list[dict[str, Any]]:
    """All rows of a status file."""
    import pyarrow.parquet as pq

    rows = pq.read_table(status).to_pylist()
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def test_peer_disabled_is_behind_with_its_lag(pair: Pair, status: Path) -> None:
    """Behind while the peer is disabled; complete once it is enabled again."""
    pair.create_filled("lagging", 10)
    pair.master.admin.disable_peer(PEER)
    try:
        time.sleep(1.5)
        pair.master.admin.put_rows("lagging", "f", 10, start=10)
        result = pair.verdict(status, "lagging")
        assert result.exit_code == 1, result
        assert result.json["hbase"]["regions"]["behind"] == 1
        assert result.json["hbase"]["worst_lag_ms"] >= 1000
        assert "disabled" in " ".join(result.json["notices"])
    finally:
        pair.master.admin.enable_peer(PEER)
    assert_complete(pair.check(status, "--table", "lagging", "--wait", "60"))


def test_follow_ends_when_all_has_arrived(pair: Pair, status: Path, tmp_path: Path) -> None:
    """A backlog, followed: what is written after FILE is in scope, too. Ctrl-C and --wait end it without a verdict."""
    pair.create_filled("followed", 10)
    pair.master.admin.disable_peer(PEER)
    log, paths = tmp_path / "log", tmp_path / "paths"
    paths.write_text("/followed\n")
    for cluster in (pair.master, pair.slave):
        cluster.admin.hdfs_put("/followed/file", b"x" * 1000)
    try:
        pair.master.admin.put_rows("followed", "f", 10, start=10)
        # Both halves: the files of FILE are compared with the slave's in every round.
        written = tool_here("run", "-m", "-o", status, "-f", paths, "--table", "followed", conf=pair.master)
        assert written.exit_code == 0, written
        with open_status(status) as file:
            cut_ms = file.header.cut_ms
        following = ["--follow", "--table", "followed", "--master-conf", str(pair.master.conf_dir)]
        stopped = follower(pair, status, log, *following)
        # The master's ZooKeeper alone: FILE is what is compared, and the time is bounded.
        bounded = pair.check(status, "--follow", "--master-zookeeper", pair.master.zookeeper, "--wait", "0")
        assert (bounded.exit_code, bounded.json["cut_ms"]) == (1, cut_ms), bounded
        wrong = pair.check(status, "--follow", "--master-zookeeper", pair.slave.zookeeper)
        assert (wrong.exit_code, "leads to" in wrong.stderr) == (2, True), wrong
        wait_until(lambda: "1 of 1 (1 behind)" in log.read_text(), 120, "it has looked")
        stopped.send_signal(signal.SIGINT)
        assert json.loads(stopped.communicate(timeout=60)[0])["exit_code"] == 130
        assert stopped.returncode == 130, log.read_text()
        enabling = threading.Thread(target=write_and_enable, args=(pair, sys.stderr))
        enabling.start()
        result = tool_here("run", "-i", status, "--json", *following, "--wait", "200", conf=pair.slave)
        enabling.join()
    except BaseException:
        pair.master.admin.enable_peer(PEER)
        raise
    assert assert_complete(result)["cut_ms"] > cut_ms
    assert result.json["hdfs"]["files"]["match"] == 1
    assert re.search(r"\(1 behind\), bytes to go [1-9]", result.stderr), result
    assert 0 < result.stderr.index("trying again") < result.stderr.index("regions to go 0 of 1")
    assert pair.same("followed")
    assert len(pair.slave.admin.rows("followed")) == 30


def follower(pair: Pair, status: Path, log: Path, *arguments: str) -> subprocess.Popen[str]:
    """`run -i FILE --json` as a process of its own; its stderr goes to `log`."""
    options = ["--only", "hbase", "--json", "--spark-master", "local[1]", *arguments]
    command = [sys.executable, "-m", "status_tool", "run", "-i", status, *options]
    with log.open("w") as stderr:
        return subprocess.Popen(
            [*map(str, command), "--conf-dir", str(pair.slave.conf_dir)],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=tool_environment(),
        )


def test_watch_reads_the_master_anew_and_outlives_a_dead_gateway(pair: Pair, tmp_path: Path) -> None:
    """Behind while the peer is disabled, complete afterwards; no verdict while Thrift is away."""
    pair.create_filled("watched", 10)
    clusters = ["--master-conf", pair.master.conf_dir, "--conf-dir", pair.slave.conf_dir]
    options = ["--only", "hbase", "--table", "watched", "--every", "1", "--json", "--spark-master", "local[1]"]
    command = [sys.executable, "-m", "status_tool", "watch", *clusters, *options]
    watch = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tool_environment()
    )
    assert watch.stdout is not None
    lines, told = watch.stdout, list[dict[str, Any]]()

    def tells(verdict: str | None) -> bool:
        """The next round does."""
        told.append(json.loads(lines.readline()))
        return bool(told[-1]["verdict"] == verdict)

    try:
        wait_until(lambda: tells("complete"), 120, "the first round")
        pair.master.admin.disable_peer(PEER)
        pair.master.admin.put_rows("watched", "f", 10, start=10)
        wait_until(lambda: tells("incomplete"), 60, "a round that sees what was written since")
        assert list(told[-1]["tables_at_fault"]) == ["watched"]
        pair.master.admin.enable_peer(PEER)
        wait_until(lambda: tells("complete"), 60, "a round that sees it arrived")
        pair.slave.thrift.kill9()
        try:
            wait_until(lambda: tells(None), 60, "a round without Thrift")
            assert (told[-1]["exit_code"], "Thrift" in told[-1]["error"]) == (2, True), told[-1]
        finally:
            pair.slave.start()
        wait_until(lambda: tells("complete"), 60, "a round with Thrift again")
        watch.send_signal(signal.SIGINT)
        _, error = watch.communicate(timeout=60)
    finally:
        watch.kill()
    assert (watch.returncode, error) == (130, "status-tool: interrupted\n")


def write_and_enable(pair: Pair, before: object) -> None:
    """When the tool in this process has shown that it is behind: ten more rows, and the peer is enabled. All of it
    arrives while the master's Thrift server is away, so that nothing newer is known of the master.
    """
    wait_until(lambda: sys.stderr is not before and "behind" in captured(), 120, "it has looked")
    pair.master.thrift.kill9()
    try:
        pair.master.admin.put_rows("followed", "f", 10, start=20)
        pair.master.admin.enable_peer(PEER)
        pair.wait_same("followed")
        wait_until(lambda: "trying again" in captured(), 60, "the master has been missed")
    finally:
        pair.master.start()


def captured() -> str:
    """What `tool_here` has on stderr so far."""
    return sys.stderr.getvalue() if isinstance(sys.stderr, io.StringIO) else ""


def test_peer_removed_and_added_is_a_gap(pair: Pair, status: Path) -> None:
    """The loss that no timestamp shows, in two regions of the table; the third stays complete. The commands that are
    printed repair it: CopyTable the one, HashTable and SyncTable the other.
    """
    pair.create_table("lost", {"f": 1}, [b"m\x00", b"q"])
    for prefix in ("a", "n", "z"):
        pair.master.admin.put_rows("lost", "f", 20, prefix=prefix)
    pair.wait_same("lost")
    pair.master.admin.remove_peer(PEER)
    for prefix in ("a", "z"):
        pair.master.admin.put_rows("lost", "f", 5, start=100, prefix=prefix)
    pair.master.admin.delete_rows("lost", 3, prefix="a")
    pair.master.admin.roll_wal()
    pair.connect()
    for prefix in ("a", "z"):
        pair.master.admin.put_rows("lost", "f", 5, start=200, prefix=prefix)
    wait_until(
        lambda: {b"a00000204", b"z00000204"} <= set(pair.slave.admin.rows("lost")), 60, "later rows have arrived"
    )
    wait_lasting()
    result = pair.verdict(status, "lost")
    assert result.exit_code == 1, result
    regions = result.json["hbase"]["regions"]
    assert (regions["gap"], regions["complete"]) == (2, 1)
    problems = {p["region"]: p for p in result.json["problems"] if p["kind"] == "gap"}
    by_start = {region.start_key: region for region in pair.master.admin.regions("lost")}
    first, last = by_start[b""], by_start[b"q"]
    problem = problems[first.encoded]
    assert (problem["table"], problem["origin"]) == ("lost", first.server)
    assert 0 < problem["from_seq"] < problem["to_seq"]
    assert problem["written_from_ms"] <= problem["written_to_ms"]
    text = tool_here("run", "-i", status, "--only", "hbase", "--table", "lost", conf=pair.slave)
    assert text.stdout.rstrip().splitlines()[-1] == "HBase Replication is NOT complete."
    of_table = result.json["repairs"]
    assert [repair["table"] for repair in of_table] == ["lost"], "two gaps, one repair"
    reported = text.stdout.replace(" \\\n  ", " ")
    assert all(of_table[0][name] in reported for name in ("copy_table", "hash_table", "sync_table"))
    # Accepted as copied by other means: everything written until now.
    since = str(max(p["written_to_ms"] for p in problems.values()))
    assert pair.check(status, "--table", "lost", "--since", since).exit_code == 0
    assert not pair.same("lost")
    as_told(pair.master, problem["repair"]["copy_table"])
    missing = {row for row in pair.master.admin.rows("lost")} - {row for row in pair.slave.admin.rows("lost")}
    assert missing == {f"z{number:08d}".encode() for number in range(100, 105)}, "only its own region was copied"
    as_told(pair.master, problems[last.encoded]["repair"]["hash_table"])
    as_told(pair.slave, problems[last.encoded]["repair"]["sync_table"])
    assert pair.same("lost")


def as_told(cluster: Cluster, command: str) -> None:
    """Run a printed `hbase CLASS …` command with that cluster's configuration, in the JVM of its admin."""
    program, main, *arguments = shlex.split(command)
    assert program == "hbase"
    assert cluster.admin.hadoop_tool(main, *arguments) == 0


def test_different_region_boundaries_do_not_matter(pair: Pair, status: Path) -> None:
    """Streams are the master's regions; how the slave cuts its table is its own affair."""
    pair.create_table("cut", {"f": 1}, [b"row00000030", b"row00000060"], slave_splits=[b"row00000045"])
    pair.master.admin.put_rows("cut", "f", 100)
    document = assert_complete(pair.verdict(status, "cut", "--wait", "60"))
    assert document["hbase"]["regions"]["complete"] == 3
    assert pair.same("cut")


def merged(pair: Pair, table: str, regions: list[str]) -> bool:
    """Whether two regions could be merged: not while they still refer to files of the region they were split from."""
    pair.master.admin.major_compact(table)
    try:
        pair.master.admin.merge(*regions)
    except AdminError:
        return False
    return True


def test_moves_splits_and_merges_raise_no_alarm(pair: Pair, status: Path) -> None:
    """A region moved while it is written, a split and a merge: complete."""
    pair.create_table("moving", {"f": 1}, [b"load00000500"])
    admin = pair.master.admin
    load = admin.load_start("moving", "f", 200)
    servers = admin.live_servers()
    for _ in range(2):
        for region in admin.regions("moving"):
            admin.move(region.encoded, next(server for server in servers if server != region.server))
        time.sleep(1)
    first = admin.regions("moving")[0]
    admin.split(first.encoded, b"load00000100")
    time.sleep(1)
    daughters = sorted(admin.regions("moving"), key=lambda region: region.start_key)[:2]
    wait_until(lambda: merged(pair, "moving", [region.encoded for region in daughters]), 60, "merged", interval=1)
    time.sleep(1)
    assert admin.load_stop(load) > 100
    assert_complete(pair.verdict(status, "moving", "--wait", "90"))
    assert pair.same("moving")


def test_a_clean_stop_and_start_raises_no_alarm(pair: Pair, status: Path) -> None:
    """A region server of the master stopped cleanly: its final flush settles its streams."""
    pair.create_table("restart", {"f": 1}, [b"load00000100"])
    admin = pair.master.admin
    load = admin.load_start("restart", "f", 100)
    time.sleep(2)
    server = pair.master.region_servers[1]
    stopped = server.server_name
    server.stop()
    # No session has to expire: a clean stop takes its znode away.
    wait_until(lambda: stopped not in admin.live_servers(), 20, "the master notices")
    server.start()
    assert server.server_name.startswith(stopped.rpartition(",")[0])
    assert server.server_name != stopped
    assert admin.load_stop(load) > 50
    assert_complete(pair.verdict(status, "restart", "--wait", "90"))
    finals = [r for r in dump(status) if r["kind"] == "server" and r["server"] == stopped]
    assert [row["live"] for row in finals] == [False]
    assert finals[0]["final_ms"] > 0
    assert pair.same("restart")


def test_master_master(pair: Pair, tmp_path: Path) -> None:
    """Each direction by itself: what came from the other side is not in scope on the way back."""
    pair.create_table("both", {"f": 1})
    back = pair.reversed()
    back.connect()
    try:
        pair.master.admin.put_rows("both", "f", 30, prefix="m")
        pair.slave.admin.put_rows("both", "f", 20, prefix="s")
        pair.wait_same("both")
        assert len(pair.slave.admin.rows("both")) == 50
        for name, direction in (("there", pair), ("back", back)):
            file = tmp_path / name
            assert_complete(direction.verdict(file, "both", "--wait", "60"))
            vias = {row["via"] for row in dump(file) if row["kind"] == "stream"}
            assert len(vias) == 2  # local writes, and what was relayed from the other
        found = tool_here("topology", "--json", conf=pair.slave)
        assert (found.json["shape"], found.json["problems"]) == ("master-master", []), found
    finally:
        pair.slave.admin.remove_peer(PEER)


def test_offline_with_both_sides_from_files(pair: Pair, status: Path, tmp_path: Path) -> None:
    """`run -o FILE` on the slave, then the check without any cluster."""
    pair.create_filled("offline", 10)
    slave_status = tmp_path / "slave.status"
    pair.write_master(status, "--table", "offline")
    written = tool_here("run", "-o", slave_status, "--only", "hbase", "--table", "offline", conf=pair.slave)
    assert written.exit_code == 0, written
    empty = tmp_path / "empty"
    empty.mkdir()
    result = tool_here("run", "-i", status, "--slave-status", slave_status, "--json", conf=empty)
    assert_complete(result)
    swapped = tool_here("run", "-i", slave_status, "--slave-status", status, conf=empty)
    assert swapped.exit_code == 2
    assert len(swapped.stderr.strip().splitlines()) == 1


def test_the_original_format(pair: Pair, tmp_path: Path) -> None:
    """`-o FILE.json` writes it, `-i` accepts it at evidence timestamps, and knows behind from complete."""
    pair.create_filled("legacy", 10)
    file = tmp_path / "master.json"
    pair.write_master(file, "--table", "legacy")
    written = json.loads(file.read_text())
    (region,) = [r.encoded for r in pair.master.admin.regions("legacy")]
    assert set(written) == {"shutdownTime", "hdfsState", "hBaseState"}
    assert set(written["hBaseState"]) == {region}
    result = pair.check(file)
    assert (result.exit_code, result.json["hbase"]["evidence"]) == (0, "timestamps"), result
    written["hBaseState"][region] += 5000
    written["shutdownTime"] = 0
    file.write_text(json.dumps(written))
    result = pair.check(file)
    assert result.exit_code == 1, result
    assert result.json["hbase"]["worst_lag_ms"] == 5000


def test_drift_is_named(pair: Pair, status: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What replication never carries, in the verdict and in the topology: truncated, SKIP_WAL, a table or family that
    is not there, even while it is empty.
    """
    master, slave = pair.master.admin, pair.slave.admin
    pair.create_table("trunc", {"f": 1})
    master.create_table("skipping", {"f": 1}, durability="SKIP_WAL")
    slave.create_table("skipping", {"f": 1})
    master.put_rows("trunc", "f", 10)
    pair.wait_same("trunc")
    master.truncate_table("trunc")
    master.create_table("onlyhere", {"f": 1})
    master.create_table("wide", {"f": 1, "g": 1, "l": 0})
    slave.create_table("wide", {"f": 1})
    expected = {"trunc": (3, "truncated"), "skipping": (3, "SKIP_WAL"), "onlyhere": (1, "table absent on the slave"),
                "wide": (1, "family absent on the slave: g")}  # fmt: skip
    pair.write_master(status, *(f"--table={table}" for table in expected))
    report = tmp_path / "report.html"
    result = pair.check(status, *(f"--table={table}" for table in expected), "--report", report)
    assert result.exit_code == 1, result
    drawn = report.read_text()
    assert all(words in drawn for words in ("<svg", f"peer {PEER}<", result.json["slave_cluster_id"], "SyncTable"))
    for table, (exit_code, words) in expected.items():
        (problem,) = [p for p in result.json["problems"] if p["table"] == table]
        assert words in problem["detail"]
        assert "CopyTable" in problem["advice"]
        assert (problem["kind"] == "unverifiable") == (exit_code == 3)
    assert len(slave.rows("trunc")) == 10
    arguments = ("topology", "--report", report, "--peer-conf", pair.slave.conf_dir)
    found = tool_here(*arguments, "--json", conf=pair.master)
    assert (found.exit_code, found.json["shape"], found.json["unchecked"]) == (1, "master-slave", []), found
    drift = {(d["table"], d["kind"], d["peer"]) for d in found.json["drift"] if d["table"] in expected}
    assert drift == {
        *(("trunc", "truncated", None), ("skipping", "skip-wal", None)),
        *(("onlyhere", "absent", PEER), ("wide", "family-absent", PEER)),
    }
    assert "--families=g " in next(d["advice"] for d in found.json["drift"] if d["table"] == "wide")
    drawn = report.read_text()
    assert "<svg" in drawn
    # A disk that is full: the error is the one document, and the older page stays.
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        failed = tool_here(*arguments, "--json", conf=pair.master)
    assert (failed.exit_code, report.read_text()) == (2, drawn), failed
    assert str(report) in failed.json["error"], failed
    # Without the peer's site files its tables are still known by name, from its ZooKeeper.
    text = tool_here("topology", conf=pair.master).stdout
    assert "Drift: table onlyhere is replicated by peer 1, but absent" in text
    assert "the families of cluster" in text
    # The ways out that the advice names; nothing was in the tables but what was truncated.
    master.set_durability("skipping", "USE_DEFAULT")
    slave.create_table("onlyhere", {"f": 1})
    slave.add_family("wide", "g", 1)
    slave.truncate_table("trunc")
    time.sleep(2)  # the trackers look at the regions once a poll
    pair.write_master(status, *(f"--table={table}" for table in expected))
    past = pair.check(status, *(f"--table={table}" for table in expected))
    assert {problem["table"] for problem in past.json["problems"]} == {"trunc"}, past
    cut = str(past.json["cut_ms"])
    assert_complete(
        pair.check(status, *(f"--table={table}" for table in expected), "--since", cut, "--forget=trunc"), "accepted"
    )
    for table in expected:
        master.drop_table(table)
    slave.drop_table("onlyhere")
    assert "onlyhere" not in tool_here("topology", conf=pair.master).stdout


def test_what_wals_do_not_tell_is_named(pair: Pair, status: Path) -> None:
    """Mutations that bypass the WAL, rows older than a family's replication, and rows that are gone on the slave."""
    pair.create_table("beside", {"f": 1, "l": 0})
    pair.master.admin.put_rows("beside", "f", 10)
    pair.master.admin.put_rows("beside", "l", 5, prefix="old")
    pair.wait_same("beside", ["f"])
    time.sleep(2)  # the trackers look at the regions once a poll
    assert_complete(pair.verdict(status, "beside", "--wait", "30"))
    pair.master.admin.put_rows("beside", "f", 5, prefix="skipped", durability="SKIP_WAL")
    pair.master.admin.set_scope("beside", "l", 1)
    pair.slave.admin.drop_table("beside")
    pair.slave.admin.create_table("beside", {"f": 1, "l": 1})
    time.sleep(2)
    result = pair.verdict(status, "beside", "--wait", "5")
    assert result.exit_code == 3, result
    reported = " ".join(problem["detail"] for problem in result.json["problems"])
    for word in ("SKIP_WAL", "replicated only since", "emptied"):
        assert word in reported, result
    # Copied by other means and accepted as a baseline.
    anew = ("--forget", "beside", "--since", str(result.json["cut_ms"]))
    assert_complete(pair.check(status, "--table", "beside", *anew), "accepted")


def test_what_the_slave_does_not_keep_is_named(pair: Pair, status: Path) -> None:
    """A slave with fewer VERSIONS shows other cells than the master, with every entry applied."""
    master, slave = pair.master.admin, pair.slave.admin
    for admin in (master, slave):
        admin.create_table("kept", {"f": 1})
    master.set_versions("kept", "f", 3)
    for start in range(2):
        master.put_rows("kept", "f", 5)
        time.sleep(0.01 * start)
    result = pair.verdict(status, "kept", "--wait", "20")
    assert result.exit_code == 3, result
    (problem,) = result.json["problems"]
    assert "VERSIONS of family f is 1 on the slave, 3 on the master" in problem["detail"]
    assert not pair.same("kept")
    accepted = assert_complete(pair.check(status, "--table", "kept", "--accept-drift", "kept"))
    assert "accepted (--accept-drift)" in " ".join(accepted["notices"])
    slave.put_rows("kept", "f", 1, prefix="own")
    slave.delete_rows("kept", 1, prefix="own")
    reported = " ".join(assert_complete(pair.check(status, "--table", "kept", "--accept-drift", "kept"))["notices"])
    assert re.search(r"by others than this master: kept \(last [^)]*, deletes among them", reported), reported
    # hbase-default.xml ships with a codec that keeps tags, so a cell's own TTL holds on the slave as well.
    master.put_rows("kept", "f", 2, prefix="brief", ttl_ms=3_000)
    brief = pair.verdict(status, "kept", "--accept-drift", "kept", "--wait", "20")
    assert not any("tags" in notice for notice in assert_complete(brief)["notices"])
    wait_until(lambda: b"brief00000001" not in slave.rows("kept"), 30, "the rows with a TTL have expired on the slave")
    # Setting it right brings nothing back: the rows decide, and show what is gone.
    slave.set_versions("kept", "f", 3)
    result = pair.check(status, "--table", "kept", "--wait", "20")
    assert (result.exit_code, result.codes) == (3, {"slave-changed", "slave-written"}), result
    compared = pair.check(status, "--table", "kept", "--rows", "--master-conf", str(pair.master.conf_dir))
    assert (compared.exit_code, compared.json["hbase"]["regions"]["differs"]) == (1, 1), compared


def test_what_only_the_peer_or_the_loader_decides_is_named(pair: Pair, status: Path) -> None:
    """Filters of the peer's own, a load that is not to be replicated, and what nobody ships."""
    pair.create_table("decided", {"f": 1, "l": 0})
    pair.create_table("nobody", {"l": 0})
    pair.master.admin.put_rows("decided", "f", 10)
    pair.wait_same("decided", ["f"])
    both = ("--table=decided", "--table=nobody")
    pair.write_master(status, "--table=decided")
    reported = assert_complete(pair.check(status, "--table=decided", "--wait", "20"))["hbase"]["not_replicated"]
    assert reported == {"tables": 0, "families": 1, "names": [{"table": "decided", "families": ["l"]}]}
    pair.master.admin.set_peer_filters(PEER, "org.apache.hadoop.hbase.replication.SystemTableWALEntryFilter")
    try:
        pair.master.admin.bulk_load("decided", "f", 5, not_replicated=True)
        pair.write_master(status, *both)
        result = pair.check(status, *both)
    finally:
        pair.master.admin.set_peer_filters(PEER, None)
    assert result.exit_code == 3, result
    details = " ".join(problem["detail"] for problem in result.json["problems"])
    assert "SystemTableWALEntryFilter" in details
    assert "replication disabled for the load" in details
    assert {"table": "nobody", "families": None} in result.json["hbase"]["not_replicated"]["names"]
    # Without the filters again: what was loaded on the master alone is copied by other means, and accepted.
    pair.write_master(status, "--table=decided")
    past = pair.check(status, "--table=decided")
    assert [problem["code"] for problem in past.json["problems"]] == ["bulkload"], past
    assert_complete(pair.check(status, "--table=decided", "--since", str(past.json["cut_ms"])), "accepted")


@pytest.fixture
def shutdown_time(pair: Pair) -> Iterator[None]:
    """No shutdown time is left behind for the tests that follow."""
    yield
    tool_here("shutdown-time", "clear", conf=pair.master)


@pytest.mark.usefixtures("shutdown_time")
def test_shutdown_time_record_show_and_use(pair: Pair, status: Path) -> None:
    """What other tables write after the shutdown does not matter; a future or missing time is said."""
    pair.create_filled("app", 10)
    assert "future" in tool_here("shutdown-time", "record", "-s", "99999999999999", conf=pair.master).stderr
    recorded = tool_here("shutdown-time", "record", conf=pair.master)
    assert recorded.exit_code == 0, recorded
    shown = json.loads(tool_here("shutdown-time", "show", "--json", conf=pair.master).stdout)
    moment = shown["shutdown_ms"]
    assert str(moment) in recorded.stdout
    pair.write_master(status, "--table", "app")
    document = assert_complete(pair.check(status, "--table", "app", "--wait", "30"))
    assert (document["shutdown_ms"], document["cut_ms"]) == (moment, moment)
    # Another application goes on: what it writes is not in scope, but a stale shutdown time does not pass in silence.
    pair.wait_same("app")
    pair.master.admin.disable_peer(PEER)
    try:
        pair.master.admin.put_rows("app", "f", 5, start=10)
        said = pair.write_master(status, "--table", "app")
        assert "written to after the shutdown time" in said.stderr
        result = pair.check(status, "--table", "app")
        # The stream's prefix ends before the shutdown, so its later tail cannot be distinguished from an earlier one.
        assert result.exit_code == 1, result
    finally:
        pair.master.admin.enable_peer(PEER)
    assert_complete(pair.check(status, "--table", "app", "--wait", "60", "--ignore-later-writes"))
    doubtful = pair.check(status, "--table", "app")
    assert doubtful.exit_code == 3, doubtful
    (later,) = doubtful.json["hbase"]["later_writes"]
    assert (later["table"], later["newest_ms"] > moment) == ("app", True)
    given = assert_complete(pair.check(status, "--table", "app", "-s", str(moment)))
    assert given["shutdown_from"] == "check"
    future = str(moment + 10**9)
    said = pair.write_master(status, "--table", "app", "-s", future)
    assert "is later than the dump" in said.stderr
    document = assert_complete(pair.check(status, "--table", "app", "--wait", "30"))
    assert document["shutdown_ms"] is None
    assert "is later than the dump" in " ".join(document["notices"])


def test_debug_dumps(pair: Pair, status: Path, tmp_path: Path) -> None:
    """`-d`: alone as JSON lines on stdout, with -m and -i as files with both sides' values."""
    pair.create_table("dumped", {"f": 1})
    pair.master.admin.put_rows("dumped", "f", 10)
    alone = tool_here("run", "-d", "--table", "dumped", "--only", "hbase", conf=pair.master)
    assert alone.exit_code == 0, alone
    rows = [json.loads(line) for line in alone.stdout.splitlines()]
    assert {"server", "region", "stream"} <= {row["kind"] for row in rows}
    folder = tmp_path / "debug"
    pair.write_master(status, "--table", "dumped", "-d", "--debug-dir", str(folder))
    assert (folder / "stream.jsonl").is_file()
    result = pair.check(status, "--table", "dumped", "--wait", "60", "-d", "--debug-dir", str(folder))
    assert_complete(result)
    streams = [json.loads(line) for line in (folder / "streams.jsonl").read_text().splitlines()]
    assert len(streams) == 1


def since_told(problem: dict[str, Any]) -> str:
    """The `--since` that an advice offers where no proof can be had."""
    found = re.search(r"--since (\w+=\d+) takes your word", problem["advice"])
    assert found, problem
    return found.group(1)


def test_a_peer_that_is_added_late_is_accepted_by_the_printed_since(pair: Pair, status: Path) -> None:
    """Rows from before the peer, and the next one written by the same server long after: what is missing between them
    was written when its own last entry was, not when the next one was.
    """
    pair.create_table("late", {"f": 1})
    pair.master.admin.remove_peer(PEER)
    pair.master.admin.put_rows("late", "f", 20)
    pair.master.admin.roll_wal()
    time.sleep(2.5)
    pair.connect()
    baseline = int(time.time() * 1000)
    pair.master.admin.put_rows("late", "f", 5, start=100)
    wait_until(lambda: b"row00000104" in pair.slave.admin.rows("late"), 60, "the later rows have arrived")
    wait_lasting()
    result = pair.verdict(status, "late")
    assert result.exit_code == 1, result
    (problem,) = (p for p in result.json["problems"] if p["kind"] == "gap")
    since = since_told(problem)
    assert int(since.removeprefix("late=")) < baseline, (
        "not a time after the later rows, which would accept those as well"
    )
    assert_complete(pair.check(status, "--table", "late", "--since", since), "accepted")


def test_a_filter_that_was_narrower_is_named_and_repaired_as_told(pair: Pair, status: Path) -> None:
    """Rows of two families go over while the peer ships one of them, and the peer is widened after a roll."""
    pair.create_table("parts", {"f1": 1, "f2": 1})
    both = {"f1:q": "v", "f2:q": "v"}
    pair.master.admin.set_peer_tables(PEER, {"parts": ["f1"]})
    for number in range(22):
        pair.master.admin.mutate_row("parts", f"narrow{number}", both)
        time.sleep(0.1)  # batches of their own
    wait_until(lambda: len(pair.slave.admin.rows("parts")) == 22, 60, "the shipped part has arrived")
    pair.master.admin.roll_wal()
    # What has not been acknowledged would be shipped again, and whole.
    pair.wait_drained()
    pair.master.admin.set_peer_tables(PEER, None)
    pair.master.admin.mutate_row("parts", "wide", both)
    wait_until(lambda: b"wide" in pair.slave.admin.rows("parts"), 60, "the later row has arrived")
    assert not pair.same("parts")
    assert_short_rows(pair, "parts")
    wait_lasting()
    result = pair.verdict(status, "parts")
    assert result.exit_code == 1, result
    (gap,) = result.json["problems"]
    assert (gap["kind"], gap["from_seq"]) == ("gap", 0), result
    as_told(pair.master, gap["repair"]["copy_table"])
    assert pair.same("parts")
    assert "--rows --master-conf DIR" in gap["advice"], gap
    assert_complete(pair.check(status, "--table", "parts", "--rows", "--master-conf", pair.master.conf_dir), "rows")
    # Without the master, the same on somebody's word.
    assert_complete(pair.check(status, "--table", "parts", "--since", since_told(gap)), "accepted")
