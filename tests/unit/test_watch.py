"""`watch`: rounds, their history and pages without clusters; then the command on real Spark, from files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from status_tool.atomic import file_mode
from status_tool.cli import watching
from status_tool.cli.main import main
from status_tool.cli.repeated import RoundParameters
from status_tool.cli.watch import REFUSED
from status_tool.cli.watching import _Session, _Watcher, newest_file
from status_tool.clients.config import Settings
from status_tool.errors import EXIT_ERROR, ConfigurationError, ConnectionFailed, UsageError
from status_tool.gather.snapshot import Request
from status_tool.printable import iso
from status_tool.report.page import html_report
from status_tool.report.timeline import timeline
from status_tool.runs.check import Check
from status_tool.spark.settings import SHORT_RUN_BYTES
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.names import journal_path
from status_tool.vocabulary.outcome import Moment, Outcome, Overview, TableLine
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Status, Verdict
from status_tool.watch.history import KEPT_MS, CheckRound, History
from status_tool.watch.http_pages import HttpPages, Pages
from status_tool.watch.rounds import JITTER, Rhythm, document_of, line_of, rounds
from tests.lab.waiting import wait_until
from tests.pair import REPOSITORY, tool_here
from tests.unit.test_report import HBASE, OUTCOME, printed
from tests.unit.test_webhook import Receiver

SAMPLES = REPOSITORY / "sample_status"
BAD = {"one": Status.GAP, "two": Status.BEHIND}
COMPLETE = replace(OUTCOME, hbase=replace(HBASE, verdict=Verdict.COMPLETE, regions={Status.COMPLETE: 4}), problems=())


def outcome_of(**worst: Status) -> Outcome:
    """Incomplete with these tables at fault, or complete."""
    if not worst:
        return COMPLETE
    lines = tuple(TableLine(name, {status: 1}) for name, status in worst.items())
    return replace(OUTCOME, overview=Overview(groups=(), tables=lines))


def added(history: History, *outcomes: Outcome | None) -> History:
    """A round a minute."""
    for number, outcome in enumerate(outcomes, 1):
        history.add(CheckRound(number * 60_000, 1.0, outcome, "" if outcome else "no answer"))
    return history


def test_since_when_it_is_so() -> None:
    """Since the first round of that verdict in a row; an error in between changes nothing."""
    history = added(History(), outcome_of(), outcome_of(**BAD), None, outcome_of(**BAD))
    assert history.verdict_since_ms() == 120_000
    assert history.errors_in_a_row() == 0
    assert added(History(), outcome_of(**BAD), outcome_of()).verdict_since_ms() == 120_000
    assert added(History(), outcome_of(**BAD)).verdict_since_ms() == 60_000


def test_since_when_each_table_is_at_fault() -> None:
    """A table that was well in between begins anew."""
    one, both = outcome_of(one=Status.GAP), outcome_of(**BAD)
    assert added(History(), one, both, None, both).tables_since_ms() == {"one": 60_000, "two": 120_000}
    assert added(History(), both, one, both).tables_since_ms() == {"one": 60_000, "two": 180_000}
    assert added(History(), both, outcome_of()).tables_since_ms() == {}


def test_errors_are_counted_until_a_verdict() -> None:
    """And only those of this pair of clusters."""
    history = added(History(), None, outcome_of(), None, None)
    assert history.errors_in_a_row() == 2
    other = replace(outcome_of(**BAD), slave_cluster_id="another")
    history.add(CheckRound(300_000, 1.0, other))
    assert (history.errors_in_a_row(), history.verdict_since_ms()) == (0, 300_000)
    assert len(history.moments()) == 1


def test_a_check_of_less_is_another_one() -> None:
    """It was complete for one table: nobody had checked the others since then. Nor does a page draw it for them."""
    narrow = replace(outcome_of(), limits=("only table one (chosen)",))
    history = added(History(), narrow, narrow)
    assert (len(history.moments(narrow)), history.moments(outcome_of())) == (2, ())
    history.add(CheckRound(180_000, 1.0, outcome_of()))
    assert (history.verdict_since_ms(), len(history.moments())) == (180_000, 1)
    history.add(CheckRound(240_000, 1.0, narrow))
    assert history.verdict_since_ms() == 60_000


def test_queues_of_a_damaged_file_fit_into_the_history() -> None:
    """Else one FILE ended the watch, not its round."""
    history = added(History(), replace(outcome_of(), queued_bytes=1 << 64))
    assert len(history.moments()) == 1


def test_a_history_outlives_the_process(tmp_path: Path) -> None:
    """Its owner's alone, and bounded in time."""
    file = tmp_path / "history"
    first = added(History(file), outcome_of(**BAD))
    first.close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = History(file)
    second.add(CheckRound(120_000, 1.0, outcome_of(**BAD)))
    assert second.verdict_since_ms() == 60_000
    second.add(CheckRound(60_001 + KEPT_MS, 1.0, outcome_of(**BAD)))
    assert [one.at_ms for one in second.moments()] == [120_000, 60_001 + KEPT_MS]
    second.close()


