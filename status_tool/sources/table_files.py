"""Table descriptors as HBase keeps them in HDFS: `data/NAMESPACE/TABLE/.tabledesc/.tableinfo.NUMBER.LENGTH`.

For a master whose region servers run no tracker that would record them. Thrift names only a table's families.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.protobuf.message import DecodeError

from status_tool.clients import hbase_pb2
from status_tool.clients.hdfscli import Refused
from status_tool.clients.webhdfs import HdfsEndpoint, WebHdfs
from status_tool.clients.zookeeper import unwrap
from status_tool.rules.descriptors import TTL_FOREVER
from status_tool.sources.hdfs_files import refusals_end_the_run
from status_tool.vocabulary.names import namespace_of
from status_tool.vocabulary.schema import NewRow

_PREFIX = ".tableinfo."
_FIRST = 1
"""The number of the file that comes with the table. Each change of the descriptor has the next one."""
_AT_ONCE = 8
_HARMLESS = frozenset(
    {
        "org.apache.hadoop.hbase.JMXListener",
        "org.apache.hadoop.hbase.backup.BackupObserver",
        "org.apache.hadoop.hbase.constraint.ConstraintProcessor",
        "org.apache.hadoop.hbase.coprocessor.AggregateImplementation",
        "org.apache.hadoop.hbase.coprocessor.BaseRowProcessorEndpoint",
        "org.apache.hadoop.hbase.coprocessor.Export",
        "org.apache.hadoop.hbase.coprocessor.MetaTableMetrics",
        "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
        "org.apache.hadoop.hbase.quotas.MasterQuotasObserver",
        "org.apache.hadoop.hbase.replication.regionserver.ReplicationObserver",
        "org.apache.hadoop.hbase.rsgroup.RSGroupAdminEndpoint",
        "org.apache.hadoop.hbase.security.access.AccessController",
        "org.apache.hadoop.hbase.security.access.CoprocessorWhitelistMasterObserver",
        "org.apache.hadoop.hbase.security.access.SecureBulkLoadEndpoint",
        "org.apache.hadoop.hbase.security.access.SnapshotScannerHDFSAclController",
        "org.apache.hadoop.hbase.security.token.TokenProvider",
        "org.apache.hadoop.hbase.security.visibility.VisibilityController",
        "org.apache.hadoop.hbase.security.visibility.VisibilityReplication",
    }
)
"""The coprocessors of HBase that neither drop nor change replicated cells, as `HBaseCoprocessors` of the trackers."""


def table_rows(endpoint: HdfsEndpoint, root: str, tables: Iterable[str]) -> Iterator[NewRow]:
    """Yield the `table` rows of tables, in the form of the trackers' descriptors.

    `altered_ms` of a detail is when the descriptor was last changed (the NameNode's clock), if it ever was. A table
    whose descriptor is not found, or does not come in whole, is left out. Raises `ConnectionFailed`.
    """
    hdfs = WebHdfs(endpoint, patience_s=0)

    def row(table: str) -> NewRow | None:
        folder = posixpath.join(root, "data", namespace_of(table), table.rpartition(":")[2], ".tabledesc")
        detail = _described(hdfs, folder)
        return None if detail is None else {"kind": "table", "table": table, "detail": json.dumps(detail)}

    with refusals_end_the_run(endpoint), ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from (one for one in pool.map(row, tables) if one is not None)


def _described(hdfs: WebHdfs, folder: str) -> dict[str, Any] | None:
    files = [entry for entry in hdfs.entries(folder) if entry["pathSuffix"].startswith(_PREFIX)]
    newest = max(files, key=_number, default=None)
    if newest is None:
        return None
    try:
        content, _ = hdfs.start_of(posixpath.join(folder, newest["pathSuffix"]))
    except Refused as refusal:
        # A change of the table has replaced the file since it was listed (`FSTableDescriptors`).
        if refusal.is_absent:
            return None
        raise
    if len(content) != _length(newest):
        return None  # A part of it may be a descriptor, too, with fewer families.
    detail = descriptor_of(content)
    if detail is not None and _number(newest) != _FIRST:
        detail["altered_ms"] = int(newest["modificationTime"])
    return detail


def _number(entry: Mapping[str, Any]) -> int:
    number = entry["pathSuffix"].removeprefix(_PREFIX).partition(".")[0]
    return int(number) if number.isdigit() else 0


def _length(entry: Mapping[str, Any]) -> int:
    """Return the length of a whole file, as its name tells: HBase writes it in place, and may crash meanwhile."""
    told = entry["pathSuffix"].removeprefix(_PREFIX).partition(".")[2]
    return int(told) if told.isdigit() else int(entry["length"])


def descriptor_of(content: bytes) -> dict[str, Any] | None:
    """Return the descriptor in a `.tableinfo` file, as `TableJson` of the trackers has it; None if it is none."""
    try:
        table = hbase_pb2.TableSchema.FromString(unwrap(content))
        return {
            "families": {one.name.decode(): _family(_texts(one.attributes)) for one in table.column_families},
            "durability": (found := _texts(table.attributes)).get("DURABILITY", "USE_DEFAULT"),
            "coprocessors": sorted({*_coprocessors(found)} - _HARMLESS),
        }
    except (ValueError, DecodeError):
        return None


def _texts(attributes: Iterable[hbase_pb2.BytesBytesPair]) -> dict[str, str]:
    return {pair.first.decode(): pair.second.decode("utf-8", "replace") for pair in attributes}


def _family(attributes: Mapping[str, str]) -> dict[str, Any]:
    ttl = attributes.get("TTL", "FOREVER")
    return {
        "scope": int(attributes.get("REPLICATION_SCOPE", "0")),
        "versions": int(attributes.get("VERSIONS", "1")),
        "min_versions": int(attributes.get("MIN_VERSIONS", "0")),
        "ttl": int(ttl) if ttl.isdigit() else TTL_FOREVER,
        "keep_deleted": attributes.get("KEEP_DELETED_CELLS", "FALSE").upper(),
        "new_version_behavior": attributes.get("NEW_VERSION_BEHAVIOR", "false").lower() == "true",
        "mob": attributes.get("IS_MOB", "false").lower() == "true",
    }


def _coprocessors(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield class names, from `path|class|priority|arguments`."""
    for name, value in attributes.items():
        parts = value.split("|")
        if name.lower().startswith("coprocessor$") and len(parts) > 1:
            yield parts[1].strip()
