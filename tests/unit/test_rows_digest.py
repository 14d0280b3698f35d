"""Row digests: the hash, the sums' algebra, what is left out, and that the trackers' Java has the same vectors."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from status_tool.digests import wire
from status_tool.digests.coverage import Coverage
from status_tool.digests.digest import FOREVER, Family, Sums
from status_tool.digests.keys import Interval, cut
from status_tool.digests.wire import Answer, Bucket, DamagedAnswer, Range
from tests.row_digests import Cell, digest, framed, siphash128

VECTORS = Path(__file__).resolve().parents[2] / "coprocessor_stubs/src/test/resources/rows"
KEY = bytes(range(16))
ALL = {b"f": Family(2**31 - 1), b"g": Family(2**31 - 1)}

keys = st.binary(max_size=3)
cells = st.builds(Cell, keys, st.sampled_from([b"f", b"g"]), keys, st.integers(0, 20), st.binary(max_size=4))


def ordered(found: list[Cell]) -> list[Cell]:
    """As HBase shows them: one cell of a row, column and timestamp."""
    unique = {(one.row, one.family, one.qualifier, -one.timestamp): one for one in found}
    return [unique[key] for key in sorted(unique)]


def test_siphash_as_its_authors_compute_it() -> None:
    """The 64 vectors of the reference implementation."""
    lines = (VECTORS / "siphash128.txt").read_text().split()
    assert len(lines) == 64
    assert [siphash128(KEY, bytes(range(length))).hex() for length in range(64)] == lines


def test_the_vectors_that_java_is_held_to() -> None:
    """`RowDigestTest.digestsAsTheToolComputesThem` reads the same file."""
    cases = json.loads((VECTORS / "digests.json").read_text())
    for case in cases:
        families = {bytes.fromhex(name): Family(*rule) for name, rule in case["families"].items()}
        found = [_cell(one) for one in case["cells"]]
        sums = digest(found, bytes.fromhex(case["key"]), case["cut"], families)
        answer = _answer_bytes([Answer(0, "", 0, 0, (Bucket(b"", b"", Sums()),))], bytes.fromhex(case["sums"]))
        assert wire.answers(answer)[0].buckets[0].sums == sums, case["name"]
    assert any("nothing is compared" in case["name"] for case in cases)


def _cell(fields: list[Any]) -> Cell:
    row, family, qualifier, timestamp, value = fields
    return Cell(bytes.fromhex(row), bytes.fromhex(family), bytes.fromhex(qualifier), timestamp, bytes.fromhex(value))


def _answer_bytes(of: list[Answer], sums: bytes) -> bytes:
    """As `DigestAnswer` writes a slice of one bucket."""
    (one,) = of
    head = bytes([wire.VERSION]) + (1).to_bytes(4, "big") + one.part.to_bytes(4, "big") + bytes(4)
    return head + bytes(16) + b"\0" + bytes(4) + (1).to_bytes(4, "big") + bytes(4) + sums


@settings(max_examples=40)
@given(st.lists(cells, max_size=30), st.data())
def test_sums_of_parts_are_the_sum_of_the_whole(found: list[Cell], data: st.DataObject) -> None:
    """Wherever the rows are cut, and in whatever order the parts are added."""
    found = ordered(found)
    limits = sorted(data.draw(st.sets(keys, max_size=4)))
    parts = cut(Interval(b"", b""), limits)
    sums = [
        digest([one for one in found if part.holds(one.row, one.row + b"\0")], KEY, 10, ALL)
        for part in data.draw(st.permutations(parts))
    ]
    assert sum(sums, Sums()) == digest(found, KEY, 10, ALL)


@settings(max_examples=40)
@given(st.lists(cells, max_size=12), st.lists(cells, max_size=12))
def test_equal_sums_mean_equal_cells(first: list[Cell], second: list[Cell]) -> None:
    """And equal cells mean equal sums."""
    first, second = ordered(first), ordered(second)
    assert (digest(first, KEY, 10, ALL) == digest(second, KEY, 10, ALL)) == (first == second)


@given(cells, cells)
def test_no_two_cells_are_framed_alike(first: Cell, second: Cell) -> None:
    """Every field has its length in front."""
    assert (framed(first) == framed(second)) == (first == second)


def test_what_is_left_out() -> None:
    """Versions beyond what both sides keep, and cells that may have outlived their TTL."""
    column = [Cell(b"r", b"f", b"q", moment, b"v") for moment in (9, 7, 5)]
    assert digest(column, KEY, 8, {b"f": Family(2)}) == digest(column[:2], KEY, 8, {b"f": Family(9)})
    assert digest(column, KEY, 8, {b"f": Family(9, 7)}) == digest(column[:2], KEY, 8, {b"f": Family(9)})
    nothing = digest(column, KEY, 8, {b"f": Family(9, 10)})
    assert (nothing.rows, nothing.cells, FOREVER < 0) == (0, 0, True)


@given(st.binary(max_size=60))
def test_damaged_answers_are_refused(data: bytes) -> None:
    """Never anything but answers, or `DamagedAnswer`."""
    with contextlib.suppress(DamagedAnswer):
        assert all(isinstance(one, Answer) for one in wire.answers(data))


def test_an_answer_that_ends_too_early() -> None:
    """Every length is checked."""
    whole = _answer_bytes([Answer(0, "", 0, 0)], bytes(72))
    assert len(wire.answers(whole)) == 1
    for size in range(len(whole)):
        with pytest.raises(DamagedAnswer):
            wire.answers(whole[:size])
    with pytest.raises(DamagedAnswer):
        wire.answers(whole + b"x")


def bucket(start: bytes, stop: bytes) -> Bucket:
    """One row of it."""
    return Bucket(start, stop, Sums(rows=1))


def test_slices_tile_a_part_and_count_once() -> None:
    """Twice, overlapping, reaching beyond: refused; whole only without a gap."""
    part = Coverage(Interval(b"b", b""))
    assert part.gaps() == [Interval(b"b", b"")]
    assert part.add([bucket(b"c", b"d"), bucket(b"d", b"e")])
    assert not part.add([bucket(b"c", b"d")])
    assert not part.add([bucket(b"d", b"f")])
    assert not part.add([bucket(b"a", b"c")])
    assert not part.add([bucket(b"b", b"c"), bucket(b"e", b"f")])
    assert part.gaps() == [Interval(b"b", b"c"), Interval(b"e", b"")]
    assert part.add([bucket(b"b", b"c")])
    assert not part.is_whole
    assert part.add([bucket(b"e", b"")])
    assert (part.is_whole, part.sums.rows) == (True, 4)
    assert not part.add([bucket(b"e", b"")])


@given(st.lists(st.tuples(keys, keys), max_size=20), st.integers())
def test_a_coverage_never_counts_a_row_twice(slices: list[tuple[bytes, bytes]], seed: int) -> None:
    """Whatever is offered, its tiles do not overlap; and gaps and tiles together are the part."""
    part = Coverage(Interval(b"", b""))
    for start, stop in slices:
        part.add([bucket(start, stop)])
    row = random.Random(seed).randbytes(3)
    tiles = [one for one in part.buckets if Interval(one.start, one.stop).holds(row, row + b"\0")]
    gaps = [gap for gap in part.gaps() if gap.intersection(row, row + b"\0")]
    assert len(tiles) <= 1
    assert len(tiles) + len(gaps) == 1


def test_intervals() -> None:
    """An empty stop is the end of the table."""
    whole = Interval(b"", b"")
    assert whole.intersection(b"a", b"b") == Interval(b"a", b"b")
    assert Interval(b"a", b"c").intersection(b"c", b"") is None
    assert Interval(b"a", b"").intersection(b"b", b"") == Interval(b"b", b"")
    assert cut(whole, [b"", b"m", b"m"]) == [Interval(b"", b"m"), Interval(b"m", b"")]
    assert cut(Interval(b"c", b"d"), [b"a", b"c", b"d", b"e"]) == [Interval(b"c", b"d")]


def test_requests_and_answers_are_the_ones_that_java_reads_and_writes() -> None:
    """`DigestJobTest` has the same files."""

    def held(name: str) -> bytes:
        return bytes.fromhex((VECTORS / name).read_text().strip())

    families = {b"f": Family(3), b"g": Family(1, 99)}
    asked = wire.Query({"ns:t": families, "other": {b"f": Family(1)}}, bytes(range(16)), 1234, 5678)
    assert wire.request(asked) == held("request.hex")
    ranges = [Range(7, "e" * 32, 11, b"a", b"\xff\x00"), Range(8, "f" * 32, 12, b"", b"")]
    assert wire.page(ranges) == held("page.hex")
    first, refused, _ = wire.answers(held("answer.hex"))
    families = {b"f": Family(10)}
    sums = digest([Cell(b"row000001", b"f", b"q", 5, b"v")], bytes(16), 100, families)
    assert first == Answer(7, "e" * 32, 11, 77, (Bucket(b"a", b"k", sums),))
    assert refused == Answer(8, "f" * 32, 12, -1, refused="the region is not open here")
