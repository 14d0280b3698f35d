"""What changes beside the WAL on real clusters, and an ordinary week: the content ledger names the first alone.

The master has `WriteTimeTracker` alone and the slave `ReplicateTimeTracker` alone, as the contract allows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster, stop_together
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import PEER, REPLICATE_TRACKER, WAL_TRACKER, Pair, Result, start_pair, tracked_spec

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SITE = {
    "hbase.replicationtable.updateperiod": "20000",
    "hbase.replication.bulkload.enabled": "true",
}
"""As in production: what does not wait for the period must not be lost; bulk loads are replicated."""
SINGLE = {"hbase.wal.provider": "multiwal", "hbase.wal.regiongrouping.strategy": "identity"}
"""A write-ahead log for each region: beside them, a live server's queue has one of a group without a name."""
SOON = {"hbase.replicationtable.sweep": "5000"}
"""For the one test that waits for a tracker to look which servers live; a minute by default."""


@pytest.fixture(scope="module")
def pair(warm_spark: None) -> Iterator[Pair]:
    """Each side has only what the contract asks for."""
    with Lab() as lab:
        slave = tracked_spec("slave", trackers=REPLICATE_TRACKER, site={**SITE, **SOON})
        yield start_pair(lab, tracked_spec("master", trackers=WAL_TRACKER, site={**SITE, **SINGLE}), slave)


def named(result: Result) -> dict[str, str]:
    """By table, the details of its problems."""
    reasons: dict[str, str] = {}
    for problem in result.json["problems"]:
        table = problem["table"] or ""
        reasons[table] = f"{reasons.get(table, '')} {problem['detail']}"
    return reasons


def advised_since(result: Result) -> dict[str, int]:
    """By table, the `--since` that the advice names."""
    advice = " ".join(problem["advice"] or "" for problem in result.json["problems"])
    return {table: int(moment) for table, moment in re.findall(r"--since (\w+)=(\d+)", advice)}


def is_open(cluster: Cluster, table: str) -> bool:
    """Whether every region of the table is on a server."""
    return all(region.server for region in cluster.admin.regions(table))


def has_others(cluster: Cluster, table: str, regions: set[str]) -> bool:
    """Whether none of these regions of a table is left."""
    return not {one.encoded for one in cluster.admin.regions(table)} & regions


def tables(*names: str) -> list[str]:
    """As options."""
    return [f"--table={name}" for name in names]


def test_a_client_of_the_slave_that_deletes_what_had_arrived(pair: Pair, status: Path) -> None:
    """No stream shows it: the rows do. Replication's own writes are no news; deletes are told apart from puts."""
    pair.create_filled("others", 10)
    pair.write_master(status, "--table=others")

    def checked(*options: str) -> Result:
        return pair.check(status, "--table=others", "--wait", "60", *options)

    def told(result: Result) -> str:
        return " ".join(notice for notice in result.json["notices"] if "by others than this master" in notice)

    before = checked()
    assert (before.exit_code, told(before)) == (0, ""), before
    pair.slave.admin.put_rows("others", "f", 1, prefix="own")
    accepted = checked("--accept-drift=others")
    assert accepted.exit_code == 0, accepted
    assert re.search(r"others \(last [^),]*; by its own clients\)", told(accepted)), accepted
    pair.slave.admin.delete_rows("others", 1)
    doubted = checked()
    codes = [problem["code"] for problem in doubted.json["problems"]]
    assert (doubted.exit_code, codes) == (3, ["slave-written"]), doubted
    assert "deletes among them" in told(doubted)
    rows = ("--rows", "--master-conf", str(pair.master.conf_dir))
    assert checked(*rows).exit_code == 1
    pair.slave.admin.delete_rows("others", 1, prefix="own")
    pair.master.admin.put_rows("others", "f", 1)
    pair.wait_same("others")
    pair.write_master(status, "--table=others")
    proven = checked(*rows)
    assert (proven.exit_code, proven.json["hbase"]["evidence"]) == (0, "rows"), proven
    assert checked().exit_code == 0, "what was compared is known"
    pair.slave.admin.put_rows("others", "f", 1)
    assert checked().exit_code == 3, "what came later is not"


