"""Three real clusters: a chain, then a cycle, several peers, filters, and files used where they do not belong."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from status_tool.explain.role_change import SHELL, TOOL
from status_tool.gather import measured_queues
from status_tool.runs.graph_check import _Desk
from status_tool.vocabulary.header import SLAVE
from status_tool.vocabulary.verdicts import EXIT_CODES, Evidence
from tests.cluster.test_verdicts import assert_complete, dump, since_told
from tests.lab.lab import Lab
from tests.lab.shell import do
from tests.lab.waiting import wait_until
from tests.pair import PEER, Pair, Result, move_table, tool_here, tracked_spec, wait_lasting
from tests.schema import assert_valid

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


class Three(NamedTuple):
    """a replicates to b by peer 1, b to c by peer 1."""

    ab: Pair
    bc: Pair

    @property
    def ac(self) -> Pair:
        """What is no link of its own, at first."""
        return Pair(self.ab.master, self.bc.slave)


@pytest.fixture(scope="module")
def three(warm_spark: None) -> Iterator[Three]:
    """One region server each; the tests of this module run in the order of their writing."""
    with Lab() as lab:
        a, b, c = lab.start_clusters(*(tracked_spec(name, region_servers=1) for name in "abc"))
        chain = Three(Pair(a, b), Pair(b, c))
        chain.ab.connect()
        chain.bc.connect()
        for cluster in (a, b, c):
            cluster.admin.create_namespace("ns")
            for table in ("t", "ns:t", "other"):
                cluster.admin.create_table(table, {"f": 1, "g": 1})
        yield chain


def topology(pair: Pair) -> Result:
    """`status-tool topology --json` on a pair's master."""
    return tool_here("topology", "--json", conf=pair.master)


def named(three: Three) -> list[str]:
    """The options that name all three."""
    clusters = zip("abc", (three.ab.master, three.ab.slave, three.bc.slave), strict=True)
    return [f"--cluster={name}={cluster.conf_dir}" for name, cluster in clusters]


def paths(three: Three, *arguments: str) -> Result:
    """`status-tool paths --json` on all three."""
    result = tool_here("paths", *named(three), "--json", *arguments)
    assert_valid(result.json, "paths")
    return result


def cells(result: Result) -> dict[str, str]:
    """The matrix, by pairs as `ab`."""
    matrix = result.json["matrix"]
    return {source + target: one["verdict"] for source, row in matrix.items() for target, one in row.items()}


