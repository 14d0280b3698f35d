package io.github.statustool.recorder;

import io.github.statustool.state.Change;
import io.github.statustool.state.Ids;
import io.github.statustool.state.StateRow;
import io.github.statustool.state.StateStore;
import io.github.statustool.state.StateTable.ServerRow;
import io.github.statustool.state.StoredRow;
import io.github.statustool.state.TrackerVersion;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * One role of a region server, {@code w} (writer) or {@code r} (replicator), with its row in the state table and
 * whether that row is final.
 */
final class ServerRole {
  static final char WRITER = 'w';
  static final char REPLICATOR = 'r';
  static final String BOTH = "" + WRITER + REPLICATOR;

  /** End of a server, as its row shows it. */
  enum End {
    /** It is running, or its state is not known. */
    NONE,
    /** It ended, and everything that it appended is in the table. */
    CLEAN,
    /** It ended, but the last entries of its WAL may be lost, as after a crash. */
    TORN
  }

  final char role;
  final String serverName;
  final long origin;
  /**
   * Timestamp of the cells in the last row. Strictly increasing even if the clock is set back, so that no older cell
   * hides a newer one.
   */
  private long lastTimestamp;
  /** {@link ServerRow#LAST} of the row as this server knows it to be stored; null: there is none. */
  private byte[] stored;
  /** The newest one whose write failed or went to the spool, which like each before may be stored; null: none. */
  private byte[] attempted;
  private boolean ended;

  ServerRole(char role, String serverName) {
    this.role = role;
    this.serverName = serverName;
    this.origin = Ids.origin(serverName);
  }

  byte[] key() {
    return key(origin, role);
  }

  static byte[] key(long origin, char role) {
    return Bytes.toBytes(ServerRow.TYPE + Ids.hex(origin) + role);
  }

  boolean isWritten() {
    return stored != null;
  }

  /**
   * Writes the row if the stored one is still the one that this server wrote last. Otherwise the table has lost rows or
   * went back to an earlier state, and this returns false. A write without an answer may have been stored or not.
   */
  boolean write(StateStore store, Change change) throws IOException {
    byte[] version = version(change.row);
    try {
      if (isPut(store, change.row, stored)) {
        landed(version, change);
        return true;
      }
      // A row of ours whose answer was lost, or that was drained from the spool, is no sign of a table that went back.
      // A row of before is.
      byte[] found = last(store);
      if (isNewer(found, stored) && !isNewer(found, attempted) && isPut(store, change.row, found)) {
        landed(version, change);
        return true;
      }
      return false;
    } catch (IOException e) {
      mayBeStored(version);
      throw e;
    }
  }

  /** Returns true if the row was put, now or by an attempt whose answer was lost. */
  private boolean isPut(StateStore store, StateRow row, byte[] expected) throws IOException {
    // HBase's client repeats a check-and-put whose answer was lost. The repetition finds the row that the first one has
    // put, and fails: the version in the table tells.
    return store.putIf(row, ServerRow.LAST, expected) || Arrays.equals(version(row), last(store));
  }

  private byte[] last(StateStore store) throws IOException {
    return store.get(key()).value(ServerRow.LAST);
  }

  /** Takes a row that is written without the check, which may be stored at any time from now on. */
  void mayBeStored(StateRow row) {
    mayBeStored(version(row));
  }

  private void mayBeStored(byte[] version) {
    attempted = isNewer(version, attempted) ? version : attempted;
  }

  private void landed(byte[] version, Change change) {
    stored = version;
    attempted = null;
    change.stored();
  }

  /** Accepts the row that is there, if any, after the table was found to have gone back. */
  void accept(StoredRow row) {
    stored = row.value(ServerRow.LAST);
    attempted = null;
  }

  private static byte[] version(StateRow row) {
    return row.columns().stream().filter(column -> Arrays.equals(column.qualifier, ServerRow.LAST)).findFirst()
        .orElseThrow().value;
  }

  /** Compares two versions, null being the oldest: they only rise, and this server alone writes its row. */
  private static boolean isNewer(byte[] one, byte[] other) {
    return one != null && (other == null || Bytes.compareTo(one, other) > 0);
  }

  /** Returns true if the row that was written is the final one. */
  boolean isEnded() {
    return ended;
  }

  /** @param flushed when the flush that this row concludes began; null before the first successful flush */
  Change row(Long flushed, Barrier.Echo echo, End end, String health, long time) {
    lastTimestamp = Math.max(time, lastTimestamp + 1);
    long now = lastTimestamp;
    StateRow row = new StateRow(key())
        .add(ServerRow.NAME, Bytes.toBytes(serverName), now)
        .add(ServerRow.VERSION, Bytes.toBytes(TrackerVersion.get()), now)
        .add(ServerRow.HEALTH, Bytes.toBytes(health), now)
        .add(ServerRow.LAST, now, now);
    if (flushed != null) {
      row.add(ServerRow.FLUSHED_MS, flushed, now);
    }
    if (echo != null) {
      row.add(ServerRow.ECHO, echo.token, now).add(ServerRow.READ_MS, echo.readAt, now);
    }
    if (end == End.CLEAN) {
      row.add(ServerRow.FINAL_MS, flushed, now);
    }
    return new Change(row, () -> ended = end != End.NONE);
  }

  @Override
  public String toString() {
    return serverName + "/" + role;
  }
}
