package io.github.statustool;

import java.util.ArrayList;
import java.util.List;

/** A row to write; shared by the recorder, the write-through and the spool, and independent of the HBase client. */
final class StateRow {
  /** Cell timestamp that the storing server replaces by its own time. */
  static final long SERVER_TIME = Long.MAX_VALUE;

  final byte[] key;
  private final List<Column> columns = new ArrayList<>();

  StateRow(byte[] key) {
    this.key = key;
  }

  StateRow add(byte[] qualifier, byte[] value, long timestamp) {
    columns.add(new Column(qualifier, value, timestamp));
    return this;
  }

  StateRow add(byte[] qualifier, long value, long timestamp) {
    return add(qualifier, Bits.ofLong(value), timestamp);
  }

  List<Column> columns() {
    return columns;
  }

  /** A cell of the row. */
  static final class Column {
    final byte[] qualifier;
    final byte[] value;
    final long timestamp;

    private Column(byte[] qualifier, byte[] value, long timestamp) {
      this.qualifier = qualifier;
      this.value = value;
      this.timestamp = timestamp;
    }
  }
}
