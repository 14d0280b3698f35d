"""The model can fail: each rule that keeps a promise, when it is taken away, is missed."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import pytest

from status_tool.rules import context, origins, peer_versions, pruning, queue_proofs, streams, tables
from status_tool.rules.peers import FamilyFilter, PeerFacts, family_filter
from status_tool.rules.segments import Fold, fold
from status_tool.runs import question
from status_tool.sources import codec
from status_tool.vocabulary.state_rows import column
from tests.simulation import observer, pruner, world
from tests.simulation.dice import Dice
from tests.simulation.observer import MASTER_ID, Observation
from tests.simulation.random_runs import played_once
from tests.simulation.steps import BrokenPromise, Run
from tests.simulation.store import APPLIED, REFUSED, SERVER_TIME, Cells, Store, Write, encode
from tests.simulation.tracker import (
    Entry,
    Part,
    Record,
    Recorder,
    SinkTracker,
    StreamKey,
    WriteTracker,
    head_row,
    hex16,
    stream_row,
)
from tests.simulation.world import MasterServer


def _trust_the_living(row: Any, live: bool, tracked: bool, since_ms: int | None, honest: Any = origins._reason) -> Any:
    return None if live and tracked else honest(row, live, tracked, since_ms)


def _trust_the_dead(row: Any, live: bool, tracked: bool, since_ms: int | None, honest: Any = origins._reason) -> Any:
    return None if not live else honest(row, live, tracked, since_ms)


def _no_holes(segments: Any, head: int, since_ms: int | None = None, honest: Callable[..., Fold] = fold) -> Fold:
    found = honest(segments, head, since_ms)
    return dataclasses.replace(found, prefix_end=found.reach, prefix_ms=found.reach_ms, holes=())


def _forget_without_a_word(tracker: WriteTracker) -> None:
    """As the trackers were at first: the flush says nothing, and the sweep puts its own start."""
    tracker.begun = False
    if tracker.written and not tracker.store.get(tracker.key):
        tracker.forget_flushes()
        tracker.stored = None


def _written_anyway(tracker: Recorder, write: Write) -> bool:
    """As the trackers were at first: a row is put, whatever was there."""
    tracker.store.put([write], tracker.fate())
    tracker.stored = write[1][column(b"k")][0]
    return True


def _echo_first(tracker: Recorder, token: tuple[bytes, int] | None, *, end: bool) -> Iterator[None]:
    began, echo = tracker.clock(), token or tracker.last_echo
    tracker.vouch(tracker.row(began, echo, began if end else None, tracker.peers()))
    tracker.ended = end
    tracker.last_began, tracker.last_echo = began, echo
    yield
    yield from tracker.changes()
    tracker.flush_succeeded()


def _peers_last(tracker: Recorder, token: tuple[bytes, int] | None, *, end: bool) -> Iterator[None]:
    """What has been appended between the heads and the peer's arrival is in neither."""
    began, echo = tracker.clock(), token or tracker.last_echo
    tracker.check_nothing_was_lost()
    yield
    yield from tracker.changes()
    tracker.look_at_peers()
    tracker.vouch(tracker.row(began, echo, began if end else None, tracker.peers()))
    tracker.ended = end
    tracker.last_began, tracker.last_echo, tracker.last_peers = began, echo, tracker.peers()
    tracker.flush_succeeded()
    yield


def _any_incarnation(row: Any, peer: Any, honest: Callable[..., Any] = peer_versions.span_of) -> Any:
    recorded = (json.loads(row.get("detail") or "{}").get("peers") or {}).get(peer["id"])
    return honest(row, {**peer, "incarnation": recorded[0], "created_ms": None} if recorded else peer)


def _whatever_they_say(own: peer_versions.Span, other: peer_versions.Span) -> bool:
    return own.first <= other.last + 1 and other.first <= own.last + 1


def _record_first(self: world.World, key: tuple[str, str], sink: world.SlaveServer, dice: Dice) -> None:
    found = self.batch(key, 1 + dice.below(6))
    if found is not None:
        position, todo = found
        sink.tracker.batch_applied(self.filtered(todo, key[0]), lambda: self.fates(dice))
        if dice.below(3):
            self.apply(self.filtered(todo, key[0]))
            position.at += len(todo)


