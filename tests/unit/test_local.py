"""Folders on a local disk, compared with each other by the whole tool."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from status_tool.cli.main import main
from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import SiteConfig
from status_tool.errors import ConfigurationError, ConnectionFailed, UsageError
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import Request, Snapshot, snapshot
from status_tool.rules.files import judge_file
from status_tool.runs import slave_side
from status_tool.runs.check import Check
from status_tool.runs.master_side import MasterSide
from status_tool.runs.plan import explain_check
from status_tool.runs.slave_side import Scratch, slave_request
from status_tool.sources.crc import Layout, hdfs_checksum
from status_tool.sources.local import LocalSource
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.selection import Exclusions, PathMap
from tests.pair import Result, tool_here
from tests.unit.test_answer import holds


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("warm_spark")
def test_an_export_and_its_copy(tmp_path: Path) -> None:
    """Same content matches under another name; another byte, another layout, a link, an empty folder are reported."""
    for side in ("export", "copy"):
        (tmp_path / side / "sub" / "hollow").mkdir(parents=True)
        for size in (0, 511, 3000):
            (tmp_path / side / "sub" / f"file {size}").write_bytes(b"x" * size)
        (tmp_path / side / "left.tmp").write_bytes(os.urandom(10))
        (tmp_path / side / "link").symlink_to(tmp_path)
    paths, status = tmp_path / "paths", tmp_path / "status"
    paths.write_text(f"file://{tmp_path}/export\n")
    common = ("--only", "hdfs", "--exclude", "*.tmp", "--layout")
    written = tool_here("run", "-m", "-o", status, "-f", paths, "--deep", *common, "1024")
    assert written.exit_code == 0, written

    def check(layout: str, *options: str) -> Result:
        moved = f"{tmp_path}/export=file://{tmp_path}/copy"
        return tool_here("run", "-i", status, "--json", "--map-path", moved, *common, layout, *options)

    result = check("1024")
    assert result.exit_code == 0, result
    assert result.json["hdfs"]["files"]["match"] == 3
    notices = " ".join(result.json["notices"])
    assert "1 empty folder on the slave" in notices
    assert "1 symbolic link on the master" in notices
    result = check("2048")
    assert (result.exit_code, result.json["hdfs"]["files"]["incomparable"]) == (3, 1), result
    for deep in ("--deep", "--deep=all"):
        assert check("2048", deep).exit_code == 0
    (tmp_path / "copy" / "sub" / "file 511").write_bytes(b"x" * 510 + b"y")
    result = check("1024")
    assert result.exit_code == 1
    (problem,) = result.json["problems"]
    assert "distcp" not in problem["advice"], "DistCp runs on other hosts"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("warm_spark")
def test_what_f_names_is_checked_whatever_its_name(tmp_path: Path) -> None:
    """Names with line ends are not on the copy; nothing is known of what FILE left out; FILE2 may hold more."""
    for side in ("export", "copy"):
        (tmp_path / side / "sub").mkdir(parents=True)
        (tmp_path / side / "sub" / "plain").write_bytes(b"x")
    names = ("new\nline", "paragraph\u2029 ")
    for name in names:
        (tmp_path / "export" / "sub" / name).write_bytes(b"x")
    (tmp_path / "export" / "sub" / ".staging").mkdir()
    (tmp_path / "export" / "sub" / ".staging" / "kept").write_bytes(b"x")
    paths, status, common = tmp_path / "paths", tmp_path / "status", ("--only", "hdfs")
    paths.write_text(f"file://{tmp_path}/export\n")
    written = tool_here("run", "-m", "-o", status, "-f", paths, *common)
    assert written.exit_code == 0, written

    def check(*named: str, options: tuple[str | Path, ...] = ()) -> Result:
        paths.write_text("".join(f"{tmp_path}/export/{name}\n" for name in named))
        moved = f"{tmp_path}/export=file://{tmp_path}/copy"
        return tool_here("run", "-i", status, "-f", paths, "--json", "--map-path", moved, *common, *options)

    result = check("sub")
    assert (result.exit_code, result.json["hdfs"]["files"]["missing"]) == (1, 2), result
    for name in names:
        (tmp_path / "copy" / "sub" / name).write_bytes(b"x")
    assert check("sub").exit_code == 0
    assert check("sub", "sub/.staging/kept").exit_code == 3
    (tmp_path / "copy" / "beside").write_bytes(b"x")
    paths.write_text(f"file://{tmp_path}/copy\n")
    assert tool_here("run", "-o", tmp_path / "status2", "-f", paths, *common).exit_code == 0
    result = check("sub", options=("--slave-status", tmp_path / "status2", "--strict-extra"))
    assert (result.exit_code, result.json["hdfs"]["files"]["extra"]) == (0, 0), result


def source(folder: Path, *roots: str, **options: Any) -> LocalSource:
    return LocalSource(tuple(f"{folder}/{root}".rstrip("/") for root in roots), Exclusions(), **options)


def rows(source: LocalSource) -> Iterator[dict[str, Any]]:
    """The rows of its files."""
    for batch in read_all(source):
        yield from (row for row in batch.to_pylist() if row["kind"] == "file")


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with two versions, and links to one of them, to nothing, and to a file."""
    for version in ("v1", "v2"):
        (tmp_path / version / "sub").mkdir(parents=True)
        (tmp_path / version / "sub" / "f").write_bytes(b"x")
    (tmp_path / "current").symlink_to("v1")
    (tmp_path / "broken").symlink_to("v3")
    (tmp_path / "file").symlink_to("v1/sub/f")
    return tmp_path


