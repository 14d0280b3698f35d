"""A graph of clusters and replication peers: its edges, its paths, its loops, and what a path proves.

An entry that began on one cluster reaches another one along a path that visits no cluster twice: HBase ships no entry
to a cluster that the entry has passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from status_tool.errors import UsageError
from status_tool.rules.peers import PeerFacts, feeds_replicas, is_astray, leads_to, own_shipping
from status_tool.vocabulary.outcome import Outcome
from status_tool.vocabulary.verdicts import Evidence, Verdict

MAX_ROUTES = 1_000
Families = Mapping[str, frozenset[str]]
"""Families by table."""


class Reach(StrEnum):
    """State of the entries of one cluster on another one, from best to worst."""

    UNCONNECTED = "not connected"
    COMPLETE = "complete"
    UNVERIFIABLE = "unverifiable"
    BEHIND = "behind"
    GAP = "gap"


_RANKS = {reach: rank for rank, reach in enumerate(Reach)}
_EVIDENCE = list(Evidence)
VERDICTS = {
    Reach.UNCONNECTED: Verdict.UNVERIFIABLE,
    Reach.COMPLETE: Verdict.COMPLETE,
    Reach.UNVERIFIABLE: Verdict.UNVERIFIABLE,
    Reach.BEHIND: Verdict.INCOMPLETE,
    Reach.GAP: Verdict.INCOMPLETE,
}


@dataclass(frozen=True, slots=True)
class Station:
    """A cluster by the name that the operator gave it. `peers` is None if they could not be read."""

    name: str
    cluster_id: str = ""
    cluster_key: str = ""
    peers: tuple[PeerFacts, ...] | None = None
    elsewhere: str = ""
    """Why the peers that its ZooKeeper has may not be its own, in words; then `peers` is None, too."""


class Hop(NamedTuple):
    """A replication peer that leads from one named cluster to another."""

    source: str
    peer: str
    target: str

    def __str__(self) -> str:
        return f"peer {self.peer} of {self.source}"


Route = tuple[Hop, ...]
"""Hops that follow each other and visit no cluster twice."""


@dataclass(frozen=True, slots=True)
class PathState:
    """State of a hop, a route, or of all routes between two clusters."""

    reach: Reach
    evidence: Evidence | None = None
    reasons: tuple[str, ...] = ()
    """What holds it back, in words."""
    carried: Families | None = None
    """The families that are shipped all the way; None: unknown."""
    stopped: tuple[str, ...] = ()
    """What does not get to the end, and where it stops, in words."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A hop with its verdict; `outcome` is None if it could not be checked."""

    hop: Hop
    is_enabled: bool
    judged: PathState
    outcome: Outcome | None = None


def hops_of(stations: Sequence[Station]) -> list[Hop]:
    """Return the peers that lead from one of the clusters to another one of them."""
    return [
        Hop(station.name, str(peer["id"]), other.name)
        for station in stations
        for peer in station.peers or ()
        for other in stations
        if other is not station and leads_to(peer, other.cluster_id, other.cluster_key)
    ]


def outside(stations: Sequence[Station]) -> Iterator[str]:
    """Peers that lead to none of the clusters, in words."""
    for station in stations:
        for peer in station.peers or ():
            if feeds_replicas(peer):
                continue
            if not _leads_among(peer, stations):
                where = peer.get("endpoint") or peer.get("cluster_key") or "an unknown cluster"
                which = "none of the clusters named here"
                if is_astray(peer):
                    which = "a cluster whose id could not be queried: it may be one of those named here"
                elif unknown := [one.name for one in stations if not one.cluster_id]:
                    which = f"none whose id is known: it may be {' or '.join(unknown)}"
                yield f"peer {peer['id']} of {station.name} leads to {where}, which is {which}"
            elif leads_to(peer, station.cluster_id, station.cluster_key):
                yield f"peer {peer['id']} of {station.name} leads to its own cluster: nothing is shipped"


