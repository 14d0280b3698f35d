"""Settled origins: those known to have written every head up to the cut into the state table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from status_tool.printable import iso
from status_tool.rules.segments import earliest, latest
from status_tool.vocabulary.details import is_number, object_in
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import as_hex
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.state_rows import REPLICATOR, WRITER

CLOCK_STEP_MS = 50
"""Trackers ignore clocks that are set back by less than this (`ClockWatch`)."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One incarnation of a master region server."""

    id: int | None
    name: str
    live: bool
    tracked: bool
    reason: str | None
    """Reason why it is not settled; None: settled."""
    after_ms: int | None
    """A write time beyond this, on the origin's own clock, is certainly after the shutdown; None: unknown."""
    barrier_ms: int | None = None
    """The same of the barrier."""


def judge_origins(
    rows: Iterable[Row],
    master: Header,
    since_ms: int | None = None,
    drained: frozenset[int] = frozenset(),
    left: Mapping[int, str] | None = None,
    baselines: Collection[int] = (),
) -> tuple[Origin, ...]:
    """Judge the master's `server` rows, one origin each, in the order of their names.

    `drained` names origins for which the replication queues hold nothing more for this peer; `left` gives the reason
    for the others. `baselines` are the times up to which the past of any table is accepted.
    """
    writers: dict[tuple[int | None, str], Row] = {}
    # The last one stays: a writer's row beside a sink's, and of two the one that has not echoed, which settles less.
    for row in sorted(rows, key=_writer_last):
        writers[row.get("origin"), row.get("server") or ""] = row
    origins = (
        _with_clock(_judge(row, master, since_ms, drained, left or {}), row, baselines)
        for row in writers.values()
        # A live server that has a sink's row alone runs without the write-time tracker. Coverage tells of one that is
        # gone (`CoverageRow`).
        if is_writer(row) or row.get("live") is not False
    )
    return tuple(sorted(origins, key=lambda origin: (origin.name, origin.id or 0)))


def slave_flushed_ms(rows: Iterable[Row]) -> int | None:
    """Return up to when all that the slave's servers (`r` or unknown role) had recorded is in the state table: the
    first of them read this run's barrier then, and each flushed after that. None: a live one has not echoed it.
    """
    live = [row for row in rows if row.get("live") and _is_replicator(row)]
    read = [row.get("read_ms") if row.get("echoed") is True else None for row in live]
    return None if None in read else earliest(*read)


def slave_doubts(rows: Iterable[Row], since_ms: int | None) -> Iterator[str]:
    """Yield, in words, why region servers of the slave may have seen more than they have recorded.

    One that has not answered the barrier may have let clients delete what had arrived, in a region that is elsewhere by
    now. `since_ms` as for `judge_origins`.
    """
    for row in sorted(filter(_is_replicator, rows), key=lambda row: str(row.get("server"))):
        if row.get("live") and row.get("tracked") is False:
            yield f"{row.get('server')} runs without the tracker"
        elif row.get("live") and row.get("echoed") is not True:
            yield f"{row.get('server')} has not flushed since the barrier"
        elif (reason := _blind_spot(row, since_ms)) is not None:
            yield f"{row.get('server')} {reason}"


def origin_name(origin: int | None, names: Mapping[int, str]) -> str | None:
    """Return the server name of an origin, or its id in hex where the name is unknown."""
    if origin is None:
        return None
    return names.get(origin) or as_hex(origin)


def _is_replicator(row: Row) -> bool:
    return row.get("role") in (REPLICATOR, None)


def is_writer(row: Row) -> bool:
    """Return True for a `server` row of what a server wrote, or of an unknown role."""
    return row.get("role") in (WRITER, None)


def _writer_last(row: Row) -> tuple[bool, bool, bool]:
    return (is_writer(row), row.get("role") == WRITER, row.get("echoed") is not True)


def _judge(row: Row, master: Header, since_ms: int | None, drained: frozenset[int], left: Mapping[int, str]) -> Origin:
    # A server of which nobody knows whether it lives has to echo as if it did.
    identity, live = row.get("origin"), row.get("live") is not False
    tracked = row.get("tracked") is True and is_writer(row)
    echoed = tracked and row.get("echoed") is True
    reason = _blind_spot(row, since_ms) if echoed else _reason(row, live, tracked, since_ms)
    # The queues settle what the tracker missed, too: all of it is shipped, or `_why_not` has looked at the errors.
    if not live and identity in drained:
        reason = None
    elif reason is not None and not live and row.get("final_ms") is None:
        why = f"; {left[identity]}" if identity is not None and identity in left else ""
        reason = f"{reason}{why}; {_last_resort(row)}"
    name = row.get("server") or origin_name(identity, {}) or "unknown server"
    # Without an echo, the row's READ_MS may be that of an earlier barrier.
    bounds = (_after_ms(row, master), barrier_ms(row)) if echoed else (None, None)
    return Origin(identity, name, live, tracked, reason, *bounds)


