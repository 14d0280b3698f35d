"""`run -i`: FILE against the live slave in rounds, or both sides from files."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from status_tool.clients.config import Settings
from status_tool.clients.delegation_tokens import no_token_left
from status_tool.clients.hdfs_native import RpcEndpoint, no_process_left
from status_tool.clients.webhdfs import HdfsEndpoint
from status_tool.errors import ConnectionFailed, UsageError
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import (
    SLAVE_SETTLE_S,
    FileOptions,
    Request,
    Snapshot,
    Together,
    apply_shutdown,
    snapshot,
)
from status_tool.printable import iso
from status_tool.report.progress import Progress
from status_tool.runs.compare_rows import RowsAsked, prove
from status_tool.runs.modes import check_half, check_legacy
from status_tool.runs.pace import LastRun, RunKind, remember, rows_read
from status_tool.runs.question import Question, SideFacts, question_of, refuse_pruned, refuse_since
from status_tool.runs.rows_shown import rows_shown
from status_tool.runs.sampling import Repeated, disprove, repeating
from status_tool.runs.write import Say, source_of
from status_tool.sources.hdfs_files import HdfsSource
from status_tool.sources.interface import Source
from status_tool.sources.state_table import StateTableSource
from status_tool.spark import source as spark_source
from status_tool.spark.cluster import read_parquet, read_status
from status_tool.spark.counts import overview_of
from status_tool.spark.debug import write_debug
from status_tool.spark.deep import with_crc
from status_tool.spark.hdfs import mapped_paths
from status_tool.spark.held import SMALL_BYTES, HeldRows, frame_of, small_file
from status_tool.spark.lists import FullList, write_lists
from status_tool.spark.session import spark_session
from status_tool.spark.settings import LOCAL_MASTER, is_short, runs_here, submitted
from status_tool.spark.verify import Verification
from status_tool.status_file.reader import StatusFile, open_status
from status_tool.status_file.signature import SignKey
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import BY_CHECK, BY_OPTION, MASTER, RECORDED, SLAVE, Header
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.row_proofs import NO_PROOFS, RowProofs
from status_tool.vocabulary.schema import STATUS_SCHEMA, Row
from status_tool.vocabulary.scope import Scope, TableFilter
from status_tool.vocabulary.selection import PathMap
from status_tool.vocabulary.verdicts import Evidence, FileStatus, Status, Verdict

Last = Callable[[Outcome], bool]
"""Whether an outcome ends the run: only then are its overview and the complete lists created."""
RECHECK_S = 2.0
LACKING = (Status.GAP, Status.MISSING, Status.BEHIND)
NEAR_ROWS = 5_000
"""Up to this many rows of the slave are read by this process while Spark starts."""
LEGACY_ROOTS = 10_000


@dataclass(frozen=True)
class Check:
    """The request of `run -i`."""

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
    """Only status files signed with it are accepted."""
    lists: tuple[FullList, ...] = ()
    """Where the complete lists of differing, missing and unverifiable items are written."""
    for_report: bool = False
    """Whether the overview includes the servers and the map of regions."""
    rows: RowsAsked | None = None
    """Whether the rows themselves settle what streams leave in doubt."""
    sample_s: float = 0.0
    """How long FILE's samples of rows are compared at most; 0: not at all."""


@dataclass(frozen=True)
class MasterSide:
    """What a check compares the slave with: FILE or, with --follow, what has been read from the master since."""

    file: StatusFile
    header: Header
    older: StatusFile | None = None
    """FILE, where `file` is newer: its streams are still in scope, and its files are those that are compared."""

    def rows(self, spark: SparkSession, folder: Path) -> DataFrame:
        """All rows, for Spark; `folder` must exist as long as they are used."""
        rows = read_status(spark, self.file, folder)
        if self.older is None:
            return rows
        kept = read_status(spark, self.older, folder).where(F.col("kind").isin("stream", "file", "count"))
        return rows.unionByName(kept)

    def held(self) -> pa.Table | None:
        """All rows, if they are few; None: Spark reads them."""
        return small_file(self.file) if self.older is None else None


