"""The HDFS half of a check of two clusters without HBase, for tests."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

from status_tool.clients.config import Settings
from status_tool.clients.hdfs_native import RpcEndpoint, rpc_endpoint_of
from status_tool.clients.sitefiles import load_site
from status_tool.clients.webhdfs import HdfsEndpoint
from status_tool.sources.interface import Source
from tests.lab import Cluster
from tests.pair import Result, tool_here


def endpoint(cluster: Cluster, user: str = "lab") -> HdfsEndpoint:
    """Its first NameNode."""
    return HdfsEndpoint((cluster.webhdfs_url,), user)


def rpc_endpoint(cluster: Cluster, user: str = "lab") -> RpcEndpoint:
    """The same by its RPC addresses, as the site files have them."""
    found = rpc_endpoint_of(Settings(load_site([cluster.conf_dir], environ={})))
    assert found is not None
    return dataclasses.replace(found, user=user)


def where(cluster: Cluster) -> tuple[str, str]:
    """HDFS alone: its hdfs-site.xml, but no hbase-site.xml, so that no ZooKeeper is looked for."""
    folder = cluster.folder / "hdfs-conf"
    folder.mkdir(exist_ok=True)
    shutil.copy(cluster.conf_dir / "hdfs-site.xml", folder)
    return "--conf-dir", str(folder)


class Check:
    """`run -m` and `run -i` of some paths."""

    def __init__(self, hdfs: tuple[Cluster, Cluster], folder: Path, *paths: str) -> None:
        self.master, self.slave = hdfs
        self.file, self.paths = folder / "master.status", folder / "paths"
        self.paths.write_text("\n".join(paths))

    def write(self, *options: str) -> Result:
        arguments = ("-m", "-o", str(self.file), "--only", "hdfs", "-f", str(self.paths))
        result = tool_here("run", *arguments, *where(self.master), *options)
        assert result.exit_code == 0, result
        return result

    def verify(self, *options: str) -> Result:
        return tool_here("run", "-i", self.file, "--json", "--only", "hdfs", *where(self.slave), *options)

    def __call__(self, *options: str) -> Result:
        self.write()
        return self.verify(*options)


def kinds(result: Result) -> dict[str, str]:
    return {problem["path"]: problem["kind"] for problem in result.json["problems"]}


def details(result: Result) -> dict[str, str]:
    return {problem["path"]: problem["detail"] for problem in result.json["problems"]}


def rows(source: Source) -> dict[str, dict[str, Any]]:
    """The `file` rows of a source by path."""
    found = [row for part in source.partitions() for batch in source.read(part) for row in batch.to_pylist()]
    return {row["path"]: row for row in found if row["kind"] == "file"}


def checksums(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {path: row["checksum"] or row["detail"] for path, row in found.items()}
