"""A long steady load on many regions: what recording costs the slave, and that nothing of it grows.

`python -m bench.steady_load [--minutes N] [--regions N] [--rate N] [--backlog N]`: one master replicates the same edits
to a slave with trackers and to one without, so that the CPU of their region servers can be compared over the same time.
In every round are measured: that ratio under the steady load, whose requests to the sink are small, and for a backlog
that is shipped in large requests after the peers were disabled for a while; the Get of one stream's row and the scan of
all of them in the slave's state table; and `run -i` as a whole process against a bare Spark session with one join. The
trackers run with their default periods.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.results import Ratio, record
from bench.run_on_cluster import BARE, timed
from bench.servers import spent_s
from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.thrift import connection
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.pair import PEER, STATE_TABLE, Pair, start_pair, tool, tracked_spec

TABLE = "steady"
ROUND_S = 300
CHECKS, READS = 3, 15
PATIENCE_S = 900
DEFAULT_PERIODS = {
    "hbase.replicationtable.updatedelay": "30000",
    "hbase.replicationtable.updateperiod": "20000",
    "hbase.replicationtable.barrierpoll": "1000",
}
"""Those of the trackers (`Settings`); the tests' own are shorter."""
PLAIN_PEER = "2"
BACKLOG_S, CATCH_UP_S = 30, 60
"""How long a backlog is written, and how long is enough to ship it."""
STREAM_ROWS = (b"s", b"t")
"""First and last (exclusive) key of the rows of streams."""


class Cpu(NamedTuple):
    """CPU seconds of the region servers of the slave with trackers, and of the one without."""

    tracked: float
    untracked: float


@dataclass(frozen=True)
class Reading:
    """One round. Times in ms, but for those of processes, which are in seconds."""

    rows: int
    """Written so far by the steady load."""
    get_ms: float
    scan_ms: float
    columns: int
    state_bytes: int
    """Keys and values of the slave's state table."""
    steady: Cpu
    backlog: Cpu
    run_s: float
    bare_s: float


def main() -> None:
    """Measure, print each round, and what has grown from the first third of the rounds to the last."""
    parser = argparse.ArgumentParser(prog="python -m bench.steady_load", description=__doc__)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--regions", type=int, default=24, help="each has a writer of its own")
    parser.add_argument("--rate", type=int, default=2, help="rows a second and region")
    parser.add_argument("--round", type=int, default=ROUND_S, help="seconds of steady load in each round")
    parser.add_argument("--backlog", type=int, default=40, help="rows a second and region while the peers are disabled")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Lab() as lab:
        pair = start_pair(lab, *(tracked_spec(name, site=DEFAULT_PERIODS) for name in ("master", "slave")))
        (plain,) = lab.start_clusters(tracked_spec("plain", trackers={}))
        pair.master.admin.add_peer(PLAIN_PEER, plain.cluster_key)
        loads = start_load(pair, plain, options.regions, options.rate)
        time.sleep(30)
        readings: list[Reading] = []
        end = time.monotonic() + options.minutes * 60
        while time.monotonic() < end or not readings:
            readings.append(one_round(pair, plain, Path(name), loads, options))
            print(readings[-1], flush=True)
    report(readings, options)


def start_load(pair: Pair, plain: Cluster, regions: int, rate: int) -> list[int]:
    """A table of so many regions on all clusters, and a writer for each region."""
    prefixes = [f"{number:03d}" for number in range(regions)]
    splits = [prefix.encode() for prefix in prefixes[1:]]
    for cluster in (pair.slave, plain, pair.master):
        cluster.admin.create_table(TABLE, {"f": 1}, splits)
    return [pair.master.admin.load_start(TABLE, "f", rate, prefix) for prefix in prefixes]


def one_round(pair: Pair, plain: Cluster, folder: Path, loads: list[int], options: argparse.Namespace) -> Reading:
    """Let it run for a while, then ship a backlog, then read and check."""
    steady = cpu_of(pair, plain, options.round)
    print(f"CPU seconds in {options.round} s, steady: {steady}", flush=True)
    backlog = ship_backlog(pair, plain, options)
    usual = Cpu(*(CATCH_UP_S / options.round * seconds for seconds in steady))
    backlog = Cpu(*(all_of_it - part for all_of_it, part in zip(backlog, usual, strict=True)))
    print(f"CPU seconds beyond that for a backlog: {backlog}", flush=True)
    get_ms, scan_ms, columns, state_bytes = read_state(pair.slave)
    run_s, bare_s = check(pair, folder)
    written = sum(pair.master.admin.load_count(load) for load in loads)
    return Reading(written, get_ms, scan_ms, columns, state_bytes, steady, backlog, run_s, bare_s)


