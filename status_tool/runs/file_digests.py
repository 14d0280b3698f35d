"""Row digests in FILE: `run -m --rows` takes them on the master, `run -i --rows` holds the slave's rows against them.

For a check with the master gone. What is equal is proven as with both at hand; what is not, only a comparison with both
can tell from what has changed, so it is never called different here.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from status_tool import printable
from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.digests.compare import Result, TableVerdict
from status_tool.digests.counted import NOT_COUNTED, RowsCounted
from status_tool.digests.digest import Family, Sums
from status_tool.digests.families import (
    Comparable,
    DescribedCluster,
    comparable,
    nothing_lasting,
    require_described,
    require_same_cluster,
)
from status_tool.digests.keys import Interval, TableRange, chunks, cut, tiles
from status_tool.digests.requests import Asked, Requests
from status_tool.digests.wire import REQUEST_TABLES, Query
from status_tool.errors import ConnectionFailed
from status_tool.rules.origins import judge_origins
from status_tool.rules.peers import PeerFacts, parse_peer, shipped, ships
from status_tool.rules.queue_proofs import queue_facts
from status_tool.rules.tables import TableQuestion, judge_tables, table_ages
from status_tool.runs.question import SideFacts
from status_tool.sources.state_table import now_ms
from status_tool.vocabulary.details import fits, is_number, is_text, list_of, loads, map_of, optional
from status_tool.vocabulary.schema import NewRow, Row
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.states import FactState

NOT_IN_STREAMS = frozenset({FactState.BULK_LOAD, FactState.LOCAL_LOAD, FactState.CHANGED, FactState.CONTENT})
"""Facts of regions for which streams cannot speak."""
UNEQUAL_POLL_S = 1.0
_DETAIL = {
    "key": is_text,
    "cut_ms": is_number,
    "horizon_ms": optional(is_number),
    "families": map_of(list_of(is_number)),
    "sums": is_text,
}


@dataclass(frozen=True)
class FiledTable:
    """A table's digests in FILE."""

    table: str
    key: bytes
    cut_ms: int
    horizon_ms: int | None
    """After it, cells that were digested may have outlived their TTL."""
    families: dict[bytes, Family]
    ranges: dict[Interval, tuple[int, ...]]
    """`Sums.content` by range; those of `digest` rows tile the table."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the families."""
        return tuple(name.decode() for name in self.families)

    @property
    def is_outdated(self) -> bool:
        """Return True if cells may have outlived their TTL since."""
        return self.horizon_ms is not None and now_ms() > self.horizon_ms

    @property
    def unfit(self) -> str | None:
        """Return why these digests prove nothing; None if they do."""
        if self.is_outdated:
            return "FILE's digests are too old: cells may have outlived their TTL since"
        return nothing_lasting(self.families, self.cut_ms)


def doubtful_tables(master: SideFacts, facts: Iterable[Row], regions: Iterable[Row], only: TableFilter) -> list[str]:
    """Return the shipped tables that the master itself cannot prove by streams.

    `master` has its small rows, `facts` and `regions` are its `fact` and `region` rows. All tables where a server is
    not settled.
    """
    shipped = shipped_tables(master, only)
    servers, queued = master.kind("server"), master.kind("queue")
    for peer in master.peers:
        queues = queue_facts(queued, servers, peer)
        origins = judge_origins(servers, master.header, None, queues.drained, queues.left)
        # Such a server may have written to any table.
        if any(origin.reason for origin in origins):
            return shipped
    question = TableQuestion(master.header, only.holds)
    judged = judge_tables(master.kind("table"), (), table_ages(regions), question)
    doubtful = {table.table for table in judged if table.findings}
    doubtful |= {str(row["table"]) for row in facts if row.get("state") in NOT_IN_STREAMS}
    return [table for table in shipped if table in doubtful]


def shipped_tables(master: SideFacts, only: TableFilter) -> list[str]:
    """Return the tables in scope that some peer ships."""
    names = (name for name, families in master.replicated.items() if families and only.holds(name))
    return sorted(name for name in names if any(ships(peer, name) for peer in master.peers))


