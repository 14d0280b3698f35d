"""The recovery point: which published files are judged, and what is said of the whole and of each table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from status_tool.cli.recovery_point import exit_code_of, lines_of, point_document, tell_point
from status_tool.errors import StatusFileError
from status_tool.gather.snapshot import Snapshot
from status_tool.published.layout import Closing
from status_tool.published.table import refuse_unfit
from status_tool.report.small_pages import point_page
from status_tool.rules.peers import FamilyFilter
from status_tool.runs.check import Check
from status_tool.runs.file_check import check_offline
from status_tool.runs.question import SideFacts
from status_tool.runs.recovery import (
    Judged,
    Judgement,
    _answer,
    _Bench,
    _heard_ms,
    _lows_ms,
    _Search,
    _skew_ms,
    beyond_of,
    refuse_narrower,
    rows_in,
)
from status_tool.runs.slave_side import Scratch
from status_tool.status_file.footer import HEADER_KEY
from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import (
    Beyond,
    Group,
    HBaseOutcome,
    NotReplicated,
    Outcome,
    Overview,
    Problem,
    RecoveryPoint,
    TablePoint,
)
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Evidence, Status, Verdict
from tests.pair import REPOSITORY
from tests.status_files import rewritten, rows_of

C, L, U = Judged.COMPLETE, Judged.LACKING, Judged.UNPROVEN
VERDICTS = {C: Verdict.COMPLETE, L: Verdict.INCOMPLETE, U: Verdict.UNVERIFIABLE}


def closing(number: int) -> Closing:
    """Number 0 is the newest."""
    return Closing("m", f"{number}", (), 10_000 - number, 10_000 - number, 30_000, "hbase")


def header(one: Closing) -> Header:
    return Header("master", "m", created_ms=one.cut_ms, cut_ms=one.cut_ms, barrier_issued_ms=one.barrier_ms)


def group(table: str | None, kind: str = "behind", **where: Any) -> Group:
    return Group(kind, kind, table, 1, Problem(kind, f"{kind} it is", table, **where))


def outcome(verdict: Verdict, *groups: Group) -> Outcome:
    hbase = HBaseOutcome(verdict, Evidence.EXACT, dict.fromkeys(Status, 0))
    return Outcome(hbase, None, (), 1, overview=Overview(groups=groups))


def judgement(
    one: Closing, judged: Judged, *groups: Group, tables: tuple[str, ...] = ("t",), families: str = "f"
) -> Judgement:
    return Judgement(one, header(one), outcome(VERDICTS[judged], *groups), dict.fromkeys(tables, families))


def search(verdicts: list[Judged], lacks_from_ms: int | None = None) -> _Search:
    """Newest first; whatever lacks something says that it was written after a time."""
    lacking = replace(group(None), from_ms=lacks_from_ms)
    looked = _Search(
        [closing(number) for number in range(len(verdicts))],
        lambda one: judgement(one, verdicts[int(one.name)], lacking),
    )
    looked.run()
    return looked


def answered(
    count: int, judge: Callable[[Closing], Judgement], beyond: dict[str, Beyond] | None = None
) -> RecoveryPoint:
    """What is said of so many files."""
    looked = _Search([closing(number) for number in range(count)], judge)
    looked.run()
    looked.run_tables()
    return _answer("s", 1, looked._files, looked, beyond or {}, ())


def found(verdicts: list[Judged]) -> int | None:
    """The file that is the point."""
    point, _ = search(verdicts).point()
    return None if point is None else int(point.closing.name)


@given(st.lists(st.sampled_from([C, L, U]), max_size=60))
def test_a_point_was_always_judged_complete(verdicts: list[Judged]) -> None:
    """Whatever the verdicts do: it is never later than what was proven."""
    number = found(verdicts)
    assert number is None or verdicts[number] is C


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 400), st.none() | st.integers(8_000, 12_000))
def test_lacking_then_unproven_then_complete_is_found_exactly(
    lacking: int, unproven: int, complete: int, lacks_from_ms: int | None
) -> None:
    """As long as nothing else breaks; with few judgements, whatever time a finding names."""
    verdicts = [L] * lacking + [U] * unproven + [C] * complete
    looked = search(verdicts, lacks_from_ms)
    point, _ = looked.point()
    expected = lacking + unproven if complete else None
    assert (None if point is None else int(point.closing.name)) == expected
    assert len(looked.done) <= 4 * len(verdicts).bit_length() + 2


@pytest.mark.parametrize(("earlier", "most"), [(0, 3), (1, 5), (30, 12)])
def test_the_time_of_the_oldest_missing_entry_saves_judgements(earlier: int, most: int) -> None:
    """The newest file, and the two at the boundary; more where the entry before it is older than the file's cut."""
    looked = search([L] * 600 + [C] * 400, closing(600).barrier_ms - earlier)
    assert looked.point()[0] == looked.at(600)
    assert len(looked.done) <= most


