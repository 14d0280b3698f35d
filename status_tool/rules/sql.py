"""Building blocks of Spark SQL text, so that rules need no Spark. Literals are quoted with the functions here."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(text: str) -> str:
    """Return a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_in(column: str, values: Iterable[str]) -> str:
    """Return SQL that is true if a column has one of the values; never for no values."""
    known = ", ".join(quoted(value) for value in values)
    return f"{column} IN ({known})" if known else "false"
