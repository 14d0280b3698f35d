"""Requests and output of `status-tool lost`. Apart from `cli.lost` as `cli.running` is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from status_tool.cli.options import print_answer, print_notices
from status_tool.clients.config import Settings
from status_tool.gather.snapshot import Request
from status_tool.printable import iso
from status_tool.report.progress import make_progress
from status_tool.report.text import accepted_line, not_covered
from status_tool.rules.sides import asked_filter
from status_tool.runs.check import Check
from status_tool.runs.compare_rows import RowsAsked
from status_tool.runs.losses import LostData, LostTable, find_lost
from status_tool.spark.lists import FullList
from status_tool.spark.stages import stages_shown
from status_tool.vocabulary.header import MASTER
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Verdict

_WORDS = {Verdict.COMPLETE: "nothing", Verdict.INCOMPLETE: "lost", Verdict.UNVERIFIABLE: "unverifiable"}


def lost_check(
    master: Settings,
    scope: Scope,
    rows: bool | None,
    lists: Mapping[str, Path | None],
    spark_master: str | None = None,
    spark_conf: tuple[tuple[str, str], ...] = (),
) -> Check:
    """Return the check of the slave. `rows`: None: by streams alone, else whether every table's rows are compared."""
    return Check(
        # `find_lost` writes FILE itself.
        Path(),
        scope,
        spark_master=spark_master,
        spark_conf=spark_conf,
        lists=tuple(FullList(name, to) for name, to in lists.items() if to is not None),
        rows=None if rows is None else RowsAsked(master, rows),
        # `--since` shapes this one answer: only checks record the operator's word on the slave.
        records_words=False,
    )


def tell_lost(master: Settings, slave: Settings, wait_s: float, check: Check, *, as_json: bool) -> int:
    """Find and print it; returns the exit code."""
    # Everything that the old master holds, whatever shutdown time was recorded.
    request = Request(side=MASTER, wait_s=wait_s, only=asked_filter(check.scope), hdfs=False, following=True)
    with make_progress() as progress, stages_shown(progress.phase):
        found = find_lost(master, slave, request, check, progress.step)
    print_answer(lost_document(found), lost_lines(found), as_json=as_json)
    if not as_json:
        print_notices(found.outcome.notices)
    return found.outcome.exit_code


def lost_document(found: LostData) -> dict[str, Any]:
    """Return the document for `--json`."""
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
