"""Rows of the state table byte by byte: what the trackers write is read here, and what the tool writes is read there.

`GoldenRows` in `coprocessor_stubs` reads the same files, one JSON object per row as in a spool file. If rows that the
tool writes are to change: `GOLDEN_WRITE=1 .venv/bin/python -m pytest tests/unit/test_golden_rows.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from status_tool.clients import named_table
from status_tool.clients.config import Settings, ThriftEndpoint
from status_tool.clients.thrift import Cells
from status_tool.clients.webhdfs import WebHdfs
from status_tool.digests import requests, wire
from status_tool.digests.digest import Family
from status_tool.digests.wire import Range
from status_tool.rules.content import Files, Tenure, parse_tenure
from status_tool.rules.kept_proofs import BY_WORD, KeptBaseline, Seen
from status_tool.sources import codec, state_table
from status_tool.sources.spool import read_spool
from status_tool.sources.state_table import StateTable, newest_cells
from status_tool.vocabulary.ids import family_id, origin_id
from tests.unit.test_sources import SpoolFolder

GOLDEN = Path(__file__).resolve().parents[2] / "coprocessor_stubs/src/test/resources/state"
SERVER = "master.example.org,16020,1700000000000"
ORIGIN = origin_id(SERVER)
REGION = "a79196103a9573ddfbce95e0004630ff"
OTHER = "0123456789abcdef0123456789abcdef"
ONE, TWO = bytes(range(1, 17)), bytes([*range(0xF1, 0x100), 0])
TOKEN = b"0123456789abcdef"
NOW = 1_700_000_100_000
STREAM = {
    **{"kind": "stream", "table": "ns:t", "region": REGION, "origin": ORIGIN},
    **{"start_key": b"\0\1", "end_key": b"\xff"},
}
APPLIED = {"table": "ns:t", "region": OTHER, "origin": ORIGIN}


@pytest.fixture(scope="module")
def table() -> dict[bytes, Cells]:
    """The state table after the trackers have put all golden rows."""
    rows: dict[bytes, Cells] = {}
    spool = SpoolFolder("tracker-rows.jsonl", (GOLDEN / "tracker-rows.jsonl").read_bytes())
    for key, cells in read_spool(cast(WebHdfs, spool), "spool"):
        rows[key] = newest_cells(rows.get(key, {}), cells)
    return dict(sorted(rows.items()))


def via_of(data: bytes) -> int:
    """docs/formats.md, Ids."""
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big", signed=True)


def stream_via(base: int, family: str | None) -> int:
    """The via of a family's stream; None: of several families."""
    number = "00000000" if family is None else family_id(family)
    return via_of(base.to_bytes(8, "big", signed=True) + bytes.fromhex(number))


def of(table: Mapping[bytes, Cells], letter: str) -> list[tuple[bytes, Cells]]:
    return [row for row in table.items() if row[0].startswith(letter.encode())]


def test_the_golden_rows_have_every_kind_that_trackers_write(table: dict[bytes, Cells]) -> None:
    """So that no test below passes for want of rows."""
    assert {key[:1] for key in table} == set(map(bytes, zip(b"hsugfnotbc", strict=True)))


def test_heads(table: dict[bytes, Cells]) -> None:
    """Of local writes, of a region that lives again, and of edits that came through two clusters."""
    found = {row["via"]: row for row in codec.heads(of(table, "h"))}
    clusters, life = via_of(ONE + TWO), 345805037546843405
    written = STREAM | {"via": stream_via(0, "g"), "via_ids": None, "family": "g"}
    local = written | {"seq": 5, "first_ms": 1002, "write_ms": 1002, "entries": 2}
    again = written | {"via": stream_via(life, "g"), "seq": 3, "first_ms": 1007, "write_ms": 1007, "entries": 1}
    relayed = again | {"via_ids": ONE + TWO, "seq": 6, "first_ms": 1006, "write_ms": 1006}
    relayed |= {"via": stream_via(clusters, "g")}
    joint = relayed | {"via": stream_via(clusters, None), "family": ""}
    assert found == {row["via"]: row for row in (local, again, relayed, joint)}


def test_segments(table: dict[bytes, Cells]) -> None:
    """Of two streams of a family, and the newest write of their region."""
    own, first, second, *others = codec.segments(of(table, "s"))
    segment = APPLIED | {"kind": "segment", "recorded_ms": NOW, "family": "g"}
    assert own == segment | {
        **{"via": stream_via(0, "g"), "prev": 0, "seq": 4},
        **{"first_ms": 1004, "write_ms": 1004, "started_ms": 0},
    }
    assert first == segment | {"via": -2, "prev": 0, "seq": 5, "first_ms": 1004, "write_ms": 1003, "started_ms": 0}
    assert second == segment | {"via": -2, "prev": 7, "seq": 9, "first_ms": 1009, "write_ms": 1009, "started_ms": None}
    assert others == [{"kind": "replicated", "table": "ns:t", "region": OTHER, "write_ms": 1009}]


