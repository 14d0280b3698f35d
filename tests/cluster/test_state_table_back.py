"""State tables that go back on real clusters: restored from a snapshot in every order, cloned, a region of it lost."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster, stop_together
from tests.lab.errors import AdminError
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, Pair, Result, spool_of, tool_here, wait_flushed

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

FLUSH_S = 6.0
"""The trackers of these clusters flush every five seconds."""


def wait_marked(cluster: Cluster) -> None:
    """Wait until a tracker has raised the state table's mark, in the table and then in HDFS: every ten seconds."""
    hdfs, folder = spool_of(cluster)

    def mark() -> int:
        names = [entry["pathSuffix"] for page in hdfs.pages(folder) for entry in page]
        return max((int(name.removeprefix("mark-")) for name in names if name.startswith("mark-")), default=0)

    before = mark()
    wait_until(lambda: mark() > before, 60, "a tracker has raised the mark")


def restore(cluster: Cluster, tables: Sequence[str], *, restart: bool = False) -> None:
    """All are disabled, restored in this order from their snapshots, and enabled; servers restarted before that."""
    for table in tables:
        cluster.admin.disable_table(table)
    for table in tables:
        cluster.admin.restore_snapshot(f"nightly-{table}", table)
    if restart:
        restart_servers(cluster)
    for table in tables:
        cluster.admin.enable_table(table)


def restart_servers(cluster: Cluster) -> None:
    """All region servers are stopped before any is started."""
    stop_together(cluster.region_servers)
    cluster.start()


def clone(cluster: Cluster) -> None:
    """The state table is dropped, and its snapshot cloned under its name, before a tracker makes an empty one."""

    def cloned() -> bool:
        with contextlib.suppress(AdminError):  # a tracker that is making it at this moment
            cluster.admin.drop_table(STATE_TABLE)
            cluster.admin.clone_snapshot(f"nightly-{STATE_TABLE}", STATE_TABLE)
            return True
        return False

    wait_until(cloned, 120, "the state table has been cloned")


def lose_region(cluster: Cluster, row: str) -> None:
    """Of the state table the region that has a row is truncated."""
    regions = cluster.admin.regions(STATE_TABLE)
    lost = max((one for one in regions if one.start_key <= row.encode()), key=lambda one: one.start_key)
    cluster.admin.truncate_region(lost.name)


def is_written(pair: Pair, status: Path, table: str) -> bool:
    """Whether FILE is; it is refused as long as no tracker has noticed that rows are lost."""
    result = tool_here("run", "-m", "-o", status, "--only", "hbase", "--table", table, conf=pair.master)
    assert result.exit_code == 0 or "lost rows" in result.stderr, result
    return result.exit_code == 0


def by_rows(pair: Pair, status: Path, table: str) -> Result:
    """A check of one table that its rows settle, with a new FILE."""
    pair.write_master(status, "--table", table)
    return pair.check(status, "--table", table, "--rows", "--master-conf", str(pair.master.conf_dir), "--wait", "30")


@pytest.mark.parametrize(
    ("how", "restart"),
    [("restored", False), ("restored", True), ("cloned", False), ("truncated", False)],
)
def test_heads_that_are_lost(pair: Pair, status: Path, how: str, restart: bool) -> None:
    """Thirty entries wait in a queue when the master's state table goes back to a time before them."""
    master, table = pair.master.admin, f"{how}{int(restart)}"
    pair.create_filled(table, 10)
    pair.write_master(status)
    master.snapshot(f"nightly-{STATE_TABLE}", STATE_TABLE)
    master.disable_peer(PEER)
    master.put_rows(table, "f", 30, prefix="waiting")
    assert pair.verdict(status, table).exit_code == 1
    if how == "restored":
        if restart:
            wait_marked(pair.master)
        restore(pair.master, [STATE_TABLE], restart=restart)
    elif how == "cloned":
        clone(pair.master)
    else:
        lose_region(pair.master, f"h{master.regions(table)[0].encoded}")
    master.delete_snapshot(f"nightly-{STATE_TABLE}")
    wait_until(lambda: is_written(pair, status, table), 30, "the trackers have noticed")
    result = pair.check(status, "--table", table)
    assert result.exit_code in (1, 3), result
    assert "older-than-tracker" in result.codes, result  # coverage starts anew: nobody vouches for what was before
    master.enable_peer(PEER)
    pair.wait_same(table)
    result = by_rows(pair, status, table)
    assert result.exit_code == 0, result


