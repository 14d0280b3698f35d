"""Random samples of rows: which ranges are chosen, what FILE has of them, and when one decides against the streams."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from status_tool.cli.running import write_file
from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.digests.digest import Family, Sums
from status_tool.digests.families import Comparable
from status_tool.digests.keys import Interval, TableRange
from status_tool.digests.requests import Sampled
from status_tool.digests.wire import REQUEST_TABLES, Query
from status_tool.errors import ConnectionFailed
from status_tool.gather.snapshot import Request, Snapshot
from status_tool.runs import sampling, slave_side, write
from status_tool.runs.file_digests import digest_row, filed_tables
from status_tool.runs.sampling import PER_REGION, RANGES, Repeated, Taken, _known_families, apart, disprove, picks
from status_tool.runs.write import Written, _samples, _unsampled, write_side
from status_tool.sources import codec
from status_tool.sources.meta import HostedRegion
from status_tool.sources.state_table import Generation, StateTableSource
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.schema import NewRow, Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.states import FactState
from tests.unit.test_evidence_reference import family

CUT_MS, CREATED_MS = 100_000_000, 100_001_000
"""The barrier follows the samples."""
HOUR_MS = 3_600_000
PART = TableRange("t", Interval(b"a", b"k"))
OTHER = TableRange("t", Interval(b"p", b""))
FAMILY = family()
SETTINGS = cast(Settings, None)


def region(table: str, number: int) -> HostedRegion:
    return HostedRegion(f"{table}{number}", b"", b"", "s", 1, table)


def test_every_table_comes_before_a_region_comes_twice() -> None:
    """Small clusters are sampled several times a region, large ones once in some regions; no table is left out."""
    few = picks([region("a", 0), region("b", 0), region("b", 1)], random.Random(1))
    assert Counter(one.encoded for one in few) == {"a0": PER_REGION, "b0": PER_REGION, "b1": PER_REGION}
    many = [region("big", number) for number in range(5_000)] + [region(f"t{number}", 0) for number in range(100)]
    picked = picks(many, random.Random(1))
    assert len(picked) == RANGES
    assert len({one.table for one in picked}) == 101
    assert len({one.encoded for one in picked}) == RANGES
    assert picked != picks(many, random.Random(2))
    crowd = picks([region(f"t{number}", 0) for number in range(3 * REQUEST_TABLES)], random.Random(1))
    assert len({one.table for one in crowd}) == min(RANGES, REQUEST_TABLES)
    assert picks([], random.Random(1)) == []


def test_of_many_regions_some_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ones as if all of them were, whatever the order in which tables come."""
    regions = [region(f"t{number % 7}", number) for number in range(3_000)]
    regions += [region("big", number) for number in range(3_000)] + [region("last", 0)]
    for seed in range(5):
        monkeypatch.setattr(sampling, "_HELD", 100_000)
        whole = picks(iter(regions), random.Random(seed))
        monkeypatch.setattr(sampling, "_HELD", 310)
        assert picks(iter(regions), random.Random(seed)) == whole
        assert "last" in {one.table for one in whole}


def test_no_row_is_counted_twice() -> None:
    """Ranges that overlap one that is kept are left out; those of other tables and those behind it are not."""

    def taken(table: str, start: bytes, stop: bytes) -> Sampled:
        return Sampled(table, Interval(start, stop), Sums())

    whole, inside = taken("t", b"", b""), taken("t", b"c", b"d")
    first, second, third = taken("u", b"a", b"c"), taken("u", b"b", b"x"), taken("u", b"c", b"e")
    assert list(apart([inside, third, second, whole, first, whole])) == [whole, first, third]
    expiring = Sampled("t", Interval(b"", b""), Sums(expiring=1))
    assert list(apart([expiring, inside])) == [inside], "its cells may have gone when the slave is asked"


