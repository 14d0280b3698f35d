package io.github.statustool.state;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.util.Bytes;

/** A row to write; shared by the recorder, the write-through and the spool, and independent of the HBase client. */
public final class StateRow {
  /** Cell timestamp that the storing server replaces by its own time. */
  public static final long SERVER_TIME = Long.MAX_VALUE;

  public final byte[] key;
  private final List<Column> columns = new ArrayList<>();

  public StateRow(byte[] key) {
    this.key = key;
  }

  public StateRow add(byte[] qualifier, byte[] value, long timestamp) {
    columns.add(new Column(qualifier, value, timestamp));
    return this;
  }

  public StateRow add(byte[] qualifier, long value, long timestamp) {
    return add(qualifier, Bytes.toBytes(value), timestamp);
  }

  /** Returns true for a row of this type. */
  boolean isOf(char type) {
    return key.length > 0 && key[0] == type;
  }

  public List<Column> columns() {
    return columns;
  }

  /** Returns the key, the qualifiers and the values, to compare: rows that say the same may differ in timestamps. */
  public List<ByteBuffer> contents() {
    List<ByteBuffer> contents = new ArrayList<>(1 + 2 * columns.size());
    contents.add(ByteBuffer.wrap(key));
    for (Column column : columns) {
      contents.add(ByteBuffer.wrap(column.qualifier));
      contents.add(ByteBuffer.wrap(column.value));
    }
    return contents;
  }

  /** Returns about how much is sent to write it, in bytes. */
  int size() {
    return columns.stream().mapToInt(column -> key.length + column.qualifier.length + column.value.length).sum();
  }

  /** A cell of the row. */
  public static final class Column {
    public final byte[] qualifier;
    public final byte[] value;
    public final long timestamp;

    private Column(byte[] qualifier, byte[] value, long timestamp) {
      this.qualifier = qualifier;
      this.value = value;
      this.timestamp = timestamp;
    }
  }
}
