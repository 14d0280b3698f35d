"""`--explain`: what a run would read and write, from where and how much. Nothing is written, no barrier is put."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from status_tool import printable
from status_tool.clients.config import Settings
from status_tool.clients.hdfs_native import Hdfs, RpcEndpoint
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.errors import ConnectionFailed
from status_tool.gather.hdfs_side import exclusions_of, files_endpoint, impatient
from status_tool.gather.peer_topology import what_is_shipped
from status_tool.gather.snapshot import Request, refuse_unused, with_shutdown
from status_tool.printable import duration, iso
from status_tool.runs.check import Check, needs_spark
from status_tool.runs.follow import followed_side, refuse_another
from status_tool.runs.question import refuse_since
from status_tool.runs.refusals import side_in_scope
from status_tool.runs.sampling import RANGES
from status_tool.runs.slave_side import slave_request
from status_tool.sources import meta
from status_tool.sources.hdfs_files import expand, refusals_end_the_run
from status_tool.sources.state_table import StateTable, now_ms
from status_tool.status_file.reader import open_status
from status_tool.vocabulary.header import BY_OPTION, MASTER, SLAVE, Header
from status_tool.vocabulary.selection import LOCAL, by_system

MOST_SUMMARIES = 20
"""GETCONTENTSUMMARY walks a folder on the NameNode: it is asked for no more paths than this, and not for the root."""


@dataclass(frozen=True)
class Step:
    """A line of the plan."""

    what: str
    value: str


def explain_side(settings: Settings, request: Request) -> Iterator[Step]:
    """Yield the plan of `run -m -o`, `run -o` and `run -d`.

    Raises `ConfigurationError` and `ConnectionFailed`, as the run itself would.
    """
    if request.hdfs and request.side == MASTER:
        settings.refuse_elsewhere(request.hdfs_paths or settings.hdfs_paths)
    yield Step("this cluster", f"as {request.side}")
    if request.hbase:
        yield from _hbase(settings, request)
    if request.hdfs:
        yield from _hdfs(settings, request)


def explain_check(settings: Settings, check: Check, followed: Settings | None = None) -> Iterator[Step]:
    """Yield the plan of `run -i`; `followed` is the master that --follow reads again.

    Raises what opening the files does, `ConfigurationError` and `ConnectionFailed`.
    """
    is_live = check.slave_status is None
    is_fixed = followed is None
    with open_status(check.status_file, require_side=MASTER, key=check.key, witnessed=is_live and is_fixed) as file:
        side, counts = side_in_scope(file, check) if is_fixed else followed_side(file, check), file.counts
        header, asked = side.header, slave_request(side, check) if is_live else None
        has_roots = not file.is_json or bool(check.hdfs_paths)  # else each of its files would be a step
    yield Step("FILE", _file(header, counts))
    if followed is None or not followed.knows_thrift:
        refuse_since(header, check.scope.since)
        yield Step("cut", _cut(header))
    if followed is not None:
        yield from _followed(followed, header)
    if check.slave_status is not None:
        with open_status(check.slave_status, require_side=SLAVE, key=check.key) as other:
            yield Step("FILE2", _file(other.header, other.counts))
    if asked is not None:
        if asked.hbase:
            yield from _slave(settings, header, check)
            if check.sample_s and counts.get("sample"):
                yield Step(
                    "samples",
                    f"{printable.counted(counts['sample'], 'range')} of rows as FILE has them, in {check.sample_s:g} s",
                )
            if (rows := check.rows) is not None:
                beside = "FILE's" if rows.master is None else f"those of the master's at {rows.master.zookeeper()}"
                yield _row_digests(f"the region servers here, beside {beside}", every=rows.every)
        if asked.hdfs and has_roots:
            yield from _hdfs(settings, asked, summaries=False)
            if check.deep and not asked.files.deep:
                yield _contents("files that checksums cannot settle, and those of local folders")
    master = check.spark_master or "local[*], or the master that was submitted"
    is_sure = needs_spark(check, side, is_read_again=not is_fixed)
    when = "started only if the slave has many rows, or --deep has files to read"
    yield Step("Spark", master if is_sure else f"{when}: {master}")


def _hbase(settings: Settings, request: Request) -> Iterator[Step]:
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        live = zookeeper.live_servers()
        yield Step("HBase cluster", f"{zookeeper.cluster_id()} at {zookeeper.endpoint}, {len(live)} region servers")
        if request.side == MASTER:
            for peer in zookeeper.peers():
                disabled = "" if peer.enabled else ", DISABLED"
                yield Step(f"peer {peer.id}", f"to {peer.cluster_key}{disabled}, ships {what_is_shipped(peer)}")
    wait, recorded = f"up to {request.wait_s:.0f} s", None
    if request.witnesses:
        yield Step("witnesses", f"{', '.join(map(str, request.witnesses))}; {wait} until they were sent everything")
    else:
        state = StateTable(settings.thrift(), settings.state_table)
        state.require()
        yield Step("barrier", f"put into {settings.state_table}; {wait} for all servers to echo it")
        recorded = state.shutdown_ms() if request.side == MASTER else None
    if request.side == MASTER:
        yield Step("cut", _master_cut(request, recorded))
    regions = Counter(
        str(row["table"]) for row in meta.regions(settings.thrift(), live, settings.state_table, request.only)
    )
    yield Step(
        "tables", f"{len(regions)} with {printable.counted(regions.total(), 'region')}, by Thrift {settings.thrift()}"
    )
    if request.side == MASTER and request.sample_s:
        yield Step("samples", f"up to {RANGES} random ranges of rows, within {request.sample_s:g} s")
    if request.rows:
        yield _row_digests("the region servers here", every=request.rows == "all")


def _row_digests(by: str, *, every: bool) -> Step:
    tables = "all replicated tables" if every else "tables that streams leave in doubt"
    return Step("row digests", f"of {tables}, by {by}")


def _master_cut(request: Request, recorded: int | None) -> str:
    now = now_ms()
    header = with_shutdown(Header(MASTER, "", now, now), request.shutdown_ms, recorded)
    if header.shutdown_ms is not None:
        return f"{iso(header.cut_ms)}, {'-s' if header.shutdown_from == BY_OPTION else 'the recorded shutdown time'}"
    known = recorded if request.shutdown_ms is None else request.shutdown_ms
    why = "no shutdown time is recorded" if known is None else f"{iso(known)} lies in the future"
    return f"the moment of the run: {why}"


def _hdfs(settings: Settings, request: Request, *, summaries: bool = True) -> Iterator[Step]:
    files = request.files
    local, roots = by_system(request.hdfs_paths or settings.hdfs_paths or ("/",))
    refuse_unused(files, local, roots)
    yield from (Step("files", LOCAL + path) for path in local)
    if files.deep:
        yield _contents("every file")
    if not roots:
        return
    exclusions = exclusions_of(settings, files.exclude)
    endpoint = files_endpoint(settings, files.client, files.load, roots, exclusions, lambda _: None)
    how = ", by Hadoop's own client" if isinstance(endpoint, RpcEndpoint) else ""
    yield Step("NameNodes", f"{endpoint}{how}")
    hdfs = impatient(endpoint, files.load)
    try:
        with refusals_end_the_run(endpoint):
            existing = {root: expand(hdfs, root, exclusions) for root in roots}
            for at, root in enumerate(roots):
                counted = summaries and at < MOST_SUMMARIES
                yield Step("files", f"{root}: {_amount(hdfs, existing[root], counted)}")
    finally:
        hdfs.stop()


def _contents(of: str) -> Step:
    return Step("contents", f"of {of}, read in whole for their CRC32C")


def _amount(hdfs: Hdfs, paths: Sequence[str], counted: bool) -> str:
    if not paths:
        return "does not exist"
    if not counted or "/" in paths:
        return "not counted: counting would walk all of it on the NameNode" if "/" in paths else "not counted"
    with suppress(ConnectionFailed):
        found = [hdfs.summary(path) for path in paths]
        files, size = (sum(amounts) for amounts in zip(*found, strict=True))
        return f"{printable.counted(files, 'file')}, {printable.counted(size, 'byte')}"
    return "not counted: the NameNode did not answer in time"


def _slave(settings: Settings, header: Header, check: Check) -> Iterator[Step]:
    with ZooKeeper(settings.zookeeper()) as zookeeper:
        live, cluster = zookeeper.live_servers(), zookeeper.cluster_id()
    same = ": that is FILE's own cluster, and will be refused" if cluster == header.cluster_id else ""
    yield Step("slave", f"HBase cluster {cluster} at {settings.zookeeper()}, {len(live)} region servers{same}")
    yield Step("its state table", f"{settings.state_table}, by Thrift {settings.thrift()}")
    if check.wait_s:
        yield Step("rounds", f"until complete, or for {check.wait_s:.0f} s")


def _followed(master: Settings, header: Header) -> Iterator[Step]:
    with ZooKeeper(master.zookeeper()) as zookeeper:
        refuse_another(zookeeper.cluster_id(), header)
        live = zookeeper.live_servers()
    if master.knows_thrift:
        yield Step("cut", "the last look at the master: what was acknowledged by then is in scope, of files FILE's")
    read = f"by Thrift {master.thrift()}" if master.knows_thrift else "its queues alone: no Thrift is known"
    yield Step("master", f"{len(live)} region servers at {master.zookeeper()}, read again in each round, {read}")


def _file(header: Header, counts: Mapping[str, int]) -> str:
    rows = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    age = duration(max(0, now_ms() - header.created_ms))
    written = f"written {iso(header.created_ms)} ({age} ago)"
    return f"{header.side} {header.cluster_id}, {header.half}, {written}, rows: {rows}"


def _cut(header: Header) -> str:
    since = "" if header.shutdown_ms is None else ", the shutdown time"
    return f"{iso(header.cut_ms)}{since}: what was acknowledged by then is in scope"
