"""ZooKeeper over TLS, with certificates of both sides: a real server that takes nothing else at that port."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.tls import DEFAULT_TRUST, Trust, read_trust
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.errors import ConnectionFailed
from tests.certificates import certificate
from tests.lab.lab import Lab
from tests.lab.ports import Ports

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Secured:
    """A ZooKeeper that asks clients for a certificate, and the files of both sides (key and certificate)."""

    port: int
    server: Path
    client: Path

    def cluster_id(self, trust: Trust, *, host: str = "127.0.0.1", secure: bool = True) -> str:
        """As HBase's znode has it, read as the site files of a cluster say."""
        site = {
            "hbase.zookeeper.quorum": host,
            "hbase.zookeeper.property.clientPort": str(self.port),
            "hbase.zookeeper.property.client.secure": str(secure).lower(),
        }
        with ZooKeeper(Settings(SiteConfig(site), trust=trust).zookeeper(), 4.0) as zookeeper:
            return zookeeper.cluster_id()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder, port = tmp_path_factory.mktemp("tls"), Ports().take()
    server, client = (certificate(folder, name) for name in ("IP:127.0.0.1", "DNS:client"))
    settings = {
        "secureClientPort": port,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.clientAuth": "need",
        **{"ssl.keyStore.location": server, "ssl.keyStore.type": "PEM"},
        **{"ssl.trustStore.location": f"{client}.crt", "ssl.trustStore.type": "PEM"},
    }
    with Lab(zookeeper=settings) as lab:
        plain = KazooClient(f"127.0.0.1:{lab.zk_port}")
        plain.start(60)
        plain.create("/hbase/hbaseid", b"over-tls", makepath=True)
        plain.stop()
        plain.close()
        yield Secured(port, server, client)


def own(path: Path) -> Path:
    return Path(f"{path}.crt")


def test_both_sides_show_a_certificate(secured: Secured) -> None:
    """The client's is asked for, and the server's is verified."""
    assert secured.cluster_id(read_trust(own(secured.server), secured.client)) == "over-tls"


def test_what_must_fail(secured: Secured, tmp_path: Path) -> None:
    """Each in one line that says what to do: no certificate, a stranger's, unknown authority, other host, no TLS."""
    stranger = certificate(tmp_path, "DNS:stranger")
    trusted = own(secured.server)
    for trust, host, secure, message in (
        (read_trust(trusted), "127.0.0.1", True, "--cert FILE names yours"),
        (read_trust(trusted, stranger), "127.0.0.1", True, "does not trust the certificate in --cert"),
        (DEFAULT_TRUST, "127.0.0.1", True, "is not trusted .*--cacert FILE"),
        (read_trust(own(stranger), secured.client), "127.0.0.1", True, "is not trusted .*--cacert FILE"),
        (read_trust(trusted, secured.client), "localhost", True, "for another host"),
        (DEFAULT_TRUST, "127.0.0.1", False, "set hbase.zookeeper.property.client.secure=true"),
    ):
        with pytest.raises(ConnectionFailed, match=message):
            secured.cluster_id(trust, host=host, secure=secure)
