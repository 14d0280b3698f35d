"""docs/ways-out.md names every code of a problem; it and docs/correctness.md name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from status_tool.vocabulary.codes import CODES

TESTS = Path(__file__).resolve().parent.parent
PAGE, CLAIMS = ((TESTS.parent / "docs" / name).read_text() for name in ("ways-out.md", "correctness.md"))
_CELL = re.compile(r"^\| ((?:`[a-z-]+`(?:, )?)+) \|", re.MULTILINE)
_TEST = re.compile(r"`((?:[a-z_]+/)*test_\w+\.py)?(?:::(\w+))?`")
_JAVA_TEST = re.compile(r"`(\w+Test)\.(\w+)`")
JAVA_TESTS = TESTS.parent / "coprocessor_stubs" / "src" / "test" / "java"


def test_every_code_has_its_way_out() -> None:
    """Those that the tool can print, and no others."""
    named = {code for cell in _CELL.findall(PAGE) for code in re.findall(r"`([a-z-]+)`", cell)}
    assert named == {name for name, code in CODES.items() if code.words}


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
