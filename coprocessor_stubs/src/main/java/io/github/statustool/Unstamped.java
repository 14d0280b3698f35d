package io.github.statustool;

/** Entries of a region that came without a valid stamp: nothing can be proved of them, but they are counted. */
final class Unstamped {
  final String region;
  final String table;
  private long newest;
  private long count;

  Unstamped(String region, String table) {
    this.region = region;
    this.table = table;
  }

  void add(long writeTime) {
    newest = Math.max(newest, writeTime);
    count++;
  }

  /** A new object with both: the state of one that is being written must not change. */
  Unstamped plus(Unstamped other) {
    Unstamped sum = new Unstamped(region, table);
    sum.newest = Math.max(newest, other.newest);
    sum.count = count + other.count;
    return sum;
  }

  StateRow toRow() {
    return new StateRow(Bits.ascii(Columns.UNSTAMPED + region))
        .add(Columns.R, newest, newest)
        .add(Columns.N, count, newest)
        .add(Columns.T, Bits.utf8(table), newest);
  }
}
