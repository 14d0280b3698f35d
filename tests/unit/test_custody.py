"""Who vouches for the regions of the slave: by rows of `hbase:meta`, of servers and of the content ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from status_tool.clients.config import ThriftEndpoint
from status_tool.rules.custody import Places, survey, unattended, unattended_rows
from status_tool.sources import codec, state_table
from status_tool.sources.state_table import Generation, StateTableSource
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.state_rows import column
from status_tool.vocabulary.states import FactState, RegionState
from status_tool.vocabulary.verdicts import Verdict
from tests.unit.test_evidence_reference import OURS, THEIRS, check, only

ONE, TWO, BLIND, SILENT, DEAD = (f"s{number},1,{number}" for number in range(5))
READ_MS = 5_000


def server(name: str, *, tracked: bool = True, echoed: bool = True) -> NewRow:
    known = {"server": name, "origin": origin_id(name), "tracked": tracked, "echoed": echoed, "read_ms": READ_MS}
    return {"kind": "server", "role": "r", "live": True, **known}


SERVERS = [
    *(server(ONE), server(TWO), server(BLIND, tracked=False, echoed=False), server(SILENT, echoed=False)),
    {**server(DEAD), "live": False},
]


def region(name: str, start: bytes, end: bytes, host: str | None = ONE, state: str = "hosted") -> NewRow:
    placed = {"start_key": start, "end_key": end, "server": host, "state": RegionState(state)}
    return {"kind": "region", "table": "t", "region": name * 16, **placed}


def opening(
    host: str, *, began: int = 1_000, opened: int | None = None, closed: int | None = None
) -> dict[bytes, tuple[bytes, int]]:
    """A column of a region's row in the content ledger; `opened` where it has taken over an earlier one."""
    name = b"k" + origin_id(host).to_bytes(8, "big", signed=True) + (opened or began).to_bytes(8, "big")
    tenure = {"o": 2, "t": began, "s": 9, "r": [], "a": {}, "b": {"c": [1, 2, 0, 0]}}
    return {column(name): (json.dumps(tenure | ({"c": closed} if closed else {}), separators=(",", ":")).encode(), 1)}


Ledger = Mapping[str, Mapping[bytes, tuple[bytes, int]]]


def left(regions: list[NewRow], ledger: Ledger) -> dict[str, str]:
    """By region that nobody vouches for, why."""
    places, _ = survey(regions, SERVERS)
    found: dict[str, str] = {}
    for first in sorted({row["region"][0] for row in regions}):
        waiting = places.beginning_with(first)
        rows = sorted((f"f{name * 16}".encode(), dict(cells)) for name, cells in ledger.items() if name[0] == first)
        assert [key for key, _ in codec.attended(rows, places, waiting)] == [key for key, _ in rows]
        found |= {name[:2]: place.why for name, place in waiting.items()}
    return found


@pytest.mark.parametrize(
    ("cells", "is_in_custody"),
    [
        (opening(ONE), True),
        (opening(ONE, closed=READ_MS + 1) | opening(TWO), True),  # it moved after hbase:meta was read
        (opening(TWO, opened=READ_MS + 1), True),  # and the opening there has taken over the one here
        (opening(TWO, opened=READ_MS), False),
        (opening(BLIND, opened=READ_MS + 1), False),
        (opening(TWO), False),  # of another place: its close may never have been recorded
        (opening(ONE, closed=READ_MS + 1), True),  # it is on its way since
        (opening(ONE, closed=READ_MS), False),
        (opening(ONE, closed=READ_MS) | opening(TWO, began=6_000), False),
        (opening(BLIND), False),
        (opening(SILENT), False),
        *((opening(host, closed=READ_MS + 1), False) for host in (BLIND, SILENT, DEAD)),
        (opening("gone,1,1"), False),
        ({}, False),
        ({column(b"t"): (b"t", 1)}, False),
        ({next(iter(opening(ONE))): (b"", 1)}, False),
    ],
)
def test_a_watched_server_had_the_tenure_open(cells: dict[bytes, tuple[bytes, int]], is_in_custody: bool) -> None:
    found = left([region("ab", b"", b"")], {"ab": cells})
    assert found == ({} if is_in_custody else {"ab": f"it is on {ONE}, which has not recorded that it opened it"})


def test_why_nobody_vouches() -> None:
    regions = [
        region("a0", b"", b"b"),
        region("a1", b"b", b"c", BLIND),
        region("a2", b"c", b"d", SILENT),
        region("b3", b"d", b"e", None, "unhosted"),
        region("b4", b"e", b"", None, "disabled"),
        region("c5", b"", b"", None, "split"),
    ]
    ledger = {name: opening(ONE, closed=1_500) for name in ("a1", "a2", "b3", "b4", "c5")} | {"a0": opening(ONE)}
    found = left(regions, ledger)
    assert found.keys() == {"a1", "a2", "b3", "b4"}
    assert (BLIND in found["a1"], "without the tracker" in found["a1"]) == (True, True)
    assert (SILENT in found["a2"], "not flushed" in found["a2"]) == (True, True)
    assert ("no live" in found["b3"], "disabled" in found["b4"]) == (True, True)


