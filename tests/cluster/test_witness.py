"""A witness beside a master that has no class of ours."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from status_tool.clients.config import parse_zookeeper
from status_tool.clients.zookeeper import ZooKeeper
from status_tool.rules.witnessed import SETTLED_MS
from status_tool.sources.arrivals import read_arrivals
from status_tool.sources.state_table import now_ms
from status_tool.status_file.reader import open_status
from tests.lab.cluster import Cluster, ClusterSpec
from tests.lab.errors import AdminError, LabTimeout
from tests.lab.lab import Lab
from tests.lab.ports import Ports
from tests.lab.waiting import wait_until
from tests.pair import PEER, Pair, Result, start_pair, tool_here, tracked_spec
from tests.witness import (
    WITNESS_PEER,
    ZNODE,
    Witness,
    assert_witnessed,
    end_quietly,
    sequence_ids,
    wait_covered,
    wait_covered_soon,
    write_from,
)

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
Entries = dict[str, set[int]]
"""Sequence ids by region."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture(scope="module")
def pair(lab: Lab) -> Pair:
    """A master of two region servers without a class of ours, and a slave whose trackers keep single entries."""
    loads = {"hbase.replication.bulkload.enabled": "true"}
    single = {"hbase.replicationtable.unstamped.entries": "true", **loads}
    untracked = ClusterSpec("master", 2, site=loads, one_hdfs_process=True)
    return start_pair(lab, untracked, tracked_spec("slave", region_servers=1, site=single))


@pytest.fixture(scope="module")
def master(pair: Pair) -> Cluster:
    """The one that may not be touched."""
    return pair.master


@pytest.fixture(scope="module")
def witnesses(
    lab: Lab, master: Cluster, ports: Ports, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Witness]]:
    """Two that share one peer's load."""
    folder = tmp_path_factory.mktemp("witness")
    both = [Witness(lab, folder / name, ports.take()) for name in ("one", "two")]
    try:
        for witness in both:
            witness.start()
        master.admin.add_peer(WITNESS_PEER, f"127.0.0.1:{lab.zk_port}:{ZNODE}")
        yield both
    finally:
        for witness in both:
            end_quietly(witness.process)


def written(master: Cluster, table: str) -> Entries:
    """What HBase's own printer finds in all WALs of a cluster, of the family f."""
    master.admin.roll_wal()  # the printer reads to the end what is closed
    found: Entries = {}
    for wal in wait_until(partial(printed, master, table), 60, "no WAL is moved while it is printed"):
        for entry in map(json.loads, re.findall(r'\{"sequence".*\}(?=edit heap size)', wal)):
            if any(action["family"] == "f" for action in entry["actions"]):
                found.setdefault(entry["region"], set()).add(int(entry["sequence"]))
    return found


def printed(master: Cluster, table: str) -> list[str]:
    """What the printer says of each WAL; nothing if one was archived meanwhile, as those of a dead server are."""
    try:
        return master.admin.printed_wals(table)
    except AdminError as error:
        if not any(words in str(error) for words in ("FileNotFoundException", "is not a file")):
            raise
        return []


def sent(witnesses: list[Witness], table: str) -> Entries:
    """What the witnesses have of a table."""
    found: Entries = {}
    for witness in witnesses:
        for key, entries in read_arrivals(witness.store).items():
            if key.table == table:
                assert key.families == ("f",)
                found.setdefault(key.region, set()).update(sequence_ids(entries))
    return found


def wait_for(witnesses: list[Witness], table: str, expected: Entries) -> None:
    """Wait until the witnesses have exactly this."""
    with contextlib.suppress(LabTimeout):
        wait_until(lambda: sent(witnesses, table) == expected, 90, "the witnesses have everything")
    assert sent(witnesses, table) == expected


def registered(lab: Lab) -> list[str]:
    """The servers that a source finds."""
    with ZooKeeper(parse_zookeeper(f"127.0.0.1:{lab.zk_port}{ZNODE}")) as session:
        return sorted(session.live_servers())


def by_size(witnesses: list[Witness]) -> list[Witness]:
    """The one first whose newest log has more: a source may have sent everything to the other one."""

    def size(witness: Witness) -> int:
        return max(log.stat().st_size for log in witness.store.glob("*.log"))

    return sorted(witnesses, key=size, reverse=True)


def write_witnessed(pair: Pair, witnesses: list[Witness], file: Path, *options: str) -> Result:
    """The same from the folders of these."""
    return write_from(pair, [witness.store for witness in witnesses], file, *options)


