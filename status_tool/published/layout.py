"""How a published status file lies in the table: rows of at most one cell, and a closing row that makes it count.

Row keys are ASCII. `f/CLUSTER/NAME/NUMBER` holds a part of the file, `c/CLUSTER/NAME` its closing row, `k/CLUSTER` the
claim of the last round; CLUSTER is the publisher's own HBase cluster id. The closing row is written last, and
replication may bring it first: a file counts only once its parts are as many, and of the digest, as that row says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from status_tool.errors import StatusFileError
from status_tool.vocabulary.details import fits, is_number, is_text, loads
from status_tool.vocabulary.names import PUBLISHED_FAMILY

CELL_BYTES = 1 << 20
LAYOUT_VERSION = 1
PART = f"{PUBLISHED_FAMILY}:d".encode()
CLOSING = f"{PUBLISHED_FAMILY}:c".encode()
CLAIM = f"{PUBLISHED_FAMILY}:k".encode()
CLOSING_ROWS = (b"c/", b"c0")
"""First key of all closing rows, and the first one behind them."""
_FIELDS = {
    **dict.fromkeys(("cells", "size", "barrier_ms", "cut_ms", "interval_ms"), is_number),
    **dict.fromkeys(("sha256", "half"), is_text),
}


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing row of a published status file. Times are epoch ms on the publisher's clock."""

    cluster_id: str
    name: str
    cells: int
    size: int
    """Bytes of the file."""
    sha256: str
    barrier_ms: int
    """When the file's barrier was issued: it only rises from one file of a cluster to the next."""
    cut_ms: int
    interval_ms: int
    """How often the publisher publishes."""
    half: str
    """As in the file's header."""

    @property
    def key(self) -> bytes:
        """Of its row."""
        return f"c/{self.cluster_id}/{self.name}".encode()

    def part(self, number: int) -> bytes:
        """The key of a part's row."""
        return part_key(self.cluster_id, self.name, number)

    def value(self) -> bytes:
        """Of its cell."""
        stored = {key: value for key, value in asdict(self).items() if key not in ("cluster_id", "name")}
        return json.dumps({"version": LAYOUT_VERSION, **stored}).encode()


def part_key(cluster_id: str, name: str, number: int) -> bytes:
    """The key of the row that holds a part."""
    return f"f/{cluster_id}/{name}/{number:06d}".encode()


def claim_key(cluster_id: str) -> bytes:
    """The key of the row by which publishers of one cluster agree."""
    return f"k/{cluster_id}".encode()


def new_name(barrier_ms: int) -> str:
    """A name that sorts by time and that no other publisher draws."""
    return f"{barrier_ms:013d}-{os.urandom(4).hex()}"


def closing_of(key: bytes, value: bytes) -> Closing:
    """The closing row with this key and cell; `StatusFileError` for one that this version cannot read."""
    kind, cluster_id, name = ([*key.decode(errors="replace").split("/"), "", ""])[:3]
    try:
        found: Any = loads(value.decode(errors="replace"))
    except ValueError:
        found = None
    version = found.get("version") if isinstance(found, dict) else None
    if isinstance(version, int) and version > LAYOUT_VERSION:
        raise StatusFileError("a newer status-tool published it: upgrade status-tool here")
    if kind != "c" or not cluster_id or not name or version != LAYOUT_VERSION or not fits(found, _FIELDS):
        raise StatusFileError("its closing row cannot be parsed")
    if found["cells"] != -(-found["size"] // CELL_BYTES) or found["size"] < 0:
        raise StatusFileError("its closing row contradicts itself")
    return Closing(cluster_id, name, **{field: found[field] for field in _FIELDS})


def parts_of(content: bytes) -> Iterator[bytes]:
    """A file in parts of at most `CELL_BYTES`."""
    yield from (content[start : start + CELL_BYTES] for start in range(0, len(content), CELL_BYTES))
