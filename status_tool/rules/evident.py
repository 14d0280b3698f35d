"""The short way: which regions are evidently complete, by extremes and sums of their rows alone.

Nearly all regions of a healthy cluster are. This filter is the only SQL that judges, and it leaves a region out as soon
as anything about it is unusual: `rules.regions` judges all others. What passes differs in nothing that a verdict
depends on but its table, whether it has streams, and whether it was split. So one region of each kind is judged in
the place of all (`verdicts_of`).

Rows (`row_sql`) are grouped by stream (`stream_aggregates_sql`), streams by region (`region_aggregates_sql`). They hold
numbers alone, so that groups are hashed and need not be sorted; a table has a number for its name (`table_key_sql`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from status_tool.rules.context import RunContext
from status_tool.rules.regions import Region, judge_region
from status_tool.rules.sql import case, is_in, known_true, since_sql
from status_tool.vocabulary.ids import cluster_bytes
from status_tool.vocabulary.states import LINEAGE, FactState, RegionState
from status_tool.vocabulary.verdicts import SEVERITY, Evidence, Status

_DOUBT, _HEAD, _SEGMENT, _REGION, _REPLICATED, _NOTHING = range(6)
_CHAINS = {"chain": "xxhash64({})", "other_chain": "xxhash64({}, 1)"}
"""Two hashes of a sequence id that do not depend on one another."""


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
        return  # a region of which a witness was sent nothing has no rows of its
    names = [table.table for table in context.tables]
    for table, has_streams, is_split in product(names, (True, False), (True, False)):
        verdict = judge_region(_example(table, has_streams, is_split, context), context)
        if verdict is None:
            yield Kind(table, has_streams, is_split, False, 0, Evidence.EXACT)
        elif not verdict.findings and all(one.status is Status.COMPLETE for _, one in verdict.streams):
            yield Kind(table, has_streams, is_split, True, SEVERITY[verdict.status], verdict.evidence)


def _example(table: str, has_streams: bool, is_split: bool, context: RunContext) -> Region:
    region = Region("")
    state = RegionState.SPLIT if is_split else RegionState.HOSTED
    region.add({"kind": "region", "table": table, "state": state, "server": min(context.tracked_servers, default=None)})
    if has_streams:
        settled = (origin for origin, rule in context.origin_rules.items() if rule.settled)
        stream = {"table": table, "origin": next(settled, None), "prev": 0, "seq": 1, "family": ""}
        region.add({"kind": "stream", **stream})
        region.add({"kind": "segment", **stream})
    return region


def table_key_sql() -> str:
    """Return a number for a table's name; rows without a name have a number of their own."""
    return "xxhash64(`table`)"


def row_sql(context: RunContext) -> dict[str, str]:
    """Return SQL for a row besides its sequence ids and times: what it is, its table, and what it says of a region.

    Whatever may cast a doubt on its region is a doubt.
    """
    hosted = f"coalesce(state, '{RegionState.HOSTED}') = '{RegionState.HOSTED}'"
    is_split = known_true(f"state = '{RegionState.SPLIT}'")
    accepted = known_true(f"write_ms <= {since_sql(context.scope.since, '`table`')}")
    harmless = is_in("state", (*LINEAGE, FactState.CONTENT))
    return {
        "what": case(
            (_is_doubtful_sql(context), str(_DOUBT)),
            (_is_never_sent_sql(context), str(_NOTHING)),
            ("kind = 'stream'", str(_HEAD)),
            ("kind = 'segment'", f"IF({known_true('prev >= 0 AND seq > prev')}, {_SEGMENT}, {_DOUBT})"),
            ("kind = 'region'", str(_REGION)),
            ("kind = 'replicated'", str(_REPLICATED)),
            (f"(kind = 'fact' AND {harmless}) OR {accepted}", str(_NOTHING)),
            default=str(_DOUBT),
        ),
        "via": "coalesce(via, 0L)",
        "table_key": table_key_sql(),
        "is_split": is_split,
        "is_served": f"{is_split} OR ({hosted} AND {known_true(is_in('server', sorted(context.tracked_servers)))})",
        "accepted": accepted,
    }


def _is_doubtful_sql(context: RunContext) -> str:
    """True if a row is of a region or stream that is judged by more than its numbers."""
    differs = known_true(is_in("region", sorted(context.rows.differing)))
    slave = cluster_bytes(context.slave.cluster_id)
    by_slave = "false" if slave is None else f"instr(hex(via_ids), '{slave.hex().upper()}') > 0"
    through = f"kind = 'stream' AND {by_slave} AND NOT {_is_never_sent_sql(context)}"
    families = context.queues.families
    known = [
        f"{table}/{family}"
        for table in sorted(families.listed)
        for family in sorted({*context.families_of(table), ""})
        if families.ships(table, family)
    ]
    shipped = is_in("concat(`table`, '/', family)", known)
    listed = is_in("`table`", sorted(families.listed))
    narrow = f"kind IN ('stream', 'segment') AND (family IS NULL OR {listed} AND NOT {shipped})"
    return " OR ".join(f"({known_true(one)})" for one in (differs, through, narrow))


