"""Kinds of commands: each option is obeyed or refused, a file sets defaults, and long help is by subject."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from status_tool.cli.defaults import Defaults, contexts, is_default, is_given, of_another_cluster, unset
from status_tool.cli.modes import given_of, mode_of, refusal
from status_tool.cli.run_options import OPTION_GROUPS
from status_tool.errors import UsageError
from status_tool.spark.settings import submitted

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


class _Careful:
    """Mixin of a command, or of a group of commands, of which no value is ignored."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does. Raises `UsageError` for an option of one value that comes twice, or has an empty one."""
        contexts.append(ctx)
        # Click's parser empties the list that it gets.
        given = args.copy()
        try:
            # First, as --help ends here.
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except TyperException as error:
            # Click leaves it out where a value is missing, and the error would point to another help.
            error.ctx = getattr(error, "ctx", None) or ctx  # type: ignore[attr-defined]
            raise
        if not ctx.resilient_parsing:
            self._refuse_ignored(ctx, given)
        return rest

    def _refuse_ignored(self, ctx: Any, args: list[str]) -> None:
        values, _, options = self.make_parser(ctx).parse_args(args=args)  # type: ignore[attr-defined]
        times_given: Counter[Any] = Counter(options)
        for option, times in times_given.items():
            flag = option.opts[-1]
            # A flag that comes twice says the same twice, unless there is one that says the opposite.
            if times > 1 and not option.multiple and (option.secondary_opts or not option.is_flag):
                raise UsageError(f"{flag} is given {'twice' if times == 2 else f'{times} times'}: give one value")
            if "" in (values[option.name] if option.multiple else [values[option.name]]):
                raise UsageError(f"{flag} is empty: give a value, or leave it out")


class CarefulGroup(_Careful, TyperGroup):
    """A group of commands, whose own options are obeyed or refused, too."""


class ConfiguredCommand(_Careful, TyperCommand):
    """A command that a file may set options of."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does, and drop the endpoints of another cluster than the command line names."""
        rest = super().parse_args(ctx, args)
        given = {name for name in ctx.params if is_given(ctx, name)}
        if "spark_master" in given and submitted():
            raise UsageError("--spark-master does not go with spark-submit, which takes it as --master: leave it out")
        defaults: Defaults = ctx.obj or Defaults()
        # A command may not take the one that names the cluster.
        dropped = set(of_another_cluster(defaults.settings, given)) - given
        for parameter in self.params:
            if parameter.name in dropped and is_default(ctx, parameter.name):
                unset(ctx, parameter)
        # `config` shows these settings as the effective ones.
        kept = {name: setting for name, setting in defaults.settings.items() if name not in dropped}
        ctx.obj = replace(defaults, settings=kept)
        return rest

    def get_help(self, ctx: Any) -> str:
        """Return Typer's help without the types of values, which are Python's."""
        # Of the same length, as the columns have been aligned by now.
        return _TYPE.sub(lambda found: " …".ljust(len(found[0])), super().get_help(ctx))


class RunCommand(ConfiguredCommand):
    """`run`, whose modes take different options: what a file sets counts where the mode takes it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does, and drop the defaults that do not go with the mode."""
        rest = super().parse_args(ctx, args)
        given = given_of(ctx.params)
        try:
            mode = mode_of(given)
        except UsageError:
            mode = None  # the run says so
        for parameter in self.params:
            name = str(parameter.name)
            if is_default(ctx, name) and (mode is None or refusal(name, mode, given, ctx.params.get("only"))):
                unset(ctx, parameter)
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options by subject: there are too many for one list."""
        write_groups(self.get_params(ctx), ctx, formatter)
        for heading, rows in (("Examples", _EXAMPLES), ("Exit codes", _ENDS)):
            with formatter.section(heading):
                formatter.write_dl(rows)


def write_groups(parameters: list[Any], context: Any, formatter: Any, suffix: str = "") -> None:
    """Write a section for each group of the options of `run`, as Click writes the one section "Options"."""
    headings = {name: heading for heading, options in OPTION_GROUPS.items() for name in options} | {
        # Click adds `-h`, which is none of our options.
        "help": next(iter(OPTION_GROUPS))
    }
    for heading in OPTION_GROUPS:
        asked = [one for one in parameters if headings.get(one.name) == heading]
        if records := [record for one in asked if (record := one.get_help_record(context)) is not None]:
            with formatter.section(f"{heading}{suffix}"):
                formatter.write_dl(records)
