"""Work of `status-tool publish` once its options fit together: rounds, one line each, and their metrics.

Apart from `cli.publish` for the reason of `cli.running`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from status_tool.atomic import PUBLIC
from status_tool.cli.options import settings_of
from status_tool.cli.repeated import as_service, print_round
from status_tool.cli.run import asked_of
from status_tool.cli.run_options import OPTION_GROUPS, OPTIONS, Half
from status_tool.cli.signals import received
from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import Peer, ZooKeeper
from status_tool.errors import (
    EXIT_COMPLETE,
    EXIT_ERROR,
    ConfigurationError,
    Interrupted,
    StatusToolError,
    UsageError,
)
from status_tool.printable import iso, safe
from status_tool.published.carriers import carried
from status_tool.published.layout import Closing
from status_tool.published.publisher import Turns, put_file
from status_tool.published.table import PublishedTable, SentParts
from status_tool.report.metrics import published_metrics
from status_tool.report.progress import make_progress
from status_tool.report.summary import write_report
from status_tool.runs.write import unasked, write_side
from status_tool.watch.rounds import Rhythm, to_second

PEERS_S = 600.0
"""Time that what was seen of the clusters of the same peers counts."""
MINUTE_S = 60.0
_DECISIVE = ("What counts", "HBase", "HDFS files", "Status files")
"""Options that decide what a file says; others may differ from host to host."""


@dataclass(frozen=True)
class PublishService:
    """Settings of the publisher."""

    interval_s: float
    files_every_min: float | None = None
    rounds: int | None = None
    metrics: Path | None = None


@dataclass(frozen=True)
class PublishRound:
    """Result of one round."""

    started_ms: int = 0
    took_s: float = 0.0
    closing: Closing | None = None
    sent: int = 0
    """Bytes that were put into the table."""
    other: str = ""
    """Who claimed the round instead."""
    error: str = ""
    notices: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """The contract's, as far as it concerns a round."""
        return EXIT_ERROR if self.error else EXIT_COMPLETE

    @property
    def line(self) -> str:
        """Return the round in one line."""
        at = to_second(self.started_ms)
        took = f"took {self.took_s:.1f} s"
        if self.closing is None:
            done = f"NOT published: {self.error}" if self.error else f"left out: {self.other} has claimed the round"
            return safe(f"{at} {done}; {took}")
        what = "" if self.closing.half == "hbase" else " with HDFS files"
        size = f"{self.closing.size} bytes, {self.sent} of them sent"
        noted = "".join(f"; {notice}" for notice in self.notices)
        return safe(f"{at} published the cut {iso(self.closing.cut_ms)}{what}: {size}; {took}{noted}")

    def document(self, number: int) -> dict[str, Any]:
        """Return the round for `--json`."""
        closing = self.closing
        return {
            "round": number,
            "started_ms": self.started_ms,
            "took_s": round(self.took_s, 3),
            "exit_code": self.exit_code,
            "published": closing is not None,
            "cut_ms": None if closing is None else closing.cut_ms,
            "bytes": None if closing is None else closing.size,
            "sent_bytes": None if closing is None else self.sent,
            "cells": None if closing is None else len(closing.parts),
            "half": None if closing is None else closing.half,
            "left_out_for": self.other or None,
            "error": self.error or None,
            "notices": list(self.notices),
        }


def keep_publishing(options: dict[str, Any], service: PublishService) -> int:
    """Publish until all rounds are done, as `run -m` with these options; returns the exit code of the last one."""
    code = EXIT_ERROR
    with as_service() as folder:
        publisher = _Publisher(options, service, folder)
        for number, done in enumerate(publisher.rounds(), 1):
            code = done.exit_code
            print_round(done.document(number), done.line, as_json=options["as_json"])
    return code


def published_content(options: Mapping[str, Any], *, with_files: bool) -> str:
    """Return what a publisher with these options publishes, in words that are equal if it is."""
    decisive = (name for heading in _DECISIVE for name in OPTION_GROUPS[heading])
    asked = {name: options[name] for name in decisive if options.get(name)}
    return json.dumps({**asked, "with_files": with_files}, default=str, sort_keys=True)


