"""`status-tool queues`: what replication has yet to ship, per peer and region server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from status_tool.atomic import check_targets
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
    from status_tool.report.metrics import queue_metrics, write_metrics

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
        write_metrics(metrics, queue_metrics(cluster_id, document["read_ms"], document["peers"]))
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
        yield f"Peer {peer['id']} → {peer['cluster_key']}, {state}: {_amount(peer, document['read_ms'])}"
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
    if peer is None:
        if not drained:
            return "The queues are NOT drained."
        left = counted(len(orphans), "queue")
        return (
            f"All queues of peers are drained; {left} of no peer will never be."
            if orphans
            else "All queues are drained."
        )
    if drained:
        return f"The queues of peer {peer} are drained; no other was looked at."
    return f"The queues of peer {peer} are NOT drained."


def _queue(queue: dict[str, Any], now_ms: int) -> str:
    words = [queue["holder"] if queue["live"] else f"{queue['holder']} (dead, not claimed yet)"]
    if queue["recovered_from"]:
        words.append(f"recovered from {' then '.join(queue['recovered_from'])}")
    wals = counted(len(queue["wals"]), "WAL")
    left = "unknown bytes" if queue["left_bytes"] is None else counted(queue["left_bytes"], "byte")
    words.append("drained" if queue["drained"] else f"{wals}, {left} left{_age(queue, now_ms)}")
    if queue["stuck"]:
        words.append("STUCK: its positions do not move")
    return ", ".join(words)


def _amount(totals: dict[str, Any], now_ms: int) -> str:
    left = "unknown bytes" if totals["left_bytes"] is None else counted(totals["left_bytes"], "byte")
    refs = f", {counted(totals['hfile_refs'], 'bulk-loaded file')}" if totals["hfile_refs"] else ""
    return f"{counted(totals['wals'], 'WAL')}, {left} left{refs}{_age(totals, now_ms)}"


def _age(of: dict[str, Any], now_ms: int) -> str:
    """Return the age of the oldest WAL that is needed: no unshipped entry is older."""
    return "" if of["oldest_ms"] is None else f", oldest WAL opened {duration(max(0, now_ms - of['oldest_ms']))} ago"
