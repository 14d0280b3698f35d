"""What a user can get wrong against live clusters: one line, the right exit code, no half-written file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.waiting import wait_until
from tests.pair import Pair, Result, tool_environment, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def assert_one_line(result: Result, *words: str, exit_code: int = 2) -> None:
    """One clear line on stderr, nothing on stdout, no traceback."""
    assert result.exit_code == exit_code, result
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("status-tool: ")
    for word in words:
        assert word in line


@pytest.fixture(scope="module")
def master_status(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid status file of the master."""
    file = tmp_path_factory.mktemp("bad") / "master.status"
    pair.write_master(file)
    return file


def test_own_file(pair: Pair, master_status: Path) -> None:
    """The master's file checked on the master itself."""
    assert_one_line(tool_here("run", "-i", master_status, conf=pair.master), "own")


def test_a_strangers_file(pair: Pair, tmp_path: Path) -> None:
    """The slave has no peer that leads to the master."""
    file = tmp_path / "stranger"
    written = tool_here("run", "-m", "-o", file, "--only", "hbase", conf=pair.slave)
    assert written.exit_code == 0, written
    assert_one_line(tool_here("run", "-i", file, conf=pair.master), "peer")


def test_wrong_peer(pair: Pair, master_status: Path) -> None:
    """A peer id that the master does not have."""
    assert_one_line(tool_here("run", "-i", master_status, "--peer", "nope", conf=pair.slave), "nope", "--peer")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--only hbase --thrift 127.0.0.1:1", "Thrift 127.0.0.1:1"),
        ("--only hdfs --all-files --webhdfs http://127.0.0.1:1", "NameNode 127.0.0.1:1"),
        ("--all-files --zookeeper 127.0.0.1:1/hbase", "ZooKeeper 127.0.0.1:1"),
        ("--all-files --zookeeper HERE/nothing", "znode"),
    ],
)
def test_servers_that_are_not_there(pair: Pair, tmp_path: Path, options: str, words: str) -> None:
    """Nothing listens there, or a ZooKeeper without that cluster; an older file stays."""
    file = tmp_path / "older"
    file.write_text("older")
    line = options.replace("HERE", pair.master.zookeeper.partition("/")[0]).split()
    assert_one_line(tool_here("run", "-m", "-o", file, *line, conf=pair.master), *words.split())
    assert (file.read_text(), os.listdir(tmp_path)) == ("older", ["older"])


def test_no_state_table(pair: Pair, tmp_path: Path) -> None:
    """A cluster whose trackers were never installed."""
    conf = tmp_path / "conf"
    conf.mkdir()
    for site in pair.master.conf_dir.glob("*.xml"):
        named = "<property><name>hbase.replicationtable.name</name><value>nosuch</value></property></configuration>"
        (conf / site.name).write_text(site.read_text().replace("</configuration>", named))
    assert_one_line(tool_here("run", "-m", "-o", tmp_path / "f", "--all-files", conf=conf), "nosuch", "setup")


def test_full_disk(pair: Pair, tmp_path: Path) -> None:
    """No room for FILE: the older one stays, no temporary is left."""
    file = tmp_path / "older"
    file.write_text("older")
    limit = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); "
    limit += "from status_tool.cli.entry import entry; sys.argv[0] = 'status-tool'; entry()"
    arguments = ["run", "-m", "-o", str(file), "--only", "hbase", "--conf-dir", str(pair.master.conf_dir)]
    done = subprocess.run(
        [sys.executable, "-c", limit, *arguments],
        capture_output=True,
        text=True,
        env=tool_environment(),
        check=False,
    )
    assert_one_line(Result(done.returncode, done.stdout, done.stderr), "cannot write")
    assert (file.read_text(), os.listdir(tmp_path)) == ("older", ["older"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_waiting(pair: Pair, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C (130) or SIGTERM (143) in the middle of `-m --wait`: one line, no file."""
    line = f"-m status_tool run -m -o {tmp_path}/f --all-files --wait 60 --conf-dir {pair.master.conf_dir}"
    process = subprocess.Popen(
        [sys.executable, *line.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=tool_environment(),
    )
    # A paused server does not echo the barrier. Not for long, or it would lose its ZooKeeper session.
    pair.master.region_servers[1].pause()
    try:
        loaded = Path(f"/proc/{process.pid}/maps")
        wait_until(lambda: "thriftpy2" in loaded.read_text(), 30, "the tool has been loaded")
        time.sleep(2)
        process.send_signal(number)
    finally:
        pair.master.region_servers[1].resume()
    stdout, stderr = process.communicate(timeout=30)
    assert_one_line(Result(process.returncode, stdout, stderr), "interrupted", exit_code=128 + number)
    assert os.listdir(tmp_path) == []
