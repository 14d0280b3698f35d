"""The options of `run -h` by what they are about; within a group in the order of the command's signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def write_groups(parameters: list[Any], context: Any, formatter: Any) -> None:
    """Write a section for each group, as Click writes the one section "Options"."""
    for heading, names in HELP_GROUPS.items():
        records = [one.get_help_record(context) for one in parameters if one.name in names]
        with formatter.section(heading):
            formatter.write_dl([record for record in records if record is not None])
