"""Decoding of state table rows, znodes, checksums and spool files; merging of spooled rows."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.client import KeeperState

from status_tool.clients import hbase_pb2
from status_tool.clients.config import ThriftEndpoint, ZooKeeperEndpoint
from status_tool.clients.hdfscli import Refused
from status_tool.clients.thrift import Cells, StoredRow, Value
from status_tool.clients.webhdfs import WebHdfs
from status_tool.clients.zookeeper import ZooKeeper, parse_cluster_key, unwrap
from status_tool.errors import ConnectionFailed
from status_tool.gather.parallel_reading import read_all
from status_tool.gather.snapshot import NO_ROWS, PackedRows, _families_of, with_events
from status_tool.rules.custody import Places
from status_tool.rules.descriptors import retention_of
from status_tool.sources import codec, meta, pages, spool, state_table
from status_tool.sources.interface import Source
from status_tool.sources.meta import HostedRegion
from status_tool.sources.spool import read_spool
from status_tool.sources.state_table import (
    Descriptors,
    Generation,
    StateTableSource,
    TableEvents,
    generation_of,
    merge_rows,
    openings,
    refuse_emptied,
    refuse_other,
)
from status_tool.vocabulary.ids import as_hex, cluster_bytes, family_id, from_hex, origin_id
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import TableFilter
from status_tool.vocabulary.state_rows import CoverageRow, column

REGION = "0123456789abcdef0123456789abcdef"


def int64(number: int) -> bytes:
    """As HBase's Bytes.toBytes(long)."""
    return number.to_bytes(8, "big", signed=True)


def cell(value: bytes, timestamp: int = 0) -> tuple[bytes, int]:
    return value, timestamp


def stored(row: tuple[bytes, Cells]) -> StoredRow:
    """As a scanner's answer has it."""
    found = StoredRow()
    found.row, found.columns = row[0], {}
    for name, (value, _) in row[1].items():
        found.columns[name] = Value()
        found.columns[name].value = value
    return found


def read_by(monkeypatch: pytest.MonkeyPatch, rows: dict[bytes, Cells]) -> None:
    """Let a state table's rows be these, however they are read."""

    def scanned(_endpoint: object, _table: str, start: bytes, stop: bytes) -> Iterator[tuple[bytes, Cells]]:
        return iter([(key, cells) for key, cells in rows.items() if start <= key < stop])

    monkeypatch.setattr(state_table, "scan", scanned)
    monkeypatch.setattr(state_table, "scan_pages", lambda *place: ([stored(row)] for row in scanned(*place)))
    monkeypatch.setattr(state_table, "get", lambda _endpoint, _table, row: rows.get(row, {}))


@st.composite
def head_rows(draw: st.DrawFn) -> tuple[bytes, Cells]:
    """A head, nearly as trackers write it: now and then with something else in its key or in columns."""
    odd = draw(st.integers(0, 9))
    key = f"h{draw(st.sampled_from([REGION, 'f' * 32]))}{as_hex(draw(st.integers(-5, 5)))}{as_hex(7)}".encode()
    if odd == 0:
        others = [b"h" + b"0" * 40, key[:60] + b" 0 0_", key[:9] + b"\xff" + key[10:], b"h", key + b"0"]
        key = draw(st.sampled_from(others))
    numbers = [int64(9)] if odd != 1 else [int64(-1), b"", b"odd"]
    texts = [b"t"] if odd != 2 else [b"", "ü".encode(), b"\xed\xa0\x80", b"\xff"]
    columns = {name: draw(st.sampled_from(numbers if name in "swn" else texts)) for name in "swntkevc"}
    return key, {column(name.encode()): cell(columns[name]) for name in columns if odd != 3 or draw(st.booleans())}


@given(st.lists(st.lists(head_rows(), min_size=1, max_size=5), max_size=3), st.sampled_from([(), ("t",), ("other",)]))
def test_heads_by_the_page(given: list[list[tuple[bytes, Cells]]], tables: tuple[str, ...]) -> None:
    """The same rows as one by one, also of pages with odd ones, and the same are out of scope."""
    only = TableFilter.of(tables, ())
    answers = [list(map(stored, page)) for page in given]
    found = pa.Table.from_batches(pages.held(pages.head_batches(answers), only.holds), STATUS_SCHEMA)
    rows = [row for row in codec.heads(row for page in given for row in page) if only.holds(row["table"])]
    assert found.equals(pa.Table.from_pylist(rows, STATUS_SCHEMA))


def test_segments_and_the_newest_replicated_time() -> None:
    """One row a segment; `r` once a region, the newest of its streams."""
    rows = []
    for origin, newest in ((1, 50), (2, 90)):
        key = f"s{REGION}{as_hex(origin)}{as_hex(0)}".encode()
        segment = cell(b"\x01" + part(0, 4, 10, 20, 0, 77))
        cells = {column(b"c" + int64(origin)): segment, column(b"r"): cell(int64(newest))}
        rows.append((key, cells | {column(b"t"): cell(b"t"), column(b"c-odd"): cell(b"?")}))
    other = (f"s{'f' * 32}{as_hex(1)}{as_hex(0)}".encode(), {column(b"r"): cell(int64(5))})
    found = list(codec.segments([*rows, other]))
    assert [row["kind"] for row in found] == ["segment", "segment", "replicated", "replicated"]
    assert [(row["region"][0], row["write_ms"]) for row in found[2:]] == [("0", 90), ("f", 5)]
    names = ("prev", "seq", "first_ms", "write_ms", "recorded_ms")
    assert [found[0][name] for name in names] == [0, 4, 10, 20, 77]


def part(*numbers: int) -> bytes:
    return b"".join(map(int64, numbers))


def test_the_columns_of_a_streams_row_are_one_union() -> None:
    """Each server has a column of its own."""
    key = f"s{REGION}{as_hex(1)}{as_hex(0)}".encode()
    cells = {
        column(b"c" + int64(-3)): cell(b"\x01" + part(0, 4, 10, 40, 0, 500) + part(9, 12, 90, 120, 80, 700), 1),
        column(b"c" + int64(77)): cell(b"\x01" + part(4, 6, 50, 60, 40, 600), 2),
        column(b"c" + int64(78)): cell(b"\x01" + part(6, 7, 65, 70, 60, 650), 3),
        column(b"c" + int64(80)): cell(b"\x02" + part(7, 9, 75, 80, 70, 680), 3),  # of a later version
        column(b"c" + int64(79)): cell(b"\x01" + part(7, 9), 3),
    }
    found = [row for row in codec.segments([(key, cells)]) if row["kind"] == "segment"]
    names = ("prev", "seq", "first_ms", "write_ms", "started_ms", "recorded_ms")
    assert [tuple(row[name] for name in names) for row in found] == [(0, 7, 10, 70, 0, 500), (9, 12, 90, 120, 80, 700)]


