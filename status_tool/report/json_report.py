"""The contract's JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from status_tool.report.summary import file_counts, left_out, region_counts
from status_tool.vocabulary.outcome import NotReplicated, Outcome, Overview
from status_tool.vocabulary.verdicts import Evidence

MAX_JSON_TABLES = 100
"""Number of tables that `not_replicated` names."""


def json_report(outcome: Outcome) -> Iterator[str]:
    """Yield the document and a newline.

    All of it is ASCII: no name can break the document or send control sequences to a terminal.
    """
    # NaN and Infinity are no JSON, and Python writes them unless it is told not to.
    yield from json.JSONEncoder(indent=2, ensure_ascii=True, allow_nan=False).iterencode(_document(outcome))
    yield "\n"


def _document(outcome: Outcome) -> dict[str, Any]:
    """Return the document: the contract's keys in its order, additions after them."""
    regions, files = left_out(outcome)
    return {
        "verdict": outcome.verdict.value,
        "exit_code": outcome.exit_code,
        "cut_ms": outcome.cut_ms,
        "shutdown_ms": outcome.shutdown_ms,
        "master_cluster_id": outcome.master_cluster_id,
        "slave_cluster_id": outcome.slave_cluster_id,
        "peer_id": outcome.peer_id,
        "hbase": _hbase(outcome),
        "hdfs": _hdfs(outcome),
        "problems": [problem.to_json() for problem in outcome.problems],
        "notices": list(outcome.notices),
        "shutdown_from": outcome.shutdown_from or None,
        "unlisted": {"regions": regions, "files": files},
        "limits": list(outcome.limits),
        "master_address": outcome.master_address or None,
        "slave_address": outcome.slave_address or None,
        "slave_taken_ms": outcome.slave_taken_ms,
        **_overview(outcome.overview),
    }


def _overview(overview: Overview) -> dict[str, Any]:
    """Return tables, causes and repairs: all of them, regardless of `--max-problems`."""
    return {
        "tables": [
            {"table": line.table, "regions": {str(s): n for s, n in line.regions.items()}, "lag_ms": line.lag_ms}
            for line in overview.tables
        ],
        "causes": [
            {
                "kind": group.kind,
                "code": group.code,
                "table": group.table,
                "count": group.count,
                "lag_ms": group.lag_ms,
                "what_to_do": group.todo or None,
                "example": group.example.to_json(),
            }
            for group in overview.groups
        ],
        "repairs": [
            {
                "table": repair.table,
                "reasons": list(repair.reasons),
                "stuck": repair.stuck,
                "first": list(repair.first),
                **asdict(repair.commands),
                "dry_run": repair.dry_run,
                "since_ms": repair.since_ms,
            }
            for repair in overview.repairs
        ],
        "oldest_hole_ms": overview.oldest_hole_ms,
    }


def _hbase(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.hbase is None:
        return None
    counts = outcome.hbase.evidence_by
    return {
        "verdict": outcome.hbase.verdict.value,
        "evidence": outcome.hbase.evidence.value,
        "regions": region_counts(outcome),
        "worst_lag_ms": outcome.hbase.worst_lag_ms,
        "timestamps_complete": outcome.hbase.timestamps_complete,
        # No tracker records `ordered` any more, but readers may ask for it.
        "evidence_by": {**{level.value: counts.get(level, 0) for level in Evidence}, "ordered": 0},
        "accepted_tables": list(outcome.hbase.accepted_tables),
        "not_replicated": _not_replicated(outcome.hbase.not_replicated),
        "later_writes": [asdict(later) for later in outcome.hbase.later],
    }


def _not_replicated(left_out: NotReplicated | None) -> dict[str, Any] | None:
    """Return complete counts, and bounded lists of names."""
    if left_out is None:
        return None
    # None for a table that is left out as a whole, whatever its families.
    names: dict[str, list[str] | None] = dict.fromkeys(left_out.tables)
    for table, family in left_out.families:
        families = names.setdefault(table, [])
        if families is not None:
            families.append(family)
    shown = [{"table": table, "families": families} for table, families in names.items()][:MAX_JSON_TABLES]
    return {"tables": len(left_out.tables), "families": len(left_out.families), "names": shown}


def _hdfs(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.hdfs is None:
        return None
    return {"verdict": outcome.hdfs.verdict.value, "files": file_counts(outcome)}
