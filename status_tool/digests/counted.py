"""Counter for the progress of digests, for whoever displays it."""

from __future__ import annotations

from status_tool.digests.digest import Sums


class RowsCounted:
    """Counts nothing, and is the interface of those that do. May be called from any thread."""

    def asked(self, parts: int) -> None:
        """So many parts more are to be digested."""

    def digested(self, sums: Sums) -> None:
        """So much more was read."""

    def answered(self) -> None:
        """One more part is whole."""


NOT_COUNTED = RowsCounted()
