"""Rows of small files, held by this process: Spark need not open a file, and what is judged here needs no Spark job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from status_tool.rules.judged import region_rows
from status_tool.spark.judge import FILE_COLUMNS, files_in_question
from status_tool.spark.settings import is_small
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.selection import ChosenFiles

MOST_ROWS = 50_000
"""Up to so many rows are held: some 50 MB."""
_NOT_ASKED = frozenset({"path", "checksum", "crc32c", "algorithm", "block_size"})


@dataclass(frozen=True)
class HeldRows:
    """The rows of both sides that are judged in this process, without tables that are left out."""

    master: Sequence[Row]
    slave: Sequence[Row]
    files: Sequence[Row] | None = ()
    """The files of both that are asked about, with their `side`, sorted by path; None: Spark has them."""

    @classmethod
    def of(
        cls,
        master: pa.Table,
        slave: pa.Table,
        left_out: Collection[str] = (),
        files: tuple[ChosenFiles, ChosenFiles] | None = (ChosenFiles(), ChosenFiles()),
    ) -> HeldRows:
        """Hold all rows of both sides, of `files` those that are asked about; None: none are."""
        found = [] if files is None else [*_files(master, MASTER, files[0]), *_files(slave, SLAVE, files[1])]
        return cls(_asked(master, left_out), _asked(slave, left_out), sorted(found, key=itemgetter("path")))

    @property
    def region_rows(self) -> list[Row]:
        """Return the rows by which regions are judged, sorted by region."""
        both = [*region_rows(self.master, MASTER), *region_rows(self.slave, SLAVE)]
        return sorted(both, key=itemgetter("region"))

    @property
    def entries(self) -> dict[tuple[str, str], int]:
        """The `count` rows by side and name."""
        summed: dict[tuple[str, str], int] = {}
        for side, rows in ((MASTER, self.master), (SLAVE, self.slave)):
            for row in rows:
                if row["kind"] == "count":
                    summed[side, row["name"]] = summed.get((side, row["name"]), 0) + (row["entries"] or 0)
        return summed


def small_file(file: StatusFile) -> pa.Table | None:
    """Return all rows of a small file; None if it is not small. Raises `StatusFileError`."""
    # Rows that are alike take hardly a byte of the file.
    if not is_small(file.parquet_path) or sum(file.counts.values()) > MOST_ROWS:
        return None
    return pa.Table.from_batches(file.rows(), STATUS_SCHEMA)


def frame_of(session: SparkSession, rows: DataFrame | pa.Table) -> DataFrame:
    """Return the rows for Spark."""
    return session.createDataFrame(rows) if isinstance(rows, pa.Table) else rows


def _asked(rows: pa.Table, left_out: Collection[str]) -> list[Row]:
    """Return all rows but those of files."""
    columns = [name for name in rows.column_names if name not in _NOT_ASKED]
    found: list[Row] = rows.select(columns).filter(pc.not_equal(rows["kind"], "file")).to_pylist()
    return [row for row in found if row["table"] not in left_out]


def _files(rows: pa.Table, side: str, chosen: ChosenFiles) -> Iterator[Row]:
    files = rows.filter(pc.equal(rows["kind"], "file")).select(["kind", "path", *FILE_COLUMNS])
    for batch in files_in_question(files.to_batches(), chosen):
        yield from ({**row, "side": side} for row in batch.to_pylist())
