"""The plan of the short way; what it asks is in `rules.evident`.

Spark's workers make numbers of the rows of both sides. They are shuffled in blocks rather than row by row: a block has
what a part of the rows says of a part of the regions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from status_tool.rules import evident
from status_tool.rules.context import RunContext
from status_tool.rules.evident import Kind
from status_tool.rules.judged import REGION_COLUMNS, REGION_KINDS
from status_tool.spark.source import ChosenRows, local_files, map_in_arrow, mapped
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.verdicts import Evidence

MOST_IN_DOUBT = 200_000
"""Number of regions that each task is told of; with more in doubt, all are judged one by one."""
_PART_BYTES = 8 << 20
"""Bytes of the larger status file whose rows become one part: about a million rows of both sides."""
_HELD_ROWS = 250_000
"""Number of rows of which blocks are made at once."""
_BLOCK = pa.schema({"part": pa.int32(), "numbers": pa.binary()})
_COUNT = pa.schema({"kind": pa.int32(), "regions": pa.int64(), "keys": pa.list_(pa.int64())})
_PLACED = pa.schema({"key": pa.int64(), "kind": pa.int32()})
_NAMED = pa.schema({"key": pa.int64(), "region": pa.string(), "start_key": pa.binary()})


@dataclass(frozen=True, slots=True)
class Decided:
    """Regions that are evidently complete and have all of this in common."""

    table: str
    status: int
    """Severity: that of their table, or of what its rows show."""
    evidence: str
    regions: int


@dataclass(frozen=True)
class Evident:
    """Decisions of the short way, and the regions that it leaves in doubt."""

    decided: tuple[Decided, ...]
    in_doubt: int
    keys: pa.Array
    """Those of the regions in doubt (`evident.region_keys`)."""
    kinds: Sequence[Kind]
    placed: DataFrame
    """All that are decided, to be looked at again: their `key` and the place of their `kind` among `kinds`."""

    def in_doubt_of(self, rows: DataFrame, side: str) -> DataFrame:
        """Return one side's rows of regions in doubt, with the columns that regions are judged by."""
        schema = pa.schema([STATUS_SCHEMA.field(name) for name in REGION_COLUMNS])
        return mapped(
            rows, ChosenRows(REGION_KINDS[side], REGION_COLUMNS), partial(_of_keys, self.keys, schema), schema
        )

    def regions_of(self, master_df: DataFrame) -> DataFrame:
        """Return those that are decided and in scope, by name: `table`, `region`, `start_key`, `status`."""
        shown = [(place, kind.table, kind.status) for place, kind in enumerate(self.kinds) if kind.in_scope]
        kinds = master_df.sparkSession.createDataFrame(shown, "kind int, `table` string, status int")
        # Each has one such row (`evident.kinds_of`).
        names = mapped(master_df, ChosenRows(["region"], ("kind", "table", "region", "start_key")), _named, _NAMED)
        return self.placed.join(kinds, "kind").join(names, "key").select("table", "region", "start_key", "status")


def judge_evident(
    session: SparkSession, master_df: DataFrame, slave_df: DataFrame, left_out: Sequence[str], context: RunContext
) -> Evident | None:
    """Decide what is evident, in one action; None if the short way leads nowhere."""
    kinds = list(evident.verdicts_of(context))
    if context.evidence is Evidence.TIMESTAMPS or not kinds:
        return None
    parts = _parts_of(session, (master_df, slave_df))
    of = partial(_blocks, parts, context)
    ours, theirs = (
        mapped(rows, ChosenRows(REGION_KINDS[side], evident.NUMBERED_COLUMNS, left_out), of, _BLOCK)
        for rows, side in ((master_df, MASTER), (slave_df, SLAVE))
    )
    # By the id itself: a hash of it would give two parts to some tasks and none to others.
    blocks = ours.unionByName(theirs).repartitionById(parts, "part")
    found = map_in_arrow(blocks, partial(_counts, kinds, context), _COUNT).toArrow()
    counts = found.select(["kind", "regions"]).to_pylist()
    in_doubt = sum(count["regions"] for count in counts if count["kind"] is None)
    if in_doubt > MOST_IN_DOUBT:
        return None
    keys = pc.list_flatten(found["keys"]).combine_chunks().cast(pa.uint64(), safe=False)
    # Nothing runs here: only a page reads these, and the blocks are then made anew.
    placed = map_in_arrow(blocks, partial(_placed, kinds, context), _PLACED)
    return Evident(tuple(_decided(counts, kinds)), in_doubt, keys, kinds, placed)


