"""Which NameNodes get requests: never those of another cluster that the site files name as well."""

from __future__ import annotations

import glob
import itertools
import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from status_tool.cli.main import main
from status_tool.clients.config import SPOOL_DIR_KEY, Settings
from status_tool.clients.nameservices import namenode_urls, rpc_filesystem, rpc_properties
from status_tool.clients.sitefiles import SiteConfig
from status_tool.errors import ConfigurationError
from status_tool.gather.hdfs_side import exclusions_of
from status_tool.status_file.reader import open_status
from tests.http_server import Answer, ended, serve
from tests.lab.config import write_site

Site = dict[str, str]
HTTP = "dfs.namenode.http-address"
RPC = "dfs.namenode.rpc-address"


def ha(name: str, *hosts: str) -> Site:
    """A name service with as many NameNodes."""
    nodes = {f"nn{i}": host for i, host in enumerate(hosts)}
    return {
        f"dfs.ha.namenodes.{name}": ", ".join(nodes),
        **{f"{HTTP}.{name}.{node}": f"{host}:9870" for node, host in nodes.items()},
        **{f"{RPC}.{name}.{node}": f"{host}:8020" for node, host in nodes.items()},
    }


def federated(name: str, host: str) -> Site:
    """A name service with one NameNode."""
    return {f"{HTTP}.{name}": f"{host}:9870", f"{RPC}.{name}": f"{host}:8020"}


BOTH_HA = {**ha("master", "m1", "m2"), **ha("slave", "s1", "s2")}
BOTH_FEDERATED = {**federated("master", "m"), **federated("slave", "s")}
SLAVES = ("http://s1:9870", "http://s2:9870")


@pytest.mark.parametrize("order", ["master,slave", "slave, master"])
@pytest.mark.parametrize(
    ("site", "expected"),
    [
        (BOTH_HA | {"fs.defaultFS": "hdfs://slave"}, SLAVES),
        (BOTH_HA | {"fs.default.name": "hdfs://slave/"}, SLAVES),
        (BOTH_HA | {"dfs.internal.nameservices": "slave"}, SLAVES),
        (BOTH_HA | {"fs.defaultFS": "hdfs://slave", "dfs.internal.nameservices": "master"}, SLAVES),
        (BOTH_HA | {"fs.defaultFS": "viewfs://all", "dfs.internal.nameservices": "slave"}, SLAVES),
        (BOTH_HA | {"fs.defaultFS": "hdfs://s2:8020"}, SLAVES),
        (BOTH_FEDERATED | {"fs.defaultFS": "hdfs://slave"}, ("http://s:9870",)),
        (BOTH_FEDERATED | {"fs.defaultFS": "hdfs://s:8020"}, ("http://s:9870",)),
        (BOTH_FEDERATED | {"fs.defaultFS": "hdfs://s"}, ("http://s:9870",)),
        # The slave has no name service; the site names the master's only, and a plain address.
        (ha("master", "m1", "m2") | {"fs.defaultFS": "hdfs://s:8020", HTTP: "s:9870"}, ("http://s:9870",)),
        (
            ha("master", "m1") | {"fs.defaultFS": "hdfs://s:8020", RPC: "s:8020", HTTP: "0.0.0.0:50070"},
            ("http://s:50070",),
        ),
        (BOTH_HA | {"fs.defaultFS": "webhdfs://other:14000"}, ("http://other:14000",)),
    ],
)
def test_one_of_two(order: str, site: Site, expected: tuple[str, ...]) -> None:
    """Whatever order the site files name them in."""
    assert namenode_urls(site | {"dfs.nameservices": order}) == expected


