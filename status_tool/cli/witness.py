"""`status-tool witness`: a peer of the master that keeps which entries it was sent, and nothing of their content."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from status_tool.cli.run_options import with_options
from status_tool.clients.config import ZooKeeperEndpoint, host_port, parse_zookeeper
from status_tool.clients.java import hbase_class_path, java, realms_option
from status_tool.clients.sitefiles import load_site
from status_tool.errors import ConfigurationError, UsageError

_MAIN = "io.github.statustool.witness.Witness"
_HEAP = "-Xmx1g"
WITNESS_JVM = (_HEAP, "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError")
_SIZED = re.compile(r"-Xmx|-XX:(MaxHeapSize|MaxRAMPercentage)=")


@with_options(
    "conf_dir",
    principal="Kerberos: its own principal, such as hbase/_HOST@REALM (then that of HBase's region servers in "
    "hbase-site.xml).",
    keytab="Kerberos: the key of --principal.",
)
def witness(
    register: Annotated[
        str,
        typer.Option(
            "--register",
            metavar="ZKHOST:PORT[,…]/ZNODE",
            help="Where the master finds it: a ZooKeeper that it reaches, and a znode that no cluster has.",
        ),
    ],
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="This machine's name, as the master reaches it.")
    ],
    store: Annotated[
        Path,
        typer.Option(
            "--store",
            metavar="DIR",
            help="Where to keep which entries it was sent; each witness needs a folder of its own.",
        ),
    ],
    hbase_home: Annotated[
        Path | None,
        typer.Option(
            "--hbase-home", metavar="DIR", help="HBase's installation (then `hbase` on the PATH, $HBASE_CLASSPATH)."
        ),
    ] = None,
    *,
    conf_dir: list[Path] | None,
    principal: str | None,
    keytab: Path | None,
) -> None:
    """Take part in replication as a peer that keeps which WAL entries it was sent, for a master without trackers.

    Prints the master's `add_peer` once it serves. Several witnesses with one znode share the load, each with a folder
    of its own. Runs until SIGTERM (143) or Ctrl-C (130); started again with the same folder, it goes on.
    """
    endpoint = register_endpoint(register, "--register")
    host, port = host_port(listen, "--listen")
    if conf_dir:
        # Java reads these files itself, by its class path; here their errors become one line.
        load_site(conf_dir)
    if (principal is None) != (keytab is None):
        raise UsageError("--principal NAME and --keytab FILE belong together: give both, or neither")
    key = () if principal is None or keytab is None else (principal, str(keytab.absolute()))
    # Java takes the first hbase-site.xml of its class path, and HBase's own folder has one, too.
    classes = os.pathsep.join((*map(str, conf_dir or ()), hbase_class_path(hbase_home)))
    options = (*_own_options(os.environ.get("JAVA_TOOL_OPTIONS", "")), *realms_option())
    place = (endpoint.cluster_key, host, str(port), str(store))
    command = [str(java("the witness")), *options, _MAIN, *place, *key]
    try:
        # In place of this process: signals reach the witness, and nothing has to outlive or end anything.
        os.execve(command[0], command, {**os.environ, "CLASSPATH": classes})
    except OSError as error:
        raise ConfigurationError(f"{command[0]} cannot be started: {error.strerror}") from None


def _own_options(given: str) -> tuple[str, ...]:
    """Return our options of the JVM, without a heap where the variable's options give one."""
    # Java takes an option of the command line before one of the variable.
    return tuple(option for option in WITNESS_JVM if option != _HEAP or not _SIZED.search(given))


def register_endpoint(text: str, option: str) -> ZooKeeperEndpoint:
    """Parse the znode of a witness. Raises `UsageError` without one, and `ConfigurationError`."""
    endpoint = parse_zookeeper(text, option)
    if "/" not in text:
        raise UsageError(f"{option} {text}: name a znode of the witness's own, as in {text}/witness")
    return endpoint
