"""Rows of the state table as rows of the status schema (docs/formats.md, State table)."""

from __future__ import annotations

import contextlib
import json
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

import pyarrow as pa

from status_tool.clients.thrift import Cells
from status_tool.rules.content import NONE, Life, Tenure, life_of, parse_tenure
from status_tool.rules.custody import Place, Places
from status_tool.rules.descriptors import as_if_durable, keeps_more
from status_tool.rules.segments import Segment, latest, merged
from status_tool.rules.settled import with_proofs
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.ids import as_hex, cluster_names, from_hex
from status_tool.vocabulary.schema import STATUS_SCHEMA, NewRow
from status_tool.vocabulary.state_rows import (
    FAMILY,
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
    UnstampedRow,
    column,
)
from status_tool.vocabulary.states import LINEAGE, FactState

BATCH_ROWS = 10_000
_TYPES = {one.name: one.type for one in STATUS_SCHEMA}
_COLUMN = column(b"")
_ID = 16  # hex digits of an origin or via
_WRITER = 9  # `SegmentRow.WRITER` + who writes it
_COLUMN_VERSION = 1
_PART = struct.Struct(">6q")  # prev, seq, write times of first and last entry and of prev, recorded
_TENURE_PREFIX = column(ContentRow.TENURE)
_TENURE_NAME = len(_TENURE_PREFIX) + 16  # and origin, and time of the opening
_TENURE_TABLE, _NO_CELL = column(ContentRow.TABLE), (b"", 0)
_PREFIX = 8  # bytes of a region's encoded name, unique within a cluster


def number(cells: Cells, qualifier: bytes) -> int | None:
    """Return an int64 cell; None if it is absent or of another length."""
    cell = cells.get(_COLUMN + qualifier)
    return int.from_bytes(cell[0], "big", signed=True) if cell and len(cell[0]) == 8 else None


def text(cells: Cells, qualifier: bytes) -> str | None:
    """Return a UTF-8 cell; None if it is absent."""
    cell = cells.get(_COLUMN + qualifier)
    return cell[0].decode(errors="replace") if cell else None


def raw(cells: Cells, qualifier: bytes) -> bytes | None:
    """Return a cell's bytes; None if it is absent."""
    cell = cells.get(_COLUMN + qualifier)
    return cell[0] if cell else None


def edge_key(cells: Cells, qualifier: bytes) -> bytes:
    """Return a key that bounds a region; the empty key if the cell is absent."""
    return raw(cells, qualifier) or b""


HEAD_COLUMNS: Mapping[str, tuple[Callable[[Cells, bytes], Any], bytes]] = {
    "table": (text, HeadRow.TABLE),
    "via_ids": (raw, HeadRow.VIA_IDS),
    "seq": (number, HeadRow.SEQ),
    "first_ms": (number, HeadRow.FIRST_MS),
    "write_ms": (number, HeadRow.WRITE_MS),
    "entries": (number, HeadRow.ENTRIES),
    "start_key": (edge_key, HeadRow.START_KEY),
    "end_key": (edge_key, HeadRow.END_KEY),
    "family": (text, HeadRow.FAMILY),
}
"""The columns of a `stream` row that are cells of its head: how a cell is read, and which one."""


def stream_key(key: bytes) -> tuple[str, int, int] | None:
    """Return (region, origin, via) of an `h` or `s` row key; None if it is not such a key."""
    digits = key[1:].decode("ascii", errors="replace")
    if len(digits) <= 2 * _ID:
        return None
    # The mark of a region of the table ends here: its `!` is no hex digit (`is_mark`).
    try:
        return digits[: -2 * _ID], from_hex(digits[-2 * _ID : -_ID]), from_hex(digits[-_ID:])
    except ValueError:
        return None


def is_mark(key: bytes) -> bool:
    """Return True for the row with the mark of a region of the state table: it may begin like any other."""
    return key.endswith(b"!")


def server_key(origin: int, role: str) -> bytes:
    """Return the `o` row key of what a server wrote (`w`) or applied (`r`)."""
    return f"{ServerRow.TYPE}{as_hex(origin)}{role}".encode()


def heads(rows: Iterable[tuple[bytes, Cells]]) -> Iterator[NewRow]:
    """Yield `stream` rows of `h` rows."""
    for key, cells in rows:
        if (stream := stream_key(key)) is None:
            continue
        region, origin, via = stream
        yield {
            "kind": "stream",
            "region": region,
            "origin": origin,
            "via": via,
            **{name: read(cells, qualifier) for name, (read, qualifier) in HEAD_COLUMNS.items()},
        }


