"""Descriptors of both sides: what the slave keeps less of is drift, what differs otherwise is reported."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from status_tool.rules.descriptors import TTL_FOREVER, compare_descriptors, is_retention, keeps_more
from status_tool.rules.peers import REPLICAS_ENDPOINT
from status_tool.sources.meta import described
from status_tool.vocabulary.scope import Baseline
from status_tool.vocabulary.verdicts import Verdict
from tests.unit.test_evidence_reference import HBASE, MASTER, OURS, SLAVE, THEIRS, changed, check, only

FAMILY = {
    **{"scope": 1, "versions": 3, "min_versions": 1, "ttl": 86_400},
    **{"keep_deleted": "TTL", "new_version_behavior": False, "mob": False},
}
TABLE: dict[str, Any] = {
    "families": {"f": FAMILY, "local": FAMILY},
    "durability": "USE_DEFAULT",
    "coprocessors": [],
    "regions": 1,
}


def slave(family: dict[str, Any] | None = None, **table: Any) -> dict[str, Any]:
    """The slave's descriptor where it differs."""
    return {**TABLE, "families": {"f": {**FAMILY, **(family or {})}, "local": FAMILY}, **table}


LESS: list[tuple[dict[str, Any], str]] = [
    (slave({"versions": 1}), "VERSIONS of family f is 1 on the slave, 3 on the master"),
    (slave({"min_versions": 0}), "MIN_VERSIONS of family f is 0 on the slave, 1 on the master"),
    (slave({"ttl": 60}), "TTL of family f is 60 on the slave, 86400 on the master"),
    (slave({"keep_deleted": "FALSE"}), "KEEP_DELETED_CELLS of family f is FALSE on the slave, TTL on the master"),
    (slave({"keep_deleted": "TRUE"}), "TRUE on the slave, TTL on the master: markers of deletes"),
    (slave({"new_version_behavior": True}), "NEW_VERSION_BEHAVIOR of family f is True on the slave, False on"),
    (slave(durability="SKIP_WAL"), "durability SKIP_WAL on the slave"),
    (slave(durability="ASYNC_WAL"), "durability ASYNC_WAL on the slave"),
]
OTHER: list[tuple[dict[str, Any], str]] = [
    (slave({"versions": 5}), "VERSIONS of family f is 5 on the slave"),
    (slave({"ttl": TTL_FOREVER}), "TTL of family f is FOREVER on the slave"),
    (slave({"ttl": TTL_FOREVER, "min_versions": 0}), "MIN_VERSIONS of family f is 0 on the slave"),
    (slave({"mob": True}), "IS_MOB of family f is True on the slave"),
    (slave(coprocessors=["org.Own"]), "coprocessors org.Own on the slave, none on the master"),
]


def judged(
    theirs: dict[str, Any], ours: dict[str, Any] = TABLE, *accepted: str, back: dict[str, Any] | None = None
) -> Any:
    """The verdict of two descriptors; `back` is a peer of the slave."""
    scope = replace(HBASE, accepted_drift=frozenset(accepted))
    rows = (changed(OURS, "table", detail=json.dumps(ours)), changed(THEIRS, "table", detail=json.dumps(theirs)))
    peer = {"kind": "peer", "name": "back", "detail": json.dumps({"id": "back", **(back or {})})}
    return check(rows[0], [*rows[1], *([peer] if back else [])], scope)


@pytest.mark.parametrize(("theirs", "words"), LESS)
def test_a_slave_that_keeps_less_is_not_complete_until_that_is_accepted(theirs: dict[str, Any], words: str) -> None:
    """Applied is not kept: both values are named, and so is the way out."""
    outcome = judged(theirs)
    problem = only(outcome)
    assert (outcome.verdict, outcome.exit_code, problem.table) == (Verdict.UNVERIFIABLE, 3, "ns:t")
    assert words in problem.detail
    assert "--accept-drift ns:t" in str(problem.advice)
    assert "accepted" not in " ".join(outcome.notices)
    accepted = judged(theirs, TABLE, "ns:t")
    assert (accepted.verdict, accepted.problems) == (Verdict.COMPLETE, ())
    assert any("accepted (--accept-drift)" in notice and words in notice for notice in accepted.notices)
    assert judged(theirs, TABLE, "ns:other").verdict is Verdict.UNVERIFIABLE


