"""Settings of Spark for a check, known without PySpark, so that its JVM can start before that is imported.

Whose Spark runs: that of SPARK_HOME where it is set, as it is on the nodes of a cluster; else PySpark's own. PySpark
starts the jars of SPARK_HOME whatever its own version is, and the two only understand each other if they are of one
version. So the PySpark that comes with SPARK_HOME is taken, as spark-submit does.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from status_tool.errors import ConfigurationError

LOCAL_MASTER = "local[*]"
APP_NAME = "status-tool"
JVM_OPTIONS = "spark.driver.extraJavaOptions"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_LOCAL_NAME = re.compile(r"local(\[.*\])?")

_DEFAULTS = {
    "spark.app.name": APP_NAME,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.execution.useObjectHashAggregateExec": "false",
}
"""For every session made here. Small reducers are merged, up to 64 MiB each. Rows come to the aggregations sorted, and
are not hashed until there is no room for more groups, and then sorted again."""

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    # Tasks run in the driver: nobody else on the network needs its ports.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "8",
    JVM_OPTIONS: "-XX:+UseSerialGC",
}
_SHORT_RUN = "-XX:TieredStopAtLevel=1"
"""Compiles sooner and less."""
_LONG_RUN = "-XX:-DontCompileHugeMethods"
"""Spark makes one method of a whole stage; by default the JVM compiles none as long as those of a check get."""
SHORT_RUN_BYTES = 16 << 20
"""A check of a status file up to this size, some hundred thousand streams, is over before compiling well pays."""
SMALL_BYTES = 1 << 20
"""A status file up to this size, some ten thousand streams, is held and judged by the tool's own process."""

_NOT_DIRECT = (
    "spark.archives",
    "spark.api",
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.files",
    "spark.jars",
    "spark.kerberos",
    "spark.plugins",
    "spark.properties",
    "spark.remote",
    "spark.sql.catalog",
    "spark.sql.extensions",
    "spark.sql.hive",
    "spark.submit",
)
"""Beginnings of settings that `spark-submit` acts on before the JVM starts, or that ask for jars that we leave out."""
_OF_A_USER = ("SPARK_", "PYSPARK_SUBMIT_ARGS")
"""Beginnings of variables that Spark's scripts and its launcher act on."""
_OF_PYSPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""Those that PySpark sets in this process, once it has run."""


def submitted() -> bool:
    """Return True if this process was started by spark-submit, which has chosen the master."""
    return _SUBMITTED in os.environ


def is_asked_for(master: str | None, conf: Collection[tuple[str, str]]) -> bool:
    """Return True if somebody says how Spark is to run."""
    return master is not None or bool(conf) or submitted()


def runs_here(master: str | None) -> bool:
    """Return True if Spark's tasks run in the driver's own JVM, and so see this machine's files and code."""
    return _LOCAL_NAME.fullmatch(master or "") is not None


def is_short(status_file: Path) -> bool:
    """Return True if a check of this status file is a short run, or if the file cannot be seen."""
    return _is_up_to(SHORT_RUN_BYTES, status_file)


def is_small(status_file: Path) -> bool:
    """Return True if this process judges the rows of such a file itself, or if the file cannot be seen."""
    return _is_up_to(SMALL_BYTES, status_file)


def _is_up_to(size: int, file: Path) -> bool:
    try:
        return file.stat().st_size <= size
    except OSError:
        return True


def spark_settings_with(master: str | None, conf: dict[str, str], small: bool) -> dict[str, str]:
    """Return all settings of a session. `conf` overrides, and its JVM options are added to ours."""
    settings = dict(_DEFAULTS)
    if not submitted():
        settings["spark.master"] = master or LOCAL_MASTER
        if settings["spark.master"].startswith("local"):
            settings |= _LOCAL
            settings[JVM_OPTIONS] += f" {_SHORT_RUN if small else _LONG_RUN}"
            _workers_like_this_process()
    if JVM_OPTIONS in conf and JVM_OPTIONS in settings:
        conf = conf | {JVM_OPTIONS: f"{settings[JVM_OPTIONS]} {conf[JVM_OPTIONS]}"}
    return settings | conf


def starts_directly(settings: dict[str, str]) -> bool:
    """Return True if the JVM can start without Spark's scripts: PySpark's own Spark, here, with our settings."""
    return (
        not submitted()
        and runs_here(settings.get("spark.master"))
        and not any(name.startswith(_OF_A_USER) for name in os.environ.keys() - set(_OF_PYSPARK))
        and not any(name.startswith(_NOT_DIRECT) for name in settings)
    )


def _workers_like_this_process() -> None:
    """Let Spark's Python workers run the same interpreter and find this package as well."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    root = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in (root, *known) if path)


OLDEST, BELOW = "4.1", "5"
"""The versions of Spark that will do: what pyproject.toml asks of pyspark."""
_NEEDED = f"Spark {OLDEST} or newer, below {BELOW}"
_JAR = re.compile(r"spark-core_[\d.]+-(\d+)\.(\d+)(.*)\.jar")


def take_spark() -> None:
    """Before PySpark is imported: put SPARK_HOME's on the path.

    Raises `ConfigurationError` if there is none, or one that is too old, or no PySpark at all.
    """
    home = os.environ.get("SPARK_HOME")
    if home:
        for archive in _python(Path(home)):
            if archive not in sys.path and "pyspark" not in sys.modules:
                sys.path.insert(0, archive)
    elif find_spec("pyspark") is None:
        raise ConfigurationError(
            f"PySpark is not installed: set SPARK_HOME to a {_NEEDED}, or `pip install 'pyspark>={OLDEST},<{BELOW}'`"
        )


def _python(home: Path) -> list[str]:
    """Return the archives of PySpark and Py4J, which every Spark brings."""
    jars = [found for jar in home.glob("jars/spark-core_*.jar") if (found := _JAR.fullmatch(jar.name))]
    archives = [*map(str, home.glob("python/lib/py4j-*-src.zip")), *map(str, home.glob("python/lib/pyspark.zip"))]
    if not jars or len(archives) < 2:
        raise ConfigurationError(
            f"SPARK_HOME is {home}, where there is no Spark: set it to a {_NEEDED}, or unset it to use the installed "
            "PySpark"
        )
    major, minor, rest = jars[0].groups()
    if not _numbers(OLDEST) <= (int(major), int(minor)) < _numbers(BELOW):
        raise ConfigurationError(
            f"SPARK_HOME is {home}, Spark {major}.{minor}{rest}: {_NEEDED}, is required; unset SPARK_HOME to use the "
            "installed PySpark"
        )
    return archives


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
