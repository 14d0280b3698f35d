"""Names: of tables as HBase prints them (`name` or `namespace:name`), and of files beside a status file."""

from __future__ import annotations

import os
from pathlib import Path

SYSTEM_NAMESPACE = "hbase"
DEFAULT_NAMESPACE = "default"
STATUS_TABLE = "replicationstatus"
"""Holds the published status files; replication ships it."""
PUBLISHED_FAMILY = "published"
"""Its only column family. A user's table may have the table's name, but not its family as well."""


def full_name(namespace: str, name: str) -> str:
    """Return the name as HBase prints it: without the namespace `default`."""
    return name if namespace == DEFAULT_NAMESPACE else f"{namespace}:{name}"


def plain_name(table: str) -> str:
    """Return the name as HBase prints it for a name as users write it, possibly `default:name`."""
    return table.removeprefix(f"{DEFAULT_NAMESPACE}:")


def namespace_of(table: str) -> str:
    """Return the namespace of `ns:name` or `name`."""
    return table.split(":", 1)[0] if ":" in table else DEFAULT_NAMESPACE


def status_table_of(state_table: str) -> str:
    """Return the table of published status files, in the state table's namespace."""
    return full_name(namespace_of(state_table), STATUS_TABLE)


def requests_table_of(state_table: str) -> str:
    """Return the table of requests for row digests, beside the state table."""
    return f"{state_table}_rows"


def is_system(table: str) -> bool:
    """Return True if a table is HBase's own. Such tables are never in scope."""
    return namespace_of(table) == SYSTEM_NAMESPACE


def is_legacy_name(path: str | os.PathLike[str]) -> bool:
    """Return True if a file of this name is written as the original's JSON."""
    return os.fspath(path).lower().endswith(".json")


META = "hbase:meta"
CODEC_KEY = "hbase.replication.rpc.codec"
DROPS_LOADS_KEY = "hbase.replication.drop.on.deleted.columnfamily"
"""A setting of region servers, and of a peer. `HBaseInterClusterReplicationEndpoint` then drops the cells of families
that their table does not have, whenever one of a batch is of such a family; and the markers of bulk loads are of no
table's family."""
PEER_STORAGE_KEY = "hbase.replication.peer.storage.impl"
"""Since HBase 2.6 a cluster may keep its peers elsewhere than in ZooKeeper. `CopyReplicationPeers`, which moves them,
leaves the znodes as they were."""
JOURNAL_SUFFIX = ".resume"


def journal_path(output: Path) -> Path:
    """Return the path of the journal beside a status file."""
    return Path(f"{output}{JOURNAL_SUFFIX}")


def is_journal(name: str) -> bool:
    """Return True if a file of this name is a journal beside a status file, or SQLite's own beside that."""
    return name.removesuffix("-journal").endswith(JOURNAL_SUFFIX)
