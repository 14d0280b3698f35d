"""What a check asks, from headers and small rows alone; and what it refuses to ask."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from status_tool.errors import StatusFileError, StatusToolError, UsageError
from status_tool.explain.advice import UNDER_REPAIRS, _afterwards, advise, anew_option, check_of_copy
from status_tool.gather.snapshot import apply_shutdown
from status_tool.rules.context import build_context
from status_tool.runs.check import Check
from status_tool.runs.master_side import MasterSide
from status_tool.runs.question import Question, SideFacts, question_of, refuse_narrowed, refuse_since, shipped_by
from status_tool.runs.slave_side import slave_request
from status_tool.vocabulary.codes import CODES
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import BY_OPTION, RECORDED, SKEW_MS, Header
from status_tool.vocabulary.outcome import HBaseOutcome, NotReplicated, Outcome
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.selection import ChoosingFiles, PathMap
from status_tool.vocabulary.verdicts import Evidence as Level
from status_tool.vocabulary.verdicts import Verdict
from tests.judgement import verify_rows
from tests.unit.test_answer import holds

MASTER = Header("master", "m", 2_000, 1_000, coverage_ms=100, hdfs_paths=("/data",), notices=("from FILE",))
SLAVE = Header("slave", "s", 3_000, 3_000, notices=("from the slave",))
PEER = {"id": "1", "cluster_id": "s", "replicate_all": True}


def peer(**changed: Any) -> Row:
    """A `peer` row."""
    return {"kind": "peer", "name": "1", "detail": json.dumps({**PEER, **changed})}


def table(name: str, **scopes: int) -> Row:
    """A `table` row with the scope of each family."""
    families = {family: {"scope": scope} for family, scope in scopes.items()}
    return {"kind": "table", "table": name, "detail": json.dumps({"families": families})}


def facts(*rows: Row, header: Header = MASTER, **more: Any) -> SideFacts:
    """The master's side."""
    return SideFacts(header, rows, **more)


def question(master: SideFacts, scope: Scope | None = None, slave: SideFacts | None = None, **more: Any) -> Question:
    """What a check of these asks."""
    return question_of(master, slave or SideFacts(SLAVE), scope or Scope(), **more)


def test_tables_that_the_peer_does_not_ship_are_left_out() -> None:
    """Whether they have a descriptor or just a region; and they are named, with families that stay behind."""
    narrow = peer(replicate_all=False, table_cfs={"a": ["f"]})
    found = question(facts(narrow, table("a", f=1, g=1, h=0), table("b", f=1), region_tables=frozenset({"a", "c"})))
    assert found.left_out == ("b", "c")
    assert found.not_replicated == NotReplicated(("b",), (("a", "g"), ("a", "h")))
    assert found.queues.withheld == {"a": ("g",)}
    assert found.queues.families.listed == {"a": frozenset("f")}


@pytest.mark.parametrize(
    ("now", "scope", "lost"),
    [
        (peer(), Scope(), None),
        (peer(exclude_table_cfs={"b": []}), Scope(), "b"),
        (peer(exclude_table_cfs={"b": []}), Scope(tables=frozenset({"a"})), None),
        (peer(exclude_table_cfs={"a": ["g"]}), Scope(), "a"),
        (peer(exclude_table_cfs={"a": ["h"]}), Scope(), None),  # it was not replicated
        (peer(exclude_namespaces=["default"]), Scope(), "a, b, c"),
        (peer(id="2", replicate_all=False, table_cfs={"a": None, "b": None}), Scope(), "c"),
    ],
)
def test_what_file_asks_for_cannot_leave_the_scope_while_a_check_follows(
    now: Row, scope: Scope, lost: str | None
) -> None:
    """Somebody narrows the peer, or adds another one in its place: FILE's own entries would never count as missing."""
    tables = (table("a", f=1, g=1, h=0), table("b", f=1), table("local", f=0))
    file = facts(peer(), *tables, region_tables=frozenset({"c"}))
    asked = question(facts(now, *tables), scope)
    with nullcontext() if lost is None else pytest.raises(StatusFileError, match=rf"ships less than .* \({lost}\)"):
        refuse_narrowed(file, asked)