def astray(stations: Sequence[Station], target: str) -> list[Hop]:
    """Return the hops of peers that may lead to `target`: its id, or their clusters', could not be queried."""
    is_unknown = any(station.name == target and not station.cluster_id for station in stations)
    return [
        Hop(station.name, str(peer["id"]), target)
        for station in stations
        for peer in station.peers or ()
        if station.name != target and not _leads_among(peer, stations)
        if is_astray(peer) or (is_unknown and not feeds_replicas(peer))
    ]


def _leads_among(peer: PeerFacts, stations: Iterable[Station]) -> bool:
    return any(leads_to(peer, one.cluster_id, one.cluster_key) for one in stations)


def same_ids(stations: Sequence[Station]) -> Iterator[str]:
    """Clusters that have one id, in words."""
    for number, one in enumerate(stations):
        for other in stations[:number]:
            if one.cluster_id and one.cluster_id == other.cluster_id:
                yield (
                    f"{other.name} and {one.name} have the same cluster id {one.cluster_id}: HBase ships no entry to a "
                    "cluster whose id it has passed, so entries of one never reach the other; create one of them anew"
                )


def barred(route: Route, stations: Iterable[Station]) -> str | None:
    """Return why HBase stops a route's entries on the way, in words; None if it does not.

    Two clusters of one id look to it like one that the entries come back to: an edge between them, or the last one of
    such a route, shows nothing missing, because what HBase never ships there is not asked for.
    """
    ids = {station.name: station.cluster_id for station in stations}
    passed = {ids.get(route[0].source, ""): route[0].source}
    for hop in route:
        own = ids.get(hop.target, "")
        if own and own in passed:
            return (
                f"{passed[own]} and {hop.target} have the same cluster id {own}, and HBase ships no entry to a cluster "
                "whose id it has passed"
            )
        passed[own] = hop.target
    return None


def routes_of(hops: Sequence[Hop]) -> list[Route]:
    """Return every route, the shortest first. Raises `UsageError` if there are more than `MAX_ROUTES`."""
    found: list[Route] = []
    waiting: list[Route] = [(hop,) for hop in hops]
    while waiting:
        found += waiting
        # In a full mesh the number of paths grows with the factorial of the number of clusters.
        if len(found) > MAX_ROUTES:
            raise UsageError(f"more than {MAX_ROUTES} paths lead through these clusters: name fewer of them")
        waiting = [
            (*route, hop) for route in waiting for hop in hops if hop.source == route[-1].target and _is_new(route, hop)
        ]
    return found


def _is_new(route: Route, hop: Hop) -> bool:
    return all(hop.target not in (one.source, one.target) for one in route)


def loops_of(hops: Sequence[Hop]) -> list[Route]:
    """Return every loop, once, beginning at the first of its clusters by name."""
    closed = [
        (*route, hop)
        for route in routes_of(hops)
        for hop in hops
        if hop.source == route[-1].target and hop.target == route[0].source
    ]
    return [loop for loop in closed if loop[0].source == min(hop.source for hop in loop)]


def endless(stations: Sequence[Station], returned: Iterable[str]) -> Iterator[str]:
    """Loops in which replication may not stop, with the peers that make them, in words.

    `returned` are the clusters that hold entries which had passed them before. A peer with an endpoint of its own need
    not mark what it ships with the id of its cluster.
    """
    own = {
        (station.name, str(peer["id"])): own_shipping(peer)
        for station in stations
        for peer in station.peers or ()
        if peer.get("endpoint") and own_shipping(peer)
    }
    back = set(returned)
    for loop in loops_of(hops_of(stations)):
        names = [hop.source for hop in loop]
        shown = f"{' → '.join((*names, names[0]))} ({', '.join(map(str, loop))})"
        if came := [name for name in names if name in back]:
            yield f"replication does not stop in the loop {shown}: {came[0]} got entries back that had passed it"
        elif marks := [f"{hop} has {own[hop[:2]]}" for hop in loop if hop[:2] in own]:
            yield f"replication need not stop in the loop {shown}: {marks[0]}, which may drop the ids that stop it"


