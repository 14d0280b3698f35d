"""Whole verifications in plain Python: one complete world, and what each thing that is wrong makes of it."""

from __future__ import annotations

import io
import json
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import google_crc32c
import pyarrow as pa
import pytest

from status_tool.explain.advice import SYNC_DELETES
from status_tool.rules.files import evident_matches
from status_tool.rules.peers import FamilyFilter, family_filter
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.settled import OlderProof
from status_tool.rules.tables import newest_changes, taken_away
from status_tool.sources.codec import batches
from status_tool.sources.crc import Layout, hdfs_checksum
from status_tool.vocabulary.findings import NO_PROOFS, Finding, RowProofs
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import HBaseOutcome, Outcome, Problem
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.verdicts import Evidence, FileStatus, Status, Verdict
from tests.judgement import verify_rows

Row = dict[str, Any]

MASTER = Header(
    "master",
    "00000000-0000-4000-8000-000000000001",
    created_ms=50_000,
    cut_ms=40_000,
    barrier_issued_ms=40_000,
    coverage_ms=1_000,
)
SLAVE = Header("slave", "00000000-0000-4000-8000-000000000002", 60_000, 60_000, cluster_key="zk:2181:/b")
HBASE = Scope(check_hdfs=False)
HDFS = Scope(check_hbase=False)
SERVER = {"kind": "server", "origin": 1, "server": "a,1,1", "live": True, "tracked": True, "echoed": True}
FAMILIES = {"f": {"scope": 1}, "local": {"scope": 0}}
DETAIL = json.dumps({"families": FAMILIES, "durability": "USE_DEFAULT", "regions": 1})
TABLE = {"kind": "table", "table": "ns:t", "detail": DETAIL}
REGION = {"kind": "region", "table": "ns:t", "region": "r1", "state": "hosted", "server": "a,1,1", "region_id": 2_000}
STREAM = {
    **{"kind": "stream", "table": "ns:t", "region": "r1", "origin": 1, "via": 0, "seq": 10},
    **{"first_ms": 3_000, "write_ms": 30_000, "start_key": b"a\x00", "end_key": b"b'"},
    "family": "f",
}
SEGMENT = {
    **{"kind": "segment", "table": "ns:t", "region": "r1", "origin": 1, "via": 0, "prev": 0, "seq": 10},
    **{"first_ms": 3_000, "write_ms": 30_000, "recorded_ms": 31_000},
    "family": "f",
}
REPLICATED = {"kind": "replicated", "table": "ns:t", "region": "r1", "write_ms": 30_000}
OURS: list[Row] = [{**SERVER, "role": "w", "read_ms": 40_100}, TABLE, REGION, STREAM]
THEIRS: list[Row] = [{**SERVER, "role": "r", "read_ms": 59_000}, TABLE, SEGMENT, REPLICATED]


def check(
    ours: list[Row] = OURS, theirs: list[Row] = THEIRS, scope: Scope = HBASE, master: Header = MASTER, **more: Any
) -> Outcome:
    return verify_rows(ours, theirs, master, SLAVE, scope, **more)


def changed(rows: list[Row], kind: str, **columns: Any) -> list[Row]:
    """The rows, with columns of one kind replaced."""
    return [{**row, **columns} if row["kind"] == kind else row for row in rows]


def without(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] != kind]


def only(outcome: Outcome) -> Problem:
    (problem,) = outcome.problems
    return problem


def hbase(outcome: Outcome) -> HBaseOutcome:
    assert outcome.hbase is not None
    return outcome.hbase


def regions(outcome: Outcome) -> dict[Status, int]:
    return {status: count for status, count in hbase(outcome).regions.items() if count}


def files(outcome: Outcome) -> dict[FileStatus, int]:
    return {status: count for status, count in outcome.hdfs.files.items() if count} if outcome.hdfs else {}


HOLED: list[Row] = [*changed(THEIRS, "segment", seq=4, write_ms=9_000), {**SEGMENT, "prev": 6, "first_ms": 11_000}]
"""Entries after 4 up to 6 have not arrived."""
LOAD: Row = {"kind": "fact", "table": "ns:t", "region": "r1", "state": "bulkload", "write_ms": 20_000}
LOST_SERVER: Row = {
    **{**SERVER, "origin": 2, "server": "b,1,2", "role": "w"},
    **{"live": False, "echoed": False, "gone_ms": 20_000},
}
OLD_REGION = changed(OURS, "region", region_id=1)
"""Older than the trackers."""


def described(rows: list[Row], **events: Any) -> list[Row]:
    """The rows, with more in the table's descriptor: a side's events, say."""
    return changed(rows, "table", detail=json.dumps(json.loads(DETAIL) | events))


def test_the_base_world_is_complete() -> None:
    outcome = check()
    assert (outcome.verdict, outcome.exit_code, outcome.problems) == (Verdict.COMPLETE, 0, ())
    assert regions(outcome) == {Status.COMPLETE: 1}
    assert outcome.hdfs is None


def test_a_gap_that_the_timestamps_do_not_see() -> None:
    outcome = check(theirs=HOLED)
    problem = only(outcome)
    assert (outcome.verdict, regions(outcome)) == (Verdict.INCOMPLETE, {Status.GAP: 1})
    assert hbase(outcome).timestamps_complete == 1
    assert (problem.kind, problem.table, problem.region, problem.origin) == ("gap", "ns:t", "r1", "a,1,1")
    assert (problem.from_seq, problem.to_seq) == (4, 6)
    assert (problem.written_from_ms, problem.written_to_ms) == (9_000, 11_000)
    assert problem.repair is not None
    assert problem.repair.copy_table == (
        "hbase org.apache.hadoop.hbase.mapreduce.CopyTable --starttime=8000 --endtime=12001"
        " '--startrow=a\\x00' '--stoprow=b'\"'\"'' --families=f --all.cells --peer.adr=zk:2181:/b ns:t"
    )
    assert all(part in str(problem.advice) for part in (problem.repair.copy_table, "--since ns:t=12000"))
    folder = f"/tmp/status-tool-ns_t-{MASTER.cut_ms}-r1-4"
    # HashTable takes row keys in hex; the master's addresses are not in this file.
    assert problem.repair.hash_table == (
        "hbase org.apache.hadoop.hbase.mapreduce.HashTable --starttime=8000 --endtime=12001 --startrow=6100"
        f" --stoprow=6227 --versions=2147483647 --families=f ns:t 'hdfs://<master NameNode>{folder}'"
    )
    assert "mapreduce.SyncTable '--sourcezkcluster=<master quorum" in problem.repair.sync_table
    assert problem.repair.sync_table.endswith(f"NameNode>{folder}' ns:t ns:t")


def test_a_baseline_of_one_table_accepts_no_other() -> None:
    """`--since TABLE=TIME`: streams, what happened to regions and, accepted anew, to tables; the later time counts."""
    emptied = changed(THEIRS, "table", detail='{"families": {"f": {}}, "regions": 1, "arrived_ms": 5, "born_ms": 9000}')
    for ours, theirs, time_ms in ((OURS, HOLED, 12_000), ([*OURS, LOAD], THEIRS, 20_000), (OURS, emptied, 9_000)):

        def verdict(since: Baseline, ours: list[Row] = ours, theirs: list[Row] = theirs) -> Verdict:
            return check(ours, theirs, scope=replace(HBASE, since=since, forgotten=frozenset({"ns:t"}))).verdict

        assert verdict(Baseline(None, {"ns:t": time_ms})) is Verdict.COMPLETE
        assert verdict(Baseline(1, {"ns:t": time_ms})) is Verdict.COMPLETE
        assert verdict(Baseline(time_ms, {"ns:t": 1})) is Verdict.COMPLETE
        for other in (Baseline(None, {"t": time_ms}), Baseline(1, {"ns:other": time_ms}), Baseline()):
            assert verdict(other) is not Verdict.COMPLETE, other


def test_a_baseline_of_one_table_accepts_no_server() -> None:
    """What a crashed server wrote cannot be told apart by table."""
    crashed = {"kind": "server", "server": "z,1,1", "origin": 9, "live": False, "gone_ms": 7_000, "detail": "{}"}
    ours = [*OURS, crashed]
    assert check(ours, scope=replace(HBASE, since=Baseline(None, {"ns:t": 30_000}))).verdict is Verdict.UNVERIFIABLE
    assert check(ours, scope=replace(HBASE, since=Baseline(30_000))).verdict is Verdict.COMPLETE


def test_a_baseline_is_told_and_a_table_that_is_not_there() -> None:
    notices = check(scope=replace(HBASE, since=Baseline(None, {"ns:t": 12_000, "no": 13_000}))).notices
    assert any(n.startswith("table ns:t: what was written up to 1970-01-01T00:00:12") for n in notices), notices
    assert any(n.startswith("table no (--since): no such table") for n in notices), notices
    assert not any(n.startswith("table ns:t (--since)") for n in notices), notices


def test_streams_of_a_table_that_is_shipped_in_part_are_exact() -> None:
    """Each family is a chain; one that the peer leaves out is not in scope, whatever has arrived of it."""
    one, other = {**STREAM, "via": 5, "family": "f"}, {**STREAM, "via": 6, "family": "g", "seq": 90}
    ours = [*without(OURS, "stream"), one, other]
    theirs = changed(THEIRS, "segment", via=5, family="f")
    queues = QueueFacts(families=FamilyFilter({"ns:t": frozenset("f")}))
    outcome = check(ours, theirs, queues=queues)
    assert (outcome.verdict, outcome.problems) == (Verdict.COMPLETE, ())
    assert hbase(outcome).evidence is Evidence.EXACT
    holed = check(ours, changed(theirs, "segment", prev=4), queues=queues)
    assert (holed.verdict, only(holed).kind) == (Verdict.INCOMPLETE, "gap")
    assert check(ours, without(theirs, "segment"), queues=queues).verdict is Verdict.INCOMPLETE
    # The peer is widened: what it left out is missing, not excused.
    wide = check(ours, theirs)
    assert (wide.verdict, only(wide).kind, only(wide).to_seq) == (Verdict.INCOMPLETE, "missing", 90)
    later = {**SEGMENT, "via": 6, "family": "g", "prev": 50, "seq": 90}
    assert only(check(ours, [*theirs, later])).kind == "gap"


@pytest.mark.parametrize(
    "lists", [{"replicate_all": False, "table_cfs": {"ns:t": []}}, {"exclude_table_cfs": {"x": []}}]
)
def test_a_table_that_is_left_out_may_be_dropped(lists: dict[str, Any]) -> None:
    """Its heads and facts stay in the state table, and no list of the master's tables has it any more."""
    gone = {"table": "x", "region": "gone"}
    rows = [{**STREAM, **gone}, {"kind": "fact", "state": "content", "write_ms": 5_000, **gone}]
    queues = QueueFacts(families=family_filter({"id": "1", **lists}))
    assert check([*OURS, *rows], queues=queues).verdict is Verdict.COMPLETE
    assert {one.table for one in check([*OURS, *rows]).problems} == {"x"}


