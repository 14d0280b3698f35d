"""HDFS over WebHDFS: files under some paths, each with the checksum that HDFS itself computes.

GETFILECHECKSUM's `bytes` are int32 bytesPerCRC, int64 crcPerBlock and a 16-byte MD5
(`MD5MD5CRC32FileChecksum`); the first two are in the algorithm's name too.
"""

from __future__ import annotations

import contextlib
import fnmatch
import getpass
import os
import posixpath
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from status_tool.clients.config import Settings
from status_tool.clients.hdfscli import Refused
from status_tool.clients.walk import Page, Walk
from status_tool.clients.webhdfs import RANGE_BYTES, HdfsEndpoint, Load, WebHdfs, webhdfs
from status_tool.errors import ConnectionFailed
from status_tool.sources import codec, crc
from status_tool.sources.interface import Source
from status_tool.sources.journal import opened
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.selection import Exclusions, is_glob, outermost
from status_tool.vocabulary.states import FileState

FILES_PER_BATCH = 1_000
"""Small enough that an interrupted run loses little."""
PARTS = 64
"""Folders are split until there are at least this many parts, for as many threads or executors."""
SPLIT_PAGES = 512
"""And until this many pages, or the whole tree, have been listed: so a single branch with everything is split, too."""
PART_FILES = 5_000
GROUPS = 512
_HEADER = 12  # bytesPerCRC and crcPerBlock


def hdfs_user() -> str:
    """Hadoop's rule without Kerberos: `$HADOOP_USER_NAME`, else the login name."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def endpoint_of(settings: Settings) -> HdfsEndpoint:
    """The HDFS that is checked, as this process's user. Raises `ConfigurationError`."""
    return HdfsEndpoint(settings.webhdfs(), hdfs_user(), settings.authorities)


