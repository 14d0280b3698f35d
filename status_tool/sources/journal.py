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
_OPEN: dict[str, Journal] = {}
_OPEN_LOCK = threading.Lock()


def opened(path: str) -> Journal:
    """Return the process's one journal of that name."""
    with _OPEN_LOCK:
        if path not in _OPEN:
            _OPEN[path] = Journal(path)
        return _OPEN[path]


def forget(path: Path) -> None:
    """Close the journal. The file stays."""
    with _OPEN_LOCK:
        _OPEN.pop(str(path), None)


def remove(path: Path) -> None:
    """Close and delete the journal. Does nothing if there is none."""
    with _OPEN_LOCK:
        journal = _OPEN.pop(str(path), None)
    if journal is not None:
        journal.close()
    for suffix in ("", "-journal"):
        with contextlib.suppress(OSError):
            os.unlink(f"{path}{suffix}")


def _touch(path: str) -> None:
    """Create the file for the owner alone, as it lists names in HDFS. SQLite's own files get the same permissions."""
    with contextlib.suppress(OSError):  # SQLite reports the reason.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


class Journal:
    """Checksums by path, for many threads. Raises `OutputError` if the file cannot be used."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._clear():
            _touch(path)
            self._db = sqlite3.connect(path, check_same_thread=False)
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
        """Return the row with its checksum (and CRC if `deep`); None if the file is new or has changed since."""
        query = "select algorithm, checksum, crc32c from file where path = ? and length = ? and modified_ms = ?"
        with self._lock, self._clear():
            found = self._db.execute(query, (row["path"], row["length"], row["modified_ms"])).fetchone()
        if found is None or (deep and row["length"] and found[2] is None):
            return None
        return {**row, "algorithm": found[0], "checksum": found[1], "crc32c": found[2]}

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
            raise OutputError(f"cannot use {safe(self._path)} ({error}): remove it, or run without --resume") from None