def test_a_family_that_is_left_out_is_in_no_head_that_the_slave_implies() -> None:
    """Of a crashed server that the queues settled; before the peer was narrowed some of it had arrived."""
    crashed = {"kind": "server", "role": "w", "server": "z,1,1", "origin": 9, "live": False, "gone_ms": 7_000}
    holed = {**SEGMENT, "origin": 9, "via": 6, "family": "g", "prev": 50, "seq": 90}
    queues = QueueFacts(drained=frozenset({9}), families=FamilyFilter({"ns:t": frozenset("f")}))
    assert check([*OURS, crashed], [*THEIRS, holed], queues=queues).verdict is Verdict.COMPLETE
    asked = check([*OURS, crashed], [*THEIRS, {**holed, "family": "f"}], queues=queues)
    assert (only(asked).kind, only(asked).to_seq) == ("gap", 50)


def test_nothing_is_complete_where_other_code_decides_what_is_shipped() -> None:
    """A filter of the peer's own drops cells inside entries that count as applied."""
    outcome = check(queues=QueueFacts(own_shipping="WAL entry filters a.F"))
    assert (outcome.verdict, outcome.exit_code, only(outcome).kind) == (Verdict.UNVERIFIABLE, 3, "unverifiable")
    assert "WAL entry filters a.F" in only(outcome).detail
    assert "--rows" in str(only(outcome).advice)


def test_a_family_with_the_name_of_hbases_own_markers() -> None:
    """`WALEdit.isMetaEdit` takes its cells for markers: they are stamped by nobody and shipped by nobody."""
    ours, theirs = (described(rows, families={"METAFAMILY": {"scope": 1}}) for rows in (OURS, THEIRS))
    outcome = check(ours, theirs)
    assert (outcome.verdict, "METAFAMILY" in only(outcome).detail) == (Verdict.UNVERIFIABLE, True)


def test_behind_has_a_lag() -> None:
    outcome = check(theirs=changed(THEIRS, "segment", seq=4, write_ms=9_000))
    assert (only(outcome).kind, hbase(outcome).worst_lag_ms) == ("behind", 21_000)


def test_an_edit_that_came_from_the_slave_is_not_asked_of_it() -> None:
    relayed = bytes.fromhex(SLAVE.cluster_id.replace("-", ""))
    extra = {**STREAM, "via": 7, "via_ids": bytes(16) + relayed}
    assert check(ours=[*OURS, extra]).verdict is Verdict.COMPLETE
    assert regions(check(ours=[*OURS, {**extra, "via_ids": bytes(16)}])) == {Status.MISSING: 1}


@pytest.mark.parametrize(
    ("kind", "columns", "word"),
    [
        ("server", {"tracked": False}, "without the tracker"),
        ("server", {"echoed": False}, "has not flushed past the cut"),
        ("server", {"live": False, "echoed": False}, "stopped without a final flush"),
        ("region", {"state": "unhosted", "server": None}, "unhosted"),
        ("region", {"server": "b,2,2"}, "untracked"),
        ("region", {"region": "r2"}, "truncated"),
        ("region", {"region_id": 999}, "older than the tracker"),
        ("region", {"region_id": None}, "older than the tracker"),
        ("table", {"detail": DETAIL.replace("USE_DEFAULT", "SKIP_WAL")}, "SKIP_WAL"),
        ("table", {"detail": "{"}, "descriptor unreadable"),
        ("stream", {"seq": None}, "could not be read"),
        ("stream", {"origin": 9}, "has no server row"),
    ],
)
def test_what_the_master_cannot_vouch_for_is_unverifiable(kind: str, columns: Row, word: str) -> None:
    theirs = changed(THEIRS, "segment", **{k: v for k, v in columns.items() if k == "origin"})
    outcome = check(ours=changed(OURS, kind, **columns), theirs=theirs)
    assert (outcome.verdict, outcome.exit_code) == (Verdict.UNVERIFIABLE, 3)
    assert any(word in problem.detail for problem in outcome.problems)
    assert {problem.kind for problem in outcome.problems} == {"unverifiable"}


@pytest.mark.parametrize(
    ("kind", "word"),
    [("server", "no tracker has ever flushed"), ("table", "no descriptor: of any table"), ("region", "no regions")],
)
def test_facts_that_the_master_lacks_are_unverifiable(kind: str, word: str) -> None:
    outcome = check(ours=without(OURS, kind))
    assert outcome.verdict is Verdict.UNVERIFIABLE
    assert any(word in problem.detail for problem in outcome.problems)


def test_a_table_or_family_that_the_slave_lacks_is_missing() -> None:
    absent = check(theirs=[*without(THEIRS, "table"), {**TABLE, "table": "ns:other"}])
    assert (only(absent).kind, regions(absent)) == ("missing", {Status.MISSING: 1})
    renamed = check(theirs=described(THEIRS, families={"g": {}, "local": {}}))
    assert "family absent on the slave: f" in only(renamed).detail
    local = check(theirs=described(THEIRS, families={"f": {}}))
    assert local.verdict is Verdict.COMPLETE, "a family that is not replicated need not be there"
    unknown = check(theirs=without(THEIRS, "table"))
    assert (unknown.verdict, only(unknown).detail) == (Verdict.UNVERIFIABLE, "slave tables unknown")


def test_split_and_merged_regions_are_not_truncated() -> None:
    for state in ("split", "merge"):
        fact = {"kind": "fact", "table": "ns:t", "region": "r1", "state": state, "region_id": 1_500}
        outcome = check(ours=[*changed(OURS, "region", region="r2"), fact])
        assert (outcome.verdict, regions(outcome)) == (Verdict.COMPLETE, {Status.COMPLETE: 2})
    old = {"kind": "fact", "table": "ns:t", "region": "r1", "state": "split", "region_id": 500}
    assert check(ours=[*OURS, old]).verdict is Verdict.UNVERIFIABLE, "the parent is older than the tracker"


@pytest.mark.parametrize(
    ("kind", "split_ms", "is_gone"),
    [
        ("stream", 200_000, False),
        ("stream", 140_000, False),
        ("stream", 139_999, True),
        ("content", 140_000, False),
        ("content", 139_999, True),
    ],
)
def test_a_split_does_not_explain_that_its_parent_is_gone_once_more(kind: str, split_ms: int, is_gone: bool) -> None:
    """A restored snapshot had brought it back, and it was written to; what emptied the table then is no split."""
    ours = changed(changed(OURS, "region", region="r2"), "stream", write_ms=200_000 if kind == "stream" else 20_000)
    base = {"kind": "fact", "table": "ns:t", "region": "r1"}
    split = base | {"state": "split", "region_id": 1_500, "write_ms": split_ms}
    held = [base | {"state": "content", "write_ms": 200_000}] if kind == "content" else []
    outcome = check([*ours, split, *held], changed(THEIRS, "segment", write_ms=200_000))
    assert any("truncated" in problem.detail for problem in outcome.problems) == is_gone
    assert (outcome.verdict is Verdict.COMPLETE) != is_gone


@pytest.mark.parametrize(
    ("server", "head", "is_gone"),
    [
        ({}, {}, False),
        ({}, {"first_ms": 40_150}, True),
        ({}, {"first_ms": None}, True),
        ({"read_ms": None}, {}, True),
        ({"detail": '{"clock_back_ms": 40200}'}, {}, True),
        ({"detail": '{"clock_back_ms": "soon"}'}, {}, True),
        ({}, {"origin": 2}, True),
    ],
)
def test_a_region_that_is_made_after_the_regions_were_read_is_not_gone(server: Row, head: Row, is_gone: bool) -> None:
    """By the clock of the server that wrote it: heads are read after the regions, and a split has made it meanwhile."""
    ours = changed(OURS, "server", **{"read_ms": 40_100} | server)
    made: Row = {"region": "r9", "first_ms": 40_151} | head
    outcome = check(ours=[*ours, {**STREAM, **made}], theirs=[*THEIRS, {**SEGMENT, **made}])
    assert any("truncated" in problem.detail for problem in outcome.problems) == is_gone
    assert (outcome.verdict is Verdict.COMPLETE) != is_gone
    content = {"kind": "fact", "table": "ns:t", "region": "r9", "state": "content", "write_ms": 41_000}
    held = check(ours=[*ours, {**STREAM, **made}, content], theirs=[*THEIRS, {**SEGMENT, **made}])
    assert held.verdict is Verdict.UNVERIFIABLE, "it had store files before the barrier"


def test_a_truncated_table_is_accepted_only_by_a_baseline_after_the_truncation() -> None:
    ours = changed(OURS, "region", region="r2", region_id=35_000)
    assert check(ours=ours, scope=replace(HBASE, since=Baseline(34_999))).verdict is Verdict.UNVERIFIABLE
    assert check(ours=ours, scope=replace(HBASE, since=Baseline(35_000))).verdict is Verdict.COMPLETE


def test_bulk_loads_and_unstamped_entries() -> None:
    assert "bulk load" in only(check(ours=[*OURS, LOAD])).detail
    assert regions(check(ours=[*OURS, {**LOAD, "region": "gone"}])) == {Status.COMPLETE: 1, Status.UNVERIFIABLE: 1}
    assert check(ours=[*OURS, LOAD], scope=replace(HBASE, since=Baseline(20_000))).verdict is Verdict.COMPLETE
    foreign = {"kind": "unstamped", "table": "ns:t", "region": "r1", "write_ms": 1_001}
    assert "unstamped" in only(check(theirs=[*THEIRS, foreign])).detail
    assert check(theirs=[*THEIRS, {**foreign, "write_ms": 1_000}]).verdict is Verdict.COMPLETE


def test_a_load_into_a_mob_family_is_never_known_to_be_whole() -> None:
    """Its file may refer to MOB files, which are not shipped with it; rows settle it."""
    ours = described([*OURS, LOAD], families={"f": {"scope": 1, "mob": True}})
    theirs = described(THEIRS, arrived_ms=20_001)
    assert only(check(ours, theirs, queues=QueueFacts(loads_from_ms=0))).code == "bulkload"


def test_a_load_that_was_not_to_be_replicated_is_never_shipped() -> None:
    """Its references are cleaned like any other's, and the sink skips it."""
    load = {**LOAD, "state": "localload"}
    queues = QueueFacts(loads_from_ms=0)
    theirs = described(THEIRS, arrived_ms=20_001)
    assert check([*OURS, LOAD], theirs, queues=queues).verdict is Verdict.COMPLETE
    outcome = check([*OURS, load], theirs, queues=queues)
    assert (outcome.verdict, only(outcome).written_to_ms) == (Verdict.UNVERIFIABLE, 20_000)
    assert "replication disabled for the load" in only(outcome).detail
    assert check(ours=[*OURS, load], scope=replace(HBASE, since=Baseline(20_000))).verdict is Verdict.COMPLETE
    gone = [*OURS, {**load, "region": "gone"}]
    assert regions(check(ours=gone)) == {Status.COMPLETE: 1, Status.UNVERIFIABLE: 1}


CRASHED: list[Row] = [
    *({**SERVER, "origin": 2, "server": "b,1,1", "role": "w", "live": False, "echoed": False},),
    {**STREAM, "origin": 2, "seq": 14, "write_ms": 20_000},
    {"kind": "fact", "table": "ns:t", "region": "r1", "state": "tail", "origin": 2, "seq": 15, "write_ms": 25_000},
]
"""A server that crashed, and what was replayed of it."""


