"""Every edge and path of a replication graph: each cluster is read, all at the same time, and each edge is checked.

An edge is checked as `run -i FILE --slave-status FILE2` does. A path needs more than its edges. Say that Sun replicates
to Earth and Earth to Venus. An entry of Sun may arrive on Earth after Earth's side as a master was read; then the edge
from Earth to Venus does not ask for it. So Earth is read as a master again, after its side as a slave has shown that
all of Sun's entries are there, and Venus as a slave after that: a round for each hop of the longest path.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from status_tool.clients.config import Settings
from status_tool.clients.delegation_tokens import no_token_left
from status_tool.clients.zookeeper import PEER_TIMEOUT_S, ZooKeeper
from status_tool.errors import ConfigurationError, ConnectionFailed, StatusFileError, UsageError
from status_tool.explain.advice import UNDER_REPAIRS
from status_tool.explain.overview import words_of_group
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import LEAST_SETTLE_S, Request, peer_rows, snapshot
from status_tool.printable import counted, safe
from status_tool.report.text import accepted_line, not_replicated_line
from status_tool.rules.graph import (
    VERDICTS,
    Edge,
    Families,
    Hop,
    PathState,
    Reach,
    Route,
    Station,
    along,
    astray,
    barred,
    between,
    covers,
    endless,
    hops_of,
    outside,
    routes_of,
    same_ids,
    verdict_of,
)
from status_tool.rules.lost_wals import LostWal, lost_wals
from status_tool.rules.peers import parse_peer
from status_tool.rules.server_settings import peers_elsewhere
from status_tool.rules.sides import CLOCK_TOLERANCE_MS, asked_filter, recorded_filter
from status_tool.runs.check import Check
from status_tool.runs.file_check import check_offline
from status_tool.runs.graph_holdings import Holding, WrittenBy, holdings_of, written_on
from status_tool.runs.live_rounds import RECHECK_S
from status_tool.runs.master_side import facts_of
from status_tool.runs.question import SideFacts, shipped_by, words_of
from status_tool.runs.write import Say, source_of
from status_tool.sources.state_table import now_ms
from status_tool.spark.session import Spark, spark_when_needed
from status_tool.status_file.reader import StatusFile, open_status
from status_tool.status_file.signature import SignKey
from status_tool.status_file.writer import StatusWriter
from status_tool.temporary import temporary_folder
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.ids import cluster_bytes, cluster_names
from status_tool.vocabulary.outcome import Group, Outcome
from status_tool.vocabulary.scope import Scope, TableFilter
from status_tool.vocabulary.verdicts import Status, Verdict

_ECHO_S = 60.0
"""How long a cluster may take to echo the barrier."""
MAX_REASONS = 5
"""So many causes of an edge are named among what holds a path back."""
_PRINTS_REPAIRS = "the check of this edge alone (run -m, run -i) prints the commands"


@dataclass(frozen=True)
class NamedCluster:
    """A cluster of the graph: live, by its settings, or as its status files show it, at most one of each side."""

    name: str
    settings: Settings | None = None
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class PathsAsked:
    """The request of `paths`."""

    clusters: tuple[NamedCluster, ...]
    scope: Scope
    sources: frozenset[str] = frozenset()
    """Only pairs that begin at one of them; empty: at any."""
    targets: frozenset[str] = frozenset()
    wait_s: float = 0.0
    """How long to read slaves again while something is behind."""
    key: SignKey | None = None
    """Only status files that are signed with it are accepted."""
    spark_master: str | None = None
    spark_conf: tuple[tuple[str, str], ...] = ()

    def holds(self, source: str, target: str) -> bool:
        """Return True if a pair of clusters is in scope."""
        return source != target and source in (self.sources or {source}) and target in (self.targets or {target})


@dataclass(frozen=True)
class ReadSide:
    """One side of a cluster as it was read: live in a round, or by somebody else (`round_number` is None)."""

    file: Path
    header: Header
    round_number: int | None = None
    key: SignKey | None = None
    """The key that signed the file; None: no signature is asked for."""

    @contextmanager
    def opened(self) -> Iterator[StatusFile]:
        """Open the file. Raises `StatusFileError` unless it is the one that was read, and stays it."""
        with open_status(self.file, key=self.key) as status:
            # The files of rounds lie in this process's own folder, where nobody replaces them.
            if self.round_number is None and status.header != self.header:
                raise StatusFileError(f"{safe(str(self.file))} was replaced while the paths were checked: run again")
            yield status
            status.refuse_another()

    @cached_property
    def facts(self) -> SideFacts:
        """Small rows of the side; every hop of a cluster asks for them."""
        with self.opened() as status:
            return facts_of(status, self.header)

    @cached_property
    def peers_elsewhere(self) -> str | None:
        """Words about peers that the tool does not read, if there are any; every cell of the matrix asks for them."""
        return next(peers_elsewhere(self.facts.kind("server")), None)

    def follows(self, slave: ReadSide) -> bool:
        """Return True if this master's side has everything that the same cluster's side as a slave shows.

        Of files only their times are known, by the clocks of the hosts that wrote them.
        """
        if self.round_number is not None and slave.round_number is not None:
            return self.round_number > slave.round_number
        read_ms = slave.header.read_until_ms
        return read_ms is not None and read_ms + CLOCK_TOLERANCE_MS <= self.header.cut_ms

    def lost_wals(self, peer_id: str) -> list[LostWal]:
        """Return the WALs of a peer's queues that are lost, with what they may have held."""
        with self.opened() as file:
            queues = [json.loads(row["detail"]) for row in file.rows_of("queue") if row["name"]]
            return lost_wals([queue for queue in queues if queue["peer"] == peer_id], file.rows_of("stream"))


