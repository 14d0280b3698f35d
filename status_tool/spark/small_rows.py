"""Rows that the context of a check is made of: small kinds as they are, of large kinds what they say of each table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame

from status_tool.rules.context import SMALL_KINDS
from status_tool.rules.tables import TableAge, ages_of, merged_ages
from status_tool.spark.source import ChosenRows, is_one_of, mapped
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.states import FactState

_KINDS = {MASTER: (*SMALL_KINDS, "region", "fact"), SLAVE: (*SMALL_KINDS, "unstamped", "fact")}
_COLUMNS = (
    "kind",
    "table",
    "origin",
    "server",
    "role",
    "live",
    "tracked",
    "flush_ms",
    "echoed",
    "read_ms",
    "final_ms",
    "gone_ms",
    "detail",
    "via_ids",
    "state",
    "write_ms",
    "region",
    "entries",
)
_AGE = {"regions": pa.int64(), "oldest": pa.int64(), "newest": pa.int64(), "unknown": pa.bool_()}
SMALL_COLUMNS = (*_COLUMNS, *_AGE)
_UNATTENDED = ["kind", "table", "state", "region", "origin", "entries", "detail"]
_CHANGED = pa.schema([STATUS_SCHEMA.field(name) for name in ("table", "state", "write_ms")])
_SCHEMA = pa.schema([*(STATUS_SCHEMA.field(name) for name in _COLUMNS), *_AGE.items(), ("side", pa.string())])


def small_rows(
    master_df: DataFrame, slave_df: DataFrame, left_out: Sequence[str]
) -> tuple[list[Row], list[Row], list[TableAge]]:
    """Return what `build_context` judges of the master and of the slave, by one action."""
    columns = (*_COLUMNS, "region_id")
    ours = mapped(master_df, ChosenRows(_KINDS[MASTER], columns, left_out), _of_master, _SCHEMA)
    theirs = mapped(slave_df, ChosenRows(_KINDS[SLAVE], columns, left_out), _of_slave, _SCHEMA)
    found = ours.unionByName(theirs).toArrow().to_pylist()
    ages = [TableAge(row["table"], *(row[name] for name in _AGE)) for row in found if row["kind"] == "age"]
    sides = [[row for row in found if row["side"] == side and row["kind"] != "age"] for side in (MASTER, SLAVE)]
    return sides[0], sides[1], merged_ages(ages)


def _of_master(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    ages: list[TableAge] = []
    for batch in given:
        yield from _packed(_small(batch), MASTER)
        # Merged at once: a worker holds one age a table, however many regions it reads.
        ages = merged_ages([*ages, *ages_of(batch)])
    rows = ({"kind": "age", **{name: getattr(age, name) for name in ("table", *_AGE)}} for age in ages)
    yield from _packed(rows, MASTER)


def _of_slave(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in given:
        yield from _packed(chain(_small(batch), _unstamped_sources(batch), _contents(batch)), SLAVE)


def _small(batch: pa.RecordBatch) -> Iterable[Row]:
    rows: list[Row] = _where(batch, "kind", SMALL_KINDS).select(list(_COLUMNS)).to_pylist()
    return rows


def _unstamped_sources(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the clusters that entries without a valid stamp came through."""
    sources = _where(batch, "kind", ["unstamped"]).column("via_ids").unique().to_pylist()
    return ({"kind": "unstamped", "via_ids": source} for source in sources if source is not None)


def _contents(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield what `rules.tables.newest_changes` and `rules.custody.unattended` read: of changes the newest by table."""
    facts = _where(batch, "kind", ["fact"])
    changed = pa.Table.from_batches([_where(facts, "state", [FactState.CHANGED]).select(_CHANGED.names).cast(_CHANGED)])
    for newest in changed.group_by(["table", "state"], use_threads=False).aggregate([("write_ms", "max")]).to_pylist():
        yield {"kind": "fact", "write_ms": newest.pop("write_ms_max"), **newest}
    yield from _where(facts, "state", [FactState.UNATTENDED]).select(_UNATTENDED).to_pylist()


def _where(batch: pa.RecordBatch, column: str, values: Sequence[str]) -> pa.RecordBatch:
    return batch.filter(is_one_of(batch.column(column), values))


def _packed(rows: Iterable[Row], side: str) -> Iterator[pa.RecordBatch]:
    if found := [{**row, "side": side} for row in rows]:
        yield pa.RecordBatch.from_pylist(found, _SCHEMA)
