"""Row digests over every kind of cell and of change: versions, future times, TTLs, wide rows, merges, deletes, load."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from status_tool.digests import compare
from status_tool.digests.families import HORIZON_MS
from status_tool.runs import compare_rows
from status_tool.sources.state_table import now_ms
from tests.cluster.conftest import SETTLE_S
from tests.cluster.one_pair.test_rows import compared, regions, rows, settled, thrift
from tests.lab.cluster import Cluster
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, Pair, Result, move_table

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

HOUR_MS = 3_600_000


def create(pair: Pair, name: str, **family: int) -> None:
    """The table on both sides, with the replicated family f; `family` as happybase has it (TTL in seconds)."""
    for cluster in (pair.master, pair.slave):
        with thrift(cluster) as client:
            client.create_table(name, {"f": family})
        cluster.admin.set_scope(name, "f", 1)


def found(document: dict[str, Any]) -> list[tuple[str, str, int | None, int | None]]:
    """The cells that differ: row, kind, timestamp on the master, on the slave; that no others do is checked."""
    assert document["all_listed"]
    return [(one["row"], one["kind"], one["master_ms"], one["slave_ms"]) for one in document["differences"]]


def test_one_old_version(pair: Pair) -> None:
    """An older version that is not the same is named by its timestamp, unless one side does not keep that many."""
    create(pair, "versions", max_versions=3)
    newest = now_ms()
    oldest = newest - 2000
    with thrift(pair.master) as client:
        for key in (b"other", b"same", b"short"):
            for moment in (oldest, newest - 1000, newest):
                client.table("versions").put(key, {b"f:q": b"at %d" % moment}, timestamp=moment)
    pair.wait_same("versions")
    document = compared(pair, "versions", 0)
    assert (document["rows"], document["cells"]) == (3, 9)
    with thrift(pair.slave) as client:
        table = client.table("versions")
        table.put(b"other", {b"f:q": b"tampered"}, timestamp=oldest)
        table.delete(b"short", [b"f:q"], timestamp=oldest)
    document = compared(pair, "versions", 1)
    assert found(document) == [("other", "other value", oldest, oldest), ("short", "missing", oldest, None)]
    pair.slave.admin.set_versions("versions", "f", 2)
    document = compared(pair, "versions", 0)
    assert (document["rows"], document["cells"]) == (3, 6)


def test_a_timestamp_in_the_future(pair: Pair) -> None:
    """Cells beyond the cut are compared as all others are."""
    pair.create_table("future", {"f": 1})
    pair.master.admin.put_rows("future", "f", 20)
    tomorrow = now_ms() + 24 * HOUR_MS
    with thrift(pair.master) as client:
        for key in (b"gone", b"other", b"same"):
            client.table("future").put(key, {b"f:q": b"v"}, timestamp=tomorrow)
    pair.wait_same("future")
    document = compared(pair, "future", 0)
    assert (document["rows"], document["cells_beyond_cut"]) == (23, 3)
    with thrift(pair.slave) as client:
        table = client.table("future")
        table.delete(b"gone", [b"f:q"], timestamp=tomorrow)
        table.put(b"other", {b"f:q": b"w"}, timestamp=tomorrow)
    document = compared(pair, "future", 1)
    assert found(document) == [("gone", "missing", tomorrow, None), ("other", "other value", tomorrow, tomorrow)]


def test_the_edge_of_a_ttl(pair: Pair, status: Path) -> None:
    """Cells that may expire within the horizon are left out, so that one side may lack them; others may not be."""
    create(pair, "brief", time_to_live=HOUR_MS // 1000)
    edge = now_ms() + HORIZON_MS - HOUR_MS
    young = edge + HOUR_MS // 4  # the edge moves on while the test runs
    pair.master.admin.put_rows("brief", "f", 20)
    with thrift(pair.master) as client:
        client.table("brief").put(b"old", {b"f:q": b"v"}, timestamp=edge - 1000)
        client.table("brief").put(b"young", {b"f:q": b"v"}, timestamp=young)
    pair.wait_same("brief")
    with thrift(pair.slave) as client:
        client.table("brief").delete(b"old")
    assert compared(pair, "brief", 0)["rows"] == 21
    pair.write_master(status, "--table", "brief", "--rows=all")
    by_file = pair.check(status, "--table", "brief", "--rows=all")
    assert by_file.exit_code == 0, by_file
    assert any(notice.startswith("21 rows of 1 table compared") for notice in by_file.json["notices"])
    with thrift(pair.slave) as client:
        client.table("brief").delete(b"young")
    document = settled(pair, status, "brief", 1, "--rows=all")
    assert regions(document) == {"differs": 1}
    (cell,) = (problem["detail"] for problem in document["problems"] if problem["kind"] == "differs")
    assert "row young, column f:q: missing on the slave" in cell


def test_wide_rows_and_large_cells(pair: Pair) -> None:
    """A hundred columns a row and 1 MiB a cell: one byte flipped in each is found, and printed only on demand."""
    pair.create_table("broad", {"f": 1}, slave_splits=[b"wide05"])
    columns = {f"f:q{number:02}": f"value {number}" for number in range(100)}
    for number in range(10):
        pair.master.admin.mutate_row("broad", f"wide{number:02}", columns)
    large = "large" + "v" * (1 << 20)
    pair.master.admin.put_rows("broad", "f", 4, prefix="large", value=large)
    pair.wait_same("broad")
    document = compared(pair, "broad", 0)
    assert (document["rows"], document["cells"]) == (14, 1004)
    with thrift(pair.slave) as client:
        table = client.table("broad")
        for key, column, value in ((b"large00000002", b"f:q", large[:-1] + "w"), (b"wide07", b"f:q57", "walue 57")):
            (_, moment) = table.row(key, [column], include_timestamp=True)[column]
            table.put(key, {column: value.encode()}, timestamp=moment)
    document = compared(pair, "broad", 1)
    assert [one["qualifier"] for one in document["differences"]] == ["q", "q57"]
    assert [one[:2] for one in found(document)] == [("large00000002", "other value"), ("wide07", "other value")]
    assert not any(value in str(document) for value in ("largev", "alue 57"))
    document = compared(pair, "broad", 1, "--show-values")
    (shown, other), words = [(one["master_value"], one["slave_value"]) for one in document["differences"]]
    assert words == ("value 57", "walue 57")
    assert shown == other == f"{large[:200]}…"


def in_background(pair: Pair, table: str, *arguments: str) -> tuple[threading.Thread, list[Result]]:
    """`rows`, begun; on return some region server of the slave digests for it."""
    began, results = now_ms(), list[Result]()
    worker = threading.Thread(target=lambda: results.append(rows(pair, table, *arguments)))
    worker.start()
    wait_until(lambda: digests_since(pair.slave, began), 60, "a region server reports that it digests", interval=0.1)
    return worker, results


def digests_since(cluster: Cluster, began_ms: int) -> bool:
    """Whether a region server has reported that it works on a request that came after this."""
    with thrift(cluster) as client:
        name = f"{STATE_TABLE}_rows"
        if name.encode() not in client.tables():
            return False
        reports = list(client.table(name).scan(row_prefix=b"s", columns=[b"t:v"], include_timestamp=True))
    return any(written > began_ms for _, cells in reports for _, written in cells.values())


def test_regions_that_are_merged_meanwhile(pair: Pair) -> None:
    """The digests of two regions that have become one are requested again of that one: nothing lost, nothing twice."""
    pair.create_filled("merging", 4000, [b"row00002000"], value="v" * 500)
    first, second = pair.slave.admin.regions("merging")
    worker, results = in_background(pair, "merging", "--rate", "0.15")
    pair.slave.admin.merge(first.encoded, second.encoded)
    assert worker.is_alive(), "the regions were merged too late"
    worker.join()
    (result,) = results
    (document,) = result.json["tables"]
    assert (result.exit_code, document["rows"], document["cells"]) == (0, 4000, 4000), result
    assert len(pair.slave.admin.regions("merging")) == 1


def tamper(cluster: Cluster, table: str, row: bytes) -> None:
    """Another value at the same time, of which replication never learns."""
    with thrift(cluster) as client:
        (_, moment) = client.table(table).row(row, include_timestamp=True)[b"f:q"]
        client.table(table).put(row, {b"f:q": b"tampered"}, timestamp=moment, wal=False)


def differing(document: dict[str, Any]) -> list[str]:
    """What is said of the cells that differ."""
    return [problem["detail"] for problem in document["problems"] if problem["kind"] == "differs"]


@contextlib.contextmanager
def overwriting(pair: Pair, table: str) -> Iterator[Callable[[], int]]:
    """Some 50 rows `hot…` are written again and again while the block runs; yields what counts the writes."""
    over, written = threading.Event(), list[int]()

    def write() -> None:
        with thrift(pair.master) as client:
            while not over.wait(0.02):
                number = len(written)
                client.table(table).put(b"hot%02d" % (number % 50), {b"f:q": b"%d" % number})
                written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(lambda: len(written) > 50, 60, "all hot rows are there")
        yield lambda: len(written)
    finally:
        over.set()
        writer.join()


def test_under_load_what_differs_is_told_from_what_changes(
    pair: Pair, status: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other rows of the table are written and shipped all the while: they change, and only the tampered one differs.

    So it does for `run -i`, which waits until what was written before has left the queues, though these never empty.
    """
    monkeypatch.setattr(compare, "SETTLE_S", SETTLE_S)
    monkeypatch.setattr(compare_rows, "CHANGING_S", 8.0)
    pair.create_filled("busy", 500, [b"row"])
    with overwriting(pair, "busy") as written:
        result = rows(pair, "busy", "--wait", "8")
        (document,) = result.json["tables"]
        assert (result.exit_code in (0, 3), document["differences"]) == (True, []), result
        assert all("kept changing during the comparison" in reason for reason in document["reasons"])
        before = written()
        tamper(pair.slave, "busy", b"row00000077")
        document = compared(pair, "busy", 1, "--wait", "8")
        assert [(one["row"], one["kind"]) for one in document["differences"]] == [("row00000077", "other value")]
        document = settled(pair, status, "busy", 1, "--rows=all")
        cells = [problem["detail"] for problem in document["problems"] if problem["kind"] == "differs"]
        assert len(cells) == 1
        assert "row00000077" in cells[0]
        assert written() > before + 20, "the writer stood still"


