"""Spark's JVM where it is started here: known from its fork on, so that nothing that ends a run leaves it behind.

It is started directly where that will do (`settings.starts_directly`), as soon as the options are known to be right:
what else has to be imported and read is, meanwhile. A JVM whose start is broken off does not end by itself, although
its standard input does, where the folder is gone in which it tells its port: its main thread fails, and the thread that
waits for connections keeps it alive.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from status_tool.clients.java import java
from status_tool.spark.launch import as_scripts_set, direct_command
from status_tool.spark.settings import starts_directly
from status_tool.temporary import held_folder, let_go

_POLL_S = 0.02
_END_S = 10
"""For how long at most a killed JVM is waited for: the kernel frees its memory first, which takes long under load."""
_guard = threading.RLock()
"""Held while it is forked: whoever ends it then waits until it is known. A signal's handler may hold it already."""
_process: subprocess.Popen[bytes] | None = None
_is_wanted = False


@dataclass
class _Early:
    """A JVM that has been started directly."""

    settings: Mapping[str, str]
    folder: Path
    """Where it tells its port, and puts its temporary files."""
    console: IO[bytes]
    is_taken: bool = False
    """True once a session uses it."""
    client: Any = None
    """Py4J's, once connected."""

    @property
    def port_file(self) -> Path:
        """Its port and its secret, once it listens."""
        return self.folder / "connection.info"


_early: _Early | None = None
_held: tuple[Path, int] | None = None
"""Its folder, known before there is a JVM, and the folder's lock."""


class _Known(subprocess.Popen[bytes]):
    """A JVM or what starts one: all of it is one process group, which Ctrl-C at a terminal does not reach."""

    def __init__(self, command: list[str], preexec_fn: object = None, **options: Any) -> None:
        global _process
        with _guard:
            if not _is_wanted:
                raise InterruptedError("the run has been ended")
            # PySpark hands over a `preexec_fn` that ignores SIGINT. It is not safe beside threads (`subprocess`), and a
            # process group of its own does without.
            super().__init__(command, process_group=0, **options)
            _process = self


def begin(settings: dict[str, str]) -> None:
    """Start it now, if it can be started directly, for a session with these very settings later.

    Raises `ConfigurationError` if there is no Java, and OSError.
    """
    if not starts_directly(settings) or (_process is not None and _process.poll() is None):
        return
    _in_thread(lambda: _start(settings))


def gateway(settings: dict[str, str], conf: Any, console: IO[bytes]) -> Any:
    """PySpark's gateway to the JVM that was begun with these settings, or to a new one. Raises what PySpark raises.

    What it prints goes to `console`, permanently. Whatever ends the wait ends the JVM.
    """
    java("Spark")
    # A JVM has its settings from its command line: one that was begun with others is of no use.
    if _early is not None and (_early.is_taken or _early.settings != settings):
        end()
    begin(settings)
    if _early is None:
        return _in_thread(lambda: _submit(conf, console))
    return _in_thread(lambda: _connected(_early, console))


def is_direct() -> bool:
    """Return True if a session uses a JVM that was started directly, whose temporary files go with it."""
    return _early is not None and _early.is_taken


def end_unused() -> None:
    """End one that was begun and that no session has come to use."""
    if _early is not None and not _early.is_taken:
        end()


def kill() -> None:
    """End what was started here, and remove its folder; what is about to be started is not."""
    global _is_wanted
    with _guard:
        _is_wanted = False
        if _process is not None and _process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(_process.pid, signal.SIGKILL)
                _wait_for_last_thread(_process.pid)
        if _held is not None:
            shutil.rmtree(_held[0], ignore_errors=True)


def _wait_for_last_thread(pid: int) -> None:
    """Wait until the last thread of a killed process has ended: until then it may create files.

    A signal's handler may have interrupted `Popen.wait`, which holds a lock: the kernel is asked without it.
    """
    until = time.monotonic() + _END_S
    with suppress(ChildProcessError):
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None and time.monotonic() < until:
            time.sleep(_POLL_S)


def end() -> None:
    """The same, and forget it."""
    global _early
    if _early is not None and _early.client is not None:
        # A thread of Py4J tells it of each object that Python has collected, and would print that it cannot, unless it
        # may try again; then it finds that there is no connection.
        _early.client._should_retry = lambda *_: True
        _early.client.is_connected = False
    kill()
    if _process is not None:
        _process.wait()  # `kill` only looks (`WNOWAIT`)
    _early = None


def process() -> subprocess.Popen[bytes] | None:
    """Return the process that was started last."""
    return _process


def _in_thread(call: Callable[[], Any]) -> Any:
    """Call in another thread. In the main one a signal's exception might hit after the fork, with the child unknown."""
    global _is_wanted
    # The pool ends after `kill`: it waits for its thread, which may be waiting for the JVM.
    with ThreadPoolExecutor(1) as pool:
        try:
            _is_wanted = True
            return pool.submit(call).result()
        except BaseException:
            kill()
            raise


def _start(settings: dict[str, str]) -> None:
    """Directly, if Spark's launcher says how."""
    global _early, _held
    with _guard:
        if not _is_wanted:
            raise InterruptedError("the run has been ended")
        before, _held = _held, None
        if before is not None:
            let_go(*before)
        _held = held_folder()
        folder = _held[0]
    early = _Early(settings, folder, tempfile.TemporaryFile())  # noqa: SIM115 - as long as the JVM
    try:
        if (command := direct_command(settings, folder)) is not None:
            environment = os.environ | {**as_scripts_set(), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(early.port_file)}
            # Once it has told its port, `PythonGatewayServer` exits at the end of stdin, also after our `kill -9`.
            _Known(command, stdin=subprocess.PIPE, stdout=early.console, stderr=early.console, env=environment)
            _early = early
            atexit.register(end)
    finally:
        if _early is not early:
            shutil.rmtree(folder, ignore_errors=True)


def _connected(early: _Early, console: IO[bytes]) -> Any:
    from pyspark import java_gateway
    from pyspark.errors import PySparkRuntimeError

    assert _process is not None
    early.is_taken = True
    while not early.port_file.exists():
        if _process.poll() is not None:
            early.console.seek(0)
            shutil.copyfileobj(early.console, console)
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        time.sleep(_POLL_S)
    # `PythonGatewayServer` writes it under another name first: once it is there, it is whole.
    told = early.port_file.read_bytes()
    port, length = struct.unpack_from("!ii", told)
    secret = told[8 : 8 + length].decode()
    # PySpark's own way to a JVM that somebody else has started.
    connection = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(connection)
    try:
        gateway = java_gateway.launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        # `settings.submitted`, here and in processes started later, would take them for those of spark-submit.
        for name in connection:
            os.environ.pop(name)
    gateway.proc, early.client = _process, gateway._gateway_client
    return gateway


def _submit(conf: Any, console: IO[bytes]) -> Any:
    """Start the JVM by Spark's scripts."""
    from pyspark import java_gateway

    streams = {"stdout": console, "stderr": console}
    java_gateway.Popen = _Known  # type: ignore[attr-defined, assignment]
    try:
        return java_gateway.launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
    finally:
        java_gateway.Popen = subprocess.Popen  # type: ignore[attr-defined]
