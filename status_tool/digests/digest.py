"""Families and sums of a row digest (docs/formats.md, "Row digests"), which region servers compute."""

from __future__ import annotations

from dataclasses import dataclass

_MODULUS = 1 << 128
FOREVER = -(1 << 63)
"""Value of `Family.oldest`: no cell is too old."""


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
