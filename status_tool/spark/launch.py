"""The start of Spark's JVM without the scripts and the JVM that `spark-submit` puts before it.

Spark's launcher is asked once which options its JVM needs (it opens the modules of the JDK that Spark uses); the answer
is kept in the user's cache. Jars that no check uses are left out of the class path: what their services do when a
session starts (Spark's machine learning registers functions by reflection) is a seventh of a small check.

So is an archive of the classes that the JVM loads (`clients.class_archive`). One that is damaged may crash it: hence a
second start without one (`spark.session`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
from pathlib import Path

from status_tool.atomic import atomic_write
from status_tool.clients.class_archive import NewArchive, is_ours, jvm_option, kept_as
from status_tool.clients.java import java, spark_homes
from status_tool.spark.settings import JVM_OPTIONS, starts_directly

_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
_LAUNCHER = "org.apache.spark.launcher.Main"
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_ASKED_S = 60
_UNUSED = (
    "breeze",
    "datanucleus",
    "derby",
    "hive-",
    "kubernetes-",
    "spark-connect_",
    "spark-graphx",
    "spark-hive",
    "spark-kubernetes",
    "spark-mllib",
    "spark-pipelines",
    "spark-streaming",
    "spark-yarn",
    "spire",
    "vertx",
    "volcano",
)
"""Beginnings of the names of jars that no check uses: other clusters' resource managers, Hive, machine learning."""


def direct_command(settings: dict[str, str], folder: Path) -> list[str] | None:
    """Return a command with every setting as a property, as `spark-submit` sets them.

    None if Spark's launcher gives no options.

    `folder` takes the temporary files of the JVM. Raises `ConfigurationError` where there is no Java.
    """
    program, homes = java("Spark"), spark_homes()
    options = _module_options(program, homes[0]) if homes else None
    if options is None:
        return None
    jars = [str(jar) for jar in _jars() if not jar.name.startswith(_UNUSED)]
    # With `UsePerfData`, a JVM that is killed leaves a file in /tmp/hsperfdata_USER.
    own = [f"-Xmx{settings['spark.driver.memory']}", "-XX:-UsePerfData", f"-Djava.io.tmpdir={folder}"]
    properties = [f"-D{name}={value}" for name, value in settings.items()]
    chosen = shlex.split(settings[JVM_OPTIONS])
    return [str(program), "-cp", os.pathsep.join(jars), *own, *options, *chosen, *properties, _MAIN]


def as_scripts_set() -> dict[str, str]:
    """Variables that Spark's scripts and PySpark set: by them its Python workers find PySpark."""
    return {"SPARK_HOME": str(spark_homes()[0]), "PYTHONHASHSEED": "0", "SPARK_CONNECT_MODE": "0"}


def _module_options(program: Path, home: Path) -> list[str] | None:
    kept = kept_as("options", _jars())
    if kept is not None:
        with contextlib.suppress(OSError, ValueError):
            # An option can load code (`-javaagent`): nobody else may have written the file.
            if is_ours(kept):
                return [str(option) for option in json.loads(kept.read_text(encoding="utf-8"))]
    options = _asked(program, home)
    if kept is not None and options is not None:
        # Without the file, the next run only asks the launcher again.
        with contextlib.suppress(Exception), atomic_write(kept) as stream:
            json.dump(options, stream)
    return options


def _asked(program: Path, home: Path) -> list[str] | None:
    command = [str(program), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", str(home / "jars" / "*")]
    try:
        core = next((home / "jars").glob("spark-core_*.jar")).name
        told = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": core.removeprefix("spark-core_").partition("-")[0]}
        answer = subprocess.run(
            [*command, _LAUNCHER, _SUBMIT, "pyspark-shell"],
            capture_output=True,
            text=True,
            timeout=_ASKED_S,
            env=os.environ | told,
            process_group=0,
            check=True,
        )
        words = [word.strip() for word in answer.stdout.split("\0")]
        after = words[words.index("-cp") + 2 : words.index(_SUBMIT)]
    except (OSError, subprocess.SubprocessError, StopIteration, ValueError):
        return None
    return [word for word in after if not word.startswith("-Xmx")]  # `direct_command` sets its own


def archived(settings: dict[str, str]) -> tuple[dict[str, str], NewArchive | None]:
    """Return the settings with the archive of classes if a JVM is started directly. A user's own choice stands."""
    options = settings.get(JVM_OPTIONS, "")
    if not starts_directly(settings) or "Archive" in options or "-Xshare" in options:
        return settings, None
    option, new_archive = spark_option()
    return (settings | {JVM_OPTIONS: f"{options} {option}"}, new_archive) if option else (settings, None)


def spark_option() -> tuple[str, NewArchive | None]:
    """Return the option of Spark's JVM for its archive of classes, as `jvm_option` does."""
    return jvm_option("spark", _jars())


def _jars() -> list[Path]:
    homes = spark_homes()
    return sorted((homes[0] / "jars").glob("*.jar")) if homes else []
