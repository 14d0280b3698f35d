"""The file rule: is a file of the master on the slave, with the same content?"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from status_tool.rules.blind_sums import is_blind_sum
from status_tool.vocabulary.findings import Finding
from status_tool.vocabulary.header import MASTER, SLAVE
from status_tool.vocabulary.schema import Row
from status_tool.vocabulary.states import FileState

COMPARED = ("state", "length", "algorithm", "checksum", "crc32c")
_GONE = re.compile(r"File does not exist|File /.* not found\.|No such file or directory\Z", re.DOTALL)
"""Begins the detail of a file that is gone: by Hadoop's clients, by WebHDFS's NameNode, and of a local disk."""
ENCRYPTED = " encrypted"
"""Ends the algorithm of a file in an encryption zone: HDFS's checksum is that of the encrypted bytes."""


def judge_file(path: str, master: Iterable[Row], slave: Iterable[Row], after_cut: range) -> Finding:
    """Compare one path's rows of both sides; code `match` when they agree.

    A difference in a file that the master changed `after_cut` is `file-written`: what it was at the cut is unknown.
    """
    ours, theirs = _distinct(master), _distinct(slave)
    code, note = _compare(ours, theirs)
    times = [row["modified_ms"] for row in ours if row.get("modified_ms") is not None]
    # A client may give a file any time: by one in the future it was not changed while it was read.
    if code in CHANGEABLE and any(time in after_cut for time in times):
        code, note = "file-written", "changed on the master after the cut: its content at the cut is unknown"
    return Finding(code, path=path, note=note)


CHANGEABLE = ("file-missing", "file-written", "file-differs", "algorithm", "no-checksum")
"""Codes that a change after the cut may explain."""


def _compare(ours: list[Row], theirs: list[Row]) -> tuple[str, str | None]:
    if not ours:
        return "file-extra", None
    if any(row.get("state") == FileState.UNREADABLE and row.get("length") is None for row in ours):
        return "file-unreadable", _first_detail(ours, theirs)  # a folder: nothing of it can be compared
    # A file that is still being written need not have arrived: this test comes before the slave's rows.
    if any(row.get("state") == FileState.OPEN for row in ours):
        return "file-written", f"still open for writing: {MASTER}"
    if not theirs and any(_is_gone(row) for row in ours):
        return "file-unreadable", _first_detail(ours, theirs)
    if not theirs:
        return "file-missing", None
    if any(row.get("state") == FileState.UNREADABLE for row in (*ours, *theirs)):
        return "file-unreadable", _first_detail(ours, theirs)
    if any(row.get("state") == FileState.OPEN for row in theirs):
        return "file-written", f"still open for writing: {SLAVE}"
    if len(ours) > 1 or len(theirs) > 1:
        return "file-written", "listed more than once with different contents"
    return _compare_contents(ours[0], theirs[0])


def _is_gone(row: Row) -> bool:
    """Return True if a file went away between its listing and its checksum: nobody copies it any more."""
    return row.get("state") == FileState.UNREADABLE and _GONE.match(row.get("detail") or "") is not None


def _compare_contents(ours: Row, theirs: Row) -> tuple[str, str | None]:
    # The original tool's FILE has no lengths: an equal checksum alone makes a match there.
    are_sized = ours.get("length") is not None and theirs.get("length") is not None
    if are_sized and ours["length"] != theirs["length"]:
        return "file-differs", f"size differs: {ours['length']} bytes on the master, {theirs['length']} on the slave"
    if are_sized and ours["length"] == 0:
        return "match", None
    sums = [row.get("crc32c") for row in (ours, theirs)]
    # Of an earlier FILE it is CRC32C alone, which is the same for all that ends with its own CRC32C.
    read = sums[0] is not None and sums[1] is not None and len(sums[0]) == len(sums[1])
    if read and ours["crc32c"] != theirs["crc32c"]:
        return (
            "file-differs",
            f"content differs: CRC32C and CRC-32: {ours['crc32c']} on the master, {theirs['crc32c']} on the slave",
        )
    known = ours.get("checksum") is not None and theirs.get("checksum") is not None
    alike = known and ours.get("algorithm") is not None and ours["algorithm"] == theirs.get("algorithm")
    is_same = alike and ours["checksum"] == theirs["checksum"]
    # FILE of the original tool has no lengths: the other side's is that of what has this checksum there.
    length = theirs.get("length") if ours.get("length") is None else ours["length"]
    if is_blind := is_same and is_blind_sum(ours["algorithm"], length, ours["checksum"]):
        known = alike = False
    elif is_same:
        return "match", None
    # HDFS's checksum is also that of the blocks' lengths, of which its name tells the first one's alone (`concat`).
    if read and are_sized:
        return "match", None
    # HDFS gives each encrypted file a key of its own, so that equal contents differ in their bytes.
    if alike and not (ours.get("algorithm") or "").endswith(ENCRYPTED):
        return "file-differs", "checksum differs"
    if not known:
        return "no-checksum", "but that of any content that ends with its own CRC" if is_blind else None
    first, second = (row.get("algorithm") or "unknown" for row in (ours, theirs))
    return "algorithm", f"{first} on the master, {second} on the slave"


