"""Custody of the slave's regions: who vouches for what a region holds.

A region is in custody if the content ledger has a tenure of it that a live server with the tracker had open when it
read the barrier. Everything else is broken custody of its table, without a rule that names what went wrong: the region
is on a server without the tracker or on none, nobody recorded its opening, or no region has the keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from status_tool.rules.content import Tenure
from status_tool.vocabulary.details import is_text
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.schema import NewRow, Row
from status_tool.vocabulary.state_rows import REPLICATOR
from status_tool.vocabulary.states import FactState, RegionState

_NAME = 32
"""Characters of a region's encoded name."""
_INDEX = 4


@dataclass(frozen=True, slots=True)
class Place:
    """Properties that regions of one table on one server share."""

    table: str
    why: str
    """Reason why nobody vouches for a region there."""
    origin: int | None = None
    """The server's, if it watches its regions: their opening may still be on its way into the content ledger."""

    @property
    def is_watched(self) -> bool:
        """Return True if the server watches its regions."""
        return self.origin is not None


@dataclass(frozen=True)
class Places:
    """Every region of the slave by `hbase:meta`, and the servers that vouch for theirs. A few bytes a region."""

    known: tuple[Place, ...] = ()
    packed: Mapping[str, bytes] = field(default_factory=dict)
    """By the first character of their encoded names: each name, and the index of its place."""
    watched: Mapping[int, int | None] = field(default_factory=dict)
    """By origin, when each live server with the tracker read the barrier, on its own clock; None: unknown."""

    @property
    def count(self) -> int:
        """Number of regions."""
        return sum(map(len, self.packed.values())) // (_NAME + _INDEX)

    def beginning_with(self, first: str) -> dict[str, Place]:
        """Return the regions whose encoded names begin so."""
        packed, size = self.packed.get(first, b""), _NAME + _INDEX
        return {
            packed[at : at + _NAME].rstrip(b"\0").decode(): self.known[
                int.from_bytes(packed[at + _NAME : at + size], "big")
            ]
            for at in range(0, len(packed), size)
        }

    def is_vouched_for(self, origin: int, opened_ms: int, tenure: Tenure, place: Place) -> bool:
        """Return True if a watched server had the region open when it read the barrier, or took it over as it was then.

        It has it still, by `hbase:meta`, or has closed it later. Of another place an open tenure proves nothing: its
        close may never have been recorded. But if the server opened the region after the barrier, and its tenure
        continues an earlier one, nobody had it in between.
        """
        read_ms = self.watched[origin]
        if tenure.closed_ms is None and origin == place.origin:
            return True
        is_joined = tenure.closed_ms is None and tenure.began_ms != opened_ms
        moved_ms = opened_ms if is_joined else tenure.closed_ms
        return read_ms is not None and moved_ms is not None and moved_ms > read_ms


def survey(regions: Iterable[Row], servers: Iterable[Row]) -> tuple[Places, dict[str, dict[str, Any]]]:
    """Survey a slave's `region` rows, in the order of `hbase:meta`, and its `server` rows.

    Also returns details by table.

    A detail has the number of a table's regions and, if they do not cover every key exactly once, one at fault.
    """
    watchers = {row["server"]: row for row in servers if row.get("live") and row.get("role") == REPLICATOR}
    known: dict[Place, int] = {}
    packed: defaultdict[str, bytearray] = defaultdict(bytearray)
    tables: dict[str, dict[str, Any]] = {}
    last: dict[str, tuple[bytes, str]] = {}
    for row in regions:
        # A parent's daughters are in `hbase:meta` beside it and cover its keys: the parent would overlap them.
        if row["state"] == RegionState.SPLIT:
            continue
        table, name = row["table"], row["region"]
        place = _place(row, watchers)
        index = known.setdefault(place, len(known))
        packed[name[:1]] += name.encode().ljust(_NAME, b"\0") + index.to_bytes(_INDEX, "big")
        detail = tables.setdefault(table, {"regions": 0})
        # An empty key ends the last region and begins the first: without the second test another first one would
        # follow.
        if row["start_key"] != last.get(table, (b"", ""))[0] or (table in last and not row["start_key"]):
            detail.setdefault("torn", name)
        detail["regions"] += 1
        last[table] = (row["end_key"], name)
    for table, (end, name) in last.items():
        if end:
            tables[table].setdefault("torn", name)
    # The table may lack the close of a region before its server's echo: open tenures of that server prove nothing.
    watched = {row["origin"]: row.get("read_ms") for row in watchers.values() if _answers(row)}
    return Places(tuple(known), {first: bytes(names) for first, names in packed.items()}, watched), tables