def test_a_switch_as_it_is_printed(three: Three, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a to b, step by step as the text has them, each with its check; a has b's writes then, and c all of them."""
    a, b, c = three.ab.master, three.ab.slave, three.bc.slave
    a.admin.put_rows("t", "f", 5, prefix="before")
    a.admin.disable_peer(PEER)
    told = tool_here("switchover", *named(three), "--from", "a", "--to", "b")
    assert told.exit_code == 0, told
    steps = re.findall(r"\n\d+\. (\w+), ([^:]+):\n   (.+)\n   check: (.+)", told.stdout)
    assert f"{len(steps)} steps" in told.stdout, told
    assert [command[:11] for _, how, command, _ in steps if how == SHELL] == ["enable_peer", "add_peer 'a"]
    monkeypatch.chdir(tmp_path)
    for name, how, command, check in steps:
        cluster = {"a": a, "b": b}[name]
        if how == SHELL:
            do(cluster.admin, command)
            peer, state = re.findall(r"list_peers: (\w+) is (ENABLED|DISABLED)", check)[0]
            assert {one.id: one.enabled for one in cluster.admin.list_peers()}[peer] == (state == "ENABLED"), command
        elif how == TOOL:
            done = tool_here(*shlex.split(command)[1:])
            assert done.exit_code == 0, (command, done)
            assert "exit code 0" in check or tool_here("shutdown-time", "show", conf=cluster).exit_code == 0
        else:
            writes = command.startswith("start")
            assert cluster.admin.put_rows("t", "f", 5 * writes, prefix="after") == 5 * writes
    for cluster in (a, c):
        assert {b"before00000004", b"after00000004"} <= set(cluster.admin.rows("t"))
    assert "No shutdown time is recorded" in tool_here("shutdown-time", "show", conf=a).stdout
    b.admin.remove_peer("a")


def test_a_chain(three: Three, status: Path) -> None:
    """Edits relayed by b are in scope on c with b's file; a's own file has nothing to say to c."""
    three.ab.master.admin.put_rows("t", "f", 20)
    three.bc.master.admin.put_rows("t", "f", 5, prefix="own")
    last = {b"row00000019", b"own00000004"}
    wait_until(lambda: last <= set(three.bc.slave.admin.rows("t")), 60, "both have reached c")
    # b holds rows that a never had: by rows they differ, by what a has written they do not.
    assert_complete(three.ab.verdict(status, "t", "--wait", "20"))
    refused = three.ac.check(status, "--table", "t")
    assert (refused.exit_code, "does not replicate to this one" in refused.stderr) == (2, True), refused
    assert_complete(three.bc.verdict(status, "t", "--wait", "20"))
    assert sum(1 for row in dump(status) if row["kind"] == "stream") == 2
    found = topology(three.ab)
    assert (found.exit_code, found.json["shape"], len(found.json["clusters"])) == (0, "chain", 3), found
    found = paths(three, "--wait", "20")
    expected = dict.fromkeys(("ba", "ca", "cb"), "not connected") | dict.fromkeys(("ab", "bc", "ac"), "complete")
    assert (found.exit_code, cells(found)) == (0, expected), found
    assert [path["clusters"] for path in found.json["paths"]] == [["a", "b"], ["b", "c"], ["a", "b", "c"]]


def test_an_entry_that_reaches_the_middle_late(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes to b after b's side as a master was read: both edges are complete, and it is not on c."""
    a, b = three.ab.master.admin, three.bc.master.admin
    a.put_rows("t", "f", 1, prefix="soon")
    wait_until(lambda: b"soon00000000" in three.bc.slave.admin.rows("t"), 60, "c has what came before")
    a.disable_peer(PEER)
    a.put_rows("t", "f", 1, prefix="late")
    read = _Desk.read

    def reading(desk: _Desk, side: str, number: int, names: Iterable[str]) -> None:
        if (side, number) == (SLAVE, 0):
            b.disable_peer(PEER)
            a.enable_peer(PEER)
            wait_until(lambda: b"late00000000" in b.rows("t"), 60, "it has reached b")
        read(desk, side, number, names)

    with monkeypatch.context() as patched:
        patched.setattr(_Desk, "read", reading)
        found = paths(three)
    try:
        assert b"late00000000" not in three.bc.slave.admin.rows("t")
        told = {name: cells(found)[name] for name in ("ab", "bc", "ac")}
        assert told == {"ab": "complete", "bc": "complete", "ac": "behind"}, found
        (_, _, path) = found.json["paths"]
        assert {reason.startswith("b to c (peer 1 of b)") for reason in path["held_back_by"]} == {True}
        found = paths(three)
        assert (found.exit_code, cells(found)["bc"], cells(found)["ac"]) == (1, "behind", "behind"), found
        assert [(edge["from"], edge["enabled"]) for edge in found.json["edges"]] == [("a", True), ("b", False)]
    finally:
        b.enable_peer(PEER)
    assert paths(three, "--wait", "60").exit_code == 0


@pytest.fixture
def second_peer(three: Three) -> Iterator[None]:
    """Other peers of a that a test adds are gone afterwards, whatever becomes of the test."""
    yield
    a = three.ac.master.admin
    for peer in a.list_peers():
        if peer.id != PEER:
            a.remove_peer(peer.id)


@pytest.mark.usefixtures("second_peer")
def test_two_peers_with_filters(three: Three, status: Path) -> None:
    """A second peer of a takes a namespace and one table to c: only these are in scope for c, everything for b."""
    a, c = three.ac.master.admin, three.ac.slave
    a.add_peer("2", c.cluster_key, namespaces=["ns"], table_cfs={"other": []})
    for table in ("ns:t", "other", "t"):
        a.put_rows(table, "f", 10, prefix="two")
    wait_until(lambda: len(c.admin.rows("ns:t")) == len(c.admin.rows("other")) == 10, 60, "both have reached c")
    three.ab.write_master(status)
    result = three.ac.check(status, "--wait", "20")
    assert_complete(result)
    assert (result.json["peer_id"], result.json["hbase"]["regions"]["complete"]) == ("2", 2)
    # What b deletes is gone on c as well, of what a has written.
    assert not any("by others" in notice for notice in result.json["notices"]), result
    three.bc.master.admin.delete_rows("ns:t", 3, prefix="two")
    wait_until(lambda: len(c.admin.rows("ns:t")) == 7, 60, "c has b's deletes")
    reported = " ".join(assert_complete(three.ac.check(status, "--wait", "20"))["notices"])
    assert re.search(r"by others than this master: ns:t \(last [^)]*, deletes among them", reported), reported
    assert "other (last" not in reported
    result = three.ab.check(status, "--wait", "20")
    assert_complete(result)
    assert (result.json["peer_id"], result.json["hbase"]["regions"]["complete"]) == ("1", 3)
    assert topology(three.ab).json["shape"] == "mixed"
    # c has two masters: what came through which, by name.
    found = paths(three, "--wait", "20")
    assert (found.exit_code, cells(found)["ac"], len(found.json["edges"])) == (0, "complete", 3), found
    assert f"; through {found.json['clusters']['b']['cluster_id']})" in reported, reported
    ways = {"".join(sorted(one["through"])): one for one in found.json["written"]["c"]["ns:t"]}
    assert {way: one["deleted_ms"] is not None for way, one in ways.items()} == {"a": False, "ab": False, "b": True}
    text = tool_here("paths", *named(three), "--table", "ns:t", "--wait", "20").stdout
    told = " ".join(text.split())
    assert re.search(r"c, table ns:t: written (?:[^.]|\.\d)*through b up to [^;]*, deletes up to ", told), text
    assert "table t:" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.fixture
def apart(three: Three) -> Iterator[None]:
    """What reaches c comes from a itself."""
    three.bc.master.admin.disable_peer(PEER)
    yield
    three.bc.master.admin.enable_peer(PEER)


@pytest.mark.usefixtures("apart", "second_peer")
def test_a_peer_that_filters_families(three: Three, status: Path) -> None:
    """Each family is a chain: what the peer leaves out is not in scope, a loss in what it ships is a gap, and a peer
    that is widened excuses nothing.
    """
    a, c = three.ac.master.admin, three.ac.slave
    tables = ("parts", "whole")
    for cluster in (three.ab.master, three.ab.slave, c):
        for table in tables:
            cluster.admin.create_table(table, {"f": 1, "g": 1})

    def written(prefix: str) -> None:
        """By turns and together; the last row is of the family that is shipped."""
        for table in tables:
            for family in "gfgf":
                a.put_rows(table, family, 5, prefix=f"{prefix}-{family}")
            a.mutate_row(table, f"{prefix}-both", {"f:q": "v", "g:q": "v"})
            a.put_rows(table, "f", 1, prefix=f"{prefix}-last")

    def has(table: str, prefix: str) -> bool:
        return f"{prefix}-last00000000".encode() in c.admin.rows(table)

    def arrived(prefix: str) -> None:
        wait_until(lambda: all(has(table, prefix) for table in tables), 60, "what is shipped has reached c")

    def checked(*arguments: str, to: Sequence[str] = tables) -> Result:
        chosen = [f"--table={table}" for table in to]
        three.ab.write_master(status, *chosen)
        return three.ac.check(status, *chosen, *arguments)

    a.add_peer("2", c.cluster_key, table_cfs={"parts": ["f"], "whole": []})
    for prefix in ("one", "two"):
        written(prefix)
        arrived(prefix)
    assert not three.ac.same("parts")
    result = checked("--wait", "20")
    assert_complete(result)
    levels = dict.fromkeys((*Evidence, "ordered"), 0)  # "ordered" is of no tracker any more
    assert result.json["hbase"]["evidence_by"] == levels | {"exact": 2}
    assert result.json["hbase"]["evidence"] == "exact"
    found = {(row["table"], row["family"]) for row in dump(status) if row["kind"] == "stream"}
    assert found == {(table, family) for table in tables for family in "fg"}
    # A loss in both, as by a peer that is removed for a while.
    for number in range(9):
        a.remove_peer("2")
        written(f"lost{number}")
        a.roll_wal()
        a.add_peer("2", c.cluster_key, table_cfs={"parts": ["f"], "whole": []})
        written(f"three{number}")
        arrived(f"three{number}")
        if not any(has(table, f"lost{number}") for table in tables):
            break  # else the WAL was rolled only after the peer had come, and is shipped from its beginning
    wait_lasting()
    result = checked()
    assert result.exit_code == 1, result
    streams = [(problem["table"], problem["kind"]) for problem in result.json["problems"]]
    assert sorted(streams) == [("parts", "gap"), ("whole", "gap"), ("whole", "gap")]
    # What it left out so far is missing where it is shipped now.
    a.set_peer_tables("2", {"parts": [], "whole": []})
    time.sleep(2)
    written("wide")
    arrived("wide")
    result = checked("--wait", "3", to=["parts"])
    assert result.exit_code == 1, result
    problems = result.json["problems"]
    assert [problem["kind"] for problem in problems] == ["gap", "gap"], result
    assert all("--since parts=" in problem["advice"] and "CopyTable" in problem["advice"] for problem in problems)
    assert any(problem["from_seq"] == 0 for problem in problems), "from its beginning on"
    since = max(int(since_told(problem).removeprefix("parts=")) for problem in problems)
    assert checked("--since", f"parts={since}", to=["parts"]).exit_code == 0


@pytest.mark.usefixtures("apart", "second_peer")
def test_two_peers_that_share_a_table(three: Three, status: Path) -> None:
    """Both lead to c, each ships some of the families: each is complete by itself, whatever becomes of the other."""
    a, c = three.ac.master.admin, three.ac.slave
    for cluster in (three.ab.master, three.ab.slave, c):
        cluster.admin.create_table("shared", {"f": 1, "g": 1, "h": 1})
    a.add_peer("2", c.cluster_key, table_cfs={"shared": ["f", "h"]})
    a.add_peer("3", c.cluster_key, table_cfs={"shared": ["g"]})

    def written(prefix: str) -> None:
        for family in "gfhgf":
            a.put_rows("shared", family, 5, prefix=f"{prefix}-{family}")
        a.mutate_row("shared", f"{prefix}-all", {"f:q": "v", "g:q": "v", "h:q": "v"})

    def checked(peer: str, *arguments: str) -> Result:
        return three.ac.check(status, "--table=shared", "--peer", peer, *arguments)

    written("both")
    three.ac.wait_same("shared")
    three.ab.write_master(status, "--table=shared")
    for peer in ("2", "3"):
        assert assert_complete(checked(peer, "--wait", "20"))["peer_id"] == peer
    a.disable_peer("3")
    written("one")
    three.ac.wait_same("shared", ["f", "h"])
    three.ab.write_master(status, "--table=shared")
    assert_complete(checked("2", "--wait", "20"))
    late = checked("3")
    assert (late.exit_code, late.codes) == (1, {"behind"}), late
    a.enable_peer("3")
    three.ac.wait_same("shared")
    assert_complete(checked("3", "--wait", "20"))


def test_a_cycle(three: Three, status: Path) -> None:
    """Every link is checked by itself; what comes home again is in scope nowhere twice."""
    c = three.bc.slave
    c.admin.add_peer("1", three.ab.master.cluster_key)
    c.admin.put_rows("ns:t", "g", 7, prefix="round")
    wait_until(lambda: b"round00000006" in three.ab.slave.admin.rows("ns:t"), 90, "it has gone round")
    for pair in (three.ab, three.bc, Pair(c, three.ab.master)):
        assert_complete(pair.verdict(status, "ns:t", "--wait", "20"))
    found = topology(three.ab)
    assert (found.exit_code, found.json["shape"]) == (0, "cyclic"), found
    began = time.monotonic()
    found = paths(three, "--wait", "20")
    print(f"paths of a cycle of three: {time.monotonic() - began:.1f} s")
    assert (found.exit_code, set(cells(found).values())) == (0, {"complete"}), found
    assert (len(found.json["edges"]), len(found.json["paths"]), found.json["loops"]) == (3, 6, [])
    text = tool_here("topology", conf=three.ab.master).stdout
    assert "see above" in text
    # A peer whose cluster is not there.
    c.admin.add_peer("lost", f"{c.cluster_key.rpartition(':')[0]}:/nowhere")
    found = topology(three.ab)
    assert (found.exit_code, "no HBase cluster" in found.json["problems"][0]) == (1, True), found
    c.admin.remove_peer("lost")


def queues(pair: Pair) -> Result:
    """`status-tool queues --json` on a pair's master."""
    return tool_here("queues", "--json", conf=pair.master)


def recovered(pair: Pair, dead: str) -> dict[str, Any] | None:
    """A claimed queue that was once that server's."""
    found = queues(pair).json["queues"]
    return next((q for q in found if q["live"] and q["recovered_from"][:1] == [dead]), None)


def test_servers_and_a_whole_cluster_die(three: Three, status: Path) -> None:
    """A backlog claimed twice, its holder having been killed as well: never complete until it has been shipped. At the
    same time c is down: b's link and queues say so, and there is no verdict; all of it is made up for afterwards.
    """
    a, b = three.ab.master, three.bc.master
    victim = a.add_region_server()
    first = victim.server_name
    move_table(a, "other", first)
    three.bc.slave.crash(three.bc.slave.region_servers[0])
    b.admin.put_rows("t", "g", 10, prefix="down")
    a.admin.disable_peer(PEER)
    a.admin.put_rows("other", "f", 10, prefix="twice")
    a.crash(victim)
    a.add_region_server()
    wait_until(lambda: recovered(three.ab, first), 60, "the dead server's queue has been claimed", interval=1)
    holder = (recovered(three.ab, first) or {})["holder"]

    # Meanwhile c is known to be dead.
    wait_until(lambda: topology(three.bc).exit_code == 1, 60, "c's region server is given up")
    assert "without a live region server" in topology(three.bc).json["problems"][0]
    waiting = queues(three.bc)
    assert (waiting.exit_code, waiting.json["totals"]["left_bytes"] > 0) == (1, True), waiting
    three.bc.slave.thrift.kill9()
    three.bc.write_master(status, "--table", "t")
    refused = three.bc.check(status, "--table", "t", "-q")
    assert (refused.exit_code, len(refused.stderr.strip().splitlines())) == (2, 1), refused
    # What does not lead to c, or from it, is checked: by streams alone what a has of a crashed server is in doubt.
    found = paths(three)
    assert found.exit_code == EXIT_CODES[found.json["verdict"]] != 0, found
    assert {cells(found)[name] for name in ("bc", "ba", "ca")} == {"unverifiable"}, found
    assert "complete" not in {cells(found)[name] for name in ("ac", "cb")}, found
    checked = {edge["from"] + edge["to"]: edge["evidence"] for edge in found.json["edges"]}
    assert checked == {"ab": "exact", "bc": None, "ca": None}, found
    assert "c: " in found.json["matrix"]["b"]["c"]["held_back_by"][0]
    held = found.json["lost"]["c"]["ns:t"]
    assert (held["a"]["newest_ms"] is not None, held["a"]["lacks"]) == (True, 0), held
    assert held["b"]["newest_ms"] is None, "it came there by way of a"
    assert held["b"]["passed_ms"] is not None

    three.bc.slave.launch()

    killed = next(server for server in a.region_servers if server.running and server.server_name == holder)
    a.crash(killed)
    twice = [first, holder]
    wait_until(
        lambda: (recovered(three.ab, first) or {}).get("recovered_from") == twice, 90, "claimed twice", interval=1
    )
    assert len((recovered(three.ab, first) or {})["wals"]) > 0
    result = three.ab.verdict(status, "other")
    assert result.exit_code in (1, 3), result
    assert f"{PEER}-{first}-{holder}" in json.dumps(result.json["problems"]), result
    a.admin.enable_peer(PEER)
    three.ab.wait_drained()
    assert b"twice00000009" in b.admin.rows("other")
    result = three.ab.verdict(status, "other", "--wait", "20")
    # Whichever server held the queue: if it is older than the peer, its tracker recorded that it had the peer in force.
    assert result.exit_code == 0, result
    assert any(first in notice and "settled" in notice for notice in result.json["notices"]), result
    assert {p["origin"] for p in result.json["problems"] if p["origin"] == first} == set(), result

    three.bc.slave.wait_ready()
    assert_complete(three.bc.verdict(status, "t", "--wait", "90"))
    assert b"down00000009" in three.bc.slave.admin.rows("t")


def test_a_crash_in_the_middle(three: Three) -> None:
    """A server of b dies with what a has sent and c has not got: no path over b is complete until its queue, claimed
    by another one, has been shipped.
    """
    b = three.bc.master
    victim = b.add_region_server()
    move_table(b, "t", victim.server_name)
    b.admin.disable_peer(PEER)
    three.ab.master.admin.put_rows("t", "f", 10, prefix="middle")
    wait_until(lambda: b"middle00000009" in b.admin.rows("t"), 60, "b has them")
    b.crash(victim)
    found = paths(three, "--table", "t", "--from", "a", "--from", "b")
    assert not {cells(found)[name] for name in ("bc", "ac")} & {"complete", "not connected"}, found
    assert b"middle00000009" not in three.bc.slave.admin.rows("t")
    b.admin.enable_peer(PEER)
    three.bc.wait_drained()
    found = paths(three, "--table", "t", "--from", "a", "--to", "c", "--wait", "30")
    assert (found.exit_code, cells(found)) == (0, {"ac": "complete"}), found
    assert b"middle00000009" in three.bc.slave.admin.rows("t")


def test_a_wal_that_is_lost(three: Three, status: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last test of these clusters: b's queue to c holds a WAL that is nowhere in HDFS. It is named with what it
    held, and holds back b and a.
    """
    monkeypatch.setattr(measured_queues, "NEW_WAL_MS", 1_000)
    b = three.bc.master.admin
    b.disable_peer(PEER)
    b.put_rows("t", "f", 5, prefix="gone")
    b.roll_wal()

    def closed() -> list[Any]:
        return [wal for queue in queues(three.bc).json["queues"] for wal in queue["wals"][:-1]]

    wait_until(lambda: bool(closed()), 30, "the WALs that were rolled are behind others in their queues")
    held = closed()
    for wal in held:
        b.hdfs_delete(wal["path"])
    time.sleep(2)
    found = queues(three.bc)
    assert {one["name"] for one in found.json["lost_wals"]} == {wal["name"] for wal in held}, found
    assert any("t" in one["tables"] for one in found.json["lost_wals"]), found
    assert "LOST: WAL" in tool_here("queues", conf=three.bc.master).stdout
    b.enable_peer(PEER)
    found = paths(three, "--from", "a", "--from", "b", "--to", "c")
    assert (found.exit_code, found.json["verdict"]) == (1, "incomplete"), found
    for source in "ab":
        assert any("nowhere in HDFS" in reason for reason in found.json["matrix"][source]["c"]["held_back_by"]), found
    result = three.bc.verdict(status, "t")
    assert any("remove the peer and add it again" in notice for notice in result.json["notices"]), result
