"""Progress: live on terminals, a line now and then elsewhere, and never in the run's way."""

from __future__ import annotations

import io
import os
import re
import stat
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from status_tool.cli.options import show_as
from status_tool.errors import ConnectionFailed, OutputError
from status_tool.report import progress as progress_module
from status_tool.report.progress import (
    Bars,
    Lines,
    Phase,
    Progress,
    Shown,
    make_progress,
    open_log,
    set_shown,
)
from tests.lab.waiting import wait_until


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def use(progress: Progress) -> None:
    """Everything a run may do with progress."""
    with progress:
        with progress.phase("counted [bold]", total=2) as counted:
            counted.advance()
            counted.advance(5)
        with progress.phase("of unknown size"), progress.phase("inner") as inner:
            inner.advance(3)
        with pytest.raises(KeyboardInterrupt), progress.phase("broken off", 9):
            raise KeyboardInterrupt
        progress.note("note [red] \x1b[2J\n")
        progress.step("first step")
        progress.step("second step")


def test_a_short_run_without_a_terminal_is_silent() -> None:
    stream = io.StringIO()
    progress = make_progress(stream)
    with progress:
        progress.step("first step")
    assert stream.getvalue() == ""


def test_without_a_terminal_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done, how fast, and what is left."""
    monkeypatch.setattr(progress_module, "EVERY_S", 0.01)
    stream = io.StringIO()
    with make_progress(stream) as progress, progress.phase("reading", total=12) as reading:
        reading.advance(3)
        wait_until(lambda: "3 of 12" in stream.getvalue(), 120, "a line")
    ended = stream.getvalue()
    line = next(line for line in ended.splitlines() if "3 of 12" in line)
    assert re.fullmatch(r"status-tool: reading, .+, 3 of 12, \d+ per second, .+ left", line), line
    assert not [thread for thread in threading.enumerate() if thread.name == "progress" and not over(thread)]


def over(thread: threading.Thread) -> bool:
    thread.join(10)
    return not thread.is_alive()


def test_several_count_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each with its own rate and end, on a terminal that cannot redraw, in a log, and as bars."""
    monkeypatch.setattr(progress_module, "EVERY_S", 0.02)
    stream = io.StringIO()
    set_shown(Shown(log=open_log(tmp_path / "log")))
    log = tmp_path / "log"
    with make_progress(stream) as shown, shown.phase("streams", 10) as streams, shown.phase("files") as files:
        streams.reach(4, 8)
        files.advance(3)
        for pattern in (r"streams, [^,]+, 4 of 8, ", r"files, [^,]+, 3 done, "):
            found = partial(re.search, pattern)
            wait_until(lambda f=found: f(stream.getvalue()) and f(log.read_text()), 120, pattern, interval=0.01)  # type: ignore[misc]
    bars = Bars(Terminal())
    with Progress(bars) as live, live.phase("streams", 10) as streams, live.phase("files") as files:
        streams.reach(4, 8)
        files.advance(3)
        bars._bars.refresh()
        assert [(bar.completed, bar.total) for bar in bars._bars.tasks] == [(4, 8), (3, None)]
    assert [(bar.completed, bar.total) for bar in bars._bars.tasks] == [(8, 8), (3, 3)]
    with suppress(ConnectionFailed), Progress(bars) as live, live.phase("fails", 10) as failing:
        failing.advance(7)
        raise ConnectionFailed("no answer")
    assert (bars._bars.tasks[-1].completed, bars._bars.tasks[-1].total) == (7, 10)


def test_time_left_is_that_of_the_rate_so_far() -> None:
    assert Phase("reading", 40, 100.0, 10).line(110.0) == "reading, 10.0 s, 10 of 40, 1 per second, 30.0 s left"
    assert Phase("reading", None, 100.0, 10).line(105.0) == "reading, 5.0 s, 10 done, 2 per second"
    assert Phase("waiting", None, 100.0).line(105.0) == "waiting, 5.0 s"


def test_quiet_and_verbose(monkeypatch: pytest.MonkeyPatch) -> None:
    """-q: nothing anywhere; -v: each step as a line, on a terminal as well."""
    monkeypatch.setenv("TERM", "xterm")
    set_shown(Shown(quiet=True))
    terminal = Terminal()
    use(make_progress(terminal))
    assert terminal.getvalue() == ""
    set_shown(Shown(verbose=True))
    for stream, prefix in ((io.StringIO(), "status-tool: "), (Terminal(), "")):
        with make_progress(stream) as progress:
            progress.step("first step")
            with progress.phase("second step", 3):
                pass
        assert stream.getvalue().splitlines() == [f"{prefix}first step", f"{prefix}second step (3)"]


@pytest.mark.parametrize(
    ("submitted", "verbose", "shows"), [(False, False, True), (True, False, False), (True, True, True)]
)
def test_under_spark_submit_results_stand_alone(
    monkeypatch: pytest.MonkeyPatch, submitted: bool, verbose: bool, shows: bool
) -> None:
    """It writes standard error into standard output: a JSON document would begin with progress."""
    monkeypatch.setattr("status_tool.cli.options.submitted", lambda: submitted)
    show_as(quiet=False, verbose=verbose, log_file=None)
    terminal = Terminal()
    use(make_progress(terminal))
    assert bool(terminal.getvalue()) is shows


def test_a_log_has_every_step_and_the_end(tmp_path: Path) -> None:
    """With times, appended, whatever is shown besides."""
    for raised in (None, ConnectionFailed("no answer")):
        with open_log(tmp_path / "log") as log, suppress(ConnectionFailed):
            set_shown(Shown(quiet=True, log=log))
            with make_progress(Terminal()) as progress:
                with progress.phase("reading", 2):
                    progress.note("note\n")
                if raised:
                    raise raised
    stamped = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (.*)")
    lines = [match[2] for line in (tmp_path / "log").read_text().splitlines() if (match := stamped.fullmatch(line))]
    assert lines == ["reading (2)", r"note\x0a", "done", "reading (2)", r"note\x0a", "ended: no answer"]
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="name another --log-file"):
        open_log(tmp_path / "absent" / "log")


def test_a_log_on_a_full_disk_is_told_of_once_and_ends_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(OSError), open_log(Path("/dev/full")) as log:
        set_shown(Shown(quiet=True, log=log))
        with make_progress(Terminal()) as progress, progress.phase("reading", 2):
            progress.note("note")
    assert capsys.readouterr().err == "status-tool: --log-file lacks lines: No space left on device\n"


def test_live_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    progress = make_progress(stream)
    assert [type(display) for display in progress._displays] == [Bars]
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
        "second step",
    ]


def test_a_closed_stderr_does_not_end_the_run() -> None:
    stream = Terminal()
    stream.close()
    use(Progress(Lines(stream)))
    with open(os.devnull) as unwritable:
        use(Progress(Lines(unwritable)))


def test_threads_may_advance() -> None:
    bars = Bars(Terminal())

    def advance_often(parts: Phase) -> None:
        for _ in range(100):
            parts.advance()

    with Progress(bars) as progress, progress.phase("parts", 400) as parts:
        threads = [threading.Thread(target=advance_often, args=(parts,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bars._bars.refresh()
        assert bars._bars.tasks[0].completed == 400


@given(st.text(min_size=1))
def test_no_name_steers_a_terminal_or_adds_a_line(name: str) -> None:
    """What is shown of a step or note is as many lines as there are calls, and prints as itself."""
    stream = Terminal()
    with Progress(Lines(stream)) as progress:
        progress.note(name)
        with progress.phase(name):
            progress.note(name)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
