"""One answer: the rows of both sides compared on Spark, as a question asks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
from status_tool.spark.deep import only_content_settles, with_crc
from status_tool.spark.held import HeldRows, frame_of
from status_tool.spark.judge import rows_in_question
from status_tool.spark.lists import write_lists
from status_tool.spark.session import Spark, small_query
from status_tool.spark.verify import Frames, Verification
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.findings import NO_PROOFS, RowProofs
from status_tool.vocabulary.outcome import Outcome

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
            files = (question.files, question.files_of_slave) if question.scope.check_hdfs else None
            held = HeldRows.of(master_rows, self.slave_rows, question.left_out, files)

        def in_question() -> tuple[DataFrame, DataFrame]:
            ours, theirs = frame_of(spark(), master_rows), frame_of(spark(), self.slave_rows)
            return rows_in_question(ours, question.files), rows_in_question(theirs, question.files_of_slave)

        def verification(frames: Frames, held: HeldRows | None = held) -> Verification:
            context = (question.master, question.slave, question.scope, question.queues)
            return Verification(frames, *context, self.side.is_small, self.rows, held, question.left_out)

        # `checked` stays open: `decided` takes its kept rows, or Spark reads a live slave again, at a later moment.
        with closing(verification(in_question)) as checked, ExitStack() as again:
            outcome, decided = checked.outcome(), checked
            endpoint = self.endpoint
            if endpoint is not None and (paths := only_content_settles(checked, outcome)) is not None:
                say("reading the files that checksums cannot settle")
                read = with_crc(checked, paths, endpoint, check.files.load, check.scope.path_map, self.folder)
                master = checked.master_df
                # What was read of files is Spark's.
                regions = None if held is None else dataclasses.replace(held, files=None)
                decided = again.enter_context(closing(verification(lambda: (master, read), regions)))
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
