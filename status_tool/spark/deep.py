"""`--deep`: files whose checksums cannot be compared, settled by the CRC32C of their content."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from status_tool.clients.webhdfs import HdfsEndpoint, Load, webhdfs
from status_tool.sources.hdfs_files import FILES_PER_BATCH, with_content
from status_tool.spark.verify import Verification
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.selection import PathMap


def with_crc(check: Verification, endpoint: HdfsEndpoint, load: Load, path_map: PathMap) -> DataFrame:
    """The slave's rows, with the CRC32C of each file that only it can settle. The executors read the files."""
    rows = check.slave_rows
    undecided = check.files().where((F.col("code") == "algorithm") & F.col("master.crc32c").isNotNull()).select("path")
    is_file = F.col("kind") == "file"
    files = rows.where(is_file).join(undecided, "path", "left_semi").select(rows.columns)
    others = rows.where(is_file).join(undecided, "path", "left_anti").select(rows.columns)

    def own(row: NewRow) -> NewRow:
        return {**row, "path": path_map.to_slave(row["path"])}

    def fill(partition: Iterable[SparkRow]) -> Iterable[tuple[Any, ...]]:
        hdfs, waiting = webhdfs(endpoint, load), iter(partition)
        while listed := [row.asDict() for row in islice(waiting, FILES_PER_BATCH)]:
            read = with_content(hdfs, map(own, listed))
            for known, row in zip(listed, read, strict=True):
                yield tuple({**row, "path": known["path"]}[name] for name in columns)

    columns = rows.columns
    # Not mapInArrow, which requires pandas.
    filled = files.repartition(check.parallelism).rdd.mapPartitions(fill)
    read_df = check.session.createDataFrame(filled, rows.schema)
    return rows.where(~is_file).unionByName(others).unionByName(read_df)
