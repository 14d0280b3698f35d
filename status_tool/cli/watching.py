"""Work of `status-tool watch` once its options fit together: rounds of `run`, and where their results go.

Apart from `cli.watch` for the reason of `cli.running`.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyspark.sql import SparkSession

from status_tool.atomic import file_mode
from status_tool.cli.defaults import origins
from status_tool.cli.options import spark_settings_of
from status_tool.cli.repeated import RoundParameters, as_service, print_round
from status_tool.cli.run import (
    ANY_MASTER,
    AskedRun,
    asked_of,
    failure_in_metrics,
    fetch_published,
    may_need_spark,
    permissions_of,
)
from status_tool.cli.run_options import Half
from status_tool.cli.running import Output, checked, write_reports
from status_tool.cli.signals import received
from status_tool.errors import EXIT_ERROR, ConfigurationError, Interrupted, StatusToolError
from status_tool.printable import counted, duration, print_beside
from status_tool.report.metrics import Before, check_metrics, failure_metrics
from status_tool.report.page import html_report
from status_tool.report.progress import make_progress
from status_tool.report.summary import write_report
from status_tool.runs.recovery import PointAsked, find_point
from status_tool.runs.write import unasked, write_side
from status_tool.sources.state_table import now_ms
from status_tool.spark import jvm
from status_tool.spark.session import forget_session, spark_session
from status_tool.spark.settings import is_short, take_spark
from status_tool.status_file.reader import created_ms
from status_tool.vocabulary.names import is_journal
from status_tool.vocabulary.outcome import AHEAD_MS, Moment, Outcome
from status_tool.vocabulary.selection import by_system
from status_tool.watch.history import CheckRound, History
from status_tool.watch.http_pages import HttpPages, Pages, Render
from status_tool.watch.rounds import Rhythm, document_of, line_of, rounds
from status_tool.watch.webhook import Webhook

STALE_ROUNDS = 3
"""After so many pauses without a round, and `STALE_S` for a long one, `/healthz` says that it is stuck."""
STALE_S = 600.0
STOP_S = 1.0
"""Time that a Spark session may take to stop before its JVM is killed."""
AFTER_JVM_S = 0.2
"""Time after the end of a JVM within which this process's own signal may come."""
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_BOUNDED = tuple(
    (f"spark.{name}", str(count))
    for name, count in {
        "ui.retainedJobs": 20,
        "ui.retainedStages": 20,
        "ui.retainedTasks": 1_000,
        "ui.retainedDeadExecutors": 5,
        "sql.ui.retainedExecutions": 5,
        # Spark removes what a round has left once Java has collected it, which may wait half an hour by default.
        "cleaner.periodicGC.interval": "5min",
    }.items()
)
"""Bounds of what Spark keeps of finished jobs, although nobody looks: else its JVM would grow for a thousand rounds."""


@dataclass(frozen=True)
class Service:
    """Settings of the watch."""

    every_s: float
    rounds: int | None = None
    listen: tuple[str, int] | None = None
    history: Path | None = None
    webhook: str | None = None


def keep_watch(what: RoundParameters, service: Service) -> int:
    """Check until all rounds are done; returns the exit code of the last one."""
    code = EXIT_ERROR
    # Before the first round, which may fail before it comes to this itself and write metrics nevertheless.
    file_mode(permissions_of(what.check["mode"]))
    # Beside the rounds, too, as where the history cannot be kept: nobody checks any more.
    with failure_in_metrics(what.check["metrics"], time.monotonic()), ExitStack() as stack:
        history = stack.enter_context(closing(History(service.history)))
        pages = None
        if service.listen is not None:
            stale_s = STALE_ROUNDS * service.every_s + STALE_S
            pages = stack.enter_context(closing(HttpPages(*service.listen, stale_s)))
            # stdout has one line, or one document, a round.
            print_beside(f"listening on {pages.address}")
        folder = stack.enter_context(as_service())
        webhook = None if service.webhook is None else stack.enter_context(closing(Webhook(service.webhook)))
        watcher = _Watcher(what, history, pages, webhook, folder)
        # The last one in is the first to end: Spark's files lie in `folder`, which goes after it.
        stack.callback(watcher.session.drop)
        for done in rounds(watcher.check, Rhythm(service.every_s, service.rounds), watcher.session.drop):
            code = watcher.tell(done)
    return code


