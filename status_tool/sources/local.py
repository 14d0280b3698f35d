"""`file://` roots: local files with the checksum that HDFS would have for them, computed here."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from status_tool.sources import codec, crc
from status_tool.sources.crc import Layout
from status_tool.sources.interface import Source
from status_tool.vocabulary.schema import NewRow
from status_tool.vocabulary.selection import Exclusions, is_glob, outermost
from status_tool.vocabulary.states import FileState

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class LocalSource(Source):
    """`file` rows of everything under local `roots`, as if laid out by `layout`. Symbolic links are not followed."""

    roots: tuple[str, ...]
    exclusions: Exclusions
    layout: Layout = field(default_factory=Layout)
    deep: bool = False

    def absent(self) -> list[str]:
        """Return the roots that do not exist."""
        return [root for root in self.roots if not self._expand(root)]

    def partitions(self) -> Sequence[str]:
        """Return one part per root."""
        return outermost([path for root in self.roots for path in self._expand(root)], self.exclusions)

    def _expand(self, root: str) -> list[str]:
        if not is_glob(root):
            return [root] if os.path.lexists(root) else []
        found = (path for path in glob.glob(root, include_hidden=True) if fnmatch.fnmatchcase(path, root))
        return sorted(path for path in found if not self.exclusions.hide_match(path, root))

    def read(self, partition: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one root. A file that cannot be read is `unreadable`, with the reason."""
        seen: Counter[str] = Counter()
        yield from codec.batches(self._rows(partition, seen), 1_000)
        yield from codec.batches({"kind": "count", "name": name, "entries": n} for name, n in sorted(seen.items()))

    def _rows(self, path: str, seen: Counter[str]) -> Iterator[NewRow]:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            seen["symbolic link"] += 1
        elif stat.S_ISREG(mode):
            yield self.row(path)
        elif stat.S_ISDIR(mode):
            try:
                names = sorted(os.listdir(path))
            except OSError as error:
                yield {
                    "kind": "file",
                    "path": path,
                    "state": FileState.UNREADABLE,
                    "detail": f"folder: {error.strerror}",
                }
                return
            seen["empty folder"] += not names
            below = (os.path.join(path, name) for name in names)
            for child in below:
                if not self.exclusions.leave_out(child):
                    yield from self._rows(child, seen)

    def row(self, path: str) -> NewRow:
        """Return the `file` row of one file."""
        row: NewRow = {"kind": "file", "path": path, "block_size": self.layout.block_size}
        try:
            with Path(path).open("rb") as file:
                facts = os.fstat(file.fileno())
                row |= {"length": facts.st_size, "modified_ms": facts.st_mtime_ns // 1_000_000}
                algorithm, checksum, length = crc.hdfs_checksum(file, self.layout)
                row |= {"length": length, "algorithm": algorithm, "checksum": checksum}
                if self.deep and length:
                    row["crc32c"] = crc.crc_hex(_content(file))
        except OSError as error:
            row |= {
                "length": row.get("length", 0),
                "state": FileState.UNREADABLE,
                "detail": error.strerror or str(error),
            }
        return row


def _content(file: BinaryIO) -> int:
    file.seek(0)
    whole = 0
    while piece := file.read(_READ_BYTES):
        whole = crc.crc32c(piece, whole)
    return whole
