"""Ratios of a benchmark: printed as they come, and kept as JSON lines where `make bench` asks for them.

A ratio compares two commands, or two ways to do one thing, that took turns within one run on one machine. What it was
measured with (`ours`, `theirs`) is kept round by round, so that a reader sees how far the rounds lie apart.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS_VARIABLE = "STATUS_TOOL_BENCH_RESULTS"
"""The file that `record` appends to; nothing is kept where it is not set."""

Measure = tuple[str, str, str, float, str, str]
"""What was measured, and at which size: the same one run again has the same."""


@dataclass(frozen=True)
class Ratio:
    """How many times what `theirs` took `ours` took, in rounds by turns.

    `what` against `against`, over `size` of `sizes` ("streams", "rows", "files"), in `unit` ("s", "CPU s", "MiB",
    "bytes"; with "/s" at its end more is better). `limit` says what bounds `what`, in a few words.
    """

    bench: str
    what: str
    against: str
    size: float
    sizes: str
    unit: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    aim: str = ""
    limit: str = ""

    @property
    def measure(self) -> Measure:
        """Benchmark, both contestants, size, and unit."""
        return (self.bench, self.what, self.against, self.size, self.sizes, self.unit)

    @property
    def ratio(self) -> float:
        """Median of the rounds' ratios; median of ours over median of theirs where the rounds are not pairs."""
        return statistics.median(self._by_round())

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the greatest ratio of a round; the ratio itself where the rounds are not pairs."""
        by_round = self._by_round()
        return min(by_round), max(by_round)

    def _by_round(self) -> list[float]:
        if len(self.ours) != len(self.theirs):
            return [statistics.median(self.ours) / statistics.median(self.theirs)]
        return [mine / other for mine, other in zip(self.ours, self.theirs, strict=True)]

    @property
    def interval(self) -> float | None:
        """Half the width of the 95 % interval of the mean ratio of a round (Student's t); None below four rounds."""
        by_round = self._by_round()
        if len(by_round) < 4:
            return None
        return _student_t(len(by_round) - 1) * statistics.stdev(by_round) / math.sqrt(len(by_round))

    @property
    def mean_with_interval(self) -> str:
        """Mean ratio of a round, and its interval."""
        interval = self.interval
        reached = "too few rounds for an interval" if interval is None else f"± {interval:.3f}, 95 %"
        return f"mean of a round {statistics.mean(self._by_round()):.3f} ({reached}, {len(self.ours)} rounds)"

    def __str__(self) -> str:
        low, high = self.spread
        mine, other = statistics.median(self.ours), statistics.median(self.theirs)
        rounds = f"{len(self.ours)} round{'s' * (len(self.ours) != 1)}"
        return (
            f"{self.what} / {self.against}, {self.size:,.0f} {self.sizes}: {self.ratio:.2f} ({low:.2f} to {high:.2f}, "
            f"{rounds}; {mine:,.2f} against {other:,.2f} {self.unit})"
        )


def _student_t(freedom: int) -> float:
    """Its quantile for 95 % on both sides, by the expansion of Cornish and Fisher; to 1 % from 3 degrees on."""
    z = statistics.NormalDist().inv_cdf(0.975)
    terms = (z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    return math.fsum(term / freedom**power for power, term in enumerate(terms))


def record(ratio: Ratio) -> None:
    """Print the ratio, and append it to the file of RESULTS_VARIABLE."""
    print(ratio, flush=True)
    if path := os.environ.get(RESULTS_VARIABLE):
        with open(path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(ratio)) + "\n")


def read_results(path: Path) -> Sequence[Ratio]:
    """The ratios of a file, in the order in which they were measured."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_from(json.loads(line)) for line in lines]


def _from(fields: dict[str, Any]) -> Ratio:
    return Ratio(**{**fields, "ours": tuple(fields["ours"]), "theirs": tuple(fields["theirs"])})
