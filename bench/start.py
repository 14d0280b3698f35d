"""Small checks start at once: whole commands against a bare Spark session with one join, ratios of wall time.

    python -m bench.start [ROUNDS]

The kinds alternate, so that whatever else the machine does meets all of them. The check of the samples, which needs no
Spark; with its page, which does, with the archive of Spark's classes, which a run before has made, and without any; a
session as PySpark makes it, with one join of the samples' own rows; what a wrong option and the help cost, against
Python that does nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.results import Ratio, record
from bench.run_on_cluster import AIM, BARE, BARE_NAME
from status_tool.clients.class_archive import CACHE_VARIABLE

ROUNDS = 5
SAMPLES = Path(__file__).resolve().parents[1] / "sample_status" / "complete"
FILES = (str(SAMPLES / "master.status"), str(SAMPLES / "slave.status"))
TOOL = (sys.executable, "-m", "status_tool", "run")
CHECK = (*TOOL, "-i", FILES[0], "--slave-status", FILES[1], "--json")
PAGE = "check and page of the sample"
CHECK_LIMIT = "imports: so few regions need no Spark"
PAGE_LIMIT = "CPU: Spark's start, then planning queries and interpreting them, in a JVM that has just started"
IMPORTS = "CPU: importing Typer and the options"


def main() -> int:
    """Run all rounds; returns 0."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as cache:
        page = (*CHECK, "--report", f"{cache}/page.html")
        kinds: Mapping[str, tuple[Sequence[str], str]] = {
            "check of the sample": (CHECK, "off"),
            PAGE: (page, cache),
            "the same without archive": (page, "off"),
            BARE_NAME: ((sys.executable, "-c", BARE, *FILES), "off"),
            "wrong option": ((*TOOL, "--nonsense"), "off"),
            "help": ((*TOOL, "--help"), "off"),
            "Python alone": ((sys.executable, "-c", "pass"), "off"),
        }
        _taken(page, cache)
        assert list(Path(cache).glob("*.jsa")), "no archive was made"
        times: dict[str, list[float]] = {kind: [] for kind in kinds}
        for _ in range(rounds):
            for kind, what in kinds.items():
                times[kind].append(_taken(*what))

    def compare(ours: str, theirs: str, aim: str, limit: str) -> None:
        found = tuple(times[ours]), tuple(times[theirs])
        record(Ratio("start", ours, theirs, 4, "regions", "s", *found, aim=aim, limit=limit))

    compare("check of the sample", BARE_NAME, AIM, CHECK_LIMIT)
    compare(PAGE, BARE_NAME, AIM, PAGE_LIMIT)
    compare("the same without archive", BARE_NAME, "", "CPU: reading and linking Spark's classes")
    for kind in ("wrong option", "help"):
        compare(kind, "Python alone", "under 0.5 s", IMPORTS)
    return 0


def _taken(command: Sequence[str], cache: str) -> float:
    """Seconds of a whole command."""
    environment = {**os.environ, CACHE_VARIABLE: cache}
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    took = time.perf_counter() - start
    assert done.returncode == (2 if "--nonsense" in command else 0), done
    return took


if __name__ == "__main__":
    sys.exit(main())
