package io.github.statustool;

import io.github.statustool.StateTable.SegmentRow;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * All that is known here to be applied of one stream, and the one column of the stream's row that holds it.
 *
 * <p>The column is this record's own: nobody else writes to it, and what is written there only grows. Each write has a
 * higher timestamp than the one before, so that a late one never replaces a newer one, and versions are cleaned by any
 * flush of the table. A record that is made anew, after a restart or after it was dropped as idle, takes another column:
 * it never writes less over more.
 */
final class StreamSegments {
  private static final int MERGE_AT = 16;
  /** A row has few columns, so random ones do not meet. */
  private static final SecureRandom RANDOM = new SecureRandom();

  final StreamId id;
  private final String table;
  private final byte[] qualifier;
  private final SegmentSet segments = new SegmentSet();
  private final Map<Integer, Long> partial = new HashMap<>(0);
  private long newest;
  private long lastTimestamp;
  private long lastUsed;
  private long version;
  private long storedVersion;
  private int mergeAt = MERGE_AT;

  StreamSegments(StreamId id, String table) {
    this(id, table, RANDOM.nextLong());
  }

  /** @param writer what sets this record's column apart from all others of the row */
  StreamSegments(StreamId id, String table, long writer) {
    this.id = id;
    this.table = table;
    this.qualifier = SegmentColumn.qualifier(writer);
  }

  byte[] qualifier() {
    return qualifier;
  }

  /** Returns whether others' columns should be looked at: they may fill the holes in between. */
  synchronized boolean add(AppliedEntries applied, long now) {
    boolean isNew = version == 0;
    applied.segments().forEach(segments::add);
    applied.partial().forEach((family, time) -> partial.merge(family, time, Math::max));
    newest = Math.max(newest, applied.newest());
    lastUsed = now;
    version++;
    return isNew || segments.asList().size() >= mergeAt;
  }

  /** What other columns say is true as well. The own column tells it with its next write. */
  synchronized void takeOver(SegmentSet others, long now) {
    segments.addAll(others);
    segments.forgetOldHoles(now);
    mergeAt = Math.max(MERGE_AT, 2 * segments.asList().size());
  }

  /** The row with everything that is known now. */
  synchronized Change toChange(long now) {
    lastTimestamp = Math.max(now, lastTimestamp + 1);
    long written = version;
    StateRow row = new StateRow(id.rowKey(SegmentRow.TYPE))
        .add(qualifier, SegmentColumn.value(segments.asList()), lastTimestamp)
        .add(SegmentRow.REPLICATED_MS, newest, newest)
        .add(SegmentRow.TABLE, Bits.utf8(table), StateRow.SERVER_TIME);
    partial.forEach((family, time) -> row.add(SegmentColumn.partial(family), time, time));
    return new Change(row, () -> stored(written));
  }

  private synchronized void stored(long written) {
    storedVersion = Math.max(storedVersion, written);
  }

  synchronized boolean isStored() {
    return storedVersion == version;
  }

  synchronized boolean isIdleSince(long time) {
    return isStored() && lastUsed <= time;
  }

  synchronized List<Segment> segments() {
    return List.copyOf(segments.asList());
  }
}