def test_a_file_that_is_no_history_is_refused(tmp_path: Path) -> None:
    """Whatever it is instead, and it stays as it was."""
    text, other, nowhere = tmp_path / "text", tmp_path / "other", tmp_path / "no" / "folder"
    text.write_text("not a database, but a text that is longer than SQLite's header is" * 20)
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE mine (a)")
    database.commit()
    database.close()
    before = text.read_bytes(), other.read_bytes()
    for path in (text, other):
        with pytest.raises(ConfigurationError, match="is not a history"):
            History(path)
    assert (text.read_bytes(), other.read_bytes()) == before
    assert main(["watch", "-i", "x", "--history", str(nowhere)]) == 2


class Checks:
    """Yields outcomes, or raises errors, in turn."""

    def __init__(self, *results: Outcome | Exception) -> None:
        self.results = list(results)
        self.recovered = 0

    def __call__(self) -> Outcome:
        """The next one."""
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def recover(self) -> None:
        """Counted."""
        self.recovered += 1


def test_a_round_that_fails_does_not_end_the_watch() -> None:
    """Neither one of our errors nor anybody else's; only after the latter Spark starts anew."""
    checks = Checks(ConnectionFailed("no Thrift"), COMPLETE, RuntimeError("JVM\ngone"), UsageError("late"), OUTCOME)
    done = list(rounds(checks, Rhythm(0.0, 5), checks.recover))
    assert [one.error for one in done] == ["no Thrift", "", "RuntimeError: JVM gone", "late", ""]
    assert [one.outcome for one in done] == [None, COMPLETE, None, None, OUTCOME]
    assert checks.recovered == 1


def test_an_error_about_a_name_that_is_no_utf_8_does_not_end_it() -> None:
    """SQLite, which keeps the history, refuses such text."""
    (done,) = rounds(Checks(ConfigurationError("cannot read --from /d\udcff")), Rhythm(0.0, 1), lambda: None)
    history = History()
    history.add(done)
    assert (done.error, history.errors_in_a_row()) == ("cannot read --from /d\\udcff", 1)


def test_what_the_command_line_got_wrong_ends_it_at_once() -> None:
    """It would be wrong in each round."""
    with pytest.raises(UsageError):
        list(rounds(Checks(UsageError("--since")), Rhythm(0.0, 3), lambda: None))


def test_pauses() -> None:
    """From start to start, spread a little; a long round is followed at once."""
    pauses = [Rhythm(100.0).pause_s(10.0) for _ in range(200)]
    assert min(pauses) >= 100 * (1 - JITTER) - 10
    assert max(pauses) <= 100 * (1 + JITTER) - 10
    assert len(set(pauses)) > 1
    assert Rhythm(5.0).pause_s(60.0) == 0.0


def test_a_line_says_it_all() -> None:
    """Verdict, since when, how much, and the tables."""
    history = added(History(), outcome_of(**BAD), outcome_of(**BAD))
    line = line_of(CheckRound(120_000, 1.0, outcome_of(**BAD)), history)
    cut = iso(OUTCOME.cut_ms).split(".")[0]
    assert line.startswith(f"1970-01-01T00:02:00Z NOT complete since 1970-01-01T00:01:00Z: cut {cut}Z; ")
    assert "at fault" in line
    assert "tables one (since 1970-01-01T00:01:00Z), two (since 1970-01-01T00:01:00Z)" in line
    history = added(History(), outcome_of())
    assert "since" not in line_of(CheckRound(60_000, 1.0, outcome_of()), history)
    done = CheckRound(60_000, 1.0, outcome_of())
    assert document_of(done, history, 1)["cut_ms"] == OUTCOME.cut_ms
    limited = CheckRound(60_000, 1.0, replace(outcome_of(), limits=("only table t (chosen)",)))
    assert "only table t (chosen)" in line_of(limited, history)
    assert document_of(limited, history, 1)["limits"] == ["only table t (chosen)"]
    failed = CheckRound(180_000, 1.0, None, "cannot reach \x1b[31mit")
    history.add(failed)
    assert line_of(failed, history) == "1970-01-01T00:03:00Z no verdict: cannot reach \\x1b[31mit; took 1.0 s"
    history.add(failed)
    assert "no verdict (2 rounds in a row)" in line_of(failed, history)


