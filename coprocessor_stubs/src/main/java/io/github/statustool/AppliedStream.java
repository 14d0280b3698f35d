package io.github.statustool;

import java.util.List;

/** What has been applied here of one stream and is not yet in the state table. Immutable but for its builder. */
final class AppliedStream {
  final StreamId id;
  final String table;
  private final SegmentSet segments;
  private final long newest;

  private AppliedStream(StreamId id, String table, SegmentSet segments, long newest) {
    this.id = id;
    this.table = table;
    this.segments = segments;
    this.newest = newest;
  }

  AppliedStream union(AppliedStream other) {
    SegmentSet all = new SegmentSet();
    all.addAll(segments);
    all.addAll(other.segments);
    return new AppliedStream(id, table, all, Math.max(newest, other.newest));
  }

  List<Segment> segments() {
    return segments.asList();
  }

  StateRow toRow() {
    StateRow row = new StateRow(id.rowKey(Columns.SEGMENTS));
    for (Segment segment : segments.asList()) {
      row.add(segment.qualifier(), segment.value(), StateRow.SERVER_TIME);
    }
    row.add(Columns.R, newest, newest);
    row.add(Columns.T, Bits.utf8(table), StateRow.SERVER_TIME);
    return row;
  }

  /** Collects one batch's entries of a stream; entries that follow each other only widen the open segment. */
  static final class Builder {
    private final StreamId id;
    private final String table;
    private final SegmentSet segments = new SegmentSet();
    private boolean open;
    private long prev;
    private long seq;
    private long firstTime;
    private long lastTime;
    private long newest;

    Builder(StreamId id, String table) {
      this.id = id;
      this.table = table;
    }

    void add(long entryPrev, long entrySeq, long writeTime) {
      if (!open || entryPrev != seq) {
        closeSegment();
        open = true;
        prev = entryPrev;
        firstTime = writeTime;
      }
      seq = entrySeq;
      lastTime = writeTime;
      newest = Math.max(newest, writeTime);
    }

    private void closeSegment() {
      if (open) {
        segments.add(new Segment(prev, seq, firstTime, lastTime));
        open = false;
      }
    }

    AppliedStream build() {
      closeSegment();
      return new AppliedStream(id, table, segments, newest);
    }
  }
}
