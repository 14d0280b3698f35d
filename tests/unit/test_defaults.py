"""`status-tool.toml`: which file and profile count, where a value comes from, and that a default refuses nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from status_tool.cli.commands import ConfiguredCommand
from status_tool.cli.defaults import FILE_VARIABLE, KEYS, NAME, default_map, read_defaults
from status_tool.cli.main import app, main
from status_tool.cli.repeated import RoundParameters
from status_tool.cli.run_options import OPTIONS, Mode
from status_tool.cli.watching import Service
from status_tool.errors import EXIT_ERROR
from tests.pair import REPOSITORY, tool_environment
from tests.unit.test_modes import MODES, begun  # noqa: F401  a fixture

EVERYTHING = """
conf-dir = ["conf"]
thrift = "h:1"
webhdfs = ["http://h:1"]
zookeeper = "h:1/z"
cacert = "ca.pem"
cert = "own.pem"
principal = "me"
keytab = "keys"
master-conf = ["conf"]
master-thrift = "h:2"
master-zookeeper = "h:2/z"
peer-conf = ["conf"]
peer = "1"
wait = 3
paths = "paths"
exclude = ["*.tmp"]
map-path = ["/a=/b"]
rate = 0.5
hdfs-client = "webhdfs"
accept-drift = ["t"]
max-problems = 7
metrics = "m.prom"
debug-dir = "dumps"
sign-key = "key"
require-signature = true
file-mode = "640"
gone-for = 3
spark-master = "local[1]"
spark-conf = ["a=b"]
from = "status"
every = 60
listen = 9000
history = "rounds"
webhook = "http://alerts:8080/hook"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; neither a user's nor the machine's file is there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FILE_VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)


def use(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands take their defaults from a file with this text."""
    write(Path("m") / NAME, text)
    monkeypatch.setenv(FILE_VARIABLE, f"m/{NAME}")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """`config --json`, its options by name."""
    assert main([*arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    document["options"] = {one["option"]: (one["value"], one["from"]) for one in document["options"]}
    return document


def test_the_nearest_file_the_profile_and_the_command_line_go_before(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order; a file that is named by the environment goes before all that are found."""
    write(folder / "user" / "status-tool" / NAME, 'thrift = "user:1"')
    assert shown(capsys, "config")["options"] == {"thrift": ("user:1", f"{folder}/user/status-tool/{NAME}")}
    write(folder / NAME, 'thrift = "here:1"\nrate = 5\n[profile.east]\nthrift = "east:1"\n')
    assert shown(capsys, "config")["options"] == {"thrift": ("here:1", NAME), "rate": (5, NAME)}
    found = shown(capsys, "--profile", "east", "config")
    assert found["options"] == {"thrift": ("east:1", f"{NAME} [profile.east]"), "rate": (5, NAME)}
    assert found["endpoints"][1] == {"endpoint": "Thrift", "value": "east:1", "problem": None, "from": "--thrift"}
    assert shown(capsys, "config", "--thrift", "line:1")["options"]["thrift"] == ("line:1", "command line")
    write(folder / "other.toml", 'thrift = "other:1"')
    monkeypatch.setenv(FILE_VARIABLE, "other.toml")
    assert shown(capsys, "config")["options"] == {"thrift": ("other:1", "other.toml")}
    monkeypatch.setenv(FILE_VARIABLE, "off")
    assert shown(capsys, "config") | {"endpoints": []} == {
        **{"file": None, "profile": None, "options": {}, "site_folders": [], "endpoints": []}
    }
    assert main(["config"]) == 0
    assert f"Options file: none ({FILE_VARIABLE}=off)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        ["run", "-i", "FILE"],
        ["watch", "-i", "FILE", "--rounds", "1"],
        ["paths"],
        ["recovery-point"],
        ["lost", "--slave-conf", "."],
    ],
    ids=lambda line: line[0],
)
def test_spark_submit_has_chosen_the_master(
    line: list[str], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option had no effect there, and nobody was told; a file's default refuses nothing."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    refusal = "--spark-master does not go with spark-submit"
    assert main([*line, "--spark-master", "local[1]"]) == EXIT_ERROR
    assert refusal in capsys.readouterr().err
    use('spark-master = "local[1]"', monkeypatch)
    assert main([*line, "--conf-dir", "nowhere"]) == EXIT_ERROR
    assert refusal not in capsys.readouterr().err


def test_site_files_that_are_named_name_the_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file's ZooKeeper and Thrift go before site files: `queues --conf-dir B` said of A that all was drained."""
    site = "<configuration><property><name>hbase.zookeeper.quorum</name><value>b</value></property></configuration>"
    (folder / "hbase-site.xml").write_text(site)
    endpoints = 'thrift = "a:1"\nwebhdfs = ["http://a:1"]\n'
    write(folder / NAME, f'{endpoints}zookeeper = "a:1/z"\n[profile.b]\nconf-dir = ["."]\n')
    for arguments in (["config", "--conf-dir", "."], ["--profile", "b", "config"]):
        found = shown(capsys, *arguments)
        assert found["options"].keys() == {"conf-dir"}
        assert {one["endpoint"]: one["value"] for one in found["endpoints"]}["ZooKeeper"] == "b:2181/hbase"
        assert {one["from"] for one in found["endpoints"]} == {"site files"}
    given = ["config", "--conf-dir", ".", "--thrift", "b:1"]
    assert shown(capsys, *given)["options"].keys() == {"conf-dir", "thrift"}
    assert main(["shutdown-time", "show", "--conf-dir", "."]) == EXIT_ERROR
    assert "no HBase Thrift server known" in capsys.readouterr().err
    write(folder / NAME, endpoints)
    assert shown(capsys, "config", "--conf-dir", ".")["options"].keys() == {"conf-dir", "thrift", "webhdfs"}
    write(folder / NAME, f'{endpoints}conf-dir = ["a"]\n[profile.b]\nconf-dir = ["."]\nthrift = "b:1"\n')
    assert shown(capsys, "config", "--conf-dir", ".")["options"].keys() == {"conf-dir"}
    assert shown(capsys, "--profile", "b", "config")["options"].keys() == {"conf-dir", "thrift"}


def test_every_command_that_takes_site_files_goes_by_those_that_are_named() -> None:
    """And `watch` and `publish` by those of `run`."""
    commands: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]
    every = [*commands.values(), *commands["shutdown-time"].commands.values()]
    taking = [one for one in every if {"conf_dir", "master_conf"} & {parameter.name for parameter in one.params}]
    assert len(taking) == 14
    assert all(isinstance(one, ConfiguredCommand) for one in taking)


