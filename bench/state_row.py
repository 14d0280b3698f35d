"""What a stream's row in the state table costs to read after many batches: one column a segment, or one a server.

`python -m bench.state_row [--batches N,N,…]`: on a cluster of its own, by Thrift. Both forms get the same batches, as a
tracker writes them. The old form: a column for each, then merged with its predecessor and deleted. The new one: an
overwritten column of one segment. Printed: the median time of a Get and of a scan of the row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import happybase

from status_tool.config import ThriftEndpoint
from status_tool.sources.thrift import connection
from tests.lab.lab import Lab
from tests.pair import tracked_spec

TABLE = "rows"
READS = 15
FIRST_TIMESTAMP = 1_000_000
COLUMN = b"t:c" + b"\x07" * 8


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.state_row", description=__doc__)
    parser.add_argument("--batches", default="100,10000,100000")
    steps = [int(number) for number in parser.parse_args().batches.split(",")]
    with Lab() as lab:
        (cluster,) = lab.start_clusters(tracked_spec("one", region_servers=1, trackers={}))
        cluster.admin.create_table(TABLE, {"t": 0})
        with opened(ThriftEndpoint("127.0.0.1", cluster.thrift_port)) as table:
            for name, write in (("one column a segment", put_and_delete), ("one column a server", overwrite)):
                measure(table, name, write, steps)


@contextmanager
def opened(endpoint: ThriftEndpoint) -> Iterator[happybase.Table]:
    """The table, over one connection."""
    with connection(endpoint) as client:
        yield client.table(TABLE)


def measure(
    table: happybase.Table, name: str, write: Callable[[happybase.Table, bytes, int], None], steps: list[int]
) -> None:
    """One form, read after each step."""
    row, done = name.encode(), 0
    for step in steps:
        began = time.perf_counter()
        for number in range(done, step):
            write(table, row, number)
        spent = time.perf_counter() - began
        get = median(lambda: table.row(row))
        scan = median(lambda: list(table.scan(row_start=row, row_stop=row + b"\0")))
        each = spent / (step - done) * 1000
        done = step
        print(
            f"{name}, {step:>7} batches: get {get:7.2f} ms, scan {scan:7.2f} ms; written at {each:.2f} ms each",
            flush=True,
        )


def put_and_delete(table: happybase.Table, row: bytes, number: int) -> None:
    """The batch's segment; then it is merged with what was there before."""
    table.put(row, {segment(number, number + 1): bytes(16)})
    if number:
        with table.batch() as batch:
            batch.put(row, {segment(0, number + 1): bytes(16)})
            batch.delete(row, [segment(number, number + 1), *([segment(0, number)] if number > 1 else [])])


def overwrite(table: happybase.Table, row: bytes, number: int) -> None:
    """All that is known, under the next timestamp."""
    table.put(row, {COLUMN: b"\x01" + bytes(48)}, timestamp=FIRST_TIMESTAMP + number)


def segment(prev: int, seq: int) -> bytes:
    """A column of the old form."""
    return b"t:p" + prev.to_bytes(8, "big") + seq.to_bytes(8, "big")


def median(read: Callable[[], object]) -> float:
    """Milliseconds."""
    times = []
    for _ in range(READS):
        began = time.perf_counter()
        read()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
