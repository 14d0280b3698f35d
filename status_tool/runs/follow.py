"""`run -i FILE --follow`: the check in rounds, with the master's side read again each time.

Every round is a whole `run -m` and `run -i`: a fresh barrier on the master, its rows to a file, then the slave's
barrier and rows, then the comparison. The order matters, as with FILE: the slave is read after the
master. Everything written until then is in scope, FILE's streams included, regardless of any shutdown time.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from status_tool.clients.config import Settings
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.errors import ConnectionFailed, StatusFileError, UsageError
from status_tool.gather.measured_queues import queue_rows
from status_tool.gather.snapshot import Request
from status_tool.printable import iso
from status_tool.report.progress import Progress
from status_tool.rules.queue_proofs import left_bytes
from status_tool.runs.check import Check
from status_tool.runs.live_rounds import LiveRounds, Look, Master
from status_tool.runs.master_side import MasterSide
from status_tool.runs.question import HDFS_NOTICE
from status_tool.runs.refusals import known_header, refuse_deep
from status_tool.runs.slave_side import scratch_of
from status_tool.runs.write import write_side
from status_tool.status_file.reader import StatusFile, open_status
from status_tool.vocabulary.header import MASTER, Header
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.verdicts import Evidence, Status

MASTER_WAIT_S = 10.0
"""Time that a round waits for the master's servers to echo the barrier; the others have until the next round."""


class LiveMaster(Master):
    """The master, read again in each round.

    Without a Thrift server in its settings only its queues are read, to be shown: then FILE is compared.
    """

    def __init__(
        self, file: MasterSide, settings: Settings, check: Check, folder: Path, shown: ShownRounds, files: ExitStack
    ) -> None:
        """Prepare the rounds. `files` closes a round's files when the next one starts; `folder` must exist as long."""
        super().__init__(file)
        self._settings, self._check, self._folder, self._shown, self._files = settings, check, folder, shown, files

    def look(self) -> Look:
        """Run a whole `run -m` into a file of its own."""
        # The file of the round before has been compared. An `ExitStack` can be filled again after `close`.
        self._files.close()
        base = self.file
        with ZooKeeper(self._settings.zookeeper()) as zookeeper:
            # Before `write_side`, which puts a barrier into whatever cluster this is.
            refuse_another(zookeeper.cluster_id(), base.header)
            if not self._settings.knows_thrift:
                rows, _ = queue_rows(self._settings, zookeeper)
                return Look(base, tuple(_details(rows)))
        path, scope = self._folder / "master.status", self._check.scope
        chosen = (scope.tables, scope.namespaces)
        recorded = (frozenset(base.header.tables), frozenset(base.header.namespaces))
        request = Request(
            side=MASTER,
            wait_s=MASTER_WAIT_S,
            only=TableFilter(*(chosen if any(chosen) else recorded)),
            hdfs=False,
            following=True,
        )
        written = write_side(self._settings, request, path, self._shown.say)
        # Without a key: this process has just written the file, into a folder of its own.
        fresh = self._files.enter_context(open_status(path, require_side=MASTER))
        queues = tuple(_details(fresh.rows_of("queue")))
        return Look(MasterSide(fresh, with_files_of(written.header, base.header), base.file), queues, left_open=True)

    def is_decided(self, outcome: Outcome) -> bool:
        """Return False: the next round has newer queues."""
        return False

    def round_done(self, outcome: Outcome, look: Look, left_s: float) -> None:
        """Show what the round has found."""
        self._shown.round(outcome, left_bytes(look.queues, outcome.peer_id))

    def lost(self, error: ConnectionFailed) -> None:
        """Do nothing: the next round tries again."""
        self._shown.note(f"{error}; trying again")


