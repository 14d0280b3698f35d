"""A sealed status file may hold anything in its JSON columns: a clear refusal or a judgement, never a traceback."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from status_tool.errors import StatusToolError
from status_tool.rules.peers import choose_peer, parse_peer, ships, withheld
from status_tool.rules.queue_proofs import queue_facts
from status_tool.vocabulary.verdicts import Verdict
from tests.judgement import verify_rows
from tests.unit.test_evidence_reference import HBASE, MASTER, OURS, SLAVE, THEIRS, Row, changed

NAMES = st.sampled_from(
    [
        *("id", "peer", "wals", "server", "dead_servers", "holder", "live", "left", "started_ms", "position"),
        *("families", "f", "scope", "durability", "errors", "clock_back_ms", "cluster_id", "cluster_key", "enabled"),
        *("table_cfs", "namespaces", "ns:t", "exclude_table_cfs", "exclude_namespaces", "replicate_all"),
        *("created_ms", "modified_ms", "consistent", "unsplit", "hfile_refs", "files", "since_ms"),
        *("endpoint", "entry_filters", "drops_loads", "1"),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([10**400, "1"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
PEER = {
    **{"id": "1", "cluster_key": "zk:2181:/b", "enabled": True, "cluster_id": SLAVE.cluster_id, "created_ms": 1},
    **{"modified_ms": 1, "replicate_all": True, "endpoint": None, "entry_filters": None, "drops_loads": False},
}
QUEUE = {
    **{"peer": "1", "live": True, "dead_servers": []},
    "wals": [{"name": "w", "server": "a,1,1", "started_ms": 1, "position": 0, "left": 3}],
}
SUMMARY = {"consistent": True, "unsplit": []}
SUMMARY["hfile_refs"] = {"1": {"since_ms": 1, "files": 0}}
DESCRIPTOR = {"families": {"f": {"scope": 1}}, "durability": "USE_DEFAULT"}
HEALTH = {"failed_writes": 0, "pending": 0, "errors": 0}


def altered(document: Any) -> st.SearchStrategy[str]:
    """A document with some of its values replaced, or something else altogether, as JSON text or none."""

    def replaced(changes: dict[str, Any]) -> str:
        return json.dumps({**document, **changes})

    keys = st.sampled_from(sorted(document))
    whole = st.dictionaries(keys, VALUES, max_size=3).map(replaced)
    broken = st.sampled_from(["", "{", "[" * 100_000, '{"a":' * 50_000, "NaN", "1" * 5_000])
    return whole | VALUES.map(json.dumps) | broken


def judge(details: dict[str, str]) -> Verdict | None:
    """The whole judgement as `run -i` makes it; None: refused with one line."""
    ours: list[Row] = changed(OURS, "table", detail=details["table"])
    ours = changed(ours, "server", detail=details["server"], live=False, echoed=False)
    theirs = changed(THEIRS, "table", detail=details["table"])
    rows: list[Row] = [{"kind": "queue", "server": "a,1,1", "name": "1", "detail": details["queue"]}]
    rows.append({"kind": "queue", "detail": details["summary"]})
    try:
        peer = choose_peer([parse_peer(details["peer"])], SLAVE.cluster_id, SLAVE.cluster_key, None)
        families = {"ns:t": ("f",)}
        withheld(peer, families)
        ships(peer, "ns:t")
        facts = queue_facts(rows, [row for row in ours if row["kind"] == "server"], peer)
        return verify_rows(ours, theirs, MASTER, SLAVE, HBASE, facts).verdict
    except StatusToolError as error:
        refusal = str(error)
    assert refusal.isprintable(), "one line, and nothing that steers a terminal"
    return None


SANE: dict[str, dict[str, Any]] = {
    **{"peer": PEER, "queue": QUEUE, "summary": SUMMARY},
    **{"table": DESCRIPTOR, "server": HEALTH},
}


@settings(max_examples=300)
@given(st.fixed_dictionaries({}, optional={name: altered(document) for name, document in SANE.items()}))
def test_any_detail_is_judged_or_refused(changes: dict[str, str]) -> None:
    """The origin is dead and unsettled, so that a queue is looked at; whatever is made of it, it is an answer."""
    details = {name: json.dumps(document) for name, document in SANE.items()} | changes
    verdict = judge(details)
    assert verdict is None or verdict in Verdict


def test_the_sane_world_is_judged() -> None:
    assert judge({name: json.dumps(document) for name, document in SANE.items()}) is Verdict.UNVERIFIABLE


@pytest.mark.parametrize("name", ["peer", "queue", "summary"])
def test_bottomless_json_is_refused(name: str) -> None:
    details = {key: json.dumps(document) for key, document in SANE.items()}
    assert judge(details | {name: "[" * 100_000}) is None


@pytest.mark.parametrize("kind", ["table", "server"])
@pytest.mark.parametrize("of_slave", [False, True])
def test_a_detail_of_a_table_or_server_that_nobody_can_read_is_unverifiable(kind: str, of_slave: bool) -> None:
    """With one that can be read, this world is complete."""
    master, readable = replace(MASTER, shutdown_ms=40_000), json.dumps({**SANE[kind], "regions": 1})
    for text in (readable, "[" * 100_000, "1", '"x"', "{"):
        rows = changed(THEIRS if of_slave else OURS, kind, detail=text)
        ours, theirs = (OURS, rows) if of_slave else (rows, THEIRS)
        verdict = verify_rows(ours, theirs, master, SLAVE, HBASE).verdict
        assert verdict is (Verdict.COMPLETE if text == readable else Verdict.UNVERIFIABLE), text


@pytest.mark.parametrize("name", ["\ufffd", "g\ufffd"])
def test_families_whose_names_are_no_utf_8_cannot_be_told_apart(name: str) -> None:
    """Of several the trackers' descriptor has the last alone, which need not be the one that is replicated."""
    emptied = json.dumps({"families": {"f": {}, name: {}}, "regions": 1, "arrived_ms": 20_000, "born_ms": 30_000})
    local, more = json.dumps({"families": {name: {"scope": 0}}}), {"table": "other", "region": "r9"}
    other = [{**row, **more} for row in OURS if row["kind"] in ("table", "region", "stream")]
    theirs = [{**row, **more} for row in THEIRS if row["kind"] in ("table", "segment")]
    ours = [*changed(OURS, "table", detail=local), *other]
    outcome = verify_rows(ours, [*changed(THEIRS, "table", detail=emptied), *theirs], MASTER, SLAVE, HBASE)
    assert outcome.verdict is Verdict.UNVERIFIABLE
    assert {problem.code for problem in outcome.problems} == {"descriptor-unreadable", "emptied"}


