"""`status-tool prune` on either side, one read or write a step (`runs.prune_rows`), by the tool's own rules.

A run may end anywhere, as one that is interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from status_tool.rules import pruning
from status_tool.rules.pruning import Applied, Target, key_of, prunable_servers
from status_tool.rules.queue_proofs import known_writers
from status_tool.rules.segments import Segment
from status_tool.sources import codec
from status_tool.sources.codec import server_key
from status_tool.vocabulary.state_rows import column
from tests.simulation.observer import MASTER_ID, SLAVE_ID, Observation, Row
from tests.simulation.store import APPLIED, Cells, Store, cells, encode
from tests.simulation.world import REGIONS, World

GONE_FOR_MS = 5_000
Steps = Generator[None, None, None]


class Pruning:
    """A run on the master or on the slave."""

    def __init__(self, world: World, *, on_master: bool) -> None:
        self.world = world
        self.reader = Observation(world, None, None)
        """Reads as the runs do that write FILE and FILE2."""
        self.steps = self._master() if on_master else self._slave()

    def advance(self) -> bool:
        """The next step; whether it was the last one."""
        try:
            next(self.steps)
        except StopIteration:
            return True
        return False

    def _master(self) -> Steps:
        """`_Pruner.as_master`."""
        world, store = self.world, self.world.master_store
        applied = list(slave_rows(world.slave_store))
        yield
        servers = list(self._servers(store, world.live_names()))
        peers = [json.loads(row["detail"]) for row in self.reader._peers()]
        if not peers or store.down:
            return
        target = target_of(applied, tuple(peers))
        over = {row["origin"] for row in servers if pruning.is_over(row, peers, world.now - GONE_FOR_MS)}
        used = {row["origin"] for row in applied if row["kind"] == "segment"}
        for region in REGIONS:
            yield
            stored = [(key, row) for key, row in store.scan(b"h", b"i") if key[1:].startswith(region.encode())]
            heads = {key: head for key, row in stored for head in codec.heads([(key, row)])}
            found = list(pruning.prunable_heads(heads.values(), over, [target]))
            going = {id(head) for head, _ in found}
            used |= {head["origin"] for head in heads.values() if id(head) not in going}
            yield
            if found and not store.down:
                self._mark(store, pruning.marks_of(found))
                for key, row in stored:
                    if id(heads[key]) in going:
                        yield
                        self._delete(store, key, row)
        # Once more, after the heads; they are deleted up to what is read now.
        rows = dict(store.scan(b"o", b"p"))
        servers = list(self._servers(store, world.live_names()))
        queued = yield from self.reader._queues()
        known = known_writers(queued)
        if known is None or store.down:
            return
        used |= {row["origin"] for row in servers if row["server"] in known}
        for server in prunable_servers(servers, used, peers, world.now - GONE_FOR_MS):
            yield
            key = server_key(server["origin"], server["role"])
            if key in store.rows:
                self._delete(store, key, rows[key])

    def _slave(self) -> Steps:
        """`_Pruner.as_slave`."""
        store = self.world.slave_store
        self._long_ago()
        header, rows = yield from self.reader._master()
        peers = [json.loads(row["detail"]) for row in rows if row["kind"] == "peer"]
        if not peers or self.reader.refused or store.down:
            return
        in_scope = {key_of(row) for row in rows if row["kind"] == "stream"}
        servers = [row for row in rows if row["kind"] == "server"]
        over = {row["origin"] for row in servers if pruning.is_over(row, peers, header.cut_ms - GONE_FOR_MS)}
        store.apply([(b"d", cells(header.cut_ms, **{f"p{MASTER_ID}": header.cut_ms}))])
        self._mark(store, {})
        for region in REGIONS:
            yield
            stored = [(key, row) for key, row in store.scan(b"s", b"t") if key[1:].startswith(region.encode())]
            parts = {key: one for key, row in stored for one in applied_of(key, row)}
            going = {one.key for one in pruning.prunable_segments(parts.values(), in_scope, over)}
            for key, row in stored:
                if parts[key].key in going:
                    yield
                    self._delete(store, key, row)

    def _long_ago(self) -> None:
        """What was on its way when a server ended has arrived by the time that makes it long gone.

        So has what sinks had in the spool at that time.
        """
        for store in (self.world.master_store, self.world.slave_store):
            store.apply(store.late)
            store.late.clear()
        for sink in self.world.slaves:
            self.world.slave_store.apply(sink.tracker.copies)
            sink.tracker.copies = []
        late, self.world.late_requests = self.world.late_requests, []
        for sink, entries in late:
            self.world.apply(entries)
            sink.tracker.batch_applied(entries, lambda: APPLIED)

    def _servers(self, store: Store, live: list[str]) -> Generator[Row, None, None]:
        for origin, server in codec.servers(store.scan(b"o", b"p"), ()):
            yield {**server, "origin": origin, "live": server["server"] in live, "tracked": True}

    def _mark(self, store: Store, marks: dict[tuple[str, bytes], int]) -> None:
        """`StateTable.mark_pruned`."""
        for (table, ids), until_ms in marks.items():
            store.apply([(b"p" + table.encode(), {column(b"w" + ids): (encode(until_ms), until_ms)})])
        self.world.tokens += 1
        store.apply([(b"b", cells(self.world.now, p=self.world.tokens))])

    def _delete(self, store: Store, key: bytes, row: Cells) -> None:
        """`StateTable.delete`."""
        self.world.pruned[key[:1].decode()] += 1
        self.world.say(f"prune {key.decode()}")
        store.delete(key, max(timestamp for _, timestamp in row.values()))


def slave_rows(store: Store) -> Generator[Row, None, None]:
    """What a slave's status file says of streams."""
    yield from codec.segments(store.scan(b"s", b"t"))


def target_of(rows: list[Row], peers: tuple[Any, ...]) -> Target:
    """`prune._target`."""
    segments: dict[Any, list[Segment]] = {}
    for row in rows:
        if row["kind"] == "segment":
            segments.setdefault(key_of(row), []).append(
                Segment(row["prev"], row["seq"], recorded_ms=row["recorded_ms"])
            )
    return Target(SLAVE_ID, peers, segments)


def applied_of(key: bytes, row: Cells) -> Generator[Applied, None, None]:
    """`prune._applied`."""
    rows, stream = list(codec.segments([(key, row)])), codec.stream_key(key)
    if stream is not None:
        parts = tuple(Segment(part["prev"], part["seq"]) for part in rows if part["kind"] == "segment")
        newest = next((part["write_ms"] for part in rows if part["kind"] == "replicated"), None)
        yield Applied(stream, parts, newest)