def test_one_region_is_no_regions() -> None:
    """In a line as on the page."""
    outcome = replace(outcome_of(), hbase=replace(HBASE, regions={Status.GAP: 1}))
    assert "; 1 of 1 region at fault; " in line_of(CheckRound(60_000, 1.0, outcome), added(History(), outcome))
    assert ">1 region: 1 gap<" in printed(html_report, outcome)


def test_many_tables_are_counted() -> None:
    """A line stays one."""
    outcome = outcome_of(**{f"t{number}": Status.GAP for number in range(9)})
    line = line_of(CheckRound(60_000, 1.0, outcome), added(History(), outcome))
    assert line.count("(since") == 5
    assert "and 4 more" in line


@pytest.fixture
def pages() -> Iterator[HttpPages]:
    """On a free port."""
    served = HttpPages("127.0.0.1", 0, stale_s=60.0)
    yield served
    served.close()


def asked(served: HttpPages, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and text."""
    request = urllib.request.Request(f"http://127.0.0.1:{served.port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_pages_at_an_ipv6_address() -> None:
    with closing(HttpPages("::1", 0, stale_s=60.0)) as served:
        assert served.address == f"[::1]:{served.port}"
        with urllib.request.urlopen(f"http://{served.address}/healthz", timeout=10) as answer:
            assert answer.status == HTTPStatus.OK


def test_pages(pages: HttpPages) -> None:
    """What the last round found; a report is made once a round."""
    assert asked(pages, "/metrics")[0] == asked(pages, "/report")[0] == HTTPStatus.SERVICE_UNAVAILABLE
    assert json.loads(asked(pages, "/healthz")[1]) == {"status": "ok", "rounds": 0}
    made: list[str] = []

    def page() -> str:
        made.append("page")
        return f"page {len(made)}"

    pages.show(Pages(lambda: "m 1\n", page, {"round": 1}))
    assert asked(pages, "/metrics") == (200, "m 1\n")
    assert asked(pages, "/report?x=1") == asked(pages, "/") == (200, "page 1")
    assert asked(pages, "/report", "HEAD") == (200, "")
    pages.show(Pages(lambda: "m 2\n", None, {"round": 2, "error": "gone"}))
    assert asked(pages, "/metrics") == (200, "m 2\n")
    assert asked(pages, "/report")[0] == HTTPStatus.SERVICE_UNAVAILABLE
    assert json.loads(asked(pages, "/healthz")[1]) == {"status": "ok", "round": 2, "error": "gone"}
    pages.show(Pages(lambda: "", page, {"round": 3}))
    assert asked(pages, "/report") == (200, "page 2")
    assert asked(pages, "/etc/passwd")[0] == HTTPStatus.NOT_FOUND
    assert asked(pages, "/report", "POST")[0] == HTTPStatus.NOT_IMPLEMENTED


def test_the_page_of_an_older_verdict_says_that_it_is_older(pages: HttpPages, tmp_path: Path) -> None:
    """It stays over rounds that end with an error, and would look as if nothing had happened."""
    report = tmp_path / "page.html"
    check = {"mode": None, "metrics": None, "report": report, "spark_conf": (), "spark_master": None, "as_json": False}
    watcher = _Watcher(RoundParameters(check), History(), pages, None, tmp_path)
    watcher.tell(CheckRound(1_000, 1.0, None, "not there yet"))
    assert asked(pages, "/report")[0] == HTTPStatus.SERVICE_UNAVAILABLE
    assert not report.exists()
    watcher.tell(CheckRound(2_000, 1.0, COMPLETE))
    assert "later round" not in asked(pages, "/report")[1]
    for second in (3_000, 4_000):
        watcher.tell(CheckRound(second, 1.0, None, "the master is gone"))
    for text in (asked(pages, "/report")[1], report.read_text()):
        assert "2 later rounds without a verdict, the last: the master is gone" in text
        assert text.count("the master is gone") == 1
    watcher.tell(CheckRound(5_000, 1.0, COMPLETE))
    assert "the master is gone" not in asked(pages, "/report")[1]


@pytest.mark.parametrize(
    ("may_need", "starts", "begun"),
    [
        (False, [False, False], []),
        (False, [True, False, False], [2, 3]),
        (False, [False, True, False], [3]),
        (True, [False, False], [1, 2]),
    ],
)
def test_a_round_that_came_to_need_spark_gives_the_next_ones_a_session(
    may_need: bool, starts: list[bool], begun: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small FILE of a large slave: nothing that is known before says so, and each round would start a JVM."""
    check = {"mode": None, "metrics": None, "report": None, "spark_conf": (), "spark_master": None, "as_json": False}
    options = dict.fromkeys(("published", "as_json", "report", "metrics", "repair_script", "only"))
    one = SimpleNamespace(**options, status_file=tmp_path / "file")
    asked = SimpleNamespace(options=one, settings=None, check=lambda: Check(one.status_file, Scope()))
    watcher = _Watcher(RoundParameters(check), History(), None, None, tmp_path)
    rounds_of, processes = list[Path](), [None]

    def checked(*_: object) -> Outcome:
        if starts[len(done)]:
            processes.append(cast(Any, object()))
        return COMPLETE

    def ensure(status_file: Path) -> None:
        begins.append(len(done) + 1)
        rounds_of.append(status_file)

    done, begins = list[Outcome](), list[int]()
    for name, made in {
        "take_spark": lambda: None,
        "asked_of": lambda _: asked,
        "may_need_spark": lambda _: may_need,
        "checked": checked,
        "write_reports": lambda *_: None,
        "jvm": SimpleNamespace(process=lambda: processes[-1]),
    }.items():
        monkeypatch.setattr(watching, name, made)
    monkeypatch.setattr(watcher.session, "ensure", ensure)
    for _ in starts:
        done.append(watcher.check())
    assert begins == begun
    assert rounds_of == [one.status_file] * len(begun), "for files like this one"


def test_a_page_of_the_round_before_is_not_kept_for_the_next(pages: HttpPages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round ends between a client's question and the making of its page."""
    make_page = pages._page

    def late(make: Callable[[], str]) -> str:
        pages.show(Pages(str, lambda: "gap", {}))
        return make_page(make)

    pages.show(Pages(str, lambda: "complete", {}))
    with monkeypatch.context() as once:
        once.setattr(pages, "_page", late)
        assert asked(pages, "/report") == (200, "complete")
    assert asked(pages, "/report") == (200, "gap")


def test_no_round_for_long_is_not_healthy() -> None:
    """Also before the first one has ended."""
    served = HttpPages("127.0.0.1", 0, stale_s=0.0)
    try:
        assert served.answer("/healthz")[0] == HTTPStatus.SERVICE_UNAVAILABLE
        with pytest.raises(ConfigurationError, match="cannot listen on"):
            HttpPages("127.0.0.1", served.port, 1.0)
    finally:
        served.close()


@pytest.mark.parametrize("host", ["\N{LATIN SMALL LETTER E WITH ACUTE}..", "h\udcff"])
def test_a_host_that_has_no_form_in_ascii_is_refused(host: str) -> None:
    """Python raises no OSError for it."""
    with pytest.raises(ConfigurationError, match=r"cannot listen on .*: encoding of hostname failed"):
        HttpPages(host, 0, 1.0)


MOMENTS = (
    Moment(60_000, str(Verdict.COMPLETE), 0, 0, None),
    Moment(120_000, None, 0, 0, None),
    Moment(180_000, str(Verdict.INCOMPLETE), 4, 0, 3_000),
    Moment(240_000, str(Verdict.INCOMPLETE), 2, 0, 1_000),
)


def test_the_page_shows_how_it_moved() -> None:
    """Verdicts as spans, what is at fault and the lag as lines, and all of it in words."""
    drawn = timeline(MOMENTS)
    assert drawn is not None
    assert [key for key, *_ in drawn["spans"]] == ["c", "m", "g"]
    assert [lane["words"] for lane in drawn["lanes"]] == ["regions at fault, at most 4", "worst lag, at most 3.0 s"]
    assert "4 checks from 1970-01-01T00:01:00.000Z to 1970-01-01T00:04:00.000Z" in drawn["words"]
    assert timeline(MOMENTS[:1]) is None
    page = printed(html_report, history=MOMENTS)
    assert "How it moved" in page
    assert "polyline" in page
    assert "How it moved" not in printed(html_report)


def test_the_newest_file_of_a_folder(tmp_path: Path) -> None:
    """Hidden ones are still being written."""
    with pytest.raises(ConfigurationError, match="no status file is there yet"):
        newest_file(tmp_path)
    for number, name in enumerate(("b", "a", ".c")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (number, number))
    (tmp_path / "folder").mkdir()
    assert newest_file(tmp_path) == tmp_path / "a"
    # While `run -m -o a -f PATHS` writes a new one, and after it was interrupted, its checksums are beside it.
    for suffix in ("", "-journal"):
        Path(f"{journal_path(tmp_path / 'a')}{suffix}").touch()
    assert newest_file(tmp_path) == tmp_path / "a"
    with pytest.raises(ConfigurationError, match="cannot read --from"):
        newest_file(tmp_path / "none")


def test_an_old_file_that_was_copied_last_is_not_the_newest(tmp_path: Path) -> None:
    """FILE's own time counts; a file that lacks one, such as half a copy, hides behind none that is older."""
    made = {"new": 2_000, "old": 1_000}
    for number, (name, written_ms) in enumerate(made.items(), 10):
        header = Header("master", "m", created_ms=written_ms, cut_ms=1, notices=("x" * 1_000,))
        with StatusWriter(tmp_path / name, header):
            pass
        os.utime(tmp_path / name, (number, number))
    assert newest_file(tmp_path) == tmp_path / "new"
    half = tmp_path / "half"
    half.write_bytes((tmp_path / "new").read_bytes()[:-9])
    os.utime(half, (1, 1))
    assert newest_file(tmp_path) == tmp_path / "new"
    os.utime(half, (3, 3))
    assert newest_file(tmp_path) == half


def test_a_file_of_a_clock_that_was_ahead_hides_no_newer_one(tmp_path: Path) -> None:
    """It cannot have been written after it came here; where even that lies ahead, the round ends by an error."""
    now_s = time.time()
    for name, stated_s, modified_s in (("ahead", now_s + 86_400, now_s - 60), ("newer", now_s - 30, now_s - 20)):
        header = Header("master", "m", created_ms=int(stated_s * 1000), cut_ms=1)
        with StatusWriter(tmp_path / name, header):
            pass
        os.utime(tmp_path / name, (modified_s, modified_s))
    assert newest_file(tmp_path) == tmp_path / "newer"
    os.utime(tmp_path / "ahead", (now_s + 3_600, now_s + 3_600))
    with pytest.raises(ConfigurationError, match=r"ahead is dated .* ahead of this host's clock, and may hide newer"):
        newest_file(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing names it"),
        (["-i", "f", "--from", "d"], "-i and --from are 2 of them"),
        (["-i", "f", "--master-conf", "d"], "-i and --master-conf are 2 of them"),
        (["--master-thrift", "h:1"], "give --master-conf DIR"),
        (["-i", "f", "-m"], "-m does not go with watch"),
        (["-i", "f", "--follow"], "--follow does not go with watch"),
        (["-i", "f", "-d"], "-d does not go with watch"),
        (["-i", "f", "-q"], "-q does not go with watch"),
        (["-i", "f", "--listen", "x"], "expected PORT or HOST:PORT"),
        *((["-i", "f", "--listen", port], "expected PORT or HOST:PORT") for port in ("70000", "\N{SUPERSCRIPT TWO}")),
        (["-i", "f", "--only", "hdfs", "--table", "t"], "--table does not go with --only hdfs"),
        (["-i", "f", "--differ", "-"], "one line a round"),
        (["-i", "f", "--nonsense"], "--nonsense"),
        (["-i", "f", "--every", "0"], "--every"),
        (["-i", "f", "--all-files"], "--all-files does not go with -i FILE"),
        (["--master-conf", ".", "--all-files", "-f", "paths"], "give either"),
    ],
)
def test_what_does_not_fit_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names it, exit code 2, and nothing begins."""
    monkeypatch.chdir(tmp_path)
    assert main(["watch", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide that of other tests."""
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)


