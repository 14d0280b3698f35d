"""The WebHDFS client and source against a small NameNode that can be busy, standing by or away."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pyarrow as pa
import pytest

from status_tool.cli.main import main
from status_tool.clients import patience
from status_tool.clients.config import HdfsClient, Settings
from status_tool.clients.file_client import SharedClients
from status_tool.clients.hdfs_native import no_process_left
from status_tool.clients.hdfscli import Refused
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.webhdfs import HdfsEndpoint, Load, RateLimit, WebHdfs, webhdfs
from status_tool.errors import EXIT_ERROR, ConnectionFailed, Interrupted, OutputError, UsageError
from status_tool.gather.hdfs_side import files_endpoint, identity_of, paths_of
from status_tool.gather.snapshot import FileOptions, Request, Snapshot, snapshot
from status_tool.gather.snapshot import spooled_rows as spooled
from status_tool.report.progress import Phase, Progress
from status_tool.rules.files import judge_file
from status_tool.rules.sides import same_hdfs
from status_tool.runs.write import _journal_owner, write_side
from status_tool.sources.crc import Layout, crc_hex, crcs
from status_tool.sources.hdfs_files import HdfsSource, Part, checked_rows, listed_row, pool_of, with_content
from status_tool.sources.interface import Source
from status_tool.sources.journal import Journal
from status_tool.sources.spool import read_spool
from status_tool.status_file.reader import open_status
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.names import journal_path
from status_tool.vocabulary.selection import Exclusions
from tests.http_server import Answer, ended, serve, url_of
from tests.pair import REPOSITORY

PAGE = 3
ALGORITHM = "MD5-of-0MD5-of-512CRC32C"


def signed(name: str) -> list[int]:
    """Return a name's bytes as Java has them: HDFS sorts by these (`DFSUtilClient.compareBytes`)."""
    return [byte - 256 if byte > 127 else byte for byte in name.encode()]


@dataclass
class FakeHdfs:
    """Files by path; `trouble` is what the next requests of an operation are answered with."""

    files: dict[str, bytes]
    trouble: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    batched: bool = True
    url: str = ""
    meet: dict[str, threading.Barrier] = field(default_factory=dict)
    """Listing a path waits here."""
    refused: set[str] = field(default_factory=set)
    checksum: Callable[[int], tuple[str, bytes]] = lambda length: (ALGORITHM, bytes(12) + b"%16d" % length + bytes(4))
    """By the file's length."""
    after: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What happens once an operation was answered."""
    state: str = ""
    """What its JMX says; empty: nothing."""
    cut: str = ""
    """A folder of which no page has an entry, or a file of which only the first line comes."""
    pool: str = ""
    """Its block pool; empty: it does not know where blocks are asked for."""
    is_httpfs: bool = False
    rpc: str = ""
    """The NameNode that redirections to a DataNode name."""

    def answer(self, op: str, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        self.requests[op] += 1
        if waiting := self.trouble.get(op):
            status, told = waiting.pop(0)
            name, _, words = told.partition(": ")
            return status, {"RemoteException": {"exception": name, "message": words or f"{name} it is"}}
        if op == "LISTSTATUS_BATCH" and not self.batched:
            return 400, {"RemoteException": {"exception": "IllegalArgumentException", "message": "no such op"}}
        if op == "GET_BLOCK_LOCATIONS" and not self.pool:
            return 400, {"RemoteException": {"exception": "IllegalArgumentException", "message": "no such op"}}
        if path in self.refused:
            return 403, {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied"}}
        if op == "LISTSTATUS_BATCH" and path in self.meet:
            self.meet[path].wait(20)
        below = {p[len(path.rstrip("/")) + 1 :].split("/")[0] for p in self.files if self.below(p, path)}
        names = sorted(below, key=signed)
        if above := next((file for file in self.files if self.below(path, file)), ""):
            words = f"{above} (is not a directory)"
            return 403, {"RemoteException": {"exception": "AccessControlException", "message": words}}
        if path not in self.files and not names:
            return 404, {"RemoteException": {"exception": "FileNotFoundException", "message": "not there"}}
        if op == "GETFILESTATUS":
            return 200, {"FileStatus": self.status(path, "")}
        if op == "GETFILECHECKSUM" and "noredirect" in query:
            return 200, {"Location": f"{self.url}/webhdfs/v1{quote(path)}?op=DATA{self.rpc}"}
        if op == "GET_BLOCK_LOCATIONS":
            blocks = [{"block": {"blockPoolId": self.pool}}] if self.files[path] else []
            return 200, {"LocatedBlocks": {"locatedBlocks": blocks}}
        if op == "OPEN" and "noredirect" in query:
            return 200, {"Location": f"{self.url}/webhdfs/v1{path}?op=CONTENT"}
        if op == "CONTENT":
            data = self.files[path].splitlines(keepends=True)[0] if path == self.cut else self.files[path]
            self.after.get(op, lambda: None)()
            return 200, data
        if op == "DATA":
            algorithm, data = self.checksum(len(self.files[path]))
            return 200, {"FileChecksum": {"algorithm": algorithm, "bytes": data.hex(), "length": len(data)}}
        entries = [self.status(f"{path.rstrip('/')}/{name}", name) for name in names] or [self.status(path, "")]
        if op == "LISTSTATUS":
            return 200, {"FileStatuses": {"FileStatus": entries}}
        after = self.after_of(query)
        left = [e for e in entries if not after or signed(e["pathSuffix"]) > signed(after)]
        page = 0 if path == self.cut else PAGE
        listing = {"FileStatuses": {"FileStatus": left[:page]}}
        return 200, {"DirectoryListing": {"partialListing": listing, "remainingEntries": max(0, len(left) - page)}}

    def after_of(self, query: dict[str, list[str]]) -> str:
        """Return the name to go on after, as `ParamFilter` of a NameNode or as HttpFS reads it."""
        if self.is_httpfs:
            return query.get("startAfter", [""])[0]
        after = {name.lower(): values[0] for name, values in query.items()}.get("startafter", "")
        return unquote(after) if any(map(str.isupper, "".join(query))) else after

    @staticmethod
    def below(path: str, folder: str) -> bool:
        return path.startswith(folder.rstrip("/") + "/")

    def status(self, path: str, suffix: str) -> dict[str, Any]:
        kind = "FILE" if path in self.files else "DIRECTORY"
        length = len(self.files.get(path, b""))
        return {"pathSuffix": suffix, "type": kind, "length": length, "modificationTime": 7, "blockSize": 1024}


@pytest.fixture
def fake() -> Iterator[FakeHdfs]:
    hdfs = FakeHdfs({f"/data/{folder}/{n}": b"x" * n for folder in "abc" for n in range(5)})

    def connected() -> None:
        hdfs.connections += 1

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        path = unquote(parts.path.removeprefix("/webhdfs/v1"))
        status, found = hdfs.answer(query["op"][0], path, query) if "op" in query else (404, b"")
        if parts.path == "/jmx" and hdfs.trouble.get("/jmx"):
            status = hdfs.trouble["/jmx"].pop(0)[0]
        elif parts.path == "/jmx" and hdfs.state:
            status, found = 200, {"beans": [{"State": hdfs.state}]}
        return status, {}, found if isinstance(found, bytes) else json.dumps(found).encode()

    server = serve(answer, keeps_alive=True, connected=connected)
    hdfs.url = url_of(server)
    with ended(server):
        yield hdfs


def source(fake: FakeHdfs, **options: Any) -> HdfsSource:
    return HdfsSource(HdfsEndpoint((fake.url,), "me"), ("/data",), Exclusions(), **options)


def rows(*sources: Source) -> list[dict[str, Any]]:
    parts = [(source, part) for source in sources for part in source.partitions()]
    found = [row for source, part in parts for batch in source.read(part) for row in batch.to_pylist()]
    return [row for row in found if row["kind"] == "file"]


@pytest.mark.parametrize("is_httpfs", [False, True])
def test_a_page_ends_with_a_name_that_looks_encoded(fake: FakeHdfs, is_httpfs: bool) -> None:
    """Names as Hive's partitions by time have them. A NameNode decodes a query twice that has a capital letter."""
    fake.is_httpfs = is_httpfs
    fake.files = {
        f"/data/{name}": b"x" for name in ("a%25b", "a%b", *(f"t=10%3A{n:02d}%3A00" for n in range(3 * PAGE)))
    }
    assert sorted(row["path"] for row in rows(source(fake))) == sorted(fake.files)


