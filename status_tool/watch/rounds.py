"""Rounds of a check at an interval, whatever the clusters do meanwhile, and one line for each."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from status_tool.errors import StatusToolError, UsageError
from status_tool.printable import counted, duration, few, iso, safe
from status_tool.report.summary import VERDICT_WORDS
from status_tool.vocabulary.outcome import Outcome
from status_tool.watch.history import CheckRound, History

JITTER = 0.1
"""Pauses vary by this share, so that many watches of one cluster do not all begin at the same moment."""
NAMED_TABLES = 5
"""Number of tables that a line names."""


@dataclass(frozen=True)
class Rhythm:
    """Schedule of rounds: their interval and number."""

    every_s: float
    """From the start of one round to the start of the next, within `JITTER`; a longer round delays the next."""
    rounds: int | None = None
    """None: until a signal ends it."""

    def pause_s(self, took_s: float) -> float:
        """Return the pause in seconds after a round that took `took_s`."""
        return max(0.0, self.every_s * random.uniform(1 - JITTER, 1 + JITTER) - took_s)


def rounds(check: Callable[[], Outcome], rhythm: Rhythm, recover: Callable[[], None]) -> Iterator[CheckRound]:
    """Check again and again; an error ends a round, not the watch.

    `recover` is called after an error that is none of ours, before the next round. Raises `UsageError` in the first
    round: such an error stays.
    """
    number = 0
    while True:
        number += 1
        done = _one(check, recover, is_first=number == 1)
        yield done
        if number == rhythm.rounds:
            return
        time.sleep(rhythm.pause_s(done.took_s))


def _one(check: Callable[[], Outcome], recover: Callable[[], None], *, is_first: bool) -> CheckRound:
    started_ms, began = int(time.time() * 1000), time.monotonic()
    outcome, error = None, ""
    try:
        outcome = check()
    except UsageError as refused:
        if is_first:
            raise
        # FILE is read anew in each round: the options may not fit this one, and fit the next.
        error = str(refused)
    except StatusToolError as failed:
        error = str(failed)
    except Exception as unexpected:
        error = f"{type(unexpected).__name__}: {unexpected}"
        recover()
    # Messages of Java and Spark have many lines; a round is one. The history takes no name that is not UTF-8.
    return CheckRound(started_ms, time.monotonic() - began, outcome, safe(" ".join(error.split())))


def line_of(done: CheckRound, history: History) -> str:
    """Return a round in one line; `history` has it already."""
    took = f"took {done.took_s:.1f} s"
    if done.outcome is None:
        count = history.errors_in_a_row()
        again = f" ({count} rounds in a row)" if count > 1 else ""
        return safe(f"{to_second(done.started_ms)} no verdict{again}: {done.error}; {took}")
    # The cut shows how old FILE is: its writer, such as a publisher, may have ended long ago.
    parts = [f"cut {to_second(done.outcome.cut_ms)}"]
    parts += [_at_fault(*done.regions, "region")] * (done.outcome.hbase is not None)
    parts += [_at_fault(*done.files, "file")] * (done.outcome.hdfs is not None)
    if done.lag_ms:
        parts.append(f"worst lag {duration(done.lag_ms)}")
    if tables := history.tables_since_ms():
        parts.append(f"tables {_tables(tables)}")
    parts += done.outcome.limits
    since_ms = history.verdict_since_ms()
    since = f" since {to_second(since_ms)}" if since_ms is not None and since_ms != done.started_ms else ""
    verdict = VERDICT_WORDS[done.outcome.verdict].removeprefix("is ")
    return safe(f"{to_second(done.started_ms)} {verdict}{since}: {'; '.join([*parts, took])}")


def to_second(ms: int) -> str:
    """Format a time to the second, which suffices for a line of a log."""
    return iso(ms).split(".")[0].removesuffix("Z") + "Z"


def _at_fault(total: int, at_fault: int, noun: str) -> str:
    return f"{at_fault} of {counted(total, noun)} at fault" if at_fault else counted(total, noun)


def _tables(since: dict[str, int]) -> str:
    oldest = sorted(since, key=lambda name: (since[name], name))
    return few([f"{name} (since {to_second(since[name])})" for name in oldest], NAMED_TABLES)


def document_of(done: CheckRound, history: History, number: int) -> dict[str, Any]:
    """Return a round for `--json` and `/healthz`; `history` has it already."""
    outcome = done.outcome
    regions, regions_at_fault = done.regions
    files, files_at_fault = done.files
    return {
        "round": number,
        "started_ms": done.started_ms,
        "took_s": round(done.took_s, 3),
        "verdict": None if outcome is None else str(outcome.verdict),
        "exit_code": 2 if outcome is None else outcome.exit_code,
        "error": done.error or None,
        "cut_ms": None if outcome is None else outcome.cut_ms,
        "limits": [] if outcome is None else list(outcome.limits),
        "since_ms": history.verdict_since_ms(),
        "regions": regions,
        "regions_at_fault": regions_at_fault,
        "files": files,
        "files_at_fault": files_at_fault,
        "worst_lag_ms": done.lag_ms,
        "tables_at_fault": history.tables_since_ms(),
    }
