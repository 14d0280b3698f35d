"""The commands, and the one place that turns errors into a line and an exit code."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from functools import cache, partial
from typing import Any

import typer
from typer.exceptions import Abort, TyperException
from typer.main import get_command

from status_tool import __version__
from status_tool.atomic import changed, written
from status_tool.cli.commands import CarefulGroup, ConfiguredCommand, RunCommand
from status_tool.cli.defaults import contexts, default_map, origins, read_defaults
from status_tool.cli.lost import lost
from status_tool.cli.options import AnswerStream, UnreadError
from status_tool.cli.paths import paths
from status_tool.cli.prune import prune
from status_tool.cli.publish import PublishCommand, publish
from status_tool.cli.queues import queues
from status_tool.cli.recovery_point import recovery_point
from status_tool.cli.rows import rows
from status_tool.cli.run import ANY_MASTER, run
from status_tool.cli.setup import doctor, setup
from status_tool.cli.show_config import config
from status_tool.cli.shutdown_time import shutdown_time
from status_tool.cli.signals import SIGNALS, complaints, error_document, ignore_signals, interruption, received
from status_tool.cli.switchover import switchover
from status_tool.cli.topology import topology
from status_tool.cli.watch import WatchCommand, watch
from status_tool.cli.witness import witness
from status_tool.errors import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    Interrupted,
    StatusToolError,
    is_traceback_wanted,
    unexpected,
)
from status_tool.printable import print_beside, safe
from status_tool.spark import jvm

app = typer.Typer(
    name="status-tool",
    cls=CarefulGroup,
    help="Has everything that was written on the master HBase + HDFS cluster really arrived on the slave?",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    # Rich takes long to import, and help needs none of it.
    rich_markup_mode=None,
)
command = partial(app.command, cls=ConfiguredCommand)
app.command(cls=RunCommand, short_help="Write a status file, or check the master's on the slave.")(run)
command(short_help="Show what replication has yet to ship.")(queues)
command(short_help="Compare tables of both clusters by row digests.")(rows)
app.command(
    cls=WatchCommand,
    short_help="Check again and again, as a service.",
    # `watch` and `publish` parse the options of `run` by `run_command`, so that they mean the same in all three.
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(watch)
app.command(
    cls=PublishCommand,
    short_help="Send status files to the slave by replication.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(publish)
command(name="recovery-point", short_help="Show up to when the slave is proven complete.")(recovery_point)
command(short_help="List what the old master holds that the slave never got.")(lost)
command(short_help="Check every edge and path of a replication graph.")(paths)
command(short_help="Print the steps of a planned change of roles.")(switchover)
command(short_help="Show clusters, peers, and tables that drift.")(topology)
app.add_typer(shutdown_time, name="shutdown-time", short_help="Record, show or clear when the application stopped.")
command(short_help="Print how to install the trackers on this cluster.")(setup)
command(short_help="Tell whether this cluster is ready, or the next step.")(doctor)
command(short_help="Drop rows of region servers that are long gone.")(prune)
command(short_help="Be a peer that keeps which entries it was sent.")(witness)
command(short_help="Show each effective setting and where it comes from.")(config)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"status-tool {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    profile: str | None = typer.Option(
        None, "--profile", metavar="NAME", help="Take this profile's options from status-tool.toml."
    ),
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Has everything that was written on the master HBase + HDFS cluster really arrived on the slave?"""
    context.obj = read_defaults(profile)
    context.default_map = default_map(context.command, context.obj)


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_DYING_S = 1.0
"""Time that a JVM that is about to end may take."""
# A JVM that handles a signal exits with 128 and its number. `Popen` has the negative number of one that died of it.
_SIGNALLED: Mapping[int | None, int] = {code: number for number in SIGNALS for code in (-number, 128 + number)}
"""By the exit code of a JVM, the signal that has ended it."""
_BARE = {"--deep": "--deep=different", "--rows": "--rows=doubtful", "--published": f"--published={ANY_MASTER}"}
"""Options whose value may be omitted, which Typer cannot express."""


def main(arguments: list[str]) -> int:
    """Run one command line; returns its exit code. An error is shown as one line.

    With `--json` the error is a document on stdout as well, `{"error": …, "exit_code": …}`.
    """
    # Another program may call `main` again in the same process.
    for of_before in (complaints, received, written, changed, contexts):
        of_before.clear()
    answer: Any = AnswerStream(sys.stdout)
    with redirect_stdout(answer):
        try:
            exit_code = _main(arguments)
            # The result has been told: no signal may change its exit code any more.
            ignore_signals()
        except KeyboardInterrupt:
            # While an error was being told, or just after the end.
            exit_code = _interrupted()
        finally:
            # `run` may have begun one early that no session has come to use because of an error.
            jvm.end_unused()
    # Every signal arrives here as `KeyboardInterrupt`.
    if exit_code == EXIT_INTERRUPTED:
        exit_code = next((128 + number for number in received if number != signal.SIGINT), exit_code)
    # Parsing may be what failed, so `--json` is looked for in the arguments as they came. A signal may have come when a
    # document was out, or half of it.
    if complaints and "--json" in arguments and not answer.is_begun:
        # The error may be that stdout is full, or that nobody reads it.
        with suppress(OSError, ValueError):
            print(error_document(complaints[-1], exit_code), flush=True)
    return exit_code


