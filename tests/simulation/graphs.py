"""A model of up to four clusters that replicate to one another, and the tool's own search of paths through them.

Each cluster is a `World` that writes, ships and applies; what can happen between two of them is that module's. Here it
is what takes three: entries that pass through others, filters that differ by edge, and sides read one after another.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from status_tool.clients.config import Settings
from status_tool.rules.graph import Reach, Station
from status_tool.rules.lost_wals import LostWal
from status_tool.runs.graph_check import NamedCluster, PathsAsked, PathsFound, ReadSide, _Desk, _Search
from status_tool.runs.question import SideFacts, question_of
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.ids import cluster_bytes
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import Scope
from tests.judgement import no_spark, verify_rows
from tests.simulation.dice import STEP_BYTES, Dice
from tests.simulation.observer import Observation, Row
from tests.simulation.steps import BrokenPromise
from tests.simulation.store import APPLIED
from tests.simulation.tracker import TABLE, VIA_IDS, WHOLE, Entry, Recorder
from tests.simulation.world import MAX_SERVERS, MasterServer, Peer, Position, Wal, World

NAMES = "abcd"
IDS = {name: f"00000000-0000-4000-8000-00000000000{name}" for name in NAMES}
PASSED = {
    frozenset(some): 16 + number
    for number, some in enumerate(some for size in range(1, 5) for some in combinations(NAMES, size))
} | {frozenset[str](): 0}
"""The via of entries that have passed these clusters."""
VIA_IDS.update({via: b"".join(cluster_bytes(IDS[one]) or b"" for one in sorted(some)) for some, via in PASSED.items()})
VIA_IDS[0] = None
NAMES_PASSED = {via: some for some, via in PASSED.items()}
SHAPES = ("ab bc ca", "ab bc", "ab bc cd", "ab ac", "ab ac ad", "ac bc", "ad bd cd", "ab ba", "ab bc cd da", "ab ac bc")
"""Cycles, chains, stars, fan-in, and a triangle; others are drawn edge by edge."""
FILTERS = (WHOLE, WHOLE, WHOLE, frozenset("f"), frozenset("g"))
SWITCHES = ("crash", "switch", "filter", "lose_wal", "renew")
"""Steps that most worlds are spared of, so that some end complete."""
STEPS_A_RUN = 150
LONG_MS = 70_000
LIVE = cast("Settings", object())


@dataclass
class Link(Peer):
    """A peer that leads from one cluster to another, and the families that it ships."""

    target: str = ""
    families: frozenset[str] = WHOLE


class Place(World):
    """A cluster of a graph."""

    def __init__(self, name: str, links: dict[str, Link], began: Callable[[str, Entry], None]) -> None:
        self.links, self._began = links, began
        super().__init__(name, tuple(f"{name}{number}" for number in range(2)))

    def peer_ids(self) -> Iterable[str]:
        return self.links

    def in_force(self, server: MasterServer) -> dict[str, tuple[int, int | None, int, int]]:
        """A change of a peer is loaded at once: what comes of others is a matter of two clusters."""
        return {peer: (link.incarnation, link.version, link.changes, link.changes) for peer, link in self.links.items()}

    def acknowledge(self, entry: Entry) -> None:
        """A client may rely on it, or the sink that wrote it."""
        entry.acked = self.now
        if not entry.via:
            self._began(self.name, entry)


class Look(Observation):
    """One side of a cluster."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, None, None)
        self.place, self.master_id, self.slave_id = place, IDS[place.name], IDS[place.name]

    def side(self, side: str) -> Generator[None, None, tuple[Header, list[Row]]]:
        """Its header and rows, one read a step."""
        return (yield from self._master() if side == MASTER else self._slave())

    def _peers(self) -> list[Row]:
        return [{"kind": "peer", "name": one, "detail": _detail(one, link)} for one, link in self.place.links.items()]


