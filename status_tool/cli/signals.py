"""Ctrl-C and SIGTERM: one line and an exit code at any moment of the console script's life."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Both end a run in the same way, and differ in the exit code: 128 and the signal's number."""

INTERRUPTED = "interrupted; nothing was written"

received: list[int] = []
"""The signals that have ended the running command line."""


def handle_signals() -> None:
    """From now on they end the run by `KeyboardInterrupt`, so that nothing is left half-written."""
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def end_at_once() -> None:
    """From now on they end the process at once: before a run has begun."""
    for number in SIGNALS:
        signal.signal(number, _end)


@contextmanager
def loading() -> Iterator[None]:
    """While modules are imported that take long, and nothing has begun yet, a signal ends the process at once.

    An exception that is raised in a half-imported module may be swallowed there, or shown as a traceback. Where another
    program has called `main`, its own handlers stay.
    """
    if not all(signal.getsignal(number) is _interrupt for number in SIGNALS):
        yield
        return
    end_at_once()
    try:
        yield
    finally:
        handle_signals()


def error_document(text: str, code: int) -> str:
    """What `--json` prints instead of a document where a run ends with an error."""
    return json.dumps({"error": text, "exit_code": code})


def _interrupt(number: int, _frame: FrameType | None) -> None:
    received.append(number)
    raise KeyboardInterrupt


def _end(number: int, _frame: FrameType | None) -> None:
    code = 128 + number
    os.write(sys.stderr.fileno(), f"status-tool: {INTERRUPTED}\n".encode())
    if "--json" in sys.argv:
        os.write(sys.stdout.fileno(), error_document(INTERRUPTED, code).encode() + b"\n")
    os._exit(code)
