"""The short way: regions that are evidently complete, decided by extremes and sums of their rows alone.

Nearly all regions of a healthy cluster are. What is decided here, `rules.regions` would decide in the same way, with
no finding, no lag and no later write; it judges all others. There is SQL only: the plain form is `rules.regions`, and
the tests hold both equal.

Rows (`row_sql`) are grouped by stream (`stream_aggregates_sql`), streams by region (`number_aggregates_sql`). They hold
numbers alone, so that groups are hashed and need not be sorted; a table has a number for its name (`table_key_sql`).
"""

from __future__ import annotations

from status_tool.rules import regions
from status_tool.rules.context import RunContext
from status_tool.rules.segments import is_ordered_sql
from status_tool.rules.sql import IS_HEAD, IS_SEGMENT, case, is_in, known_true
from status_tool.rules.streams import COMPLETE_CODES
from status_tool.rules.timestamps import timestamps_code_sql

_BLEMISH, _HEAD, _SEGMENT, _REGION, _REPLICATED, _OTHER = range(6)
_CHAINS = {"chain": "xxhash64({})", "other_chain": "xxhash64({}, 1)"}
"""Two hashes of a sequence id that do not depend on one another."""


def table_key_sql() -> str:
    """A number for a table's name; rows without a name have a number of their own."""
    return "xxhash64(`table`)"


def row_sql(context: RunContext) -> dict[str, str]:
    """What is asked of a row besides its sequence ids and times: what it is, its table, and what it says of a region.

    A row that is none of these is counted as one that may be a blemish, or only shows that there is such a region.
    """
    return {
        "what": case(
            (IS_HEAD, str(_HEAD)),
            (IS_SEGMENT, str(_SEGMENT)),
            (regions.IS_REGION, str(_REGION)),
            ("kind = 'replicated'", str(_REPLICATED)),
            (regions.may_blemish_sql(context), str(_BLEMISH)),
            default=str(_OTHER),
        ),
        "table_key": table_key_sql(),
        "host": case((regions.IS_REGION, regions.host_sql(context))),
        "exists": regions.IS_EXISTING,
        "named": "family IS NOT NULL",
    }


def stream_aggregates_sql() -> dict[str, str]:
    """What the rows of one stream add up to, and those that are of none; over `row_sql`."""
    is_head, is_segment = f"what = {_HEAD}", f"what = {_SEGMENT}"
    return {
        "heads": f"count_if({is_head})",
        "head_seq": f"max(IF({is_head}, seq, NULL))",
        "is_of_family": f"count_if({is_head} AND `named`) > 0",
        "first_ms": f"min(IF({is_head}, first_ms, NULL))",
        "write_ms": f"max(IF({is_head}, write_ms, NULL))",
        "reach": f"coalesce(max(IF({is_segment}, seq, NULL)), 0L)",
        "reach_ms": f"max(IF({is_segment}, write_ms, NULL))",
        **{name: f"bit_xor(IF({is_segment}, {_link(of)}, NULL))" for name, of in _CHAINS.items()},
        "replicated_ms": f"max(IF(what = {_REPLICATED}, write_ms, NULL))",
        "region_rows": f"count_if(what = {_REGION})",
        "existing": "count_if(`exists`)",
        "host": "max(host)",
        "blemishes": f"count_if(what = {_BLEMISH})",
        "table_key": "min(table_key)",
        "last_table_key": "max(table_key)",
    }


def whole_sql(context: RunContext) -> dict[str, str]:
    """`is_whole`: that no hole is among the segments; and what the rules of a stream read of one without holes."""
    unknown = "CAST(NULL AS BIGINT)"
    chained = " AND ".join(f"{name} = {of.format('0L')} ^ {of.format('reach')}" for name, of in _CHAINS.items())
    ordered = is_ordered_sql("head_table", "is_of_family", context.rule.ordered)
    holes = {"holes": "0", "stays": "0", "hole_from": unknown, "hole_from_ms": unknown}
    return {
        "is_whole": known_true(f"reach = 0 OR ({chained}) OR {ordered}"),
        "segments": "IF(reach > 0, 1, 0)",
        **holes,
    }


def number_aggregates_sql(context: RunContext) -> dict[str, str]:
    """What streams add up to, over `stream_aggregates_sql`, `whole_sql`, `code` and `later`."""
    complete = known_true(f"{is_in('code', COMPLETE_CODES)} AND is_whole AND later = 0")
    ordered = is_ordered_sql("head_table", "is_of_family", context.rule.ordered)
    return {
        **{name: f"sum({name})" for name in ("heads", "region_rows", "existing", "blemishes")},
        **{name: f"max({name})" for name in ("host", "replicated_ms", "last_table_key")},
        "table_key": "min(table_key)",
        "written_ms": "max(IF(heads > 0, write_ms, NULL))",
        "is_ordered": f"count_if(heads > 0 AND {ordered}) > 0",
        "streams_in_doubt": f"count_if(heads > 0 AND NOT {complete})",
    }


def without_blemish_sql() -> dict[str, str]:
    """What `regions.flags_sql` and `regions.decision_sql` read of blemishes, where there are none."""
    counts = ("changes", "contents", "lineage", "loads", "local_loads", "unstamped", "stream_status")
    unknown = "CAST(NULL AS BIGINT)"
    return {
        **dict.fromkeys(counts, "0"),
        "content_ms": unknown,
        "partial": "CAST(array() AS ARRAY<STRUCT<family: STRING, write_ms: BIGINT>>)",
        "own": "array()",
    }


def decision_sql(context: RunContext) -> dict[str, str]:
    """`is_evident`, and what `regions.decision_sql` and `timestamps` say of such a region; over `regions.flags_sql`."""
    decided = regions.decision_sql(context)
    hosted = "region_rows = 1 AND table_key = last_table_key AND `table` IS NOT NULL"
    wrong = f"streams_in_doubt > 0 OR blemishes > 0 OR {regions.has_findings_sql()}"
    return {
        "is_evident": known_true(f"{hosted} AND NOT ({wrong})"),
        **{name: decided[name] for name in ("in_scope", "status", "evidence")},
        "timestamps": timestamps_code_sql(context),
    }


def _link(of: str) -> str:
    """What a segment adds to a chain; where each one starts at the end of another, both of these cancel each other.

    Of the ends of segments without a hole between them only 0 and the last one remain. With a hole they do not: the
    segments beyond it have an even number of ends, and all but the last one would have to cancel.
    """
    return f"{of.format('prev')} ^ {of.format('seq')}"