def segments(rows: Iterable[tuple[bytes, Cells]]) -> Iterator[NewRow]:
    """Yield `segment` rows of `s` rows, and one `replicated` row per region.

    Rows of a region follow one another, so the newest `r` is known when the region changes.
    """
    newest: NewRow | None = None
    for key, cells in rows:
        if (stream := stream_key(key)) is None:
            continue
        region, origin, via = stream
        table = text(cells, SegmentRow.TABLE)
        if newest is not None and newest["region"] != region:
            yield newest
            newest = None
        replicated = number(cells, SegmentRow.REPLICATED_MS)
        if replicated is not None and (newest is None or replicated > newest["write_ms"]):
            newest = {"kind": "replicated", "table": table, "region": region, "write_ms": replicated}
        base = {"table": table, "region": region, "origin": origin, "via": via}
        family = text(cells, SegmentRow.FAMILY)
        for part in merged(_parts(cells)):
            yield {
                "kind": "segment",
                **base,
                "prev": part.prev,
                "seq": part.seq,
                "first_ms": part.first_ms,
                "write_ms": part.write_ms,
                "recorded_ms": part.recorded_ms,
                "started_ms": part.prev_ms,
                "family": family,
            }
    if newest is not None:
        yield newest


Witnessed = Mapping[tuple[str, int, int], Mapping[int, tuple[int, int]]]
"""By region, origin and via of a stream: of an entry that does not follow the sequence id before its own, the sequence
id of the stream's previous entry and the highest write time (epoch ms) up to it, as a witness was sent them."""


def following(rows: Iterable[NewRow], witnessed: Witnessed) -> Iterator[NewRow]:
    """Entries without a stamp stand for themselves alone in a slave's state table; a witness knows which follow."""
    sent = {stream: sorted(known) for stream, known in witnessed.items()}
    for row in rows:
        stream = (row["region"], row["origin"], row["via"]) if row["kind"] == "segment" else None
        yield row if stream not in sent else _joined(row, sent[stream], witnessed[stream])


def _joined(row: NewRow, sent: Sequence[int], known: Mapping[int, tuple[int, int]]) -> NewRow:
    """Return a segment that begins where an entry ends that the witness was sent, and none in between."""
    # An entry without a stamp is recorded as `(seq - 1, seq]`: the first entry of a segment is `prev + 1` at least. One
    # that the witness was not sent may begin the segment, as all do that are older than the witness's peer.
    at = bisect_left(sent, row["prev"] + 1)
    if at == len(sent) or sent[at] > row["seq"]:
        return row
    prev, started_ms = known[sent[at]]
    return row if prev > row["prev"] else row | {"prev": prev, "started_ms": started_ms}


def _parts(cells: Cells) -> Iterator[Segment]:
    """Yield the segments in the columns of an `s` row: one column per server."""
    for name, (value, _) in cells.items():
        qualifier = name[len(FAMILY) + 1 :]
        # A column of another version, or a value that was cut short, yields nothing: a hole in the chain is a false
        # alarm at worst.
        if len(qualifier) == _WRITER and qualifier[:1] == SegmentRow.WRITER and value[:1] == bytes([_COLUMN_VERSION]):
            for prev, seq, first, last, prev_ms, noted in _PART.iter_unpack(value[1:] if _is_whole(value) else b""):
                yield Segment(prev, seq, first, last, noted, prev_ms if prev_ms >= 0 else None)


def _is_whole(value: bytes) -> bool:
    return (len(value) - 1) % _PART.size == 0


def unstamped(rows: Iterable[tuple[bytes, Cells]]) -> Iterator[NewRow]:
    """Yield `unstamped` rows of `u` rows, one per set of clusters that such entries came through."""
    for key, cells in rows:
        if is_mark(key):
            continue
        prefix = column(UnstampedRow.WRITE_MS)
        newest = {name[len(prefix) :]: value for name, (value, _) in cells.items() if name.startswith(prefix)}
        # Without any time the row still tells that entries without a stamp came.
        for clusters, value in newest.items() if newest else [(b"", b"")]:
            yield {
                "kind": "unstamped",
                "table": text(cells, UnstampedRow.TABLE),
                "region": key[1:].decode("ascii", errors="replace"),
                "via_ids": clusters or None,
                "write_ms": int.from_bytes(value, "big", signed=True) if len(value) == 8 else None,
            }


