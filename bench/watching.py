"""What watching costs: region servers with the trackers against region servers without, by turns.

`python -m bench.watching [--minutes N] [--interval P] [--restarts N] [--fault] [--control]`: two clusters, one of them
with both trackers under their default periods, take turns in rounds of about a second, in random order within each
pair; a third, with both trackers, ships the same edits to each of them. The JVMs compile as those of a real cluster do,
and what their compilers take is not counted. Rounds go on until the 95 % interval of the mean ratio of a pair is
narrower than P % on each side for all that has an aim, or the time is up; the interval that was reached is printed.

Two JVMs of the same program differ by more than rounds show, as they compile and lay out their heaps differently.
`--restarts N` therefore restarts the region servers with their roles exchanged, N times: the more often, the less
remains of that (`--minutes 40 --restarts 5`). Each start's mean is printed. `--control`: neither has trackers, which
shows what the measurement itself makes of nothing. `--fault`: with the state tables disabled.

Measured: puts at the client in calls of 100 rows and of one (rows a second, median and 99th percentile of a call, CPU
seconds of the region server a million rows); a backlog shipped to a slave, and edits that are shipped as they are
written, by single puts at a steady rate (until an edit is on the slave, CPU seconds of the slave's region server);
bytes of the WAL with and without its compression, and of the network.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.results import Ratio, record
from bench.servers import COMPILERS, rpc_bytes, spent_s, wal_files, web
from tests.lab.cluster import Cluster, ClusterSpec, stop_together
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.lab.process import RegionServer
from tests.lab.waiting import wait_until
from tests.pair import BOTH_TRACKERS, JAR, STATE_TABLE, serves_state

WRITTEN, SHIPPED = "written", "shipped"
"""Tables: the one that clients write on both clusters, and the one that the third replicates to them."""
DEFAULT_PERIODS = {
    "hbase.replicationtable.updatedelay": "30000",
    "hbase.replicationtable.updateperiod": "20000",
    "hbase.replicationtable.barrierpoll": "1000",
}
"""Those of the trackers (`Settings`); the tests' own are shorter."""
SPLITS = [str(digit).encode() for digit in range(1, 10)]
"""`TimedCommands` spreads rows over ten regions."""
VALUE_BYTES = 100
BATCH_ROWS, BATCH_CALLS, BATCH_THREADS = 100, 150, 2
SINGLE_CALLS, SINGLE_THREADS = 2_500, 8
BACKLOG_CALLS = 400
LIVE_RATE, LIVE_THREADS, LIVE_MS, LAG_MS = 1_000, 4, 5_000, 1_500
SHIPPED_S = 2
"""Until the last edits of a steady load are on the slaves: nobody asks them, as that would cost them something, too."""
HEAP = ("-Xms2g", "-Xmx2g", "-Xmn1g", "-XX:+AlwaysPreTouch")
"""With the heap of tests, collections become the largest part of what a region server takes within minutes."""
FLUSH_TURNS = 8
"""Before memory is short, outside of the rounds."""
WARM = 0.3
"""How much of the time of each start of the region servers does not count, as they compile."""
BYTES_S = 50
"""What is kept for the bytes at the end."""
JMX_PERIOD_S = 1
"""HBase answers again from what it knew for so long."""
NOTHING_ELSE = {
    "hbase.hstore.compaction.min": "1000",
    "hbase.hstore.blockingStoreFiles": "1000",
    "replication.source.sleepforretries": "1000",
    "replication.source.maxretriesmultiplier": "1",
    "replication.source.size.capacity": str(1 << 20),
    "hbase.client.pause": "20",
}
"""No compaction falls into a round. A source that has shipped everything looks again after a second, as HBase's default
has it, however often it found nothing; a backlog is shipped in requests of a MiB, for more than one of them. Whoever
enables a peer looks more often whether that is done."""
COMPRESSED = {"hbase.regionserver.wal.enablecompression": "true"}
WRITE_TRACKER, BOTH_OF_THEM = "with the write-time tracker", "with the trackers"
THROUGHPUT, CPU = "at least 0.99", "at most 1.02"


