"""The rounds of a live check: when they end, and what is read in which order."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from status_tool.digests.keys import Interval, TableRange
from status_tool.errors import ConnectionFailed, UsageError
from status_tool.gather.snapshot import Request, Snapshot
from status_tool.runs import live_rounds, slave_side
from status_tool.runs.answer import Last
from status_tool.runs.check import Check, GivenOption
from status_tool.runs.compare_rows import RowsAsked
from status_tool.runs.file_check import FixedMaster
from status_tool.runs.live_rounds import Look, Master
from status_tool.runs.master_side import MasterSide
from status_tool.runs.sampling import Repeated
from status_tool.runs.slave_side import Scratch
from status_tool.sources.codec import batches
from status_tool.sources.interface import Source
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.findings import NO_PROOFS, Finding, RowProofs
from status_tool.vocabulary.header import SLAVE, Header
from status_tool.vocabulary.outcome import HBaseOutcome, Outcome
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Evidence, Verdict

HEADER = Header("master", "m", 2, 1)
NO_SETTINGS: Any = None
"""What would read a cluster is replaced."""
COMPLETE, INCOMPLETE, UNVERIFIABLE = (
    Outcome(HBaseOutcome(verdict, Evidence.EXACT, {}), None, (), 0)
    for verdict in (Verdict.COMPLETE, Verdict.INCOMPLETE, Verdict.UNVERIFIABLE)
)


class Rounds:
    """Answers of the two sides, one a round; what happens is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: Outcome, unsettled: tuple[str, ...] = ()) -> None:
        self.outcomes, self.done, self.unsettled = iter(outcomes), list[str](), unsettled
        self.lost: list[ConnectionFailed] = []
        self.in_transition = frozenset[str]()
        monkeypatch.setattr(live_rounds, "snapshot", self.snapshot)
        monkeypatch.setattr(live_rounds, "read_here", self.read_here)
        monkeypatch.setattr(live_rounds, "question_in", self.question)
        monkeypatch.setattr(live_rounds, "spark_of", self.spark)
        monkeypatch.setattr(live_rounds, "slave_request", lambda *_: None)
        monkeypatch.setattr(live_rounds.LiveRounds, "_answer", lambda _, *arguments: self.answer(arguments[3]))
        monkeypatch.setattr(time, "sleep", lambda _: None)

    def read_here(self, *_: Any, reads_again: bool) -> None:
        self.done.append("files, kept" if reads_again else "files")

    @contextmanager
    def spark(self, *_: Any, **__: Any) -> Iterator[None]:
        yield None

    def snapshot(self, *_: Any) -> Snapshot:
        if self.lost:
            raise self.lost.pop()
        self.done.append("slave")
        return Snapshot(HEADER, (), (), self.unsettled, in_transition=self.in_transition)

    def question(self, *_: Any) -> Any:
        self.done.append("question")
        return SimpleNamespace(shipped={"t": ("f",)})

    def answer(self, last: Last) -> Outcome:
        outcome = next(self.outcomes)
        return replace(outcome, is_last=last(outcome))

    def run(
        self, master: Master, left_s: float, rows: RowsAsked | None = None, near: Path = Path("/nowhere")
    ) -> Outcome:
        check, scratch = Check(Path("f"), Scope(), rows=rows), Scratch(Path("/nowhere"), near)
        deadline = time.monotonic() + left_s
        return live_rounds.LiveRounds(NO_SETTINGS, check, master, deadline, lambda _: None, scratch).run()


class Watched(Master):
    """A master that is read anew."""

    def __init__(self, rounds: Rounds, left_open: bool = False) -> None:
        super().__init__(FILE)
        self.rounds, self.left_open = rounds, left_open

    def look(self) -> Look:
        self.rounds.done.append("master")
        return Look(self.file, left_open=self.left_open)

    def is_decided(self, outcome: Outcome) -> bool:
        return False

    def round_done(self, outcome: Outcome, look: Look, left_s: float) -> None:
        self.rounds.done.append(f"reported {outcome.verdict}")

    def lost(self, error: ConnectionFailed) -> None:
        self.rounds.done.append("lost")


FILE = MasterSide(cast(StatusFile, SimpleNamespace(rows_of=lambda *_: ())), HEADER)