def recorded(file: Path) -> set[tuple[Any, ...]]:
    """The streams of a FILE, with what lies between their entries."""
    columns = ("kind", "region", "origin", "via", "family", "prev", "seq", "first_ms", "write_ms", "started_ms")
    with open_status(file, witnessed=True) as status:
        batches = list(status.rows({"stream", "segment"}))
    return {tuple(row[name] for name in columns) for batch in batches for row in batch.to_pylist()}


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tool copies witnesses' folders to: a folder of this test's own."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def copies_left(folder: Path) -> list[Path]:
    """Copies of witnesses' folders that nothing has removed."""
    return list(folder.glob("*/*/store.id"))


def assert_unverifiable(result: Result, code: str) -> None:
    """Nothing is missing by what the witnesses have, which is no proof."""
    assert result.exit_code == 3, result
    assert code in result.codes


@pytest.fixture(scope="module")
def covered(master: Cluster, witnesses: list[Witness]) -> None:
    """From now on each new table is younger than the moment at which every region server had the peer."""
    wait_covered(master)


def test_witnesses_have_exactly_the_entries_that_were_written(
    lab: Lab,
    pair: Pair,
    master: Cluster,
    witnesses: list[Witness],
    tmp_path: Path,
    copies: Path,
    warm_spark: None,
) -> None:
    """Together, by HBase's own reading of its WALs; a local family's entries are none of theirs.

    This table is older than the peer may be on some region server, so that the operator's word is needed.
    """
    pair.create_table("exact", {"f": 1, "l": 0}, splits=[b"row00000500"])
    master.admin.put_rows("exact", "f", 1_000)
    master.admin.put_rows("exact", "l", 10)
    load = master.admin.load_start("exact", "f", rate_per_s=100)
    wait_until(lambda: master.admin.load_count(load) > 300, 60, "rows one by one")
    master.admin.load_stop(load)
    expected = written(master, "exact")
    assert len(expected) == 2
    assert sum(map(len, expected.values())) > 300
    wait_for(witnesses, "exact", expected)
    assert len(registered(lab)) == 2
    pair.wait_same("exact", ["f"])
    assert write_witnessed(pair, witnesses, tmp_path / "f", "--table", "exact").exit_code == 0
    by_address = write_from(pair, [one.address for one in witnesses], tmp_path / "a", "--table", "exact")
    assert by_address.exit_code == 0, by_address
    assert recorded(tmp_path / "a") == recorded(tmp_path / "f") != set()
    assert not copies_left(copies)
    assert_unverifiable(pair.check(tmp_path / "f", "--table", "exact", "--wait", "10"), "older-than-tracker")


def test_what_keeps_a_witness_from_starting_is_one_line(lab: Lab, witnesses: list[Witness], tmp_path: Path) -> None:
    """With exit code 2, and nothing is registered. One of the two is away for it: the other one goes on.

    `ArrivalStoreTest` and `RegistrationTest` have the other reasons: its folder, its znode, its ZooKeeper.
    """
    one, two = by_size(witnesses)
    before = registered(lab)
    assert f"cannot listen at localhost:{one.port}" in Witness(lab, tmp_path / "port", int(one.port)).refusal()
    assert registered(lab) == before
    assert one.end() == 143
    wait_until(lambda: len(registered(lab)) == 1, 60, "nobody but the other one is registered")
    (alone,) = registered(lab)
    assert alone.split(",")[1] == two.port
    backup = shutil.copytree(one.store, tmp_path / "backup")
    newest = max(backup.glob("*.log"), key=lambda log: int(log.stem))
    newest.write_bytes(b"")
    assert "has less than was acknowledged" in Witness(lab, backup, int(one.port)).refusal()
    assert registered(lab) == [alone]
    one.start()
    assert len(registered(lab)) == 2


def looked_at(pair: Pair, lab: Lab, *options: str, znode: str = ZNODE, of: Cluster | None = None) -> Result:
    """`setup --check --witness` on the slave."""
    where = f"127.0.0.1:{lab.zk_port}{znode}"
    return tool_here("setup", "--check", "--witness", where, *options, conf=of or pair.slave)