@given(st.integers(0, 100), st.integers(1, 100), st.integers(1, 100), st.integers(1, 100))
def test_a_crash_that_was_settled_hides_nothing_newer(lacking: int, newer: int, crash: int, older: int) -> None:
    """Completeness does not imply that earlier files are complete: those between a crash and its settling are not."""
    verdicts = [L] * lacking + [C] * newer + [U] * crash + [C] * older
    assert found(verdicts) == lacking


def test_where_verdicts_change_to_and_fro_the_point_may_be_earlier_than_the_best() -> None:
    """The one complete file lies where the steps pass over it; what is found is proven nevertheless."""
    verdicts = [U, U, U, U, U, C, U, U, U, U, U, U, C, C, C, C, C, C]
    assert found(verdicts) in (5, 12)
    assert found([U] * 4 + [C]) == 4
    assert found([U] * 5) is None


def test_a_table_is_complete_only_if_nothing_is_wrong_with_the_run_as_a_whole() -> None:
    """A server that is named there may have written to any table."""
    one = closing(0)
    alone = judgement(one, L, group("a"), tables=("a", "b"))
    assert (alone.judged_of("a"), alone.judged_of("b")) == (L, C)
    with_server = judgement(one, L, group("a"), group(None, "unverifiable"), tables=("a", "b"))
    assert (with_server.judged_of("a"), with_server.judged_of("b")) == (L, U)
    assert judgement(one, L, group("a"), tables=("a",)).judged_of("b") is U
    assert judgement(one, L, tables=("a",)).judged_of("a") is U
    assert Judgement(one, error="x").judged_of("a") is U


def test_each_table_has_its_own_point() -> None:
    """`a` lacks something from file 5 on, `b` from file 2 on, `c` nothing."""
    since = {"a": 5, "b": 2}

    def judge(one: Closing) -> Judgement:
        number = int(one.name)
        groups = [group(table, region=f"r-{table}", origin="h,1,1") for table, at in since.items() if number < at]
        return judgement(one, L if groups else C, *groups, tables=("a", "b", "c"))

    answer = answered(100, judge, {"a": Beyond(7, 3)})
    assert answer.point_ms == closing(5).cut_ms
    points = {"a": closing(5).cut_ms, "b": closing(2).cut_ms, "c": closing(0).cut_ms}
    assert {name: table.point_ms for name, table in answer.tables.items()} == points
    assert answer.tables["a"].held_back_by == "behind it is (region r-a, written by h,1,1)"
    assert answer.tables["c"].held_back_by is None
    assert answer.tables["a"].beyond == Beyond(7, 3)


def test_a_table_that_was_not_replicated_then_has_no_point() -> None:
    """What it held when the peer was widened may be missing, although all that was in scope then is here."""

    def judge(one: Closing) -> Judgement:
        if int(one.name) < 3:
            return judgement(one, L, group("new"), tables=("new", "t"))
        return judgement(one, C, tables=("t",))

    answer = answered(10, judge)
    assert answer.point_ms == closing(3).cut_ms
    assert (answer.tables["new"].point_ms, answer.tables["t"].point_ms) == (None, closing(0).cut_ms)
    assert "was not replicated when" in str(answer.tables["new"].held_back_by)


def test_a_table_of_which_less_was_replicated_then_has_no_point() -> None:
    """What its other family held when the peer was widened may be missing."""

    def judge(one: Closing) -> Judgement:
        is_wide = int(one.name) < 3
        return judgement(one, L, group("t"), families="fg") if is_wide else judgement(one, C)

    answer = answered(10, judge)
    assert (answer.point_ms, answer.tables["t"].point_ms) == (closing(3).cut_ms, None)
    assert "not all families of the table were replicated when" in str(answer.tables["t"].held_back_by)


