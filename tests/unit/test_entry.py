"""The console script as a process of its own: signals while it is still being loaded."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.waiting import wait_until

SLOW_IMPORT = """
import pathlib, sys, time

class SlowImport:
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            pathlib.Path({reached!r}).touch()
            try:
                time.sleep(60)
            except BaseException:
                pass  # as a careless module does

sys.meta_path.insert(0, SlowImport)
"""
"""Makes an import take a minute: a signal after it has begun always hits it."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["typer", "pyarrow"])
def test_a_signal_while_loading_is_one_line(tmp_path: Path, number: signal.Signals, module: str) -> None:
    """130 or 143, no traceback, no file."""
    site, out, reached = tmp_path / "site", tmp_path / "out", tmp_path / "reached"
    site.mkdir()
    out.mkdir()
    (site / "sitecustomize.py").write_text(SLOW_IMPORT.format(reached=str(reached), module=module))
    process = subprocess.Popen(
        [sys.executable, "-m", "status_tool", "run", "-m", "-o", str(out / "f"), "--json", "--conf-dir", str(site)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site)},
    )
    try:
        wait_until(reached.exists, 120, "the import has begun", interval=0.01)
        process.send_signal(number)
        said = process.communicate(timeout=120)
    finally:
        process.kill()
    text = "interrupted; nothing was written"
    assert (process.returncode, said[1]) == (128 + number, f"status-tool: {text}\n")
    assert json.loads(said[0]) == {"error": text, "exit_code": 128 + number}
    assert list(out.iterdir()) == []


LOADED = """
import sys
from status_tool.cli.main import main

def show():
    large = {"pyarrow", "pyspark", "happybase", "kazoo", "requests", "rich"}
    print(*sorted(sys.modules.keys() & large), file=sys.stderr)

for line in LINES:
    show()
    main(line)
show()
"""


def loaded(*lines: list[str]) -> list[str]:
    """Which large packages are loaded before each of these command lines, and after the last."""
    code = LOADED.replace("LINES", repr(lines))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return [line for line in done.stderr.splitlines() if not line.startswith("status-tool: ")]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_a_character(encoding: str) -> None:
    """Not a traceback: what it cannot show is escaped."""
    code = "from status_tool.cli.entry import _with_all_streams; _with_all_streams(); print('a → b')"
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout == b"a \\u2192 b\n"


def test_help_and_a_wrong_option_load_nothing_large() -> None:
    """They are there at once; so is every command's help."""
    commands = ("run", "queues", "rows", "topology", "shutdown-time", "setup", "prune")
    lines = [["--help"], ["--version"], *([command, "-h"] for command in commands)]
    wrong = [["run", "--nope"], ["run", "-m", "--report", "x.html"], ["rows"], ["queues", "--watch", "x"], ["prune"]]
    assert loaded(*lines, *wrong, ["--version"]) == [""] * (len(lines) + len(wrong) + 2)


@pytest.mark.slow
def test_writing_a_status_loads_no_spark(tmp_path: Path) -> None:
    """`run -m -o FILE` as far as it comes without a cluster."""
    file = tmp_path / "f"
    found = loaded(["run", "-m", "-o", str(file), "--thrift", "localhost:1", "--zookeeper", "localhost:1/x"])[-1]
    assert "happybase" in found
    assert "pyspark" not in found


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["queues"], ["topology"], ["run", "-m", "-o", "f", "--thrift", "localhost:1", "--all-files"]]
)
def test_a_zookeeper_that_is_down_is_one_line(tmp_path: Path, command: list[str]) -> None:
    """Of the tool, not of kazoo's log."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # without listening, so that it refuses
        address = f"127.0.0.1:{held.getsockname()[1]}"
        line = [sys.executable, "-m", "status_tool", *command, "--zookeeper", f"{address}/hbase"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"status-tool: cannot reach ZooKeeper at {address} (Connection refused)")
    assert list(tmp_path.iterdir()) == []
