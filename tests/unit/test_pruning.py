"""Which rows of the state table `prune` drops, which it must not, and what a verdict says of what was dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pytest

from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.thrift import Cells
from status_tool.clients.zookeeper import Peer
from status_tool.errors import ConfigurationError, ConnectionFailed, StatusFileError, StatusToolError, UsageError
from status_tool.rules.pruning import (
    Applied,
    Target,
    doubtful_ends,
    is_over,
    marks_of,
    prunable_heads,
    prunable_segments,
    prunable_servers,
    prunable_sinks,
    unproven_ms,
)
from status_tool.rules.queue_proofs import known_writers
from status_tool.rules.segments import Segment
from status_tool.rules.server_settings import SINGLE_ENTRIES
from status_tool.runs import prune_rows as pruner
from status_tool.runs.question import refuse_pruned
from status_tool.sources import codec, state_table
from status_tool.sources.state_table import StateTable, StateTableSource, now_ms
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import as_hex
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.state_rows import column
from status_tool.vocabulary.verdicts import Verdict
from tests.judgement import verify_rows
from tests.simulation.store import Store
from tests.unit.test_evidence_reference import MASTER, OURS, SLAVE, THEIRS, check, described
from tests.unit.test_sources import int64, read_by

MASTER_ID = "00000000-0000-4000-8000-000000000001"
ONE, OTHER = "00000000-0000-4000-8000-000000000002", "00000000-0000-4000-8000-000000000003"
ONE_BYTES, OTHER_BYTES = (b"\0\0\0\0\0\0\x40\0\x80" + bytes(6) + bytes([end]) for end in (2, 3))
PEER: dict[str, Any] = {"id": "1", "cluster_id": ONE, "incarnation": 7, "version": 3}
SECOND: dict[str, Any] = {"id": "2", "cluster_id": OTHER, "incarnation": 8, "replicate_all": False, "table_cfs": {}}
GONE, LIVES = 1, 2


def head(origin: int, seq: int = 10, write_ms: int = 100, **more: Any) -> dict[str, Any]:
    base = {"region": "a1", "origin": origin, "via": 0, "via_ids": None, "table": "t", "seq": seq}
    return {**base, "write_ms": write_ms, **more}


def target(*segments: Segment, peer: dict[str, Any] = PEER, origin: int = GONE) -> Target:
    key = ("a1", origin, 0)
    return Target(peer["cluster_id"], (peer,), {key: segments})


def dropped(heads: Sequence[dict[str, Any]], *targets: Target) -> list[tuple[int, bytes]]:
    return [(row["origin"], ids) for row, ids in prunable_heads(heads, {GONE}, targets)]


NEWEST = head(LIVES, write_ms=900)
ALL = Segment(0, 10)


@pytest.mark.parametrize(
    ("heads", "targets"),
    [
        pytest.param([head(GONE), NEWEST], [target(Segment(0, 9))], id="behind"),
        pytest.param([head(GONE), NEWEST], [target(Segment(0, 4), Segment(6, 10))], id="a hole"),
        pytest.param([head(GONE), NEWEST], [target(Segment(4, 10))], id="its beginning is missing"),
        pytest.param([head(GONE), NEWEST], [target(ALL, origin=9)], id="another stream"),
        pytest.param([head(GONE), NEWEST], [], id="no slave"),
        pytest.param([head(3), NEWEST], [target(ALL, origin=3)], id="a server that is not over"),
        pytest.param([head(GONE)], [target(ALL)], id="the only head of its region"),
        pytest.param([head(GONE, write_ms=901), NEWEST], [target(ALL)], id="the head that was written last"),
        pytest.param([head(GONE, table=None), NEWEST], [target(ALL)], id="no table"),
        pytest.param([head(GONE, seq=0), NEWEST], [target(ALL)], id="damaged"),
        pytest.param(
            [head(GONE), NEWEST],
            [target(ALL), target(peer={**SECOND, "table_cfs": {"t": []}})],
            id="another slave does not have it",
        ),
    ],
)
def test_heads_that_stay(heads: list[dict[str, Any]], targets: list[Target]) -> None:
    """Whatever a slave is not known to have whole stays in scope for ever; so is something of every region."""
    assert dropped(heads, *targets) == []


def test_heads_that_go_with_those_who_have_them() -> None:
    """All slaves that the table is shipped to, and those that are never sent the entries."""
    heads = [head(GONE), NEWEST]
    assert dropped(heads, target(ALL)) == [(GONE, ONE_BYTES)]
    assert dropped(heads, target(Segment(0, 4), Segment(3, 12))) == [(GONE, ONE_BYTES)]
    shipped = {**SECOND, "table_cfs": {"t": []}}
    assert dropped(heads, target(ALL), target(ALL, peer=shipped)) == [(GONE, ONE_BYTES + OTHER_BYTES)]
    assert dropped(heads, target(ALL), target(peer=SECOND)) == [(GONE, ONE_BYTES)], (
        "not shipped to it, not proven for it"
    )
    through = head(GONE, via=5, via_ids=ONE_BYTES)
    assert dropped([through, NEWEST], target()) == [(GONE, ONE_BYTES)], "HBase sends nothing back"
    other_region = head(GONE, region="b2")
    assert dropped([head(GONE), NEWEST, other_region], target(ALL)) == [(GONE, ONE_BYTES)], "each region keeps one"


def test_rows_by_which_a_doubt_about_a_crashed_server_is_known_stay() -> None:
    """Of its last entry, which was replayed, nobody knows where it has gone: without them nobody would ask."""
    heads, tails = [head(GONE), NEWEST], {("a1", GONE): 12}
    assert doubtful_ends(tails, {("a1", 10), ("b2", 12)}) == {("a1", GONE)}
    assert doubtful_ends(tails, {("a1", 12)}, {("a1", 10)}) == {("a1", GONE)}, "one slave does not have it"
    assert doubtful_ends(tails, {("a1", 12)}) == doubtful_ends(tails) == set()
    assert list(prunable_heads(heads, {GONE}, [target(ALL)], {("a1", GONE)})) == []
    assert list(prunable_heads(heads, {GONE}, [target(ALL)], {("b2", GONE), ("a1", LIVES)})) != []
    whole, newest = Applied(("a1", GONE, 0), (ALL,), 5), Applied(("a1", LIVES, 0), (ALL,), 9)
    assert list(prunable_segments([whole, newest], set(), {GONE}, {("a1", GONE)})) == []
    assert list(prunable_segments([whole, newest], set(), {GONE}, {("a1", LIVES)})) == [whole]


def test_marks_are_by_table_and_clusters_and_know_the_latest_write() -> None:
    pruned = [(head(1, write_ms=5), b"x"), (head(2, write_ms=9), b"x"), (head(2, write_ms=3, table="u"), b"x")]
    assert marks_of(pruned) == {("t", b"x"): 9, ("u", b"x"): 3}


@pytest.mark.parametrize(
    ("marks", "slave", "until"),
    [
        ([], ONE, None),
        ([[ONE_BYTES.hex(), 9]], ONE, None),
        ([[ONE_BYTES.hex(), 9]], OTHER, 9),
        ([[ONE_BYTES.hex(), 9], [(ONE_BYTES + OTHER_BYTES).hex(), 12]], OTHER, 9),
        ([["", 9]], ONE, 9),
        ([[ONE_BYTES.hex(), 9]], "not an id", 9),
        ([["zz", 9]], ONE, 1 << 60),
        ([[ONE_BYTES.hex()[:-2], 9]], ONE, 1 << 60),
        ([[ONE_BYTES.hex(), "9"]], ONE, 1 << 60),
        ({"a": 1}, ONE, 1 << 60),
        ("x", ONE, 1 << 60),
    ],
)
def test_until_when_something_unproven_was_written(marks: Any, slave: str, until: int | None) -> None:
    """A mark that cannot be parsed vouches for nobody."""
    assert unproven_ms(marks, slave) == until


def test_a_verdict_on_a_slave_that_was_not_proven_to_have_what_is_pruned() -> None:
    """Never complete there; where it was proven nothing changes, and the printed --since accepts it."""

    def judged(ids: bytes, since_ms: int | None = None) -> Any:
        ours = described(OURS, pruned=[[ids.hex(), 25_000]])
        return check(ours, scope=Scope(check_hdfs=False, since=Baseline(since_ms)))

    assert SLAVE.cluster_id == ONE
    assert judged(ONE_BYTES).verdict is Verdict.COMPLETE
    doubtful = judged(OTHER_BYTES)
    assert (doubtful.verdict, doubtful.problems[0].code) == (Verdict.UNVERIFIABLE, "pruned")
    assert doubtful.problems[0].written_to_ms == 25_000
    assert "--since" in str(doubtful.problems[0].advice)
    assert judged(OTHER_BYTES, 24_999).verdict is Verdict.UNVERIFIABLE
    assert judged(OTHER_BYTES, 25_000).verdict is Verdict.COMPLETE


@pytest.mark.parametrize(("created_ms", "codes"), [(55_000, {"pruned"}), (55_001, set())])
def test_what_was_pruned_of_a_table_that_was_dropped_is_not_asked_of_its_successor(
    created_ms: int, codes: set[str]
) -> None:
    """Which has the same name. It is younger than that by more than clocks differ."""
    ours = [{**row, "region_id": created_ms} if row["kind"] == "region" else row for row in OURS]
    outcome = check(described(ours, pruned=[[OTHER_BYTES.hex(), 25_000]]))
    assert {problem.code for problem in outcome.problems} == codes


@pytest.mark.parametrize(("pruned", "lost"), [(False, False), (True, True)])
def test_a_slave_whose_state_table_went_back_before_the_table_was_created(pruned: bool, lost: bool) -> None:
    """It may have held, and lost, what was pruned: a FILE2 from before that proved that it had arrived."""
    marks = {"pruned": [[ONE_BYTES.hex(), 25_000]]} if pruned else {}
    since = dict.fromkeys(("born_ms", "first_born_ms", "arrived_ms"), 105_001)
    ours, theirs = described(OURS, **marks), described(THEIRS, **since)
    outcome = verify_rows(ours, theirs, MASTER, replace(SLAVE, state_back_ms=45_000), Scope(check_hdfs=False))
    assert [problem.code for problem in outcome.problems] == ["slave-state-lost"] * lost


# --- servers ------------------------------------------------------------------------------------


def server(origin: int = 1, **more: Any) -> dict[str, Any]:
    base = {"origin": origin, "server": f"h{origin},1,1", "role": "w", "live": False, "final_ms": 100, "gone_ms": None}
    return {**base, "detail": "{}", **more}


PROOF = json.dumps({"settled": {"1": {"incarnation": 7, "at_ms": 150, "filter": {}}}})


@pytest.mark.parametrize(
    ("row", "over"),
    [
        (server(), True),
        (server(final_ms=200), False),
        (server(live=True), False),
        (server(role="r"), False),
        (server(final_ms=None, gone_ms=100), False),
        (server(final_ms=None, gone_ms=100, detail=PROOF), True),
        (server(final_ms=None, gone_ms=200, detail=PROOF), False),
        (server(final_ms=None, detail=PROOF), False),
        (server(final_ms=None, gone_ms=100, detail=PROOF.replace("7", "6")), False),
    ],
)
def test_a_server_is_over_when_nothing_of_it_can_come(row: dict[str, Any], over: bool) -> None:
    """A crash only if the queues have settled it, as it was written down, for every peer."""
    assert is_over(row, [PEER], 200) is over
    assert not is_over(server(final_ms=None, gone_ms=100, detail=PROOF), [PEER, SECOND], 200)


def spans(first: int, last: int, since_ms: int, **more: Any) -> str:
    return json.dumps({"peers": {"1": [7, first, last, since_ms, last]}, **more})


def test_rows_of_servers_that_go() -> None:
    """Ended cleanly and long ago, without doubts, unused, and telling nothing of peers that others do not."""

    def going(*rows: dict[str, Any], used: set[int] | None = None) -> list[int]:
        return [row["origin"] for row in prunable_servers(rows, used or set(), [PEER], 200)]

    assert going(server()) == [1]
    assert going(server(), used={1}) == []
    assert going(server(final_ms=None, gone_ms=100, detail=PROOF)) == [], "it may have written what no head shows"
    assert going(server(detail='{"errors": 1}')) == []
    assert going(server(detail="?")) == []
    old = server(1, detail=spans(3, 3, 50))
    assert going(old) == []
    assert going(old, server(2, detail=spans(3, 4, 60)), used={2}) == [], "nobody else knows it for so long"
    assert going(old, server(2, detail=spans(4, 5, 40)), used={2}) == []
    assert going(old, server(2, detail=spans(2, 3, 40)), used={2}) == [1]
    assert going(old, server(2, detail=spans(3, 3, 50))) == [1], "one of two that are alike stays"
    assert going(server(1, detail=spans(3, 3, 50).replace("[7", "[6"))) == [1], "of an incarnation that is no more"


def test_what_servers_applied_is_told_by_the_living() -> None:
    rows = [server(1, role="r"), server(2, role="r", final_ms=300), server(3, role="r", final_ms=None, gone_ms=100)]
    rows += [server(4, role="r", live=True), server(5, role="r", final_ms=None), server(6)]
    rows += [server(7, role="r", gone_ms=300)]
    assert [row["origin"] for row in prunable_sinks(rows, 200)] == [1, 3]


def test_the_last_sink_that_did_not_record_each_entry_stays() -> None:
    """Without its row a witness would expect records of entries from before its end, and call it an error."""
    each = json.dumps({"settings": {SINGLE_ENTRIES: "all"}})
    old = [server(1, role="r", final_ms=50), server(2, role="r", final_ms=60), server(3, role="r", final_ms=55)]
    ended = server(4, role="r", final_ms=70, detail=each)
    assert [row["origin"] for row in prunable_sinks([*old, ended], 200)] == [1, 3, 4]
    assert [row["origin"] for row in prunable_sinks(old, 200)] == [1, 2, 3]


@pytest.mark.parametrize("role", ["w", "r"])
def test_servers_with_errors_or_whose_settings_may_have_dropped_cells_stay(role: str) -> None:
    """A verdict goes by them until what they wrote or applied is accepted."""
    detail = json.dumps({"settings": {"hbase.replication.sink.service": "com.x.Sink"}})
    rows = [server(1, role=role, detail=detail), server(2, role=role), server(3, role=role, detail='{"errors": 1}')]
    gone = prunable_sinks(rows, 200) if role == "r" else prunable_servers(rows, (), (), 200)
    assert [row["origin"] for row in gone] == [2]


def test_sinks_whose_clock_was_set_back_stay() -> None:
    """By their rows events of the slave are out of order, however old they are."""
    rows = [server(1, role="r", detail='{"clock_back_ms": 40}'), server(2, role="r")]
    assert [row["origin"] for row in prunable_sinks(rows, 200)] == [2]


def test_servers_with_wals_stay_known() -> None:
    """Queued, archived or not split yet; nothing is known where one of these is not."""
    queue = {"peer": "1", "dead_servers": ["c,1,1"], "wals": [{"server": "d,1,1"}]}
    rows = [{"kind": "queue", "server": "b,1,1", "name": "1-c,1,1", "detail": json.dumps(queue)}]
    summary = {"consistent": True, "unsplit": ["e,1,1"], "writers": {"f,1,1": {"opened_ms": 1, "modified_ms": 2}}}

    def known(**more: Any) -> set[str] | None:
        return known_writers([*rows, {"kind": "queue", "name": None, "detail": json.dumps({**summary, **more})}])

    assert known() == {f"{name},1,1" for name in "bcdef"}
    assert known(consistent=False) is None
    assert known(unsplit=None) is None
    assert known(writers=None) is None
    assert known_writers(rows) is None


# --- segments -----------------------------------------------------------------------------------


def test_segments_that_go_and_stay() -> None:
    """Those of a server that is over, whole, without a head on the master; the newest write of a region stays."""

    def applied(origin: int, *parts: Segment, region: str = "a1", newest: int = 5) -> Applied:
        return Applied((region, origin, 0), parts, newest)

    kept = applied(GONE, ALL, newest=9)
    whole = applied(1, Segment(0, 4), Segment(4, 9))
    assert list(prunable_segments([whole, kept], set(), {1})) == [whole]
    assert list(prunable_segments([whole], set(), {1})) == [], "the only one of its region"
    assert list(prunable_segments([whole, kept], {whole.key}, {1})) == []
    assert list(prunable_segments([whole, kept], set(), {2})) == [], "of another master, or alive"
    for doubtful in (applied(1, Segment(0, 4), Segment(6, 9)), applied(1, Segment(2, 9)), applied(1)):
        assert list(prunable_segments([doubtful, kept], set(), {1})) == []
    elsewhere = applied(1, ALL, region="b2")
    assert list(prunable_segments([whole, kept, elsewhere], set(), {1})) == [whole]


def test_a_file_from_before_the_pruning_is_refused() -> None:
    """It asks for segments that were dropped: a new one is needed, and said so."""
    slave = Header("slave", ONE, 9, 9, pruned={MASTER_ID: 100})
    scope = Scope(check_hdfs=False)
    refuse_pruned(Header("master", MASTER_ID, 200, 200, barrier_issued_ms=100), slave, scope)
    refuse_pruned(Header("master", OTHER, 50, 50, barrier_issued_ms=50), slave, scope)
    refuse_pruned(Header("master", MASTER_ID, 99, 99, barrier_issued_ms=99), slave, Scope(check_hbase=False))
    for barrier_ms in (99, None):
        with pytest.raises(StatusFileError, match=r"write a new FILE \(`run -m -o FILE`\)"):
            refuse_pruned(Header("master", MASTER_ID, 99, 99, barrier_issued_ms=barrier_ms), slave, scope)


# --- a whole run, on a table in memory ----------------------------------------------------------


class Table(StateTable):
    """A state table in memory; `steps` has the order of what was done to it."""

    def __init__(self, store: Store) -> None:
        super().__init__(ThriftEndpoint("h", 1), "t")
        self.store = store
        self.steps: list[str] = []

    def require(self) -> None:
        """It is there."""

    def mark_pruned(self, marks: Any) -> None:
        """Announced, too."""
        self.steps.append(f"mark {sorted(marks)}")

    def note_pruned_by(self, cluster_id: str, barrier_ms: int) -> None:
        """By which FILE."""
        self.steps.append(f"note {cluster_id[-1]} {barrier_ms}")

    def delete(self, rows: Any) -> None:
        """Up to a version."""
        for key, newest in rows:
            origin, role = (key[1:17], key[17:]) if key[:1] == b"o" else (key[-32:-16], b"")
            self.steps.append(f"delete {key[:1].decode()}{int(origin, 16)}{role.decode()} {newest}")
            self.store.delete(key, newest)


class Zoo:
    """ZooKeeper."""

    peers_here: tuple[Peer, ...] = ()
    id_here = MASTER_ID

    def __init__(self, endpoint: Any) -> None:
        self.endpoint = endpoint

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def cluster_id(self) -> str:
        """Of this cluster."""
        return self.id_here

    def live_servers(self) -> list[str]:
        """One."""
        return ["live,1,1"]


def cells(timestamp: int, **values: bytes) -> Cells:
    return {column(name.encode()): (value, timestamp) for name, value in values.items()}


def stream_key(kind: str, region: str, origin: int) -> bytes:
    return f"{kind}{region}{as_hex(origin)}{as_hex(0)}".encode()


OLD = 1_000_000
REGION = "a" * 32


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Table:
    """A cluster with one server that lives (2) and one that ended long ago (1); two heads and two rows of segments."""
    table = Table(Store(clock=10))
    rows: dict[bytes, Cells] = {b"b": cells(1, k=b"token")}
    for origin, name, ended in ((1, b"gone,1,1", {"z": int64(OLD)}), (2, b"live,1,1", {})):
        for role in "wr":
            rows[f"o{as_hex(origin)}{role}".encode()] = cells(7, n=name, q=b"{}", **ended)
        rows[stream_key("h", REGION, origin)] = cells(10, s=int64(10), w=int64(OLD * origin), t=b"t")
        writer = b"c" + bytes(8)
        value = b"\x01" + b"".join(int64(n) for n in (0, 10, 1, 2, -1, 3))
        rows[stream_key("s", REGION, origin)] = {
            column(writer): (value, 40),
            **cells(30 + origin, r=int64(30 + origin)),
        }
    table.store.rows.update(rows)

    def scanned(_endpoint: object, _table: str, start: bytes, stop: bytes) -> Iterator[tuple[bytes, Cells]]:
        return iter(table.store.scan(start, stop))

    summary = {"consistent": True, "unsplit": [], "writers": {}}
    queued: tuple[list[dict[str, Any]], list[str]] = (
        [{"kind": "queue", "name": None, "detail": json.dumps(summary)}],
        [],
    )
    for module in (pruner, state_table):
        monkeypatch.setattr(module, "scan", scanned)
    monkeypatch.setattr(pruner, "StateTable", lambda *_: table)
    monkeypatch.setattr(pruner, "ZooKeeper", Zoo)
    monkeypatch.setattr(pruner, "queue_rows", lambda *_: queued)
    monkeypatch.setattr(pruner, "peer_rows", lambda _: peers(PEER))
    return table


def peers(*facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"kind": "peer", "name": peer["id"], "detail": json.dumps(peer)} for peer in facts]


def written(path: Path, header: Header, rows: list[dict[str, Any]]) -> Path:
    with StatusWriter(path, header) as writer:
        for row in sorted(rows, key=lambda row: str(row["kind"])):
            writer.write(pa.RecordBatch.from_pylist([row], schema=STATUS_SCHEMA))
    return path


def slave_file(path: Path, cluster_id: str = ONE, origins: Sequence[int] = (1, 2)) -> Path:
    stream = {"table": "t", "region": REGION, "via": 0, "prev": 0, "seq": 10}
    return written(
        path, Header("slave", cluster_id, 5, 5), [{"kind": "segment", "origin": one, **stream} for one in origins]
    )


def master_file(
    path: Path,
    origins: Sequence[int] = (2,),
    leading: Sequence[dict[str, Any]] = (PEER,),
    more_rows: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Path:
    header = Header("master", MASTER_ID, 5, 5, **{"barrier_issued_ms": OLD * 1000, **more})
    rows: list[dict[str, Any]] = [*peers(*leading), *more_rows]
    rows += [{"kind": "stream", "table": "t", "region": REGION, "origin": one, "via": 0, "seq": 10} for one in origins]
    rows.append({"kind": "server", **{k: v for k, v in server(1).items() if k != "detail"}})
    return written(path, header, rows)


def run(*files: Path, dry_run: bool = False) -> pruner.Pruned:
    settings = Settings(SiteConfig({}), "h:1", (), "h:2/hbase")
    return pruner.prune_rows(settings, pruner.PruneRequest(files, 1000, dry_run))


def test_on_a_master(here: Table, tmp_path: Path) -> None:
    """Marked, then deleted up to what was read. The server's row waits until no slave has segments of it."""
    done = run(slave_file(tmp_path / "one"))
    assert here.steps == [f"mark {[('t', ONE_BYTES)]}", "delete h1 10", "delete o1r 7"]
    assert (done.dropped, done.rows) == ({"heads": 1, "servers": 1}, {"heads": 2, "servers": 4})
    here.steps.clear()
    run(slave_file(tmp_path / "two", origins=[2]))
    assert here.steps == ["delete o1w 7"]
    assert [key for key in here.store.rows if key[:1] == b"o"] == [f"o{as_hex(2)}{role}".encode() for role in "wr"]


