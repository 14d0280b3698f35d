"""The content ledger by itself: regions with store files, servers that open, change, close or lose them, and what
comes beside the WAL; the trackers' `ContentLedger` and `TenureJoiner` as the Java ones are, against a table whose
writes fail, come late, or twice. The decoder and the rule are the tool's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from status_tool.rules.content import Files, Tenure, parse_tenure
from status_tool.rules.custody import Place, Places
from status_tool.sources.codec import Existing, attended, contents, packed
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.state_rows import column
from tests.row_digests import signed
from tests.simulation.dice import Dice
from tests.simulation.store import APPLIED, APPLIED_BUT_FAILED, LATE, REFUSED, Cells, Store, StoreError, cells, encode

START_MS = 1_700_000_000_000
REGIONS = ("00" * 16, "11" * 16)
FAMILY = "f"
NEWBORN = 2
FEW, MANY = 1, 3
"""Versions that a table keeps."""


@dataclass
class LedgerStore(Store):
    """A delete of a version stays in the way of what comes late: HBase's delete markers do until a major compaction."""

    deleted: dict[tuple[bytes, bytes], int] = field(default_factory=dict)

    def apply(self, writes: Iterable[tuple[bytes, Cells]]) -> None:
        """Without what has been deleted since."""
        for key, written in writes:
            kept = {name: cell for name, cell in written.items() if cell[1] > self.deleted.get((key, name), -1)}
            super().apply([(key, kept)])

    def take_over(self, key: bytes, put: Cells, name: bytes, version: int, fate: int) -> None:
        """`StateStore.takeOverAsync`."""
        if fate in (APPLIED, APPLIED_BUT_FAILED):
            self.apply([(key, put)])
            self.deleted[key, name] = max(version, self.deleted.get((key, name), -1))
            if self.rows[key].get(name, (b"", version + 1))[1] <= version:
                del self.rows[key][name]
        if fate != APPLIED:
            raise StoreError


@dataclass(eq=False)
class Held:
    """`OpenTenure`."""

    name: bytes
    open: int
    began: int
    seq: int
    files: set[str]
    before: Files
    durable: int = 0
    recorded: int = 0
    """What had been appended by its server's last flush."""
    appended: int = 0
    """`ContentLedger.noteAppended`."""
    closed: int | None = None
    elsewhere: int | None = None
    unseen: int | None = None
    kept: int | None = None
    """How many versions its table keeps; None: nobody has looked yet."""
    replicated: tuple[str, ...] = (FAMILY,)
    stored: bool = False
    ever_stored: bool = False
    urgent: bool = True
    """Whether it has what is written without waiting for a flush."""
    stamped: int = 0
    """The timestamp of its newest change; 0: of which there is none yet."""

    def to_json(self) -> str:
        """`Tenure.toJson`."""
        optional = {"c": self.closed, "m": self.durable or None, "x": self.elsewhere, "u": self.unseen}
        ends = {"a": {FAMILY: _numbers(self.before)}, "b": {FAMILY: _numbers(files_of(self.files))}}
        known: dict[str, object] = {key: value for key, value in optional.items() if value is not None}
        if self.kept is not None:
            known["k"] = {FAMILY: [self.kept, 0, 2**31 - 1, 0, 0, 1]}
        return json.dumps({"o": self.open, "t": self.began, "s": self.seq, "r": [*self.replicated], **known, **ends})


def files_of(names: Iterable[str]) -> Files:
    """`StoreFiles.content`."""
    hashes = {name: int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True) for name in names}
    links = [name for name in hashes if "=" in name]
    loaded = [hashes[name] for name in hashes if "_SeqId_" in name and "=" not in name]
    return Files(len(hashes), signed(sum(hashes.values())), len(links), signed(sum(loaded)))


def _numbers(files: Files) -> list[int]:
    return [files.count, files.sum, files.links, files.loaded]


