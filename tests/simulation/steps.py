"""The steps of a run, each decided by one number, and the two promises that are checked after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from status_tool.sources import codec
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.state_rows import column
from status_tool.vocabulary.verdicts import Verdict
from tests.simulation.dice import Dice
from tests.simulation.observer import SLAVE_ID, Observation
from tests.simulation.pruner import Pruning
from tests.simulation.store import APPLIED
from tests.simulation.tracker import STARTS, WHOLE, Entry, Recorder, number
from tests.simulation.world import MAX_OFFSET_MS, MAX_SERVERS, REGIONS, MasterServer, World

MOST_OBSERVATIONS = 2
DRAINING_ROUNDS = 400


class BrokenPromise(AssertionError):
    """The tool said complete while entries were missing, or did not although nothing was."""


class Run:
    """A world and the tool's runs in it."""

    def __init__(self, without: int = 0) -> None:
        """`without` switches off, bit by bit, `SWITCHES`: what a world must be spared of to end complete."""
        self.without = {name for bit, name in enumerate(SWITCHES) if without >> bit & 1}
        self.world = World()
        self.observations: list[Observation] = []
        self.pruning: Pruning | None = None
        self.seen: Counter[str] = Counter()
        self.shutdown_ms: int | None = None
        """What `ask` asks with."""
        self.since_ms: int | None = None
        """The word that `ask` gives."""
        self.slave_id = SLAVE_ID
        """Which slave `ask` asks about."""

    def play(self, steps: Iterable[int]) -> None:
        for step in steps:
            self.step(Dice(step))

    def step(self, dice: Dice) -> None:
        """One step; most of them small ones."""
        name = _TABLE[dice.below(len(_TABLE))]
        self.seen["steps"] += 1
        self.world.advance(dice.pick((1, 3, 40, 700, 9_000)))
        if name not in self.without:
            getattr(self, f"_{name}")(dice)

    # Writing

    def _write(self, dice: Dice) -> None:
        world = self.world
        region, via = dice.pick(REGIONS), dice.pick((0, 0, 0, 0, 1, 2))
        server = world.host[region]
        if not server.running or server.split or server.stopping:
            return
        lazily = dice.once_in(4)
        for _ in range(1 + dice.below(3)):
            families = frozenset(dice.pick(("fg", "fg", "f", "g")))
            entry = world.append(region, via, dice.pick((0, 0, 5, 900)), families, lazily=lazily)
            world.say(f"append {region} {sorted(families)} {entry.prevs}->{entry.seq} via {via} on {server.name}")
        if not lazily and dice.below(3):
            world.sync(server)

    def _empty_ring(self, dice: Dice) -> None:
        if servers := [server for server in self.world.living() if server.ring]:
            self.world.empty_ring(dice.pick(servers))

    def _set_clock(self, dice: Dice) -> None:
        """Somebody sets a server's clock, to a time that HBase would accept."""
        if servers := self.world.living():
            server = dice.pick(servers)
            server.offset = dice.below(2 * MAX_OFFSET_MS) - MAX_OFFSET_MS
            self.world.say(f"clock of {server.name} set to {server.offset}")

    def _sync(self, dice: Dice) -> None:
        if servers := self.world.living():
            self.world.sync(dice.pick(servers))

    def _roll(self, dice: Dice) -> None:
        if servers := [server for server in self.world.living() if not server.stopping and not server.split]:
            server, fine = dice.pick(servers), dice.below(3)
            self.world.roll(server, None if fine else dice.below(3))
            self.world.say(f"roll {server.name}{'' if fine else ' after a failed sync'}")

    def _jump(self, dice: Dice) -> None:
        region = dice.pick(REGIONS)
        self.world.next_seq[region] += dice.below(50)

    def _move(self, dice: Dice) -> None:
        region = dice.pick(REGIONS)
        host = self.world.host[region]
        targets = [s for s in self.world.living() if s.session and not s.stopping and s is not host]
        if host.running and host.session and not host.stopping and targets:
            self.world.sync(host)
            self.world.host[region] = dice.pick(targets)
            self.world.next_seq[region] += 1
            self.world.say(f"move {region} to {self.world.host[region].name}")

    # Trackers

    def _tick(self, dice: Dice) -> None:
        world = self.world
        server = dice.pick(world.masters[-MAX_SERVERS:])
        if server.tracker and (server.running or server.stopping):
            for _ in range(1 + dice.below(6)):
                server.tracker.tick(lambda: world.fates(dice))

    def _beat(self, dice: Dice) -> None:
        """A while in which every tracker does its rounds and nothing else happens."""
        rounds = 3 + dice.below(12)
        for tracker in self._trackers():
            for _ in range(rounds):
                tracker.tick(lambda: APPLIED)

    def _sink_tick(self, dice: Dice) -> None:
        if sinks := self.world.sinks():
            sink = dice.pick(sinks)
            for _ in range(1 + dice.below(6)):
                sink.tracker.tick(lambda: self.world.fates(dice))

    def _late(self, dice: Dice) -> None:
        store = dice.pick((self.world.master_store, self.world.slave_store))
        if store.late and not store.down:
            store.apply([store.late.pop(dice.below(len(store.late)))])

    def _outage(self, dice: Dice) -> None:
        store = dice.pick((self.world.master_store, self.world.slave_store))
        store.down = not store.down

    def _hook_error(self, dice: Dice) -> None:
        if trackers := [server.tracker for server in self.world.living() if server.tracker]:
            dice.pick(trackers).failing = True
            self.world.blemishes.add("hook error")

    def _lose_table(self, dice: Dice) -> None:
        """The state table is dropped and made anew by a tracker."""
        if dice.once_in(3):
            if dice.below(2):
                self.world.lose_master_rows()
            else:
                self.world.slave_store.lose()
            self.world.blemishes.add("state table lost")
            self.world.say("state table lost")

    def _restore_table(self, dice: Dice) -> None:
        """A snapshot of a state table is taken, or the last one is restored."""
        which = dice.below(2)
        store = (self.world.master_store, self.world.slave_store)[which]
        if which not in self.world.nightly or dice.below(3):
            self.world.nightly[which] = store.snapshot()
        elif not store.down:
            store.restore(self.world.nightly.pop(which))
            if not which:
                self.world.row_lost |= {server.origin for server in self.world.living()}
            elif number(store.get(b"c").get(column(b"m"))) >= max(self.world.slave_marks, default=0):
                back = store.get(b"c").get(column(b"b"), (None, 0))[0]
                self.world.witnesses = (back, self.world.sinks())
            self.world.blemishes.add("state table lost")
            self.world.say("state table restored")

    def _lose_region(self, dice: Dice) -> None:
        """A region of a state table is truncated, all but the one that begins the table."""
        which, at = dice.below(2), 1 + dice.below(len(STARTS) - 1)
        store = (self.world.master_store, self.world.slave_store)[which]
        if codec.marked_regions(store.get(b"c") if not store.down else {})[0] and dice.once_in(2):
            store.lose_range(STARTS[at], (*STARTS, b"\xff")[at + 1])
            if not which:
                self.world.row_lost |= {server.origin for server in self.world.living()}
            self.world.blemishes.add("state table lost")
            self.world.say(f"region {STARTS[at]!r} of a state table lost")

    def _drain_spool(self, dice: Dice) -> None:
        if self.world.spool and not self.world.master_store.down:
            self.world.master_store.apply(self.world.spool[0])
            self.world.spool.pop(0)
        if not self.world.slave_store.down:
            self.world.drain_copies(1)

    # Servers

    def _start(self, dice: Dice) -> None:
        if len(self.world.living()) < MAX_SERVERS:
            offset = dice.below(2 * MAX_OFFSET_MS) - MAX_OFFSET_MS
            tracked = "untracked" in self.without or not dice.once_in(6)
            server = self.world.start_master(offset, tracked=tracked)
            if server.tracker and dice.below(4):
                server.tracker.tick(lambda: self.world.fates(dice))
            if not tracked:
                self.world.blemishes.add("untracked")

    def _others(self, server: MasterServer) -> bool:
        return any(s is not server and s.session and not s.stopping for s in self.world.living())

    def _crash(self, dice: Dice) -> None:
        if servers := [s for s in self.world.living() if self._others(s) and not s.stopping]:
            server = dice.pick(servers)
            self.world.crash(server, dice.below(3))
            self.world.say(f"crash {server.name}")

    def _expire(self, dice: Dice) -> None:
        """A znode goes: that of a dead server, or of one in a long pause, which is a zombie from now on."""
        servers = [s for s in self.world.masters if s.session and self._others(s) and not s.stopping]
        if servers:
            server = dice.pick(servers)
            if not server.running or dice.once_in(4):
                server.session, server.gone_ms = False, self.world.now
                self.world.say(f"znode of {server.name} gone{' (zombie)' if server.running else ''}")

    def _split(self, dice: Dice) -> None:
        if servers := [s for s in self.world.masters if not s.session and not s.split]:
            server = dice.pick(servers)
            self.world.split(server, dice.below(3))
            self.world.say(f"split {server.name}")
            if server.tracker and server.tracker.fenced:
                for _ in range(dice.below(12)):
                    server.tracker.tick(lambda: self.world.fates(dice))

    def _claim(self, dice: Dice) -> None:
        split = {server.name for server in self.world.masters if server.split}
        keys = [key for key in self.world.queues if key[0] in split]
        claimers = [server for server in self.world.living() if server.session]
        if keys and claimers:
            key, claimer = dice.pick(keys), dice.pick(claimers)
            self.world.claim(claimer, key)
            self.world.say(f"{claimer.name} claims {key}")

    def _stop(self, dice: Dice) -> None:
        """A clean stop: regions go, the WAL is synced and closed; the final flush is still to come (`finish`)."""
        servers = [s for s in self.world.living() if s.session and not s.stopping and self._others(s)]
        if not servers:
            return
        server = dice.pick(servers)
        server.stopping = True
        self.world.sync(server)
        self.world.move_regions(server)
        server.wal.closed = True
        if server.tracker:
            server.tracker.over, server.tracker.busy = True, None
        self.world.say(f"stop {server.name}")

    def _finish(self, dice: Dice) -> None:
        """The end of a clean stop: the final flush went well, into the spool, or was cut short by a kill."""
        servers = [s for s in self.world.masters if s.stopping and s.running]
        if not servers:
            return
        server, spooled = dice.pick(servers), dice.below(3)
        if server.tracker and not server.tracker.ended and spooled:
            self.world.spool.append(server.tracker.spooled())
        server.running = server.session = server.stopping = False
        self.world.is_unseen(server.origin)
        self.world.say(f"end of {server.name}")

    def _start_sink(self, dice: Dice) -> None:
        if len(self.world.sinks()) < 3:
            self.world.start_slave()

    def _crash_sink(self, dice: Dice) -> None:
        if len(self.world.sinks()) > 1:
            sink = dice.pick(self.world.sinks())
            if self.world.is_last_witness(sink):
                return
            sink.running = False
            self.world.hosting()
            if sink.tracker.uncopied & sink.tracker.pending or self._requests_of(sink):
                self.world.blemishes.add("sink crashed before it could record")
            self.world.late_requests = [late for late in self.world.late_requests if late[0] is not sink]
            self.world.say(f"crash {sink.tracker.name}")

    def _requests_of(self, sink: object) -> bool:
        return any(late[0] is sink for late in self.world.late_requests)

    def _expire_sink(self, dice: Dice) -> None:
        for sink in self.world.slaves:
            if not sink.running:
                sink.session = False

    def _slave_admin(self, dice: Dice) -> None:
        """The slave's table is truncated, restored, disabled, altered; a family is dropped or added."""
        world = self.world
        if not world.slave_enabled:
            world.slave_enabled = True
            return
        match dice.pick((*("snapshot", "restore", "disable", "family") * 2, "truncate", "alter")):
            case "snapshot":
                world.slave_snapshot = world.slave_families, dict(world.arrived)
            case "disable":
                world.slave_enabled = False
            case "family" if world.slave_families != WHOLE:
                world.slave_families = WHOLE
                world.say("family added to the slave's table")
            case "family":
                world.drop_slave_family()
                world.say("family dropped from the slave's table")
            case "alter":
                world.keep_less(dice)
                world.say("the slave's table keeps less")
            case "truncate":
                world.truncate_slave()
                world.say("slave's table truncated")
            case "restore" if world.slave_snapshot is not None:
                world.restore_slave()
                world.say("slave's table restored")

    # Replication

    def _ship(self, dice: Dice) -> None:
        world = self.world
        running = {server.name for server in world.living() if not server.split}
        keys = [key for key in world.queues if key[0] in running]
        if keys and world.sinks() and world.peer is not None and world.peer.enabled:
            world.ship(dice.pick(keys), dice.pick(world.sinks()), dice)

    def _late_request(self, dice: Dice) -> None:
        """A request that its source has given up is applied after all."""
        if self.world.late_requests:
            sink, entries = self.world.late_requests.pop(dice.below(len(self.world.late_requests)))
            if self.world.can_apply(entries):
                self.world.apply(entries)
                sink.tracker.batch_applied(entries, lambda: self.world.fates(dice))

    def _peer(self, dice: Dice) -> None:
        world = self.world
        if world.peer is None:
            world.add_peer()
            world.say("add_peer")
        elif dice.once_in(3):
            world.remove_peer()
            world.say("remove_peer")
        elif dice.once_in(2):
            world.restart_hbase_master()
            world.say("restart_hbase_master")
        else:
            world.peer.enabled = not world.peer.enabled

    def _filter(self, dice: Dice) -> None:
        """The peer ships one family for a while."""
        if self.world.peer is not None and self.world.is_refreshed():
            self.world.set_narrow(not self.world.peer.narrow)
            self.world.say(f"peer {'narrow' if self.world.peer.narrow else 'wide'}")

    def _refresh(self, dice: Dice) -> None:
        """A region server loads what was changed of the peer."""
        if servers := self.world.living():
            server = dice.pick(servers)
            self.world.refresh(server)
            self.world.say(f"{server.name} loads the peer")

    def _introduce(self, dice: Dice) -> None:
        servers = [s for s in self.world.living() if not s.knows_peer and not s.split]
        if servers and self.world.peer is not None:
            self.world.introduce(dice.pick(servers))

    # The tool

    def _observe(self, dice: Dice) -> None:
        if len(self.observations) < MOST_OBSERVATIONS and (dice.below(4) == 0 or self.observations):
            world = self.world
            shutdown_ms = world.now - dice.pick((0, 10, 5_000)) if dice.once_in(3) else None
            since_ms = world.now - dice.pick((10, 900, 20_000)) if dice.once_in(8) else None
            by_table = len(self.observations) % 2 == 1
            self.observations.append(Observation(world, shutdown_ms, since_ms, by_table=by_table))
        self._look(dice)

    def _look(self, dice: Dice) -> None:
        if self.observations:
            observation = dice.pick(self.observations)
            for _ in range(1 + dice.below(10)):
                if dice.below(3) == 0:
                    self._beat(Dice(0))
                if observation.advance():
                    self.observations.remove(observation)
                    self.check(observation)
                    return

    def _prune(self, dice: Dice) -> None:
        """Some of a run of `prune`, which may be given up."""
        if self.pruning is None or dice.once_in(30):
            self.pruning = Pruning(self.world, on_master=bool(dice.below(2)))
        for _ in range(1 + dice.below(120)):
            if dice.once_in(16):
                self._beat(Dice(0))
            if self.pruning.advance():
                self.pruning = None
                return

    def beat(self) -> None:
        """Every tracker does some rounds, and nothing fails."""
        for tracker in self._trackers():
            for _ in range(20):
                tracker.tick(lambda: APPLIED)

    def lose(self, server: MasterServer) -> None:
        """It is killed, its session ends, and its WALs are split, at once."""
        self.world.crash(server, 0)
        server.session = False
        self.world.split(server, 0)

    def ask(self) -> None:
        """A run of the tool in which only the trackers' rounds come between its reads."""
        observation = Observation(self.world, self.shutdown_ms, self.since_ms)
        observation.slave_id = self.slave_id
        while not observation.advance():
            for tracker in self._trackers():
                tracker.tick(lambda: APPLIED)
        self.check(observation)

    def check(self, observation: Observation) -> Outcome:
        """Never complete with an entry missing that was acknowledged before the cut."""
        outcome = observation.outcome
        assert outcome is not None
        self.seen[str(outcome.verdict)] += 1
        world = self.world
        missing = [
            entry
            for entry in world.outstanding.values()
            if in_scope(entry, observation)
            and not world.has_arrived(entry, observation.families)
            and world.taken_ms.get(entry.number, 0) < observation.slave_began_ms
        ]
        if observation.since_ms is not None:
            missing = [entry for entry in missing if not world.by_a_zombie(entry)]
        missing, unseen = [e for e in missing if not world.is_unseen(e.origin)], missing
        self.seen["lost by a server that nobody knows"] += len(missing) < len(unseen)
        self.seen["judged while something was missing"] += bool(missing)
        if outcome.verdict is Verdict.COMPLETE and missing:
            raise BrokenPromise(f"complete, but missing: {missing}")
        return outcome

    # The end

    def drain(self) -> None:
        """Nothing fails any more; all is shipped and flushed. Without a blemish the verdict must be complete."""
        world = self.world
        for store in (world.master_store, world.slave_store):
            store.down = False
            store.apply(store.late)
            store.late.clear()
        world.slave_enabled, world.slave_families = True, WHOLE
        if world.peer is None:
            world.add_peer()
        assert world.peer is not None
        world.peer.enabled = True
        if world.peer.narrow:
            world.set_narrow(False)
        world.refresh_all()
        for server in list(world.masters):
            self._end_of(server)
        world.late_requests, late = [], world.late_requests
        for sink, entries in late:
            world.apply(entries)
            sink.tracker.batch_applied(entries, lambda: APPLIED)
        self.ship_all()
        for store_file in world.spool:
            world.master_store.apply(store_file)
        world.spool.clear()
        world.drain_copies(len(world.slaves))
        self._expire_sink(Dice(0))
        self._judge_at_rest()
        if not world.blemishes:
            before = world.pruned.total()
            self.prune()
            if world.pruned.total() > before:
                self._judge_at_rest()

    def prune(self) -> None:
        """Both sides, until nothing is left to be pruned: heads, then segments, then the servers' rows."""
        self.world.advance(60_000)
        self.beat()
        for on_master in (True, False, True):
            pruning = Pruning(self.world, on_master=on_master)
            while not pruning.advance():
                for tracker in self._trackers():
                    tracker.tick(lambda: APPLIED)

    def _end_of(self, server: MasterServer) -> None:
        """Servers that are on their way out go; the others sync and know the peer."""
        world = self.world
        if server.stopping:
            while server.tracker and server.running and not server.tracker.ended:
                server.tracker.tick(lambda: APPLIED)
            server.running = server.session = server.stopping = False
        if not server.running or not server.session:
            if server.running:
                world.sync(server)
            server.session = False
            if not server.split:
                world.split(server, 0)
            return
        world.sync(server)
        if not server.knows_peer:
            world.introduce(server)

    def ship_all(self) -> None:
        """The queues of servers that are gone are claimed, and all of every queue arrives."""
        world = self.world
        claimer = next(server for server in world.living() if server.session)
        gone = {server.name for server in world.masters if server.split}
        for key in [key for key in world.queues if key[0] in gone]:
            world.claim(claimer, key)
        for key in list(world.queues):
            while key in world.queues and (found := world.batch(key, 1000)):
                position, todo = found
                shipped = world.filtered(todo, key[0])
                world.apply(shipped)
                world.sinks()[0].tracker.batch_applied(shipped, lambda: APPLIED)
                position.at += len(todo)

    def _judge_at_rest(self) -> None:
        world, observation = self.world, Observation(self.world, None, None)
        for _ in range(DRAINING_ROUNDS):
            world.advance(100)
            if observation.advance():
                break
            for tracker in self._trackers():
                tracker.tick(lambda: APPLIED)
        outcome = self.check(observation)
        if not world.blemishes:
            self.seen["judged at rest"] += 1
            if outcome.verdict is not Verdict.COMPLETE:
                raise BrokenPromise(f"false alarm: {[(p.region, p.origin, p.detail) for p in outcome.problems]}")

    def _trackers(self) -> list[Recorder]:
        ours: list[Recorder] = [s.tracker for s in self.world.living() if s.tracker and s.session]
        return [*ours, *(sink.tracker for sink in self.world.sinks())]


