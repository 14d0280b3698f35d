"""The clusters of a replication graph: by `--cluster NAME=DIR|FILE`, else by `[clusters.NAME]` of status-tool.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from status_tool.cli.defaults import CLUSTERS, Defaults
from status_tool.cli.options import cluster_named
from status_tool.clients.config import Settings, host_port
from status_tool.clients.sitefiles import load_site
from status_tool.clients.tls import Trust
from status_tool.errors import ConfigurationError, StatusToolError, UsageError

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


def named_clusters(given: Sequence[str] | None, defaults: Defaults, trust: Trust) -> tuple[NamedCluster, ...]:
    """Return the clusters in the order in which they are named. Raises `UsageError`, `ConfigurationError`."""
    found = _given(given, trust) if given else _configured(defaults, trust)
    if len(found) < 2:
        raise UsageError(
            "at least two clusters are needed: --cluster NAME=DIR for each, or tables [clusters.NAME] in "
            "status-tool.toml"
        )
    return found


def _given(given: Sequence[str], trust: Trust) -> tuple[NamedCluster, ...]:
    # Imports what takes long.
    from status_tool.runs.graph_check import NamedCluster

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
    return tuple(
        NamedCluster(name, _reachable(f"--cluster {name}", cluster_named(folders[name], trust)))
        if name in folders
        else NamedCluster(name, None, tuple(files[name]))
        for name in dict.fromkeys(one.partition("=")[0] for one in given)
    )


def _configured(defaults: Defaults, trust: Trust) -> tuple[NamedCluster, ...]:
    from status_tool.runs.graph_check import NamedCluster

    found = []
    for name, table in defaults.clusters.items():
        where = f"{defaults.file} [{CLUSTERS}.{name}]"
        try:
            found.append(NamedCluster(_checked(name), _reachable(where, _settings(table, trust))))
        except StatusToolError as error:
            raise ConfigurationError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from error
    return tuple(found)


def _reachable(where: str, settings: Settings) -> Settings:
    """Return the settings of a live cluster. Raises `ConfigurationError` if they name no ZooKeeper to read it by."""
    if not settings.knows_zookeeper:
        folders = ", ".join(map(str, settings.site.folders))
        raise ConfigurationError(
            f"{where}: {folders or 'it'} names no ZooKeeper: it needs an hbase-site.xml with hbase.zookeeper.quorum, "
            "or `zookeeper` in status-tool.toml"
        )
    settings.zookeeper()
    return settings


def chosen_names(option: str, names: Sequence[str] | None, clusters: Sequence[NamedCluster]) -> frozenset[str]:
    """Return the names that `--from` or `--to` gives. Raises `UsageError` for one that is no cluster's."""
    known = [cluster.name for cluster in clusters]
    for name in names or ():
        if name not in known:
            raise UsageError(f"{option} {name}: the clusters are {', '.join(known)}")
    return frozenset(names or ())


def _settings(table: Mapping[str, Any], trust: Trust) -> Settings:
    """Return the settings of a table `[clusters.NAME]`. Raises `ConfigurationError` for a wrong value."""
    folders, urls = (_texts(key, table.get(key, [])) for key in ("conf-dir", "webhdfs"))
    thrift, zookeeper = table.get("thrift"), table.get("zookeeper")
    for key, value in (("thrift", thrift), ("zookeeper", zookeeper)):
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f"{key} is {value!r}, expected text")
    # $HBASE_CONF_DIR names one cluster's site files, which would complete those of all others.
    site = load_site(list(map(Path, folders)), environ={})
    settings = Settings(site, thrift, tuple(urls), zookeeper, trust)
    if thrift is not None:
        host_port(thrift, "thrift")
    if urls:
        settings.webhdfs()
    return settings


def _texts(key: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise ConfigurationError(f"{key} is {value!r}, expected text or a list of it")
    return values


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"cluster {name!r}: a name has letters, digits, '.', '_' and '-', at most 32")
    return name
