"""`run -i --rows`: tables that streams leave in doubt, compared row by row where the rows live, on both clusters.

Sound because of the order (docs/correctness.md, "Row digests"): the master's digests are taken after the cut, so that
whatever was acknowledged by then is visible to them; the slave's are taken after the queues were seen drained, so that
nothing from before the cut can still change what they show.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import Peer, ZooKeeper
from status_tool.digests.compare import Limits, Result, TableVerdict, compare, equal_at_once
from status_tool.digests.counted import NOT_COUNTED, RowsCounted
from status_tool.digests.differences import Difference, cell_in_words
from status_tool.digests.digest import FOREVER
from status_tool.digests.families import (
    Comparable,
    DescribedCluster,
    comparable,
    describe,
    describe_both,
    nothing_lasting,
)
from status_tool.errors import ConnectionFailed, StatusFileError, StatusToolError
from status_tool.gather.measured_queues import Measured, measure
from status_tool.gather.queue_backlog import has_shipped, standing
from status_tool.printable import counted, iso, printable_key
from status_tool.rules.kept_proofs import KeptBaseline, lasting, proven_until, seen_of, shown_by
from status_tool.rules.server_settings import peers_elsewhere
from status_tool.runs.file_digests import FiledTable, compare_with_file, equal_to_file, filed_tables
from status_tool.runs.question import Question
from status_tool.runs.write import Say
from status_tool.sources import meta
from status_tool.sources.meta import HostedRegion
from status_tool.sources.state_table import StateTable, now_ms
from status_tool.vocabulary.codes import RUNS, STREAM_CODES
from status_tool.vocabulary.details import object_in
from status_tool.vocabulary.findings import NO_PROOFS, Finding, RowProofs
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.verdicts import Status

AT_ONCE = 3
"""Tables that are compared at a time: a region server works on one more request than that."""
DRAIN_S = 10.0
"""Time to wait for the queues without --wait: what was just written is shipped within a second or two."""
CHANGING_S = 30.0
POLL_S = 0.5
MOST_MARKS = 20
_MAY_BE_QUEUED = {
    *("older-than-tracker", "pruned", "unstamped", "contradiction"),
    *(code for code, status in STREAM_CODES.items() if status is not Status.COMPLETE),
}
"""Codes of streams that may not have arrived in whole, and of entries that are in no stream.

Not of bulk loads: FILE's digests are to prove one although nobody knows any more what is in a queue.
"""
_ABSENT = "the slave does not have it"
_GONE = "they changed again before they could be listed"
CompareOne = Callable[[str], Result]


@dataclass(frozen=True)
class RowsAsked:
    """Request of `--rows`."""

    master: Settings | None
    """None: it is not at hand, and FILE's digests are what the slave's rows are held against."""
    every: bool = False
    """`--rows=all`: every replicated table in scope, not only those in doubt."""


class _Queues:
    """The master's queues for one peer, as often as they are looked at; several threads may."""

    def __init__(self, master: Settings, peer_id: str | None) -> None:
        """Prepare to look. None: nobody knows which peer leads to the slave, so the queues of all of them count."""
        self._master, self._peer_id = master, peer_id
        self._ids = frozenset[str]()
        """Ids by which queues have been seen."""
        self._lock = threading.Lock()
        self._marks: list[tuple[float, Measured]] = []
        """Entries that they held earlier, of which not all is known to be shipped; in order."""
        self._until = float("-inf")

    def shipped_until(self) -> float:
        """Read the queues. Returns the latest time (monotonic) before which all appended entries have been applied.

        Raises `ConnectionFailed`.
        """
        with self._lock, ZooKeeper(self._master.zookeeper()) as zookeeper:
            # Before the look: of what is appended during it nothing is known.
            began = time.monotonic()
            measured = measure(self._master, zookeeper)
            # After the queues: HBase deletes them with their peer, and then their absence proves nothing.
            peers = self._peers(zookeeper, measured)
            if not peers:
                return self._until
            passed = [at for at, mark in self._marks if all(has_shipped(mark, measured, one.id) for one in peers)]
            if standing(measured, peers)["drained"]:
                passed.append(began)
            self._until = max((self._until, *passed))
            marks = [one for one in (*self._marks, (began, measured)) if one[0] > self._until]
            # Thinned out: a long backlog passes old ones first, and one with a server that is gone is never passed.
            self._marks = marks if len(marks) <= MOST_MARKS else [*marks[1:-1:2], marks[-1]]
            return self._until

    def _peers(self, zookeeper: ZooKeeper, measured: Measured) -> list[Peer]:
        """Return the peers whose queues count; none if one of them is gone, as HBase deletes its queues with it."""
        if self._peer_id is not None:
            return [peer for peer in zookeeper.peers() if peer.id == self._peer_id]
        queues = measured.queues
        ids = {queue.peer for queue in queues.queues} | {refs.peer for refs in queues.hfile_refs}
        self._ids |= ids
        return [Peer(one, "", True, 0) for one in sorted(ids)] if ids == self._ids else []

    def wait(self, wait_s: float, stop: threading.Event) -> bool:
        """Return True if everything appended before this call was applied within `wait_s`, unless `stop` is set."""
        began = time.monotonic()
        while self.shipped_until() < began:
            if time.monotonic() - began > wait_s or stop.wait(POLL_S):
                return False
        return True