def test_the_masters_site_files_that_are_named_name_the_master(
    begun: list[str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows were compared with those of the file's master."""
    use(EVERYTHING, monkeypatch)
    assert main(["run", "-i", "f", "--rows"]) == EXIT_ERROR
    assert main(["run", "-i", "f", "--rows", "--master-conf", "conf"]) == EXIT_ERROR
    assert ["h:2" in call for call in begun] == [True, False]


def test_the_text_names_what_is_not_known(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And where a file was looked for."""
    assert main(["config"]) == 0
    text = capsys.readouterr().out
    assert f"Options file: none (looked for {NAME}, {folder}/user/status-tool/{NAME}, /etc/status-tool/{NAME})" in text
    assert "ZooKeeper: not known: no ZooKeeper known: give --zookeeper" in text


@pytest.mark.parametrize("mode", list(Mode))
def test_a_default_refuses_nothing(
    mode: Mode,
    begun: list[str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every key at once, in every mode; what the mode takes is obeyed."""
    use(EVERYTHING, monkeypatch)
    for half in ([], ["--only", "hbase"], ["--only", "hdfs"]):
        begun.clear()
        assert main(["run", *MODES[mode], *half]) == EXIT_ERROR
        (call,) = begun
        assert ("rate=0.5" in call) == (half != ["--only", "hbase"] and mode in OPTIONS["rate"].modes)
        assert ("'a', 'b'" in call) == (mode in OPTIONS["spark_conf"].modes)
        assert ("h:2" in call) == (mode is Mode.FOLLOW)


@pytest.mark.parametrize("name", ["thrift", "zookeeper"])
def test_half_a_master_of_a_file_refuses_no_rows(
    name: str,
    begun: list[str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is there for --follow, or not enough: FILE's digests count."""
    use(f'master-{name} = "h:2"', monkeypatch)
    assert main(["run", "-i", "f", "--rows"]) == EXIT_ERROR
    assert "RowsAsked(master=None, every=False)" in begun[0]
    begun.clear()
    assert main(["run", "-i", "f", "--rows", f"--master-{name}", "h:2"]) == EXIT_ERROR
    assert not begun


WATCHED = """
from = "arriving"
every = 60
listen = 9000
history = "rounds"
webhook = "http://alerts:8080/hook"
metrics = "m.prom"
"""


def test_a_watch_takes_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With those of `run`; the command line goes before, and `from` refuses nothing where it says what to watch."""
    watched: list[tuple[RoundParameters, Service]] = []

    def noted(what: RoundParameters, service: Service) -> int:
        watched.append((what, service))
        return 0

    monkeypatch.setattr("status_tool.cli.watching.keep_watch", noted)
    write(folder / NAME, WATCHED)
    for arguments in ([], ["-i", "file", "--every", "7"], ["--master-conf", "conf"], ["--from", "there"]):
        assert main(["watch", *arguments]) == 0
    assert [one.folder for one, _ in watched] == [Path("arriving"), None, None, Path("there")]
    assert [service.every_s for _, service in watched] == [60, 7, 60, 60]
    assert {(service.listen, service.history) for _, service in watched} == {(("127.0.0.1", 9000), Path("rounds"))}
    assert {str(one.check["metrics"]) for one, _ in watched} == {"m.prom"}
    assert main(["watch", "--from", "there", "-i", "file"]) == EXIT_ERROR
    write(folder / NAME, "every = 0")
    assert main(["watch", "-i", "file"]) == EXIT_ERROR
    assert len(watched) == 4


def test_every_key_is_an_option_of_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And `EVERYTHING` above has all of them."""
    assert {line.partition(" ")[0] for line in EVERYTHING.split("\n") if line} == set(KEYS)
    write(folder / NAME, EVERYTHING)
    (folder / "conf").mkdir()
    monkeypatch.setattr("status_tool.cli.options.read_trust", lambda *files: files)
    whose: list[object] = []
    monkeypatch.setattr("status_tool.cli.options.use", lambda *given: whose.extend(given))
    assert main(["config"]) == 0
    assert whose == ["me", Path("keys")]


def test_a_key_of_checks_is_none_of_a_command_that_means_another_thing_by_it(folder: Path) -> None:
    """`queues` wrote over the textfile of checks, and looked at one peer; `setup` refused a default."""
    write(folder / NAME, EVERYTHING)
    found = default_map(get_command(app), read_defaults(None))
    given = {"publish": "metrics", "recovery-point": "metrics", "rows": "rate", "setup": "master_zookeeper"}
    assert not any(name in found[command] for command, name in {**given, "queues": "metrics"}.items())
    assert "peer" not in found["queues"]
    assert found["witness"].keys() == {"conf_dir"}, "it served by the client's principal, at the address of a page"
    assert found["run"]["metrics"] == "m.prom"
    assert (found["run"]["peer"], found["lost"]["peer"], found["rows"]["wait"]) == ("1", "1", 3)
    write(folder / NAME, 'master-zookeeper = "h:2/z"')
    assert main(["setup", "--jar-to", str(folder)]) == 0


def test_the_documentation_names_every_key() -> None:
    """In the order of the code."""
    text = " ".join((REPOSITORY / "docs" / "configuration.md").read_text().split())
    listed = text.partition("Keys are the long options:")[2].partition(". The command line")[0]
    assert [key for key in re.findall(r"`([a-z-]+)`", listed) if key != "-f"] == list(KEYS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("since = 5", "'since' is not one of accept-drift"),
        ("thrift = [1", "is not TOML"),
        ("thrift = ['a:1']", "expected one value"),
        ("exclude = [[1]]", "expected a list of values"),
        ("require-signature = 'yes'", "expected true or false"),
        ("rate = true", "expected one value"),
        ("profile = 5", "expected tables [profile.NAME]"),
        ("[profile.east]\nnope = 1", "has east"),
    ],
)
def test_a_wrong_file_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    """That names the file and what is expected."""
    write(folder / NAME, text)
    profile = ["--profile", "west"] if "east" in text else []
    assert main([*profile, "run", "-d"]) == EXIT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert NAME in line
    assert words in line


SAMPLE = REPOSITORY / "sample_status" / "complete"
CHECK = f"run -i {SAMPLE}/master.status"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("rate = 'abc'", CHECK),
        ("wait = -3", CHECK),
        ("hdfs-client = 'x'", CHECK),
        ("conf-dir = ['nowhere']", CHECK),
        ("master-conf = ['nowhere']", f"{CHECK} --rows"),
        ("paths = 'none'", CHECK),
        ("map-path = ['x']", CHECK),
        ("metrics = 'no/m.prom'", CHECK),
        ("debug-dir = '/dev/null/x'", f"{CHECK} -d"),
        ("sign-key = 'none'", CHECK),
        ("require-signature = true", CHECK),
        ("spark-conf = ['x']", CHECK),
        ("file-mode = '999'", "run -m -o f"),
        ("cacert = 'none.pem'", "run -m -o f"),
        ("webhdfs = ['ftp://x']", "run -m -o f --only hdfs"),
        ("thrift = 'h'", "shutdown-time show"),
        ("peer-conf = ['nowhere']", "topology --zookeeper h:1/z"),
        ("gone-for = -1", f"prune {SAMPLE}/master.status"),
        ("rate = 'abc'", "watch -i f"),
        ("every = 0", "watch -i f"),
        ("listen = 'abc'", "watch -i f"),
        ("rate = 'abc'", "publish"),
    ],
)
@pytest.mark.parametrize("profile", ["", "east"])
def test_a_wrong_value_is_told_with_its_file_and_key(
    line: str, command: str, profile: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line named the option, which nobody had typed; of the command line's own values it names no file."""
    write(folder / NAME, f"[profile.{profile}]\n{line}" if profile else line)
    options = ["--profile", profile] if profile else []
    assert main([*options, *command.split()]) == EXIT_ERROR
    (said,) = capsys.readouterr().err.splitlines()
    key = line.partition(" ")[0]
    assert f"({NAME}{' [profile.east]' if profile else ''}: {key})" in said


def test_a_wrong_value_of_the_command_line_is_not_the_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / NAME, "rate = 5\nfile-mode = '640'\npaths = 'none'\n")
    for wrong in (["--rate", "x"], ["--file-mode", "999"], ["-f", "other"]):
        assert main(["run", "-m", "-o", "f", *wrong]) == EXIT_ERROR
        said = capsys.readouterr().err
        assert wrong[0] in said
        assert NAME not in said


def test_a_round_of_a_watch_tells_the_key_of_a_wrong_value(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / NAME, "from = 'none'")
    assert main(["watch", "--rounds", "1"]) == EXIT_ERROR
    assert f"cannot read --from none: No such file or directory ({NAME}: from); took" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("conf-dir = ['none']", "--conf-dir none: no such folder"),
        ("conf-dir = 5", "conf-dir is 5, expected text or a list of it"),
        ("thrift = 5", "thrift is 5, expected text"),
        ("thrift = 'h'\nzookeeper = 'h:1/z'", "thrift 'h': expected HOST:PORT"),
        ("zookeeper = 'h:x/z'", "--zookeeper"),
        ("webhdfs = ['ftp://x']", "--webhdfs 'ftp://x': expected http"),
        ("thrift = 'h:1'", "names no ZooKeeper"),
    ],
)
def test_a_wrong_cluster_of_a_graph_is_told_with_its_file(
    table: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / NAME, f"[clusters.sun]\n{table}\n[clusters.moon]\nzookeeper = 'h:1/z'\n")
    assert main(["paths"]) == EXIT_ERROR
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"status-tool: {NAME} [clusters.sun]: ")
    assert words in said


