"""`Finding` as a Spark struct, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from status_tool.evidence.findings import RANKS, UNVERIFIABLE_RANK, Finding

_STRINGS = ("code", "table", "region", "path", "note")
_BINARY = ("start_key", "end_key")
FIELDS = tuple(field.name for field in fields(Finding))
ORDER = ("table", "region", "origin", "via", "path", "code")
"""What decides between findings of the same rank and lag."""


def finding(**columns: Column) -> Column:
    """A struct of `Finding`'s fields, null where not given, and its `rank`."""
    parts = [columns.get(name, F.lit(None)).cast(_type(name)).alias(name) for name in FIELDS]
    return F.struct(*parts, rank_of(columns["code"]).alias("rank"))


def rank_of(code: Column) -> Column:
    """`Finding.rank` of a code."""
    ranks = sorted(set(RANKS.values()))
    expression: Column | None = None
    for rank in ranks:
        same = code.isin(*(name for name, value in RANKS.items() if value == rank))
        expression = F.when(same, rank) if expression is None else expression.when(same, rank)
    return F.lit(UNVERIFIABLE_RANK) if expression is None else expression.otherwise(UNVERIFIABLE_RANK)


def present(*findings: Column) -> Column:
    """An array of those structs that are not null."""
    return F.filter(F.array(*findings), lambda one: one.isNotNull())


def worst_first() -> list[Column]:
    """The order of `findings.sort_key`, over the struct's fields as columns."""
    return [F.col("rank").asc(), F.col("lag_ms").desc_nulls_last(), *(F.col(name).asc() for name in ORDER)]


def to_finding(row: Row) -> Finding:
    """The finding of a collected row."""
    values: dict[str, Any] = {name: row[name] for name in FIELDS}
    for name in _BINARY:
        values[name] = None if values[name] is None else bytes(values[name])
    return Finding(**values)


def _type(name: str) -> str:
    if name in _STRINGS:
        return "string"
    return "binary" if name in _BINARY else "bigint"
