"""Ends of a whole master, and the recovery point against the truth: `python -m tests.campaign.points N [SEED]`.

Each end: writers under way and a publisher; sometimes a region server of the master, or of the slave, crashes a little
before; then every process of the master is killed with -9, at a random moment. `recovery-point` is asked on the slave
alone. Then the master is started again, on the data that its processes left, for the next end. The truth is the
writers' journal, which was read again and again meanwhile: a cell that a read has found in it had been acknowledged
before that read ended. So a point is wrong if any cell that was found before it is missing on the slave, and the best
possible point lies just before the first read that found a cell which is missing.
"""

from __future__ import annotations

import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from tests.campaign.truth import Cells
from tests.lab.cluster import Cluster
from tests.lab.lab import Lab
from tests.pair import REPOSITORY, Pair, Result, start_pair, tool, tool_environment

INTERVAL_S = 3.0
PER_PAIR = 10
READ_S = 0.1


@dataclass
class Journal:
    """The writer's journal as it was read: how many cells it had, and when that read had ended (epoch ms)."""

    pair: Pair
    mix: int
    cells: list[tuple[str, str]] = field(default_factory=list)
    reads: list[tuple[int, int]] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def read(self) -> None:
        """What has been acknowledged since the last read."""
        lines = self.pair.master.admin.mix_journal(self.mix, len(self.cells))
        self.cells += [(line.split("\t", 1)[0], line.split("\t", 1)[1]) for line in lines]
        self.reads.append((int(time.time() * 1000), len(self.cells)))

    @contextmanager
    def watched(self) -> Iterator[Journal]:
        """Read it again and again while the block runs."""
        thread = threading.Thread(target=self._keep, daemon=True)
        thread.start()
        try:
            yield self
            assert thread.is_alive(), "the journal was not read to the end"
        finally:
            self._over.set()
            thread.join(30)

    def _keep(self) -> None:
        while not self._over.wait(READ_S):
            self.read()

    def before(self, moment_ms: int) -> Cells:
        """What had certainly been acknowledged before a moment."""
        count = max((count for read_ms, count in self.reads if read_ms <= moment_ms), default=0)
        return frozenset(self.cells[:count])

    def best_ms(self, present: Cells) -> int:
        """The latest point that this journal cannot show to be wrong."""
        lacking = next((number for number, cell in enumerate(self.cells) if cell not in present), None)
        if lacking is None:
            return self.reads[-1][0]
        return max((read_ms for read_ms, count in self.reads if count <= lacking), default=0)


@dataclass(frozen=True)
class End:
    """What came of one end of the master."""

    crashes: str
    killed_ms: int
    point_ms: int | None
    acknowledged: int
    """Cells that had been acknowledged before the point."""
    missing: int
    """Those of them that are not on the slave: has to be 0."""
    behind_best_ms: int | None
    """How much earlier the point is than the best possible."""
    behind_kill_ms: int | None
    held_back_by: str | None
    took_s: float
    not_on_master: int | None = None
    """Cells of the journal that the master lacks when it is up again: has to be 0."""


