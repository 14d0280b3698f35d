"""What a comparison of rows leaves behind for later runs."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from status_tool.clients import named_table
from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.rules.kept_proofs import (
    BY_WORD,
    MARGIN_MS,
    NOTHING_SEEN,
    KeptBaseline,
    Seen,
    baseline_with,
    kept_of,
    lasting,
    proven_until,
    servers_since,
    told_by_master,
)
from status_tool.runs.live_rounds import forget_tables, record_words
from status_tool.sources import state_table
from status_tool.sources.state_table import StateTable
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import Baseline

LIVE = {"kind": "server", "role": "w", "live": True, "echoed": True, "read_ms": 500_000}
PROOF = KeptBaseline(1_000, frozenset({"f"}), NOTHING_SEEN)


def test_a_proof_holds_up_to_the_slowest_clock_less_what_clocks_may_differ() -> None:
    """A server that appends later, or starts later, writes a later time."""
    behind = {**LIVE, "read_ms": 480_000}
    gone = {**LIVE, "live": False, "echoed": False, "read_ms": 1_000}
    replicator = {**LIVE, "role": "r", "read_ms": 3_000}
    assert proven_until([LIVE, behind, gone, replicator]) == 480_000 - MARGIN_MS


def test_a_server_whose_clock_is_not_known_leaves_no_proof() -> None:
    assert proven_until([LIVE, {**LIVE, "echoed": False}]) is None
    assert proven_until([LIVE, {**LIVE, "read_ms": None}]) is None
    assert proven_until([]) is None


def test_the_later_of_an_operators_word_and_a_proof_counts() -> None:
    since = baseline_with(Baseline(None, {"a": 3_000, "b": 500}), {"a": PROOF, "b": PROOF, "c": PROOF})
    assert since.by_table == {"a": 3_000, "b": 1_000, "c": 1_000}


def test_servers_are_accepted_only_by_proofs_of_every_table() -> None:
    """An operator's word for single tables accepts no server."""
    word = Baseline(None, {"b": 9_000})
    assert servers_since(word, ["a", "b"], {"a": PROOF}) is None
    assert servers_since(word, ["a"], {"a": PROOF}) == 1_000
    assert servers_since(Baseline(5_000), ["a"], {"a": PROOF}) == 5_000
    assert servers_since(Baseline(), [], {}) is None
    both = {"a": PROOF, "b": KeptBaseline(3_000, frozenset({"f"}), NOTHING_SEEN)}
    assert servers_since(Baseline(500), ["a", "b"], both) == 1_000, "the earliest of them"


def test_servers_that_had_gone_before_a_table_was_there_need_no_proof_of_it() -> None:
    """It is younger by more than clocks differ; a table of which that is not known needs one."""
    assert servers_since(Baseline(), ["a", "b"], {"a": PROOF}, {"b": 70_000}) == 1_000
    assert servers_since(Baseline(), ["b"], {}, {"b": 70_000}) == 10_000
    assert servers_since(Baseline(), ["a"], {"a": PROOF}, {"a": 70_000}) == 10_000, "the later counts"
    assert servers_since(Baseline(500), ["a", "b"], {"a": PROOF}, {"b": None}) == 500


def test_nothing_is_kept_that_an_event_of_a_clock_that_was_ahead_would_outlive() -> None:
    """Its time hides all that happens until then, by whatever server: no other value would end the record."""
    now = 1_700_000_000_000
    for ahead in (Seen(own_ms=now + SKEW_MS + 1), Seen(dropped_ms={"f": now + SKEW_MS + 1})):
        kept, (notice,) = lasting({"a": PROOF, "b": replace(PROOF, seen=ahead)}, now)
        assert kept == {"a": PROOF}
        assert "nothing is kept of 1 table (b)" in notice
        assert "check again after that time" in notice
    within = replace(PROOF, seen=Seen(own_ms=now + SKEW_MS))
    assert lasting({"a": within}, now) == ({"a": within}, [])


