"""One side of a live cluster, written to a status file or dumped."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from status_tool import atomic
from status_tool.atomic import atomic_write, make_folder
from status_tool.clients.config import HDFS_PATHS_KEY, Settings
from status_tool.clients.delegation_tokens import no_token_left
from status_tool.clients.hdfs_native import no_process_left
from status_tool.clients.webhdfs import WebHdfs
from status_tool.digests.counted import rows_shown
from status_tool.errors import Interrupted, StatusToolError, UsageError
from status_tool.gather.hdfs_side import NAMENODE_INFO
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import NO_ROWS, PackedRows, Request, Snapshot, Together, snapshot, spooled_rows
from status_tool.printable import counted
from status_tool.report.progress import Progress
from status_tool.rules.sides import UNKNOWN_POOL
from status_tool.rules.tables import AGE_COLUMNS
from status_tool.runs.file_digests import digest_rows, doubtful_tables, shipped_tables
from status_tool.runs.question import SideFacts
from status_tool.runs.sampling import Taken, sampled
from status_tool.sources.arrivals import WitnessSource
from status_tool.sources.codec import batches
from status_tool.sources.hdfs_files import HdfsSource, endpoint_of
from status_tool.sources.interface import Source
from status_tool.sources.journal import Journal, forget, opened, refuse_in_use, remove
from status_tool.sources.local import LocalSource
from status_tool.sources.state_table import StateTableSource, now_ms
from status_tool.status_file.legacy import open_writer
from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.header import MASTER, Header
from status_tool.vocabulary.names import is_legacy_name, journal_path
from status_tool.vocabulary.schema import KINDS, Row
from status_tool.vocabulary.selection import plain_folder

Say = Callable[[str], None]


@dataclass(frozen=True)
class Written:
    """The result of a writing run."""

    header: Header
    rows: dict[str, int]
    unsettled: tuple[str, ...]
    unsampled: str
    """Why it holds no samples of rows although they were to be taken; empty if it holds some."""


def write_side(
    settings: Settings,
    request: Request,
    path: Path,
    say: Say,
    key: SignKey | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write one side of a live cluster to a status file, signed with `key`; all or nothing.

    `progress` shows streams and files as they are read, of as many as the file held that is replaced.
    """
    before = rows_before(path) if progress is not None else {}
    with no_process_left(), no_token_left(), journaling(path, request) as (request, journal), ExitStack() as running:
        # Before the barrier: a write that a sample shows is in a head by then, by which its table is not at rest.
        taken = _samples(settings, request, path, say)
        gathered = snapshot(settings, request, say)
        # Only the snapshot tells which HDFS this is.
        if journal is not None and (forgotten := journal.keep_only(_journal_owner(gathered))):
            gathered = _with_notice(gathered, _of_another_hdfs(forgotten, path))
        # After the barrier: digests have to show everything that was acknowledged by the cut.
        digested = running.enter_context(_digesting_all(settings, request, gathered, say, progress or Progress()))
        later, facts = 0, list[Row]()
        with ExitStack() as shown, open_writer(path, gathered.header, key) as writer:
            say("reading streams and files" if request.hdfs else "reading streams")
            count = shown.enter_context(counting(progress or Progress(), request, before))
            for batch in read_all(source_of(gathered)):
                writer.write(batch)
                count(batch)
                later += streams_written_later(batch, gathered.header.shutdown_ms)
                if journal is not None:
                    journal.add(_of_hdfs(batch, gathered))
                if request.rows == "doubtful":
                    facts += batch.filter(pc.equal(batch.column("kind"), "fact")).select(["table", "state"]).to_pylist()
            # After the last batch: a fact of any region may put a table in doubt.
            if request.rows == "doubtful":
                side, regions = SideFacts(gathered.header, gathered.rows), gathered.regions.rows(*AGE_COLUMNS.names)
                tables = doubtful_tables(side, facts, regions, request.only)
                counted = shown.enter_context(rows_shown(progress or Progress()))
                for batch in batches(digest_rows(settings, tables, gathered.rows, say, counted)):
                    writer.write(batch)
            for batch in digested().read(0):
                writer.write(batch)
            for batch in batches(taken.rows):
                writer.write(batch)
            # After the last row: `ReadSide.follows` of `paths` goes by this time.
            writer.header = dataclasses.replace(writer.header, read_until_ms=now_ms())
            if later:
                gathered = _with_later_writes_notice(gathered, later)
    # Once FILE is in its place: it has what the witnesses drop.
    prune_witnesses(gathered, say)
    return Written(gathered.header, writer.counts, gathered.unsettled, _unsampled(request, taken))


def prune_witnesses(gathered: Snapshot, say: Say) -> None:
    """Let witnesses prune what FILE has, if that is all tables, and they lack nothing of it that may come later."""
    header = gathered.header
    if header.unwitnessed or header.tables or header.namespaces or header.barrier_issued_ms is None:
        return
    for source in gathered.sources:
        if isinstance(source, WitnessSource):
            say("letting the witnesses prune")
            source.prune(header.barrier_issued_ms)


