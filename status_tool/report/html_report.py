"""A self-contained HTML report: no network, readable without its script, light or dark as the reader's system."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator, Sequence
from typing import TextIO

from status_tool.printable import iso, safe
from status_tool.report.picture import STYLE as PICTURE_STYLE
from status_tool.report.picture import picture
from status_tool.report.reporter import Reporter
from status_tool.vocabulary.outcome import ClusterMap, Moment, Outcome

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
svg .proven { fill: var(--complete); } svg .beyond { fill: none; stroke: var(--incomplete); }
svg .mark { stroke: var(--dim); stroke-dasharray: 4 4; }
""".strip()
_STYLE += "\n" + PICTURE_STYLE

# Defense in depth: should an escape ever be missed, the browser still loads and runs nothing.
HEAD = f"""<!DOCTYPE html>
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
    """Writes one page; `run_ms` is when the check ran (now), `history` what earlier ones have found, oldest first."""

    def __init__(self, run_ms: int | None = None, history: Sequence[Moment] = ()) -> None:
        self._run_ms = int(time.time() * 1000) if run_ms is None else run_ms
        self._history = history

    def write(self, outcome: Outcome, stream: TextIO) -> None:
        # Imported here: a run without a page needs no templates.
        from status_tool.report.page import write_page

        write_page(outcome, self._run_ms, stream, self._history)


def topology_page(clusters: ClusterMap, problems: Sequence[str], stream: TextIO) -> None:
    """Write the page of `status-tool topology --report`."""
    stream.write(HEAD)
    stream.write(f"<h1>Replication topology, {page_text(iso(int(time.time() * 1000)))}</h1>\n")
    stream.write('<div class="scroll">\n')
    stream.writelines(line + "\n" for line in picture(clusters))
    stream.write("</div>\n")
    if problems:
        stream.write("<h2>Problems</h2>\n")
        stream.writelines(line + "\n" for line in table_of([(problem,) for problem in problems]))
    stream.write("</body>\n</html>\n")


def page_text(value: object, limit: int | None = None) -> str:
    """Return a value as text of a page, sanitised and escaped, with at most `limit` letters."""
    return html.escape(safe(str(value), limit))


def table_of(rows: Sequence[Sequence[object]], headings: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of an HTML table."""
    yield '<div class="scroll"><table>'
    if headings:
        yield "<tr>" + "".join(f"<th>{page_text(heading)}</th>" for heading in headings) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{page_text(cell)}</td>" for cell in row) + "</tr>"
    yield "</table></div>"
