package io.github.statustool.streams;

import io.github.statustool.state.Change;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.SegmentRow;
import java.security.SecureRandom;
import java.util.List;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Segments known of one stream, and the column of the stream's row that stores them.
 *
 * <p>Only this object writes the column, and the segments in it only grow. Each write has a higher timestamp than the
 * previous one, so a delayed write never replaces a newer one, and any flush of the table removes old versions. After a
 * restart, or after an idle stream was dropped, a new object uses another column: it would know less, and must not
 * overwrite what the old column says.
 *
 * <p>Synchronized, because replication handlers add entries while the recorder thread writes and compacts. No lock is
 * held during I/O.
 */
final class StreamSegments {
  private static final int MERGE_AT = 16;
  /** A row has few columns, so random qualifiers do not collide. */
  private static final SecureRandom RANDOM = new SecureRandom();

  final StreamId id;
  private final String table;
  private final byte[] family;
  private final byte[] qualifier;
  private final SegmentSet segments = new SegmentSet();
  private long newest;
  private long lastTimestamp;
  private long lastUsed;
  private long version;
  private long storedVersion;
  private int mergeAt = MERGE_AT;

  /**
   * @param family the name of the stream's family; empty where several share the stream
   */
  StreamSegments(StreamId id, String table, byte[] family) {
    this(id, table, family, RANDOM.nextLong());
  }

  /** @param writer distinguishes this column from all others of the row */
  StreamSegments(StreamId id, String table, byte[] family, long writer) {
    this.id = id;
    this.table = table;
    this.family = family;
    this.qualifier = SegmentColumn.qualifier(writer);
  }

  byte[] qualifier() {
    return qualifier;
  }

  /** Returns whether to read other servers' columns, which may fill the holes in between. */
  synchronized boolean add(AppliedEntries applied, long now) {
    boolean isNew = version == 0;
    applied.segments().forEach(segments::add);
    segments.bound(); // others fill the holes in between only while the state table is there
    newest = Math.max(newest, applied.newest());
    lastUsed = now;
    version++;
    // A new record begins in the midst of a stream that moved here or was idle: other columns have the rest.
    return isNew || segments.asList().size() >= mergeAt;
  }

  /** Merges the segments of other columns; the next write of this column includes them. */
  synchronized void takeOver(SegmentSet others) {
    // No new version: the table has these segments already, in the columns that they were read from.
    segments.addAll(others);
    segments.bound();
    // Holes that never fill, as a filter leaves them, would otherwise cause a read of the row after each request.
    mergeAt = Math.max(MERGE_AT, 2 * segments.asList().size());
  }

  /** Returns the row with everything known now. */
  synchronized Change toChange(long now) {
    lastTimestamp = Math.max(now, lastTimestamp + 1);
    lastUsed = Math.max(now, lastUsed); // after an outage it is written much later than it was added
    // The version of this row: entries that a handler adds before the write succeeds are not in it.
    long written = version;
    StateRow row = new StateRow(id.rowKey(SegmentRow.TYPE))
        .add(qualifier, SegmentColumn.value(segments.asList()), lastTimestamp)
        // All writers of the row share this cell. By this timestamp the newest entry wins, not the last writer.
        .add(SegmentRow.REPLICATED_MS, newest, newest)
        .add(SegmentRow.TABLE, Bytes.toBytes(table), StateRow.SERVER_TIME)
        .add(SegmentRow.FAMILY, family, StateRow.SERVER_TIME);
    return new Change(row, () -> stored(written));
  }

  private synchronized void stored(long written) {
    storedVersion = Math.max(storedVersion, written);
  }

  /** Marks it as not written. */
  synchronized void forgetStored() {
    // A write that is under way does not count any more: it may be one of those that the table has lost.
    version++;
  }

  synchronized boolean isStored() {
    return storedVersion == version;
  }

  synchronized boolean isIdleSince(long time) {
    // Without the record, the segments of an unwritten stream would be in a copy in the spool, or nowhere.
    return isStored() && lastUsed <= time;
  }

  synchronized List<Segment> segments() {
    return List.copyOf(segments.asList());
  }
}
