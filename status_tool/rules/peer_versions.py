"""Versions of a peer: whether a crashed server had loaded the present one before, by versions and not by clocks.

Trackers record which versions of a peer's znode were in force on their region server (docs/formats.md, `q` of the state
table's `o` rows). A server on which the present one was in force before its last flush has put
everything that it appended later into that peer's queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from status_tool.rules.peers import is_incarnation
from status_tool.vocabulary.details import is_number, object_in
from status_tool.vocabulary.schema import Row

_FIELDS = 5
"""How many numbers a tracker records."""
REFRESHED_MS = 60_000
"""Time from a change's first server until it is in force on all: HBase has them refresh the peer in one procedure."""


@dataclass(frozen=True, slots=True)
class Span:
    """Versions of a peer's znode that were equivalent for one region server, and since when (its clock, epoch ms)."""

    first: int
    last: int
    since_ms: int
    content: int
    """A hash of what they say."""

    def joins(self, other: Span) -> bool:
        """Return True if nothing that is written in between can differ: they share a version, or one follows the other
        directly and says the same.
        """
        # A starting HBase master writes each znode anew. If no server is up meanwhile, no span has both versions.
        gap = 1 if self.content == other.content else 0
        return self.first <= other.last + gap and other.first <= self.last + gap


def spans_of(rows: Iterable[Row], peer: Mapping[str, Any]) -> list[Span]:
    """Return what all `server` rows of a run record of the peer."""
    return [span for span in (span_of(row, peer) for row in rows) if span is not None]


def in_force_before_flush(row: Row, spans: Sequence[Span], peer: Mapping[str, Any]) -> bool:
    """Return True if a `server` row's server had the present version of the peer in force before its last flush.

    Other servers' spans are merged where they join: an HBase master that starts rewrites every peer's znode, which only
    servers that were up before and after it can distinguish from a change. Where the peer has been changed since it was
    added, the change must have been in force for a while, as another server ships what a crashed one left.
    """
    version, flush_ms = peer.get("version"), row.get("flush_ms")
    own = span_of(row, peer)
    if own is None or version is None or flush_ms is None:
        return False
    joined = _joined(own, spans)
    # The server's own clock gives both times: no two clocks are compared.
    was_changed = joined.first > 0
    return joined.first <= version <= joined.last and not (was_changed and own.since_ms + REFRESHED_MS > flush_ms)


def in_force_since(spans: Sequence[Span], peer: Mapping[str, Any]) -> int | None:
    """Return since when all servers have shipped as the peer says now (epoch ms); None if no tracker recorded that."""
    version = peer.get("version")
    own = next((span for span in spans if version is not None and span.first <= version <= span.last), None)
    if own is None:
        return None
    whole = _joined(own, spans)
    if whole.first == 0:
        return peer.get("created_ms")  # it has never said anything else
    return REFRESHED_MS + min(span.since_ms for span in spans if whole.first <= span.first and span.last <= whole.last)


def _joined(own: Span, others: Sequence[Span]) -> Span:
    joined = own
    for _ in others:  # A merged span may reach another one: at most one more per round.
        before = joined
        for span in others:
            if joined.joins(span):
                joined = replace(joined, first=min(joined.first, span.first), last=max(joined.last, span.last))
        if joined == before:
            break
    return joined


def span_of(row: Row, peer: Mapping[str, Any]) -> Span | None:
    """Return what a row records of this incarnation of the peer. A value that cannot be parsed counts as absent."""
    known = (object_in(row.get("detail")) or {}).get("peers")
    fields = known.get(str(peer["id"])) if isinstance(known, dict) else None
    if not isinstance(fields, list) or len(fields) != _FIELDS or not all(map(is_number, fields)):
        return None
    # The czxid tells a peer that was removed and added again, whose znode counts its versions from 0.
    incarnation, *numbers = fields
    span = Span(*numbers)
    return span if is_incarnation(peer, incarnation, span.since_ms) else None
