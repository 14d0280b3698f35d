"""HTTP servers of tests, each with one function that answers, on a port of the system's choice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body."""


def serve(
    answer: Callable[[BaseHTTPRequestHandler], Answer],
    *,
    keeps_alive: bool = False,
    connected: Callable[[], None] = lambda: None,
) -> ThreadingHTTPServer:
    """Start a server that answers GET, PUT and POST; `connected` is called for each connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if keeps_alive else "HTTP/1.0"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            connected()

        def do_GET(self) -> None:
            status, headers, body = answer(self)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


@contextmanager
def ended(*servers: ThreadingHTTPServer) -> Iterator[None]:
    """End servers after the block."""
    try:
        yield
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def url_of(server: ThreadingHTTPServer) -> str:
    """Return where it answers."""
    return f"http://127.0.0.1:{server.server_port}"
