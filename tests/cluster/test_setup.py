"""Setting the tool up: from a wheel alone, what `setup` finds on live clusters, and what publishing leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.java import JAR, jar
from status_tool.clients.sitefiles import load_site
from status_tool.clients.thrift import connection, scan
from status_tool.published.layout import PART, Closing
from status_tool.published.table import PublishedTable
from status_tool.status_file.reader import open_status
from tests.campaign import points
from tests.campaign.truth import Cells
from tests.lab.cluster import Cluster
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, Pair, Result, tool_environment, tool_here, wait_flushed
from tests.wheel import build

pytestmark = [pytest.mark.cluster]
STATUS_TABLE = "replicationstatus"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel was installed; the packages it needs are this environment's."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", folder / "site", build(folder / "dist")], check=True)
    return folder / "site"


def tool_of(site: Path, *arguments: str | Path) -> Result:
    """The installed tool as a process, outside the source tree."""
    done = subprocess.run(
        [sys.executable, "-m", "status_tool", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=site.parent,
        env=tool_environment() | {"PYTHONPATH": str(site)},
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_the_wheel_carries_the_trackers(installed: Path, tmp_path: Path) -> None:
    """`setup --jar-to` without sources; a folder that is not there is one line."""
    where = subprocess.run(
        [sys.executable, "-c", "import status_tool; print(status_tool.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(installed)},
    )
    assert where.stdout.startswith(str(installed))
    put = tool_of(installed, "setup", "--jar-to", tmp_path)
    assert (put.exit_code, put.stderr) == (0, ""), put
    assert (tmp_path / JAR).read_bytes() == jar().read_bytes()
    assert (tmp_path / JAR).stat().st_mode & 0o777 == 0o644
    absent = tool_here("setup", "--jar-to", tmp_path / "absent")
    assert (absent.exit_code, absent.stdout, absent.stderr.count("\n")) == (2, "", 1), absent


def test_a_cluster_that_is_ready(pair: Pair, installed: Path) -> None:
    """Nothing to mend: exit 0, and `--check` has changed and explained nothing; the installed tool looks at one."""
    for look, cluster in ((partial(tool_of, installed), pair.master), (tool_here, pair.slave)):
        looked = look("setup", "--check", "--conf-dir", cluster.conf_dir)
        assert looked.exit_code == 0, looked
        assert looked.stdout.count("runs both trackers, version") == len(cluster.region_servers)
        assert "MEND" not in looked.stdout
        assert "hbase-site.xml" not in looked.stdout
        assert looked.stdout.endswith("All is well.\n")


def test_what_is_to_be_mended_is_named(pair: Pair, tmp_path: Path) -> None:
    """A disabled peer and a table without WAL; a NameNode and a Thrift server that are not there."""
    pair.create_table("unlogged", {"f": 1})
    pair.master.admin.set_durability("unlogged", "SKIP_WAL")
    pair.master.admin.disable_peer(PEER)
    try:
        looked = tool_here("setup", "--check", conf=pair.master)
        assert looked.exit_code == 3, looked
        assert f"MEND  peer {PEER} is disabled\n      enable_peer '{PEER}' in the HBase shell\n" in looked.stdout
        assert "MEND  table unlogged has durability SKIP_WAL" in looked.stdout
        assert looked.stdout.endswith("2 things to mend.\n")
    finally:
        pair.master.admin.enable_peer(PEER)
        pair.master.admin.set_durability("unlogged", "USE_DEFAULT")
    gone = ["--thrift", "localhost:1", "--webhdfs", "http://localhost:1"]
    looked = tool_here("setup", "--check", *gone, conf=pair.master)
    assert looked.exit_code == 3, looked
    assert "MEND  Thrift cannot be read" in looked.stdout
    assert "MEND  HDFS cannot be read" in looked.stdout
    assert "HBase cluster" in looked.stdout
    assert tool_here("setup", "--check", "--jar-to", tmp_path).exit_code == 2


def test_setup_explains_and_looks(pair: Pair) -> None:
    """The steps, the state table that is there already, and what is found."""
    done = tool_here("setup", conf=pair.slave)
    assert done.exit_code == 0, done
    for word in ("hbase.coprocessor.wal.classes", "Uninstall", ": exists.", "runs both trackers", "All is well."):
        assert word in done.stdout


def barrier(pair: Pair) -> dict[bytes, object]:
    """The barrier's row of both clusters' state tables."""
    rows: dict[bytes, object] = {}
    for cluster in (pair.master, pair.slave):
        endpoint = ThriftEndpoint("127.0.0.1", cluster.thrift_port)
        rows |= {cluster.cluster_key.encode() + key: cells for key, cells in scan(endpoint, STATE_TABLE, b"b", b"c")}
    return rows


def plan(pair: Pair, *arguments: str | Path, master: bool = False) -> dict[str, str]:
    """What `--explain --json` prints, by what it is about."""
    done = tool_here("run", *arguments, "--explain", "--json", conf=pair.master if master else pair.slave)
    assert (done.exit_code, done.stderr) == (0, ""), done
    return {step["what"]: step["value"] for step in json.loads(done.stdout)["plan"]}


def test_a_plan_writes_nothing(pair: Pair, tmp_path: Path) -> None:
    """Peers, tables, files and the cut of each form; no barrier, no file, and the errors of the run itself."""
    pair.create_table("planned", {"f": 1}, [b"m"])
    pair.master.admin.put_rows("planned", "f", 10)
    for name in ("one", "two"):
        pair.master.admin.hdfs_put(f"/planned/{name}", b"x" * 1000)
    pair.wait_same("planned")
    file, out, paths = tmp_path / "file", tmp_path / "out", tmp_path / "paths"
    paths.write_text("/planned\n/absent\n")
    written = tool_here("run", "-m", "-o", file, "-f", paths, "--table", "planned", conf=pair.master)
    assert written.exit_code == 0, written
    before, files = barrier(pair), sorted(tmp_path.iterdir())
    master = plan(pair, "-m", "-o", out, "-f", paths, "--table", "planned", master=True)
    assert master["tables"].startswith("1 with 2 regions, by Thrift")
    assert master["files"] in ("/planned: 2 files, 2000 bytes", "/absent: does not exist")
    assert master[f"peer {PEER}"].endswith("ships everything")
    assert master["cut"] == "the moment of the run: no shutdown time is recorded"
    assert "not counted" in plan(pair, "-o", out)["files"], "the root is not walked"
    checked = plan(pair, "-i", file, "--table", "planned", "--wait", "5")
    assert checked["FILE"].startswith("master ")
    assert "region 2, " in checked["FILE"]
    assert "region servers" in checked["slave"]
    assert checked["rounds"] == "until complete, or for 5 s"
    assert plan(pair, "-i", file, "-s", "1000000000000")["cut"].startswith("2001-09-09T01:46:40")
    text = tool_here("run", "-d", "--explain", conf=pair.slave)
    assert (text.exit_code, "this cluster: as " in text.stdout) == (0, True), text
    assert (barrier(pair), sorted(tmp_path.iterdir())) == (before, files)
    wrong = tool_here("run", "-i", file, "--explain", "--slave-status", file, conf=pair.slave)
    assert (wrong.exit_code, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1), wrong


def _publish(pair: Pair, *arguments: str | Path, rounds: int = 1) -> Result:
    return tool_here("publish", "--interval", "1", "--rounds", str(rounds), *arguments, conf=pair.master)


@pytest.mark.spark
def test_every_peer_has_to_ship_what_is_published(pair: Pair) -> None:
    """A peer with listed tables is named by `publish` and `setup --check`; with no other peer nothing is published."""
    told = "append_peer_tableCFs '2', {'replicationstatus' => []}"
    pair.master.admin.add_peer("2", pair.slave.cluster_key, table_cfs={"other": []})
    try:
        done = _publish(pair)
        assert (done.exit_code, done.stdout.count(told), done.stdout.count("published the cut")) == (0, 1, 1), done
        looked = tool_here("setup", "--check", conf=pair.master)
        assert looked.exit_code == 3, looked
        assert "MEND  published status files do not reach every peer\n      peer 2 does not" in looked.stdout
        pair.master.admin.disable_peer(PEER)
        refused = _publish(pair)
        assert (refused.exit_code, refused.stdout, refused.stderr.count(told)) == (2, "", 1), refused
    finally:
        pair.master.admin.enable_peer(PEER)
        pair.master.admin.remove_peer("2")


@pytest.mark.spark
def test_what_the_slave_never_got(pair: Pair, tmp_path: Path) -> None:
    """The old master's peer is disabled: what it holds beyond is told by table, and nothing is shipped by asking.

    Well before the last test, which waits until no peer has been changed for a minute.
    """
    pair.create_table("left", {"f": 1})
    pair.create_table("whole", {"f": 1})
    pair.master.admin.put_rows("whole", "f", 10)
    pair.master.admin.put_rows("left", "f", 10)
    pair.wait_same("whole")
    pair.wait_same("left")
    pair.master.admin.disable_peer(PEER)
    ask = ("lost", "--slave-conf", pair.slave.conf_dir, "--table", "left", "--table", "whole")
    missing = tmp_path / "missing.jsonl"
    try:
        for start in (100, 200, 300):  # an entry of the WAL each, which holds ten rows
            pair.master.admin.put_rows("left", "f", 10, start=start)
        found = tool_here(*ask, "--json", "--missing", missing, conf=pair.master)
        assert found.exit_code == 1, found
        assert list(found.json["tables"]) == ["left"], found
        left = found.json["tables"]["left"]
        assert (left["regions"], left["of_regions"], left["entries"]) == (1, 1, 3), found
        assert left["written_from_ms"] <= left["written_to_ms"] <= found.json["read_ms"]
        assert [json.loads(line)["table"] for line in missing.read_text().splitlines()] == ["left"]
        told = tool_here(*ask, conf=pair.master)
        assert "left: about 3 WAL entries, in 1 of 1 regions, written between" in told.stdout, told
        by_rows = tool_here(*ask, "--rows=all", "--json", conf=pair.master)
        assert (by_rows.exit_code, list(by_rows.json["tables"])) == (1, ["left"]), by_rows
        assert len(pair.slave.admin.rows("left")) == 10
    finally:
        pair.master.admin.enable_peer(PEER)
    pair.wait_same("left")
    nothing = tool_here(*ask, conf=pair.master)
    assert (nothing.exit_code, nothing.stdout.count("Nothing is lost")) == (0, 1), nothing
    itself = tool_here("lost", "--slave-conf", pair.master.conf_dir, conf=pair.master)
    assert (itself.exit_code, itself.stderr.count("is this cluster itself")) == (2, 1), itself
    refused = tool_here("lost", conf=pair.master)
    assert (refused.exit_code, refused.stderr.count("--slave-conf DIR")) == (2, 1), refused


@pytest.mark.spark
def test_what_is_published_has_all_of_a_file_and_is_in_no_scope(pair: Pair, tmp_path: Path) -> None:
    """Rounds after the shutdown time are no writes after it. Files and digests go with them, signed."""
    key, other, paths = tmp_path / "key", tmp_path / "other", tmp_path / "paths"
    for name in (key, other):
        name.write_bytes(os.urandom(32))
        name.chmod(0o600)
    paths.write_text("/published\n")
    pair.create_table("shipped", {"f": 1})
    pair.master.admin.put_rows("shipped", "f", 5)
    for cluster in (pair.master, pair.slave):
        cluster.admin.hdfs_put("/published/one", b"x" * 1000)
    pair.wait_same("shipped")
    assert tool_here("shutdown-time", "record", conf=pair.master).exit_code == 0
    try:
        done = _publish(
            pair, "--files-every", "60", "-f", paths, "--rows=all", "--sign-key", key, "--table", "shipped", rounds=3
        )
        assert (done.exit_code, done.stdout.count("with HDFS files")) == (0, 1), done
    finally:
        cleared = tool_here("shutdown-time", "clear", conf=pair.master)
    ask = ("run", "-i", "--published", "--json", "--table", "shipped", "--sign-key", key)

    def found(*arguments: str) -> Result:
        return tool_here(*ask, *arguments, conf=pair.slave)

    wait_until(lambda: found("--only", "hbase").exit_code == 0, 60, "the last round has arrived")
    checked = found("--rows=all")
    assert (checked.exit_code, checked.json["hbase"]["regions"]["complete"]) == (0, 1), checked
    assert any("5 rows of 1 table compared: equal" in notice for notice in checked.json["notices"]), checked
    assert str(checked.json["shutdown_ms"]) in cleared.stdout, (checked, cleared)
    files = tool_here("run", "-i", "--published", "--json", "--sign-key", key, "--only", "hdfs", conf=pair.slave)
    assert (files.exit_code, files.json["hdfs"]["files"]["match"]) == (0, 1), files
    refused = tool_here(*ask[:-1], other, conf=pair.slave)
    assert (refused.exit_code, "was not signed with the key" in refused.json["error"]) == (2, True), refused
    point = points.recovery_point(pair, "--table", "shipped", "--sign-key", str(key), "--max-age", "60", ask=tool_here)
    assert point.json["recovery_point_ms"] == checked.json["shutdown_ms"], point


def test_a_publisher_that_is_killed_leaves_whole_files(pair: Pair, tmp_path: Path) -> None:
    """With -9, at any time in its rounds: each closing row has all its parts."""
    table = _published_on(pair.master)
    before = len(table.published().closings)
    for number in range(3):
        with points.publisher(pair, interval_s=1.0) as process:
            assert process.stdout is not None
            # The first round is left out where the claim of the publisher before is younger than an interval.
            assert any(" published the cut " in line for line in process.stdout)
            time.sleep(0.9 + 0.4 * number)
            process.kill()
    closings = table.published().closings
    assert len(closings) >= before + 3
    for closing in closings:
        table.fetch(closing, tmp_path / "file")
    for cluster in (pair.master, pair.slave):
        with connection(ThriftEndpoint("127.0.0.1", cluster.thrift_port)) as client:
            (family,) = client.table(STATUS_TABLE).families().values()
            assert family["time_to_live"] == 24 * 60 * 60, family


@pytest.mark.spark
def test_a_lost_master_leaves_its_recovery_point(pair: Pair, tmp_path: Path) -> None:
    """Published under load until all of the master is killed: the slave alone says up to when everything is there.

    Then the old master is up again, and tells what the slave never got. It ends the master, so it comes last.
    """
    pair.create_table("points", {"f": 1})
    pair.let_peer_age()
    mix = pair.master.admin.mix_start({"points": ["f"]}, seed=1, rate_per_s=40, mark="p.")
    journal = points.Journal(pair, mix)
    with journal.watched():
        with points.publisher(pair) as first:
            points.published_rounds(first, 2)
            second = tool_here("publish", "--interval", "60", "--rounds", "1", conf=pair.master)
            assert second.stdout.count("left out") == 1, second
            pair.slave.admin.snapshot("early", STATUS_TABLE)
            _a_later_file_settles_a_crash(pair)
            pair.master.admin.disable_peer(PEER)
            # Until heads are recorded of entries that the slave does not get. Nothing is published without a peer.
            wait_flushed(pair.master, int(time.time() * 1000) + 2_000)
            killed_ms = pair.master.lose()
        pair.master.admin.mix_stop(mix, patience_s=3)  # no server is left to answer it
        journal.read()
    report = ("--report", str(tmp_path / "point.html"))
    found = points.recovery_point(pair, "--table", "points", *report, ask=tool_here)
    assert "points: proven to" in (tmp_path / "point.html").read_text()
    present = points.stored_on_slave(pair, ["points"])
    end = points.judged(journal, present, found, "master", killed_ms, 0.0)
    assert end.missing == 0, (end, found)
    assert end.point_ms is not None, found
    assert found.json["tables"]["points"]["recovery_point_ms"] >= end.point_ms
    assert found.json["newest_published_ms"] >= end.point_ms
    _check_of_the_newest(pair, tmp_path)
    _what_was_altered_is_not_counted(pair, end.point_ms)
    _a_table_that_went_back_or_is_gone(pair, end.point_ms)
    _the_old_master_is_asked(pair, present, tmp_path / "after.status")


def _a_later_file_settles_a_crash(pair: Pair) -> None:
    """What a crashed server had written is proven once its queue has drained, by a file that was written then."""
    pair.master.crash(pair.master.region_servers[-1])
    crashed_ms = int(time.time() * 1000)

    def is_settled() -> bool:
        found = points.recovery_point(pair, "--table", "points", ask=tool_here)
        return (found.json["recovery_point_ms"] or 0) > crashed_ms

    wait_until(is_settled, 300, "a recovery point later than the crash", interval=points.INTERVAL_S)


def _a_table_that_went_back_or_is_gone(pair: Pair, point_ms: int) -> None:
    """On the slave: a point of what is there now, and no point and one line where nothing is."""
    pair.slave.admin.restore_snapshot("early", STATUS_TABLE)
    back = points.recovery_point(pair, "--table", "points", ask=tool_here)
    assert back.exit_code in (1, 3), back
    assert (back.json["recovery_point_ms"] or 0) < point_ms, back
    assert back.json["newest_published_ms"] < point_ms, back
    pair.slave.admin.disable_table(STATUS_TABLE)
    refused = tool_here("recovery-point", conf=pair.slave)
    assert (refused.exit_code, refused.stderr.count("is disabled: enable it")) == (2, 1), refused
    pair.slave.admin.enable_table(STATUS_TABLE)
    pair.slave.admin.truncate_table(STATUS_TABLE)
    nothing = tool_here("recovery-point", conf=pair.slave)
    assert (nothing.exit_code, nothing.stdout.count("There is NO recovery point: no master has")) == (3, 1), nothing


def _the_old_master_is_asked(pair: Pair, present: Cells, status: Path) -> None:
    """Up again with its peer disabled, it says what the slave never got; nothing is shipped before that is decided.

    Then all arrives, and the queues settle the servers that were killed, although the HBase master that started wrote
    the peer anew while no server was up.
    """
    pair.master.start()
    ask = ("--since-recovery-point", "--slave-conf", pair.slave.conf_dir, "--table", "points", "--json")
    found = tool_here("lost", *ask, conf=pair.master)
    assert found.exit_code == 1, found
    assert found.json["tables"]["points"]["entries"] > 0, found
    assert points.stored_on_slave(pair, ["points"]) == present
    pair.master.admin.enable_peer(PEER)
    pair.wait_same("points")
    pair.write_master(status, "--table", "points", "--wait", "240", "--drained")
    after = pair.check(status, "--table", "points", "--wait", "90")
    assert (after.exit_code, after.json["problems"]) == (0, []), after
    pair.master.admin.drop_table(STATUS_TABLE)
    refused = tool_here("publish", "--rounds", "1", conf=pair.master)
    assert (refused.exit_code, refused.stderr.count("does not exist on this cluster")) == (2, 1), refused
    pair.slave.admin.drop_table(STATUS_TABLE)
    for command in (("recovery-point",), ("run", "-i", "--published")):
        refused = tool_here(*command, conf=pair.slave)
        assert (refused.exit_code, refused.stderr.count("does not exist on this cluster")) == (2, 1), refused


def _check_of_the_newest(pair: Pair, tmp_path: Path) -> None:
    """`run -i --published`, and what a published file holds: not the table in which it travels."""
    check = tool_here("run", "-i", "--published", "--json", "--only", "hbase", "--table", "points", conf=pair.slave)
    assert check.exit_code in (0, 1), check
    assert check.json["hbase"]["evidence"] == "exact"
    metrics = tmp_path / "m.prom"
    watched = tool_here(
        "watch", "--published", "--only", "hbase", "--rounds", "1", "--metrics", metrics, conf=pair.slave
    )
    assert watched.exit_code in (0, 1, 3), watched
    assert "recovery_point_timestamp_seconds{" in metrics.read_text(), metrics.read_text()
    assert 'table="points"}' in metrics.read_text()
    table, newest = _published(pair)
    file = tmp_path / "published.status"
    table.fetch(newest, file)
    with open_status(file) as status:
        assert status.header.status_table == "replicationstatus"
        tables = {row["table"] for batch in status.rows() for row in batch.to_pylist()}
        assert "points" in tables
        assert "replicationstatus" not in tables


def _what_was_altered_is_not_counted(pair: Pair, point_ms: int) -> None:
    """Changed on the slave in every file of the last cuts: the point falls back to an older one, and says why."""
    table, newest = _published(pair)
    with connection(table.endpoint) as client:
        for closing in table.published().closings:
            if closing.barrier_ms >= point_ms:
                client.table(table.name).put(closing.part_key(closing.parts[-1]), {PART: b"x"})
    found = points.recovery_point(pair, "--table", "points", ask=tool_here)
    assert found.exit_code in (1, 3), found
    assert found.json["recovery_point_ms"] is None or found.json["recovery_point_ms"] < point_ms
    assert any("was altered" in notice for notice in found.json["notices"]), found
    with connection(table.endpoint) as client:
        client.table(table.name).delete(newest.part_key(newest.parts[-1]))
    refused = tool_here("run", "-i", "--published", conf=pair.slave)
    assert "has not arrived in whole: part" in refused.stderr, refused


def _published(pair: Pair) -> tuple[PublishedTable, Closing]:
    table = _published_on(pair.slave)
    return table, table.published().closings[0]


def _published_on(cluster: Cluster) -> PublishedTable:
    settings = Settings(load_site([cluster.conf_dir], environ={}))
    return PublishedTable(settings.thrift(), settings.status_table)