def test_what_changes_beside_the_wal_is_named_until_it_is_accepted(pair: Pair, status: Path) -> None:
    """Snapshots restored and cloned, regions and tables truncated, on either side: each is named, and accepted."""
    master, slave = pair.master.admin, pair.slave.admin
    changed = ("restored", "cut", "backwards", "again", "slavecut")
    for table in ("quiet", "halves", "source", *changed):
        pair.create_table(table, {"f": 1})
        master.put_rows(table, "f", 20)
    for table in ("quiet", "halves", "source", *changed):
        pair.wait_same(table)
    master.snapshot("m1", "restored")
    master.snapshot("m2", "source")
    for table in ("backwards", "again"):
        slave.snapshot(f"s-{table}", table)
    for table in ("restored", "backwards", "again", "quiet"):
        master.put_rows(table, "f", 10, prefix="later")
        pair.wait_same(table)
    master.split(master.regions("halves")[0].encoded, b"row00000010")
    before = pair.verdict(status, "restored", "--wait", "60")
    assert before.exit_code == 0, before
    time.sleep(1)
    master.restore_snapshot("m1", "restored")
    slave.create_table("cloned", {"f": 1})
    master.clone_snapshot("m2", "cloned")
    master.truncate_region(master.regions("cut")[0].name)
    master.truncate_table("halves")
    slave.restore_snapshot("s-backwards", "backwards")
    slave.drop_table("again")
    slave.clone_snapshot("s-again", "again")
    slave.truncate_region(slave.regions("slavecut")[0].name)
    # Sooner after its opening than clocks may differ by: the times of the openings do not tell which came first.
    pair.create_filled("young", 20)
    master.truncate_region(master.regions("young")[0].name)
    master.put_rows("cut", "f", 5, prefix="anew")
    wait_until(lambda: len(slave.rows("cut")) == 25, 60, "a truncated region is replicated on")
    chosen = tables("quiet", "halves", "cloned", "young", *changed)
    pair.write_master(status, *chosen, "--wait", "60")
    result = pair.check(status, *chosen, "--wait", "20")
    reasons = named(result)
    assert result.exit_code == 3, result
    for table in ("restored", "cut", "cloned", "young"):
        assert "content changed: at" in reasons.pop(table, ""), (table, result)
    for table in ("backwards", "again", "slavecut"):
        assert "content changed on the slave" in reasons.pop(table, ""), (table, result)
    assert "truncated" in reasons.pop("halves"), result
    assert reasons == {}, result
    # What "truncated" asks to be accepted is all that was written before; --since may not lie after FILE's cut.
    since = {**advised_since(result), "halves": int(time.time() * 1000)}
    assert since.keys() == {*changed, "cloned", "young", "halves"}, result
    pair.write_master(status, *chosen, "--wait", "60")
    options = {table: f"--since={table}={moment}" for table, moment in since.items()}
    # What was written is accepted at once, what has happened to the slave's tables only anew.
    emptied = {"backwards", "again", "slavecut"}
    assert named(pair.check(status, *chosen, *options.values())).keys() == emptied
    accepted = pair.check(status, *chosen, *options.values(), *(f"--forget={table}" for table in emptied))
    assert accepted.exit_code == 0, accepted
    assert any(notice.startswith("recorded: ") for notice in accepted.json["notices"]), accepted
    kept = pair.check(status, *chosen)
    assert (kept.exit_code, kept.json["hbase"]["evidence"]) == (0, "accepted"), kept
    assert set(kept.json["hbase"]["accepted_tables"]) == since.keys(), kept
    assert named(pair.check(status, *chosen, "--forget=restored")).keys() == {"restored"}
    assert named(pair.check(status, *chosen, "--forget=quiet")).keys() == {"restored"}
    slave.truncate_table("again")
    for repeated in ((), (options["again"],)):
        broken = pair.check(status, "--table=again", *repeated)
        assert "emptied" in named(broken)["again"], broken
        assert "--forget again --since again=" in broken.json["problems"][0]["advice"], broken
    anew = pair.check(status, "--table=again", options["again"], "--forget=again")
    assert anew.exit_code == 0, anew
    compared = pair.check(status, "--table=again", "--rows", "--master-conf", str(pair.master.conf_dir))
    assert compared.exit_code == 1, compared


