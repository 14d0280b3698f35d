"""Limits for digests and comparing them, over region servers in memory: fences, moves, refusals, narrowing, changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from status_tool.digests import compare as compare_module
from status_tool.digests import requests as requests_module
from status_tool.digests.compare import (
    Limits,
    TableVerdict,
    _Comparison,
    _equal_tables,
    _Findings,
    _Pair,
    _verdict,
    compare,
    equal_at_once,
)
from status_tool.digests.coverage import Coverage
from status_tool.digests.differences import MISSING, Difference
from status_tool.digests.digest import Family, Sums
from status_tool.digests.families import Comparable
from status_tool.digests.keys import Interval, TableRange, cut
from status_tool.digests.requests import Asked, Requests, _Round
from status_tool.digests.wire import Answer, Bucket, Range
from status_tool.errors import ConnectionFailed
from status_tool.sources.meta import HostedRegion
from tests.row_digests import Cell, digest

KEY = bytes(16)
FAMILIES = {b"f": Family(1)}
WHOLE_OF_U = TableRange("u", Interval(b"", b""))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in ((requests_module, ("ANSWER_POLL_S", "META_S")), (compare_module, ("PAUSE_S", "SETTLE_S"))):
        for name in names:
            monkeypatch.setattr(module, name, 0.0)
    monkeypatch.setattr(requests_module, "UNHOSTED_S", 0.05)


def cells_of(rows: Mapping[bytes, bytes]) -> list[Cell]:
    return [Cell(row, b"f", b"q", 5, rows[row]) for row in sorted(rows)]


def summed(rows: Mapping[bytes, bytes], interval: Interval) -> Sums:
    inside = {row: value for row, value in rows.items() if interval.holds(row, row + b"\0")}
    return digest(cells_of(inside), KEY, 10, FAMILIES)


def numbered(count: int, **other: bytes) -> dict[bytes, bytes]:
    """Rows `r000`, …, some with another value."""
    return {**{b"r%03d" % number: b"v" for number in range(count)}, **{k.encode(): v for k, v in other.items()}}


class Servers:
    """What `_Round` sees of a cluster: two regions, `a` up to m and `b` from m on; servers answer what they receive."""

    def __init__(self) -> None:
        self.hosted = [HostedRegion("a", b"", b"m", "s1", 1, "t"), HostedRegion("b", b"m", b"", "s2", 1, "t")]
        self.sent: list[tuple[str, Range]] = []
        self.silent: set[str] = set()
        self.is_over = False
        self.before_answer: Callable[[str, Range], Answer | None] = lambda name, one: None
        self._waiting: dict[str, list[Range]] = {}

    def regions(self) -> list[HostedRegion]:
        return list(self.hosted)

    def send(self, by_server: Mapping[str, Sequence[Range]]) -> None:
        for name, ranges in by_server.items():
            self.sent += [(name, one) for one in ranges]
            self._waiting.setdefault(name, []).extend(ranges)

    def hear(self, name: str) -> Iterator[Answer]:
        waiting = [] if name in self.silent else self._waiting.pop(name, [])
        for one in waiting:
            other = self.before_answer(name, one)
            yield other or Answer(one.part, one.region, one.open_seq, 9, (Bucket(one.start, one.stop, Sums(rows=1)),))

    def is_silent(self, name: str) -> bool:
        return name in self.silent


def ask(servers: Servers) -> Asked:
    """The whole table as one part."""
    fake: Any = servers
    return _Round(fake, {0: TableRange("t", Interval(b"", b""))}).run()


KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """Of one row at least; from the beginning or to the end of the table, too."""
    start, stop = sorted(draw(st.lists(KEYS, min_size=2, max_size=2, unique=True)))
    return Interval(draw(st.sampled_from([start, b""])), draw(st.sampled_from([stop, b""])))


@pytest.mark.slow
@given(st.lists(intervals(), max_size=4), intervals())
def test_only_regions_with_rows_of_some_part_are_kept(parts: list[Interval], region: Interval) -> None:
    """Samples are of a few regions of very many; parts may overlap."""
    asked = {number: TableRange("t", interval) for number, interval in enumerate(parts)}
    hosted = [HostedRegion("r", *region, "s", 1, table) for table in ("t", "u")]
    seen = SimpleNamespace(regions=lambda: iter(hosted), send=lambda ranges: None)
    turn = _Round(cast(Requests, seen), asked)
    turn._look()
    wanted = any(part.intersection(*region) for part in parts)
    assert turn._regions == ({"t": hosted[:1]} if wanted else {})


def test_a_part_over_two_regions() -> None:
    """Each server digests its own region; the sums add up."""
    servers = Servers()
    round_ = ask(servers)
    assert round_.coverages[0].is_whole
    assert (round_.coverages[0].sums.rows, round_.unanswered) == (2, ())
    assert [(name, one.start, one.stop) for name, one in servers.sent] == [("s1", b"", b"m"), ("s2", b"m", b"")]


def test_an_answer_of_a_server_that_lost_the_region_does_not_count() -> None:
    """`hbase:meta` is read after the answer: with another server or opening, the request is sent again there."""
    for moved in (HostedRegion("b", b"m", b"", "s3", 5, "t"), HostedRegion("b", b"m", b"", "s2", 5, "t")):
        servers = Servers()

        def move(name: str, one: Range, servers: Servers = servers, moved: HostedRegion = moved) -> Answer | None:
            if one.region == "b" and one.open_seq == 1:
                servers.hosted[1] = moved
                return Answer(one.part, "b", 1, 9, (Bucket(b"m", b"", Sums(rows=100)),))
            return None

        servers.before_answer = move
        round_ = ask(servers)
        assert (round_.coverages[0].sums.rows, round_.unanswered) == (2, ())
        assert servers.sent[-1] == (moved.server, Range(0, "b", 5, b"m", b""))


def test_a_region_that_splits_meanwhile() -> None:
    """What was answered before counts, the rest is requested of the daughters."""
    servers = Servers()

    def split(name: str, one: Range) -> Answer | None:
        if one.region == "b":
            servers.hosted[1:] = [
                HostedRegion("c", b"m", b"t", "s2", 2, "t"),
                HostedRegion("d", b"t", b"", "s1", 2, "t"),
            ]
            return Answer(one.part, "b", 1, -1, refused="the region is not open here")
        return None

    servers.before_answer = split
    round_ = ask(servers)
    assert (round_.coverages[0].sums.rows, round_.unanswered) == (3, ())


def test_a_server_that_does_not_answer() -> None:
    """It is named, what others answered is kept, and the coverage is not whole."""
    servers = Servers()
    servers.silent.add("s2")
    round_ = ask(servers)
    assert not round_.coverages[0].is_whole
    assert round_.coverages[0].sums.rows == 1
    assert "s2 does not answer" in round_.unanswered[0]


def test_rows_that_nobody_hosts() -> None:
    """A region in transition for too long."""
    servers = Servers()
    del servers.hosted[1]
    round_ = ask(servers)
    assert round_.unanswered == ("rows are not in any open region, or in several",)


def test_rows_that_several_regions_have() -> None:
    """Equal is what clients read, and nobody knows of which region; an overlap that goes, as in a split, is none."""
    servers = Servers()
    servers.hosted.insert(1, HostedRegion("c", b"k", b"p", "s1", 1, "t"))
    round_ = ask(servers)
    assert round_.unanswered == ("rows are not in any open region, or in several",)
    assert not round_.coverages[0].is_whole
    looks = iter([list(servers.hosted)])
    del servers.hosted[1]
    servers.regions = lambda: next(looks, servers.hosted)  # type: ignore[method-assign]
    round_ = ask(servers)
    assert (round_.coverages[0].sums.rows, round_.unanswered) == (2, ())


def test_waiting_ends_when_the_request_is_withdrawn() -> None:
    """Ctrl-C does not wait for answers."""
    servers = Servers()
    servers.hear = lambda name: iter(())  # type: ignore[method-assign]
    servers.is_over = True
    round_ = ask(servers)
    assert not round_.coverages[0].is_whole
    assert round_.unanswered


def test_a_server_that_always_refuses() -> None:
    """There is an end to it."""
    servers = Servers()
    servers.before_answer = lambda name, one: Answer(one.part, one.region, one.open_seq, -1, refused="no")
    assert "refused" in ask(servers).unanswered[0]


class Side:
    """What `_Comparison` sees of a cluster: a table in memory, answered in buckets of ten rows."""

    def __init__(self, rows: dict[bytes, bytes], limits: Sequence[bytes] = ()) -> None:
        self.rows = rows
        self.limits = limits
        self.round_: list[Interval] = []
        self.rounds = 0
        self.each_round: Callable[[int], None] = lambda number: None
        self.unanswered: tuple[str, ...] = ()

    def regions(self) -> list[HostedRegion]:
        parts = cut(Interval(b"", b""), self.limits)
        return [HostedRegion(str(part), part.start, part.stop, "s", 1, "t") for part in parts]

    def ask(self, parts: Mapping[int, TableRange], counted: object) -> Asked:
        self.rounds += 1
        self.each_round(self.rounds)
        coverages = {}
        for number, (_, interval) in parts.items():
            self.round_.append(interval)
            inside = sorted(row for row in self.rows if interval.holds(row, row + b"\0"))
            coverages[number] = Coverage(interval)
            if not self.unanswered:
                coverages[number].add([Bucket(*one, summed(self.rows, one)) for one in cut(interval, inside[10::10])])
        return Asked(coverages, self.unanswered)


def compared(
    master: Side, slave: Side, wait_s: float = 5.0, shipped_until: Callable[[], float] | None = None
) -> _Findings:
    """Both sides' digests, to the end."""
    sides: Any = (master, slave)
    with ThreadPoolExecutor(2) as pool:
        return _Comparison("t", sides, pool, Limits(10, wait_s), shipped_until=shipped_until).run()