@pytest.mark.parametrize(
    ("arrived", "queues", "since_ms", "found"),
    [
        (14, QueueFacts(drained=frozenset({2})), None, ["lost-tail"]),
        (15, QueueFacts(drained=frozenset({2})), None, []),
        (14, QueueFacts(drained=frozenset({2})), 25_000, []),
        (14, QueueFacts(drained=frozenset({2}), withheld={"ns:t": ("g",)}), None, []),
        (14, QueueFacts(), None, ["origin", "unsettled"]),
    ],
    ids=["unknown", "arrived", "accepted", "a family that is not shipped", "not settled by queues"],
)
def test_a_queue_that_is_gone_settles_no_server_of_which_the_last_entries_are_unknown(
    arrived: int, queues: QueueFacts, since_ms: int | None, found: list[str]
) -> None:
    """Somebody may have removed it; HBase says in no other way that it was shipped."""
    theirs = [*THEIRS, {**SEGMENT, "origin": 2, "seq": arrived, "write_ms": 20_000}]
    scope = replace(HBASE, since=Baseline(since_ms))
    assert [problem.code for problem in check([*OURS, *CRASHED], theirs, scope, queues=queues).problems] == found


@pytest.mark.parametrize(
    ("marks", "pruned", "found"),
    [
        ({}, {}, ["lost-tail"]),
        ({}, {"another": 9}, ["lost-tail"]),
        ({"pruned": [[uuid.UUID(SLAVE.cluster_id).hex, 5_000]]}, {}, []),
        ({}, {MASTER.cluster_id: 9}, []),
    ],
    ids=["never pruned", "for another master", "pruned on the master", "pruned on the slave"],
)
def test_a_crashed_server_that_had_recorded_nothing_of_a_region_but_its_opening(
    marks: Row, pruned: dict[str, int], found: list[str]
) -> None:
    """It was killed before its next flush, and somebody has removed its queue: no stream of its is anywhere."""
    server, _, tail = CRASHED
    ours, slave = described([*OURS, server, tail], **marks), replace(SLAVE, pruned=pruned)
    outcome = verify_rows(ours, THEIRS, MASTER, slave, HBASE, QueueFacts(drained=frozenset({2})))
    assert [problem.code for problem in outcome.problems] == found


@pytest.mark.parametrize(("origin", "recorded", "found"), [(1, True, ["lost-tail"]), (2, True, []), (1, False, [])])
def test_the_last_entries_of_a_crashed_server_may_be_those_that_came_from_the_slave(
    origin: int, recorded: bool, found: list[str]
) -> None:
    """If it, or, where it had recorded nothing, any other has written such to the region: nobody asks for these."""
    back = {**STREAM, "origin": origin, "via": 7, "via_ids": uuid.UUID(SLAVE.cluster_id).bytes, "seq": 3}
    server, stream, tail = CRASHED
    ours = [*OURS, server, *([stream] if recorded else []), tail, back]
    theirs = [*THEIRS, *([{**SEGMENT, "origin": 2, "seq": 14, "write_ms": 20_000}] if recorded else [])]
    outcome = check(ours, theirs, queues=QueueFacts(drained=frozenset({2})))
    assert [problem.code for problem in outcome.problems] == found


@pytest.mark.parametrize(("gone_ms", "found"), [(140_000, []), (140_001, ["origin"]), (None, ["origin"])])
def test_a_crashed_server_that_had_gone_before_the_table_was_there(gone_ms: int | None, found: list[str]) -> None:
    """It has written nothing to it, whatever is known of its queue."""
    crashed = {**CRASHED[0], "gone_ms": gone_ms}
    ours = [crashed, *changed(OURS, "region", region_id=200_000)]
    assert [problem.code for problem in check(ours).problems] == found


def test_entries_that_came_from_the_slave_are_not_asked_of_it() -> None:
    """They have sequence ids as well, and no trace on the slave."""
    back = {**STREAM, "origin": 2, "via": 5, "via_ids": uuid.UUID(SLAVE.cluster_id).bytes}
    theirs = [*THEIRS, {**SEGMENT, "origin": 2, "seq": 14, "write_ms": 20_000}]
    queues = QueueFacts(drained=frozenset({2}))
    assert check([*OURS, *CRASHED, back], theirs, queues=queues).verdict is Verdict.COMPLETE


@pytest.mark.parametrize(
    ("shipped_from_ms", "since_ms", "verdict"),
    [
        (2_000, None, Verdict.COMPLETE),
        (2_001, None, Verdict.UNVERIFIABLE),
        (2_001, 2_001, Verdict.COMPLETE),
        (2_002, 2_001, Verdict.UNVERIFIABLE),
    ],
)
def test_loads_are_shipped_if_all_of_the_table_are(
    shipped_from_ms: int, since_ms: int | None, verdict: Verdict
) -> None:
    """From its creation, or from what is accepted: a region records its newest load alone."""
    scope, queues = replace(HBASE, since=Baseline(since_ms)), QueueFacts(loads_from_ms=shipped_from_ms)
    assert check([*OURS, LOAD], described(THEIRS, arrived_ms=20_001), scope, queues=queues).verdict is verdict


@pytest.mark.parametrize(
    ("slave", "arrived"),
    [
        ({}, {}),  # nothing has ever arrived in its table
        ({}, {"arrived_ms": 100_000, "born_ms": 90_000, "first_born_ms": 90_000}),  # another table of that name
        ({"state_back_ms": 90_000}, {"arrived_ms": 100_000, "born_ms": 1_000, "first_born_ms": 1_000}),
    ],
)
def test_a_load_that_went_to_another_slave_has_not_arrived_in_this_one(slave: Row, arrived: Row) -> None:
    """A slave that was made anew at the address of the one before: the queues are empty all the same."""
    theirs = described(THEIRS, **arrived)
    outcome = verify_rows([*OURS, LOAD], theirs, MASTER, replace(SLAVE, **slave), HBASE, QueueFacts(loads_from_ms=0))
    assert outcome.verdict is Verdict.UNVERIFIABLE
    assert "bulkload" in {problem.code for problem in outcome.problems}


def test_the_newest_change_of_a_table_counts() -> None:
    """Of those of its regions, in any order; what else is known of them is none."""
    moments = [("changed", 5), ("changed", 9), ("changed", 7), ("unattended", 20), ("changed", None)]
    rows = [{"kind": "fact", "table": "t", "state": state, "write_ms": moment} for state, moment in moments]
    assert newest_changes([*rows, {**rows[0], "table": None}, {**rows[0], "table": "u"}]) == {"t": 9, "u": 5}


def test_scope_leaves_out_other_tables_and_says_what_is_not_there() -> None:
    other = [{**row, "table": "u", "region": "r9"} for row in (REGION, STREAM)]
    ours = [*OURS, *other, {**TABLE, "table": "u"}]
    assert check(ours=ours).verdict is Verdict.INCOMPLETE
    assert check(ours=ours, scope=replace(HBASE, tables=frozenset({"ns:t"}))).verdict is Verdict.COMPLETE
    assert check(ours=ours, scope=replace(HBASE, namespaces=frozenset({"ns"}))).verdict is Verdict.COMPLETE
    assert check(ours=ours, scope=replace(HBASE, tables=frozenset({"default:u"}))).verdict is Verdict.INCOMPLETE
    unknown = check(scope=replace(HBASE, tables=frozenset({"ns:t", "ns:typo"})))
    assert unknown.verdict is Verdict.UNVERIFIABLE
    assert "ns:typo" in only(unknown).detail
    for nothing in (replace(HBASE, tables=frozenset({"ns:typo"})), replace(HBASE, namespaces=frozenset({"typo"}))):
        assert "typo has no replicated region" in only(check(scope=nothing)).detail


def test_a_file_that_holds_less_than_is_asked_is_not_fine() -> None:
    outcome = verify_rows(OURS, THEIRS, MASTER, replace(SLAVE, tables=("ns:t",)), HBASE)
    assert outcome.verdict is Verdict.UNVERIFIABLE
    assert "slave's status was recorded only for ns:t" in only(outcome).detail


def test_a_users_table_may_have_the_name_of_another_clusters_state_table() -> None:
    """Only the master's own state table is left out, by its configured name."""
    master = replace(MASTER, state_table="ops:state")
    ours = [{**row, "table": "replicationstate"} if row.get("table") else row for row in OURS]
    outcome = check(ours, [{**THEIRS[0]}, {**TABLE, "table": "replicationstate"}], master=master)
    assert (outcome.verdict, only(outcome).kind) == (Verdict.INCOMPLETE, "missing")
    assert check(ours, THEIRS).verdict is Verdict.UNVERIFIABLE, "it is the state table: nothing to check"
    theirs = replace(SLAVE, state_table="ns:t")
    assert verify_rows(OURS, without(THEIRS, "segment"), MASTER, theirs, HBASE).verdict is Verdict.INCOMPLETE


def test_nothing_to_check_is_not_complete() -> None:
    assert check(described(OURS[:2], families={"f": {"scope": 0}})).verdict is Verdict.UNVERIFIABLE
    assert check([], [], HDFS).verdict is Verdict.UNVERIFIABLE


def test_the_originals_timestamps() -> None:
    master = replace(MASTER, evidence="timestamps")
    ours = [{"kind": "stream", "region": "r1", "write_ms": 30_000}]
    fine = check(ours, THEIRS, master=master)
    assert (fine.verdict, hbase(fine).evidence) == (Verdict.COMPLETE, Evidence.TIMESTAMPS)
    late = changed(THEIRS, "replicated", write_ms=29_000)
    behind = only(check(ours, late, master=master))
    assert (behind.kind, behind.lag_ms) == ("behind", 1_000)
    assert check(ours, late, master=replace(master, shutdown_ms=28_999)).verdict is Verdict.COMPLETE
    assert check(ours, late, master=replace(master, shutdown_ms=0)).verdict is Verdict.INCOMPLETE
    assert only(check(ours, [], master=master)).kind == "missing"


FILE = {"kind": "file", "path": "/d/x", "length": 5, "algorithm": "MD5", "checksum": "ab"}
CRC = {"crc32c": "11"}


OWN_CRC = {"CRC32C": google_crc32c.value, "CRC32": zlib.crc32}


def records(letter: bytes, sizes: Iterable[int], kind: str) -> bytes:
    """Content of records that each end with their own CRC."""
    return b"".join(letter * size + OWN_CRC[kind](letter * size).to_bytes(4, "little") for size in sizes)


