"""The two trackers as the Java ones are (coprocessor_stubs/src/main): what they remember, write, and in which order.

A recorder's round is a generator that stops after each call to the table: other things happen in between.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from status_tool.rules.segments import Segment, merged
from status_tool.sources import codec
from status_tool.vocabulary.ids import family_id, origin_id
from status_tool.vocabulary.state_rows import column
from tests.simulation.store import APPLIED, SERVER_TIME, Cells, Store, StoreError, Write, cells, encode

TABLE = "t"
FAMILY = {"scope": 1, "versions": 3}
DESCRIPTOR = json.dumps({"families": {"f": FAMILY, "g": FAMILY}, "durability": "USE_DEFAULT", "enabled": True})
SLAVE_VIA, OTHER_VIA = 2, 1
VIA_IDS = {0: None, OTHER_VIA: b"\x0c" * 16, SLAVE_VIA: b"\x0b" * 16}
Fate = Callable[[], int]
Values = dict[str, int | bytes | str | None]
StreamKey = tuple[str, int, int]
"""Region, origin, the stream's via."""
Part = Segment
STARTS = (b"", b"h", b"i", b"s")
"""Where the regions of a state table begin."""
REGION_MARKS = tuple(start + b"!" for start in STARTS)
MARK_MS = 10_000
"""`TableMark.PERIOD_MS`."""
WHOLE = frozenset("fg")
"""The families of the table."""


def number(cell: tuple[bytes, int] | None) -> int:
    """A cell's value; 0 where there is none."""
    return 0 if cell is None else int.from_bytes(cell[0], "big", signed=True)


def hex16(number: int) -> bytes:
    """Eight bytes in hex, as row keys have them."""
    return b"%016x" % (number & 0xFFFFFFFFFFFFFFFF)


@cache
def stream_via(via: int, family: str) -> int:
    """`Ids.via` of a family's stream (docs/formats.md)."""
    digest = hashlib.sha256(via.to_bytes(8, "big", signed=True) + bytes.fromhex(family_id(family))).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def marked_regions(mark: int) -> bytes:
    """`CoverageRow.REGIONS`."""
    return mark.to_bytes(8, "big") + b"".join(len(key).to_bytes(4, "big") + key for key in REGION_MARKS)


def stream_row(kind: bytes, stream: StreamKey) -> bytes:
    """The row key of a head (`h`) or of segments (`s`)."""
    return kind + stream[0].encode() + hex16(stream[1]) + hex16(stream[2])


@dataclass(eq=False)
class Entry:
    """A WAL entry. `appended` and `acked` are true times; `write_ms` is its server's clock."""

    number: int
    region: str
    seq: int
    via: int
    write_ms: int
    origin: int
    appended: int
    acked: int | None = None
    prevs: dict[str, tuple[int, int]] | None = None
    """The stamp: by family the entry before it, and the highest write time up to there. None: without."""
    written: frozenset[str] = WHOLE
    """The families that it has cells of, which the stamp records."""
    families: frozenset[str] = WHOLE
    """Those of them that a request carries."""

    def stream(self, family: str) -> StreamKey:
        """The stream of one of its families."""
        return self.region, self.origin, stream_via(self.via, family)


@dataclass
class Head:
    """`StreamHead`."""

    via: int
    family: str
    seq: int = 0
    write_ms: int = 0
    first_ms: int = 0
    count: int = 0
    flushed: int = 0

    def advance(self, entry: Entry) -> None:
        """An entry appended again is not later and changes nothing."""
        if entry.seq <= self.seq:
            return
        if not self.count:
            self.first_ms = entry.write_ms
        self.seq, self.write_ms, self.count = entry.seq, max(self.write_ms, entry.write_ms), self.count + 1


