"""The Spark session: created for a check, quiet but for its progress, and stopped only by its creator."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import status_tool
from status_tool.clients.class_archive import drop_archive
from status_tool.clients.java import last_words
from status_tool.errors import ConfigurationError
from status_tool.spark import jvm
from status_tool.spark.launch import archived
from status_tool.spark.settings import JVM_OPTIONS, is_asked_for, runs_here, spark_settings_with, submitted
from status_tool.temporary import temporary_folder

POLL_EVERY_S = 0.5
TASKS_NAME = "Spark's tasks"
_CRASH = "fatal error has been detected"
"""Line that a JVM prints when it crashes."""

_SMALL_QUERY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling code and planning anew between stages costs more than a small check itself."""

Spark = Callable[[], SparkSession]
"""Returns the session of a check; the first call starts it."""


@contextmanager
def spark_when_needed(
    master: str | None, conf: tuple[tuple[str, str], ...], *, small: bool = True, at_once: bool = False
) -> Iterator[Spark]:
    """The session of a check, started by what first needs it: to start one takes longer than all of a small check.

    `at_once` starts it beside other work, where it is sure to be needed; so does whoever says how Spark is to run.
    """
    with ExitStack() as stack:

        @cache
        def spark() -> SparkSession:
            return stack.enter_context(spark_session(master, conf, small=small, is_last=True))

        if at_once or is_asked_for(master, conf):
            spark()
        else:
            jvm.end_unused()
        yield spark


@contextmanager
def spark_session(
    master: str | None = None, conf: Iterable[tuple[str, str]] = (), *, small: bool = True, is_last: bool = False
) -> Iterator[SparkSession]:
    """A session for one check; stopped at the end unless it existed before.

    `master` applies only where none was submitted (default `local[*]`). `conf` overrides every setting.
    `small`: tune the JVM for a short run. `is_last`: no other session follows in this process, so that the JVM need not
    put its things in order at the end, but for what a user's settings ask of it. Nothing is printed: the JVM's console
    output is kept aside and shown only if it cannot start. Raises ConfigurationError then.
    """
    existing = SparkSession.getActiveSession()
    if existing is not None:
        yield existing
        return
    chosen = dict(conf)
    settings, new_archive = spark_settings_with(master, chosen, small), None
    if not _has_jvm():
        settings, new_archive = archived(settings)
    session = _create_or_again(settings)
    # `atexit` calls the last function first: this one lets the JVM write its archive before `jvm.end` kills it.
    if new_archive is not None and (process := jvm.process()) is not None:
        new_archive.keep(process)
    with temporary_folder() as folder:
        try:
            if not runs_here(session.sparkContext.master):
                _ship_code(session.sparkContext, folder)
            yield session
        except BaseException:
            if new_archive is not None:
                new_archive.abandoned = True
            raise
        finally:
            # A killed JVM writes no archive (`-XX:ArchiveClassesAtExit`).
            if is_last and not chosen and new_archive is None and jvm.is_direct():
                forget_session()
            else:
                with suppress(Exception), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # PySpark warns of a JVM that has ended already
                    session.stop()


def _ship_code(context: SparkContext, folder: Path) -> None:
    """Let executors import this very version of the package. `folder` must exist as long as the context.

    What the package itself imports (pyproject.toml) must be there already.
    """
    package = Path(status_tool.__file__).parent
    archive = folder / "status_tool.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*.py")):
            packed.write(file, file.relative_to(package.parent))
    before = list(sys.path)
    context.addPyFile(str(archive))
    sys.path[:] = before  # Already imported in this process.


def forget_session() -> None:
    """Drop a session whose JVM has ended or does not answer, so that the next one starts another JVM."""
    gateway = getattr(SparkContext, "_gateway", None)
    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None  # it prints that the JVM has gone
    # The JVM ends first: Py4J's `shutdown` asks it, and one that hangs never answers.
    jvm.end()
    with suppress(Exception):
        if gateway is not None:
            gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


@contextmanager
def small_query(session: SparkSession) -> Iterator[None]:
    """Run what is executed meanwhile without compiling it: for up to some ten thousand rows."""
    before = {key: session.conf.get(key, None) for key in _SMALL_QUERY}
    for key, value in _SMALL_QUERY.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key) if old is None else session.conf.set(key, old)


def _create_or_again(settings: dict[str, str]) -> SparkSession:
    """Return a session. Tries again without the archive of classes if that has crashed the JVM."""
    try:
        return _create(settings)
    except ConfigurationError as error:
        # Any other failure tells nothing of the archive, which later runs can use.
        options = drop_archive(settings.get(JVM_OPTIONS, "")) if _CRASH in str(error) else None
        if options is None:
            raise
        return _create(settings | {JVM_OPTIONS: options})


def _create(settings: dict[str, str]) -> SparkSession:
    conf = SparkConf().setAll(list(settings.items()))
    # The JVM has a descriptor of its own: it may print after this one is closed.
    with tempfile.TemporaryFile() as console:
        try:
            with _own_interrupt():
                gateway = None if _has_jvm() else jvm.gateway(settings, conf, console)
                context = SparkContext(conf=conf, gateway=gateway)
            session = SparkSession(context)
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(f"Spark cannot start: {_reason(error, console)}") from error
    context.setLogLevel("ERROR")
    return session


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Afterwards Ctrl-C does what it did before: PySpark puts a handler of its own, which asks the JVM first."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        # `getsignal` returns None for a handler that Python did not install. `signal` raises in any other thread.
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _has_jvm() -> bool:
    """Return True if no JVM has to be started."""
    return submitted() or getattr(SparkContext, "_gateway", None) is not None


def _reason(error: Exception, console: IO[bytes]) -> str:
    """Return the line with the reason: the exception's, or the JVM's."""
    if isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED":
        return last_words(console) or "the Java process ended; is Java 17 installed and JAVA_HOME right?"
    text = str(getattr(error, "java_exception", None) or error)
    if "stopped SparkContext" in text:
        return "its master gave up; is the --spark-master URL right and reachable?"
    return text.splitlines()[0] if text else type(error).__name__


# -- progress, by Spark's own status tracker


class Reached(Protocol):
    """Takes what is done, and of how much."""

    def reach(self, done: int, total: int) -> None:
        """Report `done` of the `total` known by now."""


Opens = Callable[[str], AbstractContextManager[Reached]]
"""Shows a phase of the run under a name."""


@contextmanager
def stages_shown(phase: Opens, every_s: float = POLL_EVERY_S) -> Iterator[None]:
    """Meanwhile the tasks of Spark's running stages are counted, in a phase of their own while there are any.

    By a thread: what cannot be asked is not shown, and is never an error of the run.
    """
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(phase, every_s, over), name="spark-stages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Not for ever: the thread may hang in a call to the JVM, and the run does not depend on it.
        thread.join(every_s)


def _watch(phase: Opens, every_s: float, over: threading.Event) -> None:
    with ExitStack() as shown:
        bar: Reached | None = None
        while not over.wait(every_s):
            done, total = tasks()
            if total:
                bar = bar or shown.enter_context(phase(TASKS_NAME))
                bar.reach(done, total)
            else:
                shown.close()
                bar = None


def tasks() -> tuple[int, int]:
    """Return how many tasks of the running stages are done, and how many there are; zeros while nothing runs."""
    done = total = 0
    with suppress(Exception):
        context = SparkContext._active_spark_context
        if context is not None:
            tracker = context.statusTracker()
            for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()):
                if stage is not None:  # Spark may have dropped it since
                    done, total = done + stage.numCompletedTasks, total + stage.numTasks
    return done, total
