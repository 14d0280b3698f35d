"""Delegation tokens: got by the ticket, renewed, cancelled however a run ends, and never shown."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from status_tool.clients import delegation_tokens
from status_tool.clients.config import HdfsClient, Settings
from status_tool.clients.delegation_tokens import delegated, no_token_left
from status_tool.clients.hdfscli import reason, refused
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.webhdfs import HdfsEndpoint, Load, WebHdfs
from status_tool.errors import ConnectionFailed
from status_tool.gather.hdfs_side import files_endpoint, own_endpoint
from status_tool.vocabulary.selection import Exclusions
from tests.http_server import Answer, serve, url_of
from tests.unit.test_hdfscli import TakesTicket, kerberos  # noqa: F401  a fixture

TICKET, TOKEN = "Negotiate abc", "planted-secret"
DAY_S = 86400.0
STANDBY = json.dumps({"RemoteException": {"exception": "StandbyException", "message": "standby"}}).encode()


class NameNode:
    """Gives out one token to whoever has a ticket, and lets in whoever has either."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.cancelled = False
        self.good_for_s = DAY_S
        self.gives, self.renews = True, True
        namenode = self

        def answer(request: BaseHTTPRequestHandler) -> Answer:
            query = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
            status, body = namenode.serve(query, request.headers.get("Authorization") == TICKET)
            return status, {"WWW-Authenticate": "Negotiate"} if status == 401 else {}, body

        self.http = serve(answer, keeps_alive=True)
        self.endpoint = HdfsEndpoint((url_of(self.http),), "me")

    def serve(self, query: dict[str, str], has_ticket: bool) -> tuple[int, bytes]:
        if "op" not in query:
            return 404, b""  # its /jmx is closed
        operation = query["op"]
        if "delegation" in query:
            if self.cancelled or query["delegation"] != TOKEN:
                text = "Failed to obtain user group information: org.apache.hadoop.security.token.SecretManager"
                text += "$InvalidToken: Token for real user: , can't be found in cache"
                why = {"exception": "SecurityException", "message": text}  # as Hadoop 3.3.5 says it
                return 403, json.dumps({"RemoteException": why}).encode()
            self.operations.append(f"{operation} by token")
            return 200, b'{"FileStatus": {}}'
        if not has_ticket:
            return 401, b""
        self.operations.append(operation)
        if operation == "GETDELEGATIONTOKEN":
            return 200, json.dumps({"Token": {"urlString": TOKEN} if self.gives else None}).encode()
        if operation == "RENEWDELEGATIONTOKEN":
            assert query["token"] == TOKEN
            if not self.renews:
                return 403, STANDBY.replace(b"StandbyException", b"AccessControlException")
            return 200, json.dumps({"long": int((time.time() + self.good_for_s) * 1000)}).encode()
        if operation == "CANCELDELEGATIONTOKEN":
            self.cancelled = query["token"] == TOKEN
            return 200, b""
        return 200, b'{"FileStatus": {}}'


@pytest.fixture
def namenode(kerberos: type[TakesTicket], monkeypatch: pytest.MonkeyPatch) -> Iterator[NameNode]:  # noqa: F811
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    running = NameNode()
    yield running
    running.http.shutdown()
    running.http.server_close()


def test_a_run(namenode: NameNode) -> None:
    """One token for all who ask, with which no ticket is needed; it is cancelled at the end."""
    with no_token_left():
        with no_token_left():
            endpoint = delegated(namenode.endpoint)
        assert delegated(namenode.endpoint) == endpoint
        assert WebHdfs(endpoint, patience_s=0).status("/f") == {}
        assert TOKEN not in f"{endpoint} {endpoint!r}"
        expected = ["GETDELEGATIONTOKEN", "RENEWDELEGATIONTOKEN", "GETFILESTATUS by token"]
        assert namenode.operations == expected
    assert namenode.operations[3:] == ["CANCELDELEGATIONTOKEN"]
    assert namenode.cancelled


def test_an_interrupted_run(namenode: NameNode) -> None:
    """Ctrl-C, too."""

    def run() -> None:
        with no_token_left():
            delegated(namenode.endpoint)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert namenode.cancelled


@pytest.mark.slow
def test_a_run_longer_than_a_token(namenode: NameNode, eventually: Callable[[Callable[[], bool]], None]) -> None:
    """It is renewed before it is over."""
    namenode.good_for_s = 3.0
    with no_token_left():
        delegated(namenode.endpoint)
        eventually(lambda: namenode.operations.count("RENEWDELEGATIONTOKEN") >= 3)
    assert namenode.operations.count("GETDELEGATIONTOKEN") == 1