def _heads_unsynced(tracker: WriteTracker) -> Iterator[None]:
    tracker.sync_open_wal()
    yield
    changed = [(key, head, head.seq) for key, head in tracker.heads.items() if head.seq != head.flushed]
    if changed:
        tracker.store.put([head_row(key, head) for key, head, _ in changed], tracker.fate())
        for _, head, seq in changed:
            head.flushed = max(head.flushed, seq)
        yield


def _copied_too_late(tracker: SinkTracker) -> None:
    """As a copy every second would be: the request is acknowledged before it is made."""
    tracker.uncopied.clear()


def _copied_alone(tracker: SinkTracker) -> None:
    """Nothing says since when the table has been written to."""
    if tracker.reaches_spool:
        tracker.copies += [tracker.records[key].row(key, tracker.clock())[0] for key in tracker.uncopied]
        tracker.uncopied.clear()


def _the_same_column_again(tracker: SinkTracker, stream: StreamKey) -> Record:
    """Less over more."""
    return Record(b"c" + encode(tracker.origin))


def _dropped_first(tracker: SinkTracker) -> Iterator[None]:
    """Columns are dropped by themselves: what they said is only in memory then."""
    tracker.forget_idle()
    while tracker.scattered:
        key = tracker.scattered.pop(0)
        if key in tracker.records:
            record, read = tracker.records[key], tracker.store.get(stream_row(b"s", key))
            others, stale = tracker.others(record, read)
            yield
            tracker.store.replace(stream_row(b"s", key), {}, stale, tracker.fate())
            yield
            record.take_over(others)


def _dropped_with_what_came_since(
    tracker: SinkTracker, record: Record, read: Cells, honest: Any = SinkTracker.others
) -> tuple[list[Part], dict[bytes, int]]:
    parts, _ = honest(tracker, record, read)
    return parts, dict.fromkeys((name for name in read if name[2:3] == b"c" and name[2:] != record.column), 2**62)


def _versions_by_arrival(record: Record, stream: StreamKey, now: int, honest: Any = Record.row) -> tuple[Write, int]:
    (key, row), version = honest(record, stream, now)
    return (key, {name: (value, SERVER_TIME) for name, (value, _) in row.items()}), version


def _whole_by_its_stamp(_: SinkTracker, entry: Entry) -> list[str]:
    """The sink believes the stamp: what came in part is recorded as if it were whole."""
    return sorted(entry.written)


def _any_family(_filter: FamilyFilter, _table: str | None, _family: str | None) -> bool:
    """Streams that the peer leaves out are asked of."""
    return True


class _NoFamily(FamilyFilter):
    """Streams of a table that the peer ships in part are not asked of."""

    def ships(self, table: str | None, family: str | None) -> bool:
        return not (self.listed and family)


def _no_family_of_it(peer: PeerFacts) -> FamilyFilter:
    """Only streams go by it, not what the peer is known to leave out."""
    return _NoFamily(family_filter(peer).listed)


def _by_its_last_entry(target: pruning.Target, head: Any) -> bool:
    """A slave that has the end of a stream has all of it."""
    seq: int = head["seq"]
    return fold(target.segments.get(pruning.key_of(head), ()), seq).reach >= seq


def _left_behind(row: pruning.Applied, in_scope: Any, over: Any, honest: Any = pruning._is_left) -> bool:
    """Segments whose head the master still has."""
    return bool(honest(row, (), over))


def _any_end(rows: Any, used: Any, peers: Any, before_ms: int, honest: Any = pruning.prunable_servers) -> Any:
    """A crash is a clean end."""
    ended = [{**row, "final_ms": row["gone_ms"] if row["final_ms"] is None else row["final_ms"]} for row in rows]
    return list(honest(ended, used, peers, before_ms))