def test_what_any_peer_of_file_shipped_here_cannot_leave_the_scope() -> None:
    """FILE did not say which of two was meant; with --peer it is that one alone."""
    narrow = peer(id="2", replicate_all=False, table_cfs={"a": None})
    tables = (table("a", f=1), table("b", f=1))
    file, now = facts(peer(), narrow, *tables), facts(narrow, *tables)
    with pytest.raises(StatusFileError, match=r"ships less than .* \(b\)"):
        refuse_narrowed(file, question(now))
    refuse_narrowed(file, question(now, Scope(peer_id="2")))


def test_what_may_have_led_here_cannot_leave_the_scope() -> None:
    """`run -m` could not reach the slave's ZooKeeper, which the peer names by another host."""
    tables = (table("a", f=1), table("b", f=1))
    file = facts(peer(cluster_id=None, cluster_key="alias:2181:/hbase"), *tables)
    now = facts(peer(exclude_table_cfs={"b": []}), *tables)
    with pytest.raises(StatusFileError, match=r"ships less than .* \(b\).* select --peer ID, or"):
        refuse_narrowed(file, question(now))
    with pytest.raises(StatusFileError, match=r"ships less than .* \(b\).* --follow, or"):
        refuse_narrowed(file, question(now, Scope(peer_id="1")))


def test_a_file_of_before_the_peer_asks_for_nothing_while_a_check_follows() -> None:
    """As `run -m` that came too early: only what the newer looks have is in scope."""
    refuse_narrowed(facts(peer(cluster_id="elsewhere"), table("a", f=1)), question(facts(peer(), table("a", f=1))))


def test_a_peer_that_is_removed_between_two_looks_is_told() -> None:
    """As of a cluster in the middle of a path, which is read again."""
    with pytest.raises(StatusFileError, match="peer 9 was removed while its cluster was read again"):
        shipped_by(SideFacts(Header("master", "m", 1, 1)), "9", Scope())


@pytest.mark.parametrize(
    ("rows", "tables", "shipped"),
    [
        ((table("a", f=1),), {"a"}, {"a": ("f",)}),
        ((table("a", f=1),), {"a", "left_out"}, {"a": ("f",)}),
        ((table("a", f=1),), {"a", "b"}, None),
        ((table("a", f=1), {"kind": "table", "table": "b", "detail": "{}"}), {"a"}, None),
        ((), set[str](), None),
    ],
)
def test_of_a_table_without_a_descriptor_a_peer_ships_nobody_knows_what(
    rows: tuple[Row, ...], tables: set[str], shipped: dict[str, tuple[str, ...]] | None
) -> None:
    """It would look like one that is not replicated, as if a path to others stopped there."""
    master = facts(peer(exclude_table_cfs={"left_out": []}), *rows, region_tables=frozenset(tables))
    assert shipped_by(master, "1", Scope()) == shipped


def test_what_is_not_replicated_is_told_within_the_scope() -> None:
    found = question(facts(peer(), table("a", f=0), table("b", f=0)), Scope(tables=frozenset({"a"})))
    assert found.not_replicated == NotReplicated(("a",))


@pytest.mark.parametrize(
    ("ours", "theirs", "halves"), [("both", "hdfs", (False, True)), ("hbase", "both", (True, False))]
)
def test_only_halves_that_both_sides_hold_are_asked(ours: str, theirs: str, halves: tuple[bool, bool]) -> None:
    found = question(facts(peer(), header=replace(MASTER, half=ours)), slave=SideFacts(replace(SLAVE, half=theirs)))
    assert (found.scope.check_hbase, found.scope.check_hdfs) == halves
    assert (found.not_replicated is None, found.clusters is None) == (not halves[0], not halves[0])


