"""The console script: signals first, then everything that takes a second to import."""

from __future__ import annotations

import io
import os
import sys

from status_tool.cli.signals import end_at_once, handle_signals, received
from status_tool.errors import EXIT_ERROR


def entry() -> None:
    """Run the command line and exit with the contract's exit code."""
    # The handlers of signals write to stderr, so there has to be one before them.
    _with_all_streams()
    # Python would print a traceback for Ctrl-C in an import, and die of SIGTERM without a word.
    end_at_once()
    import logging

    from status_tool.cli.main import main, write_no_more

    # Our own error has in one line what libraries log (kazoo a line for each refused connection).
    logging.getLogger().addHandler(logging.NullHandler())
    # Not earlier: a module that is half imported may swallow `KeyboardInterrupt`.
    handle_signals()
    exit_code = main(sys.argv[1:])
    if received:
        # A reader that is slow, or stopped, must not hold up the end, as Python writes the rest of an answer.
        write_no_more()
    # CPython ends by SIGINT itself, whatever the exit code, once `KeyboardInterrupt` has passed an `exec` of a text, as
    # where a named tuple is made: until the next one, as it takes that for an interactive line.
    exec("")
    sys.exit(exit_code)


def _with_all_streams() -> None:
    """Open a closed stdin or stderr as an empty one, and end the process if stdout is closed."""
    for number in (0, 2):
        try:
            os.fstat(number)
        except OSError:
            # The next file that is opened would get this number, and take what is meant for stderr.
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    # Python makes no stream for a descriptor that was closed when the process began.
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if sys.stdout is None:
        print("status-tool: stdout is closed: redirect it to /dev/null where the exit code is enough", file=sys.stderr)
        sys.exit(EXIT_ERROR)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot encode a character of a table's name must not end a run.
        sys.stdout.reconfigure(errors="backslashreplace")