def facts(rows: Iterable[tuple[bytes, Cells]]) -> Iterator[NewRow]:
    """Yield `fact` rows of `g` rows: bulk loads, splits and merges, these with the times of their cells."""
    for key, cells in rows:
        base: NewRow = {
            "kind": "fact",
            "table": text(cells, FactRow.TABLE),
            "region": key[1:].decode("ascii", errors="replace"),
        }
        if (loaded := number(cells, FactRow.BULK_LOAD_MS)) is not None:
            yield base | {"state": FactState.BULK_LOAD, "write_ms": loaded}
        if (loaded := number(cells, FactRow.LOCAL_LOAD_MS)) is not None:
            yield base | {"state": FactState.LOCAL_LOAD, "write_ms": loaded}
        if (lineage := text(cells, FactRow.LINEAGE)) in LINEAGE:
            ended_ms = cells[_COLUMN + FactRow.LINEAGE][1] or None
            state = {"state": FactState(lineage), "write_ms": ended_ms}
            yield base | state | {"region_id": number(cells, FactRow.REGION_ID)}


@dataclass(frozen=True)
class Existing:
    """The regions that a master has, and up to when a region that opened must be among them."""

    packed: Mapping[str, bytes]
    """Names, as `packed` has them."""
    until_ms: int
    """When the last server had read the barrier (`origins.read_by_ms`)."""
    covered_ms: int | None = None
    """Since when all servers have been tracked, so that the opening of a region that was created later was seen."""
    replicated: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By table, the families of its descriptor that are replicated."""
    crashed: Mapping[int, int] = field(default_factory=dict)
    """Servers that crashed and are not pruned, with when they were known to be gone: what they wrote last may be asked
    for."""
    barriers: Mapping[int, int] = field(default_factory=dict)
    """By origin, when a live server had read the barrier, on its own clock."""
    split: frozenset[bytes] = frozenset()
    """Those that never open again: parents that `hbase:meta` still names. As `packed` has them."""
    kept: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    """By table and family, what its descriptor keeps, as `descriptors.retention_of` has it."""

    def is_expected(self, origin: int, opened_ms: int) -> bool:
        """Return True if a region that a server opened then was among those that were read after the barrier."""
        return opened_ms <= self.barriers.get(origin, self.until_ms + SKEW_MS)

    def had_until_ms(self, origin: int) -> int | None:
        """Return until when a server may have had a region whose close it did not record; None: it is pruned."""
        return self.until_ms if origin in self.barriers else self.crashed.get(origin)

    def is_covered(self, region_id: int | None) -> bool:
        """Return True if a region was created when all servers were tracked, by its id."""
        return self.covered_ms is not None and region_id is not None and region_id >= self.covered_ms

    @property
    def count(self) -> int:
        """Number of regions."""
        return sum(map(len, self.packed.values())) // _PREFIX

    def beginning_with(self, first: str) -> frozenset[bytes]:
        """Return the packed names that begin with this hex digit. Only a sixteenth of all is unpacked at a time."""
        packed = self.packed.get(first, b"")
        return frozenset(packed[at : at + _PREFIX] for at in range(0, len(packed), _PREFIX))


def packed(regions: Iterable[str]) -> dict[str, bytes]:
    """Return the first bytes of encoded names by their first character: a few bytes a region, for Spark, too."""
    found: defaultdict[str, bytearray] = defaultdict(bytearray)
    for region in regions:
        found[region[:1]] += prefix(region)
    return {first: bytes(some) for first, some in found.items()}


def prefix(region: str) -> bytes:
    """Return the first bytes of an encoded name."""
    try:
        return bytes.fromhex(region)[:_PREFIX].ljust(_PREFIX, b"\0")
    except ValueError:
        return region.encode()[:_PREFIX].ljust(_PREFIX, b"\0")


@dataclass(frozen=True)
class Keeping:
    """Retention of a slave's tables by their descriptors, which a region need not have been opened with."""

    by_table: Mapping[str, Mapping[str, Sequence[int]]]
    """By table and family, as `descriptors.retention_of` has it."""
    read_ms: int


NO_KEEPING = Keeping({}, 0)


