"""DataNodes that answer for any file's checksum, as long as a NameNode has just redirected to them.

A DataNode asks the NameNode for the file's blocks by itself, whatever path it is asked for: so a redirect holds for
other files, too, and every second request is saved. What is not answered is left to the NameNode, which finds another
DataNode, or says why there is no checksum.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from status_tool.clients.hdfscli import proxy_of

USES = 64
"""Files that are asked for by one redirect: the next one may lead to another DataNode, as the NameNode likes."""
_PREFIX = "/webhdfs/v1"
_PLAIN = re.compile(r"[\w./=-]+", re.ASCII)
"""A path that means the same however often it is decoded: DataNodes of some versions do so twice."""


@dataclass
class _DataNode:
    """A DataNode, with the parameters that a NameNode has sent along."""

    host: str
    port: int
    query: str
    left: int = USES

    def get(self, path: str, connect_s: float, read_s: float) -> bytes | None:
        """Return the answer for a path; None for a refusal. Raises OSError and HTTPException."""
        with closing(http.client.HTTPConnection(self.host, self.port, timeout=connect_s)) as connection:
            connection.connect()
            connection.sock.settimeout(read_s)
            connection.request("GET", f"{_PREFIX}{path}?{self.query}", headers={"Connection": "close"})
            answer = connection.getresponse()
            return answer.read() if answer.status == 200 else None


class KnownDataNodes:
    """DataNodes for many threads, each with one request under way."""

    def __init__(self, timeout: tuple[float, float]) -> None:
        """Know none yet. `timeout` is in seconds, to connect and to read."""
        self._timeout = timeout
        self._free: list[_DataNode] = []

    def learn(self, location: str, path: str) -> None:
        """Keep a NameNode's redirect for a plain path, unless it holds for that path or this request alone.

        So it is with a token, with HttpFS, which redirects to itself, and where a proxy or TLS is on the way.
        """
        parts = urlsplit(location)
        is_general = "namenoderpcaddress=" in parts.query and "delegation=" not in parts.query
        is_plain = _PLAIN.fullmatch(path) is not None and parts.path == _PREFIX + path
        if parts.scheme == "http" and is_general and is_plain and not proxy_of(location):
            self._free.append(_DataNode(parts.hostname or "", parts.port or 80, parts.query))

    def get(self, path: str, wait: Callable[[], None]) -> bytes | None:
        """Return the answer of a DataNode; None if none is known, it refuses, or the path is not plain.

        Calls `wait` before it is asked, as its own request to the NameNode counts.
        """
        free = self._free
        if not (free and _PLAIN.fullmatch(path)):
            return None
        with suppress(IndexError, OSError, http.client.HTTPException):
            node = free.pop()
            wait()
            if (answer := node.get(path, *self._timeout)) is not None:
                node.left -= 1
                if node.left > 0:
                    free.append(node)
                return answer
        return None

    def forget(self) -> None:
        """Know none any more, nor those that answer now: they go by a NameNode that is not asked any more."""
        self._free = []
