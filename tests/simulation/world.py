"""A small model of two HBase clusters and the replication between them, with everything that can go wrong in steps.

What HBase does is from the 2.6.1 sources (ReplicationSourceManager, ReplicationSource, ServerCrashProcedure,
ClaimReplicationQueuesProcedure, ZKReplicationQueueStorage). Only what decides whether
an entry arrives is modelled: which WALs a queue holds, from where on, and who ships them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.state_rows import column
from tests.simulation.dice import Dice
from tests.simulation.store import APPLIED, APPLIED_BUT_FAILED, LATE, PARTLY, REFUSED, Cells, Store
from tests.simulation.tracker import ARRIVED_MS, CHANGED_ROW, SLAVE_VIA, WHOLE, Entry, Event, SinkTracker, WriteTracker

START_MS = 1_000_000_000
REGIONS = ("a1", "b2", "c3")
PEER = "1"
MAX_OFFSET_MS = 20_000
MAX_SERVERS = 4
REFRESHED_MS = 60_000
"""Within this time all region servers have loaded a change of a peer."""


@dataclass(eq=False)
class Wal:
    """A WAL file; a reader sees `entries[:readable]`."""

    server: str
    started_ms: int
    entries: list[Entry] = field(default_factory=list)
    readable: int = 0
    closed: bool = False

    @property
    def name(self) -> str:
        """As HBase names it: the server, and when it was opened."""
        return f"{self.server.replace(',', '%2C')}.{self.started_ms}"


@dataclass(eq=False)
class MasterServer:
    """A region server of the master, to its end and beyond."""

    name: str
    offset: int
    tracker: WriteTracker | None
    wal: Wal
    running: bool = True
    """The process lives."""
    session: bool = True
    """Its znode is there."""
    gone_ms: int | None = None
    """Since when it is not."""
    split: bool = False
    """Its folder of WALs is gone; nothing can be appended any more."""
    ring: list[Entry] = field(default_factory=list)
    """Appended by their handlers, not yet by the WAL: no hook has seen them."""
    lazy: list[Entry] = field(default_factory=list)
    """Acknowledged before they were durable (ASYNC_WAL)."""
    knows_peer: bool = False
    loaded: tuple[int, int, bool] | None = None
    """Of the peer as it is in force here: incarnation, configuration, and whether it is narrow."""
    stopping: bool = False

    @cached_property
    def origin(self) -> int:
        return origin_id(self.name)


@dataclass(eq=False)
class SlaveServer:
    """A region server of the slave."""

    tracker: SinkTracker
    offset: int = 0
    running: bool = True
    session: bool = True


@dataclass
class Peer:
    """The peer's znode."""

    created_ms: int
    enabled: bool = True
    incarnation: int = 1
    version: int = 0
    modified_ms: int = 0
    changes: int = 0
    """How often its configuration was changed: region servers load it anew then, not whenever the znode is written."""
    narrow: bool = False
    """Whether it ships family `f` only."""
    changed_ms: int = 0
    """When its configuration was changed last."""

    def __post_init__(self) -> None:
        self.modified_ms = self.created_ms


@dataclass(eq=False)
class Position:
    """A WAL in a queue."""

    wal: Wal
    at: int = 0


Queues = dict[tuple[str, str], list[Position]]
"""By holder and queue id."""


