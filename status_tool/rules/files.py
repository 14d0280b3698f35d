"""The file rule: is a file of the master on the slave, with the same content?"""

from __future__ import annotations

from collections.abc import Iterable

from status_tool.rules.sql import case
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import MASTER, SIDES, SLAVE
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.states import FileState

COMPARED = ("state", "length", "algorithm", "checksum", "crc32c")
ENCRYPTED = " encrypted"
"""Ends the algorithm of a file in an encryption zone: HDFS's checksum is that of the encrypted bytes."""


def judge_file(path: str, master: Iterable[Row], slave: Iterable[Row], cut_ms: int) -> Finding:
    """Compare one path's rows of both sides; code `match` when they agree.

    A difference in a file that the master changed after `cut_ms` is `file-changed`: what it was at the cut is unknown.
    """
    ours, theirs = _distinct(master), _distinct(slave)
    code, note = _compare(ours, theirs)
    if code in CHANGEABLE and any((row.get("modified_ms") or 0) > cut_ms for row in ours):
        code, note = "file-changed", None
    return Finding(code, path=path, note=note)


CHANGEABLE = ("file-missing", "file-open", "size", "checksum", "content", "algorithm", "no-checksum")
"""What a change after the cut may explain."""


def _compare(ours: list[Row], theirs: list[Row]) -> tuple[str, str | None]:
    if not ours:
        return "file-extra", None
    if any(row.get("state") == FileState.UNREADABLE and row.get("length") is None for row in ours):
        return "file-unreadable", _first_detail(ours, theirs)  # a folder: nothing of it can be compared
    if any(row.get("state") == FileState.OPEN for row in ours):
        return "file-open", MASTER
    if not theirs:
        return "file-missing", None
    if any(row.get("state") == FileState.UNREADABLE for row in (*ours, *theirs)):
        return "file-unreadable", _first_detail(ours, theirs)
    if any(row.get("state") == FileState.OPEN for row in theirs):
        return "file-open", SLAVE
    if len(ours) > 1 or len(theirs) > 1:
        return "file-ambiguous", None
    return _compare_contents(ours[0], theirs[0])


def _compare_contents(ours: Row, theirs: Row) -> tuple[str, str | None]:
    if ours.get("length") is None or theirs.get("length") is None:
        return "no-checksum", None
    if ours["length"] != theirs["length"]:
        return "size", f"{ours['length']} bytes on the master, {theirs['length']} on the slave"
    if ours["length"] == 0:
        return "match", None
    read = ours.get("crc32c") is not None and theirs.get("crc32c") is not None
    if read and ours["crc32c"] != theirs["crc32c"]:
        return "content", f"{ours['crc32c']} on the master, {theirs['crc32c']} on the slave"
    known = ours.get("checksum") is not None and theirs.get("checksum") is not None
    alike = known and ours.get("algorithm") == theirs.get("algorithm")
    if alike and ours["checksum"] == theirs["checksum"]:
        return "match", None
    if alike and not (ours.get("algorithm") or "").endswith(ENCRYPTED):
        return "checksum", None
    if read:
        return "match", None
    if not known:
        return "no-checksum", None
    first, second = (row.get("algorithm") or "unknown" for row in (ours, theirs))
    return "algorithm", f"{first} on the master, {second} on the slave"


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """Rows with the same content count once: the latest of them."""
    by_time = sorted(rows, key=lambda row: row.get("modified_ms") or 0)
    by_content = {tuple(row.get(column) for column in COMPARED): row for row in by_time}
    return list(by_content.values())


def _first_detail(ours: list[Row], theirs: list[Row]) -> str | None:
    """The slave's reason if the slave cannot read the file; the least of several, to be deterministic."""
    sides = ((MASTER, ours), (SLAVE, theirs))
    known = [
        f"{name}: {row['detail']}"
        for name, rows in sides
        for row in rows
        if row.get("state") == FileState.UNREADABLE and row.get("detail")
    ]
    return min(known, default=None)


# -- the same in SQL, over the rows of both sides with their `side`, grouped by path -----------------------


def path_aggregates_sql() -> dict[str, str]:
    """What a path's rows contain; `master` and `slave` are one distinct content of either side, `…_other` another."""
    return {name: text for side in SIDES for name, text in _side_aggregates(side).items()}


def compare_sql() -> str:
    """As `_compare` and `_compare_contents`, in the same order."""
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


def changed_sql(cut_ms: int) -> str:
    """The code as `judge_file` has it, over that of `compare_sql`."""
    explained = ", ".join(f"'{code}'" for code in CHANGEABLE)
    return f"IF(code IN ({explained}) AND master_modified_ms > {cut_ms}, 'file-changed', code)"


def note_sql() -> str:
    """The note of a code; null where it needs none."""
    sizes = "concat(master.length, ' bytes on the master, ', slave.length, ' on the slave')"
    algorithms = [f"coalesce(nullif({side}.algorithm, ''), 'unknown')" for side in SIDES]
    return case(
        ("code = 'file-unreadable'", "least(master_said, slave_said)"),
        ("code = 'size'", sizes),
        ("code = 'algorithm'", f"concat({algorithms[0]}, ' on the master, ', {algorithms[1]}, ' on the slave')"),
        ("code = 'content'", "concat(master.crc32c, ' on the master, ', slave.crc32c, ' on the slave')"),
        ("code = 'file-open'", "IF(master_open > 0, 'master', 'slave')"),
    )


def _side_aggregates(side: str) -> dict[str, str]:
    here, content = f"side = '{side}'", f"struct({', '.join(COMPARED)})"
    unreadable = f"{here} AND state = '{FileState.UNREADABLE}'"
    return {
        f"{side}_rows": f"count_if({here})",
        f"{side}_unreadable": f"count_if({unreadable})",
        f"{side}_folder": f"count_if({unreadable} AND length IS NULL)",
        f"{side}_open": f"count_if({here} AND state = '{FileState.OPEN}')",
        f"{side}_modified_ms": f"max(IF({here}, modified_ms, NULL))",
        side: f"min(IF({here}, {content}, NULL))",
        f"{side}_other": f"max(IF({here}, {content}, NULL))",
        f"{side}_said": f"min(IF({unreadable} AND detail != '', concat('{side}: ', detail), NULL))",
    }
