package io.github.statustool.digests;

import io.github.statustool.state.StateRow;
import io.github.statustool.state.StoredRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.hbase.util.Bytes;

/** A request table in memory, for several threads. */
public final class FakeRequestTable implements RequestTable {
  private final Map<String, StoredRow> rows = new TreeMap<>();
  int closed;
  /** What is put is there, but nobody hears of it. */
  boolean losesAnswers;

  @Override
  public synchronized StoredRow get(byte[] key) {
    return rows.getOrDefault(Bytes.toString(key), new StoredRow(key));
  }

  @Override
  public synchronized StoredRow first(byte[] start, byte[] stop) {
    for (StoredRow row : rows.values()) {
      if (Bytes.compareTo(row.key, start) >= 0 && Bytes.compareTo(row.key, stop) < 0) {
        return row;
      }
    }
    return null;
  }

  @Override
  public synchronized void put(List<StateRow> written) throws IOException {
    for (StateRow row : written) {
      row.columns().forEach(cell -> store(Bytes.toString(row.key), cell.qualifier, cell.value));
    }
    if (losesAnswers) {
      throw new IOException("no answer in time");
    }
  }

  @Override
  public synchronized void close() {
    closed++;
  }

  synchronized void store(String key, byte[] qualifier, byte[] value) {
    rows.computeIfAbsent(key, absent -> new StoredRow(Bytes.toBytes(key))).values.put(qualifier, value);
  }

  /** Values of a column of the rows whose keys begin so. */
  synchronized List<String> values(String prefix, byte[] qualifier) {
    List<String> found = new ArrayList<>();
    rows.forEach((key, row) -> {
      if (key.startsWith(prefix)) {
        found.add(Bytes.toHex(row.value(qualifier)));
      }
    });
    return found;
  }

  synchronized int closed() {
    return closed;
  }
}
