"""Three real clusters: a chain, then a cycle, several peers, filters, and files used where they do not belong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.test_verdicts import assert_complete, dump
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.pair import Pair, Result, tool_here, tracked_spec

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


def test_a_chain(three: Three, status: Path) -> None:
    """Edits relayed by b are asked of c with b's file; a's own file has nothing to say to c."""
    three.ab.master.admin.put_rows("t", "f", 20)
    three.bc.master.admin.put_rows("t", "f", 5, prefix="own")
    wait_until(lambda: len(three.bc.slave.admin.rows("t")) == 25, 60, "both have reached c")
    # b holds rows that a never had: by rows they differ, by what a has written they do not.
    assert_complete(three.ab.verdict(status, "t", "--wait", "20"))
    refused = three.ac.check(status, "--table", "t")
    assert (refused.exit_code, "does not replicate to this one" in refused.stderr) == (2, True), refused
    assert_complete(three.bc.verdict(status, "t", "--wait", "20"))
    assert sum(1 for row in dump(status) if row["kind"] == "stream") == 2
    found = topology(three.ab)
    assert (found.exit_code, found.json["shape"], len(found.json["clusters"])) == (0, "chain", 3), found


def test_two_peers_with_filters(three: Three, status: Path) -> None:
    """A second peer of a takes a namespace and one table to c: only these are asked of c, all of b."""
    a, c = three.ac.master.admin, three.ac.slave
    a.add_peer("2", c.cluster_key, namespaces=["ns"], table_cfs={"other": []})
    for table in ("ns:t", "other", "t"):
        a.put_rows(table, "f", 10, prefix="two")
    wait_until(lambda: len(c.admin.rows("ns:t")) == len(c.admin.rows("other")) == 10, 60, "both have reached c")
    three.ab.write_master(status)
    result = three.ac.check(status, "--wait", "20")
    assert_complete(result)
    assert (result.json["peer_id"], result.json["hbase"]["regions"]["complete"]) == ("2", 2)
    result = three.ab.check(status, "--wait", "20")
    assert_complete(result)
    assert (result.json["peer_id"], result.json["hbase"]["regions"]["complete"]) == ("1", 3)
    assert topology(three.ab).json["shape"] == "mixed"


def test_a_peer_that_filters_families(three: Three, status: Path) -> None:
    """Holes are expected, so the evidence is "ordered"."""
    a, c = three.ac.master.admin, three.ac.slave
    a.remove_peer("2")
    a.add_peer("2", c.cluster_key, table_cfs={"other": ["f"]})
    for start in range(3):
        a.put_rows("other", "g", 5, prefix="families", start=5 * start)
        a.put_rows("other", "f", 5, prefix="families", start=5 * start)
    wait_until(lambda: len(c.admin.rows("other")) == 25, 60, "family f has reached c")
    three.ab.write_master(status, "--table", "other")
    result = three.ac.check(status, "--table", "other", "--wait", "20")
    assert (result.exit_code, result.json["hbase"]["evidence"]) == (0, "ordered"), result
    a.remove_peer("2")


def test_a_cycle(three: Three, status: Path) -> None:
    """Every link is checked by itself; what comes home again is not asked of anybody twice."""
    c = three.bc.slave
    c.admin.add_peer("1", three.ab.master.cluster_key)
    c.admin.put_rows("ns:t", "g", 7, prefix="round")
    wait_until(lambda: b"round00000006" in three.ab.slave.admin.rows("ns:t"), 90, "it has gone round")
    for pair in (three.ab, three.bc, Pair(c, three.ab.master)):
        assert_complete(pair.verdict(status, "ns:t", "--wait", "20"))
    found = topology(three.ab)
    assert (found.exit_code, found.json["shape"]) == (0, "cyclic"), found
    text = tool_here("topology", conf=three.ab.master).stdout
    assert "see above" in text
    # A peer whose cluster is not there.
    c.admin.add_peer("lost", f"{c.cluster_key.rpartition(':')[0]}:/nowhere")
    found = topology(three.ab)
    assert (found.exit_code, "no HBase cluster" in found.json["problems"][0]) == (1, True), found
    c.admin.remove_peer("lost")
