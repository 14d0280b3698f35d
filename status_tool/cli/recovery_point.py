"""`status-tool recovery-point`: up to when everything of the master is proven to be on this slave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from status_tool.atomic import PUBLIC, check_targets
from status_tool.cli.options import on_cluster, print_answer, show_as, sign_key_of, spark_settings_of, streams_of
from status_tool.cli.run_options import MOST, SIGNED, with_options
from status_tool.cli.signals import loading
from status_tool.clients.config import Settings
from status_tool.errors import EXIT_COMPLETE, EXIT_INCOMPLETE, EXIT_UNVERIFIABLE, UsageError
from status_tool.printable import counted, duration, iso
from status_tool.spark.settings import take_spark
from status_tool.vocabulary.outcome import RecoveryPoint, TablePoint
from status_tool.vocabulary.verdicts import Evidence

if TYPE_CHECKING:
    from status_tool.runs.recovery import PointAsked

_STYLES = {EXIT_COMPLETE: "complete", EXIT_INCOMPLETE: "incomplete", EXIT_UNVERIFIABLE: "unverifiable"}
_WORDS = {EXIT_COMPLETE: "fresh", EXIT_INCOMPLETE: "old", EXIT_UNVERIFIABLE: "none"}


@on_cluster("thrift", "zookeeper")
@with_options(
    *("peer", "table", "namespace", "since", "accept_drift", "spark_master", "spark_conf"),
    *("as_json", "metrics", "report"),
    *("quiet", "verbose", "log_file"),
    **SIGNED,
)
def recovery_point(
    settings: Settings,
    max_age: Annotated[
        float | None,
        typer.Option(
            "--max-age",
            metavar="SECONDS",
            min=0,
            max=MOST,
            help="How old the point may be (default: three intervals of publish; with --sign-key there is none).",
        ),
    ] = None,
    master_cluster: Annotated[
        str | None,
        typer.Option("--master-cluster", metavar="ID", help="The master's HBase cluster id, where several publish."),
    ] = None,
    **options: Any,
) -> int:
    """Print up to when everything is proven to be on this slave, from what `publish` has sent. Reads the slave only.

    Exit code 0 the point is fresh, 1 older than --max-age, 2 error, 3 there is none, or it lies ahead of
    this host's clock.
    """
    one = SimpleNamespace(**options)
    scope = streams_of(one)
    check_targets(one.metrics, one.report)
    key = sign_key_of(one.sign_key, required=one.require_signature)
    if key is not None and max_age is None:
        raise UsageError("--sign-key needs --max-age SECONDS: its default comes from what publish does not sign")
    spark_conf = spark_settings_of(one.spark_conf)
    take_spark()
    # Not before: these take most of a second to import, for which help and a wrong option need not wait.
    with loading():
        from status_tool.runs.recovery import PointAsked

    show_as(quiet=one.quiet, verbose=one.verbose, log_file=one.log_file)
    asked = PointAsked(scope, master_cluster, key, one.spark_master, spark_conf)
    return tell_point(settings, asked, max_age, metrics=one.metrics, report=one.report, as_json=one.as_json)


def tell_point(
    settings: Settings,
    asked: PointAsked,
    max_age_s: float | None,
    *,
    metrics: Path | None,
    report: Path | None,
    as_json: bool,
) -> int:
    """Find the recovery point, print it and write its files; returns the exit code."""
    with loading():
        from status_tool.report.metrics import point_metrics
        from status_tool.report.progress import make_progress
        from status_tool.report.small_pages import point_page
        from status_tool.report.summary import write_report
        from status_tool.runs.recovery import INTERVALS, find_point
        from status_tool.spark.session import stages_shown

    with make_progress() as progress, stages_shown(progress.phase):
        point = find_point(settings, asked, progress.step)
    limit_s = max_age_s if max_age_s is not None else INTERVALS * (point.interval_ms or 0) / 1000
    if report is not None:
        style = _STYLES[exit_code_of(point, limit_s)]
        write_report(report, point_page(point, list(sentences_of(point, limit_s)), style))
    if metrics is not None:
        names = {"master": point.master_cluster_id or "", "slave": point.slave_cluster_id}
        write_report(metrics, point_metrics(names, point.points, len(point.limits)), PUBLIC)
    print_answer(point_document(point, limit_s), lines_of(point, limit_s), as_json=as_json, notices=point.notices)
    return exit_code_of(point, limit_s)


def exit_code_of(point: RecoveryPoint, limit_s: float) -> int:
    """Return 0 for a fresh point, 1 for one older than allowed, 3 for none, or for one that lies ahead."""
    if point.age_ms is None:
        return EXIT_UNVERIFIABLE
    return EXIT_COMPLETE if point.age_ms <= limit_s * 1000 else EXIT_INCOMPLETE


def point_document(point: RecoveryPoint, limit_s: float) -> dict[str, Any]:
    """Return the document for `--json`."""
    code = exit_code_of(point, limit_s)
    return {
        "verdict": _WORDS[code] if point.ahead_ms is None else "ahead",
        "exit_code": code,
        "recovery_point_ms": point.point_ms,
        "age_ms": point.age_ms,
        "max_age_s": limit_s,
        "skew_at_most_ms": point.skew_ms,
        "held_back_by": point.held_back_by,
        "evidence": point.evidence,
        "master_cluster_id": point.master_cluster_id,
        "slave_cluster_id": point.slave_cluster_id,
        "newest_published_ms": point.newest_ms,
        "published": point.published,
        "judged": point.judged,
        "tables": {name: _table_document(table) for name, table in point.tables.items()},
        "limits": list(point.limits),
        "notices": list(point.notices),
    }


def _table_document(table: TablePoint) -> dict[str, Any]:
    return {
        "recovery_point_ms": table.point_ms,
        "held_back_by": table.held_back_by,
        "newest_entry_ms": table.beyond.newest_ms,
        "missing_entries": table.beyond.missing,
        "by_word": table.by_word,
    }


def lines_of(point: RecoveryPoint, limit_s: float) -> Iterator[str]:
    """Yield the text."""
    yield from sentences_of(point, limit_s)
    for name, table in point.tables.items():
        yield f"  {name}: {'; '.join(_table_words(point, table))}"
    if point.newest_ms is not None:
        judged = f"{point.judged} {'was' if point.judged == 1 else 'were'} judged"
        files = counted(point.published, "published status file")
        yield f"{files}, the newest of {iso(point.newest_ms)}; {judged}."


def sentences_of(point: RecoveryPoint, limit_s: float) -> Iterator[str]:
    """Yield the text about the whole."""
    if point.point_ms is None:
        yield f"There is NO recovery point: {point.held_back_by}"
    else:
        skew = "" if point.skew_ms is None else f", which differ by at most {point.skew_ms / 1000:.1f} s"
        yield (
            f"Everything that master {point.master_cluster_id} acknowledged before {iso(point.point_ms)} on its "
            f"clocks{skew}, is here."
        )
        yield _age_words(point, limit_s)
        if point.evidence != Evidence.EXACT:
            yield f"Not every entry of every stream is traced: the evidence is {point.evidence}."
        if point.limits:
            yield f"Limits of this answer: {'; '.join(point.limits)}."
        if point.held_back_by is not None:
            yield f"What was published later is not complete: {point.held_back_by}"


def _age_words(point: RecoveryPoint, limit_s: float) -> str:
    if point.age_ms is None:
        return (
            f"That is {duration(point.ahead_ms or 0)} AHEAD of this host's clock, so its age is not known: set right "
            "the clock of the host that runs `publish`, or this one's."
        )
    older = "" if point.age_ms <= limit_s * 1000 else f", older than the {limit_s:g} s that are allowed"
    return f"That is {duration(point.age_ms)} ago{older}."


def _table_words(point: RecoveryPoint, table: TablePoint) -> Iterator[str]:
    yield "nothing is proven" if table.point_ms is None else f"proven to {iso(table.point_ms)}{table.proof}"
    if table.beyond.newest_ms is not None:
        yield f"newest entry {iso(table.beyond.newest_ms)}"
    if table.beyond.missing:
        count = table.beyond.missing
        yield f"about {count} WAL entr{'y is' if count == 1 else 'ies are'} known to be missing"
    if table.held_back_by is not None and table.held_back_by != point.held_back_by:
        yield f"held back by {table.held_back_by}"
