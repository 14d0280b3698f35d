"""Site files as Hadoop's `Configuration` (3.3) reads them.

XInclude with `fallback`, `final`, properties as attributes; `${other}`, `${env.X}`, `${env.X-default}` and
`${env.X:-default}`, and the Java system properties that site files commonly name. Within a folder, `hbase-site.xml`
goes before `hdfs-site.xml` before `core-site.xml`, unless one of the latter is `final`; the first folder that defines
a property wins, regardless of what another one declares final: it may be another cluster's.
"""

from __future__ import annotations

import getpass
import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from status_tool.errors import ConfigurationError

SITE_FILES = ("hbase-site.xml", "hdfs-site.xml", "core-site.xml")

_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_MAX_SUBSTITUTIONS = 20  # as Hadoop's Configuration.MAX_SUBST
_MAX_INCLUDES = 20
"""Nested includes; Hadoop has no bound and overflows the stack on a circle."""

Property = tuple[str, bool]
"""A value, and whether it is final."""


class SiteConfig(Mapping[str, str]):
    """Properties of the site files, with their variables resolved on access."""

    def __init__(self, values: Mapping[str, str], folders: Sequence[Path] = ()) -> None:
        self._values = dict(values)
        self.folders = tuple(folders)

    def __getitem__(self, key: str) -> str:
        return self._expand(self._values[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _expand(self, value: str) -> str:
        for _ in range(_MAX_SUBSTITUTIONS):
            match = _VARIABLE.search(value)
            if match is None or (replacement := self._variable(match.group(1))) is None:
                return value  # Hadoop leaves the rest as it is, too
            value = value[: match.start()] + replacement + value[match.end() :]
        return value

    def _variable(self, name: str) -> str | None:
        """Look up as `Configuration.substituteVars` does: environment or system property, then another property."""
        found = _from_environment(name) if name.startswith("env.") else _system_property(name)
        return self._values.get(name) if found is None else found

    def integer(self, key: str, default: int) -> int:
        """Return the property as a whole number; `ConfigurationError` if it is something else."""
        text = self.get(key)
        if text is None:
            return default
        try:
            return int(text.strip())
        except ValueError:
            raise ConfigurationError(f"{key} is {text!r} in the site files, expected a whole number") from None

    def flag(self, key: str) -> bool:
        """Return True if the property is true, False if it is absent.

        Raises `ConfigurationError` for any other value.
        """
        text = self.get(key, "").strip().lower()
        if text not in ("", "true", "false"):
            raise ConfigurationError(f"{key} is {text!r} in the site files, expected true or false")
        return text == "true"


def _from_environment(name: str) -> str | None:
    """Return the value of `env.X`, `env.X-default` (for X not set) or `env.X:-default` (for X not set or empty)."""
    variable, dash, default = name.removeprefix("env.").partition("-")
    value = os.environ.get(variable.removesuffix(":") if dash else variable)
    if dash and variable.endswith(":"):
        return value or default
    return default if dash and value is None else value


def _system_property(name: str) -> str | None:
    """Return Java's value of `user.name`, `user.home` or `java.io.tmpdir`; None for any other property."""
    if name == "user.name":
        with suppress(OSError, KeyError):
            return getpass.getuser()
    return {"user.home": os.path.expanduser("~"), "java.io.tmpdir": "/tmp"}.get(name)


def load_site(conf_dirs: Sequence[Path], environ: Mapping[str, str] | None = None) -> SiteConfig:
    """Read the site files in their order of precedence.

    Raises `ConfigurationError` for a `--conf-dir`, or a folder of the environment, that is none, or a file that is not
    XML.
    """
    environ = os.environ if environ is None else environ
    for folder in conf_dirs:
        if not folder.is_dir():
            raise ConfigurationError(f"--conf-dir {folder}: no such folder")
    named = ("HBASE_CONF_DIR", "HADOOP_CONF_DIR")
    from_environment = {name: Path(environ[name]) for name in named if environ.get(name)}
    for name, folder in from_environment.items():
        if not folder.is_dir():
            raise ConfigurationError(f"{name} is {folder}: no such folder")
    folders = [*conf_dirs, *from_environment.values()]
    values: dict[str, str] = {}
    for folder in folders:
        for key, value in _read_folder(folder).items():
            values.setdefault(key, value)
    return SiteConfig(values, folders)


def read_file(path: Path) -> SiteConfig:
    """Read a single file. Raises `ConfigurationError` if it is not a file of properties."""
    found: dict[str, Property] = {}
    _read_site(path, found)
    return SiteConfig({key: value for key, (value, _) in found.items()})


def _read_folder(folder: Path) -> dict[str, str]:
    found: dict[str, Property] = {}
    for name in reversed(SITE_FILES):  # the order in which HBase loads them: a later one wins
        if (folder / name).is_file():
            _read_site(folder / name, found)
    return {key: value for key, (value, _) in found.items()}


def _read_site(path: Path, found: dict[str, Property], depth: int = 0) -> None:
    """Add a file's properties to what was found before it."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ConfigurationError(f"{path} is not valid XML ({error})") from None
    except (OSError, ValueError, LookupError) as error:  # an encoding that expat does not take, or Python not know
        raise ConfigurationError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if _local(root) != "configuration":
        raise ConfigurationError(f"{path} is not a site file: its outermost element is <{_local(root)}>")
    _take(root, path, found, depth)


def _take(parent: ElementTree.Element, path: Path, found: dict[str, Property], depth: int) -> None:
    for element in parent:
        kind = _local(element)
        if kind == "property":
            _set(element, found)
        elif kind == "include":
            _include(element, path, found, depth)
        elif kind == "configuration":
            _take(element, path, found, depth)


def _set(element: ElementTree.Element, found: dict[str, Property]) -> None:
    """Set the element's property, unless a final one is there. An element without a value is ignored."""
    parts = dict(element.attrib) | {_local(child): child.text or "" for child in element}
    name = parts.get("name", "").strip()
    if name and "value" in parts and not found.get(name, ("", False))[1]:
        found[name] = (parts["value"].strip(), parts.get("final", "").strip() == "true")


def _include(element: ElementTree.Element, path: Path, found: dict[str, Property], depth: int) -> None:
    href = (element.get("href") or "").strip()
    if not href:
        return
    parts = urlsplit(href)
    if parts.scheme not in ("", "file"):
        raise ConfigurationError(f"{path} includes {href}: only files are read; copy it and name the file in href")
    target = path.resolve().parent / unquote(parts.path if parts.scheme else href)
    if depth >= _MAX_INCLUDES:
        raise ConfigurationError(f"{path} includes {href}: more than {_MAX_INCLUDES} files within files, or a circle")
    if target.is_file():
        _read_site(target, found, depth + 1)
        return
    fallback = next((child for child in element if _local(child) == "fallback"), None)
    if fallback is None:
        raise ConfigurationError(f"{path} includes {href}, which is not there: copy it, too, or give a <fallback>")
    _take(fallback, path, found, depth)


def _local(element: ElementTree.Element) -> str:
    """Return an element's name without its namespace; empty for a comment."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
