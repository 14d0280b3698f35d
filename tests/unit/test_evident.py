"""The sums of the short way: what passes is whole, whatever rows there are, and nobody's rows pass for another's."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from status_tool.rules import evident
from status_tool.rules.context import RunContext, build_context
from status_tool.rules.evident import Kind
from status_tool.rules.judged import judge_regions
from status_tool.rules.peers import FamilyFilter
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.rules.segments import latest
from status_tool.rules.tables import TableAge, ages_of, merged_ages, table_ages
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import cluster_bytes
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.states import LINEAGE

NOW = 1_790_000_000_000
SERVER = "host1,16020,1"
IDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2)]
REGION = {"kind": "region", "table": "a", "server": SERVER, "state": "hosted", "region_id": NOW - 10_000}
STREAM = {"table": "a", "origin": 1, "family": "f", "write_ms": NOW - 8_000}
ENDS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=6)


def a_context(scope: Scope = Scope(), queues: QueueFacts = QueueFacts(), **master_has: Any) -> RunContext:
    """That of one table, and one server that runs on both sides."""
    detail = json.dumps({"families": {"f": {"scope": 1}}, "durability": "USE_DEFAULT", "regions": 9})
    live = {"live": True, "tracked": True, "echoed": True, "read_ms": NOW, "flush_ms": NOW}
    servers: list[Row] = [{"kind": "server", "origin": 1, "server": SERVER, "role": role, **live} for role in "wr"]
    table: Row = {"kind": "table", "table": "a", "detail": detail}
    master = Header("master", IDS[0], NOW, NOW, barrier_issued_ms=NOW, coverage_ms=NOW - 30_000, **master_has)
    slave = Header("slave", IDS[1], NOW, NOW, flush_period_ms=5_000)
    ours, theirs = [servers[0], table], [servers[1], table]
    return build_context(ours, theirs, table_ages([REGION]), master, slave, scope, queues)


CONTEXT = a_context()


def batch(rows: Iterable[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), STATUS_SCHEMA)


def kinds_of(*parts: list[Row], context: RunContext = CONTEXT) -> dict[int, Kind | None]:
    """Of each region, by its key, what is evident; the parts are looked at by different workers."""
    known = list(evident.verdicts_of(context))
    numbers = [table for rows in parts for table in evident.numbers_of(batch(rows), context)]
    found = evident.kinds_of(numbers, known, context).to_pylist()
    return {one["key"]: None if one["kind"] is None else known[one["kind"]] for one in found}


def passed(*parts: list[Row]) -> list[bool]:
    """Of each region, whether it is evident."""
    return [kind is not None for kind in kinds_of(*parts).values()]


def of_region(name: str, head: int, ends: Iterable[tuple[int, int]], **of: Any) -> tuple[list[Row], list[Row]]:
    """A region's rows of the master and of the slave."""
    ours: list[Row] = [{**REGION, "region": name}, {**STREAM, "kind": "stream", "region": name, "seq": head}]
    theirs = [{**STREAM, "kind": "segment", "region": name, "prev": a, "seq": b, **of} for a, b in ends]
    return ours, [*theirs, {"kind": "replicated", "table": "a", "region": name, "write_ms": NOW}]


@given(st.integers(1, 8), ENDS)
def test_what_passes_has_arrived_entry_by_entry(head: int, ends: list[tuple[int, int]]) -> None:
    arrived = {seq for prev, last in ends for seq in range(prev + 1, last + 1)}
    [is_evident] = passed(*of_region("r", head, ends))
    assert not is_evident or set(range(1, head + 1)) <= arrived


@given(st.integers(1, 8), st.sets(st.integers(1, 8)), st.randoms())
def test_segments_that_follow_one_another_pass(head: int, inner: set[int], random: Any) -> None:
    ends = list(pairwise(sorted({0, *inner, head})))
    random.shuffle(ends)
    assert passed(*of_region("r", head, ends)) == [True]
    assert passed(*of_region("r", 8, ends)) == [max(seq for _, seq in ends) == 8]


def test_rows_of_another_stream_do_not_fill_a_hole() -> None:
    ours, theirs = of_region("r", 8, [(0, 4)])
    for of in ({"origin": 2}, {"via": 1}, {"region": "s"}):
        _, others = of_region("r", 8, [(4, 8)], **of)
        assert True not in passed(ours, theirs, others[:1])


def test_regions_with_one_key_are_all_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """One has the row of the region, the other one what has arrived."""
    ours, _ = of_region("one", 8, [])
    _, theirs = of_region("other", 8, [(0, 8)])
    assert passed(ours, theirs) == [False, False]
    keys = evident.region_keys

    def same(names: pa.Array) -> tuple[pa.Array, pa.Array]:
        return pa.repeat(pa.scalar(7, pa.uint64()), len(names)), keys(names)[1]

    monkeypatch.setattr(evident, "region_keys", same)
    assert passed(ours, theirs) == [False]
    assert passed(*of_region("one", 8, [(0, 8)])) == [True]


