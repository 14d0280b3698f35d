"""Every option of `run` in every mode: it reaches the run, or it is refused in one line that names both."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from status_tool.cli.main import main
from status_tool.cli.modes import refusal
from status_tool.cli.reference import options_markdown
from status_tool.cli.run import run
from status_tool.cli.run_options import OPTIONS, Mode
from status_tool.errors import EXIT_ERROR, StatusToolError, UsageError
from status_tool.runs.check import Check, GivenOption
from status_tool.runs.refusals import header_in_scope, known_header, side_in_scope
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.selection import (
    ChoosingFiles,
    ChosenFiles,
    Exclusions,
    PathMap,
    depth_of,
)
from tests.pair import REPOSITORY
from tests.unit.test_answer import holds

MODES = {
    Mode.MASTER: ["-m", "-o", "out.status"],
    Mode.SLAVE: ["-o", "out.status"],
    Mode.LIVE: ["-i", "in.status"],
    Mode.OFFLINE: ["-i", "in.status", "--slave-status", "slave.status"],
    Mode.FOLLOW: ["-i", "in.status", "--follow", "--master-zookeeper", "h:1/z"],
    Mode.DUMP: ["-d"],
}
FLAGS = (
    *("debug", "require_signature", "as_json", "explain", "resume", "strict_extra", "ignore_later_writes", "drained"),
    *("all_files", "quiet", "verbose", "deep", "rows"),
)
VALUES = {
    **{"sign_key": "key", "cacert": "authorities.pem", "cert": "own.pem", "principal": "me", "keytab": "keys"},
    **{"mode": "640", "sample": "off", "only": "hbase", "debug_dir": "dumps", "paths": "paths", "report": "r.html"},
    **{"metrics": "m.prom", "shutdown": "1700000000000", "since": "1700000000000", "wait": "7", "rate": "3"},
    **{"hdfs_client": "native", "max_problems": "5", "map_path": "/a=/b", "layout": "1024", "spark_conf": "k=v"},
    **{"webhdfs": "http://h:1", "thrift": "h:1", "master_thrift": "h:1", "conf_dir": "conf", "master_conf": "conf"},
    **{"zookeeper": "h:1/z", "master_zookeeper": "h:2/z"},
}
"""What options with a value are given; others `x`."""
COMPANIONS = {"debug_dir": ["-d"], "mode": ["-d"], "require_signature": ["--sign-key", "key"]}
WITH_ROWS = ["--rows", "--master-conf", "conf"]


class _Reached(StatusToolError):
    """The run was about to begin."""


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the runs were called with; none of them begins. The folder has what the options name."""
    calls: list[str] = []

    modes: list[int | None] = []
    shown: list[dict[str, Any]] = []
    tickets: list[tuple[Any, ...]] = []

    def note(name: str) -> Any:
        def noted(*arguments: Any, **named: Any) -> int:
            arguments += (*named.items(),)
            trusted = [getattr(one, "trust", "") for one in arguments]
            calls.append(f"{name}{arguments!r}{modes[-1:]}{shown[-1:]}{trusted}{tickets[-1:]}")
            raise _Reached("here")

        return noted

    for name in ("write_file", "dump", "check_file", "follow_master", "show_plan"):
        monkeypatch.setattr(f"status_tool.cli.running.{name}", note(name))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "hdfs-site.xml").write_text(
        "<configuration><property><name>a</name><value>b</value></property></configuration>"
    )
    (tmp_path / "paths").write_text("/data\n")
    (tmp_path / "key").write_bytes(bytes(range(64)))
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setattr("status_tool.cli.options.read_trust", lambda *files: files)
    monkeypatch.setattr("status_tool.cli.options.use", lambda *whose: tickets.append(whose))
    monkeypatch.setattr("status_tool.cli.run.file_mode", lambda one: modes.append(one))
    monkeypatch.setattr("status_tool.cli.run.show_as", lambda **wanted: shown.append(wanted))
    monkeypatch.setattr("status_tool.clients.config.SiteConfig.__repr__", lambda one: repr(one._values), raising=False)
    return calls


def arguments(name: str) -> list[str]:
    return [OPTIONS[name].flag, *([] if name in FLAGS else [VALUES.get(name, "x")])]


