"""Drift, from rows: what is absent or narrower on a slave, what bypasses the WAL, what was truncated."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from status_tool.clients.zookeeper import Peer
from status_tool.explain.drift import Drift, DriftTarget, Lost, Tables, find_drift
from status_tool.gather import cluster_drift
from status_tool.gather.peer_topology import Link, Node, Topology
from status_tool.gather.snapshot import PackedRows, Snapshot
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import Baseline

MASTER = Header("master", "m", 5, 5, cluster_key="z:1:/m", filesystem="hdfs://nn:8020")
PEER = {"id": "1", "cluster_key": "z:1:/s", "enabled": True}


def table(name: str, *families: str, local: str = "l", durability: str = "USE_DEFAULT") -> list[dict[str, Any]]:
    """A table of one region with replicated families and a local one."""
    scopes = {family: {"scope": 1} for family in families} | {local: {"scope": 0}}
    detail = json.dumps({"families": scopes, "durability": durability})
    return [
        {"kind": "table", "table": name, "detail": detail},
        {"kind": "region", "table": name, "region": f"r-{name}"},
    ]


def drift(rows: list[dict[str, Any]], tables: Tables | None, **peer: Any) -> list[Drift]:
    return find_drift(MASTER, rows, {}, [DriftTarget(PEER | peer, "s", tables)])


def kinds(found: list[Drift]) -> list[tuple[str, str]]:
    return [(one.kind, one.table) for one in found]


def test_absent_and_narrower_tables() -> None:
    rows = [*table("a", "f"), *table("b", "f", "g"), *table("local"), *table("c", "f")]
    found = drift(rows, {"b": frozenset({"f"}), "c": frozenset({"f"})})
    assert kinds(found) == [("absent", "a"), ("family-absent", "b")]
    assert "family g" in found[1].detail
    assert "--families=g --all.cells --peer.adr=z:1:/s b" in found[1].advice
    assert found[0].repair is not None
    assert "hdfs://nn:8020/tmp/status-tool-a-" in found[0].repair.sync_table


def test_unknown_families_are_no_drift_and_unknown_tables_neither() -> None:
    rows = table("a", "f")
    assert drift(rows, {"a": None}) == []
    assert drift(rows, None) == []
    assert kinds(drift(rows, {"b": None})) == [("absent", "a")]


def test_only_what_the_peer_ships() -> None:
    rows = [*table("a", "f", "g"), *table("ns:b", "f")]
    only = {"replicate_all": False, "table_cfs": {"a": ["f"]}}
    assert drift(rows, {"a": frozenset({"f"})}, **only) == []
    assert kinds(drift(rows, {}, **only)) == [("absent", "a")]


def test_a_dropped_table_has_no_descriptor_any_more() -> None:
    """The state table keeps the descriptor of a table that is gone."""
    assert drift(table("a", "f")[:1], {}) == []


def test_skip_wal() -> None:
    rows = [*table("a", "f", durability="SKIP_WAL"), *table("b", durability="SKIP_WAL")]
    assert kinds(drift(rows, {"a": None, "b": None})) == [("skip-wal", "a")]


def test_lost_regions() -> None:
    """Gone without split or merge, or after one of before; what was written up to --since is accepted."""
    rows: list[dict[str, Any]] = [
        *({"kind": "stream", "table": "t", "region": region, "write_ms": 10} for region in ("gone", "split", "here")),
        {"kind": "stream", "table": "u", "region": "old", "write_ms": 3},
        {"kind": "fact", "table": "t", "region": "split", "state": "split"},
        {"kind": "fact", "table": "t", "region": "gone", "state": "bulkload"},
        {"kind": "region", "table": "t", "region": "here"},
        {"kind": "stream", "table": "v", "region": "split-late", "write_ms": 60_003},
        {"kind": "fact", "table": "v", "region": "split-late", "state": "split", "write_ms": 3},
        {"kind": "stream", "table": "v", "region": "restored", "write_ms": 60_003},
        {"kind": "fact", "table": "v", "region": "restored", "state": "split", "write_ms": 2},
    ]
    accepted = {"tuv": Baseline(), "tv": Baseline(3), "v": Baseline(10), "uv": Baseline(None, {"t": 10})}
    for tables, since in accepted.items():
        lost = Lost(since)
        lost.add(rows)
        assert lost.by_table == dict.fromkeys(tables, 1)
    assert kinds(find_drift(MASTER, [], {"t": 1}, [DriftTarget(PEER, "s", None)])) == [("truncated", "t")]
    assert find_drift(MASTER, [], {"t": 1}, []) == []
    assert kinds(find_drift(MASTER, [], {"t": 1}, [DriftTarget(PEER, "s", {"t": None})])) == [("truncated", "t")]
    assert find_drift(MASTER, [], {"t": 1}, [DriftTarget(PEER, "s", {"u": None})]) == []


def test_drift_of_a_live_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions are apart from the other rows, and streams in sources of their own."""
    rows = [*table("a", "f"), *table("b", "f"), *table("dropped", "f")[:1]]
    regions = PackedRows.of(row for row in rows if row["kind"] == "region")
    small = tuple(row for row in rows if row["kind"] != "region")
    stream = {"kind": "stream", "table": "a", "write_ms": 10}
    streams = PackedRows.of({**stream, "region": name} for name in ("r-a", "gone"))
    gathered = Snapshot(MASTER, small, (streams,), regions=regions)
    monkeypatch.setattr(cluster_drift, "snapshot", lambda *_: gathered)
    monkeypatch.setattr(cluster_drift, "_mirrored_tables", lambda *_: {"a": None})
    topology = Topology("m", {"m": Node("m", "z:1:/m", 1, (Link(Peer("1", "z:1:/s", True, 1), "s"),))})
    settings: Any = SimpleNamespace(knows_thrift=True)
    found = cluster_drift.cluster_drift(settings, topology, (), Baseline())
    assert kinds(list(found.drift)) == [("absent", "b"), ("truncated", "a")]
    assert "1 region without a successor" in found.drift[1].detail
    # One that was made while the master was read is not lost, as for a verdict.
    server = {"kind": "server", "origin": 7, "live": True, "echoed": True, "read_ms": 1_000}
    for first_ms, lost in ((1_000, True), (5_000, False)):
        young = PackedRows.of([{**stream, "region": "young", "origin": 7, "first_ms": first_ms, "write_ms": 6_000}])
        seen = Snapshot(MASTER, (*small, server), (young,), regions=regions)
        monkeypatch.setattr(cluster_drift, "snapshot", lambda *_, seen=seen: seen)
        found = cluster_drift.cluster_drift(settings, topology, (), Baseline())
        assert (("truncated", "a") in kinds(list(found.drift))) is lost
