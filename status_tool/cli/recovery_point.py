"""`status-tool recovery-point`: up to when everything of the master is proven to be on this slave."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import typer

from status_tool.atomic import check_targets
from status_tool.cli.options import on_cluster, show_as, sign_key_of
from status_tool.cli.run import spark_settings_of, streams_of
from status_tool.cli.run_options import MOST, SIGNED, with_options
from status_tool.cli.signals import loading
from status_tool.clients.config import Settings
from status_tool.errors import UsageError
from status_tool.spark import jvm
from status_tool.spark.settings import take_spark


@on_cluster("thrift", "zookeeper")
@with_options(
    *("peer", "table", "namespace", "since", "accept_drift", "spark_master", "spark_conf"),
    *("as_json", "metrics", "report"),
    *("quiet", "verbose", "log_file"),
    **SIGNED,
)
def recovery_point(
    settings: Settings,
    max_age: Annotated[
        float | None,
        typer.Option(
            "--max-age",
            metavar="SECONDS",
            min=0,
            max=MOST,
            help="How old the point may be (default: three intervals of publish; with --sign-key there is none).",
        ),
    ] = None,
    master_cluster: Annotated[
        str | None,
        typer.Option("--master-cluster", metavar="ID", help="The master's HBase cluster id, where several publish."),
    ] = None,
    **options: Any,
) -> int:
    """Print up to when everything is proven to be on this slave, from what `publish` has sent. Reads the slave only.

    Exit code 0 the point is fresh, 1 older than --max-age, 2 error, 3 there is none, or it lies ahead of
    this host's clock.
    """
    one = SimpleNamespace(**options)
    scope = streams_of(one)
    check_targets(one.metrics, one.report)
    key = sign_key_of(one.sign_key, required=one.require_signature)
    if key is not None and max_age is None:
        raise UsageError("--sign-key needs --max-age SECONDS: its default comes from what publish does not sign")
    chosen = spark_settings_of(one.spark_conf)
    take_spark()
    with loading(jvm.kill):
        from status_tool.cli.pointing import tell
        from status_tool.runs.recovery import PointAsked

    show_as(quiet=one.quiet, verbose=one.verbose, log_file=one.log_file)
    asked = PointAsked(scope, master_cluster, key, one.spark_master, chosen)
    return tell(settings, asked, max_age, metrics=one.metrics, report=one.report, as_json=one.as_json)
