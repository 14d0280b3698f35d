"""Picture of earlier checks in the HTML report: verdict, regions and files at fault, and lag over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from status_tool.printable import duration, iso
from status_tool.report.summary import in_parts
from status_tool.vocabulary.outcome import Moment
from status_tool.vocabulary.verdicts import Verdict

_WIDTH = 750
"""Length of the time axis, in the drawing's units."""
_LANE = 34
"""Height of a curve."""
_KEYS = {str(Verdict.COMPLETE): "c", str(Verdict.INCOMPLETE): "g", str(Verdict.UNVERIFIABLE): "u", None: "m"}
_NONE = "no verdict"


def timeline(history: Sequence[Moment]) -> dict[str, Any] | None:
    """Return the coordinates of the picture; None for fewer than two checks."""
    if len(history) < 2:
        return None
    # The axis is never empty, even if two checks have one time or the clock was set back.
    first, last = history[0].at_ms, max(history[-1].at_ms, history[0].at_ms + 1)

    def x_of(ms: int) -> float:
        return round(_WIDTH * (ms - first) / (last - first), 1)

    curves = [
        _curve("regions at fault", history, lambda one: one.regions_at_fault, x_of, str),
        _curve("files at fault", history, lambda one: one.files_at_fault, x_of, str),
        _curve("worst lag", history, lambda one: one.lag_ms or 0, x_of, duration),
    ]
    drawn = [curve for curve in curves if curve["most"]]
    return {
        "words": _sentence(history),
        "width": _WIDTH,
        "height": _LANE,
        "spans": list(_spans(history, x_of)),
        "lanes": drawn,
        "first": iso(first),
        "last": iso(last),
    }


def _sentence(history: Sequence[Moment]) -> str:
    count = {name or _NONE: sum(one.verdict == name for one in history) for name in (*map(str, Verdict), None)}
    return f"{len(history)} checks from {iso(history[0].at_ms)} to {iso(history[-1].at_ms)}: {in_parts(count)}."


def _spans(history: Sequence[Moment], x_of: Callable[[int], float]) -> Iterator[tuple[str, float, float, str]]:
    """Yield successive checks with the same verdict as one mark, up to the check that found another."""
    start = 0
    for at in range(1, len(history) + 1):
        if at < len(history) and history[at].verdict == history[start].verdict:
            continue
        end = min(at, len(history) - 1)
        left, right = x_of(history[start].at_ms), x_of(history[end].at_ms)
        name = history[start].verdict or _NONE
        title = f"{name} from {iso(history[start].at_ms)} to {iso(history[end].at_ms)}"
        # At least two units wide: a single check can be seen.
        yield _KEYS[history[start].verdict], left, max(2.0, round(right - left, 1)), title
        start = at


def _curve(
    name: str,
    history: Sequence[Moment],
    value: Callable[[Moment], int],
    x_of: Callable[[int], float],
    words: Callable[[int], str],
) -> dict[str, Any]:
    """Return the points of a line whose highest value fills its lane. Checks without a verdict are left out."""
    known = [(one.at_ms, value(one)) for one in history if one.verdict is not None]
    most = max((height for _, height in known), default=0)
    # Four units at either edge: half of the line's stroke would be cut off there.
    points = " ".join(f"{x_of(ms)},{round(4 + (_LANE - 8) * (1 - height / (most or 1)), 1)}" for ms, height in known)
    return {"name": name, "most": most, "words": f"{name}, at most {words(most)}", "points": points}
