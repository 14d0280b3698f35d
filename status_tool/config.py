"""Where the endpoints come from. This is the only module that knows the order of precedence.

Options on the command line win; else `hbase-site.xml`, `hdfs-site.xml` and `core-site.xml` in the
`--conf-dir`s, then in `$HBASE_CONF_DIR`, then in `$HADOOP_CONF_DIR`. The first folder that defines a
property wins.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from status_tool.errors import ConfigurationError
from status_tool.nameservices import namenode_urls

SITE_FILES = ("hbase-site.xml", "hdfs-site.xml", "core-site.xml")
STATE_NAMESPACE_KEY = "hbase.replicationtable.namespace"
STATE_NAME_KEY = "hbase.replicationtable.name"
UPDATE_PERIOD_KEY = "hbase.replicationtable.updateperiod"
SPOOL_DIR_KEY = "hbase.replicationtable.spool.dir"
HDFS_PATHS_KEY = "status.tool.hdfs.paths"

_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_MAX_SUBSTITUTIONS = 20  # as Hadoop's Configuration.MAX_SUBST


@dataclass(frozen=True, slots=True)
class ThriftEndpoint:
    """An HBase Thrift (version 1) server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ZooKeeperEndpoint:
    """A ZooKeeper ensemble (`host:port[,host:port…]`) and HBase's parent znode in it."""

    hosts: str
    znode: str

    def __str__(self) -> str:
        return f"{self.hosts}{self.znode}"

    @property
    def cluster_key(self) -> str:
        """HBase's form: `quorum:port:/znode`, hosts without ports when all share one."""
        pairs = [host.rsplit(":", 1) for host in self.hosts.split(",")]
        return f"{','.join(pair[0] for pair in pairs)}:{pairs[0][1]}:{self.znode}"


