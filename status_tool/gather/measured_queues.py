"""Replication queues of a live cluster, measured in bytes if HDFS can be reached."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from status_tool.clients.config import Settings
from status_tool.clients.thrift import scan
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.gather.hdfs_side import own_endpoint
from status_tool.sources import codec
from status_tool.sources.replication_queues import Queue, Queues, Wal, read_queues
from status_tool.sources.state_table import now_ms
from status_tool.sources.wals import Extent, WalFolder, Writer
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.schema import NewRow, Row
from status_tool.vocabulary.selection import plain_path
from status_tool.vocabulary.state_rows import HeadRow, range_of

NEW_WAL_MS = 60_000
"""A WAL that was opened since, by its server's clock, may not exist yet."""


@dataclass(frozen=True)
class Measured:
    """The queues of a cluster at one moment, with what HDFS reports of their WALs."""

    read_ms: int
    queues: Queues
    extents: dict[str, Extent]
    unsplit: frozenset[str] | None
    """Servers whose WAL folder still exists; None: unknown."""
    hdfs_problem: str | None = None
    """Reason why lengths are unknown."""
    writers: tuple[Writer, ...] | None = ()
    """Whose WALs are archived; None: unknown."""
    lost: frozenset[str] = frozenset()
    """Names of queued WALs that are nowhere in HDFS."""

    def facts(self, queue: Queue) -> dict[str, Any]:
        """Return the `detail` of a queue's row: `left` is in bytes, null if the WAL's length is unknown."""
        return {
            "peer": queue.peer,
            "live": queue.live,
            "dead_servers": list(queue.dead_servers),
            "wals": [self._wal(wal) for wal in queue.wals],
        }

    def _wal(self, wal: Wal) -> dict[str, Any]:
        extent = self.extents.get(wal.name)
        return {
            "name": wal.name,
            "server": wal.server,
            "started_ms": wal.started_ms,
            "position": wal.position,
            "path": extent.path if extent else None,
            "length": extent.length if extent else None,
            "left": extent.left(wal.position) if extent else None,
            "lost": wal.name in self.lost,
        }

    def summary(self) -> dict[str, Any]:
        """Return the facts of all queues together: the `detail` of the row without a name."""
        return {
            "consistent": self.queues.consistent,
            "unsplit": None if self.unsplit is None else sorted(self.unsplit),
            "writers": None
            if self.writers is None
            else {one.server: {"opened_ms": one.opened_ms, "modified_ms": one.modified_ms} for one in self.writers},
            "hfile_refs": {
                refs.peer: {"since_ms": refs.since_ms, "files": len(refs.files)} for refs in self.queues.hfile_refs
            },
        }


def measure(settings: Settings, zookeeper: ZooKeeper) -> Measured:
    """Read the queues, and the lengths of their WALs as far as HDFS can be reached.

    The WAL folders are listed first: if a server's folder is gone by then, its WALs had been split before its queues
    were read. All is of the call or later: a ZooKeeper server that is behind the others would show queues as drained
    that are not.
    """
    zookeeper.sync()
    folder, problem = _folder(settings)
    unsplit, writers, extents, lost = None, None, dict[str, Extent](), frozenset[str]()
    try:
        unsplit = _plausible(folder.unsplit(), zookeeper.live_servers()) if folder else None
    except ConnectionFailed as error:
        folder, problem = None, str(error)
    read_ms = now_ms()
    queues = read_queues(zookeeper)
    try:
        # The lengths come after the positions. WALs grow meanwhile, so that more may seem to be left than is, never
        # less.
        extents = folder.extents(_wals(queues)) if folder else {}
        if folder and unsplit is not None:
            lost = _lost(folder, zookeeper, queues, extents)
        # The archive comes last: WALs only move towards it, so that none is missed that moves meanwhile.
        writers = tuple(folder.writers()) if folder else None
    except ConnectionFailed as error:
        # Archived WALs that were not listed tell of no unknown server (correctness.md, What is not seen, 1). A queued
        # WAL without a length never counts as shipped.
        problem = str(error)
    return Measured(read_ms, queues, extents, unsplit, problem, writers, lost)


def _lost(folder: WalFolder, zookeeper: ZooKeeper, queues: Queues, extents: Mapping[str, Extent]) -> frozenset[str]:
    """WALs that are nowhere at two looks, and still queued after the first.

    HBase queues a WAL before it creates it, and removes one from the queue before it deletes it.
    """
    absent = {wal.name for wal in _wals(queues) if wal.name not in extents and _is_old(wal)}
    if not absent:
        return frozenset()
    again = [wal for wal in _wals(read_queues(zookeeper)) if wal.name in absent]
    found = folder.extents(again)
    return frozenset(wal.name for wal in again if wal.name not in found)


def _is_old(wal: Wal) -> bool:
    return wal.started_ms is not None and now_ms() - wal.started_ms > NEW_WAL_MS


def _plausible(unsplit: frozenset[str], live: Iterable[str]) -> frozenset[str] | None:
    """Return None if the folder has no WALs of live servers: it is then the wrong one (hbase.wal.dir elsewhere)."""
    return unsplit if unsplit & set(live) else None


def _wals(queues: Queues) -> Iterable[Wal]:
    return (wal for queue in queues.queues for wal in queue.wals)


def _folder(settings: Settings) -> tuple[WalFolder | None, str | None]:
    if settings.hbase_root is None:
        return None, "hbase.rootdir is in no site file"
    root = settings.site.get("hbase.wal.dir") or settings.hbase_root
    try:
        return WalFolder(own_endpoint(settings, settings.wal_webhdfs()), plain_path(root)), None
    except ConfigurationError as error:
        return None, str(error)


def queue_rows(settings: Settings, zookeeper: ZooKeeper) -> tuple[list[NewRow], list[str]]:
    """Return `queue` rows of a master, and notices.

    Queues that cannot be read settle nothing, which is no error here.
    """
    try:
        measured = measure(settings, zookeeper)
    except ConfigurationError as error:
        return [], [str(error)]
    rows: list[NewRow] = [{"kind": "queue", "detail": json.dumps(measured.summary())}]
    rows += [
        {"kind": "queue", "server": queue.holder, "name": queue.id, "detail": json.dumps(measured.facts(queue))}
        for queue in measured.queues.queues
    ]
    return rows, []


def heads_of(settings: Settings, servers: Iterable[str]) -> Iterator[Row]:
    """The heads of region servers in the state table; none where it cannot be read."""
    origins = {origin_id(server) for server in servers}
    with suppress(ConfigurationError, ConnectionFailed):
        for row in codec.heads(scan(settings.thrift(), settings.state_table, *range_of(HeadRow.TYPE))):
            if row["origin"] in origins:
                yield row
