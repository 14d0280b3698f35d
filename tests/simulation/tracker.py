"""The two trackers as the Java ones are (coprocessor_stubs/src/main): what they remember, write, and in which order.

A recorder's round is a generator that stops after each call to the table: other things happen in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from status_tool.evidence.ids import origin_id
from status_tool.evidence.segments import Segment as Interval
from status_tool.evidence.segments import union
from status_tool.sources.codec import column
from tests.simulation.store import APPLIED, SERVER_TIME, Cells, Store, StoreError, Write, cells, encode

TABLE = "t"
DESCRIPTOR = '{"families": {"f": {"scope": 1}}, "durability": "USE_DEFAULT", "enabled": true}'
SLAVE_VIA, OTHER_VIA = 2, 1
VIA_IDS = {0: None, OTHER_VIA: b"\x0c" * 16, SLAVE_VIA: b"\x0b" * 16}
Fate = Callable[[], int]
Values = dict[str, int | bytes | str | None]
StreamKey = tuple[str, int, int]
"""Region, origin, via."""
Part = tuple[int, int, int, int]
"""A segment: prev, seq, write times of its first and last entry."""


def hex16(number: int) -> bytes:
    """Eight bytes in hex, as row keys have them."""
    return b"%016x" % (number & 0xFFFFFFFFFFFFFFFF)


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
    prev: int | None = None
    """The stamp; None: without."""


@dataclass
class Head:
    """`StreamHead`."""

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
    errors: int = 0
    written: bool = False
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

    @property
    def origin(self) -> int:
        """The id of the server's incarnation."""
        return origin_id(self.name)

    @property
    def key(self) -> bytes:
        """The server's row."""
        return b"o" + hex16(self.origin) + self.role.encode()

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
        self.look_at_peers()
        if not self.written:
            self.store.put([self.row(self.last_began, self.last_echo, None, self.last_peers)], self.fate())
            self.written = True
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
        found = self.store.get(b"b").get(column("k"))
        if found is None or (self.last_echo is not None and found[0] == self.last_echo[0]):
            return None
        return found[0], self.clock()

    def claim(self, token: bytes) -> bool:
        """`Barrier.claim`: whether this one writes the tables down. A claim that was won stays won."""
        if self.claimed != token:
            if self.store.get(b"b").get(column("c"), (b"", 0))[0] == token:
                return False
            self.claimed = token  # a claim that seems to have failed may have been won
            self.store.put([(b"b", cells(SERVER_TIME, c=token))], self.fate())
        return True

    def flush(self, token: tuple[bytes, int] | None, *, end: bool) -> Iterator[None]:
        """`Flusher.flush`: a server's row comes last, and only if all else was written."""
        peers, began, echo = self.peers(), self.clock(), token or self.last_echo
        self.check_nothing_was_lost()
        yield
        yield from self.changes()
        self.store.put([self.row(began, echo, began if end else None, peers)], self.fate())
        self.written, self.ended = True, end
        self.last_began, self.last_echo, self.last_peers = began, echo, peers
        self.flush_succeeded()
        yield

    def row(
        self,
        flushed: int | None,
        echo: tuple[bytes, int] | None,
        final: int | None,
        peers: Mapping[str, Sequence[int]],
    ) -> Write:
        """`ServerRole.row`."""
        token, read = echo or (None, None)
        health = json.dumps({"failed_writes": 0, "pending": 0, "errors": self.errors, "peers": peers})
        values: Values = {
            "n": self.name,
            "a": self.started,
            "q": health,
            "f": flushed,
            "e": token,
            "m": read,
            "z": final,
        }
        return self.key, cells(self.clock(), **values)

    def changes(self) -> Iterator[None]:
        """Write what the table does not have yet."""
        raise NotImplementedError

    def look_at_peers(self) -> None:
        """`PeerWatch.look`: only a server with sources has peers."""

    def peers(self) -> Mapping[str, Sequence[int]]:
        """`PeerWatch.json`."""
        return {}

    def check_nothing_was_lost(self) -> None:
        """`Flusher.checkNothingWasLost`: only what a write-time tracker does about it decides a verdict."""

    def flush_succeeded(self) -> None:
        """After a whole flush."""

    def tidy(self) -> Iterator[None]:
        """Compaction or sweep."""
        return iter(())

    def spooled(self) -> list[Write]:
        """What a server writes to a file when its last flush cannot reach the table."""
        raise NotImplementedError


