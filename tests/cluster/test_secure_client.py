"""The tool on two secure clusters: by keytab and by ticket cache, and what a user reads where it cannot go on."""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from status_tool.clients.class_archive import CACHE_VARIABLE
from status_tool.clients.config import Settings
from status_tool.clients.delegation_tokens import delegated, no_token_left
from status_tool.clients.sitefiles import load_site
from status_tool.clients.tls import read_trust
from status_tool.clients.webhdfs import WebHdfs
from status_tool.errors import ConnectionFailed
from status_tool.sources.hdfs_files import endpoint_of
from status_tool.status_file.reader import open_status
from tests.lab import Cluster
from tests.lab.config import write_site
from tests.lab.standalone import QUICK
from tests.lab.waiting import wait_until
from tests.pair import Result, tool_environment
from tests.secure_pair import SecurePair, run_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

NO_GSSAPI = "needs the extra [kerberos]: apt-get install libkrb5-dev, then make setup"
TOKEN_KIND = b"HDFS_DELEGATION_TOKEN"
"""In every token of HDFS; its text is base64 of it and what is around it."""
EXECUTORS = ("--spark-master", "local-cluster[1,1,1024]", "--spark-conf", f"spark.executor.extraJavaOptions={QUICK}")
NO_TICKETS_THERE = ("--spark-conf", "spark.executorEnv.KRB5CCNAME=FILE:/nowhere")


