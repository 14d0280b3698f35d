"""Queues: names, what they prove of a crashed origin and of bulk loads, and when they prove nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast
from urllib.parse import quote

import pytest

from status_tool.cli.main import main
from status_tool.clients import hbase_pb2, zookeeper
from status_tool.clients.config import Settings, ZooKeeperEndpoint
from status_tool.clients.hdfscli import Refused
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.webhdfs import HdfsEndpoint, WebHdfs
from status_tool.clients.zookeeper import Peer, ZooKeeper
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.gather import measured_queues
from status_tool.gather.measured_queues import Measured, _plausible, measure
from status_tool.gather.queue_backlog import has_lengths, has_shipped, why_not_shipped
from status_tool.rules.lost_wals import lost_wals
from status_tool.rules.peer_versions import REFRESHED_MS
from status_tool.rules.peers import parse_peer
from status_tool.rules.queue_proofs import (
    QueueFacts,
    newly_settled,
    queue_facts,
    undrained_servers,
    with_older_proofs,
)
from status_tool.rules.settled import settled_before, with_proofs
from status_tool.sources.replication_queues import HFileRefs, Queue, Queues, Wal, read_queues
from status_tool.sources.state_table import now_ms
from status_tool.sources.wals import Extent, WalFolder, _header_bytes
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.schema import Row

STARTED = 1_700_000_100_000
DEAD, LIVE = f"host-1.example,16020,{STARTED}", "host-2,16020,1700000000001"
PEER = {"id": "1", "enabled": True, "created_ms": STARTED - 60_000, "modified_ms": STARTED - 60_000}
SUMMARY: dict[str, Any] = {"consistent": True, "unsplit": [], "hfile_refs": {"1": {"since_ms": 5, "files": 0}}}
CRASHED = {"server": DEAD, "origin": 7, "role": "w", "live": False, "flush_ms": 5}
RUNNING = {"server": LIVE, "origin": 8, "role": "w", "live": True}


def wal(server: str, number: int = 1, left: int | None = 100) -> dict[str, Any]:
    return {"name": f"{quote(server)}.{number}", "server": server, "started_ms": number, "left": left}


def queue(holder: str, name: str, *wals: dict[str, Any], dead: tuple[str, ...] = ()) -> dict[str, Any]:
    detail = {"peer": name.split("-", 1)[0], "live": True, "dead_servers": list(dead), "wals": list(wals)}
    return {"kind": "queue", "server": holder, "name": name, "detail": json.dumps(detail)}


def first(**summary: Any) -> Row:
    """The `queue` row of all queues."""
    return {"kind": "queue", "detail": json.dumps(SUMMARY | summary)}


FIRST = first()


def facts(*queues: dict[str, Any], peer: dict[str, Any] = PEER, **summary: Any) -> QueueFacts:
    """Judge these queues beside the live server's own one."""
    return queue_facts([first(**summary), queue(LIVE, "1", wal(LIVE)), *queues], [CRASHED, RUNNING], peer)


def test_nothing_left_settles_a_crashed_origin() -> None:
    """And it is said; the live server's own queue does not matter, nor do queues of other peers."""
    found = facts(queue(LIVE, f"2-{DEAD}", wal(DEAD), dead=(DEAD,)))
    assert (found.drained, dict(found.left), found.strays) == (frozenset({7}), {}, ())
    assert (found.undrained, DEAD in found.notices[0]) == (frozenset(), True)


def test_how_much_is_left_to_ship() -> None:
    """Of this peer's queues; unknown with a WAL of unknown length, or where queues moved while they were read."""
    claimed = queue(LIVE, f"1-{DEAD}", wal(DEAD, 1), wal(DEAD, 2, left=7), dead=(DEAD,))
    assert facts(claimed, queue(LIVE, "2", wal(LIVE, 3))).left_bytes == 207
    assert facts(claimed, queue(DEAD, "1", wal(DEAD, 3, left=None))).left_bytes is None
    assert facts(claimed, consistent=False).left_bytes is None
    assert queue_facts([], [], PEER).left_bytes is None