@dataclass
class Recorder:
    """What both roles share (`Recorder`, `Flusher`, `ServerRole`, `Barrier`)."""

    name: str
    role: str
    store: Store
    clock: Callable[[], int]
    started: int
    steady: Callable[[], int] = lambda: 0
    """A clock that is never set."""
    ahead: int = -(2**60)
    clock_back: int = 0
    clock_low: int = 0
    last_timestamp: int = 0
    """Of the row's cells: they must not be older than those that are there."""
    errors: int = 0
    stored: bytes | None = None
    """`ServerRow.LAST` of the row that this server knows to be stored."""
    attempted: set[bytes] = field(default_factory=set)
    """Those of rows that may have been stored since."""
    mark_file: list[int] | None = None
    """The file with the mark of the state table, the last one counts; None: nobody asks for it."""
    compared: bool = False
    """Whether the table has been compared with the file."""
    next_mark: int = 0
    seen_mark: int = 0
    """The highest that this tracker has read."""
    ended: bool = False
    last_began: int | None = None
    last_echo: tuple[bytes, int] | None = None
    claimed: bytes | None = None
    busy: Iterator[None] | None = None
    fate: Fate = lambda: APPLIED
    """Of the next write; drawn anew for each tick."""
    over: bool = False
    """Nothing can come any more: only the final row is left to write."""
    last_peers: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """As they were before the last flush."""

    @cached_property
    def origin(self) -> int:
        """The id of the server's incarnation."""
        return origin_id(self.name)

    @cached_property
    def key(self) -> bytes:
        return b"o" + hex16(self.origin) + self.role.encode()

    @property
    def written(self) -> bool:
        """Whether its row was ever written."""
        return self.stored is not None

    def tick(self, fate: Fate) -> bool:
        """Go on with the round until its next call to the table; whether it is over."""
        self.fate = fate
        try:
            if self.busy is None:
                self.busy = self.end() if self.over else self.round()
            next(self.busy)
        except (StopIteration, StoreError):
            self.busy = None
            return True
        return False

    def round(self) -> Iterator[None]:
        """`Recorder.round`: announce, look for a token, flush."""
        self.look_at_clock()
        self.look_at_peers()
        if not self.written:
            self.vouch(self.row(self.last_began, self.last_echo, None, self.last_peers))
            yield
        if not self.compared:
            self.compare_mark()
            yield
        echo = self.new_token()
        yield
        if echo is not None and self.claim(echo[0]):
            yield
            self.store.put([(b"t" + TABLE.encode(), cells(SERVER_TIME, d=DESCRIPTOR, e=echo[0]))], self.fate())
        yield
        yield from self.flush(echo, end=False)
        yield from self.tidy()

    def end(self) -> Iterator[None]:
        """`Recorder.endRoles`."""
        if not self.ended:
            yield from self.flush(None, end=True)

    def new_token(self) -> tuple[bytes, int] | None:
        """The token to be echoed, with this server's clock; None: there is none but the last one."""
        found = self.store.get(b"b").get(column(b"k"))
        if found is None or (self.last_echo is not None and found[0] == self.last_echo[0]):
            return None
        return found[0], self.clock()

    def claim(self, token: bytes) -> bool:
        """`Barrier.claim`: whether this one writes the tables down. A claim that was won stays won."""
        if self.claimed != token:
            if self.store.get(b"b").get(column(b"c"), (b"", 0))[0] == token:
                return False
            self.claimed = token  # a claim that seems to have failed may have been won
            self.store.put([(b"b", cells(SERVER_TIME, c=token))], self.fate())
        return True

    def flush(self, token: tuple[bytes, int] | None, *, end: bool) -> Iterator[None]:
        """`Flusher.flush`: a server's row comes first and last, each only if the table has not gone back since."""
        peers, began, echo = self.peers(), self.clock(), token or self.last_echo
        self.check_nothing_was_lost()
        yield
        yield from self.changes()
        self.vouch(self.row(began, echo, began if end else None, peers))
        self.ended = end
        self.last_began, self.last_echo, self.last_peers = began, echo, peers
        self.flush_succeeded()
        yield

    def row(
        self, flushed: int | None, echo: tuple[bytes, int] | None, final: int | None, peers: Mapping[str, Sequence[int]]
    ) -> Write:
        """`ServerRole.row`."""
        token, read = echo or (None, None)
        back = self.look_at_clock()
        health = _health(self.errors, tuple((peer, tuple(versions)) for peer, versions in peers.items()), *back.items())
        values: Values = {"n": self.name, "q": health, "f": flushed, "e": token, "m": read, "z": final}
        self.last_timestamp = max(self.clock(), self.last_timestamp + 1)
        return self.key, cells(self.last_timestamp, **values, k=self.last_timestamp)

    def vouch(self, write: Write) -> None:
        """`Flusher.vouch`."""
        if not self.is_vouched(write):
            self.went_back()
            raise StoreError

    def is_vouched(self, write: Write) -> bool:
        """`ServerRole.write`: whether the row that is stored is the one that this server wrote last."""
        name = column(b"k")
        version = write[1][name][0]
        try:
            expected = self.stored
            if not self.store.put_if(write, name, expected, self.fate()):
                expected = self.store.get(self.key).get(name, (None, 0))[0]
                if expected not in self.attempted or not self.store.put_if(write, name, expected, self.fate()):
                    return False
        except StoreError:
            self.attempted.add(version)
            raise
        self.stored, self.attempted = version, set()
        return True

    def went_back(self) -> None:
        """`Flusher.wentBack`: the row that is there is accepted, and all that is known is written again."""
        if self.mark_file is not None:
            mark = number(self.store.get(b"c").get(column(b"m")))
            self.store.put([(key, cells(mark, m=mark)) for key in REGION_MARKS], self.fate())
            self.store.put([(b"c", cells(mark, r=marked_regions(mark)))], self.fate())
        self.stored, self.attempted = self.store.get(self.key).get(column(b"k"), (None, 0))[0], set()

    def compare_regions(self) -> bool:
        """`TableMark.compareRegions`: whether one has lost its rows, which is recorded."""
        marked, _ = codec.marked_regions(self.store.get(b"c"))
        if all(number(self.store.get(key).get(column(b"m"))) >= marked for key in REGION_MARKS):
            return False
        self.mark_tables()
        self.went_back()
        return True

    def mark_tables(self) -> None:
        """`TableMark.markTables`: the table may have held something since ever."""
        self.store.put([(EVENTS_ROW, cells(EARLIEST_WINS - 1, a=1))], self.fate())

    def compare_mark(self) -> None:
        """`TableMark.compare`."""
        if self.mark_file:
            stored = number(self.store.get(b"c").get(column(b"m")))
            self.seen_mark = max(stored, self.mark_file[-1])
            if stored < self.mark_file[-1]:
                self.went_back()
                self.raise_mark(self.mark_file[-1])
            else:
                self.compare_regions()
        self.compared = True

    def raise_mark(self, least: int, **regions: bytes) -> None:
        """`TableMark.raise`: the table first."""
        assert self.mark_file is not None
        found = self.store.get(b"c").get(column(b"m"))
        mark = max(self.clock(), number(found) + 1, least + 1)
        if self.store.put_if((b"c", cells(mark, m=mark, **regions)), column(b"m"), found and found[0], self.fate()):
            self.mark_file.append(mark)

    def raise_mark_in_time(self) -> None:
        """`TableMark.raise`: one tracker in each period, unless the table went back."""
        now = self.clock()
        if self.mark_file is not None and now >= self.next_mark:
            self.next_mark = now + MARK_MS
            stored = number(self.store.get(b"c").get(column(b"m")))
            self.seen_mark = max(self.seen_mark, stored)
            if stored == self.seen_mark and now >= stored + MARK_MS:
                self.raise_marks(max(now, stored + 1))

    def raise_marks(self, mark: int) -> None:
        """Each region's is the one that was read before they are compared."""
        name = column(b"m")
        before = {key: self.store.get(key).get(name, (None, 0))[0] for key in REGION_MARKS}
        if not self.compare_regions() and all(
            self.store.put_if((key, cells(mark, m=mark)), name, value, self.fate()) for key, value in before.items()
        ):
            self.raise_mark(mark - 1, r=marked_regions(mark))

    def is_below_its_mark(self) -> bool:
        """`TableMark.isAbove`."""
        return number(self.store.get(b"c").get(column(b"m"))) < self.seen_mark

    def changes(self) -> Iterator[None]:
        """Write what the table does not have yet; it counts as written once the row vouches for it."""
        raise NotImplementedError

    def look_at_clock(self) -> Mapping[str, int]:
        """`ClockWatch.look`: the latest time that the clock may have shown before it was set back."""
        ahead = self.clock() - self.steady()
        if ahead < self.ahead:
            self.clock_back = max(self.clock_back, self.ahead + self.steady())
            self.clock_low = min(self.clock_low or self.clock(), self.clock())
        self.ahead = ahead
        return {"clock_back_ms": self.clock_back, "clock_low_ms": self.clock_low} if self.clock_back else {}

    def look_at_peers(self) -> None:
        """`PeerWatch.look`: only a server with sources has peers."""

    def peers(self) -> Mapping[str, Sequence[int]]:
        """`PeerWatch.json`."""
        return {}

    def check_nothing_was_lost(self) -> None:
        """`Flusher.begin`: what a write-time tracker does about it decides a verdict."""
        if self.is_below_its_mark() or not self.is_vouched(
            self.row(self.last_began, self.last_echo, None, self.last_peers)
        ):
            self.went_back()

    def flush_succeeded(self) -> None:
        """After a whole flush."""

    def tidy(self) -> Iterator[None]:
        """Compaction or sweep."""
        return iter(())

    def spooled(self) -> list[Write]:
        """What a server writes to a file when its last flush cannot reach the table."""
        raise NotImplementedError


