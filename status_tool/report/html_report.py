"""Pages beside the report's: of a topology, and what all of them share. No network, no script, in its style."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from status_tool.printable import iso, safe
from status_tool.report.page import style
from status_tool.report.picture import picture
from status_tool.vocabulary.outcome import ClusterMap

# Defense in depth: should an escape ever be missed, the browser still loads and runs nothing.
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Replication status</title>
<style>
"""


def topology_page(clusters: ClusterMap, problems: Sequence[str], unchecked: Sequence[str], stream: TextIO) -> None:
    """Write the page of `status-tool topology --report`."""
    with small_page(f"Replication topology, {iso(int(time.time() * 1000))}", stream):
        stream.writelines(f"{line}\n" for line in drawn(clusters))
        for heading, texts in (("Problems", problems), ("Not checked", unchecked)):
            if texts:
                stream.write(f"<h2>{heading}</h2>\n")
                stream.writelines(f"{line}\n" for line in table_of([(text,) for text in texts]))


@contextmanager
def small_page(heading: str, stream: TextIO) -> Iterator[None]:
    """Write a page without a script, in the report's style, around what is written inside."""
    stream.write(f"{_HEAD}{style()}</style>\n</head>\n<body>\n<h1>{page_text(heading)}</h1>\n")
    yield
    stream.write("</body>\n</html>\n")


def drawn(clusters: ClusterMap) -> Iterator[str]:
    """Yield the lines of the clusters' picture."""
    yield '<div class="scroll">'
    yield from picture(clusters)
    yield "</div>"


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
