"""Two clusters in one Kerberos realm, with access control, SASL, HTTPS, protected WALs: the trackers and the tool."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from status_tool.clients.config import SECURITY_KEY, RpcAccess, Settings
from status_tool.clients.hbase_pb2 import (
    ConnectionHeader,
    CoprocessorServiceCall,
    CoprocessorServiceRequest,
    CoprocessorServiceResponse,
    RegionSpecifier,
)
from status_tool.clients.hbase_rpc import CallRefused, HBaseRpc
from status_tool.clients.sitefiles import load_site
from status_tool.errors import ConnectionFailed
from status_tool.sources.arrivals import read_arrivals
from status_tool.sources.witness_folders import WitnessAddress, witness_stores
from status_tool.status_file.reader import open_status
from tests.lab.classpath import servers_classpath
from tests.lab.cluster import Cluster
from tests.lab.config import write_site
from tests.lab.errors import AdminError
from tests.lab.kdc import Kdc
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.lab.stores import PASSWORD
from tests.lab.waiting import wait_until
from tests.pair import STATE_TABLE, Pair, Result, tool
from tests.schema import assert_valid
from tests.secure_pair import TOOL_USER, SecurePair, fs_shell, let_read_wals, run_here
from tests.witness import WITNESS_PEER, ZNODE, Witness, end_quietly
from tests.wrong_inputs import EXPIRED

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

NO_GSSAPI = "needs the Python package gssapi, which is built against MIT Kerberos (Debian: apt install libkrb5-dev)"
WAL_HEADER, HAS_COMPRESSION = slice(5, 7), b"\x08\x01"
"""After the magic and a length of one byte comes the header; its first field is `has_compression`."""


@pytest.fixture(scope="module")
def secure(secure_pair: SecurePair, warm_spark: None) -> Iterator[SecurePair]:
    """The pair; the tool finds its realm and no ticket. Spark has started before, as it outlives this environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in secure_pair.kdc.environment.items():
            patch.setenv(name, value)
        yield secure_pair


@pytest.fixture(scope="module")
def lab(secure: SecurePair) -> Lab:
    return secure.lab


@pytest.fixture(scope="module")
def pair(secure: SecurePair) -> Pair:
    return secure.pair


@pytest.fixture
def kerberos() -> None:
    """For what needs the tool's own Kerberos; the trackers do not."""
    pytest.importorskip("gssapi", reason=NO_GSSAPI)


def as_user(secure: SecurePair, user: str) -> dict[str, Any]:
    """Of a command of the lab's administrator that is tried with somebody else's rights."""
    return {"principal": secure.kdc.principal(user), "keytab": str(secure.kdc.keytab(user))}


def rows_of(cluster: Cluster, kind: bytes) -> list[bytes]:
    """The keys of the state table's rows of a kind."""
    return [row for row in cluster.admin.rows(STATE_TABLE) if row[:1] == kind]


# -- the laboratory itself, which the other tests take for granted