@pytest.mark.parametrize(
    ("held", "left_out", "told"),
    [
        (("/copy",), (), ""),
        (("/",), (), ""),
        (("/copy/*",), (), "all of /copy:"),
        (("/data",), (), "all of /copy:"),
        (("/copy",), ("*.tmp",), "*.tmp, which it leaves out:"),
    ],
)
def test_a_file2_that_may_lack_files_of_the_slave(held: tuple[str, ...], left_out: tuple[str, ...], told: str) -> None:
    """They are missing then, and the printed copy does not help."""
    slave = SideFacts(replace(SLAVE, hdfs_paths=held, hdfs_left_out=left_out))
    scope = Scope(check_hbase=False, offline=True, path_map=PathMap.parse(["/data=/copy"]))
    found = [one for one in question(facts(peer()), scope, slave).notices if "FILE2" in one]
    assert [one.startswith(f"FILE2 may not hold {told}") for one in found] == [True] * bool(told)
    assert not any("FILE2" in one for one in question(facts(peer()), replace(scope, offline=False), slave).notices)


@pytest.mark.parametrize(
    ("offline", "moved", "path", "is_asked"),
    [
        (True, "", "/data/a", True),
        (True, "", "/other/a", False),
        (True, "/data=/copy", "/other/a", False),
        (True, "", "/data/a.tmp", False),
        (True, "", "/data/b.own", True),
        (False, "", "/data/a.tmp", False),
        (False, "/data=/copy", "/data/b.own", False),
        (False, "", "/data/a", True),
    ],
)
def test_what_file_says_nothing_of_is_not_extra(offline: bool, moved: str, path: str, is_asked: bool) -> None:
    """It was not compared: `run -m --exclude`, or `run -o FILE2` of all, made --strict-extra fail."""
    header = replace(MASTER, hdfs_paths=("/data",), hdfs_left_out=("/tmp", "*.tmp", "*.own"))
    slave = SideFacts(replace(SLAVE, hdfs_paths=("/",), hdfs_left_out=("/tmp", "*.own")))
    scope = Scope(check_hbase=False, offline=offline, path_map=PathMap.parse([moved] if moved else []))
    found = question(facts(peer(), header=header), scope, slave).files_of_slave
    # The name by which --map-path leads there is another matter.
    assert (ChoosingFiles(replace(found, path_map=PathMap())).path_of(path) is not None) is is_asked


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("roots", [(), ("/data",)])
def test_a_path_of_f_that_exclude_matches_is_compared_on_both_sides(roots: tuple[str, ...], offline: bool) -> None:
    """The original's FILE names no roots: the slave's files alone were left out, and all of FILE's were missing."""
    header, scope = replace(MASTER, hdfs_paths=roots), Scope(check_hbase=False, offline=offline)
    found = question(facts(header=header), scope, hdfs_paths=("/data/logs",), excluded=("logs",))
    for choosing in map(ChoosingFiles, (found.files, found.files_of_slave)):
        assert choosing.path_of("/data/logs/x") is not None
        assert choosing.path_of("/data/logs/y/logs") is None


