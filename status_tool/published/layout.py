"""Layout of a published status file in the table: rows of at most one cell, and a closing row that makes it count.

Row keys are ASCII. `f/CLUSTER/DIGEST` holds a part of files, by its content: parts that several files have in common
are there once. `c/CLUSTER/NAME` is a file's closing row, which names its parts, and `k/CLUSTER` the claim of the last
round; CLUSTER is the publisher's own HBase cluster id. The closing row is written last, and replication may bring it
first: a file counts only once all parts are there, each of the digest that is its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

from status_tool.errors import StatusFileError
from status_tool.vocabulary.details import fits, is_number, is_text, list_of, object_in, optional
from status_tool.vocabulary.names import PUBLISHED_FAMILY
from status_tool.vocabulary.outcome import AHEAD_MS

CELL_BYTES = 1 << 20
LAYOUT_VERSION = 2
PART = f"{PUBLISHED_FAMILY}:d".encode()
CLOSING = f"{PUBLISHED_FAMILY}:c".encode()
CLAIM = f"{PUBLISHED_FAMILY}:k".encode()
CLOSING_ROWS = (b"c/", b"c0")
"""First key of all closing rows, and the first one behind them."""
_DIGEST = re.compile("[0-9a-f]{64}")


def _is_part(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 2 or not is_text(value[0]) or not is_number(value[1]):
        return False
    # The digest becomes a part of a row key: nothing else may stand there.
    return bool(_DIGEST.fullmatch(value[0])) and 0 < value[1] <= CELL_BYTES


_NUMBERS = ("barrier_ms", "cut_ms", "interval_ms")
_FIELDS = {
    **dict.fromkeys(_NUMBERS, is_number),
    "half": is_text,
    "parts": list_of(_is_part),
    "number": optional(is_number),
    "cluster_key": optional(is_text),
}


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of published files."""

    digest: str
    """SHA-256 in hex of its content."""
    size: int

    @classmethod
    def of(cls, content: bytes) -> FilePart:
        """Return the part with this content."""
        return cls(hashlib.sha256(content).hexdigest(), len(content))


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing row of a published status file. Times are epoch ms on the publisher's clock."""

    cluster_id: str
    name: str
    parts: tuple[FilePart, ...]
    """In the order in which they make up the file."""
    barrier_ms: int
    """When the file's barrier was issued."""
    cut_ms: int
    interval_ms: int
    """How often the publisher publishes."""
    half: str
    """As in the file's header."""
    number: int = 0
    """Number of the round by the publishers' claims, which rises whatever their clocks do; 0: an earlier version's."""
    cluster_key: str = ""
    """Where the publisher's cluster is; empty: an earlier version's."""
    put_ms: int | None = field(default=None, compare=False)
    """When HBase got the row, on the clock of the master's region server; None: not known."""

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Return a key that rises from one file of a cluster to the next.

        Rounds are numbered: a cluster's clocks may be set back, and a file from before would pass for the newest. Of
        files without a number the row's time tells: one of a publisher whose clock was ahead hides none that is newer.
        """
        is_ahead = self.put_ms is not None and self.barrier_ms - self.put_ms > AHEAD_MS
        return self.number, (self.put_ms or 0) if is_ahead else self.barrier_ms, self.barrier_ms, self.name

    @property
    def key(self) -> bytes:
        """Return the key of its row."""
        return f"c/{self.cluster_id}/{self.name}".encode()

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return sum(part.size for part in self.parts)

    def part_key(self, part: FilePart) -> bytes:
        """Return the key of a part's row."""
        return f"f/{self.cluster_id}/{part.digest}".encode()

    def value(self) -> bytes:
        """Return the value of its cell."""
        stored = {name: getattr(self, name) for name in (*_NUMBERS, "half", "number", "cluster_key")}
        parts = [[part.digest, part.size] for part in self.parts]
        return json.dumps({"version": LAYOUT_VERSION, **stored, "parts": parts}).encode()


def claim_key(cluster_id: str) -> bytes:
    """Return the key of the row by which publishers of one cluster agree."""
    return f"k/{cluster_id}".encode()


def new_name(barrier_ms: int) -> str:
    """Return a name that sorts by time and that no other publisher draws."""
    return f"{barrier_ms:013d}-{os.urandom(4).hex()}"


def closing_of(key: bytes, value: bytes, put_ms: int | None = None) -> Closing:
    """Return the closing row with this key and cell; `StatusFileError` for one that this version cannot read."""
    kind, cluster_id, name = ([*key.decode(errors="replace").split("/"), "", ""])[:3]
    found = object_in(value.decode(errors="replace")) or {}
    version = found["version"] if is_number(found.get("version")) else 0
    # The version comes first: `fits` knows the fields of this layout alone.
    if version > LAYOUT_VERSION:
        raise StatusFileError("a newer status-tool published it: upgrade status-tool here")
    if kind != "c" or not cluster_id or not name or version != LAYOUT_VERSION or not fits(found, _FIELDS):
        raise StatusFileError("its closing row cannot be parsed")
    parts = tuple(FilePart(*part) for part in found["parts"])
    numbers = {number: found[number] for number in _NUMBERS}
    later: dict[str, Any] = {"number": found.get("number") or 0, "cluster_key": found.get("cluster_key") or ""}
    return Closing(cluster_id, name, parts, half=found["half"], put_ms=put_ms, **numbers, **later)