@pytest.mark.parametrize(
    ("tables", "described", "looks"),
    [
        (["t", "state", "state_rows"], [["t"]], 1),
        (["t", "new"], [["t"], ["t"], ["t", "new"]], 3),
        (["t", "never"], [["t"]], 3),
        (["t"], [["t", "dropped"]], 1),
    ],
)
def test_a_table_that_is_new_is_described_with_a_barrier(
    tables: list[str], described: list[list[str]], looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for, within bounds. The tool's own tables are never described."""
    clock, done, put = itertools.count(), list[dict[str, Any]](), list[bool]()

    def known_families() -> dict[str, Any]:
        done.append({name: {} for name in described[min(len(done), len(described) - 1)]})
        return done[-1]

    client = SimpleNamespace(tables=lambda: [name.encode() for name in tables])
    monkeypatch.setattr(sampling, "connection", lambda _: nullcontext(client))
    state = SimpleNamespace(known_families=known_families, put_barrier=lambda: put.append(True))
    monkeypatch.setattr(sampling, "StateTable", lambda *_: state)
    monkeypatch.setattr(sampling, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: None))
    settings: Any = SimpleNamespace(thrift=lambda: None, state_table="state")
    assert _known_families(settings, 3.0) == done[-1]
    assert (len(done), len(put)) == (looks, int(looks > 1))


