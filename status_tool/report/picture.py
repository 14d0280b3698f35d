"""Layout of a topology's picture, which a template draws as SVG inside a page."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

from status_tool.printable import counted
from status_tool.vocabulary.outcome import ClusterMap, PeerLink

BOX_W, BOX_H = 300, 66
GAP_X, GAP_Y = 190, 46
MARGIN = 24
ARC = 46
"""Half of it is between the boxes and the first link back, and between that and the next."""
STEP = 14
"""Between lines that run side by side."""

_DrawnLink = tuple[PeerLink, str, int, int]
"""A link, its path, and the middle of its label."""


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


def picture(clusters: ClusterMap) -> dict[str, Any]:
    """Return the layout: the first cluster on the left, where each peer leads to the right of it."""
    places = _places(clusters)
    backward = [link for link in clusters.links if places[link.target].column <= places[link.source].column]
    lowest = max(place.y for place in places.values()) + BOX_H + ARC // 2
    links: list[_DrawnLink] = []
    lanes: dict[tuple[str, str], int] = defaultdict(int)
    depth = 0
    for link in clusters.links:
        start, end = places[link.source], places[link.target]
        if link in backward:
            # Less than a third of a box: the ends of all links stay below their boxes.
            links.append(_back(link, start, end, lowest + ARC // 2 * depth, STEP * depth % (BOX_W // 3)))
            depth += 1
        else:
            links.append(_forward(link, start, end, STEP * lanes[link.source, link.target]))
            lanes[link.source, link.target] += 1
    nodes, peers = counted(len(clusters.clusters), "cluster"), counted(len(clusters.links), "replication peer")
    return {
        "words": f"{nodes}, {peers}",
        "width": max(place.x for place in places.values()) + BOX_W + MARGIN,
        "height": lowest + MARGIN + ARC // 2 * len(backward),
        "box_width": BOX_W,
        "box_height": BOX_H,
        "links": links,
        "boxes": [(cluster, places[cluster.name].x, places[cluster.name].y) for cluster in clusters.clusters],
    }


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


def _forward(link: PeerLink, start: _Place, end: _Place, down: int) -> _DrawnLink:
    x1, y1 = start.x + BOX_W, start.y + BOX_H // 3 + down
    x2, y2 = end.x, end.y + BOX_H // 3 + down
    middle = (x1 + x2) // 2
    return link, f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}", middle, (y1 + y2) // 2 - 6


def _back(link: PeerLink, start: _Place, end: _Place, lane: int, aside: int) -> _DrawnLink:
    """Return a link that does not lead onwards below the boxes, `aside` from those before it."""
    x1, y1 = start.x + BOX_W * 2 // 3 - aside, start.y + BOX_H
    x2, y2 = end.x + BOX_W // 3 - aside, end.y + BOX_H
    return link, f"M{x1} {y1} V{lane} H{x2} V{y2}", (x1 + x2) // 2, lane - 5
