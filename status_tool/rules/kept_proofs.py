"""Proofs kept of a table's past: a baseline that a comparison of rows has proven, or that the operator vouches for.

The slave's state table keeps it (`ProvenRow`). Whatever was written up to `until_ms` is there, so that streams have to
show only what came later. It knows what the slave's trackers had `seen` of the table by then; anything else that they
see later (emptied, restored, a family dropped, a state table that went back) is named, whatever any clock shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from status_tool.printable import counted, few, iso
from status_tool.rules.descriptors import is_retention, keeps_more, retention_of
from status_tool.rules.origins import is_writer
from status_tool.rules.segments import earliest, latest
from status_tool.vocabulary.details import (
    fits,
    is_number,
    is_text,
    list_of,
    loads,
    map_of,
    object_in,
    object_of,
    optional,
)
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Baseline

MARGIN_MS = 2 * SKEW_MS
"""A region server's clock may differ by half of it from the HBase master's, which refuses it beyond that, and so may
that of a server that starts later.
"""
BY_ROWS, BY_WORD = "rows", "word"
"""Who vouches: the rows were compared, or the operator says so (`--since`)."""
MOST_NAMES = 10
"""Number of tables that a notice names."""
_MOMENTS = ("born_ms", "changed_ms", "back_ms", "written_ms", "deleted_ms", "own_ms", "covered_ms")
_SEEN = {**dict.fromkeys(_MOMENTS, optional(is_number)), "dropped_ms": optional(map_of(is_number))}
_KEPT = {
    "until_ms": is_number,
    "families": list_of(is_text),
    "seen": object_of(_SEEN),
    "by": lambda value: value in (BY_ROWS, BY_WORD),
    "shown": optional(map_of(is_retention)),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """Events of a table's content that the slave's trackers had seen; each is the slave's own time of the newest one.

    Another value later is something that has happened since, whatever the clocks show.
    """

    born_ms: int | None = None
    dropped_ms: Mapping[str, int] = field(default_factory=dict)
    """By family."""
    changed_ms: int | None = None
    """When store files changed beside the WAL."""
    back_ms: int | None = None
    """When the state table went back."""
    written_ms: int | None = None
    """When others than the master wrote to it."""
    deleted_ms: int | None = None
    """When deletes were among that."""
    own_ms: int | None = 0
    """When clients of the slave itself wrote to it; 0: never."""
    covered_ms: int | None = None
    """Until when a region server of the slave ran without the replicate-time tracker; None: never, or not known."""

    def latest_ms(self) -> int:
        """Return the time of the latest event, 0 without any."""
        times = (getattr(self, name) for name in _MOMENTS)
        return latest(*times, *self.dropped_ms.values()) or 0


NOTHING_SEEN = Seen()


@dataclass(frozen=True, slots=True)
class KeptBaseline:
    """Proof kept of one table's past."""

    until_ms: int
    """Time up to which what was written, on whatever server's clock, is vouched for."""
    families: frozenset[str]
    seen: Seen
    by: str = BY_ROWS
    shown: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By family, what the master's table kept when its rows were compared (`shown_by`); empty for a word."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that the state table keeps."""
        # `own_ms` is 0 for never and None for not known, so that both have to be written.
        seen = {name: value for name, value in asdict(self.seen).items() if value or name == "own_ms"}
        known = {"until_ms": self.until_ms, "families": sorted(self.families), "seen": seen, "by": self.by}
        return known | ({"shown": dict(self.shown)} if self.shown else {})


def shown_by(descriptor: Mapping[str, Any]) -> dict[str, Sequence[int]]:
    """Return by family what a table keeps, as `keeps_more` has it. Durability hides no cell."""
    return retention_of({"families": descriptor.get("families")})


def kept_baselines(
    slave_tables: Iterable[Row], master_tables: Iterable[Row], master_id: str
) -> dict[str, KeptBaseline]:
    """Return by table what its `table` row has against this master. What cannot be parsed counts as none.

    Neither does a proof by rows count whose table keeps more on the master since: cells that were hidden there were not
    compared, and may be back. A slave that kept more all the time shows nothing of it.
    """
    details = {row.get("table"): row.get("detail") for row in master_tables}
    found: dict[str, KeptBaseline] = {}
    for row in slave_tables:
        try:
            kept = kept_of(loads(row.get("detail"))["proven"][master_id])
        except (ValueError, KeyError, TypeError):
            continue
        table = row.get("table")
        if table is not None and kept is not None and not _shows_more(kept, details.get(table)):
            found[table] = kept
    return found


def _shows_more(kept: KeptBaseline, detail: str | None) -> bool:
    now = shown_by(object_in(detail) or {}) if kept.shown else {}
    return any(keeps_more(kept.shown[family], now[family]) for family in kept.shown.keys() & now.keys())


