"""Families of a table as the trackers know them, and the cells that two sides can be expected to share."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.digests.digest import FOREVER, Family
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.gather.snapshot import peer_rows
from status_tool.printable import iso
from status_tool.rules.descriptors import TTL_FOREVER, time_to_live
from status_tool.rules.peers import PeerFacts, leads_to, parse_peer, shipped, ships
from status_tool.rules.server_settings import peers_elsewhere
from status_tool.sources import meta
from status_tool.sources.state_table import StateTable, now_ms
from status_tool.vocabulary.details import fits, is_flag, is_number, is_text

DESCRIBED_S = 30.0
HORIZON_MS = 20 * 60_000
"""Cells that may outlive their TTL so soon are not compared."""
CLOCKS_MS = 5 * 60_000
"""Difference that clocks may have."""
_FAMILY = {
    "scope": is_number,
    "versions": is_number,
    "ttl": is_number,
    "min_versions": is_number,
    "keep_deleted": is_text,
    "new_version_behavior": is_flag,
}


@dataclass(frozen=True)
class DescribedCluster:
    """One side, as far as digests need it."""

    settings: Settings
    id: str
    tables: Mapping[str, Mapping[str, Any]]
    """By table and family: the properties that the trackers wrote down."""
    peers_elsewhere: str = ""
    """Where its peers are, if they are not those in ZooKeeper."""


@dataclass(frozen=True)
class Comparable:
    """Rules for the comparison of a table."""

    families: Mapping[bytes, Family]
    doubts: tuple[str, ...]
    """Reasons why one history may have left other cells on the two sides; equal sums prove equality all the same."""
    horizon_ms: int | None
    """After it, cells that are compared may have outlived their TTL; None: none has one."""
    notices: tuple[str, ...] = ()


def is_described(family: Any) -> bool:
    """Return True if the trackers recorded all properties of a family that digests need."""
    return fits(family, _FAMILY)


def require_described(families: Iterable[Any], where: str) -> None:
    """Raise `ConfigurationError` unless all families are."""
    if not all(is_described(family) for family in families):
        raise ConfigurationError(f"the trackers of {where} are of a version without row digests: upgrade them")


def describe(settings: Settings, tables: Sequence[str], say: Callable[[str], None]) -> DescribedCluster:
    """Let the trackers record the tables, and read the result. Raises `ConfigurationError` and `ConnectionFailed`."""
    state = StateTable(settings.thrift(), settings.state_table)
    state.require()
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        cluster_id, servers = zookeeper.cluster_id(), frozenset(zookeeper.live_servers())
        # Before the barrier, which would otherwise go into the state table of another cluster.
        require_same_cluster(settings, zookeeper)
    barrier = state.put_barrier()
    say("waiting for the descriptors of the tables")
    deadline = time.monotonic() + DESCRIBED_S
    # A tracker writes the descriptors of many tables by several requests: those of the first are no sign that a table
    # does not exist.
    existing = meta.existing(settings.thrift(), set(tables) - {settings.state_table})
    while True:
        small = state.descriptors(barrier)
        found = {str(row["table"]): json.loads(str(row["detail"])).get("families", {}) for row in small.tables}
        lacking = sorted(existing - found.keys())
        if (found and not lacking) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if not found:
        raise ConnectionFailed(
            f"no tracker of the cluster at {settings.zookeeper()} has answered within {DESCRIBED_S:g} s: do its "
            "region servers run with the trackers?"
        )
    if lacking:
        raise ConnectionFailed(
            f"no tracker of the cluster at {settings.zookeeper()} has described table {lacking[0]} within "
            f"{DESCRIBED_S:g} s: run again, and if it stays, look at the region servers' logs"
        )
    for table in tables:
        require_described(found.get(table, {}).values(), f"the cluster at {settings.zookeeper()}")
    # The trackers' word counts for live servers, and most of them answer later than the first is described: it may also
    # be that of an earlier barrier, as a server keeps its setting until it ends.
    live = ({**row, "live": row["server"] in servers} for _, row in small.servers)
    return DescribedCluster(settings, cluster_id, found, next(peers_elsewhere(live), settings.peers_elsewhere))


def require_same_cluster(settings: Settings, zookeeper: ZooKeeper) -> None:
    """Raise `ConfigurationError` unless the Thrift server is that of the cluster to which ZooKeeper gives its id.

    Rows of the master that are read from the slave would be equal.
    """
    deadline = time.monotonic() + DESCRIBED_S
    while not _serves_live_servers(settings, zookeeper):
        if time.monotonic() > deadline:
            raise ConfigurationError(
                f"the Thrift server at {settings.thrift()} is not that of the HBase at {settings.zookeeper()}, whose "
                "live region servers do not have its state table: name the right one (--thrift, --master-thrift "
                "HOST:PORT; an address 0.0.0.0 in site files stands for this host); if a region server has just died, "
                "run again"
            )
        time.sleep(0.5)


def _serves_live_servers(settings: Settings, zookeeper: ZooKeeper) -> bool:
    """Return True if a live server has a region of the Thrift server's state table; False also as one has just died."""
    # `hbase:meta` comes first: a server registers in ZooKeeper before it opens a region, so the sync brings its znode.
    hosts = {region.server for region in meta.open_regions(settings.thrift(), [settings.state_table])}
    zookeeper.sync()
    # A server's name holds its start code, so one in common is proof: the others may have died.
    return not hosts.isdisjoint(zookeeper.live_servers())


