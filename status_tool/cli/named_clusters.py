"""The clusters of a replication graph: by `--cluster NAME=DIR|FILE`, else by `[clusters.NAME]` of status-tool.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from status_tool.cli.options import cluster_named
from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import load_site
from status_tool.clients.tls import Trust
from status_tool.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from status_tool.runs.graph_check import NamedCluster

ClusterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="NAME=DIR|FILE",
        help="A cluster by its site files' folder, or a status file of it, of each side at most one (repeatable; "
        "default: [clusters.NAME] of status-tool.toml).",
    ),
]
# The commands that `switchover` prints have these names without quotes.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
CLUSTER_KEYS = ("conf-dir", "thrift", "webhdfs", "zookeeper")
"""Keys that a table `[clusters.NAME]` may set."""


def named_clusters(
    given: Sequence[str] | None, configured: Mapping[str, Mapping[str, Any]], trust: Trust
) -> tuple[NamedCluster, ...]:
    """Return the clusters in the order in which they are named. Raises `UsageError`, `ConfigurationError`."""
    # Imports what takes long.
    from status_tool.runs.graph_check import NamedCluster

    if not given:
        clusters = {name: _configured(name, table, trust) for name, table in configured.items()}
        found = tuple(NamedCluster(_checked(name), settings) for name, settings in clusters.items())
    else:
        folders, files = dict[str, list[Path]](), dict[str, list[Path]]()
        for one in given:
            name, equals, where = one.partition("=")
            if not equals or not where:
                raise UsageError(f"--cluster {one}: expected NAME=DIR (site files) or NAME=FILE (a status file)")
            if not Path(where).exists():
                raise UsageError(f"--cluster {one}: there is no folder and no file {where}")
            kind = folders if Path(where).is_dir() else files
            kind.setdefault(_checked(name), []).append(Path(where))
        if both := sorted(folders.keys() & files.keys()):
            raise UsageError(f"--cluster {both[0]}: is it read live (DIR) or from status files (FILE)? Give either")
        found = tuple(
            NamedCluster(name, cluster_named(folders[name], trust))
            if name in folders
            else NamedCluster(name, None, tuple(files[name]))
            for name in dict.fromkeys(one.partition("=")[0] for one in given)
        )
    if len(found) < 2:
        raise UsageError(
            "at least two clusters are needed: --cluster NAME=DIR for each, or tables [clusters.NAME] in "
            "status-tool.toml"
        )
    for cluster in found:
        _refuse_unknown(cluster)
    return found


def _refuse_unknown(cluster: NamedCluster) -> None:
    """Raise `ConfigurationError` for a live cluster whose ZooKeeper no site file names: nothing can be read of it."""
    if cluster.settings is None:
        return
    try:
        cluster.settings.zookeeper()
    except ConfigurationError as error:
        where = ", ".join(map(str, cluster.settings.site.folders)) or f"[clusters.{cluster.name}]"
        raise ConfigurationError(
            f"--cluster {cluster.name}: {where} names no ZooKeeper: it needs an hbase-site.xml with "
            "hbase.zookeeper.quorum, or `zookeeper` in status-tool.toml"
        ) from error


def chosen_names(option: str, names: Sequence[str] | None, clusters: Sequence[NamedCluster]) -> frozenset[str]:
    """Return the names that `--from` or `--to` gives. Raises `UsageError` for one that is no cluster's."""
    known = [cluster.name for cluster in clusters]
    for name in names or ():
        if name not in known:
            raise UsageError(f"{option} {name}: the clusters are {', '.join(known)}")
    return frozenset(names or ())


def _configured(name: str, table: Mapping[str, Any], trust: Trust) -> Settings:
    folders, webhdfs = table.get("conf-dir", []), table.get("webhdfs", [])
    # $HBASE_CONF_DIR names one cluster's site files, which would complete those of all others.
    site = load_site([Path(one) for one in _list(name, "conf-dir", folders)], environ={})
    urls = tuple(_list(name, "webhdfs", webhdfs))
    thrift, zookeeper = (_text(name, key, table.get(key)) for key in ("thrift", "zookeeper"))
    return Settings(site, thrift, urls, zookeeper, trust)


def _list(name: str, key: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise ConfigurationError(f"[clusters.{name}] {key} is {value!r}, expected text or a list of it")
    return values


def _text(name: str, key: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ConfigurationError(f"[clusters.{name}] {key} is {value!r}, expected text")
    return value


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"cluster {name!r}: a name has letters, digits, '.', '_' and '-', at most 32")
    return name
