"""`status-tool setup`: the trackers' jar, the state table, the site properties, and a look at the cluster."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from status_tool.atomic import AtomicFile
from status_tool.cli.defaults import is_given
from status_tool.cli.options import cluster_named, on_cluster
from status_tool.cli.run_options import with_options
from status_tool.cli.witness import register_endpoint
from status_tool.clients.config import STATE_NAME_KEY, STATE_NAMESPACE_KEY, Settings
from status_tool.clients.java import JAR, jar
from status_tool.clients.sitefiles import SiteConfig
from status_tool.errors import EXIT_UNVERIFIABLE, UsageError
from status_tool.printable import counted, safe

if TYPE_CHECKING:
    from status_tool.gather.installation import Checked

STEPS = """\
Needed: HBase 2.5.4 or later on both clusters, on Java 11 or newer. Earlier versions of HBase have no hook that reports
what replication has applied (HBASE-27529): such a cluster cannot be a slave, and checks against it are refused.

Install on every region server of both clusters; then failing back needs no further restart.

1. Write the trackers' jar:   status-tool setup --jar-to DIR
   (From the sources: cd coprocessor_stubs && mvn -q package builds target/status-tool-coprocessors.jar there.)
   Copy it into HBase's lib folder on every region server, before the next step: HBase aborts a region server that
   cannot load a class of the second property.

2. {found}
   A master needs only the first property, a slave only the second. Optional, with their defaults:
   hbase.replicationtable.namespace=default, hbase.replicationtable.name=replicationstate,
   hbase.replicationtable.updatedelay=30000, hbase.replicationtable.updateperiod=20000 (ms).

   hbase-site.xml of the region servers; in Cloudera Manager: HBase, Configuration, "RegionServer Advanced Configuration
   Snippet (Safety Valve) for hbase-site.xml", View as XML:

{xml}

   Ambari: HBase, Configs, Advanced, Custom hbase-site, Add Property, bulk mode:

{lines}

3. Restart the region servers one after another, the slave's first: what a server writes without the tracker cannot be
   proven afterwards. By hand: bin/rolling-restart.sh --rs-only --graceful; Cloudera Manager: Rolling Restart; Ambari:
   Restart RegionServers, rolling. Then: status-tool doctor

Uninstall: stop `status-tool publish`, and let `status-tool queues` drain. Remove the two properties, restart the region
servers one after another, and remove the jar. Then disable and drop in the HBase shell: replicationstatus, on the
master before the slave (a peer stops shipping everything if its cluster lacks a table); '{table}', whose start of
coverage must not outlive the trackers; and '{table}_rows'. Last remove the spool from HDFS: .status-tool-spool below
HBase's root, or hbase.replicationtable.spool.dir.
"""
TRACKER_PROPERTIES = {
    "hbase.coprocessor.wal.classes": "io.github.statustool.WriteTimeTracker",
    "hbase.coprocessor.regionserver.classes": "io.github.statustool.ReplicateTimeTracker",
}
ENABLED_KEY = "hbase.coprocessor.enabled"
"""Setting of HBase's `CoprocessorHost`: false keeps every coprocessor from being loaded."""


def steps(site: SiteConfig, table: str) -> str:
    """Return the steps that install the trackers on the cluster of these site files, after its own coprocessors."""
    wanted = {key: _with_ours(site.get(key, ""), ours) for key, ours in TRACKER_PROPERTIES.items()}
    if site.get(ENABLED_KEY, "true").strip().lower() == "false":
        wanted[ENABLED_KEY] = "true"
    xml = "\n".join(
        f"<property>\n  <name>{key}</name>\n  <value>{html.escape(value, quote=False)}</value>\n</property>"
        for key, value in wanted.items()
    )
    lines = "\n".join(f"{key}={value}" for key, value in wanted.items())
    return STEPS.format(found=_found(site, wanted), xml=_safe_lines(xml), lines=_safe_lines(lines), table=table)


def _safe_lines(text: str) -> str:
    """Return the lines, each sanitised."""
    return "\n".join(map(safe, text.split("\n")))


def _with_ours(classes: str, ours: str) -> str:
    """Return the classes that are set, with ours as the last."""
    present = [name for name in (part.strip() for part in classes.split(",")) if name]
    return ",".join(present if ours in present else [*present, ours])


def _found(site: SiteConfig, wanted: dict[str, str]) -> str:
    where = safe(" and ".join(map(str, site.folders)))
    if not where:
        return (
            "Set these properties. No site files were found: give --conf-dir DIR if other coprocessors are set already,"
            "\n   and the lines will have both."
        )
    if all(site.get(key) == value for key, value in wanted.items()):
        return f"{where} has these properties already: look whether the region servers' own files have them."
    return (
        f"Set these properties, made for the site files in {where}:\n"
        "   coprocessors that are set there stay. If the region servers' own files set others, add ours after a comma."
    )