@dataclass(frozen=True)
class Look:
    """The master's side in one round."""

    side: MasterSide
    queues: tuple[Mapping[str, Any], ...] = ()
    """The `detail`s of its queues, where they were read again."""
    left_open: bool = False
    """Whether the next round may have newer data of the master."""


@dataclass(frozen=True)
class Both:
    """Both sides in one round, and what is in scope."""

    look: Look
    slave: Snapshot
    question: Question


class Master(ABC):
    """The master's side of a live check: fixed, as in FILE, or read again in each round."""

    def __init__(self, file: MasterSide) -> None:
        self.file = file

    @abstractmethod
    def look(self) -> Look:
        """What is known of the master now."""

    @abstractmethod
    def is_decided(self, outcome: Outcome) -> bool:
        """Whether no further round can change the outcome, although time is left."""

    @abstractmethod
    def round_done(self, outcome: Outcome, look: Look, left_s: float) -> None:
        """Report the end of a round; only the last one has an overview."""

    @abstractmethod
    def lost(self, error: ConnectionFailed) -> None:
        """One side did not answer, after the first round: raise, or report it and the next round tries again."""


class FixedMaster(Master):
    """FILE, and nothing newer."""

    def __init__(self, file: MasterSide, say: Say, first_done: Callable[[], None] = lambda: None) -> None:
        """`first_done` is called when the first round has ended."""
        super().__init__(file)
        self._say = say
        self._first_done: Callable[[], None] | None = first_done

    def look(self) -> Look:
        """FILE."""
        return Look(self.file)

    def is_decided(self, outcome: Outcome) -> bool:
        """What FILE does not have, waiting will not add."""
        return outcome.needs_new_file

    def round_done(self, outcome: Outcome, look: Look, left_s: float) -> None:
        """Announce the next round."""
        if self._first_done is not None:
            self._first_done()
            self._first_done = None
        if outcome.overview is None:
            self._say(f"not complete yet, checking again ({left_s:.0f} s left)")

    def lost(self, error: ConnectionFailed) -> None:
        """The slave's error ends the check."""
        raise error


def check_live(settings: Settings, check: Check, say: Say, progress: Progress | None = None) -> Outcome:
    """Verify FILE against this live cluster, again and again until complete or `wait_s` is over."""
    with open_status(check.status_file, require_side=MASTER, key=check.key) as file, scratch_of(check) as scratch:
        side = MasterSide(file, header_in_scope(file.header, check))
        refuse_since(side.header, check.scope.since)
        refuse_deep(file, check)
        refuse_rows(file, check)
        refuse_sample(file, check)
        deadline = time.monotonic() + check.wait_s
        master = FixedMaster(side, say, _remembering(check, file))
        return check_in_rounds(settings, check, master, deadline, say, scratch, progress)


def kind_of_check(check: Check, header: Header) -> RunKind:
    """What a check has in common with others; `header` is FILE's."""
    scope = check.scope
    return RunKind(
        form="run -i" if check.slave_status is None else "run -i --slave-status",
        cluster=header.cluster_id or header.hdfs_pool_id or header.cluster_key,
        hbase=scope.check_hbase and header.half != "hdfs",
        hdfs=scope.check_hdfs and header.half != "hbase",
        deep=check.deep,
        narrowed=bool(scope.tables or scope.namespaces or check.hdfs_paths),
    )


def _remembering(check: Check, file: StatusFile) -> Callable[[], None]:
    """From now on until it is called; nothing where Spark runs already, as in later rounds of `watch`."""
    began, with_start = time.monotonic(), SparkSession.getActiveSession() is None

    def done() -> None:
        if with_start:
            took_ms = int((time.monotonic() - began) * 1000)
            last = LastRun(took_ms, rows_read(file.counts), int(time.time() * 1000))
            remember(kind_of_check(check, file.header), last)

    return done


