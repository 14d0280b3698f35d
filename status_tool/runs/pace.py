"""Durations of the last run of each kind, kept in the user's cache, from which a plan estimates the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from status_tool.atomic import atomic_write
from status_tool.cache import cache_folder, is_ours
from status_tool.errors import OutputError
from status_tool.printable import duration, iso

_NAME = "runs.json"
_VERSION = 1
_KINDS = 100
"""Number of kinds of runs that are kept, the latest ones."""
_MAX_BYTES = 1 << 20
_READ = ("stream", "segment", "file")
"""Kinds of rows whose number decides how long a run takes."""


@dataclass(frozen=True)
class RunKind:
    """Runs that take about as long for as many rows."""

    form: str
    """Form of the run, as `run -m -o`."""
    cluster: str
    """The cluster's key; of a check the id of FILE's cluster."""
    hbase: bool
    hdfs: bool
    deep: bool = False
    narrowed: bool = False
    """True if only some tables or paths are read."""

    @property
    def key(self) -> str:
        """Name of the kind in the cache."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class LastRun:
    """Duration of a run, its number of streams and files, and its end."""

    took_ms: int
    rows: int
    ended_ms: int


def rows_read(counts: Mapping[str, int]) -> int:
    """Return the number of a status file's rows that count as read: streams or segments, and files."""
    return sum(counts.get(kind, 0) for kind in _READ)


def remember(kind: RunKind, last: LastRun) -> None:
    """Keep it, if there is a cache; an error is none of the run."""
    folder = cache_folder()
    if folder is None:
        return
    known = {**_known(folder), kind.key: last}
    latest = sorted(known.items(), key=lambda one: one[1].ended_ms)[-_KINDS:]
    document = {"version": _VERSION, "runs": {key: asdict(run) for key, run in latest}}
    with suppress(OutputError), atomic_write(folder / _NAME) as stream:
        json.dump(document, stream)


def last_run(kind: RunKind) -> LastRun | None:
    """Return the last run of this kind; None if none is known, or the cache is damaged."""
    folder = cache_folder()
    return None if folder is None else _known(folder).get(kind.key)


def expected(last: LastRun, rows: int | None = None) -> str:
    """Return the estimate for `rows` in words, in proportion to the last run's. None means as many as then."""
    took_ms = last.took_ms if not rows or not last.rows else last.took_ms * rows // last.rows
    then = f"the last such run, {iso(last.ended_ms)}, took {duration(last.took_ms)} for {last.rows} streams and files"
    return f"about {duration(took_ms)}: {then}" + (f"; there are {rows} now" if rows not in (None, last.rows) else "")


def _known(folder: Path) -> dict[str, LastRun]:
    file = folder / _NAME
    try:
        if not is_ours(file) or file.stat().st_size > _MAX_BYTES:
            return {}
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        return {}
    runs = document.get("runs")
    found = {key: _last_run_of(one) for key, one in runs.items()} if isinstance(runs, dict) else {}
    return {key: run for key, run in found.items() if run is not None}


def _last_run_of(document: Any) -> LastRun | None:
    if not isinstance(document, dict):
        return None
    values = [value for name in ("took_ms", "rows", "ended_ms") if type(value := document.get(name)) is int]
    if len(values) != 3 or not all(0 <= value < 1 << 48 for value in values):
        return None
    return LastRun(*values)
