"""The algebra of segments against sets of entries, entry by entry."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from status_tool.rules.segments import SINCE_MARGIN_MS, Segment, fold, merged

SEQS = st.integers(0, 20)
SEGMENTS = st.lists(st.builds(Segment, SEQS, SEQS, SEQS, SEQS, SEQS, st.none() | SEQS), max_size=10)


def entries(segments: list[Segment]) -> set[int]:
    """The sequence ids that segments say have arrived."""
    return {seq for s in segments if s.valid for seq in range(s.prev + 1, s.seq + 1)}


def covered(segments: list[Segment]) -> list[tuple[int, int]]:
    """The union of segments without its times."""
    return [(s.prev, s.seq) for s in merged(segments)]


@given(SEGMENTS, st.randoms())
def test_the_order_of_segments_does_not_count(segments: list[Segment], random: st.DataObject) -> None:
    shuffled = list(segments)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert merged(shuffled) == merged(segments)
    assert fold(shuffled, 15) == fold(segments, 15)


@given(SEGMENTS)
def test_duplicates_and_merged_segments_change_nothing(segments: list[Segment]) -> None:
    found = merged(segments)
    assert merged(found) == found
    assert covered(segments) == covered([*segments, *segments, *found])


@given(SEGMENTS, SEGMENTS)
def test_more_segments_never_uncover(some: list[Segment], more: list[Segment]) -> None:
    assert fold([*some, *more], 20).prefix_end >= fold(some, 20).prefix_end


@given(SEGMENTS)
def test_union_is_what_its_entries_are(segments: list[Segment]) -> None:
    found = merged(segments)
    assert entries(found) == entries(segments)
    assert all(left.seq < right.prev for left, right in pairwise(found))


@given(SEGMENTS, st.integers(1, 20))
def test_fold_is_what_its_entries_are(segments: list[Segment], head: int) -> None:
    arrived, found = entries(segments), fold(segments, head)
    assert (found.prefix_end >= head) == set(range(1, head + 1)).issubset(arrived)
    assert set(range(1, min(found.prefix_end, head) + 1)) <= arrived
    assert found.reach == max(arrived, default=0)
    for hole in found.holes:
        assert hole.from_seq < head
        assert not arrived & set(range(hole.from_seq + 1, hole.to_seq + 1))
    below = max((hole.to_seq for hole in found.holes), default=found.prefix_end)
    assert set(range(below + 1, min(head, found.reach) + 1)) <= arrived


def test_a_hole_carries_the_write_times_around_it() -> None:
    found = fold([Segment(9, 12, 90, 120, 7), Segment(0, 3, 10, 30, 5), Segment(3, 5, 40, 35)], head=12)
    assert (found.prefix_end, found.prefix_ms, found.reach) == (5, 35, 12)
    (hole,) = found.holes
    assert (hole.from_seq, hole.to_seq, hole.written_from_ms, hole.written_to_ms) == (5, 9, 35, 90)
    assert hole.recorded_ms == 7


def test_a_hole_that_begins_at_the_head_is_not_asked() -> None:
    assert fold([Segment(0, 10), Segment(12, 15)], head=10).holes == ()
    (hole,) = fold([Segment(0, 5), Segment(12, 15)], head=10).holes
    assert (hole.from_seq, hole.to_seq) == (5, 12)


def test_a_hole_of_the_baseline_is_bridged_with_a_margin() -> None:
    segments = [Segment(4, 8, first_ms=5_000, write_ms=6_000)]
    assert fold(segments, 8, since_ms=5_000 + SINCE_MARGIN_MS).prefix_end == 8
    assert fold(segments, 8, since_ms=5_000 + SINCE_MARGIN_MS - 1).prefix_end == 0
    assert fold([Segment(4, 8, None, 6_000)], 8, since_ms=99_000).prefix_end == 0


def test_a_hole_ends_when_the_entry_before_the_next_one_was_written() -> None:
    """That entry's own write time decides, however much later the next one was written (issue 12, D.3)."""
    segments = [Segment(4, 8, first_ms=90_000, write_ms=95_000, prev_ms=5_000)]
    assert fold(segments, 8, since_ms=5_000).prefix_end == 8
    (hole,) = fold(segments, 8, since_ms=4_999).holes
    assert hole.written_to_ms == 5_000


@given(SEGMENTS)
def test_merging_keeps_times(segments: list[Segment]) -> None:
    for whole in merged(segments):
        starts = [s for s in segments if s.valid and s.prev == whole.prev]
        assert whole.prev_ms == max((s.prev_ms for s in starts if s.prev_ms is not None), default=None)
        assert whole.first_ms in {s.first_ms for s in starts}
        assert whole.write_ms in {s.write_ms for s in segments if s.valid and s.seq == whole.seq}