def service_ticket(kdc: Kdc, **store: Path) -> str:
    """Who asked for a ticket for HBase by MIT's library, or why there is none; in a process of its own."""
    pytest.importorskip("gssapi", reason=NO_GSSAPI)
    script = """
import sys, gssapi
name = gssapi.Name("hbase@localhost", gssapi.NameType.hostbased_service)
try:
    credentials = gssapi.Credentials(usage="initiate", store=dict(word.split("=", 1) for word in sys.argv[1:]))
    gssapi.SecurityContext(name=name, creds=credentials, usage="initiate").step()
    print(credentials.name)
except gssapi.exceptions.GSSError as error:
    print(error)
"""
    words = [f"{key}={value}" for key, value in {"ccache": "MEMORY:new", **store}.items()]
    environment = {**os.environ, **kdc.environment}
    done = subprocess.run(
        [sys.executable, "-c", script, *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_tickets_by_keytab_and_by_ticket_cache(secure: SecurePair, tmp_path: Path) -> None:
    kdc = secure.kdc
    assert service_ticket(kdc, client_keytab=kdc.keytab("status")) == "status@LAB.EXAMPLE"
    assert service_ticket(kdc, ccache=kdc.ticket("status", tmp_path / "cache")) == "status@LAB.EXAMPLE"


def test_no_name_of_the_realm_is_looked_up_elsewhere(secure: SecurePair) -> None:
    """Kerby writes a krb5.conf as well, which has not these."""
    settings = secure.kdc.krb5_conf.read_text()
    assert all(f"{key} = false" in settings for key in ("rdns", "dns_lookup_kdc", "dns_canonicalize_hostname"))


def test_tickets_that_fail(secure: SecurePair, tmp_path: Path) -> None:
    kdc = secure.kdc
    assert "expired" in service_ticket(kdc, ccache=kdc.expired_ticket("status", tmp_path / "cache"))
    kdc.add("rekeyed")
    kdc.change_key("rekeyed")
    assert "Decrypt integrity check failed" in service_ticket(kdc, client_keytab=kdc.keytab("rekeyed"))
    kdc.add("gone")
    kdc.remove("gone")
    assert "not found in Kerberos database" in service_ticket(kdc, client_keytab=kdc.keytab("gone"))


def test_hbase_knows_who_calls_and_what_they_may_do(secure: SecurePair, pair: Pair) -> None:
    cluster, user = pair.master, as_user(secure, "nobody")
    cluster.admin.create_table("granted", {"f": 0})  # the slave does not have it
    assert cluster.admin.put_rows("granted", "f", 100) == 100
    assert cluster.admin.permissions("granted") == ["admin: READ, WRITE, EXEC, CREATE, ADMIN"]
    with pytest.raises(AdminError, match="AccessDeniedException"):
        cluster.admin.call("get_as", table="granted", row=b"row00000001", **user)
    cluster.admin.grant("granted", "nobody", ["READ"])
    cluster.admin.call("get_as", table="granted", row=b"row00000001", **user)
    with pytest.raises(AdminError, match="AccessDeniedException"):
        cluster.admin.call("put_as", table="granted", row=b"row00000001", family="f", **user)


def test_webhdfs_is_https_and_asks_for_a_ticket(secure: SecurePair, pair: Pair) -> None:
    url = f"{pair.master.webhdfs_url}/webhdfs/v1/?op=LISTSTATUS"
    assert url.startswith("https://localhost:")
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(url, context=ssl.create_default_context(cafile=str(secure.security.stores.ca)))
    assert refused.value.headers["WWW-Authenticate"] == "Negotiate"
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(url)


# -- the trackers


def test_trackers_record_through_access_control(secure: SecurePair, pair: Pair) -> None:
    """Heads on the master, segments on the slave, over RPC with privacy; the rows themselves arrive."""
    pair.create_filled("recorded", 100, splits=[b"row00000050"])
    wait_until(lambda: len(rows_of(pair.master, b"h")) >= 2, 60, "heads on the master")
    wait_until(lambda: len(rows_of(pair.slave, b"s")) >= 2, 60, "segments on the slave")


def test_the_state_table_is_the_region_servers_own(secure: SecurePair, pair: Pair) -> None:
    """Its owner is the user of the region servers; nobody else is granted anything."""
    for cluster in (pair.master, pair.slave):
        assert cluster.admin.permissions(STATE_TABLE) == ["hbase: READ, WRITE, EXEC, CREATE, ADMIN"]
        for attempt in ("get_as", "put_as"):
            with pytest.raises(AdminError, match="AccessDeniedException"):
                cluster.admin.call(attempt, table=STATE_TABLE, row=b"b", family="t", **as_user(secure, "nobody"))


def test_wals_are_encrypted_here_and_compressed_there(pair: Pair, tmp_path: Path) -> None:
    """Replication reads the stamps from such WALs in the other tests."""
    pair.create_filled("sealed", 10, value="plain-to-read")
    encrypted, compressed = (wals(cluster, tmp_path / cluster.name) for cluster in (pair.master, pair.slave))
    assert all(b"SecureWALCellCodec" in wal for wal in encrypted)
    assert not any(b"plain-to-read" in wal for wal in encrypted)
    assert all(wal[WAL_HEADER] == HAS_COMPRESSION for wal in compressed)
    assert any(b"plain-to-read" in wal for wal in compressed)


def wals(cluster: Cluster, folder: Path) -> list[bytes]:
    """The WALs of all region servers that have a header."""
    folder.mkdir()
    cluster.admin.roll_wal()
    fs_shell(cluster, "-get", "/hbase/WALs/*/*", str(folder))
    found = [wal for file in folder.iterdir() if (wal := file.read_bytes()).startswith(b"PWAL")]
    assert len(found) >= len(cluster.region_servers)
    return found


# -- the tool


def test_complete_by_keytab_and_by_ticket_cache(
    secure: SecurePair, kerberos: None, status: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both halves, by SASL with auth-conf on the master and by HTTP with SPNEGO on the slave. (As processes of their
    own: `test_secure_client.py`.)
    """
    pair = secure.pair
    pair.create_table("whole", {"f": 1})
    pair.master.admin.put_rows("whole", "f", 50)
    for cluster in (pair.master, pair.slave):
        cluster.admin.hdfs_put("/secure/one", b"one")
    paths, table = tmp_path / "paths", ("--table", "whole")
    paths.write_text("/secure\n")
    written = run_here("run", "-m", "-o", status, "-f", paths, *table, *secure.keytab_of(TOOL_USER), conf=pair.master)
    assert written.exit_code == 0, written
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{secure.kdc.ticket(TOOL_USER, tmp_path / 'tickets')}")
    result = run_here("run", "-i", status, "--json", "--wait", "60", *table, conf=pair.slave)
    assert result.exit_code == 0, result
    assert_valid(result.json)
    assert (result.json["verdict"], result.json["hbase"]["evidence"]) == ("complete", "exact")
    assert result.json["hdfs"]["files"]["match"] == 1
    assert pair.same("whole")


def test_failing_back(
    secure: SecurePair, kerberos: None, status: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other direction: from compressed WALs, by keytab over HTTP, and to a side that speaks with privacy only, by
    ticket cache. (A gap is caught in `test_secure_client.py`.)
    """
    back = secure.pair.reversed()
    back.create_table("back", {"f": 1})
    back.connect()
    back.master.admin.put_rows("back", "f", 50)
    hbase = ("--only", "hbase", "--table", "back")
    written = run_here("run", "-m", "-o", status, *hbase, *secure.keytab_of(TOOL_USER), conf=back.master)
    assert written.exit_code == 0, written
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{secure.kdc.ticket(TOOL_USER, tmp_path / 'tickets')}")
    result = run_here("run", "-i", status, "--json", "--wait", "60", *hbase, conf=back.slave)
    assert result.exit_code == 0, result
    assert result.json["hbase"]["evidence"] == "exact"
    assert back.same("back")


def test_setup_check_names_the_right_that_is_missing(secure: SecurePair, pair: Pair, kerberos: None) -> None:
    check = ("setup", "--check", *secure.keytab_of(TOOL_USER))
    well = run_here(*check, conf=pair.master)
    assert well.exit_code == 0, well
    fs_shell(pair.master, "-setfacl", "-b", "/hbase/WALs")
    try:
        lacking = run_here(*check, conf=pair.master)
        assert lacking.exit_code == 3, lacking
        assert "Permission denied: user=status" in lacking.stdout
        assert "1 thing to mend." in lacking.stdout
    finally:
        fs_shell(pair.master, "-chmod", "750", "/hbase/WALs")
        let_read_wals(pair.master, TOOL_USER)


# -- what must fail


def refused(result: Result) -> str:
    """The one line of a run that the user has to do something about."""
    assert result.exit_code == 2, result
    (line,) = result.stderr.splitlines()
    assert line.startswith("status-tool: ")
    return line


def write(secure: SecurePair, status: Path, *arguments: str, by: Callable[..., Result] = run_here) -> str:
    """`run -m` on the master, refused."""
    refusal = refused(by("run", "-m", "-o", status, "--only", "hbase", *arguments, conf=secure.pair.master))
    assert not status.exists()
    return refusal


def test_without_a_valid_ticket(
    secure: SecurePair, kerberos: None, status: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first refusal is that of a process of its own, whose stderr has all that its libraries say."""
    assert "there is no Kerberos ticket" in write(secure, status, by=tool)
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{secure.kdc.expired_ticket(TOOL_USER, tmp_path / 'tickets')}")
    assert EXPIRED.said in write(secure, status)


def test_keytabs_that_do_not_fit(secure: SecurePair, kerberos: None, status: Path) -> None:
    kdc, keytab = secure.kdc, ("--keytab", str(secure.kdc.keytab(TOOL_USER)))
    assert f"has no key of {kdc.principal('other')}" in write(secure, status, "--principal", "other", *keytab)
    kdc.add("removed")
    kdc.remove("removed")
    assert "the KDC does not know this principal" in write(secure, status, *secure.keytab_of("removed"))
    kdc.add("changed")
    kdc.change_key("changed")
    assert "the keytab is older than the principal's key" in write(secure, status, *secure.keytab_of("changed"))


def test_users_without_rights(secure: SecurePair, pair: Pair, kerberos: None, status: Path) -> None:
    """On the state table; then with those, but not on the znodes of replication."""
    assert "or this user (klist) has no rights on it" in write(secure, status, *secure.keytab_of("nobody"))
    pair.master.admin.grant(STATE_TABLE, "reader", ["READ", "WRITE"])
    refusal = write(secure, status, *secure.keytab_of("reader"))
    assert "does not let reader@LAB.EXAMPLE read /master/replication/rs" in refusal
    assert "hbase.superuser" in refusal


def test_a_server_whose_certificate_is_unknown(
    secure: SecurePair, pair: Pair, kerberos: None, status: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known by the truststore of `ssl-client.xml`, as to Hadoop's own client, by `--cacert`, or by the environment's
    bundle; else it is refused.
    """
    pair.master.admin.hdfs_put("/certified", b"one")
    paths = tmp_path / "paths"
    paths.write_text("/certified\n")
    only: tuple[str | Path, ...] = ("--only", "hdfs", "-f", paths, *secure.keytab_of(TOOL_USER))
    assert run_here("run", "-m", "-o", status, *only, conf=pair.master).exit_code == 0
    stores = pair.master.conf_dir / "ssl-client.xml"
    stores.rename(stores.with_suffix(".away"))
    try:
        line = refused(run_here("run", "-m", "-o", status, *only, conf=pair.master))
        assert "its certificate is not trusted" in line
        named = ("--cacert", secure.security.stores.ca)
        assert run_here("run", "-m", "-o", status, *only, *named, conf=pair.master).exit_code == 0
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(secure.security.stores.ca))
        assert run_here("run", "-m", "-o", status, *only, conf=pair.master).exit_code == 0
    finally:
        stores.with_suffix(".away").rename(stores)


# -- a witness


def site_of(folder: Path, **site: str) -> Path:
    """A folder with the hbase-site.xml of a witness: as secure as the master, and the tool's user may read it."""
    secured = {
        "hbase.security.authentication": "kerberos",
        "hbase.rpc.protection": "privacy",
        "hbase.superuser": TOOL_USER,
    }
    folder.mkdir(exist_ok=True)
    write_site(folder / "hbase-site.xml", secured | site)
    return folder


@pytest.fixture(scope="module")
def witness(lab: Lab, secure: SecurePair, ports: Ports, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    """With the name and key of HBase's region servers."""
    pytest.importorskip("gssapi", reason=NO_GSSAPI)
    folder = tmp_path_factory.mktemp("witness")
    key = ("--principal", "hbase/_HOST@LAB.EXAMPLE", "--keytab", secure.kdc.keytab("hbase/localhost"))
    options = ("--conf-dir", site_of(folder / "conf"), *key)
    witness = Witness(lab, folder / "one", ports.take(), register=at(lab, ZNODE), options=options)
    try:
        witness.start()
        secure.pair.master.admin.add_peer(WITNESS_PEER, f"localhost:{lab.zk_port}:{ZNODE}")
        yield witness
    finally:
        end_quietly(witness.process)


def at(lab: Lab, znode: str) -> str:
    """As `--register` takes it; the realm knows no other name of this host."""
    return f"localhost:{lab.zk_port}{znode}"


def taken(witness: Witness, table: str) -> int:
    """The number of entries of a table that a witness has."""
    return sum(entries.count() for key, entries in read_arrivals(witness.store).items() if key.table == table)


def test_a_witness_takes_the_entries_of_a_secured_master(pair: Pair, witness: Witness) -> None:
    """Of its region servers, which speak with privacy, and look for it in a ZooKeeper with ACLs."""
    pair.create_table("seen", {"f": 1})
    for start in range(10):
        pair.master.admin.put_rows("seen", "f", 1, start=start)
    wait_until(lambda: taken(witness, "seen") == 10, 60, "the witness has the entries")


class Impersonating(HBaseRpc):
    """Somebody who authenticates as himself, and asks as HBase's own user."""

    def _send(self, data: bytes) -> None:
        if self._calls == 0:
            header = ConnectionHeader.FromString(data[4:])
            header.user_info.effective_user = "hbase/localhost@LAB.EXAMPLE"
            data = header.SerializeToString()
            data = len(data).to_bytes(4, "big") + data
        super()._send(data)


def test_nobody_else_calls_a_witness(
    secure: SecurePair, witness: Witness, kerberos: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither without a ticket, nor as another user than its own and the superusers, nor in their name."""
    access = secured_access(secure.pair.master.conf_dir)
    address = WitnessAddress("localhost", int(witness.port))
    with pytest.raises(ConnectionFailed, match="Kerberos"):
        witness_stores([address])
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{secure.kdc.ticket(TOOL_USER, tmp_path / 'status')}")
    assert len(witness_stores([address], access).places) == 1
    with pytest.raises(ConnectionFailed, match="protects connections by auth-conf, the site files here ask for auth:"):
        witness_stores([address], replace(access, qops=("auth",)))

    monkeypatch.setenv("KRB5CCNAME", f"FILE:{secure.kdc.ticket('nobody', tmp_path / 'nobody')}")
    with pytest.raises(ConnectionFailed, match=r"nobody@LAB.EXAMPLE may not call a witness: .*hbase\.superuser"):
        witness_stores([address], access)
    region = RegionSpecifier(type=RegionSpecifier.REGION_NAME, value=b"")
    call = CoprocessorServiceCall(row=b"", service_name="Witness", method_name="list", request=b"")
    listing = ("ClientService", "ExecRegionServerService", CoprocessorServiceRequest(region=region, call=call))
    shipping = ("AdminService", "ReplicateWALEntry", ConnectionHeader())  # no entries
    for kind, (service, method, request) in (
        (HBaseRpc, shipping),
        (Impersonating, listing),
        (Impersonating, shipping),
    ):
        with kind("localhost", int(witness.port), service, "witness", access) as rpc:
            with pytest.raises(CallRefused, match="may not call a witness") as denied:
                rpc.call(method, request, CoprocessorServiceResponse)
            assert denied.value.name == "AccessDeniedException"


def secured_access(conf: Path) -> RpcAccess:
    """What the site files say of HBase's RPC."""
    return Settings(load_site([conf], environ={})).hbase_rpc()


def test_a_witness_by_tls_alone(
    lab: Lab, secure: SecurePair, ports: Ports, kerberos: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With certificates of both sides. The peer's own settings let the master's region servers come so."""
    stores = {
        **{"hbase.rpc.tls.keystore.location": str(secure.security.stores.key), "hbase.rpc.tls.keystore.type": "pkcs12"},
        **{"hbase.rpc.tls.truststore.location": str(secure.security.stores.trust)},
        **{"hbase.rpc.tls.truststore.type": "pkcs12"},
        **{f"hbase.rpc.tls.{kind}.password": PASSWORD for kind in ("keystore", "truststore")},
    }
    client = {**stores, "hbase.client.netty.tls.enabled": "true"}
    key = {
        "hbase.regionserver.kerberos.principal": "hbase/_HOST@LAB.EXAMPLE",
        "hbase.regionserver.keytab.file": str(secure.kdc.keytab("hbase/localhost")),
    }
    only = {"hbase.server.netty.tls.enabled": "true", "hbase.server.netty.tls.supportplaintext": "false"}
    conf = site_of(tmp_path / "conf", **stores, **only, **key)
    where = at(lab, f"{ZNODE}-tls")
    witness, pair = (
        Witness(lab, tmp_path / "one", ports.take(), register=where, options=("--conf-dir", conf)),
        secure.pair,
    )
    try:
        witness.start()
        pair.master.admin.add_peer("tls", f"localhost:{lab.zk_port}:{ZNODE}-tls", config=client)
        pair.create_table("sealed-way", {"f": 1})
        for start in range(5):
            pair.master.admin.put_rows("sealed-way", "f", 1, start=start)
        wait_until(lambda: taken(witness, "sealed-way") == 5, 60, "the witness has the entries")
        address = WitnessAddress("localhost", int(witness.port))
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{secure.kdc.ticket(TOOL_USER, tmp_path / 'status')}")
        plain = secured_access(secure.pair.master.conf_dir)
        with pytest.raises(ConnectionFailed, match="if it requires Kerberos or TLS"):
            witness_stores([address], plain)
        by_tls = secured_access(site_of(tmp_path / "client", **client, **key))
        (copy,) = witness_stores([address], by_tls).folders(tmp_path).values()
        assert read_arrivals(copy) == read_arrivals(witness.store)
        with pytest.raises(ConnectionFailed, match="it asks for a client's certificate: --cert FILE names yours"):
            witness_stores([address], replace(by_tls, trust=replace(by_tls.trust, certificate="")))
    finally:
        pair.master.admin.remove_peer("tls")
        end_quietly(witness.process)


def test_a_witness_that_cannot_be_as_secure_does_not_start(
    lab: Lab, secure: SecurePair, ports: Ports, tmp_path: Path
) -> None:
    """One line each: no key; a name that is no service's; another's key; without Kerberos; no keystore; no TLS."""
    port = ports.take()
    key = ("--principal", "hbase/_HOST@LAB.EXAMPLE", "--keytab", secure.kdc.keytab("hbase/localhost"))
    user = ("--principal", secure.kdc.principal(TOOL_USER), "--keytab", secure.kdc.keytab(TOOL_USER))
    plain, tls = site_of(tmp_path / "plain"), site_of(tmp_path / "tls", **{"hbase.server.netty.tls.enabled": "true"})
    older, open_to_all = servers_classpath("2.5.8"), site_of(tmp_path / "open", **{SECURITY_KEY: "simple"})
    for conf, options, hbase, said in (
        (plain, (), (), "do not set hbase.regionserver.kerberos.principal: give --principal and --keytab"),
        (plain, user, (), "status@LAB.EXAMPLE is no service's principal"),
        (plain, (*key[:3], secure.kdc.keytab(TOOL_USER)), (), "hbase/localhost@LAB.EXAMPLE"),
        (open_to_all, key, (), "the site files do not set hbase.security.authentication to kerberos"),
        (tls, key, (), "hbase.rpc.tls.* does not make a TLS server"),
        (tls, key, older, "this HBase has no TLS for its RPC"),
    ):
        witness = Witness(
            lab, tmp_path / "w", port, register=at(lab, "/no"), options=("--conf-dir", conf, *options), hbase=hbase
        )
        assert said in witness.refusal()


def test_run_m_reads_a_witness_by_ticket(secure: SecurePair, witness: Witness, kerberos: None, status: Path) -> None:
    """Its folder by RPC, and what ZooKeeper shows to superusers alone."""
    hbase = ("--only", "hbase", *secure.keytab_of(TOOL_USER))
    written = run_here("run", "-m", "-o", status, "--witness", witness.address, *hbase, conf=secure.pair.master)
    assert written.exit_code == 0, written
    with open_status(status, witnessed=True) as file:
        assert file.header.witnesses == ((witness.store / "store.id").read_text().strip(),)
        assert file.header.witness_peer == WITNESS_PEER
        assert not file.header.unwitnessed


def test_a_killed_region_server_comes_back(pair: Pair) -> None:
    """The last test: what it had applied is in doubt for a while."""
    cluster = pair.slave
    cluster.admin.create_table("killed", {"f": 0})
    cluster.admin.put_rows("killed", "f", 10)
    cluster.crash(cluster.region_servers[0])
    cluster.region_servers[0].start()
    assert cluster.admin.digest("killed").rows == 10