def test_a_slaves_file_of_some_tables_does_not_say_which_servers_it_has_segments_of(
    here: Table, tmp_path: Path
) -> None:
    """Those of other tables are not in it."""
    del here.store.rows[stream_key("h", REGION, 1)]
    done = run(written(tmp_path / "narrow", Header("slave", ONE, 5, 5, tables=("u",)), []))
    assert (done.dropped["servers"], here.steps) == (1, ["delete o1r 7"])
    assert "without --table" in done.notices[0]
    run(slave_file(tmp_path / "two", origins=[2]))
    assert here.steps == ["delete o1r 7", "delete o1w 7"]


@pytest.mark.parametrize(("last", "stays"), [(12, True), (10, False)])
def test_what_a_doubt_about_a_crashed_server_goes_by_stays(
    here: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int, stays: bool
) -> None:
    """Its last entry was replayed, and nobody knows it (`lost-tail`): of a server without any, nobody would ask."""
    writer = f"o{as_hex(1)}w".encode()
    here.store.rows[writer] = cells(7, n=b"gone,1,1", q=b"{}", x=int64(OLD), f=int64(OLD - 1)) | {
        column(b"d1"): (json.dumps({"incarnation": 7, "at_ms": OLD, "filter": {}}).encode(), 7)
    }
    files = {"a": {"f": [0, 0, 0, 0]}, "b": {"f": [0, 0, 0, 0]}, "r": ["f"]}
    here.store.rows[f"f{REGION}".encode()] = {
        column(b"k" + int64(origin) + int64(began)): (json.dumps({"o": o, "t": began, "s": o, **files}).encode(), 7)
        for origin, began, o in ((1, 1, 2), (2, OLD, last + 1))
    } | cells(7, t=b"t")
    run(slave_file(tmp_path / "one"))
    assert ("delete h1 10" in here.steps) is not stays

    monkeypatch.setattr(Zoo, "id_here", ONE)
    monkeypatch.setattr(pruner, "peer_rows", lambda _: [])
    here.steps.clear()
    tail = {"kind": "fact", "table": "t", "region": REGION, "state": "tail", "origin": 1, "seq": last}
    run(master_file(tmp_path / "master", more_rows=[tail]))
    assert ("delete s1 40" in here.steps) is not stays