@contextlib.contextmanager
def refusals_end_the_run(endpoint: HdfsEndpoint) -> Iterator[None]:
    """Turns a refusal that affects the whole run into one clear line."""
    try:
        yield
    except Refused as refusal:
        raise ConnectionFailed(f"HDFS at {endpoint} refused: {refusal}") from None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the listing: folders (or single files), with all that is below, or one folder's own files
    whose names are in `(after, upto]`.
    """

    paths: tuple[str, ...]
    deep: bool
    after: str = ""
    upto: str | None = None


class _Split:
    """What splitting a tree has found so far."""

    def __init__(self) -> None:
        self.pages = 0
        self._pieces: list[tuple[Part, int]] = []
        self._begun: dict[str, tuple[str, int]] = {}

    @property
    def count(self) -> int:
        """A lower bound of the number of parts."""
        return len(self._pieces)

    def add(self, page: Page, files: int) -> None:
        """A page with this many files."""
        self.pages += 1
        folder = page.spot.folder
        after, known = self._begun.pop(folder, (page.spot.after, 0))
        known += files
        if page.more and known >= PART_FILES:
            last = page.entries[-1]["pathSuffix"]
            self._pieces.append((Part((folder,), False, after, last), known))
            after, known = last, 0
        if page.more:
            self._begun[folder] = (after, known)
        else:
            self._pieces.append((Part((folder,), False, after), known))

    def parts(self) -> Iterator[Part]:
        """The listed parts, with small folders merged."""
        enough = min(PART_FILES, sum(files for _, files in self._pieces) // PARTS)
        group, gathered = list[str](), 0
        for part, files in self._pieces:
            if part.after or part.upto is not None or files > enough:
                yield part
                continue
            group += part.paths
            gathered += files
            if gathered >= enough or len(group) >= PARTS:
                yield Part(tuple(group), False)
                group, gathered = [], 0
        if group:
            yield Part(tuple(group), False)


@dataclass(frozen=True)
class WebHdfsSource(Source):
    """`file` rows of everything under `roots`, listing and checksums both by partition."""

    endpoint: HdfsEndpoint
    roots: tuple[str, ...]
    exclusions: Exclusions
    load: Load = field(default_factory=Load)
    deep: bool = False
    """Whether every file's content is read for its CRC32C."""
    journal: str | None = None
    """The journal of an interrupted run."""
    tolerant: bool = True
    """Whether a folder that cannot be listed becomes a row; else it is an error: a slave's files would look missing."""

    def close(self) -> None:
        """Make reading threads end soon."""
        webhdfs(self.endpoint, self.load).stop()

    def partitions(self) -> Sequence[Part]:
        """Parts of about as many files each: the upper levels of the tree are listed, as deep as its shape requires.

        Breadth first, so that small folders end soon and the big ones are left to split.
        """
        hdfs = webhdfs(self.endpoint, self.load)
        most = SPLIT_PAGES if self.load.rate is None else min(SPLIT_PAGES, int(self.load.rate))
        split, trees = _Split(), list[str]()
        with refusals_end_the_run(self.endpoint):
            found = [path for root in self.roots for path in expand(hdfs, root)]
            walk = Walk(hdfs, outermost(found), breadth_first=True)
            for page in walk:
                below = self._take(split, page)
                if split.pages < most or split.count + len(walk) < PARTS:
                    walk.add(below)
                else:  # Folders that were started are listed to their end.
                    trees += [*below, *walk.set_aside()]
        number = min(GROUPS, len(trees))
        # Neighbouring folders are often alike in size: a part takes some from all over.
        return [*split.parts(), *(Part(tuple(trees[first::number]), True) for first in range(number))]

    def _take(self, split: _Split, page: Page) -> list[str]:
        """A page's files go to parts; its folders are returned."""
        refusal = page.refusal
        if refusal is not None and not (refusal.is_absent or self.tolerant):
            raise Refused(refusal.name, f"{page.spot.folder} cannot be listed: {refusal}")
        if refusal is not None and refusal.is_absent:
            return []  # Absent here: the other side's files below it count as missing.
        split.add(page, sum(entry["type"] == "FILE" for entry in page.entries))
        below = (entry["pathSuffix"] for entry in page.entries if entry["type"] == "DIRECTORY")
        paths = (posixpath.join(page.spot.folder, name) for name in below)
        return [path for path in paths if not self.exclusions.leave_out(path)]

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:
        """The rows of one part, checksums requested several at a time."""
        hdfs = webhdfs(self.endpoint, self.load)
        seen: Counter[str] = Counter()
        with refusals_end_the_run(self.endpoint):
            rows = self._checked(hdfs, self._listed(hdfs, partition, seen))
            yield from codec.batches(rows, FILES_PER_BATCH)
        yield from codec.batches({"kind": "count", "name": name, "entries": n} for name, n in sorted(seen.items()))

    def _listed(self, hdfs: WebHdfs, part: Part, seen: Counter[str]) -> Iterator[NewRow]:
        """`file` rows without checksums; a row with a `state` needs none."""
        walk = Walk(hdfs, part.paths, part.after, part.upto)
        for page in walk:
            folder = page.spot.folder
            if page.refusal is not None:
                yield from self._unlisted(folder, page.refusal)
                continue
            seen["empty folder"] += not page.entries and not page.spot.after
            for entry in page.entries:
                path = posixpath.join(folder, entry["pathSuffix"]) if entry["pathSuffix"] else folder
                if path != folder and self.exclusions.leave_out(path):
                    continue
                if entry["type"] == "FILE":
                    yield listed_row(path, entry)
                elif entry["type"] == "SYMLINK":
                    seen["symbolic link"] += 1
                elif part.deep:
                    walk.add([path])

    def _unlisted(self, folder: str, refusal: Refused) -> Iterator[NewRow]:
        """The row of a folder that cannot be listed; none for one that was deleted in between."""
        if refusal.is_absent:
            return
        if not self.tolerant:
            raise Refused(refusal.name, f"{folder} cannot be listed: {refusal}") from None
        yield {"kind": "file", "path": folder, "state": FileState.UNREADABLE, "detail": f"folder: {refusal}"}

    def _checked(self, hdfs: WebHdfs, files: Iterator[NewRow]) -> Iterator[NewRow]:
        """Rows in listing order, with a bounded window of requests under way."""
        journal = opened(self.journal) if self.journal else None
        window: deque[Future[NewRow]] = deque()
        try:
            for row in files:
                known = journal.known(row, self.deep) if journal else None
                task = Future[NewRow]()
                if known is not None or row.get("state"):
                    task.set_result(known or row)
                else:
                    task = hdfs.pool.submit(checked_row, hdfs, row, self.deep)
                window.append(task)
                if len(window) >= 8 * self.load.concurrency:
                    yield window.popleft().result()
            while window:
                yield window.popleft().result()
        finally:
            for future in window:
                future.cancel()