def test_the_barrier_comes_after_the_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else a write in between is in a sample and in no head: *differs* although it is not in scope."""
    done = list[str]()

    def sampled(*_: object) -> Taken:
        done.append("samples")
        return Taken()

    def gathered(*_: object) -> Snapshot:
        done.append("barrier")
        raise ConnectionFailed("")

    monkeypatch.setattr(write, "sampled", sampled)
    monkeypatch.setattr(write, "snapshot", gathered)
    with pytest.raises(ConnectionFailed):
        write_side(SETTINGS, Request(MASTER, 0.0, hdfs=False, sample_s=5.0), tmp_path / "f", lambda _: None)
    assert done == ["samples", "barrier"]


def sample(part: TableRange, value: int = 1) -> Row:
    asked = Query({"t": {b"f": Family(1)}}, bytes(16), CUT_MS)
    row = digest_row("sample", part, Sums(value, 3, rows=3), asked, Comparable({b"f": Family(1)}, (), None))
    return cast(Row, row)


def test_samples_need_not_tile_the_table() -> None:
    """Other than `digest` rows."""
    rows = [sample(PART), sample(OTHER)]
    assert set(filed_tables(rows, is_whole=False)["t"].ranges) == {PART.interval, OTHER.interval}
    assert filed_tables(rows) == {}
    assert filed_tables([{**rows[0], "detail": "{}"}], is_whole=False) == {}


_STREAM = {"kind": "stream", "via": 0, "seq": 7}
_SERVER = {"kind": "server", "server": "s", "live": True}


class Slave:
    """Answers what is asked of the slave, and FILE's and its own rows."""

    def __init__(self) -> None:
        self.still_unequal: tuple[TableRange, ...] = (PART,)
        self.asked: list[set[Interval]] = []
        self.shutdown_ms: int | None = None
        self.write_ms: int | None = CUT_MS - 10_000
        self.origin, self.read_ms, self.echoed = 1, CREATED_MS - 500, True
        self.doubted: list[str | None] = []
        self.later: list[str | None] = ["u"]
        self.shipped = {"t": ("f",)}
        self.slave_family = dict(FAMILY)
        self.slave_seq = 7
        self.is_silent = False
        self.loaded: tuple[FactState, int] | None = None
        self.slave_loaded: dict[str, int] = {"master": CREATED_MS, "master,other": CREATED_MS}
        self.written_ms: int | None = None
        self.accepted_drift = frozenset[str]()
        self.accepted_tables: tuple[str, ...] = ("u",)

    def repeat(self, _: object, filed: dict[str, Any], within_s: float) -> Repeated:
        self.asked.append(set(filed["t"].ranges))
        return Repeated(unequal=self.still_unequal)

    def rows(self, *kinds: str) -> list[Row]:
        table = {"kind": "table", "table": "t", "detail": _text({"families": {"f": FAMILY}})}
        rows: list[Any] = [
            {"kind": "region", "table": "t", "region": "r1", "start_key": b"", "end_key": b"m"},
            {"kind": "region", "table": "t", "region": "r2", "start_key": b"m", "end_key": b""},
            {"kind": "region", "table": "u", "region": "r3", "start_key": b"", "end_key": b""},
            {**_STREAM, "table": "t", "region": "r1", "origin": 1, "write_ms": 0},
            {**_STREAM, "table": "t", "region": "r1", "origin": self.origin, "write_ms": self.write_ms},
            {**_STREAM, "table": "u", "region": "r3", "origin": 1, "write_ms": CREATED_MS},
            {**_SERVER, "origin": 1, "role": "w", "echoed": self.echoed, "read_ms": self.read_ms},
            {**_SERVER, "origin": 1, "role": "r", "echoed": True, "read_ms": CREATED_MS},
            sample(PART),
            sample(OTHER),
            table,
        ]
        if self.loaded is not None:
            state, moment = self.loaded
            rows.append({"kind": "fact", "table": "t", "region": "r1", "state": state, "write_ms": moment})
        return [row for row in rows if row["kind"] in kinds]

    def batches(self, kinds: set[str]) -> Iterable[pa.RecordBatch]:
        return codec.batches(cast(list[NewRow], self.rows(*kinds)), 1)

    def now(self) -> tuple[Iterable[Row], Iterable[Row]] | None:
        if self.is_silent:
            return None
        detail = _text({"families": {}, "written_by": self.slave_loaded})
        table = {"kind": "table", "table": "t", "detail": detail}
        segment = {"kind": "segment", "table": "t", "region": "r1", "origin": 1, "via": 0, "seq": self.slave_seq}
        return cast(list[Row], [table]), cast(list[Row], [segment])

    def decide(self) -> Any:
        question: Any = SimpleNamespace(
            master=SimpleNamespace(shutdown_ms=self.shutdown_ms, created_ms=CREATED_MS, cluster_id="master"),
            slave=SimpleNamespace(cluster_id="slave"),
            shipped=self.shipped,
            scope=Scope(accepted_drift=self.accepted_drift),
        )
        groups = [SimpleNamespace(table=table) for table in self.doubted]
        outcome: Any = SimpleNamespace(
            overview=SimpleNamespace(groups=groups),
            seen={"t": {"written_ms": self.written_ms}},
            hbase=SimpleNamespace(
                later=[SimpleNamespace(table=table) for table in self.later], accepted_tables=self.accepted_tables
            ),
        )
        small: Any = [{"kind": "table", "table": "t", "detail": _text({"families": {"f": self.slave_family}})}]
        repeated = Repeated((OTHER,), (PART,), 3)
        file: Any = SimpleNamespace(rows_of=self.rows, rows=self.batches)
        return disprove(SETTINGS, question, outcome, repeated, file, small, self.now)


def _text(document: Any) -> str:
    return json.dumps(document)


@pytest.fixture
def slave(monkeypatch: pytest.MonkeyPatch) -> Slave:
    """One whose rows differ from a sample of a table at rest that the streams prove."""
    slave = Slave()
    monkeypatch.setattr(sampling, "repeat", slave.repeat)
    return slave


def test_a_sample_that_differs_at_rest_decides_against_the_streams(slave: Slave) -> None:
    """Asked again, only what differed; the master's regions that hold it are told."""
    proofs = slave.decide()
    assert slave.asked == [{PART.interval}]
    assert proofs.differing == {"r1"}
    (finding,) = proofs.findings
    assert (finding.code, finding.table, finding.start_key, finding.end_key) == ("differs", "t", b"a", b"k")
    assert "report" in finding.note