def test_files_that_cannot_be_used_hide_no_other() -> None:
    """One that was altered or has not arrived in whole is told; the next one counts."""

    def judge(one: Closing) -> Judgement:
        return Judgement(one, error=f"{one.name} was altered") if one.name == "0" else judgement(one, C)

    answer = answered(2, judge)
    assert (answer.point_ms, answer.notices) == (closing(1).cut_ms, ("0 was altered",))
    assert answer.held_back_by == "0 was altered"


def test_the_age_is_judged_by_the_interval_of_a_file_that_can_be_used() -> None:
    """A publisher of fewer tables may publish more often: by its interval every point would be old."""
    files = [replace(closing(0), interval_ms=1_000), closing(1)]

    def judge(one: Closing) -> Judgement:
        return Judgement(one, error="holds only t") if one.name == "0" else judgement(one, C)

    looked = _Search(files, judge)
    looked.run()
    assert _answer("s", 1, files, looked, {}, ()).interval_ms == 30_000


def test_without_a_point_it_is_told_what_the_newest_file_lacks() -> None:
    """Older ones may be refused by now, as they need what was pruned."""

    def judge(one: Closing) -> Judgement:
        number = int(one.name)
        return Judgement(one, error="too old") if number else judgement(one, L, group("t"), tables=("t",))

    answer = answered(3, judge)
    assert answer.held_back_by is not None
    assert (answer.point_ms, "too old" in answer.held_back_by) == (None, False)


def test_a_newer_file_that_turns_out_to_be_usable_may_lack_a_table() -> None:
    """The search for a table's point is the first to judge it."""

    def judge(one: Closing) -> Judgement:
        number = int(one.name)
        if number < 3:
            return Judgement(one, error=f"{one.name} was altered")
        return judgement(one, C if number > 7 else L, group("u"), tables=("u",) if number == 3 else ("t", "u"))

    looked = _Search([closing(number) for number in range(16)], judge)
    looked.run()
    assert 3 not in looked.done
    looked.run_tables()
    assert 3 in looked.done
    answer = _answer("s", 1, looked._files, looked, {}, ())
    assert (answer.point_ms, set(answer.tables)) == (closing(8).cut_ms, {"u"})


@pytest.mark.parametrize(
    ("held", "asked", "refused"),
    [
        ({}, Scope(), False),
        ({}, Scope(tables=frozenset({"t"})), False),
        ({"tables": ("t",)}, Scope(), True),
        ({"namespaces": ("n",)}, Scope(), True),
        ({"tables": ("t",)}, Scope(tables=frozenset({"t"})), False),
        ({"tables": ("t",)}, Scope(tables=frozenset({"t", "u"})), True),
        ({"namespaces": ("n",)}, Scope(tables=frozenset({"n:t"})), False),
        ({"namespaces": ("n",)}, Scope(namespaces=frozenset({"n", "o"})), True),
    ],
)
def test_a_file_of_some_tables_is_no_point_of_all(held: dict[str, Any], asked: Scope, refused: bool) -> None:
    """`publish --table t` says nothing of what else the master has acknowledged."""
    with pytest.raises(StatusFileError, match="holds only") if refused else nullcontext():
        refuse_narrower(replace(header(closing(0)), **held), asked)


def _batch(*rows: dict[str, Any]) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pylist(list(rows), schema=STATUS_SCHEMA)]


def test_what_lies_beyond_is_counted_by_heads_and_segments() -> None:
    """A head that the segments reach lacks nothing; else the lesser of sequence ids and entries; the newest of both."""
    stream = {"kind": "stream", "table": "t", "origin": 1, "via": 2}
    heads = _batch(
        {**stream, "region": "a", "seq": 100, "entries": 90, "write_ms": 5_000},
        {**stream, "region": "b", "seq": 60, "entries": 7, "write_ms": 6_000},
        {**stream, "region": "c", "seq": 50, "entries": 50, "write_ms": 4_000},
        {**stream, "region": "d", "seq": 50, "entries": 50, "write_ms": 9_000, "family": "local"},
    )
    segment = {"kind": "segment", "table": "t", "origin": 1, "via": 2}
    segments = _batch(
        {**segment, "region": "a", "prev": 0, "seq": 95, "write_ms": 4_900},
        {**segment, "region": "c", "prev": 0, "seq": 70, "write_ms": 7_000},
    )
    families = FamilyFilter({"t": frozenset({"local"})}, is_exclusive=True)
    assert beyond_of(rows_in(heads), rows_in(segments), families, "") == {"t": Beyond(7_000, 5 + 7)}