def _with_clock(origin: Origin, row: Row, baselines: Collection[int]) -> Origin:
    """Return the origin unsettled if its clock was set back past a baseline.

    What it wrote afterwards bears times that the baseline covers, so that a hole or a head counts as accepted.
    """
    health = object_in(row.get("detail")) or {}
    times: list[Any] = [health.get(name) for name in ("clock_back_ms", "clock_low_ms")]
    back_ms, low_ms = (int(time) if is_number(time) else 0 for time in times)
    # If nobody knows how far back the clock was set, it may have passed every baseline before `back_ms`.
    passed = [moment for moment in baselines if low_ms <= moment < back_ms and origin.reason is None]
    if not passed:
        return origin
    reason = (
        f"had its clock set back from up to {iso(back_ms)}, past {iso(max(passed))}, up to which the past is accepted:"
        " what it wrote since may look older. Compare the tables once more (--rows), when its clock shows more than"
        f" that, or accept the past up to then (--since {back_ms} or later)"
    )
    return replace(origin, reason=reason)


def _reason(row: Row, live: bool, tracked: bool, since_ms: int | None) -> str | None:
    if live and not tracked:
        return "runs without the tracker"
    if live:
        return "has not flushed past the cut"
    if row.get("final_ms") is not None:
        return _blind_spot(row, since_ms)
    gone_ms = row.get("gone_ms")
    if since_ms is not None and gone_ms is not None and since_ms >= gone_ms:
        return None
    return f"stopped without a final flush (crash, kill or abort), last flush at {iso(row.get('flush_ms'))}"


def _last_resort(row: Row) -> str:
    """Return the last resort: the baseline that covers a crashed server that nothing settles."""
    gone_ms = row.get("gone_ms")
    if gone_ms is None:
        return "no tracker has recorded yet that it is gone, which takes up to a minute: run `run -m` again"
    return f"--since {gone_ms} or later accepts what was written until then, once the tables have been compared"


def has_doubts(row: Row) -> bool:
    """Return True if the tracker of a `server` row's server may have missed entries."""
    return _blind_spot(row, None) is not None


def _blind_spot(row: Row, since_ms: int | None) -> str | None:
    """Return why a write-time tracker with errors may have missed entries; None without errors.

    What it missed was written before the last error, so a baseline that is accepted beyond that covers it.
    """
    health = object_in(row.get("detail") or "{}")
    if health is None:
        return "has a server row that cannot be parsed"
    errors = health.get("errors", 0)
    if not errors:
        return None
    last_ms = _last_error_ms(health)
    if since_ms is not None and last_ms is not None and since_ms >= last_ms:
        return None
    accept = "" if last_ms is None else f"; --since {last_ms} or later accepts what was written until then"
    return f"reported {errors} tracker errors: entries may have been missed (see its log){accept}"


def _last_error_ms(health: Mapping[str, Any]) -> int | None:
    """Until when entries may have been missed, on the origin's clock; None: unknown."""
    last_ms, back_ms = health.get("last_error_ms"), health.get("clock_back_ms")
    return latest(last_ms, back_ms if is_number(back_ms) else None) if is_number(last_ms) else None


def _after_ms(row: Row, master: Header) -> int | None:
    """Return the shutdown time plus how far the origin's clock may be ahead of the clock that recorded it.

    The origin read the token after it was issued, so `read - issued` bounds its offset from above, unless its clock
    had been ahead by more before and was set back: then a late write time does not prove a late entry.
    """
    read_ms = row.get("read_ms")
    if not known_shutdown(master) or read_ms is None or master.barrier_issued_ms is None:
        return None
    after_ms = int((master.shutdown_ms or 0) + max(0, read_ms - master.barrier_issued_ms)) + CLOCK_STEP_MS
    health = object_in(row.get("detail") or "{}")
    if health is None:
        return None
    back_ms = health.get("clock_back_ms")
    return after_ms if back_ms is None or (is_number(back_ms) and back_ms <= after_ms) else None


def barrier_ms(row: Row) -> int | None:
    """Return the time up to which the origin's clock had been when it read the barrier's token, or was set back."""
    read_ms, health = row.get("read_ms"), object_in(row.get("detail") or "{}")
    back_ms = None if health is None else health.get("clock_back_ms", 0)
    return max(read_ms, back_ms) + CLOCK_STEP_MS if read_ms is not None and is_number(back_ms) else None


def barriers_of(rows: Iterable[Row]) -> dict[int, int]:
    """Return by origin the `barrier_ms` of a master's live servers that echoed it, where it is known."""
    read = ((row["origin"], barrier_ms(row)) for row in rows if row.get("live") and row.get("echoed"))
    return {origin: moment for origin, moment in read if moment is not None}


def is_younger(first_ms: int | None, bound_ms: int | None) -> bool:
    """Return True if a stream is known to begin after its server's `barrier_ms`."""
    return first_ms is not None and bound_ms is not None and first_ms > bound_ms


def read_by_ms(rows: Iterable[Row], issued_ms: int | None) -> int | None:
    """Return when the last live server had read the barrier's token, by their own clocks; `issued_ms` if that is later.

    That is the tool's clock, which may be minutes behind: by it alone, what came before the barrier could look later.
    """
    return latest(issued_ms, *(row.get("read_ms") for row in rows if row.get("live") and row.get("echoed")))


def known_shutdown(master: Header) -> bool:
    """Return True if an explicit shutdown time is known."""
    return master.shutdown_ms is not None and master.shutdown_ms > 0
