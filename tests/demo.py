"""`make demo`: two real clusters, a complete verdict, then data lost for good and caught.

Everything runs on loopback as processes of this demo and is gone when it ends.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.pair import PEER, Pair, Result, start_pair, tool

ROWS = 2000
TABLES = {"orders": [b"row00000700", b"row00001400"], "customers": [b"row00001000"], "audit": []}


class DemoFailed(Exception):
    """The demo did not show what it promises."""


def step(text: str) -> None:
    """Say in plain words what happens next."""
    print(f"\n==> {text}", flush=True)


def show(result: Result, expected: int) -> None:
    """Print what the tool printed; fail unless it left with the expected code."""
    print("\n".join(f"    {line}" for line in (result.stderr + result.stdout).rstrip().splitlines()))
    print(f"    (exit code {result.exit_code})", flush=True)
    if result.exit_code != expected:
        raise DemoFailed(f"exit code {result.exit_code}, expected {expected}")


def run(cluster: Cluster, *arguments: str | Path, expected: int = 0) -> Result:
    """Run the tool on a cluster, showing the command."""
    print(f"    $ status-tool {' '.join(Path(a).name if isinstance(a, Path) else a for a in arguments)}", flush=True)
    result = tool(*arguments, conf=cluster)
    show(result, expected)
    return result


def load(pair: Pair) -> None:
    """Tables with a replicated family, one of them with a local family besides, and rows in all."""
    for table, splits in TABLES.items():
        families = {"d": 1, "local": 0} if table == "audit" else {"d": 1}
        pair.create_table(table, families, splits)
        pair.master.admin.put_rows(table, "d", ROWS)
    pair.master.admin.put_rows("audit", "local", 500)  # never replicated, and never in scope
    for table in TABLES:
        pair.wait_same(table, ["d"])


def lose(pair: Pair) -> None:
    """Write rows that no peer will ever ship: exactly what an operator does who re-creates a peer."""
    admin = pair.master.admin
    admin.remove_peer(PEER)
    admin.put_rows("orders", "d", 25, start=ROWS, prefix="row")
    admin.roll_wal()
    pair.connect()
    admin.put_rows("orders", "d", 25, start=ROWS + 25, prefix="row")


def demo(folder: Path) -> None:
    """The whole story; raises `DemoFailed` where it ends in another way."""
    with Lab(say=lambda text: print(f"    {text}", flush=True)) as lab:
        step("Starting two clusters (HBase, HDFS, ZooKeeper, Thrift), two region servers each, with the trackers")
        pair = start_pair(lab)
        step(f"Creating {len(TABLES)} tables on both and writing {len(TABLES) * ROWS} rows on the master")
        load(pair)
        pair.master.admin.hdfs_put("/data/export/part-0", 300_000)
        pair.slave.admin.hdfs_put("/data/export/part-0", 300_000)
        step("The application stops: record when, write the master's status, check it on the slave")
        run(pair.master, "shutdown-time", "record")
        run(pair.master, "run", "-m", "-o", folder / "master.status", "--all-files")
        run(pair.slave, "run", "-i", folder / "master.status", "--wait", "60")
        step("Now data is lost for real: remove the peer, write 25 rows, roll the WAL, add the peer, write 25 more")
        lose(pair)
        time.sleep(3)  # let the later rows be shipped, so that the newest timestamps agree
        lags = [lag for lag in pair.master.admin.replication_lag() if lag.peer == PEER]
        step("HBase itself sees nothing wrong:")
        for lag in lags:
            print(f"    {lag}")
        rows = [len(side.admin.rows("orders")) for side in (pair.master, pair.slave)]
        print(f"    but orders has {rows[0]} rows on the master and {rows[1]} on the slave", flush=True)
        step("The same two commands again. Timestamps alone would say complete; the streams do not")
        run(pair.master, "shutdown-time", "record")
        run(pair.master, "run", "-m", "-o", folder / "master2.status", "--all-files")
        result = run(pair.slave, "run", "-i", folder / "master2.status", expected=1)
        if "gap" not in result.stdout:
            raise DemoFailed("no gap was named")
        step("Done: complete was proven, and the loss was caught. Everything is being stopped")


def main() -> int:
    """Run the demo; 0 if it showed what it promises."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        with tempfile.TemporaryDirectory(prefix="status-tool-demo-") as folder:
            demo(Path(folder))
    except (DemoFailed, subprocess.TimeoutExpired) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
