"""What a witness costs: the master's CPU time with one more peer, and its own against that of HBase's slave.

    python -m bench.witness [ROUNDS] [--seconds N] [--rate N]

A master with one region server replicates single puts at a fixed rate to a slave with one, none of them with a class of
ours. In every second round it has a witness as well. CPU times are without the JIT compilers', and compare on a busy
machine too; a witness that has a core for itself takes as many entries a second as fit into one of its CPU seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from bench.processes import jvm_cpu_s
from bench.results import Ratio, record
from status_tool.sources.arrivals import read_arrivals
from tests.lab.cluster import Cluster, ClusterSpec
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.pair import Pair, start_pair
from tests.witness import WITNESS_PEER, ZNODE, Witness

TABLE = "load"
SETTLE_S = 3.0
"""A region server has a new peer, or none of an old one, within this time."""


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=int, default=300)
    asked = parser.parse_args()
    ports = Ports()
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        witness = Witness(lab, Path(folder) / "witness", ports.take())
        try:
            _measure(lab, witness, asked)
        finally:
            if witness.process is not None:
                witness.end()
    ports.release()
    return 0


def _measure(lab: Lab, witness: Witness, asked: argparse.Namespace) -> None:
    pair = start_pair(lab, ClusterSpec("master", 1), ClusterSpec("slave", 1))
    pair.create_table(TABLE, {"f": 1})
    witness.start()
    assert witness.process is not None
    key = f"127.0.0.1:{lab.zk_port}:{ZNODE}"
    masters: dict[bool, list[float]] = {True: [], False: []}
    sinks: dict[str, list[float]] = {"witness": [], "slave": []}
    for number in range(2 * asked.rounds):
        has_witness = number % 2 == 1
        if has_witness:
            # What was written before is none of its.
            pair.master.admin.roll_wal()
            pair.master.admin.add_peer(WITNESS_PEER, key)
        time.sleep(SETTLE_S)
        before = _cpu(pair.master), jvm_cpu_s(witness.process.pid), _cpu(pair.slave)
        written = _write(pair, asked.rate, asked.seconds)
        master, own, slave = (
            after - first
            for after, first in zip(
                (_cpu(pair.master), jvm_cpu_s(witness.process.pid), _cpu(pair.slave)), before, strict=True
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


def _cpu(cluster: Cluster) -> float:
    return sum(jvm_cpu_s(server.pid) for server in cluster.region_servers)


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
