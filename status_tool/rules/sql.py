"""Building blocks of Spark SQL text: each rule has a second form in SQL, right below the plain Python one.

The plain form is the one to read, and the tests' oracle; the SQL form decides, over any number of rows.
It is text, so that rules need no Spark. Columns are those of `vocabulary.schema`, or as the
docstring of the function says. Literals are always quoted with the functions here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from status_tool.vocabulary.findings import RANKS, UNVERIFIABLE_RANK, Finding
from status_tool.vocabulary.scope import Baseline

FIELDS = tuple(field.name for field in fields(Finding))
IS_HEAD, IS_SEGMENT = "kind = 'stream'", "kind = 'segment'"
LEAST_MS = -(2**62)
"""Stands for an unknown time where a minimum must not skip it."""
_TYPES = {
    **dict.fromkeys(("code", "table", "region", "path", "note"), "STRING"),
    **dict.fromkeys(("start_key", "end_key"), "BINARY"),
}


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


def since_sql(baseline: Baseline, table: str) -> str:
    """As `Baseline.of`, of a column; null where nothing is accepted."""
    by_table = [(f"{table} = {quoted(name)}", _since(baseline.of(name))) for name in sorted(baseline.by_table)]
    return case(*by_table, default=_since(baseline.everything_ms)) if by_table else _since(baseline.everything_ms)


def _since(time_ms: int | None) -> str:
    return f"CAST({'NULL' if time_ms is None else time_ms} AS BIGINT)"


def finding(code: str, **columns: str) -> str:
    """A struct of `Finding`'s fields, null where not given, and its `rank`."""
    given = {"code": code, **columns}
    parts = [f"'{name}', CAST({given.get(name, 'NULL')} AS {_TYPES.get(name, 'BIGINT')})" for name in FIELDS]
    return f"named_struct({', '.join(parts)}, 'rank', {_rank_of(code)})"


def present(*findings: str) -> str:
    """An array of those structs that are not null."""
    return f"filter(array({', '.join(findings)}), one -> one IS NOT NULL)"


def _rank_of(code: str) -> str:
    ranks = sorted(set(RANKS.values()))
    names = {rank: [name for name, value in RANKS.items() if value == rank] for rank in ranks}
    return case(*((is_in(code, names[rank]), str(rank)) for rank in ranks), default=str(UNVERIFIABLE_RANK))
