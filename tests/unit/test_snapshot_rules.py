"""The rules of `gather.snapshot`: what a run reads in which order, what it waits for, and when it doubts.

The real readers read a small cluster of fakes: tables as Thrift shows them, a ZooKeeper session, and a clock that only
waiting moves. Whatever happens between two reads is an event before one of them, or at a time of that clock.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from status_tool.clients.config import Settings, ZooKeeperEndpoint
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.thrift import Cells
from status_tool.clients.zookeeper import Peer, ZooKeeper
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.gather import snapshot
from status_tool.gather.measured_queues import Measured
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import Request, Snapshot, _hbase, settle
from status_tool.rules.descriptors import TTL_FOREVER
from status_tool.rules.origins import judge_origins
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.rules.peers import parse_peer
from status_tool.rules.settled import settled_before
from status_tool.runs import write
from status_tool.sources import codec, meta, state_table
from status_tool.sources.arrivals import Mark
from status_tool.sources.replication_queues import HFileRefs, Queue, Queues, Wal
from status_tool.sources.state_table import Barrier, StateTable, StateTableSource
from status_tool.sources.wals import Extent
from status_tool.sources.witness_folders import WitnessStores
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.ids import as_hex, origin_id
from status_tool.vocabulary.names import META, PUBLISHED_FAMILY, status_table_of
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.state_rows import (
    BarrierRow,
    ContentRow,
    CoverageRow,
    PrunedRow,
    SegmentRow,
    ServerRow,
    TableEventRow,
    TableRow,
    ToolRow,
    column,
)
from tests.unit.test_queues import PEER, SUMMARY, queue, wal
from tests.unit.test_sources import REGION, int64, meta_row, stored

STATE, STATUS = "replicationstate", "replicationstatus"
SETTINGS = Settings(
    SiteConfig({"hbase.rootdir": "hdfs://nn/hbase"}), thrift_option="thrift:1", webhdfs_option=("http://nn:1",)
)
OLD, OTHER = "rs1,16020,1000", "rs2,16020,1000"
CRASHED = "rs0,16020,1000"
ZK = ZooKeeperEndpoint("zk:2181", "/hbase")
SHIPPING = Peer("1", "zk2:2181:/hbase", True, 500, modified_ms=500, incarnation=7, version=0)
NAMES = {b"b": "barrier", b"o": "servers", b"t": "descriptors", b"n": "events", b"h": "heads", b"s": "segments"}


@dataclass
class Cluster:
    """Tables, a ZooKeeper session, and the clock of the run that reads them."""

    tables: dict[str, dict[bytes, Cells]] = field(default_factory=lambda: {STATE: {}, META: {}})
    live: list[str] = field(default_factory=lambda: [OLD, OTHER])
    known: list[Peer] = field(default_factory=lambda: [SHIPPING])
    queued: list[NewRow] = field(default_factory=lambda: [{"kind": "queue", "detail": json.dumps(SUMMARY)}])
    described: dict[str, str] = field(default_factory=lambda: {"t": "f"})
    """Tables, with their one family."""
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    """By read: what happens before it, once."""
    at: dict[float, Callable[[], None]] = field(default_factory=dict)
    """What happens once so many seconds were waited."""
    reads: list[str] = field(default_factory=list)
    """What was read, in order; the same again only after something else."""
    now: float = 0.0
    flushed: frozenset[int] = frozenset()
    """The servers whose growing files in the spool were left out."""
    endpoint = ZK

    def reading(self, what: str) -> None:
        """Take down a read, and let happen what comes before it."""
        self.before.pop(what, lambda: None)()
        if self.reads[-1:] != [what]:
            self.reads.append(what)

    # The clock.

    def monotonic(self) -> float:
        """Return how many seconds were waited."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Wait: whatever is due meanwhile happens."""
        self.now += max(seconds, 0.5)
        for due in sorted(at for at in self.at if at <= self.now):
            self.at.pop(due)()

    # ZooKeeper.

    def sync(self) -> None:
        """As a session does."""
        self.reading("sync")

    def live_servers(self) -> list[str]:
        """As a session does."""
        self.reading("live")
        return list(self.live)

    def peers(self) -> list[Peer]:
        """As a session does."""
        self.reading("peers")
        return list(self.known)

    def read(self, *_parts: str) -> tuple[bytes, int] | None:
        """No znode of a table is there."""
        return None

    # Thrift.

    def scan(
        self, _endpoint: object, table: str, start: bytes, stop: bytes | None, columns: Sequence[bytes] | None = None
    ) -> Iterator[tuple[bytes, Cells]]:
        """As `clients.thrift` does."""
        if table == META or start[:1] in NAMES:
            self.reading("regions" if table == META else NAMES[start[:1]])
        rows = sorted(self.tables[table].items())
        return iter([(key, dict(cells)) for key, cells in rows if start <= key and (stop is None or key < stop)])

    def get(self, endpoint: object, table: str, row: bytes) -> Cells:
        """As `clients.thrift` does."""
        return dict(self.scan(endpoint, table, row, row + b"\0")).get(row, {})

    def connection(self, _endpoint: object) -> Any:
        """A happybase connection."""
        client = SimpleNamespace(
            tables=lambda: [name.encode() for name in self.tables],
            is_table_enabled=lambda _: True,
            table=lambda name: SimpleNamespace(
                families=lambda: {b"f:": {"time_to_live": TTL_FOREVER}},
                row=lambda key, *_, **__: dict(self.tables[name].get(key, {})),
                rows=lambda keys, **_: [(key, self.tables[name][key]) for key in keys if key in self.tables[name]],
                put=lambda key, cells, timestamp=0: self._put(name, key, cells, timestamp),
            ),
        )
        return contextlib.nullcontext(client)

    def _put(self, table: str, key: bytes, cells: dict[bytes, bytes], timestamp: int) -> None:
        if key == BarrierRow.KEY:
            self.reading("a barrier is put")
        self.tables[table].setdefault(key, {}).update({name: (value, timestamp) for name, value in cells.items()})

    # The trackers.

    def put(self, key: bytes, cells: dict[bytes, bytes]) -> None:
        """Write a row of the state table."""
        self.tables[STATE].setdefault(key, {}).update({column(name): (value, 1) for name, value in cells.items()})

    def track(self, server: str, role: str = "w", **cells: bytes) -> None:
        """Write a server's row; more cells by their names in `ServerRow`."""
        named = {ServerRow.NAME: server.encode()} | {getattr(ServerRow, name): cells[name] for name in cells}
        self.put(codec.server_key(origin_id(server), role), named)

    def echo(self, *servers: str, role: str = "w") -> None:
        """Echo the barrier that stands in the table, and describe tables for it."""
        token = self.tables[STATE][BarrierRow.KEY][column(BarrierRow.TOKEN)][0]
        for server in servers:
            self.track(server, role, ECHO=token)
        for table, family in self.described.items():
            described = json.dumps({"families": {family: {"scope": 1}}}).encode()
            self.put(f"t{table}".encode(), {TableRow.DESCRIPTOR: described, TableRow.ECHO: token})

    def host(self, table: str = "t", state: bytes = b"OPEN", server: str = OLD) -> None:
        """Let the region `REGION` of a table be on a server."""
        name, port, code = server.split(",")
        cells = {"server": f"{name}:{port}".encode(), "serverstartcode": int64(int(code)), "state": state}
        key, found = meta_row(table, {**cells, "seqnumDuringOpen": int64(1)})
        self.tables[META][key] = found

    @property
    def session(self) -> ZooKeeper:
        """The cluster as ZooKeeper."""
        return cast("ZooKeeper", self)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Two live servers with the tracker that echo every barrier at once, a table and a peer; nothing is queued."""
    made = Cluster()
    for module in (state_table, meta):
        monkeypatch.setattr(module, "scan", made.scan)
        monkeypatch.setattr(module, "scan_pages", lambda *place: ([stored(row)] for row in made.scan(*place)))
        monkeypatch.setattr(module, "connection", made.connection)
    monkeypatch.setattr(state_table, "get", made.get)
    monkeypatch.setattr("status_tool.clients.named_table.connection", made.connection)
    monkeypatch.setattr(snapshot, "time", made)
    monkeypatch.setattr(state_table, "LOOKS_AGAIN", 0)

    def queues(*_: object) -> tuple[list[NewRow], list[str]]:
        made.reading("queues")
        return list(made.queued), []

    def spool(_client: object, _folder: str, flushed: set[int]) -> tuple[tuple[bytes, Cells], ...]:
        made.reading("spool")
        made.flushed = frozenset(flushed)
        return ()

    monkeypatch.setattr(snapshot, "queue_rows", queues)
    monkeypatch.setattr(snapshot, "read_spool", spool)
    monkeypatch.setattr(snapshot, "peer_cluster_id", lambda *_: "slave")
    made.track(OLD)
    made.track(OTHER)
    made.host()
    made.before["sync"] = lambda: made.echo(OLD, OTHER)
    return made


def put_barrier(cluster: Cluster) -> tuple[StateTable, Barrier]:
    """The state table, and the barrier of a run; nobody has echoed it."""
    state = StateTable(SETTINGS.thrift(), STATE)
    cluster.before.clear()
    return state, state.put_barrier()


def gathered(cluster: Cluster, side: str = MASTER, **asked: Any) -> Snapshot:
    """What a run has read before the rows that are many."""
    request = Request(side, **({"wait_s": 60.0} | asked))
    empty = Snapshot(Header(side, "cluster", 1, 1), (), ())
    return _hbase(SETTINGS, request, empty, cluster.session, lambda _: None)


def rows_of(found: Snapshot, kind: str) -> list[NewRow]:
    """Rows of one kind."""
    return [row for row in found.rows if row["kind"] == kind]


# Waiting for echoes.


def test_a_live_server_with_the_tracker_is_waited_for_until_it_echoes_in_its_role(cluster: Cluster) -> None:
    """A slave's role proves nothing of the heads that a server wrote."""
    state, barrier = put_barrier(cluster)
    cluster.echo(OLD)
    cluster.at = {2: lambda: cluster.echo(OTHER, role="r"), 5: lambda: cluster.echo(OTHER)}
    assert settle(state, cluster.session, barrier, "w", 60) == [OLD, OTHER]
    assert cluster.now == 5