class RowComparison:
    """Comparison of the tables that `--rows` asks for: what streams leave in doubt, or all of them.

    All of them need not wait for the streams: `begin` compares them beside Spark's start.
    """

    def __init__(
        self,
        asked: RowsAsked,
        slave: Settings,
        question: Question,
        rows: Iterable[Row],
        wait_s: float,
        say: Say,
        stop: threading.Event,
    ) -> None:
        """Prepare it. `rows` are the `server`, `table` and `digest` rows of FILE; `stop` withdraws all requests."""
        self._asked, self._slave, self._question, self._say, self._stop = asked, slave, question, say, stop
        self._known, self._wait_s = list(rows), max(DRAIN_S, wait_s)
        self._is_elsewhere = any(peers_elsewhere(row for row in self._known if row["kind"] == "server"))
        """True if the peer of the question may be one of before, and its queue none that counts."""
        self._way: _Way | None = None
        self._results: dict[str, Result] = {}

    @property
    def tables(self) -> Collection[str]:
        """The tables that were compared."""
        return self._results.keys()

    def begin(self, counted: RowsCounted = NOT_COUNTED) -> None:
        """Compare all tables, if nothing of them can be in a queue. Raises as `proofs` does."""
        tables = tuple(sorted(self._question.shipped))
        if tables and self._question.peer is not None:
            self._way = self._way_to(tables, counted)
            # Only an outcome tells of which tables something may be queued: if anything may, `proofs` compares the
            # others.
            self._compare(self._way, tables if self._way.drained else ())

    def proofs(self, outcome: Outcome, counted: RowsCounted = NOT_COUNTED) -> RowProofs:
        """Compare what is left, and keep what is proven in the slave's state table.

        `outcome` has an overview, and was read before anything was compared: what the slave sees later ends a proof.
        Raises `ConnectionFailed`, and `StatusFileError` where the clusters are not those of the question.
        """
        question, known = self._question, self._known
        tables = tables_in_doubt(question, outcome, self._asked.every)
        if not tables or question.peer is None:
            return NO_PROOFS
        way = self._way or self._way_to(tables, counted)
        pending = frozenset() if way.drained else _waiting_for_queues(tables, outcome)
        self._compare(way, [table for table in tables if table not in pending])
        proofs = _proofs(self._results, pending, self._asked.master or self._slave, question.scope.max_problems)
        until_ms = proven_until(row for row in known if row["kind"] == "server")
        return _recorded(proofs, self._results, self._slave, question, outcome, until_ms, way.shown)

    def _way_to(self, tables: Sequence[str], counted: RowsCounted) -> _Way:
        self._say(f"comparing the rows of {len(tables)} tables")
        master = self._asked.master
        return self._by_file(tables, counted) if master is None else self._by_master(master, tables, counted)

    def _by_file(self, tables: Sequence[str], counted: RowsCounted) -> _Way:
        question, stop = self._question, self._stop
        # FILE says what its rows were, and what was in its queues then.
        # None, where a length is unknown, is not drained.
        drained = question.queues.left_bytes == 0 and not self._is_elsewhere
        filed = filed_tables(row for row in self._known if row["kind"] == "digest")
        there = describe(self._slave, tables, self._say)
        _refuse_other("slave", there, question.slave)

        def first_look(names: Sequence[str]) -> dict[str, Result]:
            usable = [filed[name] for name in names if _unusable(filed.get(name), there, question, name) is None]
            return {result.table: result for result in equal_to_file(there, usable, counted, stop)}

        def compare_one(table: str) -> Result:
            digests = filed.get(table)
            reason = _unusable(digests, there, question, table)
            if digests is None or reason is not None:
                return _undecided(question, table, str(reason))
            return compare_with_file(there, digests, self._wait_s, counted, stop)

        details = {row["table"]: row["detail"] for row in self._known if row["kind"] == "table"}
        return _Way(drained, compare_one, first_look, lambda table: shown_by(object_in(details.get(table)) or {}))

    def _by_master(self, master: Settings, tables: Sequence[str], counted: RowsCounted) -> _Way:
        question, stop = self._question, self._stop
        queues = _Queues(master, None if question.peer is None or self._is_elsewhere else str(question.peer["id"]))
        # Before the slave digests anything: what is still in a queue may change rows that are equal now.
        drained = queues.wait(self._wait_s, stop)
        ours, theirs = describe_both(master, self._slave, tables, self._say)
        _refuse_other("master", ours, question.master)
        _refuse_other("slave", theirs, question.slave)
        # By the cut, not by now: of a family that keeps nothing so old, equal rows say nothing of what is in scope.
        cut_ms, wait_s = question.master.cut_ms, max(CHANGING_S, self._wait_s)
        limits = Limits(cut_ms, wait_s, max_problems=question.scope.max_problems)

        def how(table: str) -> Comparable | str:
            """Return how to compare a table, or why that is not possible."""
            reason = _uncomparable(ours, theirs, question, table)
            return comparable(ours, theirs, table, question.shipped[table], ()) if reason is None else reason

        def first_look(names: Sequence[str]) -> dict[str, Result]:
            hows = {name: one for name in names if not isinstance(one := how(name), str)}
            return equal_at_once(ours, theirs, hows, limits, counted, stop)

        def compare_one(table: str) -> Result:
            one = how(table)
            if isinstance(one, str):
                return _undecided(question, table, one)
            return compare(ours, theirs, table, one, limits, counted, queues.shipped_until, stop)

        return _Way(drained, compare_one, first_look, lambda table: shown_by({"families": ours.tables.get(table)}))

    def _compare(self, way: _Way, tables: Sequence[str]) -> None:
        new = [table for table in tables if table not in self._results]
        self._results |= _glance(way, new)
        left = [table for table in new if table not in self._results]
        self._results |= _at_once(self._question, way.compare_one, left, self._stop)


