"""What region servers' own settings mean for a verdict: a doubt, a notice, or nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from status_tool.rules.peers import family_filter
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.server_settings import SINGLE_ENTRIES, judge_settings, keeps_single_entries
from status_tool.runs.question import SideFacts, question_of
from status_tool.spark.held import HeldRows
from status_tool.vocabulary.findings import RowProofs
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import Baseline
from status_tool.vocabulary.verdicts import Verdict
from tests.unit.test_evidence_reference import (
    DETAIL,
    HBASE,
    MASTER,
    OURS,
    SLAVE,
    THEIRS,
    changed,
    check,
    described,
    only,
)

FILTER = "hbase.replication.sink.walentrysinkfilter"
WITH_TAGS = {"hbase.replication.rpc.codec": "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags"}
LOCAL = DETAIL.replace('"scope": 1', '"scope": 0')
FILTERED = {"id": "1", "cluster_id": SLAVE.cluster_id, "replicate_all": False, "table_cfs": {"ns:t": []}}
ONE_TABLE = {"kind": "peer", "name": "1", "detail": json.dumps(FILTERED)}
FACT = {"kind": "fact", "table": "ns:t", "region": "r1", "state": "bulkload", "write_ms": 9_000}


def having(rows: list[dict[str, Any]], settings: Any, **more: Any) -> list[dict[str, Any]]:
    return changed(rows, "server", detail=json.dumps({"errors": 0, "settings": settings}), **more)


def notices_of(outcome: Outcome) -> str:
    return " ".join(outcome.notices)


OTHER_CODE = {
    "slave": (
        *(FILTER, "hbase.replication.sink.service", "hbase.regionserver.memstore.class", "hbase.wal.provider"),
        *("hbase.hstore.defaultengine.compactor.class", "hbase.hstore.defaultengine.storeflusher.class"),
        *("hbase.hstore.mobengine.compactor.class", "hbase.wal.regiongrouping.delegate.provider"),
    ),
    "master": ("hbase.replication.source.service", "hbase.hregion.impl"),
}


@pytest.mark.parametrize(("side", "key"), [(side, key) for side, keys in OTHER_CODE.items() for key in keys])
def test_nothing_is_complete_where_other_code_replicates(side: str, key: str) -> None:
    """A sink filter skips entries: where holes are excused, nothing would show it."""
    ours, theirs = (
        having(one, {key: "com.x.F"}) if side == of else one for one, of in ((OURS, "master"), (THEIRS, "slave"))
    )
    outcome = check(ours, theirs)
    problem = only(outcome)
    assert (outcome.verdict, problem.kind) == (Verdict.UNVERIFIABLE, "unverifiable")
    assert f"on the {side} {key} is com.x.F on a,1,1" in problem.detail
    assert "restart those servers" in str(problem.advice)
    assert check(ours, theirs, replace(HBASE, since=Baseline(99_000))).verdict is Verdict.UNVERIFIABLE


def test_what_a_server_did_that_is_gone_can_be_accepted() -> None:
    """With the time that the advice names, and nothing less."""
    gone = {**THEIRS[0], "server": "old,1,1", "origin": 9, "live": False, "final_ms": 20_000}
    theirs = [*THEIRS, *having([gone], {FILTER: "com.x.F"})]
    assert "--since 20000" in str(only(check(theirs=theirs)).advice)
    assert check(theirs=theirs, scope=replace(HBASE, since=Baseline(19_999))).verdict is Verdict.UNVERIFIABLE
    assert check(theirs=theirs, scope=replace(HBASE, since=Baseline(20_000))).verdict is Verdict.COMPLETE


def test_settings_that_cannot_be_understood_are_doubted() -> None:
    assert check(theirs=having(THEIRS, ["x"])).verdict is Verdict.UNVERIFIABLE
    assert check(theirs=having(THEIRS, {"unreadable": "a loop"})).verdict is Verdict.UNVERIFIABLE


def test_coprocessors_and_skipped_errors_are_told() -> None:
    ours = having(OURS, {"hbase.coprocessor.wal.classes": "com.x.Wal"})
    theirs = having(
        THEIRS, {"hbase.coprocessor.user.region.classes": "com.x.Index", "hbase.hlog.split.skip.errors": "true"}
    )
    outcome = check(ours, theirs)
    assert outcome.verdict is Verdict.COMPLETE
    assert "run on the master's region servers" in notices_of(outcome)
    assert "hbase.coprocessor.user.region.classes: com.x.Index (a,1,1)" in notices_of(outcome)
    assert "hbase.hlog.split.skip.errors is true on the slave (a,1,1)" in notices_of(outcome)
    former = check(theirs=having(THEIRS, {"hbase.skip.errors": "true"}))
    assert "hbase.skip.errors is true on the slave (a,1,1)" in notices_of(former)
    assert "region servers" not in notices_of(check())


def test_a_bulk_load_is_not_shipped_where_its_marker_may_be_dropped() -> None:
    queues = QueueFacts(loads_from_ms=1_000)
    theirs = described(THEIRS, arrived_ms=20_001)
    assert check([*OURS, FACT], theirs, queues=queues).verdict is Verdict.COMPLETE
    ours = having(OURS, {"hbase.replication.drop.on.deleted.columnfamily": "true"})
    outcome = check([*ours, FACT], theirs, queues=queues)
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "bulkload")
    assert "no bulk load counts as shipped" in notices_of(outcome)


def test_peers_that_are_not_in_zookeeper_are_not_read() -> None:
    """The znodes of before stay where HBase's peers have moved into the file system."""
    ours = having(OURS, {"hbase.replication.peer.storage.impl": "filesystem"})
    outcome = check(ours)
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "peers-elsewhere")
    gone = [
        {**row, "server": "old,1,1", "origin": 9, "live": False, "final_ms": 20_000}
        for row in ours
        if row["kind"] == "server"
    ]
    assert check([*OURS, *gone]).verdict is Verdict.COMPLETE


