"""Whose tickets are used, and what a user reads where there are none: without a KDC."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from status_tool.cli.main import main
from status_tool.clients.config import Settings, ZooKeeperEndpoint
from status_tool.clients.kerberos import TICKETS_VARIABLE, ServiceName, forget_tickets, use, why_no_ticket
from status_tool.clients.sasl import GssapiClient
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.zookeeper import ZooKeeper, parse_cluster_key
from status_tool.errors import EXIT_ERROR, ConfigurationError, ConnectionFailed

REALM = "LAB.TEST"
KERBERIZED = {"hbase.security.authentication": "kerberos", "hbase.zookeeper.quorum": "h"}


@pytest.fixture
def krb5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a krb5.conf whose KDC is away, and no ticket; skipped without the extra."""
    pytest.importorskip("gssapi", reason="needs libkrb5-dev (apt-get install libkrb5-dev), then make setup")
    pytest.importorskip("krb5", reason="needs libkrb5-dev (apt-get install libkrb5-dev), then make setup")
    (tmp_path / "krb5.conf").write_text(
        f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\nrdns = false\n"
        f"[realms]\n{REALM} = {{\n kdc = 127.0.0.1:1\n}}\n[domain_realm]\nlocalhost = {REALM}\n"
    )
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    monkeypatch.setenv(TICKETS_VARIABLE, f"FILE:{tmp_path}/none")
    yield tmp_path
    forget_tickets()


def keytab(path: Path, principal: str) -> Path:
    """A keytab with one key, as `ktutil` would write it (format 2)."""
    name, _, realm = principal.partition("@")
    texts = [realm, *name.split("/")]

    def counted(data: bytes) -> bytes:
        return len(data).to_bytes(2, "big") + data

    entry = (len(texts) - 1).to_bytes(2, "big") + b"".join(counted(text.encode()) for text in texts)
    entry += (1).to_bytes(4, "big") + bytes(4) + b"\1" + (18).to_bytes(2, "big") + counted(bytes(32))
    path.write_bytes(b"\5\2" + len(entry).to_bytes(4, "big") + entry)
    return path


def test_the_servers_principal(krb5: Path) -> None:
    """`_HOST` is the host that is asked, never its address; a realm of the site file stays."""
    for host in ("localhost", "127.0.0.1"):
        assert str(ServiceName(f"hbase/_HOST@{REALM}", host).name()) == f"hbase/localhost@{REALM}"
    assert str(ServiceName("hbase/_HOST", "127.0.0.1").name()) == "hbase@localhost"
    assert str(ServiceName("hbase/Fixed.Example@OTHER", "localhost").name()) == "hbase/fixed.example@OTHER"


def test_no_ticket(krb5: Path) -> None:
    """One line that says what to do."""
    with pytest.raises(ConnectionFailed, match=r"^it requires Kerberos: there is no Kerberos ticket \(klist\): kinit"):
        GssapiClient(ServiceName(f"hbase/_HOST@{REALM}", "localhost"), ("auth",), "it").step(None)


def test_a_login_from_a_keytab(krb5: Path) -> None:
    """In a folder of this process alone, to which what it starts is led; gone afterwards. Here its KDC is away."""
    before = os.environ[TICKETS_VARIABLE]
    file = keytab(krb5 / "keys", f"me@{REALM}")
    use("me", file)
    cache = os.environ[TICKETS_VARIABLE]
    folder = Path(cache.removeprefix("FILE:")).parent
    use("me", file)
    assert os.environ[TICKETS_VARIABLE] == cache, "the next round of a watch: Spark's JVM looks there"
    with pytest.raises(ConnectionFailed, match=r"cannot log in as me with --keytab .*: no KDC of the realm can be"):
        GssapiClient(ServiceName(f"hbase/_HOST@{REALM}", "localhost"), ("auth",), "it")
    assert folder.stat().st_mode & 0o777 == 0o700
    forget_tickets()
    assert os.environ[TICKETS_VARIABLE] == before
    assert not folder.exists()