class World:
    """Both clusters, and the truth: which acknowledged entries have not been applied on the slave."""

    def __init__(self, name: str = "", regions: tuple[str, ...] = REGIONS) -> None:
        """`name` begins the names of its region servers."""
        self.name, self.regions, self.applied_regions = name, regions, regions
        self.now = START_MS
        self.master_store, self.slave_store = Store(), Store()
        self.master_marks: list[int] = []
        """The file with the mark of the master's state table."""
        self.slave_marks: list[int] = []
        self.nightly: dict[int, dict[bytes, Cells]] = {}
        """By which of the two tables, its last snapshot."""
        self.masters: list[MasterServer] = []
        self.slaves: list[SlaveServer] = []
        self.peer: Peer | None = Peer(START_MS - 100_000)
        self.incarnations = 1
        self.queues: Queues = {}
        self.cversion = 0
        self.host: dict[str, MasterServer] = {}
        self.next_seq = dict.fromkeys(regions, 1)
        self.floor: dict[str, int] = {}
        """By region, the highest sequence id that some WAL has durably."""
        self.numbers = 0
        self.unacked: list[Entry] = []
        self.outstanding: dict[int, Entry] = {}
        """Acknowledged on the master, in scope for the slave, not applied there."""
        self.arrived: dict[int, frozenset[str]] = {}
        """By entry, the families that have been applied on the slave."""
        self.acknowledged: dict[int, Entry] = {}
        """All that the slave was ever to get."""
        self.slave_host: SlaveServer | None = None
        """Where the slave's table is open."""
        self.taken_ms: dict[int, int] = {}
        """By entry, when it was last taken away from the slave's table."""
        self.slave_snapshot: tuple[frozenset[str], dict[int, frozenset[str]]] | None = None
        """Its families, and what it holds."""
        self.slave_families = WHOLE
        self.slave_enabled = True
        self.slave_versions = 3
        """What its table keeps of each column; the master's keeps as many at first."""
        self.witnesses: tuple[bytes | None, list[SlaveServer]] = (None, [])
        """Who alone can know that the slave's state table went back: its mark was not raised after the snapshot."""
        self.spool: list[list[tuple[bytes, dict[bytes, tuple[bytes, int]]]]] = []
        self.late_requests: list[tuple[SlaveServer, list[Entry]]] = []
        self.blemishes: set[str] = set()
        """What has happened that may keep a verdict from being complete although all has arrived."""
        self.row_lost: set[int] = set()
        """Origins that lived when the state table was lost."""
        self.interrupted: set[int] = set()
        """Origins that a sweep has found without a tracker."""
        self.pruned: Counter[str] = Counter()
        """Rows of the state tables that were pruned, by their first letter."""
        self.log: list[str] = []
        self.tokens = 0
        for _ in range(2):
            self.start_master(0, tracked=True)
            self.start_slave()
        self.settle_in()
        self.now += 10
        self.created_ms = self.now
        for index, region in enumerate(regions):
            self.host[region] = self.masters[index % 2]
        self.hosting().tracker.born(self.created_ms)

    # Helpers

    def say(self, what: str) -> None:
        """Into the log that a failure shows."""
        self.log.append(f"{self.now - START_MS:>9} {what}")

    def settle_in(self) -> None:
        """Every tracker's first round: server rows and the start of coverage."""
        for server in self.masters:
            while server.tracker and not server.tracker.tick(lambda: APPLIED):
                pass
        for sink in self.slaves:
            while not sink.tracker.tick(lambda: APPLIED):
                pass

    def living(self) -> list[MasterServer]:
        """Master region servers whose process lives."""
        return [server for server in self.masters if server.running]

    def live_names(self) -> list[str]:
        """The master's znodes of region servers."""
        return [server.name for server in self.masters if server.session]

    def sinks(self) -> list[SlaveServer]:
        """Slave region servers whose process lives."""
        return [sink for sink in self.slaves if sink.running]

    def drain_copies(self, most: int) -> None:
        """Some tracker puts what servers that are gone have spooled into the slave's state table."""
        for sink in [sink for sink in self.slaves if sink.tracker.copies and not sink.session][:most]:
            self.slave_store.apply(sink.tracker.copies)
            sink.tracker.copies = []

    def fates(self, dice: Dice) -> int:
        """What becomes of a write to a state table."""
        fate = dice.pick((APPLIED,) * 10 + (REFUSED, APPLIED_BUT_FAILED, LATE, PARTLY))
        return fate

    def advance(self, millis: int) -> None:
        self.now += millis
        self.master_store.clock = self.slave_store.clock = self.now
        if self.peer is not None and self.now - self.peer.changed_ms >= REFRESHED_MS:
            self.refresh_all()

    def coverage_interrupted(self, name: str) -> None:
        """A sweep has found a server without a tracker's row."""
        self.blemishes.add("coverage interrupted")
        self.interrupted.add(origin_id(name))

    def lose_master_rows(self) -> None:
        """The state table is dropped; servers that live write their rows again with their next flush."""
        self.master_store.lose()
        self.row_lost |= {server.origin for server in self.living()}

    def is_unseen(self, origin: int) -> bool:
        """Whether a server has gone before it had a row in the table, and before a sweep could find it without one.

        What it lost nobody can know (docs/correctness.md, what is not seen).
        """
        server = next(server for server in self.masters if server.origin == origin)
        written = server.tracker is not None and server.tracker.written
        if origin in self.row_lost and server.tracker:
            written = server.tracker.key in self.master_store.rows
        if written or origin in self.interrupted or server.session:
            return False
        self.blemishes.add("a server that nobody knows")
        return True

    def by_a_zombie(self, entry: Entry) -> bool:
        """Written by a server whose znode was gone already.

        `--since` accepts a crashed server as of the moment at which another found it gone, which a zombie may outlive
        (docs/correctness.md, what is not seen).
        """
        server = next(server for server in self.masters if server.origin == entry.origin)
        return server.gone_ms is not None and entry.appended >= server.gone_ms

    # Master: servers

    def start_master(self, offset: int, *, tracked: bool) -> MasterServer:
        """A new region server, whose queue exists from its first WAL on."""
        self.advance(1)
        name = f"{self.name}m{len(self.masters)},1,{self.now + offset}"
        server = MasterServer(name, offset, None, Wal(name, self.now + offset))
        clock = lambda: self.now + server.offset  # noqa: E731
        if tracked:
            tracker = WriteTracker(name, "w", self.master_store, clock, self.now + offset)
            tracker.steady = lambda: self.now
            tracker.sync, tracker.live_servers = (lambda: self.sync(server)), self.live_names
            tracker.on_interrupt = self.coverage_interrupted
            tracker.in_force = lambda: self.in_force(server)
            tracker.mark_file = self.master_marks
            server.tracker = tracker
        self.masters.append(server)
        if self.peer is not None:
            self.introduce(server)
        self.say(f"start {name}{'' if tracked else ' untracked'}")
        return server

    def start_slave(self) -> SlaveServer:
        """A new region server of the slave."""
        self.advance(1)
        offset = (0, 9_000, -14_000)[len(self.slaves) % 3]
        name = f"{self.name}s{len(self.slaves)},1,{self.now + offset}"
        sink = SlaveServer(
            SinkTracker(name, "r", self.slave_store, lambda: self.now + offset, self.now + offset), offset
        )
        sink.tracker.mark_file = self.slave_marks
        self.slaves.append(sink)
        return sink

    # Slave: what comes beside the WAL

    def hosting(self) -> SlaveServer:
        """Where the slave's table is open. A server that opens it after a crash finds what the last one found."""
        last = self.slave_host
        if last is None or not last.running:
            self.slave_host = self.sinks()[-1]
            for name, event in last.tracker.unwritten().items() if last is not None else ():
                if name[1] != ARRIVED_MS:
                    self.slave_host.tracker.note(*name, Event(event.value, event.timestamp))
        assert self.slave_host is not None
        return self.slave_host

    def change_slave(self, arrived: dict[int, frozenset[str]]) -> None:
        """The slave's table holds this now."""
        self.blemishes.add("slave changed")
        lost = [n for n, families in self.arrived.items() if families - arrived.get(n, frozenset())]
        self.taken_ms |= dict.fromkeys(lost, self.now)
        self.arrived = arrived
        self.outstanding = {n: entry for n, entry in self.acknowledged.items() if not self.has_arrived(entry)}

    def truncate_slave(self) -> None:
        """Its regions are created anew, by the HBase master's clock."""
        self.advance(1)
        self.hosting().tracker.born(self.now)
        self.change_slave({})

    def restore_slave(self) -> None:
        """The table's own snapshot: its regions open with other files than before."""
        if self.slave_snapshot is not None:
            self.slave_families, held = self.slave_snapshot
            self.opened_otherwise()
            self.change_slave(dict(held))

    def opened_otherwise(self) -> None:
        """The slave's regions opened with other files or families than those with which they were closed."""
        host = self.hosting()
        changed_ms = self.now + host.offset
        host.tracker.note(CHANGED_ROW, b"c", Event(changed_ms, changed_ms))

    def drop_slave_family(self) -> None:
        """With its cells; the table is open, or nobody looks until it is opened again."""
        self.slave_families = frozenset("f")
        self.opened_otherwise()
        self.change_slave({n: families - {"g"} for n, families in self.arrived.items()})

    def keep_less(self, dice: Dice) -> None:
        """The slave's table is altered to keep one version, and the older ones go."""
        self.slave_versions = 1
        self.change_slave({n: families for n, families in self.arrived.items() if dice.below(3)})

    def can_apply(self, entries: list[Entry]) -> bool:
        """Whether the slave takes a request: else its sink fails, and the source tries again."""
        return self.slave_enabled and all(entry.families <= self.slave_families for entry in entries)

    def is_last_witness(self, sink: SlaveServer) -> bool:
        """Whether nobody else is left to notice that the slave's state table went back."""
        before, witnesses = self.witnesses
        if sink not in witnesses or before != self.slave_store.rows.get(b"c", {}).get(column(b"b"), (None, 0))[0]:
            return False
        return not any(other.running for other in witnesses if other is not sink)

    def crash(self, server: MasterServer, survive: int) -> None:
        """The process dies; of what was not synced the first `survive` entries can be read all the same."""
        server.running = False
        if server.tracker:
            server.tracker.busy = None
        wal = server.wal
        survivors = wal.entries[wal.readable : wal.readable + survive] if not wal.closed else []
        wal.readable += len(survivors)
        wal.closed = True
        for entry in server.lazy:
            if entry not in survivors:  # what HBase promises of ASYNC_WAL ends with a crash
                self.outstanding.pop(entry.number, None)
                self.acknowledged.pop(entry.number, None)
        server.lazy.clear()
        server.ring.clear()
        for entry in survivors:
            self.floor[entry.region] = max(entry.seq, self.floor.get(entry.region, 0))
        self.unacked = [entry for entry in self.unacked if entry.origin != server.origin]

    def split(self, server: MasterServer, survive: int) -> None:
        """ServerCrashProcedure: fence and split its WALs, assign its regions elsewhere. Ends a zombie."""
        was_paused = server.running
        self.crash(server, survive)
        server.split = True
        if was_paused and server.tracker:
            self.resume(server)
        self.is_unseen(server.origin)
        self.move_regions(server)

    def resume(self, server: MasterServer) -> None:
        """A server that was paused past its session goes on: it appends to files that it has lost, and aborts."""
        assert server.tracker is not None
        for region, host in self.host.items():
            if host is server:
                seq = self.next_seq[region]
                lost = Entry(0, region, seq, 0, self.now + server.offset, server.origin, self.now)
                server.tracker.before(lost)
                server.tracker.after(lost)
        server.tracker.fenced = server.tracker.over = True
        server.tracker.busy = None

    def move_regions(self, server: MasterServer) -> None:
        """Its regions open on other servers, with sequence ids above all that was replayed."""
        others = [other for other in self.living() if not other.stopping and other.session]
        for region, host in list(self.host.items()):
            if host is server and others:
                self.host[region] = others[len(region + server.name) % len(others)]
                self.next_seq[region] = self.floor.get(region, 0) + 2

    def claim(self, claimer: MasterServer, key: tuple[str, str]) -> None:
        """One of a dead server's queues goes to another server: one transaction, seen in the parent's cversion."""
        positions = self.queues.pop(key)
        self.queues[claimer.name, f"{key[1]}-{key[0]}"] = positions
        self.cversion += 2

    # Master: writes

    def append(
        self, region: str, via: int, jitter: int, families: frozenset[str] = WHOLE, *, lazily: bool = False
    ) -> Entry:
        """An entry goes into its server's WAL, not synced; lazily (ASYNC_WAL): only towards it, and is acknowledged."""
        server = self.host[region]
        self.numbers += 1
        seq = self.next_seq[region]
        self.next_seq[region] += 1
        write_ms = self.now + server.offset - jitter
        entry = Entry(self.numbers, region, seq, via, write_ms, server.origin, self.now)
        entry.written = entry.families = families
        if lazily or server.ring:
            server.ring.append(entry)
        else:
            self.into_wal(server, entry)
        if lazily:
            server.lazy.append(entry)
            self.acknowledge(entry)
        else:
            self.unacked.append(entry)
        return entry

    def empty_ring(self, server: MasterServer) -> None:
        """The WAL's thread appends what waits."""
        while server.ring:
            self.into_wal(server, server.ring.pop(0))

    def acknowledge(self, entry: Entry) -> None:
        """Its client may rely on it from now on."""
        entry.acked = self.now
        if entry.via != SLAVE_VIA:
            self.acknowledged[entry.number] = entry
        if entry.via != SLAVE_VIA and not self.has_arrived(entry):
            self.outstanding[entry.number] = entry

    def into_wal(self, server: MasterServer, entry: Entry) -> None:
        """The hooks around an append."""
        if server.tracker:
            server.tracker.before(entry)
        server.wal.entries.append(entry)
        if server.tracker:
            server.tracker.after(entry)

    def sync(self, server: MasterServer) -> None:
        """Everything appended to its WAL is durable, and acknowledged."""
        self.empty_ring(server)
        server.wal.readable = len(server.wal.entries)
        for entry in server.lazy:
            self.floor[entry.region] = max(entry.seq, self.floor.get(entry.region, 0))
        server.lazy.clear()
        mine = [entry for entry in self.unacked if entry.origin == server.origin]
        self.unacked = [entry for entry in self.unacked if entry.origin != server.origin]
        for entry in mine:
            self.floor[entry.region] = max(entry.seq, self.floor.get(entry.region, 0))
            self.acknowledge(entry)

    def roll(self, server: MasterServer, readable: int | None) -> None:
        """A new WAL, in the queue before it is used. A number: the sync failed, only so much of the rest got through.

        What was not acknowledged is then appended again (AsyncFSWAL).
        """
        old = server.wal
        if readable is None:
            self.sync(server)
        again = old.entries[old.readable :]
        old.readable = min(len(old.entries), old.readable + (readable or 0))
        old.closed = True
        server.wal = Wal(server.name, max(self.now + server.offset, old.started_ms + 1))
        if server.knows_peer:
            for peer in self.peer_ids():
                self.queues[server.name, peer].append(Position(server.wal))
        for entry in again:
            self.into_wal(server, entry)

    # Replication

    def add_peer(self) -> None:
        """`add_peer`: the znode is there; region servers get to know one by one (`introduce`)."""
        self.incarnations += 1
        self.peer = Peer(self.now, incarnation=self.incarnations)
        self.cversion += 1

    def restart_hbase_master(self) -> None:
        """It writes every peer's znode anew, with the same content."""
        if self.peer is not None:
            self.blemishes.add("peer written anew")
            self.peer.version += 1
            self.peer.modified_ms = self.now

    def in_force(self, server: MasterServer) -> dict[str, tuple[int, int | None, int, int]]:
        """What a region server's tracker finds out about its peers; no version while the znode says something else."""
        if self.peer is None or not server.knows_peer or server.loaded is None:
            return {}
        incarnation, configuration, narrow = server.loaded
        version = self.peer.version if narrow == self.peer.narrow else None
        return {PEER: (incarnation, version, configuration, int(narrow))}

    def introduce(self, server: MasterServer) -> None:
        """A region server starts the peer with its current WAL: what is in earlier ones is not shipped."""
        server.knows_peer = True
        self.refresh(server)
        for peer in self.peer_ids():
            self.queues[server.name, peer] = [Position(server.wal)]

    def peer_ids(self) -> Iterable[str]:
        """Of the peers that its region servers ship to."""
        return (PEER,)

    def remove_peer(self) -> None:
        """`remove_peer`: all its queues are deleted."""
        self.peer = None
        self.queues.clear()
        for server in self.masters:
            server.knows_peer, server.loaded = False, None
        self.blemishes.add("peer removed")

    def batch(self, key: tuple[str, str], most: int) -> tuple[Position, list[Entry]] | None:
        """What a source would ship next; None: nothing. WALs that are done are dropped, a claimed queue with them."""
        positions = self.queues[key]
        while positions:
            first = positions[0]
            todo = first.wal.entries[first.at : first.wal.readable][:most]
            if todo:
                return first, todo
            if not first.wal.closed:
                return None
            positions.pop(0)
        if "-" in key[1]:
            del self.queues[key]
        return None

    def ship(self, key: tuple[str, str], sink: SlaveServer, dice: Dice) -> None:
        """One request, and what becomes of it."""
        found = self.batch(key, 1 + dice.below(6))
        if found is None:
            return
        position, todo = found
        shipped = self.filtered(todo, key[0])
        outcome = dice.pick(("done",) * 5 + ("no answer", "half", "late", "refused"))
        if not self.can_apply(shipped):
            outcome = "refused"
        if outcome in ("done", "no answer"):
            self.apply(shipped)
            if sink.tracker.clock() < self.created_ms:
                self.blemishes.add("arrived before the table was made, by a clock that is behind")
            sink.tracker.batch_applied(shipped, lambda: self.fates(dice))
        elif outcome == "half":
            self.apply(shipped[: dice.below(len(shipped) + 1)])
        elif outcome == "late":
            self.late_requests.append((sink, shipped))
        if outcome == "done":
            position.at += len(todo)
        self.say(
            f"ship {key} {outcome} {[(e.region, sorted(e.families), e.seq) for e in shipped]} to {sink.tracker.name}"
        )

    def filtered(self, entries: list[Entry], holder: str) -> list[Entry]:
        """What a region server ships of them now, by family (NamespaceTableCfWALEntryFilter)."""
        server = next(server for server in self.masters if server.name == holder)
        shipped = frozenset("f") if server.loaded is not None and server.loaded[2] else WHOLE
        parts = (replace(entry, families=entry.families & shipped) for entry in for_slave(entries))
        return [part for part in parts if part.families]

    def apply(self, entries: list[Entry]) -> None:
        """The slave's tables have them for good."""
        for entry in entries:
            self.arrived[entry.number] = self.arrived.get(entry.number, frozenset()) | entry.families
            known = self.outstanding.get(entry.number)
            if known is not None and self.has_arrived(known):
                del self.outstanding[entry.number]

    def has_arrived(self, entry: Entry, families: frozenset[str] = WHOLE) -> bool:
        """Whether the slave has all that an entry was written with of these families."""
        return entry.written & families <= self.arrived.get(entry.number, frozenset())

    def set_narrow(self, narrow: bool) -> None:
        """`set_peer_tableCFs`: the znode; region servers load it one by one (`refresh`)."""
        assert self.peer is not None
        self.peer.narrow, self.peer.changes = narrow, self.peer.changes + 1
        self.peer.version, self.peer.modified_ms, self.peer.changed_ms = self.peer.version + 1, self.now, self.now
        self.blemishes.add("peer narrowed")

    def refresh(self, server: MasterServer) -> None:
        """A region server loads the peer's configuration."""
        if self.peer is not None and server.knows_peer:
            server.loaded = (self.peer.incarnation, self.peer.changes, self.peer.narrow)

    def refresh_all(self) -> None:
        """HBase's procedure is done, which it waits for before another change."""
        for server in self.masters:
            self.refresh(server)

    def is_refreshed(self) -> bool:
        """Whether all servers that HBase knows have the last change."""
        peer = self.peer
        return peer is None or all(
            server.loaded == (peer.incarnation, peer.changes, peer.narrow)
            for server in self.living()
            if server.session and server.knows_peer
        )


def for_slave(entries: list[Entry]) -> list[Entry]:
    """Without those that the slave has consumed already (ClusterMarkingEntryFilter)."""
    return [entry for entry in entries if entry.via != SLAVE_VIA]
