"""The operator's word: what a message prints is taken by a check, and is enough; what it does not cover stays."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from status_tool.gather.snapshot import apply_shutdown
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.words import Word, covers_file, since_option
from status_tool.runs.question import SideFacts, question_of, refuse_since
from status_tool.vocabulary.header import BY_CHECK, RECORDED, Header
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import Baseline
from status_tool.vocabulary.verdicts import Evidence, Verdict
from tests.unit.test_evidence_reference import (
    DETAIL,
    HBASE,
    LOST_SERVER,
    MASTER,
    OLD_REGION,
    OURS,
    SLAVE,
    TABLE,
    THEIRS,
    Row,
    check,
    described,
    hbase,
    recorded,
)
from tests.unit.test_queues import SUMMARY

BARRIER = MASTER.cut_ms
EARLIER = replace(MASTER, cut_ms=BARRIER - 9_000, shutdown_ms=BARRIER - 9_000, shutdown_from=RECORDED)
"""With a shutdown time; the last entry was written a second before."""
FACT: Row = {"kind": "fact", "table": "ns:t", "region": "r1"}
CODED: Row = {"server": "old,1,1", "origin": 9, "live": False, "echoed": False, "tracked": True, "role": "w"}
FILTER = "hbase.replication.sink.walentrysinkfilter"


def of_master(kind: str, moment_ms: int | None) -> dict[str, Any]:
    """A check of a master with a change of that time: its rows, and more that is asked."""
    coded = {"detail": json.dumps({"settings": {"hbase.hregion.impl": "com.x.R"}}), "final_ms": moment_ms}
    health = {"errors": 1, "last_error_ms": moment_ms}
    facts: dict[str, Row] = {
        "bulkload": {"state": "bulkload"},
        "localload": {"state": "localload"},
        "changed": {"state": "changed"},
        "tail": {"state": "tail", "origin": 2, "seq": 9},
    }
    if kind in facts:
        queues = QueueFacts(drained=frozenset({2}))
        gone = [LOST_SERVER] if kind == "tail" else []
        return {"ours": [*OURS, *gone, {**FACT, **facts[kind], "write_ms": moment_ms}], "queues": queues}
    others: dict[str, dict[str, Any]] = {
        "skipped": {"ours": described(OURS, skipped_ms=moment_ms)},
        "raised": {"ours": described(OURS, raised_ms={"f": moment_ms})},
        "pruned": {"ours": described(OURS, pruned=[["00" * 16, moment_ms]])},
        "unstamped": {"theirs": [*THEIRS, {**FACT, "kind": "unstamped", "write_ms": moment_ms}]},
        "coverage": {"master": {"coverage_ms": moment_ms}},
        "crash": {"ours": [*OURS, {**LOST_SERVER, "gone_ms": moment_ms}]},
        "errors": {"ours": [*OURS, {**LOST_SERVER, "final_ms": moment_ms, "detail": json.dumps(health)}]},
        "coded": {"ours": [*OURS, {**OURS[0], **CODED, **coded}]},
    }
    return others[kind]


KINDS = ("skipped", "raised", "pruned", "unstamped", "coverage", "crash", "errors", "coded")


def asked(given: dict[str, Any], header: Header, since: Baseline, **scope: Any) -> Outcome:
    """The check with a word, which it takes."""
    header = replace(header, **given.get("master", {}))
    refuse_since(header, since)
    more = {name: value for name, value in given.items() if name != "master"}
    return check(scope=replace(HBASE, since=since, **scope), master=header, **more)


def walked(outcome: Outcome, header: Header) -> tuple[Header, Baseline]:
    """FILE's header and the word by the options that the only problem names."""
    (problem,) = outcome.problems
    said = f"{problem.detail} {problem.advice}"
    (shift, table, given) = re.findall(r"(?:-s (\d+) )?--since (ns:t=)?(\d+)", said)[0]
    if shift:
        header = apply_shutdown(header, int(shift), BY_CHECK, BARRIER)
        assert header.cut_ms == int(shift)
    return header, Baseline(None, {"ns:t": int(given)}) if table else Baseline(int(given))


@pytest.mark.parametrize("kind", [*KINDS, "bulkload", "localload", "changed", "tail"])
@pytest.mark.parametrize("header", [MASTER, EARLIER])
@pytest.mark.parametrize("moment_ms", [BARRIER - 10_000, BARRIER - 5_000, BARRIER, BARRIER + 5, BARRIER + 700_000])
def test_the_printed_word_is_taken_and_is_enough_and_nothing_less(kind: str, header: Header, moment_ms: int) -> None:
    """Whenever FILE stamps a change: before its cut, after a shutdown time, or after the barrier.

    A clock may be ahead, or the change have come while FILE was written, and the master may be gone since.
    """
    given = of_master(kind, moment_ms)
    outcome = asked(given, header, Baseline())
    assert outcome.verdict is Verdict.UNVERIFIABLE
    header, since = walked(outcome, header)
    (until_ms,) = {*since.by_table.values(), since.everything_ms} - {None}
    assert until_ms == min(moment_ms, BARRIER)
    accepted = asked(given, header, since)
    assert (accepted.verdict, accepted.problems) == (Verdict.COMPLETE, ())
    assert hbase(accepted).evidence is Evidence.ACCEPTED
    less = replace(
        since, **{"everything_ms": until_ms - 1} if since.everything_ms else {"by_table": {"ns:t": until_ms - 1}}
    )
    assert asked(given, header, less).verdict is Verdict.UNVERIFIABLE


