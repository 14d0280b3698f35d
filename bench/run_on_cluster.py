"""`run -i` and `run -m` on small real clusters against a bare Spark session with one join of the same rows.

    python -m bench.run_on_cluster [ROUNDS]

Whole processes, which alternate, so that whatever else the machine does meets all of them. `run` also asks ZooKeeper
and Thrift, waits for the trackers to flush, and reports; the bare session reads both sides from files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.results import Ratio, record
from bench.servers import took
from tests.lab.lab import Lab
from tests.pair import Pair, start_pair, tool

ROUNDS = 5
ROWS = 2000
BARE = """
import sys
from pyspark.sql import SparkSession, functions as F
session = SparkSession.builder.master("local[*]").getOrCreate()
ours, theirs = (session.read.parquet(f"file://{path}") for path in sys.argv[1:3])
heads = ours.where("kind = 'stream'").select("region", "origin", "via", "seq")
segments = theirs.where("kind = 'segment'").select("region", "origin", "via", F.col("seq").alias("seen"))
joined = heads.join(segments, ["region", "origin", "via"], "left")
print(joined.agg(F.count_if(F.col("seen") >= F.col("seq"))).collect())
session.stop()
"""
"""As PySpark makes a session, with one join of heads and segments, whose files are its arguments."""
BARE_NAME = "bare session and one join"
AIM = "at most 0.6"
CHECK_LIMIT = "waiting for the trackers' echo; imports: so few regions need no Spark"
WRITE_LIMIT = "waiting for the trackers' echo, up to a second; imports"


def prepare(pair: Pair, folder: Path) -> None:
    """Four tables of eight regions, proven complete; both sides in files."""
    splits = [f"row{at:08d}".encode() for at in range(ROWS // 8, ROWS, ROWS // 8)]
    for number in range(4):
        pair.create_table(f"t{number}", {"f": 1}, splits)
        pair.master.admin.put_rows(f"t{number}", "f", ROWS)
    for cluster, letters, name in ((pair.master, ["-m"], "master"), (pair.slave, [], "slave")):
        written = tool("run", *letters, "-o", folder / name, "--only", "hbase", conf=cluster)
        assert written.exit_code == 0, written
        pair.wait_same("t3")


def timed(command: list[str]) -> float:
    """Seconds of one process, which must succeed."""
    return took(lambda: subprocess.run(command, check=True, capture_output=True))


def main() -> None:
    """Run all rounds."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as name, Lab() as lab:
        folder, pair = Path(name), start_pair(lab)
        prepare(pair, folder)
        master, slave = str(folder / "master"), str(folder / "slave")
        run = [sys.executable, "-m", "status_tool", "run", "--only", "hbase"]
        kinds = {
            "run -i": [*run, "-i", master, "--conf-dir", str(pair.slave.conf_dir)],
            "run -m": [*run, "-m", "-o", str(folder / "again"), "--conf-dir", str(pair.master.conf_dir)],
            BARE_NAME: [sys.executable, "-c", BARE, master, slave],
        }
        timed(kinds["run -i"])  # which keeps the archive of Spark's classes
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(rounds):
            for kind, command in kinds.items():
                times[kind].append(timed(command))
    for kind, aim, limit in (("run -i", AIM, CHECK_LIMIT), ("run -m", "under 1.5 s", WRITE_LIMIT)):
        found = tuple(times[kind]), tuple(times[BARE_NAME])
        record(Ratio("run_on_cluster", kind, BARE_NAME, 32, "regions", "s", *found, aim=aim, limit=limit))


if __name__ == "__main__":
    main()
