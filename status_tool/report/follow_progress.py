"""Progress of `--follow` on stderr: regions and bytes to go, rate and time left; a live table or plain lines."""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from status_tool.printable import duration, iso, safe
from status_tool.report.progress import LineProgress, LoggedProgress, Progress, is_live, wanted
from status_tool.vocabulary.verdicts import Status

WINDOW_S = 60.0
"""The rate is that of the last minute: long enough to be steady, short enough to see a peer that was enabled."""


@dataclass(frozen=True, slots=True)
class Round:
    """Result of one round."""

    at_s: float
    """When, on a clock that only goes forward."""
    cut_ms: int
    regions: dict[str, int]
    left_bytes: int | None
    verdict: str

    @property
    def to_go(self) -> int:
        """Regions that are not complete."""
        return sum(count for status, count in self.regions.items() if status != Status.COMPLETE)


class Pace:
    """Rate at which a backlog shrinks, net of new writes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, at_s: float, left_bytes: int | None) -> None:
        """Record a backlog; an unknown one makes the rate unknown until two more are known."""
        if left_bytes is None:
            self._seen.clear()
            return
        self._seen.append((at_s, left_bytes))
        while len(self._seen) > 2 and at_s - self._seen[0][0] > WINDOW_S:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Bytes a second; negative while the backlog grows, None before the second round."""
        if len(self._seen) < 2 or self._seen[-1][0] <= self._seen[0][0]:
            return None
        (start, first), (end, last) = self._seen[0], self._seen[-1]
        return (first - last) / (end - start)

    @property
    def eta_s(self) -> float | None:
        """Seconds until the backlog is empty at this rate; None while it does not shrink."""
        rate = self.rate
        if not self._seen or rate is None or rate <= 0:
            return 0.0 if self._seen and self._seen[-1][1] == 0 else None
        return self._seen[-1][1] / rate


class Following:
    """Plain lines, one per round that differs from the one before: for logs; also the interface."""

    def __init__(self, lines: Progress) -> None:
        self._lines = lines
        self._pace = Pace()
        self._last: tuple[object, ...] | None = None

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: there is nothing to close."""

    def step(self, text: str) -> None:
        """Show the current step."""

    def note(self, text: str) -> None:
        """Show a line that stays."""
        self._lines.note(text)

    def round(self, found: Round) -> None:
        """Show what a round found."""
        self._pace.add(found.at_s, found.left_bytes)
        now = (found.verdict, found.regions, found.left_bytes)
        if now != self._last:
            self._lines.note(", ".join(f"{name} {value}" for name, value in _cells(found, self._pace)))
        self._last = now


class LiveFollowing(Following):
    """A table that redraws itself; `lines` are beside it."""

    def __init__(self, stream: TextIO, lines: Progress) -> None:
        super().__init__(lines)
        self._doing = "starting"
        self._found: Round | None = None
        self._live = Live(console=Console(file=stream, stderr=True), transient=True, get_renderable=self._table)

    def __enter__(self) -> Following:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def step(self, text: str) -> None:
        self._doing = text

    def note(self, text: str) -> None:
        super().note(text)
        self._live.console.print(escape(safe(text)), highlight=False)

    def round(self, found: Round) -> None:
        super().round(found)
        self._found = found

    def _table(self) -> Table:
        table = Table("", "", show_header=False, title="Following the master", title_justify="left")
        if self._found is not None:
            for name, value in _cells(self._found, self._pace):
                table.add_row(escape(name), escape(value))
        table.add_row("now", escape(safe(self._doing)))
        return table


def make_following(stream: TextIO | None = None) -> Following:
    """Return a live table if `stream` (default: stderr) is a terminal that can redraw, else plain lines.

    With `-q`, shows nothing. The log has the lines in any case.
    """
    stream, log = sys.stderr if stream is None else stream, wanted().log
    logged = Progress() if log is None else LineProgress(log, stamps=True)
    if wanted().quiet:
        return Following(logged)
    if is_live(stream):
        return LiveFollowing(stream, logged)
    return Following(LoggedProgress(LineProgress(stream, prefix="status-tool: "), logged))


def _cells(found: Round, pace: Pace) -> list[tuple[str, str]]:
    total = sum(found.regions.values())
    kinds = ", ".join(f"{count} {status}" for status, count in found.regions.items() if status != Status.COMPLETE)
    rate, eta = pace.rate, pace.eta_s
    return [
        ("verdict", found.verdict),
        ("cut", iso(found.cut_ms)),
        ("regions to go", f"{found.to_go} of {total}" + (f" ({kinds})" if kinds else "")),
        ("bytes to go", "unknown" if found.left_bytes is None else str(found.left_bytes)),
        ("rate", "unknown" if rate is None else f"{rate:.0f} bytes/s"),
        ("ETA", "unknown" if eta is None else duration(int(eta * 1000))),
    ]
