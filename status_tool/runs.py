"""The runs behind `status-tool run`: write a side, verify live or from files, dump."""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from status_tool.atomic import atomic_write
from status_tool.collect import (
    MASTER,
    SLAVE,
    SLAVE_SETTLE_S,
    FileOptions,
    Request,
    SmallRows,
    Snapshot,
    Together,
    apply_shutdown,
    snapshot,
)
from status_tool.config import Settings
from status_tool.errors import Interrupted, StatusFileError, StatusToolError, UsageError
from status_tool.evidence.in_force import shipped_since
from status_tool.evidence.links import Side, known_clusters
from status_tool.evidence.model import (
    BY_CHECK,
    BY_OPTION,
    RECORDED,
    Evidence,
    FileStatus,
    Header,
    Outcome,
    Scope,
    Verdict,
)
from status_tool.evidence.origins import iso
from status_tool.evidence.peers import (
    Choice,
    PeerFacts,
    choose_peer,
    filtered_tables,
    not_replicated,
    own_shipping,
    parse_peer,
    ships,
    withheld,
)
from status_tool.evidence.queues import QueueFacts, queue_facts
from status_tool.evidence.scoping import asked_filter
from status_tool.evidence.segments import latest
from status_tool.evidence.sides import cannot_report, same_hdfs
from status_tool.evidence.tables import local_families, replicated_families
from status_tool.modes import check_half, check_legacy
from status_tool.reading import read_all
from status_tool.sources.interface import Source
from status_tool.sources.journal import Journal, forget, journal_path, opened, remove
from status_tool.sources.namenode import HdfsEndpoint
from status_tool.sources.selection import PathMap, exclusion_regexes, glob_regex
from status_tool.sources.state_table import StateTableSource, TableFilter
from status_tool.sources.webhdfs import WebHdfsSource, hdfs_user
from status_tool.spark import source as spark_source
from status_tool.spark.cluster import read_status, runs_here
from status_tool.spark.debug import write_debug
from status_tool.spark.deep import with_crc
from status_tool.spark.hdfs import mapped_paths
from status_tool.spark.lists import FullList, write_lists
from status_tool.spark.overview import overview_of
from status_tool.spark.session import LOCAL_MASTER, spark_session, submitted
from status_tool.spark.verify import SMALL_BYTES
from status_tool.spark.verify import Check as Verification
from status_tool.status_file.legacy import open_writer
from status_tool.status_file.reader import StatusFile, open_status
from status_tool.status_file.schema import STATUS_SCHEMA
from status_tool.status_file.signature import SignKey

Say = Callable[[str], None]
Last = Callable[[Outcome], bool]
"""Whether an outcome ends the run: only then its overview and the complete lists are made."""
RECHECK_S = 2.0
NEAR_ROWS = 5_000
"""Up to so many rows of the slave are read by this process while Spark starts."""
LEGACY_ROOTS = 10_000


@dataclass(frozen=True)
class Check:
    """What `run -i` was asked."""

    status_file: Path
    scope: Scope
    slave_status: Path | None = None
    wait_s: float = 0.0
    shutdown_ms: int | None = None
    hdfs_paths: tuple[str, ...] = ()
    files: FileOptions = field(default_factory=FileOptions)
    deep: bool = False
    """Whether files that are otherwise incomparable are read; `files.deep` reads every file."""
    path_map: PathMap = field(default_factory=PathMap)
    debug_dir: Path | None = None
    given: frozenset[str] = frozenset()
    """Which options the command line gave, by parameter."""
    spark_master: str | None = None
    spark_conf: tuple[tuple[str, str], ...] = ()
    key: SignKey | None = None
    """Only status files that were signed with it are taken."""
    lists: tuple[FullList, ...] = ()
    """Where everything that differs, is missing or cannot be verified is written."""
    for_report: bool = False
    """Whether the overview is drawn: with the servers, and every region in its place."""


