"""Temporary folders that go with their process: what one that was killed has left, the next one removes."""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
import shutil
import socket
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_YOUNG_S = 60.0
"""A folder may not be locked yet for so long."""
_held: set[Path] = set()
"""The folders of this process, each before it exists: a signal may come at any moment."""


def _prefix() -> str:
    """Return the start of the names of this host's folders: locks of other hosts may not be seen here."""
    return f"status-tool-{zlib.crc32(socket.gethostname().encode()):08x}-"


def held_folder() -> tuple[Path, int]:
    """Create a folder, and a lock on it that ends with this process.

    It goes with `let_go`, or with this process.
    """
    _remove_left()
    folder = Path(tempfile.gettempdir(), f"{_prefix()}{secrets.token_hex(8)}")
    _held.add(folder)
    folder.mkdir(0o700)
    folder.chmod(0o700)  # whatever the umask takes away
    lock = _opened(folder)
    with suppress(OSError):  # a file system without locks: nobody removes the folder there
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return folder, lock


@atexit.register
def remove_held() -> None:
    """Remove the folders of this process, which ends now."""
    while _held:
        shutil.rmtree(_held.pop(), ignore_errors=True)


def let_go(folder: Path, lock: int) -> None:
    """Remove a folder that is held."""
    shutil.rmtree(folder, ignore_errors=True)
    _held.discard(folder)
    os.close(lock)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder for the block."""
    folder, lock = held_folder()
    try:
        yield folder
    finally:
        let_go(folder, lock)


def _remove_left() -> None:
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(_prefix()):
                with suppress(OSError):
                    _remove_if_left(entry)


def _remove_if_left(entry: os.DirEntry[str]) -> None:
    found = entry.stat(follow_symlinks=False)
    # The folder for temporary files is everybody's: another user's folder is not ours to lock or remove.
    if found.st_uid != os.geteuid() or time.time() - found.st_mtime < _YOUNG_S:
        return
    lock = _opened(entry.path)
    try:
        # The lock of a process that lives raises BlockingIOError, which the caller suppresses.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry.path, ignore_errors=True)
    finally:
        os.close(lock)


def _opened(folder: str | Path) -> int:
    # Anybody can put a symbolic link of such a name into /tmp: O_NOFOLLOW refuses it.
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