@cache
def _health(errors: int, peers: tuple[tuple[str, tuple[int, ...]], ...], *back: tuple[str, int]) -> str:
    return json.dumps({"failed_writes": 0, "pending": 0, "errors": errors, "peers": dict(peers), **dict(back)})


@dataclass
class WriteTracker(Recorder):
    """`WriteTimeTracker` with `WalStamper`, `StreamHeads`, `Sweep`."""

    heads: dict[StreamKey, Head] = field(default_factory=dict)
    sync: Callable[[], None] = lambda: None
    live_servers: Callable[[], list[str]] = list
    on_interrupt: Callable[[str], None] = lambda _: None
    in_force: Callable[[], Mapping[str, tuple[int, int | None, int, int]]] = dict
    """By peer that the server has a source for: incarnation, version of its znode (None: the znode says something else
    than what is in force), which configuration it is, and a hash of what that says."""
    known_peers: dict[str, tuple[int, int, int, int, int]] = field(default_factory=dict)
    loaded: dict[str, int] = field(default_factory=dict)
    """By peer, the configuration that `known_peers` is about."""
    unvouched: list[tuple[Head, int]] = field(default_factory=list)
    """Heads that are written, with their sequence ids, and for which the server's row does not vouch yet."""
    last_coverage: bytes | None = None
    begun: bool = False
    """Whether it has seen the start of coverage in the table."""
    fenced: bool = False
    """The server's files were taken away from it while it lived: what was not synced is nowhere."""
    failing: bool = False
    """The next hook fails: its entry goes unseen, and is counted."""
    untracked: dict[str, int] = field(default_factory=dict)
    next_sweep: int = 0
    grace_ms: int = 130_000
    sweep_ms: int = 60_000

    def before(self, entry: Entry) -> None:
        """`WalStamper.stamp`."""
        if entry.prevs is not None:
            return  # appended again: the chain was made when it came first
        if self.failing:
            self.failing, self.errors = False, self.errors + 1
            return
        known = (self.heads.get(entry.stream(family)) for family in WHOLE)
        if any(head is not None and entry.seq <= head.seq for head in known):
            self.errors += 1
            return
        heads = {
            family: self.heads.setdefault(entry.stream(family), Head(entry.via, family)) for family in entry.written
        }
        entry.prevs = {family: (head.seq, head.write_ms) for family, head in heads.items()}

    def after(self, entry: Entry) -> None:
        """`WalStamper.after`; an entry that was not stamped goes unseen."""
        for family in entry.prevs or ():
            self.heads[entry.stream(family)].advance(entry)

    def look_at_peers(self) -> None:
        """What is in force, and since which version it is the same."""
        known, self.known_peers = self.known_peers, {}
        for peer, (incarnation, version, configuration, content) in self.in_force().items():
            before = known.get(peer)
            if before is None or before[0] != incarnation or self.loaded.get(peer) != configuration:
                if version is None:
                    continue
                before = (incarnation, version, version, self.clock(), content)
            self.loaded[peer] = configuration
            last = before[2] if version is None else version
            self.known_peers[peer] = (incarnation, before[1], last, before[3], before[4])

    def peers(self) -> Mapping[str, Sequence[int]]:
        """As of the last look."""
        return dict(self.known_peers)

    def changes(self) -> Iterator[None]:
        """The WALs are synced, heads are collected, the WALs are synced again, then the heads are written.

        The first sync brings what was acknowledged in the ring buffer through the hooks, the second makes it durable.
        """
        self.sync_open_wal()
        yield
        collected = [(key, head, head.seq) for key, head in self.heads.items() if head.seq != head.flushed]
        writes = [head_row(key, head) for key, head, _ in collected]
        if writes:
            self.sync_open_wal()
            yield
            self.store.put(writes, self.fate())
            self.unvouched = [(head, seq) for _, head, seq in collected]
            yield

    def flush_succeeded(self) -> None:
        """Only now: between two attempts the table may have gone back."""
        for head, seq in self.unvouched:
            head.flushed = max(head.flushed, seq)
        self.unvouched = []

    def sync_open_wal(self) -> None:
        """One that is closed does not answer any more."""
        if not self.over:
            self.sync()

    def is_torn(self) -> bool:
        """`Flusher.isTailLost`."""
        return self.fenced

    def end(self) -> Iterator[None]:
        """`Flusher.end`: what may not be durable is left to the queues."""
        if not self.is_torn():
            yield from super().end()
        elif not self.ended:
            self.vouch(self.row(self.last_began, self.last_echo, None, self.last_peers))
            self.ended = True
            yield

    def check_nothing_was_lost(self) -> None:
        """Write again what is still known; what servers that are gone had written is not, so coverage starts anew."""
        coverage = self.store.get(b"c").get(column(b"a"), (None, 0))[0]
        if self.last_coverage not in (None, coverage):
            self.forget_flushes()
        is_lost = coverage is None and self.last_coverage is not None
        self.last_coverage = coverage
        if is_lost:
            self.went_back()
        else:
            super().check_nothing_was_lost()

    def went_back(self) -> None:
        """Coverage starts anew."""
        self.forget_flushes()
        now, mark = self.clock(), max(self.clock(), self.seen_mark + 1)
        self.store.put([(b"c", cells(now, a=now, b=now) | cells(mark, m=mark))], self.fate())
        self.last_coverage = self.store.get(b"c")[column(b"a")][0]
        super().went_back()

    def forget_flushes(self) -> None:
        """`ObservedState.forgetFlushes`."""
        self.unvouched = []
        for head in self.heads.values():
            head.flushed = 0

    def tidy(self) -> Iterator[None]:
        """`Sweep.run`: servers that are gone, and since when every server is tracked; and the mark."""
        now = self.clock()
        self.raise_mark_in_time()
        if now < self.next_sweep:
            return
        self.next_sweep = now + self.sweep_ms
        live = set(self.live_servers())
        yield
        named = [(key, row) for key, row in self.store.scan(b"o", b"p") if column(b"n") in row]
        known = {row[column(b"n")][0].decode(): (key, row) for key, row in named}
        for name, (key, row) in known.items():
            if name not in live and column(b"z") not in row and column(b"x") not in row:
                self.store.put([(key, cells(now, x=now))], self.fate())
        if column(b"a") not in self.store.get(b"c"):
            since = now if self.begun else self.started
            self.store.put([(b"c", cells(since, a=since))], self.fate())
        self.begun = True
        self.interrupt_coverage(live, set(known), now)
        yield

    def interrupt_coverage(self, live: set[str], tracked: set[str], now: int) -> None:
        """`Sweep.interruptCoverage`."""
        self.untracked = {name: since for name, since in self.untracked.items() if name in live - tracked}
        for name in sorted(live - tracked):
            since = max(self.untracked.setdefault(name, now), int(name.rpartition(",")[2]))
            if since <= now - self.grace_ms:
                self.on_interrupt(name)
                self.store.put([(b"c", cells(now, a=now))], self.fate())

    def spooled(self) -> list[Write]:
        """Heads, and the final row."""
        now = self.clock()
        heads = [head_row(key, head) for key, head in self.heads.items() if head.seq != head.flushed]
        final = self.row(now, self.last_echo, now, self.peers())
        self.attempted.add(final[1][column(b"k")][0])
        return [*heads, final]


