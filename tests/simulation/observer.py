"""What `run -m` and `run -i` read, in the order in which they read it (`gather.snapshot`), one read a step.

The rows go through the tool's own decoders and to its own judgement; nothing of either is repeated here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from typing import Any

from status_tool.errors import ConnectionFailed, StatusFileError
from status_tool.gather.snapshot import _may_echo, server_rows, with_events
from status_tool.rules.queue_proofs import newly_settled
from status_tool.rules.sides import is_pruned
from status_tool.runs.question import Question, SideFacts, question_of
from status_tool.sources import codec
from status_tool.sources.replication_queues import Queue, Wal
from status_tool.sources.state_table import (
    Barrier,
    Descriptors,
    Generation,
    TableEvents,
    generation_of,
    newest_cells,
    refuse_emptied,
    refuse_other,
)
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.scope import Baseline, Scope, TableFilter
from tests.judgement import verify_rows
from tests.simulation.store import Cells, Store, cells
from tests.simulation.tracker import CHANGED_ROW, EVENTS_ROW, TABLE, WHOLE, hex16
from tests.simulation.world import PEER, START_MS, World

MASTER_ID = "00000000-0000-4000-8000-000000000001"
SLAVE_ID = "0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b"
"""Its bytes are those of `tracker.VIA_IDS[SLAVE_VIA]`."""
PATIENCE = 12
QUEUE_ATTEMPTS = 3

Row = dict[str, Any]


class Observation:
    """One master run and the slave run after it."""

    def __init__(self, world: World, shutdown_ms: int | None, since_ms: int | None, *, by_table: bool = False) -> None:
        self.world = world
        self.shutdown_ms = shutdown_ms
        self.since_ms = since_ms
        self.since = Baseline(None, {TABLE: since_ms}) if by_table and since_ms is not None else Baseline(since_ms)
        self.cut = world.now
        self.outcome: Outcome | None = None
        self.judged: tuple[Question, list[Row], list[Row]] | None = None
        """The question, and the rows of the two sides that it was put to; None where there could be none."""
        self.refused = False
        """Whether the run ends with an error instead of a verdict."""
        self.master_id, self.slave_id = MASTER_ID, SLAVE_ID
        self.slave_began_ms = world.now
        """When the run on the slave began: what is taken away from its tables later it cannot see."""
        self.families = WHOLE
        """Those that the peer ships, by its configuration as it was read."""
        self.steps = self._run()

    def advance(self) -> bool:
        """The next read; whether the judgement is there."""
        next(self.steps, None)
        return self.outcome is not None

    def _run(self) -> Generator[None, None, None]:
        master, ours = yield from self._master()
        slave, theirs = yield from self._slave()
        self.refused = self.refused or is_pruned(master, slave)
        # As with -s: what was written later must not be what keeps a verdict from being complete.
        scope = Scope(check_hdfs=False, since=self.since, ignore_later_writes=True)
        peers = [json.loads(row["detail"]) for row in ours if row["kind"] == "peer"]
        if any(peer["narrow"] for peer in peers):
            self.families = frozenset("f")
        if self.refused:
            self.outcome = verify_rows([], [], master, slave, scope)
            return
        sides = SideFacts(master, tuple(ours), frozenset({TABLE})), SideFacts(slave, tuple(theirs))
        try:
            question = question_of(*sides, scope)
        except StatusFileError:  # without a peer that leads to the slave
            self.outcome = verify_rows([], [], master, slave, scope)
            return
        self.judged = (question, ours, theirs)
        self.outcome = question.answered(
            verify_rows(ours, theirs, question.master, slave, question.scope, question.queues)
        )

    def _master(self) -> Generator[None, None, tuple[Header, list[Row]]]:
        world, store = self.world, self.world.master_store
        self.cut = world.now
        barrier = self._put_barrier(store)
        yield
        live = yield from self._settle(store, world.live_names, barrier, "w")
        spooled = [write for file in world.spool for write in file]
        yield
        before = _generation(store)
        yield
        marks = codec.pruned_marks(store.scan(b"p", b"q"))
        yield
        coverage = codec.number(_with(store, spooled, b"c"), b"a")
        yield
        tables = [
            codec.descriptor(key, row)
            for key, row in store.scan(b"t", b"u")
            if codec.raw(row, b"e") in barrier.accepted
        ]
        yield
        live, rows = self._servers(store, spooled, barrier, live, world.live_names, "w")
        yield
        events = Descriptors((), (), None, None, pruned=marks)
        rows += [with_events(row, events) for row in tables]
        rows += self._regions(live)
        yield
        rows += yield from self._replication()
        self._write_down_settled(store, rows)
        for region in world.regions:
            rows += codec.heads(_region_rows(store, spooled, b"h", region))
            self.refused = self.refused or _is_other(store, before)
            yield
        header = Header(
            *("master", self.master_id, world.now, self.cut),
            shutdown_ms=self.shutdown_ms,
            barrier_issued_ms=barrier.issued_ms,
            coverage_ms=coverage,
        )
        return header, rows

    def _slave(self) -> Generator[None, None, tuple[Header, list[Row]]]:
        world, store = self.world, self.world.slave_store
        self.slave_began_ms = world.now
        barrier = self._put_barrier(store)
        yield
        live = yield from self._settle(store, self._live_sinks, barrier, "r")
        spooled = [(key, _as_read(row)) for sink in world.slaves for key, row in sink.tracker.copies]
        before, pruned = _generation(store), codec.pruned_files(store.rows.get(b"d", {}))
        yield
        _, rows = self._servers(store, spooled, barrier, live, self._live_sinks, "r")
        known = codec.table_events([(EVENTS_ROW, _with(store, spooled, EVENTS_ROW))])
        events = known.get(TABLE, {})
        families = {family: {"scope": 1, "versions": world.slave_versions} for family in sorted(world.slave_families)}
        detail = {"families": families, "regions": len(world.regions), **events}
        rows.append({"kind": "table", "table": TABLE, "detail": json.dumps(detail)})
        back_ms = codec.number(store.rows.get(b"c", {}), b"b")
        yield
        if changed_ms := codec.number(store.rows.get(CHANGED_ROW, {}), b"c"):
            rows.append(
                {"kind": "fact", "table": TABLE, "region": world.regions[0], "state": "changed", "write_ms": changed_ms}
            )
        for region in world.applied_regions:
            rows += codec.segments(_region_rows(store, spooled, b"s", region))
            rows += codec.unstamped(_region_rows(store, spooled, b"u", region))
            self.refused = self.refused or _is_other(store, before, known, barrier.issued_ms)
            yield
        header = Header(
            *("slave", self.slave_id, world.now, world.now),
            barrier_issued_ms=barrier.issued_ms,
            state_back_ms=back_ms,
            pruned=pruned,
        )
        return header, rows

    def _put_barrier(self, store: Store) -> Barrier:
        self.world.tokens += 1
        token = self.world.tokens.to_bytes(16, "big")
        drawn = {} if _generation(store).table_id else {"i": token}
        store.apply([(b"b", cells(self.world.now, k=token, m=self.world.now, **drawn))])
        return Barrier(self.world.now, {token})

    def _settle(
        self, store: Store, live_names: Any, barrier: Barrier, role: str
    ) -> Generator[None, None, Sequence[str]]:
        """`snapshot._settle`: the live servers first, then the echoes."""
        for _ in range(PATIENCE):
            live: list[str] = live_names()
            yield
            if token := codec.raw(store.rows.get(b"b", {}), b"k"):
                barrier.accepted.add(token)
            echoed = {
                codec.text(row, b"n"): codec.raw(row, b"e") in barrier.accepted
                for key, row in store.scan(b"o", b"p")
                if key[17:] == role.encode()
            }
            yield
            waiting = [name for name in live if not echoed.get(name)]
            if not any(_may_echo(name, name in echoed) for name in waiting):
                break
        return live

    def _servers(
        self,
        store: Store,
        spooled: list[tuple[bytes, Cells]],
        barrier: Barrier,
        live: Sequence[str],
        live_now: Callable[[], list[str]],
        role: str,
    ) -> tuple[list[str], list[Row]]:
        """The servers' rows, and the live ones with those that have come by the deadline (`snapshot._settled_rows`)."""
        keys = sorted({key for key, _ in (*store.scan(b"o", b"p"), *spooled) if key[:1] == b"o"})
        servers = []
        for key in keys:
            row = codec.server(_with(store, spooled, key), key[17:].decode(), barrier.accepted)
            servers.append((int.from_bytes(bytes.fromhex(key[1:17].decode()), "big", signed=True), row))
        came = {*live_now()}.difference(live).intersection(row["server"] for _, row in servers)
        live = [*live, *sorted(came)]
        return live, list(server_rows(Descriptors(tuple(servers), (), None, None), role, live))

    def _live_sinks(self) -> list[str]:
        return [sink.tracker.name for sink in self.world.slaves if sink.session]

    def _regions(self, live: Sequence[str]) -> list[Row]:
        """Rows of hbase:meta; a region whose server is gone is on its way."""
        rows = []
        for region in self.world.regions:
            host = self.world.host[region].name
            state = "hosted" if host in live else "unhosted"
            named = {"table": TABLE, "region": region, "region_id": self.world.created_ms}
            rows.append({"kind": "region", **named, "server": host if host in live else None, "state": state})
        return rows

    def _replication(self) -> Generator[None, None, list[Row]]:
        """The queues, and after them the peers that they are of."""
        queued = yield from self._queues()
        yield
        return [*self._peers(), *queued]

    def _peers(self) -> list[Row]:
        peer = self.world.peer
        if peer is None:
            return []
        part = {"replicate_all": False, "table_cfs": {TABLE: ["f"]}} if peer.narrow else {}
        detail = json.dumps({"id": PEER, "cluster_id": self.slave_id, **vars(peer), **part})
        return [{"kind": "peer", "name": PEER, "detail": detail}]

    def _write_down_settled(self, store: Store, rows: Sequence[Row]) -> None:
        """`snapshot._write_down_settled`."""
        servers, queued = ([row for row in rows if row["kind"] == kind] for kind in ("server", "queue"))
        for peer in (json.loads(row["detail"]) for row in rows if row["kind"] == "peer"):
            for server, proof in newly_settled(queued, servers, peer, self.world.now):
                proven = cells(self.world.now, **{"n": server["server"], f"d{peer['id']}": json.dumps(proof)})
                store.apply([(b"o" + hex16(server["origin"]) + b"w", proven)])

    def _queues(self) -> Generator[None, None, list[Row]]:
        """`replication.measure`: folders of WALs, then the queues, again while some are being claimed."""
        world = self.world
        unsplit = [server.name for server in world.masters if not server.split]
        yield
        plausible = set(unsplit) & set(world.live_names())
        for _ in range(QUEUE_ATTEMPTS):
            before, rows = world.cversion, list[Row]()
            live = set(world.live_names())
            yield
            for server in world.masters:
                rows += self._queues_of(server.name, server.name in live)
                if len(world.masters) > 1:
                    yield
            consistent = before == world.cversion
            if consistent:
                break
        # The cleaner has removed all archived WALs: the worst case, in which nothing tells of an unknown server.
        summary: dict[str, Any] = {"consistent": consistent, "unsplit": unsplit if plausible else None, "writers": {}}
        return [*rows, {"kind": "queue", "detail": json.dumps({**summary, "hfile_refs": {}})}]

    def _queues_of(self, holder: str, live: bool) -> list[Row]:
        rows = []
        for (owner, queue_id), positions in self.world.queues.items():
            if owner != holder:
                continue
            queue = Queue(holder, live, queue_id, tuple(Wal(p.wal.name, p.at) for p in positions))
            wals = [
                {"name": wal.name, "server": wal.server, "started_ms": wal.started_ms, "position": wal.position}
                for wal in queue.wals
            ]
            detail = {"peer": queue.peer, "live": live, "dead_servers": list(queue.dead_servers), "wals": wals}
            rows.append({"kind": "queue", "server": holder, "name": queue_id, "detail": json.dumps(detail)})
        return rows


