"""Live progress of a run on stderr, and in a log file; without a terminal a line now and then."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichBars
from rich.progress import Task as RichTask
from rich.text import Text

from status_tool.errors import OutputError
from status_tool.printable import duration, iso, safe

EVERY_S = 30.0
"""Pause between two lines that say how far a run has come where nothing can redraw itself."""


class Counted:
    """Counter of a phase's parts, for any thread; as such it shows nothing."""

    def advance(self, n: int = 1) -> None:
        """Report that `n` more parts are done."""

    def reach(self, done: int, total: int) -> None:
        """Report what is done and known of the whole by now."""


class Progress:
    """Progress that shows nothing, and the interface of those that do.

    Use it as a context manager around the run. `phase` may be nested.
    """

    def __init__(self) -> None:
        self._step = contextlib.ExitStack()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self._step.close()

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[Counted]:
        """Show a step of the run while the block runs; `total` where its size is known, or nearly."""
        yield Counted()

    def step(self, name: str) -> None:
        """End the step before and begin this one: phases for code that only announces its next step."""
        self._step.close()
        self._step.enter_context(self.phase(name))

    def note(self, text: str) -> None:
        """Show a line that stays, above the live display."""


@dataclass
class Phase(Counted):
    """A step of a run, and how much of it is done."""

    name: str
    total: int | None
    began_s: float
    done: int = 0

    def advance(self, n: int = 1) -> None:
        self.done += n

    def reach(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    def line(self, now_s: float) -> str:
        """Return what is done, the rate, and the time left if the total is known."""
        taken_s = now_s - self.began_s
        parts = [f"{self.name}, {duration(int(taken_s * 1000))}"]
        if self.done:
            parts.append(f"{self.done} done" if self.total is None else f"{self.done} of {self.total}")
            parts.append(f"{self.done / max(taken_s, 0.001):.0f} per second")
        if self.done and self.total is not None and self.done < self.total:
            parts.append(f"{duration(int(taken_s * 1000 * (self.total - self.done) / self.done))} left")
        return ", ".join(parts)


class LineProgress(Progress):
    """Plain lines: one every `EVERY_S`, and one at the start of each phase if it announces them.

    For streams that cannot redraw: terminals of that kind, logs, and what cron and systemd collect.
    """

    def __init__(self, stream: TextIO, *, announces: bool = True, prefix: str = "", stamps: bool = False) -> None:
        """Each line begins with `prefix`, or with its time, UTC, if it `stamps` them."""
        super().__init__()
        self._stream = stream
        self._announces = announces
        self._prefix = prefix
        self._stamps = stamps
        self._phases: list[Phase] = []
        self._over = threading.Event()

    def __enter__(self) -> Progress:
        # A daemon, so that no end of the process has to wait for it.
        threading.Thread(target=self._report, name="progress", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        super().__exit__(*error)

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[Counted]:
        if self._announces:
            self.note(f"{name} ({total})" if total is not None else name)
        opened = Phase(name, total, time.monotonic())
        self._phases.append(opened)
        try:
            yield opened
        finally:
            self._phases.remove(opened)

    def note(self, text: str) -> None:
        begin = f"{iso(time.time_ns() // 1_000_000)} " if self._stamps else self._prefix
        # A closed stderr, or a full disk below a log, must not end the run.
        with contextlib.suppress(OSError, ValueError):
            print(f"{begin}{safe(text)}", file=self._stream, flush=True)

    def _report(self) -> None:
        while not self._over.wait(EVERY_S):
            # Several may count side by side; else the innermost says where the run is. The copy is for the run's own
            # thread, which begins and ends phases meanwhile.
            phases = list(self._phases)
            for one in [phase for phase in phases if phase.done] or phases[-1:]:
                self.note(one.line(time.monotonic()))


class _Both(Counted):
    def __init__(self, *both: Counted) -> None:
        self._both = both

    def advance(self, n: int = 1) -> None:
        for one in self._both:
            one.advance(n)

    def reach(self, done: int, total: int) -> None:
        for one in self._both:
            one.reach(done, total)


class LoggedProgress(Progress):
    """A progress that also writes lines to a log."""

    def __init__(self, shown: Progress, log: Progress) -> None:
        super().__init__()
        self._both = (shown, log)

    def __enter__(self) -> Progress:
        for one in self._both:
            one.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        kind, raised = (*error, None, None)[:2]
        self._both[1].note("done" if kind is None else f"ended: {str(raised) or getattr(kind, '__name__', kind)}")
        for one in self._both:
            one.__exit__(*error)

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[Counted]:
        with self._both[0].phase(name, total) as shown, self._both[1].phase(name, total) as logged:
            yield _Both(shown, logged)

    def note(self, text: str) -> None:
        for one in self._both:
            one.note(text)


class _Bar(Counted):
    def __init__(self, bars: RichBars, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance(self, n: int = 1) -> None:
        self._bars.advance(self._task, n)

    def reach(self, done: int, total: int) -> None:
        self._bars.update(self._task, completed=done, total=total)


class LiveProgress(Progress):
    """Bars that redraw themselves, with counts, and the time left where it can be known."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._bars = RichBars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            # `TextColumn` demands a format, which `render` below does without.
            _CountColumn("{task.completed}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(file=stream, stderr=True),
            # The answer follows on the same terminal, so the bars go.
            transient=True,
        )

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._bars.stop()

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[Counted]:
        # rich takes square brackets for markup, and paths may hold them.
        task = self._bars.add_task(escape(safe(name)), total=total)
        yield _Bar(self._bars, task)
        # A phase that fails does not get here, and its bar stays as it is.
        done = next(item for item in self._bars.tasks if item.id == task)
        whole = done.total if done.total is not None else max(done.completed, 1)
        self._bars.update(task, total=whole, completed=whole)

    def note(self, text: str) -> None:
        self._bars.console.print(escape(safe(text)), highlight=False)


class _CountColumn(TextColumn):
    """`17 of 200`, or `17` where the total is unknown; empty for a phase that counts nothing."""

    def render(self, task: RichTask) -> Text:
        if task.total is None:
            return Text(f"{int(task.completed)}" if task.completed else "")
        return Text(f"{int(task.completed)} of {int(task.total)}")


@dataclass(frozen=True, slots=True)
class Shown:
    """Choice of what a run displays: `-q`, `-v` and `--log-file`."""

    quiet: bool = False
    verbose: bool = False
    log: TextIO | None = None


_shown = Shown()


def set_shown(shown: Shown) -> None:
    """Set how this process shows progress from now on."""
    global _shown
    _shown = shown


def open_log(path: str | os.PathLike[str]) -> TextIO:
    """Open a log to append to. A new one is readable by its owner only. Raises `OutputError`."""
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {safe(str(path))}: {error.strerror}; name another --log-file") from error


def make_progress(stream: TextIO | None = None) -> Progress:
    """Return the progress as chosen, with the log.

    Shows a live display on a terminal (`stream`, default stderr), else a line every `EVERY_S`.
    """
    # `sys.stderr` is None in a process that was started without that descriptor.
    stream = sys.stderr if stream is None else stream
    shown = _on(stream) if stream is not None and not _shown.quiet else Progress()
    return shown if _shown.log is None else LoggedProgress(shown, LineProgress(_shown.log, stamps=True))


def is_live(stream: TextIO) -> bool:
    """Return True if a display may redraw itself on the stream. `-v` wants lines that stay."""
    # rich takes a terminal without TERM for one that can redraw.
    return stream.isatty() and not _shown.verbose and os.environ.get("TERM", "dumb") not in ("dumb", "")


def _on(stream: TextIO) -> Progress:
    if is_live(stream):
        return LiveProgress(stream)
    if stream.isatty():
        return LineProgress(stream)
    # In a log that others write to, short runs stay silent, and each line says whose it is.
    return LineProgress(stream, announces=_shown.verbose, prefix="status-tool: ")
