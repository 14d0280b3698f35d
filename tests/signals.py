"""Signals at random moments: `python -m tests.signals 200` sends so many to checks of the sample and counts the ends.

`python -m tests.signals 200 SEED COMMAND` does so with another one of `COMMANDS`; `clusters` starts a pair of clusters
and shares the signals out among the commands that talk to them.

Half of the signals are for the run alone, a quarter for it and all that it has started, as a service manager sends
them, and a quarter for Spark's JVM a moment before the run itself.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import REPOSITORY, start_pair, tool, tool_environment

SAMPLE = REPOSITORY / "sample_status" / "gap"
OFFLINE = f"-i {SAMPLE}/master.status --slave-status {SAMPLE}/slave.status"
OUTPUTS = "--report r.html --metrics m.prom --missing m.jsonl"
COMMANDS = {
    "run": f"run {OFFLINE} {OUTPUTS}",
    "watch": f"watch {OFFLINE} {OUTPUTS} --every 1",
    "write": "run -m -o w.status --all-files --wait 3 --conf-dir MASTER",
    "check": f"run -i FILE {OUTPUTS} --wait 1 --conf-dir SLAVE",
    "write-rows": "run -m -o w.status --only hbase --rows=all --conf-dir MASTER",
    "check-rows": f"run -i FILE {OUTPUTS} --rows=all --master-conf MASTER --conf-dir SLAVE",
    "rows": "rows --table orders --master-conf MASTER --conf-dir SLAVE",
    "watch-live": f"watch --master-conf MASTER --conf-dir SLAVE {OUTPUTS} --every 1",
}
"""The command lines; MASTER and SLAVE stand for the clusters' site files, FILE for the master's status."""
LIVE = ("write", "check", "write-rows", "check-rows", "rows", "watch-live")
WHOLE = {"r.html", "m.prom", "m.jsonl", "w.status"}
"""What a run that ends may leave."""
LAST_S = 5.0
"""A check of the sample takes about as long on an idle machine."""
BUSY_S = 12.0
"""Any of the commands, on a machine that does other work."""
PROGRESS = re.compile(r"status-tool: (.*, [0-9.]+ s|no shutdown time was recorded: .*|HDFS: / checked; .*)")
"""A step that takes long on a busy machine is told; so are the notes of `run -m`, which comes to its end then."""
INTERRUPTED = "status-tool: interrupted; nothing was written"
CHANGED = re.compile(r"status-tool: interrupted(; table \S+ may have been changed already: run the command again)?")


@dataclass(frozen=True)
class Shot:
    """A signal."""

    number: signal.Signals
    after_s: float
    to: str

    def __str__(self) -> str:
        return f"{self.number.name} to {self.to} after {self.after_s:.3f} s"


def shots(seed: int, count: int, last_s: float = LAST_S) -> list[Shot]:
    """So many of them."""
    draw = random.Random(seed)
    kinds = ("the run", "the run", "all", "the JVM first")
    return [
        Shot(draw.choice((signal.SIGINT, signal.SIGTERM)), draw.uniform(0, last_s), kinds[number % len(kinds)])
        for number in range(count)
    ]


def fired(shot: Shot, line: str = COMMANDS["run"]) -> tuple[str, str]:
    """How a run ends, and what is wrong with that; empty: nothing is."""
    with tempfile.TemporaryDirectory() as name:
        work, left = Path(name) / "work", Path(name) / "left"
        work.mkdir()
        left.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "status_tool", *line.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=work,
            env=tool_environment() | {"TMPDIR": str(left), "PYTHONPATH": str(REPOSITORY)},
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(shot.after_s)
            _send(process, shot)
            stdout, stderr = process.communicate(timeout=120)
        finally:
            process.kill()
        wait_until(lambda: not _started(left), 60, f"what was started to end ({shot})")
        return _judged(process.returncode, shot, stdout, stderr, {one.name for one in work.iterdir()}, left)


def _judged(code: int, shot: Shot, stdout: str, stderr: str, made: set[str], left: Path) -> tuple[str, str]:
    if stray := [one.name for one in left.iterdir()]:
        return "wrong", f"left {stray}"
    if half := {one for one in made if one not in WHOLE}:
        return "wrong", f"wrote {half}"
    lines = [line for line in stderr.splitlines() if not PROGRESS.fullmatch(line)]
    if INTERRUPTED in lines and made:
        return "wrong", f"said that nothing was written, and wrote {made}"
    if code in (0, 1, 3) and stdout and not lines:
        return "had ended", ""
    if code == 128 + shot.number and (lines == [INTERRUPTED] or CHANGED.fullmatch("\n".join(lines))):
        return str(code), ""
    is_early = (code == -shot.number and not stderr) or "init_import_site" in stderr or _is_in_first_import(stderr)
    if is_early and not stdout and shot.after_s < 1:
        return "before it was Python's own", ""
    return "wrong", f"exit code {code}, {stderr[-2000:] or stdout[-300:]!r}"


def _is_in_first_import(stderr: str) -> bool:
    """Return True if nothing of the tool had run but the import of what handles signals."""
    files = re.findall(r'File "([^"]+)"', stderr)
    return bool(files) and all(file.startswith("<frozen ") or file.endswith("__main__.py") for file in files)


def _send(process: subprocess.Popen[str], shot: Shot) -> None:
    others = _children(process.pid) if shot.to != "the run" else []
    if shot.to == "the JVM first":
        for pid in others:
            _kill(pid, shot.number)
        time.sleep(0.05 if shot.after_s % 0.02 < 0.01 else 0.0)
        others = []
    if process.poll() is None:
        process.send_signal(shot.number)
    for pid in others:
        _kill(pid, shot.number)


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in file.read_text().split()]
    return found


def _started(left: Path) -> list[str]:
    """Processes whose temporary files are in the folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"TMPDIR={left}".encode() in file.read_bytes():
                found.append(file.parent.name)
    return found


def main(count: int, seed: int, command: str) -> int:
    """Send them; returns how many runs ended as they should not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored, by what is started too
    if command != "clusters":
        return _sent(count, seed, command, COMMANDS[command])
    with Lab() as lab, tempfile.TemporaryDirectory() as name:
        pair = start_pair(lab)
        pair.create_table("orders", {"f": 1})
        pair.lose("orders")
        file = Path(name) / "master.status"
        assert tool("run", "-m", "-o", file, "--all-files", conf=pair.master).exit_code == 0
        known = {"MASTER": str(pair.master.conf_dir), "SLAVE": str(pair.slave.conf_dir), "FILE": str(file)}
        lines = {live: " ".join(known.get(word, word) for word in COMMANDS[live].split()) for live in LIVE}
        return sum(_sent(count // len(LIVE), seed, live, line) for live, line in lines.items())


def _sent(count: int, seed: int, command: str, line: str) -> int:
    ends: Counter[str] = Counter()
    for number, shot in enumerate(shots(seed, count, BUSY_S), 1):
        end, wrong = fired(shot, line)
        ends[end] += 1
        if wrong:
            print(f"{number}. {command}, {shot}: {wrong}", flush=True)
        if number % 20 == 0:
            print(number, dict(ends), flush=True)
    print(f"{count} signals to {command}, seed {seed}: {dict(ends)}", flush=True)
    return ends["wrong"]


if __name__ == "__main__":
    asked = [*sys.argv[1:], *(str(random.randrange(1 << 30)), "run")[len(sys.argv) - 2 :]]
    sys.exit(min(1, main(int(asked[0]), int(asked[1]), asked[2])))