def _samples(settings: Settings, request: Request, path: Path, say: Say) -> Taken:
    if not _is_sampled(request):
        return Taken()
    if is_legacy_name(path):
        return Taken(problem="the original's JSON has no place for them")
    say("sampling rows")
    return sampled(settings, request.only, request.sample_s)


def _is_sampled(request: Request) -> bool:
    return request.side == MASTER and request.hbase and request.sample_s > 0


def _unsampled(request: Request, taken: Taken) -> str:
    """Return why there are no samples although they were to be taken; empty if there are."""
    if taken.rows or not _is_sampled(request):
        return ""
    late = f"no region server has digested one within {request.sample_s:g} s, or no table is replicated"
    return taken.problem or late


@contextmanager
def _digesting_all(
    settings: Settings, request: Request, gathered: Snapshot, say: Say, progress: Progress
) -> Iterator[Callable[[], PackedRows]]:
    """Digest the rows of all tables meanwhile, if the request is about all. Call the yielded function for the rows.

    After the files, if there are any: reading them may take hours, and digests with a TTL are void after minutes.
    """
    if request.rows != "all":
        yield lambda: NO_ROWS
        return
    tables, stop = shipped_tables(SideFacts(gathered.header, gathered.rows), request.only), threading.Event()

    def digested() -> PackedRows:
        with rows_shown(progress) as counted:
            return PackedRows.of(digest_rows(settings, tables, gathered.rows, say, counted, stop))

    with ThreadPoolExecutor(1, "row-digests") as pool:
        begun = None if request.hdfs else pool.submit(digested)
        try:
            yield digested if begun is None else begun.result
        finally:
            # Before the pool ends: it waits for its thread, which ends by this.
            stop.set()


UNASKED_FILES = 10_000
"""Number of files and folders that are read within seconds: where HDFS has no more, nobody needs to be asked."""


def unasked(settings: Settings, request: Request) -> str | None:
    """Return the notice for a scope that nothing names; None if the files to read are named.

    Raises `UsageError` if that would be more than `UNASKED_FILES`, by the NameNode's own counters.
    """
    if request.side != MASTER or not request.hdfs or request.hdfs_paths or settings.hdfs_paths:
        return None
    files, text = _whole_hdfs(settings)
    if files <= UNASKED_FILES:
        return f"no HDFS paths are named, so all of it is read: {text}"
    raise UsageError(
        f"this would read every file of HDFS ({text}): name paths by -f FILE, or configure them "
        f"({HDFS_PATHS_KEY} in a site file, `paths` in status-tool.toml), or give --all-files; --only hbase needs none"
    )


def _whole_hdfs(settings: Settings) -> tuple[int, str]:
    """Return the number of files and folders that the NameNode knows without counting; 0 if it does not tell."""
    try:
        endpoint = endpoint_of(settings)
        bean = next(WebHdfs(endpoint, patience_s=0).beans(NAMENODE_INFO), {})
    except StatusToolError:
        return 0, "/"  # the run itself will say what is wrong
    files, used = bean.get("TotalFiles"), bean.get("Used")
    if not (isinstance(files, int) and isinstance(used, int)):
        return 0, f"/ at {endpoint}"
    return files, f"/ at {endpoint}, {files} files and folders, {used} bytes with replicas"


def rows_before(path: Path) -> Mapping[str, int]:
    """Return the number of rows of each kind in a status file; empty if there is no file, or it cannot be read."""
    try:
        with open_status(path) as older:
            return older.counts
    except StatusToolError:
        return {}


