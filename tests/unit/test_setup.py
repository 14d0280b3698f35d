"""`status-tool setup`: what it prints before it looks at a cluster."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from status_tool.cli.main import main
from status_tool.cli.setup import STEPS, TRACKER_PROPERTIES, steps
from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import SiteConfig, read_file
from status_tool.gather import installation
from tests.pair import REPOSITORY
from tests.unit.test_queues import FakeZooKeeper


@pytest.mark.parametrize("text", [STEPS, (REPOSITORY / "README.md").read_text()], ids=["setup", "README"])
def test_the_hbase_that_is_needed_is_named(text: str) -> None:
    """HBase before 2.5.4 has no hook that sees what the sink has applied: nothing would ever be recorded."""
    assert "2.5.4" in text
    assert "HBASE-27529" in text


def test_the_doctor_names_one_next_step() -> None:
    """The first of all that is to be mended."""
    from status_tool.cli.setup import next_step
    from status_tool.gather.installation import Checked

    found = [Checked("a", None), Checked("b", "mend b"), Checked("c", "mend c")]
    assert next_step(found) == "Next: mend b"
    assert next_step(found[:1]) == "ready"


def test_the_doctor_finds_no_cluster_ready_whose_peers_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took those of before for its peers, or found none; `run -i` finds no verdict of such a master complete."""

    class Fake(FakeZooKeeper):
        def peers(self) -> list[str]:
            return []

    monkeypatch.setattr(installation, "ZooKeeper", lambda _: Fake({}))
    monkeypatch.setattr(installation, "measure", lambda *_: SimpleNamespace(hdfs_problem=None))
    known = {"hbase.zookeeper.quorum": "zk"}
    assert [one.mend for one in installation._zookeeper(Settings(SiteConfig(known)))] == [None, None]
    _, found = installation._zookeeper(
        Settings(SiteConfig(known | {"hbase.replication.peer.storage.impl": "filesystem"}))
    )
    assert "is filesystem" in found.what
    assert "CopyReplicationPeers" in (found.mend or "")


@pytest.mark.parametrize("options", [["--check", "--create"], ["--create", "--no-create"]])
def test_nothing_is_created_by_an_option_that_would_be_ignored(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check --create` looked, and created nothing."""
    assert main(["setup", *options]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n"), "--create" in said.err) == ("", 1, True), said.err


@pytest.mark.parametrize(
    "option", ["--check", "--witness=zk:1/w", "--master-zookeeper=zk:1/hbase", "--create", "--thrift=h:1"]
)
def test_a_jar_is_put_and_nothing_is_looked_at(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever gives such an option expects a look."""
    assert main(["setup", "--jar-to", str(tmp_path), option]) == 2
    assert f"leave {option.partition('=')[0]} out" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


OTHERS = {
    "hbase.coprocessor.wal.classes": "org.example.Audit , org.example.A&B",
    "hbase.coprocessor.regionserver.classes": "io.github.statustool.ReplicateTimeTracker,org.example.Guard",
    "hbase.coprocessor.enabled": "false",
}


def test_the_lines_of_this_cluster_are_a_site_file(tmp_path: Path) -> None:
    """What is to be pasted into hbase-site.xml keeps the cluster's own coprocessors; Ambari's lines say the same."""
    text = steps(SiteConfig(OTHERS, [Path("/etc/hbase/conf")]), "replicationstate")
    assert "made for the site files in /etc/hbase/conf" in text
    pasted = text[text.index("<property>") : text.rindex("</property>") + len("</property>")]
    (tmp_path / "hbase-site.xml").write_text(f"<configuration>\n{pasted}\n</configuration>\n")
    wanted = {
        "hbase.coprocessor.wal.classes": "org.example.Audit,org.example.A&B,io.github.statustool.WriteTimeTracker",
        "hbase.coprocessor.regionserver.classes": "io.github.statustool.ReplicateTimeTracker,org.example.Guard",
        "hbase.coprocessor.enabled": "true",
    }
    assert dict(read_file(tmp_path / "hbase-site.xml")) == wanted
    assert dict(line.split("=", 1) for line in text.splitlines() if line.startswith("hbase.coprocessor.")) == wanted


def test_without_site_files_the_lines_are_ours_alone() -> None:
    text = steps(SiteConfig({}), "replicationstate")
    assert "No site files were found" in text
    assert [line for line in text.splitlines() if line.startswith("hbase.")] == [
        f"{k}={v}" for k, v in TRACKER_PROPERTIES.items()
    ]


def test_properties_that_are_set_are_said_to_be() -> None:
    assert "/c has these properties already" in steps(SiteConfig(TRACKER_PROPERTIES, [Path("/c")]), "t")