def test_entries_without_a_stamp_by_the_clusters_that_they_came_through() -> None:
    """One row for each."""
    cells = {column(b"r" + b"w" * 16): cell(int64(5)), column(b"r" + b"x" * 16): cell(int64(7))}
    found = list(codec.unstamped([(f"u{REGION}".encode(), cells)]))
    assert [(row["via_ids"], row["write_ms"]) for row in found] == [(b"w" * 16, 5), (b"x" * 16, 7)]


@given(st.lists(st.tuples(st.binary(max_size=80), st.dictionaries(st.binary(max_size=20), st.binary(max_size=20)))))
def test_garbage_in_the_table_never_fails(rows: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
    """Whatever stands in rows and columns, decoding ends, and what comes out fits the schema."""
    for kind, decode in codec.DECODERS.items():
        garbage = [
            (kind.encode() + key, {b"t:" + name: cell(one) for name, one in cells.items()}) for key, cells in rows
        ]
        for batch in codec.batches(decode(garbage)):
            assert batch.num_rows > 0


@pytest.mark.parametrize("damaged", [b"{", b"[]", b"5", b'"x"', b"null", b"[" * 100_000])
def test_a_damaged_descriptor_is_empty(damaged: bytes) -> None:
    """No descriptor is no scope: the table is then not known to be replicated."""
    row = codec.descriptor(b"tname", {column(b"d"): cell(damaged)})
    assert row["detail"] == "{}"
    # Whoever reads it takes it for an object.
    small = Descriptors((), (row,), None, None, {"name": {"skipped_ms": 5}})
    assert _families_of(small) == {}
    assert json.loads(with_events(row, small)["detail"]) == {"skipped_ms": 5}


@given(st.integers(-(2**63), 2**63 - 1))
def test_hex_ids(number: int) -> None:
    assert from_hex(as_hex(number)) == number
    assert len(as_hex(number)) == 16


def test_ids_are_those_of_the_trackers() -> None:
    """Fixed values; the trackers' own test, `IdsTest`, holds the same."""
    assert (as_hex(origin_id("localhost,16020,1700000000000")), family_id("f")) == ("838cf5e2791a3490", "151a27db")
    assert (cluster_bytes("ba334f3a-690b-49f0-9d4a-660584d0fd6e") or b"").hex() == "ba334f3a690b49f09d4a660584d0fd6e"
    assert cluster_bytes("no uuid") is None


def test_ranges_cover_every_region_once() -> None:
    """The parallel parts are disjoint and leave nothing out."""
    source = StateTableSource(ThriftEndpoint("h", 1), "t", "hg", Generation(b"table", b""))
    spans = [span for part in source.partitions() for span in part]
    for kind in "hg":
        starts = sorted(span.start for span in spans if span.type == kind)
        stops = sorted(span.stop for span in spans if span.type == kind)
        assert len(starts) == 4
        for digit in "0123456789abcdef":
            key = f"{kind}{digit}aaa".encode()
            assert sum(start <= key < stop for start, stop in zip(starts, stops, strict=True)) == 1


def test_no_digit_is_left_out_and_no_row_is_taken_for_another_digits() -> None:
    """Of regions without a row, too, a slave has to say that nobody vouches for them."""
    rows: list[tuple[bytes, Cells]] = [(key, {}) for key in (b"f8a", b"f8b", b"f:", b"faa", b"fz")]
    found = [(digit, [key for key, _ in some]) for digit, some in state_table._by_digit(rows, "789abc")]
    assert found == [("7", []), ("8", [b"f8a", b"f8b"]), ("9", []), ("a", [b"faa"]), ("b", []), ("c", [])]


@pytest.mark.parametrize(("tasks", "parts"), [(1, 4), (4, 4), (6, 8), (8, 8), (16, 16), (500, 16)])
def test_there_are_parts_for_all_tasks(tasks: int, parts: int) -> None:
    """Of Spark's executors; each region is in one of them."""
    source = StateTableSource(ThriftEndpoint("h", 1), "t", "s", Generation(b"table", b"")).shared_out(tasks)
    spans = source.partitions()
    assert len(spans) == parts
    assert "".join(span.digits for part in spans for span in part) == "0123456789abcdef"
    few, many = (
        codec.Existing(codec.packed(f"{number:032x}" for number in range(regions)), 0)
        for regions in (state_table.FEW_REGIONS, state_table.FEW_REGIONS + 1)
    )
    assert len(replace(source, existing=few).partitions()) == 1
    assert len(replace(source, existing=many).partitions()) == parts


@pytest.mark.parametrize(
    ("tables", "namespaces", "admitted"),
    [
        ((), (), ["t", "ns:t", None]),
        (("t",), (), ["t", None]),
        ((), ("ns",), ["ns:t", None]),
        ((), ("default",), ["t", None]),
        (("ns:t",), ("default",), ["t", "ns:t", None]),
    ],
)
def test_table_filter(tables: Sequence[str], namespaces: Sequence[str], admitted: list[str | None]) -> None:
    """By name or namespace; rows that name no table are always read."""
    only = TableFilter(frozenset(tables), frozenset(namespaces))
    assert [name for name in ("t", "ns:t", None) if only.holds(name)] == admitted


def test_spooled_rows_are_merged_by_the_newer_cell() -> None:
    """As HBase would show them once they are put."""
    stored = [(b"a", {b"t:s": cell(b"old", 1), b"t:w": cell(b"kept", 5)}), (b"c", {b"t:s": cell(b"c", 1)})]
    spooled = [(b"a", {b"t:s": cell(b"new", 2), b"t:w": cell(b"late", 4)}), (b"b", {b"t:s": cell(b"b", 1)})]
    merged = list(merge_rows(stored, spooled))
    assert [key for key, _ in merged] == [b"a", b"b", b"c"]
    assert {name: value for name, (value, _) in merged[0][1].items()} == {b"t:s": b"new", b"t:w": b"kept"}


def test_spooled_rows_of_one_key_are_one_row() -> None:
    """A tracker spools each event of a table as a row of its own; none may hide another, stored or not."""
    spooled = [(key, {name: cell(b"1", 3)}) for key in (b"nt", b"nu") for name in (b"t:b", b"t:w")]
    merged = dict(merge_rows([(b"nu", {b"t:d": cell(b"1", 2)})], spooled))
    assert set(merged[b"nt"]) == {b"t:b", b"t:w"}
    assert set(merged[b"nu"]) == {b"t:b", b"t:w", b"t:d"}


@dataclass
class SpoolFolder:
    """A spool folder with one file."""

    name: str
    content: bytes

    def pages(self, _folder: str) -> Iterator[list[dict[str, Any]]]:
        yield [{"pathSuffix": self.name, "length": len(self.content)}]

    def start_of(self, _path: str, _most: int) -> tuple[bytes, bool]:
        return self.content, True


def test_what_a_server_has_flushed_is_not_read_from_the_file_that_it_appends_to() -> None:
    """Files of others are, and what is in no such file."""
    line = b'{"row":"6f31","cells":[]}\n'
    for name, is_read in (("0000000000000005-1-0.growing.jsonl", False), ("0000000000000005-1-0.jsonl", True)):
        assert bool(read_spool(cast(WebHdfs, SpoolFolder(name, line)), "spool", {5, -1})) == is_read
        assert read_spool(cast(WebHdfs, SpoolFolder(name, line)), "spool", {-1})


def test_the_line_that_a_crash_cut_off_is_passed_over_where_a_file_grows() -> None:
    """What was whole has been flushed; a file that was written at once has no such line, so there it is damage."""
    whole = b'{"row":"6f31","cells":[{"q":"73","v":"00ff","ts":7},{"q":"74","v":""}]}\n'
    for rest in (b"", b'{"row":"6f32","ce', whole[:-1]):
        growing = SpoolFolder("0000000000000005-1234-0.growing.jsonl", whole + rest)
        (found,) = read_spool(cast(WebHdfs, growing), "spool")
        assert found == (b"o1", {b"t:s": (b"\x00\xff", 7), b"t:t": (b"", 0)})
    with pytest.raises(ConnectionFailed, match="move it away"):
        read_spool(cast(WebHdfs, SpoolFolder("0000000000000005-1234-0.jsonl", whole + b'{"row":"6f32","ce')), "spool")


def test_a_file_that_cannot_be_read_has_a_way_out() -> None:
    """After a restart of all DataNodes until a tracker has recovered the lease, and where blocks are lost."""
    folder = SpoolFolder("0000000000000005-1-0.growing.jsonl", b"")

    def refuse(_path: str, _most: int) -> tuple[bytes, bool]:
        raise Refused("CannotObtainBlockLengthException", "Cannot obtain block length")

    folder.start_of = refuse  # type: ignore[method-assign]
    with pytest.raises(ConnectionFailed, match="run again; if it stays so, move it away"):
        read_spool(cast(WebHdfs, folder), "spool")


def test_a_file_that_is_read_in_part_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest may hold events of tables."""
    line = b'{"row":"6f31","cells":[]}\n'
    monkeypatch.setattr(spool, "MAX_BYTES", len(line))
    with pytest.raises(ConnectionFailed, match="run again"):
        read_spool(cast(WebHdfs, SpoolFolder("0000000000000005-1-0.growing.jsonl", line)), "spool")


def meta_row(table: str, cells: Mapping[str, bytes | None]) -> tuple[bytes, Cells]:
    """A row of hbase:meta for region `REGION` of a table, hosted by h,1,5 unless said otherwise."""
    info = hbase_pb2.RegionInfo(
        region_id=7, table_name=hbase_pb2.TableName(namespace=b"default", qualifier=table.encode()), end_key=b"z"
    )
    columns: dict[str, bytes | None] = {
        "regioninfo": b"PBUF" + info.SerializeToString(),
        "server": b"h:1",
        "serverstartcode": int64(5),
        "state": b"OPEN",
        **cells,
    }
    key = f"{table},,7.{REGION}.".encode()
    return key, {b"info:" + name.encode(): cell(value) for name, value in columns.items() if value is not None}


@pytest.mark.parametrize(
    ("cells", "enabled", "live", "state"),
    [
        ({}, True, {"h,1,5"}, "hosted"),
        ({"server": b"H:1"}, True, {"h,1,5"}, "hosted"),
        ({"server": b"[::1]:1"}, True, {"::1,1,5"}, "hosted"),
        ({}, True, {"h,1,6"}, "unhosted"),
        ({"state": b"OPENING"}, True, {"h,1,5"}, "unhosted"),
        ({"state": b"FAILED_OPEN"}, True, {"h,1,5"}, "unhosted"),
        ({"server": b""}, True, {"h,1,5"}, "unhosted"),
        *(({"state": state}, False, {"h,1,5"}, "disabled") for state in (b"CLOSED", b"OFFLINE")),
        *(({"state": state}, False, {"h,1,5"}, "unhosted") for state in (b"CLOSING", b"OPENING", b"ABNORMALLY_CLOSED")),
        ({"state": b"OPEN"}, False, {"h,1,5"}, "hosted"),
        ({"state": b"OPEN"}, False, {"h,1,6"}, "unhosted"),
        ({"state": None}, False, {"h,1,5"}, "disabled"),
        ({"state": None}, True, {"h,1,5"}, "hosted"),
        ({"state": b"SPLIT"}, True, {"h,1,5"}, "split"),
    ],
)
def test_who_hosts_a_region(
    cells: Mapping[str, bytes | None], enabled: bool, live: set[str], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A region that no live server hosts is never silently fine, unless it has been closed with its table.

    HBase's servers are known in lower case and without brackets, but for `info:server`.
    """
    states = hbase_pb2.TableState
    flag = states(state=states.ENABLED if enabled else states.DISABLED).SerializeToString()
    rows = [
        (b"t", {b"table:state": cell(flag)}),
        *(meta_row(name, cells) for name in ("t", "replicationstate", "hbase:x")),
    ]
    monkeypatch.setattr("status_tool.sources.meta.scan_pages", lambda *_: iter([list(map(stored, rows))]))
    (row,) = meta.regions(ThriftEndpoint("h", 1), live, "replicationstate", TableFilter())
    assert (row["table"], row["region"], row["region_id"], row["end_key"]) == ("t", REGION, 7, b"z")
    assert row["state"] == state


def test_regions_are_handed_out_as_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is held back for what may follow: there may be a million of them."""
    taken = []

    def scanned(*_: object) -> Iterator[list[StoredRow]]:
        for name in ("a", "b", "c"):
            taken.append(name)
            yield [stored(meta_row(name, {}))]

    monkeypatch.setattr("status_tool.sources.meta.scan_pages", scanned)
    found = meta.regions(ThriftEndpoint("h", 1), {"h,1,5"}, "replicationstate", TableFilter())
    assert (next(found)["table"], taken) == ("a", ["a"])
    assert [row["table"] for row in found] == ["b", "c"]


@pytest.mark.parametrize("namespace", ["default", "ns"])
def test_a_region_is_found_again_by_its_name(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`table,start,id.encoded.`, as HBase has it; one that has been closed since is not open."""
    info = hbase_pb2.RegionInfo(
        region_id=7, table_name=hbase_pb2.TableName(namespace=namespace.encode(), qualifier=b"t"), start_key=b"a,\xff"
    )
    opened = {"regioninfo": b"PBUF" + info.SerializeToString(), "seqnumDuringOpen": int64(9)}
    key = (b"" if namespace == "default" else b"ns:") + b"t,a,\xff,7." + REGION.encode() + b"."
    stored = {key: meta_row("t", opened)[1]}
    monkeypatch.setattr("status_tool.sources.meta.scan", lambda *_: iter(stored.items()))
    (region,) = meta.open_regions(ThriftEndpoint("h", 1), ["t" if namespace == "default" else "ns:t"])
    assert (region.name, region.start, region.open_seq) == (key, b"a,\xff", 9)
    assert region.opened_ms == stored[key][b"info:seqnumDuringOpen"][1]

    def rows(names: list[bytes], columns: list[bytes], include_timestamp: bool) -> list[tuple[bytes, Cells]]:
        return [(name, stored[name]) for name in names if include_timestamp and b"info:state" in columns]

    client = SimpleNamespace(table=lambda name: SimpleNamespace(rows=rows))
    monkeypatch.setattr(meta, "connection", lambda endpoint: contextlib.nullcontext(client))
    assert list(meta.open_again(ThriftEndpoint("h", 1), [region, region])) == [region]
    stored[key][b"info:state"] = cell(b"CLOSING")
    assert list(meta.open_again(ThriftEndpoint("h", 1), [region])) == []


def test_packed_rows() -> None:
    """They come out as they went in, whole or by some columns, in batches."""
    rows = [{"kind": "region", "region": f"{number:032x}", "start_key": b"%d" % number} for number in range(25_000)]
    packed = PackedRows.of(iter(rows))
    (part,) = packed.partitions()
    read = pa.Table.from_batches(packed.read(part))
    assert read.equals(pa.Table.from_pylist(rows, schema=STATUS_SCHEMA))
    assert list(packed.rows("region", "state")) == [{"region": row["region"], "state": None} for row in rows]
    assert len(packed.packed) < read.nbytes / 5
    assert list(NO_ROWS.rows("kind")) == []


@st.composite
def tenures(draw: st.DrawFn) -> bytes:
    """A column of an `f` row, sometimes damaged."""
    number = st.integers(0, 9)
    files = st.dictionaries(st.sampled_from(["f", "g", "x"]), st.lists(number, min_size=4, max_size=4), max_size=2)
    written: dict[str, Any] = {name: draw(number) for name in "ots"}
    written |= {"r": draw(st.lists(st.sampled_from(["f", "x"]), max_size=2)), "a": draw(files), "b": draw(files)}
    written |= {name: draw(number) for name in "cmxuy" if draw(st.booleans())}
    if draw(st.booleans()):
        written["k"] = {draw(st.sampled_from(["f", "g"])): [draw(st.sampled_from([1, 3])), 0, 600, 0, 0, 1]}
    value = json.dumps(written).replace('"x"', draw(st.sampled_from(['"x"', '"\\u0078"']))).encode()
    return value[: draw(st.sampled_from([None, None, -1]))]


@given(st.lists(st.tuples(st.text("0a", min_size=1, max_size=2), st.lists(tenures(), max_size=3)), max_size=6))
def test_a_tenure_that_need_not_be_parsed_would_tell_nothing(written: list[tuple[str, list[bytes]]]) -> None:
    """The same facts as if every one were parsed, with and without knowledge of the regions that there are."""
    rows = []
    for region, values in written:
        rows.append((f"f{region}".encode(), held_by(*values)))
    names = ["00", "0a", "a"]
    kept = {"t": {"f": (3, 0, 600, 0, 0, 1)}}
    lazy = codec.Existing(codec.packed(names), 1_000, replicated={"t": frozenset({"f"})}, kept=kept)
    keeping = codec.Keeping(kept, 1_000)
    for existing in (None, codec.Existing(codec.packed(names), 1_000), lazy):
        found = list(codec.contents(rows, existing, keeping))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(codec, "_is_ordinary", lambda *_: False)
            assert list(codec.contents(rows, existing, keeping)) == found


Files = dict[str, list[int]]
"""By family, the numbers of its store files; or what its table keeps."""
ONE_FILE: Files = {"f": [1, 2, 0, 0]}


def tenure(r: str = "f", c: int | None = None, k: Files | None = None, **more: Any) -> str:
    """A column's value, as trackers write it; `r` are the replicated families, of one letter each."""
    known = {"o": 2, "t": 7, "s": 12, "c": c, "u": None, "r": [*r], "k": k, "a": {}, "b": {}} | more
    written = {name: value for name, value in known.items() if value is not None}
    return json.dumps(written, separators=(",", ":"), ensure_ascii=False)


def held_by(*tenures: str | bytes, server: int = 1) -> Cells:
    """The cells of an `f` row: a tenure each of this server and those after it."""
    values = [one.encode() if isinstance(one, str) else one for one in tenures]
    columns = [column(b"k" + int64(server + at) + int64(5 + at)) for at in range(len(values))]
    return {name: cell(value) for name, value in zip(columns, values, strict=True)} | {column(b"t"): cell(b"t")}


EXISTING = codec.Existing(codec.packed(["00"]), 1_000)
KEEPING_AT_9 = codec.Keeping({}, 9)


def contents(cells: Cells, *known: Any, **more: Any) -> list[dict[str, Any]]:
    """The facts of such a row of region 00."""
    return list(codec.contents([(b"f00", cells)], *known, **more))


def test_regions_that_are_gone_are_known_by_the_first_bytes_of_their_names() -> None:
    """Whatever their names begin with, and however many begin alike."""
    names = [f"{first}{rest}{'0' * 29}" for first in "0f" for rest in ("01", "02", "f3")]
    rows = [(f"f{name}".encode(), held_by(tenure(b=ONE_FILE))) for name in names]
    existing = codec.Existing(codec.packed(reversed(names[1:-1])), 1_000)
    found = list(codec.contents(rows, existing))
    assert [(row["region"], row["state"]) for row in found] == [(names[0], "content"), (names[-1], "content")]
    assert existing.beginning_with("7") == frozenset()


@pytest.mark.parametrize(("server", "is_told"), [(1, True), (2, False), (3, True), (4, False)])
def test_a_region_that_is_gone_was_there_by_its_servers_clock(server: int, is_told: bool) -> None:
    """The clock of the tool's host may be minutes behind."""
    value = tenure(t=100_000 if server < 4 else 120_001, b=ONE_FILE)
    existing = codec.Existing(codec.packed(["01"]), 90_000, barriers={1: 100_000, 2: 99_999})
    found = contents(held_by(value, server=server), existing)
    assert [row["state"] for row in found] == (["content"] if is_told else [])


@pytest.mark.parametrize("known", [{"existing": codec.Existing(codec.packed(["00"]), 9)}, {"keeping": KEEPING_AT_9}])
@pytest.mark.parametrize("damage", ['"s":9', '"r":["f"]', "}"])
def test_a_tenure_that_cannot_be_read_is_not_taken_for_none(known: dict[str, Any], damage: str) -> None:
    """The region may have opened then with other files than it was closed with before."""
    earlier, later = (tenure(o=first, s=9, c=9) for first in (1, 11))
    assert contents(held_by(earlier, later), **known) == []
    found = contents(held_by(earlier, later.replace(damage, "?")), **known)
    assert [(row["state"], row["write_ms"]) for row in found] == [("changed", 9)]


@pytest.mark.parametrize("crashed", [{}, {7: 30}])
def test_what_a_crashed_server_wrote_last_is_told_until_it_is_pruned(crashed: dict[int, int]) -> None:
    """It had recorded entry 9 when it crashed, and the next server opened the region at 15."""
    existing = codec.Existing(codec.packed(["00"]), 1_000, crashed=crashed)
    found = contents(held_by(tenure(s=9), tenure(o=15, t=20, s=15), server=7), existing)
    told = {"kind": "fact", "table": "t", "region": "00", "state": "tail", "origin": 7, "seq": 14, "write_ms": 20}
    assert found == ([told] if crashed else [])


@pytest.mark.parametrize(
    ("recorded", "found", "told"),
    [
        ([1, 5, 0, 0], [2, 9, 0, 4], "localload"),
        ([1, 4, 0, 4], [1, 4, 0, 4], None),
        ([1, 4, 0, 4], [1, 6, 0, 0], None),  # compacted
        ([1, 4, 0, 4], [2, 9, 0, 3], "localload"),  # one was compacted, another one loaded
        ([2, 7, 0, 7], [1, 3, 0, 3], "localload"),  # fewer, of which nobody knows whether they are the same
    ],
)
def test_a_load_of_a_master_that_its_crashed_server_could_not_record(
    recorded: list[int], found: list[int], told: str | None
) -> None:
    """Nobody knows whether it was to be replicated: an empty hfile-refs, and a drained queue, tell nothing of it."""
    later = tenure(o=15, t=20, s=15, a={"f": found}, b={"f": found})
    rows = contents(held_by(tenure(b={"f": recorded}), later), EXISTING)
    assert [(row["state"], row["write_ms"]) for row in rows] == [(told, 20)] * (told is not None)
    rows = contents(held_by(tenure(c=19, b={"f": recorded}), later), EXISTING)
    assert [row["state"] for row in rows] == ["changed"] * (recorded != found)


@pytest.mark.parametrize(("region_id", "changed_ms"), [(99, None), (100, 7), (None, None)])
def test_a_region_of_a_master_that_no_tracker_has_seen_begin(region_id: int | None, changed_ms: int | None) -> None:
    """It is named if it was created when all servers are said to have had the tracker."""
    begun: Cells = {} if region_id is None else {column(b"i"): cell(int64(region_id))}
    existing = codec.Existing(codec.packed(["00"]), 1_000, 100)
    held, empty = (held_by(tenure(o=9, u=7, a={"f": [count, 2, 0, 0]}, b=ONE_FILE)) | begun for count in (1, 0))
    assert [row["write_ms"] for row in contents(held, existing)] == ([] if changed_ms is None else [changed_ms])
    assert contents(empty, existing) == []


@pytest.mark.parametrize(
    ("replicated", "families", "closed", "changed"),
    [
        ("f", "f", None, False),
        ("fg", "fg", None, False),
        ("fg", "f", None, False),  # its scope was taken back
        ("", "f", None, True),
        ("f", "fg", None, True),
        ("ü", "ü", None, False),
        ("", "f", 9, False),  # it will open with the new descriptor
        ("", "", None, False),
    ],
)
def test_a_region_of_a_master_that_is_open_with_a_descriptor_of_before_the_scope_was_raised(
    replicated: str, families: str, closed: int | None, changed: bool
) -> None:
    """`alter` without reopening: what the region writes until it is opened anew is never replicated."""
    existing = codec.Existing(codec.packed(["00"]), 1_000, replicated={"t": frozenset(families)})
    found = contents(held_by(tenure(replicated, closed)), existing)
    assert [(row["state"], row["write_ms"]) for row in found] == [("changed", 1_000)] * changed


def without_00(is_named: bool, **servers: Any) -> codec.Existing:
    """A master that has split or merged region 00, which `hbase:meta` still names or not; family f is replicated."""
    names = codec.packed(["00"] if is_named else [])
    parents = frozenset([codec.prefix("00")] if is_named else [])
    return codec.Existing(names, 1_000, replicated={"t": frozenset("f")}, split=parents, **servers)


@pytest.mark.parametrize(
    "existing",
    [without_00(True), without_00(False), replace(without_00(True), split=frozenset())],
    ids=["split or merged", "and not named any more", "disabled"],
)
@pytest.mark.parametrize(
    ("replicated", "count", "changed"),
    [("", 1, True), ("f", 1, False), ("", 0, False)],  # the next region inherits nothing
)
def test_a_region_of_a_master_that_is_closed_with_what_was_written_before_its_scope_was_raised(
    existing: codec.Existing, replicated: str, count: int, changed: bool
) -> None:
    """A parent never opens with the new descriptor, and `alter` opens no region of a table that is disabled."""
    found = contents(held_by(tenure(replicated, b={"f": [count, 2, 0, 0]}, c=9)), existing)
    assert [row["write_ms"] for row in found if row["state"] == "changed"] == [9] * changed


@pytest.mark.parametrize("existing", [without_00(True), without_00(False)])
@pytest.mark.parametrize(("dropped", "changed"), [("f", True), ("g", False)])
def test_a_family_that_is_dropped_before_a_region_of_a_master_is_split_and_added_again_afterwards(
    existing: codec.Existing, dropped: str, changed: bool
) -> None:
    """The daughters never had it, so that their own tenures show nothing; the slave still has what it held."""
    with_it = tenure("f", 9, a={dropped: [0, 0, 0, 0], "h": [0, 0, 0, 0]}, b={dropped: [1, 2, 0, 0], "h": [0, 0, 0, 0]})
    without = tenure("", 19, o=13, t=15, s=12, a={"h": [0, 0, 0, 0]}, b={"h": [0, 0, 0, 0]})
    found = contents(held_by(with_it, without), existing)
    assert [row["write_ms"] for row in found if row["state"] == "changed"] == [19] * changed


@pytest.mark.parametrize("existing", [without_00(True), without_00(False)])
@pytest.mark.parametrize(
    ("replicated", "versions", "seq", "changed"),
    [("f", 1, 5, True), ("f", 3, 5, False), ("", 1, 5, False), ("f", 1, 4, False)],
)
def test_a_region_of_a_master_that_was_split_before_it_knew_that_its_table_keeps_more(
    existing: codec.Existing, replicated: str, versions: int, seq: int, changed: bool
) -> None:
    """`alter` without reopening: the daughters open with the new descriptor, and none of them knows of the old one."""
    written = tenure(replicated, 19, {"f": [versions, 0, 600, 0, 0, 0]}, s=seq)
    found = contents(held_by(written), replace(existing, kept={"t": {"f": (3, 0, 600, 0, 0, 1)}}))
    assert [row["write_ms"] for row in found if row["state"] == "changed"] == [19] * changed


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize(
    ("servers", "replicated", "changed"),
    [
        ({"crashed": {1: 70}}, "", [70]),
        ({"crashed": {1: 70}}, "f", []),
        ({"barriers": {1: 80}}, "", [1_000]),  # it lives, and records the close in a moment
        ({}, "", []),  # it is pruned
    ],
)
def test_a_region_of_a_master_that_was_split_or_merged_by_a_server_that_crashed_before_it_recorded_the_close(
    is_named: bool, servers: dict[str, Any], replicated: str, changed: list[int]
) -> None:
    """Nobody knows what the close flushed of a family whose scope was raised while the region was open."""
    found = contents(held_by(tenure(replicated)), without_00(is_named, **servers))
    assert [row["write_ms"] for row in found if row["state"] == "changed"] == changed


@pytest.mark.parametrize(
    ("kept", "closed", "changed"),
    [
        ({"f": [3, 0, 2**31 - 1, 0, 0, 1]}, None, False),
        ({"f": [5, 0, 2**31 - 1, 0, 0, 1]}, None, False),  # it keeps more than its table's descriptor says
        ({"f": [1, 0, 2**31 - 1, 0, 0, 1]}, None, True),
        ({"f": [3, 0, 600, 0, 0, 1]}, None, True),
        ({"f": [3, 0, 2**31 - 1, 0, 0, 0]}, None, True),
        ({"f": [1, 0, 2**31 - 1, 0, 0, 1]}, 9, False),
        (None, None, False),
        ({"g": [1, 0, 2**31 - 1, 0, 0, 1]}, None, False),
    ],
)
def test_a_region_of_a_slave_that_is_open_with_a_descriptor_that_keeps_less(
    kept: Files | None, closed: int | None, changed: bool
) -> None:
    """`alter` without reopening: until it is opened anew it drops what the descriptor promises to keep."""
    family = {"versions": 3, "min_versions": 0, "ttl": 2**31 - 1, "keep_deleted": "FALSE"}
    detail = {"families": {"f": {**family, "new_version_behavior": False, "mob": False}}, "durability": "USE_DEFAULT"}
    assert retention_of(detail) == {"f": (3, 0, 2**31 - 1, 0, 0, 1, 0)}
    found = contents(held_by(tenure("f", closed, kept)), keeping=codec.Keeping({"t": retention_of(detail)}, 1_000))
    assert [(row["state"], row["write_ms"]) for row in found] == [("changed", 1_000)] * changed


def test_znode_envelope() -> None:
    """0xFF, length, writer, PBUF, message; meta cells have no envelope."""
    message = hbase_pb2.ClusterId(cluster_id="id").SerializeToString()
    assert unwrap(b"\xff\x00\x00\x00\x03abcPBUF" + message) == message
    assert unwrap(b"PBUF" + message) == message
    for garbage in (b"", b"\xff", b"text", b"\xff\x00\x00\x00\x01x"):
        with pytest.raises(ValueError, match="PBUF"):
            unwrap(garbage)


def test_a_session_of_zookeeper_that_expired_is_no_longer_as_new_as_its_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kazoo begins another one by itself, which may be at a server that is behind."""
    session = ZooKeeper(ZooKeeperEndpoint("zk:2181", "/hbase"))
    client = session._client
    monkeypatch.setattr(client, "sync", lambda _: None)
    monkeypatch.setattr(client, "get_children", lambda _: ["a,1,1"])
    client._session_callback(KeeperState.CONNECTED)
    client.last_zxid = 7
    session.sync()
    client._session_callback(KeeperState.CONNECTING)
    client._session_callback(KeeperState.CONNECTED)
    assert (session.live_servers(), client.last_zxid) == (["a,1,1"], 7)
    client._session_callback(KeeperState.EXPIRED_SESSION)
    client._session_callback(KeeperState.CONNECTED)
    with pytest.raises(ConnectionFailed, match="run again"):
        session.live_servers()
    assert client.last_zxid == 0
    session.sync()
    assert session.live_servers() == ["a,1,1"]


def test_cluster_keys() -> None:
    """HBase's two spellings of ports."""
    nowhere = ZooKeeperEndpoint("", "")
    assert str(parse_cluster_key("z1,z2:2181:/hbase", nowhere)) == "z1:2181,z2:2181/hbase"
    assert str(parse_cluster_key("z1:2182,z2:2181:/hb", nowhere)) == "z1:2182,z2:2181/hb"
    assert parse_cluster_key("some endpoint", nowhere) is None


class Parts(Source):
    """Parts that yield a batch each; a negative one fails."""

    def __init__(self, *parts: int) -> None:
        self.parts = parts
        self.threads: set[str] = set()

    def partitions(self) -> Sequence[int]:
        return self.parts

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Fifty batches of one number, or an error."""
        self.threads.add(threading.current_thread().name)
        if partition < 0:
            raise ConnectionFailed("gone")
        for _ in range(50):
            yield pa.RecordBatch.from_pydict({"n": [partition]})


def total(batches: Iterator[Any]) -> int:
    return sum(batch.column("n")[0].as_py() for batch in batches)


def test_reading_side_by_side() -> None:
    """All batches of all parts arrive, by several threads."""
    source = Parts(*range(20))
    assert total(read_all(source)) == 50 * sum(range(20))
    assert len(source.threads) > 1
    assert total(read_all(Parts())) == 0


def test_an_error_in_a_part_ends_the_reading() -> None:
    """Nothing hangs, nothing is passed over."""
    with pytest.raises(ConnectionFailed, match="gone"):
        total(read_all(Parts(1, 2, -1, 3)))


def test_reading_may_be_given_up() -> None:
    """The threads end when nobody wants the rest."""
    batches = read_all(Parts(*range(20)))
    next(batches)
    assert isinstance(batches, Generator)
    batches.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read")]


def test_a_table_that_lost_its_rows_while_it_was_read_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the simulation: servers' rows from before the loss vouched for heads that were gone after it."""
    rows: dict[bytes, Cells] = {b"b": {b"t:i": (b"table", 1)}, b"ha" + b"0" * 63: {b"t:s": (bytes(8), 1)}}
    read_by(monkeypatch, rows)
    source = StateTableSource(ThriftEndpoint("h", 1), "t", "h", expected=Generation(b"table", b""))
    part = next(part for part in source.partitions() if any("a" in span.digits for span in part))
    assert sum(batch.num_rows for batch in source.read(part)) == 1
    of_another_run = {b"b": {b"t:k": (b"token", 2), b"t:i": (b"other", 2)}}
    bell_alone = {b"b": {b"t:d": (b"bell", 2)}}
    for after in (dict[bytes, Cells](), of_another_run, bell_alone):
        rows.clear()
        rows.update(after)
        for began_with in (b"table", b""):
            source = replace(source, expected=Generation(began_with, b""))
            with pytest.raises(ConnectionFailed, match="lost its rows while it was read"):
                list(source.read(part))


def test_when_a_region_was_split_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the timestamp of the cell, which not every way to scan has."""
    split = {b"t:l": (b"split", 1012), b"t:i": (int64(7), 1012), b"t:t": (b"t", 1012)}
    read_by(monkeypatch, {b"b": {b"t:i": (b"table", 1)}, b"ga1": split})
    source = StateTableSource(ThriftEndpoint("h", 1), "t", "g", expected=Generation(b"table", b""))
    (row,) = [row for part in source.partitions() for batch in source.read(part) for row in batch.to_pylist()]
    assert (row["region"], row["state"], row["write_ms"], row["region_id"]) == ("a1", "split", 1012, 7)


def test_openings_are_others_once_a_region_was_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another server, or on the same one."""
    regions = [HostedRegion("a", b"", b"h4", "rs1,1,1", 5, "t"), HostedRegion("b", b"h4", b"", "rs2,1,1", 7, "t")]
    monkeypatch.setattr(state_table, "open_regions", lambda *_: regions)
    known = [openings(ThriftEndpoint("h", 1), "t")]
    assert openings(ThriftEndpoint("h", 1), "t") == known[0]
    for change in ({"open_seq": 8}, {"server": "rs1,1,1"}):
        regions[1] = replace(regions[1], **change)
        known.append(openings(ThriftEndpoint("h", 1), "t"))
    regions.pop()
    known.append(openings(ThriftEndpoint("h", 1), "t"))
    assert len(set(known)) == 4
    assert {len(one) for one in known} == {8}


@pytest.mark.parametrize(
    ("back", "marks", "told"),
    [
        (None, {b"!": 7, b"h4!": 9}, None),
        (None, {b"!": 7}, "lost rows"),
        (None, {b"!": 7, b"h4!": 6}, "lost rows"),
        (b"%8d" % 5, {b"!": 7, b"h4!": 7}, "lost rows"),
    ],
)
def test_a_table_of_which_a_region_lost_its_rows_is_no_evidence(
    back: bytes | None, marks: dict[bytes, int], told: str | None
) -> None:
    """Before a tracker has found it, by the regions' marks; after that, by what it has recorded since."""
    regions = (7).to_bytes(8, "big") + b"\0\0\0\1!" + b"\0\0\0\3h4!"
    coverage = {b"t:r": (regions, 1)} | ({} if back is None else {b"t:b": (back, 1)})
    found = {key: {b"t:m": (mark.to_bytes(8, "big"), mark)} for key, mark in marks.items()}
    now = generation_of({b"t:i": (b"table", 1)}, coverage, found)
    with pytest.raises(ConnectionFailed, match=told) if told else contextlib.nullcontext():
        refuse_other("t", Generation(b"table", b""), now)


def test_a_first_look_that_was_torn_is_refused() -> None:
    """By a region server that was fenced, say: what was read by then may be older than what is there."""
    whole = Generation(b"table", b"")
    with pytest.raises(ConnectionFailed, match="lost rows"):
        refuse_other("t", replace(whole, is_torn=True), whole)


@pytest.mark.parametrize(
    ("then", "now", "is_refused"),
    [
        ({"born_ms": 5, "arrived_ms": 7}, {"born_ms": 5, "arrived_ms": 7, "written_by": {"": 9}}, False),
        ({"born_ms": 5, "arrived_ms": 7}, {"born_ms": 9, "arrived_ms": 7}, True),
        ({"born_ms": 5, "arrived_ms": 7}, {"born_ms": 5, "arrived_ms": 7, "dropped_ms": {"f": 9}}, True),
        ({"born_ms": 5, "first_born_ms": 5}, {"born_ms": 5, "first_born_ms": 5, "arrived_ms": 9}, False),
        ({"born_ms": 9, "first_born_ms": 5}, {"born_ms": 9, "first_born_ms": 5, "arrived_ms": 7}, True),
        ({"born_ms": 9, "arrived_ms": 8}, {"born_ms": 9, "first_born_ms": 5, "arrived_ms": 7}, True),
        ({"born_ms": 9, "arrived_ms": 7}, {"born_ms": 9, "first_born_ms": 5, "arrived_ms": 8}, False),
        ({"born_ms": 1, "first_born_ms": 1}, {"born_ms": 1, "first_born_ms": 1, "arrived_ms": 2}, True),
        ({"arrived_ms": 2}, {"arrived_ms": 2}, False),
        ({"dropped_ms": {"f": 9}}, {"dropped_ms": {"f": 9}, "arrived_ms": 7}, True),
        ({"born_ms": 5, "dropped_ms": {"f": 9}}, {"arrived_ms": 9}, False),
        ({}, {"born_ms": 9}, False),
        ({}, {"born_ms": 9, "first_born_ms": 9, "arrived_ms": 10}, False),
        ({}, {"born_ms": 9, "first_born_ms": 5, "arrived_ms": 10}, True),
        ({}, {"born_ms": 9, "first_born_ms": 9, "arrived_ms": 8}, True),
        ({"born_ms": 9, "arrived_ms": 7}, {"born_ms": 5, "arrived_ms": 7}, False),
        ({"dropped_ms": {"f": 12}, "arrived_ms": 7}, {"dropped_ms": {"f": 9}, "arrived_ms": 7}, False),
        ({"written_by": {"": 5}}, {"written_by": {"": 5, "m": 9}, "arrived_ms": 9}, True),
        ({"written_by": {"slave": 5}}, {"written_by": {"slave": 5}, "arrived_ms": 9}, True),
        ({"skipped_ms": 5}, {"skipped_ms": 5, "arrived_ms": 9}, True),
        ({"written_by": {"m": 5}}, {"written_by": {"m": 9}, "arrived_ms": 9}, False),
        ({"written_by": {"": 5}, "arrived_ms": 10}, {"written_by": {"": 5}, "arrived_ms": 9}, False),
    ],
)
def test_a_table_that_is_emptied_while_its_segments_are_read_is_read_again(
    then: dict[str, Any], now: dict[str, Any], is_refused: bool
) -> None:
    """They outlive its cells, and its events were read before them. Others, and tables out of scope, are no matter.

    A first arrival that is known only afterwards may be of before the events: of a request that ran for long, or of a
    server that is gone and whose spool was drained meanwhile. One that began well before the barrier is. What own
    clients had written to the table, a delete, say, may mask what has arrived since: it is judged by the next run.
    """
    nothing = codec.table_events([(b"nt", {})])["t"]
    before, after = ({"t": nothing | one} for one in (then, now))
    with pytest.raises(ConnectionFailed, match="run again") if is_refused else contextlib.nullcontext():
        refuse_emptied(before, after, TableFilter(), 30_003, "slave")
    refuse_emptied(before, after, TableFilter.of({"u"}, ()), 30_003, "slave")


def test_a_slave_of_which_a_table_is_emptied_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events are compared when its segments have been read."""
    nothing, same = codec.table_events([(b"nt", {})])["t"], Generation(b"table", b"")
    known: list[TableEvents] = [{"t": nothing | {"born_ms": born, "arrived_ms": 7}} for born in (5, 9)]
    monkeypatch.setattr(state_table, "generation", lambda *_: same)
    monkeypatch.setattr(state_table, "scan", lambda *_: iter(()))
    monkeypatch.setattr(codec, "table_events", lambda _: known[-1])
    source = StateTableSource(ThriftEndpoint("h", 1), "t", "s", same, places=Places(), events=known[0])
    with pytest.raises(ConnectionFailed, match="run again"):
        list(source.read(()))
    assert list(replace(source, events=known[-1]).read(())) == []


def test_a_table_that_went_back_while_it_was_read_is_no_evidence() -> None:
    """A barrier that is put meanwhile is a newer one, another run's, though that run's clock is behind."""
    read, other = (
        generation_of({b"t:i": (b"table", 1), b"t:m": (int64(issued), moment)}, {}, {})
        for issued, moment in ((999, 1_000), (1_000, 999))
    )
    refuse_other("t", read, read)
    refuse_other("t", other, read)
    with pytest.raises(ConnectionFailed, match="went back to an earlier state"):
        refuse_other("t", read, other)


def test_the_mark_of_a_region_is_no_other_row() -> None:
    """HBase may split the state table within any kind of rows."""
    for kind, decode in codec.DECODERS.items():
        key = f"{kind}{REGION}!".encode()
        assert not list(decode([(key, {column(CoverageRow.MARK): (int64(7), 7)})])), kind


def test_tables_that_access_control_hides_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With Kerberos HBase lists only tables on which the user has a right; without, what is missing was dropped."""
    table = SimpleNamespace(families=lambda: {b"f:": {}})
    client = SimpleNamespace(tables=lambda: [b"seen"], table=lambda name: table)
    monkeypatch.setattr(meta, "connection", lambda endpoint: contextlib.nullcontext(client))
    endpoint = ThriftEndpoint("h", 1)
    described: dict[str, dict[str, Any]] = {"seen": {}, "hidden": {}}
    assert [row["table"] for row in meta.table_families(endpoint, {}, described)] == ["seen"]
    with pytest.raises(ConnectionFailed, match=r"1 table from this user that the trackers describe \(hidden\)"):
        list(meta.table_families(replace(endpoint, principal="hbase/_HOST@R"), {}, described))
