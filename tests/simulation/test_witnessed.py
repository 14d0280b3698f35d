"""A master without trackers: never complete by a witness while an acknowledged entry is missing, and complete in the
end. Each rule is taken away, and is missed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from status_tool.gather import queue_backlog
from status_tool.gather.measured_queues import Measured
from status_tool.rules import witnessed as rules
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.runs import question
from status_tool.sources import arrivals
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.verdicts import Verdict
from tests.simulation import witnessed
from tests.simulation.dice import STEP_BYTES, Dice
from tests.simulation.steps import BrokenPromise
from tests.simulation.witnessed import SLAVE, WITNESS, Observation, Run, World

RUNS = 120
STEPS_A_RUN = 150
CALM = frozenset(("remove_slave", "remove_witness", "backup", "restart_master", "narrow", "alter", "truncate_region"))
"""Without these a world ends complete, but for tables that are older than the peer."""


def played(seed: int, without: frozenset[str] = frozenset()) -> Run:
    """A world after some random steps."""
    dice, run = random.Random(seed), Run(without)
    for _ in range(STEPS_A_RUN):
        run.step(Dice(dice.getrandbits(8 * STEP_BYTES)))
    return run


def to_the_end(run: Run) -> Counter[str]:
    """Everything is shipped; the verdict on each table."""
    run.world.introduce_all()
    run.world.drain()
    outcomes = [run.ask(table) for table in run.world.tables]
    return Counter(str(outcome.verdict) for outcome in outcomes if outcome)


def test_never_complete_while_an_entry_is_missing() -> None:
    """`BrokenPromise` otherwise; and the runs are about something."""
    seen: Counter[str] = Counter()
    for seed in range(RUNS):
        run = played(seed)
        to_the_end(run)
        seen.update(run.verdicts)
    assert min(seen[str(verdict)] for verdict in Verdict) > 5, seen
    assert seen["judged while something was missing"] > 100, seen


def test_complete_in_the_end() -> None:
    """Where nothing has happened that a witness cannot see through."""
    verdicts: Counter[str] = Counter()
    for seed in range(15):
        verdicts += to_the_end(played(seed, CALM))
    assert verdicts["incomplete"] == 0
    # The first table is older than a minute of the peer's life.
    assert verdicts["unverifiable"] == 15, verdicts
    assert verdicts["complete"] > 30, verdicts


def _only_rolled(mark: Measured, now: Measured, peer: str, honest: Any = queue_backlog._has_passed) -> bool:
    known = queue_backlog._queues_of(now, peer)
    closed = {key: queue for key, queue in queue_backlog._queues_of(mark, peer).items() if key in known}
    return all(
        honest(mark, queue.__class__(queue.holder, queue.live, queue.id, queue.wals[:-1]), known[key])
        for key, queue in closed.items()
        if queue.live and not queue.dead_servers
    )


def _of_the_living(mark: Measured, now: Measured, peer: str, honest: Any = queue_backlog._has_passed) -> bool:
    before, after = queue_backlog._queues_of(mark, peer), queue_backlog._queues_of(now, peer)
    living = [key for key, queue in before.items() if queue.live and not queue.dead_servers and key in after]
    return all(honest(mark, before[key], after[key]) for key in living)


def _without_znodes(world: World, honest: Any = World.table_rows) -> Any:
    return (row for row in honest(world) if row["kind"] != "fact")


def _unaltered(
    table: str, descriptor: Mapping[str, Any] | None, *rest: Any, honest: Any = rules.table_findings, **more: Any
) -> Any:
    known = {key: value for key, value in (descriptor or {}).items() if key != "altered_ms"}
    return honest(table, known, *rest, **more)


def lost(world: World, table: str, family: str = "f") -> None:
    """The slave's peer is away while an entry is written, and comes back in a later WAL."""
    world.remove_peer(SLAVE)
    written(world, table, family)
    for server in world.live():
        world.roll(server)
    world.add_peer(SLAVE)