@dataclass(frozen=True)
class MasterSide:
    """What a check holds against the slave: FILE, or while following what has been read of the master since."""

    file: StatusFile
    header: Header
    older: StatusFile | None = None
    """FILE, where `file` is newer: its streams are asked still, and its files are those that are compared."""

    def rows(self, spark: SparkSession, folder: Path) -> DataFrame:
        """All rows, for Spark; `folder` has to stay as long as they are used."""
        rows = read_status(spark, self.file, folder)
        if self.older is None:
            return rows
        kept = read_status(spark, self.older, folder).where(F.col("kind").isin("stream", "file", "count"))
        return rows.unionByName(kept)


@dataclass(frozen=True)
class Written:
    """What a writing run has done."""

    header: Header
    rows: dict[str, int]
    unsettled: tuple[str, ...] = field(default=())


def write_side(
    settings: Settings, request: Request, path: Path, debug_dir: Path | None, say: Say, key: SignKey | None = None
) -> Written:
    """Write one side of a live cluster to a status file, signed with `key`. Nothing unless all of it could be."""
    with journaling(path, request) as (request, journal):
        gathered = snapshot(settings, request, say)
        later = 0
        with open_writer(path, gathered.header, key) as writer:
            say("reading streams and files" if request.hdfs else "reading streams")
            for batch in read_all(_source(gathered)):
                writer.write(batch)
                later += _written_later(batch, gathered.header.shutdown_ms)
                if journal is not None:
                    journal.add(batch)
            if later:
                gathered = _told_of_later_writes(gathered, later)
    if debug_dir is not None:
        with open_status(path) as written:
            dump_rows(written.rows(), debug_dir)
    return Written(gathered.header, writer.counts, gathered.unsettled)


@contextmanager
def journaling(path: Path, request: Request) -> Iterator[tuple[Request, Journal | None]]:
    """Checksums are kept beside FILE until it is whole; with `--resume` those of an interrupted run are used.

    A run that ends early says what is kept: by `Interrupted` for a Ctrl-C or SIGTERM, else in its own error.
    """
    where = journal_path(path)
    if not request.hdfs:
        yield request, None
        return
    if request.files.journal is None:
        remove(where)
    journal = opened(str(where))
    files = dataclasses.replace(request.files, journal=str(where) if len(journal) else None)
    try:
        yield dataclasses.replace(request, files=files), journal
    except BaseException as error:
        kept = len(journal)
        if not kept:
            remove(where)
            raise
        journal.close()
        forget(where)
        left = f"the checksums of {kept} files stay in {where}: the same command with --resume goes on from there"
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(f"interrupted; FILE was not written, but {left}") from None
        if isinstance(error, StatusToolError):
            raise type(error)(f"{error}; {left}") from None
        raise
    remove(where)


def _written_later(batch: pa.RecordBatch, shutdown_ms: int | None) -> int:
    """How many streams of the batch were written to after the shutdown time."""
    if shutdown_ms is None:
        return 0
    later = pc.and_(pc.equal(batch.column("kind"), "stream"), pc.greater(batch.column("write_ms"), shutdown_ms))
    return pc.sum(later).as_py() or 0


def _told_of_later_writes(gathered: Snapshot, streams: int) -> Snapshot:
    """A shutdown time left from an earlier occasion is told at once; which of the tables count, the check knows."""
    note = (
        f"{streams} streams were written to after the shutdown time; what was written then is not asked. "
        "If the application has run since, record the shutdown time again"
    )
    header = dataclasses.replace(gathered.header, notices=(*gathered.header.notices, note))
    return dataclasses.replace(gathered, header=header)


def _source(gathered: Snapshot) -> Source:
    return Together((SmallRows(gathered.rows), *gathered.sources))


def dump_rows(batches: Iterable[pa.RecordBatch], debug_dir: Path) -> None:
    """Write rows as JSON lines, one file a kind."""
    debug_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as files:
        streams: dict[str, TextIO] = {}
        for row in _json_rows(batches):
            kind = row["kind"]
            if kind not in streams:
                streams[kind] = files.enter_context(atomic_write(debug_dir / f"{kind}.jsonl"))
            streams[kind].write(json.dumps(row) + "\n")