def test_nobody_is_waited_for_beyond_the_deadline(cluster: Cluster) -> None:
    """The server stays unsettled, which its row says."""
    state, barrier = put_barrier(cluster)
    assert settle(state, cluster.session, barrier, "w", 3) == [OLD, OTHER]
    assert cluster.now == 3


def test_a_server_that_ends_meanwhile_is_not_waited_for(cluster: Cluster) -> None:
    """It will not echo: its end, or the queues, tell of it."""
    state, barrier = put_barrier(cluster)
    cluster.echo(OLD)
    cluster.at = {2: lambda: cluster.live.remove(OTHER)}
    assert settle(state, cluster.session, barrier, "w", 60) == [OLD]


def test_a_server_without_a_row_is_waited_for_only_in_its_first_minute(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tracker writes the first row within seconds; an older server has none."""
    monkeypatch.setattr(snapshot, "now_ms", lambda: 1_000_000)
    for age_ms, waited in ((59_999, 3), (60_000, 0)):
        state, barrier = put_barrier(cluster)
        cluster.echo(OLD, OTHER)
        cluster.live, cluster.now = [OLD, OTHER, f"rs3,16020,{1_000_000 - age_ms}"], 0
        settle(state, cluster.session, barrier, "w", 3)
        assert cluster.now == waited


# The order of reads.


def test_a_master_is_read_so_that_each_read_vouches_for_the_next(cluster: Cluster) -> None:
    """Decisions: barrier, live servers, queues, peers, state table; a server's row before the heads that it covers."""
    found = gathered(cluster)
    list(found.sources[0].read(found.sources[0].partitions()[0]))
    order = ["a barrier is put", "sync", "spool", "servers", "queues", "peers", "heads"]
    last = [len(cluster.reads) - 1 - cluster.reads[::-1].index(one) for one in order]
    assert last == sorted(last), cluster.reads
    # A later look only tells whether a server has come.
    assert last[1] < cluster.reads.index("live") < last[2], cluster.reads
    assert cluster.reads[last[-1] + 1 :][-1] == "barrier", "whether the table is still the same"


def test_a_slave_is_read_so_that_each_read_vouches_for_the_next(cluster: Cluster) -> None:
    """Its regions after the echoes: a region that a server gives away now was in its custody at the barrier."""
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER, role="r")
    found = gathered(cluster, SLAVE)
    list(found.sources[0].read(found.sources[0].partitions()[0]))
    order = ["a barrier is put", "sync", "spool", "servers", "regions", "segments", "events"]
    last = [len(cluster.reads) - 1 - cluster.reads[::-1].index(one) for one in order]
    assert last == sorted(last), cluster.reads
    assert last[1] < cluster.reads.index("live") < last[2], cluster.reads
    assert cluster.reads.index("events") < cluster.reads.index("segments"), "what happened by the barrier"