def test_both_directions(pair: Pair, status: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters that replicate to each other: rows settle bulk loads of both, and show what differs, either way."""
    monkeypatch.setattr(compare_rows, "DRAIN_S", 2.0)
    both = (pair, pair.reversed())
    pair.reversed().connect()
    try:
        pair.create_table("crossed", {"f": 1}, [b"m"])
        for one in both:
            one.master.admin.put_rows("crossed", "f", 20, prefix=one.master.name)
        wait_until(lambda: len(pair.master.admin.rows("crossed")) == 40, 60, "the slave's rows are on the master")
        pair.wait_same("crossed")
        for one in both:
            one.master.admin.bulk_load("crossed", "f", 1, prefix=f"bulk {one.master.name}")
            copy_bulk_load(one, "crossed")
        for one in both:
            document = settled(one, status, "crossed", 0, "--rows=all")
            assert (regions(document), document["hbase"]["evidence"]) == ({"complete": 2}, "rows")
        tamper(pair.slave, "crossed", b"slave00000007")
        for one in both:
            document = settled(one, status, "crossed", 1, "--rows=all")
            (cell,) = differing(document)
            # A table is proven as a whole or not at all, and the other region holds what was bulk loaded.
            assert regions(document) == {"differs": 1, "unverifiable": 1}
            assert "row slave00000007, column f:q: another value on the slave" in cell
    finally:
        pair.slave.admin.remove_peer(PEER)


def copy_bulk_load(pair: Pair, table: str) -> None:
    """What was loaded beside the WAL, by hand and past replication, which would ship it back."""
    with thrift(pair.master) as ours, thrift(pair.slave) as theirs:
        for key, row in ours.table(table).scan(row_prefix=b"bulk " + pair.master.name.encode(), include_timestamp=True):
            for column, (value, moment) in row.items():
                theirs.table(table).put(key, {column: value}, timestamp=moment, wal=False)


def test_a_region_server_that_is_killed_meanwhile(pair: Pair) -> None:
    """Its regions are asked for again where they open: the verdict is equal."""
    pair.create_filled("killed", 4000, [b"row00002000"], value="v" * 500)
    survivor, victim = pair.slave.region_servers[0], pair.slave.add_region_server()
    for table in (STATE_TABLE, f"{STATE_TABLE}_rows"):
        move_table(pair.slave, table, survivor.server_name)
    move_table(pair.slave, "killed", victim.server_name)
    worker, results = in_background(pair, "killed", "--rate", "0.15")
    pair.slave.crash(victim)
    try:
        assert worker.is_alive(), "the server was killed too late"
        worker.join()
        (result,) = results
        (document,) = result.json["tables"]
        assert (result.exit_code, document["rows"], document["differences"]) == (0, 4000, []), result
        assert {region.server for region in pair.slave.admin.regions("killed")} == {survivor.server_name}
    finally:
        pair.slave.region_servers.remove(victim)
