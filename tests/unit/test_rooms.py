"""The rooms of `status_tool`: what each is for, and which may know of which."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.proportions import modules, twice

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "status_tool"
BASE = ("errors", "printable", "atomic", "temporary")
"""Modules beside the rooms: every room may use them."""
ROOMS = (
    *("vocabulary", "rules", "explain", "status_file", "clients", "sources", "published"),
    *("gather", "spark", "report", "digests", "runs", "watch", "cli"),
)
"""Each may import from itself and from those before it."""


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def imported(path: Path) -> Iterator[str]:
    """The modules of this package that one imports, wherever in its text; names of modules or of what is in them."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE.name:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == PACKAGE.name)


def room_of(module: str) -> str | None:
    """The room, or the module beside the rooms; None for the package itself."""
    parts = module.split(".")[1:]
    return parts[0] if parts and parts[0] in (*BASE, *ROOMS) else None


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_what_lies_below(path: Path) -> None:
    """The order of `ROOMS`; what lies beside them imports no room at all, except the entry `__main__`."""
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    below = () if own not in ROOMS else ROOMS[: ROOMS.index(own) + 1]
    if own != "__main__":
        assert {room_of(module) for module in imported(path)} <= {None, *BASE, *below}


def test_no_module_imports_itself_in_a_circle() -> None:
    """Whatever the rooms, no circle of modules, also for types alone."""
    known = {".".join(path.relative_to(REPOSITORY).with_suffix("").parts): set(imported(path)) for path in modules()}
    needs = {
        name: {one for one in (*seen, *(n.rpartition(".")[0] for n in seen)) if one in known}
        for name, seen in known.items()
    }
    while free := {name for name, needed in needs.items() if not needed}:
        needs = {name: needed - free for name, needed in needs.items() if name not in free}
    assert sorted(needs) == []


def test_every_folder_is_a_room_with_one_sentence_that_the_architecture_shows() -> None:
    """In its `__init__`: what enters and what leaves."""
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(ROOMS)
    shown = (REPOSITORY / "docs" / "architecture.md").read_text()
    for room in ROOMS:
        said = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
        assert "\n" not in said
        assert f"| `{room}/` | {said} |" in shown


def test_no_module_is_loose_and_no_name_occurs_twice() -> None:
    """A file's name alone says which one is meant."""
    loose = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert loose == set(BASE)
    names = Counter(path.name for path in modules() if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_a_public_name_is_defined_once() -> None:
    """Whatever the room: a name alone says what is meant."""
    assert set(twice()) == set()


FRAGMENTS = (
    *("What", "Whether", "Of", "As", "Where", "How", "That", "To", "In", "By", "With", "For", "From", "Which", "When"),
    *("Who", "All", "Those", "Since", "If", "On", "At"),
)


def test_no_docstring_begins_with_a_fragment() -> None:
    """A function's begins with a verb, a class's, module's or property's with a noun (CONTRIBUTING, English)."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    said = [
        (path.name, text)
        for path in modules()
        for node in nodes(path)
        if isinstance(node, kinds) and (text := ast.get_docstring(node))
    ]
    assert [(name, text) for name, text in said if text.split()[0] in FRAGMENTS] == []