@contextmanager
def counting(
    progress: Progress, request: Request, before: Mapping[str, int]
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Count streams and files meanwhile, each with its own rate and end. Call the yielded function with each batch."""
    kinds = {"stream" if request.side == MASTER else "segment": request.hbase, "file": request.hdfs}
    with ExitStack() as phases:
        counts = {
            kind: phases.enter_context(progress.phase(f"{kind}s", before.get(kind) or None))
            for kind, is_read in kinds.items()
            if is_read
        }

        def count(batch: pa.RecordBatch) -> None:
            for found in pc.value_counts(batch.column("kind")).to_pylist():
                if found["values"] in counts:
                    counts[found["values"]].advance(found["counts"])

        yield count


@contextmanager
def journaling(path: Path, request: Request) -> Iterator[tuple[Request, Journal | None]]:
    """Keep checksums beside FILE until it is complete. With `--resume`, uses those of an interrupted run.

    A run that ends early reports what is kept: by `Interrupted` for Ctrl-C or SIGTERM, else in its own error. Once FILE
    is in its place, whole, nothing is kept.
    """
    where = journal_path(path)
    if not request.hdfs:
        yield request, None
        return
    # Before `remove`, which would take the file from a run that writes to it.
    refuse_in_use(where)
    if request.files.journal is None:
        remove(where)
    journal = opened(str(where))
    files = dataclasses.replace(request.files, journal=str(where) if len(journal) else None)
    # `watch` and `publish` write the same path in each round: only what this one puts there counts.
    before = len(atomic.written)
    try:
        yield dataclasses.replace(request, files=files), journal
    except BaseException as error:
        kept = len(journal)
        # Once FILE is in its place, an interruption must not say that it was not written.
        if not kept or os.fspath(path) in atomic.written[before:]:
            remove(where)
            raise
        journal.close()
        forget(where)
        left = (
            f"the checksums of {counted(kept, 'file')} stay in {where}: the same command with --resume continues "
            "from there"
        )
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(f"interrupted; FILE was not written, but {left}") from None
        if isinstance(error, StatusToolError):
            # Of the same type, by which the exit code is chosen.
            raise type(error)(f"{error}; {left}") from None
        raise
    remove(where)


def _journal_owner(gathered: Snapshot) -> str:
    """Return the side and its HDFS: by the block pool, which is the same for every client and NameNode, if known."""
    endpoints = (str(source.endpoint) for source in gathered.sources if isinstance(source, HdfsSource))
    header = gathered.header
    known = "" if UNKNOWN_POOL in header.hdfs_pool_id else header.hdfs_pool_id
    return f"{header.side} {known or next(endpoints, '')}"


def _of_hdfs(batch: pa.RecordBatch, gathered: Snapshot) -> pa.RecordBatch:
    """Return the rows without paths of local folders, by which a file of HDFS would take a local file's checksum."""
    folders = {plain_folder(r) for source in gathered.sources if isinstance(source, LocalSource) for r in source.roots}
    for folder in folders:
        below = pc.starts_with(batch["path"], folder.rstrip("/") + "/")
        is_local = pc.fill_null(pc.or_(below, pc.equal(batch["path"], folder)), False)
        batch = batch.filter(pc.invert(is_local))
    return batch


def _of_another_hdfs(forgotten: int, path: Path) -> str:
    return (
        f"the checksums of {counted(forgotten, 'file')} in {journal_path(path)} were not used: --resume found them to "
        "be of another HDFS, or of the other side"
    )


def streams_written_later(batch: pa.RecordBatch, shutdown_ms: int | None) -> int:
    """Return the number of the batch's streams that were written to after the shutdown time."""
    if shutdown_ms is None:
        return 0
    later = pc.and_(pc.equal(batch.column("kind"), "stream"), pc.greater(batch.column("write_ms"), shutdown_ms))
    return pc.sum(later).as_py() or 0


def _with_later_writes_notice(gathered: Snapshot, streams: int) -> Snapshot:
    """Add a notice about an outdated shutdown time at once. Only the check knows which tables are in scope."""
    note = (
        f"{counted(streams, 'stream')} written to after the shutdown time: these writes are not in scope. "
        "If the application has run since, record the shutdown time again"
    )
    return _with_notice(gathered, note)


def _with_notice(gathered: Snapshot, note: str) -> Snapshot:
    header = dataclasses.replace(gathered.header, notices=(*gathered.header.notices, note))
    return dataclasses.replace(gathered, header=header)


def source_of(gathered: Snapshot, *more: Source) -> Source:
    """Return a source of all rows of a snapshot and of further sources."""
    return Together((PackedRows.of(gathered.rows), gathered.regions, *gathered.sources, *more))


def dump_file(path: Path, debug_dir: Path) -> None:
    """Write a status file's rows as JSON lines, one file per kind. Raises `OutputError`."""
    make_folder(debug_dir)
    with open_status(path, witnessed=True) as written, ExitStack() as files:
        # Kinds without a row have a file, too: that of an older dump would pass for one of this.
        streams = {kind: files.enter_context(atomic_write(debug_dir / f"{kind}.jsonl")) for kind in KINDS}
        for row in _json_rows(written.rows()):
            streams[row["kind"]].write(json.dumps(row) + "\n")


def _json_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for row in batch.to_pylist():
            yield {k: v.hex() if isinstance(v, bytes) else v for k, v in row.items() if v is not None}


def dump_live(settings: Settings, request: Request, out: TextIO, say: Say) -> None:
    """Print this cluster's own state, written and replicated, as JSON lines."""
    with no_process_left(), no_token_left():
        gathered = snapshot(settings, request, say)
        written = [source for source in gathered.sources if isinstance(source, StateTableSource)]
        # Servers that have flushed what they wrote may have what they applied in files alone. These come before the
        # table, into which a tracker puts their rows.
        spooled = spooled_rows(settings, gathered.header.cluster_id) if written else ()
        applied = [dataclasses.replace(source, types="su", spooled=spooled) for source in written]
        for row in _json_rows(read_all(source_of(gathered, *applied))):
            out.write(json.dumps(row) + "\n")
