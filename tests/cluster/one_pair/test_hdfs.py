"""The HDFS half on two real HDFS clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import load_site
from tests.lab.config import write_conf
from tests.pair import Pair, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def test_match_mismatch_missing_extra(pair: Pair, status: Path, tmp_path: Path) -> None:
    """Each file under the `-f` path gets the verdict that a byte comparison would give it."""
    master, slave = pair.master.admin, pair.slave.admin
    for admin in (master, slave):
        admin.hdfs_put("/half/same", 5000)
        admin.hdfs_put("/half/with space+%41é", 100)
        admin.hdfs_put("/half/empty", 0)
        admin.hdfs_put("/half/sub/deep/file", 70_000)
    paths = tmp_path / "paths"
    paths.write_text("# what the application owns\n/half\n")
    only = ("--only", "hdfs", "-f", str(paths))
    written = tool_here("run", "-m", "-o", status, *only, conf=pair.master)
    assert written.exit_code == 0, written
    result = tool_here("run", "-i", status, "--json", "--only", "hdfs", conf=pair.slave)
    assert result.exit_code == 0, result
    assert result.json["hbase"] is None
    assert result.json["hdfs"]["files"]["match"] == 4
    slave.hdfs_put("/half/extra", 10)
    slave.hdfs_delete("/half/empty")
    slave.hdfs_put("/half/same", b"other" * 1000)
    result = tool_here("run", "-i", status, "--json", "--only", "hdfs", conf=pair.slave)
    assert result.exit_code == 1, result
    files = result.json["hdfs"]["files"]
    assert (files["match"], files["mismatch"], files["missing"], files["extra"]) == (2, 1, 1, 1)
    at_fault = {problem["path"]: problem["kind"] for problem in result.json["problems"]}
    assert at_fault["/half/same"] == "mismatch"
    assert at_fault["/half/empty"] == "missing"
    text = tool_here("run", "-i", status, "--only", "hdfs", conf=pair.slave)
    assert text.stdout.rstrip().splitlines()[-1] == "HDFS Replication is NOT complete."


def test_hdfs_offline(pair: Pair, status: Path, tmp_path: Path) -> None:
    """The same from two files."""
    for side in (pair.master, pair.slave):
        side.admin.hdfs_put("/offline/a", 1000)
    paths = tmp_path / "paths"
    slave_status = tmp_path / "slave.status"
    for side, letters, file in ((pair.master, ["-m"], status), (pair.slave, [], slave_status)):
        # The list may be the master's: only there it has to name the HDFS that is read.
        paths.write_text("hdfs:///offline\n" if letters else "hdfs://whatever:8020/offline\n")
        result = tool_here("run", *letters, "-o", file, "--only", "hdfs", "-f", paths, conf=side)
        assert result.exit_code == 0, result
    result = tool_here("run", "-i", status, "--slave-status", slave_status, "--json", conf=tmp_path)
    assert (result.exit_code, result.json["hdfs"]["files"]["match"]) == (0, 1), result


def test_both_halves_by_default(pair: Pair, status: Path, tmp_path: Path) -> None:
    """Without --only both are checked, both verdict lines are printed, and reports are written."""
    pair.create_table("halves", {"f": 1})
    pair.master.admin.put_rows("halves", "f", 5)
    for side in (pair.master, pair.slave):
        side.admin.hdfs_put("/both/a", 1000)
    paths = tmp_path / "paths"
    paths.write_text("/both\n")
    written = tool_here("run", "-m", "-o", status, "-f", paths, "--table", "halves", conf=pair.master)
    assert written.exit_code == 0, written
    html, prom = tmp_path / "report.html", tmp_path / "status.prom"
    reports = ("--report", html, "--metrics", prom)
    text = tool_here("run", "-i", status, "--table", "halves", "--wait", "30", *reports, conf=pair.slave)
    assert text.exit_code == 0, text
    assert text.stdout.rstrip().splitlines()[-2:] == [
        "HBase Replication is complete.",
        "HDFS Replication is complete.",
    ]
    assert "status_tool_verdict" in prom.read_text()
    assert html.read_text().lower().startswith("<!doctype html>")
    assert json.dumps(text.stdout)


def naming_both(pair: Pair, folder: Path, order: str, mine: str, *, ha: bool) -> Path:
    """Site files as for copying from one cluster to the other: both name services, `mine` as the default."""
    site = {"dfs.nameservices": order}
    for name, cluster in (("master", pair.master), ("slave", pair.slave)):
        address = Settings(load_site([cluster.conf_dir])).webhdfs()[0].removeprefix("http://")
        node = ".nn0" if ha else ""
        site |= {f"dfs.namenode.http-address.{name}{node}": address}
        site |= {f"dfs.ha.namenodes.{name}": "nn0"} if ha else {}
    write_conf(folder, core={"fs.defaultFS": f"hdfs://{mine}"}, hdfs=site, hbase={})
    return folder


def test_a_site_that_names_both(pair: Pair, status: Path, tmp_path: Path) -> None:
    """A file that is missing on the slave is found in whatever order the name services are listed."""
    for name in ("a", "b"):
        pair.master.admin.hdfs_put(f"/named/{name}", 1000)
    pair.slave.admin.hdfs_put("/named/a", 1000)
    paths = tmp_path / "paths"
    paths.write_text("/named\n")
    only = ("--only", "hdfs")
    master = naming_both(pair, tmp_path / "master", "slave,master", "master", ha=True)
    written = tool_here("run", "-m", "-o", status, *only, "-f", paths, conf=master)
    assert written.exit_code == 0, written
    for order, ha in (("master,slave", True), ("slave,master", True), ("master,slave", False), ("slave,master", False)):
        slave = naming_both(pair, tmp_path / f"{order}{ha}", order, "slave", ha=ha)
        result = tool_here("run", "-i", status, "--json", *only, conf=slave)
        assert (result.exit_code, result.json["hdfs"]["files"]["missing"]) == (1, 1), result
    confused = naming_both(pair, tmp_path / "confused", "master,slave", "master", ha=True)
    refused = tool_here("run", "-i", status, *only, conf=confused)
    assert refused.exit_code == 2, refused
    assert "FILE is this cluster's own" in refused.stderr or "same HDFS" in refused.stderr
    # Through another address it is the same file system still.
    tunnel = Settings(load_site([pair.master.conf_dir])).webhdfs()[0].replace("127.0.0.1", "localhost")
    refused = tool_here("run", "-i", status, *only, "--webhdfs", tunnel, conf=slave)
    assert refused.exit_code == 2, refused
    assert "same HDFS" in refused.stderr
