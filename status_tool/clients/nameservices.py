"""NameNodes of this cluster, found by the site files alone.

A site file of a cluster that copies to another one usually names both (`dfs.nameservices=master,slave`). Taking all of
them for one cluster's NameNodes would compare a cluster with itself, so exactly one name service is chosen: by the
authority of the file system in question (`fs.defaultFS`, `hbase.rootdir`), else by `dfs.internal.nameservices`,
else the only one there is. Anything ambiguous is rejected. Keys and defaults are Hadoop's
(`DFSUtilClient.getAddresses`, `DFSUtil.getInfoServer`, hdfs-default.xml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from status_tool.clients.mount_table import SCHEME, view_name
from status_tool.errors import ConfigurationError

DEFAULT_FS_KEYS = ("fs.defaultFS", "fs.default.name")
HDFS_SCHEMES = ("hdfs", "webhdfs", "swebhdfs")
DEFAULT_RPC_PORT = 8020
WILDCARDS = ("0.0.0.0", "::", "[::]")
_WEB_SCHEMES = {"webhdfs": "http", "swebhdfs": "https"}
_WAY_OUT = "or give --webhdfs http://HOST:PORT"


@dataclass(frozen=True, slots=True)
class _NameNode:
    """One NameNode of the site files: `HOST:PORT` of its RPC and of its web server, as far as they are set."""

    key: str
    """The property that names its web server."""
    rpc: str
    web: str

    @property
    def host(self) -> str:
        """The host that clients reach; empty where only wildcards are set."""
        hosts = (_host(self.web), _host(self.rpc))
        return next((host for host in hosts if host and host not in WILDCARDS), "")


def default_fs(site: Mapping[str, str]) -> str | None:
    """Return `fs.defaultFS`; None if no site file sets it."""
    return next((site[key].strip() for key in DEFAULT_FS_KEYS if site.get(key, "").strip()), None)


def namenode_urls(site: Mapping[str, str], of: str | None = None) -> tuple[str, ...]:
    """Return the base URLs of the NameNodes of `of` (a URL as in `hbase.rootdir`), else of `fs.defaultFS`.

    Empty where the site files name no NameNode at all. Raises `ConfigurationError` where they do not determine
    which one is meant, or where `of` is not an HDFS.
    """
    default = default_fs(site)
    names_one = of is not None and urlsplit(of).scheme
    url = of if names_one else default
    if url is None:
        return _undirected(site)
    parts = urlsplit(url)
    if parts.scheme not in HDFS_SCHEMES:
        if names_one:
            raise ConfigurationError(f"{of} is not an HDFS: WebHDFS cannot read it")
        return _internal(site, url)
    authority = parts.netloc.rpartition("@")[2]
    if not authority:
        if names_one and default is not None and urlsplit(default).scheme in HDFS_SCHEMES and urlsplit(default).netloc:
            return namenode_urls(site)
        return _undirected(site)
    return _of_authority(site, parts.scheme, authority)


def named_urls(site: Mapping[str, str], url: str) -> tuple[str, ...]:
    """Return the NameNodes of an HDFS that the site files name by this authority; none for one that they only may mean.

    Raises as `namenode_urls`, and `ValueError` for what is no URL.
    """
    name = urlsplit(url).netloc.rpartition("@")[2]
    is_known = _is_service(site, name) or bool(_services_at(site, name)) or _is_plain(site, name)
    return namenode_urls(site, url) if is_known or urlsplit(url).scheme in _WEB_SCHEMES else ()


def rpc_filesystem(site: Mapping[str, str]) -> str | None:
    """Return the URL that Hadoop's own client opens; None if not all RPC addresses are set.

    A pair of NameNodes by the name of its service, a single one by its address, a view by the name of its mount table.
    """
    default = urlsplit(default_fs(site) or "")
    if (view := view_name(site, default.geturl())) is not None:
        return f"{SCHEME}://{view}"
    internal, services = _internal_services(site), _services(site)
    if default.scheme == "hdfs" and (authority := default.netloc.rpartition("@")[2]):
        if _is_service(site, authority):
            return _rpc_of_service(site, _host(authority))
        matching = _services_at(site, authority)
        return _rpc_of_service(site, matching[0]) if len(matching) == 1 else f"hdfs://{authority}"
    # Its authority is a web server's: no RPC address follows from it.
    if default.scheme in _WEB_SCHEMES:
        return None
    if len(internal) == 1:
        return _rpc_of_service(site, internal[0])
    if default.scheme not in ("", "hdfs"):
        return None
    if len(services) == 1:
        return _rpc_of_service(site, services[0])
    return None if services else _rpc_url([_namenode(site, "")])


def _rpc_of_service(site: Mapping[str, str], service: str) -> str | None:
    nodes = _namenodes(site, service)
    if not site.get(f"dfs.ha.namenodes.{service}", "").strip():
        # The only name service there is may have its address in the keys without a suffix.
        return _rpc_url(nodes) or (_rpc_url([_namenode(site, "")]) if len(_services(site)) == 1 else None)
    # Hadoop's client would never try a NameNode without an RPC address, which may be the active one.
    return f"hdfs://{service}" if all(_rpc_url([node]) for node in nodes) else None


def _rpc_url(nodes: Sequence[_NameNode]) -> str | None:
    rpc = nodes[0].rpc
    return f"hdfs://{rpc}" if _host(rpc) and _host(rpc) not in WILDCARDS else None


def rpc_properties(site: Mapping[str, str]) -> dict[str, str]:
    """Return the site's properties with those that only Hadoop's client needs: the servers' files may lack them."""
    services = {key.removeprefix("dfs.ha.namenodes.") for key in site if key.startswith("dfs.ha.namenodes.")}
    provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
    added = {f"dfs.client.failover.proxy.provider.{service}": provider for service in services}
    # A client that reads from observers (ObserverReadProxyProvider) only knows what was there at its first request,
    # which precedes the cut. With 0 it catches up with the active NameNode before each, whatever the site says.
    ours = {f"dfs.client.failover.observer.auto-msync-period.{service}": "0" for service in services}
    names = ",".join(dict.fromkeys([*_services(site), *sorted(services)]))
    return {**added, **site, **ours, **({"dfs.nameservices": names} if names else {})}


