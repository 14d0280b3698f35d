"""Building blocks of Spark SQL text, so that rules need no Spark. Literals are quoted with the functions here."""

from __future__ import annotations

from collections.abc import Iterable

from status_tool.vocabulary.scope import Baseline


def quoted(text: str) -> str:
    """Return a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_in(column: str, values: Iterable[str]) -> str:
    """Return SQL that is true if a column has one of the values; never for no values."""
    known = ", ".join(quoted(value) for value in values)
    return f"{column} IN ({known})" if known else "false"


def known_true(condition: str) -> str:
    """Return the condition with null read as false."""
    return f"coalesce({condition}, false)"


def case(*branches: tuple[str, str], default: str = "NULL") -> str:
    """Return the value of the first condition that holds."""
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return f"CASE {whens} ELSE {default} END"


def since_sql(baseline: Baseline, table: str) -> str:
    """Return SQL for `Baseline.of`, of a column; null where nothing is accepted."""
    by_table = [(f"{table} = {quoted(name)}", _since(baseline.of(name))) for name in sorted(baseline.by_table)]
    return case(*by_table, default=_since(baseline.everything_ms)) if by_table else _since(baseline.everything_ms)


def _since(time_ms: int | None) -> str:
    return f"CAST({'NULL' if time_ms is None else time_ms} AS BIGINT)"
