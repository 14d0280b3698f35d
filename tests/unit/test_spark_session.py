"""The session, the data source and the debug dump on a real Spark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from status_tool.errors import ConfigurationError, ConnectionFailed, StatusFileError, StatusToolError
from status_tool.sources.interface import Source
from status_tool.spark.counts import _folders
from status_tool.spark.debug import write_debug
from status_tool.spark.held import HeldRows, frame_of
from status_tool.spark.session import TASKS_NAME, small_query, spark_session, stages_shown, tasks
from status_tool.spark.source import explain, load, map_in_arrow, read_parquet
from status_tool.spark.verify import Verification
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Verdict
from tests.lab.waiting import wait_until
from tests.pair import REPOSITORY, tool_here
from tests.unit.test_evidence_reference import FILE, MASTER, OURS, SLAVE, THEIRS

pytestmark = pytest.mark.spark


class Rows(Source):
    """Rows a partition; partition `bad` fails, and `log` says how often one was read."""

    def __init__(self, parts: list[list[dict[str, Any]]], log: Path, bad: str = "") -> None:
        self._parts, self._log, self._bad = parts, log, bad

    def partitions(self) -> Sequence[int]:
        if self._bad == "partitions":
            raise ConnectionFailed("cannot reach Thrift at host:9090")
        return range(len(self._parts))

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        with self._log.open("a") as log:
            log.write(f"{partition}\n")
        if self._bad == "read":
            raise ConnectionFailed("Thrift at host:9090 stopped answering — try again")
        yield pa.RecordBatch.from_pylist(self._parts[partition], schema=STATUS_SCHEMA)


@pytest.fixture
def session(shared_spark: SparkSession) -> SparkSession:
    return shared_spark


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a file"])
def test_a_live_source_is_read_once_for_check_and_dump(session: SparkSession, tmp_path: Path, beside: bool) -> None:
    """Beside a file, too, in which this process has put what only it reads: another reading shows a later moment.

    Alone as beside a small FILE of the master, else as beside a big one.
    """
    log, files = tmp_path / "log", tmp_path / "slave-files.parquet"
    slave = load(session, Rows([[*THEIRS, *([] if beside else [FILE])], []], log))
    if beside:
        pq.write_table(pa.Table.from_pylist([FILE], schema=STATUS_SCHEMA), files, store_schema=False)
        slave = slave.unionByName(read_parquet(session, files, tmp_path, "slave"))
    master = load(session, Rows([[*OURS, FILE]], tmp_path / "other"))
    check = Verification(lambda: (master, slave), MASTER, SLAVE, Scope(), small=not beside)
    with nullcontext() if beside else small_query(session), closing(check):
        outcome = check.outcome()
        write_debug(check, tmp_path / "debug")
    assert outcome.verdict is Verdict.COMPLETE, outcome
    assert sorted(log.read_text().split()) == ["0", "1"]
    dumped = {
        path.name: [json.loads(line) for line in path.read_text().splitlines()]
        for path in (tmp_path / "debug").iterdir()
    }
    assert sorted(dumped) == ["files.jsonl", "regions.jsonl", "servers.jsonl", "streams.jsonl"]
    (stream,), (region,), (file,) = (dumped[f"{name}.jsonl"] for name in ("streams", "regions", "files"))
    assert (stream["decision"], stream["arrived_seq"], stream["origin"]) == ("covered", 10, f"{1:016x}")
    assert (region["status"], region["timestamps_rule"], region["replicated_ms"]) == ("complete", "complete", 30_000)
    assert (file["status"], file["slave"]["checksum"]) == ("match", "ab")
    assert [row["side"] for row in dumped["servers.jsonl"]] == ["master", "slave"]


def test_servers_are_dumped_alike_whatever_holds_the_rows(session: SparkSession) -> None:
    """Rows that this process holds itself have more columns than those that Spark collects."""
    ours, theirs = (pa.Table.from_pylist(rows, schema=STATUS_SCHEMA) for rows in (OURS, THEIRS))
    frames = (session.createDataFrame(ours), session.createDataFrame(theirs))
    dumped = []
    for held in (None, HeldRows.of(ours, theirs)):
        with closing(Verification(lambda: frames, MASTER, SLAVE, Scope(), held=held)) as check:
            dumped.append(check.servers())
    assert dumped[0] == dumped[1]
    assert [row["side"] for row in dumped[0]] == ["master", "slave"]


def test_a_half_that_is_not_checked_keeps_no_rows_of_an_older_dump(session: SparkSession, tmp_path: Path) -> None:
    """They would pass for rows of this check."""
    (tmp_path / "files.jsonl").write_text("{}\n")
    ours, theirs = (frame_of(session, pa.Table.from_pylist(rows, schema=STATUS_SCHEMA)) for rows in (OURS, THEIRS))
    check = Verification(lambda: (ours, theirs), MASTER, SLAVE, Scope(check_hdfs=False), small=True)
    with small_query(session), closing(check):
        check.outcome()
        write_debug(check, tmp_path)
    assert (tmp_path / "files.jsonl").read_text() == ""
    assert (tmp_path / "regions.jsonl").read_text()


def test_a_folder_whose_name_has_a_line_end_is_its_own(session: SparkSession) -> None:
    """The page drew its files as if they lay in `/`."""
    paths = ("/d\ne/sub/f", "/d/f\n", "/f")
    files = session.createDataFrame([(path, "file-missing") for path in paths], "path string, code string")
    assert sorted(folder.path for folder in _folders(files)) == ["/", "/d", "/d\ne/sub"]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_dump_that_fails_does_not_cost_the_verdict(more: tuple[str, ...], tmp_path: Path) -> None:
    """As a report that cannot be written: the verdict is told, and so is the failure, by exit code 2."""
    (tmp_path / "files.jsonl").mkdir()
    gap = REPOSITORY / "sample_status" / "gap"
    files = ("-i", gap / "master.status", "--slave-status", gap / "slave.status")
    result = tool_here("run", *files, "-d", "--debug-dir", tmp_path, "--report", tmp_path / "r.html", *more)
    assert result.exit_code == 2
    assert "files.jsonl: it is a folder; name a file; the verdict is: incomplete" in result.stderr
    assert ("error" in json.loads(result.stdout)) if more else ("Replication is NOT complete" in result.stdout)
    assert (tmp_path / "r.html").exists()


@pytest.mark.parametrize("bad", ["partitions", "read"])
def test_an_error_of_a_source_comes_out_as_itself(session: SparkSession, tmp_path: Path, bad: str) -> None:
    with pytest.raises(Exception, match=r".") as raised:
        load(session, Rows([[]], tmp_path / "log", bad)).collect()
    clear = explain(raised.value)
    assert isinstance(clear, ConnectionFailed)
    assert "host:9090" in str(clear)
    assert "\n" not in str(clear)
    assert explain(ValueError("another")) is None


def test_a_python_that_is_not_there(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `PYSPARK_PYTHON=./env/bin/python` where the archive is unpacked on the executors alone: one line."""
    monkeypatch.setattr(session.sparkContext, "pythonExec", "./env/bin/python")
    with pytest.raises(ConfigurationError, match=r"cannot run the Python ./env/bin/python \(PYSPARK_PYTHON; No such"):
        load(session, Rows([[]], tmp_path / "log"))