@dataclass(frozen=True)
class CheckedPath:
    """A route with its verdict."""

    route: Route
    judged: PathState

    @property
    def source(self) -> str:
        """Cluster where the route's entries began."""
        return self.route[0].source

    @property
    def target(self) -> str:
        """Cluster where the route ends."""
        return self.route[-1].target


@dataclass(frozen=True)
class PathsFound:
    """The answer."""

    stations: tuple[Station, ...]
    unread: Mapping[str, str]
    """By cluster, why it could not be read."""
    edges: tuple[Edge, ...]
    paths: tuple[CheckedPath, ...]
    """In scope."""
    matrix: Mapping[str, Mapping[str, PathState]]
    """By the clusters at which entries began, and those that they are to reach; only pairs in scope."""
    loops: tuple[str, ...]
    """In which replication may not stop, in words."""
    notices: tuple[str, ...]
    cut_ms: int
    written: Mapping[str, Mapping[str, tuple[WrittenBy, ...]]] = field(default_factory=dict)
    """Who wrote to each cluster, by cluster and table."""
    lost: Mapping[str, Mapping[str, Mapping[str, Holding]]] = field(default_factory=dict)
    """By cluster that could not be reached, by table, and by each other cluster, what is there of it."""
    limits: tuple[str, ...] = ()
    """Restrictions of the verdict, in words, as those of `Outcome`."""
    apart: tuple[str, ...] = ()
    """Clusters of `--from` or `--to` that no pair in scope connects, in words."""

    @property
    def verdict(self) -> Verdict:
        """The worst in scope. A loop that may not stop is never complete, nor is what leads to none that was named."""
        worst = verdict_of(judged.reach for row in self.matrix.values() for judged in row.values())
        return Verdict.UNVERIFIABLE if worst is Verdict.COMPLETE and (self.loops or self.apart) else worst


