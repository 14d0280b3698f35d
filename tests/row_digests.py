"""Row digests in plain Python, as region servers compute them (docs/formats.md, "Row digests")."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from status_tool.digests.digest import Family, Sums

_MASK = (1 << 64) - 1


def siphash128(key: bytes, data: bytes) -> bytes:
    """Return the 16 bytes of the reference implementation's output; `key` has 16 bytes."""
    k0, k1 = struct.unpack("<2Q", key)
    state = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    whole = len(data) & ~7
    tail = int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56
    for word in (*struct.unpack(f"<{whole // 8}Q", data[:whole]), tail):
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


_BLOCK = 1024


@cache
def _keys(key: bytes) -> tuple[int, ...]:
    """Return the words that NH adds to those of a block."""
    return struct.unpack(
        f"<{_BLOCK // 8}Q", b"".join(siphash128(key, struct.pack("<q", at)) for at in range(0, _BLOCK // 8, 2))
    )


def cell_hash(key: bytes, message: bytes) -> bytes:
    """Return 16 bytes: each KiB is compressed by NH, with signed products, and SipHash hashes what comes of it.

    The last pair of words is the message's last 16 bytes.
    """
    pairs = [message[at : at + 16] for at in range(0, len(message) - 16, 16)] + [message[-16:]]
    blocks = (b"".join(pairs[at : at + _BLOCK // 16]) for at in range(0, len(pairs), _BLOCK // 16))
    return siphash128(key, b"".join(_compressed(_keys(key), block) for block in blocks))


def _compressed(keys: tuple[int, ...], block: bytes) -> bytes:
    added = [signed(word + key) for word, key in zip(struct.unpack(f"<{len(block) // 8}Q", block), keys, strict=False)]
    products = [first * second for first, second in zip(added[::2], added[1::2], strict=True)]
    return struct.pack("<2Q", sum(products) & _MASK, sum(product >> 64 for product in products) & _MASK)


def signed(word: int) -> int:
    """As Java has a sum that overflows a long."""
    return (word + (1 << 63) & _MASK) - (1 << 63)


_PUT = 4
"""HBase's code of a cell's type. All visible cells are Puts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A visible cell."""

    row: bytes
    family: bytes
    qualifier: bytes
    timestamp: int
    value: bytes


def framed(cell: Cell) -> bytes:
    """Return the bytes of a cell that are hashed: its KeyValue, as HBase writes it to a file, without tags."""
    row = struct.pack(">h", len(cell.row)) + cell.row
    column = struct.pack(">b", len(cell.family)) + cell.family + cell.qualifier
    key = row + column + struct.pack(">qb", cell.timestamp, _PUT)
    return struct.pack(">2i", len(key), len(cell.value)) + key + cell.value


def digest(cells: Iterable[Cell], key: bytes, cut: int, families: Mapping[bytes, Family]) -> Sums:
    """Sum up cells in HBase's order (by row, family, qualifier, newest first), as a region server does."""
    total = Sums()
    for _, row in groupby(cells, lambda cell: cell.row):
        sums = Sums()
        for (family, _), column in groupby(row, lambda cell: (cell.family, cell.qualifier)):
            kept = list(column)[: families[family].versions]
            for cell in kept:
                if cell.timestamp >= families[family].oldest:
                    sums += _one(cell, key, cut)
        total += sums + Sums(rows=1) if sums.cells else sums
    return total


def _one(cell: Cell, key: bytes, cut: int) -> Sums:
    message = framed(cell)
    number = int.from_bytes(cell_hash(key, message), "little")
    if cell.timestamp <= cut:
        return Sums(up_to=number, cells_up_to=1, bytes=len(message))
    return Sums(beyond=number, cells_beyond=1, bytes=len(message))
