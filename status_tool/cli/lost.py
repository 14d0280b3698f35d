"""`status-tool lost`: what the old master holds that the slave never got, after an unplanned failover."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from status_tool.atomic import check_target
from status_tool.cli.options import cluster_named, on_cluster, show_as
from status_tool.cli.run import DEFAULT_MASTER_WAIT_S, spark_settings_of, streams_of
from status_tool.cli.run_options import with_options
from status_tool.cli.signals import loading
from status_tool.clients.config import Settings
from status_tool.errors import UsageError
from status_tool.spark import jvm
from status_tool.spark.settings import take_spark


@on_cluster("thrift", "webhdfs", "zookeeper")
@with_options(
    *("peer", "table", "namespace", "since", "accept_drift", "missing", "unverifiable"),
    *("spark_master", "spark_conf", "as_json"),
    *("quiet", "verbose", "log_file"),
    wait="How long to wait for every region server here to flush (default 60).",
    rows="Compare the rows of tables that streams leave in doubt; with --rows=all of every table.",
)
def lost(
    settings: Settings,
    since_recovery_point: Annotated[
        bool,
        typer.Option(
            "--since-recovery-point",
            # It changes nothing: the runbook's command says by it what is listed.
            expose_value=False,
            show_default=False,
            help="List entries later than the slave's recovery point: the default, as it has all earlier ones.",
        ),
    ] = True,
    slave_conf: Annotated[
        list[Path] | None, typer.Option("--slave-conf", metavar="DIR", help="The slave's site files (repeatable).")
    ] = None,
    slave_thrift: Annotated[
        str | None, typer.Option("--slave-thrift", metavar="HOST:PORT", help="The slave's Thrift server.")
    ] = None,
    slave_zookeeper: Annotated[
        str | None, typer.Option("--slave-zookeeper", metavar="HOST:PORT[,…]/ZNODE", help="The slave's ZooKeeper.")
    ] = None,
    **options: Any,
) -> int:
    """List, after an unplanned failover, what the old master holds that the slave never got. Ships nothing.

    Exit code 0 nothing is lost, 1 something is, 2 error, 3 no loss was found, but something could not be verified.
    """
    one = SimpleNamespace(**options)
    if not (slave_conf or (slave_thrift and slave_zookeeper)):
        raise UsageError("lost needs the slave: --slave-conf DIR, or --slave-thrift and --slave-zookeeper")
    if one.rows not in (None, "all", "doubtful"):
        raise UsageError(f"--rows={one.rows}: expected --rows or --rows=all")
    lists = {"missing": one.missing, "unverifiable": one.unverifiable}
    for name, target in lists.items():
        if target is not None:
            if str(target) == "-":
                raise UsageError(f"--{name} - does not go with lost: its answer goes to stdout; name a file")
            check_target(target)
    slave = cluster_named(slave_conf or (), settings.trust, slave_thrift, slave_zookeeper)
    scope = streams_of(one)
    chosen = spark_settings_of(one.spark_conf)
    take_spark()
    with loading(jvm.kill):
        from status_tool.cli.losing import lost_check, tell_lost

    show_as(quiet=one.quiet, verbose=one.verbose, log_file=one.log_file)
    rows = None if one.rows is None else one.rows == "all"
    check = lost_check(settings, scope, rows, lists, one.spark_master, chosen)
    wait_s = DEFAULT_MASTER_WAIT_S if one.wait is None else one.wait
    return tell_lost(settings, slave, wait_s, check, as_json=one.as_json)
