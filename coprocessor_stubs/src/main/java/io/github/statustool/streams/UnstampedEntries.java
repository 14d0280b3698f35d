package io.github.statustool.streams;

import io.github.statustool.state.Bits;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateTable.UnstampedRow;

/**
 * Entries of a region that arrived without a valid stamp, by the clusters that they have passed. Nothing can be proved
 * about them, but they are counted.
 */
final class UnstampedEntries {
  final String region;
  final String table;
  private final byte[] clusters;
  private long newest;
  private long count;

  UnstampedEntries(String region, String table, byte[] clusters) {
    this.region = region;
    this.table = table;
    this.clusters = clusters;
  }

  /** Identifies the entries by region and clusters. */
  String key() {
    return region + Bits.hex(clusters);
  }

  void add(long writeTime) {
    newest = Math.max(newest, writeTime);
    count++;
  }

  /** Returns a new object with the sum: one that is being written must not change. */
  UnstampedEntries plus(UnstampedEntries other) {
    UnstampedEntries sum = new UnstampedEntries(region, table, clusters);
    sum.newest = Math.max(newest, other.newest);
    sum.count = count + other.count;
    return sum;
  }

  StateRow toRow() {
    return new StateRow(Bits.ascii(UnstampedRow.TYPE + region))
        .add(Bits.concat(UnstampedRow.WRITE_MS, clusters), newest, newest)
        .add(Bits.concat(UnstampedRow.ENTRIES, clusters), count, newest)
        .add(UnstampedRow.TABLE, Bits.utf8(table), newest);
  }
}