def test_peers_of_the_slave_that_are_not_in_zookeeper_pass_nothing_on() -> None:
    """By the znodes of before it ships what its own clients write: by its peers of now, maybe to nobody."""
    written = described(THEIRS, arrived_ms=1, written_by={"": 20_000}, first_written_by={"": 15_000})
    theirs = [*written, {"kind": "peer", "name": "back", "detail": json.dumps({"id": "back", "created_ms": 1})}]
    assert check(theirs=theirs).verdict is Verdict.COMPLETE
    outcome = check(theirs=having(theirs, {"hbase.replication.peer.storage.impl": "filesystem"}))
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "slave-written")


@pytest.mark.parametrize(
    ("less", "verdict"),
    [
        ({}, Verdict.COMPLETE),
        ({"table": "ns:u"}, Verdict.UNVERIFIABLE),
        ({"table": "ns:u", "detail": LOCAL}, Verdict.COMPLETE),
        ({"table": "other:u"}, Verdict.COMPLETE),
    ],
)
def test_rows_of_what_a_peer_ships_that_may_be_of_before(less: dict[str, Any], verdict: Verdict) -> None:
    """They settle it only if that is all: what the peer leaves out in ZooKeeper may be shipped by now."""
    more = [{"kind": "table", "detail": DETAIL, **less}] if less else []
    ours = [*having(OURS, {"hbase.replication.peer.storage.impl": "filesystem"}), ONE_TABLE, *more]
    scope = replace(HBASE, namespaces=frozenset({"ns"}))
    asked = question_of(SideFacts(MASTER, tuple(ours)), SideFacts(SLAVE, tuple(THEIRS)), scope)
    # A check reads no row of a table that the peer leaves out.
    master, slave = (pa.Table.from_pylist(rows, STATUS_SCHEMA) for rows in (ours, THEIRS))
    held, rows = HeldRows.of(master, slave, asked.left_out), RowProofs(equal=frozenset({"ns:t"}))
    ours, theirs = ([*map(dict, side)] for side in (held.master, held.slave))
    assert check(ours, theirs, asked.scope, queues=asked.queues, rows=rows).verdict is verdict


