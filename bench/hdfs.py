"""HDFS: files a second and bytes a second, as ratios within one run.

`python -m bench.hdfs [--files N]`. Compared with: one request after another; Hadoop's own client asking for one
checksum after another (what `hdfs dfs -checksum` does, without its start-up); DistCp `-update` with nothing to copy;
for `--deep`, a raw read of the same bytes over WebHDFS.

What limits: a checksum is two HTTP requests (NameNode, DataNode), 0.43 ms of our CPU by profile; the DataNode makes a
DFSClient for each and closes the connection (docs/decisions.md, 34). With all servers on the same two cores as the tool
it is CPU time, else latency; Hadoop's client has one RPC and one short stream over kept connections. The listing is
one request a thousand files. `--deep` reads several ranges at once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from status_tool.clients.webhdfs import HdfsEndpoint, Load, WebHdfs
from status_tool.gather.parallel_reading import read_all
from status_tool.sources.hdfs_files import HdfsSource, content_crc
from status_tool.vocabulary.selection import Exclusions
from tests.lab import Cluster, ClusterSpec, Lab

BIG = 256 << 20


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.hdfs")
    parser.add_argument("--files", type=int, default=3000)
    count = parser.parse_args().files
    with Lab() as lab:
        specs = [ClusterSpec(name, 0, hbase=False) for name in ("m", "s")]
        master, slave = lab.start_clusters(*specs)
        for cluster in (master, slave):
            cluster.admin.hdfs_put_many("/bench", count, b"content")
        _checksums(master, slave, count)
        _content(master)


def _checksums(master: Cluster, slave: Cluster, count: int) -> None:
    endpoint = HdfsEndpoint((master.webhdfs_url,), "lab")
    source = HdfsSource(endpoint, ("/bench",), Exclusions())
    paths: list[str] = []

    def listing() -> None:
        client = WebHdfs(endpoint)
        for folder in [f"/bench/{n:03d}" for n in range(-(-count // 1000))]:
            paths.extend(f"{folder}/{e['pathSuffix']}" for page in client.pages(folder) for e in page)

    listed = _timed(listing)
    assert len(paths) == count
    sample = paths[: max(200, count // 10)]
    ours = count / _timed(lambda: sum(batch.num_rows for batch in read_all(source)))
    one = WebHdfs(endpoint, Load(concurrency=1))
    sequential = len(sample) / _timed(lambda: [one.checksum(path) for path in sample])
    mode = "MD5MD5CRC"
    hadoop = len(sample) / _timed(lambda: master.admin.hdfs_checksums(sample, mode))
    target = f"hdfs://127.0.0.1:{slave.namenode.port}"
    arguments = ("-update", "-pbct", f"hdfs://127.0.0.1:{master.namenode.port}/bench", f"{target}/bench")
    master.admin.hdfs_distcp(*arguments)  # copies what differs in time, so that nothing is left to copy
    distcp = count / _timed(lambda: master.admin.hdfs_distcp(*arguments))
    print(f"listing alone            {count / listed:10.0f} files/s")
    print(f"listing and checksums    {ours:10.0f} files/s")
    for name, rate in (("one after another", sequential), ("hdfs -checksum", hadoop), ("distcp -update", distcp)):
        print(f"  {name:22} {rate:10.0f} files/s   ours is {ours / rate:5.1f} times as fast")


def _content(cluster: Cluster) -> None:
    cluster.admin.hdfs_put("/big", BIG)
    client = WebHdfs(HdfsEndpoint((cluster.webhdfs_url,), "lab"))
    raw = BIG / _timed(lambda: client.read("/big", 0, BIG, lambda _piece: None))
    deep = BIG / _timed(lambda: content_crc(client, "/big", BIG))
    print(f"raw read, one stream     {raw / 1e6:10.0f} MB/s")
    print(f"--deep, ranges together  {deep / 1e6:10.0f} MB/s   {deep / raw:5.2f} of the raw read")


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