def describe_both(
    master: Settings, slave: Settings, tables: Sequence[str], say: Callable[[str], None]
) -> tuple[DescribedCluster, DescribedCluster]:
    """Describe both sides in parallel, as each waits for its trackers. Raises what `describe` raises."""
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(describe, slave, tables, lambda _: None)
        return describe(master, tables, say), theirs.result()


def shipped_families(
    master: DescribedCluster, slave: DescribedCluster, table: str
) -> tuple[list[str], tuple[str, ...]]:
    """Return the families that the master's peers ship to the slave, and notices.

    Raises `ConfigurationError` for none: no rows would be compared, and so found equal.
    """
    families: set[str] = {name for name, family in master.tables[table].items() if family.get("scope")}
    if not families:
        raise ConfigurationError(f"no family of table {table} is replicated (all have scope 0): nothing to compare")
    if master.peers_elsewhere:
        # By the peers of before, a family that is shipped would be left out, and its rows found equal unseen.
        return sorted(families), (f"all replicated families are compared: on the master {master.peers_elsewhere}",)
    with ZooKeeper(master.settings.zookeeper()) as zookeeper:
        facts = [parse_peer(row["detail"]) for row in peer_rows(zookeeper)]
    slave_key = slave.settings.zookeeper().cluster_key
    leading = [peer for peer in facts if leads_to(peer, slave.id, slave_key) and ships(peer, table)]
    if not leading:
        return sorted(families), (f"no replication peer of the master ships {table} to the slave",)
    return families_by(leading, table, families), ()


def families_by(peers: Sequence[PeerFacts], table: str, families: set[str]) -> list[str]:
    """Return those of a table's families that one of the peers ships; raises `ConfigurationError` for none."""
    found = {name for peer in peers for name in shipped(peer, {table: families}).get(table, ())}
    if not found:
        raise ConfigurationError(
            f"no replication peer of the master ships a replicated family of table {table} to the slave "
            f"({', '.join(sorted(families))}): nothing to compare; see `status-tool topology`"
        )
    return sorted(found)


def comparable(
    master: DescribedCluster, slave: DescribedCluster, table: str, names: Sequence[str], notices: tuple[str, ...]
) -> Comparable:
    """Return the rules for these families. A family that the slave does not have is compared with nothing."""
    # By this host's clock, which `Requests` compares with HBase's before anything is digested.
    horizon = now_ms() + HORIZON_MS
    families, doubts, expires, told = {}, [], False, [*notices]
    for name in names:
        ours = master.tables[table][name]
        theirs = slave.tables.get(table, {}).get(name, ours)
        ttl = min(time_to_live(ours["ttl"]), time_to_live(theirs["ttl"]))
        expires |= ttl != TTL_FOREVER
        # HBase never stops returning what MIN_VERSIONS keeps, however old it is.
        is_bounded = ttl != TTL_FOREVER and not (ours["min_versions"] or theirs["min_versions"])
        oldest = horizon - ttl * 1000 if is_bounded else FOREVER
        families[name.encode()] = Family(min(ours["versions"], theirs["versions"]), oldest)
        doubts += [f"family {name}: {why}" for why in _doubts(ours, theirs, ttl)]
        told += [f"family {name}: {why}" for why in _left_out(ours, theirs)]
    # A server whose clock is ahead expires cells earlier than this host's clock says.
    return Comparable(families, tuple(doubts), horizon - CLOCKS_MS if expires else None, tuple(told))


def nothing_lasting(families: Mapping[bytes, Family], cut_ms: int) -> str | None:
    """Return why nothing that was written by the cut is compared of a family; None if something is of all.

    What had expired by then, whatever the clocks show, is on neither side: there is nothing of it to compare.
    """
    expired_ms = HORIZON_MS + CLOCKS_MS
    gone = sorted(name.decode() for name, one in families.items() if one.oldest - expired_ms <= cut_ms <= one.oldest)
    if not gone:
        return None
    return (
        f"all cells of family {', '.join(gone)} that were written up to {iso(cut_ms)} expire (TTL) within "
        f"{HORIZON_MS // 60_000} minutes, so none of them is compared"
    )


def _left_out(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    """Yield why cells are not compared that the descriptor of only one side keeps."""
    for key in ("versions", "ttl"):
        if ours[key] != theirs[key]:
            yield f"not the same {key.upper()} on both sides: what only one of them keeps is not compared"


def _doubts(ours: Mapping[str, Any], theirs: Mapping[str, Any], ttl: int) -> list[str]:
    doubts = []
    if ttl != TTL_FOREVER and (ours["min_versions"] or theirs["min_versions"]):
        doubts.append("MIN_VERSIONS keeps cells beyond their TTL until a compaction")
    if ours["keep_deleted"] != theirs["keep_deleted"]:
        doubts.append(f"KEEP_DELETED_CELLS is {ours['keep_deleted']} there and {theirs['keep_deleted']} here")
    if ours["new_version_behavior"] or theirs["new_version_behavior"]:
        doubts.append("with NEW_VERSION_BEHAVIOR the order of arrival counts")
    return doubts
