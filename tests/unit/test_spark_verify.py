"""Whoever judges says the same: this process, Spark's workers, and the short way's sums for what is evident."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from status_tool.rules.judged import JudgedRegion, JudgedStream
from status_tool.rules.origins import slave_flushed_ms
from status_tool.rules.peers import FamilyFilter
from status_tool.rules.queue_proofs import QueueFacts
from status_tool.runs.question import Question
from status_tool.spark.counts import overview_of
from status_tool.spark.held import HeldRows
from status_tool.spark.judge import REGION_SCHEMA, STREAM_SCHEMA
from status_tool.spark.lists import FullList, write_lists
from status_tool.spark.session import small_query
from status_tool.spark.verify import Verification
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.findings import Finding, RowProofs
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.verdicts import SEVERITY, Evidence, Status
from tests.judgement import verify_rows
from tests.simulation.dice import STEP_BYTES
from tests.simulation.observer import Observation
from tests.simulation.random_runs import STEPS_A_RUN
from tests.simulation.steps import SWITCHES, Run
from tests.simulation.tracker import TABLE

pytestmark = pytest.mark.spark

MASTER_ID = "00000000-0000-4000-8000-000000000001"
SLAVE_ID = "00000000-0000-4000-8000-000000000002"
SLAVE_BYTES = bytes.fromhex(SLAVE_ID.replace("-", ""))
MASTER_BYTES = bytes.fromhex(MASTER_ID.replace("-", ""))
OTHER_BYTES = SLAVE_BYTES[1:] + b"\x07"
NOW = 100_000
"""Times in these tests are small numbers around this one, so that they often meet the bounds."""

EXAMPLES = int(os.environ.get("STATUS_TOOL_FUZZ", "25"))
"""More of them are random; the default ones are the same in every run."""

Row = dict[str, Any]
Judged = tuple[Question, list[Row], list[Row]]
World = tuple[list[Row], list[Row], Header, Header, Scope, QueueFacts, RowProofs]


SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.sql.execution.arrow.maxRecordsPerBatch": "5"}
"""Regions and paths go on in another batch."""


@pytest.fixture(scope="module")
def session(shared_spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: shared_spark.conf.get(name) for name in SETTINGS}
    for name, value in SETTINGS.items():
        shared_spark.conf.set(name, value)
    yield shared_spark
    for name, old in before.items():
        shared_spark.conf.set(name, str(old))


def frame(session: SparkSession, rows: list[Row]) -> DataFrame:
    return session.createDataFrame(pa.Table.from_pylist(rows, schema=STATUS_SCHEMA))


WAYS = ("held", "workers", "short way")
"""Rows of small files are held; of big ones the short way decides what is evident."""


def on_spark(session: SparkSession, world: World, way: str, *, is_compiled: bool) -> Outcome:
    """`is_compiled`: Spark compiles the short way, as for big files; it takes longer than all else in a small world."""
    *both, master, slave, scope, queues, proven = world
    ours, theirs = (pa.Table.from_pylist(rows, schema=STATUS_SCHEMA) for rows in both)
    held = HeldRows.of(ours, theirs) if way == "held" else None
    small = way != "short way"

    def sides() -> tuple[DataFrame, DataFrame]:
        return session.createDataFrame(ours), session.createDataFrame(theirs)

    check = Verification(sides, master, slave, scope, queues, small, proven, held)
    with nullcontext() if is_compiled and not small else small_query(session), closing(check):
        return check.outcome()


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def mostly(common: Any, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """`common` in three of four cases."""
    return st.integers(0, 3).flatmap(lambda n: st.just(common) if n else values)


TIMES = st.integers(NOW - 60_000, NOW + 3_000).map(lambda ms: ms // 500 * 500)
SEQS = st.integers(0, 14)
ORIGINS = st.integers(1, 6)
VIAS = st.integers(0, 2)
FAMILIES = st.sampled_from(["f", "f", "f", "g", "it's", "", None])
TABLES = mostly("a", optional(st.sampled_from(["a", "b", "ns:c", "gone", "hbase:meta", "replicationstate"])))
SERVERS = [f"host{n},16020,{n}" for n in range(1, 7)]


@st.composite
def server_rows(draw: st.DrawFn, side: str) -> list[Row]:
    roles = st.sampled_from(["w", "r", None]) if side == "master" else mostly("r", st.sampled_from(["w", None]))
    row = st.fixed_dictionaries(
        {
            "live": mostly(True, optional(st.booleans())),
            "tracked": mostly(True, optional(st.booleans())),
            "echoed": mostly(True, optional(st.booleans())),
            "read_ms": optional(TIMES),
            "final_ms": optional(TIMES),
            "gone_ms": optional(TIMES),
            "flush_ms": optional(TIMES),
            "role": mostly("w" if side == "master" else "r", roles),
        }
    )
    numbers = draw(st.lists(ORIGINS, unique=True, max_size=5))
    return [{"kind": "server", "origin": n, "server": SERVERS[n - 1], **draw(row)} for n in numbers]


@st.composite
def table_rows(draw: st.DrawFn, side: str) -> list[Row]:
    families = {"f": {"scope": 1}, "g": {"scope": draw(st.integers(0, 1))}}
    if draw(st.booleans()):
        for family in families.values():
            family |= {"versions": draw(mostly(3, st.just(1))), "ttl": draw(mostly(60, st.just(9)))}
    details: list[Any] = [
        {"families": families, "durability": draw(st.sampled_from(["USE_DEFAULT", "USE_DEFAULT", "SKIP_WAL"]))},
        {"families": {"f": {"scope": 0}}},
        {"families": ["f", "g"]} if side == "slave" else "broken",
        {"families": ["f", "g"], "arrived_ms": NOW - 30_000} if side == "slave" else "broken",
        {
            "families": ["f", "g"],
            "born_ms": draw(optional(TIMES)),
            "proven": {
                MASTER_ID: {
                    **{"until_ms": draw(TIMES), "families": ["f", "g"], "by": draw(st.sampled_from(["rows", "word"]))},
                    "seen": {"born_ms": draw(optional(TIMES))},
                }
            },
        },
    ]
    names = draw(mostly(["a", "b", "ns:c"], st.lists(st.sampled_from(["a", "b", "ns:c"]), unique=True)))
    known = st.sampled_from([{}, {"regions": 3, "torn": "00"}, {"regions": 0}])
    chosen = [draw(mostly(details[0], st.sampled_from(details))) for _ in names]
    of = [one | draw(mostly({"regions": 3}, known)) if isinstance(one, dict) else one for one in chosen]
    return [{"kind": "table", "table": name, "detail": json.dumps(one)} for name, one in zip(names, of, strict=True)]


@st.composite
def region_rows(draw: st.DrawFn, name: str) -> tuple[list[Row], list[Row]]:
    """Rows of both sides about one region: heads, and segments that are mostly those of its streams."""
    at = {"table": draw(TABLES), "region": name}
    ours, theirs = list[Row](), list[Row]()
    for origin, via in draw(st.lists(st.tuples(ORIGINS, VIAS), max_size=3)):
        key = {**at, "origin": draw(mostly(origin, optional(ORIGINS))), "via": draw(mostly(via, optional(VIAS)))}
        ours.append(
            {
                "kind": "stream",
                **key,
                "seq": draw(mostly(draw(SEQS) + 1, optional(SEQS))),
                "first_ms": draw(optional(TIMES)),
                "write_ms": draw(mostly(draw(TIMES), st.none())),
                "via_ids": draw(mostly(None, st.sampled_from([SLAVE_BYTES, OTHER_BYTES, OTHER_BYTES + SLAVE_BYTES]))),
                "start_key": draw(st.sampled_from([b"", b"k\x00"])),
                "end_key": b"z",
                "family": draw(FAMILIES),
            }
        )
        theirs += draw(segment_rows(key))
    if draw(mostly(True, st.booleans())):
        hosting = mostly("hosted", st.sampled_from(["unhosted", "disabled", "split", None]))
        region = {"state": draw(hosting), "server": draw(mostly(SERVERS[0], optional(st.sampled_from(SERVERS))))}
        ours.append(
            {"kind": "region", **at, **region, "region_id": draw(mostly(NOW, optional(TIMES))), "end_key": b"y"}
        )
    if draw(mostly(False, st.booleans())):
        states = st.sampled_from(["bulkload", "localload", "split", "merge", "changed", "content"])
        fact = {"state": draw(states), "write_ms": draw(optional(TIMES))}
        ours.append({"kind": "fact", **at, **fact, "region_id": draw(optional(TIMES))})
    if draw(mostly(False, st.booleans())):
        named = draw(mostly("changed", st.sampled_from(["split", "unattended"])))
        why = {"entries": draw(st.sampled_from([1, 3, None, 0])), "detail": draw(st.sampled_from(["why", "", None]))}
        theirs.append({"kind": "fact", **at, "state": named, "write_ms": draw(TIMES), **why})
    for kind in draw(st.lists(mostly("replicated", st.just("unstamped")), max_size=2)):
        sources = draw(mostly(None, st.sampled_from([MASTER_BYTES, OTHER_BYTES, OTHER_BYTES + MASTER_BYTES, b"odd"])))
        via_ids = sources if kind == "unstamped" else None
        theirs.append({"kind": kind, **at, "write_ms": draw(optional(TIMES)), "via_ids": via_ids})
    return ours, theirs


@st.composite
def segment_rows(draw: st.DrawFn, key: Row) -> list[Row]:
    """A chain of segments, some of them lost, doubled, merged, overlapping or damaged, in any order."""
    ends = sorted({0, *draw(st.lists(SEQS, max_size=6))})
    chain = [(a, b) for a, b in pairwise(ends) if draw(mostly(True, st.booleans()))]
    strays = draw(mostly([], st.lists(st.tuples(optional(SEQS), optional(SEQS)), max_size=2)))
    pairs = draw(st.permutations([*chain, *chain[:1], *strays]))
    times = {"first_ms": optional(TIMES), "write_ms": optional(TIMES), "recorded_ms": optional(TIMES)}
    times["started_ms"] = mostly(None, optional(TIMES))
    times["family"] = FAMILIES
    return [{"kind": "segment", **key, "prev": a, "seq": b, **draw(st.fixed_dictionaries(times))} for a, b in pairs]


@st.composite
def file_rows(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    row = st.fixed_dictionaries(
        {
            "path": st.sampled_from([f"/data/{n}" for n in range(8)]),
            "length": mostly(5, optional(st.integers(0, 2))),
            "algorithm": mostly("MD5", st.sampled_from(["CRC", "MD5 encrypted", None])),
            "crc32c": mostly(None, st.sampled_from(["00000001", "00000002"])),
            "modified_ms": mostly(1, st.sampled_from([NOW - 5_000, NOW + 5_000, None])),
            "checksum": mostly("ab", st.sampled_from(["cd", None])),
            "state": mostly(None, st.sampled_from(["unreadable", "open"])),
            "detail": st.sampled_from([None, "denied"]),
        }
    )
    sides = [[{"kind": "file", **one} for one in draw(st.lists(row, max_size=8))] for _ in range(2)]
    for side in sides:
        counts = draw(st.lists(st.tuples(st.sampled_from(["empty folder", "symbolic link"]), st.integers(0, 3))))
        side += [{"kind": "count", "name": name, "entries": n} for name, n in counts]
    return sides[0], sides[1]


@st.composite
def headers(draw: st.DrawFn) -> tuple[Header, Header]:
    filters = mostly((), st.sampled_from([("a",), ("b", "ns:c")]))
    master = Header(
        "master",
        MASTER_ID,
        created_ms=NOW,
        cut_ms=NOW,
        shutdown_ms=draw(optional(mostly(NOW - 1_000, st.just(0) | TIMES))),
        barrier_issued_ms=draw(mostly(NOW - 2_000, optional(TIMES))),
        coverage_ms=draw(mostly(NOW - 30_000, optional(TIMES))),
        shutdown_from=draw(st.sampled_from(["", "recorded", "option"])),
        tables=draw(filters),
        hdfs_paths=draw(st.sampled_from([("/",), ("/data",)])),
        hdfs_absent=draw(mostly((), st.just(("/gone",)))),
        state_table=draw(mostly("replicationstate", st.sampled_from(["b", "ns:c", "default:a"]))),
        evidence=draw(mostly(Evidence.EXACT.value, st.sampled_from([Evidence.EXACT.value, Evidence.TIMESTAMPS.value]))),
    )
    slave = Header(
        *("slave", SLAVE_ID, NOW, NOW),
        coverage_ms=draw(optional(TIMES)),
        state_back_ms=draw(mostly(None, TIMES)),
        flush_period_ms=5_000,
        tables=draw(filters),
        cluster_key="q:1:/s",
    )
    return master, slave


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A whole run; many regions in one, so that one Spark job tries many cases."""
    ours, theirs = draw(server_rows("master")), draw(server_rows("slave"))
    ours, theirs = ours + draw(table_rows("master")), theirs + draw(table_rows("slave"))
    files = draw(mostly(([], []), file_rows()))
    pairs = [files, *(draw(region_rows(f"region{n}")) for n in range(draw(st.integers(0, 14))))]
    ours, theirs = ours + [r for a, _ in pairs for r in a], theirs + [r for _, b in pairs for r in b]
    scope = Scope(
        tables=draw(mostly(frozenset(), st.sampled_from([frozenset({"default:a"}), frozenset({"ns:c", "no"})]))),
        namespaces=draw(mostly(frozenset(), st.sampled_from([frozenset({"ns"}), frozenset({"default"})]))),
        since=Baseline(
            draw(optional(TIMES)),
            draw(mostly({}, st.dictionaries(st.sampled_from(["a", "b", "ns:c"]), TIMES, min_size=1))),
        ),
        max_problems=draw(mostly(1_000, st.integers(1, 6))),
        strict_extra=draw(st.booleans()),
        accepted_drift=draw(st.sampled_from([frozenset(), frozenset({"a", "b"})])),
        ignore_later_writes=draw(mostly(False, st.booleans())),
        offline=draw(mostly(False, st.booleans())),
    )
    queues = QueueFacts(
        draw(st.frozensets(ORIGINS, max_size=2)),
        {1: "something is left"},
        loads_from_ms=draw(optional(TIMES)),
        families=draw(mostly(FamilyFilter(), family_filters())),
    )
    return (draw(st.permutations(ours)), draw(st.permutations(theirs)), *draw(headers()), scope, queues, draw(proofs()))


