"""The rows and columns of the state table by name, as the trackers' `StateTable` has them (docs/formats.md).

One class a kind of row: `TYPE` is the first byte of its key, `KEY` its whole key, everything else a qualifier. Of one
that is called a prefix, only the first byte is here.
"""

from __future__ import annotations

from typing import Final

FAMILY: Final = b"t"
WRITER, REPLICATOR = "w", "r"
"""Roles of a server, the last character of its row's key: what it wrote, and what it applied."""


def column(qualifier: bytes) -> bytes:
    """Return the full column name of a qualifier."""
    return FAMILY + b":" + qualifier


def range_of(kind: str) -> tuple[bytes, bytes]:
    """Return the first key of a type of rows, and the first one behind them."""
    return kind.encode(), bytes([ord(kind) + 1])


class HeadRow:
    """The head of a stream: region, origin and via, which stands for the family, too."""

    TYPE: Final = "h"
    SEQ: Final = b"s"
    WRITE_MS: Final = b"w"
    FIRST_MS: Final = b"f"
    ENTRIES: Final = b"n"
    TABLE: Final = b"t"
    START_KEY: Final = b"k"
    END_KEY: Final = b"e"
    VIA_IDS: Final = b"v"
    FAMILY: Final = b"c"


class SegmentRow:
    """The segments of a stream: what has been applied of it."""

    TYPE: Final = "s"
    WRITER: Final = b"c"
    """Prefix, followed by 8 random bytes: the segments that one writer knows."""
    REPLICATED_MS: Final = b"r"
    TABLE: Final = b"t"
    FAMILY: Final = b"f"


class UnstampedRow:
    """Entries of a region that arrived without a valid stamp."""

    TYPE: Final = "u"
    WRITE_MS: Final = b"r"
    """Prefix, followed by cluster ids."""
    TABLE: Final = b"t"


class FactRow:
    """Facts about a region: bulk loads, splits, merges."""

    TYPE: Final = "g"
    BULK_LOAD_MS: Final = b"b"
    LOCAL_LOAD_MS: Final = b"u"
    LINEAGE: Final = b"l"
    REGION_ID: Final = b"i"
    CHILD_MS: Final = b"c"
    TABLE: Final = b"t"


class ContentRow:
    """The content ledger of a region."""

    TYPE: Final = "f"
    TENURE: Final = b"k"
    """Prefix, followed by the origin and the time of the opening."""
    REGION_ID: Final = b"i"
    TABLE: Final = b"t"


class TableEventRow:
    """Events of a table outside the WAL, and the clusters that wrote to it."""

    TYPE: Final = "n"
    ARRIVED_MS: Final = b"a"
    BORN_MS: Final = b"b"
    FIRST_BORN_MS: Final = b"c"
    DROPPED_MS: Final = b"f"
    """Prefix, followed by the family's name."""
    RAISED_MS: Final = b"g"
    """Prefix, followed by the family's name."""
    SKIPPED_MS: Final = b"w"
    WRITTEN_MS: Final = b"l"
    """Prefix, followed by cluster ids."""
    FIRST_WRITTEN_MS: Final = b"e"
    """Prefix, followed by cluster ids."""
    DELETED_MS: Final = b"d"
    """Prefix, followed by cluster ids."""
    TAGGED_MS: Final = b"k"


class ServerRow:
    """A region server in one role (the key's last character)."""

    TYPE: Final = "o"
    NAME: Final = b"n"
    FLUSHED_MS: Final = b"f"
    SETTLED: Final = b"d"
    """Prefix, followed by a peer id. Written by the tool."""
    ECHO: Final = b"e"
    READ_MS: Final = b"m"
    FINAL_MS: Final = b"z"
    GONE_MS: Final = b"x"
    VERSION: Final = b"v"
    HEALTH: Final = b"q"
    LAST: Final = b"k"
    """Number of this version of the row; only rises."""


class TableRow:
    """A table's descriptor, as of a barrier."""

    TYPE: Final = "t"
    DESCRIPTOR: Final = b"d"
    ECHO: Final = b"e"


class PrunedRow:
    """Remains of a table's pruned heads. Written by the tool."""

    TYPE: Final = "p"
    WRITTEN_MS: Final = b"w"
    """Prefix, followed by cluster ids."""


class ProvenRow:
    """Proofs kept of a table's past, by its rows or the operator's word. Written by the tool, on the slave."""

    TYPE: Final = "v"
    PROVEN: Final = b"p"
    """Prefix, followed by the cluster id of a master."""


class BarrierRow:
    """The barrier. Written by the tool, but for the claim."""

    KEY: Final = b"b"
    TOKEN: Final = b"k"
    ISSUED_MS: Final = b"m"
    OPENINGS: Final = b"o"
    """Another value if a region of the state table was opened since the last barrier."""
    DOORBELL: Final = b"d"
    PRUNING: Final = b"p"
    TABLE_ID: Final = b"i"
    CLAIM: Final = b"c"


class CoverageRow:
    """Time since which every region server of the cluster has had a tracker."""

    KEY: Final = b"c"
    START_MS: Final = b"a"
    BACK_MS: Final = b"b"
    """When the table was last found to have lost rows, or to have gone back to an earlier state."""
    MARK: Final = b"m"
    """A number that only rises; a file beside the table has it as well."""
    REGIONS: Final = b"r"
    """The number that each region of the table has at least, and in which rows."""
    SLAVE_START_MS: Final = b"s"
    """Since when every region server has had a replicate-time tracker."""
    KEPT_MS: Final = b"k"
    """Since when the table has been kept."""


class ToolRow:
    """Facts that the tool keeps for itself."""

    KEY: Final = b"d"
    SHUTDOWN_MS: Final = b"s"
    PRUNED_BY: Final = b"p"
    """Prefix, followed by the cluster id of a master."""
