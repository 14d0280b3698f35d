"""Hadoop's own client beside the tool: what goes through the pipe, what becomes of errors, and what is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from status_tool.cli.main import main
from status_tool.clients import hdfs_native, patience
from status_tool.clients.class_archive import CACHE_VARIABLE
from status_tool.clients.config import HdfsClient, Settings
from status_tool.clients.hdfs_native import NativeHdfs, RpcEndpoint, no_process_left
from status_tool.clients.hdfscli import Refused
from status_tool.clients.java import READER, _compiled, hadoop_class_path
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.webhdfs import HdfsEndpoint, Load, WebHdfs
from status_tool.errors import EXIT_ERROR, ConfigurationError, ConnectionFailed, Interrupted
from status_tool.gather import hdfs_side
from status_tool.gather.hdfs_side import files_endpoint, identity_of
from status_tool.gather.snapshot import FileOptions, Request, snapshot
from status_tool.rules.sides import same_hdfs
from status_tool.runs.write import write_side
from status_tool.sources.hdfs_files import HdfsSource, Part, content_crc, endpoint_of
from status_tool.sources.interface import Source
from status_tool.status_file.reader import open_status
from status_tool.vocabulary.names import journal_path
from status_tool.vocabulary.selection import Exclusions
from tests.fake_hdfs_reader import ALGORITHM
from tests.http_server import ended, serve, url_of
from tests.lab.config import write_site
from tests.lab.waiting import wait_until
from tests.pair import REPOSITORY

NAMES = ["with space", "100%25+1", "a+b&c=d;e", "line\nbreak", "größe-名前-🐘", "#1?2", "[braced]*", "plain"]
ENDPOINT = RpcEndpoint("hdfs://fake", "me", (("fs.defaultFS", "hdfs://fake"), ("lab.secret", "pass word")))
SETTINGS = Settings(SiteConfig({"fs.defaultFS": "hdfs://fake", "dfs.namenode.rpc-address": "fake:8020"}))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that the other end serves; afterwards no process is left."""
    root = tmp_path / "hdfs"
    root.mkdir()
    command = (sys.executable, "-m", "tests.fake_hdfs_reader", str(root))
    monkeypatch.setattr(hdfs_native, "_command", lambda: (command, None))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setattr("status_tool.gather.hdfs_side.endpoint_of", no_web)
    with no_process_left():
        pass  # an interrupted run before is over
    yield root
    with no_process_left():
        pass
    assert not any(map(is_running, pids(root)))


def no_web(_: Settings) -> None:
    raise ConfigurationError("no web address")


def log(root: Path) -> list[str]:
    file = root.with_suffix(".log")
    return file.read_text().splitlines() if file.exists() else []


def pids(root: Path) -> list[int]:
    return [int(line.split()[1]) for line in log(root) if line.startswith("pid ")]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def source(*roots: str, **options: Any) -> HdfsSource:
    return HdfsSource(ENDPOINT, roots or ("/data",), Exclusions(), **options)


def rows(of: Source) -> list[dict[str, Any]]:
    return [row for part in of.partitions() for batch in of.read(part) for row in batch.to_pylist()]


def files(of: Source) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in rows(of) if row["kind"] == "file"}


def test_every_kind_of_row(fake: Path) -> None:
    """All names, by pages; folders, links and marks; what is refused with its reason."""
    for number, name in enumerate(NAMES):
        put(fake, f"data/names/{name}", "x" * number)
    for name in ("coded", "zone"):
        put(fake, f"data/{name}-file", name)
    put(fake, "data/open", "refuse IOException Fail to get checksum, since file /data/open is under construction.")
    put(fake, "data/denied", "refuse AccessControlException Permission denied: user=me\n\tat a.b.C")
    put(fake, "data/mute", "refuse IllegalStateException ")
    put(fake, "data/_temporary/left-out", "")
    (fake / "data" / "hollow").mkdir()
    (fake / "data" / "closed").mkdir()
    (fake / "data" / "link").symlink_to(fake / "data" / "open")
    found = files(source())
    for number, name in enumerate(NAMES):
        row = found[f"/data/names/{name}"]
        assert (row["length"], row["modified_ms"], row["block_size"]) == (number, 7, 1024)
        assert (row["algorithm"], bytes.fromhex(row["checksum"])) == (ALGORITHM, b"%16d" % number)
    assert found["/data/coded-file"]["algorithm"] == f"{ALGORITHM} XOR-2-1-1024k"
    assert found["/data/zone-file"]["algorithm"] == f"{ALGORITHM} encrypted"
    states = {path: (row["state"], row["detail"]) for path, row in found.items() if row["state"]}
    assert states == {
        "/data/open": ("open", "Fail to get checksum, since file /data/open is under construction."),
        "/data/denied": ("unreadable", "Permission denied: user=me"),
        "/data/mute": ("unreadable", "IllegalStateException"),
        "/data/closed": ("unreadable", "folder: Permission denied: user=me"),
    }
    assert len(found) == len(NAMES) + 6
    counts = {row["name"]: row["entries"] for row in rows(source()) if row["kind"] == "count"}
    assert counts == {"empty folder": 1, "symbolic link": 1}


