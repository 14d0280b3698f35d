"""The servers' class path, resolved by Maven once for each version of HBase, and the compiled admin."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from .errors import LabError

HOME = Path(__file__).resolve().parent
TARGET = HOME / "target"
POM = HOME / "pom.xml"
CLASSES = TARGET / "classes"
PROFILES: dict[str, list[str]] = {"2.6.1": [], "2.5.8": ["-P", "hbase-2.5"]}
YARN = ["-P", "yarn"]
_JAVA_6 = 50
"""In a class file."""


def servers_classpath(hbase_version: str) -> list[Path]:
    """The admin's classes and the jars of that HBase version; LabError for an unknown one or if Maven fails.

    Maven runs only when the pom or the Java sources have changed since. Safe to call from several processes.
    """
    if hbase_version not in PROFILES:
        raise LabError(f"HBase {hbase_version} is not one of {', '.join(PROFILES)}")
    TARGET.mkdir(exist_ok=True)
    with _lock(TARGET / "lock"):
        _compile()
        # Last, because the shared archive of classes takes no folder and covers only a prefix.
        return [*_resolve(hbase_version, PROFILES[hbase_version]), CLASSES]


def yarn_classpath() -> list[Path]:
    """The jars of YARN's servers; LabError if Maven fails."""
    TARGET.mkdir(exist_ok=True)
    with _lock(TARGET / "lock"):
        return _resolve("yarn", YARN)


def shared_classes(hbase_version: str) -> Path | None:
    """The archive of classes made by `python -m tests.lab warm`, if there is one.

    A JVM ignores an archive that does not fit, so a stale one costs time only.
    """
    archive = archive_path(hbase_version)
    return archive if archive.exists() else None


def archive_path(hbase_version: str) -> Path:
    return TARGET / f"servers-{hbase_version}.jsa"


def archive_classes(hbase_version: str, lists: Iterable[Path]) -> Path:
    """Make the archive from what JVMs wrote by -XX:DumpLoadedClassList; LabError if the JVM refuses."""
    wanted = TARGET / f"servers-{hbase_version}.lst"
    jars = _resolve(hbase_version, PROFILES[hbase_version])
    names = {line for file in lists for line in file.read_text().splitlines() if _is_archivable(line)}
    names -= _of_old_format(names, jars)
    wanted.write_text("".join(f"{name}\n" for name in sorted(names)))
    archive = archive_path(hbase_version)
    fresh = archive.with_suffix(f".{os.getpid()}")
    command = [java(), "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={wanted}"]
    classpath = ":".join(map(str, jars))
    done = subprocess.run(
        [*command, f"-XX:SharedArchiveFile={fresh}", "-cp", classpath],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    # A JVM that has the old one mapped keeps it.
    return fresh.replace(archive)


def _is_archivable(line: str) -> bool:
    """Comments and classes of other loaders belong to the one process that wrote them."""
    return bool(line) and not line.startswith("#") and " source:" not in line


def _of_old_format(names: Set[str], jars: Iterable[Path]) -> set[str]:
    """Those that were compiled for Java 5 or older: a JVM rewrites them when it links them.

    It crashes where an archive has them at an address at which it is shared, and so cannot be written.
    """
    old = set[str]()
    for jar in jars:
        with zipfile.ZipFile(jar) as classes:
            for file in classes.namelist():
                if file.endswith(".class") and (name := file.removesuffix(".class")) in names:
                    with classes.open(file) as opened:
                        major = int.from_bytes(opened.read(8)[6:])
                    old |= {name} if major < _JAVA_6 else set()
    return old


def java() -> str:
    """The java command: JAVA_HOME's, or the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _compile() -> None:
    stamp = TARGET / "classes.sha256"
    wanted = _digest([POM, *sorted((HOME / "src").rglob("*.java"))])
    if _read(stamp) != wanted or not CLASSES.is_dir():
        stamp.unlink(missing_ok=True)
        _maven("compile")
        stamp.write_text(wanted)


def _resolve(name: str, profile: Sequence[str]) -> list[Path]:
    listing = TARGET / f"classpath-{name}.txt"
    stamp = TARGET / f"classpath-{name}.sha256"
    wanted = _digest([POM])
    # The jars may be gone although the listing is not: the local repository is not ours.
    if _read(stamp) != wanted or not all(jar.exists() for jar in _jars(listing)):
        stamp.unlink(missing_ok=True)
        _maven(*profile, "dependency:build-classpath", f"-Dmdep.outputFile={listing}")
        stamp.write_text(wanted)
    return _jars(listing)


def _jars(listing: Path) -> list[Path]:
    return [Path(jar) for jar in _read(listing).split(":")]


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(HOME)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _maven(*arguments: str) -> None:
    command = ["mvn", "-q", "-B", "-f", str(POM), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
