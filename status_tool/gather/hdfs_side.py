"""By which client a side's files are read, what is known of their HDFS, and which of the paths are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from status_tool.clients.config import HdfsClient, Settings
from status_tool.clients.delegation_tokens import delegated
from status_tool.clients.hdfs_native import Hdfs, NativeHdfs, RpcEndpoint, native_hdfs
from status_tool.clients.hdfscli import Refused
from status_tool.clients.webhdfs import HdfsEndpoint, Load, WebHdfs
from status_tool.errors import ConfigurationError, StatusToolError
from status_tool.sources.hdfs_files import (
    LOOK_PAGES,
    endpoint_of,
    expand,
    is_large,
    pool_of,
    refusals_end_the_run,
    rpc_endpoint_of,
)
from status_tool.vocabulary.selection import Exclusions

NAMENODE_INFO = "Hadoop:service=NameNode,name=NameNodeInfo"
_NO_RPC = (
    "--hdfs-client native needs the NameNodes' RPC addresses: --conf-dir with a core-site.xml whose fs.defaultFS is "
    "hdfs://…, or with dfs.namenode.rpc-address"
)
_WEB_ONLY = "--hdfs-client native goes by the site files' RPC addresses, not by --webhdfs: leave one of them out"


def files_endpoint(
    settings: Settings,
    client: HdfsClient,
    load: Load,
    roots: Sequence[str],
    exclusions: Exclusions,
    say: Callable[[str], None],
) -> HdfsEndpoint | RpcEndpoint:
    """Where the files under some roots are read: by `--hdfs-client`, else by what is known and how many they are.

    Raises `ConfigurationError` and `ConnectionFailed`.
    """
    rpc = None if client is HdfsClient.WEBHDFS else rpc_endpoint_of(settings)
    if client is HdfsClient.NATIVE:
        if rpc is None:
            raise ConfigurationError(_NO_RPC if not settings.webhdfs_option else _WEB_ONLY)
        return rpc
    web = endpoint_of(settings)
    if settings.is_hadoop_kerberized:
        web = delegated(web)
    if rpc is None:
        return web
    pages = LOOK_PAGES if load.rate is None else max(1, min(LOOK_PAGES, int(load.rate)))
    with refusals_end_the_run(web), ExitStack() as ending:
        hdfs = WebHdfs(web, load, patience_s=0)
        ending.callback(hdfs.stop)
        if not is_large(hdfs, roots, exclusions, pages):
            return web
    try:
        impatient(rpc, load).status("/")
    except (StatusToolError, Refused) as error:
        say(f"reading files over WebHDFS, as Hadoop's own client cannot: {error}")
        return web
    return rpc


def identity_of(
    settings: Settings, endpoint: HdfsEndpoint | RpcEndpoint, roots: Sequence[str], load: Load
) -> tuple[str, str]:
    """Cluster id and block pool id of an HDFS; empty where the NameNodes do not report it (HttpFS has no such bean)."""
    bean: dict[str, Any] = {}
    with suppress(ConfigurationError):
        web = endpoint if isinstance(endpoint, HdfsEndpoint) else endpoint_of(settings)
        web = replace(web, token="")  # JMX takes a ticket only
        bean = WebHdfs(web, patience_s=0).bean(NAMENODE_INFO) or {}
    pool = str(bean.get("BlockPoolId") or "")
    if not pool and isinstance(endpoint, RpcEndpoint):
        with refusals_end_the_run(endpoint):
            pool = pool_of(native_hdfs(endpoint, load), roots)
    return str(bean.get("ClusterId") or ""), pool


def absent_roots(endpoint: HdfsEndpoint | RpcEndpoint, roots: Sequence[str], load: Load) -> list[str]:
    """The roots that do not exist. Queried without retries: a wrong address should be reported at once."""
    hdfs = impatient(endpoint, load)
    with refusals_end_the_run(endpoint):
        hdfs.status("/")
        return [root for root in roots if not expand(hdfs, root)]


def impatient(endpoint: HdfsEndpoint | RpcEndpoint, load: Load) -> Hdfs:
    """A client that does not wait for a NameNode which is away."""
    if isinstance(endpoint, RpcEndpoint):
        return NativeHdfs(endpoint, load, patience_s=0)
    return WebHdfs(endpoint, patience_s=0)
