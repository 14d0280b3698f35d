"""`status-tool rows`: whether tables hold the same rows on both clusters, without streams."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import typer

from status_tool.cli.options import cluster_named, on_cluster, show_as
from status_tool.cli.run import DEFAULT_MAX_PROBLEMS
from status_tool.cli.run_options import MOST, with_options
from status_tool.clients.config import Settings
from status_tool.errors import UsageError
from status_tool.vocabulary.names import plain_name

DEFAULT_WAIT_S = 30.0


@on_cluster("thrift", "zookeeper")
@with_options(
    *("as_json", "quiet", "verbose", "log_file"),
    table="The table to compare (repeatable).",
    master_conf="The master's site files (repeatable).",
    master_thrift="The master's Thrift server.",
    master_zookeeper="The master's ZooKeeper.",
    wait="How long to recheck ranges that differ while they change (default 30).",
    max_problems="How many cells to list (default 100).",
)
def rows(
    settings: Settings,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="MB", min=0.001, max=MOST, help="At most N MB per second and region server."),
    ] = None,
    show_values: Annotated[bool, typer.Option("--show-values", help="Print the values of cells that differ.")] = False,
    **options: Any,
) -> int:
    """Compare tables of the master with this cluster's by digests that the region servers compute.

    Exit code 0 equal, 1 differs, 2 error, 3 could not be verified. Both clusters need trackers.
    """
    one = SimpleNamespace(**options)
    tables = list(dict.fromkeys(map(plain_name, one.table or ())))
    if not tables:
        raise UsageError("rows needs --table NS:TABLE")
    if not (one.master_conf or (one.master_thrift and one.master_zookeeper)):
        raise UsageError("rows needs the master: --master-conf DIR, or --master-thrift and --master-zookeeper")
    master = cluster_named(one.master_conf or (), settings.trust, one.master_thrift, one.master_zookeeper)
    from status_tool.cli.comparing import compare_tables, limits_of

    show_as(quiet=one.quiet, verbose=one.verbose, log_file=one.log_file)
    wait_s = DEFAULT_WAIT_S if one.wait is None else one.wait
    limits = limits_of(wait_s, rate, DEFAULT_MAX_PROBLEMS if one.max_problems is None else one.max_problems)
    return compare_tables(master, settings, tables, limits, as_json=one.as_json, show_values=show_values)
