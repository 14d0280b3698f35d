"""Losses that runs once called complete: no stream shows them, nor what the trackers of the contract once recorded.

With the WAL provider `multiwal`: first, that it changes nothing else.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import happybase
import pytest

from status_tool.sources.codec import server_key
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.ids import origin_id
from status_tool.vocabulary.state_rows import REPLICATOR
from tests.cluster.test_content import is_open
from tests.cluster.test_versions import complete_then_gap
from tests.lab.process import RegionServer
from tests.lab.waiting import wait_until
from tests.pair import PEER, STATE_TABLE, Pair, Result, move_table

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

LOADS = "hbase.replication.bulkload.enabled"


def asked(pair: Pair, status: Path, table: str) -> Result:
    """The verdict once everything has been shipped."""
    pair.write_master(status, "--table", table, "--wait", "90", "--drained")
    return pair.check(status, "--table", table, "--wait", "20")


def born_on(pair: Pair, server: str, name: str, families: dict[str, int]) -> str:
    """Return a table whose only region was opened on this server first."""
    for number in range(12):
        pair.create_table(f"{name}{number}", families)
        (region,) = pair.master.admin.regions(f"{name}{number}")
        if region.server == server:
            return f"{name}{number}"
    raise AssertionError("no table was opened there")


def test_complete_then_gap(pair: Pair, status: Path) -> None:
    """The first test: a peer that is added again leaves servers of the master that were killed in doubt."""
    complete_then_gap(pair, status)


@dataclass(frozen=True)
class Early:
    """What has to lie back for a while; other tests run meanwhile."""

    unlogged: str
    """A table of the master that a server without WALs opened first."""
    settled_s: float
    """When clocks cannot differ by so much any more."""


@pytest.fixture(scope="module")
def early(pair: Pair) -> Early:
    """Tables of which the last tests ask, and a snapshot of an empty one."""
    slave = pair.slave.admin
    slave.create_table("template", {"f": 1})
    slave.snapshot("schema", "template")
    pair.create_table("reset", {"f": 1})
    other = pair.master.add_region_server({"hbase.regionserver.hlog.enabled": "false"})
    table = born_on(pair, other.server_name, "unlogged", {"f": 1})
    pair.master.admin.put_rows(table, "f", 20)
    pair.master.admin.flush(table)
    time.sleep(5)  # the trackers look for servers every two seconds
    other.stop()
    wait_until(partial(is_open, pair.master, table), 60, "it is open elsewhere")
    pair.master.admin.put_rows(table, "f", 5, prefix="later")
    wait_until(lambda: len(pair.slave.admin.rows(table)) == 5, 60, "later rows arrive")
    return Early(table, time.time() + 2 * SKEW_MS / 1000 + 5)


@pytest.fixture(scope="module")
def other(pair: Pair, early: Early) -> RegionServer:
    """A server of the master that does not replicate bulk loads, younger than the peer; a later test kills it."""
    return pair.master.add_region_server({LOADS: "false"})


def test_a_bulk_load_on_a_server_that_does_not_replicate_them(pair: Pair, other: RegionServer, status: Path) -> None:
    """One server's site lacks the setting, or did: the load is in no queue, and none is left to be shipped."""
    pair.create_table("loads", {"f": 1})
    pair.master.admin.put_rows("loads", "f", 5)
    move_table(pair.master, "loads", other.server_name)
    pair.master.admin.bulk_load("loads", "f", 20, prefix="bulk")
    pair.master.admin.put_rows("loads", "f", 5, prefix="last")
    wait_until(lambda: len(pair.slave.admin.rows("loads")) >= 10, 60, "what is written arrives")
    time.sleep(5)
    assert len(pair.slave.admin.rows("loads")) == 10
    result = asked(pair, status, "loads")
    assert (result.exit_code, result.codes) == (3, {"bulkload"}), result
    assert all(LOADS in problem["detail"] for problem in result.json["problems"]), result


def test_a_barrier_that_an_earlier_one_hides(pair: Pair, status: Path) -> None:
    """The server of the barrier's row had a clock 20 s ahead, and the table's region has moved to another one."""
    pair.create_filled("clocks", 5)
    assert asked(pair, status, "clocks").exit_code == 0
    with contextlib.closing(happybase.Connection("127.0.0.1", pair.master.thrift_port)) as client:
        table = client.table(STATE_TABLE)
        cells = table.row(b"b")
        # As a server whose clock is ahead would have stored it.
        table.put(b"b", cells, timestamp=int(time.time() * 1000) + 20_000)
    pair.master.admin.disable_peer(PEER)
    try:
        pair.write_master(status, "--table", "clocks", "--wait", "30")
        pair.master.admin.put_rows("clocks", "f", 20, prefix="late")
        pair.write_master(status, "--table", "clocks")
        result = pair.check(status, "--table", "clocks")
        assert (result.exit_code, result.codes) == (1, {"behind"}), result
    finally:
        pair.master.admin.enable_peer(PEER)


