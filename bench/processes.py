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
_SCHED_CLOCK = 2
"""With a pid, names the clock of all that a process has spent (clock_getcpuclockid(3)), to the nanosecond."""
_COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")
"""Names of a JVM's JIT compiler threads, as the kernel cuts them off."""


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


def jvm_cpu_s(pid: int) -> float:
    """Of one JVM, but for its JIT compiler, which ends once the program is warm."""
    return time.clock_gettime(~pid << 3 | _SCHED_CLOCK) - _compiling_s(pid)


def _compiling_s(pid: int) -> float:
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread may end meanwhile
            if (task / "comm").read_text().strip() in _COMPILERS:
                nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def written_bytes(pid: int) -> int:
    """By one process, to files and sockets."""
    counts = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(counts["wchar"])


def age_s(pid: int) -> float:
    """Since the process was started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(_stat(pid)[_START]) / _TICKS


def peak_mib(pid: int) -> int:
    """The peaks of resident memory of all processes of the tree, added up."""
    return round(sum(memory_mib(one, "VmHWM") for one in tree(pid)))


def _stat(pid: int) -> list[str]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return ["0"] * (_START + 1)


def memory_mib(pid: int, what: str) -> float:
    """One process's memory by a name of /proc/PID/status: `VmHWM` is the peak, `VmRSS` what is resident now."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{what}:")), 0)
    return 0
