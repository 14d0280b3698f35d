"""Status files that `paths` takes for clusters, before anything is compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from status_tool.cli.main import main
from status_tool.cli.path_telling import paths_lines
from status_tool.clients.config import Settings
from status_tool.clients.sitefiles import SiteConfig
from status_tool.clients.zookeeper import Peer
from status_tool.errors import ConnectionFailed, StatusFileError, UsageError
from status_tool.gather.snapshot import Snapshot
from status_tool.rules.graph import Hop, PathState, Reach, Station
from status_tool.runs import graph_check
from status_tool.runs.graph_check import (
    NamedCluster,
    PathsAsked,
    PathsFound,
    _apart,
    _Desk,
    _Search,
    station_by_zookeeper,
)
from status_tool.runs.graph_holdings import WrittenBy, written_on
from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SignKey
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.outcome import HBaseOutcome, Outcome
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import Scope, TableFilter
from status_tool.vocabulary.verdicts import Evidence, Verdict
from tests.judgement import no_spark
from tests.pair import REPOSITORY


def opened(folder: Path, scope: Scope) -> None:
    """Open a file of one table."""
    file = folder / "sun.status"
    with StatusWriter(file, Header("master", "m", 5, 5, tables=("t",))):
        pass
    _Desk(PathsAsked((NamedCluster("sun", files=(file,)),), scope), folder, lambda _: None).open_files()


def test_a_file_of_some_tables_proves_no_path_of_all(tmp_path: Path) -> None:
    """What `run -m --table t` has left out would be in no edge."""
    opened(tmp_path, Scope(tables=frozenset({"t"})))
    with pytest.raises(UsageError, match="holds only t: name these by --table"):
        opened(tmp_path, Scope())


def test_a_file_of_files_alone_is_refused(tmp_path: Path) -> None:
    """It records no peers, so that its cluster would not be connected to any other one."""
    file = tmp_path / "sun.status"
    with StatusWriter(file, Header("master", "m", 5, 5, half="hdfs")):
        pass
    desk = _Desk(PathsAsked((NamedCluster("sun", files=(file,)),), Scope()), tmp_path, lambda _: None)
    with pytest.raises(UsageError, match="holds only the HDFS half"):
        desk.open_files()


@pytest.mark.parametrize("detail", ["{", "[1]", '{"written_by":[1]}', '{"written_by":{"":1},"deleted_by":1}'])
def test_a_table_of_which_the_record_is_damaged_takes_no_other_along(tmp_path: Path, detail: str) -> None:
    """The check of its edge tells of it."""
    details = {"t": detail, "u": '{"written_by":{"sun":7}}'}
    rows = [{"kind": "table", "table": table, "detail": text} for table, text in details.items()]
    with StatusWriter(tmp_path / "f", Header("slave", "s", 5, 5)) as writer:
        writer.write(pa.Table.from_pylist(rows, schema=STATUS_SCHEMA))
    with open_status(tmp_path / "f") as slave:
        assert written_on(slave, (), TableFilter()) == {"u": (WrittenBy(("sun",), 7, None),)}


def test_files_of_two_clusters_are_not_one(tmp_path: Path) -> None:
    """Nothing else tells them apart if a peer's cluster could not be queried for its id."""
    files = tuple(tmp_path / side for side in (MASTER, SLAVE))
    for file, cluster in zip(files, ("earth", "venus"), strict=True):
        with StatusWriter(file, Header(file.name, cluster, 5, 5)):
            pass
    desk = _Desk(PathsAsked((NamedCluster("earth", files=files),), Scope()), tmp_path, lambda _: None)
    with pytest.raises(UsageError, match=r"its files are of two clusters \(earth and venus\)"):
        desk.open_files()