def _json_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for row in batch.to_pylist():
            yield {k: v.hex() if isinstance(v, bytes) else v for k, v in row.items() if v is not None}


def dump_live(settings: Settings, request: Request, out: TextIO, say: Say) -> None:
    """Print this cluster's own state, written and replicated, as JSON lines."""
    gathered = snapshot(settings, request, say)
    sources = list(gathered.sources)
    if request.hbase:
        sources.append(StateTableSource(settings.thrift(), settings.state_table, "su", request.only))
    for row in _json_rows(read_all(Together((SmallRows(gathered.rows), *sources)))):
        out.write(json.dumps(row) + "\n")


def check_live(settings: Settings, check: Check, say: Say) -> Outcome:
    """Verify FILE against this live cluster, again and again until complete or `wait_s` is over."""
    with open_status(check.status_file, require_side=MASTER, key=check.key) as file:
        side = MasterSide(file, asked_header(file.header, check))
        refuse_since(side.header, check.scope.since_ms)
        refuse_deep(file, check)
        request = slave_request(side, check)
        deadline = time.monotonic() + check.wait_s
        with ThreadPoolExecutor(1) as pool, scratch_of(check) as scratch:
            # The JVM takes seconds to start: meanwhile the slave's trackers flush, and its few rows are read.
            first = pool.submit(gather, settings, request, say, scratch.near)
            with spark_session(check.spark_master, check.spark_conf) as spark:
                gathered = first.result()
                while True:
                    # What is missing in FILE stays missing: waiting would not bring it.
                    stuck = not gathered.unsettled

                    def last(outcome: Outcome, stuck: bool = stuck) -> bool:
                        over = time.monotonic() + RECHECK_S > deadline
                        unverifiable = outcome.verdict is Verdict.UNVERIFIABLE and stuck
                        decided = unverifiable or outcome.needs_new_file
                        return over or decided or outcome.verdict is Verdict.COMPLETE

                    outcome = verify_once(settings, spark, side, gathered, check, say, scratch, last)
                    if outcome.overview is not None:
                        return outcome
                    say(f"not complete yet, checking again ({deadline - time.monotonic():.0f} s left)")
                    time.sleep(RECHECK_S)
                    gathered = gather(settings, request, say, scratch.near)


@dataclass(frozen=True)
class Scratch:
    """Where a check puts what Spark is to read."""

    folder: Path
    near: Path | None
    """Where `gather` may put the slave's rows: a file, if Spark's tasks run on this machine."""


@contextmanager
def scratch_of(check: Check) -> Iterator[Scratch]:
    """A temporary folder for a check."""
    with tempfile.TemporaryDirectory(prefix="status-tool-") as name:
        folder = Path(name)
        yield Scratch(folder, folder / "slave.parquet" if _reads_local_files(check) else None)


def _reads_local_files(check: Check) -> bool:
    """Whether Spark's tasks run on this machine."""
    return not submitted() and runs_here(check.spark_master or LOCAL_MASTER)


def gather(settings: Settings, request: Request, say: Say, near: Path | None) -> Snapshot:
    """A snapshot of the slave; if all of it is few rows, they are put into the file `near` at once.

    Spark's Python workers take longer to start than a small state table to be read. A bigger one is left to them:
    they read it in parallel, and nothing is held here.
    """
    gathered = snapshot(settings, request, say)
    if near is None:
        return gathered
    near.unlink(missing_ok=True)
    rows: list[pa.RecordBatch] = []
    with closing(read_all(_source(gathered))) as batches:
        for batch in batches:
            rows.append(batch)
            if sum(part.num_rows for part in rows) > NEAR_ROWS:
                return gathered
    pq.write_table(pa.Table.from_batches(rows, schema=STATUS_SCHEMA), near, store_schema=False)
    return gathered


def _shared_out(gathered: Snapshot, spark: SparkSession) -> Snapshot:
    """`--rate` and the concurrency are for all of Spark's tasks together, each of which may be a process."""
    tasks = max(1, spark.sparkContext.defaultParallelism)
    sources = tuple(
        dataclasses.replace(source, load=source.load.shared(tasks)) if isinstance(source, WebHdfsSource) else source
        for source in gathered.sources
    )
    return dataclasses.replace(gathered, sources=sources)


