"""The rounds of a live check: both sides are read and compared until complete, stuck, or out of time."""

from __future__ import annotations

import dataclasses
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from status_tool.clients.config import Settings
from status_tool.clients.delegation_tokens import no_token_left
from status_tool.clients.hdfs_native import no_process_left
from status_tool.digests.counted import rows_shown
from status_tool.errors import ConnectionFailed
from status_tool.gather.snapshot import Snapshot, snapshot
from status_tool.report.progress import Progress
from status_tool.rules.kept_proofs import kept_of, lasting, told
from status_tool.runs.answer import Comparison, Last, always
from status_tool.runs.check import Check, spark_of
from status_tool.runs.compare_rows import RowComparison
from status_tool.runs.master_side import MasterSide, facts_of
from status_tool.runs.question import Question, SideFacts, question_of, refuse_narrowed, refuse_pruned
from status_tool.runs.sampling import Repeated, disprove, repeating
from status_tool.runs.slave_side import Scratch, read_here, slave_now, slave_request, slave_rows
from status_tool.runs.write import Say
from status_tool.sources.hdfs_files import HdfsSource
from status_tool.sources.state_table import StateTable, now_ms
from status_tool.spark.session import Spark
from status_tool.vocabulary.findings import NO_PROOFS, RowProofs
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.verdicts import Status, Verdict

Repeating = Callable[[], Repeated]
"""Waits for the samples that are being digested."""
RECHECK_S = 2.0
LACKING = (Status.GAP, Status.MISSING, Status.BEHIND)


@dataclass(frozen=True)
class Look:
    """The master's side in one round."""

    side: MasterSide
    queues: tuple[Mapping[str, Any], ...] = ()
    """The `detail`s of its queues, where they were read again."""
    left_open: bool = False
    """True if the next round may have newer data of the master."""


@dataclass(frozen=True)
class Both:
    """Both sides in one round, and what is in scope."""

    look: Look
    slave: Snapshot
    question: Question

    @property
    def is_stuck(self) -> bool:
        """Return True if another round would read the same."""
        # No server has a region in transition yet, so nobody can vouch for it before the next round.
        is_moving = not self.slave.in_transition.isdisjoint(self.question.shipped)
        return not (self.slave.unsettled or self.look.left_open or is_moving)


Comparing = Callable[[Both], RowComparison]
"""Returns the comparison of rows for the last round."""


class Master(ABC):
    """The master's side of a live check: fixed, as in FILE, or read again in each round."""

    is_read_again = True
    """False if each round compares the same FILE."""

    def __init__(self, file: MasterSide) -> None:
        self.file = file

    @abstractmethod
    def look(self) -> Look:
        """Return what is known of the master now."""

    @abstractmethod
    def is_decided(self, outcome: Outcome) -> bool:
        """Return whether no further round can change the outcome, although time is left."""

    @abstractmethod
    def round_done(self, outcome: Outcome, look: Look, left_s: float) -> None:
        """Report the end of a round; only the last one has an overview."""

    @abstractmethod
    def lost(self, error: ConnectionFailed) -> None:
        """Handle a side that did not answer after the first round: raise, or report it, and the next round retries."""


