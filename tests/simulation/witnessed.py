"""A master without trackers, its slave, and a witness: a small model in random steps, driven through the tool's rules.

What HBase does is from the 2.6.1 sources (ReplicationSourceManager, ReplicationSourceShipper, AddPeerProcedure). Every
write is durable at once: what is appended and not acknowledged is not modelled here.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from status_tool.errors import ConfigurationError
from status_tool.gather import queue_backlog
from status_tool.gather.measured_queues import Measured
from status_tool.rules import witnessed
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.runs.question import SideFacts, question_of
from status_tool.sources.arrivals import ArrivalKey, Arrivals, Entries, WitnessSource
from status_tool.sources.codec import following
from status_tool.sources.replication_queues import Queue, Queues, Wal
from status_tool.sources.wals import Extent
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import cluster_bytes, origin_id, via_id
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import Scope, TableFilter
from status_tool.vocabulary.verdicts import Verdict
from tests.judgement import verify_rows
from tests.simulation.dice import Dice
from tests.simulation.steps import BrokenPromise

MASTER_ID, SLAVE_ID, WITNESS_ID = (str(UUID(int=number)) for number in (1, 2, 3))
SLAVE, WITNESS = "1", "w"
START_MS = 1_000_000_000
OFFSETS = (0, 9_000, -14_000, 20_000)
MOST_SERVERS = 4
Row = dict[str, Any]
Kept = tuple[ArrivalKey, int, int, int, int]
"""An entry in the witness's folder: first and last sequence id, lowest and highest write time of the run it is in."""


@dataclass(eq=False)
class Entry:
    """A WAL entry."""

    table: str
    region: str
    seq: int
    write_ms: int
    families: frozenset[str]
    scoped: frozenset[str]
    """Those of them that had the scope 1 when it was written."""
    acked: int


@dataclass(eq=False)
class File:
    """A WAL."""

    name: str
    entries: list[Entry] = field(default_factory=list)
    closed: bool = False


@dataclass(eq=False)
class Position:
    """A WAL in a queue."""

    file: File
    at: int = 0


@dataclass(eq=False)
class Server:
    """A region server of the master."""

    name: str
    offset: int
    file: File
    live: bool = True
    split: bool = False
    knows: dict[str, Peer] = field(default_factory=dict)
    narrow: dict[str, bool] = field(default_factory=dict)
    """By peer, whether it ships family `f` only, as this server has loaded it."""


@dataclass(eq=False)
class Peer:
    """A peer's znode, and its queues by holder and id."""

    id: str
    incarnation: int
    created_ms: int
    modified_ms: int
    version: int = 0
    narrow: bool = False
    queues: dict[tuple[str, str], list[Position]] = field(default_factory=dict)


@dataclass(eq=False)
class Table:
    """A table of both clusters; family `g` may get its scope later."""

    name: str
    created_ms: int
    scopes: dict[str, int]
    altered_ms: int | None = None
    opened: bool = True
    """Whether its regions are open with its descriptor."""
    regions: dict[str, int] = field(default_factory=dict)
    """Creation by region."""