def test_segments_that_are_lost(pair: Pair, status: Path) -> None:
    """What has arrived looks like a gap then, and is none: the slave's records are not whole, and rows decide."""
    pair.create_filled("segments", 10)
    assert pair.verdict(status, "segments", "--wait", "20").exit_code == 0
    lose_region(pair.slave, f"s{pair.master.admin.regions('segments')[0].encoded}")
    found = [pair.check(status, "--table", "segments")]
    while found[-1].exit_code == 2 and len(found) < 30:
        assert "lost rows" in found[-1].stderr, found
        time.sleep(1)
        found.append(pair.check(status, "--table", "segments"))
    assert (found[-1].exit_code, "slave-state-lost" in found[-1].codes) == (3, True), found
    result = by_rows(pair, status, "segments")
    assert result.exit_code == 0, result


def test_nightly_snapshots_restored_on_the_slave(pair: Pair, tmp_path: Path) -> None:
    """The state table's snapshot is the newest and says of the tables what their own do not contain.

    For a table it is the same whether it comes back before the state table, after it or not at all: each is asked for
    by itself.
    """
    order, slave = ("data", STATE_TABLE, "data2"), pair.slave.admin
    files = {table: tmp_path / table for table in ("data", "data2", "data3")}
    for name in files:
        pair.create_filled(name, 10)
        slave.snapshot(f"nightly-{name}", name)
        pair.master.admin.put_rows(name, "f", 30, prefix="later")
        pair.wait_same(name)
    for table, file in files.items():
        before = by_rows(pair, file, table)
        assert before.exit_code == 0, before
    slave.snapshot(f"nightly-{STATE_TABLE}", STATE_TABLE)
    wait_flushed(pair.slave)  # without a flush in between nothing that a tracker wrote would be lost
    restore(pair.slave, order)
    slave.delete_snapshot(f"nightly-{STATE_TABLE}")
    for table, file in files.items():
        result = pair.check(file, "--table", table)
        assert result.exit_code in (1, 3), result
        assert "slave-state-lost" in result.codes, result
    for table, file in files.items():
        result = by_rows(pair, file, table)
        assert result.exit_code == (1 if table in order else 0), result


def test_a_state_table_whose_rows_expire(pair: Pair, status: Path) -> None:
    """An administrator's TTL hides every head at once. It is refused while it lasts, and what was there is in doubt."""
    pair.create_filled("expired", 10)
    pair.master.admin.disable_peer(PEER)
    pair.master.admin.put_rows("expired", "f", 5, prefix="later")
    # Tests before this one may have taken the slave's state table back: then it is in doubt what lacks.
    lacking = pair.verdict(status, "expired")
    assert (lacking.exit_code in (1, 3), "older-than-tracker" in lacking.codes) == (True, False), lacking
    pair.master.admin.set_ttl(STATE_TABLE, "t", 86_400)
    try:
        refused = tool_here("run", "-m", "-o", status, "--only", "hbase", conf=pair.master)
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1), refused
        assert f"alter '{STATE_TABLE}', {{NAME => 't', TTL => 'FOREVER'}}" in refused.stderr
        time.sleep(FLUSH_S + 1)
    finally:
        pair.master.admin.set_ttl(STATE_TABLE, "t", 2**31 - 1)
    wait_until(lambda: is_written(pair, status, "expired"), 60, "the trackers have written what they know again")
    doubted = pair.check(status, "--table=expired")
    assert (doubted.exit_code in (1, 3), "older-than-tracker" in doubted.codes) == (True, True), doubted
    pair.master.admin.enable_peer(PEER)
    pair.wait_same("expired")
    rows = ("--rows", "--master-conf", str(pair.master.conf_dir))
    proven = pair.check(status, "--table=expired", "--wait", "60", *rows)
    assert (proven.exit_code, proven.json["hbase"]["evidence"]) == (0, "rows"), proven
