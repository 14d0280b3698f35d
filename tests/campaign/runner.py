"""Run one schedule in an arena."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from status_tool.sources.state_table import now_ms
from tests.campaign.arena import Arena
from tests.campaign.judge import COMPLETE, Judge, Look, ToolFailed
from tests.campaign.schedule import LOOK, TABLES, WITNESSED, Schedule
from tests.campaign.steps import perform
from tests.campaign.truth import Cells, Writers, stored
from tests.pair import tool_here

_FOLDERS = re.compile(r"/[^ \",]*status-tool-[^ \",]*")
"""Folders of this machine in messages: a record is for everybody."""
Say = Callable[[str], None]
WARM_S = 0.7
"""Writing before the first step."""
DRAIN_S = 60.0
STILL_S = 6.0
"""If nothing more arrives for so long and the queues are empty, nothing will."""
VERIFIED = 10
"""Of so many schedules one is verified by VerifyReplication."""
BASELINE_MARGIN_MS = 12_000
"""More than any clock of an arena is ahead."""


@dataclass
class Record:
    """A schedule, how its steps went, and what was seen."""

    schedule: Schedule
    looks: list[Look] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    lost: int | None = None
    """Cells of the master that were not on the slave at the end; None: the schedule was not brought to its end."""
    since: bool = False
    """Whether earlier schedules of the arena were accepted by `--since`."""
    seconds: float = 0.0
    broken: str | None = None
    """Why the arena could not be healed."""
    failed: bool = False
    """Whether the tool ended with none of its exit codes."""

    def wrong(self) -> bool:
        """Whether the tool broke its promise."""
        return self.failed or any(look.wrong() for look in self.looks)

    def to_json(self) -> str:
        """One line."""
        fields: dict[str, Any] = {
            "schedule": json.loads(self.schedule.to_json()),
            "looks": [look.as_dict() for look in self.looks],
            "steps": self.steps,
            "lost": self.lost,
            "since": self.since,
            "seconds": round(self.seconds, 1),
            "broken": self.broken,
            "failed": self.failed,
        }
        return _FOLDERS.sub("…", json.dumps(fields))


def run_schedule(arena: Arena, schedule: Schedule, folder: Path, say: Say = lambda text: None) -> Record:
    """Run a schedule; never raises for what its faults do to the clusters, but `Record.broken` says so."""
    began = time.monotonic()
    record = Record(schedule)
    try:
        _run(arena, schedule, folder, record, say)
    except Exception as error:  # the arena is lost, what was seen before is not
        record.broken = f"{type(error).__name__}: {str(error)[:300]}"
        record.failed = isinstance(error, ToolFailed)
    arena.used += 1
    record.seconds = time.monotonic() - began
    return record


def _run(arena: Arena, schedule: Schedule, folder: Path, record: Record, say: Say) -> None:
    # Witnesses were sent what a crashed server wrote.
    if arena.crashed and not arena.complete and arena.kind != WITNESSED:
        arena.since_ms = now_ms()
        time.sleep(BASELINE_MARGIN_MS / 1000 if arena.kind == "skewed" else 0)
    record.since, arena.complete = arena.since_ms is not None, False
    arena.fragile.clear()
    arena.wait_covered()
    tables = _create_tables(arena, schedule)
    judge = Judge(arena, tables, folder, arena.since_ms, is_verified=schedule.seed % VERIFIED == 0)
    writers = Writers(arena)
    writers.start(tables, schedule.seed, schedule.rates)
    time.sleep(WARM_S)
    try:
        for step in schedule.steps:
            if step.action == LOOK:
                look = judge.look(writers.acknowledged() | arena.fragile, step.pick)
                record.looks.append(look)
                record.steps.append(f"look: {look.verdict}, missing {look.missing}")
            else:
                record.steps.append(perform(arena, tables, step))
            say(record.steps[-1])
        arena.heal(tables)
        time.sleep(0.5)
    finally:
        writers.stop()
    acknowledged = writers.acknowledged() | arena.fragile
    lost = _drain(arena, tables, acknowledged)
    record.lost = len(lost)
    look = judge.last_look(lost, len(acknowledged))
    record.looks.append(look)
    arena.complete = look.verdict == COMPLETE
    record.steps.append(
        f"end: {look.verdict}, lost {len(lost)}, {look.told[:200] if look.verdict != 'complete' else ''}"
    )
    say(record.steps[-1])
    # The tables stay: entries of a dropped table that are shipped once more would block their queue for good.


def _create_tables(arena: Arena, schedule: Schedule) -> list[str]:
    tables = [f"{letter}_{schedule.seed}_{arena.used}" for letter in TABLES]
    for table, families in zip(tables, TABLES.values(), strict=True):
        splits = [key.encode() for key in dict.fromkeys(schedule.splits)]
        arena.slave.admin.create_table(table, families, keep_all=True)
        arena.master.admin.create_table(table, families, splits=splits, keep_all=True)
    return tables


def _drain(arena: Arena, tables: list[str], acknowledged: Cells) -> Cells:
    """Wait until nothing more arrives; what the master holds, or shows, and the slave does not."""
    held = stored(arena.master, tables)
    acknowledged -= arena.fragile - held
    shown = stored(arena.master, tables, visible=True)
    still = time.monotonic() + STILL_S
    end = time.monotonic() + DRAIN_S
    before = -1
    while True:
        lost = (held | acknowledged) - stored(arena.slave, tables)
        lost |= shown - stored(arena.slave, tables, visible=True)
        if not lost or time.monotonic() > end:
            return lost
        if len(lost) != before:
            before, still = len(lost), time.monotonic() + STILL_S
        elif time.monotonic() > still and tool_here("queues", conf=arena.master).exit_code == 0:
            return lost
        time.sleep(1)
