"""Java keystores that site files name: made by keytool, their passwords by Hadoop's own credential command."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from status_tool.cli.main import main
from status_tool.clients.config import Settings
from status_tool.clients.java import hadoop_jars, java
from status_tool.clients.sitefiles import load_site
from status_tool.clients.tls import Trust, read_trust
from status_tool.clients.webhdfs import WebHdfs
from status_tool.errors import ConfigurationError
from status_tool.sources.hdfs_files import endpoint_at
from tests.certificates import certificate
from tests.unit.test_hdfscli import Server, server

__all__ = ["server"]
pytestmark = pytest.mark.slow

PASSWORD = "only-here-7731"


QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that ends at once."""


def keytool(*arguments: str | Path) -> None:
    """As an operator makes stores."""
    command = [java("keytool").with_name("keytool"), *(f"-J{option}" for option in QUICK), *arguments]
    stores = () if "-importkeystore" in arguments else ("-storepass", PASSWORD)
    subprocess.run(list(map(str, (*command, *stores, "-noprompt"))), check=True, capture_output=True)


def credential(provider: str, alias: str) -> None:
    """`hadoop credential create`."""
    main_class = "org.apache.hadoop.security.alias.CredentialShell"
    jars = ":".join(map(str, hadoop_jars()))
    options = ["create", alias, "-value", PASSWORD, "-provider", provider]
    subprocess.run([str(java("x")), *QUICK, "-cp", jars, main_class, *options], check=True, capture_output=True)


def write(file: Path, values: Mapping[str, object]) -> None:
    properties = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
    file.write_text(f"<configuration>{''.join(properties)}</configuration>")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a server and of a client, and the stores that are made of them."""
    folder = tmp_path_factory.mktemp("stores")
    good, mine = (certificate(folder, f"IP:127.0.0.{number}") for number in (1, 2))
    own = folder / "own.p12"
    command = ["openssl", "pkcs12", "-export", "-in", str(mine), "-out", str(own), "-passout", f"pass:{PASSWORD}"]
    subprocess.run(command, check=True, capture_output=True)
    keytool("-importcert", "-file", f"{good}.crt", "-keystore", folder / "trust.jks", "-alias", "a")
    jks = ("-destkeystore", folder / "own.jks", "-deststoretype", "JKS", "-deststorepass", PASSWORD)
    keytool("-importkeystore", "-srckeystore", own, "-srcstorepass", PASSWORD, *jks)
    return folder


class Site:
    """The site files of a cluster whose servers ask for certificates, and its stores."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.good, self.mine = (folder / f"IP-127.0.0.{number}.pem" for number in (1, 2))
        write(folder / "core-site.xml", {"hadoop.ssl.require.client.cert": "true"})
        self.client = {
            "ssl.client.truststore.location": folder / "trust.jks",
            "ssl.client.truststore.password": PASSWORD,
            "ssl.client.keystore.location": folder / "own.jks",
            "ssl.client.keystore.password": PASSWORD,
        }
        write(folder / "ssl-client.xml", self.client)

    def trust(self, given: Trust = Trust()) -> Trust:
        """Of WebHDFS over TLS."""
        return Settings(load_site([self.folder]), trust=given).hdfs_trust(["https://h:1"])


@pytest.fixture
def site(stores: Path, tmp_path: Path) -> Site:
    """With stores of its own: what is read of a file is kept by its name."""
    return Site(shutil.copytree(stores, tmp_path / "site"))


def test_a_server_that_asks_for_a_certificate_is_read_by_the_site_files_alone(site: Site, server: Server) -> None:
    """Both stores, passwords in the clear; without TLS no store is opened."""
    server.over_tls(site.good, Path(f"{site.mine}.crt"))
    server.body = json.dumps({"Location": f"{server.url}/datanode"}).encode()
    settings = Settings(load_site([site.folder]))
    assert WebHdfs(endpoint_at(settings, [server.url])).start_of("/f")[0] == server.body
    assert endpoint_at(settings, ["http://h:1"]).trust == Trust()


def test_passwords_from_a_credential_provider(site: Site) -> None:
    """As `hadoop.security.credential.provider.path` names it, in core-site.xml; nothing is left in the clear."""
    provider = f"localjceks://file{site.folder}/store.jceks"
    for alias in ("ssl.client.truststore.password", "ssl.client.keystore.password"):
        credential(provider, alias)
        del site.client[alias]
    known = {"hadoop.ssl.require.client.cert": "true", "hadoop.security.credential.provider.path": provider}
    write(site.folder / "core-site.xml", known)
    write(site.folder / "ssl-client.xml", site.client)
    found = site.trust()
    assert found.authorities.count("BEGIN CERTIFICATE") == 1
    assert "BEGIN PRIVATE KEY" in found.certificate


def test_options_go_before_stores(site: Site) -> None:
    """And a key is shown only where Hadoop's own client would."""
    given = read_trust(Path(f"{site.good}.crt"), site.mine)
    assert site.trust(given) is given
    assert "PRIVATE" in site.trust(Trust(given.authorities)).certificate
    write(site.folder / "core-site.xml", {"hadoop.ssl.require.client.cert": "false"})
    assert site.trust().certificate == ""
    (site.folder / "ssl-client.xml").unlink()
    assert site.trust() == Trust()


def test_zookeepers_stores(site: Site) -> None:
    """PKCS12, the password in a file, as ZooKeeper's client has it."""
    (site.folder / "password").write_text(PASSWORD + "\n")
    ssl = "hbase.zookeeper.property.ssl"
    values = {
        "hbase.zookeeper.quorum": "h",
        "hbase.zookeeper.property.client.secure": "true",
        f"{ssl}.keyStore.location": site.folder / "own.p12",
        f"{ssl}.keyStore.type": "PKCS12",
        f"{ssl}.keyStore.passwordPath": site.folder / "password",
    }
    write(site.folder / "hbase-site.xml", values)
    endpoint = Settings(load_site([site.folder])).zookeeper()
    assert (endpoint.tls, "PRIVATE" in endpoint.trust.certificate, endpoint.trust.authorities) == (True, True, "")


def test_stores_that_cannot_be_read(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong password, no store, another file: one line, without any password."""
    for change in (
        {"ssl.client.truststore.password": "wrong-8842"},
        {"ssl.client.truststore.location": site.folder / "nothing.jks"},
        {"ssl.client.truststore.location": site.folder / "core-site.xml"},
    ):
        write(site.folder / "ssl-client.xml", site.client | change)
        with pytest.raises(ConfigurationError, match=r"Java keystore that ssl\.client\.truststore\.location") as caught:
            site.trust()
        said = str(caught.value)
        assert "\n" not in said
        assert PASSWORD not in said
        assert "wrong-8842" not in said
    options = ("--webhdfs", "https://h:1", "--conf-dir", str(site.folder), "--only", "hdfs")
    (site.folder / "paths").write_text("/data\n")
    assert main(["run", "-m", "-o", str(site.folder / "f"), "-f", str(site.folder / "paths"), *options]) == 2
    assert "Java keystore" in capsys.readouterr().err