def in_scope(entry: Entry, observation: Observation) -> bool:
    """Whether an entry was in scope for the run: acknowledged by the cut, and not of the accepted baseline."""
    cut = observation.cut if observation.shutdown_ms is None else observation.shutdown_ms
    since_ms = observation.since_ms
    if entry.acked is None or entry.acked > min(cut, observation.cut):
        return False
    return since_ms is None or (entry.write_ms > since_ms and entry.appended > since_ms)


_WEIGHTS = {
    **{"write": 12, "sync": 2, "empty_ring": 2, "set_clock": 1, "roll": 3, "jump": 1, "move": 2},
    **{"tick": 10, "sink_tick": 6, "beat": 4, "late": 3, "outage": 1, "hook_error": 1},
    **{"lose_table": 1, "restore_table": 2, "lose_region": 2, "drain_spool": 1},
    **{"start": 2, "crash": 2, "expire": 4, "split": 5, "claim": 6, "stop": 2, "finish": 4},
    **{"start_sink": 1, "crash_sink": 1, "expire_sink": 1, "slave_admin": 2},
    **{"ship": 16, "late_request": 2, "peer": 1, "filter": 1, "refresh": 2, "introduce": 3},
    **{"observe": 5, "look": 12, "prune": 3},
}
SWITCHES = (
    *("peer", "lose_table", "restore_table", "lose_region", "hook_error", "untracked", "crash_sink", "crash"),
    *("outage", "late_request", "filter", "slave_admin"),
)
_TABLE = [name for name, weight in _WEIGHTS.items() for _ in range(weight)]