def test_one_thread_renews_all_tokens(namenode: NameNode, eventually: Callable[[Callable[[], bool]], None]) -> None:
    """It ends with the run."""

    def renewing() -> int:
        return sum(thread.name == "hdfs-tokens" for thread in threading.enumerate())

    eventually(lambda: renewing() == 0)
    namenode.good_for_s = -1.0
    with no_token_left():
        for _ in range(2):
            delegated(namenode.endpoint)
        assert namenode.operations.count("GETDELEGATIONTOKEN") == 2
        assert renewing() == 1
    eventually(lambda: renewing() == 0)


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    def wait(holds: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < end, "it never came"
            time.sleep(0.05)

    return wait


def test_a_token_that_was_cancelled_meanwhile(namenode: NameNode) -> None:
    """One line at once, which does not show it."""
    with no_token_left():
        endpoint = delegated(namenode.endpoint)
        namenode.cancelled = True
        with pytest.raises(ConnectionFailed, match="does not take this run's delegation token any more") as failed:
            WebHdfs(endpoint).status("/f")
    assert TOKEN not in str(failed.value)


def test_errors_do_not_show_it(namenode: NameNode) -> None:
    """Not those of a server that is away, nor what a server says with a URL in it."""
    endpoint = HdfsEndpoint(("http://127.0.0.1:1",), "me", token=TOKEN)
    with pytest.raises(ConnectionFailed) as failed:
        WebHdfs(endpoint, patience_s=0).status("/f")
    assert TOKEN not in str(failed.value)
    url = f"/webhdfs/v1/f?op=OPEN&delegation={TOKEN}&offset=0"
    assert reason(Exception(f"refused: {url}")) == "/webhdfs/v1/f?op=OPEN&delegation=…&offset=0"
    assert str(refused("IOException", f"GET {url}: no")) == "GET /webhdfs/v1/f?op=OPEN&delegation=…&offset=0: no"


def test_where_there_is_none(namenode: NameNode) -> None:
    """A NameNode without Kerberos of its own gives none: then the ticket has to do."""
    namenode.gives = False
    with no_token_left():
        assert delegated(namenode.endpoint) == namenode.endpoint
    assert namenode.operations == ["GETDELEGATIONTOKEN"]


def test_one_that_is_not_renewed_is_cancelled(namenode: NameNode) -> None:
    """Nobody would know of it afterwards."""
    namenode.renews = False
    with no_token_left(), pytest.raises(ConnectionFailed, match="gives no delegation token"):
        delegated(namenode.endpoint)
    assert namenode.cancelled


def test_the_namenode_that_gave_it_is_asked_first(namenode: NameNode) -> None:
    """It was the active one; with a token, one that lags passes for active where /jmx asks for a ticket."""
    standby = serve(lambda _: (403, {}, STANDBY), keeps_alive=True)
    try:
        with no_token_left():
            found = delegated(replace(namenode.endpoint, urls=(url_of(standby), *namenode.endpoint.urls)))
        assert found.urls == (*namenode.endpoint.urls, url_of(standby))
        assert found.token == TOKEN
    finally:
        standby.shutdown()
        standby.server_close()


@pytest.mark.parametrize("authentication", ["simple", "kerberos"])
def test_by_the_site_files(namenode: NameNode, authentication: str) -> None:
    """Hadoop's own setting decides whether a token is asked for."""
    site = SiteConfig({"hadoop.security.authentication": authentication})
    settings = Settings(site, webhdfs_option=namenode.endpoint.urls)
    with no_token_left():
        found = files_endpoint(settings, HdfsClient.AUTO, Load(), ("/",), Exclusions(()), lambda _: None)
        assert isinstance(found, HdfsEndpoint)
        assert bool(found.token) == (authentication == "kerberos")
    assert namenode.cancelled == (authentication == "kerberos")
    assert not delegation_tokens._TOKENS._held


def test_hbases_own_files_are_read_by_one_token_or_by_the_ticket(namenode: NameNode) -> None:
    """For each file that a ticket opens, a NameNode keeps a token of its own for a day."""
    settings = Settings(SiteConfig({"hadoop.security.authentication": "kerberos"}))
    with no_token_left():
        found = [own_endpoint(settings, namenode.endpoint.urls) for _ in range(2)]
        assert [one.token for one in found] == [TOKEN, TOKEN]
    assert namenode.operations == ["GETDELEGATIONTOKEN", "RENEWDELEGATIONTOKEN", "CANCELDELEGATIONTOKEN"]
    namenode.http.shutdown()
    namenode.http.server_close()
    assert own_endpoint(settings, namenode.endpoint.urls).token == ""
