"""The command line without any cluster: usage errors, bad files, missing configuration."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from status_tool.cli.options import parse_baseline, parse_time
from status_tool.cli.run_options import OPTION_GROUPS
from status_tool.vocabulary.scope import Baseline, Scope, TableFilter
from tests.pair import REPOSITORY, Result, tool_environment, tool_here
from tests.schema import assert_valid

SAMPLE = REPOSITORY / "sample_status" / "complete"


def assert_refused(result: Result, *words: str) -> None:
    """Exit code 2, one line that has the words, nothing on stdout."""
    assert result.exit_code == 2, result
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("status-tool: ")
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "-m"], ["-o FILE"]),
        (["run", "--slave-status", "f"], ["-i FILE"]),
        (["run", "--nonsense"], ["--nonsense"]),
        (["run", "-i", "f", "--missing", "-", "--differ", "-"], ["--missing -", "--differ -", "stdout"]),
        (["run", "-i", "f", "--missing", "/nonexistent/f"], ["/nonexistent"]),
        (["run", "-i", "f", "--repair-script", "/"], ["folder"]),
        (["run", "-m", "-o", "f", "--follow"], ["--follow", "-i FILE"]),
        (["run", "-i", "f", "--follow"], ["--master-conf"]),
        (["run", "-i", "f", "--master-conf", "."], ["--follow"]),
        (["run", "-i", SAMPLE / "master.status", "--follow", "--master-conf", "/nonexistent"], ["/nonexistent"]),
        (
            ["run", "-i", SAMPLE / "master.status", "--follow", "--master-zookeeper", "h:1/z", "-s", "1700000000000"],
            ["-s"],
        ),
        (["topology", "--zookeeper", "127.0.0.1:1/z", "--peer-conf", "/nonexistent"], ["/nonexistent"]),
        (["run", "-i"], ["-i"]),
        (["run", "-i", "f", "--only", "half"], ["half"]),
        (["run", "-i", "f", "--wait", "-1"], ["--wait"]),
        (["run", "-i", "f", "-s", "yesterday"], ["-s", "2026-01-31T12:00:00Z"]),
        (["run", "-i", "f", "-s", "2026-01-31T12:00:00"], ["-s", "zone"]),
        (["run", "-i", "f", "--since", "1960-01-31T12:00:00Z"], ["--since"]),
        (["topology", "--since", "2026-01-31"], ["--since", "zone"]),
        (["shutdown-time", "record", "-s", "2026-13-31T12:00:00Z"], ["-s"]),
        (["run", "-i", "f", "-s", "0"], ["-s", "milliseconds"]),
        (["run", "-i", "f", "-s", "1700000000"], ["looks like seconds", "1700000000000"]),
        (["run", "-i", "f", "--since", "999999999999999999"], ["--since"]),
        (["run", "-i", "f", "--since", "t=yesterday"], ["--since", "yesterday"]),
        (["run", "-i", "f", "--since", "t="], ["--since t=", "give a time"]),
        (["run", "-i", "f", "--since", "=1700000000000"], ["--since", "name the table"]),
        (["run", "-i", "f", "--since", "t=1700000000000", "--since", "default:t=1700000000001"], ["twice", "table t"]),
        (["run", "-i", "f", "--since", "1700000000000", "--since", "1700000000001"], ["--since", "twice"]),
        (["run", "-i", "f", "--table", "a", "--since", "b=1700000000000"], ["--since", "b is not in scope", "--table"]),
        (["run", "-i", "f", "--since", "hbase:meta=1700000000000"], ["--since", "not in scope"]),
        (
            ["run", "-m", "-o", "f", "--only", "hdfs", "--webhdfs", "http://knox:8443/gateway/default"],
            ["--webhdfs", "without a path"],
        ),
        (["run", "-i", "f", "--spark-conf", "x"], ["K=V"]),
        (["run", "-i", "f", "-f", "/nonexistent/paths"], ["-f", "/nonexistent/paths"]),
        (["nonsense"], ["nonsense"]),
        (["shutdown-time", "record"], ["--thrift"]),
        (["run", "-d"], ["--zookeeper"]),
        (["run", "-m", "-o", "f", "--all-files"], ["--zookeeper"]),
        (["run", "-m", "-o", "f"], ["--zookeeper"]),
        (["run", "-m", "-o", "f", "-f", "p", "--all-files"], ["--all-files", "-f", "either"]),
        (["run", "-m", "-o", "f", "--conf-dir", "/nonexistent"], ["/nonexistent"]),
        (["run", "-m", "-o", "/nonexistent/f"], ["/nonexistent"]),
        (["run", "-m", "-o", "/"], ["folder"]),
        (["run", "-m", "-o", "f", "-q", "-v"], ["-q", "-v", "either"]),
        (["run", "-m", "-o", "f", "--log-file", "/nonexistent/log"], ["/nonexistent/log", "--log-file"]),
        (["rows", "--table", "t", "--master-conf", ".", "-q", "-v"], ["-q", "-v", "either"]),
    ],
)
def test_usage_errors(arguments: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear line each, and nothing is written; more of them are in `test_wrong_inputs` and `test_modes`."""
    monkeypatch.chdir(tmp_path)
    assert_refused(tool_here(*arguments), *words)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "-i", "/nonexistent/f", "--json"], ["/nonexistent/f"]),
        (["run", "--json"], ["nothing to do"]),
        (["run", "-i", "f", "--nonsense", "--json"], ["--nonsense"]),
        (["run", "-i", "f", "--json", "--missing", "-"], ["--missing", "--json", "stdout"]),
    ],
)
def test_with_json_an_error_is_a_document(arguments: list[str], words: list[str]) -> None:
    """One document on stdout, as the schema says, and the line on stderr as ever."""
    result = tool_here(*arguments)
    assert result.exit_code == 2
    assert_valid(result.json, "error")
    assert list(result.json) == ["error", "exit_code"]
    assert result.json["exit_code"] == 2
    assert all(word in result.json["error"] for word in words)
    assert result.json["error"] in result.stderr


