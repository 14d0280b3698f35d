package io.github.statustool;

import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.hbase.ServerName;

/**
 * The state table and the little of the cluster that a tracker asks for. Every call is bounded in time; what cannot be
 * done in that time is an {@link IOException}, and the caller tries again later.
 */
interface StateStore {
  /** Creates the table, pre-split, if it is missing. Returns whether this call created it. */
  boolean ensureTable() throws IOException;

  /** Writes all rows, or throws; after an exception some may have been written. */
  void put(List<StateRow> rows) throws IOException;

  /** Starts writing; never throws, never waits. */
  CompletableFuture<Void> putAsync(List<StateRow> rows);

  /** The rows in the order of the keys; an absent one is empty. */
  List<StoredRow> get(List<byte[]> keys) throws IOException;

  /** Writes the row and deletes these of its columns, in one atomic mutation. */
  CompletableFuture<Void> replaceAsync(StateRow row, List<byte[]> deletedQualifiers);

  /**
   * Writes the row and deletes these columns of it, each up to the version that was read, in one atomic mutation: what
   * was written to them since stays.
   */
  CompletableFuture<Void> replaceAsync(StateRow row, StoredRow read, List<byte[]> deletedQualifiers);

  /** Writes the row if this column of it still has the expected value (null: is absent). */
  boolean putIf(StateRow row, byte[] qualifier, byte[] expected) throws IOException;

  List<StoredRow> scan(char rowType) throws IOException;

  /** User tables, without the state table: name to descriptor as JSON. */
  Map<String, String> tables() throws IOException;

  Collection<ServerName> liveServers() throws IOException;
}
