"""Every stream, region, file and server with both sides' values and the decision, as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from status_tool.atomic import atomic_write, make_folder
from status_tool.printable import safe_json
from status_tool.rules.origins import origin_name
from status_tool.spark.verify import Verification
from status_tool.vocabulary.codes import FILE_CODES, STREAM_CODES
from status_tool.vocabulary.verdicts import SEVERITY, Evidence

# Every line has every key. By default Spark leaves out those that are null.
_KEYS = {"ignoreNullFields": "false"}


def write_debug(check: Verification, directory: Path) -> None:
    """Write `streams.jsonl`, `regions.jsonl`, `files.jsonl` and `servers.jsonl`, each whole or not at all.

    Rows stream through the driver, a partition at a time. Raises OutputError where a file cannot be written.
    """
    make_folder(directory)
    has_hbase, has_hdfs = check.context.check_hbase, check.context.check_hdfs
    has_streams = has_hbase and check.context.evidence is not Evidence.TIMESTAMPS
    frames = {
        "regions": _regions(check.regions) if has_hbase else None,
        "streams": _streams(check.streams()) if has_streams else None,
        "files": _files(check.files()) if has_hdfs else None,
    }
    for name, rows in frames.items():
        # Empty for a half that is not checked: the file of an older dump would pass for one of this.
        _write(directory / f"{name}.jsonl", () if rows is None else _lines(rows))
    servers = ({**row, "origin": origin_name(row["origin"], {})} for row in check.servers())
    _write(directory / "servers.jsonl", map(json.dumps, servers))


def _write(path: Path, lines: Iterable[str]) -> None:
    with atomic_write(path) as file:
        for line in lines:
            file.write(line + "\n")


def _lines(rows: DataFrame) -> Iterator[str]:
    as_json = rows.select(F.to_json(F.struct("*"), _KEYS).alias("json"))
    return (safe_json(row["json"]) for row in as_json.toLocalIterator(prefetchPartitions=True))


def _streams(streams: DataFrame) -> DataFrame:
    shown = {
        "origin": _hex_id("origin"),
        "via": _hex_id("via"),
        "code": F.col("code").alias("decision"),
    }
    status = _mapped(F.col("code"), {code: str(status) for code, status in STREAM_CODES.items()}).alias("status")
    return streams.select(status, *(shown.get(name, F.col(name)) for name in streams.columns))


def _regions(regions: DataFrame) -> DataFrame:
    severities = {rank: str(status) for status, rank in SEVERITY.items()}
    by_timestamps = F.when(F.col("timestamps") == "covered", "complete").otherwise(F.col("timestamps"))
    return regions.select(
        "table",
        "region",
        *(F.hex(name).alias(name) for name in ("start_key", "end_key")),
        _mapped(F.col("status"), severities).alias("status"),
        F.array_distinct(F.transform("findings", lambda one: one["code"])).alias("decision"),
        _mapped(F.col("table_status"), severities).alias("table_status"),
        "evidence",
        F.col("heads").alias("streams"),
        "written_ms",
        "replicated_ms",
        by_timestamps.alias("timestamps_rule"),
        "lag_ms",
    )


def _files(files: DataFrame) -> DataFrame:
    return files.select(
        "path",
        _mapped(F.col("code"), {code: str(status) for code, status in FILE_CODES.items()}).alias("status"),
        F.col("code").alias("decision"),
        "note",
        "master",
        "slave",
    )


def _hex_id(name: str) -> Column:
    return F.lower(F.lpad(F.hex(name), 16, "0")).alias(name)


def _mapped(value: Column, names: dict[str, str] | dict[int, str]) -> Column:
    literals = (F.lit(one) for pair in names.items() for one in pair)
    return F.element_at(F.create_map(*literals), value)
