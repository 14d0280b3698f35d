"""The master's side of a check: FILE or, with --follow, what has been read from the master since."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from status_tool.runs.question import SideFacts
from status_tool.spark.held import small_file
from status_tool.spark.session import Spark
from status_tool.spark.settings import is_small
from status_tool.spark.source import read_status
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.header import Header


@dataclass(frozen=True)
class MasterSide:
    """Master's side of a check."""

    file: StatusFile
    header: Header
    older: StatusFile | None = None
    """FILE, where `file` is newer: FILE's streams stay in scope, and its files are those that are compared."""

    @property
    def is_small(self) -> bool:
        """Return True if Spark plans for few rows."""
        return is_small(self.file.parquet_path)

    def rows(self, spark: Spark, folder: Path) -> DataFrame | pa.Table:
        """Return all rows.

        This process holds them if they are few; else Spark reads them from `folder`, which must outlive them.
        """
        held = small_file(self.file) if self.older is None else None
        if held is not None:
            return held
        rows = read_status(spark(), self.file, folder)
        if self.older is None:
            return rows
        # Of servers, peers, tables and queues only the newer rows count.
        kept = read_status(spark(), self.older, folder).where(F.col("kind").isin("stream", "file", "count"))
        return rows.unionByName(kept)

    def facts(self) -> SideFacts:
        """Return the facts of the master that the question needs."""
        return facts_of(self.file, self.header)


def facts_of(file: StatusFile, header: Header) -> SideFacts:
    """Return a file's small rows, and the names of its regions' tables. `header` is the file's or replaces it."""
    if file.is_json:
        return SideFacts(header, legacy=True)
    rows = tuple(file.rows_of("peer", "table", "server", "queue"))
    tables = {name for batch in file.rows({"region"}) for name in batch.column("table").to_pylist()}
    return SideFacts(header, rows, frozenset(name for name in tables if name is not None))
