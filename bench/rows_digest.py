"""What a digest of rows costs beside a scan of the same that only counts: `python -m bench.rows_digest [ROUNDS]`.

No cluster: `bench/java/DigestTurns.java` has a region of its own, in one JVM, and takes turns with both. CPU seconds of
the thread that reads.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.jvm import lines
from bench.results import Ratio, record

SHAPES = ((40, 1, 200_000), (1_000, 1, 100_000), (1 << 20, 1, 200), (20, 8, 320_000))
"""Bytes of a value, columns of a row, and cells."""
JVM = ("-Xmx2g",)


def main(rounds: int) -> None:
    """Record the ratio of each shape."""
    for value, columns, cells in SHAPES:
        with tempfile.TemporaryDirectory() as name:
            numbers = (rounds, cells, value, columns)
            found = lines(JVM, "io.github.statustool.digests.DigestTurns", str(Path(name) / "root"), *map(str, numbers))
            ours, theirs = (tuple(float(one) for one in line.split()) for line in found)
        what = f"digest, {columns} column{'s' * (columns > 1)} of {value:,} bytes a row"
        limit = "hash, and what HBase does for each row"
        record(Ratio("rows_digest", what, "bare scan", cells, "cells", "CPU s", ours, theirs, "at most 1.3", limit))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
