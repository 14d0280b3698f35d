"""Which peer of the master leads to this slave."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from status_tool.errors import StatusFileError
from status_tool.rules.peers import (
    HBASE_ENDPOINT,
    choose_peer,
    disabled_notices,
    family_filter,
    not_replicated,
    own_shipping,
    ships,
    withheld,
)
from status_tool.rules.tables import TableAge, TableQuestion, judge_tables
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import NotReplicated

HERE, ELSEWHERE = "ba334f3a-690b-49f0-9d4a-660584d0fd6e", "ecf74cc5-829d-42ab-a67a-345255e0d2fd"
KEY = "z1,z2:2181:/hbase"


def peer(name: str, cluster_id: str | None = None, key: str = KEY, **more: Any) -> dict[str, Any]:
    return {"id": name, "cluster_id": cluster_id, "cluster_key": key, "enabled": True, **more}


def test_by_cluster_id() -> None:
    """The id decides, whatever the keys say."""
    assert choose_peer([peer("1", ELSEWHERE), peer("2", HERE, "other:1:/x")], HERE, KEY, None)["id"] == "2"


def test_by_cluster_key_where_no_id_was_known() -> None:
    """Hosts in any order, port spelled either way."""
    assert choose_peer([peer("1", key="z2:2181,z1:2181:/hbase")], HERE, KEY, None)["id"] == "1"


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
    with pytest.raises(StatusFileError, match=words):
        choose_peer(peers, HERE, KEY, wanted)


@pytest.mark.parametrize(
    ("facts", "is_refused"),
    [
        ({"table_cfs": {"u": []}}, True),
        ({"table_cfs": {"t": ["g"]}}, True),
        ({"table_cfs": {"t": ["f"]}}, False),
        ({"table_cfs": {"u": []}, "cluster_id": ELSEWHERE}, False),
        ({"table_cfs": {"u": []}, "key": ""}, False),
    ],
)
def test_a_peer_that_could_not_be_queried_may_lead_here_as_well(facts: dict[str, Any], is_refused: bool) -> None:
    """What it alone ships would be taken for what nothing ships; the operator decides where only it does."""
    peers = [
        peer("1", HERE, replicate_all=False, table_cfs={"t": ["f"]}),
        peer("2", **{"replicate_all": False, "key": "other:2181:/x", **facts}),
    ]
    replicated = {"t": ("f", "g"), "u": ("f",)}
    assert choose_peer(peers, HERE, KEY, "1", replicated)["id"] == "1"
    with pytest.raises(StatusFileError, match=r"peer 2 may, too: .*--peer ID") if is_refused else nullcontext():
        assert choose_peer(peers, HERE, KEY, None, replicated)["id"] == "1"


@pytest.mark.parametrize(
    ("other", "wanted", "is_refused"),
    [
        ({"cluster_id": HERE, "key": "z3:2181:/hbase"}, "2", True),
        ({"cluster_id": HERE, "key": "z3:2181:/hbase"}, "1", False),
        ({"cluster_id": HERE, "key": "z2:2181,z1:2181:/hbase"}, "2", False),
        ({"cluster_id": None, "key": "z3:2181:/hbase"}, "2", False),
    ],
)
def test_of_two_clusters_of_one_id_the_address_decides(other: dict[str, Any], wanted: str, is_refused: bool) -> None:
    """What the queues of the one have shipped the other may lack."""
    peers = [peer("1", HERE), peer("2", **other)]
    with pytest.raises(StatusFileError, match="another cluster of this one's id") if is_refused else nullcontext():
        assert choose_peer(peers, HERE, KEY, wanted)["id"] == wanted
    apart = [peer("1", HERE, "z4:2181:/hbase"), peer("2", HERE, "z3:2181:/hbase")]
    assert choose_peer(apart, HERE, KEY, wanted)["id"] == wanted, "by names that this host does not use"


def test_a_disabled_peer_is_told() -> None:
    """It is the likely reason for what is behind."""
    (notice,) = disabled_notices(peer("1", HERE, enabled=False))
    assert "disabled" in notice


ALL = {"f", "g", "gone", ""}


@pytest.mark.parametrize(
    ("facts", "shipped", "left_out"),
    [
        ({}, ALL, {}),
        ({"replicate_all": False}, set(), {}),
        ({"replicate_all": False, "table_cfs": {"t": ["f"]}}, {"f", ""}, {"t": ("g",)}),
        ({"replicate_all": False, "table_cfs": {"t": ["f", "gone"]}}, {"f", "gone", ""}, {"t": ("g",)}),
        ({"replicate_all": False, "table_cfs": {"t": ["f", "g", "h"]}}, {"f", "g", ""}, {}),
        ({"replicate_all": False, "table_cfs": {"t": []}}, ALL, {}),
        ({"replicate_all": False, "table_cfs": {"t": ["f"]}, "namespaces": ["default"]}, ALL, {}),
        ({"replicate_all": False, "table_cfs": {"ns:t": ["f"]}, "namespaces": ["ns"]}, set(), {}),
        ({"exclude_table_cfs": {"t": ["f"]}}, {"g", "gone", ""}, {"t": ("f",)}),
        ({"exclude_table_cfs": {"t": ["local"]}}, ALL, {}),
        ({"exclude_table_cfs": {"t": []}}, set(), {}),
        ({"exclude_namespaces": ["default"]}, set(), {}),
        ({"exclude_namespaces": ["ns"], "table_cfs": {"t": ["f"]}}, ALL, {}),
    ],
)
def test_what_a_peer_ships(facts: dict[str, Any], shipped: set[str], left_out: dict[str, tuple[str, ...]]) -> None:
    """HBase's ReplicationPeerConfig.needToReplicate, and by family, also of tables and families that are gone.

    A stream without a family is of several, and is left out with its table alone. Holes are expected only where a
    family that is replicated is left out of a table that is not.
    """
    one = peer("1", **{"replicate_all": True, **facts})
    families = family_filter(one)
    assert {family for family in ALL if families.ships("t", family)} == shipped
    assert ships(one, "t") is families.ships("t", None) is bool(shipped)
    assert families.ships(None, "g")
    assert withheld(one, {"t": ["f", "g"]}) == left_out


def test_a_family_that_is_not_shipped_is_not_asked() -> None:
    """The slave need not have it, and a table of nothing else is not replicated to it. A row without a name is none."""
    detail = json.dumps({"families": {"f": {"scope": 1}, "g": {"scope": 1}}})
    ours = [{"table": one, "detail": detail} for one in ("t", None, "u")]
    theirs = [{"table": name, "detail": json.dumps({"families": {"f": {}}, "regions": 1})} for name in "tu"]
    ages = [TableAge(name, 1, 5, 5, False) for name in "tu"]
    header = Header("master", HERE, 9, 9, coverage_ms=1)
    tables = judge_tables(ours, theirs, ages, TableQuestion(header, lambda _: True, withheld={"t": ("g",)}))
    assert [(table.families, [f.code for f in table.findings]) for table in tables] == [
        (("f",), []),
        (("f", "g"), ["family-absent"]),
    ]


def test_what_is_not_replicated_to_this_slave() -> None:
    """An operator asks whether everything has arrived: what nobody ships has a name."""
    tables = {
        "all": (("f", "g"), ()),
        "mixed": (("f",), ("l", "m")),
        "local": ((), ("f",)),
        "parts": (("f", "g"), ("l",)),
        "other": (("f",), ()),
    }
    everything = peer("1", replicate_all=True)
    assert not_replicated(everything, tables) == NotReplicated(
        ("local",), (("mixed", "l"), ("mixed", "m"), ("parts", "l"))
    )
    some = peer("1", replicate_all=False, table_cfs={"parts": ["f"], "all": [], "other": ["g"]})
    assert not_replicated(some, tables) == NotReplicated(("local", "mixed", "other"), (("parts", "g"), ("parts", "l")))
    assert not_replicated(everything, {"all": tables["all"]}) == NotReplicated()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, None),
        ({"endpoint": None, "entry_filters": ""}, None),
        ({"endpoint": HBASE_ENDPOINT}, None),
        ({"endpoint": "org.Own"}, "replication endpoint org.Own"),
        ({"entry_filters": "a.F,b.G"}, "WAL entry filters a.F,b.G"),
        ({"endpoint": "E", "entry_filters": "F"}, "replication endpoint E and WAL entry filters F"),
    ],
)
def test_code_of_the_users_own_on_the_way(facts: dict[str, Any], words: str | None) -> None:
    """HBase's own endpoint, named or not, is none."""
    assert own_shipping(peer("1", **facts)) == words