def check_paths(asked: PathsAsked, say: Say) -> PathsFound:
    """Read all clusters and check every edge and path. A cluster that cannot be read spoils its own edges only."""
    with (
        temporary_folder() as folder,
        ThreadPoolExecutor(1) as pool,
        no_token_left(),
    ):
        desk = _Desk(asked, folder, say)
        # Before the clusters: a file that is refused ends the run, and no barrier has been put in vain.
        desk.open_files()
        # If the options ask for a JVM, it takes seconds to start: the clusters are read meanwhile.
        first = pool.submit(desk.read_first)
        with spark_when_needed(asked.spark_master, asked.spark_conf) as spark:
            first.result()
            return _Search(asked, desk, say, spark).run()


class _Desk:
    """Sides of the clusters that were read, each in a status file, by name and round."""

    def __init__(self, asked: PathsAsked, folder: Path, say: Say) -> None:
        self._asked, self._folder, self._say = asked, folder, say
        self._only = TableFilter(asked.scope.tables, asked.scope.namespaces)
        self._named = {cluster.name: cluster for cluster in asked.clusters}
        self.masters: dict[tuple[str, int], ReadSide] = {}
        self.slaves: dict[tuple[str, int], ReadSide] = {}
        self.failures: dict[tuple[str, str], str] = {}
        """By name and side, why it is not there."""

    def open_files(self) -> None:
        """Take the sides that are in status files."""
        for cluster in self._asked.clusters:
            for file in cluster.files:
                with open_status(file, key=self._asked.key) as status:
                    looks = self.masters if status.header.side == MASTER else self.slaves
                    if (cluster.name, 0) in looks:
                        raise UsageError(f"--cluster {cluster.name}: two files of it are a {status.header.side}'s")
                    if status.is_json:
                        raise UsageError(f"{file} is of the original tool, which records no peers: paths cannot use it")
                    if status.header.half == "hdfs":
                        raise UsageError(f"{file} holds only the HDFS half, and no peers: write it without --only hdfs")
                    if not recorded_filter(status.header).covers(asked_filter(self._asked.scope)):
                        raise UsageError(
                            f"{file} holds only {recorded_filter(status.header)}: name these by --table or --namespace,"
                            " or write it again without them; of anything else no path would be known"
                        )
                    looks[cluster.name, 0] = ReadSide(file, status.header, key=self._asked.key)
            self._refuse_others(cluster.name)

    def _refuse_others(self, name: str) -> None:
        """Raise `UsageError` if the two files of a cluster are of two clusters: one would show what the other has."""
        sides = [looks[name, 0].header.cluster_id for looks in (self.masters, self.slaves) if (name, 0) in looks]
        if len(set(sides)) > 1:
            raise UsageError(f"--cluster {name}: its files are of two clusters ({sides[0]} and {sides[1]})")

    def read_first(self) -> None:
        """Read all live clusters as masters, then all as slaves.

        In the other order, entries shipped in between would look as if they were behind.
        """
        live = [cluster.name for cluster in self._asked.clusters if cluster.settings is not None]
        self.read(MASTER, 0, live)
        # A cluster that did not answer would only be waited for again.
        self.read(SLAVE, 0, [name for name in live if (name, MASTER) not in self.failures])

    def read(self, side: str, number: int, names: Iterable[str]) -> None:
        """Read one side of some clusters in parallel. A round that is read again replaces the earlier result."""
        wanted = [name for name in names if self._named[name].settings is not None]
        if not wanted:
            return
        self._say(f"reading {', '.join(wanted)} as {side}{'' if len(wanted) == 1 else 's'}")
        with ThreadPoolExecutor(len(wanted)) as pool:
            for name, look in zip(wanted, pool.map(lambda one: self._read_one(side, number, one), wanted), strict=True):
                if look is not None:
                    (self.masters if side == MASTER else self.slaves)[name, number] = look

    def _read_one(self, side: str, number: int, name: str) -> ReadSide | None:
        settings, asked = self._named[name].settings, self._asked
        assert settings is not None
        wait_s = _ECHO_S if side == MASTER else max(LEAST_SETTLE_S, min(asked.wait_s, 60.0))
        # Everything up to now counts: a shutdown time of one cluster says nothing of what it relays.
        request = Request(side, wait_s, self._only, hdfs=False, following=side == MASTER)
        file = Path(tempfile.mkdtemp(dir=self._folder)) / f"{side}.status"
        try:
            gathered = snapshot(settings, request, lambda _: None)
            with (
                StatusWriter(file, gathered.header, asked.key) as writer,
                closing(read_all(source_of(gathered))) as batches,
            ):
                for batch in batches:
                    writer.write(batch)
                # After the last row: `follows` goes by this time.
                writer.header = dataclasses.replace(writer.header, read_until_ms=now_ms())
        except (ConfigurationError, ConnectionFailed) as error:
            self.failures[name, side] = str(error)
            return None
        return ReadSide(file, writer.header, number, asked.key)

    def stations(self) -> tuple[Station, ...]:
        """Return the clusters, with their peers if they were read as masters."""
        return tuple(map(self._station, self._asked.clusters))

    def _station(self, cluster: NamedCluster) -> Station:
        master = self.masters.get((cluster.name, 0))
        known = master or self.slaves.get((cluster.name, 0))
        if master is not None:
            return Station(cluster.name, master.header.cluster_id, master.header.cluster_key, tuple(master.facts.peers))
        if known is not None:
            return Station(cluster.name, known.header.cluster_id, known.header.cluster_key)
        if cluster.settings is None:
            return Station(cluster.name)
        return station_by_zookeeper(cluster.name, cluster.settings)

    def is_live(self, name: str) -> bool:
        """Return True if a cluster can be read again."""
        return self._named[name].settings is not None

    def why_not(self, name: str, side: str) -> str:
        """Return why a side is not there, in words."""
        writes = "run -m -o FILE" if side == MASTER else "run -o FILE"
        given = f"no status file of it as a {side} is given: `status-tool {writes}` writes it there"
        # A cluster that could not be read as a master is not read as a slave.
        return self.failures.get((name, side)) or self.failures.get((name, MASTER)) or given

    def unknown_peers(self, stations: Sequence[Station]) -> dict[str, str]:
        """Return by cluster why it may have peers that nobody knows of."""
        elsewhere = {name: look.peers_elsewhere for (name, number), look in self.masters.items() if number == 0}
        unread = {one.name: one.elsewhere or self.why_not(one.name, MASTER) for one in stations if one.peers is None}
        return unread | {name: f"its peers are unknown: {where}" for name, where in elsewhere.items() if where}

    def unread(self) -> dict[str, str]:
        """Return by cluster why what it replicates, or what has arrived there, is unknown."""
        found: dict[str, str] = {}
        for cluster in self._asked.clusters:
            for side, looks in ((MASTER, self.masters), (SLAVE, self.slaves)):
                if (cluster.name, 0) not in looks:
                    found.setdefault(cluster.name, self.why_not(cluster.name, side))
        return found

    def written(self, stations: Sequence[Station]) -> dict[str, dict[str, tuple[WrittenBy, ...]]]:
        """Return who wrote to each cluster, by cluster and table."""
        with self._slave_files() as slaves:
            return {name: written_on(file, stations, self._only) for name, file in slaves.items()}

    def lost(self, stations: Sequence[Station]) -> dict[str, dict[str, dict[str, Holding]]]:
        """Return what others hold of clusters that could not be reached. Their streams cannot be told apart."""
        gone = [one for one in stations if (one.name, 0) not in self.masters]
        # Not one that did not answer in a later round alone: its own streams are known from the first.
        if not self.slaves or not any((one.name, MASTER) in self.failures for one in gone):
            return {}
        ids = frozenset(one.cluster_id for one in gone if one.cluster_id)
        known = frozenset(one.cluster_id for one in stations if one.cluster_id)
        with self._slave_files() as slaves, ExitStack() as opened:
            masters = [opened.enter_context(look.opened()) for (_, at), look in self.masters.items() if at == 0]
            found = holdings_of(ids, masters, slaves, known, self._only)
        return {" or ".join(one.name for one in gone): found}

    @contextmanager
    def _slave_files(self) -> Iterator[dict[str, StatusFile]]:
        with ExitStack() as opened:
            # Later rounds read only the clusters that a route needs.
            looks = {name: look for (name, number), look in self.slaves.items() if number == 0}
            yield {name: opened.enter_context(look.opened()) for name, look in looks.items()}

    def returned(self) -> list[str]:
        """Return the clusters that hold entries which had passed them before."""
        return [name for (name, number), look in self.masters.items() if number == 0 and _has_returned(look)]


