"""Checks of two sides' headers: different clusters, and a slave's status that was read after the cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from status_tool.printable import duration
from status_tool.vocabulary.details import loads
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import Scope

LOCAL_POOL = "file:"
"""Stands for the identity of local folders."""
CLOCK_TOLERANCE_MS = 30_000
"""How far the clocks of two hosts that run the tool may differ without a notice; HBase allows its servers as much."""


def cannot_report(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Live region servers, of a slave's `server` rows, whose HBase does not report what its sink has applied."""
    return sorted(
        str(row.get("server"))
        for row in rows
        if row.get("kind") == "server" and row.get("live") and _health(row).get("sink_hook") is False
    )


def _health(row: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        health = loads(row.get("detail") or "{}")
    except ValueError:
        return {}
    return health if isinstance(health, dict) else {}


def same_hdfs(master: Header, slave: Header) -> bool:
    """Return True if both sides listed one and the same HDFS, or views that share one."""
    pools = [set(header.hdfs_pool_id.split(",")) - {"", LOCAL_POOL} for header in (master, slave)]
    return bool(pools[0] & pools[1])


def is_pruned(master: Header, slave: Header) -> bool:
    """Return True if FILE may need segments that the slave has pruned because a newer FILE needed them no more."""
    pruned_ms = slave.pruned.get(master.cluster_id)
    return pruned_ms is not None and (master.barrier_issued_ms or 0) < pruned_ms


def identity_notice(master: Header, slave: Header) -> str | None:
    """Return the notice where it would go undetected that both sides are the same HDFS."""
    unknown = [header.side for header in (master, slave) if not header.hdfs_pool_id]
    if not unknown:
        return None
    whose = " and ".join(f"the {side}'s" for side in unknown)
    return (
        f"HDFS: {whose} status does not identify its HDFS (HttpFS, a NameNode whose /jmx is closed, or a file"
        " of an older status-tool), so it cannot be checked that the two sides are different"
    )


def older_findings(master: Header, slave: Header, scope: Scope) -> list[Finding]:
    """Return a finding for a slave's file from before the cut: it cannot show what had arrived by then."""
    age_ms = master.cut_ms - slave.created_ms
    if not scope.offline or age_ms <= CLOCK_TOLERANCE_MS:
        return []
    return [Finding("slave-older", written_from_ms=slave.created_ms, written_to_ms=master.cut_ms)]


def older_notice(master: Header, slave: Header, scope: Scope) -> str | None:
    """Return a notice for a slave's file from between the cut and FILE.

    Such a file is right for HBase, but older than the files that it is compared with.
    """
    age_ms = master.created_ms - slave.created_ms
    if not scope.offline or age_ms <= CLOCK_TOLERANCE_MS or master.cut_ms - slave.created_ms > CLOCK_TOLERANCE_MS:
        return None
    return (
        f"the slave's status is {duration(age_ms)} older than FILE: what has arrived or changed on the slave since"
        " then is not in it"
    )
