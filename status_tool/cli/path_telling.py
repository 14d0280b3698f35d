"""Output of `status-tool paths`. Apart from `cli.paths` for the reason of `cli.running`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from status_tool.cli.options import print_answer
from status_tool.printable import counted, iso, safe
from status_tool.report.progress import make_progress
from status_tool.report.text import hanging
from status_tool.rules.graph import Edge, Families, PathState, Reach
from status_tool.runs.graph_check import CheckedPath, PathsAsked, PathsFound, check_paths
from status_tool.runs.graph_holdings import Holding, WrittenBy
from status_tool.spark.session import stages_shown
from status_tool.vocabulary.outcome import Cluster, ClusterMap
from status_tool.vocabulary.verdicts import EXIT_CODES, Verdict

MATRIX_CLUSTERS = 4
"""So many columns fit into 80."""
_NAME_WIDTH = 14
_ENDS = {
    Verdict.COMPLETE: "All paths are complete.",
    Verdict.INCOMPLETE: "The paths are NOT complete.",
    Verdict.UNVERIFIABLE: "The paths could not be verified.",
}


def tell_paths(asked: PathsAsked, report: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Check, write the page, and print; returns the exit code."""
    with make_progress() as progress, stages_shown(progress.phase):
        found = check_paths(asked, progress.step)
    # Before the answer: a page that cannot be written is an error, and then --json's one document.
    if report is not None:
        from status_tool.report.summary import write_report

        write_report(report, _page(found))
    print_answer(paths_document(found), paths_lines(found, quiet=quiet), as_json=as_json)
    return EXIT_CODES[found.verdict]


def _page(found: PathsFound) -> Iterator[str]:
    from status_tool.report.small_pages import graph_page

    clusters = tuple(
        Cluster(one.name, one.cluster_key, found.unread.get(one.name, "read as master and as slave"))
        for one in found.stations
    )
    return graph_page(
        ClusterMap(clusters, ()),
        found.matrix,
        found.edges,
        cut_ms=found.cut_ms,
        verdict=found.verdict,
        headline=_ENDS[found.verdict],
        notes=[*found.limits, *_notes(found)],
    )


def paths_document(found: PathsFound) -> dict[str, Any]:
    """Return the document for `--json`."""
    return {
        "verdict": found.verdict,
        "exit_code": EXIT_CODES[found.verdict],
        "cut_ms": found.cut_ms,
        "clusters": {
            station.name: {
                "cluster_id": station.cluster_id or None,
                "cluster_key": station.cluster_key or None,
                "unread": found.unread.get(station.name),
            }
            for station in found.stations
        },
        "matrix": {
            source: {target: _cell(judged) for target, judged in row.items()} for source, row in found.matrix.items()
        },
        "edges": list(map(_edge, found.edges)),
        "paths": list(map(_path, found.paths)),
        "loops": list(found.loops),
        "written": {
            name: {table: [dataclasses.asdict(one) for one in own] for table, own in tables.items()}
            for name, tables in found.written.items()
        },
        "lost": {
            name: {
                table: {other: dataclasses.asdict(one) for other, one in held.items()} for table, held in tables.items()
            }
            for name, tables in found.lost.items()
        },
        "limits": list(found.limits),
        "notices": list(found.notices),
    }


def _cell(judged: PathState) -> dict[str, Any]:
    return {
        "verdict": judged.reach,
        "evidence": judged.evidence,
        "held_back_by": list(judged.reasons),
        "stopped": list(judged.stopped),
    }


def _edge(edge: Edge) -> dict[str, Any]:
    outcome = edge.outcome
    return {
        "from": edge.hop.source,
        "to": edge.hop.target,
        "peer": edge.hop.peer,
        "enabled": edge.is_enabled,
        **_cell(edge.judged),
        "ships": _families(edge.judged.carried),
        "problems": [
            {
                "kind": group.kind,
                "code": group.code,
                "table": group.table,
                "count": group.count,
                "detail": group.example.detail,
                "advice": group.todo or None,
            }
            for group in (outcome.overview.groups if outcome is not None else ())
        ],
        "notices": list(outcome.notices) if outcome is not None else [],
    }


def _path(one: CheckedPath) -> dict[str, Any]:
    return {
        "clusters": [one.source, *(hop.target for hop in one.route)],
        "peers": [hop.peer for hop in one.route],
        **_cell(one.judged),
        "ships": _families(one.judged.carried),
    }


def _families(families: Families | None) -> dict[str, list[str]] | None:
    return None if families is None else {table: sorted(families[table]) for table in sorted(families)}


def paths_lines(found: PathsFound, *, quiet: bool = False) -> Iterator[str]:
    """Yield the text, in lines of 80 columns; `quiet`: the verdicts alone."""
    yield f"Replication of {counted(len(found.stations), 'cluster')}, what was written up to {iso(found.cut_ms)}"
    yield ""
    yield from _matrix(found)
    if not quiet:
        yield from _texts(found)
    yield ""
    # Beside the verdict, which says "all".
    yield from (line for words in found.limits for line in hanging("Limits: ", words))
    yield _ENDS[found.verdict]


def _matrix(found: PathsFound) -> Iterator[str]:
    """Yield a matrix: entries that began on a row's cluster, on each column's.

    With many clusters, or long names, yields a line a pair.
    """
    reached = {target for row in found.matrix.values() for target in row}
    targets = [station.name for station in found.stations if station.name in reached]
    if len(targets) > MATRIX_CLUSTERS or any(len(name) > _NAME_WIDTH for name in (*found.matrix, *targets)):
        for source, row in found.matrix.items():
            for target, judged in row.items():
                yield from hanging("  ", f"{source} to {target}: {judged.reach}", "    ")
        return
    yield _row("from \\ to", targets)
    for source, row in found.matrix.items():
        yield _row(source, [row[target].reach if target in row else "-" for target in targets])


