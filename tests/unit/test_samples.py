"""The recorded samples give their verdicts. (By processes of their own, as in the README: `test_doc_commands.py`.)"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pair import REPOSITORY, tool_here
from tests.schema import assert_valid

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("warm_spark")]

SAMPLES = REPOSITORY / "sample_status"


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "exit_code"), [("complete", 0), ("behind", 1), ("gap", 1)])
def test_sample(sample: str, exit_code: int, tmp_path: Path) -> None:
    files = [SAMPLES / sample / f"{side}.status" for side in ("master", "slave")]
    outputs = {name: tmp_path / name for name in ("repair.sh", "missing.jsonl", "differ.txt", "unverifiable.jsonl")}
    lists = [
        part
        for name in ("missing.jsonl", "differ.txt", "unverifiable.jsonl")
        for part in (f"--{name.partition('.')[0]}", outputs[name])
    ]
    result = tool_here(
        *("run", "-i", files[0], "--slave-status", files[1], "--json", "--repair-script", outputs["repair.sh"]),
        *lists,
        conf=tmp_path,
    )
    assert result.exit_code == exit_code, result
    assert_valid(result.json, "check")
    regions = result.json["hbase"]["regions"]
    assert regions["behind"] == (1 if sample == "behind" else 0)
    assert regions["gap"] == (1 if sample == "gap" else 0)
    assert regions["complete"] == 4 - regions["behind"] - regions["gap"]
    assert result.json["hdfs"]["files"]["mismatch"] == (1 if sample == "gap" else 0)
    assert result.json["hdfs"]["files"]["match"] == 3 - result.json["hdfs"]["files"]["mismatch"]
    missing = [json.loads(line) for line in outputs["missing.jsonl"].read_text().splitlines()]
    for line in missing:
        assert_valid(line, "line")
    kinds = {"complete": [], "behind": [("behind", "orders")], "gap": [("gap", "orders")]}[sample]
    assert [(line["kind"], line["table"]) for line in missing] == kinds
    assert outputs["differ.txt"].read_text() == ("/data/part-1\n" if sample == "gap" else "")
    assert outputs["unverifiable.jsonl"].read_text() == ""
    assert [(r["table"], r["stuck"]) for r in result.json["repairs"]] == [(t, k == "gap") for k, t in kinds]
    assert sum(cause["count"] for cause in result.json["causes"]) == len(result.json["problems"])
    script = outputs["repair.sh"].read_text()
    assert all(repair["copy_table"] in script and repair["dry_run"] in script for repair in result.json["repairs"])
    if kinds:
        lines = {line["table"]: line["regions"] for line in result.json["tables"]}
        for status, count in regions.items():
            assert sum(line[status] for line in lines.values()) == count


def test_what_is_accepted_is_told_as_such(tmp_path: Path) -> None:
    """Nothing was copied: `--since` passes over the gap, and the evidence says whose word that is."""
    files = [SAMPLES / "gap" / f"{side}.status" for side in ("master", "slave")]
    result = tool_here(
        *("run", "-i", files[0], "--slave-status", files[1], "--json", "--only", "hbase", "--table", "orders"),
        *("--since", "orders=2026-12-31T00:00:00Z"),
        conf=tmp_path,
    )
    assert result.exit_code == 2, result  # beyond the cut: that would accept everything
    gap = tool_here("run", "-i", files[0], "--slave-status", files[1], "--json", "--table", "orders", conf=tmp_path)
    (problem,) = (one for one in gap.json["problems"] if one["kind"] == "gap")
    assert "--rows" in problem["advice"]
    since = f"orders={problem['written_to_ms'] + 1_000}"
    result = tool_here(
        *("run", "-i", files[0], "--slave-status", files[1], "--json", "--only", "hbase", "--table", "orders"),
        *("--since", since),
        conf=tmp_path,
    )
    assert_valid(result.json, "check")
    hbase = result.json["hbase"]
    assert (result.exit_code, hbase["evidence"]) == (0, "accepted"), result
    assert hbase["evidence_by"]["accepted"] > 0