def test_roots(fake: Path) -> None:
    """Files, globs and absent ones, as over WebHDFS."""
    for path in ("data/a1/f", "data/a2/f", "data/b/f", "alone"):
        put(fake, path, "x")
    assert set(files(source("/data/a*", "/alone", "/absent"))) == {"/data/a1/f", "/data/a2/f", "/alone"}


def test_a_mount_point_that_led_somewhere(fake: Path) -> None:
    """One that leads to nothing is there; but what it led to when the run began is gone."""
    put(fake, "data/f", "x")
    view = replace(ENDPOINT, mounts=(("/data/mount", "hdfs://fake/away"),))
    for seen, told in (((), set()), (("/data/mount",), {"/data/mount"})):
        found = HdfsSource(view, ("/data",), Exclusions(), seen=seen)
        rows = [row for batch in found.read(Part(("/data/mount",), True)) for row in batch.to_pylist()]
        assert {row["path"] for row in rows} == told


def test_a_mount_point_below_a_root_that_led_somewhere(fake: Path) -> None:
    """The run knows which did when it began, as of the roots themselves."""
    put(fake, "data/f", "x")
    put(fake, "data/mount/f", "x")
    links = {f"fs.viewfs.mounttable.all.link./data{name}": f"hdfs://fake{name}" for name in ("", "/mount", "/away")}
    view = Settings(SiteConfig({"fs.defaultFS": "viewfs://all", **links}))
    (found,) = snapshot(view, replace(request(), hdfs_paths=("/",)), lambda _: None).sources
    shutil.rmtree(fake / "data/mount")
    below = Part(("/data/away", "/data/mount"), True)
    assert [row["path"] for batch in found.read(below) for row in batch.to_pylist() if row["path"]] == ["/data/mount"]


def test_more_files_than_one_request_takes(fake: Path) -> None:
    """In the order of the listing, each once."""
    for number in range(200):
        put(fake, f"data/{number:03d}", "x" * (number % 7))
    found = [row for row in rows(source()) if row["kind"] == "file"]
    assert [row["path"] for row in found] == [f"/data/{number:03d}" for number in range(200)]
    assert all(int(bytes.fromhex(row["checksum"])) == row["length"] for row in found)
    assert sum(line.startswith("K ") for line in log(fake)) == 4


def test_what_the_process_is_given(fake: Path) -> None:
    """The site's properties by the pipe, where no list of processes shows them; the user; the limits."""
    rows(source(load=Load(concurrency=5, rate=2.5)))
    (opening,) = (line for line in log(fake) if line.startswith("O "))
    assert "pass word" in opening
    assert r"\x00\x00\x00\x05@\x04\x00\x00\x00\x00\x00\x00" in opening  # 5 and 2.5
    assert "pass word" not in repr(ENDPOINT)


