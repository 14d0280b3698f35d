"""docs/ways-out.md names every code of a problem, in the words of the tool."""

from __future__ import annotations

import re

from status_tool.vocabulary.codes import CODES
from tests.pair import REPOSITORY
from tests.unit.test_troubleshooting import said_by_the_tool

PAGE = (REPOSITORY / "docs" / "ways-out.md").read_text()
_CELL = re.compile(r"^\| ((?:`[a-z-]+`(?:, )?)+) \|", re.MULTILINE)
_QUOTED = re.compile(r'"([^"\n]+)"')


def test_every_code_has_its_way_out() -> None:
    """Those that the tool can print, and no others."""
    named = {code for cell in _CELL.findall(PAGE) for code in re.findall(r"`([a-z-]+)`", cell)}
    assert named == {name for name, code in CODES.items() if code.words}


def test_words_in_quotation_marks_are_those_of_the_text() -> None:
    """`…` and a number `n` stand for anything; the last column may quote a rule of the simulation."""
    said = "\n".join(said_by_the_tool())
    cells = [cell for line in PAGE.splitlines() if line.startswith("| ") for cell in line.split(" | ")[:-1]]
    quoted = [words for cell in cells for words in _QUOTED.findall(cell)]
    assert [words for words in quoted for part in re.split(" ?… ?| n ", words) if part not in said] == []
    assert len(quoted) > 12
