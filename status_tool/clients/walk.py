"""Folders listed several at once, a page at a time: memory is bounded by pages under way, whatever the tree's shape."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from status_tool.clients.file_client import order_of
from status_tool.clients.hdfs_native import Hdfs
from status_tool.clients.hdfscli import Refused

FOLDERS_AT_ONCE = 8
"""Pages of one walk that are requested at once."""

_Page = tuple[list[dict[str, Any]], int]


@dataclass(frozen=True, slots=True)
class Spot:
    """Start of a page: a folder, the name after which it begins, and the last name that is wanted."""

    folder: str
    after: str = ""
    upto: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Entries of a folder in order of name, or why there are none; `more` of the same folder follow."""

    spot: Spot
    entries: list[dict[str, Any]]
    more: bool = False
    refusal: Refused | None = None


class Walk:
    """Iterate over pages; folders that are added meanwhile are listed too.

    Depth first, so that few folders wait; or breadth first, to get many of them. Pages of one folder come in order.
    """

    def __init__(
        self,
        hdfs: Hdfs,
        folders: Iterable[str],
        after: str = "",
        upto: str | None = None,
        *,
        breadth_first: bool = False,
    ) -> None:
        """List `folders` and what is added later. In `folders` themselves only names in `(after, upto]` are listed."""
        self._waiting = deque(Spot(folder, after, upto) for folder in folders)
        self._hdfs, self._breadth_first = hdfs, breadth_first
        self._running: deque[tuple[Spot, Future[_Page]]] = deque()

    def __len__(self) -> int:
        """Return the number of pages that are known to come."""
        return len(self._waiting) + len(self._running)

    def add(self, folders: Iterable[str]) -> None:
        """List these folders, too, in their turn."""
        self._waiting.extend(Spot(folder) for folder in folders)

    def set_aside(self) -> list[str]:
        """Drop and return the folders without any request so far."""
        fresh = [spot.folder for spot in self._waiting if not spot.after]
        self._waiting = deque(spot for spot in self._waiting if spot.after)
        return fresh

    def __iter__(self) -> Iterator[Page]:
        return self

    def __next__(self) -> Page:
        """Return the next page; raises `ConnectionFailed` when no NameNode answers."""
        while self._waiting and len(self._running) < FOLDERS_AT_ONCE:
            spot = self._waiting.popleft() if self._breadth_first else self._waiting.pop()
            self._running.append((spot, self._hdfs.list_pool.submit(self._hdfs.page, spot.folder, spot.after)))
        if not self._running:
            raise StopIteration
        spot, future = self._running.popleft()
        try:
            entries, remaining = future.result()
        except Refused as refusal:
            return Page(spot, [], refusal=refusal)
        last = entries[-1]["pathSuffix"] if entries else ""
        if spot.upto is not None:
            wanted = [entry for entry in entries if order_of(entry["pathSuffix"]) <= order_of(spot.upto)]
            # Names come in order: once one lies behind `upto`, all that follow do.
            remaining, entries = remaining if len(wanted) == len(entries) else 0, wanted
        if more := bool(remaining):
            following = Spot(spot.folder, last, spot.upto)
            # Before other folders, whichever end they are taken from.
            self._waiting.appendleft(following) if self._breadth_first else self._waiting.append(following)
        return Page(spot, entries, more)
