"""Defaults of options from `status-tool.toml`: found once, for every command, with profiles for pairs of clusters."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from status_tool.cli.run_options import OPTIONS
from status_tool.errors import ConfigurationError, UsageError

NAME = "status-tool.toml"
FILE_VARIABLE = "STATUS_TOOL_CONFIG"
"""The file instead of the ones that are looked for; `off`: none."""
PROFILES = "profile"
CLUSTERS = "clusters"
CLUSTER_KEYS = ("conf-dir", "thrift", "webhdfs", "zookeeper")
"""Keys that a table `[clusters.NAME]` may set."""
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


def places() -> Sequence[Path]:
    """Return the paths where `status-tool.toml` is looked for. The first that exists counts."""
    chosen = os.environ.get(FILE_VARIABLE)
    if chosen:
        return () if chosen == "off" else (Path(chosen),)
    user = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    return (Path(NAME), user / "status-tool" / NAME, Path("/etc/status-tool") / NAME)


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
        for name in of_another_cluster(settings, {PARAMETERS[key] for key in section}):
            settings.pop(name, None)
        settings |= {PARAMETERS[key]: Setting(key, value, where) for key, value in section.items()}
    return Defaults(file, profile, settings, clusters)


def of_another_cluster(settings: Collection[str], given: Collection[str]) -> Iterator[str]:
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
    """Refuse a file that others may write to: settings choose what is read and run. A pipe may never end."""
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"cannot read {file}: it is not a regular file; {FILE_VARIABLE} names another, or off")
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


contexts: list[Any] = []
"""Click's contexts of the running command line: a command's function gets values alone, not where they are from."""


def _source(context: Any, name: str) -> str | None:
    source = context.get_parameter_source(name)
    return None if source is None else str(source.name)


def is_default(context: Any, name: str) -> bool:
    """Return True if a parameter of a command has its value from a file."""
    return _source(context, name) == "DEFAULT_MAP"


def is_given(context: Any, name: str) -> bool:
    """Return True if a command takes a parameter and the command line has it."""
    return _source(context, name) == "COMMANDLINE"


def unset(context: Any, parameter: Any) -> None:
    """Drop the value that a file has set."""
    context.params[parameter.name] = parameter.default
    context.set_parameter_source(parameter.name, type(context.get_parameter_source(parameter.name)).DEFAULT)


def from_file() -> frozenset[str]:
    """Return the parameters of `run` that a file has set. As defaults, they refuse nothing."""
    return frozenset(name for context in contexts[-1:] for name in context.params if is_default(context, name))


def origins(message: str) -> str:
    """Return which settings of a file an error is about, by the options and the paths that it names; empty for none."""
    found = [
        f"{setting.where}: {setting.key}"
        for context in contexts
        for one in context.command.params
        if is_default(context, one.name) and _is_named(one.opts, context.params.get(one.name), message)
        for setting in [context.obj.settings[one.name]]
    ]
    return f" ({', '.join(dict.fromkeys(found))})" if found else ""


def _is_named(flags: Sequence[str], value: Any, message: str) -> bool:
    values = value if isinstance(value, list) else [value]
    # Other values may be words or numbers that any message has.
    words = (*flags, *(str(one) for one in values if isinstance(one, Path)))
    return any(re.search(rf"(?<![\w/.-]){re.escape(word)}(?![\w/-])", message) for word in words)
