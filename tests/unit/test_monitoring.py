"""docs/monitoring: what rules and panels name is what a run writes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from status_tool.report.metrics import (
    Before,
    check_metrics,
    failure_metrics,
    names_of,
    point_metrics,
    published_metrics,
    queue_metrics,
)
from status_tool.vocabulary.outcome import Drawing, Overview
from status_tool.vocabulary.verdicts import INCOMPLETE_REGIONS, Status
from tests.pair import REPOSITORY
from tests.unit.test_report import HOSTILE, OUTCOME, hostile, printed

MONITORING = REPOSITORY / "docs" / "monitoring"
POINTS = {"": 1_700_000_000_000, "a": 1_700_000_000_000, "b": None}
HELD = {"id": "witness", "wals": 3, "left_bytes": 5, "oldest_ms": 1_700_000_000_000}
FULL = replace(
    OUTCOME, queued_bytes=1, overview=Overview(groups=(), drawing=Drawing(), oldest_hole_ms=1_700_000_000_000)
)


def written() -> str:
    """The textfile of a run in which there is something to say of everything."""
    last = Before(names_of(FULL), 1_699_999_999.0, 0, 0)
    return "".join(check_metrics(FULL, 1_700_000_100_000, 12.5, last, POINTS))


def parsed(text: str) -> list[Sample]:
    families = text_string_to_metric_families(text)
    return [sample for family in families for sample in family.samples]


def others() -> list[str]:
    """What `recovery-point`, `publish` and `queues` write."""
    point = point_metrics({"master": "m", "slave": "s"}, POINTS, 1)
    published = published_metrics(True, 1_700_000_000_000, 10_000, 1.0)
    held = queue_metrics("m", 1_700_000_000_000, [HELD, {**HELD, "id": "2", "left_bytes": None, "oldest_ms": None}])
    return list(map("".join, (point, published, held)))


def series() -> dict[str, set[str]]:
    """Of each series the names of its labels."""
    found: dict[str, set[str]] = {}
    for sample in (one for text in (written(), *others()) for one in parsed(text)):
        found.setdefault(sample.name, set()).update(sample.labels)
    return found


def failure() -> str:
    return "".join(failure_metrics(Before({"master": "m", "slave": "s", "peer": "1"}, 7.0), 1, 0.5))


@pytest.mark.parametrize("text", [written(), failure(), "".join(check_metrics(hostile(HOSTILE), 1, 1.0))])
def test_both_formats(text: str) -> None:
    """It is a textfile and OpenMetrics, each series with the three labels."""
    samples = parsed(text)
    assert samples
    assert all({"master", "slave", "peer"} <= set(sample.labels) for sample in samples)
    assert [s for family in openmetrics(text) for s in family.samples]  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("text", [written(), *others()])
def test_other_textfiles_are_both_formats_too(text: str) -> None:
    """A table without a recovery point has no series."""
    samples = parsed(text)
    assert samples
    assert "b" not in {sample.labels.get("table") for sample in samples}
    assert [s for family in openmetrics(text) for s in family.samples]  # type: ignore[no-untyped-call]


def alerts() -> list[dict[str, Any]]:
    """All rules, which are one group."""
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def rules() -> dict[str, str]:
    return {rule["alert"]: rule["expr"] for rule in alerts()}


def expressions() -> Iterator[tuple[str, str]]:
    """Name and PromQL of every rule and panel; Grafana's variables become text."""
    yield from rules().items()
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def dashboard() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return document


@pytest.mark.parametrize(("name", "expression"), list(expressions()))
def test_expressions(name: str, expression: str) -> None:
    """PromQL that names series and labels of ours only."""
    promql_parser.parse(expression)
    known = series()
    named = re.findall(r"(status_tool_\w+)(?:\{([^}]*)\})?", expression)
    assert named, name
    for metric, selector in named:
        assert metric in known
        assert set(re.findall(r"(\w+)\s*[=!]", selector)) <= known[metric]


def test_what_alerts_say() -> None:
    """Each has a summary and what to do; its labels are those of its series."""
    known = series()
    for rule in alerts():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        metric, *_ = re.findall(r"status_tool_\w+", rule["expr"])
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= known[metric]


def test_no_verdict_and_no_silence_is_without_an_alert() -> None:
    """Each status of a loss; each clock that a file has; and series that are absent where there is nothing to tell."""
    (loss,) = re.findall(r'status=~"(.*?)"', rules()["ReplicationLost"])
    assert set(loss.split("|")) == set(INCOMPLETE_REGIONS) - {Status.BEHIND}
    ages = {found for rule in rules().values() for found in re.findall(r"time\(\) - (status_tool_\w+)", rule)}
    # A point that is found is old where nobody asks, and a hole is one of a loss.
    assert {one for one in series() if one.endswith("_timestamp_seconds")} - ages == {
        "status_tool_oldest_hole_timestamp_seconds",
        "status_tool_published_cut_timestamp_seconds",
        "status_tool_recovery_point_asked_timestamp_seconds",
    }
    for rule, known, absent in (
        ("RecoveryPointIsMissing", "status_tool_recovery_point_asked_timestamp_seconds", '{table=""}'),
        ("ReplicationNeverComplete", "status_tool_up", "status_tool_last_success_timestamp_seconds"),
    ):
        left, right = rules()[rule].split(" unless ")
        assert (left, right.endswith(absent)) == (known, True)


def test_a_watch_that_has_asked_for_a_point_in_vain_says_so() -> None:
    """Else no series of its would tell that there is none."""
    asked = "status_tool_recovery_point_asked_timestamp_seconds"
    assert asked in printed(check_metrics, points={"": None, "a": 5})
    assert asked not in printed(check_metrics)


def test_the_page_names_every_series() -> None:
    """And no other."""
    table = re.findall(r"^\| `(status_tool_\w+)", (MONITORING / "README.md").read_text(), re.M)
    assert sorted(table) == sorted(series())


def test_a_panel_is_red_for_what_it_says() -> None:
    """Grafana's own threshold of a number is 80: an hour was red, and an error, which is 0, was green."""
    panels = {panel["title"]: panel for panel in dashboard()["panels"] if panel["type"] == "stat"}
    alerts = {
        "Since the last complete verdict": "ReplicationNotCompleteForADay",
        "Since the last run": "ReplicationCheckIsOld",
    }
    for title, alert in alerts.items():
        seconds = panels[title]["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]
        bound = rules()[alert].partition(" > ")[2]
        assert (seconds["color"], seconds["value"]) == ("red", math.prod(map(int, bound.split(" * "))))
    (up,) = (one for one in panels["Since the last run"]["targets"] if one["expr"].startswith("status_tool_up"))
    (override,) = panels["Since the last run"]["fieldConfig"]["overrides"]
    assert override["matcher"] == {"id": "byFrameRefID", "options": up["refId"]}
    (words,) = (one["value"][0]["options"] for one in override["properties"] if one["id"] == "mappings")
    assert (words["0"]["color"], words["1"]["color"]) == ("red", "green")


def test_panels_do_not_overlap() -> None:
    """Nor share an id."""
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    spans = ((range(one["x"], one["x"] + one["w"]), range(one["y"], one["y"] + one["h"])) for one in places)
    cells = [cell for columns, rows in spans for cell in product(columns, rows)]
    assert len(set(cells)) == len(cells)
    assert max(column for column, _ in cells) < 24
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(places)
