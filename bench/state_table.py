"""Reading and writing state: a real state table and `hbase:meta` with many regions, read in several ways.

    python -m bench.state_table [STREAMS] [--rounds N] [--calls]

A cluster of its own is given regions that never were: for each a row in `hbase:meta`, a head, a tenure and a row of
segments, as HBase and the trackers write them, in store files. Then, by turns and each in a process of its own:
happybase alone, our scanner and HBase's Java client (in a JVM that runs already) over the whole state table; what
`run -m` reads of it, and what `run -i` reads by Spark's tasks, into Arrow; `run -m -o FILE` as a whole command against
happybase that reads the same rows, and its peak memory against that with a tenth of the streams. Before all that, and
without a cluster, a status file against bare pyarrow with its defaults. `--calls` tries numbers of rows a call instead.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import happybase
import pyarrow as pa
import pyarrow.parquet as pq

from bench.processes import cpu_s
from bench.results import Ratio, record
from bench.servers import COMPILERS, took
from status_tool.clients import thrift
from status_tool.clients.config import ThriftEndpoint
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import TYPES
from status_tool.sources import codec
from status_tool.sources.state_table import StateTable, StateTableSource, generation
from status_tool.spark import source as spark_source
from status_tool.spark.session import spark_session
from status_tool.status_file.writer import ROW_GROUP_ROWS, StatusWriter
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.names import META
from status_tool.vocabulary.schema import STATUS_SCHEMA, NewRow
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import STATE_TABLE, serves_state, tool_environment, tracked_spec

NAME = "state_table"
STREAMS = 100_000
ROUNDS = 3
TABLES = 50
AT_A_TIME = 50_000
FILL_S = 600.0
CALLS = (500, 1_000, 2_000, 5_000, 10_000)
"""Rows a call that `--calls` tries."""
SITE = {
    # The master would look for holes among regions that never were.
    "hbase.catalogjanitor.interval": "86400000",
    "hbase.master.hbck.chore.interval": "0",
}


def main() -> None:
    """Measure, print and record."""
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
        return
    if sys.argv[1:2] == ["write"]:
        _write(*map(int, sys.argv[2:]))
        return
    parser = argparse.ArgumentParser(prog="python -m bench.state_table", description=__doc__)
    parser.add_argument("streams", nargs="?", type=int, default=STREAMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--calls", action="store_true")
    asked = parser.parse_args()
    if not asked.calls:
        # A process of its own: what this one has held would count as the peak of every command that it starts.
        writing = [sys.executable, "-m", "bench.state_table", "write", str(asked.streams), str(asked.rounds)]
        subprocess.run(writing, check=True)
    with tempfile.TemporaryDirectory() as folder, Lab(jvm_options=COMPILERS) as lab:
        (cluster,) = lab.start_clusters(tracked_spec("one", site=SITE))
        wait_until(lambda: serves_state(cluster), 120, "a tracker has made the state table")
        StateTable(_endpoint(cluster.thrift_port), STATE_TABLE).put_barrier()  # draws the table's id
        bench = _Bench(cluster, Path(folder), asked.streams, asked.rounds)
        if asked.calls:
            bench.fill(0, asked.streams)
            bench.calls()
        else:
            tenth = asked.streams // 10
            bench.fill(0, tenth)
            small = bench.run_m()
            bench.fill(tenth, asked.streams)
            bench.readers()
            bench.commands(small)


def _endpoint(port: int | str) -> ThriftEndpoint:
    return ThriftEndpoint("127.0.0.1", int(port))


# -- ways to read, each in a process of its own: how many rows of HBase it has read


def _happybase(port: str, rows_a_call: str) -> int:
    """The whole table, as happybase's documentation has it."""
    return _happybase_rows(port, STATE_TABLE, None, None, int(rows_a_call))


def _happybase_master(port: str, rows_a_call: str) -> int:
    """What `run -m` reads, one scanner after the other."""
    spans = [(STATE_TABLE, kind.encode(), bytes([ord(kind) + 1])) for kind in TYPES[MASTER]]
    return sum(_happybase_rows(port, *span, int(rows_a_call)) for span in (*spans, (META, None, None)))


def _happybase_rows(port: str, table: str, start: bytes | None, stop: bytes | None, rows_a_call: int) -> int:
    with closing(happybase.Connection("127.0.0.1", int(port), timeout=60_000)) as client:
        found = client.table(table).scan(start, stop, include_timestamp=True, batch_size=rows_a_call)
        return sum(1 for _ in found)


def _our_scan(port: str, rows_a_call: str) -> int:
    """The scan that all of the tool's reading of many rows goes through."""
    thrift.SCAN_ROWS = int(rows_a_call)
    return sum(len(page) for page in thrift.scan_pages(_endpoint(port), STATE_TABLE, b"", None))