@pytest.mark.parametrize("kind", OWN_CRC)
@pytest.mark.parametrize("sizes", [(16,), (508,), (508, 508), (508,) * 20, (508,) * 8 + (20,)])
def test_records_that_end_with_their_own_crc_have_one_checksum_whatever_they_hold(
    kind: str, sizes: tuple[int, ...]
) -> None:
    """As Zarr's chunks do: DistCp skips one that was written anew."""
    layout, contents = Layout(4096, 512, kind), [records(letter, sizes, kind) for letter in (b"A", b"B")]
    (algorithm, checksum, length), other = (hdfs_checksum(io.BytesIO(one), layout) for one in contents)
    assert (algorithm, checksum, length) == other
    row = {**FILE, "length": length, "algorithm": algorithm, "checksum": checksum}
    found = check([row], [row], HDFS)
    assert (only(found).code, "its own CRC" in (only(found).detail or "")) == ("no-checksum", True)
    assert only(check([{**row, "length": None}], [row], HDFS)).code == "no-checksum", "FILE of the original tool"
    assert check([{**row, "crc32c": "ab" * 8}], [{**row, "crc32c": "ab" * 8}], HDFS).exit_code == 0
    (both,) = batches({**row, "path": str(at // 2)} for at in range(6))
    sides = pa.array(["master", "slave"] * 3)
    _, _, rest = evident_matches(both.append_column("side", sides))
    assert rest.num_rows == 6


@pytest.mark.parametrize(
    ("chunks", "per_block", "checksum"),
    [
        (1, 0, "d09dec194349aa40619c3a68cda2c2cc"),
        (4_000, 0, "0c4db66b9c3403344de5496a3e12c1fa"),  # both data blocks
        (12_000, 0, "c495661f3081d1b18745a7a00e431708"),  # by turns
        (8_192, 2_048, "74f979ed481d1ea593d9f20515e51904"),  # two groups
        (8_195, 2_048, "479f1d0bbe970a7802e2887fd855990c"),
        (20_000, 4_096, "0157d3e1826b604d1e23751acb256676"),  # three groups, two cells a block
    ],
)
def test_records_that_end_with_their_own_crc_in_striped_files(chunks: int, per_block: int, checksum: str) -> None:
    """HDFS's checksums of such files, as it has computed them."""
    algorithm = f"MD5-of-{per_block}MD5-of-512CRC32C XOR-2-1-1024k"
    row = {**FILE, "length": 512 * chunks, "algorithm": algorithm, "checksum": checksum}
    assert only(check([row], [row], HDFS)).code == "no-checksum"
    longer = {**row, "length": 512 * chunks + 512}
    assert check([longer], [longer], HDFS).exit_code == 0


@pytest.mark.parametrize(
    "algorithm",
    [
        "MD5-of-1MD5-of-1CRC32",
        "MD5-of-1MD5-of-1CRC32 RS-6-3-1k",
        f"MD5-of-0MD5-of-512CRC32C RS-{10**11 - 1}-1-1024k",
        f"MD5-of-0MD5-of-{'9' * 5_000}CRC32C",
        f"MD5-of-0MD5-of-512CRC32C RS-6-3-{'9' * 5_000}k",
    ],
)
def test_what_a_checksum_says_of_its_layout_is_not_trusted(algorithm: str) -> None:
    """A status file may hold anything: it costs neither the memory nor the time that its numbers ask for."""
    row = {**FILE, "length": 1 << 62, "algorithm": algorithm, "checksum": "00"}
    assert check([row], [row], HDFS).exit_code == 0


@pytest.mark.parametrize("kind", [*OWN_CRC, "CRC32C RS-3-2-1024k"])
def test_the_composite_crc_of_one_record_is_that_of_all(kind: str) -> None:
    """Any other value decides."""
    crc = kind.partition(" ")[0]
    content = records(b"A", (1_000,), crc)
    own = OWN_CRC[crc](content).to_bytes(4, "big").hex()
    row = {**FILE, "length": len(content), "algorithm": f"COMPOSITE-{kind}", "checksum": own}
    other = {**row, "checksum": "00000000"}
    assert only(check([row], [row], HDFS)).code == "no-checksum"
    assert only(check([row], [other], HDFS)).code == "file-differs"
    assert check([other], [other], HDFS).exit_code == 0
    assert check([{**row, "crc32c": "ab" * 8}], [{**row, "crc32c": "ab" * 8}], HDFS).exit_code == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "status", "verdict"),
    [
        ({}, {}, FileStatus.MATCH, Verdict.COMPLETE),
        ({"length": 0, "checksum": None}, {"length": 0, "algorithm": "CRC"}, FileStatus.MATCH, Verdict.COMPLETE),
        ({}, {"length": 6}, FileStatus.MISMATCH, Verdict.INCOMPLETE),
        ({}, {"checksum": "cd"}, FileStatus.MISMATCH, Verdict.INCOMPLETE),
        ({}, {"algorithm": "CRC", "checksum": "cd"}, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({}, {"checksum": None}, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({"length": None}, {}, FileStatus.MATCH, Verdict.COMPLETE),
        ({"length": None}, {"checksum": "cd"}, FileStatus.MISMATCH, Verdict.INCOMPLETE),
        ({"length": None}, {"algorithm": "CRC"}, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({"length": None}, {"checksum": None, "length": 0}, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({"length": None, "checksum": None}, {}, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({"length": None, "algorithm": None}, {"algorithm": None}, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({"length": None, "algorithm": "CRC", **CRC}, CRC, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({"length": None, **CRC}, {"crc32c": "22"}, FileStatus.MISMATCH, Verdict.INCOMPLETE),
        ({"crc32c": "11"}, {"checksum": "cd", "crc32c": "11"}, FileStatus.MATCH, Verdict.COMPLETE),
        ({"crc32c": "11"}, {"checksum": "cd", "crc32c": "1100"}, FileStatus.MISMATCH, Verdict.INCOMPLETE),
        ({"crc32c": "11"}, {"algorithm": "X", "crc32c": "1100"}, FileStatus.INCOMPARABLE, Verdict.UNVERIFIABLE),
        ({"modified_ms": 40_001}, {"checksum": "cd"}, FileStatus.UNVERIFIABLE, Verdict.UNVERIFIABLE),
        ({"modified_ms": 40_000}, {"checksum": "cd"}, FileStatus.MISMATCH, Verdict.INCOMPLETE),
        ({"state": "unreadable"}, {}, FileStatus.UNVERIFIABLE, Verdict.UNVERIFIABLE),
        ({}, None, FileStatus.MISSING, Verdict.INCOMPLETE),
    ],
)
def test_files(ours: Row, theirs: Row | None, status: FileStatus, verdict: Verdict) -> None:
    rows = [] if theirs is None else [{**FILE, **theirs}]
    outcome = check([{**FILE, **ours}], rows, HDFS)
    assert (files(outcome), outcome.verdict) == ({status: 1}, verdict)


@pytest.mark.parametrize(("modified_ms", "status"), [(75_000, FileStatus.UNVERIFIABLE), (75_001, FileStatus.MISMATCH)])
def test_a_time_in_the_future_is_no_change_after_the_cut(modified_ms: int, status: FileStatus) -> None:
    """A client gave it to the file. Clocks may differ by 30 s."""
    read = replace(MASTER, read_until_ms=45_000)
    outcome = check([{**FILE, "modified_ms": modified_ms}], [{**FILE, "checksum": "cd"}], HDFS, master=read)
    assert files(outcome) == {status: 1}


@pytest.mark.parametrize(("offline", "of_slave"), [(False, ""), (True, " (in all of FILE2)")])
def test_what_is_no_file_is_counted_for_all_of_a_status_file(offline: bool, of_slave: str) -> None:
    """Of a slave that is read live, `-f` chooses what is listed: two counts of unlike things looked comparable."""
    count: Row = {"kind": "count", "name": "empty folder", "entries": 2}
    notices = check([FILE, count], [FILE, count], replace(HDFS, offline=offline)).notices
    assert [notice for notice in notices if "empty folder" in notice] == [
        "HDFS: 2 empty folders on the master (in all of FILE), not compared",
        f"HDFS: 2 empty folders on the slave{of_slave}, not compared",
    ]


def test_a_file_only_on_the_slave_fails_only_when_asked() -> None:
    theirs = [FILE, {**FILE, "path": "/d/y"}]
    assert check([FILE], theirs, HDFS).verdict is Verdict.COMPLETE
    strict = check([FILE], theirs, replace(HDFS, strict_extra=True))
    assert (strict.verdict, strict.hdfs and strict.hdfs.at_fault) == (Verdict.INCOMPLETE, 1)


def test_problems_are_bounded_worst_first_and_those_of_the_run_are_kept() -> None:
    ours = [*changed(OURS, "server", echoed=False)]
    ours += [{**STREAM, "region": f"x{n:02}", "write_ms": 30_000 + n} for n in range(20)]
    outcome = check(ours=ours, scope=replace(HBASE, max_problems=4))
    kinds = [(problem.kind, problem.region) for problem in outcome.problems]
    assert kinds == [("missing", "x19"), ("missing", "x18"), ("missing", "x17"), ("unverifiable", None)]
    assert regions(outcome)[Status.MISSING] == 20


@pytest.mark.parametrize(
    ("events", "since_ms", "emptied_ms"),
    [
        ({"arrived_ms": 5_000, "born_ms": 4_000}, None, None),
        ({"arrived_ms": 5_000, "born_ms": 6_000}, None, 6_000),
        # The word is about what was written, whatever time it names.
        ({"arrived_ms": 5_000, "born_ms": 6_000}, 40_000, 6_000),
        # Whether a second birth came after the arrival, clocks may not tell; the only one came before.
        ({"arrived_ms": 50_000, "born_ms": 49_000, "first_born_ms": 49_000}, None, None),
        ({"arrived_ms": 50_000, "born_ms": 49_000, "first_born_ms": 48_000}, None, 49_000),
        ({"arrived_ms": 50_000, "born_ms": 20_001, "first_born_ms": 1}, None, 20_001),
        ({"arrived_ms": 50_000, "born_ms": 20_000, "first_born_ms": 1}, None, None),
        ({"arrived_ms": 50_000, "dropped_ms": {"f": 20_001}}, None, 20_001),
        ({"arrived_ms": 50_000, "dropped_ms": {"f": 20_000, "local": 60_000}}, None, None),
        ({"arrived_ms": None, "born_ms": 6_000}, None, None),
        ({"arrived_ms": 5_000, "dropped_ms": {"f": 7_000}}, None, 7_000),
        ({"arrived_ms": 5_000, "dropped_ms": {"local": 7_000}}, None, None),
    ],
)
def test_a_table_emptied_on_the_slave(events: dict[str, Any], since_ms: int | None, emptied_ms: int | None) -> None:
    """Segments record that entries were applied; a table created anew or a family dropped since has lost them."""
    outcome = check(theirs=described(THEIRS, **events), scope=replace(HBASE, since=Baseline(since_ms)))
    if emptied_ms is None:
        assert outcome.verdict is Verdict.COMPLETE
    else:
        assert (outcome.verdict, only(outcome).written_to_ms) == (Verdict.UNVERIFIABLE, emptied_ms)
        assert "emptied" in only(outcome).detail


@pytest.mark.parametrize(
    ("born_ms", "changed_ms", "is_named"),
    [(20_001, 1_000, True), (20_000, 1_000, False), (20_001, 20_001, False), (20_001, 30_000, False)],
)
def test_a_table_that_is_older_than_the_trackers_is_born_again(born_ms: int, changed_ms: int, is_named: bool) -> None:
    """Nobody saw its first birth, but the ledger has its regions of before; and the clocks of two servers differ."""
    before = {"kind": "fact", "table": "ns:t", "region": "x", "state": "changed", "write_ms": changed_ms}
    born = described(THEIRS, arrived_ms=50_000, born_ms=born_ms, first_born_ms=born_ms)
    problems = check(theirs=[*born, before]).problems
    assert [problem.code for problem in problems] == ["emptied"] * is_named


@pytest.mark.parametrize(
    ("events", "since_ms", "words"),
    [
        # Single mutations, in a table whose own durability is another, are noticed by the trackers.
        ({"skipped_ms": 9_000}, None, "SKIP_WAL"),
        ({"skipped_ms": 9_000}, 9_000, None),
        # Rows from before a family's scope was raised.
        ({"raised_ms": {"f": 9_000}}, None, "replicated only since"),
        ({"raised_ms": {"f": 9_000}}, 9_000, None),
        ({"raised_ms": {"local": 9_000}}, None, None),
    ],
)
def test_what_was_in_no_stream_is_named_until_accepted(events: Row, since_ms: int | None, words: str | None) -> None:
    outcome = check(described(OURS, **events), scope=replace(HBASE, since=Baseline(since_ms)))
    assert outcome.verdict is (Verdict.UNVERIFIABLE if words else Verdict.COMPLETE)
    assert words is None or words in only(outcome).detail


def test_entries_without_a_stamp_that_cannot_be_of_the_master_are_left_out() -> None:
    """Another source cluster without trackers is no reason to doubt this one; it is named (issue 12, D.7)."""
    theirs: Row = {"kind": "unstamped", "table": "ns:t", "region": "r9", "write_ms": 20_000, "via_ids": b"x" * 16}
    outcome = check(theirs=[*THEIRS, theirs])
    assert outcome.verdict is Verdict.COMPLETE
    assert "78787878-7878-7878-7878-787878787878" in " ".join(outcome.notices)
    through_both = {**theirs, "via_ids": b"x" * 16 + uuid.UUID(MASTER.cluster_id).bytes}
    assert check(theirs=[*THEIRS, through_both]).verdict is Verdict.UNVERIFIABLE
    for ids in (None, b"x" * 15):
        assert check(theirs=[*THEIRS, {**theirs, "via_ids": ids}]).verdict is Verdict.UNVERIFIABLE
    nameless = check(theirs=[*THEIRS, theirs], master=replace(MASTER, cluster_id="no uuid"))
    assert nameless.verdict is Verdict.UNVERIFIABLE


def test_a_hole_from_before_the_peer_is_accepted_by_since() -> None:
    """Issue 12, D.3: written before the peer was added, and next after S by the same server."""
    late = changed(THEIRS, "segment", prev=6, first_ms=25_000, started_ms=4_000)
    problem = only(check(theirs=late))
    assert (problem.kind, problem.written_to_ms) == ("gap", 4_000)
    assert "--since ns:t=5000" in (problem.advice or "")
    assert check(theirs=late, scope=replace(HBASE, since=Baseline(4_000))).exit_code == 0
    assert check(theirs=late, scope=replace(HBASE, since=Baseline(3_999))).exit_code == 1


LATER = replace(MASTER, shutdown_ms=20_000, cut_ms=20_000, shutdown_from="recorded")


@pytest.mark.parametrize("theirs", [THEIRS, changed(THEIRS, "segment", seq=9, write_ms=25_000)], ids=["all", "tail"])
@pytest.mark.parametrize("told_by", ["recorded", ""])
def test_later_writes_are_doubtful(theirs: list[Row], told_by: str) -> None:
    """A recorded shutdown time may be of an earlier occasion: what was written since is named, arrived or not."""
    outcome = check(theirs=theirs, master=replace(LATER, shutdown_from=told_by))
    assert (outcome.verdict, regions(outcome)) == (Verdict.UNVERIFIABLE, {Status.COMPLETE: 1})
    (later,) = hbase(outcome).later
    assert (later.table, later.streams, later.newest_ms) == ("ns:t", 1, 30_000)
    assert "1 stream written to after the recorded shutdown time" in only(outcome).detail
    ways = ("shutdown-time record", "-s MILLIS", "--ignore-later-writes", "--table")
    assert all(way in (only(outcome).advice or "") for way in ways)


@pytest.mark.parametrize(
    ("scope", "master"),
    [
        (replace(HBASE, ignore_later_writes=True), LATER),
        (HBASE, replace(LATER, shutdown_from="option")),
        (HBASE, replace(LATER, shutdown_from="check")),
        (replace(HBASE, since=Baseline(30_000)), LATER),
        # Written at the shutdown, on a clock that is ahead by as much as the barrier's echo shows it may be.
        (HBASE, replace(LATER, shutdown_ms=29_950, cut_ms=29_950)),
    ],
)
def test_later_writes_that_are_accepted(scope: Scope, master: Header) -> None:
    """By today's word, as a baseline, or because they are none."""
    outcome = check(scope=scope, master=master)
    assert (outcome.verdict, outcome.problems) == (Verdict.COMPLETE, ())
    later = scope.since == Baseline() and master.shutdown_ms == 20_000
    assert bool(hbase(outcome).later) is later
    assert any("written to after the shutdown time" in notice for notice in outcome.notices) is later


def test_what_is_behind_outranks_later_writes() -> None:
    outcome = check(theirs=changed(THEIRS, "segment", seq=9, write_ms=9_000), master=LATER)
    assert outcome.verdict is Verdict.INCOMPLETE
    assert {problem.kind for problem in outcome.problems} == {"behind", "unverifiable"}


def test_a_queue_that_was_not_drained_needs_a_new_file() -> None:
    """FILE never learns that it has been shipped since: waiting is in vain, and the advice says so (issue 12, D.9)."""
    crashed = changed(OURS, "server", live=False, echoed=False)
    outcome = check(crashed, queues=QueueFacts(left={1: "1 WALs left"}, undrained=frozenset({1})))
    (of_server,) = (one for one in outcome.problems if one.region is None)
    assert (of_server.origin, "final flush" in of_server.detail) == ("a,1,1", True)
    assert "--drained" in (of_server.advice or "")
    assert outcome.needs_new_file
    assert not check(crashed, queues=QueueFacts(left={1: "an endpoint of its own"})).needs_new_file
    assert not check(queues=QueueFacts(undrained=frozenset({1}))).needs_new_file


def test_equal_rows_settle_what_streams_leave_in_doubt() -> None:
    """A gap, a server that crashed and a table from before the trackers: the rows are there all the same."""
    ours = [*OLD_REGION, LOST_SERVER]
    assert check(ours, HOLED).verdict is Verdict.INCOMPLETE
    outcome = check(ours, HOLED, rows=RowProofs(frozenset({"ns:t"})))
    assert (outcome.verdict, outcome.problems, regions(outcome)) == (Verdict.COMPLETE, (), {Status.COMPLETE: 1})
    assert (hbase(outcome).evidence, hbase(outcome).worst_lag_ms) == (Evidence.ROWS, None)


def test_what_only_rows_settle_rests_on_rows() -> None:
    """A table from before the trackers whose streams are whole; where nothing was in doubt, they stay the evidence."""
    ours, proven_rows = OLD_REGION, RowProofs(frozenset({"ns:t"}))
    assert check(ours).verdict is Verdict.UNVERIFIABLE
    for rows, evidence in ((ours, Evidence.ROWS), (OURS, Evidence.EXACT)):
        outcome = check(rows, rows=proven_rows)
        assert (outcome.verdict, hbase(outcome).evidence) == (Verdict.COMPLETE, evidence)


def test_equal_rows_of_one_table_settle_no_server() -> None:
    """What a crashed server wrote may be in the other table."""
    other: list[Row] = [{**TABLE, "table": "ns:u"}, {**REGION, "table": "ns:u", "region": "r2"}]
    ours, theirs = [*OURS, *other, LOST_SERVER], [*THEIRS, {**TABLE, "table": "ns:u"}]
    for proven, verdict in (({"ns:t"}, Verdict.UNVERIFIABLE), ({"ns:t", "ns:u"}, Verdict.COMPLETE)):
        assert check(ours, theirs, rows=RowProofs(frozenset(proven))).verdict is verdict


def test_equal_rows_do_not_settle_what_is_not_about_rows() -> None:
    """A slave that keeps less has more to lose than what was compared."""
    wide, narrow = ({"f": family(versions=number)} for number in (3, 1))
    ours, theirs = described(OURS, families=wide), described(THEIRS, families=narrow)
    outcome = check(ours, theirs, rows=RowProofs(frozenset({"ns:t"})))
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "keeps-less")


def test_rows_that_differ_decide_against_the_streams() -> None:
    found = Finding("differs", table="ns:t", region="r1", start_key=b"k", end_key=b"k\0", note="row k: missing")
    outcome = check(rows=RowProofs(frozenset(), frozenset({"r1"}), (found,)))
    assert (outcome.verdict, outcome.exit_code, regions(outcome)) == (Verdict.INCOMPLETE, 1, {Status.DIFFERS: 1})
    problem = only(outcome)
    assert (problem.kind, problem.region, problem.detail) == ("differs", "r1", "differs: row k: missing")
    assert all(words in (problem.advice or "") for words in ("SyncTable", SYNC_DELETES, "--rows"))


def proven(
    until_ms: int = 25_000, families: str = "f", at_ms: int = 46_000, events: Row | None = None, **seen: Any
) -> list[Row]:
    """The slave's rows after a comparison that noted what the trackers had seen; `events` are those of now."""
    kept = {"until_ms": until_ms, "at_ms": at_ms, "families": list(families), "seen": seen, "by": "rows"}
    return described(THEIRS, proven={MASTER.cluster_id: kept}, **(events or {}))


def test_what_was_proven_stays_a_baseline_of_the_table() -> None:
    """The hole from before, the table's age and a server that was gone by then; not a hole that came later."""
    ours = [*OLD_REGION, LOST_SERVER]

    def holed(until_ms: int) -> Outcome:
        rest = {**SEGMENT, "prev": 6, "first_ms": 11_000, "started_ms": 10_000}
        return check(ours, [*changed(proven(until_ms), "segment", seq=4, write_ms=9_000), rest])

    outcome = holed(25_000)
    assert (outcome.verdict, outcome.problems) == (Verdict.COMPLETE, ())
    assert hbase(outcome).evidence is Evidence.ROWS
    assert any("rests on an earlier comparison" in notice for notice in outcome.notices)
    assert regions(holed(9_500)) == {Status.GAP: 1}
    assert "origin" in {problem.code for problem in holed(15_000).problems}


def test_a_proof_is_one_for_its_families_and_its_master() -> None:
    ours = OLD_REGION
    assert check(ours, proven()).verdict is Verdict.COMPLETE
    assert check(ours, proven(families="g")).verdict is Verdict.UNVERIFIABLE
    other = replace(MASTER, cluster_id="00000000-0000-4000-8000-00000000000f")
    assert check(ours, proven(), master=other).verdict is Verdict.UNVERIFIABLE


@pytest.mark.parametrize(("versions", "verdict"), [(1, Verdict.COMPLETE), (2, Verdict.UNVERIFIABLE)])
def test_a_proof_ends_where_the_master_shows_what_it_had_hidden(versions: int, verdict: Verdict) -> None:
    """The slave has kept more all the time: its regions tell nothing, and nobody compared those cells."""
    kept = {"until_ms": 25_000, "families": ["f"], "seen": {}, "by": "rows", "shown": {"f": [1, 0, 2**31 - 1, 0, 0, 1]}}
    theirs = described(THEIRS, families={"f": family(versions=3)}, proven={MASTER.cluster_id: kept})
    outcome = check(described(OLD_REGION, families={"f": family(versions=versions)}), theirs)
    assert outcome.verdict is verdict
    assert {problem.code for problem in outcome.problems} == ({"older-than-tracker"} if versions > 1 else set())


def family(**settings: int) -> dict[str, Any]:
    never = {"ttl": 2**31 - 1, "min_versions": 0, "keep_deleted": "FALSE", "new_version_behavior": False}
    return {"scope": 1, "versions": 1, **never, **settings}


@pytest.mark.parametrize(
    "broken",
    [
        *("{}", "[]", '{"%s": {"until_ms": "x"}}', '{"%s": {"until_ms": 99999, "at_ms": 1}}'),
        '{"%s": {"until_ms": 99999, "families": ["f"]}}',
        '{"%s": {"until_ms": 99999, "families": ["f"], "seen": {}, "by": "them"}}',
        '{"%s": {"until_ms": 99999, "families": ["f"], "seen": {}, "by": "rows", "shown": {"f": [1]}}}',
    ],
)
def test_a_damaged_proof_is_none(broken: str) -> None:
    text = broken.replace("%s", MASTER.cluster_id)
    theirs = changed(THEIRS, "table", detail=DETAIL[:-1] + f', "proven": {text}}}')
    assert check(OLD_REGION, theirs).verdict is Verdict.UNVERIFIABLE


def test_rows_that_could_not_be_compared_are_told_whatever_the_streams_say() -> None:
    """With --rows=all they were asked for."""
    outcome = check(rows=RowProofs(findings=(Finding("not-compared", table="ns:t", note="s1 does not answer"),)))
    assert (outcome.verdict, regions(outcome)) == (Verdict.UNVERIFIABLE, {Status.COMPLETE: 1})
    assert only(outcome).kind == "unverifiable"
    assert "s1 does not answer" in only(outcome).detail


def test_a_region_of_the_slave_that_nobody_vouches_for() -> None:
    """Nothing but its table's rows settles it: what is accepted, or was proven before, ends where nobody watches."""
    why = "it is on b,1,9, which runs without the tracker"
    fact: Row = {"kind": "fact", "table": "ns:t", "region": "r7", "state": "unattended", "entries": 3, "detail": why}
    other: Row = {**fact, "region": "r5", "entries": 1, "detail": "no live region server has it"}
    for theirs in (THEIRS, proven()):
        for scope in (HBASE, replace(HBASE, since=Baseline(None, {"ns:t": 40_000}))):
            outcome = check(theirs=[*theirs, fact, other], scope=scope)
            assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "unattended")
            assert "4 of 1 regions, as r5: no live region server has it" in only(outcome).detail
            assert "--rows" in (only(outcome).advice or "")
    assert check(theirs=[*THEIRS, fact], rows=RowProofs(frozenset({"ns:t"}))).verdict is Verdict.COMPLETE
    assert check(theirs=[*THEIRS, {**fact, "table": "ns:other"}]).verdict is Verdict.COMPLETE


@pytest.mark.parametrize("regions", [{}, {"regions": 0}, {"regions": "x"}, {"regions": 2, "torn": "r8"}])
def test_a_table_of_the_slave_whose_regions_do_not_cover_every_key(regions: dict[str, Any]) -> None:
    """Also where nobody wrote down who has them, as in a slave's status of an earlier version."""
    detail = json.dumps({"families": {"f": {}, "local": {}}, **regions})
    outcome = check(theirs=changed(THEIRS, "table", detail=detail))
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "unattended")
    assert ("region r8" in only(outcome).detail) is ("torn" in regions)


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"tracked": False, "echoed": False}, "runs without the tracker"),
        ({"tracked": True, "echoed": False}, "has not flushed since the barrier"),
        ({"tracked": True, "echoed": True, "detail": '{"errors": 7}'}, "reported 7 tracker errors"),
        ({"live": False, "tracked": True, "final_ms": 9, "detail": '{"errors": 7}'}, "reported 7 tracker errors"),
    ],
)
def test_a_server_of_the_slave_that_may_have_seen_more_than_it_recorded(server: Row, why: str) -> None:
    """It has no region now, but may have had one whose rows its clients deleted. Equal rows settle it."""
    blind: Row = {"kind": "server", "origin": 9, "server": "b,1,9", "role": "r", "live": True, **server}
    outcome = check(theirs=[*THEIRS, blind])
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "slave-server")
    assert why in only(outcome).detail
    assert check(theirs=[*THEIRS, blind], rows=RowProofs(frozenset({"ns:t"}))).verdict is Verdict.COMPLETE
    gone = {**blind, "live": False, "detail": None}
    assert check(theirs=[*THEIRS, gone]).verdict is Verdict.COMPLETE