CONTEXTS = {
    "plain": CONTEXT,
    "crashed and drained": a_context(queues=QueueFacts(drained=frozenset({1}))),
    "a narrow peer": a_context(queues=QueueFacts(families=FamilyFilter({"a": frozenset({"f"})}))),
    "accepted": a_context(Scope(since=Baseline(NOW - 8_000))),
    "shut down": a_context(shutdown_ms=NOW - 8_000, shutdown_from="table"),
}
NUMBERS = [None, -1, 0, 1, 2, 4, 8, 9, NOW - 8_001, NOW - 7_999, NOW + 100_000, 2**63 - 1, -(2**63)]
VALUES: dict[str, list[Any]] = {
    "table": ["b", None],
    "server": ["other", None],
    "state": [None, "split", "disabled", "content", "changed", "bulkload"],
    "family": ["g", "", None],
    "via_ids": [b"", *map(cluster_bytes, IDS), bytes(16), bytes(16) + bytes.fromhex(IDS[1].replace("-", ""))],
    **dict.fromkeys(("origin", "via", "prev", "seq", "write_ms"), NUMBERS),
}


def changed(rows: list[Row]) -> Iterator[list[Row]]:
    """Rows of a region, of which one says something else, or another one of its kind stands beside it."""
    for place, (column, values) in product(range(len(rows)), VALUES.items()):
        for other in ({**rows[place], column: value} for value in values):
            yield [*rows[:place], other, *rows[place + 1 :]]
            yield [*rows, other]


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_what_passes_is_complete_by_the_rules(context: RunContext) -> None:
    """Whatever one row of a whole region says, or two."""
    dice = random.Random(7)
    ours, (*segments, replicated) = of_region("", 8, [(0, 4), (4, 8)])
    theirs = [*segments, {**replicated, "write_ms": NOW + 200_000}]
    fact = {"kind": "fact", "table": "a", "region": "", "state": "content", "write_ms": NOW - 8_000}
    whole: list[Row] = [*ours, fact, *theirs]
    once: list[list[Row]] = [whole, ours, *changed(whole), *changed([*ours, theirs[-1]])]
    twice = [dice.choice(list(changed(dice.choice(once)))) for _ in range(200)]
    rows: list[Row] = [{**row, "region": f"{at:032x}"} for at, of in enumerate([*once, *twice]) for row in of]
    judged = {one.region: one for one in judge_regions(rows, context)}
    kinds, names = kinds_of(rows, context=context), sorted({row["region"] for row in rows})
    assert 50 < sum(kind is not None and kind.in_scope for kind in kinds.values()) < len(kinds) - 50
    for name, key in zip(names, evident.region_keys(pa.array(names))[0].to_pylist(), strict=True):
        one, kind = judged.get(name), kinds[key]
        if kind is not None and (kind.in_scope or one is not None):
            assert one is not None
            found = (one.table, one.status, one.evidence, one.heads > 0, one.later, one.findings)
            assert found == (kind.table, kind.status, kind.evidence, kind.has_streams, 0, ()), name


@given(st.lists(st.text(max_size=40) | st.text("0123456789abcdef", min_size=32, max_size=32)), st.integers(0, 3))
def test_a_name_has_the_same_keys_among_any_others(names: list[str], start: int) -> None:
    first, second = evident.region_keys(pa.array(names, pa.string()).slice(start)) if names else ([], [])
    for name, *keys in zip(names[start:], first, second, strict=True):
        assert [key[0] for key in evident.region_keys(pa.array([name]))] == keys
    assert len(set(zip(first, second, strict=True))) == len(set(names[start:]))


AGED = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["region", "region", "fact", "stream"]),
        "table": st.sampled_from(["a", "b", None]),
        "state": st.sampled_from(["hosted", "split", "merged", "content", None]),
        "region_id": st.none() | st.integers(1, 9),
    }
)


@given(st.lists(AGED), st.lists(AGED))
def test_a_table_is_as_old_as_its_regions_and_their_parents(some: list[Row], others: list[Row]) -> None:
    aged = [
        row
        for row in (*some, *others)
        if row["kind"] == "region" or (row["kind"] == "fact" and row["state"] in LINEAGE)
    ]
    expected = []
    for table in sorted({row["table"] for row in aged} - {None}):
        ids = [row["region_id"] for row in aged if row["table"] == table]
        exist = [
            row["region_id"]
            for row in aged
            if row["table"] == table and row["kind"] == "region" and row["state"] != "split"
        ]
        known = [one for one in ids if one is not None]
        expected.append(TableAge(table, len(exist), min(known, default=None), latest(*exist), None in ids))
    assert table_ages([*some, *others]) == expected
    assert merged_ages([*ages_of(batch(some)), *ages_of(batch(others))]) == expected
