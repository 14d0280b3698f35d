"""Graphs of clusters: hops, routes, loops, and what hops prove together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from status_tool.errors import UsageError
from status_tool.rules.graph import (
    Hop,
    PathState,
    Reach,
    Station,
    along,
    astray,
    barred,
    between,
    endless,
    hops_of,
    loops_of,
    outside,
    routes_of,
    same_ids,
    verdict_of,
)
from status_tool.rules.peers import REPLICAS_ENDPOINT
from status_tool.vocabulary.verdicts import Evidence, Verdict


def graph(edges: str, **more: Any) -> list[Station]:
    """Clusters of one letter; `ab` is a peer of a that leads to b, named by its place among all."""
    names = sorted(set(edges.replace(" ", "")))
    peers: Mapping[str, list[dict[str, Any]]] = {name: [] for name in names}
    for number, edge in enumerate(edges.split(), 1):
        peers[edge[0]].append({"id": str(number), "cluster_id": edge[1], **more})
    return [Station(name, name, f"zk:2181:/{name}", tuple(peers[name])) for name in names]


def shown(edges: str) -> list[str]:
    """The routes of a graph by their clusters."""
    routes = routes_of(hops_of(graph(edges)))
    return ["".join((route[0].source, *(hop.target for hop in route))) for route in routes]


def whole(**families: str) -> PathState:
    return PathState(Reach.COMPLETE, Evidence.EXACT, (), {name: frozenset(own) for name, own in families.items()})


def behind(**families: str) -> PathState:
    return PathState(Reach.BEHIND, Evidence.EXACT, ("late",), whole(**families).carried)


AB, BC = Hop("a", "1", "b"), Hop("b", "2", "c")


@pytest.mark.parametrize(
    ("edges", "routes"),
    [
        ("ab", ["ab"]),
        ("ab bc", ["ab", "bc", "abc"]),
        ("ab bc ca", ["ab", "bc", "ca", "abc", "bca", "cab"]),
        ("ab ab", ["ab", "ab"]),
        ("ab ac", ["ab", "ac"]),
        ("ab ba", ["ab", "ba"]),
    ],
)
def test_routes_visit_no_cluster_twice(edges: str, routes: list[str]) -> None:
    """Because HBase ships no entry to a cluster that it has passed."""
    assert sorted(shown(edges)) == sorted(routes)


def test_a_graph_with_too_many_paths_is_refused() -> None:
    """Ten clusters, each with all others."""
    names = "abcdefghij"
    hops = [Hop(a, b, b) for a in names for b in names if a != b]
    with pytest.raises(UsageError, match="more than 1000 paths"):
        routes_of(hops)


def test_loops() -> None:
    assert len(loops_of(hops_of(graph("ab bc ca ba")))) == 2
    assert loops_of(hops_of(graph("ab bc"))) == []


def test_where_replication_may_not_stop() -> None:
    """Entries that came back, and an endpoint that need not mark what it ships."""
    cycle = graph("ab bc ca")
    assert list(endless(cycle, [])) == []
    (told,) = endless(cycle, ["b"])
    assert "a → b → c → a (peer 1 of a, peer 2 of b, peer 3 of c)" in told
    assert "b got entries back" in told
    assert list(endless(graph("ab bc"), ["b"])) == []
    (told,) = endless(graph("ab ba", endpoint="org.example.Own"), [])
    assert "peer 1 of a has replication endpoint org.example.Own" in told


def test_peers_that_lead_elsewhere() -> None:
    """Named, as are clusters that cannot be told apart."""
    a, b = graph("ab bx")[:2]
    (told,) = outside([a, b])
    assert told.startswith("peer 2 of b leads to an unknown cluster, which is none of the clusters named here")
    assert astray([a, b], "a") == []
    (told,) = outside(graph("aa"))
    assert told == "peer 1 of a leads to its own cluster: nothing is shipped"
    replicas = graph("ab", endpoint=REPLICAS_ENDPOINT, cluster_id=None, cluster_key="other:2181:/hbase")
    assert (list(outside(replicas)), astray(replicas, "b")) == ([], [])
    (told,) = same_ids([a, Station("c", "a", "zk:2181:/c", ())])
    assert "a and c have the same cluster id" in told


def test_a_peer_whose_cluster_could_not_be_queried_may_lead_to_any_of_them() -> None:
    """Its key may name hosts in another way."""
    a, b, c = graph("ab bc")
    peers = tuple({**peer, "cluster_id": None, "cluster_key": "other:2181:/hbase"} for peer in b.peers or ())
    b = dataclasses.replace(b, peers=peers)
    assert hops_of([a, b, c]) == [AB]
    assert astray([a, b, c], "c") == [BC]
    assert astray([a, b, c], "b") == []
    assert "it may be one of those named here" in " ".join(outside([a, b, c]))
    assert astray([a, b, dataclasses.replace(c, cluster_key="other:2181:/hbase")], "c") == []


def test_any_peer_may_lead_to_a_cluster_whose_id_is_unknown() -> None:
    """It could not be reached by the name that its site files have; the peer's id is known by another."""
    a, b, c = graph("ab bc")
    unknown = dataclasses.replace(c, cluster_id="", peers=None)
    assert hops_of([a, b, unknown]) == [AB]
    assert astray([a, b, unknown], "c") == [BC]
    assert astray([a, b, unknown], "a") == []
    assert "it may be c" in " ".join(outside([a, b, unknown]))


