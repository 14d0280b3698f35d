"""What changed beside the WAL is named, and nothing else; and a rule that is taken away on purpose is found."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from status_tool.rules import content
from tests.simulation import ledger
from tests.simulation.dice import Dice
from tests.simulation.ledger import REGIONS, LedgerWorld, play

RUNS = 200
STEPS = 60


def runs(
    *, beside: bool, crashes: bool, alters: bool = False, loses_wals: bool = False, count: int = RUNS
) -> list[LedgerWorld]:
    """Random worlds, the same in every run."""
    dice = random.Random(7)
    steps = ([dice.getrandbits(62) for _ in range(STEPS)] for _ in range(count))
    return [play(some, beside=beside, crashes=crashes, alters=alters, loses_wals=loses_wals) for some in steps]


def false_alarms(worlds: list[LedgerWorld]) -> int:
    """Regions that are named although nothing happened to them that their servers did not note."""
    return sum(
        name in world.named() and not world.regions[name].touched and name not in world.unseen
        for world in worlds
        for name in REGIONS
    )


def missed(worlds: list[LedgerWorld]) -> int:
    """Regions that changed and are not named."""
    return sum(
        world.regions[name].changed and name not in world.named() and name not in world.unseen
        for world in worlds
        for name in REGIONS
    )


def test_an_ordinary_life_is_never_named() -> None:
    worlds = runs(beside=False, crashes=True)
    assert false_alarms(worlds) == 0
    assert sum(len(world.unseen) < len(REGIONS) for world in worlds) > RUNS // 2


def test_what_came_beside_the_wal_is_always_named() -> None:
    worlds = runs(beside=True, crashes=True)
    assert missed(worlds) == 0
    assert false_alarms(worlds) == 0
    assert sum(world.regions[name].changed for world in worlds for name in REGIONS) > RUNS // 2


def test_rows_stay_small() -> None:
    """However often a region moves, one tenure is left."""
    for world in runs(beside=False, crashes=False, count=50):
        assert all(len(row) == 2 for row in world.store.rows.values()), world.store.rows


def test_on_a_slave_every_region_is_in_custody_and_began_where_it_was_seen() -> None:
    """At the end of any life, whatever came beside the WAL; but for what a crash took along."""
    for world in runs(beside=False, crashes=True, count=50):
        assert world.unattended() == set()
        assert {name for name in world.named(master=False) if name not in world.unseen} == set()
    assert all(world.unattended() == set() for world in runs(beside=True, crashes=True, count=50))


@pytest.mark.parametrize("rounds", [1, 8])
def test_a_region_that_moves_while_a_slave_is_read_stays_in_custody(rounds: int) -> None:
    """Whether its new server has only written the opening by then, or has also taken over what there was before."""
    for number, world in enumerate(runs(beside=False, crashes=True, count=50)):
        dice, asked = Dice(number), world.asked()
        for name in (*REGIONS, *REGIONS):
            world.now += 1 + dice.below(900)
            world.move(name, dice)
            for _ in range(rounds):
                for server in world.living():
                    world.look(server)
                    world.write_ledger(server, urgent=True)
                    if rounds > 1:
                        world.join(server)
        assert world.unattended(asked) == set()


def kept_less(worlds: list[LedgerWorld], *, master: bool = False) -> tuple[int, int]:
    """Regions whose table keeps more now than before: not named; and all of them."""
    regions = ((world, name, world.regions[name]) for world in worlds for name in REGIONS)
    raised = [
        (world, name)
        for world, name, region in regions
        if (region.wrote_least if master else region.least) < region.kept
    ]
    return sum(name not in world.named(master=master) for world, name in raised), len(raised)


@pytest.mark.parametrize("master", [True, False])
def test_a_table_that_kept_less_before_is_always_named(master: bool) -> None:
    """Whoever had its regions, and whatever crashed since."""
    worlds = runs(beside=False, crashes=True, alters=True)
    not_named, raised = kept_less(worlds, master=master)
    assert (not_named, raised > RUNS // 10) == (0, True)
    quiet = [(world, name) for world in worlds for name in REGIONS if not world.regions[name].grew]
    named = [name for world, name in quiet if name in world.named(master=master) and name not in world.unseen]
    assert (named, len(quiet) > RUNS // 2) == ([], True)


def lost(worlds: list[LedgerWorld]) -> tuple[int, int]:
    """Regions of a slave of which lost WALs took what was recorded: not named; and all of them."""
    regions = [(world, name) for world in worlds for name in REGIONS if world.regions[name].lost]
    return sum(name not in world.named(master=False) for world, name in regions), len(regions)


def test_write_ahead_logs_that_a_slave_loses_are_always_named() -> None:
    """Crashes alone are no alarm."""
    worlds = runs(beside=False, crashes=True, loses_wals=True)
    not_named, all_lost = lost(worlds)
    assert (not_named, all_lost > RUNS // 20) == (0, True)
    for world in worlds:
        assert all(world.regions[name].robbed or name in world.unseen for name in world.named(master=False))


def test_a_server_without_the_tracker_breaks_custody() -> None:
    """While it has a region; afterwards by what it wrote there, and of a table that it opened first."""
    world, born = LedgerWorld(), "22" * 16
    world.settle()
    world.start()
    watched, blind = world.servers[0], world.servers[-1]
    blind.blind = True
    for name in (*REGIONS, born):
        if name == born:
            world.regions[name] = ledger.Region()
        else:
            world.close(name)
        world.open(name, blind, world.regions[name].stored_seq + 1)
    world.settle()
    assert world.unattended() == {*REGIONS, born}
    assert world.named(master=False) == {}
    world.write(REGIONS[0])
    for name in (*REGIONS, born):
        world.close(name)
        world.open(name, watched, world.regions[name].stored_seq + 1)
    world.settle()
    assert world.unattended() == set()
    assert world.named(master=False).keys() == {REGIONS[0], born}


def test_what_was_written_while_no_server_had_the_tracker_is_named() -> None:
    """All servers stop, run without it for a while, and with it again: the files tell where anything was written."""
    world = LedgerWorld()
    for blind in (False, True, False):
        for server in world.living():
            for name in tuple(server.held):
                world.close(name)
            world.write_ledger(server, urgent=True)
            server.alive = False
        world.start()
        world.servers[-1].blind = blind
        for name in REGIONS:
            world.open(name, world.servers[-1], world.regions[name].stored_seq + 1)
        if blind:
            world.write(REGIONS[0])
    world.settle()
    for master in (True, False):
        assert world.named(master=master).keys() == {REGIONS[0]}


def _as_after_a_crash(a: Any, b: Any, family: Any, honest: Any = content._follows) -> Any:
    return honest(content.Tenure(a.open, a.began_ms, a.seq, a.before, a.after), b, family)


def _as_after_a_close(a: Any, b: Any, _: Any) -> Any:
    return b.open > a.seq and a.after["f"].same(b.before["f"])


def _by_clocks(many: Any, honest: Any = content._in_order) -> Any:
    return sorted(honest(many), key=lambda one: one.began_ms)


def _whatever_it_held(_: Any, earlier: Any, held: Any) -> Any:
    return earlier.closed_ms is not None and held.open > earlier.seq


BROKEN: dict[str, tuple[object, str, Callable[..., object]]] = {
    "files not compared": (content, "_follows", lambda *_: True),
    "a close taken for a crash": (content, "_follows", _as_after_a_crash),
    "a crash taken for a close": (content, "_follows", _as_after_a_close),
    "beginnings not compared": (content, "_in_order", lambda many: sorted(many, key=lambda t: (t.open, t.seq))),
    "the order of clocks": (content, "_in_order", _by_clocks),
    "ids that began anew within the error of clocks": (content, "_began_anew", lambda _: None),
    "tenures that were taken over whatever they held": (ledger.LedgerWorld, "follows", _whatever_it_held),
    "what a table kept before": (content, "keeps_more", lambda *_: False),
    "a crash in between": (ledger.LedgerWorld, "is_last", lambda *_: True),
    "what had been appended": (ledger.LedgerWorld, "note_durable", lambda *_: None),
}


@pytest.mark.slow
@pytest.mark.parametrize(("where", "name", "instead"), BROKEN.values(), ids=BROKEN)
def test_a_rule_that_is_taken_away_is_found(
    where: object, name: str, instead: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, instead)
    for count in (RUNS // 10, RUNS):  # a few show most of them
        worlds = [run for beside in (True, False) for run in runs(beside=beside, crashes=True, count=count)]
        altered = runs(beside=False, crashes=True, alters=True, count=count)
        robbed = runs(beside=False, crashes=True, loses_wals=True, count=count)
        if missed(worlds) + false_alarms(worlds) + kept_less(altered)[0] + lost(robbed)[0] > 0:
            return
    pytest.fail("nothing was found")
