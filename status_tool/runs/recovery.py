"""The recovery point: up to when everything is proven to be on this slave, by what the master has published here.

Each published file is judged as `run -i` judges FILE, against one and the same look at the slave. That look comes after
the list of published files, so that what a file is judged by is never older than the file.

Which file is the newest complete one is found without judging all of them:

- An entry that is missing for a file is missing for every later one: "lacking" holds for the newest files without an
  interruption. The boundary is looked for where the newest file's oldest missing entry was written, by steps that
  double from there on, and by bisecting the last step.
- "Unverifiable" does not: a file that was written after a crash, and before the queues settled it, may lie between two
  complete ones. From that boundary the newest complete file is looked for in the same way, but only the part between
  the last step that was not complete and the first that was is bisected.

So a file is never called complete without having been judged, and the point is never too late. It may be earlier than
the best one: where verdicts change to and fro (crash, settled, crash), where a table that lacked rows was dropped on
the master, or where `prune` on the slave took away what an earlier file needs.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from status_tool.clients.config import Settings
from status_tool.clients.delegation_tokens import no_token_left
from status_tool.errors import StatusFileError, UsageError
from status_tool.explain.overview import words_of_group
from status_tool.gather.snapshot import LEAST_SETTLE_S, Request, Snapshot
from status_tool.printable import iso
from status_tool.published.layout import Closing
from status_tool.published.newest import of_one_master, own_cluster_id
from status_tool.published.table import PublishedTable
from status_tool.report.text import not_covered
from status_tool.rules.peers import FamilyFilter
from status_tool.rules.pruning import StreamKey, key_of
from status_tool.rules.queue_proofs import start_code
from status_tool.rules.segments import Segment, earliest, merged
from status_tool.rules.sides import asked_filter, recorded_filter
from status_tool.rules.streams import is_shipped
from status_tool.runs.answer import Comparison, always
from status_tool.runs.check import Check
from status_tool.runs.live_rounds import question_in
from status_tool.runs.master_side import MasterSide
from status_tool.runs.question import SideFacts
from status_tool.runs.slave_side import Scratch, gather, scratch_of, segment_rows, slave_rows
from status_tool.runs.write import Say
from status_tool.sources.state_table import now_ms
from status_tool.spark.session import Spark, spark_when_needed
from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.details import is_number, object_in
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.outcome import Beyond, Group, Outcome, RecoveryPoint, TablePoint
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Verdict

TABLE_JUDGEMENTS = 40
"""So many files are judged at most to find the points of single tables."""
INTERVALS = 3
"""How many intervals old a point may be by default."""


class Judged(Enum):
    """Judgement of the slave by a published file."""

    COMPLETE = "complete"
    LACKING = "lacking"
    """Something of it is known to be missing here."""
    UNPROVEN = "unproven"
    """Nothing is known to be missing, but not all is proven; or the file cannot be used."""


@dataclass(frozen=True)
class Judgement:
    """A published file that was judged. Without `outcome` it cannot be used; `error` says why."""

    closing: Closing
    header: Header | None = None
    outcome: Outcome | None = None
    tables: Mapping[str, Collection[str]] = field(default_factory=dict)
    """In scope, with their families that were shipped."""
    families: FamilyFilter = field(default_factory=FamilyFilter)
    """Which of their families the peer ships."""
    skew_ms: int | None = None
    heard_ms: int | None = None
    """When the first of the servers read the barrier, on its own clock."""
    lows_ms: frozenset[tuple[str, int, int]] = frozenset()
    """Each server with the latest time from which its clock was set back (0: never), and one that it may show again:
    when it started, and the earliest since it was set back, however often."""
    error: str = ""

    @property
    def judged(self) -> Judged:
        """Return the judgement of the whole."""
        if self.outcome is None or self.outcome.verdict is Verdict.UNVERIFIABLE:
            return Judged.UNPROVEN
        return Judged.COMPLETE if self.outcome.verdict is Verdict.COMPLETE else Judged.LACKING

    def ships(self, table: str, families: Collection[str] = ()) -> bool:
        """Return True if the peer shipped the table then, with these families."""
        return table in self.tables and set(families) <= set(self.tables[table])

    def judged_of(self, table: str, families: Collection[str] = ()) -> Judged:
        """Return the judgement of a table: complete only if nothing is wrong with it, nor with the run as a whole.

        A table that the peer did not ship then, or not all of these families of it, is none of what the file proves,
        although the whole is complete.
        """
        if self.outcome is None or not self.ships(table, families):
            return Judged.UNPROVEN
        if self.judged is Judged.COMPLETE:
            return self.judged
        # A group without a table may be about a server, which may have written to any table.
        own = [group for group in self._groups if group.table in (table, None)]
        # The groups, where there are any, hold whatever keeps the whole from being complete.
        if not own and self._groups:
            return Judged.COMPLETE
        lacking = self.judged is Judged.LACKING and any(group.kind != "unverifiable" for group in own)
        return Judged.LACKING if lacking else Judged.UNPROVEN

    def accepts(self, table: str) -> bool:
        """Return True if the table's past rests on the operator's word."""
        hbase = None if self.outcome is None else self.outcome.hbase
        return hbase is not None and table in hbase.accepted_tables

    def holding(self, table: str | None = None, families: Collection[str] = ()) -> str | None:
        """Return what holds back the whole, or a table with these families, in words; None for nothing."""
        if (self.judged if table is None else self.judged_of(table, families)) is Judged.COMPLETE:
            return None
        if self.outcome is None:
            return self.error
        if table is not None and not self.ships(table, families):
            what = "not all families of the table were" if table in self.tables else "the table was not"
            return f"{what} replicated when the status of {iso(self.closing.barrier_ms)} was published"
        own = [group for group in self._groups if table is None or group.table in (table, None)]
        return _words(own[0]) if own else "the check as a whole is not complete"

    def lacks_from_ms(self, table: str | None = None) -> int | None:
        """Return about when the oldest entry was written that the whole, or a table, lacks; None if unknown."""
        own = (group.from_ms for group in self._groups if table is None or group.table == table)
        return min((from_ms for from_ms in own if from_ms is not None), default=None)

    @property
    def _groups(self) -> Sequence[Group]:
        return self.outcome.overview.groups if self.outcome is not None else ()


@dataclass(frozen=True)
class PointAsked:
    """The request of `recovery-point`."""

    scope: Scope
    master_cluster_id: str | None = None
    """Whose published files count; None: there is only one such master."""
    key: SignKey | None = None
    spark_master: str | None = None
    spark_conf: tuple[tuple[str, str], ...] = ()


def find_point(settings: Settings, asked: PointAsked, say: Say) -> RecoveryPoint:
    """Return the recovery point of this slave.

    Raises the `ConfigurationError` or `ConnectionFailed` of its own side.
    """
    say("listing the published status files")
    table = PublishedTable(settings.thrift(), settings.status_table)
    table.require()
    # The point's age is the one at this moment: to read and to judge the files takes a while.
    read_ms = now_ms()
    # Before the slave is read: no file may be newer than the rows that judge it.
    published = table.published()
    slave_id = own_cluster_id(settings)
    files = of_one_master(published, slave_id, asked.master_cluster_id, "--master-cluster ID")
    notices = tuple(f"published status files that are not counted: {why}" for why in published.unreadable)
    if not files:
        whose = "no master has" if asked.master_cluster_id is None else f"the master {asked.master_cluster_id} has not"
        nothing = (
            f"{whose} published a status file to this cluster within a day, for which they are kept: run `status-tool "
            "publish` on the master"
        )
        return RecoveryPoint(slave_id, None, read_ms, None, None, nothing, None, {}, None, None, 0, 0, notices)
    check = Check(Path(), asked.scope, spark_master=asked.spark_master, spark_conf=asked.spark_conf, key=asked.key)
    with ThreadPoolExecutor(1) as pool, no_token_left(), scratch_of(check) as scratch:
        request = Request(side=SLAVE, wait_s=LEAST_SETTLE_S, hdfs=False)
        # Every file is judged by the same rows of the slave, so they are written down however many there are.
        reading = pool.submit(gather, settings, request, say, scratch, reads_again=True)
        with spark_when_needed(asked.spark_master, asked.spark_conf) as spark:
            slave = reading.result()
            bench = _Bench(table, spark, slave, check, scratch, say)
            found = _Search(files, bench.judge)
            found.run()
            found.run_tables()
            beyond = bench.beyond(found.at(found.newest_usable())) if found.has_usable() else {}
    return _answer(slave_id, read_ms, files, found, beyond, notices)


@dataclass(frozen=True)
class _Bench:
    """Judges published files, all by the same look at the slave."""

    table: PublishedTable
    spark: Spark
    slave: Snapshot
    check: Check
    scratch: Scratch
    say: Say

    @cached_property
    def _slave_rows(self) -> DataFrame | pa.Table:
        return slave_rows(self.spark, self.slave, self.scratch)

    def judge(self, closing: Closing) -> Judgement:
        """Judge a file. One that is not whole, or refused, is unproven."""
        with tempfile.TemporaryDirectory(prefix="status-tool-", dir=self.scratch.folder) as folder:
            path = Path(folder) / "published.status"
            try:
                self.table.fetch(closing, path, self.check.key)
                return self._judged(closing, path)
            except (StatusFileError, UsageError) as error:
                return Judgement(closing, error=str(error))

    def _judged(self, closing: Closing, path: Path) -> Judgement:
        with open_status(path, require_side=MASTER, key=self.check.key) as file:
            side = MasterSide(file, file.header)
            refuse_narrower(file.header, self.check.scope)
            question = question_in(side, SideFacts(self.slave.header, self.slave.rows), self.check)
            comparison = Comparison(self.check, question, side, self._slave_rows, path.parent)
            outcome = comparison.answer(self.spark, self.say, always)
            shipped, families = question.shipped, question.queues.families
            facts = side.facts()
            heard_ms = min(_heard_ms(facts), default=None)
            lows_ms = frozenset(_lows_ms(facts))
            return Judgement(closing, file.header, outcome, shipped, families, _skew_ms(facts), heard_ms, lows_ms)

    def beyond(self, newest: Judgement) -> Mapping[str, Beyond]:
        """Return what lies beyond, by table, from the heads in the newest usable file and the segments here."""
        path = self.scratch.folder / "newest.status"
        # Without the key, which `open_status` asks for.
        self.table.fetch(newest.closing, path)
        with open_status(path, require_side=MASTER, key=self.check.key) as file:
            segments = known_segments(self.slave, self.scratch)
            heads, slave_id = rows_in(file.rows({"stream"})), self.slave.header.cluster_id
            lacking = {table for table in newest.tables if newest.judged_of(table) is Judged.LACKING}
            return beyond_of(heads, segments, newest.families, slave_id, lacking)


def refuse_narrower(header: Header, scope: Scope) -> None:
    """Raise `StatusFileError` for a published file of fewer tables than the point is asked of."""
    held = recorded_filter(header)
    if not held.covers(asked_filter(scope)):
        raise StatusFileError(
            f"the status file published at {iso(header.barrier_issued_ms)} holds only {held} (--table or --namespace "
            "of publish): ask for these by --table or --namespace, or publish all tables"
        )


class _Search:
    """Search for complete files among the published ones, newest first. Judges as few as possible, each once."""

    def __init__(self, files: Sequence[Closing], judge: Callable[[Closing], Judgement]) -> None:
        self._files = files
        self._judge = judge
        self.done: dict[int, Judgement] = {}

    def at(self, number: int) -> Judgement:
        """Return the judgement of a file."""
        if number not in self.done:
            self.done[number] = self._judge(self._files[number])
        return self.done[number]

    def run(self) -> None:
        """Look for the newest complete file."""
        _look(0, len(self._files), lambda number: self.at(number).judged, self._before_what_lacks)

    def run_tables(self) -> None:
        """Look for the newest file in which a table is complete, for each that is held back in the newest one."""
        end = min((number for number, one in self.done.items() if one.judged is Judged.COMPLETE), default=None)
        end = len(self._files) if end is None else end
        # A newer file that turns out to be usable may lack a table of these.
        before, tables = len(self.done), self.tables()

        def judged(table: str, number: int) -> Judged:
            # As if unproven: the point of a table may be earlier than the best one, and never later.
            if len(self.done) - before >= TABLE_JUDGEMENTS and number not in self.done:
                return Judged.UNPROVEN
            return self.at(number).judged_of(table, tables[table])

        for table in sorted(tables):
            _look(0, end, partial(judged, table), partial(self._before_what_lacks, table=table))

    def _before_what_lacks(self, number: int, table: str | None = None) -> int | None:
        """Return the newest file that was written before the oldest entry that a judged one is known to lack.

        None if that is unknown. It is only where to look first: clocks may differ, and the entry may be much younger.
        """
        from_ms = self.at(number).lacks_from_ms(table)
        if from_ms is None:
            return None
        # Files are sorted newest first, and `bisect` needs ascending keys.
        # It is a guess: where clocks were set back, times do not fall from one file to the next.
        return bisect_left(self._files, -from_ms, key=lambda file: -file.barrier_ms)

    def tables(self) -> Mapping[str, Collection[str]]:
        """Return the tables in scope of the newest file that could be used, with their families."""
        return self.done[self.newest_usable()].tables if self.has_usable() else {}

    def has_usable(self) -> bool:
        """Return True if any judged file could be compared at all."""
        return any(one.outcome is not None for one in self.done.values())

    def newest_usable(self) -> int:
        """Return the newest file that could be compared."""
        return min(number for number, one in self.done.items() if one.outcome is not None)

    def point(self, table: str | None = None) -> tuple[Judgement | None, str | None]:
        """Return the newest complete file that was judged, and what the next newer one that was judged lacks.

        Without a complete one of the whole, what the newest usable one lacks: older ones may be refused by now.
        """
        holding, families = None, () if table is None else self.tables()[table]
        for _, one in sorted(self.done.items()):
            judged = one.judged if table is None else one.judged_of(table, families)
            if judged is Judged.COMPLETE:
                return one, holding
            holding = one.holding(table, families)
        is_whole = table is None and self.has_usable()
        return None, self.done[self.newest_usable()].holding() if is_whole else holding


def _look(
    start: int, end: int, judged: Callable[[int], Judged], before_what_lacks: Callable[[int], int | None]
) -> int | None:
    """Return the first number of `[start, end)` that is complete, as the module describes; None: none was found."""
    first = _first(start, end, lambda number: judged(number) is not Judged.LACKING, before_what_lacks)
    if first is None:
        return None
    return _first(first, end, lambda number: judged(number) is Judged.COMPLETE, lambda _: None)


def _first(start: int, end: int, holds: Callable[[int], bool], guess: Callable[[int], int | None]) -> int | None:
    """Return the first number that holds, if all before it do not and all behind it do; else one that holds.

    `guess` says where to look once the first one does not hold; None: it does not know.
    """
    if start >= end or holds(start):
        return start if start < end else None
    low, at, step = start, min(max(guess(start) or 0, start + 1), end - 1), 1
    if at > low and holds(at):
        low, at = _down(low, at, holds)
    else:
        while at < end and not holds(at):
            # No step goes past the last number, which is looked at before the search gives up.
            low, at, step = at, min(at + step, end - 1) if at < end - 1 else end, 2 * step
    if at >= end:
        return None
    while at - low > 1:
        middle = (low + at) // 2
        if holds(middle):
            at = middle
        else:
            low = middle
    return at


def _down(low: int, at: int, holds: Callable[[int], bool]) -> tuple[int, int]:
    """Return a number that does not hold and one above it that does, by steps that double from `at` on."""
    step = 1
    while at - low > 1:
        below = max(at - step, low + 1)
        if not holds(below):
            return below, at
        at, step = below, 2 * step
    return low, at


def _words(group: Group) -> str:
    """Return the group in one sentence, with the place and the number of problems."""
    one = group.example
    places = [f"region {one.region}"] * bool(one.region) + [f"written by {one.origin}"] * bool(one.origin)
    where = f" ({', '.join(places)})" if places else ""
    more = f", and {group.count - 1} more" if group.count > 1 else ""
    return f"{words_of_group(group)}{where}{more}"


def _skew_ms(facts: SideFacts) -> int | None:
    """Return the bound of clock skew (ms): each server read the barrier's token between its issue and FILE's end."""
    header = facts.header
    if header.barrier_issued_ms is None:
        return None
    issued, ended = header.barrier_issued_ms, header.created_ms
    return max((max(abs(at - issued), abs(at - ended)) for at in _heard_ms(facts)), default=None)


def _lows_ms(facts: SideFacts) -> Iterator[tuple[str, int, int]]:
    for row in facts.kind("server"):
        server, health = str(row["server"]), object_in(row["detail"] or "{}") or {}
        # A clock that is set back once more need not show an earlier time than at first.
        back_ms: Any = health.get("clock_back_ms")
        lows: tuple[tuple[int, Any], ...] = (
            (0, start_code(server)),
            (back_ms if is_number(back_ms) else 0, health.get("clock_low_ms")),
        )
        yield from ((server, from_ms, low_ms) for from_ms, low_ms in lows if is_number(low_ms))


def _heard_ms(facts: SideFacts) -> list[int]:
    """Return when the servers read the barrier, each on its own clock.

    One that has crashed since is settled by its echo as well, and what it acknowledged after that may be nowhere. What
    one wrote that stopped in order is in FILE.
    """
    rows = (row for row in facts.kind("server") if row["echoed"] and (row["live"] or row.get("final_ms") is None))
    return [row["read_ms"] for row in rows if row["read_ms"]]


def beyond_of(
    heads: Iterable[Row],
    segments: Iterable[Row],
    families: FamilyFilter,
    slave_id: str,
    lacking: Container[str | None] = (),
) -> dict[str, Beyond]:
    """Return by table the newest known entry, and about how many entries of the heads are known to be missing.

    Sequence ids count entries of all families of a region, and a stream knows how many entries it has: the lesser of
    both is taken. Holes count in tables that are `lacking` something: in others they have been accepted.
    """
    arrived: dict[StreamKey, list[Segment]] = {}
    found: dict[str, tuple[int | None, int]] = {}
    for row in segments:
        prev = (row["prev"] or 0) if row["table"] in lacking else 0
        arrived.setdefault(key_of(row), []).append(Segment(prev, row["seq"] or 0))
        _note(found, row, 0)
    for row in heads:
        if not (is_shipped(row["via_ids"], slave_id) and families.ships(row["table"], row["family"])):
            continue
        left = _left(arrived.get(key_of(row), ()), row["seq"] or 0)
        _note(found, row, left if row["entries"] is None else min(left, row["entries"]))
    return {table: Beyond(newest, missing) for table, (newest, missing) in found.items()}


def _left(segments: Iterable[Segment], head: int) -> int:
    """Return how many sequence ids up to the head no segment covers."""
    return max(0, head) - sum(min(one.seq, head) - min(one.prev, head) for one in merged(segments))


def _note(found: dict[str, tuple[int | None, int]], row: Row, missing: int) -> None:
    if row["table"] is None:
        return
    newest, before = found.get(row["table"], (None, 0))
    times = [time for time in (newest, row["write_ms"]) if time is not None]
    found[row["table"]] = (max(times, default=None), before + missing)


def known_segments(slave: Snapshot, scratch: Scratch) -> Iterator[Row]:
    """Yield the `segment` rows of a look at the slave: from `scratch` as far as they are there, else read now."""
    # With Kerberos this process alone reads the state table, into `files`, and nothing of it is left to Spark.
    for file in (scratch.near, scratch.files):
        if file is not None and file.exists():
            batches = pq.read_table(file).to_batches()
            yield from rows_in(batch.filter(pc.equal(batch["kind"], "segment")) for batch in batches)
    if not scratch.is_near:
        yield from segment_rows(slave)


def rows_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Yield the rows one by one, with what `beyond_of` reads of them."""
    columns = ("region", "origin", "via", "prev", "seq", "entries", "table", "write_ms", "via_ids", "family")
    for batch in batches:
        yield from batch.select(columns).to_pylist()


