"""Progress of digests: rows, bytes, and ranges of all, which tell the time that is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from status_tool.digests.digest import Sums
from status_tool.report.progress import Phase, Progress


class RowsCounted:
    """Counts of both sides together. Any thread may count."""

    def __init__(self, rows: Phase, size: Phase, ranges: Phase) -> None:
        self._rows, self._size, self._ranges = rows, size, ranges
        self._lock = threading.Lock()

    def asked(self, parts: int) -> None:
        """Add parts that are to be digested."""
        # Both sides' threads count here, and `+` is not atomic.
        with self._lock:
            self._ranges.total = (self._ranges.total or 0) + parts

    def digested(self, sums: Sums) -> None:
        """Add what was read."""
        self._rows.advance(sums.rows)
        self._size.advance(sums.bytes)

    def answered(self) -> None:
        """Count a part as whole."""
        self._ranges.advance()


NOT_COUNTED = RowsCounted(Phase("rows"), Phase("bytes"), Phase("ranges"))
"""Counts that are shown nowhere."""


@contextmanager
def rows_shown(progress: Progress) -> Iterator[RowsCounted]:
    """Show the counts of both sides together."""
    with (
        progress.phase("rows digested") as rows,
        progress.phase("bytes digested") as size,
        progress.phase("ranges of rows") as ranges,
    ):
        yield RowsCounted(rows, size, ranges)