def expand(hdfs: WebHdfs, root: str) -> list[str]:
    """The existing paths that a root stands for; several for a glob, none if nothing matches."""
    if not is_glob(root):
        return [root] if hdfs.status(root) is not None else []
    found = ["/"]
    for segment in root.strip("/").split("/"):
        if not is_glob(segment):
            found = [posixpath.join(folder, segment) for folder in found]
            continue
        found = [
            posixpath.join(folder, entry["pathSuffix"])
            for folder in found
            for entry in _entries_or_none(hdfs, folder)
            if entry["pathSuffix"] and fnmatch.fnmatchcase(entry["pathSuffix"], segment)
        ]
    return [path for path in found if hdfs.status(path) is not None]


def _entries_or_none(hdfs: WebHdfs, folder: str) -> Iterator[dict[str, Any]]:
    try:
        yield from _entries(hdfs, folder)
    except Refused as refusal:
        if not refusal.is_absent:
            raise


def _entries(hdfs: WebHdfs, folder: str, after: str = "", upto: str | None = None) -> Iterator[dict[str, Any]]:
    """HDFS orders names by their bytes, and so must comparisons with `upto`."""
    for page in hdfs.pages(folder, after):
        for entry in page:
            if upto is not None and entry["pathSuffix"].encode() > upto.encode():
                return
            yield entry


def listed_row(path: str, status: dict[str, Any]) -> NewRow:
    """What the listing alone shows of a file."""
    marks = [str(status["ecPolicy"])] if status.get("ecPolicy") else []
    marks += ["encrypted"] if status.get("encBit") else []
    return {
        "kind": "file",
        "path": path,
        "length": status["length"],
        "modified_ms": status["modificationTime"],
        "block_size": status["blockSize"],
        # More than the checksum's own name: everything that must agree for two checksums to be comparable.
        "algorithm": " ".join(marks) or None,
    }


def checked_row(hdfs: WebHdfs, row: NewRow, deep: bool) -> NewRow:
    """The row with checksum, and CRC32C if `deep`. An unreadable file is `unreadable` or `open`, with the reason."""
    marks = row["algorithm"]
    row = {**row, "algorithm": None}
    try:
        algorithm, data = hdfs.checksum(row["path"])
        row["checksum"] = data[_HEADER : _HEADER + 16].hex()
        row["algorithm"] = f"{algorithm} {marks}" if marks else algorithm
        if deep and row["length"]:
            row["crc32c"] = content_crc(hdfs, row["path"], row["length"])
    except Refused as refusal:
        state = FileState.OPEN if "under construction" in str(refusal) else FileState.UNREADABLE
        return row | {"checksum": None, "algorithm": None, "state": state, "detail": str(refusal)}
    except (KeyError, ValueError, TypeError) as error:
        return row | {"state": FileState.UNREADABLE, "detail": f"answer not understood: {error}"}
    return row


def content_crc(hdfs: WebHdfs, path: str, length: int) -> str:
    """The CRC32C of the content (hex), read in ranges side by side. Raises `Refused`, also for another length."""
    ranges = [(offset, min(RANGE_BYTES, length - offset)) for offset in range(0, length, RANGE_BYTES)]
    if len(ranges) == 1:
        return crc.crc_hex(_range_crc(hdfs, path, *ranges[0]))
    tasks = [hdfs.range_pool.submit(_range_crc, hdfs, path, *one) for one in ranges]
    try:
        whole = 0
        for task, (_, size) in zip(tasks, ranges, strict=True):
            whole = crc.combine(whole, task.result(), size)
        return crc.crc_hex(whole)
    finally:
        for task in tasks:
            task.cancel()


def _range_crc(hdfs: WebHdfs, path: str, offset: int, length: int) -> int:
    state = [0, 0]  # CRC and number of bytes so far

    def take(piece: bytes | None) -> None:
        state[:] = [0, 0] if piece is None else [crc.crc32c(piece, state[0]), state[1] + len(piece)]

    hdfs.read(path, offset, length, take)
    if state[1] != length:
        raise Refused("IOException", f"{state[1]} bytes came where {length} were requested")
    return state[0]


def with_content(hdfs: WebHdfs, rows: Iterable[NewRow]) -> Iterator[NewRow]:
    """The same rows, each with its CRC32C; a file that cannot be read becomes `unreadable`. For `--deep`."""

    def fill(row: NewRow) -> NewRow:
        try:
            return {**row, "crc32c": content_crc(hdfs, row["path"], row["length"])}
        except Refused as refusal:
            return {**row, "state": FileState.UNREADABLE, "detail": str(refusal)}

    yield from hdfs.pool.map(fill, rows)
