"""The command reference, docs/commands.md, as the command line itself describes its options.

`python -m status_tool.cli.reference > docs/commands.md` writes it anew; `tests/unit/test_docs.py` fails while the two
differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
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


_COMMON = 3
"""An option that so many commands take, in the same words, is explained once."""
_Record = tuple[str, str]
"""An option as the help names it, and its meaning."""


def commands_markdown() -> str:
    """Return the whole reference."""
    commands = [(names, command, _records(names, command)) for names, command in _commands((), get_command(app))]
    taken = Counter(record for _, _, records in commands for record in records)
    common = {record for record, count in taken.items() if count >= _COMMON}
    sections = [_section(names, command, records, common) for names, command, records in commands]
    shared = "\n".join(["## Common options", "", *_table(record for record in taken if record in common)])
    return "\n\n".join([_INTRODUCTION, shared, *sections]) + "\n"


def _commands(names: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command below (and including) this one that does something, with its names, in the order of `-h`."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands((*names, name), inner)
    if not hasattr(command, "commands"):
        yield names, command


def _records(names: tuple[str, ...], command: Any) -> list[_Record]:
    """Return the options of a command, in the order of `-h`."""
    context = typer.Context(command, info_name=" ".join((PROGRAM, *names)))
    return list(filter(None, (parameter.get_help_record(context) for parameter in command.params)))


def _section(names: tuple[str, ...], command: Any, records: list[_Record], common: Set[_Record]) -> str:
    lines = [f"## {' '.join(names)}", "", fill(" ".join((command.help or "").split()), 120)]
    if own := [record for record in records if record not in common]:
        lines += ["", *_table(own)]
    if shared := [name for name, text in records if (name, text) in common]:
        flags = ", ".join(f"`{name.split(',')[0].split(' ')[0]}`" for name in shared)
        lines += ["", fill(f"[Common options](#common-options): {flags}.", 120)]
    return "\n".join(lines)


def _table(records: Iterable[_Record]) -> list[str]:
    rows = [f"| `{name.replace('|', _PIPE)}` | {_cell(text)} |" for name, text in records]
    return ["| option | meaning |", "|---|---|", *rows]


def _cell(text: str) -> str:
    """Return the text as a table's cell, with Markdown's tags and emphasis escaped."""
    for character in "\\<*_|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


if __name__ == "__main__":
    print(commands_markdown(), end="")
