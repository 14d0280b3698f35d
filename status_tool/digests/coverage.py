"""Coverage of an interval by digests: slices that tile it, each counted once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from status_tool.digests.digest import Sums
from status_tool.digests.keys import Interval, limit
from status_tool.digests.wire import Bucket


class Coverage:
    """The slices of one interval on one cluster. Answers may come twice, or overlap: only what is missing is taken."""

    def __init__(self, interval: Interval) -> None:
        self.interval = interval
        self._tiles: dict[bytes, Bucket] = {}

    def add(self, buckets: Sequence[Bucket]) -> bool:
        """Take a slice that fits into a gap as a whole; says whether it did."""
        if not buckets or not all(a.stop == b.start and a.stop for a, b in pairwise(buckets)):
            return False
        start, stop = buckets[0].start, buckets[-1].stop
        # All or nothing: a bucket is a sum, from which no row can be taken out again.
        if (0, start) >= limit(stop) or not any(gap.holds(start, stop) for gap in self.gaps()):
            return False
        self._tiles.update((bucket.start, bucket) for bucket in buckets)
        return True

    def gaps(self) -> list[Interval]:
        """Return the intervals that are still missing, in key order."""
        missing, at = [], self.interval.start
        for bucket in self.buckets:
            if at < bucket.start:
                missing.append(Interval(at, bucket.start))
            if not bucket.stop:
                return missing
            at = bucket.stop
        if (0, at) < limit(self.interval.stop):
            missing.append(Interval(at, self.interval.stop))
        return missing

    @property
    def is_whole(self) -> bool:
        """Return True if nothing is missing."""
        return not self.gaps()

    @property
    def buckets(self) -> list[Bucket]:
        """Return the slices in key order."""
        return [self._tiles[start] for start in sorted(self._tiles)]

    @property
    def sums(self) -> Sums:
        """Return the sums of all slices."""
        return sum((bucket.sums for bucket in self._tiles.values()), Sums())