def family_filters() -> st.SearchStrategy[FamilyFilter]:
    """With names that SQL has to quote."""
    families = st.frozensets(st.sampled_from(["f", "g", "it's"]), min_size=1)
    tables = st.dictionaries(st.sampled_from(["a", "b", "ns:c"]), families)
    return st.builds(FamilyFilter, tables, st.booleans())


@st.composite
def proofs(draw: st.DrawFn) -> RowProofs:
    """What rows have shown: mostly of no table, often of each."""
    tables = st.sampled_from([frozenset({"a"}), frozenset({"a", "b", "ns:c"})])
    differing = draw(mostly(frozenset(), st.frozensets(st.sampled_from(["region0", "region3"]))))
    found = tuple(Finding("differs", table="a", region=region, note="row k") for region in sorted(differing))
    return RowProofs(draw(mostly(frozenset(), tables)), differing, found, draw(mostly((), st.just(("compared",)))))


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == 25,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(world=worlds(), way=st.sampled_from(WAYS))
def test_every_way_says_the_same(session: SparkSession, world: Any, way: str) -> None:
    found, expected = on_spark(session, world, way, is_compiled=False), verify_rows(*world)
    assert (found.hbase, found.hdfs) == (expected.hbase, expected.hdfs)
    for one, other in zip(found.problems, expected.problems, strict=True):
        assert one == other
    assert found == expected


