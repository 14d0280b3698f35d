"""Requests of `run` for services that repeat it in rounds, and how these end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from status_tool.cli.defaults import RunCommand
from status_tool.cli.run import AskedRun, asked_of
from status_tool.cli.run_options import with_options
from status_tool.cli.signals import end_soon
from status_tool.clients.kerberos import forget_tickets
from status_tool.errors import Interrupted
from status_tool.spark import jvm
from status_tool.temporary import remove_held, temporary_folder


@dataclass(frozen=True)
class RoundParameters:
    """Parameters of `run` for each round."""

    context: Any
    """Click's, of `run_command`."""
    check: dict[str, Any]
    folder: Path | None = None
    """Where the newest status file is the FILE of the round."""
    master: dict[str, Any] | None = None
    """Way in which FILE is written before it is checked; `output` is still to be set."""

    def asked(self, parameters: dict[str, Any]) -> AskedRun:
        """Return the request of `run` with these parameters, as Typer converts them. Raises what `asked_of` raises."""
        self.context.params = parameters
        with self.context:
            asked: AskedRun = self.context.command.invoke(self.context)
            return asked


@with_options()
def _asked(**values: Any) -> AskedRun:
    return asked_of(values)


@cache
def run_command() -> Any:
    """Return a command with the options of `run` that returns its request and does nothing else."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(cls=RunCommand)(_asked)
    return get_command(alone)


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


def plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as `run` would get them, as far as it matters which exist: none is an empty tuple."""
    return {name: None if value == () else value for name, value in parameters.items()}
