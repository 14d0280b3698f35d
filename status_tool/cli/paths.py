"""`status-tool paths`: every edge and path of a replication graph, in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from status_tool.atomic import check_target
from status_tool.cli.named_clusters import ClusterOption, chosen_names, named_clusters
from status_tool.cli.options import CaCert, Cert, Keytab, LogFile, Principal, Quiet, Verbose, show_as
from status_tool.cli.run import DEFAULT_MASTER_WAIT_S, spark_settings_of
from status_tool.cli.signals import loading
from status_tool.cli.targets import refuse_overwriting
from status_tool.cli.times import parse_baseline
from status_tool.clients.kerberos import use
from status_tool.clients.tls import read_trust
from status_tool.errors import UsageError
from status_tool.spark import jvm
from status_tool.spark.home import take_spark
from status_tool.status_file.signature import read_key
from status_tool.vocabulary.names import plain_name
from status_tool.vocabulary.scope import Scope, TableFilter


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
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="NS:TABLE", help="Only this table (repeatable).")
    ] = None,
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", metavar="NS", help="Only this namespace (repeatable).")
    ] = None,
    since: Annotated[
        list[str] | None,
        typer.Option("--since", metavar="[TABLE=]TIME", help="Accept as baseline what was written up to this time."),
    ] = None,
    wait: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", min=0, help="How long to read again until nothing is on its way."),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Also write a page, with the graph drawn."),
    ] = None,
    sign_key: Annotated[
        Path | None, typer.Option("--sign-key", metavar="FILE", help="Only files signed with the key in FILE count.")
    ] = None,
    cacert: CaCert = None,
    cert: Cert = None,
    principal: Principal = None,
    keytab: Keytab = None,
    spark_master: Annotated[
        str | None, typer.Option("--spark-master", metavar="URL", help="Default local[*]; kept under spark-submit.")
    ] = None,
    spark_conf: Annotated[
        list[str] | None, typer.Option("--spark-conf", metavar="K=V", help="Spark setting (repeatable).")
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> int:
    """Check every edge and path of a replication graph (HBase only): a matrix of which cluster has whose entries.

    Exit code 0 complete, 1 something is behind or lost, 2 error, 3 something could not be verified.
    """
    refuse_overwriting({"cluster": cluster, "report": report, "sign_key": sign_key, "log_file": log_file})
    if report is not None:
        check_target(report)
    use(principal, keytab)
    trust = read_trust(cacert, cert)
    key = None if sign_key is None else read_key(sign_key)
    only = TableFilter.of(table or (), namespace or ())
    scope = Scope(
        frozenset(map(plain_name, table or ())),
        frozenset(namespace or ()),
        parse_baseline(since or (), only),
        check_hdfs=False,
    )
    chosen = spark_settings_of(spark_conf)
    take_spark()
    with loading(jvm.kill):
        from status_tool.cli.path_telling import tell_paths
        from status_tool.runs.graph_check import PathsAsked

    show_as(quiet=quiet, verbose=verbose, log_file=log_file)
    clusters = named_clusters(cluster, context.obj.clusters, trust)
    sources, targets = chosen_names("--from", source, clusters), chosen_names("--to", target, clusters)
    if len(sources | targets) == 1 and sources and targets:
        raise UsageError(f"--from and --to are both {min(sources)}: a path has two clusters")
    asked = PathsAsked(
        clusters,
        scope,
        sources,
        targets,
        DEFAULT_MASTER_WAIT_S,
        wait,
        key,
        spark_master,
        chosen,
    )
    return tell_paths(asked, report, as_json=as_json, quiet=quiet)
