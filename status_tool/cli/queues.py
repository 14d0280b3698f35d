"""`status-tool queues`: what replication has yet to ship, per peer and region server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from status_tool.atomic import PUBLIC, check_targets
from status_tool.cli.options import on_cluster, print_answer
from status_tool.cli.run_options import MOST, with_options
from status_tool.clients.config import Settings
from status_tool.errors import ConfigurationError
from status_tool.printable import counted, duration, iso

if TYPE_CHECKING:
    from status_tool.clients.zookeeper import Peer, ZooKeeper
    from status_tool.gather.queue_backlog import Document
    from status_tool.rules.lost_wals import LostWal


@on_cluster("thrift", "webhdfs", "zookeeper")
@with_options("as_json", "metrics", peer="Only this peer.")
def queues(
    settings: Settings,
    watch: Annotated[
        float,
        typer.Option(
            "--watch", metavar="SECONDS", min=0, max=MOST, help="Read twice: a queue that does not move is stuck."
        ),
    ] = 0.0,
    *,
    peer: str | None,
    as_json: bool,
    metrics: Path | None,
) -> int:
    """Show what replication has yet to ship: exit code 0 drained, 1 not drained, 2 error."""
    from status_tool.clients.zookeeper import ZooKeeper
    from status_tool.gather.measured_queues import measure
    from status_tool.gather.queue_backlog import standing
    from status_tool.report.metrics import queue_metrics
    from status_tool.report.summary import write_report

    check_targets(metrics)
    if elsewhere := settings.peers_elsewhere:
        raise ConfigurationError(f"{elsewhere}: nothing tells which queues are needed")
    with ZooKeeper(settings.zookeeper()) as session:
        cluster_id = session.cluster_id()
        # A peer that does not exist is told before the wait.
        _peers(session, peer)
        before = measure(settings, session) if watch else None
        time.sleep(watch)
        measured = measure(settings, session)
        # Again, after the queues: HBase deletes them with their peer.
        document = {"cluster_id": cluster_id, **standing(measured, _peers(session, peer), before)}
    # Told, as the queues of all others are not looked at.
    document["only_peer"] = peer
    if peer is not None:
        # `standing` knows one peer then, and takes the queues of all others for left over.
        document["orphans"] = []
    if metrics is not None:
        write_report(metrics, queue_metrics(cluster_id, document["read_ms"], document["peers"]), PUBLIC)
    lost = _lost(settings, document["queues"])
    document["lost_wals"] = list(map(asdict, lost))
    print_answer(document, _lines(document, [f"LOST: {one}" for one in lost]), as_json=as_json)
    return int(document["exit_code"])


def _lost(settings: Settings, queues: Sequence[dict[str, Any]]) -> list[LostWal]:
    """Return the lost WALs, with what they may have held where Thrift is known and the trackers' heads can be read."""
    from status_tool.gather.measured_queues import heads_of
    from status_tool.rules.lost_wals import lost_wals

    # Most runs lose no WAL, and so need no Thrift.
    if not (found := lost_wals(queues)) or not settings.knows_thrift:
        return found
    return lost_wals(queues, heads_of(settings, {one.server for one in found if one.server}))


def _peers(session: ZooKeeper, only: str | None) -> list[Peer]:
    peers = [peer for peer in session.peers() if only in (None, peer.id)]
    if only is not None and not peers:
        raise ConfigurationError(f"this cluster has no peer {only!r}: check --peer")
    return peers


def _lines(document: Document, lost: Sequence[str]) -> Iterator[str]:
    yield f"Cluster {document['cluster_id']}, queues at {iso(document['read_ms'])}"
    if document["lengths"] != "known":
        yield f"Bytes are not known: {document['lengths']}"
    if not document["consistent"]:
        yield "Queues were being claimed while they were read: run again"
    if not document["peers"]:
        yield "No peer: nothing is replicated from here"
    for peer in document["peers"]:
        state = "enabled" if peer["enabled"] else "DISABLED"
        yield ""
        refs = f", {counted(peer['hfile_refs'], 'bulk-loaded file')}" if peer["hfile_refs"] else ""
        left = _left(peer, peer["wals"], document["read_ms"], refs)
        yield f"Peer {peer['id']} → {peer['cluster_key']}, {state}: {left}"
        for queue in document["queues"]:
            if queue["peer"] == peer["id"]:
                yield f"  {_queue(queue, document['read_ms'])}"
    if lost:
        yield ""
        yield from lost
    for orphan in document["orphans"]:
        yield f"Queue of no peer: {orphan} (left over; `hbase hbck -fixReplication` removes it)"
    yield ""
    if document["peers"]:
        yield _end(document["drained"], document["only_peer"], document["orphans"])
    else:
        yield "There is no queue of a peer: that says nothing of what was written."


def _end(drained: bool, peer: str | None, orphans: Sequence[str]) -> str:
    """Return the last line, which names the peer if only one was looked at, and what ships no more."""
    of_peer = "" if peer is None else f" of peer {peer}"
    if not drained:
        return f"The queues{of_peer} are NOT drained."
    if of_peer:
        return f"The queues{of_peer} are drained; no other was looked at."
    if orphans:
        return f"All queues of peers are drained; {counted(len(orphans), 'queue')} of no peer will never be."
    return "All queues are drained."


def _queue(queue: dict[str, Any], now_ms: int) -> str:
    words = [queue["holder"] if queue["live"] else f"{queue['holder']} (dead, not claimed yet)"]
    if queue["recovered_from"]:
        words.append(f"recovered from {' then '.join(queue['recovered_from'])}")
    words.append("drained" if queue["drained"] else _left(queue, len(queue["wals"]), now_ms))
    if queue["stuck"]:
        words.append("STUCK: its positions do not move")
    return ", ".join(words)


def _left(of: dict[str, Any], wals: int, now_ms: int, more: str = "") -> str:
    """Return what is left of a queue or a peer, and the age of the oldest WAL: no unshipped entry is older."""
    size = "unknown bytes" if of["left_bytes"] is None else counted(of["left_bytes"], "byte")
    oldest_ms = of["oldest_ms"]
    age = "" if oldest_ms is None else f", oldest WAL opened {duration(max(0, now_ms - oldest_ms))} ago"
    return f"{counted(wals, 'WAL')}, {size} left{more}{age}"
