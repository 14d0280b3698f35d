"""Where endpoints come from, and what is said when they are wrong."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from status_tool.clients.config import Settings, ZooKeeperEndpoint, host_port
from status_tool.clients.sitefiles import SiteConfig, load_site
from status_tool.clients.zookeeper import ZooKeeper, parse_cluster_key
from status_tool.errors import ConfigurationError, ConnectionFailed
from tests.certificates import certificate
from tests.http_server import ended, serve


def site(folder: Path, name: str, **properties: str) -> Path:
    """Write a site file; underscores in names stand for dots."""
    folder.mkdir(exist_ok=True)
    body = "".join(
        f"<property><name>{key.replace('_', '.')}</name><value>{value}</value></property>"
        for key, value in properties.items()
    )
    (folder / name).write_text(f"<configuration>{body}</configuration>")
    return folder


def settings(**properties: str) -> Settings:
    """Settings with these properties."""
    return Settings(SiteConfig({key.replace("_", "."): value for key, value in properties.items()}))


def test_the_first_folder_that_defines_a_property_wins(tmp_path: Path) -> None:
    """--conf-dir in order, then HBASE_CONF_DIR, then HADOOP_CONF_DIR."""
    first = site(tmp_path / "1", "hbase-site.xml", a="1")
    second = site(tmp_path / "2", "core-site.xml", a="2", b="2")
    hbase = site(tmp_path / "3", "hbase-site.xml", b="3", c="3")
    hadoop = site(tmp_path / "4", "hdfs-site.xml", c="4", d="4")
    loaded = load_site([first, second], {"HBASE_CONF_DIR": str(hbase), "HADOOP_CONF_DIR": str(hadoop)})
    assert dict(loaded) == {"a": "1", "b": "2", "c": "3", "d": "4"}


def test_variables_are_resolved() -> None:
    """`${other}` as Hadoop does it; what is unknown stays, and a loop ends."""
    loaded = SiteConfig({"root": "hdfs://${host}/hbase", "host": "nn", "loop": "${loop}", "odd": "${none}/x"})
    assert loaded["root"] == "hdfs://nn/hbase"
    assert loaded["odd"] == "${none}/x"
    assert loaded["loop"] == "${loop}"


@pytest.mark.parametrize("content", ["", "<configuration>", "no xml"])
def test_a_broken_site_file_is_named(tmp_path: Path, content: str) -> None:
    """Not passed over in silence."""
    (tmp_path / "hbase-site.xml").write_text(content)
    with pytest.raises(ConfigurationError, match="hbase-site"):
        load_site([tmp_path], {})


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A --conf-dir is meant, and one of the environment: another would be taken in its place."""
    with pytest.raises(ConfigurationError, match="no such folder"):
        load_site([tmp_path / "nothing"], {})
    with pytest.raises(ConfigurationError, match=r"HBASE_CONF_DIR is .*nothing: no such folder"):
        load_site([], {"HBASE_CONF_DIR": str(tmp_path / "nothing"), "HADOOP_CONF_DIR": str(tmp_path)})


@pytest.mark.parametrize("part", ["thrift", "zookeeper", "webhdfs"])
def test_a_missing_endpoint_says_which_option(part: str) -> None:
    """What to give is in the line."""
    with pytest.raises(ConfigurationError, match=f"--{part}"):
        getattr(settings(), part)()


@pytest.mark.parametrize("text", ["host", "host:", ":1", "host:0", "host:65536", "host:x"])
def test_bad_thrift_option(text: str) -> None:
    """HOST:PORT and nothing else."""
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        Settings(SiteConfig({}), thrift_option=text).thrift()


def test_zookeeper_from_option_and_site() -> None:
    """Both forms lead to the same endpoint, and to HBase's cluster key."""
    given = Settings(SiteConfig({}), zookeeper_option="z1:2182,z2:2182/hb").zookeeper()
    found = settings(
        hbase_zookeeper_quorum="z1,z2", hbase_zookeeper_property_clientPort="2182", zookeeper_znode_parent="/hb"
    ).zookeeper()
    assert given == found
    assert str(given) == "z1:2182,z2:2182/hb"
    assert given.cluster_key == "z1,z2:2182:/hb"