def digest_rows(
    settings: Settings,
    tables: Sequence[str],
    rows: Iterable[Row],
    say: Callable[[str], None],
    counted: RowsCounted = NOT_COUNTED,
    stop: threading.Event | None = None,
) -> Iterator[NewRow]:
    """Yield the `digest` rows of the master's tables, after the barrier; `stop` withdraws the requests.

    Raises `ConnectionFailed` without an answer, and what `require_same_cluster` raises.
    """
    known = list(rows)
    details = {row["table"]: json.loads(row["detail"]).get("families", {}) for row in known if row["kind"] == "table"}
    peers = [parse_peer(row["detail"]) for row in known if row["kind"] == "peer"]
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        cluster = DescribedCluster(settings, zookeeper.cluster_id(), details)
        # The Thrift server may be another cluster's: its rows would pass for those of this one.
        require_same_cluster(settings, zookeeper)
    hows = {table: _described(cluster, table, peers) for table in tables}
    for some in chunks(tables, REQUEST_TABLES):
        say(
            f"digesting the rows of {printable.counted(len(some), 'table')} ({some[0]}{', …' if len(some) > 1 else ''})"
        )
        yield from _digested(cluster, {table: hows[table] for table in some}, counted, stop)


def _described(cluster: DescribedCluster, table: str, peers: Sequence[PeerFacts]) -> Comparable:
    # What no peer ships no slave has. Of families that only some ship, nobody knows whose slave will ask.
    replicated = {table: [name for name, family in cluster.tables[table].items() if family.get("scope")]}
    families = sorted({name for peer in peers for name in shipped(peer, replicated).get(table, ())})
    require_described((cluster.tables[table][name] for name in families), "the master")
    # The slave's descriptors are not known here: what keeps less there is not equal, and no more is said of it.
    return comparable(cluster, cluster, table, families, ())


def _digested(
    cluster: DescribedCluster, hows: Mapping[str, Comparable], counted: RowsCounted, stop: threading.Event | None
) -> Iterator[NewRow]:
    # The key is drawn after the rows were written: nobody can have chosen two contents with one sum.
    asked = Query({table: how.families for table, how in hows.items()}, os.urandom(16), now_ms())
    with Requests(cluster.settings, asked, stop) as requests:
        parts = tiles(hows, ((one.table, one.start) for one in requests.regions()))
        answered = requests.ask(parts, counted)
    if answered.unanswered:
        raise ConnectionFailed(f"not all rows were digested: {'; '.join(answered.unanswered)}")
    for number, part in parts.items():
        yield digest_row("digest", part, answered.coverages[number].sums, asked, hows[part.table])


def digest_row(kind: str, part: TableRange, sums: Sums, asked: Query, how: Comparable) -> NewRow:
    """Return one row of FILE. Its key is the request's, which a repetition needs."""
    detail = {
        "key": asked.key.hex(),
        "cut_ms": asked.cut_ms,
        "horizon_ms": how.horizon_ms,
        "families": {name.decode(): [one.versions, one.oldest] for name, one in how.families.items()},
        "sums": ",".join(f"{number:x}" for number in sums.content),
        "rows": sums.rows,
    }
    start, stop = part.interval
    return {"kind": kind, "table": part.table, "start_key": start, "end_key": stop, "detail": json.dumps(detail)}


def filed_tables(rows: Iterable[Row], *, is_whole: bool = True) -> dict[str, FiledTable]:
    """Return the tables of FILE's `digest` rows, or of its `sample` rows, which are not `is_whole`.

    Leaves out a table with a row that cannot be parsed, and a whole one with gaps.
    """
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("table") is not None:
            by_table.setdefault(row["table"], []).append(row)
    found = {table: _filed(table, own, is_whole) for table, own in by_table.items()}
    return {table: filed for table, filed in found.items() if filed is not None}


def _filed(table: str, rows: Sequence[Row], is_whole: bool) -> FiledTable | None:
    try:
        details = [loads(row.get("detail")) for row in rows]
        if not all(fits(detail, _DETAIL) and _are_rules(detail["families"].values()) for detail in details):
            return None
        shared = {name: details[0][name] for name in ("key", "cut_ms", "horizon_ms", "families")}
        # One request repeats all ranges on the slave, and a request has one key, one cut, and one rule for a family.
        if any({name: detail[name] for name in shared} != shared for detail in details):
            return None
        contents = [tuple(int(part, 16) for part in detail["sums"].split(",")) for detail in details]
        ranges = {
            Interval(row.get("start_key") or b"", row.get("end_key") or b""): content
            for row, content in zip(rows, contents, strict=True)
        }
        families = {name.encode(): Family(*both) for name, both in shared["families"].items()}
        key = bytes.fromhex(shared["key"])
    except (ValueError, TypeError, KeyError):
        return None
    starts = sorted(interval.start for interval in ranges)
    # A table with a gap between its ranges would count as equal, with rows that nobody has compared.
    if len(key) != 16 or (is_whole and sorted(ranges) != cut(Interval(b"", b""), starts)):
        return None
    return FiledTable(table, key, shared["cut_ms"], shared["horizon_ms"], families, ranges)


