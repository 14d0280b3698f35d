"""`--deep`: files whose checksums cannot be compared, settled by the CRC32C of their content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from status_tool.clients.hdfs_native import RpcEndpoint
from status_tool.clients.webhdfs import HdfsEndpoint, Load
from status_tool.sources import codec
from status_tool.sources.hdfs_files import FILES_PER_BATCH, client_for, reads_alone, with_content
from status_tool.spark.cluster import read_parquet
from status_tool.spark.verify import Verification
from status_tool.vocabulary.schema import STATUS_SCHEMA, NewRow
from status_tool.vocabulary.selection import PathMap


def with_crc(
    check: Verification, endpoint: HdfsEndpoint | RpcEndpoint, load: Load, path_map: PathMap, folder: Path
) -> DataFrame:
    """Return the slave's rows, with the CRC32C of each file that only it can settle.

    The executors read the files, or this process does (`reads_alone`); what it has read is put into `folder`, which
    must exist as long as the rows are used.
    """
    rows = check.slave_df
    differs = (F.col("code") == "file-differs") & (F.col("master.length") == F.col("slave.length"))
    asked = (F.col("code").isin("algorithm", "no-checksum") | differs) & F.col("master.crc32c").isNotNull()
    undecided = check.files().where(asked).select("path")
    is_file = F.col("kind") == "file"
    files = rows.where(is_file).join(undecided, "path", "left_semi").select(rows.columns)
    others = rows.where(is_file).join(undecided, "path", "left_anti").select(rows.columns)
    if reads_alone(endpoint, load):
        read = _read_rows(files.toLocalIterator(prefetchPartitions=True), endpoint, load, path_map)
        with pq.ParquetWriter(folder / "read.parquet", STATUS_SCHEMA) as writer:
            for batch in codec.batches(read):
                writer.write_batch(batch)
        read_df = read_parquet(check.session, folder / "read.parquet", folder, "read")
        return rows.where(~is_file).unionByName(others).unionByName(read_df)
    tasks, columns = check.parallelism, rows.columns
    shared = load.shared(tasks)

    def fill(partition: Iterable[SparkRow]) -> Iterable[tuple[Any, ...]]:
        for row in _read_rows(partition, endpoint, shared, path_map):
            yield tuple(row[name] for name in columns)

    # Not mapInArrow, which requires pandas.
    # Their rows are few bytes, so one partition may have all of them, and reading the files is the work.
    filled = files.repartition(tasks).rdd.mapPartitions(fill)
    read_df = check.session.createDataFrame(filled, rows.schema)
    return rows.where(~is_file).unionByName(others).unionByName(read_df)


def _read_rows(
    files: Iterable[SparkRow], endpoint: HdfsEndpoint | RpcEndpoint, load: Load, path_map: PathMap
) -> Iterator[NewRow]:
    """Yield the rows with their CRC32C, under the paths that they have on the master."""
    hdfs, waiting = client_for(endpoint, load), iter(files)
    while listed := [row.asDict() for row in islice(waiting, FILES_PER_BATCH)]:
        read = with_content(hdfs, [{**row, "path": path_map.to_slave(row["path"])} for row in listed])
        for known, row in zip(listed, read, strict=True):
            yield {**row, "path": known["path"]}
