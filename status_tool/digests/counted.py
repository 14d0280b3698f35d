"""Counter for the progress of digests, for whoever displays it."""

from __future__ import annotations

from status_tool.digests.digest import Sums


class RowsCounted:
    """Counts nothing, and is the interface of those that do. May be called from any thread."""

    def asked(self, parts: int) -> None:
        """Add parts that are to be digested."""

    def digested(self, sums: Sums) -> None:
        """Add what was read."""

    def answered(self) -> None:
        """Count a part as whole."""


NOT_COUNTED = RowsCounted()