def head_row(key: StreamKey, head: Head) -> Write:
    """`ObservedState.row`: the cells' timestamp is the sequence id."""
    times: Values = {"s": head.seq, "w": head.write_ms, "f": head.first_ms, "n": head.count}
    return stream_row(b"h", key), cells(head.seq, **times, t=TABLE, v=VIA_IDS[head.via], c=head.family)


@dataclass
class Record:
    """`StreamSegments`: what a server knows of a stream, and the one column that holds it."""

    column: bytes
    family: str = ""
    parts: list[Part] = field(default_factory=list)
    newest: int = 0
    timestamp: int = 0
    used: int = 0
    version: int = 0
    stored: int = 0
    merge_at: int = 3

    def add(self, parts: list[Part], now: int) -> bool:
        """Whether the columns of others should be looked at."""
        is_new = self.version == 0
        self.parts = merged([*self.parts, *parts])
        self.newest = max(self.newest, *(part.write_ms or 0 for part in parts))
        self.used, self.version = now, self.version + 1
        return is_new or len(self.parts) >= self.merge_at

    def take_over(self, others: list[Part]) -> None:
        """What other columns say is true as well."""
        self.parts = merged([*self.parts, *others])
        self.merge_at = max(3, 2 * len(self.parts))

    def row(self, stream: StreamKey, now: int) -> tuple[Write, int]:
        """Everything that is known now, and which version of it that is. Each has a higher timestamp than the last."""
        self.timestamp = max(now, self.timestamp + 1)
        row: Cells = {column(self.column): (column_value(self.parts), self.timestamp)}
        row |= {**cells(self.newest, r=self.newest), **cells(SERVER_TIME, t=TABLE, f=self.family)}
        return (stream_row(b"s", stream), row), self.version