# --- what the simulation's clusters hold, beside the random rows ---------------------------------------------


class Watched(Run):
    """A run of the simulation; what is judged on the way is kept."""

    def __init__(self, without: int) -> None:
        super().__init__(without)
        self.judged: list[Judged] = []

    def check(self, observation: Observation) -> Outcome:
        if observation.judged is not None:
            self.judged.append(observation.judged)
        return super().check(observation)


def simulated(seeds: Iterable[int], each: int = 4) -> Iterator[Judged]:
    """Of random runs the last rows that were judged, when most has happened."""
    for seed in seeds:
        dice = random.Random(seed)
        run = Watched(dice.getrandbits(len(SWITCHES)) if dice.randrange(3) else 0)
        run.play(dice.getrandbits(8 * STEP_BYTES) for _ in range(STEPS_A_RUN))
        run.drain()
        yield from run.judged[-each:]


def apart(rows: Iterable[Mapping[str, Any]], world: int) -> list[Row]:
    """The rows with names that no other world has: many worlds fit into one run, and one Spark job."""
    named = {"table": "table{}-{}", "region": "{}-{}", "server": "world{}-{}"}
    return [
        {
            **row,
            **{name: form.format(world, row[name]) for name, form in named.items() if row.get(name) is not None},
            **({"origin": moved(row["origin"], world)} if row.get("origin") is not None else {}),
        }
        for row in rows
        if row["kind"] not in ("peer", "queue")
    ]


