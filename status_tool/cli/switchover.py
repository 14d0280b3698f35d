"""`status-tool switchover`: the ordered steps of a planned change of roles. It prints them and executes none."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from status_tool.cli.named_clusters import ClusterOption, chosen_names, named_clusters
from status_tool.cli.options import print_answer, trust_of
from status_tool.cli.run_options import IDENTITY, with_options
from status_tool.cli.targets import refuse_overwriting
from status_tool.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from status_tool.clients.config import Settings
    from status_tool.explain.role_change import Move, Naming


@with_options("as_json", *IDENTITY)
def switchover(
    context: typer.Context,
    source: Annotated[str, typer.Option("--from", metavar="NAME", help="The cluster that is the master now.")],
    target: Annotated[str, typer.Option("--to", metavar="NAME", help="The cluster that is to be the master.")],
    cluster: ClusterOption = None,
    *,
    as_json: bool,
    **identity: Any,
) -> int:
    """Print the steps of a planned change of roles, as commands for HBase's shell and this tool; execute none.

    Only the clusters' ZooKeepers are read. Exit code 0 the steps were printed, 2 error.
    """
    from status_tool.explain.role_change import switch_steps
    from status_tool.runs.graph_check import station_by_zookeeper

    refuse_overwriting({**identity, "cluster": cluster})
    clusters = named_clusters(cluster, context.obj, trust_of(identity))
    chosen_names("--from", [source], clusters)
    chosen_names("--to", [target], clusters)
    if source == target:
        raise UsageError(f"--from and --to are both {source}: a change of roles has two clusters")
    stations = []
    where: dict[str, Naming] = {}
    for one in clusters:
        if one.settings is None:
            raise UsageError(f"--cluster {one.name}: switchover reads live clusters: name its site files (DIR)")
        station = station_by_zookeeper(one.name, one.settings)
        if station.elsewhere:
            raise ConfigurationError(
                f"the peers of {one.name} are not known: {station.elsewhere}; `list_peers` in the HBase shell shows "
                "them, and docs/failover.md has the steps of two clusters"
            )
        if station.peers is None:
            raise ConfigurationError(
                f"{one.name} cannot be reached ({station.cluster_key or 'no ZooKeeper is known'}), so its peers are "
                "not known: for a cluster that is lost, `status-tool paths` says whom to promote"
            )
        stations.append(station)
        where[one.name] = _naming(one.settings)
    # Without --cluster, `[clusters.NAME]` names them to `paths` as well.
    paths = shlex.join(["status-tool", "paths", *(f"--cluster={one}" for one in cluster or ())])
    steps = switch_steps(stations, source, target, where, paths)
    document = {"from": source, "to": target, "steps": [asdict(step) for step in steps]}
    print_answer(document, _lines(source, target, steps), as_json=as_json)
    return 0


def _naming(settings: Settings) -> Naming:
    from status_tool.explain.role_change import Naming

    table = [f"--conf-dir={folder}" for folder in settings.site.folders]
    table += [f"--thrift={settings.thrift_option}"] if settings.thrift_option else []
    cluster = [f"--zookeeper={settings.zookeeper_option}"] if settings.zookeeper_option else []
    cluster += [f"--webhdfs={url}" for url in settings.webhdfs_option]
    return Naming(shlex.join(table), shlex.join(table + cluster))


def _lines(source: str, target: str, steps: Sequence[Move]) -> Iterator[str]:
    yield f"From {source} to {target}: {len(steps)} steps. Do each on its cluster; go on only if its check holds."
    for number, step in enumerate(steps, 1):
        yield ""
        yield f"{number}. {step.cluster}, {step.how}:"
        yield f"   {step.command}"
        yield f"   check: {step.check}"
