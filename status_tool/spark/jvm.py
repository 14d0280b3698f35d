"""Spark's JVM where it is started here: known from its fork on, so that nothing that ends a run leaves it behind.

A JVM whose start is broken off does not end by itself, although its standard input does: PySpark has removed the folder
in which it tells its port, so its main thread fails, and the thread that waits for connections keeps it alive.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from pyspark import SparkConf, java_gateway

_guard = threading.RLock()
"""Held while it is forked: whoever ends it then waits until it is known. A signal's handler may hold it already."""
_process: subprocess.Popen[bytes] | None = None
_is_wanted = False


class _Known(subprocess.Popen[bytes]):
    """What PySpark starts. All that comes of it is one process group, which Ctrl-C at a terminal does not reach."""

    def __init__(self, command: list[str], preexec_fn: object = None, **options: Any) -> None:
        global _process
        with _guard:
            if not _is_wanted:
                raise InterruptedError("the run has been ended")
            super().__init__(command, process_group=0, **options)
            _process = self


def launch(conf: SparkConf, console: IO[bytes]) -> Any:
    """Start a JVM whose output goes to `console`, permanently; returns PySpark's gateway. Raises what PySpark raises.

    In a thread, as Python handles signals in the main one: else their exception might hit after the fork and before the
    process is known. Whatever ends the wait ends the JVM.
    """
    global _is_wanted
    with ThreadPoolExecutor(1) as pool:
        try:
            _is_wanted = True
            return pool.submit(_launch, conf, console).result()
        except BaseException:
            kill()
            raise


def _launch(conf: SparkConf, console: IO[bytes]) -> Any:
    streams = {"stdout": console, "stderr": console}
    java_gateway.Popen = _Known  # type: ignore[attr-defined, assignment]
    try:
        return java_gateway.launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
    finally:
        java_gateway.Popen = subprocess.Popen  # type: ignore[attr-defined]


def kill() -> None:
    """End what was started here, without waiting for it; what is about to be started is not."""
    global _is_wanted
    with _guard:
        _is_wanted = False
        if _process is not None and _process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(_process.pid, signal.SIGKILL)


def end() -> None:
    """The same, and wait."""
    kill()
    if _process is not None:
        _process.wait()
