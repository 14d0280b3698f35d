"""Small checks start at once: whole commands against a bare Spark session with one join, ratios of wall time.

    python -m bench.start [ROUNDS]

The kinds alternate, so that whatever else the machine does meets all of them. `archive`: the check of the samples with
the archive of Spark's classes (decision 182), which a run before has made; `without`: the same check with none;
`bare`: a session as pyspark makes it, and one join of 200 rows; `wrong option`: what a typing error costs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import small_run, verify_scale
from status_tool.cache import CACHE_VARIABLE

ROUNDS = 5
SAMPLES = Path(__file__).resolve().parents[1] / "sample_status" / "complete"
TOOL = (sys.executable, "-m", "status_tool", "run")
CHECK = (*TOOL, "-i", str(SAMPLES / "master.status"), "--slave-status", str(SAMPLES / "slave.status"), "--json")


def main() -> int:
    """Run all rounds; returns 0."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        verify_scale.write_inputs(folder, small_run.STREAMS)
        kinds: Mapping[str, tuple[Sequence[str], str]] = {
            "archive": (CHECK, name),
            "without": (CHECK, "off"),
            "bare": ((sys.executable, "-m", "bench.small_run", "bare", name), "off"),
            "wrong option": ((*TOOL, "--nonsense"), "off"),
        }
        _taken(*kinds["archive"])
        assert list(folder.glob("*.jsa")), "no archive was made"
        times = _alternating(kinds, rounds)
    medians = {kind: statistics.median(taken) for kind, taken in times.items()}
    for kind, taken in times.items():
        print(f"{kind}: median {medians[kind]:.2f} s, {min(taken):.2f} to {max(taken):.2f}")
    for kind in ("archive", "without"):
        print(f"{kind} / bare {medians[kind] / medians['bare']:.2f}")
    print(f"archive / without {medians['archive'] / medians['without']:.2f}")
    return 0


def _alternating(kinds: Mapping[str, tuple[Sequence[str], str]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, what in kinds.items():
            times[kind].append(_taken(*what))
    return times


def _taken(command: Sequence[str], cache: str) -> float:
    """Seconds of a whole command."""
    start = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, CACHE_VARIABLE: cache}, check=False
    )
    assert done.returncode == (2 if "--nonsense" in command else 0), done
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
