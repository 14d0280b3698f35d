"""The verdict of each round as a CloudEvent, one JSON line by HTTP POST.

The structured mode of CloudEvents 1.0: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from status_tool.errors import UsageError
from status_tool.printable import iso, print_beside, safe

TYPE = "io.github.statustool.verdict.v1"
CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
POST_TIMEOUT_S = 10.0
PAUSES_S = (1.0, 4.0, 16.0)
"""Before each further try."""
WAITING = 100
"""Number of events that wait for a receiver that does not answer; then the oldest is dropped."""
LAST_S = 5.0
"""Time that the end of a watch waits for its last event."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Lets a redirection fail. Followed, it is a GET without the event, whose answer would pass for a delivery."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


class Webhook:
    """Sends events in the background, in their order: a slow receiver delays no round."""

    def __init__(self, url: str) -> None:
        """Prepare the sender. Raises `UsageError` if the address is not HTTP."""
        self._url = url
        self._shown = _server_of(url)
        self._events: queue.Queue[bytes | None] = queue.Queue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="webhook")
        self._thread.start()

    def send(self, source: str, document: Mapping[str, Any]) -> None:
        """Hand over a round's result. Returns at once."""
        while self._events.qsize() >= WAITING:
            # The oldest goes first: the newest event tells how things are now.
            self._events.get_nowait()
        # The `id` is drawn here, once for all tries: a receiver tells by it that it got an event twice.
        self._events.put(json.dumps(event(source, document)).encode() + b"\n")

    def close(self) -> None:
        """Wait a few seconds for the last event to be delivered."""
        # Pauses end, so that the events that wait get their tries within `LAST_S`.
        self._closing.set()
        self._events.put(None)
        self._thread.join(LAST_S)

    def _work(self) -> None:
        while (body := self._events.get()) is not None:
            if problem := self._delivered(body):
                print_beside(f"the webhook at {self._shown} did not take an event: {problem}")

    def _delivered(self, body: bytes) -> str:
        """Try until the receiver has the event. Returns its last answer; empty once it has the event."""
        problem = ""
        for pause_s in (*PAUSES_S, 0.0):
            problem, again = self._posted(body)
            if not again:
                return problem
            self._closing.wait(pause_s)
        return problem

    def _posted(self, body: bytes) -> tuple[str, bool]:
        """Return what went wrong, and whether another try may help."""
        request = urllib.request.Request(self._url, body, {"Content-Type": CONTENT_TYPE}, method="POST")
        try:
            with _OPENER.open(request, timeout=POST_TIMEOUT_S):
                return "", False
        except urllib.error.HTTPError as error:
            with error:
                return f"HTTP {error.code}", error.code >= 500 or error.code in (408, 429)
        except (OSError, http.client.HTTPException, ValueError) as error:  # the last for a host that IDNA does not take
            return safe(str(getattr(error, "reason", error)) or type(error).__name__), True


def _server_of(url: str) -> str:
    """Return the address without user, path and query, which may hold a secret."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or not url.isprintable():
        raise UsageError("--webhook: expected http://HOST[:PORT]/… or https://…, without a user")
    return f"{parts.scheme}://{safe(parts.hostname)}{port}"


def event(source: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a CloudEvent; `source` names the two clusters, `document` is that of the round."""
    return {
        "specversion": "1.0",
        "id": str(uuid.uuid4()),
        "source": source,
        "type": TYPE,
        "time": iso(document["started_ms"]),
        "subject": document["verdict"] or "error",
        "datacontenttype": "application/json",
        "data": dict(document),
    }
