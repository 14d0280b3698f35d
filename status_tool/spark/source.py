"""Rows for Spark: live sources and status files, read by workers, here or elsewhere, and functions over their rows.

A live source is a Spark Python data source: its partitions are read in parallel by Spark's workers. Functions over rows
of a file of this machine read it themselves: Arrow reads the few columns that are asked for in a tenth of the time that
Spark takes to read them and to send them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import SparkFiles, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from status_tool import errors
from status_tool.errors import ConfigurationError, StatusToolError, is_traceback_wanted, unexpected
from status_tool.sources.interface import Source
from status_tool.spark.settings import runs_here
from status_tool.vocabulary.schema import STATUS_SCHEMA

if TYPE_CHECKING:
    # Each worker imports this module.
    from status_tool.status_file.reader import StatusFile

Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_OPTION = "source_token"
"""Spark shows no option's value whose name speaks of a token (`spark.redaction.regex`): an endpoint may have one."""
_MARK = "status-tool-error:"
_MARKED = re.compile(re.escape(_MARK) + r"([A-Za-z0-9+/=]+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)": error=\d+, ([^\n]+)')
"""Message of a JVM that cannot start Python."""
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '((?!status_tool)[^']+)'")
_OTHER_PYTHON = re.compile(r"Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)")
"""Message of PySpark about executors' Pythons that cannot run the tool's code."""
_BATCH_ROWS = 16_384
_WHOLE = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Whatever Spark is set to (`spark.sql.files.…`): it would leave out rows that it cannot read, and a check what they
ask for."""
_TASKS = 2
"""Number of tasks for each that runs at once."""
_DICTIONARY = ["kind", "table", "via_ids", "state", "server", "family"]
"""Columns with few distinct values."""


def load(session: SparkSession, source: Source) -> DataFrame:
    """Return the rows of a source in the wide schema. Nothing is read before an action, which may read it twice.

    Raises `ConfigurationError` if this host cannot run the executors' Python, which Spark asks for the schema.
    """
    session.dataSource.register(StatusRows)
    dumped: bytes = cloudpickle.dumps(source)  # type: ignore[no-untyped-call]
    # Spark hands options on as text.
    pickled = base64.b64encode(dumped).decode("ascii")
    try:
        return session.read.format(StatusRows.name()).option(_OPTION, pickled).load()
    except Exception as error:
        if (clear := explain(error)) is not None:
            raise clear from None
        raise


def is_read_anew(rows: DataFrame) -> bool:
    """Return True if some of the rows are of a `Source`, which each action reads anew unless the rows are kept."""
    leaves = rows._jdf.queryExecution().analyzed().collectLeaves()
    return any(leaves.apply(at).getClass().getSimpleName() == "DataSourceV2Relation" for at in range(leaves.size()))


def explain(error: BaseException) -> StatusToolError | None:
    """The tool's own error that a Spark exception carries, however deep, or what it means; None for another one's.

    Ask while Spark's JVM lives: it has the words.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, StatusToolError):
            return seen
        said = str(seen)
        if reason := _python_trouble(said):
            return ConfigurationError(reason)
        if found := _MARKED.search(said):
            return _decoded(found.group(1))
        seen = seen.__cause__ or seen.__context__
    return None


def _python_trouble(said: str) -> str | None:
    """Return what is wrong with the Python that Spark runs, and what to do; None if nothing shows."""
    if program := _NO_PROGRAM.search(said):
        return (
            f"Spark cannot run the Python {program[1]} (PYSPARK_PYTHON; {program[2]}): it has to be there by this "
            "name on this host, seen from this folder, and on every executor"
        )
    if module := _NO_MODULE.search(said):
        return (
            f"the Python that Spark runs has no module {module[1]}: set PYSPARK_PYTHON to one, on this host and on "
            "every executor, that has what the tool needs (requirements.lock)"
        )
    if versions := _OTHER_PYTHON.search(said):
        return (
            f"Spark's executors run Python {versions[1]}, and the tool Python {versions[2]}: set PYSPARK_PYTHON to one "
            "of the same minor version"
        )
    return None


