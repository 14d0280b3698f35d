"""What `status-tool watch` holds after many rounds: `python -m bench.watch [ROUNDS]`.

The sample check from files with its page, which Spark draws, a round a second or as fast as it goes: the memory of the
tool's process, and what is live on the heap of Spark's JVM after a full collection. Flat means that the last figures
are those of the first tenth.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from bench.processes import memory_mib, tree
from bench.results import Ratio, record
from tests.pair import REPOSITORY

SAMPLES = REPOSITORY / "sample_status" / "gap"
CLEANED_S = 0.5
"""How long Spark's cleaner may take after a collection."""
HELD = ("resident memory of watch", "live heap of its JVM", "metaspace of its JVM")
LOOKS = 5
"""The heap is looked at after so many rounds in a row, while the next one runs: the lowest figure is what stays."""


def main(rounds: int) -> None:
    """Print a line at every tenth of the rounds."""
    files = ["-i", str(SAMPLES / "master.status"), "--slave-status", str(SAMPLES / "slave.status")]
    command = [sys.executable, "-m", "status_tool", "watch", *files, "--every", "1", "--json", "--rounds", str(rounds)]
    print(f"{'round':>6} {'took':>7} {'tool MiB':>9} {'JVM live MiB':>13} {'metaspace MiB':>14}")
    with tempfile.TemporaryDirectory() as folder:
        command += ["--listen", "0", "--report", f"{folder}/page.html"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
            assert tool.stdout is not None
            _follow(tool.pid, tool.stdout, rounds)


def _follow(pid: int, lines: IO[str], rounds: int) -> None:
    step = max(LOOKS, rounds // 10)
    looks: list[tuple[float, float, float]] = []
    found: list[tuple[float, ...]] = []
    for line in lines:
        done = json.loads(line)
        if "error" in done and "round" not in done:
            raise SystemExit(f"watch has ended: {done['error']}")
        # Not the last: it ends.
        if (done["round"] - 1) % step >= step - LOOKS and done["round"] < rounds and (jvm := _jvm(pid)) is not None:
            # A look may take longer than a round: then the tool ends before it was looked at so often.
            with suppress(subprocess.CalledProcessError):
                looks.append((*_heap(jvm), memory_mib(pid, "VmRSS")))
        if looks and done["round"] % step == 0:
            live, metaspace, resident = min(looks)
            found.append((resident, live, metaspace))
            print(
                f"{done['round']:6} {done['took_s']:6.1f}s {found[-1][0]:9.0f} {live:13.1f} {metaspace:14.1f}",
                flush=True,
            )
            looks.clear()
    for what, last, first in zip(HELD, found[-1], found[0], strict=True):
        earlier = "after a tenth of the rounds"
        limit = "what a round holds is let go of before the next"
        record(Ratio("watch", what, earlier, rounds, "rounds", "MiB", (last,), (first,), aim="1", limit=limit))


def _jvm(pid: int) -> int | None:
    return next((one for one in tree(pid) if "java" in Path(f"/proc/{one}/cmdline").read_text()), None)


def _heap(jvm: int) -> tuple[float, float]:
    """Live heap after a full collection, and metaspace, in MiB."""
    # Twice: what Spark's cleaner lets go of once its owner is gone goes with the second.
    for _ in range(2):
        _jcmd(jvm, "GC.run")
        time.sleep(CLEANED_S)
    # It collects once more, and counts only what is live.
    total = _jcmd(jvm, "GC.class_histogram").splitlines()[-1].split()
    metaspace = next(line for line in _jcmd(jvm, "GC.heap_info").splitlines() if line.strip().startswith("Metaspace"))
    words = metaspace.replace(",", " ").split()
    return int(total[2]) / 2**20, int(words[words.index("used") + 1].rstrip("K")) / 1024


def _jcmd(jvm: int, command: str) -> str:
    return subprocess.run(["jcmd", str(jvm), command], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
