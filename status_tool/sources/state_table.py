"""The state table of one cluster: parallel reading, the barrier, the shutdown time."""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any

import happybase
import pyarrow as pa

from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.named_table import NamedTable
from status_tool.clients.thrift import SERVER_ERRORS, Cells, cells_of, connection, get, scan, scan_pages
from status_tool.errors import ConnectionFailed
from status_tool.printable import few
from status_tool.rules.custody import Place, Places, unattended_rows
from status_tool.rules.descriptors import TTL_FOREVER
from status_tool.rules.segments import is_later
from status_tool.rules.tables import own_writes_ms
from status_tool.sources import codec, pages
from status_tool.sources.interface import Source
from status_tool.sources.meta import open_regions
from status_tool.vocabulary.details import fits, map_of, object_of
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.names import requests_table_of, status_table_of
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.state_rows import (
    WRITER,
    BarrierRow,
    ContentRow,
    CoverageRow,
    FactRow,
    HeadRow,
    ProvenRow,
    PrunedRow,
    SegmentRow,
    ServerRow,
    TableEventRow,
    TableRow,
    ToolRow,
    column,
    range_of,
)

_HEX = "0123456789abcdef"
_FAMILIES = {"families": map_of(object_of({}))}
TableEvents = Mapping[str, Mapping[str, Any]]
"""By table: `codec.table_events`."""
NOTICED_S = 15
"""After so long the trackers have noticed that a region of the table lost its rows: they look every ten seconds."""
LOOKS_AGAIN = 4
LOOK_AGAIN_S = 1.0
"""A tracker writes an opening about a second after it."""
FEW_REGIONS = 200
"""Of so many, each scan and each part takes longer than the rows that it reads."""
MOST_LOOKED_AT = 1_000
"""Number of regions that may be on their way at once, of a sixteenth of all."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A part of the state table: a row type and the first hex digits of the regions, which follow each other."""

    type: str
    digits: str

    @property
    def start(self) -> bytes:
        """First key of the range."""
        return f"{self.type}{self.digits[0]}".encode()

    @property
    def stop(self) -> bytes:
        """First key behind the range."""
        return self.type.encode() + bytes([ord(self.digits[-1]) + 1])


