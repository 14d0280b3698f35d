"""`paths` of a cycle of three small real clusters against the longest of its edges, checked by itself.

    python -m bench.paths [ROUNDS]

Whole processes by turns: `paths`, then `run -m` and `run -i` of each edge, the
longest of which counts. A path of two hops is read in two rounds.
CPU time is of all processes that a command has started, to their ends.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.results import Ratio, record
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import Pair, serves_state, tracked_spec

ROUNDS = 7
TABLES = 4
ROWS = 500
AIM = "at most 1.5"
LIMIT = "two rounds of barriers and reads, six comparisons"
TOOL = [sys.executable, "-m", "status_tool"]
MEASURED = """
import ctypes, os, resource, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: a JVM that outlives its parent is waited for here
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
wall = time.perf_counter() - began
try:
    while os.wait():
        pass
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall, used.ru_utime + used.ru_stime)
sys.exit(done.returncode)
"""


class Cost(NamedTuple):
    """Cost of a command, in seconds."""

    wall: float
    cpu: float


def cost_of(*command: str) -> Cost:
    """Run a command of this tool, which must succeed."""
    whole = [sys.executable, "-c", MEASURED, *TOOL, *command]
    shown = subprocess.run(whole, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Cost(*map(float, shown.split()))


def prepare(clusters: tuple[Cluster, ...]) -> list[Pair]:
    """The edges of the cycle, with tables of eight regions that all clusters write to."""
    edges = [Pair(one, clusters[(at + 1) % len(clusters)]) for at, one in enumerate(clusters)]
    splits = [f"row{at:08d}".encode() for at in range(ROWS // 8, ROWS, ROWS // 8)]
    for edge in edges:
        edge.connect()
        wait_until(partial(serves_state, edge.master), 120, "a tracker has made the state table")
        for number in range(TABLES):
            edge.master.admin.create_table(f"t{number}", {"f": 1}, splits=splits)
    for edge in edges:
        for number in range(TABLES):
            edge.master.admin.put_rows(f"t{number}", "f", ROWS, prefix=edge.master.spec.name)
    for edge in edges:
        edge.wait_same(f"t{TABLES - 1}")
    return edges


def main() -> None:
    """Run all rounds."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as name, Lab() as lab:
        clusters = tuple(lab.start_clusters(*(tracked_spec(one, region_servers=1) for one in "abc")))
        edges, file = prepare(clusters), str(Path(name) / "file")
        given = [f"--cluster={one.spec.name}={one.conf_dir}" for one in clusters]
        whole = ["paths", *given, "--wait", "30", "-q"]
        cost_of(*whole)  # which keeps the archive of Spark's classes
        ours = list[Cost]()
        theirs: list[list[Cost]] = [[] for _ in edges]
        for _ in range(rounds):
            ours.append(cost_of(*whole))
            for edge, costs in zip(edges, theirs, strict=True):
                costs.append(cost_of_edge(edge, file))
    for at, unit in enumerate(("s", "CPU s")):
        # By its median: the greatest of each round would be whatever the machine was busy with.
        longest = max(([cost[at] for cost in costs] for costs in theirs), key=statistics.median)
        found = tuple(cost[at] for cost in ours), tuple(longest)
        record(Ratio("paths", "paths", "its longest edge", 3, "clusters", unit, *found, aim=AIM, limit=LIMIT))


def cost_of_edge(edge: Pair, file: str) -> Cost:
    """Cost of both of its commands together."""
    half = ["--only", "hbase", "-q", "--conf-dir"]
    written = cost_of("run", "-m", "-o", file, *half, str(edge.master.conf_dir))
    checked = cost_of("run", "-i", file, "--wait", "30", *half, str(edge.slave.conf_dir))
    return Cost(written.wall + checked.wall, written.cpu + checked.cpu)


if __name__ == "__main__":
    main()