def check_in_rounds(
    settings: Settings,
    check: Check,
    master: Master,
    deadline: float,
    say: Say,
    scratch: Scratch,
    progress: Progress | None = None,
) -> Outcome:
    """Check until complete, until no change is possible, or until the deadline (monotonic); return the last outcome.

    The slave is read after the master. The other way round, everything shipped between the two reads would look behind,
    and what happened to the slave's table meanwhile (a truncate, say) would go unnoticed.
    """
    request = slave_request(master.file, check)

    def both() -> Both:
        look = master.look()
        slave = gather(settings, request, say, scratch)
        return Both(look, slave, _question(look.side, SideFacts(slave.header, slave.rows), check))

    with (
        ThreadPoolExecutor(1) as pool,
        no_process_left(),
        no_token_left(),
        _samples(settings, check, master.file) as samples,
    ):
        # The JVM takes seconds to start: meanwhile the trackers flush, and the slave's rows, if few, are read.
        first = pool.submit(both)
        with _session(check) as spark:
            sides = first.result()
            # What is written to files is what the rows have settled.
            by_rows = check.rows is not None or bool(samples().unequal)
            by_streams = dataclasses.replace(check, debug_dir=None, lists=()) if by_rows else check
            while True:
                stuck = not (sides.slave.unsettled or sides.look.left_open)

                def last(outcome: Outcome, stuck: bool = stuck) -> bool:
                    unverifiable = outcome.verdict is Verdict.UNVERIFIABLE and stuck
                    decided = unverifiable or master.is_decided(outcome)
                    return _over(deadline) or decided or outcome.verdict is Verdict.COMPLETE

                outcome = verify_once(settings, spark, sides, by_streams, say, scratch, last)
                master.round_done(outcome, sides.look, deadline - time.monotonic())
                if outcome.overview is not None:
                    if by_rows:
                        proofs = _proofs(settings, check, sides, outcome, samples(), both, say, progress or Progress())
                        outcome = verify_once(settings, spark, sides, check, say, scratch, lambda _: True, proofs)
                    return _with_notice(outcome, samples().notice(_lacking(outcome)))
                sides = _again(both, master, deadline)


def _samples(settings: Settings, check: Check, side: MasterSide) -> AbstractContextManager[Callable[[], Repeated]]:
    """FILE's samples, digested by the slave meanwhile."""
    wanted = check.sample_s and check.scope.check_hbase and side.older is None
    rows = _rows_of(side, "sample") if wanted else []
    return repeating(settings, rows, check.sample_s) if rows else nullcontext(Repeated)


def _rows_of(side: MasterSide, *kinds: str) -> list[Row]:
    return [row for batch in side.file.rows(set(kinds)) for row in batch.to_pylist()]


def _lacking(outcome: Outcome) -> frozenset[str]:
    """The tables in which streams have not arrived in whole."""
    groups = outcome.overview.groups if outcome.overview is not None else ()
    return frozenset(group.table for group in groups if group.table is not None and group.kind in LACKING)


def _with_notice(outcome: Outcome, notice: str | None) -> Outcome:
    return outcome if notice is None else dataclasses.replace(outcome, notices=(*outcome.notices, notice))


def _proofs(
    settings: Settings,
    check: Check,
    sides: Both,
    outcome: Outcome,
    repeated: Repeated,
    both: Callable[[], Both],
    say: Say,
    progress: Progress,
) -> RowProofs:
    """What the rows say: all of them where `--rows` asks for it, else the samples that are not equal."""
    side = sides.look.side
    rows_of = partial(_rows_of, side)
    if check.rows is not None:
        rows = rows_of("server", "digest")
        with rows_shown(progress) as counted:
            return prove(check.rows, settings, sides.question, rows, outcome, check.wait_s, say, counted)

    def slave_streams() -> Iterator[Row]:
        with closing(read_all(source_of(_left_to_spark(both().slave)))) as batches:
            for batch in batches:
                yield from batch.filter(pc.equal(batch.column("kind"), "segment")).to_pylist()

    return disprove(settings, sides.question, outcome, repeated, rows_of, sides.slave.rows, slave_streams)