@pytest.mark.parametrize(
    ("roots", "listed"),
    [
        (("current",), {"current/sub/f"}),
        (("file",), {"file"}),
        (("", "current/sub"), {"v1/sub/f", "v2/sub/f", "current/sub/f"}),
        (("", "current"), {"v1/sub/f", "v2/sub/f", "current/sub/f"}),
        (("current", "current/sub"), {"current/sub/f"}),
        (("*",), {"v1/sub/f", "v2/sub/f"}),
        (("*", "current"), {"v1/sub/f", "v2/sub/f", "current/sub/f"}),
        (("*", "current/sub"), {"v1/sub/f", "v2/sub/f", "current/sub/f"}),
    ],
)
def test_a_root_that_is_a_link_is_followed(linked: Path, roots: tuple[str, ...], listed: set[str]) -> None:
    """It is named. Links that a listing or a glob comes upon are not followed, and do not hide a root behind them."""
    found = [row["path"] for row in rows(source(linked, *roots))]
    assert sorted(found) == sorted(f"{linked}/{path}" for path in listed)


def test_a_glob_that_matches_links_alone_is_absent(linked: Path) -> None:
    """Nothing of it is checked."""
    asked = source(linked, "c*", "v*", "none", "current")
    assert asked.absent() == [f"{linked}/c*", f"{linked}/none"]


