"""The steps of a planned change of roles in a replication graph: commands in their order, each with its check."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from status_tool.errors import UsageError
from status_tool.rules.graph import Hop, Station, hops_of, routes_of
from status_tool.rules.peers import PeerFacts, own_shipping

BY_HAND, SHELL, TOOL = "by hand", "hbase shell", "status-tool"


@dataclass(frozen=True, slots=True)
class Naming:
    """The options that name a cluster to this tool."""

    table: str
    """To commands that read its state table alone."""
    cluster: str
    """To those that read all of it."""


@dataclass(frozen=True, slots=True)
class Move:
    """A step: where it is done, how, and what shows that it is done."""

    cluster: str
    how: str
    """`BY_HAND`, `SHELL` or `TOOL`."""
    command: str
    check: str
    """A command with its exit code, or what to look for."""


def switch_steps(
    stations: Sequence[Station], old: str, new: str, where: Mapping[str, Naming], paths: str
) -> list[Move]:
    """The steps that make `new` the master in the place of `old`.

    `paths` is the command that checks all clusters. Nothing is executed. Raises `UsageError` where no path leads from
    the old master to the new one.
    """
    hops = hops_of(stations)
    if not any((route[0].source, route[-1].target) == (old, new) for route in routes_of(hops)):
        raise UsageError(
            f"no path leads from {old} to {new}, so {new} cannot have what {old} holds: add a peer and copy the tables "
            "first, or name another cluster"
        )
    return list(_steps(stations, hops, old, new, where, f"{paths} --from"))


def _steps(
    stations: Sequence[Station], hops: Sequence[Hop], old: str, new: str, where: Mapping[str, Naming], paths: str
) -> Iterator[Move]:
    # Names of clusters need no quotes (`cli.named_clusters`).
    known = dict(_peers(stations, hops))
    for hop in _disabled(known, _best(known, _between(hops, old, new))):
        # Another cluster's peer may have been disabled when that cluster was lost.
        shown = _is_enabled(hop.peer) if hop.source == old else _enabled_back(hop)
        yield Move(hop.source, SHELL, f"enable_peer {_quoted(hop.peer)}", shown)
    # Before the writers stop, so that the check after that waits for the last writes only.
    yield Move(
        new, TOOL, f"{paths} {old} --to {new} --wait 300", "exit code 0: everything but the last writes is there"
    )
    yield from _turned(stations, hops, old, new)
    yield Move(old, BY_HAND, "stop everything that writes: applications, jobs, bulk loads", "the next check but one")
    # After the writers have stopped: writes after a recorded time are unverifiable even if they arrive.
    yield Move(
        old, TOOL, f"status-tool shutdown-time record {where[old].table}", "status-tool shutdown-time show: just now"
    )
    yield from _checked_files(hops, old, new, where)
    yield Move(
        new, TOOL, f"{paths} {old} --wait 300", f"exit code 0: all that {old} reaches have what it wrote to HBase, too"
    )
    yield Move(
        new, TOOL, f"status-tool shutdown-time clear {where[new].table}", "exit code 0: none counts when it is master"
    )
    yield Move(new, BY_HAND, "start everything that writes", "rows that it writes can be read here")
    yield Move(
        new,
        TOOL,
        f"{paths} {new} --wait 300",
        f"exit code 0: what {new} writes reaches the others, except tables and families that it says are not checked",
    )
    yield Move(
        old, TOOL, f"status-tool shutdown-time clear {where[old].table}", "exit code 0, before it is master again"
    )


def _checked_files(hops: Sequence[Hop], old: str, new: str, where: Mapping[str, Naming]) -> Iterator[Move]:
    """Check the new master against a file of the old one: both halves along a direct peer, else HDFS alone.

    Of HBase only `paths` can say what has come over a cluster in the middle; it does not compare files of HDFS.
    """
    peer = next((shlex.quote(hop.peer) for hop in hops if (hop.source, hop.target) == (old, new)), None)
    half, asked = ("--only hdfs ", "--only hdfs") if peer is None else ("", f"--peer {peer}")
    file = f"{old}.status"
    yield Move(
        old,
        TOOL,
        f"status-tool run -m {half}-o {file} {where[old].cluster}",
        f"exit code 0; copy {file} to {new}; -f FILE names HDFS paths",
    )
    check = f"status-tool run -i {file} {asked} --wait 300 {where[new].cluster}"
    yield Move(new, TOOL, check, "exit code 0; else its text says what to do, and nothing is switched yet")


def _turned(stations: Sequence[Station], hops: Sequence[Hop], old: str, new: str) -> Iterator[Move]:
    """Peers to enable or add, so that whatever the old master reached is reached from the new one.

    The peers of the old master stay: HBase ships no entry to a cluster that it has passed.
    """
    known = dict(_peers(stations, hops))
    reached = {route[-1].target for route in _from(hops, old)} - {new}
    now = list(hops)
    for target in (old, *sorted(reached)):
        found = _between(now, new, target)
        if found:
            for hop in _disabled(known, _best(known, found)):
                yield Move(hop.source, SHELL, f"enable_peer {_quoted(hop.peer)}", _enabled_back(hop))
            continue
        key = next(one.cluster_key for one in stations if one.name == target)
        ends = (old, new if target == old else target)
        models = [peer for hop, peer in known.items() if (hop.source, hop.target) == ends]
        for name, model in zip(_free_names(stations, new, target), models or (None,), strict=False):
            yield from _added(Hop(new, name, target), key, model)
            # The peer that this step adds may lead on to the next target.
            now.append(Hop(new, name, target))


def _disabled(known: Mapping[Hop, PeerFacts], route: Iterable[Hop]) -> list[Hop]:
    """Return the hops of a route whose peers are disabled; those that a step adds are not known."""
    return [hop for hop in route if hop in known and not known[hop].get("enabled", True)]


def _best(known: Mapping[Hop, PeerFacts], routes: Iterable[tuple[Hop, ...]]) -> tuple[Hop, ...]:
    """Return the route with the fewest disabled peers, and of those the shortest."""
    return min(routes, key=lambda route: (len(_disabled(known, route)), len(route)))


def _added(hop: Hop, key: str, model: PeerFacts | None) -> Iterator[Move]:
    """The steps that add a peer with the filters of one that leads the other way, or to the same target.

    Where the old master had none, as by way of a cluster in the middle, the filters are for the operator to choose.
    """
    if model is None:
        yield from _added_by_hand(hop, key)
        return
    peer, more = _quoted(hop.peer), ""
    everything = model.get("replicate_all", True)
    prefix = "exclude_" if everything else ""
    namespaces = [_quoted(one) for one in model.get(f"{prefix}namespaces") or ()]
    tables = [
        f"{_quoted(table)} => [{', '.join(map(_quoted, families or ()))}]"
        for table, families in (model.get(f"{prefix}table_cfs") or {}).items()
    ]
    later = list[str]()
    if not (everything or namespaces or tables):
        later.append(f"set_peer_replicate_all {peer}, false")  # without lists `add_peer` ships everything
    if namespaces and everything:
        later.append(f"set_peer_exclude_namespaces {peer}, [{', '.join(namespaces)}]")
    elif namespaces:
        more += f", NAMESPACES => [{', '.join(namespaces)}]"
    if tables and everything:
        later.append(f"set_peer_exclude_tableCFs {peer}, {{ {', '.join(tables)} }}")
    elif tables:
        more += f", TABLE_CFS => {{ {', '.join(tables)} }}"
    # Enabled before its exclusions are set, the peer would ship tables that they exclude.
    state = ", STATE => 'DISABLED'" if later else ""
    shown = f"list_peers: {hop.peer} is {'DISABLED' if later else 'ENABLED'}"
    lacking = f"; what {hop.source} held before is not shipped: `paths` names it, with its repairs"
    yield Move(hop.source, SHELL, f"add_peer {peer}, CLUSTER_KEY => {_quoted(key)}{more}{state}", shown + lacking)
    for command in later:
        yield Move(hop.source, SHELL, command, f"list_peers: {hop.peer} shows it")
    if own := own_shipping(model):
        yield Move(hop.source, BY_HAND, f"configure {own} on peer {hop.peer}, if it is to ship so", "list_peers")
    if later:
        yield Move(hop.source, SHELL, f"enable_peer {peer}", _is_enabled(hop.peer))


def _added_by_hand(hop: Hop, key: str) -> Iterator[Move]:
    """The steps that add a peer which ships nothing before it has filters."""
    peer = _quoted(hop.peer)
    added = f"add_peer {peer}, CLUSTER_KEY => {_quoted(key)}, STATE => 'DISABLED'"
    yield Move(hop.source, SHELL, added, f"list_peers: {hop.peer} is DISABLED")
    told = f"give peer {hop.peer} the filters of the peers on the way that led here"
    yield Move(hop.source, BY_HAND, told, f"list_peers; without filters it changes every table of {hop.target} by name")
    yield Move(hop.source, SHELL, f"enable_peer {peer}", _is_enabled(hop.peer))


def _free_names(stations: Sequence[Station], source: str, target: str) -> Iterator[str]:
    taken = {str(peer["id"]) for one in stations if one.name == source for peer in one.peers or ()}
    # HBase refuses a peer's id with a hyphen (`ReplicationPeerManager.preAddPeer`), and names of clusters may have one.
    plain = "".join(char if char.isalnum() else "_" for char in target)
    return (name for name in (plain, *(f"{plain}_{number}" for number in range(2, 1_000))) if name not in taken)


def _peers(stations: Sequence[Station], hops: Sequence[Hop]) -> list[tuple[Hop, PeerFacts]]:
    peers = {(one.name, str(peer["id"])): peer for one in stations for peer in one.peers or ()}
    return [(hop, peers[hop.source, hop.peer]) for hop in hops]


def _from(hops: Sequence[Hop], source: str) -> list[tuple[Hop, ...]]:
    return [route for route in routes_of(hops) if route[0].source == source]


def _between(hops: Sequence[Hop], source: str, target: str) -> list[tuple[Hop, ...]]:
    return [route for route in _from(hops, source) if route[-1].target == target]


def _enabled_back(hop: Hop) -> str:
    """Return the check of a peer that may have been disabled in a failover, and hold what its cluster wrote before."""
    waits = f"before that, `status-tool queues` there shows what waits for {hop.peer}: {hop.target} gets it at once"
    return f"{waits}, old writes, too; {_is_enabled(hop.peer)}"


def _is_enabled(peer: str) -> str:
    return f"list_peers: {peer} is ENABLED"


def _quoted(text: str) -> str:
    """A string of HBase's shell, which is Ruby's: backslashes and single quotes are escaped."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
