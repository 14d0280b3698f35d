"""`status-tool shutdown-time record|show|clear`: when the application stopped writing on the master."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from status_tool.cli.commands import CarefulGroup, ConfiguredCommand
from status_tool.cli.options import on_cluster, parse_time
from status_tool.cli.run_options import with_options
from status_tool.clients.config import Settings
from status_tool.errors import UsageError
from status_tool.printable import iso

if TYPE_CHECKING:
    from status_tool.sources.state_table import StateTable

shutdown_time = typer.Typer(
    cls=CarefulGroup,
    help="Record, show or clear when the application stopped writing on this master.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,
)


@shutdown_time.command(cls=ConfiguredCommand)
@on_cluster("thrift")
@with_options(shutdown="The time to record (epoch ms or ISO 8601); default: now.")
def record(settings: Settings, *, shutdown: str | None) -> None:
    """Record the shutdown time in the state table; run it when the application has stopped."""
    from status_tool.sources.state_table import now_ms

    moment = parse_time(shutdown, "-s") or now_ms()
    if moment > now_ms() + 1000:
        raise UsageError(f"-s {moment} ({iso(moment)}) lies in the future: record when the application has stopped")
    state = _state_table(settings)
    state.record_shutdown(moment)
    typer.echo(f"Shutdown time recorded: {moment} ({iso(moment)})")


@shutdown_time.command(cls=ConfiguredCommand)
@on_cluster("thrift")
def clear(settings: Settings) -> None:
    """Forget the recorded shutdown time: a check then covers all writes up to `run -m`."""
    state = _state_table(settings)
    moment = state.shutdown_ms()
    state.clear_shutdown()
    known = "none was recorded" if moment is None else f"it was {moment} ({iso(moment)})"
    typer.echo(f"No shutdown time is recorded any more; {known}.")


@shutdown_time.command(cls=ConfiguredCommand)
@on_cluster("thrift")
@with_options("as_json")
def show(settings: Settings, *, as_json: bool) -> None:
    """Show the recorded shutdown time."""
    state = _state_table(settings)
    moment = state.shutdown_ms()
    if as_json:
        typer.echo(json.dumps({"shutdown_ms": moment}))
    elif moment is None:
        typer.echo("No shutdown time is recorded on this cluster.")
    else:
        typer.echo(f"{moment} ({iso(moment)})")


def _state_table(settings: Settings) -> StateTable:
    from status_tool.sources.state_table import StateTable

    state = StateTable(settings.thrift(), settings.state_table)
    state.require()
    return state