def verify_once(
    settings: Settings,
    spark: SparkSession,
    side: MasterSide,
    gathered: Snapshot,
    check: Check,
    say: Say,
    scratch: Scratch,
    last: Last,
) -> Outcome:
    """Compare the master's side with what was gathered of the slave; an outcome that is `last` has an overview."""
    if scratch.near is not None and scratch.near.exists():
        slave_df = spark.read.parquet(scratch.near.as_uri())
    else:
        slave_df = spark_source.load(spark, _source(_shared_out(gathered, spark)))
    endpoint = None
    if check.deep and any(isinstance(source, WebHdfsSource) for source in gathered.sources):
        endpoint = HdfsEndpoint(settings.webhdfs(), hdfs_user(), settings.authorities)
    refuse_silent(gathered.rows, check)
    peers = [json.loads(row["detail"]) for row in gathered.rows if row["kind"] == "peer"]
    outcome = _verdict(spark, side, slave_df, gathered.header, check, say, scratch.folder, last, endpoint)
    return _with_map(outcome, side, gathered.header, peers)


def check_offline(check: Check, say: Say) -> Outcome:
    """The same check with both sides from files."""
    assert check.slave_status is not None
    with open_status(check.status_file, require_side=MASTER, key=check.key) as file:
        side = MasterSide(file, asked_header(file.header, check))
        with (
            open_status(check.slave_status, require_side=SLAVE, key=check.key) as slave,
            tempfile.TemporaryDirectory(prefix="status-tool-") as folder,
            spark_session(check.spark_master, check.spark_conf) as spark,
        ):
            refuse_silent((row for batch in slave.rows({"server"}) for row in batch.to_pylist()), check)
            slave_df = read_status(spark, slave, Path(folder))
            outcome = _verdict(spark, side, slave_df, slave.header, check, say, Path(folder), lambda _: True)
            return _with_map(outcome, side, slave.header, _peers(slave))


def _verdict(
    spark: SparkSession,
    side: MasterSide,
    slave_df: DataFrame,
    slave: Header,
    check: Check,
    say: Say,
    folder: Path,
    last: Last,
    endpoint: HdfsEndpoint | None = None,
) -> Outcome:
    """Compare; `endpoint` is where files that are otherwise incomparable can be read; `folder` is a temporary one."""
    file, master = side.file, _asked_paths(side.header, check.hdfs_paths)
    refuse_since(master, check.scope.since_ms)
    choice = _peer(file, master, slave, check.scope)
    scope = dataclasses.replace(_narrowed(check.scope, master, slave), offline=check.slave_status is not None)
    _refuse_same_hdfs(master, slave, scope)
    foreign = _foreign_tables(file, choice)
    excluded = exclusion_regexes(check.files.exclude)
    master_df = _without(_restricted(side.rows(spark, folder), foreign, check.hdfs_paths), excluded)
    slave_df = _without(mapped_paths(_restricted(slave_df, foreign, ()), check.path_map.pairs), excluded)
    queues = dataclasses.replace(
        _queue_facts(file, choice, master, scope),
        withheld=_withheld(file, choice),
        ordered=_shipped_in_part(file, choice),
        shipped_since=_shipped_since(file, choice),
        own_shipping=own_shipping(choice.peer) if choice else None,
    )
    say("comparing every stream and file")
    context = (master, slave, scope, queues, file.parquet_path.stat().st_size <= SMALL_BYTES)
    try:
        with (
            closing(Verification(spark, master_df, slave_df, *context)) as checked,
            ExitStack() as again,
        ):
            outcome = checked.outcome()
            decided = checked
            if endpoint is not None and outcome.hdfs and outcome.hdfs.files[FileStatus.INCOMPARABLE]:
                say("reading the files that checksums cannot settle")
                load = check.files.load.shared(checked.parallelism)
                read_df = with_crc(checked, endpoint, load, check.path_map)
                decided = again.enter_context(closing(Verification(spark, master_df, read_df, *context)))
                outcome = decided.outcome()
            if check.debug_dir is not None:
                write_debug(decided, check.debug_dir)
            if last(outcome):
                outcome = dataclasses.replace(outcome, overview=overview_of(decided, outcome, check.for_report))
                write_lists(decided, check.lists)
    except Exception as error:
        if (clear := spark_source.explain(error)) is not None:
            raise clear from None
        raise
    if outcome.hbase is not None and choice is not None:
        holds = asked_filter(scope).holds
        unasked = not_replicated(choice.peer, {t: f for t, f in _scopes(file).items() if holds(t)})
        outcome = dataclasses.replace(outcome, hbase=dataclasses.replace(outcome.hbase, not_replicated=unasked))
    notices = (*master.notices, *slave.notices, *(choice.notices if choice else ()), *outcome.notices)
    return dataclasses.replace(
        outcome,
        cut_ms=master.cut_ms,
        shutdown_ms=master.shutdown_ms,
        shutdown_from=master.shutdown_from,
        master_cluster_id=master.cluster_id,
        slave_cluster_id=slave.cluster_id,
        peer_id=str(choice.peer["id"]) if choice else None,
        notices=tuple(dict.fromkeys(notices)),
    )


