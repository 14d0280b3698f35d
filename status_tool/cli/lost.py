"""`status-tool lost`: what the old master holds that the slave never got, after an unplanned failover."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from status_tool.atomic import check_target
from status_tool.cli.options import cluster_named, on_cluster, print_answer, show_as, spark_settings_of, streams_of
from status_tool.cli.run import DEFAULT_MASTER_WAIT_S
from status_tool.cli.run_options import with_options
from status_tool.cli.signals import loading
from status_tool.clients.config import Settings
from status_tool.errors import UsageError
from status_tool.printable import iso
from status_tool.spark.settings import take_spark
from status_tool.vocabulary.header import MASTER
from status_tool.vocabulary.verdicts import Verdict

if TYPE_CHECKING:
    from status_tool.runs.check import Check
    from status_tool.runs.losses import LostData, LostTable

_WORDS = {Verdict.COMPLETE: "nothing", Verdict.INCOMPLETE: "lost", Verdict.UNVERIFIABLE: "unverifiable"}


@on_cluster("thrift", "webhdfs", "zookeeper")
@with_options(
    *("peer", "table", "namespace", "since", "accept_drift", "missing", "unverifiable"),
    *("spark_master", "spark_conf", "as_json"),
    *("quiet", "verbose", "log_file"),
    wait="How long to wait for every region server here to flush (default 60).",
    rows="Compare the rows of tables that streams leave in doubt; with --rows=all of every table.",
)
def lost(
    settings: Settings,
    since_recovery_point: Annotated[
        bool,
        typer.Option(
            "--since-recovery-point",
            # It changes nothing: the runbook's command says by it what is listed.
            expose_value=False,
            show_default=False,
            help="List entries later than the slave's recovery point: the default, as it has all earlier ones.",
        ),
    ] = True,
    slave_conf: Annotated[
        list[Path] | None, typer.Option("--slave-conf", metavar="DIR", help="The slave's site files (repeatable).")
    ] = None,
    slave_thrift: Annotated[
        str | None, typer.Option("--slave-thrift", metavar="HOST:PORT", help="The slave's Thrift server.")
    ] = None,
    slave_zookeeper: Annotated[
        str | None, typer.Option("--slave-zookeeper", metavar="HOST:PORT[,…]/ZNODE", help="The slave's ZooKeeper.")
    ] = None,
    **options: Any,
) -> int:
    """List, after an unplanned failover, what the old master holds that the slave never got. Ships nothing.

    Exit code 0 nothing is lost, 1 something is, 2 error, 3 no loss was found, but something could not be verified.
    """
    one = SimpleNamespace(**options)
    if not (slave_conf or (slave_thrift and slave_zookeeper)):
        raise UsageError("lost needs the slave: --slave-conf DIR, or --slave-thrift and --slave-zookeeper")
    if one.rows not in (None, "all", "doubtful"):
        raise UsageError(f"--rows={one.rows}: expected --rows or --rows=all")
    lists = {"missing": one.missing, "unverifiable": one.unverifiable}
    for name, target in lists.items():
        if target is not None:
            if str(target) == "-":
                raise UsageError(f"--{name} - does not go with lost: its answer goes to stdout; name a file")
            check_target(target)
    slave = cluster_named(slave_conf or (), settings.trust, slave_thrift, slave_zookeeper)
    scope, spark_conf = streams_of(one), spark_settings_of(one.spark_conf)
    take_spark()
    # Not before: these take most of a second to import, for which help and a wrong option need not wait.
    with loading():
        from status_tool.runs.check import Check
        from status_tool.runs.compare_rows import RowsAsked
        from status_tool.spark.lists import FullList

    show_as(quiet=one.quiet, verbose=one.verbose, log_file=one.log_file)
    check = Check(
        # `find_lost` writes FILE itself.
        Path(),
        scope,
        spark_master=one.spark_master,
        spark_conf=spark_conf,
        lists=tuple(FullList(name, to) for name, to in lists.items() if to is not None),
        rows=None if one.rows is None else RowsAsked(settings, one.rows == "all"),
        # `--since` shapes this one answer: only checks record the operator's word on the slave.
        records_words=False,
    )
    return _tell(settings, slave, DEFAULT_MASTER_WAIT_S if one.wait is None else one.wait, check, as_json=one.as_json)


def _tell(master: Settings, slave: Settings, wait_s: float, check: Check, *, as_json: bool) -> int:
    """Find and print it; returns the exit code."""
    with loading():
        from status_tool.gather.snapshot import Request
        from status_tool.report.progress import make_progress
        from status_tool.rules.sides import asked_filter
        from status_tool.runs.losses import find_lost
        from status_tool.spark.session import stages_shown

    # Everything that the old master holds, whatever shutdown time was recorded.
    request = Request(side=MASTER, wait_s=wait_s, only=asked_filter(check.scope), hdfs=False, following=True)
    with make_progress() as progress, stages_shown(progress.phase):
        found = find_lost(master, slave, request, check, progress.step)
    print_answer(lost_document(found), lost_lines(found), as_json=as_json, notices=found.outcome.notices)
    return found.outcome.exit_code


def lost_document(found: LostData) -> dict[str, Any]:
    """Return the document for `--json`."""
    from status_tool.report.text import not_covered

    outcome = found.outcome
    return {
        "verdict": _WORDS[outcome.verdict],
        "exit_code": outcome.exit_code,
        "master_cluster_id": outcome.master_cluster_id,
        "slave_cluster_id": outcome.slave_cluster_id,
        "peer_id": outcome.peer_id,
        "read_ms": outcome.cut_ms,
        "tables": {
            name: {
                "regions": table.regions,
                "of_regions": table.of_regions,
                "entries": table.entries,
                "written_from_ms": table.from_ms,
                "written_to_ms": table.to_ms,
                "kinds": list(table.kinds),
            }
            for name, table in found.tables.items()
        },
        "unverifiable": dict(found.unproven),
        "accepted_tables": [] if outcome.hbase is None else list(outcome.hbase.accepted_tables),
        "limits": list(not_covered(outcome)),
        "notices": list(outcome.notices),
    }


def lost_lines(found: LostData) -> Iterator[str]:
    """Yield the text."""
    from status_tool.report.text import accepted_line, not_covered

    outcome = found.outcome
    if found.tables:
        yield f"Slave {outcome.slave_cluster_id} never got, of what this cluster holds:"
        for name, table in found.tables.items():
            yield f"  {name}: {', '.join(_lost_words(table))}"
        yield "Nothing was shipped. Enabling the peer ships what its queues hold, beside what was written there since."
    elif outcome.verdict is Verdict.COMPLETE:
        yield f"Nothing is lost: slave {outcome.slave_cluster_id} has all that this cluster replicates to it."
    if found.unproven:
        yield "Not certain:"
        for name, why in found.unproven.items():
            yield f"  {name or 'the cluster as a whole'}: {why}"
        # A disabled peer ships nothing, so that the queue of a server that was killed never drains.
        yield (
            "On the slave, `status-tool rows --table TABLE --master-conf DIR` compares a table as it is. --rows here "
            "compares only what no queue can hold any more, and a killed server's waits until the peer is enabled."
        )
    if outcome.hbase is not None and outcome.hbase.accepted_tables:
        word = "Your word (--since) vouches for a part of it, and nothing has compared that"
        yield f"{word}: {accepted_line(outcome.hbase)}"
    if limits := not_covered(outcome):
        yield f"Limits of this answer: {'; '.join(limits)}."


def _lost_words(table: LostTable) -> Iterator[str]:
    if table.entries:
        yield f"about {table.entries} WAL entr{'y' if table.entries == 1 else 'ies'}"
    if table.of_regions:
        yield f"in {table.regions} of {table.of_regions} regions"
    if table.from_ms is not None and table.to_ms is not None:
        yield f"written between {iso(table.from_ms)} and {iso(table.to_ms)}"
    yield ", ".join(dict.fromkeys(table.kinds))