def are_unlisted(rows: pa.RecordBatch) -> pa.BooleanArray:
    """Return which `file` rows are of folders that could not be listed.

    A file that cannot be read keeps the length of its listing.
    """
    return pc.and_(pc.equal(rows["state"], FileState.UNREADABLE).fill_null(False), pc.is_null(rows["length"]))


def content_of(rows: Iterable[Row]) -> Row | None:
    """Return what is compared of a side's file: of several contents the latest; None if there is none."""
    found = _distinct(rows)
    return {name: found[-1].get(name) for name in COMPARED} if found else None


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """Return the distinct rows. Of rows with the same content only the latest counts."""
    by_time = sorted(rows, key=lambda row: row.get("modified_ms") or 0)
    by_content = {tuple(row.get(column) for column in COMPARED): row for row in by_time}
    return list(by_content.values())


def _first_detail(ours: list[Row], theirs: list[Row]) -> str | None:
    """Return the slave's reason if the slave cannot read the file; the least of several, to be deterministic."""
    sides = ((MASTER, ours), (SLAVE, theirs))
    known = [
        f"{name}: {row['detail']}"
        for name, rows in sides
        for row in rows
        if row.get("state") == FileState.UNREADABLE and row.get("detail")
    ]
    return min(known, default=None)


def evident_matches(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
    """Split rows sorted by path and side: the master's and the slave's rows that evidently match, and all others.

    Each of these has a neighbour on either side that is of another path, so that the first and the last path never are
    among them.
    """
    if rows.num_rows < _LEAST_ROWS:
        return rows.slice(0, 0), rows.slice(0, 0), rows
    paths = rows["path"]
    same = pc.equal(paths.slice(0, len(paths) - 1), paths.slice(1))
    count = len(same) - 2
    ours, theirs = rows.slice(1, count), rows.slice(2, count)
    alike = pc.and_(same.slice(1, count), pc.invert(pc.or_(same.slice(0, count), same.slice(2, count))))
    content = pc.and_(*(pc.equal(ours[name], theirs[name]) for name in ("algorithm", "checksum")))
    for condition in (
        pc.equal(ours["side"], MASTER),
        pc.equal(theirs["side"], SLAVE),
        *(pc.is_null(side[name]) for side in (ours, theirs) for name in ("state", "crc32c")),
        pc.equal(ours["length"], theirs["length"]),
        pc.or_kleene(pc.equal(ours["length"], 0), content),
    ):
        alike = pc.and_(alike, pc.fill_null(condition, False))
    alike = pc.and_(alike, pc.invert(_are_blind(ours, alike)))
    no = pa.array([False])
    known = pc.or_(pa.concat_arrays([no, alike, no, no]), pa.concat_arrays([no, no, alike, no]))
    return ours.filter(alike), theirs.filter(alike), rows.filter(pc.invert(known))


def _are_blind(rows: pa.RecordBatch, among: pa.BooleanArray) -> pa.BooleanArray:
    """Return `is_blind_sum` of the files that are `among` the rows."""
    summed = rows.select(["algorithm", "length", "checksum"]).filter(among)
    found = map(is_blind_sum, *(column.to_pylist() for column in summed.columns))
    return pa.array([is_asked and next(found) for is_asked in among.to_pylist()], pa.bool_())


_LEAST_ROWS = 4
