"""Which files are of the original tool's format, by their name."""

from __future__ import annotations

import os


def is_legacy_name(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name is written as the original's JSON."""
    return os.fspath(path).lower().endswith(".json")
