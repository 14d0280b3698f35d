"""The page of `paths --report`: a matrix, the graph with an edge's state as its colour, and what is wrong with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from status_tool.printable import counted, iso
from status_tool.report.html_report import drawn, page_text, small_page, table_of
from status_tool.rules.graph import VERDICTS, Edge, PathState
from status_tool.vocabulary.outcome import ClusterMap, PeerLink
from status_tool.vocabulary.verdicts import Verdict

_COLUMNS = ("kind", "table", "how many", "what", "what to do")
Matrix = Mapping[str, Mapping[str, PathState]]


@dataclass(frozen=True, slots=True)
class GraphShown:
    """Content of the page."""

    cut_ms: int
    verdict: Verdict
    headline: str
    clusters: ClusterMap
    """Without links: these are the edges."""
    matrix: Matrix
    edges: Sequence[Edge]
    notes: Sequence[str]


def graph_page(shown: GraphShown, stream: TextIO) -> None:
    """Write the page."""
    heading = f"Replication of {counted(len(shown.clusters.clusters), 'cluster')}, {iso(shown.cut_ms)}"
    with small_page(heading, stream):
        stream.writelines(f"{line}\n" for line in _lines(shown))


def _lines(shown: GraphShown) -> Iterator[str]:
    yield f'<p class="verdict {shown.verdict}">{page_text(shown.headline)}</p>'
    yield from _matrix(shown)
    yield from drawn(replace(shown.clusters, links=tuple(_link(*numbered) for numbered in enumerate(shown.edges))))
    for number, edge in enumerate(shown.edges):
        yield from _edge(number, edge)
    if shown.notes:
        yield "<h2>Notes</h2>"
        yield from (f"<p>{page_text(note)}</p>" for note in shown.notes)


def _link(number: int, edge: Edge) -> PeerLink:
    note = str(edge.judged.reach) if edge.is_enabled else f"{edge.judged.reach}, DISABLED"
    verdict = VERDICTS[edge.judged.reach]
    return PeerLink(
        edge.hop.source,
        edge.hop.target,
        edge.hop.peer,
        note,
        broken=verdict is Verdict.INCOMPLETE,
        state=verdict,
        href=f"#edge-{number}",
    )


def _matrix(shown: GraphShown) -> Iterator[str]:
    """Rows: where entries began; columns: where they are to be."""
    reached = {target for row in shown.matrix.values() for target in row}
    targets = [one.name for one in shown.clusters.clusters if one.name in reached]
    yield '<div class="scroll"><table class="matrix">'
    yield "<tr><th>from \\ to</th>" + "".join(f"<th>{page_text(target)}</th>" for target in targets) + "</tr>"
    for source, row in shown.matrix.items():
        yield f"<tr><th>{page_text(source)}</th>{''.join(_cell(row.get(target)) for target in targets)}</tr>"
    yield "</table></div>"


def _cell(state: PathState | None) -> str:
    if state is None:
        return "<td></td>"
    reasons = page_text("; ".join((*state.reasons, *state.stopped)))
    return f'<td class="kind {VERDICTS[state.reach]}" title="{reasons}">{page_text(state.reach)}</td>'


def _edge(number: int, edge: Edge) -> Iterator[str]:
    """The problems of an edge, which its line in the picture opens."""
    hop, state = edge.hop, edge.judged
    heading = f"{hop.source} to {hop.target}, peer {hop.peer}: {state.reach}"
    yield f'<h2 id="edge-{number}" class="{VERDICTS[state.reach]}">{page_text(heading)}</h2>'
    groups = edge.outcome.overview.groups if edge.outcome is not None else ()
    if groups:
        rows = [(one.kind, one.table or "", one.count, one.example.detail, one.todo) for one in groups]
        yield from table_of(rows, _COLUMNS)
    else:
        yield from (f"<p>{page_text(reason)}</p>" for reason in state.reasons)