def _again(both: Callable[[], Both], master: Master, deadline: float) -> Both:
    """Both sides read again; without newer data while one of them does not answer."""
    while True:
        time.sleep(RECHECK_S)
        try:
            return both()
        except ConnectionFailed as error:
            master.lost(error)
            if _over(deadline):
                raise


def _session(check: Check) -> AbstractContextManager[SparkSession]:
    small = is_short(check.status_file)
    return spark_session(check.spark_master, check.spark_conf, small=small, is_last=True)


def _over(deadline: float) -> bool:
    return time.monotonic() + RECHECK_S > deadline


def check_offline(check: Check, say: Say) -> Outcome:
    """The same check with both sides from files."""
    assert check.slave_status is not None
    with open_status(check.status_file, require_side=MASTER, key=check.key) as file:
        side = MasterSide(file, header_in_scope(file.header, check))
        done = _remembering(check, file)
        with (
            open_status(check.slave_status, require_side=SLAVE, key=check.key) as slave,
            tempfile.TemporaryDirectory(prefix="status-tool-") as folder,
        ):
            question = _question(side, facts_of(slave, slave.header), check)
            with _session(check) as spark:
                found = small_file(slave)
                slave_rows = read_status(spark, slave, Path(folder)) if found is None else found
                outcome = _answer(spark, side, slave_rows, question, check, say, Path(folder), lambda _: True)
                done()
                return outcome


@dataclass(frozen=True)
class Scratch:
    """Where a check puts the files that Spark reads."""

    folder: Path
    near: Path | None
    """Where `gather` may put the slave's rows: a file, if Spark's tasks run on this machine."""

    @property
    def files(self) -> Path:
        """Where `gather` puts the slave's files if this process alone reads them."""
        return self.folder / "slave-files.parquet"


@contextmanager
def scratch_of(check: Check) -> Iterator[Scratch]:
    """A temporary folder for a check."""
    with tempfile.TemporaryDirectory(prefix="status-tool-") as name:
        folder = Path(name)
        yield Scratch(folder, folder / "slave.parquet" if _reads_local_files(check) else None)


def _reads_local_files(check: Check) -> bool:
    """Whether Spark's tasks run on this machine."""
    return not submitted() and runs_here(check.spark_master or LOCAL_MASTER)


def gather(settings: Settings, request: Request, say: Say, scratch: Scratch) -> Snapshot:
    """A snapshot of the slave; if it has few rows, they are written to the file `near` at once.

    Spark's Python workers take longer to start than it takes to read a small state table. A bigger one is left to
    them: they read it in parallel, and nothing is held here. What only this process reads is written to `files`.
    """
    gathered = snapshot(settings, request, say)
    if here := tuple(source for source in gathered.sources if source.is_read_here):
        say("reading files")
        with StatusWriter(scratch.files, gathered.header) as writer, closing(read_all(Together(here))) as batches:
            for batch in batches:
                writer.write(batch)
    if scratch.near is None:
        return gathered
    scratch.near.unlink(missing_ok=True)
    rows: list[pa.RecordBatch] = []
    with closing(read_all(source_of(_left_to_spark(gathered)))) as batches:
        for batch in batches:
            rows.append(batch)
            if sum(part.num_rows for part in rows) > NEAR_ROWS:
                return gathered
    pq.write_table(pa.Table.from_batches(rows, schema=STATUS_SCHEMA), scratch.near, store_schema=False)
    return gathered


def _left_to_spark(gathered: Snapshot) -> Snapshot:
    """Without what only this process reads."""
    return dataclasses.replace(gathered, sources=tuple(one for one in gathered.sources if not one.is_read_here))