class ShownRounds:
    """Display of the rounds: a line for each that differs from the one before; bytes shipped, with their rate."""

    def __init__(self, progress: Progress, stack: ExitStack) -> None:
        """Begin to count the bytes; `stack` ends it."""
        self._progress = progress
        self._shipped = stack.enter_context(progress.phase("bytes of the backlog shipped"))
        self._most = 0
        self._last = ""

    def say(self, step: str) -> None:
        """Show the current step."""
        self._progress.step(step)

    def note(self, text: str) -> None:
        """Show a line that stays."""
        self._progress.note(text)

    def round(self, outcome: Outcome, left: int | None) -> None:
        """Show what a round has found; `left` is in bytes, None: unknown."""
        counts = outcome.hbase.regions if outcome.hbase else {}
        to_go = {status: count for status, count in counts.items() if count and status is not Status.COMPLETE}
        kinds = f" ({', '.join(f'{count} {status}' for status, count in to_go.items())})" if to_go else ""
        regions = f"regions to go {sum(to_go.values())} of {sum(counts.values())}{kinds}"
        found = f"verdict {outcome.verdict}, {regions}, bytes to go {'unknown' if left is None else left}"
        if found != self._last:
            self._progress.note(f"{found}, cut {iso(outcome.cut_ms)}")
        self._last = found
        if left is not None:
            # What is written meanwhile makes the whole larger.
            self._most = max(self._most, left)
            self._shipped.reach(self._most - left, self._most)


def follow(settings: Settings, master: Settings, check: Check, progress: Progress, limit_s: float | None) -> Outcome:
    """Check until complete, or until `limit_s` are over (None: no limit, Ctrl-C ends it); return the last outcome.

    `master` are the master's settings. Raises what `check_live` does; a master that stops answering after the first
    round is tried again in the next.
    """
    deadline = math.inf if limit_s is None else time.monotonic() + limit_s
    with ExitStack() as stack:
        file = stack.enter_context(open_status(check.status_file, require_side=MASTER, key=check.key))
        base = followed_side(file, check)
        scratch = stack.enter_context(scratch_of(check))
        files = stack.enter_context(ExitStack())
        shown = ShownRounds(progress, stack)
        live = LiveMaster(base, master, check, scratch.folder, shown, files)
        return LiveRounds(settings, check, live, deadline, shown.say, scratch).run()


def followed_side(file: StatusFile, check: Check) -> MasterSide:
    """Return FILE's side. Raises `UsageError` for a FILE, or a check, that --follow cannot refresh."""
    base = MasterSide(file, known_header(file, check))
    if base.file.is_json or base.header.evidence == Evidence.TIMESTAMPS:
        raise UsageError("--follow needs a status file with streams: write FILE with `run -m -o FILE`, not FILE.json")
    if base.header.half == "hdfs" or not check.scope.check_hbase:
        raise UsageError("--follow refreshes the HBase half, which is not checked here: leave --follow out")
    refuse_deep(file, check)
    return base


def refuse_another(cluster_id: str, file: Header) -> None:
    """Raise `StatusFileError` if the master is not the cluster that FILE is of."""
    if cluster_id != file.cluster_id:
        raise StatusFileError(
            f"FILE is of cluster {file.cluster_id}, but --master-conf or --master-zookeeper leads to {cluster_id}: "
            "name the cluster that FILE was written on"
        )


def with_files_of(fresh: Header, file: Header) -> Header:
    """Return a refreshed header with FILE's HDFS half: files are not listed again, but compared as in FILE.

    The cut is that of the other half, so that is told.
    """
    if file.half != "both":
        return fresh
    listed = (
        f"{HDFS_NOTICE}following: files are compared as FILE of {iso(file.created_ms)} has them. What the master has "
        "written to HDFS since then is not in scope, whatever the cut"
    )
    notices = tuple(dict.fromkeys((*fresh.notices, *file.notices, listed)))
    return dataclasses.replace(
        fresh,
        half="both",
        hdfs_paths=file.hdfs_paths,
        hdfs_absent=file.hdfs_absent,
        hdfs_left_out=file.hdfs_left_out,
        hdfs_excluded=file.hdfs_excluded,
        hdfs_cluster_id=file.hdfs_cluster_id,
        hdfs_pool_id=file.hdfs_pool_id,
        notices=notices,
    )


def _details(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    # The row without a name sums up all queues (`Measured.summary`).
    return (json.loads(row["detail"]) for row in rows if row.get("name") is not None)
