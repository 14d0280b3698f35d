"""HDFS: files and bytes a second, as ratios within one run.

`python -m bench.hdfs [--files N] [--rounds N]`. Whole commands, each a process of its own, by turns: `run -m --only
hdfs` by Hadoop's own client, over WebHDFS, and as it is by default; `hdfs dfs -checksum` of the same files in one JVM;
and for both sides `run -m` with `run -i` against DistCp `-update` with nothing to copy, which compares the same
checksums, as it is by default and with as many maps and listing threads as the tool has requests under way. The same of
one file alone shows what the start takes. Then clients that run already, and `--deep` against a raw read of the same
bytes.

What limits: over WebHDFS a checksum is an HTTP request (once a second in each thread two), for which the DataNode makes
a DFSClient and closes the connection; by Hadoop's own client it is one short stream to the DataNode, which closes that
one, too. With all servers on the same cores as the tool it is CPU time, else latency.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.results import Ratio, record
from bench.servers import COMPILERS, took
from status_tool.clients.hdfs_native import RpcEndpoint, no_process_left
from status_tool.clients.webhdfs import CONCURRENCY, HdfsEndpoint, WebHdfs
from status_tool.gather.parallel_reading import read_all
from status_tool.sources.hdfs_files import HdfsSource, client_for, content_crc
from status_tool.vocabulary.selection import Exclusions
from tests.files import rpc_endpoint, where
from tests.lab import Cluster, ClusterSpec, Lab

BIG = 256 << 20
MANY = 20_000
PER_FOLDER = 1_000
"""Of the lab's `hdfs_put_many`."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.hdfs")
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with Lab(jvm_options=COMPILERS) as lab, tempfile.TemporaryDirectory() as folder:
        specs = [ClusterSpec(name, 0, hbase=False) for name in ("m", "s")]
        master, slave = lab.start_clusters(*specs)
        for cluster in (master, slave):
            cluster.admin.hdfs_put_many("/bench", asked.files, b"content")
        arguments = ("-update", "-pbct", f"{_filesystem(master)}/bench", f"{_filesystem(slave)}/bench")
        master.admin.hdfs_distcp(*arguments)  # copies what differs in time, so that nothing is left to copy
        _Commands(master, slave, Path(folder)).measure(asked.files, asked.rounds, arguments)
        _clients(master, asked.files, asked.rounds)
        _content(master, asked.rounds)


def _filesystem(cluster: Cluster) -> str:
    return f"hdfs://127.0.0.1:{cluster.namenode.port}"


