"""Which tables are in scope."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from status_tool.rules.sql import is_in, quoted
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import Scope

SYSTEM_NAMESPACE = "hbase"
DEFAULT_NAMESPACE = "default"


def plain_name(table: str) -> str:
    """The name as HBase prints it: without the namespace when that is `default`."""
    return table.removeprefix(f"{DEFAULT_NAMESPACE}:")


def namespace_of(table: str) -> str:
    """The namespace of `ns:name` or `name`."""
    return table.split(":", 1)[0] if ":" in table else DEFAULT_NAMESPACE


@dataclass(frozen=True, slots=True)
class TableFilter:
    """A filter of tables by name or namespace; empty: all. System tables are never in scope."""

    tables: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    state_table: str | None = None
    """The master's own state table: never in scope."""

    @classmethod
    def of(cls, tables: Collection[str], namespaces: Collection[str], state_table: str | None = None) -> TableFilter:
        """Create a filter from names as users write them."""
        return cls(frozenset(plain_name(table) for table in tables), frozenset(namespaces), state_table)

    @property
    def everything(self) -> bool:
        """Whether nothing is filtered."""
        return not self.tables and not self.namespaces

    def holds(self, table: str | None) -> bool:
        """Whether a table is chosen. Unknown names are: leaving them out could hide a loss."""
        if table is None:
            return True
        if namespace_of(table) == SYSTEM_NAMESPACE or table == self.state_table:
            return False
        return self.everything or table in self.tables or namespace_of(table) in self.namespaces

    def covers(self, other: TableFilter) -> bool:
        """Whether whatever `other` chooses is chosen here as well, judged by the names alone."""
        if self.everything:
            return True
        if other.everything or not other.namespaces <= self.namespaces:
            return False
        return all(self.holds(table) for table in other.tables)

    def __str__(self) -> str:
        names = [*sorted(self.tables), *(f"{namespace}:*" for namespace in sorted(self.namespaces))]
        return ", ".join(names) or "all tables"


def asked_filter(scope: Scope) -> TableFilter:
    """The scope that the user chose."""
    return TableFilter.of(scope.tables, scope.namespaces)


def recorded_filter(header: Header) -> TableFilter:
    """What a side's status was recorded for."""
    own = plain_name(header.state_table) if header.side == "master" else None
    return TableFilter.of(header.tables, header.namespaces, own)


def in_scope(table: str | None, filters: Sequence[TableFilter]) -> bool:
    """Whether a table is in the scope of the run and of both files."""
    return all(one.holds(table) for one in filters)


def in_scope_sql(filters: Sequence[TableFilter]) -> str:
    """As `in_scope`, of a row's `table`."""
    own = [f" OR `table` = {quoted(one.state_table)}" for one in filters if one.state_table is not None]
    system = f"startswith(`table`, '{SYSTEM_NAMESPACE}:'){''.join(own)}"
    chosen = [_holds_sql(one) for one in filters if not one.everything]
    return " AND ".join([f"(`table` IS NULL OR NOT ({system}))", *chosen])


def _holds_sql(chosen: TableFilter) -> str:
    space = f"IF(contains(`table`, ':'), substring_index(`table`, ':', 1), '{DEFAULT_NAMESPACE}')"
    tables, spaces = is_in("`table`", sorted(chosen.tables)), is_in(space, sorted(chosen.namespaces))
    return f"(`table` IS NULL OR {tables} OR {spaces})"
