"""Descriptors from `.tableinfo`, in the form of the trackers' own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from status_tool.clients import hbase_pb2
from status_tool.clients.hdfscli import Refused
from status_tool.clients.webhdfs import HdfsEndpoint, WebHdfs
from status_tool.sources.table_files import _HARMLESS, descriptor_of, table_rows
from tests.unit.test_descriptors import FAMILY as TRACKED
from tests.unit.test_evidence_reference import family


def tableinfo(families: Mapping[str, Mapping[str, str]], attributes: Mapping[str, str]) -> bytes:
    def pairs(values: Mapping[str, str]) -> list[hbase_pb2.BytesBytesPair]:
        return [hbase_pb2.BytesBytesPair(first=name.encode(), second=value.encode()) for name, value in values.items()]

    schema = hbase_pb2.TableSchema(
        table_name=hbase_pb2.TableName(namespace=b"ns", qualifier=b"t"),
        attributes=pairs(attributes),
        column_families=[
            hbase_pb2.ColumnFamilySchema(name=name.encode(), attributes=pairs(one)) for name, one in families.items()
        ],
    )
    return b"PBUF" + schema.SerializeToString()


FAMILY = {"REPLICATION_SCOPE": "1", "VERSIONS": "3", "TTL": "2147483647", "KEEP_DELETED_CELLS": "FALSE"}


def test_a_descriptor_is_that_of_the_trackers() -> None:
    """What HBase leaves out is its default; coprocessors of HBase that keep all cells are left out."""
    content = tableinfo(
        {"f": FAMILY, "g": {"TTL": "60 SECONDS", "NEW_VERSION_BEHAVIOR": "true", "IS_MOB": "true"}},
        {
            "DURABILITY": "ASYNC_WAL",
            "coprocessor$1": "|org.example.Mine|1001|",
            "coprocessor$2": "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1|",
            "coprocessor$3": "|org.apache.hadoop.hbase.tool.WriteSinkCoprocessor|1|",
        },
    )
    f = family(versions=3, mob=False)
    assert descriptor_of(content) == {
        "families": {"f": f, "g": f | {"scope": 0, "versions": 1, "new_version_behavior": True, "mob": True}},
        "durability": "ASYNC_WAL",
        "coprocessors": ["org.apache.hadoop.hbase.tool.WriteSinkCoprocessor", "org.example.Mine"],
    }
    assert descriptor_of(content)["families"]["f"].keys() == TRACKED.keys()  # type: ignore[index]
    assert descriptor_of(b"PBUF\xff") is None
    assert descriptor_of(b"") is None


def test_the_trackers_leave_out_the_same_coprocessors() -> None:
    """Otherwise the same table looks different on two clusters, or one that drops cells is not named."""
    package = Path(__file__).parents[2] / "coprocessor_stubs/src/main/java/io/github/statustool/state"
    java = (package / "HBaseCoprocessors.java").read_text()
    assert set(re.findall(r'"(org\.apache\.[^"]+)"', java)) == _HARMLESS


def test_the_newest_file_counts_and_a_later_one_says_the_table_was_altered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first one is that of the table's creation. A table without a whole one is left out."""
    one, two = (tableinfo(dict.fromkeys(families, FAMILY), {}) for families in (["0000000001"], ["0000000001", "g"]))
    assert two.startswith(one), "a part of a descriptor is one"
    name, half = f".tableinfo.0000000001.{len(one)}", f".tableinfo.0000000001.{len(two)}"
    files = {
        "/hbase/data/default/v/.tabledesc": [half],
        "/hbase/data/default/w/.tabledesc": [half],
        "/hbase/data/ns/t/.tabledesc": [name, name.replace("1", "3", 1), ".tmp"],
        "/hbase/data/default/u/.tabledesc": [name],
        "/hbase/data/default/old/.tabledesc": [".tableinfo.0000000001"],
    }

    def pages(_: WebHdfs, path: str) -> Any:
        if path not in files:
            raise Refused("FileNotFoundException", path)
        length = len(two if "/v/" in path else one)
        yield [{"pathSuffix": name, "modificationTime": 7, "length": length} for name in files[path]]

    def start_of(_: WebHdfs, path: str) -> tuple[bytes, int]:
        return tableinfo({path.rpartition("/")[2][11:21]: FAMILY}, {}), 9

    monkeypatch.setattr(WebHdfs, "pages", pages)
    monkeypatch.setattr(WebHdfs, "start_of", start_of)
    rows = table_rows(HdfsEndpoint(("http://nn:9870",), "me"), "/hbase", ["ns:t", "u", "v", "w", "old", "gone"])
    found = {row["table"]: json.loads(row["detail"]) for row in rows}
    assert {table: list(detail["families"]) for table, detail in found.items()} == {
        "ns:t": ["0000000003"],
        "u": ["0000000001"],
        "old": ["0000000001"],
    }
    assert {table for table, detail in found.items() if detail.get("altered_ms") == 7} == {"ns:t"}
