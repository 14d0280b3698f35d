"""Values of options that several commands take, the cluster that these name, and how commands show a run and answer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO, TypeVar

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
from status_tool.vocabulary.names import plain_name
from status_tool.vocabulary.scope import Baseline, Scope, TableFilter

Ended = TypeVar("Ended")
SECONDS_LIMIT = 100_000_000_000
"""Below it, a number of epoch milliseconds would lie before 1973: it is meant as seconds."""
LAST_MS = 253_402_300_799_999
"""The end of the year 9999, the last that `datetime` knows."""


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


class UnreadError(OSError):
    """Nobody reads the answer any more."""


class AnswerStream:
    """stdout of a command line, which tells its own broken pipe from those of servers and processes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_begun = False
        """True if something was written that no other document may follow."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write as the stream does. Raises `UnreadError`."""
        # First: a signal may hit the write. Click tries an empty text.
        self.is_begun |= bool(text)
        with _unread():
            return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of them. Raises `UnreadError`."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the stream. Raises `UnreadError`."""
        with _unread():
            self._stream.flush()


@contextmanager
def _unread() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise UnreadError("nobody reads the answer") from None


def print_answer(
    document: Mapping[str, Any], lines: Iterable[str], *, as_json: bool, notices: Iterable[str] = ()
) -> None:
    """Print the one JSON document of a command, or its lines of text, each sanitised, with the notices beside it."""
    typer.echo(json.dumps(document) if as_json else "\n".join(map(safe, lines)))
    if not as_json:
        print_notices(notices)


def print_notices(notices: Iterable[str]) -> None:
    """Print to standard error what is no part of the answer."""
    for notice in notices:
        print_beside(safe(notice))


def parse_time(text: str | None, option: str) -> int | None:
    """Return the epoch milliseconds that an option's value means; None stays None. Raises `UsageError`."""
    if text is None:
        return None
    try:
        return _checked_ms(int(text), option)
    except ValueError:
        return _checked_ms(_iso_ms(text, option), option)


def parse_baseline(values: Collection[str], chosen: TableFilter) -> Baseline:
    """Parse `--since TIME` and `--since TABLE=TIME`. Raises `UsageError` for one that contradicts another option.

    `chosen` is what `--table` and `--namespace` name.
    """
    times: dict[str | None, int | None] = {}
    for value in values:
        name, separator, time = value.rpartition("=")
        table = plain_name(name) if separator else None
        if table in times:
            raise UsageError(f"--since is given twice{f' for table {table}' if table else ''}: give one time")
        if separator and not table:
            raise UsageError(f"--since {value}: name the table before the =")
        if not time:
            raise UsageError(f"--since {value}: give a time, as in --since TABLE=2026-01-31T12:00:00Z")
        if table and not chosen.holds(table):
            raise UsageError(f"--since {value}: {table} is not in scope (--table, --namespace)")
        times[table] = parse_time(time, "--since")
    everything_ms = times.pop(None, None)
    return Baseline(everything_ms, {table: time for table, time in times.items() if table and time is not None})


def _iso_ms(text: str, option: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text}: expected milliseconds since 1970, or a time as 2026-01-31T12:00:00Z"
        ) from None
    if moment.tzinfo is None:  # the two clusters, and whoever types this, may live in different zones
        raise UsageError(f"{option} {text}: add the zone, as in 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00")
    return int(moment.timestamp() * 1000)


def _checked_ms(value: int, option: str) -> int:
    if value <= 0:
        raise UsageError(f"{option} {value}: expected a time in milliseconds since 1970")
    if value < SECONDS_LIMIT:
        raise UsageError(f"{option} {value} looks like seconds: give milliseconds since 1970 ({value * 1000}?)")
    if value > LAST_MS:
        raise UsageError(f"{option} {value}: lies after the year 9999; expected milliseconds since 1970")
    return value


def spark_settings_of(pairs: list[str] | None) -> tuple[tuple[str, str], ...]:
    """Return the settings of `--spark-conf`. Raises `UsageError`."""
    settings = []
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--spark-conf {pair!r}: expected K=V")
        settings.append((key.strip(), value.strip()))
    return tuple(settings)


def streams_of(one: SimpleNamespace) -> Scope:
    """Return the scope of a command about streams alone, by the options that narrow `run -i` to what counts."""
    tables = TableFilter.of(one.table or (), one.namespace or ())
    return Scope(
        *(tables.tables, tables.namespaces, parse_baseline(one.since or (), tables), one.peer),
        check_hdfs=False,
        accepted_drift=frozenset(map(plain_name, one.accept_drift or ())),
    )
