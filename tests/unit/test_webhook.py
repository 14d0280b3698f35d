"""`watch --webhook`: CloudEvents to a real HTTP server that refuses, fails and takes its time."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from status_tool.errors import UsageError
from status_tool.watch import webhook
from status_tool.watch.webhook import CONTENT_TYPE, Webhook
from tests.http_server import Answer, ended, serve, url_of

ROUND = {"round": 1, "started_ms": 1_700_000_000_000, "verdict": "incomplete", "exit_code": 1}


class Receiver:
    """Answers with these codes, then with 204; keeps what it was sent."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.bodies: list[bytes] = []
        self.kinds: set[str] = set()
        self.server = serve(self._answer)

    def _answer(self, request: BaseHTTPRequestHandler) -> Answer:
        """Whoever follows a redirection finds a page there."""
        if request.command == "POST":
            self.bodies.append(request.rfile.read(int(request.headers["Content-Length"])))
            self.kinds.add(request.headers["Content-Type"])
        return self.codes.pop(0) if self.codes else 204, {"Location": "/elsewhere"}, b""

    @property
    def url(self) -> str:
        """Its address, with a secret."""
        return f"{url_of(self.server)}/hook?token=secret"

    @property
    def events(self) -> list[dict[str, Any]]:
        """Each of them is one line."""
        assert all(body.endswith(b"}\n") and body.count(b"\n") == 1 for body in self.bodies)
        return [json.loads(body) for body in self.bodies]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with ended(receiver.server):
        yield receiver


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "PAUSES_S", (0.01, 0.01, 0.01))


def sent(url: str, *documents: dict[str, Any]) -> None:
    """All of them, each delivered or given up."""
    hook = Webhook(url)
    for document in documents:
        hook.send("/status-tool/m/s", document)
    hook.close()


def test_an_event_is_a_cloud_event(receiver: Receiver) -> None:
    sent(receiver.url, ROUND, {**ROUND, "round": 2, "verdict": None, "exit_code": 2})
    first, second = receiver.events
    assert receiver.kinds == {CONTENT_TYPE}
    assert {key: value for key, value in first.items() if key != "id"} == {
        **{"specversion": "1.0", "source": "/status-tool/m/s", "type": "io.github.statustool.verdict.v1"},
        **{"subject": "incomplete", "time": "2023-11-14T22:13:20.000Z", "datacontenttype": "application/json"},
        "data": ROUND,
    }
    assert (second["subject"], first["id"] != second["id"]) == ("error", True)


def test_a_receiver_that_fails_is_tried_again(receiver: Receiver, capfd: pytest.CaptureFixture[str]) -> None:
    """The same event, so that a receiver which had it after all knows it by its id; then the next one."""
    receiver.codes = [503, 429]
    sent(receiver.url, ROUND, {**ROUND, "round": 2})
    assert [one["data"]["round"] for one in receiver.events] == [1, 1, 1, 2]
    assert len({one["id"] for one in receiver.events}) == 2
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("codes", "tries"), [([400], 1), ([302], 1), ([500] * 4, 4)])
def test_what_is_not_taken_is_said_and_the_next_one_sent(
    receiver: Receiver, capfd: pytest.CaptureFixture[str], codes: list[int], tries: int
) -> None:
    receiver.codes = codes.copy()
    sent(receiver.url, ROUND, {**ROUND, "round": 2})
    assert [one["data"]["round"] for one in receiver.events] == [1] * tries + [2]
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith(f"did not take an event: HTTP {codes[0]}")
    assert "secret" not in line


def test_a_receiver_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        sent(f"http://127.0.0.1:{port}/hook?token=secret", ROUND)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"status-tool: the webhook at http://127.0.0.1:{port} did not take an event: ")
    assert "refused" in line


def test_a_host_that_is_none_is_told_of_each_event(capfd: pytest.CaptureFixture[str]) -> None:
    """Python's error is no `OSError`: the sender's thread would end by it, and no event be told of any more."""
    sent("http://a..b/hook?token=secret", ROUND, ROUND)
    lines = capfd.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(" (")[0] for line in lines] == [
        "the webhook at http://a..b did not take an event: encoding with 'idna' codec failed"
    ] * 2


@pytest.mark.parametrize("url", ["", "x", "ftp://h/", "http://", "http://h:x/", "http://u:p@h/", "http://h/\n"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--webhook: expected"):
        Webhook(url)