def test_a_growing_file_is_left_out_only_of_a_server_whose_flush_has_put_it_into_the_table(cluster: Cluster) -> None:
    """A server that has not echoed may have rows nowhere else."""
    cluster.before["sync"] = lambda: cluster.echo(OLD)
    cluster.track(CRASHED)
    gathered(cluster, wait_s=0.0)
    assert cluster.flushed == {origin_id(OLD)}


def test_the_echo_of_a_servers_writes_says_nothing_of_what_it_applied(cluster: Cluster) -> None:
    """Its trackers flush one after the other: a slave's that is killed in between has its last records in a file."""

    def echoed() -> None:
        cluster.echo(OLD, role="r")
        cluster.echo(OTHER)

    cluster.before["sync"] = echoed
    gathered(cluster, SLAVE, wait_s=0.0)
    assert cluster.flushed == {origin_id(OLD)}


def test_a_dump_has_what_servers_have_spooled_of_what_they_applied(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside what is in the table, and although their write-time trackers have flushed: the others need not have."""
    writers, name = (b"c" + bytes([number]) * 8 for number in (1, 2)), f"s{REGION}{as_hex(origin_id(OLD))}{as_hex(0)}"
    stored, spooled = (
        {column(writer): (b"\x01" + b"".join(map(int64, (prev, seq, 1, 2, -1, 3))), seq)}
        for writer, prev, seq in zip(writers, (0, 4), (4, 9), strict=True)
    )
    names = {column(SegmentRow.TABLE): (b"t", 1), column(SegmentRow.FAMILY): (b"f", 1)}

    def spool(_client: object, _folder: str, flushed: Collection[int] = ()) -> tuple[tuple[bytes, Cells], ...]:
        cluster.reading("spool")
        return () if origin_id(OLD) in flushed else ((name.encode(), spooled | names),)

    monkeypatch.setattr(snapshot, "read_spool", spool)
    monkeypatch.setattr(write, "snapshot", lambda *_: gathered(cluster))
    cluster.tables[STATE][name.encode()] = stored | names
    out = io.StringIO()
    write.dump_live(SETTINGS, Request(MASTER, 60), out, lambda _: None)
    rows = [row for row in map(json.loads, out.getvalue().splitlines()) if row["kind"] == "segment"]
    assert [(row["table"], row["prev"], row["seq"]) for row in rows] == [("t", 0, 9)]
    last = [len(cluster.reads) - 1 - cluster.reads[::-1].index(one) for one in ("spool", "segments")]
    assert last == sorted(last), cluster.reads


@pytest.mark.parametrize("read", ["spool", "descriptors"])
def test_the_echo_of_a_later_run_counts_whenever_it_comes(read: str, cluster: Cluster) -> None:
    """That run's barrier has replaced ours, and its descriptors ours, before something is read."""

    def another_run() -> None:
        StateTable(SETTINGS.thrift(), STATE).put_barrier()
        cluster.echo(OLD, OTHER)

    cluster.before[read] = another_run
    found = gathered(cluster)
    assert found.unsettled == ()
    assert [row["table"] for row in rows_of(found, "table")] == ["t"]


# What FILE says of servers, the cut and tables.


def test_servers_are_live_as_of_the_barrier_and_a_live_one_without_a_row_has_no_tracker(cluster: Cluster) -> None:
    """Only rows of the side's own role count, so that one with the other tracker alone has none."""
    cluster.track(CRASHED)
    cluster.live.append("rs3,16020,1000")
    cluster.track("rs3,16020,1000", role="r")
    cluster.before["servers"] = cluster.live.clear  # after the live servers were read
    found = gathered(cluster, wait_s=0.0)
    told = {row["server"]: (row["live"], row["tracked"], row["echoed"]) for row in rows_of(found, "server")}
    assert told == {
        OLD: (True, True, True),
        OTHER: (True, True, True),
        CRASHED: (False, True, False),
        "rs3,16020,1000": (True, False, False),
    }
    assert found.unsettled == ("rs3,16020,1000 runs without the tracker",)


def test_each_side_has_the_coverage_of_its_own_tracker_and_the_cut_of_its_barrier(cluster: Cluster) -> None:
    """With when its state table went back, and since when it has been kept."""
    times = {CoverageRow.START_MS: 3, CoverageRow.SLAVE_START_MS: 4, CoverageRow.BACK_MS: 5, CoverageRow.KEPT_MS: 2}
    cluster.put(CoverageRow.KEY, {name: int64(moment) for name, moment in times.items()})
    for side, covered_ms in ((MASTER, 3), (SLAVE, 4)):
        header = gathered(cluster, side, wait_s=0.0).header
        issued = cluster.tables[STATE][BarrierRow.KEY][column(BarrierRow.ISSUED_MS)][0]
        assert header.cut_ms == header.barrier_issued_ms == int.from_bytes(issued, "big")
        assert (header.coverage_ms, header.state_back_ms, header.state_since_ms) == (covered_ms, 5, 2)


def test_the_cut_is_s_else_the_recorded_shutdown_time_and_neither_where_a_check_follows(cluster: Cluster) -> None:
    """`--follow` covers everything written up to its last look."""
    StateTable(SETTINGS.thrift(), STATE).record_shutdown(900)
    assert gathered(cluster).header.shutdown_ms == 900
    assert gathered(cluster, wait_s=0.0, shutdown_ms=800).header.shutdown_ms == 800
    followed = gathered(cluster, wait_s=0.0, following=True).header
    assert (followed.shutdown_ms, followed.cut_ms) == (None, followed.barrier_issued_ms)


def test_a_shutdown_time_is_replaced_whatever_clock_has_stamped_it(cluster: Cluster) -> None:
    """A region server whose clock is ahead puts it into the future, and HBase shows the newest cell."""
    state, ahead_ms = StateTable(SETTINGS.thrift(), STATE), state_table.now_ms() + 3_600_000
    cluster.tables[STATE][ToolRow.KEY] = {column(ToolRow.SHUTDOWN_MS): (int64(900), ahead_ms)}
    state.clear_shutdown()
    assert cluster.tables[STATE][ToolRow.KEY][column(ToolRow.SHUTDOWN_MS)] == (b"", ahead_ms + 1)
    assert (state.shutdown_ms(), gathered(cluster).header.shutdown_ms) == (None, None)
    state.record_shutdown(950)
    assert cluster.tables[STATE][ToolRow.KEY][column(ToolRow.SHUTDOWN_MS)] == (int64(950), ahead_ms + 2)
    assert gathered(cluster, wait_s=0.0).header.shutdown_ms == 950


def test_a_region_on_its_way_is_waited_for_until_the_deadline(cluster: Cluster) -> None:
    """The balancer raises no alarm."""
    cluster.host(state=b"OPENING")
    cluster.at = {4: cluster.host}
    assert list(gathered(cluster).regions.rows("state")) == [{"state": "hosted"}]
    cluster.host(state=b"OPENING")
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER)
    assert list(gathered(cluster).regions.rows("state")) == [{"state": "unhosted"}]
    assert cluster.now == 64