def test_a_table_without_a_descriptor() -> None:
    """Trackers should have described what was there before the barrier; one created just now may be missing.

    But not if it has been written to: then nobody knows what the slave's table has to be like.
    """
    master = replace(MASTER, cut_ms=400_000, barrier_issued_ms=400_000)
    theirs = [*THEIRS, {**TABLE, "table": "other"}]
    lost = {"table": "lost", "region": "r9"}
    for region_id, heads, segments, found in (
        (2_000, [], [], {"not-described"}),
        (399_000, [], [], set()),
        (399_000, [{**STREAM, **lost}], [{**SEGMENT, **lost}], {"not-described"}),
    ):
        ours = [*OURS, {**TABLE, "table": "other"}, {**REGION, **lost, "region_id": region_id}]
        outcome = check([*ours, *heads], [*theirs, *segments], master=master)
        assert {problem.code for problem in outcome.problems if problem.table == "lost"} == found


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ({"server": "b,2,2"}, "untracked"),
        ({"server": None, "state": "unhosted"}, "unhosted"),
        ({"state": "unhosted"}, "unhosted"),
        ({"server": None, "state": "split"}, None),
        ({"server": None, "state": "disabled"}, None),
    ],
)
@pytest.mark.parametrize("is_written", [False, True])
def test_who_has_a_region(host: Row, code: str | None, is_written: bool) -> None:
    """Whether it has been written to or not; what was split or disabled is nobody's."""
    region, heads = {**REGION, "region": "r9", **host}, [{**STREAM, "region": "r9"}] * is_written
    outcome = check([*OURS, region, *heads], [*THEIRS, *([{**SEGMENT, "region": "r9"}] * is_written)])
    assert [problem.code for problem in outcome.problems] == ([] if code is None else [code])