@pytest.mark.parametrize("order", ["master,slave", "slave,master"])
@pytest.mark.parametrize(
    ("site", "words"),
    [
        ({}, ["fs.defaultFS", "dfs.internal.nameservices"]),
        ({"dfs.internal.nameservices": "slave,master"}, ["fs.defaultFS"]),
        ({"fs.defaultFS": "viewfs://all"}, ["viewfs://all", "dfs.internal.nameservices"]),
        ({"fs.defaultFS": "file:///"}, ["file:///", "dfs.internal.nameservices"]),
        ({"fs.defaultFS": "s3a://bucket", HTTP: "m:9870"}, ["s3a://bucket", "dfs.internal.nameservices"]),
        ({"fs.defaultFS": "viewfs://all", "dfs.internal.nameservices": "master,slave"}, ["viewfs://all"]),
        ({"fs.defaultFS": "hdfs://other:8020"}, ["hdfs://other:8020", HTTP]),
        ({"fs.defaultFS": "hdfs://other:8020", HTTP: "m1:9870"}, ["hdfs://other:8020"]),
    ],
)
def test_what_is_ambiguous_is_refused(order: str, site: Site, words: list[str]) -> None:
    """With the settings that would decide, and the option that needs none."""
    with pytest.raises(ConfigurationError) as caught:
        namenode_urls(BOTH_HA | site | {"dfs.nameservices": order})
    assert all(word in str(caught.value) for word in [*words, "--webhdfs"])


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        ({}, ()),
        ({HTTP: "nn:9870"}, ("http://nn:9870",)),
        ({"fs.defaultFS": "hdfs://nn:8020", HTTP: "127.0.0.1:9999"}, ("http://127.0.0.1:9999",)),
        ({"fs.defaultFS": "hdfs://nn:8020"}, ("http://nn:9870",)),
        ({"fs.defaultFS": "hdfs://nn:8020", HTTP: "0.0.0.0:50070"}, ("http://nn:50070",)),
        ({"fs.defaultFS": "hdfs://nn", "dfs.http.policy": "HTTPS_ONLY"}, ("https://nn:9871",)),
        ({"dfs.nameservices": "ns", **federated("ns", "a")}, ("http://a:9870",)),
        ({"dfs.nameservices": "ns", HTTP: "a:9870"}, ("http://a:9870",)),
        ({"dfs.nameservices": "ns", **ha("ns", "a", "b")}, ("http://a:9870", "http://b:9870")),
        ({"dfs.nameservices": "ns", f"{RPC}.ns": "a:8020"}, ("http://a:9870",)),
        ({"dfs.http.policy": "HTTPS_ONLY", "dfs.namenode.https-address": "nn:9871"}, ("https://nn:9871",)),
    ],
)
def test_where_only_one_is_named(site: Site, expected: tuple[str, ...]) -> None:
    """HA, federation, one NameNode, and Hadoop's defaults."""
    assert namenode_urls(site) == expected


def test_a_name_service_without_addresses() -> None:
    """The key that is missing is named."""
    site = {"dfs.nameservices": "a,b", "fs.defaultFS": "hdfs://a", "dfs.ha.namenodes.a": "x"}
    with pytest.raises(ConfigurationError, match=r"dfs\.namenode\.http-address\.a\.x"):
        namenode_urls(site)


