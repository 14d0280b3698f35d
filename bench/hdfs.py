"""HDFS: files a second and bytes a second, as ratios within one run.

`python -m bench.hdfs [--files N] [--rounds N]`. Whole commands, each a process of its own, by turns: `run -m --only
hdfs` by Hadoop's own client and over WebHDFS; `hdfs dfs -checksum` of the same files in one JVM; DistCp `-update` with
nothing to copy, which compares the same checksums, with as many maps and listing threads as the tool has requests under
way. Then within processes that run already: how fast each client is once it has started, and `--deep` against a raw
read of the same bytes.

What limits: over WebHDFS a checksum is two HTTP requests, and the DataNode makes a DFSClient for each and closes the
connection (docs/decisions.md, 34); Hadoop's own client has one RPC and one short stream (205). With all servers on the
same two cores as the tool it is CPU time, else latency. The listing is one request a thousand files.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from status_tool.clients.hdfs_native import RpcEndpoint, no_process_left
from status_tool.clients.webhdfs import CONCURRENCY, HdfsEndpoint, WebHdfs
from status_tool.gather.parallel_reading import read_all
from status_tool.sources.hdfs_files import HdfsSource, client_for, content_crc
from status_tool.vocabulary.selection import Exclusions
from tests.files import rpc_endpoint, where
from tests.lab import Cluster, ClusterSpec, Lab

BIG = 256 << 20
PER_FOLDER = 1_000
"""Of the lab's `hdfs_put_many`."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.hdfs")
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        specs = [ClusterSpec(name, 0, hbase=False) for name in ("m", "s")]
        master, slave = lab.start_clusters(*specs)
        for cluster in (master, slave):
            cluster.admin.hdfs_put_many("/bench", asked.files, b"content")
        arguments = ("-update", "-pbct", f"{_filesystem(master)}/bench", f"{_filesystem(slave)}/bench")
        master.admin.hdfs_distcp(*arguments)  # copies what differs in time, so that nothing is left to copy
        _commands(master, asked.files, asked.rounds, Path(folder), arguments)
        _clients(master, asked.files, asked.rounds)
        _content(master)


def _filesystem(cluster: Cluster) -> str:
    return f"hdfs://127.0.0.1:{cluster.namenode.port}"


def _commands(cluster: Cluster, count: int, rounds: int, folder: Path, distcp: tuple[str, ...]) -> None:
    """Whole processes, by turns."""
    globs = [f"/bench/{number:03d}/*" for number in range(-(-count // PER_FOLDER))]
    maps = ("-Dmapreduce.local.map.tasks.maximum=16", "-m", str(CONCURRENCY), "-numListstatusThreads", str(CONCURRENCY))
    commands: dict[str, Callable[[], Any]] = {
        "run -m, native": partial(_run, cluster, count, folder, "native"),
        "run -m, webhdfs": partial(_run, cluster, count, folder, "webhdfs"),
        "hdfs dfs -checksum": partial(cluster.run_main, "org.apache.hadoop.fs.FsShell", ["-checksum", *globs], 1800),
        "distcp -update": partial(cluster.run_main, "org.apache.hadoop.tools.DistCp", distcp, 1800),
        "distcp, 16 maps": partial(cluster.run_main, "org.apache.hadoop.tools.DistCp", [*maps, *distcp], 1800),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, work in commands.items():
            taken[name].append(_timed(work))
    print(f"whole commands over {count} files, medians of {rounds} rounds by turns")
    _show(taken, count, "run -m, native")


def _run(cluster: Cluster, count: int, folder: Path, client: str) -> None:
    paths, output = folder / "paths", folder / f"{client}.status"
    paths.write_text("/bench\n")
    words = ("run", "-m", "-o", str(output), "--only", "hdfs", "-f", str(paths), *where(cluster))
    subprocess.run([sys.executable, "-m", "status_tool", *words, "--hdfs-client", client, "-q"], check=True)
    kinds = pq.read_table(output, columns=["kind"]).column("kind").to_pylist()
    assert kinds.count("file") == count


def _clients(cluster: Cluster, count: int, rounds: int) -> None:
    """Listing and checksums by clients that have started."""
    web, rpc = HdfsEndpoint((cluster.webhdfs_url,), "lab"), rpc_endpoint(cluster)
    taken: dict[str, list[float]] = {"native": [], "webhdfs": []}
    with no_process_left():
        for _ in range(rounds + 1):
            for name, endpoint in (("native", rpc), ("webhdfs", web)):
                taken[name].append(_timed(partial(_read, endpoint, count)))
    print(f"\nclients that have started, {count} files, medians of {rounds} rounds by turns after a first one")
    _show({name: times[1:] for name, times in taken.items()}, count, "native")


def _read(endpoint: HdfsEndpoint | RpcEndpoint, count: int) -> None:
    source = _Open(endpoint, ("/bench",), Exclusions())
    found = sum(batch.column("kind").to_pylist().count("file") for batch in read_all(source))
    assert found == count


class _Open(HdfsSource):
    """Its client goes on after a reading."""

    def close(self) -> None:
        """Nothing."""


def _content(cluster: Cluster) -> None:
    cluster.admin.hdfs_put("/big", BIG)
    web, rpc = HdfsEndpoint((cluster.webhdfs_url,), "lab"), rpc_endpoint(cluster)
    client = WebHdfs(web)
    rates = {"raw read, one stream": BIG / _timed(lambda: client.read("/big", 0, BIG, lambda _piece: None))}
    with no_process_left():
        for name, endpoint in (("--deep, webhdfs", web), ("--deep, native", rpc)):
            hdfs = client_for(endpoint, HdfsSource(endpoint, (), Exclusions()).load)
            hdfs.status("/big")
            rates[name] = BIG / _timed(partial(content_crc, hdfs, "/big", BIG))
    raw = rates["raw read, one stream"]
    print(f"\ncontent of {BIG >> 20} MiB")
    for name, rate in rates.items():
        print(f"  {name:22} {rate / 1e6:10.0f} MB/s   {rate / raw:5.2f} of the raw read")


def _show(taken: Mapping[str, list[float]], count: int, ours: str) -> None:
    base = statistics.median(taken[ours])
    for name, times in taken.items():
        middle = statistics.median(times)
        spread = f"{min(times):.1f} to {max(times):.1f} s"
        print(f"  {name:22} {count / middle:10.0f} files/s   {middle / base:5.2f} times as long as {ours} ({spread})")


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
