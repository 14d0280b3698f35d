"""Reading and writing state: a real state table and `hbase:meta` with many regions, read in several ways.

    python -m bench.state_table [--streams N] [--rounds N] [--calls]

A cluster of its own is given N regions that never were: for each a row in `hbase:meta`, a head, a tenure and a row of
segments, as HBase and the trackers write them, and flushed. Then, by turns: happybase alone and our reader, one scanner
each over the whole state table; HBase's Java client; what `run -m` reads (heads, facts, tenures) into Arrow, and what
`run -i` reads, by Spark's tasks; `run -m -o FILE` as a whole command, with its peak memory; and that file's rows written
by pyarrow alone. `--calls` tries numbers of rows a call instead.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import closing

import happybase

from status_tool.clients import thrift
from status_tool.clients.config import ThriftEndpoint
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import TYPES
from status_tool.sources.state_table import StateTableSource, generation
from status_tool.vocabulary.header import MASTER
from tests.lab.cluster import Cluster
from tests.pair import STATE_TABLE

STREAMS = 100_000
ROUNDS = 3
TABLES = 50
AT_A_TIME = 50_000
CALLS = (500, 1_000, 2_000, 5_000, 10_000)
"""Rows a call that `--calls` tries."""
HAPPYBASE_CALL = 2_000
"""The best of them for happybase."""
COMPILERS = ("-XX:TieredStopAtLevel=4",)
"""As a cluster's JVMs run. Those of tests stop at the first compiler, for a quick start."""
SITE = {
    # The master would look for holes among regions that never were.
    "hbase.catalogjanitor.interval": "86400000",
    "hbase.master.hbck.chore.interval": "0",
}
_TICKS_S = os.sysconf("SC_CLK_TCK")


def fill(cluster: Cluster, streams: int) -> None:
    """So many regions, streams and rows of segments, in store files."""
    servers = cluster.admin.live_servers()
    for start in range(0, streams, AT_A_TIME):
        span = {"start": start, "end": min(streams, start + AT_A_TIME), "count": streams}
        cluster.admin.call("many_regions", 600, table=STATE_TABLE, servers=servers, tables=TABLES, **span)
    for table in (STATE_TABLE, thrift_meta()):
        cluster.admin.flush(table)


def thrift_meta() -> str:
    """The table of regions."""
    return "hbase:meta"


# -- ways to read; each is called in a process of its own, and returns how many rows it has seen


def by_happybase(endpoint: ThriftEndpoint, rows_a_call: int) -> int:
    """As happybase's own documentation has it."""
    with closing(happybase.Connection(endpoint.host, endpoint.port, timeout=60_000)) as client:
        found = client.table(STATE_TABLE).scan(include_timestamp=True, batch_size=rows_a_call)
        return sum(1 for _ in found)


def by_our_scan(endpoint: ThriftEndpoint, rows_a_call: int) -> int:
    """The scan that all of the tool's reading goes through."""
    thrift.SCAN_ROWS = rows_a_call
    return sum(1 for _ in thrift.scan(endpoint, STATE_TABLE, b"", None))


def side_of(endpoint: ThriftEndpoint, side: str) -> StateTableSource:
    """What a run reads of a side's state table."""
    return StateTableSource(endpoint, STATE_TABLE, TYPES[side], generation(endpoint, STATE_TABLE))


def as_run_m(endpoint: ThriftEndpoint, rows_a_call: int) -> int:
    """Threads, and Arrow batches."""
    return sum(batch.num_rows for batch in read_all(side_of(endpoint, MASTER)))


READERS: dict[str, Callable[[ThriftEndpoint, int], int]] = {
    "happybase": by_happybase,
    "our scan": by_our_scan,
    "as run -m": as_run_m,
}


def child(way: str, port: int, rows_a_call: int) -> None:
    """One way in this process: a JSON line with its rows, seconds and CPU seconds."""
    endpoint = ThriftEndpoint("127.0.0.1", port)
    began, cpu = time.perf_counter(), time.process_time()
    rows = READERS[way](endpoint, rows_a_call)
    spent = {"rows": rows, "seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    print(json.dumps(spent | {"mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
