"""Where a run keeps checksums until its status file is complete; apart, as the journal itself loads Arrow."""

from __future__ import annotations

from pathlib import Path

JOURNAL_SUFFIX = ".resume"


def journal_path(output: Path) -> Path:
    """Where the journal of a status file is."""
    return Path(f"{output}{JOURNAL_SUFFIX}")
