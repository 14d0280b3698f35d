"""Options of `run` as services take them that repeat it in rounds, and how rounds are told and end."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import typer
from typer.main import get_command

from status_tool.cli.commands import ConfiguredCommand, RunCommand, write_groups
from status_tool.cli.defaults import command_defaults
from status_tool.cli.modes import given_of
from status_tool.cli.run import run
from status_tool.cli.run_options import DECLARED
from status_tool.cli.signals import end_soon
from status_tool.clients.kerberos import forget_tickets
from status_tool.errors import Interrupted, UsageError
from status_tool.spark import jvm
from status_tool.temporary import remove_held, temporary_folder


@cache
def run_command() -> Any:
    """Return a command that parses the options of `run` as `run` does."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(cls=RunCommand)(run)
    return get_command(alone)


class ServiceCommand(ConfiguredCommand):
    """A command whose help shows the options of `run` that it takes, after its own."""

    taken: ClassVar[Collection[str]]
    """Parameters of `run`."""
    form: ClassVar[str]
    """The form of `run` that it repeats."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the command's own options first."""
        super().format_options(ctx, formatter)
        taken = [one for one in run_command().params if one.name in self.taken]
        write_groups(taken, ctx, formatter, f", as of {self.form}")


def given_options(context: typer.Context, refused: Mapping[str, str]) -> frozenset[str]:
    """Return the parameters of `run` that a service's command line has. Raises `UsageError` for one that it refuses."""
    name = str(context.info_name)
    # Without status-tool.toml, whose defaults refuse nothing. Click's parser empties the list that it gets.
    known = given_of(run_command().make_context(name, context.args.copy()).params)
    for option, why in refused.items():
        if option in known:
            raise UsageError(f"{DECLARED[option].flag} does not go with {name}: {why}")
    return known


def parameters_of(context: typer.Context, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of this command line of `run`, with the values of status-tool.toml."""
    command, defaults = run_command(), context.obj
    made = command.make_context(
        context.info_name, list(arguments), default_map=command_defaults(command, defaults), obj=defaults
    )
    return dict(made.params)


@dataclass(frozen=True)
class RoundParameters:
    """Parameters of `run` for each round of a watch."""

    check: dict[str, Any]
    folder: Path | None = None
    """Where the newest status file is the FILE of the round."""
    master: dict[str, Any] | None = None
    """Way in which FILE is written before it is checked; `output` is still to be set."""


@contextmanager
def as_service() -> Iterator[Path]:
    """Run rounds: without progress, and ended soon by a signal, whatever they do. Yields a folder for their files."""
    # Progress bars take long to import; help and a wrong option need not wait for them.
    from status_tool.report.progress import Shown, set_shown

    set_shown(Shown(quiet=True))
    with temporary_folder() as folder:
        end_soon(_leave)
        try:
            yield folder
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None


def _leave() -> None:
    """Leave without waiting for anything."""
    # First of all: the JVM still writes to the folders that are removed last.
    jvm.kill()
    forget_tickets()
    remove_held()


def print_round(document: Mapping[str, Any], line: str, *, as_json: bool) -> None:
    """Print a round in one line. Those of later rounds, and of an error, may follow it."""
    print(json.dumps(document) if as_json else line, flush=True)
    # `main` has made an `AnswerStream` of it.
    sys.stdout.is_begun = False  # type: ignore[union-attr]
