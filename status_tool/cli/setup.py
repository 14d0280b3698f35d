"""`status-tool setup`: the state table, the site properties, and whether the trackers are alive."""

from __future__ import annotations

from typing import Annotated

import typer

from status_tool.cli.options import CaCert, ConfDirs, ThriftOption, WebHdfsOption, ZooKeeperOption, settings_of
from status_tool.clients.config import STATE_NAME_KEY, STATE_NAMESPACE_KEY, Settings
from status_tool.errors import EXIT_UNVERIFIABLE
from status_tool.vocabulary.state_rows import REPLICATOR, WRITER

STEPS = """\
Needed: HBase 2.5.4 or later on both clusters. Before, HBase has no hook that reports what replication has applied
(HBASE-27529): such a cluster cannot be a slave, and checks against it are refused.

Install, on every region server of both clusters (so that failing back needs no further restart):
  1. Build the trackers:      cd coprocessor_stubs && mvn -q package
  2. Copy coprocessor_stubs/target/status-tool-coprocessors.jar into HBase's lib folder.
  3. Add to hbase-site.xml:
       <property>
         <name>hbase.coprocessor.wal.classes</name>
         <value>io.github.statustool.WriteTimeTracker</value>
       </property>
       <property>
         <name>hbase.coprocessor.regionserver.classes</name>
         <value>io.github.statustool.ReplicateTimeTracker</value>
       </property>
     (Where other coprocessors are set already, append ours after a comma. A master needs only the first,
     a slave only the second; with both on the master, mutations that bypass the WAL are detected, too.)
     Optional, with their defaults: hbase.replicationtable.namespace=default, hbase.replicationtable.name=
     replicationstate, hbase.replicationtable.updatedelay=30000, hbase.replicationtable.updateperiod=20000 (ms).
  4. Restart the region servers one after another, the slave's first: what a server without the tracker writes
     cannot be proven afterwards.
Uninstall: remove the two properties, restart the region servers one after another, remove the jar, then
  disable '{table}' and drop '{table}' in the HBase shell (its start of coverage must not outlive the trackers).
"""


def setup(
    create: Annotated[bool, typer.Option("--create/--no-create", help="Create the state table if missing.")] = True,
    conf_dir: ConfDirs = None,
    thrift: ThriftOption = None,
    webhdfs: WebHdfsOption = None,
    zookeeper: ZooKeeperOption = None,
    cacert: CaCert = None,
) -> int:
    """Create the state table, print how to install the trackers, check them on the live cluster."""
    settings = settings_of(conf_dir, thrift, webhdfs, zookeeper, cacert)
    typer.echo(STEPS.format(table=settings.state_table))
    if create:
        typer.echo(_create(settings))
    return _check(settings)


def _create(settings: Settings) -> str:
    """Create the state table; the trackers pre-split it when they create it, Thrift 1 cannot."""
    from status_tool.clients.thrift import connection

    with connection(settings.thrift()) as client:
        if settings.state_table.encode() in client.tables():
            return f"State table {settings.state_table}: exists."
        if ":" in settings.state_table:
            return f"State table {settings.state_table}: missing; the first tracker creates it with its namespace."
        client.create_table(settings.state_table, {"t": {"max_versions": 1}})
    return (
        f"State table {settings.state_table}: created, in one region (the first tracker would have pre-split it; "
        f"keys {STATE_NAMESPACE_KEY}, {STATE_NAME_KEY})."
    )


def _check(settings: Settings) -> int:
    """List the trackers that each live region server has reported; 3 unless all have both."""
    from status_tool.clients.zookeeper import ZooKeeper
    from status_tool.sources.state_table import StateTable

    with ZooKeeper(settings.zookeeper()) as session:
        live = session.live_servers()
    state = StateTable(settings.thrift(), settings.state_table)
    state.require()
    echoes = state.echoes(state.put_barrier())
    complete = bool(live)
    for server in live:
        found = [
            name
            for role, name in ((WRITER, "WriteTimeTracker"), (REPLICATOR, "ReplicateTimeTracker"))
            if (server, role) in echoes
        ]
        complete = complete and len(found) == 2
        typer.echo(f"{server}: {', '.join(found) or 'no tracker has reported'}")
    typer.echo(
        "Both trackers run on every region server." if complete else "Not every region server has both trackers."
    )
    return 0 if complete else EXIT_UNVERIFIABLE