UNSETTLED: list[tuple[QueueFacts, str, set[int]]] = [
    (facts(queue(LIVE, f"1-{DEAD}", wal(DEAD, 1), wal(DEAD, 2), dead=(DEAD,))), "2 WALs with 200 bytes left", {7}),
    (facts(queue(LIVE, f"1-{DEAD}", wal(DEAD, left=None), dead=(DEAD,))), "at least 0 bytes", {7}),
    (facts(queue(LIVE, f"1-{DEAD}", dead=(DEAD,))), f"1-{DEAD} on {LIVE}", {7}),
    (facts(queue(DEAD, "1")), f"1 on {DEAD}", {7}),
    (facts(queue(LIVE, "1", wal(DEAD))), "1 WAL with", {7}),
    (facts(queue(LIVE, "1", wal(LIVE), wal(DEAD))), "1 WAL with", {7}),
    (facts(queue(LIVE, "1", {"name": "odd", "server": None, "started_ms": None, "left": 1})), "left to ship", {7}),
    (facts(consistent=False), "kept moving", {7}),
    (facts(unsplit=None), "not known", set()),
    (facts(unsplit=[DEAD]), "not split its WALs", {7}),
    (facts(peer={**PEER, "created_ms": STARTED - 1}), "added, changed", set()),
    (facts(peer={**PEER, "modified_ms": STARTED + 1}), "added, changed", set()),
    (facts(peer={**PEER, "modified_ms": STARTED - SKEW_MS - REFRESHED_MS}), "added, changed", set()),
    (facts(peer={**PEER, "modified_ms": None}), "added, changed", set()),
    (facts(peer={**PEER, "endpoint": "x.Y"}), "endpoint", set()),
    (facts(peer={**PEER, "entry_filters": "x.Y"}), "filters", set()),
]
"""What does not settle it, why, and whose queues are not drained."""


@pytest.mark.parametrize(("changed", "words", "_"), UNSETTLED)
def test_what_does_not_settle_it(changed: QueueFacts, words: str, _: set[int]) -> None:
    """Each rule alone keeps it unsettled, with what is left or why."""
    assert changed.drained == frozenset()
    assert words in changed.left[7]


@pytest.mark.parametrize(("found", "_", "undrained"), UNSETTLED)
def test_what_a_later_look_may_settle(found: QueueFacts, _: str, undrained: set[int]) -> None:
    """Only that makes a new FILE worth while; FILE itself never learns of it (issue 12, D.9)."""
    assert {*found.undrained} == undrained


def test_a_change_that_all_servers_had_taken_up_before_it_started_settles_it() -> None:
    """One that ships its rest may skip by the old filter for a minute (A4)."""
    created_ms = STARTED - 2 * REFRESHED_MS
    old = {**PEER, "created_ms": created_ms, "modified_ms": STARTED - SKEW_MS - REFRESHED_MS - 1}
    assert facts(peer=old).drained == {7}
    assert not facts(peer={**old, "modified_ms": STARTED - SKEW_MS - 1}).drained


def test_a_tracker_that_had_the_peer_in_force_settles_it() -> None:
    """However young the peer is; and one that recorded another version, or a peer of before, does not."""
    young = {**PEER, "created_ms": STARTED + 1, "modified_ms": STARTED + 2, "incarnation": 70, "version": 1}
    for versions, drained in (
        ((70, 0, 1, STARTED, 9), {7}),
        ((70, 0, 0, STARTED, 9), set[int]()),
        ((69, 0, 1, STARTED, 9), set[int]()),
        ((70, 0, 1, STARTED - 60_000, 9), set[int]()),
    ):
        crashed = {**CRASHED, "detail": json.dumps({"peers": {"1": versions}})}
        assert queue_facts([FIRST], [crashed, RUNNING], young).drained == drained


@pytest.mark.parametrize(("health", "drained"), [({}, {7}), ({"errors": 0}, {7}), ({"errors": 2}, set[int]())])
def test_heads_of_what_a_young_peer_skipped_have_to_be_known(health: dict[str, Any], drained: set[int]) -> None:
    """Errors of the tracker do not matter where the peer was there all along: its queue had everything."""
    crashed = {**CRASHED, "detail": json.dumps({**health, "peers": {"1": (70, 0, 1, STARTED, 9)}})}
    old = {**PEER, "incarnation": 70, "version": 1}
    young = {**old, "created_ms": STARTED + 1, "modified_ms": STARTED + 2}
    found = queue_facts([FIRST], [crashed, RUNNING], young)
    assert found.drained == drained
    assert ("errors" in found.left.get(7, "")) == (not drained)
    assert queue_facts([FIRST], [crashed, RUNNING], old).drained == {7}


def test_a_file_without_queues_settles_nothing() -> None:
    """An older file, or one from a cluster whose queues could not be read."""
    assert queue_facts([], [CRASHED], PEER) == QueueFacts()


@pytest.mark.parametrize(("flush_ms", "drained"), [(STARTED + 90_000, {7}), (STARTED, set[int]())])
def test_what_was_shipped_before_the_slave_was_there_went_elsewhere(flush_ms: int, drained: set[int]) -> None:
    """A slave that was made anew at the peer's address: also against what was proven of the one before."""
    peer = {**PEER, "incarnation": 70}
    crashed = {**CRASHED, "flush_ms": flush_ms}
    ((row, proof),) = newly_settled([FIRST], [crashed, RUNNING], peer, STARTED + 1)
    settled = {**row, "detail": with_proofs(row.get("detail"), {"1": json.dumps(proof)})}
    for one in (crashed, settled):
        found = queue_facts([FIRST], [one, RUNNING], peer, slave_since_ms=STARTED + 60_000)
        assert found.drained == drained
        assert ("another cluster at the peer's address" in found.left.get(7, "")) == (not drained)
        assert found.loads_from_ms == STARTED + 60_000 + SKEW_MS


