"""The plan of the judgement: rows of both sides meet in one shuffle and one sort, and Python judges them as they come.

Spark's workers run `rules.judged` over Arrow batches. Few rows are judged by this process, because to start a worker
takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from status_tool.rules.context import RunContext
from status_tool.rules.judged import REGION_COLUMNS, REGION_KINDS, judge_regions, judge_streams
from status_tool.spark.source import marked
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import Row

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
BATCH = 10_000
"""Number of records in a batch for Spark."""

_MS, _TEXT, _KEY, _NUMBER = pa.int64(), pa.string(), pa.binary(), pa.int64()
FINDING = pa.struct(
    {
        **dict.fromkeys(("code", "table", "region"), _TEXT),
        **dict.fromkeys(("origin", "via", "from_seq", "to_seq"), _NUMBER),
        **dict.fromkeys(("written_from_ms", "written_to_ms", "repair_to_ms"), _MS),
        **{"holes": _NUMBER, "lag_ms": _MS, "start_key": _KEY, "end_key": _KEY, "path": _TEXT, "note": _TEXT},
        "rank": _NUMBER,
    }
)
REGION_SCHEMA = pa.schema(
    {
        **{"table": _TEXT, "region": _TEXT, "start_key": _KEY, "end_key": _KEY, "status": pa.int32()},
        **{"findings": pa.list_(FINDING), "table_status": pa.int32(), "evidence": _TEXT, "heads": _NUMBER},
        **{"written_ms": _MS, "replicated_ms": _MS, "timestamps": _TEXT, "lag_ms": _MS},
        **{"later": _NUMBER, "later_ms": _MS},
    }
)
STREAM_SCHEMA = pa.schema(
    {
        **{"table": _TEXT, "region": _TEXT, "origin": _NUMBER, "via": _NUMBER, "family": _TEXT, "code": _TEXT},
        **{"written_seq": _NUMBER, "first_written_ms": _MS, "written_ms": _MS, "segments": _NUMBER},
        **{"arrived_seq": _NUMBER, "arrived_ms": _MS, "highest_arrived_seq": _NUMBER, "highest_arrived_ms": _MS},
        **{"holes": _NUMBER, "origin_settled": pa.bool_(), "after_cut_ms": _MS},
        **{"from_seq": _NUMBER, "to_seq": _NUMBER, "written_from_ms": _MS, "written_to_ms": _MS, "lag_ms": _MS},
    }
)


def rows_of_regions(
    master_df: DataFrame,
    slave_df: DataFrame,
    left_out: Collection[str],
    columns: Iterable[Column | str] = REGION_COLUMNS,
) -> DataFrame:
    """Return all rows by which regions are judged, without tables that are left out."""
    sides = [
        rows.where(F.col("kind").isin(*REGION_KINDS[side]) & F.col("region").isNotNull())
        for rows, side in ((master_df, MASTER), (slave_df, SLAVE))
    ]
    if left_out:
        # NOT IN yields null for a null: without the first test, rows that name no table would be dropped.
        sides = [rows.where(F.col("table").isNull() | ~F.col("table").isin(*left_out)) for rows in sides]
    return sides[0].select(*columns).unionByName(sides[1].select(*columns))


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
    return session.createDataFrame(pa.Table.from_batches([batch_of(list(records), schema)]))


def batch_of(records: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Return the records as columns."""
    return pa.RecordBatch.from_arrays([_column(records, field) for field in schema], schema=schema)


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
            yield batch_of(found, schema)

    # `judge` ends a region at the next name: if its rows were apart, each part would pass for a region of its own.
    # Spark merges small partitions (AQE) only if their number is not given.
    divided = rows.repartition("region") if tasks is None else rows.repartition(tasks, "region")
    return map_in_arrow(divided.sortWithinPartitions("region"), batches, schema)


def map_in_arrow(rows: DataFrame, batches: Batches, schema: pa.Schema) -> DataFrame:
    """Call `DataFrame.mapInArrow`, which asks for pandas although it does not use it.

    `source.explain` turns an error of a worker into the tool's.
    """

    def judged(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marked():
            yield from batches(given)

    judging = UserDefinedFunction(
        judged, from_arrow_schema(schema), "judge", evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = judging(*(rows[name] for name in rows.columns))
    return DataFrame(rows._jdf.mapInArrow(column._jc, False, None), rows.sparkSession)


def _column(records: list[Any], field: pa.Field) -> pa.Array:
    values = [getattr(record, field.name) for record in records]
    if field.type != pa.list_(FINDING):
        return pa.array(values, field.type)
    offsets = pa.array([0, *accumulate(map(len, values))], pa.int32())
    findings = list(chain.from_iterable(values))
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays([_column(findings, one) for one in FINDING], fields=list(FINDING))
    )