def test_a_python_without_what_is_needed(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where PYSPARK_PYTHON is not set, and `python3` is the system's: one line."""
    venv.create(tmp_path / "bare", symlinks=True)
    monkeypatch.setattr(session.sparkContext, "pythonExec", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(ConfigurationError, match=r"has no module pyarrow: set PYSPARK_PYTHON to one"):
        load(session, Rows([[]], tmp_path / "log"))


def test_a_python_of_another_version() -> None:
    """In PySpark's words."""
    words = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark"
    assert "run Python 3.9, and the tool Python 3.11: set PYSPARK_PYTHON" in str(explain(RuntimeError(words)))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StatusFileError("row 7 is damaged"), "row 7 is damaged"),
        (ValueError("row 7"), "unexpected ValueError: row 7; this is a bug in status-tool"),
    ],
)
def test_an_error_of_a_judging_worker_comes_out_as_itself(session: SparkSession, error: Exception, said: str) -> None:
    def broken(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise error
        yield from given

    with pytest.raises(Exception, match=r".") as raised:
        map_in_arrow(session.range(1), broken, pa.schema({"id": pa.int64()})).collect()
    clear = explain(raised.value)
    assert isinstance(clear, StatusFileError if isinstance(error, StatusFileError) else StatusToolError)
    assert str(clear).startswith(said)


@pytest.mark.slow
def test_an_error_of_a_judging_worker_is_one_line() -> None:
    """With exit code 2, and nothing of the worker's or of Spark's own."""
    script = """
import sys
from status_tool.cli.main import main
from status_tool.runs import file_check
from status_tool.spark import judge
def broken(rows, context):
    raise ValueError("two\\nlines")
    yield
file_check.small_file, judge.judge_regions = lambda _: None, broken  # else this process would judge
sys.exit(main(["run", "-q", "-i", *sys.argv[1:]]))
"""
    sample = REPOSITORY / "sample_status" / "gap"
    files = [str(sample / "master.status"), "--slave-status", str(sample / "slave.status")]
    command = [sys.executable, "-c", script, *files, "--only", "hbase", "--spark-master", "local[1]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "status-tool: unexpected ValueError: two lines; this is a bug in status-tool (STATUS_TOOL_TRACEBACK=1"
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    assert done.stderr.startswith(said), done


def test_an_existing_session_is_used_and_left_running(session: SparkSession) -> None:
    with spark_session("local[1]") as inner:
        assert inner is session
    assert session.range(3).count() == 3


class Shown:
    """What a phase was told, as (done, total)."""

    def __init__(self) -> None:
        self.reached: list[tuple[int, int]] = []
        self.names: list[str] = []

    @contextmanager
    def phase(self, name: str) -> Iterator[Shown]:
        self.names.append(name)
        yield self

    def reach(self, done: int, total: int) -> None:
        self.reached.append((done, total))


def test_tasks_are_counted_while_they_run(session: SparkSession) -> None:
    """By Spark's own tracker; before and after there is nothing to show."""
    shown = Shown()
    assert tasks() == (0, 0)
    with stages_shown(shown.phase, every_s=0.05):
        session.sparkContext.parallelize(range(8), 8).map(lambda _: time.sleep(0.3)).count()
        wait_until(lambda: tasks() == (0, 0), 120, "Spark to be idle")
    assert shown.names == [TASKS_NAME]
    assert {total for _, total in shown.reached} == {8}
    assert [done for done, _ in shown.reached] == sorted(done for done, _ in shown.reached)
    assert 0 < max(shown.reached)[0] <= 8


def test_a_small_query_leaves_the_settings_of_a_session_alone(session: SparkSession) -> None:
    before = dict(session.sparkContext.getConf().getAll()), session.conf.get("spark.sql.adaptive.enabled")
    with small_query(session):
        assert session.conf.get("spark.sql.adaptive.enabled") == "false"
    assert before == (dict(session.sparkContext.getConf().getAll()), session.conf.get("spark.sql.adaptive.enabled"))


def test_a_file_that_cannot_be_read_is_no_empty_one(session: SparkSession, tmp_path: Path) -> None:
    """Also where Spark is set to leave out what it cannot read: nobody would ask for the files of these rows."""
    file = tmp_path / "master.parquet"
    pq.write_table(pa.Table.from_pylist([{"kind": "file", "path": f"/{at}"} for at in range(99)], STATUS_SCHEMA), file)
    whole = file.read_bytes()
    path = pq.ParquetFile(file).metadata.row_group(0).column(STATUS_SCHEMA.get_field_index("path"))
    at = path.dictionary_page_offset
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert read_parquet(session, file, tmp_path, "master").toArrow().num_rows == 99
        file.write_bytes(whole[:at] + bytes([0xFF] * 32) + whole[at + 32 :])
        with pytest.raises(Exception, match=re.escape(file.name)):
            read_parquet(session, file, tmp_path, "master").toArrow()
    finally:
        session.conf.unset("spark.sql.files.ignoreCorruptFiles")


@pytest.mark.slow
def test_a_fresh_session_prints_nothing_and_a_bad_one_says_why() -> None:
    """Nor is anything printed once the JVM has been ended: Py4J goes on telling it what Python has collected."""
    script = """
from contextlib import suppress
from status_tool.errors import StatusToolError
from status_tool.spark import jvm
from status_tool.spark.session import spark_session
try:
    with spark_session("nonsense"): pass
except StatusToolError as error: said = str(error)
with spark_session("local[1]") as session:
    client, frame = session.sparkContext._gateway._gateway_client, session.range(3)
    assert frame.count() == 3
jvm.end()
client.garbage_collect_object(frame._jdf._target_id, False)
with suppress(Exception):
    client.send_command("as if it was under way")
assert said.startswith("Spark cannot start: Master must"), said
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=900, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("home", ["/nowhere", None])
def test_no_java(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to set, before anything is started."""
    monkeypatch.setattr("status_tool.spark.session.submitted", lambda: False)
    monkeypatch.setattr("status_tool.spark.session.SparkContext._gateway", None)
    monkeypatch.setattr("status_tool.spark.session.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", home) if home else monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError, match=r"^(JAVA_HOME is /nowhere|Spark needs Java).*JDK 17"), spark_session():
        pass


CHECKS = """
import contextlib, io, json, sys
from status_tool.cli.main import main
check, ends = sys.argv[2:], []
for options in json.loads(sys.argv[1]):
    streams = stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        exit_code = main([*check, *options])
    ends.append((exit_code, *(one.getvalue() for one in streams)))
print(json.dumps(ends))
"""
"""Prints how a check ends with each of the options."""


@pytest.mark.slow
def test_a_small_check_needs_no_java(tmp_path: Path) -> None:
    """An option that asks for Spark, or for what Spark makes, is obeyed."""
    sample = REPOSITORY / "sample_status" / "gap"
    check = ["run", "-q", "-i", f"{sample}/master.status", "--slave-status", f"{sample}/slave.status"]
    (tmp_path / "paths").write_text("/data\n")
    ordinary = [[], ["--only", "hbase"], ["-f", "paths", "--exclude", "*.tmp", "--map-path", "/data=/data"]]
    asking = [
        ["--report", "page.html"],
        ["-d", "--debug-dir", "dump"],
        ["--missing", "missing.jsonl"],
        ["--spark-master", "local[1]"],
        ["--spark-conf", "spark.app.name=mine"],
    ]
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", CHECKS, json.dumps([*ordinary, *asking]), *check],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment | {"JAVA_HOME": "/nowhere"},
        check=True,
    )
    ends = json.loads(done.stdout)
    for options, (code, stdout, stderr) in zip(ordinary, ends[: len(ordinary)], strict=True):
        assert (code, "HBase Replication is NOT complete." in stdout, stderr) == (1, True, ""), options
    for options, (code, stdout, stderr) in zip(asking, ends[len(ordinary) :], strict=True):
        assert (code, stdout) == (2, ""), options
        assert stderr.startswith("status-tool: JAVA_HOME is /nowhere,"), options
