"""Which tables `run -i --rows` compares, and what is made of the results."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.zookeeper import Peer
from status_tool.digests import families
from status_tool.digests.compare import Result, TableVerdict
from status_tool.digests.counted import NOT_COUNTED
from status_tool.digests.differences import MISSING, Difference
from status_tool.digests.digest import FOREVER, Family
from status_tool.digests.families import DescribedCluster, require_same_cluster
from status_tool.digests.keys import Interval
from status_tool.digests.requests import _Bell
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.gather.measured_queues import Measured
from status_tool.runs import compare_rows
from status_tool.runs.compare_rows import (
    RowComparison,
    RowsAsked,
    _glance,
    _proofs,
    _unusable,
    _waiting_for_queues,
    _Way,
    kept_words,
    tables_in_doubt,
)
from status_tool.runs.file_digests import FiledTable
from status_tool.runs.question import Question
from status_tool.sources.meta import HostedRegion
from status_tool.sources.replication_queues import Queue, Queues, Wal
from status_tool.sources.state_table import StateTable, now_ms
from status_tool.sources.wals import Extent
from status_tool.vocabulary.codes import STREAM_CODES
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.names import PEER_STORAGE_KEY
from status_tool.vocabulary.outcome import Group, HBaseOutcome, LaterWrites, Outcome, Overview, Problem
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.verdicts import Evidence, Status, Verdict
from tests.unit.test_evidence_reference import family

HEADER = Header("master", "m", 10, 10)


def question(master: Header = HEADER) -> Question:
    """About three tables."""
    known = {"shipped": {"a": ("f",), "b": ("f",), "c": ("f",)}, "peer": {"id": "1"}, "master": master}
    scope = SimpleNamespace(max_problems=10)
    return cast(Question, SimpleNamespace(**known, slave=replace(HEADER, cluster_id="s"), scope=scope))


QUESTION = question()
MASTER = cast(Settings, SimpleNamespace(thrift=lambda: None))
EQUAL = Result("a", TableVerdict.EQUAL, ("f",))


def unknown(_table: str) -> dict[str, list[int]]:
    """What the master's table kept is not asked in these tests."""
    return {}


def outcome(*groups: tuple[str | None, str]) -> Outcome:
    """With these causes: table and code."""
    found = tuple(Group("unverifiable", code, table, 1, Problem("unverifiable", "x")) for table, code in groups)
    return replace(Outcome(None, None, (), 0), overview=Overview(groups=found))


@pytest.fixture(autouse=True)
def _regions(monkeypatch: pytest.MonkeyPatch) -> None:
    regions = [HostedRegion("r1", b"", b"m", "s", 1, "t"), HostedRegion("r2", b"m", b"", "s", 1, "t")]
    monkeypatch.setattr("status_tool.sources.meta.open_regions", lambda *_: iter(regions))


def test_only_what_is_in_doubt_is_compared() -> None:
    """A file's problem and a table that is not shipped are none of it."""
    doubts = outcome(("b", "gap"), (None, "checksum"), ("gone", "truncated"))
    assert tables_in_doubt(QUESTION, doubts, every=False) == ("b",)
    assert tables_in_doubt(QUESTION, outcome(), every=False) == ()
    assert tables_in_doubt(QUESTION, outcome(), every=True) == ("a", "b", "c")


def test_what_is_accepted_on_somebodys_word_is_compared() -> None:
    accepted = HBaseOutcome(Verdict.COMPLETE, Evidence.ACCEPTED, {}, accepted_tables=("c", "gone"))
    assert tables_in_doubt(QUESTION, replace(outcome(), hbase=accepted), every=False) == ("c",)


def test_a_server_in_doubt_is_one_of_every_table() -> None:
    assert tables_in_doubt(QUESTION, outcome((None, "origin")), every=False) == ("a", "b", "c")


