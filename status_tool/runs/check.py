"""The request of `run -i`, and what it has in common with other requests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from status_tool.gather.snapshot import FileOptions
from status_tool.runs.compare_rows import RowsAsked
from status_tool.runs.master_side import MasterSide
from status_tool.spark.lists import FullList
from status_tool.spark.session import Spark, spark_when_needed
from status_tool.spark.settings import is_asked_for, is_short
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


def spark_of(check: Check, side: MasterSide, *, is_read_again: bool = False) -> AbstractContextManager[Spark]:
    """Return Spark's session for a check: the running one, else one that ends with the check."""
    small, at_once = is_short(check.status_file), needs_spark(check, side, is_read_again=is_read_again)
    return spark_when_needed(check.spark_master, check.spark_conf, small=small, at_once=at_once)


def needs_spark(check: Check, side: MasterSide, *, is_read_again: bool = False) -> bool:
    """Return True if a check is to start Spark at once; what needs it later starts it then.

    This process judges the rows of small files. Spark judges all others, makes dumps, lists and pages, and reads FILE's
    streams beside those of a master that `is_read_again`.
    """
    is_shown = check.debug_dir is not None or bool(check.lists) or check.for_report
    is_told = is_asked_for(check.spark_master, check.spark_conf)
    # A live slave has about as many rows as its master.
    is_live = check.slave_status is None
    are_many = not side.is_small or (is_live and sum(side.file.counts.values()) > NEAR_ROWS)
    return is_shown or is_told or is_read_again or are_many


NEAR_ROWS = 5_000
"""Up to so many rows of the slave are read by this process alone."""