def contents(
    rows: Iterable[tuple[bytes, Cells]], existing: Existing | None = None, keeping: Keeping = NO_KEEPING
) -> Iterator[NewRow]:
    """Yield `fact` rows of `f` rows: only unusual facts; an ordinary region has none.

    `changed`: its store files changed beside the WAL, or it is open with a descriptor that replicates less (a master's)
    or keeps less (a slave's) than its table's does; `localload`: a load that its server could no longer record.
    With `existing`, for a master: `content` of a region that is gone and had store files of replicated families.
    """
    first, names = "", frozenset[bytes]()
    read_ms = existing.until_ms if existing else keeping.read_ms
    replicates = {
        table.encode(): _part("r", sorted(families))
        for table, families in (existing.replicated if existing else {}).items()
    }
    kept_by = existing.kept if existing else keeping.by_table
    keeps = {table.encode(): _part("k", kept) for table, kept in kept_by.items()}
    for key, cells in rows:
        region = key[1:].decode("ascii", errors="replace")
        # Rows come in key order, so the names of each sixteenth are unpacked once.
        if existing and region[:1] != first:
            first, names = region[:1], existing.beginning_with(region[:1])
        is_gone = existing is not None and prefix(region) not in names
        columns = {name: value for name, (value, _) in cells.items() if _is_tenure(name)}
        values = [*columns.values()]
        # A region that is gone is never skipped: the slave may lack what it held.
        if not is_gone and _is_ordinary(values, cells, existing):
            written = cells.get(_TENURE_TABLE, _NO_CELL)[0]
            if _is_as_described(values[0], replicates.get(written, b""), keeps.get(written, b"")):
                continue
        is_seen = _is_seen(cells, existing)
        table = text(cells, ContentRow.TABLE)
        name = table or ""
        tenures = [parse_tenure(value, _origin_of(name)) for name, value in columns.items()]
        life = life_of(filter(None, tenures), replicated_only=existing is not None, is_seen=is_seen)
        base: NewRow = {"kind": "fact", "table": table, "region": region}
        if existing:
            families = existing.replicated.get(name, frozenset())
            is_closed = life.last is not None and life.last.closed_ms is not None
            if is_gone or is_closed or prefix(region) in existing.split:
                kept_ms = _forgot_ms(life, families, existing.kept.get(name, {}))
                lazy_ms = latest(_left_unshipped_ms(life, families, existing), _returned_ms(life, families), kept_ms)
            else:
                lazy_ms = read_ms if _replicates_less(life, families) else None
        else:
            lazy_ms = read_ms if _keeps_less(life, keeping.by_table.get(name, {})) else None
        # Nobody knows what it opened with in one that cannot be read. A single one follows none.
        unread_ms = read_ms if len(tenures) > 1 and None in tenures else None
        if (changed_ms := latest(life.changed_ms, lazy_ms, unread_ms)) is not None:
            yield base | {"state": FactState.CHANGED, "write_ms": changed_ms}
        if existing and life.loaded_ms is not None:
            yield base | {"state": FactState.LOCAL_LOAD, "write_ms": life.loaded_ms}
        for tail in life.tails:
            if existing and tail.origin in existing.crashed:
                found = {"origin": tail.origin, "seq": tail.last, "write_ms": tail.found_ms}
                yield base | {"state": FactState.TAIL, **found}
        if existing and is_gone and life.last and _had_content(life.last, existing):
            yield base | {"state": FactState.CONTENT, "write_ms": life.last.until_ms}


def tails(rows: Iterable[tuple[bytes, Cells]]) -> dict[tuple[str, int], int]:
    """Return from `f` rows, by region and crashed server, the last entry that was replayed and it had not recorded."""
    found: dict[tuple[str, int], int] = {}
    for key, cells in rows:
        columns = [(name, value) for name, (value, _) in cells.items() if _is_tenure(name)]
        # A server that crashed leaves a tenure, which the next one does not take over.
        if len(columns) > 1:
            tenures = [parse_tenure(value, _origin_of(name)) for name, value in columns]
            for tail in life_of(filter(None, tenures), replicated_only=True, is_seen=False).tails:
                found[key[1:].decode("ascii", errors="replace"), tail.origin] = tail.last
    return found


def attended(
    rows: Iterable[tuple[bytes, Cells]], places: Places, waiting: dict[str, Place]
) -> Iterator[tuple[bytes, Cells]]:
    """Yield the `f` rows unchanged, and take regions that a server vouches for out of `waiting`."""
    for key, cells in rows:
        region = key[1:].decode("ascii", errors="replace")
        place = waiting.get(region)
        if place and any(_vouches(places, place, name, value) for name, (value, _) in cells.items()):
            del waiting[region]
        yield key, cells


