"""One side of a verification, gathered from a live cluster: a header, small rows, parallel sources."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from status_tool import __version__
from status_tool.clients.config import HdfsClient, Settings, ZooKeeperEndpoint
from status_tool.clients.thrift import Cells
from status_tool.clients.webhdfs import Load, WebHdfs
from status_tool.clients.zookeeper import ZooKeeper, content, parse_cluster_key, peer_cluster_id
from status_tool.errors import ConfigurationError, ConnectionFailed, UsageError
from status_tool.gather.hdfs_side import (
    exclusions_of,
    files_endpoint,
    identity_of,
    mounts_that_lead,
    own_endpoint,
    paths_of,
    without_users_folder,
)
from status_tool.gather.measured_queues import measure, queue_rows
from status_tool.gather.queue_backlog import has_lengths, has_same_queues, has_shipped_wals, why_not_shipped
from status_tool.printable import counted
from status_tool.rules.custody import survey
from status_tool.rules.descriptors import retention_of
from status_tool.rules.origins import barriers_of, read_by_ms
from status_tool.rules.peers import PeerFacts, parse_peer
from status_tool.rules.queue_proofs import has_crashed, newly_settled, start_code, undrained_servers
from status_tool.rules.server_settings import peers_elsewhere
from status_tool.rules.sides import LOCAL_POOL, own_status_table
from status_tool.rules.tables import replicated_families
from status_tool.rules.witnessed import covered_since
from status_tool.sources import codec, meta
from status_tool.sources.arrivals import Mark, WitnessSource
from status_tool.sources.crc import Layout
from status_tool.sources.hdfs_files import HdfsSource
from status_tool.sources.interface import Source
from status_tool.sources.local import LocalSource
from status_tool.sources.spool import read_spool
from status_tool.sources.state_table import (
    Barrier,
    Descriptors,
    StateTable,
    StateTableSource,
    now_ms,
)
from status_tool.sources.table_files import table_rows
from status_tool.sources.witness_folders import WitnessPlace, WitnessStores, witness_stores
from status_tool.vocabulary.header import BY_OPTION, MASTER, RECORDED, SLAVE, Header
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.names import DROPS_LOADS_KEY, plain_name
from status_tool.vocabulary.schema import STATUS_SCHEMA, NewRow, Row
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.selection import LOCAL, Exclusions, by_system, inside, plain_folder, plain_path, root_of
from status_tool.vocabulary.state_rows import REPLICATOR, WRITER, ContentRow, FactRow, HeadRow, SegmentRow, UnstampedRow
from status_tool.vocabulary.states import FactState, RegionState
from status_tool.vocabulary.verdicts import Evidence

ROLES = {MASTER: WRITER, SLAVE: REPLICATOR}
TYPES = {
    MASTER: HeadRow.TYPE + FactRow.TYPE + ContentRow.TYPE,
    SLAVE: SegmentRow.TYPE + UnstampedRow.TYPE + ContentRow.TYPE,
}
LEAST_SETTLE_S = 5.0
"""Time that is left to trackers to flush, whatever was waited for before; they poll the barrier about once a second."""
ECHO_POLL_S = 0.05
"""At least; as long as the look before took, where servers or regions are many."""
DRAIN_POLL_S = 1.0
NEWCOMER_MS = 60_000
"""A tracker writes its first row within seconds; an older server without a row runs without a tracker."""

FOLLOWING = (
    "following: everything written on the master up to the last look at it is in scope, also after a shutdown time"
)

Spooled = tuple[tuple[bytes, Cells], ...]


@dataclass(frozen=True)
class FileOptions:
    """Options for the reading of files."""

    load: Load = field(default_factory=Load)
    exclude: tuple[str, ...] = ()
    deep: bool = False
    """True if every file's content is read."""
    deep_local: bool = False
    """True if every local file's CRC32C is computed: the file is read for its checksum anyway."""
    journal: str | None = None
    client: HdfsClient = HdfsClient.AUTO
    layout: Layout | None = None
    """The layout for which HDFS's checksum of local files is computed; None: HDFS's default."""
    for_hdfs: tuple[str, ...] = ()
    """Options of the command line that have no effect on local files."""


@dataclass(frozen=True)
class Request:
    """Scope and options of what is gathered from one side."""

    side: str
    wait_s: float
    only: TableFilter = field(default_factory=TableFilter)
    hbase: bool = True
    hdfs: bool = True
    hdfs_paths: tuple[str, ...] = ()
    """From `-f` or the master's file; empty: the configured ones."""
    shutdown_ms: int | None = None
    """`-s`."""
    following: bool = False
    """True if everything up to now is in scope, regardless of a recorded shutdown time, whose clock is
    another host's."""
    files: FileOptions = field(default_factory=FileOptions)
    drained: bool = False
    """True to wait, within `wait_s`, until the queues of crashed servers are drained, too."""
    peer_id: str | None = None
    """The peer whose queues are meant; None: every enabled peer."""
    rows: str = ""
    """`--rows`: of which tables row digests are written, `doubtful` or `all`; empty: of none."""
    witnesses: tuple[WitnessPlace, ...] = ()
    """`--witness`: the folders from which the master's streams are read, instead of its state table."""
    copies: Path = Path()
    """Where those of running witnesses are copied to; removed by whoever made it."""
    witnessed: codec.Witnessed | None = None
    """For a slave: what such a FILE knows."""
    sample_s: float = 0.0
    """`--sample`: how long random samples of rows are taken at most; 0: none."""


