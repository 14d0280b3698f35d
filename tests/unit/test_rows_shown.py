"""Row digests in the progress of a run."""

from __future__ import annotations

import time

from status_tool.digests.counted import rows_shown
from status_tool.digests.digest import Sums
from status_tool.report.progress import Phase, Progress


def test_rows_bytes_and_ranges_are_counted() -> None:
    """Ranges of all that were asked for, also later, tell the time that is left."""
    progress = Progress()
    with rows_shown(progress) as counted:
        counted.asked(4)
        counted.digested(Sums(rows=300, bytes=5_000))
        counted.digested(Sums(rows=20, bytes=400))
        counted.answered()
        phases = {phase.name: phase for phase in progress.phases}
        assert {name: (phase.done, phase.total) for name, phase in phases.items()} == {
            "rows digested": (320, None),
            "bytes digested": (5_400, None),
            "ranges of rows": (1, 4),
        }
        counted.asked(6)
        counted.answered()
        ranges = phases["ranges of rows"]
        assert (ranges.done, ranges.total) == (2, 10)
        begun = Phase(ranges.name, ranges.total, time.monotonic() - 10, ranges.done)
        assert "2 of 10" in begun.line(time.monotonic())
        assert "40.0 s left" in begun.line(begun.began_s + 10)
    assert progress.phases == []
