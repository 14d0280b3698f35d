"""`status-tool prune`: drops rows of the state table that no verdict needs any more (`rules/pruning.py`).

On a master it reads its slaves' status files, which prove what has arrived; on a slave the master's, whose scope no
longer includes what was pruned there. Rows are deleted up to the version that was read, so newer ones survive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from status_tool.clients.config import Settings
from status_tool.clients.thrift import Cells, scan
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.errors import ConfigurationError, StatusFileError, UsageError
from status_tool.gather.measured_queues import queue_rows
from status_tool.gather.snapshot import peer_rows, server_rows
from status_tool.printable import duration
from status_tool.rules.kept_proofs import told_by_master
from status_tool.rules.peers import PeerFacts, choose_peer, leads_to, normal_key, own_shipping, parse_peer
from status_tool.rules.pruning import (
    Applied,
    OfRegion,
    StreamKey,
    Target,
    doubtful_ends,
    is_over,
    key_of,
    marks_of,
    prunable_heads,
    prunable_segments,
    prunable_servers,
    prunable_sinks,
)
from status_tool.rules.queue_proofs import known_writers
from status_tool.rules.segments import Segment
from status_tool.rules.server_settings import peers_elsewhere
from status_tool.sources import codec
from status_tool.sources.state_table import Descriptors, KeyRange, StateTable, now_ms
from status_tool.status_file.reader import StatusFile, open_status
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.outcome import AHEAD_MS
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.state_rows import REPLICATOR, WRITER, ContentRow, ServerRow, range_of
from status_tool.vocabulary.states import FactState

HEX = "0123456789abcdef"


@dataclass(frozen=True)
class PruneRequest:
    """The evidence to prune by."""

    files: tuple[Path, ...]
    """Status files: one per slave of a master, or that of a slave's master."""
    gone_for_ms: int
    """Servers that ended later are kept."""
    dry_run: bool = False
    key: SignKey | None = None


@dataclass
class Pruned:
    """Number of rows dropped (in a dry run: to be dropped) and present, by kind of row."""

    side: str
    dropped: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    origins: set[int] = field(default_factory=set)
    """Of the heads that stay."""

    def count(self, kind: str, rows: int, dropped: int) -> None:
        """Count more rows, and how many of them are dropped."""
        self.rows[kind] = self.rows.get(kind, 0) + rows
        self.dropped[kind] = self.dropped.get(kind, 0) + dropped