@pytest.mark.parametrize(
    ("pool", "left_out", "is_refused"),
    [("file:", (), False), ("BP-1", ("/tmp", "/copy"), False), ("BP-1", ("/tmp",), True), ("", (), True)],
)
def test_a_file2_of_hdfs_tells_nothing_of_the_slaves_disk(
    pool: str, left_out: tuple[str, ...], is_refused: bool
) -> None:
    """HDFS may have a folder of the same path. FILE2 of both leaves that out."""
    slave = SideFacts(replace(SLAVE, hdfs_paths=("/",), hdfs_left_out=left_out, hdfs_pool_id=pool))
    scope = Scope(check_hbase=False, offline=True, path_map=PathMap.parse(["/data=file:/copy"]))
    with pytest.raises(UsageError, match="FILE2 is of the slave's HDFS") if is_refused else nullcontext():
        question(facts(peer()), scope, slave)


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/data", ("/data/.staging/keep",)),
        ("/d*", ("/data", "/data/.staging/keep")),
        ("/", ("/data", "/data/.staging/keep", "/other/.staging")),
        ("/data/.staging/keep", ()),
    ],
)
def test_a_narrower_check_asks_for_roots_of_file_that_a_listing_leaves_out(
    path: str, more: tuple[str, ...], offline: bool
) -> None:
    """FILE has their files, which were missing. One that was absent has none."""
    roots = ("/data", "/data/.staging/keep", "/data/.staging/none", "/other/.staging")
    header = replace(MASTER, hdfs_paths=roots, hdfs_absent=("/data/.staging/none",))
    file: Any = None
    scope = Scope(check_hbase=False, offline=offline)
    asked = slave_request(MasterSide(file, header), Check(Path("f"), scope, hdfs_paths=(path,)))
    assert asked.hdfs_paths == (path, *more)
    found = question(facts(header=header), scope, hdfs_paths=(path,), excluded=(".staging",))
    assert found.master.hdfs_paths == found.files.roots == asked.hdfs_paths
    for choosing in map(ChoosingFiles, (found.files, found.files_of_slave)):
        assert choosing.path_of("/data/.staging/keep/f") is not None
        assert choosing.path_of("/data/.staging/f") is None
    assert f"of HDFS only {path} (-f)" in found.answered(Outcome(None, None, (), 0)).limits


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize(
    ("root", "path", "inner", "file"),
    [
        ("/data/*/.staging", "/data/x", "/data/x/.staging", "/data/x/.staging/f"),
        ("/data/*/.staging", "/*/x", "/data/x/.staging", "/data/x/.staging/f"),
        ("/*/.staging", "/data/*", "/data/.staging", "/data/.staging/f"),
        ("/data/.staging", "/data/*/x", "/data/.staging/x", "/data/.staging/x/f"),
        ("/data/*y/.staging", "/data/x*", "/data/*y/.staging", "/data/xy/.staging/f"),
    ],
)
def test_a_narrower_check_asks_for_what_a_glob_of_file_has_in_its_paths(
    root: str, path: str, inner: str, file: str, offline: bool
) -> None:
    """A listing of the path leaves it out, so that each of FILE's files there was missing on a slave that has it."""
    header = replace(MASTER, hdfs_paths=("/data", root))
    scope = Scope(check_hbase=False, offline=offline)
    status: Any = None
    asked = slave_request(MasterSide(status, header), Check(Path("f"), scope, hdfs_paths=(path,)))
    assert inner in asked.hdfs_paths
    found = question(facts(header=header), scope, hdfs_paths=(path,))
    assert found.master.hdfs_paths == asked.hdfs_paths
    for choosing in map(ChoosingFiles, (found.files, found.files_of_slave)):
        assert choosing.path_of(file) == file
        # What matches FILE's glob alone is no extra file.
        assert (choosing.path_of("/data/zy/.staging/f") is not None) is holds(path, "/data/zy/.staging/f")


@pytest.mark.parametrize(
    ("given", "recorded", "there", "is_complete"),
    [
        ((), (), (), True),
        (("*",), (), ("*",), False),
        ((), ("/data*",), (), False),
        ((), ("*",), ("*",), False),
        ((), (), ("*",), False),
    ],
)
def test_a_file_system_of_which_all_is_left_out_proves_nothing(
    given: tuple[str, ...], recorded: tuple[str, ...], there: tuple[str, ...], is_complete: bool
) -> None:
    """One without files is complete, as where HBase alone uses it, whose folder may have another name; not if
    `--exclude` of the check, of FILE or of FILE2 leaves none.
    """
    own, its = ("/tmp", "/hbase"), ("/tmp", "/hbase2")
    header = replace(MASTER, hdfs_paths=("/",), hdfs_left_out=(*own, *recorded), hdfs_excluded=recorded)
    slave = SideFacts(replace(SLAVE, hdfs_paths=("/",), hdfs_left_out=(*its, *there), hdfs_excluded=there))
    found = question(facts(peer(), header=header), Scope(check_hbase=False), slave, excluded=given)
    outcome = verify_rows([], [], found.master, found.slave, found.scope)
    assert (outcome.verdict is Verdict.COMPLETE) is is_complete
    assert [problem.code for problem in outcome.problems] == ([] if is_complete else ["no-files"])
    for problem in outcome.problems:
        assert "--exclude leaves out all of it" in problem.detail
        assert "correct the -f file, the configured paths or --exclude, and record" in (problem.advice or "")


