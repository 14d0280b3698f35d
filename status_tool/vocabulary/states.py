"""Values of the column `state`, by the kind of row (docs/formats.md, Status file)."""

from __future__ import annotations

from enum import StrEnum


class RegionState(StrEnum):
    """State of a `region` row: the region's place on live servers."""

    HOSTED = "hosted"
    UNHOSTED = "unhosted"
    DISABLED = "disabled"
    """Its table is disabled, so nothing hosts it."""
    SPLIT = "split"
    """A parent whose daughters, or a merged region's, have taken over."""


class FactState(StrEnum):
    """State of a `fact` row: an event of the region."""

    BULK_LOAD = "bulkload"
    LOCAL_LOAD = "localload"
    """A bulk load with replication switched off, or of which nobody has recorded that it was on."""
    SPLIT = "split"
    MERGE = "merge"
    CONTENT = "content"
    """It is gone and had store files of replicated families."""
    CHANGED = "changed"
    """It opened with other store files than it was closed with, or nobody saw where its first ones come from."""
    TAIL = "tail"
    """`origin` crashed with entries up to `seq` that it had not recorded."""
    UNATTENDED = "unattended"
    """No tracker of the slave vouches for it and `entries` - 1 other regions of its table; `detail` says why."""


LINEAGE = (FactState.SPLIT, FactState.MERGE)
"""The region was a parent."""


class FileState(StrEnum):
    """State of a `file` row; null for an ordinary file."""

    UNREADABLE = "unreadable"
    OPEN = "open"
    """It is being written."""