def test_what_comes_after_the_head_was_read_stays(here: Table, tmp_path: Path) -> None:
    """Deletes without a version would hide a spooled head: its timestamp is a sequence id, long before now."""
    run(slave_file(tmp_path / "one"))
    key = stream_key("h", REGION, 1)
    assert key not in here.store.rows
    here.store.apply([(key, cells(11, s=int64(11)))])
    assert codec.number(here.store.rows[key], b"s") == 11


@dataclass
class Looks:
    """Reads of a run on a state table in memory, in their order; the same again only after something else."""

    table: Table
    done: list[str] = field(default_factory=list)
    after: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By read: what happens right after it, once."""

    def note(self, what: str) -> None:
        """Take down a read."""
        if self.done[-1:] != [what]:
            self.done.append(what)
        self.after.pop(what, lambda: None)()


@pytest.fixture
def looks(here: Table, monkeypatch: pytest.MonkeyPatch) -> Looks:
    """A cluster of which the reads are taken down."""
    made = Looks(here)
    queued, peer, live = vars(pruner)["queue_rows"], vars(pruner)["peer_rows"], Zoo.live_servers
    names = {b"o": "servers", b"h": "heads", b"s": "segments", b"f": "contents"}

    def scanned(_endpoint: object, _table: str, start: bytes, stop: bytes) -> Iterator[tuple[bytes, Cells]]:
        rows = here.store.scan(start, stop)
        made.note(names[start[:1]])
        return iter(rows)

    def noted(what: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*given: Any) -> Any:
            found = read(*given)
            made.note(what)
            return found

        return reading

    monkeypatch.setattr(pruner, "scan", scanned)
    monkeypatch.setattr(pruner, "queue_rows", noted("queues", queued))
    monkeypatch.setattr(pruner, "peer_rows", noted("peers", peer))
    monkeypatch.setattr(Zoo, "live_servers", noted("live", live))
    return made


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_master_is_read_so_that_each_read_vouches_for_the_next(looks: Looks, tmp_path: Path, dry_run: bool) -> None:
    """Peers, rows of servers, heads, and, where any goes, contents; servers whose heads are gone by then; queues.

    What has ended by its row has all its heads in the table, and a server without a WAL has none in a queue either.
    """
    run(slave_file(tmp_path / "one"), dry_run=dry_run)
    servers = ["servers", "live"]
    heads = ["heads", "contents", "heads"]
    assert looks.done == [*servers, "peers", *servers, *heads, *servers, "queues"]


def test_a_slave_is_read_so_that_each_read_vouches_for_the_next(
    looks: Looks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FILE says who has ended by its barrier; the slave's own heads come after their servers' rows."""
    monkeypatch.setattr(Zoo, "id_here", ONE)
    monkeypatch.setattr(pruner, "peer_rows", lambda _: [])
    run(master_file(tmp_path / "master"))
    servers = ["servers", "live"]
    assert looks.done == [*servers, "segments", *servers, "heads", *servers, "queues"]


