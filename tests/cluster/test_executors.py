"""A check on a Spark cluster: several executors, each a process of its own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.pair import Pair, Result, tool, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

EXECUTORS = "local-cluster[2,1,1024]"
FROM_PYTHON = "data returned from Python workers"
"""Spark's metric of a task that read rows of a live cluster or of the status file, in bytes."""


def test_work_is_spread_over_executors_and_the_result_is_the_same(pair: Pair, status: Path, tmp_path: Path) -> None:
    """Both halves, live, `--deep`: listing, files, state table and status file are read by both executors."""
    pair.create_table("executors", {"f": 1}, splits=[b"row-00000003", b"row-00000006"])
    pair.master.admin.put_rows("executors", "f", 10)
    content = {f"/executors/{folder}/{n}": b"%s %d" % (folder.encode(), n) for folder in "abcd" for n in range(8)}
    for path, data in content.items():
        pair.master.admin.hdfs_put(path, data)
        pair.slave.admin.hdfs_put(path, data, checksum_type="CRC32" if path.endswith("/7") else None)
    pair.slave.admin.hdfs_put("/executors/a/0", b"other")
    paths, table = tmp_path / "paths", ("--table", "executors")
    paths.write_text("/executors\n")
    written = tool_here("run", "-m", "-o", status, "-f", paths, "--deep", *table, conf=pair.master)
    assert written.exit_code == 0, written
    check = ("run", "-i", status, "--json", "--deep", "--wait", "30", *table)
    events = tmp_path / "events"
    events.mkdir()
    log = ("spark.eventLog.enabled=true", "spark.eventLog.compress=false", f"spark.eventLog.dir={events.as_uri()}")
    quick = "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # they live for seconds
    settings = [option for setting in (*log, quick) for option in ("--spark-conf", setting)]
    spread = tool(*check, "--spark-master", EXECUTORS, *settings, conf=pair.slave)
    assert spread.exit_code == 1, spread
    assert said(spread) == said(tool_here(*check, conf=pair.slave))
    assert spread.json["hdfs"]["files"] | {"match": 31, "mismatch": 1} == spread.json["hdfs"]["files"]
    assert spread.json["hbase"]["regions"]["complete"] == 3
    assert set(readers(events)) == {"0", "1"}, readers(events)


def said(result: Result) -> dict[str, Any]:
    """The verdict, counts and problems."""
    return {key: result.json[key] for key in ("verdict", "hbase", "hdfs", "problems")}


def readers(events: Path) -> Counter[str]:
    """By executor, the tasks whose Python worker has read rows, by Spark's own event log."""
    found: Counter[str] = Counter()
    for file in events.rglob("*"):
        for line in file.read_text().splitlines() if file.is_file() else ():
            if '"SparkListenerTaskEnd"' in line:
                task = json.loads(line)["Task Info"]
                values = {one.get("Name"): int(one.get("Update") or 0) for one in task["Accumulables"]}
                found[task["Executor ID"]] += values.get(FROM_PYTHON, 0) > 0
    return +found
