"""Cut a failing schedule down to the shortest that still fails."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.campaign.arena import arena
from tests.campaign.runner import run_schedule
from tests.campaign.schedule import Schedule, Step

Fails = Callable[[Schedule], bool]


def shrink(schedule: Schedule, tries: int = 2, fails: Fails | None = None) -> Schedule:
    """The shortest schedule found; each candidate runs up to `tries` times in an arena of its own."""
    return schedule.with_steps(_reduced(schedule, fails or (lambda one: _fails_for_real(one, tries))))


def _reduced(schedule: Schedule, fails: Fails) -> tuple[Step, ...]:
    """Delta debugging (Zeller): halves, quarters, … left out as long as what stays still fails."""
    steps, parts = schedule.steps, 2
    while len(steps) > 1:
        size = max(1, len(steps) // parts)
        for start in range(0, len(steps), size):
            fewer = steps[:start] + steps[start + size :]
            if fails(schedule.with_steps(fewer)):
                steps, parts = fewer, max(2, parts - 1)
                break
        else:
            if size == 1:
                break
            parts = min(len(steps), parts * 2)
    return steps


def _fails_for_real(schedule: Schedule, tries: int) -> bool:
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder, arena(schedule.arena) as built:
            if run_schedule(built, schedule, Path(folder)).wrong():
                return True
    return False
