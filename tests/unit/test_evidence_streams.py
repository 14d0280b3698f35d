"""The stream rule: examples of each decision, and that it never says complete where an entry is missing."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from status_tool.rules.origins import judge_origins, slave_flushed_ms
from status_tool.rules.segments import Segment
from status_tool.rules.streams import Head, StreamRule, StreamVerdict, is_shipped, judge_stream, stream_finding
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import cluster_bytes
from status_tool.vocabulary.scope import Baseline
from status_tool.vocabulary.verdicts import Status

SLAVE = "0e5a9b0c-1111-4222-8333-444455556666"
HEAD = Head("region", origin=1, via=0, seq=10, first_ms=1_000, write_ms=2_000, table="t", family="f")
FLUSHED_SLAVE = StreamRule(Baseline(), recorded_before_ms=500)


def decide(
    *segments: Segment,
    rule: StreamRule = FLUSHED_SLAVE,
    settled: bool = True,
    after_ms: int | None = None,
    head: Head = HEAD,
) -> StreamVerdict:
    return judge_stream(head, segments, rule, settled, after_ms)


def since(time: int) -> StreamRule:
    return StreamRule(Baseline(time), 500)


def found(*segments: Segment) -> Finding:
    finding = stream_finding(HEAD, decide(*segments))
    assert finding is not None
    return finding


def test_covered_up_to_the_head() -> None:
    assert decide(Segment(0, 4), Segment(4, 10)).code == "covered"
    assert decide(Segment(0, 14)).status is Status.COMPLETE


def test_nothing_arrived_is_missing() -> None:
    assert (found().code, found().lag_ms) == ("missing", 1_000)


def test_an_uncovered_tail_is_behind_by_its_write_times() -> None:
    finding = found(Segment(0, 6, 1_000, 1_700))
    assert (finding.code, finding.lag_ms) == ("behind", 300)
    assert (finding.from_seq, finding.to_seq, finding.written_from_ms, finding.written_to_ms) == (6, 10, 1_700, 2_000)


def test_a_lag_has_64_bits() -> None:
    """Also that between two damaged times: neither Arrow nor SQLite keeps a longer one."""
    head = replace(HEAD, write_ms=(1 << 63) - 1)
    assert decide(Segment(0, 6, -1, -1), head=head).lag_ms == (1 << 63) - 1


def test_a_hole_is_a_gap_once_the_slave_has_flushed() -> None:
    finding = found(Segment(0, 4, 1_000, 1_400), Segment(6, 10, 1_600, 2_000, recorded_ms=499))
    assert finding.code == "gap"
    assert (finding.from_seq, finding.to_seq, finding.written_from_ms, finding.written_to_ms) == (4, 6, 1_400, 1_600)


def test_the_highest_sequence_id_alone_proves_nothing() -> None:
    assert decide(Segment(9, 10, recorded_ms=499)).status is Status.GAP


def test_a_fresh_hole_may_still_be_filled_and_an_old_one_not() -> None:
    fresh, old = (decide(Segment(0, 4), Segment(6, 10, recorded_ms=at)) for at in (500, 499))
    assert (fresh.code, fresh.status) == ("may-fill", Status.BEHIND)
    assert (old.code, old.status) == ("gap", Status.GAP)
    assert decide(Segment(0, 4), Segment(6, 10)).code == "may-fill", "nobody knows when it was recorded"
    both = found(Segment(2, 4, recorded_ms=500), Segment(6, 10, recorded_ms=499))
    assert (both.code, both.from_seq, both.holes) == ("gap", 4, 1), "the other one may be filled"


@pytest.mark.parametrize(("age_ms", "code"), [(40_001, "may-fill"), (70_000, "may-fill"), (70_001, "gap")])
def test_a_hole_is_as_old_as_the_clock_of_its_server_may_be_behind(age_ms: int, code: str) -> None:
    slave = Header("slave", "", created_ms=100_000, cut_ms=100_000, flush_period_ms=20_000)
    rule = StreamRule.of(slave, Baseline(), None)
    assert decide(Segment(0, 4), Segment(6, 10, recorded_ms=100_000 - age_ms), rule=rule).code == code


def test_a_hole_may_be_filled_by_what_a_server_has_recorded_since_its_flush() -> None:
    """A batch of a region goes to any server: the one before it may be recorded by a server that had flushed already.

    Of several servers the first flush counts, and none as long as one has not flushed.
    """
    slave = Header("slave", "", created_ms=100_000, cut_ms=100_000, flush_period_ms=20_000)
    server = {"role": "r", "live": True, "echoed": True, "read_ms": 99_000}
    both = [server, server | {"read_ms": 99_300}]
    for recorded_ms, servers, code in (
        (97_999, both, "gap"),
        (98_000, both, "may-fill"),  # the clocks of two servers differ by a little
        (98_299, both[1:], "gap"),
        (97_999, [server, server | {"echoed": False}], "may-fill"),
        (97_999, [server, server | {"read_ms": None}], "may-fill"),
        (97_999, [server | {"role": "w"}], "may-fill"),
    ):
        rule = StreamRule.of(slave, Baseline(), slave_flushed_ms(servers))
        assert decide(Segment(0, 4), Segment(6, 10, recorded_ms=recorded_ms), rule=rule).code == code


def test_several_holes_are_counted_and_repaired_together() -> None:
    finding = found(Segment(2, 4, 1_200, 1_400, 499), Segment(6, 10, 1_600, 2_000, 499))
    assert (finding.from_seq, finding.to_seq, finding.holes, finding.repair_to_ms) == (0, 2, 2, 1_600)
    assert finding.written_from_ms == HEAD.first_ms


def test_an_unsettled_origin_makes_complete_unverifiable_but_leaves_what_is_known_to_be_wrong() -> None:
    assert decide(Segment(0, 10), settled=False).code == "unsettled"
    assert decide(Segment(0, 9), settled=False).status is Status.BEHIND


def test_an_arrived_entry_from_after_the_shutdown_proves_all_before_it() -> None:
    assert decide(Segment(0, 6, 1_000, 1_801), after_ms=1_800).code == "after-cut"
    assert decide(Segment(0, 6, 1_000, 1_800), after_ms=1_800).code == "behind"
    assert decide(after_ms=999).code == "after-cut"
    assert decide(Segment(0, 3, 1_000, 1_200), Segment(4, 10, 1_500, 2_000, 499), after_ms=1_800).code == "gap"


def test_a_baseline_accepts_old_heads_and_old_holes_only() -> None:
    assert decide(rule=since(2_000)).code == "baseline"
    assert decide(rule=since(1_999)).code == "missing"
    holed = (Segment(4, 10, 500, 2_000, 499),)
    assert decide(*holed, rule=since(1_500)).code == "covered"
    assert decide(*holed, rule=since(1_499)).code == "gap"


def test_a_damaged_head_is_unverifiable() -> None:
    for damaged in (Head("r", 1, 0, None), Head("r", None, 0, 3), Head("r", 1, 0, 0)):
        head = replace(damaged, family="f")
        assert decide(Segment(0, 10), head=head).code == "unreadable-head"
        assert decide(Segment(0, 10), head=head, rule=since(2_000)).code == "unreadable-head", "nobody knows its time"
        known = replace(head, write_ms=2_000)
        assert decide(Segment(0, 10), head=known, rule=since(1_999)).code == "unreadable-head"
        assert decide(Segment(0, 10), head=known, rule=since(2_000)).code == "baseline"
        assert decide(Segment(0, 10), head=known, rule=since(2_000), settled=False).code == "unreadable-head"


def test_a_stream_of_no_family_is_accepted_at_most() -> None:
    """As trackers before version 3 of the stamp had it: what arrived of an entry only in part looks whole there."""
    head = replace(HEAD, family=None)
    assert decide(Segment(0, 10), head=head).code == "unreadable-head"
    assert decide(Segment(0, 10), head=head, rule=since(2_000)).code == "baseline"
    assert decide(Segment(0, 10), head=replace(HEAD, family="")).code == "covered", "several families share it"


def test_a_stream_is_not_recorded_where_the_slaves_records_are_not_whole() -> None:
    rule = StreamRule(Baseline(), 500, unrecorded=frozenset({"t"}))
    assert decide(Segment(0, 10), rule=rule).code == "covered"
    for segments in ((), (Segment(0, 9),), (Segment(0, 4), Segment(6, 10))):
        verdict = decide(*segments, rule=rule)
        assert (verdict.code, verdict.status, verdict.lag_ms) == ("unrecorded", Status.UNVERIFIABLE, None)


def test_a_stream_that_has_passed_through_the_slave_is_not_asked_of_it() -> None:
    slave = cluster_bytes(SLAVE)
    assert slave is not None
    assert not is_shipped(slave, SLAVE)
    assert not is_shipped(bytes(16) + slave, SLAVE)
    assert is_shipped(bytes(8) + slave + bytes(8), SLAVE), "ids are compared whole"
    assert is_shipped(None, SLAVE)
    assert is_shipped(slave, "not a uuid")


@given(st.integers(0, 2**32), st.integers(-400, 400), st.booleans())
def test_never_complete_while_an_entry_from_before_the_shutdown_is_missing(
    seed: int, offset: int, unlimited: bool
) -> None:
    """An origin whose clock is off, threads that append in another order than they took their times."""
    random = Random(seed)
    now, entries, prev = 10_000, [], 0
    for _ in range(random.randint(1, 12)):
        now += random.randint(0, 60)
        seq = prev + random.randint(1, 3)
        taken = now - random.randint(0, 30)
        entries.append((prev, seq, taken + offset, now))
        prev = seq
    shutdown = random.randint(9_900, now + 100)
    issued = now + random.randint(0, 50)
    read = issued + random.randint(0, 200) + offset
    master = Header("master", "m", issued, shutdown, None if unlimited else shutdown, issued)
    row = {"origin": 1, "live": True, "tracked": True, "echoed": True, "read_ms": read, "role": "w"}
    (origin,) = judge_origins([row], master)

    arrived = [entry for entry in entries if random.random() < 0.7]
    segments = [Segment(p, s, w, w) for p, s, w, _ in arrived]
    head = Head("r", 1, 0, prev, entries[0][2], max(entry[2] for entry in entries), family="f")
    verdict = judge_stream(head, segments, FLUSHED_SLAVE, origin.reason is None, origin.after_ms)
    in_scope = [entry for entry in entries if unlimited or entry[3] < shutdown]
    if verdict.status is Status.COMPLETE:
        assert set(in_scope) <= set(arrived)
    elif not set(entries) - set(arrived):
        raise AssertionError("everything has arrived")
