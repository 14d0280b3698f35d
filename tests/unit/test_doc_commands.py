"""Commands of the documents: each is run by a test that is named here or beside it, or it says that it is not run.

Beside a block of code stands `<!-- not run: why -->` or `<!-- run by: tests/… -->`. What is not run is at least parsed:
options exist and go together, targets and modules are there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import dropwhile
from pathlib import Path

import pytest
from typer.exceptions import TyperException
from typer.main import get_command

from status_tool.cli.main import _BARE, app
from status_tool.cli.modes import check_options, given_of
from status_tool.cli.repeated import run_command
from status_tool.errors import UsageError
from tests.cluster.test_failover import BLOCK as FAILOVER_BLOCK
from tests.cluster.test_tutorial import BLOCK as TUTORIAL_BLOCK
from tests.pair import REPOSITORY, tool, tool_here

DOCS = REPOSITORY / "docs"
FOLLOWED = {"failover.md": FAILOVER_BLOCK, "tutorial.md": TUTORIAL_BLOCK}
"""Pages that a test follows word for word, and what it takes for a block of commands."""
FENCED = re.compile(r"(?P<before>[^\n]*)\n(?P<block>^ *```(?P<kind>\w*)\n(?P<code>.*?)^ *```)", re.M | re.S)
VARIABLE = re.compile(r"[A-Z_]+=.*")
COMMAND = re.compile(
    r"(?:\$ )?((?:[A-Z_]+=\S+ )*(?:\S*/)?(?:status-tool|spark-submit) |make |(?:\.venv/bin/)?python -m )"
)
NOT_RUN = re.compile(r" *<!-- not run: [^>]+ -->")
RUN_BY = re.compile(r" *<!-- run by: (tests/\S+\.py)(?:, without [^>]+)? -->")
SPAN = re.compile(r"(?<!`)`(status-tool (?!status file)[^`…]*)`", re.S)
"""Within a sentence; a line of formats.md begins like a command."""


@dataclass(frozen=True)
class Block:
    """A block of code with commands in it."""

    page: Path
    before: str
    code: str
    is_followed: bool

    def commands(self) -> Iterator[str]:
        """Those that are of this project, without the prompt."""
        for line in self.code.replace("\\\n", "").splitlines():
            if COMMAND.match(line.strip()):
                yield line.strip().removeprefix("$ ")


def pages() -> list[Path]:
    return [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]


def blocks() -> list[Block]:
    found = []
    for page in pages():
        text = page.read_text()
        followed = {match.group(0).strip() for match in FOLLOWED.get(page.name, re.compile("(?!)")).finditer(text)}
        for match in FENCED.finditer(text):
            block = Block(page, match["before"], match["code"], match["block"].strip() in followed)
            if any(block.commands()):
                found.append(block)
    return found


@pytest.mark.parametrize("block", blocks(), ids=lambda block: f"{block.page.name}: {next(block.commands())[:40]}")
def test_every_command_is_run_or_marked(block: Block) -> None:
    """By the test that follows the page, by the one that is named, or it says why not."""
    if block.is_followed or NOT_RUN.fullmatch(block.before):
        return
    named = RUN_BY.fullmatch(block.before)
    assert named, f"{block.page.name}: put <!-- run by: tests/… --> or <!-- not run: why --> before:\n{block.code}"
    assert (REPOSITORY / named[1]).exists(), named[1]


@pytest.mark.parametrize("block", blocks(), ids=lambda block: f"{block.page.name}: {next(block.commands())[:40]}")
def test_every_command_parses(block: Block) -> None:
    """Whether it is run or not."""
    for command in block.commands():
        parse(command)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_commands_within_sentences_parse(page: Path) -> None:
    """Those with all that they need; a sentence may also name a command alone."""
    plain = FENCED.sub("", page.read_text())
    for command in SPAN.findall(plain):
        if not any(word in command for word in ("[", "{")):
            parse(" ".join(command.split()), is_whole=False)


def parse(command: str, is_whole: bool = True) -> None:
    """Raises for what the command line would refuse before it contacts anything."""
    words = list(dropwhile(VARIABLE.fullmatch, shlex.split(command, comments=True)))
    if words[0].endswith("spark-submit"):
        (script,) = (at for at, word in enumerate(words) if word.endswith(".py"))
        parse_tool(words[script + 1 :], is_whole)
    elif words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.M)
        assert set(word for word in words[1:] if "=" not in word) <= set(targets), command
    elif words[1:2] == ["-m"]:
        assert find_spec(words[2]) is not None, command
    else:
        parse_tool(words[1:], is_whole)


def parse_tool(words: list[str], is_whole: bool) -> None:
    """A command line of the tool."""
    if words[:1] == ["--profile"]:
        words = words[2:]
    level = get_command(app)
    while hasattr(level, "commands"):
        if not words or words[0].startswith("-"):
            return  # of the program itself, as --version
        assert words[0] in level.commands, words
        level, words = level.commands[words[0]], words[1:]
    if not words and not is_whole:
        return
    context = level.make_context("status-tool", [_BARE.get(word, word) for word in words])
    if level.name == "run":
        try:
            check_options(given_of(context.params), context.params["only"])
        except UsageError:
            if is_whole:
                raise
    elif level.name == "watch":
        run_command().make_context("watch", list(context.args))


@pytest.mark.parametrize(
    "command",
    [
        "status-tool run --no-such-option",
        "status-tool no-such-command",
        "status-tool run -i FILE -m -o FILE",
        "status-tool run -m -o FILE --since 1795314853330",
        "status-tool watch -i FILE --no-such-option",
        "PYSPARK_PYTHON=python3 status-tool run --no-such-option",
        "spark-submit --master yarn main.py run --no-such-option",
        "make no-such-target",
        "python -m tests.no_such_module",
    ],
)
def test_what_is_wrong_is_refused(command: str) -> None:
    """Or the tests above could not fail."""
    with pytest.raises((AssertionError, UsageError, TyperException)):
        parse(command)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("warm_spark")
def test_the_samples_of_the_readme(tmp_path: Path) -> None:
    """The two checks that need nothing but Python and Java; the second is the verdict at the top of the page.

    That one as a process of its own, which starts Spark.
    """
    text = (REPOSITORY / "README.md").read_text()
    commands = re.findall(r"^\.venv/bin/status-tool (run .*)$", text, re.M)
    results = []
    for run, command in zip((tool_here, tool), commands, strict=True):
        words = [REPOSITORY / word if word.startswith("sample_status/") else word for word in shlex.split(command)]
        results.append(run(*words, conf=tmp_path))
    assert [result.exit_code for result in results] == [0, 1], results
    assert "HBase Replication is complete." in results[0].stdout
    top = text.split("```")[1]
    shown = [line for line in top.splitlines() if line.strip() not in ("", "…") and not line.startswith("$")]
    said = " ".join(results[1].stdout.split())
    assert [line for line in shown if " ".join(line.split()) not in said] == [], results[1].stdout
