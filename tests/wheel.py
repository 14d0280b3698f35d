"""Build the wheel that carries the trackers' jar: `python -m tests.wheel DIR`.

From a copy of the sources, so that nothing of an earlier build gets in and nothing is left in the tree.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from status_tool.clients.java import jar
from tests.pair import REPOSITORY

SOURCES = ("pyproject.toml", "README.md", "LICENSE")


def build(folder: Path) -> Path:
    """Build it into a folder; returns the file. Needs the jar (`make setup`) and no network."""
    with tempfile.TemporaryDirectory(prefix="status-tool-wheel-") as name:
        tree = Path(name) / "tree"
        shutil.copytree(REPOSITORY / "status_tool", tree / "status_tool", ignore=shutil.ignore_patterns("__pycache__"))
        for source in SOURCES:
            shutil.copy(REPOSITORY / source, tree)
        (tree / "status_tool" / "assets").mkdir()
        shutil.copy(jar(), tree / "status_tool" / "assets")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
        made = Path(name) / "made"
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--no-index", "-w", made, tree], check=True)
        (wheel,) = made.iterdir()
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, folder))


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
