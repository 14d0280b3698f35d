"""Whether a peer had been in force, as it is now, on a server before it crashed: by versions, free of clocks.

Trackers note which versions of a peer's znode were in force on their region server (docs/formats.md, `q` of the state
table's `o` rows; docs/decisions.md, 65). A server that had the present one in force before its last flush has put
everything that it appended later into that peer's queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from status_tool.evidence.details import is_number, loads

Row = Mapping[str, Any]

REFRESHED_MS = 60_000
"""A change is in force on every region server this long after it is on one: HBase has them all load it at once."""
_FIELDS = 4


@dataclass(frozen=True, slots=True)
class Span:
    """Versions of a peer's znode that were the same to one region server, and since when (its clock, epoch ms)."""

    first: int
    last: int
    since_ms: int


def spans_of(rows: Iterable[Row], peer: Mapping[str, Any]) -> list[Span]:
    """What all `server` rows of a run say of the peer."""
    return [span for span in (_span(row, peer) for row in rows) if span is not None]


def in_force_before_flush(row: Row, spans: Sequence[Span], peer: Mapping[str, Any]) -> bool:
    """Whether the present version of the peer was in force on the server of a `server` row before its last flush.

    Other servers' spans join in where they share a version: an HBase master that starts writes every peer's znode
    anew, which only servers that lived then can tell from a change. Where the peer has been changed since it was
    added, the change must have been in force for a while, for another server ships what a crashed one has left.
    """
    version, flush_ms = peer.get("version"), row.get("flush_ms")
    own = _span(row, peer)
    if own is None or version is None or flush_ms is None:
        return False
    first, last = _joined(own, spans)
    was_changed = first > 0
    return first <= version <= last and not (was_changed and own.since_ms + REFRESHED_MS > flush_ms)


def _joined(own: Span, others: Sequence[Span]) -> tuple[int, int]:
    first, last = own.first, own.last
    for _ in others:  # as often as there can be one more to join
        before = (first, last)
        for span in others:
            if span.first <= last and first <= span.last:
                first, last = min(first, span.first), max(last, span.last)
        if (first, last) == before:
            break
    return first, last


def _span(row: Row, peer: Mapping[str, Any]) -> Span | None:
    """What a row says of this incarnation of the peer; what cannot be understood says nothing."""
    try:
        document = loads(row.get("detail"))
    except ValueError:
        return None
    known = document.get("peers") if isinstance(document, dict) else None
    told = known.get(str(peer["id"])) if isinstance(known, dict) else None
    if not isinstance(told, list) or len(told) != _FIELDS or not all(map(is_number, told)):
        return None
    incarnation, first, last, since_ms = told
    return Span(first, last, since_ms) if incarnation == peer.get("incarnation") else None
