"""The file rule as DataFrame expressions; `status_tool.evidence.files` says the same in plain Python."""

from __future__ import annotations

from pyspark.sql import DataFrame

from status_tool.evidence.files import COMPARED, UNREADABLE
from status_tool.spark.expressions import case, finding, named, present

_SIDES = ("master", "slave")


def judge_files(master_df: DataFrame, slave_df: DataFrame) -> DataFrame:
    """One row a path with both sides' values, its `code`, and `findings` where it is no match."""
    ours, theirs = _file_rows(master_df, "master"), _file_rows(slave_df, "slave")
    aggregates = {name: text for side in _SIDES for name, text in _side_aggregates(side).items()}
    by_path = ours.unionByName(theirs).repartition("path").groupBy("path").agg(*named(aggregates))
    coded = by_path.select("*", *named({"code": _code()})).select("*", *named({"note": _note()}))
    at_fault = f"IF(code != 'match', {finding('code', path='path', note='note')}, NULL)"
    return coded.select("*", *named({"findings": present(at_fault)}))


def _file_rows(rows: DataFrame, side: str) -> DataFrame:
    files = rows.where("kind = 'file' AND path IS NOT NULL")
    return files.select("path", *COMPARED, "detail", *named({"side": f"'{side}'"}))


def _side_aggregates(side: str) -> dict[str, str]:
    here, content = f"side = '{side}'", f"struct({', '.join(COMPARED)})"
    unreadable = f"{here} AND state = '{UNREADABLE}'"
    return {
        f"{side}_rows": f"count_if({here})",
        f"{side}_unreadable": f"count_if({unreadable})",
        side: f"min(IF({here}, {content}, NULL))",
        f"{side}_other": f"max(IF({here}, {content}, NULL))",
        f"{side}_said": f"min(IF({unreadable} AND detail != '', concat('{side}: ', detail), NULL))",
    }


def _code() -> str:
    """The same order of questions as `evidence.files`."""
    return case(
        ("master_unreadable > 0 OR slave_unreadable > 0", "'file-unreadable'"),
        ("slave_rows = 0", "'file-missing'"),
        ("master_rows = 0", "'file-extra'"),
        ("NOT (master <=> master_other) OR NOT (slave <=> slave_other)", "'file-ambiguous'"),
        ("master.length IS NULL OR slave.length IS NULL", "'no-checksum'"),
        ("master.length != slave.length", "'size'"),
        ("master.length = 0", "'match'"),
        ("master.checksum IS NULL OR slave.checksum IS NULL", "'no-checksum'"),
        ("NOT (master.algorithm <=> slave.algorithm)", "'algorithm'"),
        ("master.checksum = slave.checksum", "'match'"),
        default="'checksum'",
    )


def _note() -> str:
    sizes = "concat(master.length, ' bytes on the master, ', slave.length, ' on the slave')"
    algorithms = [f"coalesce(nullif({side}.algorithm, ''), 'unknown')" for side in _SIDES]
    return case(
        ("code = 'file-unreadable'", "least(master_said, slave_said)"),
        ("code = 'size'", sizes),
        ("code = 'algorithm'", f"concat({algorithms[0]}, ' on the master, ', {algorithms[1]}, ' on the slave')"),
    )