def station_by_zookeeper(name: str, settings: Settings) -> Station:
    """Return a cluster as its ZooKeeper describes it; without peers if that does not answer, or does not have them."""
    try:
        endpoint = settings.zookeeper()
    except ConfigurationError:
        return Station(name)
    try:
        with ZooKeeper(endpoint, PEER_TIMEOUT_S) as session:
            # A server that is behind the others would hide a peer, and what it may bring.
            session.sync()
            # Otherwise, znodes of before would pass for its peers.
            elsewhere = settings.peers_elsewhere
            peers = None if elsewhere else tuple(parse_peer(row["detail"]) for row in peer_rows(session))
            return Station(name, session.cluster_id(), endpoint.cluster_key, peers, elsewhere)
    except (ConfigurationError, ConnectionFailed):
        return Station(name, "", endpoint.cluster_key)


def _has_returned(look: ReadSide) -> bool:
    own = look.header.cluster_id
    if cluster_bytes(own) is None:
        return False
    with look.opened() as file:
        return any(
            own in cluster_names(ids)
            for batch in file.rows({"stream"})
            for ids in batch.column("via_ids").unique().to_pylist()
            if ids
        )


@dataclass
class _Search:
    """Checks hops and composes paths of them; each hop is checked once in a round."""

    asked: PathsAsked
    desk: _Desk
    say: Say
    spark: Spark
    deadline: float = 0.0
    judged: dict[tuple[Hop, int], tuple[PathState, Outcome | None]] = field(default_factory=dict)

    def run(self) -> PathsFound:
        """Check every hop, then the routes hop by hop; a later round is read only if a route needs it."""
        self.deadline = time.monotonic() + self.asked.wait_s
        stations = self.desk.stations()
        _refuse_twice(stations)
        hops = hops_of(stations)
        routes = [route for route in routes_of(hops) if self.asked.holds(route[0].source, route[-1].target)]
        self._check(dict.fromkeys(hop for route in routes for hop in route), 0)
        rounds = {route: [0] for route in routes}
        number = 0
        while more := {route: hop for route in routes if (hop := self._next(route, rounds[route])) is not None}:
            number += 1
            # In the order of `read_first`, for the same reason.
            self.desk.read(MASTER, number, {hop.source for hop in more.values()})
            self.desk.read(SLAVE, number, {hop.target for hop in more.values()})
            self._check(dict.fromkeys(more.values()), number)
            for route in more:
                rounds[route].append(number)
        paths = tuple(CheckedPath(route, self._path(route, rounds[route], stations)) for route in routes)
        return self._found(stations, hops, paths)

    def _next(self, route: Route, rounds: list[int]) -> Hop | None:
        """Return the hop of a route that needs another round; None if there is none, or if it would change nothing."""
        while len(rounds) < len(route):
            done = [self.judged[hop, at][0] for hop, at in zip(route, rounds, strict=False)]
            if any(one.reach is not Reach.COMPLETE for one in done):
                return None
            hop, slave = route[len(rounds)], self._slave(route[len(rounds)].source, rounds[-1])
            later = [at for (name, at), look in self.desk.masters.items() if name == hop.source and look.follows(slave)]
            # A round that another route has needed may do.
            if usable := [at for at in sorted(later) if at >= rounds[-1] and (hop, at) in self.judged]:
                rounds.append(usable[0])
            elif self.desk.is_live(hop.source) and (hop.source, MASTER) not in self.desk.failures:
                return hop
            else:
                return None
        return None

    def _path(self, route: Route, rounds: Sequence[int], stations: Sequence[Station]) -> PathState:
        """Return the state of a route."""
        judged = along(route, tuple(self._hops(route, rounds)))
        why = barred(route, stations)
        if why is None or judged.reach is not Reach.COMPLETE:
            return judged
        return dataclasses.replace(judged, reach=Reach.UNVERIFIABLE, reasons=(why, *judged.reasons))

    def _hops(self, route: Route, rounds: Sequence[int]) -> Iterator[PathState]:
        """Yield the state of each hop of a route. Hops that were not reached count as in the first round."""
        for number, hop in enumerate(route):
            judged = self.judged[hop, rounds[number] if number < len(rounds) else 0][0]
            if number == len(rounds) and all(
                self.judged[one, at][0].reach is Reach.COMPLETE for one, at in zip(route, rounds, strict=False)
            ):
                judged = _not_in_order(hop, judged)
            yield judged

    def _slave(self, name: str, number: int) -> ReadSide:
        looks = self.desk.slaves
        return looks[name, number if (name, number) in looks else 0]

    def _check(self, hops: Iterable[Hop], number: int) -> None:
        """Check hops as a round shows them, and read slaves again while something is on its way."""
        left = list(hops)
        while True:
            for hop in left:
                self.judged[hop, number] = self._judge(hop, number)
            left = [hop for hop in left if VERDICTS[self.judged[hop, number][0].reach] is Verdict.INCOMPLETE]
            left = [hop for hop in left if self.desk.is_live(hop.target)]
            if not left or time.monotonic() + RECHECK_S > self.deadline:
                return
            self.say(f"{counted(len(left), 'edge')} not complete yet, reading again")
            time.sleep(RECHECK_S)
            # Slaves alone: a master that is read again has a later cut, so under load there would always be something
            # behind.
            self.desk.read(SLAVE, number, {hop.target for hop in left})

    def _judge(self, hop: Hop, number: int) -> tuple[PathState, Outcome | None]:
        master = self.desk.masters.get((hop.source, number))
        # A slave that is in a file, or did not answer in this round, has its first look only.
        slave = self.desk.slaves.get((hop.target, number)) or self.desk.slaves.get((hop.target, 0))
        carried = None if master is None else _carried(master, hop, self.asked.scope)
        if master is None or slave is None:
            name, side = (hop.source, MASTER) if master is None else (hop.target, SLAVE)
            return PathState(Reach.UNVERIFIABLE, None, (f"{name}: {self.desk.why_not(name, side)}",), carried), None
        self.say(f"checking {hop.source} to {hop.target}")
        try:
            outcome = self._compared(master, slave, dataclasses.replace(self.asked.scope, peer_id=hop.peer))
        except StatusFileError as error:
            return PathState(Reach.UNVERIFIABLE, None, (f"{hop.source} to {hop.target}: {error}",)), None
        evidence = None if outcome.hbase is None else outcome.hbase.evidence
        reasons = tuple(_reasons(hop, outcome, master.lost_wals(hop.peer)))
        return PathState(reach_of(outcome), evidence, reasons, carried), outcome

    def _compared(self, master: ReadSide, slave: ReadSide, scope: Scope) -> Outcome:
        asked = self.asked
        check = Check(
            master.file,
            scope,
            slave_status=slave.file,
            spark_master=asked.spark_master,
            spark_conf=asked.spark_conf,
            key=asked.key,
        )
        # `check_offline` opens both by their paths: these see at their end that nobody has replaced them.
        with master.opened(), slave.opened():
            return _without_repairs(check_offline(check, lambda _: None, self.spark))

    def _found(self, stations: Sequence[Station], hops: Sequence[Hop], paths: tuple[CheckedPath, ...]) -> PathsFound:
        unread = self.desk.unread()
        enabled = {
            (station.name, str(peer["id"])): bool(peer.get("enabled", True))
            for station in stations
            for peer in station.peers or ()
        }
        edges = tuple(
            Edge(hop, enabled[hop.source, hop.peer], *self.judged[hop, 0]) for hop in hops if (hop, 0) in self.judged
        )
        names = [station.name for station in stations]
        matrix: dict[str, dict[str, PathState]] = {}
        for source in names:
            for target in names:
                if self.asked.holds(source, target):
                    own = [one.judged for one in paths if (one.source, one.target) == (source, target)]
                    matrix.setdefault(source, {})[target] = self._cell(source, target, own, stations, hops)
        cuts = [look.header.cut_ms for (_, number), look in self.desk.masters.items() if number == 0]
        apart = tuple(_apart(self.asked, matrix))
        return PathsFound(
            tuple(stations),
            unread,
            edges,
            paths,
            matrix,
            tuple(endless(stations, self.desk.returned())),
            (*apart, *same_ids(stations), *outside(stations), *_not_covered(edges)),
            min(cuts, default=now_ms()),
            self.desk.written(stations),
            self.desk.lost(stations),
            tuple(_limits(self.asked.scope)),
            apart,
        )

    def _cell(
        self, source: str, target: str, own: Sequence[PathState], stations: Sequence[Station], hops: Sequence[Hop]
    ) -> PathState:
        """Return what all paths between two clusters prove.

        A cluster whose peers are unknown, or lead nobody knows where, may bring the target more than the paths that are
        known.
        """
        found = between(own)
        # These two alone say that nothing is wrong. Every other verdict stands, whatever is unknown.
        if found.reach not in (Reach.UNCONNECTED, Reach.COMPLETE):
            return found
        why = tuple(sorted(set(self._unknown(source, target, found, stations, hops))))
        return PathState(Reach.UNVERIFIABLE, None, why, found.carried, found.stopped) if why else found

    def _unknown(
        self, source: str, target: str, found: PathState, stations: Sequence[Station], hops: Sequence[Hop]
    ) -> Iterator[str]:
        """Yield what may bring `target` entries of `source` beside what was found, in words."""
        silent = self.desk.unknown_peers(stations)
        led_astray = astray(stations, target)
        # An entry that passes `target` has arrived there: no way beyond it can bring more.
        around = routes_of([hop for hop in hops if target not in (hop.source, hop.target)])
        ways: list[Route] = [(), *(route for route in around if route[0].source == source)]
        for way in ways:
            end = way[-1].target if way else source
            if end in silent and not (way and covers(found, self._brought(way))):
                yield f"{end}: {silent[end]}"
            for hop in led_astray:
                if hop.source == end and not covers(found, self._brought((*way, hop))):
                    yield f"{end}: its peer {hop.peer} may lead to {target}: see the notes"

    def _brought(self, route: Route) -> Families | None:
        """Return the families that a route brings to its end; None if a cluster on it was not read as a master."""
        masters = [self.desk.masters.get((hop.source, 0)) for hop in route]
        carried = [
            None if master is None else _carried(master, hop, self.asked.scope)
            for master, hop in zip(masters, route, strict=True)
        ]
        if None in carried:
            return None
        return along(route, [PathState(Reach.COMPLETE, carried=one) for one in carried]).carried


