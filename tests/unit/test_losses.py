"""`lost`: what is told of a table that the slave lacks something of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from status_tool.cli.lost import lost_document, lost_lines
from status_tool.runs.losses import LostData, _lost_table
from status_tool.vocabulary.outcome import Group, HBaseOutcome, NotReplicated, Outcome, Problem
from status_tool.vocabulary.verdicts import Evidence, Status, Verdict


@pytest.mark.parametrize(
    ("spans", "told"),
    [
        ([(10, 20), (15, 30)], (10, 30)),
        # The table lacks something of which nobody knows when it was written.
        ([(10, 20), (None, None)], (None, None)),
        ([(10, 20), (None, 30)], (None, 30)),
        ([], (None, None)),
    ],
)
def test_a_range_of_times_that_is_told_holds_all_that_is_lost(
    spans: list[tuple[int | None, int | None]], told: tuple[int | None, int | None]
) -> None:
    """Whoever repairs by it would leave out what is older or younger."""
    example = Problem("hbase", "gap", "is lost")
    groups = [Group("gap", "gap", "t", 1, example, from_ms=first, to_ms=last) for first, last in spans]
    found = _lost_table(groups, {}, 3)
    assert (found.from_ms, found.to_ms) == told


def test_regions_whose_rows_differ_are_counted() -> None:
    """By rows a loss need not show in any stream."""
    found = _lost_table([], {Status.COMPLETE: 2, Status.DIFFERS: 1, Status.GAP: 1}, None)
    assert (found.regions, found.of_regions) == (2, 4)


def test_nothing_is_lost_of_what_was_asked() -> None:
    """Tables that were not chosen, and those that are not replicated, may be lost."""
    hbase = HBaseOutcome(Verdict.COMPLETE, Evidence.EXACT, dict.fromkeys(Status, 0))
    outcome = Outcome(hbase, None, (), 1, limits=("only table t (chosen)", "HDFS not checked"))
    found = LostData(outcome, {}, {})
    first, limits = lost_lines(found)
    assert first.startswith("Nothing is lost: ")
    assert limits == "Limits of this answer: only table t (chosen); HDFS not checked."
    by_word = replace(hbase, evidence_by={Evidence.ACCEPTED: 2}, accepted_tables=("t",))
    told = replace(found, outcome=replace(outcome, hbase=by_word))
    assert "Your word (--since) vouches for a part of it, and nothing has compared that: 2 regions of 1 table: t" in [
        *lost_lines(told)
    ]
    assert lost_document(told)["accepted_tables"] == ["t"]
    (_, _, way_out, _) = lost_lines(
        replace(
            found,
            outcome=replace(outcome, hbase=replace(hbase, verdict=Verdict.UNVERIFIABLE)),
            unproven={"": "a server was killed"},
        )
    )
    assert "On the slave, `status-tool rows --table TABLE --master-conf DIR`" in way_out
    narrow = replace(outcome, hbase=replace(hbase, not_replicated=NotReplicated(("audit",))))
    assert "(audit)" in [*lost_lines(replace(found, outcome=narrow))][-1]
    assert "(audit)" in lost_document(replace(found, outcome=narrow))["limits"][-1]
