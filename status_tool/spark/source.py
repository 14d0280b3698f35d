"""Any `Source` as a Spark Python data source: its partitions are read in parallel by Spark's workers."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from status_tool import errors
from status_tool.errors import ConfigurationError, StatusToolError, is_traceback_wanted, unexpected
from status_tool.sources.interface import Source
from status_tool.vocabulary.schema import STATUS_SCHEMA

FORMAT = "status_rows"
_OPTION = "source_token"
"""Spark shows no option's value whose name speaks of a token (`spark.redaction.regex`): an endpoint may have one."""
_MARK = "status-tool-error:"
_MARKED = re.compile(re.escape(_MARK) + r"([A-Za-z0-9+/=]+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)": error=\d+, ([^\n]+)')
"""Message of a JVM that cannot start Python."""
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '((?!status_tool)[^']+)'")
_OTHER_PYTHON = re.compile(r"Python in worker has different version: ([\d.]+) than that in driver: ([\d.]+)")
"""Message of PySpark about executors' Pythons that cannot run the tool's code."""


def load(session: SparkSession, source: Source) -> DataFrame:
    """Return the rows of a source in the wide schema. Nothing is read before an action, which may read it twice.

    Raises `ConfigurationError` if this host cannot run the executors' Python, which Spark asks for the schema.
    """
    session.dataSource.register(StatusRows)
    dumped: bytes = cloudpickle.dumps(source)  # type: ignore[no-untyped-call]
    # Spark hands options on as text.
    pickled = base64.b64encode(dumped).decode("ascii")
    try:
        return session.read.format(FORMAT).option(_OPTION, pickled).load()
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
        return FORMAT

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
