"""Tables of kept results: `python -m bench.table [RESULTS]`.

Writes the aims, each at the largest size that was measured, between the markers of docs/performance.md, and the whole
table into build/bench/results.md.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.results import Ratio, read_results

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.jsonl"
"""The results that the documents show."""
PAGE = HERE.parent / "docs/performance.md"
BUILT = HERE.parent / "build/bench"
"""Where the whole table and the plot go."""
START, END = "<!-- from bench/results.jsonl, by python -m bench.table -->\n", "<!-- until here -->\n"
HEADINGS = ("`bench.`", "what", "against", "size", "times", "least and most", "measured", "aim", "limited by")
SHOWN = ("what", "against", "size", "times", "measured", "aim")
"""What the page has room for."""


def main() -> None:
    """Write both tables."""
    results = read_results(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    BUILT.mkdir(parents=True, exist_ok=True)
    (BUILT / "results.md").write_text("\n".join(table(newest(results))) + "\n", encoding="utf-8")


def with_table(page: str, ratios: Sequence[Ratio]) -> str:
    """The page with the table of the aims."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n" + "\n".join(table(aims(newest(ratios)), SHOWN)) + f"\n\n{END}{after}"


def aims(ratios: Iterable[Ratio]) -> list[Ratio]:
    """Those that have an aim, at the largest size."""
    largest: dict[tuple[str, ...], Ratio] = {}
    for ratio in ratios:
        key = (ratio.bench, ratio.what, ratio.against, ratio.unit)
        if ratio.aim and (key not in largest or ratio.size >= largest[key].size):
            largest[key] = ratio
    return list(largest.values())


def newest(ratios: Iterable[Ratio]) -> list[Ratio]:
    """Of what was measured again the last one, where it was measured first."""
    found: dict[tuple[object, ...], Ratio] = {}
    for ratio in ratios:
        found[ratio.bench, ratio.what, ratio.against, ratio.size, ratio.sizes, ratio.unit] = ratio
    return list(found.values())


def table(ratios: Sequence[Ratio], headings: Sequence[str] = HEADINGS) -> Iterator[str]:
    """Its lines, with these columns and cells of equal width."""
    columns = [HEADINGS.index(heading) for heading in headings]
    rows = [[row[at] for at in columns] for row in (HEADINGS, *_cells(ratios))]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if not number:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _cells(ratios: Sequence[Ratio]) -> Iterator[tuple[str, ...]]:
    for ratio in ratios:
        low, high = ratio.spread
        ours, theirs = map(statistics.median, (ratio.ours, ratio.theirs))
        yield (
            ratio.bench,
            ratio.what,
            ratio.against,
            f"{ratio.size:,.0f} {ratio.sizes}",
            number(ratio.ratio),
            f"{number(low)} to {number(high)}" if len(ratio.ours) > 1 else "one round",
            f"{number(ours)} against {number(theirs)} {ratio.unit}",
            ratio.aim,
            ratio.limit,
        )


def number(value: float) -> str:
    """With three digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
