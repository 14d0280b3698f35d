"""What benchmarks measure is what they say: synthetic files have the verdict that they were made for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import bench.__main__ as runner
from bench.results import RESULTS_VARIABLE, Ratio, read_results, record
from bench.streams import MASTER, SHAPES, SLAVE, Shape, write_inputs
from bench.table import PAGE, RESULTS, aims, before, newest, table, with_table
from status_tool.status_file.reader import open_status
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Status
from tests.judgement import verify_rows

STREAMS, EVERY = 3_000, 499
MEASURED: dict[str, Any] = {
    **{"bench": "some", "what": "ours", "against": "theirs", "size": 10, "sizes": "streams", "unit": "s"},
    **{"ours": (1.0,), "theirs": (2.0,), "aim": "at most 2", "limit": "the disk"},
}


@pytest.mark.parametrize("name", SHAPES)
def test_synthetic_files_have_the_problems_that_they_were_made_with(name: str, tmp_path: Path) -> None:
    """As the plain rules judge them: of `every` streams one has a hole, one lacks its tail, one has not arrived."""
    shape = Shape(SHAPES[name].regions, every=EVERY)
    written = write_inputs(tmp_path, STREAMS, shape)
    assert abs(written.streams - STREAMS) < STREAMS / 20
    for side in ("master", "slave"):
        with open_status(tmp_path / f"{side}.parquet") as file:
            assert file.header.side == side
    ours, theirs = (pq.read_table(tmp_path / f"{side}.parquet").to_pylist() for side in ("master", "slave"))
    outcome = verify_rows(ours, theirs, MASTER, SLAVE, Scope(check_hdfs=False))
    assert outcome.hbase is not None
    regions = outcome.hbase.regions
    has_facts = any(kind.fact for kind in shape.regions)
    assert (regions[Status.UNVERIFIABLE] > 0) == has_facts
    for status in (Status.GAP, Status.BEHIND, Status.MISSING):
        assert 0 < regions[status] <= 2 * STREAMS / EVERY, status
    assert regions[Status.COMPLETE] > 0.95 * sum(regions.values())


def test_every_module_is_a_benchmark_or_none() -> None:
    """A new benchmark that is not in the list would never run."""
    modules = {path.stem for path in Path(runner.__file__).parent.glob("*.py")}
    assert modules - {"__init__", "__main__"} == {one.name for one in runner.BENCHES} | set(runner.OTHERS)


def test_documents_show_the_kept_results() -> None:
    """`make bench-docs` after a change of the results."""
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page, read_results(RESULTS)) == page


def ratio(**changed: Any) -> Ratio:
    return Ratio(**{**MEASURED, **changed})


def test_what_was_measured_again_replaces_the_earlier() -> None:
    """In its place; another size does not."""
    first, other, again = ratio(), ratio(size=20), ratio(ours=(3.0,), theirs=(1.0,))
    assert newest([first, other, again]) == [again, other]


def test_the_page_shows_each_aim_once_at_its_largest_size() -> None:
    """What has no aim is in the whole table alone."""
    large, small, aimless = ratio(size=20), ratio(), ratio(what="aimless", aim="")
    assert aims([small, large, aimless]) == [large]


def test_a_table_has_the_medians_and_the_range_of_rounds() -> None:
    measured = ratio(ours=(1.0, 2.0, 3.0), theirs=(2.0, 2.0, 2.0))
    earlier = [ratio(ours=(ours,), theirs=(2.0,)) for ours in (9.0, 4.0)]
    lines = list(table([measured], before([*earlier, measured])))
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == [
        *("some", "ours", "theirs", "10 streams", "1", "2", "0.5 to 1.5", "2 against 2 s", "at most 2", "the disk")
    ]
    assert len({len(line) for line in lines}) == 1


def test_results_are_read_as_they_were_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path / "results.jsonl"))
    for one in (ratio(), ratio(size=20)):
        record(one)
    assert read_results(tmp_path / "results.jsonl") == [ratio(), ratio(size=20)]


def test_a_benchmark_that_fails_does_not_keep_others_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1 then; the table shows what the others have recorded."""
    package = tmp_path / "bench"
    package.mkdir()
    for path in Path(runner.__file__).parent.glob("*.py"):
        (package / path.name).write_text(path.read_text())
    (package / "bad.py").write_text("raise SystemExit(3)")
    (package / "good.py").write_text(f"from bench.results import *\nrecord(Ratio(**{MEASURED!r}))")
    monkeypatch.setattr(runner, "REPOSITORY", tmp_path)
    monkeypatch.setattr(runner, "BENCHES", (runner.Bench("bad"), runner.Bench("good")))
    monkeypatch.setattr(sys, "argv", ["bench", "--out", str(tmp_path / "kept.jsonl")])
    assert runner.main() == 1
    shown = capfd.readouterr()
    assert "bad failed with 3" in shown.out
    assert "| 10 streams |" in shown.out
    assert "Failed: bad" in shown.err
    assert read_results(tmp_path / "kept.jsonl") == [ratio()]


def test_an_unknown_benchmark_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "nonsense"])
    with pytest.raises(SystemExit):
        runner.main()
    assert "no such benchmark: nonsense" in capsys.readouterr().err
