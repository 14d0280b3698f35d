"""Ships what executors on other machines need: the tool's own code, and the status files."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import SparkContext, SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import status_tool
from status_tool.sources.interface import Source
from status_tool.spark import source as spark_source
from status_tool.spark.settings import runs_here
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.schema import STATUS_SCHEMA

_ARCHIVE = "status_tool.zip"
_BATCH_ROWS = 16_384
_WHOLE = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Whatever Spark is set to (`spark.sql.files.…`): it would leave out rows that it cannot read, and a check what they
ask for."""


def ship_code(context: SparkContext, folder: Path) -> None:
    """Let executors import this very version of the package. `folder` must exist as long as the context.

    What the package itself imports (pyproject.toml) must be there already.
    """
    package = Path(status_tool.__file__).parent
    archive = folder / _ARCHIVE
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*.py")):
            packed.write(file, file.relative_to(package.parent))
    before = list(sys.path)
    context.addPyFile(str(archive))
    sys.path[:] = before  # Already imported in this process.


def read_status(session: SparkSession, file: StatusFile, folder: Path) -> DataFrame:
    """Return a status file's rows. Executors elsewhere are sent the file; they cannot open this machine's.

    `folder` must exist as long as the rows are used.
    """
    return read_parquet(session, file.parquet_path, folder, file.header.side)


def read_parquet(session: SparkSession, file: Path, folder: Path, name: str) -> DataFrame:
    """Return the same of any Parquet file of this schema; `name` is for people."""
    if runs_here(session.sparkContext.master):
        # The schema is known: Spark need not open the file to plan.
        reader = session.read.options(**_WHOLE).schema(from_arrow_schema(STATUS_SCHEMA))
        return reader.parquet(f"file://{file.absolute()}")
    # Executors know a sent file by its name alone: two files of one name must not be confused.
    state = file.stat()
    sent = folder / f"{name}-{state.st_ino:x}-{state.st_mtime_ns:x}.parquet"
    if not sent.is_symlink():
        sent.symlink_to(file.absolute())
        session.sparkContext.addFile(sent.as_uri())
    with pq.ParquetFile(file) as parquet:
        groups = parquet.metadata.num_row_groups
    return spark_source.load(session, SentFile(sent.name, groups))


@dataclass(frozen=True)
class SentFile(Source):
    """A Parquet file that was sent to every executor, one partition per row group."""

    name: str
    groups: int

    def partitions(self) -> Sequence[int]:
        """Row groups."""
        return range(self.groups)

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield one row group; the file's digest was checked before it was sent."""
        with pq.ParquetFile(SparkFiles.get(self.name)) as parquet:
            yield from parquet.iter_batches(_BATCH_ROWS, row_groups=[partition], use_threads=False)