@pytest.mark.parametrize(
    "change",
    [
        *({"still_unequal": ()}, {"slave_seq": 8}, {"is_silent": True}, {"written_ms": 1}),
        *(
            {"written_ms": 1, "accepted_drift": {"t"}},
            {"accepted_tables": ("t",)},
            {"write_ms": CUT_MS - 2_500},
            {"write_ms": None},
        ),
        *({"read_ms": CREATED_MS - 8_000}, {"echoed": False}, {"origin": 2}, {"origin": None}),
        *({"loaded": (state, CUT_MS - 10_000)} for state in (FactState.BULK_LOAD, FactState.LOCAL_LOAD)),
        {"slave_loaded": {"master,slave": CUT_MS - HOUR_MS + 1}},
        *({"doubted": ["t"]}, {"doubted": [None]}, {"later": ["t"]}, {"later": [None]}),
        *({"shipped": {"t": ("f", "g")}}, {"shipped": {}}, {"slave_family": {"scope": 1}}),
        *({"slave_family": {**FAMILY, **other}} for other in ({"versions": 0}, {"ttl": 5}, {"keep_deleted": "TRUE"})),
    ],
)
def test_one_that_may_have_another_cause_does_not(slave: Slave, change: dict[str, Any]) -> None:
    """Equal at the second look, perhaps written to since, not proven anyway, or kept otherwise on the slave.

    The newest write may be too late by a clock that is behind, or that nobody knows. A slave that ships a table back
    has it written to by its own clients; so may one of two masters.
    """
    for name, value in change.items():
        setattr(slave, name, value)
    proofs = slave.decide()
    assert (proofs.differing, proofs.findings) == (frozenset(), ())


@pytest.mark.parametrize(
    "change",
    [
        # The clock of the last writer is behind by no more than the time from the token it read to the barrier's end.
        *({"write_ms": CUT_MS - 2_501}, {"read_ms": CREATED_MS - 7_999}),
        # Nor does a split explain it, or what entries brought, which have not passed the slave itself.
        *({"loaded": (FactState.BULK_LOAD, CUT_MS - HOUR_MS)}, {"loaded": (FactState.SPLIT, CUT_MS)}),
        *({"slave_loaded": {"master,slave": CUT_MS - HOUR_MS}}, {"slave_loaded": {"other,slave": CREATED_MS}}),
    ],
)
def test_a_write_or_a_bulk_load_of_long_ago_explains_nothing(slave: Slave, change: dict[str, Any]) -> None:
    for name, value in change.items():
        setattr(slave, name, value)
    assert slave.decide().differing == {"r1"}


