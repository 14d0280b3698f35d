"""HDFS, over WebHDFS or by Hadoop's own client: files under some paths, with the checksum that HDFS itself computes.

A checksum's bytes are int32 bytesPerCRC, int64 crcPerBlock and a 16-byte MD5 (`MD5MD5CRC32FileChecksum`); the first two
are in the algorithm's name too. Or the 4 bytes of a `CompositeCrcFileChecksum`, from an HttpFS that is set so.
"""

from __future__ import annotations

import contextlib
import fnmatch
import posixpath
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from status_tool.clients.config import Settings
from status_tool.clients.hdfs_native import Hdfs, NativeHdfs, RpcEndpoint, hdfs_user, native_hdfs
from status_tool.clients.hdfscli import Refused
from status_tool.clients.walk import Page, Walk
from status_tool.clients.webhdfs import RANGE_BYTES, HdfsEndpoint, Load, webhdfs
from status_tool.errors import ConnectionFailed
from status_tool.printable import safe
from status_tool.sources import codec, crc
from status_tool.sources.interface import Source
from status_tool.sources.journal import Journal, opened
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
LARGE_FILES = 500
"""From so many on files are read by Hadoop's own client: its start costs what WebHDFS does for some hundred."""
LOOK_PAGES = 64
"""Number of pages that are listed to see how large a tree is, and in either order to find a file in it."""
NO_POOL = "-"
"""Stands for the block pool of a tree without files."""
GROUPS = 512
_SHOWN = 150
"""Of a long path, so that the reason why it cannot be listed is shown, too."""
_HEADER = 12  # bytesPerCRC and crcPerBlock
_MD5_BYTES, _CRC_BYTES = 16, 4
_NO_CHECKSUM = "NullPointerException"
"""How a DataNode and Hadoop's own client refuse the checksum of a file that has none (`dfs.checksum.type` NULL)."""
NO_BLOCK_SUM = "Fail to get block MD5"
"""How `FileChecksumHelper` refuses that of a file with a lost block, or with blocks of different bytes per checksum."""
_OF_NOTHING = "MD5-of-0MD5-of-0CRC32"
"""Begins the algorithm of a file without blocks."""


def endpoint_of(settings: Settings) -> HdfsEndpoint:
    """Return the HDFS that is checked, as this process's user. Raises `ConfigurationError`."""
    return endpoint_at(settings, settings.webhdfs())


def endpoint_at(settings: Settings, urls: Sequence[str]) -> HdfsEndpoint:
    """Return the endpoint of WebHDFS at these addresses, for this process's user. Raises `ConfigurationError`."""
    return HdfsEndpoint(tuple(urls), hdfs_user(), settings.hdfs_trust(urls))


def client_for(endpoint: HdfsEndpoint | RpcEndpoint, load: Load) -> Hdfs:
    """Return this process's client."""
    return native_hdfs(endpoint, load) if isinstance(endpoint, RpcEndpoint) else webhdfs(endpoint, load)


def reads_alone(endpoint: HdfsEndpoint | RpcEndpoint, load: Load) -> bool:
    """Return True if this process has to read everything, and Spark's executors nothing.

    Hadoop's client is one Java process, however many threads ask. And a rate holds over all requests only where one
    process makes them: executors come and go, and what one has lost another reads again.
    """
    return isinstance(endpoint, RpcEndpoint) or load.rate is not None


