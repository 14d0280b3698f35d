"""The question of a check, known before Spark starts: one value, from both sides' headers and few small rows.

Pure: the live check, the one from files, `--follow` and the simulation all use `question_of`.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from status_tool.errors import StatusFileError, UsageError
from status_tool.explain.cluster_map import KnownSide, known_clusters
from status_tool.printable import few, iso, safe
from status_tool.rules.peers import (
    PeerFacts,
    choose_peer,
    disabled_notices,
    family_filter,
    may_lead_to,
    not_replicated,
    own_shipping,
    parse_peer,
    shipped,
    ships,
    withheld,
)
from status_tool.rules.queue_proofs import QueueFacts, queue_facts
from status_tool.rules.sides import LOCAL_POOL, asked_filter, cannot_report, is_pruned, recorded_filter, same_hdfs
from status_tool.rules.tables import local_families, replicated_families
from status_tool.rules.witnessed import witness_facts
from status_tool.rules.words import covers_file
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import ClusterMap, NotReplicated, Outcome
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Baseline, Scope, TableFilter
from status_tool.vocabulary.selection import LOCAL, ChosenFiles, Exclusions, is_glob, overlap

NAMED_LIMITS = 3
"""Number of tables or paths that a restriction names."""
HDFS_NOTICE = "HDFS: "
"""Beginning of notices about that half; where it is not checked they say nothing of the check."""


@dataclass(frozen=True)
class SideFacts:
    """A side before its streams and files are read."""

    header: Header
    rows: tuple[Row, ...] = ()
    """Its `peer`, `table`, `server` and `queue` rows; other rows are ignored."""
    region_tables: frozenset[str] = frozenset()
    """Names of tables that have a region."""
    legacy: bool = False
    """True if it was written by the original tool, which records no peers."""

    def kind(self, kind: str) -> list[Row]:
        """Return the rows of a kind."""
        return [row for row in self.rows if row["kind"] == kind]

    @cached_property
    def peers(self) -> list[PeerFacts]:
        """The side's own peers; raises `StatusFileError` if one cannot be parsed."""
        return [parse_peer(row.get("detail")) for row in self.kind("peer")]

    @property
    def tables(self) -> frozenset[str]:
        """Names of tables that have a region or a descriptor."""
        return self.region_tables | {row["table"] for row in self.kind("table") if row.get("table") is not None}

    @cached_property
    def families(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Return by table the families with replication scope 1 and those without, if the descriptor could be read."""
        known = {
            row["table"]: (replicated_families(row.get("detail")), local_families(row.get("detail")))
            for row in self.kind("table")
        }
        return {
            table: (ours, local) for table, (ours, local) in known.items() if ours is not None and local is not None
        }

    @property
    def replicated(self) -> dict[str, tuple[str, ...]]:
        """Replicated families by table, where the descriptor could be read."""
        return {table: ours for table, (ours, _) in self.families.items()}


@dataclass(frozen=True)
class Question:
    """Question of a check: the scope on the slave, and the facts of the way there."""

    master: Header
    slave: Header
    scope: Scope
    """With the halves that both sides hold."""
    peer: PeerFacts | None
    """The master's peer that leads to the slave; None: HBase is not in scope, or FILE is of the original tool."""
    queues: QueueFacts
    """Proofs by the queues and the peer's configuration, and on which evidence each table rests."""
    shipped: Mapping[str, tuple[str, ...]]
    """By table in scope, its families that the peer ships; tables without any are left out."""
    not_replicated: NotReplicated | None
    clusters: ClusterMap | None
    files: ChosenFiles
    """The files of the master in scope."""
    notices: tuple[str, ...]
    other_peers: tuple[str, ...] = ()
    """Ids of peers that lead to the slave as well, or may, where `--peer` has chosen one."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Tables of the master that the peer does not replicate."""
        return self.queues.left_out

    @property
    def files_of_slave(self) -> ChosenFiles:
        """The slave's files in scope: those that FILE leaves out, or FILE2 has beside its paths, are no extra ones."""
        roots, scope = self.files.roots, self.scope
        # A live slave lists these paths alone. With --map-path its names are others than FILE's.
        beside = self.files.within or (roots if scope.offline else ())
        known = () if scope.path_map.pairs else self.slave.hdfs_left_out
        globs = (*self.files.left_out, *(glob for glob in self.master.hdfs_left_out if glob not in known))
        return ChosenFiles(beside, roots, globs, scope.path_map)

    def answered(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the question's own facts added."""
        hbase = outcome.hbase
        if hbase is not None and self.peer is not None:
            hbase = dataclasses.replace(hbase, not_replicated=self.not_replicated)
        return dataclasses.replace(
            outcome,
            hbase=hbase,
            shutdown_ms=self.master.shutdown_ms,
            shutdown_from=self.master.shutdown_from,
            master_cluster_id=self.master.cluster_id,
            slave_cluster_id=self.slave.cluster_id,
            master_address=self.master.cluster_key or self.master.filesystem,
            slave_address=self.slave.cluster_key or self.slave.filesystem,
            slave_taken_ms=self.slave.created_ms if self.scope.offline else None,
            limits=tuple(self._limits()),
            peer_id=str(self.peer["id"]) if self.peer else None,
            notices=tuple(
                notice
                for notice in dict.fromkeys((*self.notices, *outcome.notices))
                if self.scope.check_hdfs or not notice.startswith(HDFS_NOTICE)
            ),
            clusters=self.clusters if hbase is not None else None,
            queued_bytes=self.queues.left_bytes if hbase is not None else None,
        )

    def _limits(self) -> Iterator[str]:
        """Yield what the verdict does not cover, although a run without options and with whole files would."""
        if self.scope.check_hbase:
            filters = (
                (asked_filter(self.scope), "chosen"),
                (recorded_filter(self.master), "held by FILE"),
                (recorded_filter(self.slave), "held by FILE2"),
            )
            chosen = [(words_of(one), why) for one, why in filters if not one.everything]
            # Of filters in the same words the dictionary keeps the last, here the one that the user has chosen.
            yield from (f"only {words} ({why})" for words, why in dict(reversed(chosen)).items())
            if self.other_peers and self.peer is not None:
                others = few(self.other_peers, NAMED_LIMITS)
                yield f"only what peer {self.peer['id']} ships (--peer), not what peer {others} does"
        else:
            yield "HBase not checked"
        if not self.scope.check_hdfs:
            yield "HDFS not checked"
            return
        if self.files.within:
            yield f"of HDFS only {few(self.files.within, NAMED_LIMITS)} (-f)"
        for globs, why in ((self.files.left_out, "--exclude"), (self.master.hdfs_excluded, "--exclude, held by FILE")):
            if globs:
                yield f"of HDFS nothing that matches {few(globs, NAMED_LIMITS)} ({why})"


def words_of(chosen: TableFilter) -> str:
    """Return the tables and namespaces of a filter, of many only the first."""
    tables = [f"table {name}" for name in sorted(chosen.tables)]
    namespaces = [f"namespace {name}" for name in sorted(chosen.namespaces)]
    return few([*tables, *namespaces], NAMED_LIMITS)


def question_of(
    master: SideFacts,
    slave: SideFacts,
    scope: Scope,
    hdfs_paths: tuple[str, ...] = (),
    excluded: tuple[str, ...] = (),
) -> Question:
    """Return the question of `scope` about two sides.

    `hdfs_paths` are those of `-f`, `excluded` the globs of `--exclude`.

    Raises `UsageError` or `StatusFileError` where the two cannot be compared; the message says what to do.
    """
    refuse_silent(slave.rows, scope)
    header = _paths_in_scope(master.header, hdfs_paths)
    refuse_since(header, scope.since)
    scope = _narrowed(scope, header, slave.header)
    peer = _peer(master, slave.header, scope)
    excludes = any((excluded, header.hdfs_excluded, slave.header.hdfs_excluded))
    scope = dataclasses.replace(scope, excludes=excludes)
    # After `_narrowed`: the sides need not fit in a half that is not compared.
    _refuse_same_hdfs(header, slave.header, scope)
    _refuse_other_disk(slave.header, scope)
    refuse_pruned(header, slave.header, scope)
    queues = _queue_facts(master, peer, scope, slave.header.state_since_ms) if peer else QueueFacts()
    if peer and header.witnesses:
        queues = _witnessed(master, peer, scope, queues)
    return Question(
        master=header,
        slave=slave.header,
        scope=scope,
        peer=peer,
        queues=queues,
        shipped=_shipped(master, peer, scope) if peer else {},
        not_replicated=_not_replicated(master, peer, scope) if peer else None,
        clusters=_clusters(master, slave) if scope.check_hbase and not master.legacy else None,
        files=ChosenFiles(hdfs_paths, tuple(header.hdfs_paths) or hdfs_paths, excluded),
        notices=(
            *header.notices,
            *slave.header.notices,
            *(disabled_notices(peer) if peer else ()),
            *_lacking_files(header, slave.header, scope),
        ),
        other_peers=_other_peers(master, peer, slave.header) if peer and scope.peer_id is not None else (),
    )


def refuse_silent(rows: Iterable[Row], scope: Scope) -> None:
    """Raise `StatusFileError` if the slave's HBase cannot report what has arrived: everything would look missing."""
    silent = cannot_report(rows) if scope.check_hbase else []
    if silent:
        raise StatusFileError(
            f"the slave's HBase cannot report what replication has applied: {few(silent, 1)} has no hook "
            "postReplicationSinkBatchMutate (HBASE-27529); upgrade the slave to HBase 2.5.4 or later, or check HDFS "
            "alone with --only hdfs"
        )


def refuse_since(master: Header, since: Baseline) -> None:
    """Raise `UsageError` for a baseline that leaves nothing of the scope or of a table: *complete* would be empty."""
    times = {f"{table}={time_ms}": time_ms for table, time_ms in since.by_table.items()}
    if since.everything_ms is not None:
        times[str(since.everything_ms)] = since.everything_ms
    for given, time_ms in sorted(times.items()):
        if time_ms > master.cut_ms:
            # The event that it accepts may have happened between the shutdown and `run -m`.
            barrier_ms = None if master.shutdown_ms is None else master.barrier_issued_ms
            later = "" if barrier_ms is None else f"; -s {barrier_ms} checks what was written after the shutdown, too"
            raise UsageError(
                f"--since {given} lies after the cut of the master's status ({master.cut_ms}), so that everything"
                " would be accepted and nothing checked: write the master's status again (run -m), or give an earlier"
                f" time{later}"
            )


def _paths_in_scope(master: Header, paths: tuple[str, ...]) -> Header:
    """Return the header for the paths of `run -i -f`. Nothing is known about paths that FILE does not hold."""
    if not paths or not master.hdfs_paths:
        return master
    exclusions = Exclusions().also(master.hdfs_left_out)
    held = [path for path in paths if any(_holds(root, path, exclusions) for root in master.hdfs_paths)]
    gone = [path for path in paths if any(_covers(root, path) for root in master.hdfs_absent)]
    unheld = [path for path in paths if path not in held]
    return dataclasses.replace(
        master, hdfs_paths=narrowed_roots(master, paths), hdfs_absent=tuple(dict.fromkeys([*gone, *unheld]))
    )


def narrowed_roots(master: Header, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the roots of a check of these paths of `-f`: they, and what they have of FILE's own.

    The listing of a path may leave out a root inside it.
    """
    there = (root for root in master.hdfs_paths if root not in paths and root not in master.hdfs_absent)
    inner = (overlap(path, root) for root in there for path in paths)
    return tuple(dict.fromkeys([*paths, *(root for root in inner if root is not None)]))


def _lacking_files(master: Header, slave: Header, scope: Scope) -> Iterator[str]:
    """Yield a notice if FILE2 may lack files of the slave that FILE asks for: they are *missing* then."""
    if not (scope.offline and scope.check_hdfs and slave.hdfs_paths):
        return
    exclusions = Exclusions().also(slave.hdfs_left_out)
    wanted = [path.removeprefix(LOCAL) for path in scope.path_map.slave_roots(master.hdfs_paths)]
    lacking = [path for path in wanted if not any(_holds(root, path, exclusions) for root in slave.hdfs_paths)]
    left_out = sorted({*slave.hdfs_left_out} - {*master.hdfs_left_out})
    names = [f"all of {path}" for path in lacking] + [f"{glob}, which it leaves out" for glob in left_out]
    if names:
        yield (
            f"FILE2 may not hold {few(names, NAMED_LIMITS)}: a file that is missing there may be on the slave; write it"
            " again with the paths of FILE (run -o FILE2 -f PATHS)"
        )


def _holds(root: str, path: str, exclusions: Exclusions) -> bool:
    """Return True if a listing of the root reaches all that the path stands for."""
    return _covers(root, path) and not exclusions.may_hide(path, root)


def _covers(root: str, path: str) -> bool:
    """Return True if each match of the path is a match of the root, or below one.

    A glob in the path is covered by the same one or by `*`: of others, nobody knows what they match.
    """
    ours, theirs = (one.strip("/").split("/") if one.strip("/") else [] for one in (root, path))
    if len(ours) > len(theirs):
        return False
    return all(
        our in (their, "*") if is_glob(their) else fnmatch.fnmatchcase(their, our)
        for our, their in zip(ours, theirs, strict=False)
    )


def _narrowed(scope: Scope, master: Header, slave: Header) -> Scope:
    """Return the scope without a half that one of the sides does not hold."""
    halves = [header.half for header in (master, slave)]
    hbase = scope.check_hbase and "hdfs" not in halves
    hdfs = scope.check_hdfs and "hbase" not in halves
    if not (hbase or hdfs):
        raise UsageError("nothing to check: the two sides hold different halves (--only)")
    return dataclasses.replace(scope, check_hbase=hbase, check_hdfs=hdfs)


def _peer(master: SideFacts, slave: Header, scope: Scope) -> PeerFacts | None:
    """Return the peer that leads to the slave; None if HBase is not checked. Rejects a file of the wrong cluster."""
    if master.legacy:
        return None
    header = master.header
    is_same = (header.cluster_id, header.cluster_key) == (slave.cluster_id, slave.cluster_key)
    # A local folder of the same path may be another host's.
    is_local = header.cluster_key.startswith(LOCAL)
    if (is_same and not is_local) or (header.cluster_id and header.cluster_id == slave.cluster_id):
        raise StatusFileError(
            f"FILE is this cluster's own ({slave.cluster_id or slave.cluster_key}): write it on the master, "
            "run -i on the slave"
        )
    if not scope.check_hbase:
        return None
    return choose_peer(master.peers, slave.cluster_id, slave.cluster_key, scope.peer_id, _in_scope(master, scope))


def _other_peers(master: SideFacts, chosen: PeerFacts, slave: Header) -> tuple[str, ...]:
    leading = (one for one in master.peers if may_lead_to(one, slave.cluster_id, slave.cluster_key))
    return tuple(sorted(str(peer["id"]) for peer in leading if peer["id"] != chosen["id"]))


def refuse_narrowed(older: SideFacts, now: Question) -> None:
    """Raise `StatusFileError` if the peer ships less than when FILE was written.

    What it left out would be asked for no more, and FILE's own entries of that never count as missing.
    """
    if now.peer is None:
        return
    here, wanted = (now.slave.cluster_id, now.slave.cluster_key), now.scope.peer_id
    # All of those that led here, or may have, also where nobody could say which one was meant.
    known = (one for one in older.peers if wanted in (None, str(one["id"])))
    then = [family_filter(one) for one in known if may_lead_to(one, *here)]
    still = family_filter(now.peer)
    asked = asked_filter(now.scope).holds
    # A table whose descriptor is not known may be replicated, too.
    streams: list[tuple[str, str | None]] = [(table, None) for table in older.tables - older.families.keys()]
    streams += [(table, family) for table, families in older.replicated.items() for family in families]
    shipped_then = {(table, family) for table, family in streams if any(one.ships(table, family) for one in then)}
    lost = {table for table, family in shipped_then if not still.ships(table, family)}
    if gone := sorted(filter(asked, lost)):
        select = "" if wanted else "select --peer ID, "
        raise StatusFileError(
            f"peer {safe(str(now.peer['id']))} ships less than when FILE was written ({few(gone, NAMED_LIMITS)}), and"
            f" nothing would ask for that any more: check FILE without --follow, {select}or write FILE again (run -m)"
        )


def refuse_pruned(master: Header, slave: Header, scope: Scope) -> None:
    """Raise `StatusFileError` for a FILE that needs segments which the slave has pruned since."""
    if scope.check_hbase and is_pruned(master, slave):
        raise StatusFileError(
            f"FILE (barrier {iso(master.barrier_issued_ms)}) is older than the one by which this slave's state table "
            f"was pruned ({iso(slave.pruned[master.cluster_id])}), so it needs segments that are pruned: write a "
            "new FILE (`run -m -o FILE`)"
        )


def _refuse_same_hdfs(master: Header, slave: Header, scope: Scope) -> None:
    if scope.check_hdfs and same_hdfs(master, slave):
        raise StatusFileError(
            f"both sides are the same HDFS (cluster {slave.hdfs_cluster_id or 'unknown'}, block pool "
            f"{slave.hdfs_pool_id}), so its files would be compared with themselves: check that fs.defaultFS in the "
            "site files, or --webhdfs, names this side's own NameNodes, or check the HBase half alone with --only hbase"
        )


def _refuse_other_disk(slave: Header, scope: Scope) -> None:
    """Raise `UsageError` if the slave's disk is meant and FILE2 has not read it: HDFS may have the same paths."""
    if not (scope.offline and scope.check_hdfs) or slave.hdfs_pool_id == LOCAL_POOL:
        return
    for master, there in scope.path_map.pairs:
        if there.startswith(LOCAL) and there.removeprefix(LOCAL) not in slave.hdfs_left_out:
            raise UsageError(
                f"--map-path {master}={there} leads to the slave's disk, and FILE2 is of the slave's HDFS: write it "
                f"again with {there} in its paths (run -o FILE2 -f PATHS)"
            )


def _queue_facts(master: SideFacts, peer: PeerFacts, scope: Scope, slave_since_ms: int | None = None) -> QueueFacts:
    """Return what the master's queues prove for the peer, and what its configuration means for the tables."""
    header = master.header
    # A word for single tables accepts no server: nobody can tell by table what it wrote.
    window, since_ms = (header.coverage_ms, header.barrier_issued_ms), scope.since.everything_ms
    left_out = _left_out(master, peer)
    facts = queue_facts(master.kind("queue"), master.kind("server"), peer, window, slave_since_ms, since_ms)
    return dataclasses.replace(
        facts,
        strays=() if covers_file(since_ms, header) else facts.strays,
        withheld=withheld(peer, master.replicated),
        left_out=left_out,
        # None, where no descriptor could be read: such a table may be replicated, too.
        unshipped=tuple(table for table in left_out if master.replicated.get(table) != ()),
        families=family_filter(peer),
        own_shipping=own_shipping(peer),
        codec=peer.get("codec"),
    )


def _witnessed(master: SideFacts, peer: PeerFacts, scope: Scope, queues: QueueFacts) -> QueueFacts:
    """Return the facts with those of the witnesses' peer, which was sent what any server wrote, known or not."""
    witness = next((one for one in master.peers if str(one["id"]) == master.header.witness_peer), None)
    if master.header.is_witnessed:
        queues = dataclasses.replace(queues, strays=())
    if witness is None:
        return queues
    theirs, ours = (_shipped(master, one, scope) for one in (witness, peer))
    return dataclasses.replace(queues, witness=witness_facts(witness, theirs, ours))


def _left_out(master: SideFacts, peer: PeerFacts) -> tuple[str, ...]:
    return tuple(sorted(table for table in master.tables if not ships(peer, table)))


def shipped_by(master: SideFacts, peer_id: str, scope: Scope) -> Mapping[str, tuple[str, ...]] | None:
    """Return the families in scope that a peer of the master ships, by table.

    None: it may ship others as well, of a table whose descriptor is not known, or of any if none is. Raises
    `StatusFileError` if the master has no such peer any more.
    """
    peer = next((one for one in master.peers if str(one["id"]) == peer_id), None)
    if peer is None:
        raise StatusFileError(f"peer {safe(peer_id)} was removed while its cluster was read again: run again")
    holds, families = asked_filter(scope).holds, master.families
    may_ship = (ships(peer, table) for table in master.tables if table not in families and holds(table))
    return None if not families or any(may_ship) else _shipped(master, peer, scope)


def _shipped(master: SideFacts, peer: PeerFacts, scope: Scope) -> dict[str, tuple[str, ...]]:
    return shipped(peer, _in_scope(master, scope))


def _in_scope(master: SideFacts, scope: Scope) -> dict[str, tuple[str, ...]]:
    holds = asked_filter(scope).holds
    return {table: families for table, families in master.replicated.items() if holds(table)}


def _not_replicated(master: SideFacts, peer: PeerFacts, scope: Scope) -> NotReplicated:
    holds = asked_filter(scope).holds
    return not_replicated(peer, {table: both for table, both in master.families.items() if holds(table)})


def _clusters(master: SideFacts, slave: SideFacts) -> ClusterMap:
    return known_clusters([KnownSide(side.header, side.peers) for side in (master, slave)])
