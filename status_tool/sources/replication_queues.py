"""HBase's replication queues in ZooKeeper, read only: which WALs each peer still needs, and from where.

`<znode>/replication/rs/<server>/<queue>/<wal>` holds a position; the queue's name is the peer's id, with
`-<dead server>` appended each time the queue was claimed. `<znode>/replication/hfile-refs/<peer>/<file>` names files
of bulk loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from google.protobuf.message import DecodeError

from status_tool.clients import hbase_pb2
from status_tool.clients.zookeeper import ZooKeeper, unwrap
from status_tool.errors import ConfigurationError

READ_ATTEMPTS = 20
"""Number of times that the queues are read again while some are being claimed."""
_REPLICATION = "replication"
_LOCK = "cversion_"
"""HBase creates and deletes `rs/cversion_<queue>` with every claim, so that the parent's cversion changes."""
_DEAD = re.compile(r"(.+?,\d+,\d+)(?:-|$)")
_WAL = re.compile(r"(?P<server>.+?%2C\d+%2C\d+)(?P<group>\..*)?\.(?P<started>\d+)(?:\.meta|\.syncrep)?")


@dataclass(frozen=True, slots=True)
class Wal:
    """One WAL that a queue still holds, and how far it has been shipped (bytes; 0: nothing, or nothing known)."""

    name: str
    position: int = 0

    @property
    def server(self) -> str | None:
        """The region server `host,port,startcode` that wrote it; None if the name is not a WAL's."""
        match = _WAL.fullmatch(self.name)
        return unquote(match["server"]) if match else None

    @property
    def group(self) -> str:
        """The WAL's group: files of one group follow each other, the last is the one being written."""
        match = _WAL.fullmatch(self.name)
        return match["server"] + (match["group"] or "") if match else self.name

    @property
    def started_ms(self) -> int | None:
        """Time when the WAL was opened (epoch ms, its server's clock). No entry is older.

        None if the name does not tell.
        """
        match = _WAL.fullmatch(self.name)
        return int(match["started"]) if match else None


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of a region server, live or dead, for one peer. `wals` are in the order of writing."""

    holder: str
    live: bool
    id: str
    wals: tuple[Wal, ...]

    @property
    def peer(self) -> str:
        """The peer's id; it cannot contain `-`."""
        return self.id.split("-", 1)[0]

    @property
    def dead_servers(self) -> tuple[str, ...]:
        """The servers it was claimed from, the first owner first; empty for a server's own queue."""
        _, _, rest = self.id.partition("-")
        return tuple(_DEAD.findall(rest))


@dataclass(frozen=True, slots=True)
class HFileRefs:
    """Bulk-loaded files that are still to be shipped to a peer."""

    peer: str
    since_ms: int
    """Since when region servers have recorded bulk loads for this peer (ZooKeeper's clock)."""
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Queues:
    """Replication queues of all servers at one moment."""

    queues: tuple[Queue, ...]
    hfile_refs: tuple[HFileRefs, ...]
    consistent: bool
    """False: queues were being claimed during every read, so one may be missing here."""


def read_queues(zookeeper: ZooKeeper) -> Queues:
    """Read every queue, repeatedly, until none was claimed during the read: a queue that moves from a server not yet
    read to one already read would be missed.

    Raises `ConnectionFailed`, and `ConfigurationError` if HBase keeps its queues elsewhere.
    """
    _refuse_tables(zookeeper)
    consistent, queues = False, tuple[Queue, ...]()
    for _ in range(READ_ATTEMPTS):
        before = zookeeper.children_version(_REPLICATION, "rs")
        queues = tuple(_queues(zookeeper))
        consistent = before == zookeeper.children_version(_REPLICATION, "rs")
        if consistent:
            break
    return Queues(queues, tuple(_hfile_refs(zookeeper)), consistent)


def _refuse_tables(zookeeper: ZooKeeper) -> None:
    """Raise `ConfigurationError` if HBase 3 keeps the queues in a table. HBase 2 keeps them in ZooKeeper."""
    # Without peers or servers HBase 2 may lack the znode, too.
    if zookeeper.children_version(_REPLICATION, "rs") is None and zookeeper.peers() and zookeeper.live_servers():
        raise ConfigurationError(
            f"no replication queues under {zookeeper.endpoint}: HBase 3 keeps them in the table hbase:replication, "
            "which is not supported yet"
        )


def _queues(zookeeper: ZooKeeper) -> Iterator[Queue]:
    live = set(zookeeper.live_servers())
    for holder in sorted(zookeeper.children(_REPLICATION, "rs")):
        if holder.startswith(_LOCK):
            continue
        for queue_id in sorted(zookeeper.children(_REPLICATION, "rs", holder)):
            path = (_REPLICATION, "rs", holder, queue_id)
            wals = [Wal(name, _position(zookeeper, *path, name)) for name in zookeeper.children(*path)]
            wals.sort(key=lambda wal: (wal.group, wal.started_ms or 0, wal.name))
            yield Queue(holder, holder in live, queue_id, tuple(wals))


def _position(zookeeper: ZooKeeper, *path: str) -> int:
    """Return the position (bytes).

    Like HBase, returns 0 for a WAL that was not started, has just been finished, or has no readable position.
    """
    found = zookeeper.read(*path)
    try:
        return hbase_pb2.ReplicationHLogPosition.FromString(unwrap(found[0])).position if found else 0
    except (ValueError, DecodeError):
        return 0


def _hfile_refs(zookeeper: ZooKeeper) -> Iterator[HFileRefs]:
    for peer in sorted(zookeeper.children(_REPLICATION, "hfile-refs")):
        found = zookeeper.read(_REPLICATION, "hfile-refs", peer)
        if found is not None:
            files = zookeeper.children(_REPLICATION, "hfile-refs", peer)
            yield HFileRefs(peer, found[1], tuple(sorted(files)))