def _shared_out(gathered: Snapshot, spark: SparkSession) -> Snapshot:
    """Parts enough for all of Spark's tasks; the concurrency applies to them together: each may be a process."""
    tasks = max(1, spark.sparkContext.defaultParallelism)

    def shared(source: Source) -> Source:
        if isinstance(source, HdfsSource):
            return dataclasses.replace(source, load=source.load.shared(tasks))
        return source.shared_out(tasks) if isinstance(source, StateTableSource) else source

    return dataclasses.replace(gathered, sources=tuple(map(shared, gathered.sources)))


def verify_once(
    settings: Settings,
    spark: SparkSession,
    sides: Both,
    check: Check,
    say: Say,
    scratch: Scratch,
    last: Last,
    rows: RowProofs = NO_PROOFS,
) -> Outcome:
    """Compare the two sides; an outcome that is `last` has an overview."""
    slave_rows: DataFrame | pa.Table
    if scratch.near is not None and scratch.near.exists():
        slave_rows = pq.read_table(scratch.near)
    else:
        slave_rows = spark_source.load(spark, source_of(_shared_out(_left_to_spark(sides.slave), spark)))
    if any(source.is_read_here for source in sides.slave.sources):
        files_df = read_parquet(spark, scratch.files, scratch.folder, SLAVE)
        slave_rows = frame_of(spark, slave_rows).unionByName(files_df)
    files = next((source for source in sides.slave.sources if isinstance(source, HdfsSource)), None)
    endpoint = files.endpoint if check.deep and files is not None else None
    answered = (sides.look.side, slave_rows, sides.question, check, say, scratch.folder, last, endpoint, rows)
    return _answer(spark, *answered)


def facts_of(file: StatusFile, header: Header) -> SideFacts:
    """A file's small rows, and the names of its regions' tables; `header` is the file's or replaces it."""
    if file.is_json:
        return SideFacts(header, legacy=True)
    rows = (row for batch in file.rows({"peer", "table", "server", "queue"}) for row in batch.to_pylist())
    tables = {name for batch in file.rows({"region"}) for name in batch.column("table").to_pylist()}
    return SideFacts(header, tuple(rows), frozenset(name for name in tables if name is not None))


def _question(side: MasterSide, slave: SideFacts, check: Check) -> Question:
    scope = dataclasses.replace(check.scope, offline=check.slave_status is not None)
    if side.older is not None:
        refuse_pruned(side.older.header, slave.header, scope)
    return question_of(facts_of(side.file, side.header), slave, scope, check.hdfs_paths, check.files.exclude)


def _answer(
    spark: SparkSession,
    side: MasterSide,
    slave_rows: DataFrame | pa.Table,
    question: Question,
    check: Check,
    say: Say,
    folder: Path,
    last: Last,
    endpoint: HdfsEndpoint | RpcEndpoint | None = None,
    rows: RowProofs = NO_PROOFS,
) -> Outcome:
    """Compare; `endpoint` is where files that are otherwise incomparable can be read; `folder` is a temporary one."""
    excluded = question.excluded_regexes
    held_file = side.held()
    master_rows = side.rows(spark, folder) if held_file is None else held_file
    master_df = _without(_in_question(frame_of(spark, master_rows), question, question.path_regexes), excluded)
    slave_df = _in_question(frame_of(spark, slave_rows), question)
    slave_df = _without(mapped_paths(slave_df, check.path_map.pairs), excluded)
    is_held = isinstance(master_rows, pa.Table) and isinstance(slave_rows, pa.Table)
    held = HeldRows.of(master_rows, slave_rows, question.left_out) if is_held else None
    say("comparing every stream and file")
    small = side.file.parquet_path.stat().st_size <= SMALL_BYTES
    context = (question.master, question.slave, question.scope, question.queues, small, rows, held)
    try:
        with (
            closing(Verification(spark, master_df, slave_df, *context)) as checked,
            ExitStack() as again,
        ):
            outcome = checked.outcome()
            decided = checked
            if endpoint is not None and outcome.hdfs and outcome.hdfs.files[FileStatus.INCOMPARABLE]:
                say("reading the files that checksums cannot settle")
                read_df = with_crc(checked, endpoint, check.files.load, check.path_map, folder)
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
    return question.answered(outcome)