def _limits(scope: Scope) -> Iterator[str]:
    if not (chosen := asked_filter(scope)).everything:
        yield f"only {words_of(chosen)} (chosen)"


def _apart(asked: PathsAsked, matrix: Mapping[str, Mapping[str, PathState]]) -> Iterator[str]:
    """Yield the clusters of `--from` and `--to` that are not connected with any in scope, in words.

    Other pairs that are not connected are of no account: two slaves of one master are such a pair.
    """
    connected = {
        (source, target)
        for source, row in matrix.items()
        for target, judged in row.items()
        if judged.reach is not Reach.UNCONNECTED
    }
    for name in sorted(asked.sources - {source for source, _ in connected}):
        yield f"{name} (--from): no path leads from it to a cluster in scope"
    for name in sorted(asked.targets - {target for _, target in connected}):
        yield f"{name} (--to): no path leads to it from a cluster in scope"


def _not_covered(edges: Iterable[Edge]) -> Iterator[str]:
    """Yield what no verdict covers, and what rests on the operator's word, in words: complete cells do not say so."""
    for hop, hbase in ((edge.hop, edge.outcome.hbase) for edge in edges if edge.outcome is not None):
        if hbase is not None and hbase.accepted_tables:
            yield f"{hop.source} to {hop.target}: your word (--since) vouches for {accepted_line(hbase)}"
        if hbase is not None and (left_out := not_replicated_line(hbase)):
            yield f"{hop.source} to {hop.target}: {left_out}"


