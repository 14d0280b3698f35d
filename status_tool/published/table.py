"""The table of published status files on one cluster: publishers write it, replication ships it, slaves read it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import happybase

from status_tool.clients.named_table import NamedTable
from status_tool.clients.thrift import check_and_put, connection, scan
from status_tool.errors import OutputError, StatusFileError
from status_tool.printable import iso, safe
from status_tool.published.layout import (
    CLAIM,
    CLOSING,
    CLOSING_ROWS,
    PART,
    Closing,
    FilePart,
    claim_key,
    closing_of,
)
from status_tool.status_file.reader import open_status
from status_tool.status_file.signature import SignKey
from status_tool.vocabulary.header import MASTER, Header
from status_tool.vocabulary.names import PUBLISHED_FAMILY

PUBLISHED_TTL_S = 86_400
PUT_AGAIN_S = 600.0
"""A part that was put longer ago is put again: so long files lack it at most after a slave has lost it, and it never
expires much before the files that refer to it."""
_AT_ONCE = 8
"""How many parts are asked for at once."""


@dataclass(frozen=True)
class Published:
    """Content of the table."""

    closings: tuple[Closing, ...] = ()
    """Newest first."""
    unreadable: tuple[str, ...] = ()
    """Why closing rows cannot be read, each reason once."""


class SentParts:
    """Parts that this publisher has put less than `PUT_AGAIN_S` ago: files refer to them."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._at: dict[FilePart, float] = {}

    def has(self, part: FilePart) -> bool:
        """Return True if the part need not be put."""
        at = self._at.get(part)
        return at is not None and self.now() - at < PUT_AGAIN_S

    def note(self, part: FilePart, at: float) -> None:
        """Record that the part was put, not before `at`. Forgets parts that are too old."""
        self._at = {one: when for one, when in self._at.items() if at - when < PUT_AGAIN_S} | {part: at}


class PublishedTable(NamedTable):
    """Published status files, in parts, and their closing rows."""

    def _absent(self) -> str:
        return (
            f"the table {self.name} for published status files does not exist on this cluster: trackers of this "
            "version create it when a region server starts; or, in the HBase shell: "
            f"{shell_line(self.name)}"
        )

    def _hidden(self) -> str:
        return (
            f"the table {self.name} for published status files is not there, or this user (klist) has no rights on it: "
            f"`grant 'USER', 'RW', '{self.name}'` in the HBase shell, 'R' on the slave"
        )

    def _disabled(self) -> str:
        return f"the table {self.name} for published status files is disabled: enable it in the HBase shell"

    def _unfit(self, table: happybase.Table) -> str | None:
        families = sorted(name.decode(errors="replace").rstrip(":") for name in table.families())
        if families == [PUBLISHED_FAMILY]:
            return None
        return (
            f"the table {self.name} has the families {', '.join(families)}, so it is not the one for published "
            "status files: rename it, or put the state table, whose namespace counts, into another namespace"
        )

    def claim(self, cluster_id: str, known: bytes | None, mine: bytes) -> bool:
        """Claim a round: replace the claim `known` (None: there is none) by `mine`; False if it is another by now."""
        with connection(self.endpoint) as client:
            return check_and_put(client, self.name, claim_key(cluster_id), CLAIM, known, mine)

    def claimed(self, cluster_id: str) -> bytes | None:
        """Return the newest claim; None if there is none."""
        with self._open() as table:
            value: bytes | None = table.row(claim_key(cluster_id), [CLAIM]).get(CLAIM)
            return value

    def last_number(self, cluster_id: str) -> int:
        """Return the highest number of a round of a cluster's files that are here; 0 without any."""
        own = (one.number for one in self.published().closings if one.cluster_id == cluster_id)
        return max(own, default=0)

    def put(self, contents: Sequence[bytes], closing: Closing, sent: SentParts) -> int:
        """Write a status file: the parts that are not in the table, and only then the closing row that makes it count.

        Returns how many bytes were put.
        """
        count = 0
        with self._change() as table:
            for part, content in zip(closing.parts, contents, strict=True):
                if not sent.has(part):
                    # Before the put, so that the part never counts as younger than its cell, which expires.
                    now = sent.now()
                    table.put(closing.part_key(part), {PART: content})
                    sent.note(part, now)
                    count += len(content)
            value = closing.value()
            table.put(closing.key, {CLOSING: value})
        return count + len(value)

    def published(self) -> Published:
        """Return all closing rows that are here. Whether a file has arrived in whole shows when it is fetched."""
        found: list[Closing] = []
        unreadable: dict[str, None] = {}
        for key, cells in scan(self.endpoint, self.name, *CLOSING_ROWS, [CLOSING]):
            try:
                found.append(closing_of(key, *cells[CLOSING]))
            except StatusFileError as error:
                # One row of a newer layout must not hide the others.
                unreadable[str(error)] = None
        found.sort(key=lambda one: one.order, reverse=True)
        return Published(tuple(found), tuple(unreadable))

    def fetch(self, closing: Closing, path: Path, key: SignKey | None = None) -> Header:
        """Write a published file to `path`; return its header.

        Raises `StatusFileError` unless it has arrived in whole, is the master's status of this closing row, and is
        signed with `key` if there is one.
        """
        self._fetch(closing, path)
        return refuse_unfit(closing, path, key)

    def _fetch(self, closing: Closing, path: Path) -> None:
        try:
            with self._open() as table, open(path, "wb") as file:
                # One answer of Thrift holds them all: 8 MiB at most.
                for start in range(0, len(closing.parts), _AT_ONCE):
                    some = closing.parts[start : start + _AT_ONCE]
                    here = dict(table.rows([closing.part_key(part) for part in some], [PART]))
                    for number, part in enumerate(some, start + 1):
                        content = here.get(closing.part_key(part), {}).get(PART)
                        which = f"part {number} of {len(closing.parts)}"
                        if content is None:
                            raise _refusal(closing, f"has not arrived in whole: {which} is missing")
                        if FilePart.of(content) != part:
                            raise _refusal(closing, f"was altered: {which} does not match its digest")
                        file.write(content)
        except OSError as error:
            raise OutputError(f"cannot write a published status file to {path}: {error.strerror or error}") from None


def shell_line(name: str) -> str:
    """Return the HBase shell's command that creates the table."""
    return f"create '{name}', {{NAME => '{PUBLISHED_FAMILY}', REPLICATION_SCOPE => 1, TTL => {PUBLISHED_TTL_S}}}"


def refuse_unfit(closing: Closing, path: Path, key: SignKey | None) -> Header:
    """Return the header of `path`.

    Raises `StatusFileError` unless it is the master's status of the closing row, signed with the `key` if any.
    """
    try:
        with open_status(path, require_side=MASTER, key=key) as status:
            header = status.header
    except StatusFileError as error:
        raise _refusal(closing, str(error).removeprefix(safe(str(path))).strip()) from None
    # A closing row has no signature: whoever may write the table can name an older, signed file in a new row.
    if (header.cluster_id, header.barrier_issued_ms) != (closing.cluster_id, closing.barrier_ms):
        raise _refusal(closing, "is another one than its closing row says")
    return header


def _refusal(closing: Closing, reason: str) -> StatusFileError:
    return StatusFileError(f"the status file published at {iso(closing.barrier_ms)} {reason}")
