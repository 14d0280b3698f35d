"""docs/tutorial.md, walked through on two real clusters: every command, its exit code, and what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pair import REPOSITORY, Pair, tool_here
from tests.playground import perform

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

PAGE = REPOSITORY / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
ANY = "…"
"""On the page: what differs from run to run. Alone on a line: any number of lines."""
ASSIGNMENT = re.compile(r"(\w+)=\$\((.*)\)")


@dataclass(frozen=True)
class Step:
    """A command of the page and what the page shows below it."""

    command: str
    shown: str


def steps() -> list[Step]:
    """All of the page, in its order; a backslash continues a command."""
    found = []
    for block in BLOCK.findall(PAGE.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.replace("\\\n", "").partition("\n")
            found.append(Step(command, shown))
    return found


def pattern(shown: str) -> re.Pattern[str]:
    """What a command's output has to match, as a whole."""
    lines = []
    for line in shown.splitlines(keepends=True):
        if line.strip() == ANY:
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*".join(re.escape(part) for part in line.split(ANY)))
    return re.compile("".join(lines))


class Walk:
    """A reader's shell: its variables, and how the last command ended."""

    def __init__(self, pair: Pair, folder: Path) -> None:
        self.pair = pair
        self.code = 0
        commands = folder / "bin"
        commands.mkdir()
        pair.master.write_hbase(commands / "hbase")
        self.variables = {"MASTER_CONF": str(pair.master.conf_dir), "SLAVE_CONF": str(pair.slave.conf_dir)}
        self.path = f"{commands}:{os.environ['PATH']}"

    def run(self, command: str) -> str:
        """What it prints on stdout; its exit code stays."""
        if command == "echo $?":
            code, self.code = self.code, 0
            return f"{code}\n"
        assert self.code == 0, f"the page does not tell that the command before `{command}` ended with {self.code}"
        if assignment := ASSIGNMENT.fullmatch(command):
            self.variables[assignment[1]] = self._bash(assignment[2]).rstrip("\n")
            return ""
        program, *arguments = (self._expand(word) for word in shlex.split(command))
        if program == "lab":
            return perform(self.pair, arguments) + "\n"
        if program == "status-tool":
            result = tool_here(*arguments)
            self.code = result.exit_code
            print(result.stderr)
            return result.stdout
        return self._bash(command)

    def _expand(self, word: str) -> str:
        return re.sub(r"\$(\w+)", lambda name: self.variables[name[1]], word)

    def _bash(self, command: str) -> str:
        environment = {**os.environ, **self.variables, "PATH": self.path}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, stdout=subprocess.PIPE, text=True, timeout=900, check=False
        )
        self.code = done.returncode
        return done.stdout


def test_the_tutorial(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete, a loss that is caught, repaired and proven; at the end both clusters hold the same rows."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    walk = Walk(pair, tmp_path)
    for step in steps():
        print(f"$ {step.command}")
        stdout = walk.run(step.command)
        print(stdout)
        assert pattern(step.shown).fullmatch(stdout), f"the page shows for `{step.command}`:\n{step.shown}"
    assert walk.code == 0
    assert pair.same("orders")
    assert len(pair.slave.admin.rows("orders")) == 1050
    # Other modules go on with the pair.
    assert tool_here("shutdown-time", "clear", conf=pair.master).exit_code == 0