def _glance(way: _Way, tables: Sequence[str]) -> dict[str, Result]:
    """Return the first look at many tables. If it fails, each is compared and reported by itself."""
    # `_at_once` compares so few in one go, and says what is wrong with each.
    if len(tables) <= AT_ONCE:
        return {}
    try:
        return way.first_look(tables)
    except ConnectionFailed:
        return {}


@dataclass(frozen=True)
class _Way:
    """Way to compare tables: with the master, or with FILE's digests."""

    drained: bool
    """True if everything appended before was applied within `wait_s`."""
    compare_one: CompareOne
    first_look: Callable[[Sequence[str]], dict[str, Result]]
    """Those of many tables that are equal at once: of others nothing is said."""
    shown: Callable[[str], Mapping[str, Sequence[int]]]
    """What the master's table kept as its rows were digested (`kept_proofs.shown_by`)."""


def _unusable(digests: FiledTable | None, slave: DescribedCluster, question: Question, table: str) -> str | None:
    if digests is None:
        return "FILE has no digests of it (`run -m -o FILE --rows=all`), and --master-conf names no master"
    if not {name.encode() for name in question.shipped[table]} <= digests.families.keys():
        return "FILE's digests are not of all families that the peer ships: write FILE again"
    if table not in slave.tables:
        return _ABSENT
    if cut_short := [name for name in digests.names if _is_cut_short(digests, slave.tables[table].get(name, {}), name)]:
        return f"FILE's digests leave out what MIN_VERSIONS of family {', '.join(cut_short)} keeps: write FILE again"
    return nothing_lasting(digests.families, question.master.cut_ms)


