"""The slave's side of a live check: what the check asks of it, and where its rows wait for Spark."""

from __future__ import annotations

import dataclasses
import glob
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from status_tool.clients.config import Settings
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import LEAST_SETTLE_S, Request, Snapshot, Together, snapshot
from status_tool.runs.check import NEAR_ROWS, Check
from status_tool.runs.master_side import MasterSide
from status_tool.runs.question import narrowed_roots
from status_tool.runs.write import Say, source_of
from status_tool.sources.codec import Witnessed
from status_tool.sources.hdfs_files import HdfsSource
from status_tool.sources.interface import Source
from status_tool.sources.state_table import StateTableSource
from status_tool.spark import source as spark_source
from status_tool.spark.held import MOST_ROWS
from status_tool.spark.session import Spark
from status_tool.spark.settings import LOCAL_MASTER, runs_here, submitted
from status_tool.spark.source import read_parquet
from status_tool.status_file.reader import StatusFile
from status_tool.status_file.writer import StatusWriter
from status_tool.temporary import temporary_folder
from status_tool.vocabulary.header import SLAVE
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.selection import Exclusions, is_glob

LEGACY_ROOTS = 10_000
"""Up to so many files of an original's FILE, which names no roots, are roots themselves; else their folders are."""


@dataclass(frozen=True)
class Scratch:
    """Folders for the files that a check lets Spark read."""

    folder: Path
    near: Path | None
    """Where `gather` may put the slave's rows: a file, if Spark's tasks run on this machine."""

    @property
    def is_near(self) -> bool:
        """Return True if `gather` has put the slave's rows there."""
        return self.near is not None and self.near.exists()

    @property
    def files(self) -> Path:
        """File for the slave's files if only this process reads them."""
        return self.folder / "slave-files.parquet"


@contextmanager
def scratch_of(check: Check) -> Iterator[Scratch]:
    """A temporary folder for a check."""
    is_here = not submitted() and runs_here(check.spark_master or LOCAL_MASTER)
    with temporary_folder() as folder:
        yield Scratch(folder, folder / "slave.parquet" if is_here else None)


def slave_request(side: MasterSide, check: Check) -> Request:
    """Return what to gather from the slave for a check against `side`."""
    master = side.header
    hdfs = check.scope.check_hdfs and master.half in ("both", "hdfs")
    known = master.hdfs_paths or (_legacy_roots(side.file) if hdfs else ())
    narrowed = narrowed_roots(dataclasses.replace(master, hdfs_paths=known), check.hdfs_paths)
    return Request(
        side=SLAVE,
        wait_s=max(LEAST_SETTLE_S, min(check.wait_s, 60.0)),
        only=TableFilter(check.scope.tables, check.scope.namespaces),
        hbase=check.scope.check_hbase and master.half in ("both", "hbase"),
        hdfs=hdfs,
        witnessed=_witnessed(side) if master.witnesses else None,
        hdfs_paths=check.scope.path_map.slave_roots(narrowed or known),
        files=dataclasses.replace(
            check.files,
            # With --map-path names differ on the slave: --exclude refers to the master's and applies when comparing.
            exclude=() if check.scope.path_map.pairs else check.files.exclude,
            # `with_crc` reads HDFS alone, so that a local file needs its CRC32C from this listing.
            deep_local=check.deep,
        ),
    )


def _witnessed(side: MasterSide) -> Witnessed:
    found: dict[tuple[str, int, int], dict[int, tuple[int, int]]] = {}
    for row in side.file.rows_of("segment"):
        key = (row["region"], row["origin"], row["via"])
        found.setdefault(key, {})[row["seq"]] = (row["prev"], row["started_ms"])
    return found


def _legacy_roots(file: StatusFile) -> tuple[str, ...]:
    paths = [path for batch in file.rows({"file"}) for path in batch.column("path").to_pylist()]
    return tuple(map(glob.escape, sorted(_roots_of(paths))))


def _roots_of(paths: Sequence[str]) -> set[str]:
    """Return roots whose listings have all these files: the files themselves, or folders that hold them.

    They are at most `LEGACY_ROOTS`, unless more files are in / itself or have names that a listing leaves out.
    """
    are_few, temporary = len(paths) <= LEGACY_ROOTS, Exclusions()
    is_hidden = cache(lambda folder: temporary.hide(folder, 0))
    own, folders = set[str](), set[str]()
    for path in paths:
        folder = posixpath.dirname(path)
        # A folder is no root for what its listing leaves out; and / would be all of HDFS.
        must_stay = folder == "/" or is_hidden(folder) or temporary.leave_out(path)
        # The name of a plain file costs one request, but that of a pattern the listing of its folder.
        if must_stay or (are_few and not is_glob(path)):
            own.add(path)
        else:
            folders.add(folder)
    folders = _outermost(folders)
    while len(own) + len(folders) > LEGACY_ROOTS and (wider := _outermost(set(map(_above, folders)))) != folders:
        folders = wider
    return own | folders


