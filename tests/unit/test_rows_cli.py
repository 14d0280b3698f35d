"""What is compared of which families, how differing cells are named, and what the command says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from status_tool.cli.comparing import _document, _lines
from status_tool.cli.main import main
from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.sitefiles import SiteConfig
from status_tool.digests.compare import Limits, Result, TableVerdict
from status_tool.digests.differences import Difference, TableSide, differences
from status_tool.digests.digest import FOREVER, Family, Sums
from status_tool.digests.families import HORIZON_MS, DescribedCluster, comparable, families_by
from status_tool.digests.keys import Interval
from status_tool.errors import ConfigurationError
from status_tool.rules.descriptors import TTL_FOREVER
from status_tool.rules.peers import parse_peer
from status_tool.sources.state_table import now_ms
from tests.unit.test_evidence_reference import family

PLAIN = family(versions=3)


def cluster(**families: dict[str, Any]) -> DescribedCluster:
    """A cluster with a table `t`."""
    return DescribedCluster(Settings(SiteConfig({})), "id", {"t": families})


def test_the_newest_versions_that_both_keep() -> None:
    """A family that the slave lacks is compared with nothing."""
    how = comparable(cluster(f=PLAIN, g=PLAIN), cluster(f={**PLAIN, "versions": 2}), "t", ["f", "g"], ())
    assert how.families == {b"f": Family(2, FOREVER), b"g": Family(3, FOREVER)}
    assert (how.doubts, how.horizon_ms) == ((), None)
    told = "family f: not the same VERSIONS on both sides: what only one of them keeps is not compared"
    assert how.notices == (told,), "equal would say too much"


def test_cells_that_may_outlive_their_ttl_are_left_out() -> None:
    """By the smaller TTL, and a horizon that lies beyond both scans."""
    how = comparable(cluster(f={**PLAIN, "ttl": 7200}), cluster(f={**PLAIN, "ttl": 3600}), "t", ["f"], ("before",))
    assert [told.split(" on ")[0] for told in how.notices] == ["before", "family f: not the same TTL"]
    assert how.horizon_ms is not None
    left_out = now_ms() + HORIZON_MS - 3_600_000 - how.families[b"f"].oldest
    assert 0 <= left_out < 60_000


@pytest.mark.parametrize(("ours", "theirs"), [(-1, -1), (-1, TTL_FOREVER), (TTL_FOREVER, -1)])
def test_cells_that_never_expire_are_compared_whatever_says_so(ours: int, theirs: int) -> None:
    """HBase takes -1 for FOREVER: as an age it would leave out all cells, and nothing is equal to nothing."""
    how = comparable(cluster(f={**PLAIN, "ttl": ours}), cluster(f={**PLAIN, "ttl": theirs}), "t", ["f"], ())
    assert (how.families, how.horizon_ms) == ({b"f": Family(3, FOREVER)}, None)


@pytest.mark.parametrize(("ours", "theirs"), [(1, 1), (1, 0), (0, 1)])
def test_what_min_versions_keeps_is_compared_however_old_it_is(ours: int, theirs: int) -> None:
    """HBase never stops returning it, so that a slave without it has lost rows."""
    sides = [cluster(f={**PLAIN, "ttl": 2_592_000, "min_versions": least}) for least in (ours, theirs)]
    how = comparable(sides[0], sides[1], "t", ["f"], ())
    assert how.families == {b"f": Family(3, FOREVER)}
    assert "MIN_VERSIONS" in how.doubts[0]
    assert how.horizon_ms is not None


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ({"keep_deleted": "TRUE"}, {}, "KEEP_DELETED_CELLS"),
        ({}, {"new_version_behavior": True}, "NEW_VERSION_BEHAVIOR"),
        ({"ttl": 60}, {"min_versions": 1}, "MIN_VERSIONS"),
    ],
)
def test_descriptors_under_which_a_difference_proves_nothing(ours: Any, theirs: Any, word: str) -> None:
    how = comparable(cluster(f={**PLAIN, **ours}), cluster(f={**PLAIN, **theirs}), "t", ["f"], ())
    assert word in how.doubts[0]


def test_families_that_no_peer_ships_are_not_found_equal() -> None:
    """A peer that names another family of the table ships none that has scope 1."""
    peers = [parse_peer(json.dumps({"id": "1", "replicate_all": False, "table_cfs": {"t": ["f"]}}))]
    assert families_by(peers, "t", {"f", "g"}) == ["f"]
    with pytest.raises(ConfigurationError, match="ships a replicated family of table t"):
        families_by(peers, "t", {"g"})


class Rows(TableSide):
    """A side in memory: row to column to its versions, newest first."""

    def __init__(self, rows: dict[bytes, dict[bytes, list[tuple[bytes, int]]]]) -> None:
        super().__init__(ThriftEndpoint("h", 1), (b"f",))
        object.__setattr__(self, "rows", rows)

    rows: dict[bytes, dict[bytes, list[tuple[bytes, int]]]]

    def newest(self, table: str, interval: Interval) -> dict[bytes, dict[bytes, tuple[bytes, int]]]:
        return {row: {column: cells[0] for column, cells in columns.items()} for row, columns in self.rows.items()}

    def versions(self, table: str, row: bytes, column: bytes, count: int) -> dict[int, bytes]:
        return {moment: value for value, moment in self.rows[row][column][:count]}


def named(master: Rows, slave: Rows, family: Family) -> list[tuple[bytes, str]]:
    """Row and kind of each difference."""
    found = differences("t", Interval(b"", b""), {b"f": family}, master, slave)
    return [(one.row, one.kind) for one in found]


def test_differences_are_named() -> None:
    """By what is wrong with each; what is too old to be compared is not."""
    ours = {row: {b"f:q": [(b"v", 10)]} for row in (b"equal", b"gone", b"other", b"later")} | {
        b"old": {b"f:q": [(b"v", 1)]}
    }
    theirs = {
        b"equal": {b"f:q": [(b"v", 10)]},
        b"extra": {b"f:q": [(b"v", 10)]},
        b"other": {b"f:q": [(b"w", 10)]},
        b"later": {b"f:q": [(b"v", 11)]},
    }
    found = named(Rows(ours), Rows(theirs), Family(1, 5))
    assert found == [
        (b"extra", "extra"),
        (b"gone", "missing"),
        (b"later", "other timestamp"),
        (b"other", "other value"),
    ]


def test_older_versions_are_looked_at_where_the_newest_are_equal() -> None:
    """And only as many as both sides keep."""
    ours = {b"r": {b"f:q": [(b"v", 10), (b"v", 9), (b"v", 8)]}}
    theirs = {b"r": {b"f:q": [(b"v", 10), (b"w", 9)]}}
    assert named(Rows(ours), Rows(theirs), Family(2)) == [(b"r", "other value")]
    assert named(Rows(ours), Rows(theirs), Family(3)) == [(b"r", "other value"), (b"r", "missing")]
    assert named(Rows(ours), Rows(theirs), Family(1)) == []


def test_what_is_said() -> None:
    """Values only on request; names that do not print are escaped."""
    one = Difference(b"r\x1b", b"f", b"q", "other value", 5, 5, b"secret", b"other")
    result = Result("t", TableVerdict.DIFFERS, ("f",), Sums(rows=3, cells_up_to=4), (one,), False)
    plain, shown = (_document([result], Limits(9), values) for values in (False, True))
    assert "secret" not in json.dumps(plain)
    assert shown["tables"][0]["differences"][0]["master_value"] == "secret"
    lines = list(_lines([result], False))
    assert lines[-1] == "Rows are NOT equal."
    assert any(r"row r\x1B, column f:q: another value on the slave" in line for line in lines)
    assert not any("secret" in line for line in lines)
    assert any("--max-problems" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "--table"),
        (["--table", "t"], "--master-conf"),
        (["--table", "t", "--master-conf", "/nonexistent"], "/nonexistent"),
        (["--table", "t", "--master-thrift", "127.0.0.1:1", "--master-zookeeper", "127.0.0.1:1/z"], "127.0.0.1:1"),
    ],
)
def test_user_errors(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2."""
    assert main(["rows", *arguments, "--thrift", "127.0.0.1:1", "--zookeeper", "127.0.0.1:1/z"]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1
