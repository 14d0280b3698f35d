package io.github.statustool;

import java.util.ArrayList;
import java.util.List;

/** A union of segments, ordered, as few as possible. In any order, twice or merged: the result is the same. */
final class SegmentSet {
  private static final int MANY = 256;
  /** As much as a cell of the state table can well hold. */
  private static final int MOST = 50_000;
  private static final int FIRST_KEPT = 32;
  private static final int LAST_KEPT = 64;
  /** What another server has applied is in the table long before, or that server cannot reach the table either. */
  private static final long STAYS_MS = 120_000;

  private final List<Segment> segments = new ArrayList<>(1);

  void add(Segment added) {
    int from = firstReaching(added.prev);
    Segment union = added;
    int to = from;
    while (to < segments.size() && segments.get(to).touches(added)) {
      union = union.union(segments.get(to));
      to++;
    }
    if (to == from) {
      segments.add(from, added);
    } else {
      segments.set(from, union);
      segments.subList(from + 1, to).clear();
    }
  }

  void addAll(SegmentSet other) {
    for (Segment segment : other.segments) {
      add(segment);
    }
  }

  /**
   * Bounds what a stream with holes that never fill costs, say of a table that the peer ships in part: a fact that is
   * dropped is a hole that looks wider, never one that looks filled.
   */
  void forgetOldHoles(long now) {
    if (segments.size() > MANY) {
      keepEnds(FIRST_KEPT, LAST_KEPT, now - STAYS_MS);
    }
    if (segments.size() > MOST) {
      keepEnds(FIRST_KEPT, LAST_KEPT, Long.MAX_VALUE);
    }
  }

  /** Keeps so many at either end, and of those in between what was recorded after a time. */
  void keepEnds(int first, int last, long recordedAfter) {
    int end = segments.size() - last;
    if (end > first) {
      segments.subList(first, end).removeIf(segment -> segment.recorded <= recordedAfter);
    }
  }

  List<Segment> asList() {
    return segments;
  }

  /** The first segment that ends at or behind this sequence id. Entries come in order, so the end is tried first. */
  private int firstReaching(long prev) {
    int low = 0;
    int high = segments.size();
    if (high > 0 && segments.get(high - 1).seq < prev) {
      return high;
    }
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (segments.get(middle).seq < prev) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
