"""The console script as a process of its own: signals while it is still being loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.waiting import wait_until

SLOW_IMPORT = """
import pathlib, sys, time

class SlowImport:
    def find_spec(name, path=None, target=None):
        if name == "typer":
            pathlib.Path({reached!r}).touch()
            time.sleep(60)

sys.meta_path.insert(0, SlowImport)
"""
"""Makes the first of the large imports take a minute: a signal after it has begun always hits an import."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_loading_is_one_line(tmp_path: Path, number: signal.Signals) -> None:
    """130, no traceback, no file."""
    site, out, reached = tmp_path / "site", tmp_path / "out", tmp_path / "reached"
    site.mkdir()
    out.mkdir()
    (site / "sitecustomize.py").write_text(SLOW_IMPORT.format(reached=str(reached)))
    process = subprocess.Popen(
        [sys.executable, "-m", "status_tool", "run", "-m", "-o", str(out / "f"), "--conf-dir", str(site)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site)},
    )
    try:
        wait_until(reached.exists, 30, "the import has begun", interval=0.01)
        process.send_signal(number)
        said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, *said) == (130, "", "status-tool: interrupted; nothing was written\n")
    assert list(out.iterdir()) == []
