"""Settings of the endpoints and where they come from. Only this module knows the order of precedence.

Options on the command line win; else `hbase-site.xml`, `hdfs-site.xml` and `core-site.xml` in the
`--conf-dir`s, then in `$HBASE_CONF_DIR`, then in `$HADOOP_CONF_DIR`. The first folder that defines a
property wins.
"""

from __future__ import annotations

import glob
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from status_tool.clients.keystores import OF_RPC, OF_ZOOKEEPER, hbase_trust, hdfs_trust
from status_tool.clients.mount_table import SCHEME as VIEW_SCHEME
from status_tool.clients.mount_table import Mounts, mount_table, seen_at, view_name
from status_tool.clients.nameservices import (
    HDFS_SCHEMES,
    default_fs,
    named_urls,
    namenode_urls,
    rpc_filesystem,
    rpc_properties,
    with_port,
)
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.tls import DEFAULT_TRUST, Trust
from status_tool.errors import ConfigurationError
from status_tool.vocabulary.names import DEFAULT_NAMESPACE, PEER_STORAGE_KEY, full_name, status_table_of
from status_tool.vocabulary.selection import plain_path, strip_uri, system_of

STATE_NAMESPACE_KEY = "hbase.replicationtable.namespace"
STATE_NAME_KEY = "hbase.replicationtable.name"
UPDATE_PERIOD_KEY = "hbase.replicationtable.updateperiod"
SPOOL_DIR_KEY = "hbase.replicationtable.spool.dir"
_WAL_FOLDERS = ("WALs", "oldWALs", "MasterData", "corrupt")
"""Folders of HBase's own in `hbase.wal.dir` (`HConstants`), which may hold others."""
_PORT = re.compile(r"[0-9]{1,5}")
_CLUSTER_ID = "????????-????-4???-[89ab]???-????????????"
"""Glob for the ids of clusters, which are random UUIDs (`ClusterId`)."""
SECURITY_KEY = "hbase.security.authentication"
THRIFT_QOP_KEY = "hbase.thrift.security.qop"
THRIFT_PRINCIPAL_KEY = "hbase.thrift.kerberos.principal"
RPC_PRINCIPAL_KEY = "hbase.regionserver.kerberos.principal"
RPC_QOP_KEY = "hbase.rpc.protection"
_QOP_NAMES = {"authentication": "auth", "integrity": "auth-int", "privacy": "auth-conf"} | {
    name: name for name in ("auth", "auth-int", "auth-conf")
}
HDFS_PATHS_KEY = "status.tool.hdfs.paths"
ALWAYS_FRAMED = ("hsha", "nonblocking", "threadedselector")
"""Types of Thrift servers that imply the framed transport (HBase's ImplType)."""
ZNODE_KEYS = {
    "hbaseid": "zookeeper.znode.clusterId",
    "master": "zookeeper.znode.master",
    "rs": "zookeeper.znode.rs",
    "table": "zookeeper.znode.tableEnableDisable",
    "replication": "zookeeper.znode.replication",
    "replication/peers": "zookeeper.znode.replication.peers",
    "replication/peers/*/peer-state": "zookeeper.znode.replication.peers.state",
    "replication/rs": "zookeeper.znode.replication.rs",
    "replication/hfile-refs": "zookeeper.znode.replication.hfile.refs",
}
"""Znodes below HBase's own that are read, by their default paths, and the keys that name them otherwise."""


class HdfsClient(StrEnum):
    """Values of `--hdfs-client`: the client that lists files and reads their checksums."""

    AUTO = "auto"
    WEBHDFS = "webhdfs"
    NATIVE = "native"


@dataclass(frozen=True, slots=True)
class ThriftEndpoint:
    """An HBase Thrift (version 1) server."""

    host: str
    port: int
    framed: bool = False
    compact: bool = False
    http: bool = False
    tls: bool = False
    trust: Trust = field(default=DEFAULT_TRUST, repr=False)
    principal: str = ""
    """The server's, as a site file has it (`_HOST` for its host), where it requires Kerberos; empty: it does not."""
    qops: tuple[str, ...] = ()
    """SASL's qualities of protection, the preferred one first; none over HTTP, where SPNEGO takes the place of SASL."""

    @property
    def has_kerberos(self) -> bool:
        """Return True if a Kerberos ticket is needed. Spark's executors have none."""
        return bool(self.principal)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RpcAccess:
    """Security of HBase's own RPC, as region servers have it."""

    principal: str = ""
    """The servers', as a site file has it (`_HOST` for a server's host); empty: without Kerberos."""
    qops: tuple[str, ...] = ("auth",)
    """SASL's qualities of protection, the preferred one first."""
    tls: bool = False
    trust: Trust = field(default=DEFAULT_TRUST, repr=False)


