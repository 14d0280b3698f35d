"""`status-tool rows`: whether tables hold the same rows on both clusters, without streams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from status_tool.cli.options import LogFile, Quiet, Verbose, on_cluster, show_as
from status_tool.clients.config import Settings, load_site
from status_tool.errors import UsageError
from status_tool.vocabulary.names import plain_name


@on_cluster("thrift", "zookeeper")
def rows(
    settings: Settings,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="NS:TABLE", help="The table to compare (repeatable).")
    ] = None,
    master_conf: Annotated[
        list[Path] | None, typer.Option("--master-conf", metavar="DIR", help="The master's site files (repeatable).")
    ] = None,
    master_thrift: Annotated[
        str | None, typer.Option("--master-thrift", metavar="HOST:PORT", help="The master's Thrift server.")
    ] = None,
    master_zookeeper: Annotated[
        str | None,
        typer.Option("--master-zookeeper", metavar="HOST:PORT[,…]/ZNODE", help="The master's ZooKeeper."),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="How long to recheck ranges that differ while they change."
        ),
    ] = 30.0,
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="MB", min=0.001, help="At most N MB per second and region server."),
    ] = None,
    show_values: Annotated[bool, typer.Option("--show-values", help="Print the values of cells that differ.")] = False,
    max_problems: Annotated[
        int, typer.Option("--max-problems", min=0, max=1_000_000, metavar="N", help="How many cells to list.")
    ] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else there.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> int:
    """Compare tables of the master with this cluster's by digests that the region servers compute.

    Exit code 0 equal, 1 differs, 2 error, 3 could not be verified. Both clusters need trackers.
    """
    tables = list(dict.fromkeys(map(plain_name, table or ())))
    if not tables:
        raise UsageError("rows needs --table NS:TABLE")
    if not (master_conf or (master_thrift and master_zookeeper)):
        raise UsageError("rows needs the master: --master-conf DIR, or --master-thrift and --master-zookeeper")
    # Only what the options name: the environment's site files are this cluster's.
    site = load_site(master_conf or [], environ={})
    master = Settings(site, master_thrift, (), master_zookeeper, settings.trust)
    from status_tool.cli.comparing import compare_tables, limits_of

    show_as(quiet=quiet, verbose=verbose, log_file=log_file)
    limits = limits_of(wait, rate, max_problems)
    return compare_tables(master, settings, tables, limits, as_json=as_json, show_values=show_values)
