"""`--deep`: files whose checksums cannot be compared, settled by the CRC32C of their content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from status_tool.clients.hdfs_native import RpcEndpoint
from status_tool.clients.webhdfs import HdfsEndpoint, Load
from status_tool.sources import codec
from status_tool.sources.hdfs_files import FILES_PER_BATCH, NO_BLOCK_SUM, client_for, reads_alone, with_content
from status_tool.spark.source import map_in_arrow, read_parquet
from status_tool.spark.verify import Verification
from status_tool.vocabulary.codes import FILE_CODES
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.schema import STATUS_SCHEMA, NewRow, Row
from status_tool.vocabulary.selection import PathMap

_CODES = ("algorithm", "no-checksum", "file-differs", "file-unreadable")
"""Codes of the files of which content may settle some."""
_PATHS = pa.schema({"path": pa.string()})


def only_content_settles(check: Verification, outcome: Outcome) -> DataFrame | None:
    """Return the paths of the files that only their content can settle; None if there are none."""
    # Neither starts Spark for nothing, nor compares all files once more where all match.
    if check.files_here is not None:
        if not any(_is_asked(file.code, file.note, file.master, file.slave) for file in check.files_here):
            return None
    elif outcome.hdfs is None or not any(outcome.hdfs.files[FILE_CODES[code]] for code in _CODES):
        return None
    paths = check.keep(map_in_arrow(check.files().where(F.col("code").isin(*_CODES)), _asked, _PATHS))
    return None if paths.isEmpty() else paths


def _asked(files: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in files:
        rows = batch.to_pylist()
        asked = [one["path"] for one in rows if _is_asked(one["code"], one["note"], one["master"], one["slave"])]
        yield pa.RecordBatch.from_arrays([pa.array(asked, pa.string())], schema=_PATHS)


def _is_asked(code: str, note: str | None, master: Row | None, slave: Row | None) -> bool:
    """Return True if a file may agree, and the slave's content has not been read yet.

    A local file's has: its path would be another file's in HDFS.
    """
    if master is None or slave is None or master["crc32c"] is None or slave["crc32c"] is not None:
        return False
    if code == "file-differs":
        return bool(master["length"] == slave["length"])
    # HDFS has no checksum of unlike blocks, and refuses that of a lost block in the same words.
    return NO_BLOCK_SUM in (note or "") if code == "file-unreadable" else code in _CODES


def with_crc(
    check: Verification,
    paths: DataFrame,
    endpoint: HdfsEndpoint | RpcEndpoint,
    load: Load,
    path_map: PathMap,
    folder: Path,
) -> DataFrame:
    """Return the slave's rows, with the CRC32C of the files of these paths.

    The executors read the files, or this process does (`reads_alone`); what it has read is put into `folder`, which
    must exist as long as the rows are used.
    """
    rows = check.slave_df
    is_file = F.col("kind") == "file"
    files = rows.where(is_file).join(paths, "path", "left_semi").select(rows.columns)
    others = rows.where(is_file).join(paths, "path", "left_anti").select(rows.columns)
    if reads_alone(endpoint, load):
        listed = (row.asDict() for row in files.toLocalIterator(prefetchPartitions=True))
        with pq.ParquetWriter(folder / "read.parquet", STATUS_SCHEMA) as writer:
            for batch in codec.batches(_read_rows(listed, endpoint, load, path_map)):
                writer.write_batch(batch)
        read_df = read_parquet(check.session, folder / "read.parquet", folder, "read")
        return rows.where(~is_file).unionByName(others).unionByName(read_df)
    tasks = check.parallelism
    shared = load.shared(tasks)

    def fill(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        listed = (row for batch in given for row in batch.to_pylist())
        yield from codec.batches(_read_rows(listed, endpoint, shared, path_map))

    # Their rows are few bytes, so one partition may have all of them, and reading the files is the work.
    # Each action would read the files anew.
    read_df = check.keep(map_in_arrow(files.repartition(tasks), fill, STATUS_SCHEMA))
    return rows.where(~is_file).unionByName(others).unionByName(read_df)


def _read_rows(
    files: Iterable[Row], endpoint: HdfsEndpoint | RpcEndpoint, load: Load, path_map: PathMap
) -> Iterator[NewRow]:
    """Yield the rows with their CRC32C, under the paths that they have on the master."""
    hdfs, waiting = client_for(endpoint, load), iter(files)
    while listed := list(islice(waiting, FILES_PER_BATCH)):
        read = with_content(hdfs, [{**row, "path": path_map.to_slave(row["path"])} for row in listed])
        for known, row in zip(listed, read, strict=True):
            yield {**row, "path": known["path"]}