def header_in_scope(header: Header, check: Check) -> Header:
    """FILE's header with `-s` applied; rejects a half that FILE does not hold, and options that FILE cannot support."""
    if (header.half == "hdfs" and not check.scope.check_hdfs) or (
        header.half == "hbase" and not check.scope.check_hbase
    ):
        raise UsageError(f"FILE holds only the {header.half} half: it was written with --only {header.half}")
    if header.evidence == Evidence.TIMESTAMPS:
        check_legacy(check.given)
    check_half(check.given, header.half)
    return header if check.shutdown_ms is None else _asked_shutdown(header, check.shutdown_ms)


def refuse_deep(file: StatusFile, check: Check) -> None:
    """`UsageError` where FILE has no CRC32C to compare the slave's files with."""
    if not check.deep:
        return
    files = 0
    for batch in file.rows({"file"}):
        if batch.column("crc32c").null_count < batch.num_rows:
            return
        # Even with --deep, files that could not be read have no CRC32C.
        readable = pc.and_(pc.greater(batch.column("length"), 0), pc.is_null(batch.column("state")))
        files += pc.sum(readable).as_py() or 0
    if files:
        raise UsageError(
            "--deep needs the CRC32C of the master's files, and FILE holds none: write it with `run -m -o FILE --deep`"
        )


def refuse_rows(file: StatusFile, check: Check) -> None:
    """`UsageError` where there is nothing to hold the slave's rows against."""
    if check.rows is not None and check.rows.master is None and not file.counts.get("digest"):
        raise UsageError(
            "--rows needs the master (--master-conf DIR, or --master-thrift and --master-zookeeper), as FILE holds no "
            "row digests: `run -m -o FILE --rows` writes them"
        )


def refuse_sample(file: StatusFile, check: Check) -> None:
    """`UsageError` where `--sample` asks for what FILE does not hold."""
    if "sample" in check.given and check.sample_s and not file.counts.get("sample"):
        raise UsageError(
            "--sample: FILE holds no samples of rows: `run -m -o FILE` takes them where the master's region servers "
            "answer (ReplicateTimeTracker of this version)"
        )


def _asked_shutdown(header: Header, moment_ms: int) -> Header:
    """The header with the `-s` of a check; the notice names the time that it replaces."""
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
    """What to gather from the slave."""
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
        # With --map-path names differ on the slave: --exclude refers to the master's, and is applied when comparing.
        files=dataclasses.replace(check.files, exclude=()) if check.path_map.pairs else check.files,
    )


def _legacy_roots(file: StatusFile) -> tuple[str, ...]:
    """The original's file names no roots: the files themselves are the roots, unless there are too many."""
    paths = [path for batch in file.rows({"file"}) for path in batch.column("path").to_pylist()]
    return tuple(paths) if len(paths) <= LEGACY_ROOTS else ()


def _in_question(rows: DataFrame, question: Question, path_regexes: Sequence[str] = ()) -> DataFrame:
    """The rows in scope: the peer's tables, the paths of `-f`."""
    if question.left_out:
        rows = rows.where(F.col("table").isNull() | ~F.col("table").isin(list(question.left_out)))
    if path_regexes:
        inside = F.lit(False)
        for regex in path_regexes:
            inside = inside | F.col("path").rlike(regex)
        rows = rows.where((F.col("kind") != "file") | inside)
    return rows


def _without(rows: DataFrame, excluded: Sequence[str]) -> DataFrame:
    """The rows without the files that `--exclude` leaves out: on both sides, or they would be missing on one."""
    for regex in excluded:
        rows = rows.where((F.col("kind") != "file") | F.col("path").isNull() | ~F.col("path").rlike(regex))
    return rows
