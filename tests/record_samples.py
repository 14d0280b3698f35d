"""Record `sample_status/` anew from real clusters: `make samples`.

Each sample is a pair of files: `master.status` by `run -m -o`, `slave.status` by `run -o`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import PEER, Pair, start_pair, tool


def record(pair: Pair, folder: Path, paths: Path) -> None:
    """Write both sides, as they are now."""
    folder.mkdir(parents=True, exist_ok=True)
    for cluster, letters, name in ((pair.master, ["-m"], "master"), (pair.slave, [], "slave")):
        result = tool("run", *letters, "-o", folder / f"{name}.status", "-f", paths, conf=cluster)
        if result.exit_code != 0:
            raise SystemExit(f"recording {folder.name} failed: {result}")
        print(f"{folder.name}: {result.stdout.strip()}", flush=True)


def complete(pair: Pair) -> None:
    """Two tables and some files, all of it on both sides."""
    for table, families in (("orders", {"d": 1}), ("audit", {"d": 1, "local": 0})):
        pair.create_table(table, families, [b"row00000100"])
        pair.master.admin.put_rows(table, "d", 200)
        pair.wait_same(table, ["d"])
    pair.master.admin.put_rows("audit", "local", 50)
    for number, size in enumerate((0, 511, 70_000)):
        for side in (pair.master, pair.slave):
            side.admin.hdfs_put(f"/data/part-{number}", size)


def behind(pair: Pair) -> None:
    """Rows written while the peer is disabled."""
    pair.master.admin.disable_peer(PEER)
    pair.master.admin.put_rows("orders", "d", 20, start=200)


def gap(pair: Pair) -> None:
    """Rows written while the peer was removed, and later ones that arrived."""
    admin = pair.master.admin
    admin.enable_peer(PEER)
    pair.wait_same("orders")
    admin.remove_peer(PEER)
    admin.put_rows("orders", "d", 20, start=300)
    admin.roll_wal()
    pair.connect()
    admin.put_rows("orders", "d", 1, start=400)
    wait_until(lambda: b"row00000400" in pair.slave.admin.rows("orders"), 60, "the later row has arrived")
    pair.slave.admin.hdfs_put("/data/part-1", b"x" * 511)


def main() -> None:
    """Record every sample below the folder given."""
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as temporary, Lab(say=print) as lab:
        paths = Path(temporary) / "paths"
        paths.write_text("/data\n")
        pair = start_pair(lab)
        for prepare in (complete, behind, gap):
            prepare(pair)
            record(pair, target / prepare.__name__, paths)


if __name__ == "__main__":
    main()