def _asked_paths(master: Header, asked: tuple[str, ...]) -> Header:
    """The header for the paths of `run -i -f`: of those that FILE does not hold nothing is known."""
    if not asked or not master.hdfs_paths:
        return master
    held = [path for path in asked if any(re.match(glob_regex(root), path, re.DOTALL) for root in master.hdfs_paths)]
    gone = [path for path in master.hdfs_absent if path in asked]
    unheld = [path for path in asked if path not in held]
    return dataclasses.replace(master, hdfs_paths=asked, hdfs_absent=tuple(dict.fromkeys([*gone, *unheld])))


def refuse_since(master: Header, since_ms: int | None) -> None:
    """`UsageError` for a baseline that leaves nothing to be asked: complete would say nothing."""
    if since_ms is not None and since_ms > master.cut_ms:
        raise UsageError(
            f"--since {since_ms} lies after the cut of the master's status ({master.cut_ms}), so that everything would"
            " be accepted and nothing checked: write the master's status again (run -m), or give an earlier time"
        )


def asked_header(header: Header, check: Check) -> Header:
    """FILE's header with `-s` applied; refuses a half that FILE does not hold, and options that it cannot obey."""
    if (header.half == "hdfs" and not check.scope.check_hdfs) or (
        header.half == "hbase" and not check.scope.check_hbase
    ):
        raise UsageError(f"FILE holds only the {header.half} half: it was written with --only {header.half}")
    if header.evidence == Evidence.TIMESTAMPS:
        check_legacy(check.given)
    check_half(check.given, header.half)
    return header if check.shutdown_ms is None else _asked_shutdown(header, check.shutdown_ms)


def refuse_deep(file: StatusFile, check: Check) -> None:
    """`UsageError` where FILE has no CRC32C that the slave's files could be held against."""
    if not check.deep:
        return
    files = 0
    for batch in file.rows({"file"}):
        if batch.column("crc32c").null_count < batch.num_rows:
            return
        # With --deep, too, there is no CRC32C of what could not be read.
        readable = pc.and_(pc.greater(batch.column("length"), 0), pc.is_null(batch.column("state")))
        files += pc.sum(readable).as_py() or 0
    if files:
        raise UsageError(
            "--deep needs the CRC32C of the master's files, and FILE holds none: write it with `run -m -o FILE --deep`"
        )


