"""Random samples of rows, in every run: a chance to see what nobody thought of (docs/correctness.md, "Samples").

`run -m` has the region servers digest random ranges of the replicated tables before it puts the barrier; the ranges
travel in FILE; `run -i` has the slave's servers digest the same ones while Spark starts. What is equal is told.
What is not is at first no more than that: writing goes on. It decides against the streams only where these prove the
table, and that nothing has been written to it since shortly before the samples.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.clients.config import Settings
from status_tool.clients.thrift import connection
from status_tool.digests.families import DescribedCluster, comparable, is_described
from status_tool.digests.keys import TableRange
from status_tool.digests.requests import Requests, Sampled
from status_tool.digests.wire import Query
from status_tool.errors import StatusToolError
from status_tool.printable import counted, printable_key
from status_tool.rules.origins import is_writer
from status_tool.rules.pruning import key_of
from status_tool.rules.sides import own_status_table
from status_tool.runs.file_digests import FiledTable, digest_row, filed_tables
from status_tool.runs.question import Question
from status_tool.sources import meta
from status_tool.sources.meta import HostedRegion
from status_tool.sources.state_table import StateTable, now_ms
from status_tool.status_file.reader import StatusFile
from status_tool.vocabulary.details import fits, is_number, loads, map_of, object_of
from status_tool.vocabulary.findings import NO_PROOFS, Finding, RowProofs
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.names import requests_table_of
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.schema import NewRow, Row
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.states import FactState

RANGES = 300
"""Fewer than `REQUEST_TABLES`: they may all be of different tables."""
_HELD = 10_000
_FOREVER_MS = 1 << 62
SAMPLE_ROWS = 4_000
"""Rows of a range at most; a region server ends one at 1 MiB, too."""
PER_REGION = 4
"""Where there are few regions, so many ranges of each."""
AGAIN_S = 30.0
"""Time that those that are not equal are looked at again."""
AT_REST_MS = 2_000
"""Age of a table's newest write when its samples are taken. A younger one may still wait for its WAL's sync, and then
no scan returns it."""
LOADED_MS = 3_600_000
"""Age of a bulk load on the slave when the samples are taken, by whatever clocks. A younger one may be newer."""
_WRITES = pa.array([None, FactState.BULK_LOAD, FactState.LOCAL_LOAD], pa.string())
"""States of rows that tell of writes: a stream has none."""
NEW_TABLE_S = 0.25
"""Pause between looks for the descriptor of a new table, which comes about a second after a barrier is put."""
UNHEARD = 0.5
"""Where no server has answered in this share of the time, none is waited for: a tracker looks each second."""


@dataclass(frozen=True)
class Taken:
    """The master's samples."""

    rows: Sequence[NewRow] = ()
    """FILE's `sample` rows."""
    problem: str = ""
    """Why there are none, if that is known."""


def sampled(settings: Settings, only: TableFilter, within_s: float) -> Taken:
    """Return samples of the master's rows."""
    try:
        return Taken(_sample(settings, only, within_s))
    except StatusToolError as error:
        return Taken(problem=str(error))


def _sample(settings: Settings, only: TableFilter, within_s: float) -> list[NewRow]:
    end = time.monotonic() + within_s
    known = _known_families(settings, UNHEARD * within_s)
    cluster = DescribedCluster(settings, "", known)
    replicated = _replicated(known, only, own_status_table(settings.state_table, known))
    hows = {table: comparable(cluster, cluster, table, names, ()) for table, names in replicated.items()}
    picked = picks(meta.open_regions(settings.thrift(), hows), random.Random(os.urandom(16)))
    if not picked:
        return []
    tables = sorted({region.table for region in picked})
    asked = Query({table: hows[table].families for table in tables}, os.urandom(16), now_ms(), sample_rows=SAMPLE_ROWS)
    with Requests(settings, asked) as requests:
        answers = requests.sample(picked, end - time.monotonic(), UNHEARD * within_s)
    return [
        digest_row("sample", TableRange(one.table, one.interval), one.sums, asked, hows[one.table])
        for one in apart(answers)
    ]


def _known_families(settings: Settings, within_s: float) -> dict[str, dict[str, Any]]:
    """Return the families by table as the trackers wrote them down, mostly for an earlier run.

    Stale ones choose other cells, on both sides alike. Those of a table that is new since come with a barrier.
    """
    with connection(settings.thrift()) as client:
        names = {raw_name.decode(errors="replace") for raw_name in client.tables()}
    # The trackers describe all tables but those that the tool writes to by itself.
    names -= {settings.state_table, requests_table_of(settings.state_table)}
    state, deadline = StateTable(settings.thrift(), settings.state_table), time.monotonic() + within_s
    known = state.known_families()
    if not names <= known.keys():
        state.put_barrier()
    while not names <= known.keys() and time.monotonic() < deadline:
        time.sleep(NEW_TABLE_S)
        known = state.known_families()
    return known