def test_unstamped(table: dict[bytes, Cells]) -> None:
    """With the clusters that such entries came through."""
    (found,) = codec.unstamped(of(table, "u"))
    base = {"kind": "unstamped", "table": "ns:t", "write_ms": 1001}
    assert found == base | {"region": "f123456789abcdeff123456789abcdef", "via_ids": ONE + TWO}


def test_facts(table: dict[bytes, Cells]) -> None:
    """Bulk loads with and without replication, a split, a merge, and when."""
    base = {"kind": "fact", "table": "ns:t", "region": REGION}
    assert list(codec.facts(of(table, "g"))) == [
        base | {"region": OTHER, "state": "merge", "write_ms": 1013, "region_id": 8},
        base | {"state": "bulkload", "write_ms": 1010},
        base | {"state": "localload", "write_ms": 1011},
        base | {"state": "split", "write_ms": 1012, "region_id": 7},
    ]


def test_content(table: dict[bytes, Cells]) -> None:
    """A tenure with everything, and one whose families are all gone; the sums are those of `ledger/tenures.json`."""
    ((_, cells),) = of(table, "f")
    ended, opened = (parse_tenure(value) for name, (value, _) in sorted(cells.items()) if name.startswith(b"t:k"))
    assert ended is not None
    before, after = ended.before["g"], ended.after
    assert (before.count, before.links, before.loaded) == (2, 1, 0)
    assert after["g"] == before
    assert (after["l"].count, after["l"].links, after["l"].loaded) == (1, 0, after["l"].sum)
    expected = Tenure(3, 1004, 6, {"g": before}, after, 1006, 5, 1004, ("g",), 1004)
    assert ended == expected
    assert opened == Tenure(7, 1008, 8, {}, {}, unseen_ms=1008)
    assert isinstance(before, Files)
    (changed,) = codec.contents(of(table, "f"))
    assert changed == {"kind": "fact", "table": "ns:t", "region": REGION, "state": "changed", "write_ms": 1008}


def test_table_events(table: dict[bytes, Cells]) -> None:
    passed = "00000000-0000-0001-0000-000000000002,00000000-0000-0003-0000-000000000004"
    births = {"arrived_ms": 1000, "born_ms": 900, "first_born_ms": 900}
    changes = {"dropped_ms": {"f": 2005}, "raised_ms": {"g": 2005}, "skipped_ms": 2005, "tagged_ms": 30_000}
    writes = {name: {"": 30_000, passed: 40_000} for name in ("written_by", "first_written_by", "deleted_by")}
    assert codec.table_events(of(table, "n")) == {"ns:t": births | changes | writes}


def test_servers(table: dict[bytes, Cells]) -> None:
    """One that ended cleanly with all that a row can hold, and one before its first flush that is gone."""
    rows = {key[-1:].decode(): codec.server(cells, key[-1:].decode(), {TOKEN}) for key, cells in of(table, "o")}
    base = {"kind": "server", "server": SERVER}
    detail = json.loads(rows["w"].pop("detail"))
    assert rows["w"] == base | {
        "role": "w", "flush_ms": 2000, "echoed": True, "read_ms": 2001, "final_ms": 2000, "gone_ms": None,
    }  # fmt: skip
    assert detail == {
        **{"failed_writes": 1, "pending": 3, "errors": 1, "last_error_ms": NOW - 5, "sink_hook": False},
        **{"clock_back_ms": NOW - 4, "clock_low_ms": NOW - 5, "peers": {"1": [77, 2, 2, NOW]}},
        "settings": {
            "hbase.hlog.split.skip.errors": "true",
            "hbase.coprocessor.wal.classes": "com.x.Wal, com.x.Other",
            "hbase.replication.rpc.codec": "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags",
        },
    }
    detail = json.loads(rows["r"].pop("detail"))
    assert rows["r"] == base | {
        "role": "r", "flush_ms": None, "echoed": False, "read_ms": None, "final_ms": None, "gone_ms": NOW,
    }  # fmt: skip
    assert detail == {"failed_writes": 0, "pending": 0, "errors": 0}


def test_tables_claim_and_coverage(table: dict[bytes, Cells]) -> None:
    """What one tracker writes for a barrier, and the start of coverage."""
    ((key, cells),) = of(table, "t")
    assert codec.raw(cells, b"e") == TOKEN
    row = codec.descriptor(key, cells)
    family = {
        "versions": 1, "min_versions": 0, "keep_deleted": "FALSE", "new_version_behavior": False, "mob": False,
    }  # fmt: skip
    assert json.loads(row.pop("detail")) == {
        "families": {"g": family | {"scope": 1, "ttl": 60}, "l": family | {"scope": 0, "ttl": 2147483647}},
        "durability": "USE_DEFAULT",
        "enabled": False,
        "coprocessors": ["com.x.Own"],
    }
    assert row == {"kind": "table", "table": "ns:t"}
    assert codec.raw(table[b"b"], b"c") == TOKEN + bytes(7) + b"\x07", "of the tracker that claimed it"
    assert codec.number(table[b"c"], b"a") == NOW


class Recorded:
    """Stands for happybase's connection and keeps what is put, as lines of a spool file, by table."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = {}

    @contextmanager
    def connection(self, _endpoint: ThriftEndpoint) -> Iterator[Any]:
        """As `status_tool.clients.thrift.connection`."""
        yield SimpleNamespace(table=self.table, tables=lambda: [b"replicationstate_rows"])

    def table(self, name: str) -> Any:
        """Of happybase's table the one method that writes."""

        def put(row: bytes, data: Mapping[bytes, bytes], timestamp: int | None = None) -> None:
            when = {} if timestamp is None else {"ts": timestamp}
            cells = [{"q": column[2:].hex(), "v": value.hex(), **when} for column, value in data.items()]
            line = json.dumps({"row": row.hex(), "cells": cells}, separators=(",", ":"))
            self.lines.setdefault(name, []).append(line)

        return SimpleNamespace(put=put, row=lambda *_args, **_options: {})


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """What the tool puts from here on; chance and clock stand still."""
    recorded = Recorded()
    for module in (named_table, state_table, requests):
        monkeypatch.setattr(module, "connection", recorded.connection)
    monkeypatch.setattr(state_table, "now_ms", lambda: NOW)
    monkeypatch.setattr(state_table, "openings", lambda *_: bytes(range(8)))
    monkeypatch.setattr(requests, "scan", lambda *_: iter(()))
    monkeypatch.setattr(requests, "get", lambda *_: {})
    monkeypatch.setattr(requests, "HEARTBEAT_S", 3600.0)
    monkeypatch.setattr(os, "urandom", lambda count: bytes(range(count)))
    return recorded


def compare(name: str, lines: list[str]) -> None:
    """With the golden file, which is written instead on request."""
    if os.environ.get("GOLDEN_WRITE"):
        (GOLDEN / name).write_text("\n".join(lines) + "\n")
    assert lines == (GOLDEN / name).read_text().splitlines()


def test_what_the_tool_writes_to_the_state_table(written: Recorded) -> None:
    """Every kind of row that it writes there, but the doorbell."""
    state = StateTable(ThriftEndpoint("localhost", 9090), "replicationstate")
    state.put_barrier()
    state.record_shutdown(NOW - 1)
    state.record_settled({"origin": ORIGIN, "server": SERVER}, "1", {"incarnation": 77, "at_ms": NOW, "filter": ""})
    state.mark_pruned({("ns:t", ONE + TWO): NOW - 2, ("u", b""): NOW - 3})
    state.note_pruned_by("01020304-0506-0708-090a-0b0c0d0e0f10", NOW - 4)
    kept = KeptBaseline(NOW - 5, frozenset("f"), Seen(born_ms=NOW - 6), BY_WORD)
    state.record_kept("01020304-0506-0708-090a-0b0c0d0e0f10", {"ns:t": kept.to_json(), "u": None})
    compare("tool-rows.jsonl", written.lines["replicationstate"])


def test_what_the_tool_writes_to_ask_for_row_digests(written: Recorded) -> None:
    """A request, its doorbell, a page, and that the request is withdrawn."""
    query = wire.Query({"ns:t": {b"f": Family(3), b"g": Family(1, 99)}}, bytes(16), 1234, 5678)
    settings = cast(Settings, SimpleNamespace(thrift=lambda: None, state_table="replicationstate"))
    with requests.Requests(settings, query) as sent:
        sent.send({SERVER: [Range(7, OTHER, 11, b"a", b"\xff\x00"), Range(8, REGION, 12, b"", b"")]})
    compare("tool-doorbell.jsonl", written.lines["replicationstate"])
    compare("tool-requests.jsonl", written.lines["replicationstate_rows"])
