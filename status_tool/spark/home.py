"""Whose Spark runs: that of SPARK_HOME where it is set, as it is on the nodes of a cluster; else PySpark's own.

PySpark starts the jars of SPARK_HOME whatever its own version is, and the two only understand each other if they are of
one version. So the PySpark that comes with SPARK_HOME is taken, as spark-submit does.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from status_tool.errors import ConfigurationError

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
