"""Names of files in the original tool's format."""

from __future__ import annotations

import os


def is_legacy_name(path: str | os.PathLike[str]) -> bool:
    """Return True if a file of this name is written as the original's JSON."""
    return os.fspath(path).lower().endswith(".json")
