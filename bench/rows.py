"""`status-tool rows`, and `run -m` with `run -i`, against VerifyReplication and HashTable with SyncTable.

    python -m bench.rows [ROWS[/REGIONS]…]

On two real clusters in one run. Whole processes, theirs as local jobs. "Best" is VerifyReplication with
`hbase.mapreduce.scan.cachedrows=1000`; with its defaults it is left out beyond a million rows, as a million take it six
minutes. Digests may take half of the time of one thread a region server, and 50 MB/s, by default. Bytes are what all
region servers sent and received by HBase's RPC meanwhile, as their metrics tell.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.results import Ratio, record
from bench.servers import COMPILERS, rpc_bytes, took, web
from tests.lab.cluster import ClusterSpec
from tests.lab.errors import AdminError
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.lab.waiting import wait_until
from tests.pair import PEER, Pair, start_pair, tool, tracked_spec

SIZES = ("10000", "100000")
REGIONS = 8
VERIFIED = 1_000_000
ROUNDS = 5
LARGE = 1_000_000
"""From so many rows on one round is enough: a command takes seconds of work rather than of its start."""
WARM_ROWS = 500_000
BEST = "VerifyReplication, best"
CHECK, CHECK_ALL = "run -m and run -i", "run -m and run -i, --rows=all"
START = "the start of Python, and the trackers' echo"
OURS: dict[str, tuple[str, dict[tuple[str, str], str]]] = {
    "status-tool rows": ("its start, then `digest.rate` and half of one thread a region server", {}),
    CHECK: (START, {(BEST, "s"): "0.5"}),
    CHECK_ALL: (START, {(BEST, "s"): "1"}),
}
"""What is ours: what limits it, and the aims."""
PARALLEL = "-Dmapreduce.local.map.tasks.maximum=16"
"""A local job runs one map at a time by default."""
BUFFERS = "-Dmapreduce.task.io.sort.mb=8"
"""Of maps that emit a few hashes: 100 MB each by default, which all at once do not fit into the job's heap."""
CACHED = ("-Dhbase.mapreduce.scan.cachedrows=1000", PARALLEL)
METRICS_S = 11  # Hadoop's metrics are as old as 10 s
TIMEOUT_S = 3_600
MAPREDUCE = "org.apache.hadoop.hbase.mapreduce"
VERIFY = f"{MAPREDUCE}.replication.VerifyReplication"


class Traffic:
    """What region servers with a web server each say that they sent and received."""

    def __init__(self) -> None:
        self._free = Ports()
        self._ports: list[int] = []

    def spec(self, name: str) -> ClusterSpec:
        """A cluster whose region servers are asked."""
        own = [self._free.take() for _ in range(2)]
        self._ports += own
        return tracked_spec(name, rs_site=[web(port) for port in own])

    def bytes(self) -> int:
        """Of all of them so far."""
        time.sleep(METRICS_S)
        return sum(rpc_bytes(port, "sentBytes", "receivedBytes") for port in self._ports)


def is_there(pair: Pair, table: str) -> bool:
    """Whether both sides hold the same; a busy cluster may not say so in time."""
    with contextlib.suppress(AdminError):
        return pair.same(table)
    return False


def filled(pair: Pair, rows: int, regions: int = REGIONS) -> str:
    """A table of so many rows, the same on both sides."""
    table = f"rows{rows}"
    every = rows // regions
    pair.create_table(table, {"f": 1}, [f"row{at:08d}".encode() for at in range(every, every * regions, every)])
    pair.master.admin.put_rows(table, "f", rows, value="v" * 40)
    wait_until(lambda: is_there(pair, table), TIMEOUT_S, f"{table} is the same on both sides")
    for side in (pair.master, pair.slave):
        side.admin.flush(table)
    return table


def ours(pair: Pair, table: str) -> None:
    """Equal, as a whole process."""
    options = ("--table", table, "--master-conf", str(pair.master.conf_dir))
    result = tool("rows", *options, conf=pair.slave, timeout=TIMEOUT_S)
    assert result.exit_code == 0, result


