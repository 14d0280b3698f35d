"""`status-tool lost`: what the old master holds that the slave never got, after an unplanned failover."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from status_tool.atomic import check_target
from status_tool.cli.options import LogFile, Quiet, Verbose, on_cluster, show_as
from status_tool.cli.run import DEFAULT_MASTER_WAIT_S, spark_settings_of
from status_tool.cli.signals import loading
from status_tool.cli.times import parse_baseline
from status_tool.clients.config import Settings, load_site
from status_tool.errors import UsageError
from status_tool.spark import jvm
from status_tool.spark.home import take_spark
from status_tool.vocabulary.names import plain_name
from status_tool.vocabulary.scope import Scope, TableFilter


@on_cluster("thrift", "webhdfs", "zookeeper")
def lost(
    settings: Settings,
    slave_conf: Annotated[
        list[Path] | None, typer.Option("--slave-conf", metavar="DIR", help="The slave's site files (repeatable).")
    ] = None,
    slave_thrift: Annotated[
        str | None, typer.Option("--slave-thrift", metavar="HOST:PORT", help="The slave's Thrift server.")
    ] = None,
    slave_zookeeper: Annotated[
        str | None, typer.Option("--slave-zookeeper", metavar="HOST:PORT[,…]/ZNODE", help="The slave's ZooKeeper.")
    ] = None,
    peer: Annotated[
        str | None, typer.Option("--peer", metavar="ID", help="The replication peer that leads to the slave.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="NS:TABLE", help="Only this table (repeatable).")
    ] = None,
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", metavar="NS", help="Only this namespace (repeatable).")
    ] = None,
    since: Annotated[
        list[str] | None,
        typer.Option("--since", metavar="[TABLE=]TIME", help="Leave out what was written up to this time."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="[=all]",
            help="Where streams leave a table in doubt, compare its rows; =all: every table.",
        ),
    ] = None,
    missing: Annotated[
        Path | None, typer.Option("--missing", metavar="FILE", help="List every stream that has not arrived in whole.")
    ] = None,
    unverifiable: Annotated[
        Path | None, typer.Option("--unverifiable", metavar="FILE", help="List everything that could not be verified.")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0, help="For the flush of every region server here.")
    ] = DEFAULT_MASTER_WAIT_S,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
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
    """On the old master, after an unplanned failover: what it holds that the slave never got. Nothing is shipped.

    Exit code 0 nothing, 1 something, 2 error, 3 nothing is known to be lost and something could not be verified.
    """
    if not (slave_conf or (slave_thrift and slave_zookeeper)):
        raise UsageError("lost needs the slave: --slave-conf DIR, or --slave-thrift and --slave-zookeeper")
    if rows not in (None, "all", "doubtful"):
        raise UsageError(f"--rows={rows}: expected --rows or --rows=all")
    for name, target in (("missing", missing), ("unverifiable", unverifiable)):
        if target is not None:
            if str(target) == "-":
                raise UsageError(f"--{name} - does not go with lost: its answer goes to stdout; name a file")
            check_target(target)
    tables = TableFilter.of(table or (), namespace or ())
    # Only what the options name: the environment's site files are this cluster's.
    slave = Settings(load_site(slave_conf or [], environ={}), slave_thrift, (), slave_zookeeper, settings.trust)
    scope = Scope(
        frozenset(map(plain_name, table or ())),
        frozenset(namespace or ()),
        parse_baseline(since or (), tables),
        peer,
        check_hdfs=False,
    )
    chosen = spark_settings_of(spark_conf)
    take_spark()
    with loading(jvm.kill):
        from status_tool.cli.losing import Clusters, lost_check, lost_request, tell_lost

    show_as(quiet=quiet, verbose=verbose, log_file=log_file)
    asked_rows = None if rows is None else rows == "all"
    check = lost_check(settings, scope, asked_rows, {"missing": missing, "unverifiable": unverifiable})
    request = lost_request(tables, wait)
    return tell_lost(Clusters(settings, slave), request, check, (spark_master, chosen), as_json=as_json)
