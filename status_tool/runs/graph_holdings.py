"""Holdings: which cluster has the newest entries of a lost one, and which clusters wrote to a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from status_tool.printable import iso
from status_tool.rules.graph import Station
from status_tool.rules.pruning import StreamKey, key_of
from status_tool.rules.segments import earliest, latest
from status_tool.rules.tables import taken_away
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.codes import CODES
from status_tool.vocabulary.details import fits, is_number, map_of, object_in, optional
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import TableFilter

_COLUMNS = ("table", "region", "origin", "via", "prev", "seq", "first_ms", "write_ms", "started_ms")
_WRITERS = dict.fromkeys(("written_by", "deleted_by"), optional(map_of(is_number)))


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """The newest writes of one table on one cluster that came the same way. Times are epoch ms, of its own clock."""

    through: tuple[str, ...]
    """The clusters that they had passed, by name, else by id; none: its own clients wrote them."""
    written_ms: int
    deleted_ms: int | None
    """When deletes were last among them; None: never."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Entries of a lost cluster's table that a cluster has. Times are epoch ms."""

    newest_ms: int | None = None
    """The newest entry that came directly, by the lost cluster's clock."""
    passed_ms: int | None = None
    """When an entry that had passed the lost cluster was last written here, by this cluster's clock."""
    holes: int = 0
    hole_ms: int | None = None
    """Since when something is missing before later entries, by the lost cluster's clock."""
    lacks: int = 0
    """Of so many streams another cluster has more."""
    doubt: str | None = None
    """What may have taken away there what had arrived; None: nothing is known to."""


@dataclass(slots=True)
class _Reach:
    """Extent to which a stream has arrived."""

    whole: int = 0
    """All entries up to this one."""
    top: int = 0
    newest_ms: int | None = None
    holes: int = 0
    hole_ms: int | None = None

    @property
    def reach(self) -> tuple[int, int]:
        """Extent as a key for comparisons."""
        return self.whole, self.top

    def add(self, row: Row) -> None:
        """Take the next segment, in the order of their beginnings."""
        prev, seq = row["prev"] or 0, row["seq"] or 0
        if prev > self.top:
            self.holes += 1
            self.hole_ms = earliest(self.hole_ms, row["started_ms"] or row["first_ms"])
        elif not self.holes:
            self.whole = max(self.whole, seq)
        self.top = max(self.top, seq)
        self.newest_ms = latest(self.newest_ms, row["write_ms"])


def written_on(slave: StatusFile, stations: Sequence[Station], only: TableFilter) -> dict[str, tuple[WrittenBy, ...]]:
    """Return by table who wrote to a cluster, as its side as a slave shows it, newest first."""
    names = {station.cluster_id: station.name for station in stations}
    found = {}
    for table, detail in _tables(slave, only):
        deleted = detail.get("deleted_by") or {}
        own = [
            WrittenBy(tuple(names.get(one, one) for one in filter(None, ids.split(","))), moment, deleted.get(ids))
            for ids, moment in (detail.get("written_by") or {}).items()
        ]
        if own:
            found[table] = tuple(sorted(own, key=lambda one: -one.written_ms))
    return found


def holdings_of(
    lost_ids: frozenset[str],
    masters: Iterable[StatusFile],
    slaves: Mapping[str, StatusFile],
    known_ids: frozenset[str],
    only: TableFilter,
) -> dict[str, dict[str, Holding]]:
    """Return by table and cluster what is there of lost clusters, whose ids are `lost_ids` as far as they are known.

    Streams are theirs if no cluster that was read (`masters`) has ever had their origin or their region.
    """
    origins, regions = set[int](), set[str]()
    for file in masters:
        for batch in file.rows({"server", "stream", "region"}):
            origins.update(one for one in batch.column("origin").unique().to_pylist() if one is not None)
            regions.update(one for one in batch.column("region").unique().to_pylist() if one is not None)
    reached = {name: _reaches(file, origins, regions, only) for name, file in slaves.items()}
    best: dict[str, dict[StreamKey, tuple[int, int]]] = {}
    for tables in reached.values():
        for table, streams in tables.items():
            for key, one in streams.items():
                before = best.setdefault(table, {}).get(key, (0, 0))
                best[table][key] = (max(before[0], one.whole), max(before[1], one.top))
    found: dict[str, dict[str, Holding]] = {}
    for name, file in slaves.items():
        passed, taken = _passed(file, lost_ids, known_ids, only), _doubts(file)
        for table in sorted(best.keys() | passed.keys()):
            own = reached[name].get(table, {})
            if own or table in passed:
                found.setdefault(table, {})[name] = Holding(
                    latest(*(one.newest_ms for one in own.values())),
                    passed.get(table),
                    sum(one.holes for one in own.values()),
                    earliest(*(one.hole_ms for one in own.values())),
                    sum(key not in own or own[key].reach != reach for key, reach in best.get(table, {}).items()),
                    taken.get(table, "the table is not there"),
                )
    return found


def _reaches(
    slave: StatusFile, origins: set[int], regions: set[str], only: TableFilter
) -> dict[str, dict[StreamKey, _Reach]]:
    """Return by table and stream how far streams have arrived that have none of these origins and regions."""
    found: dict[str, dict[StreamKey, _Reach]] = {}
    # The rows of a stream follow one another in the order of their beginnings (`codec.segments`).
    for batch in slave.rows({"segment"}):
        for row in batch.select(_COLUMNS).to_pylist():
            is_other = row["origin"] in origins or row["region"] in regions
            if not is_other and _is_told(row["table"], slave, only):
                found.setdefault(row["table"], {}).setdefault(key_of(row), _Reach()).add(row)
    return found


def _doubts(slave: StatusFile) -> dict[str, str | None]:
    """Return by table of a cluster what may have taken away what had arrived, in words.

    Records of what has arrived outlive a table that was emptied or dropped.
    """
    found = taken_away(slave.header, slave.rows_of("table", "fact", "server"))
    return {table: None if one is None else _words(one) for table, one in found.items()}


def _words(finding: Finding) -> str:
    when = "" if finding.written_to_ms is None else iso(finding.written_to_ms)
    return CODES[finding.code].words.replace("{written_to}", when)


def _passed(
    slave: StatusFile, lost_ids: frozenset[str], known_ids: frozenset[str], only: TableFilter
) -> dict[str, int]:
    """Return by table when entries that had passed a lost cluster, or an unknown one, were last written."""
    found: dict[str, int] = {}
    for table, detail in _tables(slave, only):
        for ids, moment in (detail.get("written_by") or {}).items():
            passed = set(filter(None, ids.split(",")))
            if passed & lost_ids or passed - known_ids:
                found[table] = max(found.get(table, 0), moment)
    return found


def _tables(slave: StatusFile, only: TableFilter) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the record of each table in scope; of a damaged one the edge's own check tells."""
    for row in slave.rows_of("table"):
        detail = object_in(row["detail"])
        if detail is not None and fits(detail, _WRITERS) and _is_told(row["table"], slave, only):
            yield row["table"], detail


def _is_told(table: str | None, slave: StatusFile, only: TableFilter) -> bool:
    """Return True for a table in scope; that of published status files never is."""
    return table not in (None, slave.header.status_table) and only.holds(table)
