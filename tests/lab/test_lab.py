"""The laboratory itself: what every other cluster test takes for granted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import AdminError, Cluster, ClusterSpec, Lab, ServerDied, wait_until
from .watchdog import marked

pytestmark = pytest.mark.cluster

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Lab, Cluster, Cluster]]:
    """Two clusters; "a" replicates to "b"."""
    with Lab() as lab:
        a, b = lab.start_clusters(ClusterSpec("a"), ClusterSpec("b", region_servers=1))
        a.admin.add_peer("b", b.cluster_key)
        yield lab, a, b


def _create(name: str, *clusters: Cluster) -> None:
    for cluster in clusters:
        cluster.admin.create_table(name, {"f": 1, "local": 0}, splits=[b"row00000500"])


def _wait_equal(a: Cluster, b: Cluster, table: str) -> None:
    wanted = a.admin.digest(table, families=["f"])
    wait_until(lambda: b.admin.digest(table, families=["f"]) == wanted, 120, f"{table} replicated")


def test_rows_replicate(pair: tuple[Lab, Cluster, Cluster]) -> None:
    _, a, b = pair
    _create("rows", a, b)
    a.admin.put_rows("rows", "f", 1000)
    a.admin.put_rows("rows", "local", 10)
    a.admin.delete_rows("rows", 5, start=100)
    _wait_equal(a, b, "rows")
    assert b.admin.digest("rows", families=["f"]).rows == 995
    assert a.admin.digest("rows") != b.admin.digest("rows")


def test_a_killed_region_server_comes_back_under_a_new_name(pair: tuple[Lab, Cluster, Cluster]) -> None:
    _, a, b = pair
    _create("killed", a, b)
    load = a.admin.load_start("killed", "f", 100)
    victim = a.region_servers[0]
    old = victim.server_name
    a.crash(victim)
    assert not victim.running
    wait_until(lambda: old not in a.admin.live_servers(), 60, "the master notices")
    victim.start()
    assert victim.server_name != old
    assert victim.server_name.rsplit(",", 1)[0] == old.rsplit(",", 1)[0]
    before = a.admin.load_count(load)
    wait_until(lambda: a.admin.load_count(load) > before + 20, 60, "the load goes on")
    written = a.admin.load_stop(load)
    assert a.admin.digest("killed").rows >= written
    _wait_equal(a, b, "killed")


def test_a_stopped_region_server_ends_cleanly(pair: tuple[Lab, Cluster, Cluster]) -> None:
    _, a, _ = pair
    server = a.region_servers[1]
    old = server.server_name
    server.stop()
    assert "Exiting; stopping=" + old in server.log.read_text()
    # No session has to expire: a clean stop takes its znode away.
    wait_until(lambda: old not in a.admin.live_servers(), 5, "the master notices")
    server.start()


def test_regions_move_split_and_merge(pair: tuple[Lab, Cluster, Cluster]) -> None:
    _, a, _ = pair
    a.admin.create_table("regions", {"f": 0})
    a.admin.put_rows("regions", "f", 100)
    before = a.admin.digest("regions")
    (only,) = a.admin.regions("regions")
    target = next(server.server_name for server in a.region_servers if server.server_name != only.server)
    a.admin.move(only.encoded, target)
    wait_until(lambda: a.admin.regions("regions")[0].server == target, 60, "moved")
    a.admin.split("regions", b"row00000050")
    low, high = a.admin.regions("regions")
    assert low.end_key == high.start_key == b"row00000050"
    a.admin.major_compact("regions")

    def merged() -> bool:
        try:
            a.admin.merge(low.encoded, high.encoded)
        except AdminError as error:
            if "not mergeable" not in error.message:
                raise
            return False
        return True

    wait_until(merged, 60, "no references left", interval=1)
    assert len(a.admin.regions("regions")) == 1
    assert a.admin.digest("regions") == before


def test_bulk_loaded_rows_are_not_replicated(pair: tuple[Lab, Cluster, Cluster]) -> None:
    _, a, b = pair
    _create("bulk", a, b)
    a.admin.bulk_load("bulk", "f", 10)
    a.admin.put_rows("bulk", "f", 1)
    wait_until(lambda: b.admin.rows("bulk") == [b"row00000000"], 60, "the put replicated")
    assert len(a.admin.rows("bulk")) == 11


def test_a_refused_command_names_the_exception(pair: tuple[Lab, Cluster, Cluster]) -> None:
    _, a, _ = pair
    with pytest.raises(AdminError) as caught:
        a.admin.flush("nowhere")
    assert caught.value.kind.endswith("TableNotFoundException")


def test_all_restart_on_the_same_ports_with_their_data(pair: tuple[Lab, Cluster, Cluster]) -> None:
    _, a, _ = pair
    a.admin.create_table("kept", {"f": 0})
    a.admin.put_rows("kept", "f", 100)
    before, url, cluster_id = a.admin.digest("kept"), a.webhdfs_url, a.admin.cluster_id()
    a.restart_all()
    assert (a.admin.digest("kept"), a.webhdfs_url, a.admin.cluster_id()) == (before, url, cluster_id)


def test_two_labs_at_once_and_nothing_left() -> None:
    with Lab() as one, Lab() as other:
        one.cluster("same", region_servers=1, thrift=False)
        cluster = other.cluster("same", region_servers=1)
        pids = [*one.pids(), *other.pids()]
        assert len(pids) == 6 + 7  # ZooKeeper, NameNode, DataNode, master, region server, admin; Thrift
        one.close()
        assert one.pids() == []
        assert not one.root.exists()
        cluster.admin.create_table("t", {"f": 0})
        cluster.admin.put_rows("t", "f", 1)
        cluster.region_servers[0].pause()
    assert other.pids() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_server_that_cannot_start_is_named() -> None:
    with Lab() as lab, pytest.raises(ServerDied, match="broken-rs0 has ended"):
        lab.cluster("broken", region_servers=1, site={"hbase.coprocessor.regionserver.classes": "no.such.Class"})
    assert lab.pids() == []


def test_nothing_survives_when_the_owner_is_killed(tmp_path: Path) -> None:
    report = tmp_path / "report"
    script = (
        "import pathlib, sys, time; from tests.lab import Lab; lab = Lab();"
        "pathlib.Path(sys.argv[1]).write_text(lab.mark + ' ' + str(lab.root)); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script, str(report)], cwd=REPOSITORY)
    try:
        wait_until(lambda: report.exists() and " " in report.read_text(), 120, "the lab is up")
        mark, root = report.read_text().split(" ")
        assert marked(mark)
    finally:
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    wait_until(lambda: not marked(mark) and not Path(root).exists(), 60, "the watchdog ends its servers")