def written(world: World, table: str, family: str = "f") -> None:
    of = world.tables[table]
    world.write(of, next(iter(of.regions)), frozenset(family))


def new_table(world: World) -> str:
    """With both families replicated, and one entry."""
    while True:
        world.create_table()
        name, table = list(world.tables.items())[-1]
        if table.scopes["g"]:
            return name


def set_narrow(world: World, narrow: bool) -> None:
    """The witness's peer ships one family, on all servers after a minute."""
    peer = world.peers[WITNESS]
    peer.narrow, peer.modified_ms = narrow, world.now
    world.advance(REFRESHED_MS)


def not_on_every_server(world: World) -> str:
    """A table comes right after the peer, and its server does not know that yet."""
    world.remove_peer(WITNESS)
    world.add_peer(WITNESS)
    name = new_table(world)
    lost(world, name)
    return name


def narrower_before(world: World) -> str:
    """The witness's peer left a family out for a while."""
    set_narrow(world, True)
    name = new_table(world)
    lost(world, name, "g")
    world.introduce_all()
    world.drain()
    set_narrow(world, False)
    return name


def narrower_now(world: World) -> str:
    """It leaves it out since before the table."""
    set_narrow(world, True)
    name = new_table(world)
    lost(world, name, "g")
    return name


def older_than_its_regions(world: World) -> str:
    """All regions are of a split since the peer has come."""
    world.remove_peer(WITNESS)
    name = new_table(world)
    lost(world, name)
    world.add_peer(WITNESS)
    world.advance(REFRESHED_MS)
    world.split_region(world.tables[name], next(iter(world.tables[name].regions)))
    return name


def lived_again(world: World) -> str:
    """An entry has the sequence id of one that the slave was sent in the region's earlier life."""
    name = new_table(world)
    written(world, name)
    world.drain()
    world.advance(1)
    world.truncate_region(next(iter(world.tables[name].regions)))
    lost(world, name)
    return name


def lived_again_after_pruning(world: World) -> str:
    """The witness remembers no single write time of the earlier life."""
    name = new_table(world)
    for _ in range(4):
        written(world, name)
    prune(world, name)
    world.truncate_region(next(iter(world.tables[name].regions)))
    lost(world, name)
    return name


def lived_again_unseen(world: World) -> str:
    """An entry of the second life is in a queue while later ones, of another server, are sent and would be pruned."""
    name = new_table(world)
    for _ in range(2):
        written(world, name)
    world.drain()
    (region,) = world.tables[name].regions
    world.truncate_region(region)
    world.advance(1)
    late = world.host[region]
    lost(world, name)
    world.introduce_all()
    world.host[region] = next(server for server in world.live() if server is not late)
    world.next_seq[region] = 3
    world.advance(20_000)
    for _ in range(3):
        written(world, name)
    peer = world.peers[WITNESS]
    for key in [key for key in peer.queues if key[0] != late.name]:
        world.ship(peer, key, 99, answered=True)
        world.ship(peer, key, 99, answered=True)
    world.advance(2 * rules.SETTLED_MS)
    run_of(world).ask(name)
    return name


def prune(world: World, table: str) -> None:
    """A run of the tool once all is shipped, and later."""
    world.drain()
    world.advance(2 * rules.SETTLED_MS)
    run_of(world).ask(table)
    assert any(first < last for _, first, last, _, _ in world.folder)


def run_of(world: World) -> Run:
    run = Run()
    run.world = world
    return run


def from_a_backup(world: World) -> str:
    """The folder lacks what was acknowledged since."""
    name = new_table(world)
    world.backup = list(world.folder)
    lost(world, name)
    world.introduce_all()
    world.drain()
    world.folder = list(world.backup)
    return name


