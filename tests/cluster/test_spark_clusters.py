"""A check on a Spark cluster: a master and a worker of Spark's own, each executor a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
from tests.lab.config import LOOPBACK
from tests.lab.lab import Lab
from tests.lab.standalone import QUICK, SPARK_HOME, Standalone
from tests.lab.waiting import wait_until
from tests.lab.yarn import Yarn
from tests.pair import REPOSITORY, Pair, Result, tool_environment, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

PAGE = REPOSITORY / "docs" / "spark-clusters.md"
SPARK_MASTER, PYTHON = "spark://HOST:7077", "/srv/status-tool/bin/python"
"""What stands there for a user's own."""
TOOL = Path(sys.executable)
"""A Python with the tool and all that it needs."""
FROM_PYTHON = "data returned from Python workers"
"""Spark's metric of a task that read rows of a live cluster or of the status file, in bytes."""
PEER = {"kind": "peer", "name": "1", "detail": Peer("1", "q:1:/s", True, 1_000).to_json()}
KILLED, IDLE = "Command exited with code 137", "Executor killed by driver."
"""Why Spark has removed an executor: by -9, or by dynamic allocation."""
OF_A_SESSION = ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
STREAMS = 20_000
"""Of files that are too large to be judged by the driver."""
WITH_YARN = "STATUS_TOOL_TEST_YARN"
with_yarn = pytest.mark.skipif(
    WITH_YARN not in os.environ, reason=f"by hand, {WITH_YARN}=1: Maven gets YARN's servers, and they take a minute"
)


@pytest.fixture(scope="module")
def spark() -> Iterator[Standalone]:
    """Room for two executors."""
    with Lab() as lab, Standalone(lab, workers=1, cores=2, memory_mb=2048) as started:
        yield started


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with all that the tool needs and without the tool, as on the nodes of a cluster."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = folder / "bin" / "python"
    command = [str(python), "-c", "import pyarrow, status_tool"]
    absent = subprocess.run(command, cwd=folder, env=no_python(), capture_output=True, text=True, check=False)
    assert "No module named 'status_tool'" in absent.stderr, absent
    return python


def no_python() -> dict[str, str]:
    """The environment without what a session of this process has put there for its own Spark."""
    return {name: value for name, value in tool_environment().items() if name not in OF_A_SESSION}


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
            "spark.driver.extraJavaOptions": QUICK,
            "spark.executor.extraJavaOptions": QUICK,
            # The tool sets it for its own machine only, and each task of Spark's 200 would run Python.
            "spark.sql.shuffle.partitions": "8",
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {"SPARK_CONF_DIR": str(folder), "PATH": path, **environment}

    def run(self, line: str) -> Result:
        """A line of a shell, in the folder."""
        settings = "".join(f"{key} {value}\n" for key, value in self.settings.items())
        (self.folder / "spark-defaults.conf").write_text(settings)
        environment = no_python() | self.environment
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

    def readers(self) -> Counter[str]:
        """By executor, the tasks whose Python worker has read rows."""
        found: Counter[str] = Counter()
        for task in self.tasks():
            values = {one.get("Name"): int(one.get("Update") or 0) for one in task["Task Info"]["Accumulables"]}
            found[task["Task Info"]["Executor ID"]] += values.get(FROM_PYTHON, 0) > 0
        return +found