def test_another_round_waits_for_the_regions_of_the_slave_that_are_still_on_their_way(cluster: Cluster) -> None:
    """`run -i --wait` goes on: what no server had when this round ended may have one in the next."""
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER, role="r")
    cluster.host(state=b"OPENING")
    assert gathered(cluster, SLAVE).in_transition == {"t"}
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER, role="r")
    cluster.host()
    assert not gathered(cluster, SLAVE).in_transition


def test_descriptors_that_follow_the_echoes_are_waited_for_until_the_deadline(cluster: Cluster) -> None:
    """No HBase master was active when the barrier was echoed."""
    tables, cluster.described = cluster.described, {}

    def describe() -> None:
        cluster.described = tables
        cluster.echo()

    cluster.at = {4: describe}
    assert [row["table"] for row in rows_of(gathered(cluster), "table")] == ["t"]
    cluster.described = {}
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER)
    assert not rows_of(gathered(cluster), "table")
    assert cluster.now == 64


def test_a_server_that_comes_while_descriptors_are_waited_for_is_live(cluster: Cluster) -> None:
    """It may have got regions, and is waited for as well."""
    tables, cluster.described, newcomer = cluster.described, {}, "rs3,16020,3000"

    def come() -> None:
        cluster.described = tables
        cluster.live.append(newcomer)
        cluster.echo(newcomer)

    cluster.at = {4: come}
    assert {row["server"]: row["live"] for row in rows_of(gathered(cluster), "server")}[newcomer]


def test_a_server_that_comes_between_two_reads_has_not_crashed(cluster: Cluster) -> None:
    """Its row is there and it was not among the live ones: these are read once more."""
    newcomer = "rs3,16020,3000"

    def come() -> None:
        cluster.live.append(newcomer)
        cluster.track(newcomer)
        cluster.at = {cluster.now + 2: lambda: cluster.echo(newcomer)}

    cluster.before["descriptors"] = come
    found = {row["server"]: row for row in rows_of(gathered(cluster), "server")}
    assert (found[newcomer]["live"], found[newcomer]["echoed"]) == (True, True)