@pytest.mark.parametrize(
    "code",
    [
        *("older-than-tracker", "pruned", "unstamped", "contradiction"),
        *(code for code, status in STREAM_CODES.items() if status is not Status.COMPLETE),
    ],
)
def test_what_may_be_in_a_queue_is_not_compared(code: str) -> None:
    assert _waiting_for_queues(["a"], outcome(("a", code))) == {"a"}


def test_what_was_accepted_may_be_in_a_queue() -> None:
    """A word is no arrival, and rows that are equal by then would make a proof of it."""
    accepted = HBaseOutcome(Verdict.COMPLETE, Evidence.ACCEPTED, {}, accepted_tables=("c",))
    assert _waiting_for_queues(["a", "c"], replace(outcome(), hbase=accepted)) == {"c"}


@pytest.mark.parametrize(("table", "waiting"), [("b", {"b"}), (None, {"a", "b"})])
def test_what_is_later_than_the_shutdown_time_may_be_in_a_queue(table: str | None, waiting: set[str]) -> None:
    """It is not in question, and yet a proof by rows covers it: the next FILE may have no shutdown time."""
    later = (LaterWrites(table, 1, 7),)
    found = HBaseOutcome(Verdict.UNVERIFIABLE, Evidence.EXACT, {}, later=later)
    assert _waiting_for_queues(["a", "b"], replace(outcome(), hbase=found)) == waiting


@pytest.mark.parametrize("code", ["emptied", "bulkload"])
def test_what_is_in_no_stream_waits_for_no_queue(code: str) -> None:
    assert _waiting_for_queues(["a"], outcome(("a", code))) == frozenset()


def test_of_a_crashed_server_anything_may_be_in_a_queue() -> None:
    assert _waiting_for_queues(["a", "b"], outcome((None, "origin"), ("a", "emptied"))) == {"a", "b"}


def test_of_peers_that_are_not_in_zookeeper_anything_may_be_in_a_queue() -> None:
    assert _waiting_for_queues(["a", "b"], outcome((None, "peers-elsewhere"))) == {"a", "b"}


@pytest.mark.parametrize(
    ("storage", "left", "is_drained"),
    [(None, 1, True), ("filesystem", 1, False), ("filesystem", 0, True), ("filesystem", None, False)],
)
def test_rows_wait_for_the_queues_of_peers_that_are_not_in_zookeeper(
    monkeypatch: pytest.MonkeyPatch, storage: str | None, left: int | None, is_drained: bool
) -> None:
    """FILE has the peer of before, 1, and the slave is shipped what the queue of peer 2 holds; None: there is none."""
    zookeeper = SimpleNamespace(peers=lambda: [Peer("1", "", True, 0)])
    there = DescribedCluster(MASTER, "m", {})
    name, holder = "host%2C16020%2C5.7", "host,16020,5"
    queues = () if left is None else (Queue(holder, True, "2", (Wal(name, 10 - left),)),)
    measured = Measured(1, Queues(queues, (), True), {name: Extent("/wal", 10)}, frozenset())
    answers = {"measure": measured, "ZooKeeper": nullcontext(zookeeper), "describe_both": (there, there)}
    for what, answer in (answers | {"describe": there, "_refuse_other": None}).items():
        monkeypatch.setattr(compare_rows, what, lambda *_, answer=answer: answer)
    monkeypatch.setattr(compare_rows, "DRAIN_S", 0.0)
    detail = {"settings": {} if storage is None else {"hbase.replication.peer.storage.impl": storage}}
    server = {"kind": "server", "server": "a,1,1", "role": "w", "live": True, "detail": json.dumps(detail)}
    master = cast(Settings, SimpleNamespace(zookeeper=lambda: None))
    asked = cast(Question, SimpleNamespace(**vars(question()), queues=SimpleNamespace(left_bytes=0)))
    rows = RowComparison(RowsAsked(master), master, asked, [server], 0.0, lambda _: None, threading.Event())
    assert rows._by_master(master, ["a"], NOT_COUNTED).drained is is_drained
    assert rows._by_file(["a"], NOT_COUNTED).drained is (storage is None)