def until(is_drained: Callable[[], bool]) -> Callable[[], float]:
    """Replication that is drained, or of which nothing is known."""

    def shipped_until() -> float:
        began = time.monotonic()
        return began if is_drained() else float("-inf")

    return shipped_until


def verdict(found: _Findings, *doubts: str) -> TableVerdict:
    return _verdict(found, Comparable(FAMILIES, doubts, None))[0]


def test_a_table_whose_cells_all_expire_soon_is_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it would be compared, on either side; nor is it among many at a first look."""
    nobody: Any = SimpleNamespace(settings=None)
    hows = {"t": Comparable({b"f": Family(1), b"g": Family(1, 10)}, (), None), "u": Comparable(FAMILIES, (), None)}
    result = compare(nobody, nobody, "t", hows["t"], Limits(10))
    assert (result.verdict, result.sums) == (TableVerdict.UNVERIFIABLE, Sums())
    assert "all cells of family g that were written up to" in result.reasons[0]
    monkeypatch.setattr(compare_module, "_equal_in_one_request", lambda _m, _s, some, *_: dict.fromkeys(some, Sums()))
    assert set(equal_at_once(nobody, nobody, hows, Limits(10))) == {"u"}


def test_equal_tables_with_other_regions() -> None:
    """One round, cut at the limits of both sides' regions."""
    master, slave = Side(numbered(500), [b"r100"]), Side(numbered(500), [b"r050", b"r300"])
    found = compared(master, slave)
    assert (verdict(found), found.sums.rows, master.rounds) == (TableVerdict.EQUAL, 500, 1)
    assert len(master.round_) == 4