class _Publisher:
    """Runs the rounds."""

    def __init__(self, options: dict[str, Any], service: PublishService, folder: Path) -> None:
        self._options = options
        self._service = service
        self._file = folder / "master.status"
        self._files_at: float | None = None
        self._peers: list[Peer] | None = None
        """Those whose clusters were looked at, at `_peers_at`."""
        self._peers_at = 0.0
        self._last: Closing | None = None
        self._sent = SentParts()

    @cached_property
    def _settings(self) -> Settings:
        # In the first round, whose error shows in the metrics: those of an earlier publisher would say that it is up.
        return settings_of(self._options)

    @cached_property
    def _table(self) -> PublishedTable:
        return PublishedTable(self._settings.thrift(), self._settings.status_table)

    @cached_property
    def _turns(self) -> Turns:
        with ZooKeeper(self._settings.zookeeper()) as zookeeper:
            cluster_id = zookeeper.cluster_id()
        what = published_content(self._options, with_files=self._service.files_every_min is not None)
        return Turns(self._table, cluster_id, int(self._service.interval_s * 1000), what)

    def rounds(self) -> Iterator[PublishRound]:
        """Yield the rounds. Wrong options or settings end the first one by their error."""
        rhythm = Rhythm(self._service.interval_s, self._service.rounds)
        for number in count(1):
            done = self._round(is_first=number == 1)
            self._last = done.closing or self._last
            self._write_metrics(done)
            yield done
            if number == rhythm.rounds:
                return
            time.sleep(rhythm.pause_s(done.took_s))

    def _round(self, *, is_first: bool) -> PublishRound:
        started_ms, began = int(time.time() * 1000), time.monotonic()
        try:
            done = self._publish()
        except Exception as failed:
            # An interrupted round may end with an error of its own, which does not count.
            if received or isinstance(failed, Interrupted):
                raise KeyboardInterrupt from None
            # A library's error may say little without its type. Its lines are joined, as a round has one.
            kind = "" if isinstance(failed, StatusToolError) else f"{type(failed).__name__}: "
            done = PublishRound(took_s=time.monotonic() - began, error=kind + " ".join(str(failed).split()))
            if is_first and isinstance(failed, UsageError | ConfigurationError):
                # Else those of an earlier publisher would say that it is up.
                self._write_metrics(done)
                raise
        return replace(done, started_ms=started_ms, took_s=time.monotonic() - began)

    def _publish(self) -> PublishRound:
        self._table.require()
        # Before the claim: while it stands, no other publisher takes the round.
        notices = self._carried()
        if (other := self._turns.take()) is not None:
            return PublishRound(other=other, notices=notices)
        try:
            closing, sent = self._write_and_put()
        except Exception:
            # A publisher whose every round fails would silence the others by its claims.
            with suppress(StatusToolError):
                self._turns.hand_back()
            raise
        return PublishRound(closing=closing, sent=sent, notices=notices)

    def _write_and_put(self) -> tuple[Closing, int]:
        has_files = self._wants_files()
        parameters = {**self._options, "output": self._file}
        if not has_files:
            # `--only hbase` refuses what is about the other half.
            parameters |= {name: option.unset for name, option in OPTIONS.items() if option.half == "hdfs"}
            parameters["only"] = Half.HBASE
        # By default `run -m` has region servers digest rows for seconds, which each round would repeat.
        if parameters["sample"] is None:
            parameters["sample"] = "off"
        asked = asked_of(parameters)
        request = asked.request()
        unasked(asked.settings, request)
        with make_progress() as progress:
            write_side(asked.settings, request, self._file, progress.step, asked.key, progress)
        interval_ms = int(self._service.interval_s * 1000)
        closing, sent = put_file(self._table, self._file, interval_ms, self._sent, self._turns.number)
        self._file.unlink(missing_ok=True)
        if has_files:
            # After a failure the next round has to send the files, so this comes last.
            self._files_at = time.monotonic()
        return closing, sent

    def _wants_files(self) -> bool:
        every_min = self._service.files_every_min
        if every_min is None:
            return False
        return self._files_at is None or time.monotonic() - self._files_at >= every_min * MINUTE_S

    def _carried(self) -> tuple[str, ...]:
        """Return notices about the peers, when they were looked at again.

        Raises `ConfigurationError` if no peer ships the table, or where the cluster of one that does lacks it.
        """
        with ZooKeeper(self._settings.zookeeper()) as zookeeper:
            known = zookeeper.peers()
            # A peer that is new is looked at before the next file, which would stop replication to a cluster without
            # the table. The clusters of known ones are not: one that does not answer costs `PEER_TIMEOUT_S`.
            if known == self._peers and time.monotonic() - self._peers_at < PEERS_S:
                return ()
            peers = list(carried(known, zookeeper.endpoint, self._table.name))
        blocked = [one.problem for one in peers if one.is_there is False and one.problem]
        if blocked:
            raise ConfigurationError(blocked[0])
        shipping = [one for one in peers if one.is_shipped]
        if not shipping:
            problems = [one.problem for one in peers if one.problem] or [
                "no enabled replication peer: a published file would not reach any cluster; add one, or enable it"
            ]
            raise ConfigurationError(problems[0])
        # Not before: a round that was refused has to look at these peers again.
        self._peers, self._peers_at = known, time.monotonic()
        unseen = [one.peer for one in shipping if one.is_there is None]
        notices = [one.problem for one in peers if one.problem]
        if unseen:
            notices.append(
                f"whether the cluster of peer {', '.join(unseen)} has the table {self._table.name} cannot be seen from "
                "here: without it replication to it stops"
            )
        return tuple(notices)

    def _write_metrics(self, done: PublishRound) -> None:
        path = self._service.metrics
        # A round that a signal has ended has not failed.
        if path is None or received:
            return
        last = self._last
        cut_ms, size = (None, None) if last is None else (last.cut_ms, last.size)
        with suppress(StatusToolError):
            write_report(path, published_metrics(not done.error, cut_ms, size, done.took_s), PUBLIC)
