package io.github.statustool;

import io.github.statustool.StateTable.SegmentRow;
import java.util.List;

/** The columns of a stream's row on the side of the slave. */
final class SegmentColumn {
  private static final byte VERSION = 1;
  private static final int LENGTH = 1 + Long.BYTES;

  private SegmentColumn() {}

  static byte[] qualifier(long writer) {
    return Bits.concat(SegmentRow.WRITER, Bits.ofLong(writer));
  }

  /** Of a family of which cells were missing. */
  static byte[] partial(int family) {
    byte[] id = new byte[Integer.BYTES];
    Bits.putInt(id, 0, family);
    return Bits.concat(SegmentRow.PARTIAL, id);
  }

  static byte[] value(List<Segment> segments) {
    byte[] bytes = new byte[1 + segments.size() * Segment.LENGTH];
    bytes[0] = VERSION;
    for (int i = 0; i < segments.size(); i++) {
      segments.get(i).write(bytes, 1 + i * Segment.LENGTH);
    }
    return bytes;
  }

  /** One column a segment, as trackers before version 2 wrote them. */
  static boolean isOfFirstForm(byte[] qualifier) {
    return qualifier[0] != SegmentRow.WRITER[0];
  }

  /** Adds what a column says to the union. Returns false for a column that tells no segments, or none that we know. */
  static boolean read(byte[] qualifier, byte[] value, long timestamp, SegmentSet into) {
    Segment single = Segment.parseColumn(qualifier, value, timestamp);
    if (single != null) {
      into.add(single);
      return true;
    }
    boolean isKnown = qualifier.length == LENGTH && qualifier[0] == SegmentRow.WRITER[0]
        && value.length % Segment.LENGTH == 1 && value[0] == VERSION;
    for (int at = 1; isKnown && at < value.length; at += Segment.LENGTH) {
      into.add(Segment.read(value, at));
    }
    return isKnown;
  }
}
