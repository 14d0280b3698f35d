"""Site files as Hadoop's Configuration reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import SiteConfig, load_site
from status_tool.clients.zookeeper import ZooKeeper, parse_cluster_key
from status_tool.errors import ConfigurationError

XI = 'xmlns:xi="http://www.w3.org/2001/XInclude"'


def put(path: Path, body: str, attributes: str = "") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"<?xml version='1.0'?>\n<!-- ours --><configuration {attributes}><!-- c -->{body}</configuration>")
    return path


def one(name: str, value: str, more: str = "") -> str:
    return f"<property><name>{name}</name><value>{value}</value>{more}</property>"


def test_includes(tmp_path: Path) -> None:
    """Beside the file that names them, by a URL, or the fallback; what comes later wins, as where it stands."""
    put(tmp_path / "parts" / "a.xml", one("a", "included") + one("b", "included"))
    put(tmp_path / "parts" / "space d.xml", one("d", "d"))
    there = (tmp_path / "parts" / "space d.xml").as_uri()
    put(
        tmp_path / "hbase-site.xml",
        one("a", "before")
        + '<xi:include href="parts/a.xml"/>'
        + one("b", "after")
        + f'<xi:include href="{there}"/>'
        + f'<xi:include href="nothing.xml"><xi:fallback>{one("c", "fallback")}</xi:fallback></xi:include>',
        XI,
    )
    assert dict(load_site([tmp_path], {})) == {"a": "included", "b": "after", "c": "fallback", "d": "d"}


@pytest.mark.parametrize(
    ("href", "said"),
    [
        ("nothing.xml", "nothing.xml, which is not there"),
        ("http://config.example/x.xml", "only files are read"),
        ("hbase-site.xml", "or a circle"),
        ("text", "not a site file|not valid XML"),
    ],
)
def test_an_include_that_cannot_be_read(tmp_path: Path, href: str, said: str) -> None:
    """One line, never a cluster without what was to be included."""
    put(tmp_path / "hbase-site.xml", f'<xi:include href="{href}"/>', XI)
    (tmp_path / "text").write_text("<html/>")
    with pytest.raises(ConfigurationError, match=said):
        load_site([tmp_path], {})


@pytest.mark.parametrize("encoding", ["nonsense", "utf-7"])
def test_an_encoding_that_cannot_be_read(tmp_path: Path, encoding: str) -> None:
    """One line, too."""
    (tmp_path / "hbase-site.xml").write_text(f"<?xml version='1.0' encoding='{encoding}'?><configuration/>")
    with pytest.raises(ConfigurationError, match=r"hbase-site\.xml"):
        load_site([tmp_path], {})


def test_final(tmp_path: Path) -> None:
    """Of a folder, what is loaded later does not override it; another folder may be another cluster's."""
    site, other = tmp_path / "site", tmp_path / "other"
    final = "<final>true</final>"
    put(site / "core-site.xml", one("a", "core", final) + one("b", "core") + one("a", "again"))
    put(site / "hbase-site.xml", one("a", "hbase") + one("b", "hbase"))
    put(other / "hbase-site.xml", one("b", "other", final) + one("c", "other"))
    assert dict(load_site([site, other], {})) == {"a": "core", "b": "hbase", "c": "other"}


def test_other_forms(tmp_path: Path) -> None:
    """Attributes; a property without value says nothing, one with an empty value is empty."""
    body = '<property name="a" value=" 1 " final="true"/><property name="a" value="2"/>'
    body += "<property><name>b</name></property><property><name>c</name><value/></property>"
    put(tmp_path / "hdfs-site.xml", body)
    assert dict(load_site([tmp_path], {})) == {"a": "1", "c": ""}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${env.LAB_HOST}", "set"),
        ("${env.LAB_HOST-other}", "set"),
        ("${env.LAB_HOST:-other}", "set"),
        ("${env.LAB_EMPTY}", ""),
        ("${env.LAB_EMPTY-other}", ""),
        ("${env.LAB_EMPTY:-other}", "other"),
        ("${env.LAB_NONE-ot-her}", "ot-her"),
        ("${env.LAB_NONE:-a:-b}", "a:-b"),
        ("${env.LAB_NONE:-}", ""),
        ("${env.LAB_NONE}", "${env.LAB_NONE}"),
        ("${env.named}/x", "by property/x"),
        ("hdfs://${env.LAB_HOST:-x}:${port}/", "hdfs://set:8020/"),
    ],
)
def test_the_environment(monkeypatch: pytest.MonkeyPatch, value: str, expected: str) -> None:
    """As Configuration.substituteVars has it."""
    monkeypatch.setenv("LAB_HOST", "set")
    monkeypatch.setenv("LAB_EMPTY", "")
    monkeypatch.delenv("LAB_NONE", raising=False)
    assert SiteConfig({"a": value, "port": "8020", "env.named": "by property"})["a"] == expected


def test_system_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that Hadoop's own defaults name."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("LOGNAME", "me")
    assert SiteConfig({"a": "${java.io.tmpdir}/x-${user.name}", "b": "${user.home}"})["a"] == "/tmp/x-me"
    assert SiteConfig({"b": "${user.home}"})["b"] == "/home/me"


def test_neither_true_nor_false() -> None:
    """Said with its key."""
    with pytest.raises(ConfigurationError, match=r"thrift\.framed is 'yes'"):
        Settings(SiteConfig({"hbase.regionserver.thrift.framed": "yes"}), "h:1").thrift()


def test_znodes_by_other_names() -> None:
    """Where the trackers look, by HBase's own keys: also in the peer's cluster, as HBase has it."""
    site = {
        "hbase.zookeeper.quorum": "z1, z2:2182,z3",
        "zookeeper.znode.parent": "/hb",
        "zookeeper.znode.replication": "repl",
        "zookeeper.znode.replication.rs": "queues",
        "zookeeper.znode.replication.peers.state": "state",
        "zookeeper.znode.rs": "servers",
        "zookeeper.znode.clusterId": "hbaseid",
    }
    for option in (None, "z1:2181,z2:2182,z3:2181/hb"):
        endpoint = Settings(SiteConfig(site), zookeeper_option=option).zookeeper()
        assert endpoint.hosts == "z1:2181,z2:2182,z3:2181"
        path = ZooKeeper(endpoint)._path
        assert path("hbaseid") == "/hb/hbaseid"
        assert path("rs", "host,1,2") == "/hb/servers/host,1,2"
        assert path("replication", "rs", "rs", "peers") == "/hb/repl/queues/rs/peers"
        assert path("replication", "peers", "rs", "peer-state") == "/hb/repl/peers/rs/state"
        peer = parse_cluster_key("z9:2181:/other", endpoint)
        assert peer is not None
        assert ZooKeeper(peer)._path("rs") == "/other/servers"


def test_a_cluster_key_of_hosts_with_ports_of_their_own() -> None:
    """Read back as the same hosts."""
    endpoint = Settings(SiteConfig({}), zookeeper_option="z1:2181,z2:2182/hb").zookeeper()
    assert endpoint.cluster_key == "z1:2181,z2:2182:2181:/hb"
    assert parse_cluster_key(endpoint.cluster_key, endpoint) == endpoint