@pytest.mark.parametrize("table", ["", "ns:t="])
@pytest.mark.parametrize("more", [[], ["--slave-status", SAMPLE / "slave.status"]])
@pytest.mark.parametrize("moment", ["253402300000000", "9999-12-31T23:46:40Z"])
def test_a_baseline_beyond_the_cut_is_refused(more: list[str | Path], table: str, moment: str) -> None:
    """Everything would be accepted, and complete would say nothing; a time is the same in either form."""
    result = tool_here("run", "-i", SAMPLE / "master.status", "--since", f"{table}{moment}", *more)
    assert_refused(result, f"--since {table}253402300000000", "after the cut", "run -m")


def test_a_baseline_by_table() -> None:
    """`--since TABLE=TIME`, with the names that HBase takes for the same table."""
    texts = ["2023-11-14T22:13:20Z", "default:t=1700000000001", "ns:u=2023-11-14T22:13:20.002Z"]
    found = parse_baseline(texts, TableFilter())
    assert found == Baseline(1_700_000_000_000, {"t": 1_700_000_000_001, "ns:u": 1_700_000_000_002})
    assert [found.of(table) for table in ("t", "ns:u", "v", None)] == [1_700_000_000_000 + n for n in (1, 2, 0, 0)]
    assert parse_baseline([], TableFilter()) == Baseline()


def test_a_half_that_the_file_does_not_hold(tmp_path: Path) -> None:
    """Checking nothing is never complete."""
    legacy = tmp_path / "f.json"
    legacy.write_text('{"shutdownTime": 0, "hdfsState": {}}')
    assert_refused(tool_here("run", "-i", legacy, "--only", "hbase"), "only", "hdfs")