class _Session:
    """One Spark session for all rounds that need one; another one after its JVM has failed."""

    def __init__(self, master: str | None, conf: Sequence[tuple[str, str]], folder: Path) -> None:
        """Prepare the session. `folder` is for the files that the JVM leaves if it has to be killed."""
        self._master = master
        # Spark splits this setting at spaces, which the folder's path may have.
        own = {"spark.local.dir": str(folder), _JVM_OPTIONS: f'"-Djava.io.tmpdir={folder}"'}
        chosen = dict(conf)
        if (options := chosen.get(_JVM_OPTIONS)) is not None:
            # Of two equal options Java takes the later one: the user's counts.
            chosen[_JVM_OPTIONS] = f"{own[_JVM_OPTIONS]} {options}"
        self._conf = tuple((dict(_BOUNDED) | own | chosen).items())
        self._stack = ExitStack()
        self._is_begun = False

    def ensure(self, status_file: Path) -> None:
        """Start it where there is none, for files like this one. Raises `ConfigurationError` if it cannot start."""
        # A session that somebody else has begun in this process is not this one's to end.
        if self._is_begun or SparkSession.getActiveSession() is not None:
            return
        # `drop` has to end a session, too, that fails or is interrupted while it starts.
        self._is_begun = True
        try:
            self._stack.enter_context(spark_session(self._master, self._conf, small=is_short(status_file)))
        except Exception:
            self.drop()
            raise

    def drop(self) -> None:
        """End it, whatever state its JVM is in; the next round starts another one."""
        if self._is_begun:
            self._is_begun = False
            # Apart, as a JVM may not answer any more. Its end may then come when the next session has begun, which must
            # not be among what it ends.
            old, self._stack = self._stack, ExitStack()
            stopping = threading.Thread(target=_stop, args=(old,), daemon=True)
            stopping.start()
            stopping.join(STOP_S)
            forget_session()


def _stop(session: ExitStack) -> None:
    with suppress(Exception):
        session.close()


class _Watcher:
    """Runs a round and passes on what it found."""

    def __init__(
        self, what: RoundParameters, history: History, pages: HttpPages | None, webhook: Webhook | None, folder: Path
    ) -> None:
        self._what = what
        self._history = history
        self._pages = pages
        self._webhook = webhook
        self._folder = folder
        self._clusters = ""
        self._last = Before()
        self._points: Mapping[str, int | None] = {}
        self._shown: tuple[Outcome, int] | None = None
        """The last outcome, and when its round ended."""
        self._number = 0
        self._asks_spark = False
        """True once a round has started a session of its own."""
        self._metrics: Path | None = what.check["metrics"]
        settings = spark_settings_of(what.check["spark_conf"])
        self.session = _Session(what.check["spark_master"], settings, folder)

    def check(self) -> Outcome:
        """Run one round. Raises what `run` raises."""
        try:
            return self._checked()
        except Exception as error:
            # An interrupted round may end with an error of its own, which does not count. A signal to all processes may
            # have ended Spark's JVM first.
            if (process := jvm.process()) is not None and process.poll() is not None:
                time.sleep(AFTER_JVM_S)
            if received or isinstance(error, Interrupted):
                raise KeyboardInterrupt from None
            raise

    def _checked(self) -> Outcome:
        parameters, began, has_local = dict(self._what.check), time.monotonic(), False
        with failure_in_metrics(self._metrics, began):
            if self._what.master is not None:
                parameters["status_file"] = self._folder / "master.status"
                has_local = self._write(asked_of({**self._what.master, "output": parameters["status_file"]}))
            elif self._what.folder is not None:
                parameters["status_file"] = newest_file(self._what.folder)
            asked = asked_of(parameters)
            if asked.options.published is not None:
                asked.options.status_file = fetch_published(asked, self._folder / "published.status")
            take_spark()
            if self._asks_spark or may_need_spark(asked):
                self.session.ensure(asked.options.status_file)
            before = jvm.process()
            check = asked.check()
            if self._what.master is not None:
                # As `--layout`, `--rate` may be for the other side.
                check = replace(check, files=replace(check.files, for_hdfs=()))
            # `--layout` was for the master's local folders: a slave without any would refuse it.
            if has_local and not check.scope.path_map.leads_to_disk:
                check = replace(check, files=replace(check.files, layout=None))
            outcome = checked(asked.settings, check)
            # A small FILE of a large slave: the next round finds a session, and starts none for itself alone.
            self._asks_spark = self._asks_spark or jvm.process() is not before
            one = asked.options
            self._points = self._recovery_points(asked)
            output = Output(one.as_json, one.report, one.metrics, one.repair_script, began, points=self._points)
            # `tell` adds this round to the history only afterwards.
            write_reports(outcome, output, (*self._history.moments(outcome), self._moment(outcome)))
        # Objects here hold what Spark's JVM keeps for a round, in cycles that Python would leave for long.
        gc.collect()
        return outcome

    def _recovery_points(self, asked: AskedRun) -> Mapping[str, int | None]:
        """Return the recovery points by table, if anyone reads them. The newest file need not be complete."""
        one = asked.options
        is_read = self._metrics is not None or self._pages is not None
        if one.published is None or one.only is Half.HDFS or not is_read:
            return {}
        wanted = None if one.published == ANY_MASTER else one.published
        # As `recovery-point` asks: a point is of streams alone.
        scope = replace(asked.scope(), check_hdfs=False)
        points = PointAsked(scope, wanted, asked.key, one.spark_master, asked.spark_conf)
        with make_progress() as progress:
            return find_point(asked.settings, points, progress.step).points

    @staticmethod
    def _write(asked: AskedRun) -> bool:
        """Write FILE, as `run -m` does, and return True if it has local folders. Raises what `write_side` raises."""
        request = asked.request()
        unasked(asked.settings, request)
        has_local = bool(by_system(request.hdfs_paths or asked.settings.hdfs_paths)[0])
        # `--layout` is for the side that has some, which may be the other one: this one would refuse it.
        layout = request.files.layout if has_local else None
        request = replace(request, files=replace(request.files, layout=layout, for_hdfs=()))
        with make_progress() as progress:
            write_side(asked.settings, request, asked.options.output, progress.step, asked.key, progress)
        return has_local

    def _moment(self, outcome: Outcome) -> Moment:
        done = CheckRound(int(time.time() * 1000), 0.0, outcome)
        return Moment(done.started_ms, str(outcome.verdict), done.regions[1], done.files[1], done.lag_ms)

    def tell(self, done: CheckRound) -> int:
        """Keep, print and show a round; returns its exit code."""
        self._number += 1
        done = replace(done, error=done.error + origins(done.error))
        self._history.add(done)
        document = document_of(done, self._history, self._number)
        print_round(document, line_of(done, self._history), as_json=self._what.check["as_json"])
        ended_ms = done.started_ms + int(done.took_s * 1000)
        if done.outcome is not None:
            self._shown = done.outcome, ended_ms
        page = self._page(done)
        # `check` writes the report of a round with an outcome. The page of before is written anew, as it would look
        # current.
        if done.outcome is None and page is not None and (report := self._what.check["report"]) is not None:
            with suppress(StatusToolError):
                write_report(report, page())
        if self._pages is not None:
            self._pages.show(self._made(done, ended_ms, page, document))
        if self._webhook is not None:
            self._webhook.send(self._source(done.outcome), document)
        return int(document["exit_code"])

    def _source(self, outcome: Outcome | None) -> str:
        """Return the two clusters as a URI reference: those of the last round that found any."""
        if outcome is not None:
            self._clusters = f"{quote(outcome.master_cluster_id)}/{quote(outcome.slave_cluster_id)}"
        return f"/status-tool/{self._clusters}"

    def _page(self, done: CheckRound) -> Render | None:
        """Return the page of the last verdict, which says so if later rounds have none; None without a verdict."""
        if self._shown is None:
            return None
        outcome, ended_ms = self._shown
        if done.outcome is None:
            rounds_since = counted(self._history.errors_in_a_row(), "later round")
            note = f"{rounds_since} without a verdict, the last: {done.error}"
            outcome = replace(outcome, notices=(note, *outcome.notices))
        return partial(html_report, outcome, ended_ms, self._history.moments())

    def _made(self, done: CheckRound, ended_ms: int, page: Render | None, document: dict[str, Any]) -> Pages:
        # Pages are rendered when they are requested, so they keep what was known before their own round.
        last, outcome = self._last, done.outcome
        if outcome is None:
            return Pages(partial(failure_metrics, last, ended_ms, done.took_s), page, document)
        self._last = last.after(outcome, ended_ms)
        return Pages(partial(check_metrics, outcome, ended_ms, done.took_s, last, self._points), page, document)


