"""The options of `run -h` by what they are about; within a group in the order of the command's signature."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from typer.core import TyperCommand

from status_tool.cli.run_options import OPTION_GROUPS

_EXAMPLES = (
    ("status-tool run -m -o master.status", "on the master"),
    ("status-tool run -i master.status", "on the slave, with the copied file"),
)
_ENDS = (
    ("0", "Complete: proven."),
    ("1", "Not complete: something is missing or differs."),
    ("2", "An error, in one line; nothing was decided."),
    ("3", "Could not be verified: no loss was found, but something is not proven."),
    ("130, 143", "Interrupted by Ctrl-C or SIGTERM."),
)
_TYPE = re.compile(r" <list\[\w+\]>")


def write_groups(
    parameters: list[Any], context: Any, formatter: Any, left_out: Collection[str] = (), suffix: str = ""
) -> None:
    """Write a section for each group, as Click writes the one section "Options"."""
    headings = {name: heading for heading, options in OPTION_GROUPS.items() for name in options} | {
        # Click adds `-h`, which is none of our options.
        "help": next(iter(OPTION_GROUPS))
    }
    for heading in OPTION_GROUPS:
        asked = [one for one in parameters if headings.get(one.name) == heading and one.name not in left_out]
        if records := [record for one in asked if (record := one.get_help_record(context)) is not None]:
            with formatter.section(f"{heading}{suffix}"):
                formatter.write_dl(records)


def write_examples(formatter: Any) -> None:
    """Write examples and exit codes."""
    for heading, rows in (("Examples", _EXAMPLES), ("Exit codes", _ENDS)):
        with formatter.section(heading):
            formatter.write_dl(rows)


class PlainCommand(TyperCommand):
    """A command whose help shows no types of Python."""

    def get_help(self, ctx: Any) -> str:
        """Return Typer's help without the types of values."""
        # Of the same length, as the columns have been aligned by now.
        return _TYPE.sub(lambda found: " …".ljust(len(found[0])), super().get_help(ctx))
