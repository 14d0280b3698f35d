"""Setting the tool up: from a wheel alone, and what `setup` finds on live clusters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.java import JAR, jar
from status_tool.clients.thrift import scan
from tests.pair import PEER, STATE_TABLE, Pair, Result, tool_environment, tool_here
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
    assert "2 region, " in checked["FILE"]
    assert "region servers" in checked["slave"]
    assert checked["rounds"] == "until complete, or for 5 s"
    assert plan(pair, "-i", file, "-s", "1000000000000")["cut"].startswith("2001-09-09T01:46:40")
    text = tool_here("run", "-d", "--explain", conf=pair.slave)
    assert (text.exit_code, "this cluster: as " in text.stdout) == (0, True), text
    assert (barrier(pair), sorted(tmp_path.iterdir())) == (before, files)
    wrong = tool_here("run", "-i", file, "--explain", "--slave-status", file, conf=pair.slave)
    assert (wrong.exit_code, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1), wrong
