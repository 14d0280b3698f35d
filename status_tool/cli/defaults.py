"""Defaults of options from `status-tool.toml`: found once, for every command, with profiles for pairs of clusters."""

from __future__ import annotations

import os
import stat
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from status_tool.cli.help_groups import write_examples, write_groups
from status_tool.cli.modes import given_of, mode_of, refusal
from status_tool.cli.named_clusters import CLUSTER_KEYS
from status_tool.cli.run_options import OPTIONS
from status_tool.cli.targets import FILE_VARIABLE, NAME, places
from status_tool.errors import ConfigurationError, UsageError
from status_tool.spark.settings import submitted

PROFILES = "profile"
CLUSTERS = "clusters"
_OF_OTHERS = ("peer-conf", "gone-for", "from", "every", "listen", "history", "webhook")
"""Options of other commands than `run`."""
PARAMETERS: Mapping[str, str] = {
    ("paths" if name == "paths" else option.flag.removeprefix("--")): name
    for name, option in OPTIONS.items()
    if option.in_file
} | {key: "folder" if key == "from" else key.replace("-", "_") for key in _OF_OTHERS}
"""Settings of a file: by key, the commands' parameter. A key is the option's long name (`paths` is `-f`)."""
KEYS = tuple(sorted(PARAMETERS))
_OF_OWN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("publish", "recovery-point"), ("metrics",)),
    "queues": ("metrics", "peer"),
    "rows": ("rate",),
    "setup": ("master_zookeeper",),
    "witness": ("listen", "principal", "keytab"),
}
"""By command, its parameters that mean another thing than the key of a file: a textfile of its own, which would replace
that of checks; this cluster's own peers, not the master's; megabytes, not requests of a NameNode; a look at a witness;
a server's address and principal, not those of a page and a client.
"""

_ENDPOINTS: Mapping[str, tuple[str, ...]] = {
    "conf_dir": ("zookeeper", "thrift", "webhdfs"),
    "master_conf": ("master_zookeeper", "master_thrift"),
}
"""By the parameter that names a cluster by its site files, those that go before these files. The first names a cluster,
too: settings of a file that names one either way, and site files that are named elsewhere, may be of two clusters.
"""


@dataclass(frozen=True)
class Setting:
    """A value in a file."""

    key: str
    value: Any
    where: str


@dataclass(frozen=True)
class Defaults:
    """Settings of a defaults file."""

    file: Path | None = None
    profile: str | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """By parameter."""
    clusters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name, what `[clusters.NAME]` sets (`CLUSTER_KEYS`)."""

    @property
    def where(self) -> str:
        """The file and the profile, in words."""
        if self.file is None:
            looked = ", ".join(map(str, places()))
            return f"none (looked for {looked})" if looked else f"none ({FILE_VARIABLE}=off)"
        return f"{self.file}, profile {self.profile}" if self.profile else str(self.file)


def read_defaults(profile: str | None) -> Defaults:
    """Return the defaults of the first file found, and of one of its profiles, which goes before.

    Raises `ConfigurationError` for a file that cannot be read, others may write to, or that sets something unknown.
    """
    file = next((place for place in places() if place.exists()), None)
    if file is None:
        if profile is not None:
            raise UsageError(f"--profile {profile}: there is no {NAME} that could have it")
        if (chosen := os.environ.get(FILE_VARIABLE)) not in (None, "", "off"):
            raise ConfigurationError(f"{FILE_VARIABLE} names {chosen}: no such file")
        return Defaults()
    document = _parsed(file)
    profiles = document.pop(PROFILES, {})
    if not isinstance(profiles, dict) or not all(isinstance(one, dict) for one in profiles.values()):
        raise ConfigurationError(f"{file}: expected tables [{PROFILES}.NAME]")
    if profile is not None and profile not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise UsageError(f"--profile {profile}: {file} has {known}")
    clusters = _clusters(file, document.pop(CLUSTERS, {}))
    settings: dict[str, Setting] = {}
    for section, where in ((document, str(file)), (profiles.get(profile, {}), f"{file} [{PROFILES}.{profile}]")):
        if unknown := [key for key in section if key not in KEYS]:
            raise ConfigurationError(f"{where}: {unknown[0]!r} is not one of {', '.join(KEYS)}")
        # A profile's site files may be of another cluster than the endpoints of the file itself.
        for name in _of_another_cluster(settings, {PARAMETERS[key] for key in section}):
            settings.pop(name, None)
        settings |= {PARAMETERS[key]: Setting(key, value, where) for key, value in section.items()}
    return Defaults(file, profile, settings, clusters)


def _of_another_cluster(settings: Collection[str], given: Collection[str]) -> Iterator[str]:
    """Yield the endpoints of a cluster that settings name, where those that are given name one by its site files."""
    for folders, endpoints in _ENDPOINTS.items():
        if folders in given and (folders in settings or endpoints[0] in settings):
            yield from endpoints


def _clusters(file: Path, tables: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(tables, dict) or not all(isinstance(one, dict) for one in tables.values()):
        raise ConfigurationError(f"{file}: expected tables [{CLUSTERS}.NAME]")
    for name, table in tables.items():
        for key in table:
            if key not in CLUSTER_KEYS:
                raise ConfigurationError(f"{file} [{CLUSTERS}.{name}]: {key!r} is not one of {', '.join(CLUSTER_KEYS)}")
    return tables


def _parsed(file: Path) -> dict[str, Any]:
    try:
        _refuse_foreign(file)
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not TOML: {error}") from None


def _refuse_foreign(file: Path) -> None:
    """Refuse a file that others may write to: settings choose what is read and run."""
    found = file.stat()
    # The file in /etc/status-tool is root's.
    if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o022:
        raise ConfigurationError(
            f"{file} belongs to another user, or others may write to it: chmod go-w it, or {FILE_VARIABLE}=off"
        )


def default_map(command: Any, defaults: Defaults) -> dict[str, Any]:
    """Return the parameters' values by command, for `Context.default_map` of a group.

    Raises `ConfigurationError` for a list where the option takes one value, or the other way round.
    """
    return {name: command_defaults(inner, defaults) for name, inner in command.commands.items()}


def command_defaults(command: Any, defaults: Defaults) -> dict[str, Any]:
    """Return the parameters' values of one command, or of a group's commands."""
    if hasattr(command, "commands"):
        return default_map(command, defaults)
    own = _OF_OWN.get(command.name, ())
    found = [one for one in command.params if one.name in defaults.settings and one.name not in own]
    return {one.name: _checked(one, defaults.settings[one.name]) for one in found}


def _checked(parameter: Any, setting: Setting) -> Any:
    value = setting.value
    values = value if isinstance(value, list) else [value]
    simple = (bool,) if parameter.is_flag else (str, int, float)
    # `bool` is a subclass of `int`.
    fits = all(isinstance(one, simple) and (parameter.is_flag or not isinstance(one, bool)) for one in values)
    if not fits or (isinstance(value, list) and not parameter.multiple):
        kind = "true or false" if parameter.is_flag else "a list of values" if parameter.multiple else "one value"
        raise ConfigurationError(f"{setting.where}: {setting.key} is {value!r}, expected {kind}")
    return values if parameter.multiple else value


def is_default(context: Any, name: str) -> bool:
    """Return True if a parameter of a command has its value from a file."""
    return bool(context.get_parameter_source(name).name == "DEFAULT_MAP")


def is_given(context: Any, name: str) -> bool:
    """Return True if a command takes a parameter and the command line has it."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


