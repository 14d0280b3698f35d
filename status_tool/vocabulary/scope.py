"""The scope of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a run."""

    tables: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    since_ms: int | None = None
    peer_id: str | None = None
    check_hbase: bool = True
    check_hdfs: bool = True
    max_problems: int = 100
    strict_extra: bool = False
    accepted_drift: frozenset[str] = frozenset()
    """Tables of which the slave may keep less than the master."""
    ignore_later_writes: bool = False
    """Whether writes after a recorded shutdown time are accepted."""
    offline: bool = False
    """Whether the slave's side is from a file, too, so that it may be older than the master's."""