def test_a_peer_that_may_lead_here_is_asked_of_the_tables_in_scope() -> None:
    """What it alone ships would be taken for what no peer ships."""
    narrow = peer(replicate_all=False, table_cfs={"a": None})
    master = facts(narrow, peer(id="2", cluster_id="", cluster_key="zk:2181:/x"), table("a", f=1), table("b", f=1))
    with pytest.raises(StatusFileError, match=r"peer 2 may, too: .* it ships more \(b\)"):
        question(master)
    found = question(master, Scope(tables=frozenset({"a"})))
    assert (found.peer is not None, found.other_peers) == (True, ())


@pytest.mark.parametrize("peers", [(), (peer(), peer(id="2")), (peer(cluster_id="elsewhere"),)])
def test_files_need_no_peer(peers: tuple[Row, ...]) -> None:
    """Once the master is gone nobody can write a FILE of the HDFS half alone."""
    assert question(facts(*peers), Scope(check_hbase=False)).peer is None
    assert question(facts(*peers), slave=SideFacts(replace(SLAVE, half="hdfs"))).peer is None


@pytest.mark.parametrize("key", ["", "zk:2181:/by-another-name"])
def test_a_file_of_the_slave_itself_is_refused(key: str) -> None:
    with pytest.raises(StatusFileError, match=r"FILE is this cluster's own \(s\)"):
        question(facts(peer(), header=replace(MASTER, cluster_id="s", cluster_key=key)))


def test_a_file_that_needs_pruned_segments_is_refused() -> None:
    """But for its files."""
    pruned = SideFacts(replace(SLAVE, pruned={"m": 2_000}))
    with pytest.raises(StatusFileError, match="needs segments that are pruned"):
        question(facts(peer(), header=replace(MASTER, barrier_issued_ms=1_999)), slave=pruned)
    assert question(facts(peer()), Scope(check_hbase=False), pruned).scope.check_hdfs


@pytest.mark.parametrize(
    ("cluster_id", "key", "is_limit"), [("s", "", True), ("", "zk:2181:/x", True), ("other", "", False)]
)
def test_another_peer_that_leads_to_the_slave_is_a_limit(cluster_id: str, key: str, is_limit: bool) -> None:
    """What it alone ships is not checked; one whose cluster could not be queried may lead here."""
    both = (peer(), peer(id="2", cluster_id=cluster_id, cluster_key=key))
    found = question(facts(*both), Scope(peer_id="1", check_hdfs=False)).answered(Outcome(None, None, (), 0))
    expected = ["only what peer 1 ships (--peer), not what peer 2 does"] if is_limit else []
    assert found.limits == (*expected, "HDFS not checked")


def test_what_file_leaves_out_is_a_limit() -> None:
    """Of the check's own exclusions and of FILE's; those of FILE2 hide nothing of the master's."""
    header, slave = replace(MASTER, hdfs_excluded=("*.old",)), SideFacts(replace(SLAVE, hdfs_excluded=("x",)))
    found = question(facts(header=header), Scope(check_hbase=False), slave, excluded=("tmp",))
    assert found.answered(Outcome(None, None, (), 0)).limits == (
        "HBase not checked",
        "of HDFS nothing that matches tmp (--exclude)",
        "of HDFS nothing that matches *.old (--exclude, held by FILE)",
    )


def test_files_of_the_original_tool_have_no_peer() -> None:
    found = question(facts(header=replace(MASTER, evidence="timestamps"), legacy=True))
    assert (found.peer, found.clusters, found.left_out, found.not_replicated) == (None, None, (), None)