def _is_never_sent_sql(context: RunContext) -> str:
    """True if a head is of entries that came from the slave itself; of longer ways Python decides."""
    slave = cluster_bytes(context.slave.cluster_id)
    return "false" if slave is None else known_true(f"kind = 'stream' AND via_ids = X'{slave.hex()}'")


def stream_aggregates_sql() -> dict[str, str]:
    """Return SQL that adds up the rows of one stream, and those of none, over `row_sql`."""
    is_head, is_segment, is_region = f"what = {_HEAD}", f"what = {_SEGMENT}", f"what = {_REGION}"
    return {
        "heads": f"count_if({is_head})",
        "head_seq": f"max(IF({is_head}, seq, NULL))",
        "head_ms": f"max(IF({is_head}, write_ms, NULL))",
        "open_heads": f"count_if({is_head} AND NOT accepted)",
        "reach": f"coalesce(max(IF({is_segment}, seq, NULL)), 0L)",
        "reach_ms": f"max(IF({is_segment}, write_ms, NULL))",
        "open_segments": f"count_if({is_segment} AND NOT accepted)",
        **{name: f"bit_xor(IF({is_segment}, {_link(of)}, NULL))" for name, of in _CHAINS.items()},
        "replicated_ms": f"max(IF(what = {_REPLICATED}, write_ms, NULL))",
        "regions": f"count_if({is_region})",
        "unserved": f"count_if({is_region} AND NOT is_served)",
        "splits": f"count_if({is_region} AND is_split)",
        "doubts": f"count_if(what = {_DOUBT})",
        "table_key": "min(table_key)",
        "last_table_key": "max(table_key)",
    }


def origin_sql() -> dict[str, str]:
    """Return `has_head`, `known_seq`, `known_ms`, `is_open`: the head of a stream, over what is known of its origin.

    What the slave has of a crashed origin that the queues settled (`is_drained`) is a head as well.
    """
    implied = f"{known_true('is_drained')} AND reach > 0"
    return {
        "has_head": f"heads > 0 OR ({implied})",
        "known_seq": f"greatest(head_seq, IF({implied}, reach, NULL))",
        "known_ms": f"greatest(head_ms, IF({implied}, reach_ms, NULL))",
        "is_open": f"open_heads > 0 OR ({implied} AND open_segments > 0)",
    }


def is_whole_sql() -> str:
    """True if all of a stream that has a head has arrived, or is accepted, and nothing is later than the shutdown."""
    chained = " AND ".join(f"{name} = {of.format('0L')} ^ {of.format('reach')}" for name, of in _CHAINS.items())
    arrived = f"known_seq <= reach AND ({chained}) AND NOT {known_true('known_ms > bound_ms')}"
    return known_true(f"settled AND known_seq > 0 AND (NOT is_open OR ({arrived}))")


def region_aggregates_sql() -> dict[str, str]:
    """Return SQL that adds up streams, over `stream_aggregates_sql`, `whole_sql`, `code` and `later`."""
    return {
        **{name: f"sum({name})" for name in ("regions", "unserved", "splits", "doubts")},
        "streams": "count_if(has_head)",
        "torn": "count_if(has_head AND NOT is_whole)",
        "written_ms": "max(IF(has_head, known_ms, NULL))",
        "replicated_ms": "max(replicated_ms)",
        "table_key": "min(table_key)",
        "last_table_key": "max(last_table_key)",
    }


def kind_sql() -> dict[str, str]:
    """Return the columns of `Kind` that are joined, and whether a region may be of one."""
    usual = "regions = 1 AND unserved = 0 AND doubts = 0 AND torn = 0 AND table_key = last_table_key"
    return {
        "has_streams": "streams > 0",
        "is_split": "splits > 0",
        # In all others the original's rule says something else.
        "is_usual": known_true(f"{usual} AND (streams = 0 OR replicated_ms >= written_ms)"),
    }


def _link(of: str) -> str:
    """Return SQL for what a segment adds to a chain. Where each starts at the end of another, both cancel each other.

    Of the ends of segments without a hole between them only 0 and the last one remain. With a hole they do not: the
    segments beyond it have an even number of ends, and all but the last one would have to cancel.
    """
    return f"{of.format('prev')} ^ {of.format('seq')}"
