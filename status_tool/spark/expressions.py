"""Spark SQL text: expressions are built as text because every `Column` call is a round trip to the JVM.

Only literals that are quoted here and names of columns of this package go into the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F

from status_tool.evidence.findings import RANKS, UNVERIFIABLE_RANK, Finding

FIELDS = tuple(field.name for field in fields(Finding))
_TYPES = {
    **dict.fromkeys(("code", "table", "region", "path", "note"), "STRING"),
    **dict.fromkeys(("start_key", "end_key"), "BINARY"),
}
_ORDER = ("table", "region", "origin", "via", "path", "code")


def quoted(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_in(column: str, values: Iterable[str]) -> str:
    """Whether a column has one of the values; never true for none."""
    known = ", ".join(quoted(value) for value in values)
    return f"{column} IN ({known})" if known else "false"


def known_true(condition: str) -> str:
    """The condition with null read as false."""
    return f"coalesce({condition}, false)"


def case(*branches: tuple[str, str], default: str = "NULL") -> str:
    """The value of the first condition that holds."""
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return f"CASE {whens} ELSE {default} END"


def named(columns: dict[str, str]) -> list[Column]:
    """Name -> expression as columns for `select` and `agg`."""
    return [F.expr(f"{expression} AS `{name}`") for name, expression in columns.items()]


def finding(code: str, **columns: str) -> str:
    """A struct of `Finding`'s fields, null where not given, and its `rank`."""
    given = {"code": code, **columns}
    parts = [f"'{name}', CAST({given.get(name, 'NULL')} AS {_TYPES.get(name, 'BIGINT')})" for name in FIELDS]
    return f"named_struct({', '.join(parts)}, 'rank', {_rank_of(code)})"


def present(*findings: str) -> str:
    """An array of those structs that are not null."""
    return f"filter(array({', '.join(findings)}), one -> one IS NOT NULL)"


def worst_first() -> list[Column]:
    """The order of `findings.sort_key`, over the struct's fields as columns."""
    return [F.col("rank").asc(), F.col("lag_ms").desc_nulls_last(), *(F.col(name).asc() for name in _ORDER)]


def to_finding(row: Row) -> Finding:
    """The finding of a collected row."""
    values: dict[str, Any] = {name: row[name] for name in FIELDS}
    for name in ("start_key", "end_key"):
        values[name] = None if values[name] is None else bytes(values[name])
    return Finding(**values)


def _rank_of(code: str) -> str:
    ranks = sorted(set(RANKS.values()))
    names = {rank: [name for name, value in RANKS.items() if value == rank] for rank in ranks}
    return case(*((is_in(code, names[rank]), str(rank)) for rank in ranks), default=str(UNVERIFIABLE_RANK))