def _is_cut_short(digests: FiledTable, family: Mapping[str, Any], name: str) -> bool:
    """Return True if the slave keeps cells that are older than those that were digested."""
    return bool(family.get("min_versions")) and digests.families[name.encode()].oldest != FOREVER


def _undecided(question: Question, table: str, reason: str) -> Result:
    return Result(table, TableVerdict.UNVERIFIABLE, question.shipped[table], reasons=(reason,))


def tables_in_doubt(question: Question, outcome: Outcome, every: bool) -> tuple[str, ...]:
    """Return the replicated tables that are not proven in all parts, accepted ones among them.

    All of them where the whole run is in doubt.
    """
    groups = outcome.overview.groups
    named = {group.table for group in groups if group.table is not None}
    named |= set(outcome.hbase.accepted_tables) if outcome.hbase is not None else set()
    doubts = {name for name, code in RUNS.items() if code.is_about_rows}
    if every or any(group.table is None and group.code in doubts for group in groups):
        return tuple(sorted(question.shipped))
    return tuple(sorted(named & question.shipped.keys()))


def _waiting_for_queues(tables: Iterable[str], outcome: Outcome) -> frozenset[str]:
    """Return the tables with entries that may still be in a queue: their rows may be equal now, and differ later."""
    groups = outcome.overview.groups
    # An unsettled server may have written to any table, and nobody reads the queues of peers that are elsewhere.
    if any(group.code in ("origin", "peers-elsewhere") for group in groups):
        return frozenset(tables)
    # A word is no arrival: rows that are equal before the rest arrives would make a proof of it.
    accepted = outcome.hbase.accepted_tables if outcome.hbase is not None else ()
    # Nor has anybody asked whether entries have arrived that are later than the shutdown time: a proof covers them.
    later = {one.table for one in outcome.hbase.later} if outcome.hbase is not None else set()
    named = {group.table for group in groups if group.code in _MAY_BE_QUEUED}
    return frozenset(tables) if None in later else frozenset(tables) & {*accepted, *later, *named}


def _refuse_other(side: str, cluster: DescribedCluster, asked: Header) -> None:
    if cluster.id != asked.cluster_id:
        raise StatusFileError(
            f"FILE is about the {side} {asked.cluster_id}, but rows would be read from cluster {cluster.id}: check "
            "--master-conf and --conf-dir"
        )


def _at_once(
    question: Question, compare_one: CompareOne, tables: Sequence[str], stop: threading.Event
) -> dict[str, Result]:
    """Compare several tables at a time. Ctrl-C withdraws their requests by `stop`.

    What goes wrong with one leaves it in doubt, and no other.
    """

    def one(table: str) -> Result:
        try:
            return compare_one(table)
        except StatusToolError as error:
            return _undecided(question, table, str(error))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            return dict(zip(tables, pool.map(one, tables), strict=True))
        except BaseException:
            # First: `ThreadPoolExecutor.__exit__` waits for the threads, which end by it.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _uncomparable(master: DescribedCluster, slave: DescribedCluster, question: Question, table: str) -> str | None:
    gone = [name for name in question.shipped[table] if name not in master.tables.get(table, {})]
    if gone:
        return f"the master does not have family {', '.join(gone)} of FILE any more: write FILE again"
    return None if table in slave.tables else _ABSENT


