"""`status-tool rows` against VerifyReplication and HashTable with SyncTable, on two real clusters in one run.

    python -m bench.rows [ROWS…]

Whole processes, theirs as local jobs. "Best" is VerifyReplication with `hbase.mapreduce.scan.cachedrows=1000`. Digests
may take half of the time of one thread a region server, and 20 MB/s, by default.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.lab.lab import Lab
from tests.pair import PEER, Pair, start_pair, tool

SIZES = (10_000, 100_000)
REGIONS = 8
TIMEOUT_S = 3_600
MAPREDUCE = "org.apache.hadoop.hbase.mapreduce"
VERIFY = f"{MAPREDUCE}.replication.VerifyReplication"


def filled(pair: Pair, rows: int) -> str:
    """A table of so many rows, the same on both sides."""
    table = f"rows{rows}"
    pair.create_table(
        table, {"f": 1}, [f"row{at:08d}".encode() for at in range(rows // REGIONS, rows, rows // REGIONS)]
    )
    pair.master.admin.put_rows(table, "f", rows, value="v" * 40)
    pair.wait_same(table, timeout=600)
    return table


def ours(pair: Pair, table: str) -> None:
    """Equal, as a whole process."""
    options = ("--table", table, "--master-conf", str(pair.master.conf_dir))
    result = tool("rows", *options, conf=pair.slave, timeout=TIMEOUT_S)
    assert result.exit_code == 0, result


def verify(pair: Pair, table: str, *options: str) -> None:
    """VerifyReplication on the master."""
    pair.master.run_main(VERIFY, [*options, PEER, table], TIMEOUT_S)


def hash_and_sync(pair: Pair, table: str, folder: Path) -> None:
    """HashTable on the master, SyncTable on the slave, which only compares."""
    hashes = f"file://{folder}/{table}"
    pair.master.run_main(f"{MAPREDUCE}.HashTable", [table, hashes], TIMEOUT_S)
    source = f"--sourcezkcluster={pair.master.cluster_key}"
    pair.slave.run_main(f"{MAPREDUCE}.SyncTable", ["--dryrun=true", source, hashes, table, table], TIMEOUT_S)


def took(work: Callable[[], None]) -> float:
    """In seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(sizes: tuple[int, ...]) -> None:
    """Print seconds and ratios by number of rows."""
    cached = "-Dhbase.mapreduce.scan.cachedrows=1000"
    print(f"{'rows':>9} {'rows cmd':>9} {'verify':>9} {'best':>9} {'hash+sync':>9}   verify/rows best/rows sync/rows")
    with tempfile.TemporaryDirectory() as name, Lab() as lab:
        pair, folder = start_pair(lab), Path(name)
        for rows in sizes:
            table = filled(pair, rows)
            works = (
                partial(ours, pair, table),
                partial(verify, pair, table),
                partial(verify, pair, table, cached),
                partial(hash_and_sync, pair, table, folder),
            )
            digests, *others = map(took, works)
            seconds = " ".join(f"{other:8.1f}s" for other in others)
            ratios = "  ".join(f"{other / digests:9.2f}" for other in others)
            print(f"{rows:9} {digests:8.1f}s {seconds}   {ratios}", flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