@dataclass(frozen=True)
class Secured(SecurePair):
    """A pair with Kerberos, and the tool as a user there."""

    temporary: Path
    """Where the tool puts temporary files: others run it beside these tests."""

    def command(self, *arguments: str | Path, conf: Path) -> list[str]:
        """The console script's."""
        words = (*arguments, "--conf-dir", conf, "--cacert", self.security.stores.ca)
        return [sys.executable, "-m", "status_tool", *map(str, words)]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Without a ticket, unless `more` has one."""
        return {**tool_environment(), **self.kdc.environment, "TMPDIR": str(self.temporary), **(more or {})}

    def own_folders(self) -> set[str]:
        """Where tickets of keytabs are kept."""
        return {name for name in os.listdir(self.temporary) if name.startswith("status-tool-")}

    def tool(self, *arguments: str | Path, conf: Path, cache: Path | None = None, **more: str) -> Result:
        """Run it; `cache` is the user's ticket cache."""
        done = subprocess.run(
            self.command(*arguments, conf=conf),
            env=self.environment(_tickets(cache) | more),
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def run_here(self, *arguments: str | Path, conf: Path, cache: Path | None = None, **more: str) -> Result:
        """Run it in this process, which has neither the environment nor the login afterwards."""
        with pytest.MonkeyPatch.context() as patch:
            # Not TMPDIR: this process has chosen its folder for temporary files.
            for name, value in {**self.kdc.environment, **_tickets(cache), **more}.items():
                patch.setenv(name, value)
            return run_here(*arguments, "--cacert", self.security.stores.ca, conf=conf)


def _tickets(cache: Path | None) -> dict[str, str]:
    """What names a user's ticket cache in the environment."""
    return {} if cache is None else {"KRB5CCNAME": f"FILE:{cache}"}


@pytest.fixture(scope="module")
def kerberos() -> None:
    """Comes before any cluster is started in vain."""
    for package in ("gssapi", "krb5", "puresasl"):
        pytest.importorskip(package, reason=NO_GSSAPI)


@pytest.fixture(scope="module")
def secured(kerberos: None, secure_pair: SecurePair, tmp_path_factory: pytest.TempPathFactory) -> Secured:
    """The pair; what runs the tool names its realm."""
    return Secured(secure_pair.pair, secure_pair.lab, tmp_path_factory.mktemp("temporary"))


def encoded(text: bytes) -> list[bytes]:
    """What base64 makes of a text, wherever it begins in what is encoded."""
    found = []
    for shift in range(3):
        whole = base64.urlsafe_b64encode(bytes(shift) + text)
        start, end = (-(-shift * 4 // 3), (shift + len(text)) * 4 // 3)
        found.append(whole[start:end])
    return found


def shows_a_token(data: bytes) -> bool:
    """Whether there is a delegation token in it, as it is or once more in base64, as what Spark ships."""
    texts = encoded(TOKEN_KIND)
    return any(one in data for text in texts for one in (text, *encoded(text)))


def test_a_planted_token_is_found() -> None:
    """Or the test below could not fail."""
    for before in range(4):
        token = base64.urlsafe_b64encode(b"x" * before + b"\x15" + TOKEN_KIND + b"\x0f1:2")
        assert shows_a_token(b"in a URL: " + token)
        assert shows_a_token(base64.b64encode(b"y" * before + token))


def tokens(cluster: Cluster, folder: Path) -> dict[str, list[str]]:
    """The numbers of the delegation tokens that a NameNode gave out, renewed and cancelled, by its edit log."""
    (edits,) = (cluster.namenode.folder / "name" / "current").glob("edits_inprogress_*")
    shown = folder / "edits.xml"
    viewer = "org.apache.hadoop.hdfs.tools.offlineEditsViewer.OfflineEditsViewer"
    assert cluster.admin.hadoop_tool(viewer, "-i", str(edits), "-o", str(shown)) == 0
    found: dict[str, list[str]] = {"GET": [], "RENEW": [], "CANCEL": []}
    for record in ElementTree.parse(shown).getroot().iter("RECORD"):
        operation = re.fullmatch(r"OP_(\w+)_DELEGATION_TOKEN", record.findtext("OPCODE") or "")
        if operation:
            found[operation[1]].append(next(record.iter("SEQUENCE_NUMBER")).text or "")
    return found


@pytest.mark.usefixtures("warm_spark")
def test_both_halves_by_keytab_and_by_ticket_cache(secured: Secured, tmp_path: Path) -> None:
    """The master by keytab, the slave by ticket cache, with executors that have no ticket: complete, then a gap and a
    file that differs. Nothing that the runs leave holds a token, and every token is cancelled.
    """
    pair, status, events = secured.pair, tmp_path / "master.status", tmp_path / "events"
    events.mkdir()
    pair.create_table("secured", {"f": 1}, splits=[b"row00000005"])
    pair.master.admin.put_rows("secured", "f", 10)
    for cluster in (pair.master, pair.slave):
        for number in range(8):
            cluster.admin.hdfs_put(f"/secured/{number}", b"content %d" % number)
    pair.wait_same("secured")
    paths = tmp_path / "paths"
    paths.write_text("/secured\n")
    before = secured.own_folders()
    table, web = ("--table", "secured"), ("--hdfs-client", "webhdfs")
    write = ("run", "-m", "-o", status, "-f", paths, "-v", *table, *web)
    written = secured.tool(*write, *secured.keytab_of("status"), conf=pair.master.conf_dir)
    assert written.exit_code == 0, written
    with open_status(status) as file:
        assert file.header.hdfs_cluster_id, "by a ticket: JMX takes no token"
    cache = secured.kdc.ticket("status", tmp_path / "cache")
    settings = ("spark.eventLog.enabled=true", "spark.eventLog.compress=false", f"spark.eventLog.dir={events.as_uri()}")
    spark = (*EXECUTORS, *NO_TICKETS_THERE, *(word for one in settings for word in ("--spark-conf", one)))
    left = ("--report", tmp_path / "report.html", "-d", "--debug-dir", tmp_path / "d", "--log-file", tmp_path / "log")
    check = ("run", "-i", status, "--json", "--wait", "30", *table, *web)
    # No other run starts Spark this way: an archive of its classes would serve none.
    once = {CACHE_VARIABLE: "off"}
    complete = secured.tool(*check, *spark, *left, "-v", conf=pair.slave.conf_dir, cache=cache, **once)
    assert complete.exit_code == 0, complete
    assert complete.json["hdfs"]["files"]["match"] == 8
    assert secured.own_folders() == before, "the keytab's tickets are gone"
    kept = [file for file in tmp_path.rglob("*") if file.is_file() and file != cache]
    assert {"log", "report.html", "master.status"} <= {file.name for file in kept}
    assert [file for file in kept if shows_a_token(file.read_bytes())] == []
    for result in (written, complete):
        assert not shows_a_token((result.stdout + result.stderr).encode())
    for cluster in (pair.master, pair.slave):
        known = tokens(cluster, tmp_path)
        assert known["GET"]
        assert known["GET"] == known["RENEW"] == known["CANCEL"], "one a run, and no other for what is read"

    pair.lose("secured")
    pair.slave.admin.hdfs_put("/secured/0", b"another")
    written = secured.run_here(*write, conf=pair.master.conf_dir, cache=cache)
    assert written.exit_code == 0, written
    gap = secured.run_here(*check[:4], *table, *web, *secured.keytab_of("status"), conf=pair.slave.conf_dir)
    assert gap.exit_code == 1, gap
    assert gap.json["hbase"]["regions"]["gap"] == 1
    assert gap.json["hdfs"]["files"]["mismatch"] == 1


def test_hadoops_own_client(secured: Secured, tmp_path: Path) -> None:
    """By the keytab's tickets, which its JVM finds."""
    secured.pair.master.admin.hdfs_put("/native/a", b"content")
    (tmp_path / "paths").write_text("/native\n")
    arguments = (
        "run",
        "-m",
        "-o",
        tmp_path / "f",
        "--only",
        "hdfs",
        "-f",
        tmp_path / "paths",
        "--hdfs-client",
        "native",
    )
    written = secured.tool(*arguments, *secured.keytab_of("status"), conf=secured.pair.master.conf_dir)
    assert written.exit_code == 0, written


def test_the_other_commands(secured: Secured) -> None:
    """Each by keytab."""
    for command in (("queues",), ("topology",), ("setup", "--check"), ("shutdown-time", "show"), ("run", "-d")):
        result = secured.run_here(*command, *secured.keytab_of("status"), conf=secured.pair.master.conf_dir)
        assert result.exit_code in (0, 1, 3), result
        assert "Kerberos" not in result.stdout + result.stderr, result


def one_line(result: Result) -> str:
    """The line of a run that cannot go on."""
    assert result.exit_code == 2, result
    lines = [line for line in result.stderr.strip().splitlines() if line.startswith("status-tool: ")]
    assert "Traceback" not in result.stderr
    return lines[-1]


def test_site_files_that_do_not_fit(secured: Secured, tmp_path: Path) -> None:
    """Another principal, another quality of protection: one line each, and an older FILE stays.

    The first refusal is that of a process of its own, whose stderr has all that its libraries say.
    """
    file, conf = tmp_path / "file", tmp_path / "conf"
    file.write_text("an older one")
    shutil.copytree(secured.pair.master.conf_dir, conf)
    site = conf / "hbase-site.xml"
    text = site.read_text()

    def said(by: Callable[..., Result] = secured.run_here) -> str:
        return one_line(by("run", "-m", "-o", file, "--only", "hbase", *secured.keytab_of("status"), conf=conf))

    site.write_text(text.replace("hbase/localhost@", "hbase/elsewhere@"))
    assert "does not know the server's principal hbase/elsewhere@" in said(by=secured.tool)
    site.write_text(text.replace("hbase/localhost@LAB.EXAMPLE", "hbase/localhost@OTHER.EXAMPLE"))
    assert "does not know the server's principal hbase/localhost@OTHER.EXAMPLE" in said()
    site.write_text(text.replace("<value>auth-conf</value>", "<value>auth</value>"))
    assert "protects connections by auth-conf, the site files here ask for auth: set " in said()
    assert file.read_text() == "an older one"


def test_a_ticket_that_the_server_cannot_decrypt(secured: Secured, tmp_path: Path) -> None:
    """The KDC knows the server by a newer key than its keytab has."""
    cluster = secured.pair.master
    secured.kdc.add("hbase/other")
    secured.kdc.change_key("hbase/other")
    conf = tmp_path / "conf"
    shutil.copytree(cluster.conf_dir, conf)
    site = conf / "hbase-site.xml"
    site.write_text(site.read_text().replace("hbase/localhost@", "hbase/other@"))
    read = ("run", "-m", "-o", tmp_path / "f", "--only", "hbase")
    line = one_line(secured.run_here(*read, *secured.keytab_of("status"), conf=conf))
    assert "rejected the Kerberos ticket for hbase/other@LAB.EXAMPLE" in line


def test_a_folder_that_this_user_may_not_read(secured: Secured, tmp_path: Path) -> None:
    """On the slave its files would look missing: one line instead."""
    cluster = secured.pair.slave
    cluster.admin.hdfs_put("/mine/a", b"content")
    cluster.admin.hdfs_chmod("/mine", "700")
    (tmp_path / "paths").write_text("/mine\n")
    arguments = ("run", "-o", tmp_path / "f", "--only", "hdfs", "-f", tmp_path / "paths")
    result = secured.run_here(*arguments, *secured.keytab_of("reader"), conf=cluster.conf_dir)
    assert "Permission denied: user=reader" in one_line(result)


def test_how_thrift_is_protected(secured: Secured, tmp_path: Path) -> None:
    """A Thrift server of each kind: a whole side is read through it. (The master's own is one by auth-conf, the slave's
    one over HTTP: both are read in other tests.)
    """
    quality = "hbase.thrift.security.qop"
    compact = {quality: "auth-conf", "hbase.regionserver.thrift.compact": "true"}
    cluster = secured.pair.master
    own, here = cluster.thrift.conf_dir / "hbase-site.xml", tmp_path / "conf"
    before = own.read_text()
    shutil.copytree(cluster.conf_dir, here)
    (here / "first").mkdir()
    arguments = ("run", "-m", "-o", tmp_path / "f", "--only", "hbase", "--conf-dir", here / "first")

    def is_read() -> bool:
        return secured.run_here(*arguments, *secured.keytab_of("status"), conf=here).exit_code == 0

    try:
        for settings in ({quality: "auth"}, {quality: "auth-int"}, compact):
            cluster.thrift.kill9()
            cluster._hbase_conf(cluster.thrift, settings)
            cluster.thrift.start()
            write_site(here / "first" / "hbase-site.xml", secured.security.hbase_client() | settings)
            wait_until(is_read, 120, f"the master is read through one with {settings}", interval=2)
    finally:
        own.write_text(before)
        cluster.thrift.kill9()
        cluster.start()


def test_ctrl_c_cancels_the_token(secured: Secured, tmp_path: Path) -> None:
    """And removes the keytab's tickets."""
    cluster = secured.pair.slave
    cluster.admin.hdfs_put_many("/many", 300, b"content")
    (tmp_path / "paths").write_text("/many\n")
    before, folders = tokens(cluster, tmp_path), secured.own_folders()
    arguments = ("run", "-o", tmp_path / "f", "--only", "hdfs", "-f", tmp_path / "paths", "--rate", "20")
    web = ("--hdfs-client", "webhdfs")
    command = secured.command(*arguments, *web, *secured.keytab_of("status"), conf=cluster.conf_dir)
    running = subprocess.Popen(command, env=secured.environment(), stderr=subprocess.PIPE, text=True)

    wait_until(lambda: tokens(cluster, tmp_path)["RENEW"] != before["RENEW"], 60, "it has a token")
    shown = Path(f"/proc/{running.pid}/cmdline").read_bytes()
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert not shows_a_token(shown + said.encode())
    known = tokens(cluster, tmp_path)
    assert known["GET"] != before["GET"]
    assert known["GET"] == known["CANCEL"]
    assert secured.own_folders() == folders


def test_a_token_that_somebody_cancels(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The NameNode's refusal ends as one line; nothing is waited for."""
    for name, value in secured.kdc.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{secured.kdc.ticket('reader', tmp_path / 'cache')}")
    site = load_site([secured.pair.master.conf_dir], environ={})
    ticket = endpoint_of(Settings(site, trust=read_trust(secured.security.stores.ca)))
    with no_token_left():
        endpoint = delegated(ticket)
        assert WebHdfs(endpoint, patience_s=0).status("/") is not None
        WebHdfs(ticket, patience_s=0).cancel_token(endpoint.token)
        with pytest.raises(ConnectionFailed, match="does not take this run's delegation token any more") as failed:
            WebHdfs(endpoint).status("/")
        assert endpoint.token not in str(failed.value)


@pytest.mark.usefixtures("warm_spark")
def test_a_watch_outlives_its_tickets(secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tickets of ten seconds, the keytab is used again and again."""
    krb5, ends = pytest.importorskip("krb5"), list[float]()
    log_in = krb5.get_init_creds_keytab

    def logged_in(*arguments: Any, **options: Any) -> Any:
        tickets = log_in(*arguments, **options)
        ends.append(tickets.times.endtime)
        return tickets

    pair, status = secured.pair, tmp_path / "master.status"
    pair.create_filled("watched", 10)
    realm = secured.kdc.krb5_conf.read_text()
    short = tmp_path / "krb5.conf"
    short.write_text(realm.replace("[libdefaults]", "[libdefaults]\n  ticket_lifetime = 10s"))
    whose = ("--only", "hbase", "--table", "watched", *secured.keytab_of("status"))
    written = secured.run_here("run", "-m", "-o", status, *whose, conf=pair.master.conf_dir)
    assert written.exit_code == 0, written
    monkeypatch.setattr(krb5, "get_init_creds_keytab", logged_in)
    rounds = ("watch", "-i", status, "--rounds", "4", "--every", "8")
    watched = secured.run_here(*rounds, *whose, conf=pair.slave.conf_dir, KRB5_CONFIG=str(short))
    ended = time.time()
    assert watched.exit_code == 0, watched
    assert [line.split()[1].rstrip(":") for line in watched.stdout.splitlines()] == ["complete"] * 4, watched
    assert len(ends) > 1, "it has logged in again"
    assert ends[0] < ended, "its first tickets were its own, and have ended"
