"""What recording costs a slave: one region server whose tracker is called for replication requests or not, by turns.

`python -m bench.recording [--minutes N] [--control]`: two JVMs that run the same program differ by more than 2 %, which
`bench.watching` cannot avoid; here one JVM is compared with itself. Rounds of each kind come in random order within a
pair: a backlog, and single puts at a steady rate that are shipped as they come. The region server's CPU time counts,
without its JIT compilers; whether the rows are there is asked ten times a second, so that answers cost next to nothing.
What the recorder's thread writes falls into rounds of both kinds, and so does the write-time tracker. `--control`: the
tracker is always called, which shows what the measurement itself makes of nothing.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from functools import partial

from bench import watching
from bench.servers import COMPILERS, ROOM, spent_s
from bench.steady_load import DEFAULT_PERIODS
from bench.watching import BATCH_ROWS, BATCH_THREADS, CPU, LIVE_RATE, SHIPPED, Bench, Figure
from tests.lab.cluster import ClusterSpec
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import BOTH_TRACKERS, JAR, serves_state

SWITCHED = {**BOTH_TRACKERS, "hbase.coprocessor.regionserver.classes": "io.github.statustool.lab.SwitchedTracker"}
OFF = "recording-off"
"""A file in the region server's folder, as `SwitchedTracker` looks for it."""
LOOKS_S = 0.3
BACKLOG_CALLS = 1_000


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
            ClusterSpec(name, 1, site=site | own, rs_options=(*COMPILERS, *ROOM), extra_classpath=[JAR], thrift=False)
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


def compare(bench: Bench, what: str, phase: Callable[[Bench], int], control: bool) -> None:
    """One pair of rounds."""
    slave = bench.watched
    off = watching.server(slave).folder / OFF
    found = {}
    for recorded in random.sample((True, False), 2):
        if not (recorded or control):
            off.touch()
        time.sleep(LOOKS_S)
        before = spent_s(slave)
        rows = phase(bench)
        _await_last(bench)
        found[recorded] = (spent_s(slave) - before) / rows * 1e6
        bench.source.admin.disable_peer(slave.name)
        off.unlink(missing_ok=True)
    unit = "CPU s per million rows"
    figure = Figure(f"{what} with recording", "without, in the same JVM", unit, 1, "region server", CPU)
    bench.add(figure, found[True], found[False])


def backlog(bench: Bench) -> int:
    """Write rows while the peer is disabled, and enable it; how many."""
    rows = BATCH_ROWS * BACKLOG_CALLS
    watching.timed_puts(bench, bench.source, SHIPPED, bench.rows(rows), BATCH_ROWS, BACKLOG_CALLS, BATCH_THREADS)
    bench.source.admin.enable_peer(bench.watched.name)
    return rows


def live(bench: Bench) -> int:
    """Write rows that are shipped as they come; how many."""
    bench.source.admin.enable_peer(bench.watched.name)
    rows: int = watching.replicate_live(bench, [])["rows"]
    bench.rows(rows)
    return rows


def _await_last(bench: Bench) -> None:
    """Wait until a row that is written now has arrived."""
    row = bench.rows(1)
    watching.timed_puts(bench, bench.source, SHIPPED, row, 1, 1, 1)
    slave = bench.watched.cluster_key
    bench.source.admin.call("await_row", cluster=slave, table=SHIPPED, row=row, poll_ms=100)


if __name__ == "__main__":
    main()
