"""Following the master: what is in scope, and what each round shows."""

from __future__ import annotations

import io
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from status_tool.clients.config import Settings, ZooKeeperEndpoint
from status_tool.clients.sitefiles import SiteConfig
from status_tool.errors import StatusFileError, UsageError
from status_tool.report.progress import Lines, Progress
from status_tool.rules.queue_proofs import left_bytes
from status_tool.runs import plan
from status_tool.runs.check import Check
from status_tool.runs.compare_rows import RowsAsked
from status_tool.runs.follow import ShownRounds, with_files_of
from status_tool.runs.plan import explain_check
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.outcome import HBaseOutcome, Outcome
from status_tool.vocabulary.scope import Baseline, Scope
from status_tool.vocabulary.verdicts import Evidence, Status, Verdict

FILE = Header("master", "id", 2_000, 1_000)


def test_files_are_those_of_the_file() -> None:
    """The HBase half is fresh, the HDFS half FILE's."""
    file = replace(FILE, hdfs_paths=("/data",), hdfs_absent=("/gone",))
    fresh = replace(FILE, half="hbase", cut_ms=9_000)
    merged = with_files_of(fresh, file)
    assert (merged.half, merged.cut_ms, merged.hdfs_paths, merged.hdfs_absent) == (
        "both",
        9_000,
        ("/data",),
        ("/gone",),
    )
    [told] = merged.notices
    assert told.startswith("HDFS: following: files are compared as FILE of 1970-01-01T00:00:02")
    assert with_files_of(fresh, replace(file, half="hbase")) == fresh


@pytest.mark.parametrize("thrift", [None, "h:1"])
def test_the_plan_is_that_of_following(thrift: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It named FILE's cut and no master, and refused a --since that lies after the one, before the other."""

    class Fake:
        def __init__(self, endpoint: ZooKeeperEndpoint) -> None:
            self.endpoint = endpoint

        def __enter__(self) -> Fake:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def live_servers(self) -> list[str]:
            return ["a,1,1"]

        def cluster_id(self) -> str:
            return "id" if self.endpoint.cluster_key == "m:1:/hbase" else "slave"

    monkeypatch.setattr(plan, "ZooKeeper", Fake)
    slave, master, other = (Settings(SiteConfig({}), thrift, (), f"{name}:1/hbase") for name in ("s", "m", "o"))
    slave = Settings(SiteConfig({}), "s:1", (), "s:1/hbase")
    file = tmp_path / "f.status"
    with StatusWriter(file, replace(FILE, half="hbase")):
        pass
    late, check = Check(file, Scope(since=Baseline(1_500))), Check(file, Scope())
    if thrift is None:
        with pytest.raises(UsageError, match="--since 1500 lies after the cut"):
            list(explain_check(slave, late, master))
    steps = {step.what: step.value for step in explain_check(slave, check if thrift is None else late, master)}
    assert ("the last look at the master" in steps["cut"]) is (thrift is not None)
    assert ("by Thrift h:1" if thrift else "its queues alone") in steps["master"]
    assert "row digests" not in steps
    rows = replace(check, rows=RowsAsked(master, every=True))
    found = {step.what: step.value for step in explain_check(slave, rows)}["row digests"]
    assert found == "of all replicated tables, by the region servers here, beside those of the master's at m:1/hbase"
    with pytest.raises(StatusFileError, match="leads to slave"):
        list(explain_check(slave, check, other))
    with StatusWriter(file, replace(FILE, half="hdfs")):
        pass
    with pytest.raises(UsageError, match="refreshes the HBase half"):
        list(explain_check(slave, check, master))


def test_bytes_of_the_peer_alone() -> None:
    """An unknown length makes the sum unknown, but only that of its peer."""
    queues = [{"peer": "1", "wals": [{"left": 5}, {"left": 0}]}, {"peer": "2", "wals": [{"left": None}]}]
    assert (left_bytes(queues, "1"), left_bytes(queues, "2")) == (5, None)


def found(behind: int) -> Outcome:
    regions = {Status.BEHIND: behind, Status.COMPLETE: 2}
    return Outcome(HBaseOutcome(Verdict.INCOMPLETE, Evidence.EXACT, regions), None, (), 0)


def test_a_line_only_where_something_has_changed() -> None:
    """And bytes that were shipped, of as many as were left at most."""
    stream = io.StringIO()
    with Progress(Lines(stream, announces=False)) as progress, ExitStack() as stack:
        shown = ShownRounds(progress, stack)
        for left in (2_000, 2_000, 500):
            shown.round(found(behind=1), left)
        (shipped,) = progress.phases
        assert (shipped.done, shipped.total) == (1_500, 2_000)
        shown.round(found(behind=0), None)
    lines = stream.getvalue().splitlines()
    assert [line.partition(", cut ")[0] for line in lines] == [
        "verdict incomplete, regions to go 1 of 3 (1 behind), bytes to go 2000",
        "verdict incomplete, regions to go 1 of 3 (1 behind), bytes to go 500",
        "verdict incomplete, regions to go 0 of 2, bytes to go unknown",
    ]
