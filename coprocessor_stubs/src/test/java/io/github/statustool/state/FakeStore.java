package io.github.statustool.state;

import io.github.statustool.state.StateTable.BarrierRow;
import io.github.statustool.state.StateTable.HeadRow;
import io.github.statustool.state.StateTable.SegmentRow;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;

/** A state table in memory that can be down, or hang, and remembers the order in which rows were written. */
public final class FakeStore implements StateStore {
  public final Map<String, StoredRow> rows = new TreeMap<>();
  private final Map<String, Integer> lookups = new TreeMap<>();
  public final List<String> log = new ArrayList<>();
  /** All rows as they were written, if a test wants them: there may be very many. */
  public List<StateRow> written;
  public final Map<String, String> tables = new TreeMap<>();
  public final List<ServerName> live = new ArrayList<>();
  /** Of the cells that are written without a timestamp. */
  long serverTime = 1;
  public boolean down;
  public boolean hanging;
  public boolean segmentsUnreadable;
  public boolean refusing;
  /** Type of rows that HBase's client refuses before it sends them, as it does those with a cell that is too large. */
  public char tooLarge;
  /** Type of the rows of which the region is away. HBase writes the others of a put all the same. */
  public char away;
  /** An error that no caller expects, of whoever asks for the tables. */
  public RuntimeException oddity;
  /** Whether no HBase master is active. */
  public boolean masterless;
  /** The next check-and-put is done, but its caller sees a failure. */
  public boolean answerLost;
  /** The next check-and-put is done twice, as by a client that got no answer: it fails, by what it has put itself. */
  public boolean repeating;
  /** Of the regions of the table. */
  public List<String> starts = List.of("", "h4", "i", "t");
  public Runnable afterHeads = () -> { };
  /** Run when the barrier's row is read. */
  public Runnable beforeBarrier = () -> { };
  /** Run before rows are read by their keys. */
  public Runnable beforeRows = () -> { };
  public int asyncPuts;
  public int gets;
  public int scans;

  /** How often each row was read by its key. */
  public Map<String, Integer> lookups() {
    return new TreeMap<>(lookups);
  }

  /** Adds a table as {@link HBaseStateStore} describes it. */
  public void describe(TableDescriptor table, boolean enabled) {
    tables.put(table.getTableName().getNameAsString(), TableJson.of(table, enabled));
  }

  private void check() throws IOException {
    if (down) {
      throw new IOException("the table is down");
    }
  }

  /** As HBase's snapshots: what is written later is not in it. */
  public Map<String, StoredRow> snapshot() {
    Map<String, StoredRow> copy = new TreeMap<>();
    rows.forEach((key, row) -> {
      StoredRow same = new StoredRow(row.key);
      row.values.forEach((qualifier, value) -> same.put(qualifier, value, row.timestamp(qualifier)));
      copy.put(key, same);
    });
    return copy;
  }

  public void restore(Map<String, StoredRow> snapshot) {
    rows.clear();
    rows.putAll(snapshot);
  }

  @Override
  public void ensureTable() throws IOException {
    check();
  }

  @Override
  public void put(List<StateRow> written) throws IOException {
    check();
    if (written.stream().anyMatch(row -> row.key[0] == tooLarge)) {
      throw new IllegalArgumentException("KeyValue size too large");
    }
    written.stream().filter(row -> row.key[0] != away).forEach(this::store);
    if (written.stream().anyMatch(row -> row.key[0] == away)) {
      throw new IOException("a region is away");
    }
    if (written.stream().anyMatch(row -> row.key[0] == HeadRow.TYPE)) {
      afterHeads.run();
    }
  }

  private void store(StateRow row) {
    String key = text(row.key);
    log.add(key);
    if (written != null) {
      written.add(row);
    }
    StoredRow stored = rows.computeIfAbsent(key, absent -> new StoredRow(row.key));
    for (StateRow.Column column : row.columns()) {
      long timestamp = column.timestamp == StateRow.SERVER_TIME ? serverTime : column.timestamp;
      if (timestamp >= stored.timestamp(column.qualifier)) {
        stored.put(column.qualifier, column.value, timestamp);
      }
    }
  }

