"""Temporary folders: what a killed process has left goes, and nothing that is in use or another's does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from status_tool.temporary import _prefix, held_folder, temporary_folder

HOLDING = """
from status_tool.temporary import held_folder
folder, _ = held_folder()
(folder / "status").write_text("rows")
print(folder, flush=True)
input()
"""


def old(folder: Path) -> Path:
    os.utime(folder, (1, 1))
    return folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, also of processes that are started here."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_what_a_killed_process_has_left_is_removed_by_the_next_one(temporary: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        left = old(Path(process.stdout.readline().decode().strip()))
        with temporary_folder():
            assert (left / "status").exists(), "its process lives"
        process.send_signal(signal.SIGKILL)
    assert left.exists()
    with temporary_folder() as folder:
        assert list(temporary.iterdir()) == [folder]
    assert list(temporary.iterdir()) == []


def test_folders_of_others_stay(temporary: Path) -> None:
    """Of another host, of a program that locks none, one that has just been made, and what a link leads to."""
    foreign = temporary / "elsewhere"
    foreign.mkdir()
    for name in ("status-tool-00000000-x", "status-tool-x"):
        (temporary / name).mkdir()
        old(temporary / name)
    (temporary / f"{_prefix()}young").mkdir()
    (temporary / f"{_prefix()}link").symlink_to(old(foreign))
    os.utime(temporary / f"{_prefix()}link", (1, 1), follow_symlinks=False)
    before = set(temporary.iterdir())
    with temporary_folder():
        pass
    assert set(temporary.iterdir()) == before


def test_a_folder_that_is_held_stays_until_it_is_let_go() -> None:
    folder, lock = held_folder()
    with temporary_folder():
        assert old(folder).exists()
    os.close(lock)
    with temporary_folder():
        assert not folder.exists()


LATE = """
import os, signal, time
from status_tool.cli import signals
from status_tool.cli.repeated import as_service

signals.handle_signals()
signals.END_S = 0.1
with as_service() as folder:
    print(folder, folder.is_dir(), flush=True)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        time.sleep(600)
"""
"""A service whose usual way to end takes longer than it has."""


def test_a_service_that_has_no_time_left_leaves_no_folder(temporary: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=300)
    folder, _, existed = done.stdout.strip().rpartition(" ")
    assert (done.returncode, existed) == (143, "True"), done.stderr
    assert not Path(folder).exists()
    assert list(temporary.iterdir()) == []


def test_a_process_that_ends_removes_what_it_holds(temporary: Path) -> None:
    """As when a signal comes between the folder and the block that removes it."""
    done = subprocess.run([sys.executable, "-c", HOLDING], input=b"\n", capture_output=True, timeout=300)
    assert Path(done.stdout.decode().strip()).parent == temporary
    assert list(temporary.iterdir()) == []
