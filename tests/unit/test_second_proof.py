"""A witness beside trackers: both are right, or the tool says that one is wrong."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from status_tool.rules.context import build_context
from status_tool.rules.evident import verdicts_of
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.server_settings import SINGLE_ENTRIES
from status_tool.rules.tables import table_ages
from status_tool.rules.witnessed import WitnessFacts
from status_tool.sources.codec import following
from status_tool.vocabulary.header import SKEW_MS, Header
from status_tool.vocabulary.ids import origin_id, via_id
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import NOTHING_ACCEPTED, Baseline, Scope
from status_tool.vocabulary.verdicts import Evidence, Verdict
from tests.judgement import verify_rows
from tests.unit.test_evidence_reference import hbase

Row = dict[str, Any]
SENDER = "00000000-0000-0001-0000-000000000002"
MS = 1_700_000_000_000
END = MS + 3 * SKEW_MS
IDS = (4, 5, 9, 12)
SERVER = "a,1,1"
MASTER = Header("master", SENDER, END, END, barrier_issued_ms=END, coverage_ms=1, witnesses=("one",), witness_peer="w")
SLAVE = Header("slave", "00000000-0000-4000-8000-000000000002", END + 9, END + 9)
SENT_ALL = WitnessFacts(since_ms=1)
TRACKED: Row = {"table": "t", "region": "r", "family": "f", "origin": origin_id(SERVER), "via": via_id((), "f")}
WITNESSED: Row = {**TRACKED, "origin": origin_id(SENDER), "via": via_id((bytes.fromhex(SENDER.replace("-", "")),), "f")}
RECORDS_ALL = json.dumps({"settings": {SINGLE_ENTRIES: "all"}})


def stream(of: Row, ids: Collection[int], written_ms: int = MS) -> Row:
    times = {"first_ms": MS, "write_ms": written_ms}
    return {"kind": "stream", **of, "seq": max(ids), "entries": len(ids), **times}


def stamped(ids: Collection[int], arrived: Collection[int]) -> list[Row]:
    """What the slave records of stamped entries."""
    pairs = zip((0, *sorted(ids)), sorted(ids), strict=False)
    times = {"first_ms": MS, "write_ms": MS, "recorded_ms": MS}
    return [{"kind": "segment", **TRACKED, "prev": prev, "seq": seq, **times} for prev, seq in pairs if seq in arrived]


def singly(sent: Collection[int], arrived: Collection[int]) -> list[Row]:
    """What it records of single entries, joined by what the witness was sent."""
    between = dict(zip(sorted(sent), ((prev, MS) for prev in (0, *sorted(sent))), strict=False))
    times = {"first_ms": MS, "write_ms": MS, "recorded_ms": MS}
    rows = ({"kind": "segment", **WITNESSED, "prev": one - 1, "seq": one, **times} for one in sorted(arrived))
    return list(following(rows, {("r", WITNESSED["origin"], WITNESSED["via"]): between}))


def check(
    *,
    sent: Collection[int] = IDS,
    by_stamps: Collection[int] = IDS,
    by_id: Collection[int] = IDS,
    master: Header = MASTER,
    facts: WitnessFacts | None = SENT_ALL,
    detail: str | None = RECORDS_ALL,
    since: Baseline = NOTHING_ACCEPTED,
    servers: Collection[Row] = (),
    written_ms: int = MS,
) -> Outcome:
    """The verdict on one region whose trackers have written `IDS`, and never by less than all that is known of it."""
    alive = {"kind": "server", "live": True, "tracked": True, "echoed": True, "flush_ms": END}
    ours: list[Row] = [
        {**alive, "server": SERVER, "origin": TRACKED["origin"], "role": "w", "read_ms": END},
        {"kind": "table", "table": "t", "detail": json.dumps({"families": {"f": {"scope": 1}}})},
        {"kind": "region", "table": "t", "region": "r", "state": "hosted", "server": SERVER, "region_id": 2},
        stream(TRACKED, IDS, written_ms),
        *([stream(WITNESSED, sent)] if sent else []),
    ]
    theirs: list[Row] = [
        {**alive, "server": "b,1,1", "origin": 9, "role": "r", "detail": detail},
        {"kind": "table", "table": "t", "detail": json.dumps({"families": {"f": {}}, "regions": 1})},
        *stamped(IDS, by_stamps),
        *singly(sent, by_id),
        *servers,
    ]
    scope = Scope(check_hdfs=False, since=since)
    context = build_context(ours, theirs, table_ages(ours), master, SLAVE, scope, QueueFacts(witness=facts))
    assert context.second is not None
    assert bool(list(verdicts_of(context))) is bool(context.second.reason)
    return verify_rows(ours, theirs, master, SLAVE, scope, QueueFacts(witness=facts))


def contradictions(outcome: Outcome) -> list[str]:
    return [problem.detail for problem in outcome.problems if problem.code == "contradiction"]


def test_both_find_everything() -> None:
    """The evidence is that of the trackers, and a notice says that a witness was asked."""
    outcome = check()
    assert outcome.verdict is Verdict.COMPLETE, outcome.problems
    assert hbase(outcome).evidence is Evidence.EXACT
    assert any("asked beside the trackers" in notice for notice in outcome.notices)


@pytest.mark.parametrize("lost", [(4,), (5,), (5, 9), (12,), IDS])
def test_what_only_the_witness_misses_is_a_contradiction(lost: tuple[int, ...]) -> None:
    """Never complete; both findings and the region are named, with the way out."""
    outcome = check(by_id=[one for one in IDS if one not in lost])
    assert outcome.verdict is Verdict.UNVERIFIABLE, outcome.problems
    (words,) = contradictions(outcome)
    before = max((one for one in IDS if one < lost[0]), default=0)
    assert "by the trackers all entries up to sequence id 12 have arrived" in words
    assert f"no record of any after {before} up to {lost[-1]}" in words
    (problem,) = outcome.problems
    assert problem.region == "r"
    assert all(word in (problem.advice or "") for word in ("--rows", "report a bug"))


def test_what_only_the_trackers_miss_stays_a_gap_beside_the_contradiction() -> None:
    """The stricter of the two counts."""
    outcome = check(by_stamps=[one for one in IDS if one != 9])
    assert outcome.verdict is Verdict.INCOMPLETE
    assert {problem.code for problem in outcome.problems} == {"gap", "contradiction"}
    assert "the slave has recorded each" in contradictions(outcome)[0]


@pytest.mark.parametrize("lost", [(5,), (12,), IDS])
def test_a_loss_that_both_find_is_no_contradiction(lost: tuple[int, ...]) -> None:
    """It is what it was."""
    left = [one for one in IDS if one not in lost]
    outcome = check(by_stamps=left, by_id=left)
    assert outcome.verdict is Verdict.INCOMPLETE
    assert not contradictions(outcome)


def test_an_entry_that_the_witness_was_not_sent_is_a_contradiction() -> None:
    """If it must have been: it was written well before the barrier, and everything was shipped to it."""
    (words,) = contradictions(check(sent=IDS[:-1], by_id=IDS))
    assert "by the trackers entry 12 was written, and has arrived; the witness was sent none after 9" in words
    assert contradictions(check(sent=(), by_id=IDS))
    excuses: tuple[dict[str, Any], ...] = (
        {"master": replace(MASTER, unwitnessed="it lags")},
        {"facts": None},
        {"facts": WitnessFacts("its peer w has its own endpoint", since_ms=1)},
        {"facts": WitnessFacts(since_ms=MS)},
        {"facts": WitnessFacts(since_ms=1, withheld={"t": ("f",)})},
        {"written_ms": END - SKEW_MS + 1},
        {"since": Baseline(by_table={"t": MS})},
    )
    for excuse in excuses:
        outcome = check(sent=IDS[:-1], by_id=IDS, **excuse)
        assert outcome.verdict is Verdict.COMPLETE, (excuse, outcome.problems)


def test_what_either_has_beyond_the_other_was_read_at_another_moment() -> None:
    """The witness's folder and the heads are read one after the other, under load."""
    assert not contradictions(check(sent=(*IDS, 20, 30), by_id=IDS))
    assert contradictions(check(sent=(*IDS, 20, 30), by_id=(4, 9, 12)))
    assert not contradictions(check(sent=(4, 5, 20), by_id=(4, 5), written_ms=END))