@dataclass(frozen=True)
class StateTableSource(Source):
    """Heads, facts, segments and unstamped rows of a state table, by parallel key ranges.

    `spooled` are rows that trackers left in the file system while stopping: read as part of the table.
    """

    endpoint: ThriftEndpoint
    table: str
    types: str
    expected: Generation
    """Of the small rows that these rows are read to (`Descriptors.generation`)."""
    only: TableFilter = field(default_factory=TableFilter)
    spooled: tuple[tuple[bytes, Cells], ...] = ()
    existing: codec.Existing | None = None
    """For a master: its regions."""
    places: Places | None = None
    """For a slave: its regions, and who vouches for them."""
    events: TableEvents = field(default_factory=dict)
    """For a slave: what has happened to its tables by the barrier."""
    slave_id: str = ""
    """Its cluster id."""
    keeping: codec.Keeping = codec.NO_KEEPING
    """For a slave: what its tables keep."""
    witnessed: codec.Witnessed | None = None
    """For a slave, with a FILE from a witness: what it knows of single entries."""
    tasks: int = 4
    """Number of tasks that can read it in parallel."""

    def shared_out(self, tasks: int) -> StateTableSource:
        """Return the source for so many tasks, if they are more."""
        return replace(self, tasks=max(self.tasks, tasks))

    @property
    def is_read_here(self) -> bool:
        """Return True if the table requires a ticket: Spark's executors have none, so this process reads it alone."""
        return self.endpoint.has_kerberos

    def partitions(self) -> Sequence[tuple[KeyRange, ...]]:
        """Divide the table by the regions' first hex digits: 16 parts at most, and one of few regions.

        Region names are hashes, so the parts are even.
        """
        known = self.existing or self.places
        # With a filter the regions are those that it holds, and the rows are those of all tables.
        is_small = known is not None and self.only.everything and known.count <= FEW_REGIONS
        step = len(_HEX) if is_small else max(1, len(_HEX) // self.tasks)
        groups = [_HEX[i : i + step] for i in range(0, len(_HEX), step)]
        return [tuple(KeyRange(kind, digits) for kind in self.types) for digits in groups]

    def read(self, partition: tuple[KeyRange, ...]) -> Iterator[pa.RecordBatch]:
        """Yield one partition's rows; raises `ConnectionFailed` if they do not belong together.

        Without this check the servers' rows that were read before would vouch for heads that no longer exist.
        """
        for span in partition:
            yield from self._batches(span)
        # After the last row: rows may go until then.
        refuse_other(self.table, self.expected, generation(self.endpoint, self.table))
        # A truncate of a user table leaves the state table, and so its generation, as they are.
        if self.places is not None:
            now = codec.table_events(scan(self.endpoint, self.table, *range_of(TableEventRow.TYPE)))
            refuse_emptied(self.events, now, self.only, self.keeping.read_ms, self.slave_id)

    def _batches(self, span: KeyRange) -> Iterator[pa.RecordBatch]:
        """Nearly always nothing is spooled, and of few rows anybody asks for the timestamps of cells."""
        spooled, place = _within(self.spooled, span.start, span.stop), (self.table, span.start, span.stop)
        if spooled or span.type == FactRow.TYPE:
            # `merge_rows` and `codec.facts` ask for them, and `scan_pages` does not decode them.
            found = codec.batches(self._rows(span, merge_rows(scan(self.endpoint, *place), spooled)))
        elif span.type == HeadRow.TYPE:
            found = pages.head_batches(scan_pages(self.endpoint, *place))
        else:
            found = codec.batches(self._rows(span, cells_of(scan_pages(self.endpoint, *place))))
        yield from pages.held(found, self.only.holds)

    def _rows(self, span: KeyRange, rows: Iterable[tuple[bytes, Cells]]) -> Iterator[NewRow]:
        decoded = self._contents(rows, span) if span.type == ContentRow.TYPE else codec.DECODERS[span.type](rows)
        if self.witnessed is not None and span.type == SegmentRow.TYPE:
            decoded = codec.following(decoded, self.witnessed)
        return decoded

    def _contents(self, rows: Iterable[tuple[bytes, Cells]], span: KeyRange) -> Iterator[NewRow]:
        if self.places is None:
            yield from codec.contents(rows, self.existing)
            return
        # Only a sixteenth of the regions is unpacked at a time.
        for digit, some in _by_digit(rows, span.digits):
            waiting = self.places.beginning_with(digit)
            # `attended` takes regions out of `waiting` while `contents` reads the rows, so the looks below come after
            # the last row.
            yield from codec.contents(codec.attended(some, self.places, waiting), keeping=self.keeping)
            self._look_again(self.places, waiting)
            yield from unattended_rows(waiting)

    def _look_again(self, places: Places, waiting: dict[str, Place]) -> None:
        """Take regions out of `waiting` that moved a moment ago, so that their openings are written by now."""
        for _ in range(LOOKS_AGAIN):
            moving = [region for region, place in waiting.items() if place.is_watched]
            if not moving or len(moving) > MOST_LOOKED_AT:
                return
            time.sleep(LOOK_AGAIN_S)
            keys = [f"{ContentRow.TYPE}{region}".encode() for region in moving]
            with connection(self.endpoint) as client:
                rows = client.table(self.table).rows(keys, include_timestamp=True)
            # Nothing leaves `waiting` unless the generator is read to its end.
            for _row in codec.attended(rows, places, waiting):
                pass


def _by_digit(rows: Iterable[tuple[bytes, Cells]], digits: str) -> Iterator[tuple[str, Iterable[tuple[bytes, Cells]]]]:
    """Yield each digit with the rows of the regions that begin with it, in the order of both; none is left out."""
    parts = groupby(rows, key=lambda row: chr(row[0][1]))
    found = next(parts, None)
    for digit in digits:
        while found is not None and found[0] < digit:
            found = next(parts, None)
        if found is not None and found[0] == digit:
            yield digit, found[1]
            found = next(parts, None)
        else:
            yield digit, ()


@dataclass(frozen=True, slots=True)
class Generation:
    """State of the barrier's row. All rows belong together if it is the same before and after they are read.

    The row itself proves nothing: the barrier of another run may have brought it back.
    """

    table_id: bytes
    """Empty: no run has put a barrier since the table was created or truncated."""
    pruning: bytes
    """The pruning announced last; empty: none ever was."""
    barrier_ms: int = 0
    """Timestamp of the newest barrier, which rises whoever puts it. Only in a table that went back is it earlier."""
    back: bytes = b""
    """When a tracker last found that the table had lost rows or gone back."""
    is_torn: bool = False
    """True if a region of the table lost its rows, which no tracker has found yet."""


def generation(endpoint: ThriftEndpoint, table: str) -> Generation:
    """Read the generation of a state table as it is now."""
    barrier, coverage = get(endpoint, table, BarrierRow.KEY), get(endpoint, table, CoverageRow.KEY)
    _, keys = codec.marked_regions(coverage)
    if not keys:
        return generation_of(barrier, coverage, {})
    # Row `c` first: a tracker puts a new mark into each region before row `c` has it (`TableMark`). In the other order,
    # a mark that rises in between would look like a region that lost its rows.
    with connection(endpoint) as client:
        found = client.table(table).rows(keys, columns=[column(CoverageRow.MARK)], include_timestamp=True)
    return generation_of(barrier, coverage, dict(found))


def refuse_emptied(before: TableEvents, now: TableEvents, only: TableFilter, issued_ms: int, slave_id: str) -> None:
    """Raise `ConnectionFailed` if a table was made anew, or lost a family, between two readings of their events.

    Segments outlive the cells of a slave's table: those that were read in between do not show it. `issued_ms`: when the
    barrier was issued, before both. So it is where own clients of the slave had written to a table that got its first
    entries in between: what is read in between has arrived, and the earlier events say that nothing has.
    """
    if emptied := [
        table
        for table in sorted(now)
        if only.holds(table) and _is_emptied(before.get(table, {}), now[table], issued_ms, slave_id)
    ]:
        raise ConnectionFailed(
            f"table {few(emptied, 3)} may have been emptied while it was read or got its first entries: run again"
        )


def _is_emptied(then: Mapping[str, Any], now: Mapping[str, Any], issued_ms: int, slave_id: str) -> bool:
    """Return True for a table that holds something. The spool may have told more before than the table does now.

    What was taken for older than the first arrival may be younger where an earlier arrival has become known since.
    """
    arrived_ms, born_ms = now["arrived_ms"], now["born_ms"] or 0
    if arrived_ms is None:
        return False
    if is_later(then.get("arrived_ms"), arrived_ms):
        if arrived_ms < issued_ms - SKEW_MS or (then.get("arrived_ms") is None and own_writes_ms(now, slave_id)):
            return True
        then = {}
    dropped = then.get("dropped_ms", {})
    # The only birth, before the first arrival, took nothing away: the table is new.
    is_new = now["first_born_ms"] == born_ms <= arrived_ms
    is_dropped = any(moment > dropped.get(family, 0) for family, moment in now["dropped_ms"].items())
    return is_dropped or (born_ms > (then.get("born_ms") or 0) and not is_new)


def refuse_other(table: str, before: Generation, now: Generation) -> None:
    """Raise `ConnectionFailed` if rows read between the two generations do not belong together."""
    # A truncate between our barrier and the first look leaves no id in either generation.
    if not now.table_id or now.table_id != before.table_id:
        raise ConnectionFailed(
            f"the state table {table} lost its rows while it was read (dropped or truncated?): run again"
        )
    if now.barrier_ms < before.barrier_ms:
        raise ConnectionFailed(
            f"the state table {table} went back to an earlier state while it was read (a snapshot restored?): run again"
        )
    # A region server that was fenced, and does not know it yet, may have shown the first look older rows.
    if before.is_torn or now.is_torn or now.back != before.back:
        raise ConnectionFailed(
            f"the state table {table} lost rows (a region truncated?): run again in {NOTICED_S} s, when the trackers"
            " have written what they know again; if it goes on, a region server that HBase has given up still answers"
            " Thrift: end it, and restart the Thrift server"
        )
    if now.pruning != before.pruning:
        raise ConnectionFailed(f"the state table {table} was pruned while it was read (status-tool prune): run again")


def openings(endpoint: ThriftEndpoint, table: str) -> bytes:
    """Return eight bytes that are others once a region of the state table was opened anew.

    With its former server edits may have gone that trackers take for written: they write all that they know again.
    """
    digest = hashlib.sha256()
    for region in open_regions(endpoint, [table]):
        digest.update(f"{region.encoded} {region.server} {region.open_seq}\n".encode())
    return digest.digest()[:8]


def generation_of(barrier: Cells, coverage: Cells, regions: Mapping[bytes, Cells]) -> Generation:
    """Return the generation that the rows of barrier and coverage, and the marks of regions, record."""
    mark, keys = codec.marked_regions(coverage)
    is_torn = any((codec.number(regions.get(key, {}), CoverageRow.MARK) or 0) < mark for key in keys)
    return Generation(
        codec.raw(barrier, BarrierRow.TABLE_ID) or b"",
        codec.raw(barrier, BarrierRow.PRUNING) or b"",
        # The cell's timestamp and not its value: only the timestamp rises whatever the clocks of the hosts show.
        barrier.get(column(BarrierRow.ISSUED_MS), (b"", 0))[1],
        codec.raw(coverage, CoverageRow.BACK_MS) or b"",
        is_torn,
    )


def merge_rows(
    stored: Iterable[tuple[bytes, Cells]], spooled: Sequence[tuple[bytes, Cells]]
) -> Iterator[tuple[bytes, Cells]]:
    """Merge stored and spooled rows, both in key order, to one row per key. A cell's newer timestamp wins.

    A tracker may spool several rows of one key: each holds other cells.
    """
    if not spooled:
        yield from stored
        return
    rows = heapq.merge(stored, spooled, key=itemgetter(0))
    for key, same in groupby(rows, key=itemgetter(0)):
        yield key, reduce(newest_cells, (cells for _, cells in same))


def newest_cells(first: Cells, second: Cells) -> Cells:
    """Return the union of two versions of a row, as HBase would show it."""
    merged = dict(first)
    for name, cell in second.items():
        if name not in merged or merged[name][1] < cell[1]:
            merged[name] = cell
    return merged


@dataclass(frozen=True)
class Barrier:
    """A token put into the state table; trackers echo it after they have flushed."""

    issued_ms: int
    accepted: set[bytes]
    """Its token, and those that other runs wrote after it."""
    moment_ms: int = 0
    """Timestamp of its cell: a token with an earlier one is no later token."""


@dataclass(frozen=True)
class Descriptors:
    """The small rows of the state table."""

    servers: tuple[tuple[int, NewRow], ...]
    """Origin and `server` row."""
    tables: tuple[NewRow, ...]
    coverage_ms: int | None
    shutdown_ms: int | None
    events: TableEvents = field(default_factory=dict)
    pruned: Mapping[str, list[list[Any]]] = field(default_factory=dict)
    """By table: `codec.pruned_marks`."""
    generation: Generation = Generation(b"", b"")
    """From before all other rows were read."""
    pruned_files: Mapping[str, int] = field(default_factory=dict)
    """`codec.pruned_files`."""
    proven: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By table: `codec.proven_tables`."""
    back_ms: int | None = None
    """When the table was last found to have gone back."""
    slave_coverage_ms: int | None = None
    """As `coverage_ms`, of the replicate-time tracker."""
    since_ms: int | None = None
    """Since when the table has been kept; 1: earlier than is known."""


class StateTable(NamedTable):
    """Small reads and writes."""

    def _absent(self) -> str:
        return (
            f"the state table {self.name} does not exist on this cluster: no tracker has ever run here. "
            "`status-tool setup` prints what to add to hbase-site.xml"
        )

    def _hidden(self) -> str:
        return (
            f"the state table {self.name} is not there, or this user (klist) has no rights on it: `grant 'USER', 'RW', "
            f"'{self.name}'` in the HBase shell; if no tracker has ever run, `status-tool setup` prints what to add to "
            "hbase-site.xml"
        )

    def _disabled(self) -> str:
        return (
            f"the state table {self.name} is disabled: enable it, then run again (the trackers keep what they could "
            "not write)"
        )

    def _unfit(self, table: happybase.Table) -> str | None:
        """Heads bear sequence ids for times (formats.md), so all of them expire at once under any TTL."""
        try:
            families = table.families()
        except SERVER_ERRORS:
            return None  # a user without CREATE does not see it; the trackers do
        ttls = {name.decode().rstrip(":"): options["time_to_live"] for name, options in families.items()}
        family, ttl = min(ttls.items(), key=itemgetter(1), default=("", TTL_FOREVER))
        if ttl >= TTL_FOREVER:
            return None
        return (
            f"the rows of the state table {self.name} expire (TTL of {ttl} s), so what the trackers record is lost: "
            f"alter '{self.name}', {{NAME => '{family}', TTL => 'FOREVER'}} in the HBase shell; a run names the tables "
            "that are in doubt since"
        )

    def put_barrier(self) -> Barrier:
        """Request a flush from every tracker. The first barrier of a table draws its id.

        Its cells are newer than those of the barrier before, whatever the clocks of the servers show that had and have
        the row: a barrier that an earlier one hides would be taken for echoed.
        """
        token, issued_ms = os.urandom(16), now_ms()
        cells = {
            column(BarrierRow.TOKEN): token,
            column(BarrierRow.ISSUED_MS): issued_ms.to_bytes(8, "big"),
            column(BarrierRow.OPENINGS): openings(self.endpoint, self.name),
        }
        with self._open() as table:
            stored = table.row(BarrierRow.KEY, include_timestamp=True)
            if not codec.raw(stored, BarrierRow.TABLE_ID):
                # Two first runs may each draw an id. A run that has seen the one that is replaced ends by
                # `refuse_other`.
                cells[column(BarrierRow.TABLE_ID)] = os.urandom(8)
            moment_ms = _after(stored)
            table.put(BarrierRow.KEY, cells, timestamp=moment_ms)
        return Barrier(issued_ms, {token}, moment_ms)

    def echoes(self, barrier: Barrier) -> dict[tuple[str, str], bool]:
        """Return, by (server name, role) of every server row, whether it has echoed the barrier."""
        return {(str(row["server"]), str(row["role"])): bool(row["echoed"]) for _, row in self._servers(barrier, ())}

    def versions(self) -> dict[tuple[str, str], str]:
        """Return the tracker versions by (server name, role) of every server row; empty for a row without one."""
        return {
            (codec.text(cells, ServerRow.NAME) or "", key[17:].decode("ascii", "replace")): codec.text(
                cells, ServerRow.VERSION
            )
            or ""
            for key, cells in scan(self.endpoint, self.name, *range_of(ServerRow.TYPE))
            if not codec.is_mark(key)
        }

    def _accept_later(self, barrier: Barrier) -> None:
        """Accept the token of a run that began after ours: a server that echoes it has flushed past ours, too.

        The later token has replaced ours in the row, so ours may never be echoed.
        """
        token, written_ms = get(self.endpoint, self.name, BarrierRow.KEY).get(column(BarrierRow.TOKEN), (b"", 0))
        if token and written_ms >= barrier.moment_ms:
            barrier.accepted.add(token)

    def descriptors(self, barrier: Barrier, spooled: Sequence[tuple[bytes, Cells]] = ()) -> Descriptors:
        """Read servers, table descriptors of this barrier, coverage and shutdown time."""
        # First: `prune` writes its marks, announces itself, and then deletes, so a deletion that these reads could miss
        # shows as a newer announcement.
        before = generation(self.endpoint, self.name)
        ours = (CoverageRow.KEY, b"e")
        rows = dict(merge_rows(scan(self.endpoint, self.name, *ours), _within(spooled, *ours)))
        coverage, own = rows.get(CoverageRow.KEY, {}), rows.get(ToolRow.KEY, {})
        events = range_of(TableEventRow.TYPE)
        described = list(scan(self.endpoint, self.name, *range_of(TableRow.TYPE)))
        servers = tuple(self._servers(barrier, spooled))
        return Descriptors(
            servers,
            # Filtered after `_servers`, which accepts the tokens of later runs.
            tuple(codec.descriptor(*row) for row in described if codec.raw(row[1], TableRow.ECHO) in barrier.accepted),
            codec.number(coverage, CoverageRow.START_MS),
            codec.number(own, ToolRow.SHUTDOWN_MS),
            codec.table_events(merge_rows(scan(self.endpoint, self.name, *events), _within(spooled, *events))),
            # Only runs write rows of prunings and proofs, so none of them is in the spool.
            codec.pruned_marks(scan(self.endpoint, self.name, *range_of(PrunedRow.TYPE))),
            before,
            codec.pruned_files(own),
            self.kept(),
            codec.number(coverage, CoverageRow.BACK_MS),
            codec.number(coverage, CoverageRow.SLAVE_START_MS),
            codec.number(coverage, CoverageRow.KEPT_MS),
        )

    def has_others(self) -> bool:
        """Return True if the cluster has a table beside the tool's own: trackers describe those only."""
        with connection(self.endpoint) as client:
            own = {self.name, status_table_of(self.name), requests_table_of(self.name)}
            return not own.issuperset(map(bytes.decode, client.tables()))

    def known_families(self) -> dict[str, dict[str, Any]]:
        """Return the families that the trackers recorded last, at whatever time, by table.

        Raises `ConnectionFailed`.
        """
        rows = (codec.descriptor(*row) for row in scan(self.endpoint, self.name, *range_of(TableRow.TYPE)))
        details = {str(row["table"]): json.loads(str(row["detail"])) for row in rows}
        return {table: detail["families"] for table, detail in details.items() if fits(detail, _FAMILIES)}

    def _servers(self, barrier: Barrier, spooled: Sequence[tuple[bytes, Cells]]) -> Iterator[tuple[int, NewRow]]:
        """Yield the servers' rows, and accept the tokens of later runs."""
        servers = range_of(ServerRow.TYPE)
        rows = list(merge_rows(scan(self.endpoint, self.name, *servers), _within(spooled, *servers)))
        # After the servers' rows: a token that they echo is in the table by then.
        self._accept_later(barrier)
        yield from codec.servers(rows, barrier.accepted)

    def record_settled(self, row: Mapping[str, Any], peer: str, proof: Mapping[str, Any]) -> None:
        """Record that the queues of a peer settled a crashed server, with its name: no row is nameless."""
        key = codec.server_key(row["origin"], WRITER)
        with self._change() as table:
            named = {column(ServerRow.NAME): row["server"].encode()}
            table.put(key, {**named, column(ServerRow.SETTLED + peer.encode()): json.dumps(proof).encode()})

    def mark_pruned(self, marks: Mapping[tuple[str, bytes], int]) -> None:
        """Record by table, and by the clusters that have them, the newest write time of heads about to be deleted.

        A time is also its cell's timestamp, so that the latest stays. Then the pruning is announced, so that a run that
        has read the marks before notices it.
        """
        with self._change() as table:
            for (name, ids), until_ms in marks.items():
                cell = {column(PrunedRow.WRITTEN_MS + ids): until_ms.to_bytes(8, "big")}
                table.put(PrunedRow.TYPE.encode() + name.encode(), cell, timestamp=until_ms)
            stored = table.row(BarrierRow.KEY, include_timestamp=True)
            table.put(BarrierRow.KEY, {column(BarrierRow.PRUNING): os.urandom(8)}, timestamp=_after(stored))

    def record_kept(self, master_id: str, kept: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Record by table what is kept of its past (`rules.kept_proofs`); None: nothing any more.

        A cell is newer than the one that it replaces, whatever the clocks of the hosts that write them show.
        """
        if not kept:
            return
        name = column(ProvenRow.PROVEN + master_id.encode())
        with self._change() as rows:
            for table, one in kept.items():
                key = ProvenRow.TYPE.encode() + table.encode()
                stored = rows.row(key, [name], include_timestamp=True).get(name)
                moment = now_ms() if stored is None else max(now_ms(), stored[1] + 1)
                # An empty cell instead of a delete marker: it keeps the timestamp that the next record has to exceed.
                # HBase hides a put below a marker, as of a host whose clock is behind.
                rows.put(key, {name: b"" if one is None else json.dumps(one).encode()}, timestamp=moment)

    def kept(self) -> dict[str, dict[str, Any]]:
        """Return the proofs that are kept of the past, as JSON, by table and master cluster id."""
        return codec.proven_tables(scan(self.endpoint, self.name, *range_of(ProvenRow.TYPE)))

    def note_pruned_by(self, cluster_id: str, barrier_ms: int) -> None:
        """Record the barrier before segments are deleted: FILEs of that master with an earlier one may need them."""
        with self._change() as table:
            cell = {column(ToolRow.PRUNED_BY + cluster_id.encode()): barrier_ms.to_bytes(8, "big")}
            table.put(ToolRow.KEY, cell, timestamp=barrier_ms)

    def delete(self, rows: Iterable[tuple[bytes, int]]) -> None:
        """Delete rows up to the timestamp that was read: newer cells survive."""
        with self._change() as table:
            for key, newest in rows:
                table.connection.client.deleteAllRowTs(self.name.encode(), key, newest, {})

    def record_shutdown(self, moment_ms: int) -> None:
        """Record when the application stopped writing."""
        self._note_shutdown(moment_ms.to_bytes(8, "big"))

    def clear_shutdown(self) -> None:
        """Forget the recorded shutdown time."""
        # Not by a delete marker, as for `record_kept`.
        self._note_shutdown(b"")

    def _note_shutdown(self, value: bytes) -> None:
        """Put a cell newer than the one before, which a region server may have stamped whose clock was ahead."""
        name = column(ToolRow.SHUTDOWN_MS)
        with self._change() as table:
            stored = table.row(ToolRow.KEY, [name], include_timestamp=True)
            table.put(ToolRow.KEY, {name: value}, timestamp=_after(stored))

    def shutdown_ms(self) -> int | None:
        """Return the recorded shutdown time; None if none was recorded."""
        with self._open() as table:
            return codec.number(table.row(ToolRow.KEY, include_timestamp=True), ToolRow.SHUTDOWN_MS)


def _within(rows: Sequence[tuple[bytes, Cells]], start: bytes, stop: bytes) -> list[tuple[bytes, Cells]]:
    return sorted((row for row in rows if start <= row[0] < stop), key=lambda row: row[0])


def _after(stored: Cells) -> int:
    """Return a timestamp of now that is later than that of every cell of a row."""
    return max(now_ms(), *(moment + 1 for _, moment in stored.values())) if stored else now_ms()


def now_ms() -> int:
    """Return this machine's time, epoch ms."""
    return time.time_ns() // 1_000_000
