"""A Spark standalone cluster from PySpark's own distribution: a master and its workers, processes of their own."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pyspark

from . import watchdog
from .classpath import HOME
from .config import LOOPBACK
from .lab import Lab
from .ports import Ports
from .process import Java, Server
from .waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that live for seconds."""
START_TIMEOUT = 120.0
_DEPLOY = "org.apache.spark.deploy"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def spark_java(mark: str) -> Java:
    """How Spark's own servers are started."""
    return Java(mark, [SPARK_HOME / "jars" / "*"], HOME / "conf" / "log4j.properties")


def scala() -> str:
    """The version of Scala that Spark's jars are of; a worker that is not started by Spark's scripts has to be told."""
    (jar,) = (SPARK_HOME / "jars").glob("spark-core_*.jar")
    return jar.name.split("_")[1].split("-")[0]


@dataclass(frozen=True)
class Executor:
    """A JVM that a worker has started for an application."""

    pid: int
    command: str

    def kill9(self) -> None:
        """Kill -9."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Standalone:
    """Of a lab, with which it ends at the latest; a context manager. Each worker offers `cores` and `memory_mb`."""

    def __init__(self, lab: Lab, *, workers: int = 2, cores: int = 1, memory_mb: int = 1024) -> None:
        self._mark = lab.mark
        self._ports = Ports()
        self.folder = lab.root / "spark"
        self.master = self._server("master", "master.Master")
        self._web_port = self._ports.take()
        self.master.arguments = (*self.master.arguments, "--webui-port", str(self._web_port))
        offered = ("--cores", str(cores), "--memory", f"{memory_mb}m")
        self.workers = [self._server(f"worker{number}", "worker.Worker") for number in range(workers)]
        for worker in self.workers:
            web = ("--webui-port", str(self._ports.take()), "--work-dir", str(worker.folder / "work"))
            worker.arguments = (*worker.arguments, *web, *offered, self.url)

    def _server(self, name: str, main: str) -> Server:
        port = self._ports.take()
        at = ("--host", LOOPBACK, "--port", str(port))
        environment = {
            "PYTHONPATH": "",  # executors' Python would find there what was not sent to it
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_SCALA_VERSION": scala(),
        }
        return Server(
            spark_java(self._mark),
            f"spark-{name}",
            self.folder / name,
            f"{_DEPLOY}.{main}",
            at,
            192,
            port,
            environment=environment,
        )

    @property
    def url(self) -> str:
        """As `--spark-master` takes it."""
        return f"spark://{LOOPBACK}:{self.master.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """For who submits from this machine."""
        return {"SPARK_LOCAL_IP": LOOPBACK}

    def __enter__(self) -> Self:
        """Start all, and wait until every worker is known to the master."""
        self.master.start()
        for worker in self.workers:
            worker.start()
        wait_until(lambda: self._alive() == len(self.workers), START_TIMEOUT, "Spark's workers are alive")
        return self

    def _alive(self) -> int:
        for server in (self.master, *self.workers):
            server.check()
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._web_port}/json/", timeout=10) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):  # the page of "/" answers until that of "/json" is attached
            return 0

    def executors(self) -> list[Executor]:
        """Those that live, in the order of their start."""
        found = []
        for pid in sorted(watchdog.marked(self._mark)):
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if _EXECUTOR in command:
                    found.append(Executor(pid, command))
        return found

    def __exit__(self, *_: object) -> None:
        """End all of them, executors first."""
        for worker in self.workers:
            worker.kill9()
        self.master.kill9()
        for executor in self.executors():
            executor.kill9()
        self._ports.release()
