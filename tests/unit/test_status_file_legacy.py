"""The original tool's JSON: read strictly, written as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from status_tool.errors import OutputError
from status_tool.status_file import legacy
from status_tool.status_file.legacy import LegacyWriter, open_writer
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import StatusWriter
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.selection import strip_uri
from tests.status_files import FILE, HEADER, STREAM, batch
from tests.unit.test_status_file import read_header, read_or_refuse, refusal

MD5 = "0123456789abcdef" * 2
ALGORITHM = "MD5-of-0MD5-of-512CRC32C"
DOCUMENT: dict[str, Any] = {
    "shutdownTime": 1_700_000_000_000,
    "hdfsState": {"hdfs://nn:8020/a/b c": f"{ALGORITHM}:{MD5.upper()}", "/d": f"MD5:{MD5}"},
    "hBaseState": {"ab" * 16: 1_699_999_999_999, "1588230740": 0},
}


def save(path: Path, document: object) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def rows_of(path: Path, kind: str) -> list[dict[str, Any]]:
    with open_status(path) as status:
        rows = [row for part in status.rows({kind}) for row in part.to_pylist()]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_what_it_becomes(tmp_path: Path) -> None:
    path = save(tmp_path / "any.name", DOCUMENT)
    with open_status(path, require_side="master") as status:
        assert status.is_json
        assert status.path == path
        assert status.counts == {"stream": 2, "file": 2}
        assert status.parquet_path != path
        header = read_header(status.parquet_path)
        copy = status.parquet_path
    assert not copy.parent.exists()
    assert (header.side, header.evidence, header.half) == ("master", "timestamps", "both")
    assert header.cut_ms == header.shutdown_ms == 1_700_000_000_000
    assert rows_of(path, "stream") == [
        {"kind": "stream", "region": "1588230740", "write_ms": 0},
        {"kind": "stream", "region": "ab" * 16, "write_ms": 1_699_999_999_999},
    ]
    assert rows_of(path, "file") == [
        {"kind": "file", "path": "/a/b c", "algorithm": ALGORITHM, "checksum": MD5},
        {"kind": "file", "path": "/d", "algorithm": "MD5", "checksum": MD5},
    ]


@pytest.mark.parametrize("shutdown", [{}, {"shutdownTime": 0}])
def test_no_shutdown_time_is_said(tmp_path: Path, shutdown: dict[str, int]) -> None:
    path = save(tmp_path / "f", {**shutdown, "hBaseState": {"r": 5}})
    header = read_header(path)
    assert header.shutdown_ms is None
    assert header.half == "hbase"
    assert header.cut_ms == path.stat().st_mtime_ns // 1_000_000
    assert any("no shutdown time" in notice for notice in header.notices)


def test_white_space_before_it(tmp_path: Path) -> None:
    assert open_status(save(tmp_path / "f", " \n\t " + json.dumps(DOCUMENT))).is_json


def test_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "_BATCH_ROWS", 3)
    path = save(tmp_path / "f", {"hBaseState": {f"r{n}": n for n in range(10)}, "hdfsState": {}})
    assert [row["write_ms"] for row in rows_of(path, "stream")] == list(range(10))


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("hdfs://nn:8020/a", "/a"),
        ("file:///a", "/a"),
        ("file:/a", "/a"),
        ("viewfs://c/a:b//c/", "/a:b/c"),
        ("hdfs://n/a#b?c%20d", "/a#b?c%20d"),
        ("s3a:x", "s3a:x"),
        ("/a:/b", "/a:/b"),
        ("/x/hdfs://n/a", "/x/hdfs:/n/a"),
    ],
)
def test_scheme_and_authority_are_stripped(key: str, path: str) -> None:
    assert strip_uri(key) == path


def test_one_path_under_two_authorities(tmp_path: Path) -> None:
    same = {"hdfs://a/x": f"M:{MD5}", "hdfs://b/x": f"M:{MD5.upper()}"}
    assert len(rows_of(save(tmp_path / "f", {"hdfsState": same}), "file")) == 1
    other = {"hdfs://a/x": f"M:{MD5}", "hdfs://b/x": "M:00"}
    assert "two different checksums for /x" in refusal(save(tmp_path / "f", {"hdfsState": other}))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (json.dumps(DOCUMENT)[:-1], "damaged or cut short"),
        (json.dumps(DOCUMENT) + "x", "damaged or cut short"),
        ({"some": "JSON"}, "neither hBaseState nor hdfsState"),
        ({"hBaseState": []}, "hBaseState is not an object"),
        ({"hdfsState": "x"}, "hdfsState is not an object"),
        ({"hBaseState": {"r": "1"}}, "write time of region r is not a whole number"),
        ({"hBaseState": {"r": 1.0}}, "not a whole number"),
        ({"hBaseState": {"r": True}}, "not a whole number"),
        ({"hBaseState": {"r": -1}}, "not a time in milliseconds"),
        ({"hBaseState": {"r": 2**63}}, "not a time in milliseconds"),
        ({"hBaseState": {"": 1}}, "without a name"),
        ('{"hBaseState": {"r": -Infinity}}', "Infinity"),
        ('{"hBaseState": {"r": 1, "r": 2}}', "occurs twice"),
        ('{"hBaseState": {}, "hBaseState": {}}', "occurs twice"),
        ('{"hBaseState": ' + '{"a":' * 200_000, "nested too deeply"),
        ('{"hBaseState": {"r": ' + "9" * 5000 + "}}", "is not a valid status file"),
        ({"shutdownTime": -1, "hBaseState": {}}, "shutdownTime is not a time"),
        ({"shutdownTime": None, "hBaseState": {}}, "shutdownTime is not a whole number"),
        ({"hdfsState": {"/a": MD5}}, "checksum of /a is not ALGORITHM:hex"),
        ({"hdfsState": {"/a": f"MD5:{MD5}z"}}, "not ALGORITHM:hex"),
        ({"hdfsState": {"/a": "MD5:"}}, "not ALGORITHM:hex"),
        ({"hdfsState": {"/a": "MD5:abc"}}, "not ALGORITHM:hex"),
        ({"hdfsState": {"/a": f"MD5:{MD5}\n"}}, "not ALGORITHM:hex"),
        ({"hdfsState": {"/a": None}}, "not ALGORITHM:hex"),
        ({"hdfsState": {"a": f"MD5:{MD5}"}}, "not absolute: a"),
        ({"hdfsState": {"\x1b[2J\n": f"MD5:{MD5}"}}, r"not absolute: \x1b[2J\x0a"),
    ],
)
def test_refused_with_the_reason(tmp_path: Path, document: object, reason: str) -> None:
    assert reason in refusal(save(tmp_path / "f", document))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b'{"hBaseState": {"\xff": 1}}')
    assert "not UTF-8" in refusal(tmp_path / "f")
    assert "not a valid status file" in refusal(save(tmp_path / "f", '{"hBaseState": {"\\ud800": 1}}'))


def test_too_big(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "MAX_JSON_BYTES", 100)
    assert "is too big" in refusal(save(tmp_path / "f", DOCUMENT))


@settings(max_examples=200)
@given(
    document=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["shutdownTime", "hdfsState", "hBaseState", "/a"]), inner)
        ),
    )
)
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, document: object) -> None:
    path = save(tmp_path_factory.mktemp("f") / "f", {"hBaseState": document, "hdfsState": document})
    assert "\n" not in read_or_refuse(path)


def test_written_as_the_original_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with LegacyWriter(path, HEADER) as writer:
        writer.write(batch(STREAM, {**STREAM, "origin": 2, "write_ms": 7}, FILE))
        writer.write(batch({**STREAM, "region": "r2", "write_ms": 3}))
        writer.header = replace(HEADER, shutdown_ms=12)
    assert json.loads(path.read_text()) == {
        "shutdownTime": 12,
        "hdfsState": {"/a/ü": f"MD5:{'00' * 16}"},
        "hBaseState": {"ab" * 16: 1_700_000_000_000, "r2": 3},
    }
    assert {row["region"]: row["write_ms"] for row in rows_of(path, "stream")}["r2"] == 3


@pytest.mark.parametrize(("half", "rows"), [("both", [FILE, STREAM]), ("hdfs", [FILE]), ("hbase", [STREAM])])
def test_the_halves_that_were_recorded_are_in_scope(tmp_path: Path, half: str, rows: list[dict[str, Any]]) -> None:
    with LegacyWriter(tmp_path / "f.json", replace(HEADER, half=half)) as writer:
        writer.write(batch(*rows))
    assert read_header(tmp_path / "f.json").half == half


@pytest.mark.parametrize(
    ("half", "row", "words"),
    [("both", FILE, "no stream of HBase"), ("both", STREAM, "no file of HDFS"), ("hdfs", STREAM, "no file of HDFS")],
)
def test_a_half_without_anything_is_not_written(tmp_path: Path, half: str, row: dict[str, Any], words: str) -> None:
    """A master without trackers, or an empty folder, would be a half that nobody checks."""
    writer = LegacyWriter(tmp_path / "f.json", replace(HEADER, half=half))
    with pytest.raises(OutputError, match=words), writer:
        writer.write(batch(row))
    assert not (tmp_path / "f.json").exists()


def test_a_file_of_the_original_without_regions_is_asked_for_them(tmp_path: Path) -> None:
    """It always records HBase, and no files if it is given no paths."""
    files = {"/a": f"MD5:{MD5}"}
    assert read_header(save(tmp_path / "f", {"hBaseState": {}, "hdfsState": files})).half == "both"
    assert read_header(save(tmp_path / "f", {"hBaseState": {"r": 1}, "hdfsState": {}})).half == "hbase"


@pytest.mark.parametrize(
    "changed",
    [
        {"checksum": None, "algorithm": None, "state": "open"},
        {"state": "open"},
        {"algorithm": f"{ALGORITHM} encrypted"},
        {"algorithm": f"{ALGORITHM} RS-6-3-1024k"},
    ],
)
def test_a_file_that_the_format_cannot_express_is_not_left_out(tmp_path: Path, changed: dict[str, Any]) -> None:
    """The slave would not look for it, and a mark would be refused there."""
    path = save(tmp_path / "f.json", DOCUMENT)
    writer = LegacyWriter(path, HEADER)
    with pytest.raises(OutputError) as refused, writer:
        writer.write(batch(FILE, {**FILE, "path": "/x", **changed}, {**FILE, "path": "/y", **changed}))
    assert "2 files without a plain checksum" in str(refused.value)
    assert "(/x, …); write a Parquet FILE" in str(refused.value)
    assert json.loads(path.read_text()) == DOCUMENT


def test_a_path_that_was_listed_with_two_contents_is_not_left_out(tmp_path: Path) -> None:
    """As a file in HDFS and one on the local disk: the later one would have taken the other's place."""
    known = {**FILE, "algorithm": ALGORITHM, "checksum": MD5}
    writer = LegacyWriter(tmp_path / "f.json", replace(HEADER, half="hdfs"))
    with pytest.raises(OutputError, match=r"1 file without a plain checksum"), writer:
        writer.write(batch(known, known, {**known, "checksum": MD5[::-1]}))


