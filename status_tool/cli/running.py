"""Work of a run once its options fit together, and the output of its outcome.

Apart from `cli.run`, because what it imports (Spark, Arrow, Thrift) takes most of a second: help and a wrong option
need not wait for that.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from status_tool.atomic import PUBLIC
from status_tool.cli.options import print_answer, print_notices
from status_tool.clients.config import Settings
from status_tool.errors import OutputError
from status_tool.gather.snapshot import Request
from status_tool.printable import iso, safe
from status_tool.report.json_report import json_report
from status_tool.report.metrics import before, check_metrics
from status_tool.report.page import html_report
from status_tool.report.progress import make_progress
from status_tool.report.script import repair_script
from status_tool.report.summary import write_report
from status_tool.report.text import text_report
from status_tool.runs.write import Written, dump_file, dump_live, unasked, write_side
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.outcome import Moment, Outcome

if TYPE_CHECKING:
    from status_tool.runs.check import Check
    from status_tool.runs.plan import Step


class Output(NamedTuple):
    """Destinations of an outcome."""

    as_json: bool
    report: Path | None
    metrics: Path | None
    repair_script: Path | None
    started_s: float
    quiet: bool = False
    """The verdict alone on stdout, as text."""
    points: Mapping[str, int | None] = {}
    """Recovery points by table, for the metrics."""


def checked(settings: Settings, check: Check) -> Outcome:
    """Return the outcome of `run -i`, with progress on stderr. Raises what the check raises."""
    # Here and below: only a check needs Spark, which has been loaded with `Check`.
    from status_tool.runs.file_check import check_live, check_offline
    from status_tool.spark.session import stages_shown

    with make_progress() as progress, stages_shown(progress.phase):
        say = progress.step
        return check_offline(check, say) if check.slave_status else check_live(settings, check, say, progress)


def check_file(settings: Settings, check: Check, output: Output) -> int:
    """Run `run -i`: check, print text or JSON, and write the reports. Returns the exit code."""
    return _write_outcome(checked(settings, check), output)


def follow_master(settings: Settings, master: Settings, check: Check, output: Output, limit_s: float | None) -> int:
    """Run `run -i --follow`: as `check_file`, for its last round."""
    from status_tool.runs.follow import follow

    with make_progress() as progress:
        outcome = follow(settings, master, check, progress, limit_s)
    return _write_outcome(outcome, output)


def _write_outcome(outcome: Outcome, output: Output) -> int:
    # A report that cannot be written is an error: with --json that is the one document on stdout.
    if output.as_json:
        write_reports(outcome, output)
        sys.stdout.writelines(json_report(outcome))
    else:
        script = None if output.repair_script is None else str(output.repair_script)
        sys.stdout.writelines(text_report(outcome, script, quiet=output.quiet))
    sys.stdout.flush()
    # A reader of text has the verdict by now, whatever becomes of the reports.
    if not output.as_json:
        write_reports(outcome, output)
    return outcome.exit_code


def write_reports(outcome: Outcome, output: Output, history: Sequence[Moment] = ()) -> None:
    """Write the files that the options name. `history` holds the earlier checks for the page.

    Raises `OutputError`, also for a dump that failed before.
    """
    if output.report is not None:
        write_report(output.report, html_report(outcome, history=history))
    if output.metrics is not None:
        took = time.monotonic() - output.started_s
        metrics = check_metrics(outcome, None, took, before(output.metrics), output.points)
        write_report(output.metrics, metrics, PUBLIC)
    if output.repair_script is not None:
        write_report(output.repair_script, repair_script(outcome, output.repair_script.name))
    # Only now: the verdict holds although the dump failed, so its files are written first.
    if outcome.undumped:
        raise OutputError(f"{outcome.undumped}; the verdict is: {outcome.verdict}")


def write_file(
    settings: Settings,
    request: Request,
    output: Path,
    debug_dir: Path | None,
    as_json: bool,
    key: SignKey | None,
    *,
    asks_samples: bool = False,
) -> int:
    """Run `run -o`: write one side's status to a file. `asks_samples`: whether `--sample` was given.

    Raises `UsageError` if all of the master's HDFS would be read unasked, and what `write_side` raises.
    """
    read = unasked(settings, request)
    with make_progress() as progress:
        written = write_side(settings, request, output, progress.step, key, progress)
        if debug_dir is not None:
            # From FILE: another look at the cluster would show another moment.
            dump_file(output, debug_dir)
    told = [] if read is None else [read]
    if asks_samples and written.unsampled:
        told.append(f"--sample: FILE holds no samples of rows: {written.unsampled}")
    print_notices((*told, *written.header.notices, *(f"{server}: unverifiable" for server in written.unsettled)))
    if as_json:
        print(json.dumps(_summary(written, output)))
        return 0
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(written.rows.items()))
    print(f"Wrote {safe(str(output))}: the {request.side}'s status ({counts}), cut {iso(written.header.cut_ms)}")
    return 0


def _summary(written: Written, output: Path) -> dict[str, object]:
    return {
        "file": str(output),
        "side": written.header.side,
        "cluster_id": written.header.cluster_id,
        "cut_ms": written.header.cut_ms,
        "shutdown_ms": written.header.shutdown_ms,
        "rows": written.rows,
        "unsettled": list(written.unsettled),
        "notices": list(written.header.notices),
    }


def show_plan(steps: Iterable[Step], as_json: bool) -> int:
    """Print the plan of `--explain` as text or JSON."""
    found = list(steps)
    document = {"plan": [{"what": step.what, "value": step.value} for step in found]}
    print_answer(document, (f"{step.what}: {step.value}" for step in found), as_json=as_json)
    return 0


def dump(settings: Settings, request: Request) -> int:
    """Run `run -d`: print one side's state as JSON lines."""
    with make_progress() as progress:
        dump_live(settings, request, sys.stdout, progress.step)
    return 0
