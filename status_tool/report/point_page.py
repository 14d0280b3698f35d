"""The page of `recovery-point --report`: up to when each table is proven, and how far its entries reach, in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from status_tool.printable import iso
from status_tool.report.html_report import page_text, small_page, table_of
from status_tool.vocabulary.outcome import RecoveryPoint, TablePoint

_WIDTH = 900
_NAMES = 220
"""Width of the column of names, in the drawing's units."""
_LANE = 22
_BAR = 12
_NAME_LETTERS = 32
_COLUMNS = ("table", "proven to", "newest entry", "entries known to be missing", "held back by")


def point_page(point: RecoveryPoint, sentences: Sequence[str], style: str, stream: TextIO) -> None:
    """Write the page. The first of `sentences` is its headline, in the `style` of a verdict."""
    with small_page(f"Recovery point of {point.slave_cluster_id}, {iso(point.read_ms)}", stream):
        headline, *others = sentences
        stream.write(f'<p class="verdict {style}">{page_text(headline)}</p>\n')
        stream.writelines(f"<p>{page_text(sentence)}</p>\n" for sentence in (*others, *point.notices))
        stream.writelines(f"{line}\n" for line in _axis(point))
        if point.tables:
            rows = [_row(name, table) for name, table in point.tables.items()]
            stream.writelines(f"{line}\n" for line in table_of(rows, _COLUMNS))


def _row(name: str, table: TablePoint) -> tuple[object, ...]:
    point, newest = (iso(time) if time is not None else "" for time in (table.point_ms, table.beyond.newest_ms))
    return (name, f"{point}{table.proof}", newest, table.beyond.missing or "", table.held_back_by or "")


def _axis(point: RecoveryPoint) -> Iterator[str]:
    """Yield a lane for each table: full up to its point, hollow from there to its newest entry."""
    lanes = [(name, table.point_ms, table.beyond.newest_ms) for name, table in point.tables.items()]
    marks = {"recovery point": point.point_ms, "newest published file": point.newest_ms, "asked": point.read_ms}
    known = [time for time in (*marks.values(), *(time for lane in lanes for time in lane[1:])) if time is not None]
    if point.newest_ms is None or not lanes:
        return
    first, last = min(known), max(known)
    # A tenth of the axis lies before the oldest of them, so that its bar can be seen.
    first -= max(1, (last - first) // 10)

    def x_of(time_ms: int) -> float:
        return round(_NAMES + (_WIDTH - _NAMES) * (time_ms - first) / (last - first), 1)

    height = _LANE * (len(lanes) + 2)
    yield f'<div class="scroll"><svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img">'
    yield f"<title>From {iso(first)} to {iso(last)}: each table up to its recovery point and newest entry</title>"
    for name, time in marks.items():
        if time is not None:
            x, words = x_of(time), page_text(f"{name}: {iso(time)}")
            yield f'<path class="mark" d="M{x} {_LANE} V{height - _LANE}"><title>{words}</title></path>'
    for number, lane in enumerate(lanes, 1):
        yield from _lane(lane, _LANE * number, x_of)
    yield f'<text class="dim" x="{_NAMES}" y="{height - 6}">{iso(first)}</text>'
    yield f'<text class="dim" x="{_WIDTH}" y="{height - 6}" text-anchor="end">{iso(last)}</text>'
    yield "</svg></div>"
    yield (
        "<p>A full bar ends at the table's recovery point, a hollow one at its newest entry. Dashed lines: "
        "the recovery point of the whole, the newest published file, and when the question was asked.</p>"
    )


def _lane(lane: tuple[str, int | None, int | None], y: int, x_of: Callable[[int], float]) -> Iterator[str]:
    name, point_ms, newest_ms = lane
    yield f'<text x="0" y="{y + _BAR}">{page_text(name, _NAME_LETTERS)}<title>{page_text(name)}</title></text>'
    start: float = _NAMES
    if point_ms is not None:
        yield _bar("proven", start, x_of(point_ms), y, f"{name}: proven to {iso(point_ms)}")
        start = x_of(point_ms)
    if newest_ms is not None and x_of(newest_ms) > start:
        yield _bar("beyond", start, x_of(newest_ms), y, f"{name}: newest entry {iso(newest_ms)}")


def _bar(style: str, start: float, end: float, y: int, words: str) -> str:
    return (
        f'<rect class="{style}" x="{start}" y="{y}" width="{round(end - start, 1)}" height="{_BAR}">'
        f"<title>{page_text(words)}</title></rect>"
    )