def _source(port: str, side: str) -> StateTableSource:
    endpoint = _endpoint(port)
    return StateTableSource(endpoint, STATE_TABLE, TYPES[side], generation(endpoint, STATE_TABLE))


def _run_m_reading(port: str, rows_a_call: str) -> int:
    """By threads; of each stream a head and a tenure, and a `stream` row comes of it."""
    thrift.SCAN_ROWS = int(rows_a_call)
    rows: int = sum(batch.num_rows for batch in read_all(_source(port, MASTER)))
    return 2 * rows


def _run_i_reading(port: str, streams: str) -> tuple[int, float]:
    """By Spark's tasks; of each stream a row of segments and a tenure. The seconds are without Spark's start."""
    with spark_session() as spark:
        for _ in range(2):  # the first time starts the Python workers
            began = time.perf_counter()
            rows = spark_source.load(spark, _source(port, SLAVE)).where("kind = 'segment'").count()
    assert rows == int(streams), rows
    return 2 * rows, time.perf_counter() - began


READERS: dict[str, Callable[[str, str], int | tuple[int, float]]] = {
    "happybase": _happybase,
    "happybase, as run -m": _happybase_master,
    "our scanner": _our_scan,
    "run -m's reading": _run_m_reading,
    "run -i's reading": _run_i_reading,
}


def _child(way: str, *arguments: str) -> None:
    """One way in this process: JSON with rows, seconds and CPU seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    found = READERS[way](*arguments)
    rows, seconds = found if isinstance(found, tuple) else (found, time.perf_counter() - began)
    print(json.dumps({"rows": rows, "seconds": seconds, "cpu": time.process_time() - cpu}))


def _timed(command: Sequence[str | Path]) -> tuple[float, float, str]:
    """Seconds, peak MiB and output of a whole command, which must succeed."""
    began = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=tool_environment(),
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, output)
    return time.perf_counter() - began, usage.ru_maxrss / 1024, output


class _Bench:
    """The cluster, and everything that is measured on it."""

    def __init__(self, cluster: Cluster, folder: Path, streams: int, rounds: int) -> None:
        self._cluster, self._folder, self._streams, self._rounds = cluster, folder, streams, rounds

    def fill(self, start: int, end: int) -> None:
        """Regions from a number to another, in the state table and in `hbase:meta`."""
        admin = self._cluster.admin
        common: dict[str, Any] = {"table": STATE_TABLE, "servers": admin.live_servers(), "tables": TABLES}
        for first in range(start, end, AT_A_TIME):
            span = {"start": first, "end": min(end, first + AT_A_TIME), "count": self._streams}
            admin.call("many_regions", FILL_S, **common, **span)
        for table in (STATE_TABLE, META):
            admin.flush(table)

    def calls(self) -> None:
        """Rows a second by rows a call."""
        found: defaultdict[int, list[float]] = defaultdict(list)
        for _ in range(self._rounds):
            for rows in CALLS:
                found[rows].append(self._rate("our scanner", rows))
        for rows in CALLS:
            self._record(f"our scanner, {rows:,} rows a call", "500 rows a call", found[rows], found[CALLS[0]])

    def readers(self) -> None:
        """Rows a second of each way, by turns."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        ways = ("happybase", "our scanner", "run -m's reading")
        for way in ways:  # the servers have compiled what they run then, and hold the rows in memory
            self._rate(way)
        self._java()
        for _ in range(self._rounds):
            for way in ways:
                found[way].append(self._rate(way))
            found["HBase's Java client"].append(self._java())
            found["run -i's reading"].append(self._rate("run -i's reading", self._streams))
        bare, java = found["happybase"], found["HBase's Java client"]
        thrifts = "one Thrift server, and a scanner that waits for it"
        self._record("our scanner", "happybase, one scanner", found["our scanner"], bare, thrifts)
        self._record("our scanner", "HBase's Java client, one scanner", found["our scanner"], java, thrifts)
        python = "decoding in Python, one core"
        self._record("run -m's reading into Arrow", "happybase, one scanner", found["run -m's reading"], bare, python)
        cores = f"{os.cpu_count()} cores for Spark, Thrift and region servers"
        self._record("run -i's reading by Spark", "happybase, one scanner", found["run -i's reading"], bare, cores)

    def _rate(self, way: str, argument: int = thrift.SCAN_ROWS) -> float:
        """Rows a second; CPU a row is printed by who spends it."""
        before = self._servers_cpu()
        _, _, output = _timed([*self._reader(way), str(argument)])
        spent = json.loads(output.splitlines()[-1])
        servers = [after - first for after, first in zip(self._servers_cpu(), before, strict=True)]
        each = [f"{1e6 * cpu / spent['rows']:.1f}" for cpu in (spent["cpu"], *servers)]
        rate: float = spent["rows"] / spent["seconds"]
        print(f"  {way}, {argument}: {rate:,.0f} rows/s; CPU µs a row: this process, Thrift, region servers {each}")
        return rate

    def _reader(self, way: str) -> list[str]:
        return [sys.executable, "-m", "bench.state_table", "child", way, str(self._cluster.thrift_port)]

    def _java(self) -> float:
        spent = self._cluster.admin.call("scan", FILL_S, table=STATE_TABLE, caching=thrift.SCAN_ROWS)
        rate: float = spent["rows"] / spent["seconds"]
        return rate

    def _servers_cpu(self) -> list[float]:
        """CPU seconds so far of the Thrift server and of all region servers."""
        servers = self._cluster.region_servers
        return [cpu_s(self._cluster.thrift.pid), sum(cpu_s(server.pid) for server in servers)]

    def run_m(self) -> tuple[float, float]:
        """Seconds and peak MiB of `run -m -o FILE`, without samples: these regions have no rows."""
        options = ("--only", "hbase", "--sample", "off", "--conf-dir", self._cluster.conf_dir)
        tool: list[str | Path] = [sys.executable, "-m", "status_tool"]
        seconds, mib, _ = _timed([*tool, "run", "-m", "-o", self._folder / "master.status", *options])
        return seconds, mib

    def commands(self, small: tuple[float, float]) -> None:
        """`run -m` against the bare scan of the same rows, and its memory against that of a small one."""
        ours, theirs = list[tuple[float, float]](), list[float]()
        for _ in range(self._rounds):
            ours.append(self.run_m())
            theirs.append(_timed([*self._reader("happybase, as run -m"), str(thrift.SCAN_ROWS)])[0])
        limit = "reading hbase:meta and the state table through Thrift, decoding in Python"
        self._record("run -m", "happybase reading the same rows", [one[0] for one in ours], theirs, limit, "s")
        small_mib, limit = [small[1]], "what waits for a row group; some 170 bytes a region"
        self._record("run -m, peak", "run -m of a tenth", [one[1] for one in ours], small_mib, limit, "MiB")

    def _record(
        self, what: str, against: str, ours: list[float], theirs: list[float], limit: str = "", unit: str = "rows/s"
    ) -> None:
        sizes = (self._streams, "streams and regions", unit, tuple(ours), tuple(theirs))
        record(Ratio(NAME, what, against, *sizes, limit=limit))