def _without(code: str) -> Callable[..., Any]:
    """The rule of tables without one of its findings."""

    def judged(*args: Any, honest: Any = tables.judge_tables) -> Any:
        kept = ((table, [one for one in table.findings if one.code != code]) for table in honest(*args))
        return tuple(dataclasses.replace(table, findings=tuple(findings)) for table, findings in kept)

    return judged


FALSE_COMPLETE, FALSE_ALARM = "but missing", "false alarm"


FOUND: dict[str, tuple[Any, str, Any, str, int]] = {
    "a crash taken for a clean stop": (origins, "_reason", _trust_the_dead, FALSE_COMPLETE, 90),
    "prev ignored": (streams, "fold", _no_holes, FALSE_COMPLETE, 385),
    "a peer added again": (queue_proofs, "_unchanged_since_start", lambda *_: True, FALSE_COMPLETE, 90),
    "an older peer of the same name": (peer_versions, "span_of", _any_incarnation, FALSE_COMPLETE, 90),
    "a peer changed while all were down": (peer_versions.Span, "joins", _whatever_they_say, FALSE_COMPLETE, 2_690),
    "segments before they are applied": (world.World, "ship", _record_first, FALSE_COMPLETE, 415),
    "heads that a crash undoes": (WriteTracker, "changes", _heads_unsynced, FALSE_ALARM, 20),
    "a clean end of a fenced server": (WriteTracker, "is_torn", lambda _: False, FALSE_ALARM, 25),
    "less written over more": (SinkTracker, "new_record", _the_same_column_again, FALSE_ALARM, 0),
    "a column dropped before it is taken over": (SinkTracker, "tidy", _dropped_first, FALSE_ALARM, 0),
    "a column dropped with newer versions": (SinkTracker, "others", _dropped_with_what_came_since, FALSE_ALARM, 13_890),
    "segments pruned before their heads": (pruning, "_is_left", _left_behind, FALSE_ALARM, 95),
    "segments of a server that lives pruned": (pruning, "is_over", lambda *_: True, FALSE_ALARM, 235),
    "a slave's table that was truncated": (context, "judge_tables", _without("emptied"), FALSE_COMPLETE, 60),
    "a slave's table that was restored": (context, "judge_tables", _without("slave-changed"), FALSE_COMPLETE, 30),
    "a slave's table that keeps less": (context, "judge_tables", _without("keeps-less"), FALSE_COMPLETE, 300),
    "segments copied after the answer": (SinkTracker, "copy", _copied_too_late, FALSE_ALARM, 135),
    "late writes over newer ones": (Record, "row", _versions_by_arrival, FALSE_ALARM, 1_235),
}
"""The rule, what stands in its place, what is missed then, and the seed from which on a run soon meets it."""


