"""Sums over rows (docs/formats.md, "Row digests"), computed in plain Python over cells that were read."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


SUM_BITS = 128
_MODULUS = 1 << SUM_BITS
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
    """Return the bytes of a cell that are hashed: every field after its length.

    Its type (a Put) and its tags are left out.
    """
    parts = [struct.pack(">i", len(field)) + field for field in (cell.row, cell.family, cell.qualifier)]
    return b"".join(parts) + struct.pack(">qi", cell.timestamp, len(cell.value)) + cell.value


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
    number = int.from_bytes(siphash128(key, message), "little")
    if cell.timestamp <= cut:
        return Sums(up_to=number, cells_up_to=1, bytes=len(message))
    return Sums(beyond=number, cells_beyond=1, bytes=len(message))