def test_a_time_to_live_of_minus_one_is_none() -> None:
    """HBase takes it for FOREVER, and less than any other number would be less of it."""
    forever, endless = slave({"ttl": TTL_FOREVER, "min_versions": 0}), slave({"ttl": -1, "min_versions": 0})
    words = "TTL of family f is 86400 on the slave, FOREVER on the master"
    assert words in only(judged(slave({"min_versions": 0}), endless)).detail
    assert not any("differs" in notice for notice in judged(endless, forever).notices)
    assert judged(endless, slave({"min_versions": 1, "ttl": TTL_FOREVER})).verdict is Verdict.COMPLETE


@pytest.mark.parametrize(("theirs", "words"), OTHER)
def test_what_differs_otherwise_is_told(theirs: dict[str, Any], words: str) -> None:
    """No alarm."""
    outcome = judged(theirs)
    assert outcome.verdict is Verdict.COMPLETE
    assert any(words in notice for notice in outcome.notices)


def test_new_version_behavior_on_both_sides_counts_what_comes_in_one_batch_as_deleted() -> None:
    """A put after a delete of the same timestamp stays visible on the master only."""
    both = slave({"new_version_behavior": True})
    problem = only(judged(both, both))
    assert "NEW_VERSION_BEHAVIOR of family f: a delete and a put of one timestamp" in problem.detail
    assert judged(both, both, "ns:t").verdict is Verdict.COMPLETE


def test_coprocessors_of_a_table_are_named_where_both_sides_have_them() -> None:
    """They may let the slave's region skip what the sink has written."""
    both = slave(coprocessors=["org.Own"])
    (notice,) = judged(both, both).notices
    assert "tables with coprocessors of their own: ns:t (org.Own)" in notice
    assert judged(both, both).verdict is Verdict.COMPLETE


def test_equal_descriptors_say_nothing() -> None:
    """Nor does a family that is not replicated."""
    assert judged(TABLE).notices == ()
    local = {**TABLE["families"], "local": {**FAMILY, "scope": 0}}
    less = {**TABLE, "families": {"f": FAMILY, "local": {**FAMILY, "versions": 1}}}
    assert judged(less, {**TABLE, "families": local}).notices == ()


def test_accepting_what_is_not_there_is_told() -> None:
    """An option is never ignored."""
    notices = judged(TABLE, TABLE, "ns:t", "ns:other").notices
    assert [name for name in ("ns:t", "ns:other") if any(f"table {name}: nothing to accept" in n for n in notices)] == [
        "ns:t",
        "ns:other",
    ]


def test_a_table_of_the_slave_that_no_tracker_has_described_is_a_doubt() -> None:
    """Thrift knows its families alone: it may keep less. So it is where trackers cannot list all tables in time."""
    problem = only(judged({"families": ["f", "local"], "regions": 1}))
    assert (problem.code, problem.table) == ("not-described", "ns:t")
    assert "of the slave's table" in problem.detail


@pytest.mark.parametrize("old", [{"f": {"scope": 1}}, {"f": {}}])
def test_descriptors_of_earlier_trackers_are_not_compared(old: Any) -> None:
    outcome = judged({"families": old, "regions": 1}, {**TABLE, "families": {"f": FAMILY}})
    assert outcome.verdict is Verdict.COMPLETE
    assert any("were not compared" in notice and "ns:t" in notice for notice in outcome.notices)


OWN: dict[str, Any] = {
    **TABLE,
    "written_by": {"": 20_000, MASTER.cluster_id: 30_000},
    "deleted_by": {"": 15_000, f"x,{MASTER.cluster_id}": 30_000},
}
"""A table of the slave that its own clients have written to."""


@pytest.mark.parametrize(
    "written", [{"written_by": {"": 20_000}}, {"written_by": {SLAVE.cluster_id: 20_000}}, {"skipped_ms": 20_000}]
)
def test_what_the_slaves_own_clients_wrote_is_a_doubt(written: dict[str, Any]) -> None:
    """They may have deleted what had arrived. HBase's Import names the cluster it writes to; some bypass the WAL."""
    theirs = {**TABLE, "arrived_ms": 1, **written}
    outcome = judged(theirs)
    problem = only(outcome)
    assert (outcome.exit_code, problem.code, problem.table) == (3, "slave-written", "ns:t")
    assert "last wrote to the table at 1970-01-01T00:00:20.000Z" in problem.detail
    assert "--accept-drift ns:t accepts them for good" in str(problem.advice)
    assert "--forget ns:t --since ns:t=" in str(problem.advice)
    assert "accepted" not in " ".join(outcome.notices)
    accepted = judged(theirs, TABLE, "ns:t")
    assert accepted.verdict is Verdict.COMPLETE
    assert ("by others than this master: ns:t" in " ".join(accepted.notices)) is ("written_by" in written)
    assert "last at 1970-01-01T00:00:20.000Z, which was accepted (--accept-drift)" in " ".join(accepted.notices)
    assert "nothing to accept" not in " ".join(accepted.notices)