def test_a_pipe_is_no_file_of_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run waited for whoever would write to it."""
    os.mkfifo(folder / NAME, 0o600)
    for name in (None, str(folder / NAME)):
        if name is not None:
            monkeypatch.setenv(FILE_VARIABLE, name)
        command = [sys.executable, "-m", "status_tool", "config"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, env=tool_environment())
        assert (done.returncode, done.stdout) == (2, "")
        where = name or NAME
        words = f"cannot read {where}: it is not a regular file; {FILE_VARIABLE} names another, or off"
        assert done.stderr == f"status-tool: {words}\n"


def test_a_file_that_others_may_write_to_does_not_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It could choose what is run. Nor does one that is not there, or a folder."""
    write(folder / NAME, "rate = 5")
    (folder / NAME).chmod(0o664)
    assert main(["queues"]) == EXIT_ERROR
    assert "chmod go-w" in capsys.readouterr().err
    (folder / NAME).unlink()
    assert main(["--profile", "x", "queues"]) == EXIT_ERROR
    assert f"there is no {NAME}" in capsys.readouterr().err
    (folder / NAME).mkdir(mode=0o700)
    assert main(["queues"]) == EXIT_ERROR
    assert f"cannot read {NAME}" in capsys.readouterr().err


def test_a_file_that_is_named_has_to_be_there(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a misspelt name would be no settings at all."""
    monkeypatch.setenv(FILE_VARIABLE, "absent.toml")
    assert main(["queues"]) == EXIT_ERROR
    assert "names absent.toml: no such file" in capsys.readouterr().err