@on_cluster("thrift", "webhdfs", "zookeeper")
@with_options(master_zookeeper="With --witness: whose peers are looked at.")
def setup(
    settings: Settings,
    context: typer.Context,
    create: Annotated[
        bool | None, typer.Option("--create/--no-create", help="Create the state table if missing (default).")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Change and explain nothing; only look at this cluster and name each thing to mend."
        ),
    ] = False,
    witness_znode: Annotated[
        str | None,
        typer.Option(
            "--witness",
            metavar="ZKHOST:PORT[,…]/ZNODE",
            help="With --check, on the slave: also look whether a check by the witness that is registered there can be "
            "complete; the last line is the next step.",
        ),
    ] = None,
    jar_to: Annotated[
        Path | None, typer.Option("--jar-to", metavar="DIR", help=f"Only copy {JAR} to this folder.")
    ] = None,
    *,
    master_zookeeper: str | None,
) -> int:
    """Create the state table, print how to install the trackers, and look at the live cluster: exit code 0 all is well,
    2 error, 3 something is to be mended.
    """
    if jar_to is not None:
        for parameter in context.command.params:
            if is_given(context, str(parameter.name)) and parameter.name != "jar_to":
                raise UsageError(f"--jar-to only puts the jar into a folder: leave {parameter.opts[0]} out")
        typer.echo(f"Wrote {safe(str(_put_jar(jar_to)))}: copy it into HBase's lib folder on every region server")
        return 0
    if witness_znode is not None and not check:
        raise UsageError("--witness only looks: give --check, too")
    if master_zookeeper is not None and witness_znode is None:
        raise UsageError("--master-zookeeper goes with --check --witness ZKHOST:PORT/ZNODE")
    if check and create:
        raise UsageError("--check changes nothing: leave it out, or --create")
    if not check:
        typer.echo(steps(settings.site, settings.state_table))
        if create is not False:
            typer.echo(_create(settings))
    from status_tool.gather.installation import inspect

    checks = list(inspect(settings))
    if witness_znode is not None:
        checks += _witness_checks(settings, witness_znode, master_zookeeper)
    return _tell(checks, _summary(checks) if witness_znode is None else next_step(checks))


def _witness_checks(settings: Settings, znode: str, master_zookeeper: str | None) -> list[Checked]:
    from status_tool.clients.zookeeper import parse_cluster_key
    from status_tool.gather.witness_readiness import inspect_witness

    witness = register_endpoint(znode, "--witness")
    # As the peer's, whose ZooKeeper HBase asks by the cluster's own settings.
    as_peer = parse_cluster_key(witness.cluster_key, settings.zookeeper())
    assert as_peer is not None
    named = master_zookeeper is not None
    master = cluster_named((), settings.trust, zookeeper=master_zookeeper) if named else None
    return list(inspect_witness(settings, as_peer, master))


@on_cluster("thrift", "webhdfs", "zookeeper")
def doctor(settings: Settings) -> int:
    """Look at the live cluster as `setup --check` does; the last line is "ready", or the one next step."""
    from status_tool.gather.installation import inspect

    checks = list(inspect(settings))
    return _tell(checks, next_step(checks))


def _tell(checks: Sequence[Checked], last: str) -> int:
    """Print what was looked at, and the last line; returns the exit code."""
    for one in checks:
        typer.echo(safe(f"{'MEND' if one.mend else 'ok  '}  {one.what}"))
        if one.mend:
            typer.echo(safe(f"      {one.mend}"))
    typer.echo(safe(last))
    return EXIT_UNVERIFIABLE if any(one.mend for one in checks) else 0


def next_step(checks: Sequence[Checked]) -> str:
    """Return the first thing to mend: later ones may follow from it."""
    return next((f"Next: {one.mend}" for one in checks if one.mend is not None), "ready")


def _summary(checks: Sequence[Checked]) -> str:
    number = sum(one.mend is not None for one in checks)
    return f"{counted(number, 'thing')} to mend." if number else "All is well."


def _put_jar(folder: Path) -> Path:
    """Copy our jar. Raises `OutputError` if the folder is missing or not writable."""
    target, content = folder / JAR, jar().read_bytes()
    with AtomicFile(target) as file:
        file.write(content)
        file.commit()
    target.chmod(0o644)  # HBase's user has to read it
    return target


def _create(settings: Settings) -> str:
    """Create the state table; the trackers pre-split it when they create it, Thrift 1 cannot."""
    from status_tool.clients.thrift import connection

    with connection(settings.thrift()) as client:
        if settings.state_table.encode() in client.tables():
            return f"State table {settings.state_table}: exists."
        # Thrift 1 has no call that creates a namespace.
        if ":" in settings.state_table:
            return f"State table {settings.state_table}: missing; the first tracker creates it with its namespace."
        client.create_table(settings.state_table, {"t": {"max_versions": 1}})
    return (
        f"State table {settings.state_table}: created, in one region (the first tracker would have pre-split it; "
        f"keys {STATE_NAMESPACE_KEY}, {STATE_NAME_KEY})."
    )