def _asked_shutdown(header: Header, moment_ms: int) -> Header:
    """The header with the `-s` of a check; the text says whose word it replaces."""
    if moment_ms > header.created_ms:
        raise UsageError(
            f"-s {moment_ms} ({iso(moment_ms)}) lies after FILE was written ({iso(header.created_ms)}), which knows "
            "nothing of what was written then: give an earlier time, or run `run -m` again"
        )
    known = {RECORDED: "recorded on the master", BY_OPTION: "given by -s when FILE was written"}
    before = known.get(header.shutdown_from, "in FILE")
    replaced = "FILE has none" if header.shutdown_ms is None else f"FILE has {iso(header.shutdown_ms)}, {before}"
    note = f"the shutdown time {iso(moment_ms)} is the one given by -s of this check ({replaced})"
    header = dataclasses.replace(header, notices=(*header.notices, note))
    return apply_shutdown(header, moment_ms, BY_CHECK, header.created_ms)


def slave_request(side: MasterSide, check: Check) -> Request:
    """What is to be gathered of the slave."""
    master = side.header
    hdfs = check.scope.check_hdfs and master.half in ("both", "hdfs")
    return Request(
        side=SLAVE,
        wait_s=max(SLAVE_SETTLE_S, min(check.wait_s, 60.0)),
        only=TableFilter(check.scope.tables, check.scope.namespaces),
        hbase=check.scope.check_hbase and master.half in ("both", "hbase"),
        hdfs=hdfs,
        hdfs_paths=check.path_map.slave_roots(
            check.hdfs_paths or master.hdfs_paths or (_legacy_roots(side.file) if hdfs else ())
        ),
        # With --map-path names differ on the slave: --exclude is about the master's, and applied when comparing.
        files=dataclasses.replace(check.files, exclude=()) if check.path_map.pairs else check.files,
    )


def _legacy_roots(file: StatusFile) -> tuple[str, ...]:
    """The original's file names no roots: the files themselves are the roots, if they are not too many."""
    paths = [path for batch in file.rows({"file"}) for path in batch.column("path").to_pylist()]
    return tuple(paths) if len(paths) <= LEGACY_ROOTS else ()


def _narrowed(scope: Scope, master: Header, slave: Header) -> Scope:
    """Only halves that both sides hold are checked."""
    halves = [header.half for header in (master, slave)]
    hbase = scope.check_hbase and "hdfs" not in halves
    hdfs = scope.check_hdfs and "hbase" not in halves
    if not (hbase or hdfs):
        raise UsageError("nothing to check: the two sides hold different halves (--only)")
    return dataclasses.replace(scope, check_hbase=hbase, check_hdfs=hdfs)


def _peer(file: StatusFile, master: Header, slave: Header, scope: Scope) -> Choice | None:
    """The peer that leads to the slave; refuses a file of the wrong cluster."""
    if file.is_json:
        return None
    if (master.cluster_id, master.cluster_key) == (slave.cluster_id, slave.cluster_key) or (
        master.cluster_id and master.cluster_id == slave.cluster_id
    ):
        raise StatusFileError(
            f"FILE is this cluster's own ({slave.cluster_id or slave.cluster_key}): write it on the master, "
            "run -i on the slave"
        )
    if master.half == "hdfs":
        return None
    return choose_peer(_peers(file), slave.cluster_id, slave.cluster_key, scope.peer_id)


def refuse_silent(rows: Iterable[dict[str, Any]], check: Check) -> None:
    """`StatusFileError` where the slave's HBase cannot tell what has arrived: all of it would look missing."""
    silent = cannot_report(rows) if check.scope.check_hbase else []
    if silent:
        raise StatusFileError(
            f"the slave's HBase cannot report what replication has applied: {silent[0]}"
            f"{f' and {len(silent) - 1} more' if len(silent) > 1 else ''} has no hook postReplicationSinkBatchMutate "
            "(HBASE-27529); upgrade the slave to HBase 2.5.4 or later, or check HDFS alone with --only hdfs"
        )


def _refuse_same_hdfs(master: Header, slave: Header, scope: Scope) -> None:
    if scope.check_hdfs and same_hdfs(master, slave):
        raise StatusFileError(
            f"both sides are the same HDFS (cluster {slave.hdfs_cluster_id or 'unknown'}, block pool "
            f"{slave.hdfs_pool_id}), so its files would be compared with themselves: check that fs.defaultFS in the "
            "site files, or --webhdfs, names this side's own NameNodes, or check the HBase half alone with --only hbase"
        )


