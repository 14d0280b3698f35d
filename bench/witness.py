"""What a witness costs, what it takes, and how its folder grows.

    python -m bench.witness [ROUNDS] [--only cost|drain|growth] [--seconds N] [--rate N] [--backlog N]
                            [--entries N] [--regions N] [--prune-every N] [--families N]

For `cost` and `drain` a master with one region server replicates single puts to a slave with one, none of them with a
class of ours.

cost: the master's CPU time at a fixed rate with the slave alone, and with a witness beside it in every second round;
the witness's own against the slave's. CPU times are without the JIT compilers', and compare on a busy machine too.

drain: while both peers are disabled the master fills a backlog, then they are enabled one after the other, by turns the
one or the other first. Entries a second are from the first bytes that the master sends to the last acknowledgement, and
the bytes are those that its process writes meanwhile (/proc/PID/io). A machine with other load shows less for both.

growth: see `bench.witness_growth`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.processes import jvm_cpu_s, written_bytes
from bench.results import Ratio, record
from bench.servers import spent_s
from bench.witness_growth import Growth, measure_growth
from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import load_site
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.gather.measured_queues import measure
from status_tool.gather.queue_backlog import has_shipped
from status_tool.sources.arrivals import read_arrivals
from tests.lab.cluster import ClusterSpec
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.pair import PEER as SLAVE_PEER
from tests.pair import Pair, start_pair
from tests.witness import WITNESS_PEER, ZNODE, Witness

PARTS = ("cost", "drain", "growth")
TABLE = "load"
UNLIMITED, WRITERS = 1_000_000, 8
LOOK_S, FIRST_BYTES = 0.005, 50_000
"""More than what a region server without a load says to others."""
SETTLE_S = 3.0
"""A region server has a new peer, or none of an old one, within this time."""


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", nargs="?", type=int, default=6)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=int, default=300)
    parser.add_argument("--backlog", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=100_000_000)
    parser.add_argument("--regions", type=int, default=100)
    parser.add_argument("--prune-every", type=int, default=5_000_000)
    parser.add_argument("--families", type=int, default=1)
    asked = parser.parse_args()
    parts = asked.only or PARTS
    if "growth" in parts:
        measure_growth(Growth(asked.entries, asked.regions, asked.prune_every, asked.families))
    if set(parts) - {"growth"}:
        _on_clusters(asked, parts)
    return 0


def _on_clusters(asked: argparse.Namespace, parts: Sequence[str]) -> None:
    ports = Ports()
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        witness = Witness(lab, Path(folder) / "witness", ports.take())
        try:
            pair = start_pair(lab, ClusterSpec("master", 1), ClusterSpec("slave", 1))
            pair.create_table(TABLE, {"f": 1})
            witness.start()
            key = f"127.0.0.1:{lab.zk_port}:{ZNODE}"
            if "cost" in parts:
                _cost(pair, witness, key, asked)
            if "drain" in parts:
                _drain(pair, key, asked)
        finally:
            if witness.process is not None:
                witness.end()
    ports.release()


def _cost(pair: Pair, witness: Witness, key: str, asked: argparse.Namespace) -> None:
    assert witness.process is not None
    masters: dict[bool, list[float]] = {True: [], False: []}
    sinks: dict[str, list[float]] = {"witness": [], "slave": []}
    for number in range(2 * asked.rounds):
        has_witness = number % 2 == 1
        if has_witness:
            # What was written before is none of its.
            pair.master.admin.roll_wal()
            pair.master.admin.add_peer(WITNESS_PEER, key)
        time.sleep(SETTLE_S)
        before = spent_s(pair.master), jvm_cpu_s(witness.process.pid), spent_s(pair.slave)
        written = _write(pair, asked.rate, asked.seconds)
        master, own, slave = (
            after - first
            for after, first in zip(
                (spent_s(pair.master), jvm_cpu_s(witness.process.pid), spent_s(pair.slave)), before, strict=True
            )
        )
        print(f"{written} puts, CPU s: master {master:.2f}, witness {own:.2f}, slave {slave:.2f}", flush=True)
        masters[has_witness].append(1000 * master / written)
        if has_witness:
            sinks["witness"].append(1000 * own / written)
            sinks["slave"].append(1000 * slave / written)
            pair.master.admin.remove_peer(WITNESS_PEER)
    size = (asked.rate, "puts/s", "CPU ms a put")
    cost = "the master with a witness beside its slave"
    record(Ratio("witness", cost, "with the slave alone", *size, tuple(masters[True]), tuple(masters[False])))
    alone = "a witness"
    record(Ratio("witness", alone, "HBase's slave", *size, tuple(sinks["witness"]), tuple(sinks["slave"])))
    _size(witness)


def _drain(pair: Pair, key: str, asked: argparse.Namespace) -> None:
    peers = {"witness": WITNESS_PEER, "slave": SLAVE_PEER}
    pair.master.admin.remove_peer(SLAVE_PEER)
    rates: dict[str, list[float]] = {name: [] for name in peers}
    sizes: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(asked.rounds):
        pair.master.admin.roll_wal()  # what was written before is none of theirs
        pair.master.admin.add_peer(WITNESS_PEER, key, enabled=False)
        pair.connect(enabled=False)
        time.sleep(SETTLE_S)
        written = _fill(pair, asked.backlog)
        for name in sorted(peers, reverse=number % 2 == 1):
            seconds, size = _drained(pair, peers[name])
            print(f"{name}: {written} entries in {seconds:.2f} s, {size / written:.0f} bytes an entry", flush=True)
            rates[name].append(written / seconds)
            sizes[name].append(size / written)
        for peer in peers.values():
            pair.master.admin.remove_peer(peer)
    for unit, found in (("entries/s", rates), ("bytes an entry", sizes)):
        ours, theirs = tuple(found["witness"]), tuple(found["slave"])
        record(Ratio("witness", "a witness's peer", "HBase's slave's", asked.backlog, "entries", unit, ours, theirs))


def _fill(pair: Pair, count: int) -> int:
    """Write so many single puts, or a few more, as fast as some writers do; their number."""
    admin = pair.master.admin
    loads = [admin.load_start(TABLE, "f", UNLIMITED, f"{time.time_ns()}.") for _ in range(WRITERS)]
    while sum(map(admin.load_count, loads)) < count:
        time.sleep(0.1)
    return sum(map(admin.load_stop, loads))


def _drained(pair: Pair, peer: str) -> tuple[float, int]:
    """Enable a peer; seconds from its first bytes to its last acknowledgement, and the bytes."""
    settings = Settings(load_site([pair.master.conf_dir], environ={}))
    pid = pair.master.region_servers[0].pid
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        mark = now = measure(settings, zookeeper)
        before, began = written_bytes(pid), 0.0
        pair.master.admin.enable_peer(peer)
        while not has_shipped(mark, now, peer):
            if not began:
                time.sleep(LOOK_S)
                began = time.monotonic() if written_bytes(pid) - before > FIRST_BYTES else 0.0
                continue
            now = measure(settings, zookeeper)
        ended, after = time.monotonic(), written_bytes(pid)
    return ended - began, after - before


def _write(pair: Pair, rate: int, seconds: float) -> int:
    """Write at this rate until all has arrived everywhere; the number of puts."""
    load = pair.master.admin.load_start(TABLE, "f", rate_per_s=rate, prefix=f"{time.time_ns()}.")
    time.sleep(seconds)
    written = pair.master.admin.load_stop(load)
    pair.wait_drained()
    return written


def _size(witness: Witness) -> None:
    """Bytes an entry as it comes, and in a set."""
    for kind in ("log", "set"):
        entries = sum(one.count() for one in read_arrivals(witness.store).values())
        size = sum(file.stat().st_size for file in witness.store.glob(f"*.{kind}"))
        print(f"{entries} entries, {size} bytes in files *.{kind}: {size / entries:.2f} bytes an entry", flush=True)
        witness.end()
        witness.start()


if __name__ == "__main__":
    raise SystemExit(main())
