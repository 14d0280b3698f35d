"""One answer: the rows of both sides compared on Spark, as a question asks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from status_tool.clients.hdfs_native import RpcEndpoint
from status_tool.clients.webhdfs import HdfsEndpoint
from status_tool.errors import OutputError
from status_tool.runs.check import Check
from status_tool.runs.master_side import MasterSide
from status_tool.runs.question import Question
from status_tool.runs.write import Say
from status_tool.spark import source as spark_source
from status_tool.spark.counts import overview_of
from status_tool.spark.debug import write_debug
from status_tool.spark.deep import with_crc
from status_tool.spark.hdfs import mapped_paths
from status_tool.spark.held import HeldRows, frame_of
from status_tool.spark.lists import write_lists
from status_tool.spark.session import Spark, small_query
from status_tool.spark.verify import Frames, Verification
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.findings import NO_PROOFS, RowProofs
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.states import FileState
from status_tool.vocabulary.verdicts import FileStatus

Last = Callable[[Outcome], bool]
"""Returns whether an outcome ends the run: only then are its overview and the complete lists made."""


def always(outcome: Outcome) -> bool:
    """Return True: `Last` of a check with a single answer."""
    return True


@dataclass(frozen=True)
class Comparison:
    """Both sides' rows, and what is asked of them."""

    check: Check
    question: Question
    side: MasterSide
    slave_rows: DataFrame | pa.Table
    folder: Path
    """A temporary folder that outlives the comparison."""
    endpoint: HdfsEndpoint | RpcEndpoint | None = None
    """Where the slave's files are read that checksums cannot settle; None: such files stay incomparable."""
    rows: RowProofs = NO_PROOFS
    slave_file: StatusFile | None = None
    """File that the slave's rows are of; None: they are live."""

    def answer(self, spark: Spark, say: Say, last: Last) -> Outcome:
        """Compare; an outcome that is `last` has an overview. Raises what reading a side raises."""
        say("comparing every stream and file")
        try:
            outcome = self._outcome(spark, say, last)
        except Exception as error:
            # First: a file that was replaced explains the error better than Spark does.
            self._refuse_others()
            if (clear := spark_source.explain(error)) is not None:
                raise clear from None
            raise
        self._refuse_others()
        return self.question.answered(outcome)

    def _refuse_others(self) -> None:
        """Raise `StatusFileError` if what Spark has read by a file's path may be of another file."""
        for file in (self.side.file, self.side.older, self.slave_file):
            if file is not None:
                file.refuse_another()

    def _outcome(self, spark: Spark, say: Say, last: Last) -> Outcome:
        with ExitStack() as stack:

            @cache
            def tuned() -> SparkSession:
                session = spark()
                # Before rows are given to Spark: of a small check that takes half of the time if it is compiled.
                if self.side.is_small:
                    stack.enter_context(small_query(session))
                return session

            return self._compared(tuned, say, last)

    def _compared(self, spark: Spark, say: Say, last: Last) -> Outcome:
        check, question = self.check, self.question
        master_rows = self.side.rows(spark, self.folder)
        held = None
        if isinstance(master_rows, pa.Table) and isinstance(self.slave_rows, pa.Table):
            held = HeldRows.of(master_rows, self.slave_rows, question.left_out)

        def in_question() -> tuple[DataFrame, DataFrame]:
            theirs = mapped_paths(frame_of(spark(), self.slave_rows), check.scope.path_map.pairs)
            ours = _in_question(frame_of(spark(), master_rows), question)
            return ours, _in_question(theirs, question.of_slave)

        def verification(frames: Frames) -> Verification:
            context = (question.master, question.slave, question.scope, question.queues)
            return Verification(frames, *context, self.side.is_small, self.rows, held, question.left_out)

        with closing(verification(in_question)) as checked, ExitStack() as again:
            outcome, decided = checked.outcome(), checked
            if self.endpoint is not None and outcome.hdfs and outcome.hdfs.files[FileStatus.INCOMPARABLE]:
                say("reading the files that checksums cannot settle")
                read = with_crc(checked, self.endpoint, check.files.load, check.scope.path_map, self.folder)
                master = checked.master_df
                decided = again.enter_context(closing(verification(lambda: (master, read))))
                outcome = decided.outcome()
            if check.debug_dir is not None:
                outcome = dataclasses.replace(outcome, undumped=_dumped(decided, check.debug_dir))
            if last(outcome):
                overview = overview_of(decided, outcome, check.for_report)
                outcome = dataclasses.replace(outcome, is_last=True, overview=overview)
                write_lists(decided, check.lists)
        return outcome


def _dumped(decided: Verification, folder: Path) -> str:
    """Dump, and return the error that prevented it, if any: it must not cost a verdict that took hours."""
    try:
        write_debug(decided, folder)
    except OutputError as error:
        return str(error)
    return ""


def _in_question(rows: DataFrame, question: Question) -> DataFrame:
    """Return the rows with no files but those that are asked about."""
    return _without(_within(rows, question), question)


def _within(rows: DataFrame, question: Question) -> DataFrame:
    """Return the rows without files beside the paths of `-f`.

    A folder above them that could not be listed stays: nobody knows what it holds of theirs.
    """
    if not question.path_regexes:
        return rows
    return rows.where((F.col("kind") != "file") | _matches(question.path_regexes) | _unlisted(question.above_regexes))


def _unlisted(regexes: Sequence[str]) -> Column:
    """Return whether a row is of a folder that matches and could not be listed.

    A file that cannot be read keeps the length of its listing; the row of a folder has none.
    """
    is_unlisted = F.coalesce(F.col("state") == FileState.UNREADABLE, F.lit(False)) & F.col("length").isNull()
    return is_unlisted & _matches(regexes)


def _matches(regexes: Sequence[str]) -> Column:
    """Return whether a path matches any of the regular expressions, which refer to no groups.

    They are one for Spark: its planner calls itself for each term of an expression, and some hundred are too many. All
    begin with an anchor. Java looks for a match at each position of a path unless the whole begins with one.
    """
    return F.col("path").rlike(f"^(?:{'|'.join(regexes)})") if regexes else F.lit(False)


def _any_of(columns: Sequence[Column]) -> Column:
    """Return whether any is true. The expression is only as deep as it must be, for the same reason."""
    if len(columns) <= 1:
        return columns[0] if columns else F.lit(False)
    half = len(columns) // 2
    return _any_of(columns[:half]) | _any_of(columns[half:])


def _without(rows: DataFrame, question: Question) -> DataFrame:
    """Return the rows without the files of `--exclude`, for both sides: else they would be missing on one.

    As in a listing: what a root names is checked, although it lies inside what is left out. A folder above it that
    could not be listed stays, unless what is left out is what a glob has matched: nobody knows what it holds of the
    root's.
    """
    if not question.excluded_regexes:
        return rows
    # Group 1 is one of each of the regular expressions of what is left out below a root.
    asked = [
        (_matches([named.files]) | _unlisted([named.above]))
        & ~_any_of([F.col("path").rlike(regex) for regex in named.left_out])
        for named in question.named
    ]
    left_out = _matches(question.excluded_regexes) & ~_any_of(asked)
    # In SQL the opposite of null is null, and `where` drops it.
    return rows.where((F.col("kind") != "file") | F.col("path").isNull() | ~left_out)
