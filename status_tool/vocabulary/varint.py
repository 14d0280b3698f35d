"""Protobuf's varints, in which Thrift's compact protocol and HBase's delimited messages have their lengths, too."""

from __future__ import annotations

_MOST_BYTES = 10
"""Of 64 bits, seven in each."""


def varint(data: bytes, at: int = 0) -> tuple[int, int] | None:
    """Return the number that begins at a place, the lowest bits first, and where it ends; None if it does not end."""
    value = 0
    for place, byte in enumerate(data[at : at + _MOST_BYTES]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    return None
