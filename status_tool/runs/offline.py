"""`run -i FILE --slave-status FILE2`: the same check with both sides from files."""

from __future__ import annotations

from status_tool.runs.answer import Comparison, always
from status_tool.runs.check import Check, session_of
from status_tool.runs.live_rounds import question_in
from status_tool.runs.master_side import MasterSide, facts_of
from status_tool.runs.refusals import header_in_scope
from status_tool.runs.write import Say
from status_tool.spark.cluster import read_status
from status_tool.spark.held import small_file
from status_tool.status_file.reader import open_status
from status_tool.temporary import temporary_folder
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.outcome import Outcome


def check_offline(check: Check, say: Say) -> Outcome:
    """Verify FILE against FILE2. Raises what opening them raises."""
    assert check.slave_status is not None
    with open_status(check.status_file, require_side=MASTER, key=check.key) as file:
        side = MasterSide(file, header_in_scope(file.header, check))
        with (
            open_status(check.slave_status, require_side=SLAVE, key=check.key) as slave,
            temporary_folder() as folder,
        ):
            question = question_in(side, facts_of(slave, slave.header), check)
            with session_of(check) as spark:
                held = small_file(slave)
                rows = read_status(spark, slave, folder) if held is None else held
                comparison = Comparison(check, question, side, rows, folder, slave_file=slave)
                return comparison.answer(spark, say, always)
