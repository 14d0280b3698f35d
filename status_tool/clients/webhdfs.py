"""WebHDFS as a service that may be busy, fail over or lose a DataNode: requests with patience and bounds.

One `WebHdfs` a process and endpoint: its connections are reused, and the number of requests under way
and their rate are bounded over all threads.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.parse import urlsplit

from urllib3.exceptions import HTTPError

from status_tool.clients.file_client import FileClient, SharedClients, order_of
from status_tool.clients.hdfscli import (
    BUSY,
    Failover,
    Refused,
    Servers,
    Untold,
    client_of,
    no_namenode,
    reason,
    refusal_of,
)
from status_tool.clients.patience import PATIENCE_S, is_cut_off
from status_tool.clients.tls import DEFAULT_TRUST, Trust
from status_tool.errors import ConnectionFailed

CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 120
CONCURRENCY = 16
DATANODE_TRIES = 5
PASSED_OVER, AVOIDED_S = 20, 5.0
"""Number of times that a DataNode is skipped for one file if it has failed within so many seconds."""
REFUSAL_TRIES = 2
"""A refused checksum is requested once more: a DataNode that has just died makes another one refuse."""
ALIKE_S = 1.0
"""Time for which a thread asks the DataNode that the NameNode has named for one checksum for others as well."""
_PLAIN = re.compile(r"[A-Za-z0-9/._=,:@-]+")
"""Paths that are the same in every URL: servers differ in what they encode and decode of others."""
_PREFIX = "/webhdfs/v1"
UNKNOWN_OPERATION = ("IllegalArgumentException", "UnsupportedOperationException")
_READ_BYTES = 1 << 20
_START_AFTER, _HTTPFS_START_AFTER = "startafter", "startAfter"
"""A NameNode decodes the whole query twice if any parameter has a capital letter in its name (`ParamFilter`): then it
goes on after `a:b` where `a%3Ab` was asked for, and lists nothing in between. HttpFS knows the other name only."""
RANGE_BYTES = 64 << 20
"""Content is read in ranges of this size, several of a file at once."""


@dataclass(frozen=True, slots=True)
class HdfsEndpoint:
    """NameNodes' base URLs (a standby is passed over) and the user to be."""

    urls: tuple[str, ...]
    user: str
    trust: Trust = field(default=DEFAULT_TRUST, repr=False)
    token: str = field(default="", repr=False)
    """A delegation token, by which Spark's executors need no ticket; see `delegation_tokens`."""

    def __str__(self) -> str:
        return " or ".join(self.urls)


