"""Path of the journal of file checksums. Apart from the journal itself, which loads Arrow."""

from __future__ import annotations

from pathlib import Path

JOURNAL_SUFFIX = ".resume"


def journal_path(output: Path) -> Path:
    """Return the path of the journal beside a status file."""
    return Path(f"{output}{JOURNAL_SUFFIX}")
