"""What a record of a request costs, as a put and as an append: `python -m bench.request_record [ROUNDS]`.

One cluster with one region server. A JVM writes records, one and three at a time (as many as replication has handlers),
by turns: each as a put by HBase's asynchronous client, as trackers do, or as a line that is appended to one open file
and has reached the DataNode (`hflush`), one flush for all that wait. CPU seconds of that JVM, of the region server and
of the DataNode, without their compilers: on a slave the first two are one process.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping

from bench.jvm import started
from bench.processes import jvm_cpu_s
from bench.results import Ratio, record
from bench.servers import COMPILERS
from tests.lab.cluster import ClusterSpec
from tests.lab.lab import Lab

PROGRAM = "io.github.statustool.state.RecordTurns"
WAYS = ("append", "put")
RECORDS = 3_000
THREADS = (1, 3)
WARM = 4
"""Rounds that do not count, as compilers work then."""


def main(rounds: int) -> None:
    """Record the ratio for each number of threads and each process."""
    with Lab(jvm_options=COMPILERS) as lab:
        (cluster,) = lab.start_clusters(ClusterSpec("slave", 1))
        cluster.admin.create_table("records", {"f": 0})
        file = f"hdfs://127.0.0.1:{cluster.namenode.port}/records"
        servers = {"region server": cluster.region_servers[0].pid, "DataNode": cluster.datanodes[0].pid}
        with started((), PROGRAM, str(cluster.conf_dir), "records", file) as program:
            pids = {"client": program.pid, **servers}
            for threads in THREADS:
                found: dict[tuple[str, str], list[float]] = defaultdict(list)
                for number in range(-WARM, rounds):
                    for way in WAYS:
                        for name, spent in turn(program, way, threads, pids).items():
                            if number >= 0:
                                found[name, way].append(spent)
                for name in ("client and region server", "DataNode"):
                    ours, theirs = (tuple(found[name, way]) for way in WAYS)
                    what = f"{threads} appended records at a time, {name}"
                    record(Ratio("request_record", what, "puts", RECORDS, "records", "CPU s", ours, theirs))


def turn(program: subprocess.Popen[str], way: str, threads: int, pids: Mapping[str, int]) -> dict[str, float]:
    """CPU seconds of a turn."""
    assert program.stdin is not None
    assert program.stdout is not None
    before = {name: jvm_cpu_s(pid) for name, pid in pids.items()}
    print(way, RECORDS, threads, file=program.stdin, flush=True)
    assert program.stdout.readline() == "done\n"
    spent = {name: jvm_cpu_s(pid) - before[name] for name, pid in pids.items()}
    return {"client and region server": spent["client"] + spent["region server"], "DataNode": spent["DataNode"]}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