def apart(sampled: Iterable[Sampled]) -> Iterator[Sampled]:
    """Yield samples that share no row: a small region's samples are all the whole region, and each row counts once.

    Without those that have cells with a TTL of their own, which may be gone when the slave is asked.
    """
    last: Sampled | None = None
    lasting = (one for one in sampled if not one.sums.expiring)
    for one in sorted(lasting, key=lambda each: (each.table, each.interval.start)):
        if last is None or last.table != one.table or last.interval.intersection(*one.interval) is None:
            last = one
            yield one


def _replicated(known: Mapping[str, Mapping[str, Any]], only: TableFilter, ours: str) -> dict[str, list[str]]:
    found = {
        table: [name for name, family in families.items() if is_described(family) and family["scope"]]
        for table, families in known.items()
    }
    return {table: names for table, names in found.items() if names and only.holds(table) and table != ours}


def picks(regions: Iterable[HostedRegion], dice: random.Random) -> list[HostedRegion]:
    """Return random regions of many tables, each at most `PER_REGION` times. One range of each is sampled.

    Of many regions only some are held: one that `RANGES` others precede is preceded by so many whatever follows.
    """
    held: list[tuple[float, HostedRegion]] = []
    for region in regions:
        held.append((dice.random(), region))
        if len(held) == _HELD:
            held = _first(held)
    return ([region for _, region in _first(held)] * PER_REGION)[:RANGES]


def _first(drawn: list[tuple[float, HostedRegion]]) -> list[tuple[float, HostedRegion]]:
    """Return `RANGES` regions by their drawn numbers, but every table's first one before any table's second one."""
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, float, HostedRegion]] = []
    for number, region in sorted(drawn, key=itemgetter(0)):
        ranked.append((seen[region.table], number, region))
        seen[region.table] += 1
    ranked.sort(key=itemgetter(0, 1))
    return [(number, region) for _, number, region in ranked[:RANGES]]


@dataclass(frozen=True)
class Repeated:
    """Result of FILE's samples on the slave."""

    equal: tuple[TableRange, ...] = ()
    unequal: tuple[TableRange, ...] = ()
    rows: int = 0
    """In those that are equal."""
    problem: str = ""
    """Why there are none, if that is known."""

    def notice(self, incomplete: Collection[str] = (), *, is_asked: bool = False) -> str | None:
        """Return the result in words. `incomplete` are the tables with streams that have not arrived in whole.

        Where nothing was compared, only a user who has asked for it (`--sample`) is told.
        """
        if not (self.equal or self.unequal):
            why = self.problem or "no region server here has digested one in time, or FILE's are too old (TTL)"
            return f"--sample: none of FILE's random ranges was compared: {why}" if is_asked else None
        ranges, tables = len(self.equal), len({part.table for part in self.equal})
        text = (
            f"{counted(self.rows, 'row')} in {counted(ranges, 'random range')} of {counted(tables, 'table')} compared "
            "as well: equal"
            if self.equal
            else "random ranges compared as well: none is equal"
        )
        agreeing = [part for part in self.unequal if part.table in incomplete]
        others = [part for part in self.unequal if part.table not in incomplete]
        if agreeing:
            count, what = counted(len(agreeing), "range"), "differs" if len(agreeing) == 1 else "differ"
            text += f"; {count} of {_tables_of(agreeing)} {what}, which agrees with what streams lack there"
        if others:
            count, what = counted(len(others), "range"), "is" if len(others) == 1 else "are"
            text += (
                f"; {count} of {_tables_of(others)} {what} not as FILE has {'it' if len(others) == 1 else 'them'}, as "
                "where rows were written after FILE: `run -i FILE --rows=all --master-conf DIR` tells"
            )
        return text


def _tables_of(parts: Iterable[TableRange]) -> str:
    names = sorted({part.table for part in parts})
    return f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''}"


@contextmanager
def repeating(settings: Settings, rows: Iterable[Row], within_s: float) -> Iterator[Callable[[], Repeated]]:
    """Let the slave digest FILE's samples meanwhile. The yielded function waits for the result and returns it."""
    stop = threading.Event()

    def result() -> Repeated:
        try:
            return future.result()
        except StatusToolError as error:
            return Repeated(problem=str(error))

    with ThreadPoolExecutor(1, "row-samples") as pool:
        future = pool.submit(repeat, settings, filed_tables(rows, is_whole=False), within_s, stop)
        try:
            yield result
        finally:
            # First: the pool waits for its thread, which ends by it.
            stop.set()


