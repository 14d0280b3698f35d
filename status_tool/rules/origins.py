"""Settled origins: those known to have written every head up to the cut into the state table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from status_tool.printable import iso
from status_tool.rules.segments import earliest, latest
from status_tool.rules.words import NO_WORD, Word, known_until_ms, since_option
from status_tool.vocabulary.details import fits, is_number, object_in, optional
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.ids import as_hex
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.state_rows import REPLICATOR, WRITER

CLOCK_STEP_MS = 50
"""Trackers ignore clocks that are set back by less than this (`ClockWatch`)."""
_HEALTH = dict.fromkeys(("errors", "clock_back_ms", "clock_low_ms"), optional(is_number))
"""Facts of a tracker's health: any other value would hide errors, or that its server's clock was set back."""
_ALWAYS_MS = 1 << 62
_UNREADABLE = "has a server row that cannot be parsed"
_ACCEPTS = "accepts what was written until then"


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
    word: Word = NO_WORD,
) -> tuple[Origin, ...]:
    """Judge the master's `server` rows, one origin each, in the order of their names.

    `drained` names origins for which the replication queues hold nothing more for this peer; `left` gives the reason
    for the others. `baselines` are the times up to which the past of any table is accepted, `word` what it is by.
    """
    writers: dict[tuple[int | None, str], Row] = {}
    # The last one stays: a writer's row beside a sink's, and of two the one that has not echoed, which settles less.
    for row in sorted(rows, key=_writer_last):
        writers[row.get("origin"), row.get("server") or ""] = row
    origins = (
        _accepted(_judge(row, master, since_ms, drained, left or {}), row, word)
        if word.is_whole
        else _with_clock(_judge(row, master, since_ms, drained, left or {}), row, master, baselines)
        for row in writers.values()
        # A live server that has a sink's row alone runs without the write-time tracker. Coverage tells of one that is
        # gone (`CoverageRow`).
        if is_writer(row) or row.get("live") is not False
    )
    return tuple(sorted(origins, key=lambda origin: (origin.name, origin.id or 0)))


@dataclass(frozen=True, slots=True)
class ShownTwice:
    """Times that clocks of a cluster's servers have shown twice, because they were set back."""

    spans: tuple[tuple[int, int], ...]
    """The first and the last of them, by server: what no server has shown twice lies between them."""

    @property
    def until_ms(self) -> int:
        """The last of all."""
        return max(until_ms for _, until_ms in self.spans)

    def has(self, moment_ms: int | None) -> bool:
        """Return True if what bears this time may have come after something of a later time."""
        return moment_ms is not None and any(low_ms <= moment_ms <= back_ms for low_ms, back_ms in self.spans)


def repeated_times(rows: Iterable[Row]) -> ShownTwice | None:
    """Return what `server` rows tell of clocks that were set back; None if none was.

    If nobody knows how far back, it may have been to any time. A row that cannot be parsed is a doubt by itself.
    """
    spans = tuple(
        (health.get("clock_low_ms") or 0, health["clock_back_ms"])
        for row in rows
        if (health := _health(row)) and health.get("clock_back_ms")
    )
    return ShownTwice(spans) if spans else None


def slave_flushed_ms(rows: Iterable[Row]) -> int | None:
    """Return up to when all that the slave's servers (`r` or unknown role) had recorded is in the state table: the
    first of them read this run's barrier then, and each flushed after that. None: a live one has not echoed it.
    """
    live = [row for row in rows if row.get("live") and _is_replicator(row)]
    read = [row.get("read_ms") if row.get("echoed") is True else None for row in live]
    return None if None in read else earliest(*read)


def slave_doubts(rows: Iterable[Row], since_ms: int | None, master: Header, word: Word = NO_WORD) -> Iterator[str]:
    """Yield, in words, why region servers of the slave may have seen more than they have recorded.

    One that has not answered the barrier may have let clients delete what had arrived, in a region that is elsewhere by
    now. `since_ms` as for `judge_origins`.
    """
    for row in sorted(filter(_is_replicator, rows), key=lambda row: str(row.get("server"))):
        if row.get("live") and row.get("tracked") is False:
            yield f"{row.get('server')} runs without the tracker"
        elif row.get("live") and row.get("echoed") is not True:
            yield f"{row.get('server')} has not flushed since the barrier"
        elif not word.is_anew and (blind := _blind_spot(row)) is not None and not blind.is_before(since_ms):
            yield f"{row.get('server')} {blind.reason}; {_slaves_resort(blind.until_ms, master)}"


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


@dataclass(frozen=True, slots=True)
class _BlindSpot:
    """Why a tracker may have missed entries, and until when (its server's clock; None: not known)."""

    reason: str
    until_ms: int | None = None

    def is_before(self, since_ms: int | None) -> bool:
        """Return True if all of it lies in the past that is accepted."""
        return since_ms is not None and self.until_ms is not None and since_ms >= self.until_ms


