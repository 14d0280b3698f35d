package io.github.statustool.streams;

import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.UnstampedRow;
import org.apache.hadoop.hbase.util.Bytes;

/** The newest of a region's entries that arrived without a valid stamp, by the clusters that they have passed. */
final class UnstampedEntries {
  /** The clusters of entries that nobody tells. */
  static final byte[] UNKNOWN = new byte[0];

  private static final long NEVER = -1;

  final String region;
  final String table;
  private final byte[] clusters;
  private long newest;
  /** When a flush put them into the table. More entries make a new object. */
  private volatile long storedAt = NEVER;

  UnstampedEntries(String region, String table, byte[] clusters) {
    this.region = region;
    this.table = table;
    this.clusters = clusters;
  }

  /** Returns a hash of the clusters. */
  long list() {
    return Ids.first8OfSha256(clusters);
  }

  boolean haveClusters() {
    return clusters.length > 0;
  }

  /** Returns the same as entries of unknown clusters, which count as the master's own. */
  UnstampedEntries withoutClusters() {
    UnstampedEntries joint = new UnstampedEntries(region, table, UNKNOWN);
    joint.newest = newest;
    return joint;
  }

  /** Identifies the entries by region and clusters. */
  String key() {
    return region + Bytes.toHex(clusters);
  }

  void add(long writeTime) {
    newest = Math.max(newest, writeTime);
  }

  /** Returns a new object with both: one that is being written must not change. */
  UnstampedEntries plus(UnstampedEntries other) {
    UnstampedEntries both = new UnstampedEntries(region, table, clusters);
    both.newest = Math.max(newest, other.newest);
    return both;
  }

  void stored(long now) {
    storedAt = now;
  }

  void forgetStored() {
    storedAt = NEVER;
  }

  boolean isStored() {
    return storedAt != NEVER;
  }

  boolean isIdleSince(long moment) {
    return isStored() && storedAt <= moment;
  }

  StateRow toRow() {
    return new StateRow(Bytes.toBytes(UnstampedRow.TYPE + region))
        .add(Bytes.add(UnstampedRow.WRITE_MS, clusters), newest, newest)
        .add(UnstampedRow.TABLE, Bytes.toBytes(table), newest);
  }
}