def prune_rows(settings: Settings, request: PruneRequest) -> Pruned:
    """Prune this cluster's state table by the status files of the other side.

    Raises `StatusFileError` and `UsageError` for files that prove nothing for this cluster, or not enough.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(_opened(path, request.key)) for path in request.files]
        zookeeper = stack.enter_context(ZooKeeper(settings.zookeeper()))
        state = StateTable(settings.thrift(), settings.state_table)
        state.require()
        is_slave = any(file.header.side == MASTER for file in files)
        pruner = _Pruner(settings, state, zookeeper, request, Pruned(SLAVE if is_slave else MASTER))
        pruner.refuse_unknown_peers()
        if is_slave:
            pruner.as_slave(files)
        else:
            pruner.as_master(files)
        return pruner.pruned


def _opened(path: Path, key: SignKey | None) -> StatusFile:
    file = open_status(path, key=key)
    header = file.header
    if file.is_json or header.half not in ("both", "hbase") or not header.cluster_id:
        file.close()
        raise StatusFileError(
            f"{path} holds no streams of HBase: write it again with this status-tool, for both halves"
        )
    return file


@dataclass(frozen=True)
class _Pruner:
    """One run. Heads and segments are announced before they are deleted."""

    settings: Settings
    state: StateTable
    zookeeper: ZooKeeper
    request: PruneRequest
    pruned: Pruned

    def as_master(self, files: Sequence[StatusFile]) -> None:
        """Prune heads that the slaves have, and rows of servers."""
        peers = self._peers()
        leading = _leading(files, peers)
        with_segments = set[int]()
        self._own_heads(lambda digit: [_target(file, led, digit, with_segments) for file, led in leading], peers)
        narrow = [file.path for file in files if file.header.tables or file.header.namespaces]
        self.pruned.notices += [
            f"rows of servers that wrote stay: {path} holds only some tables, and of others the slave may have "
            "segments of them: write it without --table and --namespace"
            for path in narrow
        ]
        # Last: only now is it known of which servers heads or segments stay.
        self._servers(peers, None if narrow else with_segments)

    def as_slave(self, files: Sequence[StatusFile]) -> None:
        """Prune segments that the master no longer needs, and own heads of entries that came from there.

        Such entries are never shipped back. All other own heads are pruned as a master.
        """
        if len(files) != 1:
            raise UsageError("a slave is pruned by one master's FILE at a time: give only that")
        file, header = files[0], files[0].header
        if header.tables or header.namespaces or header.barrier_issued_ms is None:
            raise StatusFileError(f"{file.path} does not cover all tables: write it without --table and --namespace")
        if (ahead_ms := header.barrier_issued_ms - now_ms()) > AHEAD_MS:
            # Each FILE that is older than the one of a pruning is refused from then on.
            raise StatusFileError(
                f"{file.path} is {duration(ahead_ms)} ahead of this host's clock: set right the clock of the host that "
                "wrote it, or this one's, and write a new FILE"
            )
        self._segments(file, header.barrier_issued_ms)
        self.pruned.notices += told_by_master(self.state.kept())
        peers = self._peers()
        elsewhere = [peer for peer in peers if not leads_to(peer, header.cluster_id, header.cluster_key)]
        # Another slave may still need heads, even of entries from this master, and its file is not at hand.
        if not elsewhere:
            self._own_heads(lambda _: [Target(header.cluster_id, (), {})], peers)
        self._servers(peers, None if peers else set())

    def refuse_unknown_peers(self) -> None:
        """Raise `ConfigurationError` if the peers in ZooKeeper may be those of before."""
        if elsewhere := next(peers_elsewhere(self._server_rows()), self.settings.peers_elsewhere):
            raise ConfigurationError(f"the peers are not known ({elsewhere}), nor so which slaves need what would go")

    def _peers(self) -> list[PeerFacts]:
        """Return the peers that a verdict can concern."""
        peers = [parse_peer(row["detail"]) for row in peer_rows(self.zookeeper)]
        # With code of others on the way, rows alone prove anything. HBase's peer for region replicas leads nowhere.
        return [peer for peer in peers if not own_shipping(peer)]

    def _server_rows(self) -> list[NewRow]:
        """Return the server rows of both roles."""
        return self._judged(self._stored_servers())

    def _stored_servers(self) -> dict[bytes, Cells]:
        return dict(scan(self.state.endpoint, self.state.name, *range_of(ServerRow.TYPE)))

    def _judged(self, stored: Mapping[bytes, Cells]) -> list[NewRow]:
        """Return stored rows of servers, with which of them live."""
        # Without a token, as no barrier is put: servers that ended long ago echo nothing.
        small = Descriptors(tuple(codec.servers(stored.items(), ())), (), None, None)
        live = self.zookeeper.live_servers()
        return [row for role in (WRITER, REPLICATOR) for row in server_rows(small, role, live) if row["tracked"]]

    def _scan(self, kind: str, digit: str) -> dict[bytes, Cells]:
        """Return the rows of a type, of regions that begin with a digit."""
        span = KeyRange(kind, digit)
        # With the timestamps up to which `delete` deletes.
        return dict(scan(self.state.endpoint, self.state.name, span.start, span.stop))

    def _own_heads(self, targets: Callable[[str], list[Target]], peers: Sequence[PeerFacts]) -> None:
        before_ms = now_ms() - self.request.gone_for_ms
        # Before the heads: once a server's row says that it has ended, all its heads are in the table.
        over = {row["origin"] for row in self._server_rows() if is_over(row, peers, before_ms)}
        # A sixteenth of the rows is held at a time.
        for digit in HEX:
            stored = self._scan("h", digit)
            heads = {key: row for key, cells in stored.items() for row in codec.heads([(key, cells)])}
            there = targets(digit)
            found = list(prunable_heads(heads.values(), over, there))
            if found and (tails := codec.tails(self._scan(ContentRow.TYPE, digit).items())):
                doubtful = doubtful_ends(tails, *_known_there(heads.values(), there))
                found = list(prunable_heads(heads.values(), over, there, doubtful))
            going = {id(head) for head, _ in found}
            self.pruned.count("heads", len(heads), len(found))
            self.pruned.origins |= {head["origin"] for head in heads.values() if id(head) not in going}
            if found and not self.request.dry_run:
                # For each digit anew: a run may have read the marks since the digit before.
                self.state.mark_pruned(marks_of(found))
                # A head's timestamp is its sequence id: a delete of now would hide one that the spool brings later.
                self.state.delete((key, _newest(stored[key])) for key, head in heads.items() if id(head) in going)

    def _segments(self, file: StatusFile, barrier_ms: int) -> None:
        """Prune segments. Records the mark that makes earlier FILEs unusable before it deletes anything."""
        parsed = [parse_peer(detail) for detail in _column(file, "peer", "detail")]
        here = self.zookeeper.cluster_id(), self.zookeeper.endpoint.cluster_key
        # What the one has shipped the other may still have to ship.
        leading = [one for one in parsed if leads_to(one, *here)] or [choose_peer(parsed, *here, None)]
        gone_ms = barrier_ms - self.request.gone_for_ms
        over = {row["origin"] for row in file.rows_of("server") if is_over(row, leading, gone_ms)}
        noted = False
        for digit in HEX:
            stored = self._scan("s", digit)
            applied = {key: one for key, cells in stored.items() for one in _applied(key, cells)}
            written = list(_rows(file, "stream", digit))
            heads = set(map(key_of, written))
            known = {(row["region"], row["seq"]) for row in written}
            known |= {(one.key[0], part.seq) for one in applied.values() for part in one.segments}
            doubtful = doubtful_ends(_tails_in(file, digit), known)
            going = {one.key for one in prunable_segments(applied.values(), heads, over, doubtful)}
            self.pruned.count("segments", len(applied), len(going))
            if not going or self.request.dry_run:
                continue
            if not noted:
                self.state.note_pruned_by(file.header.cluster_id, barrier_ms)
                # Once is enough: a run that begins later reads the barrier above, and refuses a FILE that needs what
                # goes.
                self.state.mark_pruned({})
                noted = True
            self.state.delete((key, _newest(stored[key])) for key, one in applied.items() if one.key in going)

    def _servers(self, peers: Sequence[PeerFacts], with_segments: set[int] | None) -> None:
        """Prune rows of servers that nothing refers to.

        None means that it is unknown whether slaves have their segments.
        """
        before_ms = now_ms() - self.request.gone_for_ms
        # What is judged is what is deleted: a cell that is written meanwhile is newer than any delete.
        stored = self._stored_servers()
        rows = self._judged(stored)
        gone = prunable_sinks(rows, before_ms)
        if with_segments is not None:
            gone += self._writers(rows, self.pruned.origins | with_segments, peers, before_ms)
        keys = {codec.server_key(row["origin"], row["role"]) for row in gone}
        self.pruned.count("servers", len(rows), len(keys))
        if keys and not self.request.dry_run:
            self.state.delete((key, _newest(stored[key])) for key in sorted(keys & stored.keys()))

    def _writers(
        self, rows: Sequence[NewRow], used: set[int], peers: Sequence[PeerFacts], before_ms: int
    ) -> list[Mapping[str, Any]]:
        """Return the rows of servers that wrote and have no queued or archived WAL.

        A server with such a WAL keeps its row, or it would look like one without a tracker.
        """
        known = known_writers(queue_rows(self.settings, self.zookeeper)[0])
        if known is None:
            self.pruned.notices.append(
                "rows of servers that wrote stay: which of them still have WALs is not known (queues that kept moving,"
                " or a NameNode that could not be reached: --webhdfs)"
            )
            return []
        named = {row["origin"] for row in rows if row["server"] in known}
        return prunable_servers(rows, used | named, peers, before_ms)


def _leading(files: Sequence[StatusFile], peers: Sequence[PeerFacts]) -> list[tuple[StatusFile, tuple[PeerFacts, ...]]]:
    """Return each file with the peers that lead to its cluster. Every peer must have one."""
    found, covered = list[tuple[StatusFile, tuple[PeerFacts, ...]]](), set[str]()
    for file in files:
        header = file.header
        led = tuple(peer for peer in peers if leads_to(peer, header.cluster_id, header.cluster_key))
        if not led:
            raise StatusFileError(
                f"{file.path} is of cluster {header.cluster_id}, to which no peer of this cluster leads: nothing is"
                " shipped to it, so it proves nothing here"
            )
        found.append((file, led))
        covered |= {str(peer["id"]) for peer in led}
    for peer in peers:
        if str(peer["id"]) not in covered:
            raise UsageError(
                f"peer {peer['id']} leads to {peer.get('cluster_id') or peer.get('cluster_key')}, and what arrived "
                "there is not known: write its status there (`run -o FILE2`) and give FILE2, too"
            )
    _refuse_clones(found)
    return found


def _refuse_clones(leading: Sequence[tuple[StatusFile, tuple[PeerFacts, ...]]]) -> None:
    """Raise `UsageError` if peers lead to more clusters of one id than there are files: one may lack what another has.

    HBase ships to each of them. They have one id where one was made of a copy of the other's HDFS.
    """
    for file, led in leading:
        same = [other.header.cluster_key for other, _ in leading if other.header.cluster_id == file.header.cluster_id]
        keys = {normal_key(str(peer.get("cluster_key") or "")) for peer in led}
        if len(keys) > len({normal_key(key) for key in same}):
            names = ", ".join(str(peer["id"]) for peer in led)
            raise UsageError(
                f"peers {names} lead to cluster {file.header.cluster_id} by {len(keys)} addresses: if these are several"
                " clusters of one id, give the status of each; if they are one, let all its peers have one cluster key"
            )


def _target(file: StatusFile, peers: tuple[PeerFacts, ...], digit: str, seen: set[int]) -> Target:
    """Return what a slave's file records of regions that begin with a digit; `seen` collects the origins."""
    segments: dict[StreamKey, list[Segment]] = {}
    for row in _rows(file, "segment", digit):
        times = (row["first_ms"], row["write_ms"], row["recorded_ms"], row["started_ms"])
        segments.setdefault(key_of(row), []).append(Segment(row["prev"], row["seq"], *times))
    seen |= {origin for _, origin, _ in segments}
    return Target(file.header.cluster_id, peers, segments)


