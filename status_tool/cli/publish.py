"""`status-tool publish`: `run -m` as a service, whose files travel to the slaves by replication itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from status_tool.atomic import check_targets
from status_tool.cli.modes import check_options, given_of
from status_tool.cli.repeated import ServiceCommand, given_options, parameters_of
from status_tool.cli.run_options import MOST, OPTIONS, Mode, with_options
from status_tool.cli.signals import loading
from status_tool.cli.targets import refuse_overwriting
from status_tool.errors import UsageError

DEFAULT_INTERVAL_S = 30.0
NOT_PUBLISHED = {
    "master": "it writes the master's status anyway",
    "output": "it writes to the table replicationstatus: `run -m -o FILE` writes a file",
    "only": "a published file always has the HBase half, and HDFS every --files-every minutes",
    "explain": "it has no plan of its own: `run -m -o FILE --explain` shows that of one round",
    "debug": "each round would write over it: `run -m -o FILE -d` dumps one",
    "debug_dir": "each round would write over it: `run -m -o FILE -d` dumps one",
    "quiet": "it prints one line a round and no progress",
    "verbose": "it prints one line a round and no progress",
    "log_file": "it prints one line a round and no progress: redirect it",
    "drained": "the next round reads the queues again",
    "peer": "it goes with --drained, which the next round makes needless",
    "witness": "the slave reads a witness's status only from a file: `run -m --witness HOST:PORT -o FILE`",
    "resume": "the next round reads what this one could not",
    "mode": "it writes no file but --metrics",
}
"""Options of `run -m` that do not go with it, and why."""
_OF_FILES = frozenset(name for name, option in OPTIONS.items() if option.half == "hdfs")


@with_options(metrics="Also write a Prometheus textfile each round.")
def publish(
    context: typer.Context,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=1,
            max=MOST,
            help="Time between rounds (default 30), give or take 10 %.",
        ),
    ] = DEFAULT_INTERVAL_S,
    files_every: Annotated[
        float | None,
        typer.Option(
            "--files-every",
            metavar="MINUTES",
            min=0,
            max=MOST,
            help="How often to include the checksums of HDFS files (default: never).",
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="N", min=1, help="End after N rounds; otherwise a signal ends it.")
    ] = None,
    **options: Any,
) -> int:
    """Write the master's status again and again into the table replicationstatus, which replication ships.

    The slave then answers by itself: `recovery-point`, `run -i --published`. Takes the options of `run -m` as well
    (it samples rows only with --sample). Ends with the exit code of its last round, by Ctrl-C
    with 130, by SIGTERM with 143.
    """
    known = given_options(context, NOT_PUBLISHED)
    # FILE only stands for the form of `run`: nothing is written there.
    given = parameters_of(context, ["-m", "-o", "FILE", *context.args])
    check_options(given_of(given), None)
    if files_every is None and (unused := sorted(known & _OF_FILES)):
        raise UsageError(f"{OPTIONS[unused[0]].flag} is about HDFS files: it goes with --files-every MINUTES")
    metrics: Path | None = options["metrics"]
    refuse_overwriting({**given, "output": None, "metrics": metrics})
    check_targets(metrics)
    with loading():
        from status_tool.cli.publishing import PublishService, keep_publishing

    return keep_publishing(given, PublishService(interval, files_every, rounds, metrics))


class PublishCommand(ServiceCommand):
    """`publish`, which takes options of `run -m`."""

    taken = {name for name, option in OPTIONS.items() if Mode.MASTER in option.modes} - NOT_PUBLISHED.keys()
    form = "run -m"
