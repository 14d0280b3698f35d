"""Write and replication throughput with and without the trackers, and with their state tables out of reach.

`python -m bench.under_fault [--rows N] [--rounds N]`: a cluster without and one with trackers, one region server each,
replicate to the same slave. In each round both write the same rows; then the state tables of both sides are disabled
and the one with trackers writes again. Printed as ratios to the cluster without trackers, medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, tracked_spec

PLAIN, TRACKED, FAULT = "without trackers", "with trackers", "with trackers, state tables disabled"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.under_fault", description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    seconds: dict[str, list[tuple[float, float]]] = {PLAIN: [], TRACKED: [], FAULT: []}
    with Lab() as lab:
        plain, tracked, slave = lab.start_clusters(
            tracked_spec("plain", region_servers=1, trackers={}),
            tracked_spec("tracked", region_servers=1),
            tracked_spec("slave", region_servers=1),
        )
        for cluster in (plain, tracked):
            cluster.admin.add_peer(PEER, slave.cluster_key)
        for number in range(options.rounds + 1):  # the first warms up
            found = {
                PLAIN: measured(plain, slave, f"plain{number}", options.rows),
                TRACKED: measured(tracked, slave, f"tracked{number}", options.rows),
            }
            with out_of_reach(tracked), out_of_reach(slave):
                found[FAULT] = measured(tracked, slave, f"fault{number}", options.rows)
            for name, times in found.items():
                seconds[name] += [times] if number else []
    report(seconds, options.rows)


def measured(cluster: Cluster, slave: Cluster, table: str, rows: int) -> tuple[float, float]:
    """Seconds until the rows are written, and until they are on the slave."""
    for side in (slave, cluster):
        side.admin.create_table(table, {"f": 1})
    began = time.perf_counter()
    cluster.admin.put_rows(table, "f", rows, value="x" * 100)
    written = time.perf_counter() - began
    wait_until(lambda: slave.admin.digest(table).rows == rows, 300, f"{rows} rows are on the slave", interval=0.1)
    return written, time.perf_counter() - began


@contextmanager
def out_of_reach(cluster: Cluster) -> Iterator[None]:
    """The cluster's state table, disabled for a while."""
    cluster.admin.disable_table(STATE_TABLE)
    try:
        yield
    finally:
        cluster.admin.enable_table(STATE_TABLE)


def report(seconds: dict[str, list[tuple[float, float]]], rows: int) -> None:
    """Medians, and their ratios to the cluster without trackers."""
    medians = {
        name: [statistics.median(times) for times in zip(*found, strict=True)] for name, found in seconds.items()
    }
    print(f"{rows} rows, medians of {len(seconds[PLAIN])} rounds (seconds, ratio to '{PLAIN}')")
    base = medians[PLAIN]
    for name, (written, shipped) in medians.items():
        ratios = (
            f"written {written:6.2f} s ({written / base[0]:.2f}), shipped {shipped:6.2f} s ({shipped / base[1]:.2f})"
        )
        print(f"{name:40} {ratios}")


if __name__ == "__main__":
    main()
