"""`make campaign SEED=… N=…`: run schedules on real clusters, one JSON line each, a table at the end."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from status_tool.spark.session import spark_session
from tests.campaign.arena import Arena, arena
from tests.campaign.runner import Record, run_schedule
from tests.campaign.schedule import ARENAS, BOTH, WITNESSED, Schedule, draw
from tests.campaign.shrink import shrink
from tests.campaign.summary import read, table, undecided
from tests.pair import REPOSITORY, tool_here

REUSED = 25
"""Schedules that share an arena before a fresh one is started."""
SAMPLE = REPOSITORY / "sample_status" / "complete"


def main(arguments: Sequence[str] | None = None) -> int:
    """0: no promise was broken; 1: one was; its schedule has been cut down and printed."""
    options = _parser().parse_args(arguments)
    schedules = _schedules(options)
    records: list[Record] = []
    with spark_session(), options.out.open("a") as out:
        _warm_up()
        for kind in [options.arena] if options.arena else (*ARENAS, WITNESSED, BOTH):
            for record in _run_all(kind, [one for one in schedules if one.arena == kind]):
                records.append(record)
                out.write(record.to_json() + "\n")
                out.flush()
        wrong = [record for record in records if record.wrong()]
        if wrong and options.shrink:
            print("shortest schedule that still fails:", shrink(wrong[0].schedule, options.tries).to_json())
    print(table([options.out]))
    return 1 if wrong else 0


def _warm_up() -> None:
    """The first check of a process takes several times as long as the others, and servers stand still during a look."""
    files = ("-i", SAMPLE / "master.status", "--slave-status", SAMPLE / "slave.status")
    tool_here("run", *files, "--json", "--only", "hbase")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first schedule")
    parser.add_argument("--count", type=int, default=3, help="how many, with seeds one after another")
    parser.add_argument("--step", type=int, default=1, help="between two seeds; several campaigns may share a range")
    parser.add_argument("--schedule", help="a schedule's own JSON instead of a seed")
    parser.add_argument(
        "--again", type=Path, help="the schedules of this file's records that lost nothing and did not end complete"
    )
    parser.add_argument(
        "--arena",
        choices=(*ARENAS, WITNESSED, BOTH),
        help=f"only schedules of this kind of arena; {WITNESSED}, {BOTH}: each seed's other schedule",
    )
    parser.add_argument("--out", type=Path, default=Path("campaign.jsonl"), help="records are added to this file")
    parser.add_argument("--shrink", action="store_true", help="cut a failing schedule down")
    parser.add_argument("--tries", type=int, default=2, help="how often a shorter schedule may fail to fail")
    return parser


def _schedules(options: argparse.Namespace) -> list[Schedule]:
    if options.schedule:
        return [Schedule.from_json(options.schedule)]
    if options.again:
        return [Schedule.from_json(json.dumps(record["schedule"])) for record in undecided(read([options.again]))]
    return [draw(options.seed + number * options.step, options.arena) for number in range(options.count)]


def _run_all(kind: str, schedules: Sequence[Schedule]) -> Iterator[Record]:
    waiting = list(schedules)
    while waiting:
        with tempfile.TemporaryDirectory(prefix="status-tool-campaign-") as folder, arena(kind) as built:
            _say(f"--- arena {kind}")
            while waiting and built.used < REUSED:
                record = _told(built, waiting.pop(0), Path(folder))
                yield record
                if record.broken or not built.usable():
                    break


def _told(built: Arena, schedule: Schedule, folder: Path) -> Record:
    _say(f"seed {schedule.seed}")
    record = run_schedule(built, schedule, folder, lambda text: _say(f"  {text}"))
    mark = "WRONG" if record.wrong() else "broken" if record.broken else "ok"
    _say(f"seed {schedule.seed} {mark} in {record.seconds:.0f} s, lost {record.lost} {record.broken or ''}")
    return record


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