@pytest.mark.parametrize(
    ("regions", "torn"),
    [
        ([region("a0", b"", b"b"), region("a1", b"b", b"")], None),
        ([region("a0", b"", b""), region("a1", b"", b"b"), region("a2", b"b", b"")], "a1"),
        ([region("a0", b"", b"", None, "split"), region("a1", b"", b"b"), region("a2", b"b", b"")], None),
        ([region("a1", b"a", b"")], "a1"),
        ([region("a0", b"", b"b"), region("a1", b"c", b"")], "a1"),
        ([region("a0", b"", b"c"), region("a1", b"b", b"")], "a1"),
        ([region("a0", b"", b"b"), region("a1", b"b", b"c")], "a1"),
    ],
)
def test_regions_cover_every_key_once(regions: list[NewRow], torn: str | None) -> None:
    _, tables = survey(regions, SERVERS)
    assert tables["t"].get("torn") == (torn and torn * 16)
    assert tables["t"]["regions"] == sum(row["state"] != RegionState.SPLIT for row in regions)


def test_one_row_a_table_says_how_many() -> None:
    regions = [region(f"a{number:x}", bytes([number]) * (number > 0), bytes([number + 1])) for number in range(3)]
    places, _ = survey(regions, SERVERS)
    (row,) = unattended_rows(places.beginning_with("a"))
    assert (row["table"], row["state"], row["region"], row["entries"]) == ("t", FactState.UNATTENDED, "a0" * 16, 3)
    (known,) = unattended([row, {**row, "region": "00", "entries": 2}]).values()
    assert (known.regions, known.example) == (5, "00")


@pytest.mark.parametrize(
    ("hosts", "is_settling"), [((ONE, TWO), True), ((ONE, BLIND), False), ((BLIND, ONE), False), ((ONE, None), False)]
)
def test_a_wait_settles_openings_that_are_not_recorded_and_nothing_else(
    hosts: tuple[str | None, str | None], is_settling: bool
) -> None:
    """The region of which somebody has to mend something is the one that is named, whichever part has it."""
    regions = [
        region(name, start, end, host, "hosted" if host else "unhosted")
        for name, start, end, host in (("a0", b"", b"b", hosts[0]), ("a1", b"b", b"", hosts[1]))
    ]
    places, _ = survey(regions, SERVERS)
    waiting = places.beginning_with("a")
    parts = [row for name, place in waiting.items() for row in unattended_rows({name: place})]
    for rows in (list(unattended_rows(waiting)), parts, parts[::-1]):
        (known,) = unattended(rows).values()
        assert (known.regions, known.is_settling) == (2, is_settling)
        ours, theirs = [*OURS], [*THEIRS, *({**row, "table": "ns:t"} for row in rows)]
        outcome = check(ours, theirs)
        assert (outcome.verdict, outcome.is_settling) == (Verdict.UNVERIFIABLE, is_settling)
        assert ("has not recorded" in only(outcome).detail) == is_settling
    assert not check().is_settling


@pytest.mark.parametrize("arrives", [True, False])
def test_an_opening_may_be_written_a_moment_later(monkeypatch: pytest.MonkeyPatch, arrives: bool) -> None:
    """A region that moves while the ledger is read is looked up again; one that nobody watches is not."""
    places, _ = survey([region("a0", b"", b"b"), region("a1", b"b", b"", BLIND)], SERVERS)
    stored: dict[bytes, Any] = {}
    asked: list[bytes] = []

    class Client:
        def table(self, name: str) -> Client:
            return self

        def rows(self, keys: list[bytes], include_timestamp: bool) -> list[Any]:
            asked.extend(keys)
            return [(key, stored[key]) for key in keys if key in stored]

    class Connection:
        def __enter__(self) -> Client:
            return Client()

        def __exit__(self, *error: object) -> None:
            if arrives:
                stored[b"f" + b"a0" * 16] = opening(ONE)

    monkeypatch.setattr(state_table, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(state_table, "connection", lambda _: Connection())
    source = StateTableSource(ThriftEndpoint("h", 1), "t", "f", Generation(b"t", b""), places=places)
    (row,) = source._rows(state_table.KeyRange("f", "a"), [])
    # Of two, the one is named that no tracker will record by itself.
    assert (row["region"], row["entries"]) == ("a1" * 16, 1 if arrives else 2)
    assert set(asked) == {b"f" + b"a0" * 16}
    assert len(asked) == (2 if arrives else state_table.LOOKS_AGAIN)


def test_a_cluster_without_regions() -> None:
    assert survey([], SERVERS)[1] == {}
    assert Places().beginning_with("0") == {}