def _undirected(site: Mapping[str, str]) -> tuple[str, ...]:
    """Return the NameNodes where no file system is named: internal name service, the only one, or the plain address."""
    internal, services = _internal_services(site), _services(site)
    if len(internal) == 1:
        return _service_urls(site, internal[0])
    if len(services) > 1:
        raise ConfigurationError(
            f"the site files name several name services ({', '.join(services)}) but not which is this cluster's: set "
            f"fs.defaultFS to hdfs://{services[0]} or another, or dfs.internal.nameservices to one of them, {_WAY_OUT}"
        )
    if services:
        return _service_urls(site, services[0])
    return _urls(site, [_namenode(site, "")])


def _internal(site: Mapping[str, str], url: str) -> tuple[str, ...]:
    """Return the NameNodes if `fs.defaultFS` is not an HDFS: only `dfs.internal.nameservices` can identify them."""
    internal = _internal_services(site)
    if len(internal) == 1:
        return _service_urls(site, internal[0])
    known = _services(site)
    choice = f"one of {', '.join(known)}" if known else "its name service, with dfs.namenode.http-address.NAME"
    raise ConfigurationError(
        f"fs.defaultFS is {url}, not an HDFS, so it does not identify this cluster's NameNodes: set "
        f"dfs.internal.nameservices to {choice}, {_WAY_OUT}"
    )


def _of_authority(site: Mapping[str, str], scheme: str, authority: str) -> tuple[str, ...]:
    """Return the NameNodes behind `hdfs://AUTHORITY`: a name service, or one NameNode's own address."""
    name = _host(authority)
    services = _services(site)
    if _is_service(site, authority):
        return _service_urls(site, name)
    if scheme in _WEB_SCHEMES:
        return (f"{_WEB_SCHEMES[scheme]}://{authority}",)
    matching = _services_at(site, authority)
    if len(matching) == 1:
        return _service_urls(site, matching[0])
    plain = _namenode(site, "")
    if not services or (_is_plain(site, authority) if plain.rpc else plain.host == name):
        return _urls(site, [plain], name)
    raise ConfigurationError(
        f"hdfs://{authority} is none of the name services in the site files ({', '.join(services)}), so which "
        f"NameNodes serve it is unknown: set dfs.namenode.http-address to its NameNode's, {_WAY_OUT}"
    )


