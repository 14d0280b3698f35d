"""`file://` roots: local files with the checksum that HDFS would have for them, computed here."""

from __future__ import annotations

import errno
import fnmatch
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from status_tool.errors import ConfigurationError
from status_tool.sources import codec, crc
from status_tool.sources.crc import Layout
from status_tool.sources.interface import Source
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.selection import Exclusions, is_glob, outermost
from status_tool.vocabulary.states import FileState

_READ_BYTES = 1 << 20


class LocalPart(NamedTuple):
    """A root, or a match of one that is a glob."""

    path: str
    is_followed: bool
    """False for a symbolic link that only a glob names."""


@dataclass(frozen=True)
class LocalSource(Source):
    """`file` rows of everything under local `roots`, as if laid out by `layout`.

    A root may be a symbolic link, or lie below one. No other link is followed.
    """

    roots: tuple[str, ...]
    exclusions: Exclusions
    layout: Layout = field(default_factory=Layout)
    deep: bool = False
    seen: frozenset[str] = frozenset()
    """Paths that the roots stood for when the run began: one that is gone since has a row that says so."""
    tolerant: bool = True
    """True if a folder that cannot be listed becomes a row; see `HdfsSource`."""

    @property
    def is_read_here(self) -> bool:
        """Return True: an executor elsewhere would read its own host's folder."""
        return True

    def absent(self) -> list[str]:
        """Return the roots that do not exist: nothing but links matches a glob, or nothing at all."""
        return [root for root in self.roots if not any(self._is_followed(path, root) for path in self._expand(root))]

    def found(self) -> set[LocalPart]:
        """Return the paths that the roots stand for."""
        return {LocalPart(path, self._is_followed(path, root)) for root in self.roots for path in self._expand(root)}

    def partitions(self) -> Sequence[LocalPart]:
        """Return one part per root."""
        found = self.found()
        followed = {path for path, is_followed in found if is_followed}
        gone = self.seen - followed

        def is_apart(root: str, other: str) -> bool:
            return other not in followed or _is_behind_a_link(root, other)

        paths = outermost([path for path, _ in found], self.exclusions, is_apart)
        return [LocalPart(path, path in followed) for path in (*paths, *sorted(gone))]

    @staticmethod
    def _is_followed(path: str, root: str) -> bool:
        # A folder that hides matches has fewer parts than its glob. Followed, it is listed again, and its row has the
        # error.
        hides_matches = path.count("/") < root.count("/")
        return hides_matches or not (is_glob(root) and os.path.islink(path))

    def _expand(self, root: str) -> list[str]:
        if not is_glob(root):
            return [root] if _may_exist(root) else []
        return sorted(path for path in _matches(root) if not self.exclusions.hide_match(path, root))

    def read(self, partition: LocalPart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one root. A file that cannot be read is `unreadable`, with the reason."""
        seen: Counter[str] = Counter()
        yield from codec.batches(self._rows(partition, seen), 1_000)
        yield from codec.batches({"kind": "count", "name": name, "entries": n} for name, n in sorted(seen.items()))

    def _rows(self, root: LocalPart, seen: Counter[str]) -> Iterator[NewRow]:
        waiting = [root]
        while waiting:
            path, is_followed = waiting.pop()
            what = ""
            try:
                mode = (os.stat if is_followed else os.lstat)(path).st_mode
                if stat.S_ISLNK(mode):
                    seen["symbolic link"] += 1
                elif not _is_utf8(path):
                    yield _unreadable(path, "its name is not UTF-8")
                elif stat.S_ISREG(mode):
                    yield self.row(path)
                elif stat.S_ISDIR(mode):
                    what = "folder: "
                    # Backwards, as `pop` takes the last one.
                    names = sorted(os.listdir(path), reverse=True)
                    seen["empty folder"] += not names
                    below = (os.path.join(path, name) for name in names)
                    waiting += [LocalPart(child, False) for child in below if not self.exclusions.leave_out(child)]
            except FileNotFoundError:
                why = "a link to nothing" if os.path.islink(path) else "deleted or renamed while the tree was listed"
                yield _unreadable(path, why)
            except OSError as error:
                why = error.strerror or str(error)
                if not self.tolerant:
                    raise ConfigurationError(
                        f"{path} cannot be listed ({why}), so that files in it would count as missing: let this user "
                        "list it"
                    ) from None
                yield _unreadable(path, f"{what}{why}")

    def row(self, path: str) -> NewRow:
        """Return the `file` row of one file."""
        row: NewRow = {"kind": "file", "path": path, "block_size": self.layout.block_size}
        try:
            with Path(path).open("rb") as file:
                # By the open file, here and below: meanwhile another file may take the path.
                facts = os.fstat(file.fileno())
                row |= {"length": facts.st_size, "modified_ms": facts.st_mtime_ns // 1_000_000}
                algorithm, checksum, length = crc.hdfs_checksum(file, self.layout)
                row |= {"length": length, "algorithm": algorithm, "checksum": checksum}
                if self.deep and length:
                    row["crc32c"] = crc.crc_hex(_content(file))
                if _version(os.fstat(file.fileno())) != _version(facts):
                    row |= {"state": FileState.OPEN, "detail": "changed while it was read"}
        except OSError as error:
            row |= {
                "length": row.get("length", 0),
                "state": FileState.UNREADABLE,
                "detail": error.strerror or str(error),
            }
        return row


def _matches(root: str) -> Iterator[str]:
    """Yield the paths that a glob matches, and what hides some: a folder on the way that cannot be listed.

    `glob.glob` passes over such a folder without a word.
    """
    found = ["/"]
    for segment in root.strip("/").split("/"):
        below = list[str]()
        for folder in found:
            try:
                names = fnmatch.filter(os.listdir(folder), segment) if is_glob(segment) else [segment]
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                if error.errno != errno.ELOOP:  # a link that leads nowhere
                    yield folder
            else:
                below += [os.path.join(folder, name) for name in names]
        found = below
    yield from filter(_may_exist, found)


def _may_exist(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        # Nobody can tell, so it has a row, which says why.
        pass
    return True


def _version(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_size, facts.st_mtime_ns


def _content(file: BinaryIO) -> int:
    file.seek(0)
    whole = 0
    while piece := file.read(_READ_BYTES):
        whole = crc.crcs(piece, whole)
    return whole


def _is_utf8(path: str) -> bool:
    """Return True if a path is UTF-8: Python has other bytes as surrogates, which no row can hold."""
    return not any("\udc80" <= character <= "\udcff" for character in path)


def _unreadable(path: str, why: str) -> NewRow:
    """Return the row of what is neither read nor listed; bytes that are not UTF-8 are escaped."""
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    return {"kind": "file", "path": shown, "state": FileState.UNREADABLE, "detail": why}


def _is_behind_a_link(path: str, root: str) -> bool:
    """Return True if a link lies between a root and a path below it: the root's listing ends there."""
    below = os.path.relpath(path, root)
    return os.path.realpath(path) != os.path.normpath(os.path.join(os.path.realpath(root), below))