def test_help_names_every_option_of_the_contract() -> None:
    """`-h` of the command line."""
    text = tool_here("run", "-h").stdout
    for option in (
        *("-m", "-o", "-i", "-d", "-s", "-f", "--slave-status", "--debug-dir", "--only", "--table", "--namespace"),
        *("--peer", "--since", "--wait", "--json", "--report", "--metrics", "--thrift", "--webhdfs", "--zookeeper"),
        *("--conf-dir", "--spark-master", "--spark-conf", "--max-problems"),
    ):
        assert f"{option} " in text


def test_help_has_every_option_in_one_group() -> None:
    """Each at the start of one line, `--help` included."""
    lines = tool_here("run", "-h").stdout.splitlines()
    for flag in ("--help", *(option.flag for options in OPTION_GROUPS.values() for option in options.values())):
        assert sum(bool(re.match(rf"  (-\w, )?{flag}\b", line)) for line in lines) == 1, flag
    headings = [line[:-1] for line in lines if re.match(r"\S.*:$", line)]
    assert headings == [*OPTION_GROUPS, "Examples", "Exit codes"]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "run -i f --wait",
            "run -i f --rate",
            "rows --rate",
            "rows --wait",
            "watch -i f --every",
            "publish --interval",
        ),
        *("publish --files-every", "prune f --gone-for", "queues --watch", "recovery-point --max-age"),
    ],
)
def test_no_number_is_infinite(line: str) -> None:
    """Nothing can wait for so long, and JSON has no such number."""
    assert_refused(tool_here(*line.split(), "inf"), f"Invalid value for '{line.split()[-1]}'")


def test_an_own_fault_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a bug of ours shows no traceback unless STATUS_TOOL_TRACEBACK is set."""
    monkeypatch.setattr("status_tool.cli.run.settings_of", lambda *_: 1 / 0)
    monkeypatch.delenv("STATUS_TOOL_TRACEBACK", raising=False)
    assert_refused(tool_here("run", "-d"), "ZeroDivisionError")
    monkeypatch.setenv("STATUS_TOOL_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        tool_here("run", "-d")


def test_progress_is_shown_as_asked(tmp_path: Path) -> None:
    """-v: each step on stderr; else, in a short run, none; --log-file: each step with its time, from run to run."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "paths").write_text(f"file://{tmp_path}/file\n")
    run = ("run", "-m", "-o", tmp_path / "status", "-f", tmp_path / "paths", "--only", "hdfs", "--layout", "1024")
    log = tmp_path / "log"
    told = tool_here(*run, "-v", "--log-file", log)
    silent = tool_here(*run, "-q", "--log-file", log)
    plain = tool_here(*run)
    assert [one.exit_code for one in (told, silent, plain)] == [0, 0, 0], told
    assert "reading streams and files" in told.stderr
    assert "reading" not in silent.stderr + plain.stderr
    steps = [line.split("Z ")[1] for line in log.read_text().splitlines()]
    # The second run knows from the FILE that it replaces how many files to expect.
    assert steps == ["reading streams and files", "files", "done", "reading streams and files", "files (1)", "done"]


def test_a_shell_completes_commands_and_options() -> None:
    """What `--install-completion` installs asks for this."""
    for words, found in (("status-tool ru", "run"), ("status-tool run --only h", "hbase\nhdfs")):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_STATUS_TOOL_COMPLETE": "complete_bash"}
        command = [sys.executable, "-c", "from status_tool.cli.entry import entry; entry()"]
        env = {**tool_environment(), **asked}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, found, ""), done


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["run -i {0}/master.status --slave-status {0}/slave.status --only hbase", "", "config"]
)
def test_a_closed_pipe_is_an_error_without_words(line: str) -> None:
    """`status-tool … | head -1` leaves quietly, and not by the exit code of a check that found something missing."""
    command = f"set -o pipefail; {sys.executable} -m status_tool {line.format(SAMPLE)} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=tool_environment(), check=False)
    assert (done.returncode, done.stderr) == (2, "")