def test_own_writes_before_anything_arrived_may_mask_what_arrives_later() -> None:
    """A delete hides older cells whenever they come, and so does a newer version."""
    for arrived_ms, verdict in {60_000: Verdict.UNVERIFIABLE, None: Verdict.COMPLETE}.items():
        assert judged({**TABLE, "arrived_ms": arrived_ms, "written_by": {"": 20_000}}).verdict is verdict


@pytest.mark.parametrize(
    ("peer", "verdict"),
    [
        ({}, Verdict.COMPLETE),
        ({"created_ms": 15_001}, Verdict.UNVERIFIABLE),
        ({"replicate_all": False, "table_cfs": {"ns:t": None}}, Verdict.COMPLETE),
        ({"replicate_all": False, "table_cfs": {"ns:other": None}}, Verdict.UNVERIFIABLE),
        ({"exclude_namespaces": ["ns"]}, Verdict.UNVERIFIABLE),
        ({"exclude_table_cfs": {"ns:t": ["f"]}}, Verdict.UNVERIFIABLE),
        ({"endpoint": REPLICAS_ENDPOINT}, Verdict.UNVERIFIABLE),
    ],
)
def test_a_slave_that_ships_the_table_itself_has_clients_of_its_own(peer: dict[str, Any], verdict: Verdict) -> None:
    """Two masters, or one of a ring or a chain: what they write is told, and no alarm, unless it is older than that."""
    theirs = {**TABLE, "arrived_ms": 1, "written_by": {"": 20_000}, "first_written_by": {"": 15_000}}
    assert judged(theirs, back={"created_ms": 15_000, **peer}).verdict is verdict


@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ({"raised_ms": {"f": 15_000}}, Verdict.COMPLETE),
        ({"raised_ms": {"f": 15_001}}, Verdict.UNVERIFIABLE),
        ({"skipped_ms": 1}, Verdict.UNVERIFIABLE),
    ],
)
def test_own_writes_that_no_peer_of_the_slave_could_ship(events: dict[str, Any], verdict: Verdict) -> None:
    """Before the family's scope was raised there, and beside the WAL, whatever peer has been there all the time."""
    theirs = {**TABLE, "arrived_ms": 1, "written_by": {"": 20_000}, "first_written_by": {"": 15_000}, **events}
    assert judged(theirs, back={"created_ms": 1}).verdict is verdict


@pytest.mark.parametrize("arrived", [{}, {"arrived_ms": 200_000}])
@pytest.mark.parametrize("event", [{"first_born_ms": 1, "born_ms": 100_000}, {"dropped_ms": {"f": 100_000}}])
@pytest.mark.parametrize(("first_ms", "codes"), [(50_000, {"emptied"}), (150_000, set())])
def test_what_a_slave_has_lost_that_it_had_shipped_to_the_master(
    arrived: dict[str, Any], event: dict[str, Any], first_ms: int, codes: set[str]
) -> None:
    """As when failing back: the master has it and does not ship it back, and the first arrival is later."""
    own = {"written_by": {"": first_ms}, "first_written_by": {"": first_ms}}
    outcome = judged({**TABLE, **arrived, **event, **own}, back={"created_ms": 1})
    assert {problem.code for problem in outcome.problems} == codes


