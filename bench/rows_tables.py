"""Many small tables, compared by rows: `python -m bench.rows_tables [TABLES]`, on two real clusters.

What `run -i FILE --rows=all` adds to `run -i FILE`, with the master at hand and by FILE's digests, and what
`run -m --rows=all` adds to `run -m`: whole commands in one run.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import happybase

from bench.results import Ratio, record
from bench.rows import TIMEOUT_S
from bench.servers import took
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import Pair, start_pair, tool, tracked_spec

ROWS = 10
SITE = {"hbase.hregion.memstore.mslab.enabled": "false"}
"""A chunk of 2 MiB for each of a thousand regions is more than the heap of a lab's region server."""


def fill(pair: Pair, names: list[str]) -> None:
    """The tables, the same on both sides."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: pair.create_table(name, {"f": 1}), names))
    with contextlib.closing(happybase.Connection("127.0.0.1", pair.master.thrift_port, timeout=60_000)) as client:
        for name in names:
            with client.table(name).batch() as batch:
                for row in range(ROWS):
                    batch.put(f"row{row:08d}".encode(), {b"f:q": name.encode()})
    wait_until(lambda: pair.same(names[-1]) and pair.same(names[0]), 300, "the rows have arrived")


def run(pair: Pair, expected: int, *arguments: str | Path) -> None:
    """On the master with -m, else on the slave."""
    conf = pair.master if "-m" in arguments else pair.slave
    options = ("--only", "hbase", "--sample", "off")
    result = tool("run", *arguments, *options, conf=conf, timeout=TIMEOUT_S)
    assert result.exit_code == expected, result


def main(count: int) -> None:
    """Record what rows add to each run."""
    with tempfile.TemporaryDirectory() as name, Lab() as lab:
        specs = (tracked_spec(side, site=SITE) for side in ("master", "slave"))
        pair, file = start_pair(lab, *specs), Path(name) / "master.status"
        began = time.perf_counter()
        fill(pair, [f"t{number:04d}" for number in range(count)])
        print(f"{count} tables of {ROWS} rows made in {time.perf_counter() - began:.0f} s", flush=True)
        master = ("--master-conf", str(pair.master.conf_dir))
        seconds = {
            what: took(partial(run, pair, 0, *arguments))
            for what, arguments in {
                "run -m": ("-m", "-o", file),
                "run -i": ("-i", file),
                "run -i --rows=all, with the master": ("-i", file, "--rows=all", *master),
                "run -m --rows=all": ("-m", "-o", file, "--rows=all"),
                "run -i --rows=all, by FILE": ("-i", file, "--rows=all"),
            }.items()
        }
    for what, took_s in seconds.items():
        if (against := what[: len("run -m")]) != what:
            sides = (took_s,), (seconds[against],)
            record(Ratio("rows_tables", what, against, count, "tables", "s", *sides, limit="one request a slice"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
