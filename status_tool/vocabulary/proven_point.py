"""The answer of `recovery-point`: up to when everything is proven to be on the slave, by table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Beyond:
    """Extent of a table's entries beyond the point, by heads and segments; None where unknown."""

    newest_ms: int | None = None
    """The newest entry that is known, whether it is here or not."""
    missing: int | None = None
    """About how many entries are known to be missing."""


@dataclass(frozen=True)
class TablePoint:
    """A table's recovery point; None: there is none."""

    point_ms: int | None
    held_back_by: str | None
    beyond: Beyond = field(default_factory=Beyond)


@dataclass(frozen=True)
class RecoveryPoint:
    """The answer. Times are epoch ms on the publisher's clock; `read_ms` is this host's, of the list of files."""

    slave_cluster_id: str
    master_cluster_id: str | None
    read_ms: int
    point_ms: int | None
    skew_ms: int | None
    """By how much the clocks of the master's servers and of the publisher may differ at most; None: unknown."""
    held_back_by: str | None
    evidence: str | None
    """Evidence of the point, as `hbase.evidence` of a check; None: there is no point."""
    tables: Mapping[str, TablePoint]
    newest_ms: int | None
    """The cut of the newest file that is here."""
    interval_ms: int | None
    published: int
    judged: int
    notices: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    """What the point does not cover, in words."""

    @property
    def points(self) -> Mapping[str, int | None]:
        """Return the points by table; that of the whole has an empty name."""
        return {"": self.point_ms, **{name: table.point_ms for name, table in self.tables.items()}}

    @property
    def age_ms(self) -> int | None:
        """Age of the point by this host's clock; None without a point."""
        return None if self.point_ms is None else max(0, self.read_ms - self.point_ms)