def moved(origin: int, world: int) -> int:
    """Another origin for each world."""
    return origin ^ (world << 32)


def together(worlds: list[Judged], question: Question) -> World:
    """Many worlds as one run, with the question of one of them."""
    ours = [row for number, (_, rows, _) in enumerate(worlds) for row in apart(rows, number)]
    theirs = [row for number, (_, _, rows) in enumerate(worlds) for row in apart(rows, number)]
    # Of one run: by the first world's time hardly any hole of the others would stay.
    read_ms = max((row["read_ms"] for row in theirs if row.get("read_ms") is not None), default=None)
    theirs = [row if row.get("read_ms") is None else {**row, "read_ms": read_ms} for row in theirs]
    facts = [(number, question.queues) for number, (question, _, _) in enumerate(worlds)]
    queues = QueueFacts(
        frozenset(moved(origin, number) for number, one in facts for origin in one.drained),
        {moved(origin, number): why for number, one in facts for origin, why in one.left.items()},
        families=FamilyFilter(
            {f"table{number}-{TABLE}": families for number, one in facts for families in one.families.listed.values()}
        ),
    )
    scope = replace(question.scope, max_problems=100_000)
    regions = sorted({row["region"] for row in ours if row.get("region") is not None})
    equal = frozenset(f"table{number}-{TABLE}" for number, _ in facts if number % 11 == 3)
    rows = RowProofs(equal, frozenset(regions[::23]))
    return ours, theirs, question.master, question.slave, scope, queues, rows