@pytest.mark.parametrize("root", ["*/sub", "*/*/f", "*/s*"])
def test_a_folder_that_hides_matches_of_a_glob_has_a_row(
    linked: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    """It may be entered or listed, not both."""
    allowed = {name: getattr(os, name) for name in ("listdir", "lstat")}

    def refuse(name: str) -> None:
        def refusing(path: str | Path) -> Any:
            if str(path).removeprefix(f"{linked}/").startswith("v2" if name == "listdir" else "v2/"):
                raise PermissionError(13, "Permission denied", path)
            return allowed[name](path)

        monkeypatch.setattr(os, name, refusing)

    refuse("listdir")
    found = {row["path"].removeprefix(f"{linked}/"): row["state"] for row in rows(source(linked, root))}
    assert found["v1/sub/f"] is None
    assert [path.partition("/")[0] for path, state in found.items() if state] == ["v2"]
    assert not source(linked, "v2/s*").absent()
    refuse("lstat")
    monkeypatch.setattr(os, "listdir", allowed["listdir"])
    assert {part.path for part in source(linked, "*/sub").partitions()} >= {f"{linked}/v1/sub", f"{linked}/v2/sub"}


def test_a_link_that_hides_matches_of_a_glob_has_a_row(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A glob follows it, as it is no match itself. One that leads nowhere hides none."""
    (linked / "loop").symlink_to("loop")
    allowed, link = os.listdir, f"{linked}/current"

    def listdir(path: str) -> list[str]:
        if path == link:
            raise PermissionError(13, "Permission denied", path)
        return allowed(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert [row["path"] for row in rows(source(linked, "*/s*")) if row["state"]] == [link]
    assert not source(linked, "current/s*").absent()


def test_what_cannot_be_read_has_a_row(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in another encoding, files that go while they are listed, folders that may be listed but not entered."""
    (linked / "v2" / "entered").mkdir()
    (linked / "v2" / "entered" / "f").write_bytes(b"x")
    for name in (b"v2/gr\xfcn", b"v2/\xff"):
        os.mkdir(os.path.join(os.fsencode(linked), name))
        Path(os.fsdecode(os.path.join(os.fsencode(linked), name, b"f"))).write_bytes(b"x")
    monkeypatch.setattr(os, "listdir", lambda path, listed=os.listdir: [*listed(path), "gone"])

    def refuse(path: str, look: Any = os.lstat) -> os.stat_result:
        if path.endswith("entered/f"):
            raise PermissionError(13, "Permission denied", path)
        found: os.stat_result = look(path)
        return found

    monkeypatch.setattr(os, "lstat", refuse)
    found = {row["path"].removeprefix(f"{linked}/"): row for row in rows(source(linked, "v2", "broken"))}
    gone = "deleted or renamed while the tree was listed"
    assert {path: row["detail"] for path, row in found.items()} == {
        "broken": "a link to nothing",
        "v2/entered/f": "Permission denied",
        "v2/entered/gone": gone,
        "v2/gone": gone,
        "v2/gr\\xfcn": "its name is not UTF-8",
        "v2/sub/f": None,
        "v2/sub/gone": gone,
        "v2/\\xff": "its name is not UTF-8",
    }
    assert {path for path, row in found.items() if row["state"] == "unreadable" and row["length"] is None} == {
        *found
    } - {"v2/sub/f"}


@pytest.mark.parametrize("root", ["v2", "v2/s*"])
def test_a_folder_of_the_slave_that_cannot_be_listed_ends_the_run(
    linked: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    """As in HDFS: what it holds was missing, which it need not be."""

    def refuse(path: str, listed: Any = os.listdir) -> Any:
        if path == f"{linked}/v2":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    asked = Request("slave", 0, hbase=False, hdfs_paths=(f"file:{linked}/{root}",))
    (disk,) = snapshot(Settings(SiteConfig({})), asked, lambda _: None).sources
    with pytest.raises(ConfigurationError, match=r"/v2 cannot be listed \(Permission denied\)"):
        list(read_all(disk))


@pytest.mark.parametrize(("side", "named"), [("master", {"v1", "v2"}), ("slave", set())])
def test_a_root_that_goes_before_it_is_listed_is_told(linked: Path, side: str, named: set[str]) -> None:
    """A match of a glob, too. On a slave the master's files below it are missing."""
    roots = ("v1", "v?", "v2", "*n*")
    asked = Request(side, 0, hbase=False, hdfs_paths=tuple(f"file:{linked}/{root}" for root in roots))
    (disk,) = snapshot(Settings(SiteConfig({})), asked, lambda _: None).sources
    assert isinstance(disk, LocalSource)
    (linked / "current").unlink()
    for version in ("v1", "v2"):
        (linked / version).rename(linked / f"of-{version}")
    found = {row["path"].removeprefix(f"{linked}/"): row["detail"] for row in rows(disk)}
    assert found == dict.fromkeys(named, "deleted or renamed while the tree was listed")


def test_a_file_that_changes_while_it_is_read_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksum may be of one content, its CRC of another."""
    file = tmp_path / "f"
    file.write_bytes(b"12")

    def grow(read: BinaryIO, layout: Layout) -> tuple[str, str, int]:
        file.write_bytes(b"123")
        return hdfs_checksum(read, layout)

    monkeypatch.setattr("status_tool.sources.crc.hdfs_checksum", grow)
    (row,) = rows(source(tmp_path, "f"))
    assert (row["state"], row["detail"]) == ("open", "changed while it was read")
    file.write_bytes(b"123")
    monkeypatch.undo()
    (row,) = rows(source(tmp_path, "f"))
    assert row["state"] is None


@pytest.mark.parametrize("deep", [False, True])
def test_deep_reads_every_file_of_a_local_slave(tmp_path: Path, deep: bool) -> None:
    """There is no second look at those that checksums cannot settle: they are read for their checksum anyway."""
    (tmp_path / "f").write_bytes(b"x")
    file: Any = None
    master = MasterSide(file, Header("master", "m", 2, 1, half="hdfs", hdfs_paths=("/f",)))
    scope = Scope(check_hbase=False, path_map=PathMap.parse([f"/f=file://{tmp_path}/f"]))
    check = Check(Path("f"), scope, deep=deep)
    gathered = snapshot(Settings(SiteConfig({})), slave_request(master, check), lambda _: None)
    (row,) = (row for one in gathered.sources if isinstance(one, LocalSource) for row in rows(one))
    assert (row["crc32c"] is not None) is deep


@pytest.mark.parametrize(
    ("most", "roots"),
    [
        # A pattern's folder; else each file.
        (9, {"/a", "/b/plain", "/b/x/1", "/b[[]1]/c", "/d/e/f", "/top[?]", "/tmp/left", "/d/.Trash/f"}),
        # Folders of more files; but / is all of HDFS, and a listing leaves out what is temporary.
        (8, {"/a", "/b", "/b[[]1]/c", "/d/e", "/top[?]", "/tmp/left", "/d/.Trash/f"}),
        (6, {"/a", "/b", "/b[[]1]", "/d", "/top[?]", "/tmp/left", "/d/.Trash/f"}),
    ],
)
def test_the_slaves_roots_for_a_file_of_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, roots: set[str]
) -> None:
    """It names none: the slave listed its own paths for many files, and took names for patterns."""
    monkeypatch.setattr(slave_side, "LEGACY_ROOTS", most)
    paths = ["/a/x*", "/a/b/[1].csv", "/b/plain", "/b/x/1", "/b[1]/c/?", "/d/e/f", "/top?", "/tmp/left", "/d/.Trash/f"]
    file = tmp_path / "f.json"
    file.write_text(json.dumps({"shutdownTime": 5, "hdfsState": dict.fromkeys(paths, "MD5:00ff"), "hBaseState": {}}))
    with open_status(file) as status:
        asked = slave_request(MasterSide(status, status.header), Check(file, Scope(check_hbase=False)))
    assert set(asked.hdfs_paths) == roots
    assert all(any(holds(root, path) for root in asked.hdfs_paths) for path in paths)


@pytest.mark.parametrize(("path", "left_out"), [("/d", {"/d/.Trash/f"}), ("/*", {"/tmp/left", "/d/.Trash/f"})])
def test_a_narrower_check_asks_for_what_a_listing_leaves_out_of_the_originals_files(
    tmp_path: Path, path: str, left_out: set[str]
) -> None:
    """It names no roots, and has what is temporary: with `-f` all of that was missing on a slave that has it."""
    file = tmp_path / "f.json"
    files = dict.fromkeys(["/tmp/left", "/d/.Trash/f", "/d/x"], "MD5:00ff")
    file.write_text(json.dumps({"shutdownTime": 5, "hdfsState": files}))
    with open_status(file) as status:
        check = Check(file, Scope(check_hbase=False), hdfs_paths=(path,))
        asked = slave_request(MasterSide(status, status.header), check)
    assert asked.hdfs_paths[0] == path
    assert left_out <= set(asked.hdfs_paths)


def test_the_path_of_hbases_root_is_an_ordinary_one_on_a_disk(tmp_path: Path) -> None:
    """HBase's root is in HDFS: nobody would ask for what lies under the same path here."""
    (tmp_path / "hbase").mkdir()
    (tmp_path / "hbase" / "f").write_bytes(b"x")
    settings = Settings(SiteConfig({"hbase.rootdir": f"hdfs://nn{tmp_path}/hbase"}))
    gathered = snapshot(settings, Request("master", 0, hbase=False, hdfs_paths=(f"file:{tmp_path}",)), lambda _: None)
    (disk,) = gathered.sources
    assert isinstance(disk, LocalSource)
    assert [row["path"] for row in rows(disk)] == [f"{tmp_path}/hbase/f"]
    assert gathered.header.hdfs_left_out == ("/tmp",)


def test_files_are_read_without_zookeeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HBase, and with it ZooKeeper, may be down on the side whose files are asked for."""

    def down(_: object) -> None:
        raise ConnectionFailed("cannot reach ZooKeeper at zk:1")

    monkeypatch.setattr("status_tool.gather.snapshot.ZooKeeper", down)
    settings = Settings(SiteConfig({}), zookeeper_option="zk:1/hbase")
    request = Request("master", 0, hbase=False, hdfs_paths=(f"file:{tmp_path}",))
    header = snapshot(settings, request, lambda _: None).header
    assert (header.cluster_id, header.cluster_key) == ("", f"file:{tmp_path}")
    assert header.notices[0] == "HBase's cluster id is not known: cannot reach ZooKeeper at zk:1"
    with pytest.raises(ConnectionFailed):
        snapshot(settings, replace(request, hbase=True), lambda _: None)


def test_a_file_that_goes_before_it_is_read_is_not_missing(tmp_path: Path) -> None:
    """Nobody copies it any more."""
    row = source(tmp_path).row(f"{tmp_path}/gone")
    assert judge_file(row["path"], [row], [], range(0)).code == "file-unreadable"


@pytest.mark.parametrize("name", ["copy", "cop*"])
def test_a_root_that_nobody_may_look_for_is_not_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """All its files were missing, or it was a wrong name. Tests may run as root, who may enter any folder."""

    def refuse(_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    for call in ("stat", "lstat", "listdir"):
        monkeypatch.setattr(f"status_tool.sources.local.os.{call}", refuse)
    found = source(tmp_path, name)
    parts, absent = found.partitions(), found.absent()
    details = [row["detail"] for part in parts for row in found._rows(part, Counter())]
    with pytest.raises(ConfigurationError, match="cannot be listed"):
        list(replace(found, tolerant=False)._rows(parts[0], Counter()))
    monkeypatch.undo()
    assert (absent, details) == ([], ["Permission denied"])


@pytest.mark.parametrize("option", [("--rate", "5"), ("--hdfs-client", "native"), ("--layout", "1024")])
def test_the_plan_refuses_what_its_run_refuses(
    option: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option for the files of HDFS where only a folder is read, and one for folders where none is."""
    (tmp_path / "paths").write_text("/data\n" if option[0] == "--layout" else f"file://{tmp_path}\n")
    line = ["run", "-m", "-o", str(tmp_path / "status"), "--only", "hdfs", "-f", str(tmp_path / "paths"), *option]
    said = []
    for more in ([], ["--explain"]):
        assert main([*line, "--webhdfs", "http://127.0.0.1:1", *more]) == 2
        said.append(capsys.readouterr().err)
    assert option[0] in said[0]
    assert said[0] == said[1]


def test_the_plan_of_a_check_is_that_of_its_run(tmp_path: Path) -> None:
    """It names the slave's roots, and is refused where the run is."""
    with StatusWriter(tmp_path / "f.status", Header("master", "m", 2, 1, half="hdfs", hdfs_paths=("/f",))):
        pass
    moved = PathMap.parse([f"/f=file://{tmp_path}"])
    check = Check(tmp_path / "f.status", Scope(check_hbase=False, path_map=moved))
    steps = {step.what: step.value for step in explain_check(Settings(SiteConfig({})), check)}
    assert steps["files"] == f"file:{tmp_path}"
    assert "contents" not in steps
    for is_all, read in {False: "files that checksums cannot settle", True: "every file"}.items():
        deep = replace(check, deep=True, files=replace(check.files, deep=is_all))
        [told] = [step.value for step in explain_check(Settings(SiteConfig({})), deep) if step.what == "contents"]
        assert told.startswith(f"of {read}")
    late = replace(check, scope=Scope(since=Baseline(3)))
    with pytest.raises(UsageError, match="--since 3 lies after the cut"):
        list(explain_check(Settings(SiteConfig({})), late))


def test_a_check_takes_the_masters_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FILE names its local roots without `file:`, so that a list with it would be held by none of them."""
    checks = list[Check]()

    def checked(_: Settings, check: Check, __: object) -> int:
        checks.append(check)
        return 0

    monkeypatch.setattr("status_tool.cli.running.check_file", checked)
    (tmp_path / "paths").write_text("file:///export/a\nhdfs://whatever/b\n")
    moved = "/export=file:///copy"
    assert main(["run", "-i", str(tmp_path / "f"), "-f", str(tmp_path / "paths"), "--map-path", moved]) == 0
    assert [(check.hdfs_paths, check.scope.path_map.slave_roots(check.hdfs_paths)) for check in checks] == [
        (("/export/a", "/b"), ("file:/copy/a", "/b"))
    ]


@pytest.mark.parametrize("option", [("--resume",), ("--rate", "5"), ("--hdfs-client", "native")])
def test_what_is_for_hdfs_alone_is_refused(
    option: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `--layout` is where no local folder is read; a default of status-tool.toml refuses nothing."""
    (tmp_path / "export").mkdir()
    (tmp_path / "paths").write_text(f"file://{tmp_path}/export\n")
    (tmp_path / "toml").write_text('rate = 5\nhdfs-client = "native"\n')
    line = ["run", "-m", "-o", str(tmp_path / "status"), "--only", "hdfs", "-f", str(tmp_path / "paths")]
    assert main([*line, *option]) == 2
    assert f"{option[0]} is for files in HDFS" in capsys.readouterr().err
    monkeypatch.setenv("STATUS_TOOL_CONFIG", str(tmp_path / "toml"))
    assert main(line) == 0


def test_only_this_process_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors run on other hosts, each with a folder of its own by that name."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "f").write_bytes(b"x")
    gathered = Snapshot(Header("slave", "s", 2, 1), (), (source(tmp_path, "copy"),))
    monkeypatch.setattr(slave_side, "snapshot", lambda *_: gathered)
    scratch = Scratch(tmp_path, None)
    slave_side.gather(Settings(SiteConfig({})), Request("slave", 0), lambda _: None, scratch)
    with open_status(scratch.files) as written:
        assert [row["path"] for batch in written.rows({"file"}) for row in batch.to_pylist()] == [f"{tmp_path}/copy/f"]
    assert slave_side._left_to_spark(gathered).sources == ()