def _detail(peer: str, link: Link) -> str:
    part = {} if link.families == WHOLE else {"replicate_all": False, "table_cfs": {TABLE: sorted(link.families)}}
    shown = {name: value for name, value in vars(link).items() if name not in ("target", "families")}
    return json.dumps({"id": peer, "cluster_id": IDS[link.target], **shown, **part})


@dataclass(frozen=True)
class Seen(ReadSide):
    """A side that was read, without a file."""

    rows: tuple[Row, ...] = ()

    @property
    def facts(self) -> SideFacts:
        return SideFacts(self.header, self.rows, frozenset({TABLE} if self.header.side == MASTER else ()))

    def lost_wals(self, peer_id: str) -> list[LostWal]:
        """Said in words only; the streams judge."""
        return []


class Reading(_Desk):
    """Reads sides of the model's clusters while other things happen in it."""

    def __init__(self, asked: PathsAsked, graph: Graph, silent: frozenset[str], disturb: Callable[[], None]) -> None:
        super().__init__(asked, Path(), lambda _: None)
        self.graph, self.silent, self.disturb = graph, silent, disturb
        self.held: dict[str, dict[int, frozenset[str]]] = {}
        """What each cluster had when its side as a slave had been read last."""

    def read(self, side: str, number: int, names: Iterable[str]) -> None:
        """One step of one of them at a time."""
        self.failures |= {(name, side): "it is down" for name in names if name in self.silent}
        looks = {name: Look(self.graph.places[name]).side(side) for name in sorted({*names} - self.silent)}
        while looks:
            name = self.graph.random.choice(list(looks))
            try:
                next(looks[name])
            except StopIteration as read:
                del looks[name]
                self.keep(name, side, number, *read.value)
            self.disturb()

    def keep(self, name: str, side: str, number: int | None, header: Header, rows: list[Row]) -> None:
        """None: a file, which has no round."""
        header = replace(header, read_until_ms=self.graph.now)
        found = Seen(Path(), header, number, rows=tuple(rows))
        (self.masters if side == MASTER else self.slaves)[name, number or 0] = found
        if side == SLAVE:
            self.held[name] = dict(self.graph.held[name])

    def read_files(self) -> None:
        """Sides in any order, each to its end, some with a while between them; of some clusters one side only."""
        dice = self.graph.random
        sides = [(name, side) for name in self.graph.places for side in (MASTER, SLAVE)]
        dice.shuffle(sides)
        given = set[str]()
        for name, side in sides:
            if name not in given or dice.randrange(12):
                self.keep(name, side, None, *self._whole(Look(self.graph.places[name]).side(side)))
            given.add(name)
            self.graph.pass_time(dice.choice((1, 1_000, LONG_MS)))

    def _whole(self, look: Generator[None, None, tuple[Header, list[Row]]]) -> tuple[Header, list[Row]]:
        while True:
            try:
                next(look)
            except StopIteration as read:
                header, rows = read.value
                return header, rows
            self.disturb()

    def _station(self, cluster: NamedCluster) -> Station:
        if cluster.name in self.silent:
            return Station(cluster.name, IDS[cluster.name])
        return super()._station(cluster)

    def written(self, stations: Sequence[Station]) -> dict[str, Any]:
        """Not asked for."""
        return {}

    def lost(self, stations: Sequence[Station]) -> dict[str, Any]:
        """Not asked for."""
        return {}

    def returned(self) -> list[str]:
        """HBase ships no entry to a cluster that it has passed."""
        return []


class Searching(_Search):
    """Judges sides without files and Spark."""

    def _compared(self, master: ReadSide, slave: ReadSide, scope: Scope) -> Outcome:
        assert isinstance(master, Seen)
        assert isinstance(slave, Seen)
        question = question_of(master.facts, slave.facts, scope)
        return question.answered(
            verify_rows(master.rows, slave.rows, question.master, slave.header, question.scope, question.queues)
        )