def _vouches(places: Places, place: Place, name: bytes, value: bytes) -> bool:
    """Return True if a column of an `f` row vouches for its region.

    Nearly all regions are open: their values are not parsed.
    """
    if not _is_tenure(name):
        return False
    origin = _origin_of(name)
    if origin not in places.watched:
        return False
    if origin == place.origin and value.startswith(b'{"o":') and b'"c"' not in value and b"\\" not in value:
        return True
    tenure, opened_ms = parse_tenure(value), int.from_bytes(name[-8:], "big", signed=True)
    return tenure is not None and places.is_vouched_for(origin, opened_ms, tenure, place)


def _is_seen(cells: Cells, existing: Existing | None) -> bool:
    """Return True if a tracker must have seen how a region's first tenure began."""
    return existing is None or existing.is_covered(number(cells, ContentRow.REGION_ID))


def _is_ordinary(values: Sequence[bytes], cells: Cells, existing: Existing | None) -> bool:
    """Return True if a region's only tenure tells nothing by itself. Most rows are such; they are not parsed."""
    # JSON may escape any character of a name (RFC 8259), which a search for bytes misses: a value with a backslash is
    # parsed.
    if len(values) != 1 or b'"x"' in values[0] or b'"y"' in values[0] or b"\\" in values[0]:
        return False
    return b'"u"' not in values[0] or not _is_seen(cells, existing)


def _part(name: str, value: Sequence[str] | Mapping[str, Sequence[int]]) -> bytes:
    """Return the part of a tenure's column that has this value; empty for none, which every column has."""
    return json.dumps({name: value}, separators=(",", ":"), ensure_ascii=False)[1:-1].encode() if value else b""


def _is_as_described(value: bytes, replicates: bytes, keeps: bytes) -> bool:
    """Return True if a tenure's column evidently has these parts. It need not say what its region keeps."""
    return replicates in value and (keeps in value or b'"k":' not in value)


def _replicates_less(life: Life, families: frozenset[str]) -> bool:
    """Return True if a region that is not closed has the descriptor from before a family's scope was raised.

    HBase 2.6 alters a table without opening its regions anew if it is told so: until then they write entries that are
    never replicated.
    """
    return life.last is not None and not families <= set(life.last.replicated)


def _left_unshipped_ms(life: Life, families: frozenset[str], existing: Existing) -> int | None:
    """Return when a region closed with files of families that are replicated now and were not then.

    It opens with the new descriptor, or what was split or merged from it does, and inherits cells that no stream has.
    Nobody knows with which files a region closed whose server crashed before it recorded that.
    """
    if life.last is None:
        return None
    was_local = families - set(life.last.replicated)
    if life.last.closed_ms is None:
        return existing.had_until_ms(life.last.origin) if was_local else None
    return life.last.closed_ms if any(life.last.after.get(family, NONE).count for family in was_local) else None


def _returned_ms(life: Life, families: frozenset[str]) -> int | None:
    """Return when a region ended without a family that it once had and that its table has again.

    The slave still has what the family held, deletes as well. What was split or merged from the region never had it,
    so that its own tenures do not show that it came back (`content._returned`).
    """
    return life.last.until_ms if life.last is not None and life.dropped & families else None


def _forgot_ms(life: Life, families: frozenset[str], kept: Mapping[str, Sequence[int]]) -> int | None:
    """Return when a region ended that had been written to, and whose table keeps more now than when it was opened.

    What was split or merged from it may have opened with the new descriptor already, if `alter` opened no region anew:
    then no tenure shows that the table had kept less (`content._raised`).
    """
    if life.last is None:
        return None
    hid = life.last.hides
    raised = any(keeps_more(hid[one], as_if_durable(kept[one])) for one in hid.keys() & kept.keys() & families)
    return life.last.until_ms if raised and life.last.may_hold(hid) else None


def _keeps_less(life: Life, kept: Mapping[str, Sequence[int]]) -> bool:
    """Return True if a region is open with the descriptor from before its table was altered to keep more."""
    if life.last is None or life.last.closed_ms is not None or not life.last.kept:
        return False
    now = life.last.kept
    return any(keeps_more(now[family], kept[family]) for family in now.keys() & kept.keys())


