"""The start of Spark's JVM without the scripts and the JVM that `spark-submit` puts before it.

Spark's launcher is asked once which options its JVM needs (it opens the modules of the JDK that Spark uses); the answer
is kept in the user's cache. Jars that no check uses are left out of the class path: what their services do when a
session starts (Spark's machine learning registers functions by reflection) is a seventh of a small check.

The cache also holds an archive of the classes that the JVM loads: later runs start in less time. Class data sharing of
the JDK (JEP 350, `-XX:ArchiveClassesAtExit`): a JVM writes what it has loaded when it ends, and later ones map the file
instead of reading, checking and linking some ten thousand classes. A JVM ignores an archive that is not of its own
build and class path. A damaged one may crash it: hence the checksum in the name, and a second start without one
(`spark.session`).
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shlex
import stat
import subprocess
import sys
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from status_tool.atomic import atomic_write
from status_tool.clients.java import java, spark_homes
from status_tool.errors import ConfigurationError
from status_tool.spark.settings import JVM_OPTIONS, starts_directly

CACHE_VARIABLE = "STATUS_TOOL_CACHE"
"""The folder instead of the user's cache; `off`: nothing is kept or used."""
WRITTEN_S = 120
"""A JVM writes its archive within seconds; one that does not is killed."""
_OLDEST_JDK = 17
_USE = "-XX:SharedArchiveFile="
_ENDING = ".jsa"
_CHUNK_BYTES = 1 << 20
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
    jars = [str(jar) for jar in sorted((homes[0] / "jars").glob("*.jar")) if not jar.name.startswith(_UNUSED)]
    # With `UsePerfData`, a JVM that is killed leaves a file in /tmp/hsperfdata_USER.
    own = [f"-Xmx{settings['spark.driver.memory']}", "-XX:-UsePerfData", f"-Djava.io.tmpdir={folder}"]
    properties = [f"-D{name}={value}" for name, value in settings.items()]
    chosen = shlex.split(settings[JVM_OPTIONS])
    return [str(program), "-cp", os.pathsep.join(jars), *own, *options, *chosen, *properties, _MAIN]


def as_scripts_set() -> dict[str, str]:
    """Variables that Spark's scripts and PySpark set: by them its Python workers find PySpark."""
    return {"SPARK_HOME": str(spark_homes()[0]), "PYTHONHASHSEED": "0", "SPARK_CONNECT_MODE": "0"}


def _module_options(program: Path, home: Path) -> list[str] | None:
    kept = _kept("options")
    if kept is not None:
        with contextlib.suppress(OSError, ValueError):
            # An option can load code (`-javaagent`): nobody else may have written the file.
            if _is_ours(kept):
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