@dataclass(eq=False)
class Server:
    """A region server with its ledger."""

    name: str
    offset: int
    held: dict[str, Held] = field(default_factory=dict)
    over: list[tuple[str, Held]] = field(default_factory=list)
    stamp: int = 0
    alive: bool = True
    blind: bool = False
    """Whether it runs without the tracker."""


@dataclass
class Region:
    """What is on disk, and where it is open."""

    files: set[str] = field(default_factory=set)
    seq: int = 1
    """The newest sequence id that was given out."""
    stored_seq: int = 1
    """The highest in a store file or in the sequence id file."""
    edits: int = 0
    """In the memstore, and in the WAL."""
    edit_seq: int = 0
    host: Server | None = None
    changed: bool = False
    """Whether its files have changed beside the WAL: the truth."""
    lost: bool = False
    """Whether a crash took an entry along that was there at a flush of the trackers: the truth."""
    robbed: bool = False
    """Whether a crash took any entry along."""
    touched: bool = False
    """Whether something was done to it beside the WAL, perhaps with the same files as before."""
    kept: int = MANY
    """How many versions its table keeps."""
    least: int = MANY
    """The fewest of those that a server has written down."""
    wrote: bool = False
    """Whether anything was ever written to it."""
    wrote_least: int = MANY
    """`least` since then."""
    grew: bool = False
    """Whether it ever kept more than before."""