@pytest.mark.parametrize(
    ("back", "codes"),
    [
        # It is younger than the first own write, which the master may lack: all that came later has come to it.
        ({"created_ms": 45_000}, {"emptied"}),
        # It is gone, or was added again: nobody told the master of what clients have changed since.
        ({"created_ms": 60_000}, {"emptied", "slave-written"}),
        (None, {"emptied", "slave-written"}),
    ],
)
@pytest.mark.parametrize("ids", [SLAVE.cluster_id, f"another,{SLAVE.cluster_id}"])
def test_what_has_passed_the_slave_was_there_whatever_peers_it_has_now(
    ids: str, back: dict[str, Any] | None, codes: set[str]
) -> None:
    """The master has it, and does not ship it back: nothing that happened to the slave's table since is expected."""
    events = {"written_by": {"": 50_000}, "first_written_by": {"": 40_000}}
    ours = {**TABLE, "first_written_by": {ids: 50_000}}
    lost = {**TABLE, **events, "first_born_ms": 1, "born_ms": 100_000}
    assert {problem.code for problem in judged(lost, ours, back=back).problems} == codes
    kept = judged({**TABLE, **events, "first_born_ms": 1, "born_ms": 1}, ours, back=back)
    assert {problem.code for problem in kept.problems} == codes - {"emptied"}
    elsewhere = {**TABLE, "first_written_by": {"another": 50_000}}
    assert judged(lost, elsewhere, back=back).verdict is Verdict.COMPLETE


def test_a_table_without_scope_on_the_slave_is_told_to_nobody() -> None:
    """Whatever peers the slave has. So is one of which only the families are known."""
    local = {name: {**options, "scope": 0} for name, options in TABLE["families"].items()}
    events = {"arrived_ms": 1, "written_by": {"": 20_000}, "first_written_by": {"": 20_000}}
    for families, is_told in ((TABLE["families"], True), (local, False), (list(local), False)):
        outcome = judged({**TABLE, **events, "families": families}, back={"created_ms": 1})
        codes = {problem.code for problem in outcome.problems}
        assert ("slave-written" not in codes) == is_told


def test_the_first_own_write_counts_whatever_it_names_as_its_cluster() -> None:
    """Nobody was told of it before the peer was there."""
    own = {
        "written_by": {"": 20_000, SLAVE.cluster_id: 20_000},
        "first_written_by": {"": 9_000, SLAVE.cluster_id: 15_000},
    }
    assert only(judged({**TABLE, "arrived_ms": 1, **own}, back={"created_ms": 9_001})).code == "slave-written"


@pytest.mark.parametrize(
    ("kept", "families", "verdict"),
    [
        ({"own_ms": 20_000}, ["f", "local"], Verdict.COMPLETE),
        ({"own_ms": 10_000, "written_ms": 25_000}, ["f", "local"], Verdict.UNVERIFIABLE),
        ({"written_ms": 25_000}, ["f", "local"], Verdict.UNVERIFIABLE),
        # Of some families: it says nothing of what happened to all.
        ({"own_ms": 20_000}, ["local"], Verdict.UNVERIFIABLE),
    ],
)
def test_accepted_or_compared_own_writes_are_known(kept: dict[str, int], families: list[str], verdict: Verdict) -> None:
    """Any other is one that came later, whatever the clocks show."""
    proof = {"until_ms": 15_000, "families": families, "seen": kept, "by": "rows"}
    theirs = {**TABLE, "arrived_ms": 1, "written_by": {"": 20_000}, "proven": {MASTER.cluster_id: proof}}
    assert judged(theirs).verdict is verdict


def test_what_passes_beside_replication_is_told() -> None:
    """Writes of others on the slave, deletes among them, and tags, with the newest time; a word covers them."""
    outcome = judged(OWN, {**TABLE, "tagged_ms": 18_000}, "ns:t")
    assert outcome.verdict is Verdict.COMPLETE
    _, written, tagged = outcome.notices
    assert "ns:t (last 1970-01-01T00:00:20.000Z, deletes among them, last 1970-01-01T00:00:15" in written
    assert "; by its own clients)" in written
    assert "ns:t (last 1970-01-01T00:00:18.000Z)" in tagged
    scope = replace(HBASE, since=Baseline(20_000))
    rows = (changed(OURS, "table", detail=json.dumps(TABLE)), changed(THEIRS, "table", detail=json.dumps(OWN)))
    assert "by others" not in " ".join(check(*rows, scope=scope).notices)
    assert judged({**TABLE, "written_by": None}).notices == ()
    unknowns: tuple[Any, ...] = ("x", True, [], None)
    for unknown in unknowns:
        assert judged(TABLE, {**TABLE, "tagged_ms": unknown}).notices == ()


