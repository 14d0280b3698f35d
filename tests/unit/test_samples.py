"""The recorded samples give their verdicts with nothing but Python and Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pair import REPOSITORY, tool

pytestmark = pytest.mark.spark

SAMPLES = REPOSITORY / "sample_status"


@pytest.mark.parametrize(("sample", "exit_code"), [("complete", 0), ("behind", 1), ("gap", 1)])
def test_sample(sample: str, exit_code: int, tmp_path: Path) -> None:
    """As the README says."""
    files = [SAMPLES / sample / f"{side}.status" for side in ("master", "slave")]
    result = tool("run", "-i", files[0], "--slave-status", files[1], "--json", conf=tmp_path)
    assert result.exit_code == exit_code, result
    regions = result.json["hbase"]["regions"]
    assert regions["behind"] == (1 if sample == "behind" else 0)
    assert regions["gap"] == (1 if sample == "gap" else 0)
    assert regions["complete"] == 4 - regions["behind"] - regions["gap"]
    assert result.json["hdfs"]["files"]["mismatch"] == (1 if sample == "gap" else 0)
    assert result.json["hdfs"]["files"]["match"] == 3 - result.json["hdfs"]["files"]["mismatch"]
