"""A hook of MkDocs: the pages of the site that lie outside of docs/, and Markdown as GitHub reads it.

MkDocs knows one folder of documents. Here README.md and others are pages as well, links between them and docs/ lead to
where the pages are on the site, and a link to any other file of the repository becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from status_tool.cli.reference import full_markdown

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = "docs"
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "coprocessor_stubs/README.md": "trackers.md",
    "sample_status/README.md": "samples.md",
    "tests/lab/README.md": "lab.md",
}
"""Files of the repository outside of docs/, and what they are on the site."""
_LINK = re.compile(r"\[([^]]+)\]\(([^)#:\s]*)(#[^)]*)?\)")
_ITEM = re.compile(r"( *)([-*]|\d+\.)( +)")
_FENCED = re.compile(r"^( *```.*?^ *```)", re.M | re.S)
_ROW = re.compile(r"^\|.*", re.M)
_CODE = re.compile(r"`[^`]+`")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie elsewhere."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(REPOSITORY / source).read_text()))
    files.append(File.generated(config, "options-in-full.md", content=full_markdown()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as Python's Markdown needs it."""
    site_path = page.file.src_uri
    outside = {name: source for source, name in PAGES.items()}
    source = outside.get(site_path, f"{DOCS}/{site_path}")
    parts = _FENCED.split(markdown)  # every second one is fenced code
    parts[::2] = [_linked(part, source, site_path) for part in parts[::2]]
    return "\n".join(indented("".join(parts).splitlines()))


def _linked(prose: str, source: str, site_path: str) -> str:
    """Links lead to the site's pages; a pipe in the code of a table's cell needs no backslash here."""

    def target(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        if not path:
            return link[0]
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        name = PAGES.get(inside) or (inside.removeprefix(f"{DOCS}/") if inside.startswith(f"{DOCS}/") else None)
        if name is None:
            return text
        return f"[{text}]({posixpath.relpath(name, posixpath.dirname(site_path) or '.')}{anchor})"

    def cells(row: re.Match[str]) -> str:
        return _CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0])

    return _LINK.sub(target, _ROW.sub(cells, prose))


def indented(lines: list[str]) -> Iterator[str]:
    """What belongs to an item of a list stands four columns further in, not below the item's text; a list after a
    paragraph has an empty line before it.
    """
    columns: list[int] = []  # where the text of each enclosing item begins
    in_code = False
    before = ""
    in_paragraphs = False  # the item before has an empty line in it: so must there be one behind it
    for line in lines:
        if not line.strip():
            in_paragraphs |= bool(columns)
            before = line
            yield line
            continue
        indent = len(line) - len(line.lstrip())
        item = None if in_code else _ITEM.match(line)
        if not in_code:
            while columns and indent < columns[-1]:
                columns.pop()
            begins = item and not columns and not _ITEM.match(before) and before[:1] != " "
            if before.strip() and (begins or (item and in_paragraphs)):
                yield ""
        shift = max(0, indent - columns[-1]) if columns else indent
        yield " " * (4 * len(columns) + shift) + line.lstrip()
        if item:
            in_paragraphs = False
            columns.append(item.end())
        in_code ^= line.lstrip().startswith("```")
        before = line