class World:
    """All of it, and the truth."""

    def __init__(self) -> None:
        self.now, self.numbers = START_MS, 0
        self.servers: list[Server] = []
        self.peers: dict[str, Peer] = {}
        self.tables: dict[str, Table] = {}
        self.host: dict[str, Server] = {}
        self.next_seq: dict[str, int] = {}
        self.written: list[Entry] = []
        self.arrived: dict[Entry, frozenset[str]] = {}
        self.singles: dict[tuple[str, str, str], dict[int, int]] = defaultdict(dict)
        """Of the slave's state table: write times by sequence id, by table, region and family."""
        self.first_arrivals: dict[str, int] = {}
        self.folder: list[Kept] = []
        self.acknowledged = 0
        """How much of it ZooKeeper says is acknowledged."""
        self.backup: list[Kept] = []
        self.blemishes: set[str] = set()
        for _ in range(2):
            self.start()
        for name in (WITNESS, SLAVE):
            self.add_peer(name)
            self.introduce_all()
        self.create_table()
        self.advance(REFRESHED_MS)
        self.create_table()

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def advance(self, millis: int) -> None:
        """Time goes by; what HBase brings to all servers within a minute is there by then."""
        self.now += millis
        for peer in self.peers.values():
            if self.now - peer.modified_ms >= REFRESHED_MS:
                for server in self.live():
                    self.introduce(server, peer)
        for table in self.tables.values():
            if table.altered_ms is not None and self.now - table.altered_ms >= witnessed.REOPENED_MS:
                table.opened = True

    def live(self) -> list[Server]:
        return [server for server in self.servers if server.live]

    # Servers

    def start(self) -> None:
        """A new region server, which knows all peers before its first WAL."""
        self.advance(1)
        name = f"m{self.number()},1,{self.now}"
        server = Server(name, OFFSETS[len(self.servers) % 4], File(f"{name}.{self.now}"))
        self.servers.append(server)
        for peer in self.peers.values():
            self.introduce(server, peer)

    def roll(self, server: Server) -> None:
        """A new WAL, in each queue before it is used."""
        server.file.closed = True
        server.file = File(f"{server.name}.{self.now}.{self.number()}")
        for peer in server.knows.values():
            peer.queues[server.name, peer.id].append(Position(server.file))

    def crash(self, server: Server) -> None:
        """It is gone; its regions are not open until its WALs are split."""
        server.live, server.file.closed = False, True

    def split(self, server: Server) -> None:
        """Its regions open elsewhere."""
        server.split = True
        for region, host in self.host.items():
            if host is server:
                self.host[region] = self.live()[0]
                self.next_seq[region] += 2

    def claim(self, peer: Peer, key: tuple[str, str], claimer: Server) -> None:
        """One transaction."""
        peer.queues[claimer.name, f"{key[1]}-{key[0]}"] = peer.queues.pop(key)

    # Peers

    def add_peer(self, name: str) -> None:
        """Its znode; servers get to know it one by one."""
        self.peers[name] = Peer(name, self.number(), self.now, self.now)

    def introduce(self, server: Server, peer: Peer) -> None:
        """A server starts the peer with its current WAL, or loads its configuration."""
        if server.knows.get(peer.id) is not peer:
            server.knows[peer.id] = peer
            peer.queues[server.name, peer.id] = [Position(server.file)]
        server.narrow[peer.id] = peer.narrow

    def introduce_all(self) -> None:
        """The end of HBase's procedure."""
        for peer in self.peers.values():
            for server in self.live():
                self.introduce(server, peer)

    def remove_peer(self, name: str) -> None:
        """With its queues."""
        del self.peers[name]
        for server in self.servers:
            server.knows.pop(name, None)

    # Tables

    def create_table(self) -> None:
        """On both clusters."""
        self.advance(1)
        name = f"t{len(self.tables)}"
        table = self.tables[name] = Table(name, self.now, {"f": 1, "g": len(self.tables) % 2})
        self.open_region(table, f"{name}r")

    def open_region(self, table: Table, region: str, seq: int = 1) -> None:
        table.regions[region] = self.now
        self.host[region] = self.live()[self.number() % len(self.live())]
        self.next_seq[region] = seq

    def split_region(self, table: Table, region: str) -> None:
        """Two daughters; the janitor takes the parent away at once."""
        self.advance(1)
        del table.regions[region], self.host[region]
        for side in "ab":
            self.open_region(table, region + side, self.next_seq[region] + 1)

    def truncate_region(self, region: str) -> None:
        """It begins again, under its name, and its rows are gone."""
        self.next_seq[region] = 1
        self.written = [entry for entry in self.written if entry.region != region]

    def write(self, table: Table, region: str, families: frozenset[str]) -> None:
        """An entry, durable and acknowledged."""
        server = self.host[region]
        seq = self.next_seq[region]
        self.next_seq[region] += 1 + (seq % 5 == 0)
        scoped = frozenset(family for family in families if table.scopes[family] and (family == "f" or table.opened))
        entry = Entry(table.name, region, seq, self.now + server.offset, families, scoped, self.now)
        server.file.entries.append(entry)
        self.written.append(entry)

    # Replication

    def ship(self, peer: Peer, key: tuple[str, str], most: int, *, answered: bool) -> None:
        """One request; without an answer it is sent again. Nor is a witness there with less than it acknowledged."""
        if peer.id == WITNESS and len(self.folder) < self.acknowledged:
            return
        positions = peer.queues[key]
        while positions and positions[0].at == len(positions[0].file.entries) and positions[0].file.closed:
            positions.pop(0)
        if not positions and key[1] != peer.id:
            del peer.queues[key]
        if not positions:
            return
        holder = next(server for server in self.servers if server.name == key[0])
        first = positions[0]
        todo = first.file.entries[first.at : first.at + most]
        allowed = frozenset("f") if holder.narrow.get(peer.id) else frozenset("fg")
        for entry in todo:
            if entry.scoped & allowed:
                self.deliver(peer.id, entry, entry.scoped & allowed)
        if peer.id == WITNESS:
            self.acknowledged = max(self.acknowledged, len(self.folder))
        if answered:
            first.at += len(todo)

    def deliver(self, peer: str, entry: Entry, families: frozenset[str]) -> None:
        """To the witness's folder, or to the slave's tables and its state table."""
        if peer == WITNESS:
            key = ArrivalKey(entry.table, entry.region, (MASTER_ID,), tuple(sorted(families)))
            self.folder.append((key, entry.seq, entry.seq, entry.write_ms, entry.write_ms))
            return
        self.arrived[entry] = self.arrived.get(entry, frozenset()) | families
        self.first_arrivals.setdefault(entry.table, self.now)
        for family in families:
            self.singles[entry.table, entry.region, family][entry.seq] = entry.write_ms

    def prune(self, until_ms: int, regions: Collection[str]) -> None:
        """As `Arrivals.pruned` of the witness. Each entry stays, so that a folder is as long as it was."""
        settled = sorted(
            {one for one in self.folder if one[4] <= until_ms and one[0].region in regions},
            key=lambda one: (one[0].table, one[0].region, one[0].families, one[1], -one[2]),
        )
        runs = list[Kept]()
        for key, first, last, low, high in settled:
            if runs and runs[-1][0] == key and first <= runs[-1][2] + 1:
                _, begin, end, lowest, highest = runs[-1]
                runs[-1] = key, begin, max(end, last), min(low, lowest), max(high, highest)
            else:
                runs.append((key, first, last, low, high))
        of = {(run[0], seq): run for run in runs for seq in range(run[1], run[2] + 1)}
        known = set(settled)
        self.folder = [of[one[0], one[1]] if one in known else one for one in self.folder]

    def drain(self) -> None:
        """All that is in queues."""
        for server in self.servers:
            if not server.live and not server.split:
                self.split(server)
        claimer = self.live()[0]
        for peer in self.peers.values():
            for key in [key for key in peer.queues if not self.is_live(key[0])]:
                self.claim(peer, key, claimer)
            for key in list(peer.queues):
                for _ in range(1_000):
                    if key in peer.queues:
                        self.ship(peer, key, 1_000, answered=True)

    def is_live(self, name: str) -> bool:
        return any(server.name == name for server in self.live())

    # What the tool reads

    def measured(self) -> Measured:
        """Queues, and the lengths of their WALs."""
        queues = list[Queue]()
        extents = dict[str, Extent]()
        for peer in self.peers.values():
            for (holder, queue_id), positions in peer.queues.items():
                wals = tuple(Wal(one.file.name, one.at) for one in positions)
                queues.append(Queue(holder, self.is_live(holder), queue_id, wals))
                extents |= {one.file.name: Extent("", len(one.file.entries)) for one in positions}
        return Measured(self.now, Queues(tuple(queues), (), True), extents, frozenset())

    def peer_rows(self) -> list[Row]:
        """Of the peers' znodes."""
        ids = {SLAVE: SLAVE_ID, WITNESS: WITNESS_ID}
        left_out = {table: ["g"] for table in self.tables}
        details = [
            {
                **{"id": peer.id, "cluster_id": ids[peer.id], "cluster_key": f"zk:2181:/{peer.id}"},
                **{"enabled": True, "replicate_all": True, "incarnation": peer.incarnation},
                **{"exclude_table_cfs": left_out if peer.narrow else None, "version": peer.version},
                **{"created_ms": peer.created_ms, "modified_ms": peer.modified_ms},
            }
            for peer in self.peers.values()
        ]
        return [{"kind": "peer", "name": one["id"], "detail": json.dumps(one)} for one in details]

    def table_rows(self) -> Iterator[Row]:
        """Descriptors, ages and regions of the master."""
        for table in self.tables.values():
            detail: Row = {"families": {name: {"scope": scope} for name, scope in table.scopes.items()}}
            if table.altered_ms is not None:
                detail["altered_ms"] = table.altered_ms
            yield {"kind": "table", "table": table.name, "detail": json.dumps(detail)}
            yield {"kind": "fact", "table": table.name, "region": "", "state": "split", "region_id": table.created_ms}
            for region, region_id in table.regions.items():
                yield {"kind": "region", "table": table.name, "region": region, "region_id": region_id}


