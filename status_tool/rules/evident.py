"""The short way: which regions are evidently complete, by extremes and sums of their rows alone.

Nearly all regions of a healthy cluster are. This filter judges columns of Arrow, and it leaves a region out as soon as
anything about it is unusual: `rules.regions` judges all others. What passes differs in nothing that a verdict
depends on but its table, whether it has streams, and whether it was split. So one region of each kind is judged in
the place of all (`verdicts_of`).

Each row becomes a few numbers (`numbers_of`), which are added up by stream and then by region (`kinds_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.rules.context import RunContext
from status_tool.rules.later_writes import later_bound
from status_tool.rules.regions import Region, judge_region
from status_tool.vocabulary.ids import cluster_bytes
from status_tool.vocabulary.states import LINEAGE, FactState, RegionState
from status_tool.vocabulary.verdicts import SEVERITY, Evidence, Status

NUMBERED_COLUMNS = (
    "kind",
    "table",
    "region",
    "origin",
    "via",
    "via_ids",
    "prev",
    "seq",
    "write_ms",
    "state",
    "server",
    "family",
)
"""Columns that are read of a row of a region."""
_MS, _SEQ, _WORD = pa.int64(), pa.int64(), pa.uint64()
NUMBERS = pa.schema(
    {
        **{"key": _WORD, "check": _WORD, "table": pa.int32(), "is_doubt": pa.bool_()},
        **{"origin": pa.int64(), "via": pa.int64()},
        **{"head_seq": _SEQ, "head_ms": _MS, "head_is_open": pa.bool_()},
        **{"reach": _SEQ, "reach_ms": _MS, "segment_is_open": pa.bool_(), "chain": _WORD, "other_chain": _WORD},
        **{"is_split": pa.bool_(), "is_unserved": pa.bool_(), "replicated_ms": _MS},
    }
)
"""Rows as numbers. A row has no columns of what it is not: a head's are those named `head`, a segment's the next five,
those of the region itself `is_split` and `is_unserved`."""
_STREAM = ("key", "origin", "via")
_MIXES = ((0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 30, 27, 31), (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 33, 33, 33))
"""Factors and shifts of two hashes that do not depend on one another: those of SplitMix64 and of MurmurHash3."""
_ZERO = pa.array([0], _SEQ)
_ADDED = 0x9E3779B97F4A7C15
_NAME_BYTES, _WORD_BYTES = 32, 8
"""Length of a region's encoded name, and of a word of it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Regions that are evidently complete, and what is decided of all of them."""

    table: str
    has_streams: bool
    is_split: bool
    in_scope: bool
    status: int
    """Severity: that of their table."""
    evidence: Evidence


def verdicts_of(context: RunContext) -> Iterator[Kind]:
    """Yield the kinds of regions that nothing is wrong with as such; of the others each has to be judged."""
    if context.second is not None and not context.second.reason:
        return  # sums of rows do not show a region of which the witness has none
    names = [table.table for table in context.tables]
    for table, has_streams, is_split in product(names, (True, False), (True, False)):
        verdict = judge_region(_example(table, has_streams, is_split, context), context)
        if verdict is None:
            yield Kind(table, has_streams, is_split, False, 0, Evidence.EXACT)
        elif not verdict.findings and all(one.status is Status.COMPLETE for _, one in verdict.streams):
            yield Kind(table, has_streams, is_split, True, SEVERITY[verdict.status], verdict.evidence)


def _example(table: str, has_streams: bool, is_split: bool, context: RunContext) -> Region:
    # Without a tracked server, or a settled origin, the example is in doubt, and no kind passes that needs one.
    region = Region("")
    state = RegionState.SPLIT if is_split else RegionState.HOSTED
    region.add({"kind": "region", "table": table, "state": state, "server": min(context.tracked_servers, default=None)})
    if has_streams:
        settled = (origin for origin, rule in context.origin_rules.items() if rule.settled)
        stream = {"table": table, "origin": next(settled, None), "prev": 0, "seq": 1, "family": ""}
        region.add({"kind": "stream", **stream})
        region.add({"kind": "segment", **stream})
    return region