def test_a_word_is_not_recorded_while_a_clock_that_was_ahead_hides_what_follows(stored: Stored) -> None:
    settings = cast(Settings, SimpleNamespace(thrift=lambda: None, state_table="replicationstate"))
    ahead = replace(PROOF, by=BY_WORD, seen=Seen(written_ms=state_table.now_ms() + 3_600_000)).to_json()
    outcome = Outcome(None, None, (), 0, master_cluster_id="m", accepts={"a": ahead})
    (line,) = record_words(settings, outcome, lambda _: None)
    assert "nothing is kept of 1 table (a)" in line
    assert stored.rows == {}


class Stored:
    """A state table in memory, whose newest cell counts."""

    def __init__(self) -> None:
        self.rows: dict[bytes, dict[bytes, tuple[bytes, int]]] = {}

    def row(self, key: bytes, columns: list[bytes], include_timestamp: bool) -> dict[bytes, tuple[bytes, int]]:
        assert include_timestamp
        return {name: cell for name, cell in self.rows.get(key, {}).items() if name in columns}

    def put(self, key: bytes, cells: dict[bytes, bytes], timestamp: int) -> None:
        for name, value in cells.items():
            known = self.rows.setdefault(key, {}).get(name)
            if known is None or known[1] <= timestamp:
                self.rows[key][name] = (value, timestamp)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Stored:
    """What the tool stores from here on."""
    table = Stored()
    client = SimpleNamespace(
        table=lambda _: table, tables=lambda: [b"replicationstate"], is_table_enabled=lambda _: True
    )
    monkeypatch.setattr(named_table, "connection", lambda *_, **__: nullcontext(client))
    monkeypatch.setattr(state_table, "scan", lambda *_: sorted(table.rows.items()))
    monkeypatch.setattr(StateTable, "require", lambda _: None)
    return table


def test_what_is_recorded_later_counts_whatever_clocks_show(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    state = StateTable(ThriftEndpoint("localhost", 9090), "replicationstate")
    for moment, until_ms in ((9_000, 1), (5_000, 2), (9_001, None), (1, 4)):
        monkeypatch.setattr(state_table, "now_ms", lambda moment=moment: moment)
        word = None if until_ms is None else KeptBaseline(until_ms, frozenset("f"), Seen(born_ms=7), BY_WORD)
        state.record_kept("m", {"ns:t": None if word is None else word.to_json()})
        assert kept_of(state.kept().get("ns:t", {}).get("m")) == word
    assert stored.rows.keys() == {b"vns:t"}


def test_nothing_to_record_changes_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an interruption would say that it may have, and each `--rows` would connect once more."""
    monkeypatch.setattr(named_table, "connection", lambda *_, **__: pytest.fail("nothing is to be written"))
    StateTable(ThriftEndpoint("localhost", 9090), "replicationstate").record_kept("m", {})


def test_what_is_forgotten_is_told(stored: Stored) -> None:
    """By whom, and up to when; another master's record stays."""
    settings = cast(Settings, SimpleNamespace(thrift=lambda: None, state_table="replicationstate"))
    word = KeptBaseline(1_000, frozenset("f"), NOTHING_SEEN, BY_WORD).to_json()
    outcome = Outcome(None, None, (), 0, master_cluster_id="m", accepts={"a": word, "b": word})
    (line,) = record_words(settings, outcome, lambda _: None)
    assert line.startswith("recorded: 2 tables rest on your word (--since)")
    assert "--forget TABLE takes it back" in line
    state = StateTable(ThriftEndpoint("localhost", 9090), "replicationstate")
    state.record_kept("m", {"c": PROOF.to_json()})
    state.record_kept("other", {"a": PROOF.to_json()})
    said: list[str] = []
    lines = forget_tables(settings, {"a", "c", "no"}, "m", said.append)
    assert lines == said
    assert [line.partition(" for ")[0] for line in lines] == [
        "forgotten: 1 table rests on an earlier comparison of rows (--rows)",
        "forgotten: 1 table rests on your word (--since)",
        "--forget no: nothing was recorded of its past",
    ]
    assert {table: set(by_master) for table, by_master in state.kept().items()} == {"a": {"other"}, "b": {"m"}}
    assert forget_tables(settings, (), "m", said.append) == []
    assert len(list(told_by_master(state.kept()))) == 2