# A command's function gets values alone, so the process remembers which of them a file has set.
_from_file: frozenset[str] = frozenset()


def from_file() -> frozenset[str]:
    """Return the parameters of the running command that a file has set. As defaults, they refuse nothing."""
    return _from_file


class CarefulCommand(TyperCommand):
    """A command of which no value is ignored."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does. Raises `UsageError` for an option of one value that comes twice, or has an empty one."""
        # Click's parser empties the list that it gets.
        given = args.copy()
        # First, as --help ends here.
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            self._refuse_ignored(ctx, given)
        return rest

    def _refuse_ignored(self, ctx: Any, args: list[str]) -> None:
        values, _, options = self.make_parser(ctx).parse_args(args=args)
        times_given: Counter[Any] = Counter(options)
        for option, times in times_given.items():
            flag = option.opts[-1]
            if times > 1 and not (option.multiple or option.is_flag):
                raise UsageError(f"{flag} is given {'twice' if times == 2 else f'{times} times'}: give one value")
            if "" in (values[option.name] if option.multiple else [values[option.name]]):
                raise UsageError(f"{flag} is empty: give a value, or leave it out")


class ConfiguredCommand(CarefulCommand):
    """A command that a file may set options of."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does, and drop the endpoints of another cluster than the command line names."""
        rest = super().parse_args(ctx, args)
        given = {name for name in ctx.params if is_given(ctx, name)}
        if "spark_master" in given and submitted():
            raise UsageError("--spark-master does not go with spark-submit, which takes it as --master: leave it out")
        # A command may not take the one that names the cluster, and `watch` makes a context that has no file.
        settings = {*(ctx.obj.settings if ctx.obj else ()), *(ctx.default_map or ())}
        dropped = set(_of_another_cluster(settings, given)) - given
        ctx.params |= {one.name: one.default for one in self.params if one.name in dropped}
        if dropped and ctx.obj:
            # `config` shows these settings as the effective ones.
            kept = {name: setting for name, setting in ctx.obj.settings.items() if name not in dropped}
            ctx.obj = replace(ctx.obj, settings=kept)
        return rest


class RunCommand(ConfiguredCommand):
    """`run`, whose modes take different options: what a file sets counts where the mode takes it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does, and drop the defaults that do not go with the mode."""
        global _from_file
        rest = super().parse_args(ctx, args)
        configured = {name for name in ctx.params if is_default(ctx, name)}
        given = given_of(ctx.params)
        try:
            mode = mode_of(given)
        except UsageError:
            mode = None  # the run says so
        for parameter in self.params:
            name = str(parameter.name)
            if name in configured and (mode is None or refusal(name, mode, given, ctx.params.get("only"))):
                ctx.params[name] = parameter.default
                configured.remove(name)
        _from_file = frozenset(configured)
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options by subject: there are too many for one list."""
        write_groups(self.get_params(ctx), ctx, formatter)
        write_examples(formatter)
