"""Pruning: rows of long-gone region servers that no verdict needs any more (docs/correctness.md, Pruning).

A head is not needed once every slave that its table is shipped to is known to have applied the whole stream, segments
once the master has dropped their head, and a server's row once nothing refers to it. For a verdict about another
slave a mark (`marks_of`, `unproven_ms`) records until when heads have been pruned.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from status_tool.rules.origins import has_doubts, is_writer, repeated_times
from status_tool.rules.peer_versions import Span, span_of
from status_tool.rules.peers import PeerFacts, ships
from status_tool.rules.segments import Segment, fold, latest, merged
from status_tool.rules.server_settings import has_own_code, keeps_all_entries
from status_tool.rules.settled import settled_before
from status_tool.rules.streams import is_shipped
from status_tool.vocabulary.details import is_number
from status_tool.vocabulary.ids import CLUSTER_ID_BYTES, cluster_bytes, cluster_ids
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.state_rows import REPLICATOR

StreamKey = tuple[str, int, int]
"""Region, origin, via."""
OfRegion = tuple[str, int]
"""Region, origin."""


@dataclass(frozen=True, slots=True)
class Target:
    """A slave that peers of the master lead to, and what its status file records of streams."""

    cluster_id: str
    peers: tuple[PeerFacts, ...]
    segments: Mapping[StreamKey, Sequence[Segment]]

    def is_shipped(self, table: str) -> bool:
        """Return True if some peer ships at least a family of the table."""
        return any(ships(peer, table) for peer in self.peers)

    def has_all(self, head: Row) -> bool:
        """Return True if every entry of the stream has been applied there, or none is ever shipped there."""
        if not is_shipped(head.get("via_ids"), self.cluster_id):
            return True
        return bool(fold(self.segments.get(key_of(head), ()), head["seq"]).prefix_end >= head["seq"])


@dataclass(frozen=True, slots=True)
class Applied:
    """A row of segments in the slave's state table."""

    key: StreamKey
    segments: tuple[Segment, ...]
    replicated_ms: int | None


def key_of(row: Row) -> StreamKey:
    """Return the stream that a `stream` or `segment` row belongs to."""
    return row["region"], row["origin"], row.get("via") or 0


def is_over(row: Row, peers: Iterable[PeerFacts], before_ms: int) -> bool:
    """Return True if nothing more can come from a `server` row's server.

    It ended before that time, and all that it wrote is in the table or, after a crash, has left the queues of all these
    peers.
    """
    if row.get("live") is not False or not is_writer(row) or row.get("origin") is None:
        return False
    # A row may have both: the server ended cleanly, and the spool brought its last row late.
    ended_ms = row["final_ms"] if row.get("final_ms") is not None else row.get("gone_ms")
    if ended_ms is None or ended_ms >= before_ms:
        return False
    return row.get("final_ms") is not None or all(settled_before(row, peer) is not None for peer in peers)


def prunable_heads(
    heads: Iterable[Row], over: Container[int], targets: Sequence[Target], doubtful: Container[OfRegion] = ()
) -> Iterator[tuple[Row, bytes]]:
    """Yield heads that no verdict needs, each with the ids of the clusters that have the stream or are never sent it.

    `heads` are `stream` rows, those of a region one after the other; `targets` are the slaves of all peers. The head of
    a region that was written last always stays: it shows that the region existed, and when it was written to. So do
    those of servers whose last entries there are `doubtful`.
    """
    for _, region in groupby(heads, itemgetter("region")):
        members = list(region)
        kept = max(members, key=_written_last)
        for head in members:
            if head is kept or (head["region"], head.get("origin")) in doubtful:
                continue
            if head.get("origin") in over and _is_whole(head):
                having = [target for target in targets if target.has_all(head)]
                # Without a slave nobody has the stream, and a peer that is added later may need it.
                if having and all(target in having for target in targets if target.is_shipped(head["table"])):
                    yield head, _ids(having, head.get("via_ids"))


def prunable_segments(
    rows: Iterable[Applied], heads: Container[StreamKey], over: Container[int], doubtful: Container[OfRegion] = ()
) -> Iterator[Applied]:
    """Yield rows of segments that no verdict needs: their server has ended, and the master no longer has their heads.

    Rows of a region come one after the other; the one with its newest replicated write stays. So do rows with a
    hole, which is a gap where the queues have settled the server, and of servers whose last entries are `doubtful`.
    """
    for _, members in groupby(rows, lambda row: row.key[0]):
        region = list(members)
        kept = max(region, key=lambda one: one.replicated_ms or 0)
        others = (one for one in region if one is not kept and one.key[:2] not in doubtful)
        yield from (one for one in others if _is_left(one, heads, over))


