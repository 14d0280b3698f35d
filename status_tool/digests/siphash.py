"""SipHash-2-4 with 128 bits in plain Python: the oracle of the trackers' own (`SipHash128.java`)."""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1


def siphash128(key: bytes, data: bytes) -> bytes:
    """Return the 16 bytes of the reference implementation's output; `key` has 16 bytes."""
    k0, k1 = struct.unpack("<2Q", key)
    state = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D ^ 0xEE,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    whole = len(data) & ~7
    words = [*struct.unpack(f"<{whole // 8}Q", data[:whole]), _tail(data, whole)]
    for word in words:
        state[3] ^= word
        _rounds(state, 2)
        state[0] ^= word
    state[2] ^= 0xEE
    _rounds(state, 4)
    low = state[0] ^ state[1] ^ state[2] ^ state[3]
    state[1] ^= 0xDD
    _rounds(state, 4)
    high = state[0] ^ state[1] ^ state[2] ^ state[3]
    return struct.pack("<2Q", low, high)


def _tail(data: bytes, start: int) -> int:
    return int.from_bytes(data[start:], "little") | (len(data) & 0xFF) << 56


def _rounds(state: list[int], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a = (a + b) & _MASK
        c = (c + d) & _MASK
        b = _left(b, 13) ^ a
        d = _left(d, 16) ^ c
        a = _left(a, 32)
        c = (c + b) & _MASK
        a = (a + d) & _MASK
        b = _left(b, 17) ^ c
        d = _left(d, 21) ^ a
        c = _left(c, 32)
    state[:] = a, b, c, d


def _left(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK
