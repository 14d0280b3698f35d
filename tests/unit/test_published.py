"""The table of published status files: what counts, whose round it is, and which peers carry it."""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from status_tool.cli.main import main
from status_tool.cli.publish import DEFAULT_INTERVAL_S
from status_tool.clients import named_table
from status_tool.clients.config import Settings, ThriftEndpoint, ZooKeeperEndpoint
from status_tool.clients.zookeeper import Peer
from status_tool.errors import ConfigurationError, StatusFileError, UsageError
from status_tool.published import carriers, newest, publisher, table
from status_tool.published.carriers import Carried, ships_published
from status_tool.published.layout import CELL_BYTES, Closing, FilePart, closing_of, new_name
from status_tool.published.newest import fetch_newest, of_one_master
from status_tool.published.publisher import Turns, put_file
from status_tool.published.table import PUT_AGAIN_S, Published, PublishedTable, SentParts
from status_tool.sources.state_table import now_ms
from status_tool.status_file.footer import HEADER_KEY
from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SignKey
from status_tool.status_file.writer import StatusWriter, parts_of
from status_tool.vocabulary.header import Header
from status_tool.vocabulary.schema import STATUS_SCHEMA
from status_tool.vocabulary.scope import TableFilter

CLUSTER = "11111111-0000-0000-0000-000000000000"
PART = FilePart.of(b"x")
HEADER = Header("master", CLUSTER, created_ms=2_000, cut_ms=1_000, barrier_issued_ms=1_000, half="hbase")


class Rows:
    """A table of HBase in this process, by rows and columns: what happybase and Thrift do for it here."""

    def __init__(self) -> None:
        self.stored: dict[bytes, dict[bytes, bytes]] = {}
        self.put_ms: dict[bytes, int] = {}
        """Timestamps of rows; 0 where none is here."""
        self.fails_after: int | None = None
        """After so many puts, HBase cannot be reached."""
        self.client = self

    def tables(self) -> list[bytes]:
        return [b"replicationstatus"]

    def table(self, name: str) -> Any:
        return self

    def is_table_enabled(self, name: str) -> bool:
        return True

    def put(self, key: bytes, cells: dict[bytes, bytes]) -> None:
        if self.fails_after == 0:
            raise KeyboardInterrupt
        self.fails_after = None if self.fails_after is None else self.fails_after - 1
        self.stored.setdefault(key, {}).update(cells)

    def rows(self, keys: list[bytes], columns: list[bytes]) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(key, found) for key in keys if (found := self.row(key, columns))]

    def row(self, key: bytes, columns: list[bytes]) -> dict[bytes, bytes]:
        return {name: value for name, value in self.stored.get(key, {}).items() if name in columns}


@pytest.fixture
def hbase(monkeypatch: pytest.MonkeyPatch) -> Rows:
    """Where the published table is."""
    rows = Rows()

    @contextlib.contextmanager
    def connection(_: ThriftEndpoint) -> Iterator[Any]:
        yield rows

    def scan(_: ThriftEndpoint, _table: str, start: bytes, stop: bytes, _columns: Any) -> Iterator[Any]:
        for key, cells in sorted(rows.stored.items()):
            if start <= key < stop:
                yield key, {name: (value, rows.put_ms.get(key, 0)) for name, value in cells.items()}

    def check_and_put(_: Any, _table: str, row: bytes, column: bytes, known: bytes | None, value: bytes) -> bool:
        if rows.stored.get(row, {}).get(column) != known:
            return False
        rows.put(row, {column: value})
        return True

    for name, fake in (("connection", connection), ("scan", scan), ("check_and_put", check_and_put)):
        monkeypatch.setattr(table, name, fake)
    monkeypatch.setattr(named_table, "connection", connection)
    return rows


@pytest.fixture
def published(hbase: Rows) -> PublishedTable:
    return PublishedTable(ThriftEndpoint("h", 1), "replicationstatus")


