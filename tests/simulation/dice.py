"""One number decides everything a step does, so that a run is a list of numbers: replayed, and cut down, as such."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

STEP_BYTES = 6


class Dice:
    """Takes choices out of one number, the least significant first; 0 once it is used up."""

    def __init__(self, number: int) -> None:
        self._left = number

    def below(self, bound: int) -> int:
        """A number in `[0, bound)`."""
        self._left, rolled = divmod(self._left, bound)
        return rolled

    def once_in(self, chances: int) -> bool:
        """True once in so many rolls; a used up dice says no."""
        return self.below(chances) == chances - 1

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self.below(len(choices))]


def numbers(schedule: bytes) -> list[int]:
    """The steps that a string of bytes stands for."""
    ends = range(STEP_BYTES, len(schedule) + 1, STEP_BYTES)
    return [int.from_bytes(schedule[end - STEP_BYTES : end], "big") for end in ends]
