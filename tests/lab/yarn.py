"""YARN on loopback: a ResourceManager and a NodeManager over the HDFS of a cluster of the lab."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from . import config
from .classpath import HOME, java, yarn_classpath
from .cluster import Cluster
from .config import LOOPBACK
from .lab import Lab
from .ports import Ports
from .process import Java, Server
from .waiting import wait_until
from .watchdog import MARK

START_TIMEOUT = 120.0
_SERVER = "org.apache.hadoop.yarn.server"


class Yarn:
    """Of a lab, with which it ends at the latest; a context manager. Containers get `memory_mb` together."""

    def __init__(self, lab: Lab, hdfs: Cluster, *, memory_mb: int = 4096) -> None:
        self._ports = Ports()
        self._java = Java(lab.mark, yarn_classpath(), HOME / "conf" / "log4j.properties")
        self.folder = lab.root / "yarn"
        self.logs = self.folder / "logs"
        self.conf_dir = self.folder / "conf"
        """For who submits."""
        self._web_port = self._ports.take()
        site = self._resource_manager_site() | self._node_manager_site(memory_mb)
        self.resource_manager = self._server("resourcemanager", "resourcemanager.ResourceManager")
        self.node_manager = self._server("nodemanager", "nodemanager.NodeManager")
        for folder in (self.conf_dir, self.resource_manager.conf_dir, self.node_manager.conf_dir):
            config.write_site(folder / "yarn-site.xml", site)
            for name in ("core-site.xml", "hdfs-site.xml"):
                shutil.copy(hdfs.conf_dir / name, folder)

    def _resource_manager_site(self) -> dict[str, str]:
        kinds = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        return {
            **{f"yarn.resourcemanager.{kind}": f"{LOOPBACK}:{self._ports.take()}" for kind in kinds},
            "yarn.resourcemanager.webapp.address": f"{LOOPBACK}:{self._web_port}",
            "yarn.resourcemanager.scheduler.class": f"{_SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
            "yarn.scheduler.minimum-allocation-mb": "128",
        }

    def _node_manager_site(self, memory_mb: int) -> dict[str, str]:
        kinds = ("address", "localizer.address", "webapp.address")
        return {
            **{f"yarn.nodemanager.{kind}": f"{LOOPBACK}:{self._ports.take()}" for kind in kinds},
            "yarn.nodemanager.local-dirs": str(self.folder / "local"),
            "yarn.nodemanager.log-dirs": str(self.logs),
            "yarn.nodemanager.resource.memory-mb": str(memory_mb),
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            # A disk that is nearly full is this machine's business.
            "yarn.nodemanager.disk-health-checker.enable": "false",
            # Containers carry the lab's mark, and so end with it.
            "yarn.nodemanager.env-whitelist": f"JAVA_HOME,{MARK}",
        }

    def _server(self, name: str, main: str) -> Server:
        environment = {"JAVA_HOME": str(Path(shutil.which(java()) or java()).resolve().parents[1])}
        folder = self.folder / name
        return Server(self._java, name, folder, f"{_SERVER}.{main}", (), 256, 0, environment=environment)

    @property
    def environment(self) -> Mapping[str, str]:
        """For who submits."""
        return {"HADOOP_CONF_DIR": str(self.conf_dir), "SPARK_LOCAL_IP": LOOPBACK}

    def __enter__(self) -> Self:
        """Start both, and wait until the NodeManager is known to the ResourceManager."""
        for server in (self.resource_manager, self.node_manager):
            server.start()
        wait_until(self._is_ready, START_TIMEOUT, f"the NodeManager is registered, see {self.folder}")
        return self

    def _is_ready(self) -> bool:
        for server in (self.resource_manager, self.node_manager):
            server.check()
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._web_port}/ws/v1/cluster/metrics", timeout=10) as got:
                return int(json.load(got)["clusterMetrics"]["activeNodes"]) == 1
        except (urllib.error.URLError, OSError, ValueError):
            return False

    def printed(self, application: str) -> str:
        """What an application's driver has written to its standard output."""
        return "".join(file.read_text() for file in sorted(self.logs.glob(f"{application}/*_000001/stdout")))

    def __exit__(self, *_: object) -> None:
        """End both; containers end with the lab."""
        self.node_manager.kill9()
        self.resource_manager.kill9()
        self._ports.release()
