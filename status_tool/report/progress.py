"""Live progress of a run on stderr, and in a log file; without a terminal a line now and then."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichBars
from rich.progress import Task as RichTask
from rich.text import Text

from status_tool.errors import OutputError
from status_tool.printable import duration, iso, print_beside, safe

EVERY_S = 30.0
"""Pause between two lines that say how far a run has come where nothing can redraw itself."""


@dataclass(eq=False)
class Phase:
    """A step of a run, and how much of it is done. Any thread may count."""

    name: str
    total: int | None = None
    """The number of its parts; None: not known."""
    began_s: float = field(default_factory=time.monotonic)
    done: int = 0
    is_done: bool = False
    """True if it has ended without an error."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def advance(self, n: int = 1) -> None:
        """Report that `n` more parts are done."""
        with self._lock:
            self.done += n

    def reach(self, done: int, total: int) -> None:
        """Report what is done and known of the whole by now."""
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


class Lines:
    """Plain lines: one every `EVERY_S`, and one at the start of each phase if it announces them.

    For streams that cannot redraw: terminals of that kind, logs, and what cron and systemd collect.
    """

    def __init__(self, stream: TextIO, *, announces: bool = True, prefix: str = "", is_log: bool = False) -> None:
        """Each line begins with `prefix`; in a log with its time, UTC, and the last one says how the run ended."""
        self._stream = stream
        self._announces = announces
        self._prefix = prefix
        self._is_log = is_log
        self._lacks = False
        self._over = threading.Event()

    def start(self, phases: Sequence[Phase]) -> None:
        # A daemon, so that no end of the process has to wait for it.
        threading.Thread(target=self._report, args=(phases,), name="progress", daemon=True).start()

    def begin(self, phase: Phase) -> None:
        if self._announces:
            self.note(phase.name if phase.total is None else f"{phase.name} ({phase.total})")

    def note(self, text: str) -> None:
        begin = f"{iso(time.time_ns() // 1_000_000)} " if self._is_log else self._prefix
        # A closed stderr, or a full disk below a log, must not end the run.
        try:
            print(f"{begin}{safe(text)}", file=self._stream, flush=True)
        except (OSError, ValueError) as error:
            if self._is_log and not self._lacks:
                self._lacks = True
                print_beside(f"--log-file lacks lines: {getattr(error, 'strerror', None) or error}")

    def stop(self, ended: str) -> None:
        if self._is_log:
            self.note(ended)
        self._over.set()

    def _report(self, phases: Sequence[Phase]) -> None:
        while not self._over.wait(EVERY_S):
            # Several may count side by side; else the innermost says where the run is. The copy is for the run's own
            # thread, which begins and ends phases meanwhile.
            now = list(phases)
            for one in [phase for phase in now if phase.done] or now[-1:]:
                self.note(one.line(time.monotonic()))


class Bars:
    """Bars that redraw themselves, with counts, and the time left where it can be known."""

    def __init__(self, stream: TextIO) -> None:
        self._bars = _PhaseBars(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            _CountColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(file=stream, stderr=True),
            # The answer follows on the same terminal, so the bars go.
            transient=True,
        )

    def start(self, phases: Sequence[Phase]) -> None:
        self._bars.start()

    def begin(self, phase: Phase) -> None:
        # rich takes square brackets for markup, and paths may hold them.
        self._bars.shown[self._bars.add_task(escape(safe(phase.name)), total=phase.total)] = phase

    def note(self, text: str) -> None:
        self._bars.console.print(escape(safe(text)), highlight=False)

    def stop(self, ended: str) -> None:
        self._bars.stop()


class _PhaseBars(RichBars):
    """Draws each phase as it is by then. The bar of one that has failed stays as it was."""

    def __init__(self, *columns: ProgressColumn, console: Console, transient: bool) -> None:
        self.shown: dict[TaskID, Phase] = {}
        super().__init__(*columns, console=console, transient=transient)

    def get_renderables(self) -> Iterable[RenderableType]:
        # The copy is for the run's own thread, which begins phases meanwhile.
        for task, phase in list(self.shown.items()):
            whole = max(phase.done, 1) if phase.total is None else phase.total
            done, total = (whole, whole) if phase.is_done else (phase.done, phase.total)
            self.update(task, completed=done, total=total)
        return super().get_renderables()


class _CountColumn(ProgressColumn):
    """`17 of 200`, or `17` where the total is unknown; empty for a phase that counts nothing."""

    def render(self, task: RichTask) -> Text:
        if task.total is None:
            return Text(f"{int(task.completed)}" if task.completed else "")
        return Text(f"{int(task.completed)} of {int(task.total)}")


class Progress:
    """Phases of a run, shown on displays; on none in a quiet run.

    Use it as a context manager around the run. `phase` may be nested.
    """

    def __init__(self, *displays: Lines | Bars) -> None:
        self.phases: list[Phase] = []
        self._displays = displays
        self._step = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for one in self._displays:
            one.start(self.phases)
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, at: object) -> None:
        self._step.close()
        ended = "done" if kind is None else f"ended: {str(raised) or kind.__name__}"
        for one in self._displays:
            one.stop(ended)

    @contextlib.contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[Phase]:
        """Show a step of the run while the block runs; `total` where its size is known, or nearly."""
        opened = Phase(name, total)
        self.phases.append(opened)
        for one in self._displays:
            one.begin(opened)
        try:
            yield opened
            opened.is_done = True
        finally:
            self.phases.remove(opened)

    def step(self, name: str) -> None:
        """End the step before and begin this one: phases for code that only announces its next step."""
        self._step.close()
        self._step.enter_context(self.phase(name))

    def note(self, text: str) -> None:
        """Show a line that stays, above the live display."""
        for one in self._displays:
            one.note(text)


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
        # Non-blocking: a pipe may have no reader, or a slow one, for which no run waits.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")
    except OSError as error:
        why = "a pipe that nobody reads, or a socket" if error.errno == errno.ENXIO else error.strerror
        raise OutputError(f"cannot write {safe(str(path))}: {why}; name another --log-file") from error


def make_progress(stream: TextIO | None = None) -> Progress:
    """Return the progress as chosen, with the log.

    Shows a live display on a terminal (`stream`, default stderr), else a line every `EVERY_S`.
    """
    # `sys.stderr` is None in a process that was started without that descriptor.
    stream = sys.stderr if stream is None else stream
    shown = [] if stream is None or _shown.quiet else [_on(stream)]
    log = [] if _shown.log is None else [Lines(_shown.log, is_log=True)]
    return Progress(*shown, *log)


def _on(stream: TextIO) -> Lines | Bars:
    if not stream.isatty():
        # In a log that others write to, short runs stay silent, and each line says whose it is.
        return Lines(stream, announces=_shown.verbose, prefix="status-tool: ")
    # `-v` wants lines that stay. rich takes a terminal without TERM for one that can redraw.
    if _shown.verbose or os.environ.get("TERM", "dumb") in ("dumb", ""):
        return Lines(stream)
    return Bars(stream)