def kept_of(detail: Any) -> KeptBaseline | None:
    """Parse the JSON; None if that fails."""
    if not fits(detail, _KEPT):
        return None
    families, shown = frozenset(detail["families"]), detail.get("shown") or {}
    return KeptBaseline(detail["until_ms"], families, seen_of(detail["seen"]), detail["by"], shown)


def seen_of(detail: Mapping[str, Any]) -> Seen:
    """Read the JSON."""
    return Seen(dropped_ms=detail.get("dropped_ms") or {}, **{name: detail.get(name) for name in _MOMENTS})


def lasting(kept: Mapping[str, KeptBaseline], now_ms: int) -> tuple[dict[str, KeptBaseline], list[str]]:
    """Return those that a later event would end, and notices on the others.

    The event seen last may lie in the future, as a server's clock was ahead: it hides what happens until then.
    """
    ahead = {table: one for table, one in kept.items() if one.seen.latest_ms() > now_ms + SKEW_MS}
    notices = []
    if ahead:
        until = iso(max(one.seen.latest_ms() for one in ahead.values()))
        notices = [
            f"nothing is kept of {counted(len(ahead), 'table')} ({few(sorted(ahead), MOST_NAMES)}): the slave's"
            f" trackers saw an event there at {until}, in the future; a region server's clock was ahead. What happens"
            " until then would go unnoticed: check again after that time"
        ]
    return {table: one for table, one in kept.items() if table not in ahead}, notices


def told(kept: Mapping[str, KeptBaseline], undo: str = "; --forget TABLE takes it back") -> Iterator[str]:
    """Yield what is kept, in words. Of many tables only some are named, with the earliest time."""
    for by, way in {BY_ROWS: "an earlier comparison of rows (--rows)", BY_WORD: "your word (--since)"}.items():
        if names := sorted(table for table in kept if kept[table].by == by):
            until = iso(min(kept[table].until_ms for table in names)) + " or later" * (len(names) > 1)
            rest = f"{counted(len(names), 'table')} {'rests' if len(names) == 1 else 'rest'}"
            yield f"{rest} on {way} for what was written up to {until}: {few(names, MOST_NAMES)}{undo}"


def told_by_master(stored: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the state table keeps, in words; `stored` has JSON by table and master."""
    for master in sorted({master for by_master in stored.values() for master in by_master}):
        found = {table: kept_of(by_master.get(master)) for table, by_master in stored.items()}
        yield from (f"against master {master}, {line}" for line in told({t: one for t, one in found.items() if one}))


def still_holding(
    kept: Mapping[str, KeptBaseline], families: Mapping[str, Iterable[str] | None]
) -> dict[str, KeptBaseline]:
    """Return the proofs that cover all families in scope, by table; None stands for families that are not known."""
    return {
        table: one
        for table, one in kept.items()
        if (ours := families.get(table)) is not None and one.families >= set(ours)
    }


def baseline_with(since: Baseline, kept: Mapping[str, KeptBaseline]) -> Baseline:
    """Return the baseline of each table, the one that is given or the one that is kept, whichever is later."""
    later = {table: max(one.until_ms, since.by_table.get(table, one.until_ms)) for table, one in kept.items()}
    return Baseline(since.everything_ms, {**since.by_table, **later})


def servers_since(
    since: Baseline,
    tables: Iterable[str],
    proofs: Mapping[str, KeptBaseline],
    created_ms: Mapping[str, int | None] = MappingProxyType({}),
) -> int | None:
    """Return up to when servers that are gone are accepted: what they wrote is among the proven rows of every table.

    An operator's word for single tables does not accept servers, so `proofs` are those by rows. A table that was
    certainly not there yet (`created_ms`) had nothing written to it.
    """

    def accepted_ms(table: str) -> int | None:
        born_ms, proof = created_ms.get(table), proofs.get(table)
        return latest(None if born_ms is None else born_ms - MARGIN_MS, None if proof is None else proof.until_ms)

    # A server may have written to any of the tables, so the earliest decides.
    known = [accepted_ms(table) for table in tables]
    return latest(since.everything_ms, None if None in known else earliest(*known))


def proven_until(servers: Iterable[Row]) -> int | None:
    """Return up to when a proof by rows that were read after FILE holds, by the master's `server` rows in FILE.

    Each live region server read the barrier's token before the rows were read: what it appended later bears a later
    time. None: one has not, so that its clock is not known.
    """
    writers = [row for row in servers if is_writer(row) and row.get("live")]
    read = [row["read_ms"] for row in writers if row.get("echoed") and row.get("read_ms") is not None]
    return min(read) - MARGIN_MS if read and len(read) == len(writers) else None
