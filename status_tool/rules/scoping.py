"""Scope: the tables that a run is about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from status_tool.vocabulary.header import MASTER, Header
from status_tool.vocabulary.names import PUBLISHED_FAMILY, plain_name, status_table_of
from status_tool.vocabulary.scope import Scope, TableFilter


def asked_filter(scope: Scope) -> TableFilter:
    """Return the scope that the user chose."""
    return TableFilter.of(scope.tables, scope.namespaces)


def recorded_filter(header: Header) -> TableFilter:
    """Return the filter that a side's status was recorded with."""
    own = (plain_name(header.state_table), header.status_table) if header.side == MASTER else ()
    return TableFilter.of(header.tables, header.namespaces, [name for name in own if name])


def own_status_table(state_table: str, families: Mapping[str, Collection[str]]) -> str:
    """Return the cluster's table of published status files; empty if there is none, or a user's table has its name.

    `families` are those of each table.
    """
    name = status_table_of(state_table)
    return name if set(families.get(name, ())) == {PUBLISHED_FAMILY} else ""


def in_scope(table: str | None, filters: Sequence[TableFilter]) -> bool:
    """Return True if a table is in the scope of the run and of both files."""
    return all(one.holds(table) for one in filters)
