package io.github.statustool.witness;

/** WAL entries that were sent, with every sequence id from one to another. */
final class Run {
  /** Sequence id of the first entry in its region. */
  final long first;
  /** Sequence id of the last entry. */
  final long last;
  /** Lowest write time in ms, by the clock of the region server that wrote the entry. */
  final long low;
  /** Highest write time. */
  final long high;

  Run(long first, long last, long low, long high) {
    this.first = first;
    this.last = last;
    this.low = low;
    this.high = high;
  }

  static Run of(long sequenceId, long writeTime) {
    return new Run(sequenceId, sequenceId, writeTime, writeTime);
  }

  /** Returns true if no sequence id is between the two. */
  boolean touches(Run later) {
    return later.first <= last + 1;
  }

  Run union(Run other) {
    return new Run(Math.min(first, other.first), Math.max(last, other.last), Math.min(low, other.low),
        Math.max(high, other.high));
  }
}