def message(begun: list[str], mode: Mode, more: list[str]) -> str:
    """What a run in this mode is called with."""
    begun.clear()
    assert main(["run", *MODES[mode], *more]) == EXIT_ERROR
    (call,) = begun
    return call


def test_every_option_is_in_the_table() -> None:
    """A new one has to say where it is obeyed."""
    letters = {"master", "output", "status_file", "published", "slave_status", "follow"}  # these choose the mode
    assert {*OPTIONS} | letters == set(inspect.signature(run).parameters)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("name", list(OPTIONS))
def test_obeyed_or_refused(name: str, mode: Mode, begun: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """By what the run is called with, with and without the option."""
    if (mode, name) in ((Mode.DUMP, "debug"), (Mode.FOLLOW, "master_zookeeper")):
        return  # the mode itself
    companions = COMPANIONS.get(name, []) if mode is not Mode.DUMP else []
    companions = ["--drained"] if (mode, name) == (Mode.MASTER, "peer") else companions
    if mode is Mode.LIVE and name.startswith("master_"):
        companions = WITH_ROWS
    if (mode, name) == (Mode.LIVE, "rows"):
        with_it = message(begun, mode, WITH_ROWS)
        assert "RowsAsked(master=Settings" in with_it
        assert "every=False" in with_it
        assert "RowsAsked(master=None" in message(begun, mode, ["--rows"])
        assert "every=True" in message(begun, mode, ["--rows=all", *WITH_ROWS[1:]])
        return
    words = {"-d": "debug", "--drained": "drained", "--sign-key": "sign_key", "--rows": "rows"}
    given = frozenset({name, *(words[one] for one in companions if one in words)})
    if refusal(name, mode, given, None) is None:
        with_it, without = (message(begun, mode, [*companions, *more]) for more in (arguments(name), []))
        # With --slave-status a folder is only read; a signature is demanded by the key already.
        if (mode, name) != (Mode.OFFLINE, "conf_dir") and name != "require_signature":
            assert _but_names(with_it) != _but_names(without)
        return
    assert main(["run", *MODES[mode], *companions, *arguments(name)]) == EXIT_ERROR
    assert begun == []
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert OPTIONS[name].flag in line
    assert str(mode) in line


def _but_names(call: str) -> str:
    """Without the list of the options that were given: that an option is noted is not that it is obeyed."""
    before, _, rest = call.partition("given=frozenset(")
    return before + rest.partition(")")[2]


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.half is not None])
def test_refused_without_its_half(name: str, begun: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In every mode that takes it."""
    half = "hdfs" if OPTIONS[name].half == "hbase" else "hbase"
    for mode in OPTIONS[name].modes:
        companions = ["--drained"] if (mode, name) == (Mode.MASTER, "peer") else []
        assert main(["run", *MODES[mode], *companions, *arguments(name), "--only", half]) == EXIT_ERROR
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert f"--only {half}" in line
        assert OPTIONS[name].flag in line or companions
    assert begun == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["-i", "f", "--debug-dir", "x"], ["--debug-dir", "-d"]),
        (["-m", "-o", "f", "--peer", "1"], ["--peer", "--drained"]),
        (["-m", "-o", "f", "--only", "hdfs", "--wait", "3"], ["--wait", "--only hdfs"]),
        (["-m", "-o", "f.json", "--deep"], ["--deep", "FILE.json"]),
        (["-o", "f.json", "--only", "hdfs"], ["-o FILE.json", "needs -m"]),
        (["-i", "f", "--slave-status", "g", "--follow", "--master-zookeeper", "h:1/z"], ["--follow", "--slave-status"]),
    ],
)
def test_pairs_of_options(
    more: list[str], words: list[str], begun: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What would be ignored beside, or without, another one."""
    assert main(["run", *more]) == EXIT_ERROR
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert all(word in line for word in words), line
    assert begun == []


def test_the_document_is_the_table() -> None:
    """docs/options.md is printed from the code."""
    assert (REPOSITORY / "docs" / "options.md").read_text() == options_markdown()


# -- what only FILE shows ------------------------------------------------------------------------------------


def file_with(folder: Path, half: str = "both", **columns: Any) -> str:
    """A master's status with one file."""
    path = folder / "f.status"
    header = Header("master", "m", 5, 5, half=half, hdfs_paths=("/",))
    row = {"kind": "file", "path": "/a", "length": 3, "algorithm": "MD5", "checksum": "ab", **columns}
    with StatusWriter(path, header) as writer:
        writer.write(pa.RecordBatch.from_pylist([row], schema=STATUS_SCHEMA))
    return str(path)


def refused(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["run", *more]) == EXIT_ERROR
    return capsys.readouterr().err


def test_deep_without_recorded_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing could be held against the slave's content; empty files need nothing, unreadable ones have nothing."""
    for deep in ("--deep", "--deep=all"):
        line = refused(
            capsys, "-i", file_with(tmp_path), deep, "--zookeeper", "127.0.0.1:1/z", "--webhdfs", "http://127.0.0.1:1"
        )
        assert "`run -m -o FILE --deep`" in line
    for columns in ({"crc32c": "00000001"}, {"length": 0}, {"state": "unreadable"}):
        with open_status(file_with(tmp_path, "hdfs", **columns)) as file:
            assert side_in_scope(file, Check(Path("f"), Scope(check_hbase=False), deep=True)).header == file.header


def test_a_path_of_f_that_file_found_empty_is_known(tmp_path: Path) -> None:
    asked = Check(Path("f"), Scope(), hdfs_paths=("/empty", "/gone", "/other"))
    header = replace(Header("master", "m", 2, 1), hdfs_paths=("/empty", "/gone"), hdfs_absent=("/gone",))
    with StatusWriter(tmp_path / "f", header):
        pass
    with open_status(tmp_path / "f") as file:
        assert known_header(file, asked).hdfs_absent == ("/gone", "/other")


@pytest.mark.parametrize(
    ("path", "columns", "known"),
    [
        ("/a", {}, True),
        ("/?", {}, True),
        ("/", {"path": None}, True),
        ("/a/b", {}, False),
        ("/ab", {}, False),
        ("/a", {"path": "/ab"}, False),
        ("/a", {"path": "/a/b"}, True),
        ("/[!a]/*", {"path": "/a/b"}, False),
        ("/a/b", {"length": None, "state": "unreadable"}, True),
        ("/a/b", {"length": 1, "state": "unreadable"}, False),
    ],
)
def test_a_path_of_f_of_which_file_has_nothing(tmp_path: Path, path: str, columns: Row, known: bool) -> None:
    """It is absent, as it may be a wrong name; a folder above it that could not be listed tells more."""
    for half, checks_hdfs in (("hdfs", True), ("both", True), ("both", False)):
        check = Check(Path("f"), Scope(check_hdfs=checks_hdfs), hdfs_paths=(path,))
        with open_status(file_with(tmp_path, half, **columns)) as file:
            assert known_header(file, check).hdfs_absent == (() if known or not checks_hdfs else (path,))


@pytest.mark.parametrize(
    ("roots", "is_used"),
    [
        *((root, True) for root in ("/data/a", "/other /data", "/", "/data/a/b", "/data/?", "/*/a/c", "")),
        *((root, False) for root in ("/database", "/data/b", "/data/??")),
    ],
)
def test_a_tree_of_map_path_of_which_file_checks_nothing(roots: str, is_used: bool) -> None:
    """By a wrong name the tree that was meant was compared with the slave's own of its path, and complete by that."""
    header = Header("master", "m", 5, 5, half="hdfs", hdfs_paths=tuple(roots.split()))
    moved = Check(Path("f"), Scope(check_hbase=False, path_map=PathMap.parse(["/data/a=/copy"])))
    assert header_in_scope(header, moved) == header, "not by an option of this run"
    given = replace(moved, given=(GivenOption("--map-path", "hdfs", needs_streams=False),))
    words = r"--map-path /data/a=…: FILE checks nothing there, but"
    with nullcontext() if is_used else pytest.raises(UsageError, match=words):
        assert header_in_scope(header, given) == header


@pytest.mark.parametrize(
    ("roots", "asked", "trees", "is_refused"),
    [
        ("/data/a /data/b", "", "/data/a=/data", True),
        ("/data/a /data/b*", "", "/data/a=/data", False),
        ("/b", "", "/b/x=/b", True),
        ("/", "/data/a /data/b", "/data/a=/data", True),
        ("/", "/data/a", "/data/a=/data", False),
        ("/a /b", "", "/a=/b /b=/a", False),
        ("/a /b", "", "/a=/x /b=/x/b", False),
        ("/data", "", "/data/x=/data/y", False),
        ("/data /copy", "", "/data=/copy/data", False),
        ("/a /b", "", "/a=file:///b", True),
    ],
)
def test_two_trees_of_the_master_in_one_place_of_the_slave(
    roots: str, asked: str, trees: str, is_refused: bool
) -> None:
    """The files there were those of one: the other's were missing although they were there, whatever was copied."""
    header = Header("master", "m", 5, 5, half="hdfs", hdfs_paths=tuple(roots.split()))
    given = (GivenOption("--map-path", "hdfs", needs_streams=False),)
    scope = Scope(check_hbase=False, path_map=PathMap.parse(trees.split()))
    check = Check(Path("f"), scope, hdfs_paths=tuple(asked.split()), given=given)
    with pytest.raises(UsageError, match="check them in two runs") if is_refused else nullcontext():
        assert header_in_scope(header, check) == header


def test_a_file_without_the_half(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Options about HBase with a FILE of HDFS alone."""
    for option in (["--table", "t"], ["--since", "1700000000000"], ["--ignore-later-writes"]):
        assert "holds only the HDFS half" in refused(capsys, "-i", file_with(tmp_path, "hdfs"), *option)


def test_a_file_of_the_original(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names neither tables nor streams."""
    legacy = tmp_path / "f.json"
    legacy.write_text('{"shutdownTime": 0, "hdfsState": {}, "hBaseState": {"r": 5}}')
    options = ("--table t", "--namespace n", "--peer 1", "--since 1700000000000", "--accept-drift t", "--deep")
    for option in (*options, "--rows --master-conf ."):
        assert "FILE of the original tool" in refused(capsys, "-i", str(legacy), *option.split())


def test_s_later_than_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FILE knows nothing of what was written then."""
    assert "lies after FILE was written" in refused(capsys, "-i", file_with(tmp_path), "-s", "1700000000000")


@pytest.mark.parametrize(("half", "moment_ms"), [("both", 10), ("hdfs", 20)])
def test_s_later_than_the_barrier_of_file(half: str, moment_ms: int) -> None:
    """FILE's streams end at its barrier, however long the rest took. Its files are those of its end."""
    header = Header("master", "m", 20, 10, barrier_issued_ms=10, half=half)
    check = Check(Path("f"), Scope(check_hbase=half == "both"))
    assert header_in_scope(header, replace(check, shutdown_ms=moment_ms)).cut_ms == moment_ms
    with pytest.raises(UsageError, match="lies after FILE was written"):
        header_in_scope(header, replace(check, shutdown_ms=moment_ms + 1))


GLOBS = ["tmp", "*.log", "/data/*/x", "/data/t?p", "a[bc]", "/d[!x]ta/tmp", "/d[^x]ta/tmp", "[^a]*", "b.d", "/a/b*"]


@pytest.mark.parametrize("glob", GLOBS)
@pytest.mark.parametrize("root", ["/", "/data", "/data/tmp", "/data/a", "/data/*", "/d[!x]ta/tmp", "/*/tmp/a"])
def test_a_root_inside_what_is_left_out(root: str, glob: str) -> None:
    """The same as its listing leaves out: only what lies below it, or is a glob's match."""
    exclusions = Exclusions((), ()).also([glob])
    choosing = ChoosingFiles(ChosenFiles(roots=(root,), left_out=(glob,)))
    names = ["/data/tmp", "/data/tmp/a/b", "/data/tmp/a/tmp/b", "/data/tmp/x.log/y", "/data/a", "/data/a/bc", "/x.log"]
    names += ["/x.log/y", "/x.log/y.log", "/data/q/x", "/data/q/r/x", "/dyta/tmp/1", "/dyta/tmp/tmp", "/a/tmp/a/x"]
    names += ["/data/tap", "/data/tap/tap", "/data/b.d\n", "/data/b.d/b.d", "/data/tmp/a\n", "/data/tmp/tmp\n/tmp"]
    for path in (name for name in names if holds(root, name)):
        hidden = exclusions.hide(path, depth_of(root)) or exclusions.hide_match(path, root)
        assert (choosing.path_of(path) is None) is hidden, path
