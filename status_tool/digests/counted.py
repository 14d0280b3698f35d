"""Progress of digests: rows, bytes, and ranges of all, which tell the time that is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from status_tool.digests.digest import Sums
from status_tool.report.progress import Counted, Progress


class RowsCounted:
    """Counts nothing, and is the interface of those that do. May be called from any thread."""

    def asked(self, parts: int) -> None:
        """Add parts that are to be digested."""

    def digested(self, sums: Sums) -> None:
        """Add what was read."""

    def answered(self) -> None:
        """Count a part as whole."""


NOT_COUNTED = RowsCounted()


class _Shown(RowsCounted):
    def __init__(self, rows: Counted, size: Counted, ranges: Counted) -> None:
        self._rows, self._size, self._ranges = rows, size, ranges
        self._lock = threading.Lock()
        self._done = self._all = 0

    def asked(self, parts: int) -> None:
        # Both sides' threads count here, and `+=` is not atomic.
        with self._lock:
            self._all += parts
            self._ranges.reach(self._done, self._all)

    def digested(self, sums: Sums) -> None:
        self._rows.advance(sums.rows)
        self._size.advance(sums.bytes)

    def answered(self) -> None:
        with self._lock:
            self._done += 1
            self._ranges.reach(self._done, self._all)


@contextmanager
def rows_shown(progress: Progress) -> Iterator[RowsCounted]:
    """Show the counts of both sides together."""
    with (
        progress.phase("rows digested") as rows,
        progress.phase("bytes digested") as size,
        progress.phase("ranges of rows") as ranges,
    ):
        yield _Shown(rows, size, ranges)
