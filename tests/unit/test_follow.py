"""Following the master: rates are shown as they are, and a table shows them."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from status_tool.report.follow_progress import Following, LiveFollowing, Pace, Round, make_following
from status_tool.rules.queue_proofs import left_bytes
from status_tool.runs.follow import with_files_of
from status_tool.vocabulary.header import Header

FILE = Header("master", "id", 2_000, 1_000)


def test_files_are_those_of_the_file() -> None:
    """The HBase half is fresh, the HDFS half FILE's."""
    file = replace(FILE, hdfs_paths=("/data",), hdfs_absent=("/gone",))
    fresh = replace(FILE, half="hbase", cut_ms=9_000)
    merged = with_files_of(fresh, file)
    assert (merged.half, merged.cut_ms, merged.hdfs_paths, merged.hdfs_absent) == (
        *("both", 9_000, ("/data",), ("/gone",)),
    )
    assert with_files_of(fresh, replace(file, half="hbase")) == fresh


def test_bytes_of_the_peer_alone() -> None:
    """An unknown length makes the sum unknown, but only that of its peer."""
    queues = [{"peer": "1", "wals": [{"left": 5}, {"left": 0}]}, {"peer": "2", "wals": [{"left": None}]}]
    assert (left_bytes(queues, "1"), left_bytes(queues, "2")) == (5, None)


def test_pace() -> None:
    pace = Pace()
    assert (pace.rate, pace.eta_s) == (None, None)
    pace.add(0, 1_000)
    assert (pace.rate, pace.eta_s) == (None, None)
    pace.add(10, 600)
    assert (pace.rate, pace.eta_s) == (40, 15)
    pace.add(20, 1_400)
    assert (pace.rate, pace.eta_s) == (-20, None)
    for second in range(30, 200, 10):
        pace.add(second, 1_400)
    assert (pace.rate, pace.eta_s) == (0, None)
    pace.add(200, None)
    assert pace.rate is None
    pace.add(210, 0)
    assert pace.eta_s == 0


def found(left: int | None, behind: int = 1) -> Round:
    return Round(float(left or 0), 0, {"behind": behind, "complete": 2}, left, "incomplete")


def test_lines_only_when_something_has_changed() -> None:
    stream = io.StringIO()
    with make_following(stream) as shown:
        assert type(shown) is Following
        for left in (2_000, 2_000, 1_000):
            shown.round(found(left))
        shown.note("\x1b[2Jevil")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert "regions to go 1 of 3 (1 behind), bytes to go 2000" in lines[0]
    assert "\x1b" not in stream.getvalue()


def test_the_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with make_following(stream) as shown:
        assert isinstance(shown, LiveFollowing)
        shown.step("comparing [bold]every[/bold] \x07stream")
        shown.round(found(None, behind=3))
        shown._live.refresh()
    text = stream.getvalue()
    assert all(words in text for words in ("3 of 5 (3 behind)", "unknown", "[bold]every", "\\x07")), text