PLAIN_RPC = RpcAccess()


@dataclass(frozen=True, slots=True)
class ZooKeeperEndpoint:
    """A ZooKeeper ensemble (`host:port[,host:port…]`) and HBase's parent znode in it."""

    hosts: str
    znode: str
    names: tuple[tuple[str, str], ...] = ()
    """Znodes whose name differs from HBase's default: default path (see `ZNODE_KEYS`) and last part."""
    sasl: str = ""
    """The service (first part of the servers' principals) to log in at by Kerberos; empty: without."""
    tls: bool = False
    trust: Trust = field(default=DEFAULT_TRUST, repr=False)

    def __str__(self) -> str:
        return f"{self.hosts}{self.znode}"

    @property
    def cluster_key(self) -> str:
        """HBase's form: `quorum:port:/znode`, hosts without ports when all share one."""
        hosts = self.hosts.split(",")
        ports = [host.rpartition(":")[2] for host in hosts]
        named = [host.rpartition(":")[0] for host in hosts] if len(set(ports)) == 1 else hosts
        return f"{','.join(named)}:{ports[0]}:{self.znode}"


@dataclass(frozen=True, slots=True)
class Settings:
    """One cluster as the tool sees it: site files plus what the command line overrides."""

    site: SiteConfig
    thrift_option: str | None = None
    webhdfs_option: tuple[str, ...] = ()
    zookeeper_option: str | None = None
    trust: Trust = field(default=DEFAULT_TRUST, repr=False)

    def thrift(self) -> ThriftEndpoint:
        """Return the Thrift server: `--thrift`, else that of `hbase.regionserver.thrift.*`, with its protocol."""
        site = self.site
        host, port = site.get("hbase.regionserver.thrift.ipaddress"), 0
        if self.thrift_option:
            host, port = host_port(self.thrift_option, "--thrift")
        elif not self.knows_thrift:
            raise ConfigurationError(
                "no HBase Thrift server known: give --thrift HOST:PORT, or --conf-dir with an hbase-site.xml "
                "that sets hbase.regionserver.thrift.ipaddress and hbase.regionserver.thrift.port"
            )
        kind = site.get("hbase.regionserver.thrift.server.type", "").strip().lower()
        http = site.flag("hbase.regionserver.thrift.http")
        # Over HTTP the server takes binary messages only, each a request (ThriftServer.setupHTTPServer).
        framed = not http and (site.flag("hbase.regionserver.thrift.framed") or kind in ALWAYS_FRAMED)
        security = self._thrift_security(http)
        if framed and security:
            raise ConfigurationError(
                f"{THRIFT_QOP_KEY} does not go with the framed transport: HBase's Thrift server does not start with "
                "both; correct hbase.regionserver.thrift.framed or .server.type in the site files"
            )
        return ThriftEndpoint(
            # The property is what the server binds. 0.0.0.0, or nothing, names no host: the tool tries its own.
            "127.0.0.1" if host in (None, "0.0.0.0") else str(host),
            port or site.integer("hbase.regionserver.thrift.port", 9090),
            framed=framed,
            compact=not http and site.flag("hbase.regionserver.thrift.compact"),
            http=http,
            tls=site.flag("hbase.thrift.ssl.enabled"),
            trust=self.trust,
            **security,
        )

    def _thrift_security(self, http: bool) -> dict[str, Any]:
        """Return `principal` and `qops` of a Thrift server that requires Kerberos; nothing for another one."""
        asked = self.site.get(THRIFT_QOP_KEY, "").strip()
        keys = ("hbase.thrift.spnego.principal", THRIFT_PRINCIPAL_KEY) if http else (THRIFT_PRINCIPAL_KEY,)
        # HBase's ThriftServer asks for SPNEGO over HTTP wherever HBase is secure, but for SASL only if a QOP is set.
        if not (self.is_kerberized if http else asked):
            return {}
        principal = next((found for key in keys if (found := self.site.get(key, "").strip())), "")
        if not principal:
            why = f"{SECURITY_KEY} is kerberos" if http else f"{THRIFT_QOP_KEY} is {asked}"
            raise ConfigurationError(
                f"the HBase Thrift server requires Kerberos ({why} in the site files), and nothing names its "
                f"principal: set {keys[0]} as that server has it, such as {'HTTP' if http else 'hbase'}/_HOST@REALM"
            )
        return {"principal": principal, "qops": () if http else _qops(asked, THRIFT_QOP_KEY)}

    def hbase_rpc(self) -> RpcAccess:
        """Return how the site files let HBase's clients call a region server. Raises `ConfigurationError`."""
        tls = self.site.flag("hbase.client.netty.tls.enabled")
        trust = hbase_trust(self.site, self.trust, OF_RPC) if tls else self.trust
        if not self.is_kerberized:
            return RpcAccess(tls=tls, trust=trust)
        principal = self.site.get(RPC_PRINCIPAL_KEY, "").strip()
        if not principal:
            raise ConfigurationError(
                f"{SECURITY_KEY} is kerberos in the site files, and nothing names the principal of HBase's region "
                f"servers: set {RPC_PRINCIPAL_KEY} as they have it, such as hbase/_HOST@REALM"
            )
        return RpcAccess(principal, _qops(self.site.get(RPC_QOP_KEY, "authentication"), RPC_QOP_KEY), tls, trust)

    @property
    def is_kerberized(self) -> bool:
        """Return True if the site files require Kerberos for HBase."""
        return self.site.get(SECURITY_KEY, "").strip().lower() == "kerberos"

    @property
    def is_hadoop_kerberized(self) -> bool:
        """Return True if the site files require Kerberos for Hadoop."""
        return self.site.get("hadoop.security.authentication", "").strip().lower() == "kerberos"

    @property
    def knows_thrift(self) -> bool:
        """Return True if a Thrift server is configured."""
        keys = ("hbase.regionserver.thrift.ipaddress", "hbase.regionserver.thrift.port")
        return bool(self.thrift_option) or any(key in self.site for key in keys)

    def hdfs_trust(self, urls: Iterable[str]) -> Trust:
        """Return the trust for WebHDFS at these addresses: the keystores of the site files count for `https` only."""
        secured = any(url.lower().startswith("https:") for url in urls)
        return hdfs_trust(self.site, self.trust) if secured else self.trust

    def zookeeper(self) -> ZooKeeperEndpoint:
        """Return the ensemble and znode: `--zookeeper HOST:PORT[,…]/ZNODE`, else the site files."""
        if self.zookeeper_option:
            return replace(parse_zookeeper(self.zookeeper_option), **self._zookeeper_access)
        quorum = self.site.get("hbase.zookeeper.quorum")
        if not quorum:
            raise ConfigurationError(
                "no ZooKeeper known: give --zookeeper HOST:PORT[,…]/ZNODE, or --conf-dir with an hbase-site.xml "
                "that sets hbase.zookeeper.quorum"
            )
        port = self.site.integer("hbase.zookeeper.property.clientPort", 2181)
        hosts = [host.strip() for host in quorum.split(",") if host.strip()]
        joined = with_ports(hosts, port, "hbase.zookeeper.quorum, with hbase.zookeeper.property.clientPort,")
        znode = self.site.get("zookeeper.znode.parent", "/hbase")
        return replace(ZooKeeperEndpoint(joined, znode), **self._zookeeper_access)

    @property
    def _zookeeper_access(self) -> dict[str, Any]:
        """Return the settings that all ensembles share. ZooKeeper's client property turns TLS on (HBASE-28038)."""
        tls = self.site.flag("hbase.zookeeper.property.client.secure")
        trust = hbase_trust(self.site, self.trust, OF_ZOOKEEPER) if tls else self.trust
        return {"names": self.znode_names, "sasl": self._zookeeper_sasl, "tls": tls, "trust": trust}

    @property
    def _zookeeper_sasl(self) -> str:
        """Return ZooKeeper's service name for SASL; empty if Kerberos or ZooKeeper's client property has it off."""
        if not self.is_kerberized or self.site.get("zookeeper.sasl.client", "").strip().lower() == "false":
            return ""
        return self.site.get("zookeeper.sasl.client.username", "").strip() or "zookeeper"

    @property
    def znode_names(self) -> tuple[tuple[str, str], ...]:
        """Names of znodes that the site files change; see `ZooKeeperEndpoint.names`."""
        named = ((path, self.site.get(key, "").strip("/")) for path, key in ZNODE_KEYS.items())
        return tuple((path, name) for path, name in named if name and name != path.rpartition("/")[2])

    @property
    def knows_zookeeper(self) -> bool:
        """Return True if a ZooKeeper ensemble is configured."""
        return bool(self.zookeeper_option or self.site.get("hbase.zookeeper.quorum"))

    @property
    def peers_elsewhere(self) -> str:
        """Return why the peers in ZooKeeper may not be HBase's, where no tracker tells; empty if they are."""
        storage = self.site.get(PEER_STORAGE_KEY, "").strip()
        if storage.lower() in ("", "zookeeper"):
            return ""
        return f"the peers in ZooKeeper may be those of before, as {PEER_STORAGE_KEY} is {storage} in the site files"

    def webhdfs(self, of: str | None = None) -> tuple[str, ...]:
        """Return the base URLs of the NameNodes: `--webhdfs`, else those that the site files name for one file system.

        `of` is a URL there, as in `hbase.rootdir`; None: what is checked, `fs.defaultFS`.
        """
        if self.webhdfs_option:
            return tuple(_check_url(url) for option in self.webhdfs_option for url in option.split(","))
        urls = namenode_urls(self.site, of)
        if not urls:
            raise ConfigurationError(
                "no NameNode known: give --webhdfs http://HOST:PORT, or --conf-dir with an hdfs-site.xml that sets "
                "dfs.namenode.http-address"
            )
        return urls

    def rpc(self) -> tuple[str, tuple[tuple[str, str], ...]] | None:
        """Return the file system of `webhdfs()` by its RPC addresses, and the properties that Hadoop's client needs.

        None where the site files do not name them, or `--webhdfs` replaces what they name.
        """
        filesystem = None if self.webhdfs_option else rpc_filesystem(self.site)
        # The order counts: the pairs are a part of the key under which `hdfs_native` shares its Java process.
        return None if filesystem is None else (filesystem, tuple(sorted(rpc_properties(self.site).items())))

    def mounts(self) -> Mounts:
        """Return the mount points if `fs.defaultFS` is a view (`viewfs://`) and `--webhdfs` is not given; else none.

        Raises `ConfigurationError` for links that are not read.
        """
        view = None if self.webhdfs_option else view_name(self.site, default_fs(self.site) or "")
        return () if view is None else mount_table(self.site, view)

    def wal_webhdfs(self) -> tuple[str, ...]:
        """Return the base URLs of the NameNodes that hold the WALs (`hbase.wal.dir`, else `hbase.rootdir`)."""
        return self.webhdfs(self.site.get("hbase.wal.dir") or self.site.get("hbase.rootdir"))

    def root_webhdfs(self) -> tuple[str, ...]:
        """Return the base URLs of the NameNodes of HBase's own folder. Raises `ConfigurationError`."""
        return self.webhdfs(self.site.get("hbase.rootdir"))

    def spool_webhdfs(self) -> tuple[str, ...]:
        """Return the base URLs of the NameNodes that hold the trackers' spool."""
        return self.webhdfs(self.site.get(SPOOL_DIR_KEY) or self.site.get("hbase.rootdir"))

    @property
    def state_table(self) -> str:
        """`name`, or `namespace:name` outside the default namespace."""
        namespace = self.site.get(STATE_NAMESPACE_KEY, DEFAULT_NAMESPACE)
        name = self.site.get(STATE_NAME_KEY, "replicationstate")
        return full_name(namespace, name)

    @property
    def status_table(self) -> str:
        """The table of published status files, named as `state_table`."""
        return status_table_of(self.state_table)

    @property
    def flush_period_ms(self) -> int:
        """The trackers' flush period."""
        return self.site.integer(UPDATE_PERIOD_KEY, 20000)

    @property
    def hbase_root(self) -> str | None:
        """HBase's root folder in HDFS without scheme and authority; None when no site file names it."""
        root = self.site.get("hbase.rootdir")
        return urlsplit(root).path.rstrip("/") or "/" if root else None

    @property
    def hbase_folders(self) -> tuple[str, ...]:
        """HBase's root, and the WALs' folders outside of it, where files are listed: no two clusters have the same.

        They are as a view shows them, if that is what is listed.
        """
        root, wals = self.site.get("hbase.rootdir"), (self.site.get("hbase.wal.dir") or "").rstrip("/")
        return self._listed_at(([root] if root else []) + ([f"{wals}/{name}" for name in _WAL_FOLDERS] if wals else []))

    @property
    def doubtful_root(self) -> str | None:
        """HBase's root as `hbase_folders` has it, if it may be in another HDFS; None if that is known."""
        root = self.site.get("hbase.rootdir", "")
        if not root or self.mounts() or self._is_root_elsewhere(root) or self._is_listed(*system_of(root)):
            return None
        return self.hbase_root

    @property
    def spool_globs(self) -> tuple[str, ...]:
        """Globs for the trackers' spools in `hbase.replicationtable.spool.dir`, where files are listed.

        Clusters may share that folder, and what else is in it may be a user's.
        """
        shared = self.site.get(SPOOL_DIR_KEY)
        # By a folder in it: a mount point of a view may lead into that folder, but to no spool.
        spools = self._listed_at([f"{shared.rstrip('/')}/id"] if shared else [])
        return tuple(posixpath.join(glob.escape(posixpath.dirname(spool)), _CLUSTER_ID) for spool in spools)

    def _listed_at(self, urls: Sequence[str]) -> tuple[str, ...]:
        """Return the paths by which folders of HBase's are listed, without those that are elsewhere."""
        mounts = self.mounts()
        if mounts:
            found = [folder for url in urls for folder in seen_at(mounts, url)]
        else:
            found = [urlsplit(url).path.rstrip("/") or "/" for url in urls if not self._is_root_elsewhere(url)]
        return tuple(dict.fromkeys(found))

    def _is_root_elsewhere(self, root: str) -> bool:
        """Return True if a folder of HBase's is certainly in another file system than the one whose files are listed.

        Then a folder of that path is a user's.
        """
        scheme, name = urlsplit(root).scheme, urlsplit(root).netloc
        if self.webhdfs_option or not scheme:
            return False
        if scheme not in HDFS_SCHEMES:
            return True
        # Another address proves nothing, as one NameNode may have several; a name service has one name.
        if name not in (one.strip() for one in self.site.get("dfs.nameservices", "").split(",")):
            return False
        # None (not known) counts as the same: HBase's own files differ between any two clusters, which is no loss.
        return self._shares_namenodes(root) is False

    def _shares_namenodes(self, url: str) -> bool | None:
        """Return True if the NameNodes of `fs.defaultFS` are those of a URL; None unless the site files name both."""
        try:
            listed, others = namenode_urls(self.site), named_urls(self.site, url)
        except (ConfigurationError, ValueError):
            return None
        return bool(set(listed) & set(others)) if listed and others else None

    def refuse_elsewhere(self, roots: Iterable[str]) -> None:
        """Raise `ConfigurationError` for a root whose URL is not certainly of the file system that is listed."""
        for root in roots:
            if not self._is_listed(*system_of(root)):
                rpc = self.rpc()
                raise ConfigurationError(
                    f"{root} may be in another HDFS than the one that is read, and a run reads one, here "
                    f"{rpc[0] if rpc else ' or '.join(self.webhdfs())}: check the other one by a run of its own, with "
                    f"--conf-dir of its site files, or write {plain_path(root)} if both are one"
                )

    def _is_listed(self, scheme: str, authority: str) -> bool:
        default = "" if self.webhdfs_option else default_fs(self.site) or ""
        own_scheme, own = system_of(default)
        is_own = scheme == own_scheme and with_port(authority or own).lower() == with_port(own).lower()
        if is_own or scheme in ("", "file"):
            return True
        if scheme == VIEW_SCHEME or view_name(self.site, default) is not None:
            return False
        url = f"{scheme}://{authority}"
        # None (not known) is not enough: files of the same path in another HDFS would be compared, and nobody would
        # notice.
        return not authority or (self._has_host_of(url) if self.webhdfs_option else self._shares_namenodes(url) is True)

    def _has_host_of(self, url: str) -> bool:
        """Return True if `--webhdfs` names a host of a URL's NameNodes."""
        try:
            others = named_urls(self.site, url) or (url,)
            # Ports do not count: a gateway (HttpFS) has another one on the same host.
            return bool({urlsplit(one).hostname for one in others} & {urlsplit(one).hostname for one in self.webhdfs()})
        except (ConfigurationError, ValueError):
            return False

    @property
    def filesystem(self) -> str:
        """The file system of HBase's root, `scheme://authority` as Hadoop's clients write it; empty: unknown."""
        for url in (self.site.get("hbase.rootdir", ""), self.site.get("fs.defaultFS", "")):
            parts = urlsplit(url)
            if parts.scheme and parts.netloc:
                return f"{parts.scheme}://{parts.netloc}"
        return ""

    def spool_dir(self, cluster_id: str) -> str | None:
        """Return the spool of a cluster's trackers: where they write what they have yet to put into its state table."""
        shared = self.site.get(SPOOL_DIR_KEY)
        # The trackers' `Spool.ofCluster` adds the cluster id, too: clusters may share the folder.
        if shared:
            return posixpath.join(urlsplit(shared).path, cluster_id)
        return posixpath.join(self.hbase_root, ".status-tool-spool", cluster_id) if self.hbase_root else None

    @property
    def hdfs_paths(self) -> tuple[str, ...]:
        """The configured paths to check (`status.tool.hdfs.paths`, comma-separated).

        Raises `ConfigurationError` for a relative one, as the rest of a name with a comma is.
        """
        paths = tuple(p.strip() for p in self.site.get(HDFS_PATHS_KEY, "").split(",") if p.strip())
        for path in paths:
            if not strip_uri(path).startswith("/"):
                raise ConfigurationError(
                    f"{HDFS_PATHS_KEY}: {path!r} is not an absolute HDFS path; a path with a comma goes into -f FILE"
                )
        return paths