@dataclass
class WriteTracker(Recorder):
    """`WriteTimeTracker` with `WalStamper`, `HeadRegistry`, `Sweep`."""

    heads: dict[StreamKey, Head] = field(default_factory=dict)
    sync: Callable[[], None] = lambda: None
    live_servers: Callable[[], list[str]] = list
    on_interrupt: Callable[[str], None] = lambda _: None
    in_force: Callable[[], Mapping[str, tuple[int, int]]] = dict
    """By peer that the server has a source for: incarnation and version of its znode."""
    known_peers: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)
    last_coverage: bytes | None = None
    begun: bool = False
    """Whether it has seen the start of coverage in the table."""
    failing: bool = False
    """The next hook fails: its entry goes unseen, and is counted."""
    untracked: dict[str, int] = field(default_factory=dict)
    next_sweep: int = 0
    grace_ms: int = 130_000
    sweep_ms: int = 60_000

    def before(self, entry: Entry) -> None:
        """`WalStamper.stamp`."""
        head = self.heads.setdefault((entry.region, self.origin, entry.via), Head())
        if entry.prev is not None:
            return  # appended again: the chain was made when it came first
        if self.failing:
            self.failing, self.errors = False, self.errors + 1
            return
        if entry.seq <= head.seq:
            self.errors += 1
            return
        entry.prev = head.seq

    def after(self, entry: Entry) -> None:
        """`WalStamper.after`; an entry that was not stamped goes unseen."""
        if entry.prev is None:
            return
        self.heads[entry.region, self.origin, entry.via].advance(entry)

    def look_at_peers(self) -> None:
        """What is in force, and since which version it is the same."""
        known, self.known_peers = self.known_peers, {}
        for peer, (incarnation, version) in self.in_force().items():
            before = known.get(peer)
            if before is None or before[0] != incarnation:
                before = (incarnation, version, version, self.clock())
            self.known_peers[peer] = (incarnation, before[1], version, before[3])

    def peers(self) -> Mapping[str, Sequence[int]]:
        """As of the last look."""
        return dict(self.known_peers)

    def changes(self) -> Iterator[None]:
        """Heads are collected, then the WALs are synced, then they are written."""
        collected = [(key, head, head.seq) for key, head in self.heads.items() if head.seq != head.flushed]
        writes = [head_row(key, head) for key, head, _ in collected]
        if writes:
            self.sync()
            yield
            self.store.put(writes, self.fate())
            for _, head, seq in collected:
                head.flushed = max(head.flushed, seq)
            yield

    def check_nothing_was_lost(self) -> None:
        """Write again what is still known; what servers that are gone had written is not, so coverage starts anew."""
        coverage = self.store.get(b"c").get(column("a"), (None, 0))[0]
        own_lost = self.written and not self.store.get(self.key)
        coverage_lost = coverage is None and self.last_coverage is not None
        if own_lost or coverage_lost or self.last_coverage not in (None, coverage):
            for head in self.heads.values():
                head.flushed = 0
        if own_lost or coverage_lost:
            now = self.clock()
            self.store.put([(b"c", cells(now, a=now))], self.fate())
            coverage = encode(now)
        self.last_coverage = coverage

    def tidy(self) -> Iterator[None]:
        """`Sweep.run`: servers that are gone, and since when every server is tracked."""
        now = self.clock()
        if now < self.next_sweep:
            return
        self.next_sweep = now + self.sweep_ms
        live = set(self.live_servers())
        yield
        known = {row[column("n")][0].decode(): (key, row) for key, row in self.store.scan(b"o", b"p")}
        for name, (key, row) in known.items():
            if name not in live and column("z") not in row and column("x") not in row:
                self.store.put([(key, cells(now, x=now))], self.fate())
        if not self.store.get(b"c"):
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
        return [*heads, self.row(now, self.last_echo, now, self.peers())]


def head_row(key: StreamKey, head: Head) -> Write:
    """`Ledgers.row`: the cells' timestamp is the sequence id."""
    values: Values = {
        "s": head.seq,
        "w": head.write_ms,
        "f": head.first_ms,
        "n": head.count,
        "t": TABLE,
        "v": VIA_IDS[key[2]],
    }
    return stream_row(b"h", key), cells(head.seq, **values)