@dataclass
class LiveRounds:
    """A live check of `check` against `master`, until `deadline` (monotonic)."""

    settings: Settings
    """The slave's."""
    check: Check
    master: Master
    deadline: float
    say: Say
    scratch: Scratch
    progress: Progress = field(default_factory=Progress)
    told: list[str] = field(default_factory=list)
    """Records that were made on the slave, and those that were taken back."""

    def run(self) -> Outcome:
        """Check until complete, until no change is possible, or until the deadline; return the last outcome."""
        with (
            ThreadPoolExecutor(1) as pool,
            no_process_left(),
            no_token_left(),
            self._samples() as samples,
        ):
            # The JVM takes seconds to start: meanwhile the trackers flush, and the slave's rows, if few, are read.
            first = pool.submit(self._read)
            session = spark_of(self.check, self.master.file, is_read_again=self.master.is_read_again)
            with self._rows(pool, first) as rows, session as spark:
                outcome = self._until_decided(spark, first.result(), samples, rows)
                is_asked = any(one.flag == "--sample" for one in self.check.given) and self.check.sample_s > 0
                sampled = samples().notice(_lacking(outcome), is_asked=is_asked)
                return _with_notices(outcome, *self.told, sampled)

    def _until_decided(self, spark: Spark, sides: Both, samples: Repeating, compared: Comparing) -> Outcome:
        # With proofs by rows the comparison is repeated: files get what the rows have settled.
        by_rows = self.check.rows is not None or bool(samples().unequal)
        by_streams = dataclasses.replace(self.check, debug_dir=None, lists=()) if by_rows else self.check
        while True:
            outcome = self._answer(spark, sides, by_streams, partial(self._is_last, sides))
            if self.check.records_words:
                # The next round reads the record back and accepts nothing anew, but for what cannot be kept.
                recorded = record_words(self.settings, outcome, self.say)
                self.told += [line for line in recorded if line not in self.told]
            self.master.round_done(outcome, sides.look, self.deadline - time.monotonic())
            if outcome.is_last:
                break
            sides = self._read_again()
        if not by_rows:
            return outcome
        return self._answer(spark, sides, self.check, always, self._proofs(sides, outcome, samples(), compared))

    def _is_last(self, sides: Both, outcome: Outcome) -> bool:
        if outcome.verdict is Verdict.COMPLETE or self._is_over() or self.master.is_decided(outcome):
            return True
        # Waiting settles a doubt only where a server has still to flush, or to record what it has opened, or where the
        # master is read again.
        return outcome.verdict is Verdict.UNVERIFIABLE and sides.is_stuck and not outcome.is_settling

    def _is_over(self) -> bool:
        return time.monotonic() + RECHECK_S > self.deadline

    def _read(self) -> Both:
        """Read the master, then the slave.

        The other way round, everything shipped between the two reads would look behind, and what happened to the
        slave's table meanwhile (a truncate, say) would go unnoticed.
        """
        look = self.master.look()
        slave = snapshot(self.settings, slave_request(self.master.file, self.check), self.say)
        # Two sides that cannot be compared are refused before files are read, which may take hours.
        question = question_in(look.side, SideFacts(slave.header, slave.rows), self.check)
        # Once: a later round would take back what this run has recorded since (`record_words`).
        if self.check.scope.forgotten and not self.told:
            # Not before it is known that this is the slave that is meant, and FILE its master's.
            master_id = look.side.header.cluster_id
            self.told += forget_tables(self.settings, self.check.scope.forgotten, master_id, self.say)
            # What is forgotten must not vouch in this run.
            return self._read()
        # A comparison of rows is answered twice: of the slave at one moment, or what happens in between goes unnoticed.
        read_here(slave, self.say, self.scratch, reads_again=self.check.rows is not None)
        return Both(look, slave, question)

    def _read_again(self) -> Both:
        """Read both sides; without newer data while one of them does not answer."""
        while True:
            time.sleep(RECHECK_S)
            try:
                return self._read()
            except ConnectionFailed as error:
                self.master.lost(error)
                if self._is_over():
                    raise

    def _answer(self, spark: Spark, sides: Both, check: Check, last: Last, rows: RowProofs = NO_PROOFS) -> Outcome:
        files = next((source for source in sides.slave.sources if isinstance(source, HdfsSource)), None)
        comparison = Comparison(
            check,
            sides.question,
            sides.look.side,
            slave_rows(spark, sides.slave, self.scratch),
            self.scratch.folder,
            endpoint=files.endpoint if check.deep and files is not None else None,
            rows=rows,
        )
        return comparison.answer(spark, self.say, last)

    def _samples(self) -> AbstractContextManager[Repeating]:
        """Return FILE's samples, which the slave digests meanwhile."""
        check, side = self.check, self.master.file
        wanted = check.sample_s and check.scope.check_hbase and side.older is None
        rows = list(side.file.rows_of("sample")) if wanted else []
        return repeating(self.settings, rows, check.sample_s) if rows else nullcontext(Repeated)

    @contextmanager
    def _rows(self, pool: ThreadPoolExecutor, first: Future[Both]) -> Iterator[Comparing]:
        """Let rows be compared. All tables are at once, if there is no second round: it would read the slave anew."""
        stop = threading.Event()
        wanted = self.check.rows is not None and self.check.rows.every and self._is_over()
        # The pool has one thread, so `first` is done when this begins.
        begun = pool.submit(lambda: self._compared(first.result(), stop)) if wanted else None
        try:
            yield lambda sides: self._comparison(sides, stop) if begun is None else begun.result()
        finally:
            # Also after an error or Ctrl-C: region servers must not go on for nobody.
            stop.set()

    def _compared(self, sides: Both, stop: threading.Event) -> RowComparison:
        comparison = self._comparison(sides, stop)
        # What Spark has still to read of the slave may be newer than the rows that are compared now, and a proof that
        # is kept ends by what the slave saw after it.
        if self.scratch.is_near:
            with rows_shown(self.progress) as counted:
                comparison.begin(counted)
        return comparison

    def _comparison(self, sides: Both, stop: threading.Event) -> RowComparison:
        assert self.check.rows is not None
        known = sides.look.side.file.rows_of("server", "table", "digest")
        wait_s = self.check.wait_s
        return RowComparison(self.check.rows, self.settings, sides.question, known, wait_s, self.say, stop)

    def _proofs(self, sides: Both, outcome: Outcome, repeated: Repeated, compared: Comparing) -> RowProofs:
        """Compare the rows that `--rows` asks for, and, of tables that it does not compare, samples that differ."""
        if self.check.rows is None:
            return self._disproved(sides, outcome, repeated)
        comparison = compared(sides)
        with rows_shown(self.progress) as counted:
            proofs = comparison.proofs(outcome, counted)
        left = [part for part in repeated.unequal if part.table not in comparison.tables]
        return proofs.and_also(self._disproved(sides, outcome, dataclasses.replace(repeated, unequal=tuple(left))))

    def _disproved(self, sides: Both, outcome: Outcome, repeated: Repeated) -> RowProofs:
        side = sides.look.side
        # With --follow, what is compared is newer than FILE's samples.
        if not repeated.unequal or side.older is not None:
            return NO_PROOFS
        return disprove(
            self.settings,
            sides.question,
            outcome,
            repeated,
            side.file,
            sides.slave.rows,
            lambda: slave_now(self.settings, slave_request(self.master.file, self.check), self.say),
        )


