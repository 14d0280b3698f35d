"""A table of two clusters, compared by row digests: equal, different (with rows) or unverifiable (with the reason)."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum

from status_tool.digests.counted import NOT_COUNTED, RowsCounted
from status_tool.digests.coverage import Coverage
from status_tool.digests.differences import Difference, TableSide, differences
from status_tool.digests.digest import Sums
from status_tool.digests.families import Comparable, DescribedCluster, nothing_lasting
from status_tool.digests.keys import Interval, TableRange, chunks, cut, tiles
from status_tool.digests.requests import Asked, Requests
from status_tool.digests.wire import REQUEST_TABLES, Query
from status_tool.errors import ConnectionFailed
from status_tool.printable import counted
from status_tool.sources.state_table import now_ms
from status_tool.vocabulary.header import SIDES

LEAF_ROWS = 64
"""Ranges with at most this many rows are not narrowed further: they are read."""
MAX_NARROWED = 1_000
"""Ranges that are queried again at once; differences beyond are not listed."""
MAX_DEPTH = 8
"""Number of times that what differs is narrowed, by 64 each time, once the time is over."""
SETTLE_S = 5.0
"""Time that both sides must be unchanged, and differ, before a difference is reported."""
PAUSE_S = 1.0
NOTHING = Sums()


class TableVerdict(StrEnum):
    """Verdict on a table."""

    EQUAL = "equal"
    DIFFERS = "differs"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True)
class Limits:
    """Limits of a comparison."""

    cut_ms: int
    wait_s: float = 30.0
    """Time that ranges that differ are queried again while they change."""
    rate: int = 0
    """Bytes a second and region server at most; 0: as the servers are configured."""
    max_problems: int = 100


@dataclass(frozen=True)
class Result:
    """A table."""

    table: str
    verdict: TableVerdict
    families: tuple[str, ...]
    sums: Sums = NOTHING
    """The master's."""
    differences: tuple[Difference, ...] = ()
    is_all: bool = True
    """True if all differences are listed."""
    reasons: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    intervals: tuple[Interval, ...] = ()
    """Where the differences are."""


@dataclass
class _Pair:
    """One interval on both sides, whole."""

    interval: Interval
    master: Coverage
    slave: Coverage

    @property
    def sums(self) -> tuple[Sums, Sums]:
        return self.master.sums, self.slave.sums

    @property
    def is_equal(self) -> bool:
        master, slave = ((one.up_to, one.beyond, one.cells, one.rows) for one in self.sums)
        return master == slave

    @property
    def is_leaf(self) -> bool:
        return max(sums.rows for sums in self.sums) <= LEAF_ROWS

    def children(self) -> list[Interval]:
        """Cut where the side with more rows has its buckets."""
        richer = max((self.master, self.slave), key=lambda side: side.sums.rows)
        return cut(self.interval, (bucket.start for bucket in richer.buckets))


@dataclass
class _Findings:
    """The result once the digests agree as far as they do."""

    sums: Sums = NOTHING
    confirmed: list[_Pair] = field(default_factory=list)
    changing: int = 0
    """Intervals that differ, and did not stay as they were."""
    unshipped: bool = False
    """True if some may have stayed as they were only because replication had more to ship."""
    unanswered: list[str] = field(default_factory=list)
    is_all: bool = True


def compare(
    master: DescribedCluster,
    slave: DescribedCluster,
    table: str,
    how: Comparable,
    limits: Limits,
    counted: RowsCounted = NOT_COUNTED,
    shipped_until: Callable[[], float] | None = None,
    stop: threading.Event | None = None,
) -> Result:
    """Compare one table, which both clusters have; `stop` ends it. Raises `ConnectionFailed`.

    `shipped_until` looks at replication: the latest moment (monotonic) of which all that was appended before has been
    applied when it returns. With it, a difference is reported only where the sums are seen, unchanged, before such a
    moment and after that was known; without it, one that is stable is.
    """
    names = _names(how)
    # No cell from before the cut enters the sums then: equal sums would prove nothing about what is in scope.
    if (expiring := nothing_lasting(how.families, limits.cut_ms)) is not None:
        return Result(table, TableVerdict.UNVERIFIABLE, names, reasons=(expiring,), notices=how.notices)
    # The key is drawn after the data was written, so no writer can have chosen cells that collide under it.
    asked = Query({table: how.families}, os.urandom(16), limits.cut_ms, limits.rate)
    with ExitStack() as stack:
        # First in, last out: after Ctrl-C the pool's threads end only when the requests are withdrawn.
        pool = stack.enter_context(ThreadPoolExecutor(2))
        both = tuple(stack.enter_context(Requests(side.settings, asked, stop)) for side in (master, slave))
        found = _Comparison(table, (both[0], both[1]), pool, limits, counted, shipped_until).run()
    sides = [_side(cluster, table, how) for cluster in (master, slave)]
    cells, is_all, unlisted = _listed(table, found, how, sides, limits.max_problems)
    verdict, reasons = _verdict(found, how)
    where = tuple(pair.interval for pair in found.confirmed)
    return Result(table, verdict, names, found.sums, cells, is_all, (*reasons, *unlisted), how.notices, where)


