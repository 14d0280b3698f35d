"""Checks of two sides by their headers: the tables in scope, different clusters, a slave read after the cut."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from status_tool.printable import duration
from status_tool.vocabulary.details import object_in
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import MASTER, Header
from status_tool.vocabulary.names import PUBLISHED_FAMILY, plain_name, status_table_of
from status_tool.vocabulary.scope import Scope, TableFilter

LOCAL_POOL = "file:"
"""Stands for the identity of local folders."""
UNKNOWN_POOL = "?"
"""Stands for a block pool that is not known, beside those of the same side that are."""
CLOCK_TOLERANCE_MS = 30_000
"""Difference that the clocks of the tool's two hosts may have without a notice; HBase allows its servers as much."""


def cannot_report(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Live region servers, of a slave's `server` rows, whose HBase does not report what its sink has applied."""
    return sorted(
        str(row.get("server"))
        for row in rows
        if row.get("kind") == "server"
        and row.get("live")
        and (object_in(row.get("detail")) or {}).get("sink_hook") is False
    )


def same_hdfs(master: Header, slave: Header) -> bool:
    """Return True if both sides listed one and the same HDFS, or views that share one."""
    # Two ids that nobody knows are not one HDFS, nor are local folders of two hosts.
    pools = [_pools(header) - {"", LOCAL_POOL, UNKNOWN_POOL} for header in (master, slave)]
    return bool(pools[0] & pools[1])


def _pools(header: Header) -> set[str]:
    return set(header.hdfs_pool_id.split(","))


def is_pruned(master: Header, slave: Header) -> bool:
    """Return True if FILE may need segments that the slave has pruned because a newer FILE needed them no more."""
    pruned_ms = slave.pruned.get(master.cluster_id)
    # The FILE by which the slave was pruned has this very barrier, and lacks nothing.
    return pruned_ms is not None and (master.barrier_issued_ms or 0) < pruned_ms


def identity_notice(master: Header, slave: Header) -> str | None:
    """Return the notice where it would go undetected that both sides are the same HDFS, or that they share a part."""
    unknown = [header.side for header in (master, slave) if not header.hdfs_pool_id]
    partly = [header.side for header in (master, slave) if UNKNOWN_POOL in _pools(header)]
    if not (unknown or partly):
        return None
    whose = " and ".join(f"the {side}'s" for side in unknown or partly)
    lacking = (
        "does not identify its HDFS (HttpFS, or a NameNode whose /jmx is closed)"
        if unknown
        else "does not identify all of its HDFS (no file of a mount point, or of fs.defaultFS, told its block pool)"
    )
    return f"HDFS: {whose} status {lacking}, so it cannot be checked that the two sides are different"


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


def asked_filter(scope: Scope) -> TableFilter:
    """Return the scope that the user chose."""
    return TableFilter.of(scope.tables, scope.namespaces)


def recorded_filter(header: Header) -> TableFilter:
    """Return the filter that a side's status was recorded with."""
    # A table of the master may have the name of the slave's state table, and is in scope.
    own = (plain_name(header.state_table), header.status_table) if header.side == MASTER else ()
    return TableFilter.of(header.tables, header.namespaces, [name for name in own if name])


def own_status_table(state_table: str, families: Mapping[str, Collection[str]]) -> str:
    """Return the cluster's table of published status files; empty if there is none, or a user's table has its name.

    `families` are those of each table.
    """
    name = status_table_of(state_table)
    return name if set(families.get(name, ())) == {PUBLISHED_FAMILY} else ""


def in_scope(table: str | None, filters: Sequence[TableFilter]) -> bool:
    """Return True if a table is in the scope of the run and of both files."""
    return all(one.holds(table) for one in filters)