def test_differing_cells_name_their_regions() -> None:
    cell = Difference(b"k", b"f", b"q", MISSING, master_ms=5)
    differs = Result(*("b", TableVerdict.DIFFERS, ("f",)), differences=(cell,), intervals=(Interval(b"k", b"k\0"),))
    proofs = _proofs({"a": EQUAL, "b": differs}, frozenset(), MASTER, 10)
    assert proofs.equal == {"a"}
    assert proofs.differing == {"r1"}
    (finding,) = proofs.findings
    assert (finding.code, finding.table, finding.region, finding.start_key) == ("differs", "b", "r1", b"k")
    assert "missing on the slave" in (finding.note or "")


def test_what_was_not_compared_is_not_equal() -> None:
    """Nor what could not be verified; both say why."""
    open_ = Result("b", TableVerdict.UNVERIFIABLE, ("f",), reasons=("2 ranges kept changing",))
    proofs: Any = _proofs({"b": open_}, frozenset({"c"}), MASTER, 10)
    assert (proofs.equal, proofs.differing) == (frozenset(), frozenset())
    (finding,) = proofs.findings
    assert (finding.code, finding.table, finding.note) == ("not-compared", "b", "2 ranges kept changing")
    assert any("(c)" in notice and "entries to ship" in notice for notice in proofs.notices)


def test_a_difference_that_could_not_be_listed_is_one_all_the_same() -> None:
    gone = Result("b", TableVerdict.DIFFERS, ("f",), intervals=(Interval(b"x", b"y"),))
    proofs = _proofs({"b": gone}, frozenset(), MASTER, 10)
    assert proofs.differing == {"r2"}
    assert proofs.findings[0].code == "differs"


@pytest.mark.parametrize(
    ("reasons", "why"), [((), "--max-problems"), (("cannot be read: AccessDenied",), "AccessDenied")]
)
def test_who_is_not_shown_all_cells_that_differ_is_told_why(reasons: tuple[str, ...], why: str) -> None:
    cell = Difference(b"k", b"f", b"q", MISSING, master_ms=5)
    some = Result("b", TableVerdict.DIFFERS, ("f",), differences=(cell,), is_all=False, reasons=reasons)
    (notice,) = _proofs({"b": some}, frozenset(), MASTER, 10).notices
    assert why in notice


def test_a_bound_hides_no_table() -> None:
    """Of several tables with many cells the later ones had no finding and no repair, nor those not compared."""
    cells = tuple(Difference(b"k", b"f", b"%d" % number, MISSING, master_ms=5) for number in range(3))
    found = {name: Result(name, TableVerdict.DIFFERS, ("f",), differences=cells) for name in ("a", "b", "c")}
    open_ = Result("d", TableVerdict.UNVERIFIABLE, ("f",), reasons=("2 ranges kept changing",))
    proofs = _proofs({**found, "d": open_}, frozenset(), MASTER, 4)
    assert [one.table for one in proofs.findings] == ["a", "a", "a", "b", "c", "d"]
    assert [notice[:8] for notice in proofs.notices] == ["table b:", "table c:"]


def test_a_first_look_that_fails_leaves_each_table_to_itself() -> None:
    """A few tables need none."""

    def fails(_: object) -> dict[str, Result]:
        raise ConnectionFailed("gone")

    names = ["a", "b", "c", "d"]
    assert _glance(_Way(True, lambda *_: EQUAL, fails, unknown), names) == {}
    assert _glance(_Way(True, lambda *_: EQUAL, lambda _: {"a": EQUAL}, unknown), names) == {"a": EQUAL}
    assert _glance(_Way(True, lambda *_: EQUAL, fails, unknown), names[:3]) == {}


