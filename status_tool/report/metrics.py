"""A Prometheus textfile (also valid OpenMetrics) for node_exporter and alerting."""

from __future__ import annotations

import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from status_tool.printable import safe
from status_tool.report.summary import file_counts, region_counts
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.verdicts import EXIT_CODES

# The lines that are read stand first, and the path may lead to a large file that is none of ours.
MAX_BEFORE = 1 << 20
_EOF = "# EOF\n"
"""The last line, which OpenMetrics demands; the textfile collector reads it as a comment."""
_Sample = tuple[Mapping[str, str], float | int]


@dataclass(frozen=True, slots=True)
class Before:
    """Contents of the previous run's file: a failed run keeps its labels and the time of the last success."""

    names: dict[str, str] = field(default_factory=dict)
    last_success_s: float | None = None
    limits: int | None = None
    """Number of restrictions of the last check that came to a verdict; None: not known."""
    limits_checksum: int | None = None
    """Tells them from as many others."""

    def after(self, outcome: Outcome, ended_ms: int) -> Before:
        """Return what is known after one more check.

        A success is kept only for the same clusters and peer, and none of a check of less, or of something else.
        """
        names, limits = names_of(outcome), "\n".join(outcome.limits)
        # A path among them may hold lone surrogates (PEP 383).
        crc32 = zlib.crc32(limits.encode(errors="replace"))
        kept_s = self.last_success_s if (self.names, self.limits_checksum) == (names, crc32) else None
        success_s = ended_ms / 1000 if outcome.exit_code == 0 else kept_s
        return Before(names, success_s, len(outcome.limits), crc32)


def before(path: str | os.PathLike[str]) -> Before:
    """Read the previous run's FILE.prom; one that is absent or not ours counts as empty."""
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read(MAX_BEFORE)
    except (OSError, UnicodeDecodeError):
        return Before()
    labels = re.search(r"^status_tool_up{(.*)} [01]$", text, re.MULTILINE)
    # Python writes times and checksums without an exponent.
    success, limits, crc32 = (
        re.search(rf"^status_tool_{name}{{.*}} ([0-9.]+)$", text, re.MULTILINE)
        for name in ("last_success_timestamp_seconds", "limits", "limits_checksum")
    )
    pairs = re.findall(r'(master|slave|peer)="((?:[^"\\]|\\.)*)"', labels[1]) if labels else []
    names = {name: re.sub(r"\\(.)", r"\1", value) for name, value in pairs}
    numbers = (int(float(found[1])) if found else None for found in (limits, crc32))
    return Before(names, float(success[1]) if success else None, *numbers)


def check_metrics(
    outcome: Outcome,
    run_ms: int | None = None,
    duration_s: float | None = None,
    last: Before | None = None,
    points: Mapping[str, int | None] | None = None,
) -> Iterator[str]:
    """Yield the lines of a check: one gauge per fact, each labelled with master, slave and peer.

    `run_ms` is when the check ended (epoch ms; default: now), `duration_s` how long it took. `points` are the recovery
    points of a slave that has asked for them, as in `point_metrics`.
    """
    ended_ms = int(time.time() * 1000) if run_ms is None else run_ms
    known = (last or Before()).after(outcome, ended_ms)
    names = known.names
    yield from _run(known, 1, ended_ms, duration_s)
    yield from _value("exit_code", "Exit code of the last check.", outcome.exit_code, names)
    meaning = "Verdict of a half: 0 complete, 1 not complete, 3 could not be verified."
    yield from _gauge("verdict", meaning, _verdicts(outcome), names)
    if outcome.hbase is not None:
        yield from _gauge("regions", "Regions by status.", _by_status(region_counts(outcome)), names)
        lag_s = _seconds(outcome.hbase.worst_lag_ms)
        yield from _value("worst_lag_seconds", "How far the slowest region is behind.", lag_s, names)
        meaning = "Write time of the oldest missing entry that later entries have overtaken."
        hole_s = _seconds(outcome.overview.oldest_hole_ms)
        yield from _value("oldest_hole_timestamp_seconds", meaning, hole_s, names)
    meaning = "What was left to ship in the peer's queues when the master's status was written."
    yield from _value("queued_bytes", meaning, outcome.queued_bytes, names)
    if outcome.hdfs is not None:
        yield from _gauge("files", "Files by status.", _by_status(file_counts(outcome)), names)
    meaning = "Everything written before this is in scope."
    yield from _value("cut_timestamp_seconds", meaning, outcome.cut_ms / 1000, names)
    if points:
        yield from _points(names, points, ended_ms / 1000)
    yield _EOF


def failure_metrics(last: Before, run_ms: int | None = None, duration_s: float | None = None) -> Iterator[str]:
    """Yield the lines of a run that failed: `up` 0 under the labels of the previous run."""
    # Each series has all three labels, even if no run has come to a verdict yet.
    names = {name: last.names.get(name, "") for name in ("master", "slave", "peer")}
    yield from _run(replace(last, names=names), 0, int(time.time() * 1000) if run_ms is None else run_ms, duration_s)
    yield _EOF


