package io.github.statustool;

import java.util.ArrayList;
import java.util.List;

/** A union of segments, ordered, as few as possible. In any order, twice or merged: the result is the same. */
final class SegmentSet {
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
