package io.github.statustool.streams;

import org.apache.hadoop.hbase.util.Bytes;


/** States that the entries of a stream in {@code (prev, seq]} have been applied. */
final class Segment {
  /** Length of the encoded form. */
  static final int LENGTH = 6 * Long.BYTES;

  final long prev;
  final long seq;
  final long firstTime;
  final long lastTime;
  /** The highest write time of the stream up to prev, which bounds that of a hole before this segment. */
  final long prevTime;
  /** Time when the entry after prev was applied: since then a hole before this segment has been there. */
  final long recorded;

  Segment(long prev, long seq, long firstTime, long lastTime, long prevTime, long recorded) {
    this.prev = prev;
    this.seq = seq;
    this.firstTime = firstTime;
    this.lastTime = lastTime;
    this.prevTime = prevTime;
    this.recorded = recorded;
  }

  /** Returns true if the segments overlap or adjoin, so that their union has no hole. */
  boolean touches(Segment other) {
    return prev <= other.seq && other.prev <= seq;
  }

  Segment union(Segment other) {
    Segment lower = prev <= other.prev ? this : other;
    Segment upper = seq >= other.seq ? this : other;
    // With one start, both tell of the same hole before it, which is as old as the earlier of them says.
    boolean sameStart = prev == other.prev;
    return new Segment(lower.prev, upper.seq, lower.firstTime, upper.lastTime,
        sameStart ? Math.max(prevTime, other.prevTime) : lower.prevTime,
        sameStart ? Math.min(recorded, other.recorded) : lower.recorded);
  }

  void write(byte[] bytes, int offset) {
    long[] numbers = {prev, seq, firstTime, lastTime, prevTime, recorded};
    for (int i = 0; i < numbers.length; i++) {
      Bytes.putLong(bytes, offset + i * Long.BYTES, numbers[i]);
    }
  }

  static Segment read(byte[] bytes, int offset) {
    return new Segment(Bytes.toLong(bytes, offset), Bytes.toLong(bytes, offset + Long.BYTES),
        Bytes.toLong(bytes, offset + 2 * Long.BYTES), Bytes.toLong(bytes, offset + 3 * Long.BYTES),
        Bytes.toLong(bytes, offset + 4 * Long.BYTES), Bytes.toLong(bytes, offset + 5 * Long.BYTES));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Segment && prev == ((Segment) other).prev && seq == ((Segment) other).seq;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(prev * 31 + seq);
  }

  @Override
  public String toString() {
    return "(" + prev + "," + seq + "]";
  }
}