def _run(known: Before, up: int, ended_ms: int, duration_s: float | None) -> Iterator[str]:
    names = known.names
    yield from _value("up", "Whether the last run came to a verdict: 0 after an error (exit code 2).", up, names)
    meaning = "When the last run ended, with or without a verdict."
    yield from _value("last_run_timestamp_seconds", meaning, ended_ms / 1000, names)
    meaning = "When a run last ended with the verdict complete."
    yield from _value("last_success_timestamp_seconds", meaning, known.last_success_s, names)
    yield from _value("run_duration_seconds", "How long the last run took.", duration_s, names)
    meaning = "How many restrictions the check names, such as --table: no half is complete beyond them."
    yield from _value("limits", meaning, known.limits, names)
    meaning = "CRC-32 of these restrictions: another number stands for other ones."
    yield from _value("limits_checksum", meaning, known.limits_checksum, names)


def published_metrics(is_up: bool, cut_ms: int | None, size: int | None, took_s: float) -> Iterator[str]:
    """Yield the metrics of a publisher after a round: its own clock, and the newest file that it has published."""
    yield from _value("publish_up", "Whether the last round of publish ended without an error.", int(is_up), {})
    yield from _value("publish_round_timestamp_seconds", "When the last round of publish ended.", time.time(), {})
    yield from _value("publish_round_seconds", "How long the last round of publish took.", took_s, {})
    yield from _value("published_cut_timestamp_seconds", "The cut of the newest file published.", _seconds(cut_ms), {})
    yield from _value("published_bytes", "The size of the newest file published.", size, {})
    yield _EOF


def queue_metrics(cluster_id: str, read_ms: int, peers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the metrics of a master's queues, by the peers of the document of `status-tool queues`.

    A peer whose queues are drained has no oldest WAL.
    """
    names, peers = {"master": cluster_id}, list(peers)

    def by_peer(key: str) -> list[_Sample]:
        return [({"peer": peer["id"]}, peer[key]) for peer in peers if peer[key] is not None]

    yield from _value("queues_read_timestamp_seconds", "When the queues were read.", read_ms / 1000, names)
    yield from _gauge("queue_wals", "WALs that the queues of a peer hold.", by_peer("wals"), names)
    yield from _gauge("queue_left_bytes", "Bytes of WALs still to be shipped to a peer.", by_peer("left_bytes"), names)
    oldest = [(labels, opened_ms / 1000) for labels, opened_ms in by_peer("oldest_ms")]
    yield from _gauge("queue_oldest_wal_timestamp_seconds", "When a peer's oldest WAL was opened.", oldest, names)
    yield _EOF


def point_metrics(names: Mapping[str, str], points: Mapping[str, int | None], limits: int) -> Iterator[str]:
    """Yield the metrics of recovery points by table; the name of the whole is empty, and those without one have none.

    `names` are the ids of master and slave, `limits` is the number of restrictions of the whole.
    """
    yield from _points(names, points, time.time())
    meaning = "How many restrictions recovery-point names, such as --table: the point of the whole is of no more."
    yield from _value("recovery_point_limits", meaning, limits, names)
    yield _EOF


def _points(names: Mapping[str, str], points: Mapping[str, int | None], asked_s: float) -> Iterator[str]:
    known: list[_Sample] = [({"table": name}, at / 1000) for name, at in points.items() if at is not None]
    meaning = "Everything acknowledged on the master before this is proven to be on the slave."
    yield from _gauge("recovery_point_timestamp_seconds", meaning, known, names)
    yield from _value("recovery_point_asked_timestamp_seconds", "When this was last asked for.", asked_s, names)


def names_of(outcome: Outcome) -> dict[str, str]:
    """Return the labels of a check's metrics."""
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


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _value(name: str, meaning: str, value: float | None, names: Mapping[str, str]) -> Iterator[str]:
    """Yield a gauge of one sample; nothing for None."""
    return _gauge(name, meaning, [] if value is None else [({}, value)], names)


def _gauge(name: str, meaning: str, samples: Sequence[_Sample], names: Mapping[str, str]) -> Iterator[str]:
    if not samples:
        return
    yield f"# HELP status_tool_{name} {meaning}\n# TYPE status_tool_{name} gauge\n"
    for labels, value in samples:
        text = ",".join(f'{label}="{_label(content)}"' for label, content in {**names, **labels}.items())
        yield f"status_tool_{name}{{{text}}} {value}\n"


def _label(value: str) -> str:
    # Control characters first: their escapes hold backslashes, which the format wants doubled.
    return safe(value).replace("\\", "\\\\").replace('"', '\\"')
