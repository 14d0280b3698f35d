"""docs/troubleshooting.md: every message that it explains is one of the code's, word for word between its …"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.pair import REPOSITORY

PAGE = REPOSITORY / "docs" / "troubleshooting.md"
JAVA = REPOSITORY / "coprocessor_stubs" / "src" / "main"
ANY = "…"


@cache
def said_by_the_tool() -> tuple[str, ...]:
    """Each text in the code that is no docstring, with … for what is put into it."""
    found = []
    for path in (REPOSITORY / "status_tool").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            match node:
                case ast.JoinedStr(values=parts):
                    found.append("".join(str(p.value) if isinstance(p, ast.Constant) else ANY for p in parts))
                case ast.Constant(value=str(text)) if node not in docstrings:
                    found.append(text)
    return tuple(found)


@cache
def sentences() -> tuple[str, ...]:
    """Every text of the tool and of the trackers."""
    found = [*said_by_the_tool()]
    for path in JAVA.rglob("*.java"):
        joined = re.sub(r'"\s*\+\s*"', "", path.read_text())
        found += [text.replace("{}", ANY) for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)]
    return tuple(found)


def messages() -> list[str]:
    """The first column of each table."""
    rows = re.findall(r"^\| (`.*?) \| ", PAGE.read_text(), re.M)
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row)]


def is_said(message: str) -> bool:
    """Whether one text has the parts of the message in this order."""
    wanted = re.compile(".*".join(re.escape(part.strip()) for part in message.split(ANY)), re.S)
    return any(wanted.search(text) for text in sentences())


@pytest.mark.parametrize("message", messages())
def test_the_code_says_so(message: str) -> None:
    """A message that was reworded has to be reworded on the page."""
    assert len(message.replace(ANY, "").split()) >= 2, "too little to be found by"
    assert is_said(message)


def test_what_nobody_says_is_found() -> None:
    """Or the test above could not fail."""
    assert len(messages()) > 50
    assert not is_said("the state table … has been eaten")
