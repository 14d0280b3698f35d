package io.github.statustool;

import java.util.ArrayList;
import java.util.List;

/** One row to write: what the recorder, the write-through and the spool have in common, free of the client's classes. */
final class StateRow {
  /** As a cell's timestamp: whatever the clock of the server says that stores it. */
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

  /** One cell of the row. */
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