@pytest.mark.parametrize(("side", "role"), [(MASTER, "w"), (SLAVE, "r")])
def test_a_server_that_comes_at_the_very_deadline_has_not_crashed(cluster: Cluster, side: str, role: str) -> None:
    """Nobody waits for it any more: it has not echoed, which another run settles, and its regions are hosted."""
    newcomer = "rs3,16020,3000"

    def come() -> None:
        cluster.live.append(newcomer)
        cluster.track(newcomer, role)
        cluster.host(server=newcomer)

    cluster.before |= {"sync": lambda: cluster.echo(OLD, OTHER, role=role), "descriptors": come}
    found = gathered(cluster, side, wait_s=0.0)
    (row,) = (row for row in rows_of(found, "server") if row["server"] == newcomer)
    assert (row["live"], row["echoed"]) == (True, False)
    assert found.unsettled == (f"{newcomer} has not flushed past the cut",)
    assert not found.in_transition
    assert cluster.now == 0
    if side == MASTER:
        (reason,) = (one.reason for one in judge_origins(rows_of(found, "server"), found.header) if one.reason)
        assert reason == "has not flushed past the cut"


@pytest.mark.parametrize(("side", "role"), [(MASTER, "w"), (SLAVE, "r")])
def test_a_server_that_regions_are_opened_on_after_the_echoes_is_waited_for(
    cluster: Cluster, side: str, role: str
) -> None:
    """A rolling restart: a region moves to a server that came after the look at the live ones."""
    newcomer = "rs3,16020,3000"

    def come() -> None:
        cluster.live.append(newcomer)
        cluster.track(newcomer, role)
        cluster.host(server=newcomer)
        cluster.at = {cluster.now + 2: lambda: cluster.echo(newcomer, role=role)}

    cluster.before |= {"sync": lambda: cluster.echo(OLD, OTHER, role=role), "regions": come}
    found = gathered(cluster, side)
    servers = {row["server"]: row for row in rows_of(found, "server")}
    assert (servers[newcomer]["live"], servers[newcomer]["echoed"]) == (True, True)
    assert not found.unsettled
    if side == MASTER:
        assert list(found.regions.rows("state")) == [{"state": "hosted"}]
    assert cluster.now < 10


@pytest.mark.parametrize("tables", [{STATE: {}}, {STATE: {}, STATUS: {}}, {STATE: {}, f"{STATE}_rows": {}}])
def test_descriptors_that_nobody_writes_are_not_waited_for(tables: dict[str, dict[bytes, Cells]]) -> None:
    """There is no table but the tool's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_table, "connection", Cluster(tables).connection)
        assert not StateTable(SETTINGS.thrift(), STATE).has_others()
        patch.setattr(state_table, "connection", Cluster({**tables, "t": {}}).connection)
        assert StateTable(SETTINGS.thrift(), STATE).has_others()


def test_descriptors_are_not_waited_for_where_no_tracker_echoes(cluster: Cluster) -> None:
    """Trackers that are away describe nothing."""
    cluster.live = []
    cluster.tables[META].clear()
    cluster.before["sync"] = lambda: None
    assert not rows_of(gathered(cluster), "table")
    assert cluster.now == 0


def test_a_slave_names_all_its_tables_and_what_happened_to_them_whatever_is_asked_for(cluster: Cluster) -> None:
    """A table that is filtered out must not look missing. The clusters that the slave ships to are not queried."""
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER, role="r")
    cluster.tables |= {"t": {}, "other": {}}
    cluster.described["other"] = "f"
    cluster.put(b"nt", {TableEventRow.BORN_MS: int64(6)})
    StateTable(SETTINGS.thrift(), STATE).record_kept("master", {"t": {"until_ms": 3}})
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(snapshot, "peer_cluster_id")
        found = gathered(cluster, SLAVE, only=TableFilter.of(["t"], []))
    tables = {row["table"]: json.loads(row["detail"]) for row in rows_of(found, "table")}
    assert tables["other"]["families"] == {"f": {"scope": 1}}
    assert (tables["t"]["born_ms"], tables["t"]["proven"]) == (6, {"master": {"until_ms": 3}})
    assert tables["t"]["regions"] == 1
    assert [row["name"] for row in rows_of(found, "peer")] == ["1"]


def test_a_master_has_the_tables_that_are_asked_for_with_what_bypassed_the_wal_and_never_its_own(
    cluster: Cluster,
) -> None:
    """The table of published status files is written for every run, so that it never arrives in whole."""
    cluster.described |= {"other": "f", status_table_of(STATE): PUBLISHED_FAMILY}
    cluster.put(b"nt", {TableEventRow.SKIPPED_MS: int64(6), TableEventRow.ARRIVED_MS: int64(5)})
    cluster.put(b"pt", {PrunedRow.WRITTEN_MS + bytes(16): int64(4)})
    for table in ("t", status_table_of(STATE)):
        cluster.host(table)
    for asked, told in (([], ["other", "t"]), (["t"], ["t"])):
        cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER)
        found = gathered(cluster, only=TableFilter.of(asked, []))
        tables = {row["table"]: json.loads(row["detail"]) for row in rows_of(found, "table")}
        assert sorted(tables) == told
        assert tables["t"] == {"families": {"f": {"scope": 1}}, "skipped_ms": 6, "pruned": [["00" * 16, 4]]}
        assert found.header.status_table == status_table_of(STATE)
        assert list(found.regions.rows("table")) == [{"table": "t"}]


def test_rows_that_are_many_are_held_against_what_was_read_before_them(cluster: Cluster) -> None:
    """Regions that a master no longer has, those of a slave that nobody vouches for; a table that is another one."""

    def facts(found: Snapshot) -> set[tuple[str, str]]:
        rows = (row for batch in read_all(found.sources[0]) for row in batch.to_pylist())
        return {(row["region"], row["state"]) for row in rows if row["kind"] == "fact"}

    gone, tenure = "f" * 32, b'{"o":1,"t":5,"s":9,"r":["f"],"a":{},"b":{"f":[1,2,0,0]}}'
    held = {ContentRow.TENURE + int64(origin_id(CRASHED)) + int64(5): tenure, ContentRow.TABLE: b"t"}
    for region in (gone, REGION):
        cluster.put(f"f{region}".encode(), held)
    cluster.put(b"nt", {TableEventRow.ARRIVED_MS: int64(5)})
    assert facts(gathered(cluster)) == {(gone, "content")}
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER, role="r")
    slave = gathered(cluster, SLAVE)
    assert facts(slave) == {(REGION, "unattended")}
    cluster.put(b"nt", {TableEventRow.BORN_MS: int64(9)})
    with pytest.raises(ConnectionFailed, match="may have been emptied"):
        facts(slave)
    cluster.before["queues"] = cluster.tables[STATE].clear
    with pytest.raises(ConnectionFailed, match="lost its rows"):
        facts(gathered(cluster, wait_s=0.0))


def test_by_when_the_barrier_was_read_tell_the_clocks_of_the_servers(cluster: Cluster) -> None:
    """That of the tool's host may be minutes behind theirs."""
    later_ms = state_table.now_ms() + 600_000
    cluster.track(OTHER, READ_MS=int64(later_ms))
    (source,) = gathered(cluster).sources
    assert isinstance(source, StateTableSource)
    assert source.existing is not None
    assert (source.existing.until_ms, {*source.existing.barriers}) == (later_ms, {origin_id(OTHER)})
    cluster.before["sync"] = lambda: cluster.echo(OLD, OTHER, role="r")
    cluster.track(OLD, "r", READ_MS=int64(later_ms))
    (source,) = gathered(cluster, SLAVE).sources
    assert isinstance(source, StateTableSource)
    assert source.keeping.read_ms == later_ms


