"""What benchmarks measure is what they say: synthetic files have the verdict that they were made for."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.streams import MASTER, SHAPES, SLAVE, Shape, write_inputs
from status_tool.status_file.reader import open_status
from status_tool.vocabulary.scope import Scope
from status_tool.vocabulary.verdicts import Status
from tests.reference import verify_reference

STREAMS, EVERY = 3_000, 499


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
    outcome = verify_reference(ours, theirs, MASTER, SLAVE, Scope(check_hdfs=False))
    assert outcome.hbase is not None
    regions = outcome.hbase.regions
    has_facts = any(kind.fact or kind.is_partial for kind in shape.regions)
    assert (regions[Status.UNVERIFIABLE] > 0) == has_facts
    for status in (Status.GAP, Status.BEHIND, Status.MISSING):
        assert 0 < regions[status] <= 2 * STREAMS / EVERY, status
    assert regions[Status.COMPLETE] > 0.95 * sum(regions.values())