def test_only_crashes_are_settled() -> None:
    """A live origin, one that has stopped cleanly, and a slave's row need nothing, and get nothing."""
    rows = [RUNNING, {**CRASHED, "final_ms": 1}, {**CRASHED, "role": "r"}]
    assert queue_facts([FIRST], rows, PEER).drained == frozenset()


def test_wals_of_an_unknown_server_are_named() -> None:
    """What it wrote is in no stream: never silently fine."""
    (stray,) = facts(queue(LIVE, "1-old,1,2", wal("old,1,2"), dead=("old,1,2",))).strays
    assert stray.startswith("old,1,2 is not known")


@pytest.mark.parametrize(
    ("peer", "refs", "known"),
    [
        ({}, SUMMARY["hfile_refs"], True),
        ({}, {}, False),
        ({}, {"1": {"since_ms": 5, "files": 1}}, False),
        ({}, {"2": {"since_ms": 5, "files": 0}}, False),
        # The peer may leave them out.
        ({"endpoint": "x.Y"}, SUMMARY["hfile_refs"], False),
        ({"entry_filters": "x.Y"}, SUMMARY["hfile_refs"], False),
        ({"modified_ms": None}, SUMMARY["hfile_refs"], False),
    ],
)
def test_bulk_loads_are_shipped_where_no_reference_is_left(peer: Row, refs: Row, known: bool) -> None:
    """Fine only with references kept for this peer, and with none left."""
    at = facts(peer={**PEER, **peer}, hfile_refs=refs).loads_from_ms
    assert at == (PEER["created_ms"] + REFRESHED_MS + SKEW_MS if known else None)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("spans", "from_ms"),
    [
        # Versions 2 and 3 say the same: an HBase master that started has written the znode anew.
        (((70, 2, 3, STARTED, 9),), STARTED + REFRESHED_MS),
        (((70, 3, 3, STARTED + 900_000, 9), (70, 2, 2, STARTED, 9)), STARTED + REFRESHED_MS),
        (((70, 3, 3, STARTED + 900_000, 9), (70, 2, 2, STARTED, 8)), STARTED + 900_000 + REFRESHED_MS),
        # The peer has never been changed.
        (((70, 0, 3, STARTED, 9),), 5 + REFRESHED_MS),
        (((70, 2, 2, STARTED, 9),), STARTED + 3_600_000 + REFRESHED_MS),
        (((69, 2, 3, STARTED, 9),), STARTED + 3_600_000 + REFRESHED_MS),
        ((), STARTED + 3_600_000 + REFRESHED_MS),
    ],
)
def test_bulk_loads_outlive_a_start_of_hbases_master(spans: tuple[tuple[int, ...], ...], from_ms: int) -> None:
    """The peer has shipped as now since the trackers recorded the first version that says the same."""
    peer = {**PEER, "created_ms": 5, "modified_ms": STARTED + 3_600_000, "incarnation": 70, "version": 3}
    rows = [{**RUNNING, "server": f"{LIVE}{n}", "detail": json.dumps({"peers": {"1": s}})} for n, s in enumerate(spans)]
    assert queue_facts([FIRST], rows, peer).loads_from_ms == from_ms + SKEW_MS


@pytest.mark.parametrize("code", ["odd", "h,1,", "h,1,\N{SUPERSCRIPT TWO}", f"h,1,{'9' * 5_000}"])
def test_a_server_without_a_start_code_is_younger_than_no_peer(code: str) -> None:
    nameless = {**CRASHED, "server": code}
    found = queue_facts([FIRST], [nameless], PEER)
    assert (found.drained, "added, changed" in found.left[7]) == (frozenset(), True)


@pytest.mark.parametrize(("value", "drops"), [("true", True), ("TRUE ", True), ("false", False), (None, False)])
def test_bulk_loads_by_a_peer_whose_configuration_drops_their_markers(value: str | None, drops: bool) -> None:
    """It overrides that of the region servers, which is all that trackers record."""
    config = hbase_pb2.ReplicationPeer(clusterkey="zk:2181:/b")
    if value is not None:
        config.configuration.add(name="hbase.replication.drop.on.deleted.columnfamily", value=value)
    znodes = {
        "/h/replication/peers/1": config,
        "/h/replication/peers/1/peer-state": hbase_pb2.ReplicationState(state=hbase_pb2.ReplicationState.ENABLED),
    }
    stat = SimpleNamespace(ctime=1, mtime=2, czxid=3, version=0)
    zookeeper = ZooKeeper(ZooKeeperEndpoint("zk:2181", "/h"))
    zookeeper._client = SimpleNamespace(get=lambda path: (b"PBUF" + znodes[path].SerializeToString(), stat))
    peer = zookeeper._peer("1")
    assert peer is not None
    found = facts(peer=parse_peer(peer.to_json()))
    assert (found.loads_from_ms is None) == drops
    assert ("in the configuration of peer 1" in str(found.notices)) == drops