def test_entries_within_a_hole_are_missing_as_well() -> None:
    """Later ones have arrived, and are many; in a table that lacks nothing the hole was accepted."""
    stream = {"table": "t", "origin": 1, "via": 2, "region": "a"}
    heads = _batch({"kind": "stream", **stream, "seq": 100, "entries": 90, "write_ms": 5_000})
    segments = _batch(
        {"kind": "segment", **stream, "prev": 0, "seq": 20, "write_ms": 1_000},
        {"kind": "segment", **stream, "prev": 60, "seq": 98, "write_ms": 4_900},
        {"kind": "segment", **stream, "prev": 90, "seq": 110, "write_ms": 5_500},
    )
    for lacking, missing in ((("t",), 40), ((), 0)):
        found = beyond_of(rows_in(heads), rows_in(segments), FamilyFilter(), "", lacking)
        assert found == {"t": Beyond(5_500, missing)}


def test_clocks_differ_at_most_by_what_the_token_shows() -> None:
    """A server read the token between its issue and the end: a clock that shows less, or more, is off by that."""
    facts = SideFacts(
        replace(header(closing(0)), barrier_issued_ms=1_000, created_ms=3_000),
        tuple(
            {"kind": "server", "live": live, "echoed": echoed, "read_ms": read_ms, "final_ms": final_ms}
            for live, echoed, read_ms, final_ms in (
                (True, True, 1_200, None),
                (True, True, 900, None),
                (False, True, 90_000, 91_000),
                (False, False, 70, None),
                (True, True, None, None),
            )
        ),
    )
    assert _skew_ms(facts) == 2_100
    assert _skew_ms(replace(facts, rows=())) is None


def test_a_server_that_echoed_and_crashed_bounds_the_point() -> None:
    """Its echo settles it, and what it acknowledged later, on a clock that is behind, may be nowhere."""
    rows = tuple(
        {"kind": "server", "live": live, "echoed": True, "read_ms": read_ms, "final_ms": final_ms}
        for live, read_ms, final_ms in ((True, 1_200, None), (False, 700, None), (False, 500, 600))
    )
    assert sorted(_heard_ms(SideFacts(header(closing(0)), rows))) == [700, 1_200]


@pytest.mark.parametrize(("heard_ms", "point_ms"), [(None, 10_000), (10_300, 10_000), (6_400, 6_400)])
def test_a_publishers_clock_that_is_ahead_makes_no_point_later(heard_ms: int | None, point_ms: int) -> None:
    """Its servers vouch for what they acknowledged before they read the barrier."""
    found = answered(2, lambda one: replace(judgement(one, C), heard_ms=heard_ms))
    assert (found.point_ms, found.tables["t"].point_ms) == (point_ms, point_ms)


_SET_BACK_TO_4 = ((5_000, 6_000), (6_500, 4_000))
"""Before the older file alone, and once more after it: a row has the earliest time that was ever shown again."""


