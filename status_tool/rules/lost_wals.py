"""WALs that a queue still holds and that are nowhere in HDFS: what they may have held, as trackers know it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from status_tool.printable import iso
from status_tool.rules.segments import earliest, latest
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.schema import Row

WriteTimes = tuple[int | None, int | None]
"""Write times of the first and the last entry (epoch ms); None: unknown."""


@dataclass(frozen=True, slots=True)
class LostWal:
    """A WAL that is lost: a peer's queue holds it, and HBase tries for ever to open it."""

    name: str
    peer: str
    server: str | None
    from_ms: int | None
    to_ms: int | None
    """When the queue's next WAL was opened; None: it has none."""
    tables: Mapping[str, WriteTimes] = field(default_factory=dict)
    """Tables to which the server wrote meanwhile, as far as its heads tell: entries of these may be in it."""

    def __str__(self) -> str:
        until = "" if self.to_ms is None else f" to {iso(self.to_ms)}"
        held = ", ".join(f"{table} ({iso(span[0])} to {iso(span[1])})" for table, span in self.tables.items())
        return (
            f"WAL {self.name} (opened {iso(self.from_ms)}{until}) is in a queue of peer {self.peer} and nowhere in "
            f"HDFS: what it held is lost to that peer{f', entries of {held}' if held else ''}"
        )


def lost_wals(queues: Iterable[Mapping[str, Any]], heads: Iterable[Row] = ()) -> list[LostWal]:
    """The lost WALs of queues, each once for a peer; `queues` are details of `queue` rows, `heads` the cluster's."""
    lost: dict[tuple[str, str], LostWal] = {}
    for queue in queues:
        wals = queue["wals"]
        for wal, following in zip(wals, [*wals[1:], None], strict=False):
            if wal.get("lost"):
                # With multiwal a server has several groups of WALs, and each goes on by itself.
                to_ms = following["started_ms"] if following and _group(following) == _group(wal) else None
                one = LostWal(wal["name"], queue["peer"], wal.get("server"), wal.get("started_ms"), to_ms)
                lost[one.peer, one.name] = one
    # A scan of the state table yields the heads, and hardly any run has a lost WAL.
    known = list(heads) if lost else []
    return [
        LostWal(one.name, one.peer, one.server, one.from_ms, one.to_ms, _tables(one, known)) for one in lost.values()
    ]


def _group(wal: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the server, and the WAL's name up to the time at which it was opened."""
    return wal.get("server"), str(wal["name"]).partition(f".{wal.get('started_ms')}")[0]


def _tables(wal: LostWal, heads: Iterable[Row]) -> dict[str, WriteTimes]:
    if wal.server is None:
        return {}
    origin, found = origin_id(wal.server), dict[str, WriteTimes]()
    for head in heads:
        table, first, last = head["table"], head["first_ms"], head["write_ms"]
        if table is None or head["origin"] != origin or _misses(wal, first, last):
            continue
        span = (latest(first, wal.from_ms), earliest(last, wal.to_ms))
        before = found.get(table, span)
        found[table] = (earliest(before[0], span[0]), latest(before[1], span[1]))
    return dict(sorted(found.items()))


def _misses(wal: LostWal, first: int | None, last: int | None) -> bool:
    """Return True if a stream has no entry of the WAL's time."""
    is_before = last is not None and wal.from_ms is not None and last < wal.from_ms
    return is_before or (first is not None and wal.to_ms is not None and first > wal.to_ms)