def _row(first: str, cells: list[Any]) -> str:
    return "  ".join(f"{safe(str(one), _NAME_WIDTH):{_NAME_WIDTH}}" for one in (first, *cells)).rstrip()


def _texts(found: PathsFound) -> Iterator[str]:
    told = set[str]()
    for source, row in found.matrix.items():
        for target, judged in row.items():
            if judged.reach in (Reach.COMPLETE, Reach.UNCONNECTED) and not judged.stopped:
                continue
            yield ""
            evidence = "" if judged.evidence is None else f" (evidence: {judged.evidence})"
            yield from hanging("", f"{source} to {target}: {judged.reach}{evidence}", "   ")
            for where, why in _reasons(judged.reasons, told):
                yield from hanging("   ", f"because of {where}:{why}")
            told.update(judged.reasons)
            for words in judged.stopped:
                yield from hanging("   ", words)
    for edge in found.edges:
        if edge.judged.reach is not Reach.COMPLETE:
            yield from _way_out(edge)
    for lost, tables in found.lost.items():
        yield ""
        if not tables:
            yield from hanging("", f"{lost} cannot be reached, and none of the others has anything of it.")
            continue
        yield f"{lost} cannot be reached. What the others have of it:"
        for table, held in tables.items():
            for words in _held(table, held):
                yield from hanging("   ", words, "      ")
        yield from hanging("", _promoted(lost, tables))
    for text in _notes(found):
        yield ""
        yield from hanging("Note: ", text)


def _reasons(reasons: Sequence[str], told: Set[str]) -> Mapping[tuple[str, str], None]:
    """Return where each reason lies and its words, in order; those that were told before once for each place."""
    parts = ((reason in told, *reason.partition(":")[::2]) for reason in reasons)
    return dict.fromkeys((where, " see above" if is_told else why) for is_told, where, why in parts)


def _notes(found: PathsFound) -> Iterator[str]:
    """Yield the lines beside the verdicts."""
    yield from (*found.loops, *found.notices)
    for edge in found.edges:
        if not edge.is_enabled:
            yield f"{edge.hop} (to {edge.hop.target}) is disabled: its queues grow until `enable_peer`"
    yield from _fan_in(found)


def _held(table: str, held: Mapping[str, Holding]) -> Iterator[str]:
    for name, one in sorted(held.items(), key=lambda item: (item[1].lacks, item[0])):
        words = [f"table {table}: {name} has entries up to {iso(one.newest_ms)}"]
        if one.newest_ms is None:
            words = [f"table {table}: {name} has what others relayed, up to {iso(one.passed_ms)} by its own clock"]
        if one.lacks:
            words.append(f"another one has more of {counted(one.lacks, 'stream')}")
        if one.holes:
            words.append(f"{counted(one.holes, 'hole')}, the first at {iso(one.hole_ms)}")
        yield ", ".join(words) + (f"; {one.doubt}" if one.doubt else "")


def _promoted(lost: str, tables: Mapping[str, Mapping[str, Holding]]) -> str:
    """Return which clusters can be promoted: those with the newest entries of every table."""
    names = sorted({name for held in tables.values() for name in held})
    best = [name for name in names if all(name in held and _has_newest(held[name]) for held in tables.values())]
    if not best:
        return f"None of them has the newest entries of every table. What {lost} did not ship is on {lost} alone."
    return (
        f"{' and '.join(best)} {'has' if len(best) == 1 else 'have'} the newest entries of every table that any of "
        f"them has. What {lost} did not ship is on {lost} alone."
    )


def _has_newest(held: Holding) -> bool:
    # Where no stream of the lost cluster is anywhere, nobody lacks one, and nobody has its newest entries either.
    return not held.lacks and held.newest_ms is not None and held.doubt is None


def _fan_in(found: PathsFound) -> Iterator[str]:
    """Yield the tables of a slave that others write to, too. By rows such a table differs from each of its masters."""
    into: dict[str, set[str]] = {}
    for edge in found.edges:
        into.setdefault(edge.hop.target, set()).add(edge.hop.source)
    for name, sources in into.items():
        for table, own in found.written.get(name, {}).items():
            ways = [one for one in own if one.through or len(own) > 1]
            if len(sources) > 1 and len(ways) > 1:
                yield (
                    f"{name}, table {table}: written {'; '.join(map(_way, ways))}. That alone makes its rows differ "
                    "from those of each master"
                )


def _way(one: WrittenBy) -> str:
    deleted = "" if one.deleted_ms is None else f", deletes up to {iso(one.deleted_ms)}"
    where = f"through {' and '.join(one.through)}" if one.through else "by its own clients"
    return f"{where} up to {iso(one.written_ms)}{deleted}"


def _way_out(edge: Edge) -> Iterator[str]:
    hop = edge.hop
    yield ""
    yield from hanging("", f"What to do for {hop.source} to {hop.target} ({hop}):", "   ")
    advised = (group.todo for group in (edge.outcome.overview.groups if edge.outcome is not None else ()))
    for words in dict.fromkeys(filter(None, advised)):
        yield from hanging(" - ", words)
    yield f" - this edge alone, with its repairs: on {hop.source}"
    yield "   status-tool run -m -o FILE --only hbase"
    yield f"   and on {hop.target}"
    yield f"   status-tool run -i FILE --only hbase --peer {hop.peer}"
