"""`--deep`: files whose checksums cannot be compared, settled by the CRC32C of their content."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from status_tool.sources import codec
from status_tool.sources.codec import Row
from status_tool.sources.namenode import HdfsEndpoint, Load, webhdfs
from status_tool.sources.selection import PathMap
from status_tool.sources.webhdfs import BATCH_ROWS, with_content
from status_tool.spark.verify import Check


def with_crc(check: Check, endpoint: HdfsEndpoint, load: Load, path_map: PathMap) -> DataFrame:
    """The slave's rows, with the CRC32C of each file that only it can settle. The executors read the files."""
    rows = check.slave_rows
    asked = check.files().where((F.col("code") == "algorithm") & F.col("master.crc32c").isNotNull()).select("path")
    is_file = F.col("kind") == "file"
    files = rows.where(is_file).join(asked, "path", "left_semi").select(rows.columns)
    others = rows.where(is_file).join(asked, "path", "left_anti").select(rows.columns)

    def own(row: Row) -> Row:
        return {**row, "path": path_map.to_slave(row["path"])}

    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        hdfs = webhdfs(endpoint, load)
        for batch in batches:
            listed = batch.to_pylist()
            read = with_content(hdfs, map(own, listed))
            named = ({**row, "path": known["path"]} for row, known in zip(read, listed, strict=True))
            yield from codec.batches(named, BATCH_ROWS)

    spread = files.repartition(check.parallelism)
    return rows.where(~is_file).unionByName(others).unionByName(spread.mapInArrow(fill, rows.schema))
