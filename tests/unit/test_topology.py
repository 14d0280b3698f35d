"""Topologies of clusters that exist only here: shapes and broken links."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from status_tool.cli.main import main
from status_tool.clients.config import ZooKeeperEndpoint
from status_tool.clients.zookeeper import Peer
from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.gather import peer_topology
from status_tool.gather.cluster_drift import _of_no_peer
from status_tool.gather.peer_topology import Topology, explore, what_is_shipped
from status_tool.rules.peers import REPLICAS_ENDPOINT


def peer(name: str, to: str, *, enabled: bool = True, endpoint: str | None = None) -> Peer:
    """A peer that leads to the cluster under that znode."""
    return Peer(name, f"zk:2181:/{to}" if endpoint is None else to, enabled, 0, endpoint=endpoint)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Peer] | None]:
    """Peers by znode; None: its ZooKeeper does not answer; absent: no HBase there."""
    world: dict[str, list[Peer] | None] = {}

    class Fake:
        def __init__(self, endpoint: ZooKeeperEndpoint, timeout_s: float = 0) -> None:
            self.endpoint, self.name = endpoint, endpoint.znode[1:]

        def __enter__(self) -> Fake:
            if self.name in world and world[self.name] is None:
                raise ConnectionFailed("no answer")
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def cluster_id(self) -> str:
            if self.name not in world:
                raise ConfigurationError("no HBase")
            return self.name

        def live_servers(self) -> list[str]:
            return ["a,1,1"]

        def peers(self) -> list[Peer]:
            return world[self.name] or []

    monkeypatch.setattr(peer_topology, "ZooKeeper", Fake)
    return world


def found() -> Topology:
    """What is found from cluster a."""
    return explore(ZooKeeperEndpoint("zk:2181", "/a"))


@pytest.mark.parametrize(
    ("edges", "shape"),
    [
        ("", "alone"),
        ("ab", "master-slave"),
        ("ab ba", "master-master"),
        ("ab bc", "chain"),
        ("ab bc ca", "cyclic"),
        ("ab ac", "fan-out"),
        ("ab ac bc", "mixed"),
    ],
)
def test_shapes(clusters: dict[str, list[Peer] | None], edges: str, shape: str) -> None:
    """Named as people name them; none of them has a broken link."""
    clusters.update({name: [] for name in "abc"})
    for number, edge in enumerate(edges.split()):
        members, other = clusters[edge[0]], edge[1]
        assert members is not None
        members.append(peer(str(number), other))
    assert (found().shape, found().problems) == (shape, [])
    assert len(found().nodes) == len(set(edges.replace(" ", "")) | {"a"})


@pytest.mark.parametrize(
    ("peers", "words"),
    [
        ([peer("1", "a")], "its own cluster"),
        ([peer("1", "b"), peer("2", "b")], "shipped twice"),
        ([peer("1", "nowhere")], "there is no HBase cluster"),
        ([peer("1", "down")], "cannot be reached"),
        ([peer("1", "b", enabled=False)], "disabled"),
        ([Peer("1", "nonsense", True, 0)], "not an HBase cluster key"),
    ],
)
def test_broken_links(clusters: dict[str, list[Peer] | None], peers: list[Peer], words: str) -> None:
    """Each is named with its cluster and peer."""
    clusters.update({"a": peers, "b": [], "down": None})
    problems = found().problems
    assert problems
    assert all(problem.startswith("a: peer ") and words in problem for problem in problems)


def test_a_peer_that_is_no_hbase(clusters: dict[str, list[Peer] | None]) -> None:
    """An endpoint of its own is no broken link."""
    clusters["a"] = [peer("es", "", endpoint="com.example.Endpoint")]
    assert found().problems == []


def test_hbases_own_peer_for_region_replicas(clusters: dict[str, list[Peer] | None]) -> None:
    """It leads to its own cluster, as it has to."""
    replicas = peer("region_replica_replication", "zk:2181:/a", endpoint=REPLICAS_ENDPOINT)
    clusters.update({"a": [peer("1", "b"), replicas], "b": []})
    assert (found().shape, found().problems) == ("master-slave", [])


def test_the_command(clusters: dict[str, list[Peer] | None], capsys: pytest.CaptureFixture[str]) -> None:
    """A tree that ends where it has been before; JSON; exit code 1 for a broken link."""
    clusters.update({"a": [peer("1", "b")], "b": [peer("2", "a"), peer("3", "c")], "c": []})
    assert main(["topology", "--zookeeper", "zk:2181/a"]) == 0
    text = capsys.readouterr().out
    assert "└─ peer 1 → b (zk:2181:/b), 1 live region server, ships everything" in text
    assert "   ├─ peer 2 → a (zk:2181:/a), 1 live region server, see above" in text
    clusters["c"] = [peer("4", "down")]
    clusters["down"] = None
    assert main(["topology", "--json", "--zookeeper", "zk:2181/a"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [cluster["cluster_id"] for cluster in document["clusters"]] == ["a", "b", "c"]
    assert "cannot be reached" in document["problems"][0]


def test_what_was_not_checked_stands_on_the_page(
    clusters: dict[str, list[Peer] | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a Thrift server no table is compared: the page had neither problems nor a word of that."""
    clusters["a"] = []
    page = tmp_path / "page.html"
    assert main(["topology", "--zookeeper", "zk:2181/a", "--report", str(page)]) == 0
    assert "drift of tables is not known" in capsys.readouterr().out
    assert "<h2>Not checked</h2>" in page.read_text()
    assert "drift of tables is not known" in page.read_text()


def test_site_files_of_a_cluster_that_no_peer_leads_to(clusters: dict[str, list[Peer] | None]) -> None:
    """They were read and left out without a word."""
    clusters.update({"a": [peer("1", "b")], "b": []})
    links = found().nodes["a"].links
    assert [words.partition(",")[0] for words in _of_no_peer(("b", "c"), links)] == [
        "--peer-conf: no peer of this cluster leads to c"
    ]


def test_what_is_shipped() -> None:
    some = Peer("1", "k", True, 0, replicate_all=False, namespaces=("n",), table_cfs={"t": ["f", "g"], "u": []})
    assert what_is_shipped(some) == "n:*, t (f, g), u"
    assert what_is_shipped(Peer("1", "k", True, 0, exclude_namespaces=("n",))) == "everything but n:*"
    assert what_is_shipped(Peer("1", "k", True, 0, replicate_all=False)) == "nothing"
