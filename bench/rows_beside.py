"""What row digests cost the puts and gets beside them, on a real cluster: `python -m bench.rows_beside [ROUNDS]`.

By turns for a while each: puts and gets alone, and beside digests of a large table without end on the same region
servers. Latencies as a client of Thrift sees them; the ratios are those of the two halves of a round.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial

import happybase

from bench.results import Ratio, record
from bench.rows import filled
from bench.servers import COMPILERS, took
from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import load_site
from status_tool.digests.counted import RowsCounted
from status_tool.digests.digest import Family, Sums
from status_tool.digests.keys import tiles
from status_tool.digests.requests import Requests
from status_tool.digests.wire import Query
from status_tool.report.progress import Phase
from tests.lab.lab import Lab
from tests.pair import Pair, start_pair

ROWS = 300_000
HALF_S = 20.0
LIMIT = "`digest.rate` and half of one thread a region server, on cores that all share"


@dataclass(frozen=True)
class Latencies:
    """Seconds, of each operation of one half."""

    puts: list[float]
    gets: list[float]

    def at(self, share: float) -> tuple[float, float]:
        """The quantile of puts and gets."""
        puts, gets = (sorted(each)[int(share * (len(each) - 1))] for each in (self.puts, self.gets))
        return puts, gets


def worked(pair: Pair) -> Latencies:
    """Puts and gets in turn, as fast as they go, for one half."""
    found = Latencies([], [])
    with contextlib.closing(happybase.Connection("127.0.0.1", pair.master.thrift_port)) as client:
        table, at, ends = client.table("hot"), 0, time.monotonic() + HALF_S
        while time.monotonic() < ends:
            key = f"row{at % 10_000:08d}".encode()
            found.puts.append(took(partial(table.put, key, {b"f:q": b"v" * 40})))
            found.gets.append(took(partial(table.row, key)))
            at += 1
    return found


class Rows(RowsCounted):
    """Counts rows."""

    def __init__(self, rows: list[int]) -> None:
        super().__init__(Phase("rows"), Phase("bytes"), Phase("ranges"))
        self._slices = rows

    def digested(self, sums: Sums) -> None:
        """Of one slice."""
        self._slices.append(sums.rows)


def digesting(pair: Pair, table: str, over: threading.Event, rows: list[int]) -> None:
    """Digests the table again and again."""
    settings = Settings(load_site([pair.master.conf_dir], environ={}), f"127.0.0.1:{pair.master.thrift_port}")
    while not over.is_set():
        asked = Query({table: {b"f": Family(1)}}, os.urandom(16), int(time.time() * 1000))
        with Requests(settings, asked, over) as requests:
            parts = tiles((table,), ((one.table, one.start) for one in requests.regions()))
            while not over.is_set():
                requests.ask(parts, Rows(rows))
                parts = {number + len(parts): part for number, part in parts.items()}


def main(rounds: int) -> None:
    """Record p50 and p99 with and without."""
    with Lab(jvm_options=COMPILERS) as lab:
        pair = start_pair(lab)
        table = filled(pair, ROWS)
        pair.create_table("hot", {"f": 1})
        worked(pair)
        alone, beside = list[Latencies](), list[Latencies]()
        for number in range(rounds):
            alone.append(worked(pair))
            over, rows = threading.Event(), list[int]()
            digester = threading.Thread(target=digesting, args=(pair, table, over, rows))
            digester.start()
            time.sleep(3)
            beside.append(worked(pair))
            over.set()
            digester.join()
            print(f"{number} digested {sum(rows)} rows meanwhile", flush=True)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            for at, what in enumerate(("put", "get")):
                ours, theirs = (tuple(1000 * one.at(share)[at] for one in side) for side in (beside, alone))
                named = f"{what} beside digests, {name}", f"{what} alone"
                record(Ratio("rows_beside", *named, ROWS, "rows", "ms", ours, theirs, limit=LIMIT))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