def _without_repairs(outcome: Outcome) -> Outcome:
    """Return an outcome whose advice says where its repairs are printed: there are none in the answer of `paths`."""
    shown = outcome.overview
    groups = (dataclasses.replace(one, todo=one.todo.replace(UNDER_REPAIRS, _PRINTS_REPAIRS)) for one in shown.groups)
    return dataclasses.replace(outcome, overview=dataclasses.replace(shown, groups=tuple(groups)))


def reach_of(outcome: Outcome) -> Reach:
    """Return the verdict of an edge."""
    if outcome.verdict is not Verdict.INCOMPLETE:
        return Reach.COMPLETE if outcome.verdict is Verdict.COMPLETE else Reach.UNVERIFIABLE
    kinds = {group.kind for group in outcome.overview.groups}
    # A gap stays, however long one waits. Only what is behind still arrives.
    lasting = kinds & {Status.GAP, Status.MISSING, Status.DIFFERS}
    return Reach.BEHIND if Status.BEHIND in kinds and not lasting else Reach.GAP


def _reasons(hop: Hop, outcome: Outcome, lost: Sequence[LostWal]) -> Iterator[str]:
    """Yield the reasons why an edge is not complete, in words, the worst first."""
    if outcome.verdict is Verdict.COMPLETE:
        return
    edge = f"{hop.source} to {hop.target} ({hop})"
    yield from (f"{edge}: {wal}" for wal in lost)
    if outcome.queued_bytes:
        yield f"{edge}: its queues hold {counted(outcome.queued_bytes, 'byte')} not shipped yet"
    groups = outcome.overview.groups
    for group in groups[:MAX_REASONS]:
        yield f"{edge}: {_words(group)}"
    if len(groups) > MAX_REASONS:
        yield f"{edge}: {counted(len(groups) - MAX_REASONS, 'more cause')}"


