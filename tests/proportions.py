"""How long the tool's functions are, and which public names occur twice: `python -m tests.proportions`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "status_tool"
GENERATED = "hbase_pb2.py"


class Function(NamedTuple):
    """One function: lines of its body without the docstring, and of the whole."""

    body: int
    whole: int
    name: str


def modules() -> list[Path]:
    """Every module that people wrote."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != GENERATED)


def functions() -> Iterator[Function]:
    """Every function and method, also those inside others."""
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                end = node.end_lineno or node.lineno
                name = f"{path.relative_to(PACKAGE)}:{node.name}"
                yield Function(end - body[0].lineno + 1, end - node.lineno + 1, name)


def twice() -> dict[str, list[str]]:
    """Public names that more than one module defines, each with these modules."""
    found: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            for name in _defined(node):
                if not name.startswith("_"):
                    found.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def main() -> None:
    """Print it."""
    found = sorted(functions())
    bodies, wholes = [one.body for one in found], sorted(one.whole for one in found)
    lines = sum(len(path.read_text().splitlines()) for path in modules())
    print(f"{len(modules())} modules, {lines} lines, {len(found)} functions")
    for what, lengths in (("body", bodies), ("whole", wholes)):
        print(f"{what}: median {median(lengths):g}, p90 {lengths[len(lengths) * 9 // 10]}, longest {lengths[-1]}")
    for one in reversed(found[-8:]):
        print(f"  {one.body} ({one.whole}) {one.name}")
    print("twice:", *(f"{name} ({', '.join(places)})" for name, places in twice().items()))


if __name__ == "__main__":
    main()
