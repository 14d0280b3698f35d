"""`recovery-point` with many retained files: replication stopped some time ago, and every file since lacks something.

    python -m bench.recovery [REGIONS [FILES]]

The files are written when they are first asked for, in a search that is not measured. The slave's rows are there
already, and the files do not come by Thrift: what is measured is the search, with every file it judges.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.processes import cpu_s
from bench.results import Ratio, record
from bench.streams import MASTER, NOW, OF, SLAVE, Regions, Shape, with_column, write_inputs
from status_tool.gather.snapshot import Snapshot
from status_tool.published.layout import Closing
from status_tool.published.table import PublishedTable, refuse_unfit
from status_tool.runs.check import Check
from status_tool.runs.recovery import _Bench, _Search
from status_tool.runs.slave_side import Scratch
from status_tool.spark.session import spark_session
from status_tool.status_file.signature import SignKey
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import Scope

INTERVAL_MS = 30_000
ROUNDS = 3
AIM = "under 30 s"
LIMIT = "judging in Python, file by file"
SEQ_STEP = 100
"""Sequence ids a round, of each stream."""
COVERED_MS = NOW - 10**9
PEER = {
    **dict.fromkeys(("endpoint", "entry_filters", "exclude_table_cfs", "table_cfs"), None),
    **{"bandwidth": 0, "cluster_id": SLAVE.cluster_id, "cluster_key": "z:1:/s", "created_ms": COVERED_MS},
    **{"enabled": True, "exclude_namespaces": [], "id": "1", "incarnation": 1, "modified_ms": COVERED_MS},
    **{"namespaces": [], "replicate_all": True, "serial": False, "version": 0},
}


def main() -> int:
    """Run the benchmark."""
    regions, files = (*map(int, sys.argv[1:]), *(10_000, 1_000)[len(sys.argv) - 1 :])
    with tempfile.TemporaryDirectory() as name, spark_session(small=True) as spark:
        published = _Published(Path(name), _heads(Path(name), regions), behind=files * 3 // 5)
        bench = published.bench(spark)
        all_of_them = [published.closing(number) for number in range(files)]
        the_complete = [published.closing(published.behind)]
        _searched(bench, all_of_them)
        turns = [(_searched(bench, all_of_them), _searched(bench, the_complete)) for _ in range(ROUNDS)]
    many, one = zip(*turns, strict=True)
    what = f"recovery-point, {files:,} files, the newest {published.behind:,} lacking"
    record(Ratio("recovery", what, "one complete file", regions, "regions", "CPU s", many, one, AIM, LIMIT))
    return 0


def _searched(bench: _Bench, files: Sequence[Closing]) -> float:
    """Search for the point; returns seconds of CPU."""
    began = cpu_s(os.getpid())
    search = _Search(files, bench.judge)
    search.run()
    search.run_tables()
    bench.beyond(search.at(search.newest_usable()))
    took = cpu_s(os.getpid()) - began
    point, holding = search.point()
    assert point is not None, holding
    assert point.closing.barrier_ms == NOW, point
    print(f"{len(search.done)} of {len(files)} files judged: {took:.1f} s of CPU", flush=True)
    return took


@dataclass(frozen=True)
class _Published:
    """A table of published files; the slave has what was there when number `behind` was written, at `NOW`."""

    folder: Path
    heads: pa.Table
    """The master's rows at `NOW`."""
    behind: int

    def bench(self, spark: SparkSession) -> _Bench:
        """Return what judges them by the slave's one side."""
        near, rows = self.folder / "near.parquet", self._slave_rows()
        pq.write_table(rows, near, store_schema=False)
        now = self._written_ms(-1)
        header = dataclasses.replace(SLAVE, created_ms=now, cut_ms=now, barrier_issued_ms=now)
        small = rows.filter(pc.is_in(rows["kind"], pa.array(["table", "server"]))).to_pylist()
        check = Check(Path(), Scope(check_hdfs=False))
        slave, scratch = Snapshot(header, tuple(small), ()), Scratch(self.folder, near)
        return _Bench(cast(PublishedTable, self), lambda: spark, slave, check, scratch, lambda _: None)

    def closing(self, number: int) -> Closing:
        """Return the closing row of a file; number 0 is the newest."""
        at = self._written_ms(number)
        return Closing(MASTER.cluster_id, f"{number}", (), at, at, INTERVAL_MS, "hbase")

    def fetch(self, closing: Closing, path: Path, key: SignKey | None = None) -> None:
        """Do as the table does."""
        file = self.folder / closing.name
        if not file.exists():
            at = closing.barrier_ms
            header = dataclasses.replace(MASTER, created_ms=at, cut_ms=at, barrier_issued_ms=at, half="hbase")
            with StatusWriter(file, header) as writer:
                writer.write(_later(self.heads, (at - NOW) // INTERVAL_MS))
        path.write_bytes(file.read_bytes())
        refuse_unfit(closing, path, key)

    def _written_ms(self, number: int) -> int:
        return NOW + INTERVAL_MS * (self.behind - number)

    def _slave_rows(self) -> pa.Table:
        theirs = pq.read_table(self.folder / "slave.parquet")
        others = theirs.filter(pc.not_equal(theirs["kind"], "segment"))
        heads = self.heads.filter(pc.equal(self.heads["kind"], "stream"))
        new = {"kind": "segment", "prev": 0, "recorded_ms": NOW}
        for name, value in new.items():
            column = pa.repeat(pa.scalar(value, STATUS_SCHEMA.field(name).type), heads.num_rows)
            heads = with_column(heads, name, column)
        return pa.concat_tables([others.cast(STATUS_SCHEMA), heads.cast(STATUS_SCHEMA)])


def _heads(folder: Path, regions: int) -> pa.Table:
    """Return the master's rows at `NOW`, and write the slave's."""
    write_inputs(folder, regions, Shape((Regions(OF),)))
    rows = pq.read_table(folder / "master.parquet").cast(STATUS_SCHEMA)
    is_stream = pc.equal(rows["kind"], "stream")
    rows = with_column(rows, "seq", pc.if_else(is_stream, pc.multiply(rows["seq"], SEQ_STEP * 100), rows["seq"]))
    rows = with_column(rows, "first_ms", pc.if_else(is_stream, MASTER.coverage_ms, rows["first_ms"]))
    peer = {"kind": "peer", "name": "1", "detail": json.dumps(PEER)}
    return pa.concat_tables([rows, pa.Table.from_pylist([peer], schema=STATUS_SCHEMA)])


def _later(rows: pa.Table, rounds: int) -> pa.Table:
    """Return the rows so many rounds later: every stream has moved, and live servers have flushed."""
    is_stream = pc.equal(rows["kind"], "stream")
    new = {"seq": SEQ_STEP * rounds, "entries": SEQ_STEP * rounds, "write_ms": INTERVAL_MS * rounds}
    for name, more in new.items():
        rows = with_column(rows, name, pc.if_else(is_stream, pc.add(rows[name], more), rows[name]))
    return with_column(rows, "read_ms", pc.add(rows["read_ms"], INTERVAL_MS * rounds))


if __name__ == "__main__":
    sys.exit(main())
