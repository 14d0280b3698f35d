"""A small check against a bare Spark session with one join of the same rows: ratios of wall time.

    python -m bench.small_run [ROUNDS]

Every run is a process of its own, and the kinds alternate, so that whatever else the machine does meets
all of them. `bare`: a session as pyspark makes it. `tuned`: one with this tool's settings. Both then join
heads with segments once and collect counts. `tool`: session, verification, outcome.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from bench import verify_scale

STREAMS = 200
ROUNDS = 7
KINDS = ("bare", "tuned", "tool")


def main() -> int:
    """Run all rounds, or one run when called by itself with a kind and a folder; returns 0."""
    if len(sys.argv) > 2:
        print(_one_run(sys.argv[1], Path(sys.argv[2])))
        return 0
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as name:
        verify_scale.write_inputs(Path(name), STREAMS)
        for _ in range(rounds):
            for kind in KINDS:
                times[kind].append(_in_process(kind, name))
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    for kind in KINDS:
        print(f"{kind}: median {medians[kind]:.2f} s, {min(times[kind]):.2f} to {max(times[kind]):.2f}")
    print(f"tool / bare {medians['tool'] / medians['bare']:.2f}, tool / tuned {medians['tool'] / medians['tuned']:.2f}")
    return 0


def _in_process(kind: str, folder: str) -> float:
    command = [sys.executable, "-m", "bench.small_run", kind, folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def _one_run(kind: str, folder: Path) -> float:
    start = time.perf_counter()
    if kind == "tool":
        _verify(folder)
    else:
        _join(folder, tuned=kind == "tuned")
    return time.perf_counter() - start


def _verify(folder: Path) -> None:
    from status_tool.spark.session import spark_session
    from status_tool.spark.verify import Verification
    from status_tool.vocabulary.scope import Scope

    with spark_session() as session:
        ours, theirs = (session.read.parquet(str(folder / f"{side}.parquet")) for side in ("master", "slave"))
        with closing(Verification(session, ours, theirs, verify_scale.MASTER, verify_scale.SLAVE, Scope())) as check:
            outcome = check.outcome()
        assert outcome.hbase is not None
        assert sum(outcome.hbase.regions.values()) == STREAMS


def _join(folder: Path, tuned: bool) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from status_tool.spark.session import spark_session

    def count(session: SparkSession) -> None:
        ours, theirs = (session.read.parquet(str(folder / f"{side}.parquet")) for side in ("master", "slave"))
        heads = ours.where("kind = 'stream'").select("region", "origin", "via", "seq")
        segments = theirs.where("kind = 'segment'").select("region", "origin", "via", F.col("seq").alias("seen"))
        joined = heads.join(segments, ["region", "origin", "via"], "left")
        assert joined.agg(F.count_if(F.col("seen") >= F.col("seq"))).collect()[0][0] == STREAMS

    if tuned:
        with spark_session() as session:
            count(session)
        return
    session = SparkSession.builder.master("local[*]").getOrCreate()
    count(session)
    session.stop()


if __name__ == "__main__":
    sys.exit(main())