class LedgerWorld:
    """One cluster. Two promises: what changed is named, and what did not is not."""

    def __init__(self, *, follows_wals: bool = False) -> None:
        self.now = START_MS
        self.follows_wals = follows_wals
        self.store = LedgerStore()
        self.servers: list[Server] = []
        self.regions = {name: Region() for name in REGIONS}
        self.names = 0
        self.snapshots: dict[str, list[frozenset[str]]] = {name: [] for name in REGIONS}
        self.unseen: set[str] = set()
        """Regions of which a crash took a tenure along that nobody had written down yet."""
        for _ in range(3):
            self.start()
        for name in REGIONS:
            self.open(name, self.servers[0], NEWBORN)

    def start(self) -> None:
        """A new server; clocks differ."""
        self.now += 1
        self.servers.append(Server(f"s{len(self.servers)},1,{self.now}", (0, 900, -700)[len(self.servers) % 3]))

    def living(self) -> list[Server]:
        return [server for server in self.servers if server.alive]

    def new_file(self) -> str:
        """A name that there never was."""
        self.names += 1
        return f"{self.names:032x}"

    # What HBase does

    def open(self, name: str, server: Server, seq: int) -> None:
        """The marker of the opening has all files; the sequence id file says from where the next one counts."""
        region = self.regions[name]
        self.now += 5
        region.host, region.seq = server, seq + 1
        region.stored_seq = max(region.stored_seq, seq - 1)
        clock = self.now + server.offset
        held = Held(
            b"k" + encode(origin_id(server.name)) + encode(clock),
            seq,
            clock,
            region.seq,
            set(region.files),
            files_of(region.files),
            elsewhere=clock if any("=" in file for file in region.files) else None,
            unseen=clock if seq > NEWBORN else None,
        )
        server.held[name] = held

    def close(self, name: str) -> None:
        """Flush, then the marker; its sequence id is the last one."""
        self.flush(name)
        region = self.regions[name]
        server, held = self.hosting(name)
        region.seq += 1
        region.stored_seq = region.seq
        held.seq, held.closed, held.stored, held.stamped = region.seq, self.now + server.offset, False, 0
        server.over.append((name, server.held.pop(name)))
        region.host = None

    def hosting(self, name: str) -> tuple[Server, Held]:
        """Where it is open."""
        server = self.regions[name].host
        assert server is not None
        return server, server.held[name]

    def write(self, name: str) -> None:
        region = self.regions[name]
        region.seq += 1
        region.edits, region.edit_seq, region.wrote = region.edits + 1, region.seq, True
        self.hosting(name)[1].appended = region.seq

    def flush(self, name: str) -> None:
        """A new file, then the marker."""
        region = self.regions[name]
        if region.edits:
            file = self.new_file()
            region.files.add(file)
            region.stored_seq = max(region.stored_seq, region.seq)
            flushed, region.edits = region.seq, 0
            self.marker(name, {file}, set())
            self.hosting(name)[1].durable = flushed

    def marker(self, name: str, added: set[str], removed: set[str]) -> None:
        """A flush, compaction or bulk load as the ledger sees it; with a sequence id of its own."""
        region, held = self.regions[name], self.hosting(name)[1]
        region.seq += 1
        held.files = (held.files - removed) | added
        held.seq, held.stored, held.stamped = region.seq, False, 0

    def compact(self, name: str, dice: Dice) -> None:
        """Some files into one; what has expired into none."""
        region = self.regions[name]
        removed = {file for file in sorted(region.files) if dice.below(3)}
        added = {self.new_file()} if removed and dice.below(8) else set()
        if removed:
            region.files = (region.files - removed) | added
            self.marker(name, added, removed)
            region.edit_seq = region.seq  # its marker is kept among the recovered edits

    def load(self, name: str) -> None:
        region = self.regions[name]
        region.seq += 1
        region.stored_seq = region.seq
        file = f"{self.new_file()}_SeqId_{region.seq}_"
        region.wrote = True
        region.files.add(file)
        self.marker(name, {file}, set())

    def crash(self, server: Server, *, loses_wals: bool = False) -> None:
        """Regions open elsewhere: what was not flushed is replayed and flushed without a marker, or lost."""
        server.alive = False
        for name, held in (*server.held.items(), *server.over):
            if not held.ever_stored or held.closed is not None:
                self.unseen.add(name)
        self.start()
        for name, region in self.regions.items():
            if region.host is server:
                if loses_wals:
                    region.robbed |= region.edits > 0
                    region.lost |= server.held[name].recorded > region.stored_seq
                    region.edits, region.edit_seq = 0, 0
                elif region.edits:
                    region.files.add(self.new_file())
                region.stored_seq, region.edits = max(region.stored_seq, region.edit_seq), 0
                self.open(name, self.living()[-1], region.stored_seq + 1)

    def move(self, name: str, dice: Dice) -> None:
        """Closed here, opened there."""
        self.close(name)
        self.open(name, dice.pick(self.living()), self.regions[name].stored_seq + 1)

    # What comes beside the WAL

    def beside(self, name: str, dice: Dice) -> None:
        """To a closed region: restored, cloned anew under its name, truncated, or files put or taken by hand."""
        region = self.regions[name]
        before, region.touched = frozenset(region.files), True
        kind = dice.pick(("restore", "clone", "truncate", "take", "put"))
        self.close(name)
        after = set(self.snapshots[name][-1]) if self.snapshots[name] else set[str]()
        if kind == "restore":
            region.files = {file if file in region.files else link(name, file) for file in after}
        elif kind == "clone":
            region.files, region.stored_seq = {link(name, file) for file in after}, NEWBORN + len(after)
        elif kind == "truncate":
            region.files, region.stored_seq = set(), NEWBORN - 1
        elif kind == "take":
            region.files = set(sorted(region.files)[1:])
        else:
            region.files = {*region.files, self.new_file()}
        region.changed |= frozenset(region.files) != before
        self.open(name, dice.pick(self.living()), region.stored_seq + 1)

    def alter(self, name: str, dice: Dice) -> None:
        """The table keeps fewer versions, or more: HBase opens its regions anew."""
        region = self.regions[name]
        self.close(name)
        before, region.kept = region.kept, dice.pick((FEW, MANY))
        region.grew |= before < region.kept
        self.open(name, dice.pick(self.living()), region.stored_seq + 1)

    def snapshot(self, name: str) -> None:
        """Flushes."""
        self.flush(name)
        self.snapshots[name].append(frozenset(self.regions[name].files))

    # The trackers

    def write_ledger(self, server: Server, *, urgent: bool, fate: int = APPLIED) -> None:
        """`ContentLedger.urgent` or `.dirty`, then what a store does with it."""
        if server.blind:
            return
        for held in server.held.values() if self.follows_wals and not urgent else ():
            self.note_durable(held)
        for name, held in (*server.over, *server.held.items()):
            if not held.stored and (not urgent or held.closed is not None or held.urgent):
                self.store.put([(b"f" + name.encode(), self.cells_of(server, held))], fate)
                held.stored = held.ever_stored = True
                held.urgent = False
                region = self.regions[name]
                if held.kept is not None and fate == APPLIED:
                    region.least = min(region.least, held.kept)
                    region.wrote_least = min(region.wrote_least, held.kept if region.wrote else MANY)
        if fate == APPLIED and not urgent:
            for held in server.held.values():
                held.recorded = held.appended
        server.over = [(name, held) for name, held in server.over if not held.stored]

    def note_durable(self, held: Held) -> None:
        """`ContentLedger.noteDurable`."""
        if held.appended > held.durable:
            held.durable, held.stored, held.stamped = held.appended, False, 0

    def look(self, server: Server) -> None:
        """`ContentLedger.look`."""
        for name, held in server.held.items():
            if held.kept is None:
                held.kept, held.stored, held.urgent, held.stamped = self.regions[name].kept, False, True, 0

    def cells_of(self, server: Server, held: Held) -> Cells:
        """Timestamps grow, whatever the clock does; what is written again has the one that it had."""
        if not held.stamped:
            held.stamped = server.stamp = max(self.now + server.offset, server.stamp + 1)
        return {column(held.name): (held.to_json().encode(), held.stamped), **cells(held.stamped, t="t")}

    def join(self, server: Server, fate: int = APPLIED) -> None:
        """`TenureJoiner.look`."""
        for name, held in server.held.items():
            if not held.stored or held.kept is None:
                continue
            key = b"f" + name.encode()
            others = {
                qualifier: (earlier, version)
                for qualifier, (value, version) in self.store.get(key).items()
                if len(qualifier) == 19 and qualifier != column(held.name) and (earlier := parse_tenure(value))
            }
            same = [q for q, (t, _) in others.items() if (t.open, t.began_ms) == (held.open, held.began)]
            opened = [t.open for t, _ in others.values() if t.open <= held.open]
            following = [q for q, (t, _) in others.items() if self.follows(t, held) and self.is_last(t, opened)]
            if chosen := self.next_to_join(same, following):
                self.take_over(server, held, key, chosen, *others[chosen], fate)

    def is_last(self, earlier: Tenure, opened: list[int]) -> bool:
        """A server that crashed at once leaves a tenure in between, though the next one opens with the same id."""
        return earlier.open == max(opened)

    def next_to_join(self, same: list[bytes], following: list[bytes]) -> bytes | None:
        """Those with the same beginning have to go before the next is taken over."""
        return next(iter((*same, *following)), None)

    def take_over(
        self, server: Server, held: Held, key: bytes, qualifier: bytes, earlier: Tenure, version: int, fate: int
    ) -> None:
        """`TenureJoiner.join`: set first, then written."""
        if (earlier.open, earlier.began_ms) != (held.open, held.began):
            held.open, held.began, held.before = earlier.open, earlier.began_ms, earlier.before[FAMILY]
            held.elsewhere, held.durable = earlier.elsewhere_ms, max(held.durable, earlier.durable)
            held.unseen = earlier.unseen_ms
            held.stored, held.stamped = False, 0
        self.store.take_over(key, self.cells_of(server, held), qualifier, version, fate)
        held.stored = True

    def follows(self, earlier: Tenure, held: Held) -> bool:
        """`Tenure.isFollowedBy`."""
        closed = earlier.closed_ms is not None and held.open == earlier.seq + 1
        kept = None if earlier.kept is None else earlier.kept[FAMILY][0]
        keeps_the_same = None in (kept, held.kept) or kept == held.kept
        raised = set(held.replicated) - set(earlier.replicated)
        return closed and earlier.after[FAMILY].same(held.before) and keeps_the_same and not raised

    # The end

    def settle(self) -> None:
        """Everybody writes what there is; what was on its way arrives."""
        for _ in range(8):
            for server in self.living():
                self.look(server)
                self.write_ledger(server, urgent=False)
            self.store.apply(self.store.late)
            self.store.late.clear()
            for server in self.living():
                self.join(server)

    def named(self, *, master: bool = True) -> Mapping[str, NewRow]:
        """What the tool says, by region, of a master or of a slave."""
        existing = Existing(packed(REGIONS), self.now + 10_000) if master else None
        rows = contents(sorted(self.store.rows.items()), existing)
        return {row["region"]: row for row in rows if row["state"] == "changed"}

    def asked(self) -> tuple[Places, dict[str, Place]]:
        """What a run knows that puts its barrier and reads `hbase:meta` now."""
        vouching = {origin_id(server.name): self.now + server.offset for server in self.living() if not server.blind}
        hosts = {name: region.host.name if region.host else "" for name, region in self.regions.items()}
        return Places(watched=vouching), {name: Place("t", "", origin_id(host)) for name, host in hosts.items()}

    def unattended(self, asked: tuple[Places, dict[str, Place]] | None = None) -> set[str]:
        """The regions that no living server vouches for, for a run that reads the ledger now."""
        places, waiting = asked or self.asked()
        for _ in attended(sorted(self.store.rows.items()), places, waiting):
            pass
        return set(waiting)