def _qops(asked: str, key: str) -> tuple[str, ...]:
    """Return the qualities of protection by SASL's, HBase's or Hadoop's names (SaslUtil.QualityOfProtection)."""
    named = [one.strip().lower() for one in asked.split(",") if one.strip()]
    found = tuple(dict.fromkeys(_QOP_NAMES.get(one, one) for one in named))
    if unknown := set(found) - set(_QOP_NAMES.values()):
        raise ConfigurationError(
            f"{key} is {sorted(unknown)[0]!r} in the site files, expected auth, auth-int or auth-conf"
        )
    return found


def host_port(text: str, option: str) -> tuple[str, int]:
    """Parse the value of an option. Raises `ConfigurationError`."""
    host, _, port = text.strip().rpartition(":")
    if not host or not (number := port_number(port)) or not _is_name(host):
        raise ConfigurationError(f"{option} {text!r}: expected HOST:PORT")
    return host, number


def port_number(text: str) -> int | None:
    """Parse a port, or 0 for any free one; None if it is neither."""
    return int(text) if _PORT.fullmatch(text) and int(text) < 65536 else None


def _is_name(host: str) -> bool:
    """Return True if Python can look the host up: it raises no OSError for a NUL, or for an empty or too long label."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return "\0" not in host


def with_ports(hosts: Iterable[str], port: int | str, option: str) -> str:
    """Return the hosts of a quorum, separated by commas, each with its own port or with this one.

    Raises `ConfigurationError`, naming the option, for what is no host and port.
    """
    parts = [host if ":" in host else f"{host}:{port}" for host in hosts]
    for part in parts:
        host_port(part, option)
    return ",".join(parts)


def parse_zookeeper(text: str, option: str = "--zookeeper") -> ZooKeeperEndpoint:
    """Parse the value of an option; the znode's default is HBase's. Raises `ConfigurationError`."""
    hosts, slash, znode = text.strip().partition("/")
    quorum = with_ports(filter(None, hosts.split(",")), 2181, option)
    if not quorum:
        raise ConfigurationError(f"{option} {text!r}: expected HOST:PORT[,HOST:PORT…]/ZNODE")
    return ZooKeeperEndpoint(quorum, slash + znode.rstrip("/") if znode else "/hbase")


def _check_url(url: str) -> str:
    parts = urlsplit(url.strip())
    if "@" in url:  # It would show in the process list, and in every line that names the NameNode.
        raise ConfigurationError("--webhdfs: no user and password in a URL; leave what is before the @ out")
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigurationError(f"--webhdfs {url!r}: expected http://HOST:PORT or https://HOST:PORT")
    if parts.path.strip("/") or parts.query:
        raise ConfigurationError(
            f"--webhdfs {url!r}: only http://HOST:PORT of a NameNode or HttpFS, without a path (a gateway such as Knox"
            " is not supported)"
        )
    return f"{parts.scheme}://{parts.netloc}"