def test_a_slave_that_does_not_record_each_entry_asks_the_trackers_alone() -> None:
    """As trackers of an earlier version, or without the setting; what servers that are gone applied is not asked."""
    for detail in (None, json.dumps({"settings": {SINGLE_ENTRIES: "true"}})):
        outcome = check(by_id=(), detail=detail)
        assert outcome.verdict is Verdict.COMPLETE, outcome.problems
        assert any("the trackers alone were asked" in notice and "b,1,1" in notice for notice in outcome.notices)
    gone = {"kind": "server", "server": "c,1,1", "origin": 8, "role": "r", "live": False, "final_ms": MS}
    assert not contradictions(check(by_id=(), servers=[gone]))
    assert contradictions(check(by_id=(), servers=[{**gone, "final_ms": MS - SKEW_MS - 1}]))


@pytest.mark.parametrize("lost", [(4, 5), (4,), (5,)])
def test_a_loss_that_is_older_than_the_witness_is_no_contradiction(lost: tuple[int, ...]) -> None:
    """Also of the first entry of a stream, before which nothing was written: the witness was sent 9 and 12."""
    left = [one for one in IDS if one not in lost]
    outcome = check(sent=(9, 12), by_stamps=left, by_id=(9, 12), facts=WitnessFacts(since_ms=MS + 1))
    assert outcome.verdict is Verdict.INCOMPLETE
    assert not contradictions(outcome)


@pytest.mark.parametrize(
    ("segment", "joined"),
    [
        ((11, 12), (9, 12)),  # the entry 12 alone, which follows 9
        ((10, 14), (9, 14)),  # 11 was sent to the slave alone
        ((8, 14), (8, 14)),  # 9 begins where it is: 8 and 9 follow one another
        ((4, 9), (0, 9)),  # 5 is older than the witness's peer, whose first entry is 7
        ((4, 6), (4, 6)),  # none that the witness was sent
        ((12, 13), (12, 13)),  # consecutive: the witness says nothing of 13
        ((13, 14), (13, 14)),
    ],
)
def test_a_segment_is_joined_with_the_entry_sent_before(segment: tuple[int, int], joined: tuple[int, int]) -> None:
    """Those are 7, 8, 9, 12, 13; what the slave alone was sent may lie in between, or before."""
    row = {"kind": "segment", **WITNESSED, "prev": segment[0], "seq": segment[1]}
    other = {"kind": "replicated", "table": "t", "region": "r", "write_ms": MS}
    known = {("r", WITNESSED["origin"], WITNESSED["via"]): {7: (0, 0), 12: (9, MS)}}
    found, same = following([row, other], known)
    assert (found["prev"], found["seq"]) == joined
    assert same == other
