"""A check on a Spark cluster: a master and two workers of Spark's own, each executor a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.streams import MASTER, SLAVE, STEP, write_inputs
from status_tool.clients.zookeeper import Peer
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.schema import STATUS_SCHEMA
from tests.lab.lab import Lab
from tests.lab.standalone import Standalone
from tests.lab.waiting import wait_until
from tests.pair import Result, tool_environment, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

TOOL = sys.executable
"""A Python with the tool and all that it needs."""
PEER = {"kind": "peer", "name": "1", "detail": Peer("1", "q:1:/s", True, 1_000).to_json()}


@pytest.fixture(scope="module")
def spark() -> Iterator[Standalone]:
    """Two cores on each worker, so that there may be more executors than a driver sees when it starts."""
    with Lab() as lab, Standalone(lab, cores=2, memory_mb=1536) as started:
        yield started


class Application:
    """Checks on a cluster, with what Spark's own event log says of the last one."""

    def __init__(self, folder: Path, **environment: str) -> None:
        """`environment` is that of a machine of the cluster; its Spark's own settings are in spark-defaults.conf."""
        self.folder = folder
        self._events = folder / "events"
        self._events.mkdir()
        self.settings = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": self._events.as_uri(),
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # they live for seconds
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {"SPARK_CONF_DIR": str(folder), "PATH": path, **environment}

    def run(self, line: str) -> Result:
        """A line of a shell, in the folder."""
        settings = "".join(f"{key} {value}\n" for key, value in self.settings.items())
        (self.folder / "spark-defaults.conf").write_text(settings)
        environment = tool_environment() | self.environment
        command = ["bash", "-c", line]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    def events(self) -> list[dict[str, Any]]:
        """What has been written down so far, in its order."""
        lines = [line for file in sorted(self._events.rglob("*")) if file.is_file() for line in file.open()]
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def names(self) -> list[str]:
        """Of the events."""
        return [str(event["Event"]).rsplit(".", 1)[-1] for event in self.events()]

    def tasks(self) -> list[dict[str, Any]]:
        """Those that have ended."""
        return [event for event in self.events() if event["Event"] == "SparkListenerTaskEnd"]


def said(result: Result) -> dict[str, Any]:
    """The exit code, the verdict, counts and problems."""
    return {"exit": result.exit_code} | {key: result.json[key] for key in ("verdict", "hbase", "hdfs", "problems")}


@pytest.mark.usefixtures("warm_spark")
def test_an_executor_is_killed(spark: Standalone, tmp_path: Path) -> None:
    """By -9, when the first stage has ended, with what it held of the rows: they are read again."""
    here = files_checked_here(tmp_path, 5_000)
    application = Application(tmp_path, **spark.environment)
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(application.run, files_checked_on(spark))
        wait_until(partial(has_completed_a_stage, application, checking.done), 300, "a stage is over", interval=0.05)
        spark.executors()[0].kill9()
        result = checking.result()
    assert said(result) == here
    names = application.names()
    assert "SparkListenerExecutorRemoved" in names, names
    assert "SparkListenerTaskEnd" in names[names.index("SparkListenerExecutorRemoved") :], names


def has_completed_a_stage(application: Application, is_over: Callable[[], bool]) -> bool:
    """Whether there is something to lose; fails for a check that has ended."""
    assert not is_over()
    return "SparkListenerStageCompleted" in application.names()


@pytest.mark.usefixtures("warm_spark")
def test_skewed_keys(spark: Standalone, tmp_path: Path) -> None:
    """One table has all regions, and one region nearly all segments: no task and no executor of 512 MiB is lost."""
    here = files_checked_here(tmp_path, 5_000, more_segments=100_000)
    judged = {"complete": 4_997, "behind": 1, "gap": 1, "missing": 1}
    assert here["hbase"]["regions"] | judged == here["hbase"]["regions"]
    application = Application(tmp_path, **spark.environment)
    assert said(application.run(files_checked_on(spark))) == here
    assert {task["Task End Reason"]["Reason"] for task in application.tasks()} == {"Success"}
    assert "SparkListenerExecutorRemoved" not in application.names()


def files_checked_on(spark: Standalone) -> str:
    """The files of `files_checked_here`, in the folder where the line runs."""
    check = "status-tool run -i master.status --slave-status slave.status --peer 1 --json"
    return f"PYSPARK_PYTHON={TOOL} {check} --spark-master {spark.url}"


def files_checked_here(folder: Path, streams: int, more_segments: int = 0) -> dict[str, Any]:
    """Write both sides' status files, with a hole, and check them; `more_segments` make them skewed."""
    write_inputs(folder, streams)
    for name, header, peers in (("master", MASTER, [PEER]), ("slave", SLAVE, [])):
        rows = pq.read_table(folder / f"{name}.parquet", schema=STATUS_SCHEMA)
        with StatusWriter(folder / f"{name}.status", header) as writer:
            writer.write(pa.Table.from_pylist(peers, schema=STATUS_SCHEMA))
            writer.write(skewed(rows, more_segments) if more_segments else rows)
    slave = ("--slave-status", folder / "slave.status", "--peer", "1")
    return said(tool_here("run", "-i", folder / "master.status", *slave, "--json"))


def skewed(rows: pa.Table, more: int) -> pa.Table:
    """All regions in one table, and the first segment's stream goes on for so many entries, each a segment."""
    table = pc.if_else(pc.is_valid(rows["region"]), "ns:t0", rows["table"])
    rows = rows.set_column(rows.schema.get_field_index("table"), STATUS_SCHEMA.field("table"), table)
    first = rows.filter(pc.equal(rows["kind"], "segment")).slice(0, 1)
    if not first:
        return rows
    ends = pa.array(range(2 * STEP, 2 * STEP + more + 1), pa.int64())
    columns = {"prev": ends[:-1], "seq": ends[1:]}
    same = first.to_pylist()[0]
    arrays = [
        columns.get(field.name, pa.repeat(pa.scalar(same[field.name], field.type), more)) for field in rows.schema
    ]
    return pa.concat_tables([rows, pa.table(arrays, schema=rows.schema)])
