"""The names of the state table's rows and columns are the same in Python, in Java, and in docs/formats.md."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from status_tool.digests import request_rows
from status_tool.vocabulary import state_rows

REPOSITORY = Path(__file__).resolve().parents[2]
JAVA = REPOSITORY / "coprocessor_stubs" / "src" / "main" / "java" / "io" / "github" / "statustool"
Names = dict[str, dict[str, str]]
"""By row, its constants."""


def in_python(module: ModuleType) -> Names:
    """The constants of every class."""
    rows = {name: vars(one) for name, one in vars(module).items() if isinstance(one, type)}
    return {
        row: {name: _text(value) for name, value in values.items() if name.isupper()} for row, values in rows.items()
    }


def in_java(name: str) -> Names:
    """The same of a class of the trackers."""
    rows = re.findall(r"static final class (\w+) \{(.*?)private", (JAVA / f"{name}.java").read_text(), re.S)
    constant = r"static final \S+ (\w+) = (?:Bytes\.toBytes\(\"|')(.)"
    return {row: dict(re.findall(constant, body)) for row, body in rows}


def in_the_document(names: Names) -> Names:
    """The same of the tables in docs/formats.md, for the rows that are known."""
    found: Names = {}
    text = (REPOSITORY / "docs" / "formats.md").read_text()
    for row, key, _, columns in re.findall(r"^\| (\w+Row): `(\w)`(.*?)\|.*?\|(.*)$", text, re.M):
        constants = dict(re.findall(r"`(\w)`(?: \+ [^:·]*?)? ([A-Z][A-Z_]+)\b", columns))
        found[row] = {"TYPE" if "TYPE" in names.get(row, {}) else "KEY": key, **{v: k for k, v in constants.items()}}
    return {row: constants for row, constants in found.items() if row in names}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize(("module", "java"), [(state_rows, "state/StateTable"), (request_rows, "digests/DigestTable")])
def test_the_names_are_those_of_the_trackers(module: ModuleType, java: str) -> None:
    """Every row, every column, every letter."""
    assert in_python(module) == in_java(java)
    assert len(in_java(java)) >= 4


@pytest.mark.parametrize("module", [state_rows, request_rows])
def test_the_names_are_those_of_the_formats(module: ModuleType) -> None:
    """As docs/formats.md shows them beside the letters."""
    assert in_the_document(in_python(module)) == in_python(module)
