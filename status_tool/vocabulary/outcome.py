"""Outcome of a verification, with problems, causes, repairs and the data of a page's pictures; recovery points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from status_tool.printable import printable_key
from status_tool.vocabulary.verdicts import EXIT_CODES, SEVERITY, Evidence, FileStatus, Status, Verdict


@dataclass(frozen=True, slots=True)
class Repair:
    """Commands that copy missing rows to the slave, quoted for a shell; either of the two ways suffices."""

    copy_table: str
    """To be run on the master: copies the affected rows and write times, deletes included."""
    hash_table: str
    """To be run on the master, before `sync_table`: hashes those rows into a folder of its HDFS."""
    sync_table: str
    """To be run on the slave: compares by the hashes and changes only what differs."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not complete or not verifiable. Times are epoch ms; `advice` says what to do about it."""

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

    def to_json(self) -> dict[str, Any]:
        """Return the contract's keys, in its order."""
        start, end = (None if key is None else printable_key(key) for key in (self.start_key, self.end_key))
        known = asdict(self) | {"kind": str(self.kind), "start_key": start, "end_key": end, "code": self.code or None}
        return dict.fromkeys(_CONTRACT) | known


_CONTRACT = (
    *("kind", "table", "region", "origin", "from_seq", "to_seq", "written_from_ms", "written_to_ms", "path", "detail"),
    *("advice", "lag_ms"),
)
"""The order of a problem's keys; all others follow in their own."""


@dataclass(frozen=True, slots=True)
class NotReplicated:
    """Tables and families in scope that are never shipped to this slave."""

    tables: tuple[str, ...] = ()
    """Tables without a replicated family, or that the peer leaves out."""
    families: tuple[tuple[str, str], ...] = ()
    """Table and family, where other families of the table are replicated."""


@dataclass(frozen=True, slots=True)
class LaterWrites:
    """Writes to a table after the shutdown time: the number of streams, and the newest write (epoch ms)."""

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
    """Number of regions that the original's timestamps rule alone would call complete."""
    evidence_by: dict[Evidence, int] = field(default_factory=dict)
    """Number of regions by evidence; `evidence` is the weakest of them."""
    accepted_tables: tuple[str, ...] = ()
    """The tables in scope of which the past rests on the operator's word."""
    not_replicated: NotReplicated | None = None
    """None: unknown."""
    later: tuple[LaterWrites, ...] = ()
    """Tables in scope that were written to after the shutdown time, whatever its source."""