def test_a_table_without_streams_is_at_rest(slave: Slave, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose past was accepted: the trackers would have recorded a write."""
    monkeypatch.setattr(slave, "batches", lambda _: [])
    assert slave.decide().differing == {"r1"}


def test_after_a_shutdown_differences_are_told_of_what_is_accepted_as_well(slave: Slave) -> None:
    """Before, others may go on writing, as of two masters, and the past may be on the master alone."""
    slave.written_ms, slave.accepted_drift, slave.accepted_tables = 1, frozenset({"t"}), ("t",)
    assert slave.decide().differing == frozenset()
    slave.shutdown_ms = CUT_MS - 1
    assert slave.decide().differing == {"r1"}


def test_the_notice_counts_what_is_equal_and_names_what_is_not() -> None:
    """Nothing is said where nothing was compared."""
    assert Repeated().notice() is None
    assert Repeated((PART, OTHER), (), 30).notice() == ("30 rows in 2 random ranges of 1 table compared as well: equal")
    notice = str(Repeated((OTHER,), (PART,), 30).notice())
    assert "1 range of t is not as FILE has it" in notice
    assert "--rows=all --master-conf DIR" in notice, "streams leave no doubt"


def test_a_sample_that_differs_where_streams_have_a_gap_agrees_with_it() -> None:
    """It is no riddle then, and nothing explains it away."""
    notice = str(Repeated((OTHER,), (PART,), 30).notice({"t"}))
    assert notice.endswith("; 1 range of t differs, which agrees with what streams lack there")
    other = str(Repeated((), (PART, OTHER), 30).notice({"elsewhere"}))
    assert other.startswith("random ranges compared as well: none is equal; 2 ranges of t are not as FILE has them")


def test_where_nothing_was_compared_whoever_asked_is_told() -> None:
    """With the reason, if there was an error; by default a run is as quiet as before."""
    notice = Repeated(problem="no answer").notice(is_asked=True)
    assert notice == "--sample: none of FILE's random ranges was compared: no answer"
    assert "in time, or FILE's are too old (TTL)" in str(Repeated().notice(is_asked=True))
    assert Repeated(problem="no answer").notice() is None
    equal = Repeated((PART,), (), 3)
    assert equal.notice(is_asked=True) == equal.notice()


@pytest.mark.parametrize("error", ["no answer", ""])
def test_a_master_that_is_not_sampled_says_why_if_asked(
    error: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of those whose trackers do not answer nothing else is told."""

    def taken(*_: object) -> list[NewRow]:
        if error:
            raise ConnectionFailed(error)
        return []

    monkeypatch.setattr(sampling, "_sample", taken)
    request = Request("master", 0.0, sample_s=5.0)
    said = list[str]()
    why = _unsampled(request, _samples(SETTINGS, request, Path("f"), said.append))
    assert said == ["sampling rows"]
    assert why == (error or "no region server has digested one within 5 s, or no table is replicated")
    assert _unsampled(request, Taken([{}])) == _unsampled(replace(request, sample_s=0.0), Taken()) == ""
    assert "JSON has no place" in _unsampled(request, _samples(SETTINGS, request, Path("f.json"), said.append))
    written = Written(Header("master", "m", 2, 1), {}, (), why)
    monkeypatch.setattr("status_tool.cli.running.unasked", lambda *_: None)
    monkeypatch.setattr("status_tool.cli.running.write_side", lambda *_: written)
    for asks, told in ((True, f"status-tool: --sample: FILE holds no samples of rows: {why}\n"), (False, "")):
        write_file(SETTINGS, request, Path("f"), None, False, None, asks_samples=asks)
        assert capsys.readouterr().err == told
    # A name that is not UTF-8.
    write_file(SETTINGS, request, Path("f\udcff"), None, False, None)
    assert capsys.readouterr().out.startswith(r"Wrote f\udcff: the master's status")


@pytest.mark.parametrize("has_kerberos", [False, True])
def test_what_has_arrived_is_read_whoever_may_read_it(has_kerberos: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Kerberos only this process reads the state table: a sample of rows written again was a defect then."""
    segment: NewRow = {"kind": "segment", "table": "t", "region": "r", "origin": 1, "via": 2, "prev": 0, "seq": 5}
    source = StateTableSource(
        ThriftEndpoint("h", 1, principal="hbase/_HOST@R" * has_kerberos), "state", SLAVE, Generation(b"id", b"")
    )
    monkeypatch.setattr(StateTableSource, "read", lambda *_: codec.batches([segment]))
    look = Snapshot(Header(SLAVE, "s", 1, 1), (), (source,))
    monkeypatch.setattr(slave_side, "snapshot", lambda *_: look)
    assert source.is_read_here is has_kerberos
    _, found = slave_side.slave_now(SETTINGS, Request(SLAVE, 0), lambda _: None) or ((), ())
    assert [row["seq"] for row in found] == [5] * len(source.partitions())


def test_a_server_that_does_not_echo_may_have_applied_what_has_no_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Snapshot(Header(SLAVE, "s", 1, 1), (), (), unsettled=("h,1,5",))
    monkeypatch.setattr(slave_side, "snapshot", lambda *_: look)
    assert slave_side.slave_now(SETTINGS, Request(SLAVE, 0), lambda _: None) is None
