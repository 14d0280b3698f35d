"""The scope of a run: its tables, and everything else that limits it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from status_tool.vocabulary.names import is_system, namespace_of, plain_name
from status_tool.vocabulary.selection import PathMap


@dataclass(frozen=True, slots=True)
class TableFilter:
    """A filter of tables by name or namespace; empty: all. System tables are never in scope."""

    tables: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    """The master's own state table, and its table of published status files: never in scope."""

    @classmethod
    def of(cls, tables: Collection[str], namespaces: Collection[str], own: Collection[str] = ()) -> TableFilter:
        """Create a filter from names as users write them."""
        return cls(frozenset(plain_name(table) for table in tables), frozenset(namespaces), frozenset(own))

    @property
    def everything(self) -> bool:
        """Return True if nothing is filtered."""
        return not self.tables and not self.namespaces

    def holds(self, table: str | None) -> bool:
        """Return True if a table is chosen. Unknown names are chosen: to leave them out could hide a loss."""
        if table is None:
            return True
        if is_system(table) or table in self.own:
            return False
        return self.everything or table in self.tables or namespace_of(table) in self.namespaces

    def covers(self, other: TableFilter) -> bool:
        """Return True if everything that `other` chooses is chosen here as well, judged by the names alone."""
        if self.everything:
            return True
        if other.everything or not other.namespaces <= self.namespaces:
            return False
        return all(self.holds(table) for table in other.tables)

    def __str__(self) -> str:
        names = [*sorted(self.tables), *(f"{namespace}:*" for namespace in sorted(self.namespaces))]
        return ", ".join(names) or "all tables"


@dataclass(frozen=True, slots=True)
class Baseline:
    """Past that `--since` accepts: all writes up to a time (epoch ms), in all tables or in one."""

    everything_ms: int | None = None
    """Time for all tables, and for servers that are gone: what these did cannot be told apart by table."""
    by_table: Mapping[str, int] = field(default_factory=dict)

    def of(self, table: str | None) -> int | None:
        """Return the time up to which a table's past is accepted; None if none of it is."""
        known = [time for time in (self.everything_ms, self.by_table.get(table or "")) if time is not None]
        return max(known, default=None)


NOTHING_ACCEPTED = Baseline()


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a run."""

    tables: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    since: Baseline = NOTHING_ACCEPTED
    peer_id: str | None = None
    check_hbase: bool = True
    check_hdfs: bool = True
    max_problems: int = 100
    strict_extra: bool = False
    path_map: PathMap = field(default_factory=PathMap)
    """Where trees of the master are on the slave."""
    accepted_drift: frozenset[str] = frozenset()
    """Tables of which the slave may keep less than the master."""
    ignore_later_writes: bool = False
    """True if writes after a recorded shutdown time are accepted."""
    forgotten: frozenset[str] = frozenset()
    """Tables of which the slave forgot what it kept before this run (`--forget`): a word for them is given anew."""
    excludes: bool = False
    """True if files are left out that the operator named (`--exclude`)."""
    offline: bool = False
    """True if the slave's side is from a file, too, so that it may be older than the master's."""
