"""What a comparison of rows leaves behind for later runs."""

from __future__ import annotations

from status_tool.rules.kept_proofs import (
    MARGIN_MS,
    NOTHING_SEEN,
    KeptBaseline,
    baseline_with,
    proven_until,
    servers_since,
)
from status_tool.vocabulary.scope import Baseline

LIVE = {"kind": "server", "role": "w", "live": True, "echoed": True, "read_ms": 500_000}
PROOF = KeptBaseline(1_000, frozenset({"f"}), NOTHING_SEEN)


def test_a_proof_holds_up_to_the_slowest_clock_less_what_clocks_may_differ() -> None:
    """A server that appends later, or starts later, writes a later time."""
    behind = {**LIVE, "read_ms": 480_000}
    gone = {**LIVE, "live": False, "echoed": False, "read_ms": 1_000}
    replicator = {**LIVE, "role": "r", "read_ms": 3_000}
    assert proven_until([LIVE, behind, gone, replicator]) == 480_000 - MARGIN_MS


def test_a_server_whose_clock_is_not_known_leaves_no_proof() -> None:
    assert proven_until([LIVE, {**LIVE, "echoed": False}]) is None
    assert proven_until([LIVE, {**LIVE, "read_ms": None}]) is None
    assert proven_until([]) is None


def test_the_later_of_an_operators_word_and_a_proof_counts() -> None:
    since = baseline_with(Baseline(None, {"a": 3_000, "b": 500}), {"a": PROOF, "b": PROOF, "c": PROOF})
    assert since.by_table == {"a": 3_000, "b": 1_000, "c": 1_000}


def test_servers_are_accepted_only_by_proofs_of_every_table() -> None:
    """An operator's word for single tables accepts no server."""
    word = Baseline(None, {"b": 9_000})
    assert servers_since(word, ["a", "b"], {"a": PROOF}) is None
    assert servers_since(word, ["a"], {"a": PROOF}) == 1_000
    assert servers_since(Baseline(5_000), ["a"], {"a": PROOF}) == 5_000
    assert servers_since(Baseline(), [], {}) is None
