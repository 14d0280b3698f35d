"""What a process and those that it has started have cost so far, by /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_CPU, _START = slice(11, 15), 19
"""In /proc/PID/stat behind the name: utime, stime and those of children that have ended; when it was started."""


def tree(pid: int) -> Iterator[int]:
    """The process and all that it has started, as far as they run."""
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # a thread may end meanwhile
                for child in (task / "children").read_text().split():
                    yield from tree(int(child))


def cpu_s(pid: int) -> float:
    """Of the tree, with children that have ended."""
    return sum(sum(int(ticks) for ticks in _stat(one)[_CPU]) for one in tree(pid)) / _TICKS


def age_s(pid: int) -> float:
    """Since the process was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(_stat(pid)[_START]) / _TICKS


def peak_mib(pid: int) -> int:
    """The peaks of resident memory of all processes of the tree, added up."""
    return sum(_peak_mib(one) for one in tree(pid))


def _stat(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return ["0"] * (_START + 1)


def _peak_mib(pid: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")), 0)
    return 0