  @Override
  public CompletableFuture<Void> putAsync(List<StateRow> written) {
    asyncPuts++;
    if (hanging) {
      return new CompletableFuture<>();
    }
    try {
      put(written);
      return CompletableFuture.completedFuture(null);
    } catch (IOException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  @Override
  public List<StoredRow> get(List<byte[]> keys) throws IOException {
    check();
    gets++;
    beforeRows.run();
    List<StoredRow> found = new ArrayList<>();
    if (segmentsUnreadable && keys.stream().anyMatch(key -> key[0] == SegmentRow.TYPE)) {
      throw new IOException("reading these rows takes too long");
    }
    if (keys.stream().anyMatch(key -> Arrays.equals(key, BarrierRow.KEY))) {
      beforeBarrier.run();
    }
    for (byte[] key : keys) {
      lookups.merge(text(key), 1, Integer::sum);
      StoredRow copy = new StoredRow(key);
      StoredRow stored = rows.getOrDefault(text(key), copy);
      stored.values.forEach((qualifier, value) -> copy.put(qualifier, value, stored.timestamp(qualifier)));
      found.add(copy);
    }
    return found;
  }

  @Override
  public CompletableFuture<Void> replaceAsync(StateRow row, StoredRow read, List<byte[]> deletedQualifiers) {
    if (refusing) {
      return CompletableFuture.failedFuture(new IOException("refused"));
    }
    store(row);
    StoredRow stored = rows.get(text(row.key));
    for (byte[] qualifier : deletedQualifiers) {
      if (read.value(qualifier) == null || stored.timestamp(qualifier) <= read.timestamp(qualifier)) {
        stored.values.remove(qualifier);
      }
    }
    return CompletableFuture.completedFuture(null);
  }

  @Override
  public boolean putIf(StateRow row, byte[] qualifier, byte[] expected) throws IOException {
    check();
    StoredRow stored = rows.getOrDefault(text(row.key), new StoredRow(row.key));
    if (!Arrays.equals(stored.value(qualifier), expected)) {
      return false;
    }
    store(row);
    if (answerLost) {
      answerLost = false;
      throw new IOException("no answer");
    }
    boolean isAnswered = !repeating;
    repeating = false;
    return isAnswered;
  }

  @Override
  public boolean putAllIf(List<StateRow> rows, byte[] qualifier, List<byte[]> expected) throws IOException {
    boolean all = true;
    for (int i = 0; i < rows.size(); i++) {
      all &= putIf(rows.get(i), qualifier, expected.get(i));
    }
    return all;
  }

  @Override
  public List<StoredRow> scan(char rowType, byte[]... columns) throws IOException {
    check();
    scans++;
    List<StoredRow> found = new ArrayList<>();
    for (Map.Entry<String, StoredRow> row : rows.entrySet()) {
      if (row.getKey().charAt(0) == rowType) {
        found.add(row.getValue());
      }
    }
    return found;
  }

  @Override
  public List<byte[]> regionStarts() throws IOException {
    check();
    List<byte[]> keys = new ArrayList<>();
    starts.forEach(start -> keys.add(Bytes.toBytes(start)));
    return keys;
  }

  /** As if the region with a start key were truncated. */
  public void truncateRegion(String start) {
    int at = starts.indexOf(start);
    rows.keySet().removeIf(key -> key.compareTo(start) >= 0
        && (at == starts.size() - 1 || key.compareTo(starts.get(at + 1)) < 0));
  }

  @Override
  public Map<String, String> tables() throws IOException {
    check();
    if (oddity != null) {
      throw oddity;
    }
    if (masterless) {
      throw new IOException("no HBase master is active");
    }
    return tables;
  }

  @Override
  public Collection<ServerName> liveServers() throws IOException {
    check();
    return live;
  }

  public byte[] value(byte[] row, byte[] qualifier) {
    StoredRow stored = rows.get(text(row));
    return stored == null ? null : stored.value(qualifier);
  }

  public Long number(byte[] row, byte[] qualifier) {
    byte[] value = value(row, qualifier);
    return value == null ? null : Bytes.toLong(value, 0);
  }

  public static String text(byte[] key) {
    return new String(key, StandardCharsets.UTF_8);
  }
}