@pytest.mark.parametrize(
    "events",
    [
        *(
            {name: value}
            for name in ("skipped_ms", "tagged_ms", "altered_ms", "opened_ms")
            for value in ("x", True, [1])
        ),
        *({"raised_ms": value} for value in ("x", [1], {"f": "x"}, {"f": True})),
    ],
)
def test_events_of_the_master_that_nobody_can_read_are_unverifiable(events: dict[str, Any]) -> None:
    """They would pass for none."""
    ours = changed(OURS, "table", detail=json.dumps({**DESCRIPTOR, **events}))
    outcome = verify_rows(ours, THEIRS, MASTER, SLAVE, HBASE)
    assert (outcome.verdict, [one.code for one in outcome.problems]) == (
        Verdict.UNVERIFIABLE,
        ["descriptor-unreadable"],
    )
    unknown = changed(OURS, "table", detail=json.dumps({**DESCRIPTOR, **dict.fromkeys(events)}))
    assert verify_rows(unknown, THEIRS, MASTER, SLAVE, HBASE).verdict is Verdict.COMPLETE


@pytest.mark.parametrize(
    "detail",
    [
        {"families": ["f", 1]},
        {"families": {"f": {}}, "arrived_ms": "x"},
        {"families": {"f": {}}, "born_ms": True},
        {"families": {"f": {}}, "dropped_ms": {"f": "x"}},
        {"families": {"f": {}}, "written_by": {"": None}},
    ],
)
def test_events_of_the_slave_that_nobody_can_read_are_unverifiable(detail: dict[str, Any]) -> None:
    theirs = changed(THEIRS, "table", detail=json.dumps({**detail, "regions": 1}))
    outcome = verify_rows(OURS, theirs, MASTER, SLAVE, HBASE)
    assert (outcome.verdict, outcome.problems[0].code) == (Verdict.UNVERIFIABLE, "descriptor-unreadable")
