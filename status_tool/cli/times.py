"""Times on the command line: epoch milliseconds, or ISO 8601 with its zone."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from status_tool.errors import UsageError
from status_tool.vocabulary.names import plain_name
from status_tool.vocabulary.scope import Baseline, TableFilter

SECONDS_LIMIT = 100_000_000_000
"""Below it, a number of epoch milliseconds would lie before 1973: it is meant as seconds."""
LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last that `datetime` knows."""


def parse_time(text: str | None, option: str) -> int | None:
    """Return the epoch milliseconds that an option's value means; None stays None. Raises `UsageError`."""
    if text is None:
        return None
    try:
        return _checked(int(text), option)
    except ValueError:
        return _checked(_iso(text, option), option)


def parse_baseline(values: Collection[str], chosen: TableFilter) -> Baseline:
    """Parse `--since TIME` and `--since TABLE=TIME`. Raises `UsageError` for one that contradicts another option.

    `chosen` is what `--table` and `--namespace` name.
    """
    times: dict[str | None, int | None] = {}
    for value in values:
        name, separator, time = value.rpartition("=")
        table = plain_name(name) if separator else None
        if table in times:
            raise UsageError(f"--since is given twice{f' for table {table}' if table else ''}: give one time")
        if separator and not table:
            raise UsageError(f"--since {value}: name the table before the =")
        if table and not chosen.holds(table):
            raise UsageError(f"--since {value}: {table} is not in scope (--table, --namespace)")
        times[table] = parse_time(time, "--since")
    everything_ms = times.pop(None, None)
    return Baseline(everything_ms, {table: time for table, time in times.items() if table and time is not None})


def _iso(text: str, option: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text}: expected milliseconds since 1970, or a time as 2026-01-31T12:00:00Z"
        ) from None
    if moment.tzinfo is None:  # the two clusters, and whoever types this, may live in different zones
        raise UsageError(f"{option} {text}: add the zone, as in 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00")
    return int(moment.timestamp() * 1000)


def _checked(value: int, option: str) -> int:
    if value <= 0:
        raise UsageError(f"{option} {value}: expected a time in milliseconds since 1970")
    if value < SECONDS_LIMIT:
        raise UsageError(f"{option} {value} looks like seconds: give milliseconds since 1970 ({value * 1000}?)")
    if value > LAST_MS:
        raise UsageError(f"{option} {value}: lies after the year 9999; expected milliseconds since 1970")
    return value
