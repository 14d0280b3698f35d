"""Pages of `status-tool watch --listen`: metrics, health and the report of the last round."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from status_tool.errors import ConfigurationError

_REQUEST_S = 10.0
"""Time that a client may take to ask."""
_TEXT = "text/plain; charset=utf-8"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_JSON = "application/json"
_HTML = "text/html; charset=utf-8"


Render = Callable[[], Iterable[str]]
"""Renders a page, part by part."""


@dataclass(frozen=True)
class Pages:
    """Pages of the last round, each rendered when it is requested."""

    metrics: Render
    report: Render | None
    """None: no round has had a verdict yet."""
    health: dict[str, Any]


class HttpPages:
    """An HTTP server on its own threads. It has no access control: by default it listens on loopback only.

    `stale_s`: how long after the last round `/healthz` still answers 200. Raises `ConfigurationError` where the address
    cannot be used.
    """

    def __init__(self, host: str, port: int, stale_s: float) -> None:
        self._stale_s = stale_s
        self._lock = threading.Lock()
        self._pages: Pages | None = None
        self._report: tuple[Render, str] | None = None
        """The report that was made last, and of what: a client may have asked for that of the round before."""
        # `/healthz` counts from here until the first round ends, so a slow first round is no fault at once.
        self._at_s = time.monotonic()
        try:
            self._server = _Server((host, port), self)
        except (OSError, TypeError) as error:  # the latter for a host that IDNA does not take
            why = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"cannot listen on {host}:{port}: {why}") from None
        threading.Thread(target=self._server.serve_forever, name="status-tool-http", daemon=True).start()

    @property
    def port(self) -> int:
        """The port: the one that was free, if 0 was asked for."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """`host:port`, with an IPv6 address in brackets."""
        host = str(self._server.server_address[0])
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def show(self, pages: Pages) -> None:
        """Show a round from now on."""
        with self._lock:
            self._report = None
            self._pages, self._at_s = pages, time.monotonic()

    def answer(self, path: str) -> tuple[HTTPStatus, str, str]:
        """Return the HTTP status, content type and text for a path."""
        with self._lock:
            pages, age_s = self._pages, time.monotonic() - self._at_s
        if path == "/healthz":
            fresh = age_s < self._stale_s
            words = "ok" if fresh else f"no round has ended for {age_s:.0f} s"
            document = {"status": words, **(pages.health if pages is not None else {"rounds": 0})}
            return HTTPStatus.OK if fresh else HTTPStatus.SERVICE_UNAVAILABLE, _JSON, json.dumps(document) + "\n"
        if path not in ("/", "/metrics", "/report"):
            return HTTPStatus.NOT_FOUND, _TEXT, "there are /metrics, /healthz and /report\n"
        if pages is None:
            return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, "the first round has not ended yet\n"
        if path == "/metrics":
            return HTTPStatus.OK, _METRICS, "".join(pages.metrics())
        if pages.report is None:
            return HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, "no round has had a verdict yet\n"
        return HTTPStatus.OK, _HTML, self._page(pages.report)

    def _page(self, make: Render) -> str:
        """Return the report. Renders it once a round."""
        with self._lock:
            # Under the lock, so that clients that ask at once share one rendering; `show` waits for it, too.
            if self._report is None or self._report[0] is not make:
                self._report = make, "".join(make())
            return self._report[1]

    def close(self) -> None:
        """Stop listening; requests under way end with the process."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], pages: HttpPages) -> None:
        self.pages = pages
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without the name service, which `HTTPServer` asks for the host's name."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that leaves early."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _REQUEST_S
    server_version = "status-tool"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        assert isinstance(self.server, _Server)
        status, kind, text = self.server.pages.answer(self.path.partition("?")[0])
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        # A browser or proxy must not show the verdict of an earlier round.
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: stdout and stderr belong to the rounds."""
