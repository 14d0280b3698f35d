"""Each wrong input ends as one line that names what is wrong, with exit code 2, and nothing is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.pair import REPOSITORY, tool_environment, tool_here
from tests.wrong_inputs import CHECK, WRONG, Wrong, line_of, table

PAGE = REPOSITORY / "docs" / "troubleshooting.md"


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.what)
def test_one_line(wrong: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What, and in which words the page says so."""
    monkeypatch.chdir(tmp_path)
    line = line_of(wrong, tmp_path)
    before = sorted(tmp_path.iterdir())
    if "spark" in wrong.line:
        command = [sys.executable, "-m", "status_tool", *line]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=tool_environment())
        code, stdout, stderr = done.returncode, done.stdout, done.stderr
    else:
        result = tool_here(*line)
        code, stdout, stderr = result.exit_code, result.stdout, result.stderr
    assert (code, stdout, stderr.count("\n")) == (2, "", 1), stderr
    said = ".*".join(map(re.escape, wrong.said.split("…")))
    assert re.search(said, stderr), stderr
    assert "bug in status-tool" not in stderr
    assert sorted(tmp_path.iterdir()) == before


def test_the_page_has_them() -> None:
    """`python -m tests.wrong_inputs` prints the table."""
    assert len(WRONG) >= 30
    assert table() in PAGE.read_text()


@pytest.mark.parametrize(
    ("line", "redirection", "words"),
    [
        ("config", "> /dev/full", "cannot write to stdout, or a temporary file in … No space left on device"),
        ("run -h", "> /dev/full", "cannot write to stdout, or a temporary file in … No space left on device"),
        ("config", ">&-", "stdout is closed: redirect it to /dev/null"),
        ("run -i f", "<&-", "there is no status file f"),
    ],
)
def test_streams_that_take_nothing(line: str, redirection: str, words: str, tmp_path: Path) -> None:
    """One line and exit code 2, and no word of a bug."""
    done = in_a_shell(f"{line} {redirection}", tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert re.search(".*".join(map(re.escape, words.split("…"))), done.stderr), done.stderr


def in_a_shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command, environment = f"{sys.executable} -m status_tool {line}", tool_environment()
    return subprocess.run(command, shell=True, capture_output=True, text=True, timeout=900, cwd=folder, env=environment)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run -m -o f --log-file pipe", "cannot write pipe: a pipe that nobody reads, or a socket"),
        ("rows --table t --master-conf . --log-file pipe", "cannot write pipe: a pipe that nobody reads"),
        ("run -m -o f --log-file .", "cannot write .: Is a directory"),
        ("run -m -o f -f /dev/zero", "-f /dev/zero is a device: name a file"),
        ("run -m -o f -f .", "cannot read -f .: Is a directory"),
        ("shutdown-time show --cacert /dev/zero", "--cacert /dev/zero is a device: name a file"),
        ("run -m -o f --cert /dev/urandom", "--cert /dev/urandom is a device: name a file"),
        ("switchover --from a --to b --cacert /dev/zero", "--cacert /dev/zero is a device"),
        ("run -m -o f --principal p --keytab pipe", "--keytab pipe is a pipe: name a file"),
        ("run -m -o f --sign-key pipe", "--sign-key pipe is not a regular file"),
        ("run -m -o f --resume", "cannot write f.resume: it is not a regular file"),
        ("run -i f --differ pipe", "cannot write pipe: it is not a regular file"),
    ],
)
def test_what_has_no_end_is_refused(line: str, words: str, tmp_path: Path) -> None:
    """The run waited for a reader or a writer, or read until no memory was left."""
    for name in ("pipe", "f.resume"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "hbase-site.xml").write_text("<configuration/>")
    done = in_a_shell(f"{line} --zookeeper localhost:1/z --thrift localhost:1" if "rows" in line else line, tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith(f"status-tool: {words}"), done.stderr


@pytest.mark.parametrize("way", ["-f <(cat paths)", "-f /dev/stdin < paths", "-f pipe"])
def test_paths_may_come_through_a_pipe(way: str, tmp_path: Path) -> None:
    """As from a command that lists them."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "paths").write_text(f"file://{tmp_path}/data\n")
    (tmp_path / "data").write_text("x")
    run = f"{sys.executable} -m status_tool run -m -o f --only hdfs --layout 1024 --json {way}"
    line = f"(cat paths > pipe &) ; {run}" if way.endswith("pipe") else run
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=tool_environment()
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == {"file": 1}


@pytest.mark.parametrize("is_full", [False, True])
def test_a_log_may_be_a_pipe_that_is_read(is_full: bool, tmp_path: Path) -> None:
    """Of a program that keeps logs; one that has stopped reading does not hold up the run."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "paths").write_text(f"file://{tmp_path}/data\n")
    (tmp_path / "data").write_text("x")
    run = "run -m -o f --only hdfs --layout 1024 -f paths --log-file pipe"
    # Both ends, of which this process uses one.
    pipe = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        with suppress(BlockingIOError):
            while is_full:
                os.write(pipe, b"x" * 4_096)
        assert in_a_shell(run, tmp_path).returncode == 0
        assert (b"reading streams and files" in os.read(pipe, 1 << 20)) != is_full
    finally:
        os.close(pipe)


def test_without_stderr_the_exit_code_is_left(tmp_path: Path) -> None:
    """Nothing of it gets onto stdout."""
    done = in_a_shell("run -i f 2>&-", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.slow
def test_a_verdict_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """Complete would be a lie to whoever reads the file. Without progress, however slow the machine."""
    done = in_a_shell(f"{CHECK} --only hbase -q > /dev/full", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


@pytest.mark.slow
def test_metrics_are_for_exporters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other users; the umask takes from it, and a file that is there keeps its own."""
    monkeypatch.chdir(tmp_path)
    old, strict = tmp_path / "old.prom", 0o027
    old.touch(0o600)
    before = os.umask(0o022)
    try:
        for name, mask, mode in (("a.prom", 0o022, 0o644), ("b.prom", strict, 0o640), ("old.prom", 0o022, 0o600)):
            os.umask(mask)
            assert tool_here("run", "-i", "none", "--metrics", name).exit_code == 2
            assert (tmp_path / name).stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)
