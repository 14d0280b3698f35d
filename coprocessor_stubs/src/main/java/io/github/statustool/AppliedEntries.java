package io.github.statustool;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What one request has applied of one stream. Immutable but for its builder. */
final class AppliedEntries {
  /** More holes than these inside one request are no news: the entries in between were left out by a filter. */
  private static final int MOST_SEGMENTS = 64;

  final StreamId id;
  final String table;
  private final SegmentSet segments;
  private final Map<Integer, Long> partial;
  private final long newest;

  private AppliedEntries(StreamId id, String table, SegmentSet segments, Map<Integer, Long> partial, long newest) {
    this.id = id;
    this.table = table;
    this.segments = segments;
    this.partial = partial;
    this.newest = newest;
  }

  List<Segment> segments() {
    return segments.asList();
  }

  /** By the id of a family of which cells were missing: the newest write time of such an entry. */
  Map<Integer, Long> partial() {
    return partial;
  }

  long newest() {
    return newest;
  }

  /** Collects one request's entries of a stream; entries that follow each other only widen the open segment. */
  static final class Builder {
    private final StreamId id;
    private final String table;
    private final List<Segment> closed = new ArrayList<>(1);
    private final Map<Integer, Long> partial = new TreeMap<>();
    private boolean open;
    private long prev;
    private long prevTime;
    private long seq;
    private long firstTime;
    private long lastTime;
    private long newest;

    Builder(StreamId id, String table) {
      this.id = id;
      this.table = table;
    }

    void add(long entryPrev, long entryPrevTime, long entrySeq, long writeTime) {
      if (!open || entryPrev != seq) {
        closeSegment();
        open = true;
        prev = entryPrev;
        prevTime = entryPrevTime;
        firstTime = writeTime;
      }
      seq = entrySeq;
      lastTime = writeTime;
      newest = Math.max(newest, writeTime);
    }

    /** An entry of this stream came with other cells of the family than it was written with. */
    void partial(int family, long writeTime) {
      partial.merge(family, writeTime, Math::max);
    }

    private void closeSegment() {
      if (open) {
        closed.add(new Segment(prev, seq, firstTime, lastTime, prevTime, 0));
        open = false;
      }
    }

    AppliedEntries build(long now) {
      closeSegment();
      SegmentSet segments = new SegmentSet();
      for (Segment part : closed) {
        segments.add(new Segment(part.prev, part.seq, part.firstTime, part.lastTime, part.prevTime, now));
      }
      segments.keepEnds(MOST_SEGMENTS / 2, MOST_SEGMENTS / 2, now);
      return new AppliedEntries(id, table, segments, partial, newest);
    }
  }
}
