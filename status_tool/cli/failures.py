"""A check that ended with an error, in the files that outlive it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from status_tool.atomic import PUBLIC, atomic_write
from status_tool.cli.signals import received
from status_tool.errors import StatusToolError


@contextmanager
def failure_in_metrics(metrics: Path | None, started_s: float) -> Iterator[None]:
    """Record a failed check in its metrics, too; otherwise an older verdict would look current.

    `started_s` is when it began, on the monotonic clock. The error goes on; one of writing the metrics does not count.
    """
    try:
        yield
    except Exception:
        # A check that a signal has ended has not failed, just as where the signal ends the run by itself.
        if metrics is not None and not received:
            from status_tool.report.metrics import MetricsReporter, before

            # The older file lies in its place until the block ends, so `before` can read it.
            with suppress(StatusToolError), atomic_write(metrics, PUBLIC) as stream:
                MetricsReporter(None, time.monotonic() - started_s, before(metrics)).write_failure(stream)
        raise
