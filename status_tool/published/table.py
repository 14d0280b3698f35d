"""The table of published status files on one cluster: publishers write it, replication ships it, slaves read it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import happybase

from status_tool.clients.named_table import NamedTable
from status_tool.clients.thrift import check_and_put, connection, scan
from status_tool.errors import OutputError, StatusFileError
from status_tool.printable import iso
from status_tool.published.layout import (
    CLAIM,
    CLOSING,
    CLOSING_ROWS,
    PART,
    Closing,
    claim_key,
    closing_of,
    parts_of,
)
from status_tool.vocabulary.names import PUBLISHED_FAMILY

PUBLISHED_TTL_S = 86_400


@dataclass(frozen=True)
class Published:
    """What lies in the table."""

    closings: tuple[Closing, ...] = ()
    """Newest barrier first."""
    unreadable: tuple[str, ...] = ()
    """Why closing rows cannot be read, each reason once."""


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

    def _foreign(self, table: happybase.Table) -> str | None:
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
        """The newest claim; None where there is none."""
        with self._open() as table:
            value: bytes | None = table.row(claim_key(cluster_id), [CLAIM]).get(CLAIM)
            return value

    def put(self, content: bytes, closing: Closing) -> None:
        """Write a status file: its parts, and only then the closing row that makes it count."""
        with self._open() as table:
            for number, part in enumerate(parts_of(content)):
                table.put(closing.part(number), {PART: part})
            table.put(closing.key, {CLOSING: closing.value()})

    def published(self) -> Published:
        """All closing rows that are here. Whether a file has arrived in whole shows when it is fetched."""
        found: list[Closing] = []
        unreadable: dict[str, None] = {}
        for key, cells in scan(self.endpoint, self.name, *CLOSING_ROWS, [CLOSING]):
            try:
                found.append(closing_of(key, cells[CLOSING][0]))
            except StatusFileError as error:
                unreadable[str(error)] = None
        found.sort(key=lambda one: (one.barrier_ms, one.name), reverse=True)
        return Published(tuple(found), tuple(unreadable))

    def fetch(self, closing: Closing, path: Path) -> None:
        """Write a published file to `path`. Raises `StatusFileError` if it has not arrived in whole, or was altered."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._open() as table, open(path, "wb") as file:
                for number in range(closing.cells):
                    part = table.row(closing.part(number), [PART]).get(PART)
                    if part is None:
                        raise _refusal(
                            closing, f"has not arrived in whole: part {number + 1} of {closing.cells} is missing"
                        )
                    digest.update(part)
                    size += len(part)
                    file.write(part)
        except OSError as error:
            raise OutputError(f"cannot write a published status file to {path}: {error.strerror or error}") from None
        if size != closing.size or digest.hexdigest() != closing.sha256:
            raise _refusal(closing, "was altered: its parts do not match the digest in its closing row")


def shell_line(name: str) -> str:
    """How the HBase shell creates the table."""
    return f"create '{name}', {{NAME => '{PUBLISHED_FAMILY}', REPLICATION_SCOPE => 1, TTL => {PUBLISHED_TTL_S}}}"


def _refusal(closing: Closing, reason: str) -> StatusFileError:
    return StatusFileError(f"the status file published at {iso(closing.barrier_ms)} {reason}")
