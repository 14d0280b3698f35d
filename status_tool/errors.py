"""Errors a user can cause, each with the exit code the contract gives it."""

from __future__ import annotations

import os

EXIT_COMPLETE = 0
EXIT_INCOMPLETE = 1
EXIT_ERROR = 2
EXIT_UNVERIFIABLE = 3
EXIT_INTERRUPTED = 130
"""Exit code by which a shell shows SIGINT: 128 and the signal's number, as for any other signal."""


class StatusToolError(Exception):
    """Base of every error that ends as one line on stderr; the message says what to do."""

    exit_code: int = EXIT_ERROR


class UsageError(StatusToolError):
    """The arguments do not fit together."""


class ConfigurationError(StatusToolError):
    """A site file, endpoint or setting is missing or wrong."""


class ConnectionFailed(StatusToolError):
    """A server that is needed cannot be reached, or stopped answering."""


class StatusFileError(StatusToolError):
    """A status file is missing, damaged, foreign, too new, or about the wrong cluster."""


class OutputError(StatusToolError):
    """A file cannot be written; an older one under that name is untouched."""


class Interrupted(StatusToolError):
    """Stopped by the user."""

    exit_code = EXIT_INTERRUPTED


def unexpected(error: BaseException) -> str:
    """Return what to say of an error that no user can cause."""
    try:
        said = str(error)
    except Exception:
        said = "no message"  # Spark's errors ask the JVM for theirs, which may be gone
    return (
        f"unexpected {type(error).__name__}: {said}; this is a bug in status-tool (STATUS_TOOL_TRACEBACK=1 shows where)"
    )


def is_traceback_wanted() -> bool:
    """Return True if an unexpected error shall not end as one line."""
    return bool(os.environ.get("STATUS_TOOL_TRACEBACK"))