def _origin_of(name: bytes) -> int:
    return int.from_bytes(name[len(_TENURE_PREFIX) : len(_TENURE_PREFIX) + 8], "big", signed=True)


def _is_tenure(name: bytes) -> bool:
    return len(name) == _TENURE_NAME and name.startswith(_TENURE_PREFIX)


def _had_content(last: Tenure, existing: Existing) -> bool:
    return last.holds_replicated and existing.is_expected(last.origin, last.began_ms)


def servers(rows: Iterable[tuple[bytes, Cells]], tokens: Collection[bytes]) -> Iterator[tuple[int, NewRow]]:
    """Yield `server` rows of `o` rows, each with its origin; `tokens` are those of barriers that count as echoed."""
    for key, cells in rows:
        if is_mark(key):
            continue
        # A row whose key has no origin vouches for nobody: its server, if it lives, counts as one without a tracker.
        with contextlib.suppress(ValueError):
            yield from_hex(key[1:17]), server(cells, key[17:].decode("ascii", "replace"), tokens)


def server(cells: Cells, role: str, tokens: Collection[bytes]) -> NewRow:
    """Return the `server` row of an `o` row; the caller sets `live` and `tracked`."""
    return {
        "kind": "server",
        "server": text(cells, ServerRow.NAME),
        "role": role,
        "flush_ms": number(cells, ServerRow.FLUSHED_MS),
        "echoed": raw(cells, ServerRow.ECHO) in tokens,
        "read_ms": number(cells, ServerRow.READ_MS),
        "final_ms": number(cells, ServerRow.FINAL_MS),
        "gone_ms": _gone_ms(cells),
        "detail": with_proofs(text(cells, ServerRow.HEALTH), _proofs(cells)),
    }


def _gone_ms(cells: Cells) -> int | None:
    """Return when a server was seen to be gone; None if it has flushed since, and so had not gone by then."""
    gone_ms, flushed_ms = number(cells, ServerRow.GONE_MS), number(cells, ServerRow.FLUSHED_MS)
    return None if gone_ms is not None and flushed_ms is not None and gone_ms < flushed_ms else gone_ms


def _proofs(cells: Cells) -> dict[str, str]:
    """Return the proofs that `run -m` recorded of the server (`d` + peer id), by peer."""
    return {peer: proof.decode(errors="replace") for peer, proof in _named(cells, ServerRow.SETTLED).items() if peer}


def _named(cells: Cells, prefix: bytes) -> dict[str, bytes]:
    """Return the values of the columns with a prefix, by what follows it."""
    begin = column(prefix)
    return {
        name[len(begin) :].decode(errors="replace"): value
        for name, (value, _) in cells.items()
        if name.startswith(begin)
    }


def descriptor(key: bytes, cells: Cells) -> NewRow:
    """Return the `table` row of a `t` row, with the trackers' JSON descriptor; `{}` if that is damaged."""
    try:
        known = json.loads(raw(cells, TableRow.DESCRIPTOR) or b"{}")
    except (ValueError, RecursionError):  # the latter where brackets are nested deeply
        known = None
    detail = json.dumps(known if isinstance(known, dict) else {})
    return {"kind": "table", "table": key[1:].decode(errors="replace"), "detail": detail}


def pruned_marks(rows: Iterable[tuple[bytes, Cells]]) -> dict[str, list[list[Any]]]:
    """Return from `p` rows, for a table's `detail`, the ids (hex) of clusters that have the pruned edits, and times."""
    marks: dict[str, list[list[Any]]] = {}
    for key, cells in rows:
        marks[key[1:].decode(errors="replace")] = [
            [name[len(FAMILY) + 2 :].hex(), int.from_bytes(value, "big", signed=True)]
            for name, (value, _) in sorted(cells.items())
            if name.startswith(column(PrunedRow.WRITTEN_MS))
        ]
    return marks


def marked_regions(coverage: Cells) -> tuple[int, list[bytes]]:
    """Return the mark that each region of the state table has at least, and in which rows, by row `c`."""
    value = raw(coverage, CoverageRow.REGIONS) or b""
    keys, at = list[bytes](), 8
    while at + 4 <= len(value):
        length = int.from_bytes(value[at : at + 4], "big")
        keys.append(value[at + 4 : at + 4 + length])
        at += 4 + length
    return int.from_bytes(value[:8], "big"), keys


