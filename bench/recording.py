"""What recording costs a slave: one region server whose tracker is called for replication requests or not, by turns.

`python -m bench.recording [--minutes N] [--control]`: two JVMs that run the same program differ by more than 2 %, which
`bench.watching` cannot avoid; here one JVM is compared with itself. Rounds of each kind come in random order within a
pair: a backlog, and single puts at a steady rate that are shipped as they come. The region server's CPU time counts,
without its JIT compilers. What the recorder's thread writes falls into rounds of both kinds, and so does the write-time
tracker. `--control`: the tracker is always called, which shows what the measurement itself makes of nothing.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from functools import partial

from bench import watching
from bench.servers import COMPILERS, spent_s
from bench.steady_load import DEFAULT_PERIODS
from bench.watching import BACKLOG_CALLS, BATCH_ROWS, BATCH_THREADS, CPU, LIVE_RATE, SHIPPED, THROUGHPUT, Bench, Figure
from tests.lab.cluster import ClusterSpec
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import BOTH_TRACKERS, JAR, serves_state

SWITCHED = {**BOTH_TRACKERS, "hbase.coprocessor.regionserver.classes": "io.github.statustool.lab.SwitchedTracker"}
OFF = "recording-off"
"""A file in the region server's folder, as `SwitchedTracker` looks for it."""
LOOKS_S = 0.3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.recording", description=__doc__)
    parser.add_argument("--minutes", type=float, default=4, help="everything together")
    parser.add_argument("--control", action="store_true", help="the tracker is always called")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    with Lab() as lab:
        bench = start(lab)
        warm = time.monotonic() + watching.WARM * (end - time.monotonic())
        while time.monotonic() < warm:
            one_turn(bench, options.control)
        bench.figures.clear()
        while time.monotonic() < end:
            one_turn(bench, options.control)
        watching.report(bench)


def start(lab: Lab) -> Bench:
    """A source and a slave of one region server each, and a peer that is disabled."""
    site = {**DEFAULT_PERIODS, **watching.NOTHING_ELSE}
    source, slave = lab.start_clusters(
        *(
            ClusterSpec(name, 1, site=site | own, rs_options=COMPILERS, extra_classpath=[JAR], thrift=False)
            for name, own in {"source": BOTH_TRACKERS, "slave": SWITCHED}.items()
        )
    )
    for cluster, scope in ((source, 1), (slave, 0)):
        wait_until(partial(serves_state, cluster), 120, f"{cluster.name}: a tracker has made the state table")
        cluster.admin.create_table(SHIPPED, {"f": scope}, watching.SPLITS)
    source.admin.add_peer(slave.name, slave.cluster_key, enabled=False)
    return Bench(source, slave, slave, BOTH_TRACKERS, {})


def one_turn(bench: Bench, control: bool) -> None:
    """A pair of each kind; now and then the memory is emptied, outside of the rounds."""
    compare(bench, "a backlog shipped to a slave", backlog, control)
    compare(bench, f"{LIVE_RATE} single puts a second, replicated as they come,", live, control)
    bench.turns += 1
    if bench.turns % watching.FLUSH_TURNS == 0:
        bench.source.admin.flush(SHIPPED)
        bench.watched.admin.flush(SHIPPED)


def compare(bench: Bench, what: str, phase: Callable[[Bench], dict[str, float]], control: bool) -> None:
    """One pair of rounds."""
    off = watching.server(bench.watched).folder / OFF
    found = {}
    for recorded in random.sample((True, False), 2):
        if not (recorded or control):
            off.touch()
        time.sleep(LOOKS_S)
        found[recorded] = phase(bench)
        off.unlink(missing_ok=True)
    for name in found[True]:
        unit, aim = ("rows/s", THROUGHPUT) if name == "rate" else ("CPU s per million rows", CPU)
        figure = Figure(f"{what} with recording", "without, in the same JVM", unit, 1, "region server", aim)
        bench.add(figure, found[True][name], found[False][name])


def backlog(bench: Bench) -> dict[str, float]:
    """Rows that were written while the peer was disabled."""
    rows = BATCH_ROWS * BACKLOG_CALLS
    first = bench.rows(rows + 2)
    watching.timed_puts(bench, bench.source, SHIPPED, first, 1, 1, 1)
    watching.timed_puts(bench, bench.source, SHIPPED, first + 1, BATCH_ROWS, BACKLOG_CALLS, BATCH_THREADS)
    watching.timed_puts(bench, bench.source, SHIPPED, first + rows + 1, 1, 1, 1)
    return watching.ship(bench, bench.watched, first, first + rows + 1)


def live(bench: Bench) -> dict[str, float]:
    """Rows that are shipped as they come."""
    slave = bench.watched
    bench.source.admin.enable_peer(slave.name)
    before = spent_s(slave)
    rows = watching.replicate_live(bench, [slave])["rows"]
    spent = spent_s(slave) - before
    bench.source.admin.disable_peer(slave.name)
    bench.rows(rows)
    return {"cpu": spent / rows * 1e6}


if __name__ == "__main__":
    main()
