"""SQL text as columns, and findings as rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from status_tool.vocabulary.findings import Finding

FIELDS = tuple(field.name for field in fields(Finding))
_ORDER = ("table", "region", "origin", "via", "path", "code")


def named(columns: dict[str, str]) -> list[Column]:
    """Name -> expression as columns for `select` and `agg`."""
    return [F.expr(f"{expression} AS `{name}`") for name, expression in columns.items()]


def is_in(column: str, values: Iterable[str]) -> str:
    """Return SQL that is true if a column has one of the values, which are codes of ours; never for no values."""
    known = ", ".join(f"'{value}'" for value in values)
    return f"{column} IN ({known})" if known else "false"


def worst_first() -> list[Column]:
    """Return the order of `findings.sort_key`, over the struct's fields as columns."""
    # `asc` puts nulls first, as `sort_key` does.
    return [F.col("rank").asc(), F.col("lag_ms").desc_nulls_last(), *(F.col(name).asc() for name in _ORDER)]


def to_finding(row: Row) -> Finding:
    """Return the finding of a collected row."""
    values: dict[str, Any] = {name: row[name] for name in FIELDS}
    for name in ("start_key", "end_key"):
        values[name] = None if values[name] is None else bytes(values[name])
    return Finding(**values)