# -- rows --------------------------------------------------------------------------------------------------


def numbers_of(rows: pa.RecordBatch, context: RunContext) -> Iterator[pa.Table]:
    """Yield rows of regions (`NUMBERED_COLUMNS`) as `NUMBERS`, a table for each kind of row."""
    kinds = rows.column("kind").unique().to_pylist()
    for kind in kinds:
        some = rows if len(kinds) == 1 else rows.filter(pc.equal(rows.column("kind"), kind))
        keys, checks = region_keys(some.column("region"))
        tables = _places(some.column("table"), [table.table for table in context.tables])
        common = {"key": keys, "check": pc.add(checks, tables.cast(_WORD)), "table": tables}
        accepted = _accepted(some, context)
        is_unknown = pc.or_(pc.equal(tables, len(context.tables)), _differs(some, context))
        is_doubt, numbers = _FORMS.get(kind, _other)(some, accepted, context)
        yield pa.table({**common, "is_doubt": pc.or_(is_unknown, is_doubt), **numbers})


Numbers = tuple[pa.Array, dict[str, pa.Array]]
"""Whether a row casts a doubt on its region, and its numbers."""


def _head(rows: pa.RecordBatch, accepted: pa.Array, context: RunContext) -> Numbers:
    """A head of entries that came from the slave itself says nothing; of longer ways Python decides."""
    slave = cluster_bytes(context.slave.cluster_id)
    from_slave = _never(rows) if slave is None else _each(rows.column("via_ids"), lambda ids: pc.equal(ids, slave))
    by_slave = from_slave
    if slave is not None:
        # Parts of two ids side by side may look like a third one: a doubt too many, which Python settles.
        by_slave = _each(rows.column("via_ids"), lambda ids: pc.match_substring(ids.cast(pa.binary()), slave))
    numbers = {
        **_stream_of(rows),
        **{"head_seq": rows.column("seq"), "head_ms": rows.column("write_ms"), "head_is_open": pc.invert(accepted)},
    }
    return pc.or_(pc.and_not(by_slave, from_slave), _is_narrow(rows, context)), _unless(from_slave, numbers)


def _segment(rows: pa.RecordBatch, accepted: pa.Array, context: RunContext) -> Numbers:
    prev, seq = rows.column("prev"), rows.column("seq")
    is_whole = _known(pc.and_(pc.greater_equal(prev, 0), pc.greater(seq, prev)))
    chains = [pc.subtract(_mixed(seq, mix), _mixed(prev, mix)) for mix in _MIXES]
    numbers = {
        **_stream_of(rows),
        **{"reach": seq, "reach_ms": rows.column("write_ms"), "segment_is_open": pc.invert(accepted)},
        **{"chain": chains[0], "other_chain": chains[1]},
    }
    return pc.or_(pc.invert(is_whole), _is_narrow(rows, context)), numbers