def test_keytabs_that_will_not_do(krb5: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each one line, before anything is contacted."""
    (krb5 / "text").write_text("no keytab")
    other = keytab(krb5 / "other", f"other/host@{REALM}")
    for arguments, said in {
        ("--keytab", str(other)): "--keytab needs --principal NAME",
        ("--principal", "me", "--keytab", str(krb5 / "none")): "cannot read --keytab",
        ("--principal", "me", "--keytab", str(krb5 / "text")): "is not a keytab",
        ("--principal", "me", "--keytab", str(other)): f"no key of me@{REALM} (klist -k): it has other/host@{REALM}",
        ("--principal", "me@a@b", "--keytab", str(other)): "--principal me@a@b",
    }.items():
        assert main(["queues", *arguments]) == EXIT_ERROR
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert said in line


def test_a_principal_that_has_no_ticket(krb5: Path) -> None:
    """`--principal` alone is a demand on the ticket cache."""
    use("me", None)
    with pytest.raises(ConnectionFailed, match="--principal me: there is no Kerberos ticket"):
        GssapiClient(ServiceName(f"hbase/_HOST@{REALM}", "localhost"), ("auth",), "it")


@dataclass
class Failed:
    """As `gssapi.exceptions.GSSError`: a routine's error, and Kerberos' own number."""

    maj_code: int
    min_code: int


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (6, "the KDC does not know this principal"),
        (7, r"does not know the server's principal hbase/h@R.*\(kvno hbase/h@R\)"),
        (18, "locked or disabled"),
        (23, "password has expired: kpasswd"),
        (24, "the keytab is older than the principal's key"),
        (32, "the Kerberos ticket has expired"),
        (33, r"not valid yet: set this host's clock \(NTP\)"),
        (37, r"differs from the KDC's by more than five minutes: set it \(NTP\)"),
        (148, "by more than five minutes"),
        (154, "krb5.conf names no KDC of the realm"),
        (156, "no KDC of the realm can be reached"),
        (195, r"there is no Kerberos ticket \(klist\): kinit"),
        (224, "krb5.conf has no default_realm"),
    ],
)
def test_what_kerberos_numbers_mean(number: int, said: str) -> None:
    """By their place in com_err's table, whose base is -1765328384."""
    error = Failed(13 << 16, (number - 1765328384) & 0xFFFFFFFF)
    assert re.search(said, why_no_ticket(error, ServiceName("hbase/h@R", "h")))


@pytest.mark.parametrize(
    ("major", "said"), [(7, "there is no Kerberos ticket"), (11, "the Kerberos ticket has expired")]
)
def test_what_gssapi_itself_says(major: int, said: str) -> None:
    """Without a number of Kerberos'."""
    assert said in why_no_ticket(Failed(major << 16, 0))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names it, for Thrift and for ZooKeeper."""
    said = r"needs the package \w+(\.\w+)?, which is not installed here: pip install 'status-tool\[kerberos\]'"
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigurationError, match=said):
        GssapiClient(ServiceName("hbase/_HOST@R", "localhost"), ("auth",), "it")
    with pytest.raises(ConfigurationError, match=said):
        ZooKeeper(ZooKeeperEndpoint("127.0.0.1:1", "/hbase", sasl="zookeeper"))


def test_importing_the_tool_needs_no_kerberos() -> None:
    """A cluster without Kerberos is read without its library."""
    code = "import status_tool.clients.zookeeper, status_tool.clients.thrift, sys; print('gssapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_where_zookeeper_is_logged_in_at() -> None:
    """As HBase's own clients: by its security, with ZooKeeper's client properties; for the peers, too."""

    def endpoint(**more: str) -> ZooKeeperEndpoint:
        return Settings(SiteConfig(KERBERIZED | {key.replace("_", "."): one for key, one in more.items()})).zookeeper()

    assert endpoint().sasl == "zookeeper"
    assert endpoint(zookeeper_sasl_client_username="zk").sasl == "zk"
    assert endpoint(zookeeper_sasl_client="false").sasl == ""
    assert endpoint(hbase_security_authentication="simple").sasl == ""
    assert Settings(SiteConfig(KERBERIZED), zookeeper_option="h:1/z").zookeeper().sasl == "zookeeper"
    peer = parse_cluster_key("other:2181:/hbase", endpoint())
    assert peer is not None
    assert peer.sasl == "zookeeper"