@pytest.mark.parametrize(("least", "oldest", "is_usable"), [(1, 5, False), (1, FOREVER, True), (0, 5, True)])
def test_digests_without_what_min_versions_keeps_prove_nothing(least: int, oldest: int, is_usable: bool) -> None:
    """FILE was written without the slave's settings."""
    filed = FiledTable("a", bytes(16), 9, None, {b"f": Family(1, oldest)}, {})
    slave = cast(DescribedCluster, SimpleNamespace(tables={"a": {"f": {"min_versions": least}}}))
    reason = _unusable(filed, slave, QUESTION, "a")
    assert (reason is None) == is_usable
    assert is_usable or "MIN_VERSIONS of family f" in str(reason)


def test_digests_of_nothing_that_was_written_by_the_cut_prove_nothing() -> None:
    """FILE's shutdown time is long before its digests, and by then all cells from before it expired soon."""
    filed = FiledTable("a", bytes(16), 9, None, {b"f": Family(1, 7)}, {})
    slave = cast(DescribedCluster, SimpleNamespace(tables={"a": {"f": {}}}))
    late, early = (replace(HEADER, cut_ms=cut_ms) for cut_ms in (8, 7))
    assert _unusable(filed, slave, question(late), "a") is None
    assert "all cells of family f" in str(_unusable(filed, slave, question(early), "a"))


@pytest.mark.parametrize(("minutes", "is_compared"), [(5, True), (15, False), (34, False), (36, True)])
def test_rows_of_which_nothing_that_was_written_by_the_cut_is_compared_are_not_equal(
    monkeypatch: pytest.MonkeyPatch, minutes: int, is_compared: bool
) -> None:
    """With a TTL of 30 minutes: digests leave out what has less than 20 left, which is all that FILE asks for.

    At last it has expired, whatever the clocks show, so that nothing of it is asked for.
    """
    sides = [DescribedCluster(MASTER, name, {"a": {"f": family(ttl=1_800)}}) for name in ("m", "s")]
    monkeypatch.setattr(compare_rows, "describe_both", lambda *_: sides)
    monkeypatch.setattr(compare_rows._Queues, "wait", lambda *_: True)
    monkeypatch.setattr("status_tool.digests.compare._equal_in_one_request", lambda _m, _s, hows, *_: hows)
    asked = question(replace(HEADER, cut_ms=now_ms() - minutes * 60_000))
    rows = RowComparison(RowsAsked(MASTER), MASTER, asked, (), 0.0, lambda _: None, threading.Event())
    way = rows._by_master(MASTER, ["a"], NOT_COUNTED)
    assert set(way.first_look(["a"])) == ({"a"} if is_compared else set())
    if not is_compared:
        assert way.compare_one("a").verdict is TableVerdict.UNVERIFIABLE