def _place(region: Row, watchers: Mapping[str, Row]) -> Place:
    table, server = region["table"], region["server"]
    if region["state"] == RegionState.DISABLED:
        return Place(table, "the table is disabled: nobody knows what it will open with")
    if region["state"] != RegionState.HOSTED:
        return Place(table, "no live region server has it")
    watcher = watchers.get(server)
    if watcher is None or not watcher.get("tracked"):
        return Place(table, f"it is on {server}, which runs without the tracker")
    if not _answers(watcher):
        return Place(table, f"it is on {server}, which has not flushed since the barrier")
    return Place(table, f"it is on {server}, which has not recorded that it opened it", watcher["origin"])


def _answers(server: Row) -> bool:
    return bool(server.get("tracked") and server.get("echoed"))


def unattended_rows(waiting: Mapping[str, Place]) -> Iterator[NewRow]:
    """Yield `fact` rows of regions that nobody vouches for: one a table, with one region as an example."""
    by_table: defaultdict[str, list[str]] = defaultdict(list)
    for region, place in waiting.items():
        by_table[place.table].append(region)
    for table, regions in sorted(by_table.items()):
        # One that somebody has to mend comes first: it is of no use to wait for the others.
        example = min(regions, key=lambda region: (waiting[region].is_watched, region))
        yield {
            "kind": "fact",
            "table": table,
            "region": example,
            "state": FactState.UNATTENDED,
            "entries": len(regions),
            "origin": waiting[example].origin,
            "detail": waiting[example].why,
        }


@dataclass(frozen=True, slots=True)
class Unattended:
    """The regions of a table that nobody vouches for: how many, one of them, and what is wrong with that one."""

    regions: int
    example: str
    why: str
    is_settling: bool = False
    """True if only openings are still to be recorded, which trackers do by themselves."""


def unattended(facts: Iterable[Row]) -> dict[str, Unattended]:
    """Return the unattended regions by table, from a slave's `fact` rows."""
    found: dict[str, Unattended] = {}
    for row in facts:
        table = row.get("table")
        if row.get("state") == FactState.UNATTENDED and table is not None:
            is_settling = row.get("origin") is not None
            one = Unattended(row.get("entries") or 1, row.get("region") or "", row.get("detail") or "", is_settling)
            known = found.get(table, replace(one, regions=0))
            # Each part of the state table has a row of its own, and the parts come in any order.
            shown = min(one, known, key=lambda part: (part.is_settling, part.example, part.why))
            found[table] = replace(shown, regions=known.regions + one.regions)
    return found


def custody_findings(table: str, detail: Mapping[str, Any], broken: Unattended | None) -> list[Finding]:
    """Return the findings about the custody of a slave's table, whose `table` row has this detail."""
    regions, torn = detail.get("regions"), detail.get("torn")
    if not isinstance(regions, int) or regions < 1:
        note = "no region of it is known"
        return [Finding("unattended", table=table, note=note)]
    found = []
    if torn is not None:
        name = torn if is_text(torn) else ""
        note = f"a hole or an overlap in the slave's hbase:meta beside region {name} (hbck2 mends it: fixMeta)"
        found.append(Finding("unattended", table=table, note=note))
    if broken is not None:
        note = f"{broken.regions} of {regions} regions, as {broken.example}: {broken.why}"
        found.append(Finding("unattended", table=table, note=note))
    return found
