"""A state table as its client meets it: cells with timestamps, and writes that fail, come late, in part or twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from status_tool.vocabulary.state_rows import column

Cells = dict[bytes, tuple[bytes, int]]
Write = tuple[bytes, Cells]

SERVER_TIME = -1
"""Instead of a timestamp: the table's own clock when the write arrives (HConstants.LATEST_TIMESTAMP)."""

APPLIED, REFUSED, APPLIED_BUT_FAILED, LATE, PARTLY = range(5)
"""What becomes of a write; all but the first look like a failure to the client."""


class StoreError(Exception):
    """What the client sees of a write or read that failed."""


def cells(timestamp: int, **values: int | bytes | str | None) -> Cells:
    """Cells named as in docs/formats.md; None: no cell."""
    return {_column(name): (encode(value), timestamp) for name, value in values.items() if value is not None}


@cache
def _column(name: str) -> bytes:
    return column(name.encode())


def encode(value: int | bytes | str) -> bytes:
    """A cell's value as the trackers write it."""
    if isinstance(value, int):
        return value.to_bytes(8, "big", signed=True)
    return value.encode() if isinstance(value, str) else value


@dataclass
class Store:
    """One cluster's table."""

    rows: dict[bytes, Cells] = field(default_factory=dict)
    down: bool = False
    late: list[Write] = field(default_factory=list)
    """Given up by their client, still on their way."""
    clock: int = 0
    erased: dict[bytes, int] = field(default_factory=dict)
    """Rows that were deleted, up to which timestamp: until a major compaction that hides what comes later as well."""

    def lose(self) -> None:
        """It is dropped, and made anew."""
        self.rows.clear()
        self.late.clear()
        self.erased.clear()

    def lose_range(self, start: bytes, stop: bytes) -> None:
        """A region is truncated; writes that are on their way still come."""
        self.rows = {key: row for key, row in self.rows.items() if not start <= key < stop}
        self.erased = {key: newest for key, newest in self.erased.items() if not start <= key < stop}

    def snapshot(self) -> dict[bytes, Cells]:
        return {key: dict(row) for key, row in self.rows.items()}

    def restore(self, snapshot: Mapping[bytes, Cells]) -> None:
        """In place; writes that are on their way still come."""
        self.rows = {key: dict(row) for key, row in snapshot.items()}
        self.erased.clear()

    def put_if(self, write: Write, name: bytes, expected: bytes | None, fate: int = APPLIED) -> bool:
        """A check-and-put of one row. One that comes late, or in part, is not done."""
        if self.down or fate not in (APPLIED, APPLIED_BUT_FAILED):
            raise StoreError
        key = write[0]
        done = self.rows.get(key, {}).get(name, (None, 0))[0] == expected
        if done:
            self.apply([write])
        if fate != APPLIED:
            raise StoreError
        return done

    def put(self, writes: Sequence[Write], fate: int = APPLIED) -> None:
        """Write rows; `StoreError` for every fate but `APPLIED`."""
        if self.down:
            fate = REFUSED
        if fate in (APPLIED, APPLIED_BUT_FAILED):
            self.apply(writes)
        elif fate == LATE:
            self.late += writes
        elif fate == PARTLY:
            self.apply(writes[::2])
        if fate != APPLIED:
            raise StoreError

    def apply(self, writes: Iterable[Write]) -> None:
        """What HBase does: of a cell's versions the one with the newest timestamp shows."""
        for key, written in writes:
            row = self.rows.get(key, {})
            for name, (value, stamped) in written.items():
                timestamp = self.clock if stamped == SERVER_TIME else stamped
                if timestamp > self.erased.get(key, -1) and (name not in row or row[name][1] <= timestamp):
                    row[name] = (value, timestamp)
            if row:
                self.rows[key] = row

    def replace(self, key: bytes, put: Cells, deleted: Mapping[bytes, int], fate: int = APPLIED) -> None:
        """One atomic row mutation; columns are deleted up to a version.

        In HBase the mark of the deletion also hides older versions that come later, until a major compaction.
        """
        if self.down or fate == REFUSED:
            raise StoreError
        self.apply([(key, put)] if put else [])
        row = self.rows.get(key, {})
        for name, version in deleted.items():
            if name in row and row[name][1] <= version:
                del row[name]
        if fate != APPLIED:
            raise StoreError

    def delete(self, key: bytes, newest: int) -> None:
        """A whole row, up to a timestamp."""
        self.erased[key] = max(newest, self.erased.get(key, -1))
        kept = {name: cell for name, cell in self.rows.get(key, {}).items() if cell[1] > self.erased[key]}
        self.rows[key] = kept
        if not kept:
            del self.rows[key]

    def get(self, key: bytes) -> Cells:
        """A row's cells; empty where there is none."""
        if self.down:
            raise StoreError
        return dict(self.rows.get(key, {}))

    def scan(self, start: bytes, stop: bytes) -> list[Write]:
        """A range of rows in the order of their keys."""
        return [(key, dict(self.rows[key])) for key in sorted(self.rows) if start <= key < stop and self.rows[key]]
