"""From no tracker to trackers by a rolling restart, in either order of the clusters: never complete too soon."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from status_tool.status_file.reader import open_status
from status_tool.vocabulary.header import SKEW_MS
from tests.cluster.conftest import in_turn, to_upgrade
from tests.cluster.test_verdicts import assert_complete
from tests.lab.cluster import Cluster
from tests.lab.process import RegionServer
from tests.lab.waiting import wait_until
from tests.pair import BOTH_TRACKERS, PEER, Pair, Result, move_table, serves_state, tool_here

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

LOOK_S = 10
"""How often a tracker looks which servers live: as exactly is known when the last one without a tracker had gone."""
SILENT = {**BOTH_TRACKERS, "hbase.replicationtable.digest.enabled": "false"}


@pytest.fixture(scope="module")
def bare(request: pytest.FixtureRequest, warm_spark: None, standing: contextlib.ExitStack) -> Iterator[Pair]:
    """Two clusters without trackers, one server each, that replicate to each other."""
    for _, pair in in_turn(request, standing, to_upgrade({})):
        pair.reversed().connect()
        yield pair
        pair.reversed().master.admin.remove_peer(PEER)


def restart(cluster: Cluster, server: RegionServer, site: Mapping[str, str]) -> None:
    """Restart one server with other settings."""
    cluster.reconfigure(server, site)
    server.stop()
    server.start()


def upgrade(cluster: Cluster, site: Mapping[str, str] = BOTH_TRACKERS) -> None:
    """Restart the one server that has no tracker with both."""
    restart(cluster, cluster.region_servers[0], site)
    wait_until(lambda: serves_state(cluster), 60, "a tracker has made the state table")


def let_age(cluster: Cluster, file: Path) -> None:
    """Wait until entries that arrive are later than a look that saw a server without the tracker, by whichever clock.

    On a fast machine no such look comes between the start of the first tracker and that of the last one.
    """
    written = tool_here("run", "-o", file, "--only", "hbase", conf=cluster)
    assert written.exit_code == 0, written
    with open_status(file) as status:
        header = status.header
    if header.coverage_ms and header.coverage_ms != header.state_since_ms:
        time.sleep(max(0.0, (header.coverage_ms + SKEW_MS) / 1000 + 1 - time.time()))


def refused(result: Result) -> str:
    """Why a run ended with exit code 2."""
    assert result.exit_code == 2, result
    return result.stderr


def details(result: Result, exit_code: int) -> str:
    """What the problems say."""
    assert result.exit_code == exit_code, result
    return json.dumps(result.json["problems"])


def test_trackers_come_one_server_after_another(bare: Pair, tmp_path: Path) -> None:
    """The slave of one direction first is the master of the other direction first."""
    there, back = bare, bare.reversed()
    files = {pair: tmp_path / f"{pair.master.name}.status" for pair in (there, back)}
    for pair in (there, back):
        table = f"old_{pair.master.name}"
        pair.create_filled(table, 10, [b"row00000005"])
        where = ("run", "-m", "-o", files[pair], "--only", "hbase")
        assert "no tracker has ever run" in refused(tool_here(*where, conf=pair.master))
    # Direction "there" gets its slave first, direction "back" its master first.
    upgrade(there.slave)
    for pair in (there, back):
        pair.master.admin.put_rows(f"old_{pair.master.name}", "f", 10, start=10)
        pair.wait_same(f"old_{pair.master.name}")
    back.write_master(files[back])
    assert "no tracker has ever run" in refused(back.check(files[back]))
    # Half of the other cluster, which gets a server more.
    there.master.add_region_server(BOTH_TRACKERS)
    wait_until(lambda: serves_state(there.master), 60, "a tracker has made the state table")
    there.write_master(files[there], "--wait", "3")
    assert "without the tracker" in details(there.check(files[there]), 3)
    # What a server with trackers does not digest is no part of these checks.
    upgrade(there.master, SILENT)
    time.sleep(LOOK_S + 2)
    let_age(there.master, tmp_path / "own.status")
    for pair in (there, back):
        old, new = f"old_{pair.master.name}", f"new_{pair.master.name}"
        pair.create_filled(new, 10)
        assert_complete(pair.verdict(files[pair], new, "--wait", "30"))
        pair.master.admin.put_rows(old, "f", 10, start=20)
        pair.wait_same(old)
        # Its master first: what was stamped already when nobody on the slave took note looks like a hole.
        reasons = details(pair.verdict(files[pair], old, "--wait", "5"), 3 if pair is there else 1)
        assert "older than the tracker" in reasons
        # What was compared once by other means is accepted; from then on everything is proven.
        with open_status(files[pair]) as file:
            since = str(file.header.cut_ms)
        assert_complete(pair.check(files[pair], "--table", old, "--since", since), "accepted")
    assert [peer.id for peer in there.master.admin.list_peers()] == [PEER]


def test_a_server_that_digests_nothing_is_named_and_has_a_way_out(
    bare: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one with trackers that know no digests, or other ones: it is silent. The other servers' rows do not help."""
    if not serves_state(bare.master):  # the test before this one did not run
        upgrade(bare.slave)
        bare.master.add_region_server(BOTH_TRACKERS)
        upgrade(bare.master, SILENT)
    old = bare.master.region_servers[0]
    tables = [f"silent{number}" for number in range(5)]
    for table in tables:
        bare.create_table(table, {"f": 1}, [b"row00000005"])
        bare.master.admin.put_rows(table, "f", 10)
    bare.wait_same(tables[-1])
    move_table(bare.master, tables[0], old.server_name)
    options = ("--table", tables[0], "--master-conf", str(bare.master.conf_dir))
    with monkeypatch.context() as patch:
        # The others answer sooner, too. How long a user's run waits is in `test_silent_servers.py`.
        patch.setattr("status_tool.digests.requests.SILENT_S", 10.0)
        alone = tool_here("rows", *options, "--json", conf=bare.slave)
    assert alone.exit_code == 3, alone
    assert f"{old.server_name} does not answer: a tracker of this version" in str(alone.json)
    file = tmp_path / "silent.status"
    bare.write_master(file)
    rows = ("--rows=all", "--master-conf", str(bare.master.conf_dir), *(f"--table={table}" for table in tables))
    reasons = details(bare.check(file, *rows), 3)
    assert f"{old.server_name} does not answer" in reasons
    restart(bare.master, old, BOTH_TRACKERS)
    mended = tool_here("rows", *options, conf=bare.slave)
    assert mended.exit_code == 0, mended