def test_setup_names_the_next_step_to_a_check_by_witness(
    pair: Pair, master: Cluster, witnesses: list[Witness], lab: Lab
) -> None:
    """In the order of the steps, until all is ready."""
    by_master = ("--master-zookeeper", master.zookeeper)
    ready = looked_at(pair, lab, *by_master)
    assert (ready.exit_code, ready.stdout.splitlines()[-1]) == (0, "ready"), ready
    assert "record entries without a stamp" in ready.stdout
    for witness in witnesses:
        assert f"ok    the witness at {witness.address} serves" in ready.stdout
    steps = {
        "Next: start one: status-tool witness --register": looked_at(pair, lab, *by_master, znode="/none"),
        "Next: name another znode": looked_at(
            pair, lab, *by_master, znode=f"/{pair.slave.cluster_key.partition(':/')[2]}"
        ),
        "Next: name its ZooKeeper: --master-zookeeper": looked_at(pair, lab),
    }
    witnesses[0].end()
    steps["ready"] = looked_at(pair, lab, *by_master)
    assert "has no witness now: `run -m --witness` needs it" in steps["ready"].stdout
    witnesses[1].end()
    steps["Next: start it again with the folder that it had"] = looked_at(pair, lab, *by_master)
    for witness in witnesses:
        witness.start()
    master.admin.disable_peer(WITNESS_PEER)
    steps[f"Next: in the master's HBase shell: enable_peer '{WITNESS_PEER}'"] = looked_at(pair, lab, *by_master)
    master.admin.enable_peer(WITNESS_PEER)
    backwards = looked_at(pair, lab, "--master-zookeeper", pair.slave.zookeeper)
    steps["Next: in the master's HBase shell: add_peer 'witness', CLUSTER_KEY => '127.0.0.1:"] = backwards
    for step, result in steps.items():
        assert result.stdout.splitlines()[-1].startswith(step), result
        assert result.exit_code == (0 if step == "ready" else 3), result


def assert_only_the_witness_is_held_back(master: Cluster, metrics: Path) -> None:
    """A witness that does not answer delays no other peer, and is named with the WALs that are kept for it."""
    master.admin.roll_wal()

    def looked() -> Result:
        return tool_here("queues", "--watch", "1", "--metrics", metrics, "--json", conf=master)

    def slave_is_drained() -> bool:
        return all(queue["drained"] for queue in looked().json["queues"] if queue["peer"] == PEER)

    wait_until(slave_is_drained, 60, "the slave's queues are drained", interval=1)
    held = looked()
    assert held.exit_code == 1, held
    peers = {peer["id"]: peer for peer in held.json["peers"]}
    assert (peers[WITNESS_PEER]["stuck"] > 0, peers[PEER]["stuck"]) == (True, 0)
    assert peers[WITNESS_PEER]["wals"] > peers[PEER]["wals"]
    assert peers[WITNESS_PEER]["left_bytes"] > 0
    written, labels = metrics.read_text(), f'master="{held.json["cluster_id"]}",peer="{WITNESS_PEER}"'
    assert f"queue_wals{{{labels}}} {peers[WITNESS_PEER]['wals']}\n" in written
    assert re.search(rf'queue_oldest_wal_timestamp_seconds{{.*peer="{WITNESS_PEER}"}}', written)
    assert not re.search(rf'queue_oldest_wal_timestamp_seconds{{.*peer="{PEER}"}}', written)
    text = tool_here("queues", "--watch", "1", "--peer", WITNESS_PEER, conf=master).stdout
    assert "STUCK" in text
    assert "oldest WAL opened" in text


@pytest.fixture(scope="module")
def settling(pair: Pair, master: Cluster, witnesses: list[Witness], covered: None) -> Entries:
    """Entries of a table that are old enough to be pruned once other tests have run."""
    table = "pruned"
    pair.create_table(table, {"f": 1})
    load = master.admin.load_start(table, "f", rate_per_s=200)
    wait_until(lambda: master.admin.load_count(load) > 1_000, 60, "rows one by one")
    master.admin.load_stop(load)
    pair.wait_same(table)
    expected = written(master, table)
    wait_for(witnesses, table, expected)
    return expected


