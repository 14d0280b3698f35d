"""Rows that differ, read from both sides by Thrift and named cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.thrift import connection, scan
from status_tool.digests.digest import Family
from status_tool.digests.keys import Interval
from status_tool.printable import iso

MISSING, EXTRA, OTHER_VALUE, OTHER_TIME = "missing", "extra", "other value", "other timestamp"
MAX_VERSION_READS = 2_000

Versions = dict[int, bytes]
"""Timestamp to value."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell that one side has and the other has not, or has otherwise. Timestamps and values are None where absent."""

    row: bytes
    family: bytes
    qualifier: bytes
    kind: str
    master_ms: int | None = None
    slave_ms: int | None = None
    master_value: bytes | None = None
    slave_value: bytes | None = None


def cell_in_words(one: Difference) -> str:
    """Describe a cell's difference in words."""
    return {
        MISSING: f"missing on the slave, written {iso(one.master_ms or 0)}",
        EXTRA: f"only on the slave, written {iso(one.slave_ms or 0)}",
        OTHER_VALUE: f"another value on the slave, both written {iso(one.master_ms or 0)}",
        OTHER_TIME: f"written {iso(one.master_ms or 0)} on the master, {iso(one.slave_ms or 0)} on the slave",
    }[one.kind]


@dataclass(frozen=True)
class TableSide:
    """Access to one side's rows, with the families that exist there."""

    endpoint: ThriftEndpoint
    families: tuple[bytes, ...]

    def newest(self, table: str, interval: Interval) -> dict[bytes, dict[bytes, tuple[bytes, int]]]:
        """Return the newest cells of every row."""
        # A TScan without columns reads all families (`ThriftHBaseServiceHandler.scannerOpenWithScan`).
        if not self.families:
            return {}
        return dict(scan(self.endpoint, table, interval.start, interval.stop or None, self.families))

    def versions(self, table: str, row: bytes, column: bytes, count: int) -> Versions:
        """Return the newest versions of a column."""
        # HBase answers a Get of a family that the table lacks with `NoSuchColumnFamilyException`.
        if column.partition(b":")[0] not in self.families:
            return {}
        with connection(self.endpoint) as client:
            cells = client.table(table).cells(row, column, versions=count, include_timestamp=True)
        return {timestamp: value for value, timestamp in cells}


def differences(
    table: str, interval: Interval, families: Mapping[bytes, Family], master: TableSide, slave: TableSide
) -> Iterator[Difference]:
    """Yield the cells of an interval that differ now: by their newest versions, else by older ones."""
    ours, theirs = master.newest(table, interval), slave.newest(table, interval)
    found = False
    for row in sorted(ours.keys() | theirs.keys()):
        for one in _of_row(row, ours.get(row, {}), theirs.get(row, {}), families):
            found = True
            yield one
    # Each column costs two Gets, so older versions are read only where the newest explain nothing.
    if not found:
        columns = ((row, column) for row in sorted(ours) for column in sorted(ours[row]))
        for row, column in islice(columns, MAX_VERSION_READS):
            yield from _older(table, row, column, families, master, slave)


def _of_row(
    row: bytes,
    ours: Mapping[bytes, tuple[bytes, int]],
    theirs: Mapping[bytes, tuple[bytes, int]],
    families: Mapping[bytes, Family],
) -> Iterator[Difference]:
    for column in sorted(ours.keys() | theirs.keys()):
        family, _, qualifier = column.partition(b":")
        (value, ms), (other, other_ms) = ours.get(column, (None, None)), theirs.get(column, (None, None))
        newest = max(moment for moment in (ms, other_ms) if moment is not None)
        # Region servers leave cells below `oldest` out of the sums, too: one side may have expired them.
        if (value, ms) == (other, other_ms) or newest < families[family].oldest:
            continue
        kind = MISSING if ms is not None and other_ms is None else EXTRA if ms is None else OTHER_TIME
        if ms == other_ms:
            kind = OTHER_VALUE
        yield Difference(row, family, qualifier, kind, ms, other_ms, value, other)


def _older(
    table: str, row: bytes, column: bytes, families: Mapping[bytes, Family], master: TableSide, slave: TableSide
) -> Iterator[Difference]:
    family, _, qualifier = column.partition(b":")
    rule = families[family]
    if rule.versions == 1:
        return
    # `getVer` sends all versions in one answer, and VERSIONS may be 2147483647.
    count = min(rule.versions, 1000)
    ours, theirs = (side.versions(table, row, column, count) for side in (master, slave))
    for ms in sorted(ours.keys() | theirs.keys(), reverse=True):
        value, other = ours.get(ms), theirs.get(ms)
        if value != other and ms >= rule.oldest:
            kind = EXTRA if value is None else MISSING if other is None else OTHER_VALUE
            here, there = (None if one is None else ms for one in (value, other))
            yield Difference(row, family, qualifier, kind, here, there, value, other)