def equal_at_once(
    master: DescribedCluster,
    slave: DescribedCluster,
    hows: Mapping[str, Comparable],
    limits: Limits,
    counted: RowsCounted = NOT_COUNTED,
    stop: threading.Event | None = None,
) -> dict[str, Result]:
    """Return the results of the tables that are equal at a first look. Pass the others to `compare`.

    The sums are the master's. Raises `ConnectionFailed`.
    """
    equal: dict[str, Sums] = {}
    lasting = [name for name, how in hows.items() if nothing_lasting(how.families, limits.cut_ms) is None]
    for some in chunks(lasting, REQUEST_TABLES):
        equal |= _equal_in_one_request(master, slave, {name: hows[name] for name in some}, limits, counted, stop)
    return {
        name: Result(name, TableVerdict.EQUAL, _names(hows[name]), sums, notices=hows[name].notices)
        for name, sums in equal.items()
    }


def _equal_in_one_request(
    master: DescribedCluster,
    slave: DescribedCluster,
    hows: Mapping[str, Comparable],
    limits: Limits,
    counted: RowsCounted,
    stop: threading.Event | None,
) -> dict[str, Sums]:
    asked = Query({name: how.families for name, how in hows.items()}, os.urandom(16), limits.cut_ms, limits.rate)
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(2))
        both = [stack.enter_context(Requests(side.settings, asked, stop)) for side in (master, slave)]
        parts = tiles(hows, ((one.table, one.start) for side in both for one in side.regions()))
        ours, theirs = pool.map(lambda side: side.ask(parts, counted).coverages, both)
    pairs = {number: _Pair(part.interval, ours[number], theirs[number]) for number, part in parts.items()}
    return _equal_tables(parts, pairs)


def _equal_tables(parts: Mapping[int, TableRange], pairs: Mapping[int, _Pair]) -> dict[str, Sums]:
    sums: dict[str, Sums] = {}
    unequal: set[str] = set()
    for number, part in parts.items():
        pair = pairs[number]
        sums[part.table] = sums.get(part.table, NOTHING) + pair.master.sums
        if not (pair.master.is_whole and pair.slave.is_whole and pair.is_equal):
            unequal.add(part.table)
    return {table: total for table, total in sums.items() if table not in unequal}


def _names(how: Comparable) -> tuple[str, ...]:
    return tuple(name.decode() for name in how.families)


def _side(cluster: DescribedCluster, table: str, how: Comparable) -> TableSide:
    there = cluster.tables.get(table, {})
    return TableSide(cluster.settings.thrift(), tuple(name for name in how.families if name.decode() in there))


def _listed(
    table: str, found: _Findings, how: Comparable, sides: Sequence[TableSide], most: int
) -> tuple[tuple[Difference, ...], bool, tuple[str, ...]]:
    """Return the cells that differ, whether these are all, and why some cannot be read: they differ all the same."""
    cells = list[Difference]()
    try:
        for one in found.confirmed:
            for cell in differences(table, one.interval, how.families, *sides):
                if len(cells) == most:
                    return tuple(cells), False, ()
                cells.append(cell)
    except ConnectionFailed as error:
        return tuple(cells), False, (f"not all cells that differ can be read: {error}",)
    return tuple(cells), found.is_all, ()


def _verdict(found: _Findings, how: Comparable) -> tuple[TableVerdict, tuple[str, ...]]:
    reasons = [f"not all rows were digested: {why}" for why in found.unanswered]
    if found.unshipped:
        reasons.append("ranges differ, of which replication may still have entries to ship")
    elif found.changing:
        reasons.append(f"{counted(found.changing, 'range')} with differences kept changing during the comparison")
    if found.confirmed:
        doubts = list(how.doubts)
        if any(sums.expiring for pair in found.confirmed for sums in pair.sums):
            doubts.append("cells have a time to live of their own, which replication does not carry by default")
        # Each server expires cells by its own clock: after the horizon one side may lack a cell that the other has.
        if how.horizon_ms is not None and now_ms() > how.horizon_ms:
            doubts.append("it took so long that cells may have expired (TTL) meanwhile: compare smaller parts")
        if not doubts:
            return TableVerdict.DIFFERS, tuple(reasons)
        reasons += [f"it differs, which may be as it should: {doubt}" for doubt in doubts]
    return (TableVerdict.UNVERIFIABLE if reasons else TableVerdict.EQUAL), tuple(reasons)


