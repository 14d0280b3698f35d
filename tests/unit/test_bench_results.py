"""The ratios of benchmarks."""

from __future__ import annotations

import statistics

import pytest

from bench.results import Ratio

QUANTILES = {4: 3.182, 6: 2.571, 11: 2.228, 31: 2.042, 121: 1.980}
"""By the number of rounds: Student's t for 95 % on both sides, from tables of it."""


@pytest.mark.parametrize(("rounds", "quantile"), QUANTILES.items())
def test_the_interval_is_that_of_student(rounds: int, quantile: float) -> None:
    """Of the mean ratio of a round, to 1 %."""
    ratios = tuple(1 + 0.01 * (number % 5) for number in range(rounds))
    interval = ratio_of(ratios).interval
    assert interval == pytest.approx(quantile * statistics.stdev(ratios) / rounds**0.5, rel=0.01)


def test_three_rounds_have_no_interval() -> None:
    """They say too little."""
    few = ratio_of((1.0, 1.1, 0.9))
    assert few.interval is None
    assert "too few" in few.mean_with_interval


def ratio_of(ratios: tuple[float, ...]) -> Ratio:
    """What took so many times two seconds."""
    return Ratio("b", "this", "that", 1, "rows", "s", tuple(2 * one for one in ratios), (2.0,) * len(ratios))
