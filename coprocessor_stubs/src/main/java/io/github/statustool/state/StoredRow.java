package io.github.statustool.state;

import java.util.NavigableMap;
import java.util.TreeMap;
import org.apache.hadoop.hbase.util.Bytes;

/** A row read from the state table, with the newest value of each qualifier. */
public final class StoredRow {
  public final byte[] key;
  public final NavigableMap<byte[], byte[]> values = new TreeMap<>(Bytes.BYTES_COMPARATOR);
  private final NavigableMap<byte[], Long> timestamps = new TreeMap<>(Bytes.BYTES_COMPARATOR);

  public StoredRow(byte[] key) {
    this.key = key;
  }

  public void put(byte[] qualifier, byte[] value, long timestamp) {
    values.put(qualifier, value);
    timestamps.put(qualifier, timestamp);
  }

  /** Returns the timestamp of the version that was read; 0 for an absent column. */
  public long timestamp(byte[] qualifier) {
    return timestamps.getOrDefault(qualifier, 0L);
  }

  public byte[] value(byte[] qualifier) {
    return values.get(qualifier);
  }

  /** Returns the number that a value is; 0 for the value of an absent column. */
  public static long number(byte[] value) {
    return value == null ? 0 : Bytes.toLong(value, 0);
  }

  public boolean isEmpty() {
    return values.isEmpty();
  }
}
