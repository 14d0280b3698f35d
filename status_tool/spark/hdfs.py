"""The plan for files: both sides' rows are brought together by path, in one shuffle and one sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from status_tool.rules.files import COMPARED, are_unlisted, evident_matches
from status_tool.rules.judged import judge_files
from status_tool.spark.judge import FINDING, batch_of, map_in_arrow
from status_tool.spark.source import is_read_anew
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.selection import ChoosingFiles, ChosenFiles

COLUMNS = (*COMPARED, "modified_ms", "detail")
"""Columns by which files are judged."""
_CONTENT = pa.struct([STATUS_SCHEMA.field(name) for name in COMPARED])
FILE_SCHEMA = pa.schema(
    {
        **{"path": pa.string(), "code": pa.string(), "note": pa.string(), "findings": pa.list_(FINDING)},
        **{"is_of_master": pa.bool_(), "master": _CONTENT, "slave": _CONTENT},
    }
)


def rows_in_question(rows: DataFrame, chosen: ChosenFiles) -> DataFrame:
    """Return the rows with no files but those that are asked about, under the paths by which they are compared."""
    if chosen.are_all:
        return rows
    asked, is_file = partial(files_in_question, chosen=chosen), F.col("kind") == "file"
    if is_read_anew(rows):
        return map_in_arrow(rows, asked, STATUS_SCHEMA)  # a union would read a live source twice
    return rows.where(~is_file).unionByName(map_in_arrow(rows.where(is_file), asked, STATUS_SCHEMA))


def files_in_question(given: Iterable[pa.RecordBatch], chosen: ChosenFiles) -> Iterator[pa.RecordBatch]:
    """Yield the rows with no files but those that are asked about, under the paths by which they are compared."""
    choosing = ChoosingFiles(chosen)
    for batch in given:
        is_file = pc.equal(batch["kind"], "file")
        yield _chosen(batch.filter(is_file), choosing)
        yield batch.filter(pc.invert(is_file))


def _chosen(files: pa.RecordBatch, choosing: ChoosingFiles) -> pa.RecordBatch:
    paths = [
        None if path is None else choosing.path_of(path, is_unlisted=is_unlisted)
        for path, is_unlisted in zip(files["path"].to_pylist(), are_unlisted(files).to_pylist(), strict=True)
    ]
    column = pa.array(paths, pa.string())
    return files.set_column(files.schema.get_field_index("path"), "path", column).filter(pc.is_valid(column))


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