def _proofs(results: Mapping[str, Result], pending: frozenset[str], master: Settings, max_problems: int) -> RowProofs:
    findings: list[Finding] = []
    differing: set[str] = set()
    notices: list[str] = []
    if pending:
        notices.append(
            f"the rows of {counted(len(pending), 'table')} were not compared ({', '.join(sorted(pending)[:3])}"
            f"{', …' if len(pending) > 3 else ''}): replication still has entries to ship, which may change them;"
            " `status-tool queues` on the master shows them, --wait waits for them"
        )
    room = max_problems
    for name, result in results.items():
        if result.verdict is TableVerdict.DIFFERS:
            regions = list(meta.open_regions(master.thrift(), (name,)))
            differing |= {one.encoded for one in regions if _holds_any(one, result)}
            # At least one of each table: it has the repair.
            listed = result.differences[: max(1, room)]
            room -= len(listed)
            # Without READ on the table no cell can be listed, and yet the rows differ.
            findings += [_finding(name, one, regions) for one in listed] or [
                Finding("differs", table=name, note="; ".join(("rows differ", *(result.reasons or (_GONE,)))))
            ]
            if not result.is_all or len(listed) < len(result.differences):
                why = "; ".join(result.reasons) or "--max-problems"
                notices.append(f"table {name}: not all cells that differ are listed ({why})")
    findings += [
        Finding("not-compared", table=name, note="; ".join(result.reasons))
        for name, result in results.items()
        if result.verdict is TableVerdict.UNVERIFIABLE
    ]
    equal = frozenset(name for name, result in results.items() if result.verdict is TableVerdict.EQUAL)
    if equal:
        rows = sum(results[name].sums.rows for name in equal)
        notices.append(f"{counted(rows, 'row')} of {counted(len(equal), 'table')} compared: equal on both sides")
    return RowProofs(equal, frozenset(differing), tuple(findings), tuple(notices))


def _recorded(
    proofs: RowProofs,
    results: Mapping[str, Result],
    slave: Settings,
    question: Question,
    outcome: Outcome,
    until_ms: int | None,
    shown: Callable[[str], Mapping[str, Sequence[int]]],
) -> RowProofs:
    """Record the proofs of tables that streams left in doubt, with a notice: later runs need not compare them again."""
    proven = sorted(proofs.equal & set(tables_in_doubt(question, outcome, every=False)))
    notices: list[str] = []
    if until_ms is not None:
        found = {
            table: _kept(results[table], until_ms, outcome.seen[table], shown(table))
            for table in proven
            if table in outcome.seen
        }
        kept, notices = lasting(found, now_ms())
        proven = [table for table in proven if table in kept or table not in found]
        records = {table: one.to_json() for table, one in kept.items()}
        StateTable(slave.thrift(), slave.state_table).record_kept(question.master.cluster_id, records)
    if proven:
        notices.append(kept_words(proven, until_ms, question.master))
    return replace(proofs, notices=(*proofs.notices, *notices))


def _kept(result: Result, until_ms: int, seen: Mapping[str, Any], shown: Mapping[str, Sequence[int]]) -> KeptBaseline:
    compared = {family: kept for family, kept in shown.items() if family in result.families}
    return KeptBaseline(until_ms, frozenset(result.families), seen_of(seen), shown=compared)


def kept_words(tables: Sequence[str], until_ms: int | None, master: Header) -> str:
    """Return the notice on what later runs need not compare again, or on when to run again."""
    shown = f"{counted(len(tables), 'table')} ({', '.join(tables[:3])}{', …' if len(tables) > 3 else ''})"
    if until_ms is None:
        return (
            f"nothing is kept of the proof of {shown}: a region server of the master had not answered the barrier when "
            "FILE was written, so that its clock is not known; run again with a FILE whose servers all answer"
        )
    words = f"{shown}: what was written up to {iso(until_ms)} counts as proven from now on, also without --rows"
    if master.coverage_ms is None:
        return f"{words}; the next run is in doubt again until every region server of the master is tracked"
    if until_ms < master.coverage_ms:
        again = iso(master.coverage_ms + master.cut_ms - until_ms)
        return (
            f"{words}, but trackers watch all of the master only since {iso(master.coverage_ms)}, so that the next run "
            f"is in doubt again: write FILE after {again} and run once more with --rows"
        )
    return words


def _holds_any(region: HostedRegion, result: Result) -> bool:
    return any(one.intersection(region.start, region.stop) is not None for one in result.intervals)


def _finding(table: str, one: Difference, regions: list[HostedRegion]) -> Finding:
    held = [r.encoded for r in regions if r.start <= one.row and (not r.stop or one.row < r.stop)]
    written_ms = one.master_ms if one.master_ms is not None else one.slave_ms
    return Finding(
        "differs",
        table=table,
        region=held[0] if held else None,
        start_key=one.row,
        end_key=one.row + b"\0",
        written_from_ms=written_ms,
        written_to_ms=written_ms,
        note=f"row {printable_key(one.row)}, column {printable_key(one.family + b':' + one.qualifier)}: "
        f"{cell_in_words(one)}",
    )
