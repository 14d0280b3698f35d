"""The request of `run -i`, and what it has in common with other requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from status_tool.gather.snapshot import FileOptions
from status_tool.runs.compare_rows import RowsAsked
from status_tool.runs.pace import LastRun, RunKind, remember, rows_read
from status_tool.spark.lists import FullList
from status_tool.spark.session import spark_session
from status_tool.spark.settings import is_short
from status_tool.status_file.reader import StatusFile
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.selection import PathMap


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
    path_map: PathMap = field(default_factory=PathMap)
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
    """True if the rows themselves settle what streams leave in doubt."""
    sample_s: float = 0.0
    """Time for which FILE's samples of rows are compared at most; 0: not at all."""


def kind_of_check(check: Check, header: Header) -> RunKind:
    """Return the kind of run, by which the plan finds earlier ones; `header` is FILE's."""
    scope = check.scope
    return RunKind(
        form="run -i" if check.slave_status is None else "run -i --slave-status",
        cluster=header.cluster_id or header.hdfs_pool_id or header.cluster_key,
        hbase=scope.check_hbase and header.half != "hdfs",
        hdfs=scope.check_hdfs and header.half != "hbase",
        deep=check.deep,
        narrowed=bool(scope.tables or scope.namespaces or check.hdfs_paths),
    )


def remembering(check: Check, file: StatusFile) -> Callable[[], None]:
    """Return a function that records the time from now until its call. Records nothing if Spark runs already."""
    began, with_start = time.monotonic(), SparkSession.getActiveSession() is None

    def done() -> None:
        if with_start:
            took_ms = int((time.monotonic() - began) * 1000)
            last = LastRun(took_ms, rows_read(file.counts), int(time.time() * 1000))
            remember(kind_of_check(check, file.header), last)

    return done


def session_of(check: Check) -> AbstractContextManager[SparkSession]:
    """Return Spark's session for a check: the running one, else one that ends with the check."""
    small = is_short(check.status_file)
    return spark_session(check.spark_master, check.spark_conf, small=small, is_last=True)