class _Folder(WitnessSource):
    """The witness's folder at one moment."""

    def __init__(self, held: list[Kept]) -> None:
        super().__init__({}, MASTER_ID, TableFilter())
        object.__setattr__(self, "held", held)

    def arrivals(self) -> Iterator[Arrivals]:
        found: dict[ArrivalKey, list[tuple[int, int, int, int]]] = defaultdict(list)
        for key, *run in self.held:  # type: ignore[attr-defined]
            found[key].append(tuple(run))
        yield {key: Entries.of(runs).as_set() for key, runs in found.items()}


def is_settled(unwitnessed: str) -> bool:
    """As `prune_witnesses` of `runs.write`."""
    return not unwitnessed


def is_same_peer(before: Mapping[str, Any], after: Mapping[str, Any] | None) -> bool:
    """As `_witnessed` of `gather.snapshot`."""
    return before == after


def read_folder(world: World, acknowledged: int) -> list[Kept]:
    """As `read_arrivals`, with the mark."""
    if len(world.folder) < acknowledged:
        raise ConfigurationError("less than was acknowledged")
    return list(world.folder)


class Observation:
    """One run of the tool on both clusters, read by read, with the world going on between them."""

    def __init__(self, world: World, patience: int, table: str) -> None:
        self.world, self.table = world, table
        self.cut_ms = world.now
        self.outcome: Outcome | None = None
        self.missing: list[Entry] = []
        self._steps = self._run(patience)

    def advance(self) -> bool:
        """The next read; True at the end."""
        return next(self._steps, "end") == "end"

    def _run(self, patience: int) -> Iterator[None]:
        world, cut_ms = self.world, self.cut_ms
        before = self._witness()
        if before is None:
            return
        mark = now = world.measured()
        why = ""
        while not queue_backlog.has_shipped_wals(mark, now, WITNESS):
            patience -= 1
            if not patience:
                why = "not shipped"
                break
            yield
            now = world.measured()
            if not queue_backlog.has_same_queues(mark, now, WITNESS):
                mark = now
        yield
        acknowledged = world.acknowledged
        rows = list(world.table_rows())
        yield
        peers, after = world.peer_rows(), self._witness()
        if not is_same_peer(before, after):
            why = "changed"
        yield
        try:
            source = _Folder(read_folder(world, acknowledged))
        except ConfigurationError:
            return
        ours = [*(row for batch in source.read(0) for row in batch.to_pylist()), *source.small_rows(), *rows, *peers]
        header = Header(
            "master",
            MASTER_ID,
            cut_ms,
            cut_ms,
            barrier_issued_ms=cut_ms,
            coverage_ms=witnessed.covered_since(before, 0),
            evidence="witnessed",
            half="hbase",
            witnesses=("store",),
            witness_peer=WITNESS,
            unwitnessed=why,
            cluster_key="zk:2181:/master",
        )
        yield
        if is_settled(why):
            world.prune(cut_ms - witnessed.SETTLED_MS, source.single_lives())
            yield
        self._judge(header, ours)

    def _witness(self) -> Mapping[str, Any] | None:
        details = [json.loads(row["detail"]) for row in self.world.peer_rows()]
        return next((one for one in details if one["id"] == WITNESS), None)

    def _judge(self, master: Header, ours: list[Row]) -> None:
        world = self.world
        if SLAVE not in world.peers or not any(row["kind"] == "peer" and row["name"] == SLAVE for row in ours):
            return
        known: dict[tuple[str, int, int], dict[int, tuple[int, int]]] = {}
        for row in ours:
            if row["kind"] == "segment":
                known.setdefault((row["region"], row["origin"], row["via"]), {})[row["seq"]] = (
                    row["prev"],
                    row["started_ms"],
                )
        slave = Header("slave", SLAVE_ID, world.now, world.now, half="hbase", cluster_key="zk:2181:/1")
        theirs = [*following(list(world_slave_rows(world)), known), *slave_tables(world)]
        self.missing = [
            entry
            for entry in world.written
            if entry.table == self.table and entry.acked <= self.cut_ms and lacks(world, entry)
        ]
        scope = Scope(check_hdfs=False, tables=frozenset((self.table,)))
        sides = SideFacts(master, tuple(ours), frozenset(world.tables)), SideFacts(slave, tuple(theirs))
        question = question_of(*sides, scope)
        self.outcome = verify_rows(ours, theirs, question.master, question.slave, question.scope, question.queues)
        if self.outcome.verdict is Verdict.COMPLETE and self.missing:
            raise BrokenPromise(f"complete, but missing: {self.missing[:3]}")