@pytest.mark.parametrize("tampered", [{"r123": b"w"}, {"r123x": b"v"}])
def test_what_differs_is_narrowed(tampered: dict[str, bytes]) -> None:
    """To a range of few rows, with either side as the richer."""
    for sides in (
        (Side(numbered(300, **tampered)), Side(numbered(300))),
        (Side(numbered(300)), Side(numbered(300, **tampered))),
    ):
        found = compared(*sides)
        assert verdict(found) is TableVerdict.DIFFERS
        (pair,) = found.confirmed
        assert pair.interval.holds(b"r123", b"r123y")
        assert pair.is_leaf


def test_cells_that_cannot_be_listed_differ_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a user without READ: region servers digest all the same."""

    def refused(*_: object) -> Iterator[Difference]:
        yield Difference(b"r007", b"f", b"q", MISSING, 5)
        raise ConnectionFailed("AccessDenied")

    cluster: Any = SimpleNamespace(settings=SimpleNamespace(thrift=lambda: None), tables={})
    monkeypatch.setattr(compare_module, "differences", refused)
    monkeypatch.setattr(compare_module, "Requests", lambda *_: nullcontext())
    found = compared(Side(numbered(30, r007=b"w")), Side(numbered(30)))
    monkeypatch.setattr(_Comparison, "run", lambda _: found)
    result = compare(cluster, cluster, "t", Comparable(FAMILIES, (), None), Limits(10))
    assert (result.verdict, len(result.differences), result.is_all) == (TableVerdict.DIFFERS, 1, False)
    assert "AccessDenied" in result.reasons[0]


def test_what_becomes_equal_is_equal() -> None:
    """Replication was behind, and caught up."""
    master, slave = Side(numbered(300, r007=b"w")), Side(numbered(300))
    slave.each_round = lambda number: slave.rows.update({b"r007": b"w"}) if number == 2 else None
    assert verdict(compared(master, slave)) is TableVerdict.EQUAL


def test_what_keeps_changing_is_not_said_to_differ() -> None:
    """Written to all the time, and never seen equal."""
    master, slave = Side(numbered(30)), Side(numbered(30))
    master.each_round = lambda number: master.rows.update({b"r007": b"%d" % number})
    found = compared(master, slave, 0.3)
    assert (verdict(found), found.changing) == (TableVerdict.UNVERIFIABLE, 1)


def test_a_difference_that_may_be_as_it_should_is_unverifiable() -> None:
    """Other descriptors: equal would prove equality, unequal proves nothing."""
    found = compared(Side(numbered(30, r007=b"w")), Side(numbered(30)))
    assert verdict(found, "KEEP_DELETED_CELLS") is TableVerdict.UNVERIFIABLE
    assert verdict(compared(Side(numbered(30)), Side(numbered(30))), "KEEP_DELETED_CELLS") is TableVerdict.EQUAL


def test_what_was_not_answered_is_never_equal() -> None:
    """Nor what remains of it."""
    slave = Side(numbered(300))
    slave.unanswered = ("s2 does not answer",)
    assert verdict(compared(Side(numbered(300)), slave)) is TableVerdict.UNVERIFIABLE


def test_ranges_that_wait_for_their_turn_are_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that are looked at become equal; those that had to wait still differ."""
    monkeypatch.setattr(compare_module, "MAX_NARROWED", 2)
    other = {f"r{number:03d}": b"w" for number in range(0, 300, 40)}
    master, slave = Side(numbered(300, **other)), Side(numbered(300))

    def catch_up(number: int) -> None:
        if number == 2:
            slave.rows.update({row: master.rows[row] for row in slave.rows if row < b"r200"})

    slave.each_round = catch_up
    found = compared(master, slave)
    assert verdict(found) is TableVerdict.DIFFERS
    assert {pair.interval.start >= b"r190" for pair in found.confirmed} == {True}
    slave.each_round = lambda number: slave.rows.update(master.rows)
    slave.rows = numbered(300)
    assert verdict(compared(master, slave)) is TableVerdict.EQUAL


