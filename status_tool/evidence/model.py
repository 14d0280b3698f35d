"""The vocabulary of a verification: verdicts, problems, outcomes. No I/O, no Spark, no printing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from status_tool.evidence.overview import Overview

Row = Mapping[str, Any]
"""A row of a status file by column (`status_file.schema`); a column that is null may be left out."""


class Status(StrEnum):
    """What is known of a stream or region, from best to worst (`SEVERITY` gives the order).

    An incomplete status outranks UNVERIFIABLE because exit code 1 outranks 3.
    """

    COMPLETE = "complete"
    UNVERIFIABLE = "unverifiable"
    BEHIND = "behind"
    MISSING = "missing"
    GAP = "gap"


SEVERITY: dict[Status, int] = {status: rank for rank, status in enumerate(Status)}
INCOMPLETE_REGIONS = (Status.GAP, Status.MISSING, Status.BEHIND)


class FileStatus(StrEnum):
    """What is known of one file."""

    MATCH = "match"
    EXTRA = "extra"
    UNVERIFIABLE = "unverifiable"
    INCOMPARABLE = "incomparable"
    MISSING = "missing"
    MISMATCH = "mismatch"


class Verdict(StrEnum):
    """The answer for a half or for the whole run."""

    COMPLETE = "complete"
    UNVERIFIABLE = "unverifiable"
    INCOMPLETE = "incomplete"


EXIT_CODES: dict[Verdict, int] = {Verdict.COMPLETE: 0, Verdict.INCOMPLETE: 1, Verdict.UNVERIFIABLE: 3}


class Evidence(StrEnum):
    """How strong the proof for a region is, from strongest to weakest."""

    EXACT = "exact"
    ROWS = "rows"
    """Digests of the rows themselves; no status file as such rests on it."""
    ORDERED = "ordered"
    TIMESTAMPS = "timestamps"


@dataclass(frozen=True, slots=True)
class Repair:
    """Commands that bring what is missing to the slave, quoted for a shell; either of the two ways is enough."""

    copy_table: str
    """To be run on the master: copies what was written in the times and rows at fault, deletes included."""
    hash_table: str
    """To be run on the master, before `sync_table`: hashes those rows into a folder of its HDFS."""
    sync_table: str
    """To be run on the slave: compares by the hashes and changes only what differs."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing at fault or not verifiable. Times are epoch ms; `advice` says what to do about it."""

    kind: str
    """A Status or FileStatus value: `gap`, `behind`, `missing`, `unverifiable`, `mismatch`, `extra`, …"""
    detail: str
    table: str | None = None
    region: str | None = None
    origin: str | None = None
    """Server name `host,port,startcode` of the origin, or its id in hex where the name is unknown."""
    from_seq: int | None = None
    to_seq: int | None = None
    written_from_ms: int | None = None
    written_to_ms: int | None = None
    path: str | None = None
    lag_ms: int | None = None
    start_key: bytes | None = None
    end_key: bytes | None = None
    advice: str | None = None
    repair: Repair | None = None
    code: str = ""
    """Why, as one of the codes of `findings`: problems of one table and code have one cause."""


@dataclass(frozen=True, slots=True)
class NotReplicated:
    """What of the master's tables in scope never reaches this slave: it is written, and nobody ships it."""

    tables: tuple[str, ...] = ()
    """Tables without a replicated family, or that the peer leaves out."""
    families: tuple[tuple[str, str], ...] = ()
    """Table and family, of tables that are replicated otherwise."""


@dataclass(frozen=True, slots=True)
class LaterWrites:
    """What was written to a table after the shutdown time: how many streams, and the newest write (epoch ms)."""

    table: str | None
    streams: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class HBaseOutcome:
    """The HBase half. `regions` counts regions by their worst stream and is never bounded."""

    verdict: Verdict
    evidence: Evidence
    regions: dict[Status, int]
    worst_lag_ms: int | None = None
    timestamps_complete: int = 0
    """How many of the regions the original's timestamps rule alone would call complete."""
    evidence_by: dict[Evidence, int] = field(default_factory=dict)
    """How many regions rest on each evidence; `evidence` is the weakest of them."""
    ordered_tables: tuple[str, ...] = ()
    """The asked tables of which the peer ships only some replicated families, so that holes are expected."""
    not_replicated: NotReplicated | None = None
    """None: not known."""
    later: tuple[LaterWrites, ...] = ()
    """Asked tables that were written to after the shutdown time, whoever told it."""


