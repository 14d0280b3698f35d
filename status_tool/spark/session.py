"""The Spark session: created for a check, quiet, and stopped only by its creator."""

from __future__ import annotations

import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from status_tool.clients.java import last_words
from status_tool.errors import ConfigurationError
from status_tool.spark import jvm
from status_tool.spark.class_archive import drop_archive
from status_tool.spark.cluster import ship_code
from status_tool.spark.settings import (
    JVM_OPTIONS,
    archived,
    is_asked_for,
    runs_here,
    spark_settings_with,
    submitted,
)
from status_tool.temporary import temporary_folder

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
                ship_code(session.sparkContext, folder)
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
                context = SparkContext(conf=conf, gateway=_gateway(settings, conf, console))
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


def _gateway(settings: dict[str, str], conf: SparkConf, console: IO[bytes]) -> Any:
    """Return a new JVM whose output goes to `console`, permanently; None: one is already running."""
    return None if _has_jvm() else jvm.gateway(settings, conf, console)


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
