"""HDFS of one side: the client that reads its files, its identity, and the roots that exist."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from status_tool.clients.config import HdfsClient, Settings
from status_tool.clients.delegation_tokens import delegated
from status_tool.clients.hdfs_native import Hdfs, NativeHdfs, RpcEndpoint, native_hdfs, rpc_endpoint_of
from status_tool.clients.hdfscli import Refused
from status_tool.clients.java import hadoop_class_path
from status_tool.clients.mount_table import Mounts, mounts_below
from status_tool.clients.webhdfs import HdfsEndpoint, Load, WebHdfs
from status_tool.errors import ConfigurationError, ConnectionFailed, StatusToolError
from status_tool.printable import print_beside
from status_tool.rules.sides import UNKNOWN_POOL
from status_tool.sources.hdfs_files import (
    LOOK_PAGES,
    NO_POOL,
    client_for,
    endpoint_at,
    endpoint_of,
    expand,
    is_large,
    pool_of,
    refusals_end_the_run,
)
from status_tool.vocabulary.selection import TEMPORARY_FOLDERS, Exclusions, plain_folder

NAMENODE_INFO = "Hadoop:service=NameNode,name=NameNodeInfo"
_NO_RPC = (
    "--hdfs-client native needs the NameNodes' RPC addresses: --conf-dir with a core-site.xml whose fs.defaultFS is "
    "hdfs://…, or with dfs.namenode.rpc-address"
)
_A_VIEW = (
    "fs.defaultFS is a mount table (viewfs://), which Hadoop's own client alone reads: leave --hdfs-client webhdfs "
    "out, or name the HDFS behind it by --webhdfs http://HOST:PORT"
)
_WEB_ONLY = "--hdfs-client native goes by the site files' RPC addresses, not by --webhdfs: leave one of them out"


def exclusions_of(settings: Settings, exclude: Sequence[str]) -> Exclusions:
    """Return what a listing leaves out: HBase's and the trackers' files, temporary ones, and what `--exclude` names."""
    return Exclusions((*TEMPORARY_FOLDERS, *settings.hbase_folders)).also((*settings.spool_globs, *exclude))


def without_users_folder(
    settings: Settings, endpoint: HdfsEndpoint | RpcEndpoint, exclusions: Exclusions, load: Load
) -> Exclusions:
    """Return the exclusions without a folder that has the path of HBase's root in another HDFS: there it is a user's.

    HBase's own has its id in it. A folder that this user cannot look into counts as HBase's, which is private.
    """
    root = settings.doubtful_root
    if root is None or root not in exclusions.folders:
        return exclusions
    try:
        if impatient(endpoint, load).status(posixpath.join(root, "hbase.id")) is not None:
            return exclusions
    except Refused:
        return exclusions
    folders = [*exclusions.folders]
    folders.remove(root)  # Once: a local folder of the slave may have the same path, and stays.
    return replace(exclusions, folders=tuple(folders))


def own_endpoint(settings: Settings, urls: Sequence[str]) -> HdfsEndpoint:
    """Return the endpoint by which HBase's own files and the trackers' are read. Raises `ConfigurationError`.

    By one token of the run: for each file that a ticket opens the NameNode issues another one
    (`NamenodeWebHdfsMethods.redirectURI`), keeps it for a day, and nobody cancels it.
    """
    endpoint = endpoint_at(settings, urls)
    if settings.is_hadoop_kerberized:
        with suppress(ConnectionFailed):  # where the NameNode gives none, the ticket has to do
            return delegated(endpoint)
    return endpoint


def files_endpoint(
    settings: Settings,
    client: HdfsClient,
    load: Load,
    roots: Sequence[str],
    exclusions: Exclusions,
    say: Callable[[str], None],
) -> HdfsEndpoint | RpcEndpoint:
    """Return the endpoint for the files under some roots.

    `--hdfs-client` decides, else the site files and the number of files.

    Raises `ConfigurationError` and `ConnectionFailed`.
    """
    if client is HdfsClient.WEBHDFS and settings.mounts():
        raise ConfigurationError(_A_VIEW)
    rpc = None if client is HdfsClient.WEBHDFS else rpc_endpoint_of(settings)
    if client is HdfsClient.NATIVE and rpc is None:
        raise ConfigurationError(_NO_RPC if not settings.webhdfs_option else _WEB_ONLY)
    if rpc is not None and (client is HdfsClient.NATIVE or rpc.mounts):
        _check_mounts(_mounts_of(rpc, roots, exclusions))
        return rpc
    web = endpoint_of(settings)
    if settings.is_hadoop_kerberized:
        # Spark's executors have no ticket and read with this token.
        web = delegated(web)
    if rpc is None:
        return web
    # `--rate` gives this look about a second.
    pages = LOOK_PAGES if load.rate is None else max(1, min(LOOK_PAGES, int(load.rate)))
    with refusals_end_the_run(web), ExitStack() as ending:
        hdfs = WebHdfs(web, load, patience_s=0)
        ending.callback(hdfs.stop)
        if not is_large(hdfs, roots, exclusions, pages):
            return web
    try:
        # Only a request shows whether Java, Hadoop's classes and the RPC port are within reach.
        impatient(rpc, load).status("/")
    except (StatusToolError, Refused) as error:
        _tell_without_jar()
        say(f"reading files over WebHDFS, as Hadoop's own client cannot: {error}")
        return web
    return rpc


@cache
def _tell_without_jar() -> None:
    """Say once, even without -v, that a tool installed without our jar reads many files slowly."""
    try:
        hadoop_class_path()
    except ConfigurationError as error:
        print_beside(f"reading HDFS over WebHDFS, which is slower: {error}")


def identity_of(
    settings: Settings,
    endpoint: HdfsEndpoint | RpcEndpoint,
    roots: Sequence[str],
    exclusions: Exclusions,
    load: Load,
) -> tuple[str, str]:
    """Return the cluster ids and block pool ids of an HDFS, separated by commas: addresses may lead to several.

    They are empty if the NameNodes do not report them (HttpFS has no such bean), the latter if no file tells it either.
    `UNKNOWN_POOL` stands for a pool that is not known beside one that is.
    """
    if isinstance(endpoint, RpcEndpoint) and endpoint.mounts:
        return "", _pools_of_view(endpoint, _mounts_of(endpoint, roots, exclusions), load)
    beans = list[dict[str, Any]]()
    # Hadoop's own client needs no web address: a file tells the pool then.
    with suppress(ConfigurationError):
        web = endpoint if isinstance(endpoint, HdfsEndpoint) else endpoint_of(settings)
        web = replace(web, token="")  # JMX takes a ticket only
        # Any of them may be the one that is read in the end.
        beans += WebHdfs(web, patience_s=0).beans(NAMENODE_INFO)
    pools = {pool for bean in beans for pool in _ids(bean, "BlockPoolId")}
    if not pools or isinstance(endpoint, RpcEndpoint):  # The web address may lead to another HDFS than the RPC's.
        with refusals_end_the_run(endpoint):
            # Any file tells, also one that is left out.
            pools.add(pool_of(client_for(endpoint, load), roots, Exclusions()))
    return ",".join(_ids(beans[0], "ClusterId")) if beans else "", _joined(pools)


def _ids(bean: Mapping[str, Any], name: str) -> list[str]:
    """Return the ids that a bean has under a name. A Router's has those of all its NameNodes, as `[BP-1, BP-2]`."""
    return [one for one in re.split(r"[\[\],\s]+", str(bean.get(name) or "")) if one]