@dataclass(frozen=True, slots=True)
class HdfsOutcome:
    """The HDFS half. `files` counts files by status and is never bounded."""

    verdict: Verdict
    files: dict[FileStatus, int]
    is_strict: bool = False
    """True if files that only the slave has are at fault (`--strict-extra`)."""

    @property
    def at_fault(self) -> int:
        """Number of files that are not proven equal."""
        harmless = (FileStatus.MATCH, *(() if self.is_strict else (FileStatus.EXTRA,)))
        return sum(count for status, count in self.files.items() if status not in harmless)


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
    state: str = ""
    """The verdict that colours it; empty: none."""
    href: str = ""
    """Place that it opens, within the page; empty: nothing."""


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """Clusters and the peers between them; every link's ends are among the clusters."""

    clusters: tuple[Cluster, ...]
    links: tuple[PeerLink, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one verification. `problems` is bounded and sorted, worst first."""

    hbase: HBaseOutcome | None
    hdfs: HdfsOutcome | None
    problems: tuple[Problem, ...]
    cut_ms: int
    shutdown_ms: int | None = None
    master_cluster_id: str = ""
    slave_cluster_id: str = ""
    peer_id: str | None = None
    notices: tuple[str, ...] = field(default=())
    """Notices that are not problems: substitutions, baselines, what was left out."""
    clusters: ClusterMap | None = None
    """Which clusters replicate to which, as far as the run knows; None if no peer was recorded."""
    max_problems: int = 100
    """Number of problems, or of groups of them, to be listed."""
    is_last: bool = False
    """True if no round follows: only then the overview is made."""
    overview: Overview = field(default_factory=lambda: Overview())  # defined below
    """All of it by table and cause."""
    shutdown_from: str = ""
    """Source of it, as `Header.shutdown_from`."""
    queued_bytes: int | None = None
    """Bytes of the peer's WALs that were still to be shipped when FILE was written; None: unknown, or not in scope."""
    seen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By table what the slave's trackers had seen of its content, as a proof by rows keeps it (`rules.kept_proofs`)."""
    accepts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By table what the slave has to record of the operator's word (`rules.kept_proofs`)."""
    limits: tuple[str, ...] = ()
    """Restrictions of the verdict, in words: tables and namespaces that were chosen, a half that was not checked."""
    master_address: str = ""
    """`quorum:port:/znode`, or the NameNode's; empty if no header knows it."""
    slave_address: str = ""
    slave_taken_ms: int | None = None
    """When FILE2 was written; None: the slave was read live."""
    needs_new_file: bool = False
    """True if waiting on the slave cannot make it complete, because of what FILE holds of the master's queues."""
    is_settling: bool = False
    """True if trackers of the slave have still to record openings of regions, which they do by themselves."""
    undumped: str = ""
    """The error that prevented the dump of `-d`."""

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


@dataclass(frozen=True, slots=True)
class Group:
    """Problems of one table with one cause, in words."""

    kind: str
    code: str
    table: str | None
    count: int
    example: Problem
    todo: str = ""
    lag_ms: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    command: str = ""
    """Command that repairs the example, where a table's repair does not: quoted for a shell."""


@dataclass(frozen=True, slots=True)
class TableRepair:
    """Repair that brings a table's missing rows to the slave, and its proof; one per table, whatever its causes."""

    table: str
    reasons: tuple[str, ...]
    """The causes, each with its count: `gap: 200`."""
    stuck: bool
    """True if waiting cannot resolve it; else the rows may still arrive by themselves."""
    first: tuple[str, ...]
    """Steps by hand that come first."""
    commands: Repair
    dry_run: str
    """To be run on the slave after `commands.hash_table`: compares and changes nothing."""
    since_ms: int | None
    """Up to when the table's past may be accepted once it has been copied; None if it needs a closer look."""
    check: str
    """The check after it."""
    is_proof: bool
    """True if `check` compares rows; else it takes the operator's word, as no rows are compared with a master without
    trackers."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table's regions by status."""

    table: str
    regions: dict[Status, int]
    lag_ms: int | None = None

    @property
    def worst(self) -> Status:
        """The worst status of its regions."""
        return max((status for status, count in self.regions.items() if count), key=SEVERITY.__getitem__)


@dataclass(frozen=True, slots=True)
class Tile:
    """One region of a table in key order, or several neighbours as one where there are too many."""

    table: str
    worst: Status
    regions: int
    at_fault: int
    region: str | None
    """The worst of them."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of one folder by status."""

    path: str
    files: dict[str, int]


AHEAD_MS = 30_000
"""Difference that clocks may have: a time of another host that lies further ahead of this one's is not believed."""

LAG_BOUNDS_MS = {
    **{1_000: "1 second", 10_000: "10 seconds", 60_000: "1 minute", 600_000: "10 minutes", 3_600_000: "1 hour"},
    **{86_400_000: "1 day"},
}
"""Bounds between groups of lags, with their names."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """A tracked region server; times are epoch ms."""

    cluster: str
    server: str
    role: str = ""
    live: bool | None = None
    tracked: bool | None = None
    echoed: bool | None = None
    flush_ms: int | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Result of an earlier check of the same clusters; times are epoch ms."""

    at_ms: int
    verdict: str | None
    """None: it ended with an error."""
    regions_at_fault: int
    files_at_fault: int
    lag_ms: int | None


@dataclass(frozen=True, slots=True)
class Drawing:
    """Data of every region and file for the pages' pictures; bounded, whatever the clusters' size."""

    tiles: tuple[Tile, ...] = ()
    """In key order of their tables."""
    folders: tuple[Folder, ...] = ()
    more_folders: int = 0
    lags: tuple[int, ...] = ()
    """Number of regions that are behind by less than each of `LAG_BOUNDS_MS`, and by more."""
    problems: tuple[Problem, ...] = ()
    """More than the outcome lists."""
    servers: tuple[ServerState, ...] = ()


@dataclass(frozen=True, slots=True)
class Overview:
    """The whole of an outcome, by table and cause."""

    groups: tuple[Group, ...] = ()
    """Worst first."""
    repairs: tuple[TableRepair, ...] = ()
    tables: tuple[TableLine, ...] = ()
    """Worst first; empty if they were not requested."""
    oldest_hole_ms: int | None = None
    """Since when something is missing: the oldest write time of a gap."""
    drawing: Drawing | None = None
    """Drawing of a page; None if there is to be none."""


@dataclass(frozen=True)
class Beyond:
    """Extent of a table's entries beyond the point, by heads and segments; None where unknown."""

    newest_ms: int | None = None
    """The newest entry that is known, whether it is here or not."""
    missing: int | None = None
    """About how many entries are known to be missing."""


@dataclass(frozen=True)
class TablePoint:
    """A table's recovery point; None: there is none."""

    point_ms: int | None
    held_back_by: str | None
    beyond: Beyond = field(default_factory=Beyond)
    by_word: bool = False
    """True if the table's past rests on the operator's word (`--since`)."""

    @property
    def proof(self) -> str:
        """Return what the point rests on beside the streams, in words; empty if nothing."""
        return ", in part by your word (--since)" if self.by_word else ""


@dataclass(frozen=True)
class RecoveryPoint:
    """The answer. Times are epoch ms on the publisher's clock; `read_ms` is this host's, of the list of files."""

    slave_cluster_id: str
    master_cluster_id: str | None
    read_ms: int
    point_ms: int | None
    skew_ms: int | None
    """By how much the clocks of the master's servers and of the publisher may differ at most; None: unknown."""
    held_back_by: str | None
    evidence: str | None
    """Evidence of the point, as `hbase.evidence` of a check; None: there is no point."""
    tables: Mapping[str, TablePoint]
    newest_ms: int | None
    """The cut of the newest file that is here."""
    interval_ms: int | None
    published: int
    judged: int
    notices: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    """What the point does not cover, in words."""

    @property
    def points(self) -> Mapping[str, int | None]:
        """Return the points by table; that of the whole has an empty name."""
        return {"": self.point_ms, **{name: table.point_ms for name, table in self.tables.items()}}

    @property
    def ahead_ms(self) -> int | None:
        """Return how far the point lies ahead of this host's clock, if that is more than clocks may differ."""
        ahead_ms = 0 if self.point_ms is None else self.point_ms - self.read_ms
        return ahead_ms if ahead_ms > AHEAD_MS else None

    @property
    def age_ms(self) -> int | None:
        """Age of the point by this host's clock; None without a point, or if it lies ahead."""
        if self.point_ms is None or self.ahead_ms is not None:
            return None
        return max(0, self.read_ms - self.point_ms)
