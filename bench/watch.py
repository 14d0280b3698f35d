"""What `status-tool watch` holds after many rounds: `python -m bench.watch [ROUNDS]`.

The sample check from files, a round a second or as fast as it goes: the memory of the tool's process, and what is live
on the heap of Spark's JVM after a full collection. Flat means that the last figures are those of the first tenth.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO

from tests.pair import REPOSITORY

SAMPLES = REPOSITORY / "sample_status" / "gap"


def main(rounds: int) -> None:
    """Print a line at every tenth of the rounds."""
    files = ["-i", str(SAMPLES / "master.status"), "--slave-status", str(SAMPLES / "slave.status")]
    command = [sys.executable, "-m", "status_tool", "watch", *files, "--every", "1", "--json", "--rounds", str(rounds)]
    print(f"{'round':>6} {'took':>7} {'tool MiB':>9} {'JVM live MiB':>13} {'metaspace MiB':>14}")
    with subprocess.Popen(
        [*command, "--listen", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as tool:
        assert tool.stdout is not None
        _follow(tool.pid, tool.stdout, rounds)


def _follow(pid: int, lines: IO[str], rounds: int) -> None:
    step = max(1, rounds // 10)
    for line in lines:
        done = json.loads(line)
        if "error" in done and "round" not in done:
            raise SystemExit(f"watch has ended: {done['error']}")
        # Not the last: it ends.
        if done["round"] % step == 0 and done["round"] < rounds and (jvm := _jvm(pid)) is not None:
            live, metaspace = _heap(jvm)
            print(
                f"{done['round']:6} {done['took_s']:6.1f}s {_rss(pid):9.0f} {live:13.1f} {metaspace:14.1f}", flush=True
            )


def _jvm(pid: int) -> int | None:
    threads = Path(f"/proc/{pid}/task").glob("*/children")  # any of them may have started it
    children = [child for thread in threads for child in thread.read_text().split()]
    return next((int(one) for one in children if "java" in Path(f"/proc/{one}/cmdline").read_text()), None)


def _rss(pid: int) -> float:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(status["VmRSS"].split()[0]) / 1024


def _heap(jvm: int) -> tuple[float, float]:
    """Live heap after a full collection, and metaspace, in MiB."""
    subprocess.run(["jcmd", str(jvm), "GC.run"], check=True, capture_output=True)
    info = subprocess.run(["jcmd", str(jvm), "GC.heap_info"], check=True, capture_output=True, text=True).stdout
    used = {"heap": 0, "meta": 0}
    for line in info.splitlines():
        words = line.replace(",", " ").split()
        if "used" in words:
            kind = (
                "meta" if words[0] == "Metaspace" else "heap" if words[0] in ("def", "tenured", "garbage-first") else ""
            )
            if kind:
                used[kind] += int(words[words.index("used") + 1].rstrip("K"))
    return used["heap"] / 1024, used["meta"] / 1024


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