def test_a_stream_whose_last_write_is_not_known_is_not_left_out(tmp_path: Path) -> None:
    """Its head is damaged: a FILE without it would have nobody look for what was written to its region."""
    writer = LegacyWriter(tmp_path / "f.json", replace(HEADER, half="hbase"))
    words = r"1 stream whose last write is not known \(region r9\); write a Parquet FILE"
    with pytest.raises(OutputError, match=words), writer:
        writer.write(batch(STREAM, {**STREAM, "region": "r9", "write_ms": None}))
    assert not (tmp_path / "f.json").exists()


def test_a_path_that_was_not_there_is_not_left_out(tmp_path: Path) -> None:
    """It is said before anything is read."""
    writer = LegacyWriter(tmp_path / "f.json", replace(HEADER, hdfs_absent=("/gone",)))
    with pytest.raises(OutputError, match=r"1 path to check that HDFS does not have \(/gone\); write a Parquet FILE"):
        writer.__enter__()


def test_a_failed_run_leaves_the_older_file(tmp_path: Path) -> None:
    path = save(tmp_path / "f.json", DOCUMENT)
    with pytest.raises(ZeroDivisionError), LegacyWriter(path, HEADER) as writer:
        writer.write(batch(STREAM, {**STREAM, "seq": 1 // 0}))
    assert json.loads(path.read_text()) == DOCUMENT
    with pytest.raises(OutputError), LegacyWriter(tmp_path, HEADER):
        pass
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "kind"), [("a.json", LegacyWriter), ("A.JSON", LegacyWriter), ("a", StatusWriter)])
def test_the_name_chooses_the_format(tmp_path: Path, name: str, kind: type) -> None:
    header: Header = HEADER
    assert isinstance(open_writer(tmp_path / name, header), kind)
