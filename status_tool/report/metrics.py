"""A Prometheus textfile (also valid OpenMetrics) for node_exporter and alerting."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TextIO

from status_tool.evidence.model import EXIT_CODES, Outcome
from status_tool.printable import safe
from status_tool.report.interface import Reporter, file_counts, region_counts

_Sample = tuple[Mapping[str, str], float | int]


class MetricsReporter(Reporter):
    """Writes one gauge a fact. `run_ms` is when the check ran (epoch ms; default: now)."""

    def __init__(self, run_ms: int | None = None) -> None:
        self._run_ms = int(time.time() * 1000) if run_ms is None else run_ms

    def write(self, outcome: Outcome, stream: TextIO) -> None:
        for line in self._lines(outcome):
            stream.write(line + "\n")

    def _lines(self, outcome: Outcome) -> Iterator[str]:
        yield from _gauge("info", "What was checked.", [(_names(outcome), 1)])
        yield from _gauge("exit_code", "Exit code of the last check.", [({}, outcome.exit_code)])
        yield from _gauge(
            "verdict",
            "Verdict of a half: 0 complete, 1 not complete, 3 could not be verified.",
            _verdicts(outcome),
        )
        if outcome.hbase is not None:
            yield from _gauge("regions", "Regions by status.", _by_status(region_counts(outcome)))
            lag = outcome.hbase.worst_lag_ms
            if lag is not None:
                yield from _gauge("worst_lag_seconds", "How far the slowest region is behind.", [({}, lag / 1000)])
        if outcome.hdfs is not None:
            yield from _gauge("files", "Files by status.", _by_status(file_counts(outcome)))
        yield from _gauge(
            "cut_timestamp_seconds", "Everything written before was asked for.", [({}, outcome.cut_ms / 1000)]
        )
        yield from _gauge("run_timestamp_seconds", "When the check ran.", [({}, self._run_ms / 1000)])
        yield "# EOF"


def _names(outcome: Outcome) -> dict[str, str]:
    return {
        "master": outcome.master_cluster_id,
        "slave": outcome.slave_cluster_id,
        "peer": outcome.peer_id or "",
    }


def _verdicts(outcome: Outcome) -> list[_Sample]:
    halves = {"hbase": outcome.hbase, "hdfs": outcome.hdfs}
    return [({"half": name}, EXIT_CODES[half.verdict]) for name, half in halves.items() if half is not None]


def _by_status(counts: Mapping[str, int]) -> list[_Sample]:
    return [({"status": status}, count) for status, count in counts.items()]


def _gauge(name: str, meaning: str, samples: list[_Sample]) -> Iterator[str]:
    if not samples:
        return
    yield f"# HELP status_tool_{name} {meaning}"
    yield f"# TYPE status_tool_{name} gauge"
    for labels, value in samples:
        text = ",".join(f'{label}="{_label(content)}"' for label, content in labels.items())
        yield f"status_tool_{name}{'{' + text + '}' if text else ''} {value}"


def _label(value: str) -> str:
    # Controls first: what they become holds backslashes, which the format wants doubled.
    return safe(value).replace("\\", "\\\\").replace('"', '\\"')
