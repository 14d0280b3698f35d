"""Cost against size, with the lines of what it is compared with: `python -m bench.plot [RESULTS [SVG]]`.

A panel for everything that was measured at several sizes. The picture has no background, and greys and colours that can
be read on a light page and on a dark one; the same results make the same file. Needs matplotlib (`.venv-bench`).
"""

from __future__ import annotations

import hashlib
import statistics
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.results import Ratio, read_results
from bench.table import BUILT, RESULTS, newest

SVG = BUILT / "performance.svg"
GREY = "#7a7a7a"
COLOURS = ("#d9730d", "#2f80ed", "#1f9d6b", "#b455c9", "#b08d00", "#d6456b")
COLUMNS = 3
PANEL = 4.2, 3.2
"""Inches, wide and high."""

Panel = tuple[str, str, str, str]
Lines = Mapping[str, Mapping[float, float]]
"""By name the medians by size."""


def main() -> None:
    """Draw the results."""
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    svg = Path(sys.argv[2]) if len(sys.argv) > 2 else SVG
    svg.parent.mkdir(parents=True, exist_ok=True)
    draw(panels(newest(read_results(results))), svg, source_of(results))


def source_of(results: Path) -> str:
    """What a picture says it was drawn from."""
    return f"{results.name} {hashlib.sha256(results.read_bytes()).hexdigest()}"


def panels(ratios: Iterable[Ratio]) -> dict[Panel, Lines]:
    """By benchmark, what was measured, sizes and unit the lines; ours is the first."""
    found: dict[Panel, dict[str, dict[float, float]]] = {}
    for ratio in ratios:
        lines = found.setdefault((ratio.bench, ratio.what, ratio.sizes, ratio.unit), {ratio.what: {}})
        lines[ratio.what][ratio.size] = statistics.median(ratio.ours)
        lines.setdefault(ratio.against, {})[ratio.size] = statistics.median(ratio.theirs)
    return {panel: lines for panel, lines in found.items() if len(lines[panel[1]]) > 1}


def draw(shown: Mapping[Panel, Lines], svg: Path, source: str) -> None:
    """Write the picture."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    grey = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY)
    style = {"svg.fonttype": "none", "svg.hashsalt": "status-tool", "font.family": "sans-serif", "font.size": 9}
    with mpl.rc_context({**grey, **style}):
        rows = max(1, -(-len(shown) // COLUMNS))
        figure = Figure(figsize=(PANEL[0] * COLUMNS, PANEL[1] * rows), layout="constrained")
        for at, (panel, lines) in enumerate(shown.items(), 1):
            _panel(figure.add_subplot(rows, COLUMNS, at), panel, lines)
        metadata = {"Date": None, "Creator": "python -m bench.plot", "Source": source}
        figure.savefig(svg, format="svg", transparent=True, metadata=metadata)


def _panel(axes: Any, panel: Panel, lines: Lines) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    bench, what, sizes, unit = panel
    for colour, (name, points) in zip(COLOURS * len(lines), lines.items(), strict=False):
        places = sorted(points)
        heights = [points[place] for place in places]
        width = 2 if name == what else 1
        axes.plot(places, heights, marker="o", markersize=4, color=colour, linewidth=width, label=name)
    axes.set(xscale="log", yscale="log", xlabel=sizes, ylabel=unit, title=f"{bench}: {what}")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.legend(frameon=False, labelcolor="linecolor", fontsize=8)
    axes.grid(True, which="major", color=GREY, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
