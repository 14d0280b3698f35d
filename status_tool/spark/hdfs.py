"""The plan for files: both sides' rows are brought together by path, in one shuffle; `rules.files` has the rule."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from status_tool.rules.files import COMPARED, changed_sql, compare_sql, note_sql, path_aggregates_sql
from status_tool.rules.sql import finding, present
from status_tool.spark.expressions import named
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.selection import LOCAL


def judge_files(master_df: DataFrame, slave_df: DataFrame, cut_ms: int) -> DataFrame:
    """One row per path with both sides' values, its `code`, and `findings` where it does not match."""
    ours, theirs = _file_rows(master_df, MASTER), _file_rows(slave_df, SLAVE)
    by_path = ours.unionByName(theirs).repartition("path").groupBy("path").agg(*named(path_aggregates_sql()))
    compared = by_path.select("*", *named({"code": compare_sql()}))
    coded = compared.withColumn("code", F.expr(changed_sql(cut_ms))).select("*", *named({"note": note_sql()}))
    at_fault = f"IF(code != 'match', {finding('code', path='path', note='note')}, NULL)"
    return coded.select("*", *named({"findings": present(at_fault)}))


def mapped_paths(rows: DataFrame, pairs: Sequence[tuple[str, str]]) -> DataFrame:
    """The slave's rows under the paths that they have on the master (`--map-path`, longest master prefix first).

    The slave's own files under a master path that is mapped elsewhere have no counterpart, and are dropped.
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
