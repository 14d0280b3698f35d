package io.github.statustool.streams;

import java.util.ArrayList;
import java.util.List;

/** The entries of one stream that one replication request has applied. Immutable; made by its {@link Builder}. */
final class AppliedEntries {
  /**
   * Maximum number of segments kept per request. More holes than that come from a filter that drops entries all along.
   */
  private static final int MOST_SEGMENTS = 64;

  final StreamId id;
  final String table;
  /** The name of the stream's family; empty where several share the stream. */
  final byte[] family;
  /** True if each entry stands for itself alone: then a hole between two may be none, and all are kept. */
  final boolean single;
  /** A hash of the clusters that the entries have passed, whatever the family. */
  final long list;
  private final SegmentSet segments;
  private final long newest;

  private AppliedEntries(Builder of, SegmentSet segments) {
    this.id = of.id;
    this.table = of.table;
    this.family = of.family;
    this.single = of.single;
    this.list = of.list;
    this.segments = segments;
    this.newest = of.newest;
  }

  List<Segment> segments() {
    return segments.asList();
  }

  long newest() {
    return newest;
  }

  /** Returns the same as entries without a stamp that came through unknown clusters. */
  UnstampedEntries asUnstamped() {
    UnstampedEntries unstamped = new UnstampedEntries(id.region, table, UnstampedEntries.UNKNOWN);
    unstamped.add(newest);
    return unstamped;
  }

  /** Collects the entries of one request; consecutive entries only extend the current segment. */
  static final class Builder {
    private final StreamId id;
    private final String table;
    private final byte[] family;
    private final boolean single;
    private final long list;
    private final List<Segment> closed = new ArrayList<>(1);
    private boolean open;
    private long prev;
    private long prevTime;
    private long seq;
    private long firstTime;
    private long lastTime;
    private long newest;

    Builder(StreamId id, String table, byte[] family, boolean single, long list) {
      this.id = id;
      this.table = table;
      this.family = family;
      this.single = single;
      this.list = list;
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

    private void closeSegment() {
      if (open) {
        closed.add(new Segment(prev, seq, firstTime, lastTime, prevTime, 0));
        open = false;
      }
    }

    AppliedEntries build(long now) {
      closeSegment();
      SegmentSet segments = new SegmentSet();
      // The entries count as applied only now: their hook runs after the whole request, whatever their own times are.
      for (Segment part : closed) {
        segments.add(new Segment(part.prev, part.seq, part.firstTime, part.lastTime, part.prevTime, now));
      }
      if (!single) {
        segments.keepEnds(MOST_SEGMENTS / 2, MOST_SEGMENTS / 2);
      }
      return new AppliedEntries(this, segments);
    }
  }
}