def test_rows_of_a_table_of_which_a_peer_leaves_out_a_family() -> None:
    ours = having(OURS, {"hbase.replication.peer.storage.impl": "filesystem"})
    rows, queues = RowProofs(equal=frozenset({"ns:t"})), QueueFacts(withheld={"ns:t": ("g",)})
    assert check(ours, queues=queues, rows=rows).verdict is Verdict.UNVERIFIABLE


def test_a_kept_proof_of_all_that_the_peer_ships_settles_a_server() -> None:
    """Tables that it leaves out are never compared."""
    gone = {**OURS[0], "server": "old,1,1", "origin": 9, "live": False, "echoed": False, "gone_ms": 7_000}
    proof = {"until_ms": 50_000, "families": ["f"], "by": "rows", "seen": {}}
    theirs = described(THEIRS, proven={MASTER.cluster_id: proof})
    other = {"kind": "table", "detail": DETAIL, "table": "ns:u"}
    queues = QueueFacts(families=family_filter(FILTERED))
    assert check([*OURS, gone, other], theirs, queues=queues).verdict is Verdict.COMPLETE
    assert check([*OURS, gone, other], queues=queues).verdict is Verdict.UNVERIFIABLE


def test_tags_are_told_unless_every_server_keeps_them() -> None:
    ours, theirs = described(having(OURS, WITH_TAGS), tagged_ms=5_000), having(THEIRS, WITH_TAGS)
    assert "cells with tags" not in notices_of(check(ours, theirs))
    assert "cells with tags" in notices_of(check(ours, THEIRS))
    plain = {"hbase.replication.rpc.codec": "org.apache.hadoop.hbase.codec.KeyValueCodec"}
    assert "cells with tags" in notices_of(check(ours, having(THEIRS, plain)))
    changed = {key: f"{codec}, {WITH_TAGS[key]}" for key, codec in plain.items()}
    assert "cells with tags" in notices_of(check(ours, having(THEIRS, changed)))
    labelled, others = (
        described(having(OURS, {**WITH_TAGS, "labels": value}), tagged_ms=5_000) for value in ("by name", "true")
    )
    assert "cells with tags" in notices_of(check(labelled, theirs))
    heeding = having(THEIRS, {**WITH_TAGS, "labels": "true"})
    assert "cells with tags" not in notices_of(check(labelled, heeding))
    assert "cells with tags" in notices_of(check(others, heeding)), "the slave may have other labels of these numbers"
    gone = having([{**THEIRS[0], "server": "old,1,1", "live": False, "final_ms": 20_000}], plain)
    assert "cells with tags" in notices_of(check(ours, [*theirs, *gone]))
    # The peer's own configuration takes the place of the servers'.
    for codec, tells in ((*plain.values(), True), (*WITH_TAGS.values(), False)):
        assert ("cells with tags" in notices_of(check(ours, theirs, queues=QueueFacts(codec=str(codec))))) == tells


def test_both_rows_of_a_server_count_once() -> None:
    rows = [*having([OURS[0]], {FILTER: "f"}), {**OURS[0], "role": "r", "detail": None}]
    assert len(judge_settings([], rows, None).findings) == 1


def test_a_witnesss_slave_must_say_that_it_records_single_entries() -> None:
    """A tracker of an earlier version does not say it."""
    said = [json.dumps({"settings": {SINGLE_ENTRIES: value}}) for value in ("true", "all", "false")]
    others = [json.dumps({"settings": one}) for one in (WITH_TAGS, [SINGLE_ENTRIES])]
    assert [detail for detail in (*said, *others, "no JSON", None) if keeps_single_entries(detail)] == said[:2]
