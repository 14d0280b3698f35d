"""HdfsCLI's clients as they are used here, and what is used of their internals."""

from __future__ import annotations

import inspect
import json
import ssl
import subprocess
import sys
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import hdfs
import pytest
import requests
from hdfs.client import Client, InsecureClient, _Request

from status_tool.cli.main import main
from status_tool.clients import hdfscli
from status_tool.clients.hdfscli import OPERATIONS, REDIRECTED, Failover, Refused, client_of, refusal_of, refused
from status_tool.clients.tls import Trust, read_trust
from status_tool.clients.webhdfs import HdfsEndpoint, WebHdfs
from status_tool.errors import EXIT_ERROR, ConnectionFailed
from tests.certificates import certificate
from tests.http_server import Answer, ended, serve, url_of


class Server:
    """Answers every request with `status`, `body` and `headers`, and keeps what came."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, b'{"FileStatus": {}}', dict[str, str]()
        self.paths: list[str] = []
        self.queries: list[dict[str, list[str]]] = []
        self.sent: list[dict[str, str]] = []
        self.takes: str | None = None
        """The authorization without which it answers with 401 and asks for Kerberos."""
        server = self

        def answer(request: BaseHTTPRequestHandler) -> Answer:
            parts = urlsplit(request.path)
            server.paths.append(unquote(parts.path))
            server.queries.append(parse_qs(parts.query, keep_blank_values=True))
            server.sent.append(dict(request.headers))
            is_let_in = server.takes in (None, request.headers.get("Authorization"))
            return (server.status, server.headers, server.body) if is_let_in else (401, NEGOTIATE, server.body)

        self.http = serve(answer, keeps_alive=True)
        self.url = url_of(self.http)

    def over_tls(self, certificate: Path, client: Path | None = None) -> None:
        """From now on; its URL is another one then. `client`: whose certificate it asks for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if client is not None:
            context.load_verify_locations(client)
            context.verify_mode = ssl.CERT_REQUIRED
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    def ask(self, path: str = "/file", op: str = "GETFILESTATUS", **params: Any) -> dict[str, Any]:
        return client_of(self.url, "me", 2, (5, 5)).ask(op, path, **params)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    with ended(running.http):
        yield running


def test_what_is_used_of_hdfscli() -> None:
    """Another version would have to be read before it is let in (pyproject.toml)."""
    assert hdfs.__version__.startswith("2.7.")
    assert str(inspect.signature(_Request.to_method)) == "(self, operation)"
    assert str(inspect.signature(Client._request)) == "(self, method, url, **kwargs)"
    assert str(inspect.signature(Client.resolve)) == "(self, hdfs_path)"
    assert str(inspect.signature(InsecureClient.__init__)) == "(self, url, user=None, **kwargs)"


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_call(server: Server, op: str) -> None:
    """Its name with the underscore that HdfsCLI takes out of its own, the user, and all parameters."""
    server.ask("/a/b", op, startAfter="x&y=z", noredirect="true")
    assert server.paths == ["/webhdfs/v1/a/b"]
    assert server.queries == [{"op": [op], "user.name": ["me"], "startAfter": ["x&y=z"], "noredirect": ["true"]}]


@pytest.mark.parametrize(
    "name",
    ["#LATEST", "#LATEST{2}", "a b", "a%20b", "%", "a+b", "ä€😀", "q?x=1&y", "semi;colon", "tilde~", "[b]{c}", "a\\b"],
)
def test_names_are_literal(server: Server, name: str) -> None:
    """HdfsCLI would look for the newest file below `#LATEST`; nothing else is changed on the way either."""
    server.ask(f"/data/{name}/x")
    server.ask(f"/data/{name}")
    assert server.paths == [f"/webhdfs/v1/data/{name}/x", f"/webhdfs/v1/data/{name}"]


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_handed_over(server: Server, status: int) -> None:
    """A NameNode that does not know `noredirect`: nobody follows it here."""
    server.status, server.headers = status, {"Location": f"{server.url}/elsewhere"}
    assert server.ask(op="OPEN") == {"Location": f"{server.url}/elsewhere"}
    assert len(server.paths) == 1


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op not in REDIRECTED])
@pytest.mark.parametrize("status", [301, 302, 307])
def test_a_redirect_to_a_login_page_is_no_answer(server: Server, op: str, status: int) -> None:
    """It ended as a bug of this tool. Its query may have a token, which is not shown."""
    server.status, server.headers = status, {"Location": "https://login:8443/sso?delegation=secret"}
    with pytest.raises(Refused, match=f"{op} is redirected to https://login:8443: is this a .* --webhdfs "):
        server.ask(op=op)