class StatusRows(DataSource):
    """Spark's view of a `Source`, which travels pickled in an option."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `read.format`."""
        return "status_rows"

    def schema(self) -> StructType:
        """Return the wide schema."""
        return from_arrow_schema(STATUS_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the source."""
        with marked():
            source: Source = cloudpickle.loads(base64.b64decode(self.options[_OPTION]))
        return _Reader(source)


class _Reader(DataSourceReader):
    def __init__(self, source: Source) -> None:
        self._source = source

    def partitions(self) -> Sequence[InputPartition]:
        with marked():
            return [InputPartition(partition) for partition in self._source.partitions()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with marked():
            yield from self._source.read(partition.value)


@contextmanager
def marked() -> Iterator[None]:
    """Let an error cross from a worker to the driver as a mark in the message; an unexpected one becomes one line."""
    try:
        yield
    except ImportError:
        raise  # of a Python that lacks something: PySpark says the same where the tool's code is not even reached
    except StatusToolError as error:
        raise _mark(error, str(error)) from None
    except Exception as error:
        if is_traceback_wanted():
            raise
        raise _mark(error, unexpected(error)) from None


def _mark(error: Exception, message: str) -> RuntimeError:
    mark = json.dumps([type(error).__name__, message])
    return RuntimeError(_MARK + base64.b64encode(mark.encode()).decode("ascii"))


def _decoded(encoded: str) -> StatusToolError:
    name, message = json.loads(base64.b64decode(encoded))
    kind = getattr(errors, name, StatusToolError)
    return kind(message) if issubclass(kind, StatusToolError) else StatusToolError(message)


# -- status files


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
    return load(session, SentFile(sent.name, groups))


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


# -- functions over rows


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


def local_files(rows: DataFrame) -> list[Path]:
    """Return the local files that hold exactly these rows; none if they are of another source."""
    # `inputFiles` also names the files below a filter, a join or renamed paths, whose rows are not those of the files.
    if not rows._jdf.queryExecution().analyzed().children().isEmpty():
        return []
    uris = [urlsplit(uri) for uri in rows.inputFiles()]
    is_here = runs_here(rows.sparkSession.sparkContext.master) and all(uri.scheme == "file" for uri in uris)
    return [Path(unquote(uri.path)) for uri in uris] if is_here else []


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """The rows that a function is given: of some kinds, without tables that are left out, with some columns."""

    kinds: Sequence[str]
    columns: Sequence[str]
    """`kind` and `table` are among them."""
    left_out: Sequence[str] = ()

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return those of a batch."""
        is_asked = is_one_of(batch.column("kind"), self.kinds)
        if self.left_out:
            # `is_in` returns false for null: rows without a table stay.
            is_asked = pc.and_not(is_asked, is_one_of(batch.column("table"), self.left_out))
        return batch if pc.all(is_asked).as_py() else batch.filter(is_asked)


def mapped(rows: DataFrame, asked: ChosenRows, of: Batches, schema: pa.Schema) -> DataFrame:
    """Return what a function makes of batches of the rows that it asks for."""
    groups = [(file, group) for file in local_files(rows) for group in _groups(file, asked.kinds)]

    def chosen(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return of(map(asked.of, given))

    def read(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places = (place for batch in given for place in batch.column(0).to_pylist())
        return chosen(_read((groups[place] for place in places), asked.columns))

    if not groups:
        return map_in_arrow(rows.where(F.col("kind").isin(*asked.kinds)).select(*asked.columns), chosen, schema)
    session = rows.sparkSession
    tasks = min(len(groups), _TASKS * session.sparkContext.defaultParallelism)
    return map_in_arrow(session.range(0, len(groups), 1, tasks), read, schema)


def is_one_of(column: pa.Array, values: Sequence[str]) -> pa.Array:
    """Return whether each of a column's texts, which may be a dictionary's, is one of the values."""
    return pc.is_in(column.cast(pa.string()), value_set=pa.array(map(str, values), pa.string()))


def _groups(file: Path, kinds: Collection[str]) -> list[int]:
    """Return the row groups that may have rows of some kinds."""
    with pq.ParquetFile(file) as parquet:
        metadata, place = parquet.metadata, parquet.schema_arrow.names.index("kind")
        columns = [metadata.row_group(group).column(place).statistics for group in range(metadata.num_row_groups)]
    # The writer puts one kind into a row group. A group of several, or without statistics, may have any.
    return [
        group
        for group, known in enumerate(columns)
        if known is None or not known.has_min_max or known.min != known.max or known.min in kinds
    ]


def _read(asked: Iterable[tuple[Path, int]], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    dictionary = [name for name in _DICTIONARY if name in columns]
    for file, groups in groupby(asked, itemgetter(0)):
        with pq.ParquetFile(file, read_dictionary=dictionary) as parquet:
            for _, group in groups:
                rows = parquet.read_row_group(group, columns=list(columns), use_threads=False)
                yield from rows.select(list(columns)).combine_chunks().to_batches()
