package io.github.statustool.streams;

import java.util.ArrayList;
import java.util.List;

/**
 * A union of segments: ordered, and merged where they touch. The order in which segments are added does not matter, nor
 * does adding one twice.
 */
final class SegmentSet {
  private static final int MANY = 256;
  /** Maximum size, so that the column stays a small cell. */
  static final int MOST = 50_000;
  private static final int FIRST_KEPT = 32;
  private static final int LAST_KEPT = 64;
  /**
   * Age from which a hole is not expected to be filled by another server's column, counted from when all of them were
   * last written to: a server writes its segments long before.
   */
  private static final long STAYS_MS = 120_000;

  private final List<Segment> segments = new ArrayList<>(1);

  void add(Segment added) {
    int from = firstReaching(added.prev);
    Segment union = added;
    int to = from;
    // No two of the list's segments touch, so only the reach of `added` decides where the union ends.
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
   * Limits the size of a stream with holes that never fill, for example of a table of which the peer ships only some
   * families. Dropping a segment is safe: a hole looks wider then, never filled.
   */
  void forgetOldHoles(long now) {
    if (segments.size() > MANY) {
      keepEnds(FIRST_KEPT, LAST_KEPT, now - STAYS_MS);
    }
    bound();
  }

  /** Limits the size whatever the holes are. */
  void bound() {
    if (segments.size() > MOST) {
      keepEnds(FIRST_KEPT, LAST_KEPT, Long.MAX_VALUE);
    }
  }

  /** Keeps a number of segments at both ends, and those in between that were recorded after a time. */
  void keepEnds(int first, int last, long recordedAfter) {
    int end = segments.size() - last;
    if (end > first) {
      segments.subList(first, end).removeIf(segment -> segment.recorded <= recordedAfter);
    }
  }

  List<Segment> asList() {
    return segments;
  }

  /** Returns the index of the first segment that ends at or after this sequence id. */
  private int firstReaching(long prev) {
    int low = 0;
    int high = segments.size();
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