def test_an_ordinary_week_raises_no_alarm(pair: Pair, status: Path) -> None:
    """Moves, splits, merges, compactions, new families, bulk loads, a restart, a crash of either side: complete."""
    pair.let_peer_age()  # loads into a table that is older than its peer are not known to have been shipped
    pair.create_table("week", {"f": 1, "old": 1}, [b"row00000050", b"row00000090"])
    master, slave = pair.master.admin, pair.slave.admin

    def moved(start: int) -> None:
        """Every region goes to another server, is written to, and flushed."""
        for admin in (master, slave):
            for region in admin.regions("week"):
                admin.move(region.encoded, next(s for s in admin.live_servers() if s != region.server))
        master.put_rows("week", "f", 60, start=start)
        pair.wait_same("week")
        for admin in (master, slave):
            admin.flush("week")

    moved(0)
    # Not when regions are back: a server that had one before would go on telling clients for two minutes where it moved
    # it then, and the sink's, which knows of a later place, would neither believe that nor ask anew.
    for admin in (master, slave):
        admin.merge(*(region.encoded for region in admin.regions("week")[1:]))
        admin.major_compact("week")
        admin.split(admin.regions("week")[0].encoded, b"row00000030")
    moved(60)
    moved(120)  # back
    master.add_family("week", "new", 1)
    slave.add_family("week", "new", 1)
    master.drop_family("week", "old")
    master.put_rows("week", "new", 10)
    master.bulk_load("week", "f", 10, prefix="bulk")
    pair.wait_same("week", ["f", "new"])
    stopped = pair.master.region_servers[1]
    stopped.stop()
    stopped.start()
    pair.slave.crash(pair.slave.region_servers[0])
    pair.slave.region_servers[0].start()
    master.put_rows("week", "f", 10, prefix="later")
    pair.wait_same("week", ["f", "new"])
    pair.master.crash(pair.master.region_servers[0])
    pair.master.region_servers[0].start()
    master.put_rows("week", "f", 10, prefix="last")
    pair.wait_same("week", ["f", "new"])
    for cluster in (pair.master, pair.slave):
        wait_until(partial(is_open, cluster, "week"), 60, "all regions are open")
    pair.wait_drained(240)
    pair.write_master(status, "--table", "week", "--wait", "240", "--drained")
    result = pair.check(status, "--table", "week", "--wait", "90")
    assert (result.exit_code, result.json["problems"]) == (0, []), result


def test_a_region_that_is_merged_before_it_knows_of_a_raised_scope(pair: Pair, status: Path) -> None:
    """Altered without reopening, it writes what is never replicated; merged, it never opens with the new descriptor.

    The other region has opened with it, on a server that never had one of before, so that no server sees the change.
    """
    admin, table = pair.master.admin, "merged"
    pair.create_table(table, {"f": 1, "l": 0})
    admin.put_rows(table, "f", 10)
    (whole,) = admin.regions(table)
    other = next(server for server in admin.live_servers() if server != whole.server)
    admin.split(whole.encoded, b"row00000005")
    admin.set_scope(table, "l", 1, reopen=False)
    early, late = admin.regions(table)
    admin.move(early.encoded, other)
    wait_until(lambda: admin.regions(table)[0].server == other, 60, "its first region has moved")
    admin.put_rows(table, "l", 5, start=5)
    pair.wait_same(table, ["f"])
    unmerged = pair.verdict(status, table, "--wait", "20")
    assert (unmerged.exit_code, unmerged.codes) == (3, {"content-changed"}), unmerged
    admin.merge(early.encoded, late.encoded)
    assert [region.server for region in admin.regions(table)] == [other]
    merged = pair.verdict(status, table, "--wait", "20")
    assert (merged.exit_code, merged.codes) == (3, {"content-changed"}), merged


