"""Which tables are in scope."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from status_tool.rules.sql import is_in, quoted
from status_tool.vocabulary.header import MASTER, Header
from status_tool.vocabulary.names import (
    DEFAULT_NAMESPACE,
    PUBLISHED_FAMILY,
    SYSTEM_NAMESPACE,
    plain_name,
    status_table_of,
)
from status_tool.vocabulary.scope import Scope, TableFilter


def asked_filter(scope: Scope) -> TableFilter:
    """The scope that the user chose."""
    return TableFilter.of(scope.tables, scope.namespaces)


def recorded_filter(header: Header) -> TableFilter:
    """What a side's status was recorded for."""
    own = (plain_name(header.state_table), header.status_table) if header.side == MASTER else ()
    return TableFilter.of(header.tables, header.namespaces, [name for name in own if name])


def own_status_table(state_table: str, families: Mapping[str, Collection[str]]) -> str:
    """The cluster's table of published status files; empty if there is none, or a user's table has its name.

    `families` are those of each table.
    """
    name = status_table_of(state_table)
    return name if set(families.get(name, ())) == {PUBLISHED_FAMILY} else ""


def in_scope(table: str | None, filters: Sequence[TableFilter]) -> bool:
    """Whether a table is in the scope of the run and of both files."""
    return all(one.holds(table) for one in filters)


def in_scope_sql(filters: Sequence[TableFilter]) -> str:
    """As `in_scope`, of a row's `table`."""
    own = [f" OR `table` = {quoted(name)}" for name in sorted(frozenset().union(*(one.own for one in filters)))]
    system = f"startswith(`table`, '{SYSTEM_NAMESPACE}:'){''.join(own)}"
    chosen = [_holds_sql(one) for one in filters if not one.everything]
    return " AND ".join([f"(`table` IS NULL OR NOT ({system}))", *chosen])


def _holds_sql(chosen: TableFilter) -> str:
    space = f"IF(contains(`table`, ':'), substring_index(`table`, ':', 1), '{DEFAULT_NAMESPACE}')"
    tables, spaces = is_in("`table`", sorted(chosen.tables)), is_in(space, sorted(chosen.namespaces))
    return f"(`table` IS NULL OR {tables} OR {spaces})"
