"""An archive of the classes that Spark's JVM loads, kept in the user's cache: later runs start in less time.

Class data sharing of the JDK (JEP 350, `-XX:ArchiveClassesAtExit`): a JVM writes what it has loaded when it ends, and
later ones map the file instead of reading, checking and linking some ten thousand classes. A JVM ignores an archive
that is not of its own build and class path. A damaged one may crash it: hence the checksum in the name, and a second
start without one (`spark.session`).
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import subprocess
import sys
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from status_tool.clients.java import java, spark_homes
from status_tool.errors import ConfigurationError
from status_tool.spark.cache import cache_folder, is_ours

WRITTEN_S = 120
"""A JVM writes its archive within seconds; one that does not is killed."""
_OLDEST_JDK = 17
_USE = "-XX:SharedArchiveFile="
_ENDING = ".jsa"
_CHUNK_BYTES = 1 << 20


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


def jvm_option() -> tuple[str, NewArchive | None]:
    """The JVM's option, with the archive that it will write if there is none yet; empty: none can be used or made."""
    folder, key = cache_folder(), start_key("direct")
    if folder is None or key is None:
        return "", None
    name = f"spark-{key}"
    if " " in str(folder):
        return "", None  # Spark splits the options at blanks
    for archive in folder.glob(f"{name}.*{_ENDING}"):
        with contextlib.suppress(FileNotFoundError):  # another run has just dropped it
            if not is_ours(archive):
                return "", None
            if archive.name == f"{name}.{_checksum(archive)}{_ENDING}":
                return f"{_USE}{archive}", None
    written = folder / f"{name}.{os.getpid()}"
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


def _release() -> Path | None:
    """Return the JDK's `release` file; None if it is too old to write an archive, or unknown."""
    try:
        release = java("Spark").resolve().parents[1] / "release"
        version = next(line for line in release.read_text().splitlines() if line.startswith("JAVA_VERSION="))
    except (ConfigurationError, OSError, StopIteration, UnicodeDecodeError):
        return None
    major = version.partition('"')[2].partition(".")[0]
    return release if major.isdigit() and int(major) >= _OLDEST_JDK else None


def start_key(what: str) -> str | None:
    """Return a cache key.

    The JVM rejects an archive if the JDK build or any Spark jar (name, size, mtime) differs.

    None where either is not there, or the JDK too old to write an archive.
    """
    release, homes = _release(), spark_homes()
    if release is None or not homes:
        return None
    jars = homes[0] / "jars"
    digest = hashlib.sha256(what.encode() + release.read_bytes())
    for jar in sorted(jars.glob("*.jar")):
        found = jar.stat()
        digest.update(f"{jar}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]
