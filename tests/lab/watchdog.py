"""Ends a lab's servers when the lab's own process is gone, however it went (kill -9 included).

Run as a script with the parent's pid, the lab's mark and the folder to remove ("" to keep it). Standard input
is a pipe from the parent. Every server carries the mark in its environment: so they are found without any
register that could be out of date, and nothing else can be hit.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

MARK = "STATUS_TOOL_LAB"


def marked(mark: str) -> list[int]:
    """The pids of all living processes that were started with this mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # gone meanwhile, or another user's
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def kill_marked(mark: str) -> None:
    """Kill them until none is left; twice in a row, as one may just be starting."""
    quiet = 0
    while quiet < 2:
        pids = marked(mark)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if pids else quiet + 1
        time.sleep(0.1)


def _wait_for_end(parent: int) -> None:
    # Both signs are needed: the pipe's end may have been inherited by a forked child that lives on.
    while os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], 0.5)
        if ready and not os.read(0, 1):
            return


def main() -> None:
    parent, mark, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    _wait_for_end(parent)
    kill_marked(mark)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
