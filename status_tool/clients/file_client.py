"""Base of both HDFS clients: thread pools, pauses between retries, and folders read page by page."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from status_tool.clients.hdfscli import Refused
from status_tool.clients.patience import Patience

_SIGNED = bytes(byte ^ 0x80 for byte in range(256))


def order_of(name: str) -> bytes:
    """Return the key by which HDFS sorts the names in a folder: Java's bytes are signed, so `é` comes before `a`."""
    return name.encode().translate(_SIGNED)


class FileClient(ABC):
    """A client for many threads. Calls raise `ConnectionFailed`, and `Refused` for what concerns the path alone."""

    def __init__(self, concurrency: int, patience_s: float) -> None:
        self._patience = Patience(patience_s)
        self.pool = ThreadPoolExecutor(concurrency, thread_name_prefix="hdfs-file")
        """For work on files, of all partitions that this process reads."""
        self.range_pool = ThreadPoolExecutor(concurrency, thread_name_prefix="hdfs-range")
        """For ranges of files; work in `pool` waits for it, never the other way round."""
        self.list_pool = ThreadPoolExecutor(max(1, concurrency // 2), thread_name_prefix="hdfs-list")
        """For pages of folders, which must not wait for the files before them."""

    @property
    def stopped(self) -> bool:
        """Return True if `stop` was called."""
        return self._patience.is_over

    def stop(self) -> None:
        """Abort all waits, so that threads end soon. The client cannot be used afterwards."""
        self._patience.end()
        for pool in (self.pool, self.range_pool, self.list_pool):
            pool.shutdown(wait=False, cancel_futures=True)

    def status(self, path: str) -> dict[str, Any] | None:
        """Return the file status as WebHDFS has it; None if there is nothing."""
        try:
            return self._status(path)
        except Refused as refusal:
            if refusal.is_absent:
                return None
            raise

    @abstractmethod
    def _status(self, path: str) -> dict[str, Any]:
        """Return the file status; raises `Refused` if there is nothing at the path."""

    def entries(self, path: str) -> list[dict[str, Any]]:
        """Return a folder's entries by order of name; none if it does not exist (any more)."""
        try:
            return [entry for page in self.pages(path) for entry in page]
        except Refused as refusal:
            if refusal.is_absent:
                return []
            raise

    def pages(self, path: str) -> Iterator[list[dict[str, Any]]]:
        """Yield a folder's entries in pages, by order of name. For a file, yields it with an empty suffix."""
        after = ""
        while True:
            entries, remaining = self.page(path, after)
            if entries:
                yield entries
            if not remaining:
                return
            after = entries[-1]["pathSuffix"]

    def page(self, path: str, after: str = "") -> tuple[list[dict[str, Any]], int]:
        """Return one page of a folder's entries after a name, and how many are left: with any left, it has entries."""
        entries, remaining = self._page(path, after)
        # `pages` would have no name to go on after, and what is left would count as absent on this side.
        if remaining and not entries:
            raise Refused("IOException", f"the listing ends after {after!r}, with {remaining} entries left")
        return entries, remaining

    @abstractmethod
    def _page(self, path: str, after: str) -> tuple[list[dict[str, Any]], int]:
        """Return one page of a folder's entries after a name, and how many are left."""


Client = TypeVar("Client", bound=FileClient)


class SharedClients(Generic[Client]):
    """A process's one client for each endpoint and load; another one once that was stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[Hashable, Client] = {}

    def of(self, key: Hashable, make: Callable[[], Client]) -> Client:
        """Return the client for a key, and create it at first."""
        with self._lock:
            client = self._clients.get(key)
            if client is None or client.stopped:
                # Each round of a watch has a token, and so an endpoint, of its own.
                self._clients = {known: one for known, one in self._clients.items() if not one.stopped}
                client = self._clients[key] = make()
            return client
