"""The file rule as DataFrame expressions; `status_tool.evidence.files` says the same in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from status_tool.evidence.files import CHANGEABLE, COMPARED, ENCRYPTED, OPEN, UNREADABLE
from status_tool.sources.selection import LOCAL
from status_tool.spark.finding_struct import finding, present

_SIDES = ("master", "slave")


def judge_files(master_df: DataFrame, slave_df: DataFrame, cut_ms: int) -> DataFrame:
    """One row a path with both sides' values, its `code`, and `findings` where it is no match."""
    ours, theirs = _file_rows(master_df, "master"), _file_rows(slave_df, "slave")
    both = ours.unionByName(theirs).repartition("path")
    by_path = both.groupBy("path").agg(*(column for side in _SIDES for column in _side_aggregates(side)))
    changed = _code().isin(*CHANGEABLE) & (F.col("master_modified_ms") > cut_ms)
    coded = by_path.withColumn("code", F.when(changed, "file-changed").otherwise(_code())).withColumn("note", _note())
    at_fault = finding(code=F.col("code"), path=F.col("path"), note=F.col("note"))
    return coded.withColumn("findings", present(F.when(F.col("code") != "match", at_fault)))


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
    files = rows.where((F.col("kind") == "file") & F.col("path").isNotNull())
    return files.select("path", F.lit(side).alias("side"), *COMPARED, "modified_ms", "detail")


def _side_aggregates(side: str) -> list[Column]:
    here, content = F.col("side") == side, F.struct(*COMPARED)
    unreadable = here & (F.col("state") == UNREADABLE)
    said = F.when(unreadable & (F.col("detail") != ""), F.concat(F.lit(f"{side}: "), F.col("detail")))
    return [
        F.count_if(here).alias(f"{side}_rows"),
        F.count_if(unreadable).alias(f"{side}_unreadable"),
        F.count_if(unreadable & F.col("length").isNull()).alias(f"{side}_folder"),
        F.count_if(here & (F.col("state") == OPEN)).alias(f"{side}_open"),
        F.max(F.when(here, F.col("modified_ms"))).alias(f"{side}_modified_ms"),
        F.min(F.when(here, content)).alias(side),
        F.max(F.when(here, content)).alias(f"{side}_other"),
        F.min(said).alias(f"{side}_said"),
    ]


def _code() -> Column:
    """The same order of questions as `evidence.files`."""
    ambiguous = [~F.col(side).eqNullSafe(F.col(f"{side}_other")) for side in _SIDES]
    read, known = (
        F.col(f"master.{name}").isNotNull() & F.col(f"slave.{name}").isNotNull() for name in ("crc32c", "checksum")
    )
    alike = known & F.col("master.algorithm").eqNullSafe(F.col("slave.algorithm"))
    encrypted = F.coalesce(F.col("master.algorithm").endswith(ENCRYPTED), F.lit(False))
    return (
        F.when(F.col("master_rows") == 0, "file-extra")
        .when(F.col("master_folder") > 0, "file-unreadable")
        .when(F.col("master_open") > 0, "file-open")
        .when(F.col("slave_rows") == 0, "file-missing")
        .when((F.col("master_unreadable") > 0) | (F.col("slave_unreadable") > 0), "file-unreadable")
        .when(F.col("slave_open") > 0, "file-open")
        .when(ambiguous[0] | ambiguous[1], "file-ambiguous")
        .when(F.col("master.length").isNull() | F.col("slave.length").isNull(), "no-checksum")
        .when(F.col("master.length") != F.col("slave.length"), "size")
        .when(F.col("master.length") == 0, "match")
        .when(read & (F.col("master.crc32c") != F.col("slave.crc32c")), "content")
        .when(alike & (F.col("master.checksum") == F.col("slave.checksum")), "match")
        .when(alike & ~encrypted, "checksum")
        .when(read, "match")
        .when(~known, "no-checksum")
        .otherwise("algorithm")
    )


def _note() -> Column:
    said = F.least("master_said", "slave_said")
    ours, theirs = (_or_unknown(F.col(f"{side}.algorithm")) for side in _SIDES)
    return (
        F.when(F.col("code") == "file-unreadable", said)
        .when(F.col("code") == "size", _on_both(F.col("master.length"), F.col("slave.length"), " bytes"))
        .when(F.col("code") == "algorithm", _on_both(ours, theirs))
        .when(F.col("code") == "content", _on_both(F.col("master.crc32c"), F.col("slave.crc32c"), ""))
        .when((F.col("code") == "file-open") & (F.col("master_open") > 0), "master")
        .when(F.col("code") == "file-open", "slave")
    )


def _on_both(ours: Column, theirs: Column, unit: str = "") -> Column:
    return F.concat(ours, F.lit(f"{unit} on the master, "), theirs, F.lit(" on the slave"))


def _or_unknown(text: Column) -> Column:
    return F.when(text != "", text).otherwise("unknown")
