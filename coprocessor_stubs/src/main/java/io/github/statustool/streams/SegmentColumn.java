package io.github.statustool.streams;

import io.github.statustool.state.StateTable.SegmentRow;
import java.util.List;
import org.apache.hadoop.hbase.util.Bytes;

/** The segment columns of a stream's row. */
final class SegmentColumn {
  private static final byte VERSION = 1;
  private static final int LENGTH = 1 + Long.BYTES;

  private SegmentColumn() {}

  static byte[] qualifier(long writer) {
    return Bytes.add(SegmentRow.WRITER, Bytes.toBytes(writer));
  }

  static byte[] value(List<Segment> segments) {
    byte[] bytes = new byte[1 + segments.size() * Segment.LENGTH];
    bytes[0] = VERSION;
    for (int i = 0; i < segments.size(); i++) {
      segments.get(i).write(bytes, 1 + i * Segment.LENGTH);
    }
    return bytes;
  }

  /** Adds the segments of a column to the union. Returns false if the column holds none, or has an unknown version. */
  static boolean read(byte[] qualifier, byte[] value, SegmentSet into) {
    boolean isKnown = qualifier.length == LENGTH && qualifier[0] == SegmentRow.WRITER[0]
        && value.length % Segment.LENGTH == 1 && value[0] == VERSION;
    for (int at = 1; isKnown && at < value.length; at += Segment.LENGTH) {
      into.add(Segment.read(value, at));
    }
    return isKnown;
  }
}
