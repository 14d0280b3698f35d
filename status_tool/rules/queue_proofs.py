"""Proofs by replication queues: that nothing of a crashed origin, and no bulk load, is left to be shipped.

Rules, each needed (the simulation breaks each): the queues were read whole and after the barrier; the origin's WALs
have been split, so nothing can be appended any more; no queue of the peer, on any server, holds one of them or came
from that origin; and the peer has existed, unchanged, since before the origin started or, according to the trackers,
since before its last flush, up to which the origin's heads are known: its tracker reported no errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from status_tool.printable import counted, iso
from status_tool.rules.lost_wals import lost_wals
from status_tool.rules.origins import has_doubts, is_writer, read_by_ms
from status_tool.rules.peer_versions import REFRESHED_MS, Span, in_force_before_flush, in_force_since, spans_of
from status_tool.rules.peers import FamilyFilter, own_shipping
from status_tool.rules.segments import earliest, latest
from status_tool.rules.server_settings import loads_notice
from status_tool.rules.settled import OlderProof, older_proof, proof_of, settled_before
from status_tool.rules.witnessed import WitnessFacts
from status_tool.vocabulary.details import (
    is_flag,
    is_number,
    is_text,
    list_of,
    map_of,
    object_of,
    optional,
    parse_detail,
)
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.schema import Row

_LONG = re.compile(r"[0-9]{1,18}")
_WAL = {
    "server": optional(is_text),
    **dict.fromkeys(("started_ms", "position", "left"), optional(is_number)),
    "lost": optional(is_flag),
}
_QUEUE = {"peer": is_text, "dead_servers": list_of(is_text), "wals": list_of(object_of(_WAL))}
_SUMMARY = {
    **{"consistent": optional(is_flag), "unsplit": optional(list_of(is_text))},
    "writers": optional(map_of(object_of({"opened_ms": is_number, "modified_ms": is_number}))),
    "hfile_refs": optional(map_of(object_of({"since_ms": is_number, "files": is_number}))),
}


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """Facts that a run has of its peer and from the queues. The default is nothing, as for a file without queues."""

    drained: frozenset[int] = frozenset()
    """Crashed origins with nothing left to ship to this peer."""
    left: Mapping[int, str] = field(default_factory=dict)
    """Other crashed origins: what is left to ship, or why the queues do not settle them."""
    older: Mapping[int, OlderProof] = field(default_factory=dict)
    """Those of `left` that the queues settled when the peer had other lists: `with_older_proofs` decides."""
    undrained: frozenset[int] = frozenset()
    """Those whose WALs were being split or shipped when the queues were read: a later read may settle them."""
    left_out: tuple[str, ...] = ()
    """Tables of the master that the peer does not replicate: a check reads no row of them."""
    unshipped: tuple[str, ...] = ()
    """Those of them that have replicated families, as far as is known."""
    strays: tuple[str, ...] = ()
    """WALs, in a queue or archived, of servers that the state table does not know, each in words."""
    loads_from_ms: int | None = None
    """All bulk loads since this time have been shipped; None: unknown."""
    left_bytes: int | None = None
    """Bytes of this peer's WALs that were still to be shipped when the queues were read; None: unknown."""
    disabled_peer: str | None = None
    own_shipping: str | None = None
    """`peers.own_shipping` of this peer."""
    codec: str | None = None
    """The codec of this peer's own configuration."""
    withheld: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By table, replicated families that this peer does not ship: they are not in scope for the slave."""
    families: FamilyFilter = field(default_factory=FamilyFilter)
    """Which families this peer ships: streams of the others are not in scope."""
    witness: WitnessFacts | None = None
    """Facts of the peer of a FILE from witnesses; None: FILE does not say which it is."""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _State:
    """The `queue` rows, parsed, of one peer."""

    peer: Mapping[str, Any]
    summary: Mapping[str, Any]
    queues: tuple[Mapping[str, Any], ...]


def queue_facts(
    queue_rows: Iterable[Row],
    server_rows: Iterable[Row],
    peer: Mapping[str, Any],
    window: tuple[int | None, int | None] = (None, None),
    slave_since_ms: int | None = None,
    since_ms: int | None = None,
) -> QueueFacts:
    """Judge a master's `queue` and `server` rows for the peer that the run is about.

    `window` is of the master's coverage, up to the barrier. `slave_since_ms`: since when the slave's state table has
    been kept (None: not known). What was shipped before may have gone to another cluster, which was at the peer's
    address then. `since_ms`: what was written up to then is accepted.

    Raises `StatusFileError` for `queue` rows that cannot be parsed: ignoring them could settle what is not settled.
    """
    disabled = None if peer.get("enabled", True) else str(peer["id"])
    state = _state(queue_rows, peer)
    if state is None:
        return QueueFacts(disabled_peer=disabled)
    servers = [row for row in server_rows if row.get("server")]
    drained, left, names, older = set[int](), dict[int, str](), list[str](), dict[int, OlderProof]()
    spans = spans_of(servers, peer)
    proven = list[str]()
    for row in servers:
        if not has_crashed(row):
            continue
        # A recorded proof comes second: it may be about the cluster that was at the peer's address before this slave.
        if _is_older_than_slave(row, slave_since_ms):
            left[row["origin"]] = _other_slave(slave_since_ms)
            continue
        if (before_ms := settled_before(row, peer)) is not None:
            drained.add(row["origin"])
            proven.append(_proven_notice(str(row["server"]), str(peer["id"]), before_ms))
            continue
        reason = _why_not(row, spans, state)
        if reason is None:
            drained.add(row["origin"])
            names.append(str(row["server"]))
        else:
            left[row["origin"]] = reason
            if (proof := older_proof(row, peer)) is not None:
                notice = _proven_notice(str(row["server"]), str(peer["id"]), proof.at_ms)
                older[row["origin"]] = replace(proof, notice=notice)
    return QueueFacts(
        older=older,
        undrained=frozenset(row["origin"] for row in servers if has_crashed(row) and _is_undrained(row, state)),
        drained=frozenset(drained),
        left=left,
        strays=tuple(_strays(state, servers, *window, since_ms)),
        loads_from_ms=_loads_from_ms(state, spans, slave_since_ms),
        # Queues that moved while they were read may count twice, or not at all.
        left_bytes=left_bytes(state.queues, peer["id"]) if state.summary.get("consistent") else None,
        disabled_peer=disabled,
        notices=(
            *([loads_notice(f"in the configuration of peer {peer['id']}")] if peer.get("drops_loads") else []),
            *_lost_notices(state),
            *(_settled_notice(name, str(peer["id"])) for name in sorted(names)),
            *sorted(proven),
        ),
    )


def with_older_proofs(
    queues: QueueFacts, families: Mapping[str, Collection[str] | None], created_ms: Mapping[str, int | None]
) -> QueueFacts:
    """Return the facts with what older proofs settle of the tables in scope.

    `families` are those that are replicated, by table (None: not known); `created_ms`: when a table was certainly not
    there yet.
    """
    tables = families.keys() | created_ms.keys()
    settled = {
        origin: proof.notice
        for origin, proof in queues.older.items()
        if all(proof.covers(table, families.get(table), created_ms.get(table)) for table in tables)
    }
    left = {origin: why for origin, why in queues.left.items() if origin not in settled}
    notices = (*queues.notices, *sorted(settled.values()))
    return replace(queues, drained=queues.drained | settled.keys(), left=left, notices=notices)


def newly_settled(
    queue_rows: Iterable[Row], server_rows: Iterable[Row], peer: Mapping[str, Any], at_ms: int
) -> list[tuple[Row, dict[str, Any]]]:
    """Return `server` rows that the queues of this peer settle now, each with the proof that is not recorded yet."""
    rows, proof = list(server_rows), proof_of(peer, at_ms)
    if proof is None:
        return []
    # The record is for every slave, so no slave's age counts here: `queue_facts` compares it when it reads the record.
    drained = queue_facts(queue_rows, rows, peer).drained
    return [
        (row, proof)
        for row in rows
        if row.get("origin") in drained and has_crashed(row) and settled_before(row, peer) is None
    ]


def known_writers(queue_rows: Iterable[Row]) -> set[str] | None:
    """Return servers that still have a WAL or a queue; None: not known for certain.

    Raises `StatusFileError` for `queue` rows that cannot be parsed.
    """
    parsed = _parsed(queue_rows)
    queues = [detail for row, detail in parsed if row.get("name") is not None]
    summary = [detail for row, detail in parsed if row.get("name") is None]
    if len(summary) != 1 or not summary[0].get("consistent") or None in map(summary[0].get, ("unsplit", "writers")):
        return None
    servers = {*summary[0]["unsplit"], *summary[0]["writers"]}
    for queue in queues:
        servers |= {*queue["dead_servers"], *(str(wal.get("server")) for wal in queue["wals"])}
    return servers | {str(row["server"]) for row, _ in parsed if row.get("name") is not None}


def start_code(server: str) -> int | None:
    """Return when a region server `host,port,startcode` was started, on its own clock (epoch ms)."""
    code = server.rpartition(",")[2]
    return int(code) if _LONG.fullmatch(code) else None


def left_bytes(queues: Iterable[Mapping[str, Any]], peer_id: str | None) -> int | None:
    """Return bytes that a peer's queues still have to ship; None if a WAL's length is unknown."""
    lefts = [wal.get("left") for queue in queues if queue["peer"] == peer_id for wal in queue["wals"]]
    return None if None in lefts else sum(lefts)


def _backlog(queues: Sequence[Mapping[str, Any]], server: str) -> str:
    """Return what queues still hold of a server's WALs, in words: WALs, bytes, age, and where."""
    wals = [wal for queue in queues for wal in queue["wals"] if wal.get("server") == server]
    known = [wal["left"] for wal in wals if wal.get("left") is not None]
    amount = f"{'' if len(known) == len(wals) else 'at least '}{counted(sum(known), 'byte')}"
    opened = min((wal["started_ms"] for wal in wals if wal.get("started_ms") is not None), default=None)
    holders = ", ".join(sorted({f"{queue['id']} on {queue['holder']}" for queue in queues}))
    left = f"{counted(len(wals), 'WAL')} with {amount} left to ship"
    return f"{left}, the oldest opened at {iso(opened)}, in queue {holders}"