def status(path: Path, header: Header = HEADER, notices: int = 0) -> Path:
    """A status file; `notices` make it bigger."""
    with StatusWriter(path, replace(header, notices=tuple(f"{number:064x}" for number in range(notices)))):
        pass
    return path


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster here is not the one that published."""
    monkeypatch.setattr(newest, "own_cluster_id", lambda _: "own")
    monkeypatch.setattr(PublishedTable, "require", lambda _: None)


def closing_row(barrier_ms: int, cluster: str = CLUSTER) -> Closing:
    """The closing row of a file of one part."""
    return Closing(cluster, new_name(barrier_ms), (PART,), barrier_ms, barrier_ms, 1, "hbase")


@pytest.fixture
def small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small file has many parts."""
    for module in ("published.layout", "published.publisher"):
        monkeypatch.setattr(f"status_tool.{module}.CELL_BYTES", 1_000)


def test_a_file_travels_whole(published: PublishedTable, tmp_path: Path) -> None:
    """What is fetched is what was put, byte by byte, and opens as a status file."""
    file, copy = status(tmp_path / "a"), tmp_path / "b"
    closing, sent = put_file(published, file, 30_000, SentParts())
    (found,) = published.published().closings
    assert found == closing
    assert (found.cut_ms, found.interval_ms, found.half, found.size) == (1_000, 30_000, "hbase", file.stat().st_size)
    assert sent == found.size + len(found.value())
    published.fetch(found, copy)
    assert copy.read_bytes() == file.read_bytes()
    with open_status(copy) as opened:
        assert opened.header == HEADER


def _written(path: Path, regions: int, seed: int, moved: float, order: random.Random) -> Path:
    """A master's status; of `moved` of the streams the newest entry is another one for each `seed`."""
    names = [f"{number * 2_654_435_761 % (1 << 64):032x}" for number in range(regions)]
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        where = {"table": f"t{number % 7}", "region": name, "start_key": b"%08d" % number}
        at = draw.randrange(1 << 40) if number < moved * regions else number
        stream = {"kind": "stream", "origin": number % 50, "seq": at, "write_ms": at + 1, "entries": at + 2}
        rows += [{"kind": "region", "state": "hosted", **where}, stream | where]
    order.shuffle(rows)
    with StatusWriter(path, replace(HEADER, barrier_issued_ms=seed, created_ms=seed)) as file:
        for start in range(0, len(rows), 777):
            file.write(pa.Table.from_pylist(rows[start : start + 777], schema=STATUS_SCHEMA))
    return path


def fetched(published: PublishedTable, closing: Closing, folder: Path) -> bytes:
    published.fetch(closing, folder / "copy")
    return (folder / "copy").read_bytes()


def all_of(closing: Closing) -> int:
    """What is put where nothing of a file is in the table: parts that are alike only once."""
    return sum(part.size for part in set(closing.parts)) + len(closing.value())


@settings(max_examples=20, deadline=None)
@given(regions=st.sampled_from([0, 1, 50, 3_000]), most=st.sampled_from([1, 100, 5_000, CELL_BYTES]))
def test_parts_make_up_the_file_and_are_bounded(regions: int, most: int) -> None:
    """Whatever the file: nothing is lost between them, none is empty."""
    with tempfile.TemporaryDirectory() as folder:
        file = _written(Path(folder) / "a", regions, 1, 1.0, random.Random(1))
        parts = list(parts_of(file, most))
        assert b"".join(parts) == file.read_bytes()
        assert all(0 < len(part) <= most for part in parts)


def test_what_has_not_changed_is_not_sent_again(published: PublishedTable, hbase: Rows, tmp_path: Path) -> None:
    """Regions, keys and origins are sent once, in whatever order they were read; each file is whole by itself."""
    order, sent, now = random.Random(5), SentParts(lambda: now[0]), [0.0]
    whole = []
    for seed, moved, share in ((1, 1.0, 1.0), (2, 1.0, 0.8), (3, 0.0, 0.8), (4, 0.0, 0.1)):
        file = _written(tmp_path / f"{seed}", 20_000, seed, moved, order)
        closing, count = put_file(published, file, 1, sent)
        assert count <= share * all_of(closing), seed
        whole.append((closing, file))
        now[0] += 30.0
    for closing, file in whole:
        assert fetched(published, closing, tmp_path) == file.read_bytes()
    now[0] = PUT_AGAIN_S + 60.0
    closing, count = put_file(published, whole[-1][1], 1, sent)
    assert count > 0.9 * all_of(closing), "all goes again but for the last round's own parts"


