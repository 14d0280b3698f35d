"""The plan for files: both sides' rows are brought together by path, in one shuffle and one sort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from status_tool.rules.files import COMPARED, evident_matches
from status_tool.rules.judged import judge_files
from status_tool.spark.judge import FINDING, batch_of, map_in_arrow
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.selection import LOCAL, inside

COLUMNS = (*COMPARED, "modified_ms", "detail")
"""Columns by which files are judged."""
_CONTENT = pa.struct([STATUS_SCHEMA.field(name) for name in COMPARED])
FILE_SCHEMA = pa.schema(
    {
        **{"path": pa.string(), "code": pa.string(), "note": pa.string(), "findings": pa.list_(FINDING)},
        **{"is_of_master": pa.bool_(), "master": _CONTENT, "slave": _CONTENT},
    }
)


def mapped_paths(rows: DataFrame, pairs: Sequence[tuple[str, str]]) -> DataFrame:
    """Return the slave's rows under the paths that they have on the master (`--map-path`, longest master prefix first).

    The slave's own files under a master path that is mapped elsewhere have no counterpart, and are dropped.
    """
    if not pairs:
        return rows
    path, renamed, taken = F.col("path"), F.lit(None).cast("string"), F.lit(False)
    # Each pair overrides those before it: the longest prefix of the slave decides.
    for master, slave in sorted(pairs, key=lambda pair: len(pair[1])):
        prefix = slave.removeprefix(LOCAL).rstrip("/")
        moved = F.concat(F.lit(master.rstrip("/")), F.substring(path, len(prefix) + 1, 1 << 30))
        # A tree of the master within this one has a place of its own on the slave: what lies here is no copy of it.
        elsewhere = F.lit(False)
        for other, _ in pairs:
            if other != master and inside(other, master):
                elsewhere = elsewhere | _is_within(moved, other)
        renamed = F.when(_is_within(path, prefix) & ~elsewhere, moved).otherwise(renamed)
        taken = taken | _is_within(path, master)
    kept = rows.where((F.col("kind") != "file") | renamed.isNotNull() | ~taken)
    return kept.withColumn("path", F.when(F.col("kind") == "file", F.coalesce(renamed, path)).otherwise(path))


def _is_within(path: Column, folder: str) -> Column:
    return (path == folder) | path.startswith(folder.rstrip("/") + "/")


def rows_of_files(master_df: DataFrame, slave_df: DataFrame) -> DataFrame:
    """Return all rows by which files are judged, with their `side`."""
    ours, theirs = (
        rows.where("kind = 'file' AND path IS NOT NULL").select("path", *COLUMNS, F.lit(side).alias("side"))
        for rows, side in ((master_df, MASTER), (slave_df, SLAVE))
    )
    return ours.unionByName(theirs)


def files_of(rows: DataFrame, after_cut: range) -> DataFrame:
    """Return a `JudgedFile` for each path."""
    # `evident_matches` needs the master's row before the slave's.
    by_path = rows.repartition("path").sortWithinPartitions("path", "side")
    return map_in_arrow(by_path, partial(_judged, after_cut=after_cut), FILE_SCHEMA)


def _judged(given: Iterator[pa.RecordBatch], after_cut: range) -> Iterator[pa.RecordBatch]:
    """Yield what evidently matches a batch at a time, and all others one by one."""
    for batch in _whole_paths(given):
        ours, theirs, others = evident_matches(batch)
        yield _matching(ours, theirs)
        yield batch_of(list(judge_files(others.to_pylist(), after_cut)), FILE_SCHEMA)


def _whole_paths(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows, no path in two batches."""
    kept: pa.RecordBatch | None = None
    for batch in given:
        both = pa.Table.from_batches([batch] if kept is None else [kept, batch])
        # A table without rows has no batches, so that each batch has a last path.
        for rows in both.combine_chunks().to_batches():
            last = pc.index(rows["path"], rows["path"][-1]).as_py()
            yield rows.slice(0, last)
            kept = rows.slice(last)
    if kept is not None:
        yield kept


def _matching(ours: pa.RecordBatch, theirs: pa.RecordBatch) -> pa.RecordBatch:
    count = ours.num_rows
    contents = [
        pa.StructArray.from_arrays([side[name] for name in COMPARED], fields=list(_CONTENT)) for side in (ours, theirs)
    ]
    none = pa.ListArray.from_arrays(pa.array([0] * (count + 1), pa.int32()), pa.array([], FINDING))
    is_ours = pa.repeat(pa.scalar(True), count)
    constants = [pa.repeat(pa.scalar("match"), count), pa.nulls(count, pa.string()), none, is_ours]
    return pa.RecordBatch.from_arrays([ours["path"], *constants, *contents], schema=FILE_SCHEMA)
