"""How long a run waits for region servers that answer no request for digests."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from status_tool.clients.config import Settings
from status_tool.clients.thrift import Cells
from status_tool.digests import requests
from status_tool.digests.digest import FOREVER, Family
from status_tool.digests.families import CLOCKS_MS
from status_tool.digests.request_rows import AnswerRow, RequestRow
from status_tool.digests.requests import DEAD_S, SILENT_AGAIN_S, SILENT_S, Requests
from status_tool.digests.wire import VERSION, Query
from status_tool.errors import ConnectionFailed
from status_tool.sources.state_table import now_ms
from status_tool.vocabulary.state_rows import column

SERVER = "rs1.example,16020,1"
STEP_S = 0.5


class Server:
    """A region server, and the clock by which it is waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.reported_ts: int | None = None
        monkeypatch.setattr(requests, "_SILENT", set())
        monkeypatch.setattr(requests, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(requests, "get", self.get)

    def get(self, *_: Any) -> Cells:
        """Its row of progress, or none."""
        return {} if self.reported_ts is None else {b"s:p": (b"", self.reported_ts)}

    def given_up_after(self) -> float:
        """Seconds that a new request waits for it."""
        settings = SimpleNamespace(thrift=lambda: None, state_table="state")
        asked = Requests(cast(Settings, settings), Query({"t": {b"f": Family(1)}}, bytes(16), 0))
        began = asked.server(SERVER).heard_at = self.now
        while not asked.is_silent(SERVER):
            self.now += STEP_S
        return self.now - began


def test_a_server_that_never_answers_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of tables that it hosts rows of."""
    server = Server(monkeypatch)
    assert [server.given_up_after() for _ in range(3)] == [
        SILENT_S + STEP_S,
        SILENT_AGAIN_S + STEP_S,
        SILENT_AGAIN_S + STEP_S,
    ]


def test_one_that_answers_after_all_is_waited_for_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was slow, not without trackers."""
    server = Server(monkeypatch)
    server.given_up_after()
    server.reported_ts = 1
    assert server.given_up_after() >= DEAD_S
    server.reported_ts = None
    assert server.given_up_after() == SILENT_S + STEP_S


@pytest.mark.parametrize(
    ("oldest", "off_ms", "is_refused"), [(5, 0, False), (5, 2 * CLOCKS_MS, True), (FOREVER, 2 * CLOCKS_MS, False)]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_cells_of_a_ttl_are_chosen_by_no_clock_that_is_wrong(
    sign: int, oldest: int, off_ms: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is ahead by more than the TTL would leave all cells out, and the rest is equal.

    The request shows it: an answer may be read much later, as of a server that gave the region away meanwhile.
    """
    settings = SimpleNamespace(thrift=lambda: None, state_table="state")
    asked = Requests(cast(Settings, settings), Query({"t": {b"f": Family(1, oldest)}}, bytes(16), 0))
    request = {column(RequestRow.HEARTBEAT): (bytes(8), now_ms() + sign * off_ms)}
    answer = {column(AnswerRow.ANSWERS): (struct.pack(">bi", VERSION, 0), now_ms() - 2 * CLOCKS_MS)}
    rows = {RequestRow.TYPE: request, AnswerRow.TYPE: answer}
    monkeypatch.setattr(requests, "get", lambda _, __, row: rows[chr(row[0])])
    monkeypatch.setattr(requests, "scan", lambda _, __, start, ___: iter([(start, rows[chr(start[0])])]))
    monkeypatch.setattr(Requests, "_require_table", lambda _: None)
    monkeypatch.setattr(Requests, "_put", lambda *_: None)
    with pytest.raises(ConnectionFailed, match="clock") if is_refused else nullcontext(), asked:
        assert list(asked.hear(SERVER)) == []
