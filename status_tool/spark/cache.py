"""The user's cache: what saves time when it is there, and is missed by nobody when it is not."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

CACHE_VARIABLE = "STATUS_TOOL_CACHE"
"""The folder instead of the user's cache; `off`: nothing is kept or used."""


def cache_folder() -> Path | None:
    """Made where it is missing; None if it cannot be used."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen == "off" or not sys.platform.startswith("linux"):
        return None
    try:
        default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "status-tool"
        folder = Path(chosen) if chosen else default
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if is_ours(folder) and os.access(folder, os.W_OK | os.X_OK) else None


def is_ours(path: Path) -> bool:
    """Return True if nobody else can have written to the path: a JVM runs the code in an archive of classes."""
    found = path.stat()
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o022
