package io.github.statustool;

/** The fact that the entries of a stream in {@code (prev, seq]} have been applied here. */
final class Segment {
  private static final byte PREFIX = 'p';
  private static final int QUALIFIER_LENGTH = 1 + 2 * Long.BYTES;
  private static final int VALUE_LENGTH = 2 * Long.BYTES;

  final long prev;
  final long seq;
  final long firstTime;
  final long lastTime;

  Segment(long prev, long seq, long firstTime, long lastTime) {
    this.prev = prev;
    this.seq = seq;
    this.firstTime = firstTime;
    this.lastTime = lastTime;
  }

  /** Whether the two overlap or adjoin, so that their union has no hole. */
  boolean touches(Segment other) {
    return prev <= other.seq && other.prev <= seq;
  }

  Segment union(Segment other) {
    Segment lower = prev <= other.prev ? this : other;
    Segment upper = seq >= other.seq ? this : other;
    return new Segment(lower.prev, upper.seq, lower.firstTime, upper.lastTime);
  }

  byte[] qualifier() {
    byte[] bytes = new byte[QUALIFIER_LENGTH];
    bytes[0] = PREFIX;
    Bits.putLong(bytes, 1, prev);
    Bits.putLong(bytes, 1 + Long.BYTES, seq);
    return bytes;
  }

  byte[] value() {
    return Bits.ofLongs(firstTime, lastTime);
  }

  /** Returns null for a column that is no segment. */
  static Segment parse(byte[] qualifier, byte[] value) {
    if (qualifier.length != QUALIFIER_LENGTH || qualifier[0] != PREFIX || value.length != VALUE_LENGTH) {
      return null;
    }
    return new Segment(Bits.getLong(qualifier, 1), Bits.getLong(qualifier, 1 + Long.BYTES),
        Bits.getLong(value, 0), Bits.getLong(value, Long.BYTES));
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