def test_a_disabled_peer_is_named() -> None:
    """For the advice on what is behind."""
    assert facts(peer={**PEER, "enabled": False}).disabled_peer == "1"


def test_names() -> None:
    """Queue ids and WAL names as HBase makes them, host names with dashes included."""
    claimed = Queue(LIVE, True, f"1-{DEAD}-ip-10-0-0-1.ec2,16020,5", ())
    assert (claimed.peer, claimed.dead_servers) == ("1", (DEAD, "ip-10-0-0-1.ec2,16020,5"))
    assert Queue(LIVE, True, "1", ()).dead_servers == ()
    plain = Wal("host-1.example%2C16020%2C1700000100000.1700000100123")
    assert (plain.server, plain.started_ms) == (DEAD, 1_700_000_100_123)
    grouped = Wal("host-1.example%2C16020%2C1700000100000.host-1.example%2C16020%2C1700000100000.regiongroup-0.17")
    assert (grouped.server, grouped.started_ms) == (DEAD, 17)
    assert grouped.group.endswith("regiongroup-0")
    assert Wal("odd").server is None


def test_a_folder_of_wals_that_is_not_the_clusters() -> None:
    """Without any live server's WALs in it, nothing follows from a dead server's not being there."""
    assert _plausible(frozenset({LIVE}), [LIVE, DEAD]) == frozenset({LIVE})
    assert _plausible(frozenset({DEAD}), [LIVE]) is None
    assert _plausible(frozenset(), [LIVE]) is None


def test_bytes_left() -> None:
    """The header of a WAL is nothing to ship; what is beyond the length is none either."""
    assert _header_bytes(b"PWAL\xac\x01rest") == 4 + 2 + 172
    assert _header_bytes(b"other") == 0
    assert [Extent("p", 1000, 178).left(at) for at in (0, 178, 400, 2000)] == [822, 822, 600, 0]


class OneWal:
    """A WAL that the NameNode lists as empty, and its length as a DataNode tells it; it may be archived meanwhile."""

    def __init__(self, name: str, told: int | None, moves: bool) -> None:
        self.path, self.length, self.told, self.moves = f"/hbase/WALs/h,16020,5/{name}", 0, told, moves

    def pages(self, _: WebHdfs, folder: str) -> Iterator[list[dict[str, Any]]]:
        parent, name = self.path.rsplit("/", 1)
        yield [{"pathSuffix": name, "type": "FILE", "length": self.length}] if parent == folder else []

    def start_of(self, _: WebHdfs, path: str, _most: int) -> tuple[bytes, int | None]:
        """The header is none here."""
        if self.moves:
            self.moves, self.length = False, self.told or 0
            self.path = f"/hbase/oldWALs/{path.rpartition('/')[2]}"
        if path != self.path:
            raise Refused("FileNotFoundException", path)
        if self.told == -1:
            raise Refused("IOException", "Cannot obtain block length")
        return b"", self.told


