"""Journal of file checksums from an interrupted master run, so that `--resume` need not read them again.

A SQLite file beside the status file: it is looked up by path, and its size does not affect memory.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.errors import OutputError
from status_tool.printable import safe
from status_tool.vocabulary.schema import NewRow

_COLUMNS = ("path", "length", "modified_ms", "algorithm", "checksum", "crc32c")
_CREATE = (
    "create table if not exists file (path text primary key, length integer, modified_ms integer,"
    " algorithm text, checksum text, crc32c text) without rowid"
)
_CREATE_OWNER = "create table if not exists owner (name text not null)"
_BUSY_S = 1.0
"""For how long to wait for another process that has the file open."""
_OPEN: dict[str, Journal] = {}
_OPEN_LOCK = threading.Lock()


def opened(path: str) -> Journal:
    """Return the process's one journal of that name."""
    with _OPEN_LOCK:
        if path not in _OPEN:
            _OPEN[path] = Journal(path)
        return _OPEN[path]


def forget(path: Path) -> None:
    """Take the journal out of those that are open; the caller closes it. The file stays."""
    with _OPEN_LOCK:
        _OPEN.pop(str(path), None)


def refuse_in_use(path: Path) -> None:
    """Raise `OutputError` if another process writes to the journal: it writes the same status file."""
    if not path.exists():
        return
    # A file that is no database stays for `Journal` to report, unless the run removes it first.
    with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(_connect(str(path))) as found:
        try:
            found.execute("begin exclusive")
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                raise _in_use(str(path)) from None


def remove(path: Path) -> None:
    """Close and delete the journal. Does nothing if there is none."""
    with _OPEN_LOCK:
        journal = _OPEN.pop(str(path), None)
    if journal is not None:
        journal.close()
    # A run that is killed leaves SQLite's rollback journal, too.
    for suffix in ("", "-journal"):
        with contextlib.suppress(OSError):
            os.unlink(f"{path}{suffix}")


def _touch(path: str) -> None:
    """Create the file for the owner alone, as it lists names in HDFS. SQLite's own files get the same permissions."""
    with contextlib.suppress(OSError):  # SQLite reports the reason.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _connect(path: str) -> sqlite3.Connection:
    # All threads share one connection, each in its turn (`Journal._lock`).
    return sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False)


def _is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode == sqlite3.SQLITE_BUSY


def _in_use(path: str) -> OutputError:
    return OutputError(f"{safe(path)} is in use: another run writes the same FILE: let it end, or name another FILE")


class Journal:
    """Checksums by path, for many threads. Raises `OutputError` if the file cannot be used.

    No other process can use the file until it is closed: two runs would take each other's checksums for their own.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._clear():
            _touch(path)
            self._db = _connect(path)
            self._db.execute("pragma locking_mode = exclusive")
            # In this mode SQLite keeps a lock beyond the commit, but takes it at the first write: take it now.
            self._db.execute("begin exclusive")
            self._db.commit()
            # It only saves work: what is lost in a power failure is read again.
            self._db.execute("pragma synchronous = off")
            self._db.execute(_CREATE)
            self._db.execute(_CREATE_OWNER)
            self._db.commit()

    def keep_only(self, owner: str) -> int:
        """Forget what is not of this owner, an HDFS of one side; returns the number of files that were forgotten.

        What is added from now on is its.
        """
        with self._lock, self._clear():
            if self._db.execute("select name from owner").fetchall() == [(owner,)]:
                return 0
            forgotten = self._db.execute("delete from file").rowcount
            self._db.execute("delete from owner")
            self._db.execute("insert into owner values (?)", (owner,))
            self._db.commit()
            return forgotten

    def known(self, row: NewRow, deep: bool) -> NewRow | None:
        """Return the row with its checksum (and CRC if `deep`); None if the file is new or has changed since.

        FILE has the CRC of all files or of none: a check with `--deep=all` goes by that.
        """
        query = "select algorithm, checksum, crc32c from file where path = ? and length = ? and modified_ms = ?"
        with self._lock, self._clear():
            found = self._db.execute(query, (row["path"], row["length"], row["modified_ms"])).fetchone()
        if found is None or (deep and row["length"] and found[2] is None):
            return None
        return {**row, "algorithm": found[0], "checksum": found[1], "crc32c": found[2] if deep else None}

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep the batch's files that have a checksum."""
        files = batch.filter(pc.and_(pc.equal(batch["kind"], "file"), pc.is_valid(batch["checksum"])))
        if files.num_rows:
            values = zip(*(files[name].to_pylist() for name in _COLUMNS), strict=True)
            with self._lock, self._clear():
                self._db.executemany("insert or replace into file values (?, ?, ?, ?, ?, ?)", values)
                self._db.commit()

    def __len__(self) -> int:
        with self._lock, self._clear():
            return int(self._db.execute("select count(*) from file").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._db.close()

    @contextlib.contextmanager
    def _clear(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if _is_busy(error):
                raise _in_use(self._path) from None
            raise OutputError(f"cannot use {safe(self._path)} ({error}): remove it, or run without --resume") from None
