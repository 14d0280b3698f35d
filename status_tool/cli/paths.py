"""`status-tool paths`: every edge and path of a replication graph, in one command."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import typer

from status_tool.atomic import check_targets
from status_tool.cli.defaults import is_default
from status_tool.cli.named_clusters import ClusterOption, chosen_names, named_clusters
from status_tool.cli.options import show_as, sign_key_of, spark_settings_of, streams_of, trust_of
from status_tool.cli.run_options import IDENTITY, SIGNED, with_options
from status_tool.cli.signals import loading
from status_tool.cli.targets import refuse_overwriting
from status_tool.errors import UsageError
from status_tool.spark.settings import take_spark


@with_options(
    *("table", "namespace", "accept_drift", "as_json", *IDENTITY, "spark_master", "spark_conf"),
    *("quiet", "verbose", "log_file"),
    since="Accept as baseline what was written up to this time.",
    wait="How long to read again until nothing is on its way.",
    report="Also write a page, with the graph drawn.",
    **SIGNED,
)
def paths(
    context: typer.Context,
    cluster: ClusterOption = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="NAME", help="Only entries that were first written to this cluster (repeatable)."
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="NAME", help="Only entries that are to reach this cluster (repeatable)."),
    ] = None,
    **options: Any,
) -> int:
    """Check every edge and path of a replication graph (HBase only): a matrix of which cluster has whose entries.

    Exit code 0 complete, 1 something is behind or lost, 2 error, 3 something could not be verified.
    """
    # `streams_of` asks for a peer, and each edge has its own.
    one = SimpleNamespace(**options, peer=None)
    refuse_overwriting({**options, "cluster": cluster})
    check_targets(one.report)
    trust = trust_of(options)
    key = sign_key_of(one.sign_key, required=one.require_signature)
    scope = streams_of(one)
    chosen = spark_settings_of(one.spark_conf)
    take_spark()
    with loading():
        from status_tool.cli.path_telling import tell_paths
        from status_tool.runs.graph_check import PathsAsked

    show_as(quiet=one.quiet, verbose=one.verbose, log_file=one.log_file)
    clusters = named_clusters(cluster, context.obj, trust)
    if one.wait and not is_default(context, "wait") and all(cluster.settings is None for cluster in clusters):
        raise UsageError("--wait reads slaves again, and every cluster here is of files: leave it out")
    sources, targets = chosen_names("--from", source, clusters), chosen_names("--to", target, clusters)
    if len(sources | targets) == 1 and sources and targets:
        raise UsageError(f"--from and --to are both {min(sources)}: a path has two clusters")
    asked = PathsAsked(clusters, scope, sources, targets, one.wait or 0.0, key, one.spark_master, chosen)
    return tell_paths(asked, one.report, as_json=one.as_json, quiet=one.quiet)