def test_a_path_that_file_does_not_hold_is_absent() -> None:
    """What `-f` names narrows the question, and never lets unknown files pass for checked ones."""
    found = question(facts(peer()), hdfs_paths=("/data/x", "/other"), excluded=("*.tmp",))
    assert (found.master.hdfs_paths, found.master.hdfs_absent) == (("/data/x", "/other"), ("/other",))
    assert (found.files.within, found.files.left_out) == (("/data/x", "/other"), ("*.tmp",))
    limits = found.answered(Outcome(None, None, (), 0)).limits
    assert limits == ("of HDFS only /data/x, /other (-f)", "of HDFS nothing that matches *.tmp (--exclude)")


@pytest.mark.parametrize(
    ("roots", "left_out", "held", "unheld"),
    [
        (("/",), (), ("/", "/data", "/tmp2"), ("/tmp", "/tmp/mine", "/data/.staging/1", "/user/me/.Trash")),
        (("/tmp/mine", "/"), (), ("/tmp/mine", "/tmp/mine/a"), ("/tmp/other", "/tmp/mine/_temporary/a")),
        (("/",), ("/hbase", "*.log"), ("/hbase2", "/data/log"), ("/hbase/mine", "/data/x.log", "/x.log/y")),
        (("/data/*",), ("/data/a/b",), ("/data/a", "/data/*/c"), ("/data/a/b", "/data/a/b/c", "/data/.staging/1")),
        (("/user/*/.Trash",), (), ("/user/me/.Trash/1",), ("/user/.Trash/.Trash",)),
        # FILE's own glob may match less than `-f`'s, so that other files were never listed.
        (
            ("/data/[!_]*",),
            (),
            ("/data/a", "/data/[!_]*", "/data/[!_]*/x", "/data/a/*"),
            ("/data/*", "/data/_a", "/data/b*"),
        ),
        (("/data/?",), (), ("/data/a/*/c", "/data/?"), ("/data/*", "/data/[ab]", "/data/ab")),
        (("/data/*",), (), ("/data/*", "/data/?", "/data/[ab]/c", "/data/a"), ("/*/a", "/data", "/*", "/")),
        (("/data",), (), ("/data/*", "/data/a/?"), ("/dat?", "/*", "/data2/*")),
        # It names in plain what follows its pattern: `-f` itself would list that, FILE lacks it.
        *(
            ((root,), ("/tmp", left_out), held, unheld)
            for root, left_out, held, unheld in (
                ("/data", "/data/a/tmp", ("/data/*/x", "/data/*"), ("/data/*/tmp", "/*/a/tmp/x", "/data/[a-c]/tmp")),
                ("/*/*", "/data/a/tmp", ("/*/*/x", "/*/*/*"), ("/*/*/tmp",)),
                ("/*/[a-c]", "/data/a", ("/other/a", "/*/[a-c]"), ("/*/a", "/d*/a/x")),
                ("/data", "/data/*/_*", ("/data/*/x/", "/data/?"), ("/data/*/_x", "/data/*/y/_x")),
                ("/", "/hbase", ("/*/x", "/data/*/hbase", "/h*", "/hb*/x"), ()),
            )
        ),
    ],
)
def test_a_path_that_file_left_out_is_absent(
    roots: tuple[str, ...], left_out: tuple[str, ...], held: tuple[str, ...], unheld: tuple[str, ...]
) -> None:
    """It lies in a path that FILE holds, but what FILE leaves out there is not known to be on the slave."""
    header = replace(MASTER, hdfs_paths=roots, hdfs_left_out=left_out)
    found = question(facts(peer(), header=header), hdfs_paths=(*held, *unheld))
    assert found.master.hdfs_absent == unheld


def test_a_path_below_one_that_did_not_exist_is_absent() -> None:
    header = replace(MASTER, hdfs_paths=("/data", "/gone", "/none/*"), hdfs_absent=("/gone", "/none/*"))
    asked = ("/data/x", "/gone/sub/x", "/gone", "/none/a", "/none/?/b")
    assert question(facts(peer(), header=header), hdfs_paths=asked).master.hdfs_absent == asked[1:]


