"""Progress: seen on terminals only, and never in the run's way."""

from __future__ import annotations

import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from status_tool.report.progress import LineProgress, LiveProgress, Progress, make_progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def use(progress: Progress) -> None:
    """Everything a run may do with progress."""
    with progress:
        with progress.phase("counted [bold]", total=2):
            progress.advance()
            progress.advance(5)
        with progress.phase("of unknown size"), progress.phase("inner"):
            progress.advance(3)
        with pytest.raises(KeyboardInterrupt), progress.phase("broken off", 9):
            raise KeyboardInterrupt
        progress.note("note [red] \x1b[2J\n")
        progress.advance()
        progress.step("first step")
        progress.step("second step", 3)
        progress.advance(2)


def test_silent_where_nobody_watches() -> None:
    stream = io.StringIO()
    use(make_progress(stream))
    use(make_progress(Terminal(), enabled=False))
    assert stream.getvalue() == ""
    assert type(make_progress(stream)) is Progress


def test_live_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    progress = make_progress(stream)
    assert isinstance(progress, LiveProgress)
    use(progress)
    text = stream.getvalue()
    assert "counted [bold]" in text
    assert r"note [red] \x1b[2J\x0a" in text
    assert "\x1b[2J\n" not in text
    assert "second step" in text


def test_lines_on_a_terminal_that_cannot_redraw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    use(make_progress(stream))
    assert stream.getvalue().splitlines() == [
        "counted [bold] (2)",
        "of unknown size",
        "inner",
        "broken off (9)",
        r"note [red] \x1b[2J\x0a",
        "first step",
        "second step (3)",
    ]


def test_a_closed_stderr_does_not_end_the_run() -> None:
    stream = Terminal()
    stream.close()
    use(LineProgress(stream))
    with open(os.devnull) as unwritable:
        use(LineProgress(unwritable))


def test_threads_may_advance() -> None:
    progress = LiveProgress(Terminal())

    def advance_often() -> None:
        for _ in range(100):
            progress.advance()

    with progress, progress.phase("parts", 400):
        threads = [threading.Thread(target=advance_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert progress._bars.tasks[0].completed == 400


@given(st.text(min_size=1))
def test_no_name_steers_a_terminal_or_adds_a_line(name: str) -> None:
    """What is shown of a step or note is as many lines as there are calls, and prints as itself."""
    stream = Terminal()
    with LineProgress(stream) as progress:
        progress.note(name)
        with progress.phase(name):
            progress.note(name)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
