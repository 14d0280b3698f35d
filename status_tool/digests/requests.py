"""Queries one cluster's region servers for digests, through a table of their own (docs/formats.md, "Row digests").

One request may be about many tables: a server works on four at a time, and learns of one a second.

An answer counts only if `hbase:meta` says, before and after, that the region is open on that server with the same open
sequence number: else a partitioned server might answer for rows that it no longer hosts.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.thrift import connection, get, scan
from status_tool.digests.counted import NOT_COUNTED, RowsCounted
from status_tool.digests.coverage import Coverage
from status_tool.digests.digest import FOREVER, Sums
from status_tool.digests.families import CLOCKS_MS
from status_tool.digests.keys import Interval, TableRange, limit, spans
from status_tool.digests.request_rows import AnswerRow, PageRow, ProgressRow, RequestRow
from status_tool.digests.wire import PAGE_RANGES, Answer, DamagedAnswer, Query, Range, answers, page, request
from status_tool.errors import ConnectionFailed, StatusToolError
from status_tool.printable import counted
from status_tool.sources import codec, meta
from status_tool.sources.meta import HostedRegion
from status_tool.sources.state_table import now_ms
from status_tool.vocabulary.ids import as_hex, origin_id
from status_tool.vocabulary.names import requests_table_of
from status_tool.vocabulary.state_rows import FAMILY, BarrierRow, column

TTL_S = 86_400
HEARTBEAT_S = 4.0
"""A region server drops a request after 30 s without a new one."""
ANSWER_POLL_S = 0.5
"""At most: a tenth of what has been waited for, but a tenth of this at least."""
META_S = 1.0
BELL_S = 1.2
"""Longer than from one look of a tracker at the doorbell to the next."""
SILENT_S = 20.0
"""A server that works on a request reports so at once, and then every five seconds."""
SILENT_AGAIN_S = 5.0
"""One that was given up in this run and has not answered since: 20 s for each of a thousand tables would be hours."""
DEAD_S = 120.0
"""One that has answered before may be dead, which `hbase:meta` shows once HBase has noticed."""
UNHOSTED_S = 60.0
MAX_REFUSALS = 60


class _Bell:
    """The doorbell holds one ring, and is looked at each second at least: another request waits until it was seen."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._last: tuple[bytes, float] = (b"", float("-inf"))

    @contextlib.contextmanager
    def turn(self, request: bytes) -> Iterator[None]:
        """Let one request at a time ring. Waits first if another one has rung within `BELL_S` and was not `heard`."""
        with self._changed:
            while (left_s := self._left_s(request)) > 0:
                self._changed.wait(left_s)
            # The lock stays held while it rings: the doorbell is one cell, and a second ring would overwrite the first.
            yield
            self._last = (request, time.monotonic())

    def heard(self, request: bytes) -> None:
        """Let others ring: all servers that the request is for have answered its ring."""
        with self._changed:
            if self._last[0] == request:
                self._last = (b"", float("-inf"))
                self._changed.notify_all()

    def _left_s(self, request: bytes) -> float:
        rung, at = self._last
        # A request may overwrite its own ring: both lead a server to the same rows.
        return 0.0 if rung == request else at + BELL_S - time.monotonic()


_BELLS: dict[tuple[ThriftEndpoint, str], _Bell] = {}
"""By cluster and state table: both sides of a comparison ring at the same time."""
_SILENT: set[str] = set()
"""Servers that have never answered in this run. A restarted one has another start code in its name."""


@dataclass(frozen=True)
class Asked:
    """Answers of one cluster. A coverage has gaps where the cluster did not answer."""

    coverages: Mapping[int, Coverage]
    unanswered: tuple[str, ...] = ()
    """Reasons why parts have gaps."""


@dataclass
class _Server:
    """One region server's side of the conversation."""

    origin: str
    next_answer: bytes
    next_page: int = 0
    heard_at: float = field(default_factory=time.monotonic)
    progress_ts: int | None = None
    has_spoken: bool = False


@dataclass(frozen=True)
class Sampled:
    """A random range that was digested."""

    table: str
    interval: Interval
    sums: Sums


_Heard = tuple[tuple[str, str, int], Answer]
"""An answer, with server, region and open sequence number."""