class _Comparison:
    """Queries both sides for the same intervals, and again, ever narrower, for those that differ."""

    def __init__(
        self,
        table: str,
        sides: tuple[Requests, Requests],
        pool: ThreadPoolExecutor,
        limits: Limits,
        counted: RowsCounted = NOT_COUNTED,
        shipped_until: Callable[[], float] | None = None,
    ) -> None:
        self._table = table
        self._sides = sides
        self._look = shipped_until
        self._shipped = (float("-inf"), float("-inf"))
        """Until when all has been shipped, and when that was known."""
        self._asked_at = float("-inf")
        self._pool = pool
        self._limits = limits
        self._counted = counted
        self._numbers = itertools.count()
        self._found = _Findings()
        self._seen: dict[Interval, tuple[tuple[Sums, Sums], float]] = {}
        self._parked: list[Interval] = []
        """Differ, and are not looked at more closely before the others are settled."""

    def run(self) -> _Findings:
        """Compare all rows of the table."""
        limits = {region.start for side in self._sides for region in side.regions()}
        pairs = self._ask(cut(Interval(b"", b""), limits))
        # The first round alone covers each row once: later rounds repeat parts of it.
        self._found.sums = sum((pair.master.sums for pair in pairs), Sums())
        unequal = [pair for pair in pairs if not pair.is_equal]
        # `wait_s` begins after the first round, which takes longer the larger the table is.
        deadline, late = time.monotonic() + self._limits.wait_s, 0
        while not self._found.unanswered:
            settled = self._settle(unequal)
            self._found.confirmed += settled
            unequal = [pair for pair in unequal if pair not in settled]
            # Parked ranges decide nothing once another one differs for good.
            done = not unequal and (not self._parked or bool(self._found.confirmed))
            late += time.monotonic() > deadline
            # A range that grows as fast as it is narrowed never becomes small.
            if done or late > MAX_DEPTH or (late and all(pair.is_leaf for pair in unequal)):
                break
            time.sleep(PAUSE_S)
            unequal = [pair for pair in self._ask(self._next(unequal)) if not pair.is_equal]
        self._found.changing = len(unequal) + (0 if self._found.confirmed else len(self._parked))
        self._found.is_all = not unequal and not self._parked
        self._found.confirmed.sort(key=lambda pair: pair.interval.start)
        return self._found

    def _settle(self, pairs: Sequence[_Pair]) -> list[_Pair]:
        """Return the leaves whose sums have not changed for a while although all earlier edits had been applied."""
        # The sums were read before `now`, so no pair counts as unchanged for longer than it was.
        now, settled, waiting = time.monotonic(), [], [float("-inf")]
        for pair in pairs:
            if not pair.is_leaf:
                continue
            sums, since = self._seen.get(pair.interval, (None, now))
            if sums != pair.sums:
                self._seen[pair.interval] = (pair.sums, now)
            elif now - since < SETTLE_S:
                continue
            elif self._is_shipped(since):
                settled.append(pair)
            else:
                waiting.append(since)
        self._found.unshipped = self._are_unshipped(max(waiting))
        return settled

    def _is_shipped(self, since: float) -> bool:
        """Return True if all edits from before `since` had been applied when the sums were last requested."""
        until, known_at = self._shipped
        # Sums that were requested before the edits were known to be applied may lack them, and prove nothing.
        return self._look is None or (since <= until and known_at <= self._asked_at)

    def _are_unshipped(self, since: float) -> bool:
        """Look at replication for sums that wait for it, the last of them seen first at `since`."""
        if self._look is not None and since > self._shipped[0]:
            until = self._look()
            if until > self._shipped[0]:
                self._shipped = (until, time.monotonic())
        return since > self._shipped[0]

    def _next(self, pairs: Sequence[_Pair]) -> list[Interval]:
        """Return the next intervals, at most `MAX_NARROWED`. The others are parked for later; none is lost."""
        narrowed = [child for pair in pairs for child in ([pair.interval] if pair.is_leaf else pair.children())]
        if not self._found.confirmed:
            narrowed += self._parked
            self._parked = []
        self._parked += narrowed[MAX_NARROWED:]
        return narrowed[:MAX_NARROWED]

    def _ask(self, intervals: Sequence[Interval]) -> list[_Pair]:
        self._asked_at = time.monotonic()
        whole = (TableRange(self._table, interval) for interval in intervals)
        # The numbers go on from round to round: a late answer to an earlier round names a part that is no longer open.
        parts: Mapping[int, TableRange] = dict(zip(self._numbers, whole, strict=False))
        answers: list[Asked] = list(self._pool.map(lambda side: side.ask(parts, self._counted), self._sides))
        for asked, side in zip(answers, SIDES, strict=True):
            self._found.unanswered += [f"{side}: {why}" for why in asked.unanswered]
        pairs = [_Pair(parts[n].interval, answers[0].coverages[n], answers[1].coverages[n]) for n in parts]
        # `unanswered` says why pairs are left out here, and keeps the table from being equal.
        return [pair for pair in pairs if pair.master.is_whole and pair.slave.is_whole]