@pytest.mark.slow
@pytest.mark.parametrize(("where", "name", "broken", "found", "first"), FOUND.values(), ids=FOUND)
def test_the_simulation_finds(
    where: Any, name: str, broken: Any, found: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rule that keeps the promise, when it is taken away, is missed within this many runs."""
    monkeypatch.setattr(where, name, broken)
    for seed in range(first, first + 6_000):
        try:
            played_once(seed)
        except BrokenPromise as broken_promise:
            if found in str(broken_promise):
                return
    pytest.fail("nothing was found")


# --- the same for what random steps meet too seldom: one story each -------------------------------


def _lose_the_backlog(run: Run) -> None:
    """The peer is removed and added again after a roll: what was not shipped never will be."""
    for server in run.world.living():
        run.world.sync(server)
        run.world.roll(server, None)
    run.world.remove_peer()
    run.world.add_peer()
    for server in run.world.living():
        run.world.introduce(server)
    run.world.advance(1)


def _fence(run: Run, server: world.MasterServer) -> None:
    """A server is over, its regions are elsewhere, and all that is left of it is shipped."""
    server.running = server.session = False
    run.world.move_regions(server)
    run.world.split(server, 0)
    run.ship_all()


def _applied_once_more(run: Run) -> None:
    """An entry of the master, up to the slave."""
    run.world.append("a1", 0, 0)
    run.world.sync(run.world.host["a1"])
    run.ship_all()


def _one_has_arrived(run: Run) -> world.World:
    """The first entry, and the trackers have recorded it."""
    run.ask()
    _applied_once_more(run)
    run.beat()
    return run.world


def _truncated(run: Run) -> None:
    """The slave's table, and the trackers have looked."""
    run.world.truncate_slave()
    run.world.advance(11_000)
    run.beat()


def _a_hook_fails(run: Run) -> None:
    server = run.world.host["a1"]
    assert server.tracker is not None
    server.tracker.failing = True
    run.world.append("a1", 0, 0)
    _lose_the_backlog(run)


def _a_hook_fails_before_a_crash(run: Run) -> None:
    """The queue of a peer that is younger than the server is drained, and never had the entry."""
    here = run.world
    server = here.host["a1"]
    _a_hook_fails(run)
    here.refresh_all()
    here.advance(peer_versions.REFRESHED_MS + 1)
    run.beat()
    here.advance(peer_versions.REFRESHED_MS + 1)
    run.beat()
    _fence(run, server)
    here.advance(1)


def _end_cleanly(run: Run, server: world.MasterServer) -> None:
    assert server.tracker is not None
    server.tracker.over, server.tracker.busy = True, None
    run.world.move_regions(server)
    while not server.tracker.ended:
        server.tracker.tick(lambda: APPLIED)
    server.running = server.session = False
    run.world.split(server, 0)


def _a_table_is_lost(run: Run) -> None:
    """A server stops cleanly with all it knew in the table; then the table is dropped."""
    here = run.world
    run.ask()
    server = here.host["a1"]
    here.append("a1", 0, 0)
    _lose_the_backlog(run)
    run.beat()
    _end_cleanly(run, server)
    run.ship_all()
    here.lose_master_rows()
    here.advance(61_000)  # past the next sweep, which gives the table a start of coverage again
    run.beat()


def _a_snapshot_is_restored(run: Run) -> None:
    """Heads go back that do not change any more; their entries are lost with their queue."""
    here = run.world
    run.ask()
    here.append("a1", 0, 0)
    run.beat()
    run.ship_all()
    nightly = here.master_store.snapshot()
    here.append("a1", 0, 0)
    _lose_the_backlog(run)
    run.beat()
    here.master_store.restore(nightly)
    run.ship_all()
    run.beat()


def _a_region_of_heads_is_lost(run: Run) -> None:
    """A region of the state table is truncated; the rows of the servers are elsewhere, and heads do not change."""
    here = run.world
    run.ask()
    here.append("a1", 0, 0)
    _lose_the_backlog(run)
    run.beat()
    run.ship_all()
    here.master_store.lose_range(b"h", b"i")


def _heads_are_late(run: Run) -> None:
    """The table takes the echo and refuses the heads."""
    run.ask()
    run.world.append("a1", 0, 0)
    _lose_the_backlog(run)
    for server in run.world.living():
        assert server.tracker is not None
        refuse_heads(server.tracker.store)


def _acknowledged_unsynced(run: Run) -> None:
    """ASYNC_WAL while the pipeline stands still: no hook has seen it when the run begins."""
    run.ask()
    run.world.append("a1", 0, 0, lazily=True)
    run.world.advance(1)


def _a_clock_is_set_back(run: Run) -> None:
    """An entry with a late write time arrives, the next one with an earlier write time is lost."""
    here = run.world
    server = here.host["a1"]
    server.offset = 9_000
    run.beat()
    _applied_once_more(run)
    server.offset = 0
    here.append("a1", 0, 0)
    here.advance(1)
    _lose_the_backlog(run)
    run.shutdown_ms = here.now
    here.advance(1)


def _a_peer_comes_during_a_flush(run: Run) -> None:
    """An entry after the heads and before the peer, which begins with the next WAL; then the server crashes."""
    here = run.world
    server = here.host["a1"]
    assert server.tracker is not None
    run.ask()
    _applied_once_more(run)
    here.remove_peer()
    here.add_peer()
    for other in here.living():
        if other is not server:
            here.introduce(other)
    while not server.tracker.unvouched:  # the heads are in the table, the server's row is not
        server.tracker.tick(lambda: APPLIED)
    here.append("a1", 0, 0)
    here.roll(server, None)
    here.introduce(server)
    here.advance(1)
    while server.tracker.busy is not None:
        server.tracker.tick(lambda: APPLIED)
    _fence(run, server)


def _a_filter_was_narrower(run: Run) -> None:
    """Entries of two families go over while the peer ships one of them; then it ships both."""
    here = run.world
    run.ask()
    here.set_narrow(True)
    here.refresh_all()
    _applied_once_more(run)
    here.set_narrow(False)
    here.refresh_all()
    here.advance(1)


def _a_narrow_peer(run: Run) -> None:
    """From the beginning on it ships one family of two."""
    run.world.set_narrow(True)
    run.world.refresh_all()
    run.world.advance(61_000)
    run.beat()


def _write_by_turns(run: Run) -> None:
    """Entries of either family, and of both."""
    for families in ("f", "g", "fg", "g", "f", "g"):
        run.world.append("a1", 0, 0, frozenset(families))
    run.world.sync(run.world.host["a1"])


def _a_narrow_peer_loses(run: Run) -> None:
    """An entry in the middle, while entries of the family that it leaves out go missing all along."""
    run.ask()
    _a_narrow_peer(run)
    _write_by_turns(run)
    run.ship_all()
    _write_by_turns(run)
    _lose_the_backlog(run)
    _a_narrow_peer(run)
    _write_by_turns(run)
    run.ship_all()
    run.beat()


def _others_have_not_loaded_the_peer_yet(run: Run) -> None:
    """A peer is widened; the server that has loaded it crashes, and one that has not ships what was left."""
    here = run.world
    server = here.host["a1"]
    here.set_narrow(True)
    here.refresh_all()
    here.advance(61_000)
    run.beat()
    here.set_narrow(False)
    here.refresh(server)
    run.beat()
    here.advance(30_000)
    run.beat()
    here.append("a1", 0, 0, frozenset("g"))
    here.sync(server)
    run.lose(server)
    run.ship_all()
    here.refresh_all()
    here.advance(61_000)
    run.beat()


def _arrives(run: Run, region: str) -> Entry:
    """A write, on its way to the end."""
    entry = run.world.append(region, 0, 0)
    run.world.sync(run.world.host[region])
    run.ship_all()
    run.beat()
    return entry


def _a_head_above_a_hole(run: Run) -> None:
    """Of a server that is gone the slave has the last entry, and not all before; then both sides are pruned."""
    server = run.world.host["a1"]
    run.ask()
    _arrives(run, "a1")
    run.world.append("a1", 0, 0)
    _lose_the_backlog(run)
    _arrives(run, "a1")
    _end_cleanly(run, server)
    _arrives(run, "a1")
    run.prune()


def _a_newcomer(run: Run) -> MasterServer:
    """A server of the master that starts, and gets a region; it has written nothing."""
    run.ask()
    server = run.world.start_master(0, tracked=True)
    run.beat()
    run.world.host["a1"] = server
    return server


def _a_crash_without_heads(run: Run) -> None:
    """A server is killed before its first heads, and what it wrote is lost with the peer; then it is long gone."""
    here, server = run.world, _a_newcomer(run)
    here.append("a1", 0, 0)
    _lose_the_backlog(run)
    run.lose(server)
    for _ in range(3):
        here.advance(61_000)  # past a sweep
        run.beat()
    _arrives(run, "a1")
    run.prune()


def _a_word_from_before_a_crash(run: Run) -> None:
    """A server is killed before its first heads; the word covers what was written until just before its one entry."""
    here, server = run.world, _a_newcomer(run)
    run.since_ms = here.now
    here.advance(5)
    here.append("a1", 0, 0)
    _lose_the_backlog(run)
    run.lose(server)
    here.advance(61_000)  # past a sweep
    run.beat()


def _a_slave_that_came_later(run: Run) -> None:
    """Proven and pruned for one slave; another one has only what was written since."""
    here = run.world
    server = here.host["a1"]
    run.ask()
    entry = _arrives(run, "a1")
    _end_cleanly(run, server)
    _arrives(run, "a1")
    run.prune()
    assert here.pruned["h"] == 2, "of two families"
    for key in [key for key in here.slave_store.rows if key[:1] == b"s" and hex16(server.origin) in key]:
        del here.slave_store.rows[key]
    run.slave_id, here.outstanding[entry.number] = MASTER_ID[:-1] + "7", entry
    del here.arrived[entry.number]


def _others_take_over(run: Run) -> None:
    """A new region server of the slave; the others crash."""
    here = run.world
    gone = here.sinks()
    here.start_slave()
    for sink in gone:
        sink.running = sink.session = False
    here.hosting()


def _the_slaves_state_goes_back(run: Run) -> None:
    """The slave's table is truncated; then its state table is restored, and nobody is left who remembers."""
    here = _one_has_arrived(run)
    nightly = here.slave_store.snapshot()
    _truncated(run)
    here.slave_store.restore(nightly)
    _others_take_over(run)
    run.beat()


def _only_the_spool_knows(run: Run) -> None:
    """Of a first arrival: a server is killed while the slave's state table is away; then the slave's is truncated."""
    here = run.world
    run.ask()
    while not (sink := here.start_slave()).tracker.reaches_spool:
        pass
    for other in here.sinks():
        other.running = other.session = other is sink
    here.hosting()
    run.beat()
    here.append("a1", 0, 0)
    run.beat()
    here.slave_store.down = True
    run.ship_all()
    while sink.tracker.uncopied:
        here.advance(1)
        sink.tracker.copy()
    here.slave_store.down = False
    here.start_slave()
    sink.running = sink.session = False
    _truncated(run)


def _a_region_of_events_is_lost(run: Run) -> None:
    """The slave's table is truncated; then the region that says so is lost, and nobody is left who remembers."""
    here = _one_has_arrived(run)
    _truncated(run)
    here.slave_store.lose_range(b"i", b"s")
    _others_take_over(run)
    run.beat()


def _a_quiet_server_is_left(run: Run) -> None:
    """As before, but one server lives through it, which has written nothing of its own since the snapshot."""
    here = _one_has_arrived(run)
    quiet, host = here.sinks()
    nightly = here.slave_store.snapshot()
    here.truncate_slave()
    here.advance(30_000)
    for _ in range(40):
        host.tracker.tick(lambda: APPLIED)
    quiet.tracker.raise_mark_in_time()
    host.running = host.session = False
    here.hosting()
    here.slave_store.restore(nightly)
    run.beat()


def _not_synced_first(tracker: WriteTracker) -> Iterator[None]:
    """Heads are collected before the sync, and nothing is synced where none has changed."""
    collected = [(key, head, head.seq) for key, head in tracker.heads.items() if head.seq != head.flushed]
    if collected:
        rows = [head_row(key, head) for key, head, _ in collected]
        tracker.sync_open_wal()
        yield
        tracker.store.put(rows, tracker.fate())
        tracker.unvouched = [(head, seq) for _, head, seq in collected]


def refuse_heads(store: Store) -> None:
    """From now on the table refuses rows of heads."""
    put = store.put

    def picky(writes: Sequence[Write], fate: int = APPLIED) -> None:
        put(writes, REFUSED if any(key[:1] == b"h" for key, _ in writes) else fate)

    store.put = picky  # type: ignore[method-assign]


def _of_no_region(_: Cells) -> tuple[int, list[bytes]]:
    """Regions of the state table have no marks."""
    return 0, []


STORIES: dict[str, tuple[Callable[[Run], None], Any, str, Any]] = {
    "heads without the barrier": (_heads_are_late, origins, "_reason", _trust_the_living),
    "hooks that failed": (_a_hook_fails, origins, "_blind_spot", lambda *_: None),
    "hooks that failed before a crash": (_a_hook_fails_before_a_crash, queue_proofs, "has_doubts", lambda _: False),
    "a lost table": (_a_table_is_lost, WriteTracker, "check_nothing_was_lost", _forget_without_a_word),
    "heads of a table that went back": (_a_snapshot_is_restored, Recorder, "is_vouched", _written_anyway),
    "a lost region of heads": (_a_region_of_heads_is_lost, codec, "marked_regions", _of_no_region),
    "a lost region of events": (_a_region_of_events_is_lost, codec, "marked_regions", _of_no_region),
    "a copy without the events of its table": (_only_the_spool_knows, SinkTracker, "copy", _copied_alone),
    "an echo before its heads": (_heads_are_late, Recorder, "flush", _echo_first),
    "a narrower filter": (_a_filter_was_narrower, SinkTracker, "whole_families", _whole_by_its_stamp),
    "a loss beside a family that is left out": (_a_narrow_peer_loses, question, "family_filter", _no_family_of_it),
    "a peer that others load later": (_others_have_not_loaded_the_peer_yet, peer_versions, "REFRESHED_MS", 0),
    "heads collected before the sync": (_acknowledged_unsynced, WriteTracker, "changes", _not_synced_first),
    "write times of a clock that was set back": (_a_clock_is_set_back, Recorder, "look_at_clock", lambda _: {}),
    "a word that does not reach the barrier": (
        _a_word_from_before_a_crash,
        context,
        "covers_file",
        lambda word_ms, _: word_ms is not None,
    ),
    "heads of which the end arrived": (_a_head_above_a_hole, pruning.Target, "has_all", _by_its_last_entry),
    "the row of a crashed server pruned": (_a_crash_without_heads, pruner, "prunable_servers", _any_end),
    "pruned without the slave's proof": (_a_slave_that_came_later, tables, "unproven_ms", lambda *_: None),
    "peers that came after the heads": (_a_peer_comes_during_a_flush, WriteTracker, "flush", _peers_last),
    "a state table that went back": (
        _the_slaves_state_goes_back,
        context,
        "judge_tables",
        _without("slave-state-lost"),
    ),
    "a mark that is compared once": (_a_quiet_server_is_left, Recorder, "is_below_its_mark", lambda _: False),
}


@pytest.mark.parametrize(("story", "where", "name", "broken"), STORIES.values(), ids=STORIES)
def test_a_story_that_a_broken_rule_calls_complete(
    story: Callable[[Run], None], where: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rules it is not complete; with one of them taken away it would be."""
    honest = Run()
    story(honest)
    before = honest.seen["complete"]
    honest.ask()
    assert honest.seen["complete"] == before
    monkeypatch.setattr(where, name, broken)
    misled = Run()
    story(misled)
    with pytest.raises(BrokenPromise, match=FALSE_COMPLETE):
        misled.ask()


def test_a_word_for_all_of_file_accepts_a_crash_whenever_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has found the server gone by the barrier: no earlier word accepts it, and a later one is refused."""

    def asked() -> Run:
        run = Run()
        _arrives(run, "a1")
        run.lose(run.world.host["a1"])
        run.since_ms = run.world.now
        run.ask()
        return run

    assert asked().seen["complete"] == 1
    monkeypatch.setattr(context, "covers_file", lambda *_: False)
    assert asked().seen["complete"] == 0


def test_a_family_that_the_peer_leaves_out_is_no_part_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it ships is complete, although the rest never arrives; asked of everything, it would not be."""

    def asked() -> Run:
        run = Run()
        _a_narrow_peer(run)
        for _ in range(3):
            _write_by_turns(run)
            run.ship_all()
            run.beat()
        run.ask()
        return run

    run = asked()
    assert run.seen["complete"] == 1
    assert any("g" in entry.written for entry in run.world.outstanding.values())
    monkeypatch.setattr(FamilyFilter, "ships", _any_family)
    assert asked().seen["complete"] == 0


def test_a_narrow_peer_that_is_widened_leaves_a_hole() -> None:
    """Nothing excuses what was not shipped before: neither its missing beginning nor what came since."""
    run = Run()
    _a_narrow_peer(run)
    _write_by_turns(run)
    run.ship_all()
    run.world.set_narrow(False)
    run.world.refresh_all()
    run.ask()
    _write_by_turns(run)
    run.ship_all()
    run.beat()
    run.ask()
    assert run.seen["complete"] == 0


# --- a peer that changes during a run ------------------------------------------------------------------


def _removed(run: Run) -> None:
    run.world.remove_peer()


def _added_again(run: Run) -> None:
    _lose_the_backlog(run)


def _ships_less(run: Run) -> None:
    run.world.set_narrow(True)
    run.world.refresh_all()
    run.ship_all()


def _ships_less_for_a_while(run: Run) -> None:
    _ships_less(run)
    run.world.set_narrow(False)
    run.world.refresh_all()


def _peers_first(observation: Observation) -> Generator[None, None, list[Any]]:
    """As the tool did: the queues of a peer that may be gone, or another one, by then."""
    peers = observation._peers()
    yield
    queued = yield from observation._queues()
    return [*peers, *queued]


def _crashed_with_a_backlog() -> Run:
    """A server has ended, its WALs are split, and its queue holds one entry of the family that a narrow peer drops."""
    run = Run()
    here = run.world
    server = here.host["a1"]
    here.append("a1", 0, 0, frozenset("g"))
    here.sync(server)
    run.lose(server)
    here.advance(61_000)
    run.beat()
    return run


def _asked_while(change: Callable[[Run], None], after: int, begin: Callable[[], Run]) -> bool:
    """Whether a run of the tool, in which something changes after so many reads, was long enough for that."""
    run = begin()
    observation, reads = Observation(run.world, None, None), 0
    while not observation.advance():
        reads += 1
        if reads == after:
            change(run)
        run.beat()
    run.check(observation)
    return reads >= after


def _moments(change: Callable[[Run], None], begin: Callable[[], Run] = _crashed_with_a_backlog) -> int:
    """Between how many reads it may happen; each of them is tried."""
    return next(after for after in itertools.count(1) if not _asked_while(change, after, begin))


@pytest.mark.slow
@pytest.mark.parametrize("change", [_removed, _added_again, _ships_less, _ships_less_for_a_while])
def test_a_peer_changes_while_the_master_is_read(change: Callable[[Run], None]) -> None:
    """Whenever that is, what it has not shipped does not count as shipped."""
    assert _moments(change) > 20


@pytest.mark.parametrize("change", [_removed, _ships_less])
def test_peers_are_read_after_their_queues(change: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round there is a moment at which that misleads."""
    monkeypatch.setattr(Observation, "_replication", _peers_first)
    with pytest.raises(BrokenPromise, match=FALSE_COMPLETE):
        _moments(change)


# --- the state table that is lost during a run ---------------------------------------------------------


def _ended_with_a_loss() -> Run:
    """A server has ended cleanly, its last words are in the table, and one of its entries will never arrive."""
    run = Run()
    server = run.world.host["a1"]
    run.world.append("a1", 0, 0)
    _lose_the_backlog(run)
    run.beat()
    _end_cleanly(run, server)
    run.ship_all()
    run.beat()
    return run


def _dropped(run: Run) -> None:
    run.world.lose_master_rows()


def _dropped_before_another_run(run: Run) -> None:
    """Its barrier brings the barrier's row back."""
    _dropped(run)
    Observation(run.world, None, None).advance()


def _barrier_is_there(store: Store, _before: Any, *_known: Any) -> bool:
    """As the tool once looked whether a table had lost its rows."""
    return b"b" not in store.rows


@pytest.mark.parametrize("change", [_dropped, _dropped_before_another_run])
def test_the_state_table_is_lost_while_it_is_read(change: Callable[[Run], None]) -> None:
    """Whenever that is, rows from before do not vouch for what is gone."""
    assert _moments(change, _ended_with_a_loss) > 20


def test_a_barrier_does_not_show_that_the_table_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run may have put it there since."""
    monkeypatch.setattr(observer, "_is_other", _barrier_is_there)
    with pytest.raises(BrokenPromise, match=FALSE_COMPLETE):
        _moments(_dropped_before_another_run, _ended_with_a_loss)
