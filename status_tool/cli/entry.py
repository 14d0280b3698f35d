"""The console script: signals first, then everything that takes a second to import."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Both end a run in the same way, and differ in the exit code."""


def entry() -> None:
    """Run the command line and exit with the contract's exit code; Ctrl-C and SIGTERM are one line at any moment."""
    with loading():
        from status_tool.cli.main import interrupt, main

    for number in SIGNALS:
        signal.signal(number, interrupt)
    # What libraries log (kazoo a line for each refused connection) is in our own error, in one line.
    logging.getLogger().addHandler(logging.NullHandler())
    sys.exit(main(sys.argv[1:]))


@contextmanager
def loading() -> Iterator[None]:
    """While modules are imported and nothing has begun yet, a signal ends the process at once.

    Python would die of SIGTERM without a word, and an exception that is raised in a half-imported module may be
    swallowed there, or shown as a traceback.
    """
    before = [signal.getsignal(number) for number in SIGNALS]
    if not _are_ours(before):
        yield
        return
    for number in SIGNALS:
        signal.signal(number, _ended_while_loading)
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


def _are_ours(handlers: Sequence[object]) -> bool:
    """Whether this process is the console script, and not one that calls `main` and handles signals itself."""
    main = sys.modules.get("status_tool.cli.main")
    return main is None or all(handler is main.interrupt for handler in handlers)


def _ended_while_loading(number: int, _frame: FrameType | None) -> None:
    text, code = "interrupted; nothing was written", 128 + number
    os.write(sys.stderr.fileno(), f"status-tool: {text}\n".encode())
    if "--json" in sys.argv:
        os.write(sys.stdout.fileno(), json.dumps({"error": text, "exit_code": code}).encode() + b"\n")
    os._exit(code)
