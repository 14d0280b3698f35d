"""History of the rounds of `status-tool watch`, in SQLite: since when something is wrong, and how it moved."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from status_tool.atomic import PRIVATE
from status_tool.errors import ConfigurationError, OutputError
from status_tool.vocabulary.outcome import Moment, Outcome
from status_tool.vocabulary.verdicts import Status

_VERSION = 1
"""Of the tables below, as SQLite's `user_version`."""
KEPT_MS = 90 * 86_400_000
"""Rounds are forgotten after this time."""
MOMENTS = 2_000
"""Number of rounds that the page draws at most."""
_MEMORY = ":memory:"
_WAIT_S = 5.0
"""Time that another process may hold the file."""
_TABLES = """
CREATE TABLE round (
  id INTEGER PRIMARY KEY, pair TEXT NOT NULL, started_ms INTEGER NOT NULL, took_ms INTEGER NOT NULL,
  verdict TEXT, error TEXT, cut_ms INTEGER, regions INTEGER, regions_at_fault INTEGER,
  files INTEGER, files_at_fault INTEGER, lag_ms INTEGER, queued_bytes INTEGER);
CREATE INDEX round_by_pair ON round (pair, id);
CREATE TABLE table_at_fault (
  round INTEGER NOT NULL REFERENCES round ON DELETE CASCADE, name TEXT NOT NULL, worst TEXT NOT NULL,
  PRIMARY KEY (round, name)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class CheckRound:
    """One round: an outcome, or the error that prevented it."""

    started_ms: int
    took_s: float
    outcome: Outcome | None
    error: str = ""

    @property
    def regions(self) -> tuple[int, int]:
        """Return the number of regions in scope, and of those that are not complete."""
        counts = self.outcome.hbase.regions if self.outcome and self.outcome.hbase else {}
        total = sum(counts.values())
        return total, total - counts.get(Status.COMPLETE, 0)

    @property
    def files(self) -> tuple[int, int]:
        """Return the number of files, and of those not proven equal."""
        hdfs = self.outcome.hdfs if self.outcome else None
        return (0, 0) if hdfs is None else (sum(hdfs.files.values()), hdfs.at_fault)

    @property
    def lag_ms(self) -> int | None:
        """Lag of the slowest region."""
        return self.outcome.hbase.worst_lag_ms if self.outcome and self.outcome.hbase else None


class History:
    """Rounds of pairs of clusters, each pair by itself; in memory without a file. What limits a check is part of it.

    One process at a time writes a file. Raises `ConfigurationError` for one that is not a history, `OutputError`
    where nothing can be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        with self._errors():
            if path is not None:
                # SQLite itself would create it with whatever the umask leaves.
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))
            self._database = sqlite3.connect(path or _MEMORY, timeout=_WAIT_S)
            # SQLite's default is off: rounds that are forgotten would leave their rows in `table_at_fault`.
            self._database.execute("PRAGMA foreign_keys = ON")
            self._create()
            last = self._database.execute("SELECT pair FROM round ORDER BY id DESC LIMIT 1").fetchone()
        self._pair: str = last[0] if last is not None else ""
        """The pair of the last outcome: rounds without a verdict are counted to it."""

    def _create(self) -> None:
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        tables = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if version == 0 and tables == 0:
            # One transaction: after a kill in between, tables without a version would be refused as no history.
            self._database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")
        elif version != _VERSION:
            raise ConfigurationError(
                f"{self._path} is not a history that this version of status-tool has written: name another file"
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            # SQLite's text for SQLITE_NOTADB, a file that begins otherwise than a database does.
            if "not a database" in str(error):
                raise ConfigurationError(f"{self._path} is not a history of status-tool: name another file") from None
            raise OutputError(f"cannot write the history {self._path}: {error}") from None
        except OSError as error:
            raise OutputError(f"cannot write the history {self._path}: {error.strerror}") from None

    def add(self, done: CheckRound) -> None:
        """Keep a round; what is older than `KEPT_MS` is forgotten. Raises `OutputError`."""
        outcome = done.outcome
        if outcome is not None:
            self._pair = _pair_of(outcome)
        regions, files = done.regions, done.files
        # `with self._database` is one transaction: a kill leaves the round with its tables, or neither.
        with self._errors(), self._database:
            number = self._database.execute(
                "INSERT INTO round VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(self._pair, done.started_ms, int(done.took_s * 1000)),
                    *(outcome and str(outcome.verdict), done.error or None, outcome and outcome.cut_ms),
                    *(*regions, *files, done.lag_ms, _most(outcome.queued_bytes if outcome else None)),
                ),
            ).lastrowid
            lines = outcome.overview.tables if outcome is not None else ()
            self._database.executemany(
                "INSERT INTO table_at_fault VALUES (?, ?, ?)",
                [(number, line.table, str(line.worst)) for line in lines if line.worst is not Status.COMPLETE],
            )
            self._database.execute("DELETE FROM round WHERE started_ms < ?", (done.started_ms - KEPT_MS,))

    def verdict_since_ms(self) -> int | None:
        """Time when the current verdict was first found, without another in between; errors in between do not count."""
        # By `id`, not by time: the clock may be set back between two rounds.
        ((since_ms,),) = self._read(
            "SELECT min(started_ms) FROM round WHERE pair = :pair AND verdict IS NOT NULL AND id > coalesce("
            "(SELECT max(id) FROM round WHERE pair = :pair AND verdict IS NOT NULL AND verdict <> (SELECT verdict FROM"
            " round WHERE pair = :pair AND verdict IS NOT NULL ORDER BY id DESC LIMIT 1)), 0)"
        )
        return cast(int | None, since_ms)

    def errors_in_a_row(self) -> int:
        """Number of rounds without a verdict since the last one that had one."""
        ((count,),) = self._read(
            "SELECT count(*) FROM round WHERE pair = :pair AND id > coalesce("
            "(SELECT max(id) FROM round WHERE pair = :pair AND verdict IS NOT NULL), 0)"
        )
        return int(count)

    def tables_since_ms(self) -> dict[str, int]:
        """Return the tables at fault in the last round with a verdict, and since when without a good round between."""
        rows = self._read(
            "SELECT name, (SELECT min(started_ms) FROM round WHERE pair = :pair AND verdict IS NOT NULL AND id >"
            " coalesce((SELECT max(id) FROM round AS good WHERE pair = :pair AND verdict IS NOT NULL AND NOT EXISTS"
            " (SELECT 1 FROM table_at_fault AS same WHERE same.round = good.id AND same.name = bad.name)), 0))"
            " FROM table_at_fault AS bad WHERE round ="
            " (SELECT max(id) FROM round WHERE pair = :pair AND verdict IS NOT NULL) ORDER BY name"
        )
        return dict(rows)

    def moments(self, of: Outcome | None = None) -> Sequence[Moment]:
        """Return the last rounds, at most `MOMENTS`, oldest first, of the pair of an outcome; None: of the last one."""
        rows = self._read(
            "SELECT started_ms, verdict, regions_at_fault, files_at_fault, lag_ms FROM round WHERE pair = :pair"
            f" ORDER BY id DESC LIMIT {MOMENTS}",
            self._pair if of is None else _pair_of(of),
        )
        return tuple(Moment(*row) for row in reversed(rows))

    def _read(self, query: str, pair: str | None = None) -> list[Any]:
        """Return the rows of a query about a pair; None: the last one."""
        with self._errors():
            return self._database.execute(query, {"pair": self._pair if pair is None else pair}).fetchall()

    def close(self) -> None:
        """Release the file."""
        self._database.close()


def _most(count: int | None) -> int | None:
    """Return a count as SQLite can keep it: what a damaged FILE has in its queues may add up to more."""
    return None if count is None else min(count, (1 << 63) - 1)


def _pair_of(outcome: Outcome) -> str:
    # With the limits: it was no complete check since the time when one of fewer tables was.
    clusters = (outcome.master_cluster_id, outcome.slave_cluster_id, outcome.peer_id or "")
    return "/".join((*clusters, *outcome.limits))