BROKEN_PIPE = """
import socket
from status_tool.cli import run

def broken(*_):
    ours, theirs = socket.socketpair()
    theirs.close()
    ours.send(b"x")

run.settings_of = broken
from status_tool.cli.entry import entry
entry()
"""
"""A server that the run needs closes its connection, and no library says so in words of its own."""


@pytest.mark.parametrize("reader", ["cat", "true"])
def test_a_broken_pipe_that_is_not_stdouts_is_an_error(reader: str) -> None:
    """It ended without a word, as if the reader of stdout had gone; nor does it where he has gone, too."""
    command = ["bash", "-c", f'set -o pipefail; "$@" | {reader}', "-", sys.executable, "-c", BROKEN_PIPE]
    line = [*command, "run", "-m", "-o", "f", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, env=tool_environment(), check=False)
    words = "a server or a process that this run needs has closed its connection (Broken pipe): run it again"
    assert (done.returncode, done.stderr) == (2, f"status-tool: {words}\n")
    assert done.stdout == ("" if reader == "true" else f'{{"error": "{words}", "exit_code": 2}}\n')


def test_an_error_is_told_by_the_exit_code_and_the_document_without_a_stderr() -> None:
    command = f"{sys.executable} -m status_tool run --nosuch --json 2>/dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=tool_environment(), check=False)
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (2, 2)


@pytest.mark.parametrize("option", ["-i", "--report", "--peer", "--wait", "--spark-master"])
def test_an_option_that_takes_one_value_is_given_once(option: str) -> None:
    """The first one would be ignored: of two FILEs only the second would be checked."""
    assert_refused(tool_here("run", "-i", "f", option, "1", option, "2"), option, "give one value")


