"""Following the master: what is in scope, and what each round shows."""

from __future__ import annotations

import io
from contextlib import ExitStack
from dataclasses import replace

from status_tool.report.progress import LineProgress
from status_tool.rules.queue_proofs import left_bytes
from status_tool.runs.follow import ShownRounds, with_files_of
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import HBaseOutcome, Outcome
from status_tool.vocabulary.verdicts import Evidence, Status, Verdict

FILE = Header("master", "id", 2_000, 1_000)


def test_files_are_those_of_the_file() -> None:
    """The HBase half is fresh, the HDFS half FILE's."""
    file = replace(FILE, hdfs_paths=("/data",), hdfs_absent=("/gone",))
    fresh = replace(FILE, half="hbase", cut_ms=9_000)
    merged = with_files_of(fresh, file)
    assert (merged.half, merged.cut_ms, merged.hdfs_paths, merged.hdfs_absent) == (
        *("both", 9_000, ("/data",), ("/gone",)),
    )
    [told] = merged.notices
    assert told.startswith("HDFS: following: files are compared as FILE of 1970-01-01T00:00:02")
    assert with_files_of(fresh, replace(file, half="hbase")) == fresh


def test_bytes_of_the_peer_alone() -> None:
    """An unknown length makes the sum unknown, but only that of its peer."""
    queues = [{"peer": "1", "wals": [{"left": 5}, {"left": 0}]}, {"peer": "2", "wals": [{"left": None}]}]
    assert (left_bytes(queues, "1"), left_bytes(queues, "2")) == (5, None)


def found(behind: int) -> Outcome:
    regions = {Status.BEHIND: behind, Status.COMPLETE: 2}
    return Outcome(HBaseOutcome(Verdict.INCOMPLETE, Evidence.EXACT, regions), None, (), 0)


def test_a_line_only_where_something_has_changed() -> None:
    """And bytes that were shipped, of as many as were left at most."""
    stream = io.StringIO()
    with LineProgress(stream, announces=False) as progress, ExitStack() as stack:
        shown = ShownRounds(progress, stack)
        for left in (2_000, 2_000, 500):
            shown.round(found(behind=1), left)
        (shipped,) = progress._phases  # type: ignore[attr-defined]
        assert (shipped.done, shipped.total) == (1_500, 2_000)
        shown.round(found(behind=0), None)
    lines = stream.getvalue().splitlines()
    assert [line.partition(", cut ")[0] for line in lines] == [
        "verdict incomplete, regions to go 1 of 3 (1 behind), bytes to go 2000",
        "verdict incomplete, regions to go 1 of 3 (1 behind), bytes to go 500",
        "verdict incomplete, regions to go 0 of 2, bytes to go unknown",
    ]