@dataclass
class NewArchive:
    """One that the JVM started now will write when it ends."""

    written: Path
    """The JVM writes it under this name: `spark-KEY.PID`."""
    abandoned: bool = False
    """True if the run was ended early: then nobody waits for it."""

    def keep(self, jvm: subprocess.Popen[bytes]) -> None:
        """End the JVM when this process ends, and give the archive its name once it is whole.

        The verdict has been printed by then, so what ends this process meanwhile loses the archive and nothing else.
        """
        atexit.register(self._end, jvm)

    def _end(self, jvm: subprocess.Popen[bytes]) -> None:
        try:
            if self.abandoned:
                jvm.kill()
            elif self._has_written(jvm):
                with self.written.open("rb") as stream:
                    os.fsync(stream.fileno())
                kept = self.written.with_suffix(f".{_checksum(self.written)}{_ENDING}")
                os.replace(self.written, kept)
                _drop_others(kept)
        except (OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
            jvm.kill()
        finally:
            with contextlib.suppress(OSError):
                self.written.unlink(missing_ok=True)

    def _has_written(self, jvm: subprocess.Popen[bytes]) -> bool:
        """Ends the JVM and waits for what it writes then."""
        if sys.stderr.isatty():
            print("status-tool: keeping Spark's classes for the next start, once", file=sys.stderr)
        if jvm.stdin is not None:
            jvm.stdin.close()  # which ends it
        return jvm.wait(WRITTEN_S) == 0 and self.written.is_file()


def archived(settings: dict[str, str]) -> tuple[dict[str, str], NewArchive | None]:
    """Return the settings with the archive of classes if a JVM is started directly. A user's own choice stands."""
    options = settings.get(JVM_OPTIONS, "")
    if not starts_directly(settings) or "Archive" in options or "-Xshare" in options:
        return settings, None
    option, new_archive = jvm_option()
    return (settings | {JVM_OPTIONS: f"{options} {option}"}, new_archive) if option else (settings, None)


def jvm_option() -> tuple[str, NewArchive | None]:
    """The JVM's option, with the archive that it will write if there is none yet; empty: none can be used or made."""
    written = _kept("spark")
    if written is None or " " in str(written):  # Spark splits the options at blanks
        return "", None
    for archive in written.parent.glob(f"{written.name}.*{_ENDING}"):
        with contextlib.suppress(FileNotFoundError):  # another run has just dropped it
            if not _is_ours(archive):
                return "", None
            if archive.name == f"{written.name}.{_checksum(archive)}{_ENDING}":
                return f"{_USE}{archive}", None
    written = written.with_suffix(f".{os.getpid()}")
    return f"-XX:ArchiveClassesAtExit={written}", NewArchive(written)


def drop_archive(options: str) -> str | None:
    """Delete the archive that a JVM's options name, and return them without it; None if they name none."""
    for option in options.split():
        if option.startswith(_USE) and option.endswith(_ENDING):
            Path(option.removeprefix(_USE)).unlink(missing_ok=True)
            return options.replace(option, "").rstrip()
    return None


def _checksum(file: Path) -> str:
    """Return the CRC-32 of the file, in less than half of the time that the JVM's own check of its archives takes."""
    found = file.stat()
    return _checksum_of(file, found.st_ino, found.st_mtime_ns)


@cache
def _checksum_of(file: Path, _inode: int, _modified_ns: int) -> str:
    """Compute it once: a run asks for the option when it begins, and again for its session."""
    crc = 0
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            crc = zlib.crc32(chunk, crc)
    return f"{crc:08x}"


def _drop_others(archive: Path) -> None:
    """Delete archives of earlier JDKs and Sparks, and what a process that was killed left behind."""
    for file in archive.parent.glob("spark-*"):
        # A name that ends in a PID is of a run whose JVM may still be writing.
        running = file.suffix[1:].isdigit() and Path(f"/proc/{file.suffix[1:]}").exists()
        if file != archive and not running:
            file.unlink(missing_ok=True)


def _kept(what: str) -> Path | None:
    """Return where something of this JDK and this Spark is kept; None if nothing can be.

    The JVM rejects an archive if the JDK build or any Spark jar (name, size, mtime) differs.
    """
    folder, release, homes = _cache_folder(), _release(), spark_homes()
    if folder is None or release is None or not homes:
        return None
    digest = hashlib.sha256(release.read_bytes())
    for jar in sorted((homes[0] / "jars").glob("*.jar")):
        found = jar.stat()
        digest.update(f"{jar}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return folder / f"{what}-{digest.hexdigest()[:16]}"


def _release() -> Path | None:
    """Return the JDK's `release` file; None if it is too old to write an archive, or unknown."""
    try:
        release = java("Spark").resolve().parents[1] / "release"
        version = next(line for line in release.read_text().splitlines() if line.startswith("JAVA_VERSION="))
    except (ConfigurationError, OSError, StopIteration, UnicodeDecodeError):
        return None
    major = version.partition('"')[2].partition(".")[0]
    return release if major.isdigit() and int(major) >= _OLDEST_JDK else None


def _cache_folder() -> Path | None:
    """Made where it is missing; None if it cannot be used."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen == "off" or not sys.platform.startswith("linux"):
        return None
    try:
        default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "status-tool"
        folder = Path(chosen) if chosen else default
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if _is_ours(folder) and os.access(folder, os.W_OK | os.X_OK) else None


def _is_ours(path: Path) -> bool:
    """Return True if nobody else can have written to the path: a JVM runs the code in an archive of classes."""
    found = path.stat()
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o022