@pytest.mark.usefixtures("no_session")
def test_the_first_file_decides_for_which_size_sparks_jvm_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def made(*_: object, small: bool) -> AbstractContextManager[None]:
        asked.append(small)
        return nullcontext()

    monkeypatch.setattr("status_tool.cli.watching.spark_session", made)
    for size in (1, SHORT_RUN_BYTES + 1):
        file = tmp_path / "master.status"
        file.touch()
        os.truncate(file, size)
        _Session(None, (), tmp_path).ensure(file)
    assert asked == [True, False]


def test_a_session_that_was_there_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: "another's")
    monkeypatch.setattr(watching, "forget_session", lambda: ended.append("forgotten"))
    watched = _Session(None, (), tmp_path)
    watched.ensure(tmp_path / "master.status")
    watched.drop()
    assert ended == []


@pytest.mark.usefixtures("no_session")
def test_a_session_that_stops_late_does_not_end_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its JVM answered no more, and the next round has begun another one."""
    answers, stopped = threading.Event(), list[int]()
    numbers = iter(range(2))

    @contextmanager
    def session(*_: object, **__: object) -> Iterator[None]:
        number = next(numbers)
        yield
        if number == 0:
            answers.wait(30)
        stopped.append(number)

    monkeypatch.setattr(watching, "spark_session", session)
    monkeypatch.setattr(watching, "forget_session", lambda: None)
    monkeypatch.setattr(watching, "STOP_S", 0.01)
    file = tmp_path / "master.status"
    file.touch()
    watched = _Session(None, (), tmp_path)
    watched.ensure(file)
    watched.drop()
    (late,) = [one for one in threading.enumerate() if one.name.endswith("(_stop)")]
    watched.ensure(file)
    answers.set()
    late.join(30)
    assert stopped == [0]
    monkeypatch.setattr(watching, "STOP_S", 30)
    watched.drop()
    assert stopped == [0, 1]


SUCCEEDED = """status_tool_up{master="m",slave="s",peer="1"} 1
status_tool_last_success_timestamp_seconds{master="m",slave="s",peer="1"} 1234.5
"""


@pytest.mark.parametrize("what", ["nothing arrived", "no ZooKeeper", "no FILE", "no paths"])
def test_an_error_before_the_check_begins_shows_in_the_metrics(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not up, with the last success and the names as they were; what the watch writes first has its permissions."""
    metrics, arriving, conf = tmp_path / "m.prom", tmp_path / "arriving", tmp_path / "conf"
    arriving.mkdir()
    conf.mkdir()
    monkeypatch.setattr("status_tool.cli.watching._Session.ensure", lambda *_: None)
    slave = ["--slave-status", str(SAMPLES / "gap" / "slave.status")]
    nowhere = ["--zookeeper", "127.0.0.1:1/hbase"]
    options = {
        "nothing arrived": ["--from", str(arriving), *slave],
        "no ZooKeeper": ["--master-conf", str(conf), "--only", "hbase", *nowhere, "--thrift", "127.0.0.1:1"],
        "no FILE": ["-i", str(arriving / "none"), *nowhere],
        "no paths": ["-i", str(arriving / "none"), "-f", str(arriving / "none"), *slave],
    }[what]
    line = ["watch", *options, "--rounds", "1", "--metrics", str(metrics), "--file-mode", "640"]
    try:
        assert main(line) == 2
        assert stat.S_IMODE(metrics.stat().st_mode) == 0o640
        metrics.write_text(SUCCEEDED)
        assert main(line) == 2
    finally:
        file_mode(None)
    assert "no verdict" in capsys.readouterr().out
    text = metrics.read_text()
    assert 'status_tool_up{master="m",slave="s",peer="1"} 0' in text
    assert 'status_tool_last_success_timestamp_seconds{master="m",slave="s",peer="1"} 1234.5' in text