@pytest.mark.parametrize(
    ("name", "detail", "point_ms"),
    [
        *(("old,1,3000", {}, 6_000), ("old,1,3000", {"clock_low_ms": 4_000, "clock_back_ms": 5_000}, 6_000)),
        *(("old,1,3000", {"clock_low_ms": 5_500}, 5_500), ("new,1,6001", {}, 6_000), ("new,1,5400", {}, 5_400)),
        ("new,1,5400", {"clock_low_ms": 5_300}, 5_300),
        *(("old,1,3000", {"clock_low_ms": 4_000, "clock_back_ms": back_ms}, at) for back_ms, at in _SET_BACK_TO_4),
    ],
)
def test_times_that_clocks_show_again_are_proven_once(name: str, detail: dict[str, int], point_ms: int) -> None:
    """The newest file by number lacks something, and was written after all clocks of the master had been set back."""
    files = [replace(closing(0), barrier_ms=6_000, cut_ms=6_000, number=2), replace(closing(1), number=1)]

    def judge(one: Closing) -> Judgement:
        is_newest = one.number == 2
        known = [{"kind": "server", "server": "old,1,3000", "detail": '{"clock_back_ms": 5000, "clock_low_ms": 4000}'}]
        newest = [{"kind": "server", "server": name, "detail": json.dumps(detail)}]
        facts = SideFacts(header(one), cast(tuple[Row, ...], (*known, *newest) if is_newest else tuple(known)))
        return replace(judgement(one, L if is_newest else C), lows_ms=frozenset(_lows_ms(facts)))

    looked = _Search(files, judge)
    looked.run()
    looked.run_tables()
    answer = _answer("s", 1, files, looked, {}, ())
    assert (answer.point_ms, answer.tables["t"].point_ms) == (point_ms, point_ms)


@pytest.mark.parametrize(("back_ms", "point_ms"), [(9_998, 9_999), (9_999, 4_000)])
def test_a_clock_that_is_below_what_it_had_shown_may_be_set_back_again(back_ms: int, point_ms: int) -> None:
    """The older file is complete, of 9,999; both have the same of it, as the earliest and the latest stay."""
    known = frozenset({("s", back_ms, 4_000)})

    def judge(one: Closing) -> Judgement:
        return replace(judgement(one, L if one.name == "0" else C), lows_ms=known)

    assert answered(2, judge).point_ms == point_ms


TABLES = {"t": TablePoint(70_000, "behind: x", Beyond(90_000, 12))}
ANSWER = RecoveryPoint("s", "m", 100_000, 70_000, 300, "behind: x", "exact", TABLES, 95_000, 10_000, 5, 3)


@pytest.mark.parametrize(("limit_s", "code", "word"), [(30.0, 0, "fresh"), (29.9, 1, "old")])
def test_the_exit_code_is_about_the_age(limit_s: float, code: int, word: str) -> None:
    assert exit_code_of(ANSWER, limit_s) == code
    document = point_document(ANSWER, limit_s)
    assert (document["verdict"], document["exit_code"], document["age_ms"]) == (word, code, 30_000)
    assert document["recovery_point_ms"] == 70_000
    assert document["tables"]["t"] == {
        **{"recovery_point_ms": 70_000, "held_back_by": "behind: x", "newest_entry_ms": 90_000},
        **{"missing_entries": 12, "by_word": False},
    }


def test_without_a_point_nothing_is_called_proven() -> None:
    """Exit code 3, and why."""
    none = replace(ANSWER, point_ms=None, tables={"t": TablePoint(None, "behind: x")})
    assert exit_code_of(none, 1e9) == 3
    lines = list(lines_of(none, 1e9))
    assert lines[0] == "There is NO recovery point: behind: x"
    assert "nothing is proven" in lines[1]


def test_the_text_says_up_to_when_and_what_is_beyond() -> None:
    lines = list(lines_of(ANSWER, 10.0))
    assert "acknowledged before 1970-01-01T00:01:10" in lines[0]
    assert "differ by at most 0.3 s" in lines[0]
    assert "older than the 10 s that are allowed" in lines[1]
    assert "about 12 WAL entries are known to be missing" in lines[3]
    assert "evidence" not in "".join(lines)
    accepted = list(lines_of(replace(ANSWER, evidence="accepted"), 10.0))
    assert "the evidence is accepted" in accepted[2]


def test_what_the_point_does_not_cover_is_told() -> None:
    """Tables that were not chosen, and those that are not replicated: the slave need not have them."""

    def judge(one: Closing) -> Judgement:
        done = judgement(one, C)
        told = cast(Outcome, done.outcome)
        hbase = replace(cast(HBaseOutcome, told.hbase), not_replicated=NotReplicated(("audit",)))
        return replace(done, outcome=replace(told, hbase=hbase, limits=("only table t (chosen)", "HDFS not checked")))

    answer = answered(1, judge)
    limits = ["only table t (chosen)", "HDFS not checked"]
    limits += ["not replicated to this slave, and so not in scope: 1 table (audit)"]
    assert f"Limits of this answer: {'; '.join(limits)}." in list(lines_of(answer, 1e9))
    assert point_document(answer, 1e9)["limits"] == limits