def test_complete_behind_and_a_lost_entry(
    pair: Pair, master: Cluster, witnesses: list[Witness], settling: Entries, tmp_path: Path, warm_spark: None
) -> None:
    """Complete by witness; not while they may lack something; and a gap holds exactly the entries that were lost.

    The slave's peer is removed for a while, the witness's stays.
    """
    file, table = tmp_path / "witnessed.status", "holed"
    pair.create_table(table, {"f": 1, "l": 0})
    master.admin.put_rows(table, "f", 20)
    master.admin.put_rows(table, "l", 5)
    for number in range(5):
        master.admin.put_rows(table, "f", 1, start=20 + number)
    assert write_from(pair, [witnesses[0].address, witnesses[1].store], file).exit_code == 0
    assert_witnessed(pair.check(file, "--table", table, "--wait", "30"))
    before = sent(witnesses, table)
    for witness in witnesses:
        witness.send(signal.SIGSTOP)
    master.admin.put_rows(table, "f", 1, start=30)
    pair.wait_same(table, ["f"])
    assert_only_the_witness_is_held_back(master, tmp_path / "queues.prom")
    for witness in witnesses:
        witness.end(signal.SIGKILL)
    partial = write_witnessed(pair, witnesses, file, "--wait", "2")
    assert "the witness may lack entries" in partial.stderr
    assert_unverifiable(pair.check(file, "--table", table, "--wait", "5"), "witnessed")
    for witness in witnesses:
        witness.start()
    pair.lose(table)
    assert write_witnessed(pair, witnesses, file).exit_code == 0
    holed = pair.check(file, "--table", table, "--wait", "3")
    assert holed.exit_code == 1, holed
    (gap,) = [problem for problem in holed.json["problems"] if problem["kind"] == "gap"]
    (now,) = sent(witnesses, table).values()
    lost = {one for one in now if gap["from_seq"] < one <= gap["to_seq"]}
    assert lost
    assert not lost & next(iter(before.values()))
    assert gap["to_seq"] in lost
    missing = set(master.admin.rows(table)) - set(pair.slave.admin.rows(table))
    # Each round of `lose` writes five rows at once, one entry.
    assert len(missing) == 5 * len(lost)


def test_kill_9_of_each_side_under_load_ends_complete(
    pair: Pair, master: Cluster, witnesses: list[Witness], covered: None, tmp_path: Path, warm_spark: None
) -> None:
    """Started again, they go on; HBase sends again what was not acknowledged."""
    pair.create_table("killed", {"f": 1}, [b"load00000100", b"load00000200", b"load00000300"])
    load = master.admin.load_start("killed", "f", rate_per_s=100)
    for number, witness in enumerate(witnesses, 1):
        wait_until(lambda: master.admin.load_count(load) > 200 * number, 60, "load")  # noqa: B023
        assert witness.end(signal.SIGKILL) == -signal.SIGKILL
        witness.start()
    pair.slave.region_servers[0].kill9()
    master.crash(master.region_servers[0])
    pair.slave.region_servers[0].start()
    reached = master.admin.load_count(load)
    wait_until(lambda: master.admin.load_count(load) > reached + 100, 120, "the other server has its regions")
    wait_until(lambda: len(master.admin.live_servers()) == 1, 120, "the master has noticed")
    master.admin.load_stop(load)
    wait_for(witnesses, "killed", written(master, "killed"))  # before a server that has just started rolls no WAL
    master.region_servers[0].start()
    pair.wait_same("killed")

    def checked() -> Result:
        assert write_witnessed(pair, witnesses, tmp_path / "f", "--wait", "120").exit_code == 0
        return pair.check(tmp_path / "f", "--table", "killed", "--wait", "30")

    assert_witnessed(checked())


def test_a_part_of_the_witnesses_is_no_status(pair: Pair, witnesses: list[Witness], tmp_path: Path) -> None:
    """The master may have sent anything to the other one; nor is a folder that lacks what was acknowledged."""
    refused = write_witnessed(pair, witnesses[:1], tmp_path / "part.status")
    assert refused.exit_code == 2, refused
    assert (witnesses[1].store / "store.id").read_text().strip() in refused.stderr
    fuller, other = by_size(witnesses)
    backup = shutil.copytree(fuller.store, tmp_path / "backup")
    for log in backup.glob("*.log"):
        log.write_bytes(b"")
    folders = ("--witness", backup, "--witness", other.store)
    stale = tool_here("run", "-m", "-o", tmp_path / "f", "--only", "hbase", *folders, conf=pair.master)
    assert stale.exit_code == 2, stale
    assert "has less than its witness has acknowledged" in stale.stderr