def lacks(world: World, entry: Entry) -> bool:
    """Whether the slave lacks cells of families that its peer ships now."""
    peer = world.peers[SLAVE]
    table = world.tables[entry.table]
    asked = {family for family, scope in table.scopes.items() if scope and not (peer.narrow and family == "g")}
    return bool(entry.families & asked - world.arrived.get(entry, frozenset()))


def world_slave_rows(world: World) -> Iterator[Row]:
    """The slave's segments, each of one entry."""
    for (table, region, family), singles in world.singles.items():
        via = via_id([cluster_bytes(MASTER_ID) or b""], family)
        for seq, write_ms in singles.items():
            yield {
                **{"kind": "segment", "table": table, "region": region, "origin": origin_id(MASTER_ID), "via": via},
                **{"prev": seq - 1, "seq": seq, "family": family, "first_ms": write_ms, "write_ms": write_ms},
                **{"recorded_ms": world.now, "started_ms": None},
            }


def slave_tables(world: World) -> Iterator[Row]:
    """Its tables, in custody, and its one server."""
    yield {
        **{"kind": "server", "origin": 9, "server": "s,1,1", "role": "r"},
        **{"live": True, "tracked": True, "echoed": True},
    }
    for table in world.tables:
        detail = {"families": {"f": {}, "g": {}}, "regions": 1, "arrived_ms": world.first_arrivals.get(table)}
        yield {"kind": "table", "table": table, "detail": json.dumps(detail)}


