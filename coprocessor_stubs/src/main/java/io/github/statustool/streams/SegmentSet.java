package io.github.statustool.streams;

import java.util.ArrayList;
import java.util.List;

/**
 * A union of segments: ordered, and merged where they touch. The order in which segments are added does not matter, nor
 * does adding one twice.
 */
final class SegmentSet {
  /** Maximum size, so that the column stays a small cell. */
  static final int MOST = 50_000;
  private static final int FIRST_KEPT = 32;
  private static final int LAST_KEPT = 64;

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
   * Limits the size, whatever the holes are: others fill most of them. Dropping a segment claims nothing that was not
   * there: a hole looks wider then, never filled.
   */
  void bound() {
    if (segments.size() > MOST) {
      keepEnds(FIRST_KEPT, LAST_KEPT);
    }
  }

  /** Keeps a number of segments at both ends. */
  void keepEnds(int first, int last) {
    int end = segments.size() - last;
    if (end > first) {
      segments.subList(first, end).clear();
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