def _above(folder: str) -> str:
    """Return the folder that holds a folder; for one in / the folder itself."""
    above = posixpath.dirname(folder)
    return folder if above == "/" else above


def _outermost(folders: set[str]) -> set[str]:
    """Return the folders that lie in no other one. `selection.outermost` compares each with all others."""
    return {one for one in folders if not any(str(above) in folders for above in PurePosixPath(one).parents)}


def gather(settings: Settings, request: Request, say: Say, scratch: Scratch, *, reads_again: bool = False) -> Snapshot:
    """Take a snapshot of the slave, and read what is not left to Spark (`read_here`)."""
    gathered = snapshot(settings, request, say)
    read_here(gathered, say, scratch, reads_again=reads_again)
    return gathered


def read_here(gathered: Snapshot, say: Say, scratch: Scratch, *, reads_again: bool = False) -> None:
    """Write the rows of a snapshot, if they are few, or will be `reads_again` many times, to `near` at once.

    Spark's Python workers take longer to start than it takes to read a small state table. A bigger one that is read
    once is left to them: they read it in parallel. What only this process reads is written to `files`.
    """
    # Before the files, which may take hours: the events of tables are of the barrier, and segments are to be as well.
    if scratch.near is not None:
        _write_near(gathered, scratch.near, None if reads_again else NEAR_ROWS)
    if here := tuple(source for source in gathered.sources if source.is_read_here):
        say("reading files")
        with StatusWriter(scratch.files, gathered.header) as writer, closing(read_all(Together(here))) as batches:
            for batch in batches:
                writer.write(batch)


def _write_near(gathered: Snapshot, near: Path, most: int | None) -> None:
    # The rows of the round before must not pass for those of this one (`is_near`).
    near.unlink(missing_ok=True)
    part, rows = near.with_suffix(".part"), 0
    with (
        closing(read_all(source_of(_left_to_spark(gathered)))) as batches,
        pq.ParquetWriter(part, STATUS_SCHEMA, store_schema=False) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
            if most is not None and rows > most:
                return
    # Only a whole file gets the name by which `is_near` goes.
    part.rename(near)


def slave_rows(spark: Spark, gathered: Snapshot, scratch: Scratch) -> DataFrame | pa.Table:
    """Return all rows of the slave: held by this process if they are few, else read by Spark."""
    files = [scratch.files] if any(source.is_read_here for source in gathered.sources) else []
    frames = []
    if scratch.near is not None and scratch.is_near:
        files.insert(0, scratch.near)
        # With `reads_again`, the file has all rows, however many there are.
        if sum(pq.read_metadata(file).num_rows for file in files) <= MOST_ROWS:
            return pa.concat_tables([pq.read_table(file, schema=STATUS_SCHEMA) for file in files])
    else:
        frames.append(spark_source.load(spark(), source_of(_shared_out(_left_to_spark(gathered), spark()))))
    frames += [read_parquet(spark(), file, scratch.folder, file.stem) for file in files]
    return reduce(DataFrame.unionByName, frames)


def segment_rows(gathered: Snapshot) -> Iterator[Row]:
    """Yield the `segment` rows that `gather` has left to Spark, read now."""
    yield from _segments_of(_left_to_spark(gathered))


def slave_now(settings: Settings, request: Request, say: Say) -> tuple[Iterable[Row], Iterator[Row]] | None:
    """Return the small rows and the `segment` rows of the slave as it is now; None where a server has not echoed.

    What it applied last may have no segment yet. What `gather` has left stays.
    """
    gathered = snapshot(settings, dataclasses.replace(request, hdfs=False), say)
    return None if gathered.unsettled else (gathered.rows, _segments_of(gathered))


def _segments_of(gathered: Snapshot) -> Iterator[Row]:
    with closing(read_all(source_of(gathered))) as batches:
        for batch in batches:
            yield from batch.filter(pc.equal(batch.column("kind"), "segment")).to_pylist()


def _left_to_spark(gathered: Snapshot) -> Snapshot:
    """Return the snapshot without the sources that only this process reads."""
    return dataclasses.replace(gathered, sources=tuple(one for one in gathered.sources if not one.is_read_here))


def _shared_out(gathered: Snapshot, spark: SparkSession) -> Snapshot:
    """Split the sources into enough parts for all of Spark's tasks, which share the concurrency."""
    tasks = max(1, spark.sparkContext.defaultParallelism)

    def shared(source: Source) -> Source:
        if isinstance(source, HdfsSource):
            return dataclasses.replace(source, load=source.load.shared(tasks))
        return source.shared_out(tasks) if isinstance(source, StateTableSource) else source

    return dataclasses.replace(gathered, sources=tuple(map(shared, gathered.sources)))
