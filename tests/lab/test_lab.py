"""The laboratory itself: what every other cluster test takes for granted, and does not show by itself.

That rows replicate, servers stop, die and come back, regions move, split and merge, and that a cluster restarts as a
whole on its own ports is in `tests/cluster`, where the trackers watch it. All servers are started and ended alike, so
HDFS alone shows it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from . import AdminError, ClusterSpec, Lab, ServerDied, wait_until
from .watchdog import marked

pytestmark = pytest.mark.cluster

REPOSITORY = Path(__file__).resolve().parents[2]


def test_two_labs_at_once_and_nothing_left() -> None:
    spec = ClusterSpec("same", hbase=False, one_hdfs_process=True)
    with Lab() as one, Lab() as other:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(one.start_clusters, spec)
            (cluster,) = other.start_clusters(spec)
            first.result()
        pids = [*one.pids(), *other.pids()]
        assert len(pids) == 2 * 3  # ZooKeeper, HDFS, admin
        one.close()
        assert one.pids() == []
        assert not one.root.exists()
        assert cluster.admin.hdfs_put("/file", b"there") == len(b"there")
        with pytest.raises(AdminError) as refused:
            cluster.admin.hdfs_chmod("/nowhere", "700")
        assert refused.value.kind.endswith("FileNotFoundException")
        cluster.namenode.pause()
    assert other.pids() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_server_that_cannot_start_is_named() -> None:
    """While the others still start."""
    broken = [{"hbase.regionserver.port": "none"}]
    spec = ClusterSpec("broken", 1, rs_site=broken, thrift=False, one_hdfs_process=True)
    with Lab() as lab, pytest.raises(ServerDied, match="broken-rs0 has ended"):
        lab.start_clusters(spec)
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