def test_a_table_that_rests_on_a_word_is_not_called_proven_without_saying_so() -> None:
    """Where another table holds back the whole, no evidence is told beside."""

    def judge(one: Closing) -> Judgement:
        done = judgement(one, L, group("new"), tables=("new", "t", "u"))
        told = cast(Outcome, done.outcome)
        hbase = replace(cast(HBaseOutcome, told.hbase), evidence=Evidence.ACCEPTED, accepted_tables=("t",))
        return replace(done, outcome=replace(told, hbase=hbase))

    answer = answered(1, judge)
    assert (answer.point_ms, answer.evidence) == (None, None)
    lines = [line for line in lines_of(answer, 1e9) if "proven to" in line]
    assert ["in part by your word (--since)" in line for line in lines] == [True, False]
    tables = point_document(answer, 1e9)["tables"]
    assert [tables[name]["by_word"] for name in ("new", "t", "u")] == [False, True, False]
    page = "".join(point_page(answer, ["headline"], "unverifiable"))
    assert page.count("in part by your word (--since)") == 1


def test_a_point_ahead_of_this_clock_is_not_fresh() -> None:
    """The publisher's clock is wrong, or this one. Clocks may differ by half a minute."""
    point_ms = cast(int, ANSWER.point_ms)
    ahead = replace(ANSWER, read_ms=point_ms - 30_001)
    document = point_document(ahead, 1e9)
    assert (exit_code_of(ahead, 1e9), document["verdict"], document["age_ms"]) == (3, "ahead", None)
    assert document["recovery_point_ms"] == point_ms
    lines = list(lines_of(ahead, 1e9))
    assert "AHEAD of this host's clock" in lines[1]
    assert "runs `publish`" in lines[1]
    near = replace(ANSWER, read_ms=point_ms - 30_000)
    assert (exit_code_of(near, 0.0), near.age_ms) == (0, 0)


def test_the_page_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a picture where there is a time to draw; without a point it is no verdict of completeness."""
    none = replace(ANSWER, point_ms=None, newest_ms=None, tables={})
    for answer, style, words, pictures in (
        (ANSWER, "incomplete", "older than the 1 s", 1),
        (none, "unverifiable", "There is NO recovery point: behind: x", 0),
    ):
        monkeypatch.setattr("status_tool.runs.recovery.find_point", lambda *_, answer=answer: answer)
        file = tmp_path / "point.html"
        tell_point(cast(Any, None), cast(Any, None), 1.0, metrics=None, report=file, as_json=False)
        page = file.read_text()
        assert f'<p class="verdict {style}">' in page
        assert page.count("<svg") == pictures
        assert words in page
        assert ("<td>12</td>" in page) == bool(pictures)


def test_nothing_published() -> None:
    """No file, no Spark."""
    looked = search([])
    assert (looked.point(), looked.tables()) == ((None, None), {})


@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize("sample", ["complete", "behind", "gap"])
def test_a_table_that_is_called_complete_is_so_by_a_check_of_it_alone(sample: str) -> None:
    """What the whole run's groups say of a table is what `--table` alone proves of it."""
    files = [REPOSITORY / "sample_status" / sample / f"{side}.status" for side in ("master", "slave")]

    def verdict(*tables: str) -> tuple[Outcome, Header]:
        check = Check(files[0], Scope(tables=frozenset(tables), check_hdfs=False), slave_status=files[1])
        with open_status(files[0]) as file:
            return check_offline(check, lambda _: None), file.header

    whole, of = verdict()
    tables = {row["table"] for row in rows_of(files[0]) if row["kind"] == "stream"}
    one = Judgement(closing(0), of, whole, dict.fromkeys(tables, "f"))
    assert len(tables) > 1
    for table in sorted(tables):
        assert (one.judged_of(table) is C) == (verdict(table)[0].verdict is Verdict.COMPLETE), table
    assert {one.judged_of(table) for table in tables} == ({C} if sample == "complete" else {C, L})