def _judge(row: Row, master: Header, since_ms: int | None, drained: frozenset[int], left: Mapping[int, str]) -> Origin:
    # A server of which nobody knows whether it lives has to echo as if it did.
    identity, live = row.get("origin"), row.get("live") is not False
    tracked = row.get("tracked") is True and is_writer(row)
    echoed = tracked and row.get("echoed") is True
    has_flushed = echoed or (not live and row.get("final_ms") is not None)
    reason = _missed(row, master, since_ms) if has_flushed else _reason(row, live, tracked, since_ms)
    # The queues settle what the tracker missed, too: all of it is shipped, or `_why_not` has looked at the errors.
    if not live and identity in drained:
        reason = None
    elif reason is not None and not live and row.get("final_ms") is None:
        why = f"; {left[identity]}" if identity is not None and identity in left else ""
        reason = f"{reason}{why}; {_last_resort(row, master)}"
    name = row.get("server") or origin_name(identity, {}) or "unknown server"
    # Without an echo, the row's READ_MS may be that of an earlier barrier.
    bounds = (_after_ms(row, master), barrier_ms(row)) if echoed else (None, None)
    return Origin(identity, name, live, tracked, reason, *bounds)


def _accepted(origin: Origin, row: Row, word: Word) -> Origin:
    """Return the origin settled by a word that covers all of FILE; a live one that has not echoed has yet to do so."""
    is_silent = origin.live and not (origin.tracked and row.get("echoed") is True)
    return origin if is_silent else replace(origin, reason=None)


def _with_clock(origin: Origin, row: Row, master: Header, baselines: Collection[int]) -> Origin:
    """Return the origin unsettled if its clock was set back past a baseline, or may have been.

    What it wrote afterwards bears times that the baseline covers, so that a hole or a head counts as accepted.
    """
    if origin.reason is not None or not baselines:
        return origin
    health = _health(row)
    if health is None:
        word = f"{_since(_ALWAYS_MS, master)} {_ACCEPTS}"
        return replace(origin, reason=f"{_UNREADABLE}: its clock may have been set back; {word}")
    back_ms, low_ms = health.get("clock_back_ms") or 0, health.get("clock_low_ms") or 0
    # If nobody knows how far back the clock was set, it may have passed every baseline before `back_ms`.
    passed = [moment for moment in baselines if low_ms <= moment < back_ms]
    if not passed:
        return origin
    reason = (
        f"had its clock set back from up to {iso(back_ms)}, past {iso(max(passed))}, up to which the past is accepted:"
        " what it wrote since may look older. Compare the tables once more (--rows), when its clock shows more than"
        f" that, or accept the past up to then ({_since(back_ms, master)})"
    )
    return replace(origin, reason=reason)


def _health(row: Row) -> dict[str, Any] | None:
    """Return what a row says of its tracker's health; None if that cannot be parsed."""
    health = object_in(row.get("detail") or "{}")
    return health if fits(health, _HEALTH) else None


def _reason(row: Row, live: bool, tracked: bool, since_ms: int | None) -> str | None:
    if live and not tracked:
        return "runs without the tracker"
    if live:
        return "has not flushed past the cut"
    gone_ms = row.get("gone_ms")
    if since_ms is not None and gone_ms is not None and since_ms >= gone_ms:
        return None
    return f"stopped without a final flush (crash, kill or abort), last flush at {iso(row.get('flush_ms'))}"


def _last_resort(row: Row, master: Header) -> str:
    """Return the last resort: the baseline that covers a crashed server that nothing settles."""
    gone_ms = row.get("gone_ms")
    if gone_ms is None:
        return (
            "no tracker has recorded yet that it is gone, which takes up to a minute: run `run -m` again; where the"
            f" master is gone, {_since(_ALWAYS_MS, master)} {_ACCEPTS}, once the tables have been compared"
        )
    return f"{_since(gone_ms, master)} {_ACCEPTS}, once the tables have been compared"


def has_doubts(row: Row) -> bool:
    """Return True if the tracker of a `server` row's server may have missed entries."""
    return _blind_spot(row) is not None


def _missed(row: Row, master: Header, since_ms: int | None) -> str | None:
    """Return why a write-time tracker may have missed entries that are not accepted; None if it has not.

    What it missed was written before the last error, so a baseline that is accepted beyond that covers it.
    """
    blind = _blind_spot(row)
    if blind is None or blind.is_before(since_ms):
        return None
    if blind.until_ms is None:
        return blind.reason
    return f"{blind.reason}; {_since(blind.until_ms, master)} {_ACCEPTS}"


def _since(moment_ms: int, master: Header) -> str:
    """Return the option that accepts what servers did until a time; a check takes no time after FILE's barrier."""
    return since_option(None, moment_ms, master) + (" or later" if moment_ms < known_until_ms(master) else "")


def _slaves_resort(until_ms: int | None, master: Header) -> str:
    """Return how to accept what a tracker of the slave may have missed until a time, by a clock of the slave.

    A word for the master's past, which is taken for no time after the barrier, says nothing of what came later here.
    """
    if until_ms is not None and until_ms <= known_until_ms(master):
        return f"{_since(until_ms, master)} {_ACCEPTS}"
    word = f"--forget TABLE --since TABLE={master.cut_ms}"
    return f"{word}, for each table in scope, accepts what has happened to them on the slave by now"


def _blind_spot(row: Row) -> _BlindSpot | None:
    """Return why a tracker with errors may have missed entries; None without errors."""
    health = _health(row)
    if health is None:
        return _BlindSpot(_UNREADABLE, _ALWAYS_MS)
    errors = health.get("errors")
    if not errors:
        return None
    reason = f"reported {errors} tracker errors: entries may have been missed (see its log)"
    last_ms = health.get("last_error_ms")
    # They are of the origin's clock, which may have shown more before it was set back.
    return _BlindSpot(reason, latest(last_ms, health.get("clock_back_ms")) if is_number(last_ms) else None)


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