@dataclass(frozen=True, slots=True)
class HdfsOutcome:
    """The HDFS half. `files` counts files by status and is never bounded."""

    verdict: Verdict
    files: dict[FileStatus, int]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster in a picture: `name` is its id, else its key; `role` is empty for one that was not read."""

    name: str
    key: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class PeerLink:
    """A replication peer that leads from one cluster to another, both by name."""

    source: str
    target: str
    peer: str
    note: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """Clusters and the peers between them; every link's ends are among the clusters."""

    clusters: tuple[Cluster, ...]
    links: tuple[PeerLink, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one verification found. `problems` is bounded and sorted, worst first."""

    hbase: HBaseOutcome | None
    hdfs: HdfsOutcome | None
    problems: tuple[Problem, ...]
    cut_ms: int
    shutdown_ms: int | None = None
    master_cluster_id: str = ""
    slave_cluster_id: str = ""
    peer_id: str | None = None
    notices: tuple[str, ...] = field(default=())
    """Things to be said that are no problem: what was used instead, baselines, what was left out."""
    clusters: ClusterMap | None = None
    """Which clusters replicate to which, as far as the run knows; None where no peer was recorded."""
    max_problems: int = 100
    """How many problems, or groups of them, are to be listed."""
    overview: Overview | None = None
    """All of it by table and cause; None where it was not asked for, as while a run still waits."""
    shutdown_from: str = ""
    """As `Header.shutdown_from`."""
    needs_new_file: bool = False
    """Whether no waiting on the slave can make it complete, because of what FILE knows of the master's queues."""

    @property
    def verdict(self) -> Verdict:
        """The worst of the checked halves; a run that checked nothing proves nothing."""
        halves = [half.verdict for half in (self.hbase, self.hdfs) if half is not None]
        for verdict in (Verdict.INCOMPLETE, Verdict.UNVERIFIABLE):
            if verdict in halves:
                return verdict
        return Verdict.COMPLETE if halves else Verdict.UNVERIFIABLE

    @property
    def exit_code(self) -> int:
        """The contract's exit code for the verdict."""
        return EXIT_CODES[self.verdict]


RECORDED, BY_OPTION, BY_CHECK = "recorded", "option", "check"
SHUTDOWN_SOURCES = (RECORDED, BY_OPTION, BY_CHECK)
"""A shutdown time was recorded on the master, given by -s when FILE was written, or by -s of the check itself."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a status file says of itself, and what a live source says of its cluster."""

    side: str
    """`master` or `slave`."""
    cluster_id: str
    created_ms: int
    cut_ms: int
    """Everything acknowledged before this is asked of the slave."""
    shutdown_ms: int | None = None
    """The recorded or given shutdown time; None: none was known and the cut is the moment of the dump."""
    barrier_issued_ms: int | None = None
    """The tool's clock when it put the barrier token; origins' clocks are compared with it."""
    coverage_ms: int | None = None
    """Since when every region server of the cluster is known to have been tracked; None: never."""
    flush_period_ms: int = 20000
    state_table: str = "replicationstate"
    """The cluster's own state table, which is never asked; a user's table may have that name on another cluster."""
    cluster_key: str = ""
    """`quorum:port:/znode` of the cluster, when known."""
    filesystem: str = ""
    """Where HBase's files are, as `hdfs://host:port`; empty where no site file tells."""
    tables: tuple[str, ...] = ()
    """Scope filter the file was written with; empty: all."""
    namespaces: tuple[str, ...] = ()
    hdfs_paths: tuple[str, ...] = ()
    """The HDFS paths that were checked, without scheme and authority."""
    hdfs_absent: tuple[str, ...] = ()
    """Those of them, named by `-f` or the configuration, at which there is nothing."""
    hdfs_cluster_id: str = ""
    """HDFS's own cluster id; empty where no NameNode tells, or no HDFS was looked at."""
    hdfs_pool_id: str = ""
    """HDFS's block pool id: no two namespaces share one. `file:` where only local folders were looked at."""
    half: str = "both"
    """`both`, `hbase` or `hdfs`: what the file holds."""
    tool_version: str = ""
    evidence: str = "exact"
    """`timestamps` for a file of the original tool."""
    notices: tuple[str, ...] = ()
    shutdown_from: str = ""
    """Who told the shutdown time: one of `SHUTDOWN_SOURCES`; empty: not known, or there is none."""
    pruned: Mapping[str, int] = field(default_factory=dict)
    """Of a slave, by master cluster id: FILEs with a barrier from before this ask for segments that are pruned."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run is asked about."""

    tables: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    since_ms: int | None = None
    peer_id: str | None = None
    check_hbase: bool = True
    check_hdfs: bool = True
    max_problems: int = 100
    strict_extra: bool = False
    accepted_drift: frozenset[str] = frozenset()
    """Tables of which the slave may keep less than the master."""
    ignore_later_writes: bool = False
    """Whether writes after a recorded shutdown time are no reason for doubt."""
    offline: bool = False
    """Whether the slave's side is from a file, too, so that it may be older than the master's."""
