"""`lost`: what is told of a table that the slave lacks something of."""

from __future__ import annotations

import pytest

from status_tool.runs.losses import _lost_table
from status_tool.vocabulary.outcome import Group, Problem


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
