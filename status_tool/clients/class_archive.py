"""Archives of the classes that our JVMs load, and what else is kept in the user's cache: later runs start in less time.

Class data sharing of the JDK (JEP 350, `-XX:ArchiveClassesAtExit`): a JVM writes what it has loaded when it ends, and
later ones map the file instead of reading, checking and linking thousands of classes. A JVM ignores an archive that is
not of its own build and class path. A damaged one may crash it: hence the checksum in the name.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import stat
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from status_tool.clients.java import java
from status_tool.errors import ConfigurationError

CACHE_VARIABLE = "STATUS_TOOL_CACHE"
"""The folder instead of the user's cache; `off`: nothing is kept or used."""
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
    """The JVM writes it under this name: `WHAT-KEY.PID`."""
    abandoned: bool = False
    """True if the run was ended early: then nobody waits for it."""

    def keep(self, jvm: subprocess.Popen[bytes]) -> None:
        """Finish it when this process ends.

        The verdict has been printed by then, so what ends this process meanwhile loses the archive and nothing else.
        """
        atexit.register(self._finish_late, jvm)

    def _finish_late(self, jvm: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
            self.finish(jvm)

    def finish(self, jvm: subprocess.Popen[bytes]) -> None:
        """End the JVM, and give the archive its name once it is whole.

        Raises `OSError`, `TimeoutExpired`; a JVM that has not ended by then is killed.
        """
        try:
            if self.abandoned:
                jvm.kill()
            elif self._has_written(jvm):
                with self.written.open("rb") as stream:
                    os.fsync(stream.fileno())
                kept = self.written.with_suffix(f".{_checksum(self.written)}{_ENDING}")
                os.replace(self.written, kept)
                _drop_others(kept)
        except BaseException:
            jvm.kill()
            raise
        finally:
            with contextlib.suppress(OSError):
                self.written.unlink(missing_ok=True)

    def _has_written(self, jvm: subprocess.Popen[bytes]) -> bool:
        """Ends the JVM and waits for what it writes then."""
        if sys.stderr.isatty():
            print("status-tool: keeping Java's classes for the next start, once", file=sys.stderr)
        if jvm.stdin is not None:
            jvm.stdin.close()  # which ends it
        return jvm.wait(WRITTEN_S) == 0 and self.written.is_file()


def jvm_option(what: str, jars: Sequence[Path]) -> tuple[str, NewArchive | None]:
    """Return the option of a JVM with these jars, and the archive that it will write if there is none yet.

    The option is empty if none can be used or made.
    """
    written = kept_as(what, jars)
    if written is None or " " in str(written):  # Spark splits the options at blanks
        return "", None
    for archive in written.parent.glob(f"{written.name}.*{_ENDING}"):
        with contextlib.suppress(FileNotFoundError):  # another run has just dropped it
            if not is_ours(archive):
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
    """Delete archives of its kind for earlier JDKs and jars, and what a process that was killed left behind."""
    for file in archive.parent.glob(f"{archive.name.partition('-')[0]}-*"):
        # A name that ends in a PID is of a run whose JVM may still be writing.
        running = file.suffix[1:].isdigit() and Path(f"/proc/{file.suffix[1:]}").exists()
        if file != archive and not running:
            file.unlink(missing_ok=True)


def kept_as(what: str, jars: Sequence[Path]) -> Path | None:
    """Return where something of this JDK and of these jars is kept, as `what`; None if nothing can be.

    The JVM rejects an archive if the JDK build or any jar (name, size, mtime) differs.
    """
    folder, release = _cache_folder(), _release()
    if folder is None or release is None or not jars:
        return None
    digest = hashlib.sha256(release.read_bytes())
    for jar in jars:
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
    return folder if is_ours(folder) and os.access(folder, os.W_OK | os.X_OK) else None


def is_ours(path: Path) -> bool:
    """Return True if nobody else can have written to the path: a JVM runs the code in an archive of classes."""
    found = path.stat()
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o022