def _pools_of_view(endpoint: RpcEndpoint, mounts: Mounts, load: Load) -> str:
    """Return the ids of a view's block pools, read from a file of each: site files need not name every web address."""
    paths = tuple(path for path, _ in mounts)
    hdfs = native_hdfs(endpoint, load)
    with refusals_end_the_run(endpoint):
        # A fallback's path, /, has all other mounts below it, and their files may be of other pools.
        found = {pool_of(hdfs, [path], Exclusions(tuple(one for one in paths if one != path))) for path in paths}
    return _joined(found)


def _joined(pools: set[str]) -> str:
    known = sorted(pools - {"", NO_POOL})
    # What is known must not stand for the rest: `identity_notice` tells of it.
    return ",".join([*known, UNKNOWN_POOL] if known and "" in pools else known)


def _mounts_of(endpoint: RpcEndpoint, roots: Sequence[str], exclusions: Exclusions) -> Mounts:
    """Return the mount points behind the files under some roots of a view; none without a view."""
    found = {mount for root in roots for mount in mounts_below(endpoint.mounts, plain_folder(root))}
    return tuple(sorted(mount for mount in found if not exclusions.leave_out(mount[0])))


def _check_mounts(mounts: Mounts) -> None:
    """Raise `ConfigurationError` if files are mounted from anything but HDFS."""
    for path, target in mounts:
        if not (urlsplit(target).scheme == "hdfs" and urlsplit(target).netloc):
            raise ConfigurationError(
                f"{path} is mounted from {target} by the site files: only hdfs://NAME/… is read; name other paths in "
                f"-f, or leave it out by --exclude {path}"
            )


def paths_of(
    endpoint: HdfsEndpoint | RpcEndpoint, roots: Sequence[str], exclusions: Exclusions, load: Load
) -> dict[str, list[str]]:
    """Return the paths that each root stands for; none: it does not exist.

    Queried without retries: a wrong address should be reported at once.
    """
    hdfs = impatient(endpoint, load)
    with refusals_end_the_run(endpoint):
        hdfs.status("/")
        return {root: expand(hdfs, root, exclusions) for root in roots}


def mounts_that_lead(
    endpoint: HdfsEndpoint | RpcEndpoint, paths: Sequence[str], exclusions: Exclusions, load: Load
) -> tuple[str, ...]:
    """Return the mount points of a view behind the files under some paths, without those that lead to nothing."""
    if not isinstance(endpoint, RpcEndpoint) or not endpoint.mounts:
        return ()
    hdfs = impatient(endpoint, load)
    return tuple(mount for mount, _ in _mounts_of(endpoint, paths, exclusions) if _leads(hdfs, mount))


def _leads(hdfs: Hdfs, mount: str) -> bool:
    """Return True if something is where a mount point leads to, though it may not be read."""
    try:
        return hdfs.status(mount) is not None
    except Refused:
        return True


def impatient(endpoint: HdfsEndpoint | RpcEndpoint, load: Load) -> Hdfs:
    """Return a client that does not wait for a NameNode which is away."""
    if isinstance(endpoint, RpcEndpoint):
        return NativeHdfs(endpoint, load, patience_s=0)
    return WebHdfs(endpoint, patience_s=0)