@contextlib.contextmanager
def refusals_end_the_run(endpoint: HdfsEndpoint | RpcEndpoint) -> Iterator[None]:
    """Turn a refusal that affects the whole run into an error of one line."""
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
    """Parts that the split of a tree has found so far."""

    def __init__(self) -> None:
        self.pages = 0
        self._pieces: list[tuple[Part, int]] = []
        self._begun: dict[str, tuple[str, int]] = {}

    @property
    def count(self) -> int:
        """A lower bound of the number of parts."""
        return len(self._pieces)

    def add(self, page: Page, files: int) -> None:
        """Add a page with this many files."""
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

    def refuse(self, page: Page) -> None:
        """Add a folder that was refused, or the rest of it, to be listed later with all that is below."""
        self.pages += 1
        folder, reached = page.spot.folder, page.spot.after
        after, known = self._begun.pop(folder, (reached, 0))
        if after != reached:
            self._pieces.append((Part((folder,), False, after, reached), known))
        self._pieces.append((Part((folder,), True, reached), 0))

    def parts(self) -> Iterator[Part]:
        """Yield the listed parts, with small folders merged."""
        enough = min(PART_FILES, sum(files for _, files in self._pieces) // PARTS)
        group, gathered = list[str](), 0
        for part, files in self._pieces:
            if part.deep or part.after or part.upto is not None or files > enough:
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
class HdfsSource(Source):
    """`file` rows of everything under `roots`, listing and checksums both by partition."""

    endpoint: HdfsEndpoint | RpcEndpoint
    """Over HTTP, or by Hadoop's own client."""
    roots: tuple[str, ...]
    exclusions: Exclusions
    load: Load = field(default_factory=Load)
    deep: bool = False
    """True if every file's content is read for its CRC32C."""
    journal: str | None = None
    """The journal of an interrupted run."""
    tolerant: bool = True
    """True if a folder that cannot be listed becomes a row; else it is an error: a slave's files would look missing."""
    seen: tuple[str, ...] = ()
    """Paths that the roots stood for when the run began: one that is gone since becomes a row, too."""
    led: tuple[str, ...] = ()
    """Mount points of a view that led somewhere then."""

    def close(self) -> None:
        """Make reading threads end soon."""
        client_for(self.endpoint, self.load).stop()

    @property
    def is_read_here(self) -> bool:
        """Return True if only this process reads the source."""
        return reads_alone(self.endpoint, self.load)

    def partitions(self) -> Sequence[Part]:
        """Divide the tree into parts of about as many files each.

        Lists the upper levels of the tree, as deep as its shape requires.
        Breadth first, so that small folders end soon and the big ones are left to split.
        """
        hdfs = client_for(self.endpoint, self.load)
        if isinstance(hdfs, NativeHdfs):
            with refusals_end_the_run(self.endpoint):
                # This process reads all of it alone, in the client's threads: more parts would gain nothing.
                return [Part(tuple(self._trees(hdfs)), True)]
        # Each page is a request: at a low rate so many would take minutes before the first file is read.
        most = SPLIT_PAGES if self.load.rate is None else min(SPLIT_PAGES, int(self.load.rate))
        split, trees = _Split(), list[str]()
        with refusals_end_the_run(self.endpoint):
            walk = Walk(hdfs, self._trees(hdfs), breadth_first=True)
            for page in walk:
                below = self._take(split, page)
                if split.pages < most or split.count + len(walk) < PARTS:
                    walk.add(below)
                else:  # Folders that were started are listed to their end.
                    trees += [*below, *walk.set_aside()]
        number = min(GROUPS, len(trees))
        # Neighbouring folders are often alike in size: a part takes some from all over.
        return [*split.parts(), *(Part(tuple(trees[first::number]), True) for first in range(number))]

    def _trees(self, hdfs: Hdfs) -> list[str]:
        """Return the folders and files to begin with, and on a master those that are gone: their rows will say so."""
        found = _expanded(hdfs, self.roots, self.exclusions)
        gone = set(self.seen).difference(found) if self.tolerant else ()
        return [*outermost(found, self.exclusions), *sorted(gone)]

    def _take(self, split: _Split, page: Page) -> list[str]:
        """Add a page's files to the parts, and return its folders."""
        refusal = page.refusal
        if refusal is not None and self.tolerant:
            split.refuse(page)  # It may be listed by then, with folders that nobody has seen.
            return []
        if refusal is not None and not refusal.is_absent:
            raise Refused(refusal.name, f"{safe(page.spot.folder, _SHOWN)} cannot be listed: {refusal}")
        if refusal is not None:
            return []  # Absent here: the other side's files below it count as missing.
        # Only files count: parts are to have about as many checksums each.
        split.add(page, sum(entry["type"] == "FILE" for entry in page.entries))
        return folders_of(page, self.exclusions)

    def read(self, partition: Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Requests several checksums at a time."""
        hdfs = client_for(self.endpoint, self.load)
        seen: Counter[str] = Counter()
        with refusals_end_the_run(self.endpoint):
            rows = self._checked(hdfs, self._listed(hdfs, partition, seen))
            yield from codec.batches(rows, FILES_PER_BATCH)
        # After the rows: `_listed` counts while they are read.
        yield from codec.batches({"kind": "count", "name": name, "entries": n} for name, n in sorted(seen.items()))

    def _listed(self, hdfs: Hdfs, part: Part, seen: Counter[str]) -> Iterator[NewRow]:
        """Yield `file` rows without checksums; a row with a `state` needs none."""
        walk = Walk(hdfs, part.paths, part.after, part.upto)
        for page in walk:
            folder = page.spot.folder
            if page.refusal is not None:
                yield from self._unlisted(folder, page.refusal)
                continue
            seen["empty folder"] += not page.entries and not page.spot.after
            for entry in page.entries:
                path = posixpath.join(folder, entry["pathSuffix"]) if entry["pathSuffix"] else folder
                # An entry without a suffix is a root that is a file: somebody names it, and so means it.
                if path != folder and self.exclusions.leave_out(path):
                    continue
                if entry["type"] == "FILE":
                    yield listed_row(path, entry)
                elif entry["type"] == "SYMLINK":
                    seen["symbolic link"] += 1
                elif part.deep:
                    walk.add([path])

    def _is_mount_point(self, folder: str) -> bool:
        """Return True for a mount point of a view, which is there even if nothing is where it leads to."""
        return isinstance(self.endpoint, RpcEndpoint) and any(folder == path for path, _ in self.endpoint.mounts)

    def _unlisted(self, folder: str, refusal: Refused) -> Iterator[NewRow]:
        """Yield the row of a folder that cannot be listed.

        None for a slave's that is gone: the master's files below it count as missing. A master's may have been renamed
        to where nobody looks any more.
        """
        was_empty = self._is_mount_point(folder) and folder not in (*self.seen, *self.led)
        if refusal.is_absent and (not self.tolerant or was_empty):
            return
        if not self.tolerant:
            raise Refused(refusal.name, f"{safe(folder, _SHOWN)} cannot be listed: {refusal}") from None
        why = "deleted or renamed while the tree was listed" if refusal.is_absent else str(refusal)
        yield {"kind": "file", "path": folder, "state": FileState.UNREADABLE, "detail": f"folder: {why}"}

    def _checked(self, hdfs: Hdfs, files: Iterator[NewRow]) -> Iterator[NewRow]:
        """Yield rows in listing order, with a bounded window of requests under way."""
        journal = opened(self.journal) if self.journal else None
        window: deque[Future[list[NewRow]]] = deque()
        known = files if journal is None else (_recalled(row, journal, self.deep) for row in files)
        ahead = (8 if hdfs.files_at_once == 1 else 2) * self.load.concurrency
        try:
            while some := list(islice(known, hdfs.files_at_once)):
                # Rows leave in the order of the listing. Others run on behind a large file, as many as `ahead`.
                window.append(hdfs.pool.submit(checked_rows, hdfs, some, self.deep))
                if len(window) >= ahead:
                    yield from window.popleft().result()
            while window:
                yield from window.popleft().result()
        finally:
            for future in window:
                future.cancel()


def _recalled(row: NewRow, journal: Journal, deep: bool) -> NewRow:
    """Return the row, completed by what an earlier run recorded of the file."""
    return row if row.get("state") else journal.known(row, deep) or row


def _expanded(hdfs: Hdfs, roots: Iterable[str], exclusions: Exclusions) -> list[str]:
    return [path for root in roots for path in expand(hdfs, root, exclusions)]


def is_large(hdfs: Hdfs, roots: Iterable[str], exclusions: Exclusions, most_pages: int) -> bool:
    """Return True if there are enough files for a Java process to pay. Lists at most `most_pages` pages."""
    files = pages = 0
    walk = Walk(hdfs, outermost(_expanded(hdfs, roots, exclusions), exclusions), breadth_first=True)
    for page in walk:
        files, pages = files + sum(entry["type"] == "FILE" for entry in page.entries), pages + 1
        walk.add(folders_of(page, exclusions))
        # A tree of which folders are left after so many pages counts as large.
        if files >= LARGE_FILES or (pages >= most_pages and len(walk)):
            return True
    return False


def folders_of(page: Page, exclusions: Exclusions) -> list[str]:
    """Return the folders on a page that are not left out."""
    below = (entry["pathSuffix"] for entry in page.entries if entry["type"] == "DIRECTORY")
    paths = (posixpath.join(page.spot.folder, name) for name in below)
    return [path for path in paths if not exclusions.leave_out(path)]


def pool_of(hdfs: Hdfs, roots: Iterable[str], exclusions: Exclusions) -> str:
    """Return the id of the block pool of any file, for NameNodes that do not tell it.

    It is empty if none of the files that were found told it, and `NO_POOL` if there is no file at all.
    """
    paths = _expanded(hdfs, roots, exclusions)
    # Depth first finds the files below many databases' folders, breadth first those beside a tree of empty ones.
    for breadth_first in (False, True):
        walk, has_files = Walk(hdfs, paths, breadth_first=breadth_first), False
        for page in islice(walk, LOOK_PAGES):
            for path in _with_blocks(page):
                # This user may not read it, or it is gone: the next one may do.
                with contextlib.suppress(Refused):
                    return hdfs.pool_id(path)
            has_files |= _may_have_files(page)
            walk.add(folders_of(page, exclusions))
        if not len(walk):
            return "" if has_files else NO_POOL
    return ""


def _with_blocks(page: Page) -> Iterator[str]:
    """Yield the paths of a page's files that have content: any other has no block, and so no pool."""
    for entry in page.entries:
        if entry["type"] == "FILE" and entry["length"]:
            # `join` ends with a slash for a root that is a file.
            yield posixpath.join(page.spot.folder, entry["pathSuffix"]).rstrip("/")


def _may_have_files(page: Page) -> bool:
    if page.refusal is not None:
        return not page.refusal.is_absent
    return any(entry["type"] == "FILE" for entry in page.entries)


def expand(hdfs: Hdfs, root: str, exclusions: Exclusions) -> list[str]:
    """Return the existing paths that a root stands for; several for a glob, none if nothing matches.

    What is left out is no match of a glob, but a path that is named in plain is meant.
    """
    if not is_glob(root):
        return [root] if hdfs.status(root) is not None else []
    found = ["/"]
    for segment in root.strip("/").split("/"):
        if not is_glob(segment):
            found = [posixpath.join(folder, segment) for folder in found]
            continue
        matches = (
            posixpath.join(folder, entry["pathSuffix"])
            for folder in found
            for entry in hdfs.entries(folder)
            if entry["pathSuffix"] and fnmatch.fnmatchcase(entry["pathSuffix"], segment)
        )
        found = [path for path in matches if not exclusions.leave_out(path)]
    if is_glob(segment):
        return found  # Whether they are still there shows when they are listed.
    return [path for path in found if hdfs.status(path) is not None]


def listed_row(path: str, status: dict[str, Any]) -> NewRow:
    """Return the row of a file from the listing alone, without a checksum."""
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


def checked_rows(hdfs: Hdfs, rows: Sequence[NewRow], deep: bool) -> list[NewRow]:
    """Return the rows with checksum, and CRC32C if `deep`; those that have one already, or a `state`, as they are.

    An unreadable file is `unreadable` or `open`, with the reason.
    """
    waiting = [row["path"] for row in rows if _waits(row)]
    answers = iter(hdfs.checksums(waiting) if waiting else ())
    return [_checked_row(hdfs, row, next(answers), deep) if _waits(row) else row for row in rows]


def _waits(row: NewRow) -> bool:
    return "checksum" not in row and not row.get("state")


def _checked_row(hdfs: Hdfs, row: NewRow, answer: tuple[str, bytes] | Refused, deep: bool) -> NewRow:
    marks = row["algorithm"]
    row = {**row, "algorithm": None}
    try:
        if not isinstance(answer, Refused):
            algorithm, data = answer
            row["checksum"] = checksum_hex(algorithm, data)
            row["algorithm"] = f"{algorithm} {marks}" if marks else algorithm
        elif answer.name == _NO_CHECKSUM or (deep and NO_BLOCK_SUM in str(answer)):
            row["checksum"] = None
        else:
            raise answer
        reads = bool(deep and row["length"])
        if reads:
            row["crc32c"] = content_crc(hdfs, row["path"], row["length"])
        if (reads or _is_of_more(row)) and _has_changed(hdfs, row):
            return _changed_row(row)
    except Refused as refusal:
        # `DFSClient.getBlockLocations` throws a plain `IOException` in these words for a file that is being written.
        state = FileState.OPEN if "under construction" in str(refusal) else FileState.UNREADABLE
        return row | {"checksum": None, "algorithm": None, "state": state, "detail": str(refusal)}
    except ValueError as error:
        return row | {"state": FileState.UNREADABLE, "detail": f"answer not understood: {error}"}
    return row


def _is_of_more(row: NewRow) -> bool:
    """Return True if the checksum of a file that was listed as empty may be of content: it was open then."""
    return not row["length"] and not (row["algorithm"] or "").startswith(_OF_NOTHING)


def _has_changed(hdfs: Hdfs, row: NewRow) -> bool:
    """Return True if a file is no longer as it was listed: what was read may be of several contents."""
    now = hdfs.status(row["path"])
    return now is None or (now["length"], now["modificationTime"]) != (row["length"], row["modified_ms"])


def _changed_row(row: NewRow) -> NewRow:
    nothing = {"checksum": None, "algorithm": None, "crc32c": None}
    return row | nothing | {"state": FileState.OPEN, "detail": "changed while it was read"}


def checksum_hex(algorithm: str, data: bytes) -> str:
    """Return the comparable part of a checksum as hex.

    Raises `ValueError` for other kinds, of which nothing might be left.
    """
    end = _HEADER + _MD5_BYTES
    if algorithm.startswith("MD5-of-") and len(data) >= end:
        return data[_HEADER:end].hex()  # four zeros follow, of the buffer that Hadoop puts it into
    if algorithm.startswith("COMPOSITE-") and len(data) == _CRC_BYTES:
        return data.hex()
    raise ValueError(f"a checksum {algorithm} of {len(data)} bytes")


def content_crc(hdfs: Hdfs, path: str, length: int) -> str:
    """Return both CRCs of the content (hex). Reads ranges in parallel. Raises `Refused`, also for another length."""
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
        # One range that fails decides the file.
        for task in tasks:
            task.cancel()


def _range_crc(hdfs: Hdfs, path: str, offset: int, length: int) -> int:
    if isinstance(hdfs, NativeHdfs):
        return hdfs.crc(path, offset, length)
    state = [0, 0]  # CRCs and number of bytes so far

    def take(piece: bytes | None) -> None:
        # None: the answer broke off, and another DataNode begins the range anew.
        state[:] = [0, 0] if piece is None else [crc.crcs(piece, state[0]), state[1] + len(piece)]

    hdfs.read(path, offset, length, take)
    if state[1] != length:
        raise Refused("IOException", f"{state[1]} bytes came where {length} were requested")
    return state[0]


def with_content(hdfs: Hdfs, rows: Iterable[NewRow]) -> Iterator[NewRow]:
    """Yield the rows, each with its CRC32C; a file that cannot be read becomes `unreadable`. For `--deep`.

    A file that has changed since it was listed becomes `open`.
    """

    def fill(row: NewRow) -> NewRow:
        try:
            crc32c = content_crc(hdfs, row["path"], row["length"])
            # The listing has called a file without a checksum unreadable (`NO_BLOCK_SUM`).
            read = {**row, "crc32c": crc32c, "state": None, "detail": None}
            return _changed_row(read) if _has_changed(hdfs, row) else read
        except Refused as refusal:
            return {**row, "state": FileState.UNREADABLE, "detail": str(refusal)}

    yield from hdfs.pool.map(fill, rows)
