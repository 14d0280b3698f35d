"""The check of two status files, and the least that it must do, by bare Spark; each in a process of its own.

    python -m bench.contenders NAME FOLDER [--passes N] [--conf KEY=VALUE…]

reads FOLDER's `master.parquet` and `slave.parquet`, and prints its costs as JSON. `check` is the tool's. `spark`
joins the heads with what has arrived of their streams, and counts the regions whose every stream has arrived: there are
no holes, no doubts and no findings in that, so that no verdict could rest on it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.processes import age_s, cpu_s, peak_mib

SQL = """
WITH heads AS (SELECT `table`, region, origin, via, seq FROM master WHERE kind = 'stream'),
arrived AS (
  SELECT `table`, region, origin, via, max(seq) AS reach, sum(seq - prev) AS covered
  FROM slave WHERE kind = 'segment' GROUP BY `table`, region, origin, via
),
streams AS (
  SELECT heads.`table` AS of_table, heads.region AS region,
    coalesce(reach >= heads.seq AND covered >= heads.seq, false) AS is_complete
  FROM heads LEFT JOIN arrived ON heads.`table` = arrived.`table` AND heads.region = arrived.region
    AND heads.origin = arrived.origin AND heads.via = arrived.via
),
regions AS (SELECT of_table, region, min(CAST(is_complete AS INT)) AS complete FROM streams GROUP BY of_table, region)
SELECT count(*) AS regions, sum(complete) AS complete FROM regions
"""

Count = tuple[int, int]
"""Regions in scope, and those of them that are complete."""


@dataclass(frozen=True)
class Cost:
    """Of one pass, or of a part of it."""

    wall_s: float
    cpu_s: float


@dataclass
class Costs:
    """Of one process."""

    passes: list[Cost] = field(default_factory=list)
    parts: dict[str, list[Cost]] = field(default_factory=dict)
    """Of each pass, by name: what is apart from it."""
    count: Count = (0, 0)
    whole: Cost = Cost(0, 0)
    """From the start of the process to the end of its first pass."""
    peak_mib: int = 0

    @classmethod
    def of(cls, text: str) -> Costs:
        """As printed."""
        known = json.loads(text)
        parts = {name: [Cost(**cost) for cost in costs] for name, costs in known["parts"].items()}
        passes, whole = [Cost(**cost) for cost in known["passes"]], Cost(**known["whole"])
        return cls(passes, parts, tuple(known["count"]), whole, known["peak_mib"])

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds what the block costs."""
        with timed() as cost:
            yield
            self.parts.setdefault(name, []).append(cost())

    def done(self, cost: Cost, count: Count) -> None:
        """A pass has ended."""
        if not self.passes:
            self.whole = Cost(age_s(os.getpid()), cpu_s(os.getpid()))
        self.passes.append(cost)
        self.count = count


@contextmanager
def timed() -> Iterator[Callable[[], Cost]]:
    """Gives what the block has cost so far."""
    wall, cpu = time.perf_counter(), cpu_s(os.getpid())
    yield lambda: Cost(time.perf_counter() - wall, cpu_s(os.getpid()) - cpu)


def by_check(folder: Path, passes: int, conf: dict[str, str]) -> Costs:
    """`Verification.outcome`; apart from it what `run -i` shows, the page of `--report`, and reading alone."""
    from bench.streams import MASTER, SLAVE
    from status_tool.report.page import html_report
    from status_tool.report.summary import write_report
    from status_tool.spark.counts import overview_of
    from status_tool.spark.judge import rows_of_regions
    from status_tool.spark.session import small_query
    from status_tool.spark.settings import is_small
    from status_tool.spark.source import read_parquet
    from status_tool.spark.verify import Verification
    from status_tool.vocabulary.scope import Scope
    from status_tool.vocabulary.verdicts import Status

    costs, scope = Costs(), Scope(check_hdfs=False)
    with _session(folder, conf) as session:
        ours, theirs = (read_parquet(session, folder / f"{side}.parquet", folder, side) for side in ("master", "slave"))
        small = is_small(folder / "master.parquet")
        for _ in range(passes):
            check = Verification(lambda: (ours, theirs), MASTER, SLAVE, scope, small=small)
            with small_query(session) if small else nullcontext(), closing(check):
                with timed() as cost:
                    outcome = check.outcome()
                    decided = cost()
                with costs.part("overview"):
                    overview_of(check, outcome)
                assert outcome.hbase is not None
                regions = outcome.hbase.regions
                costs.done(decided, (sum(regions.values()), regions[Status.COMPLETE]))
                with costs.part("page"):
                    drawn = replace(outcome, overview=overview_of(check, outcome, True))
                    write_report(folder / "report.html", html_report(drawn, run_ms=0))
        for _ in range(passes):
            with costs.part("read"):
                rows_of_regions(ours, theirs, ()).write.format("noop").mode("overwrite").save()
        costs.peak_mib = peak_mib(os.getpid())
    return costs


def by_spark(folder: Path, passes: int, conf: dict[str, str]) -> Costs:
    """The join, in a session with the settings of the check's."""
    with _session(folder, conf) as session:

        def count() -> Count:
            for side in ("master", "slave"):
                session.read.parquet((folder / f"{side}.parquet").as_uri()).createOrReplaceTempView(side)
            row = session.sql(SQL).collect()[0]
            return int(row["regions"]), int(row["complete"])

        return _passes(count, passes)


CONTENDERS = {"check": by_check, "spark": by_spark}


def main() -> None:
    """Print the costs of one contender."""
    parser = argparse.ArgumentParser(prog="python -m bench.contenders", description=__doc__)
    parser.add_argument("name", choices=CONTENDERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--conf", action="append", default=[])
    asked = parser.parse_args()
    conf = dict(pair.split("=", 1) for pair in asked.conf)
    print(json.dumps(asdict(CONTENDERS[asked.name](asked.folder, asked.passes, conf))))


@contextmanager
def _session(folder: Path, conf: dict[str, str]) -> Iterator[Any]:
    """As `run -i` starts one for a file of this size."""
    from status_tool.spark.session import spark_session
    from status_tool.spark.settings import is_short

    with spark_session(conf=conf.items(), small=is_short(folder / "master.parquet")) as session:
        yield session


def _passes(count: Callable[[], Count], passes: int) -> Costs:
    costs = Costs()
    for _ in range(passes):
        with timed() as cost:
            found = count()
            costs.done(cost(), found)
    costs.peak_mib = peak_mib(os.getpid())
    return costs


if __name__ == "__main__":
    main()
