"""Two clusters to play with: `make playground` keeps them up, `lab …` writes to them. docs/tutorial.md tells the story.

`lab` is what an operator would do in HBase's shell and with Hadoop's commands, which the lab does not have.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.lab.adopt import adopt, describe
from tests.lab.errors import LabError
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import PEER, REPOSITORY, Pair, start_pair

FAMILY = "d"
SPLIT = b"row00000500"
DESCRIPTION = "lab.json"
FILE_BYTES = 100_000


def _arguments(words: Sequence[str], prog: str = "lab") -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=prog, description="What happens on the two clusters.")
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("create", help="a replicated table on both, two regions").add_argument("table")
    put = commands.add_parser("put", help="write rows on the master")
    put.add_argument("table")
    put.add_argument("count", type=int)
    put.add_argument("--start", type=int, default=0, metavar="N", help="number of the first row (default: 0)")
    put.add_argument("--wait", action="store_true", help="until the last of them is on the slave")
    files = commands.add_parser("files", help="write the same files on both")
    files.add_argument("folder")
    files.add_argument("count", type=int)
    commands.add_parser("count", help="count the rows of a table on both").add_argument("table")
    commands.add_parser("remove-peer", help="remove the master's replication peer")
    commands.add_parser("roll-wal", help="let every region server of the master begin a new WAL")
    commands.add_parser("add-peer", help="add the peer again")
    return parser.parse_args(words)


def perform(pair: Pair, words: Sequence[str]) -> str:
    """What one `lab` command does; the line that it prints."""
    given = _arguments(words)
    master, slave = pair.master.admin, pair.slave.admin
    match given.command:
        case "create":
            pair.create_table(given.table, {FAMILY: 1}, [SPLIT])
            return f"{given.table}: created on both clusters, 2 regions each, family {FAMILY} is replicated"
        case "put":
            master.put_rows(given.table, FAMILY, given.count, start=given.start)
            last = f"row{given.start + given.count - 1:08d}"
            if given.wait:
                wait_until(lambda: last.encode() in slave.rows(given.table), 120, f"{last} is on the slave")
            return f"{given.table}: {given.count} rows written, the last is {last}" + (
                ", which is on the slave" if given.wait else ""
            )
        case "files":
            for side in (master, slave):
                for number in range(given.count):
                    side.hdfs_put(f"{given.folder}/part-{number}", FILE_BYTES, seed=number)
            return f"{given.folder}: {given.count} files written on both clusters"
        case "count":
            rows = [len(side.rows(given.table)) for side in (master, slave)]
            return f"{given.table}: {rows[0]} rows on the master, {rows[1]} on the slave"
        case "remove-peer":
            master.remove_peer(PEER)
            return f"peer {PEER} removed"
        case "roll-wal":
            return f"{len(master.roll_wal())} region servers began a new WAL"
        case _:
            pair.connect()
            return f"peer {PEER} added"


def _prepare(lab: Lab, pair: Pair) -> Path:
    """Commands and variables for a shell; the file that it reads."""
    commands = lab.root / "bin"
    commands.mkdir()
    (lab.root / "work").mkdir()
    (lab.root / DESCRIPTION).write_text(json.dumps(describe(lab)))
    pair.master.write_hbase(commands / "hbase")
    words = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.playground", "--on", str(lab.root)]
    (commands / "lab").write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    (commands / "lab").chmod(0o755)
    variables = {"MASTER_CONF": pair.master.conf_dir, "SLAVE_CONF": pair.slave.conf_dir}
    shell = [f"export {name}={shlex.quote(str(value))}" for name, value in variables.items()]
    shell.append(f'export PATH={shlex.quote(f"{commands}:{Path(sys.executable).parent}")}:"$PATH"')
    shell.append(f"cd {shlex.quote(str(lab.root / 'work'))}")
    file = lab.root / "playground.sh"
    file.write_text("\n".join(shell) + "\n")
    return file


def _up() -> None:
    with Lab(say=lambda text: print(text, flush=True)) as lab:
        file = _prepare(lab, start_pair(lab))
        print(f"Two clusters are up. In another terminal:\n\n. {file}\n\nCtrl-C here ends them.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


def _on(root: Path, words: Sequence[str]) -> int:
    _arguments(words)  # a wrong command ends before anything is started
    try:
        clusters = adopt(json.loads((root / DESCRIPTION).read_text()))
        try:
            print(perform(Pair(*clusters), words))
        finally:
            for cluster in clusters:
                cluster.release()
    except (LabError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    return 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Without arguments: keep two clusters up. `--on ROOT COMMAND …`: what `lab` runs."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if sys.argv[1:2] == ["--on"]:
            return _on(Path(sys.argv[2]), sys.argv[3:])
        _up()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
