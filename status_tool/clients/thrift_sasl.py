"""Thrift's SASL transport, as Java's `TSaslTransport` has it.

A negotiation in frames of a status byte, an int32 length and a payload: the client names the mechanism (START) and goes
on with tokens (OK) until both are done (COMPLETE); BAD and ERROR carry a message. Then frames of an int32 length, whose
content the mechanism's layer protects. A frame has no more than one message's part: messages begin and end anywhere.
"""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Protocol

from thriftpy2.transport import TTransportBase, TTransportException

from status_tool.errors import ConnectionFailed

MOST_IN_MESSAGE = 1 << 20
"""The longest message of a negotiation (Java takes 104,857,600 bytes); a server of another kind sends text here."""

_READ_BYTES = 1 << 18


class Stage(IntEnum):
    """Status byte of a message of the negotiation."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


class Mechanism(Protocol):
    """The client's side of a SASL mechanism; see `sasl.GssapiClient`."""

    mechanism: str
    complete: bool

    def step(self, challenge: bytes | None) -> bytes: ...

    def wrap(self, data: bytes) -> Iterator[bytes]: ...

    def unwrap(self, data: bytes) -> bytes: ...


class Rejected(ConnectionFailed):
    """The server ended the negotiation."""


class SaslTransport(TTransportBase):
    """Over another transport, which it opens and closes; to be buffered by one above it."""

    def __init__(self, inner: Any, mechanism: Callable[[], Mechanism]) -> None:
        """Wrap a transport; `mechanism` makes a mechanism for each connection."""
        self._inner, self._make = inner, mechanism
        self._mechanism: Mechanism | None = None
        self._written = io.BytesIO()
        self._readable = io.BytesIO()

    def is_open(self) -> bool:
        """Return True if a negotiation has succeeded and the transport has stayed open since."""
        return self._mechanism is not None and bool(self._inner.is_open())

    def open(self) -> None:
        """Connect and negotiate. Raises `ConnectionFailed` for what no second attempt would mend."""
        mechanism = self._make()  # needs a ticket: no connection without one
        self._inner.open()
        try:
            self._negotiate(mechanism)
        except BaseException:
            self.close()
            raise
        self._mechanism = mechanism

    def close(self) -> None:
        """Drop the connection."""
        self._mechanism = None
        self._written, self._readable = io.BytesIO(), io.BytesIO()
        with contextlib.suppress(Exception):
            self._inner.close()

    def read(self, size: int) -> bytes:
        """Return the available part of a frame, at most this many bytes."""
        while not (found := self._readable.read(size)):
            self._readable = io.BytesIO(self._layer().unwrap(self._frame()))
        return found

    def write(self, data: bytes) -> None:
        """Add to the message."""
        self._written.write(data)

    def flush(self) -> None:
        """Send the message."""
        # A message that fails must not go out with the next one.
        data, self._written = self._written.getvalue(), io.BytesIO()
        for part in self._layer().wrap(data):
            self._inner.write(struct.pack(">i", len(part)) + part)
        self._inner.flush()

    def _layer(self) -> Mechanism:
        if self._mechanism is None:
            raise TTransportException(TTransportException.NOT_OPEN, "the connection was closed")
        return self._mechanism

    def _frame(self) -> bytes:
        (length,) = struct.unpack(">i", self._exactly(4))
        if length < 0:
            raise TTransportException(TTransportException.UNKNOWN, "a frame without a length")
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        """Read exactly so many bytes. A frame may have many; each read copies only its own."""
        parts = list[bytes]()
        while count:
            parts.append(self._inner.read(min(count, _READ_BYTES)))
            if not parts[-1]:
                raise TTransportException(TTransportException.END_OF_FILE, "the server has closed the connection")
            count -= len(parts[-1])
        return b"".join(parts)

    def _negotiate(self, mechanism: Mechanism) -> None:
        self._send(Stage.START, mechanism.mechanism.encode("ascii"))
        self._send(Stage.OK, mechanism.step(None))
        while not mechanism.complete:
            status, challenge = self._receive()
            if status is not Stage.OK:
                raise TTransportException(TTransportException.UNKNOWN, "the server ended the negotiation early")
            answer = mechanism.step(challenge)
            self._send(Stage.COMPLETE if mechanism.complete else Stage.OK, answer)
        if self._receive()[0] is not Stage.COMPLETE:
            raise TTransportException(TTransportException.UNKNOWN, "the server did not end the negotiation")

    def _send(self, status: Stage, payload: bytes) -> None:
        self._inner.write(struct.pack(">bi", status, len(payload)) + payload)
        self._inner.flush()

    def _receive(self) -> tuple[Stage, bytes]:
        code, length = struct.unpack(">bi", self._exactly(5))
        if code not in tuple(Stage) or not 0 <= length <= MOST_IN_MESSAGE:
            raise TTransportException(TTransportException.UNKNOWN, "its answer is none of SASL's")
        payload = self._exactly(length)
        if code in (Stage.BAD, Stage.ERROR):
            raise Rejected(payload.decode(errors="replace").strip()[:200] or "no reason given")
        return Stage(code), payload
