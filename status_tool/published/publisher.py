"""One round of a publisher: whether it is this one's turn, and a status file put into the table."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from status_tool.errors import ConfigurationError
from status_tool.published.layout import CELL_BYTES, Closing, FilePart, new_name
from status_tool.published.table import PublishedTable, SentParts
from status_tool.sources.state_table import now_ms
from status_tool.status_file.reader import open_status
from status_tool.status_file.writer import parts_of
from status_tool.vocabulary.details import is_number, object_in
from status_tool.vocabulary.header import MASTER


class Turns:
    """Whose round it is, where several publishers of one cluster run.

    A publisher leaves its round out if another one has claimed one since it looked last: no clocks are compared. Only
    in its first round, when it has not looked yet, it takes a claim of less than an interval ago for such a one. A
    claim that was handed back is nobody's: whoever claims rounds and fails would silence all others. So is, for this
    one, the claim of a publisher of anything else: of other tables or files, not signed, or up to a shutdown time.
    """

    def __init__(self, table: PublishedTable, cluster_id: str, interval_ms: int, what: str = "") -> None:
        self._table = table
        self._what = what
        self._cluster_id = cluster_id
        self._interval_ms = interval_ms
        # Containers may share a host name and process id: the random part tells publishers apart.
        self._id = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"
        self._seen: bytes | None = None
        self._has_looked = False
        self.number = 0
        """Of the round that this publisher claimed last; it is above those of all before, whoever published them."""

    def take(self) -> str | None:
        """Claim a round. Returns the publisher that has claimed it instead, if any. Raises `ConnectionFailed`."""
        found = self._table.claimed(self._cluster_id)
        if self._is_others(found):
            self._seen, self._has_looked = found, True
            return _who(found)
        known = max(0, _number_in(found, "number"), self.number) or self._table.last_number(self._cluster_id)
        # By the time, too: slaves keep files for a day whose numbers this cluster has lost (its table was truncated, or
        # made anew), and would take those for the newest.
        number = max(1 + known, now_ms())
        mine = self._claim_now(number=number)
        if not self._table.claim(self._cluster_id, found, mine):
            # Another publisher was faster. If its claim still stands at this one's next round, this one goes on.
            self._seen, self._has_looked = self._table.claimed(self._cluster_id), True
            return _who(self._seen)
        self._seen, self._has_looked, self.number = mine, True, number
        return None

    def hand_back(self) -> None:
        """Hand back a round that was claimed and failed, unless another one has claimed it since.

        Raises `ConnectionFailed`.
        """
        handed_back = self._claim_now(handed_back=True, number=self.number)
        if self._table.claim(self._cluster_id, self._seen, handed_back):
            self._seen = handed_back

    def _claim_now(self, **more: bool | int) -> bytes:
        # Id and time make each claim another value: by that, other publishers see that a round was claimed.
        claim = {"publisher": self._id, "claimed_ms": now_ms(), "what": self._what, **more}
        return json.dumps(claim).encode()

    def _is_others(self, found: bytes | None) -> bool:
        """Return True if another publisher has claimed a round since this one looked."""
        claim = _claim(found or b"")
        if found is None or claim.get("handed_back") or claim.get("what") != self._what:
            return False
        if self._has_looked:
            return found != self._seen
        # A clock that is ahead stamps claims with a later time, for which this publisher must not wait.
        return 0 <= now_ms() - _number_in(found, "claimed_ms") < self._interval_ms


def _claim(value: bytes) -> dict[str, object]:
    """Return a claim by its keys; empty for one that cannot be parsed."""
    return object_in(value.decode(errors="replace")) or {}


def _who(value: bytes | None) -> str:
    return str(_claim(value or b"").get("publisher") or "another publisher")


def _number_in(value: bytes | None, name: str) -> int:
    """Return a number of a claim; 0 for one that cannot be read."""
    number: Any = _claim(value or b"").get(name)
    # Slaves read no file of a round with a longer number (`is_number`).
    return number if is_number(number) else 0


def put_file(
    table: PublishedTable, file: Path, interval_ms: int, sent: SentParts, number: int = 0
) -> tuple[Closing, int]:
    """Put a master's status file into the table; returns its closing row, and how many bytes were put.

    Raises what reading and putting raise.
    """
    # A slave would refuse a damaged file only after it has arrived.
    with open_status(file, require_side=MASTER) as status:
        header = status.header
    if not header.cluster_id or header.barrier_issued_ms is None:
        raise ConfigurationError("a status file without its HBase half proves no recovery point: leave --only hdfs out")
    contents = list(parts_of(file, CELL_BYTES))
    closing = Closing(
        cluster_id=header.cluster_id,
        name=new_name(header.barrier_issued_ms),
        parts=tuple(map(FilePart.of, contents)),
        barrier_ms=header.barrier_issued_ms,
        cut_ms=header.cut_ms,
        interval_ms=interval_ms,
        half=header.half,
        number=number,
        cluster_key=header.cluster_key,
    )
    return closing, table.put(contents, closing, sent)
