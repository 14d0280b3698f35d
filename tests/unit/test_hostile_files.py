"""Status files with any edit made to them, and Parquet files that only look like one: refused with one line."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from status_tool.errors import StatusFileError
from status_tool.status_file.footer import DIGEST_KEY, HEADER_KEY, NO_DIGEST, encode_header
from status_tool.status_file.reader import open_status
from tests.status_files import FILE, HEADER, SERVER, STREAM, write

Edit = tuple[str, int, int, bytes]
EDITS: st.SearchStrategy[Edit] = st.tuples(
    st.sampled_from(["flip", "insert", "delete", "double", "move"]),
    st.integers(0, 10**6),
    st.integers(1, 64),
    st.binary(min_size=1, max_size=16),
)
LEGACY = b'{"shutdownTime": 5, "hdfsState": {"/a": "MD5:00ff"}, "hBaseState": {"%s": 7}}' % (b"ab" * 16)


def edited(data: bytes, edit: Edit) -> bytes:
    kind, place, length, extra = edit
    at = place % (len(data) + 1)
    part = data[at : at + length]
    match kind:
        case "flip":
            return data[:at] + bytes(byte ^ extra[0] for byte in part) + data[at + length :]
        case "insert":
            return data[:at] + extra + data[at:]
        case "delete":
            return data[:at] + data[at + length :]
        case "double":
            return data[: at + length] + part + data[at + length :]
    return data[:at] + data[at + length :] + part


def content(path: Path) -> Any:
    """Header and rows, or the refusal: one printable line."""
    try:
        with open_status(path) as status:
            return status.header, [row for batch in status.rows() for row in batch.to_pylist()]
    except StatusFileError as error:
        refusal = str(error)
    assert refusal.isprintable()
    return None


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("sealed") / "f", STREAM, FILE, SERVER).read_bytes()


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("edited") / "f"


@settings(max_examples=150)
@given(edits=st.lists(EDITS, min_size=1, max_size=4))
def test_an_edited_status_file_is_refused(sealed: bytes, target: Path, edits: list[Edit]) -> None:
    """Whatever was done to it: only the very same bytes are the same file."""
    data = reduce(edited, edits, sealed)
    target.write_bytes(data)
    assert (content(target) is None) == (data != sealed)


@settings(max_examples=60)
@given(edits=st.lists(EDITS, min_size=1, max_size=4))
def test_an_edited_json_file_is_read_or_refused(target: Path, edits: list[Edit]) -> None:
    """The original's file has no digest: what still is one is read, whatever it says."""
    target.write_bytes(reduce(edited, edits, LEGACY))
    content(target)


COLUMNS = st.sampled_from(["kind", "table", "region", "origin", "seq", "detail", "x"])
TYPES = st.recursive(
    st.sampled_from([pa.string(), pa.int64(), pa.binary(), pa.bool_(), pa.float64(), pa.timestamp("ns"), pa.null()]),
    lambda inner: inner.map(pa.list_) | inner.map(lambda kind: pa.struct([("a", kind)])),
    max_leaves=3,
)


@settings(max_examples=30)
@given(columns=st.dictionaries(COLUMNS, TYPES, min_size=1), counted=st.integers(0, 3))
def test_parquet_posing_as_status_file_is_refused(target: Path, columns: dict[str, pa.DataType], counted: int) -> None:
    """Our header in a foreign file: its columns give it away."""
    header = encode_header(HEADER, {"file": counted})
    schema = pa.schema(list(columns.items())).with_metadata({HEADER_KEY: header, DIGEST_KEY: NO_DIGEST})
    pq.write_table(pa.table([pa.nulls(counted, kind) for kind in columns.values()], schema=schema), target)
    assert content(target) is None
