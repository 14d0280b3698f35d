"""Row digests in FILE: `run -m --rows` takes them on the master, `run -i --rows` holds the slave's rows against them.

For a check with the master gone. What is equal is proven as with both at hand; what is not, only a comparison with both
can tell from what has changed, so it is never called different here.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.digests.compare import Result, TableVerdict
from status_tool.digests.digest import Family, Sums
from status_tool.digests.families import DescribedCluster, comparable
from status_tool.digests.keys import Interval, cut
from status_tool.digests.requests import Asked, Requests
from status_tool.digests.wire import request
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.rules.origins import judge_origins
from status_tool.rules.peers import ships
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
    """`Sums.content` by range; they tile the table."""


def doubtful_tables(master: SideFacts, facts: Iterable[Row], only: TableFilter) -> list[str]:
    """The shipped tables that the master itself knows it cannot prove by streams.

    `master` has its small rows and regions, `facts` are its `fact` rows. All tables where a server is not settled.
    """
    shipped = shipped_tables(master, only)
    servers, queued = master.kind("server"), master.kind("queue")
    for peer in master.peers:
        queues = queue_facts(queued, servers, peer)
        origins = judge_origins(servers, master.header, None, queues.drained, queues.left)
        if any(origin.reason for origin in origins):
            return shipped
    question = TableQuestion(master.header, only.holds)
    judged = judge_tables(master.kind("table"), (), table_ages(master.rows), question)
    doubtful = {table.table for table in judged if table.findings}
    doubtful |= {str(row["table"]) for row in facts if row.get("state") in NOT_IN_STREAMS}
    return [table for table in shipped if table in doubtful]


def shipped_tables(master: SideFacts, only: TableFilter) -> list[str]:
    """The tables in scope that some peer ships."""
    names = (name for name, families in master.replicated.items() if families and only.holds(name))
    return sorted(name for name in names if any(ships(peer, name) for peer in master.peers))


def digest_rows(
    settings: Settings, tables: Sequence[str], rows: Iterable[Row], say: Callable[[str], None]
) -> Iterator[NewRow]:
    """`digest` rows of the master's tables, after the barrier. Raises `ConnectionFailed` where one is not answered."""
    details = {row["table"]: json.loads(row["detail"])["families"] for row in rows if row["kind"] == "table"}
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        cluster = DescribedCluster(settings, zookeeper.cluster_id(), details)
    for table in tables:
        families = [name for name, family in details[table].items() if family.get("scope")]
        if any("versions" not in details[table][name] for name in families):
            raise ConfigurationError(
                f"table {table}: the master's trackers are of a version without row digests: upgrade them, or leave "
                "--rows out"
            )
        say(f"digesting the rows of {table}")
        yield from _digested(cluster, table, families)


def _digested(cluster: DescribedCluster, table: str, families: Sequence[str]) -> Iterator[NewRow]:
    # The slave's descriptors are not known here: what keeps less there is not equal, and no more is said of it.
    how = comparable(cluster, cluster, table, families, ())
    key, cut_ms = os.urandom(16), now_ms()
    with Requests(cluster.settings, table, request(table, key, cut_ms, 0, how.families)) as asked:
        parts = dict(enumerate(cut(Interval(b"", b""), {region.start for region in asked.regions()})))
        answered = asked.ask(parts, lambda _: None)
    if answered.unanswered:
        raise ConnectionFailed(f"table {table}: not all rows were digested: {'; '.join(answered.unanswered)}")
    shared = {
        "key": key.hex(),
        "cut_ms": cut_ms,
        "horizon_ms": how.horizon_ms,
        "families": {name.decode(): [one.versions, one.oldest] for name, one in how.families.items()},
    }
    for number, interval in parts.items():
        sums = answered.coverages[number].sums
        detail = json.dumps(shared | {"sums": _text(sums.content), "rows": sums.rows})
        yield {
            "kind": "digest",
            "table": table,
            "start_key": interval.start,
            "end_key": interval.stop,
            "detail": detail,
        }


def _text(content: tuple[int, ...]) -> str:
    return ",".join(f"{number:x}" for number in content)


def filed_tables(rows: Iterable[Row]) -> dict[str, FiledTable]:
    """By table, from FILE's `digest` rows; not a table of which one cannot be parsed, or that they do not tile."""
    by_table: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("table") is not None:
            by_table.setdefault(row["table"], []).append(row)
    found = {table: _filed(table, own) for table, own in by_table.items()}
    return {table: filed for table, filed in found.items() if filed is not None}


def _filed(table: str, rows: Sequence[Row]) -> FiledTable | None:
    try:
        details = [loads(row.get("detail")) for row in rows]
        if not all(fits(detail, _DETAIL) and _are_rules(detail["families"].values()) for detail in details):
            return None
        shared = {name: details[0][name] for name in ("key", "cut_ms", "horizon_ms", "families")}
        if any({name: detail[name] for name in shared} != shared for detail in details):
            return None
        contents = [tuple(int(part, 16) for part in detail["sums"].split(",")) for detail in details]
        ranges = {
            Interval(row.get("start_key") or b"", row.get("end_key") or b""): content
            for row, content in zip(rows, contents, strict=True)
        }
        families = {name.encode(): Family(*both) for name, both in shared["families"].items()}
        key = bytes.fromhex(shared["key"])
    except (ValueError, TypeError):
        return None
    starts = sorted(interval.start for interval in ranges)
    if len(key) != 16 or sorted(ranges) != cut(Interval(b"", b""), starts):
        return None
    return FiledTable(table, key, shared["cut_ms"], shared["horizon_ms"], families, ranges)


def _are_rules(rules: Iterable[Sequence[int]]) -> bool:
    return all(len(rule) == 2 and rule[0] > 0 for rule in rules)


def compare_with_file(
    slave: DescribedCluster, filed: FiledTable, wait_s: float, stop: threading.Event | None = None
) -> Result:
    """Whether the slave's rows are those that FILE digested; `stop` ends it. Raises `ConnectionFailed`."""
    names = tuple(name.decode() for name in filed.families)
    if filed.horizon_ms is not None and now_ms() > filed.horizon_ms:
        late = "FILE's digests are too old: cells may have outlived their TTL since"
        return Result(filed.table, TableVerdict.UNVERIFIABLE, names, reasons=(late,))
    asked = request(filed.table, filed.key, filed.cut_ms, 0, filed.families)
    deadline = time.monotonic() + wait_s
    waiting, numbers, total = set(filed.ranges), iter(range(1 << 31)), Sums()
    with Requests(slave.settings, filed.table, asked, stop) as requests:
        while waiting:
            parts = dict(zip(numbers, sorted(waiting), strict=False))
            answered = requests.ask(parts, lambda _: None)
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


def _equal(answered: Asked, parts: dict[int, Interval], filed: FiledTable, waiting: set[Interval]) -> Sums:
    """Take the ranges that are equal from those that wait; returns their sums."""
    total = Sums()
    for number, interval in parts.items():
        sums = answered.coverages[number].sums
        if sums.content == filed.ranges[interval]:
            waiting.discard(interval)
            total += sums
    return total
