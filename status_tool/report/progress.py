"""Live progress of a run on stderr; silent where stderr is not a terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichBars
from rich.progress import Task as RichTask
from rich.text import Text

from status_tool.printable import safe


class Progress:
    """Progress that shows nothing, and the interface of those that do.

    Use it as a context manager around the run. `phase` may be nested; `advance` counts in the
    innermost one and may be called from any thread.
    """

    def __init__(self) -> None:
        self._step = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self._step.close()

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Show a step of the run while the block runs; `total` where its size is known."""
        yield

    def step(self, name: str, total: int | None = None) -> None:
        """End the step before and begin this one: phases for code that only announces its next step."""
        self._step.close()
        self._step.enter_context(self.phase(name, total))

    def advance(self, n: int = 1) -> None:
        """Report that `n` more parts of the current phase are done."""

    def note(self, text: str) -> None:
        """Show a line that stays, above the live display."""


class LineProgress(Progress):
    """One plain line at the start of each phase: for terminals that cannot redraw."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        self.note(f"{name} ({total})" if total is not None else name)
        yield

    def note(self, text: str) -> None:
        # A closed stderr must not end the run.
        with contextlib.suppress(OSError, ValueError):
            print(safe(text), file=self._stream, flush=True)


class LiveProgress(Progress):
    """Bars that redraw themselves, with counts, and the time left where it can be known."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._bars = RichBars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            _CountColumn("{task.completed}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(file=stream, stderr=True),
            transient=True,
        )
        self._open: list[TaskID] = []

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._bars.stop()

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        task = self._bars.add_task(escape(safe(name)), total=total)
        self._open.append(task)
        try:
            yield
            self._finish(task)
        finally:
            self._open.remove(task)

    def _finish(self, task: TaskID) -> None:
        done = next(item for item in self._bars.tasks if item.id == task)
        total = done.total if done.total is not None else max(done.completed, 1)
        self._bars.update(task, total=total, completed=total)

    def advance(self, n: int = 1) -> None:
        if self._open:
            self._bars.advance(self._open[-1], n)

    def note(self, text: str) -> None:
        self._bars.console.print(escape(safe(text)), highlight=False)


class _CountColumn(TextColumn):
    """`17 of 200`, or `17` where the total is unknown; empty for a phase that counts nothing."""

    def render(self, task: RichTask) -> Text:
        if task.total is None:
            return Text(f"{int(task.completed)}" if task.completed else "")
        return Text(f"{int(task.completed)} of {int(task.total)}")


def make_progress(stream: TextIO | None = None, enabled: bool = True) -> Progress:
    """Return live progress if `stream` (default: stderr) is a terminal, else one that shows nothing."""
    stream = sys.stderr if stream is None else stream
    if not enabled or stream is None or not stream.isatty():
        return Progress()
    return LineProgress(stream) if os.environ.get("TERM", "dumb") in ("dumb", "") else LiveProgress(stream)