def test_the_outcome_tells_who_was_compared() -> None:
    found = question(facts(peer(enabled=False), table("a", f=0)))
    half = HBaseOutcome(Verdict.COMPLETE, Level.EXACT, {})
    outcome = found.answered(Outcome(half, None, (), 0, notices=("from the rules", "from FILE")))
    assert (outcome.master_cluster_id, outcome.slave_cluster_id, outcome.peer_id) == ("m", "s", "1")
    assert outcome.notices[:2] == ("from FILE", "from the slave")
    assert "disabled" in outcome.notices[2]
    assert outcome.notices[3:] == ("from the rules",)
    assert outcome.queued_bytes is None
    counted = replace(found, queues=replace(found.queues, left_bytes=7))
    assert counted.answered(outcome).queued_bytes == 7
    assert counted.answered(replace(outcome, hbase=None)).queued_bytes is None
    assert outcome.hbase is not None
    assert outcome.hbase.not_replicated == NotReplicated(("a",))
    assert [link.target for link in outcome.clusters.links] == ["s"] if outcome.clusters else False


SILENT = {"kind": "server", "server": "h,1,1", "live": True, "detail": '{"sink_hook":false}'}


@pytest.mark.parametrize(
    ("master", "slave", "scope", "kind", "message"),
    [
        (facts(peer()), SideFacts(SLAVE, (SILENT,)), Scope(), StatusFileError, "HBASE-27529"),
        (facts(peer()), SideFacts(replace(SLAVE, cluster_id="m")), Scope(), StatusFileError, "this cluster's own"),
        (facts(peer(cluster_id="x")), SideFacts(SLAVE), Scope(), StatusFileError, "does not replicate to this one"),
        (facts(), SideFacts(SLAVE), Scope(), StatusFileError, "no replication peer"),
        (facts(peer()), SideFacts(SLAVE), Scope(since=Baseline(1_001)), UsageError, "after the cut"),
        (
            facts(peer(), header=replace(MASTER, half="hbase")),
            *(SideFacts(replace(SLAVE, half="hdfs")), Scope(), UsageError, "nothing to check"),
        ),
        (
            facts(peer(), header=replace(MASTER, hdfs_pool_id="BP-1")),
            *(SideFacts(replace(SLAVE, hdfs_pool_id="BP-1")), Scope(), StatusFileError, "same HDFS"),
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    master: SideFacts, slave: SideFacts, scope: Scope, kind: type[StatusToolError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        question_of(master, slave, scope)


@pytest.mark.parametrize("event_ms", [MASTER.cut_ms - 5, MASTER.cut_ms + 5])
def test_the_options_that_accept_an_event_are_never_refused(event_ms: int) -> None:
    """It may have happened after FILE's cut, or on a slave whose clock is ahead."""
    option = anew_option("t", event_ms, MASTER.cut_ms)
    told = re.fullmatch(r"--forget t --since t=(\d+)", option)
    assert told is not None, option
    assert int(told[1]) == MASTER.cut_ms
    refuse_since(MASTER, Baseline(by_table={"t": int(told[1])}))


@pytest.mark.parametrize("after_ms", [-1_000_000, 5])
def test_the_word_for_a_copy_is_never_refused(after_ms: int) -> None:
    """Of a hole at the end, or of what is behind under load, it has to reach beyond FILE's cut."""
    cut_ms = 2_000_000
    master = replace(MASTER, cut_ms=cut_ms)
    advice = _afterwards(Finding("gap", table="t", repair_to_ms=cut_ms + after_ms), master)
    told = re.search(r"Where the master is gone, ((-s 2000000 )?--forget t --since t=(\d+)) takes your word", advice)
    assert told is not None, advice
    assert bool(told[2]) is (after_ms > 0)
    refuse_since(master, Baseline(by_table={"t": int(told[3])}))
    # With a master without trackers no rows are compared, so that the word is all there is.
    witnessed = replace(master, evidence=Level.WITNESSED)
    assert check_of_copy("t", cut_ms + after_ms, master).endswith("--table t --rows --master-conf DIR")
    assert check_of_copy("t", cut_ms + after_ms, witnessed).endswith(f"--table t {told[1]}")
    assert "--rows" not in _afterwards(Finding("gap", table="t", repair_to_ms=cut_ms), witnessed)


def test_a_file_from_a_witness_takes_no_rows_and_advice_says_what_does() -> None:
    """Of each code: an option that is printed must not be refused."""
    for evidence in (Level.EXACT, Level.WITNESSED):
        master = replace(MASTER, evidence=evidence)
        context = build_context([], [], [], master, SLAVE, Scope())
        for code in CODES:
            finding = Finding(code, table="t", written_to_ms=5)
            for advice in (advise(finding, context), advise(finding, context, in_words=True)):
                is_told = "takes no --rows: compare by HashTable and SyncTable, then --forget t" in (advice or "")
                assert is_told == ("--rows" in (advice or "") and evidence is Level.WITNESSED), code


def test_no_repair_is_promised_for_a_table_that_file_does_not_name() -> None:
    """Commands need its name, so there are none under Repairs."""
    context = build_context([], [], [], MASTER, SLAVE, Scope())
    for code in CODES:
        advice = advise(Finding(code, region="r", written_to_ms=5), context, in_words=True) or ""
        assert UNDER_REPAIRS not in advice, code


def test_a_crash_in_the_shutdown_can_be_accepted() -> None:
    """It lies after the recorded time, which each new FILE would have again."""
    header = replace(MASTER, shutdown_ms=MASTER.cut_ms, shutdown_from=RECORDED, barrier_issued_ms=MASTER.cut_ms + 50)
    crashed = Baseline(MASTER.cut_ms + 20)
    with pytest.raises(UsageError, match=rf"; -s {MASTER.cut_ms + 50} checks what was written after the shutdown"):
        refuse_since(header, crashed)
    later = apply_shutdown(header, MASTER.cut_ms + 50, BY_OPTION, MASTER.cut_ms + 50)
    refuse_since(later, crashed)
    with pytest.raises(UsageError, match=r"or give an earlier time$"):
        refuse_since(MASTER, crashed)


@pytest.mark.parametrize(
    ("theirs", "ours", "refused"),
    [
        ("http://localhost:9870 (BP-1)", "http://localhost:9870 (BP-2)", False),
        ("file:/export", "file:/export", False),
        ("http://localhost:9870", "http://localhost:9870", True),
    ],
)
def test_two_file_systems_of_one_name(theirs: str, ours: str, refused: bool) -> None:
    """Each host has its own `localhost`, and its own folders."""
    master = facts(header=replace(MASTER, cluster_id="", cluster_key=theirs, half="hdfs"))
    slave = SideFacts(replace(SLAVE, cluster_id="", cluster_key=ours, half="hdfs"))
    with pytest.raises(StatusFileError, match="own") if refused else nullcontext():
        question(master, slave=slave)


def test_what_the_queues_prove_goes_by_the_masters_coverage_and_by_the_slaves_age() -> None:
    """A server that nobody knows is one of that time; what was shipped before the slave was there went elsewhere."""
    summary = {
        **{"consistent": True, "unsplit": [], "hfile_refs": {"1": {"since_ms": 5, "files": 0}}},
        "writers": {"b,1,900": {"opened_ms": 950, "modified_ms": 960}},
    }
    row = {"kind": "queue", "name": None, "detail": json.dumps(summary)}
    header = replace(MASTER, coverage_ms=900, barrier_issued_ms=1_000)
    master = facts(peer(created_ms=1, modified_ms=1), row, header=header)
    found = question(master, slave=SideFacts(replace(SLAVE, state_since_ms=70_000))).queues
    assert [one.split(" ")[0] for one in found.strays] == ["b,1,900"]
    assert found.loads_from_ms == 70_000 + SKEW_MS
