"""Progress of Spark, by its own status tracker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Protocol

from pyspark import SparkContext

POLL_EVERY_S = 0.5
TASKS_NAME = "Spark's tasks"


class Reached(Protocol):
    """Takes what is done, and of how much."""

    def reach(self, done: int, total: int) -> None:
        """Report `done` of the `total` known by now."""


Opens = Callable[[str], AbstractContextManager[Reached]]
"""Shows a phase of the run under a name."""


@contextmanager
def stages_shown(phase: Opens, every_s: float = POLL_EVERY_S) -> Iterator[None]:
    """Meanwhile the tasks of Spark's running stages are counted, in a phase of their own while there are any.

    By a thread: what cannot be asked is not shown, and is never an error of the run.
    """
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(phase, every_s, over), name="spark-stages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Not for ever: the thread may hang in a call to the JVM, and the run does not depend on it.
        thread.join(every_s)


def _watch(phase: Opens, every_s: float, over: threading.Event) -> None:
    with ExitStack() as shown:
        bar: Reached | None = None
        while not over.wait(every_s):
            done, total = tasks()
            if total and bar is None:
                bar = shown.enter_context(phase(TASKS_NAME))
            elif not total and bar is not None:
                shown.close()
                bar = None
            if bar is not None:
                bar.reach(done, total)


def tasks() -> tuple[int, int]:
    """Return how many tasks of the running stages are done, and how many there are; zeros while nothing runs."""
    done = total = 0
    with suppress(Exception):
        context = SparkContext._active_spark_context
        if context is not None:
            tracker = context.statusTracker()
            for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()):
                if stage is not None:  # Spark may have dropped it since
                    done, total = done + stage.numCompletedTasks, total + stage.numTasks
    return done, total
