"""docs/run-check.schema.json: what is printed is valid, and nothing is printed that it does not name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from status_tool.report.json_report import json_report
from status_tool.vocabulary.outcome import Drawing, LaterWrites, Outcome, Overview, Repair
from status_tool.vocabulary.verdicts import FileStatus, Status
from tests.judgement import groups_of
from tests.schema import assert_valid, schema
from tests.unit.test_report import GAP, HBASE, HOSTILE, LEFT_OUT, OUTCOME, hostile, printed

REPAIR = Repair("copy", "hash", "sync")
EVERYTHING = replace(
    OUTCOME,
    hbase=replace(HBASE, not_replicated=LEFT_OUT, later=(LaterWrites("ns:t", 2, 1_700_000_000_001),)),
    problems=(GAP, replace(GAP, repair=REPAIR, code="gap"), replace(GAP, kind="mismatch", path="/data/x")),
)


def test_the_schema_is_one() -> None:
    """Of the draft that it names."""
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(
    "outcome",
    [
        OUTCOME,
        EVERYTHING,
        replace(EVERYTHING, overview=Overview(groups=groups_of(EVERYTHING.problems), drawing=Drawing())),
        hostile(HOSTILE),
        Outcome(None, None, (), 1),
    ],
    ids=["plain", "everything", "overview", "hostile", "nothing"],
)
def test_outcomes(outcome: Outcome) -> None:
    """Whatever names hold, and with either half left out."""
    assert_valid(json.loads(printed(json_report, outcome)), "check")


def test_statuses_are_those_of_the_code() -> None:
    """Counts are by every status there is."""
    parts = schema()["$defs"]
    assert set(parts["hbase"]["properties"]["regions"]["properties"]) == {str(status) for status in Status}
    assert set(parts["hdfs"]["properties"]["files"]["properties"]) == {str(status) for status in FileStatus}


@pytest.mark.parametrize(
    "harm",
    [
        lambda document: document["hbase"].update(more=1),
        lambda document: document["problems"][0].pop("written_to_ms"),
        lambda document: document.update(verdict="fine"),
    ],
    ids=["a key that the schema does not name", "a key of the contract is gone", "a verdict that is none"],
)
def test_what_is_otherwise_is_refused(harm: Callable[[dict[str, Any]], None]) -> None:
    """The schema is no rubber stamp."""
    document = json.loads(printed(json_report, EVERYTHING))
    assert_valid(document)
    harm(document)
    with pytest.raises(jsonschema.ValidationError):
        assert_valid(document)