@dataclass
class SinkTracker(Recorder):
    """`ReplicateTimeTracker` with `SinkBatch`, `WriteThrough`, `SinkLedger`, `Compactor`."""

    pending: dict[StreamKey, list[Part]] = field(default_factory=dict)
    unstamped: dict[str, int] = field(default_factory=dict)
    unstamped_written: dict[str, int] = field(default_factory=dict)
    touched: list[StreamKey] = field(default_factory=list)
    broken: bool = False

    def batch_applied(self, entries: list[Entry], fate: Fate) -> None:
        """The hooks of one request, after all of it was applied."""
        streams: dict[StreamKey, list[Part]] = {}
        for entry in entries:
            if entry.prev is None:
                self.unstamped[entry.region] = max(entry.write_ms, self.unstamped.get(entry.region, 0))
                continue
            part = (entry.prev, entry.seq, entry.write_ms, entry.write_ms)
            streams.setdefault((entry.region, entry.origin, entry.via), []).append(part)
        streams = {key: merged(parts) for key, parts in streams.items()}
        if streams:
            self.write_through(streams, fate)

    def write_through(self, streams: dict[StreamKey, list[Part]], fate: Fate) -> None:
        """Once and briefly; after a failure nobody tries again until a flush has succeeded."""
        try:
            if self.broken:
                raise StoreError
            self.store.put([segment_row(key, parts) for key, parts in streams.items()], fate())
            self.touched += streams
        except StoreError:
            self.broken = True
            self.keep(streams)

    def keep(self, streams: dict[StreamKey, list[Part]]) -> None:
        """`SinkLedger.keep`."""
        for key, parts in streams.items():
            self.pending[key] = merged([*self.pending.get(key, []), *parts])

    def changes(self) -> Iterator[None]:
        """What was pending when the flush began; what is added meanwhile stays."""
        collected = dict(self.pending)
        unstamped = {r: ms for r, ms in self.unstamped.items() if self.unstamped_written.get(r) != ms}
        writes = [segment_row(key, parts) for key, parts in collected.items()]
        writes += [(b"u" + region.encode(), cells(ms, r=ms, t=TABLE)) for region, ms in unstamped.items()]
        if writes:
            self.store.put(writes, self.fate())
            for key, parts in collected.items():
                if self.pending.get(key) is parts:
                    del self.pending[key]
                self.touched.append(key)
            self.unstamped_written.update(unstamped)
            yield

    def flush_succeeded(self) -> None:
        """Requests may write through again."""
        self.broken = False

    def tidy(self) -> Iterator[None]:
        """`Compactor.step`: read, then replace the parts that were read by their union."""
        while self.touched:
            key = stream_row(b"s", self.touched.pop(0))
            parts = [part for name, cell in self.store.get(key).items() if (part := parse_part(name, cell[0]))]
            yield
            whole = merged(parts)
            if len(whole) < len(parts):
                put = {name: cell for part in whole if part not in parts for name, cell in [part_cell(part)]}
                self.store.replace(key, put, [part_cell(part)[0] for part in parts if part not in whole], self.fate())
            yield

    def spooled(self) -> list[Write]:
        """Pending segments, and the final row."""
        now = self.clock()
        rows = [segment_row(key, parts) for key, parts in self.pending.items()]
        return [*rows, self.row(now, self.last_echo, now, self.peers())]


def merged(parts: list[Part]) -> list[Part]:
    """`SegmentSet`: the union, with the write times of the first and the last entry of each interval."""
    found = []
    for low, high in union(Interval(part[0], part[1]) for part in parts):
        first = min((part for part in parts if part[0] == low), key=lambda part: part[1])
        last = max((part for part in parts if part[1] == high), key=lambda part: part[0])
        found.append((low, high, first[2], last[3]))
    return found


def part_cell(part: Part) -> tuple[bytes, tuple[bytes, int]]:
    """A segment's column."""
    name = column(b"p" + encode(part[0]) + encode(part[1]))
    return name, (encode(part[2]) + encode(part[3]), SERVER_TIME)


def parse_part(name: bytes, value: bytes) -> Part | None:
    """The segment of a column; None for other columns."""
    qualifier = name[2:]
    if len(qualifier) != 17 or qualifier[:1] != b"p":
        return None
    numbers = (qualifier[1:9], qualifier[9:], value[:8], value[8:])
    prev, seq, first, last = (int.from_bytes(number, "big", signed=True) for number in numbers)
    return prev, seq, first, last


def segment_row(key: StreamKey, parts: list[Part]) -> Write:
    """`AppliedStream.toRow`."""
    row: Cells = dict(part_cell(part) for part in parts)
    newest = max(part[3] for part in parts)
    return stream_row(b"s", key), {**row, **cells(newest, r=newest), **cells(SERVER_TIME, t=TABLE)}