def newest_file(folder: Path) -> Path:
    """Return the status file of a folder that was written last, wherever and whenever it was copied here.

    A file counts by the time that it states, or by its modification time if that is earlier, so that the newest file is
    passed over neither because it is damaged (its round ends by an error), nor for one of a host whose clock was ahead.
    Hidden files and journals belong to one that is still being written. Raises `ConfigurationError`, also if the newest
    lies ahead of this host's clock.
    """
    try:
        entries = (one for one in os.scandir(folder) if not (one.name.startswith(".") or is_journal(one.name)))
        found = [one for one in entries if one.is_file()]
        (written_ms, *_), path = max((_written(entry), entry.path) for entry in found)
    except OSError as error:
        raise ConfigurationError(f"cannot read --from {folder}: {error.strerror}") from None
    # `max` raises it where the folder has no file.
    except ValueError:
        raise ConfigurationError(f"--from {folder}: no status file is there yet") from None
    if (ahead_ms := written_ms - now_ms()) > AHEAD_MS:
        raise ConfigurationError(
            f"{path} is dated {duration(ahead_ms)} ahead of this host's clock, and may hide newer files: set right the "
            "clock of the host that wrote it, or this one's, and remove the file, or write it again"
        )
    return Path(path)


def _written(entry: os.DirEntry[str]) -> tuple[int, int, str]:
    modified_ns = entry.stat().st_mtime_ns
    stated_ms = created_ms(entry.path)
    modified_ms = modified_ns // 1_000_000
    return modified_ms if stated_ms is None else min(stated_ms, modified_ms), modified_ns, entry.name