def _stream_of(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    return {"origin": rows.column("origin"), "via": pc.fill_null(rows.column("via"), 0)}


def _region(rows: pa.RecordBatch, accepted: pa.Array, context: RunContext) -> Numbers:
    state, tracked = rows.column("state"), sorted(context.tracked_servers)
    is_split = _each(state, lambda states: pc.equal(states, str(RegionState.SPLIT)))
    is_hosted = pc.or_(pc.is_null(state), _each(state, lambda states: pc.equal(states, str(RegionState.HOSTED))))
    is_tracked = _each(rows.column("server"), lambda servers: _is_in(servers, tracked))
    is_served = pc.or_(is_split, pc.and_(is_hosted, is_tracked))
    return _never(rows), {"is_split": is_split, "is_unserved": pc.invert(is_served)}


def _replicated(rows: pa.RecordBatch, accepted: pa.Array, context: RunContext) -> Numbers:
    return _never(rows), {"replicated_ms": rows.column("write_ms")}


def _fact(rows: pa.RecordBatch, accepted: pa.Array, context: RunContext) -> Numbers:
    # A region that has a `region` row is not gone, whatever `content` says (`regions._is_gone`), and a region without
    # one never passes.
    harmless = _each(rows.column("state"), lambda states: _is_in(states, [*map(str, LINEAGE), str(FactState.CONTENT)]))
    return pc.invert(pc.or_(harmless, accepted)), {}


def _other(rows: pa.RecordBatch, accepted: pa.Array, context: RunContext) -> Numbers:
    return pc.invert(accepted), {}


_FORMS: dict[str, Callable[[pa.RecordBatch, pa.Array, RunContext], Numbers]] = {
    "stream": _head,
    "segment": _segment,
    "region": _region,
    "replicated": _replicated,
    "fact": _fact,
}


def _differs(rows: pa.RecordBatch, context: RunContext) -> pa.Array:
    """True if the rows of a region differ."""
    return _is_in(rows.column("region"), sorted(context.rows.differing)) if context.rows.differing else _never(rows)


def _accepted(rows: pa.RecordBatch, context: RunContext) -> pa.Array:
    """True if a row is within the baseline of its table."""
    since = context.scope.since
    if since.everything_ms is None and not since.by_table:
        return _never(rows)
    until = _each(rows.column("table"), lambda names: pa.array(map(since.of, names.to_pylist()), _MS), since.of(None))
    return _known(pc.less_equal(rows.column("write_ms"), until))


def _is_narrow(rows: pa.RecordBatch, context: RunContext) -> pa.Array:
    """True if a stream is of no known family, or of one that the peer leaves out."""
    families = context.queues.families
    unknown = pc.is_null(rows.column("family"))
    if not families.listed:
        return unknown

    def left_out(names: pa.Array) -> pa.Array:
        # No table's name has a slash (`TableName.isLegalTableQualifierName`); that of a family may.
        pairs = (name.split("/", 1) for name in names.to_pylist())
        return pa.array([not families.ships(table, family) for table, family in pairs], pa.bool_())

    names = [rows.column(name).cast(pa.string()) for name in ("table", "family")]
    return pc.or_(unknown, _each(pc.binary_join_element_wise(*names, "/"), left_out))


# -- streams and regions -----------------------------------------------------------------------------------


def kinds_of(parts: Iterable[pa.Table], kinds: Sequence[Kind], context: RunContext) -> pa.Table:
    """Return `key` and the place of its `kind` for each region; null: in doubt.

    `parts` are the `NUMBERS` of all rows of some regions.
    """
    # Parts have only the columns of their kinds of rows: the empty table adds all others, with nulls.
    rows = pa.concat_tables([NUMBERS.empty_table(), *parts], promote_options="default")
    is_of_stream = pc.or_(pc.is_valid(rows["head_is_open"]), pc.is_valid(rows["segment_is_open"]))
    streams = _streams(rows.filter(is_of_stream), context)
    others = rows.filter(pc.invert(is_of_stream)).select(_OF_OTHERS)
    both = pa.concat_tables([streams, others.append_column("last_check", others["check"])], promote_options="default")
    found = _added(both, ("key",), _OF_REGION)
    usual = [
        # A region without a `region` row may be gone, and two of its rows may name two hosts.
        pc.equal(found["regions"], 1),
        pc.equal(found["check"], found["last_check"]),
        *(pc.invert(_known(found[name])) for name in ("is_doubt", "is_unserved", "is_torn")),
        # The original's rule says something else of all others.
        pc.or_kleene(pc.invert(_known(found["has_head"])), pc.greater_equal(found["replicated_ms"], found["known_ms"])),
    ]
    numbers = pc.add(pc.multiply(found["table"].cast(_SEQ), 4), _bits(found["has_head"], found["is_split"]))
    names = {table.table: place for place, table in enumerate(context.tables)}
    codes = [4 * names[kind.table] + 2 * kind.has_streams + kind.is_split for kind in kinds]
    place = pc.index_in(numbers, value_set=pa.array(codes, _SEQ))
    return pa.table({"key": found["key"], "kind": pc.if_else(_known(reduce(pc.and_kleene, usual)), place, None)})


_OF_OTHERS = ("key", "check", "table", "is_doubt", "is_split", "is_unserved", "replicated_ms")
_COMMON = {"check": ("check", "min"), "last_check": ("check", "max"), "table": ("table", "max")}
"""Rows of one region with two tables, or with two names that have the same key, have two checks."""
_OF_STREAM = {
    **_COMMON,
    "heads": ("head_is_open", "count"),
    "segments": ("segment_is_open", "count"),
    **{name: (name, "max") for name in ("head_seq", "head_ms", "reach", "reach_ms")},
    **{name: (name, "any") for name in ("is_doubt", "head_is_open", "segment_is_open")},
    **{name: (name, "sum") for name in ("chain", "other_chain")},
}
_OF_REGION = {
    **_COMMON,
    "last_check": ("last_check", "max"),
    "regions": ("is_unserved", "count"),
    **{name: (name, "any") for name in ("is_doubt", "is_split", "is_unserved", "has_head", "is_torn")},
    **{name: (name, "max") for name in ("known_ms", "replicated_ms")},
}


def _streams(rows: pa.Table, context: RunContext) -> pa.Table:
    """Add up rows of streams: whether one has a head, when that was written, and whether it is torn."""
    found = _added(rows, _STREAM, _OF_STREAM)
    origins = list(context.origin_rules.items())
    # An unknown origin has no place, and the null that it takes counts as not settled.
    place = pc.index_in(found["origin"], value_set=pa.array([origin for origin, _ in origins], pa.int64()))
    settled = pa.array([rule.settled for _, rule in origins], pa.bool_()).take(place)
    drained = pa.array([origin in context.queues.drained for origin, _ in origins], pa.bool_()).take(place)
    bound_ms = pa.array([later_bound(context.master, rule.after_ms) for _, rule in origins], _MS).take(place)
    reach = pc.fill_null(found["reach"], 0)
    # The highest segment of a crashed origin that the queues settled is a head as well (`streams.drained_heads`).
    is_implied = pc.and_(_known(drained), pc.greater(reach, 0))
    known = {
        # Nulls are skipped: of a stream there may be a head, or only what the slave has.
        name: pc.max_element_wise(found[f"head_{name}"], pc.if_else(is_implied, found[of], None))
        for name, of in (("seq", "reach"), ("ms", "reach_ms"))
    }
    has_head = pc.or_(pc.greater(found["heads"], 0), is_implied)
    is_open = pc.or_(_known(found["head_is_open"]), pc.and_(is_implied, _known(found["segment_is_open"])))
    is_chained = [
        pc.equal(pc.fill_null(found[name], 0), pc.subtract(_mixed(reach, mix), _mixed(_ZERO, mix)[0]))
        for name, mix in zip(("chain", "other_chain"), _MIXES, strict=True)
    ]
    # `judged` has to count the streams that were written to after the shutdown time, complete or not.
    is_late = _known(pc.greater(known["ms"], bound_ms))
    has_arrived = reduce(pc.and_kleene, [pc.less_equal(known["seq"], reach), *is_chained, pc.invert(is_late)])
    is_whole = [settled, pc.greater(known["seq"], 0), pc.or_kleene(pc.invert(is_open), has_arrived)]
    columns = {name: found[name] for name in ("key", "check", "last_check", "table", "is_doubt")}
    columns["known_ms"] = pc.if_else(has_head, known["ms"], None)
    columns["has_head"] = has_head
    columns["is_torn"] = pc.and_not(has_head, _known(reduce(pc.and_kleene, is_whole)))
    return pa.table(columns)


def _added(rows: pa.Table, by: Sequence[str], sums: dict[str, tuple[str, str]]) -> pa.Table:
    """Group rows, and name what is added up."""
    found = rows.group_by(list(by), use_threads=False).aggregate(list(sums.values()))
    return pa.table({name: found[name] for name in by} | {name: found["_".join(of)] for name, of in sums.items()})


# -- numbers -----------------------------------------------------------------------------------------------


def region_keys(names: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two numbers for the name of a region, which do not depend on one another."""
    is_usual = pc.all(pc.equal(pc.binary_length(names), _NAME_BYTES), min_count=0).as_py()
    if names.offset or names.type != pa.string() or not is_usual:
        names = _each(names, _of_usual_length)
    _, offsets, text = names.buffers()
    # The first offset need not be 0 (Arrow's columnar format).
    words = text.slice(int.from_bytes(memoryview(offsets)[:4], "little"), len(names) * _NAME_BYTES)
    each = _NAME_BYTES // _WORD_BYTES
    flat = pa.Array.from_buffers(_WORD, len(names) * each, [None, words])
    lists = pa.FixedSizeListArray.from_arrays(flat, each)
    parts = [pc.list_element(lists, place) for place in range(each)]
    first, second = (reduce(lambda key, part: pc.add(_mixed(key, mix), part), parts) for mix in _MIXES)
    return _mixed(first, _MIXES[0]), _mixed(second, _MIXES[1])


def _of_usual_length(names: pa.Array) -> pa.Array:
    found = (name if len(name.encode()) == _NAME_BYTES else _digest(name) for name in names.to_pylist())
    return pa.array(found, pa.string())


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=_NAME_BYTES // 2).hexdigest()


def _mixed(numbers: pa.Array, mix: tuple[int, ...]) -> pa.Array:
    """Return a hash of numbers.

    A segment adds that of its end to a chain, and takes that of its beginning away: where each starts at the end of
    another, both cancel each other, and of a stream without holes 0 and the last end remain. With a hole, an overlap
    or a segment that is there twice, other ends remain.
    """
    first, second, *shifts = mix
    # A safe cast raises for a negative number of a damaged row, which `_segment` has in doubt. The sums wrap: only the
    # `_checked` forms of Arrow's functions raise.
    mixed = pc.add(numbers.cast(_WORD, safe=False), _word(_ADDED))
    for shift, factor in zip(shifts, (first, second, 1), strict=True):
        mixed = pc.multiply(pc.bit_wise_xor(mixed, pc.shift_right(mixed, _word(shift))), _word(factor))
    return mixed


def _word(number: int) -> pa.Scalar:
    return pa.scalar(number, _WORD)


def _each(column: pa.Array, of: Callable[[pa.Array], pa.Array], otherwise: object = None) -> pa.Array:
    """Apply a function to the distinct values of a column; what is unknown of a condition is false."""
    # Names repeat over many rows, and a function in Python sees each once.
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    found = of(encoded.dictionary).take(encoded.indices)
    if pa.types.is_boolean(found.type):
        return _known(found)
    return found if otherwise is None else pc.fill_null(found, otherwise)


def _places(column: pa.Array, names: Sequence[str]) -> pa.Array:
    """Return where a name stands among others; their number if it does not."""
    known = {name: place for place, name in enumerate(names)}

    def places(values: pa.Array) -> pa.Array:
        return pa.array([known.get(value, len(names)) for value in values.to_pylist()], pa.int32())

    return pc.fill_null(_each(column, places), len(names))


def _known(conditions: pa.Array) -> pa.Array:
    """Return conditions with null read as false."""
    return pc.fill_null(conditions, False)


def _never(rows: pa.RecordBatch) -> pa.Array:
    return pa.repeat(pa.scalar(False), rows.num_rows)


def _is_in(values: pa.Array, names: Collection[str]) -> pa.Array:
    return pc.is_in(values, value_set=pa.array(names, pa.string()))


def _bits(high: pa.Array, low: pa.Array) -> pa.Array:
    return pc.add(pc.multiply(_known(high).cast(_SEQ), 2), _known(low).cast(_SEQ))


def _unless(condition: pa.Array, numbers: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return numbers without those of the rows for which a condition holds."""
    return {name: pc.if_else(condition, None, column) for name, column in numbers.items()}