def test_what_no_witness_answers_is_one_line_and_no_file(
    pair: Pair, witnesses: list[Witness], ports: Ports, tmp_path: Path, copies: Path
) -> None:
    """A server of HBase's, of something else, of nothing, a witness of another peer, and one of two that is away."""
    one, other = witnesses
    file = tmp_path / "f"
    server = pair.master.admin.live_servers()[0].split(",")
    for address, words in {
        f"{server[0]}:{server[1]}": "is no witness that sends its folder (UnknownProtocolException",
        f"localhost:{pair.master.thrift_port}": "does not answer by HBase's RPC",
        f"localhost:{ports.take()}": "cannot reach the witness at",
    }.items():
        refused = write_from(pair, [one.address, address], file)
        assert refused.exit_code == 2, refused
        assert refused.stderr.count("\n") == 1
        assert address in refused.stderr
        assert words in refused.stderr
    planned = write_from(pair, [one.address, other.store], file, "--explain")
    assert (planned.exit_code, f"{one.address}, {other.store}" in planned.stdout) == (0, True), planned
    part = write_from(pair, [one.address], file)
    assert (part.exit_code, (other.store / "store.id").read_text().strip() in part.stderr) == (2, True), part
    other.end()
    away = write_from(pair, [one.address, other.address], file)
    assert (away.exit_code, "cannot reach the witness at" in away.stderr) == (2, True), away
    assert not file.exists()
    assert not copies_left(copies)
    other.start()


def test_a_bulk_load_counts_once_both_queues_have_shipped_it(
    pair: Pair, master: Cluster, witnesses: list[Witness], covered: None, tmp_path: Path, warm_spark: None
) -> None:
    """Its marker is an entry like others; its files are no part of what a witness keeps."""
    pair.let_peer_age()
    pair.create_table("loaded", {"f": 1})
    master.admin.put_rows("loaded", "f", 3)
    master.admin.bulk_load("loaded", "f", 20)
    pair.wait_same("loaded")

    def checked() -> Result:
        assert write_witnessed(pair, witnesses, tmp_path / "f").exit_code == 0
        return pair.check(tmp_path / "f", "--table", "loaded", "--wait", "20")

    # HBase takes the reference to a file away after the sink's answer: FILE may still hold it.
    wait_until(lambda: checked().exit_code == 0, 60, "nothing is left to be shipped")


def test_two_masters(
    pair: Pair, master: Cluster, witnesses: list[Witness], covered: None, tmp_path: Path, warm_spark: None
) -> None:
    """The witness is sent what came from the slave as well, which is no part of the question; a loss is one."""
    file, table = tmp_path / "f", "mutual"
    pair.slave.admin.add_peer("back", master.cluster_key)
    pair.create_table(table, {"f": 1})
    master.admin.put_rows(table, "f", 10, prefix="here")
    pair.slave.admin.put_rows(table, "f", 10, prefix="there")
    pair.wait_same(table)
    assert write_witnessed(pair, witnesses, file).exit_code == 0
    passed = {key.clusters for one in witnesses for key in read_arrivals(one.store) if key.table == table}
    assert sorted(map(len, passed)) == [1, 2]
    assert_witnessed(pair.check(file, "--table", table, "--wait", "30"))
    pair.lose(table)
    assert write_witnessed(pair, witnesses, file).exit_code == 0
    holed = pair.check(file, "--table", table, "--wait", "3")
    assert (holed.exit_code, holed.json["hbase"]["regions"]["gap"]) == (1, 1), holed
    pair.slave.admin.remove_peer("back")


def kept(witnesses: list[Witness], table: str) -> list[tuple[int, int, int, int]]:
    """Each run of sequence ids that the witnesses keep: first and last, lowest and highest write time."""
    stored = [read_arrivals(witness.store) for witness in witnesses]
    return [run for one in stored for key, entries in one.items() if key.table == table for run in entries.runs()]


