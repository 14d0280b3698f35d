"""The file rule: is a file of the master on the slave, with the same content?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from status_tool.evidence.findings import Finding

Row = Mapping[str, Any]

UNREADABLE, OPEN = "unreadable", "open"
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
    if any(row.get("state") == UNREADABLE and row.get("length") is None for row in ours):
        return "file-unreadable", _first_detail(ours, theirs)  # a folder: nothing of it can be compared
    if any(row.get("state") == OPEN for row in ours):
        return "file-open", "master"
    if not theirs:
        return "file-missing", None
    if any(row.get("state") == UNREADABLE for row in (*ours, *theirs)):
        return "file-unreadable", _first_detail(ours, theirs)
    if any(row.get("state") == OPEN for row in theirs):
        return "file-open", "slave"
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
    """Rows that say the same count once; the latest of them."""
    by_time = sorted(rows, key=lambda row: row.get("modified_ms") or 0)
    by_content = {tuple(row.get(column) for column in COMPARED): row for row in by_time}
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