def _lost_notices(state: _State) -> Iterable[str]:
    for wal in lost_wals(state.queues):
        yield (
            f"{wal}; HBase tries for ever to open it, so nothing behind it in its queue is shipped either. Copy what "
            "is missing, then remove the peer and add it again"
        )


def _settled_notice(name: str, peer: str) -> str:
    return (
        f"region server {name} ended without a final flush; the replication queues settled it: its WALs have been split"
        f" and peer {peer} has none of them left to ship"
    )


def _proven_notice(name: str, peer: str, at_ms: int) -> str:
    return (
        f"region server {name} ended without a final flush; at {iso(at_ms)} the queues of peer {peer} showed that"
        " nothing of it was left to ship"
    )


def _parsed(rows: Iterable[Row]) -> list[tuple[Row, dict[str, Any]]]:
    """Return `queue` rows with their details; the one without a name has those of all queues together."""
    return [
        (row, parse_detail(row["detail"], _QUEUE if row.get("name") is not None else _SUMMARY, "replication queue"))
        for row in rows
        if row.get("detail") is not None
    ]


def _state(rows: Iterable[Row], peer: Mapping[str, Any]) -> _State | None:
    parsed = _parsed(rows)
    summary = next((detail for row, detail in parsed if row.get("name") is None), None)
    if summary is None:
        return None
    queues = [
        {**detail, "id": row["name"], "holder": row["server"]}
        for row, detail in parsed
        if row.get("name") is not None and detail["peer"] == peer["id"]
    ]
    return _State(peer, summary, tuple(queues))


