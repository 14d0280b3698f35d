"""Outputs are never inputs: one rule for every command, applied before anything is read or written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from status_tool.cli.defaults import places
from status_tool.cli.run_options import DECLARED
from status_tool.clients.sitefiles import SITE_FILES
from status_tool.errors import UsageError
from status_tool.printable import safe
from status_tool.vocabulary.names import journal_path

Named = tuple[str, Path]
"""A file and the words that name it on the command line."""
INPUTS = ("status_file", "slave_status", "paths", "sign_key", "keytab", "cacert", "cert")
"""Parameters that name a file to read."""
SITE_FOLDERS = ("conf_dir", "master_conf", "peer_conf", "slave_conf")
FOLDERS = ("witness",)
"""Parameters that name folders of which every file is read."""
OUTPUTS = (
    *("output", "report", "metrics", "repair_script", "differ", "missing", "unverifiable", "log_file"),
    "history",
)
"""Parameters that name a file to write."""
_READ_WHOLE = ("-f", "--cacert", "--cert", "--keytab")
"""Options of files that need not be regular. Whoever opens status files and keys looks at them."""
_STDOUT = "-"


def refuse_overwriting(given: Mapping[str, Any]) -> None:
    """Raise `UsageError` if an output is an input, or two outputs are the same file, however their names are spelled.

    `given` are a command's parameters.
    """
    inputs, outputs = list(_inputs(given)), list(_outputs(given))
    for number, (flag, path) in enumerate(outputs):
        if _is_stdout(path):
            raise UsageError(f"{flag} {safe(str(path))} is stdout, and would replace the answer: name another file")
        for other, file in inputs:
            if _is_same(path, file):
                raise UsageError(
                    f"{flag} {safe(str(path))} is what {other} reads, and would be overwritten: name another file"
                )
        for other, file in outputs[:number]:
            if _is_same(path, file):
                raise UsageError(f"{other} and {flag} name the same file {safe(str(path))}: name another one")
    _refuse_in_folder(given, inputs, outputs)
    for other, file in inputs:
        if _is_stdout(file):
            raise UsageError(f"stdout is what {other} reads ({safe(str(file))}): redirect it elsewhere")
        if other in _READ_WHOLE:
            _refuse_endless(other, file)


def _inputs(given: Mapping[str, Any]) -> Iterator[Named]:
    yield from ((_flag(name), Path(given[name])) for name in INPUTS if given.get(name) is not None)
    folders = [(_flag(name), Path(one)) for name in SITE_FOLDERS for one in given.get(name) or ()]
    folders += [(f"${name}", Path(os.environ[name])) for name in _FOLDER_VARIABLES if os.environ.get(name)]
    yield from ((flag, folder / name) for flag, folder in folders for name in SITE_FILES)
    for place in (Path(one.partition("=")[2]) for one in given.get("cluster") or ()):
        yield from (("--cluster", place / name) for name in SITE_FILES) if place.is_dir() else [("--cluster", place)]
    read = [(_flag(name), Path(one)) for name in FOLDERS for one in given.get(name) or ()]
    yield from ((flag, file) for flag, folder in read if folder.is_dir() for file in folder.iterdir())
    yield from (("the command itself", place) for place in places() if place.exists())


def _flag(parameter: str) -> str:
    """Return the option of a parameter; other commands than `run` have some of their own."""
    declared = DECLARED.get(parameter)
    return f"--{parameter.replace('_', '-')}" if declared is None else declared.flag


_FOLDER_VARIABLES = ("HBASE_CONF_DIR", "HADOOP_CONF_DIR")


def _outputs(given: Mapping[str, Any]) -> Iterator[Named]:
    for name in OUTPUTS:
        if (value := given.get(name)) is not None and str(value) != _STDOUT:
            yield _flag(name), Path(value)
    if given.get("output") is not None:
        yield "-o's checksums", journal_path(Path(given["output"]))


def _refuse_in_folder(given: Mapping[str, Any], inputs: Sequence[Named], outputs: Sequence[Named]) -> None:
    """Refuse files where the dump writes its own, and outputs in a watched folder.

    In a watched folder they would be taken for status files.
    """
    dumps = given.get("debug_dir") if given.get("debug") else None
    for flag, path in _in(dumps, (*inputs, *outputs)):
        if path.suffix == ".jsonl":
            raise UsageError(
                f"{flag} {safe(str(path))} lies where -d writes its .jsonl files: name another --debug-dir"
            )
    for flag, path in _in(given.get("folder"), outputs):
        # `newest_file` passes over hidden files.
        if not path.name.startswith("."):
            raise UsageError(
                f"{flag} {safe(str(path))} lies in the folder of --from, and would be taken for a status file: "
                "name one elsewhere"
            )


def _in(folder: Any, files: Iterable[Named]) -> Iterator[Named]:
    if folder is not None:
        # A file is written where its links lead (`check_target`).
        yield from (one for one in files if _is_same(Path(os.path.realpath(one[1])).parent, Path(folder)))


def _is_same(one: Path, other: Path) -> bool:
    return _identity(one) == _identity(other)


def _identity(path: Path) -> tuple[Any, ...]:
    """Return the identity of the file behind links; for one that does not exist, that of its folder, and its name."""
    real = Path(os.path.realpath(path))
    # Two real paths may still be one file, by a hard link or a mount.
    with suppress(OSError, ValueError):
        found = real.stat()
        return found.st_dev, found.st_ino
    with suppress(OSError, ValueError):
        folder = real.parent.stat()
        return folder.st_dev, folder.st_ino, real.name
    return (str(real),)


def _refuse_endless(flag: str, path: Path) -> None:
    """Refuse a device, as /dev/zero, that is no terminal; a pipe may be what a shell makes of `<(command)`."""
    with suppress(OSError, ValueError):
        kind = path.stat().st_mode
        if stat.S_ISCHR(kind) and not _is_terminal(path):
            raise UsageError(f"{flag} {safe(str(path))} is a device: name a file")
        # Kerberos opens a keytab twice, and what came through a pipe is gone then.
        if stat.S_ISFIFO(kind) and flag == "--keytab":
            raise UsageError(f"{flag} {safe(str(path))} is a pipe: name a file")


def _is_terminal(path: Path) -> bool:
    with path.open("rb", buffering=0) as device:
        return device.isatty()


def _is_stdout(path: Path) -> bool:
    with suppress(OSError, ValueError):
        found, stdout = path.stat(), os.fstat(1)
        # A terminal, a pipe or /dev/null may be both: only a regular file is overwritten.
        return stat.S_ISREG(stdout.st_mode) and (found.st_dev, found.st_ino) == (stdout.st_dev, stdout.st_ino)
    return False