def test_a_folder_is_pruned_and_a_loss_after_that_is_found_exactly(
    pair: Pair, master: Cluster, witnesses: list[Witness], settling: Entries, tmp_path: Path, warm_spark: None
) -> None:
    """By `run -m` itself; also with witnesses that are killed while they prune, and entries that are sent again."""
    file, table = tmp_path / "f", "pruned"
    addresses = [witness.address for witness in witnesses]
    entries = sum(map(len, settling.values()))
    settled_ms = max(high for *_, high in kept(witnesses, table)) + SETTLED_MS
    wait_until(lambda: now_ms() > settled_ms, 150, "the entries are settled")

    def is_pruned() -> bool:
        assert write_from(pair, addresses, file).exit_code == 0
        return len(kept(witnesses, table)) < entries / 100

    # While they prune, or before, or after: `ArrivalStoreTest` has each moment for itself.
    writing = threading.Thread(target=write_from, args=(pair, addresses, tmp_path / "killed"))
    writing.start()
    time.sleep(2)
    for witness in witnesses:
        witness.end(signal.SIGKILL)
    writing.join()
    for witness in witnesses:
        witness.start()
    assert sent(witnesses, table) == settling
    wait_until(is_pruned, 60, "the entries are joined", interval=5)
    assert sent(witnesses, table) == settling
    assert_witnessed(pair.check(file, "--table", table, "--wait", "30"))
    master.admin.put_rows(table, "f", 3)
    pair.wait_same(table)
    pair.lose(table)
    assert write_from(pair, addresses, file).exit_code == 0
    holed = pair.check(file, "--table", table, "--wait", "3")
    assert holed.exit_code == 1, holed
    (gap,) = [problem for problem in holed.json["problems"] if problem["kind"] == "gap"]
    (now,), (then,) = sent(witnesses, table).values(), settling.values()
    lost = {one for one in now if gap["from_seq"] < one <= gap["to_seq"]}
    assert lost
    assert not lost & then
    assert then < now
    missing = set(master.admin.rows(table)) - set(pair.slave.admin.rows(table))
    assert len(missing) == 5 * len(lost)
    # The check that is printed for after the copy: with such a master no rows are compared.
    told = tool_here("run", "-i", file, "--table", table, "--only", "hbase", conf=pair.slave).stdout
    printed = told.partition("Then accept it: with a master without trackers no rows are compared:\n")[2]
    command, *options = shlex.split(printed.replace("\\\n", " ").splitlines()[0])
    assert (command, options[:3]) == ("status-tool", ["run", "-i", "FILE"]), told
    accepted = pair.check(file, *options[3:], "--wait", "30")
    assert (accepted.exit_code, accepted.json["hbase"]["regions"]["gap"]) == (0, 0), accepted


def test_filters_of_either_peer(
    pair: Pair, master: Cluster, witnesses: list[Witness], covered: None, tmp_path: Path, warm_spark: None
) -> None:
    """What the slave is not sent is not in scope; what the witness is not sent is no proof. From here on what witnesses
    were sent begins anew with each change of their peer.
    """
    file, table = tmp_path / "f", "filtered"

    def checked(*options: str, wait: str = "30") -> Result:
        assert write_witnessed(pair, witnesses, file).exit_code == 0
        return pair.check(file, "--table", table, "--wait", wait, *options)

    master.admin.set_peer_tables(PEER, {table: ["f"]})
    pair.create_table(table, {"f": 1, "g": 1})
    for family in "fg":
        master.admin.put_rows(table, family, 10)
    assert_witnessed(checked())
    master.admin.roll_wal()
    pair.wait_drained()
    master.admin.set_peer_tables(PEER, None)
    master.admin.put_rows(table, "g", 1, start=10)
    wait_until(lambda: b"row00000010" in pair.slave.admin.rows(table), 60, "the slave is sent g")
    lacking = checked(wait="2")
    assert not pair.same(table)
    assert lacking.exit_code == 1, lacking
    assert {problem["table"] for problem in lacking.json["problems"]} == {table}
    master.admin.set_peer_tables(WITNESS_PEER, {table: ["g"]})
    assert_unverifiable(checked("--since", str(int(time.time() * 1000))), "not-witnessed")


def test_namespaces_of_either_peer(
    lab: Lab,
    pair: Pair,
    master: Cluster,
    witnesses: list[Witness],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    warm_spark: None,
) -> None:
    """The same with peers that ship a namespace."""
    file, inside, outside = tmp_path / "f", "ns:inside", "outside"
    master.admin.remove_peer(WITNESS_PEER)
    master.admin.add_peer(WITNESS_PEER, f"127.0.0.1:{lab.zk_port}:{ZNODE}", namespaces=["ns"])
    for cluster in (master, pair.slave):
        cluster.admin.create_namespace("ns")
    wait_covered_soon(master, monkeypatch)

    def checked(table: str) -> Result:
        assert write_witnessed(pair, witnesses, file).exit_code == 0
        return pair.check(file, "--table", table, "--wait", "30")

    for table in (inside, outside):
        pair.create_table(table, {"f": 1})
        master.admin.put_rows(table, "f", 10)
        pair.wait_same(table)
    assert_witnessed(checked(inside))
    assert_unverifiable(checked(outside), "not-witnessed")
    pair.wait_drained()
    master.admin.remove_peer(PEER)
    pair.connect(namespaces=["ns"])
    for table in (inside, outside):
        master.admin.put_rows(table, "f", 10, prefix="later")
    pair.wait_same(inside)
    assert_witnessed(checked(inside))
    assert not pair.same(outside)
    assert_unverifiable(checked(outside), "not-replicated")
