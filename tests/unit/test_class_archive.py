"""The archive of the classes that Spark's JVM loads: made once, used, replaced, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from status_tool.clients import class_archive
from status_tool.clients.class_archive import CACHE_VARIABLE, NewArchive, drop_archive
from status_tool.spark.launch import spark_option
from tests import spark_classes
from tests.pair import REPOSITORY

SAMPLE = REPOSITORY / "sample_status" / "complete"


def check(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The check of a sample's files, as a process with one of Spark's workers; without progress, however slow."""
    files = [str(SAMPLE / "master.status"), "--slave-status", str(SAMPLE / "slave.status")]
    options = ["--only", "hdfs", "--spark-master", "local[1]", "--report", str(folder / "page.html")]
    return subprocess.run(
        [sys.executable, "-m", "status_tool", "run", "-q", "-i", *files, *options, *more],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=folder,
    )


def put(archive: Path, content: bytes | bytearray) -> None:
    """Another file in its place: a JVM that is still ending may have mapped the one that was there."""
    new = archive.parent.parent / "new"
    new.write_bytes(content)
    new.chmod(0o400)
    new.replace(archive)


@pytest.mark.slow
@pytest.mark.spark
def test_it_is_made_once_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the run of `make setup`, for all later ones; one that is cut short or overwritten is made anew."""
    cache, log = Path(os.environ[CACHE_VARIABLE]), tmp_path / "classes"
    assert cache == spark_classes.FOLDER, "make setup: there is none for this JDK and this Spark"
    (archive,) = cache.glob("spark-*")
    assert archive.stat().st_size > 1 << 24
    made = archive.stat().st_mtime_ns
    checked = check(tmp_path, "--spark-conf", f"spark.driver.extraJavaOptions=-Xlog:class+load:file={log}")
    assert (checked.returncode, checked.stderr, archive.stat().st_mtime_ns) == (0, "", made), checked
    assert "complete" in checked.stdout
    assert log.read_text().count("org.apache.spark.sql") > 1_000
    loaded = [line for line in log.read_text().splitlines() if " org.apache.spark.sql" in line]
    assert sum("shared objects file (top)" in line for line in loaded) > len(loaded) / 2
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    content = archive.read_bytes()
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    for damaged in (content[: len(content) // 2], content[:-1] + bytes([content[-1] ^ 1])):
        put(cache / archive.name, damaged)
        option, new = spark_option()
        assert (option.partition("=")[0], new is None) == ("-XX:ArchiveClassesAtExit", False)


def test_what_others_could_have_written_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM runs what an archive holds."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    tmp_path.chmod(0o700)
    option, keep = spark_option()
    assert (option.startswith(f"-XX:ArchiveClassesAtExit={tmp_path}/spark-"), keep is None) == (True, False)
    archive = Path(option.partition("=")[2]).with_suffix(f".{zlib.crc32(b'classes'):08x}.jsa")
    archive.write_bytes(b"classes")
    archive.chmod(0o600)
    assert spark_option() == (f"-XX:SharedArchiveFile={archive}", None)
    archive.chmod(0o620)
    assert spark_option() == ("", None)
    archive.unlink()
    tmp_path.chmod(0o770)
    assert spark_option() == ("", None)


def test_one_that_another_run_drops_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that each write one, as those that begin together do, the last one drops the others'."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    tmp_path.chmod(0o700)
    option, _ = spark_option()
    archive = Path(option.partition("=")[2]).with_suffix(f".{zlib.crc32(b'classes'):08x}.jsa")
    for dropped_by in ("is_ours", "_checksum"):
        archive.write_bytes(b"classes")
        of = getattr(class_archive, dropped_by)

        def dropping(file: Path, of: Callable[[Path], Any] = of) -> Any:
            if file == archive:
                file.unlink()
            return of(file)

        monkeypatch.setattr(class_archive, dropped_by, dropping)
        assert spark_option()[0] == option
        monkeypatch.setattr(class_archive, dropped_by, of)


def test_none_without_a_folder_or_a_jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`off`, a cache that is a file, a folder with a blank, no JDK, and one that is too old."""
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    assert spark_option() == ("", None)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    assert spark_option() == ("", None)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "with blank"))
    assert spark_option() == ("", None)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    assert spark_option() != ("", None)
    for text in (None, "", 'JAVA_VERSION="11.0.2"\n', "JAVA_VERSION=?\n"):
        home = tmp_path / f"jdk{text!r:.5}"
        home.mkdir(exist_ok=True)
        if text is not None:
            (home / "release").write_text(text)
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert spark_option() == ("", None)


def test_one_that_crashes_the_jvm_goes(tmp_path: Path) -> None:
    """And the options start one without it; those without an archive stay as they are."""
    archive = tmp_path / "spark-a.7.jsa"
    archive.write_bytes(b"classes")
    assert drop_archive(f"-XX:+UseSerialGC -XX:SharedArchiveFile={archive}") == "-XX:+UseSerialGC"
    assert not archive.exists()
    assert drop_archive("-XX:+UseSerialGC") is None


class Jvm:
    """A process that ends when its stdin is closed, unless it is interrupted or killed first."""

    stdin = None

    def __init__(self, end: int | BaseException) -> None:
        self.end = end
        self.killed = False

    def wait(self, timeout: float) -> int:
        if isinstance(self.end, BaseException):
            raise self.end
        return self.end

    def kill(self) -> None:
        self.killed = True


@pytest.mark.parametrize(
    ("end", "abandoned", "kept", "killed"),
    [
        (0, False, True, False),
        (1, False, False, False),
        (0, True, False, True),
        (KeyboardInterrupt(), False, False, True),
        (subprocess.TimeoutExpired("java", 1), False, False, True),
    ],
)
def test_only_a_whole_one_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int | BaseException, abandoned: bool, kept: bool, killed: bool
) -> None:
    """Of a JVM that failed nothing is; what a killed process left goes with the next that is kept."""
    ends: list[tuple[Any, Any]] = []
    monkeypatch.setattr("status_tool.clients.class_archive.atexit.register", lambda *call: ends.append(call))
    written, others = tmp_path / f"spark-a.{os.getpid()}", {"spark-b.jsa", "spark-c.999999999"}
    for name in (written.name, *others):
        (tmp_path / name).write_bytes(b"classes")
    kept_as = f"spark-a.{zlib.crc32(b'classes'):08x}.jsa"
    jvm, new = Jvm(end), NewArchive(written)
    new.keep(jvm)  # type: ignore[arg-type]
    new.abandoned = abandoned
    ((call, argument),) = ends
    call(argument)
    assert {file.name for file in tmp_path.iterdir()} == ({kept_as} if kept else others)
    assert jvm.killed == killed