def _without_bare_i(arguments: list[str]) -> Iterator[str]:
    """Yield the arguments, with `--published` for `-i --published`: it takes the place of FILE."""
    for one, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if one != "-i" or following.partition("=")[0] != "--published":
            yield one


@cache
def _commands() -> Any:
    """Build all commands from the functions' signatures, once per process, as that takes longer than most commands."""
    return get_command(app)


def _main(arguments: list[str]) -> int:
    try:
        result: Any = _commands()(
            args=[_BARE.get(one, one) for one in _without_bare_i(arguments)],
            prog_name="status-tool",
            # Otherwise Typer tells errors in its own words, and ends the process.
            standalone_mode=False,
        )
        # A full disk, or a reader that has gone, shows here at the latest, and still ends in a line and an exit code.
        sys.stdout.flush()
    except StatusToolError as error:
        # `Interrupted` has words of its own, such as what `--resume` can continue from.
        if not isinstance(error, Interrupted) and _ends_of_signal(error):
            return _interrupted()
        _complain(f"{error}{origins(str(error))}")
        return error.exit_code
    except Abort:
        return _interrupted()
    except TyperException as error:
        # Typer keeps this class in a package of its own (`typer._click`), so its name has to do.
        if type(error).__name__ == "NoArgsIsHelpError":
            _print_help(error.format_message())
        else:
            message = error.format_message()
            _complain(f"{message}{origins(message)} (see `{_command_of(error)} -h`)")
        return EXIT_ERROR
    except KeyboardInterrupt:
        return _interrupted()
    except UnreadError:
        # The reader of our output has exited; a later flush must not raise again.
        write_no_more()
        return EXIT_ERROR
    except SystemExit as end:
        # So Typer ends a shell's completion, and any broken pipe.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        if _ends_of_signal(end.__context__):
            return _interrupted()
        if is_traceback_wanted():
            raise
        _complain("a server or a process that this run needs has closed its connection (Broken pipe): run it again")
        return EXIT_ERROR
    except Exception as error:
        if _ends_of_signal(error):
            return _interrupted()
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            write_no_more()
            _complain(f"cannot write to stdout, or a temporary file in {tempfile.gettempdir()}: {error.strerror}")
            return EXIT_ERROR
        if is_traceback_wanted():
            raise
        _complain(unexpected(error))
        return EXIT_ERROR
    # Typer itself turns Ctrl-C into this result, silently.
    return _interrupted() if result == EXIT_INTERRUPTED else int(result or 0)


def _command_of(error: TyperException) -> str:
    """Return the command whose help explains the error in the command line."""
    path = getattr(getattr(error, "ctx", None), "command_path", "status-tool")
    # `watch` and `publish` parse the options of `run` in a context that lacks the program's name.
    return path if path.startswith("status-tool") else f"status-tool {path}"


def _print_help(text: str) -> None:
    try:
        print(text, flush=True)
    except (OSError, ValueError):
        write_no_more()


def write_no_more() -> None:
    """Discard what is left in stdout's buffer."""
    # Python writes the buffer once more at its end, then into nothing.
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupted() -> int:
    ignore_signals()
    if not complaints:
        _complain(interruption())
    return EXIT_INTERRUPTED


def _ends_of_signal(error: Exception) -> bool:
    """Return True if a signal is behind an error.

    Errors of a process that the signal ended are then no reasons of their own.
    """
    # A signal to all processes of a run (a service manager's) may end Spark's JVM before it reaches this one.
    process = jvm.process()
    if received or process is None:
        return bool(received)
    if _is_about_a_connection(error):
        with suppress(subprocess.TimeoutExpired):
            # A dying JVM closes its connections before it has an exit code, which alone tells of a signal.
            process.wait(_DYING_S)
    number = _SIGNALLED.get(process.poll())
    if number is not None:
        received.append(number)
    return number is not None


def _is_about_a_connection(error: BaseException | None) -> bool:
    """Return True if the error may stem from the end of the JVM."""
    while error is not None:
        if type(error).__module__.partition(".")[0] in ("py4j", "pyspark") or isinstance(error, OSError | EOFError):
            return True
        # `raise … from None` hides the context from tracebacks only: it is still there.
        error = error.__cause__ or error.__context__
    return False


def _complain(message: str) -> None:
    text = safe(" ".join(message.split()), 2000)
    complaints.append(text)
    print_beside(text)