def _peers(file: StatusFile) -> Sequence[PeerFacts]:
    return [parse_peer(detail) for batch in file.rows({"peer"}) for detail in batch.column("detail").to_pylist()]


def _with_map(outcome: Outcome, side: MasterSide, slave: Header, slave_peers: Sequence[PeerFacts]) -> Outcome:
    """The outcome with what the run knows of the topology: both sides' peers."""
    if side.file.is_json or outcome.hbase is None:
        return outcome
    sides = (Side(side.header, _peers(side.file), "master"), Side(slave, slave_peers, "slave"))
    return dataclasses.replace(outcome, clusters=known_clusters(sides))


def _families(file: StatusFile) -> dict[str, tuple[str, ...]]:
    """Replicated families by table, where the descriptor could be read."""
    return {table: replicated for table, (replicated, _) in _scopes(file).items()}


def _scopes(file: StatusFile) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By table the families with replication scope 1 and those without, where the descriptor could be read."""
    rows = [row for batch in file.rows({"table"}) for row in batch.to_pylist()]
    known = {row["table"]: (replicated_families(row["detail"]), local_families(row["detail"])) for row in rows}
    return {table: (ours, local) for table, (ours, local) in known.items() if ours is not None and local is not None}


def _withheld(file: StatusFile, choice: Choice | None) -> dict[str, tuple[str, ...]]:
    return withheld(choice.peer, _families(file)) if choice else {}


def _shipped_in_part(file: StatusFile, choice: Choice | None) -> frozenset[str]:
    """Tables of which the peer leaves out some replicated families, or may do so as their families are not known.

    Each by itself: one that is shipped in part says nothing of the others.
    """
    if choice is None:
        return frozenset()
    families = _families(file)
    tables = {name for batch in file.rows({"region", "table"}) for name in batch.column("table").to_pylist()}
    unsure = (table for table in filtered_tables(choice.peer) if table in tables and table not in families)
    return frozenset({*_withheld(file, choice), *unsure})


def _shipped_since(file: StatusFile, choice: Choice | None) -> dict[int, int | None]:
    rows = [row for batch in file.rows({"server"}) for row in batch.to_pylist()] if choice else []
    return shipped_since(rows, choice.peer) if choice else {}


def _queue_facts(file: StatusFile, choice: Choice | None, master: Header, scope: Scope) -> QueueFacts:
    """What the master's queues prove for the chosen peer."""
    rows = [row for batch in file.rows({"queue", "server"}) for row in batch.to_pylist()] if choice else []
    return queue_facts(
        [row for row in rows if row["kind"] == "queue"],
        [row for row in rows if row["kind"] == "server"],
        choice.peer if choice else None,
        (latest(master.coverage_ms, scope.since_ms), master.barrier_issued_ms),
    )


def _foreign_tables(file: StatusFile, choice: Choice | None) -> list[str]:
    """Tables of the master that the peer does not replicate."""
    if choice is None:
        return []
    tables = {name for batch in file.rows({"region", "table"}) for name in batch.column("table").to_pylist()}
    return sorted(table for table in tables if table is not None and not ships(choice.peer, table))


def _restricted(rows: DataFrame, foreign: list[str], hdfs_paths: tuple[str, ...]) -> DataFrame:
    """The rows that are asked about: the peer's tables, the paths of `-f`."""
    if foreign:
        rows = rows.where(F.col("table").isNull() | ~F.col("table").isin(foreign))
    if hdfs_paths:
        inside = F.lit(False)
        for root in hdfs_paths:
            inside = inside | F.col("path").rlike(glob_regex(root))
        rows = rows.where((F.col("kind") != "file") | inside)
    return rows


def _without(rows: DataFrame, excluded: Sequence[str]) -> DataFrame:
    """The rows without files that `--exclude` leaves out: of both sides, or they would be missing on one."""
    for regex in excluded:
        rows = rows.where((F.col("kind") != "file") | F.col("path").isNull() | ~F.col("path").rlike(regex))
    return rows