def cpu_of(pair: Pair, plain: Cluster, seconds: float) -> Cpu:
    """Of the time to come."""
    before = spent_s(pair.slave), spent_s(plain)
    time.sleep(seconds)
    return Cpu(spent_s(pair.slave) - before[0], spent_s(plain) - before[1])


def ship_backlog(pair: Pair, plain: Cluster, options: argparse.Namespace) -> Cpu:
    """What shipping costs that was written, row by row, while both peers were disabled."""
    admin = pair.master.admin
    for peer in (PEER, PLAIN_PEER):
        admin.disable_peer(peer)
    extra = [admin.load_start(TABLE, "f", options.backlog, f"{number:03d}x") for number in range(options.regions)]
    time.sleep(BACKLOG_S)
    rows = sum(admin.load_stop(load) for load in extra)
    for peer in (PEER, PLAIN_PEER):
        admin.enable_peer(peer)
    cost = cpu_of(pair, plain, CATCH_UP_S)
    print(f"a backlog of {rows} rows", flush=True)
    return cost


def read_state(cluster: Cluster) -> tuple[float, float, int, int]:
    """Median ms of a Get of a stream's row and of a scan of them all, the most columns of a row, bytes of the table."""
    with connection(ThriftEndpoint("127.0.0.1", cluster.thrift_port)) as client:
        table = client.table(STATE_TABLE)
        found = dict(table.scan(row_start=STREAM_ROWS[0], row_stop=STREAM_ROWS[1]))
        row = max(found, key=lambda key: len(found[key]))
        return (
            median(lambda: table.row(row)),
            median(lambda: list(table.scan(row_start=STREAM_ROWS[0], row_stop=STREAM_ROWS[1]))),
            len(found[row]),
            sum(len(key) + len(name) + len(value) for key, cells in table.scan() for name, value in cells.items()),
        )


def median(read: Callable[[], object]) -> float:
    """Milliseconds of a read, the median of several."""
    return 1000 * statistics.median(timeit.repeat(read, number=1, repeat=READS))


def check(pair: Pair, folder: Path) -> tuple[float, float]:
    """Seconds of `run -i` and of the bare session, medians of alternating processes."""
    master, slave = folder / "master", folder / "slave"
    for cluster, words, file in ((pair.master, ["-m"], master), (pair.slave, [], slave)):
        written = tool("run", *words, "-o", file, "--only", "hbase", conf=cluster, timeout=PATIENCE_S)
        if written.exit_code:
            raise SystemExit(f"run -o failed: {written}")
    run, bare = [], []
    for _ in range(CHECKS):
        began = time.perf_counter()
        checked = tool("run", "-i", master, "--only", "hbase", conf=pair.slave, timeout=PATIENCE_S)
        if checked.exit_code not in (0, 1):  # what is behind is no matter here
            raise SystemExit(f"run -i failed: {checked}")
        run.append(time.perf_counter() - began)
        bare.append(timed([sys.executable, "-c", BARE, str(master), str(slave)]))
    return statistics.median(run), statistics.median(bare)


def report(readings: list[Reading], options: argparse.Namespace) -> None:
    """What has become of each figure from the first third of the rounds to the last, and the ratios."""
    third = max(1, len(readings) // 3)
    print(f"{readings[-1].rows} rows in {len(readings)} rounds; medians of the first and of the last {third}")
    for name, unit, figure in GROWING:
        ours, theirs = (tuple(map(figure, some)) for some in (readings[-third:], readings[:third]))
        size = (readings[-1].rows, "rows")
        record(Ratio("steady_load", f"{name}, last third", "first third", *size, unit, ours, theirs, "about 1"))
    for name, rate in (("steady", options.rate), ("backlog", options.backlog)):
        ours, theirs = zip(*(getattr(one, name) for one in readings), strict=True)
        about = (f"{name} load: slave with the trackers", "without", options.regions * rate, "rows/s", "CPU s")
        record(Ratio("steady_load", *about, ours, theirs, "at most 1.02", "a record for every request, however small"))
    ours, theirs = zip(*((one.run_s, one.bare_s) for one in readings), strict=True)
    record(Ratio("steady_load", "run -i", "bare session", readings[-1].rows, "rows", "s", ours, theirs))


GROWING: tuple[tuple[str, str, Callable[[Reading], float]], ...] = (
    ("Get of a stream's row", "ms", lambda one: one.get_ms),
    ("scan of all streams' rows", "ms", lambda one: one.scan_ms),
    ("columns of a row", "columns", lambda one: one.columns),
    ("state table", "bytes", lambda one: one.state_bytes),
    ("steady load: slave with the trackers", "CPU s", lambda one: one.steady.tracked),
)
"""What must not grow: name, unit, and how it is read."""


if __name__ == "__main__":
    main()
