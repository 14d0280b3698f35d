"""Java processes: which Java, which jars, and why one has ended."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO

from status_tool.errors import ConfigurationError
from status_tool.temporary import held_folder

JAR = "status-tool-coprocessors.jar"
"""The trackers, and what reads HDFS by Hadoop's client."""
PACKAGE = Path(__file__).parents[1]
READER = Path("io", "github", "statustool", "hdfs")
"""The Java package that reads HDFS. It needs nothing else of the jar."""
_COMPILER = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "-nowarn", "--release", "17")
_HADOOP = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "slf4j-api-*.jar")
"""Hadoop's client as Spark ships it, with all that it needs."""

_REASON = re.compile(
    r"^(?!\s*at )(?!.*bad array)(?!Error occurred during init)"
    r".*(Exception|[Ee]rror|Unrecognized|Invalid|Too small|JAVA_HOME|No such file)"
)
"""A line of a launcher or a JVM that says why it did not start; no stack frame."""
_PREFIX = re.compile(r'^Exception in thread "main" [\w.$]+: ')


def java(whose: str) -> Path:
    """Return the path of Java; `whose` names the user of it in the error.

    Raises `ConfigurationError` if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(Path(home, "bin", "java"), os.X_OK):
        raise ConfigurationError(f"JAVA_HOME is {home}, where there is no bin/java: set it to a JDK 17")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    if found is None:
        raise ConfigurationError(f"{whose} needs Java: install a JDK 17, or set JAVA_HOME to one")
    return Path(found)


def realms_option() -> Sequence[str]:
    """Return a JVM's option for the krb5.conf of `KRB5_CONFIG`. Java itself reads `KRB5CCNAME` alone."""
    # MIT Kerberos takes several files there, Java one.
    realms = os.environ.get("KRB5_CONFIG", "").partition(os.pathsep)[0]
    return (f"-Djava.security.krb5.conf={realms}",) if realms else ()


def jar() -> Path:
    """Return the path of our jar: built beside this package in its sources, else as the wheel carries it."""
    for file in (PACKAGE.parent / "coprocessor_stubs" / "target" / JAR, PACKAGE / "assets" / JAR):
        if file.is_file():
            return file
    raise ConfigurationError(f"{JAR} is not here: build it (cd coprocessor_stubs && mvn -q package), or take a wheel")


def hadoop_jars() -> Sequence[Path]:
    """Return the jars of Hadoop's client in `SPARK_HOME`, else in pyspark.

    Raises `ConfigurationError` if neither has it.
    """
    for home in spark_homes():
        found = [sorted((home / "jars").glob(pattern)) for pattern in _HADOOP]
        if all(found):
            return [jars[-1] for jars in found]
    raise ConfigurationError("Spark's jars have no Hadoop client here (hadoop-client-api, hadoop-client-runtime)")


def hadoop_class_path() -> str:
    """Return the class path for `java -cp`: what reads HDFS, and Hadoop's client.

    Raises `ConfigurationError` if one is missing.
    """
    hadoop = os.pathsep.join(map(str, hadoop_jars()))
    try:
        ours = jar()
    except ConfigurationError:
        if (compiled := _compiled(hadoop)) is None:
            raise
        ours = compiled
    return f"{ours}{os.pathsep}{hadoop}"


@cache
def _compiled(hadoop: str) -> Path | None:
    """Return a folder with the classes that read HDFS, compiled from their sources; None if that is not possible.

    An installation without the jar has the sources. Compiling takes about a second.
    """
    places = (PACKAGE.parent / "coprocessor_stubs" / "src" / "main" / "java", PACKAGE / "assets")
    sources = next(filter(None, (sorted((place / READER).glob("[A-Z]*.java")) for place in places)), [])
    if not sources:
        return None
    compiler = java("Hadoop's own client").resolve().with_name("javac")
    try:
        # Nobody closes the lock: the classes are needed as long as this process lives.
        folder, _ = held_folder()
        subprocess.run([compiler, *_COMPILER, "-cp", hadoop, "-d", folder, *sources], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return folder


def hbase_class_path(home: Path | None) -> str:
    """Our jar and HBase with all that it needs: `bin/hbase classpath` of `home`, else of the PATH.

    Without either it is `HBASE_CLASSPATH`. Raises `ConfigurationError`.
    """
    found = home / "bin" / "hbase" if home else shutil.which("hbase")
    if found is not None:
        try:
            done = subprocess.run([found, "classpath"], capture_output=True, text=True, check=False)
        except OSError as error:
            raise ConfigurationError(f"{found} cannot be started: {error.strerror}") from None
        known = (done.stdout.strip().splitlines() or [""])[-1]
        if done.returncode or not known:
            why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise ConfigurationError(f"`{found} classpath` failed: {why}")
    else:
        known = os.environ.get("HBASE_CLASSPATH", "")
        if not known:
            raise ConfigurationError(
                "HBase's classes are needed: give --hbase-home DIR, or have `hbase` on the PATH, or set "
                "HBASE_CLASSPATH to what `hbase classpath` prints on another machine"
            )
    return os.pathsep.join((str(jar()), known))


def spark_homes() -> list[Path]:
    """Return SPARK_HOME and PySpark's own Spark, if they exist."""
    # An import of PySpark would take time.
    package = importlib.util.find_spec("pyspark")
    folders = [os.environ.get("SPARK_HOME") or "", *(package.submodule_search_locations or () if package else ())]
    return [Path(folder) for folder in folders if folder]


def last_words(console: IO[bytes]) -> str | None:
    """Return the line with the reason from the output of a launcher and its JVM; None if there is none."""
    console.seek(0)
    said = console.read().decode(errors="replace").splitlines()
    reason = next((line.strip() for line in said if _REASON.search(line)), None)
    return None if reason is None else _PREFIX.sub("", reason)
