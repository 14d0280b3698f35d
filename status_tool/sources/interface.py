"""The sources of rows: one small interface for every system.

A source is split into partitions that can be read independently, each as Arrow batches of
`STATUS_SCHEMA`. Sources are picklable: Spark reads their partitions in its Python workers,
the master run reads them in threads of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa


class Source(ABC):
    """Rows of `STATUS_SCHEMA` that can be read in independent partitions."""

    @abstractmethod
    def partitions(self) -> Sequence[Any]:
        """Return picklable descriptions of the parts. Does no I/O beyond what the split needs."""

    @property
    def is_read_here(self) -> bool:
        """Return True if only the process that made the source reads it, also in a check; Spark's executors do not."""
        return False

    def close(self) -> None:  # noqa: B027
        """Make reads in progress in this process end soon; what they still yield is discarded."""

    @abstractmethod
    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield one partition's rows.

        Raises a `StatusToolError` (usually `ConnectionFailed`) where the system does not answer.
        """
