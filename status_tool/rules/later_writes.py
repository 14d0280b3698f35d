"""Writes after the shutdown time: they are not in scope, so they must be reported rather than ignored.

A shutdown time that was recorded on an earlier occasion would excuse everything written since. One that is given with
`-s` is current.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from status_tool.printable import counted, few, iso
from status_tool.rules.origins import known_shutdown
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import BY_CHECK, BY_OPTION, Header
from status_tool.vocabulary.names import plain_name
from status_tool.vocabulary.outcome import LaterWrites
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Evidence

Counts = Mapping[str | None, tuple[int, int]]
"""By table: streams, and the newest write (epoch ms)."""


def later_bound(master: Header, after_ms: int | None) -> int | None:
    """The write time beyond which an origin counts as having written after the shutdown; None: no such time is known.

    `after_ms` is the origin's own bound, where its clock is known.
    """
    if not known_shutdown(master):
        return None
    # The origin's clock is not known then, and may be ahead: a write in time counts as late, a doubt too many at most.
    return after_ms if after_ms is not None else master.shutdown_ms


def written_later(code: str, write_ms: int | None, bound_ms: int | None) -> bool:
    """Return True if a stream was written to beyond its `later_bound`. Writes within the baseline do not count."""
    return code != "baseline" and bound_ms is not None and (write_ms or 0) > bound_ms


def later_writes(counts: Counts) -> tuple[LaterWrites, ...]:
    """Return the later writes by table, the newest write first."""
    found = [LaterWrites(table, streams, newest) for table, (streams, newest) in counts.items() if streams]
    return tuple(sorted(found, key=lambda one: (-one.newest_ms, one.table or "")))


def accepted_by(master: Header, scope: Scope, evidence: Evidence) -> str | None:
    """Return who accepted later writes, in words; None if nobody did, so that they are doubtful.

    The original's rule for timestamps is unchanged: there they are only reported.
    """
    if scope.ignore_later_writes:
        return "--ignore-later-writes"
    if master.shutdown_from in (BY_OPTION, BY_CHECK):
        return "-s"
    return "as the original tool has it" if evidence is Evidence.TIMESTAMPS else None


def later_findings(later: Iterable[LaterWrites], master: Header) -> list[Finding]:
    """Return one finding for each table with later writes."""
    return [
        Finding(
            "later-writes",
            table=one.table,
            written_from_ms=master.shutdown_ms,
            written_to_ms=one.newest_ms,
            holes=one.streams,
        )
        for one in later
    ]


def later_notice(later: tuple[LaterWrites, ...], accepted: str) -> str:
    """Return the notice about later writes that were accepted."""
    streams = sum(one.streams for one in later)
    tables = few([plain_name(one.table or "unknown") for one in later], 5)
    return (
        f"{counted(streams, 'stream')} ({tables}): written to after the shutdown time, the newest write at"
        f" {iso(later[0].newest_ms)}; these writes are not in scope ({accepted})"
    )