@pytest.mark.usefixtures("fetching")
def test_a_slaves_restored_table_has_what_is_whole(published: PublishedTable, hbase: Rows, tmp_path: Path) -> None:
    """What comes afterwards refers to parts that were lost, until the publisher puts them again."""
    sent, now, order = SentParts(lambda: now[0]), [0.0], random.Random(1)
    regions = {1: 2_000, 2: 3_000, 3: 3_000, 4: 3_000}
    files = [_written(tmp_path / f"{seed}", many, seed, 0.1, order) for seed, many in regions.items()]
    first, _ = put_file(published, files[0], 1, SentParts())
    snapshot = {key: dict(cells) for key, cells in hbase.stored.items()}
    hbase.stored.clear()
    put_file(published, files[1], 1, sent)
    hbase.stored = snapshot
    later, _ = put_file(published, files[2], 1, sent)
    assert published.published().closings == (later, first)
    with pytest.raises(StatusFileError, match="has not arrived in whole"):
        published.fetch(later, tmp_path / "copy")
    for _ in range(int(PUT_AGAIN_S / DEFAULT_INTERVAL_S)):
        put_file(published, files[2], 1, sent)
    fetch_newest(SITE, None, tmp_path / "copy", with_files=False)
    assert (tmp_path / "copy").read_bytes() == files[0].read_bytes(), first
    now[0] = PUT_AGAIN_S
    again, _ = put_file(published, files[3], 1, sent)
    assert fetched(published, again, tmp_path) == files[3].read_bytes()


SITE = cast(Settings, SimpleNamespace(thrift=lambda: ThriftEndpoint("h", 1), status_table="replicationstatus"))


def _newest(hbase: Rows, closing: Closing, trouble: str) -> None:
    """Do something to the newest file that is here."""
    key = closing.part_key(closing.parts[-1])
    row = hbase.stored[closing.key]
    if trouble == "cut short":
        del hbase.stored[key]
    elif trouble == "altered":
        hbase.stored[key] = {b"published:d": b"other"}
    elif trouble == "newer publisher":
        row[b"published:c"] = row[b"published:c"].replace(b'"version": 2', b'"version": 3')
    elif trouble == "other barrier":
        row[b"published:c"] = row[b"published:c"].replace(b'"barrier_ms": 2000', b'"barrier_ms": 3000')
    elif trouble == "other cluster":
        hbase.stored[closing.key.replace(CLUSTER.encode(), OTHER.encode())] = hbase.stored.pop(closing.key)
        for part in closing.parts:
            hbase.stored[f"f/{OTHER}/{part.digest}".encode()] = hbase.stored.pop(closing.part_key(part))


OTHER = "22222222-0000-0000-0000-000000000000"


@pytest.mark.usefixtures("small_cells", "fetching")
@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("cut short", "has not arrived in whole"),
        ("altered", "was altered"),
        ("newer publisher", "a newer status-tool published it: upgrade status-tool here"),
        ("newer header", "has format version 3"),
        ("other barrier", "is another one than its closing row says"),
        ("other cluster", "is another one than its closing row says"),
        ("a slave's", "is a slave's status"),
        ("not signed", "is not signed"),
    ],
)
def test_of_what_is_published_the_newest_that_is_whole_is_checked(
    published: PublishedTable, hbase: Rows, tmp_path: Path, trouble: str, words: str
) -> None:
    """`run -i --published`: what is wrong with a newer one is told; alone, it is an error with a way out."""
    key = SignKey(b"k" * 32) if trouble == "not signed" else None
    file = status(tmp_path / "a", replace(HEADER, barrier_issued_ms=2_000), notices=100)
    closing, _ = put_file(published, file, 1, SentParts())
    if trouble in ("newer header", "a slave's"):
        other = status(tmp_path / "b", replace(HEADER, side="slave", barrier_issued_ms=2_000))
        if trouble == "newer header":
            newer = pa.table({"other": [1]}).replace_schema_metadata({HEADER_KEY: b'{"format_version": 3}'})
            pq.write_table(newer, other)
        contents = list(parts_of(other, 1_000))
        closing = replace(closing, parts=tuple(map(FilePart.of, contents)))
        published.put(contents, closing, SentParts())
    _newest(hbase, closing, trouble)
    wanted = OTHER if trouble == "other cluster" else None
    with pytest.raises(StatusFileError, match=r"is here in whole \(.*run `status-tool publish` on the master") as error:
        fetch_newest(SITE, wanted, tmp_path / "copy", key, with_files=False)
    assert words in str(error.value)
    assert error.value.exit_code == 2
    if trouble == "other cluster":
        return
    with StatusWriter(tmp_path / "good", HEADER, key):
        pass
    put_file(published, tmp_path / "good", 1, SentParts())
    told = fetch_newest(SITE, None, tmp_path / "copy", key, with_files=False)
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "good").read_bytes()
    assert words in " ".join(told)
    assert told[-1] == "checking against the status file published at 1970-01-01T00:00:01.000Z"


