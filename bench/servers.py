"""What the servers of a lab's cluster have spent, sent and written so far, and how long work with them takes."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from bench.processes import jvm_cpu_s
from tests.lab.cluster import Cluster

COMPILERS = ("-XX:TieredStopAtLevel=4", "-XX:-UseDynamicNumberOfCompilerThreads")
"""As a cluster's JVMs run. Those of tests stop at the first compiler, for a quick start. The compilers' threads do not
end, as what ended threads have taken cannot be told from the rest."""
_IPC = "Hadoop:service=HBase,name=RegionServer,sub=IPC"


def took(work: Callable[[], object]) -> float:
    """In seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spent_s(cluster: Cluster) -> float:
    """CPU seconds of its region servers, but for their JIT compilers."""
    return sum(jvm_cpu_s(server.pid) for server in cluster.region_servers)


def web(port: int) -> dict[str, str]:
    """The properties of a region server's web server, for `rpc_bytes`."""
    return {"hbase.regionserver.info.port": str(port), "hbase.regionserver.info.bindAddress": "127.0.0.1"}


def rpc_bytes(web_port: int, *metrics: str) -> int:
    """Bytes by the RPC server of a region server: its `receivedBytes`, its `sentBytes`."""
    (bean,) = _json(f"http://127.0.0.1:{web_port}/jmx?qry={_IPC}")["beans"]
    return sum(int(bean[name]) for name in metrics)


def wal_files(cluster: Cluster) -> dict[str, int]:
    """Bytes of each of a cluster with one region server, those of `hbase:meta` left out; of an open one, as HDFS knows.

    Once a WAL has been rolled it takes a moment until the file is closed.
    """
    (server,) = cluster.region_servers
    found = {}
    for folder in (f"/hbase/WALs/{server.server_name}", "/hbase/oldWALs"):
        listing = _json(f"{cluster.webhdfs_url}/webhdfs/v1{folder}?op=LISTSTATUS&user.name=lab")
        for file in listing["FileStatuses"]["FileStatus"]:
            if not file["pathSuffix"].endswith(".meta"):
                found[file["pathSuffix"]] = file["length"]
    return found


def _json(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found
