"""`run -i FILE`: FILE against the live slave, or with `--slave-status FILE2` both sides from files."""

from __future__ import annotations

import time
from contextlib import nullcontext

from status_tool.clients.config import Settings
from status_tool.errors import ConnectionFailed
from status_tool.report.progress import Progress
from status_tool.runs.answer import Comparison, always
from status_tool.runs.check import Check, spark_of
from status_tool.runs.live_rounds import LiveRounds, Look, Master, question_in
from status_tool.runs.master_side import MasterSide, facts_of
from status_tool.runs.refusals import known_header, side_in_scope
from status_tool.runs.slave_side import scratch_of
from status_tool.runs.write import Say
from status_tool.spark.held import small_file
from status_tool.spark.session import Spark
from status_tool.spark.source import read_status
from status_tool.status_file.reader import open_status
from status_tool.temporary import temporary_folder
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.outcome import Outcome


class FixedMaster(Master):
    """FILE, and nothing newer."""

    is_read_again = False

    def __init__(self, file: MasterSide, say: Say) -> None:
        super().__init__(file)
        self._say = say

    def look(self) -> Look:
        """Return FILE."""
        return Look(self.file)

    def is_decided(self, outcome: Outcome) -> bool:
        """Return whether only a new FILE can say more: waiting adds nothing to this one."""
        return outcome.needs_new_file

    def round_done(self, outcome: Outcome, look: Look, left_s: float) -> None:
        """Announce the next round."""
        if not outcome.is_last:
            self._say(f"not complete yet, checking again ({left_s:.0f} s left)")

    def lost(self, error: ConnectionFailed) -> None:
        """End the check: the slave does not answer."""
        raise error


def check_live(settings: Settings, check: Check, say: Say, progress: Progress | None = None) -> Outcome:
    """Verify FILE against this live cluster, again and again until complete or `wait_s` is over."""
    with (
        open_status(check.status_file, require_side=MASTER, key=check.key, witnessed=True) as file,
        scratch_of(check) as scratch,
    ):
        side = side_in_scope(file, check)
        deadline = time.monotonic() + check.wait_s
        master = FixedMaster(side, say)
        return LiveRounds(settings, check, master, deadline, say, scratch, progress or Progress()).run()


def check_offline(check: Check, say: Say, spark: Spark | None = None) -> Outcome:
    """Verify FILE against FILE2; `spark` is the session of several checks. Raises what opening them raises."""
    assert check.slave_status is not None
    with open_status(check.status_file, require_side=MASTER, key=check.key) as file:
        side = MasterSide(file, known_header(file, check))
        with (
            open_status(check.slave_status, require_side=SLAVE, key=check.key) as slave,
            temporary_folder() as folder,
        ):
            question = question_in(side, facts_of(slave, slave.header), check)
            with nullcontext(spark) if spark else spark_of(check, side) as spark:
                held = small_file(slave)
                rows = read_status(spark(), slave, folder) if held is None else held
                comparison = Comparison(check, question, side, rows, folder, slave_file=slave)
                return comparison.answer(spark, say, always)