# Queues of crashed servers.


def backlog(cluster: Cluster, *peers: str) -> None:
    """Let the server `CRASHED` have left something in the queues of peers."""
    cluster.track(CRASHED)
    cluster.queued[1:] = [queue(OLD, f"{peer}-{CRASHED}", wal(CRASHED), dead=(CRASHED,)) for peer in peers]


def test_drained_queues_are_waited_for_before_the_barrier(cluster: Cluster) -> None:
    """So that everything else is read in its order after it. Those of a live server hold something all the time."""
    backlog(cluster, "1")
    cluster.at = {7: lambda: cluster.queued.__delitem__(slice(1, None))}
    gathered(cluster, drained=True)
    assert cluster.now == 7
    assert cluster.reads.index("queues") < cluster.reads.index("a barrier is put")
    backlog(cluster, "1")
    cluster.live.append(CRASHED)
    cluster.before["sync"] = lambda: cluster.echo(*cluster.live)
    gathered(cluster, drained=True)
    assert cluster.now == 7


@pytest.mark.parametrize(("peer_id", "waited"), [(None, ["1"]), ("1", ["1"]), ("2", ["2"])])
def test_only_queues_of_enabled_peers_are_waited_for_or_of_the_one_that_is_named(
    cluster: Cluster, peer_id: str | None, waited: list[str]
) -> None:
    """Those of a disabled peer never drain. Of one that is not there, nothing would be waited for."""
    cluster.known.append(replace(SHIPPING, id="2", enabled=False))
    for peer in ("1", "2"):
        backlog(cluster, peer)
        cluster.now, cluster.before["sync"] = 0, lambda: cluster.echo(OLD, OTHER)
        gathered(cluster, drained=True, peer_id=peer_id, wait_s=3.0)
        assert (cluster.now > 0) == (peer in waited)
    with pytest.raises(ConfigurationError, match="no peer '3'"):
        gathered(cluster, drained=True, peer_id="3")


def test_servers_may_echo_although_the_queues_took_all_of_the_time(cluster: Cluster) -> None:
    """Or FILE would prove nothing of any server, only because one has left a backlog."""
    backlog(cluster, "1")
    cluster.before["sync"] = lambda: cluster.at.update({cluster.now + 2: lambda: cluster.echo(OLD, OTHER)})
    assert gathered(cluster, drained=True, wait_s=20.0).unsettled == ()
    assert 22 <= cluster.now < 25


def test_what_the_queues_prove_of_a_crashed_server_is_written_down(cluster: Cluster) -> None:
    """After the next change of the peer it would be in doubt. FILE has the queues, too."""
    cluster.track(CRASHED)
    cluster.known = [replace(SHIPPING, created_ms=-40_000, modified_ms=-40_000)]
    assert rows_of(gathered(cluster), "queue") == cluster.queued
    (row,) = (row for row in rows_of(gathered(cluster, wait_s=0.0), "server") if row["server"] == CRASHED)
    assert settled_before(row, {**PEER, "incarnation": 7}) is not None


def test_nothing_is_written_down_of_peers_that_are_not_in_zookeeper(cluster: Cluster) -> None:
    """The filters of before would vouch for tables that the queues were not for, also once the peers have come back."""
    cluster.track(CRASHED)
    elsewhere = json.dumps({"settings": {"hbase.replication.peer.storage.impl": "filesystem"}}).encode()
    cluster.track(OLD, HEALTH=elsewhere)
    cluster.known = [replace(SHIPPING, created_ms=-40_000, modified_ms=-40_000)]
    gathered(cluster)
    (row,) = (row for row in rows_of(gathered(cluster, wait_s=0.0), "server") if row["server"] == CRASHED)
    assert settled_before(row, {**PEER, "incarnation": 7}) is None