@pytest.mark.parametrize("body", [b"{}", b"[]", b"3", b'{"FileStatus": []}', b'{"DirectoryListing": {"x": 1}}'])
def test_json_of_something_else(server: Server, body: bytes) -> None:
    """Whatever is asked for: a refusal that says so."""
    server.body = body
    client = WebHdfs(HdfsEndpoint((server.url,), "me"), patience_s=0)
    calls = (
        *(client.status, client.page, client.summary, client.renew_token),
        lambda path: client.start_of(path),
    )
    for call in calls:
        with pytest.raises(Refused, match=r"the answer .*: is this a NameNode's HTTP address"):
            call("/")
    (refusal,) = client.checksums(["/"])
    assert "is this a NameNode's HTTP address" in str(refusal)


@pytest.mark.parametrize("status", [200, 302])
def test_an_address_of_something_else_ends_the_run(
    server: Server, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names the option."""
    server.status, server.body, server.headers = status, b"[]", {"Location": "https://login/"}
    output = tmp_path / "out"
    arguments = ["run", "-m", "-o", str(output), "--only", "hdfs", "--all-files", "--webhdfs", server.url]
    assert main(arguments) == EXIT_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert "--webhdfs http://HOST:PORT" in line
    assert not output.exists()


@pytest.mark.parametrize("name", ["StandbyException", "RetriableException", "SafeModeException"])
def test_what_another_namenode_may_answer(server: Server, name: str) -> None:
    """Once, and without a word from HdfsCLI: the turns are ours."""
    server.status = 403
    server.body = json.dumps({"RemoteException": {"exception": name, "message": "not me"}}).encode()
    with pytest.raises(Failover, match=f"{name}: not me"):
        server.ask()
    assert len(server.paths) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"RemoteException": null}', b'"text"'])
@pytest.mark.parametrize(("status", "error"), [(503, Failover), (400, Refused), (401, Refused), (500, Refused)])
def test_answers_that_are_not_hadoops(
    server: Server, status: int, error: type[Exception], body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """One line with the status; HdfsCLI would log the body of a 401."""
    server.status, server.body = status, body
    with pytest.raises(error, match=str(status)):
        server.ask()
    assert not caplog.records


def test_no_json(server: Server) -> None:
    """Said as what it most likely is."""
    server.body = b"<html>"
    with pytest.raises(Refused, match="is this a NameNode's HTTP address"):
        server.ask()


def test_netrc_is_not_sent(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A password for the host in ~/.netrc is not the NameNode's business."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password planted-secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.ask()
    assert "Authorization" not in server.sent[0]


def test_the_environments_proxy_is_used_for_both_legs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As curl and HdfsCLI do; `no_proxy` leaves hosts out."""
    monkeypatch.setenv("http_proxy", server.url)
    client = WebHdfs(HdfsEndpoint(("http://namenode.invalid:9870",), "me"), patience_s=0)
    server.body = json.dumps({"Location": "http://datanode.invalid:9864/webhdfs/v1/f?op=OPEN"}).encode()
    client.start_of("/f")
    hosts = ["namenode.invalid:9870"] * 2 + ["datanode.invalid:9864"]
    assert [headers["Host"] for headers in server.sent] == hosts
    assert client_of(server.url, "me", 2, (5, 5)).ask("GETFILESTATUS", "/f") == json.loads(server.body)
    assert server.sent.pop()["Host"] == server.url.removeprefix("http://"), "loopback needs none"
    monkeypatch.setenv("no_proxy", ".invalid")
    with pytest.raises(ConnectionFailed, match="cannot reach the NameNode"):
        WebHdfs(client.endpoint, patience_s=0).status("/f")
    assert len(server.sent) == len(hosts)


def test_no_call_to_loopback_goes_by_a_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PUT, as of a token, and all with a ticket are sent by requests itself, which knows the variables alone."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server.body = json.dumps({"long": 5}).encode()
    assert client_of(server.url, "me", 2, (5, 5)).ask("RENEWDELEGATIONTOKEN", "/", token="t") == {"long": 5}


def test_a_bean(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same session; a server that knows none says so, and one that does not answer now is asked again."""
    monkeypatch.setenv("no_proxy", "*")
    server.body = json.dumps({"beans": [{"BlockPoolId": "BP-1"}]}).encode()
    client = client_of(server.url, "me", 2, (5, 5))
    assert client.bean("Hadoop:service=NameNode,name=NameNodeInfo") == {"BlockPoolId": "BP-1"}
    assert server.paths == ["/jmx"]
    assert server.queries[0]["qry"] == ["Hadoop:service=NameNode,name=NameNodeInfo"]
    for server.status in (302, 401, 403, 404):
        assert client.bean("x") is None
    for server.status in (429, 500, 502, 503):
        with pytest.raises(Failover, match=f"HTTP status {server.status} for {server.url}/jmx"):
            client.bean("x")
    with pytest.raises(Failover):
        client_of("http://127.0.0.1:1", "me", 2, (1, 1)).bean("x")


@pytest.mark.parametrize("path", ["/data/short", f"/data/{'folder/' * 60}f", "/data/line\nbreak"])
@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Fail to get checksum, since file {} is under construction.", "under construction"),
        ("`{}': Fail to get block MD5 for LocatedBlock{{…}}", "Fail to get block MD5"),
        ("`{}': Could not obtain block: BP-1", "Could not obtain block"),
        ("{} (is not a directory)", " (is not a directory)"),
    ],
)
def test_a_reason_is_recognised_whatever_the_path_before_it(path: str, message: str, reason: str) -> None:
    """A long path, or one of several lines, hid it; the stack is not shown."""
    found = refused("IOException", message.format(path) + "\n\tat org.apache.hadoop.Any(is not a directory)")
    assert reason in str(found)
    assert "\tat" not in str(found)
    assert len(str(found)) <= 301
    assert found.is_absent is ("directory" in reason)


def test_tls_of_both_legs(server: Server, tmp_path: Path) -> None:
    """By the authorities that are named; whoever cannot be trusted is not waited for."""
    good, other = certificate(tmp_path, "IP:127.0.0.1"), certificate(tmp_path, "DNS:elsewhere")
    server.over_tls(good)
    server.body = json.dumps({"Location": f"{server.url}/datanode"}).encode()
    trusted = read_trust(Path(f"{good}.crt"))
    assert WebHdfs(HdfsEndpoint((server.url,), "me", trusted)).start_of("/f")[0] == server.body
    assert server.paths == ["/jmx", "/webhdfs/v1/f", "/datanode"]
    strangers = HdfsEndpoint((server.url,), "me", read_trust(Path(f"{other}.crt")))
    with pytest.raises(ConnectionFailed, match=r"https://127\.0\.0\.1:\d+ cannot be reached: .*--cacert FILE"):
        WebHdfs(strangers).status("/f")
    with pytest.raises(ConnectionFailed, match="certificate is for another host"):
        WebHdfs(HdfsEndpoint((server.url.replace("127.0.0.1", "localhost"),), "me", trusted)).status("/f")
    assert "BEGIN" not in repr(strangers)


def test_authorities_are_read_for_tls_alone(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's authorities cost more than the rest of a call."""

    def read(trust: Trust) -> ssl.SSLContext:
        raise AssertionError("nothing here is to be trusted")

    monkeypatch.setattr(hdfscli, "tls_context", read)
    assert server.ask() == {"FileStatus": {}}
    with pytest.raises(AssertionError, match="nothing here"):
        client_of(server.url.replace("http:", "https:"), "me", 2, (5, 5))


def test_servers_that_ask_for_a_certificate(server: Server, tmp_path: Path) -> None:
    """Both legs show the user's; without one, or with a stranger's, one line says so."""
    good, mine, other = (certificate(tmp_path, f"IP:127.0.0.{number}") for number in (1, 2, 3))
    server.over_tls(good, Path(f"{mine}.crt"))
    server.body = json.dumps({"Location": f"{server.url}/datanode"}).encode()
    own = read_trust(Path(f"{good}.crt"), mine)
    assert WebHdfs(HdfsEndpoint((server.url,), "me", own)).start_of("/f")[0] == server.body
    assert server.paths == ["/jmx", "/webhdfs/v1/f", "/datanode"]
    assert "BEGIN" not in repr(own) + repr(HdfsEndpoint((server.url,), "me", own))
    for trust, message in (
        (read_trust(Path(f"{good}.crt")), "--cert FILE names yours"),
        (read_trust(Path(f"{good}.crt"), other), "does not trust the certificate in --cert"),
    ):
        # TLS 1.3: the server's word may be lost where it closes before the request is read, so it is asked again.
        with pytest.raises(ConnectionFailed, match=message):
            WebHdfs(HdfsEndpoint((server.url,), "me", trust), patience_s=120).status("/f")


def test_certificates_that_cannot_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No key, a key with a password, another's key, a Java keystore, nothing: one line each with the way out."""
    mine, other = certificate(tmp_path, "DNS:mine"), certificate(tmp_path, "DNS:other")
    locked, alone, mixed, store = (tmp_path / name for name in ("locked", "alone", "mixed", "own.jks"))
    command = ["openssl", "pkey", "-aes256", "-passout", "pass:secret", "-in", str(mine), "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    alone.write_text(Path(f"{mine}.crt").read_text())
    locked.write_text(locked.read_text() + alone.read_text())
    mixed.write_text(other.read_text().split("-----BEGIN CERTIFICATE")[0] + alone.read_text())
    store.write_bytes(b"\xfe\xed\xfe\xed")
    for file, why in (
        (alone, "no pair of certificate and key"),
        (locked, "its key needs a password"),
        (mixed, "no pair of certificate and key"),
        (store, "no text"),
        (tmp_path / "nothing", "No such file"),
    ):
        assert main(["queues", "--cert", str(file)]) == 2
        said = capsys.readouterr().err
        assert why in said, (file, said)
        assert said.count("\n") == 1


def test_a_server_that_has_signed_its_own_certificate(server: Server, tmp_path: Path) -> None:
    """As keytool makes them: trusted because it is named, although it is no authority."""
    own = certificate(tmp_path, "IP:127.0.0.1", authority=False)
    server.over_tls(own)
    trusted = HdfsEndpoint((server.url,), "me", read_trust(Path(f"{own}.crt")))
    assert WebHdfs(trusted, patience_s=0).status("/f") == {}


def test_no_tls_where_it_was_asked_for(server: Server) -> None:
    """Said as that, at once."""
    with pytest.raises(ConnectionFailed, match="does not speak TLS"):
        WebHdfs(HdfsEndpoint((server.url.replace("http:", "https:"),), "me")).status("/f")


@pytest.mark.parametrize("content", ["", "no certificate", "\x00", "\u00e4", "-----BEGIN CERTIFICATE-----\nAA==\n"])
def test_authorities_that_are_none(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A Java truststore, for instance: one line with the way out."""
    (tmp_path / "store.jks").write_text(content)
    assert main(["run", "-m", "-o", str(tmp_path / "f"), "--cacert", str(tmp_path / "store.jks")]) == 2
    assert "PEM form: keytool -exportcert" in capsys.readouterr().err
    assert main(["queues", "--cacert", str(tmp_path / "nothing")]) == 2
    assert "No such file" in capsys.readouterr().err


NEGOTIATE = {"WWW-Authenticate": "Negotiate"}


def test_a_login_that_is_not_kerberos(server: Server) -> None:
    """Said as that, not as a number alone."""
    server.status, server.body, server.headers = 401, b"<html>", {"WWW-Authenticate": "Basic"}
    with pytest.raises(Refused, match="takes neither this user"):
        server.ask()
    assert len(server.paths) == 1


def test_kerberos_without_its_extra(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names it, at once and for every call."""
    monkeypatch.setitem(sys.modules, "requests_kerberos", None)
    monkeypatch.delitem(sys.modules, "hdfs.ext.kerberos", raising=False)
    server.status, server.headers = 401, NEGOTIATE
    client = client_of(server.url, "me", 2, (5, 5))
    said = r"requires Kerberos.*pip install 'status-tool\[kerberos\]'.*$"
    with pytest.raises(ConnectionFailed, match=said):
        client.ask("GETFILESTATUS", "/file")
    with pytest.raises(ConnectionFailed, match=said):
        client.bean("NameNodeInfo")


class KerberosExchangeError(requests.RequestException):
    """As requests_kerberos calls it."""


class TakesTicket(requests.auth.AuthBase):
    """Stands for requests_kerberos, which needs the system's library: sends a ticket, or has none."""

    ticket: str | None = "Negotiate abc"

    def __init__(self, **kwargs: object) -> None:
        """What HdfsCLI passes on."""
        assert set(kwargs) == {"mutual_authentication", "hostname_override"}
        assert kwargs["hostname_override"] == "localhost", "no principal has an address"

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """The request with it."""
        if self.ticket is None:
            raise KerberosExchangeError("No Kerberos credentials available")
        request.headers["Authorization"] = self.ticket
        return request


@pytest.fixture
def kerberos(monkeypatch: pytest.MonkeyPatch) -> type[TakesTicket]:
    """The extra as HdfsCLI sees it."""
    stands = types.ModuleType("requests_kerberos")
    stands.HTTPKerberosAuth, stands.OPTIONAL = TakesTicket, 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "requests_kerberos", stands)
    monkeypatch.delitem(sys.modules, "hdfs.ext.kerberos", raising=False)
    return TakesTicket


def test_kerberos_by_spnego(server: Server, kerberos: type[TakesTicket]) -> None:
    """Once asked for, with each call, and without the name that anybody could give."""
    server.takes = "Negotiate abc"
    client = client_of(server.url, "me", 2, (5, 5))
    for _ in range(2):
        assert client.ask("GETFILESTATUS", "/file", x="1") == {"FileStatus": {}}
    assert [one.get("Authorization") for one in server.sent] == [None, "Negotiate abc", "Negotiate abc"]
    assert ["user.name" in one for one in server.queries] == [True, False, False]
    assert all(one["x"] == ["1"] for one in server.queries)


def test_a_ticket_that_is_missing_or_refused(
    server: Server, kerberos: type[TakesTicket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each one line, at once: trying again would not help."""
    server.takes = "Negotiate other"
    with pytest.raises(Refused, match="nor a Kerberos ticket"):
        server.ask()
    monkeypatch.setattr(kerberos, "ticket", None)
    monkeypatch.setitem(sys.modules, "gssapi", None)  # which would know better what is missing
    with pytest.raises(ConnectionFailed, match=r"no ticket for it: kinit \(No Kerberos credentials available\)"):
        server.ask()


def test_kerberos_over_tls(server: Server, kerberos: type[TakesTicket], tmp_path: Path) -> None:
    """By the same authorities as without Kerberos, and by no others."""
    good, other = certificate(tmp_path, "IP:127.0.0.1"), certificate(tmp_path, "DNS:elsewhere")
    server.over_tls(good)
    server.takes = "Negotiate abc"
    client = client_of(server.url, "me", 2, (5, 5), read_trust(Path(f"{good}.crt")))
    for op in ("GETFILESTATUS", "GETFILESTATUS", "RENEWDELEGATIONTOKEN"):
        assert client.ask(op, "/file") == {"FileStatus": {}}
    stranger: Any = client_of(server.url, "me", 2, (5, 5), read_trust(Path(f"{other}.crt")))
    stranger._session._authenticate()
    with pytest.raises(Failover, match="certificate"):
        stranger.ask("GETFILESTATUS", "/file")


def test_a_path_that_is_too_long_for_webhdfs() -> None:
    """The servers say no more than that the request is bad."""
    for path, status, told in (("名" * 400, 400, True), ("x" * 400, 400, False), ("x" * 4_000, 414, True)):
        refusal = refusal_of(status, b"<h1>Bad Message</h1>", f"http://h:1/webhdfs/v1/{path}?op=OPEN")
        assert ("--hdfs-client native" in str(refusal)) is told, path