def _is_service(site: Mapping[str, str], authority: str) -> bool:
    return _host(authority) in _services(site) or bool(site.get(f"dfs.ha.namenodes.{_host(authority)}"))


def _is_plain(site: Mapping[str, str], authority: str) -> bool:
    """Return True for the RPC address of the NameNode in the keys without a suffix."""
    plain = _namenode(site, "")
    return bool(plain.rpc) and _is(plain, with_port(authority))


def _services_at(site: Mapping[str, str], authority: str) -> list[str]:
    """Return the name services that have a NameNode with this RPC address."""
    rpc = with_port(authority)
    return [service for service in _services(site) if any(_is(node, rpc) for node in _namenodes(site, service))]


def with_port(authority: str) -> str:
    """Return the RPC address of an authority, with HDFS's default port where it has none."""
    return authority if ":" in authority.rpartition("]")[2] else f"{authority}:{DEFAULT_RPC_PORT}"


def _is(node: _NameNode, rpc: str) -> bool:
    return (node.rpc if ":" in node.rpc else f"{node.rpc}:{DEFAULT_RPC_PORT}") == rpc


def _services(site: Mapping[str, str]) -> list[str]:
    return list(dict.fromkeys([*_list(site, "dfs.nameservices"), *_internal_services(site)]))


def _internal_services(site: Mapping[str, str]) -> list[str]:
    return _list(site, "dfs.internal.nameservices")


def _list(site: Mapping[str, str], key: str) -> list[str]:
    return [name for part in site.get(key, "").split(",") if (name := part.strip())]


def _namenodes(site: Mapping[str, str], service: str) -> list[_NameNode]:
    """Return the NameNodes of a name service: those of its `dfs.ha.namenodes`, else its one."""
    nodes = _list(site, f"dfs.ha.namenodes.{service}")
    return [_namenode(site, f".{service}.{node}") for node in nodes] or [_namenode(site, f".{service}")]


def _namenode(site: Mapping[str, str], suffix: str) -> _NameNode:
    """Read a NameNode from the keys with this suffix, without defaults."""
    key = f"dfs.namenode.{'https' if _is_https(site) else 'http'}-address{suffix}"
    rpc = site.get(f"dfs.namenode.rpc-address{suffix}") or site.get(f"dfs.namenode.servicerpc-address{suffix}") or ""
    return _NameNode(key, rpc.strip(), site.get(key, "").strip())


def _service_urls(site: Mapping[str, str], service: str) -> tuple[str, ...]:
    nodes = _namenodes(site, service)
    # The only name service there is may have its address in the keys without a suffix, as Hadoop reads them then.
    if len(_services(site)) == 1 and not any(node.web or node.rpc for node in nodes):
        nodes = [_namenode(site, "")]
    urls = _urls(site, nodes)
    if not urls:
        raise ConfigurationError(
            f"the site files name no address of name service {service}: set {nodes[0].key}, {_WAY_OUT}"
        )
    return urls


def _urls(site: Mapping[str, str], nodes: Sequence[_NameNode], host: str = "") -> tuple[str, ...]:
    """Return the URLs of NameNodes.

    One without a web address gets HDFS's default port on its RPC host, or on `host`.
    """
    scheme, port = ("https", 9871) if _is_https(site) else ("http", 9870)
    urls = []
    for node in nodes:
        reachable = node.host or host
        # A wildcard is what the NameNode binds, in a file that is its own; the RPC address may name its host.
        if _host(node.web) and _host(node.web) not in WILDCARDS:
            urls.append(f"{scheme}://{node.web}")
        elif reachable:
            own_port = node.web.rpartition("]")[2].partition(":")[2]
            urls.append(f"{scheme}://{reachable}:{own_port or port}")
    return tuple(dict.fromkeys(urls))


def _is_https(site: Mapping[str, str]) -> bool:
    return site.get("dfs.http.policy") == "HTTPS_ONLY"


def _host(address: str) -> str:
    """Return the host of `HOST:PORT`; an IPv6 address keeps its brackets."""
    if address.startswith("["):
        return address.partition("]")[0] + "]"
    return address.partition(":")[0]