def _words(group: Group) -> str:
    table = "" if group.table is None else f"table {group.table}: "
    more = f" ({group.count} of these)" if group.count > 1 else ""
    return f"{table}{words_of_group(group)}{more}"


def _not_in_order(hop: Hop, judged: PathState) -> PathState:
    why = (
        f"{hop.source}: whether its file as a master has all that its file as a slave shows is not known: write the "
        "former at least half a minute after the latter"
    )
    reach = Reach.UNVERIFIABLE if judged.reach is Reach.COMPLETE else judged.reach
    return dataclasses.replace(judged, reach=reach, reasons=(why, *judged.reasons))


def _carried(master: ReadSide, hop: Hop, scope: Scope) -> Families | None:
    """Return the families that the edge ships, by table; None: unknown."""
    shipped = shipped_by(master.facts, hop.peer, scope)
    return None if shipped is None else {table: frozenset(families) for table, families in shipped.items()}


def _refuse_twice(stations: Sequence[Station]) -> None:
    for number, one in enumerate(stations):
        for other in stations[:number]:
            if one.cluster_id and (one.cluster_id, one.cluster_key) == (other.cluster_id, other.cluster_key):
                raise UsageError(f"--cluster {other.name} and --cluster {one.name} are one cluster ({one.cluster_id})")
