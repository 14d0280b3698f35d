"""The campaign's own parts. One of its schedules on real clusters is in `cluster/test_schedules.py`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.campaign.arena import Arena
from tests.campaign.judge import Judge, Look
from tests.campaign.runner import Record
from tests.campaign.schedule import BOTH, HARMLESS, LOOK, LOSSY, UNWITNESSED, WITNESSED, WITNESSES, Schedule, Step, draw
from tests.campaign.shrink import shrink
from tests.campaign.steps import ACTIONS
from tests.campaign.summary import table
from tests.campaign.truth import newest_of
from tests.pair import Result

ONE = Schedule(1, "plain", (), (20,), (Step("flush"), Step(LOOK, 1)))


def test_a_seed_is_a_schedule_and_a_schedule_is_a_line() -> None:
    """What is drawn depends on nothing but the seed, and is replayed from its own text."""
    assert draw(7) == draw(7)
    assert draw(7) != draw(8)
    assert all(Schedule.from_json(draw(seed).to_json()) == draw(seed) for seed in range(50))


def test_every_step_that_can_be_drawn_is_known() -> None:
    """And every step that is known is drawn."""
    assert set(ACTIONS) == {*HARMLESS, *LOSSY, *WITNESSES}


def test_a_seed_has_another_schedule_for_witnesses() -> None:
    """Those of the other arenas stay what they were; a witness's has what makes sense there."""
    tracked = {step.action for seed in range(500) for step in draw(seed).steps}
    assert tracked == {*HARMLESS, *LOSSY, LOOK}
    witnessed = {step.action for seed in range(500) for step in draw(seed, WITNESSED).steps}
    assert witnessed == (tracked | WITNESSES.keys()) - UNWITNESSED
    both = {step.action for seed in range(500) for step in draw(seed, BOTH).steps}
    assert both == tracked | WITNESSES.keys()
    before = (
        "disable_peer",
        "set_clock_back",
        "kill_slave_rs",
        LOOK,
        LOOK,
        "roll",
        "disable_master_state",
        "alter_slave",
    )
    assert tuple(step.action for step in draw(33037).steps) == before


@pytest.mark.parametrize("needed", [{"roll"}, {"roll", "move"}, {"split", "flush", "merge"}])
def test_a_schedule_is_cut_down_to_what_is_needed(needed: set[str]) -> None:
    """The shortest schedule that still fails has nothing but the steps that make it fail."""
    steps = tuple(Step(name) for name in ("flush", "roll", "split", "move", "merge", "flush", LOOK, "enable_peer"))
    short = shrink(replace(ONE, steps=steps), fails=lambda one: needed <= {step.action for step in one.steps})
    assert sorted(step.action for step in short.steps) == sorted(needed)


def judged(tmp_path: Path, verdict: str, regions: str, problems: str = "[]") -> Look:
    """A look at a table of one region, with one cell missing below key 5."""
    (tmp_path / "debug").mkdir()
    (tmp_path / "debug" / "regions.jsonl").write_text(regions)
    judge = Judge(Arena("plain", None), ["a_1_0"], tmp_path, None)  # type: ignore[arg-type]
    look = Look("mid", verdict)
    result = Result(0, f'{{"problems": {problems}}}', "")
    judge._hold_against(look, frozenset({("a_1_0", "4\tf\tq\tPut\tv")}), result)
    return look


REGION = (
    '{"table": "a_1_0", "region": "r", "start_key": "", "end_key": "35", "status": "%s", "table_status": "complete",'
    ' "written_ms": null}'
)


def test_a_false_complete_is_seen(tmp_path: Path) -> None:
    """The judge can find the tool guilty."""
    look = judged(tmp_path, "complete", REGION % "complete")
    assert (look.false_complete, look.false_regions, look.wrong()) == (True, ["r"], True)
    records = tmp_path / "records.jsonl"
    records.write_text(Record(ONE, [replace(look, when="end")], lost=1).to_json() + "\n")
    assert "| **false complete** (verdicts) | 1 |" in table([records])


def test_a_region_falsely_called_complete_is_seen(tmp_path: Path) -> None:
    """Also in a run that is not complete, unless the run says that it cannot see a whole origin."""
    assert judged(tmp_path, "incomplete", REGION % "complete").wrong()
    (tmp_path / "doubted").mkdir()
    other = '[{"kind": "unverifiable", "region": null, "table": "b_1_0", "detail": "emptied"}]'
    assert judged(tmp_path / "doubted", "unverifiable", REGION % "complete", other).wrong()


def test_two_proofs_that_contradict_each_other_are_seen(tmp_path: Path) -> None:
    """It is an error of the tool, whatever is lost."""
    judged(tmp_path, "unverifiable", REGION % "unverifiable")
    problem = {"kind": "unverifiable", "detail": "contradiction between trackers and witness"}
    document = {
        "verdict": "unverifiable",
        "problems": [problem],
        "hbase": {"regions": {"unverifiable": 1}},
        "notices": [],
    }
    judge = Judge(Arena("plain", None), ["a_1_0"], tmp_path, None)  # type: ignore[arg-type]
    assert judge._described("mid", Result(3, json.dumps(document), ""), 1, None).wrong()


def test_a_tool_that_ends_with_no_exit_code_of_its_own_is_seen() -> None:
    """It is no fault of the arena."""
    assert Record(ONE, failed=True).wrong()
    assert not Record(ONE, broken="LabTimeout").wrong()


def test_what_was_told_is_not_held_against_the_tool(tmp_path: Path) -> None:
    """A region that is called incomplete, or a run that names an origin that it cannot see."""
    assert not judged(tmp_path, "incomplete", REGION % "gap").wrong()
    (tmp_path / "again").mkdir()
    blind = '[{"kind": "unverifiable", "region": null, "table": null, "detail": "a server"}]'
    assert not judged(tmp_path / "again", "unverifiable", REGION % "complete", blind).wrong()


def test_accepted_drift_leaves_out_older_versions_only() -> None:
    """A slave that keeps one version lacks older ones: rows are right to call it complete, unless they show more."""
    look = Look("end", "unverifiable", missing=6, rows="complete", rows_same=True, accepted=["a_1_0"], rows_missing=0)
    assert not look.rows_wrong()
    assert replace(look, rows_same=False).rows_wrong()
    assert replace(look, rows_missing=1).rows_wrong()
    assert newest_of(["r\tf\tq\tPut\t2", "r\tf\tq\tPut\t1", "r\tg\tq\tPut\t1"]) == [
        "r\tf\tq\tPut\t2",
        "r\tg\tq\tPut\t1",
    ]