@dataclass
class Written:
    """A client's write."""

    began: str
    families: frozenset[str]
    acked: int


class Graph:
    """Clusters, what happens to them, and the truth: which writes each of them has applied."""

    def __init__(self, seed: int, edges: str | None = None) -> None:
        """`edges` as `ab bc:f`, of which the latter ships family `f` alone; None: they are drawn."""
        self.random = random.Random(seed)
        self.seen: Counter[str] = Counter()
        self.blemishes: set[str] = set()
        self.writes: dict[int, Written] = {}
        self.lost: set[Wal] = set()
        self.log: list[str] = []
        self.without = {name for name in SWITCHES if self.random.randrange(3)}
        edges = edges if edges is not None else self._drawn()
        names = sorted({*edges} & {*NAMES}) or ["a", "b"]
        self.places: dict[str, Place] = {}
        for name in names:
            leading = [edge.partition(":") for edge in edges.split() if edge[0] == name]
            links = {
                str(number): Link(0, target=edge[1], families=frozenset(families or WHOLE))
                for number, (edge, _, families) in enumerate(leading, 1)
            }
            self.places[name] = Place(name, links, self.began)
        self.held: dict[str, dict[int, frozenset[str]]] = {name: {} for name in names}
        for place in self.places.values():
            place.applied_regions = tuple(region for one in self.places.values() for region in one.regions)
        self.now = max(place.now for place in self.places.values())
        self.pass_time(LONG_MS)
        self.beat()
        self.say(edges)

    def _drawn(self) -> str:
        dice = self.random
        edges = dice.choice(SHAPES).split()
        if dice.randrange(3) == 0:
            names = NAMES[: dice.choice((3, 4))]
            edges = [one + other for one in names for other in names if one != other and dice.randrange(3) == 0]
        has_filters = dice.randrange(3) == 0
        return " ".join(f"{edge}:{''.join(sorted(dice.choice(FILTERS) if has_filters else WHOLE))}" for edge in edges)

    # What happens

    def say(self, what: str) -> None:
        """Into the log that a failure shows."""
        self.log.append(f"{self.now:>12} {what}")

    def pass_time(self, millis: int) -> None:
        """In all clusters alike."""
        self.now += millis
        for place in self.places.values():
            place.advance(self.now - place.now)

    def began(self, name: str, entry: Entry) -> None:
        """A client's write is acknowledged."""
        self.writes[entry.number] = Written(name, entry.written, self.now)

    def step(self, *, reading: bool = False) -> None:
        """One of them, drawn; while the tool reads no filter changes, since what a path carries is as it was read."""
        self.seen["steps"] += 1
        name = self.random.choice(_TABLE)
        self.pass_time(self.random.choice((1, 3, 40, 700, 9_000)))
        if name not in self.without and not (reading and name == "filter"):
            getattr(self, f"_{name}")(Dice(self.random.getrandbits(8 * STEP_BYTES)))

    def beat(self) -> None:
        """Every tracker does some rounds."""
        for tracker in self._trackers():
            for _ in range(20):
                tracker.tick(lambda: APPLIED)

    def _trackers(self) -> list[Recorder]:
        found: list[Recorder] = []
        for place in self.places.values():
            found += [s.tracker for s in place.living() if s.tracker and s.session]
            found += [sink.tracker for sink in place.sinks()]
        return found

    def _place(self, dice: Dice) -> Place:
        return dice.pick(list(self.places.values()))

    def _write(self, dice: Dice) -> None:
        place = self._place(dice)
        region = dice.pick(place.regions)
        server = place.host[region]
        if server.running and not server.split:
            for _ in range(1 + dice.below(3)):
                self.write(place, region, frozenset(dice.pick(("fg", "fg", "f", "g"))))
            if dice.below(3):
                place.sync(server)

    def write(self, place: Place, region: str, families: frozenset[str] = WHOLE) -> None:
        """An entry, with one number wherever it gets. Not synced."""
        self.seen["writes"] += 1
        place.append(region, 0, 0, families).number = self.seen["writes"]
        self.say(f"write {self.seen['writes']} to {region}")

    def _sync(self, dice: Dice) -> None:
        place = self._place(dice)
        place.sync(dice.pick(place.living()))

    def _roll(self, dice: Dice) -> None:
        place = self._place(dice)
        if servers := [server for server in place.living() if not server.split]:
            place.roll(dice.pick(servers), None)

    def _tick(self, dice: Dice) -> None:
        tracker = dice.pick(self._trackers())
        for _ in range(1 + dice.below(6)):
            tracker.tick(lambda: APPLIED)

    def _beat(self, dice: Dice) -> None:
        self.beat()

    def _start(self, dice: Dice) -> None:
        place = self._place(dice)
        if len(place.living()) < MAX_SERVERS:
            server = place.start_master(0, tracked=True)
            self._settle(place)
            assert server.tracker is not None
            for _ in range(20):
                server.tracker.tick(lambda: APPLIED)

    def _settle(self, place: Place) -> None:
        """A start takes a while."""
        self.pass_time(max(0, place.now - self.now))

    def _crash(self, dice: Dice) -> None:
        place = self._place(dice)
        servers = [server for server in place.living() if server.session]
        if len(servers) > 1:
            server = dice.pick(servers)
            place.crash(server, dice.below(3))
            self.say(f"crash {server.name}")

    def _expire(self, dice: Dice) -> None:
        for place in self.places.values():
            for server in place.masters:
                if not server.running and server.session:
                    server.session, server.gone_ms = False, place.now

    def _split(self, dice: Dice) -> None:
        place = self._place(dice)
        if servers := [server for server in place.masters if not server.session and not server.split]:
            place.split(dice.pick(servers), dice.below(3))
            self.blemishes |= place.blemishes

    def _claim(self, dice: Dice) -> None:
        place = self._place(dice)
        split = {server.name for server in place.masters if server.split}
        keys = [key for key in place.queues if key[0] in split]
        claimers = [server for server in place.living() if server.session]
        if keys and claimers:
            place.claim(dice.pick(claimers), dice.pick(keys))

    def _switch(self, dice: Dice) -> None:
        """A peer is disabled or enabled."""
        if links := [link for place in self.places.values() for link in place.links.values()]:
            link = dice.pick(links)
            link.enabled = not link.enabled

    def _filter(self, dice: Dice) -> None:
        if links := [link for place in self.places.values() for link in place.links.values()]:
            link = dice.pick(links)
            link.families = dice.pick(FILTERS)
            link.changes, link.version = link.changes + 1, link.version + 1
            link.modified_ms = link.changed_ms = self.now
            self.blemishes.add("filter changed")
            self.say(f"a peer to {link.target} ships {sorted(link.families)}")

    def _lose_wal(self, dice: Dice) -> None:
        """A closed one that queues still need is nowhere any more: they stand still, until their peers are renewed."""
        queued = [
            position.wal
            for place in self.places.values()
            for positions in place.queues.values()
            for position in positions
            if position.wal.closed and position.at < position.wal.readable
        ]
        if queued:
            wal = dice.pick(queued)
            self.lost.add(wal)
            self.blemishes.add("WAL lost")
            self.say(f"{wal.name} lost")

    def _renew(self, dice: Dice) -> None:
        """A peer is removed and added again; its queues begin with the WALs that are written now."""
        place = self._place(dice)
        if place.links:
            peer = dice.pick(list(place.links))
            link = place.links[peer]
            for key in [key for key in place.queues if key[1].partition("-")[0] == peer]:
                del place.queues[key]
            place.queues |= {(server.name, peer): [Position(server.wal)] for server in place.living()}
            link.incarnation, link.version, link.changes = link.incarnation + 1, 0, link.changes + 1
            link.created_ms = link.modified_ms = self.now
            place.cversion += 1
            self.blemishes.add("peer added again")
            self.say(f"peer {peer} of {place.name} is removed and added")

    def _ship(self, dice: Dice) -> None:
        place = self._place(dice)
        keys = [key for key in place.queues if any(one.name == key[0] and not one.split for one in place.living())]
        if keys:
            key = dice.pick(keys)
            if place.links[key[1].partition("-")[0]].enabled:
                self._request(place, key, dice, 1 + dice.below(6))

    def _request(self, place: Place, key: tuple[str, str], dice: Dice, most: int) -> bool:
        """One request of a source; whether there was anything to ship, and it went well."""
        found = place.batch(key, most)
        if found is None or found[0].wal in self.lost:
            return False
        position, todo = found
        link = place.links[key[1].partition("-")[0]]
        target = self.places[link.target]
        parts = [replace(one, families=one.families & link.families) for one in todo]
        shipped = [one for one in parts if one.families and target.name not in _passed(one)]
        outcome = dice.pick(("done",) * 5 + ("no answer", "half"))
        if outcome == "half":
            self._apply(place, target, shipped[: dice.below(len(shipped) + 1)])
            return False
        if not self._apply(place, target, shipped):
            return False
        dice.pick(target.sinks()).tracker.batch_applied(shipped, lambda: APPLIED)
        if outcome == "done":
            position.at += len(todo)
            self.say(f"{place.name} to {target.name}: {[one.number for one in shipped]}")
        return outcome == "done"

    def _apply(self, place: Place, target: Place, entries: Sequence[Entry]) -> bool:
        """The sink writes them to its own tables, whence they are shipped on; it fails where a region is not open."""
        for entry in entries:
            region = target.regions[place.regions.index(entry.region)]
            host = target.host[region]
            if not host.running or host.split or not host.session:
                return False
            again = target.append(region, PASSED[_passed(entry) | {place.name}], 0, entry.families)
            again.number = entry.number
            target.sync(host)
            held = self.held[target.name]
            held[entry.number] = held.get(entry.number, frozenset()) | entry.families
        return True

    # The tool

    def ask_at_random(self) -> None:
        """One run of `paths`, live or from files, while other things happen, and some clusters may be down."""
        dice = self.random
        is_live = dice.randrange(4) > 0
        silent = frozenset(name for name in self.places if is_live and dice.randrange(10) == 0)
        self.ask(is_live=is_live, silent=silent, disturb=self._disturb)

    def ask(
        self,
        *,
        is_live: bool = True,
        silent: frozenset[str] = frozenset(),
        disturb: Callable[[], None] | None = None,
        desk: type[Reading] = Reading,
    ) -> PathsFound:
        """One run of `paths`; only the trackers' rounds come between its reads if nothing else is given."""
        clusters = tuple(NamedCluster(name, LIVE if is_live else None) for name in self.places)
        asked = PathsAsked(clusters, Scope(check_hdfs=False, ignore_later_writes=True))
        reading = desk(asked, self, silent, disturb or self.beat)
        links = {(name, link.target): link.families for name, p in self.places.items() for link in p.links.values()}
        self.say(f"asked {'live' if is_live else 'of files'}, without {sorted(silent)}")
        if is_live:
            reading.read_first()
        else:
            reading.read_files()
        found = Searching(asked, reading, lambda _: None, no_spark).run()
        self._check(found, reading, links)
        return found

    def _disturb(self) -> None:
        if self.random.randrange(3) == 0:
            self.step(reading=True)
        if self.random.randrange(3) == 0:
            self.beat()

    def _check(self, found: PathsFound, desk: Reading, links: dict[tuple[str, str], frozenset[str]]) -> None:
        """Nothing that began on a row's cluster by its cut, and that any peers bring on, lacks in a complete cell."""
        for source, row in found.matrix.items():
            for target, cell in row.items():
                self.seen[f"{cell.reach}"] += 1
                if (source, 0) not in desk.masters or target not in desk.held:
                    if cell.reach is Reach.COMPLETE:
                        raise BrokenPromise(f"complete from {source} to {target}, which was not read")
                    continue
                cut, held = desk.masters[source, 0].header.cut_ms, desk.held[target]
                carried = frozenset(family for family in WHOLE if target in _reached(source, family, links))
                missing = [
                    number
                    for number, one in self.writes.items()
                    if one.began == source
                    and one.acked <= cut
                    and one.families & carried - held.get(number, frozenset())
                ]
                self.seen["judged while something was missing"] += bool(missing)
                if cell.reach is Reach.COMPLETE:
                    self.seen["complete by way of others"] += (source, target) not in links
                    if missing:
                        raise BrokenPromise(f"complete from {source} to {target}, but missing: {missing}")

    # The end

    def ship_all(self) -> None:
        """All that peers which are enabled can ship, as far as it gets."""
        while any(
            self._request(place, key, Dice(0), 1_000)
            for place in self.places.values()
            for key in list(place.queues)
            if key in place.queues and place.links[key[1].partition("-")[0]].enabled
        ):
            pass
        self.beat()

    def drain(self) -> None:
        """All is shipped. Without a blemish each pair that is connected must be complete."""
        for place in self.places.values():
            for link in place.links.values():
                link.enabled = True
            for server in place.masters:
                if not server.running or not server.session:
                    server.session = False
                    if not server.split:
                        place.split(server, 0)
                else:
                    place.sync(server)
            self.blemishes |= place.blemishes
            claimer = next(server for server in place.living() if server.session)
            gone = {server.name for server in place.masters if server.split}
            for key in [key for key in place.queues if key[0] in gone]:
                place.claim(claimer, key)
        self.ship_all()
        self.pass_time(LONG_MS)
        self.beat()
        found = self.ask()
        if not self.blemishes:
            self.seen["judged at rest"] += 1
            for source, row in found.matrix.items():
                for target, cell in row.items():
                    if cell.reach not in (Reach.COMPLETE, Reach.UNCONNECTED):
                        raise BrokenPromise(f"false alarm: {source} to {target}: {cell.reach} {cell.reasons}")