@dataclass(frozen=True)
class PackedRows(Source):
    """Rows that have to be kept although they may be many: compressed, a fiftieth of what they are as dictionaries."""

    packed: bytes

    @classmethod
    def of(cls, rows: Iterable[NewRow]) -> PackedRows:
        """Pack all rows of the iterable."""
        packed = pa.BufferOutputStream()
        with pa.ipc.new_stream(packed, STATUS_SCHEMA, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            for batch in codec.batches(rows):
                stream.write_batch(batch)
        return cls(packed.getvalue().to_pybytes())

    def partitions(self) -> Sequence[int]:
        """Return a single part."""
        return [0]

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows."""
        with pa.ipc.open_stream(self.packed) as stream:
            yield from stream

    def rows(self, *columns: str, state: str | None = None) -> Iterator[Row]:
        """Yield the rows one by one, with these columns; all of them, or those in a state."""
        for batch in self.read(0):
            some = batch if state is None else batch.filter(pc.equal(batch["state"], state))
            yield from some.select(columns).to_pylist()


NO_ROWS = PackedRows.of(())
_PLACED = ("table", "region", "state", "server", "start_key", "end_key")
"""Columns that tell of a slave's region."""


@dataclass(frozen=True)
class Snapshot:
    """One side: `rows` are few, `sources` hold the many."""

    header: Header
    rows: tuple[NewRow, ...]
    sources: tuple[Source, ...]
    unsettled: tuple[str, ...] = ()
    """Live region servers that have not flushed past the barrier, with the reason."""
    regions: PackedRows = NO_ROWS
    """A master's `region` rows: read before its streams, and written with them."""
    in_transition: frozenset[str] = frozenset()
    """Tables of a slave with regions that no live server had when the wait ended: later they may have one."""


@dataclass(frozen=True)
class Together(Source):
    """Several sources as one; a part is (index of the source, its part)."""

    sources: tuple[Source, ...]

    def partitions(self) -> Sequence[tuple[int, Any]]:
        """Return the parts of all sources."""
        return [(index, part) for index, source in enumerate(self.sources) for part in source.partitions()]

    def read(self, partition: tuple[int, Any]) -> Iterator[pa.RecordBatch]:
        """Yield one part of one source."""
        index, part = partition
        yield from self.sources[index].read(part)

    def close(self) -> None:
        """Close every source."""
        for source in self.sources:
            source.close()


def snapshot(settings: Settings, request: Request, say: Callable[[str], None]) -> Snapshot:
    """Gather one side of a live cluster. `say` is called with each step.

    Raises `ConfigurationError` and `ConnectionFailed`.
    """
    if request.hdfs and request.side == MASTER:
        settings.refuse_elsewhere(request.hdfs_paths or settings.hdfs_paths)
    header = Header(
        side=request.side,
        cluster_id="",
        created_ms=now_ms(),
        cut_ms=now_ms(),
        flush_period_ms=settings.flush_period_ms,
        state_table=settings.state_table,
        tables=tuple(sorted(request.only.tables)),
        namespaces=tuple(sorted(request.only.namespaces)),
        half="both" if request.hbase and request.hdfs else "hbase" if request.hbase else "hdfs",
        tool_version=__version__,
        filesystem=settings.filesystem,
    )
    gathered = Snapshot(header, (), ())
    if request.hbase:
        with ZooKeeper(settings.zookeeper()) as zookeeper:
            gathered = _identified(gathered, zookeeper)
            if request.witnesses and not _is_tracked(settings, zookeeper):
                gathered = _witnessed(settings, request, gathered, zookeeper, say)
            else:
                gathered = _hbase(settings, request, gathered, zookeeper, say)
                if request.witnesses:
                    gathered = _beside_trackers(settings, request, gathered, zookeeper, say)
    elif settings.knows_zookeeper:
        gathered = _identified_if_up(settings, gathered)
    if not request.hbase and request.shutdown_ms is not None:
        header = apply_shutdown(gathered.header, request.shutdown_ms, BY_OPTION, gathered.header.cut_ms)
        gathered = dataclasses.replace(gathered, header=header)
    if request.hdfs:
        gathered = _hdfs(settings, request, gathered, say)
    return dataclasses.replace(gathered, header=dataclasses.replace(gathered.header, created_ms=now_ms()))


def _identified(gathered: Snapshot, zookeeper: ZooKeeper) -> Snapshot:
    header = dataclasses.replace(
        gathered.header, cluster_id=zookeeper.cluster_id(), cluster_key=zookeeper.endpoint.cluster_key
    )
    return dataclasses.replace(gathered, header=header)


def _identified_if_up(settings: Settings, gathered: Snapshot) -> Snapshot:
    """Return the same with HBase's cluster id where ZooKeeper tells it. Files are read without: HDFS has an id, too."""
    try:
        with ZooKeeper(settings.zookeeper()) as zookeeper:
            return _identified(gathered, zookeeper)
    except ConnectionFailed as error:
        note = f"HBase's cluster id is not known: {error}"
        header = dataclasses.replace(gathered.header, notices=(*gathered.header.notices, note))
        return dataclasses.replace(gathered, header=header)


@dataclass(frozen=True)
class _Settled:
    """A cluster once its servers have echoed the barrier, or were waited for: what is read after that."""

    settings: Settings
    request: Request
    state: StateTable
    zookeeper: ZooKeeper
    barrier: Barrier
    spooled: Spooled
    small: Descriptors
    servers: Sequence[NewRow]
    regions: PackedRows
    """Where they are."""
    status_table: str
    """The table of published status files; empty: there is none."""

    @property
    def read_by_ms(self) -> int:
        """Time by which the last server had read the barrier."""
        return read_by_ms(self.servers, self.barrier.issued_ms) or self.barrier.issued_ms


def _hbase(
    settings: Settings, request: Request, gathered: Snapshot, zookeeper: ZooKeeper, say: Callable[[str], None]
) -> Snapshot:
    endpoint = settings.thrift()
    state = StateTable(endpoint, settings.state_table)
    state.require()
    deadline = time.monotonic() + request.wait_s
    if request.drained:
        _await_drained(settings, request, state, zookeeper, deadline, say)
        deadline = max(deadline, time.monotonic() + min(request.wait_s, LEAST_SETTLE_S))
    barrier = state.put_barrier()
    say("waiting until every region server has flushed past the barrier")
    spool = partial(spooled_rows, settings, gathered.header.cluster_id)
    settled = _settled(settings, request, state, zookeeper, barrier, deadline, spool, say)
    small = settled.small
    header = dataclasses.replace(
        gathered.header,
        barrier_issued_ms=barrier.issued_ms,
        cut_ms=barrier.issued_ms,
        status_table=settled.status_table,
        state_back_ms=small.back_ms,
        state_since_ms=small.since_ms,
    )
    only, types = settled.request.only, TYPES[request.side]
    source = StateTableSource(endpoint, settings.state_table, types, small.generation, only, settled.spooled)
    half = _master_half if request.side == MASTER else _slave_half
    return half(settled, header, source)


def _settled(
    settings: Settings,
    request: Request,
    state: StateTable,
    zookeeper: ZooKeeper,
    barrier: Barrier,
    deadline: float,
    spool: Callable[[set[int]], Spooled],
    say: Callable[[str], None],
) -> _Settled:
    role = ROLES[request.side]
    while True:
        live, spooled, small = _settled_rows(state, zookeeper, barrier, role, deadline, spool)
        status_table = own_status_table(settings.state_table, _families_of(small))
        own = request.only.own | ({status_table} if status_table else set())
        request = dataclasses.replace(request, only=dataclasses.replace(request.only, own=own))
        say("reading tables and regions")
        # The regions come after the echoes: one that a server gives away now was in its custody at the barrier.
        regions, is_settled = _hosted_regions(settings, request, zookeeper, live, deadline)
        if is_settled:
            servers = server_rows(small, role, live)
            return _Settled(
                settings, request, state, zookeeper, barrier, spooled, small, servers, regions, status_table
            )


def _master_half(settled: _Settled, header: Header, source: StateTableSource) -> Snapshot:
    request, small, zookeeper = settled.request, settled.small, settled.zookeeper
    if request.following:
        header = dataclasses.replace(header, notices=(*header.notices, FOLLOWING))
    else:
        header = with_shutdown(header, request.shutdown_ms, small.shutdown_ms)
    tables = [with_events(row, small) for row in small.tables if request.only.holds(row["table"])]
    # The regions come before the facts, which `source` reads: a region that is merged in between is still here. In the
    # other order it is in neither, as HBase deletes it from `hbase:meta` with the merge, and looks truncated.
    regions = settled.regions
    names = (row["region"] for row in regions.rows("region"))
    parents = (row["region"] for row in regions.rows("region", state=RegionState.SPLIT))
    replicated = {row["table"]: frozenset(replicated_families(row["detail"]) or ()) for row in small.tables}
    crashed = {row["origin"]: row.get("gone_ms") or settled.read_by_ms for row in settled.servers if has_crashed(row)}
    existing = codec.Existing(
        codec.packed(names),
        settled.read_by_ms,
        small.coverage_ms,
        replicated,
        crashed,
        barriers_of(settled.servers),
        frozenset(map(codec.prefix, parents)),
        {row["table"]: retention_of(json.loads(row["detail"])) for row in small.tables},
    )
    queued, notices = queue_rows(settled.settings, zookeeper)
    # The peers come after the queues: HBase deletes a queue with its peer, and a peer that ships less empties it as
    # well. Then the peer is gone, or its version is one that proves nothing of a server that ended before.
    peers = peer_rows(zookeeper)
    _write_down_settled(settled.state, settled.servers, peers, queued)
    return Snapshot(
        dataclasses.replace(header, coverage_ms=small.coverage_ms, notices=(*header.notices, *notices)),
        (*settled.servers, *tables, *peers, *queued),
        (dataclasses.replace(source, existing=existing),),
        tuple(_why_unsettled(settled.servers)),
        regions,
    )


def _slave_half(settled: _Settled, header: Header, source: StateTableSource) -> Snapshot:
    small = settled.small
    # The clusters that they lead to are not queried: the master may be down by now.
    peers = [{"kind": "peer", "name": peer.id, "detail": peer.to_json()} for peer in settled.zookeeper.peers()]
    # No filter applies: a table that it leaves out would look missing.
    described = {row["table"]: json.loads(row["detail"]) for row in small.tables}
    events = {name: dict(known) for name, known in small.events.items()}
    for name, proofs in small.proven.items():
        events.setdefault(name, {})["proven"] = proofs
    places, found = survey(settled.regions.rows(*_PLACED), settled.servers)
    keeping = codec.Keeping({name: retention_of(one) for name, one in described.items()}, settled.read_by_ms)
    source = dataclasses.replace(
        source,
        places=places,
        events=small.events,
        slave_id=header.cluster_id,
        keeping=keeping,
        witnessed=settled.request.witnessed,
    )
    for name, detail in found.items():
        events.setdefault(name, {}).update(detail)
    tables = meta.table_families(source.endpoint, events, described)
    return Snapshot(
        dataclasses.replace(header, coverage_ms=small.slave_coverage_ms, pruned=small.pruned_files),
        (*settled.servers, *peers, *tables),
        (source,),
        tuple(_why_unsettled(settled.servers)),
        in_transition=frozenset(row["table"] for row in settled.regions.rows("table", state=RegionState.UNHOSTED)),
    )


def _witnessed(
    settings: Settings, request: Request, gathered: Snapshot, zookeeper: ZooKeeper, say: Callable[[str], None]
) -> Snapshot:
    """A master without trackers: its streams by what witnesses were sent, the rest from HBase itself."""
    # The cut comes before the first look at the queues: whatever was acknowledged by then is in a WAL that this look
    # finds in a queue of their peer, or was sent to them.
    cut_ms = now_ms()
    asked = _ask_witnesses(settings, request, zookeeper, say)
    say("reading regions")
    while True:
        live = zookeeper.live_servers()
        regions, is_settled = _hosted_regions(settings, request, zookeeper, live, asked.deadline)
        if is_settled:
            break
    queued, notices = queue_rows(settings, zookeeper)
    # The peers come after the queues, which HBase deletes with their peer.
    peers = peer_rows(zookeeper)
    why = asked.doubt(peers, zookeeper)
    say("reading what the witnesses were sent")
    source = asked.source(request, gathered.header.cluster_id)
    header = dataclasses.replace(
        asked.header(gathered.header, why),
        evidence=Evidence.WITNESSED,
        cut_ms=cut_ms,
        barrier_issued_ms=cut_ms,
        coverage_ms=covered_since(asked.peer, asked.known_since_ms),
        notices=(*gathered.header.notices, *notices),
    )
    header = with_shutdown(header, request.shutdown_ms, None)
    tables = sorted({row["table"] for row in regions.rows("table")})
    peers = list(_as_servers_ship(settings, peers))
    rows = (*source.small_rows(), *_tables(settings, zookeeper, tables), *peers, *queued)
    return Snapshot(header, rows, (source,), (f"the witness may lack entries: {why}",) if why else (), regions)


def _as_servers_ship(settings: Settings, peers: Iterable[NewRow]) -> Iterator[NewRow]:
    """Yield the peers with what servers do to the bulk loads of each: without trackers the site files alone tell it."""
    drops = {"drops_loads": True} if settings.site.flag(DROPS_LOADS_KEY) else {}
    yield from ({**row, "detail": json.dumps(json.loads(row["detail"]) | drops)} for row in peers)


def _is_tracked(settings: Settings, zookeeper: ZooKeeper) -> bool:
    """Return True if a live region server of a master has its tracker, or may still get it: a witness is asked beside.

    One alone sees less, so that it never takes the place of trackers of which some are away. Raises
    `ConfigurationError` for a state table that is there, as HBase's mirror of table states shows, and cannot be read.
    """
    state = StateTable(settings.thrift(), settings.state_table)
    try:
        state.require()
    except ConfigurationError:
        if zookeeper.read("table", plain_name(settings.state_table)) is None:
            return False
        raise
    tracked = {server for server, role in state.versions() if role == ROLES[MASTER]}
    return bool(tracked) and any(_may_echo(server, server in tracked) for server in zookeeper.live_servers())


def _beside_trackers(
    settings: Settings, request: Request, gathered: Snapshot, zookeeper: ZooKeeper, say: Callable[[str], None]
) -> Snapshot:
    """Add the streams of witnesses to those of a master's trackers: a second proof of the same regions."""
    # The trackers' barrier comes first: the witness must have been sent whatever a tracker saw well before it
    # (`second_proof._was_not_sent`).
    asked = _ask_witnesses(settings, request, zookeeper, say)
    why = asked.doubt([row for row in gathered.rows if row["kind"] == "peer"], zookeeper)
    # The peers are read once more after the wait: no queue of a peer has entries that it no longer ships.
    why = why or asked.doubt(peer_rows(zookeeper), zookeeper)
    source = asked.source(request, gathered.header.cluster_id, is_second=True)
    header = asked.header(gathered.header, why)
    return dataclasses.replace(gathered, header=header, sources=(*gathered.sources, source))


@dataclass(frozen=True)
class _Asked:
    """Witnesses that were sent what the master had written when they were asked."""

    stores: WitnessStores
    peer: PeerFacts
    why: str
    """Why they may not have been; empty: they were."""
    marks: Mapping[str, Mark]
    known_since_ms: int
    deadline: float

    def doubt(self, peers: Sequence[NewRow], zookeeper: ZooKeeper) -> str:
        """Return why they may lack entries, by the master's peers at the end, too."""
        if _peer_of(self.stores, peers, zookeeper.endpoint) != self.peer:
            return f"peer {self.peer['id']} was changed while FILE was written"
        return self.why

    def source(self, request: Request, sender: str, *, is_second: bool = False) -> WitnessSource:
        """Return what their folders have of entries that the cluster `sender` sent."""
        folders = {folder: self.marks[store] for store, folder in self.stores.folders(request.copies).items()}
        return WitnessSource(folders, sender, request.only, self.stores, is_second)

    def header(self, header: Header, why: str) -> Header:
        """Return a header that names them."""
        return dataclasses.replace(
            header, witnesses=tuple(sorted(self.stores.places)), witness_peer=str(self.peer["id"]), unwitnessed=why
        )


def _ask_witnesses(settings: Settings, request: Request, zookeeper: ZooKeeper, say: Callable[[str], None]) -> _Asked:
    # The server of this session may be behind the others, and show queues from before the cut.
    zookeeper.sync()
    stores = witness_stores(request.witnesses, settings.hbase_rpc())
    peer = _peer_of(stores, peer_rows(zookeeper), zookeeper.endpoint)
    deadline = time.monotonic() + request.wait_s
    say("waiting until the witnesses have been sent what the master had written by the cut")
    why = settings.peers_elsewhere or _why_not_shipped(settings, zookeeper, str(peer["id"]), deadline)
    # The marks come after the wait: HBase moves a queue's position only after the witness has written what it
    # acknowledges.
    marks, known_since_ms = _acknowledged(stores, peer, zookeeper.endpoint)
    return _Asked(stores, peer, why, marks, known_since_ms, deadline)


def _why_not_shipped(settings: Settings, zookeeper: ZooKeeper, peer_id: str, deadline: float) -> str:
    """Return the empty text once the peer was sent everything that was in a WAL when this began; else why it was not.

    Where a queue has gone, as that of a crashed server once it is drained, what counts is in a WAL of a later look. So
    it is where the length of a WAL was not known, as of one that was just being moved, or the queues moved meanwhile.

    A witness takes entries alone: files of bulk loads, which HBase lists whatever the scope of their family, may stay
    in `hfile-refs` for ever.
    """
    mark = now = measure(settings, zookeeper)
    while not has_shipped_wals(mark, now, peer_id):
        if time.monotonic() >= deadline:
            return why_not_shipped(now, peer_id)
        time.sleep(DRAIN_POLL_S)
        now = measure(settings, zookeeper)
        is_usable = mark.queues.consistent and has_lengths(mark, peer_id)
        if not (is_usable and has_same_queues(mark, now, peer_id)):
            mark = now
    return ""


def _peer_of(stores: WitnessStores, peers: Sequence[NewRow], of: ZooKeeperEndpoint) -> PeerFacts:
    """Return the peer of these folders. Raises `ConfigurationError` if the master has none."""
    known = [parse_peer(row["detail"]) for row in peers]
    ours = [peer for peer in known if peer["cluster_id"] == stores.cluster_id]
    if len(ours) != 1 or parse_cluster_key(ours[0]["cluster_key"], of) is None:
        raise ConfigurationError(
            f"{'no peer' if not ours else 'more than one peer'} of the master is the witness of these folders"
            f" ({stores.cluster_id}): is it registered, and is it this master's?"
        )
    return ours[0]


def _acknowledged(stores: WitnessStores, peer: PeerFacts, of: ZooKeeperEndpoint) -> tuple[dict[str, Mark], int]:
    """Return how much of each folder was acknowledged, and since when their names have been known (epoch ms).

    Raises `ConfigurationError` unless they are all that the peer's witnesses ever had: each was sent a part.
    """
    endpoint = parse_cluster_key(peer["cluster_key"], of)
    assert endpoint is not None
    with ZooKeeper(endpoint) as session:
        # A ZooKeeper server that is behind shows earlier marks, and a folder that has lost its end passes for whole.
        session.sync()
        known = session.read("stores")
        znodes = {name: session.read("stores", name) for name in session.children("stores")}
    try:
        marks = {name: Mark.of(content(znode[0])) for name, znode in znodes.items() if znode is not None}
    except ValueError:
        marks = {}
    # Nothing was ever acknowledged from a folder without a mark, such as one of a mistyped --store.
    if lacking := sorted(name for name in znodes.keys() - stores.places.keys() if marks.get(name) != Mark()):
        raise ConfigurationError(
            f"the witness at {endpoint} has had {counted(len(znodes), 'folder')}, and the master may have sent any "
            f"part to any of them: --witness does not name {', '.join(lacking)}"
        )
    if known is None or stores.places.keys() - marks.keys():
        raise ConfigurationError(
            f"the witness at {endpoint} does not say how much it has acknowledged: was its znode removed? Begin anew"
            " with another folder, znode and peer"
        )
    return marks, known[1]


def _tables(settings: Settings, zookeeper: ZooKeeper, tables: Sequence[str]) -> Iterator[NewRow]:
    """Yield the descriptors of a master without trackers, and when each table was certainly not there yet.

    Regions alone do not tell how old their table is: they may be of a split. HBase deletes a table's znode with it.
    """
    root = settings.hbase_root
    if root is None:
        raise ConfigurationError("hbase.rootdir is in no site file, and the tables' descriptors lie there")
    endpoint = own_endpoint(settings, settings.root_webhdfs())
    yield from _with_openings(settings, list(table_rows(endpoint, plain_path(root), tables)))
    for table in tables:
        znode = zookeeper.read("table", table)
        created_ms = None if znode is None else znode[1]
        yield {"kind": "fact", "table": table, "region": "", "state": FactState.SPLIT, "region_id": created_ms}


def _with_openings(settings: Settings, rows: Sequence[NewRow]) -> Iterator[NewRow]:
    """Yield the `table` rows; those of tables that were altered with when the first of their open regions was opened.

    After the descriptors: a region that is opened anew meanwhile has the new one.
    """
    details = {str(row["table"]): json.loads(row["detail"]) for row in rows}
    altered = [table for table, detail in details.items() if "altered_ms" in detail]
    for region in meta.open_regions(settings.thrift(), altered):
        known = details[region.table]
        known["opened_ms"] = min(region.opened_ms, known.get("opened_ms", region.opened_ms))
    yield from (row | {"detail": json.dumps(details[str(row["table"])])} for row in rows)


def _families_of(small: Descriptors) -> dict[str, Collection[str]]:
    details = {str(row["table"]): json.loads(row["detail"]) for row in small.tables}
    return {table: detail["families"] for table, detail in details.items() if isinstance(detail.get("families"), dict)}


def _await_drained(
    settings: Settings,
    request: Request,
    state: StateTable,
    zookeeper: ZooKeeper,
    deadline: float,
    say: Callable[[str], None],
) -> None:
    """Return when no queue holds anything of a crashed server, or at the deadline: then FILE records what is left.

    Before the barrier, so that everything else is read in its order after it.
    """
    # No token is put: each one makes every tracker flush, and this loop looks once a second.
    nobody = Barrier(now_ms(), set())
    while True:
        peers = [json.loads(peer.to_json()) for peer in zookeeper.peers()]
        # Nothing leaves the queue of a disabled peer: a run waits for one only if --peer names it.
        meant = [
            peer for peer in peers if (peer["enabled"] if request.peer_id is None else peer["id"] == request.peer_id)
        ]
        if not meant and request.peer_id is not None:
            raise ConfigurationError(f"the master has no peer {request.peer_id!r}: check --peer")
        queued, _ = queue_rows(settings, zookeeper)
        servers = server_rows(state.descriptors(nobody), ROLES[MASTER], zookeeper.live_servers())
        waiting = undrained_servers(queued, servers, meant)
        if not waiting or time.monotonic() >= deadline:
            return
        say(f"waiting until the queues of crashed servers are drained: {', '.join(waiting)}")
        time.sleep(DRAIN_POLL_S)


def _write_down_settled(
    state: StateTable, servers: Sequence[NewRow], peers: Sequence[NewRow], queued: Sequence[NewRow]
) -> None:
    """Record what the queues prove of crashed servers now: after the next change of the peer it would be in doubt.

    Nothing where the peers are kept elsewhere: the filters in ZooKeeper may never have been those of the queues.
    """
    for row in () if any(peers_elsewhere(servers)) else peers:
        peer = parse_peer(row["detail"])
        for server, proof in newly_settled(queued, servers, peer, now_ms()):
            state.record_settled(server, str(peer["id"]), proof)


def with_events(row: NewRow, small: Descriptors) -> NewRow:
    """Return a master's `table` row with the events outside the WAL."""
    events = small.events.get(row["table"], {})
    added = {name: events[name] for name in ("skipped_ms", "raised_ms", "tagged_ms") if events.get(name)}
    # By them a check knows since when the slave holds what it shipped to this cluster.
    relayed = {ids: moment for ids, moment in (events.get("first_written_by") or {}).items() if ids}
    if relayed:
        added["first_written_by"] = relayed
    if marks := small.pruned.get(row["table"]):
        added["pruned"] = marks
    return row | {"detail": json.dumps(json.loads(row["detail"]) | added)} if added else row


def settle(state: StateTable, zookeeper: ZooKeeper, barrier: Barrier, role: str, deadline: float) -> list[str]:
    """Wait until every server that can echo the barrier has, or until `deadline`. Returns the live servers.

    They, and whatever the session reads afterwards, are of the barrier or later: a ZooKeeper server that is behind the
    others would hide servers, queues and files of bulk loads that were there before it.
    """
    zookeeper.sync()
    while True:
        began = time.monotonic()
        # Both are read anew in each round: a server that has died since never echoes, and its final flush or the queues
        # settle it.
        live, echoes = zookeeper.live_servers(), state.echoes(barrier)
        waiting = [server for server in live if not echoes.get((server, role))]
        if not any(_may_echo(server, (server, role) in echoes) for server in waiting):
            return live
        now = time.monotonic()
        if now >= deadline:
            return live
        time.sleep(max(ECHO_POLL_S, now - began))


def _settled_rows(
    state: StateTable,
    zookeeper: ZooKeeper,
    barrier: Barrier,
    role: str,
    deadline: float,
    spool: Callable[[set[int]], Spooled],
) -> tuple[list[str], Spooled, Descriptors]:
    """Return the live servers, what is spooled, and the small rows, once servers have echoed and tables are described.

    Trackers echo without the tables' descriptors as long as no HBase master is active, for example after a restart of
    all servers, and write them in a later round. All is read anew then, and if a server has come meanwhile.
    """
    while True:
        began = time.monotonic()
        live = settle(state, zookeeper, barrier, role, deadline)
        # The spool comes before the table: a tracker puts a file's rows into the table before it deletes the file.
        echoes = state.echoes(barrier)
        flushed = {origin_id(server) for (server, own), has_echoed in echoes.items() if has_echoed and own == role}
        spooled = spool(flushed)
        # The servers' rows come before the heads, which the source reads last: a row vouches for heads that were
        # written before it. Heads that are read before a row may lack some that it vouches for.
        small = state.descriptors(barrier, spooled)
        now = time.monotonic()
        # Nobody describes tables where no tracker is, or no table.
        is_described = small.tables or not flushed or not state.has_others()
        came = _newcomers(zookeeper, live, (row["server"] for _, row in small.servers))
        if now >= deadline or (is_described and not came):
            # One that came at the very deadline lives, and has yet to echo. Without it among them, its row without a
            # final flush would count as a crashed server's, which waits for queues that nothing drains.
            return [*live, *sorted(came)], spooled, small
        time.sleep(max(ECHO_POLL_S, now - began))


def _newcomers(zookeeper: ZooKeeper, live: Collection[str], named: Iterable[Any]) -> set[str]:
    """Return which of these servers came after the look at the live ones: they would count as crashed."""
    return {*zookeeper.live_servers()}.difference(live).intersection(named)


def _hosted_regions(
    settings: Settings, request: Request, zookeeper: ZooKeeper, live: Collection[str], deadline: float
) -> tuple[PackedRows, bool]:
    """Return the `region` rows, and True if they hold.

    Waits for regions in transition, so that the balancer causes no false alarm. Where one is on a server that has come
    since the look at the `live` ones, that look has to be repeated first: False.
    """
    while True:
        began = time.monotonic()
        regions = PackedRows.of(meta.regions(settings.thrift(), live, settings.state_table, request.only))
        unhosted = {row["server"] for row in regions.rows("server", state=RegionState.UNHOSTED)}
        now = time.monotonic()
        if not unhosted or now >= deadline:
            return regions, True
        if _newcomers(zookeeper, live, unhosted):
            return regions, False
        time.sleep(max(ECHO_POLL_S, now - began))


def _may_echo(server: str, has_row: bool) -> bool:
    """Return True if a wait for a server makes sense: it has a tracker, or has not run for long enough to tell."""
    started_ms = start_code(server)
    return has_row or (started_ms is not None and now_ms() - started_ms < NEWCOMER_MS)


def server_rows(small: Descriptors, role: str, live: Collection[str]) -> list[NewRow]:
    """Return the server rows of a role. Live servers without a row appear as not tracked."""
    known = [row | {"origin": origin} for origin, row in small.servers if row["role"] == role]
    rows = [row | {"live": row["server"] in live, "tracked": True} for row in known]
    tracked = {row["server"] for row in rows}
    missing = [server for server in live if server not in tracked]
    return rows + [
        {
            "kind": "server",
            "server": server,
            "origin": origin_id(server),
            "role": role,
            "live": True,
            "tracked": False,
            "echoed": False,
        }
        for server in missing
    ]


def _why_unsettled(servers: Sequence[NewRow]) -> Iterator[str]:
    """Yield the reasons for which the verdict will doubt live servers, by their last read rows and not by the wait."""
    for row in servers:
        if row["live"] and not row["tracked"]:
            yield f"{row['server']} runs without the tracker"
        elif row["live"] and not row["echoed"]:
            yield f"{row['server']} has not flushed past the cut"


def spooled_rows(settings: Settings, cluster_id: str, flushed: Collection[int] = ()) -> Spooled:
    """Return the rows that trackers spooled to the file system; none if no NameNode is known.

    Files that the servers `flushed` append to are left out.
    """
    folder = settings.spool_dir(cluster_id)
    if folder is None:
        return ()
    try:
        endpoint = own_endpoint(settings, settings.spool_webhdfs())
    except ConfigurationError:
        # What the spool alone has is missing then. A stopped server's last heads lie there with its row, so that it
        # counts as crashed; segments of a slave look like a gap. Only writes of a slave's own clients stay unseen
        # (correctness.md).
        return ()
    return read_spool(WebHdfs(endpoint, patience_s=0), folder, flushed)


def peer_rows(zookeeper: ZooKeeper) -> list[NewRow]:
    """Return `peer` rows, each with the id of the cluster that it leads to, if that can be queried."""
    of = zookeeper.endpoint
    peers = [dataclasses.replace(peer, cluster_id=peer_cluster_id(peer, of)) for peer in zookeeper.peers()]
    return [{"kind": "peer", "name": peer.id, "detail": peer.to_json()} for peer in peers]


def with_shutdown(header: Header, given: int | None, recorded: int | None) -> Header:
    """Return the header with the cut: `-s`, else the recorded shutdown time, else now. Ignores a time in the future."""
    moment, whose = (given, BY_OPTION) if given is not None else (recorded, RECORDED)
    if moment is None:
        note = "no shutdown time was recorded: everything written up to the moment of the dump is in scope"
        return dataclasses.replace(header, notices=(*header.notices, note))
    return apply_shutdown(header, moment, whose, header.cut_ms)


def apply_shutdown(header: Header, moment: int, whose: str, limit_ms: int) -> Header:
    """Return the header with `moment` as shutdown time and cut, unless it lies behind `limit_ms`.

    `whose` is one of `SHUTDOWN_SOURCES`.
    """
    if moment > limit_ms:
        name = "the recorded shutdown time" if whose == RECORDED else "-s"
        note = f"{name} ({moment}) is later than the dump ({limit_ms}): the moment of the dump is used instead"
        return dataclasses.replace(header, notices=(*header.notices, note))
    return dataclasses.replace(header, shutdown_ms=moment, cut_ms=moment, shutdown_from=whose)


def _hdfs(settings: Settings, request: Request, gathered: Snapshot, say: Callable[[str], None]) -> Snapshot:
    roots = tuple(root_of(path) for path in request.hdfs_paths or settings.hdfs_paths or ("/",))
    # HBase's folders are not left out on a disk, where these paths are a user's.
    on_disk = Exclusions().also(request.files.exclude)
    sources: list[Source] = []
    absent: list[str] = []
    key, identity = "", ("", LOCAL_POOL)
    tolerant = request.side == MASTER
    local, remote = by_system(roots)
    refuse_unused(request.files, local, remote)
    disk_folders = tuple(map(plain_folder, local))
    exclusions = exclusions_of(settings, request.files.exclude) if remote else on_disk
    if local:
        deep = request.files.deep or request.files.deep_local
        disk = LocalSource(local, on_disk, request.files.layout or Layout(), deep, tolerant=tolerant)
        seen_here = frozenset(part.path for part in disk.found() if part.is_followed)
        sources.append(dataclasses.replace(disk, seen=seen_here) if tolerant else disk)
        absent += disk.absent()
        key = f"{LOCAL}{','.join(local)}"
    if remote:
        options = request.files
        if request.side == SLAVE:
            # Rows have plain paths: a file of HDFS under the path of a local folder would stand for one on the disk.
            exclusions = dataclasses.replace(exclusions, folders=(*exclusions.folders, *disk_folders))
        endpoint = files_endpoint(settings, options.client, options.load, remote, exclusions, say)
        say(f"querying the NameNode at {endpoint}")
        exclusions = without_users_folder(settings, endpoint, exclusions, options.load)
        found = paths_of(endpoint, remote, exclusions, options.load)
        if request.side == SLAVE:
            _refuse_shared(disk_folders, found)
        absent += [root for root, paths in found.items() if not paths]
        identity = identity_of(settings, endpoint, remote, exclusions, options.load)
        # A name of a service or a mount table is a site file's own, as `localhost` is a host's: the other cluster's
        # may have the same.
        key = f"{endpoint} ({identity[1]})" if identity[1] else str(endpoint)
        seen = tuple(path for paths in found.values() for path in paths) if tolerant else ()
        led = mounts_that_lead(endpoint, seen, exclusions, options.load)
        sources.append(
            HdfsSource(endpoint, remote, exclusions, options.load, options.deep, options.journal, tolerant, seen, led)
        )
    plain = tuple(root.removeprefix(LOCAL) for root in roots)
    left_out = (*exclusions.folders, *(settings.spool_globs if remote else ()), *request.files.exclude)
    note = (
        f"HDFS: {', '.join(plain)} checked; left out: {', '.join(left_out)}, trash, snapshots, staging and temporary "
        "files"
    )
    header = dataclasses.replace(
        gathered.header,
        hdfs_paths=plain,
        hdfs_absent=tuple(absent),
        hdfs_left_out=left_out,
        hdfs_excluded=request.files.exclude,
        hdfs_cluster_id=identity[0],
        hdfs_pool_id=identity[1],
        notices=(*gathered.header.notices, note),
        # Without ZooKeeper only the NameNode identifies the cluster.
        cluster_key=gathered.header.cluster_key or key,
    )
    return dataclasses.replace(gathered, header=header, sources=(*gathered.sources, *sources))


def refuse_unused(files: FileOptions, local: Sequence[str], remote: Sequence[str]) -> None:
    """Raise `UsageError` for an option that is about local folders or paths in HDFS, where none of these is read."""
    if files.for_hdfs and not remote:
        raise UsageError(
            f"{files.for_hdfs[0]} is for files in HDFS, and only file:// folders are read here: leave it out"
        )
    if files.layout is not None and not local:
        raise UsageError(
            "--layout is for file:// folders, and none is read here: leave it out, or name one in -f or --map-path"
        )


def _refuse_shared(local: Sequence[str], found: Mapping[str, Sequence[str]]) -> None:
    """Raise `UsageError` if a slave's path in HDFS lies in a local folder: no row tells of which of the two it is."""
    for folder in local:
        for root in (root for root, paths in found.items() if any(inside(path, folder) for path in paths)):
            raise UsageError(
                f"{root} in HDFS and {LOCAL}{folder} on the local disk have the same paths on the slave, so that a file"
                " of one could pass for a file of the other: check them in two runs (-f)"
            )