@dataclass
class Stored:
    """Published files as a table would hold them."""

    files: dict[str, Path]

    def fetch(self, closing: Closing, path: Path, key: SignKey | None = None) -> None:
        """As the table does, once it has put the parts together."""
        path.write_bytes(self.files[closing.name].read_bytes())
        refuse_unfit(closing, path, key)


@pytest.fixture
def bench(shared_spark: SparkSession, tmp_path: Path) -> Iterator[tuple[Callable[..., _Bench], Path, Header]]:
    """Judges published files against the sample's slave, which is complete by the sample's master."""
    sample = REPOSITORY / "sample_status" / "complete"
    with open_status(sample / "slave.status") as slave, open_status(sample / "master.status") as master:
        near = tmp_path / "near.parquet"
        pq.write_table(pa.Table.from_batches(slave.rows(), schema=STATUS_SCHEMA), near, store_schema=False)
        small = tuple(row for row in rows_of(slave.path) if row["kind"] in ("peer", "table", "server"))
        scratch = Scratch(tmp_path, near)

        def made(key: SignKey | None = None, files: Any = None, **header: Any) -> _Bench:
            side = Snapshot(replace(slave.header, **header), small, ())
            check = Check(Path(), Scope(check_hdfs=False), key=key)
            return _Bench(files, lambda: shared_spark, side, check, scratch, lambda _: None)

        yield made, sample / "master.status", master.header


@pytest.mark.spark
def test_a_wrong_published_file_is_told_never_complete(
    bench: tuple[Callable[..., _Bench], Path, Header], tmp_path: Path
) -> None:
    """Cut short, of another cluster or side, of a newer version, not signed, or older than what the slave lost."""
    made, good, of = bench
    barrier_ms = of.barrier_issued_ms or 0
    short, newer = tmp_path / "short", tmp_path / "newer"
    short.write_bytes(good.read_bytes()[:-1000])
    pq.write_table(pa.table({"other": [1]}).replace_schema_metadata({HEADER_KEY: b'{"format_version": 3}'}), newer)
    files = {
        "good": good,
        "short": short,
        "newer": newer,
        "other cluster": rewritten(good, to=tmp_path / "other", cluster_id="another"),
        "older barrier": rewritten(good, to=tmp_path / "older", barrier_issued_ms=barrier_ms - 1),
        "slave": good.with_name("slave.status"),
        "narrow": rewritten(good, to=tmp_path / "narrow", tables=("t",)),
    }
    table = Stored(files)

    def judged(name: str, one: _Bench) -> Judgement:
        return one.judge(Closing(of.cluster_id, name, (), barrier_ms, of.cut_ms, 1, "hbase"))

    usual = made(files=table)
    assert judged("good", usual).judged is C
    for name, words in (
        ("short", "is truncated"),
        ("newer", "format version 3"),
        ("other cluster", "is another one than its closing row says"),
        ("older barrier", "is another one than its closing row says"),
        ("slave", "is a slave's status"),
        ("narrow", "holds only t "),
    ):
        one = judged(name, usual)
        assert (one.judged, one.judged_of("t")) == (U, U), name
        assert words in one.error, one.error
        assert one.error.startswith("the status file published at ")
        assert str(tmp_path) not in one.error
    unsigned = judged("good", made(SignKey(b"k" * 32), table))
    assert (unsigned.judged, "is not signed" in unsigned.error) == (U, True), unsigned.error
    pruned = judged("good", made(files=table, pruned={of.cluster_id: barrier_ms + 1}))
    assert (pruned.judged, "segments that are pruned" in pruned.error) == (U, True), pruned.error
    back = judged("good", made(files=table, state_back_ms=of.created_ms))
    assert (back.judged, "slave state lost" in (back.holding() or "")) == (U, True), back.holding()


def test_the_point_is_the_cut_of_the_file_and_not_of_its_closing_row() -> None:
    """No signature covers the latter."""

    def judge(one: Closing) -> Judgement:
        return replace(judgement(one, C), header=replace(header(one), cut_ms=one.cut_ms - 500))

    answer = answered(1, judge)
    assert answer.point_ms == closing(0).cut_ms - 500 == answer.tables["t"].point_ms