def _are_rules(rules: Iterable[Sequence[int]]) -> bool:
    # A request has 32 bits for the number of versions.
    return all(len(rule) == 2 and 0 < rule[0] < 1 << 31 for rule in rules)


def compare_with_file(
    slave: DescribedCluster,
    filed: FiledTable,
    wait_s: float,
    counted: RowsCounted = NOT_COUNTED,
    stop: threading.Event | None = None,
) -> Result:
    """Compare the slave's rows with FILE's digests until equal or `wait_s` is over. Raises `ConnectionFailed`."""
    names = filed.names
    if (unfit := filed.unfit) is not None:
        return Result(filed.table, TableVerdict.UNVERIFIABLE, names, reasons=(unfit,))
    asked = Query({filed.table: filed.families}, filed.key, filed.cut_ms)
    deadline = time.monotonic() + wait_s
    waiting, numbers, total = set(filed.ranges), iter(range(1 << 31)), Sums()
    with Requests(slave.settings, asked, stop) as requests:
        while waiting:
            # `Requests.ask` takes no number twice: a late answer to the turn before must not count in this one.
            parts = dict(zip(numbers, (TableRange(filed.table, one) for one in sorted(waiting)), strict=False))
            answered = requests.ask(parts, counted)
            if answered.unanswered:
                why = f"not all rows were digested: {'; '.join(answered.unanswered)}"
                return Result(filed.table, TableVerdict.UNVERIFIABLE, names, total, reasons=(why,))
            total += _equal(answered, parts, filed, waiting)
            if not waiting or time.monotonic() > deadline:
                break
            time.sleep(UNEQUAL_POLL_S)
    if not waiting:
        return Result(filed.table, TableVerdict.EQUAL, names, total)
    unequal = (
        f"{len(waiting)} of {len(filed.ranges)} ranges are not as FILE has them: --master-conf DIR tells which rows "
        "differ, and whether for good"
    )
    return Result(filed.table, TableVerdict.UNVERIFIABLE, names, total, reasons=(unequal,))


def equal_to_file(
    slave: DescribedCluster,
    filed: Sequence[FiledTable],
    counted: RowsCounted = NOT_COUNTED,
    stop: threading.Event | None = None,
) -> Iterator[Result]:
    """Yield the results of tables that are at once as FILE digested them. Raises `ConnectionFailed`."""
    lasting = [one for one in filed if one.unfit is None]
    by_request: dict[tuple[bytes, int], list[FiledTable]] = {}
    for one in lasting:
        # A request has one key and one cut, and `run -m` may have made several.
        by_request.setdefault((one.key, one.cut_ms), []).append(one)
    for (key, cut_ms), tables in by_request.items():
        families = {one.table: one.families for one in tables}
        for some in chunks(list(families), REQUEST_TABLES):
            asked = Query({name: families[name] for name in some}, key, cut_ms)
            yield from _equal_at_once(slave, [one for one in tables if one.table in asked.tables], asked, counted, stop)


def _equal_at_once(
    slave: DescribedCluster,
    tables: Sequence[FiledTable],
    asked: Query,
    counted: RowsCounted,
    stop: threading.Event | None,
) -> Iterator[Result]:
    parts = dict(enumerate(TableRange(one.table, interval) for one in tables for interval in one.ranges))
    with Requests(slave.settings, asked, stop) as requests:
        answered = requests.ask(parts, counted)
    for one in tables:
        own = {number: part for number, part in parts.items() if part.table == one.table}
        waiting = set(one.ranges)
        total = _equal(answered, own, one, waiting)
        if not waiting:
            yield Result(one.table, TableVerdict.EQUAL, one.names, total)


def _equal(answered: Asked, parts: Mapping[int, TableRange], filed: FiledTable, waiting: set[Interval]) -> Sums:
    """Take the ranges that are equal from those that wait; returns their sums."""
    total = Sums()
    for number, (_, interval) in parts.items():
        coverage = answered.coverages[number]
        sums = coverage.sums
        if coverage.is_whole and sums.content == filed.ranges[interval]:
            waiting.discard(interval)
            total += sums
    return total
