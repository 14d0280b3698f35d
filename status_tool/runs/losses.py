"""Losses after an unplanned failover: what the old master holds that the slave never got, by `run -m` and `run -i` in
one.

Both clusters are read, and nothing is shipped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from status_tool.clients.config import Settings
from status_tool.errors import UsageError
from status_tool.explain.overview import words_of_group
from status_tool.gather.snapshot import Request
from status_tool.published.newest import own_cluster_id
from status_tool.runs.check import Check
from status_tool.runs.file_check import check_live
from status_tool.runs.live_rounds import question_in
from status_tool.runs.master_side import MasterSide
from status_tool.runs.question import SideFacts
from status_tool.runs.recovery import beyond_of, known_segments, rows_in
from status_tool.runs.slave_side import gather, scratch_of, slave_request
from status_tool.runs.write import Say, write_side
from status_tool.status_file.reader import open_status
from status_tool.temporary import temporary_folder
from status_tool.vocabulary.outcome import Group, Outcome
from status_tool.vocabulary.verdicts import INCOMPLETE_REGIONS, Status


@dataclass(frozen=True)
class LostTable:
    """Entries of a table that the slave lacks. Times are write times, epoch ms; None if unknown."""

    regions: int
    """Number of regions that lack something."""
    of_regions: int
    entries: int | None
    """About how many entries, as heads and segments tell."""
    from_ms: int | None
    to_ms: int | None
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class LostData:
    """The answer."""

    outcome: Outcome
    """Outcome of the check: its verdict decides the exit code."""
    tables: Mapping[str, LostTable]
    unproven: Mapping[str, str]
    """By table, or empty for the whole, why not even that is certain."""


def find_lost(master: Settings, slave: Settings, request: Request, check: Check, say: Say) -> LostData:
    """Hold the old master against the slave. `request` is the master's; FILE of `check` is written anew."""
    if own_cluster_id(master) == own_cluster_id(slave):
        raise UsageError(
            "the slave that was named is this cluster itself: `lost` runs on the old master and needs both"
        )
    with temporary_folder() as folder:
        file = folder / "master.status"
        write_side(master, request, file, say)
        check = dataclasses.replace(check, status_file=file)
        outcome = check_live(slave, check, say)
        lacking = {group.table for group in outcome.overview.groups if group.kind in INCOMPLETE_REGIONS}
        return _lost(outcome, _missing_entries(slave, check, lacking, say))


def _missing_entries(
    slave: Settings, check: Check, lacking: Collection[str | None], say: Say
) -> Mapping[str, int | None]:
    """Return by table about how many entries of FILE's heads the slave lacks; `lacking` names those that lack any."""
    with open_status(check.status_file) as file, scratch_of(check) as scratch:
        side = MasterSide(file, file.header)
        # Read anew: `check_live` has removed the rows that it had.
        seen = gather(slave, slave_request(side, check), say, scratch)
        families = question_in(side, SideFacts(seen.header, seen.rows), check).queues.families
        heads, segments = rows_in(file.rows({"stream"})), known_segments(seen, scratch)
        beyond = beyond_of(heads, segments, families, seen.header.cluster_id, lacking)
        return {table: one.missing for table, one in beyond.items()}


def _lost(outcome: Outcome, entries: Mapping[str, int | None]) -> LostData:
    found: dict[str, list[Group]] = {}
    unproven: dict[str, str] = {}
    for group in outcome.overview.groups:
        if group.table is not None and group.kind in INCOMPLETE_REGIONS:
            found.setdefault(group.table, []).append(group)
        else:
            unproven.setdefault(group.table or "", words_of_group(group))
    regions = {line.table: line.regions for line in outcome.overview.tables}
    tables = {name: _lost_table(groups, regions.get(name, {}), entries.get(name)) for name, groups in found.items()}
    return LostData(outcome, tables, unproven)


def _bound(of: Callable[[Iterable[int]], int], times: Iterable[int | None]) -> int | None:
    """Return the first or last of times; None if one of them is unknown, which may be beyond all others."""
    all_times = list(times)
    known = [time for time in all_times if time is not None]
    return of(known) if known and len(known) == len(all_times) else None


def _lost_table(groups: Sequence[Group], regions: Mapping[Status, int], entries: int | None) -> LostTable:
    return LostTable(
        regions=sum(count for status, count in regions.items() if status in INCOMPLETE_REGIONS),
        of_regions=sum(regions.values()),
        entries=entries,
        from_ms=_bound(min, (group.from_ms for group in groups)),
        to_ms=_bound(max, (group.to_ms for group in groups)),
        kinds=tuple(dict.fromkeys(group.kind for group in groups)),
    )