def _passed(entry: Entry) -> frozenset[str]:
    return NAMES_PASSED[entry.via]


def _reached(source: str, family: str, links: dict[tuple[str, str], frozenset[str]]) -> set[str]:
    """The clusters to which peers that ship a family lead, one after another."""
    found, new = {source}, {source}
    while new:
        new = {target for (one, target), shipped in links.items() if one in new and family in shipped} - found
        found |= new
    return found - {source}


def played(seeds: Iterable[int], steps: int) -> Counter[str]:
    """Random runs until so many steps are done; `BrokenPromise` names the seed that repeats the run."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        seen += played_once(seed).seen
        if seen["steps"] >= steps:
            break
    return seen


def played_once(seed: int) -> Graph:
    """One run of a seed, to its end."""
    graph = Graph(seed)
    try:
        for _ in range(STEPS_A_RUN):
            graph.step()
            if graph.random.randrange(50) == 0:
                graph.ask_at_random()
        graph.drain()
    except BrokenPromise as broken:
        raise BrokenPromise(f"seed {seed}: {broken}\n" + "\n".join(graph.log)) from broken
    return graph


_WEIGHTS = {
    **{"write": 12, "sync": 2, "roll": 3, "tick": 6, "beat": 4, "start": 1, "crash": 1, "expire": 3, "split": 4},
    **{"claim": 6, "ship": 24, "switch": 2, "filter": 1, "lose_wal": 1, "renew": 1},
}
_TABLE = [name for name, weight in _WEIGHTS.items() for _ in range(weight)]
