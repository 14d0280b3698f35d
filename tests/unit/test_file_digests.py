"""Row digests in FILE: which tables the master digests, and what is read of them."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from status_tool.clients.zookeeper import Peer
from status_tool.digests.compare import TableVerdict
from status_tool.digests.digest import Family
from status_tool.digests.keys import Interval
from status_tool.runs import file_digests
from status_tool.runs.file_digests import (
    compare_with_file,
    digest_rows,
    doubtful_tables,
    equal_to_file,
    filed_tables,
    shipped_tables,
)
from status_tool.runs.question import SideFacts
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.scope import TableFilter

Row = dict[str, Any]
HEADER = Header("master", "m", 50_000, 40_000, barrier_issued_ms=40_000, coverage_ms=1_000)
SERVER = {"kind": "server", "origin": 1, "server": "a,1,1", "role": "w", "live": True, "tracked": True, "echoed": True}
PEER = {"kind": "peer", "name": "1", "detail": Peer("1", "q:1:/s", True, 1_000).to_json()}


def table(name: str, scope: int = 1, **more: Any) -> list[Row]:
    detail = json.dumps({"families": {"f": {"scope": scope}}, **more})
    region = {"kind": "region", "table": name, "region": f"r{name}", "state": "hosted", "region_id": 2_000}
    return [{"kind": "table", "table": name, "detail": detail}, region]


DETAIL = {"key": "00" * 16, "cut_ms": 5, "horizon_ms": None, "families": {"f": [3, 7]}, "sums": "ff,2,1", "rows": 1}


def digest(start: bytes, stop: bytes, **changed: Any) -> Row:
    detail = json.dumps(DETAIL | changed)
    return {"kind": "digest", "table": "t", "start_key": start, "end_key": stop, "detail": detail}


def test_digests_are_read_as_they_were_written() -> None:
    filed = filed_tables([digest(b"m", b""), digest(b"", b"m", sums="1,2,3")])["t"]
    assert (filed.key, filed.cut_ms, filed.horizon_ms) == (bytes(16), 5, None)
    assert filed.families == {b"f": Family(3, 7)}
    assert filed.ranges == {Interval(b"m", b""): (255, 2, 1), Interval(b"", b"m"): (1, 2, 3)}


@pytest.mark.parametrize(
    "rows",
    [
        [digest(b"", b"m")],
        [digest(b"", b"m"), digest(b"n", b"")],
        [digest(b"", b"m"), digest(b"m", b"", key="11" * 16)],
        [digest(b"", b"", key="00")],
        [digest(b"", b"", key="zz")],
        [digest(b"", b"", sums="x")],
        [digest(b"", b"", families={"f": [1]})],
        [digest(b"", b"", families={"f": "1"})],
        [digest(b"", b"", families={"f": [1 << 31, 7]})],
        [{**digest(b"", b""), "detail": "{"}],
        [{**digest(b"", b""), "detail": digest(b"", b"")["detail"].replace("horizon", "other")}],
    ],
    ids=[
        *("end", "hole", "two keys", "short key", "no key", "no sums", "short rule", "no rule", "too many versions"),
        *("no json", "no horizon"),
    ],
)
def test_digests_that_do_not_fit_together_are_none(rows: list[Row]) -> None:
    """What is not known proves nothing."""
    assert filed_tables(rows) == {}


def test_digests_of_which_all_cells_expire_soon_prove_nothing() -> None:
    """They are of no cell at all, as the slave's are."""
    nobody: Any = None
    (filed,) = filed_tables([digest(b"", b"")]).values()
    result = compare_with_file(nobody, filed, 0.0)
    assert result.verdict is TableVerdict.UNVERIFIABLE
    assert "all cells of family f that were written up to" in result.reasons[0]
    assert list(equal_to_file(nobody, [filed])) == []
    assert filed_tables([digest(b"", b"", families={"f": [3, 4]})])["t"].unfit is None


def test_only_what_the_master_cannot_prove_is_digested() -> None:
    """A bulk load, a table from before the trackers; not what no peer ships."""
    rows: list[Row] = [SERVER, PEER, *table("a"), *table("b"), *table("c"), *table("local", 0)]
    (old,) = (row for row in rows if row.get("region") == "rc")
    old["region_id"] = 1
    load = {"kind": "fact", "table": "b", "region": "rb", "state": "bulkload", "write_ms": 5}
    split = {"kind": "fact", "table": "a", "region": "ra", "state": "split", "write_ms": 5}
    master = SideFacts(HEADER, tuple(rows))
    assert shipped_tables(master, TableFilter()) == ["a", "b", "c"]
    assert doubtful_tables(master, [load, split], rows, TableFilter()) == ["b", "c"]
    assert doubtful_tables(master, [load], rows, TableFilter(frozenset({"a", "b"}))) == ["b"]


def test_families_that_no_peer_ships_are_not_digested(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slave would have their rows, so that none could have all that was digested."""
    described = {"versions": 1, "ttl": 2**31 - 1, "min_versions": 0, "keep_deleted": "", "new_version_behavior": False}
    detail = {"families": {name: described | {"scope": int(name != "h")} for name in "fgh"}}
    narrow = {"replicate_all": False, "table_cfs": {"t": ["f"]}}
    peers = [PEER | {"detail": json.dumps(json.loads(PEER["detail"]) | narrow)}]
    damaged = {"kind": "table", "table": "damaged", "detail": "{}"}
    rows: list[Any] = [*peers, {"kind": "table", "table": "t", "detail": json.dumps(detail)}, damaged]
    zookeeper = nullcontext(SimpleNamespace(cluster_id=lambda: "m"))
    monkeypatch.setattr(file_digests, "ZooKeeper", lambda _: zookeeper)
    monkeypatch.setattr(file_digests, "require_same_cluster", lambda *_: None)
    monkeypatch.setattr(file_digests, "_digested", lambda _, hows, *__: [hows])
    settings: Any = SimpleNamespace(zookeeper=lambda: None)
    (hows,) = cast(Any, digest_rows(settings, ["t"], rows, lambda _: None))
    assert set(hows["t"].families) == {b"f"}


def test_of_a_server_that_is_not_settled_every_table_is_doubtful() -> None:
    crashed = {**SERVER, "origin": 2, "server": "b,1,2", "live": False, "echoed": False}
    with_it: tuple[Row, ...] = (SERVER, crashed, PEER, *table("a"))
    without: tuple[Row, ...] = (SERVER, PEER, *table("a"))
    assert doubtful_tables(SideFacts(HEADER, with_it), [], with_it, TableFilter()) == ["a"]
    assert doubtful_tables(SideFacts(HEADER, without), [], without, TableFilter()) == []