def test_a_proof_keeps_what_the_master_showed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its descriptor as its rows were digested: now, or when FILE was written."""
    kept: dict[str, Any] = {}
    monkeypatch.setattr(StateTable, "record_kept", lambda _self, _id, found: kept.update(found))
    there = DescribedCluster(MASTER, "m", {"a": {"f": family(versions=2), "local": family()}})
    here = DescribedCluster(MASTER, "s", {"a": {"f": family(versions=9)}})
    answers = {"describe_both": (there, here), "describe": here, "compare": EQUAL, "compare_with_file": EQUAL}
    for name, answer in (answers | {"_unusable": None}).items():
        monkeypatch.setattr(compare_rows, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(compare_rows._Queues, "wait", lambda *_: True)
    sums = {"key": "00" * 16, "cut_ms": 1, "horizon_ms": None, "families": {"f": [3, 0]}, "sums": "1"}
    rows: list[Row] = [
        {"kind": "server", "role": "w", "live": True, "echoed": True, "read_ms": 100_000},
        {"kind": "table", "table": "a", "detail": json.dumps({"families": {"f": family(versions=3)}})},
        {"kind": "digest", "table": "a", "start_key": b"", "end_key": b"", "detail": json.dumps(sums)},
    ]
    slave = cast(Settings, SimpleNamespace(thrift=lambda: None, state_table="s"))
    queued = SimpleNamespace(left_bytes=0)
    asked = cast(Question, SimpleNamespace(**vars(question()), queues=queued))
    doubt = replace(outcome(("a", "older-than-tracker")), seen={"a": {}})
    for master, versions in ((MASTER, 2), (None, 3)):
        comparison = RowComparison(RowsAsked(master), slave, asked, rows, 0.0, lambda _: None, threading.Event())
        assert comparison.proofs(doubt).equal == {"a"}
        assert kept.pop("a")["shown"] == {"f": (versions, 0, 2**31 - 1, 0, 0, 1, 0)}


MINUTE_MS = 60_000
CUT_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("until_ms", "coverage_ms", "words", "others"),
    [
        (CUT_MS - MINUTE_MS, CUT_MS - 2 * MINUTE_MS, "proven from now on, also without --rows", "again"),
        (CUT_MS - MINUTE_MS, CUT_MS - MINUTE_MS // 2, "write FILE after 2023-11-14T22:13:50.000Z", "nothing"),
        (CUT_MS - MINUTE_MS, None, "until every region server of the master is tracked", "nothing"),
        (None, CUT_MS - 2 * MINUTE_MS, "nothing is kept", "proven from now on"),
    ],
)
def test_what_a_proof_keeps_is_said(until_ms: int | None, coverage_ms: int | None, words: str, others: str) -> None:
    """For which tables and until when; where it does not help the next run, why, and when to run again."""
    header = Header("master", "m", CUT_MS, CUT_MS, coverage_ms=coverage_ms)
    said = kept_words(["a", "b", "c", "d"], until_ms, header)
    assert words in said
    assert others not in said
    assert "4 tables (a, b, c, …)" in said
    assert until_ms is None or "2023-11-14T22:12:20.000Z" in said


def test_another_request_rings_once_the_ring_before_was_heard() -> None:
    bell = _Bell()
    with bell.turn(b"one"):
        pass
    bell.heard(b"other")
    assert bell._left_s(b"one") == 0 < bell._left_s(b"two")
    bell.heard(b"one")
    assert bell._left_s(b"two") <= 0


@pytest.mark.parametrize("drained", [True, False])
def test_rows_that_may_change_are_not_compared_before_streams(monkeypatch: pytest.MonkeyPatch, drained: bool) -> None:
    """Nor is any table compared twice."""
    compared: list[str] = []

    def compare_one(table: str) -> Result:
        compared.append(table)
        return replace(EQUAL, table=table)

    monkeypatch.setattr(RowComparison, "_by_file", lambda *_: _Way(drained, compare_one, lambda _: {}, unknown))
    monkeypatch.setattr(compare_rows, "_recorded", lambda proofs, *_: proofs)
    asked = RowComparison(RowsAsked(None, True), MASTER, QUESTION, (), 0.0, lambda _: None, threading.Event())
    asked.begin()
    assert sorted(compared) == (["a", "b", "c"] if drained else [])
    proofs = asked.proofs(outcome(("b", "gap")))
    assert sorted(compared) == (["a", "b", "c"] if drained else ["a", "c"])
    assert proofs.equal == set(compared)


@pytest.mark.parametrize(
    ("hosts", "is_refused"),
    [
        (["slave,16020,1"], True),
        (["master,16020,1"], False),
        # Its server has died.
        (["dead,16020,1", None, "master,16020,1"], False),
    ],
)
def test_rows_of_another_cluster_than_zookeepers_are_not_the_masters(
    hosts: list[str | None], is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The master's site files may have its Thrift server listen at 0.0.0.0: on the slave's host that is the slave's."""
    looks, clock = itertools.chain(hosts, itertools.repeat(hosts[-1])), itertools.count()

    def open_regions(*_: object) -> Iterator[HostedRegion]:
        if host := next(looks):
            yield HostedRegion("r", b"", b"", host, 1, "replicationstate")

    monkeypatch.setattr("status_tool.sources.meta.open_regions", open_regions)
    monkeypatch.setattr(families, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None))
    site = SiteConfig({"hbase.regionserver.thrift.ipaddress": "0.0.0.0", "hbase.zookeeper.quorum": "master"})
    zookeeper: Any = SimpleNamespace(sync=lambda: None, live_servers=lambda: ["master,16020,1"])
    with nullcontext() if not is_refused else pytest.raises(ConfigurationError, match=r"127\.0\.0\.1:9090 is not that"):
        require_same_cluster(Settings(site), zookeeper)