def test_a_watch_that_ends_with_an_error_is_down_in_its_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody checks any more, and the verdict of an earlier watch would look like today's."""
    metrics, history = tmp_path / "m.prom", tmp_path / "history"
    metrics.write_text(SUCCEEDED)
    history.write_text("no history of any kind" * 100)
    slave = ["--slave-status", str(SAMPLES / "gap" / "slave.status")]
    line = ["watch", "-i", str(tmp_path / "FILE"), *slave, "--history", str(history), "--metrics", str(metrics)]
    assert main(line) == 2
    assert "is not a history" in capsys.readouterr().err
    assert 'status_tool_up{master="m",slave="s",peer="1"} 0' in metrics.read_text()


def test_every_refusal_names_an_option_of_run() -> None:
    """Of the same names."""
    import inspect

    from status_tool.cli.run import run

    assert set(REFUSED) <= set(inspect.signature(run).parameters)


HITTING = """
import os, pathlib, signal, sys, time

def hit():
    os.kill(os.getpid(), {number})

class Swallowing:
    def __del__(self):
        hit()

slept = time.sleep

def sleep(seconds):
    if seconds > 30:
        {in_sleep}
    slept(seconds)

time.sleep = sleep
"""
"""Sends the process a signal when it comes to a certain place, whatever the machine is doing meanwhile."""
ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def ended(
    hitting: Path, code: str, number: signal.Signals, arguments: list[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command as a process of its own, with `code` run before it.

    Asserts that it ends as one line and a code, and that neither a file nor a process is left.
    """
    hitting.mkdir()
    left = hitting / "left"
    left.mkdir()
    (hitting / "sitecustomize.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "status_tool", *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        env=os.environ | {"PYTHONPATH": str(hitting), "TMPDIR": str(left)} | (environment or {}),
    )
    assert done.returncode == ENDS[number], done.stderr
    [said] = done.stderr.splitlines()
    assert said.startswith("status-tool: interrupted"), said
    wait_until(lambda: not running(left), 120, "what was started to end")
    assert list(left.iterdir()) == []
    return done


def running(left: Path) -> list[str]:
    """The processes whose temporary files go to this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if f"TMPDIR={left}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("in_sleep", ["hit()", "Swallowing()"], ids=["asleep", "where it is swallowed"])
def test_a_signal_between_rounds(tmp_path: Path, number: signal.Signals, in_sleep: str) -> None:
    """Also in a finalizer, where Python drops the exception of a signal and prints a traceback instead."""
    arriving = tmp_path / "arriving"
    arriving.mkdir()
    code = HITTING.format(number=int(number), in_sleep=in_sleep)
    done = ended(tmp_path / "hitting", code, number, ["watch", "--every", "600", "--from", str(arriving)])
    assert done.stdout.count("no verdict") == 1


MUTE = """
import os, socket, threading

served = socket.create_server(("127.0.0.1", 0))
os.environ["MUTE_PORT"] = str(served.getsockname()[1])

def answer():
    served.accept()
    os.kill(os.getpid(), {number})
    threading.Event().wait()

threading.Thread(target=answer, daemon=True).start()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", ENDS)
def test_a_signal_while_a_cluster_does_not_answer(tmp_path: Path, number: signal.Signals) -> None:
    """A ZooKeeper that takes the connection and says nothing."""
    conf = tmp_path / "conf"
    conf.mkdir()
    names = {"hbase.zookeeper.quorum": "127.0.0.1", "hbase.zookeeper.property.clientPort": "${env.MUTE_PORT}"}
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in names.items()
    )
    (conf / "hbase-site.xml").write_text(f"<configuration>{properties}</configuration>")
    line = ["watch", "--every", "600", "--master-conf", str(conf), "--only", "hbase", "--conf-dir", str(conf)]
    assert ended(tmp_path / "hitting", MUTE.format(number=int(number)), number, line).stdout == ""


@pytest.mark.parametrize(
    ("root", "moved", "laid_out"),
    [
        ("/a", "file:///b", (False, True)),
        ("file:///a", "file:///b", (True, True)),
        ("file:///a", "/b", (True, False)),
        ("/a", "/b", (False, True)),  # for the slave to refuse
    ],
)
def test_a_layout_is_for_the_side_with_local_folders(
    root: str, moved: str, laid_out: tuple[bool, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one would refuse it. Neither side refuses what is for HDFS, which may be the other one."""
    asked = list[bool]()

    def written(_: Settings, request: Request, *__: Any) -> None:
        assert request.files.for_hdfs == ()
        asked.append(request.files.layout is not None)

    def checked(_: Settings, check: Check) -> Outcome:
        assert check.files.for_hdfs == ()
        asked.append(check.files.layout is not None)
        raise ConfigurationError("that is all")

    monkeypatch.setattr(watching, "write_side", written)
    monkeypatch.setattr(watching, "checked", checked)
    monkeypatch.setattr(_Session, "ensure", lambda *_: None)
    (tmp_path / "paths").write_text(root)
    here = ["--master-conf", str(tmp_path), "-f", str(tmp_path / "paths"), "--only", "hdfs", "--rounds", "1"]
    assert main(["watch", *here, "--map-path", f"/a={moved}", "--layout", "1024", "--rate", "5"]) == EXIT_ERROR
    assert tuple(asked) == laid_out


# -- on real Spark ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with both sides of a check that is complete."""
    for side in ("master", "slave"):
        shutil.copy(SAMPLES / "complete" / f"{side}.status", tmp_path / f"{side}.status")
    return tmp_path


def started(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """`watch` as a process, of the two files of the folder."""
    files = ["-i", str(folder / "master.status"), "--slave-status", str(folder / "slave.status")]
    return subprocess.Popen(
        [sys.executable, "-m", "status_tool", "watch", *files, "--every", "1", "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)} | (environment or {}),
    )


def line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next round."""
    assert process.stdout is not None
    text = process.stdout.readline()
    assert text, process.stderr.read() if process.stderr is not None else ""
    found: dict[str, Any] = json.loads(text)
    return found


def line_with(process: subprocess.Popen[str], verdict: str) -> dict[str, Any]:
    """The next round; empty: it ended with another verdict, or with none."""
    found = line(process)
    return found if found["verdict"] == verdict else {}


def replaced(folder: Path, sample: str) -> None:
    """As `run -m -o` does it: by a rename."""
    for side in ("slave", "master"):
        fresh = folder / f".{side}.fresh"
        shutil.copy(SAMPLES / sample / f"{side}.status", fresh)
        fresh.rename(folder / f"{side}.status")


def jvms(process: subprocess.Popen[str]) -> set[int]:
    """The JVMs that a process has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return {int(pid) for pid in children if "java" in Path(f"/proc/{pid}/cmdline").read_text()}


@pytest.mark.slow
@pytest.mark.spark
def test_a_day_of_watching(folder: Path) -> None:
    """FILE is replaced, damaged and back; the JVM is killed; one session otherwise; then SIGTERM."""
    history, report, metrics = folder / "history", folder / "report.html", folder / "m.prom"
    outputs = ["--history", str(history), "--report", str(report), "--metrics", str(metrics), "--listen", "0"]
    process = started(folder, *outputs, "--only", "hbase", "--spark-master", "local[1]")
    try:
        first, second = line(process), line(process)
        assert [one["verdict"] for one in (first, second)] == ["complete", "complete"]
        assert second["since_ms"] == first["started_ms"]
        spark = jvms(process)
        assert len(spark) == 1
        replaced(folder, "gap")
        gap = wait_until(lambda: line_with(process, "incomplete"), 120, "the other FILE to be checked")
        assert (gap["exit_code"], list(gap["tables_at_fault"])) == (1, ["orders"])
        assert "How it moved" in report.read_text()
        assert "status_tool_up" in metrics.read_text()

        (folder / "master.status").write_text("damaged")
        wait_until(lambda: line(process)["exit_code"] == 2, 120, "the damaged FILE to be refused")
        assert "status_tool_up{" in metrics.read_text()
        replaced(folder, "complete")
        wait_until(lambda: line_with(process, "complete"), 120, "the FILE to be checked again")
        assert jvms(process) == spark, "one session"

        for pid in spark:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: line_with(process, "complete") and jvms(process) - spark, 120, "another JVM")
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143, error
    assert error.splitlines()[1:] == ["status-tool: interrupted"], error
    assert "Traceback" not in error
    left = {path.name for path in folder.iterdir()}
    assert left == {"master.status", "slave.status", "history", "report.html", "m.prom"}, left
    kept = History(history)
    assert {moment.verdict for moment in kept.moments()} == {"complete", "incomplete", None}
    kept.close()


IN_JVM = """
import os, signal
from py4j.clientserver import ClientServerConnection
from py4j.java_gateway import GatewayConnection
from pyspark import core

asked = 0

def counting(send):
    def sent(self, command, *rest):
        global asked
        asked += 1
        if asked == {count}:
            os.kill(os.getpid(), {number})
        return send(self, command, *rest)
    return sent

for kind in (ClientServerConnection, GatewayConnection):
    kind.send_command = counting(kind.send_command)
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("number", "count"), [(signal.SIGTERM, 1), (signal.SIGINT, 25), (signal.SIGINT, 400)])
def test_a_signal_while_spark_is_asked(tmp_path: Path, folder: Path, number: signal.Signals, count: int) -> None:
    """When its session starts, and when it checks; nothing of it is left."""
    files = ["-i", str(folder / "master.status"), "--slave-status", str(folder / "slave.status")]
    files += ["--report", str(tmp_path / "page.html")]
    done = ended(tmp_path / "hitting", IN_JVM.format(number=int(number), count=count), number, ["watch", *files])
    assert done.stdout == ""


JVM_BEGINS = """
import os, pyspark.java_gateway, signal, subprocess

forked = subprocess.Popen._execute_child

def hit(self, command, *rest):
    forked(self, command, *rest)
    if command[-1].endswith("PythonGatewayServer"):
        os.kill(os.getpid(), {number})

subprocess.Popen._execute_child = hit
"""
"""Hits when there is a process of which nobody knows yet."""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("number", ENDS)
@pytest.mark.parametrize("command", [["watch", "--every", "600"], ["run"]], ids=["watch", "run"])
def test_a_signal_while_the_jvm_starts(
    tmp_path: Path, folder: Path, number: signal.Signals, command: list[str]
) -> None:
    """Nobody waits for it, and nothing of it is left."""
    files = ["-i", str(folder / "master.status"), "--slave-status", str(folder / "slave.status")]
    files += ["--report", str(tmp_path / "page.html")]
    code = JVM_BEGINS.format(number=int(number))
    assert ended(tmp_path / "hitting", code, number, [*command, *files]).stdout == ""


@pytest.mark.slow
def test_a_watch_of_a_small_file_needs_no_java(folder: Path) -> None:
    """It holds no JVM for months that no round asks."""
    files = ["-i", str(folder / "master.status"), "--slave-status", str(folder / "slave.status")]
    done = subprocess.run(
        [sys.executable, "-m", "status_tool", "watch", "--rounds", "1", *files],
        capture_output=True,
        text=True,
        env=os.environ | {"JAVA_HOME": "/nowhere"},
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_a_number_of_rounds_and_the_last_ones_exit_code(folder: Path) -> None:
    """For cron, and with the newest file of a folder in which others arrive."""
    arriving = folder / "arriving"
    arriving.mkdir()
    shutil.copy(SAMPLES / "gap" / "master.status", arriving / "1.status")
    slave = ["--slave-status", str(SAMPLES / "gap" / "slave.status")]
    receiver = Receiver(503)
    options = ["--from", str(arriving), "--rounds", "2", "--every", "1", "--json", "--webhook", receiver.url, *slave]
    done = tool_here("watch", *options)
    receiver.server.shutdown()
    receiver.server.server_close()
    assert done.exit_code == 1, done
    printed_lines = [json.loads(text) for text in done.stdout.splitlines()]
    assert [one["data"] for one in receiver.events[1:]] == printed_lines
    assert receiver.events[0] == receiver.events[1], "refused once, sent again"
    assert receiver.events[0]["source"].count("-") == 9, "the ids of both clusters"
    assert [json.loads(text)["round"] for text in done.stdout.splitlines()] == [1, 2]
    assert done.stderr == ""
