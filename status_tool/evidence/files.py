"""The file rule: is a file of the master on the slave, with the same content?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from status_tool.evidence.findings import Finding

Row = Mapping[str, Any]

UNREADABLE = "unreadable"
COMPARED = ("state", "length", "algorithm", "checksum")


def judge_file(path: str, master: Iterable[Row], slave: Iterable[Row]) -> Finding:
    """Compare one path's rows of both sides; code `match` when they agree."""
    ours, theirs = _distinct(master), _distinct(slave)
    code, note = _compare(ours, theirs)
    return Finding(code, path=path, note=note)


def _compare(ours: list[Row], theirs: list[Row]) -> tuple[str, str | None]:
    if any(row.get("state") == UNREADABLE for row in (*ours, *theirs)):
        return "file-unreadable", _first_detail(ours, theirs)
    if not theirs:
        return "file-missing", None
    if not ours:
        return "file-extra", None
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
    if ours.get("checksum") is None or theirs.get("checksum") is None:
        return "no-checksum", None
    if ours.get("algorithm") != theirs.get("algorithm"):
        first, second = (row.get("algorithm") or "unknown" for row in (ours, theirs))
        return "algorithm", f"{first} on the master, {second} on the slave"
    return ("match", None) if ours["checksum"] == theirs["checksum"] else ("checksum", None)


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """Rows that say the same count once."""
    by_content = {tuple(row.get(column) for column in COMPARED): row for row in rows}
    return list(by_content.values())


def _first_detail(ours: list[Row], theirs: list[Row]) -> str | None:
    """The slave's reason if it is the slave that cannot read the file; the least one, to be the same always."""
    sides = (("master", ours), ("slave", theirs))
    known = [
        f"{name}: {row['detail']}"
        for name, rows in sides
        for row in rows
        if row.get("state") == UNREADABLE and row.get("detail")
    ]
    return min(known, default=None)