@pytest.mark.parametrize("passed", ["b", "b,c"])
def test_another_master_is_one_of_others(passed: str) -> None:
    """What it deletes on the slave may be what this master has written."""
    by_others = {"written_by": {passed: 20_000}, "deleted_by": {passed: 15_000, MASTER.cluster_id: 1}}
    outcome = judged({**TABLE, "arrived_ms": 1, **by_others})
    (notice,) = outcome.notices
    assert outcome.verdict is Verdict.COMPLETE
    assert "by others than this master: ns:t (last 1970-01-01T00:00:20.000Z, deletes among them, last" in notice
    assert f"; through {passed.replace(',', ' and ')})" in notice


@pytest.mark.parametrize("value", [None, "x", True, [], {}, 1e99])
@pytest.mark.parametrize("key", [*FAMILY, "durability", "coprocessors"])
def test_values_that_nobody_can_understand_are_not_compared(key: str, value: Any) -> None:
    """A sealed file may hold anything."""
    theirs = slave(**{key: value}) if key in TABLE else slave({key: value})
    compare_descriptors(TABLE, theirs, ["f", "local"])
    compare_descriptors(theirs, TABLE, ["f", "local"])


def test_thrift_says_what_is_there_and_trackers_what_it_is_like() -> None:
    """A family that was dropped since the trackers wrote is none."""
    known = {"families": {"f": FAMILY, "gone": FAMILY}, "durability": "SYNC_WAL"}
    assert described(["f"], known) == {"families": {"f": FAMILY}, "durability": "SYNC_WAL"}
    assert described(["f"], None) == {"families": ["f"]}
    assert described(["f"], {"families": ["f"]}) == {"families": ["f"]}


def test_a_family_that_was_added_since_the_trackers_wrote_is_not_described() -> None:
    """It may keep less, and what was shipped before it was there arrives all the same."""
    table = described(["f", "local"], {**TABLE, "families": {"local": TABLE["families"]["local"]}})
    problem = only(judged({**table, "regions": 1}))
    assert (problem.code, problem.table) == ("not-described", "ns:t")


@pytest.mark.parametrize(
    ("one", "other", "is_more", "is_less"),
    [
        ([1, 0, 2**31 - 1, 0, 0, 1], [3, 0, 2**31 - 1, 0, 0, 1], True, False),
        ([3, 0, 60, 0, 0, 1], [3, 0, 2**31 - 1, 0, 0, 1], True, False),
        ([3, 0, 60, 0, 0, 1], [3, 0, -1, 0, 0, 1], True, False),
        ([3, 1, 60, 0, 0, 1], [3, 2, 60, 0, 0, 1], True, False),
        ([3, 0, 2**31 - 1, 0, 0, 1], [3, 2, 2**31 - 1, 0, 0, 1], False, False),
        ([3, 0, 60, 0, 0, 1], [3, 0, 60, 1, 0, 1], True, True),
        ([3, 0, 60, 1, 0, 1], [3, 0, 60, 2, 0, 1], True, True),
        ([3, 0, 60, 0, 1, 1], [3, 0, 60, 0, 0, 1], True, True),
        ([3, 0, 60, 0, 0, 0], [3, 0, 60, 0, 0, 1], True, False),
        ([3, 0, 60, 0, 0, 1], [3, 0, 60, 0, 0, 1], False, False),
        # What was stored in MOB files is a reference once nothing resolves it. Earlier trackers do not tell.
        ([3, 0, 60, 0, 0, 1, 1], [3, 0, 60, 0, 0, 1, 0], True, False),
        ([3, 0, 60, 0, 0, 1, 1], [3, 0, 60, 0, 0, 1], False, False),
        ([3, 0, 60, 0, 0, 1, 0], [3, 0, 60, 0, 0, 1], False, False),
    ],
)
def test_a_table_that_keeps_more_now_may_lack_cells(
    one: list[int], other: list[int], is_more: bool, is_less: bool
) -> None:
    """Each setting by itself. MIN_VERSIONS counts where cells expire; ties and kept deletes both ways."""
    assert (keeps_more(one, other), keeps_more(other, one)) == (is_more, is_less)
    assert is_retention(one)


@pytest.mark.parametrize(
    "value", [None, [], [1, 0, 60, 0, 0], [1, 0, 60, 3, 0, 1], [1, 0, "60", 0, 0, 1], [True] * 6, [1] * 8]
)
def test_what_is_not_six_numbers_is_no_retention(value: Any) -> None:
    """A tenure that has such is not read."""
    assert not is_retention(value)
