"""The cluster that a command's options name, how the options of several commands show a run, and how they answer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import typer

from status_tool.cli.run_options import IDENTITY, with_options
from status_tool.cli.targets import refuse_overwriting
from status_tool.clients.config import Settings
from status_tool.clients.kerberos import use
from status_tool.clients.sitefiles import load_site
from status_tool.clients.tls import Trust, read_trust
from status_tool.errors import UsageError
from status_tool.printable import print_beside, safe
from status_tool.spark.settings import submitted
from status_tool.status_file.signature import SignKey, read_key

Ended = TypeVar("Ended")


def show_as(*, quiet: bool, verbose: bool, log_file: Path | None) -> None:
    """Set how this process shows progress. Raises `UsageError`, `OutputError`."""
    # Help and a wrong option need not wait for what draws bars.
    from status_tool.report.progress import Shown, open_log, set_shown

    if quiet and verbose:
        raise UsageError("-q shows no progress, -v every step of it: give either")
    # Under `spark-submit` standard error goes where the results go.
    set_shown(Shown(quiet or (submitted() and not verbose), verbose, None if log_file is None else open_log(log_file)))


def on_cluster(*endpoints: str) -> Callable[[Callable[..., Ended]], Callable[..., Ended]]:
    """Give a command the options that name this cluster: by `conf_dir`, by these endpoints, and who this client is.

    The command itself takes their `settings` instead. An output that is an input is refused before anything is read.
    """
    names = ("conf_dir", *endpoints, *IDENTITY)

    def decorate(command: Callable[..., Ended]) -> Callable[..., Ended]:
        @wraps(command)
        def taken(**values: Any) -> Ended:
            refuse_overwriting(values)
            settings = settings_of({name: values.pop(name) for name in names})
            return command(settings=settings, **values)

        own = inspect.signature(command, eval_str=True).parameters.values()
        # Only by keyword may a parameter without a default stand behind one with a default.
        keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own if one.name != "settings"]
        taken.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        return with_options(*names)(taken)

    return decorate


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Return the settings of the cluster that these options name, and make this process use its tickets."""
    trust = trust_of(given)
    webhdfs = tuple(given.get("webhdfs") or ())
    return Settings(load_site(given["conf_dir"] or []), given.get("thrift"), webhdfs, given.get("zookeeper"), trust)


def cluster_named(
    folders: Sequence[Path], trust: Trust, thrift: str | None = None, zookeeper: str | None = None
) -> Settings:
    """Return the settings of another cluster: only what the options name."""
    # The site files of $HBASE_CONF_DIR are this cluster's.
    return Settings(load_site(folders, environ={}), thrift, (), zookeeper, trust)


def trust_of(given: Mapping[str, Any]) -> Trust:
    """Make this process use the tickets that the options of `IDENTITY` name, and return whom it trusts."""
    use(given["principal"], given["keytab"])
    return read_trust(given["cacert"], given["cert"])


def sign_key_of(path: Path | None, *, required: bool) -> SignKey | None:
    """Return the key of `--sign-key`. Raises `UsageError` where a signature is required and there is none."""
    if path is None and required:
        raise UsageError("--require-signature needs --sign-key FILE: the key that FILE was signed with")
    return None if path is None else read_key(path)


def print_answer(document: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    """Print the one JSON document of a command, or its lines of text, each sanitised."""
    typer.echo(json.dumps(document) if as_json else "\n".join(map(safe, lines)))


def print_notices(notices: Iterable[str]) -> None:
    """Print to standard error what is no part of the answer."""
    for notice in notices:
        print_beside(safe(notice))
