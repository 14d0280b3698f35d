"""Paths of random graphs: no cell is complete while something is missing, and each rule of paths is needed for that."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from status_tool.rules import graph as rules
from status_tool.rules.graph import Hop, PathState, Reach, Route
from status_tool.runs import graph_check
from status_tool.runs.graph_check import ReadSide
from status_tool.vocabulary.header import MASTER, SLAVE
from tests.simulation.graphs import Graph, Look, Reading, played
from tests.simulation.steps import BrokenPromise

GRAPH_STEPS = int(os.environ.get("GRAPH_STEPS", "2000"))


def test_no_cell_is_complete_while_an_entry_is_missing() -> None:
    """And each is complete in the end, where nothing was lost on the way."""
    seen = played(itertools.count(), GRAPH_STEPS)
    assert seen["complete"] > 10, seen
    assert seen["complete by way of others"] > 1, seen
    assert seen["judged while something was missing"] > 10, seen
    assert seen["judged at rest"] > 0, seen


def test_nor_in_runs_that_differ_each_time() -> None:
    """A run that fails names its seed."""
    played(itertools.count(random.SystemRandom().randrange(10**9)), GRAPH_STEPS // 3)


def _last_hop(_: Route, hops: Sequence[PathState], honest: Any = rules.along) -> PathState:
    found: PathState = honest(_, hops)
    return dataclasses.replace(found, reach=hops[-1].reach) if found.reach is not Reach.UNCONNECTED else found


def _first_hop(_: Route, hops: Sequence[PathState], honest: Any = rules.along) -> PathState:
    found: PathState = honest(_, hops)
    return dataclasses.replace(found, reach=hops[0].reach) if found.reach is not Reach.UNCONNECTED else found


def _carried_by_the_last(route: Route, hops: Sequence[PathState], honest: Any = rules.along) -> PathState:
    found: PathState = honest(route, hops)
    return dataclasses.replace(found, carried=hops[-1].carried)


def _best(routes: Sequence[PathState], honest: Any = rules.between) -> PathState:
    whole = [one for one in routes if one.reach is Reach.COMPLETE]
    return whole[0] if whole else honest(routes)


def _direct(hops: Sequence[Hop], _: int | None = None, honest: Any = rules.routes_of) -> list[Route]:
    return [route for route in honest(hops) if len(route) == 1]


def _any_round(_: ReadSide, __: ReadSide) -> bool:
    return True


def _as_it_was(_: Hop, judged: PathState) -> PathState:
    return judged


def _known(_: PathState, __: Mapping[str, frozenset[str]] | None) -> bool:
    return True


def _written(graph: Graph, *disabled: str) -> None:
    """A write on a, and all is shipped but over these edges."""
    for edge in disabled:
        for link in graph.places[edge[0]].links.values():
            link.enabled = link.enabled and link.target != edge[1]
    place = graph.places["a"]
    graph.write(place, place.regions[0])
    place.sync(place.host[place.regions[0]])
    graph.pass_time(1)
    graph.ship_all()


def _told(edges: str, disabled: str, silent: str = "") -> Graph:
    """A run of the tool when all was shipped but over one edge."""
    graph = Graph(0, edges)
    _written(graph, disabled)
    graph.ask(silent=frozenset(silent))
    return graph


class _LateArrival(Reading):
    """An entry of a comes to b once all are read as masters, and b ships nothing any more."""

    def read(self, side: str, number: int, names: Iterable[str]) -> None:
        if (side, number) == (SLAVE, 0):
            _arrives_late(self.graph)
        super().read(side, number, names)


def _arrives_late(graph: Graph) -> None:
    for name in "ab":
        for link in graph.places[name].links.values():
            link.enabled = name == "a"
    graph.ship_all()


class _WrongOrder(Reading):
    """The same from files."""

    def read_files(self) -> None:
        for name, side in (("b", MASTER), ("a", MASTER), ("b", SLAVE), ("c", SLAVE)):
            if side == SLAVE:
                _arrives_late(self.graph)
            self.keep(name, side, None, *self._whole(Look(self.graph.places[name]).side(side)))


def _late(desk: type[Reading]) -> Graph:
    graph = Graph(0, "ab bc")
    _written(graph)
    _written(graph, "ab")
    graph.ask(desk=desk, is_live=desk is _LateArrival)
    return graph


LESS_BY_THE_DIRECT_WAY = partial(_told, "ab bc ac:f", "bc")
"""One family is there, and what b relays is not."""
STORIES: dict[str, tuple[Callable[[], Graph], Any, str, Any]] = {
    "hops before the last": (partial(_told, "ab bc", "ab"), graph_check, "along", _last_hop),
    "hops after the first": (partial(_told, "ab bc", "bc"), graph_check, "along", _first_hop),
    # By b comes one family, and what a sends itself does not come.
    "what stops half-way": (partial(_told, "ab:f bc ac:g", "ac"), graph_check, "along", _carried_by_the_last),
    "a path that carries less": (LESS_BY_THE_DIRECT_WAY, graph_check, "between", _best),
    "paths through others": (LESS_BY_THE_DIRECT_WAY, graph_check, "routes_of", _direct),
    "a master read too early": (partial(_late, _LateArrival), ReadSide, "follows", _any_round),
    "files in the wrong order": (partial(_late, _WrongOrder), graph_check, "_not_in_order", _as_it_was),
    # What b, which is down, brings to c of a's writes is unknown: here, nothing, and a itself sends one family.
    "a cluster whose peers are unknown": (partial(_told, "ab bc ac:f", "bc", "b"), graph_check, "covers", _known),
}


@pytest.mark.parametrize(("story", "where", "name", "broken"), STORIES.values(), ids=STORIES)
def test_each_rule_of_paths_is_needed(
    story: Callable[[], Graph], where: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rules the path is not complete; with one of them taken away it would be."""
    assert story().seen["judged while something was missing"] > 0
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(BrokenPromise, match="complete from a to c"):
        story()