# -- writing


def _write(streams: int, rounds: int) -> None:
    """A status file of a master against the same batches through pyarrow alone; both hold the rows in memory."""
    rows, ours, theirs = list(codec.batches(_rows(streams))), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for write, times in ((_status_file, ours), (_parquet, theirs)):
                times.append(took(partial(write, Path(folder, "written"), rows)))
    limit = "zstd and Parquet's own encoding; SHA-256, fsync"
    sizes = (2 * streams, "rows", "s", tuple(ours), tuple(theirs))
    record(Ratio(NAME, "a status file", "pyarrow's ParquetWriter", *sizes, limit=limit))


def _status_file(path: Path, batches: Sequence[pa.RecordBatch]) -> None:
    with StatusWriter(path, Header(MASTER, "00000000-0000-4000-8000-000000000001", 1, 1)) as writer:
        for batch in batches:
            writer.write(batch)


def _parquet(path: Path, batches: Sequence[pa.RecordBatch]) -> None:
    group = ROW_GROUP_ROWS // codec.BATCH_ROWS
    with pq.ParquetWriter(path, STATUS_SCHEMA, compression="zstd") as writer:
        for first in range(0, len(batches), group):
            writer.write_table(pa.Table.from_batches(batches[first : first + group]))


def _rows(streams: int) -> Iterator[NewRow]:
    """A region and a stream each, with names as random as HBase's."""
    for kind in ("region", "stream"):
        for number in range(streams):
            region = hashlib.md5(b"%d" % number, usedforsecurity=False).hexdigest()
            row: NewRow = {"kind": kind, "table": f"many{number % TABLES}", "region": region}
            row |= {"start_key": b"customer-%08d" % number, "end_key": b"customer-%08d" % (number + TABLES)}
            if kind == "region":
                yield row | {"region_id": 1, "state": "hosted", "server": "host,16020,1"}
            else:
                times = {"first_ms": 10**12 + number, "write_ms": 10**12 + 7 * number}
                yield row | {"origin": number % 5, "via": 0, "seq": number % 997, "entries": 400} | times


if __name__ == "__main__":
    main()
