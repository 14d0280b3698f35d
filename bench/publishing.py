"""The age of the recovery point under load, and what publishing adds to the WAL and to the peer's traffic.

    python -m bench.publishing [MINUTES]

A master with one region server replicates to a slave with one. Writers send edits of every kind all the time, `publish`
runs at its default interval, and the slave is asked again and again, at random moments, for its recovery point. The age
is that of the moment at which the published files were listed.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from bench.results import Ratio, record
from bench.servers import rpc_bytes, wal_files, web
from tests.campaign.points import publisher
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.pair import Pair, start_pair, tool, tracked_spec

INTERVAL_S = 30.0
EDITS_S = 200
TABLE = "load"
SPLITS = [b"%02d" % number for number in range(5, 100, 5)]
PAUSE_S = 10.0
"""The most between two questions."""
_SENT = re.compile(r" (\d+) of them sent;")


def main() -> int:
    """Run the benchmark."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    ports = Ports()
    web_port = ports.take()
    with Lab() as lab:
        slave = tracked_spec("slave", region_servers=1, rs_site=[web(web_port)])
        pair = start_pair(lab, tracked_spec("master", region_servers=1), slave)
        pair.create_table(TABLE, {"f": 1}, SPLITS)
        mix = pair.master.admin.mix_start({TABLE: ["f"]}, seed=1, rate_per_s=EDITS_S, mark="load.")
        with publisher(pair, interval_s=INTERVAL_S) as process:
            _measure(pair, web_port, process, minutes)
        pair.master.admin.mix_stop(mix)
    ports.release()
    return 0


def _measure(pair: Pair, web_port: int, process: subprocess.Popen[str], minutes: float) -> None:
    rounds = _Rounds(process)
    rounds.wait(3)
    wal = _Wal(pair.master)
    wal.begin()
    first, received = len(rounds.sent), rpc_bytes(web_port, "receivedBytes")
    ages_s = _ages_s(pair, time.monotonic() + 60 * minutes, wal)
    count, sent = len(rounds.sent) - first, sum(rounds.sent[first:])
    received, grown = rpc_bytes(web_port, "receivedBytes") - received, wal.grown()
    size = (EDITS_S, "edits/s", "bytes")
    cells = "cells of a round of publish"
    record(Ratio("publishing", cells, "the master's WAL meanwhile", *size, (sent / count,), (grown / count,)))
    record(Ratio("publishing", cells, "all requests to the slave", *size, (sent / count,), (received / count,)))
    age = "age of the recovery point under load"
    record(Ratio("publishing", age, "the interval", minutes, "minutes", "s", ages_s, (INTERVAL_S,) * len(ages_s)))


def _ages_s(pair: Pair, end: float, wal: _Wal) -> tuple[float, ...]:
    found, draw = list[float](), random.Random(1)
    while time.monotonic() < end:
        time.sleep(draw.uniform(0, PAUSE_S))
        wal.look()
        answer = tool("recovery-point", "--json", conf=pair.slave, timeout=600)
        assert answer.exit_code in (0, 1), answer
        found.append(answer.json["age_ms"] / 1000)
        print(f"{found[-1]:.1f} s, {answer.json['judged']} judged, {answer.json['held_back_by']}", flush=True)
    return tuple(found)


@dataclass
class _Rounds:
    """The bytes that each round of a publisher has sent."""

    process: subprocess.Popen[str]
    sent: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := _SENT.search(line):
                self.sent.append(int(found[1]))

    def wait(self, count: int) -> None:
        """Wait until so many have ended."""
        while len(self.sent) < count:
            assert self.process.poll() is None, "the publisher has ended"
            time.sleep(1)


@dataclass
class _Wal:
    """Files of the WAL of a cluster with one region server, those of `hbase:meta` left out."""

    cluster: Cluster
    _before: dict[str, int] = field(default_factory=dict)
    _lengths: dict[str, int] = field(default_factory=dict)
    """Also of files that have been deleted since."""

    def begin(self) -> None:
        """Count from here on."""
        self.cluster.admin.roll_wal()
        time.sleep(1)  # files are closed in the background
        self.look()
        self._before = dict(self._lengths)

    def look(self) -> None:
        """Note the lengths of what is there."""
        self._lengths |= wal_files(self.cluster)

    def grown(self) -> int:
        """Return the bytes since `begin`."""
        self.cluster.admin.roll_wal()
        time.sleep(1)
        self.look()
        return sum(length - self._before.get(name, 0) for name, length in self._lengths.items())


if __name__ == "__main__":
    sys.exit(main())
