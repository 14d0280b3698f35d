"""The request of `run -i`, and what it has in common with other requests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from status_tool.gather.snapshot import FileOptions
from status_tool.runs.compare_rows import RowsAsked
from status_tool.spark.lists import FullList
from status_tool.spark.session import spark_session
from status_tool.spark.settings import is_short
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.scope import Scope


class GivenOption(NamedTuple):
    """An option of the command line that asks something of FILE."""

    flag: str
    half: str | None
    """The half that it concerns."""
    needs_streams: bool
    """True if a FILE of the original tool cannot support it."""


@dataclass(frozen=True)
class Check:
    """The request of `run -i`."""

    status_file: Path
    scope: Scope
    slave_status: Path | None = None
    wait_s: float = 0.0
    shutdown_ms: int | None = None
    hdfs_paths: tuple[str, ...] = ()
    files: FileOptions = field(default_factory=FileOptions)
    deep: bool = False
    """True if files that are otherwise incomparable are read; `files.deep` reads every file."""
    debug_dir: Path | None = None
    given: tuple[GivenOption, ...] = ()
    """The options that FILE may be unable to support."""
    spark_master: str | None = None
    spark_conf: tuple[tuple[str, str], ...] = ()
    key: SignKey | None = None
    """Only status files signed with it are accepted."""
    lists: tuple[FullList, ...] = ()
    """Where the complete lists of differing, missing and unverifiable items are written."""
    for_report: bool = False
    """True if the overview includes the servers and the map of regions."""
    rows: RowsAsked | None = None
    """The comparison of rows that settles what streams leave in doubt; None: rows are not compared."""
    records_words: bool = True
    """True if the slave is to keep what `--since` accepts, for later checks."""
    sample_s: float = 0.0
    """Time for which FILE's samples of rows are compared at most; 0: not at all."""


def session_of(check: Check) -> AbstractContextManager[SparkSession]:
    """Return Spark's session for a check: the running one, else one that ends with the check."""
    small = is_short(check.status_file)
    return spark_session(check.spark_master, check.spark_conf, small=small, is_last=True)
