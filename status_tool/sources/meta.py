"""Tables and regions of a cluster, from `hbase:meta` by Thrift."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from google.protobuf.message import DecodeError

from status_tool.clients import hbase_pb2
from status_tool.clients.config import ThriftEndpoint
from status_tool.clients.thrift import Cells, cells_of, connection, scan, scan_pages
from status_tool.clients.zookeeper import unwrap
from status_tool.errors import ConnectionFailed
from status_tool.printable import counted
from status_tool.vocabulary.names import META, full_name, requests_table_of
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.states import RegionState

_HOSTED = [b"info:regioninfo", b"info:server", b"info:serverstartcode", b"info:state"]
"""Columns that tell of a region and who has it; HBase has more there, also of other replicas."""
_OPENED = [*_HOSTED, b"info:seqnumDuringOpen"]
_STATE, _OPEN, _CLOSED = b"info:state", (b"OPEN", 0), (b"CLOSED", 0)
_AT_REST = (b"CLOSED", b"OFFLINE")
FEW_TABLES = 20
"""Of more, all of `hbase:meta` is read at once."""


@dataclass(frozen=True, slots=True)
class HostedRegion:
    """A region that is open, and where."""

    encoded: str
    start: bytes
    stop: bytes
    server: str
    open_seq: int
    """`seqnumDuringOpen`: changes with every opening."""
    table: str
    region_id: int = 0
    opened_ms: int = field(default=0, compare=False)
    """When it was opened there (the HBase master's clock)."""

    @property
    def name(self) -> bytes:
        """The whole name: the key of its row."""
        return b"%s,%s,%d.%s." % (self.table.encode(), self.start, self.region_id, self.encoded.encode())


def regions(endpoint: ThriftEndpoint, live: Collection[str], state_table: str, only: TableFilter) -> Iterator[NewRow]:
    """Yield `region` rows of every user table, with who hosts them now.

    `state` is `hosted` by a live server, `unhosted` by none, `disabled` (closed, with its table), or `split` (a parent
    that waits for the janitor). Secondary replicas write no WAL and are left out. A table's own row comes before those
    of its regions (`MetaCellComparator`), so nothing is held back; without it the table counts as enabled.
    """
    states: dict[str, bool] = {}
    hosts, ours = frozenset(live), (state_table, requests_table_of(state_table))
    for key, cells in cells_of(scan_pages(endpoint, META, b"", None, [*_HOSTED, b"table:state"])):
        if _is_table_row(cells):
            states[key.decode(errors="replace")] = _enabled(cells)
        elif (row := _region(key, cells)) is not None and row["table"] not in ours and only.holds(row["table"]):
            row["state"], row["server"] = _hosting(row["state"], cells, states.get(row["table"], True), hosts)
            yield row


def open_regions(endpoint: ThriftEndpoint, tables: Collection[str]) -> Iterator[HostedRegion]:
    """Yield the regions of these tables that `hbase:meta` has as open, first replicas only, in key order by table."""
    if len(tables) > FEW_TABLES:
        names = set(tables)
        yield from (region for region in _open(endpoint, b"", None) if region.table in names)
        return
    for table in sorted(tables):
        # As ClientMetaTableAccessor has it: meta's rows are compared by their three parts, and in no other order.
        yield from _open(endpoint, f"{table},,".encode(), f"{table} ,,".encode())


def existing(endpoint: ThriftEndpoint, tables: Collection[str]) -> set[str]:
    """Return which of these tables exist. `hbase:meta` has a row for each, whichever of them Thrift lists to a user."""
    with connection(endpoint) as client:
        rows = client.table(META).rows([table.encode() for table in sorted(tables)], [b"table:state"])
    return {key.decode() for key, cells in rows if cells}


def open_again(endpoint: ThriftEndpoint, known: Collection[HostedRegion]) -> Iterator[HostedRegion]:
    """Yield the regions in `known` that `hbase:meta` still has, each with its current server and opening."""
    names = sorted({region.name for region in known})
    with connection(endpoint) as client:
        rows = client.table(META).rows(names, _OPENED, include_timestamp=True)
    for row in rows:
        if (region := _hosted(*row)) is not None:
            yield region


def _open(endpoint: ThriftEndpoint, start: bytes, stop: bytes | None) -> Iterator[HostedRegion]:
    for row in scan(endpoint, META, start, stop, _OPENED):
        if (region := _hosted(*row)) is not None:
            yield region


def _hosted(key: bytes, cells: Cells) -> HostedRegion | None:
    """Return the region if it is open; None for any other row."""
    row, server = _region(key, cells), _server(cells)
    opened = cells.get(b"info:seqnumDuringOpen")
    state = cells.get(_STATE, _OPEN)[0]
    if row is None or row["state"] == RegionState.SPLIT or server is None or opened is None or state != b"OPEN":
        return None
    open_seq = int.from_bytes(opened[0], "big", signed=True)
    place = (row["region"], row["start_key"], row["end_key"], server, open_seq, row["table"])
    return HostedRegion(*place, row["region_id"], opened[1])


def _is_table_row(cells: Cells) -> bool:
    return b"table:state" in cells and b"info:regioninfo" not in cells


def _enabled(cells: Cells) -> bool:
    try:
        return hbase_pb2.TableState.FromString(cells[b"table:state"][0]).state == 0
    except DecodeError:
        return True


def _region(key: bytes, cells: Cells) -> NewRow | None:
    try:
        info = hbase_pb2.RegionInfo.FromString(unwrap(cells[b"info:regioninfo"][0]))
    except (KeyError, ValueError, DecodeError):
        return None
    if info.replica_id:
        return None
    return {
        "kind": "region",
        "table": full_name(info.table_name.namespace.decode(), info.table_name.qualifier.decode()),
        # The key is `table,start,id.encoded.` (RegionInfo.encodeRegionName).
        "region": key.rstrip(b".").rpartition(b".")[2].decode(errors="replace"),
        "start_key": info.start_key,
        "end_key": info.end_key,
        "region_id": info.region_id,
        "state": RegionState.SPLIT if info.split or info.offline else None,
    }


def _hosting(
    was: RegionState | None, cells: Cells, enabled: bool, live: Collection[str]
) -> tuple[RegionState, str | None]:
    """Return the state of a region and its server.

    While a table is being disabled or enabled, regions of it are open, in transition, or wait to be opened once more
    since their server crashed: these are at rest only once they are closed (`AssignmentManager`).
    """
    state, server = cells.get(_STATE, _OPEN)[0], _server(cells)
    if was == RegionState.SPLIT or state in (b"SPLIT", b"MERGED"):
        return RegionState.SPLIT, None
    if not enabled and cells.get(_STATE, _CLOSED)[0] in _AT_REST:
        return RegionState.DISABLED, None
    # `hbase:meta` shows a crashed server's regions as OPEN until its `ServerCrashProcedure` has dealt with them.
    if state == b"OPEN" and server in live:
        return RegionState.HOSTED, server
    return RegionState.UNHOSTED, server


def _server(cells: Cells) -> str | None:
    """Return the server name from `info:server` (`host:port`) and `info:serverstartcode`; None without either.

    HBase writes the host in lower case and an IPv6 address without brackets everywhere but here (`ServerName`).
    """
    address, startcode = cells.get(b"info:server"), cells.get(b"info:serverstartcode")
    if address is None or startcode is None or len(startcode[0]) != 8:
        return None
    host, _, port = address[0].decode(errors="replace").rpartition(":")
    return f"{host.strip('[]').lower()},{port},{int.from_bytes(startcode[0], 'big')}"


def table_families(
    endpoint: ThriftEndpoint,
    events: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    descriptors: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Iterator[NewRow]:
    """Yield `table` rows of all tables with their families and their `events`.

    Thrift lists the tables (version 1 reports names only); their families come from the trackers' `descriptors`. The
    state table is among them, so that a cluster without user tables differs from one that was not read.

    Raises `ConnectionFailed` if HBase's access control hides a table from this user: it leaves those on which the
    user has no right out of the list (`AccessController.postGetTableNames`), and nobody would miss them.
    """
    with connection(endpoint) as client:
        names = [raw_name.decode(errors="replace") for raw_name in client.tables()]
        hidden = sorted(descriptors.keys() - set(names))
        if endpoint.has_kerberos and hidden:
            raise ConnectionFailed(
                f"HBase hides {counted(len(hidden), 'table')} from this user that the trackers describe ({hidden[0]}): "
                "make it one of hbase.superuser, or grant it READ and CREATE on every table; if one was just dropped, "
                "run again"
            )
        for name in names:
            families = [family.decode(errors="replace").rstrip(":") for family in client.table(name).families()]
            detail = {**described(families, descriptors.get(name)), **events.get(name, {})}
            yield {"kind": "table", "table": name, "detail": json.dumps(detail)}


def described(families: list[str], descriptor: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a table in the form of the trackers' descriptors; only its families' names if these do not tell of all."""
    known = descriptor.get("families") if descriptor else None
    # A family that was added after the trackers had looked may keep less, and nobody would compare it.
    if not isinstance(known, dict) or not known.keys() >= set(families):
        return {"families": families}
    return {**(descriptor or {}), "families": {family: known[family] for family in families}}