def has_crashed(row: Row) -> bool:
    """Return True if a server neither lives nor stopped cleanly: its last heads may be unknown."""
    is_gone = row.get("live") is False and row.get("final_ms") is None
    return is_writer(row) and is_gone and row.get("origin") is not None


def _why_not(row: Row, spans: Sequence[Span], state: _State) -> str | None:
    """Return why the queues do not settle a crashed server; None: they do."""
    server = str(row["server"])
    if not state.summary.get("consistent"):
        return "the replication queues kept moving while they were read: run `run -m` again"
    holding = [queue for queue in state.queues if _concerns(queue, server)]
    if holding:
        waiting = f"for peer {state.peer['id']} {_backlog(holding, server)}"
        return f"{waiting}: run `run -m` again when it has drained (`status-tool queues`)"
    unsplit = state.summary.get("unsplit")
    if unsplit is None:
        return (
            "whether its WALs have been split is not known: let `run -m` reach the NameNode (--webhdfs), and its site "
            "files name hbase.wal.dir if the servers' do"
        )
    if server in unsplit:
        # The server may not be fenced, and an entry that it still appends may come to a queue later.
        return "the master has not split its WALs yet: run `run -m` again"
    if own_shipping(state.peer):
        return f"peer {state.peer['id']} has an endpoint or filters of its own, so an empty queue proves nothing"
    # Every WAL of the server was in the peer's queue from its first entry on, whatever the tracker missed.
    if _unchanged_since_start(server, state.peer):
        return None
    if not in_force_before_flush(row, spans, state.peer):
        return (
            f"nothing of it is in a queue of peer {state.peer['id']}, but that peer was added, changed, or written"
            f" anew by a starting HBase master at {iso(state.peer.get('modified_ms'))}, possibly after the server"
            " started; no tracker recorded it as active a minute before its last flush, so what it skipped is unknown"
        )
    # No queue of the peer has entries from before it was in force: the server's heads alone tell of them.
    if has_doubts(row):
        return (
            f"nothing of it is in a queue of peer {state.peer['id']}, but that peer is younger than the server, whose"
            " tracker reported errors: heads of what the peer skipped may be missing"
        )
    return None


def _is_undrained(row: Row, state: _State) -> bool:
    """Return True if waiting may change what the queues show for a crashed server."""
    server = str(row["server"])
    moving = not state.summary.get("consistent") or server in (state.summary.get("unsplit") or ())
    return moving or any(_concerns(queue, server) for queue in state.queues)