def test_a_server_that_ends_after_its_row_was_read_keeps_its_heads(looks: Looks, tmp_path: Path) -> None:
    """Its last ones may come into the table right after the read of those before: then nobody judges by these."""
    rows, key = looks.table.store.rows, f"o{as_hex(1)}w".encode()
    ended = rows[key].pop(column(b"z"))
    looks.after["heads"] = lambda: rows[key].update({column(b"z"): ended})
    run(slave_file(tmp_path / "one"))
    assert not [step for step in looks.table.steps if step.startswith(("mark", "delete h"))]


@pytest.mark.parametrize("read", ["servers", "queues"])
def test_what_is_written_into_a_servers_row_after_it_was_read_stays(looks: Looks, tmp_path: Path, read: str) -> None:
    """As a proof of another run: the row is deleted up to what was judged."""
    key = f"o{as_hex(1)}w".encode()
    del looks.table.store.rows[stream_key("h", REGION, 1)]

    def written_on() -> None:
        looks.table.store.apply([(key, cells(8, d=b"newer"))])

    # The last read of all, which is judged: those before it decide about heads alone.
    looks.after["heads"] = lambda: looks.after.update({read: written_on})
    run(slave_file(tmp_path / "two", origins=[2]))
    assert looks.table.steps == ["delete o1r 7", "delete o1w 7"]
    assert looks.table.store.rows[key] == cells(8, d=b"newer")