def _pause_s(began: float) -> float:
    """Return the seconds until the next look for answers."""
    return min(ANSWER_POLL_S, max(ANSWER_POLL_S, time.monotonic() - began) / 5)


def _sums(answer: Answer) -> Sums:
    return sum((bucket.sums for bucket in answer.buckets), Sums())


def _apart(regions: Iterable[HostedRegion]) -> list[HostedRegion]:
    """Return the regions by table, in key order, without those that share keys.

    Nobody knows which of those clients read. A scan of `hbase:meta` during a split shows such regions for a moment.
    """
    found = sorted(regions, key=lambda one: (one.table, one.start))
    shared, widest = set[HostedRegion](), None
    for region in found:
        is_same = widest is not None and widest.table == region.table
        if widest is not None and is_same and (0, region.start) < limit(widest.stop):
            shared |= {widest, region}
        if widest is None or not is_same or limit(widest.stop) < limit(region.stop):
            widest = region
    return [region for region in found if region not in shared]


def _is_of(answer: Answer, region: HostedRegion) -> bool:
    """Return True if the answer is one whole range within the region."""
    start, stop = answer.buckets[0].start, answer.buckets[-1].stop
    whole = Coverage(Interval(start, stop))
    inside = Interval(region.start, region.stop).holds(start, stop)
    return inside and (not stop or start < stop) and whole.add(answer.buckets)