def repeat(
    settings: Settings, filed: Mapping[str, FiledTable], within_s: float, stop: threading.Event | None = None
) -> Repeated:
    """Digest the ranges on the slave, as many as can be `within_s`. Raises `ConnectionFailed`."""
    lasting = {name: table for name, table in filed.items() if table.unfit is None}
    if not lasting:
        return Repeated()
    first = next(iter(lasting.values()))
    # They were all taken by one request.
    same = {name: table for name, table in lasting.items() if (table.key, table.cut_ms) == (first.key, first.cut_ms)}
    parts = dict(enumerate(TableRange(name, one) for name, table in same.items() for one in table.ranges))
    asked = Query({name: table.families for name, table in same.items()}, first.key, first.cut_ms)
    with Requests(settings, asked, stop) as requests:
        coverages = requests.ask(parts, within_s=within_s).coverages
    equal, unequal, rows = [], [], 0
    for number, part in parts.items():
        if coverages[number].is_whole:
            sums = coverages[number].sums
            if sums.content == same[part.table].ranges[part.interval]:
                equal.append(part)
                rows += sums.rows
            # Replication does not carry a cell's own TTL by default, so such cells differ without a fault.
            elif not sums.expiring:
                unequal.append(part)
    return Repeated(tuple(equal), tuple(unequal), rows)


def disprove(
    settings: Settings,
    question: Question,
    outcome: Outcome,
    repeated: Repeated,
    file: StatusFile,
    slave_small: Iterable[Row],
    slave_now: Callable[[], tuple[Iterable[Row], Iterable[Row]] | None],
) -> RowProofs:
    """Return what samples decide against the streams of tables that these prove.

    Only where nobody is known to have written to the table since shortly before the samples were taken, or to the
    slave's, both sides keep the same cells, they are still not equal, and nothing newer than FILE has arrived after
    that, as far as all servers of the slave have said. `slave_now` reads the slave's small rows and its `segment` rows
    anew. Raises `ConnectionFailed`.
    """
    found = _contradicted(question, outcome, repeated, filed_tables(file.rows_of("sample"), is_whole=False))
    sides = [_described(settings, rows) for rows in (file.rows_of("table"), slave_small)]
    found = {name: table for name, table in found.items() if _keep_the_same(table, *sides)}
    found = _at_rest(found, file, question.master.created_ms) if found else found
    if not found:
        return NO_PROOFS
    again = repeat(settings, found, AGAIN_S)
    heads = {key_of(row): row["seq"] or -1 for row in file.rows_of("stream") if row["table"] in found}
    # After the digests: an entry that had changed the rows by then has its segment now, and a bulk load its time.
    if (now := slave_now()) is None:
        return NO_PROOFS
    small, segments = now
    newer = _loaded(small, found, question) | {
        row["table"] for row in segments if row["seq"] > heads.get(key_of(row), -1)
    }
    return differing([part for part in again.unequal if part.table not in newer], file.rows_of("region"))


def _contradicted(
    question: Question, outcome: Outcome, repeated: Repeated, filed: Mapping[str, FiledTable]
) -> dict[str, FiledTable]:
    """Return the unequal ranges of tables that the streams prove.

    FILE's samples of a table that was written to after the shutdown hold rows that are not in scope.
    """
    later = outcome.hbase.later if outcome.hbase is not None else ()
    doubted = {group.table for group in outcome.overview.groups} | {one.table for one in later}
    doubted |= _explained(outcome, question)
    # A group without a table is about the whole run.
    if None in doubted:
        return {}
    found: dict[str, FiledTable] = {}
    for part in repeated.unequal:
        table = filed[part.table]
        shipped = {name.encode() for name in question.shipped.get(part.table, ())}
        if part.table not in doubted and shipped == table.families.keys():
            kept = found.setdefault(part.table, replace(table, ranges={}))
            kept.ranges[part.interval] = table.ranges[part.interval]
    return found


def _at_rest(found: Mapping[str, FiledTable], file: StatusFile, ended_ms: int) -> dict[str, FiledTable]:
    """Return the tables of which nobody knows a write since shortly before the samples. The barrier ended by then."""
    writes = file.rows({"stream", "fact"})
    newest_ms = _written_ms(writes, found, _behind_ms(file.rows_of("server"), ended_ms))
    return {name: table for name, table in found.items() if newest_ms.get(name, 0) < table.cut_ms - AT_REST_MS}


def _behind_ms(servers: Iterable[Row], ended_ms: int) -> dict[int, int]:
    """Return how far the clock of each live origin may be behind the master's host (ms): it read the token by then."""
    return {
        row["origin"]: ended_ms - row["read_ms"]
        for row in servers
        if is_writer(row) and row["live"] and row["echoed"] and row["read_ms"] is not None
    }


