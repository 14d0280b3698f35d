"""The options of `run -h` by what they are about; within a group in the order of the command's signature."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from typer.core import TyperCommand

HELP_GROUPS: Mapping[str, frozenset[str]] = {
    "What to do": frozenset(
        {"master", "output", "status_file", "slave_status", "follow", "debug", "debug_dir", "explain", "wait", "help"}
    ),
    "What counts": frozenset({"only", "peer", "shutdown", "ignore_later_writes"}),
    "HBase": frozenset({"table", "namespace", "since", "accept_drift", "drained", "rows", "sample"}),
    "HDFS files": frozenset(
        {"paths", "all_files", "exclude", "map_path", "strict_extra", "deep", "rate", "hdfs_client", "layout", "resume"}
    ),
    "This cluster": frozenset({"conf_dir", "thrift", "webhdfs", "zookeeper", "cacert", "cert", "principal", "keytab"}),
    "The master, with --follow or --rows": frozenset({"master_conf", "master_thrift", "master_zookeeper"}),
    "Spark": frozenset({"spark_master", "spark_conf"}),
    "Results": frozenset(
        {"as_json", "max_problems", "report", "metrics", "repair_script", "differ", "missing", "unverifiable"}
    ),
    "Status files": frozenset({"sign_key", "require_signature", "mode"}),
    "Progress": frozenset({"quiet", "verbose", "log_file"}),
}
"""By heading, the names of parameters; each is in one group."""


_EXAMPLES = (
    ("status-tool run -m -o master.status", "on the master"),
    ("status-tool run -i master.status", "on the slave, with the copied file"),
)
_ENDS = (
    ("0", "Complete: proven."),
    ("1", "Not complete: something is missing or differs."),
    ("2", "An error, in one line; nothing was decided."),
    ("3", "Could not be verified: nothing is known to be missing, and something is not proven."),
    ("130, 143", "Interrupted by Ctrl-C or SIGTERM."),
)
_TYPE = re.compile(r" <list\[\w+\]>")


def write_groups(
    parameters: list[Any], context: Any, formatter: Any, left_out: Collection[str] = (), suffix: str = ""
) -> None:
    """Write a section for each group, as Click writes the one section "Options"."""
    for heading, names in HELP_GROUPS.items():
        asked = [one for one in parameters if one.name in names and one.name not in left_out]
        if records := [record for one in asked if (record := one.get_help_record(context)) is not None]:
            with formatter.section(f"{heading}{suffix}"):
                formatter.write_dl(records)


def write_examples(formatter: Any) -> None:
    """How it is used, and by what it ends."""
    for heading, rows in (("Examples", _EXAMPLES), ("Exit codes", _ENDS)):
        with formatter.section(heading):
            formatter.write_dl(rows)


class PlainCommand(TyperCommand):
    """A command whose help shows no types of Python."""

    def get_help(self, ctx: Any) -> str:
        """As Typer's."""
        return _TYPE.sub(lambda found: " …".ljust(len(found[0])), super().get_help(ctx))
