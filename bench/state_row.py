"""What a stream's row in the state table costs to read after many batches: one column a segment, or one a server.

`python -m bench.state_row [--batches N,N,…]`: on a cluster of its own. Both forms get the same batches, with the cells
that a tracker writes for them, though many in one call. The old form: a column for each batch, then merged with its
predecessor and deleted. The new one: an overwritten column. Printed: the median time of a Get and of a scan of the row
by Thrift.
"""

from __future__ import annotations

import argparse
import base64
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import happybase

from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.thrift import connection
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.pair import tracked_spec

TABLE = "rows"
READS = 15
PATIENCE_S = 1800.0
FORMS = {"one column a segment": "state_row_merged", "one column a server": "state_row_overwritten"}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.state_row", description=__doc__)
    parser.add_argument("--batches", default="100,10000,100000")
    steps = [int(number) for number in parser.parse_args().batches.split(",")]
    with Lab() as lab:
        (cluster,) = lab.start_clusters(tracked_spec("one", region_servers=1, trackers={}))
        cluster.admin.create_table(TABLE, {"t": 0})
        with opened(ThriftEndpoint("127.0.0.1", cluster.thrift_port)) as table:
            for name, command in FORMS.items():
                measure(cluster, table, name, command, steps)


@contextmanager
def opened(endpoint: ThriftEndpoint) -> Iterator[happybase.Table]:
    """The table, over one connection."""
    with connection(endpoint) as client:
        yield client.table(TABLE)


def measure(cluster: Cluster, table: happybase.Table, name: str, command: str, steps: list[int]) -> None:
    """One form, read after each step."""
    row, done = name.encode(), 0
    text = base64.b64encode(row).decode()
    for step in steps:
        cluster.admin.call(command, PATIENCE_S, table=TABLE, row=text, start=done, end=step)
        done = step
        get = median(lambda: table.row(row))
        scan = median(lambda: list(table.scan(row_start=row, row_stop=row + b"\0")))
        print(f"{name}, {step:>7} batches: get {get:7.2f} ms, scan {scan:7.2f} ms", flush=True)


def median(read: Callable[[], object]) -> float:
    """Of so many reads, in milliseconds."""
    times = []
    for _ in range(READS):
        began = time.perf_counter()
        read()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