def _written_ms(
    writes: Iterable[pa.RecordBatch], tables: Iterable[str], behind_ms: Mapping[int, int]
) -> dict[str, int]:
    """Return the latest moment of a write to each of these tables, or bulk load, by the clock of the master's host."""
    names, newest = pa.array(sorted(tables), pa.string()), dict[str, int]()
    for batch in writes:
        is_write = pc.and_(pc.is_in(batch["table"], value_set=names), pc.is_in(batch["state"], value_set=_WRITES))
        kept = batch.select(["table", "origin", "write_ms"]).filter(is_write)
        by_origin = pa.table(kept).group_by(["table", "origin"], use_threads=False)
        # Where a null is among them, the result is null: nobody knows.
        latest = by_origin.aggregate([("write_ms", "max", pc.ScalarAggregateOptions(skip_nulls=False))])
        for row in latest.to_pylist():
            name, moment = row["table"], row["write_ms_max"]
            written = _FOREVER_MS if moment is None else moment + behind_ms.get(row["origin"], SKEW_MS)
            newest[name] = max(written, newest.get(name, written))
    return newest


def _loaded(slave_small: Iterable[Row], found: Mapping[str, FiledTable], question: Question) -> set[str]:
    """Return the tables into which a bulk load may have come to the slave since FILE's samples were taken.

    The clocks of the two clusters may differ. A load alone has passed the slave itself when its WAL shows it.
    """
    both = {question.master.cluster_id, question.slave.cluster_id}
    return {
        table
        for table, detail in (
            (str(row["table"]), loads(row["detail"])) for row in slave_small if row["kind"] == "table"
        )
        if table in found and fits(detail, {"written_by": map_of(is_number)})
        for ids, moment in detail["written_by"].items()
        if both <= {*ids.split(",")} and moment > found[table].cut_ms - LOADED_MS
    }


def _explained(outcome: Outcome, question: Question) -> set[str | None]:
    """Return the tables that may differ for another reason: others write to the slave's, or the past is accepted.

    A slave that ships a table back has it written to by its own clients.
    """
    written = {table for table, seen in outcome.seen.items() if seen["written_ms"] is not None}
    if question.master.shutdown_ms is not None:
        return {*(written - question.scope.accepted_drift)}
    # Only a shutdown is the time to doubt the operator's words: two masters go on writing to one table, and what was
    # written before a late peer was added may be on the master alone.
    return {*written, *(outcome.hbase.accepted_tables if outcome.hbase is not None else ())}


def _described(settings: Settings, rows: Iterable[Row]) -> DescribedCluster:
    details = {str(row["table"]): loads(row["detail"]) for row in rows if row["kind"] == "table"}
    families = {
        table: {name: family for name, family in detail["families"].items() if is_described(family)}
        for table, detail in details.items()
        if fits(detail, {"families": map_of(object_of({}))})
    }
    return DescribedCluster(settings, "", families)


def _keep_the_same(filed: FiledTable, master: DescribedCluster, slave: DescribedCluster) -> bool:
    """Return True if both sides keep the same cells of what FILE digested, so that a difference counts."""
    there, here = (side.tables.get(filed.table, {}) for side in (master, slave))
    if not all(name in there and name in here for name in filed.names):
        return False
    how = comparable(master, slave, filed.table, filed.names, ())
    same_ttl = all(there[name]["ttl"] == here[name]["ttl"] for name in filed.names)
    return (
        same_ttl
        and not how.doubts
        and all(how.families[name].versions == family.versions for name, family in filed.families.items())
    )


def differing(parts: Iterable[TableRange], regions: Iterable[Row]) -> RowProofs:
    """Return the evidence against the streams: samples that still differ, and FILE's `region` rows."""
    found = list(parts)
    findings = tuple(_finding(part) for part in found)
    names = frozenset(
        str(row["region"])
        for row in regions
        for part in found
        if row["table"] == part.table and part.interval.intersection(row["start_key"] or b"", row["end_key"] or b"")
    )
    return RowProofs(differing=names, findings=findings)


def _finding(part: TableRange) -> Finding:
    start, stop = part.interval
    end = f"row {printable_key(stop)}" if stop else "the end of the table"
    return Finding(
        "differs",
        table=part.table,
        start_key=start,
        end_key=stop,
        note=f"a random sample, from row {printable_key(start)} to {end}, is not the same on both sides although every "
        "entry has arrived: deletes may hide older timestamps on one side alone, or somebody has written to the slave "
        "itself; if neither is so, this is a defect of the proof, please report it",
    )
