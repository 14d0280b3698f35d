"""The published JSON Schema of what `run -i` prints and lists."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

PATH = Path(__file__).resolve().parent.parent / "docs" / "run-check.schema.json"


@cache
def schema() -> dict[str, Any]:
    """The whole document."""
    parsed: dict[str, Any] = json.loads(PATH.read_text())
    return parsed


def assert_valid(document: object, part: str | None = None) -> None:
    """`document` is what `--json` prints, or what the named part of the schema describes."""
    whole = schema()
    wanted = whole if part is None else {"$ref": f"#/$defs/{part}", "$defs": whole["$defs"]}
    jsonschema.Draft202012Validator(wanted).validate(document)
