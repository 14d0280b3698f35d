"""The original's rule: compare each region's newest write on the master with its newest replicated write on the slave.

It decides for the original's status files, which hold nothing else. Elsewhere its result is shown beside the exact one.
"""

from __future__ import annotations

from status_tool.rules.context import RunContext
from status_tool.rules.later_writes import later_bound
from status_tool.rules.origins import known_shutdown
from status_tool.rules.regions import Region
from status_tool.rules.sql import IS_HEAD, case, finding, known_true, present
from status_tool.rules.streams import severity_sql
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.verdicts import Evidence


def timestamps_code(region: Region, context: RunContext) -> str:
    """Replicated after the shutdown, or as late as written; one of `STREAM_CODES`."""
    written_ms, replicated_ms = region.written_ms, region.replicated_ms
    if context.evidence is not Evidence.TIMESTAMPS and not region.heads:
        return "covered"
    if replicated_ms is None:
        return "missing"
    if known_shutdown(context.master) and replicated_ms > (context.master.shutdown_ms or 0):
        return "covered"
    return "covered" if written_ms is not None and replicated_ms >= written_ms else "behind"


def timestamps_code_sql(context: RunContext) -> str:
    """As `timestamps_code`."""
    exact = context.evidence is not Evidence.TIMESTAMPS
    shutdown = f"replicated_ms > {context.master.shutdown_ms}" if known_shutdown(context.master) else "false"
    return case(
        ("heads = 0" if exact else "false", "'covered'"),
        ("replicated_ms IS NULL", "'missing'"),
        (f"{shutdown} OR replicated_ms >= written_ms", "'covered'"),
        default="'behind'",
    )


def judge_by_timestamps(region: Region, context: RunContext) -> tuple[str, Finding | None] | None:
    """The code of a region and its finding; None for a region that is not in scope."""
    if not region.heads:
        return None
    code, written_ms, replicated_ms = timestamps_code(region, context), region.written_ms, region.replicated_ms
    if code == "covered":
        return code, None
    lag = written_ms - replicated_ms if written_ms is not None and replicated_ms is not None else None
    return code, Finding(
        code,
        table=region.table,
        region=region.name,
        written_from_ms=replicated_ms,
        written_to_ms=written_ms,
        repair_to_ms=written_ms,
        lag_ms=lag,
    )


def timestamp_aggregates_sql() -> dict[str, str]:
    """What the rule reads from the `stream` and `replicated` rows of a region."""
    return {
        "table": "max(`table`)",
        "heads": f"count_if({IS_HEAD})",
        "written_ms": f"max(IF({IS_HEAD}, write_ms, NULL))",
        "replicated_ms": f"max(IF({IS_HEAD}, NULL, write_ms))",
    }


def lag_sql() -> str:
    """How long a region is behind, over `timestamps`, the `timestamps_code_sql`."""
    return "IF(timestamps = 'behind', try_subtract(written_ms, replicated_ms), NULL)"


def decision_sql(context: RunContext) -> dict[str, str]:
    """As `judge_by_timestamps`, over `timestamps` and `lag_ms`, with the columns of `regions.decision_sql`."""
    times = {"written_from_ms": "replicated_ms", "written_to_ms": "written_ms", "repair_to_ms": "written_ms"}
    at_fault = finding("timestamps", table="`table`", region="region", lag_ms="lag_ms", **times)
    decision = {
        "in_scope": "heads > 0",
        "evidence": f"'{Evidence.TIMESTAMPS}'",
        "status": severity_sql("timestamps"),
        "table_status": "CAST(NULL AS INT)",
        "start_key": "CAST(NULL AS BINARY)",
        "end_key": "CAST(NULL AS BINARY)",
        "findings": present(f"IF(timestamps != 'covered', {at_fault}, NULL)"),
    }
    return decision | _later_sql(context)


def written_later(region: Region, context: RunContext) -> bool:
    """Whether the region was written to after the shutdown time."""
    bound_ms = later_bound(context.master, None)
    return bound_ms is not None and (region.written_ms or 0) > bound_ms


def _later_sql(context: RunContext) -> dict[str, str]:
    bound_ms = later_bound(context.master, None)
    later = known_true("false" if bound_ms is None else f"heads > 0 AND written_ms > {bound_ms}")
    return {"later": f"CAST(IF({later}, 1, 0) AS BIGINT)", "later_ms": f"IF({later}, written_ms, NULL)"}
