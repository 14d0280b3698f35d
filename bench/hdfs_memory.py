"""Memory against the number of files: peak resident sizes of the processes of `run -m` and `run -i`.

`python -m bench.hdfs_memory [FILES ...] [--only-write]` (default 140000 280000: up to 131,072 rows are gathered for a
row group of FILE, from there on memory is flat). HDFS is synthetic, in a process of its own (`SyntheticHdfs` of the
lab) that makes listings, blocks and checksums up as they are asked for, since real ones would need gigabytes for the
same. What is asked for, parsed, kept and written is what a real cluster would cause. Spark's JVM grows into the heap
that it is given, whatever it needs, and is shown besides.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from bench.processes import memory_mib, tree
from bench.results import Ratio, record
from tests.lab.config import write_site
from tests.lab.lab import server_java

_NAMES = {"HdfsReader": "Hadoop's client", "SparkSubmit": "Spark's JVM", "pyspark": "Spark's Python workers"}
_TICK_S = 0.1
_SERVER_MB = 512

Peaks = Mapping[str, float]
"""MiB by process."""


def main() -> None:
    """Measure each size, and record the ratios to the first one."""
    parser = argparse.ArgumentParser(prog="python -m bench.hdfs_memory")
    parser.add_argument("files", type=int, nargs="*", default=[140_000, 280_000])
    parser.add_argument("--only-write", action="store_true", help="run -m, without run -i")
    asked = parser.parse_args()
    first: dict[str, Peaks] = {}
    for files in asked.files:
        for command, peaks in _measure(files, asked.only_write):
            before = first.setdefault(command, peaks)
            for process, peak in peaks.items() if before is not peaks else ():
                what = f"peak memory of {command}, native, {process}"
                limit = "the heap that Spark is given" if "Spark" in process else "pages and requests under way"
                smaller = f"of {asked.files[0]:,} files"
                record(
                    Ratio(
                        "hdfs_memory", what, smaller, files, "files", "MiB", (peak,), (before[process],), "1.1", limit
                    )
                )


def _measure(files: int, only_write: bool) -> Iterator[tuple[str, Peaks]]:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as serving:
        folder = Path(name)
        (folder / "paths").write_text("/data\n")
        sides = ("m",) if only_write else ("m", "s")
        where = {side: serving.enter_context(_hdfs(folder / side, files)) for side in sides}
        output = folder / "master.status"
        commands = {"run -m": ("-m", "-o", str(output), "-f", str(folder / "paths"), *where["m"])}
        if not only_write:
            commands["run -i"] = ("-i", str(output), *where["s"])
        for command, words in commands.items():
            began = time.perf_counter()
            peaks = _peaks("run", *words, "--only", "hdfs", "-q")
            seconds = time.perf_counter() - began
            shown = ", ".join(f"{process} {peak:.0f} MiB" for process, peak in peaks.items())
            print(f"{command}, {files:,} files: {shown}; {files / seconds:.0f} files/s", flush=True)
            yield command, peaks
        rows = pq.read_table(output, columns=["kind"]).column("kind").to_pylist().count("file")
        assert rows == files, f"{rows} rows for {files} files"


@contextmanager
def _hdfs(folder: Path, files: int) -> Iterator[Sequence[str]]:
    """A synthetic one; gives the options that lead to it."""
    folder.mkdir()
    java = server_java("2.6.1", folder, uuid.uuid4().hex)
    pool = f"BP-1-127.0.0.1-{folder.name}"
    command = java.command(_SERVER_MB, "io.github.statustool.lab.SyntheticHdfs", (str(files), pool))
    with contextlib.ExitStack() as ending:
        server = subprocess.Popen(
            command, env=java.environment(folder, ()), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        ending.callback(server.wait)
        ending.callback(server.kill)
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        write_site(folder / "core-site.xml", {"fs.defaultFS": f"hdfs://127.0.0.1:{port}"})
        yield ("--conf-dir", str(folder), "--hdfs-client", "native")


def _peaks(*words: str) -> Peaks:
    """Peak resident sizes of a run's processes; those of one kind together."""
    tool = subprocess.Popen([sys.executable, "-m", "status_tool", *words], stdout=subprocess.DEVNULL)
    peaks = dict[int, tuple[str, float]]()
    while tool.poll() is None:
        for pid in tree(tool.pid):
            with contextlib.suppress(OSError):  # it has ended
                name = "the tool" if pid == tool.pid else _name(pid)
                if peak := memory_mib(pid, "VmHWM"):
                    peaks[pid] = (name, peak)
        time.sleep(_TICK_S)
    if tool.returncode:
        raise SystemExit(f"run {' '.join(words)} ended with {tool.returncode}")
    found: dict[str, float] = defaultdict(float)
    for name, peak in peaks.values():
        found[name] += peak if name else 0
    return {name: found[name] for name in ("the tool", *_NAMES.values()) if name in found}


def _name(pid: int) -> str:
    command = Path(f"/proc/{pid}/cmdline").read_text()
    return next((name for mark, name in _NAMES.items() if mark in command), "")


if __name__ == "__main__":
    main()