def link(region: str, file: str) -> str:
    """As snapshots are restored: a link to a file that was archived."""
    return file if "=" in file else f"t={region}-{file}"


_STEPS = ("write",) * 6 + ("flush",) * 4 + ("tick",) * 10 + ("compact", "compact", "load", "move", "move", "move")


def play(
    steps: Sequence[int], *, beside: bool, crashes: bool = True, alters: bool = False, loses_wals: bool = False
) -> LedgerWorld:
    """A world after random steps, settled. A round of the recorder comes after all but a few of the steps.

    In every other world all happens within what clocks may differ by, so that times decide nothing. `loses_wals`: the
    WALs of half of the servers that crash, on a slave, whose trackers follow them.
    """
    world = LedgerWorld(follows_wals=loses_wals)
    pauses = (1, 40, 900, 20_000) if steps[0] % 2 else (1, 40, 900)
    rare = (*(("crash",) if crashes else ()), *(("beside", "snapshot", "snapshot") if beside else ()))
    rare += ("alter", "alter") * alters + ("crash",) * loses_wals
    for number in steps:
        dice = Dice(number)
        world.now += dice.pick(pauses)
        step, name = dice.pick((*_STEPS, *rare)), dice.pick(REGIONS)
        match step:
            case "write" | "flush" | "load" | "snapshot":
                getattr(world, step)(name)
            case "compact" | "move" | "beside" | "alter":
                getattr(world, step)(name, dice)
            case "crash":
                world.crash(dice.pick(world.living()), loses_wals=loses_wals and not dice.below(2))
            case "tick":
                tick(world, dice)
        if dice.below(4):
            for server in world.living():
                world.write_ledger(server, urgent=True)
    world.settle()
    return world


def tick(world: LedgerWorld, dice: Dice) -> None:
    """Some server's round, with what becomes of its writes."""
    fates = (APPLIED, APPLIED, APPLIED, REFUSED, APPLIED_BUT_FAILED, LATE)
    server = dice.pick(world.living())
    try:
        world.look(server)
        world.write_ledger(server, urgent=not dice.below(2), fate=dice.pick(fates))
        world.join(server, dice.pick(fates[:5]))
    except StoreError:
        return
    if not dice.below(3):
        world.store.apply(world.store.late)
        world.store.late.clear()
