"""Text from outside made harmless, and times and spans as people read them.

Table names, paths and row keys are chosen by others: a name may hold escape sequences that
rewrite the terminal, newlines that fake a verdict line, or bidi controls that reorder it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime


def print_beside(text: str) -> None:
    """Print a line to standard error that is no part of the answer. Without a reader there the answer still counts."""
    with suppress(OSError, ValueError):
        print(f"status-tool: {text}", file=sys.stderr, flush=True)


def safe(text: str, limit: int | None = None) -> str:
    r"""Return `text` with every character that does not print as itself escaped (`\x1b`, `\u202e`).

    `limit` bounds the result's length in characters; what was cut is shown as `…`.
    """
    # `isprintable` is false for controls, bidi controls and lone surrogates alike.
    if not text.isprintable():
        text = "".join(char if char.isprintable() else _escaped(char) for char in text)
    if limit is not None and len(text) > limit:
        text = text[: max(limit - 1, 0)] + "…"
    return text


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def safe_json(text: str) -> str:
    r"""Return JSON text with every character that does not print escaped as JSON does (`\u202e`): the same document.

    JSON itself escapes only what is below U+0020; a dump is looked at with `less` and `grep`, too.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def printable_key(key: bytes) -> str:
    r"""Return a row key as HBase's `Bytes.toStringBinary` prints it and its tools read it: `\xNN` for other bytes."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 0x5C else f"\\x{byte:02X}" for byte in key)


def iso(ms: int | None) -> str:
    """Return epoch milliseconds as ISO 8601 in UTC; `unknown` for None; a number no calendar holds stays a number."""
    if ms is None:
        return "unknown"
    seconds, rest = divmod(ms, 1000)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def counted(number: int, noun: str) -> str:
    """Return `1 region`, `2 regions`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def few(names: Sequence[str], most: int) -> str:
    """Return the first `most` of some names, as in `a, b and 7 more`."""
    more = len(names) - most
    return f"{', '.join(names[:most])}{f' and {more} more' if more > 0 else ''}"


def duration(ms: int) -> str:
    """Return a span of milliseconds in the two largest units that matter, as in `2 h 5 min`."""
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