@contextmanager
def publisher(pair: Pair, *, interval_s: float = INTERVAL_S) -> Iterator[subprocess.Popen[str]]:
    """A publisher on the master, as a process of its own; ended by SIGTERM if it still runs."""
    command = [sys.executable, "-m", "status_tool", "publish", "--interval", str(interval_s)]
    process = subprocess.Popen(
        [*command, "--conf-dir", str(pair.master.conf_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=tool_environment() | {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=30)
        process.kill()


def published_rounds(process: subprocess.Popen[str], count: int, timeout_s: float = 120) -> list[str]:
    """Return the lines of its next rounds; `AssertionError` where one was not published.

    Its first ones are left out while the claim of a publisher that was killed just before is younger than an interval.
    """
    assert process.stdout is not None
    end, lines = time.monotonic() + timeout_s, list[str]()
    while len(lines) < count:
        assert time.monotonic() < end, lines
        line = process.stdout.readline()
        if not lines and " left out: " in line:
            continue
        assert " published the cut " in line, (line, process.poll())
        lines.append(line)
    return lines


def recovery_point(pair: Pair, *arguments: str, ask: Callable[..., Result] = tool) -> Result:
    """Asked on the slave: by a process of its own, or `tool_here`."""
    return ask("recovery-point", "--json", *arguments, conf=pair.slave)


def stored(cluster: Cluster, tables: list[str]) -> Cells:
    """All cells that it holds now."""
    return frozenset((table, cell) for table in tables for cell in cluster.admin.cells(table))


def stored_on_slave(pair: Pair, tables: list[str]) -> Cells:
    """All cells that it holds, once no more arrive."""
    before: Cells | None = None
    while True:
        now = stored(pair.slave, tables)
        if now == before:
            return now
        before = now
        time.sleep(1)


def judged(journal: Journal, present: Cells, found: Result, crashes: str, killed_ms: int, took_s: float) -> End:
    """The answer held against the truth."""
    answer = found.json
    assert found.exit_code in (0, 1, 3), found
    point_ms = answer["recovery_point_ms"]
    acknowledged = journal.before(point_ms) if point_ms is not None else frozenset()
    # A point after the kill would say no more.
    best_ms = min(journal.best_ms(present), killed_ms)
    return End(
        crashes=crashes,
        killed_ms=killed_ms,
        point_ms=point_ms,
        acknowledged=len(acknowledged),
        missing=len(acknowledged - present),
        behind_best_ms=None if point_ms is None else best_ms - point_ms,
        behind_kill_ms=None if point_ms is None else killed_ms - point_ms,
        held_back_by=answer["held_back_by"],
        took_s=took_s,
    )


def one_end(pair: Pair, table: str, draw: random.Random) -> tuple[End, Journal]:
    """Write, publish, kill, ask, and hold the answer against the journal. The master is down afterwards."""
    mix = pair.master.admin.mix_start({table: ["f"]}, seed=draw.randrange(1 << 30), rate_per_s=60, mark=f"{table}.")
    journal = Journal(pair, mix)
    crashes = draw.choice(((), ("master",), ("master",), ("slave",), ("master", "slave")))
    with journal.watched():
        with publisher(pair) as process:
            published_rounds(process, 3, 300)
            time.sleep(draw.uniform(0, 2 * INTERVAL_S))
            for which in crashes:
                victim = pair.master if which == "master" else pair.slave
                victim.crash(draw.choice(victim.region_servers))
                time.sleep(draw.uniform(0, 3 * INTERVAL_S))
            killed_ms = pair.master.lose()
        pair.master.admin.mix_stop(mix, patience_s=3)  # no server is left to answer it
        journal.read()
    began = time.monotonic()
    found = recovery_point(pair)
    took_s = time.monotonic() - began
    present = stored_on_slave(pair, [table])
    return judged(journal, present, found, " and ".join(crashes) or "none", killed_ms, took_s), journal


def revived(pair: Pair, table: str, journal: Journal) -> int:
    """Start again what is down; returns how many of the acknowledged cells the master lacks."""
    for cluster in (pair.slave, pair.master):
        cluster.start()
    return len(frozenset(journal.cells) - stored(pair.master, [table]))


def is_settled(pair: Pair) -> bool:
    """Whether all has arrived and is proven, so that the next end does not stop at this one's.

    Proven by rows: no region server was up to tell that a starting HBase master's new version of the peer is no change.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/settled"
        command = ("run", "-m", "-o", file, "--only", "hbase", "--wait", "240", "--drained", "--rows=all")
        results = [tool(*command, conf=pair.master, timeout=600)]
        if results[0].exit_code == 0:
            results.append(tool("run", "-i", file, "--only", "hbase", "--rows", conf=pair.slave, timeout=600))
    if results[-1].exit_code:
        print(f"a new pair: {results[-1]}", file=sys.stderr)
    return results[-1].exit_code == 0


def ends(count: int, seed: int) -> Iterator[End]:
    """So many of them, of pairs that serve `PER_PAIR` ends each, or as long as what was killed is settled."""
    draw = random.Random(seed)
    left = count
    while left:
        with Lab() as lab:
            pair = start_pair(lab)
            pair.let_peer_age()
            for number in range(min(left, PER_PAIR)):
                table = f"points{number}"
                pair.create_table(table, {"f": 1})
                end, journal = one_end(pair, table, draw)
                left -= 1
                yield replace(end, not_on_master=revived(pair, table, journal))
                if left and not is_settled(pair):
                    break


def summary(found: list[End]) -> str:
    """In one line."""
    with_point = [one for one in found if one.point_ms is not None]
    behind = sorted(one.behind_best_ms for one in with_point if one.behind_best_ms is not None)
    median = statistics.median(behind) / 1000 if behind else 0.0
    worst = behind[-1] / 1000 if behind else 0.0
    wrong = sum(one.missing > 0 for one in found)
    assert not any(one.not_on_master for one in found), "a master lost what it had acknowledged"
    return (
        f"{len(found)} ends, {wrong} points later than the truth, {len(found) - len(with_point)} without a point; "
        f"earlier than the best possible by {median:.1f} s at the median, {worst:.1f} s at worst "
        f"(interval {INTERVAL_S:g} s)"
    )


def main() -> int:
    """Print each end as it comes, and the summary."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    found: list[End] = []
    for end in ends(count, seed):
        found.append(end)
        print(json.dumps({"seed": seed, "number": len(found), **vars(end)}), flush=True)
    print(summary(found))
    return 1 if any(one.missing for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