def check(pair: Pair, table: str, folder: Path, *rows: str) -> None:
    """Complete, as two processes; with rows, by FILE's digests."""
    for letters, conf in ((("-m", "-o"), pair.master), (("-i",), pair.slave)):
        words = (*letters, folder / f"{table}.status", "--table", table, "--only", "hbase", *rows)
        result = tool("run", *words, conf=conf)
        assert result.exit_code == 0, result


def verify(pair: Pair, table: str, *options: str) -> None:
    """VerifyReplication on the master."""
    pair.master.run_main(VERIFY, [*options, PEER, table], TIMEOUT_S)


def hash_and_sync(pair: Pair, table: str, folder: Path) -> None:
    """HashTable on the master, SyncTable on the slave, which only compares."""
    hashes = f"file://{tempfile.mkdtemp(dir=folder)}/hashes"  # it writes into no folder that exists
    pair.master.run_main(f"{MAPREDUCE}.HashTable", [PARALLEL, BUFFERS, table, hashes], TIMEOUT_S)
    source = f"--sourcezkcluster={pair.master.cluster_key}"
    pair.slave.run_main(f"{MAPREDUCE}.SyncTable", [PARALLEL, "--dryrun=true", source, hashes, table, table], TIMEOUT_S)


def measure(traffic: Traffic, works: dict[str, Callable[[], None]], rows: int) -> None:
    """Print seconds and bytes of each in rounds by turns, and how many times each of theirs ours are."""
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in works}
    for _ in range(1 if rows >= LARGE else ROUNDS):
        for name, work in works.items():
            before = traffic.bytes()
            found[name].append((took(work), traffic.bytes() - before))
            print(f"    {name:36} {found[name][-1][0]:8.1f} s {found[name][-1][1] / 1e6:10.2f} MB", flush=True)
    for what, (limit, aims) in OURS.items():
        for against in found.keys() - OURS.keys():
            for at, unit in enumerate(("s", "bytes")):
                mine, theirs = (tuple(each[at] for each in found[name]) for name in (what, against))
                aim = aims.get((against, unit), "")
                record(Ratio("rows", what, against, rows, "rows", unit, mine, theirs, aim=aim, limit=limit))


def commands(pair: Pair, table: str, rows: int, folder: Path) -> dict[str, Callable[[], None]]:
    """What is compared, in order; VerifyReplication with its defaults only where it comes to an end."""
    by_default = {"VerifyReplication": partial(verify, pair, table)} if rows <= VERIFIED else {}
    return {
        "status-tool rows": partial(ours, pair, table),
        CHECK: partial(check, pair, table, folder),
        CHECK_ALL: partial(check, pair, table, folder, "--rows=all"),
        **by_default,
        BEST: partial(verify, pair, table, *CACHED),
        "HashTable and SyncTable": partial(hash_and_sync, pair, table, folder),
    }


def main(sizes: Sequence[str]) -> None:
    """Print seconds, bytes and ratios by number of rows."""
    traffic = Traffic()
    with tempfile.TemporaryDirectory() as name, Lab(jvm_options=COMPILERS) as lab:
        pair, folder = start_pair(lab, traffic.spec("master"), traffic.spec("slave")), Path(name)
        # The first request of all makes the table of requests; JVMs that have run for a while have compiled the rest.
        warm = filled(pair, WARM_ROWS)
        for _ in range(3):
            ours(pair, warm)
            verify(pair, warm, *CACHED)
        check(pair, warm, folder)  # which keeps the archive of Spark's classes
        for size in sizes:
            rows, _, regions = size.partition("/")
            table = filled(pair, int(rows), int(regions or REGIONS))
            print(f"{int(rows):,} rows, {regions or REGIONS} regions", flush=True)
            measure(traffic, commands(pair, table, int(rows), folder), int(rows))


if __name__ == "__main__":
    main(sys.argv[1:] or SIZES)