def test_the_program_takes_one_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one would be ignored, and the run would be about another pair of clusters."""
    (tmp_path / "f.toml").write_text("[profile.a]\n[profile.b]\n")
    (tmp_path / "f.toml").chmod(0o600)
    monkeypatch.setenv("STATUS_TOOL_CONFIG", str(tmp_path / "f.toml"))
    assert tool_here("--profile", "a", "config").exit_code == 0
    assert_refused(tool_here("--profile", "a", "--profile", "b", "config"), "--profile is given twice: give one value")
    assert_refused(tool_here("--profile", "", "config"), "--profile is empty")


@pytest.mark.parametrize("option", ["--thrift", "--table", "--layout", "--conf-dir", "--exclude", "--report"])
def test_an_empty_value_is_refused(option: str) -> None:
    """As of a variable of the shell that is not set: it would mean the default, or the current folder."""
    assert_refused(tool_here("run", "-i", "f", option, ""), f"{option} is empty")


def test_an_output_is_not_where_stdout_goes(tmp_path: Path) -> None:
    """It would replace the answer."""
    out = tmp_path / "out"
    command = f"{sys.executable} -m status_tool run -i {SAMPLE}/master.status --report {out} > {out}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=tool_environment(), check=False)
    assert (done.returncode, out.read_text()) == (2, "")
    assert f"--report {out} is stdout" in done.stderr


def test_a_check_that_ends_with_an_error_is_down_in_its_metrics(tmp_path: Path) -> None:
    """The verdict of the run before would look like today's. The duration is the run's own."""
    metrics, started_s = tmp_path / "f.prom", time.monotonic()
    assert_refused(tool_here("run", "-i", tmp_path / "none", "--metrics", metrics), "none")
    lines = metrics.read_text().splitlines()
    values = {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}
    assert values["status_tool_up"] == 0
    assert values["status_tool_run_duration_seconds"] < started_s
    metrics.unlink()
    for wrong in (("--rows", "--master-conf"), ("--conf-dir",), ("-f",), ("--sign-key",), ("--cacert",)):
        gone = (*wrong, tmp_path / "gone")
        assert_refused(tool_here("run", "-i", SAMPLE / "master.status", *gone, "--metrics", metrics), "gone")
        assert "status_tool_up" in metrics.read_text()
        metrics.unlink()
    assert tool_here("run", "-i", tmp_path / "none", "--explain", "--metrics", metrics).exit_code == 2
    assert not metrics.exists()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("20231114T221320Z", 1_700_000_000_000),
    ],
)
def test_times_are_epoch_milliseconds_or_iso_8601(text: str, moment: int) -> None:
    """Both say the same moment, whatever the zone."""
    assert parse_time(text, "--since") == moment


def test_help_of_run_has_examples_and_exit_codes() -> None:
    """What a first user looks for."""
    text = tool_here("run", "-h").stdout
    assert "status-tool run -m -o master.status" in text
    for code in ("0 ", "1 ", "2 ", "3 ", "130, 143 "):
        assert f"\n  {code}" in text.partition("Exit codes:")[2]


def test_no_command_is_described_by_half_a_sentence() -> None:
    """Each on one line, whole."""
    lines = tool_here("-h").stdout.partition("Commands:\n")[2].splitlines()
    assert len(lines) >= 10
    cut = [line for line in lines if not re.fullmatch(r"  [a-z-]+ +\S.*[a-z]\.", line) or "..." in line]
    assert cut == [], "give each command a short_help of at most 60 letters"


def test_help_of_watch_has_the_options_of_a_check() -> None:
    """And none that it refuses."""
    text = tool_here("watch", "-h").stdout
    for option in ("--every", "-i FILE", "--slave-status", "--table", "--conf-dir", "--report", "--master-conf"):
        assert f"  {option}" in text
    for option in ("-m ", "-o FILE", "--follow", "--resume", "--explain", "--drained"):
        assert f"  {option}" not in text


@pytest.mark.parametrize("command", ["run", "rows", "watch", "prune", "queues", "topology", "setup", "doctor"])
def test_help_shows_no_types_of_python(command: str) -> None:
    """`FILE …` instead of `<list[Path]>`."""
    text = tool_here(command, "-h").stdout
    assert "<list[" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("command", ["run", "watch", "rows", "prune", "topology"])
def test_an_error_points_to_the_right_help(command: str) -> None:
    """That of the command that was given."""
    line = [command, "--max-problems", "x"] if command in ("run", "watch", "rows") else [command, "--nonsense"]
    result = tool_here(*line)
    assert f"(see `status-tool {command} -h`)" in result.stderr


@pytest.mark.parametrize(
    "line",
    ["run --wait", "run --json=3", "setup --jar-to", "watch --every", "publish --table", "shutdown-time record -s"],
)
def test_an_option_without_its_value_points_to_the_right_help(line: str) -> None:
    """That of the program explains none of them."""
    command = line[: line.index(" -")]
    assert_refused(tool_here(*line.split()), "Option", f"(see `status-tool {command} -h`)")


@pytest.mark.parametrize(
    ("told", "command"),
    [
        (
            "cli.path_telling.tell_paths",
            ("paths", "--cluster", f"a={SAMPLE}/master.status", "--cluster", f"b={SAMPLE}/slave.status"),
        ),
        ("cli.recovery_point.tell_point", ("recovery-point", "--thrift", "h:1", "--zookeeper", "h:2/z")),
        ("cli.lost._tell", ("lost", "--thrift", "h:1", "--zookeeper", "h:2/z", "--slave-conf", "slave")),
    ],
)
def test_what_is_accepted_for_good_is_in_every_check(
    told: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what `run -i` calls complete would be unverifiable there, without a way out."""
    (tmp_path / "slave").mkdir()
    (tmp_path / "slave" / "hbase-site.xml").write_text("<configuration/>")
    monkeypatch.chdir(tmp_path)
    scopes = list[Scope]()

    def kept(*given: Any, **_: Any) -> int:
        scopes.extend(one.scope for one in given if hasattr(one, "scope"))
        return 0

    monkeypatch.setattr(f"status_tool.{told}", kept)
    result = tool_here(*command, "--accept-drift", "default:t", "--accept-drift", "ns:u")
    assert result.exit_code == 0, result
    assert [scope.accepted_drift for scope in scopes] == [frozenset({"t", "ns:u"})]