@pytest.fixture(scope="module")
def forgotten(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tables of the slave that changed for a while: a family was dropped, cells expired under a TTL that is longer now.

    Its servers are restarted in between, so that no memory of theirs tells.
    """
    master, slave = pair.master.admin, pair.slave.admin
    families = {"families": "fg", "brief": "f", "longer": "f"}
    for table, names in families.items():
        pair.create_table(table, dict.fromkeys(names, 1))
        for family in names:
            master.put_rows(table, family, 40)
        pair.wait_same(table)
    before_file = tmp_path_factory.mktemp("forgotten") / "master.status"
    pair.write_master(before_file, *tables(*families))
    before = pair.check(before_file, *tables(*families), "--wait", "60")
    assert before.exit_code == 0, before
    slave.set_ttl("longer", "f", 1 << 30)
    slave.set_ttl("brief", "f", 1)
    time.sleep(3)  # trackers look each second what the tables of open regions keep
    wait_until(lambda: not slave.rows("brief"), 30, "all has expired")
    slave.flush("brief")
    slave.major_compact("brief")
    for table in ("brief", "families"):
        slave.disable_table(table)
    slave.drop_family("families", "f")
    stop_together(pair.slave.region_servers)
    pair.slave.start()
    slave.set_ttl("brief", "f", 2**31 - 1)
    slave.enable_table("brief")
    slave.enable_table("families")
    slave.disable_table("families")
    slave.add_family("families", "f", 1)
    slave.enable_table("families")


@pytest.mark.usefixtures("forgotten")
def test_a_family_that_is_dropped_and_comes_back(pair: Pair, status: Path) -> None:
    """All that had arrived in it is gone."""
    result = pair.verdict(status, "families", "--wait", "60")
    assert result.exit_code == 3, result
    assert "content changed on the slave" in named(result)["families"], result
    compared = pair.check(status, *tables("families"), "--rows", "--master-conf", str(pair.master.conf_dir))
    assert (compared.exit_code, compared.json["hbase"]["regions"]["differs"]) == (1, 1), compared


@pytest.mark.usefixtures("forgotten")
def test_a_slave_that_kept_less_for_a_while(pair: Pair, status: Path) -> None:
    """Its cells expired under a TTL that was taken back, of which the descriptor of today does not tell."""
    slave, chosen = pair.slave.admin, tables("brief", "longer")
    assert slave.rows("brief") == []
    pair.write_master(status, *chosen)
    result = pair.check(status, *chosen, "--wait", "60")
    codes = {problem["table"]: problem["code"] for problem in result.json["problems"]}
    # The other one keeps less now than the master, which is told by the descriptors, and loses nothing meanwhile.
    assert (result.exit_code, codes) == (3, {"brief": "slave-changed", "longer": "keeps-less"}), result
    rows = ("--rows", "--master-conf", str(pair.master.conf_dir))
    compared = pair.check(status, *tables("brief"), *rows)
    assert (compared.exit_code, compared.json["hbase"]["regions"]["differs"]) == (1, 1), compared
    # Set right, and equal by the rows, which are proof from then on.
    slave.set_ttl("longer", "f", 2**31 - 1)
    doubted = pair.check(status, *tables("longer"), "--wait", "60")
    assert [problem["code"] for problem in doubted.json["problems"]] == ["slave-changed"], doubted
    proven = pair.check(status, *tables("longer"), "--wait", "60", *rows)
    assert (proven.exit_code, proven.json["hbase"]["evidence"]) == (0, "rows"), proven
    again = pair.check(status, *tables("longer"))
    assert (again.exit_code, again.json["hbase"]["evidence"]) == (0, "rows"), again


def test_what_the_master_has_forgotten_and_the_slave_has_not(pair: Pair, status: Path) -> None:
    """A family that is dropped and added again, and cells that expired for a while: they hide what is older."""
    master, chosen = pair.master.admin, tables("regained", "kept_less")
    pair.create_table("regained", {"f": 1, "g": 1})
    pair.create_table("kept_less", {"g": 1})
    for table in ("regained", "kept_less"):
        master.put_rows(table, "g", 10)
        pair.wait_same(table)
    master.drop_family("regained", "g")
    master.add_family("regained", "g", 1)
    master.set_ttl("kept_less", "g", 1)
    time.sleep(3)  # trackers look each second what the tables of open regions keep
    master.flush("kept_less")
    master.major_compact("kept_less")
    wait_until(lambda: not master.rows("kept_less"), 30, "all has expired")
    master.set_ttl("kept_less", "g", 2**31 - 1)
    for table in ("regained", "kept_less"):
        master.put_rows(table, "g", 10, value="imported", timestamp_ms=5_000)
    pair.write_master(status, *chosen, "--wait", "60", "--drained")
    result = pair.check(status, *chosen, "--wait", "60")
    codes = {(problem["table"], problem["code"]) for problem in result.json["problems"]}
    assert (result.exit_code, codes) == (3, {(table, "content-changed") for table in ("regained", "kept_less")}), result
    compared = pair.check(status, *chosen, "--rows", "--master-conf", str(pair.master.conf_dir))
    assert (compared.exit_code, compared.json["hbase"]["regions"]["differs"]) == (1, 2), compared


def test_a_snapshot_from_before_a_split(pair: Pair, status: Path) -> None:
    """Or a merge. With nothing written in between, regions come back with the files that they were closed with.

    What has arrived in those that had come of them is gone.
    """
    slave, both = pair.slave.admin, ("splitback", "mergeback")
    before = {}
    for table, splits in zip(both, ([], [b"row00000005"]), strict=True):
        pair.create_filled(table, 10, slave_splits=splits)
        slave.snapshot(f"before-{table}", table)
        before[table] = {region.encoded for region in slave.regions(table)}
    slave.split("splitback", b"row00000005")
    slave.merge(*before["mergeback"])
    for table in both:
        wait_until(partial(has_others, pair.slave, table, before[table]), 60, f"{table} has changed")
        wait_until(partial(is_open, pair.slave, table), 60, f"{table} is open")
        pair.master.admin.put_rows(table, "f", 10, prefix="later")
        pair.wait_same(table)
    pair.write_master(status, *tables(*both))
    complete = pair.check(status, *tables(*both), "--wait", "60")
    assert complete.exit_code == 0, complete
    for table in both:
        slave.restore_snapshot(f"before-{table}", table)
    doubted = pair.check(status, *tables(*both), "--wait", "60")
    assert doubted.exit_code == 3, doubted
    assert all("content changed on the slave" in named(doubted)[table] for table in both), doubted
    compared = pair.check(status, *tables(*both), "--rows", "--master-conf", str(pair.master.conf_dir))
    differing = {problem["table"] for problem in compared.json["problems"] if problem["kind"] == "differs"}
    assert (compared.exit_code, differing) == (1, {*both}), compared


def test_a_table_that_is_truncated_after_it_was_accepted(pair: Pair, status: Path) -> None:
    """Its past was copied by hand, and nothing has ever been replicated to it.

    Its regions are opened anew at once, before anybody has looked at them.
    """
    master, slave = pair.master.admin, pair.slave.admin
    master.disable_peer(PEER)
    pair.create_table("copied", {"f": 1})
    master.put_rows("copied", "f", 10)
    time.sleep(1)
    since = int(time.time() * 1000)
    time.sleep(2)
    accepted = ("--since", f"copied={since}")
    result = pair.verdict(status, "copied", *accepted, "--wait", "60")
    assert (result.exit_code, result.json["hbase"]["evidence"]) == (0, "accepted"), result
    slave.truncate_table("copied")
    slave.add_family("copied", "later", 0)
    result = pair.verdict(status, "copied", *accepted, "--wait", "60")
    assert result.exit_code == 3, result
    assert "emptied" in named(result)["copied"], result
    master.enable_peer(PEER)


def test_a_table_that_is_truncated_after_it_was_filled_by_a_bulk_load_alone(pair: Pair, status: Path) -> None:
    """No entry has arrived, and yet the table has held something."""
    pair.create_table("filled", {"f": 1})
    pair.master.admin.bulk_load("filled", "f", 10)
    pair.wait_same("filled")
    # HBase takes the reference away after the sink's answer: FILE may still hold it.
    wait_until(lambda: pair.verdict(status, "filled", "--wait", "20").exit_code == 0, 60, "the load has been shipped")
    pair.slave.admin.truncate_table("filled")
    result = pair.check(status, *tables("filled"))
    assert result.exit_code == 3, result
    assert "emptied" in named(result)["filled"], result


def test_a_server_of_the_slave_that_nobody_watches(pair: Pair, status: Path) -> None:
    """It is named while it lives, for the regions that it has, and once it has gone for all that had arrived before.

    The table is dropped and created anew, and some of its regions are born there. (The others' births are noted.)
    """

    def found(result: Result) -> set[str]:
        assert result.exit_code == 3, result
        return result.codes

    slave = pair.slave.admin
    splits = [b"row000000%02d" % number for number in range(5, 40, 5)]
    pair.create_filled("blind", 40, splits)
    blind = pair.slave.add_region_server({"hbase.coprocessor.regionserver.classes": ""})
    name = blind.server_name
    try:
        assert found(pair.verdict(status, "blind")) == {"slave-server"}
        slave.drop_table("blind")
        slave.create_table("blind", {"f": 1}, splits)
        assert any(region.server == name for region in slave.regions("blind"))
        result = pair.check(status, "--table", "blind")
        reasons = {problem["code"]: problem["detail"] for problem in result.json["problems"]}
        assert found(result) - {"slave-uncovered"} == {"unattended", "emptied", "slave-server"}, result
        assert f"{name}, which runs without the tracker" in reasons["unattended"], result
    finally:
        blind.stop()
    wait_until(lambda: name not in {region.server for region in slave.regions("blind")}, 60, "others have its regions")
    wait_until(partial(is_open, pair.slave, "blind"), 60, "all regions are open")
    told = {"emptied", "slave-changed", "slave-uncovered"}  # the last one by the sweep of a tracker
    wait_until(
        lambda: found(pair.check(status, "--table", "blind")) == told, 150, "the trackers have seen it", interval=1
    )
