"""Trackers on both sides and a witness beside them: one run asks both."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import happybase
import pytest

from status_tool.clients.config import parse_zookeeper
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.rules.queue_proofs import start_code
from status_tool.status_file.reader import open_status
from status_tool.vocabulary.header import SKEW_MS
from status_tool.vocabulary.ids import as_hex, origin_id
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.lab.waiting import wait_until
from tests.pair import STATE_TABLE, Pair, Result, tool_here
from tests.witness import WITNESS_PEER, ZNODE, Witness, end_quietly, wait_covered_soon

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
ASKED = "a witness was asked beside the trackers"


@pytest.fixture(scope="module")
def pair(upgraded: tuple[Lab, Pair], tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Two region servers replicate to one that records each entry, and to a witness."""
    _, pair = upgraded
    renew_servers(pair, tmp_path_factory.mktemp("slave") / "slave.status")
    return pair


def renew_servers(pair: Pair, file: Path) -> None:
    """Restart the master's servers that are about as old as its peer, or as the slave's state table.

    The queues settle no crash of such a server: what it wrote at first the peer may not have shipped, or to another
    slave. After `test_upgrade` none is.
    """
    written = tool_here("run", "-o", file, "--only", "hbase", conf=pair.slave)
    assert written.exit_code == 0, written
    with open_status(file) as status, ZooKeeper(parse_zookeeper(pair.master.zookeeper)) as session:
        known_ms = max(status.header.state_since_ms or 0, *(peer.modified_ms or 0 for peer in session.peers()))
    young_ms = known_ms + SKEW_MS + 1_000
    for server in pair.master.region_servers:
        if (start_code(server.server_name) or 0) <= young_ms:
            time.sleep(max(0.0, young_ms / 1000 - time.time()))
            server.stop()
            server.start()


@pytest.fixture(scope="module")
def witness(upgraded: tuple[Lab, Pair], ports: Ports, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    """Peer of the master: each new table is younger."""
    lab, pair = upgraded
    witness = Witness(lab, tmp_path_factory.mktemp("witness") / "one", ports.take())
    try:
        witness.start()
        pair.master.admin.add_peer(WITNESS_PEER, f"127.0.0.1:{lab.zk_port}:{ZNODE}")
        with pytest.MonkeyPatch.context() as patch:
            wait_covered_soon(pair.master, patch)
            yield witness
    finally:
        end_quietly(witness.process)


def checked(pair: Pair, witness: Witness, file: Path, table: str, *options: str | Path) -> Result:
    """FILE from both, and the check of a table."""
    pair.write_master(file, "--witness", witness.address)
    result = pair.check(file, "--table", table, *options)
    assert result.exit_code == 2 or any(ASKED in notice for notice in result.json["notices"]), result
    return result


def test_both_agree_under_load_and_after_crashes(pair: Pair, witness: Witness, status: Path) -> None:
    """FILE is from the trackers, with a notice that the witness agrees; what either was read later is no contradiction.

    No witness could be asked with trackers of before: their entries were missing to it.
    """
    pair.create_table("loaded", {"f": 1, "g": 1, "l": 0}, [b"load00000200", b"load00000400"])
    loads = [pair.master.admin.load_start("loaded", family, rate_per_s=20) for family in "fg"]
    wait_until(lambda: all(pair.master.admin.load_count(load) > 60 for load in loads), 60, "load")
    looked = [checked(pair, witness, status, "loaded") for _ in range(2)]
    pair.master.crash(pair.master.region_servers[0])
    witness.end(signal.SIGKILL)
    witness.start()
    wait_until(lambda: len(pair.master.admin.live_servers()) == 1, 120, "the master has noticed")
    looked.append(checked(pair, witness, status, "loaded"))
    for load in loads:
        pair.master.admin.load_stop(load)
    pair.slave.crash(pair.slave.region_servers[0])
    pair.slave.region_servers[0].start()
    pair.wait_same("loaded", ["f", "g"])
    assert not [words for result in looked for words in result.contradictions]

    def ends_complete() -> bool:
        result = checked(pair, witness, status, "loaded", "--wait", "30")
        assert not result.contradictions, result
        return result.exit_code == 0 and result.json["hbase"]["evidence"] == "exact"

    wait_until(ends_complete, 180, "the queues have settled the crash")


def test_an_error_of_the_tool_is_told_and_rows_settle_it(pair: Pair, witness: Witness, status: Path) -> None:
    """Made by hand: the slave's records of single entries are deleted, those by stamps are not."""
    pair.create_table("torn", {"f": 1})
    for number in range(5):
        pair.master.admin.put_rows("torn", "f", 1, start=number)
    assert checked(pair, witness, status, "torn", "--wait", "30").exit_code == 0
    (region,) = pair.master.admin.regions("torn")
    with ZooKeeper(parse_zookeeper(pair.master.zookeeper)) as session:
        origin = as_hex(origin_id(session.cluster_id()))
    connection = happybase.Connection("127.0.0.1", pair.slave.thrift_port)
    state = connection.table(STATE_TABLE)
    (key,) = [key for key, _ in state.scan(row_prefix=f"s{region.encoded}{origin}".encode())]
    state.delete(key)
    connection.close()
    result = checked(pair, witness, status, "torn", "--wait", "5")
    assert result.exit_code == 3, result
    (words,) = result.contradictions
    assert "by the trackers all entries" in words
    assert "the slave has no record of any after 0 up to" in words
    (problem,) = result.json["problems"]
    assert problem["region"] == region.encoded
    rows = pair.check(status, "--table", "torn", "--rows", "--master-conf", pair.master.conf_dir)
    assert (rows.exit_code, rows.json["hbase"]["evidence"]) == (0, "rows"), rows


def test_a_loss_is_a_gap_by_both(pair: Pair, witness: Witness, status: Path) -> None:
    """And no contradiction. The last test: a peer that is added again leaves servers that were killed in doubt."""
    pair.create_table("holed", {"f": 1})
    pair.master.admin.put_rows("holed", "f", 5)
    pair.lose("holed")
    result = checked(pair, witness, status, "holed", "--wait", "3")
    assert (result.exit_code, result.contradictions) == (1, []), result
    assert "gap" in {problem["kind"] for problem in result.json["problems"]}