def documented(*words: str) -> str:
    """The one command of docs/spark-clusters.md that has these words."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in re.sub(r"\\\n *", "", block).splitlines()]
    (line,) = (line for line in lines if all(word in line for word in words))
    return line


def said(result: Result) -> dict[str, Any]:
    """The exit code, the verdict, counts and problems."""
    return {"exit": result.exit_code} | {key: result.json[key] for key in ("verdict", "hbase", "hdfs", "problems")}


@pytest.fixture(scope="module")
def content(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with rows and 32 files, one of which differs; a folder with the master's status file."""
    pair.create_table("executors", {"f": 1}, splits=[b"row-00000003", b"row-00000006"])
    pair.master.admin.put_rows("executors", "f", 10)
    files = {f"/executors/{folder}/{n}": b"%s %d" % (folder.encode(), n) for folder in "abcd" for n in range(8)}
    for path, data in files.items():
        pair.master.admin.hdfs_put(path, data)
        pair.slave.admin.hdfs_put(path, data, checksum_type="CRC32" if path.endswith("/7") else None)
    pair.slave.admin.hdfs_put("/executors/a/0", b"other")
    folder = tmp_path_factory.mktemp("content")
    (folder / "paths").write_text("/executors\n")
    file, table = folder / "master.status", ("--table", "executors")
    written = tool_here("run", "-m", "-o", file, "-f", folder / "paths", "--deep", *table, conf=pair.master)
    assert written.exit_code == 0, written
    (folder / "status_tool_main.py").write_text(documented("echo").split("'")[1])
    return folder


CHECK = " --json --deep --wait 3 --table executors"


@pytest.fixture(scope="module")
def here(pair: Pair, content: Path) -> dict[str, Any]:
    """What the same check says without a cluster."""
    found = said(tool_here("run", "-i", content / "master.status", *CHECK.split(), conf=pair.slave))
    assert found["exit"] == 1, found
    assert found["hdfs"]["files"] | {"match": 31, "mismatch": 1} == found["hdfs"]["files"]
    assert found["hbase"]["regions"]["complete"] == 3
    return found


@pytest.fixture
def application(pair: Pair, content: Path, tmp_path: Path) -> Application:
    """On a machine that knows the slave, with FILE."""
    for name in ("master.status", "status_tool_main.py"):
        shutil.copy(content / name, tmp_path)
    return Application(tmp_path, HBASE_CONF_DIR=str(pair.slave.conf_dir), SPARK_LOCAL_IP=LOOPBACK)


def test_spark_submit(application: Application, here: dict[str, Any], spark: Standalone) -> None:
    """Both halves, live, `--deep`: state table, listing, files and FILE are read by both executors.

    That is client mode; cluster mode is Spark's to refuse, in its own words.
    """
    line = documented("spark-submit", "spark://", "client").replace(SPARK_MASTER, spark.url).replace(PYTHON, str(TOOL))
    assert said(application.run(line + CHECK)) == here
    assert len(application.readers()) == 2, application.readers()
    refused = application.run(line.replace("--deploy-mode client", "--deploy-mode cluster"))
    assert refused.exit_code == 1, refused
    words = re.search(r"`(Cluster deploy mode is [^`]*)`", " ".join(PAGE.read_text().split()))
    assert words is not None
    assert words[1] in refused.stderr


@pytest.fixture(scope="module")
def yarn(pair: Pair) -> Iterator[Yarn]:
    """Over the slave's HDFS."""
    with Lab() as lab, Yarn(lab, pair.slave) as started:
        yield started


@pytest.fixture
def on_yarn(application: Application, yarn: Yarn) -> Application:
    """On a machine that knows YARN as well."""
    application.environment |= yarn.environment
    application.settings |= {
        "spark.yarn.jars": f"local:{SPARK_HOME}/jars/*",
        "spark.driver.memoryOverhead": "256m",
        "spark.executor.memoryOverhead": "256m",
        "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOOPBACK,
        "spark.executorEnv.SPARK_LOCAL_IP": LOOPBACK,
    }
    return application


@with_yarn
def test_yarn_client_mode(on_yarn: Application, here: dict[str, Any]) -> None:
    """The driver runs here: output and exit code as without YARN."""
    line = documented("spark-submit", "spark://", "client").replace(SPARK_MASTER, "yarn").replace(PYTHON, str(TOOL))
    assert said(on_yarn.run(line + CHECK)) == here
    assert len(on_yarn.readers()) == 2, on_yarn.readers()