@dataclass
class _Commands:
    """Whole processes over files of `/bench`."""

    master: Cluster
    slave: Cluster
    folder: Path

    def measure(self, count: int, rounds: int, distcp: Sequence[str]) -> None:
        """By turns, all files and one of them."""
        maps = ("-Dmapreduce.local.map.tasks.maximum=16", "-m", str(CONCURRENCY))
        best = (*maps, "-numListstatusThreads", str(CONCURRENCY), *distcp)
        globs = [f"/bench/{number:03d}/*" for number in range(-(-count // PER_FOLDER))]
        self.master.admin.hdfs_put("/one", b"content")
        taken = _by_turns(
            {
                "native": partial(self._write, "/bench", "native", count),
                "webhdfs": partial(self._write, "/bench", "webhdfs", count),
                "auto": partial(self._write, "/bench", "auto", count),
                "check": partial(self._check, "native"),
                "checksum": partial(self._checksum, globs),
                "distcp": partial(self._run, "org.apache.hadoop.tools.DistCp", distcp),
                "distcp, 16 maps": partial(self._run, "org.apache.hadoop.tools.DistCp", best),
                "one file": partial(self._write, "/one", "native", 1),
                "checksum of one": partial(self._checksum, ["/one"]),
            },
            rounds,
        )
        both = tuple(map(sum, zip(taken["native"], taken["check"], strict=True)))
        servers = "CPU time of DataNode and tool, which share the cores"
        mine, theirs = "run -m, native", "hdfs dfs -checksum"
        _ratio(mine, "run -m, webhdfs", count, taken["native"], taken["webhdfs"], "0.2", servers)
        _ratio(mine, theirs, count, taken["native"], taken["checksum"], "0.33" if count >= MANY else "1", servers)
        for client in ("auto", "webhdfs"):
            _ratio(f"run -m, {client}", theirs, count, taken[client], taken["checksum"], "1", servers)
        for name in ("distcp", "distcp, 16 maps"):
            _ratio("run -m and run -i, native", name, count, both, taken[name], "0.67", "the start of Spark")
        _ratio(mine, theirs, 1, taken["one file"], taken["checksum of one"], "", "the start of Python and of a JVM")

    def _write(self, path: str, client: str, count: int) -> None:
        output = self._output(client) if count > 1 else self.folder / "one.status"
        paths = self.folder / "paths"
        paths.write_text(path + "\n")
        self._tool("-m", "-o", str(output), "-f", str(paths), *where(self.master), "--hdfs-client", client)
        kinds = pq.read_table(output, columns=["kind"]).column("kind").to_pylist()
        assert kinds.count("file") == count

    def _check(self, client: str) -> None:
        self._tool("-i", str(self._output(client)), *where(self.slave), "--hdfs-client", client)

    def _output(self, client: str) -> Path:
        return self.folder / f"{client}.status"

    def _tool(self, *words: str) -> None:
        command = [sys.executable, "-m", "status_tool", "run", *words, "--only", "hdfs", "-q"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def _checksum(self, paths: Sequence[str]) -> None:
        self._run("org.apache.hadoop.fs.FsShell", ["-checksum", *paths])

    def _run(self, main: str, arguments: Sequence[str]) -> None:
        self.master.run_main(main, arguments, 1800)


def _clients(cluster: Cluster, count: int, rounds: int) -> None:
    """Listing and checksums by clients that have started."""
    web, rpc = HdfsEndpoint((cluster.webhdfs_url,), "lab"), rpc_endpoint(cluster)
    with no_process_left():
        readings = {"native": partial(_read, rpc, count), "webhdfs": partial(_read, web, count)}
        _by_turns(readings, 1)
        taken = _by_turns(readings, rounds)
    limit = "CPU time of DataNode and tool, which share the cores"
    _ratio("native, once started", "webhdfs", count, taken["native"], taken["webhdfs"], "0.2", limit)


def _read(endpoint: HdfsEndpoint | RpcEndpoint, count: int) -> None:
    source = _Open(endpoint, ("/bench",), Exclusions())
    found = sum(batch.column("kind").to_pylist().count("file") for batch in read_all(source))
    assert found == count


class _Open(HdfsSource):
    """Its client goes on after a reading."""

    def close(self) -> None:
        """Nothing."""


def _content(cluster: Cluster, rounds: int) -> None:
    cluster.admin.hdfs_put("/big", BIG)
    web, rpc = HdfsEndpoint((cluster.webhdfs_url,), "lab"), rpc_endpoint(cluster)
    with no_process_left():
        clients = [client_for(endpoint, HdfsSource(endpoint, (), Exclusions()).load) for endpoint in (web, rpc)]
        for client in clients:
            client.status("/big")
        taken = _by_turns(
            {
                "raw": partial(WebHdfs(web).read, "/big", 0, BIG, lambda _piece: None),
                "webhdfs": partial(content_crc, clients[0], "/big", BIG),
                "native": partial(content_crc, clients[1], "/big", BIG),
            },
            rounds,
        )
    for name in ("webhdfs", "native"):
        what, raw = f"--deep, {name}", "raw read, one stream"
        record(Ratio("hdfs", what, raw, BIG, "bytes", "s", taken[name], taken["raw"], "1", "DataNode and cores, disk"))


def _by_turns(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, tuple[float, ...]]:
    """Seconds of each way, round by round."""
    seconds = [[took(way) for way in ways.values()] for _ in range(rounds)]
    return dict(zip(ways, zip(*seconds, strict=True), strict=True))


def _ratio(
    what: str,
    against: str,
    files: int,
    ours: tuple[float, ...],
    theirs: tuple[float, ...],
    aim: str,
    limit: str,
) -> None:
    record(Ratio("hdfs", what, against, files, "files", "s", ours, theirs, aim, limit))


if __name__ == "__main__":
    main()