def _parts_of(session: SparkSession, sides: Iterable[DataFrame]) -> int:
    """Return into how many parts regions are divided."""
    sizes = [sum(path.stat().st_size for path in paths) for side in sides if (paths := local_files(side))]
    # Nobody knows how many rows a live source has before it is read.
    if not sizes:
        return int(session.conf.get("spark.sql.shuffle.partitions") or 1)
    return max(session.sparkContext.defaultParallelism, max(sizes) // _PART_BYTES)


def _decided(counts: Iterable[dict[str, int]], kinds: Sequence[Kind]) -> Iterator[Decided]:
    regions: Counter[tuple[str, int, str]] = Counter()
    for count in counts:
        if count["kind"] is not None and (kind := kinds[count["kind"]]).in_scope:
            regions[kind.table, kind.status, kind.evidence] += count["regions"]
    return (Decided(*of, number) for of, number in regions.items())


# -- in Spark's workers ------------------------------------------------------------------------------------


def _blocks(parts: int, context: RunContext, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make numbers of rows, in blocks by part."""
    held: dict[tuple[str, ...], list[pa.Table]] = {}
    rows = 0
    for batch in _with_regions(given):
        for numbers in evident.numbers_of(batch, context):
            # Each kind of row has columns of its own, and an IPC stream has one schema.
            held.setdefault(tuple(numbers.column_names), []).append(numbers)
            rows += numbers.num_rows
        if rows >= _HELD_ROWS:
            yield from _packed(held.values(), parts)
            held, rows = {}, 0
    yield from _packed(held.values(), parts)


def _with_regions(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that name a region."""
    for batch in given:
        named = batch.filter(batch.column("region").is_valid()) if batch.column("region").null_count else batch
        if named.num_rows:
            yield named


def _packed(held: Iterable[list[pa.Table]], parts: int) -> Iterator[pa.RecordBatch]:
    for tables in held:
        numbers = pa.concat_tables(tables)
        part = _part_of(numbers["key"], parts)
        order = pc.sort_indices(part)
        numbers, counts, start = numbers.take(order), part.take(order).value_counts().to_pylist(), 0
        for count in counts:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, numbers.schema) as stream:
                stream.write_table(numbers.slice(start, count["counts"]).combine_chunks())
            start += count["counts"]
            block = {"part": count["values"], "numbers": sink.getvalue().to_pybytes()}
            yield pa.RecordBatch.from_pylist([block], _BLOCK)


def _part_of(keys: pa.ChunkedArray, parts: int) -> pa.Array:
    quotient = pc.divide(keys, pa.scalar(parts, pa.uint64()))
    return pc.subtract(keys, pc.multiply(quotient, pa.scalar(parts, pa.uint64()))).cast(pa.int32()).combine_chunks()


def _found(kinds: Sequence[Kind], context: RunContext, given: Iterator[pa.RecordBatch]) -> pa.Table:
    """Return the regions of one part."""
    blocks = (block for batch in given for block in batch.column("numbers"))
    return evident.kinds_of((pa.ipc.open_stream(block.as_buffer()).read_all() for block in blocks), kinds, context)


def _counts(kinds: Sequence[Kind], context: RunContext, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count regions by kind; those in doubt with their keys, unless there are too many."""
    regions = _found(kinds, context, given)
    counted = [{"kind": one["values"], "regions": one["counts"]} for one in regions["kind"].value_counts().to_pylist()]
    for count in counted:
        if count["kind"] is None and count["regions"] <= MOST_IN_DOUBT:
            count["keys"] = _signed(regions.filter(regions["kind"].is_null())["key"]).to_pylist()
    yield pa.RecordBatch.from_pylist(counted, _COUNT)


def _placed(kinds: Sequence[Kind], context: RunContext, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    regions = _found(kinds, context, given)
    decided = regions.filter(regions["kind"].is_valid())
    yield from pa.table([_signed(decided["key"]), decided["kind"]], _PLACED).to_batches(_HELD_ROWS)


def _signed(keys: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the keys as Spark can hold them: it has no unsigned numbers."""
    return keys.cast(pa.int64(), safe=False)


def _of_keys(keys: pa.Array, schema: pa.Schema, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in _with_regions(given):
        found = batch.filter(pc.is_in(evident.region_keys(batch.column("region"))[0], value_set=keys))
        if len(found):
            yield found.cast(schema)


def _named(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in _with_regions(given):
        key = _signed(evident.region_keys(batch.column("region"))[0])
        yield pa.RecordBatch.from_arrays([key, batch.column("region"), batch.column("start_key")], schema=_NAMED)
