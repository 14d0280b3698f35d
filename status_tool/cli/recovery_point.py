"""`status-tool recovery-point`: up to when everything of the master is proven to be on this slave."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from status_tool.atomic import check_target
from status_tool.cli.options import LogFile, Quiet, Verbose, on_cluster, show_as
from status_tool.cli.run import spark_settings_of
from status_tool.cli.signals import loading
from status_tool.cli.targets import refuse_overwriting
from status_tool.cli.times import parse_baseline
from status_tool.clients.config import Settings
from status_tool.spark import jvm
from status_tool.spark.home import take_spark
from status_tool.status_file.signature import read_key
from status_tool.vocabulary.names import plain_name
from status_tool.vocabulary.scope import Scope, TableFilter


@on_cluster("thrift", "zookeeper")
def recovery_point(
    settings: Settings,
    max_age: Annotated[
        float | None,
        typer.Option(
            "--max-age",
            metavar="SECONDS",
            min=0,
            help="How old the point may be (default: three intervals of publish).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
    master_cluster: Annotated[
        str | None,
        typer.Option("--master-cluster", metavar="ID", help="The master's HBase cluster id, where several publish."),
    ] = None,
    peer: Annotated[
        str | None, typer.Option("--peer", metavar="ID", help="The master's replication peer that leads here.")
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
    sign_key: Annotated[
        Path | None, typer.Option("--sign-key", metavar="FILE", help="Only files signed with the key in FILE count.")
    ] = None,
    textfile: Annotated[
        Path | None, typer.Option("--metrics", metavar="FILE.prom", help="Also write a Prometheus textfile.")
    ] = None,
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
    """On the slave, alone: up to when everything is proven to be here, by what `publish` has sent.

    Exit code 0 the point is fresh, 1 older than --max-age, 2 error, 3 there is none.
    """
    tables = frozenset(map(plain_name, table or ()))
    baseline = parse_baseline(since or (), TableFilter.of(table or (), namespace or ()))
    scope = Scope(tables, frozenset(namespace or ()), baseline, peer, check_hdfs=False)
    refuse_overwriting({"metrics": textfile, "sign_key": sign_key, "log_file": log_file})
    if textfile is not None:
        check_target(textfile)
    key = None if sign_key is None else read_key(sign_key)
    chosen = spark_settings_of(spark_conf)
    take_spark()
    with loading(jvm.kill):
        from status_tool.cli.pointing import tell
        from status_tool.runs.recovery import PointAsked

    show_as(quiet=quiet, verbose=verbose, log_file=log_file)
    asked = PointAsked(scope, master_cluster, key, spark_master, chosen)
    return tell(settings, asked, max_age, textfile, as_json=as_json)