def test_a_dry_run_does_nothing(here: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It only counts."""
    done = run(slave_file(tmp_path / "one"), dry_run=True)
    assert (done.dropped, here.steps) == ({"heads": 1, "servers": 1}, [])
    monkeypatch.setattr(Zoo, "id_here", ONE)
    done = run(master_file(tmp_path / "master"), dry_run=True)
    assert (done.dropped["segments"], here.steps) == (1, [])


def test_on_a_slave(here: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noted, then deleted; heads that came from the master go as well, for they are never sent back."""
    monkeypatch.setattr(Zoo, "id_here", ONE)
    monkeypatch.setattr(pruner, "peer_rows", lambda _: [])
    key = stream_key("h", REGION, 1)
    master_bytes = ONE_BYTES[:-1] + b"\x01"
    here.store.apply([(key, cells(10, v=master_bytes))])
    run(master_file(tmp_path / "master"))
    assert here.steps == [
        *(f"note 1 {OLD * 1000}", "mark []", "delete s1 40"),
        *(f"mark {[('t', master_bytes)]}", "delete h1 10"),
        *("delete o1r 7", "delete o1w 7"),
    ]


def test_on_a_slave_to_which_two_peers_lead(here: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing more may come by either; one that leads elsewhere does not matter, and one has to lead here."""
    monkeypatch.setattr(Zoo, "id_here", ONE)
    run(master_file(tmp_path / "two", leading=[PEER, {**PEER, "id": "2"}, SECOND]), dry_run=True)
    with pytest.raises(StatusFileError, match="does not replicate to this one"):
        run(master_file(tmp_path / "none", leading=[SECOND]), dry_run=True)


def test_one_file_does_not_tell_of_two_slaves_that_have_one_cluster_id(
    here: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where one was made of a copy of the other's HDFS: a head that the one has whole the other may lack."""
    clones = [{**PEER, "cluster_key": "z1:2181:/hbase"}, {**PEER, "id": "2", "cluster_key": "z2:2181:/hbase"}]
    monkeypatch.setattr(pruner, "peer_rows", lambda _: peers(*clones))
    first = slave_file(tmp_path / "one")
    with pytest.raises(UsageError, match=r"peers 1, 2 lead to .*0002 by 2 addresses"):
        run(first)
    assert here.steps == []
    lacking = written(tmp_path / "two", Header("slave", ONE, 5, 5, cluster_key="z2:2181:/hbase"), [])
    assert "heads" not in {kind for kind, count in run(first, lacking).dropped.items() if count}
    monkeypatch.setattr(pruner, "peer_rows", lambda _: peers(clones[0], {**clones[0], "id": "2"}))
    assert run(first).dropped["heads"] == 1, "two peers lead to one slave"


def test_a_slave_that_has_other_slaves_keeps_its_heads(
    here: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are for pruning as a master, by what those have."""
    monkeypatch.setattr(Zoo, "id_here", ONE)
    monkeypatch.setattr(pruner, "peer_rows", lambda _: peers({**PEER, "cluster_id": OTHER}))
    here.store.apply([(stream_key("h", REGION, 1), cells(10, v=ONE_BYTES[:-1] + b"\x01"))])
    run(master_file(tmp_path / "master"))
    assert not [step for step in here.steps if step.startswith("delete h")]


def test_segments_that_the_master_asks_for_stay(here: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Zoo, "id_here", ONE)
    run(master_file(tmp_path / "master", origins=[1, 2]))
    assert not [step for step in here.steps if not step.startswith("delete o")]


@pytest.mark.parametrize(
    ("files", "error", "said"),
    [
        ((), UsageError, r"peer 1 leads to .*0002.*run -o FILE2"),
        (("other",), StatusFileError, "no peer of this cluster leads"),
        (("master", "one"), UsageError, "by one master's FILE"),
        (("filtered",), StatusFileError, "without --table"),
        (("hdfs",), StatusFileError, "no streams"),
        (("ahead",), StatusFileError, "ahead of this host's clock: set right the clock"),
    ],
)
def test_files_that_prove_nothing_here_are_refused(
    here: Table, tmp_path: Path, files: Sequence[str], error: type[StatusToolError], said: str
) -> None:
    slave_file(tmp_path / "one")
    slave_file(tmp_path / "other", OTHER)
    master_file(tmp_path / "master")
    master_file(tmp_path / "filtered", tables=("t",))
    written(tmp_path / "hdfs", Header("slave", ONE, 5, 5, half="hdfs"), [])
    # Once it has pruned, each FILE with an earlier time is refused.
    master_file(tmp_path / "ahead", barrier_issued_ms=now_ms() + 60_000)
    with pytest.raises(error, match=said):
        run(*(tmp_path / name for name in files))
    assert here.steps == []


@pytest.mark.parametrize("is_tracked", [True, False])
def test_where_the_peers_are_not_in_zookeeper_nothing_goes(here: Table, tmp_path: Path, is_tracked: bool) -> None:
    """Its peers are those of before, and a slave that one in the file system leads to may need every row."""
    key = "hbase.replication.peer.storage.impl"
    if is_tracked:
        detail = json.dumps({"settings": {key: "filesystem"}}).encode()
        here.store.rows[f"o{as_hex(2)}w".encode()][column(b"q")] = (detail, 7)
    site = SiteConfig({} if is_tracked else {key: "filesystem"})
    settings = Settings(site, "h:1", (), "h:2/hbase")
    for file in (slave_file(tmp_path / "one"), master_file(tmp_path / "master")):
        with pytest.raises(ConfigurationError, match="peers are not known"):
            pruner.prune_rows(settings, pruner.PruneRequest((file,), 1000))
    assert here.steps == []


def test_a_table_that_is_pruned_while_it_is_read_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The marks were read before, so that the heads that went since would be missed by nobody."""
    rows: dict[bytes, Cells] = {b"b": {b"t:i": (b"table", 1), b"t:p": (b"first", 1)}}
    read_by(monkeypatch, rows)
    table = StateTable(ThriftEndpoint("h", 1), "t")
    rows[b"pns:t"] = {b"t:w" + ONE_BYTES: (int64(9), 9)}
    rows[b"d"] = {b"t:p" + MASTER_ID.encode(): (int64(8), 8), b"t:s": (int64(7), 7)}
    small = table.descriptors(state_table.Barrier(0, set()))
    assert (small.generation.pruning, small.pruned) == (b"first", {"ns:t": [[ONE_BYTES.hex(), 9]]})
    assert (small.pruned_files, small.shutdown_ms) == ({MASTER_ID: 8}, 7)
    source = StateTableSource(ThriftEndpoint("h", 1), "t", "h", expected=small.generation)
    assert list(source.read(source.partitions()[0])) == []
    rows[b"b"][b"t:p"] = (b"second", 2)
    with pytest.raises(ConnectionFailed, match="was pruned while it was read"):
        list(source.read(source.partitions()[0]))