@pytest.mark.parametrize("command", [["recovery-point"], ["run", "-i", "--published"]])
def test_a_table_that_was_dropped_is_an_error_with_a_way_out(
    hbase: Rows, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """On the slave, whatever was published before."""
    monkeypatch.setattr(hbase, "tables", lambda: [b"replicationstate"])
    assert main([*command, "--thrift", "h:1", "--zookeeper", "h:1/hbase"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "the table replicationstatus for published status files does not exist on this cluster" in said
    assert "in the HBase shell: create 'replicationstatus'" in said


def test_another_publisher_and_one_that_failed_send_all(published: PublishedTable, hbase: Rows, tmp_path: Path) -> None:
    """Nothing is referred to that this publisher has not put itself."""
    file = _written(tmp_path / "a", 3_000, 1, 1.0, random.Random(1))
    sent = SentParts()
    hbase.fails_after = 2
    with pytest.raises(KeyboardInterrupt):
        put_file(published, file, 1, sent)
    hbase.fails_after = None
    closing, _ = put_file(published, file, 1, sent)
    published.fetch(closing, tmp_path / "b")
    _, count = put_file(published, file, 1, SentParts())
    assert count == all_of(closing)


@pytest.mark.usefixtures("small_cells")
def test_a_publisher_killed_at_any_put_leaves_nothing(published: PublishedTable, hbase: Rows, tmp_path: Path) -> None:
    """Killed before each of its puts: only after the last one there is a file, and it is whole."""
    file = status(tmp_path / "a", notices=100)
    cells = len(list(parts_of(file, 1_000)))
    assert cells > 3
    for puts in range(cells + 1):
        hbase.stored.clear()
        hbase.fails_after = puts
        with pytest.raises(KeyboardInterrupt):
            put_file(published, file, 1, SentParts())
        assert published.published().closings == ()
    hbase.fails_after = None
    put_file(published, file, 1, SentParts())
    assert len(published.published().closings) == 1


@pytest.mark.usefixtures("small_cells")
def test_a_file_that_is_not_whole_or_altered_is_refused(published: PublishedTable, hbase: Rows, tmp_path: Path) -> None:
    """A part that is missing (not here yet, or expired), another one in its place, one cut short."""
    closing, _ = put_file(published, status(tmp_path / "a", notices=100), 1, SentParts())
    whole = {key: dict(cells) for key, cells in hbase.stored.items()}
    for number, part in enumerate(closing.parts):
        key = closing.part_key(part)
        ((name, content),) = whole[key].items()
        hbase.stored = {one: cells for one, cells in whole.items() if one != key}
        with pytest.raises(StatusFileError, match=f"not arrived in whole: part {number + 1} of {len(closing.parts)}"):
            published.fetch(closing, tmp_path / "b")
        for change in (b"", bytes([content[-1] ^ 1])):
            hbase.stored = whole | {key: {name: content[:-1] + change}}
            with pytest.raises(StatusFileError, match="was altered"):
                published.fetch(closing, tmp_path / "b")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *((text, "cannot be parsed") for text in (b"", b"[]", b'{"version": 2}', b'{"version": true, "cells": 1}')),
        *((b"[" * 100_000, "cannot be parsed"), (b'{"version": 3}', "newer status-tool")),
    ],
)
def test_a_closing_row_of_anything_else(published: PublishedTable, hbase: Rows, value: bytes, reason: str) -> None:
    """It is told, and hides no other file."""
    hbase.stored[f"c/{CLUSTER}/x".encode()] = {b"published:c": value}
    good = closing_row(5)
    hbase.stored[good.key] = {b"published:c": good.value()}
    found = published.published()
    (told,) = found.unreadable
    assert (found.closings, reason in told) == ((good,), True)


@pytest.mark.parametrize("part", [["00", 1], ["0" * 64, 0], ["0" * 64, CELL_BYTES + 1], ["F" * 64, 1], "x", [1, 1]])
def test_a_closing_row_whose_parts_are_none(part: object) -> None:
    """A digest in hex, and a size that a cell can have."""
    good = closing_row(5)
    assert closing_of(good.key, good.value()) == good
    bad = json.loads(good.value()) | {"parts": [part]}
    with pytest.raises(StatusFileError, match="cannot be parsed"):
        closing_of(good.key, json.dumps(bad).encode())


def test_the_newest_comes_first_whatever_came_first(published: PublishedTable, hbase: Rows) -> None:
    """Replication brings rows in any order."""
    for barrier in (30, 10, 20):
        one = closing_row(barrier)
        hbase.stored[one.key] = {b"published:c": one.value()}
    assert [one.barrier_ms for one in published.published().closings] == [30, 20, 10]


@pytest.mark.usefixtures("fetching")
def test_a_publisher_with_a_clock_ahead_hides_nothing(published: PublishedTable, hbase: Rows, tmp_path: Path) -> None:
    """HBase's own time tells that its file is older; of that one alone, it is told whose clock is wrong."""
    began_ms = now_ms() - 120_000
    for number, barrier_ms in enumerate((began_ms + 86_400_000, began_ms + 60_000, began_ms + 30_000)):
        file = status(tmp_path / f"{number}", replace(HEADER, barrier_issued_ms=barrier_ms))
        closing, _ = put_file(published, file, 1, SentParts())
        hbase.put_ms[closing.key] = barrier_ms if number else began_ms
    assert [one.barrier_ms - began_ms for one in published.published().closings] == [60_000, 30_000, 86_400_000]
    assert "AHEAD" not in fetch_newest(SITE, None, tmp_path / "copy", with_files=False)[-1]
    for closing in published.published().closings[:2]:
        del hbase.stored[closing.key]
    told = fetch_newest(SITE, None, tmp_path / "copy", with_files=False)[-1]
    assert "AHEAD of this host's clock: set right the clock of the host that runs `publish`" in told


@pytest.mark.usefixtures("fetching")
@pytest.mark.parametrize(("tables", "cut"), [((), 1), (("u",), 1), (("t",), 2)])
def test_a_file_of_fewer_tables_does_not_stand_for_one_of_those_that_are_asked(
    published: PublishedTable, tmp_path: Path, tables: tuple[str, ...], cut: int
) -> None:
    """A second publisher may be of some tables; without any other file its is taken, and the verdict has a limit."""
    asked = TableFilter.of(tables, ())
    whole, some = (replace(HEADER, barrier_issued_ms=moment, cut_ms=moment) for moment in (1, 2))
    put_file(published, status(tmp_path / "some", replace(some, tables=("t",))), 1, SentParts(), number=2)
    fetch_newest(SITE, None, tmp_path / "copy", with_files=False, asked=asked)
    assert read_header(tmp_path / "copy").cut_ms == 2
    put_file(published, status(tmp_path / "whole", whole), 1, SentParts(), number=1)
    told = fetch_newest(SITE, None, tmp_path / "copy", with_files=False, asked=asked)
    assert (read_header(tmp_path / "copy").cut_ms, "holds only t" in told[0]) == (cut, cut == 1)


def read_header(path: Path) -> Header:
    with open_status(path) as read:
        return read.header


def test_what_this_cluster_published_itself_proves_nothing_here() -> None:
    """And two masters have to be told apart by the user."""
    files = [closing_row(1, name) for name in ("a", "b", "c")]
    assert of_one_master(Published(tuple(files[:2])), "a", None, "--x") == files[1:2]
    assert of_one_master(Published(tuple(files)), "a", "c", "--x") == files[2:]
    with pytest.raises(UsageError, match=r"2 clusters have published to this one \(b, c\): name the master by --x"):
        of_one_master(Published(tuple(files)), "a", None, "--x")


def test_two_masters_of_one_id_are_not_taken_for_one() -> None:
    """One was made of a copy of the other's HBase root. The order of ZooKeeper's hosts makes no other cluster."""
    one, same, other = (replace(closing_row(1, "b"), cluster_key=key) for key in ("h,i:1:/a", "i,h:1:/a", "j:1:/a"))
    files = [one, same, closing_row(2, "b")]
    assert of_one_master(Published(tuple(files)), "a", None, "--x") == files
    for wanted in (None, "b"):
        with pytest.raises(UsageError, match=r"clusters at h,i:1:/a, j:1:/a have published as b"):
            of_one_master(Published((one, other)), "a", wanted, "--x")


def test_only_a_masters_status_with_its_hbase_half_is_published(published: PublishedTable, tmp_path: Path) -> None:
    """Any other would prove nothing."""
    with pytest.raises(ConfigurationError, match="HBase half"):
        put_file(published, status(tmp_path / "a", replace(HEADER, barrier_issued_ms=None)), 1, SentParts())
    with pytest.raises(StatusFileError, match="slave's status"):
        put_file(published, status(tmp_path / "b", replace(HEADER, side="slave")), 1, SentParts())
    assert published.published().closings == ()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The publishers' clock."""
    moment = [1_000_000]
    monkeypatch.setattr(publisher, "now_ms", lambda: moment[0])
    return moment


def turns_of(published: PublishedTable, interval_ms: int = 30_000, what: str = "") -> Turns:
    return Turns(published, CLUSTER, interval_ms, what)


@pytest.mark.usefixtures("clock")
def test_a_publisher_silences_none_that_publishes_anything_else(published: PublishedTable) -> None:
    """The recovery point of the whole, a check of files, and one that requires a signature need what it lacks."""
    first, second = (turns_of(published, what=what) for what in ("a", "b"))
    assert (first.take(), second.take()) == (None, None)


def test_two_publishers_share_the_rounds(published: PublishedTable, clock: list[int]) -> None:
    """One publishes; the other leaves its rounds out, and takes over when the first one has ended."""
    first, second = (turns_of(published) for _ in range(2))
    assert first.take() is None
    clock[0] += 10_000
    assert second.take() == first._id
    for _ in range(5):
        clock[0] += 20_000
        assert first.take() is None
        clock[0] += 10_000
        assert second.take() is not None
    clock[0] += 30_000
    assert second.take() is None
    assert first.take() is not None


def test_rounds_are_numbered_whatever_clocks_do(published: PublishedTable, clock: list[int]) -> None:
    """The file of a later round is newer, also where all clocks of the master were set back before it."""
    turns, other = (turns_of(published, 1) for _ in range(2))
    assert turns.take() is None
    ahead = replace(closing_row(9_000), number=turns.number)
    clock[0] -= 100_000
    turns.hand_back()
    assert other.take() is None
    for one in (ahead, replace(closing_row(5_000), number=other.number)):
        published.put([], replace(one, parts=()), SentParts())
    first = turns.number
    found = [(one.number, one.barrier_ms) for one in published.published().closings]
    assert found == [(first + 1, 5_000), (first, 9_000)]
    assert published.last_number(CLUSTER) == first + 1


def test_rounds_are_numbered_on_where_the_table_was_made_anew(
    published: PublishedTable, hbase: Rows, clock: list[int]
) -> None:
    """A slave has the files of before for a day: it would take each of them for newer."""
    running, before = turns_of(published, 1), list[int]()
    for _ in range(3):
        assert running.take() is None
        before.append(running.number)
        clock[0] += 30_000
    hbase.stored.clear()
    clock[0] -= 1_000_000
    assert running.take() is None
    assert running.number > max(before), "it knows its own, whatever the clocks show"
    hbase.stored.clear()
    clock[0] += 1_000_000
    other = turns_of(published, 1)
    assert other.take() is None
    assert other.number > max(before), "another one goes by the time"


def test_a_publisher_whose_rounds_fail_silences_no_other(published: PublishedTable, clock: list[int]) -> None:
    """The round that it hands back is taken by the next one that looks; alone, it tries again itself."""
    failing, other = (turns_of(published) for _ in range(2))
    for _ in range(2):
        assert failing.take() is None
        failing.hand_back()
        clock[0] += 30_000
    assert other.take() is None
    failing.hand_back()
    clock[0] += 10_000
    assert failing.take() is not None
    clock[0] += 20_000
    assert other.take() is None, "what the other one has claimed since is not handed back"
    started_later = turns_of(published)
    other.hand_back()
    assert started_later.take() is None


@pytest.mark.usefixtures("clock")
def test_a_publisher_that_starts_after_an_old_claim_does_not_wait(published: PublishedTable) -> None:
    """Nor for one that nobody can parse, or one of a clock that is ahead."""
    claims = (
        b'{"publisher": "x", "claimed_ms": 900000, "number": %d}' % 10**30,
        b"x",
        b'{"claimed_ms": 2000000}',
        b"[1]",
        b"[" * 100_000,
    )
    for claim in claims:
        known = published.claimed(CLUSTER)
        assert published.claim(CLUSTER, known, claim)
        assert turns_of(published).take() is None


def test_of_two_that_claim_at_once_one_wins(published: PublishedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check-and-put decides."""
    first, second = (turns_of(published) for _ in range(2))
    read = published.claimed
    claimed_between = iter([True])

    def claimed(cluster_id: str) -> bytes | None:
        found = read(cluster_id)
        if next(claimed_between, False):
            assert second.take() is None
        return found

    monkeypatch.setattr(published, "claimed", claimed)
    assert first.take() == second._id


def test_a_users_table_is_not_used(published: PublishedTable, hbase: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has other families."""
    families: dict[bytes, Any] = {b"cf:": {}, b"published:": {}}
    monkeypatch.setattr(hbase, "table", lambda _: SimpleNamespace(families=lambda: families))
    with pytest.raises(ConfigurationError, match="has the families cf, published"):
        published.require()
    del families[b"cf:"]
    published.require()
    monkeypatch.setattr(hbase, "tables", lambda: [b"other"])
    with pytest.raises(ConfigurationError, match="REPLICATION_SCOPE => 1, TTL => 86400"):
        published.require()
    secure = PublishedTable(ThriftEndpoint("h", 1, principal="hbase/h@R"), "replicationstatus")
    with pytest.raises(ConfigurationError, match="has no rights on it: `grant 'USER', 'RW', 'replicationstatus'`"):
        secure.require()


PEER = Peer("1", "h:1:/hbase", True, 0)


@pytest.mark.parametrize(
    ("peer", "is_shipped"),
    [
        (PEER, True),
        (replace(PEER, exclude_namespaces=("default",)), False),
        (replace(PEER, exclude_table_cfs={"replicationstatus": ["published"]}), False),
        (replace(PEER, exclude_table_cfs={"replicationstatus": ["other"]}), True),
        (replace(PEER, replicate_all=False), False),
        (replace(PEER, replicate_all=False, namespaces=("default",)), True),
        (replace(PEER, replicate_all=False, table_cfs={"replicationstatus": ["published"]}), True),
        (replace(PEER, replicate_all=False, table_cfs={"replicationstatus": ["other"]}), False),
    ],
)
def test_which_peers_carry_the_table(peer: Peer, is_shipped: bool) -> None:
    """By each of a peer's lists, for the table's one family; what lists mean has `test_peers.py`."""
    assert ships_published(peer, "replicationstatus") is is_shipped


def test_a_peer_whose_cluster_lacks_the_table_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replication to it would stop at the first entry; where it cannot be seen, it is not known."""
    of = ZooKeeperEndpoint("here:1", "/hbase")
    peers = [PEER, replace(PEER, id="2", enabled=False)]
    monkeypatch.setattr(carriers, "is_witness", lambda peer, _: peer.cluster_key == "witness:1:/w")
    for is_there, tables in ((True, ["replicationstatus"]), (False, ["other"]), (None, None), (None, list[str]())):
        monkeypatch.setattr(carriers, "peer_tables", lambda *_, tables=tables: tables)
        one, *disabled = carriers.carried(peers, of, "replicationstatus")
        assert ("would stop" in (one.problem or ""), one.problem is None) == (is_there is False, is_there is not False)
        # What a disabled peer queues would stop it once it is enabled.
        queued = [Carried("2", False, False, str(one.problem).replace("peer 1", "peer 2"))]
        assert disabled == (queued if is_there is False else [])
    # HBase's own peer for region replicas, a witness's, and one whose endpoint may bring it anywhere.
    none = [
        replace(PEER, cluster_key=of.cluster_key),
        replace(PEER, cluster_key="witness:1:/w"),
        replace(PEER, endpoint="org.example.Sends"),
    ]
    assert list(carriers.carried(none, of, "replicationstatus")) == []
