"""Tables of kept results: `python -m bench.table [RESULTS]`.

Writes the aims, each at the largest size that was measured, between the markers of docs/performance.md, and the whole
table into build/bench/results.md.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.results import Measure, Ratio, read_results

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.jsonl"
"""The results that the documents show."""
PAGE = HERE.parent / "docs/performance.md"
BUILT = HERE.parent / "build/bench"
"""Where the whole table and the plot go."""
START, END = "<!-- from bench/results.jsonl, by python -m bench.table -->\n", "<!-- until here -->\n"
HEADINGS = ("`bench.`", "what", "against", "size", "times", "before", "least and most", "measured", "aim", "limited by")
SHOWN = ("what", "against", "size", "times", "before", "measured", "aim")
"""What the page has room for."""


def main() -> None:
    """Write both tables."""
    results = read_results(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    BUILT.mkdir(parents=True, exist_ok=True)
    (BUILT / "results.md").write_text("\n".join(table(newest(results), before(results))) + "\n", encoding="utf-8")


def with_table(page: str, ratios: Sequence[Ratio]) -> str:
    """The page with the table of the aims."""
    above, rest = page.split(START)
    _, below = rest.split(END)
    lines = table(aims(newest(ratios)), before(ratios), SHOWN)
    return f"{above}{START}\n" + "\n".join(lines) + f"\n\n{END}{below}"


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
    return list({ratio.measure: ratio for ratio in ratios}.values())


def before(ratios: Iterable[Ratio]) -> Mapping[Measure, float]:
    """What was measured the time before the last, of what was measured again."""
    found: dict[Measure, list[float]] = defaultdict(list)
    for ratio in ratios:
        found[ratio.measure].append(ratio.ratio)
    return {measure: values[-2] for measure, values in found.items() if len(values) > 1}


def table(
    ratios: Sequence[Ratio], earlier: Mapping[Measure, float], headings: Sequence[str] = HEADINGS
) -> Iterator[str]:
    """Its lines, with these columns and cells of equal width, and beside each ratio what was measured before."""
    columns = [HEADINGS.index(heading) for heading in headings]
    rows = [[row[at] for at in columns] for row in (HEADINGS, *_cells(ratios, earlier))]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if not number:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _cells(ratios: Sequence[Ratio], earlier: Mapping[Measure, float]) -> Iterator[tuple[str, ...]]:
    for ratio in ratios:
        low, high = ratio.spread
        ours, theirs = map(statistics.median, (ratio.ours, ratio.theirs))
        yield (
            ratio.bench,
            ratio.what,
            ratio.against,
            f"{ratio.size:,.0f} {ratio.sizes}",
            number(ratio.ratio),
            number(earlier[ratio.measure]) if ratio.measure in earlier else "",
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