@pytest.mark.parametrize("batched", [True, False])
def test_every_file_once_by_pages(fake: FakeHdfs, batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that begin in the middle of a folder neither lose nor repeat a file; a NameNode without pages works too."""
    monkeypatch.setattr("status_tool.sources.hdfs_files.PART_FILES", 2)
    fake.batched = batched
    found = rows(source(fake))
    assert sorted(row["path"] for row in found) == sorted(fake.files)
    assert {row["length"] for row in found} == set(range(5))
    assert all(row["checksum"] for row in found)
    assert fake.connections < fake.requests.total() / 2, "connections are reused"


def test_every_file_once_of_names_that_are_not_ascii(fake: FakeHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NameNode lists `Mü` before `Ma`: parts that end between two names are of that order."""
    monkeypatch.setattr("status_tool.sources.hdfs_files.PART_FILES", 2)
    names = ("Mai", "Müller", "Maß", "Mühle", "Zoë", "Öl", "über", "a", "é", "éa", "éé", "日本", "😀")
    fake.files = {f"/data/{name}": b"x" for name in names}
    assert sorted(row["path"] for row in rows(source(fake))) == sorted(fake.files)


def test_a_root_inside_what_another_one_leaves_out(fake: FakeHdfs) -> None:
    """`-f` with `/` and `/tmp/mine`: both are read."""
    fake.files |= {"/tmp/mine/1": b"x", "/tmp/other": b"y"}
    both = HdfsSource(HdfsEndpoint((fake.url,), "me"), ("/", "/tmp/mine"), Exclusions())
    assert sorted(row["path"] for row in rows(both)) == sorted({*fake.files} - {"/tmp/other"})


def test_spools_are_left_out_and_what_lies_beside_them_is_not(fake: FakeHdfs, tmp_path: Path) -> None:
    """Each cluster that shares the folder has one there. They were checked as a user's files, which no slave has."""
    ids = ("6ba7b810-9dad-41d1-80b4-00c04fd430c8", "0e37df36-f698-4bf6-ada7-2a1c1a1b2c3d")
    mine = {f"/own/{name}" for name in ("f", "sub/f", f"{ids[0]}.old/f", f"sub/{ids[0]}/f")}
    fake.files = dict.fromkeys((*mine, *(f"/own/{one}/mark-1" for one in ids)), b"x")
    settings = Settings(SiteConfig({"hbase.replicationtable.spool.dir": "/own"}), webhdfs_option=(fake.url,))
    for roots, listed in (
        (("/",), mine),
        (("/own/*",), mine),
        (("/", f"/own/{ids[0]}"), {*mine, f"/own/{ids[0]}/mark-1"}),
    ):
        written = write_side(
            settings, Request("master", 0, hbase=False, hdfs_paths=roots), tmp_path / "status", lambda _: None
        )
        with open_status(tmp_path / "status") as file:
            rows_of = [row for batch in file.rows({"file"}) for row in batch.to_pylist()]
        assert {row["path"] for row in rows_of} == listed
        assert written.header.hdfs_left_out == ("/tmp", *settings.spool_globs)
        assert any(f"left out: /tmp, {settings.spool_globs[0]}, trash" in one for one in written.header.notices)


@pytest.mark.parametrize(
    ("root", "more", "listed"),
    [
        ("hdfs://198.51.100.7:8020/own", (), {"/own/f", "/b"}),
        ("hdfs://198.51.100.7:8020/own", ("/own/hbase.id",), {"/b"}),
        ("hdfs://127.0.0.1:8020/own", (), {"/b"}),
        ("/own", (), {"/b"}),
    ],
)
@pytest.mark.parametrize("side", ["master", "slave"])
def test_a_folder_with_the_path_of_hbases_root_elsewhere(
    fake: FakeHdfs, tmp_path: Path, root: str, more: tuple[str, ...], listed: set[str], side: str
) -> None:
    """It was left out, and nobody compared it. HBase's own has its id in it, or cannot be looked into."""
    fake.files = dict.fromkeys(("/own/f", "/b", *more), b"x")
    settings = Settings(SiteConfig({"hbase.rootdir": root}), webhdfs_option=(fake.url,))

    def written() -> set[str]:
        request = Request(side, 0, hbase=False, hdfs_paths=("/",))
        write_side(settings, request, tmp_path / "status", lambda _: None)
        with open_status(tmp_path / "status") as file:
            return {row["path"] for batch in file.rows({"file"}) for row in batch.to_pylist()}

    assert written() == listed
    fake.refused = {"/own/hbase.id"}
    assert written() == {"/b"}


@pytest.mark.parametrize(
    ("root", "listed"),
    [("/*", {"/mine/a"}), ("/*/*", {"/mine/a"}), ("/tmp/*", {"/tmp/a/1"}), ("/*/.Trash", {"/mine/.Trash/1"})],
)
def test_a_glob_does_not_match_what_is_left_out(fake: FakeHdfs, root: str, listed: set[str]) -> None:
    """Unless the path lies inside what its plain parts name."""
    fake.files = dict.fromkeys(("/tmp/a/1", "/hbase/data", "/mine/.Trash/1", "/mine/a"), b"x")
    exclusions = Exclusions(("/tmp", "/hbase"))
    matched = HdfsSource(HdfsEndpoint((fake.url,), "me"), (root,), exclusions)
    assert {row["path"] for row in rows(matched)} == listed
    assert paths_of(matched.endpoint, ("/t*",), exclusions, Load()) == {"/t*": []}


def test_nothing_is_below_a_file(fake: FakeHdfs) -> None:
    """HDFS says so as a refusal, and not that the path does not exist."""
    fake.files = dict.fromkeys(("/data/a/current/1", "/data/b"), b"x")
    found = paths_of(HdfsEndpoint((fake.url,), "me"), ("/data/*/current", "/data/b/c"), Exclusions(), Load())
    assert found == {"/data/*/current": ["/data/a/current"], "/data/b/c": []}


@pytest.mark.parametrize(
    ("message", "is_absent"),
    [
        ("/data/b (is not a directory)", True),
        ("/data/b (is not a directory)\n\tat org.apache.hadoop…", True),
        ('Permission denied: user=me, access=EXECUTE, inode="/b (is not a directory)\nc":hdfs:hdfs:drwx------', False),
    ],
)
def test_a_refusal_that_only_looks_like_a_file_in_the_way(message: str, is_absent: bool) -> None:
    assert Refused("AccessControlException", message).is_absent is is_absent


def test_folders_of_one_part_are_listed_at_once(fake: FakeHdfs) -> None:
    """Three folders below the part answer only when all three have been requested."""
    barrier = threading.Barrier(3)
    fake.meet = {f"/data/{folder}": barrier for folder in "abc"}
    found = [row["path"] for batch in source(fake).read(Part(("/data",), True)) for row in batch.to_pylist()]
    assert sorted(path for path in found if path) == sorted(fake.files)
    assert not barrier.broken


@pytest.mark.parametrize("most", [1, 4, 9, 30, 1000])
def test_a_tree_of_one_branch_is_split(fake: FakeHdfs, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Wherever the splitting ends, each file is in one part; and it does not end above a branch that holds all."""
    for name, value in (("PARTS", 4), ("PART_FILES", 2), ("SPLIT_PAGES", most)):
        monkeypatch.setattr(f"status_tool.sources.hdfs_files.{name}", value)
    branch = "/data/one/two/three"
    fake.files |= {f"{branch}/{folder}{n}/{file}": b"x" for folder in "xyz" for n in range(3) for file in range(4)}
    fake.files |= {f"/data/big/{n:02d}": b"y" for n in range(10)} | {f"/data/big/{n:02d}-folder/f": b"" for n in (3, 8)}
    parts = source(fake).partitions()
    found = rows(source(fake))
    assert sorted(row["path"] for row in found) == sorted(fake.files)
    holding = [part for part in parts if any(path.startswith(branch + "/") for path in part.paths)]
    assert len(holding) >= 3 or most < 30


@pytest.mark.parametrize("page", [1, 2])
def test_a_folder_that_is_refused_once_is_listed_with_all_below(
    fake: FakeHdfs, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of its pages was refused when the tree was split."""
    fake.files |= {f"/data/{name}/{n}": b"x" for name in "dexyz" for n in range(2)}
    asked, of_folder = WebHdfs.page, 0

    def refused_once(self: WebHdfs, path: str, after: str = "") -> Any:
        nonlocal of_folder
        of_folder += path == "/data"
        if path == "/data" and of_folder == page:
            raise Refused("HTTP", "HTTP status 502")
        return asked(self, path, after)

    monkeypatch.setattr(WebHdfs, "page", refused_once)
    found = [row["path"] for row in rows(source(fake))]
    assert sorted(found) == sorted(fake.files)


def test_a_folder_that_goes_while_the_tree_is_listed_is_told(fake: FakeHdfs) -> None:
    """Renamed to where the listing has been already, it would be in no row; a slave's counts as missing."""
    parts = source(fake).partitions()
    fake.files = {path.replace("/data/b/", "/data/a/new-"): content for path, content in fake.files.items()}
    ours, theirs = (
        [row for part in parts for batch in source(fake, tolerant=tolerant).read(part) for row in batch.to_pylist()]
        for tolerant in (True, False)
    )
    gone = {row["path"]: row["state"] for row in ours if row["path"] == "/data/b"}
    assert gone == {"/data/b": "unreadable"}
    assert "/data/b" not in {row["path"] for row in theirs}


def test_a_listing_that_ends_too_early_is_told(fake: FakeHdfs) -> None:
    """By a gateway that cuts answers: the rest of the folder is not known to be empty."""
    fake.cut = "/data/b"
    (folder,) = [row for row in rows(source(fake)) if row["state"]]
    assert folder["path"] == "/data/b"
    with pytest.raises(ConnectionFailed, match="with 5 entries left"):
        rows(source(fake, tolerant=False))
    with pytest.raises(Refused):
        WebHdfs(HdfsEndpoint((fake.url,), "me")).entries("/data/b")


@pytest.mark.parametrize("root", ["/data/b", "/data/[bc]", "/*/b"])
def test_a_path_that_goes_before_the_tree_is_listed_is_told(fake: FakeHdfs, root: str) -> None:
    """A job's folder is away while it is replaced: nothing of it would be checked, and nothing would say so."""
    endpoint = HdfsEndpoint((fake.url,), "me")
    (seen,) = paths_of(endpoint, (root,), Exclusions(), Load()).values()
    fake.files = {path: data for path, data in fake.files.items() if not path.startswith("/data/b/")}
    for tolerant in (True, False):
        found = rows(HdfsSource(endpoint, (root,), Exclusions(), tolerant=tolerant, seen=tuple(seen)))
        states = {row["path"]: row["detail"] for row in found if row["state"]}
        gone = {"/data/b": "folder: deleted or renamed while the tree was listed"}
        assert states == (gone if tolerant else {}), "a slave's lacks the files"


def test_a_match_that_goes_while_the_tree_is_listed_is_told(fake: FakeHdfs) -> None:
    """It was listed, so it was there."""
    fake.refused = {"/data/b"}
    fake.trouble["GETFILESTATUS"] = [(404, "FileNotFoundException")] * 5
    found = rows(HdfsSource(HdfsEndpoint((fake.url,), "me"), ("/data/b*",), Exclusions()))
    assert [(row["path"], row["state"]) for row in found] == [("/data/b", "unreadable")]


def test_a_standby_is_passed_over(fake: FakeHdfs) -> None:
    """Also when the active one comes second in the list, or changes in the middle."""
    fake.trouble["GETFILESTATUS"] = [(403, "StandbyException")] * 2
    client = WebHdfs(HdfsEndpoint(("http://127.0.0.1:1", fake.url), "me"))
    status = client.status("/data")
    assert status is not None
    assert status["type"] == "DIRECTORY"


@pytest.mark.parametrize("state", ["observer", "standby"])
@pytest.mark.parametrize("more", [(), ("http://127.0.0.1:1",)])
def test_an_observer_is_passed_over(fake: FakeHdfs, more: tuple[str, ...], state: str) -> None:
    """What it lists may lag behind the active one, also if only it is named, or if it is a standby that answers."""
    named = HdfsEndpoint((fake.url, *more), "me")
    for fake.state in ("active", ""):
        assert WebHdfs(named, patience_s=0).status("/data") is not None
    fake.state = state
    client = WebHdfs(named, patience_s=0)
    with pytest.raises(ConnectionFailed):
        client.status("/data")
    fake.state = "active"
    assert client.status("/data") is not None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_namenode_whose_jmx_fails_is_not_read_before_it_tells(fake: FakeHdfs, status: int) -> None:
    """One failed request let an observer through for the whole run."""
    fake.state, fake.trouble["/jmx"] = "observer", [(status, "")]
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"), patience_s=0)
    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            client.status("/data")
    assert not fake.requests
    fake.state, fake.trouble["/jmx"] = "active", [(status, "")]
    assert WebHdfs(client.endpoint).status("/data") is not None
    fake.state, fake.trouble["/jmx"] = "", [(403, "")]
    assert WebHdfs(client.endpoint, patience_s=0).status("/data") is not None, "one that does not tell"


def test_a_proxy_whose_jmx_always_fails_is_named_with_ways_around_it(
    fake: FakeHdfs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is read through it: it may lead to an observer. What the line says helps."""
    fake.state, status = "active", 502

    def answer(request: BaseHTTPRequestHandler) -> Answer:
        parts, query = urlsplit(request.path), parse_qs(urlsplit(request.path).query)
        if parts.path == "/jmx":
            return status, {}, json.dumps({"beans": [{"State": fake.state}]}).encode()
        found = fake.answer(query["op"][0], unquote(parts.path.removeprefix("/webhdfs/v1")), query)
        return found[0], {}, json.dumps(found[1]).encode()

    def run(url: str) -> int:
        return main(["run", "-m", "-o", str(tmp_path / "status"), "--only", "hdfs", "--all-files", "--webhdfs", url])

    proxy = serve(answer)
    with ended(proxy):
        assert run(url_of(proxy)) == 2
        (line,) = capsys.readouterr().err.splitlines()
        why = f"HTTP status 502 for {url_of(proxy)}/jmx"
        assert line.startswith(
            f"status-tool: cannot tell whether the NameNode at {url_of(proxy)} is active ({why}), and"
        )
        assert "let a proxy before it pass /jmx on, or name the NameNode's own address by --webhdfs" in line
        assert not fake.requests
        assert run(fake.url) == 0, "its own address"
        status = 200
        assert run(url_of(proxy)) == 0, "passed on"
        status = 404
        assert run(url_of(proxy)) == 0, "it tells nothing, like HttpFS"
        status = 502
        both = HdfsEndpoint((url_of(proxy), "http://127.0.0.1:1"), "me")
        with pytest.raises(ConnectionFailed, match=rf"is active \({re.escape(why)}; .*refused\), and"):
            WebHdfs(both, patience_s=0).status("/data")


@pytest.mark.parametrize("before", ["", "active"])
def test_a_namenode_that_comes_back_as_an_observer_is_passed_over(fake: FakeHdfs, before: str) -> None:
    """One that starts does not say what it is, and one that was active may be another thing after a failover."""
    fake.state = before
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"), patience_s=0)
    if before:
        assert client.status("/data") is not None
    fake.trouble["GETFILESTATUS"] = [(403, "StandbyException" if before else "RetriableException")]
    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            client.status("/data")
        fake.state = "observer"


@pytest.mark.parametrize("trouble", [(503, "Busy"), (403, "RetriableException"), (403, "SafeModeException")])
def test_a_busy_namenode_is_asked_again(fake: FakeHdfs, trouble: tuple[int, str]) -> None:
    """And its answer is the same as if it had not been."""
    fake.trouble["GETFILECHECKSUM"] = [trouble] * 3
    assert {bool(row["checksum"]) for row in rows(source(fake))} == {True}
    assert fake.trouble["GETFILECHECKSUM"] == []


@pytest.mark.parametrize("name", ["ConnectException", "SocketException", "StandbyException"])
def test_a_datanode_that_lost_its_namenode_is_asked_again(fake: FakeHdfs, name: str) -> None:
    """What it answers then says nothing of the file."""
    fake.trouble["DATA"] = [(403, name)] * 3
    assert {bool(row["checksum"]) for row in rows(source(fake))} == {True}
    assert fake.trouble["DATA"] == []


def test_a_block_that_cannot_be_reached_just_now_is_asked_for_again(fake: FakeHdfs) -> None:
    """While DataNodes and the NameNode come back, more often than any other refusal."""
    fake.trouble["DATA"] = [(403, "Fail to get block MD5:")] * 4
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"))
    assert client.checksum("/data/a/3")[0] == ALGORITHM


RPC = "&namenoderpcaddress=ns"


def alike(fake: FakeHdfs, *paths: str) -> tuple[int, int]:
    """Return the requests to the NameNode and to DataNodes after the checksums of these files, which are as always."""
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"))
    for path in paths:
        assert client.checksum(path) == fake.checksum(len(fake.files[path]))
    return fake.requests["GETFILECHECKSUM"], fake.requests["DATA"]


def test_a_datanode_is_asked_for_other_files_as_well(fake: FakeHdfs) -> None:
    """The NameNode's redirection says nothing of the file, and costs as much as the answer."""
    fake.rpc = RPC
    assert alike(fake, "/data/a/3", "/data/b/4", "/data/c/2") == (1, 3)


@pytest.mark.parametrize("rpc", ["", "&_=encrypted"])
def test_a_redirection_of_a_gateway_holds_for_its_file(fake: FakeHdfs, rpc: str) -> None:
    fake.rpc = rpc
    assert alike(fake, "/data/a/3", "/data/b/4") == (2, 2)


@pytest.mark.parametrize("name", ["a b", "a%41", "größe", "a+b"])
def test_the_namenode_writes_the_url_of_an_odd_name(fake: FakeHdfs, name: str) -> None:
    fake.rpc = RPC
    fake.files[f"/data/odd/{name}"] = b"content"
    assert alike(fake, "/data/a/3", f"/data/odd/{name}", "/data/b/4") == (3, 3)


def test_the_namenode_names_a_datanode_anew_before_long(fake: FakeHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one, so that none has to answer for all files."""
    monkeypatch.setattr("status_tool.clients.webhdfs.ALIKE_S", 0.0)
    fake.rpc = RPC
    assert alike(fake, "/data/a/3", "/data/b/4") == (2, 2)


@pytest.mark.parametrize("trouble", [(403, "InvalidToken"), (404, "FileNotFoundException"), (503, "Busy")])
def test_a_datanode_that_does_not_answer_so_is_named_by_the_namenode(fake: FakeHdfs, trouble: tuple[int, str]) -> None:
    """It may not know the NameNode, or the token may have expired: that says nothing about the file."""
    fake.rpc = RPC
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"))
    assert client.checksum("/data/a/3")[0] == ALGORITHM
    fake.trouble["DATA"] = [trouble]
    assert client.checksum("/data/b/4") == fake.checksum(4)
    assert (fake.requests["GETFILECHECKSUM"] > 1, fake.requests["DATA"]) == (True, 3)


@pytest.mark.parametrize("name", ["a b", "a%41", "größe", "a?b", "a#b", "a+b;c"])
def test_a_name_that_a_url_needs_escaped(fake: FakeHdfs, name: str) -> None:
    fake.files[f"/data/odd/{name}"] = b"content"
    (row,) = [row for row in rows(source(fake)) if row["path"].startswith("/data/odd/")]
    assert (row["path"], row["algorithm"], row["state"]) == (f"/data/odd/{name}", ALGORITHM, None)


def test_a_composite_crc_is_compared_whole(fake: FakeHdfs) -> None:
    """HttpFS with COMPOSITE_CRC answers with 4 bytes: cut as an MD5 is, nothing would be left, equal everywhere."""
    fake.checksum = lambda length: ("COMPOSITE-CRC32C", length.to_bytes(4, "big"))
    found = {row["path"]: row for row in rows(source(fake))}
    assert found["/data/a/3"]["checksum"] == "00000003"
    assert len({row["checksum"] for row in found.values()}) == 5


@pytest.mark.parametrize("answer", [("COMPOSITE-CRC32C", b""), (ALGORITHM, bytes(12)), ("ETag", b"abcd"), ("", b"")])
def test_a_checksum_of_another_kind_is_not_compared(fake: FakeHdfs, answer: tuple[str, bytes]) -> None:
    """Unreadable, and it is said why."""
    fake.checksum = lambda length: answer
    found = rows(source(fake))
    assert len(found) == len(fake.files)
    for row in found:
        assert (row["state"], row["checksum"]) == ("unreadable", None)
        assert f"a checksum {answer[0]} of {len(answer[1])} bytes" in row["detail"]


def test_blocks_that_stay_lost_are_waited_for_once(fake: FakeHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """After that no other file waits for them."""
    monkeypatch.setattr(patience, "SETTLING_S", 0.5)
    fake.trouble["DATA"] = [(403, "Fail to get block MD5:")] * 1000
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"))
    with pytest.raises(Refused):
        client.checksum("/data/a/3")
    assert fake.requests["DATA"] > 2
    fake.requests.clear()
    for name in "01":
        with pytest.raises(Refused):
            client.checksum(f"/data/a/{name}")
    assert fake.requests["DATA"] == 2


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        ("FileNotFoundException: File does not exist: {}", "file-unreadable"),
        ("FileNotFoundException: File {} not found.", "file-unreadable"),
        ('AccessControlException: Permission denied: user=me, access=READ, inode="{}"', "file-missing"),
        ("IOException: File {} has no block", "file-missing"),
    ],
)
@pytest.mark.parametrize("name", ["f", "long/" * 80 + "f", "of two\nlines"])
def test_a_file_that_goes_between_its_listing_and_its_checksum_is_not_missing(
    fake: FakeHdfs, refusal: str, code: str, name: str
) -> None:
    """Nobody copies it any more. One that is there, but may not be read, is."""
    path = f"/data/{name}"
    fake.trouble["GETFILECHECKSUM"] = [(404, refusal.format(path))] * 4
    row = listed_row(path, {"length": 5, "modificationTime": 7, "blockSize": 1})
    (gone,) = checked_rows(WebHdfs(HdfsEndpoint((fake.url,), "me"), patience_s=0), [row], deep=False)
    found = judge_file(path, [gone], [], range(0))
    assert (gone["state"], found.code) == ("unreadable", code)
    assert judge_file(path, [], [gone], range(0)).code == "file-extra"


def test_a_refusal_is_the_files_own(fake: FakeHdfs) -> None:
    """A file that may not be read is unreadable with the reason; the others are not touched by it."""
    fake.trouble["GETFILECHECKSUM"] = [(403, "AccessControlException")]
    found = rows(source(fake))
    denied = [row for row in found if row["state"]]
    assert [(row["state"], row["detail"]) for row in denied] == [("unreadable", "AccessControlException it is")]
    assert len(found) == len(fake.files)


def test_a_dead_namenode_is_given_up(fake: FakeHdfs) -> None:
    """With one clear line, after the patience."""
    client = WebHdfs(HdfsEndpoint(("http://127.0.0.1:1",), "me"), patience_s=0.3)
    with pytest.raises(ConnectionFailed, match=r"cannot reach the NameNode at http://127\.0\.0\.1:1"):
        client.status("/")
    with pytest.raises(Refused):
        list(WebHdfs(HdfsEndpoint((fake.url,), "me")).pages("/nothing"))


@pytest.mark.parametrize(("length", "modified"), [(3, 7), (2, 6)])
def test_a_file_that_changes_while_it_is_read_is_not_compared(fake: FakeHdfs, length: int, modified: int) -> None:
    """It was open when it was listed: its checksum is of the whole file, but the content was read up to that length."""
    hdfs = WebHdfs(HdfsEndpoint((fake.url,), "me"))
    fake.files["/data/f"] = b"12"
    listed = listed_row("/data/f", {**fake.status("/data/f", ""), "modificationTime": modified})

    def grow() -> None:
        fake.files["/data/f"] = b"1" * length

    fake.after["CONTENT"] = grow
    (row,) = checked_rows(hdfs, [listed], deep=True)
    assert (row["state"], row["detail"]) == ("open", "changed while it was read")
    assert (row["checksum"], row["crc32c"]) == (None, None)
    fake.files["/data/f"] = b"12"
    (row,) = with_content(hdfs, [listed | {"checksum": "a"}])
    assert (row["state"], row["crc32c"]) == ("open", None)
    fake.files["/data/f"], fake.after = b"12", {}
    (row,) = checked_rows(hdfs, [listed | {"modified_ms": 7}], deep=True)
    assert (row.get("state"), row["crc32c"]) == (None, crc_hex(crcs(b"12")))


def test_a_file_that_was_listed_as_empty_has_no_other_checksum(fake: FakeHdfs) -> None:
    """Only a NameNode's listing takes an open file to be empty: two such files are not alike."""
    hdfs = WebHdfs(HdfsEndpoint((fake.url,), "me"))
    listed = listed_row("/data/f", {**fake.status("/data/f", "")})
    fake.files["/data/f"] = b"12"
    (row,) = checked_rows(hdfs, [listed], deep=False)
    assert row["state"] == "open"
    fake.files["/data/f"], asked = b"", fake.requests["GETFILESTATUS"]
    (row,) = checked_rows(hdfs, [listed], deep=False)
    assert "state" not in row
    fake.checksum = lambda _: ("MD5-of-0MD5-of-0CRC32", bytes(28))
    checked_rows(hdfs, [listed], deep=False)
    assert fake.requests["GETFILESTATUS"] == asked + 1, "it says itself that there is nothing"


def test_the_start_of_a_file(fake: FakeHdfs) -> None:
    """And its whole length; what is left unread does not get into the next answer."""
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"))
    fake.files["/data/long"] = b"0123456789" * 100_000
    for _ in range(2):
        assert client.start_of("/data/long", 4) == (b"0123", 1_000_000)
        assert client.start_of("/data/a/3") == (b"xxx", 3)
    with pytest.raises(Refused):
        client.start_of("/data/nothing")


@pytest.mark.parametrize(
    ("refusal", "shallow"),
    [
        ("NullPointerException", None),
        ("PathIOException: `/data/f': Fail to get block MD5 for LocatedBlock{…}", "unreadable"),
    ],
)
def test_content_settles_a_file_without_a_checksum(
    fake: FakeHdfs, refusal: str, shallow: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused for `dfs.checksum.type` NULL, and for blocks of unlike checksums: `--deep` reads the file.

    By that HDFS refuses lost blocks, too.
    """
    monkeypatch.setattr(patience, "SETTLING_S", 0.5)
    found = []
    for deep in (False, True):
        fake.files = {"/data/f": b"0123456789"}
        fake.trouble = {"DATA": [(500, refusal)] * 999}
        found += rows(source(fake, deep=deep))
    content = crc_hex(crcs(b"0123456789"))
    seen = [(row["state"], row["checksum"], row["crc32c"]) for row in found]
    assert seen == [(shallow, None, None), (None, None, content)]


def test_the_trackers_spool(fake: FakeHdfs) -> None:
    """Rows of every file; none without a folder; a folder that cannot be read is an error, not an empty one."""
    line = {"row": b"key".hex(), "cells": [{"q": b"w".hex(), "v": b"value".hex(), "ts": 7}]}
    fake.files["/spool/a.jsonl"] = (json.dumps(line) + "\n").encode()
    fake.files["/spool/other"] = b"?"
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"), patience_s=0)
    assert [(key, list(cells.values())) for key, cells in read_spool(client, "/spool")] == [(b"key", [(b"value", 7)])]
    assert read_spool(client, "/nowhere") == ()
    fake.refused = {"/spool"}
    with pytest.raises(ConnectionFailed, match="Permission denied"):
        read_spool(client, "/spool")


@pytest.mark.parametrize("name", ["a.jsonl", "a.growing.jsonl"])
def test_a_spool_file_that_does_not_come_in_whole(fake: FakeHdfs, name: str) -> None:
    """Its first rows are not all that it has."""
    line = {"row": b"key".hex(), "cells": []}
    fake.files[f"/spool/{name}"] = 2 * (json.dumps(line) + "\n").encode()
    client = WebHdfs(HdfsEndpoint((fake.url,), "me"), patience_s=0)
    assert len(read_spool(client, "/spool")) == 2
    fake.cut = f"/spool/{name}"
    with pytest.raises(ConnectionFailed, match="run again"):
        read_spool(client, "/spool")


def test_a_spool_that_clusters_share(fake: FakeHdfs) -> None:
    """Rows of another cluster there are none of this one's."""
    for cluster in ("one", "two"):
        line = {"row": cluster.encode().hex(), "cells": []}
        fake.files[f"/spool/{cluster}/a.jsonl"] = (json.dumps(line) + "\n").encode()
    shared = Settings(SiteConfig({"hbase.replicationtable.spool.dir": "/spool"}), webhdfs_option=(fake.url,))
    assert [key for key, _ in spooled(shared, "one", ())] == [b"one"]


def test_rate(fake: FakeHdfs) -> None:
    """15 files at 100 requests a second take at least 15 hundredths."""
    began = time.monotonic()
    rows(source(fake, load=Load(rate=100)))
    assert time.monotonic() - began > 0.15


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_a_rate_holds_over_all_of_a_check(
    fake: FakeHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each request to the NameNode is one that this process has waited for, listing, checksums and content alike."""
    monkeypatch.setattr("status_tool.runs.slave_side.NEAR_ROWS", 0)
    waited, wait = list[int](), RateLimit.wait

    def counting(limit: RateLimit) -> None:
        waited.append(1)
        wait(limit)

    monkeypatch.setattr(RateLimit, "wait", counting)
    (tmp_path / "paths").write_text("/data\n")
    file, at = str(tmp_path / "status"), ["--only", "hdfs", "--conf-dir", str(tmp_path), "--webhdfs"]
    assert main(["run", "-m", "-o", file, "--deep", "-f", str(tmp_path / "paths"), *at, fake.url]) == 0
    fake.checksum = lambda length: ("MD5-of-0MD5-of-512CRC32", bytes(32))
    before = waited_for(fake)
    assert before == len(waited)
    capsys.readouterr()
    other = fake.url.replace("127.0.0.1", "localhost")  # the same one by two names: a check refuses one name
    assert main(["run", "-i", file, "--json", "--deep", "--rate", "1000", *at, other]) == 0, capsys.readouterr().err
    files = json.loads(capsys.readouterr().out)["hdfs"]["files"]
    assert files["match"] == 15
    assert waited_for(fake) == len(waited) > before + 2 * 15


def waited_for(fake: FakeHdfs) -> int:
    """How many requests the NameNode has had, which a rate counts."""
    return sum(number for op, number in fake.requests.items() if op not in ("DATA", "CONTENT"))


class Recorded(Progress):
    """What was counted, by phase, and the total that was named."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, tuple[int, int | None]] = {}

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[Phase]:
        counts = Phase(name, total)
        yield counts
        self.said[name] = (counts.done, counts.total)


def test_an_interrupted_run_is_resumed(fake: FakeHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--resume` requests no checksum again that it has, but that of a changed file; at the end nothing is left."""
    monkeypatch.setattr("status_tool.sources.hdfs_files.FILES_PER_BATCH", 1)
    settings, output = Settings(SiteConfig({}), webhdfs_option=(fake.url,)), tmp_path / "status"
    request = Request("master", 0, hbase=False, hdfs_paths=("/data",))
    taken = 0

    def interrupted(*_: object) -> int:
        nonlocal taken
        taken += 1
        if taken == 8:
            raise KeyboardInterrupt
        return 0

    with monkeypatch.context() as patch:
        patch.setattr("status_tool.runs.write.streams_written_later", interrupted)
        with pytest.raises(Interrupted, match=r"status\.resume: the same command with --resume continues"):
            write_side(settings, request, output, lambda _: None)
    assert not output.exists()
    with sqlite3.connect(journal_path(output)) as left:
        known = left.execute("select count(*) from file").fetchone()[0]
    fake.requests.clear()
    again = Request("master", 0, hbase=False, hdfs_paths=("/data",), files=FileOptions(journal=""))
    shown = Recorded()
    written = write_side(settings, again, output, lambda _: None, progress=shown)
    assert shown.said == {"files": (15, None)}
    assert written.rows["file"] == 15
    assert known > 3
    assert fake.requests["GETFILECHECKSUM"] == 15 - known
    with open_status(output) as file:
        found = [row for batch in file.rows({"file"}) for row in batch.to_pylist()]
    assert all(row["checksum"] for row in found)
    shown = Recorded()
    write_side(settings, again, output, lambda _: None, progress=shown)
    assert shown.said == {"files": (15, 15)}, "of as many as the file before held"
    assert [path.name for path in tmp_path.iterdir()] == ["status"]


def test_checksums_of_another_hdfs_or_side_are_not_resumed(fake: FakeHdfs, tmp_path: Path) -> None:
    """Paths, lengths and times are the same where files were copied with their times; their content need not be."""
    settings, output = Settings(SiteConfig({}), webhdfs_option=(fake.url,)), tmp_path / "status"
    resumed = Request("master", 0, hbase=False, hdfs_paths=("/data",), files=FileOptions(journal=""))
    batches = (batch for part in source(fake).partitions() for batch in source(fake).read(part))
    listed = next(batch for batch in batches if batch["checksum"].null_count == 0)
    for owner, side, asked in (
        (f"master {fake.url}", "master", 14),
        ("master BP-of-another", "master", 15),
        (f"master {fake.url}", "slave", 15),
        (None, "master", 15),
    ):
        journal = Journal(str(journal_path(output)))
        if owner is not None:
            journal.keep_only(owner)
        journal.add(listed.slice(0, 1))
        journal.close()
        fake.requests.clear()
        written = write_side(settings, replace(resumed, side=side), output, lambda _: None)
        assert fake.requests["GETFILECHECKSUM"] == asked, (owner, side)
        said = [notice for notice in written.header.notices if "checksums of 1 file in" in notice]
        assert len(said) == (asked == 15)


def test_an_unknown_pool_does_not_own_checksums(fake: FakeHdfs) -> None:
    """Two file systems may have that in common."""
    for pool, owner in (("A", "A"), ("A,?", fake.url), ("", fake.url)):
        gathered = Snapshot(Header("master", "", 1, 1, hdfs_pool_id=pool), (), (source(fake),))
        assert _journal_owner(gathered) == f"master {owner}"


@pytest.mark.parametrize("pattern", ["", "/*"])
def test_checksums_of_local_files_are_not_resumed(
    fake: FakeHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """A file of HDFS with the path, length and time of a local one took its checksum, unread."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "f").write_bytes(b"x")
    kept = list[str]()

    def add(_: Journal, batch: pa.RecordBatch) -> None:
        kept.extend(row["path"] for row in batch.to_pylist() if row["kind"] == "file")

    monkeypatch.setattr(Journal, "add", add)
    request = Request("master", 0, hbase=False, hdfs_paths=("/data", f"file:{tmp_path}/disk{pattern}"))
    settings = Settings(SiteConfig({}), webhdfs_option=(fake.url,))
    written = write_side(settings, request, tmp_path / "status", lambda _: None)
    assert written.rows["file"] == len(fake.files) + 1
    assert sorted(kept) == sorted(fake.files)


@pytest.mark.parametrize("deep", [True, False])
def test_what_is_resumed_without_deep_has_no_content(fake: FakeHdfs, tmp_path: Path, deep: bool) -> None:
    """FILE had the CRC32C of some files then, and `run -i --deep=all` took it without reading all others' content."""
    journal = Journal(str(tmp_path / "journal"))
    rows_of = source(fake, deep=True).read(Part(("/data/a",), True))
    journal.add(next(rows_of))
    journal.close()
    found = rows(source(fake, deep=deep, journal=str(tmp_path / "journal")))
    with_crc = {row["path"] for row in found if row["crc32c"]}
    assert with_crc == {path for path, data in fake.files.items() if data and deep}


def test_an_interruption_once_file_is_there_does_not_deny_it(
    fake: FakeHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is whole, so that there is nothing to resume; an older file of that name is not taken for it."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("status_tool.runs.write.prune_witnesses", interrupted)
    output = tmp_path / "status"
    (tmp_path / "paths").write_text("/data\n")
    where = ("--only", "hdfs", "-f", str(tmp_path / "paths"), "--webhdfs", fake.url)
    assert main(["run", "-m", "-o", str(output), *where]) == 130
    assert capsys.readouterr().err.strip().splitlines()[-1] == "status-tool: interrupted"
    with open_status(output) as file:
        assert file.counts["file"] == 15
    assert not journal_path(output).exists()
    monkeypatch.setattr("status_tool.runs.write.counting", interrupted)
    assert main(["run", "-m", "-o", str(output), *where]) == 130
    assert "nothing was written" in capsys.readouterr().err


def test_a_long_path_hides_no_reason(fake: FakeHdfs) -> None:
    """An error is one line of bounded length."""
    folder = f"/data/{'x' * 400}"
    fake.files, fake.refused = {f"{folder}/f": b"x"}, {folder}
    with pytest.raises(ConnectionFailed) as raised:
        rows(source(fake, tolerant=False))
    assert "xx… cannot be listed: Permission denied" in str(raised.value)[:300]


def test_a_run_that_fails_says_what_it_keeps(
    fake: FakeHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2, with the failure and how to go on; the checksums are there."""
    for name in ("FILES_PER_BATCH", "PARTS", "SPLIT_PAGES"):
        monkeypatch.setattr(f"status_tool.sources.hdfs_files.{name}", 1)
    monkeypatch.setattr("status_tool.gather.parallel_reading.THREADS", 1)
    fake.refused = {"/data/c"}
    paths, output = tmp_path / "paths", tmp_path / "status"
    paths.write_text("/data\n")
    where = ("--only", "hdfs", "-f", str(paths), "--webhdfs", fake.url)
    assert main(["run", "-o", str(output), *where]) == EXIT_ERROR
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert "/data/c cannot be listed" in said
    assert f"stay in {journal_path(output)}: the same command with --resume continues" in said
    assert not output.exists()
    fake.refused.clear()
    assert main(["run", "-o", str(output), *where, "--resume"]) == 0
    assert output.exists()


def test_a_folder_that_cannot_be_listed_is_no_news_to_resume(fake: FakeHdfs, tmp_path: Path) -> None:
    """Its row has no length to look it up by."""
    journal = Journal(str(tmp_path / "journal"))
    for part in source(fake).partitions():
        for batch in source(fake).read(part):
            journal.add(batch)
    journal.close()
    fake.refused.add("/data/a")
    fake.requests.clear()
    found = {row["path"]: row for row in rows(source(fake, journal=str(tmp_path / "journal")))}
    assert (found["/data/a"]["state"], fake.requests["GETFILECHECKSUM"]) == ("unreadable", 0)
    assert len(found) == 11


def test_which_client_reads(fake: FakeHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop's own where its addresses are known, the files are many and it gets an answer; else WebHDFS, and why."""
    web, rpc = fake.url.removeprefix("http://"), "127.0.0.1:1"
    site = {"fs.defaultFS": f"hdfs://{rpc}", "dfs.namenode.http-address": web, "dfs.namenode.rpc-address": rpc}
    said: list[str] = []

    def chosen(client: HdfsClient, *options: str, **site: str) -> str:
        settings = Settings(SiteConfig(site), webhdfs_option=options)
        return str(files_endpoint(settings, client, Load(rate=100), ("/data",), Exclusions(), said.append))

    with no_process_left():
        assert chosen(HdfsClient.AUTO, **site) == fake.url
        monkeypatch.setattr("status_tool.sources.hdfs_files.LARGE_FILES", 10)
        (tmp_path / "root").mkdir()
        command = (sys.executable, "-m", "tests.fake_hdfs_reader", str(tmp_path / "root"))
        with monkeypatch.context() as patch:
            patch.setattr("status_tool.clients.hdfs_native._command", lambda: (command, None))
            patch.setenv("PYTHONPATH", str(REPOSITORY))
            assert chosen(HdfsClient.AUTO, **site) == f"hdfs://{rpc}"
            assert chosen(HdfsClient.WEBHDFS, **site) == fake.url
    assert said == []
    asked = fake.requests.total()
    assert chosen(HdfsClient.NATIVE, **site) == f"hdfs://{rpc}"
    assert chosen(HdfsClient.AUTO, fake.url, **site) == fake.url
    assert fake.requests.total() == asked
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert chosen(HdfsClient.AUTO, **site) == fake.url
    (why,) = said
    assert why.startswith(f"reading files over WebHDFS, as Hadoop's own client cannot: JAVA_HOME is {tmp_path}")


def test_a_file_system_is_known_by_its_pool(fake: FakeHdfs) -> None:
    """A file tells it where JMX does not; two file systems may have one address, each on its own host."""
    settings = Settings(SiteConfig({}), webhdfs_option=(fake.url,))
    request = Request("master", 0, hbase=False, hdfs_paths=("/data",))
    fake.refused = {"/data/c/1"}
    for pool, key, asked in (("", fake.url, 1), ("BP-1", f"{fake.url} (BP-1)", 2)):
        fake.pool = pool
        fake.requests.clear()
        header = snapshot(settings, request, lambda _: None).header
        assert (header.hdfs_pool_id, header.cluster_key) == (pool, key)
        assert fake.requests["GET_BLOCK_LOCATIONS"] == asked


def test_a_routers_pools_are_those_of_its_namenodes(fake: FakeHdfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bean has them as Java prints a set, `[BP-1]`, which was never equal to `BP-1`."""
    endpoint, settings = HdfsEndpoint((fake.url,), "me"), Settings(SiteConfig({}))
    master, slave = (Header(side, "", 1, 1, hdfs_pool_id="BP-1") for side in ("master", "slave"))
    for told, pools in (("[BP-1]", "BP-1"), ("[BP-2, BP-1]", "BP-1,BP-2"), ("BP-1", "BP-1")):
        bean = {"BlockPoolId": told, "ClusterId": told.replace("BP", "CID")}
        monkeypatch.setattr(WebHdfs, "beans", lambda *_, bean=bean: iter([bean]))
        cluster, pool = identity_of(settings, endpoint, ("/data",), Exclusions(), Load())
        assert (sorted(cluster.split(",")), pool) == (pools.replace("BP", "CID").split(","), pools)
        assert same_hdfs(master, replace(slave, hdfs_pool_id=pool))


@pytest.mark.parametrize("is_deep", [True, False])
def test_a_file_tells_the_pool_in_a_tree_of_any_shape(
    fake: FakeHdfs, monkeypatch: pytest.MonkeyPatch, is_deep: bool
) -> None:
    """Below more folders than are listed, or beside as many without content: neither order alone finds both."""
    monkeypatch.setattr("status_tool.sources.hdfs_files.LOOK_PAGES", 30)
    monkeypatch.setitem(globals(), "PAGE", 100)
    fake.pool = "BP-1"
    if is_deep:
        fake.files = {f"/data/{database:02}/table/day/f": b"x" for database in range(20)}
    else:
        fake.files = {f"/data/{folder:02}/{n}/empty": b"" for folder in range(1, 20) for n in range(5)}
        fake.files["/data/00/f"] = b"x"
    assert pool_of(webhdfs(HdfsEndpoint((fake.url,), "me")), ("/data",), Exclusions()) == "BP-1"


def test_a_slaves_files_in_hdfs_do_not_stand_for_those_on_its_disk(
    fake: FakeHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--map-path /data=file:/copy` asks for the disk's /copy: HDFS may have one, too, which was taken for it."""
    monkeypatch.setattr("status_tool.gather.hdfs_side.TEMPORARY_FOLDERS", ())
    (tmp_path / "here").write_bytes(b"x")
    fake.files |= {f"{tmp_path}/lost": b"y"}
    settings = Settings(SiteConfig({}), webhdfs_option=(fake.url,))
    for disk in (f"file:{tmp_path}", f"file:{tmp_path}/*"):
        whole = Request("slave", 0, hbase=False, hdfs_paths=("/", disk))
        found = [row["path"] for row in rows(*snapshot(settings, whole, lambda _: None).sources)]
        assert sorted(found) == sorted([f"{tmp_path}/here", *({*fake.files} - {f"{tmp_path}/lost"})])
    for root in (f"{tmp_path}", f"{tmp_path}/lost", f"{tmp_path}/*"):
        for disk in (f"file:{tmp_path}", f"file:{tmp_path}/*"):
            both = replace(whole, hdfs_paths=(root, disk))
            with pytest.raises(UsageError, match=re.escape(f"{root} in HDFS and file:{tmp_path} ")):
                snapshot(settings, both, lambda _: None)


def test_without_resume_nothing_old_is_used(fake: FakeHdfs, tmp_path: Path) -> None:
    """A journal that was left behind counts only on request."""
    output = tmp_path / "status"
    journal_path(output).write_bytes(b"")
    request = Request("master", 0, hbase=False, hdfs_paths=("/data",))
    settings = Settings(SiteConfig({}), webhdfs_option=(fake.url,))
    write_side(settings, request, output, lambda _: None)
    assert fake.requests["GETFILECHECKSUM"] == 15
    assert [path.name for path in tmp_path.iterdir()] == ["status"]


@pytest.mark.parametrize("resume", [None, ""])
def test_two_runs_that_write_one_file(fake: FakeHdfs, tmp_path: Path, resume: str | None) -> None:
    """The second one is refused, and leaves the first one's checksums alone."""
    output, request = tmp_path / "status", Request("master", 0, hbase=False, hdfs_paths=("/data",))
    settings = Settings(SiteConfig({}), webhdfs_option=(fake.url,))
    first = Journal(str(journal_path(output)))
    first.keep_only("first")
    with pytest.raises(OutputError, match=r"in use: another run writes the same FILE"):
        write_side(settings, replace(request, files=FileOptions(journal=resume)), output, lambda _: None)
    assert first.keep_only("first") == 0
    first.close()
    write_side(settings, request, output, lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["status"]


def test_layouts() -> None:
    """As they are written on the command line."""
    assert Layout.parse("1048576:1024:CRC32") == Layout(1 << 20, 1024, "CRC32")
    assert Layout.parse("512") == Layout(512, 512, "CRC32C")


def test_stopped_clients_are_forgotten() -> None:
    """A watch with Kerberos has a new token in each round."""
    shared: SharedClients[WebHdfs] = SharedClients()
    for number in range(5):
        endpoint = HdfsEndpoint(("http://127.0.0.1:1",), "me", token=str(number))
        shared.of(endpoint, partial(WebHdfs, endpoint)).stop()
    assert len(shared._clients) == 1
