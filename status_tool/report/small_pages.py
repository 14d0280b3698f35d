"""Pages beside the report's: of a topology, of a replication graph, and of a recovery point. None has a script."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from status_tool.printable import iso
from status_tool.report.picture import picture
from status_tool.report.templates import page_parts
from status_tool.rules.graph import VERDICTS, Edge, PathState
from status_tool.vocabulary.outcome import ClusterMap, PeerLink, RecoveryPoint, TablePoint
from status_tool.vocabulary.verdicts import Verdict

_AXIS = 680
"""Length of the time axis, in the drawing's units."""


def topology_page(clusters: ClusterMap, problems: Sequence[str], unchecked: Sequence[str]) -> Iterator[str]:
    """Yield the page of `status-tool topology --report`."""
    content = {
        "now_ms": int(time.time() * 1000),
        "topology": picture(clusters),
        "problems": [(text,) for text in problems],
        "unchecked": [(text,) for text in unchecked],
    }
    return page_parts("topology.html.j2", content)


def graph_page(
    clusters: ClusterMap,
    matrix: Mapping[str, Mapping[str, PathState]],
    edges: Sequence[Edge],
    *,
    cut_ms: int,
    verdict: Verdict,
    headline: str,
    notes: Sequence[str],
) -> Iterator[str]:
    """Yield the page of `paths --report`: a matrix, the graph in the colours of its edges, and what is wrong with each.

    `clusters` come without links: these are the edges.
    """
    links = tuple(_link(number, edge) for number, edge in enumerate(edges))
    reached = {target for row in matrix.values() for target in row}
    content = {
        "clusters": clusters.clusters,
        "topology": picture(replace(clusters, links=links)),
        "matrix": matrix,
        "targets": [one.name for one in clusters.clusters if one.name in reached],
        "edges": edges,
        "verdicts": VERDICTS,
        "cut_ms": cut_ms,
        "verdict": verdict,
        "headline": headline,
        "notes": notes,
    }
    return page_parts("graph.html.j2", content)


def _link(number: int, edge: Edge) -> PeerLink:
    hop, verdict = edge.hop, VERDICTS[edge.judged.reach]
    note = str(edge.judged.reach) if edge.is_enabled else f"{edge.judged.reach}, DISABLED"
    is_broken = verdict is Verdict.INCOMPLETE
    return PeerLink(hop.source, hop.target, hop.peer, note, is_broken, state=verdict, href=f"#edge-{number}")


def point_page(point: RecoveryPoint, sentences: Sequence[str], style: str) -> Iterator[str]:
    """Yield the page of `recovery-point --report`: up to when each table is proven, and how far its entries reach.

    The first of `sentences` is its headline, in the `style` of a verdict.
    """
    headline, *others = sentences
    content = {
        "point": point,
        "style": style,
        "headline": headline,
        "sentences": (*others, *point.notices),
        "axis": _axis(point),
        "rows": [_row(name, table) for name, table in point.tables.items()],
    }
    return page_parts("point.html.j2", content)


def _row(name: str, table: TablePoint) -> tuple[object, ...]:
    point, newest = (iso(time) if time is not None else "" for time in (table.point_ms, table.beyond.newest_ms))
    return (name, f"{point}{table.proof}", newest, table.beyond.missing or "", table.held_back_by or "")


def _axis(point: RecoveryPoint) -> dict[str, Any] | None:
    """Return a lane for each table: full up to its point, hollow from there to its newest entry."""
    marks = {"recovery point": point.point_ms, "newest published file": point.newest_ms, "asked": point.read_ms}
    lanes = {name: (table.point_ms, table.beyond.newest_ms) for name, table in point.tables.items()}
    times = (*marks.values(), *(time for lane in lanes.values() for time in lane))
    known = [time for time in times if time is not None]
    if point.newest_ms is None or not lanes:
        return None
    first, last = min(known), max(known)
    # A tenth of the axis lies before the oldest of them, so that its bar can be seen.
    first -= max(1, (last - first) // 10)

    def x_of(time_ms: int) -> float:
        return round(_AXIS * (time_ms - first) / (last - first), 1)

    def bars(point_ms: int | None, newest_ms: int | None) -> Iterator[tuple[str, float, float, str]]:
        start = 0.0
        if point_ms is not None:
            start = x_of(point_ms)
            yield "proven", 0, start, f"proven to {iso(point_ms)}"
        if newest_ms is not None and x_of(newest_ms) > start:
            yield "beyond", start, round(x_of(newest_ms) - start, 1), f"newest entry {iso(newest_ms)}"

    return {
        "marks": [(x_of(time), f"{name}: {iso(time)}") for name, time in marks.items() if time is not None],
        "lanes": [(name, list(bars(*times))) for name, times in lanes.items()],
        "first": iso(first),
        "last": iso(last),
    }