def along(route: Route, hops: Sequence[PathState]) -> PathState:
    """Return what the hops of a route prove together; `hops` are in the route's order.

    The route is complete only if each hop is, and carries only what every hop ships: nothing stops at one of which that
    is unknown, and nobody asked there for all that came.
    """
    carried, stopped = hops[0].carried, list[str]()
    for hop, judged in zip(route[1:], hops[1:], strict=True):
        # The families are unknown only of a hop that is not complete: then the route is not either.
        if carried is None or judged.carried is None:
            continue
        left = _less(carried, judged.carried)
        stopped += [
            f"{table} ({', '.join(sorted(families))}) stops at {hop.source}" for table, families in left.items()
        ]
        carried = _less(carried, left)
    if carried is not None and not carried and hops[0].carried:
        why = f"{route[-1]} ships none of what could get there from {route[0].source}"
        return PathState(Reach.UNCONNECTED, None, (why,), carried, tuple(stopped))
    reach = _worst(hops)
    reasons = [reason for judged in hops if judged.reach is not Reach.COMPLETE for reason in judged.reasons]
    unknown = [hop for hop, judged in zip(route, hops, strict=True) if judged.carried is None]
    if reach is Reach.COMPLETE and unknown and len(hops) > 1:
        reach = Reach.UNVERIFIABLE
        reasons.append(f"{unknown[0]} ships a table whose descriptor is not known: run again")
    return PathState(reach, _weakest(hops), tuple(dict.fromkeys(reasons)), carried, tuple(stopped))


def between(routes: Sequence[PathState]) -> PathState:
    """Return what the routes between two clusters prove together.

    Of routes that carry everything that any of them carries, the best counts; else the worst of all.
    """
    open_ones = [one for one in routes if one.reach is not Reach.UNCONNECTED]
    if not open_ones:
        return PathState(Reach.UNCONNECTED, None, tuple(reason for one in routes for reason in one.reasons))
    carried = [one.carried for one in open_ones]
    whole = [
        one
        for one in open_ones
        if one.carried is not None and all(other is not None and not _less(other, one.carried) for other in carried)
    ]
    if whole:
        # HBase ships an entry along every route that carries it, and the entry is there once one has brought it.
        return min(whole, key=lambda one: _RANKS[one.reach])
    reasons = dict.fromkeys(reason for one in open_ones for reason in one.reasons)
    stopped = dict.fromkeys(words for one in open_ones for words in one.stopped)
    return PathState(_worst(open_ones), _weakest(open_ones), tuple(reasons), None, tuple(stopped))


def covers(found: PathState, brought: Families | None) -> bool:
    """Return True if nothing of what is brought elsewhere lacks in what was found; None may be anything."""
    return brought is not None and not _less(brought, found.carried or {})


def verdict_of(reaches: Iterable[Reach]) -> Verdict:
    """Return the worst of what is in scope; pairs that are not connected count only if there are no others."""
    found = [reach for reach in reaches if reach is not Reach.UNCONNECTED]
    return VERDICTS[max(found, key=_RANKS.__getitem__, default=Reach.UNCONNECTED)]


def _worst(found: Sequence[PathState]) -> Reach:
    return max((one.reach for one in found), key=_RANKS.__getitem__)


def _weakest(found: Sequence[PathState]) -> Evidence | None:
    """None if it is unknown of one of them."""
    known = [one.evidence for one in found if one.evidence is not None]
    return max(known, key=_EVIDENCE.index) if len(known) == len(found) else None


def _less(one: Families, other: Families) -> dict[str, frozenset[str]]:
    """Return the families of one that are not of the other."""
    rest = {table: families - other.get(table, frozenset()) for table, families in one.items()}
    return {table: families for table, families in rest.items() if families}