def doubtful_ends(tails: Mapping[OfRegion, int], *known: Collection[tuple[str, int]]) -> set[OfRegion]:
    """Return the crashed servers, by region, of whose last entry nobody knows where it has gone.

    `tails` has the sequence id of that entry, as it was replayed. `known` has the ids that are known of each region,
    for each slave: a verdict about it doubts a server by what is known of it there (`lost-tail`), and nothing that is
    pruned is.
    """
    return {where for where, last in tails.items() if any((where[0], last) not in one for one in known)}


def prunable_servers(
    rows: Iterable[Row], used: Container[int], peers: Collection[PeerFacts], before_ms: int
) -> list[Row]:
    """`server` rows that nothing needs: ended cleanly and long ago, without doubts, not that of a stream (`used`).

    A row that shows better than others how long a peer has been unchanged stays: others are judged by it.
    """
    servers = list(filter(is_writer, rows))
    staying, gone = list(servers), list[Row]()
    for row in servers:
        ended = row.get("final_ms") is not None and is_over(row, (), before_ms) and row["origin"] not in used
        # Two rows may say the same of a peer: only one that stays itself lets the other go.
        others = [other for other in staying if other is not row]
        doubtful = has_doubts(row) or has_own_code(row.get("detail"))
        if ended and not doubtful and all(_is_covered(row, others, peer) for peer in peers):
            staying, gone = others, [*gone, row]
    return gone


def prunable_sinks(rows: Sequence[Row], before_ms: int) -> list[Row]:
    """Return `server` rows of sinks that ended long ago.

    Of these only errors of the tracker matter, clocks that were set back, and the settings by which entries that count
    as applied may have been dropped or lost. Where sinks record every entry by itself, the end of the last one that did
    not matters as well: of entries from before then a witness finds no records.
    """
    sinks = [(row, keeps_all_entries(row.get("detail"))) for row in rows if row.get("role") == REPLICATOR]
    partial = [row for row, keeps_all in sinks if not keeps_all]
    last_ms = latest(*map(_ended_ms, partial)) if len(partial) < len(sinks) else None
    return [
        row
        for row, keeps_all in sinks
        if row.get("live") is False and (ended_ms := _ended_ms(row)) is not None and ended_ms < before_ms
        if not (has_own_code(row.get("detail")) or has_doubts(row) or repeated_times([row]))
        if ended_ms != last_ms or keeps_all
    ]


def _ended_ms(row: Row) -> int | None:
    return latest(row.get("final_ms"), row.get("gone_ms"))


def marks_of(pruned: Iterable[tuple[Row, bytes]]) -> dict[tuple[str, bytes], int]:
    """Return until when pruned streams were written, by table and the clusters that have them."""
    marks: dict[tuple[str, bytes], int] = {}
    for head, ids in pruned:
        key = head["table"], ids
        marks[key] = max(head["write_ms"], marks.get(key, 0))
    return marks


def unproven_ms(marks: Any, slave_id: str) -> int | None:
    """Until when streams of a table were written that are pruned and that this slave is not known to have.

    `marks` is `pruned` of a master's descriptor: ids (hex) and time, each. None: there are none. A mark that
    cannot be parsed counts as one without end.
    """
    slave = cluster_bytes(slave_id)
    bounds = []
    for mark in marks if isinstance(marks, list) else [marks]:
        ids, written_ms = mark if isinstance(mark, list) and len(mark) == 2 else (None, None)
        having = _split(ids) if isinstance(ids, str) else None
        if having is None or not is_number(written_ms):
            return _ALWAYS_MS
        if slave is None or slave not in having:
            bounds.append(written_ms)
    return latest(*bounds)


_ALWAYS_MS = 1 << 60


def _written_last(head: Row) -> tuple[int, int, int]:
    return head.get("write_ms") or 0, head.get("seq") or 0, head.get("origin") or 0


def _is_whole(head: Row) -> bool:
    known = head.get("table") is not None and head.get("write_ms") is not None
    return known and (head.get("seq") or 0) > 0


def _ids(having: Iterable[Target], via_ids: bytes | None) -> bytes:
    ids = {*(cluster_bytes(target.cluster_id) for target in having), *cluster_ids(via_ids)}
    return b"".join(sorted(one for one in ids if one is not None))


def _split(ids: str) -> set[bytes] | None:
    try:
        packed = bytes.fromhex(ids)
    except ValueError:
        return None
    return None if len(packed) % CLUSTER_ID_BYTES else set(cluster_ids(packed))


def _is_left(row: Applied, heads: Container[StreamKey], over: Container[int]) -> bool:
    covered = merged(row.segments)
    return row.key[1] in over and row.key not in heads and len(covered) == 1 and covered[0].prev == 0


def _is_covered(row: Row, others: Iterable[Row], peer: PeerFacts) -> bool:
    """Return True if other rows record everything about a peer's versions that this row does."""
    own = span_of(row, peer)
    return own is None or any(_holds(span_of(other, peer), own) for other in others)


def _holds(other: Span | None, own: Span) -> bool:
    return other is not None and other.first <= own.first and own.last <= other.last and other.since_ms <= own.since_ms