@with_yarn
def test_yarn_cluster_mode(on_yarn: Application, pair: Pair, yarn: Yarn, here: dict[str, Any]) -> None:
    """The driver runs in a container, which has the verdict in its log."""
    line = documented("spark-submit", "--master yarn", "cluster").replace(PYTHON, str(TOOL))
    submitted = on_yarn.run(line.replace("/etc/hbase/conf", str(pair.slave.conf_dir)) + CHECK)
    assert submitted.exit_code == 1, submitted
    (name,) = set(re.findall(r"Submitted application (application_\w+)", submitted.stderr))
    assert said(Result(1, yarn.printed(name), submitted.stderr)) == here
    assert "User application exited with status 1" in submitted.stderr, submitted


@pytest.mark.usefixtures("warm_spark")
@dataclass(frozen=True)
class Checked:
    """Status files of both sides, and what the check of them says here."""

    folder: Path
    here: dict[str, Any]

    def line(self, spark: Standalone, python: Path) -> str:
        """The same check on a cluster."""
        line = documented("status-tool run", "spark://", f"PYSPARK_PYTHON={PYTHON}")
        line = line.replace(SPARK_MASTER, spark.url).replace(PYTHON, str(python))
        line = line.replace("master.status", str(self.folder / "master.status"))
        return f"{line} --slave-status {self.folder / 'slave.status'} --peer 1 --json"


@pytest.fixture(scope="module")
def skewed(warm_spark: None, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """One table has all regions, and one region nearly all segments; and there is a hole."""
    folder = tmp_path_factory.mktemp("skewed")
    write_inputs(folder, STREAMS)
    for name, header, peers in (("master", MASTER, [PEER]), ("slave", SLAVE, [])):
        rows = pq.read_table(folder / f"{name}.parquet", schema=STATUS_SCHEMA)
        with StatusWriter(folder / f"{name}.status", header) as writer:
            writer.write(pa.Table.from_pylist(peers, schema=STATUS_SCHEMA))
            writer.write(with_more_segments(rows, 100_000))
    slave = ("--slave-status", folder / "slave.status", "--peer", "1")
    return Checked(folder, said(tool_here("run", "-i", folder / "master.status", *slave, "--json")))


def test_skewed_keys_while_an_executor_is_killed(
    spark: Standalone, bare_python: Path, skewed: Checked, tmp_path: Path
) -> None:
    """By -9, when the first stage has ended, with what it held of the rows: they are read again.

    No other executor of 512 MiB is lost, and no task raises an error. Executors have the tool's code from the tool, and
    dynamic allocation starts each of them when tasks wait.
    """
    judged = {"complete": STREAMS - 6, "behind": 2, "gap": 2, "missing": 2}
    assert skewed.here["hbase"]["regions"] | judged == skewed.here["hbase"]["regions"]
    application = Application(tmp_path, **spark.environment)
    application.settings |= {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
    }
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(application.run, skewed.line(spark, bare_python))
        wait_until(partial(has_completed_a_stage, application, checking.done), 300, "a stage is over", interval=0.05)
        spark.executors()[0].kill9()
        result = checking.result()
    assert said(result) == skewed.here
    names = application.names()
    assert names.index("SparkListenerExecutorAdded") > names.index("SparkListenerJobStart"), names
    removed = [(at, one["Removed Reason"]) for at, one in enumerate(application.events()) if "Removed Reason" in one]
    assert {reason for _, reason in removed} <= {KILLED, IDLE}, removed
    (killed,) = (at for at, reason in removed if reason == KILLED)
    assert "SparkListenerTaskEnd" in names[killed:], names
    assert "ExceptionFailure" not in {task["Task End Reason"]["Reason"] for task in application.tasks()}


def has_completed_a_stage(application: Application, is_over: Callable[[], bool]) -> bool:
    """Whether there is something to lose; fails for a check that has ended."""
    assert not is_over()
    return "SparkListenerStageCompleted" in application.names()


def with_more_segments(rows: pa.Table, more: int) -> pa.Table:
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