def test_a_region_of_a_table_that_is_not_replicated_may_be_anywhere_and_change() -> None:
    local = {"table": "local", "region": "r9"}
    table = described([{**TABLE, "table": "local"}], families={"f": {"scope": 0}})
    change = {**local, "kind": "fact", "state": "changed", "write_ms": 30_000}
    for rows in ([{**REGION, **local, "server": None, "state": "unhosted"}], [{**REGION, **local}, change]):
        assert check([*OURS, *table, *rows]).verdict is Verdict.COMPLETE


def test_what_rests_on_the_operators_word_is_no_proof() -> None:
    """A gap that `--since` passes over; a table that is younger than what is accepted rests on its streams."""
    for since in (Baseline(15_000), Baseline(None, {"ns:t": 15_000})):
        outcome = check(theirs=HOLED, scope=replace(HBASE, since=since))
        assert (outcome.verdict, hbase(outcome).evidence) == (Verdict.COMPLETE, Evidence.ACCEPTED)
        assert hbase(outcome).evidence_by[Evidence.ACCEPTED] == 1
    younger = check(scope=replace(HBASE, since=Baseline(1_999)))
    compared = check(scope=replace(HBASE, since=Baseline(15_000)), rows=RowProofs(frozenset({"ns:t"})))
    assert (hbase(younger).evidence, hbase(compared).evidence) == (Evidence.EXACT, Evidence.ROWS)


def recorded(outcome: Outcome, events: Row | None = None, rows: list[Row] = THEIRS) -> list[Row]:
    """The slave's rows after a run that has recorded the operator's word, through JSON; `events` are those of now."""
    return described(rows, proven={MASTER.cluster_id: outcome.accepts["ns:t"]}, **(events or {}))


@pytest.mark.parametrize("behind_ms", [0, 600_000])
@pytest.mark.parametrize("arrived", [{}, {"arrived_ms": 900_000}])
def test_what_follows_an_acceptance_ends_it_whatever_the_clocks_show(behind_ms: int, arrived: Row) -> None:
    """The slave's clock may be minutes behind the master's, and nothing may ever have been replicated to the table.

    The same word again accepts nothing of it, nor does a later one; what the slave keeps is forgotten first.
    """
    master = replace(MASTER, cut_ms=950_000, barrier_issued_ms=950_000)
    ours, born = OLD_REGION, {**arrived, "born_ms": 5_000, "first_born_ms": 5_000}
    accepted = replace(HBASE, since=Baseline(None, {"ns:t": 900_000}))

    def codes(theirs: list[Row], scope: Scope = HBASE, slave: Header = SLAVE) -> set[str]:
        return {problem.code for problem in verify_rows(ours, theirs, master, slave, scope).problems}

    before = described(THEIRS, **born)
    first = check(ours, before, accepted, master)
    assert (first.problems, set(first.accepts)) == ((), {"ns:t"})
    again = check(ours, recorded(first, born), master=master)
    assert (again.verdict, again.accepts) == (Verdict.COMPLETE, {})
    assert (hbase(again).evidence, hbase(again).accepted_tables) == (Evidence.ACCEPTED, ("ns:t",))
    moment = 1_000_000 - behind_ms
    change = {"kind": "fact", "table": "ns:t", "region": "x", "state": "changed", "write_ms": moment}
    for events, more, code in (
        ({"born_ms": moment}, [], "emptied"),
        ({"dropped_ms": {"f": moment}}, [], "emptied"),
        ({}, [change], "slave-changed"),
    ):
        later = [*recorded(first, {**born, **events}), *more]
        assert codes(later) == {code}
        assert codes(later, accepted) == {code}
        assert codes(later, replace(HBASE, since=Baseline(None, {"ns:t": 940_000}))) == {code}
        advice = check(ours, later, accepted, master).problems[0].advice
        assert "--rows" in (advice or "")
        assert "--forget ns:t --since ns:t=" in (advice or "")
        forgotten = [*described(THEIRS, **(born | events)), *more]
        assert codes(forgotten, replace(accepted, forgotten=frozenset({"ns:t"}))) == set()
    back = replace(SLAVE, state_back_ms=moment)
    assert codes(recorded(first, born), slave=back) == {"slave-state-lost"}
    assert codes(recorded(first, born), accepted, back) == {"slave-state-lost"}
    assert codes(before, accepted, back) == {"slave-state-lost"}, "with the record itself gone"
    assert codes(before, replace(accepted, forgotten=frozenset({"ns:t"})), back) == set()


