"""The JSON in `detail` columns, checked: a sealed status file may still hold anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from status_tool.errors import StatusFileError

Shape = Callable[[Any], bool]
Fields = Mapping[str, Shape]
"""By key, what its value must be; other keys are ignored. An absent key is checked as null."""


def loads(text: str | None) -> Any:
    """Parse JSON. Raises ValueError for anything else, and for JSON that is nested too deeply."""
    try:
        return json.loads(text or "")
    except RecursionError:
        raise ValueError("nested too deeply") from None


def object_in(text: str | None) -> dict[str, Any] | None:
    """Parse a JSON object; None for anything else."""
    try:
        document = loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def parse_detail(text: str | None, fields: Fields, what: str) -> dict[str, Any]:
    """Return a `detail` with valid fields; `StatusFileError` names `what` otherwise."""
    document = object_in(text)
    if document is None or not fits(document, fields):
        raise StatusFileError(
            f"the master's file holds a {what} that cannot be parsed: write it again (status-tool run -m)"
        )
    return document


def fits(document: Any, fields: Fields) -> bool:
    """Return True if the document is an object with these fields."""
    return isinstance(document, dict) and all(check(document.get(key)) for key, check in fields.items())


def is_text(value: Any) -> bool:
    """Return True for a string."""
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """Return True for an integer of 64 bits. Booleans do not count."""
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def is_flag(value: Any) -> bool:
    """Return True for a boolean."""
    return isinstance(value, bool)


def optional(check: Shape) -> Shape:
    """Return a check that accepts null, too."""
    return lambda value: value is None or check(value)


def list_of(check: Shape) -> Shape:
    """Return the check for a list of such values."""
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


def map_of(check: Shape) -> Shape:
    """Return the check for an object of such values."""
    return lambda value: isinstance(value, dict) and all(check(item) for item in value.values())


def object_of(fields: Fields) -> Shape:
    """Return the check for an object with these fields."""
    return lambda value: fits(value, fields)