@pytest.mark.parametrize(
    ("quorum", "port"), [("z", "99999"), ("z:abc", "2181"), ("z:1:2:", "2181"), ("zk1..example.com", "2181")]
)
def test_a_quorum_that_no_client_can_ask(quorum: str, port: str) -> None:
    """In one line, whoever named it; kazoo's own thread would end with a traceback."""
    with pytest.raises(ConfigurationError, match=r"hbase\.zookeeper\.quorum.*clientPort.*expected HOST:PORT"):
        settings(hbase_zookeeper_quorum=quorum, hbase_zookeeper_property_clientPort=port).zookeeper()
    if ":" not in quorum:
        with pytest.raises(ConfigurationError, match=r"--zookeeper .* expected HOST:PORT"):
            Settings(SiteConfig({}), zookeeper_option=f"{quorum}:{port}/hbase").zookeeper()
    for key in (f"{quorum}:{port}:/hbase", "z:1:many:/hbase"):
        assert parse_cluster_key(key, ZooKeeperEndpoint("z:1", "/hbase")) is None


def test_a_host_with_a_nul_is_none() -> None:
    """A setting may have one, and Python raises no OSError for it."""
    with pytest.raises(ConfigurationError, match="expected HOST:PORT"):
        host_port("a\0b:9090", "--thrift")


@pytest.mark.parametrize("speaks_tls", [True, False])
def test_a_quorum_of_which_one_host_is_down_and_no_other_accepts_tls(speaks_tls: bool, tmp_path: Path) -> None:
    """The reason is told at once, not after the time that a slow ensemble gets."""
    server = serve(lambda _: (200, {}, b""))
    if speaks_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(tmp_path, "IP:127.0.0.1"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with ended(server), socket.create_server(("127.0.0.1", 0)) as unused:
        closed, answering = unused.getsockname()[1], server.server_address[1]
        unused.close()
        for ports in ((closed, answering), (answering, closed)):
            hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
            said = "TLS: its certificate is not trusted" if speaks_tls else "TLS: it does not speak TLS there"
            expected = "Connection refused" if ports[0] == closed else said
            with pytest.raises(ConnectionFailed, match=expected), ZooKeeper(ZooKeeperEndpoint(hosts, "/h", tls=True)):
                pass


def test_state_table_and_spool() -> None:
    """The original's keys, and the trackers' default for the spool, of which each cluster has its own part."""
    found = settings(
        hbase_replicationtable_namespace="ops", hbase_replicationtable_name="state", hbase_rootdir="hdfs://nn:8020/hb/"
    )
    assert found.state_table == "ops:state"
    assert found.spool_dir("id") == "/hb/.status-tool-spool/id"
    assert settings(hbase_replicationtable_spool_dir="hdfs://nn:8020/shared/").spool_dir("id") == "/shared/id"
    assert settings().state_table == "replicationstate"
    assert settings().spool_dir("id") is None


def test_a_number_that_is_none() -> None:
    """Said with its key."""
    with pytest.raises(ConfigurationError, match=r"hbase\.zookeeper\.property\.clientPort"):
        settings(hbase_zookeeper_quorum="z", hbase_zookeeper_property_clientPort="many").zookeeper()


def test_a_configured_path_with_a_comma_is_refused() -> None:
    """Its parts were paths of their own, the rest one of the root folder, and what was meant was not checked."""
    assert Settings(SiteConfig({"status.tool.hdfs.paths": " /a ,\n hdfs://nn/b"})).hdfs_paths == ("/a", "hdfs://nn/b")
    with pytest.raises(ConfigurationError, match="'b' is not an absolute HDFS path"):
        _ = Settings(SiteConfig({"status.tool.hdfs.paths": "/data/a,b"})).hdfs_paths