# Witnesses.


def measured(position: int, length: int | None = 100, holder: str = OLD) -> Measured:
    """The queue of a server with one WAL, shipped up to a position."""
    one = Wal(f"{holder}.5", position)
    queues = Queues((Queue(holder, True, "1", (one,)),), (), True)
    return Measured(1, queues, {one.name: Extent("/wal", length)}, frozenset())


def moved(look: Measured) -> Measured:
    """One during which the queues changed."""
    return replace(look, queues=replace(look.queues, consistent=False))


def loaded(look: Measured) -> Measured:
    """One in which a file of a bulk load is to be shipped."""
    return replace(look, queues=replace(look.queues, hfile_refs=(HFileRefs("1", 0, ("file",)),)))


@pytest.mark.parametrize(
    "looks",
    [
        # The WAL grows all the time: what was there at the first look counts.
        [measured(0), measured(60, 200), measured(100, 300)],
        # Nobody knew its length at the first look, so the next one counts.
        [measured(0, None), measured(150, 200), measured(200, 300)],
        # A queue has gone, as that of a crashed server once it is drained: what is there now counts.
        [measured(0), measured(0, holder=OTHER), measured(100, holder=OTHER)],
        # The queues moved during the first look.
        [moved(measured(0)), measured(60), measured(100)],
        # A family that is not replicated was loaded into: the file stays listed, and a witness takes none.
        [loaded(measured(0)), loaded(measured(100))],
    ],
)
def test_a_witness_is_asked_once_it_was_sent_what_was_in_a_wal(
    cluster: Cluster, looks: list[Measured], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the positions of its queues, which HBase moves after the witness has written what it acknowledges."""
    left = list(looks)
    monkeypatch.setattr(snapshot, "measure", lambda *_: left.pop(0))
    assert snapshot._why_not_shipped(SETTINGS, cluster.session, "1", 60) == ""
    assert left == []
    monkeypatch.setattr(snapshot, "measure", lambda *_: measured(60))
    cluster.now = 0
    assert "40 bytes" in snapshot._why_not_shipped(SETTINGS, cluster.session, "1", 3)
    assert cluster.now == 3


STORES = WitnessStores("witness", {"one": Path("one"), "two": Path("two")})


def witness_peer(**other: Any) -> Peer:
    """The peer of the witnesses with the folders of `STORES`."""
    return replace(SHIPPING, id="w", cluster_key="zk3:2181:/witness", cluster_id="witness", **other)


@pytest.mark.parametrize(
    ("peers", "told"),
    [
        ([], "no peer"),
        ([witness_peer(), replace(witness_peer(), id="x")], "more than one peer"),
        ([replace(witness_peer(), cluster_key="custom")], "more than one peer"),
    ],
)
def test_a_witness_of_no_peer_or_of_several_is_refused(peers: list[Peer], told: str) -> None:
    """Nobody knows then which entries it was sent."""
    rows: list[NewRow] = [{"detail": peer.to_json()} for peer in peers]
    with pytest.raises(ConfigurationError, match=told):
        snapshot._peer_of(STORES, rows, ZK)


@pytest.mark.parametrize(
    ("znodes", "told"),
    [
        ({"one": b"h:1 2 30", "two": b"h:1 1 5"}, None),
        ({"one": b"h:1 2 30", "two": b"h:1 1 5", "three": b"h:1 1 5"}, "does not name three"),
        ({"one": b"h:1 2 30", "two": b"h:1 1 5", "mistyped": b"h:1 0 0"}, None),
        ({"one": b"h:1 2 30"}, "does not say how much"),
        ({"one": b"h:1 2 30", "two": b"?"}, "does not say how much"),
        (None, "does not say how much"),
    ],
)
def test_every_folder_that_the_witness_has_had_is_read_as_far_as_it_has_acknowledged(
    znodes: dict[str, bytes] | None, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was sent a part of the entries, and one that was restored from a backup has less."""
    found = znodes or {}
    session = SimpleNamespace(
        sync=lambda: None,
        children=lambda *_: list(found),
        read=lambda *parts: (found[parts[1]], 7) if len(parts) == 2 else None if znodes is None else (b"", 8),
    )
    monkeypatch.setattr(snapshot, "ZooKeeper", lambda _: contextlib.nullcontext(session))
    with pytest.raises(ConfigurationError, match=told) if told else contextlib.nullcontext():
        marks, since_ms = snapshot._acknowledged(STORES, json.loads(witness_peer().to_json()), ZK)
        unused = dict.fromkeys(found.keys() - STORES.places.keys(), Mark())
        assert (marks, since_ms) == ({"one": Mark(2, 30), "two": Mark(1, 5), **unused}, 8)


@pytest.mark.parametrize("when", ["", "before the wait", "during the wait"])
def test_a_witness_beside_trackers_is_in_doubt_if_its_peer_changes_while_file_is_written(
    cluster: Cluster, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer that ships less empties its queues, and the witness lacks what was in them."""
    monkeypatch.setattr(snapshot, "peer_cluster_id", lambda peer, _: peer.cluster_id)
    monkeypatch.setattr(snapshot, "witness_stores", lambda *_: STORES)
    monkeypatch.setattr(snapshot, "_acknowledged", lambda *_: ({"one": Mark(), "two": Mark()}, 0))
    cluster.known = [witness_peer()]
    before = gathered(cluster)

    def change(now: str) -> str:
        if when == now:
            cluster.known = [witness_peer(version=1)]
        return ""

    change("before the wait")
    monkeypatch.setattr(snapshot, "_why_not_shipped", lambda *_: change("during the wait"))
    found = snapshot._beside_trackers(SETTINGS, Request(MASTER, 0), before, cluster.session, lambda _: None)
    assert ("was changed" in (found.header.unwitnessed or "")) == bool(when)


def test_a_witness_is_in_doubt_if_its_masters_peers_may_be_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without trackers only the site files tell that the filters in ZooKeeper may be those of before."""
    monkeypatch.setattr(snapshot, "peer_cluster_id", lambda peer, _: peer.cluster_id)
    monkeypatch.setattr(snapshot, "witness_stores", lambda *_: STORES)
    monkeypatch.setattr(snapshot, "_acknowledged", lambda *_: ({"one": Mark(), "two": Mark()}, 0))
    monkeypatch.setattr(snapshot, "_why_not_shipped", lambda *_: "")
    cluster.known = [witness_peer()]
    cluster.before.clear()
    for storage, is_told in (("filesystem", True), ("ZooKeeper", False), ("", False)):
        site = SiteConfig({"hbase.replication.peer.storage.impl": storage})
        asked = snapshot._ask_witnesses(Settings(site), Request(MASTER, 0), cluster.session, lambda _: None)
        assert ("peer.storage.impl is filesystem" in asked.why) == is_told


@pytest.mark.parametrize(
    ("live", "is_tracked"), [([OLD], True), ([CRASHED], False), ([CRASHED, OLD], True), ([f"new,16020,{10**15}"], True)]
)
def test_a_witness_takes_the_place_of_trackers_only_where_no_live_server_has_one(
    cluster: Cluster, live: list[str], is_tracked: bool
) -> None:
    """One alone sees less: where some trackers are away, it is asked beside the others."""
    cluster.live = live
    assert snapshot._is_tracked(SETTINGS, cluster.session) == is_tracked
    cluster.tables[STATE].clear()
    cluster.track(OLD, role="r")
    assert not snapshot._is_tracked(SETTINGS, cluster.session)


def test_a_master_without_trackers_is_read_so_that_each_read_vouches_for_the_next(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cut before the first look at the queues, the marks after the wait, and the peers after the queues."""

    def noted(name: str, value: Any) -> Callable[..., Any]:
        def read(*_: object) -> Any:
            cluster.reading(name)
            return value

        return read

    monkeypatch.setattr(snapshot, "witness_stores", lambda *_: STORES)
    monkeypatch.setattr(snapshot, "peer_cluster_id", lambda peer, _: peer.cluster_id)
    monkeypatch.setattr(snapshot, "now_ms", noted("the cut", 10**6))
    monkeypatch.setattr(snapshot, "_why_not_shipped", noted("shipped", ""))
    monkeypatch.setattr(snapshot, "_acknowledged", noted("marks", ({"one": Mark(), "two": Mark()}, 700)))
    monkeypatch.setattr(snapshot, "_tables", lambda *_: iter(()))
    cluster.known, cluster.before = [witness_peer()], {}
    empty = Snapshot(Header(MASTER, "cluster", 1, 1), (), ())

    def header() -> Header:
        return snapshot._witnessed(SETTINGS, Request(MASTER, 0), empty, cluster.session, lambda _: None).header

    found = header()
    order = ["the cut", "sync", "shipped", "marks", "queues", "peers"]
    last = [len(cluster.reads) - 1 - cluster.reads[::-1].index(one) for one in order]
    assert last == sorted(last), cluster.reads
    assert (found.coverage_ms, found.unwitnessed) == (500 + REFRESHED_MS, "")
    cluster.before["queues"] = lambda: setattr(cluster, "known", [witness_peer(version=1)])
    assert "was changed" in header().unwitnessed


@pytest.mark.parametrize("drops", [True, False])
def test_servers_of_a_master_without_trackers_drop_loads_if_its_site_files_say_so(drops: bool) -> None:
    """Then no load counts as shipped."""
    settings = Settings(SiteConfig({"hbase.replication.drop.on.deleted.columnfamily": str(drops).lower()}))
    (row,) = snapshot._as_servers_ship(settings, [{"kind": "peer", "detail": SHIPPING.to_json()}])
    assert parse_peer(row["detail"])["drops_loads"] is drops


def test_the_marks_of_prunings_are_read_after_the_generation(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pruning that these reads could miss shows as a newer announcement."""
    monkeypatch.setitem(NAMES, b"p", "marks")
    gathered(cluster)
    assert cluster.reads[cluster.reads.index("spool") :][:2] == ["spool", "barrier"], cluster.reads
    assert "marks" in cluster.reads


def test_a_region_that_was_split_before_it_knew_of_a_raised_scope(cluster: Cluster) -> None:
    """`hbase:meta` still names it, and it never opens with the new descriptor."""
    tenure = b'{"o":1,"t":5,"s":9,"c":9,"r":[],"a":{},"b":{"f":[1,2,0,0]}}'
    cluster.host(state=b"SPLIT")
    key = ContentRow.TENURE + int64(origin_id(OLD)) + int64(5)
    cluster.put(f"f{REGION}".encode(), {key: tenure, ContentRow.TABLE: b"t"})
    rows = (row for batch in read_all(gathered(cluster).sources[0]) for row in batch.to_pylist())
    assert [(row["region"], row["state"]) for row in rows if row["kind"] == "fact"] == [(REGION, "changed")]