def raised(world: World) -> str:
    """A family was local when the entry was written."""
    name = new_table(world)
    table = world.tables[name]
    table.scopes["g"] = 0
    written(world, name, "g")
    table.scopes["g"], table.altered_ms = 1, world.now
    return name


def _since(name: str, more_ms: int = 0) -> Callable[..., int]:
    """The peer has shipped all since then."""
    return lambda peer, _: peer[name] + more_ms


STORIES: dict[str, tuple[Callable[[World], str], Any, str, Callable[..., Any]]] = {
    "a peer that not every server has": (not_on_every_server, rules, "covered_since", _since("modified_ms")),
    "a peer that was narrower": (narrower_before, rules, "covered_since", _since("created_ms", REFRESHED_MS)),
    "a peer that ships less": (narrower_now, question, "witness_facts", lambda *_: rules.WitnessFacts()),
    "tables as old as their regions": (older_than_its_regions, World, "table_rows", _without_znodes),
    "tables that were altered": (raised, rules, "table_findings", _unaltered),
    "regions that live again": (lived_again, arrivals, "began_again", lambda _: None),
    "regions that live again after pruning": (lived_again_after_pruning, arrivals, "began_again", lambda _: None),
    "what is settled": (lived_again_unseen, witnessed, "is_settled", lambda _: True),
    "a folder from a backup": (from_a_backup, witnessed, "read_folder", lambda world, _: list(world.folder)),
}


@pytest.mark.parametrize(("story", "of", "name", "broken"), STORIES.values(), ids=STORIES)
def test_a_story_that_a_broken_rule_calls_complete(
    story: Callable[[World], str], of: Any, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the witness and the slave lack an entry, or its number is that of another; with the rule nobody says so."""

    def told() -> Outcome | None:
        run = Run()
        table = story(run.world)
        run.world.introduce_all()
        if len(run.world.folder) >= run.world.acknowledged:
            written(run.world, table)
        run.world.drain()
        return run.ask(table)

    outcome = told()
    assert outcome is None or outcome.verdict is Verdict.UNVERIFIABLE
    monkeypatch.setattr(of, name, broken)
    with pytest.raises(BrokenPromise):
        told()


def test_a_peer_that_is_added_anew_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queues are drained then, as they are new."""

    def told() -> Outcome | None:
        run = Run()
        world, table = run.world, new_table(run.world)
        lost(world, table)
        world.introduce_all()
        observation = Observation(world, 9, table)
        assert not observation.advance()
        world.remove_peer(WITNESS)
        world.add_peer(WITNESS)
        world.introduce_all()
        written(world, table)
        world.drain()
        while not observation.advance():
            pass
        return observation.outcome

    outcome = told()
    assert outcome is not None
    assert outcome.verdict is Verdict.UNVERIFIABLE
    monkeypatch.setattr(witnessed, "is_same_peer", lambda *_: True)
    with pytest.raises(BrokenPromise):
        told()


LOSING = CALM - {"remove_slave"}
BROKEN: dict[str, tuple[Any, str, Callable[..., Any], frozenset[str]]] = {
    "a queue that is not drained": (queue_backlog, "has_shipped_wals", lambda *_: True, LOSING),
    "a WAL that is being written": (queue_backlog, "has_shipped_wals", _only_rolled, LOSING),
    "what crashed servers have left": (queue_backlog, "has_shipped_wals", _of_the_living, LOSING),
    "a peer that came later": (rules, "covered_since", lambda *_: 0, LOSING - {"remove_witness"}),
}


@pytest.mark.parametrize(("of", "name", "broken", "without"), BROKEN.values(), ids=BROKEN)
def test_the_simulation_finds(
    of: Any, name: str, broken: Callable[..., Any], without: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rule a run is complete although something is missing."""
    monkeypatch.setattr(of, name, broken)

    def search() -> None:
        for seed in range(RUNS):
            to_the_end(played(seed, without))

    with pytest.raises(BrokenPromise):
        search()