@pytest.mark.parametrize(("storage", "reach"), [("filesystem", Reach.UNVERIFIABLE), (None, Reach.UNCONNECTED)])
def test_peers_that_are_not_in_zookeeper_may_lead_anywhere(tmp_path: Path, storage: str | None, reach: Reach) -> None:
    settings = {} if storage is None else {"hbase.replication.peer.storage.impl": storage}
    row = {"kind": "server", "server": "a,1,1", "role": "w", "live": True, "detail": json.dumps({"settings": settings})}
    with StatusWriter(tmp_path / "sun.status", Header("master", "m", 5, 5)) as writer:
        writer.write(pa.Table.from_pylist([row], STATUS_SCHEMA))
    asked = PathsAsked((NamedCluster("sun", files=(tmp_path / "sun.status",)), NamedCluster("earth")), Scope())
    desk = _Desk(asked, tmp_path, lambda _: None)
    desk.open_files()
    stations = (*desk.stations()[:1], Station("earth", "e", peers=()))
    found = _Search(asked, desk, lambda _: None, no_spark)._cell("sun", "earth", (), stations, ())
    assert (found.reach, "peer.storage.impl is filesystem" in str(found.reasons)) == (reach, storage is not None)


@pytest.mark.parametrize(
    ("sources", "targets", "apart"),
    [
        ((), (), ()),
        (("sun",), (), ()),
        (("sun",), ("earth",), ()),
        (("sun",), ("earth", "mars"), ("mars (--to)",)),
        (("sun", "mars"), ("earth",), ("mars (--from)",)),
    ],
)
def test_a_cluster_that_is_named_and_connected_with_nothing(
    sources: tuple[str, ...], targets: tuple[str, ...], apart: tuple[str, ...]
) -> None:
    """Its peer may have been removed: 'All paths are complete' was of the other clusters that were named."""
    names = ("sun", "earth", "mars")
    asked = PathsAsked(tuple(map(NamedCluster, names)), Scope(), frozenset(sources), frozenset(targets))
    matrix = {
        source: {
            target: PathState(Reach.COMPLETE if (source, target) == ("sun", "earth") else Reach.UNCONNECTED)
            for target in names
            if asked.holds(source, target)
        }
        for source in names
    }
    words = tuple(_apart(asked, matrix))
    assert tuple(one.partition(":")[0] for one in words) == apart
    found = PathsFound((), {}, (), (), matrix, (), words, 0, apart=words)
    assert found.verdict is (Verdict.UNVERIFIABLE if apart else Verdict.COMPLETE)


class Behind:
    """ZooKeeper by a server that is behind the others until it has synced."""

    endpoint, known = None, list[Peer]()

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Behind:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def sync(self) -> None:
        self.known = [Peer("new", "", True, 1, endpoint="x")]

    def peers(self) -> list[Peer]:
        return self.known

    def cluster_id(self) -> str:
        return "id"


def test_a_zookeeper_server_that_is_behind_hides_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a cluster that cannot be read as a master: what nobody knows of may bring another one more."""
    monkeypatch.setattr(graph_check, "ZooKeeper", Behind)
    station = station_by_zookeeper("sun", Settings(SiteConfig({"hbase.zookeeper.quorum": "zk"})))
    assert [peer["id"] for peer in station.peers or ()] == ["new"]


@pytest.mark.parametrize(("storage", "is_known"), [("zookeeper", True), ("filesystem", False)])
def test_a_cluster_by_its_zookeeper_whose_site_files_have_its_peers_elsewhere(
    tmp_path: Path, storage: str, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tracker tells where they are, and the znodes of before are not its peers."""
    monkeypatch.setattr(graph_check, "ZooKeeper", Behind)
    site = {"hbase.zookeeper.quorum": "zk", "hbase.replication.peer.storage.impl": storage}
    cluster = NamedCluster("sun", Settings(SiteConfig(site)))
    desk = _Desk(PathsAsked((cluster,), Scope()), tmp_path, lambda _: None)
    stations = desk.stations()
    assert (stations[0].cluster_id, stations[0].peers is not None) == ("id", is_known)
    assert ("is filesystem" in desk.unknown_peers(stations).get("sun", "")) is not is_known


KEY = SignKey(b"one" * 10)