def settled(world: Judged) -> bool:
    """Whether no server of its slave may still write."""
    return slave_flushed_ms(row for row in world[2] if row["kind"] == "server") is not None


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    first = 0 if EXAMPLES == 25 else random.SystemRandom().randrange(10**9)
    return list(simulated(range(first, first + 2 * EXAMPLES)))


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("shut", [False, True], ids=["up to the barrier", "up to a shutdown time"])
def test_every_way_says_the_same_of_simulated_worlds(
    session: SparkSession, judged: list[Judged], shut: bool, way: str
) -> None:
    """Rows as servers that crash, restart and lose their connections leave them behind, of many runs in one."""
    alike = [question for question, *_ in judged if (question.master.shutdown_ms is not None) == shut]
    asked = max(alike, key=lambda question: question.master.created_ms)  # what is written later settles nothing
    of_each, is_later = Counter[Status](), False
    for is_settled in (True, False):  # of the whole slave: one world that is not would leave no gap in any
        run = together([world for world in judged if settled(world) == is_settled], asked)
        found, expected = on_spark(session, run, way, is_compiled=True), verify_rows(*run)
        assert found == expected
        assert found.hbase is not None
        of_each.update(found.hbase.regions)
        is_later |= bool(found.hbase.later)
    assert is_later == shut
    assert all(of_each[status] for status in Status), "too few cases to prove anything"


# --- the short way ---------------------------------------------------------------------------------------------


