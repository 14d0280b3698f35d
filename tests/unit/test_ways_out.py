"""docs/ways-out.md names every code of a problem; it and docs/correctness.md name tests that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import status_tool
from status_tool.vocabulary.codes import CODES

TESTS = Path(__file__).resolve().parent.parent
PAGE, CLAIMS = ((TESTS.parent / "docs" / name).read_text() for name in ("ways-out.md", "correctness.md"))
_CELL = re.compile(r"^\| ((?:`[a-z-]+`(?:, )?)+) \|", re.MULTILINE)
_TEST = re.compile(r"`((?:[a-z_]+/)*test_\w+\.py)?(?:::(\w+))?`")
_JAVA_TEST = re.compile(r"`(\w+Test)\.(\w+)`")
_QUOTED = re.compile(r'"([^"\n]+)"')
JAVA_TESTS = TESTS.parent / "coprocessor_stubs" / "src" / "test" / "java"


def test_every_code_has_its_way_out() -> None:
    """Those that the tool can print, and no others."""
    named = {code for cell in _CELL.findall(PAGE) for code in re.findall(r"`([a-z-]+)`", cell)}
    assert named == {name for name, code in CODES.items() if code.words}


def messages() -> Iterator[str]:
    """Yield each text in the code that is no docstring; `…` stands for what is filled in."""
    for path in Path(status_tool.__file__).parent.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        apart = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            match node:
                case ast.JoinedStr(values=parts):
                    yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
                case ast.Constant(value=str(text)) if id(node) not in apart:
                    yield text


def test_words_in_quotation_marks_are_those_of_the_text() -> None:
    """`…` and a number `n` stand for anything; the last column may quote a rule of the simulation."""
    said = "\n".join(messages())
    cells = [cell for line in PAGE.splitlines() if line.startswith("| ") for cell in line.split(" | ")[:-1]]
    quoted = [words for cell in cells for words in _QUOTED.findall(cell)]
    assert [words for words in quoted for part in re.split(" ?… ?| n ", words) if part not in said] == []
    assert len(quoted) > 12


@pytest.mark.parametrize("page", [PAGE, CLAIMS], ids=["ways-out", "correctness"])
def test_the_tests_that_are_named_exist(page: str) -> None:
    """`file.py`, `file.py::test`, or `::test` of the file before; a unit test where no folder is named."""
    source, found = "", 0
    for file, function in _TEST.findall(page):
        if file:
            source = (TESTS / (file if "/" in file else f"unit/{file}")).read_text()
        if function:
            assert f"def {function}(" in source, (file, function)
            found += 1
    for name, function in _JAVA_TEST.findall(page):
        (java_test,) = JAVA_TESTS.rglob(f"{name}.java")
        assert f"void {function}(" in java_test.read_text(), (name, function)
        found += 1
    assert found > 30
