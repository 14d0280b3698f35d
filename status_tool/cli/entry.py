"""The console script: signals first, then everything that takes a second to import."""

from __future__ import annotations

import logging
import os
import signal
import sys
from types import FrameType

from status_tool.errors import EXIT_INTERRUPTED


def entry() -> None:
    """Run the command line and exit with the contract's exit code; Ctrl-C and SIGTERM are one line at any moment."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ended_while_loading)
    # Only now: importing Spark, Arrow and Thrift takes most of a second, in which Python would print a traceback
    # for Ctrl-C and die of SIGTERM without a word.
    from status_tool.cli.main import main

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
    # What libraries log (kazoo a line for each refused connection) is in our own error, in one line.
    logging.getLogger().addHandler(logging.NullHandler())
    sys.exit(main(sys.argv[1:]))


def _ended_while_loading(_signal: int, _frame: FrameType | None) -> None:
    """Nothing has begun that would have to be ended, and modules that are half imported must not see an exception."""
    os.write(sys.stderr.fileno(), b"status-tool: interrupted; nothing was written\n")
    os._exit(EXIT_INTERRUPTED)


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
