"""`status-tool watch`: the check of `run -i` as a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from status_tool.cli.defaults import is_default
from status_tool.cli.modes import check_options, given_of, refusal
from status_tool.cli.repeated import RoundParameters, ServiceCommand, given_options, parameters_of
from status_tool.cli.run_options import DECLARED, MOST, OPTIONS, Mode
from status_tool.cli.signals import loading
from status_tool.cli.targets import refuse_overwriting
from status_tool.clients.config import port_number
from status_tool.errors import UsageError
from status_tool.spark.settings import take_spark

DEFAULT_EVERY_S = 300.0
# The pages have no access control: other hosts see them only if --listen names an address.
_LOOPBACK = "127.0.0.1"
REFUSED = {name: option.unwatched for name, option in DECLARED.items() if option.unwatched}
"""Options of `run` that do not go with it, and why."""
_MASTER_ENDPOINTS = {"master_conf": "conf_dir", "master_thrift": "thrift", "master_zookeeper": "zookeeper"}
_ONE_SIDE = frozenset({"wait", "shutdown", "conf_dir", "thrift", "webhdfs", "zookeeper"})
"""Options of the check only, although writing FILE would take them as well."""


def watch(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Check the newest status file of this folder in each round."),
    ] = None,
    every: Annotated[
        float,
        typer.Option(
            "--every", metavar="SECONDS", min=1, max=MOST, help="Time between rounds (default 300), give or take 10 %."
        ),
    ] = DEFAULT_EVERY_S,
    rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="N", min=1, help="End after N rounds; otherwise a signal ends it.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="[HOST:]PORT",
            help="Answer /metrics, /healthz and /report by HTTP, without access control (default host 127.0.0.1).",
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option("--history", metavar="FILE", help="Keep the findings of 90 days in this SQLite file."),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", metavar="URL", help="Post each round's verdict there, as a CloudEvent in JSON."),
    ] = None,
) -> int:
    """Check again and again, with one Spark session and one line a round. Takes the options of `run -i` as well.

    It checks FILE as it is in each round (-i FILE), the newest status that was published here (--published), the newest
    FILE of a folder (--from DIR), or the master as it is (--master-conf DIR). Ends with the exit code of its last
    round, by Ctrl-C with 130, by SIGTERM with 143.
    """
    known = given_options(context, REFUSED)
    # A file's defaults count where the form of `run` takes them, so there has to be one.
    form = [] if known & {"status_file", "published"} else ["-i", str(folder or "FILE")]
    given = parameters_of(context, [*context.args, *form])
    # A file's `from` does not count if the command line itself says what to check.
    if is_default(context, "folder") and known & {"status_file", "published", *_MASTER_ENDPOINTS}:
        folder = None
    what = _rounds(given, known, folder)
    # Without -i, FILE only stands for the form of `run`, and is no file.
    read = set() if "status_file" in known else {"status_file"}
    refuse_overwriting({**given, **dict.fromkeys(read), "folder": folder, "history": history})
    host, port = _address(listen)
    # `watching` imports PySpark, which has to be that of SPARK_HOME.
    take_spark()
    with loading():
        from status_tool.cli.watching import Service, keep_watch

    return keep_watch(what, Service(every, rounds, None if port is None else (host, port), history, webhook))


class WatchCommand(ServiceCommand):
    """`watch`, which takes options of `run -i`."""

    taken = {name for name, one in DECLARED.items() if one.is_letter or Mode.LIVE in one.modes} - REFUSED.keys()
    form = "run -i"


def _rounds(given: dict[str, Any], known: frozenset[str], folder: Path | None) -> RoundParameters:
    """Return the parameters of each round. Raises `UsageError` for options that would have no effect."""
    for name in ("differ", "missing", "unverifiable"):
        if str(given[name]) == "-":
            raise UsageError(f"--{name} - does not go with watch: one line a round goes there; name a file")
    refreshes = bool(known & set(_MASTER_ENDPOINTS))
    sources = {
        "-i": "status_file" in known,
        "--published": "published" in known,
        "--from": folder is not None,
        "--master-conf": refreshes,
    }
    chosen = [flag for flag, is_there in sources.items() if is_there]
    if len(chosen) != 1:
        words = f"{' and '.join(chosen)} are {len(chosen)} of them" if chosen else "nothing names it"
        raise UsageError(
            "watch needs the master's side: -i FILE, --published, --from DIR with status files, or --master-conf DIR; "
            f"{words}"
        )
    # Here the master's endpoints say how FILE is written; `run -i` without --rows refuses them.
    check = {**given, **dict.fromkeys(_MASTER_ENDPOINTS)}
    if not refreshes:
        check_options(given_of(check), given["only"])
        return RoundParameters(check, folder=folder)
    if "master_conf" not in known:
        raise UsageError("watch reads the master by its site files: give --master-conf DIR")
    half = given["only"]
    # `master` below keeps it: it is an option of writing FILE, and the check would be refused with it.
    check["all_files"] = False
    check_options(given_of(check), half)
    taken = set(given) & set(OPTIONS) - _ONE_SIDE
    written = {name for name in taken if refusal(name, Mode.MASTER, known, half) is None}
    master = {name: value if name in written else DECLARED[name].unset for name, value in given.items()}
    master |= {to: given[name] for name, to in _MASTER_ENDPOINTS.items()} | {"master": True}
    return RoundParameters(check, master=master)


def _address(text: str | None) -> tuple[str, int | None]:
    if text is None:
        return _LOOPBACK, None
    host, _, port = text.rpartition(":")
    if (number := port_number(port)) is None:
        raise UsageError(f"--listen {text}: expected PORT or HOST:PORT")
    # Brackets keep an IPv6 address apart from its port; `bind` takes none.
    return host.strip("[]") or _LOOPBACK, number
