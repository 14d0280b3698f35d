"""A self-contained HTML report: no network, no script, light or dark as the reader's system is."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator, Sequence
from typing import TextIO

from status_tool.evidence.model import ClusterMap, Outcome, Problem, Verdict
from status_tool.printable import duration, iso_time, safe
from status_tool.report.interface import (
    EVIDENCE_WORDS,
    VERDICT_WORDS,
    Reporter,
    ServerLine,
    file_counts,
    region_counts,
)
from status_tool.report.picture import STYLE as PICTURE_STYLE
from status_tool.report.picture import picture
from status_tool.report.text import advice_for, extent_of, not_replicated, notices, ordered_tables, sync_for, unlisted

_STYLE = """
:root { color-scheme: light dark; --bg: #fff; --fg: #1b1f24; --soft: #f3f4f6; --line: #d5d9de; --dim: #57606a;
  --complete: #1a7f37; --incomplete: #b42318; --unverifiable: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171a; --fg: #e6e8ea; --soft: #1f2429; --line: #3a4149;
  --dim: #9aa4ae; --complete: #4ac26b; --incomplete: #ff7b72; --unverifiable: #d4a72c; } }
body { background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 76rem; padding: 1.5rem; }
h1 { font-size: 1rem; font-weight: 600; color: var(--dim); margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.verdict { border-left: .4rem solid; font-size: 1.7rem; font-weight: 650; margin: .6rem 0;
  padding: .3rem .9rem; }
.complete { color: var(--complete); } .incomplete { color: var(--incomplete); }
.unverifiable { color: var(--unverifiable); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .7rem .4rem 0; text-align: left;
  vertical-align: top; }
th { color: var(--dim); font-weight: 600; }
td { overflow-wrap: anywhere; } td.kind { font-weight: 650; white-space: nowrap; }
td.number { font-variant-numeric: tabular-nums; }
.advice { background: var(--soft); border-radius: .3rem; margin-top: .3rem; padding: .3rem .6rem; }
.dim { color: var(--dim); }
""".strip()
_STYLE += "\n" + PICTURE_STYLE

# Should an escape ever be forgotten: the browser loads and runs nothing.
_HEAD = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Replication status</title>
<style>
{_STYLE}
</style>
</head>
<body>
"""


class HtmlReporter(Reporter):
    """Writes one page. `servers` are shown as given; `run_ms` is when the check ran (default: now)."""

    def __init__(self, servers: Sequence[ServerLine] = (), run_ms: int | None = None) -> None:
        self._servers = servers
        self._run_ms = int(time.time() * 1000) if run_ms is None else run_ms

    def write(self, outcome: Outcome, stream: TextIO) -> None:
        stream.write(_HEAD)
        stream.writelines(line + "\n" for line in self._body(outcome))
        stream.write("</body>\n</html>\n")

    def _body(self, outcome: Outcome) -> Iterator[str]:
        yield f"<h1>Replication status, {_text(iso_time(self._run_ms))}</h1>"
        yield from _verdicts(outcome)
        yield "<h2>What was compared</h2>"
        yield from _table(("", ""), _facts(outcome))
        for title, counts in _counts(outcome):
            yield f"<h2>{title}</h2>"
            yield from _table(("status", "count"), list(counts.items()), classes=("", "number"))
        yield from _problems(outcome)
        if outcome.clusters is not None and outcome.clusters.links:
            yield "<h2>Topology</h2>"
            yield from _figure(outcome.clusters)
        if self._servers:
            yield "<h2>Region servers</h2>"
            yield from _table(_SERVER_HEADINGS, [_server_cells(line) for line in self._servers])


def _figure(clusters: ClusterMap) -> Iterator[str]:
    yield '<div class="scroll">'
    yield from picture(clusters)
    yield "</div>"


def topology_page(clusters: ClusterMap, problems: Sequence[str], stream: TextIO, run_ms: int | None = None) -> None:
    """Write the page of `status-tool topology --report`."""
    run_ms = int(time.time() * 1000) if run_ms is None else run_ms
    stream.write(_HEAD)
    stream.write(f"<h1>Replication topology, {_text(iso_time(run_ms))}</h1>\n")
    stream.writelines(line + "\n" for line in _figure(clusters))
    if problems:
        stream.write("<h2>Problems</h2>\n")
        stream.writelines(line + "\n" for line in _table(("",), [(problem,) for problem in problems]))
    stream.write("</body>\n</html>\n")


def _text(value: object) -> str:
    return html.escape(safe(str(value)))


def _verdicts(outcome: Outcome) -> Iterator[str]:
    halves = (("HBase", outcome.hbase), ("HDFS", outcome.hdfs))
    checked = [(name, half.verdict) for name, half in halves if half is not None]
    for name, verdict in checked:
        yield f'<div class="verdict {verdict.value}">{name} Replication {VERDICT_WORDS[verdict]}.</div>'
    if not checked:
        yield f'<div class="verdict {Verdict.UNVERIFIABLE.value}">Nothing was checked.</div>'


def _facts(outcome: Outcome) -> list[tuple[object, ...]]:
    facts: list[tuple[object, ...]] = [
        ("Master cluster", outcome.master_cluster_id or "unknown"),
        ("Slave cluster", outcome.slave_cluster_id or "unknown"),
        ("Peer", "" if outcome.peer_id is None else outcome.peer_id),
        ("Cut", f"{iso_time(outcome.cut_ms)} ({outcome.cut_ms})"),
    ]
    if outcome.shutdown_ms is not None:
        facts.append(("Shutdown time", f"{iso_time(outcome.shutdown_ms)} ({outcome.shutdown_ms})"))
    if outcome.hbase is not None:
        evidence = outcome.hbase.evidence
        facts.append(("Evidence", f"{evidence.value}: {EVIDENCE_WORDS[evidence]}"))
        if outcome.hbase.ordered_tables:
            facts.append(("Tables with evidence ordered", ordered_tables(outcome.hbase)))
        if left_out := not_replicated(outcome.hbase):
            facts.append(("Left out", left_out))
        if outcome.hbase.worst_lag_ms is not None:
            facts.append(("Worst lag", duration(outcome.hbase.worst_lag_ms)))
    return [*facts, *(("Note", notice) for notice in notices(outcome))]


def _counts(outcome: Outcome) -> Iterator[tuple[str, dict[str, int]]]:
    if outcome.hbase is not None:
        yield "Regions", region_counts(outcome)
    if outcome.hdfs is not None:
        yield "Files", file_counts(outcome)


def _table(headings: Sequence[str], rows: Sequence[Sequence[object]], classes: Sequence[str] = ()) -> Iterator[str]:
    yield '<div class="scroll"><table>'
    if any(headings):
        yield "<tr>" + "".join(f"<th>{heading}</th>" for heading in headings) + "</tr>"
    for row in rows:
        styles = [*classes, *[""] * len(row)]
        cells = (f'<td class="{style}">{_text(cell)}</td>' for cell, style in zip(row, styles, strict=False))
        yield "<tr>" + "".join(cells) + "</tr>"
    yield "</table></div>"


_PROBLEM_HEADINGS = ("kind", "table or file", "region, server", "what, and what to do")


def _problems(outcome: Outcome) -> Iterator[str]:
    if outcome.problems:
        yield "<h2>Problems, worst first</h2>"
        yield '<div class="scroll"><table>'
        yield "<tr>" + "".join(f"<th>{heading}</th>" for heading in _PROBLEM_HEADINGS) + "</tr>"
        for problem in outcome.problems:
            yield _problem_row(problem)
        yield "</table></div>"
    if rest := unlisted(outcome):
        yield f'<p class="dim">{_text(rest)}</p>'


def _problem_row(problem: Problem) -> str:
    place = "<br>".join(_text(name) for name in (problem.region, problem.origin) if name)
    text = f"{_text(problem.detail)}"
    if extent := extent_of(problem):
        text += f'<br><span class="dim">{_text(extent)}</span>'
    if advice := advice_for(problem):
        text += f'<div class="advice">{_text(advice)}</div>'
    if sync := sync_for(problem):
        text += f'<div class="advice">{_text(sync)}</div>'
    about = _text(problem.table or problem.path or "")
    cells = "".join(f"<td>{cell}</td>" for cell in (about, place, text))
    return f'<tr><td class="kind">{_text(problem.kind)}</td>{cells}</tr>'


_SERVER_HEADINGS = ("cluster", "server", "tracker", "live", "tracked", "answered", "last flush", "detail")
_ROLES = {"w": "write-time", "r": "replicate-time"}


def _server_cells(line: ServerLine) -> tuple[object, ...]:
    return (
        line.cluster,
        line.server,
        _ROLES.get(line.role, line.role),
        _yes(line.live),
        _yes(line.tracked),
        _yes(line.echoed),
        "" if line.flush_ms is None else iso_time(line.flush_ms),
        line.detail,
    )


def _yes(flag: bool | None) -> str:
    return "" if flag is None else "yes" if flag else "no"