def chain(*ends: int, since: int = 0) -> list[Row]:
    """Segments that start where another ends, the last first."""
    pairs = reversed(list(pairwise((since, *ends))))
    return [{"kind": "segment", "prev": a, "seq": b, "write_ms": NOW - 5_000, "recorded_ms": NOW} for a, b in pairs]


EVIDENT: dict[str, tuple[list[Row], bool]] = {
    "one segment": (chain(9), True),
    "three, the last first": (chain(2, 5, 9), True),
    "more than the head": (chain(2, 9, 12), True),
    "replicated earlier": ([*chain(9), {"kind": "replicated", "write_ms": NOW - 9_000}], False),
    "listed twice": (chain(9), False),
    "nothing": ([], False),
    "a tail is missing": (chain(2, 5), False),
    "the beginning is missing": (chain(5, 9, since=2), False),
    "a hole": ([*chain(2), *chain(9, since=5)], False),
    "two holes of the same length": ([*chain(2), *chain(5, since=4), *chain(9, since=7)], False),
    "an overlap as long as the hole": ([*chain(4), *chain(4, since=2), *chain(9, since=6)], False),
    "a hole between doubled segments": ([*chain(2), *chain(2), *chain(9, since=5), *chain(9, since=5)], False),
    "of no family": ([{**row, "family": None} for row in chain(9)], False),
    "without a stamp": ([*chain(9), {"kind": "unstamped", "write_ms": NOW - 5_000}], False),
    "of another table": ([*chain(9), {"kind": "replicated", "table": "b", "write_ms": NOW - 5_000}], False),
    "unknown to the original's rule": (chain(9), False),
}
"""What the slave has of a region with one stream up to 9, and whether that is evident."""


def rows_to_decide() -> tuple[list[Row], list[Row]]:
    """The regions of `EVIDENT`, on both sides."""
    stream = {"origin": 1, "via": 0, "family": "f"}
    detail = json.dumps({"families": {"f": {"scope": 1}}, "durability": "USE_DEFAULT", "regions": 9})
    live = {"live": True, "tracked": True, "echoed": True, "read_ms": NOW, "flush_ms": NOW}
    servers = [{"kind": "server", "origin": 1, "server": SERVERS[0], **live}]
    ours = [{**row, "role": "w"} for row in servers]
    ours += [{"kind": "table", "table": name, "detail": detail} for name in "ab"]
    theirs = [{**row, "role": "r"} for row in servers] + [row for row in ours if row["kind"] == "table"]
    for name, (rows, _) in EVIDENT.items():
        at = {"table": "a", "region": name}
        ours.append({"kind": "stream", **at, **stream, "seq": 9, "first_ms": NOW - 9_000, "write_ms": NOW - 8_000})
        hosted = {"state": "hosted", "server": SERVERS[0], "region_id": NOW - 10_000, "start_key": name.encode()}
        ours += [{"kind": "region", **at, **hosted}] * (2 if name == "listed twice" else 1)
        theirs += [{**at, **(stream if row["kind"] == "segment" else {}), **row} for row in rows]
        if name not in ("replicated earlier", "unknown to the original's rule"):
            theirs.append({"kind": "replicated", **at, "write_ms": NOW - 5_000})
    return ours, theirs


HEADERS = (
    Header("master", MASTER_ID, NOW, NOW, barrier_issued_ms=NOW, coverage_ms=NOW - 30_000),
    Header("slave", SLAVE_ID, NOW, NOW, flush_period_ms=5_000),
)