ARRIVED_MS, BORN_MS, FIRST_BORN_MS = b"a", b"b", b"c"
EVENTS_ROW = b"n" + TABLE.encode()
CHANGED_ROW = b"x" + TABLE.encode()
"""In place of the content ledger, which has a simulation of its own: when it shows that store files changed."""
EARLIEST_WINS = 1 << 62
AGAIN_MS = 500
COPY_FAILS_IN = 5
"""By the clock: it is as random as what is drawn, and leaves the runs as they were."""


@dataclass
class Event:
    """`TableEvents.Event`."""

    value: int
    timestamp: int
    due: int = 0
    flushed: bool = False


@dataclass
class SinkTracker(Recorder):
    """`ReplicateTimeTracker` with `SinkBatch`, `WriteThrough`, `AppliedSegments`, `Compactor`, `TableEvents`."""

    events: dict[tuple[bytes, bytes], Event] = field(default_factory=dict)
    """By row and qualifier."""
    unvouched: list[Event] = field(default_factory=list)
    last_back: bytes | None = None

    records: dict[StreamKey, Record] = field(default_factory=dict)
    pending: set[StreamKey] = field(default_factory=set)
    scattered: list[StreamKey] = field(default_factory=list)
    copies: list[Write] = field(default_factory=list)
    """`GrowingSpoolFile`: of what is pending; it outlives the server."""
    uncopied: set[StreamKey] = field(default_factory=set)
    """Pending ones that a crash would lose."""
    flushed: bool = False
    """The next copy begins another file."""
    unstamped: dict[str, int] = field(default_factory=dict)
    unstamped_written: dict[str, int] = field(default_factory=dict)
    columns: int = 0
    broken: bool = False
    idle_ms: int = 20_000
    stale_ms: int = 30_000

    def batch_applied(self, entries: list[Entry], fate: Fate) -> None:
        """The hooks of one request, after all of it was applied."""
        streams: dict[StreamKey, tuple[str, list[Part]]] = {}
        now = self.clock()
        for entry in entries:
            if entry.prevs is None:
                self.unstamped[entry.region] = max(entry.write_ms, self.unstamped.get(entry.region, 0))
                continue
            for family in self.whole_families(entry):
                prev, prev_ms = entry.prevs[family]
                part = Segment(prev, entry.seq, entry.write_ms, entry.write_ms, now, prev_ms)
                streams.setdefault(entry.stream(family), (family, []))[1].append(part)
        for key, (family, parts) in streams.items():
            if key not in self.records:
                self.records[key] = self.new_record(key)
                self.records[key].family = family
            if self.records[key].add(parts, now):
                self.scattered.append(key)
        if streams:
            self.arrived(now)
            self.write_through(list(streams), fate)

    def arrived(self, now: int) -> None:
        """`TableEvents.arrived`: with the first entry, and with later ones from time to time."""
        event = self.events.setdefault((EVENTS_ROW, ARRIVED_MS), Event(now, EARLIEST_WINS - now, due=now))
        if now - event.due >= AGAIN_MS:
            event.due, event.flushed = now, False

    def born(self, region_id: int) -> None:
        """A region that has never held anything is open here."""
        self.note(EVENTS_ROW, BORN_MS, Event(region_id, region_id))
        self.note(EVENTS_ROW, FIRST_BORN_MS, Event(region_id, EARLIEST_WINS - region_id))

    def note(self, row: bytes, qualifier: bytes, event: Event) -> None:
        """`TableEvents.note`."""
        known = self.events.get((row, qualifier))
        if known is None or event.timestamp > known.timestamp:
            self.events[row, qualifier] = event

    def unwritten(self) -> dict[tuple[bytes, bytes], Event]:
        """`TableEvents.dirty`."""
        return {name: event for name, event in self.events.items() if not event.flushed}

    def whole_families(self, entry: Entry) -> Iterable[str]:
        """Those of which all cells have arrived."""
        return sorted(entry.families)

    def new_record(self, stream: StreamKey) -> Record:
        """A column that nobody has written to."""
        self.columns += 1
        return Record(b"c" + encode(self.origin ^ self.columns))

    def write_through(self, streams: list[StreamKey], fate: Fate) -> None:
        """To the spool, or else to the table: after a failure there, not again until a flush has succeeded."""
        self.pending |= set(streams)
        self.uncopied |= set(streams)
        self.copy()
        if self.broken or not self.uncopied & set(streams):
            return
        try:
            self.write(streams, fate(), self.unwritten())
            self.pending = {key for key in self.pending if self.records[key].stored < self.records[key].version}
        except StoreError:
            self.broken = True

    def tick(self, fate: Fate) -> bool:
        """What could not be copied is copied later."""
        self.copy()
        return super().tick(fate)

    def copy(self) -> None:
        """`SegmentSpooler.copy`, before the request is acknowledged: with the events of its table."""
        now = self.clock()
        if self.uncopied and self.reaches_spool and now % COPY_FAILS_IN:
            events = {name: event for name, event in self.unwritten().items() if name[0] == EVENTS_ROW}
            copied = self.pending if self.flushed else self.uncopied
            rows = [self.records[key].row(key, now)[0] for key in sorted(copied) if key in self.records]
            self.copies = [*([] if self.flushed else self.copies), *event_rows(events), *rows]
            self.uncopied.clear()
            self.flushed = False

    @property
    def reaches_spool(self) -> bool:
        """Half of the servers cannot."""
        return self.origin % 2 == 1

    def write(
        self, streams: list[StreamKey], fate: int, events: Mapping[tuple[bytes, bytes], Event] | None = None
    ) -> None:
        """All of these streams' columns, after the events of their table."""
        rows = [(self.records[key], *self.records[key].row(key, self.clock())) for key in streams]
        self.store.put([*event_rows(events or {}), *(row for _, row, _ in rows)], fate)
        for event in (events or {}).values():
            event.flushed = True
        for record, _, version in rows:
            record.stored = max(record.stored, version)

    def changes(self) -> Iterator[None]:
        """What was pending when the flush began."""
        collected = [key for key in self.pending if self.records[key].stored < self.records[key].version]
        unstamped = {r: ms for r, ms in self.unstamped.items() if self.unstamped_written.get(r) != ms}
        rows = [(b"u" + region.encode(), cells(ms, r=ms, t=TABLE)) for region, ms in unstamped.items()]
        if events := self.unwritten():
            self.store.put(event_rows(events), self.fate())
            self.unvouched = list(events.values())
            yield
        if rows:
            self.store.put(rows, self.fate())
            self.unstamped_written.update(unstamped)
            yield
        if collected:
            self.write(collected, self.fate())
            yield
        self.pending = {key for key in self.pending if self.records[key].stored < self.records[key].version}

    def flush_succeeded(self) -> None:
        """Requests may write to the table again; copies of what is in it go."""
        self.broken, self.flushed = False, True
        self.uncopied &= self.pending
        if not self.pending:
            self.copies = []
        for event in self.unvouched:
            event.flushed = True
        self.unvouched = []

    def check_nothing_was_lost(self) -> None:
        """What another tracker has found is true of what this one wrote as well."""
        back = self.store.get(b"c").get(column(b"b"), (None, 0))[0]
        if back != self.last_back:
            self.forget_flushes()
        self.last_back = back
        super().check_nothing_was_lost()

    def went_back(self) -> None:
        """What the table said of the slave's content proves nothing any more."""
        self.forget_flushes()
        now, mark = self.clock(), max(self.clock(), self.seen_mark + 1)
        self.store.put([(b"c", cells(now, b=now) | cells(mark, m=mark))], self.fate())
        self.last_back = self.store.get(b"c")[column(b"b")][0]
        super().went_back()

    def forget_flushes(self) -> None:
        """`ObservedState.forgetFlushes`."""
        self.unvouched, self.unstamped_written = [], {}
        self.pending |= set(self.records)
        for record in self.records.values():
            record.stored = 0
        for event in self.events.values():
            event.flushed = False

    def tidy(self) -> Iterator[None]:
        """`AppliedSegments.forgetIdle` and `Compactor.step`; and the mark."""
        self.raise_mark_in_time()
        self.forget_idle()
        while self.scattered:
            key = self.scattered.pop(0)
            if key not in self.records:
                continue
            record, read = self.records[key], self.store.get(stream_row(b"s", key))
            yield
            others, stale = self.others(record, read)
            record.take_over(others)
            if stale:
                (row, written), version = record.row(key, self.clock())
                self.store.replace(row, written, stale, self.fate())
                record.stored = max(record.stored, version)
            yield

    def others(self, record: Record, read: Cells) -> tuple[list[Part], dict[bytes, int]]:
        """What the other columns of a row say; and which of them are done, with the version that was read."""
        parts, stale = list[Part](), dict[bytes, int]()
        for name, (value, timestamp) in read.items():
            if name[2:3] == b"c" and name != column(record.column):
                parts += parse_column(value)
                if timestamp <= self.clock() - self.stale_ms:
                    stale[name] = timestamp
        return parts, stale

    def forget_idle(self) -> None:
        """A stream that comes back begins another column."""
        since = self.clock() - self.idle_ms
        for key, record in list(self.records.items()):
            if record.used <= since and record.stored == record.version and key not in self.pending:
                del self.records[key]

    def spooled(self) -> list[Write]:
        """Pending segments, and the final row."""
        now = self.clock()
        rows = [self.records[key].row(key, now)[0] for key in self.pending]
        return [*rows, self.row(now, self.last_echo, now, self.peers())]


def event_rows(events: Mapping[tuple[bytes, bytes], Event]) -> list[Write]:
    """A row each for the table's events and for what changed."""
    rows: dict[bytes, Cells] = {}
    for (row, qualifier), event in events.items():
        rows.setdefault(row, {})[column(qualifier)] = (encode(event.value), event.timestamp)
    return list(rows.items())


_NUMBERS = struct.Struct(">6q")


def column_value(parts: list[Part]) -> bytes:
    """`SegmentColumn.value`."""
    numbers = ((p.prev, p.seq, p.first_ms or 0, p.write_ms or 0, p.prev_ms or 0, p.recorded_ms or 0) for p in parts)
    return b"\x01" + b"".join(_NUMBERS.pack(*part) for part in numbers)


def parse_column(value: bytes) -> list[Part]:
    """`SegmentColumn.read`."""
    return [Segment(p, s, first, last, at, prev) for p, s, first, last, prev, at in _NUMBERS.iter_unpack(value[1:])]
