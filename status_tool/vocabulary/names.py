"""Names of tables as HBase prints them, `name` or `namespace:name`."""

from __future__ import annotations

SYSTEM_NAMESPACE = "hbase"
DEFAULT_NAMESPACE = "default"


def full_name(namespace: str, name: str) -> str:
    """The name as HBase prints it: without the namespace when that is `default`."""
    return name if namespace == DEFAULT_NAMESPACE else f"{namespace}:{name}"


def plain_name(table: str) -> str:
    """The same of a name as users write it, maybe `default:name`."""
    return table.removeprefix(f"{DEFAULT_NAMESPACE}:")


def namespace_of(table: str) -> str:
    """The namespace of `ns:name` or `name`."""
    return table.split(":", 1)[0] if ":" in table else DEFAULT_NAMESPACE


def is_system(table: str) -> bool:
    """Whether a table is HBase's own: such tables are never in scope."""
    return namespace_of(table) == SYSTEM_NAMESPACE
