"""Paths of `status-tool.toml`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

NAME = "status-tool.toml"
FILE_VARIABLE = "STATUS_TOOL_CONFIG"
"""The file instead of the ones that are looked for; `off`: none."""


def places() -> Sequence[Path]:
    """Return the paths where a file is looked for. The first that exists counts."""
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen:
        return () if chosen == "off" else (Path(chosen),)
    user = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    return (Path(NAME), user / "status-tool" / NAME, Path("/etc/status-tool") / NAME)
