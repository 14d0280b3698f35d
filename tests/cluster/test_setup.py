"""Setting the tool up: from a wheel alone, and what `setup` finds on live clusters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from status_tool.cli.setup import JAR, jar
from tests.pair import PEER, Pair, Result, tool_environment, tool_here
from tests.wheel import build

pytestmark = [pytest.mark.cluster]


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
    absent = tool_of(installed, "setup", "--jar-to", tmp_path / "absent")
    assert (absent.exit_code, absent.stdout, absent.stderr.count("\n")) == (2, "", 1), absent


def test_a_cluster_that_is_ready(pair: Pair, installed: Path) -> None:
    """Nothing to mend: exit 0, and `--check` has changed and explained nothing."""
    for cluster in (pair.master, pair.slave):
        looked = tool_of(installed, "setup", "--check", "--conf-dir", cluster.conf_dir)
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