class Looks:
    """A state table, and what its trackers have described at each look at it."""

    def __init__(self, *looks: list[str], **setting: str) -> None:
        self._looks, self._detail = [*looks], json.dumps({"errors": 0, "settings": setting})

    def __call__(self, *_: object) -> Any:
        return SimpleNamespace(require=lambda: None, put_barrier=lambda: None, descriptors=self._descriptors)

    def _descriptors(self, _barrier: object) -> Any:
        names = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        detail = json.dumps({"families": {"f": family(versions=3), "g": family(versions=3)}})
        tables = [{"table": name, "detail": detail} for name in names]
        return SimpleNamespace(tables=tables, servers=((1, {"server": "rs,1,1", "role": "w", "detail": self._detail}),))


def described(monkeypatch: pytest.MonkeyPatch, looks: Looks, existing: set[str]) -> DescribedCluster:
    """The cluster after these looks, of whose tables `hbase:meta` has `existing`."""
    zookeeper = SimpleNamespace(cluster_id=lambda: "id", live_servers=lambda: ["rs,1,1"])
    clock = itertools.count()
    monkeypatch.setattr(families, "ZooKeeper", lambda _: nullcontext(zookeeper))
    monkeypatch.setattr(families, "StateTable", looks)
    monkeypatch.setattr(families, "require_same_cluster", lambda *_: None)
    monkeypatch.setattr("status_tool.sources.meta.existing", lambda _, tables: existing & {*tables})
    monkeypatch.setattr(families, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None))
    site = SiteConfig({"hbase.regionserver.thrift.ipaddress": "h", "hbase.zookeeper.quorum": "h"})
    return families.describe(Settings(site), ["t", "none"], lambda _: None)


def test_a_table_that_is_yet_to_be_described_is_no_absent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracker describes 500 tables by a request: after the first one, a table of the next did not exist."""
    assert described(monkeypatch, Looks(["a"], ["a", "t"]), {"t"}).tables.keys() == {"a", "t"}
    assert described(monkeypatch, Looks(["a"]), set()).tables.keys() == {"a"}, "of a dropped one nobody waits"
    with pytest.raises(ConnectionFailed, match="has described table t within"):
        described(monkeypatch, Looks(["a"]), {"t"})


@pytest.mark.parametrize("knows", ["tracker", "site"])
def test_the_families_of_peers_that_are_not_known_are_all_compared(knows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer of before that shipped one of them made the rows of the others equal, unread."""
    setting = {PEER_STORAGE_KEY: "filesystem"}
    there = described(monkeypatch, Looks(["t"], **(setting if knows == "tracker" else {})), {"t"})
    if knows == "site":
        there = replace(there, peers_elsewhere=Settings(SiteConfig(setting)).peers_elsewhere)
    before = {"id": "1", "cluster_id": "id", "replicate_all": False, "table_cfs": {"t": ["f"]}}
    monkeypatch.setattr(families, "peer_rows", lambda _: [{"detail": json.dumps(before)}])
    names, notices = families.shipped_families(there, there, "t")
    assert (names, [PEER_STORAGE_KEY in one for one in notices]) == (["f", "g"], [True])
    assert families.shipped_families(replace(there, peers_elsewhere=""), there, "t") == (["f"], ())