def test_the_slave_is_read_after_the_master_in_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise what the master wrote in between would look missing, or what arrived would not be in scope.

    Files come last: what cannot be compared is refused before they are read, which may take hours.
    """
    seen = Rounds(monkeypatch, INCOMPLETE, COMPLETE)
    assert seen.run(Watched(seen), math.inf).verdict is Verdict.COMPLETE
    each = ["master", "slave", "question", "files"]
    assert seen.done == [*each, "reported incomplete", *each, "reported complete"]


def test_a_fixed_master_is_told_to_wait_for_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    seen = Rounds(monkeypatch, INCOMPLETE, INCOMPLETE, COMPLETE)
    assert seen.run(FixedMaster(FILE, lines.append), 60.0).verdict is Verdict.COMPLETE
    assert len(lines) == 2
    assert all("checking again" in line for line in lines)
    seen = Rounds(monkeypatch, INCOMPLETE, COMPLETE)
    assert seen.run(FixedMaster(FILE, lines.append), 0.0).verdict is Verdict.INCOMPLETE
    assert len(lines) == 2


def test_what_only_a_new_file_can_mend_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the master is read anew in each round."""
    stuck = replace(INCOMPLETE, needs_new_file=True)
    seen = Rounds(monkeypatch, stuck, COMPLETE)
    assert seen.run(FixedMaster(FILE, lambda _: None), math.inf).needs_new_file
    seen = Rounds(monkeypatch, stuck, COMPLETE)
    assert seen.run(Watched(seen), math.inf).verdict is Verdict.COMPLETE


