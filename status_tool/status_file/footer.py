"""The header of a status file as JSON in the Parquet footer, and the footer's digest field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any, NoReturn

from status_tool.vocabulary.header import HALVES, SHUTDOWN_SOURCES, SIDES, Header
from status_tool.vocabulary.schema import FORMAT_VERSION, KINDS
from status_tool.vocabulary.varint import varint
from status_tool.vocabulary.verdicts import Evidence

HEADER_KEY = b"status-tool"
DIGEST_KEY = b"status-tool-digest"
NO_DIGEST = b"0" * 64
"""The placeholder for the digest, and for a signature, while it is computed."""

# Thrift's compact protocol writes a KeyValue's value as: field header 0x18, length 64 = 0x40, the bytes.
# No JSON text can hold the byte 0x18, and no other outside text gets into the footer (the writer keeps
# statistics for `kind` alone), so this pattern is found once.
DIGEST_PATTERN = re.compile(re.escape(DIGEST_KEY) + rb"\x18\x40([0-9a-f]{64})")

_HEADER_PLACE = HEADER_KEY + b"\x18"
"""What stands before the header's length, for the same reason only once."""

MAX_HEADER_CHARS = 16 << 20
MAX_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: later times are taken as damage."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "side": SIDES,
    "half": HALVES,
    "evidence": tuple(level for level in Evidence if level not in (Evidence.ROWS, Evidence.ACCEPTED)),
    "shutdown_from": ("", *SHUTDOWN_SOURCES),
}


class NewerFormat(ValueError):
    """The header says that a later version of this tool wrote it."""

    def __init__(self, version: int) -> None:
        super().__init__(f"format version {version}")
        self.version = version


def encode_header(header: Header, counts: Mapping[str, int]) -> str:
    """Return the header and the number of rows of each kind as JSON; ValueError for an invalid header."""
    document = {"format_version": FORMAT_VERSION, **asdict(header), "rows": dict(counts)}
    text = json.dumps(document, ensure_ascii=True, allow_nan=False)
    decode_header(text)  # what the reader would refuse must not be written
    return text


def decode_header(text: str | bytes) -> tuple[Header, dict[str, int]]:
    """Return header and row counts; ValueError (`NewerFormat` for a later version) says what is wrong.

    Keys that this version does not know are ignored. All of its own must be there: what is absent is no fact.
    """
    document = parse_json(text, MAX_HEADER_CHARS)
    if not isinstance(document, dict):
        raise ValueError("the header is not a JSON object")
    version = document.get("format_version")
    if type(version) is not int or version < 1:
        raise ValueError("the header has no valid format_version")
    if version > FORMAT_VERSION:
        raise NewerFormat(version)
    return _header(document), _counts(document.get("rows"))


def header_in(footer: bytes) -> Header | None:
    """Return the header in a footer whose digest has not been checked, which only this parser may touch.

    None if this version cannot read it.
    """
    _, _, rest = footer.partition(_HEADER_PLACE)
    length, place = varint(rest) or (0, 0)
    try:
        return decode_header(rest[place : place + length])[0]
    except ValueError:
        return None


def parse_json(text: str | bytes, max_chars: int) -> Any:
    """Parse strict JSON: no NaN, no repeated keys, no bottomless nesting; ValueError otherwise."""
    if len(text) > max_chars:
        raise ValueError(f"more than {max_chars >> 20} MiB of JSON")
    try:
        return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    # `json` keeps the last of two values: the other one would not be checked.
    if len(result) != len(pairs):
        raise ValueError("a JSON key occurs twice")
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of a status file")


def _header(document: Mapping[str, Any]) -> Header:
    values: dict[str, Any] = {}
    for item in fields(Header):
        if item.name not in document:
            raise ValueError(f"the header lacks {item.name}: write it again with this version of status-tool")
        values[item.name] = _CHECKS[str(item.type)](item.name, document[item.name])
    for name, allowed in _CHOICES.items():
        if values[name] not in allowed:
            raise ValueError(f"the header's {name} is none of {', '.join(allowed)}")
    return Header(**values)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"the header's {name} is not text")
    return value


def time_ms(name: str, value: Any) -> int:
    """Return `value` if it is a whole number of milliseconds that a calendar can hold, else ValueError."""
    if type(value) is not int:  # `isinstance(True, int)` holds
        raise ValueError(f"{name} is not a whole number")
    if not 0 <= value <= MAX_MS:
        raise ValueError(f"{name} is not a time in milliseconds since 1970")
    return value


def _number(name: str, value: Any) -> int:
    return time_ms(f"the header's {name}", value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"the header's {name} is neither true nor false")
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"the header's {name} is not a list")
    return tuple(_text(name, item) for item in value)


def _times(name: str, value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping):
        raise ValueError(f"the header's {name} is not a JSON object")
    return {_text(name, key): _number(name, time) for key, time in value.items()}


def _optional(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


# By the annotation of Header's fields, so that a field added there is checked without a change here.
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "str": _text,
    "str | None": _optional(_text),
    "int": _number,
    "int | None": _optional(_number),
    "bool": _flag,
    "bool | None": _optional(_flag),
    "tuple[str, ...]": _texts,
    "Mapping[str, int]": _times,
}


def _counts(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise ValueError("the header lacks the row counts")
    for kind, count in value.items():
        if kind not in KINDS or type(count) is not int or count < 0:
            raise ValueError("the header's row counts are not valid")
    return value