class Requests:
    """One request on one cluster, open while the block runs: `ask` it for any number of parts, again and again."""

    def __init__(self, settings: Settings, question: Query, stop: threading.Event | None = None) -> None:
        """Prepare requests. `stop` ends them from outside, for example by Ctrl-C in another thread."""
        self._stop = stop or threading.Event()
        self._endpoint = settings.thrift()
        self._state_table = settings.state_table
        self.name = requests_table_of(settings.state_table)
        self._tables = frozenset(question.tables)
        self._expires = any(one.oldest != FOREVER for asked in question.tables.values() for one in asked.values())
        self._request = request(question)
        # Rows of a request hold its id, so this one never reads answers to an earlier request for the same tables.
        self._id = os.urandom(16)
        self._servers: dict[str, _Server] = {}
        self._rings = 0
        self._bell = _BELLS.setdefault((self._endpoint, self._state_table), _Bell())
        self._over = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="row-digests-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._require_table()
        self._put(
            self._key(RequestRow.TYPE),
            {RequestRow.REQUEST: self._request, RequestRow.HEARTBEAT: (0).to_bytes(8, "big")},
        )
        if self._expires:
            self._require_clock()
        # Last: if `__enter__` raises, `__exit__` does not run, and nothing stops the thread.
        self._heart.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._heart.join(2 * HEARTBEAT_S)
        # Servers give up a request 30 s after its last heartbeat, so a withdrawal that fails costs no more than that.
        with contextlib.suppress(StatusToolError):
            self._put(self._key(RequestRow.TYPE), {RequestRow.WITHDRAWN: b"1"})

    def _require_table(self) -> None:
        """Create the table if needed. Its TTL deletes everything in it."""
        if self._has_table():
            return
        try:
            with connection(self._endpoint) as client:
                client.create_table(self.name, {FAMILY.decode(): {"max_versions": 1, "time_to_live": TTL_S}})
        except ConnectionFailed:
            # Another request, of this run or of another one, may have created it in between.
            if not self._has_table():
                raise

    def _require_clock(self) -> None:
        """Raise `ConnectionFailed` if this host's clock, by which cells with a TTL are left out, is not HBase's."""
        # The request was put just now, while an answer may be read long after it was written.
        key = self._key(RequestRow.TYPE)
        cells = get(self._endpoint, self.name, key)
        if cells and abs(now_ms() - max(moment for _, moment in cells.values())) > CLOCKS_MS:
            raise ConnectionFailed(
                f"the clocks of this host and of the HBase behind {self._endpoint} differ by more than "
                f"{CLOCKS_MS // 60_000} minutes, so that it is not known which cells expire soon (TTL): set them (NTP)"
            )

    def _has_table(self) -> bool:
        with connection(self._endpoint) as client:
            return self.name.encode() in client.tables()

    def _key(self, kind: str, *rest: str) -> bytes:
        return (kind + self._id.hex() + "".join(rest)).encode()

    def _put(self, key: bytes, cells: Mapping[bytes, bytes]) -> None:
        with connection(self._endpoint) as client:
            client.table(self.name).put(key, {column(name): value for name, value in cells.items()})

    def _ring(self) -> None:
        """Put a new number into the barrier's row, which trackers poll."""
        # `DigestWorker.ring` ignores a doorbell that has not changed.
        self._rings += 1
        bell = self._id + self._rings.to_bytes(8, "big")
        with self._bell.turn(self._id), connection(self._endpoint) as client:
            client.table(self._state_table).put(BarrierRow.KEY, {column(BarrierRow.DOORBELL): bell})

    def _beat(self) -> None:
        beats = 0
        while not self._over.wait(HEARTBEAT_S):
            beats += 1
            # One beat that fails ends nothing: a server waits 30 s for the next one (`DigestJob.ABANDONED_MS`).
            with contextlib.suppress(StatusToolError):
                self._put(self._key(RequestRow.TYPE), {RequestRow.HEARTBEAT: beats.to_bytes(8, "big")})
                # Another process may have overwritten the ring, or a server may have four requests already.
                # The copy is for `send`, which adds servers meanwhile.
                if not all(server.has_spoken for server in list(self._servers.values())):
                    self._ring()

    @property
    def is_over(self) -> bool:
        """Return True if the block has been left, for example by Ctrl-C, while somebody still waits for answers."""
        return self._over.is_set() or self._stop.is_set()

    def regions(self) -> Iterator[HostedRegion]:
        """Yield the tables' open regions, as `hbase:meta` knows them now."""
        return meta.open_regions(self._endpoint, self._tables)

    def ask(
        self, parts: Mapping[int, TableRange], counted: RowsCounted = NOT_COUNTED, within_s: float | None = None
    ) -> Asked:
        """Request digests of every part, and wait at most `within_s`. Numbers of parts are never reused."""
        return _Round(self, parts, counted, within_s).run()

    def sample(self, regions: Sequence[HostedRegion], within_s: float, silent_s: float) -> list[Sampled]:
        """Request digests of a random range of each region. Returns those that were answered within `within_s`.

        Where there is no answer at all within `silent_s`, it does not wait for any.
        """
        places = {(one.server, one.encoded, one.open_seq): one for one in regions}
        wanted: dict[str, list[Range]] = {}
        for number, one in enumerate(regions):
            wanted.setdefault(one.server, []).append(Range(number, one.encoded, one.open_seq, one.start, one.stop))
        self.send(wanted)
        began, heard, open_parts = time.monotonic(), list[_Heard](), set(range(len(regions)))
        while open_parts and time.monotonic() - began < (within_s if heard else min(silent_s, within_s)):
            if self.is_over:
                return []
            time.sleep(_pause_s(began))
            for name in wanted:
                new = [((name, answer.region, answer.open_seq), answer) for answer in self.hear(name)]
                open_parts -= {answer.part for _, answer in new}
                heard += new
        # After the answers: a region that still has its server and opening had both when that server read it.
        now = meta.open_again(self._endpoint, regions)
        hosted = {(one.server, one.encoded, one.open_seq) for one in now}
        return [
            Sampled(places[place].table, Interval(answer.buckets[0].start, answer.buckets[-1].stop), _sums(answer))
            for place, answer in heard
            if place in hosted and place in places and answer.buckets and _is_of(answer, places[place])
        ]

    def send(self, by_server: Mapping[str, Sequence[Range]]) -> None:
        """Put ranges before their servers, then ring."""
        for name, ranges in by_server.items():
            server = self.server(name)
            server.heard_at = time.monotonic()
            for first in range(0, len(ranges), PAGE_RANGES):
                key = f"{PageRow.TYPE}{server.origin}{self._id.hex()}{server.next_page:08x}".encode()
                self._put(key, {PageRow.RANGES: page(ranges[first : first + PAGE_RANGES])})
                server.next_page += 1
        # Last: a server that finds no page looks again only after two seconds (`DigestJob.REFRESH_MS`).
        self._ring()

    def server(self, name: str) -> _Server:
        """Return the record of a server. Creates it at first."""
        if name not in self._servers:
            origin = as_hex(origin_id(name))
            self._servers[name] = _Server(origin, self._key(AnswerRow.TYPE, origin))
        return self._servers[name]

    def hear(self, name: str) -> Iterator[Answer]:
        """Yield the new answers of a server."""
        server = self.server(name)
        for key, cells in scan(
            self._endpoint, self.name, server.next_answer, self._key(AnswerRow.TYPE, server.origin, "g")
        ):
            # A server never writes a row of answers twice, and numbers them upwards (`DigestJob.nextAnswer`).
            server.next_answer = key + b"\0"
            server.heard_at, server.has_spoken = time.monotonic(), True
            _SILENT.discard(name)
            # An answer after a second ring does not tell which of the two its server has seen.
            if self._rings == 1 and all(one.has_spoken for one in self._servers.values()):
                self._bell.heard(self._id)
            try:
                yield from answers(codec.raw(cells, AnswerRow.ANSWERS) or b"")
            except DamagedAnswer as error:
                raise ConnectionFailed(f"{name} sent an answer that cannot be parsed ({error})") from None

    def is_silent(self, name: str) -> bool:
        """Return True if a server has neither answered nor reported progress for a while."""
        server = self.server(name)
        if time.monotonic() - server.heard_at < SILENT_AGAIN_S:
            return False
        # Progress costs a read of its own, so it counts only once answers have stayed away.
        key = self._key(ProgressRow.TYPE, server.origin)
        if cells := get(self._endpoint, self.name, key):
            written = max(timestamp for _, timestamp in cells.values())
            # Only a change counts: the timestamp is of another host's clock.
            if written != server.progress_ts:
                server.progress_ts, server.heard_at, server.has_spoken = written, time.monotonic(), True
        if server.has_spoken:
            _SILENT.discard(name)
            return time.monotonic() - server.heard_at > DEAD_S
        if time.monotonic() - server.heard_at <= (SILENT_AGAIN_S if name in _SILENT else SILENT_S):
            return False
        _SILENT.add(name)
        return True