@dataclass(frozen=True, slots=True)
class Load:
    """The load that one process may put on HDFS. `rate` is in NameNode requests a second; None: unbounded.

    Whoever has a rate reads alone: see `sources.hdfs_files.reads_alone`.
    """

    concurrency: int = CONCURRENCY
    rate: float | None = None

    def shared(self, processes: int) -> Load:
        """Return the load for one of about this many processes. A rate is not divided, as their number may grow."""
        assert self.rate is None
        return Load(max(2, self.concurrency // processes))


class _DataNodeFailed(Exception):
    """A DataNode did not answer; `host` is to be avoided."""

    def __init__(self, host: str, message: str) -> None:
        super().__init__(message)
        self.host = host


@dataclass(frozen=True, slots=True)
class _Way:
    """A NameNode's redirection to a DataNode, before and after the path. It names nothing else of the file."""

    before: str
    after: str
    until_s: float

    @classmethod
    def of(cls, location: str, path: str) -> _Way | None:
        """Return the way; None if the redirection may hold for this path alone, as that of a gateway."""
        before, _, query = location.partition("?")
        if not before.endswith(_PREFIX + path) or not _PLAIN.fullmatch(path) or "namenoderpcaddress=" not in query:
            return None
        return cls(before.removesuffix(path), f"?{query}", time.monotonic() + ALIKE_S)

    def to(self, path: str) -> str | None:
        """Return the URL for another path; None if the NameNode has to be asked."""
        is_fit = time.monotonic() < self.until_s and _PLAIN.fullmatch(path)
        return f"{self.before}{path}{self.after}" if is_fit else None


class RateLimit:
    """Spaces calls out evenly over all threads."""

    def __init__(self, per_second: float | None) -> None:
        self._gap = 1.0 / per_second if per_second else 0.0
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self) -> None:
        """Return when the next call may be made."""
        if not self._gap:
            return
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
        # Other threads take their turns meanwhile, so this is outside the lock.
        time.sleep(max(0.0, mine - now))


_Kind = TypeVar("_Kind")


def _told(answer: Any, kind: type[_Kind], *names: str) -> _Kind:
    """Return the value under these names, one inside the other, in a NameNode's answer.

    Raises `Refused` if it is missing or of another kind: something else answers at the address.
    """
    for name in names:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(answer, kind):
        raise no_namenode(f"the answer has no {'.'.join(names)}")
    return answer


NAMENODE_STATUS = "Hadoop:service=NameNode,name=NameNodeStatus"
_SHARED: SharedClients[WebHdfs] = SharedClients()


def webhdfs(endpoint: HdfsEndpoint, load: Load = Load()) -> WebHdfs:
    """Return the process's one client for this endpoint and load."""
    return _SHARED.of((endpoint, load), lambda: WebHdfs(endpoint, load))


class WebHdfs(FileClient):
    """A WebHDFS client for many threads.

    Every call raises `ConnectionFailed` when no NameNode has answered for `PATIENCE_S`, and `Refused`
    for what concerns the path alone.
    """

    files_at_once = 1
    """A request has one checksum."""

    def __init__(self, endpoint: HdfsEndpoint, load: Load = Load(), patience_s: float = PATIENCE_S) -> None:
        super().__init__(load.concurrency, patience_s)
        self.endpoint = endpoint
        waits = (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
        # One connection for each thread of `pool` and of `range_pool`.
        self._datanodes = Servers(2 * load.concurrency, waits, endpoint.trust)
        self._namenodes = [
            client_of(url, endpoint.user, 2 * load.concurrency, waits, endpoint.trust, endpoint.token)
            for url in endpoint.urls
        ]
        self._limit = RateLimit(load.rate)
        self.active = 0
        """The index of the NameNode that is tried first."""
        self._batched = True
        self._start_after = _START_AFTER
        self._failed: dict[str, float] = {}
        self._last = threading.local()
        self._actives = set[int]()
        """The indexes of NameNodes that have answered since they were last looked at, and are not looked at again."""

    def _status(self, path: str) -> dict[str, Any]:
        """Request GETFILESTATUS; raises `Refused` if there is nothing at the path."""
        return _told(self._ask("GETFILESTATUS", path), dict, "FileStatus")

    def summary(self, path: str) -> tuple[int, int]:
        """Return the number of files and bytes below a path, as the NameNode counts them (GETCONTENTSUMMARY)."""
        found = _told(self._ask("GETCONTENTSUMMARY", path), dict, "ContentSummary")
        return _told(found, int, "fileCount"), _told(found, int, "length")

    def _page(self, path: str, after: str) -> tuple[list[dict[str, Any]], int]:
        if self._batched:
            try:
                answer = self._ask("LISTSTATUS_BATCH", path, **{self._start_after: after})
            except Refused as refusal:
                if refusal.name not in UNKNOWN_OPERATION:
                    raise
                self._batched = False  # before Hadoop 2.8
            else:
                listing = _told(answer, dict, "DirectoryListing")
                entries = _told(listing, list, "partialListing", "FileStatuses", "FileStatus")
                if after and entries and order_of(entries[0]["pathSuffix"]) <= order_of(after):
                    if self._start_after == _HTTPFS_START_AFTER:
                        raise Refused("IOException", f"the listing begins anew after {after!r}")
                    self._start_after = _HTTPFS_START_AFTER
                    return self._page(path, after)
                return entries, _told(listing, int, "remainingEntries")
        entries = _told(self._ask("LISTSTATUS", path), list, "FileStatuses", "FileStatus")
        return [e for e in entries if not after or order_of(e["pathSuffix"]) > order_of(after)], 0

    def pool_id(self, path: str) -> str:
        """Return the id of the block pool that a file's content is in; empty if it is not told, as by most HttpFS."""
        try:
            found = self._ask("GET_BLOCK_LOCATIONS", path, offset=0, length=1)
            return str(found["LocatedBlocks"]["locatedBlocks"][0]["block"]["blockPoolId"])
        except Refused as refusal:
            if refusal.name not in UNKNOWN_OPERATION:
                raise
        except (KeyError, IndexError, TypeError):
            pass
        return ""

    def new_token(self) -> str:
        """Return a delegation token for this user (GETDELEGATIONTOKEN); empty if the NameNode gives none."""
        # The NameNode's JSON has null in place of a token that it does not issue.
        answer = self._ask("GETDELEGATIONTOKEN", "/").get("Token")
        return str(answer.get("urlString") or "") if isinstance(answer, dict) else ""

    def renew_token(self, token: str) -> float:
        """Renew a delegation token. Returns the time (epoch, in seconds) until which it is valid."""
        return _told(self._ask("RENEWDELEGATIONTOKEN", "/", token=token), int, "long") / 1000

    def cancel_token(self, token: str) -> None:
        """Cancel a delegation token."""
        self._ask("CANCELDELEGATIONTOKEN", "/", token=token)

    def beans(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield a JMX bean of each NameNode's web server that exposes it, standby or not; none do for HttpFS."""
        for namenode in self._namenodes:
            try:
                bean = namenode.bean(name)
            except Failover:
                continue
            if bean is not None:
                yield bean

    def checksum(self, path: str) -> tuple[str, bytes]:
        """Return the algorithm's name and the raw bytes of GETFILECHECKSUM.

        The NameNode's redirection is most of the cost, and says nothing of the file: whichever DataNode is asked asks
        the NameNode itself (`WebHdfsHandler.onGetFileChecksum`).
        """
        way: _Way | None = getattr(self._last, "way", None)
        data = self._alike(way.to(path)) if way is not None else None
        if data is None:
            data, location = self._from_datanode("GETFILECHECKSUM", path)
            self._last.way = _Way.of(location, path)
        answer = json.loads(data)["FileChecksum"]
        return answer["algorithm"], bytes.fromhex(answer["bytes"])

    def checksums(self, paths: Sequence[str]) -> list[tuple[str, bytes] | Refused]:
        """Return the algorithm's name and the bytes for each file, or the refusal."""
        found: list[tuple[str, bytes] | Refused] = []
        for path in paths:
            try:
                found.append(self.checksum(path))
            except Refused as refusal:
                found.append(refusal)
            except (KeyError, ValueError, TypeError) as error:
                found.append(Refused("IOException", f"answer not understood: {error}"))
        return found

    def read(self, path: str, offset: int, length: int, take: Any) -> None:
        """Hand a range's content to `take(bytes)` in pieces; `take(None)` signals a (re)start."""

        def stream(response: Any) -> bytes:
            # A DataNode that fails in the middle is followed by another one, which begins the range anew.
            take(None)
            for piece in response.stream(_READ_BYTES):
                take(piece)
            return b""

        self._from_datanode("OPEN", path, stream, offset=offset, length=length)

    def _alike(self, location: str | None) -> bytes | None:
        """Return the answer of a DataNode that was not named for this file; None if the NameNode has to be asked.

        Nothing but an answer counts, so that what a refusal or a failure means is decided in one place.
        """
        if location is None or self._has_just_failed(location):
            return None
        # The DataNode will ask the NameNode.
        self._limit.wait()
        try:
            status, data = self._datanodes.once(location)
        except (HTTPError, HTTPException, OSError):
            self._failed[urlsplit(location).netloc] = time.monotonic()
            return None
        return data if status == 200 else None

    def start_of(self, path: str, most: int | None = None) -> tuple[bytes, int | None]:
        """Return a file's first bytes (None: all of it), and its length as a reader sees it; None: not known (HttpFS).

        Of a file that is being written a DataNode knows more than the NameNode's listing.
        """
        visible: int | None = 0

        def take(response: Any) -> bytes:
            nonlocal visible
            data = bytes(response.read(most))
            told = response.headers.get("Content-Length")
            is_whole = most is None or len(data) < most
            visible = int(told) if told is not None else len(data) if is_whole else None
            if visible is None or visible > len(data):
                response.close()  # Unread data must not be left in a connection that is reused.
            return data

        return self._from_datanode("OPEN", path, take)[0], visible

    def _from_datanode(self, op: str, path: str, consume: Any = None, **params: Any) -> tuple[bytes, str]:
        """Return the answer of the DataNode that the NameNode redirects to, and the redirection.

        Tries another one if it does not answer.
        """
        avoid, tried, refused, passed_over = "", 0, 0, 0
        deadline = self._patience.deadline()
        while True:
            # Every second time without `excludedatanodes`: it goes by host, and may exclude the wrong DataNode there.
            excluded = {"excludedatanodes": avoid} if avoid and tried % 2 else {}
            try:
                answer = self._ask(op, path, **params, **excluded, noredirect="true")
                location = _told(answer, str, "Location")
                if passed_over < PASSED_OVER and self._has_just_failed(location):
                    # The NameNode takes minutes to notice; until then it names another one only by chance.
                    passed_over += 1
                    continue
                return self._follow(location, consume), location
            except _DataNodeFailed as failure:
                avoid, tried = failure.host, tried + 1
                self._failed[urlsplit(location).netloc] = time.monotonic()
                if tried >= DATANODE_TRIES:
                    raise Refused("IOException", f"no DataNode answers: {failure}") from None
            except Refused as refusal:
                cut_off = is_cut_off(refusal) and time.monotonic() < deadline
                if cut_off or self._patience.may_settle(refusal):
                    self._patience.pause(tried + refused)
                    continue
                refused += 1
                # FileNotFoundException, AccessControlException and the like are about the file, and stay.
                if refused >= REFUSAL_TRIES or refusal.name != "IOException":
                    raise
            self._patience.pause(tried + refused)

    def _has_just_failed(self, location: str) -> bool:
        failed = self._failed.get(urlsplit(location).netloc)
        return failed is not None and time.monotonic() - failed < AVOIDED_S

    def _follow(self, location: str, consume: Any) -> bytes:
        host = urlsplit(location).hostname or ""
        try:
            response = self._datanodes.get(location, preload_content=consume is None)
            if response.status == 200:
                try:
                    return bytes(consume(response)) if consume else response.data
                finally:
                    response.release_conn()
            data = response.data if consume is None else response.read()
        except (HTTPError, OSError) as error:
            raise _DataNodeFailed(host, f"{urlsplit(location).netloc} ({reason(error)})") from None
        if response.status in BUSY:
            raise _DataNodeFailed(host, f"{urlsplit(location).netloc} (HTTP {response.status})")
        raise refusal_of(response.status, data, location)

    def _refuse_lagging(self, at: int) -> None:
        """Raise `Failover` for an observer NameNode or a standby, if it tells, and for one that does not answer now.

        An observer, and a standby with `dfs.ha.allow.stale.reads`, answers reads with a namespace that may lag
        (`NameNodeHAContext.allowStaleReads`), and WebHDFS carries no state id by which Hadoop's own client is made to
        wait.
        """
        # A look before each request would double the requests. A NameNode that becomes an observer later is not noticed
        # (docs/correctness.md).
        if at in self._actives:
            return
        state = (self._namenodes[at].bean(NAMENODE_STATUS) or {}).get("State")
        # A NameNode without the bean (HttpFS, a closed /jmx) counts as active: docs/correctness.md names that, too.
        if state in ("observer", "standby"):
            raise Failover(f"{self.endpoint.urls[at]} is {state}, not active")

    def _ask(self, op: str, path: str, **params: Any) -> dict[str, Any]:
        """Return the NameNode's JSON.

        Waits out standby, safe mode, overload and outage, and tries all NameNodes in turn.
        """
        deadline, turn = self._patience.deadline(), 0
        failures = dict[int, Failover]()
        while True:
            at = self.active
            try:
                self._limit.wait()
                self._refuse_lagging(at)
                answer = self._namenodes[at].ask(op, path, **params)
                self._actives.add(at)
                return answer
            except Failover as failure:
                self._actives.discard(at)  # It may come back as an observer; one that starts does not tell yet.
                # Several threads fail at once: only the first switches, or they would pass over the active one.
                if self.active == at:
                    self.active = (at + 1) % len(self.endpoint.urls)
                turn += 1
                failures[at] = failure
                all_tried = turn % len(self.endpoint.urls) == 0
                if all_tried and time.monotonic() >= deadline:
                    raise self._unreached(failures.values()) from None
                if all_tried:
                    self._patience.pause(turn // len(self.endpoint.urls))

    def _unreached(self, failures: Collection[Failover]) -> ConnectionFailed:
        """Return the error that ends a request once each NameNode has failed."""
        why = "; ".join(dict.fromkeys(map(str, failures)))
        if any(isinstance(one, Untold) for one in failures):
            return ConnectionFailed(
                f"cannot tell whether the NameNode at {self.endpoint} is active ({why}), and what an observer or a "
                "standby lists may lag: let a proxy before it pass /jmx on, or name the NameNode's own address by "
                "--webhdfs http://HOST:PORT; --only hdfs --hdfs-client native needs no /jmx"
            )
        return ConnectionFailed(
            f"cannot reach the NameNode at {self.endpoint} ({why}): is it running, and is WebHDFS on? --webhdfs "
            "http://HOST:PORT names another"
        )