@pytest.mark.parametrize(
    ("root", "options", "expected"),
    [
        ("hdfs://slave/hbase", (), ("/hbase",)),
        ("hdfs://s2:8020/hbase", (), ("/hbase",)),
        ("hdfs:///hbase", (), ("/hbase",)),
        ("/hbase", (), ("/hbase",)),
        ("hdfs://master/hbase", (), ()),
        ("s3a://bucket/hbase", (), ()),
        ("hdfs://unknown/hbase", (), ("/hbase",)),
        ("hdfs://master/hbase", ("http://n:1",), ("/hbase",)),
    ],
)
def test_only_hbases_own_folder_is_left_out(root: str, options: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """A folder of the same path in another HDFS is a user's; where that is not certain, it counts as HBase's."""
    site = BOTH_HA | {"dfs.nameservices": "slave,master", "fs.defaultFS": "hdfs://slave", "hbase.rootdir": root}
    assert Settings(SiteConfig(site), webhdfs_option=options).hbase_folders == expected


WALS = ("/own/WALs", "/own/oldWALs", "/own/MasterData", "/own/corrupt")


@pytest.mark.parametrize(
    ("folder", "options", "expected"),
    [
        ("hdfs://slave/own", (), WALS),
        ("/own/", (), WALS),
        ("hdfs://master/own", (), ()),
        ("s3a://bucket/own", (), ()),
        ("hdfs://master/own", ("http://n:1",), WALS),
    ],
)
def test_wals_outside_of_hbases_root_are_left_out(
    folder: str, options: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """They were checked as a user's files, which no slave has. What else is in that folder may be a user's."""
    site = BOTH_HA | {"dfs.nameservices": "slave,master", "fs.defaultFS": "hdfs://slave", "hbase.wal.dir": folder}
    settings = Settings(SiteConfig(site | {"hbase.rootdir": "hdfs://slave/hbase"}), webhdfs_option=options)
    assert settings.hbase_folders == ("/hbase", *expected)


UUID = "????????-????-4???-[89ab]???-????????????"


@pytest.mark.parametrize(
    ("folder", "options", "expected"),
    [
        ("", (), ()),
        ("hdfs://slave/own", (), (f"/own/{UUID}",)),
        ("/own/", (), (f"/own/{UUID}",)),
        ("/", (), (f"/{UUID}",)),
        ("/own[1]", (), (f"/own[[]1]/{UUID}",)),
        ("hdfs://master/own", (), ()),
        ("hdfs://master/own", ("http://n:1",), (f"/own/{UUID}",)),
    ],
)
def test_spools_outside_of_hbases_root_are_left_out(
    folder: str, options: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """They were checked as a user's files, which no slave has. What else is in that folder may be a user's."""
    site = BOTH_HA | {"dfs.nameservices": "slave,master", "fs.defaultFS": "hdfs://slave", SPOOL_DIR_KEY: folder}
    settings = Settings(SiteConfig(site | {"hbase.rootdir": "hdfs://slave/hbase"}), webhdfs_option=options)
    assert settings.spool_globs == expected
    leave_out = exclusions_of(settings, ()).leave_out
    for parent in {"/own", "/own[1]", ""}:
        spool = f"{parent}/{uuid.uuid4()}"
        assert leave_out(spool) is (f"{glob.escape(parent)}/{UUID}" in expected)
        assert not any(map(leave_out, (parent, f"{parent}/mine", f"{parent}/sub{spool}", f"{spool}-mine")))


def test_hbase_root_elsewhere() -> None:
    """WALs and spool are looked for on the NameNodes of HBase's root, not on those of `fs.defaultFS`."""
    site = BOTH_HA | {"dfs.nameservices": "slave,master", "fs.defaultFS": "hdfs://slave"}

    def settings(**more: str) -> Settings:
        return Settings(SiteConfig(site | {key.replace("_", "."): value for key, value in more.items()}))

    assert settings(hbase_rootdir="hdfs://slave/hbase").wal_webhdfs() == SLAVES
    assert settings(hbase_rootdir="hdfs:///hbase").wal_webhdfs() == SLAVES
    assert settings(hbase_rootdir="/hbase").spool_webhdfs() == SLAVES
    other = settings(hbase_rootdir="hdfs://master/hbase")
    assert other.wal_webhdfs() == other.spool_webhdfs() == ("http://m1:9870", "http://m2:9870")
    assert other.webhdfs() == SLAVES
    assert (
        settings(hbase_rootdir="hdfs://slave/hbase", hbase_wal_dir="hdfs://master/w").wal_webhdfs()[0]
        == "http://m1:9870"
    )
    with pytest.raises(ConfigurationError, match="s3a://b/hbase is not an HDFS"):
        settings(hbase_rootdir="s3a://b/hbase").wal_webhdfs()


# -- requests counted ----------------------------------------------------------------------------------------


@dataclass
class FakeNameNode:
    """One file, and a count of its requests. One without a name does not identify its HDFS."""

    name: str
    requests: Counter[str] = field(default_factory=Counter)
    standby: set[str] = field(default_factory=set)
    """Operations that are answered with StandbyException, once each."""
    port: int = 0

    def answer(self, op: str, path: str, query: Mapping[str, list[str]]) -> tuple[int, Any]:
        self.requests[op] += 1
        if op in self.standby:
            self.standby.remove(op)
            return 403, {"RemoteException": {"exception": "StandbyException", "message": "not me"}}
        status = {"pathSuffix": "", "type": "DIRECTORY", "length": 0, "modificationTime": 7, "blockSize": 1024}
        entry = {**status, "pathSuffix": "file", "type": "FILE", "length": 3}
        match op:
            case "jmx":
                bean = {"ClusterId": f"CID-{self.name}", "BlockPoolId": f"BP-{self.name}"}
                return 200, {"beans": [bean] if self.name else []}
            case "GETFILESTATUS":
                return 200, {"FileStatus": status}
            case "LISTSTATUS_BATCH":
                entries = [entry] if path.rstrip("/") in ("", "/data") else []
                listing = {"FileStatuses": {"FileStatus": entries}}
                return 200, {"DirectoryListing": {"partialListing": listing, "remainingEntries": 0}}
            case "DATA":
                return 200, {
                    "FileChecksum": {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": bytes(28).hex(), "length": 28}
                }
        return 200, {"Location": f"http://127.0.0.1:{self.port}/webhdfs/v1{path}?op=DATA"}


@pytest.fixture
def namenodes() -> Iterator[dict[str, FakeNameNode]]:
    """Two of the master, two of the slave."""
    nodes = {name: FakeNameNode(name[:-1]) for name in ("master0", "master1", "slave0", "slave1")}
    with ended(*(_serve(node) for node in nodes.values())):
        yield nodes


def _serve(node: FakeNameNode) -> ThreadingHTTPServer:
    def answer(request: BaseHTTPRequestHandler) -> Answer:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        op = "jmx" if parts.path == "/jmx" else query["op"][0]
        status, found = node.answer(op, unquote(parts.path.removeprefix("/webhdfs/v1")), query)
        return status, {}, json.dumps(found).encode()

    server = serve(answer)
    node.port = server.server_port
    return server


def two_sites(nodes: Mapping[str, FakeNameNode], order: str, **more: str) -> Site:
    """A site file that names both clusters."""
    site = {"dfs.nameservices": order}
    for name in ("master", "slave"):
        site[f"dfs.ha.namenodes.{name}"] = "nn0,nn1"
        site |= {f"{HTTP}.{name}.nn{i}": f"127.0.0.1:{nodes[f'{name}{i}'].port}" for i in (0, 1)}
    return site | {key.replace("_", "."): value for key, value in more.items()}


@pytest.mark.parametrize(
    ("site", "expected"),
    [
        (BOTH_HA | {"dfs.nameservices": "master,slave", "fs.defaultFS": "hdfs://slave"}, "hdfs://slave"),
        (BOTH_HA | {"dfs.nameservices": "master,slave", "dfs.internal.nameservices": "slave"}, "hdfs://slave"),
        (BOTH_HA | {"dfs.nameservices": "master,slave", "fs.defaultFS": "hdfs://s2:8020"}, "hdfs://slave"),
        (BOTH_HA | {"dfs.nameservices": "master,slave", "fs.defaultFS": "hdfs://s2"}, "hdfs://slave"),
        (BOTH_HA | {"dfs.nameservices": "master,slave"}, None),
        (BOTH_HA | {"fs.defaultFS": "webhdfs://slave"}, None),
        (BOTH_HA | {"fs.defaultFS": "s3a://b", "dfs.internal.nameservices": "slave"}, "hdfs://slave"),
        (BOTH_FEDERATED | {"dfs.nameservices": "master,slave", "fs.defaultFS": "hdfs://slave"}, "hdfs://s:8020"),
        ({"fs.defaultFS": "hdfs://user@n:9000/"}, "hdfs://n:9000"),
        ({"fs.defaultFS": "hdfs://n"}, "hdfs://n"),
        ({"fs.defaultFS": "hdfs:///", RPC: "n:9000"}, "hdfs://n:9000"),
        ({"dfs.nameservices": "a", RPC: "n:9000"}, "hdfs://n:9000"),
        ({RPC: "n:9000"}, "hdfs://n:9000"),
        ({RPC: "0.0.0.0:9000"}, None),
        ({HTTP: "n:9870"}, None),
        ({}, None),
        ({"fs.defaultFS": "hdfs://a", "dfs.nameservices": "a", "dfs.ha.namenodes.a": "x,y", f"{RPC}.a.x": "n:1"}, None),
    ],
)
def test_rpc_addresses(site: Site, expected: str | None) -> None:
    """The file system that Hadoop's own client opens, only where all that it takes is known."""
    assert rpc_filesystem(SiteConfig(site)) == expected


MASTERS = BOTH_HA | {"dfs.nameservices": "master,slave", "fs.defaultFS": "hdfs://master"}
VIEW = {"fs.defaultFS": "viewfs://all", "fs.viewfs.mounttable.all.link./data": "hdfs://master/data"}


@pytest.mark.parametrize(
    ("site", "web", "listed", "elsewhere"),
    [
        (
            MASTERS,
            "",
            "/d hdfs:///d file:///d hdfs://master/d hdfs://MASTER/d hdfs://m2:8020/d hdfs://m2/d webhdfs://m1:9870/d",
            "hdfs://slave/d hdfs://s1:8020/d hdfs://other/d webhdfs://s1:9870/d viewfs:///d viewfs://all/d s3a://b/d",
        ),
        (
            {"fs.defaultFS": "hdfs://me@n:8020", HTTP: "n:9870"},
            "",
            "hdfs://n/d webhdfs://n:9870/d",
            "hdfs://other:8020/d hdfs://n:9000/d hdfs://[n/d",
        ),
        (MASTERS | VIEW, "", "viewfs://all/d viewfs:///d /d", "hdfs://master/d hdfs:///d viewfs://other/d"),
        (
            BOTH_HA | {"fs.defaultFS": "viewfs://all", "dfs.internal.nameservices": "slave"},
            "",
            "hdfs://slave/d viewfs://all/d",
            "hdfs://master/d viewfs://other/d",
        ),
        (MASTERS, "http://s2:14000", "hdfs://slave/d hdfs://s2/d hdfs:///d", "hdfs://master/d hdfs://other/d"),
        ({}, "http://n:9870", "hdfs://n:8020/d", "hdfs://m:8020/d viewfs://all/d hdfs://[n/d"),
        ({"dfs.nameservices": "a"}, "http://n:9870", "/d", "hdfs://a/d"),
    ],
)
def test_a_root_of_another_hdfs_is_refused(site: Site, web: str, listed: str, elsewhere: str) -> None:
    """Nobody would notice that the same path of another one was read instead."""
    settings = Settings(SiteConfig(site), webhdfs_option=(web,) if web else ())
    settings.refuse_elsewhere(listed.split())
    for root in elsewhere.split():
        with pytest.raises(
            ConfigurationError, match=r"may be in another HDFS than the one that is read, .* or write /d"
        ):
            settings.refuse_elsewhere([root])


def test_hadoops_client_finds_every_name_service() -> None:
    """It goes by `dfs.nameservices`, and takes a name for a host where no proxy provider is set."""
    site = ha("a", "n", "m") | {"dfs.internal.nameservices": "b", "dfs.client.failover.proxy.provider.a": "their.own"}
    found = rpc_properties(SiteConfig(site | ha("b", "o")))
    assert found["dfs.nameservices"] == "b,a"
    assert found["dfs.client.failover.proxy.provider.a"] == "their.own"
    assert found["dfs.client.failover.proxy.provider.b"].endswith(".ConfiguredFailoverProxyProvider")
    assert "dfs.nameservices" not in rpc_properties(SiteConfig({RPC: "n:1"}))


def test_hadoops_client_reads_nothing_stale_from_an_observer() -> None:
    """It would go by what was there at its first request; 0 lets it catch up before each."""
    period = "dfs.client.failover.observer.auto-msync-period"
    site = ha("a", "n", "m") | {
        "dfs.client.failover.proxy.provider.a": "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProvider",
        f"{period}.a": "1h",
    }
    found = rpc_properties(SiteConfig(site | ha("b", "o")))
    assert (found[f"{period}.a"], found[f"{period}.b"]) == ("0", "0")


OPERATIONS = ("GETFILESTATUS", "LISTSTATUS_BATCH", "GETFILECHECKSUM")


@pytest.mark.parametrize(
    ("order", "chosen_by", "standby"),
    list(
        itertools.product(
            ["master,slave", "slave,master"],
            [{"fs_defaultFS": "hdfs://slave"}, {"fs_defaultFS": "viewfs://v", "dfs_internal_nameservices": "slave"}],
            [(), OPERATIONS],
        )
    ),
)
def test_the_other_cluster_gets_no_request(
    namenodes: dict[str, FakeNameNode], order: str, chosen_by: Site, standby: tuple[str, ...], tmp_path: Path
) -> None:
    """A run on the slave asks the slave's NameNodes only, also when they are standing by for a moment.

    Both of them for listing and checksums; for the first look, which has no patience, one of them.
    """
    write_site(tmp_path / "conf" / "hdfs-site.xml", two_sites(namenodes, order, **chosen_by))
    namenodes["slave0"].standby = set(standby)
    namenodes["slave1"].standby = set(standby) - {"GETFILESTATUS"}
    output = tmp_path / "slave.status"
    arguments = ["run", "-o", str(output), "--only", "hdfs", "--conf-dir", str(tmp_path / "conf")]
    assert main(arguments) == 0
    assert all(namenodes[name].standby == set() for name in ("slave0", "slave1"))
    assert namenodes["slave0"].requests.total() > 0
    assert {name: node.requests.total() for name, node in namenodes.items() if name.startswith("master")} == {
        "master0": 0,
        "master1": 0,
    }
    with open_status(output) as written:
        assert written.counts["file"] == 1


def test_a_root_of_another_hdfs_gets_no_request(
    namenodes: dict[str, FakeNameNode], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the master, and on the right of `--map-path`; on the slave the list of `-f` may be the master's."""
    write_site(tmp_path / "conf" / "hdfs-site.xml", two_sites(namenodes, "master,slave", fs_defaultFS="hdfs://slave"))
    (tmp_path / "paths").write_text("hdfs://slave/\nhdfs://master/\n")
    output = str(tmp_path / "f.status")
    here = ["--only", "hdfs", "--conf-dir", str(tmp_path / "conf")]
    paths, moved = ["-f", str(tmp_path / "paths")], ["--map-path", "/=hdfs://master/"]
    for run in (["-m", "-o", output, *paths], ["-m", "-o", output, *paths, "--explain"], ["-i", output, *moved]):
        assert main(["run", *run, *here]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("status-tool: hdfs://master/ may be in another HDFS than the one that is read"), line
    assert sum(node.requests.total() for node in namenodes.values()) == 0
    assert main(["run", "-o", output, *paths, *here]) == 0


@pytest.mark.parametrize("order", ["master,slave", "slave,master"])
def test_no_request_where_it_is_not_known(
    namenodes: dict[str, FakeNameNode], order: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before any request is sent; nothing is written."""
    write_site(tmp_path / "conf" / "hdfs-site.xml", two_sites(namenodes, order))
    output = tmp_path / "slave.status"
    assert main(["run", "-o", str(output), "--only", "hdfs", "--conf-dir", str(tmp_path / "conf")]) == 2
    assert "fs.defaultFS" in capsys.readouterr().err
    assert not output.exists()
    assert sum(node.requests.total() for node in namenodes.values()) == 0


# -- identity and age ----------------------------------------------------------------------------------------


def written(nodes: Mapping[str, FakeNameNode], name: str, folder: Path, *letters: str) -> Path:
    """A status of the HDFS half of a cluster."""
    node, output = nodes[f"{name}0"], folder / f"{name}{len(letters)}.status"
    url = f"http://127.0.0.1:{node.port}"
    assert main(["run", *letters, "-o", str(output), "--only", "hdfs", "--webhdfs", url]) == 0
    return output


def test_a_status_tells_which_hdfs_it_is_of(namenodes: dict[str, FakeNameNode], tmp_path: Path) -> None:
    """By what the NameNode says of itself; nothing where it does not, as behind HttpFS."""
    with open_status(written(namenodes, "slave", tmp_path)) as status:
        assert (status.header.hdfs_cluster_id, status.header.hdfs_pool_id) == ("CID-slave", "BP-slave")
    namenodes["slave0"].name = ""
    with open_status(written(namenodes, "slave", tmp_path)) as status:
        assert (status.header.hdfs_cluster_id, status.header.hdfs_pool_id) == ("", "")


def test_every_namenode_of_a_side_tells_which_hdfs_it_is_of(namenodes: dict[str, FakeNameNode], tmp_path: Path) -> None:
    """Where a site file leads elsewhere for the second one, the first one's was the identity of all files."""
    site = two_sites(namenodes, "master,slave", fs_defaultFS="hdfs://slave")
    site |= {f"{HTTP}.slave.nn1": site[f"{HTTP}.master.nn0"]}
    write_site(tmp_path / "conf" / "hdfs-site.xml", site)
    namenodes["slave0"].standby = {"GETFILESTATUS"}
    output = tmp_path / "slave.status"
    assert main(["run", "-o", str(output), "--only", "hdfs", "--conf-dir", str(tmp_path / "conf")]) == 0
    with open_status(output) as status:
        assert status.header.hdfs_pool_id == "BP-master,BP-slave"


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_the_same_hdfs_twice_is_refused(
    namenodes: dict[str, FakeNameNode], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From files and live, through other addresses too: what counts is what the NameNode says."""
    namenodes["slave0"].name = "master"
    ours, theirs = written(namenodes, "master", tmp_path, "-m", "--all-files"), written(namenodes, "slave", tmp_path)
    live = f"http://127.0.0.1:{namenodes['slave0'].port}"
    for arguments in (["--slave-status", str(theirs)], ["--only", "hdfs", "--webhdfs", live]):
        capsys.readouterr()
        assert main(["run", "-i", str(ours), *arguments]) == 2
        assert "same HDFS (cluster CID-master, block pool BP-master)" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize("known", [True, False])
def test_different_or_not_known(
    namenodes: dict[str, FakeNameNode], tmp_path: Path, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    """Two that differ are compared; where one does not say, that is reported."""
    if not known:
        namenodes["slave0"].name = ""
    ours, theirs = written(namenodes, "master", tmp_path, "-m", "--all-files"), written(namenodes, "slave", tmp_path)
    capsys.readouterr()
    assert main(["run", "-i", str(ours), "--slave-status", str(theirs)]) == 0
    assert ("does not identify its HDFS" in capsys.readouterr().out) is not known


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_an_old_slave_file_is_told_by_its_age(
    namenodes: dict[str, FakeNameNode],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Written before the cut it proves nothing of it; between the cut and FILE it is said."""
    now = 1_700_000_000_000
    monkeypatch.setattr("status_tool.gather.snapshot.now_ms", lambda: now)
    theirs = written(namenodes, "slave", tmp_path)
    now += 7_500_000
    ours = written(namenodes, "master", tmp_path, "-m", "--all-files")
    capsys.readouterr()
    assert main(["run", "-i", str(ours), "--slave-status", str(theirs)]) == 3
    out = capsys.readouterr().out
    assert "2 h 5 min before the cut" in out
    assert "`run -o FILE2`" in out
    # The cut is the shutdown time, and the slave was looked at after it.
    cut = ["-s", str(now - 7_510_000)]
    assert main(["run", "-i", str(ours), "--slave-status", str(theirs), *cut]) == 0
    assert "2 h 5 min older than FILE" in capsys.readouterr().out
