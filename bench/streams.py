"""Synthetic status files of both sides, of any size, written as `run -m -o` writes them.

The shape `mixed` is the mix of the simulation and of the campaign: most regions have one stream that arrived as one
segment; some were moved or survived restarts, so that they have streams of several origins; some have streams that came
through another cluster; some segments were recorded by several region servers. Some regions were never written to,
split, bulk loaded, or have entries of which only some cells arrived. `simple` is one stream of two segments a region.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import CLUSTER_ID_BYTES
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.states import FactState, RegionState

NOW = 1_790_000_000_000
MASTER = Header(
    "master",
    "00000000-0000-4000-8000-000000000001",
    created_ms=NOW,
    cut_ms=NOW,
    barrier_issued_ms=NOW,
    coverage_ms=NOW - 10**9,
)
SLAVE = Header("slave", "00000000-0000-4000-8000-000000000002", NOW, NOW)
LIVE, DEAD = 200, 400
"""Incarnations of region servers: those that run, and those that have ended well."""
TABLES = 50
BORN = NOW - 10**8
"""When regions were created, after the trackers began."""
STEP = 400
"""Sequence ids a segment."""
VIA = 77
HOLE = 10
FAMILY = "f"
BATCH = 50_000
OF = 1_000


@dataclass(frozen=True)
class Regions:
    """So many of a thousand regions that are alike."""

    share: int
    origins: int = 1
    vias: int = 1
    segments: int = 1
    """Of each stream."""
    fact: FactState | None = None
    is_written: bool = True

    @property
    def streams(self) -> int:
        """Of one of these regions."""
        return self.origins * self.vias * self.is_written


@dataclass(frozen=True)
class Shape:
    """A mix of regions; of `every` streams one has a hole, one lacks its tail, and nothing of one has arrived."""

    regions: tuple[Regions, ...]
    every: int = 10_007
    """An odd number."""

    def regions_of(self, streams: int) -> int:
        """How many regions have so many streams."""
        return max(1, round(streams * OF / sum(kind.share * kind.streams for kind in self.regions)))


_MIX = (
    Regions(660),
    Regions(100, origins=2),
    Regions(20, origins=4),
    Regions(40, vias=2),
    Regions(60, segments=3),
    Regions(9, origins=2, vias=2, segments=4),
    Regions(5, fact=FactState.SPLIT),
    Regions(4, fact=FactState.BULK_LOAD),
    Regions(102, is_written=False),
)
SHAPES = {
    "simple": Shape((Regions(OF, segments=2),)),
    "mixed": Shape(_MIX),
    "holed": Shape(_MIX, every=53),
}


@dataclass(frozen=True)
class Written:
    """What `write_inputs` has written."""

    streams: int
    segments: int
    bytes: int


def write_inputs(folder: Path, streams: int, shape: Shape = SHAPES["simple"]) -> Written:
    """Write `master.parquet` and `slave.parquet` with about so many streams."""
    paths = folder / "master.parquet", folder / "slave.parquet"
    with StatusWriter(paths[0], MASTER) as ours, StatusWriter(paths[1], SLAVE) as theirs:
        for writer in (ours, theirs):
            writer.write(pa.Table.from_pylist(list(_small(writer.header.side)), schema=STATUS_SCHEMA))
        for batch in _batches(shape.regions_of(streams)):
            for kind, regions in _by_kind(shape, batch):
                for table in _ours(kind, regions):
                    ours.write(table)
                for table in _theirs(kind, regions, shape.every):
                    theirs.write(table)
    sizes = sum(path.stat().st_size for path in paths)
    return Written(ours.counts["stream"], theirs.counts["segment"], sizes)


def with_column(rows: pa.Table, name: str, column: pa.Array) -> pa.Table:
    """The rows with another column in the place of one."""
    return rows.set_column(rows.schema.get_field_index(name), name, column)


# -- servers and tables ------------------------------------------------------------------------------------


def _origin_of(number: int) -> int:
    """An id as trackers make them: any 64 bits."""
    return int.from_bytes(hashlib.md5(b"%d" % number, usedforsecurity=False).digest()[:8], "big", signed=True)


_ORIGINS = pa.array([_origin_of(number) for number in range(LIVE + DEAD)], pa.int64())


def _server_of(number: int) -> str:
    return f"host{number},16020,{NOW - 10**8 + number}"


_SERVERS = pa.array([_server_of(number) for number in range(LIVE)])
_TABLES = pa.array([f"ns:t{number}" for number in range(TABLES)])


def _small(side: str) -> Iterator[dict[str, Any]]:
    role = "w" if side == "master" else "r"
    for number in range(LIVE + DEAD):
        is_live = number < LIVE
        row = {"kind": "server", "role": role, "origin": _origin_of(number), "server": _server_of(number)}
        ended = {} if is_live else {"final_ms": NOW - 1000, "gone_ms": NOW - 900}
        yield row | {"live": is_live, "tracked": True, "echoed": is_live, "read_ms": NOW} | ended
    detail = json.dumps({"families": {FAMILY: {"scope": 1}}, "durability": "USE_DEFAULT", "regions": 1})
    for table in _TABLES.to_pylist():
        yield {"kind": "table", "table": table, "detail": detail}


# -- regions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Batch:
    """Regions by number, with their encoded names and tables."""

    numbers: pa.Array
    names: pa.Array
    tables: pa.Array

    def where(self, chosen: pa.Array) -> _Batch:
        return _Batch(self.numbers.filter(chosen), self.names.filter(chosen), self.tables.filter(chosen))

    def rows(self, kind: str, **columns: Any) -> pa.Table:
        """One row a region; constants are repeated, columns that are not named are null."""
        known = columns | {"kind": kind, "region": self.names, "table": self.tables}
        count = len(self.numbers)
        values = ((known.get(field.name), field.type) for field in STATUS_SCHEMA)
        arrays = [
            value if isinstance(value, pa.Array) else pa.repeat(pa.scalar(value, kind), count) for value, kind in values
        ]
        return pa.Table.from_arrays(arrays, schema=STATUS_SCHEMA)

    def modulo(self, divisor: int, times: int = 1, plus: int = 0) -> pa.Array:
        """Of the numbers, multiplied and moved before."""
        return _modulo(pc.add(pc.multiply(self.numbers, times), plus), divisor)


def _batches(count: int) -> Iterator[_Batch]:
    for start in range(0, count, BATCH):
        ids = range(start, min(count, start + BATCH))
        # As HBase's encoded names: sorting looks at the first bytes.
        names = [hashlib.md5(b"region%d" % number, usedforsecurity=False).hexdigest() for number in ids]
        numbers = pa.array(ids, pa.int64())
        yield _Batch(numbers, pa.array(names), _TABLES.take(_modulo(numbers, TABLES)))


def _by_kind(shape: Shape, batch: _Batch) -> Iterator[tuple[Regions, _Batch]]:
    place = pc.shift_right(batch.modulo(1 << 32, times=2_654_435_761), 12)
    place, start = _modulo(place, OF), 0
    for kind in shape.regions:
        end = start + kind.share
        yield kind, batch.where(pc.and_(pc.greater_equal(place, start), pc.less(place, end)))
        start = end


def _ours(kind: Regions, regions: _Batch) -> Iterator[pa.Table]:
    keys = {"start_key": pc.cast(_text("row", regions.numbers), pa.binary())}
    keys |= {"end_key": pc.cast(_text("row", pc.add(regions.numbers, 1)), pa.binary())}
    state = RegionState.SPLIT if kind.fact is FactState.SPLIT else RegionState.HOSTED
    hosts = _SERVERS.take(regions.modulo(LIVE))
    yield regions.rows("region", server=hosts, state=str(state), region_id=BORN, **keys)
    if kind.fact is not None:
        yield regions.rows("fact", state=str(kind.fact), region_id=BORN, write_ms=NOW - 5000)
    for stream in _streams(kind, regions):
        times = {"first_ms": stream.first_ms, "write_ms": stream.write_ms(kind.segments)}
        head = {"seq": stream.seq(kind.segments), "entries": STEP * kind.segments}
        yield regions.rows("stream", **stream.key, **head, **times, **keys)


def _theirs(kind: Regions, regions: _Batch, every: int) -> Iterator[pa.Table]:
    if kind.is_written:
        yield regions.rows("replicated", write_ms=NOW - 1000)
    for number, stream in enumerate(_streams(kind, regions)):
        fate = regions.modulo(every, times=8, plus=number)
        holed, cut, lost = (pc.equal(fate, which) for which in range(3))
        for segment in range(kind.segments):
            is_last = segment == kind.segments - 1
            ends = {"prev": stream.seq(segment), "seq": stream.seq(segment + 1)}
            before = stream.write_ms(segment) if segment else pa.repeat(pa.scalar(0, pa.int64()), len(holed))
            if is_last:
                before = pc.if_else(holed, stream.write_ms(segment), before)
                ends["prev"] = pc.if_else(holed, pc.add(ends["prev"], HOLE), ends["prev"])
                ends["seq"] = pc.if_else(cut, pc.subtract(ends["seq"], HOLE), ends["seq"])
            arrived = regions.rows(
                "segment",
                **stream.key,
                **ends,
                first_ms=pc.add(stream.write_ms(segment), 1),
                write_ms=stream.write_ms(segment + 1),
                recorded_ms=NOW - 1_500,
                started_ms=before,
            )
            yield arrived.filter(pc.invert(lost))


@dataclass(frozen=True)
class _Stream:
    """One stream of each region of a batch, of the given age: the youngest is of a region server that runs."""

    regions: _Batch
    age: int
    via: int

    @property
    def key(self) -> dict[str, Any]:
        ids = {"via_ids": bytes([self.via]) * CLUSTER_ID_BYTES} if self.via else {}
        dead = pc.add(self.regions.modulo(DEAD, plus=131 * self.age), LIVE)
        number = dead if self.age else self.regions.modulo(LIVE)
        return {"origin": _ORIGINS.take(number), "via": VIA * self.via, "family": FAMILY, **ids}

    def seq(self, segments: int) -> pa.Array:
        """Where so many segments end; 0 for none. No two regions are written at the same pace."""
        return pc.multiply(pc.add(self.regions.modulo(97), STEP), segments)

    @property
    def first_ms(self) -> pa.Array:
        return pc.add(self.write_ms(0), 1)

    def write_ms(self, segments: int) -> pa.Array:
        """When the last entry of so many segments was written."""
        began = NOW - 10**6 * (self.age + 1)
        return pc.add(self.regions.modulo(9973), began + 10_000 * segments)


def _streams(kind: Regions, regions: _Batch) -> Iterator[_Stream]:
    if kind.is_written:
        for age in range(kind.origins):
            for via in range(kind.vias):
                yield _Stream(regions, age, via)


def _modulo(numbers: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


def _text(prefix: str, numbers: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.cast(numbers, pa.string()), "")
