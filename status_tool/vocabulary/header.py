"""Header of a status file: one side's cluster, times and scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MASTER, SLAVE = "master", "slave"
SIDES = (MASTER, SLAVE)
HALF_NAMES = {"hbase": "HBase", "hdfs": "HDFS"}
"""The halves of a status, as `--only` and `Header.half` call them, and their names in messages."""
HALVES = ("both", *HALF_NAMES)
RECORDED, BY_OPTION, BY_CHECK = "recorded", "option", "check"
SHUTDOWN_SOURCES = (RECORDED, BY_OPTION, BY_CHECK)
"""A shutdown time was recorded on the master, given by -s when FILE was written, or by -s of the check itself."""
SKEW_MS = 30_000
"""Difference that clocks of one cluster may have. HBase rejects region servers with more skew
(`hbase.master.maxclockskew`); ZooKeeper's clock may be off by as much."""

_FOREVER_MS = 1 << 63


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a status file, and of a live source."""

    side: str
    """`master` or `slave`."""
    cluster_id: str
    created_ms: int
    cut_ms: int
    """Everything acknowledged before this is in scope."""
    shutdown_ms: int | None = None
    """The recorded or given shutdown time; None: none was known and the cut is the moment of the dump."""
    barrier_issued_ms: int | None = None
    """The tool's clock when it put the barrier token; origins' clocks are compared with it."""
    coverage_ms: int | None = None
    """Since when every region server of the cluster is known to have been tracked, on a master by the write-time
    tracker, on a slave by the other one; None: never."""
    state_since_ms: int | None = None
    """Since when the state table has been kept; None: not known, as of HDFS alone."""
    state_back_ms: int | None = None
    """When the state table was last found to have lost rows or gone back to an earlier state; None: never."""
    flush_period_ms: int = 20000
    state_table: str = "replicationstate"
    """The cluster's own state table, which is never in scope; a user's table may have that name on another cluster."""
    status_table: str = ""
    """The cluster's own table of published status files, which is never in scope; empty: it has none."""
    cluster_key: str = ""
    """`quorum:port:/znode` of the cluster, when known."""
    filesystem: str = ""
    """Where HBase's files are, as `hdfs://host:port`; empty if no site file sets it."""
    tables: tuple[str, ...] = ()
    """Scope filter the file was written with; empty: all."""
    namespaces: tuple[str, ...] = ()
    hdfs_paths: tuple[str, ...] = ()
    """The HDFS paths that were checked, without scheme and authority."""
    hdfs_absent: tuple[str, ...] = ()
    """Those of them, named by `-f` or the configuration, that do not exist."""
    hdfs_left_out: tuple[str, ...] = ()
    """Folders and patterns that were left out below them, besides those that always are."""
    hdfs_excluded: tuple[str, ...] = ()
    """Those of them that `--exclude` named."""
    hdfs_cluster_id: str = ""
    """HDFS's own cluster id; empty if no NameNode reports it, or no HDFS was read."""
    hdfs_pool_id: str = ""
    """HDFS's block pool id: no two namespaces share one; of a view those of all. `file:`: local folders alone."""
    half: str = "both"
    """`both`, `hbase` or `hdfs`: what the file holds."""
    tool_version: str = ""
    """For whoever looks into a FILE that somebody sends."""
    evidence: str = "exact"
    """`timestamps` for a file of the original tool, `witnessed` for one from witnesses."""
    notices: tuple[str, ...] = ()
    shutdown_from: str = ""
    """The source of the shutdown time: one of `SHUTDOWN_SOURCES`; empty: unknown, or there is none."""
    pruned: Mapping[str, int] = field(default_factory=dict)
    """Prunings of a slave, by master cluster id: FILEs with an earlier barrier need segments that are pruned."""
    witnesses: tuple[str, ...] = ()
    """Ids of the folders of witnesses that were asked: alone (`is_witnessed`), or beside the trackers."""
    witness_peer: str = ""
    """Id of their peer; empty: there are none."""
    unwitnessed: str = ""
    """Reason for which they may lack entries from before the cut; empty: they have all of them."""
    read_until_ms: int | None = None
    """When the last row had been read; None: it is still being read."""

    @property
    def after_cut(self) -> range:
        """Return the times of a change after the cut, as the side's own clocks may tell them."""
        read_by = _FOREVER_MS if self.read_until_ms is None else self.read_until_ms + SKEW_MS
        return range(self.cut_ms + 1, read_by + 1)

    @property
    def is_witnessed(self) -> bool:
        """Return True for a FILE from witnesses alone: it has what was shipped, not what was written."""
        return self.evidence == "witnessed"
