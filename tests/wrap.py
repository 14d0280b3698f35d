"""Wraps the prose of Markdown files at 120 characters: `python -m tests.wrap docs/*.md`.

Headings, tables and code stay as they are; paragraphs and items of lists are filled anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

WIDTH = 120
_ITEM = re.compile(r"\s*([-*]|\d+\.)\s+")
_AS_IT_IS = ("|", "#", "<")
"""How lines begin that are no prose: tables, headings, tags."""


def wrap(text: str) -> str:
    """The text with its prose wrapped."""
    return "\n".join(_wrapped(text.splitlines())) + "\n"


def _wrapped(lines: list[str]) -> Iterator[str]:
    paragraph: list[str] = []
    in_code = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        if in_code or fence or not line.strip() or line.lstrip().startswith(_AS_IT_IS):
            yield from _filled(paragraph)
            paragraph = []
            in_code ^= fence
            yield line
        elif _ITEM.match(line):
            yield from _filled(paragraph)
            paragraph = [line]
        else:
            paragraph.append(line)
    yield from _filled(paragraph)


def _filled(paragraph: list[str]) -> Iterator[str]:
    if not paragraph:
        return
    item = _ITEM.match(paragraph[0])
    first = item[0] if item else paragraph[0][: len(paragraph[0]) - len(paragraph[0].lstrip())]
    words = " ".join(" ".join(paragraph)[len(first) :].split())
    rest = " " * len(first)
    yield fill(
        words, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def main() -> None:
    """Wrap the files that are named."""
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(wrap(path.read_text()))


if __name__ == "__main__":
    main()
