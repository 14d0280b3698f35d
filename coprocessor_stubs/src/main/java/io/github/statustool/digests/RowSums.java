package io.github.statustool.digests;

import java.io.DataOutput;
import java.io.IOException;

/**
 * Sums over the visible cells of some rows: of their hashes modulo 2^128, separately for cells up to the cut and later
 * ones, and counts. Sums of parts can be added in any order.
 */
final class RowSums {
  private long lowUpTo;
  private long highUpTo;
  private long cellsUpTo;
  private long lowBeyond;
  private long highBeyond;
  private long cellsBeyond;
  private long rows;
  private long bytes;
  private long expiring;

  void row() {
    rows++;
  }

  /** @param expires whether the cell has a TTL of its own, of which the other cluster may know nothing */
  void cell(CellHash hash, boolean upTo, long size, boolean expires) {
    if (upTo) {
      addUpTo(hash.low(), hash.high(), 1);
    } else {
      addBeyond(hash.low(), hash.high(), 1);
    }
    bytes += size;
    expiring += expires ? 1 : 0;
  }

  void add(RowSums other) {
    addUpTo(other.lowUpTo, other.highUpTo, other.cellsUpTo);
    addBeyond(other.lowBeyond, other.highBeyond, other.cellsBeyond);
    rows += other.rows;
    bytes += other.bytes;
    expiring += other.expiring;
  }

  private void addUpTo(long low, long high, long cells) {
    lowUpTo += low;
    highUpTo += high + carry(lowUpTo, low);
    cellsUpTo += cells;
  }

  private void addBeyond(long low, long high, long cells) {
    lowBeyond += low;
    highBeyond += high + carry(lowBeyond, low);
    cellsBeyond += cells;
  }

  private static long carry(long sum, long added) {
    return Long.compareUnsigned(sum, added) < 0 ? 1 : 0;
  }

  long rows() {
    return rows;
  }

  void write(DataOutput out) throws IOException {
    out.writeLong(highUpTo);
    out.writeLong(lowUpTo);
    out.writeLong(cellsUpTo);
    out.writeLong(highBeyond);
    out.writeLong(lowBeyond);
    out.writeLong(cellsBeyond);
    out.writeLong(rows);
    out.writeLong(bytes);
    out.writeLong(expiring);
  }
}