def test_content(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range's CRCs as an unsigned number; a file that became shorter is refused."""
    put(fake, "data/f", "12345")
    hdfs = NativeHdfs(ENDPOINT)
    assert content_crc(hdfs, "/data/f", 5) == "fffffff0fffffff5"
    assert files(source(deep=True))["/data/f"]["crc32c"] == "fffffff0fffffff5"
    with pytest.raises(Refused, match="shorter"):
        hdfs.crc("/data/f", 3, 3)
    monkeypatch.setattr("status_tool.sources.hdfs_files.RANGE_BYTES", 2)
    content_crc(hdfs, "/data/f", 5)
    assert sum(line.startswith("C ") for line in log(fake)) == 6


def test_a_namenode_that_comes_back(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what it did not answer is asked for again, and no file is lost."""
    monkeypatch.setattr(patience, "_FIRST_PAUSE_S", 0.01)
    for number in range(5):
        put(fake, f"data/{number}", "x")
    put(fake, "data/first", "away ConnectException 3")
    put(fake, "data/second", "away StandbyException 2")
    found = files(source())
    assert all(row["checksum"] for row in found.values())
    assert [line.count("/data/") for line in log(fake) if line.startswith("K ")] == [7, 2, 2, 1]


def test_a_namenode_that_stays_away(fake: Path) -> None:
    """One that answers no more ends the run; where it still answers, its refusal is the file's."""
    put(fake, "data/f", "away ConnectException 1000")
    hdfs = NativeHdfs(ENDPOINT, patience_s=0.3)
    (refusal,) = hdfs.checksums(["/data/f"])
    assert isinstance(refusal, Refused)
    (fake / "cannot-open").touch()
    with pytest.raises(ConnectionFailed, match=r"^Hadoop's own client cannot open hdfs://fake: IllegalArgument"):
        NativeHdfs(ENDPOINT, Load(3)).status("/")


def test_lost_blocks_are_waited_for_once(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After that no other file waits for them."""
    monkeypatch.setattr(patience, "SETTLING_S", 0.5)
    for folder in ("first", "second"):
        for number in range(3):
            put(fake, f"data/{folder}/{number}", "refuse PathIOException `f': Fail to get block MD5 for LocatedBlock")
    asked = []
    for folder in ("first", "second"):
        before = len(log(fake))
        assert {row["state"] for row in files(source(f"/data/{folder}")).values()} == {"unreadable"}
        asked.append(sum(line.startswith("K ") for line in log(fake)[before:]))
    assert asked[0] > asked[1] == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [("die", "the end"), ("cut", "cut short"), ("babble", "its Java process ended with -9; is JAVA_HOME a JDK 17")],
)
def test_a_process_that_ends_in_the_middle(fake: Path, text: str, why: str) -> None:
    """The run ends with one line instead of waiting; the next one starts another process."""
    put(fake, "data/f", text)
    with pytest.raises(ConnectionFailed, match=f"^Hadoop's own client has ended: .*{why}"):
        rows(source())
    put(fake, "data/f", "x")
    assert len(files(source())) == 1
    assert len(pids(fake)) == 2


def request(**options: Any) -> Request:
    chosen = FileOptions(client=HdfsClient.NATIVE, **options)
    return Request("master", 0, hbase=False, hdfs_paths=("/data", "/absent"), files=chosen)


def test_a_status_file(fake: Path, tmp_path: Path) -> None:
    """Without any web address: the block pool tells which HDFS it is; absent roots are named."""
    put(fake, "data/f", "x")
    write_side(SETTINGS, request(), tmp_path / "status", lambda _: None)
    assert not any(map(is_running, pids(fake)))
    with open_status(tmp_path / "status") as written:
        assert (written.header.hdfs_pool_id, written.header.hdfs_absent) == ("BP-hdfs", ("/absent",))
        assert written.counts["file"] == 1


def test_it_is_known_by_its_own_pool_whatever_the_web_address_leads_to(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Site files may name the RPC of one HDFS and the web address of another: files of the former had its identity."""
    put(fake, "data/f", "x")
    monkeypatch.setattr(hdfs_side, "endpoint_of", lambda _: HdfsEndpoint(("http://elsewhere:9870",), "me"))
    with no_process_left():
        for bean, pools in (("BP-other", "BP-hdfs,BP-other"), ("BP-hdfs", "BP-hdfs")):
            monkeypatch.setattr(WebHdfs, "beans", lambda *_, pool=bean: [{"BlockPoolId": pool}])
            header = snapshot(SETTINGS, request(), lambda _: None).header
            assert header.hdfs_pool_id == pools
            assert same_hdfs(header, replace(header, hdfs_pool_id="BP-hdfs"))


def test_the_web_addresss_pool_does_not_stand_for_an_unknown_one(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty file has no block, and so no pool; without any file there is nothing to know."""
    (fake / "data").mkdir()
    monkeypatch.setattr(hdfs_side, "endpoint_of", lambda _: HdfsEndpoint(("http://elsewhere:9870",), "me"))
    monkeypatch.setattr(WebHdfs, "beans", lambda *_: [{"BlockPoolId": "BP-other"}])
    with no_process_left():
        assert snapshot(SETTINGS, request(), lambda _: None).header.hdfs_pool_id == "BP-other"
        put(fake, "data/f", "")
        assert snapshot(SETTINGS, request(), lambda _: None).header.hdfs_pool_id == "BP-other,?"


def test_a_mount_point_whose_pool_is_unknown_is_not_forgotten(fake: Path) -> None:
    """Its files may be those of the other side, whatever another mount point is known to be."""
    mounts = (("/a", "hdfs://one/"), ("/b", "hdfs://two/"), ("/c", "hdfs://two/gone"))
    endpoint = replace(ENDPOINT, mounts=mounts)
    put(fake, "a/f", "x")
    with no_process_left():
        for text, pools in (("", "BP-hdfs,?"), ("x", "BP-hdfs")):
            put(fake, "b/f", text)
            assert identity_of(SETTINGS, endpoint, ("/",), Exclusions(), Load()) == ("", pools)


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize("near_rows", [5_000, 0])
def test_a_check(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], near_rows: int
) -> None:
    """Both sides by Hadoop's client, `--deep`, too: this process reads, Spark compares; whatever it reads besides."""
    monkeypatch.setattr("status_tool.runs.slave_side.NEAR_ROWS", near_rows)
    slave = tmp_path / "other"
    for root, other in ((fake, "plain 12345"), (slave, "crc32 12345")):
        for path, content in (("alike", "x"), ("other", other), ("empty", "")):
            put(root, f"data/{path}", content)
    put(fake, "data/gone", "x")
    put(slave, "data/more", "x")
    for host in ("fake", "other"):
        write_site(tmp_path / f"conf-{host}" / "core-site.xml", {"fs.defaultFS": f"hdfs://{host}:8020"})
    (tmp_path / "paths").write_text("/data\n")
    native = ["--hdfs-client", "native", "--only", "hdfs", "--conf-dir"]
    file = str(tmp_path / "status")
    here = [str(tmp_path / "conf-fake"), "-f", str(tmp_path / "paths")]
    assert main(["run", "-m", "-o", file, "--deep", *native, *here]) == 0
    command = (sys.executable, "-m", "tests.fake_hdfs_reader", str(slave))
    monkeypatch.setattr(hdfs_native, "_command", lambda: (command, None))
    found = []
    for deep in ([], ["--deep"]):
        capsys.readouterr()
        assert main(["run", "-i", file, "--json", *native, str(tmp_path / "conf-other"), *deep]) == 1
        document = json.loads(capsys.readouterr().out)
        found.append({name: count for name, count in document["hdfs"]["files"].items() if count})
    assert found == [{"match": 2, "missing": 1, "incomparable": 1, "extra": 1}, {"match": 3, "missing": 1, "extra": 1}]
    assert not any(map(is_running, pids(slave)))
    assert sum(line.startswith("C ") for line in log(slave)) == 1


def test_an_interrupted_run_leaves_its_journal_and_no_process(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--resume` asks for no checksum again that it has."""
    monkeypatch.setattr("status_tool.sources.hdfs_files.FILES_PER_BATCH", 10)
    for number in range(300):
        put(fake, f"data/{number}", "x")
    output, taken = tmp_path / "status", list[int]()

    def interrupted(*_: object) -> int:
        taken.append(1)
        if len(taken) == 10:
            raise KeyboardInterrupt
        return 0

    with monkeypatch.context() as patch:
        patch.setattr("status_tool.runs.write.streams_written_later", interrupted)
        with pytest.raises(Interrupted, match=r"status\.resume: the same command with --resume continues"):
            write_side(SETTINGS, request(), output, lambda _: None)
    assert journal_path(output).exists()
    assert not any(map(is_running, pids(fake)))
    before = len(log(fake))
    write_side(SETTINGS, request(journal=""), output, lambda _: None)
    again = sum(line.count("/data/") for line in log(fake)[before:] if line.startswith("K "))
    assert 0 < again < 250
    with open_status(output) as written:
        assert written.counts["file"] == 300


def test_an_interrupted_run_starts_no_other_process(fake: Path) -> None:
    """A thread that goes on in an interrupted run gets none; the next run does."""
    put(fake, "data/f", "x")
    said = list[BaseException]()

    def interrupted() -> None:
        with no_process_left():
            assert files(source())
            raise KeyboardInterrupt

    def work() -> None:
        try:
            rows(source())
        except BaseException as error:
            said.append(error)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [type(error) for error in said] == [ConnectionFailed]
    assert "was interrupted" in str(said[0])


CHILD = """
import sys
from status_tool.clients.hdfs_native import NativeHdfs, RpcEndpoint, _PROCESSES
hdfs = NativeHdfs(RpcEndpoint("hdfs://127.0.0.1:1", "me"), patience_s=0)
try:
    hdfs.status("/")
except Exception as error:
    (process,) = _PROCESSES.values()
    print(process._process.pid, error, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_real_one_ends_with_this_process(number: signal.Signals | None) -> None:
    """However that ends. Where nothing listens it says so, in the words of Hadoop's client."""
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        assert child.stdout is not None
        pid, _, said = child.stdout.readline().partition(" ")
        assert "cannot reach the NameNode at hdfs://127.0.0.1:1 (Call From" in said, child.communicate(timeout=120)
        assert "Connection refused" in said
        assert is_running(int(pid))
        if number is not None:
            child.send_signal(number)
        child.communicate("", timeout=120)
    finally:
        child.kill()
        child.wait()
    wait_until(lambda: not is_running(int(pid)), 120, "the Java process has ended")


@pytest.mark.slow
def test_the_classes_of_the_real_one_are_archived_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its end, unless the run is interrupted; the next one maps the file, and answers as before."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    tmp_path.chmod(0o700)
    hdfs = NativeHdfs(RpcEndpoint("hdfs://127.0.0.1:1", "me"), patience_s=0)

    def option(end: BaseException | None = None) -> str:
        with suppress(KeyboardInterrupt), no_process_left():
            with pytest.raises(ConnectionFailed, match="Connection refused"):
                hdfs.status("/")
            (process,) = hdfs_native._PROCESSES.values()
            if end is not None:
                raise end
        return cast(Sequence[str], process._process.args)[1]

    assert option(KeyboardInterrupt()).startswith(f"-XX:ArchiveClassesAtExit={tmp_path}/hdfs-")
    assert list(tmp_path.iterdir()) == []
    assert option().startswith(f"-XX:ArchiveClassesAtExit={tmp_path}/hdfs-")
    (archive,) = tmp_path.iterdir()
    written = archive.stat()
    assert (option(), archive.stat().st_mtime_ns) == (f"-XX:SharedArchiveFile={archive}", written.st_mtime_ns)
    assert written.st_size > 1 << 20


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a run that ends with exit code 2."""
    assert main(["run", *arguments, "--only", "hdfs"]) == EXIT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.fixture
def site(tmp_path: Path) -> list[str]:
    """Options: site files with an RPC address where nothing listens, and a file to be written."""
    write_site(tmp_path / "conf" / "core-site.xml", {"fs.defaultFS": "hdfs://127.0.0.1:1"})
    return ["-o", str(tmp_path / "out"), "--conf-dir", str(tmp_path / "conf"), "--hdfs-client", "native"]


def test_a_wrong_java(
    site: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that says what to set; nothing is written."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    line = refusal(capsys, *site)
    assert line == f"status-tool: JAVA_HOME is {tmp_path}, where there is no bin/java: set it to a JDK 17"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Hadoop's own client needs Java: install a JDK 17" in refusal(capsys, *site)
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'Error: A JNI error: UnsupportedClassVersionError: 61.0' >&2; exit 1\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "has ended: Error: A JNI error: UnsupportedClassVersionError" in refusal(capsys, *site)
    assert not (tmp_path / "out").exists()


def test_a_spark_without_hadoop(
    site: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As Spark is distributed for a Hadoop of the user's own."""
    monkeypatch.setattr("status_tool.clients.java.spark_homes", lambda: [tmp_path])
    assert "Spark's jars have no Hadoop client here" in refusal(capsys, *site)


def test_no_rpc_address(tmp_path: Path, site: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for and not possible: one line, no other client in its place."""
    assert "leave one of them out" in refusal(capsys, *site, "--webhdfs", "http://127.0.0.1:1")
    write_site(tmp_path / "conf" / "core-site.xml", {"dfs.namenode.http-address": "127.0.0.1:1"})
    assert "--hdfs-client native needs the NameNodes' RPC addresses" in refusal(capsys, *site)


def test_it_needs_no_jmx(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line of a run over WebHDFS names it, where a proxy before the NameNode fails for /jmx."""
    put(fake, "data/f", "x")
    monkeypatch.setattr(hdfs_side, "endpoint_of", endpoint_of)
    proxy = serve(lambda _: (502, {}, b"bad gateway"))
    with ended(proxy):
        address = url_of(proxy).removeprefix("http://")
        conf, paths = tmp_path / "conf", tmp_path / "paths"
        write_site(conf / "core-site.xml", {"fs.defaultFS": "hdfs://fake:8020", "dfs.namenode.http-address": address})
        paths.write_text("/data\n")
        write = ("-m", "-o", str(tmp_path / "status"), "-f", str(paths), "--conf-dir", str(conf))
        line = refusal(capsys, *write)
        assert f"is active (HTTP status 502 for http://{address}/jmx), and" in line
        assert line.endswith("; --only hdfs --hdfs-client native needs no /jmx")
        assert main(["run", *write, "--only", "hdfs", "--hdfs-client", "native"]) == 0
    with open_status(tmp_path / "status") as file:
        assert (file.counts["file"], file.header.hdfs_pool_id) == (1, "BP-hdfs")


def test_the_user(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable that Hadoop's client reads: HDFS's user is the same as over WebHDFS."""
    given = list[str]()
    started = hdfs_native._Process.__init__

    def noting(self: Any, command: Any, environment: Any, archive: Any) -> None:
        given.append(environment["HADOOP_USER_NAME"])
        started(self, command, environment, archive)

    monkeypatch.setattr(hdfs_native._Process, "__init__", noting)
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    endpoint = files_endpoint(SETTINGS, HdfsClient.NATIVE, Load(), ("/",), Exclusions(), lambda _: None)
    assert isinstance(endpoint, RpcEndpoint)
    NativeHdfs(endpoint).status("/")
    assert given == ["somebody"]
    assert os.environ["HADOOP_USER_NAME"] == "somebody"


def test_without_the_jar_what_reads_hdfs_is_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As an installation that was built without Maven has it: its sources. A full disk looks like a missing jar."""
    package, sources = tmp_path / "status_tool", REPOSITORY / "coprocessor_stubs" / "src" / "main" / "java"
    shutil.copytree(sources / READER, package / "assets" / READER)
    monkeypatch.setattr("status_tool.clients.java.PACKAGE", package)

    def is_full() -> tuple[Path, int]:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("status_tool.clients.java.held_folder", is_full)
        _compiled.cache_clear()
        with pytest.raises(ConfigurationError, match="is not here: build it"):
            hadoop_class_path()
    _compiled.cache_clear()
    folder = Path(hadoop_class_path().split(":")[0])
    assert (folder / READER / "HdfsReader.class").is_file()
    assert Path(hadoop_class_path().split(":")[0]) == folder
    _compiled.cache_clear()
    monkeypatch.undo()
    assert "coprocessors.jar" in hadoop_class_path()


def test_a_tool_without_the_jar_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it does instead, what that costs, and how to get the jar."""
    monkeypatch.setattr("status_tool.clients.java.PACKAGE", Path("/nonexistent/package"))
    hdfs_side._tell_without_jar.cache_clear()
    for _ in range(2):
        hdfs_side._tell_without_jar()
    [line] = capsys.readouterr().err.splitlines()
    assert "over WebHDFS, which is slower: status-tool-coprocessors.jar is not here: build it" in line
    monkeypatch.undo()
    hdfs_side._tell_without_jar.cache_clear()
    hdfs_side._tell_without_jar()
    assert capsys.readouterr().err == ""
