"""Sums over rows (docs/formats.md, "Row digests"), computed in plain Python over cells that were read."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby

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
    added = [_signed(word + key) for word, key in zip(struct.unpack(f"<{len(block) // 8}Q", block), keys, strict=False)]
    products = [first * second for first, second in zip(added[::2], added[1::2], strict=True)]
    return struct.pack("<2Q", sum(products) & _MASK, sum(product >> 64 for product in products) & _MASK)


def _signed(word: int) -> int:
    return (word + (1 << 63) & _MASK) - (1 << 63)


SUM_BITS = 128
_MODULUS = 1 << SUM_BITS
_PUT = 4
"""HBase's code of a cell's type. All visible cells are Puts."""
FOREVER = -(1 << 63)
"""Value of `Family.oldest`: no cell is too old."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A visible cell."""

    row: bytes
    family: bytes
    qualifier: bytes
    timestamp: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Family:
    """Cells of a family that both sides can be expected to have."""

    versions: int
    """The newest so many of a column."""
    oldest: int = FOREVER
    """Cells with a lower timestamp are left out: they may have outlived their TTL on one side only."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums modulo 2^128 and counts; those of parts add up in any order."""

    up_to: int = 0
    cells_up_to: int = 0
    beyond: int = 0
    """Sum of cells with a timestamp beyond the cut."""
    cells_beyond: int = 0
    rows: int = 0
    bytes: int = 0
    expiring: int = 0
    """Cells with a time to live of their own."""

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            (self.up_to + other.up_to) % _MODULUS,
            self.cells_up_to + other.cells_up_to,
            (self.beyond + other.beyond) % _MODULUS,
            self.cells_beyond + other.cells_beyond,
            self.rows + other.rows,
            self.bytes + other.bytes,
            self.expiring + other.expiring,
        )

    @property
    def cells(self) -> int:
        """Return the number of cells up to the cut and beyond it."""
        return self.cells_up_to + self.cells_beyond

    @property
    def content(self) -> tuple[int, ...]:
        """Return the values that are equal if the same cells were summed, whatever the cut."""
        return ((self.up_to + self.beyond) % _MODULUS, self.cells, self.rows)


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
