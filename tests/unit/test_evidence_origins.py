"""Which origins are settled."""

from __future__ import annotations

from typing import Any

from status_tool.evidence.model import Header
from status_tool.evidence.origins import Origin, iso, judge_origins, origin_name, slave_is_settled

MASTER = Header("master", "m", created_ms=9_000, cut_ms=8_000, shutdown_ms=5_000, barrier_issued_ms=8_000)
LIVE = {"origin": 1, "server": "a,1,1", "role": "w", "live": True, "tracked": True, "echoed": True, "read_ms": 8_100}


def judge(*rows: dict[str, Any], since_ms: int | None = None, drained: frozenset[int] = frozenset()) -> Origin:
    (origin,) = judge_origins(rows, MASTER, since_ms, drained)
    return origin


def test_a_live_origin_is_settled_by_its_echo() -> None:
    assert judge(LIVE).reason is None
    assert judge({**LIVE, "echoed": False}).reason == "has not flushed past the cut"
    assert judge({**LIVE, "echoed": None}).reason == "has not flushed past the cut"


def test_a_live_server_without_tracker_is_never_settled() -> None:
    assert judge({"server": "a,1,1", "origin": 1, "live": True, "tracked": False}).reason == "runs without the tracker"
    assert judge({**LIVE, "tracked": None}).reason == "runs without the tracker"


def test_a_live_server_that_runs_only_the_slaves_tracker_is_untracked() -> None:
    assert judge({**LIVE, "role": "r"}).reason == "runs without the tracker"
    assert judge({**LIVE, "role": "r"}, LIVE).reason is None


def test_a_final_flush_settles_only_what_is_gone() -> None:
    stopped = {**LIVE, "live": False, "echoed": False, "final_ms": 7_000}
    assert judge(stopped).reason is None
    assert judge({**stopped, "live": True}).reason is not None


def test_a_crash_is_named_and_can_be_accepted_or_drained() -> None:
    crashed = {**LIVE, "live": False, "echoed": False, "flush_ms": 0, "gone_ms": 7_000}
    assert judge(crashed).reason == (
        "stopped without a final flush (crash or kill), last flush at 1970-01-01T00:00:00.000+00:00"
    )
    assert judge(crashed, since_ms=6_999).reason is not None
    assert judge(crashed, since_ms=7_000).reason is None
    assert judge({**crashed, "gone_ms": None}, since_ms=99_000).reason is not None
    assert judge(crashed, drained=frozenset({1})).reason is None
    assert judge({**crashed, "live": True}, drained=frozenset({1})).reason is not None


def test_a_crash_after_the_echo_is_settled() -> None:
    assert judge({**LIVE, "live": False}).reason is None


def test_unknown_liveness_counts_as_live() -> None:
    assert judge({**LIVE, "live": None, "echoed": False, "final_ms": 7_000}).reason is not None


def test_a_gone_server_that_only_received_is_no_origin() -> None:
    assert judge_origins([{**LIVE, "role": "r", "live": False}], MASTER) == ()


def test_how_far_a_clock_may_be_ahead() -> None:
    assert judge(LIVE).after_ms == 5_100
    assert judge({**LIVE, "read_ms": 7_000}).after_ms == 5_000, "a clock that is behind only makes it stricter"
    assert judge({**LIVE, "read_ms": None}).after_ms is None
    assert judge({**LIVE, "echoed": False}).after_ms is None
    unknown = Header("master", "m", 9_000, 8_000, shutdown_ms=None, barrier_issued_ms=8_000)
    assert judge_origins([LIVE], unknown)[0].after_ms is None


def test_the_slave_is_settled_when_all_live_servers_echoed() -> None:
    ours = {**LIVE, "role": "r"}
    assert slave_is_settled([ours])
    assert slave_is_settled([ours, {**ours, "live": False, "echoed": False}])
    assert not slave_is_settled([ours, {**ours, "origin": 2, "echoed": False}])
    assert not slave_is_settled([ours, {"live": True, "tracked": False}])
    assert not slave_is_settled([])


def test_names_and_times() -> None:
    assert origin_name(-1, {}) == "f" * 16
    assert origin_name(1, {1: "a,1,1"}) == "a,1,1"
    assert origin_name(None, {}) is None
    assert iso(2**62) == f"{2**62} ms"
