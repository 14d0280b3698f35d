"""The Spark session: created for a check, quiet, and stopped only by its creator."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from status_tool.clients.java import java, last_words
from status_tool.errors import ConfigurationError
from status_tool.spark import jvm
from status_tool.spark.class_archive import NewArchive, drop_archive, jvm_option
from status_tool.spark.cluster import runs_here, ship_code

LOCAL_MASTER = "local[*]"
APP_NAME = "status-tool"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_CRASH = "fatal error has been detected"
"""What a JVM prints that crashes."""

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.execution.useObjectHashAggregateExec": "false",
}
"""For every session made here. Small reducers are merged, up to 64 MiB each. Rows come to the aggregations sorted, and
are not hashed until there is no room for more groups, and then sorted again (docs/decisions.md, 224)."""

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "8",
    _JVM_OPTIONS: "-XX:+UseSerialGC",
}
_SMALL_QUERY = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling code and planning anew between stages costs more than a small check itself."""
_SMALL_JVM = " -XX:TieredStopAtLevel=1"
"""Compiles sooner and less: pays for checks of up to some hundred thousand streams."""


@contextmanager
def spark_session(
    master: str | None = None, conf: Iterable[tuple[str, str]] = (), *, small: bool = True
) -> Iterator[SparkSession]:
    """A session for one check; stopped at the end unless it existed before.

    `master` applies only where none was submitted (default `local[*]`). `conf` overrides every setting.
    `small`: tune the JVM for a short run. Nothing is printed: the JVM's console output is kept
    aside and shown only if it cannot start. Raises ConfigurationError then.
    """
    existing = SparkSession.getActiveSession()
    if existing is not None:
        yield existing
        return
    settings, new_archive = _archived(_settings(master, dict(conf), small))
    session = _create_or_again(settings)
    if new_archive is not None:
        new_archive.keep(SparkContext._gateway.proc)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(prefix="status-tool-") as folder:
        try:
            if not runs_here(session.sparkContext.master):
                ship_code(session.sparkContext, Path(folder))
            yield session
        except BaseException:
            if new_archive is not None:
                new_archive.abandoned = True
            raise
        finally:
            with suppress(Exception):
                session.stop()


def forget_session() -> None:
    """Drop a session whose JVM has ended or does not answer, so that the next one starts another JVM."""
    gateway = getattr(SparkContext, "_gateway", None)
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


def submitted() -> bool:
    """Whether this process was started by spark-submit, which has chosen the master."""
    return _SUBMITTED in os.environ


def _settings(master: str | None, conf: dict[str, str], small: bool) -> dict[str, str]:
    settings = dict(_DEFAULTS)
    if not submitted():
        settings["spark.master"] = master or LOCAL_MASTER
        if settings["spark.master"].startswith("local"):
            settings |= _LOCAL
            settings[_JVM_OPTIONS] += _SMALL_JVM if small else ""
            _workers_like_this_process()
    if _JVM_OPTIONS in conf and _JVM_OPTIONS in settings:
        conf[_JVM_OPTIONS] = f"{settings[_JVM_OPTIONS]} {conf[_JVM_OPTIONS]}"
    return settings | conf


def _archived(settings: dict[str, str]) -> tuple[dict[str, str], NewArchive | None]:
    """With the archive of classes, where a JVM is started here; a user's own choice of one stands."""
    options = settings.get(_JVM_OPTIONS, "")
    local = not submitted() and settings.get("spark.master", "").startswith("local")
    if not local or getattr(SparkContext, "_gateway", None) is not None or "Archive" in options or "-Xshare" in options:
        return settings, None
    option, new_archive = jvm_option()
    return (settings | {_JVM_OPTIONS: f"{options} {option}"}, new_archive) if option else (settings, None)


def _workers_like_this_process() -> None:
    """Let Spark's Python workers run the same interpreter and find this package as well."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    root = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in (root, *known) if path)


def _create_or_again(settings: dict[str, str]) -> SparkSession:
    """A session; once more without the archive of classes where that has crashed the JVM."""
    try:
        return _create(settings)
    except ConfigurationError as error:
        options = drop_archive(settings.get(_JVM_OPTIONS, "")) if _CRASH in str(error) else None
        if options is None:
            raise
        return _create(settings | {_JVM_OPTIONS: options})


def _create(settings: dict[str, str]) -> SparkSession:
    conf = SparkConf().setAppName(APP_NAME).setAll(list(settings.items()))
    with tempfile.TemporaryFile() as console:
        try:
            with _own_interrupt():
                context = SparkContext(conf=conf, gateway=_gateway(conf, console))
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
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _gateway(conf: SparkConf, console: IO[bytes]) -> Any:
    """A new JVM whose output goes to `console`, permanently; None: one is already running."""
    if submitted() or getattr(SparkContext, "_gateway", None) is not None:
        return None
    java("Spark")
    return jvm.launch(conf, console)


def _reason(error: Exception, console: IO[bytes]) -> str:
    """The line with the reason: the exception's, or the JVM's."""
    if isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED":
        return last_words(console) or "the Java process ended; is Java 17 installed and JAVA_HOME right?"
    text = str(getattr(error, "java_exception", None) or error)
    if "stopped SparkContext" in text:
        return "its master gave up; is the --spark-master URL right and reachable?"
    return text.splitlines()[0] if text else type(error).__name__