STEPS = {
    **{"write": 14, "ship": 16, "roll": 4, "crash": 2, "split": 4, "claim": 5, "start": 2, "move": 1},
    **{"create": 2, "alter": 1, "split_region": 1, "truncate_region": 1},
    **{"remove_slave": 1, "add_slave": 3, "remove_witness": 1, "add_witness": 3, "introduce": 4, "narrow": 1},
    **{"restart_master": 1, "backup": 2, "observe": 6, "look": 12, "wait": 2},
}
_TABLE = [name for name, weight in STEPS.items() for _ in range(weight)]


class Run:
    """A world and the tool's runs in it."""

    def __init__(self, without: frozenset[str] = frozenset()) -> None:
        self.world = World()
        self.without = without
        self.observations: list[Observation] = []
        self.verdicts: dict[str, int] = defaultdict(int)

    def step(self, dice: Dice) -> None:
        """One step, decided by one number."""
        name = _TABLE[dice.below(len(_TABLE))]
        self.world.advance(dice.pick((1, 40, 700, 9_000)))
        if name not in self.without:
            getattr(self, f"_{name}")(dice)

    def _write(self, dice: Dice) -> None:
        world = self.world
        table = dice.pick(list(world.tables.values()))
        regions = [one for one in table.regions if world.host[one].live]
        for _ in range(1 + dice.below(3) if regions else 0):
            world.write(table, dice.pick(regions), frozenset(dice.pick(("f", "g", "fg"))))

    def _ship(self, dice: Dice) -> None:
        world = self.world
        keys = [(peer, key) for peer in world.peers.values() for key in peer.queues if world.is_live(key[0])]
        if keys:
            peer, key = dice.pick(keys)
            world.ship(peer, key, 1 + dice.below(6), answered=bool(dice.below(4)))

    def _roll(self, dice: Dice) -> None:
        self.world.roll(dice.pick(self.world.live()))

    def _crash(self, dice: Dice) -> None:
        if len(self.world.live()) > 1:
            self.world.crash(dice.pick(self.world.live()))

    def _split(self, dice: Dice) -> None:
        if dead := [server for server in self.world.servers if not server.live and not server.split]:
            self.world.split(dice.pick(dead))

    def _claim(self, dice: Dice) -> None:
        world = self.world
        done = {server.name for server in world.servers if server.split}
        keys = [(peer, key) for peer in world.peers.values() for key in peer.queues if key[0] in done]
        if keys:
            world.claim(*dice.pick(keys), dice.pick(world.live()))

    def _start(self, dice: Dice) -> None:
        if len(self.world.live()) < MOST_SERVERS:
            self.world.start()

    def _move(self, dice: Dice) -> None:
        region = dice.pick(list(self.world.host))
        if self.world.host[region].live:
            self.world.host[region] = dice.pick(self.world.live())
            self.world.next_seq[region] += 1

    def _create(self, dice: Dice) -> None:
        if len(self.world.tables) < 6:
            self.world.advance(dice.pick((1, REFRESHED_MS)))
            self.world.create_table()

    def _alter(self, dice: Dice) -> None:
        """The scope of a family is raised; its regions are opened anew some time later."""
        table = dice.pick(list(self.world.tables.values()))
        if table.scopes["g"] == 0:
            table.scopes["g"], table.altered_ms, table.opened = 1, self.world.now, False

    def _split_region(self, dice: Dice) -> None:
        table = dice.pick(list(self.world.tables.values()))
        regions = [one for one in table.regions if self.world.host[one].live]
        if regions and len(table.regions) < 3:
            self.world.split_region(table, dice.pick(regions))

    def _truncate_region(self, dice: Dice) -> None:
        table = dice.pick(list(self.world.tables.values()))
        if regions := [one for one in table.regions if self.world.host[one].live]:
            self.world.truncate_region(dice.pick(regions))

    def _remove_slave(self, dice: Dice) -> None:
        if SLAVE in self.world.peers:
            self.world.remove_peer(SLAVE)

    def _add_slave(self, dice: Dice) -> None:
        if SLAVE not in self.world.peers:
            self.world.add_peer(SLAVE)

    def _remove_witness(self, dice: Dice) -> None:
        if WITNESS in self.world.peers:
            self.world.remove_peer(WITNESS)

    def _add_witness(self, dice: Dice) -> None:
        if WITNESS not in self.world.peers:
            self.world.add_peer(WITNESS)

    def _introduce(self, dice: Dice) -> None:
        if self.world.peers:
            self.world.introduce(dice.pick(self.world.live()), dice.pick(list(self.world.peers.values())))

    def _narrow(self, dice: Dice) -> None:
        if self.world.peers:
            peer = dice.pick(list(self.world.peers.values()))
            if self.world.now - peer.modified_ms >= REFRESHED_MS:
                peer.narrow, peer.modified_ms, peer.version = not peer.narrow, self.world.now, peer.version + 1

    def _restart_master(self, dice: Dice) -> None:
        """It writes every peer anew, once the procedures are done."""
        self.world.introduce_all()
        for peer in self.world.peers.values():
            peer.modified_ms, peer.version = self.world.now, peer.version + 1

    def _backup(self, dice: Dice) -> None:
        """A backup of the folder is taken, or restored: the witness does not start then."""
        if dice.below(3):
            self.world.backup = list(self.world.folder)
        elif dice.once_in(4):
            self.world.folder = list(self.world.backup)

    def _wait(self, dice: Dice) -> None:
        self.world.advance(dice.pick((61_000, 700_000)))

    def _observe(self, dice: Dice) -> None:
        if len(self.observations) < 2:
            table = dice.pick(list(self.world.tables))
            self.observations.append(Observation(self.world, 1 + dice.below(6), table))

    def _look(self, dice: Dice) -> None:
        if self.observations:
            observation = dice.pick(self.observations)
            for _ in range(1 + dice.below(8)):
                if observation.advance():
                    self.observations.remove(observation)
                    self.note(observation)
                    return

    def note(self, observation: Observation) -> None:
        self.verdicts[str(observation.outcome.verdict) if observation.outcome else "no verdict"] += 1
        self.verdicts["judged while something was missing"] += bool(observation.missing)

    def ask(self, table: str) -> Outcome | None:
        """A run of the tool while nothing else happens."""
        observation = Observation(self.world, 2, table)
        while not observation.advance():
            pass
        self.note(observation)
        return observation.outcome