def test_two_clusters_of_one_id_stop_a_path() -> None:
    """Also where another one lies between them: what HBase never ships looks like nothing to ask for."""
    a, b, c = graph("ab bc")
    twin = Station("c", "a", "zk:2181:/c", ())
    assert barred((AB, BC), [a, b, c]) is None
    assert "a and c have the same cluster id a" in (barred((AB, BC), [a, b, twin]) or "")
    assert barred((BC,), [a, b, twin]) is None
    unknown = [Station(one.name, "", one.cluster_key, one.peers) for one in (a, b, c)]
    assert barred((AB, BC), unknown) is None


def test_a_path_is_complete_only_with_all_its_hops() -> None:
    """And its evidence is the weakest."""
    assert along((AB, BC), [whole(t="f"), whole(t="f")]).reach is Reach.COMPLETE
    late = along((AB, BC), [whole(t="f"), behind(t="f")])
    assert (late.reach, late.reasons) == (Reach.BEHIND, ("late",))
    doubt = along((AB, BC), [PathState(Reach.UNVERIFIABLE, None, ("why",)), whole(t="f")])
    assert (doubt.reach, doubt.evidence) == (Reach.UNVERIFIABLE, None)
    accepted = PathState(Reach.COMPLETE, Evidence.ACCEPTED, (), {"t": frozenset("f")})
    assert along((AB, BC), [accepted, whole(t="f")]).evidence is Evidence.ACCEPTED


def test_a_path_carries_what_all_its_hops_ship() -> None:
    """What stops is named; a path that carries nothing connects nothing."""
    part = along((AB, BC), [whole(t="fg", u="f"), whole(t="f")])
    assert (part.reach, part.carried) == (Reach.COMPLETE, {"t": frozenset("f")})
    assert part.stopped == ("t (g) stops at b", "u (f) stops at b")
    none = along((AB, BC), [whole(t="f"), whole(u="f")])
    assert none.reach is Reach.UNCONNECTED
    assert "peer 2 of b ships none" in none.reasons[0]
    # Of the path's own cluster: its peer may have been made so by mistake.
    empty = PathState(Reach.UNVERIFIABLE, None, ("not replicated",), {})
    assert along((AB,), [empty]).reach is Reach.UNVERIFIABLE
    assert along((AB, BC), [empty, whole(t="f")]).reach is Reach.UNVERIFIABLE


def test_nothing_stops_where_nobody_knows_what_is_shipped() -> None:
    """Nor is a path complete that has a hop of which that is unknown, although one hop alone is."""
    doubt = along((AB, BC), [whole(t="f"), PathState(Reach.UNVERIFIABLE, None, ("not described",))])
    assert (doubt.reach, doubt.reasons, doubt.stopped) == (Reach.UNVERIFIABLE, ("not described",), ())
    unknown = PathState(Reach.COMPLETE, Evidence.EXACT)
    both = along((AB, BC), [whole(t="f"), unknown])
    assert (both.reach, "peer 2 of b ships a table whose descriptor" in both.reasons[0]) == (Reach.UNVERIFIABLE, True)
    assert along((AB,), [unknown]).reach is Reach.COMPLETE


def test_between_two_clusters_the_best_of_equal_paths_counts() -> None:
    """A path that is behind does no harm where another one has brought everything; else the worst counts."""
    assert between([behind(t="f"), whole(t="f")]).reach is Reach.COMPLETE
    assert between([behind(t="f", u="f"), whole(t="f")]).reach is Reach.BEHIND
    assert between([behind(u="f"), whole(t="f")]).reach is Reach.BEHIND
    assert between([whole(u="f"), whole(t="f")]).reach is Reach.COMPLETE
    assert between([PathState(Reach.UNVERIFIABLE), whole(t="f")]).reach is Reach.UNVERIFIABLE
    assert between([]).reach is Reach.UNCONNECTED


def test_the_verdict_is_the_worst_in_scope() -> None:
    """Pairs that are not connected count only if there are no others."""
    assert verdict_of([Reach.COMPLETE, Reach.UNCONNECTED]) is Verdict.COMPLETE
    assert verdict_of([Reach.COMPLETE, Reach.UNVERIFIABLE]) is Verdict.UNVERIFIABLE
    assert verdict_of([Reach.GAP, Reach.UNVERIFIABLE]) is Verdict.INCOMPLETE
    assert verdict_of([Reach.UNCONNECTED]) is Verdict.UNVERIFIABLE
    assert verdict_of([]) is Verdict.UNVERIFIABLE