def test_a_difference_counts_only_after_the_queues_were_drained() -> None:
    """It was stable all the time, as replication stood still; what waited in a queue makes it equal."""
    master, slave = Side(numbered(30, r007=b"w")), Side(numbered(30))
    looks: list[int] = []

    def drained() -> bool:
        looks.append(slave.rounds)
        if len(looks) == 3:
            slave.rows[b"r007"] = b"w"
        return len(looks) >= 3

    assert verdict(compared(master, slave, 5.0, until(drained))) is TableVerdict.EQUAL
    assert len(looks) == 3


def test_a_difference_that_outlasts_the_queues_is_one() -> None:
    """The sums have to be asked again after the queues were seen drained."""
    master, slave = Side(numbered(30, r007=b"w")), Side(numbered(30))
    seen: list[int] = []

    def drained() -> bool:
        seen.append(slave.rounds)
        return True

    found = compared(master, slave, 5.0, until(drained))
    assert (verdict(found), found.unshipped) == (TableVerdict.DIFFERS, False)
    assert seen[0] < slave.rounds


def test_queues_that_are_never_empty_decide_by_what_has_passed() -> None:
    """A steady writer: what was appended a moment ago is on its way, all that is older has been applied."""
    master, slave = Side(numbered(30, r007=b"w")), Side(numbered(30))
    found = compared(master, slave, 5.0, lambda: time.monotonic() - 0.05)
    assert (verdict(found), found.unshipped) == (TableVerdict.DIFFERS, False)
    found = compared(Side(numbered(30, r007=b"w")), Side(numbered(30)), 0.3, lambda: time.monotonic() - 60)
    assert (verdict(found), found.unshipped) == (TableVerdict.UNVERIFIABLE, True)