@pytest.mark.parametrize(("unsettled", "left_open"), [((), False), (("h: silent",), False), ((), True)])
def test_a_doubt_ends_it_where_nobody_can_settle_it(
    unsettled: tuple[str, ...], left_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that has not flushed yet may, and the next look at the master may know more."""
    seen = Rounds(monkeypatch, UNVERIFIABLE, COMPLETE, unsettled=unsettled)
    ends = not (unsettled or left_open)
    expected = Verdict.UNVERIFIABLE if ends else Verdict.COMPLETE
    assert seen.run(Watched(seen, left_open), math.inf).verdict is expected


@pytest.mark.parametrize(("table", "ends"), [("t", False), ("of the slave's own", True)])
def test_a_region_of_a_table_that_is_shipped_is_waited_for(
    table: str, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No server has it yet: then nobody vouches for its rows."""
    seen = Rounds(monkeypatch, UNVERIFIABLE, COMPLETE)
    seen.in_transition = frozenset({table})
    expected = Verdict.UNVERIFIABLE if ends else Verdict.COMPLETE
    assert seen.run(Watched(seen), math.inf).verdict is expected


@pytest.mark.parametrize(("left_s", "expected"), [(60.0, Verdict.COMPLETE), (0.0, Verdict.UNVERIFIABLE)])
def test_openings_that_are_still_to_be_recorded_are_waited_for(
    left_s: float, expected: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trackers do so by themselves, but never beyond the time that is given."""
    seen = Rounds(monkeypatch, replace(UNVERIFIABLE, is_settling=True), COMPLETE)
    assert seen.run(FixedMaster(FILE, lambda _: None), left_s).verdict is expected


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_slave_keeps_the_word_of_a_check_that_is_to_last(is_kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lost` only asks."""
    seen = Rounds(monkeypatch, COMPLETE)
    monkeypatch.setattr(live_rounds, "record_words", lambda *_: ["recorded"])
    master, scratch = Watched(seen), Scratch(Path("/nowhere"), Path("/nowhere"))
    check = Check(Path("f"), Scope(), records_words=is_kept)
    outcome = live_rounds.LiveRounds(NO_SETTINGS, check, master, math.inf, lambda _: None, scratch).run()
    assert outcome.notices == ("recorded",) * is_kept


@pytest.mark.parametrize("fits", [True, False])
def test_nothing_is_forgotten_before_the_sides_are_known_to_fit(fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another slave's --conf-dir, that one lost its proofs. Then it is read anew: they must not vouch."""
    seen = Rounds(monkeypatch, COMPLETE)

    def forgotten(_: Any, tables: frozenset[str], master_id: str, __: Any) -> list[str]:
        seen.done.append(f"forget {', '.join(tables)} of {master_id}")
        return ["forgotten"]

    def refused(*_: Any) -> None:
        raise UsageError("no peer leads there")

    monkeypatch.setattr(live_rounds, "forget_tables", forgotten)
    if not fits:
        monkeypatch.setattr(live_rounds, "question_in", refused)
    check, scratch = Check(Path("f"), Scope(forgotten=frozenset({"t"}))), Scratch(Path("/nowhere"), None)
    rounds = live_rounds.LiveRounds(NO_SETTINGS, check, Watched(seen), math.inf, lambda _: None, scratch)
    with nullcontext() if fits else pytest.raises(UsageError):
        assert rounds.run().notices == ("forgotten",)
    asked = ["master", "slave", "question"]
    once = [*asked, "forget t of m", *asked, "files", "reported complete"]
    assert seen.done == (once if fits else ["master", "slave"])


@pytest.mark.parametrize(
    ("flag", "sample_s", "is_told"), [("--sample", 5.0, True), ("--wait", 5.0, False), ("--sample", 0.0, False)]
)
def test_whoever_asked_for_samples_is_told_that_none_were_compared(
    flag: str, sample_s: float, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--sample off` asks for none."""
    seen = Rounds(monkeypatch, COMPLETE)
    check = Check(Path("f"), Scope(), sample_s=sample_s, given=(GivenOption(flag, None, False),))
    one = live_rounds.LiveRounds(
        NO_SETTINGS, check, Watched(seen), 0.0, lambda _: None, Scratch(Path("/nowhere"), None)
    )
    monkeypatch.setattr(one, "_samples", lambda: nullcontext(lambda: Repeated(problem="no answer")))
    told = [notice for notice in one.run().notices if "--sample" in notice]
    assert told == ["--sample: none of FILE's random ranges was compared: no answer"] * is_told


def test_samples_that_differ_are_held_against_segments_that_are_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files may take hours to be read again, and the last answer is by what the last round left for Spark."""
    seen, asked = Rounds(monkeypatch, COMPLETE, COMPLETE), list[Request]()

    def snapshot(_: Any, request: Request, __: Any) -> Snapshot:
        asked.append(request)
        return Snapshot(HEADER, ({"kind": "segment", "seq": 7}, {"kind": "table"}), ())

    def disprove(*arguments: Any) -> RowProofs:
        assert [row["seq"] for row in arguments[-1]()[1]] == [7]
        return NO_PROOFS

    differs = Repeated(unequal=(TableRange("t", Interval(b"", b"")),))
    monkeypatch.setattr(live_rounds.LiveRounds, "_samples", lambda _: nullcontext(lambda: differs))
    monkeypatch.setattr(live_rounds, "slave_request", lambda *_: Request(SLAVE, 0))
    monkeypatch.setattr(live_rounds, "disprove", disprove)
    monkeypatch.setattr(slave_side, "snapshot", snapshot)
    assert seen.run(Watched(seen), 0.0).verdict is Verdict.COMPLETE
    assert asked == [Request(SLAVE, 0, hdfs=False)]
    assert [seen.done.count(side) for side in ("master", "slave")] == [1, 1]


@pytest.mark.parametrize(("compared", "disproved"), [(["doubtful"], ["proven"]), (["doubtful", "proven"], [])])
def test_samples_of_tables_that_rows_does_not_compare_count(
    compared: list[str], disproved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with --rows called a table complete that differed without: it compares what streams leave in doubt."""
    seen, given = Rounds(monkeypatch, COMPLETE, COMPLETE), list[RowProofs]()
    found = Finding("differs", table="proven")

    def disprove(*arguments: Any) -> RowProofs:
        assert [part.table for part in arguments[3].unequal] == disproved
        return RowProofs(findings=(found,))

    def answer(*arguments: Any) -> Outcome:
        given.extend(arguments[5:])
        return seen.answer(arguments[4])

    differs = Repeated(unequal=tuple(TableRange(table, Interval(b"", b"")) for table in ("doubtful", "proven")))
    proofs = SimpleNamespace(tables=compared, proofs=lambda *_: RowProofs(frozenset({"doubtful"})))
    monkeypatch.setattr(live_rounds.LiveRounds, "_samples", lambda _: nullcontext(lambda: differs))
    monkeypatch.setattr(live_rounds.LiveRounds, "_comparison", lambda *_: proofs)
    monkeypatch.setattr(live_rounds, "disprove", disprove)
    monkeypatch.setattr(live_rounds.LiveRounds, "_answer", answer)
    seen.run(FixedMaster(FILE, lambda _: None), 0.0, RowsAsked(None))
    assert given == [RowProofs(frozenset({"doubtful"}), findings=(found,) * len(disproved))]


def test_a_side_that_is_away_is_asked_again_by_followers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first round; then the deadline ends it with the error."""

    class Loses(Rounds):
        def answer(self, last: Last) -> Outcome:
            self.lost.append(ConnectionFailed("away"))
            return super().answer(last)

    seen = Loses(monkeypatch, INCOMPLETE, COMPLETE)
    assert seen.run(Watched(seen), math.inf).verdict is Verdict.COMPLETE
    assert seen.done.count("lost") == 1
    seen = Loses(monkeypatch, INCOMPLETE, COMPLETE)
    with pytest.raises(ConnectionFailed, match="away"):
        seen.run(FixedMaster(FILE, lambda _: None), 1000.0)


@pytest.mark.parametrize(
    ("left_s", "is_near", "every", "begins"),
    [(0.0, True, True, True), (0.0, True, False, False), (0.0, False, True, False), (1000.0, True, True, False)],
)
def test_rows_are_compared_beside_spark_only_once_the_slave_is_read_for_good(
    left_s: float, is_near: bool, every: bool, begins: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A proof that is kept ends by what the slave saw after it was read: nothing may be read of it after its rows."""
    seen = Rounds(monkeypatch, INCOMPLETE, *([] if left_s == 0 else [COMPLETE]), COMPLETE)

    class Compared:
        def __init__(self, *_: Any) -> None:
            pass

        def begin(self, _: Any) -> None:
            seen.done.append("rows")

        def proofs(self, *_: Any) -> RowProofs:
            seen.done.append("proofs")
            return NO_PROOFS

        tables = frozenset[str]()

    monkeypatch.setattr(live_rounds, "RowComparison", Compared)
    near = tmp_path / "near"
    if is_near:
        near.touch()
    seen.run(FixedMaster(FILE, lambda _: None), left_s, RowsAsked(None, every), near)
    each = ["slave", "question", "files, kept"]
    assert seen.done == [*each, *(["rows"] * begins), *(each if left_s else []), "proofs"]


class Many(Source):
    """More rows than this process reads alone, a batch for each; the table is read anew each time."""

    def __init__(self, rows: int) -> None:
        self.rows, self.reads = rows, 0

    def partitions(self) -> list[int]:
        """Return one part."""
        return [0]

    def read(self, _: int) -> Iterator[pa.RecordBatch]:
        """Yield a segment a batch."""
        self.reads += 1
        for seq in range(self.rows):
            yield next(iter(batches([{"kind": "segment", "table": "t", "region": "r", "prev": seq, "seq": seq + 1}])))


@pytest.mark.parametrize(
    ("rows", "reads_again", "by"),
    [
        (3, False, "this process"),
        (4, False, "Spark, from the table"),
        (4, True, "this process"),
        (6, True, "this process"),
        (7, True, "Spark, from a file"),
    ],
)
def test_a_large_slave_whose_rows_are_compared_is_read_once(
    rows: int, reads_again: bool, by: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With --rows it is judged twice, of one moment: Spark finds it in a file, however many rows it has.

    Without, Spark's workers read what is more than a few in parallel.
    """
    given = list[Any]()

    def told(name: str, place: int) -> Any:
        def noted(*arguments: Any) -> Any:
            given.append(arguments[place])
            return name

        return noted

    source, scratch = Many(rows), Scratch(tmp_path, tmp_path / "slave.parquet")
    monkeypatch.setattr(slave_side, "NEAR_ROWS", 3)
    monkeypatch.setattr(slave_side, "MOST_ROWS", 6)
    monkeypatch.setattr(slave_side, "read_parquet", told("Spark, from a file", 1))
    monkeypatch.setattr(slave_side, "spark_source", SimpleNamespace(load=told("Spark, from the table", 1)))
    monkeypatch.setattr(slave_side, "_shared_out", lambda gathered, _: gathered)
    for _ in range(2):
        slave = Snapshot(HEADER, (), (source,))
        slave_side.read_here(slave, lambda _: None, scratch, reads_again=reads_again)
    before = source.reads
    for _ in range(2):
        found = slave_side.slave_rows(lambda: NO_SETTINGS, slave, scratch)
        if by != "this process":
            assert found == by
            continue
        assert isinstance(found, pa.Table)
        assert sorted(found["seq"].to_pylist()) == [*range(1, rows + 1)]
    assert source.reads == before, "once it was read here, nobody asks the table again"
    files = [pq.read_metadata(path).num_rows for path in given if isinstance(path, Path)]
    assert files == ([rows, rows] if by == "Spark, from a file" else [])
    assert scratch.is_near == (by != "Spark, from the table")
