"""Schedules of the campaign on a pair that stands: what they leave is in tables of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.arena import Arena
from tests.campaign.runner import run_schedule
from tests.campaign.schedule import LOOK, Schedule, Step
from tests.lab.lab import Lab
from tests.pair import Pair

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SCHEDULES = {
    # Found by the campaign: segments outlive the cells that they record.
    "recreated": (Step("flush", 0, 3_000), Step("recreate_slave_table", 0), Step(LOOK, 1)),
}
"""No server is ended, no region moves, and no process is paused."""


@pytest.fixture(scope="module")
def plain(upgraded: tuple[Lab, Pair]) -> Arena:
    """An arena for what is in `SCHEDULES`."""
    return Arena("plain", upgraded[1])


@pytest.mark.parametrize("name", SCHEDULES)
def test_never_a_false_complete(plain: Arena, tmp_path: Path, name: str) -> None:
    """Fixed schedules against the truth, cell by cell."""
    schedule = Schedule(len(name), "plain", ("500",), (60,), SCHEDULES[name])
    record = run_schedule(plain, schedule, tmp_path)
    assert record.broken is None, record.to_json()
    assert not record.wrong(), record.to_json()
    end = record.looks[-1]
    # Whether a second birth within 30 s of the first arrival came before it, clocks may not tell.
    is_doubted = name == "recreated" and "emptied" in end.told
    assert is_doubted or (record.lost == 0) == (end.verdict == "complete"), record.to_json()
