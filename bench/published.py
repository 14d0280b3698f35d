"""Published status files: the bytes that a round of `publish` sends.

    python -m bench.published [REGIONS…]

For each size a status file, and one of a round later in which every stream has moved: what a publisher sends of the
second, against the whole file.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.results import Ratio, record
from bench.streams import MASTER, NOW, OF, Regions, Shape, with_column, write_inputs
from status_tool.published.layout import CELL_BYTES
from status_tool.status_file.writer import StatusWriter, parts_of
from status_tool.vocabulary.schema import STATUS_SCHEMA

SIZES = (10, 1_000, 10_000, 100_000)
SHAPE = Shape((Regions(OF),))
INTERVAL_MS = 30_000
LIMIT = "zstd of sequence ids and times"


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.published", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="REGIONS")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for size in asked.sizes:
            _measure_round(Path(name), size)
    return 0


def _measure_round(folder: Path, size: int) -> None:
    write_inputs(folder, size, SHAPE)
    before = pq.read_table(folder / "master.parquet")
    known = set(_parts(_written(folder / "before", before, 0)))
    after = _written(folder / "after", _moved(before), 1)
    sent = sum(len(part) for part in set(_parts(after)) - known)
    whole = after.stat().st_size
    record(
        Ratio("published", "bytes a round", "the whole file", size, "regions", "bytes", (sent,), (whole,), "", LIMIT)
    )


def _parts(file: Path) -> list[bytes]:
    return list(parts_of(file, CELL_BYTES))


def _written(path: Path, rows: pa.Table, later: int) -> Path:
    at = NOW + INTERVAL_MS * later
    with StatusWriter(path, dataclasses.replace(MASTER, created_ms=at, cut_ms=at, barrier_issued_ms=at)) as file:
        file.write(rows.cast(STATUS_SCHEMA))
    return path


def _moved(rows: pa.Table) -> pa.Table:
    """Each stream has more entries, and live servers have flushed."""
    draw = random.Random(1)
    is_stream = pc.equal(rows["kind"], "stream")
    steps = pa.array([draw.randrange(1, 3_000) for _ in range(rows.num_rows)], pa.int64())
    times = pa.array([NOW + draw.randrange(INTERVAL_MS) for _ in range(rows.num_rows)], pa.int64())
    new = {name: pc.if_else(is_stream, pc.add(rows[name], steps), rows[name]) for name in ("seq", "entries")}
    new["write_ms"] = pc.if_else(is_stream, times, rows["write_ms"])
    new["read_ms"] = pc.add(rows["read_ms"], INTERVAL_MS)
    for name, column in new.items():
        rows = with_column(rows, name, column)
    return rows


if __name__ == "__main__":
    sys.exit(main())
