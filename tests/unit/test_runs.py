"""What a run says of itself beside the verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from status_tool.cli.main import main
from status_tool.clients.config import HDFS_PATHS_KEY, Settings
from status_tool.clients.sitefiles import SiteConfig
from status_tool.errors import EXIT_ERROR, StatusFileError, UsageError
from status_tool.gather.snapshot import Request, apply_shutdown
from status_tool.runs.question import refuse_silent
from status_tool.runs.write import UNASKED_FILES, dump_file, streams_written_later, unasked
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import MASTER, SLAVE, Header
from status_tool.vocabulary.schema import KINDS, STATUS_SCHEMA
from status_tool.vocabulary.scope import Scope

HEADER = Header(side="master", cluster_id="id", created_ms=1000, cut_ms=900)


def rows(*values: dict[str, Any]) -> pa.RecordBatch:
    """A batch of the status schema."""
    return pa.RecordBatch.from_pylist(list(values), schema=STATUS_SCHEMA)


def test_streams_written_to_after_the_shutdown_are_counted() -> None:
    """Only streams, only later ones; nothing without a shutdown time."""
    batch = rows(
        {"kind": "stream", "write_ms": 499},
        {"kind": "stream", "write_ms": 500},
        {"kind": "stream", "write_ms": 501},
        {"kind": "stream"},
        {"kind": "fact", "write_ms": 900},
    )
    assert streams_written_later(batch, 500) == 1
    assert streams_written_later(batch, None) == 0
    assert streams_written_later(rows(), 500) == 0


def test_a_large_hdfs_is_read_whole_only_when_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names how much it is; a small one is read, which is told; named paths and one half are enough."""
    few, many = ({"TotalFiles": count, "Used": 345} for count in (UNASKED_FILES, UNASKED_FILES + 1))
    beans: list[list[dict[str, Any]]] = [[many], [few], [], [{"TotalFiles": "many"}]]
    monkeypatch.setattr("status_tool.runs.write.WebHdfs.beans", lambda *_: iter(beans.pop(0)))
    settings = Settings(SiteConfig({}), webhdfs_option=("http://h:1",))
    whole = Request(MASTER, 0)
    with pytest.raises(UsageError, match=r"/ at http://h:1.*, 10001 files and folders, 345 bytes.*-f FILE.*--all-f"):
        unasked(settings, whole)
    for asked in (Request(MASTER, 0, hdfs_paths=("/",)), Request(MASTER, 0, hdfs=False), Request(SLAVE, 0)):
        assert unasked(settings, asked) is None
    assert unasked(Settings(SiteConfig({HDFS_PATHS_KEY: "/data"})), whole) is None
    assert "10000 files" in str(unasked(settings, whole))
    for _ in range(2):
        assert "all of it is read: / at http://h:1" in str(unasked(settings, whole))
    assert str(unasked(Settings(SiteConfig({})), whole)).endswith("read: /")


def test_a_dump_leaves_no_rows_of_an_older_one(tmp_path: Path) -> None:
    """Those of a kind that FILE lacks would pass for its own."""
    for row in ({"kind": "file", "path": "/a"}, {"kind": "table", "table": "t"}):
        with StatusWriter(tmp_path / "f.status", replace(HEADER, hdfs_paths=("/",))) as writer:
            writer.write(rows(row))
        dump_file(tmp_path / "f.status", tmp_path / "dump")
    found = {path.stem: path.read_text() for path in (tmp_path / "dump").iterdir()}
    assert {name for name, text in found.items() if text} == {"table"}
    assert {*found} == {*KINDS}


def test_what_is_refused_has_no_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan of a run that reads all of HDFS unasked was one of a run that ends at once."""
    many = {"TotalFiles": UNASKED_FILES + 1, "Used": 345}
    monkeypatch.setattr("status_tool.runs.write.WebHdfs.beans", lambda *_: iter([many]))
    monkeypatch.setattr("status_tool.runs.plan.explain_side", lambda *_: iter(()))
    line = ["run", "-m", "--only", "hdfs", "--webhdfs", "http://h:1", "--explain", "-o", str(tmp_path / "file")]
    assert main(line) == EXIT_ERROR
    assert "this would read every file of HDFS" in capsys.readouterr().err
    assert main([*line, "--all-files"]) == 0


def test_a_shutdown_time_is_the_cut_unless_it_lies_in_the_future() -> None:
    """One later than the dump is reported and not used."""
    used = apply_shutdown(HEADER, 700, "option", 900)
    assert (used.shutdown_ms, used.cut_ms, used.notices) == (700, 700, ())
    refused = apply_shutdown(HEADER, 901, "option", 900)
    assert (refused.shutdown_ms, refused.cut_ms) == (None, 900)
    assert "is later than the dump" in refused.notices[0]


def test_a_slave_that_cannot_report_is_refused() -> None:
    """Instead of calling everything missing (issue 12, D.8)."""
    row = {"kind": "server", "server": "h,1,1", "origin": 1, "role": "r", "live": True}
    silent = {**row, "detail": '{"sink_hook":false}'}
    with pytest.raises(StatusFileError, match="HBASE-27529"):
        refuse_silent([silent], Scope())
    refuse_silent([silent], Scope(check_hbase=False))
    for detail in ('{"errors":0}', None, "{", '{"sink_hook":true}'):
        refuse_silent([{**silent, "live": False}, {**row, "detail": detail}], Scope())
