"""The file rule as DataFrame expressions; `status_tool.evidence.files` says the same in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from status_tool.evidence.files import CHANGEABLE, COMPARED, ENCRYPTED, OPEN, UNREADABLE
from status_tool.sources.selection import LOCAL
from status_tool.spark.expressions import case, finding, named, present

_SIDES = ("master", "slave")


def judge_files(master_df: DataFrame, slave_df: DataFrame, cut_ms: int) -> DataFrame:
    """One row a path with both sides' values, its `code`, and `findings` where it is no match."""
    ours, theirs = _file_rows(master_df, "master"), _file_rows(slave_df, "slave")
    aggregates = {name: text for side in _SIDES for name, text in _side_aggregates(side).items()}
    by_path = ours.unionByName(theirs).repartition("path").groupBy("path").agg(*named(aggregates))
    explained = ", ".join(f"'{code}'" for code in CHANGEABLE)
    changed = f"IF(code IN ({explained}) AND master_modified_ms > {cut_ms}, 'file-changed', code)"
    by_path = by_path.select("*", *named({"code": _code()})).withColumn("code", F.expr(changed))
    coded = by_path.select("*", *named({"note": _note()}))
    at_fault = f"IF(code != 'match', {finding('code', path='path', note='note')}, NULL)"
    return coded.select("*", *named({"findings": present(at_fault)}))


def mapped_paths(rows: DataFrame, pairs: Sequence[tuple[str, str]]) -> DataFrame:
    """The slave's rows under the paths that they have on the master (`--map-path`, longest master prefix first).

    What the slave has of its own under a master path that is mapped elsewhere is nobody's counterpart, and dropped.
    """
    if not pairs:
        return rows
    path, renamed, taken = F.col("path"), F.lit(None).cast("string"), F.lit(False)
    for master, slave in sorted(pairs, key=lambda pair: len(pair[1])):
        prefix = slave.removeprefix(LOCAL).rstrip("/")
        inside = (path == prefix) | path.startswith(prefix + "/")
        moved = F.concat(F.lit(master.rstrip("/")), F.substring(path, len(prefix) + 1, 1 << 30))
        renamed = F.when(inside, moved).otherwise(renamed)
        taken = taken | (path == master) | path.startswith(master.rstrip("/") + "/")
    kept = rows.where((F.col("kind") != "file") | renamed.isNotNull() | ~taken)
    return kept.withColumn("path", F.when(F.col("kind") == "file", F.coalesce(renamed, path)).otherwise(path))


def _file_rows(rows: DataFrame, side: str) -> DataFrame:
    files = rows.where("kind = 'file' AND path IS NOT NULL")
    return files.select("path", *COMPARED, "modified_ms", "detail", *named({"side": f"'{side}'"}))


def _side_aggregates(side: str) -> dict[str, str]:
    here, content = f"side = '{side}'", f"struct({', '.join(COMPARED)})"
    unreadable = f"{here} AND state = '{UNREADABLE}'"
    return {
        f"{side}_rows": f"count_if({here})",
        f"{side}_unreadable": f"count_if({unreadable})",
        f"{side}_folder": f"count_if({unreadable} AND length IS NULL)",
        f"{side}_open": f"count_if({here} AND state = '{OPEN}')",
        f"{side}_modified_ms": f"max(IF({here}, modified_ms, NULL))",
        side: f"min(IF({here}, {content}, NULL))",
        f"{side}_other": f"max(IF({here}, {content}, NULL))",
        f"{side}_said": f"min(IF({unreadable} AND detail != '', concat('{side}: ', detail), NULL))",
    }


def _code() -> str:
    """The same order of questions as `evidence.files`."""
    read, known = (f"(master.{name} IS NOT NULL AND slave.{name} IS NOT NULL)" for name in ("crc32c", "checksum"))
    alike = f"({known} AND master.algorithm <=> slave.algorithm)"
    return case(
        ("master_rows = 0", "'file-extra'"),
        ("master_folder > 0", "'file-unreadable'"),
        ("master_open > 0", "'file-open'"),
        ("slave_rows = 0", "'file-missing'"),
        ("master_unreadable > 0 OR slave_unreadable > 0", "'file-unreadable'"),
        ("slave_open > 0", "'file-open'"),
        ("NOT (master <=> master_other) OR NOT (slave <=> slave_other)", "'file-ambiguous'"),
        ("master.length IS NULL OR slave.length IS NULL", "'no-checksum'"),
        ("master.length != slave.length", "'size'"),
        ("master.length = 0", "'match'"),
        (f"{read} AND master.crc32c != slave.crc32c", "'content'"),
        (f"{alike} AND master.checksum = slave.checksum", "'match'"),
        (f"{alike} AND NOT coalesce(endswith(master.algorithm, '{ENCRYPTED}'), false)", "'checksum'"),
        (read, "'match'"),
        (f"NOT {known}", "'no-checksum'"),
        default="'algorithm'",
    )


def _note() -> str:
    sizes = "concat(master.length, ' bytes on the master, ', slave.length, ' on the slave')"
    algorithms = [f"coalesce(nullif({side}.algorithm, ''), 'unknown')" for side in _SIDES]
    return case(
        ("code = 'file-unreadable'", "least(master_said, slave_said)"),
        ("code = 'size'", sizes),
        ("code = 'algorithm'", f"concat({algorithms[0]}, ' on the master, ', {algorithms[1]}, ' on the slave')"),
        ("code = 'content'", "concat(master.crc32c, ' on the master, ', slave.crc32c, ' on the slave')"),
        ("code = 'file-open'", "IF(master_open > 0, 'master', 'slave')"),
    )
