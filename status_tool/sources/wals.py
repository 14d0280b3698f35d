"""Lengths of the WALs that replication still needs, read by WebHDFS.

A WAL lies in `WALs/<server>`, in `WALs/<server>-splitting` while the master splits it, and then in `oldWALs` (or
`oldWALs/<server>`). Of a WAL that is being written the NameNode knows only the finished blocks: the
length that a reader sees comes from a DataNode.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from status_tool.clients.hdfscli import Refused
from status_tool.clients.webhdfs import HdfsEndpoint, WebHdfs
from status_tool.sources.hdfs_files import refusals_end_the_run
from status_tool.sources.replication_queues import Wal
from status_tool.vocabulary.varint import varint

SPLITTING = "-splitting"
_MAGIC = b"PWAL"
_HEAD_BYTES = 16
"""Enough for the magic and the length of the header that follows it."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Location and length of a WAL, and the offset where its entries begin (bytes)."""

    path: str
    length: int | None
    """None: no DataNode tells it. The NameNode's length of a WAL that is being written lacks its newest entries."""
    header: int = 0

    def left(self, position: int) -> int | None:
        """Return the bytes of entries beyond a position; None if the length is not known."""
        return None if self.length is None else max(0, self.length - max(position, self.header))


@dataclass(frozen=True, slots=True)
class Writer:
    """A region server with archived WALs: when the newest of them was opened and last modified (epoch ms)."""

    server: str
    opened_ms: int
    modified_ms: int


class WalFolder:
    """The WALs under one `hbase.rootdir`. Raises `ConnectionFailed`."""

    def __init__(self, endpoint: HdfsEndpoint, root: str) -> None:
        self._endpoint, self._root = endpoint, root
        self._hdfs = WebHdfs(endpoint, patience_s=0)
        self._listed: dict[str, dict[str, int]] = {}

    def unsplit(self) -> frozenset[str]:
        """Return the names of the servers that still have a WAL folder, split or not."""
        with refusals_end_the_run(self._endpoint):
            folders = [one["pathSuffix"] for one in self._hdfs.entries(f"{self._root}/WALs") if _is_folder(one)]
        return frozenset(name.removesuffix(SPLITTING) for name in folders)

    def writers(self) -> list[Writer]:
        """Return the servers with archived WALs, by name.

        HBase keeps a WAL for ten minutes after it is no longer needed.
        """
        found: dict[str, Writer] = {}
        with refusals_end_the_run(self._endpoint):
            for status in self._archived():
                wal = Wal(status["pathSuffix"])
                # The HMaster's own store archives its WALs here, too, under names of another form.
                if wal.server is not None and wal.started_ms is not None:
                    modified = int(status["modificationTime"])
                    known = found.setdefault(wal.server, Writer(wal.server, wal.started_ms, modified))
                    newest = max(known.opened_ms, wal.started_ms), max(known.modified_ms, modified)
                    found[wal.server] = Writer(wal.server, *newest)
        return sorted(found.values(), key=lambda writer: writer.server)

    def _archived(self) -> Iterator[dict[str, Any]]:
        """Yield the files of `oldWALs` and of its folders by server (hbase.separate.oldlogdir.by.regionserver)."""
        for status in self._hdfs.entries(f"{self._root}/oldWALs"):
            if _is_folder(status):
                yield from self._hdfs.entries(f"{self._root}/oldWALs/{status['pathSuffix']}")
            else:
                yield status

    def extents(self, wals: Iterable[Wal]) -> dict[str, Extent]:
        """Return the extents by WAL name. A WAL that is not found is left out."""
        with refusals_end_the_run(self._endpoint):
            found = {wal.name: self._extent(wal) for wal in wals}
        return {name: extent for name, extent in found.items() if extent is not None}

    def _extent(self, wal: Wal) -> Extent | None:
        server = wal.server or ""
        unmeasured: Extent | None = None
        # Look twice: it may be moved between two listings, or after the one that has it.
        for _ in range(2):
            unmeasured = None
            # In the order in which HBase moves a WAL: one that moves between two listings is in a later folder.
            for folder in (f"WALs/{server}", f"WALs/{server}{SPLITTING}", "oldWALs", f"oldWALs/{server}"):
                if wal.name in self._names(folder):
                    path = posixpath.join(self._root, folder, wal.name)
                    found = self._measured(path, self._names(folder)[wal.name])
                    if found.length is not None:
                        return found
                    unmeasured = found
            self._listed.clear()
        return unmeasured

    def _names(self, folder: str) -> dict[str, int]:
        if folder not in self._listed:
            entries = self._hdfs.entries(f"{self._root}/{folder}")
            self._listed[folder] = {one["pathSuffix"]: one["length"] for one in entries if not _is_folder(one)}
        return self._listed[folder]

    def _measured(self, path: str, listed: int) -> Extent:
        """Return the length that a reader sees, and the length of the header, which the listing does not tell."""
        try:
            start, visible = self._hdfs.start_of(path, _HEAD_BYTES)
        except Refused:
            # Moved since it was listed, or without a DataNode: `_extent` looks again.
            return Extent(path, None)
        return Extent(path, None if visible is None else max(listed, visible), _header_bytes(start))


def _is_folder(status: dict[str, Any]) -> bool:
    return bool(status["type"] == "DIRECTORY")


def _header_bytes(start: bytes) -> int:
    """Return the length of `PWAL`, a varint and the header message that it announces; 0 for any other file."""
    if start[:4] != _MAGIC:
        return 0
    size, end = varint(start, len(_MAGIC)) or (0, 0)
    return end + size