def proven_tables(rows: Iterable[tuple[bytes, Cells]]) -> dict[str, dict[str, Any]]:
    """Return from `v` rows, for a table's `detail`, the proofs by master cluster id. Damaged ones are left out."""
    found: dict[str, dict[str, Any]] = {}
    for key, cells in rows:
        for master, value in _named(cells, ProvenRow.PROVEN).items():
            # Empty: the proof was taken back (`StateTable.record_kept`).
            with contextlib.suppress(ValueError, RecursionError):
                found.setdefault(key[1:].decode(errors="replace"), {})[master] = json.loads(value)
    return found


def pruned_files(cells: Cells) -> dict[str, int]:
    """Return from row `d`, by master cluster id, the barrier of the FILE that pruned a slave's segments last."""
    noted = _named(cells, ToolRow.PRUNED_BY)
    return {master: int.from_bytes(value, "big", signed=True) for master, value in noted.items() if len(value) == 8}


def table_events(rows: Iterable[tuple[bytes, Cells]]) -> dict[str, dict[str, Any]]:
    """Return from `n` rows, for a table's `detail`, when its first entry arrived, and when it was emptied since.

    `born_ms` is of the newest region that never held anything, `first_born_ms` of the oldest, `dropped_ms` of
    each family that was dropped, `skipped_ms` of the newest mutations seen to bypass the WAL, `raised_ms` of
    each family that is replicated and was not before. `written_by` is of the newest write that passed the same
    clusters, by their ids (separated by commas; none for one of a client), `first_written_by` of the first one,
    `deleted_by` of deletes among those, `tagged_ms` of cells with tags.
    """
    events: dict[str, dict[str, Any]] = {}
    for key, cells in rows:
        named = {name[len(FAMILY) + 1 :]: int.from_bytes(value, "big") for name, (value, _) in cells.items()}
        dropped, raised = (
            {name[1:].decode(errors="replace"): moment for name, moment in named.items() if name[:1] == prefix}
            for prefix in (TableEventRow.DROPPED_MS, TableEventRow.RAISED_MS)
        )
        written, first_written, deleted = (
            {",".join(cluster_names(name[1:])): moment for name, moment in named.items() if name[:1] == prefix}
            for prefix in (TableEventRow.WRITTEN_MS, TableEventRow.FIRST_WRITTEN_MS, TableEventRow.DELETED_MS)
        )
        events[key[1:].decode(errors="replace")] = {
            "arrived_ms": named.get(TableEventRow.ARRIVED_MS),
            "born_ms": named.get(TableEventRow.BORN_MS),
            "first_born_ms": named.get(TableEventRow.FIRST_BORN_MS),
            "dropped_ms": dropped,
            "skipped_ms": named.get(TableEventRow.SKIPPED_MS),
            "raised_ms": raised,
            "written_by": written,
            "first_written_by": first_written,
            "deleted_by": deleted,
            "tagged_ms": named.get(TableEventRow.TAGGED_MS),
        }
    return events


DECODERS: dict[str, Callable[[Iterable[tuple[bytes, Cells]]], Iterator[NewRow]]] = {
    HeadRow.TYPE: heads,
    SegmentRow.TYPE: segments,
    UnstampedRow.TYPE: unstamped,
    FactRow.TYPE: facts,
    ContentRow.TYPE: contents,
}
"""Row types with many rows, read in parallel."""


def batches(rows: Iterable[NewRow], size: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Gather rows into Arrow batches of the status schema."""
    rows = iter(rows)
    while pending := list(islice(rows, size)):
        yield _batch(pending)


def _batch(rows: Sequence[NewRow]) -> pa.RecordBatch:
    """Return a batch; the columns that no row has are not built row by row. Often all rows have the same ones."""
    names = rows[0].keys()
    # `from_pylist` takes the missing columns of each row for null; the short way below would raise.
    if not all(row.keys() == names for row in rows):
        return pa.RecordBatch.from_pylist(rows, schema=STATUS_SCHEMA)
    columns = {name: list(map(itemgetter(name), rows)) for name in names & _TYPES.keys()}
    return column_batch({name: pa.array(values, _TYPES[name]) for name, values in columns.items()}, len(rows))


def column_batch(columns: Mapping[str, pa.Array], size: int) -> pa.RecordBatch:
    """Return a batch of the status schema; the columns that are not given are null."""
    arrays = [columns[name] if name in columns else pa.nulls(size, kind) for name, kind in _TYPES.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=STATUS_SCHEMA)
