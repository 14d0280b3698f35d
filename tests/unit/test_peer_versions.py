"""Which versions of a peer a crashed server had in force, as the trackers record."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from status_tool.rules.peer_versions import REFRESHED_MS, in_force_before_flush, spans_of

PEER = {"id": "1", "incarnation": 70, "version": 3}
FLUSHED = 1_000_000
_HASHES = count(1_000)


def row(*span: Any, flush_ms: int | None = FLUSHED, peer: str = "1") -> dict[str, Any]:
    """A `server` row whose tracker recorded one peer. A hash of what it says that is not given is another each time."""
    known = [*span, next(_HASHES)] if len(span) == 4 else list(span)
    return {"flush_ms": flush_ms, "detail": json.dumps({"errors": 0, "peers": {peer: known}})}


@pytest.mark.parametrize(
    ("own", "others", "peer", "expected"),
    [
        (row(70, 0, 3, FLUSHED), [], PEER, True),
        (row(70, 0, 2, 5), [], PEER, False),
        (row(70, 0, 2, 5), [row(70, 2, 3, 5)], PEER, True),
        (row(70, 0, 1, 5), [row(70, 2, 3, 5), row(70, 1, 2, 5)], PEER, True),
        # Between two versions that nobody has seen together, the peer may have been changed.
        (row(70, 0, 1, 5), [row(70, 2, 3, 5)], PEER, False),
        # They say the same, and nothing was written in between.
        (row(70, 0, 1, 5, 9), [row(70, 2, 3, 5, 9)], PEER, True),
        (row(70, 0, 1, 5, 9), [row(70, 3, 3, 5, 9), row(70, 2, 2, 5, 9)], PEER, True),
        (row(70, 0, 1, 5, 9), [row(70, 2, 3, 5, 8)], PEER, False),
        (row(70, 0, 1, 5, 9), [row(70, 3, 3, 5, 9)], PEER, False),
        (row(69, 0, 3, 5), [], PEER, False),
        (row(70, 0, 2, 5), [row(69, 0, 3, 5)], PEER, False),
        (row(70, 0, 3, 5, peer="2"), [], PEER, False),
        (row(70, 0, 3, 5, flush_ms=None), [], PEER, False),
        (row(70, 0, 3, 5), [], {"id": "1"}, False),
        # Changed once: then it counts only after all others have it in force, too.
        (row(70, 3, 3, FLUSHED - REFRESHED_MS), [], PEER, True),
        (row(70, 3, 3, FLUSHED - REFRESHED_MS + 1), [], PEER, False),
        (row(70, 3, 3, FLUSHED), [row(70, 0, 3, 5)], PEER, True),
    ],
)
def test_what_was_in_force(
    own: dict[str, Any], others: list[dict[str, Any]], peer: dict[str, Any], expected: bool
) -> None:
    """Spans count from the peer's own znode only, and hang together by versions."""
    assert in_force_before_flush(own, spans_of([own, *others], peer), peer) is expected


@pytest.mark.parametrize(
    "detail",
    [
        *(None, "", "[]", "{", "[" * 100_000, '{"peers": 5}', '{"peers": {"1": 5}}', '{"peers": {"1": [70, 0, 3]}}'),
        *(f'{{"peers": {{"1": {span}}}}}' for span in ("[70, 0, 3, true, 9]", "[70, 0, 3, 1e99, 9]")),
        *(f'{{"peers": {{"1": {span}}}}}' for span in ('["70", 0, 3, 5, 9]', "[70, 0, 3, 5]", "[70, 0, 3, 5, 6, 7]")),
    ],
)
def test_what_cannot_be_understood_proves_nothing(detail: str | None) -> None:
    """A sealed file may hold anything."""
    assert not in_force_before_flush({"flush_ms": FLUSHED, "detail": detail}, [], PEER)