def test_scopes_that_are_raised_while_their_server_has_crashed(pair: Pair, other: RegionServer, status: Path) -> None:
    """The only server that knew them before is gone. One table is never disabled; one is, and asked for meanwhile."""
    admin = pair.master.admin
    table, asleep = (born_on(pair, other.server_name, name, {"f": 1, "l": 0}) for name in ("scope", "asleep"))
    for one in (table, asleep):
        admin.put_rows(one, "f", 5)
        admin.put_rows(one, "l", 20, prefix="old")
        pair.wait_same(one, ["f"])
        assert asked(pair, status, one).exit_code == 0
    admin.disable_table(asleep)
    admin.set_scope(asleep, "l", 1)
    result = asked(pair, status, asleep)
    assert (result.exit_code, result.codes) == (3, {"content-changed"}), result
    other.kill9()
    raising = threading.Thread(target=partial(admin.set_scope, table, "l", 1))
    raising.start()
    time.sleep(2)
    pair.master._delete_znodes(f"rs/{other.server_name}")
    raising.join(120)
    wait_until(partial(is_open, pair.master, table), 60, "it is open again")
    admin.enable_table(asleep)
    for one in (table, asleep):
        admin.put_rows(one, "l", 5, prefix="new")
    for one in (table, asleep):
        wait_until(partial(lambda name: b"new00000004" in pair.slave.admin.rows(name), one), 60, "new rows arrive")
        time.sleep(3)
        assert not pair.same(one)
        result = asked(pair, status, one)
        assert (result.exit_code, result.codes) == (3, {"content-changed"}), result


def test_a_table_that_is_altered_without_opening_its_regions_anew(pair: Pair, status: Path) -> None:
    """Descriptors say one thing, and open regions do another: a scope on the master, a TTL on the slave."""
    admin, slave = pair.master.admin, pair.slave.admin
    for table in ("lazy", "brief"):
        pair.create_table(table, {"f": 1, "l": 0})
        admin.put_rows(table, "f", 5)
        pair.wait_same(table, ["f"])
    slave.set_ttl("brief", "f", 3_600)
    slave.set_ttl("brief", "f", 2**31 - 1, reopen=False)
    admin.set_scope("lazy", "l", 1, reopen=False)
    admin.put_rows("lazy", "l", 5)
    pair.write_master(status, "--table", "lazy", "--table", "brief", "--wait", "90", "--drained")
    result = pair.check(status, "--table", "lazy", "--table", "brief", "--wait", "20")
    found = {(problem["table"], problem["code"]) for problem in result.json["problems"]}
    assert (result.exit_code, found) == (3, {("lazy", "content-changed"), ("brief", "slave-changed")}), result
    assert not slave.rows("lazy")[5:]


def test_a_server_of_the_master_without_write_ahead_logs(pair: Pair, early: Early, status: Path) -> None:
    """Its WAL folder is empty all its life, so that it looks like one that has never written."""
    wait_until(lambda: time.time() > early.settled_s, 120, "its end lies back")
    result = asked(pair, status, early.unlogged)
    assert (result.exit_code, result.codes) == (3, {"content-changed"}), result


def test_a_table_of_the_slave_that_is_made_anew_from_an_older_template(pair: Pair, early: Early, status: Path) -> None:
    """Its regions have the template's creation time, from before the first entry: it is no birth, and new to all."""
    slave = pair.slave.admin
    pair.master.admin.put_rows("reset", "f", 30)
    pair.wait_same("reset")
    assert asked(pair, status, "reset").exit_code == 0
    slave.drop_table("reset")
    slave.clone_snapshot("schema", "reset")
    pair.master.admin.put_rows("reset", "f", 5, prefix="later")
    wait_until(lambda: len(slave.rows("reset")) == 5, 60, "later rows arrive")
    time.sleep(2)  # the trackers look at the regions once a poll
    result = asked(pair, status, "reset")
    assert (result.exit_code, result.codes) == (3, {"slave-changed"}), result


def test_a_server_of_the_slave_without_write_ahead_logs(pair: Pair, status: Path) -> None:
    """What it had applied is gone with it, while the region's next tenure follows the one before it.

    The last test: such a server counts until its time is accepted. Other modules use the pair, so its row is removed.
    """
    table = "volatile"
    pair.create_filled(table, 5)
    other = pair.slave.add_region_server({"hbase.regionserver.hlog.enabled": "false"})
    row = server_key(origin_id(other.server_name), REPLICATOR)
    move_table(pair.slave, table, other.server_name)
    pair.master.admin.put_rows(table, "f", 20, prefix="lost")
    pair.wait_same(table)
    time.sleep(3)
    pair.slave.crash(other)
    wait_until(partial(is_open, pair.slave, table), 60, "it is open elsewhere")
    assert len(pair.slave.admin.rows(table)) == 5
    result = asked(pair, status, table)
    assert (result.exit_code, result.codes) == (3, {"own-code"}), result
    with contextlib.closing(happybase.Connection("127.0.0.1", pair.slave.thrift_port)) as client:
        client.table(STATE_TABLE).delete(row)
