"""The topology as an SVG inside the HTML report: no script, no font, nothing from a network."""

from __future__ import annotations

import html
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from status_tool.printable import counted, safe
from status_tool.vocabulary.outcome import Cluster, ClusterMap, PeerLink

BOX_W, BOX_H = 300, 66
GAP_X, GAP_Y = 190, 46
MARGIN = 24
ARC = 46
"""Half of it is between the boxes and the first link back, and between that and the next."""
STEP = 14
"""Between lines that run side by side."""
CAPTION = 44
"""Letters that fit into a box."""


@dataclass(frozen=True, slots=True)
class _Place:
    column: int
    row: int

    @property
    def x(self) -> int:
        return MARGIN + self.column * (BOX_W + GAP_X)

    @property
    def y(self) -> int:
        return MARGIN + 20 + self.row * (BOX_H + GAP_Y)


def picture(clusters: ClusterMap) -> Iterator[str]:
    """Yield the lines of an `<svg>`: the first cluster on the left, where each peer leads to the right of it."""
    if not clusters.clusters:
        return
    places = _places(clusters)
    backward = [link for link in clusters.links if places[link.target].column <= places[link.source].column]
    width = max(place.x for place in places.values()) + BOX_W + MARGIN
    lowest = max(place.y for place in places.values()) + BOX_H + ARC // 2
    height = lowest + MARGIN + ARC // 2 * len(backward)
    yield f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    nodes, links = counted(len(clusters.clusters), "cluster"), counted(len(clusters.links), "replication peer")
    yield f"<title>{nodes}, {links}</title>"
    # A marker does not take over the colour of its line, so each colour has its own.
    yield from _marker("head", "head")
    yield from _marker("alarm", "alarm")
    lanes: dict[tuple[str, str], int] = defaultdict(int)
    depth = 0
    for link in clusters.links:
        if link in backward:
            # Less than a third of a box: the ends of all links stay below their boxes.
            yield from _back(link, places, lowest + ARC // 2 * depth, STEP * depth % (BOX_W // 3))
            depth += 1
        else:
            yield from _forward(link, places, lanes[link.source, link.target])
            lanes[link.source, link.target] += 1
    # Last, as SVG draws in order: a box covers the links that pass behind it.
    for cluster in clusters.clusters:
        yield from _box(cluster, places[cluster.name])
    yield "</svg>"


def _places(clusters: ClusterMap) -> dict[str, _Place]:
    """Place the clusters breadth first from the first one, a column a step.

    Clusters it does not reach start a row below.
    """
    out: dict[str, list[str]] = defaultdict(list)
    for link in clusters.links:
        out[link.source].append(link.target)
    filled: dict[int, int] = defaultdict(int)
    places: dict[str, _Place] = {}
    for first in clusters.clusters:
        waiting = deque([(first.name, 0)])
        while waiting:
            name, column = waiting.popleft()
            # In a ring, and by a second way, links lead to a cluster that has its place already.
            if name in places:
                continue
            places[name] = _Place(column, filled[column])
            filled[column] += 1
            waiting.extend((target, column + 1) for target in out[name])
    return places


def _marker(name: str, style: str) -> Iterator[str]:
    yield (
        f'<defs><marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto-start-reverse"><path class="{style}" d="M0 0 8 4 0 8z"/></marker></defs>'
    )


def _forward(link: PeerLink, places: dict[str, _Place], lane: int) -> Iterator[str]:
    start, end = places[link.source], places[link.target]
    x1, y1 = start.x + BOX_W, start.y + BOX_H // 3 + STEP * lane
    x2, y2 = end.x, end.y + BOX_H // 3 + STEP * lane
    middle = (x1 + x2) // 2
    path = _path(link, f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}")
    yield from _opening(link, path, _label(link, middle, (y1 + y2) // 2 - 6))


def _back(link: PeerLink, places: dict[str, _Place], lane: int, aside: int) -> Iterator[str]:
    """Draw a link that does not lead onwards below the boxes, `aside` from those before it."""
    start, end = places[link.source], places[link.target]
    x1, y1 = start.x + BOX_W * 2 // 3 - aside, start.y + BOX_H
    x2, y2 = end.x + BOX_W // 3 - aside, end.y + BOX_H
    path = _path(link, f"M{x1} {y1} V{lane} H{x2} V{y2}")
    yield from _opening(link, path, _label(link, (x1 + x2) // 2, lane - 5))


def _opening(link: PeerLink, path: str, label: str) -> Iterator[str]:
    """A line and its label, as a link where they open something."""
    yield from (f'<a href="{_text(link.href)}">', path, label, "</a>") if link.href else (path, label)


def _path(link: PeerLink, d: str) -> str:
    style, head = ("link broken", "alarm") if link.broken else ("link", "head")
    return f'<path class="{_styled(style, link)}" d="{d}" marker-end="url(#{head})"/>'


def _label(link: PeerLink, x: int, y: int) -> str:
    words = f"peer {link.peer}" + (f": {link.note}" if link.note else "")
    style = _styled("alarm" if link.broken else "", link)
    # About as many letters as `GAP_X` has room for; the title has all of them.
    shown = f"{_text(words, 26)}<title>{_text(words)}</title>"
    return f'<text class="{style}" x="{x}" y="{y}" text-anchor="middle">{shown}</text>'


def _styled(style: str, link: PeerLink) -> str:
    return f"{style} {link.state}".strip()


def _box(cluster: Cluster, place: _Place) -> Iterator[str]:
    style = "box this" if cluster.role else "box"
    yield f'<rect class="{style}" x="{place.x}" y="{place.y}" width="{BOX_W}" height="{BOX_H}" rx="6"/>'
    lines = (("role", cluster.role or "another cluster"), ("", cluster.name), ("dim", cluster.key))
    for number, (kind, words) in enumerate(lines):
        y = place.y + 20 + 18 * number
        full = f"<title>{_text(words)}</title>"
        yield f'<text class="{kind}" x="{place.x + 12}" y="{y}">{_text(words, CAPTION)}{full}</text>'


def _text(words: str, limit: int | None = None) -> str:
    return html.escape(safe(words, limit))
