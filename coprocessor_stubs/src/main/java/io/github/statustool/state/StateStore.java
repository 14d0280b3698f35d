package io.github.statustool.state;

import io.github.statustool.state.StateTable.ContentRow;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StateTable.TableEventRow;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.apache.hadoop.hbase.ServerName;

/**
 * The state table, and what else a tracker needs of the cluster. Every call is limited in time and throws {@link
 * IOException} after that; the caller tries again later.
 */
public interface StateStore {
  /** Creates the table, pre-split, if it is missing. */
  void ensureTable() throws IOException;

  /** Writes all rows. After an exception some of them may have been written. */
  void put(List<StateRow> rows) throws IOException;

  /**
   * Writes all rows: events of tables before all others, as whoever reads that a new region is open, or what its table
   * has been sent, has to find that the table was emptied. The content ledger comes after them: whoever finds a marker
   * also finds every entry before it in a head, and the fact of its bulk load. Rows of servers come last: they vouch for
   * the others.
   */
  default void putInOrder(List<StateRow> rows) throws IOException {
    Map<Integer, List<StateRow>> byPlace = rows.stream().collect(
        Collectors.groupingBy(StateStore::place, TreeMap::new, Collectors.toList()));
    for (List<StateRow> together : byPlace.values()) {
      put(together);
    }
  }

  private static int place(StateRow row) {
    return row.isOf(TableEventRow.TYPE) ? 0 : row.isOf(ServerRow.TYPE) ? 3 : row.isOf(ContentRow.TYPE) ? 2 : 1;
  }

  /** Starts writing. Never throws, never waits. */
  CompletableFuture<Void> putAsync(List<StateRow> rows);

  /** Reads rows, in the order of the keys; an absent row is empty. */
  List<StoredRow> get(List<byte[]> keys) throws IOException;

  /** Reads one row; an absent one is empty. */
  default StoredRow get(byte[] key) throws IOException {
    return get(List.of(key)).get(0);
  }

  /**
   * Writes the row and deletes columns of it, each up to the version that was read, in one atomic mutation: newer
   * versions stay. A column that was not read is deleted with all versions.
   */
  CompletableFuture<Void> replaceAsync(StateRow row, StoredRow read, List<byte[]> deletedQualifiers);

  /** Writes the row if the column has the expected value (null: is absent). */
  boolean putIf(StateRow row, byte[] qualifier, byte[] expected) throws IOException;

  /** Does {@link #putIf} for each row with its own expected value; returns whether all were written. */
  boolean putAllIf(List<StateRow> rows, byte[] qualifier, List<byte[]> expected) throws IOException;

  /** Reads these columns of all rows of a type that have one of them. */
  List<StoredRow> scan(char rowType, byte[]... columns) throws IOException;

  /** Returns the start keys of the table's regions. */
  List<byte[]> regionStarts() throws IOException;

  /** Returns the user tables except the state table: name to descriptor as JSON. */
  Map<String, String> tables() throws IOException;

  Collection<ServerName> liveServers() throws IOException;
}
