"""`paths` of a cycle of three small real clusters against the longest of its edges, checked by itself.

    python -m bench.paths [ROUNDS]

Whole processes by turns: `paths`, then `run -m` and `run -i` of each edge. A path of two hops is read in two rounds.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.results import Ratio, record
from bench.run_on_cluster import timed
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import Pair, serves_state, tracked_spec

ROUNDS = 5
TABLES = 4
ROWS = 500
TOOL = [sys.executable, "-m", "status_tool"]


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
        whole = [*TOOL, "paths", *given, "--wait", "30"]
        timed(whole)  # which keeps the archive of Spark's classes
        ours, longest = list[float](), list[float]()
        for _ in range(rounds):
            ours.append(timed(whole))
            longest.append(max(timed_edge(edge, file) for edge in edges))
    limit = "two rounds of barriers and reads, six comparisons in one session"
    found = tuple(ours), tuple(longest)
    record(Ratio("paths", "paths", "its longest edge", 3, "clusters", "s", *found, aim="at most 1.5", limit=limit))


def timed_edge(edge: Pair, file: str) -> float:
    """Seconds of both of its commands."""
    written = timed([*TOOL, "run", "-m", "-o", file, "--only", "hbase", "--conf-dir", str(edge.master.conf_dir)])
    return written + timed([*TOOL, "run", "-i", file, "--only", "hbase", "--conf-dir", str(edge.slave.conf_dir)])


if __name__ == "__main__":
    main()