def written(file: Path, side: str, key: SignKey | None = KEY, cut_ms: int = 5) -> Path:
    with StatusWriter(file, Header(side, "sun", 5, cut_ms), key):
        pass
    return file


@pytest.mark.parametrize(
    ("key", "cut_ms", "message"), [(KEY, 6, "was replaced while the paths were checked"), (None, 5, "is not signed")]
)
def test_a_file_that_is_replaced_meanwhile_proves_nothing(
    tmp_path: Path, key: SignKey | None, cut_ms: int, message: str
) -> None:
    """Signature and header were checked of the one before, and rows of two files would pass for those of one."""
    files = tuple(written(tmp_path / side, side) for side in (MASTER, SLAVE))
    asked = PathsAsked((NamedCluster("sun", files=files),), Scope(), key=KEY)
    desk = _Desk(asked, tmp_path, lambda _: None)
    desk.open_files()
    master, slave = desk.masters["sun", 0], desk.slaves["sun", 0]
    with slave.opened():
        pass
    written(slave.file, SLAVE, key, cut_ms)
    for read in (
        lambda: slave.facts,
        lambda: slave.lost_wals("1"),
        lambda: desk.written(()),
        lambda: _Search(asked, desk, lambda _: None, no_spark)._compared(master, slave, Scope()),
    ):
        with pytest.raises(StatusFileError, match=message):
            read()


def test_a_cluster_that_does_not_answer_in_a_later_round_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read as a master in the first: a cluster without a name could not be reached."""
    answers = [Snapshot(Header(side, "sun", 5, 5), (), ()) for side in (MASTER, SLAVE)]

    def read(*_: object) -> Snapshot:
        if not answers:
            raise ConnectionFailed("no answer")
        return answers.pop(0)

    monkeypatch.setattr(graph_check, "snapshot", read)
    sun = NamedCluster("sun", Settings(SiteConfig({})))
    desk = _Desk(PathsAsked((sun,), Scope()), tmp_path, lambda _: None)
    desk.read_first()
    assert desk.lost(desk.stations()) == {}
    desk.read(MASTER, 1, ["sun"])
    assert desk.failures == {("sun", MASTER): "no answer"}
    assert desk.lost(desk.stations()) == {}


def test_what_paths_writes_itself_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a file that was given: one key is asked of both."""
    monkeypatch.setattr(graph_check, "snapshot", lambda *_: Snapshot(Header(MASTER, "m", 5, 5), (), ()))
    sun = NamedCluster("sun", Settings(SiteConfig({})))
    desk = _Desk(PathsAsked((sun,), Scope(), key=KEY), tmp_path, lambda _: None)
    desk.read(MASTER, 0, ["sun"])
    assert desk.masters["sun", 0].facts.rows == ()


def test_files_are_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The option had no effect, and the verdict was there at once."""
    given = [f"--cluster={side}={written(tmp_path / side, side)}" for side in (MASTER, SLAVE)]
    assert main(["paths", *given, "--wait", "5"]) == 2
    assert "--wait reads slaves again" in capsys.readouterr().err


def test_the_example_of_the_page_is_what_the_command_prints() -> None:
    """docs/paths.md: Venus is behind by the peer of Earth."""
    page = (REPOSITORY / "docs" / "paths.md").read_text()
    (shown,) = re.findall(r"```\n(from \\ to.*?)```", page, re.S)
    hop = Hop("earth", "1", "venus")
    late = HBaseOutcome(Verdict.INCOMPLETE, Evidence.EXACT, {})
    why = tuple(graph_check._reasons(hop, Outcome(late, None, (), 0, queued_bytes=20480), ()))
    names = ("sun", "earth", "venus")
    matrix = {
        one: {
            other: PathState(Reach.BEHIND, Evidence.EXACT, why) if other == "venus" else PathState(Reach.COMPLETE)
            for other in names
            if other != one
        }
        for one in names
    }
    lines = list(paths_lines(PathsFound(tuple(map(Station, names)), {}, (), (), matrix, (), (), 0)))
    told = "\n".join(lines)
    for part in shown.rstrip().split("\n\n"):
        assert part in told, told
