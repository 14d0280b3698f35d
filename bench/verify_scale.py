"""The check of synthetic status files against the least that it must do, done by bare Spark.

    python -m bench.verify_scale [STREAMS…] [--shape mixed|simple|holed] [--rounds N] [--memory 1g] [--only NAME…]

Each contender is a process of its own that reads the same two files (`bench.contenders`); they take turns. The heap of
Spark's JVM is that of `run -i` unless --memory sets another one. A contender that dies is named, and the others go on;
the exit code is 1 where the check itself died. With --folder the files are kept, and used again.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.contenders import CONTENDERS, Cost, Costs
from bench.results import Ratio, record
from bench.streams import SHAPES, write_inputs
from tests.pair import REPOSITORY

SIZES = (10_000, 100_000, 1_000_000)
AGAINST = "bare Spark join"
PARTS = {
    "read": "reading both sides",
    "overview": "causes, after the check",
    "page": "page of --report, after the check",
}
"""What else the check's process does, by the names of `bench.contenders`."""
AIM = "at most 1.5"
LIMIT = "Spark's start; then CPU: reading and adding up each region's rows"


def main() -> int:
    """Run the benchmark; returns 1 where the check died, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.verify_scale", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="STREAMS")
    parser.add_argument("--shape", choices=SHAPES, default="mixed")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--passes", type=int, default=2, help="in each process: the first is cold, the others are warm")
    parser.add_argument("--memory", default="1g", help="spark.driver.memory")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--folder", type=Path, help="where the files are kept")
    asked = parser.parse_args()
    died = False
    for size in asked.sizes:
        with _files(asked.folder, asked.shape, size) as (folder, streams):
            found: dict[str, list[Costs]] = {name: [] for name in asked.only}
            for _ in range(asked.rounds):
                for name in asked.only:
                    costs = _run(name, folder, asked.passes, asked.memory)
                    found[name] += [costs] if costs else []
                    died |= name == "check" and costs is None
            _compare(found, streams, asked.shape)
    return int(died)


@contextmanager
def _files(kept: Path | None, shape: str, size: int) -> Iterator[tuple[Path, int]]:
    """A folder with both files, and how many streams they have."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) if kept is None else kept / f"{shape}-{size}"
        note = folder / "streams"
        if not note.exists():
            folder.mkdir(parents=True, exist_ok=True)
            written = write_inputs(folder, size, SHAPES[shape])
            note.write_text(str(written.streams))
            print(f"{shape}: {written}", flush=True)
        yield folder, int(note.read_text())


def _run(name: str, folder: Path, passes: int, memory: str) -> Costs | None:
    """None where the process died; what it said last is printed."""
    conf = ["--conf", f"spark.driver.memory={memory}"]
    command = [sys.executable, "-m", "bench.contenders", name, str(folder), "--passes", str(passes), *conf]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        print(f"{name} died with {done.returncode}: {said[-1] if said else ''}", flush=True)
        return None
    costs = Costs.of(done.stdout)
    shown = ", ".join(f"{one.wall_s:.2f} s ({one.cpu_s:.1f} CPU s)" for one in costs.passes)
    parts = "".join(f"; {part} {each[-1].wall_s:.2f} s ({each[-1].cpu_s:.1f})" for part, each in costs.parts.items())
    whole = f"{costs.whole.wall_s:.1f} s ({costs.whole.cpu_s:.1f})"
    print(f"  {name}: {shown}{parts}; whole {whole}; {costs.peak_mib} MiB; {costs.count}", flush=True)
    return costs


def _compare(found: dict[str, list[Costs]], streams: int, shape: str) -> None:
    ours = found.get("check") or []

    def keep(what: str, against: str, mine: Sequence[float], others: Sequence[float], unit: str, aim: str = "") -> None:
        if mine and others:
            sides = tuple(mine), tuple(others)
            record(Ratio("verify_scale", what, against, streams, f"streams, {shape}", unit, *sides, aim, LIMIT))

    def compare(what: str, against: str, value: Callable[[Costs], float], theirs: Sequence[Costs], unit: str) -> None:
        keep(what, against, [*map(value, ours)], [*map(value, theirs)], unit, "" if unit == "MiB" else AIM)

    theirs = found.get("spark") or []
    compare("check, warm", f"{AGAINST}, warm", lambda costs: _warm(costs).wall_s, theirs, "s")
    compare("check with its start", f"{AGAINST} with its start", lambda c: c.whole.wall_s, theirs, "s")
    compare("check, warm", f"{AGAINST}, warm", lambda costs: _warm(costs).cpu_s, theirs, "CPU s")
    compare("check", AGAINST, lambda costs: costs.peak_mib, theirs, "MiB")
    warm = [_warm(costs).wall_s for costs in ours]
    for part, what in PARTS.items():
        keep(what, "check, warm", [costs.parts[part][-1].wall_s for costs in ours], warm, "s")


def _warm(costs: Costs) -> Cost:
    """The median of the passes but for the first, if there are others."""
    passes = costs.passes[1:] or costs.passes
    return Cost(statistics.median(one.wall_s for one in passes), statistics.median(one.cpu_s for one in passes))


if __name__ == "__main__":
    sys.exit(main())