class SiteConfig(Mapping[str, str]):
    """Properties of the site files, `${…}` resolved against each other and the environment's `env.X`."""

    def __init__(self, values: Mapping[str, str], folders: Sequence[Path] = ()) -> None:
        self._values = dict(values)
        self.folders = tuple(folders)

    def __getitem__(self, key: str) -> str:
        return self._expand(self._values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _expand(self, value: str) -> str:
        for _ in range(_MAX_SUBSTITUTIONS):
            match = _VARIABLE.search(value)
            if match is None or (replacement := self._variable(match.group(1))) is None:
                return value
            value = value[: match.start()] + replacement + value[match.end() :]
        return value

    def _variable(self, name: str) -> str | None:
        return os.environ.get(name[4:]) if name.startswith("env.") else self._values.get(name)

    def integer(self, key: str, default: int) -> int:
        """The property as a whole number; `ConfigurationError` if it is something else."""
        text = self.get(key)
        if text is None:
            return default
        try:
            return int(text.strip())
        except ValueError:
            raise ConfigurationError(f"{key} is {text!r} in the site files, expected a whole number") from None


def load_site(conf_dirs: Sequence[Path], environ: Mapping[str, str] | None = None) -> SiteConfig:
    """Read the site files in their order of precedence.

    Raises `ConfigurationError` for a `--conf-dir` that is no folder or a file that is no XML.
    """
    environ = os.environ if environ is None else environ
    for folder in conf_dirs:
        if not folder.is_dir():
            raise ConfigurationError(f"--conf-dir {folder}: no such folder")
    from_environment = [Path(environ[name]) for name in ("HBASE_CONF_DIR", "HADOOP_CONF_DIR") if environ.get(name)]
    folders = [*conf_dirs, *(folder for folder in from_environment if folder.is_dir())]
    values: dict[str, str] = {}
    for folder in folders:
        for name in SITE_FILES:
            if (folder / name).is_file():
                for key, value in _read_site(folder / name).items():
                    values.setdefault(key, value)
    return SiteConfig(values, folders)


def _read_site(path: Path) -> dict[str, str]:
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ConfigurationError(f"{path} is not valid XML ({error})") from None
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    pairs = ((p.findtext("name"), p.findtext("value")) for p in root.iter("property"))
    return {name.strip(): (value or "").strip() for name, value in pairs if name}


@dataclass(frozen=True, slots=True)
class Settings:
    """One cluster as the tool sees it: site files plus what the command line overrides."""

    site: SiteConfig
    thrift_option: str | None = None
    webhdfs_option: tuple[str, ...] = ()
    zookeeper_option: str | None = None

    def thrift(self) -> ThriftEndpoint:
        """The Thrift server: `--thrift`, else the site's `hbase.regionserver.thrift.*`."""
        if self.thrift_option:
            return ThriftEndpoint(*_host_port(self.thrift_option, "--thrift"))
        host = self.site.get("hbase.regionserver.thrift.ipaddress")
        if host is None and "hbase.regionserver.thrift.port" not in self.site:
            raise ConfigurationError(
                "no HBase Thrift server known: give --thrift HOST:PORT, or --conf-dir with an hbase-site.xml "
                "that sets hbase.regionserver.thrift.ipaddress and hbase.regionserver.thrift.port"
            )
        reachable = "127.0.0.1" if host is None or host == "0.0.0.0" else host
        return ThriftEndpoint(reachable, self.site.integer("hbase.regionserver.thrift.port", 9090))

    @property
    def knows_thrift(self) -> bool:
        """Whether `thrift()` has anything to go by."""
        keys = ("hbase.regionserver.thrift.ipaddress", "hbase.regionserver.thrift.port")
        return bool(self.thrift_option) or any(key in self.site for key in keys)

    def zookeeper(self) -> ZooKeeperEndpoint:
        """The ensemble and znode: `--zookeeper HOST:PORT[,…]/ZNODE`, else the site files."""
        if self.zookeeper_option:
            return _parse_zookeeper(self.zookeeper_option)
        quorum = self.site.get("hbase.zookeeper.quorum")
        if not quorum:
            raise ConfigurationError(
                "no ZooKeeper known: give --zookeeper HOST:PORT[,…]/ZNODE, or --conf-dir with an hbase-site.xml "
                "that sets hbase.zookeeper.quorum"
            )
        port = self.site.integer("hbase.zookeeper.property.clientPort", 2181)
        hosts = [host.strip() for host in quorum.split(",") if host.strip()]
        joined = ",".join(host if ":" in host else f"{host}:{port}" for host in hosts)
        return ZooKeeperEndpoint(joined, self.site.get("zookeeper.znode.parent", "/hbase"))

    @property
    def knows_zookeeper(self) -> bool:
        """Whether `zookeeper()` has anything to go by."""
        return bool(self.zookeeper_option or self.site.get("hbase.zookeeper.quorum"))

    def webhdfs(self, of: str | None = None) -> tuple[str, ...]:
        """Base URLs of the NameNodes: `--webhdfs`, else those that the site files name for one file system.

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

    def wal_webhdfs(self) -> tuple[str, ...]:
        """Base URLs of the NameNodes that hold the WALs (`hbase.wal.dir`, else `hbase.rootdir`)."""
        return self.webhdfs(self.site.get("hbase.wal.dir") or self.site.get("hbase.rootdir"))

    def spool_webhdfs(self) -> tuple[str, ...]:
        """Base URLs of the NameNodes that hold the trackers' spool."""
        return self.webhdfs(self.site.get(SPOOL_DIR_KEY) or self.site.get("hbase.rootdir"))

    @property
    def state_table(self) -> str:
        """`name`, or `namespace:name` outside the default namespace."""
        namespace = self.site.get(STATE_NAMESPACE_KEY, "default")
        name = self.site.get(STATE_NAME_KEY, "replicationstate")
        return name if namespace == "default" else f"{namespace}:{name}"

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
    def filesystem(self) -> str:
        """The file system of HBase's root, `scheme://authority` as Hadoop's clients write it; empty: not known."""
        for url in (self.site.get("hbase.rootdir", ""), self.site.get("fs.defaultFS", "")):
            parts = urlsplit(url)
            if parts.scheme and parts.netloc:
                return f"{parts.scheme}://{parts.netloc}"
        return ""

    @property
    def spool_dir(self) -> str | None:
        """Where trackers leave what they could not write while stopping."""
        spool = self.site.get(SPOOL_DIR_KEY)
        if spool:
            return urlsplit(spool).path
        return f"{self.hbase_root}/.status-tool-spool" if self.hbase_root else None

    @property
    def hdfs_paths(self) -> tuple[str, ...]:
        """The configured paths to check (`status.tool.hdfs.paths`, comma-separated)."""
        return tuple(p.strip() for p in self.site.get(HDFS_PATHS_KEY, "").split(",") if p.strip())


def _host_port(text: str, option: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigurationError(f"{option} {text!r}: expected HOST:PORT")
    return host, int(port)


def _parse_zookeeper(text: str) -> ZooKeeperEndpoint:
    hosts, slash, znode = text.strip().partition("/")
    parts = [host if ":" in host else f"{host}:2181" for host in hosts.split(",") if host]
    if not parts:
        raise ConfigurationError(f"--zookeeper {text!r}: expected HOST:PORT[,HOST:PORT…]/ZNODE")
    for part in parts:
        _host_port(part, "--zookeeper")
    return ZooKeeperEndpoint(",".join(parts), slash + znode.rstrip("/") if znode else "/hbase")


def _check_url(url: str) -> str:
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigurationError(f"--webhdfs {url!r}: expected http://HOST:PORT or https://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}"