def _generation(store: Store) -> Generation:
    return generation_of(store.rows.get(b"b", {}), store.rows.get(b"c", {}), store.rows)


def _is_other(store: Store, before: Generation, events: TableEvents | None = None, issued_ms: int = 0) -> bool:
    """Whether a read is refused; a slave's by the `events` that were read after the barrier as well."""
    try:
        refuse_other(TABLE, before, _generation(store))
        if events is not None:
            now = codec.table_events([(EVENTS_ROW, store.rows.get(EVENTS_ROW, {}))])
            refuse_emptied(events, now, TableFilter(), issued_ms, SLAVE_ID)
    except ConnectionFailed:
        return True
    return False


def _as_read(row: Cells) -> Cells:
    """A spooled cell that is to get the server's time is older than any that has one."""
    return {name: (value, max(timestamp, 0)) for name, (value, timestamp) in row.items()}


def _with(store: Store, spooled: list[tuple[bytes, Cells]], key: bytes) -> Cells:
    row = dict(store.rows.get(key, {}))
    for spooled_key, more in spooled:
        if spooled_key == key:
            row = newest_cells(row, more)
    return row


def _region_rows(
    store: Store, spooled: list[tuple[bytes, Cells]], kind: bytes, region: str
) -> list[tuple[bytes, Cells]]:
    prefix = kind + region.encode()
    keys = sorted({key for key, _ in (*store.rows.items(), *spooled) if key.startswith(prefix)})
    return [(key, _with(store, spooled, key)) for key in keys]


__all__ = ["START_MS", "Observation"]
