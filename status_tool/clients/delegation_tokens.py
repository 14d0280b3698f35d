"""Delegation tokens of WebHDFS: by them Spark's executors, which have no tickets, read as the user of this process.

So does this process: for each file that a ticket opens, a NameNode issues a token of its own. A token is got by the
ticket, renewed while a run lasts and cancelled at its end, however that ends. Whoever has it is that user to HDFS: it
goes to executors with the endpoint, and nowhere else.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from status_tool.clients.hdfscli import Refused
from status_tool.clients.webhdfs import HdfsEndpoint, WebHdfs
from status_tool.errors import ConnectionFailed, StatusToolError

_RENEWED_AT = 0.75
"""The share of the time that is left after which a token is renewed."""
_RETRY_S, _LEAST_S = 60.0, 1.0


@dataclass
class _Held:
    """A token that is to be renewed and cancelled."""

    endpoint: HdfsEndpoint
    """Endpoint without the token: by the ticket."""
    delegated: HdfsEndpoint
    """With the token, the NameNode that was active when it gave it first.

    Others may lag (`WebHdfs`), and a NameNode that asks for a ticket for /jmx tells nobody with a token.
    """
    until: float

    @property
    def is_worthless(self) -> bool:
        return time.time() >= self.until


class _Tokens:
    """The tokens of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[HdfsEndpoint, _Held] = {}
        self._over = threading.Event()
        self._over.set()
        self.runs = 0

    def of(self, endpoint: HdfsEndpoint) -> HdfsEndpoint:
        """Return an endpoint with its token, and get one at first; without, if the NameNode gives none."""
        with self._lock:
            held = self._held.get(endpoint)
            if held is None or held.is_worthless:
                held = _new(endpoint)
                if held is None:
                    return endpoint
                self._held[endpoint] = held
                if self._over.is_set():
                    # The event of before has ended the thread that renewed tokens which are cancelled by now.
                    self._over = threading.Event()
                    threading.Thread(target=self._renew, args=(self._over,), name="hdfs-tokens", daemon=True).start()
            return held.delegated

    def cancel_all(self) -> None:
        """Cancel all tokens. If a NameNode does not answer, its tokens expire a day after their last renewal."""
        with self._lock:
            held, self._held = list(self._held.values()), {}
            self._over.set()
        # Outside the lock: a NameNode that does not answer must not block threads that want a token.
        for one in held:
            with suppress(StatusToolError, Refused):
                _client(one.endpoint).cancel_token(one.delegated.token)

    def _renew(self, over: threading.Event) -> None:
        while not over.wait(self._pause_s()):
            with self._lock:
                held = list(self._held.values())
            for one in held:
                # The next turn tries again. A token that has run out shows where it is used (`TokenNameNode`).
                with suppress(StatusToolError, Refused):
                    one.until = _client(one.endpoint).renew_token(one.delegated.token)

    def _pause_s(self) -> float:
        with self._lock:
            # A pause is a share of what is left: after a renewal that failed, the turns come ever sooner.
            left = min((one.until for one in self._held.values()), default=0.0) - time.time()
        return max(_LEAST_S, left * _RENEWED_AT) if left > _RETRY_S else max(_LEAST_S, min(_RETRY_S, left / 2))


_TOKENS = _Tokens()


def delegated(endpoint: HdfsEndpoint) -> HdfsEndpoint:
    """Return the endpoint with a delegation token, got with this process's ticket.

    It is cancelled at the end of `no_token_left`, outside of it when this process ends. Raises `ConnectionFailed`.
    """
    try:
        return _TOKENS.of(endpoint)
    except Refused as refusal:
        raise ConnectionFailed(f"HDFS at {endpoint} gives no delegation token: {refusal}") from None


@contextmanager
def no_token_left() -> Iterator[None]:
    """Cancel all tokens that were got inside the block, however the block ends.

    If blocks nest, the outermost cancels them.
    """
    _TOKENS.runs += 1
    try:
        yield
    finally:
        _TOKENS.runs -= 1
        if not _TOKENS.runs:
            _TOKENS.cancel_all()


atexit.register(_TOKENS.cancel_all)


def _new(endpoint: HdfsEndpoint) -> _Held | None:
    client = _client(endpoint)
    token, active = client.new_token(), client.active
    if not token:
        return None
    try:
        # As Hadoop does it: a first renewal tells until when the token is good.
        until = client.renew_token(token)
    except (StatusToolError, Refused):
        with suppress(StatusToolError, Refused):
            client.cancel_token(token)
        raise
    urls = (*endpoint.urls[active:], *endpoint.urls[:active])
    return _Held(endpoint, replace(endpoint, urls=urls, token=token), until)


def _client(endpoint: HdfsEndpoint) -> WebHdfs:
    # `of` holds the lock meanwhile, and the end of a run waits for `cancel_all`: neither waits for a NameNode that is
    # away.
    return WebHdfs(endpoint, patience_s=0)