def _known_there(heads: Iterable[NewRow], targets: Iterable[Target]) -> Iterator[set[tuple[str, int]]]:
    """Yield for each slave of a peer the sequence ids that are known of each region."""
    written = {(head["region"], head["seq"]) for head in heads}
    for target in targets:
        # One that no peer leads to is asked for nothing: it has sent the entries itself.
        if target.peers:
            yield written | {(key[0], part.seq) for key, parts in target.segments.items() for part in parts}


def _tails_in(file: StatusFile, digit: str) -> dict[OfRegion, int]:
    """Return what `codec.tails` does from a master's FILE."""
    facts = (row for row in _rows(file, "fact", digit) if row["state"] == FactState.TAIL)
    return {(row["region"], row["origin"]): row["seq"] for row in facts}


def _rows(file: StatusFile, kind: str, digit: str) -> Iterator[NewRow]:
    """Yield the rows of whole streams, of regions that begin with a digit."""
    for batch in file.rows({kind}):
        for row in batch.filter(pc.starts_with(batch.column("region"), digit)).to_pylist():
            if row["origin"] is not None and (kind != "segment" or None not in (row["prev"], row["seq"])):
                yield row


def _column(file: StatusFile, kind: str, name: str) -> list[Any]:
    return [value for batch in file.rows({kind}) for value in batch.column(name).to_pylist()]


def _applied(key: bytes, cells: Cells) -> Iterator[Applied]:
    rows = list(codec.segments([(key, cells)]))
    if (stream := codec.stream_key(key)) is not None:
        parts = tuple(Segment(row["prev"], row["seq"]) for row in rows if row["kind"] == "segment")
        replicated = next((row["write_ms"] for row in rows if row["kind"] == "replicated"), None)
        yield Applied(stream, parts, replicated)


def _newest(cells: Cells) -> int:
    return max(timestamp for _, timestamp in cells.values())
