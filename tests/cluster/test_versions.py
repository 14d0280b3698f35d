"""The same jar on HBase 2.5, with the WAL provider `filesystem`; each side has the tracker it needs, and no other."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cluster.test_upgrade import LOOK_S
from tests.cluster.test_verdicts import assert_complete
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.lab.waiting import wait_until
from tests.pair import (
    PEER,
    REPLICATE_TRACKER,
    WAL_TRACKER,
    Pair,
    serves_state,
    start_pair,
    tool_here,
    tracked_spec,
    wait_lasting,
)
from tests.witness import WITNESS_PEER, ZNODE, Witness, assert_witnessed, end_quietly, wait_covered_soon, write_from

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def complete_then_gap(pair: Pair, status: Path) -> None:
    """Complete under load, then a caught loss."""
    pair.create_table("t", {"f": 1, "l": 0}, [b"load00000100", b"load00000200"])
    loads = [pair.master.admin.load_start("t", family, 100) for family in "fl"]
    admin = pair.master.admin
    wait_until(lambda: all(admin.load_count(load) > 250 for load in loads), 120, "both have written")
    for load in loads:
        admin.load_stop(load)
    assert_complete(pair.verdict(status, "t", "--wait", "90"))
    assert pair.same("t", ["f"])
    found = tool_here("topology", "--json", "--peer-conf", pair.slave.conf_dir, conf=pair.master)
    assert (found.exit_code, found.json["shape"], found.json["unchecked"]) == (0, "master-slave", []), found
    pair.wait_drained(30)
    pair.master.admin.disable_peer(PEER)
    pair.master.admin.put_rows("t", "f", 5, prefix="held")
    waiting = tool_here("queues", "--json", conf=pair.master)
    assert (waiting.exit_code, waiting.json["totals"]["left_bytes"] > 0) == (1, True), waiting
    pair.master.admin.enable_peer(PEER)
    pair.wait_drained(30)
    pair.master.admin.remove_peer(PEER)
    pair.master.admin.put_rows("t", "f", 5, prefix="lost")
    pair.master.admin.roll_wal()
    pair.connect()
    pair.master.admin.put_rows("t", "f", 5, prefix="lot")
    wait_until(lambda: b"lot00000004" in pair.slave.admin.rows("t"), 60, "the later rows have arrived")
    wait_lasting()
    result = pair.verdict(status, "t")
    assert (result.exit_code, result.json["hbase"]["regions"]["gap"]) == (1, 1), result


def _a_restored_snapshot_is_named(pair: Pair, status: Path) -> None:
    pair.create_filled("restored", 5)
    pair.master.admin.snapshot("before", "restored")
    pair.master.admin.put_rows("restored", "f", 5, prefix="later")
    pair.wait_same("restored")
    assert_complete(pair.verdict(status, "restored", "--wait", "90"))
    pair.master.admin.restore_snapshot("before", "restored")
    result = pair.verdict(status, "restored")
    assert result.exit_code == 3, result
    details = [problem["detail"] for problem in result.json["problems"] if problem["table"] == "restored"]
    assert any("content changed: at" in detail for detail in details), result


def _what_no_stream_tells_is_seen(pair: Pair, status: Path) -> None:
    """A family that is replicated only now, mutations that bypass the WAL, and a slave's table that kept less: what the
    trackers of the contract see, with `WriteTimeTracker` alone on the master and `ReplicateTimeTracker` on the slave.
    """
    for table in ("raised", "bypassed", "less"):
        pair.create_table(table, {"f": 1, "l": 0})
        for family in "fl":
            pair.master.admin.put_rows(table, family, 5)
        pair.wait_same(table, ["f"])
    chosen = ("--table=raised", "--table=bypassed", "--table=less")
    time.sleep(2)  # the trackers look at the regions once a poll
    pair.write_master(status, *chosen)
    assert_complete(pair.check(status, *chosen, "--wait", "60"))
    pair.master.admin.set_scope("raised", "l", 1)
    pair.master.admin.put_rows("raised", "l", 5, prefix="new")
    pair.master.admin.put_rows("bypassed", "f", 5, prefix="skipped", durability="SKIP_WAL")
    for seconds in (3_600, 2**31 - 1):
        pair.slave.admin.set_ttl("less", "f", seconds)
        time.sleep(2)
    pair.write_master(status, *chosen)
    result = pair.check(status, *chosen, "--wait", "60")
    codes = {(problem["table"], problem["code"]) for problem in result.json["problems"]}
    wanted = {("raised", "scope-raised"), ("raised", "content-changed"), ("bypassed", "skipped-wal")}
    assert (result.exit_code, codes) == (3, wanted | {("less", "slave-changed")}), result
    rows = ("--rows", "--master-conf", str(pair.master.conf_dir))
    assert_complete(pair.check(status, "--table=less", "--wait", "60", *rows), "rows")


def test_hbase_2_5(tmp_path: Path, warm_spark: None) -> None:
    """By a witness first, then by trackers, which the master gets by a restart: complete, then a loss.

    Master, slave and witness are of HBase 2.5.8. Complete and a loss with `multiwal` are in `test_hidden_losses.py`.
    """
    site = {"hbase.wal.provider": "filesystem"}
    single = {**site, "hbase.replicationtable.unstamped.entries": "true"}
    with Lab(hbase_version="2.5.8") as lab:
        slave = tracked_spec("slave", region_servers=1, trackers=REPLICATE_TRACKER, site=single)
        pair = start_pair(lab, tracked_spec("master", region_servers=1, trackers={}, site=site), slave)
        with pytest.MonkeyPatch.context() as patch:
            _by_a_witness(lab, pair, tmp_path, patch)
        (server,) = pair.master.region_servers
        pair.master.reconfigure(server, WAL_TRACKER)
        server.stop()
        server.start()
        wait_until(lambda: serves_state(pair.master), 60, "a tracker has made the state table")
        time.sleep(LOOK_S + 2)
        status = tmp_path / "master.status"
        complete_then_gap(pair, status)
        _a_restored_snapshot_is_named(pair, status)
        _what_no_stream_tells_is_seen(pair, status)


def _by_a_witness(lab: Lab, pair: Pair, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Complete by nothing else, as the master has no tracker, then a loss."""
    ports, file, table = Ports(), folder / "f", "seen"
    witness = Witness(lab, folder / "one", ports.take())
    try:
        witness.start()
        pair.master.admin.add_peer(WITNESS_PEER, f"127.0.0.1:{lab.zk_port}:{ZNODE}")
        wait_covered_soon(pair.master, patch)
        pair.create_table(table, {"f": 1, "l": 0})
        for number in range(5):
            pair.master.admin.put_rows(table, "f", 2, start=2 * number)
            pair.master.admin.put_rows(table, "l", 1, start=number)
        for place in (witness.address, witness.store):
            assert write_from(pair, [place], file).exit_code == 0
            assert_witnessed(pair.check(file, "--table", table, "--wait", "30"))
        pair.lose(table)
        assert write_from(pair, [witness.address], file).exit_code == 0
        holed = pair.check(file, "--table", table, "--wait", "3")
        assert (holed.exit_code, holed.json["hbase"]["regions"]["gap"]) == (1, 1), holed
        pair.master.admin.remove_peer(WITNESS_PEER)
    finally:
        end_quietly(witness.process)
        ports.release()