@pytest.mark.parametrize("kind", KINDS[:5])
def test_a_word_for_a_table_covers_all_of_file_only_where_it_is_given(kind: str) -> None:
    """FILEs are written by hosts whose clocks differ: one that is later may have an earlier barrier."""
    given, whole = of_master(kind, BARRIER + 700_000), Baseline(None, {"ns:t": BARRIER})
    first = asked({"ours": OLD_REGION}, MASTER, whole)
    kept = given | {"theirs": [*recorded(first), *given.get("theirs", [])[len(THEIRS) :]]}
    assert asked(kept, MASTER, Baseline()).verdict is Verdict.UNVERIFIABLE
    assert asked(kept, MASTER, whole).verdict is Verdict.COMPLETE
    assert asked(kept, MASTER, Baseline(None, {"ns:other": BARRIER})).verdict is Verdict.UNVERIFIABLE


def test_a_table_that_was_truncated_after_the_cut_can_be_accepted() -> None:
    """Its regions are younger than the cut."""
    ours = [{**row, "region": "r2", "region_id": BARRIER + 5} if row["kind"] == "region" else row for row in OURS]
    assert asked({"ours": ours}, MASTER, Baseline()).problems[0].code == "truncated"
    accepted = asked({"ours": ours}, MASTER, Baseline(None, {"ns:t": BARRIER}))
    assert (accepted.verdict, hbase(accepted).evidence) == (Verdict.COMPLETE, Evidence.ACCEPTED)
    assert asked({"ours": ours}, MASTER, Baseline(None, {"ns:t": BARRIER - 1})).verdict is Verdict.UNVERIFIABLE


def test_a_server_that_no_tracker_knows_can_be_accepted_with_all_that_file_tells_of() -> None:
    """Its archived WAL was closed after the barrier, and no later FILE need be had."""
    wal = {"opened_ms": BARRIER - 9_000, "modified_ms": BARRIER + 5}
    queue = {"kind": "queue", "detail": json.dumps({**SUMMARY, "writers": {"x,1,1": wal}})}
    peer = {"kind": "peer", "name": "1", "detail": json.dumps({"id": "1", "cluster_id": SLAVE.cluster_id})}
    sides = SideFacts(MASTER, (*OURS, peer, queue)), SideFacts(SLAVE, tuple(THEIRS))
    assert question_of(*sides, HBASE).queues.strays
    assert question_of(*sides, replace(HBASE, since=Baseline(BARRIER - 1))).queues.strays
    assert not question_of(*sides, replace(HBASE, since=Baseline(BARRIER))).queues.strays


SLAVES = {
    "errors": {"detail": json.dumps({"errors": 1, "last_error_ms": BARRIER + 5})},
    "a damaged row": {"detail": '{"clock_back_ms": "soon"}'},
    "code of others, gone": {
        "detail": json.dumps({"settings": {FILTER: "com.x.F"}}),
        **{"live": False, "echoed": False, "gone_ms": BARRIER + 5},
    },
}


@pytest.mark.parametrize("server", SLAVES.values(), ids=SLAVES)
def test_a_word_for_the_master_covers_nothing_that_a_server_of_the_slave_did_later(server: Row) -> None:
    """With the master gone a word that is given anew for each table does, as for what happens to tables."""
    other: Row = {**TABLE, "table": "ns:u", "detail": DETAIL}
    region = {"kind": "region", "table": "ns:u", "region": "r5", "state": "hosted", "server": "a,1,1"}
    ours = [*OURS, other, {**region, "region_id": 2_000}]
    theirs = [*THEIRS, other, {**THEIRS[0], "server": "s,1,1", "origin": 7, "role": "r", **server}]
    given = {"ours": ours, "theirs": theirs}
    (problem,) = asked(given, MASTER, Baseline()).problems
    assert "--forget TABLE --since TABLE=" in f"{problem.detail} {problem.advice}"
    tables = {"ns:t": BARRIER, "ns:u": BARRIER}

    def verdict(since: Baseline, forgotten: Sequence[str] = ()) -> Verdict:
        return asked(given, MASTER, since, forgotten=frozenset(forgotten)).verdict

    assert verdict(Baseline(BARRIER)) is Verdict.UNVERIFIABLE
    assert verdict(Baseline(None, tables)) is Verdict.UNVERIFIABLE
    assert verdict(Baseline(None, tables), ["ns:t"]) is Verdict.UNVERIFIABLE
    assert verdict(Baseline(None, {"ns:t": BARRIER}), [*tables]) is Verdict.UNVERIFIABLE
    assert verdict(Baseline(None, tables), [*tables]) is Verdict.COMPLETE


def test_a_word_on_servers_by_side() -> None:
    assert [Word(is_whole=True).is_for_all_of(side) for side in ("master", "slave")] == [True, False]
    assert [Word(is_anew=True).is_for_all_of(side) for side in ("master", "slave")] == [False, True]


def test_the_option_for_a_time() -> None:
    assert since_option(None, None, MASTER) == "--since TIME"
    assert since_option("ns:t", BARRIER + 5) == f"--since ns:t={BARRIER + 5}", "what is no check takes any time"
    assert since_option("ns:t", BARRIER + 5, MASTER) == f"--since ns:t={BARRIER}"
    assert since_option("t", BARRIER + 5, EARLIER) == f"-s {BARRIER} --since t={BARRIER}"
    assert since_option("t", EARLIER.cut_ms, EARLIER) == f"--since t={EARLIER.cut_ms}"
    older = replace(MASTER, barrier_issued_ms=None)
    assert since_option(None, BARRIER + 5, older) == f"--since {BARRIER}", "as the original's FILE has no barrier"
    assert not covers_file(None, MASTER)
    assert not covers_file(EARLIER.cut_ms, EARLIER)