def test_a_later_word_covers_a_clock_that_was_set_back_past_an_earlier_one() -> None:
    """The way out that the message names, where the slave keeps an earlier word of the table."""
    first = check(OLD_REGION, scope=replace(HBASE, since=Baseline(None, {"ns:t": 20_000})))
    health = json.dumps({"clock_back_ms": 25_000, "clock_low_ms": 15_000})
    ours = changed(OLD_REGION, "server", detail=health)
    assert "origin" in {one.code for one in check(ours, recorded(first)).problems}
    assert check(ours, recorded(first), replace(HBASE, since=Baseline(25_000))).problems == ()


def test_a_server_that_nobody_watched_is_settled_by_rows_or_by_your_word() -> None:
    """A server of the slave that ran without the tracker for a while, later than all that was proven."""
    ours, accepted = OLD_REGION, replace(HBASE, since=Baseline(None, {"ns:t": 29_000}))
    slave = replace(SLAVE, coverage_ms=45_000, state_since_ms=500)
    theirs = described(THEIRS, arrived_ms=3_000)

    def codes(rows: list[Row], scope: Scope, proofs: RowProofs = NO_PROOFS) -> set[str]:
        return {one.code for one in verify_rows(ours, rows, MASTER, slave, scope, rows=proofs).problems}

    assert "slave-uncovered" in codes(theirs, accepted)
    assert codes(theirs, accepted, RowProofs(frozenset({"ns:t"}))) == set()
    forgetting = replace(accepted, forgotten=frozenset({"ns:t"}))
    outcome = verify_rows(ours, theirs, MASTER, slave, forgetting)
    assert outcome.problems == ()
    assert codes(recorded(outcome, {"arrived_ms": 3_000}), HBASE) == set()
    slave = replace(slave, coverage_ms=46_000)
    assert codes(recorded(outcome, {"arrived_ms": 3_000}), HBASE) == {"slave-uncovered"}


def test_a_first_word_accepts_nothing_that_has_happened_since_entries_arrived() -> None:
    """A baseline from long ago, and a table that was truncated last week: what was replicated in between is gone."""
    ours = OLD_REGION
    events = {"arrived_ms": 3_000, "born_ms": 29_000, "first_born_ms": 29_000}
    outcome = check(ours, described(THEIRS, **events), replace(HBASE, since=Baseline(None, {"ns:t": 2_000})))
    assert only(outcome).code == "emptied"
    assert only(check(ours, recorded(outcome, events))).code == "emptied"


@pytest.mark.parametrize("arrived_ms", [3_000, None])
def test_a_first_word_accepts_no_write_of_the_slaves_clients_after_its_time(arrived_ms: int | None) -> None:
    """It vouches for what the master wrote by then, not for what a client of the slave deleted last week.

    Nor of a table to which nothing has been replicated yet: what it holds was copied.
    """
    ours = OLD_REGION
    events = {"arrived_ms": arrived_ms, "written_by": {"": 25_000}, "deleted_by": {"": 25_000}}
    theirs = described(THEIRS, **events)
    early, late = (replace(HBASE, since=Baseline(None, {"ns:t": time_ms})) for time_ms in (24_999, 25_000))
    outcome = check(ours, theirs, early)
    assert only(outcome).code == "slave-written"
    assert only(check(ours, recorded(outcome, events))).code == "slave-written"
    assert check(ours, theirs, late).problems == ()
    assert check(ours, theirs, replace(early, forgotten=frozenset({"ns:t"}))).problems == ()


def test_tables_that_the_file_is_limited_to_are_in_scope() -> None:
    """As those of the command line: a name that was mistyped with `run -m` is no table that has arrived."""
    master = replace(MASTER, tables=("ns:t", "ns:typo"), namespaces=("ns", "gone"))
    outcome = check(master=master)
    assert {(problem.code, problem.table) for problem in outcome.problems} == {
        ("not-replicated", "ns:typo"),
        ("not-replicated", None),
    }
    # FILE is for another slave as well; but a table that is asked for here is asked of this peer.
    master, facts = replace(master, namespaces=()), QueueFacts(left_out=("ns:typo",))
    assert check(master=master, queues=facts).problems == ()
    asked = replace(HBASE, tables=frozenset({"ns:t", "ns:typo"}))
    assert only(check(master=master, queues=facts, scope=asked)).code == "not-replicated"


def test_a_later_word_replaces_the_one_before_and_a_proof_by_rows_either() -> None:
    ours = OLD_REGION

    def until(theirs: list[Row], time_ms: int | None) -> Row:
        outcome = check(ours, theirs, replace(HBASE, since=Baseline(time_ms)))
        assert (outcome.verdict, outcome.problems) == (Verdict.COMPLETE, ())
        kept = outcome.accepts.get("ns:t", {})
        return {"until_ms": kept.get("until_ms"), "by": kept.get("by"), "evidence": hbase(outcome).evidence}

    first = check(ours, scope=replace(HBASE, since=Baseline(20_000)))
    nothing = {"until_ms": None, "by": None}
    assert until(recorded(first), 19_000) == nothing | {"evidence": Evidence.ACCEPTED}
    assert until(recorded(first), 21_000) == {"until_ms": 21_000, "by": "word", "evidence": Evidence.ACCEPTED}
    assert until(proven(), 25_000) == nothing | {"evidence": Evidence.ROWS}
    assert until(proven(), 26_000) == {"until_ms": 26_000, "by": "word", "evidence": Evidence.ACCEPTED}
    assert any("your word" in line and "--forget" in line for line in check(ours, recorded(first)).notices)


def test_a_word_is_one_for_the_families_that_were_shipped_then() -> None:
    """A peer that is widened: the word is asked for again, and still accepts nothing that has happened since."""
    both = {"f": {"scope": 1}, "g": {"scope": 1}}
    ours = described(OLD_REGION, families=both)
    accepted = replace(HBASE, since=Baseline(20_000))
    narrow = QueueFacts(withheld={"ns:t": ("g",)})
    first = check(ours, described(THEIRS, families=both), accepted, queues=narrow)
    theirs = recorded(first, {"families": both})
    assert check(ours, theirs, queues=narrow).verdict is Verdict.COMPLETE
    assert check(ours, theirs).verdict is Verdict.UNVERIFIABLE
    assert check(ours, theirs, accepted).accepts["ns:t"]["families"] == ["f", "g"]
    emptied = recorded(first, {"families": both, "born_ms": 7_000})
    assert only(check(ours, emptied, accepted)).code == "emptied"


def test_a_word_for_more_families_does_not_take_over_the_events_that_a_proof_of_others_has_seen() -> None:
    """The rows of f were compared after the slave's table was emptied, and g has arrived before that."""
    both = {"f": {"scope": 1}, "g": {"scope": 1}}
    ours = [*described(OURS, families=both), {**STREAM, "via": 7, "family": "g", "first_ms": 20_000}]
    emptied = {"families": both, "arrived_ms": 3_000, "born_ms": 28_000, "first_born_ms": 2_000}
    theirs = proven(32_000, events=emptied, born_ms=28_000, own_ms=0)
    theirs += [{**SEGMENT, "via": 7, "family": "g", "first_ms": 20_000}]
    word = replace(HBASE, since=Baseline(None, {"ns:t": 5_000}))
    for queues in (QueueFacts(), QueueFacts(withheld={"ns:t": ("f",)})):
        outcome = check(ours, theirs, word, queues=queues)
        assert {one.code for one in outcome.problems} == {"emptied"}, outcome


def test_nothing_is_said_of_a_table_that_is_not_replicated_any_more() -> None:
    """Its streams are whole, and the slave's table was emptied, or is gone; what is missing is named all the same."""
    ours = described(OURS, families={"f": {"scope": 0}})
    for theirs in (
        described(THEIRS, arrived_ms=3_000, born_ms=28_000),
        [*without(THEIRS, "table"), {**TABLE, "table": "ns:other"}],
    ):
        assert check(ours, theirs).verdict is not Verdict.COMPLETE
    assert only(check(ours, without(THEIRS, "segment"))).code == "missing"


def test_a_region_that_is_gone_was_written_to_after_the_baseline() -> None:
    """A snapshot from before the split is restored: the parent is open again, and its daughter is gone."""
    parent = {"kind": "fact", "table": "ns:t", "region": "r1", "state": "split", "region_id": 2_000}
    ours = [*changed(OURS, "stream", region="d1", first_ms=20_000), parent]
    theirs = changed(changed(THEIRS, "segment", region="d1", first_ms=20_000), "replicated", region="d1")
    for since_ms, verdict in ((12_000, Verdict.UNVERIFIABLE), (35_000, Verdict.COMPLETE)):
        accepted = replace(HBASE, since=Baseline(None, {"ns:t": since_ms}))
        assert check(ours, theirs, accepted).verdict is verdict, since_ms


GONE = without(without(OURS, "region"), "table")
"""What is left of a table that was dropped."""
LINEAGE = [[], [{"kind": "fact", "table": "ns:t", "region": "r0", "state": "split", "region_id": 500, "write_ms": 900}]]


@pytest.mark.parametrize("lineage", LINEAGE)
def test_a_table_that_was_dropped_is_accepted_also_if_it_had_been_split(lineage: list[Row]) -> None:
    """What is left of it tells when its regions were last written to."""
    for since_ms, is_gone in ((29_999, True), (30_000, False)):
        outcome = check([*GONE, *lineage], scope=replace(HBASE, since=Baseline(None, {"ns:t": since_ms})))
        assert ("truncated" in {problem.code for problem in outcome.problems}) == is_gone


@pytest.mark.parametrize("lineage", LINEAGE)
def test_a_table_that_neither_side_has_any_more_is_not_missed(lineage: list[Row]) -> None:
    """Nor a clone that the slave never had; while the slave has it, or its tables are not known, it is."""
    nothing = without(THEIRS, "table")
    for theirs, is_gone in (([*nothing, {**TABLE, "table": "ns:u"}], False), (THEIRS, True), (nothing, True)):
        outcome = check([*GONE, *lineage], theirs)
        assert ("truncated" in {problem.code for problem in outcome.problems}) == is_gone


def test_an_old_table_that_nobody_described_is_told_also_if_a_region_of_it_is_young() -> None:
    """As one that was split or merged just before the barrier."""
    later = replace(MASTER, barrier_issued_ms=140_000, cut_ms=140_000, created_ms=150_000)
    slave = replace(SLAVE, cut_ms=160_000, created_ms=160_000)
    ours = [
        *changed(OURS, "server", read_ms=140_100),
        *({**REGION, "table": "ns:u", "region": f"u{n}", "region_id": n} for n in (1, 110_000)),
    ]
    outcome = verify_rows(ours, THEIRS, later, slave, HBASE)
    assert ("not-described", "ns:u") in {(one.code, one.table) for one in outcome.problems}, outcome


def test_a_table_that_nobody_described_is_told_also_if_the_clock_of_the_tools_host_is_behind() -> None:
    """By that clock alone it would be made after the barrier, and nothing of it would be asked for."""
    other = {**REGION, "table": "ns:u", "region": "u1", "region_id": 300_000}
    ours = [*changed(OURS, "server", read_ms=400_000), other]
    assert ("not-described", "ns:u") in {(one.code, one.table) for one in check(ours).problems}
    later = changed(ours, "server", read_ms=300_000)
    assert check(later).verdict is Verdict.COMPLETE


