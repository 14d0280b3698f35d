"""Which peer of the master leads to this slave."""

from __future__ import annotations

from typing import Any

import pytest

from status_tool.errors import StatusFileError
from status_tool.evidence.peers import choose_peer, filters_families, ships

HERE, ELSEWHERE = "ba334f3a-690b-49f0-9d4a-660584d0fd6e", "ecf74cc5-829d-42ab-a67a-345255e0d2fd"
KEY = "z1,z2:2181:/hbase"


def peer(name: str, cluster_id: str | None = None, key: str = KEY, **more: Any) -> dict[str, Any]:
    """A peer's facts."""
    return {"id": name, "cluster_id": cluster_id, "cluster_key": key, "enabled": True, **more}


def test_by_cluster_id() -> None:
    """The id decides, whatever the keys say."""
    assert choose_peer([peer("1", ELSEWHERE), peer("2", HERE, "other:1:/x")], HERE, KEY, None).peer["id"] == "2"


def test_by_cluster_key_where_no_id_was_known() -> None:
    """Hosts in any order, port spelled either way."""
    assert choose_peer([peer("1", key="z2:2181,z1:2181:/hbase")], HERE, KEY, None).peer["id"] == "1"


@pytest.mark.parametrize(
    ("peers", "wanted", "words"),
    [
        ([], None, "no replication peer"),
        ([peer("1", ELSEWHERE)], None, "does not replicate to this one"),
        ([peer("1", key="other:2181:/hbase")], None, "--peer"),
        ([peer("1", HERE), peer("2", HERE)], None, "several peers"),
        ([peer("1", HERE)], "2", "no peer '2'"),
        ([peer("1", ELSEWHERE)], "1", "leads to cluster"),
    ],
)
def test_refusals(peers: list[dict[str, Any]], wanted: str | None, words: str) -> None:
    """Each says why."""
    with pytest.raises(StatusFileError, match=words):
        choose_peer(peers, HERE, KEY, wanted)


def test_a_disabled_peer_is_told() -> None:
    """It is the likely reason for what is behind."""
    (notice,) = choose_peer([peer("1", HERE, enabled=False)], HERE, KEY, None).notices
    assert "disabled" in notice


@pytest.mark.parametrize(
    ("facts", "table", "shipped"),
    [
        ({"replicate_all": True}, "t", True),
        ({"replicate_all": True, "exclude_namespaces": ["ns"]}, "ns:t", False),
        ({"replicate_all": True, "exclude_table_cfs": {"t": []}}, "t", False),
        ({"replicate_all": True, "exclude_table_cfs": {"t": ["f"]}}, "t", True),
        ({"replicate_all": False}, "t", False),
        ({"replicate_all": False, "namespaces": ["ns"]}, "ns:t", True),
        ({"replicate_all": False, "table_cfs": {"t": []}}, "t", True),
        ({"replicate_all": False, "table_cfs": {"t": ["f"]}}, "u", False),
    ],
)
def test_what_a_peer_ships(facts: dict[str, Any], table: str, shipped: bool) -> None:
    """HBase's ReplicationPeerConfig.needToReplicate."""
    assert ships(peer("1", **facts), table) is shipped


def test_family_filters() -> None:
    """Only they make holes in a stream expected."""
    assert filters_families(peer("1", table_cfs={"t": ["f"]}))
    assert filters_families(peer("1", exclude_table_cfs={"t": ["f"]}))
    assert not filters_families(peer("1", table_cfs={"t": []}))
