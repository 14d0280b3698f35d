"""The plan of the judgement: rows of both sides meet in one shuffle and one sort, and Python judges them as they come.

Spark's workers run `rules.judged` over Arrow batches. Few rows are judged by this process, because to start a worker
takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields
from functools import partial
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from status_tool.rules.context import RunContext
from status_tool.rules.files import COMPARED, are_unlisted, evident_matches
from status_tool.rules.judged import (
    REGION_COLUMNS,
    REGION_KINDS,
    JudgedFile,
    JudgedRegion,
    JudgedStream,
    judge_files,
    judge_regions,
    judge_streams,
)
from status_tool.spark.source import is_read_anew, map_in_arrow
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.selection import ChoosingFiles, ChosenFiles

BATCH = 10_000
"""Number of records in a batch for Spark."""

FIELDS = tuple(field.name for field in fields(Finding))
_ORDER = ("table", "region", "origin", "via", "path", "code")
FILE_COLUMNS = (*COMPARED, "modified_ms", "detail")
"""Columns by which files are judged."""
_CONTENT = pa.struct([STATUS_SCHEMA.field(name) for name in COMPARED])
# By the annotation of a record's fields, so that a field added there is handed on without a change here.
_TYPES = {
    **dict.fromkeys(("str", "str | None", "Evidence"), pa.string()),
    **dict.fromkeys(("int", "int | None"), pa.int64()),
    **dict.fromkeys(("bool", "bool | None"), pa.bool_()),
    "bytes | None": pa.binary(),
    "Row | None": _CONTENT,
}
FINDING = pa.struct({**{field.name: _TYPES[str(field.type)] for field in fields(Finding)}, "rank": pa.int64()})
_TYPES["tuple[Finding, ...]"] = pa.list_(FINDING)
REGION_SCHEMA, STREAM_SCHEMA, FILE_SCHEMA = (
    pa.schema({field.name: _TYPES[str(field.type)] for field in fields(record)})
    for record in (JudgedRegion, JudgedStream, JudgedFile)
)


def rows_of_regions(master_df: DataFrame, slave_df: DataFrame, left_out: Collection[str]) -> DataFrame:
    """Return all rows by which regions are judged, without tables that are left out."""
    sides = [
        rows.where(F.col("kind").isin(*REGION_KINDS[side]) & F.col("region").isNotNull())
        for rows, side in ((master_df, MASTER), (slave_df, SLAVE))
    ]
    if left_out:
        # NOT IN yields null for a null: without the first test, rows that name no table would be dropped.
        sides = [rows.where(F.col("table").isNull() | ~F.col("table").isin(*left_out)) for rows in sides]
    return sides[0].select(*REGION_COLUMNS).unionByName(sides[1].select(*REGION_COLUMNS))


def regions_of(rows: DataFrame, context: RunContext, tasks: int | None = None) -> DataFrame:
    """Return a `JudgedRegion` for each region of `rows_of_regions`; `findings` with their `rank`.

    `tasks`: into how many the work is divided; None: by the bytes of the rows.
    """
    return _by_region(rows, partial(judge_regions, context=context), REGION_SCHEMA, tasks)


def judged_streams(rows: DataFrame, context: RunContext) -> DataFrame:
    """Return a `JudgedStream` for each stream of the same rows."""
    return _by_region(rows, partial(judge_streams, context=context), STREAM_SCHEMA)


def frame_of_records(session: SparkSession, records: Iterable[Any], schema: pa.Schema) -> DataFrame:
    """Return what this process has judged, for Spark."""
    return session.createDataFrame(pa.Table.from_batches([_batch_of(records, schema)]))


def _batch_of(records: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return the records as columns."""
    found = list(records)
    return pa.RecordBatch.from_arrays([_column(found, field) for field in schema], schema=schema)


def collected(rows: DataFrame, by: str) -> list[Row]:
    """Return all of them, in this process, sorted."""
    found: list[Row] = rows.toArrow().to_pylist()
    return sorted(found, key=itemgetter(by))


def _by_region(
    rows: DataFrame, judge: Callable[[Iterable[Row]], Iterable[Any]], schema: pa.Schema, tasks: int | None = None
) -> DataFrame:
    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        records = iter(judge(row for batch in given for row in batch.to_pylist()))
        while found := list(islice(records, BATCH)):
            yield _batch_of(found, schema)

    # `judge` ends a region at the next name: if its rows were apart, each part would pass for a region of its own.
    # Spark merges small partitions (AQE) only if their number is not given.
    divided = rows.repartition("region") if tasks is None else rows.repartition(tasks, "region")
    return map_in_arrow(divided.sortWithinPartitions("region"), batches, schema)


def _column(records: list[Any], field: pa.Field) -> pa.Array:
    values = [getattr(record, field.name) for record in records]
    if field.type != pa.list_(FINDING):
        return pa.array(values, field.type)
    offsets = pa.array([0, *accumulate(map(len, values))], pa.int32())
    findings = list(chain.from_iterable(values))
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays([_column(findings, one) for one in FINDING], fields=list(FINDING))
    )


# -- files, by path


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
        rows.where("kind = 'file' AND path IS NOT NULL").select("path", *FILE_COLUMNS, F.lit(side).alias("side"))
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
        yield _batch_of(judge_files(others.to_pylist(), after_cut), FILE_SCHEMA)


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


# -- columns, and findings as rows


def named(columns: dict[str, str]) -> list[Column]:
    """Name -> expression as columns for `select` and `agg`."""
    return [F.expr(f"{expression} AS `{name}`") for name, expression in columns.items()]


def worst_first() -> list[Column]:
    """Return the order of `findings.sort_key`, over the struct's fields as columns."""
    # `asc` puts nulls first, as `sort_key` does.
    return [F.col("rank").asc(), F.col("lag_ms").desc_nulls_last(), *(F.col(name).asc() for name in _ORDER)]


def to_finding(row: SparkRow) -> Finding:
    """Return the finding of a collected row."""
    values: dict[str, Any] = {name: row[name] for name in FIELDS}
    for name in ("start_key", "end_key"):
        values[name] = None if values[name] is None else bytes(values[name])
    return Finding(**values)
