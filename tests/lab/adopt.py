"""Clusters that another process has started, used as if they were one's own.

A description says what is needed to build the same `Cluster` objects: folder, mark, specifications, ports in the order
in which they were taken. Pids are not in it: a server is found by the lab's mark in its environment and by its working
directory, which is its own folder. So a description stays right when servers are killed and started again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .cluster import Cluster, ClusterSpec
from .lab import Lab, server_java
from .ports import Drawn, Ports
from .watchdog import marked

Description = dict[str, Any]
"""As JSON has it."""


class Adopted:
    """A process that is not our child, behind the part of `subprocess.Popen` that a `Server` uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """None while it runs. Its exit code is its parent's to know: 0 stands for any."""
        try:
            # After the command in parentheses, which may itself hold blanks, comes the state.
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return 0
        # A zombie has ended: its parent, the lab, asks for it only when the lab is closed.
        return 0 if state in "ZX" else None

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended; `subprocess.TimeoutExpired` as a child's `wait` would raise."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.05)
        return 0

    def terminate(self) -> None:
        """SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def describe(lab: Lab) -> Description:
    """What `adopt` needs."""
    clusters = [{"spec": asdict(cluster.spec), "ports": cluster.ports.taken} for cluster in lab.clusters.values()]
    lab_facts = {"hbase": lab.hbase_version, "root": lab.root, "mark": lab.mark, "zk_port": lab.zk_port}
    described = json.loads(json.dumps({**lab_facts, "clusters": clusters}, default=str))
    assert isinstance(described, dict)
    return described


def adopt(description: Description) -> list[Cluster]:
    """The clusters, ready, each with an admin of our own, which `Cluster.release` ends."""
    root, mark = Path(description["root"]), description["mark"]
    java = server_java(description["hbase"], root, mark)
    pids = {Path(f"/proc/{pid}/cwd").resolve(): pid for pid in marked(mark)}
    clusters = []
    for known in description["clusters"]:
        jars = [Path(jar) for jar in known["spec"]["extra_classpath"]]
        spec = ClusterSpec(**known["spec"] | {"extra_classpath": jars})
        ports = Drawn(Ports(), known["ports"])
        cluster = Cluster(spec, root=root, java=java, ports=ports, zk_port=description["zk_port"])
        for server in cluster.servers:
            if server.folder.resolve() in pids:
                server.adopt(Adopted(pids[server.folder.resolve()]))
        cluster.start()
        clusters.append(cluster)
    return clusters