def _answer(
    slave_id: str,
    read_ms: int,
    files: Sequence[Closing],
    found: _Search,
    beyond: Mapping[str, Beyond],
    notices: tuple[str, ...],
) -> RecoveryPoint:
    whole, holding = found.point()
    # Once for each file that was judged: tables are many, and most have the same point.
    points = {one.closing.name: _point_ms(files[:number], found.done, one) for number, one in found.done.items()}

    def point_ms(one: Judgement | None) -> int | None:
        return None if one is None else points[one.closing.name]

    tables = {}
    for table in sorted(found.tables()):
        point, held_back_by = found.point(table)
        by_word = point is not None and point.accepts(table)
        tables[table] = TablePoint(point_ms(point), held_back_by, beyond.get(table, Beyond()), by_word)
    unusable = [one.error for _, one in sorted(found.done.items()) if one.outcome is None]
    return RecoveryPoint(
        slave_cluster_id=slave_id,
        master_cluster_id=files[0].cluster_id,
        read_ms=read_ms,
        point_ms=point_ms(whole),
        skew_ms=None if whole is None else whole.skew_ms,
        held_back_by=holding,
        evidence=None
        if whole is None or whole.outcome is None or whole.outcome.hbase is None
        else str(whole.outcome.hbase.evidence),
        tables=tables,
        newest_ms=files[0].cut_ms,
        # A publisher of other tables may run more often: its files, which are refused here, are no younger points.
        interval_ms=files[found.newest_usable() if found.has_usable() else 0].interval_ms,
        published=len(files),
        judged=len(found.done),
        notices=(*notices, *dict.fromkeys(unusable)),
        limits=() if whole is None or whole.outcome is None else not_covered(whole.outcome),
    )


def _point_ms(later: Sequence[Closing], done: Mapping[int, Judgement], one: Judgement) -> int | None:
    """Return the cut by the file's own header: no signature covers that of the closing row.

    `later` are the files that are newer, the newest first, and `done` what was judged of them and of others.
    A server vouches for what it acknowledged before it read the barrier, on its own clock: a publisher's clock that is
    ahead does not make the point later than that. Nor does a clock that was set back since, or that of a server that
    has started since: the times that clocks have shown twice are proven once, so that the point is no later than the
    earliest that is known to have been shown again. A clock that has not passed yet what it had shown may have been
    set back once more, to a time between: nothing tells.
    """
    if one.header is None:
        return None
    newer = (done[number].lows_ms for number in range(len(later)) if number in done)
    known = {low for low in one.lows_ms if low[1] < one.header.cut_ms}
    again_ms = (low_ms for _, _, low_ms in frozenset[tuple[str, int, int]]().union(*newer) - known)
    return earliest(one.header.cut_ms, one.heard_ms, *(file.barrier_ms for file in later), *again_ms)
