"""Work and output of `status-tool rows`, once its options fit together.

Apart from `cli.rows` for the reason of `cli.running`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from status_tool.cli.options import print_answer
from status_tool.clients.config import Settings
from status_tool.digests.compare import Limits, Result, TableVerdict, compare, equal_at_once
from status_tool.digests.counted import rows_shown
from status_tool.digests.differences import Difference, cell_in_words
from status_tool.digests.families import comparable, describe_both, shipped_families
from status_tool.errors import EXIT_COMPLETE, EXIT_INCOMPLETE, EXIT_UNVERIFIABLE, ConfigurationError, UsageError
from status_tool.printable import counted, printable_key
from status_tool.report.progress import Progress, make_progress
from status_tool.sources.state_table import now_ms

VALUE_BYTES = 200
"""The part of a value that is shown."""


def limits_of(wait_s: float, rate: float | None, max_problems: int) -> Limits:
    """Return the limits of a comparison that begins now; `rate` is in MB per second and region server."""
    return Limits(now_ms(), wait_s, int((rate or 0) * 1_000_000), max_problems)


def compare_tables(
    master: Settings, slave: Settings, tables: Sequence[str], limits: Limits, *, as_json: bool, show_values: bool
) -> int:
    """Compare, print text or JSON, and return the exit code."""
    with make_progress() as progress:
        results = _compare(master, slave, tables, limits, progress)
    print_answer(_document(results, limits, show_values), _lines(results, show_values), as_json=as_json)
    return _CODES[_worst(results)]


def _compare(
    master: Settings, slave: Settings, tables: Sequence[str], limits: Limits, progress: Progress
) -> list[Result]:
    sides = describe_both(master, slave, tables, progress.step)
    if sides[0].id == sides[1].id:
        raise UsageError(f"--master-conf and --conf-dir name the same cluster {sides[0].id}")
    for name in tables:
        if name not in sides[0].tables:
            raise ConfigurationError(f"the master has no table {name}: check --table")
    shipped = {name: shipped_families(*sides, name) for name in tables}
    hows = {name: comparable(*sides, name, *shipped[name]) for name in tables if name in sides[1].tables}
    results: dict[str, Result] = {}
    if len(hows) > 1:
        # All servers digest all tables in parallel.
        progress.step(f"comparing {len(hows)} tables: rows digested on both sides")
        with rows_shown(progress) as counts:
            results = equal_at_once(*sides, hows, limits, counts)
    for name in tables:
        if name not in hows:
            families, notices = shipped[name]
            reasons = ("the table does not exist on the slave",)
            results[name] = Result(name, TableVerdict.DIFFERS, tuple(families), reasons=reasons, notices=notices)
        elif name not in results:
            progress.step(f"comparing {name}: rows digested on both sides")
            with rows_shown(progress) as counts:
                results[name] = compare(*sides, name, hows[name], limits, counts)
    return [results[name] for name in tables]


_CODES = {
    TableVerdict.DIFFERS: EXIT_INCOMPLETE,
    TableVerdict.UNVERIFIABLE: EXIT_UNVERIFIABLE,
    TableVerdict.EQUAL: EXIT_COMPLETE,
}
"""Exit codes, the worst first."""


def _worst(results: Sequence[Result]) -> TableVerdict:
    return next(verdict for verdict in _CODES if verdict in {TableVerdict.EQUAL, *(one.verdict for one in results)})


def _document(results: Sequence[Result], limits: Limits, show_values: bool) -> dict[str, Any]:
    verdict = _worst(results)
    return {
        "verdict": verdict,
        "exit_code": _CODES[verdict],
        "cut_ms": limits.cut_ms,
        "tables": [_table(result, show_values) for result in results],
    }


def _table(result: Result, show_values: bool) -> dict[str, Any]:
    return {
        "table": result.table,
        "verdict": result.verdict,
        "families": list(result.families),
        "rows": result.sums.rows,
        "cells": result.sums.cells,
        "cells_beyond_cut": result.sums.cells_beyond,
        "bytes": result.sums.bytes,
        "reasons": list(result.reasons),
        "notices": list(result.notices),
        "all_listed": result.is_all,
        "differences": [_cell(one, show_values) for one in result.differences],
    }


def _cell(one: Difference, show_values: bool) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "row": printable_key(one.row),
        "family": printable_key(one.family),
        "qualifier": printable_key(one.qualifier),
        "kind": one.kind,
        "master_ms": one.master_ms,
        "slave_ms": one.slave_ms,
    }
    if show_values:
        cell |= {"master_value": _value(one.master_value), "slave_value": _value(one.slave_value)}
    return cell


def _value(value: bytes | None) -> str | None:
    if value is None:
        return None
    return printable_key(value[:VALUE_BYTES]) + ("…" if len(value) > VALUE_BYTES else "")


_VERDICTS = {
    TableVerdict.EQUAL: "Rows are equal.",
    TableVerdict.DIFFERS: "Rows are NOT equal.",
    TableVerdict.UNVERIFIABLE: "Rows could not be verified.",
}


def _lines(results: Sequence[Result], show_values: bool) -> Iterator[str]:
    for result in results:
        yield from _table_lines(result, show_values)
        yield ""
    yield _VERDICTS[_worst(results)]


def _table_lines(result: Result, show_values: bool) -> Iterator[str]:
    sums = result.sums
    amounts = ((sums.rows, "row"), (sums.cells, "cell"), (sums.bytes, "byte"))
    counts = f"{', '.join(counted(*one) for one in amounts)} of families {', '.join(result.families)}"
    nothing = result.verdict is TableVerdict.UNVERIFIABLE and not sums.rows
    yield f"Table {result.table}: {result.verdict}" + ("" if nothing else f" ({counts} on the master)")
    yield from (f"   {reason}" for reason in result.reasons)
    yield from (f"   Note: {notice}" for notice in result.notices)
    yield from (f"   {_words(one, show_values)}" for one in result.differences)
    if not result.is_all:
        yield "   … and more: --max-problems lists more of them"
    if result.differences:
        yield (
            "   What to do: see `status-tool queues` on the master, as rows that replication has yet to ship look the "
            "same; else copy these rows with CopyTable or SyncTable and compare again"
        )


def _words(one: Difference, show_values: bool) -> str:
    cell = f"row {printable_key(one.row)}, column {printable_key(one.family + b':' + one.qualifier)}"
    words = cell_in_words(one)
    if not show_values:
        return f"{cell}: {words}"
    return f"{cell}: {words}; master {_value(one.master_value)}, slave {_value(one.slave_value)}"
