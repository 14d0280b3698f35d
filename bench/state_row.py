"""What a stream's row in the state table costs to read after many batches: one column a segment, or one a server.

`python -m bench.state_row [--batches N,N,…]`: on a cluster of its own. Both forms get the same batches, with the cells
that a tracker writes for them, though many in one call. The old form: a column for each batch, then merged with its
predecessor and deleted. The new one: an overwritten column. Compared are the times of a Get and of a scan of the row by
Thrift.
"""

from __future__ import annotations

import argparse
import base64
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import happybase

from bench.results import Ratio, record
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
    """Measure and record."""
    parser = argparse.ArgumentParser(prog="python -m bench.state_row", description=__doc__)
    parser.add_argument("--batches", default="100,10000")
    steps = [int(number) for number in parser.parse_args().batches.split(",")]
    with Lab() as lab:
        (cluster,) = lab.start_clusters(tracked_spec("one", region_servers=1, trackers={}))
        cluster.admin.create_table(TABLE, {"t": 0})
        with opened(ThriftEndpoint("127.0.0.1", cluster.thrift_port)) as table:
            found = [measure(cluster, table, name, command, steps) for name, command in FORMS.items()]
    for step, merged, overwritten in zip(steps, *found, strict=True):
        for what, theirs, ours in zip(("Get", "scan"), merged, overwritten, strict=True):
            against, mine = (f"{what} of a stream's row with {name}" for name in FORMS)
            limit = "one request through the Thrift server"
            record(Ratio("state_row", mine, against, step, "batches", "ms", ours, theirs, limit=limit))


@contextmanager
def opened(endpoint: ThriftEndpoint) -> Iterator[happybase.Table]:
    """The table, over one connection."""
    with connection(endpoint) as client:
        yield client.table(TABLE)


def measure(
    cluster: Cluster, table: happybase.Table, name: str, command: str, steps: list[int]
) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
    """One form, read after each step: the times of a Get, and of a scan."""
    row, done = name.encode(), 0
    text = base64.b64encode(row).decode()
    found = []
    for step in steps:
        cluster.admin.call(command, PATIENCE_S, table=TABLE, row=text, start=done, end=step)
        done = step
        found.append((times(lambda: table.row(row)), times(lambda: list(table.scan(row, row + b"\0")))))
    return found


def median(read: Callable[[], object]) -> float:
    """Of so many reads, in milliseconds."""
    return statistics.median(times(read))


def times(read: Callable[[], object]) -> tuple[float, ...]:
    """Each of so many reads, in milliseconds."""
    found = []
    for _ in range(READS):
        began = time.perf_counter()
        read()
        found.append((time.perf_counter() - began) * 1000)
    return tuple(found)


if __name__ == "__main__":
    main()
