"""The backlog of a cluster's queues as one document: what waits, for how long, who holds it, what is stuck."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from status_tool.clients.zookeeper import Peer
from status_tool.gather.measured_queues import Measured
from status_tool.printable import counted
from status_tool.sources.replication_queues import Queue

Document = dict[str, Any]


def standing(measured: Measured, peers: Sequence[Peer], before: Measured | None = None) -> Document:
    """Return the document of `status-tool queues --json`; `peers` are those in scope.

    `before` is an earlier measurement: a queue whose positions have not moved since, though it has something to
    ship, is stuck.
    """
    by_id = {peer.id: peer for peer in peers}
    moved = {(one.id, wal.name): wal.position for one in before.queues.queues for wal in one.wals} if before else None
    queues = [_queue(queue, measured, moved) for queue in measured.queues.queues if queue.peer in by_id]
    refs = {refs.peer: len(refs.files) for refs in measured.queues.hfile_refs if refs.peer in by_id}
    drained = measured.queues.consistent and all(queue["drained"] for queue in queues) and not any(refs.values())
    return {
        "read_ms": measured.read_ms,
        "drained": drained,
        "exit_code": 0 if drained else 1,
        "consistent": measured.queues.consistent,
        "lengths": measured.hdfs_problem or "known",
        "peers": [_peer(peer, queues, refs) for peer in peers],
        "queues": queues,
        "orphans": sorted(f"{q.id} on {q.holder}" for q in measured.queues.queues if q.peer not in by_id),
        "totals": _totals(queues) | {"hfile_refs": sum(refs.values())},
    }


def has_shipped(mark: Measured, now: Measured, peer: str) -> bool:
    """Return True if everything that the peer's queues held at `mark` has been shipped, and so applied, by `now`."""
    # HBase takes a file off `hfile-refs` only after the sink has loaded it
    # (`ReplicationSourceShipper.cleanUpHFileRefs`).
    return not _loads(mark, peer) & _loads(now, peer) and has_shipped_wals(mark, now, peer)


def has_shipped_wals(mark: Measured, now: Measured, peer: str) -> bool:
    """Return True if all entries that the peer's queues held at `mark` have been shipped, and so applied, by `now`.

    Other than *drained* this comes true although more is being written all the time: of each WAL what could be read
    then has to lie behind the queue's position, which HBase moves once the sink has confirmed. A WAL that has left a
    queue of a live server has been shipped. What crashed servers left has to be gone, and no queue to be missing.
    """
    before, after = _queues_of(mark, peer), _queues_of(now, peer)
    if not (mark.queues.consistent and now.queues.consistent and has_same_queues(mark, now, peer)):
        return False
    if any(not queue.live or queue.dead_servers for queue in (*before.values(), *after.values())):
        return False
    return all(_has_passed(mark, queue, after[key]) for key, queue in before.items())


def has_same_queues(mark: Measured, now: Measured, peer: str) -> bool:
    """Return True if every queue of a peer is still there."""
    return _queues_of(mark, peer).keys() <= _queues_of(now, peer).keys()


def has_lengths(measured: Measured, peer: str) -> bool:
    """Return True if it is known how much of each WAL a peer's queues have to ship."""
    return not _unmeasured(measured, peer)


def why_not_shipped(now: Measured, peer: str) -> str:
    """Return what may still have to be shipped to a peer, in words."""
    if not now.queues.consistent:
        return "the replication queues kept moving while they were read"
    if now.hdfs_problem:
        return f"the lengths of the WALs are unknown ({now.hdfs_problem})"
    queues = _queues_of(now, peer).values()
    dead = sorted(f"{queue.id} on {queue.holder}" for queue in queues if not queue.live or queue.dead_servers)
    if dead:
        return f"what crashed servers have left is not shipped: queue {', '.join(dead)}"
    if unknown := _unmeasured(now, peer):
        some = f"{counted(len(unknown), 'WAL')} ({unknown[0]}{', …' if len(unknown) > 1 else ''})"
        return f"how long {some} is, no DataNode told: it has just been moved, or nobody has its last block"
    left = sum(wal["left"] or 0 for queue in queues for wal in now.facts(queue)["wals"])
    return f"about {counted(left, 'byte')} of WALs are still to be shipped to peer {peer}"


def _queues_of(measured: Measured, peer: str) -> dict[str, Queue]:
    return {queue.id + queue.holder: queue for queue in measured.queues.queues if queue.peer == peer}


def _unmeasured(measured: Measured, peer: str) -> list[str]:
    wals = (wal for queue in _queues_of(measured, peer).values() for wal in measured.facts(queue)["wals"])
    return sorted(wal["name"] for wal in wals if wal["left"] is None)


def _loads(measured: Measured, peer: str) -> set[str]:
    return {name for refs in measured.queues.hfile_refs if refs.peer == peer for name in refs.files}


def _has_passed(mark: Measured, before: Queue, after: Queue) -> bool:
    positions = {wal.name: wal.position for wal in after.wals}
    for wal in before.wals:
        extent = mark.extents.get(wal.name)
        if wal.name in positions and (extent is None or extent.left(positions[wal.name]) != 0):
            return False
    return True


def _queue(queue: Queue, measured: Measured, moved: Mapping[tuple[str, str], int] | None) -> Document:
    facts = measured.facts(queue)
    wals = facts["wals"]
    lefts = [wal["left"] for wal in wals]
    waiting = [wal for wal in wals if wal["left"] != 0]  # an unknown length waits, too
    drained = queue.live and not queue.dead_servers and not waiting and _only_current(queue)
    still = moved is not None and bool(waiting)
    stuck = still and all((moved or {}).get((queue.id, wal.name)) == wal.position for wal in queue.wals)
    return {
        "peer": queue.peer,
        "holder": queue.holder,
        "live": queue.live,
        "id": queue.id,
        "recovered_from": facts["dead_servers"],
        "drained": drained,
        "stuck": stuck if moved is not None else None,
        "left_bytes": sum(lefts) if all(left is not None for left in lefts) else None,
        "oldest_ms": None if drained else min((w["started_ms"] for w in wals if w["started_ms"]), default=None),
        "wals": wals,
    }


def _only_current(queue: Queue) -> bool:
    """Return True if each group has only the WAL being written: a rolled WAL leaves once it has been shipped."""
    groups = [wal.group for wal in queue.wals]
    return len(groups) == len(set(groups))


def _peer(peer: Peer, queues: Sequence[Document], refs: Mapping[str, int]) -> Document:
    own = [queue for queue in queues if queue["peer"] == peer.id]
    totals = _totals(own) | {"hfile_refs": refs.get(peer.id, 0)}
    return {"id": peer.id, "cluster_key": peer.cluster_key, "enabled": peer.enabled, **totals}


def _totals(queues: Iterable[Document]) -> Document:
    queues = list(queues)
    lefts = [queue["left_bytes"] for queue in queues]
    oldest = [queue["oldest_ms"] for queue in queues if queue["oldest_ms"] is not None]
    return {
        "queues": len(queues),
        "recovered": sum(bool(queue["recovered_from"]) for queue in queues),
        "unclaimed": sum(not queue["live"] for queue in queues),
        "stuck": sum(bool(queue["stuck"]) for queue in queues),
        "wals": sum(len(queue["wals"]) for queue in queues),
        "left_bytes": sum(lefts) if all(left is not None for left in lefts) else None,
        "oldest_ms": min(oldest, default=None),
    }
