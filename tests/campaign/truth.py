"""What is really there: cells of both clusters, without times."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.campaign.arena import PATIENCE_S, Arena
from tests.campaign.schedule import TABLES
from tests.lab.cluster import Cluster
from tests.lab.errors import AdminError

Cells = frozenset[tuple[str, str]]
"""Table, and the cell as `row, family, qualifier, type, value` with tabs between."""
RETRY_S = 30.0


def replicated(table: str, cell: str) -> bool:
    """Whether a cell is of a family that is replicated."""
    return TABLES[table.split("_")[0]][cell.split("\t")[1]] == 1


def journalled(lines: Iterable[str]) -> Cells:
    """Acknowledged cells of replicated families from a writer's journal."""
    split = (line.split("\t", 1) for line in lines)
    return frozenset((table, cell) for table, cell in split if replicated(table, cell))


def stored(cluster: Cluster, tables: Sequence[str], *, visible: bool = False) -> Cells:
    """Cells of replicated families that a cluster holds. A disabled table is enabled for the moment of the scan.

    `visible`: only those that no delete marker hides.
    """
    found: set[tuple[str, str]] = set()
    for table in tables:
        found.update((table, cell) for cell in _scan(cluster, table, visible) if replicated(table, cell))
    return frozenset(found)


def newest(cluster: Cluster, tables: Sequence[str]) -> Cells:
    """The newest visible cell of each replicated column: what a reader gets, however many versions a cluster keeps."""
    found = ((table, cell) for table in tables for cell in newest_of(_scan(cluster, table, True)))
    return frozenset((table, cell) for table, cell in found if replicated(table, cell))


def newest_of(cells: Iterable[str]) -> list[str]:
    """The first cell of each column; HBase's scans show a column's newest cell first."""
    columns: dict[tuple[str, ...], str] = {}
    for cell in cells:
        columns.setdefault(tuple(cell.split("\t")[:3]), cell)
    return list(columns.values())


def _scan(cluster: Cluster, table: str, visible: bool) -> list[str]:
    end = time.monotonic() + RETRY_S
    while True:
        try:
            cells: list[str] = cluster.admin.call("cells", PATIENCE_S, table=table, visible=visible)
            return cells
        except AdminError as error:
            if "TableNotFoundException" in str(error):
                return []
            if "TableNotEnabledException" in str(error) or "is disabled" in str(error):
                return _enabled_for_a_moment(cluster, table, visible)
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def _enabled_for_a_moment(cluster: Cluster, table: str, visible: bool) -> list[str]:
    cluster.admin.call("enable_table", PATIENCE_S, table=table)
    try:
        cells: list[str] = cluster.admin.call("cells", PATIENCE_S, table=table, visible=visible)
        return cells
    finally:
        cluster.admin.call("disable_table", PATIENCE_S, table=table)


@dataclass
class Writers:
    """The background writers of a schedule and all that they have written and were acknowledged."""

    arena: Arena
    mixes: list[int] = field(default_factory=list)
    read: dict[int, int] = field(default_factory=dict)
    cells: set[tuple[str, str]] = field(default_factory=set)

    def start(self, tables: Sequence[str], seed: int, rates: Sequence[int]) -> None:
        """One writer a rate, into every family of every table."""
        families = {table: sorted(TABLES[table.split("_")[0]]) for table in tables}
        for number, rate in enumerate(rates):
            mark = f"w{number}."
            self.mixes.append(
                self.arena.master.admin.mix_start(families, seed=seed + number, rate_per_s=rate, mark=mark)
            )

    def acknowledged(self) -> Cells:
        """All cells acknowledged before this call."""
        for mix in self.mixes:
            lines = self.arena.master.admin.mix_journal(mix, self.read.get(mix, 0))
            self.read[mix] = self.read.get(mix, 0) + len(lines)
            self.cells |= journalled(lines)
        return frozenset(self.cells)

    def stop(self) -> None:
        """No more writes; what was written can still be read."""
        for mix in self.mixes:
            self.arena.master.admin.mix_stop(mix)
