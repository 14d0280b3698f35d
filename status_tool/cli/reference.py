"""The command reference, docs/commands.md, as the command line itself describes its options.

`python -m status_tool.cli.reference > docs/commands.md` writes it anew; `tests/unit/test_docs.py` fails while the two
differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Any

import typer
from typer.main import get_command

from status_tool.cli.main import app

PROGRAM = "status-tool"
_PIPE = "\\|"  # a bare one would end the cell, even in code
_INTRODUCTION = """\
# Commands

Generated from the code by `python -m status_tool.cli.reference > docs/commands.md`; do not edit. Which options of `run`
go together: [options.md](options.md). Exit codes: [README](../README.md#reading-a-verdict)."""


def commands_markdown() -> str:
    """The whole reference."""
    root = get_command(app)
    sections = [_section(names, command) for names, command in _commands((), root)]
    return "\n\n".join([_INTRODUCTION, *sections]) + "\n"


def _commands(names: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below (and including) this one that does something, with its names, in the order of `-h`."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands((*names, name), inner)
    if not hasattr(command, "commands"):
        yield names, command


def _section(names: tuple[str, ...], command: Any) -> str:
    context = typer.Context(command, info_name=" ".join((PROGRAM, *names)))
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [f"| `{name.replace('|', _PIPE)}` | {_cell(text)} |" for name, text in filter(None, records)]
    lines = [f"## {' '.join(names)}", "", fill(" ".join((command.help or "").split()), 120)]
    if rows:
        lines += ["", "| option | meaning |", "|---|---|", *rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """As the cell of a table; what Markdown takes for a tag or for emphasis is shown as it is."""
    for character in "\\<*_|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


if __name__ == "__main__":
    print(commands_markdown(), end="")