class _Round:
    """One `ask`: puts ranges before the servers that host them until the parts are covered."""

    def __init__(
        self,
        requests: Requests,
        parts: Mapping[int, TableRange],
        counted: RowsCounted = NOT_COUNTED,
        within_s: float | None = None,
    ) -> None:
        self._requests = requests
        self._deadline = float("inf") if within_s is None else time.monotonic() + within_s
        self._coverages = {number: Coverage(part.interval) for number, part in parts.items()}
        self._tables = {number: part.table for number, part in parts.items()}
        self._spans = spans(parts.values())
        self._open = set(parts)
        self._counted = counted
        self._asked: dict[tuple[str, str, int], list[Range]] = {}
        """By server, region and open sequence number."""
        self._regions: dict[str, list[HostedRegion]] = {}
        """By table, in key order."""
        self._read_at = float("-inf")
        self._heard: list[tuple[str, Answer]] = []
        self._refusals = 0
        self._last_refusal = ""
        self._given_up: dict[str, str] = {}
        self._worked_at = time.monotonic()

    def run(self) -> Asked:
        self._counted.asked(len(self._open))
        began = time.monotonic()
        self._look()
        self._send()
        while self._open and self._refusals < MAX_REFUSALS and self._is_worth_waiting() and not self._requests.is_over:
            time.sleep(_pause_s(began))
            self._hear()
            # `hbase:meta` comes after the answers: a region that moves in between loses its answer. In the other
            # order, an answer of the server that has just lost the region would count.
            if self._heard or time.monotonic() - self._read_at > META_S:
                self._look()
                self._judge()
                self._send()
        reasons = tuple(f"{name} {why}" for name, why in self._given_up.items())
        if self._refusals:
            reasons += (f"{counted(self._refusals, 'refused answer')}, the last by {self._last_refusal}",)
        if not reasons and time.monotonic() >= self._deadline:
            reasons = ("the time is over",)
        if not reasons:
            reasons = ("rows are not in any open region, or in several",)
        return Asked(self._coverages, reasons if self._open else ())

    def _is_worth_waiting(self) -> bool:
        """Return True if any server works on the missing ranges, or a region may still open somewhere."""
        now = time.monotonic()
        if now >= self._deadline:
            return False
        missing = {number: self._coverages[number].gaps() for number in self._open}
        ranges = (one for place in self._asked.values() for one in place if one.part in missing)
        if any(gap.intersection(one.start, one.stop) for one in ranges for gap in missing[one.part]):
            self._worked_at = now
        # Regions of a server that was given up are open: a wait for them to open is in vain.
        return now - self._worked_at < (META_S if self._given_up else UNHOSTED_S)

    def _look(self) -> None:
        regions = _apart(region for region in self._requests.regions() if self._is_wanted(region))
        self._read_at = time.monotonic()
        hosted = {(region.server, region.encoded, region.open_seq) for region in regions}
        self._regions = {}
        for region in regions:
            self._regions.setdefault(region.table, []).append(region)
        # Ranges of places that are gone leave the list, so `_send` asks for them where the region is now.
        self._asked = {place: ranges for place, ranges in self._asked.items() if place in hosted}

    def _is_wanted(self, region: HostedRegion) -> bool:
        """Return True if any part has rows in the region. With samples, few of very many regions have any."""
        own = self._spans.get(region.table, [])
        last = bisect.bisect_left(own, limit(region.stop), key=lambda one: (0, one.start)) - 1
        return last >= 0 and own[last].intersection(region.start, region.stop) is not None

    def _hear(self) -> None:
        for name in {place[0] for place in self._asked}:
            self._heard += [(name, answer) for answer in self._requests.hear(name)]
            if self._requests.is_silent(name):
                self._given_up[name] = (
                    "does not answer: a tracker of this version has to run there, with "
                    "hbase.replicationtable.digest.enabled not set to false"
                )
                self._asked = {place: ranges for place, ranges in self._asked.items() if place[0] != name}

    def _judge(self) -> None:
        """Take answers of regions that are still where they were asked; `_look` has just been there."""
        for name, answer in self._heard:
            place = (name, answer.region, answer.open_seq)
            # Answers from places that `_look` has dropped, from earlier rounds and for whole parts count for nothing.
            if place not in self._asked or answer.part not in self._open:
                continue
            coverage = self._coverages[answer.part]
            if answer.refused is not None:
                self._refusals += 1
                self._last_refusal = f"{name}: {answer.refused}"
                # `_send` asks for all open ranges of the region again; `Coverage` takes no row twice.
                del self._asked[place]
            elif coverage.add(answer.buckets):
                self._counted.digested(_sums(answer))
                if coverage.is_whole:
                    self._open.discard(answer.part)
                    self._counted.answered()
        self._heard = []

    def _send(self) -> None:
        wanted: dict[str, list[Range]] = {}
        for number in sorted(self._open):
            for gap in self._coverages[number].gaps():
                for region in self._holding(self._tables[number], gap):
                    one = self._range(number, gap, region)
                    if one is not None and region.server not in self._given_up:
                        wanted.setdefault(region.server, []).append(one)
                        self._asked.setdefault((region.server, region.encoded, region.open_seq), []).append(one)
        if wanted:
            self._requests.send(wanted)

    def _holding(self, table: str, gap: Interval) -> Iterator[HostedRegion]:
        regions = self._regions.get(table, [])
        first = bisect.bisect_right(regions, gap.start, key=lambda one: one.start) - 1
        for region in itertools.islice(regions, max(0, first), None):
            if (0, region.start) >= limit(gap.stop):
                return
            yield region

    def _range(self, number: int, gap: Interval, region: HostedRegion) -> Range | None:
        """Return the range of a region to query for a gap; None if there is none or it has been requested already."""
        shared = gap.intersection(region.start, region.stop)
        if shared is None:
            return None
        asked = self._asked.get((region.server, region.encoded, region.open_seq), ())
        if any(one.part == number and Interval(one.start, one.stop).holds(*shared) for one in asked):
            return None
        return Range(number, region.encoded, region.open_seq, *shared)