def test_a_word_that_no_slave_can_record_is_told_as_such() -> None:
    outcome = check(scope=replace(HBASE, since=Baseline(20_000), offline=True))
    assert any("until FILE2 was written" in notice for notice in outcome.notices)


def test_a_slave_whose_state_table_went_back() -> None:
    """What it recorded proves nothing; rows that are proven after it do, until it goes back again."""
    back = replace(SLAVE, state_back_ms=45_000)
    outcome = verify_rows(OURS, THEIRS, MASTER, back, HBASE)
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "slave-state-lost")
    assert verify_rows(OURS, proven(back_ms=45_000), MASTER, back, HBASE).verdict is Verdict.COMPLETE
    again = verify_rows(OURS, proven(back_ms=45_000), MASTER, replace(back, state_back_ms=44_000), HBASE)
    assert only(again).code == "slave-state-lost"
    compared = verify_rows(OURS, THEIRS, MASTER, back, HBASE, rows=RowProofs(frozenset({"ns:t"})))
    assert compared.verdict is Verdict.COMPLETE


@pytest.mark.parametrize(
    "parent",
    [{"kind": "region", "state": "split", "region_id": 2_000}, {"kind": "fact", "state": "split", "region_id": 2_000}],
)
def test_what_a_region_held_when_it_was_split_is_in_its_daughters(parent: Row) -> None:
    """A table that was cloned from a snapshot and is split at once: none of its regions opened with foreign files."""
    named = {"table": "ns:t", "region": "r0"}
    ours = [*OURS, parent | named, {"kind": "fact", **named, "state": "changed", "write_ms": 20_000}]
    outcome = check(ours)
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "content-changed")
    assert check(ours, scope=replace(HBASE, since=Baseline(20_000))).verdict is Verdict.COMPLETE


@pytest.mark.parametrize(
    ("slave", "arrived_ms", "codes"),
    [
        ({"state_back_ms": 45_000}, 30_000, {"unrecorded", "slave-state-lost"}),
        # Segments that were taken over are written again, and the arrival of the server that they were of is not.
        ({"state_back_ms": 45_000}, 105_001, {"unrecorded", "slave-state-lost"}),
        # A server without the tracker was there.
        ({"coverage_ms": 45_000, "state_since_ms": 1}, 30_000, {"unrecorded", "slave-uncovered"}),
        ({"coverage_ms": 45_000, "state_since_ms": None}, 30_000, {"unrecorded", "slave-uncovered"}),
        ({"coverage_ms": 45_000, "state_since_ms": 45_000}, 30_000, {"gap"}),  # none but those before the first one
    ],
)
def test_a_hole_is_no_gap_where_the_slaves_records_are_not_whole(slave: Row, arrived_ms: int, codes: set[str]) -> None:
    """The slave may have applied what it has no record of, or no longer has one."""
    theirs = described(HOLED, arrived_ms=arrived_ms)
    outcome = verify_rows(OURS, theirs, MASTER, replace(SLAVE, **slave), HBASE)
    assert {problem.code for problem in outcome.problems} == codes
    assert outcome.verdict is (Verdict.INCOMPLETE if codes == {"gap"} else Verdict.UNVERIFIABLE)
    lost = next(problem for problem in outcome.problems if not problem.code.startswith("slave-"))
    assert (lost.from_seq, lost.to_seq) == (4, 6 if codes == {"gap"} else 10)


@pytest.mark.parametrize(
    "events", [{"born_ms": 20_000}, {"born_ms": 9_000, "dropped_ms": {"f": 20_000}}, {"changed_ms": 20_000}]
)
def test_a_word_about_the_past_accepts_nothing_of_a_table_that_is_younger(events: Row) -> None:
    """By the slave's clock, which may be minutes behind, what happens to it may come before what is accepted."""
    ours = changed(OURS, "region", region_id=32_000)
    changes = [{"kind": "fact", "table": "ns:t", "region": "r1", "state": "changed", "write_ms": 20_000}]
    theirs = described(THEIRS, arrived_ms=10_000, **({"first_born_ms": 9_000} | events))
    theirs += changes if "changed_ms" in events else []
    outcome = check(ours, theirs, replace(HBASE, since=Baseline(31_000)))
    assert outcome.verdict is Verdict.UNVERIFIABLE


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        ({"arrived_ms": 105_001}, True),
        ({"born_ms": 105_001, "first_born_ms": 105_001}, False),
        ({"born_ms": 105_001, "first_born_ms": 105_001, "arrived_ms": 105_002}, False),
        ({"born_ms": 105_000}, True),  # the clocks of two servers may differ by so much
        ({"arrived_ms": 44_000, "born_ms": 44_000}, True),
    ],
)
def test_a_table_that_was_created_only_since_the_slaves_state_table_went_back(events: Row, lost: bool) -> None:
    """All that it holds has arrived, and all that happened to it was recorded, after that."""
    theirs, back = described(THEIRS, **events), replace(SLAVE, state_back_ms=45_000)
    outcome = verify_rows(OURS, theirs, MASTER, back, HBASE)
    assert [problem.code for problem in outcome.problems] == ["slave-state-lost"] * lost
    # What an operator has accepted before counts as held.
    word = replace(HBASE, since=Baseline(None, {"ns:t": 30_000}))
    accepted = verify_rows(OURS, theirs, MASTER, back, word)
    assert "slave-state-lost" in {problem.code for problem in accepted.problems}


@pytest.mark.parametrize("behind_ms", [0, 300_000])
def test_what_follows_a_proof_ends_it_whatever_the_clocks_show(behind_ms: int) -> None:
    """The slave's clock may be minutes behind that of the tool's host: only what was seen then does not count."""
    ours, moment, at_ms = OLD_REGION, 1_000_000 - behind_ms, 990_000
    emptied: list[Row] = [{"born_ms": moment}, {"dropped_ms": {"f": moment}}]
    for event in emptied:
        events = {"arrived_ms": 5, **event}
        assert only(check(ours, proven(at_ms=at_ms, events=events))).code == "emptied"
        assert check(ours, proven(at_ms=at_ms, events=events, **event)).verdict is Verdict.COMPLETE
    change = {"kind": "fact", "table": "ns:t", "region": "x", "state": "changed", "write_ms": moment}
    assert only(check(ours, [*proven(at_ms=at_ms), change])).code == "slave-changed"
    assert check(ours, [*proven(at_ms=at_ms, changed_ms=moment), change]).verdict is Verdict.COMPLETE


CHANGED = {"kind": "fact", "table": "ns:t", "region": "x", "state": "changed", "write_ms": 4_000}


@pytest.mark.parametrize(
    ("events", "more", "code"),
    [
        ({"born_ms": 4_000, "first_born_ms": 1_000}, [], "emptied"),
        ({"born_ms": 4_500, "first_born_ms": 4_000}, [], "emptied"),  # the later birth is of before
        ({"born_ms": 4_000, "first_born_ms": 4_000}, [], None),
        ({"dropped_ms": {"f": 4_000}}, [], "emptied"),
        ({}, [CHANGED], "slave-changed"),
    ],
)
def test_what_clocks_of_the_slave_show_twice_may_have_come_after_the_first_entry(
    events: Row, more: list[Row], code: str | None
) -> None:
    """They were set back past it: what happens until they have passed it again looks as if it had come before."""
    slave = described(THEIRS, arrived_ms=50_000, **events)
    assert check(theirs=[*slave, *more]).verdict is Verdict.COMPLETE

    def set_back(low_ms: int, back_ms: int) -> Outcome:
        health = json.dumps({"clock_low_ms": low_ms, "clock_back_ms": back_ms})
        return check(theirs=[*changed(slave, "server", detail=health), *more])

    assert {problem.code for problem in set_back(3_000, 60_000).problems} == ({code} if code else set())
    assert set_back(5_000, 60_000).verdict is Verdict.COMPLETE, "it came before the clocks' lowest time since"
    spans = ((1_000, 2_000), (5_000, 60_000))
    told = [json.dumps({"clock_low_ms": low_ms, "clock_back_ms": back_ms}) for low_ms, back_ms in spans]
    others = (row for one in told for row in changed(slave, "server", detail=one) if row["kind"] == "server")
    assert check(theirs=[*slave, *others, *more]).verdict is Verdict.COMPLETE, "no clock has shown it twice"


def test_a_cluster_of_several_loses_what_its_clocks_show_twice_whoever_sent_it() -> None:
    """As `paths` asks."""
    for low_ms, code in ((3_000, "slave-changed"), (5_000, None)):
        health = json.dumps({"clock_low_ms": low_ms, "clock_back_ms": 60_000})
        found = taken_away(SLAVE, [*changed(described(THEIRS, arrived_ms=50_000), "server", detail=health), CHANGED])
        one = found["ns:t"]
        assert (None if one is None else one.code) == code


def test_what_clocks_of_the_slave_show_twice_hides_what_comes_after_a_proof() -> None:
    """The value that the proof has seen stays the newest until the clocks have passed it again."""
    for until_ms, back_ms, verdict in ((25_000, 26_000, Verdict.UNVERIFIABLE), (25_000, 24_000, Verdict.COMPLETE)):
        slave = proven(until_ms, events={"arrived_ms": 5, "born_ms": 20_000, "first_born_ms": 6}, born_ms=20_000)
        health = json.dumps({"clock_low_ms": 10_000, "clock_back_ms": back_ms})
        assert check(OLD_REGION, changed(slave, "server", detail=health)).verdict is verdict


def test_a_server_that_nobody_knows_keeps_a_run_from_being_complete() -> None:
    outcome = check(queues=QueueFacts(strays=("b,1,9 is not known to the trackers",)))
    assert (outcome.verdict, only(outcome).code) == (Verdict.UNVERIFIABLE, "origin")


@pytest.mark.parametrize(("region_id", "verdict"), [(40_000, Verdict.COMPLETE), (30_000, Verdict.UNVERIFIABLE)])
def test_a_settled_crash_stays_so_when_the_peer_ships_a_younger_table_as_well(region_id: int, verdict: Verdict) -> None:
    """What it wrote was shipped when the peer's lists had one table; the other one was made since, or may have been."""
    crashed = {**SERVER, "role": "w", "server": "c,1,1", "origin": 3, "live": False, "echoed": False, "gone_ms": 5_000}
    other: Row = {**TABLE, "table": "ns:u"}
    ours = [*OURS, crashed, other, {**REGION, "table": "ns:u", "region": "r2", "region_id": region_id}]
    lists = family_filter({"id": "1", "replicate_all": False, "table_cfs": {"ns:t": []}})
    queues = QueueFacts(left={3: "the peer was changed"}, older={3: OlderProof(6_000, lists, 5_000, "it counts")})
    # One without replicated families, and one that is gone but had been split, are in no doubt.
    ours += described([{**TABLE, "table": "ns:l"}], families={"l": {"scope": 0}})
    ours += [{**REGION, "table": "ns:l", "region": "r3"}]
    ours += [{"kind": "fact", "table": "ns:gone", "region": "r4", "state": "split", "region_id": 7, "write_ms": 900}]
    outcome = check(ours, [*THEIRS, other], queues=queues)
    assert outcome.verdict is verdict
    assert ("it counts" in outcome.notices) == (verdict is Verdict.COMPLETE)