@pytest.mark.parametrize("tampered", [False, True])
def test_a_table_that_grows_all_the_time_comes_to_an_end(tampered: bool) -> None:
    """Its last range is never small: it is changing; a row that differs elsewhere is found all the same."""
    rows = {b"r%06d" % number: b"v" for number in range(500)}
    master, slave = Side(dict(rows)), Side(dict(rows))
    if tampered:
        slave.rows[b"r000007"] = b"w"

    def grow(number: int, per_round: int = 100) -> None:
        assert number < 60, "it does not end"
        for each in range(per_round * (number - 1), per_round * number):
            if each >= per_round:
                slave.rows[b"s%06d" % (each - per_round)] = b"v"
            master.rows[b"s%06d" % each] = b"v"

    master.each_round = grow
    found = compared(master, slave, 0.05)
    assert verdict(found) is (TableVerdict.DIFFERS if tampered else TableVerdict.UNVERIFIABLE)
    assert found.changing
    assert {pair.interval.holds(b"r000007", b"r000008") for pair in found.confirmed} == ({True} if tampered else set())


def test_queues_that_never_drain_leave_it_open() -> None:
    """With its own reason."""
    found = compared(Side(numbered(30, r007=b"w")), Side(numbered(30)), 0.2, until(lambda: False))
    said, reasons = _verdict(found, Comparable(FAMILIES, (), None))
    assert said is TableVerdict.UNVERIFIABLE
    assert "replication may still have entries to ship" in reasons[0]


def test_a_table_is_equal_at_once_only_whole() -> None:
    """Every range of it answered on both sides, with the same sums; what it is not says nothing of others."""
    parts = {0: TableRange("t", Interval(b"", b"m")), 1: TableRange("t", Interval(b"m", b"")), 2: WHOLE_OF_U}

    def pair(number: int, master: Sums | None, slave: Sums | None) -> _Pair:
        sides = []
        for sums in (master, slave):
            coverage = Coverage(parts[number].interval)
            if sums is not None:
                coverage.add([Bucket(*parts[number].interval, sums)])
            sides.append(coverage)
        return _Pair(parts[number].interval, sides[0], sides[1])

    one, other = Sums(up_to=5, cells_up_to=1, rows=1), Sums(up_to=6, cells_up_to=1, rows=1)
    equal = {0: pair(0, one, one), 1: pair(1, other, other), 2: pair(2, one, one)}
    assert _equal_tables(parts, equal) == {"t": one + other, "u": one}
    for worse in (pair(1, one, other), pair(1, other, None), pair(1, None, None), pair(1, other, other + other)):
        assert _equal_tables(parts, {**equal, 1: worse}) == {"u": one}