def undrained_servers(
    queue_rows: Iterable[Row], server_rows: Iterable[Row], peers: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Names of crashed servers of which a queue of one of these peers, or a folder of WALs, still holds something."""
    queued, servers = list(queue_rows), [row for row in server_rows if row.get("server")]
    waiting = set[str]()
    for peer in peers:
        state = _state(queued, peer)
        waiting |= {str(row["server"]) for row in servers if state and has_crashed(row) and _is_undrained(row, state)}
    return sorted(waiting)


def _concerns(queue: Mapping[str, Any], server: str) -> bool:
    """Return True if a queue is the server's, was claimed from it, or has a WAL of it or of an unknown server."""
    if queue["holder"] == server or server in queue["dead_servers"]:
        return True
    return any(wal.get("server") in (server, None) for wal in queue["wals"])


def _unchanged_since_start(server: str, peer: Mapping[str, Any]) -> bool:
    """Return True if the peer was in force as it is now, before the server started, on all that may ship its rest."""
    started_ms, (created_ms, modified_ms) = start_code(server), _times(peer)
    if started_ms is None or created_ms is None or modified_ms is None:
        return False
    # A server that claims the queues may ship by the filter from before the last change until it refreshes the peer.
    in_force_ms = created_ms if modified_ms == created_ms else max(created_ms, modified_ms + REFRESHED_MS)
    # ZooKeeper's clock gives the one time, the server's own clock the other.
    return bool(in_force_ms < started_ms - SKEW_MS)


def _times(peer: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return when a peer was added and last changed (ZooKeeper's clock, epoch ms); None if not known."""
    return peer.get("created_ms"), peer.get("modified_ms")


def _strays(
    state: _State, servers: Sequence[Row], covered_from_ms: int | None, issued_ms: int | None, since_ms: int | None
) -> Iterable[str]:
    """WALs of servers without a `server` row: what they wrote is in no stream that the tool knows.

    An archived WAL counts only if it was opened within the coverage, was written to after what is accepted, and is not
    of a server that started after the cut: servers from before the trackers are expected.
    """
    known, to_ms = {str(row["server"]) for row in servers}, read_by_ms(servers, issued_ms)
    writers = {wal.get("server") for queue in state.queues for wal in queue["wals"]} - known
    for server in sorted(str(writer) for writer in writers if writer is not None):
        holding = [queue for queue in state.queues if _concerns(queue, server)]
        yield f"{server} is not known to the trackers, and for peer {state.peer['id']} {_backlog(holding, server)}"
    for server, wals in sorted((state.summary.get("writers") or {}).items()):
        began_ms = start_code(server)
        came_later = began_ms is not None and to_ms is not None and began_ms > to_ms + SKEW_MS
        is_accepted = since_ms is not None and wals["modified_ms"] <= since_ms
        is_old = covered_from_ms is None or wals["opened_ms"] <= covered_from_ms or is_accepted
        if server not in known | writers and not (came_later or is_old):
            yield (
                f"{server} is not known to the trackers, but a WAL that it opened at {iso(wals['opened_ms'])} is"
                " archived: what it wrote is in no stream"
            )


def _is_older_than_slave(row: Row, slave_since_ms: int | None) -> bool:
    """Return True if a crashed server may have written, since its last flush, before the slave was there."""
    known_ms = latest(start_code(str(row["server"])), row.get("flush_ms"))
    # A clock of the slave gives `slave_since_ms`, one of the master the other times.
    return slave_since_ms is not None and (known_ms is None or known_ms < slave_since_ms + SKEW_MS)


def _other_slave(slave_since_ms: int | None) -> str:
    return (
        f"this slave's state table has been kept only since {iso(slave_since_ms)}: what the server had shipped before"
        " may have gone to another cluster at the peer's address"
    )


def _loads_from_ms(state: _State, spans: Sequence[Span], slave_since_ms: int | None) -> int | None:
    refs = (state.summary.get("hfile_refs") or {}).get(state.peer["id"])
    if refs is None or refs["files"]:
        return None
    # The peer's own configuration overrides the servers' settings, and trackers record those alone.
    if own_shipping(state.peer) or state.peer.get("drops_loads") or None in _times(state.peer):
        return None
    created_ms, modified_ms = _times(state.peer)
    # A starting HBase master writes the znode anew: `modified_ms` may be later than the last real change.
    in_force_ms = earliest(modified_ms + REFRESHED_MS, in_force_since(spans, state.peer))
    # No queue shows a load from before any of these: it was not recorded, left out by the peer, or shipped elsewhere.
    # A server that has yet to learn of a new peer records none for it.
    return int(max(refs["since_ms"], created_ms + REFRESHED_MS, in_force_ms, slave_since_ms or 0)) + SKEW_MS