@dataclass
class Figure:
    """What is compared, and of each pair of rounds what was found with trackers and without."""

    what: str
    against: str
    unit: str
    size: float
    sizes: str
    aim: str = ""
    limit: str = ""
    starts: dict[int, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    """By the number of the start of the region servers."""

    @property
    def ratio(self) -> Ratio:
        """Over all starts."""
        pairs = [pair for found in self.starts.values() for pair in found]
        ours, theirs = zip(*pairs, strict=True)
        about = (self.what, self.against, self.size, self.sizes, self.unit)
        return Ratio("watching", *about, ours, theirs, self.aim, self.limit)


@dataclass
class Bench:
    """The clusters, which of them has trackers, and what was found."""

    source: Cluster
    watched: Cluster
    plain: Cluster
    trackers: Mapping[str, str]
    web_ports: Mapping[str, int]
    start: int = 0
    turns: int = 0
    next_row: int = 0
    figures: dict[str, Figure] = field(default_factory=dict)

    def rows(self, count: int) -> int:
        """The first of so many rows that nothing has written yet."""
        first = self.next_row
        self.next_row += count
        return first

    def add(self, figure: Figure, watched: float, plain: float) -> None:
        """One pair; the first one of its kind determines the words."""
        self.figures.setdefault(f"{figure.what}, {figure.unit}", figure).starts[self.start].append((watched, plain))

    def by_turns(self, phase: Callable[[Cluster], dict[str, float]]) -> Iterator[tuple[str, float, float]]:
        """One pair of rounds in random order: name, with trackers, without."""
        order = [self.watched, self.plain]
        random.shuffle(order)
        found = {cluster.name: phase(cluster) for cluster in order}
        for name, value in found[self.watched.name].items():
            yield name, value, found[self.plain.name][name]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.watching", description=__doc__)
    parser.add_argument("--minutes", type=float, default=4, help="everything together")
    parser.add_argument("--interval", type=float, default=1, help="percent on each side that are enough")
    parser.add_argument("--restarts", type=int, default=0, help="of the measured region servers, roles exchanged")
    parser.add_argument("--fault", action="store_true", help="the state tables are disabled")
    parser.add_argument("--control", action="store_true", help="neither has trackers")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    with Lab() as lab:
        bench = start(lab, {} if options.control else BOTH_TRACKERS)
        for number in range(options.restarts + 1):
            if number:
                exchange_roles(bench)
            left = end - BYTES_S - time.monotonic()
            with out_of_reach(bench) if options.fault else nullcontext():
                measure(bench, time.monotonic() + left / (options.restarts + 1 - number), options.interval)
        report(bench)
        if not options.fault:
            compare_bytes(bench)


# -- clusters


def start(lab: Lab, trackers: Mapping[str, str]) -> Bench:
    """Three of them, with the tables and the peers, which are disabled."""
    ports = Ports()
    web_ports = {name: ports.take() for name in ("source", "one", "two")}
    roles = {"source": BOTH_TRACKERS, "one": trackers, "two": {}}
    site = {**DEFAULT_PERIODS, **NOTHING_ELSE}
    clusters = lab.start_clusters(
        *(
            ClusterSpec(
                name,
                1,
                site=site,
                rs_site=[{**role, **web(web_ports[name])}],
                rs_options=[*COMPILERS, *HEAP],
                extra_classpath=[JAR],
                thrift=False,
            )
            for name, role in roles.items()
        )
    )
    source, one, two = clusters
    bench = Bench(source, one, two, trackers, web_ports)
    for cluster in clusters:
        scopes = {WRITTEN: int(cluster is not bench.source), SHIPPED: int(cluster is bench.source)}
        for table, scope in scopes.items():
            cluster.admin.create_table(table, {"f": scope}, SPLITS)
    for cluster in (bench.watched, bench.plain):
        bench.source.admin.add_peer(cluster.name, cluster.cluster_key, enabled=False)
    wait_for_trackers(bench)
    return bench


def server(cluster: Cluster) -> RegionServer:
    """The only one."""
    return cluster.region_servers[0]


def tracked(bench: Bench) -> Sequence[Cluster]:
    """The clusters with trackers."""
    return (bench.source, bench.watched) if bench.trackers else (bench.source,)


def wait_for_trackers(bench: Bench) -> None:
    """Until their state tables are there."""
    for cluster in tracked(bench):
        wait_until(partial(serves_state, cluster), 120, f"{cluster.name}: a tracker has made the state table")


def exchange_roles(bench: Bench) -> None:
    """Restart both region servers, with the trackers where there were none."""
    bench.watched, bench.plain = bench.plain, bench.watched
    bench.start += 1
    restart(bench, {bench.watched.name: bench.trackers, bench.plain.name: {}}, {})


def restart(bench: Bench, roles: Mapping[str, Mapping[str, str]], more: Mapping[str, str]) -> None:
    """The region servers of these clusters, each with its trackers, and with more settings."""
    clusters = [cluster for cluster in (bench.source, bench.watched, bench.plain) if cluster.name in roles]
    stop_together([server(cluster) for cluster in clusters])
    for cluster in clusters:
        metrics = server(cluster).conf_dir / "hadoop-metrics2-hbase.properties"
        metrics.write_text(f"*.period={JMX_PERIOD_S}\n")
        own = {**roles[cluster.name], **web(bench.web_ports[cluster.name]), **more}
        cluster.reconfigure(server(cluster), own)
        server(cluster).start(wait=False)
    for cluster in clusters:
        server(cluster).wait_registered()
        wait_until(partial(serves, cluster), 120, f"{cluster.name}: all regions are open", interval=0.5)
    wait_for_trackers(bench)


def serves(cluster: Cluster) -> bool:
    """Whether all regions of the tables are open on the server that runs now."""
    name = server(cluster).server_name
    return all(region.server == name for table in (WRITTEN, SHIPPED) for region in cluster.admin.regions(table))


@contextmanager
def out_of_reach(bench: Bench) -> Iterator[None]:
    """The state tables, disabled for a while."""
    for cluster in tracked(bench):
        cluster.admin.disable_table(STATE_TABLE)
    yield
    for cluster in tracked(bench):
        cluster.admin.enable_table(STATE_TABLE)


# -- rounds


def measure(bench: Bench, end: float, percent: float) -> None:
    """Rounds until then, or until the interval of all that has an aim is narrow enough."""
    warm = time.monotonic() + WARM * (end - time.monotonic())
    while time.monotonic() < warm:
        one_turn(bench)
    for figure in bench.figures.values():
        figure.starts.pop(bench.start, None)
    one_turn(bench)
    while time.monotonic() < end and not is_narrow(bench, percent):
        one_turn(bench)


def is_narrow(bench: Bench, percent: float) -> bool:
    """Whether the intervals of all that has an aim are at most so wide on each side."""
    intervals = [figure.ratio.interval for figure in bench.figures.values() if figure.aim]
    return all(interval is not None and interval <= percent / 100 for interval in intervals)


def one_turn(bench: Bench) -> None:
    """Each kind of round: the short ones more often."""
    for _ in range(3):
        compare_puts(bench, "puts of 100 rows", BATCH_ROWS, BATCH_CALLS, BATCH_THREADS)
        compare_puts(bench, "single puts", 1, SINGLE_CALLS, SINGLE_THREADS)
    compare_backlog(bench)
    compare_live(bench)
    bench.turns += 1
    if bench.turns % FLUSH_TURNS == 0:
        for cluster in (bench.source, bench.watched, bench.plain):
            cluster.admin.flush(WRITTEN)
            cluster.admin.flush(SHIPPED)


def compare_puts(bench: Bench, what: str, batch: int, calls: int, threads: int) -> None:
    """Of a client that writes as fast as it can."""
    first = bench.rows(batch * calls)
    units = {"rate": "rows/s", "p50": "ms", "p99": "ms", "cpu": "CPU s per million rows"}
    names = {"p50": ", median of a call", "p99": ", 99th percentile of a call"}
    aims = {"rate": THROUGHPUT, "cpu": CPU}
    for name, watched, plain in bench.by_turns(lambda cluster: put(bench, cluster, first, batch, calls, threads)):
        limit = f"{threads} threads of one client on the same machine"
        figure = (units[name], batch * calls, "rows", aims.get(name, ""), limit)
        bench.add(Figure(f"{what}{names.get(name, '')} {WRITE_TRACKER}", "without", *figure), watched, plain)


def put(bench: Bench, cluster: Cluster, first: int, batch: int, calls: int, threads: int) -> dict[str, float]:
    """What a client finds, and what it costs the region server."""
    before = spent_s(cluster)
    found = timed_puts(bench, cluster, WRITTEN, first, batch, calls, threads)
    spent = spent_s(cluster) - before
    rows = batch * calls
    return {
        "rate": rows / found["seconds"],
        "p50": found["p50_ms"],
        "p99": found["p99_ms"],
        "cpu": spent / rows * 1e6,
    }


def timed_puts(
    bench: Bench, cluster: Cluster, table: str, first: int, batch: int, calls: int, threads: int
) -> dict[str, float]:
    """By the one client that writes to all clusters, so that what it costs itself is the same for all of them."""
    found: dict[str, float] = bench.source.admin.call(
        "timed_puts",
        cluster=cluster.cluster_key,
        table=table,
        start=first,
        batch=batch,
        calls=calls,
        threads=threads,
        value_bytes=VALUE_BYTES,
    )
    return found


def compare_backlog(bench: Bench) -> None:
    """Rows that were written while the peers were disabled."""
    rows = BATCH_ROWS * BACKLOG_CALLS
    first = bench.rows(rows + 2)
    last = first + rows + 1
    # The first one is acknowledged before all others are written, the last one after them: so they are in the WAL.
    timed_puts(bench, bench.source, SHIPPED, first, 1, 1, 1)
    timed_puts(bench, bench.source, SHIPPED, first + 1, BATCH_ROWS, BACKLOG_CALLS, BATCH_THREADS)
    timed_puts(bench, bench.source, SHIPPED, last, 1, 1, 1)
    for name, watched, plain in bench.by_turns(lambda cluster: ship(bench, cluster, first, last)):
        unit, aim = ("rows/s", THROUGHPUT) if name == "rate" else ("CPU s per million rows", CPU)
        what = "a backlog shipped to a slave with the trackers"
        bench.add(
            Figure(what, "without", unit, rows, "rows", aim, "one source reads one WAL and waits for each request"),
            watched,
            plain,
        )


def ship(bench: Bench, cluster: Cluster, first: int, last: int) -> dict[str, float]:
    """Enable the peer until the last row is there; timed from when the first one is, which says that it has begun."""
    bench.source.admin.enable_peer(cluster.name)
    await_row(bench, cluster, SHIPPED, first)
    # Until then the slave has answered for seconds that the row is not there.
    before, began = spent_s(cluster), time.perf_counter()
    await_row(bench, cluster, SHIPPED, last)
    took, spent = time.perf_counter() - began, spent_s(cluster) - before
    bench.source.admin.disable_peer(cluster.name)
    return {"rate": (last - first) / took, "cpu": spent / (last - first) * 1e6}


def await_row(bench: Bench, cluster: Cluster, table: str, row: int) -> None:
    """Until it is there; asked every two ms."""
    bench.source.admin.call("await_row", cluster=cluster.cluster_key, table=table, row=row)


def compare_live(bench: Bench) -> None:
    """Both slaves get the same edits at the same time: what that costs them, and how late the edits are."""
    sides = (bench.watched, bench.plain)
    for side in sides:
        bench.source.admin.enable_peer(side.name)
    first = bench.rows(1)
    timed_puts(bench, bench.source, SHIPPED, first, 1, 1, 1)
    for side in sides:
        await_row(bench, side, SHIPPED, first)
    before = [spent_s(side) for side in sides]
    rows = replicate_live(bench, (), LIVE_MS)["rows"]
    time.sleep(SHIPPED_S)
    spent = [spent_s(side) - earlier for side, earlier in zip(sides, before, strict=True)]
    lags = replicate_live(bench, sides, LAG_MS)["lags_ms"]
    for side in sides:
        bench.source.admin.disable_peer(side.name)
    what = f"{LIVE_RATE} single puts a second, replicated as they come, to a slave with the trackers"
    size = (LIVE_RATE, "rows/s")
    cpu = Figure(what, "without", "CPU s per million rows", *size, CPU, "a record for every request, however small")
    bench.add(cpu, *(one / rows * 1e6 for one in spent))
    lag = Figure(f"{what}, mean until a row is there", "without", "ms", *size)
    bench.add(lag, *map(statistics.mean, lags))


def replicate_live(bench: Bench, asked: Sequence[Cluster], millis: int) -> dict[str, Any]:
    """Rows written, and after how many ms some of them were on each slave that is asked."""
    found: dict[str, Any] = bench.source.admin.call(
        "timed_replication",
        cluster=bench.source.cluster_key,
        table=SHIPPED,
        slaves=[slave.cluster_key for slave in asked],
        start=bench.next_row,
        millis=millis,
        rate=LIVE_RATE,
        threads=LIVE_THREADS,
        value_bytes=VALUE_BYTES,
    )
    bench.rows(found["rows"])
    return found


def report(bench: Bench) -> None:
    """All ratios, with the mean of each start."""
    for figure in bench.figures.values():
        record(figure.ratio)
        means = (statistics.mean(one / other for one, other in pairs) for pairs in figure.starts.values() if pairs)
        print(f"    {figure.ratio.mean_with_interval}; by start {', '.join(f'{mean:.3f}' for mean in means)}")


# -- bytes


def compare_bytes(bench: Bench) -> None:
    """Of the WAL and of the network, for single rows and for calls of 100."""
    sides = (bench.watched, bench.plain)
    wal = {batch: [wal_bytes_a_row(bench, side, batch) for side in sides] for batch in (1, BATCH_ROWS)}
    roles = {bench.source.name: BOTH_TRACKERS, bench.watched.name: bench.trackers, bench.plain.name: {}}
    restart(bench, roles, COMPRESSED)
    small = {batch: [wal_bytes_a_row(bench, side, batch) for side in sides] for batch in (1, BATCH_ROWS)}
    sent = [bytes_to_slave(bench, side) for side in sides]
    received = bytes_into_slaves(bench, sides)
    for batch in wal:
        rows = "a single row" if batch == 1 else f"a row of puts of {batch}"
        say_bytes(f"WAL of {rows} {WRITE_TRACKER}", wal[batch], "stamp of each entry")
        say_bytes(f"compressed WAL of {rows} {WRITE_TRACKER}", small[batch], "stamp of each entry")
    say_bytes(f"requests to a slave, a single row {WRITE_TRACKER}", sent, "stamp of each entry")
    say_bytes(f"all requests to a slave's region server, a single row {BOTH_OF_THEM}", received, "a record a request")


def say_bytes(what: str, found: Sequence[float], limit: str) -> None:
    """Bytes a row with and without."""
    watched, plain = found
    record(Ratio("watching", what, "without", 1, "row", "bytes", (watched,), (plain,), "", limit))


def wal_bytes_a_row(bench: Bench, cluster: Cluster, batch: int) -> float:
    """Of files of the WAL; what the trackers write into their state table meanwhile is in them, too."""
    calls = SINGLE_CALLS if batch == 1 else BATCH_CALLS
    cluster.admin.roll_wal()
    before = wal_files(cluster)
    timed_puts(bench, cluster, WRITTEN, bench.rows(batch * calls), batch, calls, SINGLE_THREADS)
    cluster.admin.roll_wal()
    time.sleep(1)  # files are closed in the background
    after = wal_files(cluster)
    return sum(length - before.get(name, 0) for name, length in after.items()) / (batch * calls)


def bytes_to_slave(bench: Bench, cluster: Cluster) -> float:
    """What the third cluster's region server receives of each row that this one replicates to it."""
    cluster.admin.roll_wal()  # a new peer gets the current file from its beginning
    cluster.admin.add_peer("source", bench.source.cluster_key)
    try:
        first = bench.rows(SINGLE_CALLS + 1)
        before = received_bytes(bench, bench.source)
        timed_puts(bench, cluster, WRITTEN, first, 1, SINGLE_CALLS, SINGLE_THREADS)
        timed_puts(bench, cluster, WRITTEN, first + SINGLE_CALLS, 1, 1, 1)
        await_row(bench, bench.source, WRITTEN, first + SINGLE_CALLS)
        return (received_bytes(bench, bench.source) - before) / SINGLE_CALLS
    finally:
        cluster.admin.remove_peer("source")


def bytes_into_slaves(bench: Bench, slaves: Sequence[Cluster]) -> list[float]:
    """What their region servers receive of each row: by replication, from their own sink and from their trackers."""
    for slave in slaves:
        bench.source.admin.enable_peer(slave.name)
    before = [received_bytes(bench, slave) for slave in slaves]
    rows = replicate_live(bench, slaves, LIVE_MS)["rows"]
    return [(received_bytes(bench, slave) - so_far) / rows for slave, so_far in zip(slaves, before, strict=True)]


def received_bytes(bench: Bench, cluster: Cluster) -> int:
    """By the RPC server of its region server."""
    time.sleep(2 * JMX_PERIOD_S)
    return rpc_bytes(bench.web_ports[cluster.name], "receivedBytes")


if __name__ == "__main__":
    main()