def question_in(side: MasterSide, slave: SideFacts, check: Check) -> Question:
    """Return the question of a check. Raises what `question_of` raises."""
    scope = dataclasses.replace(check.scope, offline=check.slave_status is not None)
    if side.older is None:
        return question_of(side.facts(), slave, scope, check.hdfs_paths, check.files.exclude)
    # FILE's own streams stay in scope, and may need segments that newer ones do not.
    refuse_pruned(side.older.header, slave.header, scope)
    question = question_of(side.facts(), slave, scope, check.hdfs_paths, check.files.exclude)
    refuse_narrowed(facts_of(side.older, side.older.header), question)
    return question


def _lacking(outcome: Outcome) -> frozenset[str]:
    """Return the tables with streams that have not arrived in whole."""
    groups = (group for group in outcome.overview.groups if group.kind in LACKING)
    return frozenset(group.table for group in groups if group.table is not None)


def _with_notices(outcome: Outcome, *notices: str | None) -> Outcome:
    return dataclasses.replace(outcome, notices=(*outcome.notices, *filter(None, notices)))


def forget_tables(settings: Settings, tables: Iterable[str], master_id: str, say: Say) -> list[str]:
    """Take back (`--forget`) what the slave keeps of tables against a master; return what it was, in words."""
    names = sorted(tables)
    if not names:
        return []
    state = StateTable(settings.thrift(), settings.state_table)
    state.require()
    stored = state.kept()
    kept = {table: one for table in names if (one := kept_of(stored.get(table, {}).get(master_id))) is not None}
    state.record_kept(master_id, dict.fromkeys(kept))
    unknown = [f"--forget {table}: nothing was recorded of its past" for table in names if table not in kept]
    return _said([*(f"forgotten: {line}" for line in told(kept, undo="")), *unknown], say)


def record_words(settings: Settings, outcome: Outcome, say: Say) -> list[str]:
    """Record what the outcome accepts on the operator's word (`--since`); return what was recorded, in words."""
    if not outcome.accepts:
        return []
    accepted = {table: one for table, detail in outcome.accepts.items() if (one := kept_of(detail)) is not None}
    kept, notices = lasting(accepted, now_ms())
    words = {table: one.to_json() for table, one in kept.items()}
    StateTable(settings.thrift(), settings.state_table).record_kept(outcome.master_cluster_id, words)
    return _said([*(f"recorded: {line}" for line in told(kept)), *notices], say)


def _said(lines: list[str], say: Say) -> list[str]:
    for line in lines:
        say(line)
    return lines
