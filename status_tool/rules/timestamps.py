"""The original's rule: compare each region's newest write on the master with its newest replicated write on the slave.

It decides for the original's status files, which hold nothing else. Elsewhere its result is shown beside the exact one.
"""

from __future__ import annotations

from status_tool.rules.context import RunContext
from status_tool.rules.origins import known_shutdown
from status_tool.rules.regions import Region
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


def judge_by_timestamps(region: Region, context: RunContext) -> tuple[str, Finding | None] | None:
    """Return the code of a region and its finding; None for a region that is not in scope."""
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
