"""Ctrl-C, SIGTERM and SIGHUP: one line and an exit code at any moment of the console script's life."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import contextmanager, suppress

# Until this module is there, Ctrl-C is a traceback: it imports nothing that takes time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""All end a run in the same way, and differ in the exit code: 128 and the signal's number."""

_AGAIN_S = 0.02
END_S = 1.5
"""After a signal a service ends within this time, wherever that has hit it."""
INTERRUPTED = "interrupted; nothing was written"

received: list[int] = []
"""The signals that have ended the running command line."""

complaints: list[str] = []
"""The error that ended the running command line, once it has been told."""

_last_words: Callable[[], object] | None = None


def handle_signals() -> None:
    """Make signals end the run by `KeyboardInterrupt` from now on, so that nothing is left half-written."""
    for number in _heeded():
        signal.signal(number, _interrupt)
    sys.unraisablehook = _again_where_swallowed


def ignore_signals() -> None:
    """Ignore signals from now on: the run has ended, and the rest takes a moment."""
    if _are_handled():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def end_at_once() -> None:
    """Make signals end the process at once from now on: no run has begun yet."""
    for number in _heeded():
        signal.signal(number, _end)


def _are_handled() -> bool:
    """Return True if `handle_signals` handles the signals."""
    return all(signal.getsignal(number) is _interrupt for number in _heeded())


def _heeded() -> Iterator[signal.Signals]:
    """Yield the signals that end a run: not the one of a lost terminal under `nohup`, which has it ignored."""
    for number in SIGNALS:
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            yield number


@contextmanager
def loading() -> Iterator[None]:
    """Make a signal end the process at once while modules are imported: that takes long, and nothing has begun yet.

    Spark's JVM, which may start beside them, ends, too. Where another program has called `main`, its own handlers stay.
    """
    if not _are_handled():
        yield
        return
    # A half-imported module may swallow an exception, or show it as a traceback.
    end_at_once()
    # The collector takes a tenth of the time of the imports, and finds nothing.
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        handle_signals()


def end_soon(last_words: Callable[[], object]) -> None:
    """Make a signal end the process within `END_S` from now on, whatever it is doing then: for a service.

    `last_words` clean up where the time was too short for the usual way; they do not wait. Where another program has
    called `main`, its own handlers stay.
    """
    global _last_words
    if not _are_handled():
        return
    _last_words = last_words
    # A process has one such alarm. It is `_end_late`'s from now on, so nothing may use it to raise again.
    sys.unraisablehook = _quiet_about_signals
    # Once Python no longer handles signals itself, the alarm would end the process with a code of its own.
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)


def interruption() -> str:
    """Return the message for a run that a signal ended.

    A file may be complete by then, or a table changed, as in a service's rounds.
    """
    # Not at the top: this module is there before everything that takes time.
    from status_tool.atomic import changed, written

    if changed and _last_words is None:
        tables = " and ".join(sorted(changed))
        return f"interrupted; table {tables} may have been changed already: run the command again"
    return "interrupted" if written or _last_words is not None else INTERRUPTED


def _quiet_about_signals(unraisable: Any) -> None:
    if unraisable.exc_type is not KeyboardInterrupt:
        _unless_of_a_lost_jvm(unraisable)


def _again_where_swallowed(unraisable: Any) -> None:
    """Raise the interruption again if Python swallowed it.

    Python does so in finalizers and in callbacks of weak references, of which py4j has many.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        _unless_of_a_lost_jvm(unraisable)
    elif received:
        # Python swallows what is raised here as well: an alarm raises it.
        signal.signal(signal.SIGALRM, _interrupt_again)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


def _unless_of_a_lost_jvm(unraisable: Any) -> None:
    """Drop errors of finalizers that request something from a JVM that has ended."""
    package = unraisable.exc_type.__module__.partition(".")[0]
    if not received and package not in ("py4j", "pyspark") and not issubclass(unraisable.exc_type, ConnectionError):
        sys.__unraisablehook__(unraisable)


def _interrupt_again(_number: int, _frame: FrameType | None) -> None:
    if _are_handled():
        raise KeyboardInterrupt


def error_document(text: str, code: int) -> str:
    """Return the document that `--json` prints for a run that ends with an error."""
    import json

    return json.dumps({"error": text, "exit_code": code})


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if _last_words is not None:
        if received:
            return  # it is ending already
        # `KeyboardInterrupt` alone may not end a service: what answers no more may be waited for, and in a finalizer or
        # a callback of the garbage collector Python swallows it.
        signal.signal(signal.SIGALRM, _end_late)
        signal.setitimer(signal.ITIMER_REAL, END_S)
    received.append(number)
    raise KeyboardInterrupt


def _end_late(_number: int, _frame: FrameType | None) -> None:
    with suppress(Exception):
        if _last_words is not None:
            _last_words()
    if complaints:
        # The run has told its error, and says no second line.
        os._exit(128 + received[0])
    _end_saying(interruption(), received[0])


def _end(number: int, _frame: FrameType | None) -> None:
    # Whatever fails here, the process has to end.
    with suppress(Exception):
        # Not imported here, as that takes time: where it is not yet, it has begun nothing.
        if (jvm := sys.modules.get("status_tool.spark.jvm")) is not None:
            jvm.kill()
    _end_saying(INTERRUPTED, number)


def _end_saying(text: str, number: int) -> NoReturn:
    code = 128 + number
    # The signal may have hit a `print`, and Python's buffers refuse a reentrant call by a RuntimeError.
    os.write(sys.stderr.fileno(), f"status-tool: {text}\n".encode())
    # Nothing may follow a document that is out, or half of it.
    if "--json" in sys.argv and not getattr(sys.stdout, "is_begun", False):
        os.write(sys.stdout.fileno(), error_document(text, code).encode() + b"\n")
    # `sys.exit` raises, and a half-imported module or a finalizer may swallow that.
    os._exit(code)