@pytest.mark.parametrize(
    ("told", "moves", "left"),
    [
        (700, False, 700),
        # It was archived after it had been listed with what the NameNode knew while it was written.
        (700, True, 700),
        # Nobody knows the length of its last block.
        (-1, False, None),
        # An HttpFS sends no Content-Length.
        (None, False, None),
    ],
)
def test_the_namenodes_length_is_not_that_of_a_wal_that_is_written(
    told: int | None, moves: bool, left: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lacks the newest entries, so that a queue behind it would look drained."""
    one = Wal(WAL_NAME.format(10))
    found_there = OneWal(one.name, told, moves)
    monkeypatch.setattr(WebHdfs, "pages", lambda client, folder: found_there.pages(client, folder))
    monkeypatch.setattr(WebHdfs, "start_of", lambda client, path, most: found_there.start_of(client, path, most))
    folder = WalFolder(HdfsEndpoint(("http://127.0.0.1:1",), "me"), "/hbase")
    extent = folder.extents([one])[one.name]
    assert extent.left(0) == left
    own = Queue("h,16020,5", True, "1", (one,))
    found = Measured(1, Queues((own,), (), True), {one.name: extent}, frozenset())
    assert not has_shipped(found, found, "1")
    assert has_lengths(found, "1") == (left is not None)
    assert ("no DataNode told" in why_not_shipped(found, "1")) == (left is None)


class FakeZooKeeper:
    """Just enough of `clients.zookeeper.ZooKeeper`; `moves` queues from the first to the second server on reading."""

    endpoint = "zk/hbase"

    def __init__(self, tree: dict[str, Any] | None, moves: int = 0) -> None:
        self.tree, self.moves, self.version = tree, moves, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cluster_id(self) -> str:
        return "id"

    def peers(self) -> list[str]:
        return ["1"]

    def live_servers(self) -> list[str]:
        return ["a,1,1", "b,1,1"]

    def children_version(self, *parts: str) -> int | None:
        return None if self.tree is None else self.version

    def children(self, *parts: str) -> list[str]:
        if parts[1] == "hfile-refs":
            return []
        names = list((self.tree or {}).keys()) if len(parts) == 2 else list((self.tree or {})[parts[2]].keys())
        if len(parts) == 3 and self.moves:
            # The queue is always where has been looked already.
            self.moves, self.version = self.moves - 1, self.version + 1
            return []
        return names if len(parts) < 4 else ["a%2C1%2C1.5"]

    def read(self, *parts: str) -> None:
        return None


def test_a_queue_that_moves_while_it_is_read() -> None:
    """Read again until it stands still; otherwise it is said."""
    tree = {"a,1,1": {"1": 0}, "cversion_1": {}}
    found = read_queues(FakeZooKeeper(tree, moves=3))  # type: ignore[arg-type]
    assert (found.consistent, len(found.queues)) == (True, 1)
    assert not read_queues(FakeZooKeeper(tree, moves=100)).consistent  # type: ignore[arg-type]


def test_a_zookeeper_server_that_is_behind_shows_no_queue_as_drained() -> None:
    """What was queued before a look is seen by it."""

    class Behind(FakeZooKeeper):
        def sync(self) -> None:
            self.tree = {"a,1,1": {"1": 0}}

    measured = measure(Settings(SiteConfig({})), cast(ZooKeeper, Behind({})))
    assert [queue.id for queue in measured.queues.queues] == ["1"]


def test_a_namenode_that_stops_answering_tells_of_no_archived_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    """None that is known is not none: `prune` drops the rows of servers without WALs."""

    class Folder:
        def unsplit(self) -> frozenset[str]:
            return frozenset({"a,1,1"})

        def extents(self, _: Iterable[Wal]) -> dict[str, Extent]:
            raise ConnectionFailed("the NameNode is away")

    class Followed(FakeZooKeeper):
        def sync(self) -> None:
            pass

    monkeypatch.setattr(measured_queues, "_folder", lambda _: (Folder(), None))
    measured = measure(Settings(SiteConfig({})), cast(ZooKeeper, Followed({})))
    assert (measured.hdfs_problem, measured.unsplit) == ("the NameNode is away", frozenset({"a,1,1"}))
    assert measured.summary()["writers"] is None


def test_hbase_3_is_refused() -> None:
    """Its queues are not in ZooKeeper."""
    with pytest.raises(ConfigurationError, match="not supported yet"):
        read_queues(FakeZooKeeper(None))  # type: ignore[arg-type]


@pytest.mark.parametrize("command", ["queues", "topology"])
def test_peers_that_are_not_in_zookeeper_are_not_shown_by_those_of_before(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each queue would be of no peer there, and none would count; no link would be broken."""
    values = {"hbase.zookeeper.quorum": "localhost", "hbase.replication.peer.storage.impl": "filesystem"}
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    (tmp_path / "hbase-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    assert main([command, "--conf-dir", str(tmp_path)]) == 2
    assert "peer.storage.impl is filesystem" in capsys.readouterr().err


DRAINED, FULL = (Queue(LIVE, True, name, (Wal(f"{quote(LIVE)}.1", at),)) for name, at in (("1", 100), ("2", 0)))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """What `queues` says of these peers and queues, and its exit code."""

    def tell(peers: str, queues: tuple[Queue, ...], *options: str) -> tuple[int, str]:
        class WithPeers(FakeZooKeeper):
            def peers(self) -> list[Any]:
                return [Peer(name, "zk:1/hbase", True, STARTED) for name in peers]

        extents = {wal.name: Extent("/oldWALs/w", 100) for one in queues for wal in one.wals}
        measured = Measured(1, Queues(queues, (), True), extents, frozenset())
        monkeypatch.setattr(zookeeper, "ZooKeeper", lambda _: WithPeers({}))
        monkeypatch.setattr(measured_queues, "measure", lambda *_: measured)
        code = main(["queues", "--zookeeper", "zk:1/hbase", *options])
        return code, capsys.readouterr().out

    return tell


@pytest.mark.parametrize(
    ("options", "code", "last"),
    [
        ([], 1, "The queues are NOT drained."),
        (["--peer", "1"], 0, "The queues of peer 1 are drained; no other was looked at."),
        (["--peer", "2"], 1, "The queues of peer 2 are NOT drained."),
    ],
)
def test_the_queues_of_one_peer_are_not_all(told: Any, options: list[str], code: int, last: str) -> None:
    """They passed for all of them, also if only a file of defaults had chosen the peer."""
    found, text = told("12", (DRAINED, FULL), *options)
    assert (found, text.splitlines()[-1]) == (code, last)
    found, text = told("12", (DRAINED, FULL), *options, "--json")
    assert (found, json.loads(text)["only_peer"]) == (code, options[1] if options else None)


def test_no_peer_is_no_drained_queue(told: Any) -> None:
    """Somebody has removed it with all that waited."""
    code, text = told("", ())
    assert (code, "drained" in text) == (0, False)
    assert text.endswith("There is no queue of a peer: that says nothing of what was written.\n")


def test_a_queue_of_no_peer_is_told_to_the_end(told: Any) -> None:
    """It holds what nothing ships any more: "all queues are drained" would hide that."""
    code, text = told("1", (DRAINED, FULL))
    assert (code, text.splitlines()[-1]) == (0, "All queues of peers are drained; 1 queue of no peer will never be.")


PASSER_BY = f"host-3.example,16020,{STARTED + 5_000}"


@pytest.mark.parametrize(
    ("server", "opened_ms", "window", "is_stray"),
    [
        (PASSER_BY, STARTED + 6_000, (STARTED, STARTED + 60_000), True),
        (PASSER_BY, STARTED + 6_000, (STARTED, STARTED + 5_000 - SKEW_MS), True),
        # Known to the trackers; from before the coverage, twice; come after the cut; no coverage at all.
        (DEAD, STARTED + 6_000, (STARTED, STARTED + 60_000), False),
        (PASSER_BY, STARTED - 6_000, (STARTED, None), False),
        (PASSER_BY, STARTED + 6_000, (STARTED + 6_000, None), False),
        (PASSER_BY, STARTED + 6_000, (STARTED, STARTED + 4_999 - SKEW_MS), False),
        (PASSER_BY, STARTED + 6_000, (None, None), False),
    ],
)
def test_archived_wals_of_a_server_that_nobody_knows(
    server: str, opened_ms: int, window: tuple[int | None, int | None], is_stray: bool
) -> None:
    """It came, wrote and went; its queue may be gone, its WALs are archived for a while."""
    summary = first(writers={server: {"opened_ms": opened_ms, "modified_ms": STARTED + 9_000}})
    strays = queue_facts([summary], [CRASHED, RUNNING], PEER, window).strays
    assert [stray.split(" ")[0] for stray in strays] == ([server] if is_stray else [])
    # What is accepted excuses a WAL that was written to no later, whenever it was opened.
    for since_ms, is_left in {STARTED + 8_999: is_stray, STARTED + 9_000: False}.items():
        facts = queue_facts([summary], [CRASHED, RUNNING], PEER, window, since_ms=since_ms)
        assert bool(facts.strays) is is_left


def test_a_server_that_nobody_knows_came_before_the_cut_also_by_a_clock_of_the_tools_host_that_is_behind() -> None:
    """Whether it came before tells the clocks of servers, which had read the barrier's token."""
    summary = first(writers={PASSER_BY: {"opened_ms": STARTED + 6_000, "modified_ms": STARTED + 9_000}})
    window = (STARTED, STARTED - 600_000)
    for read, is_stray in ({"read_ms": STARTED + 10_000, "echoed": True}, True), ({"read_ms": STARTED + 10_000}, False):
        strays = queue_facts([summary], [CRASHED, {**RUNNING, **read}], PEER, window).strays
        assert bool(strays) is is_stray


def test_whose_queues_are_waited_for() -> None:
    """Those of the peers that are meant."""
    rows = [FIRST, queue(LIVE, f"1-{DEAD}", wal(DEAD), dead=(DEAD,))]
    assert undrained_servers(rows, [CRASHED, RUNNING], [PEER]) == [DEAD]
    assert undrained_servers(rows, [CRASHED, RUNNING], [{**PEER, "id": "2"}]) == []
    assert undrained_servers(rows, [{**CRASHED, "final_ms": 5}, RUNNING], [PEER]) == []


def proven(peer: dict[str, Any], now: dict[str, Any], gone_ms: int | None = None) -> QueueFacts:
    """Settled for `peer` and recorded; then judged for the peer as it is `now`, when nothing else settles it."""
    ((row, proof),) = newly_settled([FIRST], [CRASHED, RUNNING], peer, STARTED)
    again = {**row, "gone_ms": gone_ms, "detail": with_proofs(None, {"1": json.dumps(proof)})}
    assert not newly_settled([FIRST], [again, RUNNING], peer, STARTED + 1), "once"
    changed = {**peer, "modified_ms": STARTED + 1, **now}
    assert not queue_facts([FIRST], [CRASHED, RUNNING], changed).drained
    return queue_facts([FIRST], [again, RUNNING], changed)


def test_what_was_proven_stays_proven() -> None:
    """The peer is changed afterwards; the crashed server's entries have been shipped all the same."""
    peer = {**PEER, "incarnation": 5}
    assert proven(peer, {}).drained == {7}
    assert "nothing of it was left to ship" in proven(peer, {}).notices[0]
    narrower = {"replicate_all": False, "table_cfs": {"t": ["f"]}}
    assert proven(peer, narrower).drained == {7}, "what is shipped now was shipped then"
    assert proven({**peer, **narrower}, {}).drained == {7}, "the same filter as then"


def test_a_proof_is_one_for_that_peer_and_for_what_it_shipped() -> None:
    """Added again it may lead elsewhere; a table that it has come to ship since was not shipped then."""
    peer = {**PEER, "incarnation": 5}
    assert proven(peer, {"incarnation": 6}).drained == frozenset()
    anew = {"created_ms": STARTED + 60_001}
    assert proven(peer, anew).drained == frozenset(), "of a ZooKeeper that was made anew, which numbers alike"
    assert proven(peer, {"created_ms": STARTED + 60_000}).drained == {7}, "clocks differ"
    narrow = {**peer, "replicate_all": False, "namespaces": ["a"]}
    assert proven(narrow, {"namespaces": ["a", "b"]}).drained == frozenset()
    assert proven(narrow, {"namespaces": [], "replicate_all": True}).drained == frozenset()


@pytest.mark.parametrize(
    ("then", "now", "tables", "created_ms", "is_settled"),
    [
        # What the peer no longer ships is out of the question.
        ({"a": [], "b": []}, {"a": []}, {"a": ["f"]}, {}, True),
        # A table that it has come to ship, made since the crash; made before, or nobody knows when.
        ({"a": []}, {"a": [], "b": []}, {"a": ["f"], "b": ["f"]}, {"b": 80_001}, True),
        ({"a": []}, {"a": [], "b": []}, {"a": ["f"], "b": ["f"]}, {"b": 80_000}, False),
        ({"a": []}, {"a": [], "b": []}, {"a": ["f"], "b": ["f"]}, {"b": None}, False),
        ({"a": []}, {"a": [], "b": []}, {"a": ["f"], "b": None}, {}, False),
        ({"a": []}, {"a": [], "b": []}, {"a": ["f"]}, {"b": 5}, False),
        # It has no replicated family.
        ({"a": []}, {"a": [], "b": []}, {"a": ["f"], "b": []}, {"b": 5}, True),
        # A family more of a table.
        ({"a": ["f"]}, {"a": ["f", "g"]}, {"a": ["f", "g"]}, {}, False),
        ({"a": ["f", "g"]}, {"a": ["f"]}, {"a": ["f"]}, {}, True),
    ],
)
def test_a_proof_outlives_a_change_of_the_peers_lists(
    then: dict[str, list[str]],
    now: dict[str, list[str]],
    tables: dict[str, list[str] | None],
    created_ms: dict[str, int | None],
    is_settled: bool,
) -> None:
    """For what was shipped then, and for tables that are younger than the crash, at 50,000 by other clocks."""
    peer = {**PEER, "incarnation": 5, "replicate_all": False, "table_cfs": then}
    found = proven(peer, {"table_cfs": now}, 50_000)
    assert (found.drained, set(found.older)) == (frozenset(), {7})
    decided = with_older_proofs(found, tables, created_ms)
    assert (decided.drained, set(decided.left)) == ((frozenset({7}), set()) if is_settled else (frozenset(), {7}))
    assert any("nothing of it was left to ship" in notice for notice in decided.notices) == is_settled


@pytest.mark.parametrize(
    "detail", [None, "", "[]", "{", '{"settled": 1}', '{"settled": {"1": 3}}', '{"settled": {"1": {"incarnation": 5}}}']
)
def test_what_cannot_be_understood_proves_nothing(detail: str | None) -> None:
    """Neither in the row nor in its cell."""
    assert settled_before({"detail": detail}, {**PEER, "incarnation": 5}) is None
    assert with_proofs(detail, {"1": "{"}) == detail


WAL_NAME = "h%2C16020%2C5.{}"


def standing_at(position: int | None, *, length: int = 500, **other: Any) -> Measured:
    """One server's queue: a WAL shipped up to there (None: it has left the queue), then the one being written."""
    first = () if position is None else (Wal(WAL_NAME.format(10), position),)
    own = Queue("h,16020,5", other.get("live", True), other.get("id", "1"), (*first, Wal(WAL_NAME.format(20), 90)))
    refs = tuple(HFileRefs("1", 1, files) for files in other.get("loads", ()))
    queues = Queues((own, *other.get("more", ())), refs, other.get("consistent", True))
    extents = {WAL_NAME.format(10): Extent("/a", length), WAL_NAME.format(20): Extent("/b", 90)}
    return Measured(1, queues, {} if other.get("unknown") else extents, frozenset())


@pytest.mark.parametrize(
    ("mark", "now", "shipped"),
    [
        (standing_at(100), standing_at(500), True),
        (standing_at(100), standing_at(None), True),
        # More has been written since.
        (standing_at(100), standing_at(500, length=900), True),
        (standing_at(100), standing_at(499), False),
        (standing_at(100, unknown=True), standing_at(500), False),
        (standing_at(100, consistent=False), standing_at(500), False),
        (standing_at(100), standing_at(500, consistent=False), False),
        (standing_at(100), standing_at(500, live=False), False),
        (standing_at(100), standing_at(500, more=(Queue("i,16020,6", True, "1-h,16020,5", ()),)), False),
        (standing_at(100, more=(Queue("i,16020,6", True, "1", ()),)), standing_at(500), False),
        (standing_at(100), standing_at(500, more=(Queue("i,16020,6", True, "1", ()),)), True),
        (standing_at(100), standing_at(500, more=(Queue("i,16020,6", False, "2", ()),)), True),
        (standing_at(100, loads=[("f1", "f2")]), standing_at(500, loads=[("f2", "f3")]), False),
        (standing_at(100, loads=[("f1",)]), standing_at(500, loads=[("f3",)]), True),
    ],
)
def test_what_had_been_appended_has_been_shipped(mark: Measured, now: Measured, shipped: bool) -> None:
    """By the positions of each WAL against what could be read of it at the mark, although more is written."""
    assert has_shipped(mark, now, "1") is shipped


@pytest.mark.parametrize("group", ["", ".h%2C16020%2C5.regiongroup-1", ".0123456789abcdef0123456789abcdef", "."])
@pytest.mark.parametrize("kind", ["", ".meta", ".syncrep"])
def test_the_name_of_a_wal_tells_its_server_group_and_start(group: str, kind: str) -> None:
    """With `multiwal` and the strategy `identity`, a server's own WAL has a group without a name."""
    wal = Wal(f"h%2C16020%2C5{group}.123{kind}")
    assert (wal.server, wal.group, wal.started_ms) == ("h,16020,5", f"h%2C16020%2C5{group}", 123)


def lost_queue(*lost: bool) -> dict[str, Any]:
    """A queue of one server's WALs, opened at 10, 20 and so on."""
    wals = [
        {"name": WAL_NAME.format(10 * at), "server": "h,16020,5", "started_ms": 10 * at, "lost": one}
        for at, one in enumerate(lost, 1)
    ]
    return {"peer": "1", "wals": wals}


def head_of(table: str, first_ms: int | None, write_ms: int | None, server: str = "h,16020,5") -> dict[str, Any]:
    return {"table": table, "origin": origin_id(server), "first_ms": first_ms, "write_ms": write_ms}


def test_a_lost_wal_is_named_with_what_it_may_have_held() -> None:
    """The tables to which its server wrote before the next WAL was opened, within that time."""
    heads = [head_of("t", 1, 15), head_of("t", 18, 50), head_of("before", 1, 9), head_of("later", 21, 50)]
    heads += [head_of("unknown", None, None), head_of("other", 12, 13, "i,16020,6")]
    (wal,) = lost_wals([lost_queue(True, False), lost_queue(True, False)], heads)
    assert (wal.from_ms, wal.to_ms, wal.tables) == (10, 20, {"t": (10, 20), "unknown": (10, 20)})
    assert "nowhere in HDFS" in str(wal)
    (last,) = lost_wals([lost_queue(False, True)], heads)
    assert (last.from_ms, last.to_ms, set(last.tables)) == (20, None, {"t", "later", "unknown"})
    # With multiwal, the WAL after the last one of a group is the first one of the next group.
    names = ("h%2C16020%2C5.h%2C16020%2C5.regiongroup-0.20", "h%2C16020%2C5.h%2C16020%2C5.regiongroup-1.10")
    queue = [
        {"name": name, "server": "h,16020,5", "started_ms": at, "lost": at == 20}
        for name, at in zip(names, (20, 10), strict=True)
    ]
    (alone,) = lost_wals([{"peer": "1", "wals": queue}], heads)
    assert (alone.from_ms, alone.to_ms, set(alone.tables)) == (20, None, {"t", "later", "unknown"})
    assert lost_wals([lost_queue(False, False)], heads) == []
    assert lost_wals([{"peer": "1", "wals": [{"name": "x"}]}]) == [], "of an earlier version"


def test_a_check_names_a_lost_wal() -> None:
    """Its queue never drains, and nothing is settled by it."""
    lost = {**FIRST, "server": "h,16020,5", "name": "1", "detail": json.dumps(lost_queue(True) | {"dead_servers": []})}
    (notice,) = queue_facts([first(hfile_refs=None), lost], [], PEER).notices
    assert "is lost to that peer" in notice
    assert "remove the peer and add it again" in notice


@pytest.mark.parametrize(
    ("age_s", "still", "back", "lost"),
    [(300, True, False, True), (5, True, False, False), (300, False, False, False), (300, True, True, False)],
)
def test_a_wal_is_lost_only_if_it_is_nowhere_at_two_looks(
    age_s: int, still: bool, back: bool, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one that is just being created, has left the queue meanwhile, or was being moved."""
    wal = Wal(WAL_NAME.format(now_ms() - 1_000 * age_s))
    queues = Queues((Queue("h,16020,5", True, "1", (wal,)),), (), True)
    monkeypatch.setattr(measured_queues, "read_queues", lambda _: queues if still else Queues((), (), True))

    class Folder:
        def extents(self, wals: Iterable[Wal]) -> dict[str, Extent]:
            return {one.name: Extent("/a", 5) for one in wals if back}

    found = measured_queues._lost(cast(Any, Folder()), cast(Any, None), queues, {})
    assert found == (frozenset([wal.name]) if lost else frozenset())
