"""How Spark's JVM is started: directly where that will do, before anything else, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from status_tool.clients.class_archive import CACHE_VARIABLE
from status_tool.spark import jvm
from status_tool.spark.launch import direct_command
from status_tool.spark.settings import JVM_OPTIONS, SHORT_RUN_BYTES, is_short, spark_settings_with, starts_directly
from status_tool.temporary import let_go
from tests.lab.waiting import wait_until
from tests.pair import REPOSITORY
from tests.unit.test_entry import SLOW_IMPORT

SAMPLE = REPOSITORY / "sample_status" / "complete"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a user who has set nothing of Spark."""
    for name in [name for name in os.environ if name.startswith("SPARK_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("master", "conf", "expected"),
    [
        (None, {}, True),
        ("local[2]", {"spark.sql.shuffle.partitions": "2", JVM_OPTIONS: "-Xss2m"}, True),
        ("local-cluster[2,1,1024]", {}, False),
        ("spark://host:7077", {}, False),
        (None, {"spark.jars": "more.jar"}, False),
        (None, {"spark.jars.packages": "of:somebody:1"}, False),
        (None, {"spark.driver.extraClassPath": "/more"}, False),
        (None, {"spark.sql.catalogImplementation": "hive"}, False),
        (None, {"spark.plugins": "SomePlugin"}, False),
    ],
)
def test_what_spark_submit_acts_on_is_left_to_it(master: str | None, conf: dict[str, str], expected: bool) -> None:
    """And masters elsewhere."""
    assert starts_directly(spark_settings_with(master, conf, small=True)) == expected


@pytest.mark.parametrize("name", ["SPARK_HOME", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS"])
def test_so_is_what_its_scripts_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what PySpark sets in its own process."""
    monkeypatch.setenv("SPARK_AUTH_SOCKET_TIMEOUT", "15")
    assert starts_directly(spark_settings_with(None, {}, small=True))
    monkeypatch.setenv(name, "something")
    assert not starts_directly(spark_settings_with(None, {}, small=True))


@pytest.mark.parametrize("more", [0, 1])
def test_a_large_file_is_no_short_run(tmp_path: Path, more: int) -> None:
    """Its JVM compiles all that it can; a user's own settings stand."""
    file = tmp_path / "large.status"
    with file.open("wb") as stream:
        stream.truncate(SHORT_RUN_BYTES + more)
    assert is_short(file) == (not more)
    settings = spark_settings_with(None, {JVM_OPTIONS: "-Xss2m"}, is_short(file))
    assert ("TieredStopAtLevel=1" in settings[JVM_OPTIONS]) == (not more)
    assert settings[JVM_OPTIONS].endswith(" -Xss2m")
    chosen = {"spark.sql.shuffle.partitions": "5"}
    assert spark_settings_with(None, chosen, is_short(file))["spark.sql.shuffle.partitions"] == "5"
    assert is_short(tmp_path / "absent")


def test_the_command_has_what_spark_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its launcher is asked once; what others could have written is not taken."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    settings = spark_settings_with(None, {JVM_OPTIONS: '"-Da=b c" -Xss2m', "spark.driver.memory": "2g"}, small=True)
    command = direct_command(settings, tmp_path)
    assert command is not None
    assert "--add-opens=java.base/java.nio=ALL-UNNAMED" in command
    assert {"-Xmx2g", "-Da=b c", "-Xss2m", f"-Djava.io.tmpdir={tmp_path}", "-Dspark.driver.memory=2g"} <= set(command)
    jars = [Path(jar).name for jar in command[command.index("-cp") + 1].split(os.pathsep)]
    assert [jar for jar in jars if jar.startswith("spark-sql_")]
    assert not [jar for jar in jars if "mllib" in jar or "hive" in jar]
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_text('["-Dkept=true"]')
    assert "-Dkept=true" in (direct_command(settings, tmp_path) or ())
    kept.chmod(0o620)
    assert direct_command(settings, tmp_path) == command
    kept.write_text("no JSON")
    kept.chmod(0o600)
    assert direct_command(settings, tmp_path) == command


def jvms(folder: Path) -> list[str]:
    """Those that have their temporary files below the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"-Djava.io.tmpdir={folder}".encode() in process.read_bytes():
                found.append(process.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_loading_ends_the_jvm_that_has_been_started(tmp_path: Path, number: signal.Signals) -> None:
    """It starts before Arrow is loaded; no process and no file is left."""
    site, temporary, reached = tmp_path / "site", tmp_path / "temporary", tmp_path / "reached"
    site.mkdir()
    temporary.mkdir()
    (site / "sitecustomize.py").write_text(SLOW_IMPORT.format(reached=str(reached), module="pyarrow"))
    command = [sys.executable, "-m", "status_tool", "run", "-i", str(SAMPLE / "master.status")]
    process = subprocess.Popen(
        [*command, "--slave-status", str(SAMPLE / "slave.status"), "--report", str(tmp_path / "page.html")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(site), "TMPDIR": str(temporary)},
    )
    try:
        wait_until(reached.exists, 120, "the import has begun", interval=0.01)
        wait_until(lambda: bool(jvms(temporary)), 120, "the JVM runs")
        process.send_signal(number)
        said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert (process.returncode, *said) == (128 + number, "", "status-tool: interrupted; nothing was written\n")
    wait_until(lambda: not jvms(temporary), 120, "the JVM has ended")
    assert list(temporary.iterdir()) == []


def test_an_error_before_spark_is_needed_ends_it(tmp_path: Path) -> None:
    """FILE is none: one line, and nothing is left."""
    temporary, file = tmp_path / "temporary", tmp_path / "file"
    temporary.mkdir()
    file.write_bytes(b"no status file")
    done = subprocess.run(
        [sys.executable, "-m", "status_tool", "run", "-i", str(file), "--slave-status", str(file), "-d"],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"status-tool: {file} is not a status file\n")
    assert jvms(temporary) == []
    assert list(temporary.iterdir()) == []


def test_a_folder_whose_jvm_never_starts_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may end the process at once while Spark's launcher is still asked for its options."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made: list[int] = []

    def asked(*_: object) -> None:
        made.append(len(list(tmp_path.iterdir())))
        jvm.kill()  # as the signal's handler does, which then ends the process
        made.append(len(list(tmp_path.iterdir())))

    monkeypatch.setattr(jvm, "direct_command", asked)
    for name in ("_process", "_early", "_held"):  # another test's JVM may live here, and keeps its folder
        monkeypatch.setattr(jvm, name, None)
    jvm.begin(spark_settings_with(None, {}, small=True))
    assert jvm._held is not None
    let_go(*jvm._held)
    assert made == [1, 0]
