"""All benchmarks, one after another: `python -m bench [NAME…] [--quick] [--out FILE]`.

Each is a process of its own that records its ratios in FILE, as JSON lines, which are added to what is there. One that
fails does not keep the others from running; the exit code is 1 then. At the end all ratios of FILE are printed as one
table, with what was measured before (`bench/results.jsonl`) beside them. `--quick`: small sizes, to see that everything
still runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.results import RESULTS_VARIABLE, read_results
from bench.table import RESULTS, before, newest, table
from tests.pair import REPOSITORY


class Bench(NamedTuple):
    """A module of this package."""

    name: str
    quick: tuple[str, ...] = ()
    """Its arguments when there is little time."""
    usual: tuple[str, ...] = ()
    """Its arguments otherwise, where its own defaults take longer than four minutes."""


BENCHES = (
    Bench("start", ("1",)),
    Bench("run_on_cluster", ("1",)),
    Bench("paths", ("1",)),
    Bench("verify_scale", ("10000",)),
    Bench("published", ("1000",)),
    Bench("recovery", ("1000", "50")),
    Bench("publishing", ("1",), ("3",)),
    Bench("hdfs", ("--files", "500", "--rounds", "1")),
    Bench("hdfs_memory", ("20000", "40000")),
    Bench("state_table", ("2000", "--rounds", "1")),
    Bench("watching", ("--minutes", "1")),
    Bench(
        "witness", ("1", "--seconds", "5", "--backlog", "5000", "--entries", "1000000"), ("3", "--entries", "10000000")
    ),
    Bench("rows", ("10000",)),
    Bench("rows_digest", ("5",)),
    Bench("rows_beside", ("1",), ("3",)),
    Bench("watch", ("20",), ("100",)),
)
"""In the order in which they run: cheap ones first. A new one is added here."""
OTHERS = ("contenders", "jvm", "processes", "results", "servers", "streams", "table", "witness_growth")
"""Modules that are no benchmarks."""


def main() -> int:
    """Run them; returns 1 where one has failed, 2 for a name that is not known."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(bench.name for bench in BENCHES))
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, help="where the JSON lines go; build/bench/TIME.jsonl by default")
    asked = parser.parse_args()
    if unknown := set(asked.names) - {bench.name for bench in BENCHES}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    out = asked.out or REPOSITORY / f"build/bench/{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    chosen = [bench for bench in BENCHES if not asked.names or bench.name in asked.names]
    failed = [bench.name for bench in chosen if not _run(bench, asked.quick, out.absolute())]
    if out.exists():
        kept = () if out == RESULTS else read_results(RESULTS)
        results = newest(read_results(out))
        print("\n" + "\n".join(table(results, before([*kept, *results]))))
        print(f"\nKept in {out}")
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def _run(bench: Bench, is_quick: bool, out: Path) -> bool:
    """Whether it has ended well."""
    arguments: Sequence[str] = bench.quick if is_quick else bench.usual
    print(f"--- {bench.name} {' '.join(arguments)}", flush=True)
    began = time.monotonic()
    environment = os.environ | {RESULTS_VARIABLE: str(out)}
    command = [sys.executable, "-m", f"bench.{bench.name}", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False)
    ended = f"failed with {done.returncode}" if done.returncode else "done"
    print(f"--- {bench.name} {ended} after {time.monotonic() - began:.0f} s", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
