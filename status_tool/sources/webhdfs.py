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
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import requests
from hdfs import Client, HdfsError
from requests.adapters import HTTPAdapter

from status_tool.errors import ConfigurationError, ConnectionFailed
from status_tool.sources import codec
from status_tool.sources.codec import Row
from status_tool.sources.interface import Source
from status_tool.status_file.legacy import strip_uri

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 120
CONCURRENCY = 16
_HEADER = 12  # bytesPerCRC and crcPerBlock

TEMPORARY_NAMES = (".Trash", ".snapshot", ".staging", "_temporary", "*._COPYING_", ".distcp.tmp.*")
TEMPORARY_FOLDERS = ("/tmp",)


@dataclass(frozen=True, slots=True)
class HdfsEndpoint:
    """NameNodes' base URLs (a standby is passed over) and the user to be."""

    urls: tuple[str, ...]
    user: str

    def __str__(self) -> str:
        return " or ".join(self.urls)


def hdfs_user() -> str:
    """Hadoop's rule without Kerberos: `$HADOOP_USER_NAME`, else the login name."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def client(endpoint: HdfsEndpoint, pool: int = CONCURRENCY) -> Client:
    """A WebHDFS client that reuses its connections. Nothing is sent yet."""
    session = requests.Session()
    session.params = {"user.name": endpoint.user}
    session.trust_env = False
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_connections=pool, pool_maxsize=pool))
    return Client(";".join(endpoint.urls), timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S), session=session)


@contextlib.contextmanager
def asking(endpoint: HdfsEndpoint) -> Iterator[None]:
    """Turns what WebHDFS throws for the whole service into one clear line."""
    try:
        yield
    except (requests.RequestException, OSError) as error:
        raise ConnectionFailed(
            f"cannot reach the NameNode at {endpoint} ({_short(error)}): is it running, and is WebHDFS on? "
            "--webhdfs http://HOST:PORT names another"
        ) from None
    except HdfsError as error:
        raise ConnectionFailed(f"HDFS at {endpoint} refused: {_short(error)}") from None


def _short(error: BaseException) -> str:
    lines = (getattr(error, "message", None) or str(error)).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def plain_path(path: str) -> str:
    """A path without scheme and authority, normalised."""
    return "/" + posixpath.normpath(strip_uri(path)).lstrip("/")


def read_path_file(text: str, name: str) -> tuple[str, ...]:
    """The paths of a `-f` file: one a line, `#` comments."""
    lines = (line.strip() for line in text.splitlines())
    paths = tuple(plain_path(line) for line in lines if line and not line.startswith("#"))
    bad = [
        path
        for path in text.splitlines()
        if path.strip() and not path.lstrip().startswith(("#", "/", "hdfs:", "webhdfs:", "viewfs:"))
    ]
    if bad:
        raise ConfigurationError(f"-f {name}: {bad[0].strip()!r} is no absolute HDFS path")
    if not paths:
        raise ConfigurationError(f"-f {name}: no path in it")
    return paths


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Folders and names that are passed over, unless a path to check lies inside."""

    folders: tuple[str, ...] = TEMPORARY_FOLDERS
    names: tuple[str, ...] = TEMPORARY_NAMES

    def leave_out(self, path: str) -> bool:
        """Whether a file or folder found on the way is passed over."""
        name = posixpath.basename(path)
        return path in self.folders or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.names)


@dataclass(frozen=True, slots=True)
class Tree:
    """A part of the listing: a folder, with or without what is below its subfolders; or one file."""

    path: str
    deep: bool


@dataclass(frozen=True)
class WebHdfsSource(Source):
    """`file` rows of everything under `roots`, listing and checksums both by partition."""

    endpoint: HdfsEndpoint
    roots: tuple[str, ...]
    exclusions: Exclusions
    concurrency: int = CONCURRENCY

    def partitions(self) -> Sequence[Tree]:
        """One part a subfolder of a root, one for the files right in it."""
        hdfs = client(self.endpoint)
        with asking(self.endpoint):
            return [part for root in _outermost(self.roots) for part in self._split(hdfs, root)]

    def _split(self, hdfs: Client, root: str) -> Iterator[Tree]:
        status = hdfs.status(root, strict=False)
        if status is None:
            return  # nothing here: the other side's files under it are then missing
        if status["type"] != "DIRECTORY":
            yield Tree(root, False)
            return
        yield Tree(root, False)
        for name, child in hdfs.list(root, status=True):
            path = posixpath.join(root, name)
            if child["type"] == "DIRECTORY" and not self.exclusions.leave_out(path):
                yield Tree(path, True)

    def read(self, partition: Tree) -> Iterator[pa.RecordBatch]:
        """The rows of one part, checksums requested `concurrency` at a time."""
        hdfs = client(self.endpoint, self.concurrency)
        with asking(self.endpoint):
            yield from codec.batches(self._checked(hdfs, self._listed(hdfs, partition)))

    def _listed(self, hdfs: Client, tree: Tree) -> Iterator[tuple[str, dict[str, Any]]]:
        waiting = deque([tree.path])
        while waiting:
            folder = waiting.popleft()
            for path, status in _entries(hdfs, folder):
                if status["type"] == "FILE":
                    if path == folder or not self.exclusions.leave_out(path):
                        yield path, status
                elif status["type"] == "DIRECTORY" and tree.deep and not self.exclusions.leave_out(path):
                    waiting.append(path)

    def _checked(self, hdfs: Client, files: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[Row]:
        """Rows in listing order, with a bounded window of requests under way."""
        window: deque[Future[Row]] = deque()
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="checksum") as pool:
            try:
                for path, status in files:
                    window.append(pool.submit(file_row, hdfs, path, status))
                    if len(window) >= 4 * self.concurrency:
                        yield window.popleft().result()
                while window:
                    yield window.popleft().result()
            finally:
                for future in window:
                    future.cancel()


def _entries(hdfs: Client, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A folder's entries, or the file itself; nothing if it went away in between."""
    try:
        listed = hdfs.list(path, status=True)
    except HdfsError as error:
        if "is not a directory" in str(error.message):
            yield path, hdfs.status(path)
            return
        if error.exception == "FileNotFoundException" or "does not exist" in str(error.message):
            return
        raise
    for name, status in listed:
        yield posixpath.join(path, name), status


def _outermost(roots: Sequence[str]) -> list[str]:
    """Roots that lie in no other root, so that no file is listed twice."""
    kept: list[str] = []
    for root in sorted(set(roots)):
        if not any(root == k or root.startswith(k.rstrip("/") + "/") for k in kept):
            kept.append(root)
    return kept


def file_row(hdfs: Client, path: str, status: dict[str, Any]) -> Row:
    """The `file` row of one file. A file that cannot be read is `unreadable`, with the reason."""
    row: Row = {
        "kind": "file",
        "path": path,
        "length": status["length"],
        "modified_ms": status["modificationTime"],
        "block_size": status["blockSize"],
    }
    try:
        checksum = hdfs.checksum(path)
        digest = bytes.fromhex(checksum["bytes"])[_HEADER : _HEADER + 16]
        return row | {"algorithm": checksum["algorithm"], "checksum": digest.hex()}
    except HdfsError as error:
        return row | {"state": "unreadable", "detail": _short(error)}
    except (KeyError, ValueError, TypeError) as error:
        return row | {"state": "unreadable", "detail": f"answer not understood: {error}"}
