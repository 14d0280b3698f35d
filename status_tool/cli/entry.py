"""The console script: signals first, then everything that takes a second to import."""

from __future__ import annotations

import logging
import sys

from status_tool.cli.signals import end_at_once, handle_signals


def entry() -> None:
    """Run the command line and exit with the contract's exit code."""
    # Python would print a traceback for Ctrl-C in an import, and die of SIGTERM without a word.
    end_at_once()
    from status_tool.cli.main import main

    # What libraries log (kazoo a line for each refused connection) is in our own error, in one line.
    logging.getLogger().addHandler(logging.NullHandler())
    handle_signals()
    exit_code = main(sys.argv[1:])
    # CPython ends by SIGINT itself, whatever the exit code, once `KeyboardInterrupt` has passed an `exec` of a text, as
    # where a named tuple is made: until the next one, as it takes that for an interactive line.
    exec("")
    sys.exit(exit_code)