@pytest.mark.parametrize("are_files", [False, True], ids=["frames", "files"])
def test_the_short_way_decides_what_is_evident_and_nothing_else(
    session: SparkSession, tmp_path: Path, are_files: bool
) -> None:
    ours, theirs = rows_to_decide()
    master, slave = HEADERS

    def side(rows: list[Row], header: Header) -> DataFrame:
        if not are_files:
            return frame(session, rows)
        with StatusWriter(tmp_path / header.side, header) as writer:
            writer.write(pa.Table.from_pylist(rows, schema=STATUS_SCHEMA))
        return session.read.parquet((tmp_path / header.side).as_uri())

    sides = (side(ours, master), side(theirs, slave))
    check = Verification(lambda: sides, master, slave, Scope(), small=False)
    # Spark compiles the plan, as for big files, once of two times.
    with nullcontext() if are_files else small_query(session), closing(check):
        found = check.outcome()
        in_doubt = {row["region"] for row in check.regions_in_doubt.collect()}
        columns = ("table", "region", "hex(start_key)", "status", "lag_ms")
        drawn, judged = (rows.selectExpr(*columns).collect() for rows in (check.drawn_regions(), check.regions))
        lines = overview_of(check, found).tables
    regions = {row["region"]: row["status"] for row in judged}
    assert (len(drawn), frozenset(drawn)) == (len(EVIDENT), frozenset(judged))
    assert in_doubt == {name for name, (_, evident) in EVIDENT.items() if not evident}
    assert sum(one.regions for one in check.evident) == len(EVIDENT) - len(in_doubt)
    assert found.hbase is not None
    assert found.hbase.regions == {status: list(regions.values()).count(rank) for status, rank in SEVERITY.items()}
    assert {status: sum(line.regions[status] for line in lines) for status in SEVERITY} == found.hbase.regions
    assert found == verify_rows(ours, theirs, master, slave, Scope(), QueueFacts(), RowProofs())


def test_an_overview_is_the_same_whoever_holds_the_rows(session: SparkSession) -> None:
    tables = [pa.Table.from_pylist(rows, schema=STATUS_SCHEMA) for rows in rows_to_decide()]
    sides = (session.createDataFrame(tables[0]), session.createDataFrame(tables[1]))
    overviews = []
    for held in (None, HeldRows.of(*tables)):
        check = Verification(lambda: sides, *HEADERS, Scope(), small=True, held=held)
        with small_query(session), closing(check):
            overviews.append(overview_of(check, check.outcome()))
    by_name = [sorted(one.tables, key=lambda line: line.table) for one in overviews]
    assert overviews[0].groups == overviews[1].groups
    assert (overviews[0].repairs, by_name[0]) == (overviews[1].repairs, by_name[1])


def test_what_holds_for_the_whole_run_is_counted_once(session: SparkSession) -> None:
    master, slave = Header("master", MASTER_ID, NOW, NOW), Header("slave", SLAVE_ID, NOW - 40_000, NOW)
    sides, held = (frame(session, []), frame(session, [])), HeldRows([], [])
    with closing(Verification(lambda: sides, master, slave, Scope(offline=True), held=held)) as check:
        groups = overview_of(check, check.outcome()).groups
    assert [group.count for group in groups if group.code == "slave-older"] == [1]


@pytest.mark.parametrize("is_held", [True, False])
def test_what_is_of_no_row_is_counted_and_listed(
    session: SparkSession, is_held: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of all that is unverifiable lacked paths that do not exist; a text that lists no problem, its causes."""
    master = Header("master", MASTER_ID, NOW, NOW, hdfs_paths=("/a", "/b", "/c[1]"), hdfs_absent=("/b", "/c[1]"))
    sides, held = (frame(session, []), frame(session, [])), HeldRows([], []) if is_held else None
    slave, scope = Header("slave", SLAVE_ID, NOW, NOW), Scope(max_problems=0)
    with closing(Verification(lambda: sides, master, slave, scope, held=held)) as check:
        outcome = check.outcome()
        groups = {group.code: group.count for group in overview_of(check, outcome).groups}
        write_lists(check, tuple(FullList("unverifiable", tmp_path / name) for name in ("all.jsonl", "a.txt")))
    assert (outcome.exit_code, outcome.problems) == (3, ())
    assert (groups["no-files"], groups["not-replicated"]) == (2, 1)
    listed = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert Counter(one["code"] for one in listed) == groups
    assert (tmp_path / "a.txt").read_text() == "/b\n/c[1]\n"
    assert "a.txt lists 1 path with *, ?, [ or white space" in capsys.readouterr().err


@pytest.mark.parametrize(("record", "schema"), [(JudgedRegion, REGION_SCHEMA), (JudgedStream, STREAM_SCHEMA)])
def test_workers_hand_on_every_field_of_a_judgement_and_no_other(record: type, schema: pa.Schema) -> None:
    assert {field.name for field in fields(record)} == set(schema.names)
